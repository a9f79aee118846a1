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
 * epoch.  Draining is in gather.h; reopening is here, since it is all that the
 * owner's slow path knows of it: one CAS on gen in any phase, then a section
 * that checks index and gen inside.  tests/model/slot.pml.
 *
 * A row holds objects of one home.  malloc pops from the row of the slot's own
 * home, free pushes on the row that the page's tag names: for objects of other
 * homes that is a remote row, one batch deep, from which they go to a return
 * ring of their home.  Groups of hinted objects have numbers as homes have
 * (heap.h): free has no instruction for them, and who allocates for one pops
 * from the row of its number, two batches deep.
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
#include "lib/heap/pagemap.h"

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

/* Row of the slot's own home that holds no objects: numbers of empty
 * descriptors of batches. */
#define EDDY_SPARE_ROW EDDY_N_ROWS
static_assert(EDDY_SPARE_ROW < EDDY_HOME_ROWS, "a row number of its own");

/* Batches of which a row shall hold two at least: bytes. */
#define EDDY_SMALL_BATCH ((size_t)64 << 10)

enum eddy_row_phase {
	EDDY_ROW_VIRGIN,
	EDDY_ROW_OPEN,
	EDDY_ROW_STOPPING,
	EDDY_ROW_DRAINED,
};

/*
 * Counters.  What is of a group of the slot's home counts with its own.
 * W: sections of that CPU (eddy_section_add), hence exact; in claim
 * mode any thread, by RMW.  R: statistics.  O: none.
 */
struct eddy_row_stats {
	_Atomic uint64_t refills;   /* times the row was found empty */
	_Atomic uint64_t overflows; /* times it was found full */
	_Atomic uint64_t in;        /* objects that it was refilled with */
	_Atomic uint64_t back;      /* of these, from the return ring */
	_Atomic uint64_t out;       /* objects of its home that it sent away */
	_Atomic uint64_t away;      /* objects of other homes sent there */
	/*
	 * Refills and overflows of late: halved now and then, by a store that
	 * may lose others'.  W, R: any thread: they decide who may grow.
	 */
	_Atomic uint32_t misses;
	_Atomic uint32_t spills;
};

struct eddy_slot_stats {
	struct eddy_row_stats row[EDDY_N_ROWS];
	/* Objects sent to each home, its own too. */
	_Atomic uint64_t to_home[EDDY_HOME_NONE + 1];
	_Atomic uint64_t ring_puts;   /* batches */
	_Atomic uint64_t ring_takes;  /* batches */
	_Atomic uint64_t ring_spills; /* of the puts: found no cell */
	_Atomic uint64_t to_slabs;    /* objects: the ring was full, too */
	/* Atomic read-modify-writes of all that: on rings, of free words. */
	_Atomic uint64_t rmws;
	_Atomic uint64_t aborts; /* sections that ended without a commit */
	/* Whose capacity is cut next.  W, R: any thread, by RMW. */
	_Atomic uint64_t hand;
	/* Bytes that the rows may hold; counted anew at every cut.  The same.
	 */
	_Atomic uint64_t promised;
	struct eddy_seen seen;
};

/*
 * A slot: headers of all homes' rows, counters, pointers of its own home's
 * rows, pointers of remote rows home by home, then those of groups.
 */
#define EDDY_SLOT_STATS  65536
#define EDDY_SLOT_LOCAL  (EDDY_SLOT_STATS + 4096)
#define EDDY_SLOT_REMOTE ((EDDY_N_FINE == 8 ? 256 : 236) * 1024)
#define EDDY_REMOTE_SIZE ((EDDY_N_FINE == 8 ? 223 : 199) * EDDY_CACHELINE)
static_assert(sizeof(struct eddy_slot_stats) <= 4096, "one page");
static_assert(
    EDDY_SLOT_REMOTE + EDDY_MAX_HOMES * EDDY_REMOTE_SIZE <= EDDY_SLOT_SIZE,
    "all homes have room");

