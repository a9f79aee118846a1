/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * diff_arena.c - arenas and caches that are made and ended, whose a block is,
 * what an arena holds.
 */
#include "diff.h"

#include <malloc.h>
#include <stdlib.h>

int diff_steady[N_STEADY];
int diff_mortal[N_MORTAL];
int diff_tcaches[N_TCACHES];
unsigned diff_ended[N_ENDED];
unsigned diff_n_ended;

static char args[256];
static char answer[512];

/* ------------------------------------------------------------------ */

static void
answer_to(const char *key, int r)
{
	(void)snprintf(answer, sizeof answer, "r=%d", r);
	diff_line(key, args, answer);
	diff_ctl_count(key);
}

static int
act(const char *fmt, int i)
{
	char name[64];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	(void)snprintf(name, sizeof name, fmt, i);
#pragma GCC diagnostic pop
	return mallctl(name, NULL, NULL, NULL, 0);
}

/* ------------------------------------------------------------------ */
/* Arenas */

/* Whether a new index is one that was given back; it is so no more. */
static bool
again(unsigned index)
{
	for (unsigned i = 0; i < diff_n_ended; i++)
		if (diff_ended[i] == index) {
			diff_ended[i] = diff_ended[--diff_n_ended];
			return true;
		}
	return false;
}

void
diff_arena_ended(unsigned index)
{
	if (diff_n_ended < N_ENDED)
		diff_ended[diff_n_ended++] = index;
}

/* Another arena has the index now. */
void
diff_arena_begun(unsigned index)
{
	(void)again(index);
}

static int
create_arena(void)
{
	static const char *const names[] = {
	    "arenas.create", "experimental.arenas_create_ext"};
	unsigned k = diff_below(2);
	unsigned n = (unsigned)diff_get("arenas.narenas", 4);
	unsigned index = 0;
	unsigned had = diff_n_ended;
	size_t len = sizeof index;
	bool reused;
	int r;

	r = mallctl(names[k], &index, &len, NULL, 0);
	diff_rule(RULE_CREATE);
	diff_rule(RULE_ARENA_DENSE);
	/* jemalloc has no statistics of it before that. */
	(void)mallctl("epoch", NULL, NULL, &(uint64_t){1}, sizeof(uint64_t));
	reused = r == 0 && again(index);
	(void)snprintf(args, sizeof args, "ended=%d", had != 0);
	(void)snprintf(answer, sizeof answer,
	    "r=%d len=%zu next=%d reused=%d narenas=%+d", r, len,
	    r == 0 && index == n, reused,
	    (int)((unsigned)diff_get("arenas.narenas", 4) - n));
	diff_line(names[k], args, answer);
	diff_ctl_count(names[k]);
	return r == 0 ? (int)index : -1;
}

static void
flush_tcaches(void)
{
	for (unsigned i = 0; i < N_TCACHES; i++) {
		unsigned id = (unsigned)diff_tcaches[i];

		if (diff_tcaches[i] < 0)
			continue;
		diff_rule(RULE_TCACHE_ID);
		answer_to("tcache.flush",
		    mallctl("tcache.flush", NULL, NULL, &id, sizeof id));
	}
}

static void
end_arena(unsigned k, bool destroy)
{
	int r;

	args[0] = '\0';
	flush_tcaches();
	diff_rule(destroy ? RULE_ARENA_DESTROY : RULE_ARENA_RESET);
	r = act(
	    destroy ? "arena.%d.destroy" : "arena.%d.reset", diff_mortal[k]);
	answer_to(destroy ? "arena.<i>.destroy" : "arena.<i>.reset", r);
	diff_alloc_forget(k);
	if (!destroy || r != 0)
		return;
	diff_arena_ended((unsigned)diff_mortal[k]);
	diff_mortal[k] = -1;
}

/* ------------------------------------------------------------------ */
/* Whose block it is */

static void
lookup(void)
{
	struct block *b = diff_alloc_any(diff_one_in(4));
	unsigned index = 0;
	size_t len = sizeof index;
	unsigned char *p;
	size_t at;
	int r;

	if (b == NULL)
		return;
	at = b->usable < LARGE ? diff_random() % b->usable : 0;
	p = b->p + at;
	diff_rule(RULE_ARENA_OWNS);
	r = mallctl("arenas.lookup", &index, &len, &p, sizeof p);
	(void)snprintf(args, sizeof args, "size=%zu at=%zu where=%u", b->size,
	    at, b->where);
	/* A steady arena's block may be of malloc's arena, and so on. */
	(void)snprintf(answer, sizeof answer, "r=%d right=%d", r,
	    b->where != MORTAL || index == (unsigned)diff_mortal[b->k]);
	diff_line("arenas.lookup", args, answer);
	diff_ctl_count("arenas.lookup");
}

