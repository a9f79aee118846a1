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
#include "lib/heap/heap.h"

void *eddy_malloc(size_t size);
void *eddy_new(size_t size);
void *eddy_new_nothrow(size_t size);
void eddy_free(void *p);

void *eddy_malloc_slow(size_t size);
void *eddy_new_slow(size_t size);
void *eddy_new_nothrow_slow(size_t size);
void eddy_free_slow(void *p);

/*
 * eddy_alloc - size bytes at a multiple of align (a power of two).
 *
 * Returns: NULL when there is no memory or no such size; errno untouched.
 */
EDDY_MUST_USE void *eddy_alloc(size_t size, size_t align, bool zero);

/* The same from an arena of the program's. */
EDDY_MUST_USE void *eddy_alloc_in(
    struct eddy_arena *a, size_t size, size_t align);

/* NULL with ENOMEM, or the end of the process where xmalloc says so. */
void *eddy_no_memory(void);

/* Real size of a live block.  Fatal: foreign or misaligned pointer. */
size_t eddy_size_of(const void *p);

#endif /* EDDY_FRONT_H */
