/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * front_hook_sets.c - ready-made extent hooks: what the kernel was told, as
 * /proc/self/smaps has it, what goes back, what is refused, copies of sets,
 * children, arenas that end and begin again.
 *
 * Argument: the part that a process of its own does.
 */
#include "allocx_api.h"

#include "eddy/hooks.h"

#define GIB ((size_t)1 << 30)
#define PAGES                                                         \
	(EDDY_ARENA_THP | EDDY_ARENA_NOHUGE | EDDY_ARENA_HUGETLB_2M | \
	    EDDY_ARENA_HUGETLB_1G)

static struct {
	extent_hooks_t *(*set)(unsigned);
	int (*collapse)(unsigned);
	int (*create)(const struct eddy_arena_options *, unsigned *);
	void *(*alloc)(unsigned, size_t);
	size_t (*purge)(unsigned);
	int (*discard)(void *, size_t, size_t);
	int (*move)(unsigned, int);
} api;

static bool
find_api(void)
{
	static const struct symbol f[] = {
	    {"eddy_hook_set", &api.set},
	    {"eddy_arena_collapse", &api.collapse},
	    {"eddy_arena_create_with", &api.create},
	    {"eddy_arena_malloc", &api.alloc},
	    {"eddy_purge_now", &api.purge},
	    {"eddy_discard", &api.discard},
	    {"eddy_arena_move", &api.move},
	};

	return find_symbols(f, COUNT(f)) && find_allocx();
}

/* ------------------------------------------------------------------ */
/* What the kernel says */

static char smaps[4 << 20];

/* The lines of the mapping that p lies in, as a string; NULL: there is none. */
static char *
mapping_of(const void *p)
{
	int fd = open("/proc/self/smaps", O_RDONLY | O_CLOEXEC);
	size_t n = 0;
	ssize_t got;
	char *found = NULL;

	while (n < sizeof smaps - 1 &&
	       (got = read(fd, smaps + n, sizeof smaps - 1 - n)) > 0)
		n += (size_t)got;
	(void)close(fd);
	smaps[n] = '\0';
	for (char *line = smaps, *end; (end = strchr(line, '\n')) != NULL;
	     line = end + 1) {
		char *rest;
		uintptr_t from = strtoull(line, &rest, 16);
		uintptr_t to;

		if (*rest != '-')
			continue;
		if (found != NULL) {
			*line = '\0';
			return found;
		}
		to = strtoull(rest + 1, NULL, 16);
		if ((uintptr_t)p >= from && (uintptr_t)p < to)
			found = line;
	}
	return found;
}

/* Whether that mapping has a flag: two letters. */
static bool
has_flag(const void *p, const char *flag)
{
	char *m = mapping_of(p);
	char *flags = m != NULL ? strstr(m, "VmFlags:") : NULL;
	char word[8];

	(void)snprintf(word, sizeof word, " %s", flag);
	return flags != NULL && strstr(flags, word) != NULL;
}

static long
number_of(const void *p, const char *name)
{
	char *m = mapping_of(p);
	char *at = m != NULL ? strstr(m, name) : NULL;

	return at != NULL ? strtol(at + strlen(name), NULL, 10) : -1;
}

/* Huge pages of /sys, in brackets. */
static bool
thp_is(const char *word)
{
	char buf[128];
	char want[32];
	int fd = open("/sys/kernel/mm/transparent_hugepage/enabled",
	    O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, buf, sizeof buf - 1);

	if (fd >= 0)
		(void)close(fd);
	buf[n > 0 ? n : 0] = '\0';
	(void)snprintf(want, sizeof want, "[%s]", word);
	return strstr(buf, want) != NULL;
}

/* Whether there are huge pages for who asks, and of the length of a chunk. */
static bool
has_thp(void)
{
	char buf[32] = "";
	int fd = open("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size",
	    O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, buf, sizeof buf - 1);

	if (fd >= 0)
		(void)close(fd);
	return n > 0 && atol(buf) == 2 * MIB &&
	       (thp_is("always") || thp_is("madvise"));
}

