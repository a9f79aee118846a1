/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * flow_parked.c - a home that grows calls back what others hold for it.
 *
 * In rounds: one hand allocates a mixture, another on the next CPU frees it,
 * and both fall asleep.  What was freed is then parked in the sleeper's rows
 * for other homes, where there are several, and in return rings.  A third hand
 * beside the first one allocates more and more blocks of one size.  From the
 * moment on at which that takes a new chunk, all that is parked must be gone
 * within PARKED_S, though its CPU never calls again.
 */
#include "flow.h"
#include "gauge.h"
#include "rig.h"

enum {
	N_ENTRIES = 1 << 14,
	MIXTURE_BYTES = 24 << 20,
	GROWTH_SIZE = 14336,
	TICK_BYTES = 2 << 20,   /* a chunk a tick */
	MOST_BYTES = 512 << 20, /* then something is wrong */
	PARKED_S = 3,           /* two, and a tick or two */
	PARKED_TICKS = 40       /* where ticks come late */
};

enum state { FILL, DRAIN, REST, GROW, SHRINK };

static enum state state;
static struct hand *hands; /* producer, consumer, grower */
static uint64_t since_ns;  /* a chunk was taken; 0: not yet */
static unsigned n_ticks;   /* since then */
static size_t chunks_before;
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
	chunks_before = g->n_chunks;
	since_ns = 0;
	n_ticks = 0;
	atomic_store(&flow_chutes[1].cap_bytes, TICK_BYTES);
	atomic_store(&flow.size, GROWTH_SIZE);
	let(2, true);
	state = GROW;
}

static void
end_growth(double seconds, bool is_late)
{
	if (seconds > longest_s)
		longest_s = seconds;
	n_late += is_late;
	n_rounds++;
	atomic_store(&flow.size, 0);
	state = SHRINK;
}

static void
grow_on(const struct gauge *g)
{
	size_t cap = atomic_load(&flow_chutes[1].cap_bytes);
	double seconds = 0;

	if (since_ns == 0 && g->n_chunks > chunks_before)
		since_ns = rig_now_ns();
	if (since_ns != 0) {
		seconds = (double)(rig_now_ns() - since_ns) * 1e-9;
		n_ticks++;
	}
	if (g->remote_row_bytes + g->ring_bytes == 0) {
		end_growth(seconds, false);
		return;
	}
	if ((seconds > PARKED_S && n_ticks > PARKED_TICKS) ||
	    cap + TICK_BYTES > MOST_BYTES) {
		end_growth(seconds, true);
		return;
	}
	if (chute_is_full(&flow_chutes[1]))
		atomic_store(&flow_chutes[1].cap_bytes, cap + TICK_BYTES);
}

void
flow_parked_tick(double part)
{
	struct gauge g;

	(void)part;
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
		grow_on(&g);
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
	rig_ok(n_late == 0 && n_rounds > 0,
	    "%u rounds, %zu KiB parked at most: gone within %.1f s of a chunk "
	    "taken, %u times later than %u s",
	    n_rounds, most_parked >> 10, longest_s, n_late, PARKED_S);
	rig_diag("in %u rounds anything was parked", n_filled);
}
