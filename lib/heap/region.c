/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/heap/region.h"

#include <errno.h>
#include <string.h>

#include "lib/heap/cpu_cache.h"
#include "lib/heap/own.h"
#include "lib/os/advise.h"
#include "lib/os/fatal.h"
#include "lib/os/os.h"

#define CHUNK_MARKS (EDDY_CHUNK / EDDY_REGION_GRAIN)
#define CHUNK_UNITS (EDDY_CHUNK / EDDY_UNIT)
#define LAST_LIFE   255

/* Beside a chunk. */
struct part {
	unsigned char marks[CHUNK_MARKS];
	union eddy_unit units[CHUNK_UNITS];
};

struct ground {
	/* By chunk: its part is accessible.  W, R: any.  O: REG-R1 -> REG-A1.
	 */
	_Atomic uint64_t *ready;
	struct part *parts;
};

/* The reservation: bits by chunk, parts.  W: who creates the first region.
 * R: any.  O: REG-R1 -> REG-A1. */
static _Atomic uintptr_t ground;

struct eddy_region_counts eddy_region_counts;

/* ------------------------------------------------------------------ */
/* What lies beside chunks */

static size_t
ready_size(const struct eddy_heap *h)
{
	return eddy_align_up(
	    (h->n_chunks / 64 + 1) * sizeof(uint64_t), sizeof(struct part));
}

static struct ground
lay(const struct eddy_heap *h, uintptr_t base)
{
	return (struct ground){
	    .ready = (_Atomic uint64_t *)base,
	    .parts = (struct part *)(base + ready_size(h)),
	};
}

/* Reserved now if it is the first region; false: there is no room. */
static bool
find_ground(const struct eddy_heap *h, struct ground *ret)
{
	const size_t size =
	    ready_size(h) + (size_t)h->n_chunks * sizeof(struct part);
	/* REG-A1: pairs with REG-R1. */
	uintptr_t base = eddy_load_acquire(&ground);
	char *fresh;

	if (eddy_unlikely(base == 0)) {
		fresh = eddy_os_reserve(size);
		if (fresh == NULL)
			return false;
		if (eddy_os_commit(fresh, ready_size(h)) != 0) {
			eddy_os_unmap(fresh, size);
			return false;
		}
		/* REG-R1: the addresses.  REG-A1: or another's. */
		if (eddy_cas_acq_rel(&ground, &base, (uintptr_t)fresh)) {
			base = (uintptr_t)fresh;
			if (h->opts.names)
				eddy_os_name(fresh, size, "eddy: metadata");
		} else {
			eddy_os_unmap(fresh, size);
		}
	}
	*ret = lay(h, base);
	return true;
}

/* There is one: a page has such a tag. */
static struct part *
part_of(const struct eddy_heap *h, const void *place)
{
	/* REG-A1: pairs with REG-R1. */
	struct ground g = lay(h, eddy_load_acquire(&ground));

	return &g.parts[eddy_page_of(h, place) / EDDY_CHUNK_PAGES];
}

static bool
is_ready(const struct ground *g, size_t chunk)
{
	/* REG-A1: pairs with REG-R1. */
	return (eddy_load_acquire(&g->ready[chunk / 64]) >> chunk % 64 & 1) !=
	       0;
}

/* Makes a chunk's part accessible, if it is not. */
static bool
part_ready(const struct ground *g, size_t chunk)
{
	const size_t page = eddy_os_page_size();
	const uint64_t bit = (uint64_t)1 << chunk % 64;
	uintptr_t from = (uintptr_t)&g->parts[chunk];
	uintptr_t to = from + sizeof(struct part);

	if (is_ready(g, chunk))
		return true;
	from = eddy_align_down(from, page);
	to = eddy_align_up(to, page);
	if (eddy_os_commit((void *)from, to - from) != 0)
		return false;
	/* REG-R1: it is accessible. */
	if ((eddy_or_release(&g->ready[chunk / 64], bit) & bit) == 0)
		/* relaxed: a count. */
		(void)eddy_add_relaxed(&eddy_region_counts.parts, 1);
	return true;
}

