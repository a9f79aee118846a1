/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * numa_placement.c - which homes there are, whom they serve, where their
 * memory lies, and what finding that out costs.
 */
#include "tests/numa_tree.h"

#include <sched.h>
#include <sys/mount.h>

#include "numa/placement.h"
#include "numa/policy.h"

/* A node as the cases below state it. */
struct node {
	int id; /* 0 and no CPUs and no memory: the end */
	bool memory;
	const char *cpus;      /* "0-1,4", "" */
	const char *distances; /* to the nodes of the case, in order */
};

struct machine {
	const char *name;
	const char *fake; /* in place of nodes */
	struct node node[9];
	const char *caches; /* "0-1 2-3 ...": domains, none across nodes */
	enum eddy_opt_numa numa;
	enum eddy_opt_home home;
	const char *allowed; /* nodes of the cpuset; NULL: not known */
	int policy;
	bool pretend; /* what eddy_placement_draw is told of fake */
	/* homes as CPUs@node, home of each node, "b" bind, "i" interleave,
	 * "f" fake, number of nodes with memory */
	const char *want;
};

static const struct machine machines[] = {
    {.name = "one node",
	.node = {{0, true, "0-3", "10"}},
	.want = "all@0 |0:0| 1"},
    {.name = "two nodes",
	.node = {{0, true, "0,2", "10 20"}, {1, true, "1,3", "20 10"}},
	.want = "0,2@0 1,3@1 |0:0 1:1|b 2"},
    {.name = "sparse ids",
	.node = {{0, true, "0", "10 20 20"}, {2, true, "1", "20 10 20"},
	    {5, true, "2", "20 20 10"}},
	.want = "0@0 1@2 2@5 |0:0 2:1 5:2|b 3"},
    {.name = "CPUs without memory go to the nearest home",
	.node = {{0, true, "0", "10 20 30"}, {1, false, "1-2", "30 10 20"},
	    {2, true, "3", "30 20 10"}},
	.want = "0@0 1-3@2 |0:0 1:1 2:1|b 2"},
    {.name = "memory without CPUs is nobody's home, and is counted",
	.node = {{0, true, "0-1", "10 20 14"}, {1, true, "2-3", "20 10 40"},
	    {2, true, "", "14 40 10"}},
	.want = "0-1@0 2-3@1 |0:0 1:1 2:0|b 3"},
    {.name = "one node and a memory expander: one home, bound",
	.node = {{0, true, "0-3", "10 14"}, {1, true, "", "14 10"}},
	.want = "all@0 |0:0 1:0|b 2"},
    {.name = "no node has both: homes where memory is nearest",
	.node = {{0, false, "0-1", "10 20 30 40"},
	    {1, false, "2-3", "20 10 40 25"}, {2, true, "", "30 40 10 20"},
	    {3, true, "", "40 25 20 10"}},
	.want = "0-1@2 2-3@3 |0:0 1:1 2:0 3:1|b 2"},
    {.name = "a row that says others are as near as itself",
	.node = {{0, true, "0", "10 10"}, {1, true, "1", "10 10"}},
	.want = "0@0 1@1 |0:0 1:1|b 2"},
    {.name = "guests as near to several homes do not crowd one",
	.node = {{0, true, "0", "10 20 20 20"}, {1, true, "1", "20 10 20 20"},
	    {2, false, "2", "20 20 10 20"}, {3, false, "3", "20 20 20 10"}},
	.want = "0,2@0 1,3@1 |0:0 1:1 2:0 3:1|b 2"},
    {.name = "numa:interleave: one home, spread",
	.node = {{0, true, "0", "10 20"}, {1, true, "1", "20 10"}},
	.numa = EDDY_NUMA_INTERLEAVE,
	.want = "all@0 |0:0 1:0|bi 2"},
    {.name = "numa:interleave on one node is nothing",
	.node = {{0, true, "0", "10"}},
	.numa = EDDY_NUMA_INTERLEAVE,
	.want = "all@0 |0:0| 1"},
    {.name = "a process with a policy: one home, unbound",
	.node = {{0, true, "0", "10 20"}, {1, true, "1", "20 10"}},
	.policy = 3,
	.want = "all@0 |0:0 1:0| 2"},
    {.name = "a process with a policy, interleave",
	.node = {{0, true, "0", "10 20"}, {1, true, "1", "20 10"}},
	.numa = EDDY_NUMA_INTERLEAVE,
	.policy = 1,
	.want = "all@0 |0:0 1:0|i 2"},
    {.name = "a kernel that does not tell: homes apart, unbound",
	.node = {{0, true, "0", "10 20"}, {1, true, "1", "20 10"}},
	.policy = -EPERM,
	.want = "0@0 1@1 |0:0 1:1| 2"},
    {.name = "a cpuset of one node: one home, unbound",
	.node = {{0, true, "0", "10 20"}, {1, true, "1", "20 10"}},
	.allowed = "1",
	.want = "all@1 |0:0 1:0| 2"},
    {.name = "a cpuset of two nodes of three",
	.node = {{0, true, "0", "10 20 30"}, {1, true, "1", "20 10 30"},
	    {2, true, "2", "30 25 10"}},
	.allowed = "0-1",
	.want = "0@0 1-2@1 |0:0 1:1 2:1|b 3"},
    {.name = "a cpuset of no node with memory is not believed",
	.node = {{0, true, "0", "10 20"}, {1, true, "1", "20 10"}},
	.allowed = "7",
	.want = "0@0 1@1 |0:0 1:1|b 2"},
    {.name = "home:llc on one node",
	.node = {{0, true, "0-7", "10"}},
	.caches = "0-1,4-5 2-3,6-7",
	.home = EDDY_HOME_LLC,
	.want = "0-1,4-5@0 2-3,6-7@0 |0:0| 1"},
    {.name = "home:llc on two nodes",
	.node = {{0, true, "0-3", "10 20"}, {1, true, "4-7", "20 10"}},
	.caches = "0-1 2-3 4-5 6-7",
	.home = EDDY_HOME_LLC,
	.want = "0-1@0 2-3@0 4-5@1 6-7@1 |0:0 1:2|b 2"},
    {.name = "home:llc, a domain without memory lies on the nearest",
	.node = {{0, true, "0-1", "10 20 30"}, {1, false, "2-3", "30 10 20"},
	    {2, true, "4-5", "30 20 10"}},
	.caches = "0-1 2-3 4-5",
	.home = EDDY_HOME_LLC,
	.want = "0-1@0 2-3@2 4-5@2 |0:0 1:1 2:2|b 2"},
    {.name = "home:llc with numa:interleave",
	.node = {{0, true, "0-1", "10 20"}, {1, true, "2-3", "20 10"}},
	.caches = "0-1 2-3",
	.home = EDDY_HOME_LLC,
	.numa = EDDY_NUMA_INTERLEAVE,
	.want = "all@0 |0:0 1:0|bi 2"},
    {.name = "home:node pays no heed to caches",
	.node = {{0, true, "0-3", "10 20"}, {1, true, "4", "20 10"}},
	.caches = "0-1 2-3 4",
	.want = "0-3@0 4@1 |0:0 1:1|b 2"},
    {.name = "home:llc, memory as near on two nodes: the lower",
	.node = {{0, true, "0", "10 20 20"}, {1, false, "1", "20 10 20"},
	    {2, true, "2", "20 20 10"}},
	.caches = "0 1 2",
	.home = EDDY_HOME_LLC,
	.want = "0@0 1@0 2@2 |0:0 1:1 2:2|b 2"},
    {.name = "home:llc where no caches are known is home:node",
	.node = {{0, true, "0-1", "10 20"}, {1, true, "2-3", "20 10"}},
	.home = EDDY_HOME_LLC,
	.want = "0-1@0 2-3@1 |0:0 1:1|b 2"},
    {.name = "the nearest home, not the nearest memory",
	.node = {{0, true, "0", "10 20 30 40"}, {1, false, "1", "30 10 15 20"},
	    {2, true, "", "30 15 10 20"}, {3, true, "2", "40 20 20 10"}},
	.want = "0@0 1-2@3 |0:0 1:1 2:1 3:1|b 3"},
    {.name = "memory alone is no guest",
	.node = {{0, true, "0", "10 20 20 20"}, {1, true, "1", "20 10 20 20"},
	    {2, true, "", "20 20 10 20"}, {3, false, "3", "20 20 20 10"}},
	.want = "0,3@0 1@1 |0:0 1:1 2:0 3:0|b 3"},
    {.name = "one home lies where memory is",
	.node = {{0, false, "0", "10 20"}, {1, true, "1", "20 10"}},
	.policy = 2,
	.want = "all@1 |0:0 1:0| 1"},
    {.name = "no node has CPUs",
	.node = {{2, true, "", "10 20"}, {3, true, "", "20 10"}},
	.want = "all@2 |2:0 3:0|b 2"},
    {.name = "home:llc, no node has CPUs",
	.node = {{2, true, "", "10 20"}, {3, true, "", "20 10"}},
	.home = EDDY_HOME_LLC,
	.want = "all@2 |2:0 3:0|b 2"},
    {.name = "a fake is never bound",
	.node = {{0, true, "0", "10 20"}, {1, true, "1", "20 10"}},
	.pretend = true,
	.want = "0@0 1@1 |0:0 1:1|f 2"},
};

