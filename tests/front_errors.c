/* SPDX-License-Identifier: BSD-2-Clause */
/* front_errors.c - what cannot be given: NULL, the right error, no damage. */
#include "probe.h"

static void *(*volatile p_memalign)(size_t, size_t) = memalign;
static void *(*volatile p_aligned)(size_t, size_t) = aligned_alloc;
static void *(*volatile p_rarray)(void *, size_t, size_t) = reallocarray;
static void *(*volatile p_valloc)(size_t) = valloc;
static void *(*volatile p_pvalloc)(size_t) = pvalloc;
static int (*volatile p_posix)(void **, size_t, size_t) = posix_memalign;

static const size_t huge[] = {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 7,
    SIZE_MAX - 8, SIZE_MAX - 15, SIZE_MAX - 16, SIZE_MAX - 4094,
    SIZE_MAX - 4095, SIZE_MAX - 4096, SIZE_MAX - 65536, SIZE_MAX - (2 << 20),
    SIZE_MAX - (1u << 30), (size_t)PTRDIFF_MAX + 4097, (size_t)PTRDIFF_MAX + 2,
    (size_t)PTRDIFF_MAX + 1, PTRDIFF_MAX, PTRDIFF_MAX - 1, PTRDIFF_MAX - 4095,
    PTRDIFF_MAX - 4096, (size_t)0x7000000000000001, (size_t)0x7000000000000000,
    (size_t)1 << 62, (size_t)1 << 56, (size_t)1 << 48, (size_t)1 << 47};

enum {
	BY_MALLOC,
	BY_CALLOC,
	BY_CALLOC_1,
	BY_REALLOC,
	BY_REALLOC_OLD,
	BY_RARRAY,
	BY_MEMALIGN,
	BY_MEMALIGN_PAGE,
	BY_MEMALIGN_BIG,
	BY_ALIGNED,
	BY_VALLOC,
	BY_PVALLOC,
	BY_END
};

static const char *const by_name[] = {"malloc", "calloc(1, n)", "calloc(n, 1)",
    "realloc(NULL)", "realloc", "reallocarray", "memalign(64)",
    "memalign(4096)", "memalign(4 MiB)", "aligned_alloc", "valloc", "pvalloc"};

static void *
ask(int by, size_t n, void *old)
{
	switch (by) {
	case BY_MALLOC:
		return p_malloc(n);
	case BY_CALLOC:
		return p_calloc(1, n);
	case BY_CALLOC_1:
		return p_calloc(n, 1);
	case BY_REALLOC:
		return p_realloc(NULL, n);
	case BY_REALLOC_OLD:
		return p_realloc(old, n);
	case BY_RARRAY:
		return p_rarray(old, n, 1);
	case BY_MEMALIGN:
		return p_memalign(64, n);
	case BY_MEMALIGN_PAGE:
		return p_memalign(4096, n);
	case BY_MEMALIGN_BIG:
		return p_memalign(4 * MIB, n);
	case BY_ALIGNED:
		return p_aligned(32, n);
	case BY_VALLOC:
		return p_valloc(n);
	default:
		return p_pvalloc(n);
	}
}

static void
test_too_large(void)
{
	for (int by = 0; by < BY_END; by++) {
		bool held = true;
		bool intact = true;

		for (size_t i = 0; i < COUNT(huge); i++) {
			unsigned char *old = p_malloc(3000);
			void *p;

			memset(old, 0x5a, 3000);
			errno = 0;
			p = ask(by, huge[i], old);
			if ((p != NULL || errno != ENOMEM) && held) {
				tap_diag("%s of %zx: %p, errno %d", by_name[by],
				    huge[i], p, errno);
				held = false;
			}
			for (int k = 0; k < 3000; k++)
				intact = intact && old[k] == 0x5a;
			p_free(old);
		}
		tap_ok(held, "%s of too much is NULL and ENOMEM", by_name[by]);
		if (by == BY_REALLOC_OLD || by == BY_RARRAY)
			tap_ok(intact, "%s that fails keeps the block",
			    by_name[by]);
	}
}

