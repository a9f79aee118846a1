/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * malloc.c - allocation and free where the hit path has missed.
 */
#include "eddy/eddy.h"
#include "lib/front/front.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ctl/stats.h"
#include "lib/heap/arena.h"
#include "lib/heap/backing.h"
#include "lib/heap/cpu_cache.h"
#include "lib/heap/gather.h"
#include "lib/heap/hooks.h"
#include "lib/heap/large.h"
#include "lib/heap/own.h"
#include "lib/heap/pagemap.h"
#include "lib/heap/purge.h"
#include "lib/heap/region.h"
#include "lib/heap/slab.h"
#include "lib/heap/warm.h"
#include "lib/os/fatal.h"
#include "lib/os/os.h"
#include "lib/os/zero.h"
#include "lib/prof/sample.h"

/* What is said of an object that was not malloc's. */
static const char pool_fault[] = "object of a pool, not of malloc";

static bool
by_classes(const struct eddy_heap *h)
{
	return !h->opts.disable_large_size_classes;
}

static unsigned
row_of_size(const struct eddy_heap *h, size_t size)
{
	const uint8_t *rows =
	    by_classes(h) ? eddy_size_rows_530 : eddy_size_rows;

	return rows[(size + 7) / 8];
}

/* What a block of the hit path has, once there was one. */
static size_t
fast_size(size_t size)
{
	/* relaxed: see struct eddy_fast. */
	const uint8_t *rows =
	    (const uint8_t *)eddy_load_relaxed(&eddy_fast.rows);

	return eddy_row_size(rows[(size + 7) / 8]);
}

/* Options that fill: nothing is cached then, so every call comes by. */
void
eddy_fill_alloc(const struct eddy_heap *h, void *p, size_t size)
{
	if (h->opts.junk == EDDY_JUNK_TRUE || h->opts.junk == EDDY_JUNK_ALLOC)
		memset(p, EDDY_FILL_ALLOC, size);
	else if (h->opts.zero)
		memset(p, 0, size);
}

static void
fill_alloc(const struct eddy_heap *h, void *p)
{
	eddy_fill_alloc(h, p, eddy_size_of(p));
}

static void
fill_free(struct eddy_heap *h, void *p)
{
	if ((h->opts.junk == EDDY_JUNK_TRUE ||
		h->opts.junk == EDDY_JUNK_FREE) &&
	    eddy_backing_has(h, p))
		memset(p, EDDY_FILL_FREE, eddy_size_of(p));
}

/* What comes from an arena of the program's, or else (NULL) from caches. */
static void *
small(struct eddy_heap *h, struct eddy_arena *a, unsigned row)
{
	void *p;

	if (a == NULL)
		return eddy_cache_alloc(h, row);
	return eddy_arena_refill(h, a, row, &p, 1) != 0 ? p : NULL;
}

/* Of a request that no row serves. */
static size_t
large_size(const struct eddy_heap *h, size_t size, size_t align)
{
	size_t real = eddy_large_size(size, by_classes(h));

	/* The sum is what address arithmetic must be able to express. */
	if (real == 0 || align - 1 > EDDY_SIZE_LIMIT - real)
		return 0;
	/* Where chunks are not enough to align it, it is one at least. */
	return align > EDDY_CHUNK && real < EDDY_CHUNK ? EDDY_CHUNK : real;
}

static void *
large(struct eddy_heap *h, struct eddy_arena *a, size_t size, size_t align,
    bool zero)
{
	size_t real = large_size(h, size, align);
	void *p;

	if (real == 0)
		return NULL;
	align = align <= EDDY_PAGE ? 1 : align / EDDY_PAGE;
	p = a == NULL ? eddy_cache_large(h, real, align, zero)
		      : eddy_large_alloc(h, a, real, align, zero);
	if (zero && p != NULL)
		eddy_os_zero_wanted(real);
	if (p != NULL)
		eddy_own_took(real);
	return p;
}

/* The row that serves a request; 0: none does. */
static inline unsigned
row_for(const struct eddy_heap *h, size_t size, size_t align)
{
	if (align > 8 && align <= EDDY_PAGE && size <= EDDY_SMALL_MAX) {
		/* A class that is a multiple of align: its objects are too. */
		size = eddy_align_up(size != 0 ? size : 1, align);
	}
	return size <= EDDY_ROW_MAX && align <= EDDY_PAGE ? row_of_size(h, size)
							  : 0;
}

size_t
eddy_real_size(const struct eddy_heap *h, size_t size, size_t align)
{
	unsigned row = row_for(h, size, align);

	if (row != 0)
		return eddy_row_size(row);
	return size <= EDDY_SIZE_LIMIT ? large_size(h, size, align) : 0;
}

