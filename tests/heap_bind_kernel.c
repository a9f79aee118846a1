/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heap_bind_kernel.c - the policies of arenas as the kernel has them, on a node
 * of this machine; a machine with one node is told that it has more.
 *
 * Argument "limited": under a limit on addresses.
 */
#include "probe.h"

#include <linux/mempolicy.h>

#include "eddy/eddy.h"
#include "lib/heap/arena.h"
#include "lib/heap/bind.h"
#include "lib/heap/pagemap.h"
#include "numa/policy.h"

enum { PREFERRED_MANY = 5, NODES = 1024, NONE = -1, ERROR = -2 };

static struct eddy_heap *heap;
static int node; /* of this machine */

/* The one node that pages at p are preferred to come from; NONE, ERROR. */
static int
policy_at(const void *p)
{
	unsigned long set[NODES / 64] = {0};
	int mode = -1;

	if (syscall(SYS_get_mempolicy, &mode, set, NODES + 1, p, MPOL_F_ADDR) !=
	    0)
		return ERROR;
	mode &= ~(MPOL_F_STATIC_NODES | MPOL_F_RELATIVE_NODES);
	if (mode == MPOL_DEFAULT)
		return NONE;
	for (int i = 0; i < NODES; i++)
		if ((set[i / 64] >> i % 64 & 1) != 0)
			return mode == MPOL_PREFERRED || mode == PREFERRED_MANY
				   ? i
				   : ERROR;
	return ERROR;
}

/* Whether a block, its tag and its descriptor have the policy. */
static bool
all_at(const void *p, int want)
{
	size_t page = eddy_page_of(heap, p);

	return policy_at(p) == want &&
	       policy_at((void *)(uintptr_t)&heap->tags[page]) == want &&
	       policy_at(&heap->chunks[page / EDDY_CHUNK_PAGES]) == want;
}

static bool
begin(void)
{
	free(p_malloc(1));
	heap = eddy_heap();
	if (heap == NULL)
		tap_bail("no heap");
	node = (int)eddy_node_next(heap->places.has_memory, 0);
	heap->places.n_nodes += 1;
	return policy_at(heap) != ERROR;
}

static void
test_policies(void)
{
	static const size_t size[] = {10, 20000, 300000, 5 * MIB};
	unsigned a;
	bool held = true;
	char *p;
	char *q;

	if (eddy_arena_create(node, &a) != 0)
		tap_bail("eddy_arena_create");
	for (size_t i = 0; i < COUNT(size); i++) {
		p = eddy_arena_malloc(a, size[i]);
		if (p == NULL)
			tap_bail("no memory");
		held &= all_at(p, node) && all_at(p + size[i] - 1, node);
		p[0] = p[size[i] - 1] = 1;
		held &= eddy_node_at(p) == node || eddy_node_at(p) == -1;
	}
	tap_ok(held, "blocks of an arena, tags and descriptors are bound");
	tap_ok(policy_at(eddy_arena_at(heap, a)) == node,
	    "and so is its own struct");
	if (heap->places.bind)
		tap_skip("malloc's memory", "homes are bound here, too");
	else
		tap_ok(all_at(p_malloc(10), NONE), "malloc's memory is not");

	p = eddy_arena_malloc(a, 8 * MIB);
	q = eddy_arena_malloc(a, 8 * MIB);
	memset(p, 1, 8 * MIB);
	p = p_realloc(p, 40 * (size_t)MIB);
	tap_ok(p != NULL && p[8 * MIB - 1] == 1 && all_at(p, node) &&
		   policy_at(p + 8 * MIB - 1) == node &&
		   policy_at(p + 30 * MIB) == node,
	    "a block that realloc moved is bound as a whole");
	free(p);
	free(q);
	if (!heap->reserved || heap->places.bind) {
		tap_skip("hands", "segments are not unbound here");
		return;
	}
	p = eddy_arena_malloc(a, 3000 * (size_t)MIB);
	held = p != NULL;
	for (size_t i = 0; held && i < 3000; i += 100)
		held = policy_at(p + i * MIB) == node;
	free(p);
	q = p_malloc(3000 * (size_t)MIB);
	for (size_t i = 0; held && i < 2000; i += 100)
		held = q == p && policy_at(q + i * MIB) == NONE;
	free(q);
	tap_ok(held, "segments that leave the arena are not bound any more");
}

