/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * zero.h - makes memory zero by writing only what may hold something else.
 *
 * Layer     os (L1).
 * Progress  blocking in the kernel only.
 * Context   any thread; async-signal-safe; keeps no file open.
 */
#ifndef EDDY_ZERO_H
#define EDDY_ZERO_H

#include "lib/base/base.h"

/*
 * eddy_os_drop - gives the memory of whole OS pages back; they read as zero.
 *
 * Emulators and sandboxes are known to answer 0 and do nothing, so a byte is
 * set before and looked at after: true means zero; false, that nothing has
 * changed.
 */
EDDY_MUST_USE bool eddy_os_drop(void *p, size_t size);

/*
 * eddy_os_zero - [p, p + size), private memory of the caller's, is zero after.
 *
 * From 1 MiB on the kernel is asked which pages are there or swapped out
 * (PAGEMAP_SCAN, Linux 6.7), and only those are written.  Where it does not
 * tell, ranges of 4 MiB and more are dropped, and all others written.
 */
void eddy_os_zero(void *p, size_t size);

#endif /* EDDY_ZERO_H */
