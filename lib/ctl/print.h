/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * print.h - the parts of eddy_stats_print, among themselves.
 *
 * Layer     ctl (L5).
 * Used by stats_print.c, print*.c and, for flows, control_serve.c alone.
 */
#ifndef EDDY_PRINT_H
#define EDDY_PRINT_H

#include "lib/ctl/mallctl.h"
#include "lib/ctl/stats.h"
#include "lib/ctl/text.h"

struct eddy_print {
	struct eddy_text text;
	struct eddy_heap *h;
	struct eddy_stats st; /* a walk; of eddy's own part */
	/* Parts left out, by the letters of opts. */
	bool no_general;   /* g */
	bool no_merged;    /* m */
	bool no_destroyed; /* d */
	bool no_arenas;  /* a: single arenas; and whatever is of single CPUs */
	bool no_small;   /* b */
	bool no_large;   /* l */
	bool no_mutexes; /* x */
	bool no_extents; /* e */
	bool no_huge;    /* h */
	bool no_flows;   /* f */
	bool no_nodes;   /* n */
	/* Parts left out but for these. */
	bool pages;  /* p */
	bool kernel; /* r */
	bool json;   /* J */
	/* JSON: nothing was written since the last bracket was opened. */
	bool first;
};

/* ------------------------------------------------------------------ */
/* Values by the names of mallctl(3).  A name is given as a stem and what
 * follows it. */

struct eddy_print_stem {
	char name[64];
	size_t len;
};

/* "stats.arenas.<i>.", and with a word and a number behind it "bins.<j>.". */
void eddy_print_stem(
    struct eddy_print_stem *s, const char *what, uint64_t number);
void eddy_print_stem_add(
    struct eddy_print_stem *s, const char *what, uint64_t number);

/* Returns: false: there is no such name, or it has no value to be read. */
EDDY_MUST_USE bool eddy_print_look(struct eddy_print *p,
    const struct eddy_print_stem *s, const char *key, struct eddy_ctl *ret);

/* Its number, 0 if there is none. */
uint64_t eddy_print_number_of(
    struct eddy_print *p, const struct eddy_print_stem *s, const char *key);

/* As text: a number, true, false, a string in quotes. */
void eddy_print_value(struct eddy_print *p, const struct eddy_ctl *v);

/* ------------------------------------------------------------------ */
/* JSON: commas are where they belong. */

/* A bracket; key NULL: in an array. */
void eddy_json_open(struct eddy_print *p, const char *key, const char *bracket);
void eddy_json_close(struct eddy_print *p, const char *bracket);
void eddy_json_key(struct eddy_print *p, const char *key);
void eddy_json_number(struct eddy_print *p, const char *key, uint64_t v);

/* "key":value of the name; nothing if there is none. */
void eddy_json_name(struct eddy_print *p, const struct eddy_print_stem *s,
    const char *key, const char *name);
/* The same of many whose keys are the ends of their names. */
void eddy_json_names(struct eddy_print *p, const struct eddy_print_stem *s,
    const char *const *keys, size_t n);

/* ------------------------------------------------------------------ */
/* Tables of jemalloc's form. */

struct eddy_column {
	const char *head;
	const char *key; /* NULL: the rate of what stands before it */
	unsigned width;
};

void eddy_table_heads(
    struct eddy_print *p, const struct eddy_column *c, size_t n);
/* One line of values by name; uptime: ns, for rates. */
void eddy_table_line(struct eddy_print *p, const struct eddy_column *c,
    size_t n, const struct eddy_print_stem *s, uint64_t uptime);
/* A second. */
uint64_t eddy_print_rate(uint64_t v, uint64_t uptime);

#define EDDY_N(a) (sizeof(a) / sizeof((a)[0]))

/* ------------------------------------------------------------------ */
/* jemalloc's parts, in either form */

void eddy_print_general(struct eddy_print *p);
void eddy_print_totals(struct eddy_print *p);
/* Of one index of stats.arenas. */
void eddy_print_arena(struct eddy_print *p, uint64_t index);
void eddy_print_bins(struct eddy_print *p, uint64_t index, uint64_t uptime);
void eddy_print_lextents(struct eddy_print *p, uint64_t index, uint64_t uptime);
void eddy_print_extents(struct eddy_print *p, uint64_t index);
void eddy_print_huge(struct eddy_print *p, uint64_t index);
/* Locks of a stem, each by its name; and those of a bin. */
void eddy_print_mutexes(struct eddy_print *p, const struct eddy_print_stem *s,
    const char *const *names, size_t n);
void eddy_json_mutex(
    struct eddy_print *p, const struct eddy_print_stem *s, const char *name);

/* ------------------------------------------------------------------ */
/* eddy's own parts */

void eddy_print_own(struct eddy_print *p);

/* A line of titles, the first one narrower. */
void eddy_print_heads(struct eddy_text *t, const char *const *heads, size_t n);

/* JSON: "name":v behind what came before in the same object. */
void eddy_print_number(
    struct eddy_text *t, const char *before, const char *name, uint64_t v);

void eddy_print_flows_text(struct eddy_print *p);
void eddy_print_flows_json(struct eddy_print *p);

void eddy_print_nodes_text(struct eddy_print *p);
void eddy_print_nodes_json(struct eddy_print *p);

/* In either form. */
void eddy_print_memory(struct eddy_print *p);
void eddy_print_waste(struct eddy_print *p);

#endif /* EDDY_PRINT_H */
