/* SPDX-License-Identifier: BSD-2-Clause */
/* ring_target.c - victim and helpers on one ring of a heap. */
#include "ring_target.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/ctl/conf.h"
#include "lib/ctl/stats.h"
#include "lib/heap/cpu_cache.h"
#include "lib/heap/gather.h"
#include "lib/heap/pagemap.h"
#include "lib/heap/purge.h"
#include "lib/heap/reclaim.h"
#include "lib/heap/returns.h"
#include "numa/excluded.h"
#include "rig.h"

enum {
	N_HELPERS = 2,
	HELPER_OPS = 24, /* a turn */
	HELPER_BATCHES = 4,
	HELPER_BLOCKS = 96, /* of malloc: more than a batch */
	HELPER_LARGE = 8,   /* of these, in steps of housekeeping */
	MIB = 1 << 20,
	MAX_OBJECTS = 4096, /* a full ring, and all hands */
	MAX_CELLS = EDDY_RING_CELLS
};

/* The way of each operation shall be its own: no housekeeping when time has
 * come. */
const char *malloc_conf = "dirty_decay_ms:-1,idle_purge_ms:-1";

struct batch {
	unsigned n;
	void *p[EDDY_BATCH_MAX];
};

struct helper {
	uint64_t random;
	unsigned n; /* batches in hand */
	struct batch batches[HELPER_BATCHES];
	uint64_t *blocks[HELPER_BLOCKS];
	unsigned cpu;
	unsigned puts;
	unsigned takes;
	_Atomic uint32_t go;   /* W: main thread; futex */
	_Atomic uint32_t done; /* W: helper; futex */
};

const struct ring_scene ring_scenes[] = {
    {"put into an empty ring", .outcome = EDDY_PUT_CELL},
    {"put into the last empty cell", .is_filled = true, .no_spill = true,
	.n_room = 1, .outcome = EDDY_PUT_CELL},
    {"put when all cells are full", .is_filled = true, .no_spill = true,
	.outcome = EDDY_PUT_SPILL},
    {"put when the spill stack is full too", .is_filled = true,
	.outcome = EDDY_PUT_NOWHERE},
    {"take from full cells", .act = RING_TAKE, .is_filled = true, .outcome = 1},
    {"take from the spill stack", .act = RING_TAKE, .is_filled = true,
	.no_cells = true, .outcome = 1},
    {"take from an empty ring", .act = RING_TAKE, .outcome = 0},
    {"gather from all CPUs", .act = RING_GATHER},
    {"a step that gives all back", .act = RING_STEP},
    {"a step that lets the kernel take all", .act = RING_STEP,
	.is_muzzy = true},
};
const unsigned n_ring_scenes = sizeof(ring_scenes) / sizeof(ring_scenes[0]);

const unsigned ring_sizes[] = {64, 14336, 32768};
const unsigned n_ring_sizes = sizeof(ring_sizes) / sizeof(ring_sizes[0]);

static struct ring_stage *stage;
static struct eddy_heap *heap;
static unsigned row;
static unsigned per_batch;
static struct helper helpers[N_HELPERS];
static struct batch victim_batch;
static void *kept_runs[12]; /* between free ones */
static pthread_t victim;

/* Objects that nobody else has; each carries its number. */
static void *stock[MAX_OBJECTS];
static unsigned n_stock;
static void *numbered[MAX_OBJECTS];
static size_t n_numbered;
static uint64_t step_time = 1000000; /* ms, of steps of housekeeping */
static uint64_t lost_pages;          /* so far */
static unsigned lost_objects;        /* of this row, so far, and libc's */
static unsigned lost_batches;

/* ------------------------------------------------------------------ */
/* Objects */

static void
number_object(void *p)
{
	size_t i = n_numbered++;

	if (i == MAX_OBJECTS)
		rig_fail_now("too many objects");
	numbered[i] = p;
	memcpy(p, &i, sizeof(i));
}

static void
keep(const struct batch *b)
{
	if (n_stock + b->n > MAX_OBJECTS)
		rig_fail_now("more objects than there are");
	memcpy(stock + n_stock, b->p, b->n * sizeof(b->p[0]));
	n_stock += b->n;
}

static void
hand_out(struct batch *b)
{
	b->n = per_batch;
	n_stock -= b->n;
	memcpy(b->p, stock + n_stock, b->n * sizeof(b->p[0]));
}

