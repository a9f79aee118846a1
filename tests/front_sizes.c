/* SPDX-License-Identifier: BSD-2-Clause */
/* front_sizes.c - size classes, zero sizes, usable sizes, natural alignment. */
#include "probe.h"

static const unsigned short class_bytes[] = {8, 16, 32, 48, 64, 80, 96, 112,
    128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 896, 1024, 1280,
    1536, 1792, 2048, 2560, 3072, 3584, 4096, 5120, 6144, 7168, 8192, 10240,
    12288, 14336};

static void *(*volatile p_memalign)(size_t, size_t) = memalign;
static void *(*volatile p_aligned)(size_t, size_t) = aligned_alloc;
static void *(*volatile p_rarray)(void *, size_t, size_t) = reallocarray;

static size_t
real_size(size_t n)
{
	/* --with-lg-quantum=3 has 24, 40 and 56, too. */
	if (n <= 64 && probe_quantum() == 8)
		return n == 0 ? 8 : (n + 7) & ~(size_t)7;
	for (size_t i = 0; i < COUNT(class_bytes); i++)
		if (n <= class_bytes[i])
			return class_bytes[i];
	return (n + PAGE - 1) & ~(size_t)(PAGE - 1);
}

static size_t
real_size_aligned(size_t n, size_t align)
{
	if (n <= 14336 && align <= PAGE) {
		size_t up = (n + align - 1) & ~(align - 1);
		size_t real = real_size(up == 0 ? align : up);

		if (real < 16384)
			return real;
	}
	return n <= 16384 ? 16384 : real_size(n);
}

static bool
has_size(void *p, size_t want, const char *call, size_t n, size_t align)
{
	size_t got = p_usable(p);

	p_free(p);
	if (p != NULL && got == want)
		return true;
	tap_diag("%s(%zu) at alignment %zu: %zu usable, %zu expected", call, n,
	    align, got, want);
	return false;
}

static void
test_small_classes(void)
{
	bool held = true;

	for (size_t n = 1; held && n <= 14336; n++)
		held =
		    has_size(p_malloc(n), real_size(n), "malloc", n, 0) &&
		    has_size(p_calloc(1, n), real_size(n), "calloc", n, 0) &&
		    has_size(p_realloc(NULL, n), real_size(n), "realloc", n, 0);
	tap_ok(held, "small sizes round up to their classes");
}

static void
test_page_multiples(void)
{
	static const size_t fixed[] = {14337, 16383, 16384, 16385, 20480, 20481,
	    65535, 65536, 65537, 100000, 262144, 1048575, 1048576, 1048577,
	    2097151, 2097152, 2097153, 4194305, 33554433, 1073741824,
	    1073741825};
	uint64_t rng = tap.seed;
	bool held = true;

	for (size_t i = 0; held && i < COUNT(fixed); i++)
		held = has_size(p_malloc(fixed[i]), real_size(fixed[i]),
		    "malloc", fixed[i], 0);
	for (int i = 0; held && i < 3000; i++) {
		size_t n = 14337 + (size_t)tap_random(&rng) %
				       ((size_t)1 << (15 + i % 11));

		held = has_size(p_malloc(n), real_size(n), "malloc", n, 0);
	}
	tap_ok(held, "sizes from 16 KiB on round up to a multiple of 4 KiB");
}

static void
test_aligned_sizes(void)
{
	static const size_t sizes[] = {0, 1, 7, 10, 63, 64, 65, 100, 129, 200,
	    1000, 2049, 4095, 4096, 4097, 5000, 10000, 12289, 14336, 14337,
	    16384, 16385, 70000, 1048577, 3000000};
	bool held = true;

	for (size_t a = 8; held && a <= 65536; a *= 2)
		for (size_t i = 0; held && i < COUNT(sizes); i++) {
			size_t want = real_size_aligned(sizes[i], a);
			void *p = p_memalign(a, sizes[i]);

			held = ((uintptr_t)p & (a - 1)) == 0 &&
			       has_size(p, want, "memalign", sizes[i], a);
		}
	tap_ok(held, "aligned sizes are those that nallocx would tell");
}

