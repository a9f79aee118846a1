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
	char s[8192];
};

/* Pieces are cut anywhere; totals come first, what does not fit is not read. */
static void
add(void *arg, const char *s)
{
	struct text *t = arg;
	size_t n = strlen(s);

	if (n >= sizeof(t->s) - t->n)
		n = sizeof(t->s) - t->n - 1;
	memcpy(t->s + t->n, s, n);
	t->n += n;
	t->s[t->n] = '\0';
}

/* The first "name":NUMBER.  Returns: false: there is none. */
static bool
number(const struct text *t, const char *name, size_t *ret)
{
	size_t n = strlen(name);

	const char *own = strstr(t->s, "\"eddy\":");

	for (const char *s = own != NULL ? own : t->s;
	     (s = strstr(s, name)) != NULL; s += n)
		if (s != t->s && s[-1] == '"' && s[n] == '"' &&
		    s[n + 1] == ':') {
			*ret = strtoul(s + n + 2, NULL, 10);
			return true;
		}
	return false;
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
	malloc_stats_print(add, &t, "Jgmdablxeh");
	ret->is_known = number(&t, "live", &ret->live) &&
			number(&t, "stranded", &ret->stranded) &&
			number(&t, "stranded_bound", &ret->stranded_bound) &&
			number(&t, "mapped", &ret->mapped) &&
			number(&t, "resident", &ret->resident) &&
			number(&t, "ring_bytes", &ret->ring_bytes) &&
			number(&t, "chunks", &ret->n_chunks) &&
			number(&t, "remote_row_bytes", &ret->remote_row_bytes);
	/* A number that has another name by now must not look like a peer. */
	if (!ret->is_known && strstr(t.s, "\"eddy\":") != NULL)
		rig_fail_now("the statistics lack a number");
}
