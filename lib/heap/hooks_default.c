/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/heap/hooks_default.h"

#include "lib/heap/hooks.h"
#include "lib/heap/segment.h"
#include "lib/heap/thp.h"
#include "lib/os/os.h"
#include "lib/os/zero.h"

static __thread struct eddy_request *request;

void
eddy_request_begin(struct eddy_request *r)
{
	r->outer = request;
	request = r;
}

void
eddy_request_end(struct eddy_request *r)
{
	request = r->outer;
}

struct eddy_request *
eddy_request_for(uint32_t chunk, size_t n)
{
	struct eddy_request *r = request;

	return r != NULL && r->goes && r->chunk == chunk && r->n == n ? r
								      : NULL;
}

static bool
is_in_range(const struct eddy_heap *h, const void *p)
{
	return h != NULL &&
	       (uintptr_t)p - h->base < (size_t)h->n_chunks * EDDY_CHUNK;
}

bool
eddy_hooks_drop(struct eddy_heap *h, void *p, size_t size)
{
	if (is_in_range(h, p))
		eddy_thp_break(h, p, size);
	return eddy_os_drop(p, size);
}

/* ------------------------------------------------------------------ */

/* Fresh pages at a multiple of align. */
static void *
map(size_t size, size_t align)
{
	char *p;
	char *at;

	if (align < EDDY_PAGE)
		align = EDDY_PAGE;
	if (size == 0 || size > EDDY_SIZE_LIMIT ||
	    align > EDDY_SIZE_LIMIT - size)
		return NULL;
	p = eddy_os_reserve(size + align);
	if (p == NULL)
		return NULL;
	at = (char *)eddy_align_up((uintptr_t)p, align);
	if (at != p)
		eddy_os_unmap(p, (size_t)(at - p));
	eddy_os_unmap(at + size, align - (size_t)(at - p));
	if (eddy_os_commit(at, size) == 0)
		return at;
	eddy_os_unmap(at, size);
	return NULL;
}

/* The place of the chunks in question, if that is what is asked for. */
static void *
serve(const void *new_addr, size_t size, size_t align)
{
	struct eddy_heap *h = eddy_heap();
	struct eddy_request *r = request;
	void *place;

	if (r == NULL || r->goes || r->served || size != r->n * EDDY_CHUNK)
		return NULL;
	place = eddy_page_place(h, r->chunk, 0);
	if ((new_addr != NULL && new_addr != place) ||
	    (uintptr_t)place % align != 0 ||
	    eddy_chunks_commit(h, r->chunk, r->n) != 0)
		return NULL;
	r->served = true;
	return place;
}

static void *
default_alloc(extent_hooks_t *hooks, void *new_addr, size_t size,
    size_t alignment, bool *zero, bool *commit, unsigned arena)
{
	void *p;

	(void)hooks;
	(void)arena;
	if (!eddy_is_pow2(alignment))
		return NULL;
	p = serve(new_addr, size, alignment);
	if (p == NULL && new_addr != NULL)
		p = eddy_os_map_at(new_addr, size) == 0 ? new_addr : NULL;
	else if (p == NULL)
		p = map(size, alignment);
	if (p != NULL) {
		*zero = true;
		*commit = true;
	}
	return p;
}

static bool
default_dalloc(extent_hooks_t *hooks, void *addr, size_t size, bool committed,
    unsigned arena)
{
	(void)hooks;
	(void)committed;
	(void)arena;
	if (is_in_range(eddy_heap_peek(), addr))
		return true;
	eddy_os_unmap(addr, size);
	return false;
}

static void
default_destroy(extent_hooks_t *hooks, void *addr, size_t size, bool committed,
    unsigned arena)
{
	struct eddy_request *r = request;

	if (default_dalloc(hooks, addr, size, committed, arena) && r != NULL)
		r->served = true;
}

static bool
default_commit(extent_hooks_t *hooks, void *addr, size_t size, size_t offset,
    size_t length, unsigned arena)
{
	(void)hooks;
	(void)size;
	(void)arena;
	return eddy_os_commit((char *)addr + offset, length) != 0;
}

/* What is not needed is purged: addresses cost nothing. */
static bool
default_decommit(extent_hooks_t *hooks, void *addr, size_t size, size_t offset,
    size_t length, unsigned arena)
{
	(void)hooks;
	(void)addr;
	(void)size;
	(void)offset;
	(void)length;
	(void)arena;
	return true;
}

static bool
default_purge_lazy(extent_hooks_t *hooks, void *addr, size_t size,
    size_t offset, size_t length, unsigned arena)
{
	char *p = (char *)addr + offset;
	struct eddy_heap *h = eddy_heap_peek();

	(void)hooks;
	(void)size;
	(void)arena;
	if (is_in_range(h, p))
		eddy_thp_break(h, p, length);
	return eddy_os_discard_lazily(p, length) != 0;
}

static bool
default_purge_forced(extent_hooks_t *hooks, void *addr, size_t size,
    size_t offset, size_t length, unsigned arena)
{
	(void)hooks;
	(void)size;
	(void)arena;
	return !eddy_hooks_drop(
	    eddy_heap_peek(), (char *)addr + offset, length);
}

bool
eddy_hooks_split(extent_hooks_t *hooks, void *addr, size_t size, size_t size_a,
    size_t size_b, bool committed, unsigned arena)
{
	(void)hooks;
	(void)addr;
	(void)size;
	(void)size_a;
	(void)size_b;
	(void)committed;
	(void)arena;
	return false;
}

bool
eddy_hooks_merge(extent_hooks_t *hooks, void *addr_a, size_t size_a,
    void *addr_b, size_t size_b, bool committed, unsigned arena)
{
	(void)hooks;
	(void)addr_a;
	(void)size_a;
	(void)addr_b;
	(void)size_b;
	(void)committed;
	(void)arena;
	return false;
}

extent_hooks_t eddy_hooks_default = {
    .alloc = default_alloc,
    .dalloc = default_dalloc,
    .destroy = default_destroy,
    .commit = default_commit,
    .decommit = default_decommit,
    .purge_lazy = default_purge_lazy,
    .purge_forced = default_purge_forced,
    .split = eddy_hooks_split,
    .merge = eddy_hooks_merge,
};
