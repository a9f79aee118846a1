/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heap_segment.c - an arena's segments are found without a look at those of
 * others, for these cannot be read here: what looks at one dies.
 */
#include "probe.h"

#include <sys/mman.h>

#include "eddy/pool.h"
#include "lib/heap/arena.h"
#include "lib/heap/large.h"
#include "lib/heap/purge.h"
#include "lib/heap/reset.h"
#include "lib/heap/segment.h"
#include "lib/heap/warm.h"
#include "lib/os/os.h"

enum { N = 40, SIZE = 100 * KIB };

static struct eddy_heap *h;
static struct eddy_arena *arenas[N];
static char *blocks[N];
static struct eddy_pool *pool;

static uint32_t
segment_of(const void *p)
{
	return (uint32_t)(((uintptr_t)p - h->base) >> EDDY_LG_SEGMENT);
}

/* Those that an arena is said to have, up and down; 0: the two differ. */
static unsigned
n_segments(struct eddy_arena *a)
{
	uint32_t up[16];
	unsigned n = 0;

	for (uint32_t i = eddy_segment_from(a, 0);
	     i != EDDY_ID_NONE && n < COUNT(up);
	     i = eddy_segment_from(a, i + 1))
		up[n++] = i;
	for (uint32_t i = (uint32_t)eddy_segments_readable(), k = n;; k--) {
		i = eddy_segment_below(a, i);
		if (i == EDDY_ID_NONE)
			return k == 0 ? n : 0;
		if (k == 0 || up[k - 1] != i)
			return 0;
	}
}

static bool
has(struct eddy_arena *a, const void *p)
{
	return eddy_segment_from(a, segment_of(p)) == segment_of(p);
}

/* ------------------------------------------------------------------ */

static void
shut(void *array, size_t each, uint32_t from, uint32_t to)
{
	size_t page = eddy_os_page_size();
	uintptr_t lo = eddy_align_up((uintptr_t)array + each * from, page);
	uintptr_t hi = eddy_align_down((uintptr_t)array + each * to, page);

	if (lo < hi && mprotect((void *)lo, hi - lo, PROT_NONE) != 0)
		tap_bail("mprotect");
}

/* Descriptors and tags of all segments but one. */
static void
close_others(uint32_t segment)
{
	const struct {
		uint32_t from, to;
	} part[] = {
	    {0, segment}, {segment + 1, (uint32_t)eddy_segments_readable()}};

	for (size_t i = 0; i < COUNT(part); i++) {
		shut(h->segments, sizeof(*h->segments), part[i].from,
		    part[i].to);
		shut(h->chunks, EDDY_SEGMENT_CHUNKS * sizeof(*h->chunks),
		    part[i].from, part[i].to);
		shut((void *)(uintptr_t)h->tags,
		    EDDY_SEGMENT / EDDY_PAGE * sizeof(*h->tags), part[i].from,
		    part[i].to);
	}
}

/* Whether it lives on, in a child, where only the segment of p can be read. */
static bool
sees_none_else(bool (*fn)(struct eddy_arena *a), struct eddy_arena *a, void *p)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		close_others(segment_of(p));
		_exit(fn(a) ? 0 : 1);
	}
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
	       WEXITSTATUS(status) == 0;
}

static bool
looks_at_all(struct eddy_arena *a)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < eddy_segments_readable(); i++)
		sum += atomic_load(&h->segments[i].map.owner) == a->number;
	return sum != 0;
}

static bool
resets(struct eddy_arena *a)
{
	return eddy_reset(h, a) == 0;
}

static bool
purges(struct eddy_arena *a)
{
	return eddy_reset(h, a) == 0 && eddy_purge_arena(h, a) >= SIZE;
}

static bool
ends(struct eddy_arena *a)
{
	return eddy_reset_destroy(h, a) == 0;
}

