/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * front_region.c - regions: objects that end all at once, and sections of code
 * whose malloc comes from one.
 *
 * Arguments: "all": the tests that hold with any options, as one; "torn": that
 * of a reset that is left halfway.
 */
#include "region_api.h"

#include "eddy/eddy.h"

#include <setjmp.h>
#include <sys/time.h>

#define NONE      MALLOCX_TCACHE_NONE
#define N_OBJECTS 4000

/* A size that the heap rounds up to 1,024, and a region to 1,008. */
#define ODD      ((size_t)1000)
#define ODD_REAL ((size_t)1008)

static bool checked; /* the option check */

/* ---- objects and what they hold ---- */

struct object {
	unsigned char *p;
	size_t size;
	unsigned char fill;
};

static struct object objects[N_OBJECTS];

static bool
is_whole(const struct object *o)
{
	return filled(o->p, o->fill, o->size);
}

static void
set_object(struct object *o, void *p, size_t size, unsigned fill)
{
	o->p = p;
	o->size = size;
	o->fill = (unsigned char)(fill % 251 + 1);
	memset(p, o->fill, size);
}

static size_t
some_size(uint64_t *s)
{
	uint64_t v = tap_random(s);

	switch (v % 16) {
	case 0:
		return v / 16 % 20000;
	case 1:
		return v / 16 % 200000;
	default:
		return v / 16 % 300;
	}
}

static bool
all_whole(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (!is_whole(&objects[i])) {
			tap_diag("object %u of %zu bytes", i, objects[i].size);
			return false;
		}
	return true;
}

/* ---- allocation ---- */

static bool
objects_hold(void)
{
	struct eddy_region *r = new_region();
	uint64_t s = tap.seed;
	bool held = true;

	for (int round = 0; round < 3; round++) {
		for (unsigned i = 0; i < N_OBJECTS; i++) {
			size_t size = some_size(&s);
			void *p = eddy_region_alloc(r, size);
			size_t want = size == 0 ? 16 : (size + 15) / 16 * 16;

			held &= p != NULL && (uintptr_t)p % 16 == 0 &&
				p_usable(p) >= want;
			if (!held)
				return false;
			set_object(&objects[i], p, size, i);
		}
		held &= all_whole(N_OBJECTS);
		for (unsigned i = 0; i < N_OBJECTS; i += 3)
			p_free(objects[i].p);
		held &= all_whole(N_OBJECTS);
		held &= rg.reset(r) == 0;
	}
	return held && rg.destroy(r) == 0;
}

static bool
sizes_are_true(void)
{
	struct eddy_region *r = new_region();
	unsigned char *before = NULL;
	size_t had = 0;
	bool held = true;

	for (size_t size = 0; size < 5000; size += 7) {
		unsigned char *p = eddy_region_alloc(r, size);
		size_t want = size == 0 ? 16 : (size + 15) / 16 * 16;

		held &= p_usable(p) == want && x.sallocx(p, 0) == want;
		/* What went before has not become another size. */
		held &= before == NULL || p_usable(before) == had;
		before = p;
		had = want;
	}
	return held && rg.destroy(r) == 0;
}

static bool
alignments_hold(void)
{
	struct eddy_region *r = new_region();
	bool held = true;
	unsigned n = 0;

	for (size_t align = 1; align <= (size_t)4 << 20; align *= 2)
		for (size_t size = 1; size <= 300000; size = size * 7 + 1) {
			void *p = rg.aligned(r, align, size);

			held &= p != NULL && (uintptr_t)p % align == 0 &&
				p_usable(p) >= size;
			if (!held)
				return false;
			set_object(&objects[n], p, size, n);
			n++;
		}
	held &= all_whole(n);
	errno = 0;
	held &= rg.aligned(r, 0, 1) == NULL && errno == EINVAL;
	errno = 0;
	held &= rg.aligned(r, 48, 1) == NULL && errno == EINVAL;
	return held && rg.destroy(r) == 0;
}

static bool
impossible_sizes(void)
{
	static const size_t bad[] = {SIZE_MAX, SIZE_MAX - 15, SIZE_MAX - 16,
	    PTRDIFF_MAX, (size_t)1 << 47};
	struct eddy_region *r = new_region();
	char *p = eddy_region_alloc(r, 100);
	bool held = true;

	for (size_t i = 0; i < COUNT(bad); i++) {
		errno = 0;
		held &= eddy_region_alloc(r, bad[i]) == NULL && errno == ENOMEM;
		errno = 0;
		held &= rg.aligned(r, 4096, bad[i]) == NULL && errno == ENOMEM;
		held &= x.rallocx(p, bad[i], 0) == NULL;
	}
	held &= p_usable(p) == 112 && eddy_region_alloc(r, 1) != NULL;
	return held && rg.destroy(r) == 0;
}

/* Above 1 MiB an object has memory of its own. */
static bool
huge_objects(void)
{
	static const size_t sizes[] = {
	    (1 << 20) + 1, 3 << 19, 2 << 20, (2 << 20) + 1, 5 << 20, 100 << 20};
	struct eddy_region *r = new_region();
	size_t bytes = rg.bytes(r);
	bool held = true;

	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < COUNT(sizes); i++) {
			unsigned char *p = eddy_region_alloc(r, sizes[i]);

			held &= p != NULL && p_usable(p) >= sizes[i];
			if (!held)
				return false;
			p[0] = p[sizes[i] - 1] = 7;
			p_free(p);
			held &= p[0] == 7 && p[sizes[i] - 1] == 7;
		}
		held &= rg.bytes(r) >= bytes + ((size_t)111 << 20);
		held &= rg.reset(r) == 0 && rg.bytes(r) == bytes;
	}
	return held && rg.destroy(r) == 0;
}

/* ---- realloc ---- */

