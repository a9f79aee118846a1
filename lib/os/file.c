/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <linux/mman.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/arch/syscall.h"
#include "lib/base/atomic.h"
#include "lib/os/os.h"

#ifndef MAP_FIXED_NOREPLACE
#	define MAP_FIXED_NOREPLACE 0x100000
#endif
#ifndef MADV_PAGEOUT
#	define MADV_PAGEOUT 21
#endif
#ifndef MADV_POPULATE_WRITE
#	define MADV_POPULATE_WRITE 23
#endif

/* Names that are tried where a file cannot be made without one. */
#define MAX_NAMES 16

static bool
is_error(long r)
{
	return (unsigned long)r > -4096UL;
}

static long
advise(void *p, size_t size, int advice)
{
	return eddy_syscall(SYS_madvise, p, size, advice, 0, 0, 0);
}

/* ------------------------------------------------------------------ */
/* Descriptors */

void
eddy_os_file_close(int fd)
{
	(void)eddy_syscall(SYS_close, fd, 0, 0, 0, 0, 0);
}

/* To exceed it is a signal, which ends the process. */
static bool
within_limit(size_t size)
{
	struct rlimit r;

	return eddy_syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, &r, 0, 0) != 0 ||
	       r.rlim_cur == RLIM_INFINITY || size <= r.rlim_cur;
}

/* ".eddy-0123456789abcdef" */
static void
make_name(char *name, uint64_t number)
{
	static const char digits[] = "0123456789abcdef";

	memcpy(name, ".eddy-", 6);
	for (unsigned i = 0; i < 16; i++)
		name[6 + i] = digits[number >> (60 - 4 * i) & 15];
	name[22] = '\0';
}

/* A file under a name that is gone when this returns. */
static long
open_named(const char *directory)
{
	/* W, R: any thread.  O: none: a number of one's own. */
	static _Atomic uint64_t n;
	char name[24];
	long fd = -EEXIST;
	long at = eddy_syscall(SYS_openat, AT_FDCWD, directory,
	    O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0, 0, 0);

	if (at < 0)
		return at;
	for (unsigned i = 0; i < MAX_NAMES && fd == -EEXIST; i++) {
		/* relaxed: as above. */
		uint64_t x = eddy_add_relaxed(&n, 1) << 32;

		x ^= eddy_os_random() ^ (uint64_t)eddy_os_pid();
		make_name(name, x ^ eddy_os_milliseconds());
		fd = eddy_syscall(SYS_openat, at, name,
		    O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600, 0, 0);
	}
	if (fd >= 0)
		(void)eddy_syscall(SYS_unlinkat, at, name, 0, 0, 0, 0);
	(void)eddy_syscall(SYS_close, at, 0, 0, 0, 0, 0);
	return fd;
}

static long
open_file(const char *directory)
{
	long fd;

	if (directory == NULL)
		return eddy_syscall(
		    SYS_memfd_create, "eddy", MFD_CLOEXEC, 0, 0, 0, 0);
	fd = eddy_syscall(SYS_openat, AT_FDCWD, directory,
	    O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600, 0, 0);
	/* File systems and kernels that cannot. */
	return fd == -EOPNOTSUPP || fd == -EISDIR || fd == -EINVAL
		   ? open_named(directory)
		   : fd;
}

static long
length(int fd)
{
	return eddy_syscall(SYS_lseek, fd, 0, SEEK_END, 0, 0, 0);
}

int
eddy_os_file_make(const char *directory, size_t size)
{
	long fd;
	long err;

	if (size > INT64_MAX || !within_limit(size))
		return -EFBIG;
	fd = open_file(directory);
	if (fd < 0)
		return (int)fd;
	err = length((int)fd);
	if (err == 0)
		err = eddy_syscall(SYS_ftruncate, fd, size, 0, 0, 0, 0);
	else if (err > 0)
		err = -EBADF;
	if (err == 0)
		return (int)fd;
	eddy_os_file_close((int)fd);
	return (int)err;
}

