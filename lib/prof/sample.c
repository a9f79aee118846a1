/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/prof/sample.h"

#include "lib/heap/arena.h"
#include "lib/os/os.h"
#include "lib/prof/dump.h"
#include "lib/prof/records.h"
#include "lib/prof/traces.h"
#include "lib/prof/unwind.h"
#include "lib/prof/weights.h"

typedef void (*backtrace_hook)(void **, unsigned *, unsigned);
typedef void (*sample_hook)(const void *, size_t, void **, unsigned, size_t);
typedef void (*sample_free_hook)(const void *, size_t);

struct eddy_prof eddy_prof;
struct eddy_prof_class eddy_prof_classes[EDDY_PROF_CLASSES];

__thread int64_t eddy_prof_left;

/* Of the thread: the state of its generator, 0 before the first gap; its last
 * gap; whether it is sampled, plus 1; its entry. */
static __thread uint64_t random_state;
static __thread int64_t gap;
static __thread unsigned active;
static __thread struct eddy_prof_thread *entry;
/* It is in a function of the program's: see call_sample. */
static __thread unsigned in_hook;

/* Threads that drew a gap.  W, R: any CPU.  O: none: a number. */
static _Atomic uint64_t n_seeds;

/* ------------------------------------------------------------------ */
/* Gaps */

static uint64_t
mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

static uint64_t
next_random(void)
{
	random_state += 0x9e3779b97f4a7c15;
	return mix(random_state);
}

static void
draw_gap(void)
{
	/* relaxed: a setting. */
	uint32_t era = eddy_load_relaxed(&eddy_prof.era);

	gap = eddy_weights_gap(eddy_prof_lg(era), next_random());
	eddy_prof_left = gap;
}

/* The thread's first allocation that counts: it had no gap yet. */
static void
begin_thread(void)
{
	/* relaxed: a number. */
	uint64_t n = eddy_add_relaxed(&n_seeds, 1);
	int64_t left = eddy_prof_left;

	random_state =
	    mix(eddy_os_random() + n) ^ (uint64_t)(uintptr_t)&random_state;
	if (random_state == 0)
		random_state = 1;
	draw_gap();
	eddy_prof_left += left;
}

/* Bytes were allocated: is an interval over? */
static void
count_interval(struct eddy_heap *h, uint64_t bytes)
{
	/* relaxed, all: a count. */
	uint64_t interval = eddy_load_relaxed(&eddy_prof.interval);
	uint64_t n;

	if (eddy_likely(interval == 0))
		return;
	n = eddy_add_relaxed(&eddy_prof.since_dump, bytes) + bytes;
	while (n >= interval)
		if (eddy_cas_relaxed(&eddy_prof.since_dump, &n, n % interval)) {
			eddy_dump_of_itself(h, EDDY_DUMP_INTERVAL);
			break;
		}
}

bool
eddy_prof_draw(struct eddy_heap *h)
{
	int64_t since;

	if (random_state == 0) {
		begin_thread();
		if (eddy_prof_left >= 0)
			return false;
	}
	since = gap - eddy_prof_left;
	draw_gap();
	/* relaxed: a setting. */
	if (in_hook != 0 || eddy_load_relaxed(&eddy_prof.active) == 0)
		return false;
	count_interval(h, (uint64_t)since);
	return eddy_prof_thread_active();
}

/* ------------------------------------------------------------------ */
/* Threads */

bool
eddy_prof_thread_active(void)
{
	if (active == 0) /* relaxed: a setting. */
		active =
		    1 + (eddy_load_relaxed(&eddy_prof.thread_active_init) != 0);
	return active == 2;
}

void
eddy_prof_set_thread_active(bool on)
{
	active = 1 + on;
}

struct eddy_prof_thread *
eddy_prof_thread(void)
{
	struct eddy_heap *h = eddy_heap_peek();

	if (entry == NULL) {
		entry = eddy_stack_thread(!h->opts.prof_accum);
		if (entry != NULL)
			eddy_traces_forget(entry);
	}
	return entry;
}

static void
fetch_name(struct eddy_prof_thread *t)
{
	char name[EDDY_THREAD_NAME];

	eddy_os_thread_name(name);
	eddy_stack_name(t, name);
}

/* ------------------------------------------------------------------ */
/* Samples by size class */

static struct eddy_prof_class *
class_of(size_t real)
{
	unsigned i = real <= EDDY_SMALL_MAX
			 ? eddy_size_rows[(real + 7) / 8] - 1u
			 : EDDY_N_SMALL + eddy_sizes_large_of(real);

	return &eddy_prof_classes[i];
}

static uint64_t
times(uint64_t weight, size_t n)
{
	return (uint64_t)((double)weight * (double)n / 65536 + 0.5);
}

