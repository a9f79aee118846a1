/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/heap/large.h"

#include "lib/heap/arena.h"
#include "lib/heap/backing.h"
#include "lib/heap/bind.h"
#include "lib/heap/chunk.h"
#include "lib/heap/hooks.h"
#include "lib/heap/pagemap.h"
#include "lib/heap/reclaim.h"
#include "lib/heap/segment.h"
#include "lib/heap/thp.h"
#include "lib/heap/warm.h"
#include "lib/os/fatal.h"
#include "lib/os/os.h"

/* Moves by mremap in the life of a process; each may split two mappings. */
#define MAX_MOVES 8192
/* Below this, copying is as fast. */
#define MIN_MOVE ((size_t)1 << 20)

static uint32_t
chunk_of(struct eddy_heap *h, const void *p)
{
	return (uint32_t)(((uintptr_t)p - h->base) >> EDDY_LG_CHUNK);
}

static uint32_t
chunks_of(size_t size)
{
	return (uint32_t)((size + EDDY_CHUNK - 1) >> EDDY_LG_CHUNK);
}

static _Atomic uint32_t *
tag_at(struct eddy_heap *h, const void *p)
{
	return &h->tags[eddy_page_of(h, p)];
}

/* ------------------------------------------------------------------ */
/* Runs */

static uint32_t
run_tag(struct eddy_arena *a, unsigned pages)
{
	unsigned row = 0;

	if (pages >= EDDY_LARGE_MIN / EDDY_PAGE &&
	    pages <= EDDY_ROW_MAX / EDDY_PAGE)
		row = EDDY_ROW_RUN + pages -
		      (unsigned)(EDDY_LARGE_MIN / EDDY_PAGE);
	return eddy_tag(EDDY_TAG_RUN, a->home, row, pages);
}

static void *
run_alloc(struct eddy_heap *h, struct eddy_arena *a, unsigned pages,
    unsigned align, bool zero)
{
	struct eddy_run r;
	void *p;

	if (!eddy_pages_claim(h, a, pages, align,
		zero ? EDDY_WANT_CLEAN : EDDY_WANT_DIRTY, &r))
		return NULL;
	eddy_pages_use(h, r.id, r.pos, pages, zero);
	p = eddy_page_place(h, r.id, r.pos);
	/* relaxed: the block is handed to the program by program order. */
	eddy_store_relaxed(tag_at(h, p), run_tag(a, pages));
	return eddy_page_address(h, r.id, r.pos);
}

static bool
run_resize(
    struct eddy_heap *h, const void *p, uint32_t tag, size_t size, bool zero)
{
	uint32_t chunk = chunk_of(h, p);
	unsigned page = (unsigned)(eddy_page_of(h, p) % EDDY_CHUNK_PAGES);
	unsigned old = eddy_tag_pages(tag);
	unsigned new = (unsigned)(size / EDDY_PAGE);
	struct eddy_arena *a;

	if (size > EDDY_CHUNK)
		return false;
	/* relaxed: pinned by the block. */
	a = eddy_arena_at(h, eddy_load_relaxed(&h->chunks[chunk].map.owner));
	if (new > old) {
		if (eddy_warm_tight(h, new - old) ||
		    !eddy_pages_claim_at(h, chunk, page + old, new - old) ||
		    !eddy_pages_fill(h, a, chunk, page + old, new - old))
			return false;
		if (eddy_hooked(a) &&
		    !eddy_hooks_join_run(h, a, chunk, page, old, new - old)) {
			eddy_pages_put(chunk, page + old, new - old,
			    eddy_address_of(h, p));
			return false;
		}
		eddy_pages_use(h, chunk, page + old, new - old, zero);
	} else if (new < old && eddy_hooked(a) &&
		   !eddy_hooks_cut_run(h, a, chunk, page, new, old - new)) {
		return false;
	}
	/* relaxed: the block is the caller's alone; RUN-R2 orders the tail. */
	eddy_store_relaxed(tag_at(h, p), run_tag(a, new));
	if (new < old)
		eddy_pages_free(chunk, page + new, old - new,
		    eddy_page_address(h, chunk, page));
	return true;
}

/* ------------------------------------------------------------------ */
/* Huge blocks */

/* The arena of a block of whole chunks. */
static struct eddy_arena *
arena_of(struct eddy_heap *h, uint32_t chunk)
{
	/* relaxed: pinned by the block. */
	return eddy_arena_at(
	    h, eddy_load_relaxed(
		   &h->segments[chunk / EDDY_SEGMENT_CHUNKS].map.owner));
}

