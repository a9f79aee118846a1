/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/heap/heap.h"

#include <string.h>

#include "lib/arch/quirks.h"
#include "lib/heap/cpu_cache.h"
#include "lib/heap/pagemap.h"
#include "lib/heap/reclaim.h"
#include "lib/heap/thp.h"
#include "lib/os/advise.h"
#include "lib/os/fatal.h"
#include "lib/os/os.h"
#include "numa/excluded.h"

/* Ranges below this are planned, not reserved. */
#define MIN_LG_RESERVED 33
/* What an emulator bears, for which only descriptors are reserved. */
#define PLANNED_LG 38
/* Enough for every ring and a thousand threads in the middle of it. */
#define LIMITED_BATCHES 2048
/* Chunks from which on a limit set at run time is looked for: 128 MiB. */
#define FIRST_LIMIT_CHECK 64
/* Sets of cells: threads without rseq share them by a hash. */
#define N_CELL_SETS 16
/* Slots in front of CPU 0: an index of -1 or -2 falls on a closed row. */
#define DUMMY_SLOTS 2
/* Rings of one home. */
#define RING_BYTES (EDDY_HOME_ROWS * sizeof(struct eddy_ring))
/* Places for the first chunk, one of them at random: in ranges of 64 GiB on. */
#define RANDOM_CHUNKS 256

_Atomic(struct eddy_heap *) eddy_heap_published;

/* Where the parts lie, as offsets in the reservation. */
struct plan {
	uint32_t n_chunks;
	uint32_t n_segments;
	uint32_t max_homes;   /* that there is room for */
	uint32_t max_numbers; /* of homes and groups, the same */
	uint32_t n_slots;
	uint32_t n_batches;
	size_t fixed; /* accessible from the start */
	size_t rings;
	size_t tags;
	size_t segments;
	size_t chunks;
	size_t slots;
	size_t cells;
	size_t batches;
	size_t end;
};

/* Parts may have to be opened one by one, so none shares an OS page. */
static size_t
part(size_t *at, size_t size)
{
	size_t here = *at;

	*at = eddy_align_up(here + size, EDDY_CHUNK / 4);
	return here;
}

static void
make_plan(
    struct plan *p, unsigned lg_range, uint32_t n_slots, uint32_t n_batches)
{
	size_t n_sets = (size_t)p->max_numbers * N_CELL_SETS;
	size_t at = 0;

	p->n_chunks = (uint32_t)1 << (lg_range - EDDY_LG_CHUNK);
	p->n_segments = (p->n_chunks + (uint32_t)EDDY_SEGMENT_CHUNKS - 1) /
			(uint32_t)EDDY_SEGMENT_CHUNKS;
	p->n_slots = n_slots;
	p->fixed = eddy_align_up(sizeof(struct eddy_heap), EDDY_PAGE);

	(void)part(&at, p->fixed);
	p->rings = part(&at, p->max_numbers * RING_BYTES);
	p->tags = part(&at, p->n_segments * (EDDY_SEGMENT / EDDY_PAGE) * 4);
	p->segments = part(&at, p->n_segments * sizeof(struct eddy_segment));
	p->chunks = part(&at, p->n_chunks * sizeof(struct eddy_chunk));
	p->slots = part(&at, (size_t)(n_slots + DUMMY_SLOTS) << EDDY_LG_SLOT);
	p->cells = part(&at, n_sets * sizeof(struct eddy_cell_set));
	p->n_batches = n_slots != 0 ? n_batches : 0;
	p->batches = part(&at, p->n_batches * sizeof(struct eddy_batch));
	p->end = at;
}

/* What was got from the kernel. */
struct ground {
	char *reservation;
	size_t size;
	uintptr_t base;
	bool reserved;
};

/* Parts and range in one piece. */
static bool
reserve_all(struct plan *p, struct ground *g)
{
	size_t range = (size_t)p->n_chunks * EDDY_CHUNK;

	g->size = p->end + EDDY_SEGMENT + range;
	g->reservation = eddy_os_reserve(g->size);
	if (g->reservation == NULL)
		return false;
	g->base =
	    eddy_align_up((uintptr_t)g->reservation + p->end, EDDY_SEGMENT);
	g->reserved = true;
	return true;
}

/*
 * Under a limit on the address space nothing is reserved for the range: it is
 * a place where nobody is likely to map anything, half way down.
 */
