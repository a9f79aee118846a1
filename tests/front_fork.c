/* SPDX-License-Identifier: BSD-2-Clause */
/* front_fork.c - children of busy processes allocate, thread and fork. */
#include "probe.h"

static struct flag stop;

static void *
hammer(void *arg)
{
	uint64_t rng = tap.seed + (uintptr_t)arg;

	while (!flag_is_set(&stop)) {
		uint64_t r = tap_random(&rng);
		size_t limit = (r & 3) != 0 ? 4096 : 3000000;
		char *p = p_malloc(1 + (size_t)(r >> 8) % limit);

		if (p != NULL)
			p[0] = 1;
		p_free(p);
	}
	return NULL;
}

static void
start_hammers(pthread_t *t, int n)
{
	flag_clear(&stop);
	for (int i = 0; i < n; i++)
		if (pthread_create(&t[i], NULL, hammer, (void *)(intptr_t)i))
			tap_bail("pthread_create");
}

static void
stop_hammers(pthread_t *t, int n)
{
	flag_set(&stop);
	for (int i = 0; i < n; i++)
		(void)pthread_join(t[i], NULL);
}

/* A good deal of every kind of work; exits with 3 when it goes wrong. */
static void
child_work(int steps)
{
	for (int i = 0; i < steps; i++) {
		unsigned char *p = p_malloc((size_t)1 << (i % 22));
		unsigned char *z;

		p[0] = 77;
		p = p_realloc(p, 100 + (size_t)i * 37);
		if (p[0] != 77)
			_exit(3);
		p_free(p);
		z = p_calloc(7, 99 + (size_t)i * 11);
		for (int k = 0; k < 693; k++)
			if (z[k] != 0)
				_exit(4);
		p_free(z);
	}
}

static bool
await(pid_t pid, const char *what, int round)
{
	char why[64];

	if (pid < 0)
		tap_bail("fork: errno %d", errno);
	if (probe_wait(pid, why, sizeof why))
		return true;
	tap_diag("%s, round %d: %s", what, round, why);
	return false;
}

static void
test_child_allocates(void)
{
	enum { THREADS = 6 };
	pthread_t t[THREADS];
	bool held = true;

	start_hammers(t, THREADS);
	for (int k = 0; held && k < 60; k++) {
		pid_t pid = fork();

		if (pid == 0) {
			probe_child_begin(10);
			child_work(300);
			_exit(0);
		}
		held = await(pid, "child", k);
	}
	stop_hammers(t, THREADS);
	tap_ok(held, "a child forked amid six allocating threads allocates");
}

static void *
own_thread(void *arg)
{
	struct own *o = arg;

	for (int i = 0; i < 20000; i++)
		own_step(o);
	own_end(o);
	return NULL;
}

/* The child starts threads of its own; its child forks again. */
static void
generations(int depth)
{
	static struct own o[4];
	pthread_t t[4];
	char why[64];
	pid_t pid;

	child_work(100);
	for (int i = 0; i < 4; i++) {
		own_begin(&o[i], (uint64_t)i + 1, 100000);
		if (pthread_create(&t[i], NULL, own_thread, &o[i]) != 0)
			_exit(5);
	}
	pid = depth > 0 ? fork() : 0;
	if (pid == 0 && depth > 0) {
		probe_child_begin(20);
		generations(depth - 1);
		_exit(0);
	}
	for (int i = 0; i < 4; i++)
		(void)pthread_join(t[i], NULL);
	if (depth > 0 && !probe_wait(pid, why, sizeof why))
		_exit(6);
	for (int i = 0; i < 4; i++)
		if (o[i].doubles != 0 || o[i].nulls != 0)
			_exit(7);
}

static void
test_generations(void)
{
	pthread_t t[3];
	bool held = true;

	start_hammers(t, 3);
	for (int k = 0; held && k < 8; k++) {
		pid_t pid = fork();

		if (pid == 0) {
			probe_child_begin(30);
			generations(3);
			_exit(0);
		}
		held = await(pid, "family", k);
	}
	stop_hammers(t, 3);
	tap_ok(held, "children start threads and fork, four deep");
}

