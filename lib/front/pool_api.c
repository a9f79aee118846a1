/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pool_api.c - pools of objects of one type, for programs.
 *
 * Layer     front (L6).
 * Progress  as pool.h says.
 *
 * What a program has is the pool's address and, in its lower bits, a
 * generation: so who uses a pool that was destroyed is told, even when its
 * struct serves another, 255 times in a row.
 */
#include "eddy/pool.h"

#include <errno.h>

#include "lib/ctl/mallctl.h"
#include "lib/ctl/text.h"
#include "lib/front/front.h"
#include "lib/heap/arena.h"
#include "lib/heap/explicit.h"
#include "lib/heap/pagemap.h"
#include "lib/heap/pool.h"
#include "lib/heap/slab.h"
#include "lib/os/fatal.h"

/* The pool of a handle.  Fatal: it was destroyed. */
static inline struct eddy_pool_core *
core_of(struct eddy_pool *pool)
{
	struct eddy_pool_core *p = (struct eddy_pool_core *)eddy_align_down(
	    (uintptr_t)pool, EDDY_POOL_ALIGN);

	/* relaxed: it was handed over by the program. */
	if (eddy_unlikely(eddy_load_relaxed(&p->handle) != (uintptr_t)pool))
		eddy_fatal("pool that was destroyed", pool);
	return p;
}

/* ------------------------------------------------------------------ */
/* Objects */

/* The answer where no memory is to be had by ourselves. */
static EDDY_COLD void *
ask_program(struct eddy_heap *h, struct eddy_pool_core *p)
{
	/* relaxed: as the struct's. */
	size_t size = eddy_row_size(eddy_load_relaxed(&p->row));
	void *object = NULL;

	if (eddy_explicit_sweep(h, NULL))
		object = eddy_pool_take(h, p);
	if (object == NULL && eddy_pressure_tell(size))
		object = eddy_pool_take(h, p);
	return object != NULL ? object : eddy_no_memory();
}

static EDDY_NOINLINE void *
alloc_slow(struct eddy_pool_core *p)
{
	struct eddy_heap *h = eddy_heap_peek();
	void *object = eddy_pool_take(h, p);

	return eddy_likely(object != NULL) ? object : ask_program(h, p);
}

EDDY_EXPORT void *
eddy_pool_alloc(struct eddy_pool *pool)
{
	struct eddy_pool_core *p = core_of(pool);
	/* relaxed, both: as the struct's. */
	uintptr_t slots = eddy_load_relaxed(&p->slots);
	void *object;

	if (eddy_likely(slots != 0) &&
	    eddy_likely(eddy_row_try_pop(slots, eddy_load_relaxed(&p->place),
			    &object) == EDDY_SECTION_OK))
		return object;
	return alloc_slow(p);
}

/* What is wrong with a pointer that is in no slab of the pool. */
static EDDY_COLD void
refuse(struct eddy_heap *h, const void *object, const void *place, uint32_t tag)
{
	switch (eddy_tag_kind(tag)) {
	case EDDY_TAG_NONE:
		eddy_fatal_free(h, place);
	case EDDY_TAG_POOL:
		eddy_fatal("object of another pool", object);
	case EDDY_TAG_LIMBO:
		eddy_fatal("double free", object);
	default:
		eddy_fatal("not an object of a pool", object);
	}
}

EDDY_EXPORT void
eddy_pool_free(struct eddy_pool *pool, void *object)
{
	struct eddy_pool_core *p = core_of(pool);
	/* relaxed, all: as the struct's, pinned by the object. */
	uintptr_t slots = eddy_load_relaxed(&p->slots);
	struct eddy_heap *h = eddy_heap_peek();
	const void *place;
	uint32_t tag;

	if (object == NULL)
		return;
	tag = eddy_tag_seek(h, object, &place);
	if (eddy_unlikely(eddy_tag_kind(tag) != EDDY_TAG_POOL) ||
	    eddy_unlikely(
		eddy_load_relaxed(
		    &h->chunks[eddy_page_of(h, place) / EDDY_CHUNK_PAGES]
			 .map.owner) != eddy_load_relaxed(&p->arena)))
		refuse(h, object, place, tag);
	/* Fatal: it is not the start of one. */
	(void)eddy_slab_bit_of(h, place, tag);
	if (eddy_likely(slots != 0) &&
	    eddy_likely(eddy_row_try_push(slots, eddy_load_relaxed(&p->place),
			    object) == EDDY_SECTION_OK))
		return;
	eddy_pool_put(h, p, object);
}

