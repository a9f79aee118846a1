/* SPDX-License-Identifier: BSD-2-Clause */
/* bench_fork.c - what a forked idle child and a fork cost. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

enum { WARM = 20000, BUSY = 200 };

static _Noreturn void
idle_child(bool busy, const uint16_t *sizes, int ready)
{
	void *p[BUSY];

	for (size_t i = 0; busy && i < BUSY; i++) {
		p[i] = malloc(sizes[i]);
		bench_use(p[i]);
	}
	for (size_t i = 0; busy && i < BUSY; i++)
		free(p[i]);
	if (write(ready, "", 1) != 1)
		_exit(1);
	for (;;)
		(void)pause();
}

static int
compare_ns(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a;
	uint64_t y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void
report_children(const pid_t *pids, size_t n, struct bench_result *ret)
{
	struct bench_memory_use use;
	struct bench_memory_use sum = {0};

	for (size_t i = 0; i < n; i++) {
		if (bench_memory_read(pids[i], true, &use) != 0)
			bench_die("cannot read a child's smaps_rollup");
		sum.private_kb += use.private_kb;
		sum.pss_kb += use.pss_kb;
		sum.pte_kb += use.pte_kb;
		sum.rss_kb += use.rss_kb;
	}
	bench_extra(ret,
	    ",\"children\":%zu,\"private_kb\":%.2f,\"pss_kb\":%.2f,"
	    "\"pte_child_kb\":%.2f,\"rss_child_kb\":%.2f",
	    n, (double)sum.private_kb / (double)n,
	    (double)sum.pss_kb / (double)n, (double)sum.pte_kb / (double)n,
	    (double)sum.rss_kb / (double)n);
}

/*
 * count children of a process with a warm heap wait for ever. mode busy lets
 * each allocate and free a little first. One operation is one fork.
 */
int
bench_fork_run(const struct bench_params *params, struct bench_result *ret)
{
	const size_t n = params->count;
	const uint16_t *sizes = bench_table_sizes("mixed", 0, 41);
	bool busy = params->mode != NULL && strcmp(params->mode, "busy") == 0;
	void **warm = bench_map(WARM * sizeof(*warm));
	pid_t *pids = bench_map(n * sizeof(*pids));
	uint64_t *took = bench_map(n * sizeof(*took));
	struct bench_span span;
	int ready[2];
	char byte;

	if (n == 0 || pipe(ready) != 0)
		bench_die("count: 1 or more, and a pipe wanted");
	for (size_t i = 0; i < WARM; i++) {
		warm[i] = malloc(sizes[i % BENCH_SIZES]);
		bench_use(warm[i]);
	}
	for (size_t i = 0; i < WARM; i += 2)
		free(warm[i]);
	span = bench_span_begin();
	for (size_t i = 0; i < n; i++) {
		uint64_t begin = bench_now_ns();

		pids[i] = fork();
		if (pids[i] == 0)
			idle_child(busy, sizes, ready[1]);
		if (pids[i] < 0)
			bench_die("cannot fork that many children");
		took[i] = bench_now_ns() - begin;
		if (read(ready[0], &byte, 1) != 1)
			bench_die("a child did not start");
	}
	bench_set(ret, bench_span_end(span), n, 1);
	report_children(pids, n, ret);
	qsort(took, n, sizeof(*took), compare_ns); /* may allocate: last */
	bench_extra(ret, ",\"fork_us\":%.2f", (double)took[n / 2] / 1000.0);
	for (size_t i = 0; i < n; i++)
		(void)kill(pids[i], SIGKILL);
	while (wait(NULL) > 0)
		;
	return 0;
}
