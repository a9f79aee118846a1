/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heap.h - the one heap of the process: where everything lies.
 *
 * Layer     heap (L3).
 * Progress  eddy_heap: wait-free.  eddy_heap_start: wait-free but for system
 *           calls; several threads may build a heap each, one CAS publishes
 *           one of them, the losers unmap theirs (tests/model/init.pml).
 * Memory    one reservation of addresses, without access and without cost:
 *
 *     fixed part | tags | segments | chunk descriptors | slots | cells |
 * batches and, 1 GiB aligned, the range that objects come from.
 *
 * Each arena has a smaller one of its own: see arena.h.  Nothing is ever
 * unmapped again; parts become accessible as the heap grows.
 *
 * Order pairs
 *   HEAP-R1 -> HEAP-A1  the whole struct, from its builder to all.
 *   HEAP-R2 -> HEAP-A2  a slot or the cells made writable.
 *   HEAP-R3 -> HEAP-A3  an arena, from its builder to all.
 */
#ifndef EDDY_HEAP_H
#define EDDY_HEAP_H

#include "lib/arch/rseq.h"
#include "lib/base/atomic.h"
#include "lib/base/base.h"
#include "lib/ctl/conf.h"
#include "lib/data/idset.h"
#include "lib/data/runset.h"
#include "lib/heap/sizeclass.h"
#include "numa/placement.h"

#define EDDY_LG_CHUNK       21
#define EDDY_CHUNK          ((size_t)1 << EDDY_LG_CHUNK)
#define EDDY_CHUNK_PAGES    (EDDY_CHUNK / EDDY_PAGE)
#define EDDY_LG_SEGMENT     30
#define EDDY_SEGMENT        ((size_t)1 << EDDY_LG_SEGMENT)
#define EDDY_SEGMENT_CHUNKS (EDDY_SEGMENT / EDDY_CHUNK)
#define EDDY_MAX_SEGMENTS   65536 /* 64 TiB: lg_range 46 */

static_assert(EDDY_CHUNK_PAGES == EDDY_RUNMAP_UNITS, "one runmap a chunk");
static_assert(EDDY_SEGMENT_CHUNKS == EDDY_RUNMAP_UNITS, "and a segment");
static_assert(EDDY_LG_PAGE == EDDY_LG_PAGE_ASM, "assembly agrees");
static_assert(EDDY_ROW_MAX == EDDY_ROW_MAX_ASM, "assembly agrees");

#define EDDY_SLAB_WORDS (512 / 64) /* 512 objects a slab at most */

/*
 * A chunk's descriptor.  Out of line: nothing of it lies in the chunk.
 */
struct eddy_chunk {
	/* Pages: see runset.h.  owner: arena number, 0 while in no arena. */
	struct eddy_runmap map;
	/*
	 * Bytes of the block that begins here (kind EDDY_TAG_HUGE).
	 * W: whoever has the chunk in hand.  R: holders of the block.
	 */
	_Alignas(EDDY_CACHELINE) _Atomic size_t huge_size;
	/*
	 * Per small class, the head pages of slabs with free objects: hints.
	 * W, R: any CPU.  O: SLAB-R1 -> SLAB-A1.
	 */
	_Alignas(EDDY_CACHELINE) _Atomic uint64_t
	    index[EDDY_N_SMALL][EDDY_RUNMAP_WORDS];
	/*
	 * Per page that is the head of a live slab, its free objects.  A word
	 * belongs to the same head page for ever.
	 * W, R: any CPU, by RMW only.  O: SLAB-R1 -> SLAB-A1, SLAB-R2 ->
	 * SLAB-A2.
	 */
	_Alignas(
	    EDDY_PAGE) _Atomic uint64_t slab[EDDY_CHUNK_PAGES][EDDY_SLAB_WORDS];
};

static_assert(offsetof(struct eddy_chunk, slab) == EDDY_PAGE, "one page");
static_assert(sizeof(struct eddy_chunk) == 9 * EDDY_PAGE, "36 KiB");

struct eddy_segment {
	/* Chunks: see runset.h.  owner: arena number, 0 while in no arena. */
	struct eddy_runmap map;
	/*
	 * Chunks whose page bits are not kept while they serve a huge block:
	 * all 512 pages are as the segment's dirty bit says.
	 * W: whoever has the chunk in hand, by RMW.  R: the same.
	 */
	_Alignas(EDDY_CACHELINE) _Atomic uint64_t uniform[EDDY_RUNMAP_WORDS];
	/*
	 * The policy that the kernel was told for it, and a tag that grows when
	 * somebody told it another without having the segment: see bind.h.
	 * W, R: who claims it; who moves its arena, to "unknown".
	 * O: BIND-R3 -> BIND-A3.
	 */
	_Atomic uint64_t bound;
};

