/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * env_background.c - background threads: when there are any, how many, where
 * they run, what signals they take, and that they sleep.
 */
#include "tasks.h"

#include <threads.h>

/* Nothing is ever due, so whoever wakes was woken for no reason. */
#define QUIET "dirty_decay_ms:-1,muzzy_decay_ms:-1,idle_purge_ms:-1"

static void
churn(void)
{
	enum { BLOCKS = 2000 };
	static void *p[BLOCKS];

	for (int k = 0; k < 3; k++) {
		for (size_t i = 0; i < BLOCKS; i++) {
			p[i] = p_malloc(i * 100 + 1);
			memset(p[i], 1, i * 100 + 1);
		}
		for (size_t i = 0; i < BLOCKS; i++)
			p_free(p[i]);
	}
}

/* A process without threads may do what threads forbid. */
static int
single(void)
{
	churn();
	(void)usleep(200000);
	if (tasks_look().n != 1)
		return 1;
	/* Other errors are the machine's: no user namespaces for us. */
	if (unshare(CLONE_NEWUSER) != 0 && errno == EINVAL)
		return 2;
	churn();
	return tasks_look().n == 1 ? 0 : 3;
}

static int
first(void)
{
	struct tasks t;
	char line[128];

	if (task_create() != 0)
		return 1;
	t = tasks_wait(1);
	if (t.workers != 1 || t.n != 2)
		return 2;
	task_line(t.worker[0], "Name", line, sizeof line);
	if (strcmp(line, "eddy_bg0") != 0)
		return 3;
	/* All but SIGKILL, SIGSTOP and the two of libc's own. */
	task_line(t.worker[0], "SigBlk", line, sizeof line);
	if (strtoull(line, NULL, 16) != 0xfffffffe7ffbfeffu)
		return 4;
	if (sched_getscheduler(t.worker[0]) != SCHED_OTHER)
		return 5;
	/* And no more than one. */
	for (int i = 0; i < 20; i++)
		if (task_create() != 0)
			return 6;
	return tasks_wait(1).n == 2 ? 0 : 7;
}

static int
c11_idle(void *arg)
{
	(void)arg;
	return 7;
}

static int
first_c11(void)
{
	thrd_t t;
	int res = 0;

	if (thrd_create(&t, c11_idle, NULL) != thrd_success ||
	    thrd_join(t, &res) != thrd_success || res != 7)
		return 1;
	return tasks_wait(1).n == 2 ? 0 : 2;
}

static int
none(void)
{
	churn();
	if (task_create() != 0)
		return 1;
	(void)usleep(200000);
	return tasks_look().n == 1 ? 0 : 2;
}

static int
from_the_start(void)
{
	return tasks_wait(1).n == 2 ? 0 : 1;
}

static int
two(void)
{
	return task_create() == 0 && tasks_wait(2).n == 3 ? 0 : 1;
}

static int
four(void)
{
	return task_create() == 0 && tasks_wait(4).n == 5 ? 0 : 1;
}

/* What pthread_create says, and errno. */
static int
untouched(void)
{
	pthread_attr_t attr;
	pthread_t t;

	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setstacksize(&attr, (size_t)1 << 50);
	if (pthread_create(&t, &attr, task_idle, NULL) != EAGAIN)
		return 1;
	(void)pthread_attr_destroy(&attr);
	(void)usleep(100000);
	if (tasks_look().n != 1)
		return 2;
	for (int i = 0; i < 3; i++) {
		errno = 77;
		if (pthread_create(&t, NULL, task_idle, NULL) != 0 ||
		    errno != 77 || pthread_join(t, NULL) != 0)
			return 3;
	}
	return tasks_wait(1).workers == 1 ? 0 : 4;
}

/* ------------------------------------------------------------------ */
/* Signals */

static atomic_int handled_by;

static void
on_signal(int sig)
{
	(void)sig;
	atomic_store(&handled_by, (int)syscall(SYS_gettid));
}

/*
 * The program waits for signals that all its threads block.  One that ours
 * would take went to the handler.
 */
static int
signals(void)
{
	static const int sigs[] = {
	    SIGUSR1, SIGTERM, SIGHUP, SIGCHLD, SIGALRM, SIGSEGV, SIGPIPE};
	sigset_t set;
	struct timespec patience = {5, 0};

	(void)sigemptyset(&set);
	for (size_t i = 0; i < COUNT(sigs); i++) {
		(void)signal(sigs[i], on_signal);
		(void)sigaddset(&set, sigs[i]);
	}
	if (task_create() != 0 || tasks_wait(1).workers != 1)
		return 1;
	/* Blocked when the thread is there already: it inherits nothing. */
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	for (int k = 0; k < 300; k++) {
		int sig = sigs[(size_t)k % COUNT(sigs)];

		(void)kill(getpid(), sig);
		if (sigtimedwait(&set, NULL, &patience) != sig)
			return 2;
		p_free(p_malloc(1 + (size_t)k * 3000));
	}
	return atomic_load(&handled_by) == 0 ? 0 : 3;
}

