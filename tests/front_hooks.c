/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * front_hooks.c - extent hooks: memory of arenas that the program gives and
 * takes.
 */
#include "hook_sets.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/wait.h>

static const char *const source_names[] = {
    "the default hook's", "mmap's", "a buffer of the program's", "a memfd's"};

static extent_hooks_t *
hooks_of(unsigned arena)
{
	extent_hooks_t *k = NULL;
	size_t n = sizeof(k);
	char name[64];

	(void)snprintf(name, sizeof name, "arena.%u.extent_hooks", arena);
	if (x.ctl(name, &k, &n, NULL, 0) != 0)
		tap_bail("%s", name);
	return k;
}

static extent_hooks_t *
exchange(unsigned arena, extent_hooks_t *k)
{
	extent_hooks_t *old = NULL;
	size_t n = sizeof(old);
	char name[64];

	(void)snprintf(name, sizeof name, "arena.%u.extent_hooks", arena);
	if (x.ctl(name, &old, &n, &k, sizeof(k)) != 0)
		tap_bail("%s", name);
	return old;
}

static void
test_defaults(void)
{
	unsigned a = ctl_unsigned("arenas.create");
	size_t n = sizeof(original);
	bool held;

	original = hooks_of(0);
	held = original != NULL && original == hooks_of(a);
	for (unsigned i = 0; held && i < 9; i++)
		held = ((void **)(void *)original)[i] != NULL;
	tap_ok(held, "the default is the same for all, and complete");
	tap_ok(x.ctl("arena.4096.extent_hooks", &original, &n, NULL, 0) ==
		       EFAULT &&
		   x.ctl("arena.4000.extent_hooks", &original, &n, NULL, 0) ==
		       ENOENT,
	    "no arena, no hooks");
	(void)do_arena(a, "destroy");
}

/* Every source, with zeros known and not, refusals of all kinds. */
static void
test_sources(void)
{
	for (unsigned v = 0; v < 4 * 6; v++) {
		static struct work w;
		struct set s;
		unsigned a;
		bool good;

		set_make(&s, (enum source)(v / 6));
		s.says_zero = v % 2 == 0;
		s.does[DALLOC] = v % 3 != 0;
		s.does[DECOMMIT] = v % 6 == 3;
		s.does[PURGE_FORCED] = v % 6 > 1;
		s.does[SPLIT] = v % 6 < 4;
		s.does[MERGE] = v % 6 != 1;
		atomic_store(&buffer_used, 0);
		if (s.says_zero && s.source == BY_BUFFER)
			memset(buffer, 0, sizeof buffer);
		a = create(&s);
		w = (struct work){.seed = tap.seed + v,
		    .flags = MALLOCX_ARENA(a) | NONE,
		    .arena = a,
		    .max = 5 << 20};
		good = work(&w, 1500);
		good &= end_work(&w);
		good &= do_arena(a, "destroy") == 0;
		if (s.wrong != 0 || w.failed > 200 || s.bytes != 0)
			tap_diag("%ld wrong, %ld failed, %zu bytes left",
			    (long)s.wrong, w.failed, (size_t)s.bytes);
		tap_ok(good && s.wrong == 0 && s.n[ALLOC] > 2 && s.bytes == 0 &&
			   (s.source == BY_BUFFER || w.failed == 0),
		    "memory is %s, variant %u", source_names[s.source], v % 6);
	}
}

/* Every call of alloc fails from the n-th on: what can be had is right, the
 * rest is NULL, and nothing is lost. */
static void
test_alloc_fails(void)
{
	bool good = true;
	bool refused = false;
	bool served = false;

	for (long n = 1; n < 40; n++) {
		static struct work w;
		struct set s;
		unsigned a;
		int err;

		set_make(&s, n % 2 == 0 ? BY_MMAP : BY_DEFAULT);
		s.fail_from = n;
		err = try_create(&s, &a);
		refused |= err == EAGAIN && n == 1;
		good &= err == (n == 1 ? EAGAIN : 0);
		if (err != 0)
			continue;
		w = (struct work){.seed = tap.seed + (uint64_t)n,
		    .flags = MALLOCX_ARENA(a) | NONE,
		    .arena = a,
		    .max = 5 << 20};
		errno = 0;
		good &= work(&w, 300) && errno == 0;
		served |= n > 2 && w.failed == 0;
		good &= end_work(&w);
		ctl_epoch();
		good &= ctl_size("stats.arenas.%u.pactive", a) == 0;
		good &=
		    do_arena(a, "destroy") == 0 && s.bytes == 0 && s.wrong == 0;
		if (!good) {
			tap_diag("n %ld: %zu bytes, %ld wrong, pactive %zu", n,
			    (size_t)s.bytes, (long)s.wrong,
			    ctl_size("stats.arenas.%u.pactive", a));
			break;
		}
	}
	tap_ok(good && refused && served,
	    "alloc fails from the n-th call on: NULL, and nothing is lost");
}

