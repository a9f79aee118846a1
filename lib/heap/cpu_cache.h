/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cpu_cache.h - what malloc and free do when the hit path has missed.
 *
 * Layer     heap (L3).
 * Progress  lock-free but for system calls: the rows themselves are wait-free,
 *           a batch is the arena's.
 * Memory    a slot per CPU, a row per home and size class; laid out at start,
 *           never moved.  A thread has a pointer of its own, no objects.
 *
 * A row is a stack of pointers; who may change what:
 *   cur       sections of that CPU, by a plain store; a drainer of a closed
 *             row, by CAS of {cur, gen}
 *   gen       CAS only: epoch << 2 | phase
 *   end, beg  the limits section opens and resizes, a drainer closes, both by
 *             one store of 64 bits; {0, ~0} is closed, and so are all zeros
 * cur and gen are two 32-bit words and one 64-bit word.  C11 has no word for
 * that; single-copy atomicity on x86-64 and arm64 has.
 *
 * Phases: VIRGIN (all zero) -> OPEN -> STOPPING -> DRAINED -> OPEN of the next
 * epoch.  Draining comes with the background threads; reopening is here, since
 * it is all that the owner's slow path knows of it: one CAS on gen in any
 * phase, then a section that checks index and gen inside.  tests/model/
 * slot.pml.
 *
 * A cached object belongs to nobody: a thread killed in a section loses
 * nothing, between a commit and its next step the batch in its hand.
 *
 * Orders whose other half is a section (assembly) or a drainer
 *   ROW-F1  limits closed, before the first cur of a virgin row; the other
 *           half is the load of cur in pop and flush (arm64: ldar).
 *   ROW-F2  what a row's last drainer saw, it saw before the row is reopened.
 */
#ifndef EDDY_CPU_CACHE_H
#define EDDY_CPU_CACHE_H

#include "lib/data/cells.h"
#include "lib/heap/heap.h"

struct eddy_row {
	union {
		_Atomic uint64_t w0; /* {cur, gen} */
		struct {
			_Atomic uint32_t cur;
			_Atomic uint32_t gen;
		};
	};
	union {
		_Atomic uint64_t limits; /* {end, beg} */
		struct {
			_Atomic uint32_t end;
			_Atomic uint32_t beg;
		};
	};
};

static_assert(offsetof(struct eddy_row, cur) == EDDY_ROW_CUR &&
		  offsetof(struct eddy_row, gen) == EDDY_ROW_GEN &&
		  offsetof(struct eddy_row, end) == EDDY_ROW_END &&
		  offsetof(struct eddy_row, beg) == EDDY_ROW_BEG,
    "assembly agrees");

enum eddy_row_phase {
	EDDY_ROW_VIRGIN,
	EDDY_ROW_OPEN,
	EDDY_ROW_STOPPING,
	EDDY_ROW_DRAINED,
};

/* Counters of a row.  W, R: any thread, relaxed RMW. */
struct eddy_row_stats {
	_Atomic uint64_t refills;
	_Atomic uint64_t overflows;
	/*
	 * The same of late: halved now and then, by a store that may lose
	 * others'.  W, R: any thread.  O: none: they decide who may grow.
	 */
	_Atomic uint32_t misses;
	_Atomic uint32_t spills;
};

/* The last page of a slot. */
struct eddy_slot_stats {
	struct eddy_row_stats row[EDDY_N_ROWS];
	_Atomic uint64_t aborts; /* sections that ended without a commit */
	_Atomic uint64_t hand;   /* whose capacity is cut next */
	/* Bytes that the rows may hold; counted anew at every cut. */
	_Atomic uint64_t promised;
};

#define EDDY_SLOT_STATS (EDDY_SLOT_SIZE - 4096)
static_assert(sizeof(struct eddy_slot_stats) <= 4096, "one page");

/* Claim mode: rows of cells, one set per group of threads. */
struct eddy_cell_set {
	struct eddy_cells row[64];
	struct eddy_slot_stats stats;
	char pad[4096 - sizeof(struct eddy_slot_stats)];
};

/* What a thread's calls go through; the order is that of preference. */
enum eddy_cache_mode {
	EDDY_CACHE_ROWS,  /* restartable sequences */
	EDDY_CACHE_CELLS, /* claim mode */
	EDDY_CACHE_NONE,  /* straight to the slabs */
};

/* An object of the row; NULL when there is no memory. */
void *eddy_cache_alloc(struct eddy_heap *h, unsigned row);

/* Frees an object whose tag says that it may be cached. */
void eddy_cache_free(struct eddy_heap *h, void *p, uint32_t tag);

/* Gives back to the arena what the calling CPU's rows, all rings, all cells
 * hold: everything that can be reached without another CPU. */
void eddy_cache_flush(struct eddy_heap *h);

/* The same for the cells alone. */
void eddy_cache_sweep_cells(struct eddy_heap *h);

/*
 * The mode of the calling thread; attaches it to its rseq area if it can be.
 * Wait-free; a system call at most once a thread.
 */
enum eddy_cache_mode eddy_cache_attach(struct eddy_heap *h);

/* Header of a row in the slot of a CPU. */
static inline struct eddy_row *
eddy_cache_row(const struct eddy_heap *h, unsigned cpu, uint32_t place)
{
	return (struct eddy_row *)(h->slots + ((size_t)cpu << EDDY_LG_SLOT) +
				   place);
}

static inline struct eddy_slot_stats *
eddy_cache_stats(const struct eddy_heap *h, unsigned cpu)
{
	return (struct eddy_slot_stats *)(h->slots +
					  ((size_t)cpu << EDDY_LG_SLOT) +
					  EDDY_SLOT_STATS);
}

static inline struct eddy_cell_set *
eddy_cache_cells(const struct eddy_heap *h, unsigned set)
{
	return (struct eddy_cell_set *)h->cells + set;
}

/* Whether anything was ever written to the slot: else it reads as zero. */
static inline bool
eddy_cache_slot_used(const struct eddy_heap *h, unsigned cpu)
{
	/* HEAP-A2: the slot is writable. */
	return eddy_load_acquire(&h->slot_ready[cpu / 64]) >> cpu % 64 & 1;
}

/*
 * Between these two calls of one thread its mode is NONE: around the child of
 * a vfork, which runs on the thread's TLS without its registration.
 */
void eddy_cache_suspend(void);
void eddy_cache_resume(void);

#endif /* EDDY_CPU_CACHE_H */
