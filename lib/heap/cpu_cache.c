/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/heap/cpu_cache.h"

#include "lib/heap/arena.h"
#include "lib/heap/pagemap.h"
#include "lib/heap/returns.h"
#include "lib/os/os.h"

/* glibc's registration, where there is one (2.35 and later). */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

struct eddy_fast eddy_fast = {.rows = (uintptr_t)eddy_size_rows};

__thread struct eddy_rseq *eddy_area;

/* The thread's own area, where libc registers none. */
static __thread struct eddy_rseq own_area;
/* No area for this thread: rseq refused, or taken by the program. */
static __thread bool refused;
/* Depth of vfork, and the area set aside: see eddy_cache_suspend. */
static __thread unsigned suspended;
static __thread struct eddy_rseq *kept_area;

/* Set by a constructor: from then on a TLS image is not laid again. */
static _Atomic bool started;

__attribute__((constructor)) static void
start(void)
{
	/* relaxed: the flag is all. */
	eddy_store_relaxed(&started, true);
}

/* ------------------------------------------------------------------ */
/* The thread */

static bool
is_index(const struct eddy_heap *h, uint32_t cpu)
{
	return cpu < h->n_slots;
}

/*
 * Takes an area into use if it is registered: by libc, or now.  What it says
 * proves nothing: a thread that libc did not make has zeros there, CPU 0.
 */
static bool
adopt(struct eddy_heap *h, struct eddy_rseq *area)
{
	if (eddy_os_rseq_register(area, EDDY_RSEQ_SIGNATURE) != 0)
		return false;
	/* relaxed: the kernel wrote it on this thread. */
	if (!is_index(h, eddy_load_relaxed(&area->cpu_id)))
		return false;
	eddy_heap_fill_fast(h);
	eddy_area = area;
	return true;
}

static bool
register_area(struct eddy_heap *h)
{
	char *self = (char *)__builtin_thread_pointer();

	if (&__rseq_size != NULL && __rseq_size != 0 &&
	    adopt(h, (struct eddy_rseq *)(void *)(self + __rseq_offset)))
		return true;
	/*
	 * Before our constructor libc may still lay this thread's TLS.
	 * relaxed: the flag is all.
	 */
	if (!eddy_load_relaxed(&started))
		return false;
	if (adopt(h, &own_area))
		return true;
	refused = true;
	return false;
}

enum eddy_cache_mode
eddy_cache_attach(struct eddy_heap *h)
{
	if (eddy_area != NULL)
		return EDDY_CACHE_ROWS;
	if (!h->cached || suspended != 0)
		return EDDY_CACHE_NONE;
	if (!h->sections)
		return EDDY_CACHE_CELLS;
	if (!refused && register_area(h))
		return EDDY_CACHE_ROWS;
	return refused ? EDDY_CACHE_CELLS : EDDY_CACHE_NONE;
}

void
eddy_cache_suspend(void)
{
	if (suspended++ == 0)
		kept_area = eddy_area;
	eddy_area = NULL;
}

void
eddy_cache_resume(void)
{
	/* A handler's vfork may have interrupted a slow path that goes on. */
	if (--suspended == 0)
		eddy_area = kept_area;
}

/* An area that says CPU -1: sections find a slot that is never open. */
static struct eddy_rseq closed_area = {.cpu_id = (uint32_t)-1};

/* A handler may have found that the area is no longer registered. */
static struct eddy_rseq *
my_area(void)
{
	struct eddy_rseq *area = eddy_area;

	return eddy_likely(area != NULL) ? area : &closed_area;
}

/* The index that the last section saw, if it is one. */
static bool
current_cpu(struct eddy_heap *h, uint32_t *ret)
{
	if (eddy_area == NULL)
		return false;
	/* relaxed: the kernel writes it on this thread. */
	*ret = eddy_load_relaxed(&eddy_area->cpu_id);
	if (is_index(h, *ret))
		return true;
	/* Unregistered behind our back, or more CPUs than Linux told. */
	eddy_area = NULL;
	refused = true;
	return false;
}

/* ------------------------------------------------------------------ */
/* Capacity */

/*
 * Where a row's pointers lie in its slot, for rows of the slot's own home.
 * An odd number of cache lines apart, so that the tops of equally full rows
 * do not meet in the same set.
 */
