/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stacks.h - distinct stacks, the threads that allocated there, and how much.
 *
 * Layer     prof (L4).
 * Progress  lock-free but for system calls.
 * Memory    never given back.  Stacks: each that was ever seen.  Threads: as
 *           many as lived at once, and those with live samples.  Counts: of
 *           a stack and a thread one, and one more for each era of which
 *           samples are live.
 *
 * All lists only grow, at the head, by CAS.  A thread's entry whose thread has
 * ended and of which nothing is live passes to the next that begins; not in a
 * forked child, where entries of the parent's threads stay as they are.
 *
 * An era ends with each reset: {epoch, log2 of the period}.  A count belongs to
 * one; what is freed goes off the count that it was added to, so a count of
 * which nothing is live says zero, and may pass to the present era.  Sums are
 * exact then: each sample adds and takes off the same weight.  A thread killed
 * between leaves one sample in, or half of one.
 *
 * Order pairs
 *   STACK-R1 -> STACK-A1  a stack, a thread, a count, from who made it to all.
 *   STACK-R2 -> STACK-A2  sums taken off, before nothing is live of them.
 */
#ifndef EDDY_STACKS_H
#define EDDY_STACKS_H

#include "lib/base/atomic.h"
#include "lib/base/base.h"

#define EDDY_STACK_MAX 256 /* frames */
/* With the null byte. */
#define EDDY_THREAD_NAME 16

/*
 * What samples stand for: objects in 65,536ths, and bytes.
 * W: who samples and frees, by RMW.  R: dumps.  O: none: sums.
 */
struct eddy_sums {
	_Atomic uint64_t objects;
	_Atomic uint64_t bytes;
};

#define EDDY_LG_OBJECT 16

struct eddy_prof_thread {
	/* Constant from STACK-R1 on. */
	struct eddy_prof_thread *next;
	uint32_t index; /* counted from 0 */
	/* {pid, tid}.  W: the thread; who takes the entry over, by CAS.
	 * R: any.  O: none: a guess. */
	_Atomic uint64_t who;
	/* W: who takes the entry.  R: dumps.  O: none: a name. */
	_Atomic uint64_t uid;
	/* Live samples.  W: by RMW.  R: who wants the entry.  O: none. */
	_Atomic uint64_t live;
	/* See traces.h.  W, R: the thread. */
	struct eddy_traces *traces;
	/* W: the thread.  R: dumps, torn while it is set.  O: none. */
	_Atomic uint64_t name[EDDY_THREAD_NAME / sizeof(uint64_t)];
};

struct eddy_count {
	/* Constant from STACK-R1 on. */
	struct eddy_count *next;
	struct eddy_prof_thread *thread;
	struct eddy_stack *stack;
	/* {era, live samples}.  W, R: by CAS and RMW.  O: STACK-R2 ->
	 * STACK-A2. */
	_Atomic uint64_t word;
	struct eddy_sums now;
	struct eddy_sums ever; /* of the era */
};

struct eddy_stack {
	/* Constant from STACK-R1 on. */
	struct eddy_stack *next;
	uint64_t hash;
	/* W: who samples.  R: dumps.  O: STACK-R1 -> STACK-A1. */
	_Atomic(struct eddy_count *) counts;
	unsigned n;
	uintptr_t frame[];
};

/* The entry of a stack, innermost frame first.  NULL: no memory. */
EDDY_MUST_USE struct eddy_stack *eddy_stack_find(
    const uintptr_t *frame, unsigned n);

/*
 * eddy_stack_count - the count of a stack and thread in an era, with one live
 * sample more.
 *
 * Returns: NULL: no memory.
 */
EDDY_MUST_USE struct eddy_count *eddy_stack_count(
    struct eddy_stack *s, struct eddy_prof_thread *t, uint32_t era);

/* One live sample less. */
void eddy_count_drop(struct eddy_count *c);

static inline uint32_t
eddy_count_era(const struct eddy_count *c)
{
	/* relaxed: constant while a sample is live; else a guess. */
	return (uint32_t)(eddy_load_relaxed(&c->word) >> 32);
}

/* Entries that were made; each, in no order, by a place that starts as 0. */
unsigned eddy_stack_n_threads(void);
struct eddy_prof_thread *eddy_stack_threads(void);
struct eddy_stack *eddy_stack_next(struct eddy_stack *s, size_t *place);

/*
 * eddy_stack_thread - an entry for the calling thread, without a name.
 *
 * reuse: one of a thread that has ended will do.
 * Returns: NULL: no memory.
 */
EDDY_MUST_USE struct eddy_prof_thread *eddy_stack_thread(bool reuse);

/* Gives an entry a name; what does not fit is left out. */
void eddy_stack_name(struct eddy_prof_thread *t, const char *name);

#endif /* EDDY_STACKS_H */
