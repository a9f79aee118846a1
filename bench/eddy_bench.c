/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * eddy_bench.c - runs one workload and prints one line of JSON.
 *
 * The program starts itself again as a child in which the allocator under
 * test is preloaded. The parent, which does not load it, samples the child's
 * resident size and page tables every few milliseconds: a sampling thread in
 * the child would make every workload multi-threaded, which changes what some
 * allocators do.
 */
#ifndef _GNU_SOURCE
#	define _GNU_SOURCE /* dl_iterate_phdr */
#endif
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

enum { SAMPLE_MS = 5 };

static const struct bench_workload *const rooms[] = {
    bench_single,
    bench_sized,
    bench_threaded,
    bench_flow,
    bench_zero,
    bench_memory,
    bench_reclaim,
    bench_pool,
};

static void
usage(FILE *to)
{
	(void)fprintf(to,
	    "usage: eddy_bench [--preload LIBRARY.so] [--cpus A,B]\n"
	    "    [--priority fifo|nice] WORKLOAD [KEY=VALUE...]\n"
	    "keys: size= count= threads= ms= touch=0|1 dist= mode=\n"
	    "workloads:\n");
	for (size_t r = 0; r < sizeof(rooms) / sizeof(rooms[0]); r++)
		for (size_t i = 0; rooms[r][i].name != NULL; i++)
			(void)fprintf(to, "  %-10s %s\n", rooms[r][i].name,
			    rooms[r][i].help);
}

static const struct bench_workload *
find(const char *name)
{
	for (size_t r = 0; r < sizeof(rooms) / sizeof(rooms[0]); r++)
		for (size_t i = 0; rooms[r][i].name != NULL; i++)
			if (strcmp(rooms[r][i].name, name) == 0)
				return &rooms[r][i];
	return NULL;
}

static size_t
number(const char *text)
{
	char *end;
	size_t n;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (*end == 'k' || *end == 'm' || *end == 'g') {
		n <<= *end == 'k' ? 10 : *end == 'm' ? 20 : 30;
		end++;
	}
	if (errno != 0 || end == text || *end != '\0')
		bench_die("a number wanted (k, m or g may follow)");
	return n;
}

static bool
is_key(const char *arg, const char *key)
{
	size_t n = strlen(key);

	return strncmp(arg, key, n) == 0 && arg[n] == '=';
}

static void
parse(char **args, struct bench_params *ret)
{
	for (; *args != NULL; args++) {
		char *value = strchr(*args, '=');

		if (value == NULL)
			bench_die("KEY=VALUE wanted");
		value++;
		if (is_key(*args, "size"))
			ret->size = number(value);
		else if (is_key(*args, "count"))
			ret->count = number(value);
		else if (is_key(*args, "threads"))
			ret->threads = (unsigned)number(value);
		else if (is_key(*args, "ms"))
			ret->ms = (unsigned)number(value);
		else if (is_key(*args, "touch"))
			ret->touch = number(value) != 0;
		else if (is_key(*args, "dist"))
			ret->dist = value;
		else if (is_key(*args, "mode"))
			ret->mode = value;
		else
			bench_die("unknown key");
	}
	if (ret->threads == 0 || ret->threads > BENCH_MAX_THREADS)
		bench_die("threads: 1 to 256");
}

static int
is_object(struct dl_phdr_info *info, size_t size, void *name)
{
	(void)size;
	return strcmp(info->dlpi_name, name) == 0;
}

/*
 * The loader goes on without a library that it cannot preload, and figures
 * of glibc would go under another name.
 */
static void
check_preloaded(void)
{
	char *name = getenv("EDDY_BENCH_PRELOAD");

	if (name != NULL && dl_iterate_phdr(is_object, name) == 0)
		bench_die("the library is not preloaded");
}

/* The child: runs the workload and writes the JSON members. */
static _Noreturn void
child(const char *name, char **args)
{
	static struct bench_result res;
	const struct bench_workload *w = find(name);
	struct bench_params params = {
	    .size = 64,
	    .count = 1024,
	    .threads = 1,
	    .ms = 300,
	};
	struct bench_memory_use base;
	struct bench_memory_use end;

	if (w == NULL)
		bench_die("no such workload");
	check_preloaded();
	parse(args, &params);
	if (params.threads == 1)
		bench_pin_to(bench_cpus() - 1);
	else
		bench_pin_all();
	bench_priority_take(BENCH_RANK_MAIN);
	if (bench_memory_read(0, false, &base) != 0)
		bench_die("cannot read /proc/self/status");
	if (w->run(&params, &res) != 0)
		bench_die("the workload failed");
	if (bench_memory_read(0, false, &end) != 0)
		bench_die("cannot read /proc/self/status");
	(void)dprintf(1,
	    "\"ns_per_op\":%.4f,\"cpu_ns_per_op\":%.4f,\"ops\":%llu,"
	    "\"harness_kb\":%zu,\"rss_base_kb\":%zu,\"rss_end_kb\":%zu,"
	    "\"hwm_kb\":%zu,\"pte_kb\":%zu%s",
	    res.ns_per_op, res.cpu_ns_per_op, (unsigned long long)res.ops,
	    bench_mapped_kb(), base.rss_kb, end.rss_kb, end.hwm_kb, end.pte_kb,
	    res.extra);
	_exit(0);
}