static void
test_move(void)
{
	unsigned a;
	char *p;
	struct eddy_arena *arena;

	if (eddy_arena_create(node, &a) != 0)
		tap_bail("eddy_arena_create");
	arena = eddy_arena_at(heap, a);
	p = eddy_arena_malloc(a, 5 * MIB);
	memset(p, 1, 5 * MIB);
	/* As after a policy that was lost. */
	if (eddy_policy_reset(p, 5 * MIB) != 0 ||
	    eddy_policy_reset(arena, eddy_arena_bytes(arena)) != 0)
		tap_bail("eddy_policy_reset");
	tap_ok(eddy_arena_move(a, node) == 0 && all_at(p, node) &&
		   policy_at(p + 4 * MIB) == node && policy_at(arena) == node,
	    "a move binds all that there is");
	tap_ok(p[0] == 1 && p[5 * MIB - 1] == 1, "and keeps content");
	free(p);
}

static void
test_unknown(void)
{
	int missing = node;
	unsigned a = 7;
	unsigned b;
	void *p;

	while (++missing < NODES &&
	       eddy_node_in(heap->places.has_memory, (unsigned)missing))
		continue;
	if (eddy_arena_create(node, &b) != 0)
		tap_bail("eddy_arena_create");
	p = eddy_arena_malloc(b, 100);
	/* The heap thinks that it is there; the kernel does not. */
	heap->places.has_memory[missing / 64] |= (uint64_t)1 << missing % 64;
	tap_ok(eddy_arena_create(missing, &a) == EINVAL && a == 7,
	    "a node that the kernel does not know: EINVAL");
	tap_ok(eddy_arena_move(b, missing) == EINVAL &&
		   eddy_node_of(p) == node && all_at(p, node),
	    "no arena moves there");
	heap->places.has_memory[missing / 64] &= ~((uint64_t)1 << missing % 64);
	free(p);
}

/* The last: the filter stays. */
static void
test_refused(void)
{
	const int nr[] = {SYS_mbind, SYS_move_pages};
	unsigned a;
	unsigned b = 7;
	uint32_t unplaced;
	char *p;
	char *q;

	if (eddy_arena_create(node, &a) != 0)
		tap_bail("eddy_arena_create");
	p = eddy_arena_malloc(a, 100);
	p[0] = 1;
	if (!probe_refuse(nr, COUNT(nr), EPERM)) {
		tap_skip("refusals", "no seccomp filters");
		return;
	}
	tap_ok(eddy_arena_create(node, &b) == EPERM && b == 7,
	    "mbind refused: EPERM, no arena");
	tap_ok(eddy_arena_move(a, node) == EPERM && all_at(p, node),
	    "no move, and nothing has changed");
	errno = 0;
	tap_ok(eddy_node_at(p) == -1 && errno == EPERM,
	    "move_pages refused: EPERM");
	unplaced = atomic_load(&heap->n_unplaced);
	q = eddy_arena_malloc(a, 1024 * (size_t)MIB);
	tap_ok(q != NULL && eddy_node_of(q) == node &&
		   atomic_load(&heap->n_unplaced) > unplaced,
	    "the arena goes on, and it is counted");
	free(q);
	free(p);
	free(p_malloc(1000));
}

static void
test_all(void)
{
	test_policies();
	test_move();
	test_unknown();
	test_refused();
}

int
main(int argc, char **argv)
{
	struct rlimit l;

	tap.pid = getpid();
	probe_small_pages();
	if (argc > 1 && strcmp(argv[1], "limited") == 0) {
		/* Its points are for the log. */
		(void)dup2(STDERR_FILENO, STDOUT_FILENO);
		if (!begin() || heap->reserved)
			return 77;
		test_all();
		return tap.failed != 0;
	}
	(void)unsetenv("EDDY_CONF");
	tap_guard(60);
	if (!begin())
		tap_skip_all("a kernel without NUMA");
	(void)getrlimit(RLIMIT_AS, &l);
	l.rlim_cur = 24 * (rlim_t)KIB * MIB;
	if (l.rlim_max < l.rlim_cur) {
		tap_skip("limited", "no such limit can be set");
	} else {
		struct rlimit keep;

		(void)getrlimit(RLIMIT_AS, &keep);
		(void)setrlimit(RLIMIT_AS, &l);
		tap_ok(probe_again(argv, "limited", "24 GiB"),
		    "under a limit on addresses, chunk by chunk");
		(void)setrlimit(RLIMIT_AS, &keep);
	}
	test_all();
	return tap_end();
}
