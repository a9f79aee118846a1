/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tool_target.c - processes for the tests of eddyctl and its channel to look
 * at: tool_target WHAT [NUMBER].  Each says "ready" and perhaps a process id,
 * and ends with its standard input.
 */
#ifndef _GNU_SOURCE
#	define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BATCH = 256, BLOCKS = 4096 };

static _Atomic(void *) hand[BATCH];
static void *kept[BLOCKS];

static void
until_end(void)
{
	char c;

	while (read(STDIN_FILENO, &c, 1) > 0)
		continue;
}

static void
ready(long pid)
{
	char line[40];
	int n = snprintf(line, sizeof line, "ready %ld\n", pid);

	if (write(STDOUT_FILENO, line, (size_t)n) != n)
		_exit(1);
}

/* Blocks go from one thread to the other, for ever. */
static void *
produce(void *arg)
{
	for (;;) {
		for (int i = 0; i < BATCH; i++)
			if (atomic_load(&hand[i]) == NULL)
				atomic_store(&hand[i], malloc(192));
		usleep(500);
	}
	return arg;
}

static void *
consume(void *arg)
{
	for (;;) {
		for (int i = 0; i < BATCH; i++)
			free(atomic_exchange(&hand[i], NULL));
		usleep(500);
	}
	return arg;
}

static void *
churn(void *arg)
{
	unsigned n = 0;

	for (;;) {
		void *p = malloc(64 + n++ % 4000);

		usleep(5000);
		free(p);
	}
	return arg;
}

static void *
outlive(void *arg)
{
	usleep(300000);
	return arg;
}

static void
start(void *(*run)(void *))
{
	pthread_t t;

	if (pthread_create(&t, NULL, run, NULL) != 0)
		_exit(1);
}

/* What was given back and is in memory again, as after the kernel's huge pages:
 * written to by an address that the compiler knows nothing of. */
static void
refill(size_t bytes)
{
	volatile uintptr_t at = (uintptr_t)malloc(bytes);

	free((void *)at);
	for (size_t i = 0; i < bytes; i += 4096)
		*(volatile char *)(at + i) = 1;
}

/* Touched, and then free and dirty. */
static void
hold(size_t bytes)
{
	size_t each = bytes / BLOCKS;

	for (int i = 0; i < BLOCKS; i++) {
		kept[i] = malloc(each);
		if (kept[i] != NULL)
			memset(kept[i], 1, each);
	}
	for (int i = 0; i < BLOCKS; i++)
		free(kept[i]);
}

/* So many that what is said of them fills more than a socket takes. */
static void
make_arenas(long n)
{
	int (*ctl)(const char *, void *, size_t *, void *, size_t) =
	    (int (*)(const char *, void *, size_t *, void *, size_t))dlsym(
		RTLD_DEFAULT, "mallctl");

	for (long i = 0; ctl != NULL && i < n; i++) {
		unsigned arena;
		size_t size = sizeof arena;

		if (ctl("arenas.create", &arena, &size, NULL, 0) != 0)
			_exit(1);
	}
}

/* A child that goes on, and one that becomes something else. */
static void
with_child(int executes, int with_thread)
{
	char *none[] = {NULL};
	pid_t pid = fork();

	if (pid == 0 && executes)
		execle("/bin/sleep", "sleep", "60", (char *)NULL, none);
	if (pid == 0) {
		if (with_thread)
			start(churn);
		until_end();
		_exit(0);
	}
	ready(pid);
	until_end();
}

int
main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "idle";
	long number = argc > 2 ? atol(argv[2]) : 0;

	kept[0] = malloc(100000);
	if (strcmp(what, "bleed") == 0) {
		start(produce);
		start(consume);
	} else if (strcmp(what, "threads") == 0) {
		for (long i = 0; i < number; i++)
			start(churn);
	} else if (strcmp(what, "refill") == 0) {
		refill((size_t)number);
	} else if (strcmp(what, "hold") == 0) {
		hold((size_t)number);
	} else if (strcmp(what, "arenas") == 0) {
		make_arenas(number);
	} else if (strcmp(what, "fork") == 0) {
		with_child(0, 0);
		return 0;
	} else if (strcmp(what, "fork-threads") == 0) {
		start(churn);
		with_child(0, 1);
		return 0;
	} else if (strcmp(what, "fork-silent") == 0) {
		start(churn);
		with_child(0, 0);
		return 0;
	} else if (strcmp(what, "fork-exit") == 0) {
		pid_t pid = fork();

		if (pid == 0)
			exit(0);
		(void)waitpid(pid, NULL, 0);
	} else if (strcmp(what, "daemon") == 0) {
		if (fork() != 0)
			_exit(0);
	} else if (strcmp(what, "exec") == 0) {
		with_child(1, 0);
		return 0;
	} else if (strcmp(what, "close") == 0) {
		for (int i = 3; i < 1024; i++)
			close(i);
	} else if (strcmp(what, "main-ends") == 0) {
		start(outlive);
		ready(getpid());
		pthread_exit(NULL);
	} else if (strcmp(what, "exit") == 0) {
		exit(0);
	}
	ready(getpid());
	until_end();
	return 0;
}
