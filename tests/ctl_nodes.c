/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ctl_nodes.c - statistics of arenas, homes and nodes, and the bound on
 * stranded bytes, seen from inside, under homes that are made up.
 *
 *	ctl_nodes PART		a child under the options in EDDY_CONF
 */
#include "probe.h"

#include <sched.h>

#include "eddy/eddy.h"
#include "lib/ctl/stats.h"
#include "lib/heap/arena.h"
#include "lib/heap/cpu_cache.h"
#include "lib/heap/large.h"
#include "lib/heap/pagemap.h"
#include "lib/heap/returns.h"

enum {
	MANY = 16384,
	MAX_STACK = 8192 + (EDDY_N_ROWS - 50) * 64,
	STACK = 1 << 18
};

static void *objects[MANY];
static int cpus[2];
static int n_wrong;

static struct eddy_heap *
heap(void)
{
	struct eddy_heap *h = eddy_heap();

	if (h == NULL)
		tap_bail("no heap");
	return h;
}

__attribute__((format(printf, 2, 3))) static void
check(bool held, const char *fmt, ...)
{
	va_list ap;

	if (held)
		return;
	n_wrong++;
	va_start(ap, fmt);
	tap_vline("# wrong: ", fmt, ap);
	va_end(ap);
}

#define CHECK_EQUAL(a, b)                                                \
	check((uint64_t)(a) == (uint64_t)(b), "%s is %llu, %s %llu", #a, \
	    (unsigned long long)(a), #b, (unsigned long long)(b))

/* The first two CPUs that the process may use, of different homes. */
static bool
find_cpus(void)
{
	cpu_set_t set;
	int n = 0;

	if (sched_getaffinity(0, sizeof set, &set) != 0)
		return false;
	for (int i = 0; i < CPU_SETSIZE && n < 2; i++)
		if (CPU_ISSET((size_t)i, &set) &&
		    (n == 0 || (i - cpus[0]) % 2 != 0))
			cpus[n++] = i;
	return n == 2;
}

static void
go_to(unsigned k)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpus[k], &set);
	if (sched_setaffinity(0, sizeof set, &set) != 0)
		tap_bail("sched_setaffinity: errno %d", errno);
}

static void
take_at(size_t at, size_t size, size_t n)
{
	if (at + n > MANY)
		tap_bail("%zu objects at once", at + n);
	for (size_t i = at; i < at + n; i++) {
		objects[i] = p_malloc(size);
		if (objects[i] == NULL)
			tap_bail("no memory");
		*(volatile char *)objects[i] = 1;
	}
}

static void
drop_at(size_t at, size_t n)
{
	for (size_t i = at; i < at + n; i++)
		p_free(objects[i]);
}

static void
take(size_t size, size_t n)
{
	take_at(0, size, n);
}

static void
drop(size_t n)
{
	drop_at(0, n);
}

/* ------------------------------------------------------------------ */
/* The bound */

/* The formula of ARCHITECTURE.md, "Stranded bytes", of all tables. */
static size_t
bound_of(size_t n_cpus, size_t n_homes)
{
	size_t own = 0;
	size_t other = 0;
	size_t ring = 0;

	for (unsigned row = 1; row < EDDY_N_ROWS; row++) {
		const struct eddy_class *c = &eddy_classes[row];

		own += (size_t)c->depth * c->size;
		other += (size_t)c->batch * c->size;
		ring += eddy_returns_limit(row) * (size_t)c->size;
	}
	return n_cpus * (own + (n_homes - 1) * other) + n_homes * ring;
}

/* What groups of hinted objects add. */
static size_t
bound_of_groups(size_t n_cpus, size_t n_groups)
{
	size_t group = 0;
	size_t ring = 0;

	for (unsigned row = 1; row < EDDY_N_ROWS; row++) {
		const struct eddy_class *c = &eddy_classes[row];
		size_t batch = (size_t)c->batch * c->size;

		group += batch <= 65536 ? 2 * batch : batch;
		ring += eddy_returns_limit(row) * (size_t)c->size;
	}
	return n_cpus * n_groups * group + n_groups * ring;
}

static void
check_parts(const struct eddy_stats *st)
{
	CHECK_EQUAL(st->stranded, st->row_bytes + st->remote_row_bytes +
				      st->ring_bytes + st->cell_bytes);
	check(st->stranded <= st->stranded_bound, "%zu stranded, at most %zu",
	    st->stranded, st->stranded_bound);
}

