/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * prof_paths.c - every way to get a block, resize it and free it, while each
 * block is a sample: it is what it would be otherwise, and the profile knows
 * exactly what is live.
 */
#include "prof_api.h"

struct state {
	unsigned long long n;
	unsigned long long bytes;
};

static struct state
state(void)
{
	struct profile f = prof_now(NULL);

	if (!f.good)
		tap_bail("no profile");
	return (struct state){f.head[0], f.head[1]};
}

/* n blocks of so many bytes in all came since. */
static bool
grew(struct state before, unsigned long long n, unsigned long long bytes)
{
	struct state now = state();

	if (now.n == before.n + n && now.bytes == before.bytes + bytes)
		return true;
	tap_diag("%lld blocks of %lld bytes instead of %llu of %llu",
	    (long long)(now.n - before.n),
	    (long long)(now.bytes - before.bytes), n, bytes);
	return false;
}

static const size_t sizes[] = {0, 1, 8, 100, 1024, 14336, 14337, 16384, 40000,
    65536, 65537, 300000, 2 * MIB, 2 * MIB + 1, 5 * MIB};

/* A block is as it should be, counts once, and is gone when it is freed. */
static bool
plain(void *p, size_t size, size_t align, struct state before)
{
	size_t real = x.nallocx(
	    size != 0 ? size : 1, align > 1 ? MALLOCX_ALIGN(align) : 0);
	bool ok = p != NULL && p_usable(p) == real &&
		  (uintptr_t)p % align == 0 && grew(before, 1, real);

	if (!ok)
		tap_diag("size %zu, align %zu", size, align);
	memset(p, 0x5a, real);
	p_free(p);
	return ok && grew(before, 0, 0);
}

static void
mallocs(void)
{
	bool ok = true;

	for (size_t i = 0; i < COUNT(sizes); i++) {
		struct state s = state();

		ok &= plain(p_malloc(sizes[i]), sizes[i], 1, s);
	}
	tap_ok(ok, "malloc");
	ok = true;
	for (size_t i = 0; i < COUNT(sizes); i++) {
		struct state s = state();
		unsigned char *p = p_calloc(1, sizes[i]);

		ok &= filled(p, 0, sizes[i]) && plain(p, sizes[i], 1, s);
	}
	tap_ok(ok, "calloc: zeros");
	ok = true;
	for (size_t i = 0; i < COUNT(sizes); i++)
		for (size_t align = 8; align <= 4 * MIB; align *= 8) {
			struct state s = state();

			ok &= plain(
			    aligned_alloc(align, sizes[i]), sizes[i], align, s);
		}
	tap_ok(ok, "aligned_alloc");
}

static void
reallocs(void)
{
	bool ok = true;

	for (size_t i = 0; i < COUNT(sizes); i++)
		for (size_t k = 1; k < COUNT(sizes); k++) {
			struct state s = state();
			unsigned char *p = p_malloc(sizes[i]);
			size_t keep = sizes[i] < sizes[k] ? sizes[i] : sizes[k];

			memset(p, 0x77, sizes[i]);
			p = p_realloc(p, sizes[k]);
			ok &= filled(p, 0x77, keep) && plain(p, sizes[k], 1, s);
		}
	tap_ok(ok, "realloc, from each size to each");
	{
		struct state s = state();
		void *p = p_malloc(100);

		p = p_realloc(p, 101);
		ok = grew(s, 1, 112);
		p_free(p_realloc(p, 0));
		ok &= grew(s, 0, 0);
	}
	tap_ok(ok, "realloc within the class, and to nothing");
}

static void
with_flags(void)
{
	bool ok = true;

	for (size_t i = 1; i < COUNT(sizes); i++) {
		struct state s = state();
		unsigned char *p =
		    x.mallocx(sizes[i], MALLOCX_ALIGN(64) | MALLOCX_ZERO);

		ok &= filled(p, 0, sizes[i]) && plain(p, sizes[i], 64, s);
		s = state();
		p = x.mallocx(sizes[i], MALLOCX_TCACHE_NONE);
		ok &= grew(s, 1, x.nallocx(sizes[i], 0));
		x.dallocx(p, MALLOCX_TCACHE_NONE);
		ok &= grew(s, 0, 0);
		p = x.mallocx(sizes[i], 0);
		p = x.rallocx(p, 2 * sizes[i], MALLOCX_ZERO);
		ok &= grew(s, 1, x.nallocx(2 * sizes[i], 0));
		x.sdallocx(p, 2 * sizes[i], 0);
		ok &= grew(s, 0, 0);
	}
	tap_ok(ok, "mallocx, rallocx, dallocx, sdallocx");
	{
		struct state s = state();
		void *p = x.mallocx(MIB, 0);
		size_t got = x.xallocx(p, 512 * KIB, 0, 0);

		ok = grew(s, 1, got) && got == 512 * KIB;
		got = x.xallocx(p, 768 * KIB, 0, 0);
		ok &= grew(s, 1, got);
		p_free(p);
		ok &= grew(s, 0, 0);
	}
	tap_ok(ok, "xallocx: another size in place");
}

