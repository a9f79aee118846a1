/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ring_steps.c - a thread frozen, and killed, at every instruction of a put
 * into a return ring, of a take, of a gather, of a step of housekeeping.
 *
 * For each scene (the ring empty, full, spilling, and so on) one victim is
 * stepped through its operation.  Then, for each instruction of its way, a new
 * one runs up to a breakpoint there; two helpers put and take on the same ring
 * meanwhile; and then the victim goes on, or dies by the bare exit call.  All
 * that the ring holds is taken out and counted.  Who went on has lost nothing;
 * who died, a batch and a descriptor at most; nothing comes twice.  Linked with
 * the library, not preloaded: one row, no caches.
 *
 * A step of housekeeping purges free pages of all kinds.  Helpers take and free
 * large blocks, purge and do steps while it stands; in the end all that is free
 * must be clean, but for the run in a dead hand.
 *
 * A gather drains rows of other CPUs.  Helpers on both CPUs use malloc and free
 * while it stands, so that rows are opened again under its hands; in the end
 * another gather must leave nothing in any cache.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/heap/arena.h"
#include "lib/heap/segment.h"
#include "lib/policy/decay.h"
#include "rig.h"
#include "ring_target.h"
#include "tracee.h"

#if defined(__x86_64__)

enum {
	MAX_STEPS = 1 << 18,
	LIMIT_S = 120,
	BREAKPOINT = 0xcc,
	LONG_WAY = 1000,
	MISSES = 4
};

/* Of one scene. */
struct result {
	unsigned outcome; /* undisturbed */
	unsigned n_frozen;
	unsigned n_killed;
	unsigned n_left;       /* not tried for lack of time */
	unsigned n_missed;     /* victims that went another way */
	unsigned n_idle;       /* turns in which no helper put, or took */
	unsigned lost_objects; /* by one death, at most */
	unsigned lost_batches;
	unsigned n_harmless; /* deaths that cost nothing */
	unsigned n_parked;   /* objects were left in caches */
	unsigned n_strange;  /* losses without a death, or more of them */
};

static struct ring_stage *stage;
static struct tracee victim;
/* Where an undisturbed victim was before each of its instructions. */
static uintptr_t trace[MAX_STEPS];
static unsigned n_trace;

static void
command(enum ring_command c, const char *what)
{
	uint64_t limit = rig_now_ns() + (uint64_t)rig.patience_s * 1000000000;
	uint32_t turn;
	uint32_t seen;
	int status;

	stage->tracer_command = c;
	turn = atomic_fetch_add(&stage->tracer_command_go, 1) + 1;
	rig_futex_wake(&stage->tracer_command_go);
	while ((seen = atomic_load(&stage->target_done)) != turn) {
		(void)rig_futex_wait(&stage->target_done, seen, 500);
		if (waitpid(victim.pid, &status, WNOHANG) != 0)
			rig_fail_now(
			    "the target ended with %#x", (unsigned)status);
		if (rig_now_ns() > limit)
			rig_stalled("%s", what);
	}
}

/* Attached, and about to begin its operation. */
static void
start_victim(void)
{
	rig_deadline(LIMIT_S, "a victim does not get on");
	command(RING_BEGIN, "the ring could not be filled");
	victim.tid = (pid_t)stage->target_victim_tid;
	if (!tracee_seize(&victim))
		rig_skip("ptrace is not permitted");
	atomic_store(&stage->tracer_victim_go, 1);
	rig_futex_wake(&stage->tracer_victim_go);
	if (tracee_wait(&victim) != RING_SIGNAL)
		rig_fail_now("the victim did not begin");
}

/* Goes on to the end of the operation, which comes before its signal. */
static void
finish_victim(void)
{
	if (tracee_next(&victim, PTRACE_CONT) != RING_SIGNAL)
		rig_fail_now("the victim did not get on");
	tracee_detach(&victim);
}

