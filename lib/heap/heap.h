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

#include <sys/types.h>

#include "lib/arch/rseq.h"
#include "lib/base/atomic.h"
#include "lib/base/base.h"
#include "lib/ctl/conf.h"
#include "lib/data/idset.h"
#include "lib/data/runset.h"
#include "lib/heap/sizeclass.h"
#include "lib/heap/tally.h"
#include "lib/policy/decay.h"
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
static_assert(EDDY_CHUNK == EDDY_TALLY_CHUNK, "tally.h agrees");
static_assert(EDDY_LG_PAGE == EDDY_LG_PAGE_ASM, "assembly agrees");
static_assert(EDDY_ROW_MAX == EDDY_ROW_MAX_ASM, "assembly agrees");

#define EDDY_SLAB_WORDS (EDDY_SLAB_OBJECTS / 64)

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
	 * Of memory of users' hooks: pages that commit must make usable first;
	 * pages without a dirty bit that may hold anything; pages that dalloc
	 * took, in nobody's hand for ever.  See hooks.h.
	 * W, R: whoever has the page in hand, by RMW.  O: RUN-R2 -> RUN-A2.
	 */
	_Alignas(EDDY_CACHELINE) _Atomic uint64_t raw[EDDY_RUNMAP_WORDS];
	_Alignas(EDDY_CACHELINE) _Atomic uint64_t stale[EDDY_RUNMAP_WORDS];
	_Alignas(EDDY_CACHELINE) _Atomic uint64_t absent[EDDY_RUNMAP_WORDS];
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
	/* Chunks in use by none, all of them dirty, as `muzzy` of pages. */
	_Alignas(EDDY_CACHELINE) _Atomic uint64_t muzzy[EDDY_RUNMAP_WORDS];
	/*
	 * Number of the arena that its dirty pages are counted with: the
	 * owner, or the last one.
	 * W: who has the segment in hand.  R: who has a part of it in hand,
	 * and purges, as a hint.  O: RUN-R2 -> RUN-A2, SEG-R2 -> SEG-A2.
	 */
	_Atomic uint32_t counted;
	/*
	 * Chunks from the first on that shall have no huge pages: see thp.h.
	 * W, R: who gives memory back.  O: none: it only grows.
	 */
	_Atomic uint32_t broken;
	/*
	 * The arena that alone may have the segment, 0: any.  Its file lies
	 * behind it, and that is so for ever (backing.h); or its hooks gave
	 * memory of it (hooks.h).
	 * W: who has the segment in hand; with hooks, a part of it.
	 * R: who has a part of it in hand, others as a guess.
	 * O: SEG-R2 -> SEG-A2, RUN-R2 -> RUN-A2.
	 */
	_Atomic uint32_t tied;
	/* How many chunks the file has.  The same. */
	_Atomic uint32_t n_chunks;
	/*
	 * Chunks that lie in one extent of users' hooks with the one before.
	 * W: who has both in hand, by RMW.  R: who has one of them.
	 * O: RUN-R2 -> RUN-A2.
	 */
	_Alignas(EDDY_CACHELINE) _Atomic uint64_t joined[EDDY_RUNMAP_WORDS];
};

/* What lies behind the memory of an arena: see backing.h. */
enum eddy_backing_kind {
	EDDY_PRIVATE,
	EDDY_FILE_PUNCHED, /* its room can be given back */
	EDDY_FILE_KEPT,    /* it keeps its room */
};

struct eddy_backing {
	enum eddy_backing_kind kind;
	bool fill; /* memory has its room before a block is handed out */
	/*
	 * Whether a forked child does not have the memory: it is of a file, or
	 * such hooks gave it (hook_sets.h).
	 * W: who builds it; such hooks.  R: any CPU.  O: HOOK-R1 -> HOOK-A1.
	 */
	_Atomic bool apart;
	/*
	 * If so: 1 in the process that has the memory, 0 in its children; NULL:
	 * the kernel cannot do that, and the process is pid.
	 * W: as `apart`; the kernel, at fork.  R: any CPU.  O: HOOK-R1 ->
	 * HOOK-A1.
	 */
	_Atomic(_Atomic uint32_t *) here;
	_Atomic pid_t pid;
};