/* Pages of [p, p + size) that hold memory. */
static size_t
resident(void *p, size_t size)
{
	static unsigned char vec[65536];
	size_t n = 0;

	if (size / PAGE > sizeof vec || mincore(p, size, vec) != 0)
		return SIZE_MAX;
	for (size_t i = 0; i < size / PAGE; i++)
		n += vec[i] & 1;
	return n;
}

/* ------------------------------------------------------------------ */

static unsigned
create(unsigned flags)
{
	struct eddy_arena_options o = EDDY_ARENA_OPTIONS;
	unsigned a = 0;
	int err;

	o.flags = flags;
	err = api.create(&o, &a);
	if (err != 0)
		tap_bail("eddy_arena_create_with %#x: %d", flags, err);
	return a;
}

static int
create_by(const char *words, unsigned *ret)
{
	size_t n = sizeof(*ret);

	return x.ctl("eddy.arena_create", ret, &n, &words, sizeof(words));
}

static int
do_arena(unsigned a, const char *what)
{
	char name[64];

	(void)snprintf(name, sizeof name, "arena.%u.%s", a - 1, what);
	return x.ctl(name, NULL, NULL, NULL, 0);
}

static extent_hooks_t *
hooks_of(unsigned a)
{
	extent_hooks_t *k = NULL;
	size_t n = sizeof(k);
	char name[64];

	(void)snprintf(name, sizeof name, "arena.%u.extent_hooks", a - 1);
	(void)x.ctl(name, &k, &n, NULL, 0);
	return k;
}

static char text[1 << 20];
static size_t n_text;

static void
put_text(void *unused, const char *piece)
{
	size_t n = strlen(piece);

	(void)unused;
	if (n < sizeof text - n_text) {
		memcpy(text + n_text, piece, n + 1);
		n_text += n;
	}
}

/* A count of the statistics. */
static long
count_of(const char *name)
{
	void (*print)(void (*)(void *, const char *), void *, const char *);
	void *sym = dlsym(RTLD_DEFAULT, "malloc_stats_print");
	char key[64];
	char *at;

	memcpy(&print, &sym, sizeof sym);
	n_text = 0;
	print(put_text, NULL, "Jablnf");
	(void)snprintf(key, sizeof key, "\"%s\":", name);
	at = strstr(text, key);
	return at != NULL ? strtol(at + strlen(key), NULL, 10) : -1;
}

/* ------------------------------------------------------------------ */
/* Names */

static void
test_names(void)
{
	const unsigned rest[] = {0, EDDY_ARENA_LOCKED, EDDY_ARENA_NODUMP,
	    EDDY_ARENA_NOFORK,
	    EDDY_ARENA_LOCKED | EDDY_ARENA_NODUMP | EDDY_ARENA_NOFORK};
	const unsigned pages[] = {0, EDDY_ARENA_THP, EDDY_ARENA_NOHUGE,
	    EDDY_ARENA_HUGETLB_2M, EDDY_ARENA_HUGETLB_1G};
	extent_hooks_t *seen[COUNT(pages) * COUNT(rest)];
	size_t n = 0;
	bool held = true;

	for (size_t i = 0; i < COUNT(pages); i++)
		for (size_t k = 0; k < COUNT(rest); k++) {
			seen[n] = api.set(pages[i] | rest[k]);
			held &= seen[n] != NULL && seen[n]->alloc != NULL;
			for (size_t j = 0; j < n; j++)
				held &= seen[j] != seen[n];
			n++;
		}
	tap_ok(held, "each sum of flags has hooks of its own");
	tap_ok(api.set(0) == hooks_of(1), "no flags: the default ones");
	tap_ok(api.set(EDDY_ARENA_THP | EDDY_ARENA_NOHUGE) == NULL &&
		   api.set(PAGES) == NULL && api.set(EDDY_ARENA_FILE) == NULL &&
		   api.set(1u << 31) == NULL,
	    "flags that do not go together have none");
}

