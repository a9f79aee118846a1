/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * flow_parked.c - a home that grows calls back what others hold for it.
 *
 * In rounds: one hand allocates a mixture, another on the next CPU frees it,
 * and both fall asleep.  What was freed is then parked in the sleeper's rows
 * for other homes, where there are several, and in return rings.  A third hand
 * beside the first one allocates more and more blocks of one size.  All that is
 * parked must be gone when that has taken chunk after chunk for PARKED_S,
 * though its CPU never calls again.
 */
#include "flow.h"
#include "gauge.h"
#include "rig.h"

enum {
	N_ENTRIES = 1 << 14,
	MIXTURE_BYTES = 24 << 20,
	GROWTH_SIZE = 14336,
	TICK_BYTES = 2 << 20,   /* a chunk a tick */
	TICK_NS = 90000000,     /* at least */
	LATE_NS = 250000000,    /* no tick counts for more, on a busy machine */
	MOST_BYTES = 512 << 20, /* then something is wrong */
	PARKED_S = 6            /* two, and what a busy machine adds */
};

enum state { FILL, DRAIN, REST, GROW, SHRINK };

static enum state state;
static struct hand *hands; /* producer, consumer, grower */
static uint64_t ticked_ns;
static double seconds; /* in which chunks were taken, in this round */
static size_t n_chunks;
static unsigned n_rounds;
static unsigned n_late;
static unsigned n_filled; /* rounds in which anything was parked */
static size_t most_parked;
static double longest_s;

static bool
grow_step(struct hand *h)
{
	if (atomic_load(&flow.size) == GROWTH_SIZE)
		return flow_produce(h, h->out);
	return flow_consume(h, h->in);
}

static bool
fill_step(struct hand *h)
{
	return flow_produce(h, h->out);
}

static bool
drain_step(struct hand *h)
{
	return flow_consume(h, h->in);
}

static void
let(unsigned hand, bool works)
{
	atomic_store(&hands[hand].idles, !works);
	rig_futex_wake(&hands[hand].idles);
}

void
flow_parked_start(void)
{
	chute_create(&flow_chutes[0], N_ENTRIES, MIXTURE_BYTES);
	chute_create(&flow_chutes[1], MOST_BYTES / GROWTH_SIZE, TICK_BYTES);
	hands = flow_add_hand(fill_step, 0, NULL, &flow_chutes[0]);
	(void)flow_add_hand(drain_step, 1, &flow_chutes[0], NULL);
	(void)flow_add_hand(grow_step, 0, &flow_chutes[1], &flow_chutes[1]);
	let(1, false);
	let(2, false);
}

static void
begin_growth(const struct gauge *g)
{
	size_t parked = g->remote_row_bytes + g->ring_bytes;

	if (parked > most_parked)
		most_parked = parked;
	n_filled += parked != 0;
	n_chunks = g->n_chunks;
	seconds = 0;
	atomic_store(&flow_chutes[1].cap_bytes, TICK_BYTES);
	atomic_store(&flow.size, GROWTH_SIZE);
	let(2, true);
	state = GROW;
}

static void
end_growth(bool is_late)
{
	if (seconds > longest_s)
		longest_s = seconds;
	n_late += is_late;
	n_rounds++;
	atomic_store(&flow.size, 0);
	state = SHRINK;
}

static void
grow_on(const struct gauge *g, uint64_t tick_ns)
{
	size_t cap = atomic_load(&flow_chutes[1].cap_bytes);

	if (g->n_chunks > n_chunks)
		seconds +=
		    (double)(tick_ns < LATE_NS ? tick_ns : LATE_NS) / 1e9;
	n_chunks = g->n_chunks;
	if (g->remote_row_bytes + g->ring_bytes == 0)
		end_growth(false);
	else if (seconds > PARKED_S || cap + TICK_BYTES > MOST_BYTES)
		end_growth(true);
	else if (chute_is_full(&flow_chutes[1]))
		atomic_store(&flow_chutes[1].cap_bytes, cap + TICK_BYTES);
}

void
flow_parked_tick(double part)
{
	uint64_t tick_ns = rig_now_ns() - ticked_ns;
	struct gauge g;

	(void)part;
	if (tick_ns < TICK_NS)
		return;
	ticked_ns += tick_ns;
	gauge_read(&g);
	if (state == FILL && chute_is_full(&flow_chutes[0])) {
		let(0, false);
		let(1, true);
		state = DRAIN;
	} else if (state == DRAIN && chute_is_empty(&flow_chutes[0])) {
		let(1, false);
		state = REST;
	} else if (state == REST) {
		begin_growth(&g);
	} else if (state == GROW) {
		grow_on(&g, tick_ns);
	} else if (state == SHRINK && chute_is_empty(&flow_chutes[1])) {
		let(2, false);
		let(0, true);
		state = FILL;
	}
}

bool
flow_parked_is_content(void)
{
	return n_rounds > 0;
}

void
flow_parked_judge(void)
{
	/* In claim mode, and with allocators that do not tell. */
	if (n_late == 0 && n_rounds > 0 && n_filled == 0) {
		rig_ok_skip("nothing was parked in %u rounds", n_rounds);
		return;
	}
	rig_ok(n_late == 0 && n_rounds > 0,
	    "%u rounds, %zu KiB parked at most: gone after %.1f s of chunks "
	    "taken, %u times later than %u s",
	    n_rounds, most_parked >> 10, longest_s, n_late, PARKED_S);
}