static bool
plan_only(struct plan *p, struct ground *g)
{
	size_t range = (size_t)p->n_chunks * EDDY_CHUNK;
	uintptr_t middle;

	g->size = p->end;
	g->reservation = eddy_os_reserve(g->size);
	if (g->reservation == NULL)
		return false;
	middle = (uintptr_t)g->reservation / 2;
	g->base = eddy_align_down(
	    middle - eddy_os_random() % (middle / 4), EDDY_SEGMENT);
	g->reserved = false;
	if (range > middle / 2) {
		eddy_os_unmap(g->reservation, g->size);
		return false;
	}
	return true;
}

static bool
find_ground(const struct eddy_opts *o, uint32_t n_slots, struct plan *p,
    struct ground *g)
{
	size_t limit = eddy_os_address_limit();
	unsigned lg = o->lg_range;

	p->max_homes = 1;
	p->max_numbers = 1 + (o->hints ? EDDY_N_LIVES : 0);
	if (limit == SIZE_MAX && !eddy_os_has_rseq()) {
		/*
		 * Emulators (valgrind, qemu-user) keep notes on every page of
		 * a reservation: 16 TiB of them are the end of them.
		 */
		lg = lg < PLANNED_LG ? lg : PLANNED_LG;
	} else if (limit == SIZE_MAX) {
		p->max_homes = EDDY_MAX_HOMES;
		p->max_numbers = EDDY_MAX_HOMES;
		for (; lg >= MIN_LG_RESERVED; lg -= 2) {
			make_plan(p, lg, n_slots, EDDY_MAX_BATCHES);
			if (reserve_all(p, g))
				return true;
		}
	} else {
		if (((size_t)n_slots << EDDY_LG_SLOT) > limit / 8)
			n_slots = 0;
		if (limit < EDDY_CHUNK)
			limit = EDDY_CHUNK;
		if (lg > eddy_log2(limit) + 1)
			lg = eddy_log2(limit) + 1;
	}
	for (; lg > EDDY_LG_CHUNK; lg--) {
		make_plan(p, lg, n_slots, LIMITED_BATCHES);
		if (plan_only(p, g))
			return true;
	}
	return false;
}

static struct eddy_heap *
lay_heap(const struct plan *p, const struct ground *g)
{
	struct eddy_heap *h = (struct eddy_heap *)(void *)g->reservation;
	uint64_t free = 0;

	if (eddy_os_commit(g->reservation, p->fixed) != 0)
		return NULL;
	h->base = g->base;
	h->reserved = g->reserved;
	h->n_chunks = p->n_chunks;
	h->n_segments = p->n_segments;
	if (p->n_chunks >= RANDOM_CHUNKS * 128)
		h->first_chunk = (uint32_t)(eddy_os_random() % RANDOM_CHUNKS);
	h->tags = (_Atomic uint32_t *)(void *)(g->reservation + p->tags);
	h->segments = (void *)(g->reservation + p->segments);
	h->chunks = (void *)(g->reservation + p->chunks);
	h->slots =
	    g->reservation + p->slots + ((size_t)DUMMY_SLOTS << EDDY_LG_SLOT);
	h->n_slots = p->n_slots;
	h->rings = (void *)(g->reservation + p->rings);
	h->cells = g->reservation + p->cells;
	h->n_cell_sets = N_CELL_SETS;
	h->batches = (void *)(g->reservation + p->batches);
	h->max_batches = p->n_batches;
	h->reservation_size = g->size;
	h->fixed_size = p->fixed;
	/* relaxed: published by HEAP-R1. */
	eddy_store_relaxed(&h->ask_limit_at, FIRST_LIMIT_CHECK);
	/* relaxed: as above. */
	eddy_store_relaxed(&h->due, EDDY_NEVER);

	for (uint32_t i = 0; i < p->n_segments; i++) {
		free |= (uint64_t)1 << i % 64;
		if (i % 64 == 63 || i + 1 == p->n_segments) {
			/* relaxed: published by HEAP-R1. */
			eddy_store_relaxed(&h->free_segments[i / 64], free);
			free = 0;
		}
	}
	return h;
}

/* CPU caches by rseq, if kernel and options allow. */
static bool
use_sections(const struct eddy_opts *o, const struct plan *p, char *slots)
{
	return EDDY_HAS_SECTIONS && o->rseq && p->n_slots != 0 &&
	       !eddy_arch_rseq_broken() && eddy_os_membarrier_register() == 0 &&
	       eddy_os_commit_readonly(
		   slots - ((size_t)DUMMY_SLOTS << EDDY_LG_SLOT),
		   (size_t)(p->n_slots + DUMMY_SLOTS) << EDDY_LG_SLOT) == 0;
}