/* Bytes of a slot that are ever written. */
static inline size_t
eddy_cache_slot_size(const struct eddy_heap *h)
{
	uint32_t n =
	    h->n_homes + EDDY_N_LIVES * h->n_groups * EDDY_GROUP_BATCHES;

	return EDDY_SLOT_REMOTE + (n > 1 ? n * EDDY_REMOTE_SIZE : 0);
}

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

/* The same for a group of hinted objects, or for a home that is not the CPU's;
 * from where there is memory otherwise. */
void *eddy_cache_alloc_of(struct eddy_heap *h, uint32_t number, unsigned row);

/*
 * eddy_cache_large - eddy_large_alloc from the arena of the home that the
 * thread runs in; where that has no memory, from another.
 */
void *eddy_cache_large(
    struct eddy_heap *h, size_t size, size_t align, bool zero);

/* The same of a number's arena; NULL: it has no memory. */
void *eddy_cache_large_of(
    struct eddy_heap *h, uint32_t number, size_t size, size_t align, bool zero);

/* Frees an object whose tag says that it may be cached. */
void eddy_cache_free(struct eddy_heap *h, void *p, uint32_t tag);

/* Makes the slots of all CPUs that the process may use, or its cells, and some
 * batches writable. */
void eddy_cache_prepare(struct eddy_heap *h);

/* Counts anew what the rows of a CPU may hold: some were closed. */
void eddy_cache_recount(struct eddy_heap *h, uint32_t cpu);

/* Gives back to the arenas what the calling CPU's rows hold. */
void eddy_cache_flush(struct eddy_heap *h);

/* The same for all cells of a home. */
void eddy_cache_sweep_cells(struct eddy_heap *h, uint32_t home);

/* The home of the CPU that the calling thread runs on. */
uint32_t eddy_cache_home(struct eddy_heap *h);

/* Where a row's pointers begin in the slot of a CPU in use. */
uint32_t eddy_cache_row_begin(
    struct eddy_heap *h, unsigned cpu, uint32_t place);

/* Limits of a closed row: end 0, beg the largest. */
#define EDDY_ROW_CLOSED ((uint64_t)UINT32_MAX << 32)

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

/* Objects that a group's row may hold: of large ones one batch, since that is
 * 64 KiB already. */
static inline unsigned
eddy_cache_group_depth(unsigned row)
{
	const struct eddy_class *class = &eddy_classes[row];

	return (size_t) class->batch * class->size <= EDDY_SMALL_BATCH
		   ? class->batch * EDDY_GROUP_BATCHES
		   : class->batch;
}

/*
 * A row wherever it lies: malloc's in h->slots, those of pools in slots of
 * their own (pool.h), which the assembly is told.
 */
struct eddy_row_at {
	uintptr_t slots;
	uint32_t place; /* offset of its header in a slot */
	uint32_t beg;   /* of its pointers */
};

static inline struct eddy_row *
eddy_row_header(const struct eddy_row_at *at, unsigned cpu)
{
	return (struct eddy_row *)(at->slots +
				   ((uintptr_t)cpu << EDDY_LG_SLOT) +
				   at->place);
}

/* The row is open on that CPU with this capacity, or (false) may not be; it is
 * looked at from then on. */
bool eddy_row_set(struct eddy_heap *h, const struct eddy_row_at *at,
    uint32_t cpu, unsigned depth);

/* A row of a slot in use for a sum over several; any is set if it is open or
 * holds something. */
uint64_t eddy_row_sum(const struct eddy_row_at *at, unsigned cpu, bool *any);

/*
 * eddy_row_push, _pop, _push_many, _pop_many - the sections, on the CPU that
 * the thread runs on and the row of that place, of whatever home; those of many
 * take the last first, n of them or what there is.
 *
 * slots: readable for each CPU there may be, and for two before the first.
 * Returns: EDDY_SECTION_OK, _FAIL, or _ABORT after some restarts.
 */