/* Up to a breakpoint there, or its signal; returns which. */
static int
run_to(uintptr_t at)
{
	unsigned char old = tracee_exchange_byte(&victim, at, BREAKPOINT);
	int signo = tracee_next(&victim, PTRACE_CONT);
	struct user_regs_struct regs;

	(void)tracee_exchange_byte(&victim, at, old);
	if (signo == RING_SIGNAL)
		return signo;
	if (signo != SIGTRAP)
		rig_fail_now("the victim got signal %d", signo);
	regs = tracee_registers(&victim);
	regs.rip--;
	tracee_set_registers(&victim, &regs);
	return signo;
}

/* Reads, and changes nothing. */
static bool
is_pure(uintptr_t at)
{
	return at == (uintptr_t)eddy_decay_look ||
	       at == (uintptr_t)eddy_decay_due ||
	       at == (uintptr_t)eddy_segments_dirty;
}

/*
 * One instruction further; but what gives objects to their slabs is long, and
 * stepped by others (freeze_step).
 */
static void
trace_step(void)
{
	struct user_regs_struct regs = tracee_registers(&victim);

	if (n_trace == MAX_STEPS)
		rig_fail_now("an operation of endless steps");
	trace[n_trace++] = regs.rip;
	if (regs.rip != (uintptr_t)eddy_arena_put && !is_pure(regs.rip))
		tracee_move(&victim, PTRACE_SINGLESTEP);
	else if (run_to(tracee_word(&victim, regs.rsp)) != SIGTRAP)
		rig_fail_now("a call did not return");
}

/* Returns: false: out of time. */
static bool
trace_victim(uint64_t end)
{
	bool is_over;

	stage->tracer_is_first = true;
	start_victim();
	stage->tracer_is_first = false;
	while (atomic_load(&stage->victim_at) == 0)
		tracee_move(&victim, PTRACE_SINGLESTEP);
	n_trace = 0;
	while (atomic_load(&stage->victim_at) == 1 && rig_now_ns() < end)
		trace_step();
	is_over = atomic_load(&stage->victim_at) == 2;
	finish_victim();
	command(RING_END, "the ring could not be emptied");
	return is_over;
}

/*
 * Up to instruction k of the trace.  Returns: false: the victim went another
 * way, and is over.
 */
static bool
advance_victim(unsigned k)
{
	uintptr_t at = trace[k];
	unsigned visits = 0;

	for (unsigned i = 0; i <= k; i++)
		visits += trace[i] == at;
	for (;;) {
		if (run_to(at) == RING_SIGNAL)
			return false;
		/* Code may also serve before and after the operation. */
		if (atomic_load(&stage->victim_at) == 1 && --visits == 0)
			return true;
		tracee_move(&victim, PTRACE_SINGLESTEP);
	}
}

static void
kill_victim(void)
{
	struct user_regs_struct regs = tracee_registers(&victim);

	regs.rip = (uintptr_t)ring_exit_thread;
	regs.rsp = (regs.rsp - 256) / 16 * 16 - 8;
	regs.orig_rax = (unsigned long long)-1;
	tracee_set_registers(&victim, &regs);
	tracee_detach(&victim);
}

static void
note_losses(struct result *r, unsigned most)
{
	unsigned objects = stage->target_lost_objects;
	unsigned batches = stage->target_lost_batches;

	if (objects > r->lost_objects)
		r->lost_objects = objects;
	if (batches > r->lost_batches)
		r->lost_batches = batches;
	r->n_harmless += most != 0 && objects == 0 && batches == 0;
	r->n_parked += stage->target_parked != 0;
	r->n_strange += objects > most * stage->target_batch || batches > most;
}

/* At instruction k: the helpers work, then the victim goes on or dies. */
static void
try_step(unsigned k, bool kills, struct result *r)
{
	start_victim();
	if (!advance_victim(k)) {
		r->n_missed++;
		tracee_detach(&victim);
		command(RING_END, "the ring could not be emptied");
		note_losses(r, 0);
		return;
	}
	command(RING_HELP, "the helpers stood still");
	r->n_idle += stage->target_puts == 0 || stage->target_takes == 0;
	if (kills)
		kill_victim();
	else
		finish_victim();
	command(RING_END, "the ring could not be emptied");
	note_losses(r, kills ? 1 : 0);
	r->n_frozen += !kills;
	r->n_killed += kills;
}

