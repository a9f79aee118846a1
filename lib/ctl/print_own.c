/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * print_own.c - what jemalloc's report has no place for: a walk's totals and
 * classes, caches.
 */
#include "lib/ctl/conf.h"
#include "lib/ctl/print.h"
#include "lib/heap/cpu_cache.h"

struct total {
	const char *name;
	size_t offset; /* in struct eddy_stats, of a size_t */
	const char *what;
};

#define TOTAL(name, what)                                      \
	{                                                      \
#		name, offsetof(struct eddy_stats, name), what \
	}

static const struct total totals[] = {
    TOTAL(live, "in the program's hands"),
    TOTAL(stranded, "cached, for one CPU, a group of threads or the next"),
    TOTAL(stranded_bound, "what that can be at most"),
    TOTAL(row_bytes, "of these, in rows of CPUs"),
    TOTAL(remote_row_bytes, "in rows of CPUs, for other homes"),
    TOTAL(ring_bytes, "on their way between CPUs"),
    TOTAL(cell_bytes, "in cells of groups of threads"),
    TOTAL(active, "pages of slabs, runs and huge blocks"),
    TOTAL(dirty, "free pages that may hold memory"),
    TOTAL(muzzy, "free pages that the kernel may take"),
    TOTAL(clean, "free pages that hold none"),
    TOTAL(in_hand, "pages on their way, or lost by killed threads"),
    TOTAL(metadata, "tags, descriptors, rows (an estimate)"),
    TOTAL(resident, "active, dirty, muzzy, in hand and metadata"),
    TOTAL(mapped, "accessible addresses"),
    TOTAL(metadata_mapped, "of these, for metadata"),
    TOTAL(retained, "reserved addresses without access"),
};

#define N_TOTALS (sizeof(totals) / sizeof(totals[0]))

static uint64_t
total_of(const struct eddy_stats *st, const struct total *t)
{
	return *(const size_t *)(const void *)((const char *)st + t->offset);
}

static bool
row_shown(const struct eddy_print *p, unsigned row)
{
	const struct eddy_stats_row *r = &p->st.row[row];

	if (row >= EDDY_ROW_RUN ? p->no_large : p->no_small)
		return false;
	return (r->slabs | r->cached | r->refills | r->overflows) != 0;
}

/* ------------------------------------------------------------------ */
/* Options: lines of eddy_conf_print, "  opt.NAME: VALUE\n" */

struct options {
	struct eddy_print *p;
	const struct eddy_opts *defaults;
	unsigned n; /* lines seen */
	unsigned n_shown;
	unsigned skip;    /* inner pass: lines until the one wanted */
	const char *line; /* inner pass: what it is compared with */
	bool same;
};

