/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * records.h - which live block was sampled, by its address.
 *
 * Layer     prof (L4).
 * Progress  wait-free but for the system calls of growth.
 * Memory    tables, each twice as long as the one before, made when a block
 *           finds no place in those there are; 32 bytes a place.
 *
 * A key is an address.  Only who holds a block puts its record in or takes it
 * out, so no two threads ever look for the same key.  A block's record is in
 * one line of 8 places of some table; what is free there is claimed by CAS.
 * A thread killed here loses one place.
 *
 * Order pairs
 *   TABLE-R1 -> TABLE-A1  a table, from who made it to all.
 *   TABLE-R2 -> TABLE-A2  what a record said, read before its place is free.
 */
#ifndef EDDY_RECORDS_H
#define EDDY_RECORDS_H

#include "lib/base/base.h"

struct eddy_count;

struct eddy_record {
	struct eddy_count *count;
	size_t size; /* as asked for */
	size_t real; /* as it counts */
};

/* Returns false: no memory for a larger table. */
EDDY_MUST_USE bool eddy_records_put(
    const void *block, const struct eddy_record *r);

/* The record of a block, taken out.  Returns false: it has none. */
EDDY_MUST_USE bool eddy_records_take(
    const void *block, struct eddy_record *ret);

/*
 * eddy_records_sweep - takes out all that `is_wanted` says yes to, and gives
 * each to `take`.  The blocks are the caller's.
 */
void eddy_records_sweep(bool (*is_wanted)(void *arg, const void *block),
    void (*take)(void *arg, const void *block, const struct eddy_record *r),
    void *arg);

#endif /* EDDY_RECORDS_H */
