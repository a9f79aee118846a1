/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ctl_stats.c - the statistics say what the program did, to the byte.
 *
 * Read through malloc_stats_print's JSON into a static buffer, so that looking
 * does not change what is looked at.
 */
#include "probe.h"

#include <sys/time.h>

#include "eddy/eddy.h"

/* The library is preloaded, not linked. */
#pragma weak malloc_stats_print
#pragma weak eddy_version

static char text[512 * 1024];
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

/* Returns eddy's own part. */
static const char *
print(const char *opts)
{
	const char *own;

	text_len = 0;
	text[0] = '\0';
	malloc_stats_print(collect, NULL, opts);
	own = strstr(text, "\"eddy\":{");
	if (own == NULL)
		own = strstr(text, "___ eddy ");
	return own != NULL ? own : text;
}

/* Letters that leave out all of jemalloc's report that can be. */
#define OWN "gmdablxeh"

/* The number behind "name": from `in` on. */
static uint64_t
number_in(const char *in, const char *name)
{
	char key[48];
	const char *s;

	(void)snprintf(key, sizeof key, "\"%s\":", name);
	s = strstr(in, key);
	if (s == NULL)
		tap_bail("no %s in the statistics", key);
	return strtoull(s + strlen(key), NULL, 10);
}

struct totals {
	uint64_t live, stranded, active, dirty, clean, in_hand, metadata;
	uint64_t resident, mapped, metadata_mapped, free;
	uint64_t stranded_bound, stranded_parts;
	char mode[8];
};

/* Bytes of the free objects of all slabs. */
static uint64_t
free_bytes(const char *s)
{
	const char *end;
	uint64_t sum = 0;

	s = strstr(s, "\"classes\":[");
	end = s == NULL ? NULL : strchr(s, ']');
	if (end == NULL)
		tap_bail("no classes in the statistics");
	while ((s = strstr(s, "{\"size\":")) != NULL && s < end) {
		sum += number_in(s, "size") * number_in(s, "free");
		s++;
	}
	return sum;
}

static struct totals
totals(void)
{
	const char *all = print("Jgmdaxeh");
	const char *s = strstr(all, "\"stats\":");
	const char *mode = strstr(all, "\"mode\":\"");
	struct totals t;

	if (s == NULL || mode == NULL)
		tap_bail("no totals in the statistics: %s", all);
	t.live = number_in(s, "live");
	t.stranded = number_in(s, "stranded");
	t.active = number_in(s, "active");
	t.dirty = number_in(s, "dirty");
	t.clean = number_in(s, "clean");
	t.in_hand = number_in(s, "in_hand");
	t.metadata = number_in(s, "metadata");
	t.resident = number_in(s, "resident");
	t.mapped = number_in(s, "mapped");
	t.metadata_mapped = number_in(s, "metadata_mapped");
	t.free = free_bytes(s);
	t.stranded_bound = number_in(s, "stranded_bound");
	t.stranded_parts =
	    number_in(s, "row_bytes") + number_in(s, "remote_row_bytes") +
	    number_in(s, "ring_bytes") + number_in(s, "cell_bytes");
	(void)snprintf(t.mode, sizeof t.mode, "%.*s",
	    (int)strcspn(mode + 8, "\""), mode + 8);
	return t;
}

/* ------------------------------------------------------------------ */

enum { MAX_BLOCKS = 4096 };

static void *blocks[MAX_BLOCKS];
static size_t n_blocks;
static uint64_t n_bytes;

static void
add_block(size_t size)
{
	void *p = p_malloc(size);

	if (p == NULL || n_blocks == MAX_BLOCKS)
		tap_bail("no block of %zu bytes", size);
	n_bytes += p_usable(p);
	blocks[n_blocks++] = p;
}

static void
free_blocks(void)
{
	/* Every other one first: no order in particular. */
	for (size_t i = 0; i < n_blocks; i += 2)
		p_free(blocks[i]);
	for (size_t i = 1; i < n_blocks; i += 2)
		p_free(blocks[i]);
	n_blocks = 0;
	n_bytes = 0;
}