static uint32_t
row_begin(unsigned row)
{
	const uint32_t at = 64 * 1024; /* behind the headers of all homes */
	const uint32_t skew = 5 * EDDY_CACHELINE;
	const uint32_t a = 1024 * 8 + skew;
	const uint32_t b = 512 * 8 + skew;
	const uint32_t c = 128 * 8 + EDDY_CACHELINE;
	const uint32_t d = 64 * 8 + EDDY_CACHELINE;

	if (row <= 13)
		return at + (row - 1) * a;
	if (row <= 21)
		return at + 13 * a + (row - 14) * b;
	if (row <= 29)
		return at + 13 * a + 8 * b + (row - 22) * c;
	return at + 13 * a + 8 * b + 8 * c + (row - 30) * d;
}

static unsigned
capacity(const struct eddy_row *r)
{
	/* relaxed: the owner's slow path alone decides by it. */
	uint64_t limits = eddy_load_relaxed(&r->limits);
	uint32_t end = (uint32_t)limits;
	uint32_t beg = (uint32_t)(limits >> 32);

	return end > beg ? (end - beg) / 8 : 0;
}

/* The limits of a closed row: end 0, beg the largest. */
#define CLOSED ((uint64_t)UINT32_MAX << 32)

static uint64_t
limits_of(unsigned row, unsigned depth)
{
	uint32_t beg = row_begin(row);

	return (uint64_t)beg << 32 | (beg + depth * 8);
}

static bool
slot_writable(struct eddy_heap *h, uint32_t cpu)
{
	if (eddy_cache_slot_used(h, cpu))
		return true;
	if (eddy_os_commit(eddy_cache_row(h, cpu, 0), EDDY_SLOT_SIZE) != 0)
		return false;
	/* HEAP-R2: the slot may be written from here on. */
	(void)eddy_or_release(
	    &h->slot_ready[cpu / 64], (uint64_t)1 << cpu % 64);
	return true;
}

/* S1 to S3 of the model: the row is open with this capacity, or it is not. */
static bool
set_capacity(struct eddy_heap *h, uint32_t cpu, uint32_t place, unsigned row,
    unsigned depth)
{
	struct eddy_row *r = eddy_cache_row(h, cpu, place);
	/* ROW-F2: pairs with a drainer's last CAS. */
	uint32_t gen = eddy_load_acquire(&r->gen);

	if (gen % 4 == EDDY_ROW_VIRGIN) {
		uint64_t zero = 0;
		uint64_t none = 0;
		uint32_t first = 1 << 2 | EDDY_ROW_OPEN;

		/*
		 * ROW-F1: zero limits are closed only while cur is 0 too, so
		 * they are closed for good first; a late CAS finds them so.
		 */
		(void)eddy_cas_release(&r->limits, &none, CLOSED);
		/* ROW-F1: after the limits. */
		if (!eddy_cas_acq_rel(
			&r->w0, &zero, (uint64_t)first << 32 | row_begin(row)))
			return false;
		gen = first;
	} else if (gen % 4 != EDDY_ROW_OPEN) {
		uint32_t next = (gen / 4 + 1) << 2 | EDDY_ROW_OPEN;

		/* ROW-F2: what the drainer saw, it saw before. */
		if (!eddy_cas_acquire(&r->gen, &gen, next))
			return false;
		gen = next;
	}
	/* Aborted or outdated: this operation takes the arena instead. */
	return eddy_section_limits(my_area(), (uintptr_t)h->slots, place, cpu,
		   gen, limits_of(row, depth)) == EDDY_SECTION_OK;
}

/* Bytes that the rows of a slot may hold. */
static size_t
promised(struct eddy_heap *h, uint32_t cpu, uint32_t home_place)
{
	size_t sum = 0;

	for (unsigned row = 1; row < EDDY_N_ROWS; row++)
		sum += capacity(eddy_cache_row(h, cpu, home_place + row * 16)) *
		       eddy_row_size(row);
	return sum;
}

/* Cuts other rows in turn until `more` bytes are to be had, or a few tries. */
static void
cut_others(struct eddy_heap *h, uint32_t cpu, uint32_t home_place, unsigned row,
    size_t more)
{
	struct eddy_slot_stats *stats = eddy_cache_stats(h, cpu);
	size_t budget = h->opts.cpu_cache_bytes;
	size_t sum = promised(h, cpu, home_place);

	for (unsigned i = 0; i < 8 && sum + more > budget; i++) {
		/* relaxed: any order of victims will do. */
		unsigned victim = (unsigned)(eddy_add_relaxed(&stats->hand, 1) %
					     (EDDY_N_ROWS - 1)) +
				  1;
		uint32_t place = home_place + victim * 16;
		unsigned had = capacity(eddy_cache_row(h, cpu, place));

		if (victim != row && had > eddy_classes[victim].batch &&
		    set_capacity(h, cpu, place, victim, had / 2))
			sum -= (had - had / 2) * eddy_row_size(victim);
	}
	/* relaxed: a statistic that decides who may grow. */
	eddy_store_relaxed(&stats->promised, sum);
}

