/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * region_load.c - what regions cost, beside malloc: the part of `bench/region`
 * that runs under one allocator.
 *
 *     region_load pair        malloc and free of 64 bytes, eddy_region_alloc,
 *                             malloc and free in a section, enter and leave,
 *                             and the loop around each, ns
 *     region_load million     a region of a million objects, destroyed, us
 *     region_load json HOW    documents parsed by jansson, MiB/s; HOW:
 *                             plain   json_loadb, json_decref
 *                             reset   in a section; a reset, no json_decref
 *                             decref  in a section; json_decref, then a reset
 *
 * Prints figures on a line.  Documents are made here, the same each time.
 */
#include <dlfcn.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/ticks.h"
/* The inline function of the header calls one of ours, by a name of its own:
 * the library's may be linked as well. */
#define eddy_region_alloc_slow region_alloc_slow
#include "eddy/region.h"
#undef eddy_region_alloc_slow

static struct {
	int (*create)(
	    const struct eddy_region_options *, struct eddy_region **);
	void *(*slow)(struct eddy_region *, size_t);
	int (*reset)(struct eddy_region *);
	int (*destroy)(struct eddy_region *);
	int (*enter)(struct eddy_region *);
	int (*leave)(struct eddy_region *);
} rg;

void *
region_alloc_slow(struct eddy_region *region, size_t size)
{
	return rg.slow(region, size);
}

static void
find(const char *name, void *where)
{
	void *sym = dlsym(RTLD_DEFAULT, name);

	if (sym == NULL) {
		(void)fprintf(stderr, "no %s here\n", name);
		exit(77);
	}
	memcpy(where, &sym, sizeof sym);
}

static struct eddy_region *
new_region(void)
{
	struct eddy_region *r;

	find("eddy_region_create", &rg.create);
	find("eddy_region_alloc_slow", &rg.slow);
	find("eddy_region_reset", &rg.reset);
	find("eddy_region_destroy", &rg.destroy);
	find("eddy_region_enter", &rg.enter);
	find("eddy_region_leave", &rg.leave);
	if (rg.create(NULL, &r) != 0)
		exit(1);
	return r;
}

static double
now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* ---- pair ---- */

#define BOUTS 4000
#define N     512 /* so that malloc stays on its hit path */

enum what { MALLOC, FREE, REGION, IN_MALLOC, IN_FREE, SECTION, LOOP, N_WHATS };

static uint64_t took[N_WHATS][BOUTS];
static void *volatile blocks[N];

