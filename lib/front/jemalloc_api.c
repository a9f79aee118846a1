/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * jemalloc_api.c - jemalloc's names beyond malloc's family.
 *
 * Layer     front (L6).
 * Progress  malloc_stats_print: a walk of the heap, wait-free but for page
 *           faults.  The others: see mallctl.h.
 */
#include "eddy/eddy.h"
#include "lib/ctl/mallctl.h"
#include "lib/ctl/stats.h"
#include "lib/heap/heap.h"
#include "lib/prof/sample.h"

EDDY_EXPORT void
malloc_stats_print(
    void (*write_cb)(void *, const char *), void *cbopaque, const char *opts)
{
	eddy_stats_print(eddy_heap(), write_cb, cbopaque, opts);
}

EDDY_EXPORT int
mallctl(
    const char *name, void *oldp, size_t *oldlenp, void *newp, size_t newlen)
{
	return eddy_mallctl(name, oldp, oldlenp, newp, newlen);
}

EDDY_EXPORT int
mallctlnametomib(const char *name, size_t *mibp, size_t *miblenp)
{
	return eddy_mallctl_mib(name, mibp, miblenp);
}

EDDY_EXPORT int
mallctlbymib(const size_t *mib, size_t miblen, void *oldp, size_t *oldlenp,
    void *newp, size_t newlen)
{
	return eddy_mallctl_by_mib(mib, miblen, oldp, oldlenp, newp, newlen);
}

EDDY_EXPORT int get_defrag_hint(void *p);

EDDY_EXPORT int
get_defrag_hint(void *p)
{
	struct eddy_heap *h = eddy_heap_peek();

	return h != NULL && eddy_ctl_defrag_hint(h, p);
}

/* stats_print: when the process exits, not when it ends by _exit or a signal.
 */
__attribute__((destructor)) static void
at_exit(void)
{
	struct eddy_heap *h = eddy_heap_peek();

	if (h != NULL && h->opts.stats_print)
		eddy_stats_print(h, NULL, NULL, h->opts.stats_print_opts);
	if (h != NULL && eddy_prof_is_on())
		eddy_ctl_prof_end(h);
}
