/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heap_decay.c - steps of housekeeping, each on an arena of its own: what is
 * given back, when, in which order, how fast, and what the kernel's answers do
 * to that.  The clock is the test's.
 */
#include "heap_inside.h"

#include "eddy/eddy.h"
#include "lib/heap/large.h"

enum {
	/* Arenas that programs create are one part of 64. */
	PART = EDDY_HOME_NONE,
	PARTS = 64,
	MANY = 4096,
};

static struct eddy_heap *h;
static struct eddy_arena *a; /* the test's own */
static struct call calls[MANY];

static uint64_t
now(void)
{
	return atomic_load(&kernel.now);
}

static void
pass(uint64_t ms)
{
	atomic_fetch_add(&kernel.now, ms);
}

/* A new arena; those of earlier tests have no part in it. */
static void
begin(int64_t dirty_ms, int64_t muzzy_ms)
{
	int node = (int)eddy_node_next(h->places.has_memory, 0);
	unsigned number;

	if (a != NULL) {
		(void)eddy_purge_arena(h, a);
		eddy_reclaim_decay(h, a, -1, -1);
	}
	if (eddy_arena_create(node, &number) != 0)
		tap_bail("eddy_arena_create");
	a = eddy_arena_at(h, number);
	eddy_reclaim_decay(h, a, dirty_ms, muzzy_ms);
	h->opts.purge_rate = 0;
	atomic_store(&h->paid_until, 0);
	atomic_store(&kernel.answer, GIVES);
	kernel.stuck = kernel.stuck_end = NULL;
	kernel.log = NULL;
	pass(1000000);
}

static void *
take(size_t size)
{
	void *p = eddy_arena_malloc(a->number, size);

	if (p == NULL)
		tap_bail("no memory");
	return p;
}

static void
watch_calls(void)
{
	kernel.log = calls;
	kernel.max_log = MANY;
	kernel.n_log = 0;
}

static size_t
dirty(void)
{
	return (size_t)eddy_reclaim_dirty(&a->reclaim) * EDDY_PAGE;
}

static size_t
muzzy(void)
{
	return (size_t)atomic_load(&a->reclaim.muzzy) * EDDY_PAGE;
}

static uint64_t due_at; /* the next step, as the last one said */

static uint64_t
step(size_t most)
{
	uint64_t due = eddy_reclaim_step(h, PART, PARTS, now(), most);

	due_at = due == EDDY_NEVER ? UINT64_MAX : now() + due;
	return due;
}

/* So many steps of a thread that sleeps as long as it is told; the clock stops
 * at `until`.  Returns how many were made. */
static unsigned
steps_until(uint64_t until, unsigned max)
{
	unsigned n = 0;

	if (due_at < now() || atomic_load(&a->reclaim.due) == 0)
		due_at = now();
	while (due_at <= until && n < max) {
		atomic_store(&kernel.now, due_at);
		(void)step(EDDY_RECLAIM_BATCH);
		n++;
	}
	atomic_store(&kernel.now, until);
	return n;
}

static bool
near(double is, double want, double by)
{
	return is - want <= by && want - is <= by;
}

static double
stays(double x)
{
	return x >= 1 ? 0 : 1 - x * x * x * (6 * x * x - 15 * x + 10);
}

/* ------------------------------------------------------------------ */

/* What is there 20 times in the decay time, as shares of `peak`. */
static bool
falls(uint64_t start, uint64_t ms, double peak, size_t (*what)(void))
{
	bool held = true;
	unsigned n = 0;

	for (unsigned i = 1; i <= 20; i++) {
		double x = i / 20.0;
		double is;

		n += steps_until(start + ms * i / 20, 1000);
		is = (double)what() / peak;
		if (near(is, stays(x), 0.02))
			continue;
		held = false;
		tap_diag("%u%% of %llu ms: %.3f, not %.3f", i * 5,
		    (unsigned long long)ms, is, stays(x));
	}
	if (n > 260) {
		tap_diag("%u steps", n);
		return false;
	}
	return held;
}