static bool
realloc_in_place(void)
{
	struct eddy_region *r = new_region();
	unsigned char *first = eddy_region_alloc(r, 100);
	unsigned char *p = eddy_region_alloc(r, 100);
	unsigned char *q;
	bool held = true;

	memset(p, 0x31, 100);
	held &= p_realloc(p, 10000) == p && p_usable(p) == 10000;
	held &= filled(p, 0x31, 100);
	held &= p_realloc(p, 50000) == p && p_usable(p) == 50000;
	held &= p_realloc(p, 50) == p && p_usable(p) == 64;
	q = eddy_region_alloc(r, 10);
	/* What the last one gave up is the next one's. */
	held &= q == p + 64;
	/* It is not the last any more: it stays, smaller, or moves. */
	held &= p_realloc(p, 20) == p && filled(p, 0x31, 20);
	q = p_realloc(p, 3000);
	held &= q != p && p_usable(q) >= 3000 && filled(q, 0x31, 20);
	held &= p_usable(first) == 112 && p_usable(p) == 64;
	held &= p_realloc(NULL, 10) != NULL;
	held &= x.xallocx(q, 5000, 0, 0) == 5008;
	held &= x.xallocx(first, 5000, 0, 0) == 112;
	return held && rg.destroy(r) == 0;
}

static bool
realloc_moves(void)
{
	struct eddy_region *r = new_region();
	uint64_t s = tap.seed + 1;
	bool held = true;

	for (unsigned i = 0; i < 200; i++)
		set_object(&objects[i], eddy_region_alloc(r, 40), 40, i);
	for (unsigned k = 0; k < 4000; k++) {
		struct object *o = &objects[tap_random(&s) % 200];
		size_t size = some_size(&s) + 1;
		size_t keep = size < o->size ? size : o->size;
		unsigned char *p;

		if (k % 400 == 0)
			size = ((size_t)1 << 20) + k * 1000;
		p = k % 2 == 0 ? p_realloc(o->p, size)
			       : x.rallocx(o->p, size, 0);
		held &= p != NULL && filled(p, o->fill, keep) &&
			p_usable(p) >= size;
		if (!held)
			return false;
		set_object(o, p, size, k);
		if (k % 1000 == 999)
			held &= all_whole(200);
	}
	held &= all_whole(200);
	/* Zeros behind what there was; a multiple that was asked for. */
	memset(objects[0].p = eddy_region_alloc(r, 64), 9, 64);
	objects[1].p =
	    x.rallocx(objects[0].p, 9000, MALLOCX_ZERO | MALLOCX_ALIGN(4096));
	held &= (uintptr_t)objects[1].p % 4096 == 0 &&
		filled(objects[1].p, 9, 64) &&
		filled(objects[1].p + 64, 0, 9000 - 64);
	/* To an arena by name, and so out of the region. */
	objects[2].p = x.rallocx(
	    objects[1].p, ODD, MALLOCX_ARENA(ctl_unsigned("arenas.create")));
	held &= p_usable(objects[2].p) == 1024 && filled(objects[2].p, 9, 64);
	x.dallocx(objects[2].p, NONE);
	return held && rg.destroy(r) == 0;
}

/* A vector that grows has its last memory, not all that it ever had. */
static bool
huge_vector(void)
{
	struct eddy_region *r = new_region();
	unsigned char *p = eddy_region_alloc(r, 2 << 20);
	bool held = p != NULL;

	memset(p, 0x21, 2 << 20);
	for (size_t size = 3 << 20; held && size < (size_t)200 << 20;
	     size += size / 2) {
		unsigned char *q = p_realloc(p, size);

		held &= q != NULL && filled(q, 0x21, 2 << 20) &&
			p_usable(q) >= size;
		p = q;
	}
	held &= rg.bytes(r) < p_usable(p) + ((size_t)4 << 20);
	p = p_realloc(p, 3 << 20);
	held &= p != NULL && filled(p, 0x21, 2 << 20) &&
		rg.bytes(r) < (size_t)8 << 20;
	p = p_realloc(p, 1000);
	held &= p != NULL && filled(p, 0x21, 1000);
	return held && rg.destroy(r) == 0;
}

/* ---- reset, destroy ---- */

static bool
reset_begins_anew(void)
{
	struct eddy_region *r = new_region();
	void *first = eddy_region_alloc(r, 40);
	size_t bytes;
	bool held = true;

	for (unsigned i = 0; i < 100000; i++)
		held &= eddy_region_alloc(r, 100) != NULL;
	bytes = rg.bytes(r);
	held &= bytes > 10 * MIB;
	for (size_t k = 0; k < 5; k++) {
		held &= rg.reset(r) == 0 && rg.bytes(r) == bytes;
		held &= eddy_region_alloc(r, 40) == first;
		/* Other sizes than before, in what was kept. */
		for (unsigned i = 0; i < 5000; i++) {
			struct object *o = &objects[i % N_OBJECTS];

			set_object(
			    o, eddy_region_alloc(r, 1000 + k * 300), 100, i);
		}
		held &= all_whole(N_OBJECTS) && rg.bytes(r) == bytes;
		for (unsigned i = 0; i < 100; i++)
			held &= p_usable(objects[i].p) ==
				(1000 + k * 300 + 15) / 16 * 16;
	}
	return held && rg.destroy(r) == 0;
}

static bool
reset_keeps_as_told(void)
{
	struct eddy_region_options o = EDDY_REGION_OPTIONS;
	struct eddy_region *r;
	bool held;

	o.first = 100000;
	o.keep = 4 * MIB;
	held = rg.create(&o, &r) == 0 && rg.bytes(r) == 128 * KIB;
	for (unsigned i = 0; i < 20000; i++)
		held &= eddy_region_alloc(r, 1000) != NULL;
	held &= rg.bytes(r) > 16 * MIB;
	held &= rg.reset(r) == 0 && rg.bytes(r) <= 4 * MIB;
	for (unsigned i = 0; i < 20000; i++)
		held &= eddy_region_alloc(r, 1000) != NULL;
	return held && rg.destroy(r) == 0;
}

