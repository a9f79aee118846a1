/* SPDX-License-Identifier: BSD-2-Clause */
#include "numa/policy.h"

#include <errno.h>
#include <linux/mempolicy.h>

#include "lib/arch/syscall.h"
#include "lib/os/os.h"
#include "numa/topology.h"

/* Linux 5.15; an enumerator, so that no #ifdef finds it in older headers. */
enum { PREFERRED_MANY = 5 };

enum { SET_WORDS = EDDY_MAX_NODES / 64 };

/* The kernel takes the number of bits plus one. */
enum { MAX_NODE_ARGUMENT = EDDY_MAX_NODES + 1 };

static int
set_policy(void *p, size_t size, int mode, const uint64_t *nodes, int flags)
{
	size_t page = eddy_os_page_size();
	uintptr_t at = eddy_align_up((uintptr_t)p, page);
	uintptr_t end = eddy_align_down((uintptr_t)p + size, page);

	if (at < (uintptr_t)p || (uintptr_t)p + size < (uintptr_t)p)
		return -EINVAL;
	if (end <= at)
		return 0;
	return (int)eddy_syscall(SYS_mbind, at, end - at, mode, nodes,
	    nodes != NULL ? MAX_NODE_ARGUMENT : 0, flags);
}

/*
 * A node that is full falls back to others instead of killing the process.
 * Static: the node is still meant when the cpuset of the process changes, and
 * holds again once the cpuset allows it again.
 */
static int
prefer(void *p, size_t size, unsigned node, int flags)
{
	uint64_t nodes[SET_WORDS] = {0};
	int err;

	if (node >= EDDY_MAX_NODES)
		return -EINVAL;
	nodes[node / 64] = (uint64_t)1 << node % 64;
	err = set_policy(
	    p, size, PREFERRED_MANY | MPOL_F_STATIC_NODES, nodes, flags);
	/* A mode that the kernel does not know, or a node. */
	if (err == -EINVAL)
		err = set_policy(p, size, MPOL_PREFERRED | MPOL_F_STATIC_NODES,
		    nodes, flags);
	return err;
}

int
eddy_policy_bind(void *p, size_t size, unsigned node)
{
	return prefer(p, size, node, 0);
}

int
eddy_policy_move(void *p, size_t size, unsigned node)
{
	return prefer(p, size, node, MPOL_MF_MOVE);
}

int
eddy_policy_interleave(void *p, size_t size, const uint64_t *nodes)
{
	return set_policy(
	    p, size, MPOL_INTERLEAVE | MPOL_F_STATIC_NODES, nodes, 0);
}

int
eddy_policy_reset(void *p, size_t size)
{
	return set_policy(p, size, MPOL_DEFAULT, NULL, 0);
}

int
eddy_policy_of_process(void)
{
	int mode = 0;
	int err =
	    (int)eddy_syscall(SYS_get_mempolicy, &mode, NULL, 0, NULL, 0, 0);

	return err != 0 ? err : mode;
}

int
eddy_policy_nodes_allowed(uint64_t *nodes)
{
	uint64_t got[SET_WORDS] = {0};
	int err = (int)eddy_syscall(SYS_get_mempolicy, NULL, got,
	    MAX_NODE_ARGUMENT, NULL, MPOL_F_MEMS_ALLOWED, 0);

	if (err != 0)
		return err;
	for (unsigned i = 0; i < SET_WORDS; i++)
		nodes[i] = got[i];
	return 0;
}

int
eddy_policy_nodes_of(void *const *pages, int *nodes, size_t n)
{
	/* The calling process; no target nodes: a question. */
	return (int)eddy_syscall(SYS_move_pages, 0, n, pages, NULL, nodes, 0);
}
