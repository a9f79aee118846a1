/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * env_process.c - the process as the program finds it: state untouched, fd 2
 * silent, sandboxes survived, odd options survived.
 */
#include "probe.h"

static bool
signals_default(const char *when)
{
	struct sigaction sa;
	bool held = true;

	for (int i = 1; i < 65; i++)
		if (sigaction(i, NULL, &sa) == 0 && sa.sa_handler != SIG_DFL) {
			tap_diag("signal %d has a handler %s", i, when);
			held = false;
		}
	return held;
}

static unsigned
threads(void)
{
	char buf[8192];
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, buf, sizeof buf - 1);
	char *at;

	(void)close(fd);
	buf[n > 0 ? n : 0] = '\0';
	at = strstr(buf, "Threads:");
	return at != NULL ? (unsigned)strtoul(at + 8, NULL, 10) : 0;
}

static unsigned
open_files(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Runs with clean signals and mask, without handlers of the test. */
static int
state(void)
{
	unsigned files = open_files();
	struct rlimit mine;
	struct rlimit parent;
	cpu_set_t set;
	sigset_t mask;
	int policy = 0;
	int bad = 0;

	bad += !signals_default("before main");
	for (int round = 0; round < 2; round++) {
		(void)sigprocmask(SIG_BLOCK, NULL, &mask);
		for (int i = 1; i < 32; i++)
			bad += sigismember(&mask, i) != 0;
		bad += prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) != 0;
		bad += prctl(PR_GET_DUMPABLE) != 1;
		bad += prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 0;
		(void)sched_getaffinity(0, sizeof set, &set);
		bad += CPU_COUNT(&set) != sysconf(_SC_NPROCESSORS_ONLN);
		if (syscall(SYS_get_mempolicy, &policy, 0, 0, 0, 0) == 0)
			bad += policy != 0;
		bad += sched_getscheduler(0) != SCHED_OTHER;
		(void)getrlimit(RLIMIT_NOFILE, &mine);
		if (prlimit(getppid(), RLIMIT_NOFILE, NULL, &parent) == 0)
			bad += mine.rlim_cur != parent.rlim_cur;
		bad += getenv("EDDY_TEST_MARK") == NULL;
		bad += threads() != 1;
		if (bad != 0)
			tap_diag("round %d: %d faults", round, bad);
		for (size_t i = 0; i < 3000; i++)
			p_free(p_malloc(i * 700));
	}
	if (open_files() != files) {
		tap_diag("%u files, then %u", files, open_files());
		bad++;
	}
	bad += !signals_default("after work");
	return bad != 0;
}

static bool
test_state(char **argv)
{
	char why[64];
	sigset_t none;
	pid_t pid = fork();

	if (pid == 0) {
		char arg[] = "state";

		for (int i = 1; i < 65; i++)
			(void)signal(i, SIG_DFL);
		(void)sigemptyset(&none);
		(void)sigprocmask(SIG_SETMASK, &none, NULL);
		(void)setenv("EDDY_TEST_MARK", "1", 1);
		(void)setenv("EDDY_TAP_CHILD", "1", 1);
		tap_exec(argv[0], arg);
	}
	return probe_wait(pid, why, sizeof why);
}

/* Large and failing requests, with a pipe for fd 2. */
static void
test_quiet(void)
{
	static const size_t size[] = {1, 1 << 20, (size_t)1 << 30,
	    (size_t)3 << 30, (size_t)1 << 46, SIZE_MAX / 2, SIZE_MAX - 100};
	int keep = dup(STDERR_FILENO);
	char text[300];
	int fd[2];
	ssize_t n;

	if (pipe(fd) != 0)
		tap_bail("pipe");
	(void)dup2(fd[1], STDERR_FILENO);
	(void)fcntl(fd[0], F_SETFL, O_NONBLOCK);
	for (size_t i = 0; i < COUNT(size); i++) {
		p_free(p_malloc(size[i]));
		p_free(p_calloc(2, size[i] / 2));
		void *p = p_malloc(10);
		void *q = p_realloc(p, size[i]);

		p_free(q != NULL ? q : p);
	}
	(void)malloc_trim(0);
	n = read(fd[0], text, sizeof text - 1);
	(void)dup2(keep, STDERR_FILENO);
	(void)close(keep);
	(void)close(fd[0]);
	(void)close(fd[1]);
	text[n > 0 ? n : 0] = '\0';
	if (!tap_ok(n <= 0, "large and failing requests leave fd 2 alone"))
		tap_diag("it says: %s", text);
}

