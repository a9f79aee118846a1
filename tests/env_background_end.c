/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * env_background_end.c - background threads where processes fork, turn into
 * daemons, may create no thread, change their user, or end.
 */
#include "tasks.h"

#include <sys/ptrace.h>

/* A user that has no other process, and whom limits hold for. */
#define NOBODY 61234

/* Frees enough for something to be due soon, with dirty_decay_ms below. */
#define BUSY "dirty_decay_ms:10,idle_purge_ms:10"

static void
churn(size_t n)
{
	void *p[64];

	for (size_t k = 0; k < n; k++) {
		for (size_t i = 0; i < COUNT(p); i++) {
			p[i] = p_malloc(i * 10000 + 1);
			memset(p[i], 1, i * 10000 + 1);
		}
		for (size_t i = 0; i < COUNT(p); i++)
			p_free(p[i]);
	}
}

/* In a fresh child: none; one after its first thread.  Exits. */
__attribute__((noreturn)) static void
child_looks(void)
{
	probe_child_begin(30);
	if (tasks_look().n != 1)
		_exit(11);
	churn(3);
	(void)usleep(20000);
	if (tasks_look().n != 1)
		_exit(12);
	if (task_create() != 0)
		_exit(13);
	_exit(tasks_wait(1).n == 2 ? 0 : 14);
}

static int
child_is_well(pid_t pid)
{
	char why[64];

	if (probe_wait(pid, why, sizeof why))
		return 0;
	tap_diag("child: %s", why);
	return 1;
}

static int
forked(void)
{
	pid_t pid;

	if (task_create() != 0 || tasks_wait(1).workers != 1)
		return 1;
	pid = fork();
	if (pid == 0)
		child_looks();
	if (child_is_well(pid) != 0)
		return 2;
	/* Its parent's is still there, and is woken by no other's. */
	return tasks_look().workers == 1 ? 0 : 3;
}

/* Children of children, each with its own. */
static int
forked_twice(void)
{
	pid_t pid;

	if (task_create() != 0 || tasks_wait(1).workers != 1)
		return 1;
	pid = fork();
	if (pid == 0) {
		probe_child_begin(40);
		if (task_create() != 0 || tasks_wait(1).workers != 1)
			_exit(21);
		pid = fork();
		if (pid == 0)
			child_looks();
		_exit(child_is_well(pid) == 0 ? 0 : 22);
	}
	return child_is_well(pid);
}

static struct flag stop;

static void *
create_on(void *arg)
{
	while (!flag_is_set(&stop)) {
		(void)task_create();
		churn(1);
	}
	return arg;
}

/* Cut at any instant, the first creation among them. */
static int
forked_anywhere(void)
{
	enum { THREADS = 3 };
	double seconds = probe_seconds(1.5);
	uint64_t end = probe_ns() + (uint64_t)(seconds * 1e9);
	pthread_t t[THREADS];
	int n = 0;

	flag_clear(&stop);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, create_on, NULL) != 0)
			return 1;
	for (; probe_ns() < end || n < 10; n++) {
		pid_t pid = fork();

		if (pid == 0) {
			probe_child_begin(30);
			churn(1);
			if (task_create() != 0)
				_exit(31);
			churn(1);
			exit(0);
		}
		if (child_is_well(pid) != 0)
			return 2;
	}
	flag_set(&stop);
	for (int i = 0; i < THREADS; i++)
		(void)pthread_join(t[i], NULL);
	tap_diag("%d children", n);
	return 0;
}

/* A daemon: its parents are gone, its first thread is still to come. */
static int
daemonised(void)
{
	int pipes[2];
	char result = 99;
	pid_t pid;

	if (pipe(pipes) != 0)
		return 1;
	if (task_create() != 0 || tasks_wait(1).workers != 1)
		return 2;
	pid = fork();
	if (pid == 0) {
		(void)setsid();
		if (fork() != 0)
			_exit(0);
		probe_child_begin(30);
		result = 1;
		if (tasks_look().n == 1 && task_create() == 0)
			result = tasks_wait(1).n == 2 ? 0 : 2;
		if (write(pipes[1], &result, 1) != 1)
			_exit(1);
		_exit(0);
	}
	(void)close(pipes[1]);
	if (child_is_well(pid) != 0)
		return 3;
	if (read(pipes[0], &result, 1) != 1)
		return 4;
	return result;
}