static struct eddy_topology *topo;
static struct eddy_placement *place;

/* The members of "0-3,8" into bits. */
static void
parse(const char *s, uint64_t *set)
{
	while (*s >= '0' && *s <= '9') {
		char *end;
		unsigned long lo = strtoul(s, &end, 10);
		unsigned long hi =
		    *end == '-' ? strtoul(end + 1, &end, 10) : lo;

		for (; lo <= hi; lo++)
			set[lo / 64] |= (uint64_t)1 << lo % 64;
		s = *end == ',' ? end + 1 : end;
	}
}

static bool
is_end(const struct node *n)
{
	return n->distances == NULL;
}

/* The case as a struct eddy_topology. */
static void
build(const struct machine *m)
{
	struct eddy_topology *t = topo;
	const char *s = m->caches;

	memset(t, 0xa5, sizeof *t);
	memset(t->online, 0, sizeof t->online);
	memset(t->has_memory, 0, sizeof t->has_memory);
	memset(t->has_cpus, 0, sizeof t->has_cpus);
	memset(t->node_of_cpu, 0xff, sizeof t->node_of_cpu);
	memset(t->llc_of_cpu, 0xff, sizeof t->llc_of_cpu);
	t->n_nodes = t->n_llcs = 0;
	for (const struct node *n = m->node; !is_end(n); n++) {
		uint64_t cpus[EDDY_MAX_CPUS / 64] = {0};
		uint64_t bit = (uint64_t)1 << n->id % 64;
		const char *d = n->distances;

		t->n_nodes++;
		t->online[n->id / 64] |= bit;
		t->has_memory[n->id / 64] |= n->memory ? bit : 0;
		t->has_cpus[n->id / 64] |= *n->cpus != '\0' ? bit : 0;
		parse(n->cpus, cpus);
		for (unsigned c = 0; c < EDDY_MAX_CPUS; c++)
			if ((cpus[c / 64] >> c % 64 & 1) != 0)
				t->node_of_cpu[c] = (uint16_t)n->id;
		for (const struct node *to = m->node; !is_end(to); to++) {
			char *end;

			t->distance[n->id][to->id] =
			    (uint8_t)strtoul(d, &end, 10);
			d = end;
		}
	}
	while (s != NULL) {
		uint64_t cpus[EDDY_MAX_CPUS / 64] = {0};

		parse(s, cpus);
		for (unsigned c = 0; c < EDDY_MAX_CPUS; c++)
			if ((cpus[c / 64] >> c % 64 & 1) != 0) {
				t->llc_of_cpu[c] = (uint16_t)t->n_llcs;
				t->node_of_llc[t->n_llcs] = t->node_of_cpu[c];
			}
		t->n_llcs++;
		s = strchr(s, ' ');
		s = s != NULL ? s + 1 : NULL;
	}
}

