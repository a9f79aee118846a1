/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * freeze_step.c - a thread frozen at every instruction of malloc and free.
 *
 * The tracer attaches to one thread of the target and steps it through
 * bursts of malloc and free of every class, which refill, overflow, claim
 * runs and chunks.  At each instruction the thread is left standing while
 * another completes its operations in the same classes, on the same CPU and
 * on others, and now and then the target forks.  An instruction is visited
 * once a class and pass, so that what is rare is not crowded out.
 *
 * A restartable sequence cannot be stepped: each stop aborts it.  The first
 * abort shows which instruction opens the sequence (it stores the descriptor);
 * from then on the thread runs from there to a breakpoint at every exit.
 */
#include <errno.h>
#include <linux/rseq.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "freeze_target.h"
#include "rig.h"
#include "section_exits.h"
#include "tracee.h"

#if defined(__x86_64__)

enum {
	N_OPS_SHORT = 500,
	N_OPS_LONG = 10000,
	FORK_EVERY = 64,
	RENEW_EVERY = 256, /* steps: the deadline of the victim */
	LIMIT_S = 300,
	STRETCH_S = 30, /* at most, beyond the time: for a slow path */
	SLOW_OP = 64,   /* instructions: more than any hit takes */
	N_VISITS = 1 << 18,
	N_SECTIONS = 64,
	MAX_EXITS = 24,
	MAX_CODE = 512,
	GROWTH_BYTES = 64 << 20
};

struct visit {
	uintptr_t ip; /* with the class on top; 0: unused */
	uint32_t count;
	bool in_short_op;
};

struct opening {
	uintptr_t ip;
	struct section section;
	uint64_t n_runs;
};

static struct stage *stage;
static struct tracee victim;
static struct visit visits[N_VISITS];
static struct opening openings[N_SECTIONS];
static unsigned n_openings;
static uintptr_t rseq_area; /* of the victim; 0: none */
static uintptr_t return_to; /* from the operation under way */

static struct {
	uint64_t steps, freezes, ops, slow_ops, aborts, runs, forks;
	uint64_t frozen, frozen_allocator, frozen_slow; /* distinct */
} n;

static struct visit *
visit_of(uintptr_t ip, unsigned class)
{
	uintptr_t key = ip | (uintptr_t)(class + 1) << 56;
	size_t at = (key * 0x9e3779b97f4a7c15) >> 46;

	while (visits[at].ip != key && visits[at].ip != 0)
		at = (at + 1) % N_VISITS;
	visits[at].ip = key;
	return &visits[at];
}

static bool
read_target(uintptr_t from, void *to, size_t size)
{
	struct iovec here = {to, size};
	struct iovec there = {(void *)from, size};

	return process_vm_readv(victim.pid, &here, 1, &there, 1, 0) ==
	       (ssize_t)size;
}

static uint64_t
read_word(uintptr_t from)
{
	uint64_t word = 0;

	if (from == 0 || !read_target(from, &word, sizeof(word)))
		return 0;
	return word;
}

static _Noreturn void
victim_stalled(const char *what, uintptr_t ip, unsigned long long done)
{
	char place[256];

	(void)kill(victim.pid, SIGKILL);
	rig_stalled("%s after %llu of %u operations: victim stands at %s", what,
	    done, atomic_load(&stage->tracer_n_ops),
	    rig_place(ip, place, sizeof(place)));
}

static void
check_target_lives(void)
{
	int status;

	if (waitpid(victim.pid, &status, WNOHANG) != 0)
		rig_fail_now("the target ended with %#x", status);
}

/* Gives `go` one more turn and waits until `done` has caught up. */
static void
one_turn(_Atomic uint32_t *go, _Atomic uint32_t *done, const char *what,
    uintptr_t ip)
{
	uint64_t limit = rig_now_ns() + (uint64_t)rig.patience_s * 1000000000;
	uint64_t ops = atomic_load(&stage->helper.n_ops);
	uint32_t turn = atomic_fetch_add(go, 1) + 1;
	uint32_t seen;

	rig_futex_wake(go);
	while ((seen = atomic_load(done)) != turn) {
		(void)rig_futex_wait(done, seen, 500);
		if (atomic_load(done) != turn)
			check_target_lives();
		if (rig_now_ns() > limit)
			victim_stalled(
			    what, ip, atomic_load(&stage->helper.n_ops) - ops);
	}
}

static void
freeze_at(uintptr_t ip)
{
	one_turn(&stage->tracer_helper_go, &stage->helper_done,
	    "the other thread stood still", ip);
	n.freezes++;
	if (n.freezes % FORK_EVERY == 0) {
		one_turn(&stage->tracer_fork_go, &stage->main_fork_done,
		    "fork() or its child hung", ip);
		n.forks++;
	}
}

