/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * eddy.h - what eddy offers beyond malloc(3), whose names are in <stdlib.h>
 * and <malloc.h>.
 */
#ifndef EDDY_EDDY_H
#define EDDY_EDDY_H

#define EDDY_VERSION_MAJOR  0
#define EDDY_VERSION_MINOR  1
#define EDDY_VERSION_PATCH  0
#define EDDY_VERSION_STRING "0.1.0"

#include <stddef.h>
#include <stdlib.h> /* also for glibc's __THROW: no exception comes of it */

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library that runs: "MAJOR.MINOR.PATCH". */
extern const char *const eddy_version;

/*
 * malloc_conf - options of the program: "name:value,name:value".
 *
 * Defined by a program that wants some, read once, inside the first call that
 * allocates.  See eddy.conf(5).
 */
extern const char *malloc_conf;

/*
 * malloc_stats_print - writes statistics of the heap.
 *
 *     malloc_stats_print(NULL, NULL, NULL);     text, on standard error
 *     malloc_stats_print(put, stream, "J");     JSON, through put
 *
 * To see where memory is: with the program, in caches, in free pages, in
 * metadata.
 *
 * write_cb   called with cbopaque and pieces of the text, each ending in a
 *            null byte, some hundred bytes long and cut anywhere; NULL writes
 *            to standard error.  A piece is valid until the callback returns.
 * opts       letters: J for JSON; g leaves out options, a the caches of CPUs,
 *            b the small size classes, l runs and huge blocks.  Others are
 *            ignored.  NULL: none.
 *
 * THREADS    MT-safe, async-signal-safe if write_cb is (8 KiB of stack); waits
 *            for nobody.  Numbers of a heap in motion are near the truth.
 * COST       a look at every chunk, slab and CPU in use; no allocation.
 * FORK       as at any other time.
 * SINCE      0.1
 * SEE ALSO   malloc_stats_print(3), mallinfo(3), eddy.conf(5)
 */
void malloc_stats_print(
    void (*write_cb)(void *, const char *), void *cbopaque, const char *opts);

/*
 * free_sized, free_aligned_sized - free(3); the sizes are not looked at.
 *
 * C23's, declared here for a <stdlib.h> that has them not yet; one that has
 * says the same.  THREADS, FORK as free.
 * SINCE      0.1
 * SEE ALSO   eddy(3)
 */
void free_sized(void *p, size_t size) __THROW;
void free_aligned_sized(void *p, size_t alignment, size_t size) __THROW;

#ifdef __cplusplus
}
#endif

#endif /* EDDY_EDDY_H */