/* An arena that lies where its memory is touched. */
#define EDDY_NO_NODE UINT32_MAX

/*
 * Pages of an arena in numbers, and what is to become of those not in use: see
 * reclaim.h.  All hints: the bits are the truth; a thread that dies between a
 * bit and its number leaves them apart until the next idle step.
 * W, R: any CPU.  O: none.
 */
struct eddy_reclaim {
	_Alignas(EDDY_CACHELINE) _Atomic int64_t active; /* in use */
	_Atomic int64_t backed;  /* with dirty bits: active, dirty, muzzy */
	_Atomic int64_t peak;    /* most active that a use since then led to */
	_Atomic int64_t most;    /* most not in use since the last step */
	_Atomic int64_t wake_at; /* not in use: so many call for a step */
	_Atomic int64_t muzzy;   /* with muzzy bits */
	/* When the next step is due, ms; EDDY_NEVER. */
	_Atomic uint64_t due;
	/* Pages in use when the last epoch was closed. */
	_Atomic int64_t before;
	/*
	 * How much was free and dirty, in 256ths of what was in use, when clean
	 * pages had to be taken all the same: holes that nothing fitted into.
	 * And when it was halved last, ms.
	 */
	_Atomic uint32_t holes;
	_Atomic uint64_t holes_time;
	/* Length of the last long sleep, ms, while all that is backed is used
	 * again and again; and whether a step is the first after one. */
	_Atomic uint32_t quiet;
	_Atomic uint32_t probe;
	/* Where the last purge stopped: see purge.c. */
	_Alignas(EDDY_CACHELINE) _Atomic uint64_t cursor;
	/* The kernel took nothing back: no purge until then, ms. */
	_Atomic uint64_t hold;
	/* What `backed` was off by when a step looked at the bits. */
	_Atomic int64_t wrong;
	/* Options; the control plane writes.  floor: pages that stay backed. */
	_Atomic int64_t floor;
	_Atomic int64_t dirty_decay_ms;
	_Atomic int64_t muzzy_decay_ms;
	struct eddy_decay dirty;     /* use: pages in use */
	struct eddy_decay muzzy_age; /* use: pages in use or dirty */
};

/* Kinds of an arena's hints: chunks with free objects of a class, or runs. */
#define EDDY_HINT_CLASS(row) ((unsigned)(row)-1)
#define EDDY_HINT_RUNS       EDDY_N_SMALL
#define EDDY_N_HINTS         56

struct extent_hooks_s;

/* Makes an object of memory that was none. */
typedef void eddy_construct(void *arg, void *object);

/*
 * Memory of one node: its segments, their chunks, runs and slabs.  Numbers 1 to
 * n_homes serve the homes, in a process that may profile as many above them the
 * samples of these homes; the rest were created by the program, or for a group
 * of hinted objects when the first of them came.
 */
