/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * thp.h - transparent huge pages, and memory that was given back.
 *
 * Layer     heap (L3).
 * Progress  wait-free but for system calls; a step is repeated only where
 *           another has raised the same mark.
 * Memory    a number in each segment, one in the heap.
 *
 * Where the system makes huge pages unasked for (mode always), khugepaged makes
 * one of any 2 MiB that hold a page, and fills what was given back of it with
 * zeros again.  So before pages of a chunk that stays in use are given back,
 * their segment is told to have no huge pages from its beginning to that chunk
 * (`broken`).  One border a segment, which only rises: one mapping more, and as
 * claims take the lowest place, what lies beyond it, where the heap grows, has
 * huge pages as before.  Huge pages that are there stay until they are broken,
 * and whole ones are given back without a mark.
 *
 * Option thp: `default` is that; `always` and `never` tell the kernel once for
 * the whole range, and mark nothing.
 */
#ifndef EDDY_THP_H
#define EDDY_THP_H

#include "lib/heap/heap.h"

/* What `huge_page` of the heap may be besides the size of one. */
#define EDDY_THP_UNKNOWN 0
#define EDDY_THP_NO_RULE 1

/* Tells the kernel about the range of a heap that is being built. */
void eddy_thp_begin(struct eddy_heap *h);

/* Memory in hand is about to be given back, all of it in one segment. */
void eddy_thp_break(struct eddy_heap *h, void *p, size_t size);

/* Memory in hand was mapped anew, or brought what its old place was told. */
void eddy_thp_again(struct eddy_heap *h, void *p, size_t size);

#endif /* EDDY_THP_H */
