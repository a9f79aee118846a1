/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/heap/cpu_cache.h"

#include "lib/heap/arena.h"
#include "lib/heap/gather.h"
#include "lib/heap/large.h"
#include "lib/heap/purge.h"
#include "lib/heap/reclaim.h"
#include "lib/heap/returns.h"
#include "lib/heap/warm.h"
#include "lib/os/os.h"
#include "numa/policy.h"
#include "numa/usable.h"

/* glibc's registration, where there is one (2.35 and later). */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

struct eddy_fast eddy_fast = {
    .rows = (uintptr_t)eddy_size_rows, .below = EDDY_ROW_MAX + 1};

__thread struct eddy_rseq *eddy_area;

/* The same for C alone: there while eddy_area is closed by the gate. */
static __thread struct eddy_rseq *c_area;
static __thread bool gated;

/* The thread's own area, where libc registers none. */
static __thread struct eddy_rseq own_area;
/* Dynamic TLS is freed while the kernel still writes to it. */
#ifdef EDDY_DYNAMIC_TLS
#	define OWN_AREA false
#else
#	define OWN_AREA true
#endif
/* No area for this thread: rseq refused, or taken by the program. */
static __thread bool refused;
/* CPUs in use from which on a quota matters: files are read for it. */
#define MIN_SHARED 4
/* The least that a CPU's cache may hold. */
#define MIN_BUDGET 65536
/* Empty descriptors that a CPU lays by. */
#define N_SPARES 4
/* What a row that lives on its ring takes from slabs: objects. */
#define SMALL_REFILL 16
/* Refills after which a home without memory is asked again. */
#define DRY_REFILLS 64
/* Rows cut, and seconds, until quota and affinity are looked at again. */
#define SHARE_EVERY   64
#define SHARE_SECONDS 1

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

static void
use_area(struct eddy_rseq *area)
{
	c_area = area;
	eddy_area = gated ? NULL : area;
}

void
eddy_cache_gate(bool closed)
{
	gated = closed;
	use_area(c_area);
}

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
	use_area(area);
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
	if (OWN_AREA && adopt(h, &own_area))
		return true;
	refused = true;
	return false;
}

enum eddy_cache_mode
eddy_cache_attach(struct eddy_heap *h)
{
	if (c_area != NULL)
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
		kept_area = c_area;
	use_area(NULL);
}

void
eddy_cache_resume(void)
{
	/* A handler's vfork may have interrupted a slow path that goes on. */
	if (--suspended == 0)
		use_area(kept_area);
}

/* An area that says CPU -1: sections find a slot that is never open. */
static struct eddy_rseq closed_area = {.cpu_id = (uint32_t)-1};

/* A handler may have found that the area is no longer registered. */
static struct eddy_rseq *
my_area(void)
{
	struct eddy_rseq *area = c_area;

	return eddy_likely(area != NULL) ? area : &closed_area;
}

bool
eddy_cache_cpu(struct eddy_heap *h, uint32_t *ret)
{
	if (c_area == NULL)
		return false;
	/* relaxed: the kernel writes it on this thread. */
	*ret = eddy_load_relaxed(&c_area->cpu_id);
	if (is_index(h, *ret))
		return true;
	/* Unregistered behind our back, or more CPUs than Linux told. */
	use_area(NULL);
	refused = true;
	return false;
}

/* ------------------------------------------------------------------ */
/* Homes */

uint32_t
eddy_cache_home(struct eddy_heap *h)
{
	uint32_t home;
	uint32_t cpu;
	int here;

	if (h->n_homes == 1)
		return 0;
	if (eddy_cache_cpu(h, &cpu)) {
		if (eddy_cache_slot_used(h, cpu))
			return eddy_cache_slot_home(h, cpu);
	} else {
		here = eddy_os_cpu();
		cpu = here >= 0 ? (uint32_t)here : 0;
	}
	home = eddy_placement_of_cpu(&h->places, cpu);
	return home < h->n_homes ? home : 0;
}

/* ------------------------------------------------------------------ */
/* Counters */

/* += n at an offset of this CPU's slot; lost only if it was never opened. */
static void
count(struct eddy_heap *h, size_t at, uint64_t n)
{
	for (unsigned i = 0; i < EDDY_RESTARTS; i++)
		if (eddy_section_add(my_area(), (uintptr_t)h->slots,
			(uint32_t)(EDDY_SLOT_STATS + at),
			n) != EDDY_SECTION_ABORT)
			break;
}

#define AT(field) offsetof(struct eddy_slot_stats, field)
#define AT_ROW(r, field)                                 \
	(AT(row) + (r) * sizeof(struct eddy_row_stats) + \
	    offsetof(struct eddy_row_stats, field))

/* ------------------------------------------------------------------ */
/* Capacity */

/*
 * Where the pointers of a row of the slot's own home lie.  An odd number of
 * cache lines apart, so that the tops of equally full rows do not meet in the
 * same set.
 */
