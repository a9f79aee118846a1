/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/heap/large.h"

#include "lib/heap/bind.h"
#include "lib/heap/chunk.h"
#include "lib/heap/pagemap.h"
#include "lib/heap/segment.h"
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
	p = eddy_page_address(h, r.id, r.pos);
	/* relaxed: the block is handed to the program by program order. */
	eddy_store_relaxed(tag_at(h, p), run_tag(a, pages));
	return p;
}

static bool
run_resize(struct eddy_heap *h, void *p, uint32_t tag, size_t size)
{
	uint32_t chunk = chunk_of(h, p);
	unsigned page = (unsigned)(eddy_page_of(h, p) % EDDY_CHUNK_PAGES);
	unsigned old = eddy_tag_pages(tag);
	unsigned new = (unsigned)(size / EDDY_PAGE);
	struct eddy_arena *a;

	if (size > EDDY_CHUNK)
		return false;
	if (new > old) {
		if (!eddy_pages_claim_at(h, chunk, page + old, new - old))
			return false;
		eddy_pages_use(h, chunk, page + old, new - old, false);
	}
	/* relaxed: pinned by the block. */
	a = eddy_arena_at(h, eddy_load_relaxed(&h->chunks[chunk].map.owner));
	/* relaxed: the block is the caller's alone; RUN-R2 orders the tail. */
	eddy_store_relaxed(tag_at(h, p), run_tag(a, new));
	if (new < old)
		eddy_pages_put(chunk, page + new, old - new, p);
	return true;
}

/* ------------------------------------------------------------------ */
/* Huge blocks */

static void *
huge_publish(struct eddy_heap *h, uint32_t chunk, size_t size, bool zero)
{
	void *p = eddy_page_address(h, chunk, 0);

	eddy_chunks_use(h, chunk, chunks_of(size), zero ? size : 0);
	/* relaxed, both: handed to the program by program order. */
	eddy_store_relaxed(&h->chunks[chunk].huge_size, size);
	eddy_store_relaxed(tag_at(h, p), eddy_tag(EDDY_TAG_HUGE, 0, 0, 0));
	return p;
}

static void *
huge_alloc(struct eddy_heap *h, struct eddy_arena *a, size_t size, size_t align,
    bool zero)
{
	uint32_t chunk;

	if (!eddy_chunks_claim(h, a, chunks_of(size), (unsigned)align,
		EDDY_WANT_READY, &chunk))
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

	if (!eddy_segments_claim(h, a, n, (uint32_t)align, &segment))
		return NULL;
	return huge_publish(
	    h, segment * (uint32_t)EDDY_SEGMENT_CHUNKS, size, zero);
}

static void
huge_release(struct eddy_heap *h, uint32_t chunk, uint32_t n)
{
	while (n >= EDDY_SEGMENT_CHUNKS && chunk % EDDY_SEGMENT_CHUNKS == 0) {
		eddy_segments_put(h, chunk / (uint32_t)EDDY_SEGMENT_CHUNKS, 1);
		chunk += (uint32_t)EDDY_SEGMENT_CHUNKS;
		n -= (uint32_t)EDDY_SEGMENT_CHUNKS;
	}
	if (n != 0)
		eddy_chunks_put(chunk, n);
}

/* Blocks within one segment grow and shrink by chunks at their end. */
static bool
huge_resize(struct eddy_heap *h, void *p, size_t old_size, size_t size)
{
	uint32_t chunk = chunk_of(h, p);
	uint32_t old = chunks_of(old_size);
	uint32_t new = chunks_of(size);

	if (size <= EDDY_CHUNK ||
	    chunk % EDDY_SEGMENT_CHUNKS + (old > new ? old : new) >
		EDDY_SEGMENT_CHUNKS)
		return false;
	if (new > old) {
		if (!eddy_chunks_claim_at(h, chunk + old, new - old))
			return false;
		eddy_chunks_use(h, chunk + old, new - old, 0);
	}
	/* relaxed: the block is the caller's alone; RUN-R2 orders the tail. */
	eddy_store_relaxed(&h->chunks[chunk].huge_size, size);
	if (new < old)
		eddy_chunks_put(chunk + new, old - new);
	return true;
}

/* ------------------------------------------------------------------ */

void *
eddy_large_alloc(struct eddy_heap *h, struct eddy_arena *a, size_t size,
    size_t align, bool zero)
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

void
eddy_large_free(struct eddy_heap *h, void *p, uint32_t tag)
{
	size_t size;

	if ((uintptr_t)p % EDDY_PAGE != 0 && tag != 0)
		eddy_fatal("misaligned pointer", p);
	if (tag == 0 ||
	    /* relaxed: of two freers one gets 0; RUN-R2 orders the rest. */
	    (tag = eddy_xchg_relaxed(tag_at(h, p), 0)) == 0)
		eddy_fatal_free(h, p);
	size = eddy_large_size_of(h, p, tag);
	if (eddy_tag_kind(tag) == EDDY_TAG_RUN)
		eddy_pages_put(chunk_of(h, p),
		    (unsigned)(eddy_page_of(h, p) % EDDY_CHUNK_PAGES),
		    eddy_tag_pages(tag), p);
	else
		huge_release(h, chunk_of(h, p), chunks_of(size));
}

bool
eddy_large_resize(struct eddy_heap *h, void *p, uint32_t tag, size_t size)
{
	if (eddy_tag_kind(tag) == EDDY_TAG_RUN)
		return run_resize(h, p, tag, size);
	return huge_resize(h, p, eddy_large_size_of(h, p, tag), size);
}

/* The pages that the kernel moved away left zeros behind. */
static void
mark_moved(struct eddy_heap *h, void *from, size_t size)
{
	uint32_t chunk = chunk_of(h, from);

	if (size <= EDDY_CHUNK)
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
	if (size < MIN_MOVE || (uintptr_t)from % page != 0 ||
	    (uintptr_t)to % page != 0 || size % page != 0 ||
	    eddy_load_relaxed(&h->n_moves) >= MAX_MOVES ||
	    !eddy_bind_alike(h, from, to))
		return EDDY_NOT_MOVED;
	(void)eddy_add_relaxed(&h->n_moves, 1); /* relaxed: as above */
	if (eddy_os_move(from, to, size) == 0) {
		mark_moved(h, from, size);
		/* The pages brought the policy of their old place along. */
		eddy_bind_again(h, to, size);
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
	return EDDY_NOT_MOVED;
}
