/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/heap/pool.h"

#include <errno.h>

#include "lib/heap/arena.h"
#include "lib/heap/backing.h"
#include "lib/heap/gather.h"
#include "lib/heap/pagemap.h"
#include "lib/heap/purge.h"
#include "lib/heap/reclaim.h"
#include "lib/heap/reset.h"
#include "lib/heap/returns.h"
#include "lib/heap/segment.h"
#include "lib/heap/slab.h"
#include "lib/heap/warm.h"
#include "lib/os/advise.h"
#include "lib/os/os.h"

/* A row's pointers: 2^MIN_LG to 2^MAX_LG, some 128 KiB of objects. */
#define MIN_LG   6
#define MAX_LG   10
#define MAX_ROOM ((size_t)128 << 10)

/*
 * What a pool has of each CPU's slot: counters, a row header and its pointers
 * behind it; or as many cells as there are in a row of them.
 */
#define STATS_SIZE EDDY_CACHELINE
static_assert(sizeof(struct eddy_row_stats) <= STATS_SIZE, "a line");
static_assert(sizeof(struct eddy_cells) <=
		  sizeof(struct eddy_row) + ((size_t)8 << MIN_LG),
    "cells lie where a row would");

/* Before the first, sections of threads that have no CPU find closed rows. */
#define DUMMY_SLOTS 2

/* Pools of a block: what one slot has room for. */
#define MAX_POOLS \
	(EDDY_SLOT_SIZE / (STATS_SIZE + EDDY_CACHELINE + (8u << MIN_LG)))

struct eddy_pool_block {
	/* W: who builds the next.  R: any.
	 * O: POOL-R2 -> POOL-A2, IDLE-R1 -> IDLE-A1. */
	_Atomic(struct eddy_pool_block *) next;
	/* Constant. */
	uint32_t number;
	uintptr_t slots; /* of CPUs, then of sets of cells; 0: none */
	/* {structs laid, bytes of a slot that are theirs}.  W, R: any CPU.
	 * O: IDLE-R1 -> IDLE-A1: laid before a row of one opens. */
	_Atomic uint64_t laid;
	/* Slots that may be written, a bit each.
	 * W: any.  R: any.  O: POOL-R3 -> POOL-A3, IDLE-R1 -> IDLE-A1. */
	_Atomic uint64_t ready[EDDY_MAX_CPUS / 64 + 1];
	/* Rows of each CPU; and all cells. */
	struct eddy_seen seen[EDDY_MAX_CPUS + 1];
	struct eddy_pool_core pools[];
};

/*
 * A pool's life: {pid, phase}, the pid of who holds it.  LIVE -> HELD -> LIVE,
 * and to its end: LIVE -> ENDED by who ends it, or HELD -> LEFT by him and then
 * LEFT -> ENDED by who holds it.  Who holds it in another process is of a
 * parent, and does not here.
 */
enum phase { ENDED, LIVE, HELD, LEFT };

static_assert(
    sizeof(struct eddy_pool_core) == EDDY_POOL_ALIGN, "four lines a pool");

#define META_SIZE                                                    \
	eddy_align_up(sizeof(struct eddy_pool_block) +               \
			  MAX_POOLS * sizeof(struct eddy_pool_core), \
	    65536)

/* The first; and structs that are free, by lg: {tag, number}. */
static _Atomic(struct eddy_pool_block *) blocks;
static _Atomic uint64_t spares[MAX_LG - MIN_LG + 1];
/* Shrinks so far, and looks at rings.  W, R: any CPU.  O: none: numbers. */
static _Atomic uint32_t n_shrinks;
static _Atomic uint32_t n_looks;

/* ------------------------------------------------------------------ */
/* Blocks */

/* Slots that a block has: none under a limit on addresses, without caches. */
static size_t
n_slots(const struct eddy_heap *h)
{
	if (!h->cached || h->n_slots == 0)
		return 0;
	return (h->sections ? h->n_slots : 0) + h->n_cell_sets;
}

/* The first set of cells. */
static size_t
first_set(const struct eddy_heap *h)
{
	return h->sections ? h->n_slots : 0;
}

static struct eddy_pool_block *
reserve(struct eddy_heap *h, size_t slots, size_t *size)
{
	struct eddy_pool_block *b;
	char *p;

	*size = META_SIZE;
	if (slots != 0)
		*size += (slots + DUMMY_SLOTS) << EDDY_LG_SLOT;
	p = eddy_os_reserve(*size);
	if (p == NULL)
		return NULL;
	if (h->opts.names)
		eddy_os_name(p, *size, "eddy: caches");
	b = (struct eddy_pool_block *)(void *)p;
	if (eddy_os_commit(b, META_SIZE) != 0 ||
	    (slots != 0 && eddy_os_commit_readonly(
			       p + META_SIZE, *size - META_SIZE) != 0)) {
		eddy_os_unmap(p, *size);
		return NULL;
	}
	if (slots != 0)
		b->slots = (uintptr_t)p + META_SIZE +
			   ((uintptr_t)DUMMY_SLOTS << EDDY_LG_SLOT);
	return b;
}

