/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * huge_arenas.c - arenas in huge pages, where the machine may be set up for it.
 *
 *   huge_arenas thp SECONDS   what is given back of transparent ones stays with
 *                             the kernel, beside a khugepaged at work, for so
 *                             long at least
 *   huge_arenas 2M            a pool that runs out in the midst, that others
 *                             empty, that children share
 *   huge_arenas 1G            the same of one page
 *   huge_arenas nodes         arenas of each kind lie on their node
 *
 * It writes to /sys and /proc/sys: root, in a machine of its own.
 */
#include "../probe.h"

#include "eddy/hooks.h"

#define KNOBS "/sys/kernel/mm/transparent_hugepage/"
#define POOLS "/sys/kernel/mm/hugepages/"

enum { CHUNK = 2 * MIB, BLOCKS = 64, POOL = 16, SCANS = 4, PATIENCE = 400 };

static struct {
	int (*create)(const struct eddy_arena_options *, unsigned *);
	void *(*alloc)(unsigned, size_t);
	size_t (*purge)(unsigned);
	int (*ctl)(const char *, void *, size_t *, void *, size_t);
} api;

static void
find(const char *name, void *where)
{
	void *sym = dlsym(RTLD_DEFAULT, name);

	if (sym == NULL) {
		tap_diag("SKIP no %s", name);
		_exit(77);
	}
	memcpy(where, &sym, sizeof sym);
}

static unsigned
create(unsigned flags)
{
	struct eddy_arena_options o = EDDY_ARENA_OPTIONS;
	unsigned a = 0;

	o.flags = flags;
	if (api.create(&o, &a) != 0)
		_exit(90);
	return a;
}

static void
destroy(unsigned a)
{
	char name[64];

	(void)snprintf(name, sizeof name, "arena.%u.destroy", a - 1);
	if (api.ctl(name, NULL, NULL, NULL, 0) != 0)
		_exit(91);
}

static ssize_t
read_all(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t n = 0;
	ssize_t got = -1;

	while (fd >= 0 && n < size - 1 &&
	       (got = read(fd, buf + n, size - 1 - n)) > 0)
		n += (size_t)got;
	if (fd >= 0)
		(void)close(fd);
	buf[n] = '\0';
	return fd >= 0 ? (ssize_t)n : -1;
}

static long
number_in(const char *path)
{
	char buf[64];

	return read_all(path, buf, sizeof buf) > 0 ? strtol(buf, NULL, 10) : -1;
}

static bool
set(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done =
	    fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		(void)close(fd);
	return done;
}

/* KiB of a line of /proc/self/smaps_rollup. */
static long
kib_of(const char *name)
{
	static char buf[4096];
	const char *at;

	(void)read_all("/proc/self/smaps_rollup", buf, sizeof buf);
	at = strstr(buf, name);
	return at != NULL ? strtol(at + strlen(name), NULL, 10) : -1;
}

static bool
expect(bool held, const char *what)
{
	if (!held)
		tap_diag("NOT: %s", what);
	return held;
}

/* ------------------------------------------------------------------ */
/* Transparent huge pages */

static char *block[BLOCKS];
static char *bait;