static void
test_words(void)
{
	static const struct {
		const char *words;
		unsigned flags;
	} good[] = {
	    {"", 0},
	    {"thp", EDDY_ARENA_THP},
	    {"nohuge,node:0", EDDY_ARENA_NOHUGE},
	    {"hugetlb", EDDY_ARENA_HUGETLB_2M},
	    {"hugetlb:2M,locked", EDDY_ARENA_HUGETLB_2M | EDDY_ARENA_LOCKED},
	    {"hugetlb:1G,nofork", EDDY_ARENA_HUGETLB_1G | EDDY_ARENA_NOFORK},
	    {"locked,nodump,thp",
		EDDY_ARENA_LOCKED | EDDY_ARENA_NODUMP | EDDY_ARENA_THP},
	    {"node:0,thp", EDDY_ARENA_THP},
	};
	static const char *const bad[] = {"thp,", ",thp", "thp,nohuge", "thp ",
	    "THP", "hugetlb:4K", "node:", "node:x", "node:99999999999999999999",
	    "file:", "file:0", "file:1Q", "file:4M,locked", "thp,file:4M",
	    "fill", "node:0x", "file:99999999999T", "locked,,nodump"};
	unsigned a = 0;

	for (size_t i = 0; i < COUNT(good); i++) {
		int err = create_by(good[i].words, &a);

		tap_ok(err == 0 && hooks_of(a + 1) == api.set(good[i].flags) &&
			   do_arena(a + 1, "destroy") == 0,
		    "\"%s\" is an arena", good[i].words);
	}
	for (size_t i = 0; i < COUNT(bad); i++) {
		unsigned before = a;

		tap_ok(create_by(bad[i], &a) == EINVAL && a == before,
		    "\"%s\" is none", bad[i]);
	}
	tap_ok(
	    create_by("node:1000", &a) == EINVAL, "nor is a node that is none");
	tap_ok(create_by("file:4M", &a) == 0 && api.alloc(a + 1, MIB) != NULL &&
		   api.alloc(a + 1, 4 * MIB) == NULL,
	    "a file of 4 MiB");
	tap_ok(create_by("fill,file:2M:/tmp", &a) == 0 &&
		   api.alloc(a + 1, MIB) != NULL,
	    "a file in a directory");
	tap_ok(create_by("file:2M:/no/such/place", &a) == ENOENT,
	    "a file nowhere");
}

/* ------------------------------------------------------------------ */
/* What the kernel was told */

static void
test_flags(void)
{
	static const struct {
		unsigned flag;
		const char *vm;
	} told[] = {
	    {EDDY_ARENA_THP, "hg"},
	    {EDDY_ARENA_NOHUGE, "nh"},
	    {EDDY_ARENA_LOCKED, "lo"},
	    {EDDY_ARENA_NODUMP, "dd"},
	    {EDDY_ARENA_NOFORK, "dc"},
	};

	for (unsigned flags = 1; flags < 2 * EDDY_ARENA_NOFORK; flags++) {
		unsigned a;
		char *small;
		char *large;
		char *plain;
		bool held = true;

		if (api.set(flags) == NULL)
			continue;
		a = create(flags);
		small = api.alloc(a, 100);
		large = api.alloc(a, 5 * MIB);
		if (small == NULL || large == NULL)
			tap_bail("no memory");
		for (size_t i = 0; i < COUNT(told); i++) {
			const bool want = (flags & told[i].flag) != 0;

			held &= has_flag(small, told[i].vm) == want &&
				has_flag(large, told[i].vm) == want;
		}
		small[0] = large[0] = 1;
		held &= do_arena(a, "destroy") == 0;
		/* The next one has its place. */
		a = create(0);
		for (unsigned k = 0; k < 8; k++) {
			plain = api.alloc(a, 5 * MIB);
			for (size_t i = 0; i < COUNT(told); i++)
				held &= !has_flag(plain, told[i].vm);
		}
		held &= do_arena(a, "destroy") == 0;
		tap_ok(held, "flags %#x are told, and forgotten", flags);
	}
}

/* ------------------------------------------------------------------ */
/* Use */

enum { SLOTS = 400, STEPS = 2500 };

/* Blocks of all sizes come, change their size and go, and keep what they hold.
 */