/* Samples pid until it ends; returns its wait status. */
static int
sample(int pid, size_t *ret_rss_kb, size_t *ret_pte_kb, unsigned *ret_n)
{
	struct bench_memory_use use;
	int status;

	*ret_rss_kb = 0;
	*ret_pte_kb = 0;
	*ret_n = 0;
	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (bench_memory_read(pid, false, &use) == 0) {
			if (use.rss_kb > *ret_rss_kb)
				*ret_rss_kb = use.rss_kb;
			if (use.pte_kb > *ret_pte_kb)
				*ret_pte_kb = use.pte_kb;
			++*ret_n;
		}
		bench_sleep_ms(SAMPLE_MS);
	}
	return status;
}

static void
print_args(char **args)
{
	printf("\"params\":{");
	for (size_t i = 0; args[i] != NULL; i++)
		printf("%s\"%.*s\":\"%s\"", i != 0 ? "," : "",
		    (int)strcspn(args[i], "="), args[i],
		    args[i] + strcspn(args[i], "=") + 1);
	printf("}");
}

static int
parent(char **argv, char **args, const char *preload)
{
	static char text[16384];
	size_t rss_kb, pte_kb, n = 0;
	unsigned n_samples;
	ssize_t got;
	int out[2];
	int status;
	int pid;

	if (pipe(out) != 0)
		bench_die("no pipe");
	pid = fork();
	if (pid < 0)
		bench_die("cannot fork");
	if (pid == 0) {
		if (preload != NULL &&
		    (setenv("LD_PRELOAD", preload, 1) != 0 ||
			setenv("EDDY_BENCH_PRELOAD", preload, 1) != 0))
			_exit(2);
		(void)setenv("EDDY_BENCH_CHILD", "1", 1);
		(void)dup2(out[1], 1);
		(void)close(out[0]);
		(void)close(out[1]);
		(void)execv("/proc/self/exe", argv);
		bench_die("cannot start myself again");
	}
	(void)close(out[1]);
	bench_pin_to(0);
	bench_priority_take(BENCH_RANK_SAMPLER);
	status = sample(pid, &rss_kb, &pte_kb, &n_samples);
	while (n < sizeof(text) - 1 &&
	       (got = read(out[0], text + n, sizeof(text) - 1 - n)) > 0)
		n += (size_t)got;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || n == 0) {
		(void)fprintf(stderr, "eddy_bench: %s: %s %d\n", args[0],
		    WIFSIGNALED(status) ? "killed by signal" : "exit status",
		    WIFSIGNALED(status) ? WTERMSIG(status)
					: WEXITSTATUS(status));
		return 1;
	}
	printf("{\"workload\":\"%s\",", args[0]);
	print_args(args + 1);
	printf(",%s,\"peak_rss_kb\":%zu,\"peak_pte_kb\":%zu,\"samples\":%u}\n",
	    text, rss_kb, pte_kb, n_samples);
	return fflush(stdout) != 0;
}

int
main(int argc, char **argv)
{
	const char *preload = NULL;
	const char *cpus = NULL;
	const char *priority = NULL;
	int at = 1;

	for (; at < argc && strncmp(argv[at], "--", 2) == 0; at += 2) {
		if (strcmp(argv[at], "--help") == 0) {
			usage(stdout);
			return 0;
		}
		if (at + 1 < argc && strcmp(argv[at], "--preload") == 0)
			preload = argv[at + 1];
		else if (at + 1 < argc && strcmp(argv[at], "--cpus") == 0)
			cpus = argv[at + 1];
		else if (at + 1 < argc && strcmp(argv[at], "--priority") == 0)
			priority = argv[at + 1];
		else
			break;
	}
	if (at >= argc || find(argv[at]) == NULL) {
		usage(stderr);
		return 2;
	}
	bench_cpus_parse(cpus);
	bench_priority_parse(priority);
	if (getenv("EDDY_BENCH_CHILD") != NULL)
		child(argv[at], argv + at + 1);
	return parent(argv, argv + at, preload);
}