static uint32_t
local_begin(unsigned row)
{
	const uint32_t at = EDDY_SLOT_LOCAL;
	const uint32_t skew = 5 * EDDY_CACHELINE;
	const uint32_t a = 1024 * 8 + skew;
	const uint32_t b = 512 * 8 + skew;
	const uint32_t c = 128 * 8 + EDDY_CACHELINE;
	const uint32_t d = 64 * 8 + EDDY_CACHELINE;

	const unsigned n_a = EDDY_N_FINE + 8; /* rows to 256 bytes */

	static_assert(
	    EDDY_SLOT_LOCAL +
		    (EDDY_N_FINE + 8) * (1024 * 8 + 5 * EDDY_CACHELINE) +
		    8 * (512 * 8 + 5 * EDDY_CACHELINE) +
		    8 * (128 * 8 + EDDY_CACHELINE) +
		    20 * (64 * 8 + EDDY_CACHELINE) + N_SPARES * 8 <=
		EDDY_SLOT_REMOTE,
	    "local rows end before the remote ones");
	if (row <= n_a)
		return at + (row - 1) * a;
	row -= n_a + 1;
	if (row < 8)
		return at + n_a * a + row * b;
	if (row < 16)
		return at + n_a * a + 8 * b + (row - 8) * c;
	return at + n_a * a + 8 * b + 8 * c + (row - 16) * d;
}

/* The same in a remote home's part: a batch each, without gaps. */
static uint32_t
remote_begin(unsigned row)
{
	uint32_t at = 0;

	static_assert(
	    EDDY_REMOTE_SIZE >=
		((EDDY_N_FINE + 16) * 64 +
		    (25 + 21 + 18 + 16 + 12 + 10 + 9 + 8) + 12 * 8 + 8 * 4) *
		    8,
	    "a batch of each row");
	for (unsigned i = 1; i < row; i++)
		at += eddy_classes[i].batch * 8u;
	return at;
}

static uint32_t
home_at(uint32_t place)
{
	return place / 16 / EDDY_HOME_ROWS;
}

uint32_t
eddy_cache_row_begin(struct eddy_heap *h, unsigned cpu, uint32_t place)
{
	unsigned row = place / 16 % EDDY_HOME_ROWS;
	uint32_t number = home_at(place);

	if (number == eddy_cache_slot_home(h, cpu))
		return local_begin(row);
	if (!eddy_is_group(h, number))
		return EDDY_SLOT_REMOTE + number * EDDY_REMOTE_SIZE +
		       remote_begin(row);
	number -= h->n_homes;
	return EDDY_SLOT_REMOTE +
	       (h->n_homes + number * EDDY_GROUP_BATCHES) * EDDY_REMOTE_SIZE +
	       remote_begin(row) * EDDY_GROUP_BATCHES;
}

/* What each CPU's cache may hold: less where the process may not use as many
 * CPUs at once as its threads have been seen on. */
static void
share_budget(struct eddy_heap *h)
{
	uint64_t all = h->opts.cpu_cache_bytes;
	unsigned used = 0;
	uint64_t usable;

	if (eddy_frozen(h))
		return;
	for (unsigned i = 0; i < EDDY_MAX_CPUS / 64; i++) {
		/* relaxed: a count. */
		used += (unsigned)__builtin_popcountll(
		    eddy_load_relaxed(&h->slot_ready[i]));
	}
	usable = used >= MIN_SHARED ? eddy_usable_quota("") : used;
	if (usable < used)
		all = all * usable / used;
	/* relaxed: any moment's answer is good. */
	eddy_store_relaxed(&h->cpu_budget, all > MIN_BUDGET ? all : MIN_BUDGET);
}

/* The same, if the last time is long ago. */
static void
share_again(struct eddy_heap *h)
{
	/* relaxed, all: whoever moves the clock on does it. */
	uint32_t last = eddy_load_relaxed(&h->budget_time);
	uint32_t now = eddy_os_seconds();

	if (now - last >= SHARE_SECONDS &&
	    eddy_cas_relaxed(&h->budget_time, &last, now))
		share_budget(h);
}

static bool
slot_writable(struct eddy_heap *h, uint32_t cpu)
{
	struct eddy_row *zero = eddy_cache_row(h, cpu, 0);
	uint64_t none = 0;
	unsigned home;

	if (eddy_cache_slot_used(h, cpu))
		return true;
	home = h->n_homes > 1 ? eddy_placement_of_cpu(&h->places, cpu) : 0;
	if (home >= h->n_homes ||
	    eddy_os_commit(zero, eddy_cache_slot_size(h)) != 0)
		return false;
	if (h->places.bind && !h->places.interleave &&
	    eddy_policy_bind(zero, EDDY_SLOT_SIZE,
		(unsigned)h->places.node_of_home[home]) != 0)
		/* relaxed: a count. */
		(void)eddy_add_relaxed(&h->n_unplaced, 1);
	/* relaxed: HEAP-R2. */
	eddy_store_relaxed(&zero->beg, 1);
	/*
	 * Once: of two that come to different homes one wins.  cur is 1 so that
	 * home 0 is told from none; the row is closed all the same.
	 * relaxed: HEAP-R2.
	 */
	(void)eddy_cas_relaxed(
	    &zero->w0, &none, (uint64_t)eddy_place(home, 0) << 32 | 1);
	/* HEAP-R2 and IDLE-R1: the slot may be written from here on; before a
	 * row there opens. */
	(void)eddy_or_seq_cst(
	    &h->slot_ready[cpu / 64], (uint64_t)1 << cpu % 64);
	share_budget(h);
	return true;
}

