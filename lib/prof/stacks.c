/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/prof/stacks.h"

#include <string.h>

#include "lib/os/os.h"
#include "lib/prof/ground.h"

#define LG_BUCKETS 14
/* Entries of threads that are looked at when one is wanted. */
#define N_LOOKS 8

/* W: who samples, by CAS.  R: any CPU.  O: STACK-R1 -> STACK-A1. */
static _Atomic(struct eddy_stack *) buckets[(size_t)1 << LG_BUCKETS];
/* The same. */
static _Atomic(struct eddy_prof_thread *) threads;
/* Entries made; the next name.  W, R: any CPU.  O: none: numbers. */
static _Atomic uint32_t n_threads;
static _Atomic uint64_t next_uid;
/* Where to look for an entry next.  W, R: any CPU.  O: none: a guess. */
static _Atomic(struct eddy_prof_thread *) cursor;

/* ------------------------------------------------------------------ */
/* Stacks */

static uint64_t
hash_of(const uintptr_t *frame, unsigned n)
{
	uint64_t h = n;

	for (unsigned i = 0; i < n; i++) {
		h = (h ^ frame[i]) * 0x9e3779b97f4a7c15;
		h ^= h >> 29;
	}
	h *= 0xbf58476d1ce4e5b9;
	return h ^ h >> 32;
}

/* In a list up to, and without, `end`. */
static struct eddy_stack *
look(struct eddy_stack *s, const struct eddy_stack *end, uint64_t hash,
    const uintptr_t *frame, unsigned n)
{
	for (; s != end; s = s->next)
		if (s->hash == hash && s->n == n &&
		    memcmp(s->frame, frame, n * sizeof(*frame)) == 0)
			return s;
	return NULL;
}

struct eddy_stack *
eddy_stack_find(const uintptr_t *frame, unsigned n)
{
	uint64_t hash = hash_of(frame, n);
	_Atomic(struct eddy_stack *) *head =
	    &buckets[hash >> (64 - LG_BUCKETS)];
	/* STACK-A1: pairs with STACK-R1. */
	struct eddy_stack *first = eddy_load_acquire(head);
	struct eddy_stack *s = look(first, NULL, hash, frame, n);

	if (s != NULL)
		return s;
	s = eddy_ground_take(sizeof(*s) + n * sizeof(*frame));
	if (s == NULL)
		return NULL;
	s->hash = hash;
	s->n = n;
	memcpy(s->frame, frame, n * sizeof(*frame));
	/* Goes round where another has put one there; its may be the same. */
	for (;;) {
		struct eddy_stack *seen = first;
		struct eddy_stack *same;

		s->next = first;
		/* STACK-R1: all of it.  STACK-A1: or another's. */
		if (eddy_cas_acq_rel(head, &first, s))
			return s;
		same = look(first, seen, hash, frame, n);
		if (same != NULL)
			return same;
	}
}

struct eddy_stack *
eddy_stack_next(struct eddy_stack *s, size_t *place)
{
	if (s != NULL && s->next != NULL)
		return s->next;
	while (*place < (size_t)1 << LG_BUCKETS) {
		/* STACK-A1: pairs with STACK-R1. */
		s = eddy_load_acquire(&buckets[(*place)++]);
		if (s != NULL)
			return s;
	}
	return NULL;
}

/* ------------------------------------------------------------------ */
/* Counts */

/* Takes a sample on if the count is of the era, or can become so. */
static bool
take_on(struct eddy_count *c, uint32_t era)
{
	/* relaxed: a guess that the CAS checks. */
	uint64_t w = eddy_load_relaxed(&c->word);

	for (;;) {
		uint64_t next = w + 1;

		if ((uint32_t)(w >> 32) != era) {
			if ((uint32_t)w != 0)
				return false;
			/*
			 * relaxed, both: nothing is live, and nobody but this
			 * thread brings it to life.
			 */
			eddy_store_relaxed(&c->ever.objects, 0);
			eddy_store_relaxed(&c->ever.bytes, 0);
			next = (uint64_t)era << 32 | 1;
		}
		/* STACK-A2: what was taken off, was. */
		if (eddy_cas_acquire(&c->word, &w, next))
			return true;
	}
}