/* What is kept from creation serves when alloc gives no more. */
static void
test_reserve(void)
{
	struct set s;
	unsigned a;
	char *p;

	set_make(&s, BY_MMAP);
	a = create(&s);
	tap_ok(
	    s.n[ALLOC] == 1 && s.bytes == 2 << 20, "creation asks for 2 MiB");
	s.does[ALLOC] = false;
	p = x.mallocx(100, MALLOCX_ARENA(a) | NONE);
	tap_ok(p != NULL && lookup(p) == a && s.n[ALLOC] > 1,
	    "which serve when there is no more");
	tap_ok(x.mallocx(3 << 20, MALLOCX_ARENA(a) | NONE) == NULL,
	    "as far as they go");
	tap_ok(do_arena(a, "destroy") == 0 && s.bytes == 0,
	    "and go back with the arena");
}

static void
test_commit_fails(void)
{
	bool good = true;
	long failed = 0;

	for (unsigned v = 0; v < 16; v++) {
		static struct work w;
		struct set s;
		unsigned a;

		set_make(&s, v % 2 == 0 ? BY_MMAP : BY_MEMFD);
		s.does[DALLOC] = false;
		s.says_raw = v % 4 > 1;
		a = create(&s);
		w = (struct work){.seed = tap.seed + v,
		    .flags = MALLOCX_ARENA(a) | NONE,
		    .arena = a,
		    .max = 3 << 20};
		good &= work(&w, 400);
		s.fail_commit_at = s.n[COMMIT] + 1 + v;
		good &= work(&w, 400);
		failed += w.failed;
		/* What is not committed is not touched. */
		(void)exchange(a, original);
		good &= do_arena(a, "purge") == 0;
		(void)exchange(a, &s.k);
		/* It recovers. */
		s.fail_commit_at = 0;
		w.failed = 0;
		good &= work(&w, 200) && w.failed == 0 && end_work(&w);
		good &= s.n[COMMIT] > 0;
		ctl_epoch();
		good &= ctl_size("stats.arenas.%u.pactive", a) == 0;
		good &=
		    do_arena(a, "destroy") == 0 && s.bytes == 0 && s.wrong == 0;
	}
	tap_ok(good && failed > 0,
	    "commit fails: NULL, nothing is lost, and it recovers");
}

/* ---- answers that cannot be ---- */

static char *bad_answer;
static _Atomic int n_returned;

static void *
bad_alloc(extent_hooks_t *k, void *at, size_t size, size_t align, bool *zero,
    bool *commit, unsigned arena)
{
	(void)k, (void)at, (void)size, (void)align, (void)arena;
	*zero = false;
	*commit = true;
	return bad_answer;
}

static bool
bad_dalloc(
    extent_hooks_t *k, void *p, size_t size, bool committed, unsigned arena)
{
	(void)k, (void)size, (void)committed, (void)arena;
	n_returned += p == bad_answer;
	return false;
}

static char heard[200];
static unsigned n_heard;

static void
hear(void *arg, const char *text)
{
	(void)arg;
	n_heard++;
	(void)snprintf(heard, sizeof heard, "%s", text);
}

