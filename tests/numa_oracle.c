/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * numa_oracle.c - the machine as libnuma sees it and as eddy does.
 *
 * libnuma reads the same kernel with other code.  The library does not use it:
 * this test alone links it.
 */
#include "tests/numa_tree.h"

#if EDDY_HAVE_LIBNUMA

#	include <numa.h>
#	include <numaif.h>

#	include "numa/placement.h"
#	include "numa/policy.h"

static struct eddy_topology *topo;

static void
nodes_agree(unsigned n_ids)
{
	bool online = true;
	bool memory = true;
	unsigned n_memory = 0;

	for (unsigned i = 0; i < n_ids; i++) {
		bool has = numa_node_size64((int)i, NULL) > 0;

		n_memory += has;
		online = online &&
			 eddy_node_in(topo->online, i) ==
			     (numa_bitmask_isbitset(numa_nodes_ptr, i) != 0);
		memory = memory && eddy_node_in(topo->has_memory, i) == has;
	}
	online =
	    online && eddy_node_next(topo->online, n_ids) == EDDY_MAX_NODES;
	tap_ok(online, "the same nodes are online: %u", topo->n_nodes);
	tap_ok(memory && n_memory == eddy_node_count(topo->has_memory),
	    "the same have memory: %u", n_memory);
}

static void
cpus_agree(unsigned n_ids)
{
	struct bitmask *mask = numa_allocate_cpumask();
	unsigned n = 0;
	bool held = true;

	for (unsigned i = 0; i < n_ids; i++) {
		if (!eddy_node_in(topo->online, i))
			continue;
		held = held && numa_node_to_cpus((int)i, mask) == 0;
		for (unsigned c = 0; c < EDDY_MAX_CPUS; c++) {
			bool here = c < mask->size &&
				    numa_bitmask_isbitset(mask, c) != 0;

			n += here;
			held = held && here == (topo->node_of_cpu[c] == i);
		}
	}
	numa_free_cpumask(mask);
	tap_ok(held && n > 0, "each node has the same CPUs, %u in all", n);
}

static void
distances_agree(unsigned n_ids)
{
	bool held = true;

	for (unsigned i = 0; i < n_ids; i++)
		for (unsigned k = 0; k < n_ids; k++)
			held = held && (!eddy_node_in(topo->online, i) ||
					   !eddy_node_in(topo->online, k) ||
					   topo->distance[i][k] ==
					       numa_distance((int)i, (int)k));
	tap_ok(held, "distances are the same");
}

static void
homes_agree(void)
{
	static struct eddy_placement place;
	bool held = true;

	eddy_placement_find(&place, EDDY_NUMA_LOCAL, EDDY_HOME_NODE, "");
	for (unsigned c = 0; place.n_homes > 1 && c < EDDY_MAX_CPUS; c++) {
		int node = topo->node_of_cpu[c] == EDDY_NODE_NONE
			       ? -1
			       : numa_node_of_cpu((int)c);

		if (node >= 0 && numa_node_size64(node, NULL) > 0)
			held = held &&
			       place.node_of_home[place.home_of_cpu[c]] == node;
	}
	tap_ok(held, "a CPU's home lies on its node: %u homes", place.n_homes);
}

static void
cpuset_agrees(void)
{
	uint64_t nodes[EDDY_MAX_NODES / 64];
	struct bitmask *mask = numa_get_mems_allowed();
	bool held = eddy_policy_nodes_allowed(nodes) == 0;

	for (unsigned i = 0; i < EDDY_MAX_NODES && i < mask->size; i++)
		held = held && eddy_node_in(nodes, i) ==
				   (numa_bitmask_isbitset(mask, i) != 0);
	numa_free_nodemask(mask);
	tap_ok(held, "the cpuset allows the same nodes");
}

static void
pages_agree(unsigned n_ids)
{
	enum { N_PAGES = 16 };

	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint64_t allowed[EDDY_MAX_NODES / 64] = {0};
	bool bound = eddy_policy_nodes_allowed(allowed) == 0;
	bool same = true;

	for (unsigned i = 0; i < n_ids; i++) {
		char *p = mmap(NULL, N_PAGES * page, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		void *ask[N_PAGES];
		int ours[N_PAGES];
		int theirs[N_PAGES];
		bool has = eddy_node_in(topo->has_memory, i) &&
			   eddy_node_in(allowed, i);
		int err;

		if (p == MAP_FAILED)
			tap_bail("no memory");
		err = eddy_policy_bind(p, N_PAGES * page, i);
		bound = bound && (err == 0) == has;
		for (unsigned k = 0; k < N_PAGES; k++) {
			ask[k] = p + k * page;
			if (k % 2 == 0)
				p[k * page] = 1;
		}
		same = same && eddy_policy_nodes_of(ask, ours, N_PAGES) == 0 &&
		       numa_move_pages(0, N_PAGES, ask, NULL, theirs, 0) == 0 &&
		       memcmp(ours, theirs, sizeof ours) == 0;
		for (unsigned k = 0; has && k < N_PAGES; k += 2)
			bound = bound && ours[k] == (int)i;
		(void)munmap(p, N_PAGES * page);
	}
	tap_ok(bound, "pages that are bound to a node lie there");
	tap_ok(same, "libnuma finds the same pages on the same nodes");
}

int
main(void)
{
	unsigned n_ids;

	numa_begin(60);
	if (numa_available() < 0)
		tap_skip_all("this kernel has no NUMA, libnuma says");
	n_ids = (unsigned)numa_max_node() + 1;
	topo = guarded(sizeof *topo);
	tap_ok(eddy_topology_read(topo, "/sys", true) == 0,
	    "the kernel's topology is read");
	nodes_agree(n_ids);
	cpus_agree(n_ids);
	distances_agree(n_ids);
	homes_agree();
	cpuset_agrees();
	pages_agree(n_ids);
	return tap_end();
}

#else

int
main(void)
{
	tap_skip_all("configure found no libnuma");
}

#endif