static bool
bad_options(void)
{
	struct {
		struct eddy_region_options o;
		size_t more;
	} later = {.o = EDDY_REGION_OPTIONS};
	struct eddy_region_options o = EDDY_REGION_OPTIONS;
	struct eddy_region *r = (struct eddy_region *)&later;
	bool held = true;

	errno = 0;
	o.size = 8;
	held &= rg.create(&o, &r) == EINVAL;
	later.o.size = sizeof later;
	later.more = 1;
	held &= rg.create(&later.o, &r) == E2BIG;
	o.size = sizeof o;
	o.arena = 4000;
	held &= rg.create(&o, &r) == EINVAL;
	o.arena = 1;
	held &= rg.create(&o, &r) == EINVAL;
	held &= r == (struct eddy_region *)&later && errno == 0;
	later.more = 0;
	held &= rg.create(&later.o, &r) == 0 && rg.destroy(r) == 0;
	return held && rg.destroy(NULL) == 0;
}

/* In the checked mode it is the end of the process: tests/misuse. */
static bool
destroyed_is_told(void)
{
	struct eddy_region *r = new_region();
	bool held = rg.destroy(r) == 0;

	if (checked)
		return held;
	errno = 0;
	held &= eddy_region_alloc(r, 1) == NULL && errno == EINVAL;
	errno = 0;
	held &= rg.aligned(r, 64, 1) == NULL && errno == EINVAL;
	held &= rg.enter(r) == EINVAL && rg.leave(r) == EINVAL &&
		rg.reset(r) == EINVAL && rg.destroy(r) == EINVAL &&
		rg.bytes(r) == 0;
	return held;
}

static struct {
	char *page;
	size_t size;
	unsigned n;
	sigjmp_buf out;
} torn;

static void
torn_handler(int sig)
{
	if (torn.page == NULL)
		(void)signal(sig, SIG_DFL);
	(void)mprotect(torn.page, torn.size, PROT_READ | PROT_WRITE);
	torn.page = NULL;
	torn.n++;
	siglongjmp(torn.out, 1);
}

/* The reset is left where it writes junk over an object; false: it was not. */
static bool
tear(struct eddy_region *r, char *p)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	torn.page = (char *)(((uintptr_t)p + page - 1) / page * page);
	torn.size = page;
	if (sigsetjmp(torn.out, 1) != 0)
		return true;
	(void)mprotect(torn.page, page, PROT_NONE);
	(void)rg.reset(r);
	/* Nothing was written there. */
	(void)mprotect(torn.page, page, PROT_READ | PROT_WRITE);
	return false;
}

/*
 * A region of which the reset was left by siglongjmp hands out nothing that is
 * the heap's.  By junk, which shows where a reset is: in the memory kept, in
 * that given back, and in that of large objects.
 */
static bool
reset_is_torn(void)
{
	struct sigaction a = {.sa_handler = torn_handler};
	struct eddy_region_options o = EDDY_REGION_OPTIONS;
	struct sigaction before;
	struct eddy_region *r;
	bool held = true;

	o.keep = 2 * MIB;
	sigaction(SIGSEGV, &a, &before);
	for (unsigned k = 0; held && k < 12; k++) {
		char *kept = NULL;
		char *p[3];
		unsigned n = 0;

		if (rg.create(&o, &r) != 0)
			return false;
		/* From 64 KiB to 1 MiB, each twice the one before. */
		while (rg.bytes(r) < MIB)
			kept = eddy_region_alloc(r, 10000);
		held &= rg.reset(r) == 0 && rg.bytes(r) < 2 * MIB;
		/* What goes on here is in 2 MiB that the reset gives back. */
		p[0] = eddy_region_alloc(r, MIB);
		p[1] = kept;
		p[2] = eddy_region_alloc(r, 3 * MIB);
		held &= rg.bytes(r) > 6 * MIB;
		held &= k % 2 == 0 || rg.enter(r) == 0;
		held &= tear(r, p[k / 2 % 3]);
		held &= k % 2 == 0 || rg.leave(r) == 0;
		for (unsigned i = 0; i < 8; i++, n++)
			set_object(&objects[n], p_malloc(2 * MIB), 2 * MIB, n);
		for (unsigned i = 0; i < 400; i++, n++) {
			size_t size = 16 + i * 37;
			void *q = eddy_region_alloc(r, size);

			held &= p_usable(q) == (size + 15) / 16 * 16;
			set_object(&objects[n], q, size, n);
		}
		held &= all_whole(n);
		/* Once more, to its end. */
		if (k >= 6)
			held &= rg.reset(r) == 0 && rg.bytes(r) <= 2 * MIB;
		for (unsigned i = 0; i < 8; i++)
			p_free(objects[i].p);
		held &= rg.destroy(r) == 0;
	}
	(void)sigaction(SIGSEGV, &before, NULL);
	return held && torn.n == 12;
}

/* Each reset begins another life of the memory, of which a byte has the number:
 * what earlier ones left there is not taken for this one's. */
static bool
many_lives(void)
{
	struct eddy_region *r = new_region();
	unsigned char *first = eddy_region_alloc(r, 16);
	bool held = true;

	for (unsigned k = 0; held && k < 1200; k++) {
		/* Many marks in one life, few in the next 299. */
		size_t size = k % 300 == 0 ? 16 : 4096;
		unsigned char *p[40];

		held &= rg.reset(r) == 0;
		for (size_t i = 0; i < COUNT(p); i++)
			p[i] = eddy_region_alloc(r, size);
		for (size_t i = 0; i < COUNT(p); i++)
			held &= p_usable(p[i]) == size;
		held &= p[0] == first;
		if (k % 300 == 0)
			for (unsigned i = 0; i < 8000; i++)
				held &= eddy_region_alloc(r, 16) != NULL;
	}
	return held && rg.destroy(r) == 0;
}

