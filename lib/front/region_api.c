/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * region_api.c - regions for programs, and malloc's family inside a section.
 *
 * Layer     front (L6).
 * Progress  wait-free but for what a region grows by, which is a block of the
 *           heap.
 */
#include "eddy/region.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ctl/thread_end.h"
#include "lib/front/front.h"
#include "lib/heap/arena.h"
#include "lib/heap/backing.h"
#include "lib/heap/hooks.h"
#include "lib/heap/region.h"
#include "lib/heap/reset.h"
#include "lib/os/fatal.h"
#include "lib/os/os.h"
#include "lib/prof/sample.h"

static struct eddy_region_core *
core_of(const struct eddy_region *r)
{
	return (struct eddy_region_core *)(uintptr_t)r;
}

static bool
in_section(const struct eddy_region_core *c)
{
	/* relaxed: who is inside knows it; others ask eddy_region_is_mine. */
	return eddy_load_relaxed(&c->inside) != 0;
}

/* ------------------------------------------------------------------ */
/* Whose turn it is */

/* Whether it has not been destroyed; where that is known for sure, and is so,
 * the process ends. */
static bool
is_live(const struct eddy_region_core *c)
{
	struct eddy_heap *h = eddy_heap_peek();

	/* relaxed: as the program hands the region from thread to thread. */
	if (eddy_likely(eddy_load_relaxed(&c->state) == EDDY_REGION_LIVE))
		return true;
	if (h != NULL && h->opts.check)
		eddy_fatal("destroyed region", c);
	return false;
}

/* The caller is about to change the region.  Returns 0 or an errno value. */
static int
begin(struct eddy_heap *h, struct eddy_region_core *c)
{
	if (!is_live(c))
		return EINVAL;
	if (!in_section(c)) {
		eddy_region_settle(h, c);
		if (c->open.limit != NULL)
			c->top = c->open.top;
		c->open.top = NULL;
		c->open.limit = NULL;
	} else if (!eddy_region_is_mine(c) ||
		   /* relaxed: the thread's own. */
		   eddy_load_relaxed(&c->busy)) {
		return EBUSY;
	}
	/* relaxed: handlers of this thread alone look. */
	eddy_store_relaxed(&c->busy, true);
	eddy_handler_fence();
	return 0;
}

static void
end(struct eddy_region_core *c)
{
	if (!in_section(c) && !c->watched) {
		c->open.top = c->top;
		c->open.limit = c->limit;
	}
	eddy_handler_fence();
	/* relaxed: as above. */
	eddy_store_relaxed(&c->busy, false);
}

/* ------------------------------------------------------------------ */
/* Memory */

static void
count_in_arena(struct eddy_arena *a, uint32_t n)
{
	/* relaxed: a count. */
	if (a != NULL)
		(void)eddy_add_relaxed(&a->n_regions, n);
}

/* The program's arena that a stretch is of where the region has none: that
 * which a thread was bound to.  NULL: none. */
static struct eddy_arena *
bound_arena(struct eddy_heap *h, const struct eddy_region_core *c,
    const struct eddy_stretch *s)
{
	struct eddy_arena *a =
	    c->arena == NULL ? eddy_arena_of(h, s->base) : NULL;

	return a != NULL && a->home == EDDY_HOME_NONE ? a : NULL;
}

/* A stretch of so many bytes; NULL: no memory. */
static struct eddy_stretch *
obtain(struct eddy_heap *h, struct eddy_region_core *c, size_t size,
    size_t align, bool alone, bool zero)
{
	char *p = c->arena != NULL ? eddy_alloc_in(c->arena, size, align, zero)
				   : eddy_alloc(size, align, zero);
	union eddy_unit *u;

	if (p == NULL)
		return NULL;
	size = eddy_size_of(p);
	u = eddy_region_adopt(h, p, size, alone);
	if (u == NULL) {
		eddy_free(p);
		return NULL;
	}
	/* relaxed: its objects are handed out after. */
	eddy_store_relaxed(&u->stretch.core, c);
	count_in_arena(bound_arena(h, c, &u->stretch), 1);
	c->bytes += size;
	return &u->stretch;
}

static void
junk(struct eddy_heap *h, struct eddy_stretch *s)
{
	if ((h->opts.junk == EDDY_JUNK_TRUE ||
		h->opts.junk == EDDY_JUNK_FREE) &&
	    eddy_backing_has(h, s->base))
		/* relaxed: the caller's own. */
		memset(s->base, EDDY_FILL_FREE, eddy_load_relaxed(&s->valid));
}

