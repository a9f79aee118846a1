/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/heap/backing.h"

#include <errno.h>
#include <string.h>

#include "lib/heap/arena.h"
#include "lib/heap/hooks.h"
#include "lib/heap/pagemap.h"
#include "lib/heap/region.h"
#include "lib/heap/segment.h"
#include "lib/heap/thp.h"
#include "lib/os/advise.h"
#include "lib/os/file.h"
#include "lib/os/os.h"
#include "lib/os/zero.h"

/* From so many bytes on a hole is cheaper than zeros. */
#define MIN_PUNCH ((size_t)1 << 20)

bool
eddy_backing_is_here(const struct eddy_backing *b)
{
	/* relaxed, all: constant in a process; ordered by `apart`. */
	_Atomic uint32_t *here = eddy_load_relaxed(&b->here);

	if (here == NULL)
		return eddy_os_pid() == eddy_load_relaxed(&b->pid);
	return eddy_load_relaxed(here) != 0;
}

bool
eddy_backing_has(struct eddy_heap *h, const void *p)
{
	size_t i =
	    ((uintptr_t)eddy_place_of(h, p) - h->base) >> EDDY_LG_SEGMENT;
	uint32_t tied;

	if (i >= h->n_segments)
		return true;
	/* relaxed: pinned by what the caller has in hand. */
	tied = eddy_load_relaxed(&h->segments[i].tied);
	return tied == 0 || eddy_backing_here(&eddy_arena_at(h, tied)->backing);
}

/* ------------------------------------------------------------------ */
/* Giving back */

bool
eddy_backing_drop(struct eddy_heap *h, void *p, size_t size)
{
	const struct eddy_backing *b = eddy_backing_of(h, p);

	eddy_region_drop(h, p, size);
	if (b != NULL)
		return b->kind == EDDY_FILE_PUNCHED &&
		       eddy_backing_is_here(b) && eddy_os_file_punch(p, size);
	eddy_thp_break(h, p, size);
	return eddy_os_drop(p, size);
}

bool
eddy_backing_drop_lazily(struct eddy_heap *h, void *p, size_t size)
{
	const struct eddy_backing *b = eddy_backing_of(h, p);

	if (b != NULL)
		return b->kind == EDDY_FILE_KEPT && eddy_backing_is_here(b) &&
		       eddy_os_file_write_back(p, size);
	eddy_thp_break(h, p, size);
	return eddy_os_discard_lazily(p, size) == 0;
}

/* ------------------------------------------------------------------ */
/* Zeros */

/* A hole where there can be one and it is worth it, zeros around it. */
static void
zero_file(const struct eddy_backing *b, char *p, size_t size, size_t least)
{
	size_t page = eddy_os_page_size();
	char *from = (char *)eddy_align_up((uintptr_t)p, page);
	char *to = (char *)eddy_align_down((uintptr_t)p + size, page);

	if (b->kind == EDDY_FILE_PUNCHED && !b->fill && from < to &&
	    (size_t)(to - from) >= least &&
	    eddy_os_file_punch(from, (size_t)(to - from))) {
		memset(p, 0, (size_t)(from - p));
		memset(to, 0, (size_t)(p + size - to));
	} else {
		memset(p, 0, size);
	}
}

void
eddy_backing_zero(struct eddy_heap *h, void *p, size_t size, bool keep)
{
	const struct eddy_backing *b = eddy_backing_of(h, p);

	if (b != NULL)
		zero_file(b, p, size, keep ? SIZE_MAX : MIN_PUNCH);
	else if (eddy_hooks_gave(h, p))
		/* It may be shared: a page that is not there is no zero. */
		eddy_os_write_zeros(p, size);
	else
		eddy_os_zero(p, size, keep);
}

void
eddy_backing_give_back(struct eddy_heap *h, void *p, size_t size)
{
	const struct eddy_backing *b = eddy_backing_of(h, p);

	if (b == NULL && eddy_hooks_gave(h, p)) {
		eddy_os_write_zeros(p, size);
	} else if (b == NULL) {
		/* With less no page goes. */
		if (size >= EDDY_PAGE)
			eddy_thp_break(h, p, size);
		eddy_os_give_back(p, size);
	} else {
		zero_file(b, p, size, 1);
	}
}

/* ------------------------------------------------------------------ */
/* Room */

bool
eddy_backing_fill(void *p, size_t size)
{
	return eddy_os_file_fill(p, size) == 0;
}

