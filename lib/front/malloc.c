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

#include "lib/heap/arena.h"
#include "lib/heap/cpu_cache.h"
#include "lib/heap/gather.h"
#include "lib/heap/large.h"
#include "lib/heap/pagemap.h"
#include "lib/heap/slab.h"
#include "lib/os/fatal.h"
#include "lib/os/os.h"

/* Bytes that junk fills with: those that jemalloc uses. */
#define JUNK_ALLOC 0xa5
#define JUNK_FREE  0x5a

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

/* Options that fill: nothing is cached then, so every call comes by. */
static void
fill_alloc(const struct eddy_heap *h, void *p)
{
	if (h->opts.junk == EDDY_JUNK_TRUE || h->opts.junk == EDDY_JUNK_ALLOC)
		memset(p, JUNK_ALLOC, eddy_size_of(p));
	else if (h->opts.zero)
		memset(p, 0, eddy_size_of(p));
}

static void
fill_free(const struct eddy_heap *h, void *p)
{
	if (h->opts.junk == EDDY_JUNK_TRUE || h->opts.junk == EDDY_JUNK_FREE)
		memset(p, JUNK_FREE, eddy_size_of(p));
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

static void *
large(struct eddy_heap *h, struct eddy_arena *a, size_t size, size_t align,
    bool zero)
{
	size_t real = eddy_large_size(size, by_classes(h));

	/* The sum is what address arithmetic must be able to express. */
	if (real == 0 || align > EDDY_SIZE_LIMIT - real)
		return NULL;
	align = align <= EDDY_PAGE ? 1 : align / EDDY_PAGE;
	return a == NULL ? eddy_cache_large(h, real, align, zero)
			 : eddy_large_alloc(h, a, real, align, zero);
}

static inline void *
alloc(struct eddy_heap *h, struct eddy_arena *a, size_t size, size_t align,
    bool zero)
{
	size_t rounded = size;
	void *p;

	if (h == NULL || size > EDDY_SIZE_LIMIT)
		return NULL;
	if (align > 8 && align <= EDDY_PAGE && size <= EDDY_SMALL_MAX) {
		/* A class that is a multiple of align: its objects are too. */
		rounded = eddy_align_up(size != 0 ? size : 1, align);
	}
	if (rounded <= EDDY_ROW_MAX && align <= EDDY_PAGE) {
		p = small(h, a, row_of_size(h, rounded));
		if (p != NULL && zero)
			memset(p, 0, size);
	} else {
		p = large(h, a, size, align, zero);
	}
	if (p != NULL && !zero && !h->cached)
		fill_alloc(h, p);
	return p;
}

void *
eddy_alloc(size_t size, size_t align, bool zero)
{
	return alloc(eddy_heap(), NULL, size, align, zero);
}

void *
eddy_alloc_in(struct eddy_arena *a, size_t size, size_t align)
{
	struct eddy_heap *h = eddy_heap();
	void *p = alloc(h, a, size, align, false);

	if (p != NULL || size > EDDY_SIZE_LIMIT)
		return p;
	eddy_gather_all(h);
	return alloc(h, a, size, align, false);
}

/* The answer to a request that cannot be served. */
EDDY_COLD void *
eddy_no_memory(void)
{
	struct eddy_heap *h = eddy_heap_peek();

	if (h != NULL && h->opts.xmalloc)
		eddy_fatal_text("out of memory");
	errno = ENOMEM;
	return NULL;
}

EDDY_NOINLINE void *
eddy_malloc_slow(size_t size)
{
	void *p = eddy_alloc(size, 1, false);

	return eddy_likely(p != NULL) ? p : eddy_no_memory();
}

EDDY_NOINLINE void
eddy_free_slow(void *p)
{
	struct eddy_heap *h;
	uint32_t tag;

	if (p == NULL)
		return;
	h = eddy_heap();
	if (h == NULL)
		eddy_fatal("foreign pointer", p);
	tag = eddy_tag_find(h, p);
	if (!h->cached && tag != 0)
		fill_free(h, p);
	if (eddy_tag_place(tag) != 0)
		eddy_cache_free(h, p, tag);
	else
		eddy_large_free(h, p, tag);
}

size_t
eddy_size_of(const void *p)
{
	struct eddy_heap *h = eddy_heap();
	uint32_t tag;

	if (h == NULL)
		eddy_fatal("foreign pointer", p);
	tag = eddy_tag_find(h, p);
	switch (eddy_tag_kind(tag)) {
	case EDDY_TAG_SLAB:
		(void)eddy_slab_bit_of(h, p, tag);
		return eddy_row_size(eddy_tag_row(tag));
	case EDDY_TAG_RUN:
	case EDDY_TAG_HUGE:
		if ((uintptr_t)p % EDDY_PAGE != 0)
			eddy_fatal("misaligned pointer", p);
		return eddy_large_size_of(h, p, tag);
	default:
		eddy_fatal_free(h, p);
	}
}

/* ------------------------------------------------------------------ */
/* Public names */

EDDY_EXPORT void *
calloc(size_t n, size_t size)
{
	size_t total;
	void *p;

	if (__builtin_mul_overflow(n, size, &total))
		return eddy_no_memory();
	if (total <= EDDY_ROW_MAX) {
		p = eddy_malloc(total);
		return p != NULL ? memset(p, 0, total) : NULL;
	}
	p = eddy_alloc(total, 1, true);
	return p != NULL ? p : eddy_no_memory();
}

static void *
aligned(size_t align, size_t size)
{
	void *p = eddy_alloc(size, align, false);

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
};
