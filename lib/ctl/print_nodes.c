/* SPDX-License-Identifier: BSD-2-Clause */
/* print_nodes.c - arenas, homes and nodes, for people and for programs. */
#include "lib/ctl/print.h"

#include <string.h>

/* Arenas shown as text. */
#define MAX_SHOWN 32

static void
line(struct eddy_text *t, uint64_t first, const uint64_t *v, size_t n)
{
	eddy_text_number(t, first, 8);
	for (size_t i = 0; i < n; i++)
		eddy_text_number(t, v[i], 12);
	eddy_text_add(t, "\n");
}

#define LINE(t, first, ...)                                 \
	line((t), (first), (const uint64_t[]){__VA_ARGS__}, \
	    sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

#define HEADS(t, ...)                                             \
	eddy_print_heads((t), (const char *const[]){__VA_ARGS__}, \
	    sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

/* ------------------------------------------------------------------ */
/* Text */

static const char *
life_name(enum eddy_life life)
{
	return life == EDDY_LIFE_SHORT ? "short" : "long";
}

/* "0", "0 short" */
static void
home_of(struct eddy_text *t, const struct eddy_stats_arena *a)
{
	const char *name = life_name(a->life);

	if (a->life == EDDY_LIFE_UNKNOWN) {
		eddy_text_number(t, a->home, 12);
		return;
	}
	eddy_text_number(t, a->home, 12 - 1 - (unsigned)strlen(name));
	eddy_text_add(t, " ");
	eddy_text_add(t, name);
}

static void
arena_line(struct eddy_text *t, const struct eddy_stats_arena *a)
{
	if (a->number == 0)
		eddy_text_right(t, "none", 8);
	else
		eddy_text_number(t, a->number, 8);
	if (a->number == 0)
		eddy_text_right(t, "-", 12);
	else if (a->home == EDDY_HOME_NONE)
		eddy_text_right(t, "created", 12);
	else if (a->home == EDDY_HOME_SAMPLES)
		eddy_text_right(t, "samples", 12);
	else
		home_of(t, a);
	if (a->number == 0 || a->node == EDDY_NO_NODE)
		eddy_text_right(t, "-", 12);
	else
		eddy_text_number(t, a->node, 12);
	eddy_text_number(t, a->segments, 12);
	eddy_text_number(t, a->chunks, 12);
	eddy_text_number(t, a->active, 12);
	eddy_text_number(t, a->dirty, 12);
	eddy_text_add(t, "\n");
}

static void
text_arenas(struct eddy_print *p)
{
	struct eddy_stats_arena a;
	uint64_t n = 0;

	HEADS(&p->text, "arena", "home", "node", "segments", "chunks", "active",
	    "dirty");
	for (uint32_t i = 1; i <= eddy_stats_n_arenas(p->h); i++) {
		if (n >= MAX_SHOWN) {
			n += eddy_arena_at(p->h, i) != NULL;
		} else if (eddy_stats_arena(p->h, i, &a)) {
			arena_line(&p->text, &a);
			n++;
		}
	}
	if (n > MAX_SHOWN) {
		eddy_text_number(&p->text, n - MAX_SHOWN, 8);
		eddy_text_add(&p->text, " more\n");
	}
	if (eddy_stats_arena(p->h, 0, &a) && a.active + a.dirty != 0)
		arena_line(&p->text, &a);
}

static void
text_homes(struct eddy_print *p)
{
	struct eddy_stats_home s;

	HEADS(&p->text, "home", "node", "cpus", "kept bytes", "away bytes",
	    "arrived", "ring bytes", "gathers");
	for (uint32_t i = 0; i < p->h->n_homes; i++) {
		eddy_stats_home(p->h, i, &s);
		LINE(&p->text, i, s.node, s.n_cpus, s.kept_bytes, s.away_bytes,
		    s.arrived, s.ring_bytes, s.gathers);
	}
}

static void
text_nodes(struct eddy_print *p)
{
	struct eddy_stats_node s;
	/* relaxed: a statistic. */
	uint32_t refused = eddy_load_relaxed(&p->h->n_unplaced);

	HEADS(&p->text, "node", "homes", "arenas", "active", "dirty",
	    "sent local", "sent remote");
	for (uint32_t i = 0; i < EDDY_MAX_NODES; i++)
		if (eddy_stats_node(p->h, i, &s))
			LINE(&p->text, i, s.n_homes, s.n_arenas, s.active,
			    s.dirty, s.local_bytes, s.remote_bytes);
	if (p->h->places.fake)
		eddy_text_add(
		    &p->text, "nodes are made up by the option topology\n");
	else if (!p->h->places.bind && p->h->places.n_nodes > 1)
		eddy_text_add(&p->text, "memory is not bound to nodes\n");
	if (refused != 0) {
		eddy_text_add(&p->text, "the kernel refused to bind memory: ");
		eddy_text_number(&p->text, refused, 0);
		eddy_text_add(&p->text, " times\n");
	}
}

static void
text_pages(struct eddy_print *p)
{
	struct eddy_text *t = &p->text;
	struct eddy_stats_node node;
	struct eddy_stats_pages s;

	HEADS(t, "node", "sampled", "present", "on the node", "elsewhere");
	for (uint32_t i = 0; i < EDDY_MAX_NODES; i++) {
		int error;

		if (!eddy_stats_node(p->h, i, &node) || node.n_arenas == 0)
			continue;
		error = eddy_stats_pages(p->h, i, &s);
		if (error != 0) {
			eddy_text_add(t,
			    "the kernel does not tell where pages are: "
			    "error ");
			eddy_text_number(t, (uint64_t)-error, 0);
			eddy_text_add(t, "\n");
			return;
		}
		LINE(t, i, s.sampled, s.present, s.right, s.elsewhere);
	}
}

void
eddy_print_nodes_text(struct eddy_print *p)
{
	if (p->h == NULL)
		return;
	text_arenas(p);
	text_homes(p);
	text_nodes(p);
	if (p->pages)
		text_pages(p);
}

/* ------------------------------------------------------------------ */
/* JSON */

static void
json_arenas(struct eddy_print *p)
{
	struct eddy_text *t = &p->text;
	const char *before = "{";
	struct eddy_stats_arena a;

	eddy_text_add(t, ",\"arenas\":[");
	for (uint32_t i = 0; i <= eddy_stats_n_arenas(p->h); i++) {
		if (!eddy_stats_arena(p->h, i, &a))
			continue;
		eddy_print_number(t, before, "arena", i);
		if (i != 0 && a.home < EDDY_HOME_SAMPLES)
			eddy_print_number(t, ",", "home", a.home);
		if (i != 0 && a.life != EDDY_LIFE_UNKNOWN) {
			eddy_text_add(t, ",\"lifetime\":\"");
			eddy_text_add(t, life_name(a.life));
			eddy_text_add(t, "\"");
		}
		if (i != 0 && a.node != EDDY_NO_NODE)
			eddy_print_number(t, ",", "node", a.node);
		eddy_print_number(t, ",", "segments", a.segments);
		eddy_print_number(t, ",", "chunks", a.chunks);
		eddy_print_number(t, ",", "active", a.active);
		eddy_print_number(t, ",", "dirty", a.dirty);
		eddy_text_add(t, "}");
		before = ",{";
	}
	eddy_text_add(t, "]");
}

static void
json_homes(struct eddy_print *p)
{
	struct eddy_text *t = &p->text;
	struct eddy_stats_home s;

	eddy_text_add(t, ",\"homes\":[");
	for (uint32_t i = 0; i < p->h->n_homes; i++) {
		eddy_stats_home(p->h, i, &s);
		eddy_print_number(t, i == 0 ? "{" : ",{", "home", i);
		eddy_print_number(t, ",", "node", s.node);
		eddy_print_number(t, ",", "cpus_in_use", s.n_cpus);
		eddy_print_number(t, ",", "kept", s.kept);
		eddy_print_number(t, ",", "kept_bytes", s.kept_bytes);
		eddy_print_number(t, ",", "away", s.away);
		eddy_print_number(t, ",", "away_bytes", s.away_bytes);
		eddy_print_number(t, ",", "arrived", s.arrived);
		eddy_print_number(t, ",", "ring_bytes", s.ring_bytes);
		eddy_print_number(t, ",", "gathers", s.gathers);
		eddy_text_add(t, "}");
	}
	eddy_text_add(t, "]");
}

static void
json_pages(struct eddy_print *p, uint32_t node)
{
	struct eddy_text *t = &p->text;
	struct eddy_stats_pages s;
	int error = eddy_stats_pages(p->h, node, &s);

	if (error != 0) {
		eddy_print_number(t, ",", "pages_error", (uint64_t)-error);
		return;
	}
	eddy_print_number(t, ",\"pages\":{", "sampled", s.sampled);
	eddy_print_number(t, ",", "present", s.present);
	eddy_print_number(t, ",", "on_node", s.right);
	eddy_print_number(t, ",", "elsewhere", s.elsewhere);
	eddy_text_add(t, "}");
}

static void
json_nodes(struct eddy_print *p)
{
	struct eddy_text *t = &p->text;
	const char *before = "{";
	struct eddy_stats_node s;

	eddy_text_add(t, ",\"nodes\":[");
	for (uint32_t i = 0; i < EDDY_MAX_NODES; i++) {
		if (!eddy_stats_node(p->h, i, &s))
			continue;
		eddy_print_number(t, before, "node", i);
		eddy_print_number(t, ",", "homes", s.n_homes);
		eddy_print_number(t, ",", "arenas", s.n_arenas);
		eddy_print_number(t, ",", "active", s.active);
		eddy_print_number(t, ",", "dirty", s.dirty);
		eddy_print_number(t, ",", "local_bytes", s.local_bytes);
		eddy_print_number(t, ",", "remote_bytes", s.remote_bytes);
		if (p->pages)
			json_pages(p, i);
		eddy_text_add(t, "}");
		before = ",{";
	}
	eddy_text_add(t, "]");
}

void
eddy_print_nodes_json(struct eddy_print *p)
{
	struct eddy_text *t = &p->text;

	if (p->h == NULL)
		return;
	json_arenas(p);
	json_homes(p);
	json_nodes(p);
	/* relaxed: a statistic. */
	eddy_print_number(
	    t, ",", "refused_policies", eddy_load_relaxed(&p->h->n_unplaced));
	eddy_text_add(t, ",\"made_up\":");
	eddy_text_add(t, p->h->places.fake ? "true" : "false");
	eddy_text_add(t, ",\"bound\":");
	eddy_text_add(t, p->h->places.bind ? "true" : "false");
}
