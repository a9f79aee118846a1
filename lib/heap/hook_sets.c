/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/heap/hook_sets.h"

#include <errno.h>

#include "lib/heap/arena.h"
#include "lib/heap/backing.h"
#include "lib/heap/giants.h"
#include "lib/heap/hooks.h"
#include "lib/heap/hooks_default.h"
#include "lib/heap/segment.h"
#include "lib/os/advise.h"
#include "lib/os/os.h"

#define HUGETLB (EDDY_ARENA_HUGETLB_2M | EDDY_ARENA_HUGETLB_1G)

/* The arena that a hook is called for; NULL: a program called it. */
static struct eddy_arena *
arena_at(struct eddy_heap *h, unsigned index)
{
	return h != NULL && index < EDDY_MAX_ARENAS
		   ? eddy_arena_at(h, index + 1)
		   : NULL;
}

/* Whether this process has the memory that a hook is called for. */
static bool
is_here(unsigned index)
{
	struct eddy_arena *a = arena_at(eddy_heap_peek(), index);

	return a == NULL || eddy_backing_here(&a->backing);
}

static size_t
chunks(size_t size)
{
	return size / EDDY_CHUNK + (size % EDDY_CHUNK != 0);
}

/* Chunks of [p, p + size) in the range, of which the thread is asked; NULL. */
static struct eddy_request *
request_at(struct eddy_heap *h, const void *p, size_t size)
{
	size_t chunk = ((uintptr_t)p - h->base) >> EDDY_LG_CHUNK;

	/* The thread must be in the midst of giving them up. */
	return chunk < h->n_chunks
		   ? eddy_request_for((uint32_t)chunk, size >> EDDY_LG_CHUNK)
		   : NULL;
}

/* ------------------------------------------------------------------ */
/* Memory comes */

/* Huge pages of the pool, in pieces as large as there are; returns bytes that
 * lie in ordinary ones, SIZE_MAX: something foreign lies there. */
static size_t
map_huge(char *p, size_t size)
{
	size_t piece = size;
	size_t done = 0;

	if (((uintptr_t)p | size) % EDDY_CHUNK != 0)
		return size;
	while (done < size && piece >= EDDY_CHUNK) {
		int err;

		if (piece > size - done)
			piece = size - done;
		err = eddy_os_map_huge(p + done, piece);
		if (err == -EEXIST)
			return SIZE_MAX;
		if (err == 0)
			done += piece;
		else
			piece = eddy_align_down(piece / 2, EDDY_CHUNK);
	}
	return size - done;
}

/* Tells the kernel what memory is to be, and counts what it does not take. */
static void
advise(struct eddy_heap *h, unsigned flags, void *p, size_t size)
{
	bool taken = true;

	if (flags & (EDDY_ARENA_THP | EDDY_ARENA_NOHUGE))
		taken = eddy_os_huge(p, size, flags & EDDY_ARENA_THP) == 0;
	if (flags & EDDY_ARENA_NODUMP)
		taken &= eddy_os_no_dump(p, size) == 0;
	if (flags & EDDY_ARENA_NOFORK)
		taken &= eddy_os_no_fork(p, size) == 0;
	/* relaxed, both: counts. */
	if (!taken)
		(void)eddy_add_relaxed(&h->n_unadvised, chunks(size));
	if ((flags & EDDY_ARENA_LOCKED) && eddy_os_lock(p, size) != 0)
		(void)eddy_add_relaxed(&h->n_unlocked, chunks(size));
}

static void *
give(unsigned flags, void *new_addr, size_t size, size_t align, bool *zero,
    bool *commit, unsigned index)
{
	struct eddy_heap *h = eddy_heap();
	struct eddy_arena *a = arena_at(h, index);
	void *p = NULL;

	if (h == NULL || !is_here(index))
		return NULL;
	if (a != NULL) {
		/* relaxed: a hint, and for this thread. */
		if (eddy_load_relaxed(&a->sets) != flags)
			eddy_store_relaxed(&a->sets, flags);
		if (flags & EDDY_ARENA_NOFORK)
			eddy_backing_part(h, a);
	}
	if ((flags & EDDY_ARENA_HUGETLB_1G) && new_addr == NULL && a != NULL &&
	    size % EDDY_CHUNK == 0)
		p = eddy_giants_take(h, a, size >> EDDY_LG_CHUNK, align);
	if (p != NULL) {
		*zero = true;
		*commit = true;
	} else {
		size_t lacking = 0;

		p = eddy_hooks_default.alloc(&eddy_hooks_default, new_addr,
		    size, align, zero, commit, index);
		if (p == NULL)
			return NULL;
		if (flags & HUGETLB)
			lacking = map_huge(p, size);
		if (lacking == SIZE_MAX)
			return NULL;
		/* relaxed: a count. */
		if (lacking != 0)
			(void)eddy_add_relaxed(&h->n_not_huge, chunks(lacking));
	}
	advise(h, flags, p, size);
	return p;
}

