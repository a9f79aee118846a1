/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ctl_bleed.c - what is said of made-up counters: who bleeds, how badly, and
 * what would help.  The judge alone, under any malloc.
 */
#include "tests/tap.h"

#include "lib/ctl/bleed.h"

enum { RING = 2048, BATCH = 64 };

static const struct eddy_bleed_world one_home = {
    .n_homes = 1, .one_node = true, .cpu_cache_bytes = 2 << 20};
static const struct eddy_bleed_world two_nodes = {
    .n_homes = 2, .one_node = false, .cpu_cache_bytes = 2 << 20};
static const struct eddy_bleed_world two_caches = {
    .n_homes = 2, .one_node = true, .cpu_cache_bytes = 2 << 20};

struct cpu {
	uint32_t cpu, home;
	uint64_t in, back, out, away;
};

/* Objects in the rings of the class. */
static uint64_t waiting;

/* One class of 64 bytes on n CPUs; the other of two homes gets what is away. */
static struct eddy_bleed_finding
judge(const struct cpu *c, size_t n)
{
	struct eddy_bleed b;
	struct eddy_bleed_finding f;

	eddy_bleed_begin(&b, 64, BATCH, RING, waiting);
	for (size_t i = 0; i < n; i++) {
		struct eddy_bleed_cpu who = {.cpu = c[i].cpu,
		    .home = c[i].home,
		    .other_home =
			c[i].away != 0 ? 1 - c[i].home : EDDY_BLEED_NOBODY};
		struct eddy_bleed_flow flow = {.in = c[i].in,
		    .back = c[i].back,
		    .out = c[i].out,
		    .away = c[i].away};

		eddy_bleed_add(&b, &who, &flow);
	}
	eddy_bleed_judge(&b, &f);
	return f;
}

#define JUDGE(...)                               \
	judge((const struct cpu[]){__VA_ARGS__}, \
	    sizeof((const struct cpu[]){__VA_ARGS__}) / sizeof(struct cpu))

static char words[4096];

static void
collect(void *arg, const char *s)
{
	size_t n = strlen(words);

	(void)arg;
	(void)snprintf(words + n, sizeof words - n, "%s", s);
}

static const char *
say(const struct eddy_bleed_finding *f, const struct eddy_bleed_world *w)
{
	struct eddy_text t;

	words[0] = '\0';
	eddy_text_open(&t, collect, NULL);
	eddy_bleed_words(&t, f, w, "\n");
	eddy_text_close(&t);
	return words;
}

static bool
says(const struct eddy_bleed_finding *f, const struct eddy_bleed_world *w,
    const char *what)
{
	if (strstr(say(f, w), what) != NULL)
		return true;
	tap_diag("no \"%s\" in \"%s\"", what, words);
	return false;
}

/* ------------------------------------------------------------------ */

static void
test_nothing(void)
{
	struct eddy_bleed_finding f = judge(NULL, 0);

	tap_ok(f.kind == EDDY_BLEED_NONE && *say(&f, &one_home) == '\0',
	    "no CPU, no finding");
	f = JUDGE({.cpu = 0}, {.cpu = 1, .home = 1});
	tap_ok(f.kind == EDDY_BLEED_NONE && f.cost == 0 && f.slab_percent == 0,
	    "no traffic, no finding");
	f = JUDGE({.cpu = 0, .in = 60000, .out = 60000},
	    {.cpu = 1, .in = 5000, .out = 4000});
	tap_ok(f.kind == EDDY_BLEED_NONE,
	    "what CPUs send off they take again: no bleeding");
	f = JUDGE({.cpu = 0, .in = 1000000000}, {.cpu = 1, .in = 5000000});
	tap_ok(f.kind == EDDY_BLEED_NONE, "a heap that grows does not bleed");
	f = JUDGE({.cpu = 0, .out = 1000000000}, {.cpu = 1, .out = 5000000});
	tap_ok(f.kind == EDDY_BLEED_NONE, "one that shrinks does not");
	f = JUDGE(
	    {.cpu = 0, .in = 60000, .out = 60000}, {.cpu = 1, .out = 50000});
	tap_ok(f.kind == EDDY_BLEED_NONE,
	    "nor does one that shrinks beside a CPU that is busy by itself");
	f = JUDGE({.cpu = 0, .in = 500}, {.cpu = 1, .out = 500, .away = 400});
	tap_ok(f.kind == EDDY_BLEED_NONE, "a few objects are nothing");
	f = JUDGE({.cpu = 0, .in = 10000000, .out = 9900000},
	    {.cpu = 1, .home = 1, .in = 10000000, .away = 100000});
	tap_ok(!eddy_bleed_is(&f), "nor are many beside very many that stay");
}