/* The block behind one (NULL: the first), made now if it is not there. */
static struct eddy_pool_block *
block_after(struct eddy_heap *h, struct eddy_pool_block *before)
{
	_Atomic(struct eddy_pool_block *) *link =
	    before != NULL ? &before->next : &blocks;
	/* POOL-A2: pairs with POOL-R2. */
	struct eddy_pool_block *b = eddy_load_acquire(link);
	struct eddy_pool_block *seen = NULL;
	size_t size;

	if (eddy_likely(b != NULL))
		return b;
	b = reserve(h, n_slots(h), &size);
	if (b == NULL)
		b = reserve(h, 0, &size);
	if (b == NULL)
		return NULL;
	b->number = before != NULL ? before->number + 1 : 0;
	/* POOL-R2 and IDLE-R1: all that was built; before a row of it opens. */
	if (eddy_cas_seq_cst(link, &seen, b))
		return b;
	eddy_os_unmap(b, size);
	/* POOL-A2: another's. */
	return eddy_load_acquire(link);
}

static struct eddy_pool_core *
pool_at(uint32_t number)
{
	struct eddy_pool_block *b = NULL;

	for (uint32_t i = (number - 1) / MAX_POOLS + 1; i > 0; i--) {
		/* POOL-A2: it is there: a number was read. */
		b = eddy_load_acquire(b != NULL ? &b->next : &blocks);
	}
	return &b->pools[(number - 1) % MAX_POOLS];
}

/* A struct of the block that was never used, and its part of the slots. */
static struct eddy_pool_core *
lay(struct eddy_pool_block *b, unsigned lg)
{
	uint32_t bytes = STATS_SIZE + EDDY_CACHELINE + (8u << lg);
	/* relaxed: a guess that the CAS checks. */
	uint64_t laid = eddy_load_relaxed(&b->laid);
	struct eddy_pool_core *p;
	uint32_t i;

	do {
		i = (uint32_t)(laid >> 32);
		if (i >= MAX_POOLS || (uint32_t)laid + bytes > EDDY_SLOT_SIZE)
			return NULL;
		/* IDLE-R1: before a row of it opens. */
	} while (!eddy_cas_seq_cst(
	    &b->laid, &laid, laid + ((uint64_t)1 << 32) + bytes));
	p = &b->pools[i];
	p->number = b->number * (uint32_t)MAX_POOLS + i + 1;
	p->lg = lg;
	p->block = b;
	/* relaxed: the caller's. */
	eddy_store_relaxed(&p->place, (uint32_t)laid + STATS_SIZE);
	return p;
}

static struct eddy_pool_core *
get_struct(struct eddy_heap *h, unsigned lg)
{
	_Atomic uint64_t *top = &spares[lg - MIN_LG];
	/* POOL-A4: pairs with POOL-R4. */
	uint64_t seen = eddy_load_acquire(top);
	struct eddy_pool_block *b = NULL;
	struct eddy_pool_core *p;

	while ((uint32_t)seen != 0) {
		p = pool_at((uint32_t)seen);
		/* POOL-A4, and relaxed: garbage if it was taken; the CAS fails
		 * then, since the tag grows at every pop. */
		if (eddy_cas_acquire(top, &seen,
			((seen >> 32) + 1) << 32 | eddy_load_relaxed(&p->next)))
			return p;
	}
	do {
		b = block_after(h, b);
		p = b != NULL ? lay(b, lg) : NULL;
	} while (p == NULL && b != NULL);
	return p;
}

static void
put_struct(struct eddy_pool_core *p)
{
	_Atomic uint64_t *top = &spares[p->lg - MIN_LG];
	/* relaxed: a guess that the CAS checks. */
	uint64_t seen = eddy_load_relaxed(top);

	do {
		/* relaxed: published by the CAS. */
		eddy_store_relaxed(&p->next, (uint32_t)seen);
		/* POOL-R4: the struct, and its rows. */
	} while (!eddy_cas_release(top, &seen, (seen >> 32) << 32 | p->number));
}

/* ------------------------------------------------------------------ */
/* Rows */

static bool
has_rows(struct eddy_pool_core *p)
{
	/* relaxed: as the struct's. */
	return eddy_load_relaxed(&p->slots) != 0;
}

/* Of a pool that has rows; the struct's for ever, in use or closed. */
static struct eddy_row_at
row_at(struct eddy_pool_core *p)
{
	/* relaxed: as the struct's. */
	uint32_t place = eddy_load_relaxed(&p->place);

	return (struct eddy_row_at){
	    p->block->slots, place, place + (uint32_t)sizeof(struct eddy_row)};
}

static struct eddy_row_stats *
stats_at(const struct eddy_row_at *at, uint32_t cpu)
{
	return (
	    struct eddy_row_stats *)(void *)((char *)eddy_row_header(at, cpu) -
					     STATS_SIZE);
}

