/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * front.h - malloc's family behind its public names.
 *
 * Layer     front (L6).
 * Progress  all but the system calls of growth: lock-free.
 * Context   any thread, signal handlers, before constructors, after exit
 *           began.  free keeps errno; the others set it only when they fail.
 *
 * eddy_malloc, eddy_new, eddy_new_nothrow and eddy_free are the hit paths in
 * lib/arch; what misses there comes to the _slow functions here.
 */
#ifndef EDDY_FRONT_H
#define EDDY_FRONT_H

#include "lib/base/base.h"
#include "lib/heap/explicit.h"
#include "lib/heap/heap.h"

void *eddy_malloc(size_t size);
void *eddy_new(size_t size);
void *eddy_new_nothrow(size_t size);
void eddy_free(void *p);

/* What the hit paths send to C; eddy_malloc_missed: outside any region, with
 * errno. */
void *eddy_malloc_slow(size_t size);
void *eddy_malloc_missed(size_t size);
void *eddy_new_slow(size_t size);
void *eddy_new_nothrow_slow(size_t size);
void eddy_free_slow(void *p);

/*
 * eddy_alloc - size bytes at a multiple of align (a power of two).
 *
 * Returns: NULL when there is no memory or no such size; errno untouched.
 */
EDDY_MUST_USE void *eddy_alloc(size_t size, size_t align, bool zero);

/* The same of what the hit path has missed, and counted: see
 * lib/prof/sample.h. */
EDDY_MUST_USE void *eddy_alloc_missed(size_t size);

/* As eddy_alloc, from an arena of the program's. */
EDDY_MUST_USE void *eddy_alloc_in(
    struct eddy_arena *a, size_t size, size_t align, bool zero);

/*
 * eddy_alloc_of - the same, from a home or a group of hinted objects if that
 * has memory; where the thread has an arena of its own, from there.
 */
EDDY_MUST_USE void *eddy_alloc_of(
    uint32_t number, size_t size, size_t align, bool zero);

/*
 * eddy_real_size - what a request is rounded up to: malloc_usable_size of its
 * block.
 *
 * Returns: 0 when there is no such size.
 */
size_t eddy_real_size(const struct eddy_heap *h, size_t size, size_t align);

/* The same, wherever the thread's malloc takes it from: inside a section of a
 * region what both that and the heap have. */
size_t eddy_sure_size(const struct eddy_heap *h, size_t size, size_t align);

/*
 * Whether all of a program's options that this version does not know, from the
 * known bytes on, is left at zero.
 */
static inline bool
eddy_is_plain(const void *options, size_t known, size_t size)
{
	const char *p = options;

	for (size_t i = known; i < size; i++)
		if (p[i] != 0)
			return false;
	return true;
}

/* A block as mallocx's flags want it. */
struct eddy_wish {
	size_t align;
	bool zero;
	bool uncached; /* past the caches of CPUs, by one of these: */
	struct eddy_explicit *cache; /* NULL: none */
	struct eddy_arena *arena;    /* NULL: the thread's */
	enum eddy_life life; /* where neither is named: of the block it was */
};

/*
 * eddy_alloc_as, eddy_realloc_as, eddy_free_as - the family for wishes: a block
 * of at least one byte; the same block, resized or moved; its end, which looks
 * at caches alone.
 *
 * Returns: NULL when there is no memory or no such size: errno untouched, the
 *          old block as it was.
 */
EDDY_MUST_USE void *eddy_alloc_as(const struct eddy_wish *w, size_t size);
EDDY_MUST_USE void *eddy_realloc_as(
    const struct eddy_wish *w, void *p, size_t size);
void eddy_free_as(const struct eddy_wish *w, void *p);

/* A large block of `old` bytes becomes `size` bytes long where it is; false: it
 * is as it was. */
EDDY_MUST_USE bool eddy_resize(
    struct eddy_heap *h, void *p, size_t old, size_t size, bool zero);

/*
 * eddy_pressure_tell - asks the program to drop its caches: so many bytes are
 * wanted, 0 by others.
 *
 * Returns: whether anybody was asked; false within such a call.
 */
bool eddy_pressure_tell(size_t wanted);

/* The program has created a thread, by which its main thread may end before
 * the process does. */
void eddy_pressure_note_thread(void);

/*
 * Inside a section of a region (lib/heap/region.h): operator new of what the
 * hit path sent to C; any request.  In a handler that has interrupted an
 * allocation of the region it is served by the heap.
 *
 * Returns: NULL when the region cannot grow; errno untouched.
 */
EDDY_MUST_USE void *eddy_region_new(size_t size);
EDDY_MUST_USE void *eddy_region_section(size_t size, size_t align, bool zero);

/* realloc and xallocx of an object of a region; free in the checked mode.
 * eddy_region_realloc returns NULL as eddy_realloc_as. */
EDDY_MUST_USE void *eddy_region_realloc(
    struct eddy_heap *h, void *p, size_t size, size_t align, bool zero);
size_t eddy_region_xalloc(struct eddy_heap *h, void *p, size_t size,
    size_t extra, size_t align, bool zero);
void eddy_region_check(struct eddy_heap *h, const void *place, uint32_t tag);

/* Bytes that junk fills with: those that jemalloc uses. */
#define EDDY_FILL_ALLOC 0xa5
#define EDDY_FILL_FREE  0x5a

/* What is handed out is filled, if options say so. */
void eddy_fill_alloc(const struct eddy_heap *h, void *p, size_t size);

/* NULL with ENOMEM, or the end of the process where xmalloc says so. */
void *eddy_no_memory(void);

/* The same without errno. */
void *eddy_no_memory_quiet(void);

/* Real size of a live block.  Fatal: foreign or misaligned pointer. */
size_t eddy_size_of(const void *p);

#endif /* EDDY_FRONT_H */