static void
give_back(
    struct eddy_heap *h, struct eddy_region_core *c, struct eddy_stretch *s)
{
	struct eddy_arena *bound = bound_arena(h, c, s);
	char *p = s->base;

	c->bytes -= s->size;
	junk(h, s);
	eddy_region_let_go(h, s);
	eddy_free(p);
	count_in_arena(bound, (uint32_t)-1);
}

/* The next objects come from a stretch, all of it, whose life has no objects
 * yet. */
static void
use(struct eddy_heap *h, struct eddy_region_core *c, struct eddy_stretch *s)
{
	/* What a longjmp out of here leaves is what eddy_region_settle takes
	 * for a stretch that is used up, or where objects go on. */
	c->cur = s;
	eddy_region_clear(h, s, EDDY_UNIT);
	eddy_region_look(h, c);
	c->limit = eddy_region_reached(c);
	eddy_handler_fence();
	c->top = s->base;
	eddy_handler_fence();
	*eddy_region_mark(c, c->top) = c->open.mark;
}

/* A stretch behind the current one that was kept by a reset and has room. */
static struct eddy_stretch *
kept(struct eddy_region_core *c, size_t size)
{
	struct eddy_stretch *before = c->cur;

	while (before->next != NULL && before->next->size < size)
		before = before->next;
	if (before->next != NULL && before != c->cur) {
		struct eddy_stretch *s = before->next;

		before->next = s->next;
		s->next = c->cur->next;
		c->cur->next = s;
	}
	return before->next != NULL ? c->cur->next : NULL;
}

static size_t
stretch_for(size_t size)
{
	return size <= EDDY_UNIT ? EDDY_UNIT : (size_t)2 << eddy_log2(size - 1);
}

/* Goes on to a stretch with room for so many bytes. */
static bool
go_on(struct eddy_heap *h, struct eddy_region_core *c, size_t bytes)
{
	size_t least = stretch_for(bytes + EDDY_REGION_GRAIN);
	size_t size = least > c->grow ? least : c->grow;
	struct eddy_stretch *s = kept(c, least);

	if (s == NULL) {
		s = obtain(h, c, size, EDDY_UNIT, false, false);
		if (s == NULL && size > least)
			s = obtain(h, c, least, EDDY_UNIT, false, false);
		if (s == NULL)
			return false;
		s->next = c->cur->next;
		c->cur->next = s;
		c->grow = 2 * size < EDDY_REGION_STRETCH ? 2 * size
							 : EDDY_REGION_STRETCH;
	}
	use(h, c, s);
	return true;
}

/* Marks may be set up to an address in the stretch, and there. */
static void
reach(struct eddy_heap *h, struct eddy_region_core *c, const char *p)
{
	struct eddy_stretch *s = c->cur;

	if (p <= c->limit)
		return;
	eddy_region_clear(
	    h, s, eddy_align_up((size_t)(p - s->base) + 1, EDDY_UNIT));
	c->limit = eddy_region_reached(c);
}

static void *
take_alone(struct eddy_heap *h, struct eddy_region_core *c, size_t size,
    size_t align, bool zero)
{
	struct eddy_stretch *s = obtain(
	    h, c, size, align > EDDY_UNIT ? align : EDDY_UNIT, true, zero);

	if (s == NULL)
		return NULL;
	/* relaxed: the object is handed out after. */
	eddy_store_relaxed(&s->valid, s->size);
	s->next = c->alone;
	c->alone = s;
	return s->base;
}

static void *
take(struct eddy_heap *h, struct eddy_region_core *c, size_t size, size_t align,
    bool zero)
{
	size_t need;
	char *p;

	if (size > EDDY_SIZE_LIMIT)
		return NULL;
	need = eddy_align_up(size != 0 ? size : 1, EDDY_REGION_GRAIN);
	if (align < EDDY_REGION_GRAIN)
		align = EDDY_REGION_GRAIN;
	if (need > EDDY_REGION_MAX || align > EDDY_UNIT) {
		p = take_alone(h, c, need, align, zero);
	} else {
		for (;;) {
			char *top = c->top;

			p = (char *)eddy_align_up((uintptr_t)top, align);
			if (p <= c->end && need <= (size_t)(c->end - p)) {
				reach(h, c, p + need);
				/* First top: what a longjmp leaves is lost. */
				c->top = p + need;
				eddy_handler_fence();
				if (p != top)
					*eddy_region_mark(c, p) = c->open.mark;
				*eddy_region_mark(c, p + need) = c->open.mark;
				break;
			}
			if (!go_on(h, c, need + align))
				return NULL;
		}
		if (zero)
			memset(p, 0, need);
	}
	if (p != NULL && !zero && c->watched)
		eddy_fill_alloc(h, p, need);
	return p;
}