static bool
check_identities(const char *when)
{
	struct totals t = totals();
	bool ok;

	ok = tap_ok(t.active == t.live + t.stranded + t.free,
	    "%s: active pages are live, stranded and free objects", when);
	ok &= tap_ok(t.mapped == t.metadata_mapped + t.active + t.dirty +
				     t.clean + t.in_hand,
	    "%s: every mapped byte is accounted for", when);
	ok &= tap_ok(t.in_hand == 0, "%s: no page is on its way", when);
	ok &= tap_ok(
	    t.stranded == t.stranded_parts && t.stranded <= t.stranded_bound,
	    "%s: stranded is the sum of its parts, and within its bound", when);
	ok &= tap_ok(t.resident == t.active + t.dirty + t.metadata,
	    "%s: resident is the sum of its parts", when);
	if (!ok)
		tap_diag("%s", text);
	return ok;
}

static void
test_exact(void)
{
	struct totals before = totals();
	struct totals with;
	struct totals after;

	for (size_t size = 1; size <= 3 * MIB; size += size / 9 + 1)
		for (int i = 0; i < 3; i++)
			add_block(size);
	with = totals();
	if (!tap_ok(with.live - before.live == n_bytes,
		"live grows by the usable size of %zu blocks of 1 B to 3 MiB",
		n_blocks))
		tap_diag("%llu for %llu",
		    (unsigned long long)(with.live - before.live),
		    (unsigned long long)n_bytes);
	check_identities("with the blocks");
	free_blocks();
	after = totals();
	if (!tap_ok(after.live == before.live,
		"live is what it was when they are freed"))
		tap_diag("%llu, then %llu", (unsigned long long)before.live,
		    (unsigned long long)after.live);
	tap_ok(after.active + after.dirty == with.active + with.dirty,
	    "pages that were in use are dirty when they are freed");
	check_identities("without the blocks");
}

/* One size at a time: what is wrong in one class hides behind no other. */
static void
test_each_size(void)
{
	unsigned wrong = 0;
	size_t size;

	for (size = 8; size <= 3 * MIB && wrong == 0; size += size / 4 + 8) {
		uint64_t before = totals().live;

		for (int i = 0; i < 5; i++)
			add_block(size);
		wrong += totals().live - before != n_bytes;
		free_blocks();
		wrong += totals().live != before;
	}
	tap_ok(wrong == 0, "live is exact for each size alone");
	if (wrong != 0)
		tap_diag("wrong before size %zu", size);
}

static void
test_aligned_and_resized(void)
{
	uint64_t before = totals().live;
	void *p = NULL;

	for (size_t align = 16; align <= 8 * MIB; align *= 2) {
		if (posix_memalign(&p, align, 40000) != 0)
			tap_bail("posix_memalign");
		blocks[n_blocks++] = p;
		n_bytes += p_usable(p);
	}
	p = NULL;
	for (size_t size = 100; size <= 6 * MIB; size += size / 3)
		p = p_realloc(p, size);
	for (size_t size = 6 * MIB; size >= 20 * KIB; size -= size / 3)
		p = p_realloc(p, size);
	blocks[n_blocks++] = p;
	n_bytes += p_usable(p);
	tap_ok(totals().live - before == n_bytes,
	    "live is exact after memalign and realloc");
	check_identities("after memalign and realloc");
	free_blocks();
	tap_ok(totals().live == before,
	    "live is what it was when those are freed");
}

static void
test_stranded(void)
{
	struct totals a;
	struct totals b;
	void *p;
	void *warm = p_malloc(1000);

	p = p_malloc(1000);
	p_free(warm);
	a = totals();
	p_free(p);
	b = totals();
	if (strcmp(a.mode, "none") == 0)
		tap_ok(b.stranded == 0, "without caches nothing is stranded");
	else
		tap_ok(
		    b.stranded - a.stranded == 1024 && a.live - b.live == 1024,
		    "a freed object goes from live to stranded");
}