/* ------------------------------------------------------------------ */
/* Memory goes */

static bool
plain_dalloc(extent_hooks_t *hooks, void *addr, size_t size, bool committed,
    unsigned index)
{
	return !is_here(index) ||
	       eddy_hooks_default.dalloc(hooks, addr, size, committed, index);
}

/* Huge pages of the pool go back, and their place is as it was. */
static bool
huge_dalloc(extent_hooks_t *hooks, void *addr, size_t size, bool committed,
    unsigned index)
{
	struct eddy_heap *h = eddy_heap_peek();
	struct eddy_request *r;

	if (h == NULL || !is_here(index) || eddy_giants_have(addr))
		return true;
	r = request_at(h, addr, size);
	if (r == NULL)
		return plain_dalloc(hooks, addr, size, committed, index);
	if (h->reserved) {
		if (!eddy_chunks_renew(h, r->chunk, r->n, false))
			return true;
	} else {
		eddy_os_unmap(addr, size);
	}
	r->served = true;
	return false;
}

static void
set_destroy(extent_hooks_t *hooks, void *addr, size_t size, bool committed,
    unsigned index)
{
	struct eddy_heap *h = eddy_heap_peek();
	struct eddy_request *r;

	if (h == NULL || !is_here(index))
		return;
	if (eddy_giants_have(addr)) {
		eddy_giants_put(addr, size >> EDDY_LG_CHUNK);
		return;
	}
	r = request_at(h, addr, size);
	/* Else it keeps what it was told. */
	if (r != NULL && !eddy_chunks_renew(h, r->chunk, r->n, true))
		/* relaxed: a count. */
		(void)eddy_add_relaxed(&h->n_unadvised, r->n);
	eddy_hooks_default.destroy(hooks, addr, size, committed, index);
}

static bool
plain_lazy(extent_hooks_t *hooks, void *addr, size_t size, size_t offset,
    size_t length, unsigned index)
{
	return !is_here(index) || eddy_hooks_default.purge_lazy(
				      hooks, addr, size, offset, length, index);
}

static bool
plain_forced(extent_hooks_t *hooks, void *addr, size_t size, size_t offset,
    size_t length, unsigned index)
{
	return !is_here(index) || eddy_hooks_default.purge_forced(
				      hooks, addr, size, offset, length, index);
}

/* Bytes of a transparent huge page. */
static size_t
huge_size(void)
{
	/* W, R: any CPU.  O: none: all find the same. */
	static _Atomic size_t known;
	/* relaxed, both: as above. */
	size_t size = eddy_load_relaxed(&known);

	if (size == 0) {
		size = eddy_os_huge_size();
		eddy_store_relaxed(&known, size);
	}
	return size;
}

static bool
whole_forced(extent_hooks_t *hooks, void *addr, size_t size, size_t offset,
    size_t length, unsigned index)
{
	char *p = (char *)addr + offset;

	return (((uintptr_t)p | length) & (huge_size() - 1)) != 0 ||
	       plain_forced(hooks, addr, size, offset, length, index) ||
	       eddy_os_discard(p, length) != 0;
}

/* ------------------------------------------------------------------ */
/* The sets */

/* Kinds of pages; of each there are eight sets: locked, not dumped, not forked,
 * or not. */
enum {
	SMALL = 0,
	THP = EDDY_ARENA_THP,
	NOHUGE = EDDY_ARENA_NOHUGE,
	H2M = EDDY_ARENA_HUGETLB_2M,
	H1G = EDDY_ARENA_HUGETLB_1G,
};

