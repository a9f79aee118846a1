/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * advise.h - what the kernel is told about memory, and may ignore: its name,
 * whether it may be of huge pages.
 *
 * Layer     os (L1).
 * Progress  blocking in the kernel only.
 * Context   any thread; async-signal-safe.
 * Memory    none.
 */
#ifndef EDDY_ADVISE_H
#define EDDY_ADVISE_H

#include "lib/base/base.h"

/*
 * eddy_os_name - how /proc/PID/maps calls private anonymous memory, mapped
 * already; a name of its own makes it a mapping of its own.
 *
 * name: less than 80 characters, none of \ ` $ [ ].
 * Where the kernel has no names (before 5.17, or built without) it is asked
 * once a process.
 */
void eddy_os_name(void *p, size_t size, const char *name);

/*
 * eddy_os_huge - whether the kernel may make the memory of huge pages: yes,
 * even where only memory that asks for them gets some; or no.
 *
 * Returns: 0; -EINVAL: the kernel has none; -ENOMEM: parts are not mapped, and
 *          the others were told; or there would be too many mappings.
 */
EDDY_MUST_USE int eddy_os_huge(void *p, size_t size, bool wanted);

/*
 * eddy_os_no_dump, eddy_os_no_fork - leaves the memory out of core dumps;
 * leaves it out of what a forked child gets.
 *
 * Returns: 0, or an error: it is in them.
 */
EDDY_MUST_USE int eddy_os_no_dump(void *p, size_t size);
EDDY_MUST_USE int eddy_os_no_fork(void *p, size_t size);

/*
 * eddy_os_collapse - makes huge pages of small ones that are there.
 *
 * Returns: 0; -EINVAL: the kernel cannot (before 6.1), or there are none; other
 *          errors: not all, for want of memory.
 */
EDDY_MUST_USE int eddy_os_collapse(void *p, size_t size);

/*
 * eddy_os_huge_always - whether the kernel makes huge pages of memory that did
 * not ask for them, in this process.  Reads three files of /sys; true where
 * these cannot be read.
 */
bool eddy_os_huge_always(void);

/* Bytes of such a page; 2 MiB where the kernel does not say. */
size_t eddy_os_huge_size(void);

#endif /* EDDY_ADVISE_H */