static void
huge_release(struct eddy_heap *h, uint32_t chunk, uint32_t n)
{
	struct eddy_arena *a = arena_of(h, chunk);

	if (a != NULL && eddy_hooked(a))
		eddy_hooks_part(h, a, chunk, n);
	while (n >= EDDY_SEGMENT_CHUNKS && chunk % EDDY_SEGMENT_CHUNKS == 0) {
		eddy_segment_free(h, chunk / (uint32_t)EDDY_SEGMENT_CHUNKS);
		chunk += (uint32_t)EDDY_SEGMENT_CHUNKS;
		n -= (uint32_t)EDDY_SEGMENT_CHUNKS;
	}
	if (n != 0)
		eddy_chunks_free(h, chunk, n);
	eddy_reclaim_share(h);
}

/*
 * Chunks in hand have their room where the arena wants that; false: there is
 * none, and they were put back, those of whole segments as if they had been
 * used.
 */
static bool
fill(struct eddy_heap *h, uint32_t chunk, uint32_t n)
{
	char *p = eddy_page_place(h, chunk, 0);
	const struct eddy_backing *b = eddy_backing_of(h, p);
	struct eddy_arena *a = arena_of(h, chunk);

	if (eddy_unlikely(eddy_hooked(a))) {
		if (eddy_hooks_fill_chunks(h, a, chunk, n))
			return true;
		eddy_chunks_use(h, chunk, n, 0);
		eddy_hooks_unfill(h, chunk, n);
		huge_release(h, chunk, n);
		return false;
	}
	if (eddy_likely(b == NULL || !b->fill) ||
	    eddy_backing_fill(p, n * EDDY_CHUNK))
		return true;
	eddy_chunks_use(h, chunk, n, 0);
	for (uint32_t i = 0; i < n; i++)
		if (eddy_backing_drop(h, p + i * EDDY_CHUNK, EDDY_CHUNK))
			eddy_chunks_clean(h, chunk + i, 1);
	huge_release(h, chunk, n);
	return false;
}

static void *
huge_publish(struct eddy_heap *h, uint32_t chunk, size_t size, bool zero)
{
	void *p = eddy_page_place(h, chunk, 0);

	eddy_chunks_use(h, chunk, chunks_of(size), zero ? size : 0);
	/* relaxed, both: handed to the program by program order. */
	eddy_store_relaxed(&h->chunks[chunk].huge_size, size);
	eddy_store_relaxed(tag_at(h, p), eddy_tag(EDDY_TAG_HUGE, 0, 0, 0));
	return eddy_page_address(h, chunk, 0);
}

/* Chunks in hand are dirty; but for pages that may become so, all of them? */
static bool
is_warm(struct eddy_heap *h, uint32_t chunk, uint32_t n)
{
	int64_t clean = eddy_chunks_missing(h, chunk, n);

	return clean == 0 || eddy_warm_may_grow(h, (size_t)clean);
}

static void *
huge_alloc(struct eddy_heap *h, struct eddy_arena *a, size_t size, size_t align,
    bool zero)
{
	const size_t pages = chunks_of(size) * EDDY_CHUNK_PAGES;
	uint32_t chunk;

	if (eddy_warm_tight(h, pages)) {
		if (eddy_chunks_claim(h, a, chunks_of(size), (unsigned)align,
			EDDY_ONLY_DIRTY, &chunk)) {
			if (is_warm(h, chunk, chunks_of(size)))
				return huge_publish(h, chunk, size, zero);
			eddy_chunks_put(chunk, chunks_of(size));
			return NULL;
		}
		if (!eddy_warm_may_grow(h, pages))
			return NULL;
	}
	if (!eddy_chunks_claim(h, a, chunks_of(size), (unsigned)align,
		zero ? EDDY_WANT_READY : EDDY_WANT_WARM, &chunk) ||
	    !fill(h, chunk, chunks_of(size)))
		return NULL;
	return huge_publish(h, chunk, size, zero);
}

/* Whole segments; the last one serves others with what is left of it. */
static void *
giant_alloc(struct eddy_heap *h, struct eddy_arena *a, size_t size,
    size_t align, bool zero)
{
	uint32_t n = chunks_of(size);
	uint32_t segment;

	if (!eddy_segments_claim(h, a, n, (uint32_t)align, &segment) ||
	    !fill(h, segment * (uint32_t)EDDY_SEGMENT_CHUNKS, n))
		return NULL;
	return huge_publish(
	    h, segment * (uint32_t)EDDY_SEGMENT_CHUNKS, size, zero);
}

