/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heap_faults.c - what a free of no live block is called, from inside: the name
 * does not depend on whose hand the memory is in at that instant.
 */
#include "probe.h"

#include <setjmp.h>

#include "eddy/eddy.h"
#include "lib/heap/arena.h"
#include "lib/heap/chunk.h"
#include "lib/heap/pagemap.h"
#include "lib/heap/purge.h"
#include "lib/heap/segment.h"
#include "lib/os/fatal.h"

static struct eddy_heap *h;
static struct eddy_arena *a; /* of the program's: nothing is cached */
static unsigned number;

static jmp_buf out;
static char said[128];

static void
listen(const char *message)
{
	(void)snprintf(said, sizeof said, "%s", message);
	longjmp(out, 1);
}

/* Whether this is what is said of a free. */
static bool
is(const char *fault, void *p)
{
	char want[128];

	(void)snprintf(
	    want, sizeof want, "%s: 0x%lx", fault, (unsigned long)(uintptr_t)p);
	said[0] = '\0';
	eddy_fatal_listen(listen);
	if (setjmp(out) == 0)
		p_free(p);
	if (strstr(said, want) != NULL)
		return true;
	tap_diag("\"%s\", not \"%s\"", said, want);
	return false;
}

static uint32_t
chunk_of(const void *p)
{
	return (uint32_t)(((uintptr_t)p - h->base) >> EDDY_LG_CHUNK);
}

static unsigned
page_of(const void *p)
{
	return (unsigned)(eddy_page_of(h, p) % EDDY_CHUNK_PAGES);
}

static void *
block(size_t size)
{
	char *p = eddy_arena_malloc(number, size);

	if (p == NULL)
		tap_bail("no memory");
	*p = 1;
	return p;
}

/* Pages, then their chunk, then its segment are free, and in a hand. */
static void
test_motion(size_t size, const char *what)
{
	char *kept = block(100000); /* keeps the chunk */
	char *p = block(size);
	uint32_t chunk = chunk_of(p);
	uint32_t segment = chunk / (uint32_t)EDDY_SEGMENT_CHUNKS;
	unsigned pos = chunk % (unsigned)EDDY_SEGMENT_CHUNKS;
	bool held;

	if (chunk_of(kept) != chunk)
		tap_bail("two chunks");
	p_free(p);
	tap_ok(is("double free", p), "%s: free pages", what);
	if (!eddy_pages_claim_at(h, chunk, page_of(p), 1))
		tap_bail("no page");
	tap_ok(is("double free", p), "%s: pages in a hand", what);
	eddy_pages_put(chunk, page_of(p), 1, p);

	p_free(kept);
	tap_ok(is("double free", p), "%s: a free chunk, kept", what);
	if (!eddy_runset_claim_at(&a->pages, chunk, 0, 512))
		tap_bail("no pages");
	held = is("double free", p);
	eddy_pages_put(chunk, 0, 512, p);
	tap_ok(held, "%s: all its pages in a hand", what);
	eddy_chunk_retire_spare(h, a);
	held = is("double free", p);
	if (!eddy_runset_claim_at(&a->chunks, segment, pos, 1))
		tap_bail("no chunk");
	tap_ok(held && is("double free", p),
	    "%s: its chunk free, and in a hand", what);
	eddy_chunks_put(chunk, 1);

	eddy_segment_retire_spare(h, a);
	held = is("double free", p);
	if (!eddy_segment_claim_at(h, segment))
		tap_bail("no segment");
	tap_ok(held && is("double free", p),
	    "%s: its segment free, and in a hand", what);
	eddy_segments_put(h, segment, 1);
}

static void
test_inside(void)
{
	static const size_t sizes[] = {
	    70000, 100000, 2 * MIB, 3 * MIB, 64 * MIB, (size_t)2500 << 20};
	bool held = true;

	for (size_t i = 0; i < COUNT(sizes); i++) {
		char *p = block(sizes[i]);
		size_t last = sizes[i] - 1;

		held &= is("foreign pointer", p + PAGE) &&
			is("foreign pointer", p + sizes[i] / 2) &&
			is("foreign pointer", p + last / PAGE * PAGE);
		p_free(p);
		held &= is("double free", p);
	}
	tap_ok(held, "an inner page of a block, of all sizes: foreign");
}

static void
test_never(void)
{
	size_t limit = atomic_load(&eddy_fast.limit);

	tap_ok(is("foreign pointer", (char *)h->base + limit * PAGE) &&
		   is("foreign pointer", (char *)h->base - PAGE) &&
		   is("foreign pointer", said),
	    "what was never used is foreign");
}

int
main(int argc, char **argv)
{
	(void)argc;
	(void)unsetenv("EDDY_SO"); /* the heap is linked in */
	tap_begin(argv);
	tap_guard(60);
	h = eddy_heap();
	p_free(p_malloc(100)); /* the first segment is another's */
	if (h == NULL || eddy_arena_create(0, &number) != 0)
		tap_bail("no arena");
	a = eddy_arena_at(h, number);
	test_motion(70000, "a run");
	test_motion(100, "an object");
	test_inside();
	test_never();
	return tap_end();
}
