/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/heap/arena.h"

#include <errno.h>

#include "lib/heap/bind.h"
#include "lib/heap/chunk.h"
#include "lib/heap/large.h"
#include "lib/heap/pagemap.h"
#include "lib/heap/reclaim.h"
#include "lib/heap/reset.h"
#include "lib/heap/segment.h"
#include "lib/heap/slab.h"
#include "lib/heap/warm.h"
#include "lib/os/advise.h"
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

size_t
eddy_arena_bytes(const struct eddy_arena *a)
{
	return a->fixed_size + eddy_idset_bytes(&a->hints, 0);
}

/*
 * Addresses for an arena, its first part accessible, on its node.  refused:
 * what the kernel said to the policy.  NULL: no memory.
 */
static void *
lay_ground(struct eddy_heap *h, uint32_t home, uint32_t node, size_t size,
    size_t fixed, int *refused)
{
	uint32_t policy = eddy_bind_wanted(h, home, node);
	void *p = eddy_os_reserve(size);

	*refused = 0;
	if (p == NULL)
		return NULL;
	if (h->opts.names)
		eddy_os_name(p, size, "eddy: metadata");
	if (policy != EDDY_BOUND_NOT)
		*refused = eddy_bind_tell(h, p, size, policy, false);
	if (eddy_os_commit(p, fixed) == 0)
		return p;
	eddy_os_unmap(p, size);
	return NULL;
}

/* An arena without a number. */
static struct eddy_arena *
build(struct eddy_heap *h, uint32_t home, uint32_t node, int *refused)
{
	struct eddy_idset hints;
	struct eddy_idset segment_hints;
	struct eddy_arena *a;
	size_t fixed = eddy_align_up(sizeof(*a), EDDY_CACHELINE);
	char *p;

	eddy_idset_shape(&hints, h->n_segments * (uint32_t)EDDY_SEGMENT_CHUNKS,
	    EDDY_N_HINTS);
	eddy_idset_shape(&segment_hints, h->n_segments, EDDY_RUN_BUCKETS);
	fixed += level_bytes(&hints, 1) + level_bytes(&segment_hints, 0) +
		 eddy_segments_bytes(h);
	/* What is opened later shares no OS page with what is open now. */
	fixed = eddy_align_up(fixed, eddy_os_page_size());
	p = lay_ground(
	    h, home, node, fixed + eddy_idset_bytes(&hints, 0), fixed, refused);
	if (p == NULL)
		return NULL;
	a = (struct eddy_arena *)(void *)p;
	a->hints = hints;
	a->hints.level[0] = (_Atomic uint64_t *)(void *)(p + fixed);
	a->segment_hints = segment_hints;
	p = lay_levels(
	    &a->hints, 1, p + eddy_align_up(sizeof(*a), EDDY_CACHELINE));
	p = lay_levels(&a->segment_hints, 0, p);
	a->segments = (_Atomic uint64_t *)(void *)p;
	a->pages = (struct eddy_runset){
	    .hints = &a->hints,
	    .first_kind = EDDY_HINT_RUNS,
	    .descriptors = (char *)h->chunks,
	    .stride = sizeof(struct eddy_chunk),
	    .put = eddy_pages_put_run,
	};
	a->chunks = (struct eddy_runset){
	    .hints = &a->segment_hints,
	    .first_kind = 0,
	    .descriptors = (char *)h->segments,
	    .stride = sizeof(struct eddy_segment),
	    .put = eddy_segment_put,
	};
	a->home = home;
	a->fixed_size = fixed;
	/* relaxed: published by HEAP-R3. */
	eddy_store_relaxed(&a->tally.begun, eddy_os_milliseconds());
	/* relaxed: published by HEAP-R3. */
	eddy_store_relaxed(&a->node, node);
	eddy_reclaim_begin(h, a);
	return a;
}

/* Gives the arena its number; the one that has it, this or another's. */
static struct eddy_arena *
publish(struct eddy_heap *h, struct eddy_arena *a, uint32_t number)
{
	struct eddy_arena *seen = NULL;

	a->number = number;
	a->pages.owner = number;
	a->chunks.owner = number;
	/* HEAP-R3: all that was built.  HEAP-A3: or another's. */
	if (eddy_cas_acq_rel(&h->arenas[number], &seen, a))
		return a;
	eddy_os_unmap(a, eddy_arena_bytes(a));
	return seen;
}

static uint32_t
node_of(const struct eddy_heap *h, uint32_t home)
{
	return (uint32_t)h->places.node_of_home[home];
}

/* The arena of that number, on a node. */
static struct eddy_arena *
find_or_build(
    struct eddy_heap *h, uint32_t node, uint32_t kind, uint32_t number)
{
	struct eddy_arena *a = eddy_arena_at(h, number);
	int refused;

	if (eddy_likely(a != NULL))
		return a;
	a = build(h, kind, node, &refused);
	if (a == NULL)
		return eddy_arena_at(h, number);
	if (refused != 0) /* relaxed: a statistic. */
		(void)eddy_add_relaxed(&h->n_unplaced, 1);
	return publish(h, a, number);
}