/* So many in stock; numbers of objects that are gone may be given again. */
static void
restock(unsigned n)
{
	struct eddy_arena *a = eddy_arena_of_home(heap, 0);

	n_numbered = 0;
	for (unsigned i = 0; i < n_stock; i++)
		number_object(stock[i]);
	while (n_stock < n) {
		void *p[EDDY_BATCH_MAX];
		unsigned got =
		    eddy_arena_refill(heap, a, row, p, EDDY_BATCH_MAX);

		if (got == 0 || n_stock + got > MAX_OBJECTS)
			rig_fail_now("no objects");
		for (unsigned i = 0; i < got; i++) {
			number_object(p[i]);
			stock[n_stock++] = p[i];
		}
	}
}

/* Every object of the stock is a known one, and is there once. */
static void
verify_stock(void)
{
	static bool is_seen[MAX_OBJECTS];

	memset(is_seen, 0, sizeof(is_seen));
	for (unsigned i = 0; i < n_stock; i++) {
		size_t k;

		memcpy(&k, stock[i], sizeof(k));
		if (k >= n_numbered || numbered[k] != stock[i])
			rig_fail_now("%p came out and never went in", stock[i]);
		if (is_seen[k])
			rig_fail_now("%p came out twice", stock[i]);
		is_seen[k] = true;
	}
}

/* ------------------------------------------------------------------ */
/* The ring */

static enum eddy_put
put(const struct batch *b)
{
	struct eddy_carry c = {0};
	enum eddy_put result =
	    eddy_returns_put(heap, eddy_place(0, row), b->p, b->n, &c);

	eddy_returns_drop(heap, &c);
	return result;
}

static bool
take(struct batch *b)
{
	struct eddy_carry c = {0};

	b->n = eddy_returns_take(heap, eddy_place(0, row), b->p, &c);
	eddy_returns_drop(heap, &c);
	return b->n != 0;
}

static void
take_some(unsigned n)
{
	struct batch b;

	while (n-- > 0 && take(&b))
		keep(&b);
}

/* What the helpers have in their hands. */
static void
collect(void)
{
	for (unsigned i = 0; i < N_HELPERS; i++) {
		for (unsigned k = 0; k < helpers[i].n; k++)
			keep(&helpers[i].batches[k]);
		helpers[i].n = 0;
	}
}

static void
set_scene(const struct ring_scene *scene)
{
	unsigned cells = eddy_returns_limit(row) / per_batch / 2;
	unsigned n = !scene->is_filled ? 0
		     : scene->no_spill ? cells
				       : 2 * cells;

	for (unsigned i = 0; i < n; i++) {
		struct batch b;

		hand_out(&b);
		if (put(&b) == EDDY_PUT_NOWHERE)
			rig_fail_now("the ring is full after %u batches", i);
	}
	take_some(scene->no_cells ? cells : scene->n_room);
}

/* Empty descriptors in cells, and those that a CPU has laid by. */
static unsigned
count_spares(void)
{
	uint32_t place = eddy_place(0, EDDY_SPARE_ROW);
	unsigned n = 0;

	for (unsigned i = 0; i < EDDY_HOME_ROWS; i++)
		for (unsigned k = 0; k < EDDY_RING_CELLS; k++) {
			uint32_t cell =
			    eddy_load_acquire(&heap->rings[i].cell[k]);

			n += cell != 0 && (cell & EDDY_CELL_FULL) == 0;
		}
	for (unsigned cpu = 0; cpu < heap->n_slots; cpu++) {
		uint32_t beg = eddy_cache_row_begin(heap, cpu, place);
		uint32_t cur =
		    eddy_load_relaxed(&eddy_cache_row(heap, cpu, place)->cur);

		if (eddy_cache_slot_used(heap, cpu) && cur > beg)
			n += (cur - beg) / 8;
	}
	return n;
}

static unsigned
count_free_batches(void)
{
	uint32_t k = (uint32_t)eddy_load_acquire(&heap->free_batches);
	unsigned n = count_spares();

	for (; k != 0; k = eddy_load_relaxed(&heap->batches[k - 1].next))
		n++;
	return n;
}

