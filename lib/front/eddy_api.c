/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * eddy_api.c - arenas on nodes and of files, and the nodes of memory, for
 * programs.
 *
 * Layer     front (L6).
 * Progress  as their blocks' (front.h); create and move: lock-free but for
 *           system calls, among them such that copy pages.
 */
#include "eddy/eddy.h"

#include <errno.h>

#include "eddy/hooks.h"

#include "lib/front/front.h"
#include "lib/heap/arena.h"
#include "lib/heap/backing.h"
#include "lib/heap/bind.h"
#include "lib/heap/hook_sets.h"
#include "lib/heap/reset.h"
#include "numa/policy.h"

/* An arena of the program's; NULL: no such number, or a home's. */
static struct eddy_arena *
find(struct eddy_heap *h, unsigned arena)
{
	struct eddy_arena *a;

	if (h == NULL || arena <= h->n_homes || arena > EDDY_MAX_ARENAS)
		return NULL;
	a = eddy_arena_there(h, arena);
	/* Those of samples and of hints are as homes'. */
	return a != NULL && a->home == EDDY_HOME_NONE ? a : NULL;
}

/* The same of one that it may allocate from. */
static struct eddy_arena *
find_open(struct eddy_heap *h, unsigned arena)
{
	return find(h, arena) != NULL ? eddy_arena_open(h, arena) : NULL;
}

EDDY_EXPORT int
eddy_arena_create(int node, unsigned *arena)
{
	struct eddy_heap *h = eddy_heap();
	uint32_t number;
	int err;

	if (h == NULL)
		return ENOMEM;
	err = eddy_arena_fit(h, node);
	if (err == 0)
		err = eddy_arena_add(h, (uint32_t)node, &number);
	if (err == 0)
		*arena = number;
	return -err;
}

EDDY_EXPORT int
eddy_arena_create_with(
    const struct eddy_arena_options *options, unsigned *arena)
{
	struct eddy_heap *h = eddy_heap();
	const struct eddy_arena_options *o = options;
	struct eddy_arena_plan plan = {.node = EDDY_NO_NODE};
	uint32_t number;
	int err = 0;

	if (h == NULL)
		return ENOMEM;
	if (o->size < sizeof(*o))
		return EINVAL;
	if (!eddy_is_plain(o, sizeof(*o), o->size))
		return E2BIG;
	plan.flags = o->flags;
	plan.directory = o->directory;
	plan.file_size = o->file_size;
	if (o->node != EDDY_ANY_NODE) {
		err = eddy_arena_fit(h, o->node);
		plan.node = (uint32_t)o->node;
	}
	if (err == 0)
		err = eddy_arena_make(h, &plan, &number);
	if (err == 0)
		*arena = number;
	return -err;
}

EDDY_EXPORT extent_hooks_t *
eddy_hook_set(unsigned flags)
{
	return eddy_hook_set_of(flags);
}

EDDY_EXPORT int
eddy_arena_collapse(unsigned arena)
{
	struct eddy_heap *h = eddy_heap_peek();
	struct eddy_arena *a = find(h, arena);

	return a != NULL ? -eddy_hook_set_collapse(h, a) : EINVAL;
}

EDDY_EXPORT int
eddy_arena_move(unsigned arena, int node)
{
	struct eddy_heap *h = eddy_heap_peek();
	struct eddy_arena *a = find(h, arena);
	int err;

	if (a == NULL || a->backing.kind != EDDY_PRIVATE)
		return EINVAL;
	err = eddy_arena_fit(h, node);
	if (err == 0)
		err = eddy_bind_move(h, a, (uint32_t)node);
	return -err;
}

static void *
alloc(unsigned arena, size_t size, size_t align)
{
	struct eddy_arena *a = find_open(eddy_heap_peek(), arena);
	void *p;

	if (a == NULL || !eddy_is_pow2(align)) {
		errno = EINVAL;
		return NULL;
	}
	p = eddy_alloc_in(a, size, align, false);
	return p != NULL ? p : eddy_no_memory();
}

EDDY_EXPORT void *
eddy_arena_malloc(unsigned arena, size_t size)
{
	return alloc(arena, size, 1);
}

EDDY_EXPORT void *
eddy_arena_aligned_alloc(unsigned arena, size_t alignment, size_t size)
{
	return alloc(arena, size, alignment);
}

static struct eddy_arena *
arena_of(const void *p)
{
	struct eddy_heap *h = eddy_heap_peek();

	return h != NULL ? eddy_arena_of(h, p) : NULL;
}

EDDY_EXPORT int
eddy_node_of(const void *p)
{
	struct eddy_heap *h = eddy_heap_peek();
	struct eddy_arena *a = arena_of(p);
	uint32_t node;

	if (a == NULL) {
		errno = EINVAL;
		return -1;
	}
	/* relaxed: as of some moment. */
	node = eddy_load_relaxed(&a->node);
	if (node == EDDY_NO_NODE ||
	    eddy_bind_wanted(h, a->home, node) == EDDY_BOUND_SPREAD) {
		errno = ENOENT;
		return -1;
	}
	return (int)node;
}

EDDY_EXPORT int
eddy_node_at(const void *p)
{
	void *page = (void *)(uintptr_t)p;
	int node;
	int err = eddy_policy_nodes_of(&page, &node, 1);

	if (err == 0 && node >= 0)
		return node;
	if (err == 0)
		err = node;
	/* The page of zeros that the kernel shows who only reads. */
	if (err == -EFAULT && arena_of(p) != NULL)
		err = -ENOENT;
	errno = -err;
	return -1;
}
