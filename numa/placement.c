/* SPDX-License-Identifier: BSD-2-Clause */
#include "numa/placement.h"

#include <errno.h>

#include "lib/arch/syscall.h"
#include "lib/os/os.h"
#include "numa/policy.h"

static_assert(EDDY_MAX_HOMES <= EDDY_HOME_UNKNOWN, "no home is unknown");
static_assert(EDDY_MAX_NODES <= INT16_MAX, "a node fits node_of_home");

/* A node is nearest to itself, whatever its firmware says. */
static unsigned
distance(const struct eddy_topology *t, unsigned from, unsigned to)
{
	return from == to ? 0 : t->distance[from][to];
}

/* The nearest member of a set that is not empty; the lowest of several. */
static unsigned
nearest(const struct eddy_topology *t, const uint64_t *set, unsigned from)
{
	unsigned best = eddy_node_next(set, 0);

	for (unsigned n = best; n < EDDY_MAX_NODES;
	     n = eddy_node_next(set, n + 1))
		if (distance(t, from, n) < distance(t, from, best))
			best = n;
	return best;
}

/*
 * nearest_home - the home whose CPUs are nearest to a node; the turn-th, in
 * turns, where several are.
 *
 * at: of each home, the node that its CPUs are on.
 */
static unsigned
nearest_home(const struct eddy_placement *p, const struct eddy_topology *t,
    const uint16_t *at, unsigned from, unsigned turn)
{
	unsigned best = 0;
	unsigned n_best = 0;

	for (unsigned h = 0; h < p->n_homes; h++) {
		if (distance(t, from, at[h]) < distance(t, from, at[best])) {
			best = h;
			n_best = 0;
		}
		n_best +=
		    distance(t, from, at[h]) == distance(t, from, at[best]);
	}
	for (unsigned h = best, k = turn % n_best;; h++) {
		if (distance(t, from, at[h]) != distance(t, from, at[best]))
			continue;
		if (k-- == 0)
			return h;
	}
}

/* A home for the CPUs of a node. */
static void
add_home(struct eddy_placement *p, const struct eddy_topology *t,
    const uint64_t *memory, uint16_t *at, unsigned node)
{
	unsigned h = p->n_homes++;

	at[h] = (uint16_t)node;
	p->node_of_home[h] = (int16_t)nearest(t, memory, node);
}

/* Homes are the nodes with memory and CPUs, as many as there can be. */
static void
draw_nodes(struct eddy_placement *p, const struct eddy_topology *t,
    const uint64_t *memory, uint16_t *at)
{
	uint64_t homes[EDDY_MAX_NODES / 64];
	uint64_t any = 0;

	for (unsigned i = 0; i < EDDY_MAX_NODES / 64; i++)
		any |= homes[i] = memory[i] & t->has_cpus[i];
	/* No node has both: the nodes that memory will come from. */
	for (unsigned n = eddy_node_next(t->has_cpus, 0);
	     any == 0 && n < EDDY_MAX_NODES;
	     n = eddy_node_next(t->has_cpus, n + 1)) {
		unsigned m = nearest(t, memory, n);

		homes[m / 64] |= (uint64_t)1 << m % 64;
	}
	for (unsigned n = eddy_node_next(homes, 0);
	     n < EDDY_MAX_NODES && p->n_homes < EDDY_MAX_HOMES;
	     n = eddy_node_next(homes, n + 1))
		add_home(p, t, memory, at, n);
}

/*
 * Homes are the last-level-cache domains.  Where there are too many, each node
 * has its first before any has its second.
 */
static void
draw_llcs(struct eddy_placement *p, struct eddy_topology *t,
    const uint64_t *memory, uint16_t *at)
{
	unsigned n = 0;

	for (unsigned d = 0; d < t->n_llcs; d++)
		t->home_of_llc[d] = EDDY_HOME_UNKNOWN;
	for (unsigned round = 0; n < t->n_llcs && n < EDDY_MAX_HOMES; round++) {
		for (unsigned i = 0; i < EDDY_MAX_NODES; i++)
			t->n_of_node[i] = 0;
		for (unsigned d = 0; d < t->n_llcs && n < EDDY_MAX_HOMES; d++)
			if (t->n_of_node[t->node_of_llc[d]]++ == round) {
				t->home_of_llc[d] = 0;
				n++;
			}
	}
	for (unsigned d = 0; d < t->n_llcs; d++)
		if (t->home_of_llc[d] != EDDY_HOME_UNKNOWN) {
			t->home_of_llc[d] = (uint8_t)p->n_homes;
			add_home(p, t, memory, at, t->node_of_llc[d]);
		}
	/* The rest share, in turns. */
	for (unsigned d = 0; d < t->n_llcs; d++) {
		unsigned node = t->node_of_llc[d];

		if (t->home_of_llc[d] == EDDY_HOME_UNKNOWN)
			t->home_of_llc[d] = (uint8_t)nearest_home(
			    p, t, at, node, t->n_of_node[node]++);
	}
}