static void
test_curve(void)
{
	static const uint64_t ms[] = {1000, 10000, 3333};
	bool held = true;
	bool ends = true;

	for (size_t i = 0; i < COUNT(ms); i++) {
		begin((int64_t)ms[i], 0);
		free(take(256 * MIB));
		held &= dirty() == 256 * MIB;
		held &= falls(now(), ms[i], 256 * MIB, dirty);
		steps_until(now() + ms[i] / 10 + 50, 1000);
		ends &= dirty() == 0;
		/* The last step may have forecast one more. */
		ends &= steps_until(now() + 2 * ms[i], 1000) <= 1 &&
			due_at == UINT64_MAX;
	}
	tap_ok(held, "dirty pages after a peak follow the curve");
	tap_ok(ends, "then all is gone, and there is nothing to be done");
	tap_ok(inside_agree(h, "after the curve"), "the numbers agree");
}

static void
test_times(void)
{
	begin(-1, 0);
	free(take(64 * MIB));
	steps_until(now() + 1000000, 1000);
	tap_ok(dirty() == 64 * MIB, "-1: nothing is ever given back");
	eddy_reclaim_decay(h, a, 500, 0);
	steps_until(now() + 600, 1000);
	tap_ok(dirty() == 0, "until another time is set");
	begin(0, 0);
	free(take(64 * MIB));
	free(take(100 * KIB));
	tap_ok(dirty() == 0 && inside_agree(h, "at once"),
	    "0: given back when it is freed");
	begin(10000, 0);
	free(take(64 * MIB));
	steps_until(now() + 1000, 1000);
	eddy_reclaim_decay(h, a, 0, 0);
	steps_until(now() + 10, 1000);
	tap_ok(dirty() == 0, "what is there when 0 is set goes with a step");
}

/* ------------------------------------------------------------------ */

static void
test_muzzy(void)
{
	size_t size = 128 * MIB;
	uint64_t start;
	void *p;

	begin(1000, 2000);
	free(take(size));
	start = now();
	watch_calls();
	steps_until(start + 1100, 1000);
	tap_ok(dirty() == 0 && calls[0].lazy && muzzy() > size * 3 / 4,
	    "dirty pages are left to the kernel first");
	steps_until(start + 3200, 1000);
	tap_ok(muzzy() == 0 && !calls[kernel.n_log - 1].lazy,
	    "and given back when they have been muzzy as long as they may");
	tap_ok(inside_agree(h, "muzzy"), "the numbers agree");

	begin(1000, -1);
	free(take(size));
	steps_until(now() + 100000, 1000);
	tap_ok(dirty() == 0 && muzzy() == size, "-1: they stay muzzy");
	p = take(size / 2);
	tap_ok(muzzy() == size / 2 && inside_agree(h, "half is used"),
	    "what is used again is not muzzy");
	free(p);
	free(take(size));
	tap_ok(muzzy() == 0 && dirty() == size && inside_agree(h, "all"),
	    "nor when it is free again");

	begin(0, 1000);
	free(take(size));
	tap_ok(dirty() == 0 && inside_agree(h, "at once, and muzzy"),
	    "dirty_decay_ms 0 leaves nothing to be muzzy");

	begin(1000, 1000);
	free(take(size));
	atomic_store(&kernel.answer, REFUSES);
	steps_until(now() + 5000, 1000);
	tap_ok(muzzy() == 0 && dirty() == size,
	    "what the kernel does not take stays dirty");
}

static void
test_kinds(void)
{
	struct eddy_purge p = {.kind = EDDY_PURGE_LAZY, .want = SIZE_MAX};
	void *low;

	begin(-1, -1);
	p.arena = a->number;
	low = take(8 * MIB);
	free(take(16 * MIB));
	eddy_purge_some(h, &p);
	free(low);
	tap_ok(muzzy() == 16 * MIB && dirty() == 8 * MIB,
	    "dirty pages can be made muzzy");
	p = (struct eddy_purge){
	    .kind = EDDY_PURGE_MUZZY, .arena = a->number, .want = SIZE_MAX};
	eddy_purge_some(h, &p);
	tap_ok(muzzy() == 0 && dirty() == 8 * MIB && p.done == 16 * MIB,
	    "muzzy ones given back, and only they");
	free(take(16 * MIB));
	p = (struct eddy_purge){
	    .kind = EDDY_PURGE_LAZY, .arena = a->number, .want = 4 * MIB};
	eddy_purge_some(h, &p);
	p = (struct eddy_purge){
	    .kind = EDDY_PURGE_DIRTY, .arena = a->number, .want = SIZE_MAX};
	eddy_purge_some(h, &p);
	tap_ok(muzzy() == 4 * MIB && dirty() == 0,
	    "dirty ones given back, and only they");
	free(take(16 * MIB));
	p = (struct eddy_purge){
	    .kind = EDDY_PURGE_LAZY, .arena = a->number, .want = 4 * MIB};
	eddy_purge_some(h, &p);
	(void)eddy_purge_arena(h, a);
	tap_ok(muzzy() == 0 && dirty() == 0 && inside_agree(h, "kinds"),
	    "or all of them");
}

