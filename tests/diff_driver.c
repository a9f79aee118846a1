/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * diff_driver.c - random calls and what came of them, for diff_jemalloc.
 *
 *     diff_driver SEED STEPS
 *
 * Run under the library in question by LD_PRELOAD.  Standard output: a line a
 * call (step and line, key, arguments, answer, with tabs between), then how
 * often each rule and each name was exercised.
 */
#include "diff.h"

#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

static uint64_t rng;
static unsigned long steps;
static unsigned lines; /* of the step */
static unsigned long rules[N_RULES];

static char buf[65536];
static size_t filled;

uint64_t
diff_random(void)
{
	uint64_t z = (rng += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

unsigned
diff_below(unsigned n)
{
	return (unsigned)(diff_random() % n);
}

bool
diff_one_in(unsigned n)
{
	return diff_below(n) == 0;
}

/* Seconds for a call, which do not run while whoever reads is slow. */
static unsigned patience = 60;

static void
flush(void)
{
	(void)alarm(0);
	for (size_t at = 0; at < filled;) {
		ssize_t n = write(STDOUT_FILENO, buf + at, filled - at);

		if (n <= 0)
			_exit(2);
		at += (size_t)n;
	}
	filled = 0;
	(void)alarm(patience);
}

__attribute__((format(printf, 1, 2))) static void
print(const char *fmt, ...)
{
	va_list ap;

	if (filled > sizeof buf - 2048)
		flush();
	va_start(ap, fmt);
	filled += (size_t)vsnprintf(buf + filled, 2048, fmt, ap);
	va_end(ap);
}

void
diff_line(const char *key, const char *args, const char *answer)
{
	print("%lu.%u\t%s\t%s\t%s\n", steps, ++lines, key, args, answer);
}

void
diff_rule(enum rule r)
{
	rules[r]++;
}

static void
print_count(const char *name, unsigned long n)
{
	print("name\t%s\t%lu\n", name, n);
}

/* What was said before it is not lost. */
static void
on_signal(int sig)
{
	flush();
	_exit(128 + sig);
}

int
main(int argc, char **argv)
{
	static const char *const texts[] = {
#define RULE(id, text) text,
#include "diff_rules.h"
#undef RULE
	};
	static const int fatal[] = {
	    SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE, SIGALRM};
	uint64_t seed;
	unsigned long most;

	if (argc != 3 || mallctl == NULL || mallocx == NULL)
		return 2;
	seed = strtoull(argv[1], NULL, 0);
	most = strtoul(argv[2], NULL, 0);
	if (getenv("EDDY_PATIENCE") != NULL)
		patience *=
		    (unsigned)strtoul(getenv("EDDY_PATIENCE"), NULL, 10);
	for (size_t i = 0; i < COUNT(fatal); i++)
		(void)signal(fatal[i], on_signal);
	/* The first look is the first snapshot. */
	(void)diff_get("epoch", 8);
	diff_arena_begin();
	while (steps < most) {
		unsigned what;

		/* Numbers that an answer has led to end with the step. */
		rng = seed ^ ++steps * 0xd1342543de82ef95u;
		lines = 0;
		if (steps % 1024 == 0)
			(void)alarm(patience);
		what = diff_below(100);

		if (what < 40)
			diff_ctl_step();
		else if (what < 90)
			diff_alloc_step();
		else if (what < 99)
			diff_arena_step();
		else if (diff_one_in(8))
			diff_hooks_step();
		else
			diff_thread_step();
	}
	for (size_t i = 0; i < N_RULES; i++)
		print("rule\t%s\t%lu\n", texts[i], rules[i]);
	diff_ctl_counts(print_count);
	print("end\n");
	flush();
	return 0;
}
