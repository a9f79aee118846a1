/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * front_zero.c - calloc's memory is zero: after use, after realloc, after a
 * trim, after decay, where options fill blocks, and where the calls that purge
 * or tell of pages are refused or do nothing.
 */
#include "probe.h"

static unsigned long
dirty_bytes(const unsigned char *p, size_t n)
{
	unsigned long bad = 0;

	for (size_t i = 0; i < n; i++)
		bad += p[i] != 0;
	return bad;
}

static size_t
some_size(uint64_t *rng, int i)
{
	size_t limit = i % 20 == 0 ? 6000000 : i % 5 == 0 ? 100000 : 3000;

	return 1 + (size_t)tap_random(rng) % limit;
}

/* Returns the number of bytes that calloc gave and that were not zero. */
static unsigned long
churn(int rounds)
{
	enum { N = 300 };
	static unsigned char *p[N];
	static size_t n[N];
	uint64_t rng = tap.seed;
	unsigned long bad = 0;

	for (int round = 0; round < rounds; round++) {
		for (int i = 0; i < N; i++) {
			n[i] = some_size(&rng, i);
			if (i % 2 != 0) {
				p[i] = p_malloc(n[i]);
			} else {
				p[i] = p_calloc(1, n[i]);
				bad += dirty_bytes(p[i], n[i]);
			}
			memset(p[i], 0xa5, n[i]);
		}
		for (int i = 0; i < N; i++) {
			if (i % 7 == 3) {
				p[i] = p_realloc(p[i], n[i] / 2 + 1);
				p[i] = p_realloc(p[i], n[i] * 2);
				memset(p[i], 0xc3, n[i] * 2);
			}
			p_free(p[i]);
		}
		if (round % 3 == 2)
			(void)malloc_trim(0);
	}
	return bad;
}

/* Until what was freed decays: twice some 100 ms, and more. */
static unsigned long
churn_and_wait(void)
{
	unsigned long bad = churn(4);

	for (int i = 0; i < 2; i++) {
		for (int ms = 0; ms < 300; ms += 10) {
			(void)usleep(10000);
			for (size_t n = 100; n < 1000; n++)
				p_free(p_malloc(n));
		}
		bad += churn(2);
	}
	return bad;
}

/*
 * The same in a child whose n system calls answer err; 0: they succeed and do
 * nothing.
 */
static void
test_under(const int *nr, size_t n, int err, const char *what)
{
	char why[64];
	pid_t pid = fork();

	if (pid == 0) {
		probe_child_begin(60);
		if (!probe_refuse(nr, n, err))
			_exit(77);
		_exit(churn(4) != 0);
	}
	if (probe_wait(pid, why, sizeof why))
		tap_ok(true, "calloc is zero %s", what);
	else if (strcmp(why, "exit 77") == 0)
		tap_skip(what, "no seccomp filters");
	else
		tap_ok(false, "calloc is zero %s: %s", what, why);
}

static void
test_kernels(void)
{
	static const int scan[] = {SYS_ioctl};
	static const int ask[] = {SYS_ioctl, SYS_pread64};
	static const int open[] = {SYS_openat};
	static const int close[] = {SYS_close};
	static const int all[] = {SYS_ioctl, SYS_pread64, SYS_madvise};

	test_under(scan, 1, ENOTTY, "without PAGEMAP_SCAN");
	test_under(scan, 1, 0, "where ioctl succeeds and does nothing");
	test_under(ask, 2, EPERM, "where nothing tells of pages");
	test_under(ask, 2, 0, "where what tells of pages does nothing");
	test_under(open, 1, EMFILE, "where no file can be opened");
	test_under(close, 1, EIO, "where close is refused");
	test_under(all, 3, EPERM, "where nothing is answered");
	test_under(all, 3, 0, "where nothing is done");
}

/* Fresh memory need not be written to be zero: calloc costs what is touched. */
static void
test_untouched(void)
{
	enum { N = 8 };
	unsigned char *p[N];
	long before = probe_rss_kib();
	bool held = true;

	for (int i = 0; i < N; i++) {
		p[i] = p_calloc(1, 200 * (size_t)MIB);
		held = p[i] != NULL && p[i][0] == 0 &&
		       p[i][100 * (size_t)MIB] == 0 && held;
	}
	tap_ok(held, "calloc gives 8 times 200 MiB");
	tap_ok(probe_rss_kib() - before < 8 * KIB,
	    "calloc of fresh memory does not touch it");
	for (int i = 0; i < N; i++)
		p_free(p[i]);
}