static void
test_rows(void)
{
	const char *s;
	uint64_t bytes;
	uint64_t stranded;
	bool refills = false;

	p_free(p_malloc(10000));
	s = print("J");
	if (strstr(s, "\"mode\":\"none\"") != NULL) {
		tap_skip("caches by CPU", "there are none");
		return;
	}
	stranded = number_in(s, "stranded");
	bytes = number_in(s, "ring_bytes");
	s = strstr(s, "\"cpus\":");
	while (s != NULL && (s = strstr(s, "{\"number\":")) != NULL) {
		bytes += number_in(s, "bytes");
		refills |= number_in(s, "refills") != 0;
		s++;
	}
	tap_ok(bytes == stranded,
	    "what CPUs, cells and rings hold adds up to stranded");
	tap_ok(refills, "refills are counted");
}

/* ------------------------------------------------------------------ */

static void
test_mallinfo(void)
{
	void *big = p_malloc(5 * MIB);
	struct mallinfo2 m = mallinfo2();
	struct totals t = totals();

	tap_ok(m.uordblks + m.hblkhd == t.live,
	    "mallinfo2: uordblks and hblkhd are live");
	tap_ok(m.uordblks + m.fordblks == m.arena,
	    "mallinfo2: uordblks and fordblks are arena");
	tap_ok(m.arena + m.hblkhd == t.active + t.dirty,
	    "mallinfo2: arena and hblkhd are active and dirty");
	tap_ok(m.hblks >= 1 && m.hblkhd >= 5 * MIB,
	    "mallinfo2 counts huge blocks");
	tap_ok(m.keepcost == t.dirty, "mallinfo2: keepcost is dirty");
	p_free(big);
}

/* ------------------------------------------------------------------ */

struct zeroes {
	uint64_t written, skipped;
};

static struct zeroes
zeroes(void)
{
	const char *s = print("J" OWN);
	struct zeroes z;

	z.written = number_in(s, "zeroed");
	z.skipped = number_in(s, "zero_skipped");
	return z;
}

/* What calloc says that it did for one block, which is freed again. */
static struct zeroes
calloc_counts(size_t size, size_t touched, size_t *usable)
{
	struct zeroes a = zeroes();
	struct zeroes b;
	void *p = p_calloc(1, size);

	b = zeroes();
	*usable = p_usable(p);
	memset(p, 0x5a, touched);
	p_free(p);
	return (struct zeroes){b.written - a.written, b.skipped - a.skipped};
}

static void
test_zeroed(void)
{
	const size_t big = 64 * (size_t)MIB;
	struct zeroes z;
	size_t n;

	(void)malloc_trim(0);
	z = calloc_counts(big, MIB, &n);
	tap_ok(z.written == 0 && z.skipped == n,
	    "calloc of memory that was never used writes nothing");
	z = calloc_counts(big, MIB, &n);
	if (!tap_ok(z.written <= 2 * MIB && z.written + z.skipped == n,
		"calloc writes about what was touched, and counts the rest"))
		tap_diag("%llu written, %llu skipped of %zu",
		    (unsigned long long)z.written,
		    (unsigned long long)z.skipped, n);
	(void)malloc_trim(0);
	z = calloc_counts(big, 0, &n);
	tap_ok(z.written == 0, "after malloc_trim it writes nothing again");
	(void)calloc_counts(100000, 100000, &n);
	z = calloc_counts(100000, 0, &n);
	tap_ok(z.written + z.skipped == n, "blocks of 100,000 bytes count");
	z = calloc_counts(60000, 0, &n);
	tap_ok(z.written + z.skipped == 0, "blocks below 64 KiB do not");
}

static void
test_trim(void)
{
	uint64_t live;
	struct totals a;
	struct totals b;

	for (int i = 0; i < 20; i++)
		add_block(300000);
	for (size_t i = 0; i < n_blocks; i++)
		memset(blocks[i], 1, 300000);
	free_blocks();
	a = totals();
	tap_ok(a.dirty >= 20 * 300000, "freed runs are dirty");
	live = a.live;
	tap_ok(malloc_trim(2 * MIB) == 1, "malloc_trim gives memory back");
	b = totals();
	tap_ok(b.dirty < a.dirty, "dirty shrinks by malloc_trim");
	(void)malloc_trim(0);
	b = totals();
	if (!tap_ok(b.dirty == 0, "malloc_trim(0) leaves nothing dirty"))
		tap_diag("%llu bytes", (unsigned long long)b.dirty);
	tap_ok(b.live == live, "malloc_trim leaves live as it was");
	check_identities("after malloc_trim");
	tap_ok(malloc_trim(0) == 0, "a second one finds nothing");
}

