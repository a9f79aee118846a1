/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * os_advise_kernel.h - lib/os/advise.c is built once more with this in front:
 * its system calls are then those of a kernel that tests/os_advise.c makes up.
 */
#ifndef EDDY_TESTS_OS_ADVISE_KERNEL_H
#define EDDY_TESTS_OS_ADVISE_KERNEL_H

#include "lib/arch/syscall.h"

long kernel_call(long nr, long a, long b, long c, long d, long e);

#undef eddy_syscall
#define eddy_syscall(nr, a, b, c, d, e, f) \
	kernel_call((nr), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e))

#endif /* EDDY_TESTS_OS_ADVISE_KERNEL_H */