static bool
is_ready(struct eddy_pool_block *b, size_t slot)
{
	/* POOL-A3 and IDLE-A1: pairs with POOL-R3; see next_live. */
	return eddy_load_seq_cst(&b->ready[slot / 64]) >> slot % 64 & 1;
}

static bool
writable(struct eddy_pool_block *b, size_t slot)
{
	if (eddy_likely(is_ready(b, slot)))
		return true;
	if (eddy_os_commit((void *)(b->slots + (slot << EDDY_LG_SLOT)),
		EDDY_SLOT_SIZE) != 0)
		return false;
	/* POOL-R3 and IDLE-R1: the slot may be written from here on; before a
	 * row there opens. */
	(void)eddy_or_seq_cst(&b->ready[slot / 64], (uint64_t)1 << slot % 64);
	return true;
}

/* The row missed or overflowed for the n-th time: what it may hold now. */
static unsigned
adapt(struct eddy_heap *h, struct eddy_pool_core *p,
    const struct eddy_row_at *at, uint32_t cpu, uint64_t n)
{
	/* relaxed, both: as the struct's. */
	unsigned depth = eddy_load_relaxed(&p->depth);
	unsigned row = eddy_load_relaxed(&p->row);
	unsigned had = eddy_cache_capacity(eddy_row_header(at, cpu));
	unsigned want = eddy_row_aim(stats_at(at, cpu), row, had, n);

	if (want > depth)
		want = depth;
	return want == had || eddy_row_set(h, at, cpu, want) ? want : had;
}

/* Straight from slabs, or back. */
static unsigned
refill(
    struct eddy_heap *h, struct eddy_pool_core *p, void **objects, unsigned n)
{
	eddy_reclaim_share(h);
	/* relaxed: as the struct's. */
	return eddy_arena_refill(h, eddy_pool_arena_of(h, p),
	    eddy_load_relaxed(&p->row), objects, n);
}

/* A batch on its way to other CPUs, or to the slabs. */
static void
send(struct eddy_heap *h, struct eddy_pool_core *p, uint32_t cpu,
    void **objects, unsigned n)
{
	struct eddy_carry c;
	enum eddy_put put;

	eddy_cache_carry_from(h, &c);
	/* relaxed, both: as the struct's; a guess. */
	put = eddy_ring_put(h, &p->ring, eddy_load_relaxed(&p->row),
	    eddy_load_relaxed(&n_looks), objects, n, &c);
	eddy_cache_carry_to(h, cpu, &c);
	if (put == EDDY_PUT_NOWHERE)
		(void)eddy_arena_put(h, objects, n);
}

static unsigned
restock(struct eddy_heap *h, struct eddy_pool_core *p, uint32_t cpu,
    void **objects, unsigned room)
{
	/* relaxed: as the struct's. */
	unsigned row = eddy_load_relaxed(&p->row);
	struct eddy_carry c;
	unsigned n = 0;

	if (room != 0) {
		eddy_cache_carry_from(h, &c);
		n = eddy_ring_take(h, &p->ring, row, objects, &c);
		eddy_cache_carry_to(h, cpu, &c);
	}
	if (n != 0)
		return n;
	n = room < eddy_classes[row].batch ? room : eddy_classes[row].batch;
	n = refill(h, p, objects, n != 0 ? n : 1);
	/* The lowest address is used first. */
	for (unsigned i = 0; i < n / 2; i++) {
		void *q = objects[i];

		objects[i] = objects[n - 1 - i];
		objects[n - 1 - i] = q;
	}
	return n;
}

static void *
rows_take(struct eddy_heap *h, struct eddy_pool_core *p)
{
	struct eddy_row_at at = row_at(p);
	void *objects[EDDY_BATCH_MAX];
	struct eddy_row_stats *s;
	unsigned room;
	uint32_t cpu;
	unsigned n;

	if (eddy_row_pop(h, at.slots, at.place, &objects[0]) == EDDY_SECTION_OK)
		return objects[0];
	if (!eddy_cache_cpu(h, &cpu) || !writable(p->block, cpu))
		return refill(h, p, objects, 1) != 0 ? objects[0] : NULL;
	s = stats_at(&at, cpu);
	eddy_row_note(&s->misses, &s->spills);
	/* relaxed: about how often. */
	room = adapt(h, p, &at, cpu, eddy_add_relaxed(&s->refills, 1));
	n = restock(h, p, cpu, objects, room);
	if (n == 0)
		return NULL;
	if (n > 1 && eddy_row_push_many(h, at.slots, at.place, objects,
			 n - 1) != EDDY_SECTION_OK)
		send(h, p, cpu, objects, n - 1);
	return objects[n - 1];
}

