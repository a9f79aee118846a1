/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "numa/topology.h"

/* A number from 1 to max, and what follows it in *s; 0 if there is none. */
static unsigned
take_count(const char **s, unsigned max)
{
	unsigned v = 0;

	for (; **s >= '0' && **s <= '9'; (*s)++) {
		v = v * 10 + (unsigned)(**s - '0');
		if (v > max)
			return 0;
	}
	return v;
}

static bool
take_x(const char **s)
{
	return *(*s)++ == 'x';
}

static void
fake(struct eddy_topology *t, unsigned n_nodes, unsigned llcs_of_node,
    unsigned cpus_of_llc)
{
	t->n_nodes = n_nodes;
	t->n_llcs = n_nodes * llcs_of_node;
	for (unsigned i = 0; i < EDDY_MAX_NODES / 64; i++)
		t->online[i] = 0;
	for (unsigned i = 0; i < n_nodes; i++) {
		t->online[i / 64] |= (uint64_t)1 << i % 64;
		for (unsigned k = 0; k < n_nodes; k++)
			t->distance[i][k] =
			    k == i ? EDDY_DISTANCE_LOCAL : EDDY_DISTANCE_REMOTE;
	}
	for (unsigned i = 0; i < EDDY_MAX_NODES / 64; i++)
		t->has_memory[i] = t->has_cpus[i] = t->online[i];
	for (unsigned llc = 0; llc < t->n_llcs; llc++)
		t->node_of_llc[llc] = (uint16_t)(llc / llcs_of_node);
	for (unsigned cpu = 0; cpu < EDDY_MAX_CPUS; cpu++) {
		unsigned llc = cpu / cpus_of_llc % t->n_llcs;

		t->llc_of_cpu[cpu] = (uint16_t)llc;
		t->node_of_cpu[cpu] = t->node_of_llc[llc];
	}
}

int
eddy_topology_fake(struct eddy_topology *t, const char *text)
{
	unsigned n;
	unsigned l;
	unsigned c;

	if (*text == '/')
		return eddy_topology_read(t, text, true);
	n = take_count(&text, EDDY_MAX_NODES);
	if (n == 0 || !take_x(&text))
		return -EINVAL;
	l = take_count(&text, EDDY_MAX_CPUS / n);
	if (l == 0 || !take_x(&text))
		return -EINVAL;
	c = take_count(&text, EDDY_MAX_CPUS / (n * l));
	if (c == 0 || *text != '\0')
		return -EINVAL;
	fake(t, n, l, c);
	return 0;
}