/*
 * Groups of each lifetime that the slots have room for: as many as homes, fewer
 * where homes are many, none where they leave nothing.
 */
static uint32_t
n_groups(const struct eddy_heap *h)
{
	uint32_t room =
	    (EDDY_MAX_HOMES - h->n_homes) / (EDDY_N_LIVES * EDDY_GROUP_BATCHES);

	if (!h->opts.hints)
		return 0;
	return room < h->n_homes ? room : h->n_homes;
}

/* Finds the homes, and makes their rings accessible, and those of groups. */
static bool
find_homes(struct eddy_heap *h, const struct plan *p)
{
	struct eddy_placement *places = &h->places;

	eddy_placement_find(
	    places, h->opts.numa, h->opts.home, h->opts.topology);
	if (places->n_homes > p->max_homes ||
	    places->n_homes * EDDY_MIN_SEGMENTS > p->n_segments) {
		/* One for all nodes: memory lies where it is touched. */
		places->n_homes = 1;
		places->bind = false;
		memset(places->home_of_cpu, 0, sizeof(places->home_of_cpu));
		memset(places->home_of_node, 0, sizeof(places->home_of_node));
	}
	h->n_homes = places->n_homes;
	h->n_groups = n_groups(h);
	h->n_with_rows = h->n_homes + EDDY_N_LIVES * h->n_groups;
	/* Samples need segments of their own; in a small range there are none.
	 */
	if (h->opts.prof && 2 * h->n_homes * EDDY_MIN_SEGMENTS <= p->n_segments)
		h->n_samples = h->n_homes;
	/* relaxed: published by HEAP-R1. */
	eddy_store_relaxed(&h->n_arenas, h->n_homes + h->n_samples);
	return eddy_os_commit(h->rings, h->n_with_rows * RING_BYTES) == 0;
}

/* Notes a list of CPUs that is none, and does without. */
static void
refuse_cpus(struct eddy_conf_log *log, const char *name, char *value)
{
	eddy_conf_refuse(log, name, value, "not a list of CPUs, ignored");
	value[0] = '\0';
}

/* Once, and in large pieces: each name makes a mapping of its own. */
static void
name_parts(const struct plan *p, const struct ground *g)
{
	size_t range = (size_t)p->n_chunks * EDDY_CHUNK;
	size_t parts = g->reserved ? p->end : g->size;

	eddy_os_name(g->reservation, parts, "eddy: metadata");
	eddy_os_name(
	    g->reservation + p->slots, p->batches - p->slots, "eddy: caches");
	/* What is mapped piece by piece later on has none. */
	if (g->reserved)
		eddy_os_name((void *)g->base, range, "eddy: objects");
}

static struct eddy_heap *
build(struct eddy_conf_log *log, struct ground *g)
{
	struct eddy_opts opts;
	char link[EDDY_CONF_LINK_MAX];
	struct plan plan;
	struct eddy_heap *h;
	uint32_t n_slots = eddy_os_cpu_limit();

	if (n_slots > EDDY_MAX_CPUS)
		n_slots = EDDY_MAX_CPUS;
	/* Faults in the options are in the log, opts is good all the same. */
	(void)eddy_conf_load(&opts, log, link);
	/* Who asks for leaks asks for a profile. */
	opts.prof_leak |= opts.prof_leak_error;
	opts.prof |= opts.prof_leak;
	if (!find_ground(&opts, n_slots, &plan, g))
		return NULL;
	h = lay_heap(&plan, g);
	if (h == NULL) {
		eddy_os_unmap(g->reservation, g->size);
		return NULL;
	}
	if (opts.names)
		name_parts(&plan, g);
	h->opts = opts;
	memcpy(h->conf_link, link, sizeof(link));
	eddy_thp_begin(h);
	h->limited = opts.heap_limit != 0 || opts.heap_limit_share != 0;
	if (!find_homes(h, &plan)) {
		eddy_os_unmap(g->reservation, g->size);
		return NULL;
	}
	if (eddy_class_slabs(opts.slab_sizes) != 0)
		eddy_conf_refuse(log, "slab_sizes", h->opts.slab_sizes,
		    "not \"from-to:pages|...\", ignored");
	if (h->places.topology_error != 0)
		eddy_conf_refuse(log, "topology", h->opts.topology,
		    "not a topology, ignored");
	if (eddy_excluded_check(h->opts.exclude_cpus) != 0)
		refuse_cpus(log, "exclude_cpus", h->opts.exclude_cpus);
	if (h->opts.background_cpus[0] != '\0' &&
	    eddy_cpu_list_read(NULL, h->opts.background_cpus) != 0)
		refuse_cpus(log, "background_cpus", h->opts.background_cpus);
	h->cached = opts.tcache && !opts.check && !opts.zero &&
		    opts.junk == EDDY_JUNK_FALSE;
	h->sections = h->cached && use_sections(&opts, &plan, h->slots);
	return h;
}