/* ------------------------------------------------------------------ */

static volatile sig_atomic_t n_signals;
static volatile sig_atomic_t n_absurd;
static struct flag stop;

static void
on_timer(int sig)
{
	const char *s;
	uint64_t live;
	uint64_t mapped;

	(void)sig;
	s = print("J" OWN);
	live = number_in(s, "live");
	mapped = number_in(s, "mapped");
	n_absurd += live > mapped || number_in(s, "active") > mapped ||
		    number_in(s, "stranded") > number_in(s, "stranded_bound");
	n_signals++;
}

static void *
churn(void *arg)
{
	uint64_t seed = tap.seed;
	void *mine[64] = {NULL};

	(void)arg;
	while (!flag_is_set(&stop)) {
		uint64_t r = tap_random(&seed);
		unsigned i = r % 64;

		p_free(mine[i]);
		mine[i] =
		    p_malloc((r >> 8) & (((uint64_t)1 << (r >> 32) % 23) - 1));
	}
	for (unsigned i = 0; i < 64; i++)
		p_free(mine[i]);
	return NULL;
}

static void
test_motion(void)
{
	struct itimerval often = {{0, 2000}, {0, 2000}};
	struct itimerval never = {{0, 0}, {0, 0}};
	pthread_t other;
	sigset_t alarms;

	signal(SIGPROF, on_timer);
	sigemptyset(&alarms);
	sigaddset(&alarms, SIGPROF);
	/* Signals come to this thread, in the middle of its own churn. */
	pthread_sigmask(SIG_BLOCK, &alarms, NULL);
	if (pthread_create(&other, NULL, churn, NULL) != 0)
		tap_bail("pthread_create");
	pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
	setitimer(ITIMER_PROF, &often, NULL);
	for (int i = 0; i < 4000000 && n_signals < 100; i++) {
		size_t size = (size_t)(i * 37 % 50000);
		void *p = p_malloc(size);
		void *q = p_malloc(size * 60);

		p_free(p);
		p_free(q);
	}
	setitimer(ITIMER_PROF, &never, NULL);
	flag_set(&stop);
	pthread_join(other, NULL);
	signal(SIGPROF, SIG_IGN);
	tap_ok(n_signals > 0 && n_absurd == 0,
	    "numbers taken in a signal handler while threads work are possible "
	    "ones");
	tap_diag("%d signals", (int)n_signals);
	check_identities("when they have stopped");
}

/* ------------------------------------------------------------------ */

/* What fn, or a program run anew, writes on stderr. */
static size_t
child_stderr(char *buf, size_t n, void (*fn)(void), char **env)
{
	char *argv[] = {(char *)"ctl_stats", (char *)"exit", NULL};
	int fd[2];
	size_t len = 0;
	ssize_t got;
	pid_t pid;

	if (pipe(fd) != 0 || (pid = fork()) < 0)
		tap_bail("pipe or fork");
	if (pid == 0) {
		(void)dup2(fd[1], STDERR_FILENO);
		(void)close(fd[0]);
		(void)close(fd[1]);
		if (fn != NULL) {
			fn();
			_exit(0);
		}
		(void)execve("/proc/self/exe", argv, env);
		_exit(126);
	}
	(void)close(fd[1]);
	while (len < n - 1 && (got = read(fd[0], buf + len, n - 1 - len)) > 0)
		len += (size_t)got;
	buf[len] = '\0';
	(void)close(fd[0]);
	(void)waitpid(pid, NULL, 0);
	return len;
}

static void
print_stderr(void)
{
	malloc_stats_print(NULL, NULL, "?!");
}

