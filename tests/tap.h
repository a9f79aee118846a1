/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tap.h - what a black-box test program needs to speak TAP.
 *
 * A program runs under the library that EDDY_SO names: tap_begin() preloads it
 * by executing the program again, and gives up unless malloc then comes from
 * there.  Without EDDY_SO the program tests whatever malloc it finds.
 *
 * Output leaves by write(2): a forked child repeats nothing, and reporting
 * does not allocate.  The plan comes last, so a program that dies on its way
 * has none, which the driver reports.
 */
#ifndef EDDY_TESTS_TAP_H
#define EDDY_TESTS_TAP_H

#ifndef _GNU_SOURCE
#	define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct tap {
	int n;
	int failed;
	uint64_t seed;
	pid_t pid; /* children inherit the handlers but must not report */
};

static struct tap tap;

__attribute__((format(printf, 2, 0))) static inline void
tap_vline(const char *prefix, const char *fmt, va_list ap)
{
	char line[640];
	int n = snprintf(line, sizeof line, "%s", prefix);

	n += vsnprintf(line + n, sizeof line - (size_t)n - 1, fmt, ap);
	if (n > (int)sizeof line - 2)
		n = (int)sizeof line - 2;
	line[n++] = '\n';
	if (write(STDOUT_FILENO, line, (size_t)n) != n)
		_exit(99);
}

/* tap_diag - a remark for the reader of the log. */
__attribute__((format(printf, 1, 2))) static inline void
tap_diag(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	tap_vline("# ", fmt, ap);
	va_end(ap);
}

/* tap_ok - one behaviour, held or not.  Returns what it was given. */
__attribute__((format(printf, 2, 3))) static inline bool
tap_ok(bool held, const char *fmt, ...)
{
	char prefix[32];
	va_list ap;

	tap.n++;
	tap.failed += !held;
	(void)snprintf(
	    prefix, sizeof prefix, "%s %d - ", held ? "ok" : "not ok", tap.n);
	va_start(ap, fmt);
	tap_vline(prefix, fmt, ap);
	va_end(ap);
	return held;
}

/* tap_skip - one behaviour that cannot be looked at here, and why. */
__attribute__((format(printf, 2, 3))) static inline void
tap_skip(const char *name, const char *fmt, ...)
{
	char prefix[160];
	va_list ap;

	tap.n++;
	(void)snprintf(
	    prefix, sizeof prefix, "ok %d - %s # SKIP ", tap.n, name);
	va_start(ap, fmt);
	tap_vline(prefix, fmt, ap);
	va_end(ap);
}

/* tap_skip_all - nothing can be tested here. */
__attribute__((format(printf, 1, 2), noreturn)) static inline void
tap_skip_all(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	tap_vline("1..0 # SKIP: ", fmt, ap);
	va_end(ap);
	_exit(77);
}

/* tap_bail - the test itself cannot go on; takes stuck children along. */
__attribute__((format(printf, 1, 2), noreturn)) static inline void
tap_bail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	tap_vline("Bail out! ", fmt, ap);
	va_end(ap);
	if (getpid() == tap.pid && getpgrp() == tap.pid) {
		signal(SIGTERM, SIG_IGN);
		kill(0, SIGTERM);
	}
	_exit(99);
}

/* tap_end - the plan; the value is main's. */
static inline int
tap_end(void)
{
	char line[32];
	int n = snprintf(line, sizeof line, "1..%d\n", tap.n);

	if (write(STDOUT_FILENO, line, (size_t)n) != n)
		return 99;
	return tap.failed != 0;
}

static inline void
tap_on_signal(int sig)
{
	if (getpid() != tap.pid)
		_exit(128 + sig);
	if (sig == SIGALRM)
		tap_bail("timeout");
	tap_bail("signal %d", sig);
}

/*
 * tap_patience - what all deadlines are multiplied by: EDDY_PATIENCE, for
 * machines that are slower than any that they were made for, or busy.
 */
static inline unsigned
tap_patience(void)
{
	const char *s = getenv("EDDY_PATIENCE");
	unsigned long times = s != NULL ? strtoul(s, NULL, 10) : 1;

	return (unsigned)(times > 0 && times < 1000 ? times : 1);
}

/* tap_alarm - a deadline. */
static inline void
tap_alarm(unsigned seconds)
{
	alarm(seconds * tap_patience());
}

/* tap_guard - report a crash or a hang of this process instead of waiting. */
static inline void
tap_guard(unsigned seconds)
{
	static const int fatal[] = {
	    SIGALRM, SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE};

	(void)setpgid(0, 0);
	for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
		signal(fatal[i], tap_on_signal);
	tap_alarm(seconds);
}

/* tap_random - the next number of a stream; *s is its state. */
static inline uint64_t
tap_random(uint64_t *s)
{
	uint64_t z = (*s += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* tap_exec - this program again, with one argument. */
__attribute__((noreturn)) static inline void
tap_exec(char *self, char *arg)
{
	char *argv[] = {self, arg, NULL};

	(void)execv("/proc/self/exe", argv);
	_exit(126);
}

/* tap_loaded - whether malloc comes from the library that EDDY_SO names. */
static inline bool
tap_loaded(const char *so)
{
	void *sym = dlsym(RTLD_DEFAULT, "malloc");
	Dl_info info;
	char a[4096];
	char b[4096];

	return sym != NULL && dladdr(sym, &info) != 0 &&
	       realpath(info.dli_fname, a) != NULL && realpath(so, b) != NULL &&
	       strcmp(a, b) == 0;
}

static inline void
tap_preload(char **argv)
{
	const char *so = getenv("EDDY_SO");
	const char *pre = getenv("LD_PRELOAD");

	if (so == NULL || *so == '\0')
		return;
	if (pre == NULL || strstr(pre, so) == NULL) {
		(void)setenv("LD_PRELOAD", so, 1);
		(void)execv("/proc/self/exe", argv);
		tap_bail("cannot execute myself");
	}
	if (!tap_loaded(so))
		tap_bail("%s does not serve malloc", so);
}

/*
 * tap_begin - preload the library, draw or read the seed.
 *
 * A program that probe_again() executed says nothing: it is one test's part.
 */
static inline void
tap_begin(char **argv)
{
	const char *seed = getenv("EDDY_SEED");

	tap.pid = getpid();
	tap_preload(argv);
	if (seed != NULL && *seed != '\0')
		tap.seed = strtoull(seed, NULL, 0);
	else
		tap.seed = (uint64_t)getpid() * 2654435761u;
	if (getenv("EDDY_TAP_CHILD") == NULL)
		tap_diag("EDDY_SEED=%llu", (unsigned long long)tap.seed);
}

#endif /* EDDY_TESTS_TAP_H */
