/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * front_allocx.c - mallocx, rallocx, xallocx, sallocx, dallocx, sdallocx,
 * nallocx: sizes, alignments, zeros, growth in place, what fails and how.
 *
 * Arguments: "wrong": a size to sdallocx that is none of the block's;
 * "xmalloc".
 */
#include "allocx_api.h"

static const size_t sizes[] = {1, 8, 9, 16, 17, 100, 128, 129, 1000, 4096, 4097,
    8192, 14336, 14337, 16384, 16385, 40000, 65536, 65537, 100000, MIB, MIB + 1,
    2 * (size_t)MIB, 2 * (size_t)MIB + 1, 5 * (size_t)MIB};

/* ---- sizes ---- */

static bool
one_size(size_t size, unsigned lg)
{
	int flags = MALLOCX_LG_ALIGN(lg);
	size_t want = x.nallocx(size, flags);
	char *p = x.mallocx(size, flags);
	bool held;

	if (p == NULL)
		return false;
	held = want >= size && x.sallocx(p, flags) == want &&
	       p_usable(p) == want && (uintptr_t)p % ((uintptr_t)1 << lg) == 0;
	if (!held)
		tap_diag("%zu, 2^%u: %p of %zu, told %zu", size, lg, (void *)p,
		    p_usable(p), want);
	p[0] = p[want - 1] = 1;
	x.sdallocx(p, lg % 2 == 0 ? size : want, flags);
	return held;
}

static void
test_sizes(void)
{
	bool held = true;

	for (size_t i = 0; i < COUNT(sizes); i++)
		for (unsigned lg = 0; lg <= 23; lg++)
			held &= one_size(sizes[i], lg);
	tap_ok(held, "nallocx tells what a block really holds; blocks are "
		     "aligned; sdallocx takes either size");
	tap_ok(x.nallocx(10, MALLOCX_ALIGN(64)) == 64 &&
		   x.nallocx(100, MALLOCX_ALIGN(64)) == 128 &&
		   x.nallocx(4096, MALLOCX_ALIGN(8192)) == 16384 &&
		   x.nallocx(16385, 0) == 20480 &&
		   x.nallocx(100000, 0) == 102400 &&
		   x.nallocx(MIB + 1, 0) == 1052672 && x.nallocx(1, 0) == 8,
	    "sizes are those of jemalloc 5.3.1");
}

static void
test_too_large(void)
{
	static const struct {
		size_t size;
		unsigned lg;
	} bad[] = {
	    {PTRDIFF_MAX, 0},
	    {(size_t)0x7000000000000001, 0},
	    {SIZE_MAX, 0},
	    {1, 63},
	    {SIZE_MAX / 2 + 1, 63},
	    {(size_t)0x7000000000000000, 12},
	};
	void *kept = x.mallocx(100, 0);
	bool told = true;
	bool given = false;

	memset(kept, 7, 100);
	errno = 5;
	for (size_t i = 0; i < COUNT(bad); i++) {
		int flags = MALLOCX_LG_ALIGN(bad[i].lg);

		if (i + 1 < COUNT(bad))
			told &= x.nallocx(bad[i].size, flags) == 0;
		given |= x.mallocx(bad[i].size, flags) != NULL;
		given |= x.rallocx(kept, bad[i].size, flags) != NULL;
	}
	tap_ok(told, "nallocx is 0 for what is too large");
	tap_ok(!given && errno == 5 && filled(kept, 7, 100),
	    "mallocx and rallocx give NULL, errno and the block untouched");
	tap_ok(x.nallocx((size_t)0x7000000000000000, 0) ==
		   (size_t)0x7000000000000000,
	    "the largest class is one");
	x.dallocx(kept, 0);
	errno = 5;
	x.dallocx(NULL, 0);
	x.sdallocx(NULL, 4, 0);
	kept = x.mallocx(MIB, 0);
	x.sdallocx(kept, MIB, 0);
	tap_ok(errno == 5, "dallocx and sdallocx keep errno, and take NULL");
}

/* ---- zeros ---- */