/*
 * On each CPU so many at once until the row is as long as it gets; then more
 * than rows and rings hold is freed, of both CPUs' objects on the first.
 */
static void
fill_row(const struct eddy_class *c, size_t ring)
{
	size_t n = c->depth + ring + c->batch * 2u;

	for (int i = 0; i < 24; i++) {
		go_to((unsigned)i % 2);
		take(c->size, c->depth * 2u);
		drop(c->depth * 2u);
	}
	go_to(0);
	take_at(0, c->size, n);
	go_to(1);
	take_at(n, c->size, n + c->depth * 2u);
	drop_at(n + n, c->depth * 2u);
	go_to(0);
	drop_at(0, n + n);
}

static void
fill_caches(void)
{
	for (unsigned row = 1; row < EDDY_N_ROWS; row++)
		fill_row(&eddy_classes[row], eddy_returns_limit(row));
}

static void
test_bound(void)
{
	struct eddy_stats st;
	size_t n_homes;
	size_t remote;

	p_free(p_malloc(1));
	n_homes = heap()->n_homes;
	fill_caches();
	eddy_stats_read(heap(), &st);
	check_parts(&st);
	if (st.mode != EDDY_STATS_RSEQ) {
		CHECK_EQUAL(
		    st.row_bytes + st.remote_row_bytes + st.ring_bytes, 0);
		check(st.cell_bytes > st.stranded_bound / 64,
		    "%zu in cells, at most %zu", st.cell_bytes,
		    st.stranded_bound);
		return;
	}
	CHECK_EQUAL(st.n_cpus, 2);
	CHECK_EQUAL(st.stranded_bound, bound_of(2, n_homes));
	/*
	 * Not so large that nothing could ever exceed it.  What has waited in
	 * a ring for a second may be gone again.
	 */
	check(st.stranded > st.stranded_bound / 10 * 4 && st.ring_bytes != 0,
	    "%zu of %zu are filled (own %zu, others' %zu, rings %zu)",
	    st.stranded, st.stranded_bound, st.row_bytes, st.remote_row_bytes,
	    st.ring_bytes);
	if (n_homes > 1)
		check(st.remote_row_bytes != 0, "nothing in remote rows");
	/* Groups count from the first hint on; what they hold is the CPU's own.
	 */
	remote = st.remote_row_bytes;
	p_free(eddy_alloc_short(100));
	eddy_stats_read(heap(), &st);
	check_parts(&st);
	check(st.remote_row_bytes <= remote, "hinted objects count as remote");
	CHECK_EQUAL(st.stranded_bound,
	    bound_of(2, n_homes) +
		bound_of_groups(2, heap()->n_with_rows - n_homes));
}

/* ------------------------------------------------------------------ */
/* Arenas */

static void
check_arenas(const char *when)
{
	struct eddy_stats st;
	struct eddy_stats_arena a;
	size_t active = 0;
	size_t dirty = 0;
	uint64_t segments = 0;

	eddy_stats_read(heap(), &st);
	for (uint32_t i = 0; i <= eddy_stats_n_arenas(heap()); i++) {
		if (!eddy_stats_arena(heap(), i, &a))
			continue;
		active += a.active;
		dirty += a.dirty;
		segments += a.segments;
		check(i != 0 || a.active == 0, "%s: nobody's is in use", when);
	}
	check(active == st.active, "%s: %zu in use, %zu by arenas", when,
	    st.active, active);
	check(dirty == st.dirty, "%s: %zu dirty, %zu by arenas", when, st.dirty,
	    dirty);
	check(segments != 0, "%s: no segments", when);
	CHECK_EQUAL(st.mapped,
	    st.metadata_mapped + st.active + st.dirty + st.clean + st.in_hand);
	check_parts(&st);
}

