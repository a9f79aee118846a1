/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * atomic.h - C11 atomics with the memory order in the name.
 *
 * Layer: base (L0).  The order is visible to grep and to the order check of
 * `make lint`; a plain operator on an _Atomic object is not used anywhere.
 *
 * Where a room says "wait-free", each of these is one step.  To the machine an
 * OR or AND whose old value is used is a loop (cmpxchg on x86-64, ldxr on arm64
 * without LSE), which goes round only where another's write to that word or
 * line got in between.
 */
#ifndef EDDY_ATOMIC_H
#define EDDY_ATOMIC_H

#include <stdatomic.h>

#define eddy_load_relaxed(p) atomic_load_explicit((p), memory_order_relaxed)
#define eddy_load_acquire(p) atomic_load_explicit((p), memory_order_acquire)
#define eddy_load_seq_cst(p) atomic_load_explicit((p), memory_order_seq_cst)

#define eddy_store_relaxed(p, v) \
	atomic_store_explicit((p), (v), memory_order_relaxed)
#define eddy_store_release(p, v) \
	atomic_store_explicit((p), (v), memory_order_release)

#define eddy_xchg_relaxed(p, v) \
	atomic_exchange_explicit((p), (v), memory_order_relaxed)
#define eddy_xchg_acquire(p, v) \
	atomic_exchange_explicit((p), (v), memory_order_acquire)
#define eddy_xchg_acq_rel(p, v) \
	atomic_exchange_explicit((p), (v), memory_order_acq_rel)
#define eddy_xchg_seq_cst(p, v) \
	atomic_exchange_explicit((p), (v), memory_order_seq_cst)

#define eddy_or_relaxed(p, v) \
	atomic_fetch_or_explicit((p), (v), memory_order_relaxed)
#define eddy_or_acquire(p, v) \
	atomic_fetch_or_explicit((p), (v), memory_order_acquire)
#define eddy_or_release(p, v) \
	atomic_fetch_or_explicit((p), (v), memory_order_release)
#define eddy_or_acq_rel(p, v) \
	atomic_fetch_or_explicit((p), (v), memory_order_acq_rel)
#define eddy_or_seq_cst(p, v) \
	atomic_fetch_or_explicit((p), (v), memory_order_seq_cst)
#define eddy_and_relaxed(p, v) \
	atomic_fetch_and_explicit((p), (v), memory_order_relaxed)
#define eddy_and_release(p, v) \
	atomic_fetch_and_explicit((p), (v), memory_order_release)
#define eddy_and_seq_cst(p, v) \
	atomic_fetch_and_explicit((p), (v), memory_order_seq_cst)

#define eddy_add_relaxed(p, v) \
	atomic_fetch_add_explicit((p), (v), memory_order_relaxed)
#define eddy_add_release(p, v) \
	atomic_fetch_add_explicit((p), (v), memory_order_release)
#define eddy_add_acq_rel(p, v) \
	atomic_fetch_add_explicit((p), (v), memory_order_acq_rel)
#define eddy_add_seq_cst(p, v) \
	atomic_fetch_add_explicit((p), (v), memory_order_seq_cst)

/* The failure order is relaxed: whoever fails looks again or gives up. */
#define eddy_cas_relaxed(p, e, v)                \
	atomic_compare_exchange_strong_explicit( \
	    (p), (e), (v), memory_order_relaxed, memory_order_relaxed)
#define eddy_cas_acquire(p, e, v)                \
	atomic_compare_exchange_strong_explicit( \
	    (p), (e), (v), memory_order_acquire, memory_order_relaxed)
#define eddy_cas_release(p, e, v)                \
	atomic_compare_exchange_strong_explicit( \
	    (p), (e), (v), memory_order_release, memory_order_relaxed)
#define eddy_cas_seq_cst(p, e, v)                \
	atomic_compare_exchange_strong_explicit( \
	    (p), (e), (v), memory_order_seq_cst, memory_order_relaxed)
/* The loser of a publication reads through what it lost to. */
#define eddy_cas_acq_rel(p, e, v)                \
	atomic_compare_exchange_strong_explicit( \
	    (p), (e), (v), memory_order_acq_rel, memory_order_acquire)

/* What is written before it, a signal handler of the thread finds written. */
#define eddy_handler_fence() atomic_signal_fence(memory_order_seq_cst)

#endif /* EDDY_ATOMIC_H */