static bool
work(unsigned a, uint64_t *seed)
{
	static unsigned char *block[SLOTS];
	static size_t size[SLOTS];
	const int flags = MALLOCX_ARENA(a - 1) | MALLOCX_TCACHE_NONE;
	bool held = true;

	for (unsigned i = 0; i < STEPS; i++) {
		const uint64_t r = tap_random(seed);
		const unsigned k = (unsigned)(r % SLOTS);
		const unsigned char mark = (unsigned char)(k % 251);
		size_t n = (size_t)1 << (r >> 16) % 23;

		n += (r >> 32) % n;
		if (block[k] != NULL) {
			held &= block[k][0] == mark &&
				block[k][size[k] - 1] == mark;
			if (r >> 60 == 0) {
				block[k] = x.rallocx(block[k], n, flags);
				held &= block[k] != NULL && block[k][0] == mark;
				block[k][n - 1] = mark;
				size[k] = n;
				continue;
			}
			x.dallocx(block[k], MALLOCX_TCACHE_NONE);
			block[k] = NULL;
		} else {
			const bool zero = r >> 63 != 0;

			block[k] =
			    x.mallocx(n, flags | (zero ? MALLOCX_ZERO : 0));
			if (block[k] == NULL)
				return false;
			for (size_t j = 0; zero && j < n; j += 509)
				held &= block[k][j] == 0;
			block[k][0] = block[k][n / 2] = mark;
			block[k][n - 1] = mark;
			size[k] = n;
		}
		if (r >> 52 == 7)
			(void)api.purge(a);
	}
	for (unsigned k = 0; k < SLOTS; k++)
		block[k] = NULL;
	return held;
}

static void
test_work(void)
{
	const unsigned all[] = {EDDY_ARENA_THP, EDDY_ARENA_NOHUGE,
	    EDDY_ARENA_HUGETLB_2M, EDDY_ARENA_HUGETLB_1G, EDDY_ARENA_LOCKED,
	    EDDY_ARENA_NODUMP, EDDY_ARENA_NOFORK,
	    EDDY_ARENA_THP | EDDY_ARENA_LOCKED | EDDY_ARENA_NOFORK};
	uint64_t seed = tap.seed;

	for (size_t i = 0; i < COUNT(all); i++)
		for (int ms = -1; ms < 2; ms++) {
			unsigned a = create(all[i]);
			ssize_t decay = ms;
			char name[64];

			(void)snprintf(name, sizeof name,
			    "arena.%u.dirty_decay_ms", a - 1);
			(void)x.ctl(name, NULL, NULL, &decay, sizeof decay);
			tap_ok(work(a, &seed) && do_arena(a, "reset") == 0 &&
				   work(a, &seed) &&
				   do_arena(a, "destroy") == 0,
			    "flags %#x at work, decay %d ms", all[i], ms);
		}
}

/* ------------------------------------------------------------------ */
/* Transparent huge pages */

enum { CHUNK = 2 * MIB, CHUNKS = 32, PIECE = 128 * KIB };

static void
test_thp(void)
{
	unsigned a = create(EDDY_ARENA_THP);
	char *p = api.alloc(a, CHUNKS * CHUNK);
	char *piece[4 * CHUNK / PIECE];
	char *last;
	long kib;

	for (unsigned i = 0; i < CHUNKS; i++)
		p[i * CHUNK] = 1;
	kib = number_of(p, "AnonHugePages:");
	if (!has_thp()) {
		tap_skip("huge pages", "there are none of 2 MiB");
		(void)do_arena(a, "destroy");
		return;
	}
	tap_ok(kib >= CHUNKS * CHUNK / KIB,
	    "a touch brings a huge page: %ld KiB", kib);
	x.dallocx(p, MALLOCX_TCACHE_NONE);
	(void)api.purge(a);
	tap_ok(resident(p, CHUNKS * CHUNK) == 0 && mapping_of(p) != NULL,
	    "all of them go back: %zu pages left", resident(p, CHUNKS * CHUNK));
	for (size_t i = 0; i < COUNT(piece); i++) {
		piece[i] = api.alloc(a, PIECE);
		piece[i][0] = 1;
	}
	kib = number_of(piece[0], "AnonHugePages:");
	for (size_t i = 0; i < COUNT(piece); i += 2)
		x.dallocx(piece[i], MALLOCX_TCACHE_NONE);
	tap_ok(
	    api.purge(a) == 0 && number_of(piece[1], "AnonHugePages:") == kib,
	    "parts of them do not: %ld KiB", kib);
	last = piece[COUNT(piece) - 1];
	for (size_t i = 1; i < COUNT(piece) - 1; i += 2)
		x.dallocx(piece[i], MALLOCX_TCACHE_NONE);
	(void)api.purge(a);
	tap_ok(number_of(last, "AnonHugePages:") <= kib - 2 * CHUNK / KIB &&
		   last[0] == 1,
	    "but those in which nothing is left");
	(void)do_arena(a, "destroy");
}