/* ------------------------------------------------------------------ */
/* CPUs */

static int
on_cpus(const char *want)
{
	struct tasks t;
	char line[128];

	if (sysconf(_SC_NPROCESSORS_CONF) < 2)
		return 77;
	if (task_create() != 0)
		return 1;
	t = tasks_wait(1);
	if (t.workers != 1)
		return 2;
	task_line(t.worker[0], "Cpus_allowed_list", line, sizeof line);
	if (strcmp(line, want) == 0)
		return 0;
	tap_diag("CPUs %s, not %s", line, want);
	return 3;
}

static int
on_cpu_0(void)
{
	return on_cpus("0");
}

static int
on_cpu_1(void)
{
	return on_cpus("1");
}

/* The thread that is first to create one is pinned; ours goes where the
 * process may. */
static int
from_pinned(void)
{
	char want[128];
	cpu_set_t set;

	task_line(getpid(), "Cpus_allowed_list", want, sizeof want);
	CPU_ZERO(&set);
	CPU_SET((size_t)sched_getcpu(), &set);
	if (sched_setaffinity(0, sizeof set, &set) != 0)
		return 77;
	return on_cpus(want);
}

/* All CPUs that the process is put on are to be left alone: it is on others. */
static int
put_on_excluded(void)
{
	char arg[] = "excluded2";
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(1, &set);
	if (sched_setaffinity(0, sizeof set, &set) != 0)
		return 77;
	tap_exec(arg, arg);
}

/* Nothing is said on standard error, or one line. */
static int
lines_of(const char *conf)
{
	char buf[4096];
	char why[64];
	ssize_t n = 0;
	ssize_t got;
	int lines = 0;
	int pipes[2];
	char arg[] = "first";
	pid_t pid;

	if (pipe(pipes) != 0)
		return -1;
	(void)setenv("EDDY_CONF", conf, 1);
	pid = fork();
	if (pid == 0) {
		(void)dup2(pipes[1], STDERR_FILENO);
		(void)close(pipes[0]);
		(void)close(pipes[1]);
		tap_exec(arg, arg);
	}
	(void)close(pipes[1]);
	while ((got = read(pipes[0], buf + n, sizeof buf - 1 - (size_t)n)) > 0)
		n += got;
	(void)close(pipes[0]);
	buf[n] = '\0';
	/* The child is the part "first": a worker as ever. */
	if (!probe_wait(pid, why, sizeof why)) {
		tap_diag("%s: %s", conf, why);
		return -1;
	}
	for (ssize_t i = 0; i < n; i++)
		lines += buf[i] == '\n';
	if (lines != 1 || strstr(buf, "not a list of CPUs") == NULL)
		tap_diag("%s", buf);
	return lines;
}

static int
malformed(void)
{
	static const char *const confs[] = {"background_cpus:0-",
	    "background_cpus:none", "exclude_cpus:x", "exclude_cpus:0|",
	    "background_cpus:9999", "exclude_cpus:3-1"};

	for (size_t i = 0; i < COUNT(confs); i++)
		if (lines_of(confs[i]) != 1)
			return (int)i + 1;
	return 0;
}

/* ------------------------------------------------------------------ */
/* Sleep */

static long
switches(pid_t tid)
{
	char line[64];

	task_line(tid, "voluntary_ctxt_switches", line, sizeof line);
	return strtol(line, NULL, 10);
}

static int
asleep(void)
{
	struct tasks t;
	long before;
	long after;

	churn();
	if (task_create() != 0)
		return 1;
	t = tasks_wait(1);
	if (t.workers != 1)
		return 2;
	/* What it does at its start may take a while on a busy machine. */
	after = -1;
	for (unsigned i = 0; i < 20 * tap_patience(); i++) {
		before = switches(t.worker[0]);
		if (before > 0 && before == after)
			break;
		after = before;
		(void)usleep(500000);
	}
	before = switches(t.worker[0]);
	for (int i = 0; i < 20; i++) {
		(void)usleep(100000);
		churn();
	}
	after = switches(t.worker[0]);
	if (after != before)
		tap_diag("woke %ld times", after - before);
	return before > 0 && after == before ? 0 : 3;
}

