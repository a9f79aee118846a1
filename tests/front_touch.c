/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * front_touch.c - calloc and large blocks cost what is touched: no page of a
 * block is there before it is, and of a block that was used before only what
 * was touched is written.  By whatever it was touched: all of it is zero after.
 */
#include "probe.h"

#include <limits.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

#ifndef MADV_PAGEOUT
#	define MADV_PAGEOUT 21
#endif

static const size_t SIZE = 24 * (size_t)MIB;
static size_t page;

/* Page faults of this thread so far, none of which reads from a disk. */
static long
faults(void)
{
	struct rusage ru;

	(void)getrusage(RUSAGE_THREAD, &ru);
	return ru.ru_minflt;
}

/* Whether each byte is zero. */
static bool
is_zero(const unsigned char *p, size_t n)
{
	for (size_t i = 0; i < n; i += 8)
		if (*(const uint64_t *)(const void *)(p + i) != 0)
			return false;
	return true;
}

/* Pages that are there. */
static size_t
resident(unsigned char *p, size_t n)
{
	static unsigned char in[65536];
	size_t there = 0;

	if (n / page > sizeof in || mincore(p, n, in) != 0)
		tap_bail("mincore: errno %d", errno);
	for (size_t i = 0; i < n / page; i++)
		there += in[i] & 1;
	return there;
}

/* ------------------------------------------------------------------ */
/* Ways to touch a block.  They return the most pages that may be there after,
 * or SKIP, and why in `reason`. */

#define SKIP SIZE_MAX

static const char *reason;

static size_t
skip(const char *why)
{
	reason = why;
	return SKIP;
}

static size_t
touch_nothing(unsigned char *p)
{
	(void)p;
	return 0;
}

static size_t
touch_all(unsigned char *p)
{
	memset(p, 0x5a, SIZE);
	return SIZE / page;
}

static size_t
touch_third(unsigned char *p)
{
	memset(p, 0x5a, SIZE / 3);
	return SIZE / 3 / page + 1;
}

static size_t
touch_last(unsigned char *p)
{
	p[SIZE - 1] = 0x5a;
	return 1;
}

/* More of them than the kernel names in one answer. */
static size_t
touch_every_7th(unsigned char *p)
{
	for (size_t i = 6; i < SIZE / page; i += 7)
		p[i * page + 5] = 0x5a;
	return SIZE / page / 7 + 1;
}

static size_t
touch_by_reading(unsigned char *p)
{
	unsigned sum = 0;

	for (size_t i = 0; i < SIZE; i += page)
		sum += *(volatile unsigned char *)(p + i);
	return sum != 0 ? 0 : SIZE / page;
}

/* The kernel writes, and no page fault tells. */
static size_t
touch_by_read(unsigned char *p)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, p + MIB, 20000);

	(void)close(fd);
	return n <= 0 ? skip("no file to read") : (size_t)n / page + 2;
}

/* Another process writes. */
static size_t
touch_by_child(unsigned char *p)
{
	char why[64];
	pid_t self = getpid();
	pid_t pid = fork();

	if (pid == 0) {
		static char bytes[3] = {1, 2, 3};
		struct iovec from = {bytes, sizeof bytes};
		struct iovec to = {p + SIZE / 2, sizeof bytes};

		_exit(process_vm_writev(self, &from, 1, &to, 1, 0) !=
		      sizeof bytes);
	}
	return !probe_wait(pid, why, sizeof why)
		   ? skip("process_vm_writev is not allowed")
		   : 2;
}

static size_t
touch_and_free(unsigned char *p)
{
	memset(p, 0x5a, SIZE / 2);
	return madvise(p, SIZE / 3 / page * page, MADV_FREE) != 0
		   ? skip("no MADV_FREE")
		   : SIZE / 2 / page + 1;
}

static size_t
touch_and_drop(unsigned char *p)
{
	memset(p, 0x5a, SIZE / 2);
	(void)madvise(p + MIB, 4 * MIB, MADV_DONTNEED);
	return SIZE / 2 / page - 4 * MIB / page + 1;
}

static bool
is_swapped(const unsigned char *p)
{
	uint64_t entry = 0;
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	ssize_t n = pread(fd, &entry, 8, (off_t)((uintptr_t)p / page * 8));

	(void)close(fd);
	return n == 8 && (entry >> 62 & 1) != 0;
}