int
eddy_backing_populate(struct eddy_heap *h, void *p, size_t size)
{
	return eddy_backing_of(h, p) == NULL ? eddy_os_populate(p, size)
					     : eddy_os_file_fill(p, size);
}

/* ------------------------------------------------------------------ */
/* Creation */

/* A page that is wiped at fork; NULL: there can be none. */
static _Atomic uint32_t *
new_page(struct eddy_heap *h)
{
	size_t size = eddy_os_page_size();
	void *page = eddy_os_reserve(size);

	if (page == NULL)
		return NULL;
	if (eddy_os_commit(page, size) != 0 ||
	    eddy_os_wipe_on_fork(page, size) != 0) {
		eddy_os_unmap(page, size);
		return NULL;
	}
	if (h->opts.names)
		eddy_os_name(page, size, "eddy: metadata");
	return page;
}

/* The memory is this process's alone from now on. */
static void
begin(struct eddy_heap *h, struct eddy_backing *b)
{
	/* relaxed, all: whoever is here writes the same; HOOK-R1 publishes. */
	_Atomic uint32_t *here = eddy_load_relaxed(&b->here);
	_Atomic uint32_t *fresh = here == NULL ? new_page(h) : NULL;

	eddy_store_relaxed(&b->pid, eddy_os_pid());
	if (fresh != NULL && eddy_cas_relaxed(&b->here, &here, fresh))
		here = fresh;
	else if (fresh != NULL)
		eddy_os_unmap((void *)(uintptr_t)fresh, eddy_os_page_size());
	if (here != NULL)
		eddy_store_relaxed(here, 1);
	/* HOOK-R1: all that. */
	eddy_store_release(&b->apart, true);
}

void
eddy_backing_part(struct eddy_heap *h, struct eddy_arena *a)
{
	/* HOOK-A1: somebody else was here. */
	if (!eddy_load_acquire(&a->backing.apart))
		begin(h, &a->backing);
}

static void
end(const struct eddy_backing *b)
{
	/* relaxed: the caller's alone. */
	_Atomic uint32_t *here = eddy_load_relaxed(&b->here);

	if (here != NULL)
		eddy_os_unmap((void *)(uintptr_t)here, eddy_os_page_size());
}

/* An arena for a file that is known to be good. */
static int
add_arena(struct eddy_heap *h, uint32_t node, int fd, uint32_t chunks,
    const struct eddy_backing *b, uint32_t *ret)
{
	const uint32_t n = (chunks + (uint32_t)EDDY_SEGMENT_CHUNKS - 1) /
			   (uint32_t)EDDY_SEGMENT_CHUNKS;
	uint32_t segment;
	void *p;
	int err;

	if (!eddy_segments_lend(h, n, &segment))
		return -ENOMEM;
	p = eddy_page_place(h, segment * (uint32_t)EDDY_SEGMENT_CHUNKS, 0);
	err = eddy_os_file_map(fd, p, chunks * EDDY_CHUNK, h->reserved);
	/* What lies there now is not known: it is nobody's from now on. */
	if (err != 0)
		return err == -EEXIST ? -ENOMEM : err;
	err = eddy_arena_add_backed(h, node, b, ret);
	if (err == 0)
		eddy_segments_give(h, segment, chunks, *ret);
	else if (eddy_os_file_unmap(p, chunks * EDDY_CHUNK, h->reserved) == 0)
		eddy_segments_put(h, segment, n);
	return err;
}

int
eddy_backing_create(struct eddy_heap *h, uint32_t node, const char *directory,
    size_t size, bool fill, uint32_t *ret)
{
	struct eddy_backing b = {.fill = fill};
	size_t chunks = size / EDDY_CHUNK + (size % EDDY_CHUNK != 0);
	bool punches = false;
	int fd;
	int err;

	/* A segment of fewer chunks is never given up, so a block that wants
	 * it whole would find it once. */
	if (chunks > EDDY_SEGMENT_CHUNKS)
		chunks = eddy_align_up(chunks, EDDY_SEGMENT_CHUNKS);
	if (chunks > h->n_chunks)
		return -ENOMEM;
	fd = eddy_os_file_make(directory, chunks * EDDY_CHUNK);
	if (fd < 0)
		return fd;
	err = eddy_os_file_try(fd, &punches);
	if (err == 0) {
		b.kind = punches ? EDDY_FILE_PUNCHED : EDDY_FILE_KEPT;
		begin(h, &b);
		err = add_arena(h, node, fd, (uint32_t)chunks, &b, ret);
		if (err != 0)
			end(&b);
	}
	eddy_os_file_close(fd);
	return err;
}