#define IS_LOCKED(i) (((i)&1) != 0)
#define FLAGS(pages, i)                                                \
	((unsigned)(pages) | (IS_LOCKED(i) ? EDDY_ARENA_LOCKED : 0u) | \
	    ((i)&2 ? EDDY_ARENA_NODUMP : 0u) |                         \
	    ((i)&4 ? EDDY_ARENA_NOFORK : 0u))

#define ALLOC(pages, i)                                                      \
	static void *alloc_##pages##i(extent_hooks_t *hooks, void *new_addr, \
	    size_t size, size_t align, bool *zero, bool *commit,             \
	    unsigned index)                                                  \
	{                                                                    \
		(void)hooks;                                                 \
		return give(FLAGS(pages, i), new_addr, size, align, zero,    \
		    commit, index);                                          \
	}

/* decommit is refused, so commit is never asked for.  Pages of each kind may be
 * told apart at any multiple of a chunk. */
#define SET(pages, i, dalloc_hook, lazy, forced)                      \
	{                                                             \
		.alloc = alloc_##pages##i, .dalloc = (dalloc_hook),   \
		.destroy = set_destroy,                               \
		.purge_lazy = IS_LOCKED(i) ? NULL : (lazy),           \
		.purge_forced = IS_LOCKED(i) ? NULL : (forced),       \
		.split = eddy_hooks_split, .merge = eddy_hooks_merge, \
	}

#define EIGHT(X, ...)     \
	X(__VA_ARGS__, 0) \
	X(__VA_ARGS__, 1) \
	X(__VA_ARGS__, 2) \
	X(__VA_ARGS__, 3) \
	X(__VA_ARGS__, 4) X(__VA_ARGS__, 5) X(__VA_ARGS__, 6) X(__VA_ARGS__, 7)

EIGHT(ALLOC, SMALL)
EIGHT(ALLOC, THP)
EIGHT(ALLOC, NOHUGE)
EIGHT(ALLOC, H2M)
EIGHT(ALLOC, H1G)

#define PLAIN(pages, i) SET(pages, i, plain_dalloc, plain_lazy, plain_forced),
#define WHOLE(pages, i) SET(pages, i, plain_dalloc, NULL, whole_forced),
#define POOL(pages, i)  SET(pages, i, huge_dalloc, NULL, NULL),

enum { N_SETS = 8 };

static const extent_hooks_t small_sets[N_SETS] = {EIGHT(PLAIN, SMALL)};
static const extent_hooks_t thp_sets[N_SETS] = {EIGHT(WHOLE, THP)};
static const extent_hooks_t nohuge_sets[N_SETS] = {EIGHT(PLAIN, NOHUGE)};
static const extent_hooks_t huge_2m_sets[N_SETS] = {EIGHT(POOL, H2M)};
static const extent_hooks_t huge_1g_sets[N_SETS] = {EIGHT(POOL, H1G)};

static const extent_hooks_t *
sets_of(unsigned pages)
{
	switch (pages) {
	case SMALL:
		return small_sets;
	case THP:
		return thp_sets;
	case NOHUGE:
		return nohuge_sets;
	case H2M:
		return huge_2m_sets;
	case H1G:
		return huge_1g_sets;
	default:
		return NULL;
	}
}

extent_hooks_t *
eddy_hook_set_of(unsigned flags)
{
	const extent_hooks_t *sets = sets_of(flags & EDDY_SET_PAGES);
	unsigned i = (flags & EDDY_ARENA_LOCKED ? 1u : 0u) |
		     (flags & EDDY_ARENA_NODUMP ? 2u : 0u) |
		     (flags & EDDY_ARENA_NOFORK ? 4u : 0u);

	if ((flags & ~EDDY_SET_ALL) != 0 || sets == NULL)
		return NULL;
	/* What programs hold is not const in jemalloc's interface. */
	return flags == 0 ? &eddy_hooks_default
			  : (extent_hooks_t *)(uintptr_t)&sets[i];
}

/* ------------------------------------------------------------------ */
/* Arenas */

int
eddy_arena_make(
    struct eddy_heap *h, const struct eddy_arena_plan *plan, uint32_t *ret)
{
	const unsigned file = EDDY_ARENA_FILE | EDDY_ARENA_FILL;
	extent_hooks_t *hooks = eddy_hook_set_of(plan->flags & ~file);
	int err;

