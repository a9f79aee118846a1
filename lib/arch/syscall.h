/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * syscall.h - raw system calls: the kernel's answer, errno untouched.
 *
 * Layer: arch (L0).  Returns the result, or a negative errno value.  No libc:
 * usable before relocation is complete, in signal handlers, in vfork children.
 */
#ifndef EDDY_ARCH_SYSCALL_H
#define EDDY_ARCH_SYSCALL_H

#include <stdint.h>
#include <sys/syscall.h>

#include "lib/base/atomic.h"

/*
 * Calls so far.  W, R: any thread.  O: none: a count.  In lib/os/os.c.
 */
extern _Atomic uint64_t eddy_n_calls __attribute__((visibility("hidden")));

#if defined(__x86_64__)
static inline long
eddy_syscall6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ __volatile__(
	    "syscall"
	    : "=a"(ret)
	    : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
	    : "rcx", "r11", "memory");
	return ret;
}
#elif defined(__aarch64__)
static inline long
eddy_syscall6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ __volatile__(
	    "svc 0"
	    : "+r"(x0)
	    : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
	    : "memory");
	return x0;
}
#else
#	include <errno.h>
#	include <unistd.h>
static inline long
eddy_syscall6(long nr, long a, long b, long c, long d, long e, long f)
{
	int kept = errno;
	long ret = syscall(nr, a, b, c, d, e, f);

	if (ret == -1)
		ret = -errno;
	errno = kept;
	return ret;
}
#endif

#define eddy_syscall(nr, a, b, c, d, e, f)                                  \
	/* relaxed: a count. */                                             \
	(eddy_add_relaxed(&eddy_n_calls, 1),                                \
	    eddy_syscall6((nr), (long)(a), (long)(b), (long)(c), (long)(d), \
		(long)(e), (long)(f)))

#endif /* EDDY_ARCH_SYSCALL_H */
