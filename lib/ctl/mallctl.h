/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mallctl.h - names with values: mallctl(3), and how to add one.
 *
 * Layer     ctl (L5).
 * Progress  names and numbers: wait-free.  What answers: lock-free, but for
 *           system calls; arena purge and decay, epoch and background_thread
 *           are as long as what they do.
 * Memory    the caller's; no allocation.  What is kept for a name says so
 *           where it is answered.
 * Context   any thread, signal handlers (4 KiB of stack), after fork; to write
 *           background_thread, as background.h says.
 *
 * A name is a record in ctl.tab, kind ctl, and the function that it names as
 * its answer: `answer: foo` is eddy_ctl_foo.  gen-names.awk makes the tree of
 * names, the prototypes, the manual and the test of each.
 *
 * The function need not look at lengths or at who may read or write.  It gets
 *   i, j     the numbers in the name
 *   arg      as in the record
 *   writes   whether a value is to be written: `in`
 * and returns 0 with the value to be read in `out` (if the name can be read),
 * or an errno value with nothing changed.  Values are widened to 64 bits, bool
 * is 0 or 1, pointers and strings are addresses.  Which of the old and the new
 * value `out` is where both are asked for is the name's to say.
 * With `type: other` it gets the call as it was made, and all is its to check.
 */
#ifndef EDDY_MALLCTL_H
#define EDDY_MALLCTL_H

#include "lib/heap/heap.h"

enum eddy_ctl_type {
	EDDY_CTL_BOOL,
	EDDY_CTL_UNSIGNED,
	EDDY_CTL_UINT32,
	EDDY_CTL_SIZE,
	EDDY_CTL_SSIZE,
	EDDY_CTL_UINT64,
	EDDY_CTL_INT64,
	EDDY_CTL_STRING,
	EDDY_CTL_POINTER,
	EDDY_CTL_VOID,
	EDDY_CTL_OTHER,
};

struct eddy_ctl {
	struct eddy_heap *h;
	size_t i;
	size_t j;
	int64_t arg;
	enum eddy_ctl_type type;
	bool writes;
	uint64_t in;
	uint64_t out;
	/* The call. */
	void *oldp;
	size_t *oldlenp;
	const void *newp;
	size_t newlen;
};

/* As mallctl(3), mallctlnametomib(3), mallctlbymib(3).  errno is untouched. */
EDDY_MUST_USE int eddy_mallctl(const char *name, void *oldp, size_t *oldlenp,
    const void *newp, size_t newlen);
EDDY_MUST_USE int eddy_mallctl_mib(
    const char *name, size_t *mibp, size_t *miblenp);
EDDY_MUST_USE int eddy_mallctl_by_mib(const size_t *mib, size_t miblen,
    void *oldp, size_t *oldlenp, const void *newp, size_t newlen);

/*
 * eddy_mallctl_look - for statistics: the value of a name that can be read and
 * is of no other type, in ret->out; ret->type says what it is.
 *
 * Returns: 0, or an errno value.
 */
EDDY_MUST_USE int eddy_mallctl_look(
    struct eddy_heap *h, const char *name, struct eddy_ctl *ret);

/*
 * eddy_mallctl_type - the type of a name's value: EDDY_CTL_OTHER also of what
 * is not built.
 *
 * Returns: 0; ENOENT: there is no such name.
 */
EDDY_MUST_USE int eddy_mallctl_type(const char *name, enum eddy_ctl_type *ret);

/* ------------------------------------------------------------------ */
/* For answers. */

/* A pointer as a value. */
static inline uint64_t
eddy_ctl_pointer(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

/*
 * eddy_ctl_give - for `type: other`: copies a value of n bytes to the caller if
 * he wants it.
 *
 * Returns: 0; EINVAL: he expects another length, and got as much as fits.
 */
EDDY_MUST_USE int eddy_ctl_give(
    struct eddy_ctl *c, const void *value, size_t n);

/* Numbers of arenas that mean something else. */
#define EDDY_CTL_ALL       4096
#define EDDY_CTL_DESTROYED 4097

/* Indices below it are those of arenas; it is EDDY_CTL_ALL itself, too. */
uint32_t eddy_ctl_n_arenas(struct eddy_heap *h);

static inline bool
eddy_ctl_is_all(struct eddy_heap *h, size_t i)
{
	return i == EDDY_CTL_ALL || i == eddy_ctl_n_arenas(h);
}

/* The arena of an index, NULL: not in use, or no single one.  Index 0 is always
 * in use. */
struct eddy_arena *eddy_ctl_arena(struct eddy_heap *h, size_t i);

/* The arena gets a name; what was kept of one that has ended is forgotten. */
void eddy_ctl_call_arena(
    struct eddy_heap *h, struct eddy_arena *a, const char *name);
void eddy_ctl_arena_ended(struct eddy_heap *h, struct eddy_arena *a);

/*
 * eddy_ctl_defrag_hint - whether a new block of the same size would lie better
 * than p: below it, while p's slab is not fuller than others of its class.
 */
bool eddy_ctl_defrag_hint(struct eddy_heap *h, const void *p);

/* What a process that profiles does at its end. */
void eddy_ctl_prof_end(struct eddy_heap *h);

/* Calls of realloc(p, 0).  W, R: any CPU.  O: none: a count. */
extern _Atomic uint64_t eddy_ctl_n_zero_reallocs;

#endif /* EDDY_MALLCTL_H */