static void *
forker(void *arg)
{
	bool *held = arg;
	void *p[32];

	for (int k = 0; *held && k < 10; k++) {
		pid_t pid;

		for (int i = 0; i < 32; i++)
			p[i] = p_malloc((size_t)16 << (i % 12));
		pid = fork();
		if (pid == 0) {
			probe_child_begin(15);
			for (int i = 0; i < 32; i++)
				p_free(p[i]);
			child_work(100);
			_exit(0);
		}
		for (int i = 0; i < 32; i++)
			p_free(p[i]);
		*held = await(pid, "child", k);
	}
	return NULL;
}

static void
test_many_forkers(void)
{
	enum { N = 12 };
	pthread_t t[N];
	bool held[N];
	bool all = true;

	for (int i = 0; i < N; i++) {
		held[i] = true;
		(void)pthread_create(&t[i], NULL, forker, &held[i]);
	}
	for (int i = 0; i < N; i++) {
		(void)pthread_join(t[i], NULL);
		all = all && held[i];
	}
	tap_ok(all, "twelve threads fork at once; children free what they got");
}

static void
in_handler(void)
{
	void *p[100];

	for (int i = 0; i < 100; i++)
		p[i] = p_malloc((size_t)i * 300 + 1);
	for (int i = 0; i < 100; i++)
		p_free(p[i]);
}

static void
test_atfork(void)
{
	pthread_t t[3];
	bool held = true;

	(void)pthread_atfork(in_handler, in_handler, in_handler);
	start_hammers(t, 3);
	for (int k = 0; held && k < 40; k++) {
		pid_t pid = fork();

		if (pid == 0) {
			probe_child_begin(10);
			in_handler();
			_exit(0);
		}
		held = await(pid, "child", k);
	}
	stop_hammers(t, 3);
	tap_ok(held, "pthread_atfork handlers allocate");
}

static long
private_dirty_kib(void)
{
	char buf[4096];
	int fd = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof buf - 1);
	char *at;

	(void)close(fd);
	if (n <= 0)
		return -1;
	buf[n] = '\0';
	at = strstr(buf, "Private_Dirty:");
	return at == NULL ? -1 : strtol(at + 14, NULL, 10);
}

/* Light work in a child must not write all over the heap it shares. */
static void
test_copy_on_write(void)
{
	enum { N = 60000 };
	static char *p[N];
	int fd[2];
	long kib = -1;
	pid_t pid;

	for (int i = 0; i < N; i++) {
		size_t n = 500 + (size_t)(i * 37) % 3000;

		p[i] = p_malloc(n);
		memset(p[i], 1, n);
	}
	for (int i = 0; i < N; i += 3) {
		p_free(p[i]);
		p[i] = NULL;
	}
	if (pipe(fd) != 0)
		tap_bail("pipe");
	pid = fork();
	if (pid == 0) {
		probe_child_begin(20);
		for (int s = 0; s < 10; s++) {
			for (size_t i = 0; i < 500; i++)
				p_free(p_malloc(50 + i));
			(void)usleep(50000);
		}
		kib = private_dirty_kib();
		_exit(write(fd[1], &kib, sizeof kib) != sizeof kib);
	}
	if (read(fd[0], &kib, sizeof kib) != sizeof kib)
		kib = -1;
	(void)await(pid, "child", 0);
	for (int i = 0; i < N; i++)
		p_free(p[i]);
	if (!tap_ok(kib >= 0 && kib < 10 * KIB,
		"light work in a child leaves a heap of 120 MiB shared"))
		tap_diag("%ld KiB of its own", kib);
}

int
main(int argc, char **argv)
{
	(void)argc;
	tap_begin(argv);
	tap_guard(100);
	test_child_allocates();
	test_generations();
	test_many_forkers();
	test_copy_on_write();
	test_atfork();
	return tap_end();
}