static int
by_ticks(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a;
	uint64_t y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Nanoseconds of a tick. */
static double
tick_ns(void)
{
	struct timespec a;
	struct timespec b;
	uint64_t t = ticks_begin();
	double ns;

	(void)clock_gettime(CLOCK_MONOTONIC, &a);
	do {
		(void)clock_gettime(CLOCK_MONOTONIC, &b);
		ns = (double)(b.tv_sec - a.tv_sec) * 1e9 +
		     (double)(b.tv_nsec - a.tv_nsec);
	} while (ns < 20e6);
	return ns / (double)(ticks_end() - t);
}

/* One bout of each; the clock is read around its loop.  -fno-builtin. */
#define TIMED(WHAT, STATEMENT)                   \
	do {                                     \
		uint64_t t = ticks_begin();      \
                                                 \
		for (int i = 0; i < N; i++)      \
			STATEMENT;               \
		took[WHAT][k] = ticks_end() - t; \
	} while (0)

static void
bout(struct eddy_region *r, int k, size_t size)
{
	TIMED(MALLOC, blocks[i] = malloc(size));
	TIMED(FREE, free(blocks[i]));
	TIMED(REGION, blocks[i] = eddy_region_alloc(r, size));
	(void)rg.enter(r);
	TIMED(IN_MALLOC, blocks[i] = malloc(size));
	TIMED(IN_FREE, free(blocks[i]));
	(void)rg.leave(r);
	TIMED(SECTION, ((void)rg.enter(r), (void)rg.leave(r)));
	TIMED(LOOP, blocks[i] = (void *)r);
}

static void
pair(void)
{
	struct eddy_region *r = new_region();
	volatile size_t size = 64;
	double ns;

	for (int k = 0; k < BOUTS; k++) {
		bout(r, k, size);
		if (k % 16 == 15)
			(void)rg.reset(r);
	}
	ns = tick_ns();
	for (int w = 0; w < N_WHATS; w++) {
		/* Of others that ran in between the median knows nothing. */
		qsort(took[w], BOUTS, sizeof **took, by_ticks);
		(void)printf("%.2f ", (double)took[w][BOUTS / 2] * ns / N);
	}
	(void)printf("\n");
}

/* ---- million ---- */

static int
by_value(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

static void
million(void)
{
	double t[15];
	struct eddy_region *r = new_region();

	(void)rg.destroy(r);
	for (int k = 0; k < 15; k++) {
		if (rg.create(NULL, &r) != 0)
			exit(1);
		for (int i = 0; i < 1000000; i++)
			*(char *)eddy_region_alloc(r, 64) = 1;
		t[k] = now();
		(void)rg.destroy(r);
		t[k] = (now() - t[k]) / 1e3;
	}
	qsort(t, 15, sizeof *t, by_value);
	(void)printf("%.0f %.0f\n", t[7], t[14]);
}

/* ---- json ---- */

static char *text;
static size_t length;

static uint32_t
next_random(void)
{
	static uint64_t s = 42;

	s = s * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(s >> 33);
}

/* Records as services send them: a list of objects of some ten members. */
static void
make_document(size_t want)
{
	static const char *const words[] = {"alpha", "bravo", "charlie",
	    "delta", "echo", "foxtrot", "golf", "hotel"};
	FILE *f = open_memstream(&text, &length);
	unsigned id = 0;

	if (f == NULL)
		exit(1);
	(void)fputs("[", f);
	while ((size_t)ftell(f) < want) {
		(void)fprintf(f,
		    "%s{\"id\":%u,\"name\":\"%s %s\",\"price\":%u.%02u,"
		    "\"ok\":%s,\"tags\":[",
		    id != 0 ? "," : "", id, words[next_random() % 8],
		    words[next_random() % 8], next_random() % 1000,
		    next_random() % 100, next_random() % 2 ? "true" : "false");
		for (unsigned i = next_random() % 6; i > 0; i--)
			(void)fprintf(f, "\"%s\"%s", words[next_random() % 8],
			    i > 1 ? "," : "");
		(void)fprintf(f, "],\"at\":{\"x\":%u,\"y\":-%u},\"note\":\"",
		    next_random(), next_random() % 1000);
		for (unsigned i = next_random() % 12; i > 0; i--)
			(void)fprintf(f, "%s ", words[next_random() % 8]);
		(void)fputs("\"}", f);
		id++;
	}
	(void)fputs("]", f);
	(void)fclose(f);
}

static void
json(const char *how, size_t size, double seconds)
{
	bool plain = strcmp(how, "plain") == 0;
	bool decref = strcmp(how, "reset") != 0;
	struct eddy_region *r = plain ? NULL : new_region();
	size_t n = 0;
	double begin;

	make_document(size);
	/* What libraries keep is made before. */
	json_decref(json_loadb(text, length, 0, NULL));
	begin = now();
	do {
		json_t *j;

		if (r != NULL)
			(void)rg.enter(r);
		j = json_loadb(text, length, 0, NULL);
		if (j == NULL)
			exit(1);
		if (decref)
			json_decref(j);
		if (r != NULL) {
			(void)rg.leave(r);
			(void)rg.reset(r);
		}
		n++;
	} while (now() - begin < seconds * 1e9);
	(void)printf("%.1f\n",
	    (double)n * (double)length / 1048576 / ((now() - begin) / 1e9));
}

int
main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "pair") == 0)
		pair();
	else if (argc == 2 && strcmp(argv[1], "million") == 0)
		million();
	else if (argc == 5 && strcmp(argv[1], "json") == 0)
		json(
		    argv[2], strtoull(argv[3], NULL, 0), strtod(argv[4], NULL));
	else
		return 2;
	return 0;
}