static void
rows_put(struct eddy_heap *h, struct eddy_pool_core *p, void *object)
{
	struct eddy_row_at at = row_at(p);
	void *objects[EDDY_BATCH_MAX];
	struct eddy_row_stats *s;
	/* relaxed: as the struct's. */
	uint32_t n = eddy_classes[eddy_load_relaxed(&p->row)].batch;
	unsigned room;
	uint32_t cpu;

	if (eddy_row_push(h, at.slots, at.place, object) == EDDY_SECTION_OK)
		return;
	if (!eddy_cache_cpu(h, &cpu) || !writable(p->block, cpu)) {
		(void)eddy_arena_put(h, &object, 1);
		return;
	}
	s = stats_at(&at, cpu);
	eddy_row_note(&s->spills, &s->misses);
	/* relaxed: about how often. */
	room = adapt(h, p, &at, cpu, eddy_add_relaxed(&s->overflows, 1));
	if (room != 0 &&
	    eddy_row_push(h, at.slots, at.place, object) == EDDY_SECTION_OK)
		return;
	if (room != 0 && eddy_row_pop_many(h, at.slots, at.place, objects,
			     &n) == EDDY_SECTION_OK) {
		int r = eddy_row_push(h, at.slots, at.place, object);

		send(h, p, cpu, objects, n);
		if (r == EDDY_SECTION_OK)
			return;
	}
	(void)eddy_arena_put(h, &object, 1);
}

/* ------------------------------------------------------------------ */
/* Cells */

static struct eddy_cells *
cells_at(struct eddy_pool_core *p, size_t slot)
{
	struct eddy_row_at at = row_at(p);

	return (struct eddy_cells *)(void *)eddy_row_header(
	    &at, (unsigned)slot);
}

/* The cells of the calling thread's set; NULL: there are none. */
static struct eddy_cells *
my_cells(struct eddy_heap *h, struct eddy_pool_core *p)
{
	uintptr_t self = (uintptr_t)__builtin_thread_pointer();
	size_t slot = first_set(h) +
		      (self >> 12 ^ self >> 19 ^ self >> 26) % h->n_cell_sets;

	return writable(p->block, slot) ? cells_at(p, slot) : NULL;
}

static unsigned
n_cells(struct eddy_pool_core *p)
{
	/* relaxed: as the struct's. */
	unsigned n = eddy_load_relaxed(&p->depth);

	return n < EDDY_N_CELLS ? n : EDDY_N_CELLS;
}

static void *
cells_take(struct eddy_heap *h, struct eddy_pool_core *p)
{
	struct eddy_cells *cells = my_cells(h, p);
	void *objects[EDDY_BATCH_MAX];
	unsigned want = cells != NULL ? n_cells(p) / 4 : 1;
	void *object = cells != NULL ? eddy_cells_get(cells) : NULL;
	unsigned n;

	if (object != NULL)
		return object;
	n = refill(h, p, objects, want);
	if (n == 0)
		return NULL;
	object = objects[--n];
	while (n > 0 && eddy_cells_put(cells, n_cells(p), objects[n - 1]))
		n--;
	if (n > 0)
		(void)eddy_arena_put(h, objects, n);
	if (cells != NULL)
		eddy_gather_watch(h);
	return object;
}

static void
cells_put(struct eddy_heap *h, struct eddy_pool_core *p, void *object)
{
	struct eddy_cells *cells = my_cells(h, p);

	if (cells == NULL || !eddy_cells_put(cells, n_cells(p), object))
		(void)eddy_arena_put(h, &object, 1);
	else
		eddy_gather_watch(h);
}

/* ------------------------------------------------------------------ */
/* Objects */

static void *
take(struct eddy_heap *h, struct eddy_pool_core *p)
{
	void *object;

	if (has_rows(p))
		switch (eddy_cache_attach(h)) {
		case EDDY_CACHE_ROWS:
			return rows_take(h, p);
		case EDDY_CACHE_CELLS:
			return cells_take(h, p);
		case EDDY_CACHE_NONE:
			break;
		}
	return refill(h, p, &object, 1) != 0 ? object : NULL;
}

void *
eddy_pool_take(struct eddy_heap *h, struct eddy_pool_core *p)
{
	struct eddy_arena *a = eddy_pool_arena_of(h, p);
	void *object;

	/* A child has not the memory of its parent's file. */
	if (!eddy_backing_here(&a->backing))
		return NULL;
	object = take(h, p);
	if (eddy_likely(object != NULL))
		return object;
	eddy_pool_drain(h, p);
	object = take(h, p);
	if (object != NULL || eddy_frozen(h))
		return object;
	if (a->backing.kind == EDDY_PRIVATE) {
		eddy_gather_all(h);
		(void)eddy_purge(h, 0);
	} else {
		(void)eddy_purge_arena(h, a);
	}
	return take(h, p);
}

void
eddy_pool_put(struct eddy_heap *h, struct eddy_pool_core *p, void *object)
{
	if (has_rows(p))
		switch (eddy_cache_attach(h)) {
		case EDDY_CACHE_ROWS:
			rows_put(h, p, object);
			return;
		case EDDY_CACHE_CELLS:
			cells_put(h, p, object);
			return;
		case EDDY_CACHE_NONE:
			break;
		}
	(void)eddy_arena_put(h, &object, 1);
}