/* The placement in words, see struct machine. */
static const char *
describe(void)
{
	static char said[70000];
	const struct eddy_placement *p = place;
	size_t n = 0;

	for (unsigned h = 0; h < p->n_homes; h++) {
		unsigned count = 0;
		size_t first = n;

		for (unsigned c = 0; c < EDDY_MAX_CPUS; c++) {
			unsigned from = c;

			if (p->home_of_cpu[c] != h)
				continue;
			while (
			    c + 1 < EDDY_MAX_CPUS && p->home_of_cpu[c + 1] == h)
				c++;
			count += c - from + 1;
			n += (size_t)snprintf(said + n, sizeof said - n,
			    c > from ? "%s%u-%u" : "%s%u", n > first ? "," : "",
			    from, c);
		}
		if (count == EDDY_MAX_CPUS)
			n = first + (size_t)sprintf(said + first, "all");
		n += (size_t)snprintf(
		    said + n, sizeof said - n, "@%d ", p->node_of_home[h]);
	}
	said[n++] = '|';
	for (unsigned i = eddy_node_next(topo->online, 0); i < EDDY_MAX_NODES;
	     i = eddy_node_next(topo->online, i + 1))
		n += (size_t)snprintf(
		    said + n, sizeof said - n, "%u:%u ", i, p->home_of_node[i]);
	n -= said[n - 1] == ' ';
	(void)snprintf(said + n, sizeof said - n, "|%s%s%s %u",
	    p->bind ? "b" : "", p->interleave ? "i" : "", p->fake ? "f" : "",
	    p->n_nodes);
	return said;
}