struct eddy_arena {
	/* Constant from HEAP-R3 on. */
	struct eddy_idset hints;         /* over chunk numbers */
	struct eddy_idset segment_hints; /* over segment numbers */
	/*
	 * A bit a segment: those whose dirty pages are counted with it, so all
	 * that it owns, and what it had last.
	 * W: who has the segment in hand, by RMW.  R: any CPU.
	 * O: none: the segment's own words tell.
	 */
	_Atomic uint64_t *segments;
	struct eddy_runset pages;
	struct eddy_runset chunks;
	uint32_t number;
	uint32_t home; /* EDDY_HOME_NONE: created by the program; or _SAMPLES;
			* of a group its number */
	struct eddy_backing backing;
	size_t fixed_size;
	/*
	 * Whether it has hooks, or had some: its memory may be theirs, and
	 * every step on it is looked at.  Only ever set. W: who sets hooks.  R:
	 * any CPU.  O: HOOK-R1 -> HOOK-A1.
	 */
	_Atomic bool hooked;
	/* NULL: the defaults.  W: the control plane.  R: any CPU.
	 * O: HOOK-R1 -> HOOK-A1. */
	_Atomic(struct extent_hooks_s *) hooks;
	/*
	 * What the ready-made hooks are for that it has memory of, 0: none: see
	 * hook_sets.h.  W: these hooks, the control plane.  R: any CPU.
	 * O: none: a hint.
	 */
	_Atomic uint32_t sets;
	/* The chunk, plus 1, that its hooks gave when it was created, for when
	 * they give no more.  W, R: any CPU, by RMW.  O: none: in hand. */
	_Atomic uint32_t reserve;
	/*
	 * Kernel's number of the node that its memory is bound to, or
	 * EDDY_NO_NODE.
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
	/*
	 * Whether it is in use, {pid of who resets it, phase}: see reset.h.
	 * W: the control plane.  R: any CPU.  O: LIFE-R1 -> LIFE-A1, LIFE-R2
	 * -> LIFE-A2.
	 */
	_Atomic uint64_t life;
	/*
	 * What it was made for failed, and it ends at once: programs have never
	 * seen its number.
	 * W: who makes it.  R: any CPU.  O: none: of what may be counted.
	 */
	_Atomic bool stillborn;
	/* {pid, threads bound to it}: see own.h.  W, R: any CPU.  O: none: a
	 * count. */
	_Atomic uint64_t bound;
	/*
	 * Of a pool (pool.h): the row of its objects, 0 in all other arenas;
	 * and whether it lives, so that no slab of it is retired.
	 * W: who creates it, who ends it.  R: any CPU.  O: none: pinned by
	 * objects in hand, which came later.
	 */
	_Atomic uint32_t pool_row;
	_Atomic bool pooled;
	/* Makes its objects, once each; NULL: nothing does.  The same. */
	_Atomic(eddy_construct *) construct;
	_Atomic(void *) construct_arg;
	/* Times that it took chunks from its segments.  W, R: any CPU.
	 * O: none: a count. */
	_Atomic uint32_t n_grown;
	/* Regions that take their memory from it, and stretches of others that
	 * grew while their thread was bound to it.  The same. */
	_Atomic uint32_t n_regions;
	struct eddy_reclaim reclaim;
	struct eddy_tally tally; /* what is out: see tally.h */
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

/*
 * What a look at caches saw (gather.h): a sum over them when they were last
 * seen to have changed, and when that was, ms.
 * W, R: who looks.  O: none: a hint.
 */
struct eddy_seen {
	_Atomic uint64_t sum;
	_Atomic uint64_t at;
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

/* How long a block lives, as the program has it: the same as eddy_lifetime. */
enum eddy_life {
	EDDY_LIFE_UNKNOWN,
	EDDY_LIFE_SHORT,
	EDDY_LIFE_LONG,
};
#define EDDY_N_LIVES 2 /* but for the unknown */
/* Batches that a CPU's row of hinted objects holds. */
#define EDDY_GROUP_BATCHES 2

/*
 * Homes 0 to EDDY_MAX_HOMES - 1 have rows.  Blocks of this one have places in a
 * slot too, but none that is ever open: they go to their arena at once.
 */
#define EDDY_HOME_NONE 63
/* The same of small samples of the heap profile: see lib/prof/sample.h. */
#define EDDY_HOME_SAMPLES 62
#define EDDY_MAX_ARENAS   4095
/* Segments of the range for each arena: with fewer there is none of its own. */
#define EDDY_MIN_SEGMENTS 2

static_assert(EDDY_MAX_HOMES <= EDDY_HOME_SAMPLES, "homes of their own");

struct eddy_wake;

struct eddy_heap {
	/* Constant from HEAP-R1 on. */
	struct eddy_opts opts;
	char conf_link[EDDY_CONF_LINK_MAX]; /* the link's options, or "" */
	uintptr_t base;                     /* of the range */
	uint32_t n_segments;
	uint32_t n_chunks;
	uint32_t first_chunk; /* a random place in the first segment */
	bool reserved; /* the range is ours; else chunks are mapped on demand */
	bool sections; /* CPU caches by rseq; else claim mode */
	bool limited;  /* an option limits what may be backed */
	bool cached;   /* there are caches; else every call passes through C */
	_Atomic uint32_t *tags; /* one a page: see pagemap.h */
	struct eddy_segment *segments;
	struct eddy_chunk *chunks;
	char *slots;
	uint32_t n_slots;
	uint32_t n_homes;
	uint32_t n_samples; /* homes that have an arena for samples: all or 0 */
	/*
	 * Groups of hinted objects, of each lifetime: one a home, or fewer that
	 * homes share.  They are numbered as homes, behind them, short ones
	 * first, and have rows, rings, cells as homes have.
	 */
	uint32_t n_groups;
	uint32_t n_with_rows; /* n_homes + EDDY_N_LIVES * n_groups */
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
	/* Numbers of the groups' arenas, 0: none yet.  W: who needs the first,
	 * by CAS.  R: any CPU.  O: none: HEAP-R3 orders what they name. */
	_Atomic uint32_t group_arena[EDDY_MAX_HOMES];
	/* Whether there was ever a hint.  W: who makes a group's arena.
	 * R: any CPU.  O: IDLE-R1 -> IDLE-A1: set before a row is opened. */
	_Atomic uint32_t hinted;

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
	/* All up to this one are accessible.  W: the control plane.  R: any
	 * CPU.  O: none: a system call lies before. */
	_Atomic uint32_t batches_ready;
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
	/* Set once cells are writable.  W, R: any CPU.  O: HEAP-R2 -> HEAP-A2,
	 * IDLE-R1 -> IDLE-A1. */
	_Atomic uint32_t cells_ready;
	/* The same of each CPU's slot, a bit each. */
	_Atomic uint64_t slot_ready[EDDY_MAX_CPUS / 64];
	/*
	 * When slow paths shall do a step of housekeeping if no background
	 * thread does, ms; EDDY_NEVER.  W, R: any CPU.  O: none: a hint.
	 */
	_Alignas(EDDY_CACHELINE) _Atomic uint64_t due;
	/* Whether CPU caches are looked at from time to time: see gather.h.
	 * W, R: any CPU.  O: IDLE-R2 -> IDLE-A2. */
	_Atomic uint32_t watched;
	/* The next look, and the time to it, ms; 0: at once.
	 * W, R: any CPU.  O: none: a hint. */
	_Atomic uint64_t look_at;
	_Atomic uint64_t look_every;
	struct eddy_seen cells_seen;
	/* What was given back within the rate up to then, ms.  The same. */
	_Atomic uint64_t paid_until;
	/* Bytes given back, calls for that, calls refused.  The same. */
	_Atomic uint64_t n_purged;
	_Atomic uint64_t n_purges;
	_Atomic uint64_t n_refused;
	/* See thp.h.  W, R: who gives memory back.  O: none: all find the
	 * same. */
	_Atomic uint64_t huge_page;
	/* See warm.h.  W: the control plane.  R: any CPU.  O: none. */
	_Atomic uint32_t frozen;
	/* Since then: growth that was wanted; what others were before.
	 * W, R: any CPU.  O: none: counts. */
	_Atomic uint64_t frozen_growth;
	_Atomic uint64_t frozen_calls;
	_Atomic uint64_t frozen_faults;
	_Atomic uint64_t frozen_purges;
	/* Chunks that the kernel would not lock.  W, R: any CPU.  O: none. */
	_Atomic uint64_t n_unlocked;
	/* Chunks for which there were no huge pages.  The same. */
	_Atomic uint64_t n_not_huge;
	/* Chunks of which the kernel did not take what ready-made hooks told
	 * it. The same. */
	_Atomic uint64_t n_unadvised;
	/* Bytes that may be backed, and when that was looked at, in seconds.
	 * W, R: any CPU.  O: none: a rule of thumb. */
	_Atomic uint64_t limit;
	_Atomic uint32_t limit_time;
	/* Large blocks moved by mremap; each may cost a mapping.  O: none. */
	_Atomic uint32_t n_moves;
	/*
	 * Background threads of this process: see wake.h.
	 * W: who wants the first.  R: any CPU.  O: WAKE-R1 -> WAKE-A1.
	 */
	_Atomic(struct eddy_wake *) wake;
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

/*
 * Numbers of homes, and of groups if there are any, whose rows, rings and cells
 * may hold something.
 */
static inline uint32_t
eddy_n_numbers(struct eddy_heap *h)
{
	/* IDLE-A1: after it was said that nobody looks. */
	return eddy_load_seq_cst(&h->hinted) != 0 ? h->n_with_rows : h->n_homes;
}

static inline bool
eddy_is_group(const struct eddy_heap *h, uint32_t number)
{
	return number >= h->n_homes && number < h->n_with_rows;
}

/* Where a home's objects of a lifetime are: a group's number, or its own. */
static inline uint32_t
eddy_group_of(const struct eddy_heap *h, uint32_t home, enum eddy_life life)
{
	uint32_t n = h->n_groups;

	if (life == EDDY_LIFE_UNKNOWN || n == 0)
		return home;
	return h->n_homes + ((uint32_t)life - 1) * n +
	       (n == h->n_homes ? home : home % n);
}

/* Whether a number has an arena, or gets one for the asking. */
static inline bool
eddy_is_there(const struct eddy_heap *h, uint32_t number)
{
	/* relaxed: as of some moment. */
	return !eddy_is_group(h, number) ||
	       eddy_load_relaxed(&h->group_arena[number - h->n_homes]) != 0;
}

/* Of a group's number, or a home's. */
static inline enum eddy_life
eddy_life_of(const struct eddy_heap *h, uint32_t number)
{
	if (!eddy_is_group(h, number))
		return EDDY_LIFE_UNKNOWN;
	return (enum eddy_life)(1 + (number - h->n_homes) / h->n_groups);
}

/* The first home that a number serves. */
static inline uint32_t
eddy_base_home(const struct eddy_heap *h, uint32_t number)
{
	return eddy_is_group(h, number) ? (number - h->n_homes) % h->n_groups
					: number;
}

/* Whether a CPU of this home has objects of that number for its own. */
static inline bool
eddy_is_own(const struct eddy_heap *h, uint32_t home, uint32_t number)
{
	return eddy_group_of(h, home, eddy_life_of(h, number)) == number;
}

/* Segments and chunks, from the first on, whose descriptors are readable: those
 * above were never used. */
static inline size_t
eddy_chunks_readable(void)
{
	/* SEG-A1: pairs with SEG-R1. */
	return eddy_load_acquire(&eddy_fast.limit) / EDDY_CHUNK_PAGES;
}

static inline size_t
eddy_segments_readable(void)
{
	return eddy_chunks_readable() / EDDY_SEGMENT_CHUNKS;
}

/* The place of a page in the range, by which it is known inside. */
static inline void *
eddy_page_place(const struct eddy_heap *h, uint32_t chunk, unsigned page)
{
	return (void *)(h->base + ((uintptr_t)chunk << EDDY_LG_CHUNK) +
			((uintptr_t)page << EDDY_LG_PAGE));
}

/* Where its memory is, of a chunk that is ready: the same but for memory of
 * users' hooks. */
static inline void *
eddy_page_address(const struct eddy_heap *h, uint32_t chunk, unsigned page)
{
	/* relaxed: the caller has part of the chunk in hand. */
	return (char *)eddy_page_place(h, chunk, page) +
	       eddy_load_relaxed(&h->chunks[chunk].map.away);
}

#endif /* EDDY_HEAP_H */