static void
lookup_wrong(void)
{
	struct block *b = diff_alloc_any(false);
	unsigned char old[16];
	size_t len = diff_below(12);
	size_t newlen = sizeof b->p;
	int r;

	if (b == NULL)
		return;
	/* One fault: the old length, or the new one. */
	if (diff_one_in(2)) {
		newlen = diff_below(8);
		len = 4;
		diff_rule(RULE_WRITE_LENGTH);
	} else if (len < 4) {
		diff_rule(RULE_READ_SHORT);
	}
	memset(old, FILL, sizeof old);
	(void)snprintf(args, sizeof args, "old=%zu new=%zu", len, newlen);
	r = mallctl("arenas.lookup", old, &len, &b->p, newlen);
	(void)snprintf(answer, sizeof answer, "r=%d len=%zu rest=%d", r, len,
	    old[4] == FILL);
	diff_line("arenas.lookup", args, answer);
	diff_ctl_count("arenas.lookup");
}

/* ------------------------------------------------------------------ */
/* What an arena holds */

static void
sums(unsigned k)
{
	static const char *const names[] = {"small.allocated",
	    "large.allocated", "bins.%u.curregs", "lextents.%u.curlextents"};
	unsigned which = diff_below(COUNT(names));
	unsigned j = diff_below(which == 3 ? 30 : 36);
	uint64_t epoch = 1;
	char leaf[64];
	char name[96];

	args[0] = '\0';
	flush_tcaches();
	diff_rule(RULE_ARENA_SUMS);
	(void)mallctl("epoch", NULL, NULL, &epoch, sizeof epoch);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	(void)snprintf(leaf, sizeof leaf, names[which], j);
#pragma GCC diagnostic pop
	(void)snprintf(
	    name, sizeof name, "stats.arenas.%d.%s", diff_mortal[k], leaf);
	(void)snprintf(args, sizeof args, "%s", leaf);
	(void)snprintf(answer, sizeof answer, "%llu",
	    (unsigned long long)diff_get(name, 8));
	diff_line("sum of an arena", args, answer);
}

/* ------------------------------------------------------------------ */
/* Caches */

static void
tcache(void)
{
	unsigned k = diff_below(N_TCACHES);
	unsigned id = (unsigned)diff_tcaches[k];
	size_t len = sizeof id;
	int r;

	args[0] = '\0';
	diff_rule(RULE_TCACHE_ID);
	if (diff_tcaches[k] < 0) {
		diff_rule(RULE_CREATE);
		r = mallctl("tcache.create", &id, &len, NULL, 0);
		diff_tcaches[k] = r == 0 ? (int)id : -1;
		(void)snprintf(answer, sizeof answer, "r=%d len=%zu id=%d", r,
		    len, id < 4094);
		diff_line("tcache.create", args, answer);
		diff_ctl_count("tcache.create");
	} else if (diff_one_in(2)) {
		answer_to("tcache.flush",
		    mallctl("tcache.flush", NULL, NULL, &id, sizeof id));
	} else {
		answer_to("tcache.destroy",
		    mallctl("tcache.destroy", NULL, NULL, &id, sizeof id));
		diff_tcaches[k] = -1;
	}
}

/* Off, flushed, on. */
static void
thread_tcache(void)
{
	bool on = diff_one_in(2);
	bool old = false;
	size_t len = sizeof old;
	int r = mallctl("thread.tcache.enabled", &old, &len, &on, sizeof on);

	if (!on)
		diff_rule(RULE_TCACHE_OFF);
	(void)snprintf(args, sizeof args, "enabled=%d", on);
	(void)snprintf(answer, sizeof answer, "r=%d was=%d", r, old);
	diff_line("thread.tcache.enabled", args, answer);
	answer_to("thread.tcache.flush",
	    mallctl("thread.tcache.flush", NULL, NULL, NULL, 0));
	on = true;
	(void)mallctl("thread.tcache.enabled", NULL, NULL, &on, sizeof on);
}

/* ------------------------------------------------------------------ */
/* Utilization */

struct use {
	size_t nfree;
	size_t nregs;
	size_t size;
};

/*
 * A large block's or a slab's; how much is free there, only if it must be 0.
 * jemalloc adds a page to what is large (cache_oblivious).
 */
static void
describe_use(const struct block *b, const struct use *u)
{
	size_t at = strlen(answer);

	if (b->usable < LARGE)
		(void)snprintf(answer + at, sizeof answer - at,
		    " some=%d of %zu in %zu", u->nfree < u->nregs, u->nregs,
		    u->size);
	else
		(void)snprintf(answer + at, sizeof answer - at,
		    " %zu of %zu, large=%d", u->nfree, u->nregs,
		    u->size == b->usable || u->size == b->usable + PAGE);
}

