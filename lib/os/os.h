/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * os.h - the kernel: the system calls of the library, but for those that need
 * assembly or come before everything (lib/arch: vfork, uname).
 *
 * Layer     os (L1); may include base and arch.
 * Progress  blocking in the kernel (mmap_lock, page faults); never on another
 *           thread of this process in user space.
 * Errors    0 or a result, or a negative errno value.  errno is untouched.
 * Context   any thread, async-signal-safe, vfork children, before relocation.
 */
#ifndef EDDY_OS_H
#define EDDY_OS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/base.h"

/* Address space only: no access, not charged.  NULL when refused. */
void *eddy_os_reserve(size_t size);

/* Gives access to pages of a reservation.  Idempotent. */
EDDY_MUST_USE int eddy_os_commit(void *p, size_t size);

/* Readable only, all zero: costs no memory until eddy_os_commit. */
EDDY_MUST_USE int eddy_os_commit_readonly(void *p, size_t size);

/* Maps fresh zero pages at p; -EEXIST when something else lives there. */
EDDY_MUST_USE int eddy_os_map_at(void *p, size_t size);

void eddy_os_unmap(void *p, size_t size);

/*
 * eddy_os_move - moves the pages of [from, from + size) to `to`, which must be
 * the caller's as well; `from` stays mapped and reads as zero.
 *
 * Returns: 0, or an error with nothing moved (kernels before 5.7, locked or
 *          shared pages).  Then parts of the target may have been unmapped.
 */
EDDY_MUST_USE int eddy_os_move(void *from, void *to, size_t size);

/* Drops the pages.  0 says that the kernel accepted, not that they are zero. */
EDDY_MUST_USE int eddy_os_discard(void *p, size_t size);

/* Size of an OS page, from the auxiliary vector; 4096 where it is silent. */
size_t eddy_os_page_size(void);

/* RLIMIT_AS in bytes, SIZE_MAX when there is none. */
size_t eddy_os_address_limit(void);

/* One more than the largest CPU number the kernel can ever report; 0 when no
 * source tells. */
unsigned eddy_os_cpu_limit(void);

/* Registers the process for MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ. */
EDDY_MUST_USE int eddy_os_membarrier_register(void);

/*
 * eddy_os_membarrier - ends the restartable sections that threads of this
 * process are in on a CPU, and makes their stores visible.  A CPU that is
 * offline has none.
 */
EDDY_MUST_USE int eddy_os_membarrier(unsigned cpu);

/* The CPU that the calling thread runs on. */
EDDY_MUST_USE int eddy_os_cpu(void);

/* Seconds of a clock that only goes forward; coarse. */
uint32_t eddy_os_seconds(void);

/* Whether the kernel knows rseq, by a call that registers nothing. */
bool eddy_os_has_rseq(void);

/*
 * eddy_os_rseq_register - makes sure that area is the calling thread's rseq
 * area, registered by us now or by somebody before.
 *
 * Returns: 0, or an error: another area is registered, or none can be.
 */
EDDY_MUST_USE int eddy_os_rseq_register(void *area, uint32_t signature);

ssize_t eddy_os_write(int fd, const void *p, size_t n);
ssize_t eddy_os_read_file(const char *path, char *buf, size_t n);
ssize_t eddy_os_readlink(const char *path, char *buf, size_t n);

/* 16 random bytes of the auxiliary vector folded into one word; 0 if none. */
uint64_t eddy_os_random(void);

/* As abort(3), without its lock: the handler of the program, then the default
 * action.  Never returns. */
_Noreturn void eddy_os_abort(void);

#endif /* EDDY_OS_H */
