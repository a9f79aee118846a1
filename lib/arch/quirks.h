/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * quirks.h - kernels whose restartable sequences cannot be trusted.
 *
 * Layer     arch (L0).
 * Context   start-up; no libc.
 *
 * On aarch64 Linux 6.19 stopped to abort a section when its thread was
 * preempted and went on on the same CPU: two threads then share a row's top.
 * The repair came within the stable releases of 7.0; as vendors number those
 * in their own ways, the whole of 7.0 is avoided.
 */
#ifndef EDDY_QUIRKS_H
#define EDDY_QUIRKS_H

#include <sys/utsname.h>

#include "lib/arch/syscall.h"
#include "lib/base/base.h"

/* "6.19.3-vendor": the first two numbers; false if there are not two. */
static inline bool
eddy_arch_parse_version(const char *release, unsigned ret[2])
{
	for (int i = 0; i < 2; i++) {
		unsigned n = 0;

		if (i == 1 && *release++ != '.')
			return false;
		if (*release < '0' || *release > '9')
			return false;
		for (; *release >= '0' && *release <= '9'; release++)
			n = n * 10 + (unsigned)(*release - '0');
		ret[i] = n;
	}
	return true;
}

/* Whether an aarch64 kernel of this release leaves sections unaborted. */
static inline bool
eddy_arch_release_broken(const char *release)
{
	unsigned v[2];

	/* Below 4.18 there is no rseq: a release that is made up. */
	if (!eddy_arch_parse_version(release, v) || v[0] < 4)
		return true;
	return (v[0] == 6 && v[1] >= 19) || (v[0] == 7 && v[1] == 0);
}

#ifdef __aarch64__
/* No sections here: the kernel would not abort them. */
static inline bool
eddy_arch_rseq_broken(void)
{
	struct utsname name;

	return eddy_syscall(SYS_uname, &name, 0, 0, 0, 0, 0) != 0 ||
	       eddy_arch_release_broken(name.release);
}
#else
static inline bool
eddy_arch_rseq_broken(void)
{
	return false;
}
#endif

#endif /* EDDY_QUIRKS_H */