static void
test_away(void)
{
	struct eddy_bleed_finding f =
	    JUDGE({.cpu = 0, .in = 4000000, .back = 3920000},
		{.cpu = 1, .home = 1, .away = 4000000});

	tap_ok(f.kind == EDDY_BLEED_AWAY && f.n_objects == 4000000 &&
		   f.from_cpu == 1 && f.to_home == 0 && !f.full &&
		   f.slab_percent == 2,
	    "one frees what another home allocates: away from home");
	tap_ok(says(&f, &two_nodes,
		   "objects of 64 bytes flow from CPU 1 to home 0: 4.0 M freed "
		   "away from home\n98 % came back in batches by a ring, 2 % "
		   "went to slabs\n") &&
		   says(&f, &two_nodes, "free where you allocate, or pin") &&
		   says(&f, &two_nodes, "numa:interleave") &&
		   strstr(words, "home:node") == NULL,
	    "it is said in words, with what to change");
	tap_ok(says(&f, &two_caches, "home:node makes one home") &&
		   strstr(words, "numa:") == NULL,
	    "with a home a cache, home:node would help");
	tap_ok(says(&f, &one_home, "or pin both sides to CPUs of one home") &&
		   strstr(words, "home:node") == NULL &&
		   strstr(words, "numa:") == NULL,
	    "with one home no option would");
	f = JUDGE({.cpu = 0, .in = 4000000, .back = 4000000},
	    {.cpu = 7, .home = 1, .away = 3000000},
	    {.cpu = 8, .home = 1, .away = 1000000});
	tap_ok(f.n_objects == 4000000 && f.n_largest == 3000000 &&
		   f.from_cpu == 7 &&
		   says(&f, &two_nodes,
		       "4.0 M freed away from home, 3.0 M of them there\nall "
		       "came back in batches by a ring"),
	    "of several CPUs the largest is named");
}

static void
test_passed(void)
{
	struct eddy_bleed_finding f =
	    JUDGE({.cpu = 2, .in = 4000000, .back = 3999872},
		{.cpu = 5, .out = 3999936, .in = 64, .back = 64});

	tap_ok(f.kind == EDDY_BLEED_PASSED && f.n_objects == 3999872 &&
		   f.from_cpu == 2 && f.to_cpu == 5 && !f.full,
	    "one refills and another overflows: passed on within the home");
	tap_ok(says(&f, &one_home,
		   "objects of 64 bytes flow from CPU 2, which allocates, to "
		   "CPU 5, which frees: 3.9 M\nall came back in batches by a "
		   "ring\nthe ring is made for this"),
	    "the ring carries it: nothing must change");
	f = JUDGE({.cpu = 0, .in = 5000000, .back = 5000000},
	    {.cpu = 1, .home = 1, .away = 2000000, .out = 3000000});
	tap_ok(f.kind == EDDY_BLEED_PASSED && f.n_objects == 3000000,
	    "of both kinds the larger one is named");
}

static void
test_full(void)
{
	struct eddy_bleed_finding f =
	    JUDGE({.cpu = 0, .in = 4000000, .back = 1000000},
		{.cpu = 1, .home = 1, .away = 4000000});
	struct eddy_bleed_finding ok =
	    JUDGE({.cpu = 0, .in = 4000000, .back = 3999900},
		{.cpu = 1, .home = 1, .away = 4000000});

	tap_ok(f.kind == EDDY_BLEED_AWAY && f.full && f.slab_percent == 75 &&
		   says(&f, &two_nodes,
		       "25 % came back in batches by a ring, 75 % found it "
		       "full and went to slabs") &&
		   says(&f, &two_nodes,
		       "free fewer at a time than the ring holds, 2048"),
	    "a ring that is full is said to be");
	tap_ok(f.cost > 10 * ok.cost, "and costs more than one that is not");
	tap_ok(!ok.full && says(&ok, &two_nodes, "over 99 % came back"),
	    "a few that went to slabs are not nothing");
	waiting = 1500;
	ok = JUDGE({.cpu = 0, .in = 3000, .back = 500},
	    {.cpu = 1, .home = 1, .away = 2000});
	waiting = 0;
	tap_ok(!ok.full && says(&ok, &two_nodes, "all came back"),
	    "what still waits in the ring did not go to slabs");
	f = JUDGE(
	    {.cpu = 0, .in = 4000000}, {.cpu = 1, .home = 1, .away = 4000000});
	tap_ok(f.slab_percent == 100 && says(&f, &two_nodes, "\n0 % came back"),
	    "nothing comes back where there is no ring");
	f = JUDGE(
	    {.cpu = 0, .in = 100000, .back = 90000}, {.cpu = 1, .out = 100000});
	tap_ok(f.kind == EDDY_BLEED_PASSED && f.full &&
		   says(&f, &one_home, "free fewer at a time"),
	    "one in ten is full, in one home too");
}