/* ------------------------------------------------------------------ */
/* A region */

/* An arena of the program's; NULL: no such. */
static struct eddy_arena *
find_arena(struct eddy_heap *h, unsigned number)
{
	struct eddy_arena *a;

	if (number <= h->n_homes || number > EDDY_MAX_ARENAS)
		return NULL;
	a = eddy_arena_open(h, number);
	/* Those of samples and of hints are as homes'. */
	return a != NULL && a->home == EDDY_HOME_NONE ? a : NULL;
}

static int
read_options(struct eddy_heap *h, const struct eddy_region_options *o,
    struct eddy_region_core *c)
{
	if (o->size < sizeof(*o))
		return EINVAL;
	if (!eddy_is_plain(o, sizeof(*o), o->size))
		return E2BIG;
	c->arena = o->arena != 0 ? find_arena(h, o->arena) : NULL;
	if (o->arena != 0 && c->arena == NULL)
		return EINVAL;
	c->keep = o->keep;
	c->grow = o->first >= EDDY_REGION_STRETCH ? EDDY_REGION_STRETCH
						  : stretch_for(o->first);
	return 0;
}

EDDY_EXPORT int
eddy_region_create(
    const struct eddy_region_options *options, struct eddy_region **region)
{
	static const struct eddy_region_options plain = EDDY_REGION_OPTIONS;
	struct eddy_heap *h = eddy_heap();
	struct eddy_region_core plan = {0};
	struct eddy_region_core *c;
	struct eddy_stretch *s;
	int err;

	if (h == NULL)
		return ENOMEM;
	err = read_options(h, options != NULL ? options : &plain, &plan);
	if (err != 0)
		return err;
	/* From now on nobody resets it. */
	count_in_arena(plan.arena, 1);
	s = obtain(h, &plan, plan.grow, EDDY_UNIT, false, false);
	if (s == NULL) {
		count_in_arena(plan.arena, (uint32_t)-1);
		return ENOMEM;
	}
	c = &((union eddy_unit *)(void *)s)->core;
	memset(c, 0, sizeof(*c));
	c->arena = plan.arena;
	c->keep = plan.keep;
	c->bytes = plan.bytes;
	c->grow = 2 * plan.grow < EDDY_REGION_STRETCH ? 2 * plan.grow
						      : EDDY_REGION_STRETCH;
	c->watched = !h->cached;
	c->first = s;
	/* relaxed, all: handed to the program by program order. */
	eddy_store_relaxed(&s->core, c);
	use(h, c, s);
	eddy_store_relaxed(&c->state, EDDY_REGION_LIVE);
	end(c);
	(void)eddy_add_relaxed(&eddy_region_counts.live, 1);
	(void)eddy_add_relaxed(&eddy_region_counts.created, 1);
	*region = &c->open;
	return 0;
}

static void
give_back_alone(struct eddy_heap *h, struct eddy_region_core *c)
{
	while (c->alone != NULL) {
		struct eddy_stretch *s = c->alone;

		c->alone = s->next;
		give_back(h, c, s);
	}
}

/* Of stretches that are not alone, what is more than the region keeps. */
static void
give_back_rest(struct eddy_heap *h, struct eddy_region_core *c)
{
	struct eddy_stretch *last = c->first;
	size_t size = last->size;

	while (last->next != NULL) {
		struct eddy_stretch *s = last->next;

		if (size + s->size > c->keep) {
			last->next = s->next;
			give_back(h, c, s);
		} else {
			size += s->size;
			last = s;
		}
	}
}

