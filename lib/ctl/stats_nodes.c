/* SPDX-License-Identifier: BSD-2-Clause */
/* stats_nodes.c - arenas, homes and nodes. */
#include "lib/ctl/stats.h"
#include "lib/heap/bind.h"
#include "lib/heap/cpu_cache.h"
#include "lib/heap/pagemap.h"
#include "lib/heap/returns.h"
#include "numa/policy.h"

bool
eddy_stats_arena(
    struct eddy_heap *h, uint32_t number, struct eddy_stats_arena *ret)
{
	struct eddy_walk w;

	*ret =
	    (struct eddy_stats_arena){.number = number, .home = EDDY_HOME_NONE};
	if (number != 0) {
		struct eddy_arena *a =
		    number <= EDDY_MAX_ARENAS ? eddy_arena_at(h, number) : NULL;

		if (a == NULL)
			return false;
		ret->home = eddy_base_home(h, a->home);
		ret->life = eddy_life_of(h, a->home);
		/* relaxed: a statistic. */
		ret->node = eddy_load_relaxed(&a->node);
	}
	eddy_walk_begin(&w, h, number);
	eddy_walk(&w);
	ret->segments = w.segments;
	ret->chunks = w.chunks;
	ret->active = w.active;
	ret->dirty = w.dirty;
	return true;
}

/* ------------------------------------------------------------------ */
/* Homes */

static uint32_t
node_of(struct eddy_heap *h, uint32_t home)
{
	return (uint32_t)h->places.node_of_home[home];
}

/* Bytes that a slot in use sent off, of its own home and of others. */
static void
add_sent(struct eddy_heap *h, unsigned cpu, size_t *own, size_t *others)
{
	for (unsigned row = 1; row < EDDY_N_ROWS; row++) {
		struct eddy_bleed_flow f = eddy_stats_flow(h, cpu, row);

		*own += f.out * eddy_row_size(row);
		*others += f.away * eddy_row_size(row);
	}
}

void
eddy_stats_home(struct eddy_heap *h, uint32_t home, struct eddy_stats_home *ret)
{
	struct eddy_stats_traffic t;

	*ret = (struct eddy_stats_home){
	    .node = node_of(h, home),
	    /* relaxed: a statistic. */
	    .gathers = eddy_load_relaxed(&h->gathers[home].epoch),
	};
	for (unsigned cpu = 0; cpu < h->n_slots; cpu++) {
		if (!eddy_stats_traffic(h, cpu, &t))
			continue;
		if (t.home != home) {
			ret->arrived += eddy_stats_to_home(h, cpu, home);
			continue;
		}
		ret->n_cpus++;
		ret->kept += t.out;
		ret->away += t.away;
		add_sent(h, cpu, &ret->kept_bytes, &ret->away_bytes);
	}
	for (uint32_t i = 0; h->sections && i < eddy_n_numbers(h); i++) {
		if (eddy_base_home(h, i) != home)
			continue;
		for (unsigned row = 1; row < EDDY_N_ROWS; row++)
			ret->ring_bytes +=
			    eddy_returns_count(h, eddy_place(i, row)) *
			    eddy_row_size(row);
	}
}

/* ------------------------------------------------------------------ */
/* Nodes */

/* bytes * part / all, where part <= all. */
static size_t
share(size_t bytes, uint64_t part, uint64_t all)
{
	/* Neither needs more than 32 bits of precision. */
	while (all > UINT32_MAX) {
		all /= 2;
		part /= 2;
	}
	if (all == 0)
		return 0;
	return bytes / all * part + bytes % all * part / all;
}

/* What a slot in use of a home on the node sent off. */
static void
add_slot(struct eddy_heap *h, unsigned cpu, uint32_t node,
    const struct eddy_stats_traffic *t, struct eddy_stats_node *ret)
{
	size_t own = 0;
	size_t others = 0;
	size_t near;
	uint64_t here = 0;
	uint64_t all = 0;

	for (uint32_t i = 0; i < h->n_homes; i++) {
		uint64_t n = i != t->home ? eddy_stats_to_home(h, cpu, i) : 0;

		all += n;
		here += node_of(h, i) == node ? n : 0;
	}
	add_sent(h, cpu, &own, &others);
	near = share(others, here, all);
	ret->local_bytes += own + near;
	ret->remote_bytes += others - near;
}