static void
drain_mine(struct eddy_heap *h, const struct eddy_row_at *at)
{
	void *objects[EDDY_BATCH_MAX];
	uint32_t n = EDDY_BATCH_MAX;

	while (eddy_row_pop_many(h, at->slots, at->place, objects, &n) ==
	       EDDY_SECTION_OK) {
		(void)eddy_arena_put(h, objects, n);
		n = EDDY_BATCH_MAX;
	}
}

static void
drain_cells(struct eddy_heap *h, struct eddy_cells *cells)
{
	for (unsigned i = 0; i < EDDY_N_CELLS; i++) {
		/* CELL-A1: as any get. */
		void *object = eddy_xchg_acquire(&cells->cell[i], NULL);

		if (object != NULL)
			(void)eddy_arena_put(h, &object, 1);
	}
}

void
eddy_pool_drain(struct eddy_heap *h, struct eddy_pool_core *p)
{
	const bool cached = has_rows(p);
	struct eddy_row_at at = row_at(p);

	if (cached && h->sections && eddy_cache_attach(h) == EDDY_CACHE_ROWS)
		drain_mine(h, &at);
	for (unsigned cpu = 0; cached && cpu < first_set(h); cpu++)
		if (!eddy_frozen(h) && is_ready(p->block, cpu))
			eddy_gather_rows(h, cpu, &at, 1, false);
	eddy_ring_sweep(h, &p->ring, EDDY_ALL_EPOCHS);
	for (size_t i = 0; cached && i < h->n_cell_sets; i++)
		if (is_ready(p->block, first_set(h) + i))
			drain_cells(h, cells_at(p, first_set(h) + i));
}

/* ------------------------------------------------------------------ */
/* All slabs */

/* Pages of a slab, or of what one was, that something was done to. */
typedef unsigned each(struct eddy_heap *h, struct eddy_arena *a, uint32_t chunk,
    unsigned page, uint32_t number);

static size_t
each_in_chunk(struct eddy_heap *h, struct eddy_arena *a, uint32_t chunk,
    each *fn, uint32_t number)
{
	size_t sum = 0;

	for (unsigned page = 0; page < EDDY_CHUNK_PAGES; page++) {
		/* relaxed: a guess that is checked. */
		uint32_t tag = eddy_load_relaxed(
		    &h->tags[(size_t)chunk * EDDY_CHUNK_PAGES + page]);

		if (eddy_tag_kind(tag) == EDDY_TAG_LIMBO ||
		    (eddy_tag_kind(tag) == EDDY_TAG_POOL &&
			eddy_tag_pages(tag) == 0))
			sum += fn(h, a, chunk, page, number);
	}
	return sum;
}

static size_t
each_slab(struct eddy_heap *h, struct eddy_arena *a, each *fn, uint32_t number)
{
	uint32_t i = eddy_segment_from(a, 0);
	size_t sum = 0;

	for (; i != EDDY_ID_NONE; i = eddy_segment_from(a, i + 1)) {
		struct eddy_segment *s = &h->segments[i];
		uint32_t first = i * (uint32_t)EDDY_SEGMENT_CHUNKS;

		/* What is taken is checked. */
		if (!eddy_segment_is_of(h, i, a))
			continue;
		for (unsigned k = 0; k < EDDY_SEGMENT_CHUNKS; k++) {
			/* SEG-A3: pairs with SEG-R3: its descriptor is
			 * readable. */
			if (first + k >= h->n_chunks ||
			    (eddy_load_acquire(&s->map.ready[k / 64]) >>
				    k % 64 &
				1) == 0)
				continue;
			/* relaxed: a guess, as above. */
			if (eddy_load_relaxed(
				&h->chunks[first + k].map.owner) == a->number)
				sum +=
				    each_in_chunk(h, a, first + k, fn, number);
		}
	}
	return sum;
}

static unsigned
withdraw(struct eddy_heap *h, struct eddy_arena *a, uint32_t chunk,
    unsigned page, uint32_t number)
{
	return eddy_slab_withdraw(h, a, chunk, page, number);
}

static unsigned
count(struct eddy_heap *h, struct eddy_arena *a, uint32_t chunk, unsigned page,
    uint32_t number)
{
	(void)a;
	(void)number;
	return eddy_slab_alive(h, chunk, page);
}

size_t
eddy_pool_alive(struct eddy_heap *h, struct eddy_pool_core *p)
{
	return each_slab(h, eddy_pool_arena_of(h, p), count, 0);
}

size_t
eddy_pool_give_back(struct eddy_heap *h, struct eddy_pool_core *p,
    void (*grace)(void *arg), void *arg)
{
	struct eddy_arena *a = eddy_pool_arena_of(h, p);
	uint32_t number;
	size_t pages = 0;

	if (!eddy_backing_here(&a->backing))
		return 0;
	eddy_pool_drain(h, p);
	/* relaxed: a number of one's own. */
	number = (eddy_add_relaxed(&n_shrinks, 1) + 1) & EDDY_LIMBO_NUMBERS;
	if (each_slab(h, a, withdraw, number) == 0)
		return 0;
	if (grace != NULL)
		grace(arg);
	pages = each_slab(h, a, eddy_slab_give, number);
	if (pages != 0 && !eddy_frozen(h))
		(void)eddy_purge_arena(h, a);
	return pages * EDDY_PAGE;
}