struct eddy_arena *
eddy_arena_of_samples(struct eddy_heap *h, uint32_t home)
{
	if (home >= h->n_samples)
		return NULL;
	return find_or_build(
	    h, node_of(h, home), EDDY_HOME_SAMPLES, h->n_homes + 1 + home);
}

/* The next number for an arena; 0: there are no more. */
static uint32_t
take_number(struct eddy_heap *h)
{
	/* relaxed, both: a number of one's own; what it names comes later. */
	uint32_t n = eddy_load_relaxed(&h->n_arenas);

	do
		if (n >= EDDY_MAX_ARENAS)
			return 0;
	while (!eddy_cas_relaxed(&h->n_arenas, &n, n + 1));
	return n + 1;
}

/*
 * The number of a group's arena, which it gets when the first object comes; 0:
 * there is none to be had.
 */
static EDDY_COLD uint32_t
name_group(struct eddy_heap *h, _Atomic uint32_t *mine)
{
	/* relaxed: what cannot work is not tried. */
	uint32_t n = eddy_load_relaxed(&h->n_arenas);
	uint32_t none = 0;
	uint32_t last;

	/* As of the program's: segments of its own.  A frozen heap has what it
	 * has. */
	if (eddy_frozen(h) || n >= EDDY_MAX_ARENAS ||
	    (n + 1) * EDDY_MIN_SEGMENTS > h->n_segments)
		return 0;
	n = take_number(h);
	/* relaxed, both: a number; HEAP-R3 orders what it names. */
	if (n == 0 || eddy_cas_relaxed(mine, &none, n))
		return n;
	/* Another was faster.  The number goes back, unless it is not the last
	 * any more: then no arena has it. */
	last = n;
	(void)eddy_cas_relaxed(&h->n_arenas, &last, n - 1);
	return none;
}

static struct eddy_arena *
arena_of_group(struct eddy_heap *h, uint32_t group)
{
	_Atomic uint32_t *mine = &h->group_arena[group - h->n_homes];
	/* relaxed: as above. */
	uint32_t number = eddy_load_relaxed(mine);
	struct eddy_arena *a;

	if (eddy_unlikely(number == 0))
		number = name_group(h, mine);
	if (number == 0)
		return NULL;
	/* What homes share lies where it is touched. */
	a = find_or_build(h,
	    h->n_groups == h->n_homes ? node_of(h, eddy_base_home(h, group))
				      : EDDY_NO_NODE,
	    group, number);
	/* relaxed: only ever set. */
	if (a != NULL && eddy_unlikely(eddy_load_relaxed(&h->hinted) == 0))
		/* IDLE-R1: before a row of it is opened. */
		(void)eddy_xchg_seq_cst(&h->hinted, 1);
	return a;
}

struct eddy_arena *
eddy_arena_of_home(struct eddy_heap *h, uint32_t home)
{
	if (eddy_is_group(h, home))
		return arena_of_group(h, home);
	return find_or_build(h, node_of(h, home), home, home + 1);
}

static int
add(struct eddy_heap *h, uint32_t node, const struct eddy_backing *backing,
    bool bare, uint32_t *ret)
{
	/* relaxed: what cannot work is not built. */
	uint32_t n = eddy_load_relaxed(&h->n_arenas);
	struct eddy_arena *a;
	int err;

	/* Each needs segments of its own, and the homes theirs. */
	if (backing->kind == EDDY_PRIVATE) {
		err = eddy_reset_revive(h, node, bare, ret);
		if (err != 0 || *ret != 0)
			return err;
	}
	if (n >= EDDY_MAX_ARENAS || (n + 1) * EDDY_MIN_SEGMENTS > h->n_segments)
		return -EAGAIN;
	a = build(h, EDDY_HOME_NONE, node, &err);
	if (a == NULL)
		return -ENOMEM;
	if (err == 0) {
		a->backing = *backing;
		/* Muzzy pages are as far as it goes there. */
		if (a->backing.kind == EDDY_FILE_KEPT)
			/* relaxed: published by HEAP-R3. */
			eddy_store_relaxed(&a->reclaim.muzzy_decay_ms, -1);
		*ret = take_number(h);
		if (*ret != 0) {
			(void)publish(h, a, *ret);
			return 0;
		}
		err = -EAGAIN;
	}
	eddy_os_unmap(a, eddy_arena_bytes(a));
	return err;
}

int
eddy_arena_add_backed(struct eddy_heap *h, uint32_t node,
    const struct eddy_backing *backing, uint32_t *ret)
{
	return add(h, node, backing, false, ret);
}

static const struct eddy_backing private = {.kind = EDDY_PRIVATE};

int
eddy_arena_add(struct eddy_heap *h, uint32_t node, uint32_t *ret)
{
	return add(h, node, &private, false, ret);
}