static void
test_zero_sizes(void)
{
	static const char *const name[] = {"malloc(0)", "malloc(0) again",
	    "calloc(0, 8)", "calloc(8, 0)", "realloc(NULL, 0)",
	    "reallocarray(NULL, 0, 16)", "aligned_alloc(64, 0)",
	    "posix_memalign(64, 0)"};
	void *p[8];
	bool held = true;
	bool apart = true;

	p[0] = p_malloc(0);
	p[1] = p_malloc(0);
	p[2] = p_calloc(0, 8);
	p[3] = p_calloc(8, 0);
	p[4] = p_realloc(NULL, 0);
	p[5] = p_rarray(NULL, 0, 16);
	p[6] = p_aligned(64, 0);
	p[7] = NULL;
	held = posix_memalign(&p[7], 64, 0) == 0;
	for (int i = 0; i < 8; i++) {
		if (p[i] == NULL) {
			tap_diag("%s is NULL", name[i]);
			held = false;
		}
		for (int j = 0; j < i; j++)
			apart = apart && p[i] != p[j];
	}
	tap_ok(held, "a size of 0 gives a pointer");
	tap_ok(apart, "each size of 0 gives a pointer of its own");
	tap_ok((((uintptr_t)p[6] | (uintptr_t)p[7]) & 63) == 0,
	    "an aligned block of size 0 is aligned");
	tap_ok(p_usable(p[0]) == 8 && p_usable(p[6]) == 64,
	    "a size of 0 is served by the smallest class that is aligned");
	for (int i = 0; i < 8; i++)
		p_free(p[i]);
	tap_ok(p_usable(NULL) == 0, "the usable size of NULL is 0");
	p_free(NULL);
	tap_ok(true, "free(NULL) does nothing");
}

static void
test_realloc_to_zero(void)
{
	long early = 0;
	bool null = true;

	errno = 4711;
	for (int i = 0; i < 400000; i++) {
		char *p = p_malloc(100);

		p[0] = 1;
		null = p_realloc(p, 0) == NULL && null;
		if (i == 50000)
			early = probe_rss_kib();
	}
	tap_ok(null, "realloc of a block to 0 frees it and returns NULL");
	tap_ok(errno == 4711, "realloc to 0 leaves errno alone");
	tap_ok(probe_rss_kib() - early < 4 * KIB, "realloc to 0 does not leak");
}

/* Every usable byte is the caller's, and stays so while others are in use. */
static void
test_usable_bytes(void)
{
	enum { N = 900 };
	static unsigned char *p[N];
	static size_t size[N];
	uint64_t rng = tap.seed ^ 5;
	bool stable = true;
	bool own = true;
	bool kept = true;

	for (int i = 0; i < N; i++) {
		size_t n =
		    i < 400 ? (size_t)i : (size_t)tap_random(&rng) % 300000;

		p[i] = i % 5 == 4 ? p_memalign(256, n) : p_malloc(n);
		size[i] = p_usable(p[i]);
		stable = stable && size[i] >= n;
		for (size_t k = 0; k < size[i]; k++)
			p[i][k] = (unsigned char)((size_t)i + k);
	}
	for (int i = 0; i < N; i++) {
		stable = stable && p_usable(p[i]) == size[i];
		for (size_t k = 0; k < size[i]; k++)
			own = own && p[i][k] == (unsigned char)((size_t)i + k);
	}
	for (int i = 0; i < N; i++) {
		p[i] = p_realloc(p[i], size[i]);
		for (size_t k = 0; k < size[i]; k++)
			kept =
			    kept && p[i][k] == (unsigned char)((size_t)i + k);
		p_free(p[i]);
	}
	tap_ok(stable, "the usable size covers the request and never changes");
	tap_ok(own, "no two blocks overlap in their usable bytes");
	tap_ok(kept, "realloc to the usable size keeps every byte");
}

static void
test_natural_alignment(void)
{
	enum { N = 3000 };
	static void *keep[4][N];
	const size_t most = probe_quantum() == 8 ? 8 : 16;
	bool held = true;

	for (int f = 0; f < 4; f++)
		for (size_t i = 1; i < N; i++) {
			size_t n = i < 2000 ? i : i * 611;
			size_t need = n >= 16 ? most : 8;
			void *p = f == 0   ? p_malloc(n)
				  : f == 1 ? p_calloc(1, n)
				  : f == 2 ? p_realloc(NULL, n)
					   : p_realloc(p_malloc(3), n);

			if (((uintptr_t)p & (need - 1)) != 0 && held) {
				tap_diag("%zu bytes at %p", n, p);
				held = false;
			}
			keep[f][i] = p;
			if (i % 3 == 0) {
				p_free(p);
				keep[f][i] = NULL;
			}
		}
	for (int f = 0; f < 4; f++)
		for (int i = 1; i < N; i++)
			p_free(keep[f][i]);
	tap_ok(held, "16 bytes and more are 16-aligned, fewer 8-aligned");
}

int
main(int argc, char **argv)
{
	(void)argc;
	tap_begin(argv);
	probe_small_pages();
	tap_guard(60);
	test_small_classes();
	test_page_multiples();
	test_aligned_sizes();
	test_zero_sizes();
	test_realloc_to_zero();
	test_usable_bytes();
	test_natural_alignment();
	return tap_end();
}
