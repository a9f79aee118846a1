/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ring_target.h - the process that ring_steps traces: a heap of its own, one
 * victim at a time, two helpers.
 *
 * The main thread obeys: RING_BEGIN fills the ring as the scene wants it and
 * starts a victim, RING_HELP lets the helpers put and take, RING_END counts
 * what is there.  All objects are known by number, so that one that is lost,
 * comes twice or from nowhere is seen.
 *
 * In the scenes of housekeeping what is counted are pages: in the end all that
 * is free must be clean, but for what a death has cost.
 */
#ifndef EDDY_STRESS_RING_TARGET_H
#define EDDY_STRESS_RING_TARGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum ring_act {
	RING_PUT,
	RING_TAKE,
	/* Calls home what CPUs' rows hold; the helpers use malloc and free. */
	RING_GATHER,
	/* A step of housekeeping; the helpers use large blocks, and purge. */
	RING_STEP
};

struct ring_scene {
	const char *name;
	enum ring_act act;
	bool is_filled;  /* cells and spill stack, before what follows */
	unsigned n_room; /* batches taken out of cells again */
	bool no_cells;   /* all cells emptied */
	bool no_spill;   /* as many put as there are cells, and no more */
	bool is_muzzy;   /* of a step: pages are left to the kernel first */
	/* Of put, an enum eddy_put; of take, 1: a batch; if undisturbed. */
	unsigned outcome;
};

extern const struct ring_scene ring_scenes[];
extern const unsigned n_ring_scenes;
extern const unsigned ring_sizes[]; /* of objects: rows to try */
extern const unsigned n_ring_sizes;

enum ring_command { RING_BEGIN, RING_HELP, RING_END };

/* Shared by target and tracer; a word's first name is its writer. */
struct ring_stage {
	_Atomic uint32_t tracer_command_go; /* futex: counts */
	_Atomic uint32_t target_done;       /* futex: commands obeyed */
	_Atomic uint32_t tracer_victim_go;  /* futex: attached */
	_Atomic uint32_t victim_at;         /* 1: in the operation, 2: over */
	_Atomic uint32_t victim_outcome;    /* of it, once over */
	enum ring_command tracer_command;   /* the rest: before a futex */
	unsigned tracer_scene;
	unsigned tracer_size;
	bool tracer_is_first; /* victim of the scene */
	uint32_t target_victim_tid;
	unsigned target_batch;        /* objects that a death may cost */
	unsigned target_puts;         /* or frees: helpers' successes, a turn */
	unsigned target_takes;        /* or mallocs */
	unsigned target_lost_objects; /* at RING_END */
	unsigned target_lost_batches;
	unsigned target_parked;    /* objects that could not be called home */
	unsigned target_n_batches; /* ever made */
};

/* By which a victim says that its operation comes next, and that it is over. */
enum { RING_SIGNAL = 12 /* SIGUSR2 */ };

_Noreturn void ring_target(struct ring_stage *stage);

/* Where a thread is sent to die: the bare exit call. */
_Noreturn void ring_exit_thread(void);

#endif /* EDDY_STRESS_RING_TARGET_H */