/* I-PLACE-1 to 3; what was not online at the start is unknown. */
static bool
sound(void)
{
	const struct eddy_placement *p = place;

	if (p->n_homes < 1 || p->n_homes > EDDY_MAX_HOMES || p->n_nodes < 1 ||
	    p->n_nodes != eddy_node_count(p->has_memory))
		return false;
	for (unsigned h = 0; h < p->n_homes; h++)
		if (p->node_of_home[h] < 0 ||
		    !eddy_node_in(p->has_memory, (unsigned)p->node_of_home[h]))
			return false;
	for (unsigned i = 0; i < EDDY_MAX_NODES; i++)
		if (p->home_of_node[i] >= p->n_homes)
			return false;
	for (unsigned c = 0; c < EDDY_MAX_CPUS; c++) {
		bool known = p->home_of_cpu[c] < p->n_homes;

		if (!known && p->home_of_cpu[c] != EDDY_HOME_UNKNOWN)
			return false;
		if (p->n_homes == 1 && p->home_of_cpu[c] != 0)
			return false;
		if (p->n_homes > 1 &&
		    known != (topo->node_of_cpu[c] != EDDY_NODE_NONE))
			return false;
		if (known && eddy_placement_of_cpu(p, c) >= p->n_homes)
			return false;
	}
	return true;
}

static void
clean(void)
{
	memset(place, 0, sizeof *place);
}

static void
a_machine_is_placed(const struct machine *m)
{
	uint64_t allowed[EDDY_MAX_NODES / 64] = {0};
	bool held;

	build(m);
	clean();
	if (m->allowed != NULL)
		parse(m->allowed, allowed);
	eddy_placement_draw(place, topo, m->numa, m->home, m->pretend,
	    m->allowed != NULL ? allowed : NULL, m->policy);
	held = strcmp(describe(), m->want) == 0;
	if (!tap_ok(held && sound(), "%s", m->name)) {
		tap_diag("found  %s", describe());
		tap_diag("wanted %s", m->want);
	}
}

/* Any machine with up to 1024 nodes gives homes that are sound. */
static void
any_machine(void)
{
	uint64_t seed = tap.seed;
	unsigned n_wrong = 0;

	for (unsigned round = 0; round < 60; round++) {
		struct eddy_topology *t = topo;
		unsigned density = 1 + (unsigned)(tap_random(&seed) % 200);
		uint64_t allowed[EDDY_MAX_NODES / 64];
		enum eddy_opt_home home =
		    round % 2 == 0 ? EDDY_HOME_NODE : EDDY_HOME_LLC;

		memset(t, 0, sizeof *t);
		memset(t->node_of_cpu, 0xff, sizeof t->node_of_cpu);
		for (unsigned i = 0; i < EDDY_MAX_NODES; i++) {
			uint64_t bit = (uint64_t)1 << i % 64;
			uint64_t r = tap_random(&seed);

			if (r % density != 0 && i != 77)
				continue;
			t->n_nodes++;
			t->online[i / 64] |= bit;
			t->has_memory[i / 64] |=
			    (r >> 32 & 3) || i == 77 ? bit : 0;
			if ((r >> 34 & 3) == 0)
				continue;
			t->has_cpus[i / 64] |= bit;
			for (unsigned k = 0; k < 4; k++) {
				unsigned c = (unsigned)(tap_random(&seed) %
							EDDY_MAX_CPUS);

				if (t->node_of_cpu[c] != EDDY_NODE_NONE)
					continue;
				t->node_of_cpu[c] = (uint16_t)i;
				t->llc_of_cpu[c] = (uint16_t)t->n_llcs;
				t->node_of_llc[t->n_llcs++] = (uint16_t)i;
			}
		}
		for (unsigned i = 0; i < EDDY_MAX_NODES; i++)
			for (unsigned k = 0; k < EDDY_MAX_NODES; k += 8) {
				uint64_t r = tap_random(&seed);

				memcpy(&t->distance[i][k], &r, 8);
			}
		for (unsigned i = 0; i < EDDY_MAX_NODES / 64; i++)
			allowed[i] = tap_random(&seed);
		clean();
		eddy_placement_draw(
		    place, t, EDDY_NUMA_LOCAL, home, false, allowed, 0);
		n_wrong += !sound();
	}
	tap_ok(n_wrong == 0, "60 machines of chance have sound homes");
}