static size_t
touch_and_swap(unsigned char *p)
{
	size_t n = 0;

	memset(p, 0x5a, SIZE / 2);
	for (size_t i = SIZE / 2; i < SIZE * 3 / 4; i += 2 * page)
		p[i] = 0x5a;
	(void)madvise(p, SIZE, MADV_PAGEOUT);
	for (size_t i = 0; i < SIZE * 3 / 4; i += page)
		n += is_swapped(p + i);
	if (n == 0)
		return skip("nothing can be swapped out here");
	tap_diag("%zu pages are swapped out", n);
	return SIZE / 2 / page + SIZE / 4 / page;
}

static size_t
touch_huge(unsigned char *p)
{
	if (madvise(p, SIZE, MADV_HUGEPAGE) != 0)
		return skip("no huge pages");
	(void)prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
	p[5 * MIB] = 0x5a;
	p[9 * MIB] = 0x5a;
	(void)*(volatile unsigned char *)(p + 13 * MIB);
	(void)prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	(void)madvise(p, SIZE, MADV_NOHUGEPAGE);
	return 4 * (2 * MIB / page);
}

/* Two mappings more. */
static size_t
touch_split(unsigned char *p)
{
	memset(p + MIB, 0x5a, 2 * MIB);
	return madvise(p + 2 * MIB, 4 * MIB, MADV_DONTDUMP) != 0
		   ? skip("no MADV_DONTDUMP")
		   : 2 * MIB / page + 1;
}

static size_t
touch_locked(unsigned char *p)
{
	p[3] = 0x5a;
	if (mlock(p + MIB, 64 * page) != 0)
		return skip("memory may not be locked");
	p[MIB + 5 * page] = 0x5a;
	return 66;
}

static size_t
touch_clean(unsigned char *p)
{
	int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
	ssize_t n;

	memset(p, 0x5a, SIZE / 4);
	n = write(fd, "4", 1);
	(void)close(fd);
	return n != 1 ? skip("no soft-dirty bits") : SIZE / 4 / page + 1;
}

/* Pages that another fills in, and such that are protected while absent. */
static size_t
touch_by_userfault(unsigned char *p)
{
	static char bytes[65536];
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register r = {.range = {(uintptr_t)p + MIB, MIB},
	    .mode = UFFDIO_REGISTER_MODE_MISSING};
	struct uffdio_copy c = {
	    .dst = (uintptr_t)p + MIB, .src = (uintptr_t)bytes, .len = page};
	bool done;

	if (fd < 0)
		return skip("no userfaultfd");
	memset(bytes, 0x5a, sizeof bytes);
	done = ioctl(fd, UFFDIO_API, &api) == 0 &&
	       ioctl(fd, UFFDIO_REGISTER, &r) == 0 &&
	       ioctl(fd, UFFDIO_COPY, &c) == 0 &&
	       ioctl(fd, UFFDIO_UNREGISTER, &r.range) == 0;
	(void)close(fd);
	return !done ? skip("userfaultfd fills no page") : 1;
}

static const struct {
	const char *name;
	size_t (*touch)(unsigned char *p);
} ways[] = {
    {"nothing", touch_nothing},
    {"all of it", touch_all},
    {"a third of it", touch_third},
    {"its last byte", touch_last},
    {"every 7th page", touch_every_7th},
    {"what was only read", touch_by_reading},
    {"what a system call wrote", touch_by_read},
    {"what another process wrote", touch_by_child},
    {"with MADV_FREE after", touch_and_free},
    {"with MADV_DONTNEED after", touch_and_drop},
    {"and swapped out", touch_and_swap},
    {"as huge pages", touch_huge},
    {"in a mapping of its own", touch_split},
    {"locked in part", touch_locked},
    {"with soft-dirty bits cleared", touch_clean},
    {"by userfaultfd", touch_by_userfault},
};

