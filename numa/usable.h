/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usable.h - how many CPUs the process can keep busy.
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
 * process (its main thread) and its CPU quota, rounded up.
 *
 * root     "", or a directory that has proc/self/cgroup and sys/fs/cgroup.
 *
 * The quota is the smallest of cpu.max (cgroup v2) or cpu.cfs_quota_us /
 * cpu.cfs_period_us (v1) of the process's cgroup and all above it that can be
 * seen; none where nothing can be read.
 *
 * Returns: >= 1.
 */
unsigned eddy_usable_cpus(const char *root);

#endif /* EDDY_USABLE_H */