static void
test_bad_answers(void)
{
	void (**message)(void *, const char *) =
	    dlsym(RTLD_DEFAULT, "malloc_message");
	extent_hooks_t k = {.alloc = bad_alloc, .dalloc = bad_dalloc};
	extent_hooks_t *hooks = &k;
	struct set s;
	unsigned a;
	unsigned b;
	unsigned before;
	size_t n = sizeof(b);
	char *mine;

	set_make(&s, BY_MMAP);
	a = create(&s);
	before = ctl_unsigned("arenas.narenas");
	mine = x.mallocx(3 << 20, MALLOCX_ARENA(a) | NONE);
	bad_answer = mine;
	tap_ok(
	    x.ctl("arenas.create", &b, &n, &hooks, sizeof(hooks)) == EAGAIN &&
		n_returned == 1,
	    "alloc answers with memory that another arena has");
	bad_answer = (char *)s.last + 4096;
	*message = hear;
	tap_ok(
	    x.ctl("arenas.create", &b, &n, &hooks, sizeof(hooks)) == EAGAIN &&
		n_returned == 2,
	    "with what is not aligned");
	tap_ok(
	    x.ctl("arenas.create", &b, &n, &hooks, sizeof(hooks)) == EAGAIN &&
		n_heard == 1 &&
		strstr(heard, "not aligned to the 2097152 bytes") != NULL,
	    "which is told once: %s", strtok(heard, "\n"));
	*message = NULL;
	n_returned--;
	bad_answer = (char *)((uintptr_t)1 << 47);
	tap_ok(
	    x.ctl("arenas.create", &b, &n, &hooks, sizeof(hooks)) == EAGAIN &&
		n_returned == 3,
	    "with an address that no program has");
	bad_answer = (char *)((uintptr_t)malloc(4 << 20) & ~0x1ffffful);
	tap_ok(
	    x.ctl("arenas.create", &b, &n, &hooks, sizeof(hooks)) == EAGAIN &&
		n_returned == 4,
	    "with memory of another heap's blocks");
	tap_ok(ctl_unsigned("arenas.narenas") == before,
	    "an arena that comes to nothing is not counted");
	memset(mine, 1, 3 << 20);
	free(mine);
	tap_ok(do_arena(a, "destroy") == 0 && s.bytes == 0 && s.wrong == 0,
	    "whose memory it was has it still");
}

/* ---- NULL members ---- */

static void
test_null_members(void)
{
	static struct work w;
	struct set s;
	unsigned a;
	bool good;

	set_make(&s, BY_MMAP);
	s.k = (extent_hooks_t){.alloc = s.k.alloc};
	a = create(&s);
	w = (struct work){.seed = tap.seed,
	    .flags = MALLOCX_ARENA(a) | NONE,
	    .arena = a,
	    .max = 5 << 20};
	good = work(&w, 1500) && w.failed == 0;
	/* It cannot be split, so it is not resized where it is. */
	{
		char *p = x.mallocx(32 << 10, w.flags);

		good &= x.xallocx(p, 16 << 10, 0, w.flags) == 32 << 10;
		free(p);
	}
	good &= end_work(&w) && do_arena(a, "destroy") == 0;
	tap_ok(good && s.n[ALLOC] > 1 && s.n[DALLOC] == 0 && s.wrong == 0,
	    "alloc alone");
}

/* ---- blocks of more than a GiB, and those that grow ---- */

static void
test_giant(void)
{
	const size_t giant = ((size_t)5 << 29) + 12345;
	struct set s;
	unsigned a;
	char *p;
	bool good;

	for (enum source from = BY_DEFAULT; from <= BY_MMAP; from++) {
		set_make(&s, from);
		s.says_zero = true;
		a = create(&s);
		p = x.mallocx(giant, MALLOCX_ARENA(a) | NONE | MALLOCX_ZERO |
					 MALLOCX_ALIGN(1 << 30));
		good = p != NULL && (uintptr_t)p % (1 << 30) == 0 &&
		       lookup(p) == a && lookup(p + giant - 1) == a &&
		       x.sallocx(p, 0) >= giant && s.n[ALLOC] == 2;
		if (good) {
			p[0] = p[giant / 2] = p[giant - 1] = 1;
			free(p);
			good = s.n[SPLIT] > 1000;
		}
		good &= do_arena(a, "purge") == 0;
		good &= from == BY_DEFAULT || s.bytes == 2 << 20;
		good &= lookup(p) == UINT32_MAX || from == BY_DEFAULT;
		good &=
		    do_arena(a, "destroy") == 0 && s.bytes == 0 && s.wrong == 0;
		tap_ok(good, "2.5 GiB, %s: one call, and it goes",
		    source_names[from]);
	}
}

