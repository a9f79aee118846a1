/* SPDX-License-Identifier: BSD-2-Clause */
/* ctl_prof.c - prof.*, thread.prof.*, experimental.hooks.prof_*; the end of a
 * process that profiles. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/ctl/ctl_gen_names.h"
#include "lib/ctl/text.h"
#include "lib/os/os.h"
#include "lib/prof/dump.h"
#include "lib/prof/ground.h"
#include "lib/prof/sample.h"
#include "lib/prof/unwind.h"

/* Not there in a static program that does not use it. */
#pragma weak fflush

/* A setting of 0 or 1; without profiling it reads as 0, and is not set. */
static int
setting(struct eddy_ctl *c, _Atomic uint32_t *value)
{
	c->out = 0;
	if (!eddy_prof_is_on())
		return c->newp != NULL ? ENOENT : 0;
	/* relaxed, both: a setting. */
	c->out = c->writes ? eddy_xchg_relaxed(value, (uint32_t)c->in)
			   : eddy_load_relaxed(value);
	return 0;
}

int
eddy_ctl_prof_active(struct eddy_ctl *c)
{
	c->out = 0;
	if (!eddy_prof_is_on())
		return c->writes && c->in != 0 ? ENOENT : 0;
	/* relaxed: a setting. */
	c->out = eddy_load_relaxed(&eddy_prof.active);
	if (c->writes)
		eddy_prof_set_active(c->in != 0);
	return 0;
}

int
eddy_ctl_prof_thread_active_init(struct eddy_ctl *c)
{
	return setting(c, &eddy_prof.thread_active_init);
}

int
eddy_ctl_prof_gdump(struct eddy_ctl *c)
{
	return setting(c, &eddy_prof.gdump);
}

int
eddy_ctl_prof_interval(struct eddy_ctl *c)
{
	/* relaxed: a setting. */
	c->out = eddy_load_relaxed(&eddy_prof.interval);
	return 0;
}

int
eddy_ctl_prof_lg_sample(struct eddy_ctl *c)
{
	/* relaxed: a setting. */
	c->out = eddy_prof_lg(eddy_load_relaxed(&eddy_prof.era));
	return 0;
}

int
eddy_ctl_prof_lost(struct eddy_ctl *c)
{
	/* relaxed: a count. */
	c->out = eddy_load_relaxed(&eddy_prof.lost);
	return 0;
}

int
eddy_ctl_prof_memory(struct eddy_ctl *c)
{
	c->out = eddy_ground_bytes();
	return 0;
}

/* ------------------------------------------------------------------ */
/* Profiles */

int
eddy_ctl_prof_dump(struct eddy_ctl *c)
{
	const char *path = c->writes ? (const char *)(uintptr_t)c->in : NULL;

	if (!eddy_prof_is_on())
		return ENOENT;
	return eddy_dump(c->h, path, EDDY_DUMP_ASKED) == 0 ? 0 : EFAULT;
}

int
eddy_ctl_prof_prefix(struct eddy_ctl *c)
{
	const char *s = c->writes ? (const char *)(uintptr_t)c->in : NULL;

	if (!eddy_prof_is_on())
		return ENOENT;
	return s == NULL || eddy_dump_set_prefix(s) != 0 ? EFAULT : 0;
}

int
eddy_ctl_prof_format(struct eddy_ctl *c)
{
	static const char *const words[] = {"threaded", "gperftools"};
	const char *s = (const char *)(uintptr_t)c->in;
	uint32_t i = 0;

	if (!eddy_prof_is_on())
		return ENOENT;
	if (c->writes && (s == NULL || (strcmp(s, words[0]) != 0 &&
					   strcmp(s, words[1]) != 0)))
		return EINVAL;
	if (c->writes)
		i = strcmp(s, words[1]) == 0;
	/* relaxed, both: a setting. */
	i = c->writes ? eddy_xchg_relaxed(&eddy_prof.gperftools, i)
		      : eddy_load_relaxed(&eddy_prof.gperftools);
	c->out = eddy_ctl_pointer(words[i]);
	return 0;
}

int
eddy_ctl_prof_reset(struct eddy_ctl *c)
{
	/* relaxed: a setting. */
	uint64_t lg = eddy_prof_lg(eddy_load_relaxed(&eddy_prof.era));

	if (!eddy_prof_is_on())
		return ENOENT;
	if (c->writes)
		lg = c->in < 63 ? c->in : 63;
	eddy_prof_reset((unsigned)lg);
	return 0;
}

/* ------------------------------------------------------------------ */
/* Samples by size class */

static int
tell_class(struct eddy_ctl *c, unsigned i, bool ever)
{
	struct eddy_prof_class *k = &eddy_prof_classes[i];
	uint64_t v[2];

	if (!eddy_prof_is_on() || !c->h->opts.prof_stats)
		return ENOENT;
	/* relaxed, both: sums. */
	v[0] = eddy_load_relaxed(ever ? &k->ever_size : &k->size);
	v[1] = eddy_load_relaxed(ever ? &k->ever_count : &k->count);
	return eddy_ctl_give(c, v, sizeof(v));
}