static bool
counts(struct eddy_arena *a)
{
	return eddy_segments_dirty(h, a) >= (int64_t)(SIZE / EDDY_PAGE) &&
	       eddy_warm_chunks(h, a) == 0;
}

static bool
shrinks(struct eddy_arena *a)
{
	(void)a;
	return eddy_pool_shrink(pool, NULL, NULL) != 0;
}

static bool
pool_ends(struct eddy_arena *a)
{
	(void)a;
	eddy_pool_destroy(pool);
	return true;
}

static void
others_are_not_looked_at(void)
{
	struct eddy_arena *a = arenas[N / 2];
	char *p = blocks[N / 2];
	void *object = eddy_pool_alloc(pool);

	tap_ok(!sees_none_else(looks_at_all, a, p),
	    "who looks at all segments dies in this test");
	tap_ok(sees_none_else(resets, a, p),
	    "a reset looks at the arena's segments alone");
	tap_ok(sees_none_else(purges, a, p), "so does a purge");
	tap_ok(sees_none_else(ends, a, p), "so does the end of an arena");
	tap_ok(sees_none_else(counts, a, p), "so does who counts its pages");
	tap_ok(sees_none_else(pool_ends, NULL, object),
	    "so does the end of a pool");
	eddy_pool_free(pool, object);
	tap_ok(sees_none_else(shrinks, NULL, object),
	    "so does a shrink of a pool");
}

static void
they_change_hands(void)
{
	struct eddy_arena *a = arenas[3];
	struct eddy_arena *b = arenas[5];
	char *giant = eddy_large_alloc(h, a, 3 * EDDY_SEGMENT, 1, false);
	char *next;
	bool all;

	if (giant == NULL) {
		tap_skip("segments change hands", "no 3 GiB of addresses");
		return;
	}
	tap_ok(n_segments(a) == 4 && has(a, giant) &&
		   has(a, giant + 2 * EDDY_SEGMENT) && has(a, blocks[3]),
	    "an arena has the segments of its blocks");
	p_free(giant);
	tap_ok(has(a, giant), "what nobody has since is still found there");
	next = eddy_large_alloc(h, b, 2 * EDDY_SEGMENT, 1, false);
	all = next != NULL;
	for (size_t i = 0; all && i < 2; i++)
		all &= has(b, next + i * EDDY_SEGMENT) &&
		       !has(a, next + i * EDDY_SEGMENT);
	tap_ok(all && next == giant && has(a, giant + 2 * EDDY_SEGMENT),
	    "another arena that takes it has it alone");
	tap_ok(
	    eddy_reset(h, b) == 0 &&
		eddy_large_alloc(h, a, 2 * EDDY_SEGMENT, 1, false) == giant &&
		n_segments(a) == 4 && n_segments(b) == 1,
	    "and it goes back the same way");
	tap_ok(eddy_reset(h, a) == 0 && eddy_reset(h, b) == 0,
	    "all of it is freed by a reset");
}

int
main(int argc, char **argv)
{
	struct eddy_pool_options o = EDDY_POOL_OPTIONS;

	(void)argc;
	tap_guard(120);
	/* The library is inside. */
	(void)unsetenv("EDDY_SO");
	tap_begin(argv);
	h = eddy_heap();
	o.object_size = 4096;
	for (unsigned i = 0; i < N; i++) {
		uint32_t number;

		/* The pool's segment lies among them. */
		if (i == N / 2 && (eddy_pool_create(&o, &pool) != 0 ||
				      eddy_pool_alloc(pool) == NULL))
			tap_bail("no pool");
		if (eddy_arena_add(h, EDDY_NO_NODE, &number) != 0)
			tap_bail("no arena");
		arenas[i] = eddy_arena_at(h, number);
		blocks[i] = eddy_large_alloc(h, arenas[i], SIZE, 1, false);
		if (blocks[i] == NULL)
			tap_bail("no block");
		memset(blocks[i], 1, SIZE);
	}
	others_are_not_looked_at();
	they_change_hands();
	return tap_end();
}