static void
test_in_place(void)
{
	struct set s;
	unsigned a;
	int flags;
	char *p;
	size_t got;

	/* The default hook has what lies behind. */
	set_make(&s, BY_DEFAULT);
	a = create(&s);
	flags = MALLOCX_ARENA(a) | NONE;
	p = x.mallocx(8 << 20, flags);
	memset(p, 3, 8 << 20);
	got = x.xallocx(p, 16 << 20, 0, flags);
	tap_ok(got == 16 << 20 && s.n[MERGE] == 1 && is_filled(p, 8 << 20, 3) &&
		   lookup(p + got - 1) == a,
	    "a block grows where it is: merge");
	s.does[SPLIT] = false;
	tap_ok(x.xallocx(p, 4 << 20, 0, flags) == 16 << 20,
	    "it does not shrink where split is refused");
	s.does[SPLIT] = true;
	tap_ok(x.xallocx(p, 4 << 20, 0, flags) == 4 << 20 && s.n[SPLIT] > 0,
	    "and does where it is not");
	s.does[MERGE] = false;
	tap_ok(x.xallocx(p, 16 << 20, 0, flags) == 4 << 20,
	    "it does not grow where merge is refused");
	free(p);
	tap_ok(do_arena(a, "destroy") == 0 && s.bytes == 0 && s.wrong == 0,
	    "and nothing is lost");
	/* Memory from all over. */
	set_make(&s, BY_MMAP);
	a = create(&s);
	flags = MALLOCX_ARENA(a) | NONE;
	p = x.mallocx(8 << 20, flags);
	memset(p, 3, 8 << 20);
	p = x.rallocx(p, 24 << 20, flags);
	tap_ok(p != NULL && is_filled(p, 8 << 20, 3) && lookup(p) == a,
	    "where it is not to be had it is copied");
	free(p);
	(void)do_arena(a, "destroy");
}

/* A block whose extent may not be split is offered as one. */
static void
test_unsplit(void)
{
	struct set s;
	unsigned a;

	set_make(&s, BY_MMAP);
	s.does[SPLIT] = false;
	a = create(&s);
	free(x.mallocx(100 << 20, MALLOCX_ARENA(a) | NONE));
	tap_ok(s.n[DALLOC] == 1 && s.bytes == 2 << 20,
	    "what may not be split goes as one, when it is freed");
	(void)do_arena(a, "destroy");
}

/* A block that cannot grow stays what it is, whatever else is refused. */
static void
test_unmerged(void)
{
	struct set s;
	unsigned a;
	int flags;
	char *p;
	char *next;

	set_make(&s, BY_BUFFER);
	s.does[SPLIT] = s.does[MERGE] = s.does[DALLOC] = false;
	a = create(&s);
	flags = MALLOCX_ARENA(a) | NONE;
	p = x.mallocx(4 << 20, flags);
	next = x.mallocx(4 << 20, flags);
	memset(p, 3, 4 << 20);
	free(next);
	s.does[DALLOC] = true;
	s.n[DALLOC] = 0;
	tap_ok(next == p + (4 << 20) &&
		   x.xallocx(p, 8 << 20, 0, flags) == 4 << 20 &&
		   s.n[MERGE] == 1 && s.n[DALLOC] == 0 &&
		   is_filled(p, 4 << 20, 3) && lookup(p) == a,
	    "where merge and split are refused, a block is not offered");
	free(p);
	(void)do_arena(a, "destroy");
}

static extent_purge_t *first_decommit;

static void *
purge(void *arg)
{
	(void)do_arena(*(unsigned *)arg, "purge");
	return NULL;
}

/* Another thread purges the arena meanwhile, the first time. */
static bool
purge_within(extent_hooks_t *k, void *p, size_t size, size_t offset,
    size_t length, unsigned arena)
{
	struct set *s = (struct set *)(void *)k;
	pthread_t t;

	if (s->n[DECOMMIT] == 0) {
		atomic_fetch_add(&s->n[DECOMMIT], 1);
		if (pthread_create(&t, NULL, purge, &arena) != 0)
			tap_bail("pthread_create");
		(void)pthread_join(t, NULL);
		atomic_fetch_sub(&s->n[DECOMMIT], 1);
	}
	return first_decommit(k, p, size, offset, length, arena);
}

/* Pages that are decommitted already are not offered again. */
static void
test_twice(void)
{
	struct set s;
	unsigned a;
	char *p[6];
	ssize_t never = -1;
	char name[64];

	set_make(&s, BY_MMAP);
	s.does[DALLOC] = false;
	first_decommit = s.k.decommit;
	s.k.decommit = purge_within;
	a = create(&s);
	(void)snprintf(name, sizeof name, "arena.%u.dirty_decay_ms", a);
	(void)x.ctl(name, NULL, NULL, &never, sizeof never);
	for (size_t i = 0; i < 6; i++) {
		p[i] = x.mallocx(32768, MALLOCX_ARENA(a) | NONE);
		memset(p[i], 3, 32768);
	}
	free(p[0]);
	free(p[2]);
	free(p[4]);
	s.n[DECOMMIT] = 0;
	(void)do_arena(a, "purge");
	tap_ok(s.n[DECOMMIT] == 3,
	    "two purges at a time: each page is decommitted once (%ld calls)",
	    s.n[DECOMMIT]);
	for (size_t i = 1; i < 6; i += 2)
		free(p[i]);
	(void)do_arena(a, "destroy");
}