static bool
tells_flows(void)
{
	return strstr(text, "bleed") != NULL ||
	       strstr(text, "flows between CPUs") != NULL;
}

#define BEGIN "___ Begin jemalloc statistics ___\nVersion: \"5."

static void
test_text(void)
{
	static char out[512 * 1024];
	const char *own;

	own = print(NULL);
	tap_ok(
	    strncmp(text, BEGIN, strlen(BEGIN)) == 0 &&
		strstr(text, "\n--- End jemalloc statistics ---\n___ eddy ") !=
		    NULL &&
		strstr(own, "mode: ") != NULL && text[text_len - 1] == '\n',
	    "text is jemalloc's report, and then eddy's with version and mode");
	tap_ok(
	    strstr(own, "  live ") != NULL && strstr(own, "overflows") != NULL,
	    "text has totals and tables");
	own = print("bnf");
	tap_ok(strstr(own, "\nhuge blocks") != NULL &&
		   strstr(own, "\n      16 ") == NULL &&
		   strstr(text, "\nbins:") == NULL,
	    "letter b leaves out the small classes");
	print("l");
	tap_ok(strstr(text, "\nhuge blocks") == NULL &&
		   strstr(text, "\nlarge:          size") == NULL,
	    "letter l leaves out runs and huge blocks");
	print("n");
	tap_ok(strstr(text, "\n   arena ") == NULL &&
		   strstr(text, "\n    node ") == NULL && tells_flows(),
	    "letter n leaves out arenas, homes and nodes");
	print("f");
	tap_ok(!tells_flows() && strstr(text, "\n   arena ") != NULL &&
		   strstr(text, "\n    home ") != NULL &&
		   strstr(text, "\n    node ") != NULL,
	    "letter f leaves out what flows and bleeds");
	tap_ok(child_stderr(out, sizeof out, print_stderr, NULL) > 500 &&
		   strncmp(out, BEGIN, strlen(BEGIN)) == 0,
	    "without a callback, stderr it is; unknown letters are ignored");
	tap_ok(child_stderr(out, sizeof out, malloc_stats, NULL) > 500 &&
		   strncmp(out, BEGIN, strlen(BEGIN)) == 0,
	    "malloc_stats prints the same");
}

/* This program once more, with options; it ends at once. */
static const char *
at_exit_with(const char *conf)
{
	static char out[512 * 1024];
	static char conf_env[128];
	static char pre_env[4200];
	char *env[] = {conf_env, pre_env, NULL};

	(void)snprintf(conf_env, sizeof conf_env, "EDDY_CONF=%s", conf);
	(void)snprintf(
	    pre_env, sizeof pre_env, "LD_PRELOAD=%s", getenv("EDDY_SO"));
	(void)child_stderr(out, sizeof out, NULL, env);
	return out;
}

static void
test_exit(void)
{
	const char *s = at_exit_with("stats_print:true,lg_range:40");

	tap_ok(strncmp(s, BEGIN, strlen(BEGIN)) == 0 &&
		   strstr(s, "end of eddy statistics") != NULL,
	    "stats_print:true prints at exit");
	s = strstr(s, "\n___ eddy ");
	if (s == NULL)
		tap_bail("no part of eddy's own");
	tap_ok(strstr(s, "opt.stats_print: true\n") != NULL &&
		   strstr(s, "opt.lg_range: 40\n") != NULL &&
		   strstr(s, "opt.tcache:") == NULL,
	    "options that were set are shown, and no others");
	tap_ok(strstr(s, "\nnothing bleeds\n") != NULL,
	    "where nothing bleeds one line says so");
	tap_ok(*at_exit_with("stats_print:false") == '\0',
	    "nothing is printed unless asked");
	s = at_exit_with("stats_print:true,rseq:false");
	tap_ok(strstr(s, "mode: claim ___") != NULL &&
		   strstr(s, "\n   cells ") != NULL &&
		   strstr(s, "\nflows between CPUs are not told") != NULL,
	    "rseq:false shows as mode claim");
	s = at_exit_with("stats_print:true,check:true");
	tap_ok(strstr(s, "mode: none ___") != NULL &&
		   strstr(s, "\n     cpu ") == NULL &&
		   strstr(s, "so nothing bleeds\n") != NULL,
	    "check:true shows as mode none");
	s = at_exit_with("stats_print:true,stats_print_opts:Ja");
	tap_ok(strncmp(s, "{\"jemalloc\":{", 13) == 0 &&
		   strstr(s, "\"eddy\":{") != NULL &&
		   strstr(s, "\"cpus\"") == NULL,
	    "stats_print_opts chooses what is printed");
}

