/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * file.h - files of the library's own as memory.
 *
 * Layer     os (L1).
 * Progress  blocking in the kernel only: on disks as well.
 * Context   any thread; async-signal-safe.
 * Memory    shared mappings.  None of these functions does anything to a file
 *           that was not made by eddy_os_file_make.
 *
 * A descriptor is kept only from make to close.  A program that closes numbers
 * which are not its own may close it in between and open something else under
 * that number: what is not empty is not made longer, and what is no longer of
 * the length that was given to it is not mapped.
 */
#ifndef EDDY_FILE_H
#define EDDY_FILE_H

#include "lib/base/base.h"

/*
 * eddy_os_file_make - a new file without a name, of `size` bytes that take no
 * room yet: in a directory, or (NULL) in memory.
 *
 * Returns: a descriptor, or an error; -EFBIG where RLIMIT_FSIZE forbids it.
 */
EDDY_MUST_USE int eddy_os_file_make(const char *directory, size_t size);

void eddy_os_file_close(int fd);

/*
 * eddy_os_file_try - whether the file can be memory: its first page is mapped,
 * written and given back.
 *
 * punches: whether the file system then has its room again.
 * Returns: 0; -ENOSPC: not even that page has room; -ENODEV: it cannot be
 *          mapped; others.
 */
EDDY_MUST_USE int eddy_os_file_try(int fd, bool *punches);

/*
 * eddy_os_file_map - the whole file at p, without access (see eddy_os_commit),
 * and not in children that are forked from then on.
 *
 * replace: instead of what the caller has there; else nothing is there.
 * Returns: 0; an error: what was replaced may be unmapped.
 */
EDDY_MUST_USE int eddy_os_file_map(int fd, void *p, size_t size, bool replace);

/* Undoes that; keep: the addresses stay the caller's, without access. */
EDDY_MUST_USE int eddy_os_file_unmap(void *p, size_t size, bool keep);

/*
 * eddy_os_file_fill - gives each OS page that the bytes touch its room in the
 * file, so that to touch it is no SIGBUS.  The bytes hold nothing of interest;
 * zeros stay zeros.
 *
 * Returns: 0; -ENOSPC: there is no room for all.
 */
EDDY_MUST_USE int eddy_os_file_fill(void *p, size_t size);

/* Whole OS pages of a file that punches: given back; they read as zero. */
EDDY_MUST_USE bool eddy_os_file_punch(void *p, size_t size);

/*
 * eddy_os_file_write_back - writes pages to the disk and lets go of them.  They
 * keep what they hold.
 */
EDDY_MUST_USE bool eddy_os_file_write_back(void *p, size_t size);

#endif /* EDDY_FILE_H */