/* Memory of which khugepaged makes huge pages if it is at work. */
static void
lay_bait(void)
{
	char *p = mmap(NULL, 3 * (size_t)CHUNK, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	bait = (char *)(((uintptr_t)p + CHUNK - 1) & ~(uintptr_t)(CHUNK - 1));
	(void)madvise(bait, CHUNK, MADV_NOHUGEPAGE);
	bait[0] = 1;
	(void)madvise(bait, CHUNK, MADV_HUGEPAGE);
}

/* For so long, and so many rounds of khugepaged. */
static bool
wait_for_scans(long seconds)
{
	const char *path = KNOBS "khugepaged/full_scans";
	const uint64_t begun = probe_ns();
	long until = number_in(path) + SCANS;

	for (;;) {
		uint64_t gone = (probe_ns() - begun) / 1000000000u;

		if (number_in(path) >= until && gone >= (uint64_t)seconds)
			return true;
		if (gone > PATIENCE)
			return false;
		/* It passes by what nobody uses. */
		bait[0]++;
		for (size_t k = 0; k < BLOCKS; k += 2)
			block[k][0]++;
		(void)usleep(100000);
	}
}

static int
thp(long seconds)
{
	const long all = BLOCKS * CHUNK / KIB;
	unsigned a;
	long before;
	long full;
	long half;
	long rss;
	long later;
	long more;
	bool held = true;

	if (!set(KNOBS "enabled", "always") ||
	    !set(KNOBS "khugepaged/scan_sleep_millisecs", "1") ||
	    !set(KNOBS "khugepaged/alloc_sleep_millisecs", "1") ||
	    !set(KNOBS "khugepaged/pages_to_scan", "100000") ||
	    !set(KNOBS "khugepaged/max_ptes_none", "511")) {
		tap_diag("SKIP no huge pages, or no right to change them");
		return 77;
	}
	/* Of pages that it looks at, Linux 6.1 does not speak in smaps. */
	(void)set("/proc/sys/kernel/numa_balancing", "0");
	for (int zero = 1; zero >= 0; zero--) {
		/* Whether a look at an empty place brings a page of zeros. */
		(void)set(KNOBS "use_zero_page", zero ? "1" : "0");
		(void)set("/proc/sys/vm/compact_memory", "1");
		a = create(EDDY_ARENA_THP);
		before = kib_of("AnonHugePages:");
		for (size_t i = 0; i < BLOCKS; i++) {
			block[i] = api.alloc(a, CHUNK);
			memset(block[i], 1, CHUNK);
		}
		full = kib_of("AnonHugePages:") - before;
		for (size_t i = 1; i < BLOCKS; i += 2)
			p_free(block[i]);
		(void)api.purge(a);
		lay_bait();
		half = kib_of("AnonHugePages:") - before;
		rss = kib_of("Rss:");
		if (!wait_for_scans(seconds)) {
			tap_diag("khugepaged does not come round");
			return 1;
		}
		/* The bait is one. */
		later = kib_of("AnonHugePages:") - before - CHUNK / KIB;
		more = kib_of("Rss:") - rss - CHUNK / KIB;
		tap_diag("of %ld KiB %ld in huge pages, half given back: %ld, "
			 "%ld s later: %ld, and %ld KiB more in memory",
		    all, full, half, seconds, later, more);
		held &= expect(full >= all * 95 / 100, "in huge pages");
		held &= expect(full - half >= all / 2, "given back");
		held &= expect(later <= half, "for good");
		held &= expect(more < CHUNK / KIB, "and no other memory came");
		destroy(a);
	}
	return held ? 0 : 1;
}

/* ------------------------------------------------------------------ */
/* The pool */

static const char *pool;

static long
pool_has(const char *what)
{
	char path[128];

	(void)snprintf(path, sizeof path, POOLS "%s/%s_hugepages", pool, what);
	return number_in(path);
}

static bool
set_pool(long n)
{
	char path[128];
	char text[16];

	(void)snprintf(path, sizeof path, POOLS "%s/nr_hugepages", pool);
	(void)snprintf(text, sizeof text, "%ld", n);
	return set(path, text) && pool_has("nr") == n;
}

/* Pages of the pool that are free and nobody's. */
static long
left(void)
{
	return pool_has("free") - pool_has("resv");
}

static char *many[2 * POOL];

/* Blocks of 2 MiB, all touched. */
static bool
fill(unsigned a, size_t n)
{
	bool held = true;

	for (size_t i = 0; i < n; i++) {
		many[i] = api.alloc(a, CHUNK);
		if (many[i] == NULL)
			return false;
		for (size_t k = 0; k < CHUNK; k += PAGE)
			held &= many[i][k] == 0;
		memset(many[i], (int)i + 1, CHUNK);
	}
	return held;
}

static bool
holds(size_t n)
{
	bool held = true;

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < CHUNK; k += PAGE)
			held &= many[i][k] == (char)(i + 1);
	return held;
}

static void
drop(size_t n)
{
	for (size_t i = 0; i < n; i++)
		p_free(many[i]);
}

/* How a child ends that writes to all of it. */
static int
child_writes(size_t n)
{
	pid_t pid = fork();
	int st = 0;

	if (pid == 0) {
		probe_child_begin(60);
		for (size_t i = 0; i < n; i++)
			many[i][0] = 99;
		_exit(0);
	}
	(void)waitpid(pid, &st, 0);
	return WIFSIGNALED(st) ? WTERMSIG(st) : 0;
}

