/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stats_print.c - malloc_stats_print: jemalloc's report, whose values come by
 * the names of mallctl(3), and eddy's own.
 */
#include "lib/base/chars.h"
#include "lib/ctl/print.h"
#include "lib/ctl/snapshot.h"

static void
read_letters(struct eddy_print *p, const char *opts)
{
	for (; opts != NULL && *opts != '\0'; opts++) {
		p->no_general |= *opts == 'g';
		p->no_merged |= *opts == 'm';
		p->no_destroyed |= *opts == 'd';
		p->no_arenas |= *opts == 'a';
		p->no_small |= *opts == 'b';
		p->no_large |= *opts == 'l';
		p->no_mutexes |= *opts == 'x';
		p->no_extents |= *opts == 'e';
		p->no_huge |= *opts == 'h';
		p->no_flows |= *opts == 'f';
		p->no_nodes |= *opts == 'n';
		p->pages |= *opts == 'p';
		p->kernel |= *opts == 'r';
		p->json |= *opts == 'J';
	}
}

static bool
is_initialized(struct eddy_print *p, uint64_t index)
{
	struct eddy_print_stem s;

	eddy_print_stem(&s, "arena.", index);
	return eddy_print_number_of(p, &s, "initialized") != 0;
}

static void
put_arena(struct eddy_print *p, uint64_t index, const char *key)
{
	if (p->json)
		eddy_json_open(p, key, "{");
	eddy_print_arena(p, index);
	if (p->json)
		eddy_json_close(p, "}");
}

static void
put_single(struct eddy_print *p, uint64_t index)
{
	char key[EDDY_DIGITS_MAX + 1];
	char *s = key + EDDY_DIGITS_MAX;

	*s = '\0';
	s = eddy_digits(s, index);
	if (!p->json) {
		eddy_text_add(&p->text, "arenas[");
		eddy_text_add(&p->text, s);
		eddy_text_add(&p->text, "]:\n");
	}
	put_arena(p, index, s);
}

static void
put_arenas(struct eddy_print *p)
{
	uint64_t n = eddy_ctl_n_arenas(p->h);
	unsigned there = 0;

	if (p->no_merged && p->no_destroyed && p->no_arenas)
		return;
	if (p->json)
		eddy_json_open(p, "stats.arenas", "{");
	for (uint64_t i = 0; i < n; i++)
		there += is_initialized(p, i);
	if (!p->no_merged && (there > 1 || p->no_arenas)) {
		if (!p->json)
			eddy_text_add(&p->text, "Merged arenas stats:\n");
		put_arena(p, EDDY_CTL_ALL, "merged");
	}
	if (!p->no_destroyed && is_initialized(p, EDDY_CTL_DESTROYED)) {
		if (!p->json)
			eddy_text_add(&p->text, "Destroyed arenas stats:\n");
		put_arena(p, EDDY_CTL_DESTROYED, "destroyed");
	}
	for (uint64_t i = 0; i < n && !p->no_arenas; i++)
		if (is_initialized(p, i))
			put_single(p, i);
	if (p->json)
		eddy_json_close(p, "}");
}

static void
put_jemalloc(struct eddy_print *p)
{
	if (p->json)
		eddy_json_open(p, "jemalloc", "{");
	else
		eddy_text_add(&p->text, "___ Begin jemalloc statistics ___\n");
	if (!p->no_general)
		eddy_print_general(p);
	eddy_print_totals(p);
	put_arenas(p);
	if (p->json)
		eddy_json_close(p, "}");
	else
		eddy_text_add(&p->text, "--- End jemalloc statistics ---\n");
}

void
eddy_stats_print(struct eddy_heap *h, void (*put)(void *arg, const char *s),
    void *arg, const char *opts)
{
	struct eddy_print p = {.h = h, .first = true};
	uint64_t epoch;

	eddy_text_open(&p.text, put, arg);
	if (h == NULL || eddy_snapshot_refresh(h, &epoch) != 0) {
		eddy_text_add(&p.text, "<eddy>: no memory for statistics\n");
		eddy_text_close(&p.text);
		return;
	}
	read_letters(&p, opts);
	if (p.json)
		eddy_json_open(&p, NULL, "{");
	put_jemalloc(&p);
	eddy_print_own(&p);
	if (p.json)
		eddy_json_close(&p, "}");
	eddy_text_add(&p.text, p.json ? "\n" : "");
	eddy_text_close(&p.text);
}