/* Of an arena of the program's: what one block of so many bytes changes. */
static void
check_block(struct eddy_arena *own, size_t size, uint64_t segments)
{
	struct eddy_stats_arena before;
	struct eddy_stats_arena a;
	struct eddy_stats_arena b;
	void *p;

	if (!eddy_stats_arena(heap(), own->number, &before))
		tap_bail("no arena %u", own->number);
	p = eddy_large_alloc(heap(), own, size, 1, false);
	if (p == NULL)
		tap_bail("no block of %zu bytes", size);
	if (!eddy_stats_arena(heap(), own->number, &a) ||
	    !eddy_stats_arena(heap(), 1, &b))
		tap_bail("no arena");
	CHECK_EQUAL(a.active - before.active, size);
	CHECK_EQUAL(a.segments, segments);
	CHECK_EQUAL(a.home, EDDY_HOME_NONE);
	check_arenas("with a large block");
	p_free(p);
	if (!eddy_stats_arena(heap(), own->number, &a))
		tap_bail("no arena");
	CHECK_EQUAL(a.active, before.active);
	check_arenas("without it");
}

static void
test_arenas(void)
{
	struct eddy_heap *h = heap();
	struct eddy_stats_arena a;
	struct eddy_arena *own;
	uint32_t number;
	void *kept;

	go_to(0);
	take(3000, 2000);
	go_to(1);
	drop(1000);
	take(100, 1000);
	check_arenas("with objects");
	if (eddy_arena_add(h, 0, &number) != 0)
		tap_bail("no arena");
	own = eddy_arena_at(h, number);
	check(eddy_stats_arena(h, number, &a) && a.segments == 0 &&
		  a.active + a.dirty + a.chunks == 0,
	    "a new arena is not empty");
	check(!eddy_stats_arena(h, number + 1, &a) &&
		  !eddy_stats_arena(h, EDDY_MAX_ARENAS + 1, &a),
	    "there are arenas that there are not");
	/* Its first segment is not given back from here on. */
	kept = eddy_large_alloc(h, own, 50000, 1, false);
	check_block(own, (size_t)100 << 10, 1);
	check_block(own, (size_t)5 << 20, 1);
	check_block(own, (size_t)700 << 20, 1);
	if (h->reserved && h->n_segments > 16) {
		/* Three and a half; and whole ones. */
		check_block(own, (size_t)3584 << 20, 5);
		check_block(own, (size_t)4096 << 20, 5);
		check(eddy_stats_arena(h, 0, &a) && a.dirty >= EDDY_SEGMENT,
		    "segments that were given back are nobody's");
	}
	p_free(kept);
	(void)malloc_trim(0);
	check_arenas("after malloc_trim");
}

/* ------------------------------------------------------------------ */
/* Metadata */

static bool
is_in(uintptr_t p, const void *from, size_t size)
{
	return p - (uintptr_t)from < size;
}

static bool
is_metadata(struct eddy_heap *h, uintptr_t p)
{
	if (is_in(p, h, h->reservation_size))
		return !is_in(
		    p, (void *)h->base, (size_t)h->n_chunks * EDDY_CHUNK);
	for (uint32_t i = 1; i <= eddy_stats_n_arenas(h); i++) {
		struct eddy_arena *a = eddy_arena_at(h, i);

		if (a != NULL && is_in(p, a, eddy_arena_bytes(a)))
			return true;
	}
	return false;
}

/* Writable addresses of metadata, and what the kernel holds of them. */
static void
read_smaps(size_t *ret_mapped, size_t *ret_rss)
{
	static char buf[65536];
	static char line[4096];
	unsigned long from = 0;
	unsigned long to;
	unsigned long kib;
	bool is_ours = false;
	char perms[8];
	FILE *f = fopen("/proc/self/smaps", "r");

	*ret_mapped = *ret_rss = 0;
	if (f == NULL || setvbuf(f, buf, _IOFBF, sizeof buf) != 0)
		tap_bail("no smaps");
	while (fgets(line, sizeof line, f) != NULL) {
		if (sscanf(line, "%lx-%lx %4s", &from, &to, perms) == 3 &&
		    strlen(perms) == 4) {
			is_ours = is_metadata(heap(), from);
			if (is_ours && perms[1] == 'w')
				*ret_mapped += to - from;
		} else if (is_ours && sscanf(line, "Rss: %lu kB", &kib) == 1) {
			*ret_rss += kib * KIB;
		}
	}
	(void)fclose(f);
}

