/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * zero.h - makes memory zero by writing only what may hold something else.
 *
 * Layer     os (L1).
 * Progress  blocking in the kernel only.
 * Context   any thread; async-signal-safe; keeps no file open.
 * Memory    private and anonymous, mapped readable and writable: a page that
 *           no page table names reads as zero.  That is not so of files.
 *
 * No page is taken for zero because a call was made.  Of pages that are left
 * alone the kernel has said, each time and page by page, that they hold no
 * memory: an answer that leaves one out, or that was never written, is none.
 * And whoever answers must have told first of a page that was just written;
 * that is tried once a process, for an emulator that does not know its pages
 * will not know them later either.
 */
#ifndef EDDY_ZERO_H
#define EDDY_ZERO_H

#include "lib/base/base.h"

/*
 * eddy_os_drop - gives the memory of whole OS pages back; they read as zero.
 *
 * Emulators and sandboxes are known to answer 0 and do nothing, and the kernel
 * rounds down what ends within a huge page of hugetlbfs; so the last byte is
 * set before and looked at after: true means zero; false, that it may hold
 * anything.  A look may bring a huge page, where the kernel has no huge page of
 * zeros; so 2 MiB and more are dropped once more after it.
 */
EDDY_MUST_USE bool eddy_os_drop(void *p, size_t size);

/*
 * eddy_os_zero - [p, p + size) of the caller's is zero after.
 *
 * From 1 MiB on the kernel is asked which pages are there or swapped out, and
 * only those are written: by PAGEMAP_SCAN (Linux 6.7), else by the entries of
 * /proc/self/pagemap, of which there is one a page, so that 4 MiB and more that
 * look untouched are dropped instead.  Where neither tells, 4 MiB and more are
 * dropped, and the rest is written.
 *
 * Written pages stay there, warm for who touches them.  Where most of them are
 * found zero, so that nobody did since they were written here, all is dropped:
 * else what was touched once would cost for ever.
 *
 * keep: nothing is dropped.
 */
void eddy_os_zero(void *p, size_t size, bool keep);

/* The same, and the kernel is asked nothing. */
void eddy_os_write_zeros(void *p, size_t size);

/*
 * eddy_os_give_back - [p, p + size) of the caller's is zero after, and its
 * whole OS pages are the kernel's, if that takes them; any size.
 */
void eddy_os_give_back(void *p, size_t size);

/* Says that so many bytes were to be zero, whether written or not. */
void eddy_os_zero_wanted(size_t size);

/* Bytes wanted so far: those that were written, and the others. */
struct eddy_zero_counts {
	uint64_t written;
	uint64_t skipped;
};
struct eddy_zero_counts eddy_os_zero_counts(void);

#endif /* EDDY_ZERO_H */
