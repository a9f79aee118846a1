/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * front_discard.c - eddy_discard gives pages of a block back: they are zero and
 * hold no memory after, what lies beside stays, and the block is one as before.
 */
#include "probe.h"

#include "eddy/eddy.h"

/* The library is preloaded, not linked. */
#pragma weak eddy_discard
#pragma weak eddy_arena_create
#pragma weak eddy_arena_malloc

static size_t page;

/* Pages of [p, p + n) that are there; p at a page. */
static size_t
resident(unsigned char *p, size_t n)
{
	static unsigned char in[16384];
	size_t there = 0;

	if (n / page > sizeof in || mincore(p, n, in) != 0)
		tap_bail("mincore: errno %d", errno);
	for (size_t i = 0; i < n / page; i++)
		there += in[i] & 1;
	return there;
}

/* Discards a part of a block filled with a mark; whether just that is zero. */
static bool
discards(unsigned char *p, size_t size, size_t offset, size_t length)
{
	memset(p, 0x5a, size);
	if (eddy_discard(p, offset, length) != 0)
		return false;
	for (size_t i = 0; i < size; i++)
		if (p[i] != (i < offset || i - offset >= length ? 0x5a : 0)) {
			tap_diag("size %zu, offset %zu, length %zu: byte %zu",
			    size, offset, length, i);
			return false;
		}
	return true;
}

static bool
discards_all_over(unsigned char *p, size_t size)
{
	const size_t at[] = {0, 1, 7, page - 1, page, page + 1, size / 3,
	    size / 2, size - 1, size};
	bool held = true;

	for (size_t i = 0; i < COUNT(at); i++)
		for (size_t k = i; k < COUNT(at); k++)
			if (at[i] <= at[k] && at[k] <= size)
				held &= discards(p, size, at[i], at[k] - at[i]);
	return held;
}

static void
test_sizes(void)
{
	static const size_t sizes[] = {1, 8, 100, 1000, 4096, 5000, 9000, 14336,
	    16384, 40000, 65536, 70000, 300000, 2 * MIB, 3 * MIB + 1};
	bool held = true;

	for (size_t i = 0; i < COUNT(sizes); i++) {
		unsigned char *p = p_malloc(sizes[i]);
		unsigned char *q = p_malloc(sizes[i]);
		size_t n = p_usable(p);

		memset(q, 0xa5, n);
		held &= discards_all_over(p, n);
		for (size_t k = 0; k < n; k++)
			held &= q[k] == 0xa5;
		p_free(p);
		p_free(q);
	}
	tap_ok(
	    held, "what is discarded is zero, what lies beside is not touched");
}

static void
test_memory(void)
{
	const size_t n = 32 * (size_t)MIB;
	unsigned char *p = p_malloc(n);
	size_t before;
	size_t there;
	long rss;

	memset(p, 0x5a, n);
	before = resident(p, n);
	rss = probe_rss_kib();
	tap_ok(eddy_discard(p, MIB + 1, n - 2 * MIB) == 0, "32 MiB shrink");
	rss -= probe_rss_kib();
	there = resident(p, n);
	/* A page of zeros may be seen where was asked whether it is one. */
	if (!tap_ok(
		before - there >= (n - 2 * MIB) / page - 2 && rss >= 29 * KIB,
		"whole pages within hold no memory after"))
		tap_diag(
		    "%zu pages, then %zu; %ld KiB less", before, there, rss);
	tap_ok(eddy_discard(p, 5 * MIB, 8 * MIB) == 0 &&
		   resident(p + 5 * MIB, 8 * MIB) <= 1,
	    "what was discarded may be discarded again");
	p = p_realloc(p, 2 * n);
	tap_ok(p != NULL && p[0] == 0x5a && p[n - 1] == 0x5a && p[n / 2] == 0 &&
		   p_usable(p) >= 2 * n,
	    "realloc finds the block as it is");
	p_free(p);
	p = p_calloc(1, n);
	there = 0;
	for (size_t i = 0; i < n; i++)
		there += p[i] != 0;
	tap_ok(there == 0, "calloc is zero where a block was");
	p_free(p);
}

/* ------------------------------------------------------------------ */

