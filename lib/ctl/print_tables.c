/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * print_tables.c - locks and size classes of an arena, in the form of
 * jemalloc's report.  There are no locks: their counts are zero.
 */
#include "lib/ctl/print.h"
#include "lib/ctl/snapshot.h"

#define GAP "                     ---\n"

static const struct eddy_column lock_columns[] = {
    {"n_lock_ops", "num_ops", 16},
    {"(#/sec)", NULL, 8},
    {"n_waiting", "num_wait", 16},
    {"(#/sec)", NULL, 8},
    {"n_spin_acq", "num_spin_acq", 16},
    {"(#/sec)", NULL, 8},
    {"n_owner_switch", "num_owner_switch", 16},
    {"(#/sec)", NULL, 8},
    {"total_wait_ns", "total_wait_time", 16},
    {"(#/sec)", NULL, 10},
    {"max_wait_ns", "max_wait_time", 16},
    {"max_n_thds", "max_num_thds", 12},
};

/* ------------------------------------------------------------------ */
/* Locks */

/* A stem with one more word. */
static struct eddy_print_stem
below(const struct eddy_print_stem *s, const char *word)
{
	struct eddy_print_stem r = *s;

	while (*word != '\0' && r.len < sizeof(r.name) - 2)
		r.name[r.len++] = *word++;
	r.name[r.len++] = '.';
	r.name[r.len] = '\0';
	return r;
}

void
eddy_json_mutex(
    struct eddy_print *p, const struct eddy_print_stem *s, const char *name)
{
	struct eddy_print_stem of = below(s, name);

	eddy_json_open(p, name, "{");
	for (size_t i = 0; i < EDDY_N(lock_columns); i++)
		if (lock_columns[i].key != NULL)
			eddy_json_name(
			    p, &of, lock_columns[i].key, lock_columns[i].key);
	eddy_json_close(p, "}");
}

void
eddy_print_mutexes(struct eddy_print *p, const struct eddy_print_stem *s,
    const char *const *names, size_t n)
{
	if (p->json) {
		eddy_json_open(p, "mutexes", "{");
		for (size_t i = 0; i < n; i++)
			eddy_json_mutex(p, s, names[i]);
		eddy_json_close(p, "}");
		return;
	}
	eddy_text_left(&p->text, "", 21);
	eddy_table_heads(p, lock_columns, EDDY_N(lock_columns));
	for (size_t i = 0; i < n; i++) {
		struct eddy_print_stem of = below(s, names[i]);

		eddy_text_left(&p->text, names[i], 21);
		eddy_table_line(p, lock_columns, EDDY_N(lock_columns), &of, 0);
		eddy_text_add(&p->text, "\n");
	}
}

/* ------------------------------------------------------------------ */
/* Lines with gaps where nothing is */

/* Returns whether to leave the line out. */
static bool
is_gap(struct eddy_print *p, bool empty, bool *in_gap)
{
	if (*in_gap && !empty)
		eddy_text_add(&p->text, GAP);
	*in_gap = empty;
	return empty;
}

static void
end_gap(struct eddy_print *p, bool in_gap)
{
	if (in_gap)
		eddy_text_add(&p->text, GAP);
}

static void
ratio(struct eddy_print *p, uint64_t part, uint64_t all)
{
	uint64_t n = all != 0 ? part * 1000 / all : 1000;

	if (n >= 1000) {
		eddy_text_right(&p->text, "1", 6);
		return;
	}
	eddy_text_add(&p->text, n < 10 ? " 0.00" : n < 100 ? " 0.0" : " 0.");
	eddy_text_number(&p->text, n, 0);
}

/* ------------------------------------------------------------------ */
/* Small classes */

