/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * numa_policy.c - memory policies, as far as one node shows them: ranges,
 * errors, and what stays whole when the kernel refuses.
 */
#include "tests/numa_tree.h"

#include <linux/mempolicy.h>
#include <sched.h>

#include "numa/policy.h"
#include "numa/topology.h"

#define PAGES 8

static size_t page;
static unsigned node;   /* one with memory */
static unsigned absent; /* one that is not online */
static struct eddy_topology *topo;

/* Fresh pages, none of them touched. */
static char *
fresh(void)
{
	char *p = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		tap_bail("no memory");
	/* Policies tell pages apart, huge ones would hide that. */
	(void)madvise(p, PAGES * page, MADV_NOHUGEPAGE);
	return p;
}

static void
done(char *p)
{
	(void)munmap(p, PAGES * page);
}

/* Mode of the VMA at p without its flags, and the nodes of it. */
static int
mode_at(const char *p, uint64_t *nodes)
{
	int mode = -1;

	memset(nodes, 0, EDDY_MAX_NODES / 8);
	if (syscall(SYS_get_mempolicy, &mode, nodes, EDDY_MAX_NODES + 1, p,
		MPOL_F_ADDR) != 0)
		return -errno;
	return mode & ~MPOL_MODE_FLAGS;
}

/* Whether the page at p prefers that node, or nothing if it is none. */
static bool
prefers(const char *p, unsigned n)
{
	uint64_t nodes[EDDY_MAX_NODES / 64];
	int mode = mode_at(p, nodes);

	if (n == EDDY_MAX_NODES)
		return mode == MPOL_DEFAULT;
	return (mode == MPOL_PREFERRED || mode == 5 /* preferred-many */) &&
	       eddy_node_in(nodes, n) && eddy_node_count(nodes) == 1;
}

static bool
filled(const char *p, size_t n, char with)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] != with)
			return false;
	return true;
}

static void
binding(void)
{
	char *p = fresh();
	int where[2] = {-1, 0};
	void *ask[2] = {p + 2 * page, p + 3 * page};
	uint64_t nodes[EDDY_MAX_NODES / 64];

	tap_ok(eddy_policy_bind(p + 2 * page, 3 * page, node) == 0 &&
		   prefers(p + 2 * page, node) && prefers(p + 4 * page, node) &&
		   prefers(p + page, EDDY_MAX_NODES) &&
		   prefers(p + 5 * page, EDDY_MAX_NODES),
	    "a range prefers the node, its neighbours do not");
	p[2 * page] = 1;
	tap_ok(eddy_policy_nodes_of(ask, where, 2) == 0 &&
		   where[0] == (int)node && where[1] < 0,
	    "a touched page lies there, an untouched one nowhere");
	tap_ok(eddy_policy_bind(p + 5 * page + 1, 2 * page - 1, node) == 0 &&
		   prefers(p + 5 * page, EDDY_MAX_NODES) &&
		   prefers(p + 6 * page, node) &&
		   prefers(p + 7 * page, EDDY_MAX_NODES),
	    "a range is rounded inwards to whole pages");
	tap_ok(eddy_policy_bind(p + 7 * page, page - 1, node) == 0 &&
		   eddy_policy_bind(p + 7 * page + 1, page - 1, node) == 0 &&
		   eddy_policy_bind(p + 7 * page, 0, node) == 0 &&
		   eddy_policy_bind(p + 7 * page + 1, 5, node) == 0 &&
		   eddy_policy_bind(p + page / 2, page, absent) == 0 &&
		   prefers(p + 7 * page, EDDY_MAX_NODES),
	    "less than a page is nothing to do");
	tap_ok(eddy_policy_reset(p, PAGES * page) == 0 &&
		   prefers(p + 2 * page, EDDY_MAX_NODES) &&
		   prefers(p + 6 * page, EDDY_MAX_NODES),
	    "a reset leaves no policy");
	p[0] = p[page] = 7;
	tap_ok(eddy_policy_move(p, 2 * page, node) == 0 && prefers(p, node) &&
		   prefers(p + page, node) && p[0] == 7 && p[page] == 7,
	    "a move keeps what is there and binds the rest");
	memset(nodes, 0, sizeof nodes);
	nodes[node / 64] |= (uint64_t)1 << node % 64;
	tap_ok(eddy_policy_interleave(p, PAGES * page, nodes) == 0 &&
		   mode_at(p + page, nodes) == MPOL_INTERLEAVE &&
		   eddy_node_in(nodes, node),
	    "a range is spread over a set");
	done(p);
}