EDDY_EXPORT int
eddy_region_reset(struct eddy_region *region)
{
	struct eddy_heap *h = eddy_heap_peek();
	struct eddy_region_core *c = core_of(region);
	int err = begin(h, c);

	if (err != 0)
		return err;
	/* In this order: who jumps out leaves a current stretch that is kept,
	 * and behind it none whose life has objects. */
	for (struct eddy_stretch *s = c->first; s != NULL; s = s->next) {
		junk(h, s);
		eddy_region_renew(s);
	}
	use(h, c, c->first);
	give_back_alone(h, c);
	give_back_rest(h, c);
	/* relaxed: a count. */
	(void)eddy_add_relaxed(&eddy_region_counts.resets, 1);
	end(c);
	return 0;
}

/*
 * Memory that is never used again: the tags say what it was, and who touches it
 * is told by the kernel, or finds junk.
 */
static void
put_away(
    struct eddy_heap *h, struct eddy_region_core *c, struct eddy_stretch *s)
{
	struct eddy_arena *a = eddy_arena_of(h, s->base);
	size_t size = eddy_align_down(s->size, eddy_os_page_size());

	count_in_arena(bound_arena(h, c, s), (uint32_t)-1);
	if (!eddy_backing_has(h, s->base))
		return;
	if (a == NULL || a->backing.kind != EDDY_PRIVATE || eddy_hooked(a) ||
	    (uintptr_t)s->base % eddy_os_page_size() != 0 ||
	    eddy_os_renew(s->base, size, false) != 0)
		/* relaxed: the caller's own. */
		memset(s->base, EDDY_FILL_FREE, eddy_load_relaxed(&s->valid));
	eddy_region_drop(h, eddy_place_of(h, s->base), s->size);
}

static void
end_checked(struct eddy_heap *h, struct eddy_region_core *c)
{
	for (struct eddy_stretch *s = c->alone; s != NULL; s = s->next)
		put_away(h, c, s);
	for (struct eddy_stretch *s = c->first; s != NULL; s = s->next)
		put_away(h, c, s);
}

static void
end_all(struct eddy_heap *h, struct eddy_region_core *c)
{
	struct eddy_stretch *first = c->first;
	struct eddy_stretch *s = first->next;

	give_back_alone(h, c);
	while (s != NULL) {
		struct eddy_stretch *next = s->next;

		give_back(h, c, s);
		s = next;
	}
	/* With this one the region is anybody's. */
	give_back(h, c, first);
}

EDDY_EXPORT int
eddy_region_destroy(struct eddy_region *region)
{
	struct eddy_heap *h = eddy_heap_peek();
	struct eddy_region_core *c = core_of(region);
	struct eddy_arena *a;

	if (region == NULL)
		return 0;
	if (!is_live(c))
		return EINVAL;
	if (in_section(c))
		return EBUSY;
	a = c->arena;
	/* relaxed, all: nobody else uses it. */
	eddy_store_relaxed(&c->state, EDDY_REGION_ENDED);
	c->open.top = NULL;
	c->open.limit = NULL;
	(void)eddy_add_relaxed(&eddy_region_counts.live, (uint64_t)-1);
	if (h->opts.check)
		end_checked(h, c);
	else
		end_all(h, c);
	count_in_arena(a, (uint32_t)-1);
	return 0;
}

EDDY_EXPORT size_t
eddy_region_bytes(const struct eddy_region *region)
{
	const struct eddy_region_core *c = core_of(region);

	return is_live(c) ? c->bytes : 0;
}

/* ------------------------------------------------------------------ */
/* Objects */

static void *
allocate(struct eddy_region *region, size_t size, size_t align)
{
	struct eddy_heap *h = eddy_heap_peek();
	struct eddy_region_core *c = core_of(region);
	int err = begin(h, c);
	void *p;

	if (err != 0) {
		errno = err;
		return NULL;
	}
	p = take(h, c, size, align, h->opts.zero);
	end(c);
	return eddy_likely(p != NULL) ? p : eddy_no_memory();
}

EDDY_EXPORT void *
eddy_region_alloc_slow(struct eddy_region *region, size_t size)
{
	return allocate(region, size, 1);
}

EDDY_EXPORT void *
eddy_region_alloc_aligned(
    struct eddy_region *region, size_t alignment, size_t size)
{
	if (!eddy_is_pow2(alignment)) {
		errno = EINVAL;
		return NULL;
	}
	return allocate(region, size, alignment);
}

