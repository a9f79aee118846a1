/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/prof/traces.h"

#include "lib/prof/ground.h"

#define N_SETS 8
#define N_WAYS 4

struct known {
	uintptr_t frame; /* 0: nothing */
	struct eddy_stack *stack;
	unsigned n;
	uint32_t above[EDDY_TRACE_MAX]; /* the frame: bytes */
	uintptr_t value[EDDY_TRACE_MAX];
};

/* Traces from frames of one hash. */
struct set {
	unsigned next; /* the one that is replaced */
	struct known known[N_WAYS];
};

/* W, R: the thread that has the entry. */
struct eddy_traces {
	struct set *set[N_SETS];
};

/* The thread is in here: a handler keeps out. */
static __thread bool busy;

static unsigned
set_of(uintptr_t frame)
{
	return (unsigned)((frame * 0x9e3779b97f4a7c15) >> 61);
}

static_assert(N_SETS == 1 << 3, "as many as set_of tells apart");

static bool
stands(const struct known *k, uintptr_t frame)
{
	if (k->frame != frame)
		return false;
	for (unsigned i = 0; i < k->n; i++)
		if (*(const uintptr_t *)(frame + k->above[i]) != k->value[i])
			return false;
	return true;
}

struct eddy_stack *
eddy_traces_find(struct eddy_prof_thread *t, uintptr_t frame)
{
	struct eddy_stack *found = NULL;
	struct set *s;

	if (busy || t->traces == NULL)
		return NULL;
	busy = true;
	s = t->traces->set[set_of(frame)];
	for (unsigned i = 0; s != NULL && i < N_WAYS; i++)
		if (stands(&s->known[i], frame)) {
			found = s->known[i].stack;
			break;
		}
	busy = false;
	return found;
}

static struct set *
open_set(struct eddy_prof_thread *t, uintptr_t frame)
{
	struct set **s;

	if (t->traces == NULL)
		t->traces = eddy_ground_take(sizeof(*t->traces));
	if (t->traces == NULL)
		return NULL;
	s = &t->traces->set[set_of(frame)];
	if (*s == NULL)
		*s = eddy_ground_take(sizeof(**s));
	return *s;
}

void
eddy_traces_note(struct eddy_prof_thread *t, uintptr_t frame,
    const struct eddy_trace *trace, struct eddy_stack *stack)
{
	struct set *s;
	struct known *k;

	if (busy || trace->n == 0 || trace->n > EDDY_TRACE_MAX)
		return;
	busy = true;
	s = open_set(t, frame);
	if (s != NULL) {
		k = &s->known[s->next++ % N_WAYS];
		k->frame = 0;
		k->n = 0;
		for (unsigned i = 0; i < trace->n; i++) {
			if (trace->place[i] < frame)
				continue;
			k->above[k->n] = (uint32_t)(trace->place[i] - frame);
			k->value[k->n++] = trace->value[i];
		}
		k->stack = stack;
		k->frame = frame;
	}
	busy = false;
}

void
eddy_traces_forget(struct eddy_prof_thread *t)
{
	for (unsigned i = 0; t->traces != NULL && i < N_SETS; i++)
		for (unsigned k = 0; t->traces->set[i] != NULL && k < N_WAYS;
		     k++)
			t->traces->set[i]->known[k].frame = 0;
}
