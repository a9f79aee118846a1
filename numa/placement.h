/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * placement.h - homes: how many there are, whose CPUs they serve, where their
 * memory lies.
 *
 * Layer     numa (L2); may include base, arch, os and the options (ctl_gen.h).
 * Progress  wait-free but for the kernel.
 * Memory    struct eddy_placement is the caller's; W: eddy_placement_find,
 *           before the heap is published; R: any CPU; O: that of the heap
 *           (HEAP-R1 -> HEAP-A1), constant afterwards.
 * Context   runs inside the first malloc: no static, no libc, 2 KiB of stack.
 *
 * A home is a node with memory and CPUs, or with home:llc a last-level-cache
 * domain.  A CPU whose node has no memory belongs to the nearest home.  A node
 * with memory alone is nobody's home; arenas may be bound to it.
 *
 * Invariants
 *   I-PLACE-1  Every home number handed out is < n_homes or
 *              EDDY_HOME_UNKNOWN, whatever the machine says.
 *   I-PLACE-2  node_of_home is a node of has_memory.
 *   I-PLACE-3  With one home, home_of_cpu is 0 throughout.
 */
#ifndef EDDY_PLACEMENT_H
#define EDDY_PLACEMENT_H

#include "lib/base/base.h"
#include "lib/ctl/ctl_gen.h" /* EDDY_NUMA_LOCAL ..., EDDY_HOME_NODE ... */
#include "numa/topology.h"

/* So many that their rows fit into a slot. */
#define EDDY_MAX_HOMES    (EDDY_LG_QUANTUM == 3 ? 55 : 62)
#define EDDY_HOME_UNKNOWN 255

struct eddy_placement {
	uint32_t n_homes; /* >= 1 */
	uint32_t n_nodes; /* with memory, >= 1 */
	/* Whether memory is bound at all: several nodes have memory, they are
	 * no fake, and the process has no memory policy of its own. */
	bool bind;
	bool interleave; /* spread what is bound over has_memory */
	bool fake;       /* node ids are not the kernel's */
	/* 0, or -EINVAL: the text of option topology is none, and the machine's
	 * own holds instead. */
	int topology_error;
	/* Kernel's id of the node that a home's memory shall lie on. */
	int16_t node_of_home[EDDY_MAX_HOMES];
	/* EDDY_HOME_UNKNOWN: was not online at the start. */
	uint8_t home_of_cpu[EDDY_MAX_CPUS];
	/* By kernel's id, of every node: its own or the nearest home. */
	uint8_t home_of_node[EDDY_MAX_NODES];
	/* By kernel's id. */
	uint64_t has_memory[EDDY_MAX_NODES / 64];
};

/*
 * eddy_placement_find - reads the machine and draws its homes.
 *
 * Pre:      *p is zero (a fresh mapping): one home then writes a few words.
 * numa      local: as above.  interleave: one home.  off: one home, and
 *           nothing is read.
 * topology  the option of that name; "" for the machine's own.
 *
 * Never fails: what cannot be read means one home and no binding.  A process
 * that has a memory policy (numactl, inherited) has one home, unbound.  Where
 * the kernel refuses to tell or to bind (seccomp), homes are told apart and
 * the pages lie where they are touched first.  Nodes that the cpuset of the
 * process does not allow at the start are no homes.
 */
void eddy_placement_find(struct eddy_placement *p, enum eddy_opt_numa numa,
    enum eddy_opt_home home, const char *topology);

/*
 * eddy_placement_draw - the part of it that asks nobody: homes from facts.
 *
 * Pre:     *p is zero; numa is not off.
 * allowed  nodes that the cpuset allows; NULL when that is not known.
 * policy   eddy_policy_of_process().
 */
void eddy_placement_draw(struct eddy_placement *p, struct eddy_topology *t,
    enum eddy_opt_numa numa, enum eddy_opt_home home, bool fake,
    const uint64_t *allowed, int policy);

/*
 * eddy_placement_of_cpu - home of a CPU.
 *
 * For one that came online later (or lies beyond the table) the kernel is
 * asked, if the calling thread runs there; else it is EDDY_HOME_UNKNOWN.  The
 * answer is not kept: the table stays constant and free of orders, and a CPU's
 * slot asks once.
 */
unsigned eddy_placement_of_cpu(const struct eddy_placement *p, unsigned cpu);

#endif /* EDDY_PLACEMENT_H */
