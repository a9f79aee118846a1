/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * numa_pages.c - on which nodes the pages lie that malloc gives out.
 *
 * Threads bound to a node allocate, exchange blocks with all others and free
 * what they got; every 10,000 operations they go to another CPU of their node.
 * Wanderers do the same, but go to any CPU.  Then the kernel is asked about
 * every page of every block that a thread has from its own malloc calls: it
 * should lie on the node of the CPU that called, or on the nearest node that
 * has memory.
 *
 *   numa_pages [OPERATIONS [LEAST [NODE]]]
 *
 *   OPERATIONS  of all threads (1000000)
 *   LEAST       so many of 1000 pages lie right (990)
 *   NODE        where all should lie, instead: the process has a policy
 *
 * Run under the library by EDDY_SO, as all test programs are.
 */
#include "tests/vm/nodes.h"

enum {
	MAX_THREADS = 64,
	PER_NODE = 2,
	WANDERERS = 2,
	SLOTS = 1500,
	MAILBOX = 512,
	STAY = 10000,
};

/* ---- the work ---- */

/* A block, filled to its end by the thread that has it from malloc. */
struct block {
	uint32_t maker; /* index of the thread */
	int32_t node;   /* where it should lie */
	size_t bytes;
	uint64_t stamp;
};

static _Atomic(struct block *) mailbox[MAILBOX];

struct thread {
	pthread_t id;
	uint32_t index;
	int bound; /* node, or -1 */
	int cpu;
	uint64_t rng;
	unsigned long operations;
	unsigned long damaged;
	unsigned long refused;
	struct block *slot[SLOTS];
};

static struct thread thread[MAX_THREADS];
static int n_threads;
static unsigned long operations_each;

static void
go_to(struct thread *t, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((unsigned)cpu, &set);
	if (sched_setaffinity(0, sizeof set, &set) != 0)
		tap_bail("cannot run on CPU %d: errno %d", cpu, errno);
	t->cpu = cpu;
}

static void
move_on(struct thread *t)
{
	uint64_t r = tap_random(&t->rng);

	if (t->bound < 0)
		go_to(t, all_cpus[r % (unsigned)n_all_cpus]);
	else
		go_to(t,
		    node_cpus[t->bound][r % (unsigned)n_node_cpus[t->bound]]);
}

/* Mostly small, one in 16 up to 32 KiB, one in 1024 up to 512 KiB. */
static size_t
draw_size(uint64_t r)
{
	size_t limit = (r & 1023) == 0 ? 512 * KIB
		       : (r & 15) == 0 ? 32 * KIB
				       : 1000;

	return sizeof(struct block) + (size_t)(r >> 16) % limit;
}

static struct block *
make(struct thread *t)
{
	size_t n = draw_size(tap_random(&t->rng));
	struct block *b = p_malloc(n);

	if (b == NULL) {
		t->refused++;
		return NULL;
	}
	memset(b, (int)t->index, n);
	b->maker = t->index;
	b->node = nearest[node_of_cpu[t->cpu]];
	b->bytes = n;
	b->stamp = (uintptr_t)b ^ n;
	return b;
}

static void
discard(struct thread *t, struct block *b)
{
	if (b == NULL)
		return;
	t->damaged += b->stamp != ((uintptr_t)b ^ b->bytes);
	b->stamp = 0;
	p_free(b);
}

/* One operation: a block is made, one that was made before is freed, here or
 * by whoever finds it in the mailbox. */
static void
step(struct thread *t)
{
	uint64_t r = tap_random(&t->rng);
	struct block **at = &t->slot[r % SLOTS];

	if ((r >> 32 & 3) == 0) {
		/* acq_rel: the block's content goes along. */
		struct block *other = atomic_exchange_explicit(
		    &mailbox[(r >> 40) % MAILBOX], *at, memory_order_acq_rel);

		*at = NULL;
		discard(t, other);
	} else {
		discard(t, *at);
	}
	*at = make(t);
}

static void *
work(void *arg)
{
	struct thread *t = arg;

	for (; t->operations < operations_each; t->operations++) {
		if (t->operations % STAY == 0)
			move_on(t);
		step(t);
	}
	return NULL;
}

static void
add_thread(int node)
{
	struct thread *t = &thread[n_threads];

	if (n_threads == MAX_THREADS)
		return;
	t->index = (uint32_t)n_threads++;
	t->bound = node;
	t->rng = tap.seed + t->index * 7919u;
}

/* ---- the question ---- */

struct page {
	void *at;
	int want;
	bool bound; /* of a node-bound thread */
};

static struct page *page;
static size_t n_pages;
static size_t max_pages;

static void
note_block(const struct block *b, bool bound)
{
	uintptr_t end = (uintptr_t)b + b->bytes;

	for (uintptr_t p = (uintptr_t)b & ~(page_size - 1); p < end;
	     p += page_size) {
		if (n_pages == max_pages)
			tap_bail("more than %zu pages", max_pages);
		page[n_pages++] = (struct page){(void *)p, b->node, bound};
	}
}

