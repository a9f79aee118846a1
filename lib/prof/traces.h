/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * traces.h - stacks that a thread was seen with before, told by where their
 * return addresses lie.
 *
 * Layer     prof (L4).
 * Progress  wait-free, but for a thread's first ones: lock-free.
 * Memory    some 20 KiB a thread entry, taken as they are needed, never given
 *           back.
 * Context   the thread itself, and its signal handlers: who interrupts a call
 *           here finds nothing and notes nothing.
 *
 * To walk a stack by its tables takes 150 ns a frame and more.  But a thread
 * allocates again and again with the same stack at the same place: then all
 * its return addresses stand where they stood.  So a trace is the place of a
 * frame of the library's, and above it each place of a return address with what
 * stood there.  If all are the same the stack is, up to one case that is
 * accepted: a frame of varying size below which old return addresses lie just
 * where they were.
 *
 * Only x86-64: elsewhere a return address is at no place that libgcc tells.
 */
#ifndef EDDY_TRACES_H
#define EDDY_TRACES_H

#include "lib/base/base.h"
#include "lib/prof/stacks.h"

/* Return addresses of a trace; deeper stacks are walked each time. */
#define EDDY_TRACE_MAX 48

/* What a walk has seen; n beyond the most: not to be noted. */
struct eddy_trace {
	unsigned n;
	uintptr_t place[EDDY_TRACE_MAX];
	uintptr_t value[EDDY_TRACE_MAX];
};

struct eddy_traces;

/* The stack of who called from this frame; NULL: not known. */
struct eddy_stack *eddy_traces_find(
    struct eddy_prof_thread *t, uintptr_t frame);

/* From the frame, such a trace is that stack. */
void eddy_traces_note(struct eddy_prof_thread *t, uintptr_t frame,
    const struct eddy_trace *trace, struct eddy_stack *s);

/* The entry passes to another thread, with another stack. */
void eddy_traces_forget(struct eddy_prof_thread *t);

#endif /* EDDY_TRACES_H */