	if ((plan->flags & file) != 0) {
		if ((plan->flags & EDDY_ARENA_FILE) == 0 ||
		    hooks != &eddy_hooks_default || plan->file_size == 0)
			return -EINVAL;
		return eddy_backing_create(h, plan->node, plan->directory,
		    plan->file_size, (plan->flags & EDDY_ARENA_FILL) != 0, ret);
	}
	if (hooks == NULL || plan->directory != NULL || plan->file_size != 0)
		return -EINVAL;
	err = hooks == &eddy_hooks_default
		  ? eddy_arena_add(h, plan->node, ret)
		  : eddy_arena_add_bare(h, plan->node, ret);
	if (err == 0)
		(void)eddy_hooks_set(eddy_arena_at(h, *ret), hooks);
	return err;
}

/* ------------------------------------------------------------------ */
/* Small pages become huge ones */

/* Dirty chunks of a word of a segment, run by run. */
static int
collapse_word(struct eddy_heap *h, uint32_t first, uint64_t bits)
{
	int result = 0;

	while (bits != 0) {
		unsigned pos = eddy_ctz64(bits);
		uint64_t rest = ~(bits >> pos);
		unsigned n = rest == 0 ? 64 : eddy_ctz64(rest);
		int err = eddy_os_collapse(
		    eddy_page_address(h, first + pos, 0), n * EDDY_CHUNK);

		if (err != 0)
			result = err;
		bits &= ~eddy_mask(pos, n);
	}
	return result;
}

/* Whether pages of a chunk that is ready are dirty, as it seems. */
static bool
is_touched(struct eddy_heap *h, struct eddy_segment *s, uint32_t chunk)
{
	uint64_t dirty = 0;

	/* relaxed, all: a guess. */
	if (eddy_load_relaxed(&h->chunks[chunk].map.owner) == 0)
		return eddy_load_relaxed(
			   &s->map.dirty[chunk % EDDY_SEGMENT_CHUNKS / 64]) >>
			   chunk % 64 &
		       1;
	for (unsigned i = 0; i < EDDY_RUNMAP_WORDS; i++)
		dirty |= eddy_load_relaxed(&h->chunks[chunk].map.dirty[i]);
	return dirty != 0;
}

/* Whether an arena is to be in transparent huge pages, with memory or without.
 */
static bool
is_of_thp(struct eddy_arena *a)
{
	uintptr_t at = (uintptr_t)eddy_hooks_get(a) - (uintptr_t)thp_sets;

	/* relaxed: a hint. */
	return at < sizeof(thp_sets) ||
	       (eddy_load_relaxed(&a->sets) & EDDY_ARENA_THP) != 0;
}

static int
collapse_segment(struct eddy_heap *h, uint32_t segment)
{
	struct eddy_segment *s = &h->segments[segment];
	uint32_t chunk = segment * (uint32_t)EDDY_SEGMENT_CHUNKS;
	int result = 0;

	for (unsigned w = 0; w < EDDY_RUNMAP_WORDS; w++, chunk += 64) {
		/* SEG-A3: pairs with SEG-R3. */
		uint64_t bits = eddy_load_acquire(&s->map.ready[w]);
		int err;

		for (uint64_t b = bits; b != 0; b &= b - 1)
			if (!is_touched(h, s, chunk + eddy_ctz64(b)))
				bits &= ~(b & -b);
		err = collapse_word(h, chunk, bits);
		if (err != 0)
			result = err;
	}
	return result;
}

int
eddy_hook_set_collapse(struct eddy_heap *h, struct eddy_arena *a)
{
	uint32_t i = eddy_segment_from(a, 0);
	int result = 0;

	if (!is_of_thp(a))
		return -EINVAL;
	/* Nothing to be done: it has none, or its parent has. */
	if (!eddy_backing_here(&a->backing))
		return 0;
	for (; i != EDDY_ID_NONE; i = eddy_segment_from(a, i + 1)) {
		/* What has gone meanwhile is refused. */
		int err =
		    eddy_segment_is_of(h, i, a) ? collapse_segment(h, i) : 0;

		if (err != 0)
			result = err;
	}
	return result;
}
