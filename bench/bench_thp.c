/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_thp.c - a large table that is read at random, each place known by what
 * the last one held: what it costs depends on the pages that it lies in.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "eddy/hooks.h"

/* There under eddy alone. */
#pragma weak eddy_arena_create_with
#pragma weak eddy_arena_malloc

struct table {
	uint64_t *words;
	uint64_t mask;
	uint64_t at;
	uint64_t seed;
};

static uint64_t
read_block(void *ctx)
{
	enum { READS = 1024 };
	struct table *t = ctx;
	uint64_t at = t->at;

	for (unsigned i = 0; i < READS; i++)
		at = (t->words[at] + bench_random(&t->seed)) & t->mask;
	t->at = at;
	return READS;
}

/* KiB of the process that lie in transparent huge pages. */
static size_t
huge_kb(void)
{
	static char buf[8192];
	int fd = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof(buf) - 1);
	const char *at;

	if (n <= 0)
		bench_die("cannot read /proc/self/smaps_rollup");
	(void)close(fd);
	buf[n] = '\0';
	at = strstr(buf, "AnonHugePages:");
	return at != NULL ? strtoul(at + 14, NULL, 10) : 0;
}

static void *
allocate(const struct bench_params *params)
{
	struct eddy_arena_options options = EDDY_ARENA_OPTIONS;
	unsigned arena;

	if (params->mode == NULL)
		return malloc(params->size);
	if (strcmp(params->mode, "arena") != 0)
		bench_die("mode: arena");
	if (eddy_arena_create_with == NULL)
		bench_die("this malloc has no eddy_arena_create_with");
	options.flags = EDDY_ARENA_THP;
	if (eddy_arena_create_with(&options, &arena) != 0)
		bench_die("eddy_arena_create_with");
	return eddy_arena_malloc(arena, params->size);
}

/*
 * size: of the table, a power of two.  mode=arena: it lies in an arena in huge
 * pages of eddy's.
 */
int
bench_thp_run(const struct bench_params *params, struct bench_result *ret)
{
	const size_t n = params->size / sizeof(uint64_t);
	struct table t = {.mask = n - 1, .seed = 53};
	size_t before = huge_kb();

	if (n == 0 || (n & (n - 1)) != 0)
		bench_die("size: a power of two");
	t.words = allocate(params);
	bench_use(t.words);
	for (size_t i = 0; i < n; i++)
		t.words[i] = i * UINT64_C(0x9e3779b97f4a7c15);
	bench_run_blocks(read_block, &t, params->ms, ret);
	bench_extra(ret, ",\"huge_kb\":%zu", huge_kb() - before);
	free(t.words);
	return 0;
}
