/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * env_faults.c - each system call that the library makes, refused at its n-th
 * time, for n = 1, 2, ... until there is no n-th; and refused for good.  Some
 * lie instead: they succeed, and nothing is done.
 *
 * A tracer refuses only calls that the library itself makes, told by where
 * the instruction or its caller lies, so that the loader lives.  The traced
 * child works twice.  Between the two it asks the tracer to stop refusing:
 * malloc may fail before that, with ENOMEM, but not after.
 */
#include "probe.h"

#ifndef __x86_64__
int
main(void)
{
	tap_skip_all("written for x86-64");
}
#else
#	include <sys/ptrace.h>
#	include <sys/user.h>

/* The child's sign that refusing is over: a call that nobody makes. */
enum { SIGN_NR = SYS_getpgid, SIGN_ARG = 0x0eddeddd };

/* What a lie is answered with. */
enum { LIE = -1, LIE_COUNT = -2 }; /* 0; as many bytes as were asked for */

static const struct {
	int nr;
	int err;
	const char *name;
	int also; /* another call, always refused */
} fault[] = {
    {SYS_mmap, ENOMEM, "mmap", 0},
    {SYS_mprotect, ENOMEM, "mprotect", 0},
    {SYS_madvise, EAGAIN, "madvise", 0},
    {SYS_madvise, LIE, "madvise", 0},
    {SYS_munmap, ENOMEM, "munmap", 0},
    {SYS_mremap, ENOMEM, "mremap", 0},
    {SYS_membarrier, EPERM, "membarrier", 0},
    {SYS_rseq, ENOSYS, "rseq", 0},
    {SYS_prctl, EINVAL, "prctl", 0},
    {SYS_sched_getaffinity, EPERM, "sched_getaffinity", 0},
    {SYS_readlink, EACCES, "readlink", 0},
    {SYS_readlinkat, EACCES, "readlinkat", 0},
    {SYS_openat, EMFILE, "openat", 0},
    {SYS_read, EIO, "read", 0},
    {SYS_close, EIO, "close", 0},
    {SYS_ioctl, ENOTTY, "ioctl", 0},
    {SYS_ioctl, LIE, "ioctl", 0},
    {SYS_pread64, EIO, "pread64", SYS_ioctl},
    {SYS_pread64, LIE_COUNT, "pread64", SYS_ioctl},
    {SYS_getrandom, ENOSYS, "getrandom", 0},
    {SYS_mbind, EPERM, "mbind", 0},
};

/* ---- the child ---- */

static unsigned long wrong;
static unsigned long nulls;

static void *
checked(void *p)
{
	if (p == NULL) {
		nulls++;
		wrong += errno != ENOMEM;
	}
	errno = 0;
	return p;
}

/* Memory that was used before, and is to be zero. */
static void
again(size_t size)
{
	unsigned char *p = checked(p_malloc(size));

	if (p == NULL)
		return;
	memset(p, 0x5a, size / 3);
	memset(p + size - 5000, 0x5a, 5000);
	p_free(p);
	p = checked(p_calloc(1, size));
	for (size_t i = 0; p != NULL && i + 8 <= size; i += 8)
		wrong += *(uint64_t *)(void *)(p + i) != 0;
	p_free(p);
}

static void
work(void)
{
	static const size_t size[] = {8, 100, 3000, 14336, 16384, 50000, 65536,
	    65537, 300000, 2097152, 5000000, 40000000};
	enum { PER = 60 };
	static unsigned char *p[COUNT(size)][PER];

	errno = 0;
	for (size_t s = 0; s < COUNT(size); s++) {
		int n = size[s] > 1000000 ? 4 : PER;

		for (int i = 0; i < n; i++) {
			unsigned char *q = i % 2 != 0
					       ? checked(p_calloc(1, size[s]))
					       : checked(p_malloc(size[s]));

			p[s][i] = q;
			if (q == NULL)
				continue;
			wrong +=
			    i % 2 != 0 && (q[0] != 0 || q[size[s] / 2] != 0 ||
					      q[size[s] - 1] != 0);
			q[0] = 0x5a;
			q[size[s] - 1] = 0x5a;
		}
	}
	for (size_t s = 0; s < COUNT(size); s++)
		for (int i = 0; i < PER; i++) {
			unsigned char *q = p[s][i];
			unsigned char *r;

			if (q == NULL)
				continue;
			r = checked(p_realloc(q, size[s] * 2));
			wrong += (r != NULL ? r : q)[0] != 0x5a ||
				 (r != NULL ? r : q)[size[s] - 1] != 0x5a;
			if (i % 3 == 0 && r != NULL)
				r = checked(p_realloc(q = r, size[s] / 2 + 1));
			p_free(r != NULL ? r : q);
			p[s][i] = NULL;
		}
	again(300000);
	again(1500000);
	again(9000000);
	(void)malloc_trim(0);
	again(9000000);
}