static const struct eddy_column bin_flows[] = {
    {"nmalloc", "nmalloc", 14},
    {"(#/sec)", NULL, 8},
    {"ndalloc", "ndalloc", 14},
    {"(#/sec)", NULL, 8},
    {"nrequests", "nrequests", 15},
    {"(#/sec)", NULL, 10},
};
static const struct eddy_column bin_slabs[] = {
    {"curregs", "curregs", 13},
    {"curslabs", "curslabs", 13},
    {"nonfull_slabs", "nonfull_slabs", 15},
};
static const struct eddy_column bin_fills[] = {
    {"nfills", "nfills", 13},
    {"(#/sec)", NULL, 8},
    {"nflushes", "nflushes", 13},
    {"(#/sec)", NULL, 8},
    {"nslabs", "nslabs", 13},
    {"nreslabs", "nreslabs", 13},
    {"(#/sec)", NULL, 8},
};

static void
bin_heads(struct eddy_print *p)
{
	eddy_text_add(&p->text, "bins:           size ind     allocated");
	for (size_t i = 0; i < EDDY_N(bin_flows); i++)
		eddy_text_right(
		    &p->text, bin_flows[i].head, bin_flows[i].width);
	eddy_text_add(&p->text, "  nshards");
	for (size_t i = 0; i < EDDY_N(bin_slabs); i++)
		eddy_text_right(
		    &p->text, bin_slabs[i].head, bin_slabs[i].width);
	eddy_text_add(&p->text, " regs pgs   util");
	for (size_t i = 0; i < EDDY_N(bin_fills); i++)
		eddy_text_right(
		    &p->text, bin_fills[i].head, bin_fills[i].width);
	if (p->no_mutexes)
		eddy_text_add(&p->text, "\n");
	else
		eddy_table_heads(p, lock_columns, EDDY_N(lock_columns));
}

static void
text_bin(struct eddy_print *p, const struct eddy_print_stem *s, unsigned j,
    uint64_t uptime)
{
	const struct eddy_class *class = &eddy_classes[j + 1];
	uint64_t regs = eddy_print_number_of(p, s, "curregs");
	uint64_t slabs = eddy_print_number_of(p, s, "curslabs");
	struct eddy_print_stem lock;

	eddy_text_number(&p->text, class->size, 20);
	eddy_text_number(&p->text, j, 4);
	eddy_text_number(&p->text, regs * class->size, 14);
	eddy_table_line(p, bin_flows, EDDY_N(bin_flows), s, uptime);
	eddy_text_number(&p->text, 1, 9);
	eddy_table_line(p, bin_slabs, EDDY_N(bin_slabs), s, uptime);
	eddy_text_number(&p->text, class->n_objects, 5);
	eddy_text_number(&p->text, class->pages, 4);
	eddy_text_add(&p->text, " ");
	ratio(p, regs, slabs * class->n_objects);
	eddy_table_line(p, bin_fills, EDDY_N(bin_fills), s, uptime);
	if (!p->no_mutexes) {
		lock = below(s, "mutex");
		eddy_table_line(
		    p, lock_columns, EDDY_N(lock_columns), &lock, uptime);
	}
	eddy_text_add(&p->text, "\n");
}

void
eddy_print_bins(struct eddy_print *p, uint64_t index, uint64_t uptime)
{
	static const char *const keys[] = {"nmalloc", "ndalloc", "curregs",
	    "nrequests", "nfills", "nflushes", "nreslabs", "curslabs",
	    "nonfull_slabs"};
	bool in_gap = false;

	if (p->json)
		eddy_json_open(p, "bins", "[");
	else
		bin_heads(p);
	for (unsigned j = 0; j < EDDY_N_SMALL; j++) {
		struct eddy_print_stem s;

		eddy_print_stem(&s, "stats.arenas.", index);
		eddy_print_stem_add(&s, "bins.", j);
		if (p->json) {
			eddy_json_open(p, NULL, "{");
			eddy_json_names(p, &s, keys, EDDY_N(keys));
			if (!p->no_mutexes)
				eddy_json_mutex(p, &s, "mutex");
			eddy_json_close(p, "}");
		} else if (!is_gap(p,
			       eddy_print_number_of(p, &s, "nslabs") == 0,
			       &in_gap)) {
			text_bin(p, &s, j, uptime);
		}
	}
	if (p->json)
		eddy_json_close(p, "]");
	else
		end_gap(p, in_gap);
}

