/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * probe.h - looking at a process from a test: memory, mappings, children,
 * refused system calls.
 *
 * The calls of the malloc family go through pointers that the compiler must
 * read: it then neither removes a pair nor warns about what a test does on
 * purpose.
 */
#ifndef EDDY_TESTS_PROBE_H
#define EDDY_TESTS_PROBE_H

#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

enum { KIB = 1024, MIB = 1024 * 1024, PAGE = 4096 };

/* A function of the library that the test was preloaded with, and the pointer
 * that is to call it. */
struct symbol {
	const char *name;
	void *where;
};

/* False: another allocator, one is not there. */
static inline bool
find_symbols(const struct symbol *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		void *sym = dlsym(RTLD_DEFAULT, s[i].name);

		if (sym == NULL)
			return false;
		memcpy(s[i].where, &sym, sizeof sym);
	}
	return true;
}

static void *(*volatile p_malloc)(size_t) = malloc;
static void *(*volatile p_calloc)(size_t, size_t) = calloc;
static void *(*volatile p_realloc)(void *, size_t) = realloc;
static void (*volatile p_free)(void *) = free;
static size_t (*volatile p_usable)(void *) = malloc_usable_size;

/* A flag between threads; order is all that a test wants of it. */
struct flag {
	atomic_bool set;
};

static inline bool
flag_is_set(struct flag *f)
{
	return atomic_load(&f->set);
}

static inline void
flag_set(struct flag *f)
{
	atomic_store(&f->set, true);
}

static inline void
flag_clear(struct flag *f)
{
	atomic_store(&f->set, false);
}

/* probe_quantum - the smallest step between size classes, 16 or 8; 0 of another
 * allocator. */
static inline size_t
probe_quantum(void)
{
	int (*ctl)(const char *, void *, size_t *, void *, size_t);
	void *sym = dlsym(RTLD_DEFAULT, "mallctl");
	size_t v = 0;
	size_t n = sizeof v;

	if (sym == NULL)
		return 0;
	memcpy(&ctl, &sym, sizeof ctl);
	return ctl("arenas.quantum", &v, &n, NULL, 0) == 0 ? v : 0;
}

/* probe_rss_kib - resident memory of this process; allocates nothing. */
static inline long
probe_rss_kib(void)
{
	char buf[128];
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof buf - 1);
	char *end;

	if (fd >= 0)
		(void)close(fd);
	if (n <= 0)
		return 0;
	buf[n] = '\0';
	(void)strtol(buf, &end, 10);
	return strtol(end, NULL, 10) * (sysconf(_SC_PAGESIZE) / KIB);
}

/*
 * probe_small_pages - resident memory is then what was touched: the kernel may
 * otherwise make a huge page of each touch, and says nothing of the library.
 */
static inline void
probe_small_pages(void)
{
	(void)prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
}

/*
 * probe_reads_cost - whether pages that were only read are resident as well:
 * a kernel without the common page of zeros.
 */
