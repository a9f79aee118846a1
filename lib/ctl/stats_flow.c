/* SPDX-License-Identifier: BSD-2-Clause */
/* stats_flow.c - what CPUs took and sent, and what that says. */
#include "lib/ctl/counts.h"
#include "lib/ctl/stats.h"
#include "lib/heap/cpu_cache.h"
#include "lib/heap/returns.h"

bool
eddy_stats_traffic(
    struct eddy_heap *h, unsigned cpu, struct eddy_stats_traffic *ret)
{
	struct eddy_slot_stats *s;

	if (h == NULL || !h->sections || cpu >= h->n_slots ||
	    !eddy_cache_slot_used(h, cpu))
		return false;
	s = eddy_cache_stats(h, cpu);
	*ret = (struct eddy_stats_traffic){
	    .home = eddy_cache_slot_home(h, cpu),
	    .to_slabs = eddy_peek(&s->to_slabs),
	    .ring_puts = eddy_peek(&s->ring_puts),
	    .ring_takes = eddy_peek(&s->ring_takes),
	    .ring_spills = eddy_peek(&s->ring_spills),
	    .rmws = eddy_peek(&s->rmws),
	};
	for (unsigned row = 1; row < EDDY_N_ROWS; row++) {
		ret->in += eddy_peek(&s->row[row].in);
		ret->back += eddy_peek(&s->row[row].back);
		ret->out += eddy_peek(&s->row[row].out);
		ret->away += eddy_peek(&s->row[row].away);
	}
	return true;
}

void
eddy_stats_add_traffic(
    struct eddy_stats_traffic *a, const struct eddy_stats_traffic *b)
{
	a->in += b->in;
	a->back += b->back;
	a->out += b->out;
	a->away += b->away;
	a->to_slabs += b->to_slabs;
	a->ring_puts += b->ring_puts;
	a->ring_takes += b->ring_takes;
	a->ring_spills += b->ring_spills;
	a->rmws += b->rmws;
}

uint64_t
eddy_stats_to_home(struct eddy_heap *h, unsigned cpu, uint32_t home)
{
	return eddy_peek(&eddy_cache_stats(h, cpu)->to_home[home]);
}

struct eddy_bleed_flow
eddy_stats_flow(struct eddy_heap *h, unsigned cpu, unsigned row)
{
	struct eddy_row_stats *s = &eddy_cache_stats(h, cpu)->row[row];
	uint32_t place = eddy_place(eddy_cache_slot_home(h, cpu), row);

	return (struct eddy_bleed_flow){
	    .in = eddy_peek(&s->in),
	    .back = eddy_peek(&s->back),
	    .out = eddy_peek(&s->out),
	    .away = eddy_peek(&s->away),
	    .cut = eddy_cache_capacity(eddy_cache_row(h, cpu, place)) <
		   eddy_classes[row].depth,
	};
}

struct eddy_bleed_world
eddy_stats_world(struct eddy_heap *h)
{
	struct eddy_bleed_world w = {.n_homes = h->n_homes,
	    .one_node = true,
	    .cpu_cache_bytes = h->opts.cpu_cache_bytes};

	for (uint32_t i = 1; i < h->n_homes; i++)
		w.one_node &=
		    h->places.node_of_home[i] == h->places.node_of_home[0];
	return w;
}

/* What a finding says of a CPU. */
static struct eddy_bleed_cpu
describe(struct eddy_heap *h, unsigned cpu)
{
	struct eddy_bleed_cpu c = {.cpu = cpu,
	    .home = eddy_cache_slot_home(h, cpu),
	    .other_home = EDDY_BLEED_NOBODY};
	uint64_t most = 0;

	for (uint32_t i = 0; i < h->n_homes; i++) {
		uint64_t n = eddy_stats_to_home(h, cpu, i);

		if (i == c.home || n <= most)
			continue;
		c.other_home = i;
		most = n;
	}
	return c;
}

/* Row by row: what is known of one CPU is small, that of all of them is not. */
static void
judge_row(struct eddy_heap *h, unsigned row, struct eddy_bleed_finding *ret)
{
	const struct eddy_class *class = &eddy_classes[row];
	uint64_t waiting = 0;
	struct eddy_bleed b;

	for (uint32_t i = 0; i < eddy_n_numbers(h); i++)
		waiting += eddy_returns_count(h, eddy_place(i, row));
	eddy_bleed_begin(
	    &b, class->size, class->batch, eddy_returns_limit(row), waiting);
	for (unsigned cpu = 0; cpu < h->n_slots; cpu++) {
		struct eddy_bleed_flow flow;
		struct eddy_bleed_cpu c;

		if (!eddy_cache_slot_used(h, cpu))
			continue;
		flow = eddy_stats_flow(h, cpu, row);
		if ((flow.in | flow.out | flow.away) == 0)
			continue;
		c = describe(h, cpu);
		eddy_bleed_add(&b, &c, &flow);
	}
	eddy_bleed_judge(&b, ret);
}

void
eddy_stats_bleeding(
    struct eddy_heap *h, struct eddy_bleed_finding *ret, unsigned n)
{
	struct eddy_bleed_finding f;

	for (unsigned i = 0; i < n; i++)
		ret[i] = (struct eddy_bleed_finding){.kind = EDDY_BLEED_NONE};
	if (h == NULL || !h->sections)
		return;
	for (unsigned row = 1; row < EDDY_N_ROWS; row++) {
		judge_row(h, row, &f);
		eddy_bleed_rank(ret, n, &f);
	}
}