/* Which home serves whom, once the homes are there. */
static void
draw_members(struct eddy_placement *p, const struct eddy_topology *t,
    const uint16_t *at, bool by_llc)
{
	unsigned turn = 0;

	for (unsigned n = eddy_node_next(t->online, 0); n < EDDY_MAX_NODES;
	     n = eddy_node_next(t->online, n + 1)) {
		unsigned h = nearest_home(p, t, at, n, 0);

		/* Several guests as near do not crowd one home. */
		if (at[h] != n && eddy_node_in(t->has_cpus, n))
			h = nearest_home(p, t, at, n, turn++);
		p->home_of_node[n] = (uint8_t)h;
	}
	for (unsigned c = 0; c < EDDY_MAX_CPUS; c++) {
		unsigned node = t->node_of_cpu[c];

		if (node == EDDY_NODE_NONE)
			p->home_of_cpu[c] = EDDY_HOME_UNKNOWN;
		else
			p->home_of_cpu[c] =
			    by_llc ? t->home_of_llc[t->llc_of_cpu[c]]
				   : p->home_of_node[node];
	}
}

static void
one_home(struct eddy_placement *p, unsigned node)
{
	p->n_homes = 1;
	p->node_of_home[0] = (int16_t)node;
}

void
eddy_placement_draw(struct eddy_placement *p, struct eddy_topology *t,
    enum eddy_opt_numa numa, enum eddy_opt_home home, bool fake,
    const uint64_t *allowed, int policy)
{
	uint16_t at[EDDY_MAX_HOMES];
	uint64_t memory[EDDY_MAX_NODES / 64];
	uint64_t any = 0;
	bool by_llc = home == EDDY_HOME_LLC && t->n_llcs > 0;

	for (unsigned i = 0; i < EDDY_MAX_NODES / 64; i++) {
		p->has_memory[i] = t->has_memory[i];
		memory[i] = allowed != NULL ? t->has_memory[i] & allowed[i]
					    : t->has_memory[i];
		any |= memory[i];
	}
	for (unsigned i = 0; any == 0 && i < EDDY_MAX_NODES / 64; i++)
		memory[i] = t->has_memory[i];
	p->n_nodes = eddy_node_count(p->has_memory);
	p->fake = fake;
	p->interleave = numa == EDDY_NUMA_INTERLEAVE && p->n_nodes > 1;
	p->bind = !fake && policy == 0 && eddy_node_count(memory) > 1;
	p->n_homes = 0;
	if (!p->interleave && policy <= 0) {
		if (by_llc)
			draw_llcs(p, t, memory, at);
		else
			draw_nodes(p, t, memory, at);
	}
	if (p->n_homes > 1)
		draw_members(p, t, at, by_llc);
	else if (p->n_homes == 0)
		one_home(p, eddy_node_next(memory, 0));
}

/*
 * Whether the kernel names one node, or none at all, without a mapping.  Two
 * bytes tell, in one read; a single node from 10 on takes the long way.
 */
static bool
has_one_node(unsigned *ret_node)
{
	char buf[2];
	ssize_t n = eddy_os_read_file(
	    "/sys/devices/system/node/online", buf, sizeof(buf));

	*ret_node = 0;
	if (n <= 0)
		return true;
	if (n < 2 || buf[0] < '0' || buf[0] > '9' || buf[1] != '\n')
		return false;
	*ret_node = (unsigned)(buf[0] - '0');
	return true;
}

/* The homes of the machine itself. */
static void
find_real(struct eddy_placement *p, struct eddy_topology *t,
    enum eddy_opt_numa numa, enum eddy_opt_home home)
{
	uint64_t allowed[EDDY_MAX_NODES / 64];
	bool llc = home == EDDY_HOME_LLC && numa == EDDY_NUMA_LOCAL;
	int err;

	(void)eddy_topology_read(t, "/sys", llc);
	err = eddy_policy_nodes_allowed(allowed);
	eddy_placement_draw(p, t, numa, home, false, err == 0 ? allowed : NULL,
	    eddy_policy_of_process());
}

void
eddy_placement_find(struct eddy_placement *p, enum eddy_opt_numa numa,
    enum eddy_opt_home home, const char *topology)
{
	bool small = topology[0] == '\0' &&
		     (home == EDDY_HOME_NODE || numa != EDDY_NUMA_LOCAL);
	struct eddy_topology *t;
	unsigned node = 0;

	if (numa == EDDY_NUMA_OFF || (small && has_one_node(&node))) {
		one_home(p, node);
		p->n_nodes = 1;
		p->has_memory[0] = (uint64_t)1 << node;
		return;
	}
	t = eddy_os_reserve(sizeof(*t));
	if (t != NULL && eddy_os_commit(t, sizeof(*t)) == 0) {
		if (topology[0] != '\0' &&
		    eddy_topology_fake(t, topology) != -EINVAL) {
			eddy_placement_draw(p, t, numa, home, true, NULL, 0);
		} else {
			find_real(p, t, numa, home);
			p->topology_error = topology[0] != '\0' ? -EINVAL : 0;
		}
	} else {
		one_home(p, 0);
		p->n_nodes = 1;
		p->has_memory[0] = 1;
	}
	if (t != NULL)
		eddy_os_unmap(t, sizeof(*t));
}

unsigned
eddy_placement_of_cpu(const struct eddy_placement *p, unsigned cpu)
{
	unsigned at_cpu = 0;
	unsigned at_node = 0;

	if (cpu < EDDY_MAX_CPUS && p->home_of_cpu[cpu] != EDDY_HOME_UNKNOWN)
		return p->home_of_cpu[cpu];
	if (eddy_syscall(SYS_getcpu, &at_cpu, &at_node, NULL, 0, 0, 0) != 0 ||
	    at_cpu != cpu || at_node >= EDDY_MAX_NODES)
		return EDDY_HOME_UNKNOWN;
	return p->home_of_node[at_node];
}