static void
test_tight(void)
{
	struct eddy_bleed b;
	struct eddy_bleed_cpu who = {.cpu = 3};
	struct eddy_bleed_flow flow = {
	    .in = 900000, .back = 100, .out = 900000, .cut = true};
	struct eddy_bleed_finding f;

	eddy_bleed_begin(&b, 4096, 8, 512, 0);
	eddy_bleed_add(&b, &who, &flow);
	eddy_bleed_judge(&b, &f);
	tap_ok(f.kind == EDDY_BLEED_TIGHT && !eddy_bleed_is(&f) &&
		   says(&f, &one_home,
		       "objects of 4096 bytes come and go on "
		       "CPU 3") &&
		   says(&f, &one_home, "raise cpu_cache_bytes, now 2.0 MiB"),
	    "bursts that a row which was cut cannot hold: a larger cache");
	flow.cut = false;
	eddy_bleed_begin(&b, 4096, 8, 512, 0);
	eddy_bleed_add(&b, &who, &flow);
	eddy_bleed_judge(&b, &f);
	tap_ok(f.kind == EDDY_BLEED_TIGHT &&
		   says(&f, &one_home, "as long as it can be") &&
		   strstr(words, "cpu_cache_bytes") == NULL,
	    "a row of full length would not gain by one");
}

static void
test_rank(void)
{
	enum { N = 5, CLASSES = 49 };
	struct eddy_bleed_finding worst[N] = {{.kind = EDDY_BLEED_NONE}};
	struct eddy_bleed_finding f;
	bool sorted = true;

	for (uint32_t i = 0; i < CLASSES; i++) {
		/* In no order: 0, 30, 11, 41, 22, 3, ... */
		uint64_t n = 10000u * (i * 30 % CLASSES);

		f = JUDGE(
		    {.cpu = 0, .in = n}, {.cpu = 1, .home = 1, .away = n});
		f.size = i;
		eddy_bleed_rank(worst, N, &f);
	}
	for (uint64_t i = 0; i < N; i++)
		sorted &= worst[i].n_objects == (CLASSES - 1 - i) * 10000;
	tap_ok(sorted, "of many classes the worst are kept, the worst first");
	f = (struct eddy_bleed_finding){
	    .kind = EDDY_BLEED_TIGHT, .cost = UINT64_MAX};
	eddy_bleed_rank(worst, N, &f);
	tap_ok(worst[0].kind == EDDY_BLEED_AWAY &&
		   worst[N - 1].kind == EDDY_BLEED_AWAY,
	    "a cache too small does not drive out a bleeding");
	worst[N - 1].kind = EDDY_BLEED_NONE;
	f.cost = 1;
	eddy_bleed_rank(worst, N, &f);
	tap_ok(worst[N - 1].kind == EDDY_BLEED_TIGHT,
	    "but stands behind the last of them");
	f = JUDGE({.cpu = 0});
	eddy_bleed_rank(worst, N, &f);
	tap_ok(worst[N - 1].kind == EDDY_BLEED_TIGHT,
	    "what is no finding is not ranked");
	f = JUDGE({.cpu = 0, .in = 100000, .back = 100000},
	    {.cpu = 1, .out = 100000});
	tap_ok(f.cost == 100000 / BATCH, "the cost is trips, not objects");
}