static void
test_interval(void)
{
	const char *s = at_exit_with(
	    "stats_interval:10485760,stats_interval_opts:" OWN "fn");
	unsigned n = 0;

	for (; (s = strstr(s, "___ Begin jemalloc statistics")) != NULL; s++)
		n++;
	if (!tap_ok(
		n >= 4 && n <= 6, "stats_interval prints every so many bytes"))
		tap_diag("%u times in 50 MiB", n);
	tap_ok(*at_exit_with("stats_interval:-1") == '\0', "-1 is never");
}

/* Whether python's parser takes text, by its exit status; -1 without one. */
static int
python_takes(const char *code)
{
	int fd[2];
	int status;
	size_t at = 0;
	ssize_t n = 1;
	pid_t pid;

	if (pipe(fd) != 0 || (pid = fork()) < 0)
		tap_bail("pipe or fork");
	if (pid == 0) {
		(void)unsetenv("LD_PRELOAD");
		(void)dup2(fd[0], STDIN_FILENO);
		(void)close(fd[0]);
		(void)close(fd[1]);
		(void)execlp("python3", "python3", "-c", code, (char *)NULL);
		_exit(127);
	}
	(void)close(fd[0]);
	signal(SIGPIPE, SIG_IGN);
	for (; at < text_len && n > 0; at += (size_t)n)
		n = write(fd[1], text + at, text_len - at);
	(void)close(fd[1]);
	(void)waitpid(pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return -1;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* JSON of a child under options. */
static bool
takes_under(const char *conf, const char *code)
{
	const char *s = at_exit_with(conf);

	text_len = strlen(s);
	memcpy(text, s, text_len + 1);
	if (python_takes(code) == 1)
		return true;
	tap_diag("%s: %s", conf, text);
	return false;
}

/* What the memory consists of, and what the kernel says. */
static void
test_memory_parse(void)
{
	static const char code[] =
	    "import json, sys\n"
	    "e = json.load(sys.stdin)['eddy']\n"
	    "m, s = e['memory'], e['stats']\n"
	    "assert m['in_use'] == s['live'] and m['cached'] == s['stranded']\n"
	    "assert m['dirty'] == s['dirty'] and m['muzzy'] == s['muzzy']\n"
	    "parts = sum(m[k] for k in ('in_use', 'cached', 'slab_free',\n"
	    "    'dirty', 'muzzy', 'in_hand', 'metadata'))\n"
	    "assert parts == s['resident']\n"
	    "assert m['rss'] + m['untouched'] == parts + m['not_eddys']\n"
	    "assert m['rss'] > 4096 and m['background_threads'] == 0\n"
	    "assert m['smaps_rss'] > 4096\n"
	    "assert 0.5 < m['smaps_rss'] / m['rss'] < 2\n";

	tap_ok(takes_under("stats_print:true,stats_print_opts:Jr", code),
	    "memory is the sum of its parts, as JSON");
	tap_ok(strstr(at_exit_with("stats_print:true,stats_print_opts:r"),
		   "smaps: resident\n") != NULL &&
		   strstr(at_exit_with("stats_print:true"), "smaps:") == NULL,
	    "the letter r asks the kernel");
}

static void
test_homes_parse(void)
{
	static const char code[] =
	    "import json, sys\n"
	    "e = json.load(sys.stdin)['eddy']\n"
	    "n = len(e['homes'])\n"
	    "assert n in (1, 2, 55, 62)\n"
	    "assert e['arenas'] and e['nodes'] and not e['flows']['worst']\n"
	    "assert all(len(c['to_home']) == n for c in e['flows']['cpus'])\n"
	    "a = sum(a['active'] for a in e['arenas'])\n"
	    "assert a == e['stats']['active']\n"
	    "p = [n['pages'] for n in e['nodes']]\n"
	    "assert sum(n['sampled'] for n in p) > 0\n"
	    "assert all(n['sampled'] >= n['present'] for n in p)\n"
	    "assert e['flows']['bleeds'] is False\n"
	    "assert e['flows']['rmws_per_object'] >= 0\n";

	tap_ok(takes_under("stats_print:true,stats_print_opts:Jp", code),
	    "arenas, homes, nodes and flows are JSON");
	tap_ok(takes_under("stats_print:true,stats_print_opts:Jp,topology:"
			   "1x2x1,home:llc",
		   code),
	    "of two homes");
	tap_ok(takes_under("stats_print:true,stats_print_opts:Jp,topology:"
			   "80x1x1",
		   code),
	    "of all that there can be");
}

/* What one CPU allocates another frees, if there are two. */
static void
make_flow(void)
{
	cpu_set_t all;
	unsigned n = 0;

	if (sched_getaffinity(0, sizeof all, &all) != 0)
		return;
	for (size_t cpu = 0; cpu < CPU_SETSIZE && n < 2; cpu++) {
		cpu_set_t one;

		if (!CPU_ISSET(cpu, &all))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		(void)sched_setaffinity(0, sizeof one, &one);
		for (int i = 0; i < MAX_BLOCKS && n == 0; i++)
			add_block(700);
		if (n++ == 1)
			free_blocks();
	}
	free_blocks();
	(void)sched_setaffinity(0, sizeof all, &all);
}

static void
test_parsers(void)
{
	static const char *const opts[] = {
	    "J", "Jg", "Jgabl", "Jgablfn", "Jp", "J" OWN};
	FILE *f;
	int r = 0;

	make_flow();
	for (size_t i = 0; i < COUNT(opts) && r >= 0; i++) {
		print(opts[i]);
		r = python_takes("import json, sys\n"
				 "e = json.load(sys.stdin)['eddy']\n"
				 "assert e['stats']['mapped'] > 0\n"
				 "assert e['mode'] in 'rseq claim none'\n"
				 "c = e.get('flows', {}).get('cpus', [])\n"
				 "w = e.get('flows', {}).get('worst', [])\n"
				 "assert len(c) < 2 or len(w) > 0\n");
		if (r >= 0)
			tap_ok(r == 1, "%s is JSON", opts[i]);
	}
	if (r >= 0)
		test_memory_parse();
	test_homes_parse();
	f = fmemopen(text, sizeof text - 1, "w");
	tap_ok(f != NULL && malloc_info(0, f) == 0, "malloc_info writes");
	(void)fclose(f);
	text_len = strlen(text);
	if (r >= 0)
		r = python_takes(
		    "import sys, xml.etree.ElementTree as t\n"
		    "m = t.parse(sys.stdin).getroot()\n"
		    "assert m.tag == 'malloc' and m.get('version') == '1'\n"
		    "assert int(m.find('heap/sizes/size').get('to')) > 0\n");
	if (r >= 0)
		tap_ok(r == 1, "malloc_info is XML");
	else
		tap_skip("JSON and XML by a parser", "no python3");
}

int
main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "exit") == 0) {
		for (int i = 0; i < 100; i++)
			p_free(p_malloc((size_t)(i % 2 * MIB + 100)));
		return 0;
	}
	tap_begin(argv);
	if (malloc_stats_print == NULL || &eddy_version == NULL)
		tap_skip_all("EDDY_SO names no library");
	tap_guard(120);
	tap_ok(strcmp(eddy_version, EDDY_VERSION_STRING) == 0,
	    "header and library are of one version");
	test_exact();
	test_each_size();
	test_aligned_and_resized();
	test_stranded();
	test_rows();
	test_mallinfo();
	test_zeroed();
	test_trim();
	test_text();
	test_exit();
	test_interval();
	test_parsers();
	test_motion();
	return tap_end();
}
