/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hooks_default.h - the hooks that arenas have by default, as programs see
 * them.
 *
 * Layer     heap (L3).
 * Progress  wait-free but for system calls.
 * Memory    none.
 *
 * An arena that has them calls none of them: NULL stands for them inside.  They
 * are there for programs that put a function of their own before one of them.
 * So the default alloc answers the request of ours that the calling thread is
 * in the midst of with the very place that is to be filled; any other call gets
 * a mapping elsewhere.  The others do on any memory what is done here without
 * hooks; dalloc takes mappings, and leaves what lies in the range.  All of them
 * ignore their first argument and the arena.
 */
#ifndef EDDY_HOOKS_DEFAULT_H
#define EDDY_HOOKS_DEFAULT_H

#include "jemalloc/jemalloc.h"
#include "lib/heap/heap.h"

/* Chunks for which this thread calls a hook. */
struct eddy_request {
	struct eddy_request *outer;
	uint32_t chunk;
	uint32_t n;
	bool goes;   /* their memory is to go; else it is to come */
	bool served; /* by the default hook, or a ready-made one */
};

void eddy_request_begin(struct eddy_request *r);
void eddy_request_end(struct eddy_request *r);

/* The request that the thread is in the midst of, if that is for just these n
 * chunks to go; NULL: it is not. */
struct eddy_request *eddy_request_for(uint32_t chunk, size_t n);

/* Gives back what lies at an address; true: it reads as zero. */
EDDY_MUST_USE bool eddy_hooks_drop(struct eddy_heap *h, void *p, size_t size);

/* Hooks that let memory be told apart, and joined, as it pleases. */
extent_split_t eddy_hooks_split;
extent_merge_t eddy_hooks_merge;

#endif /* EDDY_HOOKS_DEFAULT_H */