/* A miss or an overflow more, of late. */
static void
remember(_Atomic uint32_t *mine, _Atomic uint32_t *other)
{
	/* relaxed, all: a rule of thumb; lost counts do no harm. */
	uint32_t n = eddy_load_relaxed(mine) + 1;
	uint32_t m = eddy_load_relaxed(other);

	if (n + m >= 64) {
		n /= 2;
		eddy_store_relaxed(other, m / 2);
	}
	eddy_store_relaxed(mine, n);
}

/*
 * Whether objects of the row come back to the CPU that they left: a row that
 * only misses has no use for more depth, and one that only overflows is
 * bleeding, which more depth makes worse.
 */
static bool
circulates(struct eddy_row_stats *s)
{
	/* relaxed, both: a rule of thumb. */
	uint32_t in = eddy_load_relaxed(&s->misses);
	uint32_t out = eddy_load_relaxed(&s->spills);

	return in <= 3 * out + 2 && out <= 3 * in;
}

/*
 * The row has missed or overflowed for the n-th time: more capacity, if it
 * makes sense and the budget has it; at others' cost only now and then, so
 * that rows which all want more do not take it from each other all the time.
 * Returns the capacity now, 0 if the row is to stay closed.
 */
static unsigned
grow(
    struct eddy_heap *h, uint32_t cpu, uint32_t place, unsigned row, uint64_t n)
{
	const struct eddy_class *class = &eddy_classes[row];
	struct eddy_slot_stats *stats = eddy_cache_stats(h, cpu);
	unsigned had = capacity(eddy_cache_row(h, cpu, place));
	unsigned least = class->batch * 2u;
	unsigned want = had == 0 ? least : had * 2;
	uint64_t sum;
	size_t more;

	if (want > class->depth)
		want = class->depth;
	if (had != 0 && !circulates(&stats->row[row])) {
		if (had <= least || n % 4 != 0)
			return had;
		want = least;
		if (!set_capacity(h, cpu, place, row, want))
			return had;
		/* relaxed: a statistic that decides who may grow. */
		(void)eddy_add_relaxed(
		    &stats->promised, -((uint64_t)(had - want) * class->size));
		return want;
	}
	if (want <= had)
		return had;
	more = (want - had) * (size_t) class->size;
	/* relaxed: a statistic that decides who may grow. */
	sum = eddy_load_relaxed(&stats->promised);
	if (sum + more > h->opts.cpu_cache_bytes) {
		if (n % 16 != 0)
			return had;
		cut_others(h, cpu, place - row * 16, row, more);
		/* relaxed: as above. */
		sum = eddy_load_relaxed(&stats->promised);
		if (sum + more > h->opts.cpu_cache_bytes)
			return had;
	}
	if (!set_capacity(h, cpu, place, row, want))
		return had;
	/* relaxed: as above; two at once add twice, until the next cut. */
	(void)eddy_add_relaxed(&stats->promised, more);
	return want;
}

static uint64_t
count(_Atomic uint64_t *counter)
{
	/* relaxed: a statistic. */
	return eddy_add_relaxed(counter, 1);
}

/* Whether this CPU may cache the row's objects at all. */
static bool
may_cache(struct eddy_heap *h, uint32_t cpu, unsigned row)
{
	return eddy_row_size(row) <= h->opts.tcache_max &&
	       slot_writable(h, cpu);
}

/* ------------------------------------------------------------------ */
/* Rows */

static struct eddy_arena *
local_arena(struct eddy_heap *h)
{
	return eddy_arena_of_home(h, 0);
}

/* The section was aborted: counts it, and says whether to try once more. */
static bool
again(struct eddy_heap *h, int result, unsigned *restarts)
{
	uint32_t cpu;

	if (result != EDDY_SECTION_ABORT || ++*restarts >= EDDY_RESTARTS)
		return false;
	if (current_cpu(h, &cpu) && eddy_cache_slot_used(h, cpu))
		(void)count(&eddy_cache_stats(h, cpu)->aborts);
	return eddy_area != NULL;
}

static int
push(struct eddy_heap *h, uint32_t place, void *p)
{
	unsigned restarts = 0;
	int r;

	do
		r = eddy_section_push(my_area(), (uintptr_t)h->slots, place, p);
	while (again(h, r, &restarts));
	return r;
}

