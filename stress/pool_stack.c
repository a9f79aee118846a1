/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pool_stack.c - lock-free stacks whose poppers read nodes that others have
 * freed meanwhile, with no scheme that would keep these from it.
 *
 * Sixteen threads push, pop, allocate and free nodes of a pool; between the
 * load of a top and the reads of its node they may be stopped for as long as
 * the scheduler likes.  A node has a magic number, its own address in disguise
 * and a link that says it is one, set once by the pool's constructor, the link
 * by each push: whatever a popper reads must be a node.  All the while the same
 * threads allocate, fill and free blocks of malloc of the same size, and
 * another one shrinks the pool, whose grace is that each thread has been
 * between two of its steps.
 *
 * The word "malloc": the same on malloc's blocks, which is to fail.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "eddy/pool.h"

#include "rig.h"

enum {
	N_THREADS = 16,
	N_STACKS = 4,
	N_NOISE = 64,
	MAX_DROPPED = 100000,
	LG_TAG = 20,   /* of a top, above the address less 4 bits */
	PATIENCE = 120 /* seconds that malloc has to fail */
};

#define MAGIC   0x6e6f64656e6f6465u
#define IS_LINK 5u

struct node {
	_Atomic uint64_t magic;
	_Atomic uint64_t self;  /* the address, ^ MAGIC */
	_Atomic uint64_t next;  /* address of a node, or 0, and IS_LINK */
	_Atomic uint64_t owner; /* while somebody has it */
	uint64_t rest[4];
};

struct worker {
	_Alignas(128) pthread_t thread;
	_Atomic uint64_t steps; /* UINT64_MAX: it has ended */
	uint64_t random;
	uint64_t n_pops;
	uint64_t n_stale;
	uint64_t n_bad;
};

static struct {
	int (*create)(const struct eddy_pool_options *, struct eddy_pool **);
	void *(*alloc)(struct eddy_pool *);
	void (*free)(struct eddy_pool *, void *);
	size_t (*shrink)(struct eddy_pool *, void (*)(void *), void *);
	void (*destroy)(struct eddy_pool *);
} api;

static struct eddy_pool *pool; /* NULL: on malloc */
static _Alignas(128) _Atomic uint64_t top[N_STACKS][16];
static struct worker workers[N_THREADS + 1]; /* the last one shrinks */
static _Atomic uint32_t stop;
static _Atomic uint64_t n_shrunk;

/* ---- nodes ---- */

static void
construct(void *arg, void *p)
{
	struct node *n = p;

	(void)arg;
	atomic_store_explicit(&n->magic, MAGIC, memory_order_relaxed);
	atomic_store_explicit(
	    &n->self, (uintptr_t)n ^ MAGIC, memory_order_relaxed);
	atomic_store_explicit(&n->next, IS_LINK, memory_order_relaxed);
	atomic_store_explicit(&n->owner, 0, memory_order_relaxed);
}

static struct node *
node_new(void)
{
	struct node *n = pool != NULL ? api.alloc(pool) : malloc(sizeof(*n));

	if (n == NULL)
		rig_fail_now("no memory");
	if (pool == NULL)
		construct(NULL, n);
	return n;
}

static void
node_free(struct node *n)
{
	if (pool != NULL)
		api.free(pool, n);
	else
		free(n);
}

/* Whether what is there is a node, maybe another than it was. */
static bool
is_node(struct node *n, uint64_t *next)
{
	*next = atomic_load(&n->next);
	return atomic_load(&n->magic) == MAGIC &&
	       atomic_load(&n->self) == ((uintptr_t)n ^ MAGIC) &&
	       *next % 16 == IS_LINK;
}

static void
bad(struct worker *w, struct node *n)
{
	w->n_bad++;
	if (rig.expect_failure)
		rig_stalled(
		    "what was a node at %p is something else", (void *)n);
}

/* ---- stacks: {address / 16, tag} ---- */