/* S1 to S3 of the model.  opened: it was not open before. */
static bool
set_row(
    const struct eddy_row_at *at, uint32_t cpu, unsigned depth, bool *opened)
{
	struct eddy_row *r = eddy_row_header(at, cpu);
	uint32_t beg = at->beg;
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
		(void)eddy_cas_release(&r->limits, &none, EDDY_ROW_CLOSED);
		/* ROW-F1: after the limits.  IDLE-R1: before the watch. */
		if (!eddy_cas_seq_cst(
			&r->w0, &zero, (uint64_t)first << 32 | beg))
			return false;
		gen = first;
		*opened = true;
	} else if (gen % 4 != EDDY_ROW_OPEN) {
		uint32_t next = (gen / 4 + 1) << 2 | EDDY_ROW_OPEN;

		/* ROW-F2: what the drainer saw, it saw before.  IDLE-R1. */
		if (!eddy_cas_seq_cst(&r->gen, &gen, next))
			return false;
		gen = next;
		*opened = true;
	}
	/* Aborted or outdated: this operation takes the arena instead. */
	return eddy_section_limits(my_area(), at->slots, at->place, cpu, gen,
		   (uint64_t)beg << 32 | (beg + depth * 8)) == EDDY_SECTION_OK;
}

bool
eddy_row_set(struct eddy_heap *h, const struct eddy_row_at *at, uint32_t cpu,
    unsigned depth)
{
	bool opened = false;
	bool set = set_row(at, cpu, depth, &opened);

	if (opened)
		eddy_gather_watch(h);
	return set;
}

/* The same of a row of the heap's. */
static bool
set_capacity(struct eddy_heap *h, uint32_t cpu, uint32_t place, unsigned depth)
{
	const struct eddy_row_at at = {
	    (uintptr_t)h->slots, place, eddy_cache_row_begin(h, cpu, place)};

	return eddy_row_set(h, &at, cpu, depth);
}

uint64_t
eddy_row_sum(const struct eddy_row_at *at, unsigned cpu, bool *any)
{
	/* IDLE-A1: after it was said that nobody looks. */
	uint64_t w = eddy_load_seq_cst(&eddy_row_header(at, cpu)->w0);
	uint64_t phase = (w >> 32) % 4;

	*any |= phase == EDDY_ROW_OPEN || phase == EDDY_ROW_STOPPING ||
		(phase == EDDY_ROW_DRAINED && (uint32_t)w > at->beg);
	return w;
}

/*
 * Bytes that the rows of a slot's own home may hold.  Remote rows are bounded
 * by themselves, a batch each: charged here, those of a few homes would leave
 * nothing for the others.
 */
static size_t
promised(struct eddy_heap *h, uint32_t cpu)
{
	uint32_t home = eddy_cache_slot_home(h, cpu);
	size_t sum = 0;

	for (unsigned row = 1; row < EDDY_N_ROWS; row++)
		sum += eddy_cache_capacity(
			   eddy_cache_row(h, cpu, eddy_place(home, row))) *
		       eddy_row_size(row);
	return sum;
}

void
eddy_cache_recount(struct eddy_heap *h, uint32_t cpu)
{
	/* relaxed: a statistic that decides who may grow. */
	eddy_store_relaxed(
	    &eddy_cache_stats(h, cpu)->promised, promised(h, cpu));
}

/*
 * What a row may hold whatever the budget says: without it each object would go
 * to its slab alone, 20 times as slow.
 */
static unsigned
floor_of(unsigned row)
{
	size_t n = EDDY_SMALL_BATCH / eddy_row_size(row);

	return n >= eddy_classes[row].batch ? eddy_classes[row].batch
	       : n != 0                     ? (unsigned)n
					    : 1;
}

/* Cuts other rows in turn until `more` bytes are to be had, or a few tries. */
static void
cut_others(struct eddy_heap *h, uint32_t cpu, uint32_t place, size_t more)
{
	struct eddy_slot_stats *stats = eddy_cache_stats(h, cpu);
	uint32_t home = eddy_cache_slot_home(h, cpu);
	/* relaxed: any moment's answer is good. */
	size_t budget = eddy_load_relaxed(&h->cpu_budget);
	size_t sum = promised(h, cpu);

	for (unsigned i = 0; i < 8 && sum + more > budget; i++) {
		/* relaxed: any order of victims will do. */
		uint64_t hand = eddy_add_relaxed(&stats->hand, 1);
		unsigned victim = (unsigned)(hand % (EDDY_N_ROWS - 1)) + 1;
		uint32_t at = eddy_place(home, victim);
		unsigned had = eddy_cache_capacity(eddy_cache_row(h, cpu, at));
		unsigned least = floor_of(victim);
		unsigned left = had / 2 > least ? had / 2 : least;

		if (hand % SHARE_EVERY == 0)
			share_again(h);
		if (at != place && had > least &&
		    set_capacity(h, cpu, at, left))
			sum -= (had - left) * eddy_row_size(victim);
	}
	/* relaxed: a statistic that decides who may grow. */
	eddy_store_relaxed(&stats->promised, sum);
}

void
eddy_row_note(_Atomic uint32_t *mine, _Atomic uint32_t *other)
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
 * Whether bytes are to be had for a row that has missed or overflowed n times:
 * at others' cost only now and then, so that rows which all want more do not
 * take it from each other all the time.
 */
