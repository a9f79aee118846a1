/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/heap/large.h"

#include "lib/heap/chunk.h"
#include "lib/heap/pagemap.h"
#include "lib/heap/segment.h"
#include "lib/os/fatal.h"
#include "lib/os/os.h"

/* Moves by mremap in the life of a process; each may split two mappings. */
#define MAX_MOVES 8192
/* Below this, copying is as fast. */
#define MIN_MOVE ((size_t)1 << 20)

/* A block in units: whole chunks from `chunk` on, then pages of the next. */
struct extent {
	uint32_t chunk;
	uint32_t chunks;
	unsigned pages;
};

static struct extent
extent_of(struct eddy_heap *h, const void *p, size_t size)
{
	struct extent e;

	e.chunk = (uint32_t)(((uintptr_t)p - h->base) >> EDDY_LG_CHUNK);
	e.chunks = (uint32_t)(size >> EDDY_LG_CHUNK);
	e.pages = (unsigned)(size % EDDY_CHUNK / EDDY_PAGE);
	return e;
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
	struct extent e = extent_of(h, p, size);
	unsigned page = (unsigned)(eddy_page_of(h, p) % EDDY_CHUNK_PAGES);
	unsigned old = eddy_tag_pages(tag);
	unsigned new = (unsigned)(size / EDDY_PAGE);
	struct eddy_arena *a;

	if (size > EDDY_CHUNK)
		return false;
	if (new > old) {
		if (!eddy_pages_claim_at(h, e.chunk, page + old, new - old))
			return false;
		eddy_pages_use(h, e.chunk, page + old, new - old, false);
	}
	/* relaxed: pinned by the block. */
	a = eddy_arena_at(h, eddy_load_relaxed(&h->chunks[e.chunk].map.owner));
	/* relaxed: the block is the caller's alone; RUN-R2 orders the tail. */
	eddy_store_relaxed(tag_at(h, p), run_tag(a, new));
	if (new < old)
		eddy_pages_put(e.chunk, page + new, old - new, p);
	return true;
}

/* ------------------------------------------------------------------ */
/* Huge blocks */

static void *
huge_publish(struct eddy_heap *h, uint32_t chunk, size_t size)
{
	void *p = eddy_page_address(h, chunk, 0);

	/* relaxed, both: handed to the program by program order. */
	eddy_store_relaxed(&h->chunks[chunk].huge_size, size);
	eddy_store_relaxed(tag_at(h, p), eddy_tag(EDDY_TAG_HUGE, 0, 0, 0));
	return p;
}

/* The chunk behind the whole ones: its first pages are the block's. */
static void
open_tail(struct eddy_heap *h, struct eddy_arena *a, struct extent e, bool zero)
{
	uint32_t tail = e.chunk + e.chunks;

	if (e.pages == 0)
		return;
	eddy_chunk_open(h, a, tail, e.pages);
	eddy_pages_use(h, tail, 0, e.pages, zero);
}

static void *
huge_alloc(struct eddy_heap *h, struct eddy_arena *a, size_t size, size_t align,
    bool zero)
{
	struct extent e = extent_of(h, (void *)h->base, size);
	unsigned n = e.chunks + (e.pages != 0);

	if (!eddy_chunks_claim(
		h, n, (unsigned)align, EDDY_WANT_READY, &e.chunk))
		return NULL;
	eddy_chunks_use(h, e.chunk, e.chunks, zero);
	open_tail(h, a, e, zero);
	return huge_publish(h, e.chunk, size);
}

/* Whole segments; the last one serves others with what is left of it. */
static void *
giant_alloc(struct eddy_heap *h, struct eddy_arena *a, size_t size,
    size_t align, bool zero)
{
	struct extent e = extent_of(h, (void *)h->base, size);
	uint32_t n = (uint32_t)((size + EDDY_SEGMENT - 1) / EDDY_SEGMENT);
	uint32_t last = e.chunks + (e.pages != 0);
	uint32_t segment;

	if (!eddy_segments_claim(h, n, (uint32_t)align, &segment))
		return NULL;
	e.chunk = segment * (uint32_t)EDDY_SEGMENT_CHUNKS;
	last -= (n - 1) * (uint32_t)EDDY_SEGMENT_CHUNKS;
	if (last < EDDY_SEGMENT_CHUNKS || e.pages != 0)
		eddy_segment_open(h, segment + n - 1, last);
	eddy_chunks_use(h, e.chunk, e.chunks, zero);
	open_tail(h, a, e, zero);
	return huge_publish(h, e.chunk, size);
}

static void
huge_release(struct eddy_heap *h, void *p, size_t size)
{
	struct extent e = extent_of(h, p, size);

	if (e.pages != 0)
		eddy_pages_put(e.chunk + e.chunks, 0, e.pages, p);
	while (e.chunks >= EDDY_SEGMENT_CHUNKS &&
	       e.chunk % EDDY_SEGMENT_CHUNKS == 0) {
		eddy_segments_put(
		    h, e.chunk / (uint32_t)EDDY_SEGMENT_CHUNKS, 1);
		e.chunk += (uint32_t)EDDY_SEGMENT_CHUNKS;
		e.chunks -= (uint32_t)EDDY_SEGMENT_CHUNKS;
	}
	if (e.chunks != 0)
		eddy_chunks_put(e.chunk, e.chunks);
}