/* What lies behind a block in its last chunk, which is dirty. */
static void
zero_tail(char *p, size_t size)
{
	struct eddy_zeroes z = {NULL, 0, NULL};

	if (size != 0)
		eddy_zeroes_add(&z, p, size);
	eddy_zeroes_finish(&z);
}

/* Blocks within one segment grow and shrink by chunks at their end. */
static bool
huge_resize(
    struct eddy_heap *h, const void *p, size_t old_size, size_t size, bool zero)
{
	uint32_t chunk = chunk_of(h, p);
	uint32_t old = chunks_of(old_size);
	uint32_t new = chunks_of(size);

	if (size <= EDDY_CHUNK ||
	    chunk % EDDY_SEGMENT_CHUNKS + (old > new ? old : new) >
		EDDY_SEGMENT_CHUNKS)
		return false;
	if (new > old) {
		if (eddy_warm_tight(h, (new - old) * EDDY_CHUNK_PAGES) ||
		    !eddy_chunks_grow(h, chunk, old, new - old) ||
		    !fill(h, chunk + old, new - old))
			return false;
		eddy_chunks_use(h, chunk + old, new - old,
		    zero ? size - (old * EDDY_CHUNK) : 0);
	}
	if (new < old && eddy_hooked(arena_of(h, chunk)) &&
	    !eddy_hooks_cut(h, arena_of(h, chunk), chunk, old, new))
		return false;
	if (zero && size > old_size)
		zero_tail((char *)eddy_page_address(h, chunk, 0) + old_size,
		    (new > old ? old *EDDY_CHUNK : size) - old_size);
	/* relaxed: the block is the caller's alone; RUN-R2 orders the tail. */
	eddy_store_relaxed(&h->chunks[chunk].huge_size, size);
	if (new < old) {
		if (eddy_hooked(arena_of(h, chunk)))
			eddy_hooks_part(
			    h, arena_of(h, chunk), chunk + new, old - new);
		eddy_chunks_free(h, chunk + new, old - new);
	}
	return true;
}

/* ------------------------------------------------------------------ */

static void *
alloc(struct eddy_heap *h, struct eddy_arena *a, size_t size, size_t align,
    bool zero)
{
	size_t chunks = (size + EDDY_CHUNK - 1) / EDDY_CHUNK;

	if (size > (size_t)h->n_chunks * EDDY_CHUNK ||
	    align > (size_t)h->n_chunks * EDDY_CHUNK_PAGES)
		return NULL;
	if (size <= EDDY_CHUNK && align <= EDDY_CHUNK_PAGES)
		return run_alloc(
		    h, a, (unsigned)(size / EDDY_PAGE), (unsigned)align, zero);
	align = align <= EDDY_CHUNK_PAGES ? 1 : align / EDDY_CHUNK_PAGES;
	if (size < EDDY_CHUNK)
		size = EDDY_CHUNK;
	if (chunks <= EDDY_SEGMENT_CHUNKS && align <= EDDY_SEGMENT_CHUNKS)
		return huge_alloc(h, a, size, align, zero);
	align = align <= EDDY_SEGMENT_CHUNKS ? 1 : align / EDDY_SEGMENT_CHUNKS;
	return giant_alloc(h, a, size, align, zero);
}

void *
eddy_large_alloc(struct eddy_heap *h, struct eddy_arena *a, size_t size,
    size_t align, bool zero)
{
	void *p = alloc(h, a, size, align, zero);

	if (p != NULL)
		/* As eddy_large_size_of will have it. */
		eddy_tally_large_take(&a->tally,
		    size < EDDY_CHUNK && align > EDDY_CHUNK_PAGES ? EDDY_CHUNK
								  : size);
	return p;
}

size_t
eddy_large_size_of(struct eddy_heap *h, const void *p, uint32_t tag)
{
	uint32_t chunk;

	if (eddy_tag_kind(tag) == EDDY_TAG_RUN)
		return eddy_tag_pages(tag) * EDDY_PAGE;
	chunk = (uint32_t)(eddy_page_of(h, p) / EDDY_CHUNK_PAGES);
	/* relaxed: the caller holds the block. */
	return eddy_load_relaxed(&h->chunks[chunk].huge_size);
}

/* A block whose tag is in hand. */
static void
release(struct eddy_heap *h, const void *p, uint32_t tag)
{
	size_t size = eddy_large_size_of(h, p, tag);
	struct eddy_arena *a = eddy_arena_of(h, p);
	uint32_t chunk = chunk_of(h, p);
	unsigned page = (unsigned)(eddy_page_of(h, p) % EDDY_CHUNK_PAGES);

	if (a != NULL)
		eddy_tally_large_put(&a->tally, size);
	if (eddy_tag_kind(tag) == EDDY_TAG_RUN)
		eddy_pages_free(chunk, page, eddy_tag_pages(tag),
		    eddy_page_address(h, chunk, page));
	else
		huge_release(h, chunk, chunks_of(size));
}

