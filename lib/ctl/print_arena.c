/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * print_arena.c - one arena, all of them, or those that were destroyed, in the
 * order and the words of jemalloc's report.
 */
#include "lib/ctl/print.h"

#define TITLE  21 /* width of the words in front of a line */
#define NUMBER 16

static const char *const parts[] = {"small", "large"};
static const char *const part_keys[] = {
    "allocated", "nmalloc", "ndalloc", "nrequests", "nfills", "nflushes"};
static const char *const part_heads[] = {
    "allocated", "nmalloc", "ndalloc", "nrequests", "nfill", "nflush"};
#define N_PART EDDY_N(part_keys)

static const char *const memory[] = {"mapped", "retained", "pinned", "base",
    "internal", "metadata_edata", "metadata_rtree", "metadata_thp",
    "tcache_bytes", "tcache_stashed_bytes", "resident", "abandoned_vm",
    "extent_avail"};

static const char *const locks[] = {"large", "extent_avail", "extents_dirty",
    "extents_muzzy", "extents_retained", "extents_pinned", "decay_dirty",
    "decay_muzzy", "base", "tcache_list", "hpa_shard", "hpa_shard_grow",
    "hpa_sec"};

/* ------------------------------------------------------------------ */
/* Text */

static void
text_decay(struct eddy_print *p, const struct eddy_print_stem *s,
    const char *title, const char *kind, const char *pages)
{
	static const char *const keys[] = {"npurge", "nmadvise", "purged"};
	struct eddy_print_stem of = *s;
	struct eddy_ctl time;

	of.len = s->len;
	for (const char *c = kind; *c != '\0'; c++)
		of.name[of.len++] = *c;
	of.name[of.len++] = '_';
	of.name[of.len] = '\0';
	eddy_text_right(&p->text, title, 9);
	if (eddy_print_look(p, &of, "decay_ms", &time) &&
	    (int64_t)time.out >= 0)
		eddy_text_number(&p->text, time.out, 6);
	else
		eddy_text_right(&p->text, "N/A", 6);
	eddy_text_number(&p->text, eddy_print_number_of(p, s, pages), 13);
	for (size_t i = 0; i < EDDY_N(keys); i++)
		eddy_text_number(
		    &p->text, eddy_print_number_of(p, &of, keys[i]), 13);
	eddy_text_add(&p->text, "\n");
}

static void
text_part(
    struct eddy_print *p, const char *title, const uint64_t *v, uint64_t uptime)
{
	eddy_text_left(&p->text, title, TITLE);
	for (size_t i = 0; i < N_PART; i++) {
		eddy_text_number(&p->text, v[i], NUMBER);
		if (i != 0)
			eddy_text_number(
			    &p->text, eddy_print_rate(v[i], uptime), 10);
	}
	eddy_text_add(&p->text, "\n");
}

static void
text_parts(struct eddy_print *p, uint64_t index, uint64_t uptime)
{
	static const char *const titles[] = {"small:", "large:"};
	uint64_t total[N_PART] = {0};

	eddy_text_left(&p->text, "", TITLE);
	for (size_t i = 0; i < N_PART; i++) {
		eddy_text_right(&p->text, part_heads[i], NUMBER);
		if (i != 0)
			eddy_text_right(&p->text, "(#/sec)", 10);
	}
	eddy_text_add(&p->text, "\n");
	for (size_t k = 0; k < 2; k++) {
		uint64_t v[N_PART];
		struct eddy_print_stem s;

		eddy_print_stem(&s, "stats.arenas.", index);
		for (const char *c = parts[k]; *c != '\0'; c++)
			s.name[s.len++] = *c;
		s.name[s.len++] = '.';
		for (size_t i = 0; i < N_PART; i++) {
			v[i] = eddy_print_number_of(p, &s, part_keys[i]);
			total[i] += v[i];
		}
		text_part(p, titles[k], v, uptime);
	}
	text_part(p, "total:", total, uptime);
}

static void
text_bytes(struct eddy_print *p, const char *name, uint64_t v)
{
	size_t n = 1;

	eddy_text_add(&p->text, name);
	eddy_text_add(&p->text, ":");
	while (*name++ != '\0')
		n++;
	for (; n < TITLE; n++)
		eddy_text_add(&p->text, " ");
	eddy_text_number(&p->text, v, NUMBER);
	eddy_text_add(&p->text, "\n");
}

