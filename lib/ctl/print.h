/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * print.h - the parts of eddy_stats_print, among themselves.
 *
 * Layer     ctl (L5).
 * Used by stats_print.c, print_flows.c and print_nodes.c alone.
 */
#ifndef EDDY_PRINT_H
#define EDDY_PRINT_H

#include "lib/ctl/stats.h"
#include "lib/ctl/text.h"

struct eddy_print {
	struct eddy_text text;
	struct eddy_heap *h; /* NULL before the first allocation */
	struct eddy_stats st;
	/* Parts left out, by the letters of opts. */
	bool no_options; /* g */
	bool no_caches;  /* a: whatever is said of single CPUs */
	bool no_small;   /* b */
	bool no_large;   /* l */
	bool no_flows;   /* f */
	bool no_nodes;   /* n */
	/* Parts left out but for these. */
	bool pages; /* p */
	bool json;  /* J */
};

/* A line of titles, the first one narrower. */
void eddy_print_heads(struct eddy_text *t, const char *const *heads, size_t n);

/* JSON: "name":v behind what came before in the same object. */
void eddy_print_number(
    struct eddy_text *t, const char *before, const char *name, uint64_t v);

void eddy_print_flows_text(struct eddy_print *p);
void eddy_print_flows_json(struct eddy_print *p);

void eddy_print_nodes_text(struct eddy_print *p);
void eddy_print_nodes_json(struct eddy_print *p);

#endif /* EDDY_PRINT_H */
