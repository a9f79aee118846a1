/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_ring.h - the ring through which objects go from thread to thread.
 *
 * One producer, one consumer. Each end keeps its own idea of the other's
 * index and looks again only when it seems to be full or empty.
 */
#ifndef EDDY_BENCH_RING_H
#define EDDY_BENCH_RING_H

#include <sched.h>

#include "bench.h"

enum {
	RING_MAX = 4096,   /* slots; what is used is a power of two */
	RING_SPINS = 2000, /* before an end gives its CPU away */
};

/* W: one end only. */
struct ring {
	_Alignas(BENCH_LINE) _Atomic size_t tail; /* W: producer */
	size_t seen_head;
	_Alignas(BENCH_LINE) _Atomic size_t head; /* W: consumer */
	size_t seen_tail;
	_Alignas(BENCH_LINE) void *slots[RING_MAX];
};

static inline bool
ring_try_push(struct ring *r, size_t n_slots, void *p)
{
	size_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);

	if (tail - r->seen_head == n_slots) {
		r->seen_head =
		    atomic_load_explicit(&r->head, memory_order_acquire);
		if (tail - r->seen_head == n_slots)
			return false;
	}
	r->slots[tail & (n_slots - 1)] = p;
	atomic_store_explicit(&r->tail, tail + 1, memory_order_release);
	return true;
}

static inline void *
ring_try_pop(struct ring *r, size_t n_slots)
{
	size_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
	void *p;

	if (head == r->seen_tail) {
		r->seen_tail =
		    atomic_load_explicit(&r->tail, memory_order_acquire);
		if (head == r->seen_tail)
			return NULL;
	}
	p = r->slots[head & (n_slots - 1)];
	atomic_store_explicit(&r->head, head + 1, memory_order_release);
	return p;
}

/* Takes what an object says, as a reader of a message would. */
static inline void
ring_read_object(const void *p)
{
	if (*(const size_t *)p != (size_t)p)
		bench_die("an object changed on its way");
}

#endif