/* More domains than homes: every node has a home of its own, none too many. */
static void
more_than_homes(void)
{
	unsigned members[EDDY_MAX_HOMES] = {0};
	bool held;

	clean();
	(void)eddy_topology_fake(topo, "2x64x2");
	eddy_placement_draw(
	    place, topo, EDDY_NUMA_LOCAL, EDDY_HOME_LLC, true, NULL, 0);
	held = sound() && place->n_homes == EDDY_MAX_HOMES;
	for (unsigned c = 0; c < 256; c++) {
		unsigned h = place->home_of_cpu[c];

		members[h]++;
		held = held && place->home_of_cpu[c ^ 1] == h &&
		       place->node_of_home[h] == (int)(c / 128);
	}
	for (unsigned h = 0; h < EDDY_MAX_HOMES; h++)
		held = held && members[h] >= 2 && members[h] <= 6;
	tap_ok(held, "128 caches on 2 nodes share all homes, each on its node");

	clean();
	(void)eddy_topology_fake(topo, "80x1x2");
	eddy_placement_draw(
	    place, topo, EDDY_NUMA_LOCAL, EDDY_HOME_NODE, true, NULL, 0);
	memset(members, 0, sizeof members);
	held =
	    sound() && place->n_homes == EDDY_MAX_HOMES && place->n_nodes == 80;
	for (unsigned i = 0; i < 80; i++) {
		members[place->home_of_node[i]]++;
		held =
		    held && place->home_of_cpu[2 * i] == place->home_of_node[i];
		held = held &&
		       (i >= EDDY_MAX_HOMES || place->home_of_node[i] == i);
	}
	for (unsigned h = 0; h < EDDY_MAX_HOMES; h++)
		held = held && members[h] <= 2;
	tap_ok(held, "80 nodes share all homes, two at most each");

	clean();
	(void)eddy_topology_fake(topo, "1024x1x8");
	for (unsigned i = EDDY_MAX_HOMES; i < 1024; i++)
		topo->distance[i][EDDY_MAX_HOMES - 1] = 11;
	eddy_placement_draw(
	    place, topo, EDDY_NUMA_LOCAL, EDDY_HOME_NODE, false, NULL, 0);
	held = sound() && place->n_homes == EDDY_MAX_HOMES &&
	       place->n_nodes == 1024;
	for (unsigned i = 0; i < 1024; i++)
		held =
		    held && place->home_of_cpu[8 * i] ==
				(i < EDDY_MAX_HOMES ? i : EDDY_MAX_HOMES - 1);
	tap_ok(held, "1024 nodes: those beyond share the nearest home");

	clean();
	(void)eddy_topology_fake(topo, "70x2x1");
	eddy_placement_draw(
	    place, topo, EDDY_NUMA_LOCAL, EDDY_HOME_LLC, true, NULL, 0);
	held = sound() && place->n_homes == EDDY_MAX_HOMES;
	for (unsigned i = 0; i < EDDY_MAX_HOMES; i++)
		held = held && place->node_of_home[i] == (int)i;
	tap_ok(held, "70 nodes of two caches: homes on as many nodes");
}

/*
 * eddy_placement_find, from outside.
 */