/* From the opening store to the first exit; the others are all waiting. */
static void
run_through(struct opening *o)
{
	uint8_t code[MAX_CODE + 16] = {0};
	uint64_t exits[MAX_EXITS];
	unsigned char old[MAX_EXITS];
	struct user_regs_struct regs;
	struct section s = o->section;
	size_t n_exits;

	if (s.length > MAX_CODE)
		rig_fail_now(
		    "a section of %llu bytes", (unsigned long long)s.length);
	(void)read_target(s.start, code, s.length);
	n_exits = section_exits(&s, code, exits, MAX_EXITS - 1);
	if (return_to != 0)
		exits[n_exits++] = return_to;
	for (size_t i = 0; i < n_exits; i++)
		old[i] = tracee_exchange_byte(&victim, exits[i], 0xcc);
	tracee_move(&victim, PTRACE_CONT);
	for (size_t i = n_exits; i-- > 0;)
		(void)tracee_exchange_byte(&victim, exits[i], old[i]);
	regs = tracee_registers(&victim);
	regs.rip--;
	tracee_set_registers(&victim, &regs);
	o->n_runs++;
	n.runs++;
}

static struct opening *
opening_at(uintptr_t ip)
{
	for (unsigned i = 0; i < n_openings; i++)
		if (openings[i].ip == ip)
			return &openings[i];
	return NULL;
}

/* A step that stored the descriptor of a section that begins here? */
static void
learn_section(uintptr_t ip, uintptr_t before)
{
	uint64_t at = read_word(
	    rseq_area == 0 ? 0 : rseq_area + offsetof(struct rseq, rseq_cs));
	struct section s;

	if (at == 0 || !read_target(at, &s, sizeof(s)) ||
	    ip - s.start >= s.length)
		return;
	n.aborts++;
	if (opening_at(before) != NULL || n_openings == N_SECTIONS)
		return;
	openings[n_openings].ip = before;
	openings[n_openings++].section = s;
}

/* The caller's address is on top of the stack at the first step inside. */
static void
note_entry(const struct user_regs_struct *regs, uint32_t op)
{
	static uint32_t known_op;

	if (op == known_op || !rig_in_allocator(regs->rip))
		return;
	known_op = op;
	return_to = read_word(regs->rsp);
	if (rig_in_allocator(return_to))
		return_to = 0;
}

static void
step(uintptr_t ip, bool in_op)
{
	struct opening *o = in_op ? opening_at(ip) : NULL;

	if (n.steps++ % RENEW_EVERY == 0)
		rig_deadline(LIMIT_S, "the victim itself does not get on");
	if (o != NULL) {
		run_through(o);
		return;
	}
	tracee_move(&victim, PTRACE_SINGLESTEP);
}

/* The last operation's instructions, to tell hits from slow paths. */
static struct visit *trail[SLOW_OP];
static unsigned trail_length;

static void
end_op(void)
{
	if (trail_length == 0)
		return;
	n.ops++;
	if (trail_length >= SLOW_OP)
		n.slow_ops++;
	else
		for (unsigned i = 0; i < trail_length; i++)
			trail[i]->in_short_op = true;
	trail_length = 0;
}

/* A short run visits all instructions first, then again for each class. */
static unsigned
visit_class(uint32_t pass)
{
	return pass == 0 && !rig.is_long ? 0
					 : atomic_load(&stage->victim_class);
}

/* On a busy machine not one slow path may fit into the time: then longer. */
static bool
is_over(uint64_t end)
{
	if (n.slow_ops == 0)
		end += (uint64_t)STRETCH_S * 1000000000;
	return rig_now_ns() > end;
}

/* Steps one script, from STEP_AGAIN to its end. */
static void
step_script(uint32_t pass, uint64_t end)
{
	uintptr_t before = 0;

	while (atomic_load(&stage->victim_between) == 0) {
		struct user_regs_struct regs = tracee_registers(&victim);
		uint32_t op = atomic_load(&stage->victim_op);
		bool in_op = op % 2 != 0 && !is_over(end);

		if (in_op) {
			struct visit *v = visit_of(regs.rip, visit_class(pass));

			note_entry(&regs, op);
			learn_section(regs.rip, before);
			if (trail_length < SLOW_OP)
				trail[trail_length++] = v;
			if (v->count <= pass) {
				freeze_at(regs.rip);
				v->count++;
			}
		} else {
			end_op();
		}
		before = regs.rip;
		step(regs.rip, in_op);
		if (is_over(end))
			return;
	}
}