static void
purge_all_else(void)
{
	(void)eddy_purge_arena(h, a);
}

/* What a purge has seen may be clean by the time that it has it in hand. */
static void
test_stale(void)
{
	static const size_t sizes[] = {16 * KIB, 4 * MIB};
	bool held = true;

	for (size_t i = 0; i < COUNT(sizes); i++) {
		static void *p[16];
		struct eddy_purge purge = {
		    .kind = EDDY_PURGE_LAZY, .want = SIZE_MAX};

		begin(-1, -1);
		purge.arena = a->number;
		for (unsigned k = 0; k < COUNT(p); k++)
			p[k] = take(sizes[i]);
		for (unsigned k = 0; k < COUNT(p); k += 2)
			free(p[k]);
		kernel.meanwhile = purge_all_else;
		eddy_purge_some(h, &purge);
		held &= inside_agree(h, "stale") && muzzy() == sizes[i];
		for (unsigned k = 1; k < COUNT(p); k += 2)
			free(p[k]);
		(void)eddy_purge_arena(h, a);
		held &= inside_agree(h, "stale, purged") && muzzy() == 0;
	}
	tap_ok(held, "what another has cleaned meanwhile is not muzzy");
}

/* ------------------------------------------------------------------ */

/* Chunks in every state: cut, with long and short free runs; whole. */
static void
lay_mixture(void *kept[], unsigned *n_kept)
{
	static void *p[512];
	unsigned n = 0;

	for (unsigned i = 0; i < 8; i++)
		p[n++] = take(4 * MIB);
	for (unsigned i = 0; i < 32; i++) {
		p[n++] = take(200 * KIB);
		kept[(*n_kept)++] = take(16 * KIB);
		p[n++] = take(20 * KIB);
		kept[(*n_kept)++] = take(16 * KIB);
		p[n++] = take(150 * KIB);
	}
	for (unsigned i = 0; i < 8; i++)
		p[n++] = take(6 * MIB);
	while (n > 0)
		free(p[--n]);
}

enum { WHOLE, LONG, SHORT };

static int
kind_of(const struct call *c)
{
	return c->size % EDDY_CHUNK == 0 && (uintptr_t)c->p % EDDY_CHUNK == 0
		   ? WHOLE
	       : c->size >= 64 * KIB ? LONG
				     : SHORT;
}

static void
test_order(void)
{
	struct eddy_purge p = {.kind = EDDY_PURGE_DIRTY, .want = SIZE_MAX};
	static void *kept[128];
	unsigned n_kept = 0;
	unsigned seen[3] = {0, 0, 0};
	bool ordered = true;
	bool high_first = true;
	bool small = true;

	begin(1000, 0);
	p.arena = a->number;
	lay_mixture(kept, &n_kept);
	watch_calls();
	eddy_purge_some(h, &p);
	for (size_t i = 0; i < kernel.n_log; i++) {
		struct call *c = &calls[i];

		seen[kind_of(c)]++;
		small &= kind_of(c) == WHOLE ? c->size <= 64 * EDDY_CHUNK
					     : c->size <= 64 * EDDY_PAGE;
		if (i == 0)
			continue;
		ordered &= kind_of(c) >= kind_of(c - 1);
		/* Dropped once more after the look at it. */
		if (kind_of(c) == WHOLE && c->p == (c - 1)->p)
			continue;
		if (kind_of(c) == kind_of(c - 1))
			high_first &= c->p < (c - 1)->p;
	}
	tap_diag("%u whole, %u long, %u short", seen[WHOLE], seen[LONG],
	    seen[SHORT]);
	tap_ok(ordered && seen[WHOLE] != 0 && seen[LONG] > 8 && seen[SHORT] > 8,
	    "whole chunks go first, then runs of 64 KiB, then the rest");
	tap_ok(high_first, "the highest addresses first");
	tap_ok(small, "in hand: 64 pages, or 64 chunks, at most");
	tap_ok(p.cursor == 0 && dirty() == 0 && inside_agree(h, "ordered"),
	    "until nothing is left");
	while (n_kept > 0)
		free(kept[--n_kept]);
}

