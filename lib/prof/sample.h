/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sample.h - which allocations are sampled, and what becomes of samples.
 *
 * Layer     prof (L4).
 * Progress  lock-free but for system calls: growth, and dumps that are due.
 * Memory    ground.h, records.h, stacks.h; small samples lie in an arena of
 *           their own for each home.
 * Context   any thread, signal handlers: who interrupts a sample may take one
 *           himself.  A sample takes some 8 KiB of stack.  Forked children go
 *           on with what they inherit.
 *
 * Each thread counts down the bytes that it allocates, class size by class
 * size, from a gap drawn at random (weights.h); the allocation that takes it
 * below 0 is due, and a new gap is drawn.  What is due is sampled if
 * prof.active and thread.prof.active say so.  malloc's hit path counts only
 * while eddy_fast.below is 0, which is where the process profiles at this
 * moment: off, or not active, there is no instruction for any of this.
 *
 * A small sample comes from the arena of samples of its home, whose pages have
 * a home without rows: so free's hit path fails there, and C looks for the
 * record.  A run that would be cached is given that home in its tag.  Of blocks
 * that never meet a hit path, large ones and those of arenas that the program
 * created, any may have a record, and each free looks for it.
 *
 * A thread killed within a sample leaves the block in the profile, half in it,
 * or without a record.  What finds no memory is not sampled, and counted.
 *
 * Order pairs
 *   TELL-R1 -> TELL-A1  a function of the program's, and what it needs.
 */
#ifndef EDDY_SAMPLE_H
#define EDDY_SAMPLE_H

#include "lib/arch/rseq.h"
#include "lib/heap/heap.h"
#include "lib/heap/pagemap.h"
#include "lib/heap/sizes.h"
#include "lib/prof/stacks.h"

struct eddy_prof {
	/* Whether profiling has begun: records may exist.  W: begin. R: any. */
	_Atomic uint32_t on;
	/* Settings.  W: the control plane.  R: any CPU.  O: none. */
	_Atomic uint32_t active;
	_Atomic uint32_t thread_active_init;
	_Atomic uint32_t gdump;
	_Atomic uint32_t gperftools;
	/* {epoch, 24 bits; log2 of the period, 8 bits}.  The same. */
	_Atomic uint32_t era;
	/* Bytes allocated since the last interval dump, and between them; 0:
	 * none.  W, R: any CPU.  O: none: a count. */
	_Atomic uint64_t since_dump;
	_Atomic uint64_t interval;
	/* Most chunks that were there at a gdump.  The same. */
	_Atomic uint32_t most_chunks;
	/* Samples that found no memory.  The same. */
	_Atomic uint64_t lost;
	/* The program's functions, NULL: none.
	 * W: the control plane.  R: any CPU.  O: TELL-R1 -> TELL-A1. */
	_Atomic uintptr_t backtrace_hook;
	_Atomic uintptr_t dump_hook;
	_Atomic uintptr_t sample_hook;
	_Atomic uintptr_t sample_free_hook;
};

extern struct eddy_prof eddy_prof;

/* Profiling begins if the options say so: when the library is loaded. */
void eddy_prof_begin(struct eddy_heap *h);

/* As prof.active; as prof.reset, with log2 of the period from then on. */
void eddy_prof_set_active(bool active);
void eddy_prof_reset(unsigned lg);

/* While a function of the program's is called nothing of the thread's is
 * sampled. */
void eddy_prof_enter_hook(void);
void eddy_prof_leave_hook(void);

/* Of the calling thread: whether it is sampled.  NULL: no memory. */
bool eddy_prof_thread_active(void);
void eddy_prof_set_thread_active(bool active);
struct eddy_prof_thread *eddy_prof_thread(void);

static inline unsigned
eddy_prof_lg(uint32_t era)
{
	return era & 63;
}

/* ------------------------------------------------------------------ */
/* Allocation and free */

static inline bool
eddy_prof_is_on(void)
{
	/* relaxed: a block with a record came from who saw it. */
	return eddy_unlikely(eddy_load_relaxed(&eddy_prof.on) != 0);
}

/* Whether allocations are counted at this moment. */
static inline bool
eddy_prof_counts(void)
{
	/* relaxed: a setting. */
	return eddy_unlikely(eddy_load_relaxed(&eddy_fast.below) == 0);
}

/* Whether the hit path, or eddy_prof_count, has found an allocation due. */
static inline bool
eddy_prof_is_due(void)
{
	return eddy_unlikely(eddy_prof_left < 0);
}

/* Counts `real` bytes; the same. */
static inline bool
eddy_prof_count(size_t real)
{
	eddy_prof_left = (int64_t)((uint64_t)eddy_prof_left - real);
	return eddy_prof_is_due();
}

/*
 * eddy_prof_draw - the next gap, for who found his allocation due.
 *
 * Returns: whether it is to be sampled.
 */
EDDY_MUST_USE bool eddy_prof_draw(struct eddy_heap *h);

/* The block, of so many bytes asked for and real ones, is a sample. */
void eddy_prof_add(
    struct eddy_heap *h, const void *block, size_t size, size_t real);

/* A sample that found no memory. */
void eddy_prof_lose(void);

/* Whether a live block of that tag may be a sample. */
static inline bool
eddy_prof_may_be(uint32_t tag)
{
	return eddy_tag_place(tag) == 0 ||
	       eddy_tag_home(tag) >= EDDY_HOME_SAMPLES;
}

/* The block will be free, or another size; if it was a sample, it is none. */
void eddy_prof_drop(const void *block);

/* All blocks of an arena will be free. */
void eddy_prof_drop_arena(struct eddy_heap *h, struct eddy_arena *a);

/* ------------------------------------------------------------------ */
/* Samples by size class */

/*
 * Samples of one class.
 * W: who samples and frees, by RMW.  R: statistics.  O: none: sums.
 */
struct eddy_prof_class {
	_Atomic uint64_t count; /* live */
	_Atomic uint64_t size;  /* bytes asked for */
	/* What these stand for: objects in 65,536ths, bytes asked for, and
	 * bytes that they take. */
	_Atomic uint64_t all_objects;
	_Atomic uint64_t all_size;
	_Atomic uint64_t all_real;
	_Atomic uint64_t ever_count;
	_Atomic uint64_t ever_size;
};

/* i: small classes from 0, then large ones (sizes.h). */
#define EDDY_PROF_CLASSES (EDDY_N_SMALL + EDDY_N_LARGE)
extern struct eddy_prof_class eddy_prof_classes[EDDY_PROF_CLASSES];

/*
 * eddy_prof_estimate - what live blocks of a class are, by samples.
 *
 * ret_size, ret_real: bytes asked for, bytes taken: the difference is lost to
 *                     rounding.
 * Returns: how many samples that rests on.
 */
uint64_t eddy_prof_estimate(unsigned i, uint64_t *ret_size, uint64_t *ret_real);

#endif /* EDDY_SAMPLE_H */