/* ------------------------------------------------------------------ */
/* Beginning and end */

unsigned
eddy_pool_row(size_t size, size_t align)
{
	if (size == 0 || size > EDDY_SMALL_MAX || !eddy_is_pow2(align) ||
	    align > EDDY_PAGE)
		return 0;
	/* A class that is a multiple of align: its objects are too. */
	if (align > 8)
		size = eddy_align_up(size, align);
	return size <= EDDY_SMALL_MAX ? eddy_size_rows[(size + 7) / 8] : 0;
}

/* Pointers in a row of such objects. */
static unsigned
depth_of(const struct eddy_heap *h, unsigned row)
{
	size_t room = h->opts.cpu_cache_bytes / 16;
	unsigned least = eddy_classes[row].batch;
	size_t n;

	if (room > MAX_ROOM)
		room = MAX_ROOM;
	n = room / eddy_row_size(row);
	if (n < least)
		n = least;
	return n < (size_t)1 << MAX_LG ? (unsigned)n : 1u << MAX_LG;
}

static unsigned
lg_of(unsigned depth)
{
	unsigned lg = MIN_LG;

	while ((1u << lg) < depth)
		lg++;
	return lg;
}

int
eddy_pool_make(struct eddy_heap *h, const struct eddy_pool_plan *plan,
    struct eddy_pool_core **ret)
{
	unsigned row = eddy_pool_row(plan->size, plan->align);
	bool cached = h->cached && eddy_row_size(row) <= h->opts.tcache_max;
	unsigned depth;
	struct eddy_pool_core *p;
	struct eddy_arena *a;
	uint32_t number;
	int err;

	if (row == 0)
		return -EINVAL;
	depth = depth_of(h, row);
	p = get_struct(h, lg_of(depth));
	if (p == NULL)
		return -ENOMEM;
	err = eddy_arena_make(h, &plan->arena, &number);
	if (err != 0) {
		put_struct(p);
		return err;
	}
	a = eddy_arena_at(h, number);
	/* relaxed, all: nobody has the pool yet. */
	eddy_store_relaxed(&a->construct_arg, plan->arg);
	eddy_store_relaxed(&a->construct, plan->construct);
	eddy_store_relaxed(&a->pool_row, row);
	eddy_store_relaxed(&a->pooled, true);
	/* A child's rows must not hold what it has not. */
	if (plan->arena.flags & (EDDY_ARENA_FILE | EDDY_ARENA_NOFORK))
		cached = false;
	/* relaxed, all: as above. */
	eddy_store_relaxed(&p->slots, cached ? p->block->slots : 0);
	eddy_store_relaxed(&p->arena, number);
	eddy_store_relaxed(&p->row, row);
	eddy_store_relaxed(&p->depth, depth);
	eddy_store_relaxed(
	    &p->generation, eddy_load_relaxed(&p->generation) + 1);
	eddy_store_relaxed(&p->handle,
	    (uintptr_t)p + eddy_load_relaxed(&p->generation) % EDDY_POOL_ALIGN);
	/* POOL-R5 and IDLE-R1: all that; before a row of it opens. */
	(void)eddy_xchg_seq_cst(&p->life, LIVE);
	*ret = p;
	return 0;
}

/* Rows that nobody uses any more are empty and closed, in a later epoch. */
static void
close_rows(struct eddy_heap *h, struct eddy_pool_core *p)
{
	struct eddy_row_at at = row_at(p);

	for (unsigned cpu = 0; cpu < first_set(h); cpu++) {
		struct eddy_row *r = eddy_row_header(&at, cpu);
		uint32_t gen;

		if (!is_ready(p->block, cpu))
			continue;
		/* relaxed, all: POOL-R4. */
		gen = eddy_load_relaxed(&r->gen);
		if (gen % 4 == EDDY_ROW_VIRGIN)
			continue;
		eddy_store_relaxed(&r->limits, EDDY_ROW_CLOSED);
		gen = (gen / 4 + 1) << 2 | EDDY_ROW_DRAINED;
		eddy_store_relaxed(&r->w0, (uint64_t)gen << 32 | at.beg);
	}
	for (size_t i = 0; i < h->n_cell_sets; i++)
		if (is_ready(p->block, first_set(h) + i))
			drain_cells(h, cells_at(p, first_set(h) + i));
}

static void
finish(struct eddy_heap *h, struct eddy_pool_core *p)
{
	struct eddy_arena *a = eddy_pool_arena_of(h, p);

	eddy_ring_sweep(h, &p->ring, EDDY_ALL_EPOCHS);
	if (has_rows(p))
		close_rows(h, p);
	/* relaxed: nobody has an object to put. */
	eddy_store_relaxed(&a->pooled, false);
	/* Who makes the pool's arena his by its number, in this moment, keeps
	 * it: arena, struct and rows are lost. */
	if (eddy_reset_destroy(h, a) != 0)
		return;
	put_struct(p);
}