static bool
afford(
    struct eddy_heap *h, uint32_t cpu, uint32_t place, size_t more, uint64_t n)
{
	struct eddy_slot_stats *stats = eddy_cache_stats(h, cpu);
	/* relaxed, all: statistics that decide who may grow. */
	size_t budget = eddy_load_relaxed(&h->cpu_budget);

	if (eddy_load_relaxed(&stats->promised) + more <= budget)
		return true;
	if (n % 16 != 0)
		return false;
	cut_others(h, cpu, place, more);
	return eddy_load_relaxed(&stats->promised) + more <= budget;
}

unsigned
eddy_row_aim(struct eddy_row_stats *s, unsigned row, unsigned had, uint64_t n)
{
	const struct eddy_class *class = &eddy_classes[row];
	unsigned least = class->batch;

	if (least * class->size <= EDDY_SMALL_BATCH)
		least *= 2;
	if (had < least)
		return least;
	if (circulates(s))
		return had * 2 < class->depth ? had * 2 : class->depth;
	return n % 4 == 0 ? least : had;
}

/*
 * The row has missed or overflowed for the n-th time: another capacity, if it
 * makes sense and the budget has it.  Returns what it is now.
 */
static unsigned
grow(
    struct eddy_heap *h, uint32_t cpu, uint32_t place, unsigned row, uint64_t n)
{
	struct eddy_slot_stats *stats = eddy_cache_stats(h, cpu);
	bool local = home_at(place) == eddy_cache_slot_home(h, cpu);
	unsigned had = eddy_cache_capacity(eddy_cache_row(h, cpu, place));
	unsigned want = eddy_is_group(h, home_at(place))
			    ? eddy_cache_group_depth(row)
			    : eddy_classes[row].batch;
	size_t size = eddy_row_size(row);

