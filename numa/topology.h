/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * topology.h - the machine: memory nodes, their CPUs, distances, caches.
 *
 * Layer     numa (L2); may include base, arch, os and the options (ctl_gen.h).
 * Progress  wait-free but for the kernel.
 * Memory    the caller's alone, some MiB of it: a scratch mapping, to be
 *           unmapped when the placement (placement.h) has been drawn from it.
 * Context   runs inside the first malloc: no static, no libc, 2 KiB of stack.
 *
 * Files are believed only when they are whole: a list or a row of numbers that
 * is cut, empty, out of order, too long or not a list counts as absent.  What
 * lies beyond the tables (node 1024, CPU 8192) is left out.
 *
 * Invariants
 *   I-TOPO-1  At least one node is online, at least one has memory.
 *   I-TOPO-2  A node with memory or with CPUs is online.
 *   I-TOPO-3  node_of_cpu is EDDY_NODE_NONE or an online node; of a CPU that
 *             has a node and if caches were read, llc_of_cpu is < n_llcs and
 *             that domain lies on the same node.
 */
#ifndef EDDY_TOPOLOGY_H
#define EDDY_TOPOLOGY_H

#include "lib/base/base.h"

#define EDDY_MAX_NODES 1024 /* what Linux can be built for */
#ifndef EDDY_MAX_CPUS
#	define EDDY_MAX_CPUS 8192 /* the same */
#endif

#define EDDY_NODE_NONE UINT16_MAX
#define EDDY_LLC_NONE  UINT16_MAX

/* Distances that hold where none can be read: to oneself, to others. */
#define EDDY_DISTANCE_LOCAL  10
#define EDDY_DISTANCE_REMOTE 20

/* Nodes are named by the kernel's ids throughout, holes included. */
struct eddy_topology {
	uint32_t n_nodes; /* online */
	uint32_t n_llcs;  /* 0: caches were not read */
	uint64_t online[EDDY_MAX_NODES / 64];
	uint64_t has_memory[EDDY_MAX_NODES / 64];
	uint64_t has_cpus[EDDY_MAX_NODES / 64];
	uint16_t node_of_cpu[EDDY_MAX_CPUS];
	/* Last-level-cache domains, numbered by their lowest CPU; one that
	 * spans nodes counts as one domain a node. */
	uint16_t llc_of_cpu[EDDY_MAX_CPUS];
	uint16_t node_of_llc[EDDY_MAX_CPUS];
	/* [from][to], as the firmware states them; rows of online nodes. */
	uint8_t distance[EDDY_MAX_NODES][EDDY_MAX_NODES];
	/*
	 * Scratch of the reader and of eddy_placement_draw: the file at hand,
	 * the CPUs of a list, a node's domain of CPUs without caches; what was
	 * counted of a node, the home of a domain.
	 */
	char text[65536];
	uint64_t cpus[EDDY_MAX_CPUS / 64];
	uint16_t bare_llc_of_node[EDDY_MAX_NODES];
	uint16_t n_of_node[EDDY_MAX_NODES];
	uint8_t home_of_llc[EDDY_MAX_CPUS];
};

/*
 * eddy_topology_read - the topology that the tree at root states.
 *
 * root     "/sys", or a directory like it.
 * llc      whether to read the caches of the CPUs as well.
 * Returns: 0; -ENOENT when no list of nodes could be read, and then *t is one
 *          node 0 with memory and the online CPUs, if these could be read.
 */
int eddy_topology_read(struct eddy_topology *t, const char *root, bool llc);

/*
 * eddy_topology_fake - the topology that the option of that name states.
 *
 * text     "NxLxC": N nodes of L last-level caches of C CPUs each, numbered in
 *          order; a CPU beyond lies where its number modulo N * L * C does.
 *          "/path": what eddy_topology_read finds there, with caches.
 * Returns: 0; -EINVAL when text is neither, *t is then undefined; -ENOENT as
 *          above.
 */
int eddy_topology_fake(struct eddy_topology *t, const char *text);

/* Sets of nodes are bits by id. */
static inline bool
eddy_node_in(const uint64_t *set, unsigned node)
{
	return node < EDDY_MAX_NODES && (set[node / 64] >> node % 64 & 1) != 0;
}

/* The smallest member that is >= from, or EDDY_MAX_NODES. */
static inline unsigned
eddy_node_next(const uint64_t *set, unsigned from)
{
	while (from < EDDY_MAX_NODES) {
		uint64_t w = set[from / 64] >> from % 64;

		if (w != 0)
			return from + eddy_ctz64(w);
		from = (from / 64 + 1) * 64;
	}
	return EDDY_MAX_NODES;
}

static inline unsigned
eddy_node_count(const uint64_t *set)
{
	unsigned n = 0;

	for (unsigned i = 0; i < EDDY_MAX_NODES / 64; i++)
		n += (unsigned)__builtin_popcountll(set[i]);
	return n;
}

#endif /* EDDY_TOPOLOGY_H */