bool
eddy_stats_node(struct eddy_heap *h, uint32_t node, struct eddy_stats_node *ret)
{
	struct eddy_stats_traffic t;
	struct eddy_stats_arena a;

	*ret = (struct eddy_stats_node){0};
	for (uint32_t i = 0; i < h->n_homes; i++)
		ret->n_homes += node_of(h, i) == node;
	for (uint32_t i = 1; i <= eddy_stats_n_arenas(h); i++) {
		struct eddy_arena *at = eddy_arena_at(h, i);

		/* relaxed: a statistic; then those of this node alone. */
		if (at == NULL || eddy_load_relaxed(&at->node) != node ||
		    !eddy_stats_arena(h, i, &a))
			continue;
		ret->n_arenas++;
		ret->active += a.active;
		ret->dirty += a.dirty;
	}
	for (unsigned cpu = 0; ret->n_homes != 0 && cpu < h->n_slots; cpu++)
		if (eddy_stats_traffic(h, cpu, &t) &&
		    node_of(h, t.home) == node)
			add_slot(h, cpu, node, &t, ret);
	return ret->n_homes + ret->n_arenas != 0 ||
	       eddy_node_in(h->places.has_memory, node);
}

/* ------------------------------------------------------------------ */
/* Pages */

#define QUERY 64

struct sampler {
	struct eddy_walk w; /* first: what the callback gets */
	uint32_t node;
	bool spread;    /* over all nodes with memory */
	uint64_t every; /* one page in so many */
	uint64_t skip;  /* pages until the next one */
	int error;
	unsigned n;
	void *pages[QUERY];
	struct eddy_stats_pages *ret;
};

static bool
is_right(const struct sampler *s, int node)
{
	const struct eddy_placement *p = &s->w.h->places;

	return s->spread ? eddy_node_in(p->has_memory, (unsigned)node)
			 : node == (int)s->node;
}

static void
ask(struct sampler *s)
{
	int nodes[QUERY];

	if (s->n != 0 && s->error == 0)
		s->error = eddy_policy_nodes_of(s->pages, nodes, s->n);
	for (unsigned i = 0; s->error == 0 && i < s->n; i++) {
		s->ret->sampled++;
		/* No page, or the kernel's page of zeros. */
		if (nodes[i] < 0)
			continue;
		s->ret->present++;
		if (is_right(s, nodes[i]))
			s->ret->right++;
		else
			s->ret->elsewhere++;
	}
	s->n = 0;
}

static void
sample(struct eddy_walk *w, const void *p, size_t pages)
{
	struct sampler *s = (struct sampler *)w;

	for (; s->skip < pages; s->skip += s->every) {
		if (s->error != 0 ||
		    s->ret->sampled + s->n >= EDDY_STATS_SAMPLES)
			return;
		s->pages[s->n++] = (void *)((uintptr_t)p + s->skip * EDDY_PAGE);
		if (s->n == QUERY)
			ask(s);
	}
	s->skip -= pages;
}

int
eddy_stats_pages(
    struct eddy_heap *h, uint32_t node, struct eddy_stats_pages *ret)
{
	struct sampler s = {.node = node, .ret = ret};
	struct eddy_stats_node all;

	*ret = (struct eddy_stats_pages){0};
	if (!eddy_stats_node(h, node, &all))
		return 0;
	s.every = all.active / EDDY_PAGE / EDDY_STATS_SAMPLES + 1;
	s.skip = s.every / 2;
	for (uint32_t i = 1; i <= eddy_stats_n_arenas(h); i++) {
		struct eddy_arena *a = eddy_arena_at(h, i);

		/* relaxed: a statistic. */
		if (a == NULL || eddy_load_relaxed(&a->node) != node)
			continue;
		s.spread =
		    eddy_bind_wanted(h, a->home, node) == EDDY_BOUND_SPREAD;
		eddy_walk_begin(&s.w, h, i);
		s.w.used = sample;
		eddy_walk(&s.w);
		ask(&s);
	}
	return s.error;
}