static void
check_metadata(const char *when)
{
	/* Parts of an OS page, for each arena and part. */
	size_t slack = 16 * (size_t)sysconf(_SC_PAGESIZE);
	struct eddy_stats st;
	size_t mapped;
	size_t rss;

	/* First: a stream allocates. */
	read_smaps(&mapped, &rss);
	eddy_stats_read(heap(), &st);
	tap_diag("%s: %zu KiB of %zu, %zu of %zu by smaps", when,
	    st.metadata / KIB, st.metadata_mapped / KIB, rss / KIB,
	    mapped / KIB);
	check(mapped + slack > st.metadata_mapped &&
		  mapped < st.metadata_mapped + slack,
	    "%s: %zu bytes of metadata are mapped, by smaps %zu", when,
	    st.metadata_mapped, mapped);
	check(st.metadata < rss + rss / 16 + slack,
	    "%s: %zu bytes of metadata, by smaps %zu", when, st.metadata, rss);
}

static void
test_metadata(void)
{
	struct eddy_stats st;
	uint32_t number;
	size_t mapped;
	size_t rss;

	probe_small_pages();
	for (unsigned i = 0; i < 2; i++) {
		go_to(i);
		p_free(p_malloc(100));
	}
	check_metadata("at first");
	go_to(0);
	for (unsigned row = 1; row < EDDY_N_ROWS; row++)
		take_at(200 * row, eddy_row_size(row), 200);
	check_metadata("with objects");
	read_smaps(&mapped, &rss);
	eddy_stats_read(heap(), &st);
	/* An estimate, but not a poor one; of small pages that were written. */
	check(st.metadata > rss / 10 * 8 || sysconf(_SC_PAGESIZE) > PAGE ||
		  probe_reads_cost(),
	    "%zu bytes of metadata, by smaps %zu", st.metadata, rss);
	go_to(1);
	drop_at(200, (size_t)200 * (EDDY_N_ROWS - 1));
	check_metadata("without them");
	for (int i = 0; i < 5; i++)
		if (eddy_arena_add(heap(), 0, &number) != 0)
			tap_bail("no arena");
	check_metadata("with arenas");
}

/* ------------------------------------------------------------------ */
/* Homes */

static uint64_t
remote_of(struct eddy_heap *h, bool home_kind_is_node)
{
	struct eddy_stats_node n;
	uint64_t local = 0;
	uint64_t remote = 0;

	for (uint32_t i = 0; i < EDDY_MAX_NODES; i++) {
		if (!eddy_stats_node(h, i, &n))
			continue;
		local += n.local_bytes;
		remote += n.remote_bytes;
	}
	return home_kind_is_node ? remote : local;
}

/* Taken on the first CPU, freed on the second. */
static void
test_homes(void)
{
	enum { N = 8000, SIZE = 256 };
	struct eddy_heap *h = heap();
	bool is_node = h->opts.home == EDDY_HOME_NODE;
	struct eddy_stats_home from[2];
	struct eddy_stats_home to[2];
	struct eddy_stats_traffic t;
	uint32_t home[2];
	uint64_t remote;
	uint64_t sent;

	for (unsigned i = 0; i < 2; i++) {
		go_to(i);
		p_free(p_malloc(SIZE));
		home[i] = eddy_cache_home(h);
	}
	check(home[0] != home[1], "both CPUs are of home %u", home[0]);
	for (unsigned i = 0; i < 2; i++)
		eddy_stats_home(h, home[i], &from[i]);
	remote = remote_of(h, is_node);
	go_to(0);
	take(SIZE, N);
	go_to(1);
	drop(N);
	for (unsigned i = 0; i < 2; i++)
		eddy_stats_home(h, home[i], &to[i]);
	sent = to[1].away - from[1].away;
	/* The rest is in the remote row. */
	check(sent <= N && sent >= N - EDDY_BATCH_MAX, "%llu of %d were sent",
	    (unsigned long long)sent, N);
	CHECK_EQUAL(to[1].away_bytes - from[1].away_bytes, sent * SIZE);
	CHECK_EQUAL(to[1].kept_bytes, from[1].kept_bytes);
	CHECK_EQUAL(to[0].arrived - from[0].arrived, sent);
	CHECK_EQUAL(to[1].arrived, from[1].arrived);
	check(to[0].ring_bytes != 0, "nothing waits in a ring");
	CHECK_EQUAL(to[0].n_cpus, 1);
	CHECK_EQUAL(remote_of(h, is_node) - remote, sent * SIZE);
	check(eddy_stats_traffic(h, (unsigned)cpus[1], &t) &&
		  t.away == to[1].away && t.home == home[1],
	    "the traffic of the CPU differs");
	CHECK_EQUAL(
	    eddy_stats_to_home(h, (unsigned)cpus[1], home[0]), to[1].away);
	check(!eddy_stats_traffic(h, h->n_slots, &t), "a CPU that is none");
	go_to(0);
	take(SIZE, N);
	drop(N);
	check_arenas("after a flow");
}

