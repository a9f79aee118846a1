/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * diff.h - what the parts of diff_driver share: numbers, a log, a heap.
 *
 * The driver makes the same calls under any library: no decision depends on an
 * address, or on an answer that libraries may give as they like.
 */
#ifndef EDDY_TESTS_DIFF_H
#define EDDY_TESTS_DIFF_H

#ifndef _GNU_SOURCE
#	define _GNU_SOURCE
#endif
#include <errno.h>
#include <jemalloc/jemalloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Whoever is preloaded. */
#pragma weak mallocx
#pragma weak rallocx
#pragma weak xallocx
#pragma weak sallocx
#pragma weak dallocx
#pragma weak sdallocx
#pragma weak nallocx
#pragma weak mallctl
#pragma weak mallctlnametomib
#pragma weak mallctlbymib

#define COUNT(a) (sizeof(a) / sizeof *(a))

enum { ERRNO = 77, FILL = 0x5e, ROOM = 64, PAGE = 4096 };
/* Blocks are small below it. */
enum { LARGE = 16384 };

enum rule {
#define RULE(id, text) RULE_##id,
#include "diff_rules.h"
#undef RULE
	N_RULES
};

/* ------------------------------------------------------------------ */
/* diff_driver.c */

uint64_t diff_random(void);
unsigned diff_below(unsigned n);
bool diff_one_in(unsigned n);

/* A call was made that a rule speaks of. */
void diff_rule(enum rule r);
/* A line of the log: what was called, with what, and what came. */
void diff_line(const char *key, const char *args, const char *answer);

/* ------------------------------------------------------------------ */
/* diff_alloc.c */

/* Whose arena a block is of. */
enum where {
	AUTO,   /* malloc's */
	STEADY, /* created, never ended: may be cached anywhere */
	MORTAL, /* created, to be ended: by no thread's cache */
};

/*
 * A cache that a program creates gives what it has, whatever arena is asked
 * for: two serve malloc's arena and the steady ones, each mortal has its own.
 */
enum { N_STEADY = 2, N_MORTAL = 6, N_SHARED = 2 };
enum { N_TCACHES = N_SHARED + N_MORTAL, N_ENDED = N_MORTAL + 1 };

struct block {
	unsigned char *p;
	size_t size;
	size_t usable;
	unsigned id;
	enum where where;
	unsigned k;
};

enum { N_BLOCKS = 400 };
extern struct block diff_blocks[N_BLOCKS];

void diff_alloc_step(void);
/* Forgets the blocks of a mortal arena. */
void diff_alloc_forget(unsigned k);
/* Some small block, or some large one, NULL: there is none. */
struct block *diff_alloc_any(bool large);

/* ------------------------------------------------------------------ */
/* diff_arena.c */

/* Indices of arenas and ids of caches that are there; -1: none. */
extern int diff_steady[N_STEADY];
extern int diff_mortal[N_MORTAL];
extern int diff_tcaches[N_TCACHES];
/* Numbers of destroyed arenas, not yet used again. */
extern unsigned diff_ended[N_ENDED];
extern unsigned diff_n_ended;

/* An index was given back, or is in use. */
void diff_arena_ended(unsigned index);
void diff_arena_begun(unsigned index);

void diff_arena_begin(void);
void diff_arena_step(void);

/* ------------------------------------------------------------------ */
/* diff_ctl.c */

void diff_ctl_step(void);
/* A name of the table was called elsewhere. */
void diff_ctl_count(const char *pattern);
/* Prints how often each name was called. */
void diff_ctl_counts(void (*print)(const char *name, unsigned long n));

/* ------------------------------------------------------------------ */
/* diff_hooks.c */

void diff_hooks_step(void);

/* ------------------------------------------------------------------ */
/* diff_thread.c */

void diff_thread_step(void);

/* ------------------------------------------------------------------ */
/* For values that are surely there. */

static inline uint64_t
diff_get(const char *name, size_t size)
{
	uint64_t v = 0;
	size_t len = size;

	(void)mallctl(name, &v, &len, NULL, 0);
	return v;
}

#endif /* EDDY_TESTS_DIFF_H */