/* ------------------------------------------------------------------ */
/* No thread to be had */

static int
refused(int err)
{
	static const int calls[] = {SYS_clone, SYS_clone3};
	pthread_t t;

	if (!probe_refuse(calls, COUNT(calls), err))
		return 77;
	churn(3);
	/* What libc makes of it is the program's. */
	if (pthread_create(&t, NULL, task_idle, NULL) != err)
		return 1;
	churn(3);
	return tasks_look().n == 1 ? 0 : 2;
}

static int
refused_eagain(void)
{
	return refused(EAGAIN);
}

static int
refused_eperm(void)
{
	return refused(EPERM);
}

/* From before the start, so that the library's own is what is refused. */
static int
refused_from_start(void)
{
	static const int calls[] = {SYS_clone3, SYS_clone};
	char arg[] = "refused2";

	if (!probe_refuse(calls, COUNT(calls), EPERM))
		return 77;
	tap_exec(arg, arg);
}

static int
refused2(void)
{
	churn(3);
	if (task_create() != EPERM)
		return 1;
	churn(3);
	return tasks_look().n == 1 ? 0 : 2;
}

/* A kernel that does not wipe pages at fork: none, rather than wrong ones. */
static int
no_wipe(void)
{
	static const int calls[] = {SYS_madvise};
	pid_t pid;

	if (!probe_refuse(calls, 1, EINVAL))
		return 77;
	if (task_create() != 0 || task_create() != 0)
		return 1;
	churn(3);
	if (tasks_look().n != 1)
		return 2;
	pid = fork();
	if (pid == 0) {
		churn(3);
		_exit(task_create());
	}
	return child_is_well(pid);
}

/* One that accepts everything and does nothing, as emulators may. */
static int
lying(void)
{
	static const int calls[] = {SYS_madvise};

	if (!probe_refuse(calls, 1, 0))
		return 77;
	if (task_create() != 0)
		return 1;
	churn(3);
	return tasks_look().n == 1 ? 0 : 2;
}

static int
as_nobody(rlim_t now, rlim_t later)
{
	struct rlimit limit = {now, later};

	if (getuid() != 0 || setrlimit(RLIMIT_NPROC, &limit) != 0 ||
	    setresgid(NOBODY, NOBODY, NOBODY) != 0 ||
	    setresuid(NOBODY, NOBODY, NOBODY) != 0)
		return 77;
	return 0;
}

static pthread_barrier_t barrier;

static void *
wait_twice(void *arg)
{
	(void)pthread_barrier_wait(&barrier);
	(void)pthread_barrier_wait(&barrier);
	return arg;
}

/* The limit has room for the program's thread and not for ours. */
static int
limited(void)
{
	struct rlimit limit = {3, 3};
	pthread_t t;
	int err = as_nobody(2, 3);

	if (err != 0)
		return err;
	(void)pthread_barrier_init(&barrier, NULL, 2);
	errno = 55;
	err = pthread_create(&t, NULL, wait_twice, NULL);
	if (err == EAGAIN)
		return 77; /* the user has other processes after all */
	if (err != 0 || errno != 55)
		return 1;
	(void)pthread_barrier_wait(&barrier);
	if (tasks_look().n != 2)
		return 2;
	churn(3);
	(void)pthread_barrier_wait(&barrier);
	(void)pthread_join(t, NULL);
	/* And with the next, when there is room. */
	if (setrlimit(RLIMIT_NPROC, &limit) != 0 || task_create() != 0)
		return 3;
	return tasks_wait(1).n == 2 ? 0 : 4;
}

/* ------------------------------------------------------------------ */
/* Many that are the first */

enum { MANY = 200 };

static atomic_int created;
static pthread_barrier_t together;

static void *
first_of_many(void *arg)
{
	(void)pthread_barrier_wait(&together);
	if (task_create() == 0)
		(void)atomic_fetch_add(&created, 1);
	(void)pthread_barrier_wait(&together);
	return arg;
}