size_t
eddy_sure_size(const struct eddy_heap *h, size_t size, size_t align)
{
	size_t of_region =
	    eddy_align_up(size != 0 ? size : 1, EDDY_REGION_GRAIN);
	size_t real = eddy_real_size(h, size, align);

	return eddy_unlikely(eddy_own.scope != NULL) && of_region < real
		   ? of_region
		   : real;
}

static inline void *
alloc(struct eddy_heap *h, struct eddy_arena *a, size_t size, size_t align,
    bool zero)
{
	unsigned row;
	void *p;

	if (h == NULL || size > EDDY_SIZE_LIMIT)
		return NULL;
	row = row_for(h, size, align);
	if (row != 0) {
		p = small(h, a, row);
		if (p != NULL && eddy_unlikely(eddy_own.counted))
			eddy_own_took(eddy_row_size(row));
		if (p != NULL && zero)
			memset(p, 0, eddy_row_size(row));
	} else {
		p = large(h, a, size, align, zero);
	}
	if (p != NULL && !zero && !h->cached)
		fill_alloc(h, p);
	return p;
}

/* Whether the program can do something about a request that failed. */
static EDDY_COLD bool
ask_program(struct eddy_heap *h, size_t size)
{
	return h != NULL && size <= (size_t)h->n_chunks * EDDY_CHUNK &&
	       eddy_pressure_tell(size);
}

/*
 * A request that was found due for a sample.  a NULL: of no certain arena.
 * Returns NULL: it is none; nothing has happened.
 */
static EDDY_COLD void *
alloc_sampled(struct eddy_heap *h, struct eddy_arena *a, size_t size,
    size_t align, bool zero)
{
	size_t real = eddy_real_size(h, size, align);
	bool small = real <= EDDY_SMALL_MAX;
	void *p;

	if (real == 0 || !eddy_prof_draw(h))
		return NULL;
	if (a == NULL)
		a = eddy_own_arena(h);
	/* Its slab must tell it from what is no sample. */
	if (small && (a == NULL || a->home != EDDY_HOME_NONE))
		a = eddy_arena_of_samples(h, a != NULL && a->home < h->n_homes
						 ? a->home
						 : eddy_cache_home(h));
	p = small && a == NULL ? NULL : alloc(h, a, size, align, zero);
	if (p == NULL)
		eddy_prof_lose();
	else
		eddy_prof_add(h, p, size, real);
	return p;
}

/* Counts a request that the hit path did not count, and samples it if due. */
static inline void *
count(struct eddy_arena *a, size_t size, size_t align, bool zero)
{
	struct eddy_heap *h;

	if (!eddy_prof_counts())
		return NULL;
	h = eddy_heap();
	return eddy_prof_count(eddy_real_size(h, size, align))
		   ? alloc_sampled(h, a, size, align, zero)
		   : NULL;
}

static void *alloc_anywhere(size_t size, size_t align, bool zero);

void *
eddy_alloc(size_t size, size_t align, bool zero)
{
	void *p = count(NULL, size, align, zero);

	return p != NULL ? p : alloc_anywhere(size, align, zero);
}

void *
eddy_alloc_missed(size_t size)
{
	void *p = NULL;

	/* The hit path counts what it may serve, where there is one. */
	if (!EDDY_HIT_COUNTS || size > EDDY_ROW_MAX)
		return eddy_alloc(size, 1, false);
	if (eddy_prof_is_due())
		p = alloc_sampled(eddy_heap(), NULL, size, 1, false);
	return p != NULL ? p : alloc_anywhere(size, 1, false);
}

/*
 * A block for a thread that is bound to an arena.  It may have been moved to a
 * CPU of another home between the look at its CPU and the row.
 */
static EDDY_COLD void *
of_its_arena(struct eddy_heap *h, void *p, size_t size, size_t align, bool zero)
{
	struct eddy_arena *a = eddy_arena_at(h, eddy_own.arena);
	void *q;

	if (eddy_own.arena > h->n_homes || a == NULL ||
	    eddy_arena_of(h, p) == a)
		return p;
	q = alloc(h, a, size, align, zero);
	if (q == NULL)
		return p;
	eddy_free(p);
	return q;
}

