/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * excluded.h - CPUs that housekeeping keeps away from: no background thread
 * runs there, no interrupt is sent there.
 *
 * Layer     numa (L2); may include base, arch, os.
 * Progress  wait-free but for the kernel.
 * Memory    one static set; the first who ask read the files, each for itself,
 *           and write the same words.
 * Context   any thread, async-signal-safe; the first call reads files and
 *           needs 1 KiB of stack.
 *
 * Order pairs
 *   EXCL-R1 -> EXCL-A1  the words of a set, before it is known.
 */
#ifndef EDDY_EXCLUDED_H
#define EDDY_EXCLUDED_H

#include "lib/base/atomic.h"
#include "lib/base/base.h"
#include "numa/topology.h"

/* A set of CPUs: bits by number. */
#define EDDY_CPU_WORDS (EDDY_MAX_CPUS / 64)

struct eddy_excluded {
	/* 0: not read yet.  W, R: any thread.  O: EXCL-R1 -> EXCL-A1. */
	_Atomic uint32_t known;
	/* W, R: any thread, by RMW.  O: EXCL-R1 -> EXCL-A1. */
	_Atomic uint64_t word[EDDY_CPU_WORDS];
};

/*
 * eddy_cpu_excluded - whether a CPU is to be left alone.
 *
 * text  the option exclude_cpus, the same at every call: a list as below;
 *       "none"; "": what the kernel sets apart, by isolcpus and nohz_full.
 */
bool eddy_cpu_excluded(const char *text, unsigned cpu);

/* Takes the excluded CPUs out of a set. */
void eddy_excluded_remove(const char *text, uint64_t *set);

/*
 * eddy_excluded_has - the same of a set of the caller's.
 *
 * root  "", or a directory that has sys/devices/system/cpu.  A list there
 *       counts as far as it can be read.
 */
bool eddy_excluded_has(
    struct eddy_excluded *e, const char *text, const char *root, unsigned cpu);

/*
 * eddy_cpu_list_read - adds the CPUs of a list such as "0-3|8" to a set.
 *
 * set NULL: looks at the form only.
 * Returns:  0; -EINVAL: not a list, or one with CPUs that no kernel has; the
 *           set is then as it was.
 */
EDDY_MUST_USE int eddy_cpu_list_read(uint64_t *set, const char *text);

/* Whether a text may be the option exclude_cpus: 0 or -EINVAL. */
EDDY_MUST_USE int eddy_excluded_check(const char *text);

#endif /* EDDY_EXCLUDED_H */