/* The other way round: with work to do it wakes, and the memory goes. */
static int
awake(void)
{
	enum { SIZE = 128 * MIB };
	struct tasks t;
	long before;
	char *p;

	probe_small_pages();
	if (task_create() != 0)
		return 1;
	t = tasks_wait(1);
	if (t.workers != 1)
		return 2;
	before = switches(t.worker[0]);
	p = p_malloc(SIZE);
	memset(p, 1, SIZE);
	p_free(p);
	for (int i = 0; i < 1000 && probe_rss_kib() > 64 * KIB; i++)
		(void)usleep(10000);
	return probe_rss_kib() <= 64 * KIB && switches(t.worker[0]) > before
		   ? 0
		   : 3;
}

/* A program's own thread does it by hand. */
static int
by_hand(void)
{
	enum { SIZE = 128 * MIB };
	int (*housekeep)(void) =
	    (int (*)(void))dlsym(RTLD_DEFAULT, "eddy_housekeep");
	char *p;
	int ms = 0;

	if (housekeep == NULL)
		return 1;
	probe_small_pages();
	p = p_malloc(SIZE);
	memset(p, 1, SIZE);
	p_free(p);
	for (int i = 0; i < 10000 && ms >= 0; i++) {
		ms = housekeep();
		if (ms > 100)
			ms = 100;
		if (ms > 0)
			(void)usleep((useconds_t)ms * 1000);
	}
	if (ms >= 0)
		return 2;
	if (probe_rss_kib() > 64 * KIB)
		return 3;
	return tasks_look().n == 1 ? 0 : 4;
}

/* ------------------------------------------------------------------ */
/* Loaded late */

static int
late(void)
{
	const char *so = getenv("EDDY_SO");
	char arg[] = "late2";
	char why[64];
	pid_t pid;

	if (so == NULL)
		return 77;
	pid = fork();
	if (pid == 0) {
		(void)unsetenv("LD_PRELOAD");
		(void)setenv("EDDY_LATE", so, 1);
		(void)unsetenv("EDDY_SO");
		tap_exec(arg, arg);
	}
	return probe_wait(pid, why, sizeof why) ? 0 : 1;
}

static int
late2(void)
{
	const char *so = getenv("EDDY_LATE");
	void *h;

	if (so == NULL)
		return 9;
	h = dlopen(so, RTLD_NOW | RTLD_LOCAL);
	if (h == NULL)
		return 1;
	if (tasks_wait(1).n != 2)
		return 2;
	(void)dlclose(h);
	(void)usleep(50000);
	return tasks_look().n == 2 ? 0 : 3;
}

static const struct part parts[] = {
    {"single", "", single, "a process without threads has none of ours"},
    {"first", "", first, "the first thread brings one: named, signals blocked"},
    {"thrd", "", first_c11, "so does one of thrd_create"},
    {"auto", "background_thread_auto:false", none,
	"background_thread_auto:false: none"},
    {"true", "background_thread:true", from_the_start,
	"background_thread:true: one from the start"},
    {"both", "background_thread:true,background_thread_auto:false",
	from_the_start, "that does not depend on the other"},
    {"homes", "topology:4x1x1", four, "four homes have four"},
    {"fewer", "topology:4x1x1,max_background_threads:2", two,
	"max_background_threads:2: two"},
    {"most", "topology:6x1x1", four, "six homes have four"},
    {"untouched", "", untouched,
	"one that fails brings none; errno is the program's"},
    {"signals", "", signals, "signals wait for the program"},
    {"signals_true", "background_thread:true", signals,
	"as they do from the start"},
    {"cpu1", "background_cpus:1", on_cpu_1, "background_cpus:1"},
    {"not0", "exclude_cpus:0,background_cpus:0-1", on_cpu_1,
	"exclude_cpus goes before background_cpus"},
    {"not1", "exclude_cpus:1-8191", on_cpu_0, "exclude_cpus"},
    {"all", "exclude_cpus:0-8191", none, "no CPU left: none"},
    {"absent", "background_cpus:8190", none, "a CPU that is not there: none"},
    {"pinned", "", from_pinned, "a pinned creator pins nobody"},
    {"excluded", "exclude_cpus:1-8191", put_on_excluded,
	"a process on excluded CPUs alone has one elsewhere"},
    {"excluded2", "", on_cpu_0, NULL},
    {"malformed", "", malformed, "lists that are none have one line each"},
    {"asleep", QUIET, asleep, "asleep while nothing is to do"},
    {"awake", "dirty_decay_ms:200,idle_purge_ms:-1", awake,
	"woken when memory is to go"},
    {"by_hand", "dirty_decay_ms:200,idle_purge_ms:200", by_hand,
	"eddy_housekeep does it in a process without threads"},
    {"late", "background_thread:true", late,
	"a library loaded late starts one, and stays"},
    {"late2", "background_thread:true", late2, NULL},
};

int
main(int argc, char **argv)
{
	tap_begin(argv);
	return parts_main(argc, argv, parts, COUNT(parts));
}