static void *
alloc_anywhere(size_t size, size_t align, bool zero)
{
	struct eddy_heap *h = eddy_heap();
	struct eddy_arena *a = eddy_own_arena(h);
	void *p = NULL;

	if (eddy_unlikely(a != NULL))
		p = alloc(h, a, size, align, zero);
	if (eddy_likely(p == NULL)) {
		p = alloc(h, NULL, size, align, zero);
		if (p != NULL && eddy_unlikely(eddy_own.arena != 0))
			p = of_its_arena(h, p, size, align, zero);
	}
	if (eddy_likely(p != NULL))
		eddy_stats_interval(h);
	if (eddy_likely(p != NULL) || h == NULL || size > EDDY_SIZE_LIMIT)
		return p;
	if (eddy_explicit_sweep(h, NULL))
		p = alloc(h, NULL, size, align, zero);
	if (p != NULL || !ask_program(h, size))
		return p;
	return alloc(h, NULL, size, align, zero);
}

/* As alloc, from the rows, rings and slabs of a number. */
static void *
from_number(
    struct eddy_heap *h, uint32_t number, size_t size, size_t align, bool zero)
{
	unsigned row;
	size_t real;
	void *p;

	if (size > EDDY_SIZE_LIMIT)
		return NULL;
	row = row_for(h, size, align);
	real = row != 0 ? eddy_row_size(row) : large_size(h, size, align);
	if (real == 0)
		return NULL;
	if (row != 0) {
		p = eddy_cache_alloc_of(h, number, row);
		if (p != NULL && zero)
			memset(p, 0, real);
	} else {
		p = eddy_cache_large_of(h, number, real,
		    align <= EDDY_PAGE ? 1 : align / EDDY_PAGE, zero);
		if (zero && p != NULL)
			eddy_os_zero_wanted(real);
	}
	if (p != NULL && (row == 0 || eddy_unlikely(eddy_own.counted)))
		eddy_own_took(real);
	if (p != NULL && !zero && !h->cached)
		fill_alloc(h, p);
	return p;
}

void *
eddy_alloc_of(uint32_t number, size_t size, size_t align, bool zero)
{
	struct eddy_heap *h = eddy_heap();
	void *p = count(NULL, size, align, zero);

	if (p != NULL)
		return p;
	if (eddy_likely(h != NULL && eddy_own_arena(h) == NULL))
		p = from_number(h, number, size, align, zero);
	if (eddy_likely(p != NULL))
		eddy_stats_interval(h);
	return eddy_likely(p != NULL) ? p : alloc_anywhere(size, align, zero);
}

static void *
alloc_in(struct eddy_arena *a, size_t size, size_t align, bool zero)
{
	struct eddy_heap *h = eddy_heap();
	void *p = alloc(h, a, size, align, zero);

	if (p != NULL || size > EDDY_SIZE_LIMIT)
		return p;
	if (a->backing.kind != EDDY_PRIVATE || eddy_hooks_are_set(a)) {
		/* What helps is room in its own file, or with its hooks. */
		bool more = eddy_explicit_sweep(h, a);

		more |= !eddy_frozen(h) && eddy_purge_arena(h, a) != 0;
		return more ? alloc(h, a, size, align, zero) : NULL;
	}
	(void)eddy_explicit_sweep(h, NULL);
	eddy_gather_all(h);
	if (!eddy_frozen(h))
		(void)eddy_purge(h, 0);
	p = alloc(h, a, size, align, zero);
	if (p != NULL || !ask_program(h, size))
		return p;
	return alloc(h, a, size, align, zero);
}

void *
eddy_alloc_in(struct eddy_arena *a, size_t size, size_t align, bool zero)
{
	void *p;

	/* A forked child has the arena of a file, and not its memory. */
	if (!eddy_backing_here(&a->backing))
		return NULL;
	p = count(a, size, align, zero);
	return p != NULL ? p : alloc_in(a, size, align, zero);
}

/* Out of a cache of the program's, where that is for the size. */
static void *
alloc_cached(struct eddy_heap *h, const struct eddy_wish *w,
    struct eddy_arena *a, size_t size)
{
	unsigned row = row_for(h, size, w->align);
	void *p;

	if (row == 0)
		return alloc(h, a, size, w->align, w->zero);
	p = eddy_explicit_alloc(h, w->cache, a, w->arena == NULL, row);
	if (p != NULL && eddy_unlikely(eddy_own.counted))
		eddy_own_took(eddy_row_size(row));
	if (p != NULL && w->zero)
		memset(p, 0, eddy_row_size(row));
	else if (p != NULL && !h->cached)
		fill_alloc(h, p);
	return p;
}

