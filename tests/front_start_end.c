/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * front_start_end.c - malloc in an IFUNC resolver, which runs while the
 * program is being relocated, before any constructor, and after exit began.
 */
#include "probe.h"

static void *early[3];
static void *in_resolver;
static bool early_ran;
static bool early_thread;

static int
early_impl(void)
{
	return 42;
}

static int (*resolve_early(void))(void)
{
	in_resolver = realloc(malloc(1000), 3000);
	return early_impl;
}

int via_ifunc(void) __attribute__((ifunc("resolve_early")));

static void *
early_child(void *arg)
{
	char *p = calloc(10, 1000);

	(void)arg;
	if (p != NULL)
		p[9] = 1;
	return p;
}

static void
before_constructors(int argc, char **argv, char **envp)
{
	pthread_t t;
	void *ret = NULL;

	(void)argc;
	(void)argv;
	(void)envp;
	early[0] = malloc(33);
	memset(early[0], 3, 33);
	early[0] = realloc(early[0], 70000);
	early[1] = calloc(1000, 1000);
	if (posix_memalign(&early[2], 4096, 100) != 0)
		early[2] = NULL;
	if (pthread_create(&t, NULL, early_child, NULL) == 0) {
		(void)pthread_join(t, &ret);
		early_thread = ret != NULL;
		free(ret);
	}
	early_ran = true;
}

__attribute__((section(".preinit_array"), used)) static void (*preinit)(
    int, char **, char **) = before_constructors;

static void
test_early(void)
{
	const char *p = early[0];
	const char *z = early[1];
	bool kept = true;
	bool zero = true;

	tap_ok(early_ran && early[0] != NULL && early[1] != NULL &&
		   early[2] != NULL,
	    "malloc serves before the constructors");
	tap_ok(early_thread, "malloc serves a thread before the constructors");
	tap_ok(via_ifunc() == 42 && in_resolver != NULL,
	    "malloc serves an IFUNC resolver");
	memset(in_resolver, 1, 3000);
	free(in_resolver);
	for (int i = 0; i < 33; i++)
		kept = kept && p[i] == 3;
	for (int i = 0; i < 1000000; i++)
		zero = zero && z[i] == 0;
	tap_ok(kept && zero, "early blocks keep their content");
	for (int i = 0; i < 3; i++)
		free(early[i]);
	tap_ok(true, "early blocks are freed in main");
}

/* After exit began: atexit, on_exit, the last destructor, and a thread. */
enum { HELD = 64 };

static void *held[HELD];
static int report[2] = {-1, -1};

static void
use_heap(char mark)
{
	void *z;

	for (size_t i = 0; i < HELD; i++) {
		free(held[i]);
		held[i] = malloc(100 + i * 700);
		memset(held[i], 1, 100 + i * 700);
	}
	held[0] = realloc(held[0], 200000);
	z = calloc(3, 4000000);
	free(z);
	if (write(report[1], &mark, 1) != 1)
		_exit(9);
}

static void
at_exit(void)
{
	use_heap('a');
}

static void
on_exit_too(int status, void *arg)
{
	(void)status;
	(void)arg;
	use_heap('o');
}

__attribute__((destructor(101))) static void
last_destructor(void)
{
	if (report[1] >= 0)
		use_heap('d');
}

static void *
busy_at_exit(void *arg)
{
	for (size_t i = 1;; i++)
		p_free(p_malloc(i % 5000));
	return arg;
}

static void
test_after_exit(void)
{
	bool all = true;

	for (int k = 0; k < 20; k++) {
		char got[8] = "";
		char why[64];
		pid_t pid;
		bool clean;

		if (pipe(report) != 0)
			tap_bail("pipe");
		pid = fork();
		if (pid == 0) {
			pthread_t t;

			probe_child_begin(10);
			(void)pthread_create(&t, NULL, busy_at_exit, NULL);
			(void)on_exit(on_exit_too, NULL);
			(void)atexit(at_exit);
			for (size_t i = 0; i < HELD; i++)
				held[i] = malloc(i * 97 + 1);
			exit(0);
		}
		(void)close(report[1]);
		clean = probe_wait(pid, why, sizeof why);
		if (read(report[0], got, sizeof got - 1) != 3 ||
		    strcmp(got, "aod") != 0 || !clean) {
			tap_diag("child %d: %s, reached '%s'", k, why, got);
			all = false;
		}
		(void)close(report[0]);
		report[1] = -1;
	}
	tap_ok(all, "exit handlers and the last destructor allocate and free");
}

static void
no_operation(void)
{
}

/* The first thing that the child does are many atexits, which may allocate. */
static void
test_many_atexits(void)
{
	char why[64];
	pid_t pid = fork();

	if (pid == 0) {
		probe_child_begin(10);
		for (int i = 0; i < 2000; i++)
			if (atexit(no_operation) != 0)
				_exit(1);
		exit(0);
	}
	tap_ok(probe_wait(pid, why, sizeof why), "2000 exit handlers");
}

int
main(int argc, char **argv)
{
	(void)argc;
	(void)preinit;
	tap_begin(argv);
	tap_guard(60);
	test_early();
	test_after_exit();
	test_many_atexits();
	return tap_end();
}
