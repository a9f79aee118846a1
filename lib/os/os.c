/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <linux/mman.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#include "lib/arch/syscall.h"
#include "lib/base/atomic.h"

#ifndef MAP_FIXED_NOREPLACE
#	define MAP_FIXED_NOREPLACE 0x100000
#endif
#ifndef MADV_WIPEONFORK
#	define MADV_WIPEONFORK 18
#endif
#ifndef SCHED_RESET_ON_FORK
#	define SCHED_RESET_ON_FORK 0x40000000
#endif
#ifndef MADV_POPULATE_WRITE
#	define MADV_POPULATE_WRITE 23
#endif
#ifndef MLOCK_ONFAULT
#	define MLOCK_ONFAULT 1
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

static int
map_at(void *p, size_t size, int prot)
{
	long r = eddy_syscall(SYS_mmap, p, size, prot,
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

int
eddy_os_map_at(void *p, size_t size)
{
	return map_at(p, size, PROT_READ | PROT_WRITE);
}

int
eddy_os_reserve_at(void *p, size_t size)
{
	return map_at(p, size, PROT_NONE);
}

/*
 * Mapped elsewhere first: a mapping at a fixed place is unmapped before the
 * kernel finds that the pool is empty.
 */
int
eddy_os_map_huge(void *p, size_t size)
{
	long r = eddy_syscall(SYS_mmap, 0, size, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_HUGE_2MB, -1, 0);
	long moved;

	if (is_error(r))
		return (int)r;
	moved = eddy_syscall(
	    SYS_mremap, r, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, p, 0);
	if (!is_error(moved))
		return 0;
	/* Before 5.16 none moves; the target may be gone by now. */
	eddy_os_unmap((void *)r, size);
	r = eddy_os_map_at(p, size);
	return r == -EEXIST && eddy_os_commit(p, size) != 0 ? -EEXIST
							    : (int)moved;
}

void *
eddy_os_map_giant(size_t size)
{
	long r = eddy_syscall(SYS_mmap, 0, size, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_HUGE_1GB, -1, 0);

	return is_error(r) ? NULL : (void *)r;
}

int
eddy_os_renew(void *p, size_t size, bool access)
{
	long r = eddy_syscall(SYS_mmap, p, size,
	    access ? PROT_READ | PROT_WRITE : PROT_NONE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);

	return is_error(r) ? (int)r : 0;
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

int
eddy_os_discard_lazily(void *p, size_t size)
{
	return (int)eddy_syscall(SYS_madvise, p, size, MADV_FREE, 0, 0, 0);
}

int
eddy_os_populate(void *p, size_t size)
{
	size_t page = eddy_os_page_size();
	int err = (int)eddy_syscall(
	    SYS_madvise, p, size, MADV_POPULATE_WRITE, 0, 0, 0);

	if (err != -EINVAL)
		return err;
	for (size_t i = 0; i < size; i += page) {
		/* relaxed: in hand; atomic, so that the compiler writes. */
		(void)eddy_or_relaxed((_Atomic char *)p + i, 0);
	}
	return 0;
}

int
eddy_os_lock(void *p, size_t size)
{
	return (int)eddy_syscall(SYS_mlock2, p, size, MLOCK_ONFAULT, 0, 0, 0);
}

_Atomic uint64_t eddy_n_calls;

uint64_t
eddy_os_calls(void)
{
	/* relaxed: a count. */
	return eddy_load_relaxed(&eddy_n_calls);
}

uint64_t
eddy_os_faults(void)
{
	struct rusage r;

	if (eddy_syscall(SYS_getrusage, RUSAGE_SELF, &r, 0, 0, 0, 0) != 0)
		return 0;
	return (uint64_t)r.ru_minflt + (uint64_t)r.ru_majflt;
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

static uint64_t
milliseconds(clockid_t clock)
{
	struct timespec t = {0};

	/* libc's, for it asks no kernel. */
	if (clock_gettime(clock, &t) != 0)
		return 0;
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

uint64_t
eddy_os_milliseconds(void)
{
	return milliseconds(CLOCK_MONOTONIC);
}

uint64_t
eddy_os_milliseconds_coarse(void)
{
	return milliseconds(CLOCK_MONOTONIC_COARSE);
}

int
eddy_os_wipe_on_fork(void *p, size_t size)
{
	/* Emulators may accept whatever is advised, and do nothing. */
	if (eddy_syscall(SYS_madvise, p, size, -1, 0, 0, 0) != -EINVAL)
		return -ENOSYS;
	return (int)eddy_syscall(
	    SYS_madvise, p, size, MADV_WIPEONFORK, 0, 0, 0);
}

int
eddy_os_affinity(pid_t tid, uint64_t *set, size_t n)
{
	return (int)eddy_syscall(SYS_sched_getaffinity, tid, n, set, 0, 0, 0);
}

int
eddy_os_set_affinity(pid_t tid, uint64_t *set, size_t n)
{
	return (int)eddy_syscall(SYS_sched_setaffinity, tid, n, set, 0, 0, 0);
}

pid_t
eddy_os_pid(void)
{
	return (pid_t)eddy_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

pid_t
eddy_os_tid(void)
{
	return (pid_t)eddy_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

bool
eddy_os_thread_there(pid_t tid)
{
	/* Signal 0 is sent to nobody. */
	return eddy_syscall(SYS_tgkill, eddy_os_pid(), tid, 0, 0, 0, 0) !=
	       -ESRCH;
}

void
eddy_os_no_real_time(void)
{
	struct sched_param p = {0};
	long policy = eddy_syscall(SYS_sched_getscheduler, 0, 0, 0, 0, 0, 0);

	if (policy > 0 && ((policy & ~SCHED_RESET_ON_FORK) == SCHED_FIFO ||
			      (policy & ~SCHED_RESET_ON_FORK) == SCHED_RR))
		(void)eddy_syscall(
		    SYS_sched_setscheduler, 0, SCHED_OTHER, &p, 0, 0, 0);
}

void
eddy_os_name_thread(const char *name)
{
	(void)eddy_syscall(SYS_prctl, PR_SET_NAME, name, 0, 0, 0, 0);
}

void
eddy_os_thread_name(char *buf)
{
	if (eddy_syscall(SYS_prctl, PR_GET_NAME, buf, 0, 0, 0, 0) != 0)
		buf[0] = '\0';
}

uint64_t
eddy_os_block_signals(void)
{
	/* 32 and 33: SIGCANCEL and SIGSETXID of glibc. */
	uint64_t set = ~((uint64_t)3 << 31);
	uint64_t old = 0;

	(void)eddy_syscall(
	    SYS_rt_sigprocmask, SIG_SETMASK, &set, &old, sizeof(set), 0, 0);
	return old;
}

void
eddy_os_restore_signals(uint64_t mask)
{
	(void)eddy_syscall(
	    SYS_rt_sigprocmask, SIG_SETMASK, &mask, 0, sizeof(mask), 0, 0);
}

int
eddy_os_futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t until)
{
	struct timespec t;
	struct timespec *at = NULL;

	if (until != UINT64_MAX) {
		t.tv_sec = (time_t)(until / 1000);
		t.tv_nsec = (long)(until % 1000) * 1000000;
		at = &t;
	}
	/* This one takes a time of the clock, not a length. */
	return (int)eddy_syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE,
	    value, at, 0, FUTEX_BITSET_MATCH_ANY);
}

void
eddy_os_futex_mark_and_wake(_Atomic uint32_t *word, uint32_t bit)
{
	/* Its second wake-up is for a word that was 0, which it is not. */
	uint32_t op = FUTEX_OP(FUTEX_OP_OR, bit, FUTEX_OP_CMP_EQ, 0);

	if (eddy_syscall(
		SYS_futex, word, FUTEX_WAKE_OP_PRIVATE, 1, 0, word, op) < 0)
		(void)eddy_syscall(
		    SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
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

int
eddy_os_create(const char *path)
{
	return (int)eddy_syscall(SYS_openat, AT_FDCWD, path,
	    O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644, 0, 0);
}

int
eddy_os_open(const char *path)
{
	return (int)eddy_syscall(
	    SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
}

ssize_t
eddy_os_read(int fd, void *p, size_t n)
{
	return eddy_syscall(SYS_read, fd, p, n, 0, 0, 0);
}

int
eddy_os_close(int fd)
{
	return (int)eddy_syscall(SYS_close, fd, 0, 0, 0, 0, 0);
}

bool
eddy_os_readable(const void *p)
{
	/* The kernel reads the set, and then finds that there is no such how.
	 */
	return eddy_syscall(SYS_rt_sigprocmask, -1,
		   (uintptr_t)p & ~(uintptr_t)7, 0, 8, 0, 0) == -EINVAL;
}

void
eddy_os_exit(int status)
{
	for (;;)
		(void)eddy_syscall(SYS_exit_group, status, 0, 0, 0, 0, 0);
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
eddy_os_read_part(const char *path, size_t from, char *buf, size_t n)
{
	long r;
	long fd = eddy_syscall(
	    SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0, 0, 0);

	if (fd < 0)
		return fd;
	do
		r = eddy_syscall(SYS_pread64, fd, buf, n, from, 0, 0);
	while (r == -EINTR);
	(void)eddy_syscall(SYS_close, fd, 0, 0, 0, 0, 0);
	return r;
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