/* No whole chunk is free. */
static void
test_runs_alone(void)
{
	static void *p[40];
	static void *kept[40];

	begin(1000, 0);
	for (unsigned i = 0; i < COUNT(p); i++) {
		p[i] = take(100 * KIB);
		kept[i] = take(16 * KIB);
	}
	for (unsigned i = 0; i < COUNT(p); i++)
		free(p[i]);
	(void)eddy_purge_arena(h, a);
	tap_ok(dirty() == 0 && inside_agree(h, "runs alone"),
	    "runs in chunks that are in use are given back");
	for (unsigned i = 0; i < COUNT(p); i++)
		free(kept[i]);
}

/* In many small portions the order is the same. */
static void
test_portions(void)
{
	static void *kept[128];
	unsigned n_kept = 0;
	struct eddy_purge p = {.kind = EDDY_PURGE_ALL};
	unsigned n = 0;
	bool modest = true;
	bool ordered = true;

	begin(1000, 0);
	p.arena = a->number;
	lay_mixture(kept, &n_kept);
	watch_calls();
	do {
		p.done = 0;
		p.want = 100 * KIB;
		eddy_purge_some(h, &p);
		modest &= p.done <= EDDY_CHUNK;
	} while (p.cursor != 0 && ++n < 2000);
	for (size_t i = 1; i < kernel.n_log; i++)
		ordered &= kind_of(&calls[i]) >= kind_of(&calls[i - 1]);
	tap_ok(n < 2000 && dirty() == 0 && ordered,
	    "portion by portion, in the same order");
	tap_ok(modest, "a portion is a chunk more than was asked for at most");
	while (n_kept > 0)
		free(kept[--n_kept]);
}

/* Larger OS pages: what is not a whole one of them is left alone. */
static void
test_os_pages(void)
{
	static const size_t sizes[] = {16384, 65536};
	bool aligned = true;
	bool agree = true;

	for (size_t i = 0; i < COUNT(sizes); i++) {
		static void *kept[128];
		unsigned n_kept = 0;
		size_t left;

		begin(1000, 0);
		lay_mixture(kept, &n_kept);
		kernel.page = sizes[i];
		watch_calls();
		(void)eddy_purge_arena(h, a);
		aligned &= kernel.n_log > 20;
		for (size_t k = 0; k < kernel.n_log; k++)
			aligned &= (uintptr_t)calls[k].p % sizes[i] == 0 &&
				   calls[k].size % sizes[i] == 0;
		kernel.page = 0;
		agree &= inside_agree(h, "large pages");
		left = dirty();
		(void)eddy_purge_arena(h, a);
		agree &= inside_agree(h, "small pages") && dirty() == 0;
		tap_diag("%zu: %zu KiB were left", sizes[i], left / KIB);
		agree &= left >= 32 * 4 * KIB &&
			 left <= 110 * 2 * (sizes[i] - EDDY_PAGE);
		while (n_kept > 0)
			free(kept[--n_kept]);
	}
	tap_ok(aligned, "ranges are rounded inwards to the OS's pages");
	tap_ok(agree, "and what was cut off stays dirty");
}

/* ------------------------------------------------------------------ */

static void
test_most(void)
{
	bool held = true;
	size_t before;

	begin(1, 0);
	for (unsigned i = 0; i < 64; i++)
		free(take((1 + i % 3) * 3 * MIB));
	free(take(64 * MIB));
	pass(10);
	(void)step(0);
	pass(10);
	while (dirty() != 0) {
		before = dirty();
		if (step(5 * MIB) == EDDY_NEVER)
			break;
		held &= before - dirty() <= 5 * MIB + EDDY_CHUNK;
		pass(10);
	}
	tap_ok(held && dirty() == 0, "a step gives back what it may at most");
}

