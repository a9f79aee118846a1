/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rseq.h - the restartable sections: everything that touches a CPU's row.
 *
 * Layer     arch (L0).  Bodies: lib/arch/<arch>/sections.S; lib/arch/generic
 *           has none, there every thread is in claim mode.
 * Progress  each call is wait-free: it commits, fails or was aborted; the
 *           caller bounds the restarts (EDDY_RESTARTS), since under a debugger
 *           that single-steps a section never ends.
 * Context   any thread whose rseq area is registered; signal handlers too: a
 *           handler that interrupts a section aborts it.
 *
 * A section reads the index inside, stores what may be abandoned, and commits
 * with one store as its last instruction.  Of the rseq area it writes rseq_cs
 * alone.  In pseudo-instructions, slot = slots + (cpu_id << EDDY_LG_SLOT):
 *
 *   pop     row += slot.home; c = row.cur; fail unless c > row.beg;
 *           r = [c - 8]; row.cur = c - 8
 *   pop_at  the same without the first addition
 *   push    c = row.cur; fail unless c < row.end; [c] = p; row.cur = c + 8
 *   refill  c = row.cur; fail unless c + 8n <= row.end;
 *           [c ..] = p[0 .. n); row.cur = c + 8n
 *   flush   c = row.cur; fail unless c > row.beg; n = min(n, (c - beg) / 8);
 *           p[0 .. n) = [c - 8n ..); row.cur = c - 8n
 *   limits  fail unless cpu_id == cpu and row.gen == gen;
 *           {row.end, row.beg} = limits (one store of 64 bits)
 *   add     fail unless slot.ready; [slot + at] += n (64 bits)
 *
 * n is 1 or more.  Model: tests/model/slot.pml.
 */
#ifndef EDDY_RSEQ_H
#define EDDY_RSEQ_H

#include <stdint.h>

#include "lib/arch/layout.h"
#include "lib/base/base.h"

#define EDDY_RESTARTS 4

/* The kernel's struct rseq, as far as we read it. */
struct eddy_rseq {
	/* W: the kernel.  R: the thread itself. */
	_Atomic uint32_t cpu_id_start;
	_Atomic uint32_t cpu_id;
	/* W: the thread (sections), the kernel (0 on abort). */
	_Atomic uint64_t rseq_cs;
	_Atomic uint32_t flags;
	_Atomic uint32_t node_id;
	_Atomic uint32_t mm_cid;
	_Atomic uint32_t unused;
} __attribute__((aligned(32)));

/*
 * The words of malloc and free's hit paths, on one line of their own.
 * W: whoever publishes the heap, the same values whoever does; limit: raised
 *    by CAS (SEG-R1).
 * R: any thread, plain loads in assembly.  A thread that frees has got the
 *    pointer from one that saw the words; else limit 0 sends it to C.
 */
struct eddy_fast {
	_Atomic uintptr_t base;
	_Atomic uintptr_t limit; /* pages whose tags are readable */
	_Atomic uintptr_t tags;
	_Atomic uintptr_t slots;
	_Atomic uintptr_t rows; /* size to row: uint8_t[] */
	/*
	 * Sizes from here on leave the hit path: EDDY_ROW_MAX + 1, or 0 while
	 * allocations are counted for samples (lib/prof/sample.h).
	 * W: the control plane.  R: any thread.  O: none: a setting.
	 */
	_Atomic uintptr_t below;
} __attribute__((aligned(EDDY_CACHELINE)));

extern struct eddy_fast eddy_fast;

/*
 * The calling thread's rseq area; NULL sends malloc and free to C: no area
 * yet, none to be had, or a vfork child.  NULL is also what a thread reads
 * before its TLS image is laid (IFUNC resolvers).
 */
extern __thread struct eddy_rseq *eddy_area;

/*
 * Bytes that the thread may still allocate until a sample is due; below 0: it
 * is.  W, R: the thread and its signal handlers: see lib/prof/sample.h.
 */
extern __thread int64_t eddy_prof_left;

#if !defined(EDDY_NO_RSEQ) && (defined(__x86_64__) || defined(__aarch64__))
#	define EDDY_HAS_SECTIONS 1

int eddy_section_pop(
    struct eddy_rseq *area, uintptr_t slots, uint32_t row, void **ret);
/* row: of any home. */
int eddy_section_pop_at(
    struct eddy_rseq *area, uintptr_t slots, uint32_t row, void **ret);
int eddy_section_push(
    struct eddy_rseq *area, uintptr_t slots, uint32_t row, void *p);
int eddy_section_refill(struct eddy_rseq *area, uintptr_t slots, uint32_t row,
    void *const *p, uint32_t n);
/* *n: at most in, got out. */
int eddy_section_flush(struct eddy_rseq *area, uintptr_t slots, uint32_t row,
    void **p, uint32_t *n);
int eddy_section_limits(struct eddy_rseq *area, uintptr_t slots, uint32_t row,
    uint32_t cpu, uint32_t gen, uint64_t limits);
/* A counter of the CPU's: exact, and no locked instruction. */
int eddy_section_add(
    struct eddy_rseq *area, uintptr_t slots, uint32_t at, uint64_t n);

#else
#	define EDDY_HAS_SECTIONS 0

/* Never called: no thread is attached.  They use their arguments up. */
#	define eddy_section_pop(area, slots, row, ret) \
		((void)(slots), (void)(row), (void)(ret), EDDY_SECTION_FAIL)
#	define eddy_section_pop_at(area, slots, row, ret) \
		((void)(slots), (void)(row), (void)(ret), EDDY_SECTION_FAIL)
#	define eddy_section_push(area, slots, row, p) \
		((void)(slots), (void)(row), (void)(p), EDDY_SECTION_FAIL)
#	define eddy_section_refill(area, slots, row, p, n)        \
		((void)(slots), (void)(row), (void)(p), (void)(n), \
		    EDDY_SECTION_FAIL)
#	define eddy_section_flush(area, slots, row, p, n)         \
		((void)(slots), (void)(row), (void)(p), (void)(n), \
		    EDDY_SECTION_FAIL)
#	define eddy_section_limits(area, slots, row, cpu, gen, limits) \
		((void)(slots), (void)(row), (void)(cpu), (void)(gen),  \
		    (void)(limits), EDDY_SECTION_FAIL)
#	define eddy_section_add(area, slots, at, n)                 \
		((void)(area), (void)(slots), (void)(at), (void)(n), \
		    EDDY_SECTION_FAIL)
#endif

/* Whether there is a hit path that counts what it serves. */
#ifdef EDDY_DYNAMIC_TLS
#	define EDDY_HIT_COUNTS 0
#else
#	define EDDY_HIT_COUNTS EDDY_HAS_SECTIONS
#endif

#endif /* EDDY_RSEQ_H */