/* A block is touched, freed and allocated again, where it was. */
static void
test_way(const char *name, size_t (*touch)(unsigned char *p))
{
	unsigned char *p;
	unsigned char *q;
	size_t most;
	size_t there;
	bool zero;

	(void)malloc_trim(0);
	p = p_calloc(1, SIZE);
	if (p == NULL)
		tap_bail("no memory");
	most = touch(p);
	p_free(p);
	q = p_calloc(1, SIZE);
	there = resident(q, SIZE);
	zero = is_zero(q, SIZE);
	(void)munlock(q, SIZE);
	(void)madvise(q, SIZE, MADV_DODUMP);
	p_free(q);
	if (most == SKIP) {
		tap_skip(name, "%s", reason);
		return;
	}
	tap_ok(zero, "touched, %s: it is zero after", name);
	/* One by which the kernel is tried, and of zeros that were looked at.
	 */
	if (q != p)
		tap_diag("%s: it is not where it was", name);
	else if (!tap_ok(there <= most + 4,
		     "touched, %s: no more is there after", name))
		tap_diag("%zu pages, %zu were touched", there, most);
}

/* ------------------------------------------------------------------ */

static void
test_fresh(void)
{
	enum { N = 4 };
	unsigned char *p[N];
	long least = LONG_MAX;
	long before;
	bool held = true;

	p_free(p_calloc(1, 512 * (size_t)MIB));
	(void)malloc_trim(0);
	before = probe_rss_kib();
	for (int i = 0; i < N; i++) {
		long n = faults();

		p[i] = p_calloc(1, 512 * (size_t)MIB);
		n = faults() - n;
		if (n < least)
			least = n;
		held &= p[i] != NULL;
	}
	before = probe_rss_kib() - before;
	tap_ok(held && before < 256,
	    "calloc of 4 times 512 MiB makes no page resident");
	/* Pages that are written and dropped again would show here. */
	tap_ok(least < 64, "nor touches any on its way");
	tap_diag("%ld KiB more are resident; %ld page faults", before, least);
	for (int i = 0; i < N; i++)
		p_free(p[i]);
}

static void
test_again_and_again(void)
{
	const size_t n = 100 * (size_t)MIB;
	long before;
	long met;

	(void)malloc_trim(0);
	before = probe_rss_kib();
	met = faults();
	for (int i = 0; i < 10000; i++) {
		void *p = p_calloc(1, n);

		if (p == NULL)
			tap_bail("no memory");
		p_free(p);
	}
	met = faults() - met;
	/* One each, where the kernel is tried; 25,600 each if it were written.
	 */
	tap_ok(met < 10000 * 8L,
	    "10,000 times calloc and free of 100 MiB touches next to nothing");
	tap_diag("%ld page faults", met);
	tap_ok(probe_rss_kib() - before < 1024, "and leaves nothing resident");
}

/* What a child shares with its parent is the child's own when it is written. */
static void
test_fork(void)
{
	unsigned char *p = p_malloc(SIZE);
	unsigned char *q;
	char why[64];
	pid_t pid;
	bool held;

	memset(p, 0x5a, SIZE);
	pid = fork();
	if (pid == 0) {
		p_free(p);
		q = p_calloc(1, SIZE);
		if (!is_zero(q, SIZE))
			_exit(1);
		memset(q, 1, SIZE);
		_exit(0);
	}
	held = probe_wait(pid, why, sizeof why);
	tap_ok(held, "a child's calloc is zero where its parent wrote");
	held = true;
	for (size_t i = 0; i < SIZE; i++)
		held &= p[i] == 0x5a;
	tap_ok(held, "and its parent keeps what it wrote");
	p_free(p);
	q = p_calloc(1, SIZE);
	tap_ok(is_zero(q, SIZE), "the parent's is zero after");
	p_free(q);
}

static void *
leave(void *arg)
{
	for (int i = 0; i < 20; i++)
		test_way(ways[i % 5].name, ways[i % 5].touch);
	(void)arg;
	_exit(tap_end());
}

/* /proc/self is a dead thread then. */
static void
test_without_main_thread(char **argv)
{
	tap_ok(probe_again(argv, "leave", "without a main thread"),
	    "calloc is zero when the main thread has ended");
}

int
main(int argc, char **argv)
{
	pthread_t t;

	tap_begin(argv);
	probe_small_pages();
	page = (size_t)sysconf(_SC_PAGESIZE);
	if (argc > 1) {
		(void)dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
		if (pthread_create(&t, NULL, leave, NULL) != 0)
			return 1;
		pthread_exit(NULL);
	}
	tap_guard(120);
	test_fresh();
	for (size_t i = 0; i < COUNT(ways); i++)
		test_way(ways[i].name, ways[i].touch);
	test_again_and_again();
	test_fork();
	test_without_main_thread(argv);
	return tap_end();
}