static void
attach(void)
{
	struct __ptrace_rseq_configuration config;
	uint32_t tid;

	while ((tid = atomic_load(&stage->victim_tid)) == 0) {
		check_target_lives();
		(void)rig_futex_wait(&stage->victim_tid, 0, 1000);
	}
	victim.tid = (pid_t)tid;
	if (!tracee_seize(&victim))
		rig_skip("ptrace is not permitted");
	atomic_store(&stage->tracer_victim_go, 1);
	rig_futex_wake(&stage->tracer_victim_go);
	if (tracee_wait(&victim) != STEP_AGAIN)
		rig_fail_now("the victim did not begin");
	if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, victim.tid, sizeof(config),
		&config) == (long)sizeof(config))
		rseq_area = config.rseq_abi_pointer;
}

static size_t
target_rss_bytes(void)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/statm", victim.pid);
	return rig_rss_bytes_of(path);
}

/* Distinct addresses, whatever the class. */
static void
count_frozen(void)
{
	for (size_t i = 0; i < N_VISITS; i++) {
		uintptr_t ip = visits[i].ip & (((uintptr_t)1 << 56) - 1);
		bool in_short = false;
		bool is_first = true;

		if (visits[i].ip == 0 || visits[i].count == 0)
			continue;
		for (unsigned c = 0; c < drum_class_count(); c++) {
			struct visit *v = visit_of(ip, c);

			in_short |= v->in_short_op;
			is_first &= v->count == 0 || v >= &visits[i];
		}
		if (!is_first)
			continue;
		n.frozen++;
		n.frozen_allocator += rig_in_allocator(ip);
		n.frozen_slow += !in_short;
	}
}

static void
report(size_t base, size_t peak)
{
	count_frozen();
	rig_ok(n.freezes > 0,
	    "%llu freezes: each time the other thread did %u operations",
	    (unsigned long long)n.freezes, atomic_load(&stage->tracer_n_ops));
	rig_ok(n.slow_ops > 0,
	    "%llu operations stepped, %llu of them through slow paths",
	    (unsigned long long)n.ops, (unsigned long long)n.slow_ops);
	rig_ok(n.frozen_allocator > 0,
	    "frozen at %llu addresses, %llu in %s, %llu on slow paths",
	    (unsigned long long)n.frozen,
	    (unsigned long long)n.frozen_allocator, rig.library,
	    (unsigned long long)n.frozen_slow);
	rig_ok(true, "fork returned and its child worked on %llu times",
	    (unsigned long long)n.forks);
	rig_diag("%llu instructions; %u sections, aborted %llu times, run "
		 "through %llu times",
	    (unsigned long long)n.steps, n_openings,
	    (unsigned long long)n.aborts, (unsigned long long)n.runs);
	rig_ok(peak < base + GROWTH_BYTES,
	    "resident memory: %zu MiB at first, %zu MiB at most", base >> 20,
	    peak >> 20);
}

static void
step_all(void)
{
	uint64_t end;
	size_t base = 0;
	size_t peak = 0;

	attach();
	end = rig_now_ns() + (uint64_t)(rig.seconds * 1e9);
	for (;;) {
		uint32_t pass = atomic_load(&stage->victim_pass);
		size_t rss;

		step_script(pass, end);
		rss = target_rss_bytes();
		if (pass == 0)
			base = rss > base ? rss : base;
		peak = rss > peak ? rss : peak;
		if (is_over(end))
			break;
		end_op();
		tracee_resume(&victim, PTRACE_CONT);
		if (tracee_wait(&victim) != STEP_AGAIN)
			rig_fail_now("the victim did not begin again");
	}
	rig_diag("%u passes over all classes completed",
	    atomic_load(&stage->victim_pass));
	(void)kill(victim.pid, SIGKILL);
	if (n.slow_ops == 0 && atomic_load(&stage->victim_pass) == 0)
		rig_skip("too slow here: the time ended in the first pass, "
			 "before any slow path");
	report(base, peak);
}

int
main(int argc, char **argv)
{
	rig_start(argc, argv, 6);
	stage = mmap(NULL, sizeof(*stage), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (stage == MAP_FAILED)
		rig_fail_now("no memory");
	atomic_store(
	    &stage->tracer_n_ops, rig.is_long ? N_OPS_LONG : N_OPS_SHORT);
	victim.pid = fork();
	if (victim.pid < 0)
		rig_fail_now("fork: errno %d", errno);
	if (victim.pid == 0)
		freeze_target(stage);
	rig_pin(0); /* with the victim: the cheapest stops */
	step_all();
	return rig_end();
}

#else

int
main(void)
{
	rig_skip("stepping is written for x86-64");
}

#endif