/* The last object becomes another size where it is. */
static bool
resize_top(struct eddy_heap *h, struct eddy_region_core *c, char *p, size_t old,
    size_t need)
{
	struct eddy_stretch *s = c->cur;

	if (p < s->base || p >= c->end || p + old != c->top ||
	    need > (size_t)(c->end - p))
		return false;
	reach(h, c, p + need);
	*eddy_region_mark(c, c->top) = 0;
	eddy_handler_fence();
	c->top = p + need;
	eddy_handler_fence();
	*eddy_region_mark(c, c->top) = c->open.mark;
	return true;
}

/* An object that has its memory to itself. */
static bool
resize_alone(struct eddy_heap *h, struct eddy_region_core *c,
    struct eddy_stretch *s, size_t size, bool zero)
{
	size_t old = s->size;
	bool done;

	if (size <= EDDY_REGION_MAX)
		return false;
	eddy_region_let_go(h, s);
	done = eddy_resize(h, s->base, old, size, zero);
	eddy_region_retake(h, s, done ? size : old);
	/* relaxed: the object is the caller's. */
	eddy_store_relaxed(&s->valid, s->size);
	c->bytes = c->bytes - old + s->size;
	return done;
}

/* What an object that has moved had to itself is of no use to anybody. */
static void
drop_alone(
    struct eddy_heap *h, struct eddy_region_core *c, struct eddy_stretch *s)
{
	struct eddy_stretch *before = c->alone;

	if (before == s) {
		c->alone = s->next;
	} else {
		while (before->next != s)
			before = before->next;
		before->next = s->next;
	}
	give_back(h, c, s);
}

static bool
resize(struct eddy_heap *h, struct eddy_region_core *c, struct eddy_stretch *s,
    char *p, size_t old, size_t size, bool zero)
{
	size_t need = eddy_align_up(size != 0 ? size : 1, EDDY_REGION_GRAIN);
	size_t real;

	if (s->alone) {
		real =
		    eddy_large_size(size, !h->opts.disable_large_size_classes);
		return real == old ||
		       (real != 0 && resize_alone(h, c, s, real, zero));
	}
	if (need == old)
		return true;
	if (need > EDDY_REGION_MAX || !resize_top(h, c, p, old, need))
		return need < old;
	if (zero && need > old)
		memset(p + old, 0, need - old);
	else if (need > old && c->watched)
		eddy_fill_alloc(h, p + old, need - old);
	return true;
}

static struct eddy_stretch *
stretch_of(struct eddy_heap *h, const void *p)
{
	const void *place;
	uint32_t tag = eddy_tag_seek(h, p, &place);

	return &eddy_region_unit(h, place, tag)->stretch;
}

void *
eddy_region_realloc(
    struct eddy_heap *h, void *p, size_t size, size_t align, bool zero)
{
	size_t old = eddy_size_of(p);
	struct eddy_stretch *s = stretch_of(h, p);
	/* relaxed: constant while there are objects. */
	struct eddy_region_core *c = eddy_load_relaxed(&s->core);
	bool ours;
	char *q;

	if (size > EDDY_SIZE_LIMIT)
		return NULL;
	ours = begin(h, c) == 0;
	if (ours && (uintptr_t)p % align == 0 &&
	    resize(h, c, s, p, old, size, zero)) {
		end(c);
		return p;
	}
	/* A block of the heap where the region is another's to change. */
	q = ours ? take(h, c, size, align, false)
		 : eddy_alloc(size, align, false);
	if (q != NULL) {
		size_t real = eddy_size_of(q);

		memcpy(q, p, old < size ? old : size);
		if (zero && real > old)
			memset(q + old, 0, real - old);
		if (ours && s->alone)
			drop_alone(h, c, s);
	}
	if (ours)
		end(c);
	return q;
}

size_t
eddy_region_xalloc(struct eddy_heap *h, void *p, size_t size, size_t extra,
    size_t align, bool zero)
{
	size_t old = eddy_size_of(p);
	struct eddy_stretch *s = stretch_of(h, p);
	/* relaxed: as above. */
	struct eddy_region_core *c = eddy_load_relaxed(&s->core);

	if (size > EDDY_SIZE_LIMIT || (uintptr_t)p % align != 0 ||
	    begin(h, c) != 0)
		return old;
	if (extra > EDDY_SIZE_LIMIT - size)
		extra = EDDY_SIZE_LIMIT - size;
	if (!resize(h, c, s, p, old, size + extra, zero))
		(void)resize(h, c, s, p, old, size, zero);
	end(c);
	return eddy_size_of(p);
}

