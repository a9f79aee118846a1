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

/* The same at p, where nothing is; -EEXIST when something lives there. */
EDDY_MUST_USE int eddy_os_reserve_at(void *p, size_t size);

/* Gives access to pages of a reservation.  Idempotent. */
EDDY_MUST_USE int eddy_os_commit(void *p, size_t size);

/* Readable only, all zero: costs no memory until eddy_os_commit. */
EDDY_MUST_USE int eddy_os_commit_readonly(void *p, size_t size);

/* Maps fresh zero pages at p; -EEXIST when something else lives there. */
EDDY_MUST_USE int eddy_os_map_at(void *p, size_t size);

/*
 * eddy_os_map_huge - replaces a part of a reservation by huge pages of 2 MiB
 * from the system's pool, of which so many are set aside.
 *
 * Pre:     p and size are multiples of 2 MiB, and the caller's alone.
 * Returns: 0; or an error, and what is there reads as zero and is accessible,
 *          or as it was: eddy_os_commit is good for both.  -EEXIST: something
 *          foreign lies there.
 */
EDDY_MUST_USE int eddy_os_map_huge(void *p, size_t size);

/* Huge pages of 1 GiB from the system's pool, size being a multiple of that,
 * wherever there is room; NULL: there are not so many. */
void *eddy_os_map_giant(size_t size);

/*
 * eddy_os_renew - what the caller has at p is replaced by fresh memory, as if
 * nobody had ever touched it or told the kernel about it.
 *
 * access: as after eddy_os_commit; else as after eddy_os_reserve.
 */
EDDY_MUST_USE int eddy_os_renew(void *p, size_t size, bool access);

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

/* Lets the kernel take the pages when it needs memory, until they are written
 * again; what they hold until then is not known. */
EDDY_MUST_USE int eddy_os_discard_lazily(void *p, size_t size);

/* Gives each page its memory, as a write of what is there would.  Where the
 * kernel cannot (before 5.14), pages are written one by one. */
EDDY_MUST_USE int eddy_os_populate(void *p, size_t size);

/* Keeps the pages in memory once they are touched. */
EDDY_MUST_USE int eddy_os_lock(void *p, size_t size);

/* System calls of the library so far; page faults of the process. */
uint64_t eddy_os_calls(void);
uint64_t eddy_os_faults(void);

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

/* Milliseconds of the same clock; not coarse. */
uint64_t eddy_os_milliseconds(void);

/* The same as of the last tick, some ms ago; cheaper. */
uint64_t eddy_os_milliseconds_coarse(void);

/* A forked child finds these pages zero, not as they were. */
EDDY_MUST_USE int eddy_os_wipe_on_fork(void *p, size_t size);

/*
 * eddy_os_futex_wait - sleeps while *word is `value`: for threads of the
 * library's own, never for one of the program's.
 *
 * until:   ms of eddy_os_milliseconds; UINT64_MAX: for ever.
 * Returns: 0 when woken, or for no reason; -EAGAIN: *word is another already;
 *          -ETIMEDOUT; -EINTR.
 */
int eddy_os_futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t until);

/* Affinity masks: bits by number of CPU, n bytes of them.  tid 0: the calling
 * thread.  eddy_os_affinity returns how many bytes it has written. */
int eddy_os_affinity(pid_t tid, uint64_t *set, size_t n);
EDDY_MUST_USE int eddy_os_set_affinity(pid_t tid, uint64_t *set, size_t n);

pid_t eddy_os_pid(void);
pid_t eddy_os_tid(void);

/* Whether a thread of this process has that number. */
bool eddy_os_thread_there(pid_t tid);

/* The calling thread has the ordinary policy, if it had a real-time one. */
void eddy_os_no_real_time(void);

/* Name of the calling thread, 15 characters; buf has room for 16 bytes. */
void eddy_os_name_thread(const char *name);
void eddy_os_thread_name(char *buf);

/*
 * eddy_os_block_signals - blocks all signals of the calling thread but the two
 * that libc sends among threads (setuid waits for an answer); returns the old
 * mask, for eddy_os_restore_signals.
 */
uint64_t eddy_os_block_signals(void);
void eddy_os_restore_signals(uint64_t mask);

/* Sets one of the bits 0 to 10 of *word and wakes one thread that sleeps on it,
 * in one call. */
void eddy_os_futex_mark_and_wake(_Atomic uint32_t *word, uint32_t bit);

/* Whether the kernel knows rseq, by a call that registers nothing. */
bool eddy_os_has_rseq(void);

/*
 * eddy_os_rseq_register - makes sure that area is the calling thread's rseq
 * area, registered by us now or by somebody before.
 *
 * Returns: 0, or an error: another area is registered, or none can be.
 */
EDDY_MUST_USE int eddy_os_rseq_register(void *area, uint32_t signature);

/* A new or emptied file to write, a file to read; a descriptor. */
EDDY_MUST_USE int eddy_os_create(const char *path);
EDDY_MUST_USE int eddy_os_open(const char *path);
ssize_t eddy_os_read(int fd, void *p, size_t n);
/* As close(2): an error of what was written before. */
int eddy_os_close(int fd);

/* Whether bytes can be read there: of one OS page.  No fault. */
bool eddy_os_readable(const void *p);

/* The end of the process, of all its threads. */
_Noreturn void eddy_os_exit(int status);

ssize_t eddy_os_write(int fd, const void *p, size_t n);
ssize_t eddy_os_read_file(const char *path, char *buf, size_t n);
/* n bytes at most, from a place in the file on; 0 at its end. */
ssize_t eddy_os_read_part(const char *path, size_t from, char *buf, size_t n);
ssize_t eddy_os_readlink(const char *path, char *buf, size_t n);

/* 16 random bytes of the auxiliary vector folded into one word; 0 if none. */
uint64_t eddy_os_random(void);

/* As abort(3), without its lock: the handler of the program, then the default
 * action.  Never returns. */
_Noreturn void eddy_os_abort(void);

#endif /* EDDY_OS_H */