/* What is known of a region's objects goes back to the kernel when its memory
 * does. */
static bool
gives_all(const struct eddy_region_options *o)
{
	struct eddy_region *r;
	bool held = rg.create(o, &r) == 0;
	long before;
	long full;
	long left;

	held &= ctl_do("arena.4096.purge") == 0;
	before = probe_rss_kib();
	/* More than tests before this have left. */
	for (unsigned i = 0; i < 128 * MIB / 1024; i++)
		held &= eddy_region_alloc(r, 1024) != NULL;
	full = probe_rss_kib();
	/* Objects were not touched: it is the marks. */
	if (full - before < 4 * 1024) {
		tap_diag("%ld KiB of marks", full - before);
		held = false;
	}
	held &= rg.destroy(r) == 0 && ctl_do("arena.4096.purge") == 0;
	left = probe_rss_kib();
	/* What is known of chunks may stay. */
	if (left - before > (full - before) / 4) {
		tap_diag("%ld KiB are left", left - before);
		held = false;
	}
	return held;
}

static bool
gives_all_back(void)
{
	return gives_all(NULL);
}

/* The same where hooks give the memory back. */
static bool
hooks_give_all_back(void)
{
	int (*make)(const struct eddy_arena_options *, unsigned *);
	const struct symbol f[] = {{"eddy_arena_create_with", &make}};
	struct eddy_arena_options a = EDDY_ARENA_OPTIONS;
	struct eddy_region_options o = EDDY_REGION_OPTIONS;

	if (checked) {
		tap_diag("with check it stays, full of junk");
		return true;
	}
	a.flags = EDDY_ARENA_NODUMP;
	return find_symbols(f, COUNT(f)) && make(&a, &o.arena) == 0 &&
	       gives_all(&o);
}

static bool
many_regions(void)
{
	static struct eddy_region *r[300];
	bool held = true;

	for (size_t round = 0; round < 3; round++) {
		for (size_t i = 0; i < COUNT(r); i++) {
			r[i] = new_region();
			set_object(&objects[i], eddy_region_alloc(r[i], 500),
			    500, (unsigned)i);
		}
		held &= all_whole(COUNT(r));
		for (size_t i = round % 2; i < COUNT(r); i += 2)
			held &= rg.destroy(r[i]) == 0;
		for (size_t i = !(round % 2); i < COUNT(r); i += 2)
			held &= is_whole(&objects[i]) && rg.destroy(r[i]) == 0;
	}
	return held;
}

/* ---- sections ---- */

/* Whether malloc and its relatives are a region's. */
static bool
are_all(bool of_region)
{
	size_t want = of_region ? ODD_REAL : 1024;
	void *(*cxx_new)(size_t);
	void *(*cxx_new_aligned)(size_t, size_t);
	void *(*at_least)(size_t, size_t *);
	size_t (*good_size)(size_t);
	const struct symbol f[] = {{"_Znwm", &cxx_new},
	    {"_ZnwmSt11align_val_t", &cxx_new_aligned},
	    {"eddy_alloc_at_least", &at_least}, {"eddy_good_size", &good_size}};
	void *p[9] = {0};
	char *text = NULL;
	size_t real = 0;
	bool held = find_symbols(f, COUNT(f));

	p[0] = p_malloc(ODD);
	p[1] = p_calloc(10, ODD / 10);
	held &= filled(p[1], 0, ODD);
	p[2] = p_realloc(NULL, ODD);
	p[3] = aligned_alloc(64, ODD);
	held &= posix_memalign(&p[4], 256, ODD) == 0;
	p[5] = cxx_new(ODD);
	p[6] = cxx_new_aligned(ODD, 128);
	p[7] = x.mallocx(ODD, 0);
	p[8] = x.mallocx(ODD, MALLOCX_ALIGN(64) | MALLOCX_ZERO);
	held &= filled(p[8], 0, ODD);
	for (size_t i = 0; i < COUNT(p); i++) {
		held &= p[i] != NULL && p_usable(p[i]) == want;
		if (!held)
			tap_diag("%zu: %zu bytes", i, p_usable(p[i]));
		memset(p[i], 0x44, ODD);
	}
	held &= ((uintptr_t)p[3] % 64 | (uintptr_t)p[4] % 256 |
		    (uintptr_t)p[6] % 128 | (uintptr_t)p[8] % 64) == 0;
	for (size_t i = 0; i < COUNT(p); i++) {
		p_free(p[i]);
		if (of_region)
			held &= filled(p[i], 0x44, ODD);
	}
	p[0] = at_least(ODD, &real);
	held &= real == want && p_usable(p[0]) == want;
	p_free(p[0]);
	/* Never more than there is, and of the heap what it always was. */
	held &= good_size(ODD) == want && x.nallocx(ODD, 0) == want &&
		x.nallocx(ODD, NONE) == 1024 && good_size(1) == 8 &&
		good_size(SIZE_MAX) == 0;
	held &= asprintf(&text, "%01000d", 7) == 1000;
	p_free(text);
	return held;
}