static bool
keeps_rate(size_t option, size_t rate, size_t size, unsigned seconds)
{
	uint64_t start;
	size_t most = 0;
	unsigned n = 0;
	size_t back;
	size_t want;

	begin(1, 0);
	h->opts.purge_rate = option;
	free(take(size));
	start = now();
	for (unsigned s = 1; s <= seconds; s++) {
		n += steps_until(start + s * 1000, 2000);
		back = size - dirty();
		/* A second's worth is saved up before, a chunk at once. */
		if (back > rate * (s + 1) + 2 * EDDY_CHUNK)
			most = back;
	}
	back = size - dirty();
	want = rate * seconds < size ? rate * seconds : size;
	if (most == 0 && back + 2 * EDDY_CHUNK >= want && n < 110 * seconds)
		return true;
	tap_diag("%zu B/s: %zu B in %u s, %u steps", rate, back, seconds, n);
	return false;
}

static void
test_rate(void)
{
	static const size_t rates[] = {64 * MIB, 3 * MIB, 200000, 1000};
	static const unsigned seconds[] = {4, 10, 30, 10000};

	for (size_t i = 0; i < COUNT(rates); i++)
		tap_ok(keeps_rate(rates[i], rates[i], 512 * MIB, seconds[i]),
		    "%zu bytes a second", rates[i]);
	tap_ok(keeps_rate(1, 1000, 64 * MIB, 10000), "1 is as much as 1,000");
	tap_ok(keeps_rate((size_t)1 << 60, (size_t)1 << 60, 512 * MIB, 1),
	    "any rate");
}

static void
test_floor(void)
{
	void *p;

	begin(1000, 0);
	atomic_store(&a->reclaim.floor, 64 * MIB / EDDY_PAGE);
	p = take(16 * MIB);
	free(take(256 * MIB));
	steps_until(now() + 3000, 1000);
	tap_ok(dirty() + 16 * MIB == 64 * MIB && step(SIZE_MAX) == EDDY_NEVER,
	    "decay leaves the floor, what is in use included");
	free(p);
	steps_until(now() + 3000, 1000);
	tap_ok(dirty() == 64 * MIB, "in use or not");
	atomic_store(&a->reclaim.floor, 0);
	eddy_reclaim_call(h, a);
	steps_until(now() + 3000, 1000);
	tap_ok(dirty() == 0, "without a floor it goes");
}

/* ------------------------------------------------------------------ */

static bool
is_zero(const char *p, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (p[i] != 0)
			return false;
	return true;
}

static void
test_refusal(enum answer answer, const char *what)
{
	size_t size = 32 * MIB;
	unsigned long n;
	char *p;

	begin(1000, 0);
	p = take(size);
	memset(p, 7, size);
	free(p);
	atomic_store(&kernel.answer, (int)answer);
	n = atomic_load(&kernel.n_calls);
	steps_until(now() + 2000, 1000);
	n = atomic_load(&kernel.n_calls) - n;
	tap_ok(dirty() == size && inside_agree(h, what),
	    "%s: the pages stay dirty", what);
	tap_ok(n <= 100, "%s: %lu calls in two seconds", what, n);
	p = eddy_large_alloc(h, a, size, 1, true);
	tap_ok(
	    p != NULL && is_zero(p, size), "%s: calloc's zeros are true", what);
	free(p);
	atomic_store(&kernel.answer, GIVES);
	steps_until(now() + 130000, 1000);
	tap_ok(dirty() == 0, "%s: later the kernel is asked again", what);
}

/* Part of the memory is locked: the rest is given back all the same. */
static void
test_stuck(void)
{
	static void *p[256];
	static void *kept[256];
	char *big;
	size_t locked = 0;

	begin(1000, 0);
	for (unsigned i = 0; i < COUNT(p); i++) {
		p[i] = take(16 * KIB);
		kept[i] = take(16 * KIB);
	}
	/* The upper half of the runs is locked: they are asked for first. */
	kernel.stuck = p[COUNT(p) / 2];
	kernel.stuck_end = (char *)p[COUNT(p) - 1] + 1;
	for (unsigned i = 0; i < COUNT(p); i++) {
		locked += (char *)p[i] >= kernel.stuck ? 16 * KIB : 0;
		free(p[i]);
	}
	steps_until(now() + 3000, 10000);
	if (!tap_ok(dirty() <= locked + 128 * KIB,
		"locked runs do not keep the rest from being given back"))
		tap_diag("%zu KiB are left, %zu are locked", dirty() / KIB,
		    locked / KIB);
	tap_ok(inside_agree(h, "stuck"), "the numbers agree");
	for (unsigned i = 0; i < COUNT(kept); i++)
		free(kept[i]);

	begin(1000, 0);
	big = take(128 * MIB);
	free(big);
	kernel.stuck = big + 77 * MIB;
	kernel.stuck_end = kernel.stuck + EDDY_PAGE;
	(void)eddy_purge_arena(h, a);
	if (!tap_ok(dirty() == EDDY_CHUNK,
		"a locked page keeps the chunk that it is in"))
		tap_diag("%zu KiB are left", dirty() / KIB);
	kernel.stuck = kernel.stuck_end = NULL;
}