static int
pop(struct eddy_heap *h, unsigned row, void **ret)
{
	unsigned restarts = 0;
	int r;

	do
		r = eddy_section_pop(
		    my_area(), (uintptr_t)h->slots, row * 16, ret);
	while (again(h, r, &restarts));
	return r;
}

/* Puts objects into the row, the last on top; what does not go, goes back. */
static void
stock(struct eddy_heap *h, uint32_t place, void **objects, unsigned n)
{
	unsigned restarts = 0;
	int r;

	do
		r = eddy_section_refill(
		    my_area(), (uintptr_t)h->slots, place, objects, n);
	while (again(h, r, &restarts));
	if (r != EDDY_SECTION_OK)
		eddy_arena_put(h, objects, n);
}

/* A batch out of slabs, the lowest address last, so that it comes out first. */
static unsigned
refill(struct eddy_heap *h, struct eddy_arena *a, unsigned row, void **objects,
    unsigned n)
{
	n = eddy_arena_refill(h, a, row, objects, n);
	for (unsigned i = 0; i < n / 2; i++) {
		void *p = objects[i];

		objects[i] = objects[n - 1 - i];
		objects[n - 1 - i] = p;
	}
	return n;
}

static void *
rows_alloc(struct eddy_heap *h, unsigned row)
{
	struct eddy_arena *a = local_arena(h);
	uint32_t place = (a->home * EDDY_HOME_ROWS + row) * 16;
	void *objects[EDDY_BATCH_MAX];
	unsigned batch = eddy_classes[row].batch;
	unsigned want = 0;
	unsigned n = 0;
	struct eddy_row_stats *s;
	uint32_t cpu;

	switch (pop(h, row, &objects[0])) {
	case EDDY_SECTION_OK:
		return objects[0];
	case EDDY_SECTION_FAIL:
		if (!current_cpu(h, &cpu) || !may_cache(h, cpu, row))
			break;
		s = &eddy_cache_stats(h, cpu)->row[row];
		remember(&s->misses, &s->spills);
		want = grow(h, cpu, place, row, count(&s->refills));
		n = eddy_returns_take(h, place, objects);
	}
	if (n == 0)
		n = refill(h, a, row, objects,
		    want == 0      ? 1
		    : want < batch ? want
				   : batch);
	if (n == 0)
		return NULL;
	if (n > 1)
		stock(h, place, objects, n - 1);
	return objects[n - 1];
}

/* A full row: the newest objects go on, p takes the place of one. */
static bool
make_space(struct eddy_heap *h, uint32_t place, unsigned row, void *p)
{
	void *objects[EDDY_BATCH_MAX];
	uint32_t n = eddy_classes[row].batch;
	unsigned restarts = 0;
	int r;

	do
		r = eddy_section_flush(
		    my_area(), (uintptr_t)h->slots, place, objects, &n);
	while (again(h, r, &restarts));
	if (r != EDDY_SECTION_OK)
		return false;
	r = push(h, place, p);
	if (!eddy_returns_put(h, place, objects, n))
		eddy_arena_put(h, objects, n);
	return r == EDDY_SECTION_OK;
}

static void
rows_free(struct eddy_heap *h, void *p, uint32_t tag)
{
	uint32_t place = eddy_tag_place(tag);
	unsigned row = eddy_tag_row(tag);
	struct eddy_row_stats *s;
	unsigned had;
	uint32_t cpu;

	switch (push(h, place, p)) {
	case EDDY_SECTION_OK:
		return;
	case EDDY_SECTION_FAIL:
		if (!current_cpu(h, &cpu) || !may_cache(h, cpu, row))
			break;
		had = capacity(eddy_cache_row(h, cpu, place));
		s = &eddy_cache_stats(h, cpu)->row[row];
		remember(&s->spills, &s->misses);
		if (grow(h, cpu, place, row, count(&s->overflows)) > had) {
			if (push(h, place, p) == EDDY_SECTION_OK)
				return;
		} else if (had != 0 && make_space(h, place, row, p)) {
			return;
		}
	}
	eddy_arena_put(h, &p, 1);
}

/* ------------------------------------------------------------------ */
/* Cells */

static struct eddy_cell_set *
my_cells(struct eddy_heap *h)
{
	uintptr_t self = (uintptr_t)__builtin_thread_pointer();

	/* HEAP-A2: the cells are writable. */
	if (!eddy_load_acquire(&h->cells_ready)) {
		if (eddy_os_commit(h->cells,
			h->n_cell_sets * sizeof(struct eddy_cell_set)) != 0)
			return NULL;
		/* HEAP-R2: they may be written from here on. */
		eddy_store_release(&h->cells_ready, 1);
	}
	/* One thread, one set; stacks and TLS blocks are pages apart. */
	return eddy_cache_cells(
	    h, (unsigned)((self >> 12 ^ self >> 19 ^ self >> 26) %
			  h->n_cell_sets));
}