static struct node *
node_of(uint64_t t)
{
	return (struct node *)(uintptr_t)(t >> LG_TAG << 4);
}

static uint64_t
next_top(uint64_t old, uint64_t address)
{
	return address >> 4 << LG_TAG |
	       ((old + 1) & (((uint64_t)1 << LG_TAG) - 1));
}

/* Others may run before we read. */
static void
dawdle(struct worker *w)
{
	uint64_t r = rig_below(&w->random, 256);

	if (r == 0)
		(void)sched_yield();
	else if (r < 16)
		for (volatile int i = 0; i < 200; i++) {
		}
}

static struct node *
pop(struct worker *w, _Atomic uint64_t *s)
{
	uint64_t old = atomic_load(s);

	for (;;) {
		struct node *n = node_of(old);
		uint64_t next;
		uint64_t now;
		bool good;

		if (n == NULL)
			return NULL;
		dawdle(w);
		good = is_node(n, &next);
		now = atomic_load(s);
		w->n_stale += now != old;
		if (!good)
			bad(w, n);
		if (atomic_compare_exchange_strong(
			s, &old, next_top(old, good ? next - IS_LINK : 0)))
			return n;
	}
}

static void
push(_Atomic uint64_t *s, struct node *n)
{
	uint64_t old = atomic_load(s);

	do {
		uint64_t next = (uintptr_t)node_of(old);

		atomic_store(&n->next, next | IS_LINK);
	} while (!atomic_compare_exchange_strong(
	    s, &old, next_top(old, (uintptr_t)n)));
}

/* ---- threads ---- */

static void
make_noise(struct worker *w, void **block)
{
	size_t i = rig_below(&w->random, N_NOISE);

	if (block[i] != NULL) {
		free(block[i]);
		block[i] = NULL;
		return;
	}
	block[i] = malloc(sizeof(struct node));
	if (block[i] != NULL)
		memset(block[i], 0xd7, sizeof(struct node));
}

static void
step(struct worker *w, void **noise)
{
	_Atomic uint64_t *s = &top[rig_below(&w->random, N_STACKS)][0];
	struct node *n;

	switch (rig_below(&w->random, 8)) {
	case 0:
	case 1:
	case 2:
		n = node_new();
		push(s, n);
		break;
	case 3:
	case 4:
	case 5:
		n = pop(w, s);
		if (n == NULL)
			break;
		w->n_pops++;
		node_free(n);
		break;
	case 6: /* from one to another, and it is ours alone between */
		n = pop(w, s);
		if (n == NULL)
			break;
		if (atomic_exchange(&n->owner, (uintptr_t)w) != 0)
			bad(w, n);
		if (atomic_exchange(&n->owner, 0) != (uintptr_t)w)
			bad(w, n);
		push(&top[rig_below(&w->random, N_STACKS)][0], n);
		break;
	default:
		make_noise(w, noise);
	}
}

static void *
work(void *arg)
{
	struct worker *w = arg;
	void *noise[N_NOISE] = {NULL};

	while (!atomic_load(&stop)) {
		step(w, noise);
		atomic_fetch_add(&w->steps, 1);
	}
	atomic_store(&w->steps, UINT64_MAX);
	for (size_t i = 0; i < N_NOISE; i++)
		free(noise[i]);
	return NULL;
}

/* Each thread has been between two steps since. */
static void
grace(void *arg)
{
	const struct timespec pause = {0, 1000000};
	uint64_t before[N_THREADS];

	(void)arg;
	for (unsigned i = 0; i < N_THREADS; i++)
		before[i] = atomic_load(&workers[i].steps);
	for (unsigned i = 0; i < N_THREADS; i++)
		while (atomic_load(&workers[i].steps) != UINT64_MAX &&
		       atomic_load(&workers[i].steps) == before[i])
			(void)nanosleep(&pause, NULL);
}