/* Kinds of an arena's hints: chunks with free objects of a class, or runs. */
#define EDDY_HINT_CLASS(row) ((unsigned)(row)-1)
#define EDDY_HINT_RUNS       EDDY_N_SMALL
#define EDDY_N_HINTS         48

/*
 * Memory of one node: its segments, their chunks, runs and slabs.  Numbers 1 to
 * n_homes serve the homes, those above were created by the program.
 */
struct eddy_arena {
	/* Constant from HEAP-R3 on. */
	struct eddy_idset hints;         /* over chunk numbers */
	struct eddy_idset segment_hints; /* over segment numbers */
	struct eddy_runset pages;
	struct eddy_runset chunks;
	uint32_t number;
	uint32_t home; /* EDDY_HOME_NONE: created by the program */
	size_t fixed_size;
	/*
	 * Kernel's number of the node that its memory is bound to.
	 * W: eddy_bind_move.  R: any CPU.  O: BIND-R1 -> BIND-A1.
	 */
	_Atomic uint32_t node;
	/*
	 * The chunk and the segment that became empty last, plus 1: kept, until
	 * another does.
	 * W, R: any CPU.  O: none: a hint that a CAS checks.
	 */
	_Atomic uint32_t spare;
	_Atomic uint32_t spare_segment;
	/* Times that it took chunks from its segments.  W, R: any CPU.
	 * O: none: a count. */
	_Atomic uint32_t n_grown;
};

/* Pointers on their way from one CPU to another: see returns.h. */
struct eddy_batch {
	/* W, R: as a link, whoever has it in hand.  O: RET-R2 -> RET-A2. */
	_Atomic uint32_t next;
	/* As p[]; read by statistics at any time, hence atomic. */
	_Atomic uint32_t n;
	/*
	 * Batches below and with it on the spill stack.
	 * W: whoever has it in hand.  R: who puts the next one; a stale value
	 * is found out by the CAS.  O: RET-R1 -> RET-A1.
	 */
	_Atomic uint32_t depth;
	/*
	 * Gathers of its home so far, when it was put.
	 * W: whoever has it in hand.  R: sweeps.  O: none: a guess.
	 */
	_Atomic uint32_t epoch;
	/* W, R: whoever has it in hand.  O: RET-R1 -> RET-A1. */
	void *p[64];
} __attribute__((aligned(EDDY_CACHELINE)));

#define EDDY_MAX_BATCHES ((uint32_t)1 << 20) /* fewer under a limit */
#define EDDY_RING_CELLS  16
#define EDDY_CELL_FULL   ((uint32_t)1 << 31)
static_assert(EDDY_MAX_BATCHES < EDDY_CELL_FULL, "a number and a bit");

struct eddy_ring {
	/*
	 * Numbers of descriptors, with EDDY_CELL_FULL or empty, or 0.
	 * W, R: any CPU, by RMW.  O: RET-R1 -> RET-A1, RET-R2 -> RET-A2.
	 */
	_Alignas(EDDY_CACHELINE) _Atomic uint32_t cell[EDDY_RING_CELLS];
	/*
	 * What did not find a cell: number of the newest batch, and a tag that
	 * grows at pops.
	 * W, R: any CPU, by CAS.  O: RET-R1 -> RET-A1.
	 */
	_Alignas(EDDY_CACHELINE) _Atomic uint64_t spill;
};

/* Calls home of what is parked elsewhere: see gather.h. */
struct eddy_gather {
	/* So many.  W, R: any CPU.  O: none: a rule of thumb. */
	_Atomic uint32_t epoch;
	/*
	 * Refills for which the home's arena is passed by: it had no memory,
	 * and to ask the kernel again each time is slow.  The same.
	 */
	_Atomic uint32_t dry;
	/* When the last one was, in seconds.  The same. */
	_Atomic uint32_t time;
	/* Chunks that the arena had taken when it was looked at.  The same. */
	_Atomic uint32_t chunks;
};

/*
 * Homes 0 to EDDY_MAX_HOMES - 1 have rows.  Blocks of this one have places in a
 * slot too, but none that is ever open: they go to their arena at once.
 */
#define EDDY_HOME_NONE  63
#define EDDY_MAX_ARENAS 4095
/* Segments of the range for each arena: with fewer there is none of its own. */
#define EDDY_MIN_SEGMENTS 2