static void *
thread_work(void *arg)
{
	struct own *o = arg;

	for (int i = 0; i < 3000; i++)
		own_step(o);
	own_end(o);
	return NULL;
}

static int
child(void)
{
	struct own o;
	pthread_t t;

	work();
	(void)syscall(SIGN_NR, SIGN_ARG);
	nulls = 0;
	work();
	own_begin(&o, 1, 100000);
	if (pthread_create(&t, NULL, thread_work, &o) != 0)
		return 3;
	(void)pthread_join(t, NULL);
	return wrong != 0 ? 1 : nulls + o.nulls + o.doubles != 0 ? 2 : 0;
}

/* ---- the tracer ---- */

struct range {
	unsigned long from;
	unsigned long to;
};

/* Where the library lies in the child; several mappings make one range. */
static bool
find_library(pid_t pid, const char *so, struct range *r)
{
	char path[64];
	char line[4096];
	char real[4096];
	FILE *f;

	r->from = r->to = 0;
	(void)snprintf(path, sizeof path, "/proc/%d/maps", pid);
	if (realpath(so, real) == NULL)
		return false;
	f = fopen(path, "r");
	while (f != NULL && fgets(line, sizeof line, f) != NULL) {
		unsigned long a;
		unsigned long b;

		if (strstr(line, real) == NULL ||
		    sscanf(line, "%lx-%lx", &a, &b) != 2)
			continue;
		if (r->from == 0)
			r->from = a;
		r->to = b;
	}
	if (f != NULL)
		(void)fclose(f);
	return r->from != 0;
}

static bool
in_library(pid_t pid, const struct user_regs_struct *regs, struct range *r,
    const char *so)
{
	unsigned long at = regs->rip;

	if (r->from == 0 && !find_library(pid, so, r))
		return false;
	if (at >= r->from && at < r->to)
		return true;
	/* libc's wrapper: the caller is at the top of its stack. */
	for (unsigned i = 0; i < 3; i++) {
		errno = 0;
		at = (unsigned long)ptrace(
		    PTRACE_PEEKDATA, pid, regs->rsp + i * 8, NULL);
		if (errno == 0 && at >= r->from && at < r->to)
			return true;
	}
	return false;
}

struct run {
	int nr;
	int also;
	int err;
	unsigned long nth; /* which call to refuse, from 1 */
	bool for_good;
	unsigned long seen;
	int status;
};

static void
trace_me(char *self, int nr, int also)
{
	struct sock_filter f[] = {
	    BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)nr, 2, 0),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)also, 1, 0),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SIGN_NR, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {COUNT(f), f};
	char arg[] = "child";
	int null = open("/dev/null", O_WRONLY);

	probe_child_begin(20);
	(void)setenv("EDDY_TAP_CHILD", "1", 1);
	(void)dup2(null, STDERR_FILENO);
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
		_exit(77);
	(void)raise(SIGSTOP);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) != 0)
		_exit(77);
	tap_exec(self, arg);
}

static unsigned long long
answer(const struct run *run, const struct user_regs_struct *regs)
{
	switch (run->err) {
	case LIE:
		return 0;
	case LIE_COUNT:
		return regs->rdx;
	default:
		return (unsigned long long)-run->err;
	}
}

static void
at_call(
    pid_t pid, struct run *run, struct range *lib, const char *so, bool *over)
{
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, pid, NULL, &regs) != 0)
		return;
	if ((int)regs.orig_rax == SIGN_NR) {
		*over = *over || regs.rdi == SIGN_ARG;
		return;
	}
	if (*over || !in_library(pid, &regs, lib, so))
		return;
	if ((int)regs.orig_rax == run->also) {
		regs.orig_rax = ~0ull;
		regs.rax = (unsigned long long)-ENOTTY;
		(void)ptrace(PTRACE_SETREGS, pid, NULL, &regs);
		return;
	}
	run->seen++;
	if (run->seen == run->nth || (run->for_good && run->seen > run->nth)) {
		regs.orig_rax = ~0ull;
		regs.rax = answer(run, &regs);
		(void)ptrace(PTRACE_SETREGS, pid, NULL, &regs);
	}
}