/* Threads that pthread_create does not know of: libc makes them. */
static void
on_timer(union sigval v)
{
	(void)first_of_many(v.sival_ptr);
}

static int
many(void)
{
	struct sigevent how = {0};
	struct itimerspec when = {.it_value = {.tv_nsec = 50000000}};
	pthread_attr_t attr;

	(void)pthread_barrier_init(&together, NULL, MANY + 1);
	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setstacksize(&attr, 65536);
	how.sigev_notify = SIGEV_THREAD;
	how.sigev_notify_function = on_timer;
	how.sigev_notify_attributes = &attr;
	for (int i = 0; i < MANY; i++) {
		timer_t timer;

		if (timer_create(CLOCK_MONOTONIC, &how, &timer) != 0 ||
		    timer_settime(timer, 0, &when, NULL) != 0)
			return 77;
	}
	if (tasks_look().workers != 0)
		return 1;
	(void)pthread_barrier_wait(&together);
	(void)pthread_barrier_wait(&together);
	if (atomic_load(&created) != MANY)
		return 2;
	return tasks_wait(1).workers == 1 ? 0 : 3;
}

/* ------------------------------------------------------------------ */
/* Users */

/* setuid is for all threads of a process. */
static int
changes_user(void)
{
	struct tasks t;
	char line[128];
	char want[128];

	if (getuid() != 0)
		return 77;
	if (task_create() != 0)
		return 1;
	t = tasks_wait(1);
	if (t.workers != 1)
		return 2;
	/* A thread that does not answer would hold it up for ever. */
	if (setresgid(NOBODY, NOBODY, NOBODY) != 0 ||
	    setresuid(NOBODY, NOBODY, NOBODY) != 0)
		return 3;
	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	task_line(t.worker[0], "Uid", line, sizeof line);
	(void)snprintf(want, sizeof want, "%d\t%d\t%d\t%d", NOBODY, NOBODY,
	    NOBODY, NOBODY);
	if (strcmp(line, want) != 0) {
		tap_diag("uid %s", line);
		return 4;
	}
	churn(3);
	return tasks_wait(1).workers == 1 ? 0 : 5;
}

/* ------------------------------------------------------------------ */
/* The end */

__attribute__((destructor)) static void
late_churn(void)
{
	churn(1);
}

static void
at_exit_churn(void)
{
	churn(1);
}

static int
exits(void)
{
	for (int k = 0; k < 40; k++) {
		pid_t pid = fork();

		if (pid == 0) {
			probe_child_begin(20);
			(void)atexit(at_exit_churn);
			if (task_create() != 0)
				_exit(41);
			/* In the midst of whatever it does. */
			churn((size_t)k % 8);
			exit(0);
		}
		if (child_is_well(pid) != 0)
			return 1;
	}
	return 0;
}

static void *
outlive(void *arg)
{
	(void)usleep(200000);
	churn(3);
	if (arg != NULL)
		(void)pthread_cancel(*(pthread_t *)arg);
	(void)usleep(100000);
	/* The last thread of the program ends, and so does the process. */
	return NULL;
}

/* The name of the thread that runs it is the program's. */
static void
at_exit_name(void)
{
	char line[64];

	task_line((pid_t)syscall(SYS_gettid), "Name", line, sizeof line);
	if (strncmp(line, "eddy", 4) == 0)
		_exit(51);
}

static int
main_ends_first(void)
{
	pthread_t t;

	(void)atexit(at_exit_name);
	if (pthread_create(&t, NULL, outlive, NULL) != 0 ||
	    tasks_wait(1).workers != 1)
		return 1;
	pthread_exit(NULL);
}

static int
main_is_cancelled(void)
{
	static pthread_t self;
	pthread_t t;

	self = pthread_self();
	(void)atexit(at_exit_name);
	if (pthread_create(&t, NULL, outlive, &self) != 0 ||
	    tasks_wait(1).workers != 1)
		return 1;
	for (;;)
		(void)pause();
}

