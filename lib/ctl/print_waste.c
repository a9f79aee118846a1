/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * print_waste.c - what is lost to fragmentation: free objects in slabs that
 * hold others, and what blocks have beyond what was asked for.
 */
#include "lib/ctl/print.h"

static const struct eddy_column fill[] = {
    {"to 10%", "slabs_0", 9},
    {"20%", "slabs_10", 9},
    {"30%", "slabs_20", 9},
    {"40%", "slabs_30", 9},
    {"50%", "slabs_40", 9},
    {"60%", "slabs_50", 9},
    {"70%", "slabs_60", 9},
    {"80%", "slabs_70", 9},
    {"90%", "slabs_80", 9},
    {"below", "slabs_90", 9},
    {"full", "slabs_full", 9},
};

/* Slabs of a class of all arenas; returns whether there is any. */
static bool
fill_of(struct eddy_print *p, unsigned i, struct eddy_print_stem *s)
{
	uint64_t n = 0;

	eddy_print_stem(s, "eddy.arenas.", EDDY_CTL_ALL);
	eddy_print_stem_add(s, "bins.", i);
	for (size_t k = 0; k < EDDY_N(fill); k++)
		n += eddy_print_number_of(p, s, fill[k].key);
	return n != 0;
}

static void
text_fill(struct eddy_print *p)
{
	struct eddy_print_stem s;

	eddy_text_add(
	    &p->text, "slabs by how much of them is used or cached\n    size");
	eddy_table_heads(p, fill, EDDY_N(fill));
	for (unsigned i = 0; i < EDDY_N_SMALL; i++) {
		if (!fill_of(p, i, &s))
			continue;
		eddy_text_number(&p->text, eddy_row_size(i + 1), 8);
		eddy_table_line(p, fill, EDDY_N(fill), &s, 0);
		eddy_text_add(&p->text, "\n");
	}
}

static void
json_fill(struct eddy_print *p)
{
	struct eddy_print_stem s;

	eddy_json_open(p, "occupancy", "[");
	for (unsigned i = 0; i < EDDY_N_SMALL; i++) {
		if (!fill_of(p, i, &s))
			continue;
		eddy_json_open(p, NULL, "{");
		eddy_json_number(p, "size", eddy_row_size(i + 1));
		eddy_json_open(p, "slabs", "[");
		for (size_t k = 0; k < EDDY_N(fill); k++)
			eddy_json_number(
			    p, NULL, eddy_print_number_of(p, &s, fill[k].key));
		eddy_json_close(p, "]");
		eddy_json_close(p, "}");
	}
	eddy_json_close(p, "]");
}

/* ------------------------------------------------------------------ */

struct asked {
	size_t size; /* of the class */
	uint64_t samples;
	uint64_t requested;
	uint64_t usable;
};

/* Classes small and large, by one number; returns whether there are samples. */
static bool
asked_of(struct eddy_print *p, unsigned i, struct asked *ret)
{
	bool small = i < EDDY_N_SMALL;
	struct eddy_print_stem s;

	eddy_print_stem(&s, small ? "eddy.bins." : "eddy.lextents.",
	    small ? i : i - EDDY_N_SMALL);
	*ret = (struct asked){
	    .size = small ? eddy_row_size(i + 1)
			  : eddy_sizes_large(i - EDDY_N_SMALL),
	    .samples = eddy_print_number_of(p, &s, "samples"),
	    .requested = eddy_print_number_of(p, &s, "requested"),
	    .usable = eddy_print_number_of(p, &s, "usable"),
	};
	return ret->samples != 0;
}

static void
text_asked(struct eddy_print *p)
{
	static const char *const heads[] = {
	    "size", "samples", "requested", "usable", "lost %"};
	struct asked a;
	bool any = false;

	for (unsigned i = 0; i < EDDY_N_SMALL + EDDY_N_LARGE; i++) {
		if (!asked_of(p, i, &a))
			continue;
		if (!any) {
			eddy_text_add(&p->text,
			    "live bytes asked for and taken, from samples\n");
			eddy_print_heads(&p->text, heads, EDDY_N(heads));
		}
		any = true;
		eddy_text_number(&p->text, a.size, 8);
		eddy_text_number(&p->text, a.samples, 12);
		eddy_text_number(&p->text, a.requested, 12);
		eddy_text_number(&p->text, a.usable, 12);
		eddy_text_number(&p->text,
		    a.usable > a.requested
			? (a.usable - a.requested) / (a.usable / 100 + 1)
			: 0,
		    12);
		eddy_text_add(&p->text, "\n");
	}
	if (!any)
		eddy_text_add(&p->text,
		    "what is asked for is known by prof:true alone\n");
}

static void
json_asked(struct eddy_print *p)
{
	struct asked a;

	eddy_json_open(p, "requested", "[");
	for (unsigned i = 0; i < EDDY_N_SMALL + EDDY_N_LARGE; i++) {
		if (!asked_of(p, i, &a))
			continue;
		eddy_json_open(p, NULL, "{");
		eddy_json_number(p, "size", a.size);
		eddy_json_number(p, "samples", a.samples);
		eddy_json_number(p, "requested", a.requested);
		eddy_json_number(p, "usable", a.usable);
		eddy_json_close(p, "}");
	}
	eddy_json_close(p, "]");
}

void
eddy_print_waste(struct eddy_print *p)
{
	if (p->json) {
		p->first = false;
		json_fill(p);
		json_asked(p);
	} else {
		text_fill(p);
		text_asked(p);
	}
}