/* Of a chunk of which little was ever touched. */
static void
test_partial(void)
{
	unsigned a = create(EDDY_ARENA_THP);
	char *big = api.alloc(a, CHUNK);
	char *p = api.alloc(a, PIECE);
	char *q = api.alloc(a, 4 * CHUNK);

	if (!has_thp()) {
		tap_skip("a chunk used in part", "no huge pages of 2 MiB");
		return;
	}
	p[0] = 1;
	x.dallocx(p, MALLOCX_TCACHE_NONE);
	x.dallocx(q, MALLOCX_TCACHE_NONE);
	x.dallocx(big, MALLOCX_TCACHE_NONE);
	(void)api.purge(a);
	(void)api.purge(a);
	tap_ok(resident((void *)((uintptr_t)p & ~(uintptr_t)(CHUNK - 1)),
		   CHUNK) == 0,
	    "a chunk that was used in part goes as a whole");
	(void)do_arena(a, "destroy");
}

/* With dirty_decay_ms:0 too. */
static void
test_at_once(void)
{
	extent_hooks_t *k = api.set(EDDY_ARENA_THP);
	unsigned a = create(EDDY_ARENA_THP);
	char *piece[CHUNK / PIECE / 2];
	ssize_t ms = 0;
	char name[64];
	long kib;
	char *p;

	(void)snprintf(name, sizeof name, "arena.%u.dirty_decay_ms", a - 1);
	(void)x.ctl(name, NULL, NULL, &ms, sizeof ms);
	p = api.alloc(a, 4 * CHUNK);
	memset(p, 1, 4 * CHUNK);
	x.dallocx(p, MALLOCX_TCACHE_NONE);
	tap_ok(resident(p, 4 * CHUNK) == 0, "huge blocks go at once");
	for (size_t i = 0; i < COUNT(piece); i++) {
		piece[i] = api.alloc(a, PIECE);
		piece[i][0] = 1;
	}
	kib = number_of(piece[0], "AnonHugePages:");
	for (size_t i = 1; i < COUNT(piece); i++)
		x.dallocx(piece[i], MALLOCX_TCACHE_NONE);
	tap_ok(
	    number_of(piece[0], "AnonHugePages:") == kib &&
		k->purge_forced(NULL, piece[0], CHUNK, PIECE, PIECE, a - 1) &&
		piece[0][0] == 1,
	    "parts of huge pages do not: %ld KiB", kib);
	(void)do_arena(a, "destroy");
}

static void
test_collapse(void)
{
	unsigned a = create(EDDY_ARENA_THP);
	unsigned other = create(EDDY_ARENA_NODUMP);
	char *p;
	int err;

	tap_ok(api.collapse(a) == 0 && api.collapse(other) == EINVAL &&
		   api.collapse(1) == EINVAL && api.collapse(4000) == EINVAL,
	    "what can be collapsed");
	(void)prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	p = api.alloc(a, 8 * CHUNK);
	memset(p, 3, 8 * CHUNK);
	(void)prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
	err = has_thp() && number_of(p, "AnonHugePages:") == 0 ? api.collapse(a)
							       : EINVAL;
	if (err == EINVAL) {
		tap_skip("small pages become huge ones", "the kernel cannot");
	} else {
		bool held = p[0] == 3 && p[8 * CHUNK - 1] == 3;

		tap_ok(held && (err != 0 || number_of(p, "AnonHugePages:") ==
						8 * CHUNK / KIB),
		    "small pages become huge ones: %d", err);
	}
	(void)do_arena(a, "destroy");
	(void)do_arena(other, "destroy");
}

