/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pool.h - pools of objects of one type, whose memory is never anything else.
 *
 * For lock-free structures: who reads a node that was freed meanwhile reads a
 * node all the same, an old or a new one, and may then find by a tag or a
 * comparison that it is not the one he wanted.  The library itself never writes
 * to a free object.
 *
 *     struct eddy_pool_options o = EDDY_POOL_OPTIONS;
 *     struct eddy_pool *nodes;
 *     struct node *n;
 *
 *     o.object_size = sizeof(struct node);
 *     o.name = "nodes";
 *     if (eddy_pool_create(&o, &nodes) == 0)
 *             n = eddy_pool_alloc(nodes);
 */
#ifndef EDDY_POOL_H
#define EDDY_POOL_H

#include <eddy/eddy.h>

#ifdef __cplusplus
extern "C" {
#endif

struct eddy_pool;

/*
 * eddy_pool_create - a pool.
 *
 * options    size: sizeof(struct eddy_pool_options), as EDDY_POOL_OPTIONS sets
 *            it; what lies beyond what this version knows must be zero.
 *            object_size: in bytes, 1 to 14,336; rounded up as malloc does it.
 *            align: a power of two to 4,096; 0: as malloc.
 *            construct: called once for each slot, before it is handed out for
 *            the first time: with arg and its address.  NULL: a slot begins as
 *            zeros or as other memory that was used before.  It runs within
 *            eddy_pool_alloc, on any thread and for all slots of up to seven
 *            pages at once; it must not use this pool, nor leave by longjmp or
 *            an exception; if eddy_pool_alloc is called in signal handlers it
 *            must be safe there.
 *            name: of its arena, as mallctl's arena.<i>.name and statistics
 *            show it, "pool " before it, to 26 bytes; NULL: "pool".
 *            arena: as for eddy_arena_create_with: node, huge pages, a file;
 *            NULL: ordinary memory, where it is touched.
 * pool       the pool; untouched on failure
 *
 * RETURN     0, or an errno value, errno itself untouched, as by
 *            eddy_arena_create_with, and:
 * EINVAL     no such size or alignment
 * E2BIG      an option that this version does not know is set
 *
 * A pool has an arena of its own, of which there are some 4,000 in a process,
 * and up to 128 KiB of objects in the cache of each CPU that used it; with a
 * file or EDDY_ARENA_NOFORK, none.
 *
 * THREADS    MT-safe, async-signal-safe; waits for nobody
 * COST       as eddy_arena_create
 * FORK       a child has a copy of all pools of its parent, but of those of a
 *            file or with EDDY_ARENA_NOFORK
 * SINCE      0.1
 * SEE ALSO   eddy_pool_create(3), eddy_arena_create(3)
 */
struct eddy_pool_options {
	size_t size;
	size_t object_size;
	size_t align;
	void (*construct)(void *arg, void *object);
	void *arg;
	const char *name;
	const struct eddy_arena_options *arena;
};

#define EDDY_POOL_OPTIONS                                                      \
	{                                                                      \
		sizeof(struct eddy_pool_options), 0, 0, NULL, NULL, NULL, NULL \
	}

int eddy_pool_create(
    const struct eddy_pool_options *options, struct eddy_pool **pool);

/*
 * eddy_pool_alloc, eddy_pool_free - an object of a pool, and its end.
 *
 * What an object holds is what it held when it was freed, or what the
 * constructor has made of it.  Until it is handed out again nobody writes to
 * it; so those who may still read it do so by loads that are atomic, as those
 * writes must be that may meet them.  It is no block of malloc: free, realloc
 * and malloc_usable_size end the process.
 *
 * pool       from eddy_pool_create
 * object     of this pool; NULL: nothing happens
 *
 * RETURN     the object, or NULL with errno:
 * ENOMEM     no memory
 *
 * Always, whatever the options, the process ends if object is not of this pool,
 * or not the start of an object, or if the pool was destroyed.  An object that
 * is freed twice is found out when both come to its slab; with check:true at
 * once.  eddy_pool_free leaves errno alone.
 *
 * THREADS    MT-safe, async-signal-safe; lock-free but for system calls
 * ORDER      what was written before eddy_pool_free is seen after the
 *            eddy_pool_alloc that returns the same object
 * COST       some 40 instructions each, on the cache of the CPU; each batch of
 *            8 to 64 objects that does not fit there some locked ones
 * FORK       as malloc
 * SINCE      0.1
 * SEE ALSO   eddy_pool_create(3)
 */
void *eddy_pool_alloc(struct eddy_pool *pool);
void eddy_pool_free(struct eddy_pool *pool, void *object);

/*
 * eddy_pool_shrink - gives memory of slots back that hold no object.
 *
 *     static void grace(void *arg) { synchronize_rcu(); }
 *
 *     eddy_pool_shrink(nodes, grace, NULL);
 *
 * This is the one way by which memory of a pool becomes something else while
 * the pool lives, and only of whole slabs (1 to 7 pages) without objects.
 * These are taken out of circulation; then grace is called, once, and must not
 * return before everybody has ended who might read an object that was freed
 * before the call.  Then their pages go back.
 *
 * grace      with arg, on the calling thread; may wait, and may allocate, of
 *            this pool too; not called where there is nothing to give back.
 *            NULL: nobody reads objects that are free
 *
 * RETURN     bytes given back
 *
 * Several shrinks of a pool may run at once: of two that want the same slab the
 * later one waits for its own grace and gives it back.
 *
 * THREADS    MT-safe; waits for nobody but in grace
 * COST       empties the pool's caches on all CPUs, two membarriers for each;
 *            a look at each page of the pool; system calls
 * FORK       what a thread of the parent had taken out of circulation the
 *            child's next shrink gives back
 * SINCE      0.1
 * SEE ALSO   eddy_pool_create(3)
 */
size_t eddy_pool_shrink(
    struct eddy_pool *pool, void (*grace)(void *arg), void *arg);

/*
 * eddy_pool_destroy - the end of a pool and of its objects.
 *
 * Nobody may use the pool or read its objects any more, or be in a call with
 * it.  Objects that are still alive are freed; with check:true they end the
 * process.  While another thread empties its idle caches (in the background, in
 * eddy_housekeep, in an allocation), what the pool has goes back when that is
 * done.
 *
 * pool       NULL: nothing happens
 *
 * THREADS    MT-safe; waits for nobody
 * COST       a look at each page of the pool, whatever others have; system
 *            calls
 * FORK       a child's pools end alone
 * SINCE      0.1
 * SEE ALSO   eddy_pool_create(3)
 */
void eddy_pool_destroy(struct eddy_pool *pool);

/*
 * eddy_pool_arena - the number of a pool's arena.
 *
 * For eddy_arena_move, eddy_prefault, eddy_set_decay, and less 1 for mallctl's
 * arena.<i> and stats.arenas.<i>; nothing can be allocated from it but by
 * eddy_pool_alloc, nor can it be reset or destroyed, nor be given extent hooks.
 *
 * RETURN     the number
 *
 * THREADS    MT-safe, async-signal-safe, wait-free
 * COST       three loads
 * FORK       as at any other time
 * SINCE      0.1
 * SEE ALSO   eddy_pool_create(3), mallctl(3)
 */
unsigned eddy_pool_arena(struct eddy_pool *pool);

#ifdef __cplusplus
}
#endif

#endif /* EDDY_POOL_H */
