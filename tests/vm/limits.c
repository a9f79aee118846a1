/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limits.c - memory ends: malloc says so, and goes on when there is some again.
 *
 *   limits eat MIB [BYTES]   blocks of BYTES (65536), each written to, until
 *                            malloc says no or MIB are live.  Then all are
 *                            freed, and half as much must be had again.
 *                            Exits 0 if malloc said no, 3 if it never did.
 *   limits steady MIB TIMES  MIB live, freed and allocated anew TIMES times in
 *                            turning sizes
 */
#include "tests/probe.h"

static void **block;

/* Apart from malloc: its own need must not decide when memory ends. */
static void
make_list(size_t n)
{
	block = mmap(NULL, n * sizeof *block, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (block == MAP_FAILED)
		tap_bail("no list of %zu blocks", n);
}

static size_t
fill(size_t n, size_t bytes)
{
	size_t got = 0;

	for (; got < n; got++) {
		char *p = p_malloc(bytes);

		if (p == NULL) {
			if (errno != ENOMEM)
				tap_bail("malloc fails with errno %d", errno);
			break;
		}
		memset(p, (int)got | 1, bytes);
		block[got] = p;
	}
	return got;
}

static void
empty(size_t n)
{
	for (size_t i = 0; i < n; i++)
		p_free(block[i]);
}

static int
eat(size_t mib, size_t bytes)
{
	size_t max_blocks = mib * MIB / bytes + 1;
	size_t got;
	size_t again;

	make_list(max_blocks);
	got = fill(max_blocks, bytes);
	empty(got);
	again = fill(got / 2, bytes);
	empty(again);
	tap_diag("%zu MiB of %zu, then %zu again", got * bytes / MIB, mib,
	    again * bytes / MIB);
	if (again != got / 2)
		return 1;
	return got < max_blocks ? 0 : 3;
}

static int
steady(size_t mib, unsigned long times)
{
	static const size_t size[] = {
	    64, 100 * KIB, 1000, 3000, 2 * MIB, 16 * KIB, 200};

	make_list(mib * MIB / 64);
	for (unsigned long i = 0; i < times; i++) {
		size_t n = mib * MIB / size[i % COUNT(size)];

		if (fill(n, size[i % COUNT(size)]) != n)
			return 1;
		empty(n);
	}
	return 0;
}

int
main(int argc, char **argv)
{
	size_t mib;
	size_t number;

	tap_begin(argv);
	if (argc < 3)
		tap_bail("limits eat|steady MIB [NUMBER]");
	mib = strtoul(argv[2], NULL, 10);
	number = argc > 3 ? strtoul(argv[3], NULL, 10) : 64 * KIB;
	return strcmp(argv[1], "eat") == 0 ? eat(mib, number)
					   : steady(mib, number);
}