/* ------------------------------------------------------------------ */
/* Pages */

int
eddy_os_file_fill(void *p, size_t size)
{
	size_t page = eddy_os_page_size();
	char *from = p;
	char *to = from + size;
	uintptr_t at = eddy_align_down((uintptr_t)p, page);
	long err = advise((void *)at, eddy_align_up((uintptr_t)to, page) - at,
	    MADV_POPULATE_WRITE);

	if (err == -EFAULT)
		return -ENOSPC;
	if (err != -EINVAL)
		return (int)err;
	/*
	 * Before 5.14 the kernel writes a word into each page in another way,
	 * and says where it could not: a mask of signals.
	 */
	for (; from < to;
	     from = (char *)eddy_align_up((uintptr_t)from + 1, page)) {
		if (eddy_syscall(SYS_rt_sigprocmask, SIG_BLOCK, 0, from,
			sizeof(uint64_t), 0, 0) != 0)
			return -ENOSPC;
		memset(from, 0, sizeof(uint64_t));
	}
	return 0;
}

bool
eddy_os_file_punch(void *p, size_t size)
{
	size_t page = eddy_os_page_size();

	return (uintptr_t)p % page == 0 && size % page == 0 && size != 0 &&
	       advise(p, size, MADV_REMOVE) == 0;
}

bool
eddy_os_file_write_back(void *p, size_t size)
{
	if (eddy_syscall(SYS_msync, p, size, MS_SYNC, 0, 0, 0) != 0)
		return false;
	/* Before 5.4 they leave the process, and the cache when need be. */
	return advise(p, size, MADV_PAGEOUT) == 0 ||
	       advise(p, size, MADV_DONTNEED) == 0;
}

int
eddy_os_file_try(int fd, bool *punches)
{
	size_t page = eddy_os_page_size();
	long r = eddy_syscall(
	    SYS_mmap, 0, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	_Atomic char *p = (_Atomic char *)r;
	char c = 1;
	int err;

	if (is_error(r))
		return (int)r;
	err = eddy_os_file_fill((void *)r, page);
	if (err == 0) {
		/* relaxed, both: nobody else has it; for the compiler. */
		eddy_store_relaxed(p, 1);
		/* Looked at through the file: a touch would be a SIGBUS where
		 * somebody has taken its room meanwhile. */
		*punches = eddy_os_file_punch((void *)r, page) &&
			   eddy_syscall(SYS_pread64, fd, &c, 1, 0, 0, 0) == 1 &&
			   c == 0;
		if (!*punches)
			eddy_store_relaxed(p, 0);
	}
	eddy_os_unmap((void *)r, page);
	return err;
}

int
eddy_os_file_unmap(void *p, size_t size, bool keep)
{
	long r;

	if (!keep) {
		eddy_os_unmap(p, size);
		return 0;
	}
	r = eddy_syscall(SYS_mmap, p, size, PROT_NONE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	return is_error(r) ? (int)r : 0;
}

int
eddy_os_file_map(int fd, void *p, size_t size, bool replace)
{
	long err;
	long r = eddy_syscall(SYS_mmap, p, size, PROT_NONE,
	    MAP_SHARED | MAP_NORESERVE |
		(replace ? MAP_FIXED : MAP_FIXED_NOREPLACE),
	    fd, 0);

	if (is_error(r))
		return (int)r;
	if ((void *)r != p) {
		/* A kernel before 4.17 takes the flag for a mere hint. */
		eddy_os_unmap((void *)r, size);
		return -EEXIST;
	}
	err = advise(p, size, MADV_DONTFORK);
	if (err == 0 && length(fd) != (long)size)
		err = -EBADF;
	/* What is left there if not even that can be is without access. */
	if (err != 0 && eddy_os_file_unmap(p, size, replace) != 0)
		return (int)err;
	return (int)err;
}