/* Nobody else works: what is neither free nor in use is lost. */
static void
count_pages(bool lives)
{
	static struct eddy_stats st;
	uint64_t lost;

	(void)eddy_purge(heap, 0);
	eddy_stats_read(heap, &st);
	lost = st.in_hand / EDDY_PAGE;
	stage->target_lost_objects = (unsigned)(lost - lost_pages);
	stage->target_lost_batches = 0;
	lost_pages = lost;
	/* What is left although nobody holds it. */
	stage->target_parked = (unsigned)((st.dirty + st.muzzy) / EDDY_PAGE);
	if (lives && stage->target_lost_objects != 0)
		rig_fail_now("%u pages are lost, and nobody has died",
		    stage->target_lost_objects);
}

/* Nobody else works: what the heap counts as live and we have not is lost. */
static void
count_losses(void)
{
	static struct eddy_stats st;
	unsigned lost;

	verify_stock();
	eddy_stats_read(heap, &st);
	lost = (unsigned)st.row[row].live - n_stock;
	stage->target_lost_objects = lost - lost_objects;
	lost_objects = lost;
	stage->target_parked =
	    ring_scenes[stage->tracer_scene].act == RING_GATHER
		? (unsigned)st.row[row].cached
		: 0;
	stage->target_n_batches = eddy_load_relaxed(&heap->n_batches);
	lost = stage->target_n_batches - count_free_batches();
	stage->target_lost_batches = lost - lost_batches;
	lost_batches = lost;
}

/* ------------------------------------------------------------------ */
/* Threads */

static void
await_turn(const _Atomic uint32_t *go, uint32_t done)
{
	while (atomic_load(go) == done)
		(void)rig_futex_wait(go, done, 0);
}

static void
announce(_Atomic uint32_t *word, uint32_t value)
{
	atomic_store(word, value);
	rig_futex_wake(word);
}

_Noreturn void
ring_exit_thread(void)
{
	for (;;)
		(void)syscall(SYS_exit, 0);
}

static uint32_t
act(enum ring_act what)
{
	switch (what) {
	case RING_PUT:
		return put(&victim_batch);
	case RING_TAKE:
		return take(&victim_batch);
	case RING_STEP:
		(void)eddy_reclaim_step(heap, 0, 1, step_time, SIZE_MAX);
		return 0;
	default:
		eddy_gather_all(heap);
		return 0;
	}
}

static void *
victim_main(void *arg)
{
	const struct ring_scene *scene = arg;
	uint32_t outcome;

	stage->target_victim_tid = (uint32_t)gettid();
	announce(&stage->victim_at, 0);
	await_turn(&stage->tracer_victim_go, 0);
	(void)syscall(SYS_tgkill, getpid(), gettid(), RING_SIGNAL);
	atomic_store(&stage->victim_at, 1);
	outcome = act(scene->act);
	atomic_store(&stage->victim_outcome, outcome);
	atomic_store(&stage->victim_at, 2);
	(void)syscall(SYS_tgkill, getpid(), gettid(), RING_SIGNAL);
	return NULL;
}

static void
helper_op(struct helper *h)
{
	bool puts = h->n == HELPER_BATCHES ||
		    (h->n > 0 && rig_below(&h->random, 2) == 0);

	if (puts && put(&h->batches[h->n - 1]) != EDDY_PUT_NOWHERE) {
		h->n--;
		h->puts++;
	} else if (!puts && take(&h->batches[h->n])) {
		h->n++;
		h->takes++;
	}
}

/* Blocks that two own at a time do not say what they should. */
static void
free_block(uint64_t **block)
{
	uint64_t *p = *block;

	if (p[0] != ~p[1] || p[1] != (uintptr_t)block)
		rig_fail_now("%p was given to two", (void *)p);
	p[0] = 0;
	free(p);
	*block = NULL;
}

static void
own_block(uint64_t **block, uint64_t *p)
{
	p[1] = (uintptr_t)block;
	p[0] = ~p[1];
	*block = p;
}

/* All that a helper may hold is allocated, and most of it freed. */
static void
helper_flood(struct helper *h)
{
	rig_pin(h->cpu);
	for (unsigned i = 0; i < HELPER_BLOCKS; i++) {
		uint64_t *p;

		if (h->blocks[i] != NULL)
			continue;
		p = malloc(eddy_row_size(row));
		if (p == NULL)
			rig_fail_now("no memory for a helper");
		own_block(&h->blocks[i], p);
		h->takes++;
	}
	for (unsigned i = 0; i < HELPER_BLOCKS; i++)
		if (rig_below(&h->random, 8) != 0) {
			free_block(&h->blocks[i]);
			h->puts++;
		}
}