	if (local) {
		want = eddy_row_aim(&stats->row[row], row, had, n);
		if (want > had &&
		    !afford(h, cpu, place, (want - had) * size, n))
			want = had > floor_of(row) ? had : floor_of(row);
	}
	if (want == had || !set_capacity(h, cpu, place, want))
		return had;
	/*
	 * relaxed: a statistic that decides who may grow; two at once add
	 * twice, until the next cut.
	 */
	if (local)
		(void)eddy_add_relaxed(&stats->promised,
		    (uint64_t)want * size - (uint64_t)had * size);
	return want;
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

/* The section was aborted: counts it, and says whether to try once more. */
static bool
again(struct eddy_heap *h, int result, unsigned *restarts)
{
	if (result != EDDY_SECTION_ABORT || ++*restarts >= EDDY_RESTARTS)
		return false;
	count(h, AT(aborts), 1);
	return c_area != NULL;
}

int
eddy_row_try_pop(uintptr_t slots, uint32_t place, void **ret)
{
	return eddy_section_pop_at(my_area(), slots, place, ret);
}

int
eddy_row_try_push(uintptr_t slots, uint32_t place, void *p)
{
	return eddy_section_push(my_area(), slots, place, p);
}

int
eddy_row_push(struct eddy_heap *h, uintptr_t slots, uint32_t place, void *p)
{
	unsigned restarts = 0;
	int r;

	do
		r = eddy_section_push(my_area(), slots, place, p);
	while (again(h, r, &restarts));
	return r;
}

int
eddy_row_pop(struct eddy_heap *h, uintptr_t slots, uint32_t place, void **ret)
{
	unsigned restarts = 0;
	int r;

	do
		r = eddy_section_pop_at(my_area(), slots, place, ret);
	while (again(h, r, &restarts));
	return r;
}

int
eddy_row_push_many(struct eddy_heap *h, uintptr_t slots, uint32_t place,
    void *const *objects, unsigned n)
{
	unsigned restarts = 0;
	int r;

	do
		r = eddy_section_refill(my_area(), slots, place, objects, n);
	while (again(h, r, &restarts));
	return r;
}

int
eddy_row_pop_many(struct eddy_heap *h, uintptr_t slots, uint32_t place,
    void **objects, uint32_t *n)
{
	unsigned restarts = 0;
	int r;

	do
		r = eddy_section_flush(my_area(), slots, place, objects, n);
	while (again(h, r, &restarts));
	return r;
}

static int
push(struct eddy_heap *h, uint32_t place, void *p)
{
	return eddy_row_push(h, (uintptr_t)h->slots, place, p);
}

/* One object of the row of the slot's own home. */
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

/* To slabs and runs, counted. */
static void
to_slabs(struct eddy_heap *h, void *const *objects, unsigned n)
{
	count(h, AT(rmws), eddy_arena_put(h, objects, n));
	count(h, AT(to_slabs), n);
}

static void send_home(struct eddy_heap *h, uint32_t cpu, uint32_t place,
    void **objects, unsigned n);

/*
 * Puts objects into the row, the last on top.  Of more than it may hold the
 * first go back where others find them.
 */
static void
stock(struct eddy_heap *h, uint32_t cpu, uint32_t place, void **objects,
    unsigned n)
{
	unsigned room = eddy_cache_capacity(eddy_cache_row(h, cpu, place));
	unsigned back = n > room ? n - room : 0;

	if (back < n && eddy_row_push_many(h, (uintptr_t)h->slots, place,
			    objects + back, n - back) == EDDY_SECTION_OK)
		n = back;
	if (n != 0)
		send_home(h, cpu, place, objects, n);
}

/* A batch of the home's, out of its ring or its slabs, the first to be used
 * last; 0: its arena has no memory. */
static unsigned
refill(struct eddy_heap *h, uint32_t home, unsigned row, void **objects,
    unsigned n)
{
	/* relaxed, both: a rule of thumb. */
	uint32_t dry = eddy_load_relaxed(&h->gathers[home].dry);
	struct eddy_arena *a;

	if (!eddy_likely(dry == 0)) {
		eddy_store_relaxed(&h->gathers[home].dry, dry - 1);
		return 0;
	}
	a = eddy_arena_of_home(h, home);
	if (a == NULL)
		return 0;
	/* Before there is a batch in hand. */
	eddy_gather_note(h, a);
	eddy_reclaim_share(h);
	n = eddy_arena_refill(h, a, row, objects, n);
	/* The lowest address first. */
	for (unsigned i = 0; i < n / 2; i++) {
		void *p = objects[i];

		objects[i] = objects[n - 1 - i];
		objects[n - 1 - i] = p;
	}
	return n;
}

static struct eddy_cell_set *my_cells(struct eddy_heap *h, uint32_t home);

/* One object of another home's that is cached, without its slabs. */
static void *
cached_of(struct eddy_heap *h, uint32_t home, unsigned row)
{
	uint32_t place = eddy_place(home, row);
	void *objects[EDDY_BATCH_MAX];
	struct eddy_carry c = {0};
	struct eddy_cell_set *set;
	uint32_t n = 1;

	switch (eddy_cache_attach(h)) {
	case EDDY_CACHE_ROWS:
		break;
	case EDDY_CACHE_CELLS:
		set = my_cells(h, home);
		return set != NULL ? eddy_cells_get(&set->row[row]) : NULL;
	default:
		return NULL;
	}
	if (eddy_section_flush(my_area(), (uintptr_t)h->slots, place, objects,
		&n) == EDDY_SECTION_OK)
		return objects[0];
	n = eddy_returns_take(h, place, objects, &c);
	if (n > 1 &&
	    eddy_returns_put(h, place, objects, n - 1, &c) == EDDY_PUT_NOWHERE)
		to_slabs(h, objects, n - 1);
	eddy_returns_drop(h, &c);
	return n != 0 ? objects[n - 1] : NULL;
}

/*
 * The home has no memory: one object from another, lest memory of theirs gets
 * into a row; then from what can be called home from caches everywhere.
 */
static EDDY_COLD void *
borrow(struct eddy_heap *h, uint32_t home, unsigned row)
{
	uint32_t n = eddy_n_numbers(h);
	void *p;

	if (n > 1) /* relaxed: a rule of thumb. */
		eddy_store_relaxed(&h->gathers[home].dry, DRY_REFILLS);
	for (uint32_t i = 1; i < n; i++) {
		uint32_t other = (home + i) % n;

		if (!eddy_is_there(h, other))
			continue;
		p = cached_of(h, other, row);
		if (p != NULL || refill(h, other, row, &p, 1) != 0)
			return p;
	}
	eddy_gather_all(h);
	if (!eddy_frozen(h))
		(void)eddy_purge(h, 0);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t other = (home + i) % n;

		if (!eddy_is_there(h, other))
			continue;
		/* relaxed: now each is asked. */
		eddy_store_relaxed(&h->gathers[other].dry, 0);
		if (refill(h, other, row, &p, 1) != 0)
			return p;
	}
	return NULL;
}

/*
 * How many objects to take from slabs for a row that may hold so many.  Runs
 * are claimed one by one, so there is nothing to be had by taking more.  A row
 * whose objects come back by the ring asks for few, since what it takes goes
 * round with the others from then on.
 */
static unsigned
modest(struct eddy_row_stats *s, unsigned row, unsigned capacity)
{
	unsigned n = eddy_classes[row].batch;

	if (capacity == 0 || row >= EDDY_ROW_RUN)
		return 1;
	if (n > capacity)
		n = capacity;
	/* relaxed, both: a rule of thumb. */
	if (n > SMALL_REFILL &&
	    eddy_load_relaxed(&s->back) > eddy_load_relaxed(&s->in) / 2)
		n = SMALL_REFILL;
	return n;
}

/*
 * An empty descriptor that an earlier operation on this CPU laid by, on a row
 * of its own: taking and putting one costs no RMW.
 */
void
eddy_cache_carry_from(struct eddy_heap *h, struct eddy_carry *c)
{
	void *p;

	*c = (struct eddy_carry){0};
	if (pop(h, EDDY_SPARE_ROW, &p) == EDDY_SECTION_OK)
		c->spare = (uint32_t)(uintptr_t)p;
}