/* Gone by then, and none is started by who is left. */
static void *
create_after(void *arg)
{
	(void)usleep(200000);
	for (int i = 0; i < 3; i++)
		if (task_create() != 0)
			_exit(61);
	(void)usleep(100000);
	if (tasks_look().workers != 0)
		_exit(62);
	return arg;
}

static int
none_after_main(void)
{
	pthread_t t;

	if (pthread_create(&t, NULL, create_after, NULL) != 0 ||
	    tasks_wait(1).workers != 1)
		return 1;
	pthread_exit(NULL);
}

/* ------------------------------------------------------------------ */
/* One that stands still */

static void *
work(void *arg)
{
	static _Thread_local struct own o;

	own_begin(&o, (uint64_t)(uintptr_t)arg, 300000);
	for (int i = 0; i < 50000; i++)
		own_step(&o);
	own_end(&o);
	return (void *)(uintptr_t)(o.doubles + o.nulls);
}

static int
stopped(void)
{
	enum { THREADS = 3 };
	pthread_t t[THREADS];
	void *bad;
	pid_t pid;
	pid_t tid;
	int pipes[2];
	int held[2];
	int st;

	if (pipe(pipes) != 0 || pipe(held) != 0)
		return 1;
	pid = fork();
	if (pid == 0) {
		struct tasks now;
		char c;

		if (task_create() != 0)
			_exit(71);
		now = tasks_wait(1);
		if (now.workers != 1 ||
		    write(pipes[1], &now.worker[0], sizeof tid) != sizeof tid)
			_exit(72);
		probe_child_begin(40);
		if (read(held[0], &c, 1) != 1)
			_exit(75);
		for (uintptr_t i = 0; i < THREADS; i++)
			if (pthread_create(
				&t[i], NULL, work, (void *)(i + 1)) != 0)
				_exit(73);
		for (int i = 0; i < THREADS; i++)
			if (pthread_join(t[i], &bad) != 0 || bad != NULL)
				_exit(74);
		exit(0);
	}
	if (read(pipes[0], &tid, sizeof tid) != sizeof tid)
		return 2;
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0 ||
	    ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) != 0 ||
	    waitpid(tid, &st, __WALL) != tid || !WIFSTOPPED(st)) {
		(void)kill(pid, SIGKILL);
		return 77;
	}
	if (write(held[1], "", 1) != 1)
		return 3;
	/* Its end comes with that of the process, which waits for us to see. */
	if (waitpid(tid, &st, __WALL) != tid || !WIFEXITED(st))
		return 4;
	return child_is_well(pid);
}

static const struct part parts[] = {
    {"forked", BUSY, forked, "a child has none, until its first thread"},
    {"twice", BUSY, forked_twice, "so has a child's child"},
    {"anywhere", BUSY, forked_anywhere,
	"children cut off at any instant are well"},
    {"true", "background_thread:true", forked,
	"background_thread:true: the same"},
    {"daemon", BUSY, daemonised, "a daemon has its own"},
    {"eagain", "", refused_eagain, "where clone is refused, none: EAGAIN"},
    {"eperm", "", refused_eperm, "where clone is refused, none: EPERM"},
    {"start", "background_thread:true", refused_from_start,
	"refused at the start, the process starts"},
    {"refused2", "background_thread:true", refused2, NULL},
    {"wipe", "", no_wipe, "where pages cannot be wiped at fork, none"},
    {"lying", "", lying, "nor where the kernel lies about it"},
    {"limited", "", limited,
	"a limit that ours does not fit in is the program's"},
    {"many", "", many, "200 first threads at once bring one"},
    {"user", BUSY, changes_user, "setuid changes its user, too"},
    {"exits", BUSY, exits, "processes exit while it works"},
    {"main", BUSY, main_ends_first,
	"the process ends with its last thread: pthread_exit"},
    {"cancel", BUSY, main_is_cancelled,
	"the process ends with its last thread: a cancelled main"},
    {"after", BUSY, none_after_main, "none is started when main has ended"},
    {"stopped", BUSY, stopped, "one that stands still holds up nobody"},
};

int
main(int argc, char **argv)
{
	tap_begin(argv);
	return parts_main(argc, argv, parts, COUNT(parts));
}
