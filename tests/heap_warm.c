/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heap_warm.c - memory that is there before it is asked for, a heap that asks
 * for nothing, a limit on what it has; seen from inside.
 */
#include "heap_inside.h"

#include <linux/capability.h>

#include "eddy/eddy.h"
#include "lib/heap/large.h"

enum { SLOTS = 256, N_THREADS = 3 };

static struct eddy_heap *h;
static struct eddy_arena *a; /* the test's own */

static void
begin(void)
{
	int node = (int)eddy_node_next(h->places.has_memory, 0);
	unsigned number;

	if (eddy_arena_create(node, &number) != 0)
		tap_bail("eddy_arena_create");
	a = eddy_arena_at(h, number);
}

static void *
take(size_t size)
{
	return eddy_arena_malloc(a->number, size);
}

/* Pages with dirty bits, in all arenas. */
static int64_t
backed(void)
{
	return inside_count(h, 0).backed;
}

/* Bytes of the arena's chunks that the kernel has in memory. */
static size_t
resident(void)
{
	static unsigned char in[EDDY_SEGMENT / EDDY_PAGE];
	size_t n = 0;

	for (uint32_t i = 0; i < h->n_segments; i++) {
		if (i >=
		    atomic_load(&eddy_fast.limit) / (EDDY_SEGMENT / EDDY_PAGE))
			break;
		if (atomic_load(&h->segments[i].counted) != a->number)
			continue;
		if (mincore(eddy_page_address(
				h, i * (uint32_t)EDDY_SEGMENT_CHUNKS, 0),
			EDDY_SEGMENT, in) != 0)
			tap_bail("mincore");
		for (size_t k = 0; k < sizeof in; k++)
			n += in[k] & 1;
	}
	return n * EDDY_PAGE;
}

static size_t
bytes_backed(void)
{
	return (size_t)inside_numbers(a).backed * EDDY_PAGE;
}

/* ------------------------------------------------------------------ */
/* Prefault */

static void
test_prefault(void)
{
	size_t size = 64 * MIB;
	size_t before;
	void *p;

	begin();
	tap_ok(eddy_warm_prefault(h, a, size) == 0 && resident() == size &&
		   bytes_backed() == size && inside_numbers(a).active == 0,
	    "a prefault makes resident what it says");
	before = resident();
	p = take(40 * MIB);
	tap_ok(resident() == before && eddy_warm_prefault(h, a, size) == 0 &&
		   resident() == before,
	    "what is in use counts");
	tap_ok(eddy_warm_prefault(h, a, size + 3 * EDDY_CHUNK + 1) == 0 &&
		   resident() == size + 4 * EDDY_CHUNK,
	    "more is a prefault of the rest");
	free(p);
	tap_ok(inside_agree(h, "prefault"), "the numbers agree");
}

/* Segments that are free and dirty come first where an arena grows. */
static void
test_dirty_segments(void)
{
	size_t size = 2 * EDDY_SEGMENT;

	begin();
	free(take(size));
	tap_ok(bytes_backed() == size, "two segments are free and dirty");
	tap_ok(eddy_warm_prefault(h, a, size + 32 * MIB) == 0 &&
		   bytes_backed() >= size + 32 * MIB,
	    "a prefault gets past them");
	(void)eddy_purge_arena(h, a);
}

static void
test_ahead(void)
{
	void *p[8];
	bool held;

	begin();
	eddy_reclaim_decay(h, a, 1000, 0);
	h->opts.prefault_ahead = 4;
	(void)eddy_reclaim_step(
	    h, EDDY_HOME_NONE, 64, atomic_load(&kernel.now), SIZE_MAX);
	/* The kernel's page of zeros may lie where something was purged. */
	held = eddy_warm_chunks(h, a) == 4 && resident() >= 4 * EDDY_CHUNK &&
	       resident() < 4 * EDDY_CHUNK + 256 * KIB;
	for (unsigned i = 0; i < COUNT(p); i++) {
		unsigned long wakes = atomic_load(&kernel.wakes);
		size_t before = resident();

		p[i] = take(EDDY_CHUNK);
		held &= resident() == before &&
			(i == 0 || atomic_load(&kernel.wakes) > wakes);
		atomic_fetch_add(&kernel.now, 100);
		(void)eddy_reclaim_step(
		    h, EDDY_HOME_NONE, 64, atomic_load(&kernel.now), SIZE_MAX);
		held &= eddy_warm_chunks(h, a) >= 4;
	}
	tap_ok(held, "chunks are ready before they are needed");
	for (unsigned i = 0; i < COUNT(p); i++)
		free(p[i]);
	for (unsigned i = 0; i < 300; i++) {
		atomic_fetch_add(&kernel.now, 20);
		(void)eddy_reclaim_step(
		    h, EDDY_HOME_NONE, 64, atomic_load(&kernel.now), SIZE_MAX);
	}
	tap_ok(eddy_warm_chunks(h, a) >= 4 && resident() <= 6 * EDDY_CHUNK,
	    "decay leaves them, and no more");
	h->opts.prefault_ahead = 0;
	eddy_reclaim_decay(h, a, -1, 0);
}