void
eddy_region_check(struct eddy_heap *h, const void *place, uint32_t tag)
{
	(void)eddy_region_size_of(h, place, tag);
}

/* ------------------------------------------------------------------ */
/* Sections */

EDDY_EXPORT int
eddy_region_enter(struct eddy_region *region)
{
	struct eddy_heap *h = eddy_heap_peek();
	struct eddy_region_core *c = core_of(region);

	if (!is_live(c))
		return EINVAL;
	eddy_ctl_watch_thread_end();
	return -eddy_region_push(h, c);
}

EDDY_EXPORT int
eddy_region_leave(struct eddy_region *region)
{
	struct eddy_heap *h = eddy_heap_peek();
	struct eddy_region_core *c = core_of(region);
	unsigned entries;

	if (!is_live(c) || !eddy_region_is_mine(c))
		return EINVAL;
	entries = c->entries;
	while (c->entries == entries)
		eddy_region_pop(h);
	return 0;
}

/* malloc's family where the thread is in a section. */
void *
eddy_region_section(size_t size, size_t align, bool zero)
{
	struct eddy_heap *h = eddy_heap_peek();
	struct eddy_region_core *c = eddy_own.scope->core;
	void *p;

	/* relaxed: the thread's own.  A handler, in the midst of another's: a
	 * block of the heap. */
	if (eddy_unlikely(eddy_load_relaxed(&c->busy)))
		return eddy_alloc(size, align, zero);
	eddy_store_relaxed(&c->busy, true);
	eddy_handler_fence();
	p = take(h, c, size, align, zero || h->opts.zero);
	eddy_handler_fence();
	/* relaxed: as above. */
	eddy_store_relaxed(&c->busy, false);
	return p;
}

/*
 * The next object of a section by two additions, as eddy_region_alloc; NULL: it
 * takes more than that.
 */
static inline void *
bump(struct eddy_region_core *c, size_t size)
{
	const size_t need =
	    (size + EDDY_REGION_GRAIN - 1) & ~(size_t)(EDDY_REGION_GRAIN - 1);
	char *p;

	/* relaxed: the thread's own. */
	if (eddy_unlikely(eddy_load_relaxed(&c->busy) || c->watched))
		return NULL;
	/* relaxed: as above. */
	eddy_store_relaxed(&c->busy, true);
	eddy_handler_fence();
	p = c->top;
	if (eddy_unlikely(need - 1 >= (size_t)(c->limit - p))) {
		/* relaxed: as above. */
		eddy_store_relaxed(&c->busy, false);
		return NULL;
	}
	c->top = p + need;
	eddy_handler_fence();
	*eddy_region_mark(c, p + need) = c->open.mark;
	eddy_handler_fence();
	/* relaxed: as above. */
	eddy_store_relaxed(&c->busy, false);
	return p;
}

/*
 * A request that the hit path sent here.  What it counts there it has counted
 * for a sample: but the block is none of the heap's.
 */
static EDDY_NOINLINE void *
region_new_slow(size_t size)
{
	if (EDDY_HIT_COUNTS && eddy_prof_counts() && size <= EDDY_ROW_MAX)
		eddy_prof_left +=
		    (int64_t)eddy_real_size(eddy_heap_peek(), size, 1);
	return eddy_region_section(size, 1, false);
}

static EDDY_NOINLINE void *
region_malloc_slow(size_t size)
{
	void *p = region_new_slow(size);

	return eddy_likely(p != NULL) ? p : eddy_no_memory();
}

void *
eddy_region_new(size_t size)
{
	void *p = EDDY_HIT_COUNTS && eddy_prof_counts()
		      ? NULL
		      : bump(eddy_own.scope->core, size);

	return eddy_likely(p != NULL) ? p : region_new_slow(size);
}

/* Here, so that inside a section no jump is taken and no register saved. */
EDDY_NOINLINE void *
eddy_malloc_slow(size_t size)
{
	const struct eddy_scope *scope = eddy_own.scope;
	void *p;

	if (eddy_unlikely(scope == NULL))
		return eddy_malloc_missed(size);
	p = EDDY_HIT_COUNTS && eddy_prof_counts() ? NULL
						  : bump(scope->core, size);
	return eddy_likely(p != NULL) ? p : region_malloc_slow(size);
}