void
eddy_region_drop(struct eddy_heap *h, const void *place, size_t size)
{
	const size_t page = eddy_os_page_size();
	const size_t end = (uintptr_t)place - h->base + size;
	/* REG-A1: pairs with REG-R1. */
	const uintptr_t base = eddy_load_acquire(&ground);
	const struct ground g = lay(h, base);
	size_t next;

	for (size_t at = end - size; base != 0 && at < end; at = next) {
		const size_t chunk = at / EDDY_CHUNK;
		unsigned char *marks = g.parts[chunk].marks;
		uintptr_t from;
		uintptr_t to;

		next = (chunk + 1) * EDDY_CHUNK;
		if (next > end)
			next = end;
		if (!is_ready(&g, chunk))
			continue;
		from = (uintptr_t)&marks[at % EDDY_CHUNK / EDDY_REGION_GRAIN];
		to = from + (next - at) / EDDY_REGION_GRAIN;
		from = eddy_align_up(from, page);
		to = eddy_align_down(to, page);
		/* What is refused costs memory, no more. */
		if (from < to && eddy_os_discard((void *)from, to - from) != 0)
			return;
	}
}

union eddy_unit *
eddy_region_unit(struct eddy_heap *h, const void *place, uint32_t tag)
{
	unsigned n = eddy_tag_pages(tag);
	unsigned page = (unsigned)(eddy_page_of(h, place) % EDDY_CHUNK_PAGES);

	if ((n & EDDY_REGION_HUGE) != 0)
		n = 0;
	/* n is at most page, for a stretch of pages lies in one chunk. */
	return &part_of(h, place)
		    ->units[(page - n) / (EDDY_UNIT / EDDY_PAGE) % CHUNK_UNITS];
}

/* ------------------------------------------------------------------ */
/* Stretches */

/* So many bytes of it are there from now on; modulo 2^64. */
static void
count(const struct eddy_stretch *s, uint64_t bytes)
{
	/* relaxed, both: counts. */
	(void)eddy_add_relaxed(&eddy_region_counts.bytes, bytes);
	if (!s->alone)
		(void)eddy_add_relaxed(&eddy_region_counts.marked, bytes);
}

static void
set_tags(struct eddy_heap *h, const struct eddy_stretch *s)
{
	const void *place = eddy_place_of(h, s->base);
	_Atomic uint32_t *tags = &h->tags[eddy_page_of(h, place)];
	size_t n = s->alone ? 1 : s->size / EDDY_PAGE;

	if (eddy_tag_kind(s->tag) == EDDY_TAG_HUGE) {
		/* relaxed: as of any block. */
		eddy_store_relaxed(
		    tags, eddy_tag(EDDY_TAG_REGION, 0, 0, EDDY_REGION_HUGE));
		return;
	}
	for (size_t i = 0; i < n; i++)
		/* relaxed: as of any block. */
		eddy_store_relaxed(
		    &tags[i], eddy_tag(EDDY_TAG_REGION, 0, 0, (unsigned)i));
}

union eddy_unit *
eddy_region_adopt(struct eddy_heap *h, char *p, size_t size, bool alone)
{
	const void *place = eddy_place_of(h, p);
	size_t page = eddy_page_of(h, place);
	struct ground g;
	union eddy_unit *u;
	struct eddy_stretch *s;

	if (!find_ground(h, &g) || !part_ready(&g, page / EDDY_CHUNK_PAGES))
		return NULL;
	u = &g.parts[page / EDDY_CHUNK_PAGES]
		 .units[page % EDDY_CHUNK_PAGES / (EDDY_UNIT / EDDY_PAGE)];
	s = &u->stretch;
	s->next = NULL;
	s->base = p;
	s->size = size;
	/* relaxed, all: the block is the caller's alone. */
	s->tag = eddy_load_relaxed(&h->tags[page]);
	s->alone = alone;
	s->life = 1;
	eddy_store_relaxed(&s->core, NULL);
	eddy_store_relaxed(&s->valid, 0);
	set_tags(h, s);
	count(s, size);
	return u;
}

