/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hints.c - what a program knows of a block before it is made: how long it
 * lives, what lies beside it; and what it is told: how much there is of it.
 *
 * Layer     front (L6).
 * Progress  as their blocks' (front.h).
 *
 * A hint changes where a block comes from and nothing else.  It is never a
 * reason to fail.
 */
#include "eddy/eddy.h"
#include "lib/front/front.h"

#include <errno.h>

#include "lib/heap/arena.h"
#include "lib/heap/cpu_cache.h"
#include "lib/heap/own.h"
#include "lib/heap/pagemap.h"

static_assert((int)EDDY_LIFETIME_SHORT == (int)EDDY_LIFE_SHORT &&
		  (int)EDDY_LIFETIME_LONG == (int)EDDY_LIFE_LONG,
    "the heap's words are the program's");

/* As malloc's hit path, from the row of a number; NULL: it missed. */
static inline void *
hit(const struct eddy_heap *h, uint32_t number, size_t size)
{
	struct eddy_rseq *area = eddy_area;
	const uint8_t *rows;
	void *p;

	/* relaxed, both: see struct eddy_fast. */
	if (eddy_unlikely(area == NULL || h == NULL ||
			  size >= eddy_load_relaxed(&eddy_fast.below)))
		return NULL;
	rows = (const uint8_t *)eddy_load_relaxed(&eddy_fast.rows);
	if (eddy_likely(eddy_section_pop_at(area, (uintptr_t)h->slots,
			    eddy_place(number, rows[(size + 7) / 8]),
			    &p) == EDDY_SECTION_OK))
		return p;
	return NULL;
}

/* The home of the CPU that a hit path would take from: a guess. */
static inline uint32_t
home_here(struct eddy_heap *h)
{
	struct eddy_rseq *area = eddy_area;
	uint32_t cpu;

	if (h->n_homes == 1)
		return 0;
	/* relaxed: the kernel writes it on this thread. */
	cpu = area != NULL ? eddy_load_relaxed(&area->cpu_id) : UINT32_MAX;
	return cpu < h->n_slots && eddy_cache_slot_used(h, cpu)
		   ? eddy_cache_slot_home(h, cpu)
		   : eddy_cache_home(h);
}

static EDDY_NOINLINE void *
miss(uint32_t number, size_t size, size_t align, bool zero)
{
	void *p = eddy_alloc_of(number, size, align, zero);

	return eddy_likely(p != NULL) ? p : eddy_no_memory();
}

static inline void *
alloc_for(size_t size, enum eddy_life life)
{
	struct eddy_heap *h = eddy_heap();
	uint32_t number;
	void *p;

	if (eddy_unlikely(h == NULL))
		return eddy_no_memory();
	number = eddy_group_of(h, home_here(h), life);
	p = hit(h, number, size);
	return eddy_likely(p != NULL) ? p : miss(number, size, 1, false);
}

EDDY_EXPORT void *
eddy_alloc_short(size_t size)
{
	return alloc_for(size, EDDY_LIFE_SHORT);
}

EDDY_EXPORT void *
eddy_alloc_long(size_t size)
{
	return alloc_for(size, EDDY_LIFE_LONG);
}

/* The home on a node; that of the CPU if there is none. */
static uint32_t
home_of_node(struct eddy_heap *h, uint32_t node)
{
	uint32_t home = node < EDDY_MAX_NODES ? h->places.home_of_node[node]
					      : EDDY_HOME_UNKNOWN;

	return home < h->n_homes ? home : home_here(h);
}

/*
 * The number of the home or group that p is of; of what is of neither, a home
 * on its node; of what is not the heap's, that of the CPU.
 */
static EDDY_NOINLINE uint32_t
number_of_other(struct eddy_heap *h, const void *p)
{
	struct eddy_arena *a = eddy_arena_of(h, p);

	if (a == NULL)
		return home_here(h);
	if (a->home < h->n_with_rows)
		return a->home;
	/* relaxed: as of some moment. */
	return home_of_node(h, eddy_load_relaxed(&a->node));
}

static inline uint32_t
number_near(struct eddy_heap *h, const void *p)
{
	uint32_t tag = eddy_tag_find(h, p);

	/* Blocks of whole pages have no home in their tags, or may not. */
	if (eddy_likely(eddy_tag_kind(tag) == EDDY_TAG_SLAB &&
			eddy_tag_home(tag) < h->n_with_rows))
		return eddy_tag_home(tag);
	return p != NULL ? number_of_other(h, p) : home_here(h);
}

EDDY_EXPORT void *
eddy_alloc_near(size_t size, const void *other)
{
	struct eddy_heap *h = eddy_heap();
	uint32_t number;
	void *p;

	if (eddy_unlikely(h == NULL))
		return eddy_no_memory();
	number = number_near(h, other);
	p = hit(h, number, size);
	return eddy_likely(p != NULL) ? p : miss(number, size, 1, false);
}

EDDY_EXPORT void *
eddy_alloc_hinted(size_t size, const struct eddy_hint *hint)
{
	struct eddy_heap *h = eddy_heap();
	size_t align = hint->align != 0 ? hint->align : 1;
	uint32_t number;

	if (!eddy_is_pow2(align) || hint->reserved != 0 ||
	    (unsigned)hint->lifetime > EDDY_LIFETIME_LONG) {
		errno = EINVAL;
		return NULL;
	}
	if (eddy_unlikely(h == NULL))
		return eddy_no_memory();
	number = hint->near != NULL ? number_near(h, hint->near) : home_here(h);
	if (hint->lifetime != EDDY_LIFETIME_UNKNOWN)
		number = eddy_group_of(h, eddy_base_home(h, number),
		    (enum eddy_life)hint->lifetime);
	return miss(number, size, align, hint->zero != 0);
}

EDDY_EXPORT size_t
eddy_good_size(size_t size)
{
	struct eddy_heap *h = eddy_heap();

	return h != NULL ? eddy_sure_size(h, size, 1) : 0;
}

EDDY_EXPORT void *
eddy_alloc_at_least(size_t size, size_t *real)
{
	void *p = eddy_malloc(size);
	const uint8_t *rows;

	if (eddy_unlikely(p == NULL))
		*real = 0;
	else if (eddy_unlikely(eddy_own.scope != NULL))
		*real = eddy_size_of(p); /* of a region: see region.h */
	else if (eddy_unlikely(size > EDDY_ROW_MAX))
		*real = eddy_real_size(eddy_heap(), size, 1);
	else {
		/* relaxed: see struct eddy_fast. */
		rows = (const uint8_t *)eddy_load_relaxed(&eddy_fast.rows);
		*real = eddy_row_size(rows[(size + 7) / 8]);
	}
	return p;
}
