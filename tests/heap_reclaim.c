/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heap_reclaim.c - the numbers that decay goes by are what the pages' bits say,
 * whatever was done to the heap, by one thread or by several.
 *
 * All sizes to some GiB (of which only addresses are used), calloc, realloc in
 * place and by mremap, purges of every kind, steps of housekeeping, kernels
 * that refuse and lie.  What blocks hold is verified, calloc's zeros too.
 */
#include "heap_inside.h"

enum {
	SLOTS = 96,
	N_THREADS = 4,
	BIG = 8 * MIB, /* from here on, what a block holds is sampled */
};

/* ------------------------------------------------------------------ */
/* Blocks */

struct block {
	unsigned char *p;
	size_t size;
};

struct worker {
	struct block slot[SLOTS];
	uint64_t rng;
	size_t bytes; /* of them all */
	size_t most;  /* that they may have */
	unsigned stamp;
	unsigned long wrong;
	unsigned long n_ops;
};

static struct eddy_heap *h;

static size_t
stride_of(size_t size)
{
	return size < BIG ? 1021 : 1048573;
}

/* A byte here and there, at both ends in any case. */
static void
fill(struct block *b, unsigned char v)
{
	for (size_t i = 0; i < b->size; i += stride_of(b->size))
		b->p[i] = v;
	b->p[b->size - 1] = v;
}

static bool
holds(const struct block *b, size_t size, unsigned char v)
{
	for (size_t i = 0; i < size; i += stride_of(b->size))
		if (b->p[i] != v)
			return false;
	return true;
}

static unsigned char
stamp_of(const struct block *b)
{
	return (unsigned char)((uintptr_t)b / sizeof(*b) * 37 + 11) | 1;
}

static void
empty(struct worker *w, struct block *b)
{
	if (b->p == NULL)
		return;
	if (!holds(b, b->size, stamp_of(b)) || b->p[b->size - 1] != stamp_of(b))
		w->wrong++;
	w->bytes -= b->size;
	p_free(b->p);
	b->p = NULL;
}

/* Every order of magnitude is as likely. */
static size_t
any_size(struct worker *w)
{
	unsigned lg = (unsigned)(tap_random(&w->rng) % 26);
	size_t size;

	if (tap_random(&w->rng) % 512 == 0)
		return ((size_t)1 << 30) + tap_random(&w->rng) % 2500 * MIB;
	size = ((size_t)1 << lg) + tap_random(&w->rng) % ((size_t)1 << lg);
	/* Whole chunks, often. */
	return size >= 2 * MIB && size % 3 == 0 ? size / EDDY_CHUNK * EDDY_CHUNK
						: size;
}

static void
make(struct worker *w, struct block *b)
{
	uint64_t how = tap_random(&w->rng);

	b->size = any_size(w);
	if (w->bytes + b->size > w->most && b->size < ((size_t)1 << 30))
		b->size = 1 + b->size % 4096;
	if (how % 3 == 0) {
		b->p = p_calloc(1, b->size);
		if (b->p != NULL &&
		    (!holds(b, b->size, 0) || b->p[b->size - 1] != 0))
			w->wrong++;
	} else if (how % 16 == 1) {
		b->p = aligned_alloc((size_t)64 << how / 16 % 17, b->size);
	} else {
		b->p = p_malloc(b->size);
	}
	if (b->p == NULL)
		return;
	w->bytes += b->size;
	fill(b, stamp_of(b));
}

static void
resize(struct worker *w, struct block *b)
{
	uint64_t how = tap_random(&w->rng);
	struct block old = *b;
	size_t size;

	/* Near what it was, or anything. */
	size =
	    how % 4 == 0 ? any_size(w) : 1 + b->size / 64 * (32 + how / 4 % 80);
	if (size >= (size_t)1 << 30 || w->bytes + size > w->most)
		return;
	b->p = p_realloc(b->p, size);
	if (b->p == NULL) {
		*b = old;
		return;
	}
	b->size = size;
	if (stride_of(size) == stride_of(old.size) &&
	    !holds(b, size < old.size ? size : old.size, stamp_of(b)))
		w->wrong++;
	w->bytes += size - old.size;
	fill(b, stamp_of(b));
}

static void
purge_something(struct worker *w)
{
	uint64_t r = tap_random(&w->rng);
	struct eddy_purge p = {
	    .kind = (enum eddy_purge_kind)(r % 4),
	    .arena = (uint32_t)(r / 4 % (h->n_homes + 1)),
	    .want = r / 64 % 8 == 0 ? SIZE_MAX : r / 512 % (64 * MIB),
	};

	eddy_purge_some(h, &p);
	if (p.cursor != 0 && r / 65536 % 2 == 0)
		eddy_purge_some(h, &p);
}

static void
housekeep(struct worker *w)
{
	uint64_t now = atomic_fetch_add(&kernel.now, tap_random(&w->rng) % 500);

	(void)eddy_reclaim_step(h, 0, 1, now, tap_random(&w->rng) % (32 * MIB));
}

static void
operate(struct worker *w)
{
	struct block *b = &w->slot[tap_random(&w->rng) % SLOTS];

	w->n_ops++;
	switch (tap_random(&w->rng) % 64) {
	case 0:
		purge_something(w);
		break;
	case 1:
		housekeep(w);
		break;
	case 2:
		if (tap_random(&w->rng) % 8 == 0)
			eddy_gather_all(h);
		break;
	case 3:
		atomic_store(
		    &kernel.answer, tap_random(&w->rng) % 4 == 0
					? (int)(tap_random(&w->rng) % 3)
					: GIVES);
		break;
	default:
		if (b->p == NULL)
			make(w, b);
		else if (tap_random(&w->rng) % 3 == 0)
			resize(w, b);
		else
			empty(w, b);
	}
}