static _Atomic int stage; /* 1: a thread is in a hook; 2: it may go on */

static bool
wait_within(extent_hooks_t *k, void *p, size_t size, size_t offset,
    size_t length, unsigned arena)
{
	int none = 0;

	if (atomic_compare_exchange_strong(&stage, &none, 1))
		while (atomic_load(&stage) == 1)
			(void)usleep(1000);
	return first_decommit(k, p, size, offset, length, arena);
}

/* An arena that ends while another thread has part of it in hand. */
static void
test_ends_meanwhile(void)
{
	struct set s;
	struct set other;
	unsigned a;
	unsigned next;
	pthread_t t;
	char *p[8];

	set_make(&s, BY_MMAP);
	s.does[DALLOC] = false;
	first_decommit = s.k.decommit;
	s.k.decommit = wait_within;
	atomic_store(&stage, 0);
	a = create(&s);
	for (size_t i = 0; i < 8; i++) {
		p[i] = x.mallocx(32768, MALLOCX_ARENA(a) | NONE);
		memset(p[i], 3, 32768);
	}
	free(p[3]);
	if (pthread_create(&t, NULL, purge, &a) != 0)
		tap_bail("pthread_create");
	while (atomic_load(&stage) != 1)
		(void)usleep(1000);
	(void)do_arena(a, "destroy");
	set_make(&other, BY_MMAP);
	next = create(&other);
	tap_ok(next != a, "an arena of which something is in hand has ended: "
			  "its number is not given out");
	atomic_store(&stage, 2);
	(void)pthread_join(t, NULL);
	tap_ok(s.bytes == 0 && s.n[DESTROY] > 0 && s.wrong == 0,
	    "and who has it gives it to destroy");
	(void)do_arena(next, "destroy");
}

/* Pages of chunks in use. */
static void
test_pages(void)
{
	enum { N = 3000 };
	static char *p[N];
	struct set s;
	unsigned a;
	size_t before;

	set_make(&s, BY_MMAP);
	a = create(&s);
	for (size_t i = 0; i < N; i++) {
		p[i] = x.mallocx(16 << 10, MALLOCX_ARENA(a) | NONE);
		memset(p[i], (int)i, 16 << 10);
	}
	before = s.bytes;
	for (size_t i = 0; i < N; i++)
		if (i % 8 != 0)
			free(p[i]);
	(void)do_arena(a, "purge");
	tap_ok(s.bytes < before / 4 && s.n[DALLOC] > 20 && s.n[SPLIT] > 20,
	    "pages between blocks are offered to dalloc, %zu KiB of %zu",
	    s.bytes >> 10, before >> 10);
	tap_ok(lookup(p[1]) == UINT32_MAX && lookup(p[8]) == a,
	    "and are the arena's no more");
	for (size_t i = 0; i < N; i += 8) {
		if (!is_filled(p[i], 16 << 10, (char)i))
			tap_bail("block %zu", i);
		free(p[i]);
	}
	(void)do_arena(a, "purge");
	tap_ok(s.bytes == 2 << 20, "the rest goes when it is free");
	tap_ok(do_arena(a, "destroy") == 0 && s.bytes == 0 && s.wrong == 0,
	    "and nothing twice");
}

/* ---- all names that take a pointer ---- */

static void
test_names(void)
{
	struct {
		size_t nfree, nregs, size;
	} use[2];
	size_t n = sizeof(use);
	struct set s;
	unsigned a;
	unsigned cache;
	size_t len = sizeof(cache);
	char *p[2];
	bool good;

	set_make(&s, BY_BUFFER);
	atomic_store(&buffer_used, 0);
	a = create(&s);
	p[0] = x.mallocx(100, MALLOCX_ARENA(a) | NONE);
	p[1] = x.mallocx(50000, MALLOCX_ARENA(a) | NONE);
	good = p[0] > buffer && p[0] < buffer + sizeof(buffer);
	good &= x.ctl("experimental.utilization.batch_query", use, &n, p,
		    sizeof(p)) == 0;
	tap_ok(good && use[0].nregs == 4096 * 7 / 112 && use[1].nregs == 1 &&
		   use[1].size == x.sallocx(p[1], 0),
	    "batch_query");
	tap_ok(malloc_usable_size(p[0]) == 112 && lookup(p[0] + 50) == a &&
		   lookup(buffer + sizeof(buffer) - 1) == UINT32_MAX,
	    "usable size, lookup of the middle of an object");
	if (x.ctl("tcache.create", &cache, &len, NULL, 0) != 0)
		tap_bail("tcache.create");
	for (unsigned i = 0; i < 1000; i++) {
		char *q =
		    x.mallocx(100, MALLOCX_ARENA(a) | MALLOCX_TCACHE(cache));

		good &= lookup(q) == a;
		memset(q, 1, 100);
		x.dallocx(q, MALLOCX_TCACHE(cache));
	}
	tap_ok(good, "a cache of the program's");
	/* With what it holds, and blocks that live. */
	tap_ok(
	    do_arena(a, "destroy") == 0 && s.bytes == 0 &&
		lookup(p[0]) == UINT32_MAX &&
		x.ctl("tcache.destroy", NULL, NULL, &cache, sizeof(cache)) == 0,
	    "its end");
}