static void
bad_nodes(void)
{
	static const unsigned far[] = {EDDY_MAX_NODES - 1, EDDY_MAX_NODES,
	    EDDY_MAX_NODES + 1, 65536, INT32_MAX, UINT32_MAX};
	uint64_t none[EDDY_MAX_NODES / 64] = {0};
	uint64_t other[EDDY_MAX_NODES / 64] = {0};
	char *p = fresh();
	bool held = true;

	other[absent / 64] |= (uint64_t)1 << absent % 64;
	tap_ok(eddy_policy_bind(p, page, absent) == -EINVAL &&
		   eddy_policy_move(p, page, absent) == -EINVAL,
	    "node %u, which is not there, is refused", absent);
	for (unsigned i = 0; i < N(far); i++)
		held = held && eddy_policy_bind(p, page, far[i]) == -EINVAL &&
		       eddy_policy_move(p, page, far[i]) == -EINVAL;
	tap_ok(held, "so are nodes that no machine has");
	tap_ok(eddy_policy_interleave(p, page, none) == -EINVAL &&
		   eddy_policy_interleave(p, page, other) == -EINVAL,
	    "and sets without a node that is there");
	tap_ok(prefers(p, EDDY_MAX_NODES), "the range is as it was");
	tap_ok(
	    eddy_policy_bind((char *)UINTPTR_MAX - page, 4 * page, node) ==
		    -EINVAL &&
		eddy_policy_bind((char *)UINTPTR_MAX - 3, 2, node) == -EINVAL,
	    "a range beyond the end of memory is refused");
	done(p);
	tap_ok(eddy_policy_bind(p, page, node) == -EFAULT,
	    "so is one where nothing is mapped");
}

static void
questions(void)
{
	enum { N_PAGES = 5000 };

	static void *ask[N_PAGES];
	static int where[N_PAGES];
	char *p = fresh();
	int keep = errno;
	bool held = true;

	tap_ok(eddy_policy_nodes_of(ask, where, 0) == 0,
	    "to ask about no page is no error");
	p[page] = 1;
	for (unsigned i = 0; i < N_PAGES; i++) {
		ask[i] = i % 3 == 0 ? p + page + i % page : p + 3 * page;
		where[i] = -1000;
	}
	errno = 1234;
	held = eddy_policy_nodes_of(ask, where, N_PAGES) == 0;
	for (unsigned i = 0; i < N_PAGES; i++)
		held = held && (i % 3 == 0 ? where[i] >= 0
					   : where[i] == -ENOENT ||
						 where[i] == -EFAULT);
	tap_ok(held, "%d pages are asked about in one call", N_PAGES);
	done(p);
	ask[0] = p;
	tap_ok(eddy_policy_nodes_of(ask, where, 1) == 0 &&
		   (where[0] == -EFAULT || where[0] == -ENOENT),
	    "a page where nothing is mapped is nowhere");
	tap_ok(eddy_policy_bind(p, page, absent) < 0 && errno == 1234,
	    "errno is kept");
	errno = keep;
}

/* The policy of the process, in children that set one. */

static int
has_none(void)
{
	return eddy_policy_of_process() == MPOL_DEFAULT ? 0 : 1;
}

static int
has_interleave(void)
{
	uint64_t nodes[EDDY_MAX_NODES / 64] = {0};

	nodes[node / 64] |= (uint64_t)1 << node % 64;
	if (syscall(SYS_set_mempolicy, MPOL_INTERLEAVE, nodes,
		EDDY_MAX_NODES + 1) != 0)
		return 77;
	return eddy_policy_of_process() == MPOL_INTERLEAVE ? 0 : 1;
}

static int
has_local(void)
{
	if (syscall(SYS_set_mempolicy, MPOL_LOCAL, NULL, 0) != 0)
		return 77;
	return eddy_policy_of_process() > 0 ? 0 : 1;
}