/* A block within one segment: the only kind that is resized in place. */
static bool
within_segment(struct extent e)
{
	return e.chunk % EDDY_SEGMENT_CHUNKS + e.chunks + (e.pages != 0) <=
		   EDDY_SEGMENT_CHUNKS &&
	       e.chunks < EDDY_SEGMENT_CHUNKS;
}

/* The block's last chunk becomes a whole one of its own: it holds all of it. */
static bool
absorb_tail(struct eddy_heap *h, struct extent e)
{
	uint32_t tail = e.chunk + e.chunks;

	if (e.pages == 0)
		return true;
	if (!eddy_pages_claim_at(
		h, tail, e.pages, (unsigned)EDDY_CHUNK_PAGES - e.pages))
		return false;
	eddy_chunk_absorb(h, tail);
	return true;
}

static bool
huge_grow(struct eddy_heap *h, struct eddy_arena *a, void *p, size_t old_size,
    size_t size)
{
	struct extent old = extent_of(h, p, old_size);
	struct extent new = extent_of(h, p, size);
	uint32_t from = old.chunk + old.chunks + (old.pages != 0);
	uint32_t to = new.chunk + new.chunks + (new.pages != 0);

	if (!within_segment(old) || !within_segment(new))
		return false;
	if (new.chunks == old.chunks && old.pages != 0) {
		uint32_t tail = new.chunk + new.chunks;
		unsigned n = new.pages - old.pages;

		if (!eddy_pages_claim_at(h, tail, old.pages, n))
			return false;
		eddy_pages_use(h, tail, old.pages, n, false);
		return true;
	}
	if (to > from && !eddy_chunks_claim_at(h, from, to - from))
		return false;
	if (!absorb_tail(h, old)) {
		if (to > from)
			eddy_chunks_put(from, to - from);
		return false;
	}
	eddy_chunks_use(
	    h, old.chunk + old.chunks, new.chunks - old.chunks, false);
	open_tail(h, a, new, false);
	return true;
}

static bool
huge_shrink(struct eddy_heap *h, struct eddy_arena *a, void *p, size_t old_size,
    size_t size)
{
	struct extent old = extent_of(h, p, old_size);
	struct extent new = extent_of(h, p, size);
	uint32_t keep = new.chunk + new.chunks;

	if (!within_segment(old) || size <= EDDY_CHUNK)
		return false;
	if (new.chunks == old.chunks) {
		eddy_pages_put(keep, new.pages, old.pages - new.pages, p);
		return true;
	}
	if (old.pages != 0)
		eddy_pages_put(old.chunk + old.chunks, 0, old.pages, p);
	if (new.pages != 0) {
		eddy_chunk_open(h, a, keep, new.pages);
		keep++;
	}
	if (keep != old.chunk + old.chunks)
		eddy_chunks_put(keep, old.chunk + old.chunks - keep);
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
		eddy_pages_put(extent_of(h, p, 0).chunk,
		    (unsigned)(eddy_page_of(h, p) % EDDY_CHUNK_PAGES),
		    eddy_tag_pages(tag), p);
	else
		huge_release(h, p, size);
}

bool
eddy_large_resize(struct eddy_heap *h, void *p, uint32_t tag, size_t size)
{
	struct eddy_arena *a = eddy_arena_of_home(h, 0);
	size_t old;

	if (eddy_tag_kind(tag) == EDDY_TAG_RUN)
		return run_resize(h, p, tag, size);
	old = eddy_large_size_of(h, p, tag);
	if (size != old && !(size > old ? huge_grow(h, a, p, old, size)
					: huge_shrink(h, a, p, old, size)))
		return false;
	/* relaxed: the block is the caller's alone. */
	eddy_store_relaxed(
	    &h->chunks[extent_of(h, p, 0).chunk].huge_size, size);
	return true;
}

bool
eddy_large_move(struct eddy_heap *h, void *from, void *to, size_t size)
{
	struct extent e = extent_of(h, from, size);

	if (size < MIN_MOVE || (uintptr_t)from % eddy_os_page_size() != 0 ||
	    (uintptr_t)to % eddy_os_page_size() != 0 ||
	    size % eddy_os_page_size() != 0)
		return false;
	/* relaxed: a budget, not exact. */
	if (eddy_load_relaxed(&h->n_moves) >= MAX_MOVES)
		return false;
	if (eddy_os_move(from, to, size) != 0)
		return false;
	(void)eddy_add_relaxed(&h->n_moves, 1);
	/* The kernel left zero pages behind. */
	if (size <= EDDY_CHUNK) {
		eddy_pages_clean(h, e.chunk,
		    (unsigned)(eddy_page_of(h, from) % EDDY_CHUNK_PAGES),
		    (unsigned)(size / EDDY_PAGE));
		return true;
	}
	eddy_chunks_clean(h, e.chunk, e.chunks);
	if (e.pages != 0)
		eddy_pages_clean(h, e.chunk + e.chunks, 0, e.pages);
	return true;
}
