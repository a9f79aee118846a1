/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pool.h - pools of objects of one type; their memory is never anything else.
 *
 * Layer     heap (L3).
 * Progress  alloc, free: a hit is wait-free, else lock-free but for system
 *           calls.  create, destroy, drain: lock-free but for system calls.
 *           shrink: the same, and the program's grace.
 * Memory    the objects: slabs of an arena that is the pool's alone.  A block
 *           of addresses holds structs of pools and the rows of these on all
 *           CPUs; a new one when it is full.  Structs are type-stable, and a
 *           pool keeps its row's place for the next pool that gets its struct.
 *
 * A pool's slabs have a tag of their own (EDDY_TAG_POOL) and are not retired
 * when all of their objects are free: so boundaries stay, their pages are in
 * use and are not purged, and who reads an object after it was freed reads one
 * of the type.  Nothing is ever written into a free object.
 *
 * Rows are those of cpu_cache.h, opened, drained and reopened by the same code;
 * what overflows goes to a ring of the pool (returns.h), then to the slabs.
 * Without restartable sections: cells.  Caches that are idle are emptied as
 * malloc's are (gather.h), for other CPUs and the next shrink; malloc_trim
 * leaves pools alone, for no page would go back by it.  Who gets no memory for
 * the pool empties its caches, and so does a shrink.
 *
 * Who looks for idle caches is no user of the pool, so it may end meanwhile;
 * objects in his hand must not come to slabs that are gone by then.  So he
 * holds the pool, and of him and who ends it the last one does what is left to
 * be done (`life`): nobody waits.
 *
 * Shrink (tests/model/pool.pml): each slab that is wholly free is taken, all
 * its words by CAS as a retirement does it, and marked by a number of this
 * shrink's own (EDDY_TAG_LIMBO); so are slabs that others have marked, who may
 * be dead.  Then the grace.  Then what still has the number is given back: what
 * another shrink has marked anew meanwhile is his, and waits for his grace.
 *
 *   I-POOL-2  Memory of a pool that somebody holds goes back by a shrink
 *             alone, even if it ends meanwhile (tests/model/pool_hold.pml).
 *   I-POOL-1  A slab's pages go back only by who marked it before his grace
 *             began, or at the pool's end.
 *
 * A thread killed here costs: alloc, free: the batch in hand; a constructor:
 * the slab; shrink: nothing, for the next one takes over what lies in limbo;
 * create: the arena, and a place for a pool; destroy: the pool; a look: the
 * batch in hand, and the memory of the pools that he holds when they end.
 *
 * Order pairs
 *   POOL-R1 -> POOL-A1  see slab.h.
 *   POOL-R2 -> POOL-A2  a block, from its builder to all.
 *   POOL-R3 -> POOL-A3  a CPU's slot made writable.
 *   POOL-R4 -> POOL-A4  a struct, and its closed rows, from the pool that ended
 *                       to the next.
 *   POOL-R5 -> POOL-A5  a live pool, to who looks at all; what he did, to who
 *                       ends it, or looks next.
 */
#ifndef EDDY_POOL_CORE_H
#define EDDY_POOL_CORE_H

#include "lib/heap/cpu_cache.h"
#include "lib/heap/gather.h"
#include "lib/heap/heap.h"
#include "lib/heap/hook_sets.h"

/* What programs have is the address with a generation in its lower bits. */
#define EDDY_POOL_ALIGN 256

struct eddy_pool_block;

/*
 * W: who creates or ends the pool.  R: any CPU that was given it.  O: none: it
 * is handed over by the program.
 */
struct eddy_pool_core {
	_Alignas(EDDY_POOL_ALIGN) _Atomic uintptr_t handle; /* 0: none lives */
	_Atomic uintptr_t slots; /* where its rows are, 0: it has none */
	_Atomic uint32_t place;  /* of its row's header in a slot */
	_Atomic uint32_t arena;  /* number */
	_Atomic uint32_t row;    /* size class */
	_Atomic uint32_t depth;  /* of its rows: pointers at most */
	_Atomic uint32_t generation;
	/* Constant. */
	uint32_t number;
	unsigned lg; /* pointers that its rows have room for */
	struct eddy_pool_block *block;
	/* Under it on the stack of structs that are free.
	 * W: who frees it.  R: any.  O: POOL-R4 -> POOL-A4. */
	_Atomic uint32_t next;
	/*
	 * {pid of who looks, phase}: see pool.c.
	 * W: who creates or ends it, who looks, by RMW.  R: who looks.
	 * O: POOL-R5 -> POOL-A5.
	 */
	_Atomic uint64_t life;
	/* As any ring. */
	struct eddy_ring ring;
};

struct eddy_pool_plan {
	size_t size; /* of an object, EDDY_SMALL_MAX at most */
	size_t align;
	eddy_construct *construct;
	void *arg;
	struct eddy_arena_plan arena;
};

/* The row of a pool's objects; 0: there is none. */
unsigned eddy_pool_row(size_t size, size_t align);

/*
 * eddy_pool_make - a pool.
 *
 * Returns: 0; -EINVAL: eddy_pool_row is 0; -ENOMEM; else as eddy_arena_make.
 */
EDDY_MUST_USE int eddy_pool_make(struct eddy_heap *h,
    const struct eddy_pool_plan *plan, struct eddy_pool_core **ret);

/* Objects that are out, cached ones too, while nobody uses the pool. */
size_t eddy_pool_alive(struct eddy_heap *h, struct eddy_pool_core *p);

/* Its end: nobody may use it.  All that it has goes back, now or when who holds
 * it is done. */
void eddy_pool_end(struct eddy_heap *h, struct eddy_pool_core *p);

/* An object where the row has none; NULL: no memory. */
void *eddy_pool_take(struct eddy_heap *h, struct eddy_pool_core *p);

/* One of its objects, where the row is full. */
void eddy_pool_put(struct eddy_heap *h, struct eddy_pool_core *p, void *object);

/* Empties the pool's caches. */
void eddy_pool_drain(struct eddy_heap *h, struct eddy_pool_core *p);

/*
 * eddy_pool_give_back - gives back slabs that are wholly free, after grace.
 *
 * grace: NULL: nobody reads what is free.
 * Returns: bytes.
 */
size_t eddy_pool_give_back(struct eddy_heap *h, struct eddy_pool_core *p,
    void (*grace)(void *arg), void *arg);

/* Looks for idle caches of pools and empties them: as eddy_gather_idle. */
void eddy_pools_look(struct eddy_heap *h, struct eddy_look *l);

/* Caches of pools: rows of a CPU, rings, cells of a set. */
enum eddy_pool_part {
	EDDY_POOL_ROWS,
	EDDY_POOL_RINGS,
	EDDY_POOL_CELLS,
};

struct eddy_pool_cached {
	uint32_t arena; /* number */
	unsigned row;
	uint64_t n;    /* objects */
	uint64_t most; /* that there may be */
	uint64_t refills;
	uint64_t overflows;
};

/*
 * eddy_pools_tell - what caches of live pools hold, as of some moments during
 * the call; of those that were ever used.
 *
 * i: the CPU, the set; of rings 0.
 */
void eddy_pools_tell(struct eddy_heap *h, enum eddy_pool_part part, size_t i,
    void (*seen)(void *arg, const struct eddy_pool_cached *c), void *arg);

static inline struct eddy_arena *
eddy_pool_arena_of(struct eddy_heap *h, struct eddy_pool_core *p)
{
	/* relaxed: as the struct's. */
	return eddy_arena_at(h, eddy_load_relaxed(&p->arena));
}

#endif /* EDDY_POOL_CORE_H */
