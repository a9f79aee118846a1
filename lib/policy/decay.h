/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * decay.h - how much memory that is not used any more may stay, as it ages.
 *
 * Layer     policy (L2): numbers and time in, numbers out; includes base only.
 * Progress  wait-free; no call reads a clock.
 * Memory    of the caller.
 *
 * Time is cut into epochs, EDDY_DECAY_EPOCHS in the decay time.  Of each epoch
 * the most that was in use at once is kept, and of the one that is open the
 * most so far (eddy_decay_note).  What has not been in use for the whole decay
 * time goes; what was x of the decay time ago may stay with the weight 1 -
 * s(x), where s is the smootherstep polynomial
 *
 *     s(x) = 6 x^5 - 15 x^4 + 10 x^3       (K. Perlin, 2002)
 *
 * that jemalloc decays by.  After one peak D that is the curve D (1 - s(t/T)).
 * Use that rises and falls within the decay time keeps what it comes back to:
 * what is needed again is not given away in between.
 *
 * Several threads may call at once: each word is a hint, and who moves the
 * clock on writes the epochs that passed.
 */
#ifndef EDDY_DECAY_H
#define EDDY_DECAY_H

#include "lib/base/atomic.h"
#include "lib/base/base.h"

#define EDDY_DECAY_EPOCHS 200

struct eddy_decay {
	/* End of the last epoch, ms * EDDY_DECAY_EPOCHS; 0: none yet.
	 * W: who wins it by CAS.  R: any.  O: none: a hint. */
	_Atomic uint64_t time;
	/* Of the epochs so far.  W: the winner.  R: any.  O: none. */
	_Atomic uint32_t n;
	/* Most units in use in each of the last epochs, by n.  The same. */
	_Atomic uint32_t peak[EDDY_DECAY_EPOCHS];
	/* In the epoch that is open, so far.  W: any who steps.  R: any.
	 * O: none: a hint. */
	_Atomic uint32_t open;
};

/* Milliseconds of n epochs, rounded up: at least one. */
static inline uint64_t
eddy_decay_span(uint64_t decay_ms, unsigned n)
{
	uint64_t ms =
	    (decay_ms * n + EDDY_DECAY_EPOCHS - 1) / EDDY_DECAY_EPOCHS;

	return ms != 0 ? ms : 1;
}

/*
 * eddy_decay_advance - if at least one epoch has passed, closes it: so many
 * units were in use at once since the last call that did.
 *
 * Returns: whether it did.
 */
bool eddy_decay_advance(
    struct eddy_decay *d, uint64_t now, uint64_t decay_ms, uint64_t peak);

/* In the open epoch so many units were in use at once. */
static inline void
eddy_decay_note(struct eddy_decay *d, uint64_t peak)
{
	/* relaxed: a hint. */
	eddy_store_relaxed(
	    &d->open, peak < UINT32_MAX ? (uint32_t)peak : UINT32_MAX);
}

/* What may stay of what is not in use, `ahead` epochs from the last one on. */
struct eddy_decay_view {
	uint64_t allowed;
	bool flat; /* no epoch knew anything but what is in use now */
};
struct eddy_decay_view eddy_decay_look(
    const struct eddy_decay *d, uint64_t used, unsigned ahead);

/*
 * eddy_decay_due - in how many epochs more than `slack` of `idle` units will
 * be too much, if use stays as it is, or the view becomes flat; 1 to
 * EDDY_DECAY_EPOCHS.
 */
unsigned eddy_decay_due(
    const struct eddy_decay *d, uint64_t used, uint64_t idle, uint64_t slack);

#endif /* EDDY_DECAY_H */