void *
eddy_alloc_as(const struct eddy_wish *w, size_t size)
{
	struct eddy_heap *h = eddy_heap();
	struct eddy_arena *a = w->arena;
	void *p = NULL;

	if (h == NULL)
		return NULL;
	if (eddy_unlikely(w->life != EDDY_LIFE_UNKNOWN) && a == NULL &&
	    !w->uncached)
		return eddy_alloc_of(
		    eddy_group_of(h, eddy_cache_home(h), w->life), size,
		    w->align, w->zero);
	/* As eddy_alloc_in has it. */
	if (a != NULL && !eddy_backing_here(&a->backing))
		return NULL;
	if (a == NULL && w->uncached)
		a = eddy_own_arena(h);
	if (a == NULL && w->uncached)
		a = eddy_arena_of_home(h, eddy_cache_home(h));
	p = count(a, size, w->align, w->zero);
	if (eddy_unlikely(p != NULL))
		return p;
	if (a != NULL && w->cache != NULL)
		p = alloc_cached(h, w, a, size);
	else if (a != NULL)
		p = alloc(h, a, size, w->align, w->zero);
	if (p != NULL)
		return p;
	if (w->arena != NULL)
		return alloc_in(a, size, w->align, w->zero);
	return alloc_anywhere(size, w->align, w->zero);
}

/* The answer to a request that cannot be served. */
EDDY_COLD void *
eddy_no_memory_quiet(void)
{
	struct eddy_heap *h = eddy_heap_peek();

	if (h != NULL && h->opts.xmalloc)
		eddy_fatal_text("out of memory");
	return NULL;
}

EDDY_COLD void *
eddy_no_memory(void)
{
	errno = ENOMEM;
	return eddy_no_memory_quiet();
}

void *
eddy_malloc_missed(size_t size)
{
	void *p = eddy_alloc_missed(size);

	return eddy_likely(p != NULL) ? p : eddy_no_memory();
}

/* What is freed of a live block: all where somebody asked, else what the hit
 * path never sees.  p: its place. */
static inline void
count_free(struct eddy_heap *h, const void *p, uint32_t tag)
{
	if (eddy_tag_place(tag) != 0) {
		if (eddy_unlikely(eddy_own.counted))
			eddy_own_gave(eddy_row_size(eddy_tag_row(tag)));
	} else if (tag != 0 && (uintptr_t)p % EDDY_PAGE == 0) {
		eddy_own_gave(eddy_large_size_of(h, p, tag));
	}
}

static EDDY_NOINLINE void
free_missed(void *p)
{
	struct eddy_heap *h;
	const void *place;
	uint32_t tag;

	if (p == NULL)
		return;
	h = eddy_heap();
	if (h == NULL)
		eddy_fatal("foreign pointer", p);
	tag = eddy_tag_seek(h, p, &place);
	if (eddy_tag_kind(tag) >= EDDY_TAG_REGION) {
		if (eddy_unlikely(eddy_tag_kind(tag) != EDDY_TAG_REGION))
			eddy_fatal(pool_fault, p);
		if (eddy_unlikely(h->opts.check))
			eddy_region_check(h, place, tag);
		return;
	}
	if (!h->cached && tag != 0)
		fill_free(h, p);
	if (eddy_prof_is_on() && eddy_prof_may_be(tag))
		eddy_prof_drop(p);
	count_free(h, place, tag);
	if (eddy_tag_place(tag) != 0)
		eddy_cache_free(h, p, tag);
	else
		eddy_large_free(h, place, tag);
}

/*
 * Of a region's object there is nothing to be done: no jump is taken and no
 * register saved.  One of the checked mode, or at an address of the program's
 * hooks, is for free_missed as all others.
 */
EDDY_NOINLINE void
eddy_free_slow(void *p)
{
	const struct eddy_heap *h = eddy_heap_peek();
	size_t page;

	if (eddy_likely(h != NULL)) {
		page = eddy_page_of(h, p);
		/* SEG-A1: tags below the limit are readable. */
		if (eddy_likely(page < eddy_load_acquire(&eddy_fast.limit)) &&
		    /* relaxed: true for who holds an object in it. */
		    eddy_likely(eddy_tag_kind(eddy_load_relaxed(
				    &h->tags[page])) == EDDY_TAG_REGION) &&
		    eddy_likely(!h->opts.check))
			return;
	}
	free_missed(p);
}

void
eddy_free_as(const struct eddy_wish *w, void *p)
{
	struct eddy_heap *h = eddy_heap();
	const void *place;
	uint32_t tag;

	if (!w->uncached || h == NULL) {
		eddy_free(p);
		return;
	}
	tag = eddy_tag_seek(h, p, &place);
	if (eddy_tag_kind(tag) >= EDDY_TAG_REGION) {
		eddy_free(p);
		return;
	}
	if (!h->cached && tag != 0)
		fill_free(h, p);
	if (eddy_prof_is_on() && eddy_prof_may_be(tag))
		eddy_prof_drop(p);
	count_free(h, place, tag);
	if (eddy_tag_place(tag) != 0 && w->cache != NULL &&
	    eddy_tag_home(tag) != EDDY_HOME_SAMPLES)
		eddy_explicit_free(h, w->cache, p, tag);
	else if (eddy_tag_place(tag) != 0)
		(void)eddy_arena_put(h, &p, 1);
	else
		eddy_large_free(h, place, tag);
}