static void
test_large_numbers(void)
{
	const uint64_t max = UINT64_MAX;
	struct eddy_bleed_finding f =
	    JUDGE({.cpu = 0, .in = max}, {.cpu = 1, .home = 1, .away = max / 2},
		{.cpu = 2, .home = 1, .away = max - 1});

	tap_ok(f.kind == EDDY_BLEED_AWAY && f.n_objects == max &&
		   f.n_largest == max - 1 && f.from_cpu == 2,
	    "sums of the largest counters saturate");
	tap_ok(says(&f, &two_nodes, ": 18.4 E freed away"), "and can be said");
	f = JUDGE({.cpu = 0, .in = max, .back = max / 4 * 3},
	    {.cpu = 1, .home = 1, .away = max - 5});
	tap_ok(f.slab_percent >= 24 && f.slab_percent <= 25,
	    "parts of them are right");
	f = JUDGE({.cpu = 0, .in = max, .back = max},
	    {.cpu = 0, .in = max, .back = max}, {.cpu = 1, .out = max},
	    {.cpu = 2, .out = max, .away = max / 3});
	tap_ok(f.kind == EDDY_BLEED_PASSED && f.n_objects == max &&
		   f.cost >= max / BATCH,
	    "passed on, they saturate too");
	tap_ok(eddy_bleed_percent(max - 1, max) == 99 &&
		   eddy_bleed_percent(max, max) == 100 &&
		   eddy_bleed_percent(max, 1) == 100 &&
		   eddy_bleed_percent(max / 100, max) <= 1 &&
		   eddy_bleed_percent(1, 3) == 33,
	    "percentages of large numbers");
	tap_ok(eddy_bleed_thousandths(1, 16) == 62 &&
		   eddy_bleed_thousandths(max, max) == 1000 &&
		   eddy_bleed_thousandths(max / 2, max) / 2 == 250 &&
		   eddy_bleed_thousandths(3, 2) == 1500 &&
		   eddy_bleed_thousandths(max, 1) == max &&
		   eddy_bleed_thousandths(max / 999, 998) ==
		       max / 999 / 998 * 1000 + max / 999 % 998 * 1000 / 998,
	    "and thousandths");
}

static void
test_zero(void)
{
	struct eddy_bleed b;
	struct eddy_bleed_finding f;
	struct eddy_bleed_cpu who = {
	    .cpu = 1, .home = 1, .other_home = EDDY_BLEED_NOBODY};
	struct eddy_bleed_flow flow = {.away = 5000};

	tap_ok(eddy_bleed_percent(0, 0) == 0 && eddy_bleed_percent(7, 0) == 0 &&
		   eddy_bleed_thousandths(0, 0) == 0 &&
		   eddy_bleed_thousandths(7, 0) == 0,
	    "nothing is divided by zero");
	eddy_bleed_begin(&b, 8, 0, 0, 0);
	eddy_bleed_add(&b, &who, &flow);
	eddy_bleed_judge(&b, &f);
	tap_ok(
	    f.kind == EDDY_BLEED_AWAY && f.cost == 5000 &&
		says(&f, &two_nodes, "from CPU 1 to other homes: 5000 freed"),
	    "a batch of no size, a home that is not known");
	f = JUDGE({.cpu = 0, .in = 5000, .back = 5000},
	    {.cpu = 1, .home = 1, .away = 4990});
	tap_ok(f.kind == EDDY_BLEED_AWAY && !f.any_slabs,
	    "of counters from different moments none goes below zero");
}

static void
test_counts(void)
{
	static const struct {
		uint64_t n;
		const char *want;
	} cases[] = {{0, "0"}, {9999, "9999"}, {10000, "10.0 k"},
	    {12345, "12.3 k"}, {999999, "999.9 k"}, {1000000, "1.0 M"},
	    {4000000000, "4.0 G"}, {UINT64_MAX, "18.4 E"}};
	bool held = true;

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct eddy_text t;

		words[0] = '\0';
		eddy_text_open(&t, collect, NULL);
		eddy_text_count(&t, cases[i].n);
		eddy_text_close(&t);
		if (strcmp(words, cases[i].want) == 0)
			continue;
		held = false;
		tap_diag("\"%s\" for \"%s\"", words, cases[i].want);
	}
	tap_ok(held, "counts are short");
}

int
main(int argc, char **argv)
{
	(void)argc;
	tap_begin(argv);
	tap_guard(20);
	test_nothing();
	test_away();
	test_passed();
	test_full();
	test_tight();
	test_rank();
	test_large_numbers();
	test_zero();
	test_counts();
	return tap_end();
}