void
eddy_heap_fill_fast(struct eddy_heap *h)
{
	const uint8_t *rows = h->opts.disable_large_size_classes
				  ? eddy_size_rows
				  : eddy_size_rows_530;

	/* relaxed, all: see struct eddy_fast. */
	eddy_store_relaxed(&eddy_fast.base, h->base);
	eddy_store_relaxed(&eddy_fast.tags, (uintptr_t)h->tags);
	eddy_store_relaxed(&eddy_fast.slots, (uintptr_t)h->slots);
	eddy_store_relaxed(&eddy_fast.rows, (uintptr_t)rows);
}

EDDY_COLD struct eddy_heap *
eddy_heap_start(void)
{
	struct eddy_conf_log log;
	struct ground g;
	struct eddy_heap *h = eddy_heap_peek();
	struct eddy_heap *seen = NULL;

	if (h != NULL)
		return h;
	h = build(&log, &g);
	if (h == NULL)
		return eddy_heap_peek();
	/* HEAP-R1: all that was built.  HEAP-A1: or another's. */
	if (!eddy_cas_acq_rel(&eddy_heap_published, &seen, h)) {
		eddy_os_unmap(g.reservation, g.size);
		return seen;
	}
	if (eddy_conf_report(&log) != 0)
		eddy_os_abort();
	return h;
}

/* Whether a live block of chunks reaches to this one. */
static bool
in_huge(struct eddy_heap *h, uint32_t chunk)
{
	for (uint32_t c = chunk;; c--) {
		/* relaxed, both: as below. */
		uint32_t tag =
		    eddy_load_relaxed(&h->tags[c * EDDY_CHUNK_PAGES]);

		if (eddy_tag_kind(tag) == EDDY_TAG_HUGE)
			return (chunk - c) * EDDY_CHUNK <
			       eddy_load_relaxed(&h->chunks[c].huge_size);
		if (tag != 0 || c == 0)
			return false;
	}
}

/* Whether a page lies in a live block of pages that begins before it. */
static bool
in_block(struct eddy_heap *h, size_t page)
{
	size_t first = page / EDDY_CHUNK_PAGES * EDDY_CHUNK_PAGES;

	for (size_t i = page;; i--) {
		/* relaxed: a report on what cannot be trusted anyway. */
		uint32_t tag = eddy_load_relaxed(&h->tags[i]);

		if (eddy_tag_kind(tag) == EDDY_TAG_SLAB ||
		    (tag != 0 && i == page)) /* by now another's */
			return false;
		if (eddy_tag_kind(tag) == EDDY_TAG_RUN)
			return page - i < eddy_tag_pages(tag);
		if (i == first)
			return in_huge(h, (uint32_t)(i / EDDY_CHUNK_PAGES));
	}
}

/* Whether blocks may have been there: the place is eddy's, and was in use. */
static bool
was_used(struct eddy_heap *h, uint32_t chunk)
{
	struct eddy_segment *s = &h->segments[chunk / EDDY_SEGMENT_CHUNKS];
	unsigned pos = chunk % (unsigned)EDDY_SEGMENT_CHUNKS;

	/* relaxed, both: of a segment never 0 again from its first owner on;
	 * of a chunk, where others may map something, not before a block was
	 * there. */
	return eddy_load_relaxed(&s->counted) != 0 &&
	       (h->reserved ||
		   (eddy_load_relaxed(&s->map.ready[pos / 64]) >> pos % 64 &
		       1) != 0);
}

EDDY_COLD void
eddy_fatal_free(struct eddy_heap *h, const void *place)
{
	const void *p = eddy_address_of(h, place);
	size_t page = eddy_page_of(h, place);

	/*
	 * Free bits would not tell more: pages, chunk or segment may be in
	 * anybody's hand just now, on their way out of use or in a purge.
	 * SEG-A1: tags and descriptors below the limit are readable.
	 */
	if (page < eddy_load_acquire(&eddy_fast.limit) &&
	    was_used(h, (uint32_t)(page / EDDY_CHUNK_PAGES)) &&
	    !in_block(h, page))
		eddy_fatal("double free", p);
	eddy_fatal("foreign pointer", p);
}