static void
finds_fakes(void)
{
	clean();
	eddy_placement_find(place, EDDY_NUMA_LOCAL, EDDY_HOME_NODE, "3x2x1");
	tap_ok(place->n_homes == 3 && place->n_nodes == 3 && place->fake &&
		   !place->bind && place->topology_error == 0 &&
		   place->home_of_cpu[0] == 0 && place->home_of_cpu[3] == 1 &&
		   place->home_of_cpu[6 + 5] == 2,
	    "topology:3x2x1 has three homes, CPUs in turn");
	clean();
	eddy_placement_find(place, EDDY_NUMA_LOCAL, EDDY_HOME_LLC, "3x2x1");
	tap_ok(place->n_homes == 6 && place->n_nodes == 3 &&
		   place->home_of_cpu[5] == 5 && place->home_of_cpu[6] == 0,
	    "with home:llc it has six");
	clean();
	eddy_placement_find(
	    place, EDDY_NUMA_INTERLEAVE, EDDY_HOME_LLC, "3x2x1");
	tap_ok(place->n_homes == 1 && place->interleave && !place->bind,
	    "with numa:interleave one");
	clean();
	eddy_placement_find(place, EDDY_NUMA_OFF, EDDY_HOME_LLC, "3x2x1");
	tap_ok(place->n_homes == 1 && place->n_nodes == 1 && !place->fake &&
		   !place->interleave && !place->bind,
	    "numa:off: one home, whatever else is said");
	tree_reset();
	tree_put("devices/system/node/online", "1,7\n", 4);
	tree_put("devices/system/node/node1/cpulist", "0-8190\n", 7);
	tree_put("devices/system/node/node7/cpulist", "8191\n", 5);
	clean();
	eddy_placement_find(place, EDDY_NUMA_LOCAL, EDDY_HOME_NODE, tree_dir);
	tap_ok(place->n_homes == 2 && place->fake &&
		   place->node_of_home[0] == 1 && place->node_of_home[1] == 7 &&
		   place->home_of_cpu[0] == 0 &&
		   place->home_of_cpu[8191] == 1 && place->home_of_node[7] == 1,
	    "topology:/path is the tree there");
	clean();
	eddy_placement_find(
	    place, EDDY_NUMA_LOCAL, EDDY_HOME_LLC, "/does/not/exist");
	tap_ok(place->n_homes == 1 && place->n_nodes == 1 && place->fake &&
		   place->topology_error == 0,
	    "a path where nothing is: one home");
}

static void
finds_the_machine(void)
{
	static struct eddy_placement real;
	static const char *const bad[] = {"2x1", "two", "2x1x0", "9999x1x1"};
	bool held = true;

	eddy_placement_find(&real, EDDY_NUMA_LOCAL, EDDY_HOME_NODE, "");
	tap_diag("this machine: %u homes, %u nodes, %s", real.n_homes,
	    real.n_nodes, real.bind ? "bound" : "not bound");
	for (unsigned i = 0; i < N(bad); i++) {
		clean();
		eddy_placement_find(
		    place, EDDY_NUMA_LOCAL, EDDY_HOME_NODE, bad[i]);
		held = held && place->topology_error == -EINVAL;
		place->topology_error = 0;
		/* Offline CPUs are only told apart on several nodes. */
		held = held && memcmp(place, &real, sizeof real) == 0;
	}
	tap_ok(held, "a text that is no topology is the machine, and an error");
	clean();
	eddy_placement_find(place, EDDY_NUMA_LOCAL, EDDY_HOME_LLC, "");
	held = place->n_homes >= real.n_homes &&
	       place->n_homes <= EDDY_MAX_HOMES &&
	       place->n_nodes == real.n_nodes;
	tap_ok(held, "home:llc has %u homes here, home:node %u", place->n_homes,
	    real.n_homes);
}

/* On the CPU that this thread is on, and on others. */
static void
later_cpus(void)
{
	cpu_set_t all;
	cpu_set_t one;
	unsigned cpu = 0;
	unsigned node = 0;
	bool held;

	if (sched_getaffinity(0, sizeof all, &all) != 0) {
		tap_skip("CPUs that come later", "no affinity mask");
		return;
	}
	while (!CPU_ISSET(cpu, &all))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof one, &one) != 0 ||
	    syscall(SYS_getcpu, NULL, &node, NULL) != 0) {
		tap_skip("CPUs that come later", "cannot be pinned");
		return;
	}
	clean();
	place->n_homes = 5;
	memset(
	    place->home_of_cpu, EDDY_HOME_UNKNOWN, sizeof place->home_of_cpu);
	place->home_of_node[node] = 3;
	place->home_of_cpu[cpu + 1] = 4;
	held = eddy_placement_of_cpu(place, cpu) == 3 &&
	       place->home_of_cpu[cpu] == EDDY_HOME_UNKNOWN;
	tap_ok(held, "a CPU that came later has the home of its node");
	held =
	    eddy_placement_of_cpu(place, cpu + 2) == EDDY_HOME_UNKNOWN &&
	    eddy_placement_of_cpu(place, EDDY_MAX_CPUS) == EDDY_HOME_UNKNOWN &&
	    eddy_placement_of_cpu(place, UINT32_MAX) == EDDY_HOME_UNKNOWN;
	tap_ok(held, "of one that this thread is not on the home is not known");
	tap_ok(eddy_placement_of_cpu(place, cpu + 1) == 4,
	    "one that is known needs no kernel");
	(void)sched_setaffinity(0, sizeof all, &all);
}

