/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * urcu.h - free(3) after a grace period of liburcu, in batches.
 *
 *     #include <urcu.h>          or urcu-qsbr.h, urcu-bp.h ...
 *     #include <eddy/urcu.h>
 *
 *     cds_lfht_del(table, &entry->node);
 *     eddy_free_rcu(entry);      no rcu_head, no callback, no waiting
 *
 * In libeddy-urcu (-leddy-urcu), which needs neither a flavour of liburcu nor
 * eddy to link.  What a program has waiting in one flavour is apart from what
 * it has in another.  Functions whose names begin with eddy_urcu_ are told
 * which one, by the address of its rcu_flavor; the others take that of the
 * header of liburcu that was included before.
 */
#ifndef EDDY_URCU_H
#define EDDY_URCU_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rcu_flavor_struct;

/*
 * eddy_free_rcu, eddy_urcu_free - frees a block when nobody can read it.
 *
 *     cds_list_del_rcu(&e->list);
 *     eddy_free_rcu(e);
 *
 * Once the block is out of reach of readers that begin now, it waits with
 * others for those that have begun, and is freed by a thread of the library's.
 * The block is not written meanwhile and needs no room for a list.
 *
 * flavor     &rcu_flavor of liburcu
 * p          a block of malloc's family, or NULL, which does nothing; from now
 *            on the library's
 *
 * RETURN     0; or an error, and p is still the caller's:
 * ERRORS     ENOMEM: there is no memory to note it.
 * THREADS    MT-safe; may be called by readers in their critical sections, by
 *            threads that are not registered, and, once the first call has
 *            started the library's thread (or eddy_urcu_start has), by signal
 *            handlers.  Waits for nobody, calls no malloc.
 * COST       an atomic operation on a line of the CPU; every 64th call some
 *            hundred nanoseconds more; a futex call when nothing was waiting
 *            before.  Beyond the bound, and over eddy's malloc, it frees up to
 *            128 blocks whose grace period is over.
 * FORK       what waits, waits in the child as well, for readers of the child;
 *            it is freed there when the child calls again, but for a block that
 *            another thread was freeing at that moment.  See eddy_free_rcu(3).
 * SINCE      0.1
 * SEE ALSO   eddy_free_rcu(3), call_rcu of liburcu
 */
int eddy_urcu_free(const struct rcu_flavor_struct *flavor, void *p);

/*
 * eddy_free_rcu_batch, eddy_urcu_free_batch - the same for many.
 *
 * p          n blocks; NULLs are passed over
 *
 * RETURN     how many of them were taken, from the first on: n, unless there is
 *            no memory to note them
 * Otherwise as eddy_free_rcu.
 */
size_t eddy_urcu_free_batch(
    const struct rcu_flavor_struct *flavor, void *const *p, size_t n);

/*
 * eddy_try_free_rcu, eddy_urcu_try_free - the same, if not too much waits.
 *
 *     while (eddy_try_free_rcu(e) == EAGAIN)
 *             synchronize_rcu();         where the caller may wait
 *
 * For programs that must not grow beyond the bound, and have something better
 * to do than to grow.
 *
 * RETURN     0; or an error, and p is still the caller's:
 * ERRORS     EAGAIN: as much waits as the bound allows.
 *            ENOMEM: as eddy_free_rcu.
 * Otherwise as eddy_free_rcu; looks at the bound on every call.
 */
int eddy_urcu_try_free(const struct rcu_flavor_struct *flavor, void *p);

/*
 * eddy_rcu_barrier, eddy_urcu_barrier - waits until what was handed over before
 * is freed.
 *
 * For tests, and before what the blocks or their readers need is taken away.
 * It is the one function that waits: for a grace period and for the library's
 * threads.
 *
 * RETURN     0
 * ERRORS     ENOTSUP: this is a child forked in the midst of a grace period:
 *            none can be had.
 * THREADS    MT-safe; not in critical sections, as synchronize_rcu; not in
 *            signal handlers
 * COST       a grace period, two where one is under way; barriers of several
 *            threads go one after the other, and the later ones have little
 *            left to do; a second more, once, for each thread that was killed,
 *            or stopped, in the midst of a call: what the latter has in hand is
 *            not waited for
 * FORK       as at any other time
 * SINCE      0.1
 * SEE ALSO   eddy_free_rcu(3)
 */
int eddy_urcu_barrier(const struct rcu_flavor_struct *flavor);