/* Every call of this room refused: errors, and memory that works. */
static int
all_refused(void)
{
	static const int calls[] = {
	    SYS_mbind, SYS_get_mempolicy, SYS_move_pages};
	uint64_t nodes[EDDY_MAX_NODES / 64];
	char *p = fresh();
	void *ask[1] = {p};
	int where[1] = {-7};
	bool held = true;

	memset(p, 9, PAGES * page);
	memset(nodes, 0xa5, sizeof nodes);
	if (!refuse(calls, N(calls), EPERM, false))
		return 77;
	held = held && eddy_policy_bind(p, PAGES * page, node) == -EPERM;
	held = held && eddy_policy_move(p, PAGES * page, node) == -EPERM;
	held = held && eddy_policy_reset(p, PAGES * page) == -EPERM;
	held = held && eddy_policy_interleave(p, page, nodes) == -EPERM;
	held = held && eddy_policy_of_process() == -EPERM;
	held = held && eddy_policy_nodes_of(ask, where, 1) == -EPERM;
	held = held && where[0] == -7;
	held = held && eddy_policy_nodes_allowed(nodes) == -EPERM;
	held = held && nodes[0] == 0xa5a5a5a5a5a5a5a5u;
	held = held && eddy_policy_bind(p, PAGES * page, 70000) == -EINVAL;
	held = held && filled(p, PAGES * page, 9);
	return held ? 0 : 1;
}

/* A kernel before 5.15 answers EINVAL to preferred-many: here all modes. */
static int
einval_refused(void)
{
	static const int calls[] = {SYS_mbind};
	char *p = fresh();

	memset(p, 9, PAGES * page);
	if (!refuse(calls, N(calls), EINVAL, false))
		return 77;
	return eddy_policy_bind(p, page, node) == -EINVAL &&
		       filled(p, PAGES * page, 9)
		   ? 0
		   : 1;
}

/* mbind refused for mode preferred-many alone. */
static int
old_kernel(void)
{
	struct sock_filter f[] = {
	    BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mbind, 0, 4),
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
		offsetof(struct seccomp_data, args[2])),
	    BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xfff),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 5, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {N(f), f};
	uint64_t nodes[EDDY_MAX_NODES / 64];
	char *p = fresh();

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) != 0)
		return 77;
	return eddy_policy_bind(p, page, node) == 0 &&
		       mode_at(p, nodes) == MPOL_PREFERRED && prefers(p, node)
		   ? 0
		   : 1;
}

static void
child(const char *name, int (*body)(void))
{
	int ret = in_child(body);

	if (ret == 77)
		tap_skip(name, "refused here");
	else if (!tap_ok(ret == 0, "%s", name))
		tap_diag("the child ended with %d", ret);
}

static void
allowed_nodes(void)
{
	uint64_t nodes[EDDY_MAX_NODES / 64];
	char list[4096];
	char *s = NULL;
	ssize_t n = -1;
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		n = read(fd, list, sizeof list - 1);
		(void)close(fd);
	}
	if (n > 0) {
		list[n] = '\0';
		s = strstr(list, "Mems_allowed_list:");
	}
	if (s == NULL) {
		tap_skip("the cpuset's nodes", "no Mems_allowed_list");
		return;
	}
	tap_ok(eddy_policy_nodes_allowed(nodes) == 0 &&
		   eddy_node_next(nodes, 0) ==
		       strtoul(s + strlen("Mems_allowed_list:"), NULL, 10),
	    "the lowest node allowed is the one that /proc names");
}

int
main(void)
{
	uint64_t allowed[EDDY_MAX_NODES / 64];
	int ret;

	numa_begin(60);
	page = (size_t)sysconf(_SC_PAGESIZE);
	topo = guarded(sizeof *topo);
	(void)eddy_topology_read(topo, "/sys", false);
	/* Under numactl the ranges would show its policy. */
	(void)syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0);
	if (eddy_policy_nodes_allowed(allowed) == 0)
		while (node < EDDY_MAX_NODES - 1 &&
		       !(eddy_node_in(topo->has_memory, node) &&
			   eddy_node_in(allowed, node)))
			node++;
	while (eddy_node_in(topo->online, absent))
		absent++;
	ret = eddy_policy_of_process();
	if (ret == -ENOSYS || ret == -EPERM)
		tap_diag("get_mempolicy: %s",
		    ret == -EPERM ? "refused" : "not in this kernel");
	if (ret < 0) {
		child("refused calls are errors and harm nothing", all_refused);
		return tap_end();
	}
	binding();
	bad_nodes();
	questions();
	allowed_nodes();
	child("a process without a policy has none", has_none);
	child("a process that interleaves says so", has_interleave);
	child("a process that wants local memory says so", has_local);
	child("refused calls are errors and harm nothing", all_refused);
	child(
	    "a mode and a node that are refused are one error", einval_refused);
	child("a kernel without preferred-many takes preferred", old_kernel);
	return tap_end();
}
