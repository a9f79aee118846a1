/* SPDX-License-Identifier: BSD-2-Clause */
/* front_aligned.c - alignment of every power of two, and at what price. */
#include "probe.h"

static void *(*volatile p_memalign)(size_t, size_t) = memalign;
static void *(*volatile p_aligned)(size_t, size_t) = aligned_alloc;
static void *(*volatile p_valloc)(size_t) = valloc;
static void *(*volatile p_pvalloc)(size_t) = pvalloc;

static void
test_matrix(void)
{
	static const size_t size[] = {0, 1, 7, 8, 63, 64, 4095, 4096, 4097,
	    14336, 16384, 65536, 65537, 1000000, 5 << 20};
	bool given = true;
	bool aligned = true;
	bool kept = true;

	for (int a = 3; a <= 30; a++)
		for (size_t i = 0; i < COUNT(size); i++) {
			size_t n = size[i];
			size_t mask = ((size_t)1 << a) - 1;
			void *p = NULL;
			int err = posix_memalign(&p, mask + 1, n);
			char *c;

			if (err != 0) {
				tap_diag("2^%d, %zu: error %d", a, n, err);
				given = given && a >= 28 && err == ENOMEM;
				continue;
			}
			aligned = ((uintptr_t)p & mask) == 0 && aligned;
			given = p != NULL && p_usable(p) >= n && given;
			c = p;
			if (n > 0) {
				c[0] = 1;
				c[n - 1] = 2;
				c = p_realloc(p, n + 5000);
				kept = c[n - 1] == 2 && (n == 1 || c[0] == 1) &&
				       kept;
			}
			p_free(c);
		}
	tap_ok(given, "each alignment from 8 to 2^30 is given");
	tap_ok(aligned, "and held");
	tap_ok(kept, "realloc of an aligned block keeps its content");
}

/* Beyond any segment: true or refused, and never paid for in memory. */
static void
test_beyond(void)
{
	enum { FIRST = 31, LAST = 40, N = 100 };
	char *p[LAST + 1] = {NULL};
	long before = probe_rss_kib();
	bool held = true;

	for (int a = FIRST; a <= LAST; a++) {
		size_t mask = ((size_t)1 << a) - 1;
		void *q = NULL;
		int err = posix_memalign(&q, mask + 1, N);

		if (err == ENOMEM)
			continue;
		if (err != 0 || q == NULL || ((uintptr_t)q & mask) != 0) {
			tap_diag("2^%d: error %d, %p", a, err, q);
			held = false;
			continue;
		}
		p[a] = q;
		memset(q, a, N);
	}
	tap_ok(held, "alignments of 2^31 to 2^40 are true or ENOMEM");
	tap_ok(probe_rss_kib() - before < 8 * KIB,
	    "and cost no memory but what is touched");
	held = true;
	for (int a = FIRST; a <= LAST; a++) {
		held = held &&
		       (p[a] == NULL || (p[a][0] == a && p[a][N - 1] == a));
		p_free(p[a]);
	}
	tap_ok(held, "blocks so aligned lie apart");
}

static void
test_others(void)
{
	bool held = true;

	for (size_t a = 1; a <= MIB; a *= 2)
		for (size_t n = 1; n < 3 * MIB; n = n * 5 + 3) {
			void *p = p_memalign(a, n);
			void *q = p_aligned(a, n);

			held = p != NULL && q != NULL && p != q &&
			       (((uintptr_t)p | (uintptr_t)q) & (a - 1)) == 0 &&
			       p_usable(p) >= n && held;
			p_free(p);
			p_free(q);
		}
	tap_ok(held, "memalign and aligned_alloc hold every alignment");
	held = true;
	for (size_t n = 0; n < 3 * MIB; n = n * 3 + 1) {
		void *p = p_valloc(n);
		void *q = p_pvalloc(n);

		held = p != NULL && q != NULL &&
		       (((uintptr_t)p | (uintptr_t)q) & (PAGE - 1)) == 0 &&
		       p_usable(q) >= (n + PAGE - 1) / PAGE * PAGE && held;
		p_free(p);
		p_free(q);
	}
	tap_ok(held, "valloc is page-aligned, pvalloc fills its pages");
	/* Undefined, but programs do it: no crash, and a block or an error. */
	p_free(p_memalign(0, 10));
	p_free(p_memalign(1, 10));
	tap_ok(true, "memalign of an alignment of 0 does no harm");
}