void
eddy_cache_carry_to(struct eddy_heap *h, uint32_t cpu, struct eddy_carry *c)
{
	bool used = eddy_cache_slot_used(h, cpu);
	uint32_t place =
	    used ? eddy_place(eddy_cache_slot_home(h, cpu), EDDY_SPARE_ROW) : 0;
	void *p = (void *)(uintptr_t)c->spare;

	if (p != NULL && used &&
	    (push(h, place, p) == EDDY_SECTION_OK ||
		(eddy_cache_capacity(eddy_cache_row(h, cpu, place)) == 0 &&
		    set_capacity(h, cpu, place, N_SPARES) &&
		    push(h, place, p) == EDDY_SECTION_OK)))
		c->spare = 0;
	eddy_returns_drop(h, c);
	if (c->rmws != 0)
		count(h, AT(rmws), c->rmws);
}

/*
 * A batch from the ring of a home or group, or objects from its slabs, for a
 * row that may hold so many.
 */
static unsigned
restock(struct eddy_heap *h, uint32_t cpu, uint32_t home, unsigned row,
    void **objects, unsigned capacity)
{
	struct eddy_row_stats *s = &eddy_cache_stats(h, cpu)->row[row];
	struct eddy_carry c;
	unsigned got = 0;

	if (capacity != 0) {
		eddy_cache_carry_from(h, &c);
		got = eddy_returns_take(h, eddy_place(home, row), objects, &c);
		eddy_cache_carry_to(h, cpu, &c);
	}
	if (got != 0) {
		count(h, AT(ring_takes), 1);
		count(h, AT_ROW(row, back), got);
	} else {
		got = refill(h, home, row, objects, modest(s, row, capacity));
	}
	count(h, AT_ROW(row, in), got);
	return got;
}

static void *
rows_alloc(struct eddy_heap *h, unsigned row)
{
	void *objects[EDDY_BATCH_MAX];
	struct eddy_row_stats *s;
	uint32_t home;
	uint32_t cpu;
	unsigned want;
	unsigned n;

	switch (pop(h, row, &objects[0])) {
	case EDDY_SECTION_OK:
		return objects[0];
	case EDDY_SECTION_FAIL:
		if (!eddy_cache_cpu(h, &cpu) || !may_cache(h, cpu, row))
			break;
		home = eddy_cache_slot_home(h, cpu);
		s = &eddy_cache_stats(h, cpu)->row[row];
		eddy_row_note(&s->misses, &s->spills);
		/* relaxed: about how often. */
		want = grow(h, cpu, eddy_place(home, row), row,
		    eddy_load_relaxed(&s->refills));
		count(h, AT_ROW(row, refills), 1);
		n = restock(h, cpu, home, row, objects, want);
		if (n == 0)
			return borrow(h, home, row);
		if (n > 1)
			stock(h, cpu, eddy_place(home, row), objects, n - 1);
		return objects[n - 1];
	}
	home = eddy_cache_home(h);
	if (refill(h, home, row, objects, 1) != 0)
		return objects[0];
	return borrow(h, home, row);
}

/*
 * Its arena has no memory: it is not asked again for a while, and the object
 * comes from where malloc has them.
 */
static EDDY_COLD void *
elsewhere(struct eddy_heap *h, uint32_t number, unsigned row)
{
	/* relaxed: a rule of thumb. */
	eddy_store_relaxed(&h->gathers[number].dry, DRY_REFILLS);
	return eddy_cache_alloc(h, row);
}

/* As rows_alloc, by the row of another number than the slot's home. */
static void *
rows_alloc_of(struct eddy_heap *h, uint32_t number, unsigned row)
{
	uint32_t place = eddy_place(number, row);
	void *objects[EDDY_BATCH_MAX];
	uint32_t cpu;
	unsigned want;
	unsigned n;

	switch (eddy_row_pop(h, (uintptr_t)h->slots, place, &objects[0])) {
	case EDDY_SECTION_OK:
		return objects[0];
	case EDDY_SECTION_FAIL:
		if (!eddy_cache_cpu(h, &cpu) || !may_cache(h, cpu, row))
			break;
		/* It has one, or the row could not be told from that of none.
		 */
		if (eddy_arena_of_home(h, number) == NULL)
			return elsewhere(h, number, row);
		want = grow(h, cpu, place, row, 0);
		count(h, AT_ROW(row, refills), 1);
		n = restock(h, cpu, number, row, objects, want);
		if (n == 0)
			return elsewhere(h, number, row);
		if (n > 1)
			stock(h, cpu, place, objects, n - 1);
		return objects[n - 1];
	}
	return refill(h, number, row, objects, 1) != 0
		   ? objects[0]
		   : elsewhere(h, number, row);
}

/* A batch on its way home: by the ring, or to its slabs. */
static void
send_home(struct eddy_heap *h, uint32_t cpu, uint32_t place, void **objects,
    unsigned n)
{
	struct eddy_carry c;
	enum eddy_put put;

	eddy_cache_carry_from(h, &c);
	put = eddy_returns_put(h, place, objects, n, &c);
	eddy_cache_carry_to(h, cpu, &c);
	if (put != EDDY_PUT_NOWHERE)
		count(h, AT(ring_puts), 1);
	if (put == EDDY_PUT_SPILL)
		count(h, AT(ring_spills), 1);
	if (put == EDDY_PUT_NOWHERE)
		to_slabs(h, objects, n);
}

