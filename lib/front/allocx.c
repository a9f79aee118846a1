/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * allocx.c - mallocx and its relatives: malloc's family with flags.
 *
 * Layer     front (L6).
 * Progress  as their blocks' (front.h).
 *
 * Flags, from the lowest bit: 6 of the logarithm of an alignment; one for
 * zeros; one unused; 12 of a cache, 12 of an arena, where 0 means the thread's
 * own.  An arena's field is its number (index + 1).
 */
#include "eddy/eddy.h"
#include "lib/front/front.h"

#include <errno.h>
#include <string.h>

#include "lib/ctl/ctl_gen_names.h"
#include "lib/heap/arena.h"
#include "lib/heap/cpu_cache.h"
#include "lib/heap/own.h"
#include "lib/heap/pagemap.h"
#include "lib/heap/reset.h"
#include "lib/os/fatal.h"
#include "lib/prof/sample.h"

#define LG_ALIGN_MASK 0x3f
#define ZERO          0x40
#define CACHE_SHIFT   8
#define CACHE_MASK    0xfff
#define CACHE_NONE    1
#define ARENA_SHIFT   20
/* Alignments up to 2 KiB, and zeros. */
#define PLAIN_FLAGS (ZERO | 15u)
#define PLAIN_LG    11

/*
 * The arena that a field names.  A home's is made now if need be, and leads
 * past the caches, which hold memory of the CPU's own home alone.  NULL: the
 * thread's; also where there is none of that number.
 */
static struct eddy_arena *
find_arena(struct eddy_wish *w, uint32_t number)
{
	struct eddy_heap *h = eddy_heap();

	if (h == NULL || number > EDDY_MAX_ARENAS)
		return NULL;
	if (number > h->n_homes)
		return eddy_arena_open(h, number);
	if (!w->uncached && eddy_cache_home(h) == number - 1)
		return NULL;
	return eddy_arena_of_home(h, number - 1);
}

/* Field by field: a copy of what was just written waits for it. */
static inline void
read_flags(struct eddy_wish *w, int flags)
{
	unsigned f = (unsigned)flags;
	unsigned cache = f >> CACHE_SHIFT & CACHE_MASK;
	unsigned arena = f >> ARENA_SHIFT;

	w->align = (size_t)1 << (f & LG_ALIGN_MASK);
	w->zero = (f & ZERO) != 0;
	w->uncached = cache != 0;
	w->cache = NULL;
	w->arena = NULL;
	w->life = EDDY_LIFE_UNKNOWN;
	if (eddy_unlikely(cache > CACHE_NONE))
		w->cache = eddy_explicit_find(cache - CACHE_NONE - 1);
	if (eddy_unlikely(arena != 0))
		w->arena = find_arena(w, arena);
}

/* A small block of no arena and cache: where malloc has its own. */
static inline void *
plain(size_t size, size_t align, bool zero)
{
	int kept = errno;
	void *p = eddy_malloc(eddy_align_up(size != 0 ? size : 1, align));

	if (eddy_unlikely(p == NULL))
		errno = kept;
	else if (zero)
		memset(p, 0, eddy_size_of(p));
	return p;
}

EDDY_EXPORT void *
mallocx(size_t size, int flags)
{
	struct eddy_wish w;
	void *p;

	/* Inside a section of a region, unless an arena or a cache is named. */
	if (eddy_unlikely(eddy_own.scope != NULL) &&
	    (unsigned)flags >> CACHE_SHIFT == 0) {
		p = eddy_region_section(size,
		    (size_t)1 << (flags & LG_ALIGN_MASK), (flags & ZERO) != 0);
		return eddy_likely(p != NULL) ? p : eddy_no_memory_quiet();
	}
	/* A sample shall know what was asked for, and not a multiple of it. */
	if (((unsigned)flags & ~PLAIN_FLAGS) == 0 &&
	    (flags & LG_ALIGN_MASK) <= PLAIN_LG && size <= EDDY_SMALL_MAX &&
	    ((flags & LG_ALIGN_MASK) == 0 || !eddy_prof_counts()))
		return plain(size, (size_t)1 << (flags & LG_ALIGN_MASK),
		    (flags & ZERO) != 0);
	read_flags(&w, flags);
	p = eddy_alloc_as(&w, size);
	return eddy_likely(p != NULL) ? p : eddy_no_memory_quiet();
}

#ifdef EDDY_SMALLOCX
/* Of jemalloc's: a block and its real size; the name ends with the commit of
 * JEMALLOC_VERSION_GID. */
#	define smallocx smallocx_0000000000000000000000000000000000000000

struct sized {
	void *ptr;
	size_t size;
};

