/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * realloc.c - the same block, another size: where it is, by moving its pages,
 * or by copying.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/front/front.h"
#include "lib/heap/arena.h"
#include "lib/heap/large.h"
#include "lib/heap/pagemap.h"
#include "lib/os/fatal.h"

/* What a request of this size would be rounded to. */
static size_t
real_size(const struct eddy_heap *h, size_t size)
{
	if (size <= EDDY_SMALL_MAX)
		return eddy_row_size(eddy_size_rows[(size + 7) / 8]);
	return eddy_large_size(size, !h->opts.disable_large_size_classes);
}

/* A request of 0 for a block that exists. */
static void *
resize_to_nothing(struct eddy_heap *h, void *p)
{
	if (h->opts.zero_realloc == EDDY_ZERO_REALLOC_ABORT)
		eddy_fatal("realloc to size 0", p);
	eddy_free(p);
	return NULL;
}

/* A block that p may move to: from its arena, if the program created that. */
static void *
another(struct eddy_heap *h, const void *p, size_t size)
{
	struct eddy_arena *a = eddy_arena_of(h, p);
	void *q;

	if (a == NULL || a->home != EDDY_HOME_NONE)
		return eddy_malloc(size);
	q = eddy_alloc_in(a, size, 1);
	return q != NULL ? q : eddy_no_memory();
}

static void *
move(struct eddy_heap *h, void *p, size_t old, size_t size)
{
	void *q = another(h, p, size);
	enum eddy_move moved = EDDY_NOT_MOVED;

	/* Options that fill will fill the old block: its pages stay. */
	if (q != NULL && size > old && h->cached)
		moved = eddy_large_move(h, p, q, old);
	if (moved == EDDY_LOST)
		q = another(h, p, size);
	if (q == NULL)
		return NULL;
	if (moved != EDDY_MOVED)
		memcpy(q, p, size < old ? size : old);
	eddy_free(p);
	return q;
}

/*
 * Whether a small block that grows or shrinks keeps its class, as most do.
 * Not whether p is the start of one: that is found out when it is freed.
 */
static bool
stays(const struct eddy_heap *h, uint32_t tag, size_t size)
{
	return h->cached && eddy_tag_kind(tag) == EDDY_TAG_SLAB && size != 0 &&
	       size <= EDDY_SMALL_MAX &&
	       eddy_size_rows[(size + 7) / 8] == eddy_tag_row(tag);
}

EDDY_EXPORT void *
realloc(void *p, size_t size)
{
	struct eddy_heap *h = eddy_heap();
	size_t old;
	size_t real;

	if (p == NULL || h == NULL)
		return eddy_malloc(size);
	if (stays(h, eddy_tag_find(h, p), size))
		return p;
	old = eddy_size_of(p);
	if (size == 0) {
		if (h->opts.zero_realloc != EDDY_ZERO_REALLOC_ALLOC)
			return resize_to_nothing(h, p);
		size = 1;
	}
	real = real_size(h, size);
	if (real == old)
		return p;
	/* Options that fill want a block that malloc has filled. */
	if (h->cached && real >= EDDY_LARGE_MIN && old >= EDDY_LARGE_MIN &&
	    eddy_large_resize(h, p, eddy_tag_find(h, p), real))
		return p;
	return move(h, p, old, size);
}

EDDY_EXPORT void *
reallocarray(void *p, size_t n, size_t size)
{
	size_t total;

	if (__builtin_mul_overflow(n, size, &total))
		return eddy_no_memory();
	return realloc(p, total);
}