/* ---- hooks that allocate ---- */

static unsigned own_arena;
static int nested;

static void *
busy_alloc(extent_hooks_t *k, void *at, size_t size, size_t align, bool *zero,
    bool *commit, unsigned arena)
{
	void *p = malloc(5000);
	void *q = x.mallocx(70000, MALLOCX_ARENA(arena) | NONE);
	void *r = x.mallocx(3 << 20, MALLOCX_ARENA(own_arena) | NONE);

	nested += p != NULL;
	free(p);
	free(q);
	free(r);
	return set_alloc(k, at, size, align, zero, commit, arena);
}

static bool
busy_dalloc(
    extent_hooks_t *k, void *p, size_t size, bool committed, unsigned arena)
{
	void *q = x.mallocx(100, MALLOCX_ARENA(arena) | NONE);

	free(q);
	(void)do_arena(arena, "purge");
	return set_dalloc(k, p, size, committed, arena);
}

static void
test_busy(void)
{
	static struct work w;
	struct set s;
	unsigned a;
	bool good;

	set_make(&s, BY_MMAP);
	s.k.alloc = busy_alloc;
	s.k.dalloc = busy_dalloc;
	a = create(&s);
	own_arena = a;
	w = (struct work){.seed = tap.seed,
	    .flags = MALLOCX_ARENA(a) | NONE,
	    .arena = a,
	    .max = 5 << 20};
	good = work(&w, 600) && end_work(&w);
	good &= do_arena(a, "destroy") == 0;
	tap_ok(good && nested > 1 && s.wrong == 0,
	    "hooks that allocate, and purge, from their own arena too");
}

/* ---- the default hook for others ---- */

static void
test_default_elsewhere(void)
{
	bool zero = false;
	bool commit = false;
	char *p =
	    original->alloc(NULL, NULL, 3 << 20, 16 << 20, &zero, &commit, 7);
	bool good = p != NULL && zero && commit &&
		    (uintptr_t)p % (16 << 20) == 0 && is_filled(p, 3 << 20, 0);

	memset(p, 1, 3 << 20);
	good &= lookup(p) == UINT32_MAX;
	good &=
	    original->alloc(NULL, p, 3 << 20, 4096, &zero, &commit, 7) == NULL;
	good &= !original->purge_forced(NULL, p, 3 << 20, 4096, 8192, 7) &&
		is_filled(p + 4096, 8192, 0) && p[0] == 1;
	good &= !original->commit(NULL, p, 3 << 20, 0, 4096, 7) &&
		original->decommit(NULL, p, 3 << 20, 0, 4096, 7) &&
		!original->split(NULL, p, 8192, 4096, 4096, true, 7) &&
		!original->merge(NULL, p, 4096, p + 4096, 4096, true, 7);
	good &= !original->dalloc(NULL, p, 3 << 20, true, 7);
	good &= original->alloc(NULL, p, 3 << 20, 4096, &zero, &commit, 7) == p;
	original->destroy(NULL, p, 3 << 20, true, 7);
	tap_ok(good, "the default hooks, called by the program");
}

/* ---- exchange ---- */