static bool
sections_redirect(void)
{
	struct eddy_region *r = new_region();
	unsigned arena = ctl_unsigned("arenas.create");
	void *of_heap = p_malloc(ODD);
	void *of_region;
	void *p;
	bool held = are_all(false);

	memset(of_heap, 0x17, ODD);
	held &= rg.enter(r) == 0 && are_all(true);
	/* Blocks of the heap stay there. */
	p = p_realloc(of_heap, 3000);
	held &= p_usable(p) == 3072 && filled(p, 0x17, ODD);
	p_free(p);
	p = x.rallocx(x.mallocx(10, MALLOCX_ARENA(arena) | NONE), ODD, NONE);
	held &= p_usable(p) == 1024;
	x.dallocx(p, NONE);
	p = x.mallocx(ODD, NONE);
	held &= p_usable(p) == 1024;
	x.dallocx(p, NONE);
	/* The region itself, while it is entered. */
	p = eddy_region_alloc(r, ODD);
	of_region = p_malloc(ODD);
	held &= (char *)of_region - (char *)p == ODD_REAL;
	memset(of_region, 0x18, ODD);
	held &= rg.leave(r) == 0 && are_all(false);
	/* And its objects stay there. */
	p = p_realloc(of_region, 3000);
	held &= p_usable(p) == 3008 && filled(p, 0x18, ODD);
	held &= rg.destroy(r) == 0;
	return held;
}

static bool
sections_nest(void)
{
	struct eddy_region *a = new_region();
	struct eddy_region *b = new_region();
	char *p;
	char *q;
	bool held = true;

	held &= rg.leave(a) == EINVAL;
	held &= rg.enter(a) == 0;
	p = p_malloc(16);
	held &= rg.enter(b) == 0;
	q = p_malloc(16);
	held &= rg.enter(a) == 0;
	held &= (char *)p_malloc(16) == p + 16;
	held &= rg.destroy(a) == EBUSY && rg.destroy(b) == EBUSY;
	held &= rg.leave(a) == 0;
	held &= (char *)p_malloc(16) == q + 16;
	held &= rg.leave(b) == 0 && rg.leave(b) == EINVAL;
	held &= (char *)p_malloc(16) == p + 32;
	/* The outer one ends those within. */
	held &= rg.enter(b) == 0 && rg.enter(b) == 0 && rg.leave(a) == 0;
	held &= are_all(false) && rg.leave(b) == EINVAL;
	/* A section may be reset. */
	held &= rg.enter(a) == 0 && rg.reset(a) == 0;
	held &= p_malloc(16) == p && rg.leave(a) == 0;
	return held && rg.destroy(a) == 0 && rg.destroy(b) == 0;
}

static jmp_buf out;

static bool
longjmp_leaves(void)
{
	struct eddy_region *a = new_region();
	struct eddy_region *b = new_region();
	volatile bool held = true;

	for (volatile int i = 0; i < 3; i++) {
		held &= rg.enter(a) == 0;
		if (setjmp(out) == 0) {
			held &= rg.enter(b) == 0 && p_malloc(10) != NULL;
			longjmp(out, 1);
		}
		held &= rg.leave(a) == 0 && are_all(false);
	}
	return held && rg.destroy(a) == 0 && rg.destroy(b) == 0;
}

static void *
try_busy(void *arg)
{
	struct eddy_region *r = arg;
	bool held = true;

	held &= rg.enter(r) == EBUSY && rg.leave(r) == EINVAL;
	errno = 0;
	held &= eddy_region_alloc(r, 1) == NULL && errno == EBUSY;
	held &= rg.reset(r) == EBUSY && rg.destroy(r) == EBUSY;
	held &= are_all(false);
	return held ? arg : NULL;
}

static void *
end_inside(void *arg)
{
	if (rg.enter(arg) != 0 || rg.enter(arg) != 0 || p_malloc(5) == NULL)
		return NULL;
	return arg;
}

static bool
on_thread(void *(*fn)(void *), void *arg)
{
	pthread_t t;
	void *ret;

	if (pthread_create(&t, NULL, fn, arg) != 0 ||
	    pthread_join(t, &ret) != 0)
		tap_bail("thread");
	return ret != NULL;
}

/* An object of a region that another thread is in moves to the heap. */
static void *
realloc_elsewhere(void *arg)
{
	unsigned char *p = p_realloc(arg, 3000);
	bool held = p != NULL && p_usable(p) == 3072 && filled(p, 0x19, ODD);

	p_free(p);
	return held ? arg : NULL;
}

static bool
one_thread_inside(void)
{
	struct eddy_region *r = new_region();
	void *p;
	bool held = true;

	held &= rg.enter(r) == 0;
	held &= on_thread(try_busy, r);
	p = p_malloc(ODD);
	memset(p, 0x19, ODD);
	held &= on_thread(realloc_elsewhere, p);
	held &= rg.leave(r) == 0;
	held &= on_thread(end_inside, r);
	held &= rg.enter(r) == 0 && are_all(true) && rg.leave(r) == 0;
	return held && rg.destroy(r) == 0;
}

/* ---- other threads look, free ---- */

static struct {
	_Atomic(unsigned char *) p;
	_Atomic size_t size;
	struct flag done;
	atomic_bool wrong;
} shown;

static void *
look(void *arg)
{
	(void)arg;
	while (!flag_is_set(&shown.done)) {
		unsigned char *p = atomic_load(&shown.p);
		size_t size = atomic_load(&shown.size);

		if (p == NULL || p != atomic_load(&shown.p))
			continue;
		if (p_usable(p) != size)
			atomic_store(&shown.wrong, true);
		p_free(p);
	}
	return NULL;
}

