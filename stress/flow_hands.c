/* SPDX-License-Identifier: BSD-2-Clause */
/* flow_hands.c - chutes, and the steps of the hands that work on them. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "flow.h"
#include "rig.h"

enum {
	WAIT_US = 20,
	MARGIN = 64, /* entries: more than there are hands that may be slow */
	UNPINNED = UINT32_MAX
};

struct flow flow;

/* Size classes are four a doubling, and multiples of 16 to 128. */
static size_t
rounded(size_t size)
{
	size_t step = 16;

	while (step * 8 < size)
		step *= 2;
	return (size + step - 1) / step * step;
}

static size_t
next_size(struct hand *h)
{
	/* relaxed: any of the latest sizes. */
	size_t size = atomic_load_explicit(&flow.size, memory_order_relaxed);
	size_t least;

	if (size != 0)
		return size;
	least = (size_t)16 << rig_below(&h->random, 11);
	return least + rig_below(&h->random, least);
}

/* ------------------------------------------------------------------ */
/* Homes */

/* CPUs a home and homes, where EDDY_CONF has a topology like 2x1x1. */
static unsigned fake_cpus;
static unsigned fake_homes;

static void
read_topology(void)
{
	const char *conf = getenv("EDDY_CONF");
	const char *found = NULL;
	unsigned n[3];

	if (conf != NULL)
		found = strstr(conf, "topology:");
	if (found == NULL ||
	    sscanf(found, "topology:%ux%ux%u", &n[0], &n[1], &n[2]) != 3 ||
	    n[0] == 0 || n[1] * n[2] == 0)
		return;
	fake_homes = n[0];
	fake_cpus = n[1] * n[2];
}

/* Of the CPU that the caller runs on. */
static uint8_t
home_now(void)
{
	unsigned cpu = 0;
	unsigned node = 0;

	(void)getcpu(&cpu, &node);
	if (fake_homes != 0)
		node = cpu / fake_cpus % fake_homes;
	return (uint8_t)(node % MAX_FLOW_HOMES);
}

size_t
flow_peak(void)
{
	size_t sum = 0;

	for (unsigned i = 0; i < MAX_FLOW_HOMES; i++)
		sum += atomic_load(&flow.homes[i].peak);
	return sum;
}

/* ------------------------------------------------------------------ */
/* Chutes */

static void *
map(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p == MAP_FAILED)
		rig_fail_now("no memory for a chute");
	return p;
}

void
chute_create(struct chute *c, size_t n, size_t cap_bytes)
{
	read_topology();
	c->entries = map(n * sizeof(struct entry));
	c->homes = map(n);
	c->n = n;
	atomic_store(&c->cap_bytes, cap_bytes);
}

static bool
is_tidal(void)
{
	/* relaxed: it takes effect sooner or later. */
	return atomic_load_explicit(&flow.is_tidal, memory_order_relaxed) != 0;
}

bool
chute_is_full(const struct chute *c)
{
	/* relaxed, all: a guess; entries say what is so. */
	size_t head = atomic_load_explicit(&c->head, memory_order_relaxed);
	size_t tail = atomic_load_explicit(&c->tail, memory_order_relaxed);

	return tail - head + MARGIN > c->n ||
	       atomic_load_explicit(&c->bytes, memory_order_relaxed) >=
		   atomic_load_explicit(&c->cap_bytes, memory_order_relaxed);
}

bool
chute_is_empty(const struct chute *c)
{
	/* After the last block is gone. */
	return atomic_load(&c->bytes) == 0;
}

/* Whether a producer may go on; a full chute turns the tide. */
static bool
has_room(struct chute *c)
{
	if (chute_is_full(c)) {
		atomic_store_explicit(&c->ebbs, 1, memory_order_relaxed);
		return false;
	}
	return !is_tidal() ||
	       atomic_load_explicit(&c->ebbs, memory_order_relaxed) == 0;
}

/* The entry at the tail, busy; NULL: its last block is still in the way. */
static struct entry *
enter(struct chute *c, uint32_t me)
{
	for (;;) {
		size_t tail = atomic_load(&c->tail);
		struct entry *e = &c->entries[tail % c->n];

		if (!entry_claim(e, ENTRY_EMPTY, me))
			return NULL;
		if (atomic_compare_exchange_strong(&c->tail, &tail, tail + 1))
			return e;
		/* Others went round meanwhile. */
		entry_forget(e);
	}
}

static struct entry *
leave(struct chute *c, uint32_t me)
{
	for (;;) {
		size_t head = atomic_load(&c->head);
		struct entry *e = &c->entries[head % c->n];

		if (!entry_claim(e, ENTRY_FULL, me))
			return NULL;
		if (atomic_compare_exchange_strong(&c->head, &head, head + 1))
			return e;
		entry_release(e);
	}
}