static void
test_exchange(void)
{
	static struct work w;
	struct set s;
	struct set t;
	unsigned a = ctl_unsigned("arenas.create");
	bool good;
	char *p;

	w = (struct work){.seed = tap.seed,
	    .flags = MALLOCX_ARENA(a) | NONE,
	    .arena = a,
	    .max = 5 << 20};
	good = work(&w, 500);
	set_make(&s, BY_MMAP);
	s.does[DALLOC] = false;
	s.says_zero = true;
	s.arena = a;
	good &= exchange(a, &s.k) == original && hooks_of(a) == &s.k;
	good &= work(&w, 500);
	p = x.mallocx(1 << 20, w.flags);
	memset(p, 1, 1 << 20);
	free(p);
	good &= do_arena(a, "purge") == 0 && s.n[DECOMMIT] > 0;
	p = x.mallocx((size_t)3 << 30, w.flags);
	good &= p != NULL && s.n[ALLOC] > 0;
	free(p);
	/* The next one has to cope with what it has not given. */
	set_make(&t, BY_MEMFD);
	t.does[DALLOC] = false;
	t.says_zero = true;
	t.arena = a;
	good &= exchange(a, &t.k) == &s.k;
	s.does[ALLOC] = false;
	good &= work(&w, 500) && t.n[COMMIT] > 0;
	/* More than is there already. */
	p = x.mallocx((size_t)3 << 30, w.flags);
	good &= p != NULL && t.n[ALLOC] > 0;
	if (p != NULL)
		p[0] = p[(size_t)3 << 29] = 1;
	/* Back to none, with memory of both. */
	good &= exchange(a, original) == &t.k && hooks_of(a) == original;
	good &= work(&w, 500) && w.failed == 0 && end_work(&w);
	free(p);
	good &= exchange(a, &t.k) == original;
	good &= do_arena(a, "destroy") == 0 && s.wrong == 0 && t.wrong == 0;
	if (!good)
		tap_diag("alloc %ld %ld, commit %ld %ld, decommit %ld %ld, "
			 "wrong %ld %ld, failed %ld",
		    s.n[ALLOC], t.n[ALLOC], s.n[COMMIT], t.n[COMMIT],
		    s.n[DECOMMIT], t.n[DECOMMIT], s.wrong, t.wrong, w.failed);
	tap_ok(good, "hooks are exchanged while blocks live");
	tap_ok(hooks_of(0) == original, "other arenas have theirs");
}

/* ---- arena 0 ---- */

static bool
churn(uint64_t seed, unsigned steps)
{
	enum { N = 2000 };
	char *p[N] = {0};
	size_t n[N];
	bool good = true;

	for (unsigned i = 0; i < steps; i++) {
		unsigned k = (unsigned)(tap_random(&seed) % N);

		if (p[k] != NULL) {
			good &= is_filled(p[k], n[k], (char)k);
			free(p[k]);
			p[k] = NULL;
			continue;
		}
		n[k] = tap_random(&seed) % (i % 64 == 0 ? 3 << 20 : 3000) + 1;
		p[k] = malloc(n[k]);
		if (p[k] == NULL)
			tap_bail("no memory");
		memset(p[k], (char)k, n[k]);
		if (i % 512 == 0) {
			n[k] += 100000;
			p[k] = realloc(p[k], n[k]);
			memset(p[k], (char)k, n[k]);
		}
	}
	for (unsigned k = 0; k < N; k++)
		if (p[k] != NULL) {
			good &= is_filled(p[k], n[k], (char)k);
			free(p[k]);
		}
	return good;
}

#define N_THREADS 4

static void *
churn_thread(void *arg)
{
	uint64_t *seed = arg;

	return churn(*seed, 60000) ? arg : NULL;
}

static bool
churn_threads(void)
{
	pthread_t t[N_THREADS];
	uint64_t seed[N_THREADS];
	bool good = true;

	for (unsigned i = 0; i < N_THREADS; i++) {
		seed[i] = tap.seed + i;
		if (pthread_create(&t[i], NULL, churn_thread, &seed[i]) != 0)
			tap_bail("pthread_create");
	}
	for (unsigned i = 0; i < N_THREADS; i++) {
		void *ret;

		(void)pthread_join(t[i], &ret);
		good &= ret != NULL;
	}
	return good;
}