/* One sample more, or less. */
static void
count_class(const struct eddy_record *r, uint64_t weight, bool more)
{
	struct eddy_prof_class *k = class_of(r->real);
	uint64_t sign = more ? 1 : (uint64_t)-1;

	/* relaxed, all: sums. */
	(void)eddy_add_relaxed(&k->count, sign);
	(void)eddy_add_relaxed(&k->size, sign * r->size);
	(void)eddy_add_relaxed(&k->all_objects, sign * weight);
	(void)eddy_add_relaxed(&k->all_size, sign * times(weight, r->size));
	(void)eddy_add_relaxed(&k->all_real, sign * times(weight, r->real));
	if (more) {
		(void)eddy_add_relaxed(&k->ever_count, 1);
		(void)eddy_add_relaxed(&k->ever_size, r->size);
	}
}

uint64_t
eddy_prof_estimate(unsigned i, uint64_t *ret_size, uint64_t *ret_real)
{
	struct eddy_prof_class *k = &eddy_prof_classes[i];

	/* relaxed, all: sums. */
	*ret_size = eddy_load_relaxed(&k->all_size);
	*ret_real = eddy_load_relaxed(&k->all_real);
	return eddy_load_relaxed(&k->count);
}

/* ------------------------------------------------------------------ */
/* Samples */

static void
add_sums(struct eddy_sums *s, uint64_t objects, uint64_t bytes)
{
	/* relaxed, both: sums. */
	(void)eddy_add_relaxed(&s->objects, objects);
	(void)eddy_add_relaxed(&s->bytes, bytes);
}

/* By the program's function. */
static struct eddy_stack *
ask_for_stack(struct eddy_heap *h, backtrace_hook hook)
{
	uintptr_t frame[EDDY_STACK_MAX];
	unsigned n = 0;

	eddy_prof_enter_hook();
	hook((void **)frame, &n, h->opts.prof_bt_max);
	eddy_prof_leave_hook();
	return eddy_stack_find(
	    frame, n < h->opts.prof_bt_max ? n : h->opts.prof_bt_max);
}

static struct eddy_stack *
walk_stack(struct eddy_heap *h, struct eddy_trace *trace)
{
	uintptr_t frame[EDDY_STACK_MAX];
	bool pointers =
	    h->opts.prof_backtrace == EDDY_PROF_BACKTRACE_FRAME_POINTER;
	unsigned n = eddy_unwind(frame, h->opts.prof_bt_max, pointers, trace);

	return eddy_stack_find(frame, n);
}

/* Not to be merged into its caller: its frame is where traces begin. */
static EDDY_NOINLINE struct eddy_stack *
take_stack(struct eddy_heap *h, struct eddy_prof_thread *t)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	/* TELL-A1: pairs with TELL-R1. */
	backtrace_hook hook =
	    (backtrace_hook)eddy_load_acquire(&eddy_prof.backtrace_hook);
	struct eddy_trace trace;
	struct eddy_stack *s;

	if (eddy_unlikely(hook != NULL))
		return ask_for_stack(h, hook);
	s = eddy_traces_find(t, here);
	if (s != NULL)
		return s;
	s = walk_stack(h, &trace);
	if (s != NULL)
		eddy_traces_note(t, here, &trace, s);
	return s;
}

void
eddy_prof_enter_hook(void)
{
	in_hook++;
}

void
eddy_prof_leave_hook(void)
{
	in_hook--;
}

static void
call_sample(const void *block, const struct eddy_record *r)
{
	/* TELL-A1: pairs with TELL-R1. */
	sample_hook hook =
	    (sample_hook)eddy_load_acquire(&eddy_prof.sample_hook);

	if (eddy_likely(hook == NULL))
		return;
	eddy_prof_enter_hook();
	hook(block, r->size, (void **)r->count->stack->frame,
	    r->count->stack->n, r->real);
	eddy_prof_leave_hook();
}

static void
call_sample_free(const void *block, const struct eddy_record *r)
{
	/* TELL-A1: pairs with TELL-R1. */
	sample_free_hook hook =
	    (sample_free_hook)eddy_load_acquire(&eddy_prof.sample_free_hook);

	if (eddy_likely(hook == NULL))
		return;
	eddy_prof_enter_hook();
	hook(block, r->real);
	eddy_prof_leave_hook();
}

/* Chunks were never as many: a dump, where that is wanted. */
static void
look_at_chunks(struct eddy_heap *h)
{
	/* relaxed, all: a count. */
	uint32_t n = eddy_load_relaxed(&h->n_ready);
	uint32_t most = eddy_load_relaxed(&eddy_prof.most_chunks);

	if (eddy_load_relaxed(&eddy_prof.gdump) == 0)
		return;
	while (n > most)
		if (eddy_cas_relaxed(&eddy_prof.most_chunks, &most, n)) {
			eddy_dump_of_itself(h, EDDY_DUMP_GROWTH);
			break;
		}
}