/* Large blocks come and go, and what is free is given back. */
static void
helper_purge(struct helper *h)
{
	for (unsigned i = 0; i < HELPER_LARGE; i++) {
		size_t size =
		    (size_t)(1 + rig_below(&h->random, 60)) * MIB / 10;
		uint64_t *p;

		if (h->blocks[i] != NULL) {
			free_block(&h->blocks[i]);
			h->puts++;
		}
		p = malloc(size);
		if (p == NULL)
			rig_fail_now("no memory for a helper");
		own_block(&h->blocks[i], p);
		h->takes++;
	}
	for (unsigned i = 0; i < HELPER_LARGE; i += 2) {
		free_block(&h->blocks[i]);
		h->puts++;
	}
	if (h->cpu == 0)
		(void)eddy_purge(heap, 0);
	else
		(void)eddy_reclaim_step(heap, 0, 1, step_time + 5, SIZE_MAX);
}

static void *
helper_main(void *arg)
{
	struct helper *h = arg;

	rig_unpin();
	for (uint32_t turn = 0;; turn++) {
		await_turn(&h->go, turn);
		if (ring_scenes[stage->tracer_scene].act == RING_GATHER)
			helper_flood(h);
		else if (ring_scenes[stage->tracer_scene].act == RING_STEP)
			helper_purge(h);
		else
			for (unsigned i = 0; i < HELPER_OPS; i++)
				helper_op(h);
		announce(&h->done, turn + 1);
	}
	return arg;
}

/* ------------------------------------------------------------------ */
/* Commands */

static void
enter_row(unsigned size)
{
	static struct eddy_stats st;

	for (row = 1; eddy_row_size(row) != size; row++)
		;
	per_batch = eddy_classes[row].batch;
	n_stock = 0;
	/* The C library's own. */
	eddy_stats_read(heap, &st);
	lost_objects = (unsigned)st.row[row].live;
}

static void
help(void)
{
	stage->target_puts = 0;
	stage->target_takes = 0;
	for (unsigned i = 0; i < N_HELPERS; i++) {
		helpers[i].puts = 0;
		helpers[i].takes = 0;
		announce(&helpers[i].go, atomic_load(&helpers[i].go) + 1);
	}
	for (unsigned i = 0; i < N_HELPERS; i++) {
		uint32_t go = atomic_load(&helpers[i].go);

		while (atomic_load(&helpers[i].done) != go)
			(void)rig_futex_wait(&helpers[i].done, go - 1, 0);
		stage->target_puts += helpers[i].puts;
		stage->target_takes += helpers[i].takes;
	}
}

/* Free and dirty: whole chunks, and runs of both lengths in those in use. */
static void
lay_dirt(const struct ring_scene *scene)
{
	struct eddy_reclaim *r = &eddy_arena_of_home(heap, 0)->reclaim;
	static void *chunks[3];
	static void *runs[24];

	for (unsigned i = 0; i < 3; i++)
		chunks[i] = malloc((2 + i) * 2 * (size_t)MIB);
	for (unsigned i = 0; i < 24; i++)
		runs[i] = malloc((size_t)(70 + 13 * i) << 10);
	for (unsigned i = 0; i < 24; i += 2)
		free(runs[i]);
	/* The ends of the others: short runs. */
	for (unsigned i = 1; i < 24; i += 2)
		runs[i] = realloc(runs[i], (size_t)(70 + 12 * i) << 10);
	for (unsigned i = 0; i < 3; i++)
		free(chunks[i]);
	for (unsigned i = 1; i < 24; i += 2)
		kept_runs[i / 2] = runs[i];
	heap->opts.purge_rate = 0;
	heap->opts.idle_purge_ms = -1;
	/* As if nothing had been in use for long but what is now. */
	step_time += 100000;
	atomic_store(&r->dirty_decay_ms, 1000);
	atomic_store(&r->muzzy_decay_ms, scene->is_muzzy ? 1000 : 0);
	atomic_store(&r->peak, 0);
	atomic_store(&r->before, atomic_load(&r->active));
	atomic_store(&r->cursor, 0);
	atomic_store(&r->hold, 0);
	atomic_store(&r->due, 0);
}