static int
pool_2m(void)
{
	unsigned a;
	bool held = true;
	char *big;

	pool = "hugepages-2048kB";
	if (!set_pool(POOL)) {
		tap_diag("SKIP no pool of 2 MiB pages");
		return 77;
	}
	a = create(EDDY_ARENA_HUGETLB_2M);
	held &= expect(fill(a, POOL / 2) && left() == POOL / 2, "of the pool");
	/* Those before stay. */
	held &= expect(fill(a, 2 * POOL), "the pool runs out");
	held &= expect(left() == 0 && holds(2 * POOL), "in the midst");
	held &= expect(child_writes(2 * POOL) != 0 && holds(2 * POOL),
	    "a child that writes to it ends, its parent does not");
	drop(2 * POOL);
	(void)api.purge(a);
	tap_diag("given back: %ld of %d are left", left(), POOL);
	held &= expect(left() == POOL / 2, "pages go back");
	held &= expect(set_pool(POOL - left()) && left() == 0, "to others");
	held &= expect(fill(a, 2 * POOL) && holds(2 * POOL),
	    "and then come from elsewhere");
	destroy(a);
	held &= expect(set_pool(POOL) && left() == POOL, "all at the end");
	a = create(EDDY_ARENA_HUGETLB_2M | EDDY_ARENA_NOFORK);
	big = api.alloc(a, (size_t)(POOL + 5) * CHUNK);
	held &= expect(big != NULL && left() < 6,
	    "a block that is too large takes what there is");
	if (big != NULL)
		memset(big, 1, (size_t)(POOL + 5) * CHUNK);
	p_free(big);
	(void)api.purge(a);
	held &= expect(left() >= POOL - 1, "and gives it back");
	held &= expect(fill(a, POOL), "once more");
	held &= expect(child_writes(1) == SIGSEGV && holds(POOL),
	    "a child does not have it");
	destroy(a);
	held &= expect(left() == POOL, "all at the end again");
	(void)set_pool(0);
	return held ? 0 : 1;
}

static int
pool_1g(void)
{
	const size_t gib = (size_t)1 << 30;
	unsigned a;
	bool held = true;
	char *p;

	pool = "hugepages-1048576kB";
	if (!set_pool(1)) {
		tap_diag("SKIP no page of 1 GiB is to be had");
		return 77;
	}
	for (int round = 0; round < 2; round++) {
		a = create(EDDY_ARENA_HUGETLB_1G);
		held &=
		    expect(fill(a, 2 * POOL) && holds(2 * POOL) && left() == 0,
			"blocks are of the page");
		p = api.alloc(a, gib / 4);
		held &= expect(p != NULL, "a large one");
		if (p != NULL)
			memset(p, 1, gib / 4);
		held &= expect(kib_of("Private_Hugetlb:") >= (long)(gib / KIB),
		    "as the kernel says");
		drop(2 * POOL);
		p_free(p);
		(void)api.purge(a);
		held &= expect(left() == 0, "it stays with its arena");
		held &=
		    expect(fill(a, 2 * POOL) || round == 0 || holds(2 * POOL),
			"and is used again");
		/* Beyond it. */
		p = api.alloc(a, gib);
		held &= expect(p != NULL, "a second is ordinary memory");
		if (p != NULL)
			p[0] = p[gib - 1] = 1;
		destroy(a);
		tap_diag("%ld free, %ld reserved", pool_has("free"),
		    pool_has("resv"));
		held &= expect(left() == 1, "until that ends");
	}
	(void)set_pool(0);
	return held ? 0 : 1;
}

/* Each set on each of two nodes, whichever this thread runs on. */
static int
nodes(void)
{
	static const unsigned sets[] = {EDDY_ARENA_THP, EDDY_ARENA_HUGETLB_2M,
	    EDDY_ARENA_LOCKED | EDDY_ARENA_NODUMP};
	int (*node_at)(const void *);
	bool held = true;

	pool = "hugepages-2048kB";
	if (access("/sys/devices/system/node/node1", F_OK) != 0) {
		tap_diag("SKIP one node");
		return 77;
	}
	find("eddy_node_at", &node_at);
	(void)set_pool(2L * POOL);
	for (size_t i = 0; i < COUNT(sets); i++)
		for (int node = 0; node < 2; node++) {
			struct eddy_arena_options o = EDDY_ARENA_OPTIONS;
			unsigned a = 0;
			char *p;

			o.flags = sets[i];
			o.node = node;
			held &= expect(api.create(&o, &a) == 0, "an arena");
			p = api.alloc(a, 3 * (size_t)CHUNK);
			memset(p, 1, 3 * (size_t)CHUNK);
			held &= expect(
			    node_at(p) == node && node_at(p + 5 * MIB) == node,
			    "lies on its node");
			destroy(a);
		}
	(void)set_pool(0);
	return held ? 0 : 1;
}

int
main(int argc, char **argv)
{
	tap_begin(argv);
	find("eddy_arena_create_with", &api.create);
	find("eddy_arena_malloc", &api.alloc);
	find("eddy_purge_now", &api.purge);
	find("mallctl", &api.ctl);
	if (argc > 1 && strcmp(argv[1], "2M") == 0)
		return pool_2m();
	if (argc > 1 && strcmp(argv[1], "1G") == 0)
		return pool_1g();
	if (argc > 1 && strcmp(argv[1], "nodes") == 0)
		return nodes();
	return thp(argc > 2 ? atol(argv[2]) : 60);
}
