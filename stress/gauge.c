/* SPDX-License-Identifier: BSD-2-Clause */
/* gauge.c - finds numbers by their names in the statistics' JSON. */
#include "gauge.h"

#include <stdlib.h>
#include <string.h>

#include "rig.h"

/* Of the library, where it has one. */
extern void malloc_stats_print(void (*put)(void *arg, const char *s), void *arg,
    const char *opts) __attribute__((weak));

struct text {
	size_t n;
	char s[16384];
};

/* Pieces are cut anywhere. */
static void
add(void *arg, const char *s)
{
	struct text *t = arg;
	size_t n = strlen(s);

	if (t->n + n >= sizeof(t->s))
		rig_fail_now("the statistics are longer than expected");
	memcpy(t->s + t->n, s, n + 1);
	t->n += n;
}

/* The first "name":NUMBER.  Returns: false: there is none. */
static bool
number(const struct text *t, const char *name, size_t *ret)
{
	size_t n = strlen(name);

	for (const char *s = t->s; (s = strstr(s, name)) != NULL; s += n)
		if (s != t->s && s[-1] == '"' && s[n] == '"' &&
		    s[n + 1] == ':') {
			*ret = strtoul(s + n + 2, NULL, 10);
			return true;
		}
	return false;
}

/*
 * For a library without the number "stranded_bound": capacity times size of
 * all rows of the CPUs in use, of the rings, of the cells; ARCHITECTURE.md,
 * "Stranded bytes", of one home.
 */
static size_t
bound_by_formula(const struct gauge *g)
{
	const size_t row_bytes = 21110784;
	const size_t ring_bytes = 10507264;
	const size_t cell_bytes = (size_t)16 * 3485176;

	return (g->is_claim ? cell_bytes : g->n_cpus * row_bytes) + ring_bytes;
}

void
gauge_read(struct gauge *ret)
{
	static struct text t; /* one thread at a time */

	*ret = (struct gauge){.rss = rig_rss_bytes()};
	if (malloc_stats_print == NULL)
		return;
	t.n = 0;
	t.s[0] = '\0';
	malloc_stats_print(add, &t, "Jgabl");
	ret->is_claim = strstr(t.s, "\"mode\":\"claim\"") != NULL;
	ret->is_known = number(&t, "live", &ret->live) &&
			number(&t, "stranded", &ret->stranded) &&
			number(&t, "mapped", &ret->mapped) &&
			number(&t, "resident", &ret->resident) &&
			number(&t, "cpus_in_use", &ret->n_cpus);
	if (!number(&t, "stranded_bound", &ret->stranded_bound))
		ret->stranded_bound = bound_by_formula(ret);
}