/*
 * eddy_rcu_start, eddy_urcu_start - starts the library's thread.
 *
 * For programs whose first call may come in a signal handler, or shall not take
 * as long as pthread_create(3) does.
 *
 * RETURN     0, also if it is there
 * ERRORS     ENOMEM; EAGAIN: no thread is to be had, or was not a second ago,
 *            or another thread is starting it just now; ENOTSUP: as
 *            eddy_rcu_barrier.
 * THREADS    MT-safe; not in signal handlers
 * COST       that of pthread_create
 * FORK       a child has no such thread until it calls this, or hands over
 * SINCE      0.1
 * SEE ALSO   eddy_free_rcu(3)
 */
int eddy_urcu_start(const struct rcu_flavor_struct *flavor);

/*
 * eddy_rcu_set_bound, eddy_urcu_set_bound - how much may wait.
 *
 * objects    blocks, 1 at least
 * bytes      of them, by malloc_usable_size(3), 1 at least
 *            SIZE_MAX: no bound.  At first 1,048,576 blocks and 256 MiB.
 *
 * From a quarter of it on objects do not gather, from a half on further threads
 * are made ready, and beyond it they are called, callers work
 * (eddy_free_rcu), and eddy_try_free_rcu refuses.
 *
 * RETURN     0
 * ERRORS     EINVAL: 0 blocks or bytes; ENOMEM.
 * THREADS    MT-safe, async-signal-safe; waits for nobody
 * COST       some stores
 * FORK       a child keeps it
 * SINCE      0.1
 * SEE ALSO   eddy_free_rcu(3)
 */
int eddy_urcu_set_bound(
    const struct rcu_flavor_struct *flavor, size_t objects, size_t bytes);

/* What a flavour has waiting, and has had. */
struct eddy_urcu_stats {
	uint64_t open_objects;    /* in batches that are not full yet */
	uint64_t waiting_objects; /* in batches that are, until they are free */
	uint64_t waiting_bytes;
	uint64_t waiting_batches;
	uint64_t ripe_batches; /* of these, such as wait for nobody any more */
	uint64_t peak_objects; /* the most of waiting_objects, waiting_bytes */
	uint64_t peak_bytes;
	uint64_t bound_objects;
	uint64_t bound_bytes;
	uint64_t freed_objects;
	uint64_t freed_bytes;
	uint64_t graces; /* waited for by the library's threads, not barriers */
	uint64_t beyond; /* batches handed over beyond the bound */
	uint64_t helped; /* batches freed by callers */
	uint64_t refused;   /* by eddy_try_free_rcu */
	uint64_t helpers;   /* threads of the library's */
	uint64_t grace_ms;  /* for so long one waits for a grace period, or 0 */
	uint64_t oldest_ms; /* for so long the oldest object waits, or 0 */
	uint64_t cut; /* 1: a child without grace periods: see the barrier */
};

/*
 * eddy_rcu_stats, eddy_urcu_stats - what waits.
 *
 *     struct eddy_urcu_stats s;
 *
 *     if (eddy_rcu_stats(&s, sizeof(s)) == 0 && s.grace_ms > 1000)
 *             some reader has not left its section for a second
 *
 * ret        filled in; later versions add fields at the end
 * size       of the struct that the caller knows; what the library does not
 *            know of it becomes 0
 *
 * RETURN     0; all 0 before the first call for that flavour
 * THREADS    MT-safe, async-signal-safe; waits for nobody.  Numbers in motion
 *            are near the truth; a thread killed in a call may leave them wrong
 *            by a batch.
 * COST       a look at each CPU's batch and at what waits, 65,536 batches at
 *            most
 * FORK       as at any other time
 * SINCE      0.1
 * SEE ALSO   eddy_free_rcu(3)
 */
int eddy_urcu_stats(const struct rcu_flavor_struct *flavor,
    struct eddy_urcu_stats *ret, size_t size);

/* Of the flavour whose header was included before this one. */
#ifdef rcu_flavor

static inline int
eddy_free_rcu(void *p)
{
	return eddy_urcu_free(&rcu_flavor, p);
}

static inline size_t
eddy_free_rcu_batch(void *const *p, size_t n)
{
	return eddy_urcu_free_batch(&rcu_flavor, p, n);
}

static inline int
eddy_try_free_rcu(void *p)
{
	return eddy_urcu_try_free(&rcu_flavor, p);
}

static inline int
eddy_rcu_barrier(void)
{
	return eddy_urcu_barrier(&rcu_flavor);
}

static inline int
eddy_rcu_start(void)
{
	return eddy_urcu_start(&rcu_flavor);
}

static inline int
eddy_rcu_set_bound(size_t objects, size_t bytes)
{
	return eddy_urcu_set_bound(&rcu_flavor, objects, bytes);
}

static inline int
eddy_rcu_stats(struct eddy_urcu_stats *ret, size_t size)
{
	return eddy_urcu_stats(&rcu_flavor, ret, size);
}

#endif

#ifdef __cplusplus
}
#endif

#endif /* EDDY_URCU_H */
