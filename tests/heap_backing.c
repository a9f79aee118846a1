/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heap_backing.c - arenas of files from inside: zeros where they are asked for,
 * and whose the segments are.
 */
#include "probe.h"

#include "eddy/eddy.h"
#include "lib/ctl/stats.h"
#include "lib/heap/arena.h"
#include "lib/heap/backing.h"
#include "lib/heap/large.h"
#include "lib/heap/purge.h"
#include "lib/heap/segment.h"

static struct eddy_heap *h;

static struct eddy_arena *
create(size_t size, bool fill)
{
	uint32_t number;

	if (eddy_backing_create(h, EDDY_NO_NODE, NULL, size, fill, &number) !=
	    0)
		tap_bail("no arena");
	return eddy_arena_at(h, number);
}

static bool
is_zero(const char *p, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (p[i] != 0)
			return false;
	return true;
}

/* Memory that was written, freed, perhaps purged in part, is asked for anew. */
static bool
zeros(struct eddy_arena *a)
{
	static const size_t size[] = {32 * KIB, 100 * KIB, 1500 * KIB,
	    2048 * KIB, 3000 * KIB, 10000 * KIB, 32768 * KIB};
	bool held = true;

	for (size_t round = 0; round < 4; round++)
		for (size_t i = 0; i < COUNT(size); i++) {
			char *p = eddy_large_alloc(h, a, size[i], 1, true);

			if (p == NULL)
				return false;
			held &= is_zero(p, size[i]);
			memset(p, 0xee, size[i]);
			p_free(p);
			if (round == 2)
				(void)eddy_purge_arena(h, a);
		}
	return held;
}

static void
test_zeros(void)
{
	struct eddy_arena *a = create(256 * (size_t)MIB, false);

	tap_ok(a->backing.kind == EDDY_FILE_PUNCHED && zeros(a),
	    "zeros where the file's room can be given back");
	a = create(256 * (size_t)MIB, true);
	tap_ok(zeros(a), "zeros where a block has its room before");
	a = create(256 * (size_t)MIB, false);
	a->backing.kind = EDDY_FILE_KEPT;
	tap_ok(zeros(a), "zeros where the file keeps its room");
}

static uint32_t
segment_of(const void *p)
{
	return (uint32_t)(((uintptr_t)p - h->base) >> EDDY_LG_SEGMENT);
}

/* A segment that is empty again is its arena's all the same. */
static void
test_whose(void)
{
	struct eddy_arena *a = create(2 * EDDY_SEGMENT, false);
	struct eddy_arena *b = create(EDDY_SEGMENT + 1, false);
	struct eddy_arena *small = create(8 * EDDY_CHUNK + 1, false);
	const size_t giant = EDDY_SEGMENT + EDDY_CHUNK;
	uint32_t other;
	bool held = true;
	char *of_small;
	char *of_a;
	char *of_b;
	char *p[8];

	of_a = eddy_large_alloc(h, a, giant, 1, false);
	of_b = eddy_large_alloc(h, b, giant, 1, false);
	if (of_a == NULL || of_b == NULL)
		tap_bail("no giants");
	for (uint32_t i = 0; i < 2; i++) {
		struct eddy_segment *s = &h->segments[segment_of(of_a) + i];

		held &= eddy_load_relaxed(&s->tied) == a->number;
		s = &h->segments[segment_of(of_b) + i];
		held &= eddy_load_relaxed(&s->tied) == b->number;
	}
	held &= eddy_large_alloc(h, b, EDDY_SEGMENT, 1, false) == NULL &&
		eddy_large_alloc(h, small, 10 * EDDY_CHUNK, 1, false) == NULL;
	of_small = eddy_large_alloc(h, small, 9 * EDDY_CHUNK, 1, false);
	held &= of_small != NULL;
	tap_ok(
	    held, "giants lie in the file of their arena, as far as it goes");
	p_free(of_a);
	p_free(of_b);
	if (eddy_arena_add(h, EDDY_NO_NODE, &other) != 0)
		tap_bail("no arena");
	held = true;
	for (size_t i = 0; i < COUNT(p); i++) {
		p[i] = eddy_large_alloc(h,
		    i % 2 == 0 ? eddy_arena_at(h, other)
			       : eddy_arena_of_home(h, 0),
		    giant, 1, false);
		held &= p[i] != NULL && eddy_backing_of(h, p[i]) == NULL &&
			eddy_backing_of(h, p[i] + EDDY_SEGMENT) == NULL;
	}
	for (size_t i = 0; i < COUNT(p); i++)
		p_free(p[i]);
	tap_ok(held, "no other arena gets segments of a file");
	p_free(of_small);
	tap_ok(
	    eddy_large_alloc(h, small, 9 * EDDY_CHUNK, 1, false) == of_small &&
		eddy_large_alloc(h, a, giant, 1, false) == of_a &&
		eddy_large_alloc(h, b, giant, 1, false) == of_b,
	    "the arenas get them again");
}

/* Where other memory was before. */
static void
test_used_before(void)
{
	const size_t giant = 3 * EDDY_SEGMENT;
	char *p = p_malloc(giant);
	struct eddy_arena *a;
	struct eddy_stats st;
	char *q;

	for (size_t i = 0; i < giant; i += 16 * EDDY_CHUNK)
		memset(p + i, 1, 3 * PAGE);
	p_free(p);
	a = create(giant, false);
	q = eddy_large_alloc(h, a, giant, 1, true);
	tap_ok(q != NULL && segment_of(q) <= segment_of(p) + 2 &&
		   is_zero(q, 100 * EDDY_CHUNK),
	    "what other memory held there before is not seen");
	if (q != NULL)
		q[giant - 1] = 1;
	eddy_stats_read(h, &st);
	tap_ok(eddy_load_relaxed(&a->reclaim.backed) ==
		       (int64_t)(giant / EDDY_PAGE) &&
		   st.in_hand == 0,
	    "the numbers agree");
	p_free(q);
}

int
main(int argc, char **argv)
{
	(void)argc;
	tap_guard(120);
	/* The library is inside. */
	(void)unsetenv("EDDY_SO");
	tap_begin(argv);
	h = eddy_heap();
	test_used_before();
	test_zeros();
	test_whose();
	return tap_end();
}