static uint64_t
life(enum phase phase)
{
	return (uint64_t)(uint32_t)eddy_os_pid() << 2 | phase;
}

/* false: it ends, or somebody else holds it; else what to release it by. */
static bool
hold(struct eddy_pool_core *p, uint64_t *ret)
{
	/* relaxed: a guess that the CAS checks. */
	uint64_t seen = eddy_load_relaxed(&p->life);

	*ret = life(HELD);
	/* POOL-A5: the pool, and what who held it last did. */
	return (seen % 4 == LIVE || (seen % 4 == HELD && seen != *ret)) &&
	       eddy_cas_acquire(&p->life, &seen, *ret);
}

static void
release(struct eddy_heap *h, struct eddy_pool_core *p, uint64_t held)
{
	uint64_t seen = held;

	/* POOL-R5: the objects are where they belong.  POOL-A5: or what who
	 * left it did. */
	if (eddy_cas_acq_rel(&p->life, &seen, LIVE) || seen % 4 != LEFT)
		return;
	/* relaxed: published by put_struct. */
	eddy_store_relaxed(&p->life, ENDED);
	finish(h, p);
}

void
eddy_pool_end(struct eddy_heap *h, struct eddy_pool_core *p)
{
	/* relaxed: a guess that the CAS checks. */
	uint64_t seen = eddy_load_relaxed(&p->life);
	uint64_t next;

	do {
		next = seen == life(HELD) ? life(LEFT) : ENDED;
		/* POOL-A5: what who held it did.  POOL-R5: what is left. */
	} while (!eddy_cas_acq_rel(&p->life, &seen, next));
	if (next == ENDED)
		finish(h, p);
}

/* ------------------------------------------------------------------ */
/* Looks from outside */

/* A block's pools that live; NULL: the next is behind the last. */
static struct eddy_pool_core *
next_live(struct eddy_pool_block *b, uint32_t *i)
{
	/* IDLE-A1: who looks has said that nobody does, and must come to all
	 * rows that were opened before. */
	uint32_t n = (uint32_t)(eddy_load_seq_cst(&b->laid) >> 32);

	while (*i < n) {
		struct eddy_pool_core *p = &b->pools[(*i)++];

		/* POOL-A5 and IDLE-A1: pairs with POOL-R5; as above. */
		if (eddy_load_seq_cst(&p->life) % 4 != ENDED)
			return p;
	}
	return NULL;
}

/* Of the rows on a CPU; 0: none is open, nor holds anything. */
static uint64_t
sum_rows(struct eddy_pool_block *b, unsigned cpu)
{
	struct eddy_pool_core *p;
	uint64_t sum = 1;
	bool any = false;

	for (uint32_t i = 0; (p = next_live(b, &i)) != NULL;) {
		struct eddy_row_at at = row_at(p);
		struct eddy_row_stats *s;

		if (!has_rows(p))
			continue;
		s = stats_at(&at, cpu);
		/* relaxed, both: counts. */
		sum = (sum * 31 + eddy_row_sum(&at, cpu, &any)) * 31 +
		      eddy_load_relaxed(&s->refills) +
		      eddy_load_relaxed(&s->overflows);
	}
	return any ? sum | 1 : 0;
}

static void
drain_cpu(struct eddy_heap *h, struct eddy_pool_block *b, unsigned cpu)
{
	struct eddy_row_at rows[EDDY_GATHER_ROWS];
	struct eddy_pool_core *held[EDDY_GATHER_ROWS];
	uint64_t by[EDDY_GATHER_ROWS];
	struct eddy_pool_core *p;
	uint32_t i = 0;

	do {
		unsigned n = 0;

		while (n < EDDY_GATHER_ROWS && (p = next_live(b, &i)) != NULL) {
			bool any = false;

			held[n] = p;
			rows[n] = row_at(p);
			if (has_rows(p))
				(void)eddy_row_sum(&rows[n], cpu, &any);
			if (any && hold(p, &by[n]))
				n++;
		}
		if (n != 0)
			eddy_gather_rows(h, cpu, rows, n, true);
		for (unsigned k = 0; k < n; k++)
			release(h, held[k], by[k]);
	} while (p != NULL);
}

static void
sweep_rings(struct eddy_heap *h, struct eddy_pool_block *b, uint32_t epoch,
    struct eddy_look *l)
{
	struct eddy_pool_core *p;
	uint64_t by;

	for (uint32_t i = 0; (p = next_live(b, &i)) != NULL;) {
		/* relaxed: as the struct's. */
		if (eddy_ring_count(h, &p->ring, eddy_load_relaxed(&p->row)) ==
		    0)
			continue;
		l->any = true;
		if (!hold(p, &by))
			continue;
		eddy_ring_sweep(h, &p->ring, epoch);
		release(h, p, by);
	}
}

