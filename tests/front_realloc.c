/* SPDX-License-Identifier: BSD-2-Clause */
/* front_realloc.c - realloc keeps content over every border, both ways. */
#include "probe.h"

static const size_t border[] = {1, 8, 9, 16, 17, 48, 112, 128, 129, 1000, 1024,
    2047, 4095, 4096, 4097, 8192, 14336, 14337, 16384, 16385, 32768, 65536,
    65537, 131072, 131073, 262144, 1048575, 1048577, 2093056, 2097152, 2097153,
    4194304, 4194305, 9000000, 33554432};

static unsigned char
pattern(size_t i)
{
	return (unsigned char)(i * 31 + (i >> 9) + 7);
}

/* Large blocks are looked at every 509 bytes and at both ends. */
static size_t
stride(size_t n)
{
	return n > 100000 ? 509 : 1;
}

static void
fill(unsigned char *p, size_t from, size_t n)
{
	size_t step = stride(n);

	for (size_t i = (from + step - 1) / step * step; i < n; i += step)
		p[i] = pattern(i);
	p[n - 1] = pattern(n - 1);
}

static bool
kept(const unsigned char *p, size_t filled, size_t n)
{
	size_t step = stride(filled);

	for (size_t i = 0; i < n; i += step)
		if (p[i] != pattern(i))
			return false;
	return n < filled || p[filled - 1] == pattern(filled - 1);
}

static void
test_matrix(void)
{
	bool held = true;
	bool real = true;

	for (size_t a = 0; a < COUNT(border); a++)
		for (size_t b = 0; b < COUNT(border); b++) {
			size_t x = border[a];
			size_t y = border[b];
			unsigned char *p = p_malloc(x);

			fill(p, 0, x);
			p = p_realloc(p, y);
			if (p == NULL || !kept(p, x, x < y ? x : y)) {
				tap_diag("%zu to %zu: content lost", x, y);
				held = false;
			}
			real = p_usable(p) >= y && real;
			p[y - 1] = 1;
			p_free(p);
		}
	tap_ok(held, "realloc from each border size to each keeps content");
	tap_ok(real, "the usable size after realloc covers the request");
}

/* Neighbours live on while blocks grow in place and shrink among them. */
static void
test_walk(void)
{
	enum { N = 40 };
	static unsigned char *p[N];
	static size_t n[N];
	uint64_t rng = tap.seed;
	bool held = true;

	for (int i = 0; i < N; i++) {
		n[i] = 1;
		p[i] = p_malloc(1);
		p[i][0] = pattern(0);
	}
	for (int k = 0; held && k < 20000; k++) {
		unsigned i = (unsigned)(tap_random(&rng) % N);
		uint64_t r = tap_random(&rng);
		size_t to = 1 + (size_t)r % ((size_t)1 << (4 + (r >> 40) % 18));
		size_t keep = n[i] < to ? n[i] : to;

		p[i] = p_realloc(p[i], to);
		for (size_t j = 0; j < keep; j += keep / 64 + 1)
			held = held && p[i][j] == pattern(j);
		held = held && p[i][keep - 1] == pattern(keep - 1);
		for (size_t j = 0; j < to; j++)
			p[i][j] = pattern(j);
		n[i] = to;
	}
	for (int i = 0; i < N; i++)
		p_free(p[i]);
	tap_ok(held, "content is kept over 20000 random reallocs of 40 blocks");
}

static void
test_builder(void)
{
	enum { STEP = 777, STEPS = 4000 };
	char *p = NULL;
	size_t n = 0;
	bool held = true;

	for (int i = 0; i < STEPS; i++, n += STEP) {
		p = p_realloc(p, n + STEP);
		p[n] = (char)i;
		p[n + STEP - 1] = (char)~i;
	}
	for (int i = 0; i < STEPS; i++)
		held = held && p[i * STEP] == (char)i &&
		       p[i * STEP + STEP - 1] == (char)~i;
	p_free(p);
	tap_ok(held, "a string that grows by 777 bytes keeps all of them");
}

/* Sizes whose number of chunks has no 32 bits: as large as can be, and such
 * that the lower bits are those of a block that is there. */
