/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * prof_subject.c - a program for prof_readers.sh and prof_end.sh: it allocates
 * in functions of known names, and ends as its argument says.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *kept[100000];
static size_t n_kept;

/* How many of each; volatile: nothing is to be known of them, lest functions
 * are made anew for these numbers. */
static volatile size_t n_small = 50000;
static volatile size_t n_large = 100;
static volatile size_t n_zeros = 2000;
static volatile size_t n_gone = 50000;

/* Not to be made a jump, or be merged. */
#define HERE __asm__ volatile("" ::: "memory")

__attribute__((noinline)) static void
keep_small(size_t n)
{
	for (size_t i = 0; i < n; i++)
		kept[n_kept++] = malloc(100);
	HERE;
}

__attribute__((noinline)) static void
keep_large(size_t n)
{
	for (size_t i = 0; i < n; i++)
		kept[n_kept++] = malloc(200000);
	HERE;
}

__attribute__((noinline)) static void
keep_zeros(size_t n)
{
	for (size_t i = 0; i < n; i++)
		kept[n_kept++] = calloc(10, 400);
	HERE;
}

__attribute__((noinline)) static void
come_and_go(size_t n)
{
	for (size_t i = 0; i < n; i++) {
		void *p = malloc(1000);

		*(volatile char *)p = 1;
		free(p);
	}
	HERE;
}

__attribute__((noinline)) static void
work(void)
{
	keep_small(n_small);
	keep_large(n_large);
	keep_zeros(n_zeros);
	come_and_go(n_gone);
	HERE;
}

static void
at_exit_allocate(void)
{
	kept[n_kept++] = malloc(3000);
	free(malloc(70000));
	if (write(STDOUT_FILENO, "at exit\n", 8) != 8)
		_exit(99);
}

static void
free_all(void)
{
	while (n_kept > 0)
		free(kept[--n_kept]);
}

int
main(int argc, char **argv)
{
	const char *end = argc > 1 ? argv[1] : "return";

	work();
	if (strcmp(end, "free") == 0) {
		free_all();
		return 7;
	}
	if (strcmp(end, "printf") == 0) {
		(void)setvbuf(stdout, NULL, _IOFBF, BUFSIZ);
		(void)printf("in stdio's buffer\n");
		return 0;
	}
	if (strcmp(end, "atexit") == 0 && atexit(at_exit_allocate) != 0)
		return 99;
	if (strcmp(end, "exit") == 0)
		exit(3);
	if (strcmp(end, "_exit") == 0)
		_exit(4);
	return 0;
}