/* Cells of a set that may be used, or NULL: there are none. */
static struct eddy_cells *
cells_of(struct eddy_heap *h, struct eddy_pool_core *p, size_t set)
{
	return has_rows(p) && is_ready(p->block, first_set(h) + set)
		   ? cells_at(p, first_set(h) + set)
		   : NULL;
}

static uint64_t
sum_cells(struct eddy_heap *h, struct eddy_pool_block *b)
{
	struct eddy_pool_core *p;
	uint64_t sum = 0;

	for (uint32_t i = 0; (p = next_live(b, &i)) != NULL;)
		for (size_t set = 0; set < h->n_cell_sets; set++) {
			struct eddy_cells *c = cells_of(h, p, set);

			for (unsigned k = 0; c != NULL && k < EDDY_N_CELLS; k++)
				/* IDLE-A1: as of rows. */
				sum = sum * 31 +
				      (uintptr_t)eddy_load_seq_cst(&c->cell[k]);
		}
	return sum;
}

static void
sweep_cells(struct eddy_heap *h, struct eddy_pool_block *b)
{
	struct eddy_pool_core *p;
	uint64_t by;

	for (uint32_t i = 0; (p = next_live(b, &i)) != NULL;) {
		if (!hold(p, &by))
			continue;
		for (size_t set = 0; set < h->n_cell_sets; set++) {
			struct eddy_cells *c = cells_of(h, p, set);

			if (c != NULL)
				drain_cells(h, c);
		}
		release(h, p, by);
	}
}

void
eddy_pools_look(struct eddy_heap *h, struct eddy_look *l)
{
	/* POOL-A2 and IDLE-A1: pairs with POOL-R2; see next_live. */
	struct eddy_pool_block *b = eddy_load_seq_cst(&blocks);
	uint32_t epoch;

	if (b == NULL)
		return;
	/* relaxed: a rule of thumb. */
	epoch = eddy_add_relaxed(&n_looks, 1);
	/* POOL-A2 and IDLE-A1: as above. */
	for (; b != NULL; b = eddy_load_seq_cst(&b->next)) {
		for (unsigned cpu = 0; cpu < first_set(h); cpu++) {
			bool any = l->any;

			if (!is_ready(b, cpu) ||
			    !eddy_look_idle(l, &b->seen[cpu], sum_rows(b, cpu)))
				continue;
			drain_cpu(h, b, cpu);
			/* What cannot be drained is not waited for. */
			l->any = any;
		}
		sweep_rings(h, b, epoch, l);
		if (eddy_look_idle(l, &b->seen[EDDY_MAX_CPUS], sum_cells(h, b)))
			sweep_cells(h, b);
	}
}

static bool
tell_one(struct eddy_heap *h, struct eddy_pool_core *p,
    enum eddy_pool_part part, size_t i, struct eddy_pool_cached *c)
{
	struct eddy_row_at at = row_at(p);
	struct eddy_row_stats *s;
	struct eddy_cells *cells;
	uint32_t cur;

	switch (part) {
	case EDDY_POOL_ROWS:
		s = stats_at(&at, (uint32_t)i);
		/* relaxed, all: statistics. */
		cur =
		    eddy_load_relaxed(&eddy_row_header(&at, (unsigned)i)->cur);
		c->n = cur > at.beg ? (cur - at.beg) / 8 : 0;
		c->most = eddy_load_relaxed(&p->depth);
		c->refills = eddy_load_relaxed(&s->refills);
		c->overflows = eddy_load_relaxed(&s->overflows);
		return true;
	case EDDY_POOL_RINGS:
		c->n = eddy_ring_count(h, &p->ring, c->row);
		c->most = h->sections ? eddy_returns_limit(c->row) : 0;
		return true;
	case EDDY_POOL_CELLS:
		cells = cells_of(h, p, i);
		if (cells == NULL)
			return false;
		c->n = eddy_cells_count(cells);
		c->most = n_cells(p);
		return true;
	}
	return false;
}

void
eddy_pools_tell(struct eddy_heap *h, enum eddy_pool_part part, size_t i,
    void (*seen)(void *arg, const struct eddy_pool_cached *c), void *arg)
{
	/* POOL-A2: pairs with POOL-R2. */
	struct eddy_pool_block *b = eddy_load_acquire(&blocks);

	/* POOL-A2: as above. */
	for (; b != NULL; b = eddy_load_acquire(&b->next)) {
		struct eddy_pool_core *p;

		if (part == EDDY_POOL_ROWS && !is_ready(b, i))
			continue;
		for (uint32_t k = 0; (p = next_live(b, &k)) != NULL;) {
			struct eddy_pool_cached c = {0};

			/* relaxed, both: as the struct's. */
			c.arena = eddy_load_relaxed(&p->arena);
			c.row = eddy_load_relaxed(&p->row);
			if (has_rows(p) && tell_one(h, p, part, i, &c))
				seen(arg, &c);
		}
	}
}