static void *
shrink(void *arg)
{
	const struct timespec pause = {0, 20000000};
	struct worker *w = arg;

	while (!atomic_load(&stop)) {
		(void)nanosleep(&pause, NULL);
		/* So that there are slabs without nodes. */
		for (unsigned i = 0; i < N_STACKS; i++)
			for (unsigned k = 0; k < MAX_DROPPED; k++) {
				struct node *n = pop(w, top[i]);

				if (n == NULL)
					break;
				node_free(n);
			}
		(void)atomic_fetch_add(
		    &n_shrunk, api.shrink(pool, grace, NULL));
	}
	return NULL;
}

/* Memory that was a node is gone altogether. */
static void
on_fault(int sig)
{
	(void)sig;
	rig_stalled("what was a node is no memory");
}

static void
start(bool on_malloc)
{
	struct eddy_pool_options o = EDDY_POOL_OPTIONS;

	if (on_malloc) {
		(void)signal(SIGSEGV, on_fault);
		return;
	}
	*(void **)&api.create = dlsym(RTLD_DEFAULT, "eddy_pool_create");
	*(void **)&api.alloc = dlsym(RTLD_DEFAULT, "eddy_pool_alloc");
	*(void **)&api.free = dlsym(RTLD_DEFAULT, "eddy_pool_free");
	*(void **)&api.shrink = dlsym(RTLD_DEFAULT, "eddy_pool_shrink");
	*(void **)&api.destroy = dlsym(RTLD_DEFAULT, "eddy_pool_destroy");
	if (api.create == NULL)
		rig_skip("this malloc has no pools");
	o.object_size = sizeof(struct node);
	o.align = 16;
	o.construct = construct;
	o.name = "stack";
	if (api.create(&o, &pool) != 0)
		rig_fail_now("no pool");
}

int
main(int argc, char **argv)
{
	uint64_t pops = 0;
	uint64_t stale = 0;
	uint64_t wrong = 0;
	bool on_malloc;
	pthread_t shrinker;
	uint64_t end;

	rig.takes_word = true;
	rig_start(argc, argv, 4);
	on_malloc = rig.word != NULL && strcmp(rig.word, "malloc") == 0;
	if (on_malloc && rig.seconds < PATIENCE)
		rig.seconds = PATIENCE;
	start(on_malloc);
	for (unsigned i = 0; i <= N_THREADS; i++)
		workers[i].random = rig.seed + i * 7919;
	for (unsigned i = 0; i < N_THREADS; i++) {
		if (pthread_create(
			&workers[i].thread, NULL, work, &workers[i]) != 0)
			rig_fail_now("no thread");
	}
	if (pool != NULL &&
	    pthread_create(&shrinker, NULL, shrink, &workers[N_THREADS]) != 0)
		rig_fail_now("no thread");
	end = rig_now_ns() + (uint64_t)(rig.seconds * 1e9);
	while (rig_now_ns() < end) {
		const struct timespec pause = {0, 100000000};

		(void)nanosleep(&pause, NULL);
	}
	atomic_store(&stop, 1);
	if (pool != NULL)
		(void)pthread_join(shrinker, NULL);
	for (unsigned i = 0; i <= N_THREADS; i++) {
		if (i < N_THREADS)
			(void)pthread_join(workers[i].thread, NULL);
		pops += workers[i].n_pops;
		stale += workers[i].n_stale;
		wrong += workers[i].n_bad;
	}
	for (unsigned i = 0; i < N_STACKS; i++)
		for (struct node *n; (n = pop(&workers[0], top[i])) != NULL;)
			node_free(n);
	if (pool != NULL)
		api.destroy(pool);
	rig_diag("%llu pops, %llu stale reads, %llu KiB given back by shrinks",
	    (unsigned long long)pops, (unsigned long long)stale,
	    (unsigned long long)atomic_load(&n_shrunk) / 1024);
	rig_ok(wrong == 0, "all that was read was a node (%llu were not)",
	    (unsigned long long)wrong);
	return rig_end();
}
