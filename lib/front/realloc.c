/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * realloc.c - the same block, another size: where it is, by moving its pages,
 * or by copying.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/ctl/mallctl.h"
#include "lib/front/front.h"
#include "lib/heap/arena.h"
#include "lib/heap/cpu_cache.h"
#include "lib/heap/large.h"
#include "lib/heap/own.h"
#include "lib/heap/pagemap.h"
#include "lib/os/fatal.h"
#include "lib/prof/sample.h"

/* A block that keeps its size counts as one that goes and one that comes. */
static void *
keep(void *p, size_t real)
{
	if (eddy_unlikely(eddy_own.counted)) {
		eddy_own_gave(real);
		eddy_own_took(real);
	}
	return p;
}

/* A large block becomes another size where it is. */
bool
eddy_resize(struct eddy_heap *h, void *p, size_t old, size_t size, bool zero)
{
	const void *place;
	uint32_t tag = eddy_tag_seek(h, p, &place);

	if (!eddy_large_resize(h, place, tag, size, zero))
		return false;
	eddy_own_gave(old);
	eddy_own_took(size);
	if (eddy_prof_is_on())
		eddy_prof_drop(p);
	if (eddy_prof_counts() && eddy_prof_count(size) && eddy_prof_draw(h))
		eddy_prof_add(h, p, size, size);
	return true;
}

/* A request of 0 for a block that exists. */
static void *
resize_to_nothing(struct eddy_heap *h, void *p)
{
	if (h->opts.zero_realloc == EDDY_ZERO_REALLOC_ABORT) {
		if (!eddy_fatal_tell("<eddy>: realloc to size 0"))
			eddy_fatal("realloc to size 0", p);
		return NULL;
	}
	eddy_free(p);
	return NULL;
}

/* A block that p may move to: from its arena, if the program created that, from
 * where blocks of its lifetime are, if it has one. */
static void *
another(struct eddy_heap *h, const void *p, size_t size)
{
	struct eddy_arena *a = eddy_arena_of(h, p);
	void *q;

	/* Inside a section of a region malloc is the region's. */
	if (a == NULL ||
	    (a->home != EDDY_HOME_NONE && !eddy_is_group(h, a->home))) {
		if (eddy_likely(eddy_own.scope == NULL))
			return eddy_malloc(size);
		q = eddy_alloc(size, 1, false);
	} else if (a->home == EDDY_HOME_NONE) {
		q = eddy_alloc_in(a, size, 1, false);
	} else {
		q = eddy_alloc_of(eddy_group_of(h, eddy_cache_home(h),
				      eddy_life_of(h, a->home)),
		    size, 1, false);
	}
	return q != NULL ? q : eddy_no_memory();
}

/* w NULL: as realloc(3). */
static void *
move(struct eddy_heap *h, const struct eddy_wish *w, void *p, size_t old,
    size_t size)
{
	void *q = w != NULL ? eddy_alloc_as(w, size) : another(h, p, size);
	enum eddy_move moved = EDDY_NOT_MOVED;

	/* Options that fill will fill the old block: its pages stay. */
	if (q != NULL && size > old && h->cached)
		moved = eddy_large_move(h, p, q, old);
	if (moved == EDDY_LOST)
		q = w != NULL ? eddy_alloc_as(w, size) : another(h, p, size);
	if (q == NULL)
		return NULL;
	/* Who asks for real sizes may use all of the old block. */
	if (w != NULL)
		size = eddy_size_of(q);
	if (moved != EDDY_MOVED)
		memcpy(q, p, size < old ? size : old);
	if (w != NULL)
		eddy_free_as(w, p);
	else
		eddy_free(p);
	return q;
}

void *
eddy_realloc_as(const struct eddy_wish *w, void *p, size_t size)
{
	struct eddy_heap *h = eddy_heap();
	size_t old = eddy_size_of(p);
	size_t real = eddy_real_size(h, size, w->align);
	struct eddy_wish to;
	struct eddy_arena *a;

	if (real == 0)
		return NULL;
	if (w->arena == NULL && w->cache == NULL &&
	    eddy_tag_kind(eddy_tag_find(h, p)) == EDDY_TAG_REGION)
		return eddy_region_realloc(h, p, size, w->align, w->zero);
	if ((uintptr_t)p % w->align == 0 &&
	    eddy_tag_kind(eddy_tag_find(h, p)) != EDDY_TAG_REGION) {
		if (real == old)
			return keep(p, real);
		if (h->cached && real >= EDDY_LARGE_MIN &&
		    old >= EDDY_LARGE_MIN &&
		    eddy_resize(h, p, old, real, w->zero))
			return p;
	}
	/* A block of the program's arena stays there. */
	to = *w;
	a = eddy_arena_of(h, p);
	if (to.arena == NULL && a != NULL && a->home == EDDY_HOME_NONE)
		to.arena = a;
	if (a != NULL)
		to.life = eddy_life_of(h, a->home);
	return move(h, &to, p, old, size);
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
	uint32_t tag;
	size_t old;
	size_t real;

	if (p == NULL || h == NULL)
		return eddy_malloc(size);
	tag = eddy_tag_find(h, p);
	if (stays(h, tag, size))
		return keep(p, eddy_real_size(h, size, 1));
	old = eddy_size_of(p);
	if (size == 0) {
		/* relaxed: a count. */
		(void)eddy_add_relaxed(&eddy_ctl_n_zero_reallocs, 1);
		if (h->opts.zero_realloc != EDDY_ZERO_REALLOC_ALLOC)
			return resize_to_nothing(h, p);
		size = 1;
	}
	if (eddy_unlikely(eddy_tag_kind(tag) == EDDY_TAG_REGION)) {
		p = eddy_region_realloc(h, p, size, 1, false);
		return p != NULL ? p : eddy_no_memory();
	}
	real = eddy_real_size(h, size, 1);
	if (real == old)
		return keep(p, real);
	/* Options that fill want a block that malloc has filled. */
	if (h->cached && real >= EDDY_LARGE_MIN && old >= EDDY_LARGE_MIN &&
	    eddy_resize(h, p, old, real, false))
		return p;
	return move(h, NULL, p, old, size);
}

EDDY_EXPORT void *
reallocarray(void *p, size_t n, size_t size)
{
	size_t total;

	if (__builtin_mul_overflow(n, size, &total))
		return eddy_no_memory();
	return realloc(p, total);
}