/* A block for a consumer; an empty chute turns the tide. */
static struct entry *
next_block(struct hand *h, struct chute *c)
{
	struct entry *e;

	if (is_tidal() &&
	    atomic_load_explicit(&c->ebbs, memory_order_relaxed) == 0)
		return NULL;
	e = leave(c, h->me);
	if (e == NULL && atomic_load(&c->head) == atomic_load(&c->tail))
		atomic_store_explicit(&c->ebbs, 0, memory_order_relaxed);
	return e;
}

/* ------------------------------------------------------------------ */
/* Blocks; counted before they are there and until they are gone */

static void
count_in(struct chute *c, size_t size, uint8_t home)
{
	_Atomic size_t *highest = &flow.homes[home].peak;
	size_t held = atomic_fetch_add(&flow.homes[home].held, size) + size;
	size_t peak = atomic_load(highest);

	(void)atomic_fetch_add(&c->bytes, size);
	while (
	    held > peak && !atomic_compare_exchange_weak(highest, &peak, held))
		;
}

static void
count_out(struct chute *c, size_t size, uint8_t home)
{
	(void)atomic_fetch_sub(&c->bytes, size);
	(void)atomic_fetch_sub(&flow.homes[home].held, size);
}

static uint8_t *
home_of(struct chute *c, const struct entry *e)
{
	return &c->homes[e - c->entries];
}

static void
fill(struct hand *h, struct chute *c, struct entry *e)
{
	size_t size = next_size(h);
	uint8_t home = home_now();

	*home_of(c, e) = home;
	count_in(c, rounded(size), home);
	entry_fill(e, size, BY_MALLOC, &h->random);
}

static void
drain(struct hand *h, struct chute *c, struct entry *e)
{
	uint8_t home = *home_of(c, e);
	size_t size = e->size;

	entry_drain(e);
	count_out(c, rounded(size), home);
	/* relaxed: a count, one writer. */
	atomic_fetch_add_explicit(&h->n_freed, 1, memory_order_relaxed);
}

bool
flow_produce(struct hand *h, struct chute *c)
{
	struct entry *e = has_room(c) ? enter(c, h->me) : NULL;

	if (e == NULL)
		return false;
	fill(h, c, e);
	return true;
}

bool
flow_consume(struct hand *h, struct chute *c)
{
	struct entry *e = next_block(h, c);

	if (e == NULL)
		return false;
	drain(h, c, e);
	return true;
}

bool
flow_pass_on(struct hand *h)
{
	struct entry *from;
	struct entry *to;

	if (!has_room(h->out))
		return false;
	from = next_block(h, h->in);
	if (from == NULL)
		return false;
	/* Behind MARGIN there is an empty one, and no other producer. */
	to = enter(h->out, h->me);
	if (to == NULL)
		rig_fail_now("a chute with room has none");
	if (rig_below(&h->random, 2) == 0) {
		drain(h, h->in, from);
		fill(h, h->out, to);
	} else {
		size_t size = rounded(from->size);
		uint8_t home = *home_of(h->in, from);

		*home_of(h->out, to) = home;
		count_in(h->out, size, home);
		entry_move(from, to);
		count_out(h->in, size, home);
	}
	return true;
}

void
chute_drain(struct chute *c)
{
	(void)ledger_drain(c->entries, c->n, UINT32_MAX >> 2);
	atomic_store(&c->bytes, 0);
}

/* ------------------------------------------------------------------ */
/* Hands */

static uint32_t
wanted_cpu(const struct hand *h)
{
	/* relaxed, both: it takes effect sooner or later. */
	if (atomic_load_explicit(&flow.is_pinned, memory_order_relaxed) == 0)
		return UNPINNED;
	return atomic_load_explicit(&h->cpu, memory_order_relaxed) % rig_cpus();
}

void
hand_work(struct hand *h, uint64_t n)
{
	uint32_t cpu = UNPINNED;

	while (n > 0 && atomic_load(&flow.ends) == 0) {
		uint32_t wanted = wanted_cpu(h);

		if (wanted != cpu && wanted == UNPINNED)
			rig_unpin();
		else if (wanted != cpu)
			rig_pin(wanted);
		cpu = wanted;
		while (atomic_load(&h->idles) == 1)
			(void)rig_futex_wait(&h->idles, 1, 0);
		if (h->step(h))
			n--;
		else
			rig_sleep_us(WAIT_US);
	}
}

static void *
hand_main(void *arg)
{
	while (atomic_load(&flow.begins) == 0)
		(void)rig_futex_wait(&flow.begins, 0, 0);
	hand_work(arg, UINT64_MAX);
	return NULL;
}

void
hand_start(struct hand *h)
{
	if (pthread_create(&h->thread, NULL, hand_main, h) != 0)
		rig_fail_now("no thread");
}

void
hand_join(struct hand *h)
{
	atomic_store(&h->idles, 0);
	rig_futex_wake(&h->idles);
	(void)pthread_join(h->thread, NULL);
}