/* ------------------------------------------------------------------ */
/* Blocks of all sizes */

struct block {
	unsigned char *p;
	size_t size;
};

struct worker {
	struct block slot[SLOTS];
	void *burst[2000];
	unsigned n_slots;
	uint64_t rng;
	size_t bytes;
	unsigned long wrong;
	unsigned long nulls;
	unsigned n_ops;
};

static size_t
any_size(struct worker *w)
{
	unsigned lg = (unsigned)(tap_random(&w->rng) % 23);

	return ((size_t)1 << lg) + tap_random(&w->rng) % ((size_t)1 << lg);
}

static void
operate(struct worker *w, size_t most)
{
	struct block *b = &w->slot[tap_random(&w->rng) % w->n_slots];
	uint64_t how = tap_random(&w->rng);
	size_t size = any_size(w);
	unsigned char *p;

	w->n_ops++;
	if (w->bytes + size > most)
		size = 100;
	if (b->p == NULL) {
		p = how % 3 == 0 ? p_calloc(1, size) : p_malloc(size);
		if (p != NULL && how % 3 == 0)
			for (size_t i = 0; i < size; i += 97)
				w->wrong += p[i] != 0;
	} else if (how % 3 == 0) {
		w->wrong += b->p[0] != 7 || b->p[b->size - 1] != 7;
		w->bytes -= b->size;
		p_free(b->p);
		b->p = NULL;
		return;
	} else {
		p = p_realloc(b->p, size);
		if (p != NULL) {
			w->wrong += p[0] != 7;
			w->bytes -= b->size;
		}
	}
	if (p == NULL) {
		w->nulls++;
		return;
	}
	b->p = p;
	b->size = size;
	w->bytes += size;
	/* All of it, now and then, so that calloc has what to clear. */
	memset(p, 7, how % 8 == 0 ? size : 1);
	p[size - 1] = 7;
}

/* More small objects of a size than caches hold. */
static void
burst(struct worker *w)
{
	size_t size = 16 + tap_random(&w->rng) % 500;

	for (unsigned i = 0; i < COUNT(w->burst); i++) {
		w->burst[i] = p_malloc(size);
		w->nulls += w->burst[i] == NULL;
	}
	for (unsigned i = 0; i < COUNT(w->burst); i++)
		p_free(w->burst[i]);
}

static void
set_up(struct worker *w, unsigned id, unsigned n_slots)
{
	w->rng = tap.seed + id;
	w->n_slots = n_slots;
}

static void
finish(struct worker *w)
{
	for (unsigned i = 0; i < SLOTS; i++) {
		p_free(w->slot[i].p);
		w->slot[i].p = NULL;
	}
	w->bytes = 0;
}

/* ------------------------------------------------------------------ */
/* Freeze */

/* A heap of holes: every chunk has pages that were never used. */
static void
make_holes(struct worker *w)
{
	static void *p[400];
	static void *big[40];

	for (unsigned i = 0; i < COUNT(big); i++)
		big[i] = p_malloc(100 * KIB + i * 40 * KIB);
	for (unsigned i = 0; i < COUNT(p); i++)
		p[i] = p_malloc(20 * KIB + i % 9 * 4 * KIB);
	for (unsigned i = 0; i < COUNT(p); i += 2)
		p_free(p[i]);
	eddy_gather_all(h);
	(void)eddy_purge(h, 0);
	for (unsigned i = 1; i < COUNT(p); i += 2)
		p_free(p[i]);
	for (unsigned i = 0; i < COUNT(big); i++)
		p_free(big[i]);
	for (unsigned i = 0; i < 400; i++)
		operate(w, 16 * MIB);
	finish(w);
}