void
eddy_large_free(struct eddy_heap *h, const void *p, uint32_t tag)
{
	if ((uintptr_t)p % EDDY_PAGE != 0 && tag != 0)
		eddy_fatal("misaligned pointer", eddy_address_of(h, p));
	if (tag == 0 ||
	    /* relaxed: of two freers one gets 0; RUN-R2 orders the rest. */
	    (tag = eddy_xchg_relaxed(tag_at(h, p), 0)) == 0)
		eddy_fatal_free(h, p);
	release(h, p, tag);
}

void
eddy_large_discard(struct eddy_heap *h, const void *p)
{
	/* relaxed, both: of two freers one gets it; as above. */
	uint32_t tag = eddy_load_relaxed(tag_at(h, p));

	if ((eddy_tag_kind(tag) == EDDY_TAG_RUN ||
		eddy_tag_kind(tag) == EDDY_TAG_HUGE) &&
	    eddy_cas_relaxed(tag_at(h, p), &tag, 0))
		release(h, p, tag);
}

bool
eddy_large_resize(
    struct eddy_heap *h, const void *p, uint32_t tag, size_t size, bool zero)
{
	size_t old = eddy_large_size_of(h, p, tag);
	struct eddy_arena *a = eddy_arena_of(h, p);

	/* Numbers of chunks have 32 bits. */
	if (size > (size_t)h->n_chunks * EDDY_CHUNK)
		return false;
	if (eddy_tag_kind(tag) == EDDY_TAG_RUN
		? !run_resize(h, p, tag, size, zero)
		: !huge_resize(h, p, old, size, zero))
		return false;
	if (a != NULL) {
		eddy_tally_large_put(&a->tally, old);
		eddy_tally_large_take(&a->tally, size);
	}
	return true;
}

/* The pages that the kernel moved away left zeros behind. */
static void
mark_moved(struct eddy_heap *h, void *from, size_t size)
{
	uint32_t chunk = chunk_of(h, from);

	/* relaxed: the caller holds the block.  A block of just one chunk may
	 * be of either kind. */
	if (eddy_tag_kind(eddy_load_relaxed(tag_at(h, from))) == EDDY_TAG_RUN)
		eddy_pages_clean(h, chunk,
		    (unsigned)(eddy_page_of(h, from) % EDDY_CHUNK_PAGES),
		    (unsigned)(size / EDDY_PAGE));
	else /* what lies behind the block in its last chunk may be dirty */
		eddy_chunks_clean(h, chunk, (uint32_t)(size >> EDDY_LG_CHUNK));
}

enum eddy_move
eddy_large_move(struct eddy_heap *h, void *from, void *to, size_t size)
{
	size_t page = eddy_os_page_size();

	/* relaxed: a budget, not exact. */
	if (size < MIN_MOVE || eddy_frozen(h) || h->opts.hugetlb ||
	    (uintptr_t)from % page != 0 || (uintptr_t)to % page != 0 ||
	    size % page != 0 || eddy_load_relaxed(&h->n_moves) >= MAX_MOVES ||
	    eddy_hooks_gave(h, from) || eddy_hooks_gave(h, to) ||
	    eddy_backing_of(h, from) != NULL ||
	    eddy_backing_of(h, to) != NULL || !eddy_bind_alike(h, from, to) ||
	    /* relaxed: the caller's block. */
	    eddy_tag_kind(eddy_load_relaxed(tag_at(h, from))) ==
		EDDY_TAG_REGION)
		return EDDY_NOT_MOVED;
	(void)eddy_add_relaxed(&h->n_moves, 1); /* relaxed: as above */
	if (eddy_os_move(from, to, size) == 0) {
		mark_moved(h, from, size);
		/* The pages brought the policy of their old place along. */
		eddy_bind_again(h, to, size);
		eddy_thp_again(h, to, size);
		return EDDY_MOVED;
	}
	/*
	 * The kernel may have unmapped the target before it failed, and
	 * somebody may have mapped something there since.  No more moves.
	 */
	/* relaxed: as above. */
	eddy_store_relaxed(&h->n_moves, MAX_MOVES);
	if (eddy_os_map_at(to, size) != 0)
		return EDDY_LOST;
	eddy_bind_again(h, to, size);
	eddy_thp_again(h, to, size);
	return EDDY_NOT_MOVED;
}