/*
 * What finding costs: children that may do nothing else.
 */

static int
off_reads_nothing(void)
{
	static const int calls[] = {SYS_exit_group};

	if (!refuse(calls, N(calls), 0, true))
		return 77;
	eddy_placement_find(place, EDDY_NUMA_OFF, EDDY_HOME_LLC, "2x1x1");
	return place->n_homes == 1 && place->n_nodes == 1 ? 0 : 1;
}

static int
one_node_maps_nothing(void)
{
	static const int calls[] = {
	    SYS_openat, SYS_read, SYS_close, SYS_exit_group};

	if (!refuse(calls, N(calls), 0, true))
		return 77;
	eddy_placement_find(place, EDDY_NUMA_LOCAL, EDDY_HOME_NODE, "");
	return place->n_homes == 1 && place->n_nodes == 1 ? 0 : 1;
}

static int
no_files(void)
{
	static const int calls[] = {SYS_openat};
	bool held = true;

	if (!refuse(calls, N(calls), EPERM, false))
		return 77;
	for (unsigned i = 0; i < 4; i++) {
		memset(place, 0, sizeof *place);
		eddy_placement_find(place,
		    i % 2 == 0 ? EDDY_NUMA_LOCAL : EDDY_NUMA_INTERLEAVE,
		    i / 2 == 0 ? EDDY_HOME_NODE : EDDY_HOME_LLC, "");
		held = held && place->n_homes == 1 && place->n_nodes == 1 &&
		       !place->bind && place->node_of_home[0] == 0;
	}
	return held ? 0 : 1;
}

static int
no_mapping(void)
{
	static const int calls[] = {SYS_mmap};

	if (!refuse(calls, N(calls), ENOMEM, false))
		return 77;
	memset(place, 0, sizeof *place);
	eddy_placement_find(place, EDDY_NUMA_LOCAL, EDDY_HOME_NODE, "2x1x1");
	return place->n_homes == 1 && place->n_nodes == 1 ? 0 : 1;
}

static int
no_commit(void)
{
	static const int calls[] = {SYS_mprotect};

	if (!refuse(calls, N(calls), ENOMEM, false))
		return 77;
	memset(place, 0, sizeof *place);
	eddy_placement_find(place, EDDY_NUMA_LOCAL, EDDY_HOME_NODE, "2x1x1");
	return place->n_homes == 1 && place->n_nodes == 1 ? 0 : 1;
}

/* A tree in the place of /sys/devices/system, for this process alone. */
static bool
pretend_sys(void)
{
	char path[128];

	(void)snprintf(path, sizeof path, "%s/devices/system", tree_dir);
	return unshare(CLONE_NEWNS) == 0 &&
	       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount(path, "/sys/devices/system", NULL, MS_BIND, NULL) == 0;
}

static void
one_node_tree(const char *online)
{
	tree_reset();
	tree_put("devices/system/node/x", "", 0);
	tree_put("devices/system/cpu/x", "", 0);
	if (online != NULL)
		tree_put("devices/system/node/online", online, strlen(online));
}

static int
sys_without_nodes(void)
{
	static const int calls[] = {SYS_openat, SYS_exit_group};

	if (!pretend_sys() || !refuse(calls, N(calls), 0, true))
		return 77;
	eddy_placement_find(place, EDDY_NUMA_LOCAL, EDDY_HOME_NODE, "");
	return place->n_homes == 1 && place->node_of_home[0] == 0 ? 0 : 1;
}

static int
sys_with_node_7(void)
{
	static const int calls[] = {
	    SYS_openat, SYS_read, SYS_close, SYS_exit_group};

	if (!pretend_sys() || !refuse(calls, N(calls), 0, true))
		return 77;
	eddy_placement_find(place, EDDY_NUMA_LOCAL, EDDY_HOME_NODE, "");
	return place->n_homes == 1 && place->node_of_home[0] == 7 &&
		       place->has_memory[0] == 1u << 7
		   ? 0
		   : 1;
}

