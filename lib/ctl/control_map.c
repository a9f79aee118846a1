/* SPDX-License-Identifier: BSD-2-Clause */
/* control_map.c - a line for each chunk of the heap, for pictures of it. */
#include "lib/ctl/control.h"
#include "lib/ctl/text.h"
#include "lib/ctl/walk.h"

static struct eddy_stats_row rows[EDDY_N_ROWS];

static void
add(struct eddy_text *t, const char *before, uint64_t v)
{
	eddy_text_add(t, before);
	eddy_text_number(t, v, 0);
}

/* Arena and node of the chunk's segment. */
static void
add_owner(struct eddy_text *t, struct eddy_heap *h, uint32_t chunk)
{
	/* relaxed, both: as of some moment. */
	uint32_t owner = eddy_load_relaxed(
	    &h->segments[chunk / EDDY_SEGMENT_CHUNKS].map.owner);
	struct eddy_arena *a = owner != 0 ? eddy_arena_at(h, owner) : NULL;
	uint32_t node = a != NULL ? eddy_load_relaxed(&a->node) : EDDY_NO_NODE;

	if (owner != 0)
		add(t, " ", owner);
	else
		eddy_text_add(t, " -");
	if (node != EDDY_NO_NODE)
		add(t, " ", node);
	else
		eddy_text_add(t, " -");
}

static void
add_classes(struct eddy_text *t)
{
	for (unsigned row = 1; row < EDDY_N_ROWS; row++) {
		if (rows[row].slabs == 0)
			continue;
		add(t, " ", eddy_row_size(row));
		add(t, ":", rows[row].slabs);
		add(t, ":", rows[row].live);
		add(t, ":", rows[row].free);
	}
}

void
eddy_control_map(struct eddy_heap *h, struct eddy_text *t)
{
	struct eddy_walk w;
	uint32_t n = 0;

	eddy_walk_begin(&w, h, EDDY_WALK_ALL);
	for (uint32_t chunk = 0; chunk < w.n_chunks; chunk += n != 0 ? n : 1) {
		struct eddy_walk one = {.h = h,
		    .arena = EDDY_WALK_ALL,
		    .n_chunks = w.n_chunks,
		    .rows = rows};

		for (unsigned row = 0; row < EDDY_N_ROWS; row++)
			rows[row] = (struct eddy_stats_row){0};
		n = eddy_walk_step(&one, chunk);
		if (n == 0)
			continue;
		/* Those in front of the first serve nobody. */
		if (one.chunks == 0 && !one.begun)
			continue;
		eddy_text_number(t, chunk, 0);
		add_owner(t, h, chunk);
		eddy_text_add(t, one.huge != 0     ? " huge"
				 : one.chunks != 0 ? " cut"
						   : " free");
		add(t, " ", one.active);
		add(t, " ", one.dirty);
		add(t, " ", one.muzzy);
		add(t, " ", n);
		add_classes(t);
		eddy_text_add(t, "\n");
	}
}
