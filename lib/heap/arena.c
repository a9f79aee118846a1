/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/heap/arena.h"

#include "lib/heap/large.h"
#include "lib/heap/pagemap.h"
#include "lib/heap/slab.h"
#include "lib/os/fatal.h"

unsigned
eddy_arena_refill(struct eddy_heap *h, struct eddy_arena *a, unsigned row,
    void **objects, unsigned n)
{
	unsigned got = 0;

	if (row <= EDDY_N_SMALL)
		return eddy_slab_refill(h, a, row, objects, n);
	while (got < n) {
		objects[got] =
		    eddy_large_alloc(h, a, eddy_row_size(row), 1, false);
		if (objects[got] == NULL)
			break;
		got++;
	}
	return got;
}

/* Words seen lately with the bits to be put there. */
#define TABLE 16

static unsigned
slot_of(_Atomic uint64_t *word)
{
	uintptr_t w = (uintptr_t)word / sizeof(*word);

	/* A head's words lie together; heads are eight words apart. */
	return (unsigned)((w ^ w >> 3 ^ w >> 7) % TABLE);
}

/*
 * Objects that come back together may lie far apart: what the next ones need
 * is fetched while the first wait.
 */
#define AHEAD 6

static void
fetch_tag(struct eddy_heap *h, const void *p)
{
	__builtin_prefetch(&h->tags[eddy_page_of(h, p)]);
}

static void
fetch_word(struct eddy_heap *h, const void *p)
{
	uint32_t tag = eddy_tag_find(h, p);

	if (eddy_tag_kind(tag) == EDDY_TAG_SLAB)
		__builtin_prefetch(eddy_slab_bit_of(h, p, tag).word, 1);
}

void
eddy_arena_put(struct eddy_heap *h, void *const *objects, unsigned n)
{
	struct eddy_slab_bit table[TABLE];

	for (unsigned i = 0; i < TABLE; i++)
		table[i].word = NULL;
	for (unsigned i = 0; i < n; i++) {
		uint32_t tag;
		struct eddy_slab_bit b;
		struct eddy_slab_bit *t;

		if (i + 2 * AHEAD < n)
			fetch_tag(h, objects[i + 2 * AHEAD]);
		if (i + AHEAD < n)
			fetch_word(h, objects[i + AHEAD]);
		tag = eddy_tag_find(h, objects[i]);
		if (eddy_tag_kind(tag) != EDDY_TAG_SLAB) {
			eddy_large_free(h, objects[i], tag);
			continue;
		}
		b = eddy_slab_bit_of(h, objects[i], tag);
		t = &table[slot_of(b.word)];
		if (t->word == b.word) {
			if (t->mask & b.mask)
				eddy_fatal("double free", objects[i]);
			t->mask |= b.mask;
			continue;
		}
		if (t->word != NULL)
			eddy_slab_put(h, *t);
		*t = b;
	}
	for (unsigned i = 0; i < TABLE; i++)
		if (table[i].word != NULL)
			eddy_slab_put(h, table[i]);
}