static void
test_errors(void)
{
	static unsigned char in_data[8192];
	unsigned char on_stack[64];
	unsigned char *map = mmap(NULL, 65536, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned char *small = p_malloc(100);
	unsigned char *run = p_malloc(300000);
	unsigned char *huge = p_malloc(5 * MIB);
	void *const wrong[] = {NULL, (void *)1, in_data, on_stack, map,
	    small + 1, small + 8, run + 1, run + 4096, huge + 1, huge + 4096,
	    huge + 2 * MIB, (void *)(UINTPTR_MAX - 4095)};
	unsigned char *const right[] = {small, run, huge};
	bool held = true;

	errno = 0;
	memset(in_data, 1, sizeof in_data);
	memset(on_stack, 1, sizeof on_stack);
	memset(map, 1, 65536);
	memset(small, 1, 100);
	memset(run, 1, 300000);
	memset(huge, 1, 5 * MIB);
	for (size_t i = 0; i < COUNT(wrong); i++) {
		held &= eddy_discard(wrong[i], 0, 1) == EINVAL;
		held &= eddy_discard(wrong[i], 0, 0) == EINVAL;
	}
	tap_ok(held, "EINVAL for what is no block");
	held = true;
	for (size_t i = 0; i < COUNT(right); i++) {
		size_t n = p_usable(right[i]);

		held &= eddy_discard(right[i], n, 1) == EINVAL;
		held &= eddy_discard(right[i], 0, n + 1) == EINVAL;
		held &= eddy_discard(right[i], n + 1, 0) == EINVAL;
		held &= eddy_discard(right[i], 1, n) == EINVAL;
		held &= eddy_discard(right[i], 1, SIZE_MAX) == EINVAL;
		held &= eddy_discard(right[i], SIZE_MAX, 1) == EINVAL;
		held &= eddy_discard(right[i], SIZE_MAX, SIZE_MAX) == EINVAL;
		held &= eddy_discard(right[i], n, 0) == 0;
		held &= eddy_discard(right[i], 0, 0) == 0;
	}
	tap_ok(held, "EINVAL for what is not within the block");
	held = in_data[0] == 1 && on_stack[0] == 1 && map[0] == 1;
	for (size_t i = 0; i < 5 * MIB; i++)
		held &= huge[i] == 1 && (i >= 300000 || run[i] == 1) &&
			(i >= 100 || small[i] == 1);
	tap_ok(held && errno == 0, "nothing is changed then, nor is errno");
	p_free(small);
	p_free(run);
	p_free(huge);
	held = eddy_discard(huge, 0, 4096) == EINVAL &&
	       eddy_discard(run, 0, 4096) == EINVAL;
	tap_ok(held, "EINVAL for a large block that was freed");
	(void)munmap(map, 65536);
}

static void
test_arena(void)
{
	unsigned char *p;
	unsigned a;

	if (eddy_arena_create == NULL || eddy_arena_create(0, &a) != 0) {
		tap_skip("blocks of arenas", "no arena on node 0");
		return;
	}
	p = eddy_arena_malloc(a, 3 * MIB);
	tap_ok(p != NULL && discards_all_over(p, 3 * MIB),
	    "blocks of an arena of the program's");
	p_free(p);
	p = eddy_arena_malloc(a, 10000);
	tap_ok(p != NULL && discards_all_over(p, 10000), "small ones, too");
	p_free(p);
}

/* Of a block that is locked the kernel takes nothing. */
static int
locked(void)
{
	const size_t n = 8 * MIB;
	unsigned char *p = p_malloc(n);

	if (mlock(p, n) != 0)
		return 77;
	return !discards_all_over(p, n);
}

static void
test_refused(int err, const char *what)
{
	static const int nr[] = {SYS_madvise};
	char why[64];
	pid_t pid = fork();

	if (pid == 0) {
		unsigned char *p;

		probe_child_begin(60);
		if (err < 0)
			_exit(locked());
		if (!probe_refuse(nr, 1, err))
			_exit(77);
		p = p_malloc(5 * MIB);
		_exit(!discards_all_over(p, 5 * MIB));
	}
	if (probe_wait(pid, why, sizeof why))
		tap_ok(true, "%s: it is zero", what);
	else if (strcmp(why, "exit 77") == 0)
		tap_skip(what, "not allowed here");
	else
		tap_ok(false, "%s: %s", what, why);
}

/* Threads discard and use parts of one block, each its own. */
static unsigned char *shared;
enum { PART = 256 * KIB, THREADS = 4 };

static void *
discard_part(void *arg)
{
	unsigned char *p = shared + (uintptr_t)arg * PART;
	uintptr_t bad = 0;

	for (int round = 0; round < 50; round++) {
		memset(p, round + 1, PART);
		bad += eddy_discard(
			   shared, (size_t)(p - shared) + 100, PART - 200) != 0;
		for (size_t i = 0; i < PART; i++)
			bad += p[i] != (i < 100 || i >= PART - 100
					       ? (unsigned char)(round + 1)
					       : 0);
	}
	return (void *)bad;
}

static void
test_threads(void)
{
	pthread_t t[THREADS];
	void *bad;
	bool held = true;

	shared = p_malloc((size_t)THREADS * PART);
	for (uintptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, discard_part, (void *)i) != 0)
			tap_bail("pthread_create");
	for (int i = 0; i < THREADS; i++) {
		(void)pthread_join(t[i], &bad);
		held &= bad == NULL;
	}
	tap_ok(held, "threads discard parts of one block");
	p_free(shared);
}

int
main(int argc, char **argv)
{
	(void)argc;
	tap_begin(argv);
	if (eddy_discard == NULL)
		tap_skip_all("EDDY_SO names no library");
	probe_small_pages();
	page = (size_t)sysconf(_SC_PAGESIZE);
	tap_guard(120);
	tap_ok(eddy_discard(NULL, 0, 0) == EINVAL, "NULL is no block");
	test_sizes();
	test_memory();
	test_errors();
	test_arena();
	test_refused(EPERM, "madvise is refused");
	test_refused(EINVAL, "madvise finds the memory locked");
	test_refused(0, "madvise succeeds and does nothing");
	test_refused(-1, "memory is locked");
	test_threads();
	return tap_end();
}