/* What is frozen does not grow, whatever is asked of it. */
static void
test_null(void)
{
	static struct worker w;
	int64_t before;
	int64_t most;
	unsigned long n_calls;
	bool held = true;

	set_up(&w, 1, SLOTS);
	make_holes(&w);
	h->opts.freeze_growth = EDDY_FREEZE_GROWTH_NULL;
	eddy_warm_freeze(h);
	before = most = backed();
	n_calls = atomic_load(&kernel.n_calls);
	for (unsigned i = 0; i < 3000; i++) {
		operate(&w, 64 * MIB);
		if (i % 50 != 0)
			continue;
		if (backed() > most)
			most = backed();
		held &= inside_agree(h, "frozen");
	}
	if (!tap_ok(most == before && held,
		"a frozen heap that may not grow has what it had"))
		tap_diag("%lld pages, then %lld", (long long)before,
		    (long long)most);
	tap_ok(w.wrong == 0 && w.nulls != 0 &&
		   atomic_load(&h->frozen_growth) >= w.nulls,
	    "NULL is for what does not fit, and counted");
	tap_diag("%lu of %u were NULL", w.nulls, w.n_ops);
	errno = 0;
	tap_ok(p_malloc(512 * MIB) == NULL && errno == ENOMEM, "with ENOMEM");
	tap_ok(atomic_load(&kernel.n_calls) == n_calls,
	    "and nothing is given back for it");
	eddy_warm_thaw(h);
	w.nulls = 0;
	for (unsigned i = 0; i < 1000; i++)
		operate(&w, 64 * MIB);
	tap_ok(w.nulls == 0 && w.wrong == 0, "all is as before when it thaws");
	finish(&w);
}

/* Growth is counted where it is. */
static void
test_count(void)
{
	static struct worker w;
	bool held = true;
	unsigned long grown = 0;

	set_up(&w, 2, SLOTS);
	eddy_gather_all(h);
	(void)eddy_purge(h, 0);
	make_holes(&w);
	h->opts.freeze_growth = EDDY_FREEZE_GROWTH_COUNT;
	eddy_warm_freeze(h);
	for (unsigned i = 0; i < 1000; i++) {
		int64_t before = backed();
		uint64_t count = atomic_load(&h->frozen_growth);

		operate(&w, 64 * MIB);
		grown += backed() > before;
		held &= backed() <= before ||
			atomic_load(&h->frozen_growth) > count;
	}
	tap_ok(held && w.nulls == 0 && grown != 0,
	    "each time that a frozen heap grows is counted");
	eddy_warm_thaw(h);
	finish(&w);
}

static atomic_bool go;
static atomic_bool stop;
static atomic_uint ready;

static void
work_frozen(struct worker *w)
{
	for (unsigned i = 0; i < 3000; i++) {
		operate(w, 24 * MIB);
		if (i % 100 == 0)
			burst(w);
	}
}

static void *
work(void *arg)
{
	struct worker *w = arg;

	p_free(p_malloc(1)); /* whose rseq area is known from then on */
	operate(w, 24 * MIB);
	atomic_fetch_add(&ready, 1);
	while (!atomic_load(&go))
		continue;
	work_frozen(w);
	atomic_fetch_add(&ready, 1);
	while (!atomic_load(&stop))
		continue;
	return NULL;
}

static void
on_call(int signo, siginfo_t *info, void *context)
{
	(void)signo;
	(void)context;
	tap_diag("system call %d", info->si_syscall);
	_exit(5);
}

/* Any system call but write and exit_group ends the process. */
static bool
forbid_calls(void)
{
	struct sigaction sa = {.sa_sigaction = on_call, .sa_flags = SA_SIGINFO};

	struct sock_filter f[] = {
	    BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {.filter = f, .len = COUNT(f)};

	return sigaction(SIGSYS, &sa, NULL) == 0 &&
	       prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		   SECCOMP_FILTER_FLAG_TSYNC, &prog) == 0;
}