/* ------------------------------------------------------------------ */
/* Copies */

static extent_hooks_t *inner;
static _Atomic long n_allocs;
static _Atomic long n_wrong;

/* In the way of programs that hand their own hooks on. */
static void *
counting_alloc(extent_hooks_t *hooks, void *at, size_t size, size_t align,
    bool *zero, bool *commit, unsigned arena)
{
	n_allocs++;
	return inner->alloc(hooks, at, size, align, zero, commit, arena);
}

static bool
odd_forced(extent_hooks_t *hooks, void *addr, size_t size, size_t offset,
    size_t length, unsigned arena)
{
	bool refused =
	    inner->purge_forced(NULL, addr, size, offset, length, arena);

	(void)hooks;
	if (!refused && (offset | length) % CHUNK != 0)
		n_wrong++;
	return refused;
}

static void
test_copies(void)
{
	extent_hooks_t mine;
	extent_hooks_t *k = &mine;
	unsigned a = 0;
	size_t n = sizeof(a);
	char *p;
	uint64_t seed = tap.seed + 1;

	inner = api.set(EDDY_ARENA_THP | EDDY_ARENA_NODUMP | EDDY_ARENA_NOFORK);
	mine = *inner;
	mine.alloc = counting_alloc;
	mine.purge_forced = odd_forced;
	if (x.ctl("arenas.create", &a, &n, &k, sizeof(k)) != 0)
		tap_bail("arenas.create");
	p = x.mallocx(3 * CHUNK, MALLOCX_ARENA(a) | MALLOCX_TCACHE_NONE);
	tap_ok(p != NULL && n_allocs > 0 && has_flag(p, "hg") &&
		   has_flag(p, "dd") && has_flag(p, "dc") &&
		   hooks_of(a + 1) == k,
	    "a copy with a function replaced does what the set does");
	memset(p, 1, 3 * CHUNK);
	x.dallocx(p, MALLOCX_TCACHE_NONE);
	(void)api.purge(a + 1);
	tap_ok(resident(p, 3 * CHUNK) == 0, "gives back what the set does");
	tap_ok(work(a + 1, &seed) && n_wrong == 0, "and works");
	(void)do_arena(a + 1, "destroy");
	tap_ok(!has_flag(p, "dc") && !has_flag(p, "dd"), "and ends");
	/* With no request: a program's own call. */
	{
		bool zero = false;
		bool commit = false;

		p = inner->alloc(NULL, NULL, CHUNK, CHUNK, &zero, &commit, 77);
		tap_ok(p != NULL && zero && commit && has_flag(p, "dd") &&
			   !inner->dalloc(NULL, p, CHUNK, true, 77) &&
			   mapping_of(p) == NULL,
		    "a program may call them on its own account");
	}
}

/* ------------------------------------------------------------------ */
/* Children */

static bool
is_killed_by(const char *p, int sig)
{
	pid_t pid = fork();
	int st;

	if (pid == 0) {
		probe_child_begin(20);
		_exit(*(const volatile char *)p == 1 ? 0 : 1);
	}
	return waitpid(pid, &st, 0) == pid && WIFSIGNALED(st) &&
	       WTERMSIG(st) == sig;
}

