/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * flow.h - blocks that flow from the threads that allocate to those that free.
 *
 * A chute is a bounded ring of ledger entries: a producer claims the entry at
 * the tail and fills it, a consumer claims the one at the head and drains it.
 * Its holder may stop at any time; the others then see a chute that is full or
 * empty.  A hand is a thread that works on chutes, step by step.
 *
 * Time is cut into phases.  In steady ones producers and consumers work side
 * by side.  In tidal ones a chute is first filled and only then drained, to
 * the last block, so that more is freed at once than caches may hold.
 */
#ifndef EDDY_STRESS_FLOW_H
#define EDDY_STRESS_FLOW_H

#include <pthread.h>
#include <stdalign.h>

#include "ledger.h"

enum { MAX_FLOW_HOMES = 64 };

struct chute {
	struct entry *entries;
	uint8_t *homes; /* of each entry's block */
	size_t n;
	_Atomic size_t cap_bytes; /* full from here on; W: conductor */
	/* W, R: any hand. */
	alignas(64) _Atomic size_t tail;
	alignas(64) _Atomic size_t head;
	alignas(64) _Atomic size_t bytes; /* never less than what is in it */
	_Atomic uint32_t ebbs;            /* tidal: being drained */
};

struct hand {
	pthread_t thread;
	uint32_t me; /* to the ledger */
	uint64_t random;
	/* Does one thing.  Returns: false: there is nothing to do now. */
	bool (*step)(struct hand *h);
	struct chute *in;
	struct chute *out;
	_Atomic uint32_t cpu; /* W: conductor; where it is pinned, if at all */
	_Atomic uint32_t idles; /* W: conductor; futex: 1: for ever */
	_Atomic uint64_t n_freed;
};

/* What hands share.  W: the conductor, if nothing else is said; R: all. */
struct flow {
	_Atomic uint32_t begins; /* futex */
	_Atomic uint32_t ends;
	_Atomic uint32_t phase;    /* counts */
	_Atomic uint32_t is_tidal; /* this phase */
	_Atomic uint32_t is_pinned;
	_Atomic size_t size; /* of every block; 0: a mixture */
	/* Of short threads.  W: hands. */
	_Atomic uint64_t n_threads;
	/*
	 * In the program's hands, rounded to size classes; never too low.
	 * Apart by the homes on which the blocks were allocated: what is free
	 * on one does not serve the others.  W: hands.
	 */
	struct {
		alignas(64) _Atomic size_t held;
		_Atomic size_t peak;
	} homes[MAX_FLOW_HOMES];
};

extern struct flow flow;

/* The sum of the heights, each home at its own time. */
size_t flow_peak(void);

void chute_create(struct chute *c, size_t n, size_t cap_bytes);
bool chute_is_full(const struct chute *c);
bool chute_is_empty(const struct chute *c);
/* Verifies and frees what is left.  Only when no hand works. */
void chute_drain(struct chute *c);

/* Steps to build patterns from; false: not now. */
bool flow_produce(struct hand *h, struct chute *c);
bool flow_consume(struct hand *h, struct chute *c);
/* From h->in to h->out: the block itself, or another one in its place. */
bool flow_pass_on(struct hand *h);

void hand_start(struct hand *h);
void hand_join(struct hand *h);
/* Steps until the flow ends, or n steps were done. */
void hand_work(struct hand *h, uint64_t n);

/* ------------------------------------------------------------------ */
/* Patterns */

enum { MAX_HANDS = 40, MAX_CHUTES = 4, CHUTE_BYTES = 96 << 20 };

struct pattern {
	const char *name;
	const char *about;
	void (*start)(void); /* chutes and first hands */
	/* Called ten times a second; part: of the time, 0 to 1. */
	void (*tick)(double part);
	/* What a pattern has to say of its own; NULL: nothing. */
	void (*judge)(void);
	/* Whether it has seen what it wants to see; NULL: at once. */
	bool (*is_content)(void);
	bool swaps;    /* roles by phase; tides every second phase */
	bool shifts;   /* sizes by phase, two a phase */
	bool is_fixed; /* no tides, all pinned */
	bool is_light; /* mostly asleep: may run beside two others */
};

extern const struct pattern flow_patterns[];
extern const unsigned n_flow_patterns;

/* Of flow_parked.c. */
void flow_parked_start(void);
void flow_parked_tick(double part);
void flow_parked_judge(void);
bool flow_parked_is_content(void);

/* The next of flow_hands, at work as soon as the flow begins. */
struct hand *flow_add_hand(bool (*step)(struct hand *), uint32_t cpu,
    struct chute *in, struct chute *out);

extern struct chute flow_chutes[MAX_CHUTES];
extern struct hand flow_hands[MAX_HANDS];
extern unsigned n_flow_hands; /* started */

#endif /* EDDY_STRESS_FLOW_H */