/* Cells in use: 64 KiB a row, but for a few of the largest. */
static unsigned
n_cells(unsigned row)
{
	size_t n = ((size_t)64 << 10) / eddy_row_size(row);

	return n < 4 ? 4 : n > EDDY_N_CELLS ? EDDY_N_CELLS : (unsigned)n;
}

static void *
cells_alloc(struct eddy_heap *h, unsigned row)
{
	struct eddy_cell_set *set = my_cells(h);
	void *objects[EDDY_BATCH_MAX];
	unsigned want = 1;
	unsigned n;

	if (set != NULL && eddy_row_size(row) <= h->opts.tcache_max) {
		objects[0] = eddy_cells_get(&set->row[row]);
		if (objects[0] != NULL)
			return objects[0];
		(void)count(&set->stats.row[row].refills);
		want = eddy_classes[row].batch;
		if (want > n_cells(row) / 4)
			want = n_cells(row) / 4;
	}
	n = eddy_arena_refill(h, local_arena(h), row, objects, want);
	if (n == 0)
		return NULL;
	while (n > 1 &&
	       eddy_cells_put(&set->row[row], n_cells(row), objects[n - 1]))
		n--;
	if (n > 1)
		eddy_arena_put(h, objects + 1, n - 1);
	return objects[0];
}

static void
cells_free(struct eddy_heap *h, void *p, uint32_t tag)
{
	struct eddy_cell_set *set = my_cells(h);
	unsigned row = eddy_tag_row(tag);

	if (set != NULL && eddy_row_size(row) <= h->opts.tcache_max) {
		if (eddy_cells_put(&set->row[row], n_cells(row), p))
			return;
		(void)count(&set->stats.row[row].overflows);
	}
	eddy_arena_put(h, &p, 1);
}

/* ------------------------------------------------------------------ */

void *
eddy_cache_alloc(struct eddy_heap *h, unsigned row)
{
	void *p;

	switch (eddy_cache_attach(h)) {
	case EDDY_CACHE_ROWS:
		return rows_alloc(h, row);
	case EDDY_CACHE_CELLS:
		return cells_alloc(h, row);
	default:
		return eddy_arena_refill(h, local_arena(h), row, &p, 1) == 1
			   ? p
			   : NULL;
	}
}

void
eddy_cache_free(struct eddy_heap *h, void *p, uint32_t tag)
{
	switch (eddy_cache_attach(h)) {
	case EDDY_CACHE_ROWS:
		rows_free(h, p, tag);
		break;
	case EDDY_CACHE_CELLS:
		cells_free(h, p, tag);
		break;
	default:
		eddy_arena_put(h, &p, 1);
	}
}

static void
flush_rows(struct eddy_heap *h)
{
	uint32_t home_place = local_arena(h)->home * EDDY_HOME_ROWS * 16;

	for (unsigned row = 1; row < EDDY_N_ROWS; row++) {
		void *objects[EDDY_BATCH_MAX];
		unsigned restarts = 0;

		while (restarts < EDDY_RESTARTS) {
			uint32_t n = EDDY_BATCH_MAX;
			int r =
			    eddy_section_flush(my_area(), (uintptr_t)h->slots,
				home_place + row * 16, objects, &n);

			if (r == EDDY_SECTION_FAIL)
				break;
			if (r == EDDY_SECTION_ABORT)
				restarts++;
			else
				eddy_arena_put(h, objects, n);
		}
	}
}

void
eddy_cache_flush(struct eddy_heap *h)
{
	if (eddy_cache_attach(h) == EDDY_CACHE_ROWS)
		flush_rows(h);
	eddy_returns_sweep(h);
	eddy_cache_sweep_cells(h);
}

void
eddy_cache_sweep_cells(struct eddy_heap *h)
{
	/* HEAP-A2: else they were never written. */
	if (!eddy_load_acquire(&h->cells_ready))
		return;
	for (unsigned s = 0; s < h->n_cell_sets; s++) {
		struct eddy_cell_set *set = eddy_cache_cells(h, s);

		for (unsigned row = 1; row < EDDY_N_ROWS; row++) {
			for (unsigned i = 0; i < EDDY_N_CELLS; i++) {
				/* CELL-A1: as any get. */
				void *p = eddy_xchg_acquire(
				    &set->row[row].cell[i], NULL);

				if (p != NULL)
					eddy_arena_put(h, &p, 1);
			}
		}
	}
}