static void
dirty(size_t size, unsigned n)
{
	void *p[64];

	for (unsigned i = 0; i < n; i++) {
		p[i] = p_malloc(size);
		memset(p[i], 0xee, p_usable(p[i]));
	}
	while (n-- > 0)
		p_free(p[n]);
}

static void
test_zero(void)
{
	bool held = true;

	for (size_t i = 0; i < COUNT(sizes); i++)
		for (unsigned lg = 0; lg <= 22; lg += 11) {
			int flags = MALLOCX_LG_ALIGN(lg) | MALLOCX_ZERO;
			void *p;

			dirty(sizes[i], sizes[i] < MIB ? 64 : 4);
			p = x.mallocx(sizes[i], flags);
			held &= filled(p, 0, x.sallocx(p, 0));
			memset(p, 0xee, x.sallocx(p, 0));
			x.dallocx(p, 0);
		}
	tap_ok(held, "MALLOCX_ZERO: all that the block really holds is zero");
}

static void
test_grown_zero(void)
{
	bool held = true;
	unsigned moved = 0;

	for (size_t i = 0; i < COUNT(sizes); i++)
		for (size_t k = 0; k < COUNT(sizes); k++) {
			size_t old;
			size_t new;
			char *p;
			char *q;

			dirty(sizes[k], 2);
			p = x.mallocx(sizes[i], MALLOCX_ZERO);
			old = x.sallocx(p, 0);
			memset(p, 0x41, old);
			q = x.rallocx(p, sizes[k], MALLOCX_ZERO);
			new = x.sallocx(q, 0);
			moved += q != p;
			held &= new == x.nallocx(sizes[k], 0);
			held &= filled(q, 0x41, new < old ? new : old);
			held &= new <= old || filled(q + old, 0, new - old);
			memset(q, 0xee, new);
			x.dallocx(q, 0);
		}
	tap_ok(held, "rallocx keeps the old bytes and zeroes those behind");
	tap_ok(moved > COUNT(sizes), "%u of them moved", moved);
}

/* ---- rallocx ---- */

static void
test_realigned(void)
{
	bool held = true;

	for (unsigned lg = 4; lg <= 21; lg++) {
		char *p = x.mallocx(200, MALLOCX_LG_ALIGN(0));
		char *q;

		memset(p, 0x42, 200);
		q = x.rallocx(p, 300, MALLOCX_LG_ALIGN(lg));
		held &= (uintptr_t)q % ((uintptr_t)1 << lg) == 0 &&
			filled(q, 0x42, 200);
		/* The same size, another alignment. */
		q = x.rallocx(q, 300, MALLOCX_LG_ALIGN(lg + 1));
		held &= (uintptr_t)q % ((uintptr_t)2 << lg) == 0 &&
			filled(q, 0x42, 200);
		x.sdallocx(q, 300, MALLOCX_LG_ALIGN(lg + 1));
	}
	tap_ok(held, "rallocx aligns what it gives");
	for (int i = 0; i < 4; i++) {
		/* One whole chunk, whose pages go elsewhere. */
		char *p = x.mallocx(100, MALLOCX_ALIGN(4 << 20));
		char *q;

		memset(p, 0x42, 2 << 20);
		q = x.rallocx(p, (size_t)700 << 20, 0);
		held &= filled(q, 0x42, 2 << 20);
		x.dallocx(q, 0);
	}
	tap_ok(held, "and moves what was aligned by chunks");
}

/* ---- xallocx ---- */

static void
test_small_stays(void)
{
	void *p = x.mallocx(100, 0);

	tap_ok(x.xallocx(p, 112, 0, 0) == 112 &&
		   x.xallocx(p, 50, 0, 0) == 112 &&
		   x.xallocx(p, 113, 0, 0) == 112 &&
		   x.xallocx(p, 5, 1000000, 0) == 112,
	    "xallocx: a small object keeps its class");
	tap_ok(x.xallocx(p, SIZE_MAX, 0, 0) == 112 &&
		   x.xallocx(p, 1, SIZE_MAX - 1, 0) == 112,
	    "whatever is asked");
	x.dallocx(p, 0);
}

/* A block that has grown in place over what it wrote before; NULL: it did not.
 */