static int
sys_with_node_12(void)
{
	if (!pretend_sys())
		return 77;
	eddy_placement_find(place, EDDY_NUMA_LOCAL, EDDY_HOME_NODE, "");
	return place->n_homes == 1 && place->n_nodes == 1 &&
		       place->node_of_home[0] == 12 && !place->bind
		   ? 0
		   : 1;
}

/* The kernel here knows one of the nodes; asked nothing, both are homes. */
static int
sys_with_two_nodes(void)
{
	static const int calls[] = {SYS_get_mempolicy};

	if (!pretend_sys() || !refuse(calls, N(calls), EPERM, false))
		return 77;
	eddy_placement_find(place, EDDY_NUMA_LOCAL, EDDY_HOME_NODE, "");
	return place->n_homes == 2 && place->n_nodes == 2 && !place->bind &&
		       place->home_of_cpu[1] == 1 &&
		       place->home_of_cpu[2] == EDDY_HOME_UNKNOWN
		   ? 0
		   : 1;
}

static int
sys_with_two_caches(void)
{
	/* Of numactl, say: it would leave one home. */
	(void)syscall(SYS_set_mempolicy, 0, NULL, 0);
	if (!pretend_sys())
		return 77;
	eddy_placement_find(place, EDDY_NUMA_LOCAL, EDDY_HOME_LLC, "");
	return place->n_homes == 2 && place->n_nodes == 1 && !place->bind &&
		       place->home_of_cpu[0] == 0 && place->home_of_cpu[1] == 1
		   ? 0
		   : 1;
}

/* Whether /sys names one node, or none: what eddy_placement_find looks at. */
static bool
has_one_node(void)
{
	char text[16];
	int fd = open("/sys/devices/system/node/online", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof text) : 0;

	if (fd >= 0)
		(void)close(fd);
	return n <= 0 || (n == 2 && text[1] == '\n');
}

static void
child(const char *name, int (*body)(void))
{
	int ret;

	clean();
	ret = in_child(body);
	if (ret == 77)
		tap_skip(name, "no seccomp, or no mount namespace here");
	else if (!tap_ok(ret == 0, "%s", name))
		tap_diag("the child ended with %d", ret);
}

int
main(void)
{
	numa_begin(60);
	tree_begin();
	topo = guarded(sizeof *topo);
	place = guarded(sizeof *place);
	for (unsigned i = 0; i < N(machines); i++)
		a_machine_is_placed(&machines[i]);
	any_machine();
	more_than_homes();
	finds_fakes();
	finds_the_machine();
	later_cpus();
	child("numa:off makes no system call", off_reads_nothing);
	if (has_one_node())
		child("one node is learnt from one file, without a mapping",
		    one_node_maps_nothing);
	else
		tap_skip("one node is learnt from one file",
		    "this machine has several");
	child("where openat is refused there is one home", no_files);
	child("where mmap is refused there is one home", no_mapping);
	child("where mprotect is refused there is one home", no_commit);
	one_node_tree(NULL);
	child("/sys without nodes: one home, nothing else is looked at",
	    sys_without_nodes);
	one_node_tree("7\n");
	child("/sys with node 7 alone: one file", sys_with_node_7);
	one_node_tree("12\n");
	child("/sys with node 12 alone", sys_with_node_12);
	one_node_tree("0-1\n");
	tree_put("devices/system/node/node0/cpulist", "0\n", 2);
	tree_put("devices/system/node/node1/cpulist", "1\n", 2);
	child("/sys with two nodes: two homes", sys_with_two_nodes);
	one_node_tree("0\n");
	tree_put("devices/system/node/node0/cpulist", "0-1\n", 4);
	tree_put("devices/system/cpu/cpu0/cache/index0/level", "3\n", 2);
	tree_put(
	    "devices/system/cpu/cpu0/cache/index0/shared_cpu_list", "0\n", 2);
	tree_put("devices/system/cpu/cpu1/cache/index0/level", "3\n", 2);
	tree_put(
	    "devices/system/cpu/cpu1/cache/index0/shared_cpu_list", "1\n", 2);
	child("/sys with two caches: two homes with home:llc",
	    sys_with_two_caches);
	tree_end();
	return tap_end();
}
