/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/os/advise.h"

#include <errno.h>
#include <linux/mman.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "lib/arch/syscall.h"
#include "lib/base/atomic.h"
#include "lib/os/os.h"

/* <linux/prctl.h> of Linux 5.17. */
#ifndef PR_SET_VMA
#	define PR_SET_VMA 0x53564d41
#endif
#ifndef PR_SET_VMA_ANON_NAME
#	define PR_SET_VMA_ANON_NAME 0
#endif

/* <linux/mman.h> of Linux 6.1. */
#ifndef MADV_COLLAPSE
#	define MADV_COLLAPSE 25
#endif

#define SYS_HUGE    "/sys/kernel/mm/transparent_hugepage/"
#define SYS_DEFAULT "hugepages-2048kB/enabled"

void
eddy_os_name(void *p, size_t size, const char *name)
{
	/* W, R: any thread.  O: none: to ask once more does no harm. */
	static _Atomic uint32_t refused;
	long err;

	/* relaxed, both: as above. */
	if (eddy_load_relaxed(&refused))
		return;
	err = eddy_syscall(
	    SYS_prctl, PR_SET_VMA, PR_SET_VMA_ANON_NAME, p, size, name, 0);
	if (err != 0 && err != -ENOMEM)
		eddy_store_relaxed(&refused, 1);
}

int
eddy_os_huge(void *p, size_t size, bool wanted)
{
	return (int)eddy_syscall(SYS_madvise, p, size,
	    wanted ? MADV_HUGEPAGE : MADV_NOHUGEPAGE, 0, 0, 0);
}

int
eddy_os_no_dump(void *p, size_t size)
{
	return (int)eddy_syscall(SYS_madvise, p, size, MADV_DONTDUMP, 0, 0, 0);
}

int
eddy_os_no_fork(void *p, size_t size)
{
	return (int)eddy_syscall(SYS_madvise, p, size, MADV_DONTFORK, 0, 0, 0);
}

int
eddy_os_collapse(void *p, size_t size)
{
	return (int)eddy_syscall(SYS_madvise, p, size, MADV_COLLAPSE, 0, 0, 0);
}

/* Whether the word in brackets, of a file of choices, is this one. */
static bool
chosen(const char *text, const char *word)
{
	size_t n = strlen(word);
	const char *at = strchr(text, '[');

	return at != NULL && strncmp(at + 1, word, n) == 0 && at[n + 1] == ']';
}

/* A small file of /sys, as a string; false if there is none. */
static bool
read_text(const char *path, char *buf, size_t n)
{
	ssize_t got = eddy_os_read_file(path, buf, n - 1);

	buf[got > 0 ? got : 0] = '\0';
	return got > 0;
}

/* The file of what holds for huge pages of this size alone, since 6.8. */
static void
path_for_size(char *path, size_t kib)
{
	char digits[24];
	size_t n = sizeof(digits);
	size_t at = strlen(SYS_HUGE "hugepages-");

	do
		digits[--n] = (char)('0' + kib % 10);
	while ((kib /= 10) != 0);
	memcpy(path, SYS_HUGE "hugepages-", at);
	memcpy(path + at, digits + n, sizeof(digits) - n);
	at += sizeof(digits) - n;
	memcpy(path + at, "kB/enabled", sizeof("kB/enabled"));
}

size_t
eddy_os_huge_size(void)
{
	char text[32];
	size_t size = 0;

	if (read_text(SYS_HUGE "hpage_pmd_size", text, sizeof(text)))
		for (const char *s = text; *s >= '0' && *s <= '9'; s++)
			size = size * 10 + (size_t)(*s - '0');
	return eddy_is_pow2(size) && size >= 4096 ? size : (size_t)2 << 20;
}

bool
eddy_os_huge_always(void)
{
	char path[sizeof(SYS_HUGE SYS_DEFAULT) + 24];
	char text[80];

	/* The program, or who started it, wants none in this process. */
	if (eddy_syscall(SYS_prctl, PR_GET_THP_DISABLE, 0, 0, 0, 0, 0) == 1)
		return false;
	path_for_size(path, eddy_os_huge_size() >> 10);
	if (read_text(path, text, sizeof(text)) && !chosen(text, "inherit"))
		return chosen(text, "always");
	if (!read_text(SYS_HUGE "enabled", text, sizeof(text)))
		return true;
	return chosen(text, "always");
}