int eddy_row_push(
    struct eddy_heap *h, uintptr_t slots, uint32_t place, void *p);
int eddy_row_pop(
    struct eddy_heap *h, uintptr_t slots, uint32_t place, void **ret);
int eddy_row_push_many(struct eddy_heap *h, uintptr_t slots, uint32_t place,
    void *const *objects, unsigned n);
int eddy_row_pop_many(struct eddy_heap *h, uintptr_t slots, uint32_t place,
    void **objects, uint32_t *n);

/* Those of one object, once and no more. */
int eddy_row_try_pop(uintptr_t slots, uint32_t place, void **ret);
int eddy_row_try_push(uintptr_t slots, uint32_t place, void *p);

/* The index of the CPU that the thread's last section saw, if it is one. */
bool eddy_cache_cpu(struct eddy_heap *h, uint32_t *ret);

/* A miss or an overflow more, of late. */
void eddy_row_note(_Atomic uint32_t *mine, _Atomic uint32_t *other);

/* What a row of its own home that has missed or overflowed for the n-th time is
 * to hold: as now, twice as much, or what it needs. */
unsigned eddy_row_aim(
    struct eddy_row_stats *s, unsigned row, unsigned had, uint64_t n);

/*
 * eddy_cache_carry_from, _to - an empty descriptor of batches that an earlier
 * operation on this CPU laid by, if there is one; and lays by what is left in
 * hand, for this CPU or for all.
 */
struct eddy_carry;
void eddy_cache_carry_from(struct eddy_heap *h, struct eddy_carry *c);
void eddy_cache_carry_to(
    struct eddy_heap *h, uint32_t cpu, struct eddy_carry *c);

/* Objects that a row may hold. */
static inline unsigned
eddy_cache_capacity(const struct eddy_row *r)
{
	/* relaxed: the owner's slow path alone decides by it. */
	uint64_t limits = eddy_load_relaxed(&r->limits);
	uint32_t end = (uint32_t)limits;
	uint32_t beg = (uint32_t)(limits >> 32);

	return end > beg ? (end - beg) / 8 : 0;
}

static inline struct eddy_slot_stats *
eddy_cache_stats(const struct eddy_heap *h, unsigned cpu)
{
	return (struct eddy_slot_stats *)(h->slots +
					  ((size_t)cpu << EDDY_LG_SLOT) +
					  EDDY_SLOT_STATS);
}

/* Sets are numbered home by home. */
static inline struct eddy_cell_set *
eddy_cache_cells(const struct eddy_heap *h, unsigned set)
{
	return (struct eddy_cell_set *)h->cells + set;
}

static inline unsigned
eddy_cache_n_cells(struct eddy_heap *h)
{
	return eddy_n_numbers(h) * h->n_cell_sets;
}

/* Home of a slot in use. */
static inline uint32_t
eddy_cache_slot_home(const struct eddy_heap *h, unsigned cpu)
{
	/* relaxed: constant since HEAP-R2. */
	return eddy_load_relaxed(&eddy_cache_row(h, cpu, 0)->gen) /
	       (EDDY_HOME_ROWS * 16);
}

/* Whether anything was ever written to the slot: else it reads as zero. */
static inline bool
eddy_cache_slot_used(const struct eddy_heap *h, unsigned cpu)
{
	/* HEAP-A2 and IDLE-A1: the slot is writable; who looks has said before
	 * that nobody does. */
	return eddy_load_seq_cst(&h->slot_ready[cpu / 64]) >> cpu % 64 & 1;
}

/*
 * Between these two calls of one thread its mode is NONE: around the child of
 * a vfork, which runs on the thread's TLS without its registration.
 */
void eddy_cache_suspend(void);
void eddy_cache_resume(void);

/* While it is closed, all calls of the thread come to C: see own.h. */
void eddy_cache_gate(bool closed);

#endif /* EDDY_CPU_CACHE_H */