/* A long way is tried at each address once, in a long run three times. */
static bool
is_to_try(unsigned k)
{
	unsigned visits = 0;

	if (n_trace < LONG_WAY)
		return true;
	for (unsigned i = 0; i < k && visits < 3; i++)
		visits += trace[i] == trace[k];
	return visits < (rig.is_long ? 3 : 1);
}

static void
judge(const struct ring_scene *s, unsigned size, const struct result *r)
{
	bool good = r->n_strange == 0 && r->n_idle == 0 && r->n_parked == 0 &&
		    r->outcome == s->outcome &&
		    r->n_missed <= r->n_frozen / MISSES;

	rig_ok(good,
	    "%u B, %s: frozen at %u of %u instructions, killed at %u; a death "
	    "costs %u of %u %s, %u descriptors at most, %u cost nothing",
	    size, s->name, r->n_frozen, n_trace, r->n_killed, r->lost_objects,
	    stage->target_batch, s->act == RING_STEP ? "pages" : "objects",
	    r->lost_batches, r->n_harmless);
	if (r->n_left != 0)
		rig_diag("%u instructions not tried: out of time", r->n_left);
	if (!good || r->n_missed != 0)
		rig_diag("%u losses too many, %u turns without a put or a "
			 "take, %u times left in caches, %u other ways, "
			 "outcome %u and not %u",
		    r->n_strange, r->n_idle, r->n_parked, r->n_missed,
		    r->outcome, s->outcome);
}

static void
try_scene(unsigned scene, unsigned size)
{
	const struct ring_scene *s = &ring_scenes[scene];
	struct result r = {0};
	uint64_t end;

	stage->tracer_scene = scene;
	stage->tracer_size = size;
	end = rig_now_ns() + (uint64_t)(rig.seconds * 1e9);
	/* Twice: descriptors that are made are made by the first. */
	if (!trace_victim(end) || (n_trace < LONG_WAY && !trace_victim(end))) {
		rig_ok_skip("%u B, %s: too slow here", size, s->name);
		return;
	}
	if (stage->target_parked != 0) {
		rig_ok_skip("%u B, %s: membarrier is refused", size, s->name);
		return;
	}
	r.outcome = atomic_load(&stage->victim_outcome);
	end += (uint64_t)(rig.seconds * 1e9);
	for (unsigned k = 0; k < n_trace; k++) {
		if (!is_to_try(k))
			continue;
		if (rig_now_ns() > end) {
			r.n_left++;
			continue;
		}
		try_step(k, false, &r);
		try_step(k, true, &r);
	}
	judge(s, size, &r);
}

int
main(int argc, char **argv)
{
	/* The heap is linked in. */
	(void)unsetenv("EDDY_SO");
	rig_start(argc, argv, 10);
	stage = mmap(NULL, sizeof(*stage), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (stage == MAP_FAILED)
		rig_fail_now("no memory");
	rig_pin(0); /* with the victim: the cheapest stops */
	victim.pid = fork();
	if (victim.pid < 0)
		rig_fail_now("no process");
	if (victim.pid == 0)
		ring_target(stage);
	for (unsigned i = 0; i < n_ring_sizes; i++)
		for (unsigned scene = 0; scene < n_ring_scenes; scene++)
			/* Pages have no size. */
			if (ring_scenes[scene].act != RING_STEP || i == 0)
				try_scene(scene, ring_sizes[i]);
	(void)kill(victim.pid, SIGKILL);
	rig_diag("%u descriptors made in all", stage->target_n_batches);
	return rig_end();
}

#else

int
main(void)
{
	rig_skip("stepping is written for x86-64");
}

#endif
