/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/heap/arena.h"

#include "lib/heap/chunk.h"
#include "lib/heap/large.h"
#include "lib/heap/pagemap.h"
#include "lib/heap/segment.h"
#include "lib/heap/slab.h"
#include "lib/os/fatal.h"
#include "lib/os/os.h"

/* ------------------------------------------------------------------ */
/* Arenas */

/* Points the levels of a set, from the given one up, at memory. */
static char *
lay_levels(struct eddy_idset *s, unsigned from, char *at)
{
	for (unsigned i = from; i < s->n_levels; i++) {
		s->level[i] = (_Atomic uint64_t *)(void *)at;
		at += eddy_idset_bytes(s, i);
	}
	return at;
}

static size_t
level_bytes(const struct eddy_idset *s, unsigned from)
{
	size_t sum = 0;

	for (unsigned i = from; i < s->n_levels; i++)
		sum += eddy_idset_bytes(s, i);
	return sum;
}

static struct eddy_arena *
build(struct eddy_heap *h, uint32_t number, uint32_t home, uint32_t node,
    size_t *ret_size)
{
	struct eddy_idset hints;
	struct eddy_idset segment_hints;
	struct eddy_arena *a;
	size_t fixed = eddy_align_up(sizeof(*a), EDDY_CACHELINE);
	char *p;

	eddy_idset_shape(&hints, h->n_segments * (uint32_t)EDDY_SEGMENT_CHUNKS,
	    EDDY_N_HINTS);
	eddy_idset_shape(&segment_hints, h->n_segments, EDDY_RUN_BUCKETS);
	fixed += level_bytes(&hints, 1) + level_bytes(&segment_hints, 0);
	/* What is opened later shares no OS page with what is open now. */
	fixed = eddy_align_up(fixed, eddy_os_page_size());
	*ret_size = fixed + eddy_idset_bytes(&hints, 0);
	p = eddy_os_reserve(*ret_size);
	if (p == NULL)
		return NULL;
	if (eddy_os_commit(p, fixed) != 0) {
		eddy_os_unmap(p, *ret_size);
		return NULL;
	}
	a = (struct eddy_arena *)(void *)p;
	a->hints = hints;
	a->hints.level[0] = (_Atomic uint64_t *)(void *)(p + fixed);
	a->segment_hints = segment_hints;
	p = lay_levels(
	    &a->hints, 1, p + eddy_align_up(sizeof(*a), EDDY_CACHELINE));
	(void)lay_levels(&a->segment_hints, 0, p);
	a->pages = (struct eddy_runset){
	    .hints = &a->hints,
	    .first_kind = EDDY_HINT_RUNS,
	    .descriptors = (char *)h->chunks,
	    .stride = sizeof(struct eddy_chunk),
	    .owner = number,
	    .put = eddy_pages_put_run,
	};
	a->chunks = (struct eddy_runset){
	    .hints = &a->segment_hints,
	    .first_kind = 0,
	    .descriptors = (char *)h->segments,
	    .stride = sizeof(struct eddy_segment),
	    .owner = number,
	    .put = eddy_segment_put,
	};
	a->number = number;
	a->home = home;
	a->fixed_size = fixed;
	/* relaxed: published by HEAP-R3. */
	eddy_store_relaxed(&a->node, node);
	return a;
}

static struct eddy_arena *
publish(struct eddy_heap *h, uint32_t number, uint32_t home, uint32_t node)
{
	struct eddy_arena *seen = NULL;
	size_t size;
	struct eddy_arena *a = build(h, number, home, node, &size);

	if (a == NULL)
		return eddy_arena_at(h, number);
	/* HEAP-R3: all that was built.  HEAP-A3: or another's. */
	if (!eddy_cas_acq_rel(&h->arenas[number], &seen, a)) {
		eddy_os_unmap(a, size);
		return seen;
	}
	return a;
}

struct eddy_arena *
eddy_arena_of_home(struct eddy_heap *h, uint32_t home)
{
	struct eddy_arena *a = eddy_arena_at(h, home + 1);

	if (eddy_likely(a != NULL))
		return a;
	return publish(
	    h, home + 1, home, (uint32_t)h->places.node_of_home[home]);
}

uint32_t
eddy_arena_create(struct eddy_heap *h, uint32_t node)
{
	/* relaxed: a number of one's own. */
	uint32_t number = eddy_add_relaxed(&h->n_arenas, 1) + 1;

	if (number > EDDY_MAX_ARENAS) {
		/* Whoever passes the end takes back only what he added. */
		(void)eddy_add_relaxed(&h->n_arenas, (uint32_t)-1);
		return 0;
	}
	/* A number that gets no memory is spent. */
	return publish(h, number, EDDY_HOME_NONE, node) != NULL ? number : 0;
}

/* ------------------------------------------------------------------ */
/* Batches */

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

unsigned
eddy_arena_put(struct eddy_heap *h, void *const *objects, unsigned n)
{
	struct eddy_slab_bit table[TABLE];
	unsigned puts = 0;

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
			puts++;
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
		if (t->word != NULL) {
			eddy_slab_put(h, *t);
			puts++;
		}
		*t = b;
	}
	for (unsigned i = 0; i < TABLE; i++)
		if (table[i].word != NULL) {
			eddy_slab_put(h, table[i]);
			puts++;
		}
	return puts;
}