static void
arenas(void)
{
	unsigned arena = ctl_unsigned("arenas.create");
	unsigned cache = ctl_unsigned("tcache.create");
	int flags = MALLOCX_ARENA(arena) | MALLOCX_TCACHE_NONE;
	struct state s = state();
	unsigned long long bytes = 0;
	bool ok = true;
	void *p[COUNT(sizes)];

	for (size_t i = 1; i < COUNT(sizes); i++) {
		unsigned of = 77;
		size_t n = sizeof of;

		p[i] = x.mallocx(sizes[i], flags);
		bytes += x.nallocx(sizes[i], 0);
		ok &=
		    x.ctl("arenas.lookup", &of, &n, &p[i], sizeof p[i]) == 0 &&
		    of == arena;
	}
	ok &= grew(s, COUNT(sizes) - 1, bytes);
	tap_ok(ok, "a sample of a program's arena is there");
	for (size_t i = 1; i < COUNT(sizes); i += 2) {
		x.dallocx(p[i], i % 4 == 1 ? 0 : MALLOCX_TCACHE_NONE);
		bytes -= x.nallocx(sizes[i], 0);
	}
	ok = grew(s, (COUNT(sizes) - 1) / 2, bytes);
	ok &= ctl_do("arena.%u.reset", arena) == 0 && grew(s, 0, 0);
	p[0] = x.mallocx(1000, flags);
	ok &= grew(s, 1, 1024) && ctl_do("arena.%u.destroy", arena) == 0;
	tap_ok(ok && grew(s, 0, 0), "freed, reset, destroyed: gone");
	ok = true;
	for (size_t i = 1; i < COUNT(sizes); i++) {
		p[0] = x.mallocx(sizes[i], MALLOCX_TCACHE(cache));
		ok &= grew(s, 1, x.nallocx(sizes[i], 0));
		x.dallocx(p[0], MALLOCX_TCACHE(cache));
		ok &= grew(s, 0, 0);
	}
	ok &= ctl_write_unsigned("tcache.destroy", cache) == 0;
	tap_ok(ok, "caches of the program's");
}

static unsigned
lookup(void *p)
{
	unsigned of = UINT32_MAX;
	size_t n = sizeof of;

	(void)x.ctl("arenas.lookup", &of, &n, &p, sizeof p);
	return of;
}

/* A thread that is bound to an arena has its samples there. */
static void
bound(void)
{
	unsigned arena = ctl_unsigned("arenas.create");
	struct state s = state();
	bool ok = ctl_write_unsigned("thread.arena", arena) == 0;

	for (size_t i = 1; i < COUNT(sizes); i++) {
		void *p = p_malloc(sizes[i]);

		ok &= lookup(p) == arena;
		ok &= plain(p, sizes[i], 1, s);
	}
	ok &= ctl_write_unsigned("thread.arena", 0) == 0;
	tap_ok(ok, "a bound thread's samples are of its arena");
}

/* From one place on the stack, by two calls. */
__attribute__((noinline)) static void
two_calls(void **a, void **b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		a[i] = p_malloc(700);
		b[i] = p_malloc(900);
	}
}

static void
stacks(void)
{
	enum { N = 500 };
	static void *a[N];
	static void *b[N];
	char path[64];
	static char line[1 << 16];
	struct text f;
	unsigned of_a = 0;
	unsigned of_b = 0;

	two_calls(a, b, N);
	(void)snprintf(path, sizeof path, "/tmp/eddy_prof.%d", (int)getpid());
	if (prof_dump(path) != 0 || !text_open(&f, path))
		tap_bail("no profile");
	(void)unlink(path);
	while (text_line(&f, line, sizeof line)) {
		of_a += strstr(line, "t*: 500: 384000 [") != NULL;
		of_b += strstr(line, "t*: 500: 512000 [") != NULL;
	}
	(void)munmap(f.map, f.size);
	tap_ok(of_a == 1 && of_b == 1, "two calls in one function, two stacks");
	for (size_t i = 0; i < N; i++) {
		p_free(a[i]);
		p_free(b[i]);
	}
}

/* What is no sample: from the library's own caches, of before. */
static void
mixed(void)
{
	enum { N = 20000 };
	static void *p[N];
	struct state s;
	bool ok = true;

	(void)prof_set("prof.active", false);
	for (size_t i = 0; i < N; i += 2)
		p[i] = p_malloc(1 + i % 3000);
	(void)prof_set("prof.active", true);
	s = state();
	for (size_t i = 1; i < N; i += 2)
		p[i] = p_malloc(1 + i % 3000);
	for (size_t i = 0; i < N; i++) {
		size_t k = i * 7919 % N;

		ok &= p_usable(p[k]) == x.nallocx(1 + k % 3000, 0);
		p_free(p[k]);
	}
	tap_ok(ok && grew(s, 0, 0), "samples and others, freed in any order");
}

/* Where it lies is nobody's business. */
static void
inside(void)
{
	unsigned n = ctl_unsigned("arenas.narenas");
	unsigned a = 77;
	size_t len = sizeof a;
	void *p = p_malloc(100);
	bool ok = x.ctl("arenas.lookup", &a, &len, &p, sizeof p) == 0;

	tap_ok(ok && a < ctl_unsigned("eddy.homes"),
	    "a sample looks like any block of a home");
	tap_ok(
	    ctl_unsigned("arenas.create") == n, "arenas are numbered densely");
	p_free(p);
}

int
main(int argc, char **argv)
{
	(void)argc;
	prof_begin(argv, "prof:true,lg_prof_sample:0");
	tap_guard(300);
	inside();
	mallocs();
	reallocs();
	with_flags();
	arenas();
	bound();
	mixed();
	stacks();
	return tap_end();
}