static void
text_line(struct eddy_print *p, const struct eddy_print_stem *s,
    const char *words, const char *key)
{
	struct eddy_ctl v;

	if (!eddy_print_look(p, s, key, &v))
		return;
	eddy_text_add(&p->text, words);
	eddy_print_value(p, &v);
	eddy_text_add(&p->text, "\n");
}

static void
text_arena(
    struct eddy_print *p, const struct eddy_print_stem *s, uint64_t index)
{
	static const struct eddy_print_stem none = {.len = 0};
	uint64_t uptime = eddy_print_number_of(p, s, "uptime");
	uint64_t page = eddy_print_number_of(p, &none, "arenas.page");

	text_line(p, s, "assigned threads: ", "nthreads");
	text_line(p, s, "uptime: ", "uptime");
	text_line(p, s, "dss allocation precedence: ", "dss");
	eddy_text_add(&p->text, "decaying:  time       npages       sweeps     "
				"madvises       purged\n");
	text_decay(p, s, "dirty:", "dirty", "pdirty");
	text_decay(p, s, "muzzy:", "muzzy", "pmuzzy");
	text_parts(p, index, uptime);
	eddy_text_add(&p->text, "\n");
	text_bytes(p, "active", eddy_print_number_of(p, s, "pactive") * page);
	for (size_t i = 0; i < EDDY_N(memory); i++)
		text_bytes(p, memory[i], eddy_print_number_of(p, s, memory[i]));
}

/* ------------------------------------------------------------------ */
/* JSON */

static void
json_arena(
    struct eddy_print *p, const struct eddy_print_stem *s, uint64_t index)
{
	static const char *const before[] = {"dss", "dirty_decay_ms",
	    "muzzy_decay_ms", "pactive", "pdirty", "pmuzzy", "dirty_npurge",
	    "dirty_nmadvise", "dirty_purged", "muzzy_npurge", "muzzy_nmadvise",
	    "muzzy_purged"};

	eddy_json_name(p, s, "nthreads", "nthreads");
	eddy_json_name(p, s, "uptime_ns", "uptime");
	eddy_json_names(p, s, before, EDDY_N(before));
	for (size_t k = 0; k < 2; k++) {
		struct eddy_print_stem of;

		eddy_print_stem(&of, "stats.arenas.", index);
		for (const char *c = parts[k]; *c != '\0'; c++)
			of.name[of.len++] = *c;
		of.name[of.len++] = '.';
		eddy_json_open(p, parts[k], "{");
		eddy_json_names(p, &of, part_keys, N_PART);
		eddy_json_close(p, "}");
	}
	eddy_json_names(p, s, memory, EDDY_N(memory));
}

/* ------------------------------------------------------------------ */

static void
put_name(struct eddy_print *p, uint64_t index)
{
	char buf[32] = "";
	char *bp = buf;
	size_t n = sizeof(bp);
	struct eddy_print_stem s;
	size_t len = 0;

	if (index == EDDY_CTL_ALL || index == EDDY_CTL_DESTROYED)
		return;
	eddy_print_stem(&s, "arena.", index);
	for (const char *c = "name"; *c != '\0'; c++)
		s.name[s.len++] = *c;
	s.name[s.len] = '\0';
	if (eddy_mallctl(s.name, &bp, &n, NULL, 0) != 0)
		return;
	while (len < sizeof(buf) && buf[len] != '\0')
		len++;
	if (p->json)
		eddy_json_key(p, "name");
	else
		eddy_text_add(&p->text, "name: ");
	eddy_text_quoted(&p->text, buf, len);
	if (!p->json)
		eddy_text_add(&p->text, "\n");
}

void
eddy_print_arena(struct eddy_print *p, uint64_t index)
{
	struct eddy_print_stem s;
	uint64_t uptime;

	put_name(p, index);
	eddy_print_stem(&s, "stats.arenas.", index);
	uptime = eddy_print_number_of(p, &s, "uptime");
	if (p->json)
		json_arena(p, &s, index);
	else
		text_arena(p, &s, index);
	if (!p->no_mutexes) {
		for (const char *c = "mutexes."; *c != '\0'; c++)
			s.name[s.len++] = *c;
		eddy_print_mutexes(p, &s, locks, EDDY_N(locks));
	}
	if (!p->no_small)
		eddy_print_bins(p, index, uptime);
	if (!p->no_large)
		eddy_print_lextents(p, index, uptime);
	if (!p->no_extents)
		eddy_print_extents(p, index);
	if (!p->no_huge)
		eddy_print_huge(p, index);
}