size_t
eddy_size_of(const void *p)
{
	struct eddy_heap *h = eddy_heap();
	const void *place;
	uint32_t tag;

	if (h == NULL)
		eddy_fatal("foreign pointer", p);
	tag = eddy_tag_seek(h, p, &place);
	switch (eddy_tag_kind(tag)) {
	case EDDY_TAG_SLAB:
		(void)eddy_slab_bit_of(h, place, tag);
		return eddy_row_size(eddy_tag_row(tag));
	case EDDY_TAG_RUN:
	case EDDY_TAG_HUGE:
		if ((uintptr_t)p % EDDY_PAGE != 0)
			eddy_fatal("misaligned pointer", p);
		return eddy_large_size_of(h, place, tag);
	case EDDY_TAG_REGION:
		return eddy_region_size_of(h, place, tag);
	case EDDY_TAG_POOL:
	case EDDY_TAG_LIMBO:
		eddy_fatal(pool_fault, p);
	default:
		eddy_fatal_free(h, place);
	}
}

/* ------------------------------------------------------------------ */
/* Public names */

/* From the region that the thread is in. */
static EDDY_COLD void *
in_section(size_t size, size_t align, bool zero)
{
	void *p = eddy_region_section(size, align, zero);

	return p != NULL ? p : eddy_no_memory();
}

EDDY_EXPORT void *
calloc(size_t n, size_t size)
{
	size_t total;
	void *p;

	if (__builtin_mul_overflow(n, size, &total))
		return eddy_no_memory();
	if (eddy_unlikely(eddy_own.scope != NULL))
		return in_section(total, 1, true);
	if (total <= EDDY_ROW_MAX) {
		p = eddy_malloc(total);
		/* All of it: who has it grow, zeros asked for, gets zeros from
		 * its real size on. */
		return p != NULL ? memset(p, 0, fast_size(total)) : NULL;
	}
	p = eddy_alloc(total, 1, true);
	return p != NULL ? p : eddy_no_memory();
}

static void *
aligned(size_t align, size_t size)
{
	void *p;

	if (eddy_unlikely(eddy_own.scope != NULL))
		return in_section(size, align, false);
	p = eddy_alloc(size, align, false);
	return p != NULL ? p : eddy_no_memory();
}

EDDY_EXPORT int
posix_memalign(void **ret, size_t align, size_t size)
{
	int kept = errno;
	void *p;

	if (!eddy_is_pow2(align) || align < sizeof(void *))
		return EINVAL;
	p = aligned(align, size);
	errno = kept;
	if (p == NULL)
		return ENOMEM;
	*ret = p;
	return 0;
}

EDDY_EXPORT void *
aligned_alloc(size_t align, size_t size)
{
	if (!eddy_is_pow2(align)) {
		errno = EINVAL;
		return NULL;
	}
	return aligned(align, size);
}

/* As glibc: an alignment that is no power of two is rounded up to one. */
EDDY_EXPORT void *
memalign(size_t align, size_t size)
{
	if (align > SIZE_MAX / 2 + 1) {
		errno = EINVAL;
		return NULL;
	}
	if (!eddy_is_pow2(align))
		align = align < 2 ? 1 : (size_t)2 << eddy_log2(align);
	return aligned(align, size);
}

EDDY_EXPORT void *
valloc(size_t size)
{
	return aligned(eddy_os_page_size(), size);
}

EDDY_EXPORT void *
pvalloc(size_t size)
{
	size_t page = eddy_os_page_size();

	if (size > SIZE_MAX - page)
		return eddy_no_memory();
	return aligned(page, size == 0 ? page : eddy_align_up(size, page));
}

EDDY_EXPORT size_t
malloc_usable_size(void *p)
{
	return p != NULL ? eddy_size_of(p) : 0;
}

/*
 * A static program takes only what it names from libeddy.a; the rest of the
 * family would then come from libc, with another heap.  One for all.
 */
__attribute__((used)) static void *const family[] = {
    (void *)realloc,
    (void *)mallinfo2,
    (void *)malloc_stats_print,
    (void *)mallocx,
    (void *)eddy_housekeep,
    (void *)eddy_prefault,
    (void *)eddy_good_size,
};