int
eddy_arena_add_bare(struct eddy_heap *h, uint32_t node, uint32_t *ret)
{
	return add(h, node, &private, true, ret);
}

int
eddy_arena_fit(struct eddy_heap *h, int node)
{
	struct eddy_topology *t;
	int err = -ENOMEM;

	if (node < 0 || node >= EDDY_MAX_NODES)
		return -EINVAL;
	if (eddy_node_in(h->places.has_memory, (unsigned)node))
		return 0;
	t = eddy_os_reserve(sizeof(*t));
	if (t == NULL)
		return -ENOMEM;
	if (eddy_os_commit(t, sizeof(*t)) == 0) {
		if (h->places.fake)
			(void)eddy_topology_fake(t, h->opts.topology);
		else
			(void)eddy_topology_read(t, "/sys", false);
		err = eddy_node_in(t->has_memory, (unsigned)node) ? 0
		      : eddy_node_in(t->online, (unsigned)node)   ? -ENODEV
								  : -EINVAL;
	}
	eddy_os_unmap(t, sizeof(*t));
	return err;
}

struct eddy_arena *
eddy_arena_of(struct eddy_heap *h, const void *p)
{
	size_t page = eddy_page_of(h, p);
	struct eddy_segment *s;
	uint32_t chunk;
	uint32_t owner;
	unsigned pos;

	/* SEG-A1: descriptors below the limit are readable. */
	if (page >= eddy_load_acquire(&eddy_fast.limit)) {
		p = eddy_place_outside(h, p);
		if (p == NULL)
			return NULL;
		page = eddy_page_of(h, p);
	}
	chunk = (uint32_t)(page / EDDY_CHUNK_PAGES);
	if (chunk >= h->n_chunks)
		return NULL;
	pos = chunk % (unsigned)EDDY_SEGMENT_CHUNKS;
	s = &h->segments[chunk / EDDY_SEGMENT_CHUNKS];
	/* SEG-A3: pairs with SEG-R3: the chunk's is readable. */
	if ((eddy_load_acquire(&s->map.ready[pos / 64]) >> pos % 64 & 1) == 0)
		return NULL;
	/* relaxed, both: pinned by the block. */
	owner = eddy_load_relaxed(&h->chunks[chunk].map.owner);
	if (owner == 0) /* whole chunks */
		owner = eddy_load_relaxed(&s->map.owner);
	return owner != 0 ? eddy_arena_at(h, owner) : NULL;
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
	/* Outside the range it leads astray, which does no harm. */
	__builtin_prefetch(
	    (const char *)((uintptr_t)h->tags +
			   eddy_page_of(h, p) * sizeof(*h->tags)));
}

static void
fetch_word(struct eddy_heap *h, const void *p)
{
	const void *place;
	uint32_t tag = eddy_tag_seek(h, p, &place);

	if (eddy_tag_is_slab(tag))
		__builtin_prefetch(eddy_slab_bit_of(h, place, tag).word, 1);
}

static void
put_one(struct eddy_heap *h, const void *p)
{
	const void *place;
	uint32_t tag = eddy_tag_seek(h, p, &place);
	struct eddy_slab_puts done = {0};

	if (!eddy_tag_is_slab(tag)) {
		eddy_large_free(h, place, tag);
		return;
	}
	eddy_slab_put(h, eddy_slab_bit_of(h, place, tag), &done);
	eddy_slab_count(&done);
}

unsigned
eddy_arena_put(struct eddy_heap *h, void *const *objects, unsigned n)
{
	struct eddy_slab_bit table[TABLE];
	struct eddy_slab_puts done = {0};
	unsigned puts = 0;

	if (n == 1) {
		put_one(h, objects[0]);
		return 1;
	}
	for (unsigned i = 0; i < TABLE; i++)
		table[i].word = NULL;
	for (unsigned i = 0; i < n; i++) {
		const void *place;
		uint32_t tag;
		struct eddy_slab_bit b;
		struct eddy_slab_bit *t;

		if (i + 2 * AHEAD < n)
			fetch_tag(h, objects[i + 2 * AHEAD]);
		if (i + AHEAD < n)
			fetch_word(h, objects[i + AHEAD]);
		tag = eddy_tag_seek(h, objects[i], &place);
		if (!eddy_tag_is_slab(tag)) {
			eddy_large_free(h, place, tag);
			puts++;
			continue;
		}
		b = eddy_slab_bit_of(h, place, tag);
		t = &table[slot_of(b.word)];
		if (t->word == b.word) {
			if (t->mask & b.mask)
				eddy_fatal("double free", objects[i]);
			t->mask |= b.mask;
			continue;
		}
		if (t->word != NULL) {
			eddy_slab_put(h, *t, &done);
			puts++;
		}
		*t = b;
	}
	for (unsigned i = 0; i < TABLE; i++)
		if (table[i].word != NULL) {
			eddy_slab_put(h, table[i], &done);
			puts++;
		}
	eddy_slab_count(&done);
	return puts;
}