/* ------------------------------------------------------------------ */

/* A thread died, or stands, with free chunks in its hand. */
static void
test_hand(void)
{
	unsigned n_chunks = 128;
	uint32_t chunk;
	unsigned n;

	begin(1000, 0);
	free(take(n_chunks * EDDY_CHUNK));
	if (!eddy_chunks_claim(h, a, n_chunks, 1, EDDY_ONLY_DIRTY, &chunk))
		tap_bail("no dirty chunks");
	n = steps_until(now() + 500, 5000);
	n += steps_until(now() + 1500, 5000);
	if (!tap_ok(n < 500,
		"what is in a hand that never opens is not asked for for ever"))
		tap_diag("%u steps in two seconds", n);
	/* It was only slow. */
	eddy_chunks_put(chunk, n_chunks);
	eddy_reclaim_call(h, a);
	steps_until(now() + 3000, 5000);
	tap_ok(dirty() == 0 && inside_agree(h, "from the hand"),
	    "when it opens late, all is given back all the same");
}

/* Up to the next look into wrong numbers, after which something happens. */
static void
look(void (*meanwhile)(void))
{
	uint64_t end = now() + 10000;

	kernel.after_walk = meanwhile;
	while (kernel.after_walk != NULL && now() < end) {
		if (due_at == UINT64_MAX)
			eddy_reclaim_call(h, a);
		steps_until(now() + 100, 1000);
	}
	if (kernel.after_walk != NULL)
		tap_bail("nobody looks into wrong numbers");
}

static void
nothing(void)
{
}

/* A thread died between a bit and its number. */
static void
test_mend(void)
{
	begin(1000, 0);
	free(take(64 * MIB));
	atomic_fetch_add(&a->reclaim.backed, 5000);
	steps_until(now() + 5000, 5000);
	tap_ok(
	    inside_agree(h, "mended"), "a number that is too large is mended");

	/* It was not dead, but slow. */
	begin(1000, 0);
	free(take(64 * MIB));
	atomic_fetch_add(&a->reclaim.backed, 5000);
	look(nothing);
	atomic_fetch_sub(&a->reclaim.backed, 5000);
	steps_until(now() + 5000, 5000);
	eddy_reclaim_call(h, a);
	steps_until(now() + 5000, 5000);
	tap_ok(inside_agree(h, "slow"), "once it was seen to be so twice");
}

static void *late;

static void
free_late(void)
{
	free(late);
}

static void
use_late(void)
{
	late = take(24 * MIB);
}

/* What is freed or used while a step looks is not taken for an error. */
static void
test_meanwhile(void)
{
	begin(1000, 0);
	late = take(32 * MIB);
	free(take(16 * MIB));
	atomic_fetch_add(&a->reclaim.backed, 5000);
	look(free_late);
	look(use_late);
	look(free_late);
	look(use_late);
	free(late);
	steps_until(now() + 3000, 1000);
	eddy_reclaim_call(h, a);
	steps_until(now() + 9000, 1000);
	tap_ok(inside_agree(h, "meanwhile") && dirty() == 0,
	    "what is freed or used while a step looks is not forgotten");
}

/* Where a purge has stopped it goes on, and then begins again. */
static void
test_cursor(void)
{
	static void *kept[128];
	unsigned n_kept = 0;
	uint64_t start;

	begin(1000, 0);
	free(take(4 * MIB));
	lay_mixture(kept, &n_kept);
	start = now();
	steps_until(start + 990, 1000);
	/* As after a purge that has come to the last runs. */
	atomic_store(&a->reclaim.cursor, (uint64_t)2 << 32 | 1);
	steps_until(start + 9000, 5000);
	if (!tap_ok(dirty() == 0 && inside_agree(h, "cursor"),
		"a purge begins again at the top"))
		tap_diag("%zu KiB are left", dirty() / KIB);
	while (n_kept > 0)
		free(kept[--n_kept]);
}

