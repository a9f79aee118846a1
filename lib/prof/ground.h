/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ground.h - memory of the profile itself: apart from the heap, never given
 * back.
 *
 * Layer     prof (L4).
 * Progress  lock-free but for system calls.  map: wait-free but for them.
 * Memory    mappings of 1 MiB and more; what a killed thread had just taken is
 *           lost.
 *
 * Order pairs
 *   GROUND-R1 -> GROUND-A1  a mapping, from who made it to all.
 */
#ifndef EDDY_GROUND_H
#define EDDY_GROUND_H

#include "lib/base/base.h"

/* n bytes, zero, aligned to 16; n is 16 KiB at most.  NULL: no memory. */
EDDY_MUST_USE void *eddy_ground_take(size_t n);

/* A mapping of its own, of whole pages, zero; and its end. */
EDDY_MUST_USE void *eddy_ground_map(size_t n);
void eddy_ground_unmap(void *p, size_t n);

/* Bytes mapped by all of these. */
size_t eddy_ground_bytes(void);

#endif /* EDDY_GROUND_H */
