/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_zero.c - what calloc costs, and what is touched of it.
 *
 * As in bench_flow.c each workload stands against the same work without what is
 * measured, in the same process, in turns: results are the median turn with it
 * (ns_per_op), the median one without (bare_ns), and the median ratio of
 * neighbours (bare_ratio).
 */
#ifndef _GNU_SOURCE
#	define _GNU_SOURCE /* MAP_NORESERVE */
#endif
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench.h"

enum {
	TURNS = 9, /* of each kind */
	PAGE = 4096,
};

struct zero {
	size_t size;
	size_t percent; /* of its pages are touched */
	unsigned ms;    /* of all turns */
};

/* One operation: takes a block, does something with it, gives it back. */
typedef void work(const struct zero *z);

/* Writes a word to so many of a hundred pages, evenly spread. */
static void
touch(char *p, const struct zero *z)
{
	size_t sum = 99; /* the first page is among them */

	for (size_t i = 0; z->percent != 0 && i < z->size; i += PAGE) {
		sum += z->percent;
		if (sum >= 100) {
			sum -= 100;
			*(size_t *)(void *)(p + i) = i + 1;
		}
	}
	__asm__ volatile("" : : "r"(p) : "memory");
}

static void
by_calloc(const struct zero *z)
{
	char *p = calloc(1, z->size);

	bench_keep(p);
	touch(p, z);
	free(p);
}

static void
by_malloc(const struct zero *z)
{
	char *p = malloc(z->size);

	bench_keep(p);
	touch(p, z);
	free(p);
}

static void
by_memset(const struct zero *z)
{
	char *p = malloc(z->size);

	bench_keep(p);
	memset(p, 0, z->size);
	touch(p, z);
	free(p);
}

static void
by_mmap(const struct zero *z)
{
	char *p = mmap(NULL, z->size, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		bench_die("mmap");
	touch(p, z);
	(void)munmap(p, z->size);
}

/* ------------------------------------------------------------------ */

struct turns {
	double ns[TURNS];
	uint64_t ops;
	uint64_t cpu_ns;
};

/* As many operations as fit, one at least. */
static void
turn(struct turns *t, unsigned i, work *w, const struct zero *z)
{
	const uint64_t long_ns = (uint64_t)z->ms * 1000000 / (2 * TURNS);
	struct bench_span span = bench_span_begin();
	const uint64_t begin = bench_now_ns();
	uint64_t ops = 0;

	do {
		w(z);
		ops++;
	} while (bench_now_ns() - begin < long_ns);
	span = bench_span_end(span);
	t->ns[i] = (double)span.wall_ns / (double)ops;
	t->ops += ops;
	t->cpu_ns += span.cpu_ns;
}

static int
by_value(const void *a, const void *b)
{
	const double x = *(const double *)a;
	const double y = *(const double *)b;

	return (x > y) - (x < y);
}

static double
median(const double *v)
{
	double sorted[TURNS];

	memcpy(sorted, v, sizeof(sorted));
	qsort(sorted, TURNS, sizeof(sorted[0]), by_value);
	return sorted[TURNS / 2];
}

static void
compare(work *test, work *bare, const struct zero *z, struct bench_result *ret)
{
	static struct turns with, without;
	double ratio[TURNS];

	/* The second time a block is taken it was used before. */
	for (int i = 0; i < 2; i++) {
		bare(z);
		test(z);
	}
	for (unsigned i = 0; i < TURNS; i++) {
		turn(&without, i, bare, z);
		turn(&with, i, test, z);
		ratio[i] = with.ns[i] / without.ns[i];
	}
	ret->ops = with.ops;
	ret->ns_per_op = median(with.ns);
	ret->cpu_ns_per_op = (double)with.cpu_ns / (double)with.ops;
	bench_extra(ret, ",\"bare_ns\":%.4f,\"bare_ratio\":%.4f",
	    median(without.ns), median(ratio));
}

static int
zero_run(const struct bench_params *params, struct bench_result *ret)
{
	static const struct {
		const char *mode;
		work *test;
		work *bare;
	} modes[] = {
	    {"mmap", by_calloc, by_mmap},
	    {"memset", by_calloc, by_memset},
	    {"first", by_malloc, by_mmap},
	};
	const char *mode = params->mode != NULL ? params->mode : "mmap";
	struct zero z = {params->size, params->count, params->ms};

	if (z.size < PAGE || z.percent > 100)
		bench_die("size: a page at least; count: a percentage");
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (strcmp(mode, modes[i].mode) == 0) {
			compare(modes[i].test, modes[i].bare, &z, ret);
			return 0;
		}
	bench_die("mode: mmap, memset or first");
}

const struct bench_workload bench_zero[] = {
    {"zero", zero_run,
	"calloc, count % touched, free, against mmap (mode=mmap) or malloc and "
	"memset (memset); malloc against mmap (first)"},
    {NULL, NULL, NULL},
};