static int
by_address(const void *a, const void *b)
{
	uintptr_t x = *(const uintptr_t *)a;
	uintptr_t y = *(const uintptr_t *)b;

	return x < y ? -1 : x > y;
}

/* Pages side by side: the gaps between neighbours are counted. */
static void
test_page_density(void)
{
	enum { N = 4096 };
	static uintptr_t p[N];
	size_t waste = 0;
	bool exact = true;

	for (int i = 0; i < N; i++) {
		p[i] = (uintptr_t)p_memalign(PAGE, PAGE);
		exact = p_usable((void *)p[i]) == PAGE &&
			(p[i] & (PAGE - 1)) == 0 && exact;
	}
	tap_ok(exact, "memalign(4096, 4096) has 4096 usable bytes");
	qsort(p, N, sizeof *p, by_address);
	for (int i = 1; i < N; i++) {
		size_t gap = (p[i] - p[i - 1]) / PAGE - 1;

		/* A step to another chunk is not waste. */
		waste += gap < 512 ? gap : 0;
	}
	for (int i = 0; i < N; i++)
		p_free((void *)p[i]);
	if (!tap_ok(waste < N / 16, "such pages lie side by side"))
		tap_diag("%zu pages unused between %d", waste, N);
}

/*
 * free_sized and free_aligned_sized go by what the caller says: a class that
 * differs from the allocation's would hand out memory twice.
 */
static void
test_sized_frees(void)
{
	void (*fs)(void *, size_t) =
	    (void (*)(void *, size_t))dlsym(RTLD_DEFAULT, "free_sized");
	void (*fas)(void *, size_t, size_t) = (void (*)(
	    void *, size_t, size_t))dlsym(RTLD_DEFAULT, "free_aligned_sized");
	static const size_t size[] = {0, 1, 8, 24, 40, 63, 64, 65, 200, 1000,
	    4096, 4097, 14336, 16384, 65536, 70000, 3000000};
	enum { N = 3000 };
	static unsigned char *p[N];
	bool apart = true;

	if (fs == NULL || fas == NULL) {
		tap_skip("sized frees", "no free_sized here");
		return;
	}
	fs(NULL, 10);
	fas(NULL, 64, 10);
	for (size_t a = 8; a <= 65536; a *= 2)
		for (size_t i = 0; i < COUNT(size); i++)
			for (int k = 0; k < 70; k++) {
				fas(p_aligned(a, size[i]), a, size[i]);
				fs(p_malloc(size[i]), size[i]);
			}
	for (int i = 0; i < N; i++) {
		size_t n = 8 + (size_t)(i % 200) * 40;

		p[i] = i % 2 != 0 ? p_malloc(n) : p_aligned(64, n);
		memset(p[i], i & 255, n);
	}
	for (int i = 0; i < N; i++) {
		size_t n = 8 + (size_t)(i % 200) * 40;

		for (size_t k = 0; k < n; k++)
			apart = apart && p[i][k] == (i & 255);
		if (i % 2 != 0)
			fs(p[i], n);
		else
			fas(p[i], 64, n);
	}
	tap_ok(apart, "sized frees put blocks back where they came from");
	errno = 4711;
	fs(p_malloc(100), 100);
	fas(p_aligned(128, 100000), 128, 100000);
	tap_ok(errno == 4711, "sized frees keep errno");
}

int
main(int argc, char **argv)
{
	(void)argc;
	tap_begin(argv);
	probe_small_pages();
	tap_guard(60);
	test_page_density(); /* first: on a heap without holes */
	test_matrix();
	test_beyond();
	test_others();
	test_sized_frees();
	return tap_end();
}