/* Returns false where nothing can be traced. */
static bool
trace(char *self, const char *so, struct run *run)
{
	struct range lib = {0, 0};
	bool over = false;
	pid_t pid = fork();
	pid_t got;
	int st;

	if (pid == 0)
		trace_me(self, run->nr, run->also != 0 ? run->also : run->nr);
	run->seen = 0;
	if (waitpid(pid, &st, 0) != pid || !WIFSTOPPED(st) ||
	    ptrace(PTRACE_SETOPTIONS, pid, NULL,
		PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE |
		    PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL) != 0)
		return false;
	(void)ptrace(PTRACE_CONT, pid, NULL, NULL);
	while ((got = waitpid(-1, &st, __WALL)) > 0) {
		int sig = 0;

		if (WIFEXITED(st) || WIFSIGNALED(st)) {
			if (got == pid) {
				run->status = st;
				return true;
			}
			continue;
		}
		if (st >> 8 == (SIGTRAP | (PTRACE_EVENT_SECCOMP << 8)))
			at_call(got, run, &lib, so, &over);
		else if (st >> 8 == (SIGTRAP | (PTRACE_EVENT_EXEC << 8)))
			lib.from = 0;
		else if (st >> 16 == 0 && WSTOPSIG(st) != SIGSTOP &&
			 WSTOPSIG(st) != SIGTRAP)
			sig = WSTOPSIG(st);
		(void)ptrace(PTRACE_CONT, got, NULL, (void *)(intptr_t)sig);
	}
	return false;
}

static const char *
verdict(const struct run *run)
{
	if (WIFSIGNALED(run->status))
		return WTERMSIG(run->status) == SIGALRM ? "hung" : "crashed";
	switch (WEXITSTATUS(run->status)) {
	case 0:
		return NULL;
	case 1:
		return "wrong errno, or content lost, or not zero";
	case 2:
		return "did not recover";
	case 3:
		return "could not make a thread afterwards";
	default:
		return "died";
	}
}

static bool
run_ok(char *self, const char *so, const char *name, struct run *run)
{
	const char *why;

	if (!trace(self, so, run))
		tap_skip_all("cannot trace a child here");
	if (WIFEXITED(run->status) && WEXITSTATUS(run->status) == 77)
		tap_skip_all("no seccomp filters or no ptrace here");
	why = verdict(run);
	if (why != NULL)
		tap_diag("%s, %s number %lu: %s (status 0x%x)",
		    run->for_good ? "for good" : "once", name, run->nth, why,
		    run->status);
	return why == NULL;
}

int
main(int argc, char **argv)
{
	const char *so = getenv("EDDY_SO");

	tap_begin(argv);
	if (argc > 1)
		return child();
	if (so == NULL || *so == '\0')
		tap_skip_all("no EDDY_SO: which calls are the library's?");
	tap_guard(150);
	for (size_t i = 0; i < COUNT(fault); i++) {
		struct run run = {.nr = fault[i].nr,
		    .also = fault[i].also,
		    .err = fault[i].err};
		const char *how = run.err < 0 ? "lies" : "is refused";
		bool once = true;
		bool good = true;
		unsigned long calls = 0;

		/* Every early call; later ones in growing steps. */
		for (run.nth = 1; run.nth < 2000;
		     run.nth += run.nth < 12 ? 1 : run.nth / 3) {
			run.for_good = false;
			once = run_ok(argv[0], so, fault[i].name, &run) && once;
			calls = run.seen > calls ? run.seen : calls;
			if (run.seen < run.nth)
				break;
			run.for_good = true;
			good = run_ok(argv[0], so, fault[i].name, &run) && good;
		}
		if (calls == 0) {
			tap_skip(fault[i].name, "the library never calls it");
			continue;
		}
		tap_diag("%s: %lu calls", fault[i].name, calls);
		tap_ok(once, "%s %s once, at each time", fault[i].name, how);
		tap_ok(
		    good, "%s %s for good, from each time", fault[i].name, how);
	}
	return tap_end();
}
#endif