static void
test_products(void)
{
	static const size_t pair[][2] = {{SIZE_MAX / 2 + 1, 2},
	    {2, SIZE_MAX / 2 + 1}, {SIZE_MAX, SIZE_MAX},
	    {(size_t)1 << 32, (size_t)1 << 32},
	    {((size_t)1 << 32) + 1, (size_t)1 << 32}, {SIZE_MAX / 3, 5},
	    {3, SIZE_MAX / 3 + 1}, {SIZE_MAX / 16 + 1, 16}};
	bool zeroed = true;
	bool array = true;
	unsigned char *old = p_malloc(77);

	memset(old, 3, 77);
	for (size_t i = 0; i < COUNT(pair); i++) {
		errno = 0;
		zeroed = p_calloc(pair[i][0], pair[i][1]) == NULL &&
			 errno == ENOMEM && zeroed;
		errno = 0;
		array = p_rarray(old, pair[i][0], pair[i][1]) == NULL &&
			errno == ENOMEM && old[76] == 3 && array;
	}
	p_free(old);
	tap_ok(zeroed, "calloc of a product that overflows is ENOMEM");
	tap_ok(array, "reallocarray of a product that overflows is ENOMEM");
}

static void
test_posix_memalign(void)
{
	static const size_t bad[] = {
	    0, 1, 2, 3, 4, 5, 12, 24, 48, 4095, 4097, SIZE_MAX};
	static char target;
	void *const mark = &target;
	void *p = mark;
	bool inval = true;
	bool nomem = true;
	bool align = true;

	errno = 4711;
	for (size_t i = 0; i < COUNT(bad); i++)
		inval = p_posix(&p, bad[i], 100) == EINVAL && inval;
	tap_ok(inval, "posix_memalign returns EINVAL for a bad alignment");
	tap_ok(p == mark && errno == 4711,
	    "posix_memalign's EINVAL touches neither memptr nor errno");
	for (size_t i = 0; i < COUNT(huge); i++)
		for (size_t a = 8; a <= (size_t)1 << 30; a *= 4)
			nomem = p_posix(&p, a, huge[i]) == ENOMEM && nomem;
	for (int a = 48; a < 64; a++)
		align = p_posix(&p, (size_t)1 << a, 16) == ENOMEM && align;
	tap_ok(nomem, "posix_memalign returns ENOMEM for too much");
	tap_ok(align, "posix_memalign returns ENOMEM for 2^48 to 2^63");
	tap_ok(p == mark && errno == 4711,
	    "posix_memalign's ENOMEM touches neither memptr nor errno");
	tap_ok(p_posix(&p, 8, 0) == 0 && p != NULL && p_usable(p) == 8,
	    "posix_memalign(8, 0) gives the smallest block");
	p_free(p);
}

static void
test_aligned_alloc(void)
{
	static const size_t bad[] = {0, 3, 12, 24, 48, 4095, SIZE_MAX};
	bool held = true;
	bool small = true;
	bool top = true;

	for (size_t i = 0; i < COUNT(bad); i++) {
		errno = 0;
		held =
		    p_aligned(bad[i], 100) == NULL && errno == EINVAL && held;
	}
	tap_ok(held, "aligned_alloc of a bad alignment is NULL and EINVAL");
	for (size_t a = 1; a <= 8; a *= 2) {
		void *p = p_aligned(a, 100);

		small = p != NULL && small;
		p_free(p);
	}
	tap_ok(small, "aligned_alloc accepts alignments below a pointer's");
	for (int a = 48; a < 64; a++) {
		errno = 0;
		top = p_aligned((size_t)1 << a, 8) == NULL && errno == ENOMEM &&
		      top;
		errno = 0;
		top = p_memalign((size_t)1 << a, 8) == NULL &&
		      errno == ENOMEM && top;
	}
	tap_ok(top, "alignments of 2^48 to 2^63 are NULL and ENOMEM");
	void *p = p_aligned(64, 100);

	tap_ok(p != NULL && ((uintptr_t)p & 63) == 0,
	    "aligned_alloc does not want a multiple of the alignment");
	p_free(p);
}

static void
test_free_keeps_errno(void)
{
	bool held = true;

	for (size_t n = 1; n < (size_t)64 * MIB; n += n / 3 + 1) {
		void *p[8];

		for (int i = 0; i < 8; i++)
			p[i] = p_malloc(n);
		errno = 4711;
		for (int i = 0; i < 8; i++)
			p_free(p[i]);
		held = held && errno == 4711;
	}
	tap_ok(held, "free keeps errno at every size");
	errno = 4711;
	p_free(p_malloc(10));
	p_free(p_calloc(10, 100000));
	p_free(p_realloc(NULL, 300));
	tap_ok(errno == 4711, "an allocation that succeeds keeps errno");
}

int
main(int argc, char **argv)
{
	char *p;

	(void)argc;
	tap_begin(argv);
	tap_guard(60);
	test_too_large();
	test_products();
	test_posix_memalign();
	test_aligned_alloc();
	test_free_keeps_errno();
	p = p_malloc(1000000);
	if (p != NULL)
		memset(p, 1, 1000000);
	tap_ok(p != NULL, "malloc works after all those failures");
	p_free(p);
	return tap_end();
}