static void
in_child(unsigned a, char *small, char *large)
{
	extent_hooks_t *k = api.set(EDDY_ARENA_NOFORK);
	unsigned b = 0;
	char *p = NULL;
	char *where = (char *)((uintptr_t)large & ~(uintptr_t)(CHUNK - 1));

	/* The program has something of its own there. */
	if (mmap(where, CHUNK, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != where)
		_exit(1);
	memset(where, 7, CHUNK);
	if (api.alloc(a, 100) != NULL || api.alloc(a, 8 * MIB) != NULL)
		_exit(2);
	if (api.discard(large, 0, 8192) != EINVAL)
		_exit(3);
	x.dallocx(small, MALLOCX_TCACHE_NONE);
	x.dallocx(large, MALLOCX_TCACHE_NONE);
	(void)api.purge(a);
	(void)malloc_trim(0);
	if (do_arena(a, "destroy") != 0)
		_exit(4);
	for (unsigned i = 0; i < CHUNK; i++)
		if (where[i] != 7)
			_exit(5);
	/* One of its own. */
	for (unsigned i = 0; i < 3; i++) {
		b = create(EDDY_ARENA_NOFORK);
		p = api.alloc(b, 3 * MIB);
		if (p == NULL || hooks_of(b) != k || !has_flag(p, "dc"))
			_exit(6);
		memset(p, 1, 3 * MIB);
		if (i < 2 && do_arena(b, "destroy") != 0)
			_exit(7);
	}
	if (!is_killed_by(p, SIGSEGV))
		_exit(8);
	_exit(0);
}

static void
test_children(void)
{
	unsigned a = create(EDDY_ARENA_NOFORK);
	unsigned plain = create(EDDY_ARENA_NODUMP);
	unsigned b;
	char *small = api.alloc(a, 200);
	char *large = api.alloc(a, 6 * MIB);
	char *shared = api.alloc(plain, 200);
	char why[64] = "";
	pid_t pid;
	bool held;

	small[0] = large[0] = shared[0] = 1;
	tap_ok(is_killed_by(small, SIGSEGV) && is_killed_by(large, SIGSEGV) &&
		   !is_killed_by(shared, SIGSEGV),
	    "a child does not have the memory");
	pid = fork();
	if (pid == 0) {
		probe_child_begin(60);
		in_child(a, small, large);
	}
	held = probe_wait(pid, why, sizeof why);
	tap_ok(held, "it gets none of it, and takes none: %s", why);
	tap_ok(small[0] == 1 && large[0] == 1 && api.alloc(a, 300) != NULL &&
		   do_arena(a, "destroy") == 0,
	    "the parent goes on");
	b = create(0);
	small = api.alloc(b, 200);
	small[0] = 1;
	pid = fork();
	if (pid == 0) {
		probe_child_begin(60);
		_exit(small[0] == 1 && api.alloc(b, 300) != NULL ? 0 : 1);
	}
	held = probe_wait(pid, why, sizeof why);
	tap_ok(b == a && held, "who has the number next is there in children");
	(void)do_arena(a, "destroy");
	(void)do_arena(plain, "destroy");
}

/* ------------------------------------------------------------------ */
/* What the kernel refuses: each in a process of its own */

static void
use_all(unsigned flags)
{
	uint64_t seed = tap.seed;
	unsigned a = create(flags);

	if (!work(a, &seed) || do_arena(a, "destroy") != 0)
		_exit(1);
	a = create(flags);
	if (!work(a, &seed))
		_exit(2);
}

/* "refuse NR FLAGS COUNT" */
static int
part_refuse(const char *arg)
{
	int nr = 0;
	unsigned flags = 0;
	char name[32];
	int given;

	if (sscanf(arg, "refuse-%d-%u-%31s", &nr, &flags, name) != 3)
		return 99;
	free(p_malloc(1));
	given = nr;
	if (nr >= 0 && !probe_refuse(&given, 1, ENOMEM))
		return 77;
	use_all(flags);
	tap_diag("%s: %ld", name, count_of(name));
	return count_of(name) > 0 ? 0 : 3;
}

static void
test_refusals(char **argv)
{
	static const struct {
		long nr;
		unsigned flags;
		const char *count;
	} t[] = {
	    {SYS_madvise, EDDY_ARENA_THP, "unadvised"},
	    {SYS_madvise, EDDY_ARENA_NOHUGE, "unadvised"},
	    {SYS_madvise, EDDY_ARENA_NODUMP, "unadvised"},
	    {SYS_madvise, EDDY_ARENA_NOFORK, "unadvised"},
	    {SYS_mlock2, EDDY_ARENA_LOCKED, "unlocked"},
	    {-1, EDDY_ARENA_HUGETLB_2M, "not_huge"},
	    {-1, EDDY_ARENA_HUGETLB_1G, "not_huge"},
	    {SYS_mremap, EDDY_ARENA_HUGETLB_2M, "not_huge"},
	    {SYS_mremap, EDDY_ARENA_HUGETLB_1G | EDDY_ARENA_NOFORK, "not_huge"},
	};

	for (size_t i = 0; i < COUNT(t); i++) {
		char arg[64];

		(void)snprintf(arg, sizeof arg, "refuse-%ld-%u-%s", t[i].nr,
		    t[i].flags, t[i].count);
		tap_ok(probe_again(argv, arg, arg),
		    "flags %#x refused by call %ld are ordinary memory",
		    t[i].flags, t[i].nr);
	}
}

/* ------------------------------------------------------------------ */

static void
test_errors(void)
{
	struct eddy_arena_options o = EDDY_ARENA_OPTIONS;
	unsigned a = 4711;

	o.flags = EDDY_ARENA_THP | EDDY_ARENA_NOHUGE;
	tap_ok(api.create(&o, &a) == EINVAL, "two kinds of pages");
	o.flags = EDDY_ARENA_FILE | EDDY_ARENA_THP;
	o.file_size = MIB;
	tap_ok(api.create(&o, &a) == EINVAL, "a file in huge pages");
	o.flags = EDDY_ARENA_THP;
	tap_ok(api.create(&o, &a) == EINVAL, "the size of no file");
	o.flags = 1u << 20;
	o.file_size = 0;
	tap_ok(api.create(&o, &a) == EINVAL && a == 4711, "an unknown flag");
	o.flags = EDDY_ARENA_LOCKED;
	o.node = 0;
	tap_ok(api.create(&o, &a) == 0 && api.alloc(a, 1) != NULL &&
		   api.move(a, 0) == 0,
	    "on a node as well");
	(void)do_arena(a, "destroy");
}

/* Locked memory is not given back. */
static void
test_locked(void)
{
	unsigned a = create(EDDY_ARENA_LOCKED);
	char *p = api.alloc(a, 2 * CHUNK);

	memset(p, 1, 2 * CHUNK);
	x.dallocx(p, MALLOCX_TCACHE_NONE);
	tap_ok(api.purge(a) == 0 && resident(p, 2 * CHUNK) == 2 * CHUNK / PAGE,
	    "locked memory stays");
	(void)do_arena(a, "destroy");
	tap_ok(resident(p, 2 * CHUNK) < CHUNK / PAGE, "until its arena ends");
}

/*
 * "after": an arena without hooks has ended, and still has the range's first
 * segment, which is never empty.
 */
static int
part_after(void)
{
	unsigned a = create(0);

	for (unsigned i = 0; i < 300; i++) {
		char *p = api.alloc(a, 1 + i * 7919u % (3 * MIB));

		if (p == NULL)
			return 1;
		*p = 1;
	}
	if (do_arena(a, "destroy") != 0)
		return 2;
	a = create(EDDY_ARENA_NOFORK);
	for (unsigned i = 0; i < 40; i++) {
		char *p = api.alloc(a, 100 + i * 6007u % (2 * MIB));

		if (p == NULL)
			return 3;
		*p = 1;
		if (!has_flag(p, "dc"))
			return 4;
	}
	return 0;
}

int
main(int argc, char **argv)
{
	tap_begin(argv);
	tap_guard(600);
	if (!find_api())
		tap_skip_all("no hook sets");
	if (argc > 1 && strncmp(argv[1], "refuse", 6) == 0)
		return part_refuse(argv[1]);
	if (argc > 1 && strcmp(argv[1], "after") == 0)
		return part_after();
	test_names();
	test_words();
	test_flags();
	test_errors();
	test_thp();
	test_partial();
	test_at_once();
	test_collapse();
	test_locked();
	test_copies();
	test_children();
	test_work();
	test_refusals(argv);
	tap_ok(probe_again(argv, "after", "after"),
	    "what an arena without hooks has left serves none with hooks");
	return tap_end();
}