static void
clear_dirt(void)
{
	for (unsigned i = 0; i < N_HELPERS; i++)
		for (unsigned k = 0; k < HELPER_BLOCKS; k++)
			if (helpers[i].blocks[k] != NULL)
				free_block(&helpers[i].blocks[k]);
	for (unsigned i = 0; i < 12; i++)
		free(kept_runs[i]);
}

static void
start(const struct ring_scene *scene)
{
	atomic_store(&stage->tracer_victim_go, 0);
	atomic_store(&stage->victim_at, UINT32_MAX);
	if (pthread_create(
		&victim, NULL, victim_main, (void *)(uintptr_t)scene) != 0)
		rig_fail_now("no thread");
	await_turn(&stage->victim_at, UINT32_MAX);
}

static void
begin(void)
{
	const struct ring_scene *scene = &ring_scenes[stage->tracer_scene];

	if (scene->act == RING_STEP) {
		/* The thread's own memory first. */
		stage->target_batch = 64 * (unsigned)EDDY_CHUNK_PAGES;
		start(scene);
		lay_dirt(scene);
		if (stage->tracer_is_first) {
			/* What is asked of the system once only. */
			(void)act(RING_STEP);
			clear_dirt();
			lay_dirt(scene);
		}
		return;
	}
	if (row == 0 || eddy_row_size(row) != stage->tracer_size)
		enter_row(stage->tracer_size);
	restock(eddy_returns_limit(row) + 4 * per_batch);
	set_scene(scene);
	for (unsigned i = 0; i < N_HELPERS; i++) {
		hand_out(&helpers[i].batches[0]);
		helpers[i].n = 1;
	}
	victim_batch.n = 0;
	if (scene->act == RING_PUT)
		hand_out(&victim_batch);
	stage->target_batch = per_batch;
	if (scene->act == RING_GATHER) {
		/* As many as fit into a hand, and a slab being retired. */
		stage->target_batch =
		    EDDY_BATCH_MAX + eddy_classes[row].n_objects;
		help();
	}
	start(scene);
}

static bool
victim_has(const struct ring_scene *scene)
{
	if (scene->act == RING_PUT)
		return atomic_load(&stage->victim_outcome) == EDDY_PUT_NOWHERE;
	return scene->act == RING_TAKE;
}

/* Helpers' blocks and all that caches hold goes back to slabs. */
static void
call_home(void)
{
	for (unsigned i = 0; i < N_HELPERS; i++)
		for (unsigned k = 0; k < HELPER_BLOCKS; k++)
			if (helpers[i].blocks[k] != NULL)
				free_block(&helpers[i].blocks[k]);
	eddy_gather_all(heap);
}

/* The victim is over or dead: what it has, it has if it lived to say so. */
static void
end(void)
{
	const struct ring_scene *scene = &ring_scenes[stage->tracer_scene];

	(void)pthread_join(victim, NULL);
	if (scene->act == RING_STEP) {
		clear_dirt();
		count_pages(atomic_load(&stage->victim_at) == 2);
		return;
	}
	if (atomic_load(&stage->victim_at) == 2 && victim_has(scene))
		keep(&victim_batch);
	collect();
	if (scene->act == RING_GATHER)
		call_home();
	else
		take_some(2 * MAX_CELLS + 1);
	count_losses();
}

_Noreturn void
ring_target(struct ring_stage *shared)
{
	pthread_t t;

	stage = shared;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	heap = eddy_heap_start();
	if (heap == NULL)
		rig_fail_now("no heap");
	/* What is read once is read before. */
	(void)eddy_cpu_excluded(heap->opts.exclude_cpus, 0);
	for (unsigned i = 0; i < N_HELPERS; i++) {
		helpers[i].random = rig.seed * 10 + i;
		helpers[i].cpu = i;
		if (pthread_create(&t, NULL, helper_main, &helpers[i]) != 0)
			rig_fail_now("no thread");
	}
	for (uint32_t turn = 0;; turn++) {
		await_turn(&stage->tracer_command_go, turn);
		if (stage->tracer_command == RING_BEGIN)
			begin();
		else if (stage->tracer_command == RING_HELP)
			help();
		else
			end();
		announce(&stage->target_done, turn + 1);
	}
}