static bool
add(struct eddy_heap *h, const void *block, struct eddy_record *r)
{
	/* relaxed: a setting. */
	uint32_t era = eddy_load_relaxed(&eddy_prof.era);
	struct eddy_prof_thread *t = eddy_prof_thread();
	struct eddy_stack *s = t != NULL ? take_stack(h, t) : NULL;
	uint64_t weight = eddy_weights_of(eddy_prof_lg(era), r->real);

	if (s == NULL)
		return false;
	r->count = eddy_stack_count(s, t, era);
	if (r->count == NULL)
		return false;
	if (!eddy_records_put(block, r)) {
		eddy_count_drop(r->count);
		return false;
	}
	if (h->opts.prof_sys_thread_name)
		fetch_name(t);
	/* relaxed: a count. */
	(void)eddy_add_relaxed(&t->live, 1);
	add_sums(&r->count->now, weight, times(weight, r->real));
	add_sums(&r->count->ever, weight, times(weight, r->real));
	count_class(r, weight, true);
	return true;
}

/* A run that is cached when it is freed, unless it is of no home. */
static void
mark(struct eddy_heap *h, const void *block)
{
	const void *place;
	uint32_t tag = eddy_tag_seek(h, block, &place);

	if (eddy_tag_kind(tag) != EDDY_TAG_RUN || eddy_tag_place(tag) == 0 ||
	    eddy_tag_home(tag) >= EDDY_HOME_SAMPLES)
		return;
	/* relaxed: the block is the caller's alone. */
	eddy_store_relaxed(&h->tags[eddy_page_of(h, place)],
	    eddy_tag(EDDY_TAG_RUN, EDDY_HOME_SAMPLES, eddy_tag_row(tag),
		eddy_tag_pages(tag)));
}

void
eddy_prof_add(struct eddy_heap *h, const void *block, size_t size, size_t real)
{
	struct eddy_record r = {.size = size, .real = real};

	mark(h, block);
	if (!add(h, block, &r)) {
		eddy_prof_lose();
		return;
	}
	call_sample(block, &r);
	look_at_chunks(h);
}

void
eddy_prof_lose(void)
{
	/* relaxed: a count. */
	(void)eddy_add_relaxed(&eddy_prof.lost, 1);
}

static void
drop(const void *block, const struct eddy_record *r)
{
	struct eddy_count *c = r->count;
	uint64_t weight =
	    eddy_weights_of(eddy_prof_lg(eddy_count_era(c)), r->real);

	call_sample_free(block, r);
	add_sums(&c->now, -weight, -times(weight, r->real));
	count_class(r, weight, false);
	/* relaxed: a count. */
	(void)eddy_add_relaxed(&c->thread->live, (uint64_t)-1);
	eddy_count_drop(c);
}

EDDY_NOINLINE void
eddy_prof_drop(const void *block)
{
	struct eddy_record r;

	if (eddy_records_take(block, &r))
		drop(block, &r);
}

struct sweep {
	struct eddy_heap *h;
	struct eddy_arena *a;
};

static bool
is_of(void *arg, const void *block)
{
	const struct sweep *s = arg;

	return eddy_arena_of(s->h, block) == s->a;
}

static void
drop_swept(void *arg, const void *block, const struct eddy_record *r)
{
	(void)arg;
	drop(block, r);
}

void
eddy_prof_drop_arena(struct eddy_heap *h, struct eddy_arena *a)
{
	struct sweep s = {h, a};

	if (eddy_prof_is_on())
		eddy_records_sweep(is_of, drop_swept, &s);
}

/* ------------------------------------------------------------------ */
/* The process */

void
eddy_prof_begin(struct eddy_heap *h)
{
	uint64_t lg = (uint64_t)h->opts.lg_prof_interval;

	if (!h->opts.prof || eddy_prof_is_on())
		return;
	/* relaxed, all: settings, before anybody counts. */
	eddy_store_relaxed(&eddy_prof.era, (uint32_t)h->opts.lg_prof_sample);
	eddy_store_relaxed(
	    &eddy_prof.thread_active_init, h->opts.prof_thread_active_init);
	eddy_store_relaxed(&eddy_prof.gdump, h->opts.prof_gdump);
	eddy_store_relaxed(&eddy_prof.gperftools,
	    h->opts.prof_format == EDDY_PROF_FORMAT_GPERFTOOLS);
	if (lg < 64)
		eddy_store_relaxed(&eddy_prof.interval, (uint64_t)1 << lg);
	eddy_dump_begin(h);
	eddy_unwind_begin();
	eddy_store_relaxed(&eddy_prof.on, 1);
	eddy_prof_set_active(h->opts.prof_active);
}

void
eddy_prof_set_active(bool on)
{
	/* relaxed, both: a setting. */
	eddy_store_relaxed(&eddy_prof.active, on);
	eddy_store_relaxed(&eddy_fast.below, on ? 0 : EDDY_ROW_MAX + 1);
}

void
eddy_prof_reset(unsigned lg)
{
	/* relaxed, both: a number of one's own. */
	uint32_t era = eddy_load_relaxed(&eddy_prof.era);

	while (!eddy_cas_relaxed(
	    &eddy_prof.era, &era, ((era >> 8) + 1) << 8 | (lg < 63 ? lg : 63)))
		continue;
	/* Other threads have one gap more of the old period. */
	if (random_state != 0)
		draw_gap();
}