static void
begin(struct worker *w, unsigned id, size_t most)
{
	memset(w, 0, sizeof *w);
	w->rng = tap.seed + id * 7919;
	w->most = most;
}

static void
finish(struct worker *w)
{
	for (unsigned i = 0; i < SLOTS; i++)
		empty(w, &w->slot[i]);
}

/* ------------------------------------------------------------------ */

/* In one thread the numbers are right after each operation. */
static void
test_alone(void)
{
	static struct worker w;
	bool held = true;
	uint64_t end = probe_ns() + (uint64_t)(probe_seconds(0.7) * 1e9);

	begin(&w, 1, 256 * (size_t)MIB);
	held = inside_agree(h, "at the start");
	while (held && probe_ns() < end) {
		for (unsigned i = 0; i < 20; i++)
			operate(&w);
		held = inside_agree(h, "in between");
	}
	atomic_store(&kernel.answer, GIVES);
	tap_ok(held, "the numbers are what the bits say");
	finish(&w);
	tap_ok(w.wrong == 0, "blocks hold what was written, calloc's zero");
	eddy_gather_all(h);
	(void)eddy_purge(h, 0);
	tap_ok(inside_agree(h, "at the end"), "and when all is given back");
	tap_diag("%lu operations, %u moves by mremap, %lu calls", w.n_ops,
	    atomic_load(&h->n_moves), atomic_load(&kernel.n_calls));
}

static atomic_bool stop;

static void *
work(void *arg)
{
	while (!atomic_load(&stop))
		operate(arg);
	finish(arg);
	return NULL;
}

static void
test_together(void)
{
	static struct worker w[N_THREADS];
	pthread_t t[N_THREADS];
	unsigned long wrong = 0;
	unsigned long n_ops = 0;

	for (unsigned i = 0; i < N_THREADS; i++) {
		begin(&w[i], 10 + i, 64 * (size_t)MIB);
		if (pthread_create(&t[i], NULL, work, &w[i]) != 0)
			tap_bail("pthread_create");
	}
	(void)usleep((useconds_t)(probe_seconds(0.7) * 1e6));
	atomic_store(&stop, true);
	for (unsigned i = 0; i < N_THREADS; i++) {
		(void)pthread_join(t[i], NULL);
		wrong += w[i].wrong;
		n_ops += w[i].n_ops;
	}
	atomic_store(&kernel.answer, GIVES);
	tap_ok(inside_agree(h, "several threads"),
	    "they are so after several threads");
	tap_ok(wrong == 0, "who verify what they read");
	tap_diag("%lu operations", n_ops);
}

/* What is free and dirty can all be given back: nothing is stranded. */
static void
test_all_back(void)
{
	struct pages n;
	bool held = true;

	eddy_gather_all(h);
	(void)eddy_purge(h, 0);
	for (uint32_t i = 1; i <= h->n_homes; i++) {
		struct eddy_arena *a = eddy_arena_at(h, i);

		if (a == NULL)
			continue;
		n = inside_numbers(a);
		held &= n.muzzy == 0 && eddy_reclaim_dirty(&a->reclaim) == 0;
		if (kernel.page == 0)
			held &= n.backed == n.active;
	}
	tap_ok(held, "a purge leaves nothing that is free and dirty");
}

static int
run(char *self, const char *mode)
{
	static char limited[] = "limited";
	struct rlimit l = {
	    .rlim_cur = 6 * (rlim_t)1024 * MIB, .rlim_max = RLIM_INFINITY};

	if (strcmp(mode, "limit") == 0) {
		/* From the start. */
		if (setrlimit(RLIMIT_AS, &l) != 0)
			return 77;
		tap_exec(self, limited);
	}
	(void)dup2(STDERR_FILENO, STDOUT_FILENO);
	if (strcmp(mode, "16k") == 0)
		kernel.page = 16384;
	if (strcmp(mode, "64k") == 0)
		kernel.page = 65536;
	atomic_store(&kernel.now, 1000000);
	p_free(p_malloc(1));
	h = eddy_heap();
	if (h == NULL)
		tap_bail("no heap");
	if (strcmp(mode, "limited") == 0 && h->reserved)
		return 3;
	test_alone();
	test_together();
	if (kernel.page == 0)
		test_all_back();
	return tap.failed != 0;
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *mode;
		const char *conf;
		const char *what;
	} runs[] = {
	    {"plain", "", "with default options"},
	    {"homes", "topology:2x1x1,lg_range:34",
		"two homes that take segments from each other"},
	    {"now", "dirty_decay_ms:0", "pages given back as they are freed"},
	    {"muzzy", "dirty_decay_ms:300,muzzy_decay_ms:500",
		"pages that the kernel may take"},
	    {"never", "dirty_decay_ms:-1,muzzy_decay_ms:-1", "no decay"},
	    {"limit", "", "chunks mapped one by one"},
	    {"cells", "rseq:false", "without restartable sequences"},
	    {"16k", "dirty_decay_ms:300", "OS pages of 16 KiB"},
	    {"64k", "dirty_decay_ms:300,muzzy_decay_ms:300",
		"OS pages of 64 KiB"},
	};

	(void)unsetenv("EDDY_SO"); /* the heap is linked in */
	tap_begin(argv);
	probe_small_pages();
	if (argc > 1)
		return run(argv[0], argv[1]);
	tap_guard(120);
	for (size_t i = 0; i < COUNT(runs); i++) {
		(void)setenv("EDDY_CONF", runs[i].conf, 1);
		tap_ok(probe_again(argv, runs[i].mode, runs[i].what), "%s",
		    runs[i].what);
	}
	return tap_end();
}
