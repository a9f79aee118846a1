/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glibc_api.c - glibc's names for looking at the heap and trimming it.
 *
 * Layer     front (L6).
 * Progress  a walk of the heap, wait-free but for page faults; malloc_info
 *           writes to the program's stream, which locks and may allocate.
 * See mallinfo(3) of this project for what the numbers mean.
 */
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>

#include "lib/ctl/stats.h"
#include "lib/ctl/text.h"
#include "lib/heap/gather.h"

/* As glibc's: uordblks + fordblks is arena, and huge blocks are apart. */
EDDY_EXPORT struct mallinfo2
mallinfo2(void)
{
	struct eddy_stats st;
	struct mallinfo2 m = {0};

	eddy_stats_read(eddy_heap_peek(), &st);
	for (unsigned row = 1; row < EDDY_N_ROWS; row++)
		m.ordblks += st.row[row].free;
	m.ordblks += st.free_runs;
	m.arena = st.active - st.huge_bytes + st.dirty;
	m.smblks = st.n_cached;
	m.hblks = st.huge;
	m.hblkhd = st.huge_bytes;
	m.fsmblks = st.stranded;
	m.uordblks = st.live - st.huge_bytes;
	if (m.uordblks > m.arena)
		m.uordblks = m.arena;
	m.fordblks = m.arena - m.uordblks;
	m.keepcost = st.dirty;
	return m;
}

static int
saturated(size_t v)
{
	return v < INT_MAX ? (int)v : INT_MAX;
}

EDDY_EXPORT struct mallinfo
mallinfo(void)
{
	struct mallinfo2 m = mallinfo2();

	return (struct mallinfo){
	    .arena = saturated(m.arena),
	    .ordblks = saturated(m.ordblks),
	    .smblks = saturated(m.smblks),
	    .hblks = saturated(m.hblks),
	    .hblkhd = saturated(m.hblkhd),
	    .usmblks = saturated(m.usmblks),
	    .fsmblks = saturated(m.fsmblks),
	    .uordblks = saturated(m.uordblks),
	    .fordblks = saturated(m.fordblks),
	    .keepcost = saturated(m.keepcost),
	};
}

/* They tune what eddy does in other ways: accepted, without effect. */
EDDY_EXPORT int
mallopt(int param, int value)
{
	(void)value;
	switch (param) {
	case M_MXFAST:
	case M_NLBLKS:
	case M_GRAIN:
	case M_KEEP:
	case M_TRIM_THRESHOLD:
	case M_TOP_PAD:
	case M_MMAP_THRESHOLD:
	case M_MMAP_MAX:
	case M_CHECK_ACTION:
	case M_PERTURB:
	case M_ARENA_TEST:
	case M_ARENA_MAX:
		return 1;
	default:
		return 0;
	}
}

EDDY_EXPORT int
malloc_trim(size_t pad)
{
	struct eddy_heap *h = eddy_heap_peek();

	if (h == NULL)
		return 0;
	return eddy_gather_purge(h, NULL, pad) != 0;
}

EDDY_EXPORT void
malloc_stats(void)
{
	eddy_stats_print(eddy_heap(), NULL, NULL, NULL);
}

/* ------------------------------------------------------------------ */
/* malloc_info */

static void
put_stream(void *arg, const char *s)
{
	/* What fails is found by ferror at the end. */
	(void)fputs(s, arg);
}

static void
attribute(struct eddy_text *t, const char *name, uint64_t v)
{
	eddy_text_add(t, " ");
	eddy_text_add(t, name);
	eddy_text_add(t, "=\"");
	eddy_text_number(t, v, 0);
	eddy_text_add(t, "\"");
}

/* The elements that readers of glibc's form look for. */
static void
total_element(
    struct eddy_text *t, const char *type, uint64_t count, uint64_t size)
{
	eddy_text_add(t, "<total type=\"");
	eddy_text_add(t, type);
	eddy_text_add(t, "\"");
	attribute(t, "count", count);
	attribute(t, "size", size);
	eddy_text_add(t, "/>\n");
}

static void
typed_element(
    struct eddy_text *t, const char *name, const char *type, uint64_t size)
{
	eddy_text_add(t, "<");
	eddy_text_add(t, name);
	eddy_text_add(t, " type=\"");
	eddy_text_add(t, type);
	eddy_text_add(t, "\"");
	attribute(t, "size", size);
	eddy_text_add(t, "/>\n");
}

static void
class_elements(struct eddy_text *t, const struct eddy_stats *st)
{
	eddy_text_add(t, "<sizes>\n");
	for (unsigned row = 1; row < EDDY_N_ROWS; row++) {
		const struct eddy_stats_row *r = &st->row[row];
		uint64_t n = r->free + r->cached;

		if (r->slabs == 0)
			continue;
		eddy_text_add(t, "<size");
		attribute(t, "from", eddy_row_size(row - 1) + 1);
		attribute(t, "to", eddy_row_size(row));
		attribute(t, "total", n * eddy_row_size(row));
		attribute(t, "count", n);
		attribute(t, "live", r->live);
		eddy_text_add(t, "/>\n");
	}
	eddy_text_add(t, "</sizes>\n");
}

/* All free bytes, as blocks and pages. */
static void
write_info(struct eddy_text *t, const struct eddy_stats *st)
{
	uint64_t slots = st->active - st->live;
	uint64_t n_slots = 0;

	for (unsigned row = 1; row < EDDY_N_ROWS; row++)
		n_slots += st->row[row].free;
	if (slots > st->active)
		slots = 0;
	eddy_text_add(t, "<malloc version=\"1\">\n<heap nr=\"0\">\n");
	class_elements(t, st);
	total_element(t, "fast", st->n_cached, st->stranded);
	total_element(t, "rest", n_slots + st->free_runs,
	    slots > st->stranded ? slots - st->stranded + st->dirty
				 : st->dirty);
	eddy_text_add(t, "</heap>\n");
	total_element(t, "mmap", st->huge, st->huge_bytes);
	typed_element(t, "system", "current", st->resident);
	typed_element(t, "aspace", "total", st->mapped + st->retained);
	typed_element(t, "aspace", "mprotect", st->mapped);
	eddy_text_add(t, "</malloc>\n");
}

EDDY_EXPORT int
malloc_info(int options, FILE *stream)
{
	struct eddy_stats st;
	struct eddy_text t;

	if (options != 0)
		return EINVAL;
	/* First all numbers: the stream may allocate. */
	eddy_stats_read(eddy_heap_peek(), &st);
	eddy_text_open(&t, put_stream, stream);
	write_info(&t, &st);
	eddy_text_close(&t);
	return ferror(stream) != 0 ? -1 : 0;
}