/* A process of its own: it is killed if the heap asks the kernel. */
static int
no_calls(void)
{
	static struct worker w[N_THREADS + 1];
	pthread_t t[N_THREADS];
	unsigned long nulls = 0;
	unsigned long wrong = 0;

	for (unsigned i = 0; i < COUNT(w); i++)
		set_up(&w[i], 10 + i, 48);
	for (unsigned i = 0; i < N_THREADS; i++)
		if (pthread_create(&t[i], NULL, work, &w[i]) != 0)
			return 9;
	while (atomic_load(&ready) != N_THREADS)
		continue;
	for (uint32_t i = 0; i < h->n_homes; i++)
		if (eddy_warm_prefault(
			h, eddy_arena_of_home(h, i), 512 * MIB) != 0)
			return 8;
	h->opts.freeze_growth = EDDY_FREEZE_GROWTH_NULL;
	eddy_warm_freeze(h);
	if (!forbid_calls())
		return 77;
	atomic_store(&go, true);
	work_frozen(&w[N_THREADS]);
	while (atomic_load(&ready) != 2 * N_THREADS)
		continue;
	for (unsigned i = 0; i < COUNT(w); i++) {
		nulls += w[i].nulls;
		wrong += w[i].wrong;
	}
	_exit(nulls != 0 ? 3 : wrong != 0 ? 4 : 0);
}

/* ------------------------------------------------------------------ */
/* A limit */

/* As much as there is, in pieces; returns how many bytes. */
static size_t
take_all(size_t size, void **first)
{
	size_t n = 0;
	void **p;

	while ((p = p_malloc(size)) != NULL) {
		*p = *first;
		*first = p;
		n += size;
	}
	return n;
}

static void
free_all(void **first)
{
	while (*first != NULL) {
		void *next = *(void **)*first;

		p_free(*first);
		*first = next;
	}
}

static void *
take_all_at_once(void *arg)
{
	(void)take_all(300 * KIB, arg);
	return NULL;
}

static int
limited(void)
{
	static const size_t sizes[] = {
	    100, 5000, 20 * KIB, 300 * KIB, 3 * MIB, 20 * MIB};
	const size_t limit = 128 * MIB;
	static void *lists[N_THREADS];
	pthread_t t[N_THREADS];
	bool held = true;
	bool full = true;
	void *first = NULL;
	void *q;
	char *p;

	(void)dup2(STDERR_FILENO, STDOUT_FILENO);
	for (size_t i = 0; i < COUNT(sizes); i++) {
		size_t n;

		errno = 0;
		n = take_all(sizes[i], &first);
		held &=
		    errno == ENOMEM && (size_t)backed() * EDDY_PAGE <= limit;
		if ((size_t)backed() * EDDY_PAGE > limit)
			tap_diag("%zu: %zu KiB", sizes[i],
			    (size_t)backed() * EDDY_PAGE / KIB);
		/* What a block does not use of its last chunk counts. */
		full &= n >= limit / 10 * 6;
		if (n < limit / 10 * 6)
			tap_diag("blocks of %zu: %zu MiB", sizes[i], n / MIB);
		held &= inside_agree(h, "at the limit");
		free_all(&first);
		q = p_malloc(limit / 2);
		held &= q != NULL;
		if (q == NULL)
			tap_diag("after blocks of %zu: NULL", sizes[i]);
		p_free(q);
	}
	tap_ok(held, "beyond the limit: NULL, ENOMEM, and nothing more");
	tap_ok(full, "up to the limit: memory, whatever was free before");
	p = p_malloc(40 * MIB);
	p[0] = 5;
	tap_ok(p_realloc(p, limit) == NULL && p[0] == 5 &&
		   p_calloc(1, limit) == NULL,
	    "realloc and calloc as well");
	p = p_realloc(p, 60 * MIB);
	tap_ok(p != NULL && p[0] == 5, "and then something smaller");
	p_free(p);
	for (unsigned i = 0; i < N_THREADS; i++)
		if (pthread_create(&t[i], NULL, take_all_at_once, &lists[i]) !=
		    0)
			return 9;
	for (unsigned i = 0; i < N_THREADS; i++)
		(void)pthread_join(t[i], NULL);
	tap_ok((size_t)backed() * EDDY_PAGE <= limit + N_THREADS * EDDY_CHUNK,
	    "threads at once, too");
	for (unsigned i = 0; i < N_THREADS; i++)
		free_all(&lists[i]);
	a = eddy_arena_at(h, 1);
	tap_ok(eddy_warm_prefault(h, a, 2 * limit) == -ENOMEM &&
		   (size_t)backed() * EDDY_PAGE <= limit,
	    "a prefault does not go beyond it");
	q = p_malloc(limit / 2);
	tap_ok(q != NULL, "nor does it keep others from what there is");
	p_free(q);
	return tap.failed != 0;
}