static int
by_place(const void *a, const void *b)
{
	const struct page *x = a;
	const struct page *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	if (x->bound != y->bound)
		return x->bound ? -1 : 1;
	return (x->want > y->want) - (x->want < y->want);
}

/* A page counts once for each node that it should lie on. */
static void
drop_repeats(void)
{
	size_t n = 0;

	qsort(page, n_pages, sizeof *page, by_place);
	for (size_t i = 0; i < n_pages; i++)
		if (n == 0 || by_place(&page[n - 1], &page[i]) != 0)
			page[n++] = page[i];
	n_pages = n;
}

struct tally {
	unsigned long pages;
	unsigned long right;
	unsigned long unknown;
};

static struct tally of_bound[MAX_NODES];
static struct tally of_wanderers;
static unsigned long lie_on[MAX_NODES];

static void
ask(void)
{
	enum { BATCH = 512 };

	for (size_t i = 0; i < n_pages; i += BATCH) {
		size_t n = n_pages - i < BATCH ? n_pages - i : BATCH;
		void *at[BATCH];
		int node[BATCH];

		for (size_t k = 0; k < n; k++)
			at[k] = page[i + k].at;
		nodes_ask(at, node, n);
		for (size_t k = 0; k < n; k++) {
			struct page *p = &page[i + k];
			struct tally *t =
			    p->bound ? &of_bound[p->want] : &of_wanderers;

			t->pages++;
			t->right += node[k] == p->want;
			t->unknown += node[k] < 0;
			if (node[k] >= 0 && node[k] < MAX_NODES)
				lie_on[node[k]]++;
		}
	}
}

/* The pages of all blocks that threads have and of those in the mailbox. */
static void
survey(void)
{
	max_pages = 1 << 20;
	page = mmap(NULL, max_pages * sizeof *page, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		tap_bail("no memory for the list of pages");
	for (int i = 0; i < n_threads; i++)
		for (int k = 0; k < SLOTS; k++)
			if (thread[i].slot[k] != NULL)
				note_block(
				    thread[i].slot[k], thread[i].bound >= 0);
	for (int k = 0; k < MAILBOX; k++) {
		struct block *b = atomic_load(&mailbox[k]);

		if (b != NULL)
			note_block(b, thread[b->maker].bound >= 0);
	}
	drop_repeats();
	ask();
}

static void
report(unsigned long least)
{
	unsigned long elsewhere = 0;
	bool wanted[MAX_NODES] = {false};

	for (int i = 0; i < n_all_cpus; i++)
		wanted[nearest[node_of_cpu[all_cpus[i]]]] = true;

	for (int n = 0; n < MAX_NODES; n++) {
		struct tally *t = &of_bound[n];

		if (t->pages != 0)
			tap_ok(t->right * 1000 >= t->pages * least,
			    "node %d: %lu of %lu pages of its threads lie "
			    "there",
			    n, t->right, t->pages);
		if (t->unknown != 0)
			tap_diag(
			    "node %d: %lu pages have no place", n, t->unknown);
		if (!wanted[n])
			elsewhere += lie_on[n];
	}
	tap_diag("wanderers: %lu of %lu pages lie where they called",
	    of_wanderers.right, of_wanderers.pages);
	tap_ok(elsewhere == 0, "no page lies on a node that is nobody's");
}

int
main(int argc, char **argv)
{
	unsigned long operations =
	    argc > 1 ? strtoul(argv[1], NULL, 10) : 1000000;
	unsigned long least = argc > 2 ? strtoul(argv[2], NULL, 10) : 990;
	unsigned long damaged = 0;
	unsigned long refused = 0;
	unsigned long done = 0;

	tap_begin(argv);
	nodes_read();
	for (int n = 0; argc > 3 && n < MAX_NODES; n++)
		nearest[n] = (int)strtol(argv[3], NULL, 10);
	tap_guard(120);
	for (int n = 0; n < MAX_NODES; n++)
		for (int i = 0; n_node_cpus[n] > 0 && i < PER_NODE; i++)
			add_thread(n);
	for (int i = 0; i < WANDERERS; i++)
		add_thread(-1);
	operations_each = operations / (unsigned)n_threads + 1;
	for (int i = 0; i < n_threads; i++)
		if (pthread_create(&thread[i].id, NULL, work, &thread[i]) != 0)
			tap_bail("pthread_create");
	for (int i = 0; i < n_threads; i++) {
		(void)pthread_join(thread[i].id, NULL);
		damaged += thread[i].damaged;
		refused += thread[i].refused;
		done += thread[i].operations;
	}
	survey();
	tap_diag("%lu operations of %d threads, %zu pages", done, n_threads,
	    n_pages);
	report(least);
	tap_ok(
	    damaged == 0 && refused == 0, "no block was damaged, none refused");
	return tap_end();
}