int
eddy_ctl_prof_bin_live(struct eddy_ctl *c)
{
	return tell_class(c, (unsigned)c->i, false);
}

int
eddy_ctl_prof_bin_accum(struct eddy_ctl *c)
{
	return tell_class(c, (unsigned)c->i, true);
}

int
eddy_ctl_prof_lextent_live(struct eddy_ctl *c)
{
	return tell_class(c, EDDY_N_SMALL + (unsigned)c->i, false);
}

int
eddy_ctl_prof_lextent_accum(struct eddy_ctl *c)
{
	return tell_class(c, EDDY_N_SMALL + (unsigned)c->i, true);
}

/* ------------------------------------------------------------------ */
/* The calling thread */

int
eddy_ctl_thread_prof_active(struct eddy_ctl *c)
{
	c->out = 0;
	if (!eddy_prof_is_on())
		return c->newp != NULL ? ENOENT : 0;
	c->out = eddy_prof_thread_active();
	if (c->writes)
		eddy_prof_set_thread_active(c->in != 0);
	return 0;
}

static bool
is_printable(const char *s)
{
	for (; *s != '\0'; s++)
		if (*s < ' ' || *s > '~')
			return false;
	return true;
}

int
eddy_ctl_thread_prof_name(struct eddy_ctl *c)
{
	const char *s = (const char *)(uintptr_t)c->in;
	struct eddy_prof_thread *t;

	if (!eddy_prof_is_on())
		return ENOENT;
	if (c->newp != NULL && (c->oldp != NULL || c->oldlenp != NULL))
		return EPERM;
	if (c->writes && (s == NULL || !is_printable(s)))
		return EINVAL;
	t = eddy_prof_thread();
	if (t == NULL)
		return EAGAIN;
	c->out = eddy_ctl_pointer(t->name);
	if (c->writes)
		eddy_stack_name(t, s);
	return 0;
}

/* ------------------------------------------------------------------ */
/* Functions of the program's */

#define N_HOOKS 4

static _Atomic uintptr_t *
hook_at(int64_t i)
{
	_Atomic uintptr_t *const hooks[N_HOOKS] = {&eddy_prof.backtrace_hook,
	    &eddy_prof.dump_hook, &eddy_prof.sample_hook,
	    &eddy_prof.sample_free_hook};

	return hooks[i];
}

int
eddy_ctl_prof_hook(struct eddy_ctl *c)
{
	_Atomic uintptr_t *hook = hook_at(c->arg);
	bool backtrace = c->arg == 0;
	uintptr_t old;
	uintptr_t v;
	int err = 0;

	if (c->oldp == NULL && c->newp == NULL)
		return EINVAL;
	/* TELL-A1: pairs with TELL-R1. */
	old = eddy_load_acquire(hook);
	if (backtrace && old == 0 && eddy_prof_is_on())
		old = (uintptr_t)eddy_unwind_default;
	if (c->oldp != NULL)
		err = eddy_ctl_give(c, &old, sizeof(old));
	if (err != 0 || c->newp == NULL)
		return err;
	if (!eddy_prof_is_on())
		return ENOENT;
	if (c->newlen != sizeof(v))
		return EINVAL;
	memcpy(&v, c->newp, sizeof(v));
	if (backtrace && v == 0)
		return EINVAL;
	if (backtrace && v == (uintptr_t)eddy_unwind_default)
		v = 0;
	/* TELL-R1: what the program has laid ready for it. */
	eddy_store_release(hook, v);
	return 0;
}

/* ------------------------------------------------------------------ */
/* The end of the process */

/* "~3 objects" */
static void
add_things(
    struct eddy_text *t, const char *before, uint64_t n, const char *thing)
{
	eddy_text_add(t, before);
	eddy_text_number(t, n, 1);
	eddy_text_add(t, " ");
	eddy_text_add(t, thing);
	if (n != 1)
		eddy_text_add(t, "s");
}

static void
tell_leaks(const struct eddy_dump_leaks *l, bool dumped)
{
	struct eddy_text t;

	eddy_text_open(&t, NULL, NULL);
	eddy_text_add(&t, "<jemalloc>: Leak approximation summary:");
	add_things(&t, " ~", l->bytes, "byte");
	add_things(&t, ", ~", l->objects, "object");
	add_things(&t, ", >= ", l->stacks, "context");
	eddy_text_add(&t, "\n");
	if (dumped)
		eddy_text_add(&t,
		    "<jemalloc>: Run jeprof on dump output for leak detail\n");
	eddy_text_close(&t);
}

void
eddy_ctl_prof_end(struct eddy_heap *h)
{
	struct eddy_dump_leaks leaks;

	if (h->opts.prof_final)
		eddy_dump_of_itself(h, EDDY_DUMP_FINAL);
	if (!h->opts.prof_leak)
		return;
	eddy_dump_count(&leaks);
	if (leaks.objects == 0)
		return;
	tell_leaks(&leaks, h->opts.prof_final);
	if (!h->opts.prof_leak_error)
		return;
	/* What exit would still have written. */
	if (fflush != NULL)
		(void)fflush(NULL);
	eddy_os_exit(1);
}