static bool
fork_churns(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(churn(tap.seed, 20000) && churn_threads() ? 0 : 1);
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static void
test_arena_0(void)
{
	static const enum source from[] = {BY_MMAP, BY_DEFAULT};
	static struct set s[2];

	/* The first: what arena 0 has already may serve as well. */
	for (unsigned i = 0; i < 2; i++) {
		set_make(&s[i], from[i]);
		s[i].does[DALLOC] = from[i] == BY_MMAP;
		s[i].arena = 0;
		(void)exchange(0, &s[i].k);
		s[i].says_zero = true;
		(void)do_arena(0, "purge");
		/* More than is there already. */
		free(x.mallocx((size_t)3 << 30, MALLOCX_ARENA(0) | NONE));
		tap_ok(churn(tap.seed, 60000) && s[i].n[ALLOC] > 0,
		    "arena 0, memory is %s", source_names[from[i]]);
		tap_ok(churn_threads(), "many threads");
		tap_ok(fork_churns(), "a forked child");
		(void)x.ctl("thread.tcache.flush", NULL, NULL, NULL, 0);
		(void)do_arena(0, "purge");
		tap_ok(s[i].wrong == 0 &&
			   (i == 0 ? s[i].n[DALLOC] : s[i].n[DECOMMIT]) > 0,
		    "what is free goes to the hooks");
		(void)exchange(0, original);
		tap_ok(churn_threads(), "and the default again");
	}
}

/* ---- many threads in one arena, frees of others ---- */

#define SLOTS 4096
static _Atomic(char *) shared[SLOTS];
static unsigned shared_arena;

static void *
share_thread(void *arg)
{
	uint64_t seed = *(uint64_t *)arg;
	int flags = MALLOCX_ARENA(shared_arena) | NONE;

	for (unsigned i = 0; i < 40000; i++) {
		unsigned k = (unsigned)(tap_random(&seed) % SLOTS);
		size_t size =
		    tap_random(&seed) % (i % 256 == 0 ? 5 << 20 : 20000) + 16;
		char *p = x.mallocx(size, flags);
		char *old;

		if (p == NULL)
			return NULL;
		memcpy(p, &size, sizeof(size));
		p[size - 1] = (char)size;
		old = atomic_exchange(&shared[k], p);
		if (old == NULL)
			continue;
		memcpy(&size, old, sizeof(size));
		if (old[size - 1] != (char)size)
			return NULL;
		free(old);
		if (i % 4000 == 0)
			(void)do_arena(shared_arena, "purge");
	}
	return arg;
}

static void
test_threads(void)
{
	for (enum source from = BY_DEFAULT; from <= BY_MEMFD; from++) {
		pthread_t t[N_THREADS];
		uint64_t seed[N_THREADS];
		struct set s;
		bool good = true;

		if (from == BY_BUFFER)
			continue;
		set_make(&s, from);
		s.does[DECOMMIT] = from == BY_MEMFD;
		shared_arena = create(&s);
		for (unsigned i = 0; i < N_THREADS; i++) {
			seed[i] = tap.seed + i;
			if (pthread_create(
				&t[i], NULL, share_thread, &seed[i]) != 0)
				tap_bail("pthread_create");
		}
		for (unsigned i = 0; i < N_THREADS; i++) {
			void *ret;

			(void)pthread_join(t[i], &ret);
			good &= ret != NULL;
		}
		for (unsigned i = 0; i < SLOTS; i++) {
			free(shared[i]);
			shared[i] = NULL;
		}
		ctl_epoch();
		good &= ctl_size("stats.arenas.%u.pactive", shared_arena) == 0;
		good &= do_arena(shared_arena, "destroy") == 0;
		if (s.bytes != 0 || s.wrong != 0)
			tap_diag("%zu bytes, %ld wrong", (size_t)s.bytes,
			    (long)s.wrong);
		tap_ok(good && s.bytes == 0 && s.wrong == 0,
		    "threads that free each other's, memory is %s",
		    source_names[from]);
	}
}

/* ---- a thread that is bound ---- */

static void *
bound_thread(void *arg)
{
	unsigned *a = arg;
	bool good;

	good = x.ctl("thread.arena", NULL, NULL, a, sizeof(*a)) == 0;
	for (unsigned i = 0; i < 5000; i++) {
		char *p = malloc(i * 7 + 1);

		good &= lookup(p) == *a;
		p = realloc(p, i * 9 + 1);
		good &= lookup(p) == *a;
		free(p);
	}
	return good ? arg : NULL;
}

static void
test_bound(void)
{
	struct set s;
	unsigned a;
	pthread_t t;
	void *ret;

	set_make(&s, BY_MMAP);
	a = create(&s);
	if (pthread_create(&t, NULL, bound_thread, &a) != 0)
		tap_bail("pthread_create");
	(void)pthread_join(t, &ret);
	tap_ok(ret != NULL, "a thread that is bound to it");
	tap_ok(do_arena(a, "destroy") == 0 && s.bytes == 0, "and its end");
}

int
main(int argc, char **argv)
{
	(void)argc;
	tap_begin(argv);
	tap_guard(600);
	if (!find_allocx())
		tap_skip_all("no mallocx");
	test_defaults();
	test_arena_0();
	test_sources();
	test_alloc_fails();
	test_reserve();
	test_commit_fails();
	test_bad_answers();
	test_null_members();
	test_giant();
	test_in_place();
	test_unsplit();
	test_unmerged();
	test_twice();
	test_ends_meanwhile();
	test_pages();
	test_names();
	test_busy();
	test_default_elsewhere();
	test_exchange();
	test_threads();
	test_bound();
	return tap_end();
}
