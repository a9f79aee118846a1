/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <linux/mman.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include "lib/arch/syscall.h"

#ifndef MAP_FIXED_NOREPLACE
#	define MAP_FIXED_NOREPLACE 0x100000
#endif
#ifndef MREMAP_DONTUNMAP
#	define MREMAP_DONTUNMAP 4
#endif

/* A move may be refused once for so many bytes: to copy them costs more. */
#define EDDY_PER_REFUSAL ((size_t)256 << 10)

/* The kernel returns -4095 to -1 for errors, anything else is an address. */
static bool
is_error(long r)
{
	return (unsigned long)r > -4096UL;
}

void *
eddy_os_reserve(size_t size)
{
	long r = eddy_syscall(SYS_mmap, 0, size, PROT_NONE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return is_error(r) ? NULL : (void *)r;
}

/* Widens [p, p + size) to whole OS pages. */
static void
whole_pages(void *p, size_t size, uintptr_t *at, size_t *len)
{
	size_t page = eddy_os_page_size();

	*at = eddy_align_down((uintptr_t)p, page);
	*len = eddy_align_up((uintptr_t)p + size, page) - *at;
}

static int
protect(void *p, size_t size, int prot)
{
	uintptr_t at;
	size_t len;

	whole_pages(p, size, &at, &len);
	return (int)eddy_syscall(SYS_mprotect, at, len, prot, 0, 0, 0);
}

int
eddy_os_commit(void *p, size_t size)
{
	return protect(p, size, PROT_READ | PROT_WRITE);
}

int
eddy_os_commit_readonly(void *p, size_t size)
{
	return protect(p, size, PROT_READ);
}

int
eddy_os_map_at(void *p, size_t size)
{
	long r = eddy_syscall(SYS_mmap, p, size, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
	    -1, 0);

	if (is_error(r))
		return (int)r;
	if ((void *)r != p) {
		/* A kernel before 4.17 takes the flag for a mere hint. */
		eddy_os_unmap((void *)r, size);
		return -EEXIST;
	}
	return 0;
}

void
eddy_os_unmap(void *p, size_t size)
{
	(void)eddy_syscall(SYS_munmap, p, size, 0, 0, 0, 0);
}

static long
move_piece(char *from, char *to, size_t size)
{
	return eddy_syscall(SYS_mremap, from, size, size,
	    MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, to, 0);
}

/*
 * Before 6.17 the kernel moves no range of several mappings, and neighbours
 * that were touched apart stay two for ever.  Where they meet is not known, so
 * it is searched by halves: EFAULT says that a seam lies in what was asked for.
 * The refused call has unmapped its target, which somebody else may have got
 * since; so it is mapped again in a way that cannot replace.
 */
int
eddy_os_move(void *from, void *to, size_t size)
{
	const size_t page = eddy_os_page_size();
	char *source = from;
	char *target = to;
	size_t done = 0;
	size_t piece = size;
	size_t seam = 0; /* one lies before, and after done; or 0 */
	size_t refusals = 16 + size / EDDY_PER_REFUSAL;
	long r = 0;

	while (done < size) {
		r = move_piece(source + done, target + done, piece);
		if (!is_error(r)) {
			done += piece;
			piece = size - done;
			if (done < seam)
				piece = eddy_align_up((seam - done) / 2, page);
			continue;
		}
		if (r != -EFAULT || piece <= page || --refusals == 0 ||
		    eddy_os_map_at(target + done, piece) != 0)
			break;
		seam = done + piece;
		piece = eddy_align_up(piece / 2, page);
	}
	if (done == size)
		return 0;
	/* What went comes back, and no part of the target but the piece in
	 * doubt stays mapped. */
	if (done != 0) {
		memcpy(source, target, done);
		eddy_os_unmap(target, done);
	}
	if (done + piece < size)
		eddy_os_unmap(target + done + piece, size - done - piece);
	return (int)r;
}

int
eddy_os_discard(void *p, size_t size)
{
	return (int)eddy_syscall(SYS_madvise, p, size, MADV_DONTNEED, 0, 0, 0);
}

size_t
eddy_os_page_size(void)
{
	unsigned long n = getauxval(AT_PAGESZ);

	return n != 0 ? n : 4096;
}

size_t
eddy_os_address_limit(void)
{
	struct rlimit r;

	if (eddy_syscall(SYS_prlimit64, 0, RLIMIT_AS, 0, &r, 0, 0) != 0 ||
	    r.rlim_cur == RLIM_INFINITY)
		return SIZE_MAX;
	return r.rlim_cur;
}

/* The number behind the last '-' or ',' of a sysfs list, plus one. */
static unsigned
list_limit(const char *s, size_t n)
{
	unsigned v = 0;

	for (size_t i = 0; i < n; i++) {
		if (s[i] >= '0' && s[i] <= '9' && v < 1u << 20)
			v = v * 10 + (unsigned)(s[i] - '0');
		else if (s[i] == '-' || s[i] == ',')
			v = 0;
		else
			break;
	}
	return n != 0 ? v + 1 : 0;
}

unsigned
eddy_os_cpu_limit(void)
{
	uint64_t
	    mask[128]; /* 8,192 CPUs, the most that Linux can be built for */
	char buf[256];
	ssize_t n;
	long r =
	    eddy_syscall(SYS_sched_getaffinity, 0, sizeof(mask), mask, 0, 0, 0);

	/*
	 * The kernel copies its whole cpumask, as long as the largest CPU
	 * number it can ever have; sysfs may be faked by a container.
	 */
	if (r > 0)
		return (unsigned)r * 8;
	n = eddy_os_read_file(
	    "/sys/devices/system/cpu/possible", buf, sizeof(buf));
	return n > 0 ? list_limit(buf, (size_t)n) : 0;
}

int
eddy_os_membarrier_register(void)
{
	return (int)eddy_syscall(SYS_membarrier,
	    MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ, 0, 0, 0, 0, 0);
}

int
eddy_os_membarrier(unsigned cpu)
{
	return (int)eddy_syscall(SYS_membarrier,
	    MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ, MEMBARRIER_CMD_FLAG_CPU, cpu,
	    0, 0, 0);
}

int
eddy_os_cpu(void)
{
	unsigned cpu;
	long r = eddy_syscall(SYS_getcpu, &cpu, 0, 0, 0, 0, 0);

	return r == 0 ? (int)cpu : (int)r;
}

uint32_t
eddy_os_seconds(void)
{
	struct timespec t = {0};

	/* libc's, for it asks no kernel. */
	if (clock_gettime(CLOCK_MONOTONIC_COARSE, &t) != 0)
		return 0;
	return (uint32_t)t.tv_sec;
}

bool
eddy_os_has_rseq(void)
{
	/* No area, no length: EINVAL from a kernel that knows the call. */
	return eddy_syscall(SYS_rseq, 0, 0, 0, 0, 0, 0) != -ENOSYS;
}

int
eddy_os_rseq_register(void *area, uint32_t signature)
{
	/* glibc 2.41 and later register what the kernel has fields for. */
	size_t whole = eddy_align_up(getauxval(27), 32);
	int err = (int)eddy_syscall(SYS_rseq, area, 32, 0, signature, 0, 0);

	/* A second registration is told apart: EBUSY if it is the same. */
	if (err == -EINVAL && whole > 32)
		err = (int)eddy_syscall(
		    SYS_rseq, area, whole, 0, signature, 0, 0);
	return err == -EBUSY ? 0 : err;
}

ssize_t
eddy_os_write(int fd, const void *p, size_t n)
{
	return eddy_syscall(SYS_write, fd, p, n, 0, 0, 0);
}

ssize_t
eddy_os_read_file(const char *path, char *buf, size_t n)
{
	size_t got = 0;
	long r;
	long fd = eddy_syscall(
	    SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0, 0, 0);

	if (fd < 0)
		return fd;
	do {
		r = eddy_syscall(SYS_read, fd, buf + got, n - got, 0, 0, 0);
		if (r > 0)
			got += (size_t)r;
	} while (got < n && (r > 0 || r == -EINTR));
	(void)eddy_syscall(SYS_close, fd, 0, 0, 0, 0, 0);
	return r < 0 ? r : (ssize_t)got;
}

ssize_t
eddy_os_readlink(const char *path, char *buf, size_t n)
{
	return eddy_syscall(SYS_readlinkat, AT_FDCWD, path, buf, n, 0, 0);
}

uint64_t
eddy_os_random(void)
{
	const void *p = (const void *)getauxval(AT_RANDOM);
	uint64_t w[2] = {0, 0};

	if (p != NULL)
		memcpy(w, p, sizeof(w));
	return w[0] * 0x9e3779b97f4a7c15u ^ w[1];
}

void
eddy_os_abort(void)
{
	/*
	 * glibc's abort takes a lock; this is the same by hand.  The kernel's
	 * sigaction begins with the handler, zero is SIG_DFL with no flags.
	 */
	uint64_t act[4] = {0, 0, 0, 0};
	uint64_t set = (uint64_t)1 << (SIGABRT - 1);
	long pid;
	long tid;

	/* First with the program's own handler, as abort(3) promises. */
	(void)eddy_syscall(
	    SYS_rt_sigprocmask, SIG_UNBLOCK, &set, 0, sizeof(set), 0, 0);
	pid = eddy_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);
	tid = eddy_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);
	(void)eddy_syscall(SYS_tgkill, pid, tid, SIGABRT, 0, 0, 0);
	(void)eddy_syscall(
	    SYS_rt_sigaction, SIGABRT, act, 0, sizeof(set), 0, 0);
	(void)eddy_syscall(SYS_tgkill, pid, tid, SIGABRT, 0, 0, 0);
	for (;;)
		(void)eddy_syscall(SYS_exit_group, 127, 0, 0, 0, 0, 0);
}
