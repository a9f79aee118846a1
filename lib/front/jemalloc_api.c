/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * jemalloc_api.c - jemalloc's names beyond malloc's family.
 *
 * Layer     front (L6).
 * Progress  a walk of the heap, wait-free but for page faults.
 */
#include "eddy/eddy.h"
#include "lib/ctl/stats.h"
#include "lib/heap/heap.h"

EDDY_EXPORT void
malloc_stats_print(
    void (*write_cb)(void *, const char *), void *cbopaque, const char *opts)
{
	eddy_stats_print(eddy_heap_peek(), write_cb, cbopaque, opts);
}

/* stats_print: when the process exits, not when it ends by _exit or a signal.
 */
__attribute__((destructor)) static void
at_exit(void)
{
	struct eddy_heap *h = eddy_heap_peek();

	if (h != NULL && h->opts.stats_print)
		eddy_stats_print(h, NULL, NULL, h->opts.stats_print_opts);
}