/* ------------------------------------------------------------------ */
/* Pages */

static char text[256 * 1024];
static size_t text_len;

static void
collect(void *arg, const char *s)
{
	size_t n = strlen(s);

	(void)arg;
	if (text_len + n >= sizeof text)
		tap_bail("statistics of more than %zu bytes", sizeof text);
	memcpy(text + text_len, s, n + 1);
	text_len += n;
}

static void
print(const char *opts)
{
	text_len = 0;
	eddy_stats_print(heap(), collect, NULL, opts);
}

/* All pages of the machine lie on its node 0. */
static void
test_pages(void)
{
	struct eddy_heap *h = heap();
	uint32_t node = (uint32_t)h->places.node_of_home[0];
	struct eddy_stats_pages s;
	struct eddy_stats_node n;

	go_to(0);
	take(EDDY_PAGE, 5000);
	CHECK_EQUAL(eddy_stats_pages(h, node, &s), 0);
	check(s.sampled > EDDY_STATS_SAMPLES / 2 &&
		  s.sampled <= EDDY_STATS_SAMPLES,
	    "%llu pages were asked for", (unsigned long long)s.sampled);
	check(s.present > s.sampled / 100 * 99, "%llu of %llu are there",
	    (unsigned long long)s.present, (unsigned long long)s.sampled);
	CHECK_EQUAL(s.present, s.right + s.elsewhere);
	CHECK_EQUAL(s.right, node == 0 ? s.present : 0);
	drop(5000);
	if (h->n_homes > 1) {
		go_to(1);
		take(EDDY_PAGE, 100);
		node = (uint32_t)h->places.node_of_home[eddy_cache_home(h)];
		CHECK_EQUAL(eddy_stats_pages(h, node, &s), 0);
		check(node != 0 && s.elsewhere >= 100 && s.right == 0,
		    "%llu elsewhere than on node %u, %llu there",
		    (unsigned long long)s.elsewhere, node,
		    (unsigned long long)s.right);
		drop(100);
		go_to(0);
		node = (uint32_t)h->places.node_of_home[eddy_cache_home(h)];
	}
	/* Blocks that are not touched. */
	for (unsigned i = 0; i < 8; i++)
		objects[i] = p_malloc((size_t)512 << 20);
	CHECK_EQUAL(eddy_stats_pages(h, node, &s), 0);
	check(s.sampled > EDDY_STATS_SAMPLES / 2 && s.present < s.sampled / 20,
	    "%llu of %llu are there", (unsigned long long)s.present,
	    (unsigned long long)s.sampled);
	drop(8);
	CHECK_EQUAL(eddy_stats_pages(h, EDDY_MAX_NODES, &s), 0);
	CHECK_EQUAL(s.sampled, 0);
	check(!eddy_stats_node(h, EDDY_MAX_NODES - 1, &n), "a node too many");
	/* On request alone. */
	print("");
	check(strstr(text, "on the node") == NULL, "pages without p");
	print("J");
	check(strstr(text, "\"pages\":{") == NULL, "pages without p");
	print("p");
	check(strstr(text, "on the node") != NULL, "no pages with p");
	print("Jp");
	check(
	    strstr(text, "\"pages\":{\"sampled\":") != NULL, "no pages with p");
}

static void
test_refused(void)
{
	static const int nr[] = {SYS_move_pages};
	struct eddy_stats_pages s;

	p_free(p_malloc(100));
	if (!probe_refuse(nr, 1, EPERM))
		tap_bail("no seccomp");
	CHECK_EQUAL(-eddy_stats_pages(heap(), 0, &s), EPERM);
	CHECK_EQUAL(s.sampled, 0);
	print("p");
	check(strstr(text, "does not tell where pages are: error 1\n") != NULL,
	    "the text does not say so");
	print("Jp");
	check(strstr(text, "\"pages_error\":1") != NULL, "nor does JSON");
}

/* ------------------------------------------------------------------ */
/* The stack */

static char *stack;
static size_t deepest;

static void
swallow(void *arg, const char *s)
{
	(void)arg;
	(void)s;
}