/* ------------------------------------------------------------------ */

/* At work, then idle: sleeps become longer, but not for ever. */
static void
test_work(void)
{
	size_t size = 128 * MIB;
	uint64_t end;
	uint64_t start;
	unsigned n = 0;
	unsigned long n_calls;

	begin(1000, 0);
	n_calls = atomic_load(&kernel.n_calls);
	end = now() + 60000;
	while (now() < end) {
		free(take(size));
		n += steps_until(now() + 1, 100);
	}
	tap_ok(atomic_load(&kernel.n_calls) == n_calls,
	    "what is used again and again is not given back");
	tap_ok(n < 40, "an arena at work is looked at %u times in 60 s", n);
	start = now();
	while (dirty() > size / 100 && now() < start + 60000)
		steps_until(now() + 100, 100);
	tap_diag("idle after work, it is gone after %llu ms of %d",
	    (unsigned long long)(now() - start), 1000);
	tap_ok(
	    now() - start <= 18 * 1000, "an arena that stops to work decays");
	steps_until(now() + 20000, 1000);
	tap_ok(dirty() == 0 && step(SIZE_MAX) == EDDY_NEVER,
	    "and is let alone then");
}

/* Taken and left between two looks: as old as that, no older. */
static void
test_burst(void)
{
	size_t size = 64 * MIB;
	uint64_t start;
	void *p;
	bool held;

	begin(10000, 0);
	p = take(128 * KIB);
	(void)step(SIZE_MAX);
	pass(10);
	start = now();
	free(take(size));
	(void)step(SIZE_MAX);
	held = dirty() >= size;
	steps_until(start + 5000, 1000);
	tap_ok(held && near((double)dirty() / (double)size, stays(0.5), 0.03),
	    "a burst within an epoch decays, too");
	steps_until(start + 11000, 1000);
	tap_ok(dirty() == 0, "until it is gone");
	free(p);
}

static void
test_clock(void)
{
	begin(1000, 0);
	free(take(64 * MIB));
	steps_until(now() + 300, 1000);
	atomic_fetch_sub(&kernel.now, 900000);
	eddy_reclaim_call(h, a);
	steps_until(now() + 2500, 1000);
	tap_ok(dirty() == 0, "a clock that goes back");
	begin(1000, 0);
	free(take(64 * MIB));
	(void)step(SIZE_MAX);
	pass((uint64_t)1 << 40);
	steps_until(now() + 100, 1000);
	tap_ok(dirty() == 0, "a clock that jumps forward");
}

/* Who frees much calls for a step; who frees little does not. */
static void
test_wakes(void)
{
	static void *p[64];
	unsigned long wakes;

	begin(10000, 0);
	for (unsigned i = 0; i < COUNT(p); i++)
		p[i] = take(2 * MIB);
	(void)step(SIZE_MAX);
	wakes = atomic_load(&kernel.wakes);
	free(take(100 * KIB));
	tap_ok(atomic_load(&kernel.wakes) == wakes,
	    "little free memory calls for nobody");
	for (unsigned i = 0; i < COUNT(p); i++)
		free(p[i]);
	tap_ok(atomic_load(&kernel.wakes) == wakes + 1,
	    "much calls for a step, once");
	tap_ok(step(SIZE_MAX) != EDDY_NEVER, "which forecasts the next");
}

int
main(int argc, char **argv)
{
	(void)argc;
	(void)unsetenv("EDDY_SO"); /* the heap is linked in */
	(void)setenv("EDDY_CONF", "", 1);
	tap_begin(argv);
	probe_small_pages();
	tap_guard(120);
	atomic_store(&kernel.now, 1000000);
	atomic_store(&kernel.served, true);
	p_free(p_malloc(1));
	h = eddy_heap();
	if (h == NULL)
		tap_bail("no heap");
	if (!h->reserved)
		tap_skip_all("no range of addresses");
	test_curve();
	test_times();
	test_muzzy();
	test_kinds();
	test_stale();
	test_order();
	test_runs_alone();
	test_portions();
	test_os_pages();
	test_most();
	test_rate();
	test_floor();
	test_refusal(REFUSES, "refused");
	test_refusal(LIES, "a lie");
	test_stuck();
	test_hand();
	test_mend();
	test_meanwhile();
	test_cursor();
	test_work();
	test_burst();
	test_clock();
	test_wakes();
	return tap_end();
}