EDDY_EXPORT struct sized smallocx(size_t size, int flags);

EDDY_EXPORT struct sized
smallocx(size_t size, int flags)
{
	void *p = mallocx(size, flags);

	return (struct sized){p, p != NULL ? eddy_size_of(p) : 0};
}
#endif

/* mallctl's experimental.batch_alloc: answered here, where blocks are made. */
struct batch {
	void **ptrs;
	size_t num;
	size_t size;
	int flags;
};

int
eddy_ctl_batch_alloc(struct eddy_ctl *c)
{
	struct batch b;
	size_t n = 0;

	if (c->oldp == NULL || c->oldlenp == NULL || *c->oldlenp != sizeof(n)) {
		if (c->oldlenp != NULL)
			*c->oldlenp = 0;
		return EINVAL;
	}
	if (c->newp == NULL || c->newlen != sizeof(b))
		return EINVAL;
	memcpy(&b, c->newp, sizeof(b));
	while (n < b.num && (b.ptrs[n] = mallocx(b.size, b.flags)) != NULL)
		n++;
	return eddy_ctl_give(c, &n, sizeof(n));
}

EDDY_EXPORT void *
rallocx(void *p, size_t size, int flags)
{
	struct eddy_wish w;

	read_flags(&w, flags);
	p = eddy_realloc_as(&w, p, size);
	return eddy_likely(p != NULL) ? p : eddy_no_memory_quiet();
}

/* A large block's new size, at most max, at least min if that can be. */
static size_t
resize(
    struct eddy_heap *h, void *p, size_t old, size_t min, size_t max, bool zero)
{
	/* Less than a large block it does not become. */
	if (max < EDDY_LARGE_MIN)
		return old;
	if (max > old && eddy_resize(h, p, old, max, zero))
		return max;
	if (min > old && min < max && eddy_resize(h, p, old, min, zero))
		return min;
	if (max < old && eddy_resize(h, p, old, max, false))
		return max;
	return old;
}

EDDY_EXPORT size_t
xallocx(void *p, size_t size, size_t extra, int flags)
{
	struct eddy_heap *h = eddy_heap();
	size_t old = eddy_size_of(p);
	struct eddy_wish w;

	read_flags(&w, flags);
	if (eddy_tag_kind(eddy_tag_find(h, p)) == EDDY_TAG_REGION)
		return eddy_region_xalloc(h, p, size, extra, w.align, w.zero);
	/* Small objects never change their class, nor does what options fill.
	 */
	if (old < EDDY_LARGE_MIN || size > EDDY_SIZE_LIMIT || !h->cached ||
	    (uintptr_t)p % w.align != 0)
		return old;
	if (extra > EDDY_SIZE_LIMIT - size)
		extra = EDDY_SIZE_LIMIT - size;
	return resize(h, p, old, eddy_real_size(h, size, w.align),
	    eddy_real_size(h, size + extra, w.align), w.zero);
}

EDDY_EXPORT size_t
sallocx(const void *p, int flags)
{
	(void)flags;
	return p != NULL ? eddy_size_of(p) : 0;
}

static inline void
free_by(void *p, int flags)
{
	struct eddy_wish w;

	if (((unsigned)flags >> CACHE_SHIFT & CACHE_MASK) == 0) {
		eddy_free(p);
		return;
	}
	/* The block knows its arena. */
	read_flags(&w, flags & ((1 << ARENA_SHIFT) - 1));
	eddy_free_as(&w, p);
}

EDDY_EXPORT void
dallocx(void *p, int flags)
{
	if (eddy_likely(p != NULL))
		free_by(p, flags);
}

EDDY_EXPORT void
sdallocx(void *p, size_t size, int flags)
{
	struct eddy_heap *h = eddy_heap_peek();

	if (p == NULL)
		return;
	if (h != NULL && eddy_unlikely(h->opts.check) &&
	    eddy_tag_kind(eddy_tag_find(h, p)) != EDDY_TAG_REGION &&
	    eddy_real_size(h, size, (size_t)1 << (flags & LG_ALIGN_MASK)) !=
		eddy_size_of(p))
		eddy_fatal("wrong size", p);
	free_by(p, flags);
}

EDDY_EXPORT size_t
nallocx(size_t size, int flags)
{
	struct eddy_heap *h = eddy_heap();
	size_t align = (size_t)1 << (flags & LG_ALIGN_MASK);

	if (h == NULL)
		return 0;
	/* As mallocx: unless an arena or a cache is named. */
	return (unsigned)flags >> CACHE_SHIFT == 0
		   ? eddy_sure_size(h, size, align)
		   : eddy_real_size(h, size, align);
}