static inline bool
probe_reads_cost(void)
{
	enum { N = 1024 };
	const volatile char *p = mmap(NULL, N * (size_t)PAGE,
	    PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long before = probe_rss_kib();
	char sum = 0;

	if (p == MAP_FAILED)
		return false;
	for (size_t i = 0; i < N; i++)
		sum |= p[i * PAGE];
	before = probe_rss_kib() - before;
	(void)munmap((void *)(uintptr_t)p, N * (size_t)PAGE);
	return sum != 0 || before > N * PAGE / KIB / 2;
}

/* probe_maps - how many mappings this process has. */
static inline int
probe_maps(void)
{
	static char buf[65536];
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	int n = 0;
	ssize_t got;

	while ((got = read(fd, buf, sizeof buf)) > 0)
		for (ssize_t i = 0; i < got; i++)
			n += buf[i] == '\n';
	(void)close(fd);
	return n;
}

static inline uint64_t
probe_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* probe_seconds - the length of a timed test, scaled by EDDY_TIME. */
static inline double
probe_seconds(double by_default)
{
	const char *s = getenv("EDDY_TIME");

	return s != NULL && *s != '\0' ? by_default * strtod(s, NULL)
				       : by_default;
}

/* probe_child_begin - in a fresh child: default signals, its own deadline. */
static inline void
probe_child_begin(unsigned seconds)
{
	static const int fatal[] = {
	    SIGALRM, SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE};

	for (size_t i = 0; i < COUNT(fatal); i++)
		signal(fatal[i], SIG_DFL);
	tap_alarm(seconds);
}

/* probe_wait - the status of a child, as text that says what happened. */
static inline bool
probe_wait(pid_t pid, char *why, size_t n)
{
	int st;

	while (waitpid(pid, &st, 0) < 0)
		if (errno != EINTR) {
			(void)snprintf(why, n, "waitpid: errno %d", errno);
			return false;
		}
	if (WIFSIGNALED(st) && WTERMSIG(st) == SIGALRM)
		(void)snprintf(why, n, "hung");
	else if (WIFSIGNALED(st))
		(void)snprintf(why, n, "signal %d", WTERMSIG(st));
	else
		(void)snprintf(why, n, "exit %d", WEXITSTATUS(st));
	return WIFEXITED(st) && WEXITSTATUS(st) == 0;
}

/* probe_again - run this program with an argument; says whether it exits 0. */
static inline bool
probe_again(char **argv, const char *arg, const char *what)
{
	char why[64];
	char copy[64];
	char seed[32];
	pid_t pid = fork();

	if (pid == 0) {
		(void)snprintf(
		    seed, sizeof seed, "%llu", (unsigned long long)tap.seed);
		(void)setenv("EDDY_SEED", seed, 1);
		(void)setenv("EDDY_TAP_CHILD", "1", 1);
		(void)snprintf(copy, sizeof copy, "%s", arg);
		probe_child_begin(120);
		tap_exec(argv[0], copy);
	}
	if (pid < 0)
		tap_bail("fork: errno %d", errno);
	if (probe_wait(pid, why, sizeof why))
		return true;
	tap_diag("%s: %s", what, why);
	return false;
}

/*
 * probe_refuse - let n system calls of this process and of what it executes
 * fail with err; 0 means that they succeed and do nothing.
 */
static inline bool
probe_refuse(const int *nr, size_t n, int err)
{
	struct sock_filter f[2 * 32 + 2];
	struct sock_fprog prog = {.filter = f};
	unsigned short k = 0;

	if (n > 32)
		return false;
	f[k++] = (struct sock_filter)BPF_STMT(
	    BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < n; i++) {
		f[k++] = (struct sock_filter)BPF_JUMP(
		    BPF_JMP | BPF_JEQ | BPF_K, (unsigned)nr[i], 0, 1);
		f[k++] = (struct sock_filter)BPF_STMT(
		    BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)err);
	}
	f[k++] =
	    (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	prog.len = k;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) == 0;
}

/*
 * Owned blocks: each carries its owner and its own address, so that a block
 * that two owners hold at once, or that the allocator writes into, shows.
 */
enum { OWN_SLOTS = 512 };

struct own {
	uint64_t *slot[OWN_SLOTS];
	size_t words[OWN_SLOTS];
	uint64_t rng;
	uint64_t id;
	size_t max_bytes;
	unsigned long doubles;
	unsigned long nulls;
};

static inline uint64_t
own_stamp(const struct own *o, const uint64_t *p)
{
	return (uint64_t)(uintptr_t)p ^ (o->id * 0x9e3779b97f4a7c15u);
}

static inline void
own_check(struct own *o, unsigned i)
{
	uint64_t *p = o->slot[i];

	if (p[0] != own_stamp(o, p) ||
	    p[o->words[i] - 1] !=
		(o->words[i] > 1 ? ~own_stamp(o, p) : own_stamp(o, p)))
		o->doubles++;
}

/* own_step - free a random block of ours, or allocate one into its slot. */
static inline void
own_step(struct own *o)
{
	uint64_t r = tap_random(&o->rng);
	unsigned i = (unsigned)(r % OWN_SLOTS);
	size_t bytes;

	if (o->slot[i] != NULL) {
		own_check(o, i);
		o->slot[i][0] = 0;
		p_free(o->slot[i]);
		o->slot[i] = NULL;
		return;
	}
	r >>= 16;
	bytes = 16 + (size_t)(r >> 8) % ((r & 63) != 0 ? 600 : o->max_bytes);
	o->slot[i] = p_malloc(bytes);
	if (o->slot[i] == NULL) {
		o->nulls++;
		return;
	}
	o->words[i] = bytes / 8;
	o->slot[i][0] = own_stamp(o, o->slot[i]);
	if (o->words[i] > 1)
		o->slot[i][o->words[i] - 1] = ~own_stamp(o, o->slot[i]);
}

/* own_end - verify and free all that is left. */
static inline void
own_end(struct own *o)
{
	for (unsigned i = 0; i < OWN_SLOTS; i++)
		if (o->slot[i] != NULL) {
			own_check(o, i);
			p_free(o->slot[i]);
			o->slot[i] = NULL;
		}
}

static inline void
own_begin(struct own *o, uint64_t id, size_t max_bytes)
{
	memset(o, 0, sizeof *o);
	o->id = id;
	o->rng = tap.seed + id * 7919;
	o->max_bytes = max_bytes;
}

#endif /* EDDY_TESTS_PROBE_H */