static bool
others_look(void)
{
	struct eddy_region *r = new_region();
	uint64_t s = tap.seed + 2;
	pthread_t t;
	bool held = true;

	atomic_store(&shown.p, NULL);
	flag_clear(&shown.done);
	if (pthread_create(&t, NULL, look, NULL) != 0)
		tap_bail("thread");
	for (unsigned i = 0; i < 40000; i++) {
		size_t size = 16 + some_size(&s) % 2000 / 16 * 16;
		unsigned char *p = eddy_region_alloc(r, size);

		held &= p != NULL;
		if (i % 64 == 0) {
			atomic_store(&shown.p, NULL);
			atomic_store(&shown.size, size);
			atomic_store(&shown.p, p);
		}
	}
	flag_set(&shown.done);
	(void)pthread_join(t, NULL);
	held &= !atomic_load(&shown.wrong);
	return held && rg.destroy(r) == 0;
}

/* ---- signals ---- */

#define N_HANDLED 1000

static struct {
	struct object o[N_HANDLED];
	atomic_uint n;
	atomic_bool jumps;
} sig;

static sigjmp_buf sig_out;

static void
on_usr1(int s)
{
	unsigned n = atomic_load(&sig.n);
	int kept = errno;
	size_t size = 1 + n % 500;
	void *p;

	(void)s;
	if (n == N_HANDLED)
		return;
	p = n % 3 == 0 ? p_calloc(1, size) : p_malloc(size);
	if (p != NULL) {
		set_object(&sig.o[n], p, size, n);
		atomic_store(&sig.n, n + 1);
	}
	errno = kept;
	if (atomic_load(&sig.jumps))
		siglongjmp(sig_out, 1);
}

/* A signal every so often, of time that goes by. */
static timer_t
shoot(void)
{
	struct sigevent event = {
	    .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	const struct itimerspec often = {{0, 40000}, {0, 40000}};
	timer_t timer;

	if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 ||
	    timer_settime(timer, 0, &often, NULL) != 0)
		tap_bail("timer");
	return timer;
}

static bool
handled_whole(void)
{
	for (unsigned i = 0; i < atomic_load(&sig.n); i++)
		if (!is_whole(&sig.o[i]))
			return false;
	return true;
}

/* Objects of the main program, one by one, until handlers had their share. */
static unsigned
make_objects(unsigned n, uint64_t *s)
{
	while (n < N_OBJECTS && atomic_load(&sig.n) < N_HANDLED) {
		size_t size = some_size(s) % 3000;
		unsigned char *p = p_malloc(size);

		if (p == NULL)
			break;
		set_object(&objects[n], p, size, n);
		if (n % 5 == 0) {
			p = p_realloc(p, size + 100);
			set_object(&objects[n], p, size + 100, n);
		}
		n++;
	}
	return n;
}

