/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usable.h - how many CPUs the process can keep busy, how much memory it may
 * have.
 *
 * Layer     numa (L2); may include base, arch, os.
 * Progress  wait-free but for the kernel.
 * Memory    a scratch mapping, unmapped again.
 * Context   any thread, async-signal-safe; slow (files are read).
 */
#ifndef EDDY_USABLE_H
#define EDDY_USABLE_H

#include "lib/base/base.h"

/*
 * eddy_usable_cpus - the smaller of the CPUs in the affinity mask of the
 * process (its main thread's: others may be pinned to one CPU each) and its
 * CPU quota.
 *
 * root     see eddy_usable_quota.
 * Returns: >= 1; 1 where nothing can be read at all.
 */
unsigned eddy_usable_cpus(const char *root);

/*
 * eddy_usable_quota - CPU quota of the process, in CPUs, rounded up.
 *
 * root     "", or a directory that has proc/self/cgroup and sys/fs/cgroup.
 *
 * It is the smallest of cpu.max (cgroup v2) or cpu.cfs_quota_us /
 * cpu.cfs_period_us (v1) of the process's cgroup and all above it that can be
 * seen.  Hierarchies are looked for where they are mounted by custom.  Of a
 * cgroup outside the cgroup namespace of the process nothing is known.
 *
 * Returns: >= 1; EDDY_NO_QUOTA where there is none or nothing can be read.
 */
uint64_t eddy_usable_quota(const char *root);

/*
 * eddy_usable_memory - the same of memory, in bytes: memory.max (v2) or
 * memory.limit_in_bytes (v1).  0: no memory at all may be had.
 */
uint64_t eddy_usable_memory(const char *root);

#define EDDY_NO_QUOTA UINT64_MAX

/*
 * eddy_usable_path - the path of a file of the memory controller that says
 * something of the process's own cgroup, or of the nearest above it that has
 * one.
 *
 * v2, v1   its name in either hierarchy, with a slash before it; NULL: none.
 * Returns: whether there is one that can be read, whose path fits.
 */
EDDY_MUST_USE bool eddy_usable_path(
    const char *root, const char *v2, const char *v1, char *ret, size_t n);

#endif /* EDDY_USABLE_H */
