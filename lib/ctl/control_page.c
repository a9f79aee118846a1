/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/ctl/control_page.h"

#include <string.h>

#include "lib/ctl/counts.h"
#include "lib/ctl/stats.h"
#include "lib/heap/wake.h"
#include "lib/os/os.h"

#define ONE(name) uint64_t name;
struct words {
	EDDY_CONTROL_WORDS(ONE)
};
#undef ONE

#define ONE(name) #name " "
static const char names[] = EDDY_CONTROL_WORDS(ONE);
#undef ONE

#define N_WORDS (sizeof(struct words) / sizeof(uint64_t))
static_assert(N_WORDS <= EDDY_CONTROL_N_WORDS, "room");
static_assert(sizeof(names) <= EDDY_CONTROL_NAMES, "room");

/* Adds an arena to a walk as if it had been walked; returns the bytes that left
 * its slabs and runs, cached ones among them. */
static uint64_t
add_arena(struct eddy_walk *w, struct eddy_arena *a)
{
	struct eddy_counted c = eddy_counted_of(a);
	uint64_t out = eddy_peek_signed(&a->tally.run_bytes) +
		       eddy_peek_signed(&a->tally.huge_bytes);
	uint64_t slabs = 0;

	for (unsigned row = 1; row <= EDDY_N_SMALL; row++) {
		struct eddy_tally_bin *t = &a->tally.bin[row - 1];
		uint64_t put = eddy_peek(&t->put);
		uint64_t retired = eddy_peek(&t->retired);

		out +=
		    eddy_less(eddy_peek(&t->taken), put) * eddy_row_size(row);
		slabs += eddy_less(eddy_peek(&t->born), retired);
	}
	w->active += c.active;
	w->dirty += c.dirty;
	w->muzzy += c.muzzy;
	w->huge += c.huge_chunks;
	/* Free words of slabs: a page for 64 heads. */
	w->metadata += eddy_align_up(slabs * 64, EDDY_PAGE);
	return out;
}

static void
read_heap(struct eddy_heap *h, struct words *v)
{
	struct eddy_stats st = {0};
	struct eddy_walk w;
	/* relaxed: a count. */
	uint64_t n_ready = eddy_load_relaxed(&h->n_ready);
	uint64_t out = 0;

	eddy_walk_begin(&w, h, EDDY_WALK_ALL);
	for (uint32_t i = 1; i <= eddy_stats_n_arenas(h); i++) {
		struct eddy_arena *a = eddy_arena_at(h, i);

		if (a == NULL)
			continue;
		out += add_arena(&w, a);
		v->arenas++;
	}
	/* Of chunks that are cut: a descriptor and tags. */
	w.metadata += eddy_less(n_ready, w.huge) *
		      (EDDY_PAGE + EDDY_CHUNK_PAGES * sizeof(uint32_t));
	eddy_stats_complete(h, &w, n_ready, &st);
	v->live = eddy_less(out, st.stranded);
	v->stranded = st.stranded;
	v->stranded_bound = st.stranded_bound;
	v->active = st.active;
	v->dirty = st.dirty;
	v->muzzy = st.muzzy;
	v->metadata = st.metadata;
	v->resident = st.resident;
	v->mapped = st.mapped;
	v->retained = st.retained;
	v->row_bytes = st.row_bytes;
	v->remote_row_bytes = st.remote_row_bytes;
	v->ring_bytes = st.ring_bytes;
	v->cell_bytes = st.cell_bytes;
	v->cpus = st.n_cpus;
}

static void
read_counts(struct eddy_heap *h, struct words *v)
{
	struct eddy_wake *w = eddy_wake_peek(h);

	v->purged = eddy_peek(&h->n_purged);
	v->purges = eddy_peek(&h->n_purges);
	v->refused = eddy_peek(&h->n_refused);
	v->homes = h->n_homes;
	v->objects_at = h->base;
	v->objects_end = h->base + ((uint64_t)h->n_segments << EDDY_LG_SEGMENT);
	/* The struct lies first; the range may lie within, at the end. */
	v->fixed_at = (uintptr_t)h;
	v->fixed_end = (uintptr_t)h + h->reservation_size;
	if (v->objects_at > v->fixed_at && v->objects_at < v->fixed_end)
		v->fixed_end = v->objects_at;
	/* relaxed: a setting. */
	v->frozen = eddy_load_relaxed(&h->frozen);
	v->frozen_growth = eddy_peek(&h->frozen_growth);
	for (unsigned i = 0; w != NULL && i < eddy_wake_n_parts(h); i++)
		v->background_threads += eddy_wake_runs(w, i);
}

/* As much as there is room for. */
static void
copy(char *to, size_t room, const char *s)
{
	size_t n = strlen(s);

	memcpy(to, s, n < room ? n : room - 1);
}

void
eddy_control_page_begin(
    struct eddy_control_page *p, int socket, const char *name)
{
	p->pid = (uint32_t)eddy_os_pid();
	p->socket = socket;
	p->n_words = N_WORDS;
	p->n_slots = 2;
	copy(p->version, sizeof(p->version), eddy_version);
	copy(p->name, sizeof(p->name), name);
	memcpy(p->names, names, sizeof(names) - 1);
	/* CTL-R1: all of the above. */
	eddy_store_release(&p->magic, EDDY_CONTROL_MAGIC);
}

void
eddy_control_page_refresh(
    struct eddy_control_page *p, struct eddy_heap *h, uint64_t n_requests)
{
	struct words v = {.requests = n_requests};
	struct eddy_board_turn turn = eddy_board_take(&p->board, 2);
	uint64_t word[N_WORDS];

	if (turn.slot < 0)
		return;
	read_heap(h, &v);
	read_counts(h, &v);
	v.time = eddy_os_milliseconds();
	memcpy(word, &v, sizeof(v));
	for (unsigned i = 0; i < N_WORDS; i++)
		eddy_board_write(&p->slot[turn.slot][i], word[i]);
	eddy_board_show(&p->board, turn);
}