static char *
grow(size_t from, size_t to, int flags)
{
	char *p = x.mallocx(to, 0);
	size_t got;

	memset(p, 0x43, to);
	got = x.xallocx(p, from, 0, 0);
	if (got == from)
		got = x.xallocx(p, to, 0, flags);
	if (got == to)
		return p;
	tap_diag("%zu to %zu: %zu", from, to, got);
	x.dallocx(p, 0);
	return NULL;
}

static void
test_in_place(void)
{
	const size_t mib = MIB;
	char *p = x.mallocx(mib, 0);
	size_t n;

	tap_ok(x.xallocx(p, mib / 2, 0, 0) == mib / 2 &&
		   x.sallocx(p, 0) == mib / 2,
	    "a large block shrinks where it is");
	n = x.xallocx(p, mib / 4, mib / 2, 0);
	tap_ok(n >= mib / 2 && n <= 3 * mib / 4,
	    "what lies between size and size + extra may stay");
	tap_ok(x.xallocx(p, 100, 0, 0) == x.sallocx(p, 0),
	    "it does not become a small one");
	x.dallocx(p, 0);
	p = grow(mib / 2, mib, 0);
	tap_ok(p != NULL, "and grows");
	if (p != NULL) {
		tap_ok(filled(p, 0x43, mib / 2), "and keeps its bytes");
		tap_ok(x.xallocx(p, mib, (size_t)1 << 50, 0) == mib,
		    "extra that is not to be had does no harm");
		tap_ok(x.xallocx(p, (size_t)0x7000000000000001, 0, 0) == mib &&
			   x.xallocx(p, mib, SIZE_MAX - mib, 0) == mib,
		    "nor does what is too large");
		x.dallocx(p, 0);
	}
	p = x.mallocx(64 * mib, 0);
	tap_ok(x.xallocx(p, 32 * mib, 0, 0) == 32 * mib &&
		   x.xallocx(p, 48 * mib, 0, 0) == 48 * mib,
	    "whole chunks do the same");
	x.dallocx(p, 0);
}

static void
test_in_place_zero(void)
{
	static const size_t steps[] = {20480, 65536, 69632, 500 * KIB, MIB,
	    (3 << 20) - 40960, 3 << 20, (3 << 20) + 4096, 9 << 20,
	    (9 << 20) + 8192};

	for (size_t i = 0; i + 1 < COUNT(steps); i++) {
		const size_t from = steps[i];
		const size_t to = steps[i + 1];
		char *p;

		/* A run does not become whole chunks. */
		if (from <= 2 * (size_t)MIB && to > 2 * (size_t)MIB)
			continue;
		p = grow(from, to, MALLOCX_ZERO);
		tap_ok(p != NULL && filled(p, 0x43, from) &&
			   filled(p + from, 0, to - from),
		    "xallocx zeroes what a block grows by: %zu to %zu", from,
		    to);
		if (p != NULL)
			x.dallocx(p, 0);
	}
}

/* ---- options ---- */

static int
wrong(void)
{
	void *p = x.mallocx(100, 0);

	x.sdallocx(p, 113, 0);
	return 0;
}

static int
xmalloc(void)
{
	return x.mallocx(PTRDIFF_MAX, 0) == NULL ? 1 : 2;
}

static bool
aborts(char **argv, char *arg, const char *conf, const char *want)
{
	char text[256] = "";
	int fd[2];
	int st;
	pid_t pid;

	if (pipe(fd) != 0)
		tap_bail("pipe");
	pid = fork();
	if (pid == 0) {
		struct rlimit none = {0, 0};

		probe_child_begin(20);
		(void)setrlimit(RLIMIT_CORE, &none);
		(void)dup2(fd[1], STDERR_FILENO);
		(void)setenv("EDDY_CONF", conf, 1);
		(void)setenv("EDDY_TAP_CHILD", "1", 1);
		tap_exec(argv[0], arg);
	}
	(void)close(fd[1]);
	if (read(fd[0], text, sizeof text - 1) < 0)
		tap_bail("read");
	(void)close(fd[0]);
	if (waitpid(pid, &st, 0) == pid && WIFSIGNALED(st) &&
	    WTERMSIG(st) == SIGABRT && strstr(text, want) != NULL)
		return true;
	tap_diag("%s: status 0x%x, \"%s\"", conf, st, text);
	return false;
}