/* Paints all that lies below, and looks how far down it was written to. */
static __attribute__((noinline)) size_t
depth_of(const char *opts)
{
	char *here = __builtin_frame_address(0);
	char *low = stack;

	memset(stack, 0x5c, (size_t)(here - stack) - 1024);
	eddy_stats_print(heap(), swallow, NULL, opts);
	while (*low == 0x5c)
		low++;
	return (size_t)(here - low);
}

static void *
measure(void *arg)
{
	static const char *const opts[] = {"", "J", "p", "Jp", "gablfn"};

	for (size_t i = 0; i < COUNT(opts); i++) {
		size_t n = depth_of(opts[i]);

		tap_diag("\"%s\": %zu bytes of stack", opts[i], n);
		if (n > deepest)
			deepest = n;
	}
	return arg;
}

static void
test_stack(void)
{
	pthread_attr_t attr;
	pthread_t t;
	uint32_t number;

	for (unsigned i = 0; i < 2; i++) {
		go_to(i);
		take(64, 4000);
		go_to(1 - i);
		drop(4000);
	}
	if (eddy_arena_add(heap(), 0, &number) != 0)
		tap_bail("no arena");
	stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (stack == MAP_FAILED || pthread_attr_init(&attr) != 0 ||
	    pthread_attr_setstack(&attr, stack, STACK) != 0 ||
	    pthread_create(&t, &attr, measure, NULL) != 0)
		tap_bail("no thread of its own stack");
	(void)pthread_join(t, NULL);
	check(deepest > 2048 && deepest <= MAX_STACK,
	    "%zu bytes of stack, %d are allowed", deepest, MAX_STACK);
}

/* ------------------------------------------------------------------ */

static const struct part {
	const char *name;
	void (*fn)(void);
} parts[] = {{"bound", test_bound}, {"arenas", test_arenas},
    {"metadata", test_metadata}, {"homes", test_homes}, {"pages", test_pages},
    {"refused", test_refused}, {"stack", test_stack}};

static int
run_part(const char *name)
{
	for (size_t i = 0; i < COUNT(parts); i++)
		if (strcmp(parts[i].name, name) == 0) {
			parts[i].fn();
			return n_wrong != 0;
		}
	return 2;
}

static void
test_under(char **argv, const char *conf, const char *part, const char *what)
{
	(void)setenv("EDDY_CONF", conf, 1);
	tap_ok(probe_again(argv, part, part), "%s: %s", conf, what);
}

int
main(int argc, char **argv)
{
	static const char *const confs[] = {"numa:off", "topology:2x1x1",
	    "topology:1x2x1,home:llc", "topology:9x1x1"};

	if (!find_cpus())
		tap_skip_all("two CPUs are needed, an even and an odd one");
	tap.pid = getpid();
	if (argc > 1)
		return run_part(argv[1]);
	p_free(p_malloc(1));
	if (!heap()->sections)
		tap_skip_all("no restartable sequences: no CPU has a cache");
	test_under(argv, "cpu_cache_bytes:1073741824", "bound",
	    "caches are filled, up to the bound");
	test_under(argv, "cpu_cache_bytes:1073741824,topology:2x1x1", "bound",
	    "so are remote rows");
	test_under(argv, "cpu_cache_bytes:1073741824,topology:1x2x1,home:llc",
	    "bound", "and those of caches");
	test_under(argv, "rseq:false", "bound", "so are cells");
	for (size_t i = 0; i < COUNT(confs); i++)
		test_under(
		    argv, confs[i], "arenas", "what is used belongs to arenas");
	test_under(argv, "rseq:false", "arenas", "or in claim mode");
	for (size_t i = 0; i < COUNT(confs); i++)
		test_under(argv, confs[i], "metadata",
		    "metadata is what the kernel says");
	test_under(argv, "rseq:false", "metadata", "and in claim mode");
	for (size_t i = 1; i < COUNT(confs); i++)
		test_under(argv, confs[i], "homes",
		    "what goes away from home arrives there");
	test_under(argv, "numa:off", "pages", "pages lie on the node");
	test_under(argv, "topology:2x1x1", "pages", "or the first of two");
	test_under(argv, "numa:off", "refused", "or that cannot be told");
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__)
	for (size_t i = 0; i < COUNT(confs); i++)
		test_under(argv, confs[i], "stack", "it takes little stack");
	test_under(argv, "rseq:false", "stack", "and in claim mode");
#endif
	return tap_end();
}
