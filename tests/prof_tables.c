/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * prof_tables.c - records, stacks and counts under many threads that hand
 * blocks on, with eras that change: each record is found once, sums come to
 * zero.  For ThreadSanitizer, too.
 */
#include "lib/prof/records.h"
#include "lib/prof/stacks.h"
#include "tap.h"

#include <pthread.h>

enum { THREADS = 8, SLOTS = 256, ROUNDS = 60000, STACKS = 400 };

/* Addresses of blocks, which nobody touches. */
static _Atomic uintptr_t slots[SLOTS];
static _Atomic uintptr_t next_block = 4096;
static _Atomic uint32_t era = 1 << 8;
static _Atomic unsigned faults;

static uint64_t
random_of(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

static struct eddy_count *
sample(struct eddy_prof_thread *t, uint64_t r)
{
	uintptr_t frame[16];
	unsigned n = 1 + (unsigned)(r % 15);
	struct eddy_stack *s;
	struct eddy_count *c;

	for (unsigned i = 0; i < n; i++)
		frame[i] = 0x1000 * (r % STACKS) + i;
	s = eddy_stack_find(frame, n);
	c = s != NULL ? eddy_stack_count(s, t, eddy_load_relaxed(&era)) : NULL;
	if (c == NULL)
		tap_bail("no memory");
	if (s->n != n || s->frame[0] != frame[0] || c->thread != t)
		atomic_fetch_add(&faults, 1);
	return c;
}

static void
drop(uintptr_t block)
{
	struct eddy_record r;

	if (block == 0)
		return;
	if (!eddy_records_take((void *)block, &r) || r.size != block ||
	    r.real != block + 1) {
		atomic_fetch_add(&faults, 1);
		return;
	}
	(void)eddy_add_relaxed(&r.count->now.objects, (uint64_t)-7);
	(void)eddy_add_relaxed(&r.count->now.bytes, -(uint64_t)r.size);
	(void)eddy_add_relaxed(&r.count->thread->live, (uint64_t)-1);
	eddy_count_drop(r.count);
	/* Once. */
	if (eddy_records_take((void *)block, &r))
		atomic_fetch_add(&faults, 1);
}

static void *
work(void *arg)
{
	uint64_t seed = tap.seed + (uintptr_t)arg * 77777;
	struct eddy_prof_thread *t = eddy_stack_thread(true);

	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t r = random_of(&seed);
		uintptr_t block = atomic_fetch_add(&next_block, 16);
		struct eddy_record rec = {
		    .count = sample(t, r), .size = block, .real = block + 1};

		if (!eddy_records_put((void *)block, &rec))
			tap_bail("no memory");
		(void)eddy_add_relaxed(&t->live, 1);
		(void)eddy_add_relaxed(&rec.count->now.objects, 7);
		(void)eddy_add_relaxed(&rec.count->now.bytes, block);
		drop(atomic_exchange(&slots[(r >> 20) % SLOTS], block));
		if (r % 4096 == 0)
			(void)atomic_fetch_add(&era, 1 << 8);
	}
	return NULL;
}

/* Whatever begins is of these. */
static bool
is_any(void *arg, const void *block)
{
	(void)arg;
	return (uintptr_t)block % 32 == 0;
}

static void
count_swept(void *arg, const void *block, const struct eddy_record *r)
{
	*(unsigned *)arg += (uintptr_t)block == r->size;
}

int
main(void)
{
	pthread_t t[THREADS];
	struct eddy_stack *s = NULL;
	size_t place = 0;
	unsigned stacks = 0;
	unsigned swept = 0;
	bool zero = true;

	tap.seed = (uint64_t)getpid() * 2654435761u;
	tap_guard(120);
	for (uintptr_t k = 0; k < 3; k++) {
		for (uintptr_t i = 0; i < THREADS; i++)
			if (pthread_create(
				&t[i], NULL, work, (void *)(k * 8 + i)) != 0)
				tap_bail("pthread_create");
		for (unsigned i = 0; i < THREADS; i++)
			(void)pthread_join(t[i], NULL);
	}
	for (unsigned i = 0; i < SLOTS; i++)
		drop(atomic_exchange(&slots[i], 0));
	tap_ok(faults == 0, "each block's record is there, once, and its own");
	while ((s = eddy_stack_next(s, &place)) != NULL) {
		stacks++;
		for (struct eddy_count *c = eddy_load_acquire(&s->counts);
		     c != NULL; c = c->next)
			zero &= eddy_load_relaxed(&c->now.objects) == 0 &&
				eddy_load_relaxed(&c->now.bytes) == 0 &&
				(uint32_t)eddy_load_relaxed(&c->word) == 0;
	}
	tap_ok(zero, "all sums are zero when all blocks are gone");
	/* Pairs of numbers below 400 and 15 that are alike modulo 5. */
	tap_ok(
	    stacks == STACKS * 15 / 5, "%u stacks, none of them twice", stacks);
	tap_ok(eddy_stack_n_threads() <= 2 * THREADS,
	    "entries of threads that ended are used again: %u of 24 threads",
	    eddy_stack_n_threads());
	for (uintptr_t i = 1; i <= 1000; i++) {
		struct eddy_record rec = {.size = i * 16};

		if (!eddy_records_put((void *)(i * 16), &rec))
			tap_bail("no memory");
	}
	eddy_records_sweep(is_any, count_swept, &swept);
	tap_ok(swept == 500, "a sweep takes what is wanted: %u of 500", swept);
	swept = 0;
	eddy_records_sweep(is_any, count_swept, &swept);
	tap_ok(swept == 0, "and leaves the rest");
	return tap_end();
}