/* ------------------------------------------------------------------ */
/* Large classes */

static const struct eddy_column large_columns[] = {
    {"nmalloc", "nmalloc", 13},
    {"(#/sec)", NULL, 8},
    {"ndalloc", "ndalloc", 13},
    {"(#/sec)", NULL, 8},
    {"nrequests", "nrequests", 13},
    {"(#/sec)", NULL, 8},
    {"curlextents", "curlextents", 13},
};

void
eddy_print_lextents(struct eddy_print *p, uint64_t index, uint64_t uptime)
{
	bool in_gap = false;

	if (p->json) {
		eddy_json_open(p, "lextents", "[");
	} else {
		eddy_text_add(
		    &p->text, "large:          size ind     allocated");
		eddy_table_heads(p, large_columns, EDDY_N(large_columns));
	}
	for (unsigned j = 0; j < EDDY_N_LARGE; j++) {
		struct eddy_print_stem s;
		uint64_t n;

		eddy_print_stem(&s, "stats.arenas.", index);
		eddy_print_stem_add(&s, "lextents.", j);
		if (p->json) {
			eddy_json_open(p, NULL, "{");
			eddy_json_name(p, &s, "curlextents", "curlextents");
			eddy_json_close(p, "}");
			continue;
		}
		if (is_gap(p, eddy_print_number_of(p, &s, "nrequests") == 0,
			&in_gap))
			continue;
		n = eddy_print_number_of(p, &s, "curlextents");
		eddy_text_number(&p->text, eddy_sizes_large(j), 20);
		eddy_text_number(&p->text, EDDY_N_SMALL + j, 4);
		eddy_text_number(&p->text, n * eddy_sizes_large(j), 14);
		eddy_table_line(
		    p, large_columns, EDDY_N(large_columns), &s, uptime);
		eddy_text_add(&p->text, "\n");
	}
	if (p->json)
		eddy_json_close(p, "]");
	else
		end_gap(p, in_gap);
}

/* ------------------------------------------------------------------ */
/* Free runs */

static const struct eddy_column extent_columns[] = {
    {"ndirty", "ndirty", 13},
    {"dirty", "dirty_bytes", 13},
    {"nmuzzy", "nmuzzy", 13},
    {"muzzy", "muzzy_bytes", 13},
    {"nretained", "nretained", 13},
    {"retained", "retained_bytes", 13},
    {"npinned", "npinned", 13},
    {"pinned", "pinned_bytes", 13},
};

static void
text_extent(struct eddy_print *p, const struct eddy_print_stem *s, unsigned j,
    uint64_t n, uint64_t bytes)
{
	size_t size = j < 3 ? (j + 1) * EDDY_PAGE : eddy_sizes_large(j - 3);

	eddy_text_number(&p->text, size, 20);
	eddy_text_number(&p->text, j, 4);
	eddy_table_line(p, extent_columns, EDDY_N(extent_columns), s, 0);
	eddy_text_number(&p->text, n, 13);
	eddy_text_number(&p->text, bytes, 13);
	eddy_text_add(&p->text, "\n");
}

void
eddy_print_extents(struct eddy_print *p, uint64_t index)
{
	static const char *const keys[] = {"ndirty", "nmuzzy", "nretained",
	    "npinned", "dirty_bytes", "muzzy_bytes", "retained_bytes",
	    "pinned_bytes"};
	bool in_gap = false;

	if (p->json) {
		eddy_json_open(p, "extents", "[");
	} else {
		eddy_text_add(&p->text, "extents:        size ind");
		for (size_t i = 0; i < EDDY_N(extent_columns); i++)
			eddy_text_right(&p->text, extent_columns[i].head, 13);
		eddy_text_add(&p->text, "       ntotal        total\n");
	}
	for (unsigned j = 0; j < EDDY_N_EXTENTS; j++) {
		struct eddy_print_stem s;
		uint64_t n = 0;
		uint64_t bytes = 0;

		eddy_print_stem(&s, "stats.arenas.", index);
		eddy_print_stem_add(&s, "extents.", j);
		if (p->json) {
			eddy_json_open(p, NULL, "{");
			eddy_json_names(p, &s, keys, EDDY_N(keys));
			eddy_json_close(p, "}");
			continue;
		}
		for (size_t i = 0; i < EDDY_N(keys); i++)
			*(i < 4 ? &n : &bytes) +=
			    eddy_print_number_of(p, &s, keys[i]);
		if (!is_gap(p, n == 0, &in_gap))
			text_extent(p, &s, j, n, bytes);
	}
	if (p->json)
		eddy_json_close(p, "]");
	else
		end_gap(p, in_gap);
}