static void
utilization(void)
{
	struct use out[3];
	const void *in[3];
	struct block *b[3];
	size_t n = 1 + diff_below(3);
	size_t len = n * sizeof *out;
	size_t newlen = n * sizeof *in;
	int r;

	for (size_t i = 0; i < n; i++) {
		b[i] = diff_alloc_any(diff_one_in(2));
		if (b[i] == NULL)
			return;
		in[i] = b[i]->p;
	}
	memset(out, FILL, sizeof out);
	diff_rule(RULE_UTILIZATION);
	if (diff_one_in(4)) {
		len += diff_one_in(2) ? 8 : -(size_t)8;
		diff_rule(RULE_UTILIZATION_WRONG);
	}
	(void)snprintf(args, sizeof args, "n=%zu len=%zu", n, len);
	r = mallctl(
	    "experimental.utilization.batch_query", out, &len, in, newlen);
	(void)snprintf(answer, sizeof answer, "r=%d len=%zu", r, len);
	for (size_t i = 0; i < n && r == 0; i++)
		describe_use(b[i], &out[i]);
	diff_line("experimental.utilization.batch_query", args, answer);
	diff_ctl_count("experimental.utilization.batch_query");
}

static void
utilization_of_one(void)
{
	struct {
		void *slabcur;
		struct use use;
		size_t bin_nfree;
		size_t bin_nregs;
	} out;
	struct block *b = diff_alloc_any(diff_one_in(2));
	size_t len = sizeof out;
	int r;

	if (b == NULL)
		return;
	memset(&out, FILL, sizeof out);
	diff_rule(RULE_UTILIZATION);
	if (diff_one_in(4)) {
		len -= 8;
		diff_rule(RULE_UTILIZATION_WRONG);
	}
	(void)snprintf(args, sizeof args, "size=%zu len=%zu", b->size, len);
	r = mallctl(
	    "experimental.utilization.query", &out, &len, &b->p, sizeof b->p);
	(void)snprintf(answer, sizeof answer, "r=%d len=%zu", r, len);
	if (r == 0)
		describe_use(b, &out.use);
	diff_line("experimental.utilization.query", args, answer);
	diff_ctl_count("experimental.utilization.query");
}

/* ------------------------------------------------------------------ */
/* Many at once */

static void
batch_alloc(void)
{
	void *p[64] = {NULL};
	struct {
		void **ptrs;
		size_t num;
		size_t size;
		int flags;
	} in = {p, 1 + diff_below(COUNT(p)), 1 + diff_below(20000),
	    diff_one_in(2) ? MALLOCX_ZERO : 0};
	size_t filled = 0;
	size_t len = sizeof filled;
	bool same = true;
	int r;

	(void)snprintf(args, sizeof args, "num=%zu size=%zu flags=%x", in.num,
	    in.size, (unsigned)in.flags);
	diff_rule(RULE_BATCH_ALLOC);
	r = mallctl("experimental.batch_alloc", &filled, &len, &in, sizeof in);
	for (size_t i = 0; i < filled && i < COUNT(p); i++) {
		same &= malloc_usable_size(p[i]) == nallocx(in.size, 0);
		free(p[i]);
	}
	(void)snprintf(
	    answer, sizeof answer, "r=%d filled=%zu same=%d", r, filled, same);
	diff_line("experimental.batch_alloc", args, answer);
	diff_ctl_count("experimental.batch_alloc");
}

/* ------------------------------------------------------------------ */

void
diff_arena_begin(void)
{
	for (unsigned i = 0; i < N_STEADY; i++)
		diff_steady[i] = create_arena();
	for (unsigned i = 0; i < N_MORTAL; i++)
		diff_mortal[i] = -1;
	for (unsigned i = 0; i < N_TCACHES; i++)
		diff_tcaches[i] = -1;
	/* jemalloc has no totals of destroyed arenas before there is one. */
	diff_mortal[0] = create_arena();
	end_arena(0, true);
}

void
diff_arena_step(void)
{
	unsigned k = diff_below(N_MORTAL);
	unsigned what = diff_below(100);

	if (what < 20 && diff_mortal[k] < 0)
		diff_mortal[k] = create_arena();
	else if (what < 24 && diff_mortal[k] >= 0)
		end_arena(k, diff_one_in(2));
	else if (what < 40)
		tcache();
	else if (what < 48)
		lookup();
	else if (what < 52)
		lookup_wrong();
	else if (what < 66 && diff_mortal[k] >= 0)
		sums(k);
	else if (what < 74)
		thread_tcache();
	else if (what < 84)
		utilization();
	else if (what < 92)
		utilization_of_one();
	else
		batch_alloc();
}