static bool
same_text(const char *a, const char *b)
{
	while (*a != '\0' && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

static void
compare_line(void *arg, const char *line)
{
	struct options *o = arg;

	if (o->skip-- == 0)
		o->same = same_text(o->line, line);
}

/* Whether line number o->n says what the default would. */
static bool
is_default(struct options *o, const char *line)
{
	o->skip = o->n++;
	o->line = line;
	o->same = false;
	eddy_conf_print(o->defaults, compare_line, o);
	return o->same;
}

static void
option_text(void *arg, const char *line)
{
	struct options *o = arg;

	if (is_default(o, line))
		return;
	if (o->n_shown++ == 0)
		eddy_text_add(&o->p->text, "options set:\n");
	eddy_text_add(&o->p->text, line);
}

static bool
is_plain(const char *s, size_t n)
{
	size_t digits = 0;

	while (digits < n && s[digits] >= '0' && s[digits] <= '9')
		digits++;
	return n != 0 && digits == n;
}

static void
json_digits(struct eddy_text *t, const char *s, size_t n)
{
	uint64_t v = 0;

	/* What eddy_conf_print wrote as a number fits in 64 bits. */
	while (n-- > 0)
		v = v * 10 + (uint64_t)(*s++ - '0');
	eddy_text_number(t, v, 0);
}

static void
option_json(void *arg, const char *line)
{
	struct options *o = arg;
	struct eddy_text *t = &o->p->text;
	const char *name = line + 6; /* behind "  opt." */
	const char *value;
	size_t n = 0;

	for (value = name; *value != ':'; value++)
		;
	eddy_text_add(t, o->n_shown++ == 0 ? "" : ",");
	eddy_text_quoted(t, name, (size_t)(value - name));
	eddy_text_add(t, ":");
	value += 2;
	while (value[n] != '\n' && value[n] != '\0')
		n++;
	if (same_text(value, "true\n"))
		eddy_text_add(t, "true");
	else if (same_text(value, "false\n"))
		eddy_text_add(t, "false");
	else if (is_plain(value, n))
		json_digits(t, value, n);
	else
		eddy_text_quoted(t, value, n);
}

/* The log is 2 KiB of stack: not in the frame of what prints the tables. */
static EDDY_NOINLINE void
fill_defaults(struct eddy_opts *ret)
{
	static const struct eddy_conf_strings none;
	struct eddy_conf_log log;

	if (eddy_conf_parse(ret, &log, &none) != 0) {
		/* Nothing to read, nothing to find fault with. */
	}
}

static void
print_options(struct eddy_print *p)
{
	struct eddy_opts defaults;
	struct options o = {.p = p, .defaults = &defaults};

	if (p->no_general)
		return;
	fill_defaults(&defaults);
	eddy_conf_print(&p->h->opts, p->json ? option_json : option_text, &o);
}

/* ------------------------------------------------------------------ */
/* Text */

static void
text_totals(struct eddy_print *p)
{
	struct eddy_text *t = &p->text;

	eddy_text_add(t, "bytes:\n");
	for (size_t i = 0; i < N_TOTALS; i++) {
		uint64_t v = total_of(&p->st, &totals[i]);

		eddy_text_add(t, "  ");
		eddy_text_left(t, totals[i].name, 16);
		eddy_text_number(t, v, 16);
		eddy_text_add(t, "  (");
		eddy_text_human(t, v);
		eddy_text_add(t, ") ");
		eddy_text_add(t, totals[i].what);
		eddy_text_add(t, "\n");
	}
}

static void
text_counts(struct eddy_print *p)
{
	struct eddy_text *t = &p->text;

	eddy_text_add(t, "refills ");
	eddy_text_number(t, p->st.refills, 0);
	eddy_text_add(t, ", overflows ");
	eddy_text_number(t, p->st.overflows, 0);
	eddy_text_add(t, ", aborts ");
	eddy_text_number(t, p->st.aborts, 0);
	eddy_text_add(t, "\nchunks cut into pages ");
	eddy_text_number(t, p->st.chunks, 0);
	eddy_text_add(t, ", free runs in them ");
	eddy_text_number(t, p->st.free_runs, 0);
	eddy_text_add(t, "\ncalloc above 64 KiB: bytes zeroed ");
	eddy_text_number(t, p->st.zeroed, 0);
	eddy_text_add(t, ", left alone ");
	eddy_text_number(t, p->st.zero_skipped, 0);
	eddy_text_add(t, "\n");
}

static void
text_classes(struct eddy_print *p)
{
	static const char *const heads[] = {
	    "size", "slabs", "live", "free", "cached", "refills", "overflows"};
	struct eddy_text *t = &p->text;

	eddy_print_heads(t, heads, sizeof(heads) / sizeof(heads[0]));
	for (unsigned row = 1; row < EDDY_N_ROWS; row++) {
		const struct eddy_stats_row *r = &p->st.row[row];

		if (!row_shown(p, row))
			continue;
		eddy_text_number(t, eddy_row_size(row), 8);
		if (row >= EDDY_ROW_RUN)
			eddy_text_right(t, "-", 12);
		else
			eddy_text_number(t, r->slabs, 12);
		eddy_text_number(t, r->live, 12);
		eddy_text_number(t, r->free, 12);
		eddy_text_number(t, r->cached, 12);
		eddy_text_number(t, r->refills, 12);
		eddy_text_number(t, r->overflows, 12);
		eddy_text_add(t, "\n");
	}
	if (p->no_large)
		return;
	eddy_text_add(t, "other runs ");
	eddy_text_number(t, p->st.runs, 0);
	eddy_text_add(t, ", bytes ");
	eddy_text_number(t, p->st.run_bytes, 0);
	eddy_text_add(t, "\nhuge blocks ");
	eddy_text_number(t, p->st.huge, 0);
	eddy_text_add(t, ", bytes ");
	eddy_text_number(t, p->st.huge_bytes, 0);
	eddy_text_add(t, "\n");
}

static void
text_cache(
    struct eddy_text *t, unsigned number, const struct eddy_stats_cache *c)
{
	eddy_text_number(t, number, 8);
	eddy_text_number(t, c->bytes, 12);
	eddy_text_number(t, c->n_cached, 12);
	eddy_text_number(t, c->refills, 12);
	eddy_text_number(t, c->overflows, 12);
	eddy_text_number(t, c->aborts, 12);
	eddy_text_add(t, "\n");
}

static void
text_caches(struct eddy_print *p)
{
	static const char *const heads[] = {
	    "cpu", "bytes", "objects", "refills", "overflows", "aborts"};
	static const char *const cells[] = {
	    "cells", "bytes", "objects", "refills", "overflows", "aborts"};
	struct eddy_stats_cache c;
	bool any = false;

	for (unsigned i = 0; i < p->h->n_slots; i++) {
		if (!eddy_stats_cpu(p->h, i, &c))
			continue;
		if (!any)
			eddy_print_heads(
			    &p->text, heads, sizeof(heads) / sizeof(heads[0]));
		any = true;
		text_cache(&p->text, i, &c);
	}
	any = false;
	for (unsigned i = 0; i < eddy_cache_n_cells(p->h); i++) {
		if (!eddy_stats_cells(p->h, i, &c))
			continue;
		if (!any)
			eddy_print_heads(
			    &p->text, cells, sizeof(cells) / sizeof(cells[0]));
		any = true;
		text_cache(&p->text, i, &c);
	}
}

static void
print_text(struct eddy_print *p)
{
	eddy_text_add(&p->text, "___ eddy ");
	eddy_text_add(&p->text, eddy_version);
	eddy_text_add(&p->text, " statistics, mode: ");
	eddy_text_add(&p->text, eddy_stats_mode_name(p->st.mode));
	eddy_text_add(&p->text, " ___\n");
	print_options(p);
	text_totals(p);
	text_counts(p);
	eddy_print_memory(p);
	if (!p->no_small || !p->no_large)
		text_classes(p);
	if (!p->no_small)
		eddy_print_waste(p);
	if (!p->no_arenas)
		text_caches(p);
	if (!p->no_nodes)
		eddy_print_nodes_text(p);
	if (!p->no_flows)
		eddy_print_flows_text(p);
	eddy_text_add(&p->text, "___ end of eddy statistics ___\n");
}

/* ------------------------------------------------------------------ */
/* JSON */

static void
json_totals(struct eddy_print *p)
{
	struct eddy_text *t = &p->text;
	const struct eddy_stats *st = &p->st;

	eddy_text_add(t, ",\"stats\":");
	for (size_t i = 0; i < N_TOTALS; i++)
		eddy_print_number(t, i == 0 ? "{" : ",", totals[i].name,
		    total_of(st, &totals[i]));
	eddy_print_number(t, ",", "chunks", st->chunks);
	eddy_print_number(t, ",", "free_runs", st->free_runs);
	eddy_print_number(t, ",", "cached_objects", st->n_cached);
	eddy_print_number(t, ",", "refills", st->refills);
	eddy_print_number(t, ",", "overflows", st->overflows);
	eddy_print_number(t, ",", "aborts", st->aborts);
	eddy_print_number(t, ",", "cpus_in_use", st->n_cpus);
	eddy_print_number(t, ",", "zeroed", st->zeroed);
	eddy_print_number(t, ",", "zero_skipped", st->zero_skipped);
	eddy_text_add(t, "}");
}

static void
json_classes(struct eddy_print *p)
{
	struct eddy_text *t = &p->text;
	bool any = false;

	eddy_text_add(t, ",\"classes\":[");
	for (unsigned row = 1; row < EDDY_N_ROWS; row++) {
		const struct eddy_stats_row *r = &p->st.row[row];

		if (!row_shown(p, row))
			continue;
		eddy_print_number(
		    t, any ? ",{" : "{", "size", eddy_row_size(row));
		eddy_print_number(
		    t, ",", "slabs", row < EDDY_ROW_RUN ? r->slabs : 0);
		eddy_print_number(t, ",", "live", r->live);
		eddy_print_number(t, ",", "free", r->free);
		eddy_print_number(t, ",", "cached", r->cached);
		eddy_print_number(t, ",", "refills", r->refills);
		eddy_print_number(t, ",", "overflows", r->overflows);
		eddy_text_add(t, "}");
		any = true;
	}
	eddy_text_add(t, "]");
	if (p->no_large)
		return;
	eddy_print_number(t, ",\"runs\":{", "blocks", p->st.runs);
	eddy_print_number(t, ",", "bytes", p->st.run_bytes);
	eddy_print_number(t, "},\"huge\":{", "blocks", p->st.huge);
	eddy_print_number(t, ",", "bytes", p->st.huge_bytes);
	eddy_text_add(t, "}");
}

static void
json_cache(struct eddy_text *t, const char *before, unsigned number,
    const struct eddy_stats_cache *c)
{
	eddy_print_number(t, before, "number", number);
	eddy_print_number(t, ",", "bytes", c->bytes);
	eddy_print_number(t, ",", "objects", c->n_cached);
	eddy_print_number(t, ",", "refills", c->refills);
	eddy_print_number(t, ",", "overflows", c->overflows);
	eddy_print_number(t, ",", "aborts", c->aborts);
}

/* Of one CPU, each row that was ever used. */
static void
json_cpu_rows(struct eddy_print *p, unsigned cpu)
{
	struct eddy_text *t = &p->text;
	bool any = false;

	eddy_text_add(t, ",\"classes\":[");
	for (unsigned row = 1; row < EDDY_N_ROWS; row++) {
		struct eddy_stats_cached c = eddy_stats_cpu_row(p->h, cpu, row);

		if ((c.n_cached | c.refills | c.overflows) == 0)
			continue;
		eddy_print_number(
		    t, any ? ",{" : "{", "size", eddy_row_size(row));
		eddy_print_number(t, ",", "cached", c.n_cached);
		eddy_print_number(t, ",", "refills", c.refills);
		eddy_print_number(t, ",", "overflows", c.overflows);
		eddy_text_add(t, "}");
		any = true;
	}
	eddy_text_add(t, "]}");
}

static void
json_caches(struct eddy_print *p)
{
	struct eddy_stats_cache c;
	const char *before = "{";

	eddy_text_add(&p->text, ",\"cpus\":[");
	for (unsigned i = 0; i < p->h->n_slots; i++) {
		if (!eddy_stats_cpu(p->h, i, &c))
			continue;
		json_cache(&p->text, before, i, &c);
		json_cpu_rows(p, i);
		before = ",{";
	}
	eddy_text_add(&p->text, "],\"cells\":[");
	before = "{";
	for (unsigned i = 0; i < eddy_cache_n_cells(p->h); i++) {
		if (!eddy_stats_cells(p->h, i, &c))
			continue;
		json_cache(&p->text, before, i, &c);
		eddy_text_add(&p->text, "}");
		before = ",{";
	}
	eddy_text_add(&p->text, "]");
}

static void
print_json(struct eddy_print *p)
{
	struct eddy_text *t = &p->text;

	eddy_json_open(p, "eddy", "{");
	eddy_text_add(t, "\"version\":\"");
	eddy_text_add(t, eddy_version);
	eddy_text_add(t, "\",\"mode\":\"");
	eddy_text_add(t, eddy_stats_mode_name(p->st.mode));
	eddy_text_add(t, "\"");
	if (!p->no_general) {
		eddy_text_add(t, ",\"opt\":{");
		print_options(p);
		eddy_text_add(t, "}");
	}
	json_totals(p);
	eddy_print_memory(p);
	json_classes(p);
	if (!p->no_small)
		eddy_print_waste(p);
	if (!p->no_arenas)
		json_caches(p);
	if (!p->no_nodes)
		eddy_print_nodes_json(p);
	if (!p->no_flows)
		eddy_print_flows_json(p);
	eddy_json_close(p, "}");
}

void
eddy_print_own(struct eddy_print *p)
{
	eddy_stats_read(p->h, &p->st);
	if (p->json)
		print_json(p);
	else
		print_text(p);
}