static_assert(EDDY_MAX_HOMES <= EDDY_HOME_NONE, "a home of its own");

struct eddy_heap {
	/* Constant from HEAP-R1 on. */
	struct eddy_opts opts;
	uintptr_t base; /* of the range */
	uint32_t n_segments;
	uint32_t n_chunks;
	uint32_t first_chunk; /* a random place in the first segment */
	bool reserved; /* the range is ours; else chunks are mapped on demand */
	bool sections; /* CPU caches by rseq; else claim mode */
	bool cached;   /* there are caches; else every call passes through C */
	_Atomic uint32_t *tags; /* one a page: see pagemap.h */
	struct eddy_segment *segments;
	struct eddy_chunk *chunks;
	char *slots;
	uint32_t n_slots;
	uint32_t n_homes;
	char *cells;
	struct eddy_batch *batches;
	uint32_t max_batches;
	uint32_t n_cell_sets;    /* a power of two */
	size_t reservation_size; /* all but the range, where it is apart */
	size_t fixed_size;

	struct eddy_ring *rings; /* by row offset / 16 */
	struct eddy_placement places;

	/* By number.  W: who built it.  R: any CPU.  O: HEAP-R3 -> HEAP-A3. */
	_Atomic(struct eddy_arena *) arenas[EDDY_MAX_ARENAS + 1];
	/* The largest number given out.  W, R: any CPU.  O: none. */
	_Atomic uint32_t n_arenas;

	/*
	 * Free segments, a bit each.
	 * W, R: any CPU.  O: SEG-R2 -> SEG-A2.
	 */
	_Alignas(EDDY_CACHELINE) _Atomic uint64_t
	    free_segments[EDDY_MAX_SEGMENTS / 64];
	/*
	 * Unused batches: number of the first, and a tag that grows at pops.
	 * W, R: any CPU.  O: RET-R2 -> RET-A2.
	 */
	_Alignas(EDDY_CACHELINE) _Atomic uint64_t free_batches;
	/* Numbers given out.  W, R: any CPU.  O: none. */
	_Atomic uint32_t n_batches;
	/* Policies that the kernel refused.  W, R: any CPU.  O: none. */
	_Atomic uint32_t n_unplaced;
	struct eddy_gather gathers[EDDY_MAX_HOMES];
	/* Bytes that a CPU's rows may hold.  W, R: any CPU.  O: none. */
	_Atomic uint64_t cpu_budget;
	/* When that was looked at, in seconds.  The same. */
	_Atomic uint32_t budget_time;
	/* Chunks made accessible.  W, R: any CPU.  O: none: a count. */
	_Atomic uint32_t n_ready;
	/* From so many on the limit on addresses is looked at.  The same. */
	_Atomic uint32_t ask_limit_at;
	/* Set once cells are writable.  W: any.  O: HEAP-R2 -> HEAP-A2. */
	_Atomic uint32_t cells_ready;
	/* The same of each CPU's slot, a bit each. */
	_Atomic uint64_t slot_ready[EDDY_MAX_CPUS / 64];
	/* Large blocks moved by mremap; each may cost a mapping.  O: none. */
	_Atomic uint32_t n_moves;
};

extern _Atomic(struct eddy_heap *) eddy_heap_published;

/* Builds the heap, or finds it built.  NULL: no memory at all. */
struct eddy_heap *eddy_heap_start(void);

/* Writes eddy_fast from the published heap: the same words whoever does. */
void eddy_heap_fill_fast(struct eddy_heap *h);

/* The heap, NULL before the first allocation. */
static inline struct eddy_heap *
eddy_heap_peek(void)
{
	/* HEAP-A1: pairs with HEAP-R1. */
	return eddy_load_acquire(&eddy_heap_published);
}

static inline struct eddy_heap *
eddy_heap(void)
{
	struct eddy_heap *h = eddy_heap_peek();

	return eddy_likely(h != NULL) ? h : eddy_heap_start();
}

/* The arena of that number; NULL for numbers that no arena has (yet). */
static inline struct eddy_arena *
eddy_arena_at(struct eddy_heap *h, uint32_t number)
{
	/* HEAP-A3: pairs with HEAP-R3. */
	return eddy_load_acquire(&h->arenas[number]);
}

static inline void *
eddy_page_address(const struct eddy_heap *h, uint32_t chunk, unsigned page)
{
	return (void *)(h->base + ((uintptr_t)chunk << EDDY_LG_CHUNK) +
			((uintptr_t)page << EDDY_LG_PAGE));
}

#endif /* EDDY_HEAP_H */