void
eddy_region_let_go(struct eddy_heap *h, struct eddy_stretch *s)
{
	const void *place = eddy_place_of(h, s->base);
	_Atomic uint32_t *tags = &h->tags[eddy_page_of(h, place)];
	size_t n = s->alone ? 1 : s->size / EDDY_PAGE;

	/* relaxed, both: the block is the caller's alone; RUN-R2 orders. */
	for (size_t i = 1; i < n; i++)
		eddy_store_relaxed(&tags[i], 0);
	eddy_store_relaxed(tags, s->tag);
	count(s, (uint64_t)0 - s->size);
}

void
eddy_region_retake(struct eddy_heap *h, struct eddy_stretch *s, size_t size)
{
	const void *place = eddy_place_of(h, s->base);

	/* relaxed: the block is the caller's alone. */
	s->tag = eddy_load_relaxed(&h->tags[eddy_page_of(h, place)]);
	s->size = size;
	set_tags(h, s);
	count(s, size);
}

/* ------------------------------------------------------------------ */
/* Marks */

static unsigned char *
mark_of(const struct eddy_heap *h, const void *place)
{
	return &part_of(h, place)->marks[((uintptr_t)place - h->base) %
					 EDDY_CHUNK / EDDY_REGION_GRAIN];
}

void
eddy_region_renew(struct eddy_stretch *s)
{
	if (s->life < LAST_LIFE) {
		s->life++;
		return;
	}
	/* relaxed: its objects have ended.  First: who jumps out in between
	 * leaves a stretch without valid marks. */
	eddy_store_relaxed(&s->valid, 0);
	eddy_handler_fence();
	s->life = 1;
}

void
eddy_region_clear(struct eddy_heap *h, struct eddy_stretch *s, size_t size)
{
	/* relaxed: the caller's own. */
	size_t valid = eddy_load_relaxed(&s->valid);

	if (size <= valid)
		return;
	memset(
	    mark_of(h, eddy_place_of(h, s->base)) + valid / EDDY_REGION_GRAIN,
	    0, (size - valid) / EDDY_REGION_GRAIN);
	/* relaxed: who has an object was given it after. */
	eddy_store_relaxed(&s->valid, size);
}

void
eddy_region_look(struct eddy_heap *h, struct eddy_region_core *c)
{
	struct eddy_stretch *s = c->cur;

	c->open.marks = (uintptr_t)mark_of(h, eddy_place_of(h, s->base)) -
			(uintptr_t)s->base / EDDY_REGION_GRAIN;
	c->open.mark = s->life;
	c->end = s->base + s->size - EDDY_REGION_GRAIN;
}

char *
eddy_region_reached(const struct eddy_region_core *c)
{
	/* relaxed: the caller's own. */
	return c->cur->base + eddy_load_relaxed(&c->cur->valid) -
	       EDDY_REGION_GRAIN;
}

size_t
eddy_region_size_if(struct eddy_heap *h, const void *place, uint32_t tag)
{
	union eddy_unit *u = eddy_region_unit(h, place, tag);
	const struct eddy_stretch *s = &u->stretch;
	const char *base = eddy_place_of(h, s->base);
	size_t offset = (size_t)((const char *)place - base);
	/* relaxed: what was given with the object is there. */
	size_t valid = eddy_load_relaxed(&s->valid);
	const unsigned char *mark;
	const unsigned char *next;

	if (s->alone)
		return offset == 0 ? valid : 0;
	if (offset % EDDY_REGION_GRAIN != 0 || offset >= valid ||
	    valid > EDDY_CHUNK)
		return 0;
	mark = mark_of(h, place);
	if (*mark != s->life)
		return 0;
	next =
	    memchr(mark + 1, s->life, (valid - offset) / EDDY_REGION_GRAIN - 1);
	return next != NULL ? (size_t)(next - mark) * EDDY_REGION_GRAIN : 0;
}