static void
test_out_of_reach(void)
{
	static const size_t from[] = {100, 20000, 1 << 20, 5 << 20, 40 << 20};
	static const size_t to[] = {(size_t)1 << 53,
	    ((size_t)1 << 53) + (5 << 20), (size_t)1 << 60, (size_t)5 << 60,
	    SIZE_MAX / 2};
	bool held = true;

	for (size_t i = 0; i < COUNT(from); i++) {
		unsigned char *p = p_malloc(from[i]);

		fill(p, 0, from[i]);
		for (size_t k = 0; k < COUNT(to); k++) {
			errno = 0;
			held = held && p_realloc(p, to[k]) == NULL &&
			       errno == ENOMEM && kept(p, from[i], from[i]);
		}
		p_free(p);
	}
	tap_ok(
	    held, "what cannot be had is NULL and ENOMEM, and the block stays");
}

/* A block of 1 GiB moves or grows without being copied: it stays untouched. */
static void
test_large_growth(void)
{
	size_t n = 64 * MIB;
	char *p = p_malloc(n);
	long before = probe_rss_kib();
	bool held = p != NULL;

	if (held) {
		p[0] = 1;
		p[n - 1] = 2;
	}
	for (; held && n < (size_t)1 << 30; n *= 2) {
		char *q = p_realloc(p, n * 2);

		held = q != NULL && q[0] == 1 && q[n - 1] == 2;
		p = q;
		if (held)
			q[n * 2 - 1] = 2;
	}
	tap_ok(held, "a block doubles from 64 MiB to 1 GiB");
	tap_ok(probe_rss_kib() - before < 16 * KIB,
	    "growth of a large block copies no memory that was not touched");
	p = p_realloc(p, 100);
	tap_ok(p != NULL && p[0] == 1, "1 GiB shrinks to 100 bytes");
	tap_ok(p_usable(p) < 4096, "and then occupies a small block");
	p_free(p);
}

static void
test_shrink_gives_back(void)
{
	enum { N = 16 };
	char *p[N];
	long full;
	long now;

	for (int i = 0; i < N; i++) {
		p[i] = p_malloc(8 * MIB);
		memset(p[i], i + 1, 8 * MIB);
	}
	full = probe_rss_kib();
	for (int i = 0; i < N; i++)
		p[i] = p_realloc(p[i], 20000);
	/* The tails are free for others: as much again must not add up. */
	for (int i = 0; i < N; i++) {
		char *q = p_malloc(7 * MIB);

		memset(q, 1, 7 * MIB);
		p_free(q);
	}
	now = probe_rss_kib();
	for (int i = 0; i < N; i++) {
		if (p[i][19999] != i + 1)
			full = 0;
		p_free(p[i]);
	}
	tap_ok(
	    now < full + 16 * KIB, "what a shrinking block leaves is reused");
}

/* A block of one chunk is cut from pages, or is a whole chunk for the sake of
 * its alignment; both grow by moving, and leave what they were. */
static void
one_chunk(void)
{
	bool held = true;

	for (int i = 0; i < 200; i++) {
		size_t align = i % 2 != 0 ? 4UL * MIB : PAGE;
		char *p = aligned_alloc(align, 2UL * MIB);
		char *behind = p_malloc(2UL * MIB);
		char *q;

		if (p == NULL || behind == NULL)
			tap_bail("no memory");
		memset(p, 1 + i % 100, 2UL * MIB);
		q = p_realloc(p, 34UL * MIB);
		held = held && q != NULL && q[0] == 1 + i % 100 &&
		       q[2UL * MIB - 1] == 1 + i % 100;
		p_free(q);
		q = p_calloc(1, 2UL * MIB);
		for (size_t k = 0; q != NULL && k < 2UL * MIB; k += PAGE)
			held = held && q[k] == 0;
		p_free(q);
		p_free(behind);
	}
	tap_ok(held, "blocks of one chunk of either kind move");
}

int
main(int argc, char **argv)
{
	(void)argc;
	tap_begin(argv);
	probe_small_pages();
	tap_guard(100);
	test_matrix();
	test_walk();
	test_builder();
	test_out_of_reach();
	test_large_growth();
	test_shrink_gives_back();
	one_chunk();
	return tap_end();
}