/* A full row: the newest objects go on, p takes the place of one. */
static bool
make_space(
    struct eddy_heap *h, uint32_t cpu, uint32_t place, unsigned row, void *p)
{
	uint32_t own = eddy_cache_slot_home(h, cpu);
	uint32_t to = eddy_base_home(h, home_at(place));
	bool local = eddy_is_own(h, own, home_at(place));
	void *objects[EDDY_BATCH_MAX];
	uint32_t n = eddy_classes[row].batch;
	int r = eddy_row_pop_many(h, (uintptr_t)h->slots, place, objects, &n);

	if (r != EDDY_SECTION_OK)
		return false;
	r = push(h, place, p);
	send_home(h, cpu, place, objects, n);
	count(h, local ? AT_ROW(row, out) : AT_ROW(row, away), n);
	count(h, AT(to_home) + (local ? own : to) * sizeof(uint64_t), n);
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

	if (eddy_tag_home(tag) >= h->n_with_rows) {
		/* Of an arena that the program created. */
		(void)eddy_arena_put(h, &p, 1);
		return;
	}
	switch (push(h, place, p)) {
	case EDDY_SECTION_OK:
		return;
	case EDDY_SECTION_FAIL:
		if (!eddy_cache_cpu(h, &cpu) || !may_cache(h, cpu, row))
			break;
		had = eddy_cache_capacity(eddy_cache_row(h, cpu, place));
		s = &eddy_cache_stats(h, cpu)->row[row];
		if (home_at(place) == eddy_cache_slot_home(h, cpu))
			eddy_row_note(&s->spills, &s->misses);
		count(h, AT_ROW(row, overflows), 1);
		/* relaxed: about how often. */
		if (grow(h, cpu, place, row, eddy_load_relaxed(&s->overflows)) >
		    had) {
			if (push(h, place, p) == EDDY_SECTION_OK)
				return;
		} else if (had != 0 && make_space(h, cpu, place, row, p)) {
			return;
		}
	}
	to_slabs(h, &p, 1);
}

/* ------------------------------------------------------------------ */
/* Cells */

static struct eddy_cell_set *
my_cells(struct eddy_heap *h, uint32_t home)
{
	uintptr_t self = (uintptr_t)__builtin_thread_pointer();

	/* HEAP-A2: the cells are writable. */
	if (!eddy_load_acquire(&h->cells_ready)) {
		if (eddy_os_commit(
			h->cells, (size_t)h->n_with_rows * h->n_cell_sets *
				      sizeof(struct eddy_cell_set)) != 0)
			return NULL;
		/* HEAP-R2 and IDLE-R1: they may be written from here on; before
		 * one is filled. */
		(void)eddy_xchg_seq_cst(&h->cells_ready, 1);
	}
	/* One thread, one set; stacks and TLS blocks are pages apart. */
	return eddy_cache_cells(
	    h, home * h->n_cell_sets +
		   (unsigned)((self >> 12 ^ self >> 19 ^ self >> 26) %
			      h->n_cell_sets));
}

/* Cells in use: 64 KiB a row, but for a few of the largest. */
static unsigned
n_cells(unsigned row)
{
	size_t n = ((size_t)64 << 10) / eddy_row_size(row);

	return n < 4 ? 4 : n > EDDY_N_CELLS ? EDDY_N_CELLS : (unsigned)n;
}

/* Claim mode has no sections to count with.  relaxed: a statistic. */
static void
count_cell(_Atomic uint64_t *counter, uint64_t n)
{
	(void)eddy_add_relaxed(counter, n);
}

static void *
cells_alloc(struct eddy_heap *h, uint32_t home, unsigned row)
{
	struct eddy_cell_set *set = my_cells(h, home);
	void *objects[EDDY_BATCH_MAX];
	unsigned want = 1;
	unsigned n;
	void *p;

	if (set != NULL && eddy_row_size(row) <= h->opts.tcache_max) {
		objects[0] = eddy_cells_get(&set->row[row]);
		if (objects[0] != NULL)
			return objects[0];
		count_cell(&set->stats.row[row].refills, 1);
		want = eddy_classes[row].batch;
		if (want > n_cells(row) / 4)
			want = n_cells(row) / 4;
	}
	n = refill(h, home, row, objects, want);
	if (n == 0)
		return eddy_is_group(h, home) ? elsewhere(h, home, row)
					      : borrow(h, home, row);
	if (want > 1)
		count_cell(&set->stats.row[row].in, n);
	p = objects[--n];
	while (n > 0 &&
	       eddy_cells_put(&set->row[row], n_cells(row), objects[n - 1]))
		n--;
	if (n > 0)
		(void)eddy_arena_put(h, objects, n);
	if (want > 1)
		eddy_gather_watch(h);
	return p;
}

static void
cells_free(struct eddy_heap *h, void *p, uint32_t tag)
{
	struct eddy_cell_set *set;
	uint32_t home = eddy_tag_home(tag);
	unsigned row = eddy_tag_row(tag);

	set = home < h->n_with_rows ? my_cells(h, home) : NULL;
	if (set != NULL && eddy_row_size(row) <= h->opts.tcache_max) {
		if (eddy_cells_put(&set->row[row], n_cells(row), p)) {
			eddy_gather_watch(h);
			return;
		}
		count_cell(&set->stats.row[row].overflows, 1);
		count_cell(&set->stats.row[row].out, 1);
	}
	(void)eddy_arena_put(h, &p, 1);
}