static void *
own_work(void *arg)
{
	struct own *o = arg;

	for (int i = 0; i < 200000; i++)
		own_step(o);
	own_end(o);
	return NULL;
}

static int
six_threads(void)
{
	static struct own o[6];
	pthread_t t[6];
	unsigned long bad = 0;

	for (unsigned i = 0; i < 6; i++) {
		own_begin(&o[i], i + 1, 100000);
		if (pthread_create(&t[i], NULL, own_work, &o[i]) != 0)
			return 2;
	}
	for (int i = 0; i < 6; i++) {
		(void)pthread_join(t[i], NULL);
		bad += o[i].doubles + o[i].nulls;
	}
	return bad != 0;
}

/* What container runtimes and sandboxes are known to refuse. */
static int
sandbox(void)
{
	static const int denied[] = {SYS_mbind, SYS_get_mempolicy,
	    SYS_set_mempolicy, SYS_move_pages, SYS_migrate_pages,
	    SYS_membarrier, SYS_getcpu, SYS_sched_getaffinity,
	    SYS_sched_setaffinity, SYS_memfd_create, SYS_mlock, SYS_userfaultfd,
	    SYS_perf_event_open, SYS_prctl};
	static const int missing[] = {
	    SYS_rseq, SYS_getrandom, SYS_process_madvise, SYS_mremap};
	char arg[] = "six";

	/* prctl last: it installs the filters */
	if (!probe_refuse(missing, COUNT(missing), ENOSYS) ||
	    !probe_refuse(denied, COUNT(denied), EPERM))
		return 77;
	tap_exec(arg, arg);
}

static int
some_work(void)
{
	static void *p[3000];

	for (size_t i = 0; i < 3000; i++) {
		p[i] = p_malloc(1 + i * 40);
		*(char *)p[i] = 1;
	}
	for (int i = 0; i < 3000; i++)
		p_free(p[i]);
	return 0;
}

/* Options that no parser should trip over; what they say is not the point. */
static void
test_garbage_options(char **argv)
{
	static char long_word[20000];
	static char many[20000];
	static const char *const var[] = {"MALLOC_CONF", "EDDY_CONF"};
	static const char *const value[] = {"", ",", ":", "abc",
	    "abc:", "narenas:0", "narenas:-1", "narenas:99999999999999999999",
	    "dirty_decay_ms:-2,muzzy_decay_ms:9223372036854775808",
	    "tcache:maybe", "background_thread:\xff\xfe", "lg_tcache_max:99",
	    "thp:", "percpu_arena:percpu,narenas:1", ":,:,:", "a:b:c:d",
	    "metadata_thp:always,thp:always", "check:1", "rseq:", "\n\n%n%s",
	    "narenas:1,narenas:2,tcache:false", long_word, many};
	int keep = dup(STDERR_FILENO);
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	bool held = true;

	memset(long_word, 'a', sizeof long_word - 1);
	for (size_t i = 0; i + 12 < sizeof many; i += 11)
		memcpy(many + i, "narenas:1,,", 11);
	(void)dup2(null, STDERR_FILENO);
	for (size_t k = 0; k < COUNT(var); k++) {
		for (size_t i = 0; i < COUNT(value); i++) {
			(void)setenv(var[k], value[i], 1);
			held = probe_again(argv, "work", value[i]) && held;
		}
		(void)unsetenv(var[k]);
	}
	(void)dup2(keep, STDERR_FILENO);
	tap_ok(held, "a program works under options that make no sense");
}

int
main(int argc, char **argv)
{
	const char *arg = argc > 1 ? argv[1] : "";

	tap_begin(argv);
	if (strcmp(arg, "state") == 0)
		return state();
	if (strcmp(arg, "sandbox") == 0)
		return sandbox();
	if (strcmp(arg, "six") == 0)
		return six_threads();
	if (strcmp(arg, "work") == 0)
		return some_work();
	tap_guard(60);
	tap_ok(test_state(argv), "signals, mask, affinity, limits, files, "
				 "threads stay as they were");
	test_quiet();
	tap_ok(probe_again(argv, "sandbox", "sandbox"),
	    "six threads work where 18 system calls are refused");
	test_garbage_options(argv);
	return tap_end();
}