size_t
eddy_region_size_of(struct eddy_heap *h, const void *place, uint32_t tag)
{
	union eddy_unit *u = eddy_region_unit(h, place, tag);
	/* relaxed, both: constant while there are objects. */
	struct eddy_region_core *c = eddy_load_relaxed(&u->stretch.core);
	size_t size;

	if (c != NULL && eddy_load_relaxed(&c->state) != EDDY_REGION_LIVE)
		eddy_fatal(
		    "object of a destroyed region", eddy_address_of(h, place));
	size = eddy_region_size_if(h, place, tag);
	if (size == 0)
		eddy_fatal(
		    "no object of its region", eddy_address_of(h, place));
	return size;
}

/* ------------------------------------------------------------------ */
/* Sections */

bool
eddy_region_is_mine(const struct eddy_region_core *c)
{
	/* relaxed: of another thread it is something else, whatever that is. */
	if (eddy_load_relaxed(&c->inside) != (uintptr_t)&eddy_own)
		return false;
	/* One that was killed, or stayed with the parent, may have had its
	 * words here. */
	for (struct eddy_scope *s = eddy_own.scope; s != NULL; s = s->outer)
		if (s->core == c)
			return true;
	return false;
}

/* A row for a scope of the heap. */
static unsigned
scope_row(void)
{
	return eddy_size_rows[(sizeof(struct eddy_scope) + 7) / 8];
}

int
eddy_region_push(struct eddy_heap *h, struct eddy_region_core *c)
{
	struct eddy_scope *scope = &c->scope;
	uintptr_t nobody = 0;

	if (eddy_region_is_mine(c)) {
		scope = eddy_cache_alloc(h, scope_row());
		if (scope == NULL)
			return -ENOMEM;
	} else {
		/* REG-A2: pairs with REG-R2. */
		if (!eddy_cas_acquire(
			&c->inside, &nobody, (uintptr_t)&eddy_own))
			return -EBUSY;
		eddy_region_settle(h, c);
		if (c->open.limit != NULL)
			c->top = c->open.top;
		c->open.top = NULL;
		c->open.limit = NULL;
	}
	c->entries++;
	scope->core = c;
	scope->outer = eddy_own.scope;
	/* A handler finds all of it, or nothing. */
	eddy_handler_fence();
	eddy_own.scope = scope;
	eddy_own_gate();
	return 0;
}

void
eddy_region_settle(struct eddy_heap *h, struct eddy_region_core *c)
{
	const struct eddy_stretch *s = c->cur;

	/* relaxed: the caller's own. */
	if (eddy_likely(!eddy_load_relaxed(&c->busy)))
		return;
	eddy_region_look(h, c);
	c->limit = eddy_region_reached(c);
	if (c->top < s->base || c->top > c->limit) {
		/* It was on its way to another: nothing is left of this. */
		c->top = c->end;
		c->limit = c->end;
	} else {
		*eddy_region_mark(c, c->top) = c->open.mark;
	}
	/* relaxed: as above. */
	eddy_store_relaxed(&c->busy, false);
}

void
eddy_region_pop(struct eddy_heap *h)
{
	struct eddy_scope *scope = eddy_own.scope;
	struct eddy_region_core *c = scope->core;

	eddy_own.scope = scope->outer;
	eddy_handler_fence();
	if (scope != &c->scope)
		eddy_cache_free(h, scope, eddy_tag_find(h, scope));
	if (--c->entries == 0) {
		eddy_region_settle(h, c);
		if (!c->watched) {
			c->open.top = c->top;
			c->open.limit = c->limit;
		}
		/* REG-R2: all that was done inside. */
		eddy_store_release(&c->inside, 0);
	}
	eddy_own_gate();
}

struct eddy_scope *
eddy_region_step_out(void)
{
	struct eddy_scope *scope = eddy_own.scope;

	if (eddy_unlikely(scope != NULL))
		eddy_region_step_in(NULL);
	return scope;
}

void
eddy_region_step_in(struct eddy_scope *scope)
{
	if (eddy_own.scope == scope)
		return;
	eddy_own.scope = scope;
	eddy_own_gate();
}

void
eddy_region_end_thread(void)
{
	while (eddy_own.scope != NULL)
		eddy_region_pop(eddy_heap_peek());
}
