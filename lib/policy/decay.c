/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/policy/decay.h"

#define LG_ONE 24 /* weights are fractions of 2^24 */

/* The weight of what was in use k epochs ago: 1 - s(k / EPOCHS). */
static uint64_t
weight(uint64_t k)
{
	const uint64_t n = EDDY_DECAY_EPOCHS;
	const uint64_t n5 = n * n * n * n * n;
	uint64_t s;

	if (k >= n)
		return 0;
	static_assert((uint64_t)EDDY_DECAY_EPOCHS <= 200, "s fits 64 bits");
	s = k * k * k * (6 * k * k + 10 * n * n - 15 * n * k);
	return ((n5 - s) << LG_ONE) / n5;
}

static uint32_t
narrow(uint64_t v)
{
	return v < UINT32_MAX ? (uint32_t)v : UINT32_MAX;
}

bool
eddy_decay_advance(
    struct eddy_decay *d, uint64_t now, uint64_t decay_ms, uint64_t peak)
{
	/* In parts of a millisecond: an epoch of any decay time is whole. */
	uint64_t epoch = decay_ms != 0 ? decay_ms : 1;
	/* relaxed, all: hints; see the head of decay.h. */
	uint64_t last = eddy_load_relaxed(&d->time);
	uint32_t n = eddy_load_relaxed(&d->n);
	uint64_t passed;

	now *= EDDY_DECAY_EPOCHS;
	passed = last == 0 ? 1 : (now - last) / epoch;
	if (last > now)
		passed = 1; /* the clock of another boot: begin again */
	else if (passed == 0)
		return false;
	/* relaxed: as above. */
	if (!eddy_cas_relaxed(&d->time, &last,
		last == 0 || last > now ? now : last + passed * epoch))
		return false;
	for (uint64_t i = 0; i < passed && i < EDDY_DECAY_EPOCHS; i++) {
		/* relaxed: as above. */
		eddy_store_relaxed(
		    &d->peak[(n + i) % EDDY_DECAY_EPOCHS], narrow(peak));
	}
	/* relaxed, both: as above. */
	eddy_store_relaxed(&d->open, 0);
	eddy_store_relaxed(&d->n,
	    (n + (uint32_t)(passed % EDDY_DECAY_EPOCHS)) % EDDY_DECAY_EPOCHS);
	return true;
}

struct eddy_decay_view
eddy_decay_look(const struct eddy_decay *d, uint64_t used, unsigned ahead)
{
	struct eddy_decay_view v = {0, true};
	/* relaxed, all: hints. */
	uint32_t n = eddy_load_relaxed(&d->n);
	uint64_t here = weight(ahead);
	uint64_t most = eddy_load_relaxed(&d->open);
	uint64_t sum = 0;

	if (most > used)
		v.flat = false;
	else
		most = used;

	for (unsigned k = 0; k < EDDY_DECAY_EPOCHS; k++) {
		/* relaxed: as above. */
		uint64_t peak =
		    eddy_load_relaxed(&d->peak[(n + EDDY_DECAY_EPOCHS - 1 - k) %
					       EDDY_DECAY_EPOCHS]);
		uint64_t next = weight(k + ahead + 1);

		v.flat &= peak == used;
		if (peak > most)
			most = peak;
		sum += (most - used) * (here - next);
		here = next;
	}
	v.allowed = sum >> LG_ONE;
	return v;
}

unsigned
eddy_decay_due(
    const struct eddy_decay *d, uint64_t used, uint64_t idle, uint64_t slack)
{
	unsigned low = 1;
	unsigned high = EDDY_DECAY_EPOCHS;
	/* relaxed, all: hints. */
	uint32_t n = eddy_load_relaxed(&d->n);
	const bool fell = eddy_load_relaxed(&d->open) > used;

	/* Until only epochs with this use are left: slack is for others. */
	for (unsigned k = 0; !fell && k < EDDY_DECAY_EPOCHS - 1; k++) {
		/* relaxed: as above. */
		if (eddy_load_relaxed(&d->peak[(n + EDDY_DECAY_EPOCHS - 1 - k) %
					       EDDY_DECAY_EPOCHS]) != used) {
			high = EDDY_DECAY_EPOCHS - k;
			break;
		}
	}
	/* What is allowed falls with time: the first epoch that is too late. */
	while (low < high) {
		unsigned mid = (low + high) / 2;

		if (eddy_decay_look(d, used, mid).allowed + slack < idle)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}
