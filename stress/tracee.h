/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tracee.h - one thread of another process, stepped by ptrace.
 *
 * What goes wrong ends the program; a stop for job control is undone.  x86-64.
 */
#ifndef EDDY_STRESS_TRACEE_H
#define EDDY_STRESS_TRACEE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

struct tracee {
	pid_t pid; /* the process */
	pid_t tid;
};

/* Returns: false: ptrace is not permitted here. */
bool tracee_seize(const struct tracee *t);
/* Waits for its next stop; returns the signal. */
int tracee_wait(const struct tracee *t);
struct user_regs_struct tracee_registers(const struct tracee *t);
void tracee_set_registers(
    const struct tracee *t, const struct user_regs_struct *regs);
/* PTRACE_CONT or another request that lets it run; does not wait. */
void tracee_resume(const struct tracee *t, int request);
/* One step, or up to the next signal, which is returned and not delivered. */
int tracee_next(const struct tracee *t, int request);
/* The same, where no signal but a breakpoint's is expected. */
void tracee_move(const struct tracee *t, int request);
uint64_t tracee_word(const struct tracee *t, uintptr_t at);
/* Of its code; returns what was there. */
unsigned char tracee_exchange_byte(
    const struct tracee *t, uintptr_t at, unsigned char byte);
void tracee_detach(const struct tracee *t);

#endif /* EDDY_STRESS_TRACEE_H */
