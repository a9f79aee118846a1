/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * node_api.h - the arenas of <eddy/eddy.h>, as found in the library that the
 * test was preloaded with.
 */
#ifndef EDDY_TESTS_NODE_API_H
#define EDDY_TESTS_NODE_API_H

#include "probe.h"

static struct {
	int (*create)(int, unsigned *);
	void *(*alloc)(unsigned, size_t);
	void *(*aligned)(unsigned, size_t, size_t);
	int (*move)(unsigned, int);
	int (*node_of)(const void *);
	int (*node_at)(const void *);
} api;

/* False: another allocator. */
static inline bool
find_api(void)
{
	static const struct symbol f[] = {
	    {"eddy_arena_create", &api.create},
	    {"eddy_arena_malloc", &api.alloc},
	    {"eddy_arena_aligned_alloc", &api.aligned},
	    {"eddy_arena_move", &api.move},
	    {"eddy_node_of", &api.node_of},
	    {"eddy_node_at", &api.node_at},
	};

	return find_symbols(f, COUNT(f));
}

/* The lowest node with memory: there is always one. */
static inline int
some_node(void)
{
	unsigned a;

	for (int node = 0; node < 1024; node++)
		if (api.create(node, &a) == 0)
			return node;
	tap_bail("an arena on no node");
}

static inline unsigned
create(int node)
{
	unsigned a = 0;
	int err = api.create(node, &a);

	if (err != 0)
		tap_bail("eddy_arena_create(%d): %d", node, err);
	return a;
}

/* Whose a block is shows by its address: a segment, 1 GiB, has one arena. */
static inline uintptr_t
segment_of(const void *p)
{
	return (uintptr_t)p >> 30;
}

#endif /* EDDY_TESTS_NODE_API_H */