/* ------------------------------------------------------------------ */
/* Pools */

static int
read_arena(struct eddy_heap *h, const struct eddy_arena_options *o,
    struct eddy_arena_plan *plan)
{
	plan->node = EDDY_NO_NODE;
	if (o == NULL)
		return 0;
	if (o->size < sizeof(*o))
		return -EINVAL;
	if (!eddy_is_plain(o, sizeof(*o), o->size))
		return -E2BIG;
	plan->flags = o->flags;
	plan->directory = o->directory;
	plan->file_size = o->file_size;
	if (o->node == EDDY_ANY_NODE)
		return 0;
	plan->node = (uint32_t)o->node;
	return eddy_arena_fit(h, o->node);
}

static void
call(struct eddy_heap *h, struct eddy_arena *a, const char *name)
{
	char text[32] = "pool";

	if (name != NULL) {
		text[4] = ' ';
		for (size_t i = 5; i < sizeof(text) - 1 && *name != '\0'; i++)
			text[i] = *name++;
	}
	eddy_ctl_call_arena(h, a, text);
}

EDDY_EXPORT int
eddy_pool_create(
    const struct eddy_pool_options *options, struct eddy_pool **pool)
{
	const struct eddy_pool_options *o = options;
	struct eddy_heap *h = eddy_heap();
	struct eddy_pool_plan plan = {0};
	struct eddy_pool_core *p;
	int err;

	if (h == NULL)
		return ENOMEM;
	if (o->size < sizeof(*o))
		return EINVAL;
	if (!eddy_is_plain(o, sizeof(*o), o->size))
		return E2BIG;
	plan.size = o->object_size;
	plan.align = o->align != 0 ? o->align : 1;
	plan.construct = o->construct;
	plan.arg = o->arg;
	err = read_arena(h, o->arena, &plan.arena);
	if (err == 0)
		err = eddy_pool_make(h, &plan, &p);
	if (err != 0)
		return -err;
	call(h, eddy_pool_arena_of(h, p), o->name);
	/* relaxed: nobody else has it yet. */
	*pool = (struct eddy_pool *)eddy_load_relaxed(&p->handle);
	return 0;
}

/* "pool destroyed with N objects alive" */
static EDDY_COLD void
refuse_alive(const struct eddy_pool *pool, size_t n)
{
	struct eddy_text t;

	eddy_text_open(&t, NULL, NULL);
	eddy_text_add(&t, "pool destroyed with ");
	eddy_text_number(&t, n, 0);
	eddy_text_add(&t, n != 1 ? " objects alive" : " object alive");
	t.buf[t.len] = '\0';
	eddy_fatal(t.buf, pool);
}

EDDY_EXPORT void
eddy_pool_destroy(struct eddy_pool *pool)
{
	struct eddy_heap *h = eddy_heap_peek();
	uintptr_t handle = (uintptr_t)pool;
	struct eddy_pool_core *p;
	size_t alive;

	if (pool == NULL)
		return;
	p = core_of(pool);
	alive = h->opts.check ? eddy_pool_alive(h, p) : 0;
	if (alive != 0)
		refuse_alive(pool, alive);
	/* relaxed: nobody uses it; of two that end it one does. */
	if (!eddy_cas_relaxed(&p->handle, &handle, 0))
		eddy_fatal("pool that was destroyed", pool);
	eddy_ctl_arena_ended(h, eddy_pool_arena_of(h, p));
	eddy_pool_end(h, p);
}

EDDY_EXPORT size_t
eddy_pool_shrink(struct eddy_pool *pool, void (*grace)(void *arg), void *arg)
{
	return eddy_pool_give_back(eddy_heap_peek(), core_of(pool), grace, arg);
}

EDDY_EXPORT unsigned
eddy_pool_arena(struct eddy_pool *pool)
{
	/* relaxed: as the struct's. */
	return eddy_load_relaxed(&core_of(pool)->arena);
}
