/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * diff_hooks.c - arenas with hooks of the program's own: the default ones with
 * some replaced, refused or left out.
 */
#include "diff.h"

#include <malloc.h>
#include <stdlib.h>

/* Nine functions, in the order of extent_hooks_t. */
struct hooks {
	void *(*alloc)(
	    struct hooks *, void *, size_t, size_t, bool *, bool *, unsigned);
	void *others[8];
};

static char args[128];
static char answer[256];

static struct hooks own;
static const struct hooks *usual;
static unsigned n_alloc;
static unsigned owner_seen;
static bool refuse;
static bool wrong;

static void *
on_alloc(struct hooks *h, void *at, size_t size, size_t align, bool *zero,
    bool *commit, unsigned arena)
{
	n_alloc++;
	owner_seen = arena;
	wrong |= h != &own || size == 0 || size % PAGE != 0 ||
		 align % PAGE != 0 || (align & (align - 1)) != 0;
	if (refuse)
		return NULL;
	/* As programs do: the default one, and their own struct. */
	return usual->alloc(h, at, size, align, zero, commit, arena);
}

/* dalloc, destroy, commit, decommit, purge_lazy, purge_forced, split, merge:
 * those that may say no. */
static bool
opted_out(void)
{
	return true;
}

static int
arena_op(unsigned arena, const char *leaf, void *oldp, size_t *oldlenp,
    void *newp, size_t newlen)
{
	char name[64];

	(void)snprintf(name, sizeof name, "arena.%u.%s", arena, leaf);
	return mallctl(name, oldp, oldlenp, newp, newlen);
}

static const struct hooks *
hooks_of(unsigned arena)
{
	const struct hooks *h = NULL;
	size_t len = sizeof h;

	(void)arena_op(arena, "extent_hooks", &h, &len, NULL, 0);
	return h;
}

/* One address for all arenas, and nine functions there. */
static void
defaults(void)
{
	unsigned k = diff_below(N_STEADY);
	bool whole;

	diff_rule(RULE_HOOKS);
	usual = hooks_of(0);
	whole = usual != NULL && usual->alloc != NULL;
	for (unsigned i = 0; whole && i < COUNT(usual->others); i++)
		whole = usual->others[i] != NULL;
	(void)snprintf(answer, sizeof answer, "whole=%d same=%d", whole,
	    hooks_of((unsigned)diff_steady[k]) == usual);
	diff_line("arena.<i>.extent_hooks", "default", answer);
}

/* Which of the eight are left out (NULL) or say no. */
static void
choose_hooks(void)
{
	/* Without a dalloc that gives memory away there is nothing to lose. */
	static const char kinds[] = "=0!";
	char *s = args + strlen(args);

	own.alloc = on_alloc;
	for (unsigned i = 0; i < COUNT(own.others); i++) {
		unsigned kind = diff_below(3);

		/* destroy returns nothing; a commit must not fail. */
		if ((i == 1 && kind == 2) || i == 2)
			kind = 0;
		own.others[i] = kind == 0   ? usual->others[i]
				: kind == 1 ? NULL
					    : (void *)opted_out;
		*s++ = kinds[kind];
	}
	*s = '\0';
}

/* Blocks of the arena, some freed again. */
static void
use(unsigned arena)
{
	int flags = MALLOCX_ARENA(arena) | MALLOCX_TCACHE_NONE;
	unsigned lost = 0;
	unsigned others = 0;

	for (unsigned i = 0; i < 20; i++) {
		size_t size =
		    1 + diff_random() % (diff_one_in(3) ? 2000000 : 20000);
		void *p = mallocx(size, flags | MALLOCX_ZERO);
		unsigned owner = 0;
		size_t len = sizeof owner;

		lost += p == NULL;
		if (p == NULL)
			continue;
		(void)mallctl("arenas.lookup", &owner, &len, &p, sizeof p);
		others += owner != arena;
		memset(p, 1, size);
		if (diff_one_in(2))
			dallocx(p, MALLOCX_TCACHE_NONE);
	}
	(void)snprintf(
	    answer, sizeof answer, "lost=%u others=%u", lost, others);
	diff_line("hooks: blocks", args, answer);
}

static void
with_own(void)
{
	struct hooks *h = &own;
	const struct hooks *old = NULL;
	const struct hooks *given = usual;
	unsigned arena = 0;
	size_t len = sizeof arena;
	void *p;
	int r;

	if (usual == NULL)
		return;
	diff_rule(RULE_HOOKS);
	(void)snprintf(args, sizeof args, "hooks ");
	choose_hooks();
	n_alloc = 0;
	wrong = refuse = false;
	r = mallctl("arenas.create", &arena, &len, &h, sizeof h);
	(void)snprintf(answer, sizeof answer, "r=%d kept=%d", r,
	    r == 0 && hooks_of(arena) == h);
	diff_line("arenas.create", args, answer);
	if (r != 0)
		return;
	diff_arena_begun(arena);
	use(arena);
	(void)snprintf(answer, sizeof answer, "asked=%d right=%d arena=%d",
	    n_alloc != 0, !wrong, owner_seen == arena);
	diff_line("hooks: alloc", args, answer);
	/* More than any arena has put by. */
	refuse = true;
	p = mallocx(
	    (size_t)300 << 20, MALLOCX_ARENA(arena) | MALLOCX_TCACHE_NONE);
	(void)snprintf(answer, sizeof answer, "NULL=%d", p == NULL);
	diff_line("hooks: refused", args, answer);
	refuse = false;
	(void)arena_op(arena, "purge", NULL, NULL, NULL, 0);
	use(arena);
	/* Read and written at once. */
	len = sizeof old;
	r = arena_op(arena, "extent_hooks", &old, &len, &given, sizeof given);
	(void)snprintf(answer, sizeof answer, "r=%d old=%d new=%d", r, old == h,
	    hooks_of(arena) == usual);
	diff_line("arena.<i>.extent_hooks", args, answer);
	use(arena);
	r = arena_op(arena, "destroy", NULL, NULL, NULL, 0);
	(void)snprintf(answer, sizeof answer, "r=%d", r);
	diff_line("arena.<i>.destroy", args, answer);
	diff_arena_ended(arena);
}

void
diff_hooks_step(void)
{
	if (usual == NULL || diff_one_in(4))
		defaults();
	else
		with_own();
}