static void
test_usable_tail(void)
{
	bool held = true;

	for (size_t n = 1; n < 3 * MIB; n += n / 2 + 1) {
		unsigned char *p = p_malloc(n);

		memset(p, 0xff, p_usable(p));
		p_free(p);
		p = p_calloc(n, 1);
		held = dirty_bytes(p, p_usable(p)) == 0 && held;
		p_free(p);
	}
	tap_ok(held,
	    "calloc is zero, to its real size, right after a full block of it");
}

/*
 * Blocks of 8 MiB move from place to place, some filled by options on their
 * way; what they leave must not pass as fresh.
 */
static int
moves(void)
{
	const size_t n = 8 * MIB;

	for (int i = 0; i < 2; i++) {
		unsigned char *p = p_malloc(n);
		unsigned char *wall = p_malloc(n);
		unsigned char *q[3];

		memset(p, 1, n);
		p = p_realloc(p, 3 * n);
		for (size_t k = 0; k < COUNT(q); k++) {
			q[k] = p_calloc(1, n);
			if (dirty_bytes(q[k], n) != 0)
				return 1;
		}
		for (size_t k = 0; k < COUNT(q); k++)
			p_free(q[k]);
		p_free(wall);
		p_free(p);
	}
	return 0;
}

/* zero:true: what realloc adds to a block is zero, on dirty memory, too. */
static int
zero_growth(void)
{
	static const size_t to[] = {
	    2, 17, 100, 1000, 9000, 20000, 70000, 300000, 3 * MIB, 5 * MIB};

	for (int round = 0; round < 3; round++) {
		unsigned char *p = p_malloc(1);
		size_t n = 1;

		for (size_t i = 0; i < COUNT(to); i++) {
			unsigned char *q = p_malloc(to[i]);

			if (dirty_bytes(q, to[i]) != 0)
				return 2;
			memset(q, 0xff, to[i]);
			p_free(q);
			memset(p, 0xff, n);
			p = p_realloc(p, to[i]);
			if (p[0] != 0xff || p[n - 1] != 0xff ||
			    dirty_bytes(p + n, to[i] - n) != 0)
				return 3;
			n = to[i];
		}
		p_free(p);
	}
	return moves();
}

static void
test_options(char **argv)
{
	(void)setenv("EDDY_CONF", "junk:true", 1);
	tap_ok(probe_again(argv, "moves", "junk:true"),
	    "with junk:true calloc is zero where a block moved away");
	(void)setenv("EDDY_CONF", "junk:true,zero:true", 1);
	tap_ok(probe_again(argv, "moves", "junk:true,zero:true"),
	    "with junk:true,zero:true, too");
	(void)setenv("EDDY_CONF", "zero:true", 1);
	tap_ok(probe_again(argv, "growth", "zero:true"),
	    "with zero:true malloc and what realloc adds are zero");
	(void)unsetenv("EDDY_CONF");
}

int
main(int argc, char **argv)
{
	static const int nr[] = {SYS_madvise};

	tap_begin(argv);
	if (argc > 1 && strcmp(argv[1], "moves") == 0)
		return moves();
	if (argc > 1 && strcmp(argv[1], "growth") == 0)
		return zero_growth();
	if (argc > 1) {
		if (!probe_refuse(nr, 1, argv[1][0] == 'r' ? EPERM : 0))
			return 77;
		tap_exec(argv[0], NULL);
	}
	probe_small_pages();
	tap_guard(100);
	if (getenv("EDDY_TAP_CHILD") != NULL)
		return churn_and_wait() != 0;
	tap_ok(churn(10) == 0, "calloc is zero over 10 rounds of dirty memory");
	test_usable_tail();
	test_untouched();
	test_options(argv);
	test_kernels();
	(void)setenv("MALLOC_CONF", "dirty_decay_ms:100,muzzy_decay_ms:0", 1);
	tap_ok(probe_again(argv, "refused", "madvise refused"),
	    "calloc is zero where madvise is refused");
	tap_ok(probe_again(argv, "noop", "madvise does nothing"),
	    "calloc is zero where madvise succeeds and does nothing");
	return tap_end();
}
