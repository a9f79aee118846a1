/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * policy.h - memory policies of the kernel: which node a page comes from.
 *
 * Layer     numa (L2); may include base, arch, os.
 * Progress  blocking in the kernel (mmap_lock; move: copying pages); never on
 *           another thread of this process in user space.
 * Memory    none of its own.
 * Errors    0 or a result, or a negative errno value.  errno is untouched.
 *           -EINVAL: no such node, one without memory, or outside the cpuset.
 *           -ENOSYS: a kernel without NUMA.  -EPERM: a sandbox refuses.
 * Context   any thread, async-signal-safe.
 *
 * Ranges are rounded inwards to OS pages; what is left empty is a success.
 * One call makes one VMA of the range, or splits one that is larger.
 */
#ifndef EDDY_POLICY_H
#define EDDY_POLICY_H

#include "lib/base/base.h"

/* Pages not there yet come from node while it has room, else from others. */
EDDY_MUST_USE int eddy_policy_bind(void *p, size_t size, unsigned node);

/* Page by page from the nodes of a set of EDDY_MAX_NODES bits. */
EDDY_MUST_USE int eddy_policy_interleave(
    void *p, size_t size, const uint64_t *nodes);

/* As eddy_policy_bind, and moves the pages that are there and nobody else's;
 * those that cannot be moved stay, and this is no error. */
EDDY_MUST_USE int eddy_policy_move(void *p, size_t size, unsigned node);

/* The range follows the thread that touches it again. */
EDDY_MUST_USE int eddy_policy_reset(void *p, size_t size);

/* Mode of the calling thread's own policy, 0 (MPOL_DEFAULT) for none. */
EDDY_MUST_USE int eddy_policy_of_process(void);

/*
 * eddy_policy_nodes_allowed - nodes that the cpuset of the process allows.
 *
 * nodes: EDDY_MAX_NODES bits; untouched on failure.
 */
EDDY_MUST_USE int eddy_policy_nodes_allowed(uint64_t *nodes);

/*
 * eddy_policy_nodes_of - asks where n pages lie.
 *
 * nodes: n numbers; of each page its node, or -ENOENT where none is present,
 *        -EFAULT where nothing is mapped or it is the zero page.
 */
EDDY_MUST_USE int eddy_policy_nodes_of(
    void *const *pages, int *nodes, size_t n);

#endif /* EDDY_POLICY_H */