/* ------------------------------------------------------------------ */
/* jemalloc's allocator of huge pages, which is not here */

static void
json_huge_slabs(
    struct eddy_print *p, const struct eddy_print_stem *s, const char *key)
{
	static const char *const keys[] = {"npageslabs_nonhuge",
	    "nactive_nonhuge", "ndirty_nonhuge", "npageslabs_huge",
	    "nactive_huge", "ndirty_huge"};

	eddy_json_open(p, key, "{");
	eddy_json_names(p, s, keys, EDDY_N(keys));
	eddy_json_number(p, "nretained_nonhuge", 0);
	eddy_json_close(p, "}");
}

static void
json_huge(struct eddy_print *p, const struct eddy_print_stem *arena)
{
	static const char *const cache[] = {"sec_bytes", "sec_hits",
	    "sec_misses", "sec_dalloc_noflush", "sec_dalloc_flush",
	    "sec_overfills"};
	static const char *const counts[] = {"npageslabs", "nactive", "ndirty",
	    "npurge_passes", "npurges", "nhugifies", "nhugify_failures",
	    "ndehugifies"};
	static const char *const alloc[] = {"min_extents", "max_extents",
	    "extents", "ps", "pages_per_ps", "extents_per_ps",
	    "total_elapsed_ns_per_ps"};
	struct eddy_print_stem shard = below(arena, "hpa_shard");
	struct eddy_print_stem sec = *arena;
	struct eddy_print_stem s;

	for (const char *c = "hpa_"; *c != '\0'; c++)
		sec.name[sec.len++] = *c;
	eddy_json_open(p, "hpa_shard", "{");
	eddy_json_names(p, &sec, cache, EDDY_N(cache));
	eddy_json_names(p, &shard, counts, EDDY_N(counts));
	s = below(&shard, "slabs");
	json_huge_slabs(p, &s, "slabs");
	eddy_json_open(p, "extent_allocation_distribution", "[");
	for (unsigned j = 0; j < EDDY_N_HPA_ALLOC; j++) {
		s = shard;
		eddy_print_stem_add(&s, "alloc.", j);
		eddy_json_open(p, NULL, "{");
		eddy_json_names(p, &s, alloc, EDDY_N(alloc));
		eddy_json_close(p, "}");
	}
	eddy_json_close(p, "]");
	s = below(&shard, "full_slabs");
	json_huge_slabs(p, &s, "full_slabs");
	s = below(&shard, "empty_slabs");
	json_huge_slabs(p, &s, "empty_slabs");
	eddy_json_open(p, "nonfull_slabs", "[");
	for (unsigned j = 0; j < 64; j++) {
		s = shard;
		eddy_print_stem_add(&s, "nonfull_slabs.", j);
		json_huge_slabs(p, &s, NULL);
	}
	eddy_json_close(p, "]");
	eddy_json_close(p, "}");
}

void
eddy_print_huge(struct eddy_print *p, uint64_t index)
{
	struct eddy_print_stem s;

	eddy_print_stem(&s, "stats.arenas.", index);
	if (p->json)
		json_huge(p, &s);
	else
		eddy_text_add(&p->text,
		    "HPA shard stats:\n  Pageslabs: 0 (0 huge, 0 nonhuge)\n");
}
