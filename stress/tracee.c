/* SPDX-License-Identifier: BSD-2-Clause */
/* tracee.c - ptrace, for one thread. */
#include "tracee.h"

#if defined(__x86_64__)

#	include <errno.h>
#	include <signal.h>
#	include <stddef.h>
#	include <sys/ptrace.h>
#	include <sys/wait.h>

#	include "rig.h"

enum { EVENT_STOP = 256 /* no signal: a group stop has ended */ };

bool
tracee_seize(const struct tracee *t)
{
	return ptrace(PTRACE_SEIZE, t->tid, NULL, NULL) == 0;
}

int
tracee_wait(const struct tracee *t)
{
	int status = 0;

	if (waitpid(t->tid, &status, __WALL) != t->tid || !WIFSTOPPED(status))
		rig_fail_now("the victim ended with %#x", (unsigned)status);
	if (status >> 16 == PTRACE_EVENT_STOP && WSTOPSIG(status) == SIGTRAP)
		return EVENT_STOP;
	return WSTOPSIG(status);
}

struct user_regs_struct
tracee_registers(const struct tracee *t)
{
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, t->tid, NULL, &regs) != 0)
		rig_fail_now("PTRACE_GETREGS: errno %d", errno);
	return regs;
}

void
tracee_set_registers(
    const struct tracee *t, const struct user_regs_struct *regs)
{
	if (ptrace(PTRACE_SETREGS, t->tid, NULL, regs) != 0)
		rig_fail_now("PTRACE_SETREGS: errno %d", errno);
}

void
tracee_resume(const struct tracee *t, int request)
{
	if (ptrace((enum __ptrace_request)request, t->tid, NULL, 0) != 0)
		rig_fail_now("ptrace %d: errno %d", request, errno);
}

int
tracee_next(const struct tracee *t, int request)
{
	int signo;

	do {
		tracee_resume(t, request);
		signo = tracee_wait(t);
		if (signo == SIGSTOP)
			(void)kill(t->pid, SIGCONT);
	} while (signo == SIGSTOP || signo == SIGCONT || signo == EVENT_STOP);
	return signo;
}

void
tracee_move(const struct tracee *t, int request)
{
	char place[256];
	int signo = tracee_next(t, request);

	if (signo != SIGTRAP)
		rig_fail_now("the victim got signal %d at %s", signo,
		    rig_place(tracee_registers(t).rip, place, sizeof(place)));
}

uint64_t
tracee_word(const struct tracee *t, uintptr_t at)
{
	uint64_t word;

	errno = 0;
	word = (uint64_t)ptrace(PTRACE_PEEKDATA, t->tid, at, NULL);
	if (errno != 0)
		rig_fail_now("PTRACE_PEEKDATA: errno %d", errno);
	return word;
}

unsigned char
tracee_exchange_byte(const struct tracee *t, uintptr_t at, unsigned char byte)
{
	uintptr_t base = at & ~(uintptr_t)7;
	unsigned shift = (unsigned)(at - base) * 8;
	uint64_t word = tracee_word(t, base);
	unsigned char old = (unsigned char)(word >> shift);

	word &= ~((uint64_t)0xff << shift);
	word |= (uint64_t)byte << shift;
	if (ptrace(PTRACE_POKEDATA, t->tid, base, word) != 0)
		rig_fail_now("PTRACE_POKEDATA: errno %d", errno);
	return old;
}

void
tracee_detach(const struct tracee *t)
{
	tracee_resume(t, PTRACE_DETACH);
}

#endif