static void
test_options(char **argv)
{
	char arg1[] = "wrong";
	char arg2[] = "xmalloc";

	tap_ok(aborts(argv, arg1, "check:true", "<eddy>: wrong size: 0x"),
	    "check:true: sdallocx looks at the size");
	tap_ok(aborts(argv, arg2, "xmalloc:true", "out of memory"),
	    "xmalloc:true: no NULL from mallocx");
	(void)setenv("EDDY_CONF", "check:true", 1);
	tap_ok(probe_again(argv, "sizes", "sizes"), "the same with check:true");
	(void)setenv("EDDY_CONF", "rseq:false", 1);
	tap_ok(probe_again(argv, "sizes", "sizes"), "and in claim mode");
	(void)setenv("EDDY_CONF", "disable_large_size_classes:false", 1);
	tap_ok(probe_again(argv, "classes", "classes"),
	    "and with the classes of 5.3.0");
	(void)setenv("EDDY_CONF", "junk:true", 1);
	tap_ok(probe_again(argv, "junk", "junk"),
	    "junk:true fills fresh blocks, and not zero ones");
	(void)unsetenv("EDDY_CONF");
}

/* Arguments "sizes", "classes". */
static int
all_sizes(void)
{
	bool held = true;

	for (size_t i = 0; i < COUNT(sizes); i++)
		for (unsigned lg = 0; lg <= 23; lg++)
			held &= one_size(sizes[i], lg);
	return !held;
}

static int
classes(void)
{
	return x.nallocx(MIB + 1, 0) == 1310720 && x.nallocx(16385, 0) == 20480
		   ? all_sizes()
		   : 1;
}

static int
junk(void)
{
	char *p = x.mallocx(100, 0);
	char *z = x.mallocx(100, MALLOCX_ZERO);
	char *r;

	if (!filled(p, 0xa5, x.sallocx(p, 0)) || !filled(z, 0, x.sallocx(z, 0)))
		return 1;
	memset(z, 1, x.sallocx(z, 0));
	r = x.rallocx(z, 300, MALLOCX_ZERO);
	return filled(r, 1, 112) && filled(r + 112, 0, 320 - 112) ? 0 : 2;
}

/* ---- messages ---- */

static char said[4096];
static size_t n_said;

static void
take(void *arg, const char *s)
{
	size_t n = strlen(s);

	/* As programs do. */
	p_free(p_malloc(100));
	if (arg == NULL && n_said + n < sizeof said) {
		memcpy(said + n_said, s, n);
		n_said += n;
	}
}

static void
test_message(void)
{
	void (**message)(void *, const char *) =
	    dlsym(RTLD_DEFAULT, "malloc_message");
	void (*print)(void (*)(void *, const char *), void *, const char *) =
	    dlsym(RTLD_DEFAULT, "malloc_stats_print");

	if (message == NULL || print == NULL) {
		tap_ok(false, "malloc_message is there");
		return;
	}
	*message = take;
	print(NULL, NULL, "gablnf");
	*message = NULL;
	tap_ok(n_said > 100 && strstr(said, "active") != NULL,
	    "malloc_message takes statistics");
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *arg;
		int (*run)(void);
	} parts[] = {{"wrong", wrong}, {"xmalloc", xmalloc},
	    {"sizes", all_sizes}, {"classes", classes}, {"junk", junk}};

	tap_begin(argv);
	if (!find_allocx())
		tap_skip_all("no mallocx here");
	for (size_t i = 0; i < COUNT(parts); i++)
		if (argc > 1 && strcmp(argv[1], parts[i].arg) == 0)
			return parts[i].run();
	tap_guard(120);
	test_sizes();
	test_too_large();
	test_zero();
	test_grown_zero();
	test_realigned();
	test_small_stays();
	test_in_place();
	test_in_place_zero();
	test_message();
	test_options(argv);
	return tap_end();
}