struct eddy_count *
eddy_stack_count(struct eddy_stack *s, struct eddy_prof_thread *t, uint32_t era)
{
	/* STACK-A1: pairs with STACK-R1. */
	struct eddy_count *first = eddy_load_acquire(&s->counts);
	struct eddy_count *c;

	for (c = first; c != NULL; c = c->next)
		if (c->thread == t && take_on(c, era))
			return c;
	c = eddy_ground_take(sizeof(*c));
	if (c == NULL)
		return NULL;
	c->thread = t;
	c->stack = s;
	/* relaxed: published by STACK-R1. */
	eddy_store_relaxed(&c->word, (uint64_t)era << 32 | 1);
	do
		c->next = first;
	/* STACK-R1: all of it.  STACK-A1: another's. */
	while (!eddy_cas_acq_rel(&s->counts, &first, c));
	return c;
}

void
eddy_count_drop(struct eddy_count *c)
{
	/* STACK-R2: its sums were taken off. */
	(void)eddy_add_release(&c->word, (uint64_t)-1);
}

/* ------------------------------------------------------------------ */
/* Threads */

static uint64_t
myself(void)
{
	return (uint64_t)(uint32_t)eddy_os_pid() << 32 |
	       (uint32_t)eddy_os_tid();
}

void
eddy_stack_name(struct eddy_prof_thread *t, const char *name)
{
	union {
		char text[EDDY_THREAD_NAME];
		uint64_t word[EDDY_THREAD_NAME / sizeof(uint64_t)];
	} u = {{0}};

	for (size_t i = 0; i < sizeof(u.text) - 1 && name[i] != '\0'; i++)
		u.text[i] = name[i];
	for (size_t i = 0; i < sizeof(u.word) / sizeof(u.word[0]); i++)
		/* relaxed: a name. */
		eddy_store_relaxed(&t->name[i], u.word[i]);
}

/* The entry passes to the caller, if its thread has ended. */
static bool
take_over(struct eddy_prof_thread *t, uint64_t me)
{
	/* relaxed, all: a guess; the CAS tells who has it. */
	uint64_t who = eddy_load_relaxed(&t->who);

	if (eddy_load_relaxed(&t->live) != 0)
		return false;
	/*
	 * The caller has none: one that is in its name is of another's.  What
	 * a child has of its parent may be in use there by the thread that
	 * forked, under its old name.
	 */
	if (who >> 32 != me >> 32 ||
	    (who != me && eddy_os_thread_there((pid_t)(uint32_t)who)))
		return false;
	if (!eddy_cas_relaxed(&t->who, &who, me))
		return false;
	eddy_stack_name(t, "");
	/* relaxed, both: a number. */
	eddy_store_relaxed(&t->uid, eddy_add_relaxed(&next_uid, 1));
	return true;
}

static struct eddy_prof_thread *
find_ended(uint64_t me)
{
	/* relaxed, both: entries are for ever, and STACK-A1 came before. */
	struct eddy_prof_thread *t = eddy_load_relaxed(&cursor);

	for (unsigned i = 0; i < N_LOOKS; i++) {
		if (t == NULL)
			t = eddy_stack_threads();
		if (t == NULL)
			return NULL;
		if (take_over(t, me))
			return t;
		t = t->next;
	}
	/* relaxed: a guess. */
	eddy_store_relaxed(&cursor, t);
	return NULL;
}

struct eddy_prof_thread *
eddy_stack_thread(bool reuse)
{
	/* STACK-A1: pairs with STACK-R1. */
	struct eddy_prof_thread *first = eddy_load_acquire(&threads);
	uint64_t me = myself();
	struct eddy_prof_thread *t = reuse ? find_ended(me) : NULL;

	if (t != NULL)
		return t;
	t = eddy_ground_take(sizeof(*t));
	if (t == NULL)
		return NULL;
	/* relaxed, all: numbers; published by STACK-R1. */
	t->index = eddy_add_relaxed(&n_threads, 1);
	eddy_store_relaxed(&t->uid, eddy_add_relaxed(&next_uid, 1));
	eddy_store_relaxed(&t->who, me);
	do
		t->next = first;
	/* STACK-R1: all of it.  STACK-A1: another's. */
	while (!eddy_cas_acq_rel(&threads, &first, t));
	return t;
}

unsigned
eddy_stack_n_threads(void)
{
	/* relaxed: a number. */
	return eddy_load_relaxed(&n_threads);
}

struct eddy_prof_thread *
eddy_stack_threads(void)
{
	/* STACK-A1: pairs with STACK-R1. */
	return eddy_load_acquire(&threads);
}