static bool
handlers_allocate(bool jump)
{
	struct eddy_region *r = new_region();
	uint64_t s = tap.seed + 3;
	struct sigaction sa = {.sa_handler = on_usr1, .sa_flags = SA_NODEFER};
	struct sigaction before;
	timer_t timer;
	volatile bool held = true;

	atomic_store(&sig.n, 0);
	/* No handler within a handler, so that they may count. */
	sa.sa_flags = 0;
	(void)sigaction(SIGUSR1, &sa, &before);
	timer = shoot();
	for (volatile unsigned round = 0;
	     held && atomic_load(&sig.n) < N_HANDLED; round++) {
		volatile unsigned n = 0;

		held &= rg.enter(r) == 0;
		if (sigsetjmp(sig_out, 1) == 0) {
			atomic_store(&sig.jumps, jump);
			n = make_objects(0, &s);
		} else {
			/* Objects on their way were not counted. */
			n = 0;
		}
		atomic_store(&sig.jumps, false);
		held &= all_whole(n) && rg.leave(r) == 0;
		/* After what was torn: all is right with those that follow. */
		for (unsigned i = 0; i < 50; i++)
			set_object(
			    &objects[i], eddy_region_alloc(r, i * 9), i * 9, i);
		held &= all_whole(50);
		for (unsigned i = 0; i < 50; i++)
			held &= p_usable(objects[i].p) ==
				(i == 0 ? 16 : (i * 9 + 15) / 16 * 16);
		held &= handled_whole();
		if (round % 8 == 7) {
			sigset_t set;

			/* What handlers have of the region ends. */
			sigemptyset(&set);
			sigaddset(&set, SIGUSR1);
			(void)pthread_sigmask(SIG_BLOCK, &set, NULL);
			held &= rg.reset(r) == 0;
			for (unsigned i = 0; i < atomic_load(&sig.n); i++)
				sig.o[i].size = 0;
			(void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
		}
	}
	(void)timer_delete(timer);
	(void)signal(SIGUSR1, SIG_IGN);
	(void)sigaction(SIGUSR1, &before, NULL);
	return held && rg.destroy(r) == 0;
}

/* ---- fork ---- */

static bool
forks(void)
{
	struct eddy_region *r = new_region();
	char why[64];
	bool held = true;
	pid_t pid;

	for (unsigned i = 0; i < 200; i++)
		set_object(&objects[i], eddy_region_alloc(r, 900), 900, i);
	held &= rg.enter(r) == 0;
	pid = fork();
	if (pid == 0) {
		bool ok;

		probe_child_begin(60);
		ok = are_all(true) && all_whole(200);
		for (unsigned i = 200; i < 2000; i++)
			set_object(&objects[i], p_malloc(900), 900, i);
		ok &= all_whole(2000) && rg.leave(r) == 0 && are_all(false) &&
		      rg.reset(r) == 0 && eddy_region_alloc(r, 9) != NULL &&
		      rg.destroy(r) == 0;
		_exit(!ok);
	}
	for (unsigned i = 200; i < 1000; i++)
		set_object(&objects[i], p_malloc(900), 900, i + 7);
	held &= probe_wait(pid, why, sizeof why);
	held &= all_whole(1000) && rg.leave(r) == 0;
	return held && rg.destroy(r) == 0;
}

/* ---- arenas ---- */

/* A region that cannot grow says so, and goes on after a reset. */
static bool
full_arena(void)
{
	int (*make)(const struct eddy_arena_options *, unsigned *);
	const struct symbol f[] = {{"eddy_arena_create_with", &make}};
	struct eddy_arena_options file = EDDY_ARENA_OPTIONS;
	struct eddy_region_options o = EDDY_REGION_OPTIONS;
	struct eddy_region *r;
	unsigned count[3];
	bool held = true;
	int err;

	if (!find_symbols(f, COUNT(f)))
		return false;
	file.flags = EDDY_ARENA_FILE;
	file.file_size = 16 * MIB;
	err = make(&file, &o.arena);
	if (err != 0) {
		tap_diag("no arena of a file: %d", err);
		return true;
	}
	held &= rg.create(&o, &r) == 0;
	for (int k = 0; held && k < 3; k++) {
		size_t size = k == 2 ? 90000 : 1000;

		count[k] = 0;
		errno = 0;
		while (eddy_region_alloc(r, size) != NULL)
			count[k]++;
		held &= errno == ENOMEM && count[k] * size > 4 * MIB;
		/* What is left is of no use to malloc either. */
		held &= rg.enter(r) == 0;
		errno = 0;
		held &= p_malloc(100000) == NULL && errno == ENOMEM;
		errno = 0;
		held &= p_calloc(3, 100000) == NULL && errno == ENOMEM;
		held &= x.mallocx(100000, 0) == NULL;
		held &= rg.leave(r) == 0 && p_malloc(ODD) != NULL;
		held &= rg.reset(r) == 0;
	}
	held &= count[0] == count[1];
	/* As long as there is a region its arena stays. */
	held &= ctl_do("arena.%u.reset", o.arena - 1) == EFAULT &&
		ctl_do("arena.%u.destroy", o.arena - 1) == EFAULT;
	held &= rg.destroy(r) == 0;
	held &= ctl_do("arena.%u.reset", o.arena - 1) == 0 &&
		ctl_do("arena.%u.destroy", o.arena - 1) == 0;
	return held;
}

/* What a region without an arena grows by while its thread is bound to one
 * keeps that one. */
static bool
bound_arena(void)
{
	struct eddy_region *r = new_region();
	unsigned before = ctl_unsigned("thread.arena");
	unsigned i = ctl_unsigned("arenas.create");
	bool held = ctl_write_unsigned("thread.arena", i) == 0;

	for (unsigned k = 0; k < 100; k++)
		set_object(&objects[k], eddy_region_alloc(r, 5000), 5000, k);
	/* And objects with memory of their own. */
	for (unsigned k = 100; k < 102; k++)
		set_object(
		    &objects[k], eddy_region_alloc(r, 3 * MIB), 3 * MIB, k);
	held &= ctl_write_unsigned("thread.arena", before) == 0;
	held &= ctl_do("arena.%u.reset", i) == EFAULT &&
		ctl_do("arena.%u.destroy", i) == EFAULT && all_whole(102);
	/* One gives its memory back, and one grows. */
	held &= p_realloc(objects[100].p, 100 * MIB) != NULL;
	objects[101].p = p_realloc(objects[101].p, 4 * MIB);
	objects[100].size = 0;
	held &= objects[101].p != NULL && all_whole(102);
	held &= ctl_do("arena.%u.reset", i) == EFAULT;
	held &= rg.destroy(r) == 0;
	return held && ctl_do("arena.%u.reset", i) == 0 &&
	       ctl_do("arena.%u.destroy", i) == 0;
}

/* Memory of the program's hooks, at any address. */
static void *
hook_alloc(extent_hooks_t *k, void *at, size_t size, size_t align, bool *zero,
    bool *commit, unsigned arena)
{
	size_t more = size + (align > 2 * MIB ? align : 2 * MIB);
	char *p;

	(void)k, (void)arena;
	if (at != NULL)
		return NULL;
	p = mmap(NULL, more, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	*zero = *commit = true;
	/* Malloc in a hook is the heap's, in the midst of a region's growth. */
	p_free(p_malloc(ODD));
	return (void *)(((uintptr_t)p + align - 1) & ~(align - 1));
}

static bool
hooked_arena(void)
{
	static extent_hooks_t hooks = {.alloc = hook_alloc};
	extent_hooks_t *k = &hooks;
	struct eddy_region_options o = EDDY_REGION_OPTIONS;
	struct eddy_region *r;
	unsigned i = 0;
	size_t n = sizeof i;
	bool held = true;
	uint64_t s = tap.seed + 4;

	if (x.ctl("arenas.create", &i, &n, &k, sizeof k) != 0)
		return false;
	o.arena = i + 1;
	held &= rg.create(&o, &r) == 0;
	for (int round = 0; held && round < 3; round++) {
		held &= round != 1 || rg.enter(r) == 0;
		for (unsigned j = 0; j < N_OBJECTS; j++) {
			size_t size = some_size(&s);
			void *p = round != 1 ? eddy_region_alloc(r, size)
					     : p_malloc(size);

			if (p == NULL)
				return false;
			held &= p_usable(p) >= size;
			set_object(&objects[j], p, size, j);
			p_free(p);
		}
		objects[0].p = p_realloc(objects[0].p, 3 << 20);
		held &= objects[0].p != NULL && all_whole(N_OBJECTS);
		held &= round != 1 || rg.leave(r) == 0;
		held &= rg.reset(r) == 0;
	}
	return held && rg.destroy(r) == 0;
}

/* ---- figures ---- */

static bool
counted(void)
{
	size_t live = ctl_size("stats.regions.live");
	size_t bytes = ctl_size("stats.regions.bytes");
	size_t in_hand;
	long metadata;
	long with_many;
	long with_large;
	struct eddy_region *r;
	bool held = true;

	ctl_epoch();
	in_hand = ctl_size("eddy.in_hand");
	metadata = (long)ctl_size("stats.metadata");
	r = new_region();
	for (unsigned i = 0; i < 10000; i++)
		held &= eddy_region_alloc(r, 500) != NULL;
	ctl_epoch();
	with_many = (long)ctl_size("stats.metadata");
	held &= eddy_region_alloc(r, 70 * MIB) != NULL;
	ctl_epoch();
	with_large = (long)ctl_size("stats.metadata");
	/* A byte for 16 of objects, not of large ones; what else there is may
	 * come and go meanwhile. */
	held &= with_many - metadata > 10000 * 512 / 16 / 2 &&
		with_many - metadata < (long)MIB &&
		with_large - with_many < (long)(70 * MIB / 16 / 2);
	if (!held)
		tap_diag(
		    "metadata %ld, %ld, %ld", metadata, with_many, with_large);
	held &= ctl_size("stats.regions.live") == live + 1;
	held &= ctl_size("stats.regions.bytes") == bytes + rg.bytes(r);
	ctl_epoch();
	/* A walk knows what they are. */
	held &= ctl_size("eddy.in_hand") == in_hand;
	held &= rg.destroy(r) == 0;
	if (!checked)
		held &= ctl_size("stats.regions.bytes") == bytes;
	return held && ctl_size("stats.regions.live") == live;
}

static bool
discards(void)
{
	int (*discard)(void *, size_t, size_t);
	const struct symbol f[] = {{"eddy_discard", &discard}};
	struct eddy_region *r = new_region();
	char *p = eddy_region_alloc(r, 50000);
	char *q = eddy_region_alloc(r, 16);
	bool held = find_symbols(f, COUNT(f));

	memset(p, 1, 50000);
	memset(q, 2, 16);
	held &= discard(p, 10, 49980) == 0 && filled(p + 10, 0, 49980) &&
		filled(p, 1, 10) && filled(p + 49990, 1, 10) &&
		filled(q, 2, 16);
	held &= discard(p + 16, 0, 1) == EINVAL;
	held &= discard(p, 0, 50001) == EINVAL;
	return held && rg.destroy(r) == 0;
}

/* ---- */

struct test {
	bool (*fn)(void);
	const char *name;
};

static bool
handlers_return(void)
{
	return handlers_allocate(false);
}

static bool
handlers_jump(void)
{
	return handlers_allocate(true);
}

static const struct test tests[] = {
    {objects_hold, "objects hold what was written, freed or not"},
    {sizes_are_true, "malloc_usable_size is true of each"},
    {alignments_hold, "alignments to 4 MiB"},
    {impossible_sizes, "sizes that cannot be: ENOMEM, and nothing changed"},
    {huge_objects, "objects above 1 MiB, freed by a reset"},
    {realloc_in_place, "the last object grows where it is"},
    {realloc_moves, "others move within the region"},
    {huge_vector, "what a large object had before it moved is given back"},
    {reset_begins_anew, "a reset begins anew in the same memory"},
    {reset_keeps_as_told, "and keeps as much as it was told"},
    {bad_options, "options that cannot be: EINVAL, E2BIG"},
    {destroyed_is_told, "a destroyed region is told: EINVAL"},
    {many_lives, "lives of the same memory do not mix, however many"},
    {gives_all_back, "all that it had goes back when pages are purged"},
    {hooks_give_all_back, "so does that of hooked memory"},
    {many_regions, "hundreds of regions, ended in any order"},
    {sections_redirect, "malloc's family inside a section is the region's"},
    {sections_nest, "sections nest; leave without enter: EINVAL"},
    {longjmp_leaves, "who leaves by longjmp is out by one leave"},
    {one_thread_inside, "one thread inside: EBUSY to others, until it ends"},
    {others_look, "other threads ask for sizes, and free"},
    {handlers_return, "handlers allocate in the midst of an allocation"},
    {handlers_jump, "and jump out of it"},
    {forks, "a child has the region for itself, inside as well"},
    {full_arena, "a full arena: ENOMEM; an arena with regions stays: EFAULT"},
    {bound_arena, "so does one that a thread was bound to when a region grew"},
    {hooked_arena, "memory of the program's hooks, at other addresses"},
    {counted, "statistics know of regions"},
    {discards, "eddy_discard within an object"},
};

int
main(int argc, char **argv)
{
	static const char *const confs[] = {"rseq:false", "check:true",
	    "junk:true", "zero:true", "prof:true,lg_prof_sample:10",
	    "dirty_decay_ms:0", "tcache:false"};
	size_t n = sizeof checked;

	tap_begin(argv);
	if (!find_regions())
		tap_skip_all("no regions in this malloc");
	/* By whatever source it is set. */
	if (x.ctl("opt.check", &checked, &n, NULL, 0) != 0)
		tap_bail("opt.check");
	tap_guard(300);
	if (argc > 1 && strcmp(argv[1], "torn") == 0)
		return !reset_is_torn();
	if (argc > 1) {
		for (size_t i = 0; i < COUNT(tests); i++)
			if (!tests[i].fn()) {
				tap_diag("%s", tests[i].name);
				return 1;
			}
		return 0;
	}
	for (size_t i = 0; i < COUNT(tests); i++)
		tap_ok(tests[i].fn(), "%s", tests[i].name);
	for (size_t i = 0; i < COUNT(confs); i++) {
		(void)setenv("EDDY_CONF", confs[i], 1);
		tap_ok(probe_again(argv, "all", confs[i]),
		    "all of that with %s", confs[i]);
	}
	(void)setenv("EDDY_CONF", "junk:true", 1);
	tap_ok(probe_again(argv, "torn", "torn"),
	    "a reset that is left by siglongjmp hands out nothing twice");
	return tap_end();
}