/* ------------------------------------------------------------------ */

void *
eddy_cache_alloc(struct eddy_heap *h, unsigned row)
{
	uint32_t home;
	void *p;

	switch (eddy_cache_attach(h)) {
	case EDDY_CACHE_ROWS:
		return rows_alloc(h, row);
	case EDDY_CACHE_CELLS:
		return cells_alloc(h, eddy_cache_home(h), row);
	default:
		home = eddy_cache_home(h);
		return refill(h, home, row, &p, 1) == 1 ? p
							: borrow(h, home, row);
	}
}

void *
eddy_cache_alloc_of(struct eddy_heap *h, uint32_t number, unsigned row)
{
	void *p;

	if (number == eddy_cache_home(h))
		return eddy_cache_alloc(h, row);
	switch (eddy_cache_attach(h)) {
	case EDDY_CACHE_ROWS:
		return rows_alloc_of(h, number, row);
	case EDDY_CACHE_CELLS:
		return cells_alloc(h, number, row);
	default:
		return refill(h, number, row, &p, 1) == 1
			   ? p
			   : elsewhere(h, number, row);
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
		(void)eddy_arena_put(h, &p, 1);
	}
}

void *
eddy_cache_large(struct eddy_heap *h, size_t size, size_t align, bool zero)
{
	uint32_t home = eddy_cache_home(h);
	uint32_t n = eddy_n_numbers(h);

	/* What no arena can ever have is not worth emptying caches for. */
	if (size > (size_t)h->n_chunks * EDDY_CHUNK ||
	    align > (size_t)h->n_chunks * EDDY_CHUNK_PAGES)
		return NULL;
	for (unsigned tries = 0; tries < 2; tries++) {
		for (uint32_t i = 0; i < n; i++) {
			uint32_t other = (home + i) % n;
			struct eddy_arena *a;
			void *p;

			if (!eddy_is_there(h, other))
				continue;
			a = eddy_arena_of_home(h, other);
			if (a == NULL)
				continue;
			eddy_gather_note(h, a);
			p = eddy_large_alloc(h, a, size, align, zero);
			if (p != NULL)
				return p;
		}
		if (tries == 0) {
			eddy_gather_all(h);
			if (!eddy_frozen(h))
				(void)eddy_purge(h, 0);
		}
	}
	return NULL;
}

void *
eddy_cache_large_of(
    struct eddy_heap *h, uint32_t number, size_t size, size_t align, bool zero)
{
	struct eddy_arena *a = eddy_arena_of_home(h, number);

	if (a == NULL)
		return NULL;
	eddy_gather_note(h, a);
	return eddy_large_alloc(h, a, size, align, zero);
}

void
eddy_cache_prepare(struct eddy_heap *h)
{
	uint64_t set[EDDY_MAX_CPUS / 64] = {0};
	int n = eddy_os_affinity(eddy_os_pid(), set, sizeof(set));

	eddy_returns_prepare(h);
	if (!h->sections) {
		(void)my_cells(h, 0);
		return;
	}
	for (uint32_t cpu = 0; n > 0 && cpu < h->n_slots; cpu++)
		if (set[cpu / 64] >> cpu % 64 & 1)
			(void)slot_writable(h, cpu);
}

static void
flush_row(struct eddy_heap *h, uint32_t place)
{
	void *objects[EDDY_BATCH_MAX];
	unsigned restarts = 0;

	while (restarts < EDDY_RESTARTS) {
		uint32_t n = EDDY_BATCH_MAX;
		int r = eddy_section_flush(
		    my_area(), (uintptr_t)h->slots, place, objects, &n);

		if (r == EDDY_SECTION_FAIL)
			break;
		if (r == EDDY_SECTION_ABORT)
			restarts++;
		else
			(void)eddy_arena_put(h, objects, n);
	}
}

void
eddy_cache_flush(struct eddy_heap *h)
{
	if (eddy_cache_attach(h) != EDDY_CACHE_ROWS)
		return;
	for (uint32_t home = 0; home < eddy_n_numbers(h); home++)
		for (unsigned row = 1; row < EDDY_N_ROWS; row++)
			flush_row(h, eddy_place(home, row));
}

static void
sweep_cells(struct eddy_heap *h, struct eddy_cells *cells)
{
	for (unsigned i = 0; i < EDDY_N_CELLS; i++) {
		void *p;

		/* relaxed: as any get; sets that nobody uses stay unwritten. */
		if (eddy_load_relaxed(&cells->cell[i]) == NULL)
			continue;
		/* CELL-A1: as any get. */
		p = eddy_xchg_acquire(&cells->cell[i], NULL);
		if (p != NULL)
			(void)eddy_arena_put(h, &p, 1);
	}
}

void
eddy_cache_sweep_cells(struct eddy_heap *h, uint32_t home)
{
	unsigned first = home * h->n_cell_sets;

	/* HEAP-A2: else they were never written. */
	if (!eddy_load_acquire(&h->cells_ready))
		return;
	for (unsigned s = first; s < first + h->n_cell_sets; s++)
		for (unsigned row = 1; row < EDDY_N_ROWS; row++)
			sweep_cells(h, &eddy_cache_cells(h, s)->row[row]);
}
