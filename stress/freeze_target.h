/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * freeze_target.h - the process that freeze_step traces: who does what when.
 *
 * Three threads: the victim runs scripts of malloc and free and is stepped;
 * the helper beats a number of operations each time the tracer says so; the
 * main thread forks on demand.  While the victim moves, both others wait in a
 * futex; while they move, the victim stands.
 */
#ifndef EDDY_STRESS_FREEZE_TARGET_H
#define EDDY_STRESS_FREEZE_TARGET_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "ledger.h"

/* Shared by target and tracer; a word's first name is its writer. */
struct stage {
	_Atomic uint32_t tracer_helper_go; /* futex: one more turn */
	_Atomic uint32_t helper_done;      /* futex: turns completed */
	_Atomic uint32_t tracer_fork_go;   /* futex */
	_Atomic uint32_t main_fork_done;   /* futex */
	_Atomic uint32_t tracer_victim_go; /* futex: begin the scripts */
	_Atomic uint32_t victim_tid;       /* futex: ready when not 0 */
	_Atomic uint32_t victim_op;        /* odd inside malloc or free */
	_Atomic uint32_t victim_class;     /* the script's */
	_Atomic uint32_t victim_pass;      /* scripts of all classes done */
	_Atomic uint32_t victim_between;   /* 1: restocking, let it run */
	_Atomic uint32_t tracer_n_ops;     /* of each turn */
	struct drum helper;
};

/* Signal by which the victim says that stepping begins again. */
enum { STEP_AGAIN = 12 /* SIGUSR2 */ };

_Noreturn void freeze_target(struct stage *stage);

#endif /* EDDY_STRESS_FREEZE_TARGET_H */