/* No cgroup limits anything here, or it does: all the same memory can be had.
 */
static int
share(void)
{
	void *p = p_malloc(16 * MIB);

	return p != NULL && h->limited ? 0 : 1;
}

/* ------------------------------------------------------------------ */
/* Locked memory */

static bool
may_not_lock(void)
{
	struct rlimit none = {0, 0};

	return setrlimit(RLIMIT_MEMLOCK, &none) == 0 &&
	       (geteuid() != 0 ||
		   prctl(PR_CAPBSET_DROP, CAP_IPC_LOCK, 0, 0, 0) == 0);
}

static long
locked_kib(void)
{
	char buf[8192];
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, buf, sizeof buf - 1);
	char *at;

	(void)close(fd);
	buf[n > 0 ? n : 0] = '\0';
	at = strstr(buf, "VmLck:");
	return at != NULL ? strtol(at + 6, NULL, 10) : -1;
}

static int
locked(bool may)
{
	char *p;
	char *q;
	bool zero = true;

	(void)dup2(STDERR_FILENO, STDOUT_FILENO);
	p = p_malloc(32 * MIB);
	if (p == NULL)
		return 1;
	memset(p, 1, 32 * MIB);
	if (may) {
		tap_ok(atomic_load(&h->n_unlocked) == 0 &&
			   locked_kib() >= 32 * KIB,
		    "memory is locked");
	} else {
		tap_ok(atomic_load(&h->n_unlocked) >= 16 && locked_kib() == 0,
		    "what may not be locked is counted");
		tap_diag("%llu chunks, %ld KiB locked",
		    (unsigned long long)atomic_load(&h->n_unlocked),
		    locked_kib());
	}
	p_free(p);
	(void)eddy_purge(h, 0);
	q = p_calloc(1, 32 * MIB);
	for (size_t i = 0; q != NULL && i < 32 * MIB; i += 61)
		zero &= q[i] == 0;
	tap_ok(q != NULL && zero && inside_agree(h, "locked"),
	    "calloc's zeros are true");
	p_free(q);
	return tap.failed != 0;
}

/* ------------------------------------------------------------------ */

static int
part(char **argv)
{
	const char *what = argv[1];

	if (strcmp(what, "unlock") == 0) {
		static char next[] = "unlocked";

		if (!may_not_lock())
			return 77;
		tap_exec(argv[0], next);
	}
	if (strcmp(what, "no calls") == 0) {
		(void)dup2(STDERR_FILENO, STDOUT_FILENO);
		return no_calls();
	}
	if (strcmp(what, "limited") == 0)
		return limited();
	if (strcmp(what, "share") == 0)
		return share();
	return locked(strcmp(what, "locked") == 0);
}

int
main(int argc, char **argv)
{
	(void)unsetenv("EDDY_SO"); /* the heap is linked in */
	tap_begin(argv);
	probe_small_pages();
	atomic_store(&kernel.now, 1000000);
	atomic_store(&kernel.served, true);
	p_free(p_malloc(1));
	h = eddy_heap();
	if (h == NULL)
		tap_bail("no heap");
	if (argc > 1)
		return part(argv);
	if (!h->reserved)
		tap_skip_all("no range of addresses");
	tap_guard(120);
	test_prefault();
	test_dirty_segments();
	test_ahead();
	test_null();
	test_count();
	tap_ok(probe_again(argv, "no calls", "frozen"),
	    "a frozen heap makes no system call, by any thread");
	(void)setenv("EDDY_CONF", "rseq:false", 1);
	tap_ok(probe_again(argv, "no calls", "frozen"),
	    "nor without restartable sequences");
	(void)setenv("EDDY_CONF", "heap_limit:134217728", 1);
	tap_ok(probe_again(argv, "limited", "heap_limit"), "a limit");
	(void)setenv("EDDY_CONF", "heap_limit_share:50", 1);
	tap_ok(probe_again(argv, "share", "heap_limit_share"),
	    "a share of the cgroup's");
	(void)setenv("EDDY_CONF", "lock_memory:true", 1);
	tap_ok(probe_again(argv, "unlock", "no permission"),
	    "lock_memory where it is not permitted");
	if (geteuid() == 0)
		tap_ok(probe_again(argv, "locked", "permission"),
		    "and where it is");
	else
		tap_skip("locked", "not permitted");
	return tap_end();
}
