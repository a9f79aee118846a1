/* SPDX-License-Identifier: BSD-2-Clause */
/* diff_ctl.c - every name, by name and by mib, with right and wrong arguments.
 */
#include "diff.h"

#include <ctype.h>
#include <string.h>

enum type { BOOL, U32, U64, STRING, POINTER, VOID, MUTEX, OTHER, GONE };
enum access { R, W, RW, ACT, CREATE };
enum since { OLD, NEW };
enum value { FREE, FIXED };

static const struct name {
	const char *pattern;
	enum type type;
	enum access access;
	enum since since;
	enum value value;
} names[] = {
#define NAME(pattern, type, access, since, value) \
	{pattern, type, access, since, value},
#include "diff_names.h"
#undef NAME
};

static const char *const counters[] = {"num_ops", "num_wait", "num_spin_acq",
    "num_owner_switch", "total_wait_time", "max_wait_time", "max_num_thds"};

static unsigned long counts[COUNT(names)][COUNT(counters)];

void
diff_ctl_count(const char *pattern)
{
	for (size_t i = 0; i < COUNT(names); i++)
		counts[i][0] += strcmp(names[i].pattern, pattern) == 0;
}

void
diff_ctl_counts(void (*print)(const char *name, unsigned long n))
{
	char s[128];

	for (size_t i = 0; i < COUNT(names); i++) {
		const char *brace = strchr(names[i].pattern, '{');

		if (names[i].type != MUTEX) {
			print(names[i].pattern, counts[i][0]);
			continue;
		}
		for (size_t k = 0; k < COUNT(counters); k++) {
			(void)snprintf(s, sizeof s, "%.*s%s",
			    (int)(brace - names[i].pattern), names[i].pattern,
			    counters[k]);
			print(s, counts[i][k]);
		}
	}
}

/* ------------------------------------------------------------------ */
/* Numbers in names */

/* What an index of arenas stands for. */
enum role {
	A_AUTO,
	A_STEADY,
	A_MORTAL,
	A_ENDED,
	A_NARENAS,
	A_BEYOND,
	A_ALL,
	A_TOTALS,
	A_4098,
	A_BIG,
	N_ROLES
};

static const char *const role_names[] = {"malloc's", "steady", "mortal",
    "ended", "narenas", "narenas+1", "all", "totals", "4098", "10^6"};

/* A call about to be made. */
struct call {
	const struct name *n;
	size_t counter;
	enum role role; /* of the arena in the name */
	bool valid;     /* the numbers are */
	char text[160];
	char what[192]; /* the same where libraries may number as they like */
	size_t numbers[2];
	unsigned n_numbers;
	size_t size;
};

static enum role
any_role(size_t *ret)
{
	static const enum role roles[] = {A_AUTO, A_AUTO, A_STEADY, A_MORTAL,
	    A_MORTAL, A_ENDED, A_NARENAS, A_BEYOND, A_ALL, A_ALL, A_TOTALS,
	    A_4098, A_BIG};
	enum role role = roles[diff_below(COUNT(roles))];
	size_t n = (size_t)diff_get("arenas.narenas", 4);
	unsigned k = diff_below(N_MORTAL);

	if (role == A_MORTAL && diff_mortal[k] < 0)
		role = A_AUTO;
	if (role == A_ENDED && diff_n_ended == 0)
		role = A_AUTO;
	*ret = 0;
	if (role == A_STEADY)
		*ret = (size_t)diff_steady[k % N_STEADY];
	else if (role == A_MORTAL)
		*ret = (size_t)diff_mortal[k];
	else if (role == A_ENDED)
		*ret = diff_ended[k % diff_n_ended];
	else if (role == A_NARENAS || role == A_BEYOND)
		*ret = n + (role == A_BEYOND);
	else if (role == A_ALL || role == A_TOTALS || role == A_4098)
		*ret = 4096u + (size_t)(role - A_ALL);
	else if (role == A_BIG)
		*ret = 1000000;
	return role;
}

static bool
begins(const char *s, const char *with)
{
	return strncmp(s, with, strlen(with)) == 0;
}

/*
 * jemalloc 5.3.0 reads beyond its table of arenas where these names meet 4096
 * and 4097, and for experimental names it does not look at the number at all.
 */
static bool
is_safe(const char *pattern, enum role role)
{
	static const char *const single[] = {"reset", "destroy",
	    "dirty_decay_ms", "muzzy_decay_ms", "oversize_threshold"};
	const char *leaf = pattern + strlen("arena.<i>.");

	if (!begins(pattern, "arena.<i>."))
		return true;
	if (role == A_TOTALS)
		return strcmp(leaf, "initialized") == 0;
	if (role == A_ALL)
		for (size_t i = 0; i < COUNT(single); i++)
			if (strcmp(leaf, single[i]) == 0)
				return false;
	/* Their blocks are known to diff_arena.c alone. */
	return !(strcmp(leaf, "reset") == 0 || strcmp(leaf, "destroy") == 0) ||
	       (role != A_STEADY && role != A_MORTAL);
}

/* How many there are of what stands before a number. */
static size_t
how_many(const char *before, size_t n)
{
	static const struct {
		const char *word;
		size_t n;
	} tables[] = {{"bin", 36}, {"bins", 36}, {"lextent", 196},
	    {"lextents", 196}, {"extents", 199}, {"nonfull_slabs", 64},
	    {"alloc", 16}};

	for (size_t i = 0; i < COUNT(tables); i++)
		if (strlen(tables[i].word) == n &&
		    strncmp(before, tables[i].word, n) == 0)
			return tables[i].n;
	return 0;
}

/* A number as it may be written, or what is none. */
static bool
spell(char *s, size_t n, size_t v, bool *ret_valid)
{
	static const char *const none[] = {"", "x", "-1", " ", "-", "+", ".x"};
	unsigned how = diff_below(24);
	unsigned k = diff_below(COUNT(none));

	if (how == 0) {
		(void)snprintf(s, n, "%zuabc", v);
		diff_rule(RULE_NUMBER_JUNK);
	} else if (how == 1) {
		(void)snprintf(s, n, diff_one_in(2) ? " %zu" : "\t%zu", v);
		diff_rule(RULE_NUMBER_BLANK);
	} else if (how == 2) {
		(void)snprintf(s, n, "+%zu", v);
		diff_rule(RULE_NUMBER_PLUS);
	} else if (how == 3 && v == 0) {
		(void)snprintf(s, n, "0x1");
		diff_rule(RULE_NUMBER_HEX);
	} else if (how == 4) {
		(void)snprintf(s, n, "%s", none[k]);
		diff_rule(k == 2 ? RULE_NUMBER_NEGATIVE : RULE_NUMBER_NONE);
		*ret_valid = false;
	} else {
		(void)snprintf(s, n, "%zu", v);
		return false;
	}
	return true;
}

static void
add(char *s, size_t n, const char *fmt, const char *what)
{
	size_t at = strlen(s);

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	(void)snprintf(s + at, n - at, fmt, what);
#pragma GCC diagnostic pop
}

/* One number of a name. */
static void
add_number(struct call *c, const char *before, size_t len, bool plain)
{
	bool is_arena = (len == 5 && strncmp(before, "arena", 5) == 0) ||
			(len == 6 && strncmp(before, "arenas", 6) == 0);
	size_t most = how_many(before, len);
	char number[40];
	char odd[64];
	size_t v;
	bool oddly;

	if (is_arena) {
		do
			c->role = any_role(&v);
		while (!is_safe(c->n->pattern, c->role));
		c->valid &= c->role <= A_TOTALS && c->role != A_BEYOND;
		if (c->role == A_BEYOND || c->role > A_TOTALS)
			diff_rule(RULE_ARENA_BEYOND);
		(void)snprintf(odd, sizeof odd, "<%s>", role_names[c->role]);
	} else {
		v = diff_below((unsigned)most);
		if (diff_one_in(10)) {
			/* jemalloc takes the first one beyond for the last. */
			v = most + 1 + diff_below(2) * diff_below(1000);
			c->valid = false;
			diff_rule(RULE_NUMBER_RANGE);
		}
		(void)snprintf(odd, sizeof odd, "%zu", v);
	}
	oddly = false;
	if (plain)
		(void)snprintf(number, sizeof number, "%zu", v);
	else
		oddly = spell(number, sizeof number, v, &c->valid);
	add(c->text, sizeof c->text, "%s", number);
	add(c->what, sizeof c->what, "%s", odd);
	/* An arena's own number is not fixed. */
	if (oddly)
		add(c->what, sizeof c->what, "(oddly)", "");
	if (c->n_numbers < COUNT(c->numbers))
		c->numbers[c->n_numbers++] = v;
}

static size_t
size_of(const struct name *n, size_t counter)
{
	if (n->type == MUTEX)
		return counter == 6 ? 4 : 8;
	return n->type == BOOL ? 1 : n->type == U32 ? 4 : 8;
}

static void
choose(struct call *c, bool plain)
{
	size_t i = diff_below(COUNT(names));
	const char *s;

	memset(c, 0, sizeof *c);
	/* Those that do something, and the many that stand for seven names. */
	if (diff_one_in(6))
		while (names[i].access == R || names[i].since == NEW)
			i = diff_below(COUNT(names));
	else if (diff_one_in(3))
		while (names[i].type != MUTEX)
			i = diff_below(COUNT(names));
	c->n = &names[i];
	c->valid = true;
	if (c->n->type == MUTEX)
		c->counter = diff_below(COUNT(counters));
	c->size = size_of(c->n, c->counter);
	for (s = c->n->pattern; *s != '\0' && *s != '{';) {
		const char *dot = s;

		if (*s != '<') {
			char one[2] = {*s++, '\0'};

			add(c->text, sizeof c->text, "%s", one);
			add(c->what, sizeof c->what, "%s", one);
			continue;
		}
		for (dot = s - 1; dot > c->n->pattern && dot[-1] != '.';)
			dot--;
		add_number(c, dot, (size_t)(s - 1 - dot), plain);
		s = strchr(s, '>') + 1;
	}
	if (*s == '{') {
		add(c->text, sizeof c->text, "%s", counters[c->counter]);
		add(c->what, sizeof c->what, "%s", counters[c->counter]);
	}
}

/* ------------------------------------------------------------------ */
/* Values to be written */

static void
ignore(void)
{
}

struct value_to_write {
	unsigned char bytes[8];
	char text[64];
};

static int64_t
any_decay(void)
{
	static const int64_t values[] = {
	    -1, 0, 1, 10, 1000, 10000, 3600000, -2, -100, INT64_MIN};
	int64_t v = values[diff_below(COUNT(values))];

	diff_rule(v < -1 ? RULE_DECAY_RANGE : RULE_DECAY);
	return v;
}

static const char *
any_dss(enum role role)
{
	static const char *const words[] = {
	    "disabled", "primary", "secondary", "bogus", "", "Disabled"};
	unsigned k = diff_below(role == A_ENDED ? 3 : COUNT(words));

	if (k > 2)
		diff_rule(RULE_DSS_WORD);
	return words[k];
}

static size_t
any_limit(void)
{
	static const size_t values[] = {0, 1, 4095, 4096, 5000, 12288, 65537,
	    2097152, 3000000, 7340033, 0x7000000000000000, 0x7000000000000001};
	size_t v = values[diff_below(COUNT(values))];

	diff_rule(v < 4096 ? RULE_GROW_LIMIT_LOW : RULE_GROW_LIMIT);
	return v;
}

static size_t
any_max_threads(void)
{
	/* 0 makes jemalloc divide by it. */
	static const size_t values[] = {1, 2, 3, 4, 5, 100, SIZE_MAX};
	size_t v = values[diff_below(COUNT(values))];

	if (v > 4)
		diff_rule(RULE_MAX_THREADS);
	return v;
}

/* Of the main thread: its own arena, or what is none. */
static unsigned
any_thread_arena(void)
{
	unsigned n = (unsigned)diff_get("arenas.narenas", 4);

	if (diff_one_in(2))
		return 0;
	diff_rule(RULE_THREAD_ARENA_RANGE);
	return n + diff_below(2) * 1000;
}

/* What may be written to a name.  false: nothing that is known to be safe. */
static bool
choose_value(const struct call *c, struct value_to_write *v)
{
	const char *s = c->n->pattern;
	uint64_t x = 0;

	if (c->n->since == NEW || c->n->type == GONE)
		return false;
	if (strcmp(s, "epoch") == 0) {
		x = diff_random();
		(void)snprintf(v->text, sizeof v->text, "any");
	} else if (strcmp(s, "max_background_threads") == 0) {
		x = any_max_threads();
	} else if (strcmp(s, "thread.arena") == 0) {
		x = any_thread_arena();
		(void)snprintf(v->text, sizeof v->text, "%s",
		    x == 0 ? "own" : "none such");
	} else if (strstr(s, "_decay_ms") != NULL) {
		x = (uint64_t)any_decay();
	} else if (strcmp(s, "arena.<i>.dss") == 0) {
		const char *word = any_dss(c->role);

		x = (uintptr_t)word;
		(void)snprintf(v->text, sizeof v->text, "\"%s\"", word);
	} else if (strcmp(s, "arena.<i>.oversize_threshold") == 0) {
		x = diff_random() >> diff_below(64);
	} else if (strcmp(s, "arena.<i>.retain_grow_limit") == 0) {
		x = any_limit();
	} else if (strcmp(s, "background_thread") == 0) {
		/* jemalloc may hang when they end as they begin. */
		x = false;
	} else if (begins(s, "prof.") || begins(s, "thread.prof")) {
		static const char name[] = "/dev/null";

		diff_rule(RULE_PROF_OFF);
		x = c->n->type == STRING ? (uintptr_t)name
		    : c->n->type == BOOL ? diff_one_in(2)
					 : diff_below(30);
		if (c->n->type == STRING)
			(void)snprintf(v->text, sizeof v->text, "a file");
	} else if (strcmp(s, "thread.tcache.enabled") == 0) {
		x = !diff_one_in(3);
	} else if (begins(s, "experimental.hooks.")) {
		x = (uintptr_t)(void *)ignore;
		(void)snprintf(v->text, sizeof v->text, "a function");
	} else if (strcmp(s, "experimental.prof_recent.alloc_max") == 0) {
		x = diff_below(100);
	} else {
		return false;
	}
	if (v->text[0] == '\0')
		(void)snprintf(v->text, sizeof v->text, "%lld", (long long)x);
	memcpy(v->bytes, &x, sizeof x);
	return true;
}

/* ------------------------------------------------------------------ */
/* Calls */

struct arguments {
	unsigned char old[ROOM];
	size_t len;
	bool has_old;
	bool has_len;
	struct value_to_write v;
	bool has_new;
	size_t newlen;
};

static char args[512];
static char answer[512];
static char room[32];

/* Puts what came back into words. */
static void
describe(const struct call *c, const struct arguments *a, int r, size_t len,
    size_t size)
{
	size_t copied = r == 0 || r == EINVAL ? (len < ROOM ? len : ROOM) : 0;
	size_t end = ROOM;
	size_t at;

	if (!a->has_len || !a->has_old)
		copied = 0;
	while (end > 0 && a->old[end - 1] == FILL)
		end--;
	(void)snprintf(answer, sizeof answer, "r=%d len=%zu", r, len);
	at = strlen(answer);
	if (end > copied) {
		(void)snprintf(
		    answer + at, sizeof answer - at, " wrote %zu bytes", end);
		return;
	}
	if (c == NULL || copied == 0)
		return;
	/* The first bytes of a statistic may be what was there. */
	if (c->n->value == FREE && copied < size)
		return;
	/* Of an EINVAL that is not about the length, nothing. */
	(void)snprintf(answer + at, sizeof answer - at, " %s",
	    end > 0 ? "value" : "nothing");
	at = strlen(answer);
	if (c->n->value != FIXED || end == 0)
		return;
	if (c->n->type == STRING) {
		const char *s;

		if (r != 0 || copied != sizeof s)
			return;
		memcpy(&s, a->old, sizeof s);
		(void)snprintf(answer + at, sizeof answer - at, " \"%.80s\"",
		    s != NULL ? s : "(null)");
		return;
	}
	for (size_t i = 0; i < copied && i < size; i++, at += 2)
		(void)snprintf(answer + at, sizeof answer - at,
		    i == 0 ? " %02x" : "%02x", a->old[i]),
		    at += i == 0;
}

/* The call, by name or by a mib of it. */
static void
make_call(struct call *c, struct arguments *a, const char *key)
{
	size_t mib[8];
	size_t depth = COUNT(mib);
	size_t len = a->len;
	void *oldp = a->has_old ? a->old : NULL;
	size_t *lenp = a->has_len ? &len : NULL;
	void *newp = a->has_new ? a->v.bytes : NULL;
	bool by_mib = diff_one_in(3);
	char whole[640];
	int r;

	counts[c->n - names][c->counter]++;
	if (c->n->type == GONE)
		diff_rule(RULE_GONE);
	if (begins(c->n->pattern, "prof."))
		diff_rule(RULE_PROF_OFF);
	(void)snprintf(whole, sizeof whole, "%s%s%s", c->what,
	    by_mib ? " by mib" : "", args);
	memset(a->old, FILL, sizeof a->old);
	/* Where the name goes. */
	if (strcmp(c->n->pattern, "arena.<i>.name") == 0)
		memcpy(a->old, &(char *){room}, sizeof(char *));
	if (by_mib) {
		diff_rule(RULE_MIB_WHOLE);
		r = mallctlnametomib(c->text, mib, &depth);
		if (r == 0)
			r = mallctlbymib(
			    mib, depth, oldp, lenp, newp, a->newlen);
		else
			r += 1000;
	} else {
		r = mallctl(c->text, oldp, lenp, newp, a->newlen);
	}
	describe(c, a, r, len, c->size);
	diff_line(key, whole, answer);
}

static size_t
wrong_length(size_t size)
{
	size_t n = diff_below(20);

	return n == size ? size + 1 : n;
}

static void
set_read(struct arguments *a, size_t len)
{
	a->has_old = true;
	a->has_len = true;
	a->len = len;
	(void)snprintf(args, sizeof args, " old=%zu", len);
}

/* What must be refused, or does nothing. */
static void
read_name(struct call *c, struct arguments *a)
{
	unsigned how = diff_below(20);

	if (how < 8) {
		diff_rule(RULE_READ);
		set_read(a, c->size);
	} else if (how < 12) {
		set_read(a, wrong_length(c->size));
		diff_rule(a->len < c->size ? RULE_READ_SHORT : RULE_READ_LONG);
	} else if (how == 12) {
		diff_rule(RULE_READ_NO_LENGTH);
		a->has_old = true;
		(void)snprintf(args, sizeof args, " old, no length");
	} else if (how == 13) {
		diff_rule(RULE_READ_NO_ROOM);
		a->has_len = true;
		a->len = diff_below(20);
		(void)snprintf(args, sizeof args, " length %zu", a->len);
	} else if (how == 14) {
		diff_rule(RULE_NOTHING);
		(void)snprintf(args, sizeof args, " nothing");
	} else if (c->n->access == R) {
		if (diff_one_in(2))
			set_read(a, c->size);
		a->has_new = how != 17;
		a->newlen = how == 18 ? 0 : diff_one_in(4) ? 3 : c->size;
		diff_rule(how == 17   ? RULE_READ_ONLY_LENGTH
			  : how == 18 ? RULE_READ_ONLY_POINTER
				      : RULE_READ_ONLY);
		(void)snprintf(args, sizeof args, " old=%zu new=%d,%zu", a->len,
		    a->has_new, a->newlen);
	} else {
		diff_rule(RULE_READ);
		set_read(a, c->size);
	}
	make_call(c, a, c->n->pattern);
}

/* Names that are read and written.  At most one fault a call. */
static void
write_name(struct call *c, struct arguments *a)
{
	unsigned how = diff_below(6);
	size_t size = c->size;
	size_t len = size;

	if (!choose_value(c, &a->v)) {
		read_name(c, a);
		return;
	}
	a->has_new = true;
	a->newlen = size;
	/* At most one fault: an arena that is not there is one. */
	if (how == 0 && c->role <= A_MORTAL) {
		a->newlen = wrong_length(size);
		diff_rule(RULE_WRITE_LENGTH);
		(void)snprintf(args, sizeof args, " new of %zu", a->newlen);
	} else if (how == 1 && c->valid && c->role <= A_MORTAL) {
		/* The value that is there, lest libraries drift apart. */
		if (mallctl(c->text, a->v.bytes, &len, NULL, 0) != 0)
			return;
		set_read(a, wrong_length(size));
		diff_rule(RULE_SWAP_MISREAD);
		(void)snprintf(
		    args, sizeof args, " old=%zu new=the same", a->len);
	} else if (how == 2) {
		diff_rule(RULE_SWAP);
		set_read(a, size);
		(void)snprintf(
		    args, sizeof args, " old=%zu new=%s", size, a->v.text);
	} else {
		diff_rule(RULE_WRITE);
		(void)snprintf(args, sizeof args, " new=%s", a->v.text);
	}
	make_call(c, a, c->n->pattern);
}

static void
write_only(struct call *c, struct arguments *a)
{
	unsigned how = diff_below(5);

	if (how == 0) {
		diff_rule(RULE_WRITE_NOTHING);
		(void)snprintf(args, sizeof args, " nothing");
	} else if (how == 1) {
		a->has_new = true;
		a->newlen = wrong_length(c->size);
		diff_rule(RULE_WRITE_LENGTH);
		(void)snprintf(args, sizeof args, " new of %zu", a->newlen);
	} else if (how == 2 && choose_value(c, &a->v)) {
		a->has_new = true;
		a->newlen = c->size;
		diff_rule(RULE_WRITE);
		(void)snprintf(args, sizeof args, " new=%s", a->v.text);
	} else {
		a->has_old = how != 3;
		a->has_len = !a->has_old || diff_one_in(2);
		a->len = c->size;
		diff_rule(RULE_WRITE_ONLY);
		(void)snprintf(
		    args, sizeof args, " old=%d,%d", a->has_old, a->has_len);
	}
	make_call(c, a, c->n->pattern);
}

static void
act(struct call *c, struct arguments *a)
{
	if (!diff_one_in(4)) {
		bool ends = strstr(c->n->pattern, "destroy") != NULL ||
			    strstr(c->n->pattern, "reset") != NULL;

		diff_rule(RULE_ACT);
		if (c->role == A_ALL)
			diff_rule(RULE_ARENA_ALL);
		if (c->role == A_NARENAS)
			diff_rule(RULE_ARENA_NARENAS);
		if (ends && c->role == A_AUTO)
			diff_rule(RULE_ARENA_AUTO_END);
		(void)snprintf(args, sizeof args, " nothing");
	} else {
		unsigned bits = 1 + diff_below(15);

		a->has_old = (bits & 1) != 0;
		a->has_len = (bits & 2) != 0;
		a->len = 8;
		a->has_new = (bits & 4) != 0;
		a->newlen = (bits & 8) != 0 ? 8 : 0;
		diff_rule(RULE_ACT_ARGUMENT);
		(void)snprintf(args, sizeof args, " arguments %u", bits);
	}
	make_call(c, a, c->n->pattern);
}

/* Creation that fails; that it succeeds is diff_arena.c's. */
static void
create(struct call *c, struct arguments *a)
{
	if (strcmp(c->n->pattern, "tcache.create") == 0 && diff_one_in(4)) {
		a->has_new = true;
		a->newlen = 4;
		set_read(a, 4);
		diff_rule(RULE_CREATE_WRITE);
		add(args, sizeof args, " new", "");
	} else if (diff_one_in(2)) {
		size_t size = strstr(c->n->pattern, "batch") != NULL ? 8 : 4;

		set_read(a, wrong_length(size));
		diff_rule(RULE_CREATE_LENGTH);
	} else {
		/* jemalloc writes the length without a look. */
		a->has_len = true;
		a->len = 4;
		diff_rule(RULE_CREATE_NULL);
		(void)snprintf(args, sizeof args, " length 4");
	}
	make_call(c, a, c->n->pattern);
}

static void
whole_name(void)
{
	struct arguments a = {0};
	struct call c;

	choose(&c, false);
	args[0] = '\0';
	if (c.role == A_TOTALS)
		diff_rule(RULE_ARENA_TOTALS);
	if (c.role == A_ENDED)
		diff_rule(RULE_ARENA_ENDED);
	if (c.n->access == CREATE)
		create(&c, &a);
	else if (c.n->type == OTHER && c.n->access == RW && c.n->since == OLD)
		return; /* diff_arena.c's */
	else if (c.n->access == ACT)
		act(&c, &a);
	else if (c.n->access == W)
		write_only(&c, &a);
	else if (c.n->access == RW && diff_one_in(2))
		write_name(&c, &a);
	else
		read_name(&c, &a);
}

/* ------------------------------------------------------------------ */
/* Names that are none */

static enum rule
spoil(struct call *c)
{
	static const char *const more[] = {".", ".x", ".0", ".name", ".."};
	char *leaf = strrchr(c->text, '.');
	unsigned how = diff_below(9);
	const char *s = more[diff_below(COUNT(more))];

	leaf = leaf != NULL ? leaf + 1 : c->text;
	switch (how) {
	case 0:
		c->text[0] = '\0';
		(void)snprintf(c->what, sizeof c->what, "(empty)");
		return RULE_NAME_EMPTY;
	case 1:
	case 2:
		add(c->text, sizeof c->text, "%s", s);
		add(c->what, sizeof c->what, "%s", s);
		return RULE_NAME_MORE;
	case 3:
	case 4:
		if (leaf == c->text)
			break;
		leaf[-1] = '\0';
		*strrchr(c->what, '.') = '\0';
		return RULE_NAME_PART;
	case 5:
		leaf[0] = (char)toupper(leaf[0]);
		(void)snprintf(
		    c->what, sizeof c->what, "%s, capital", c->n->pattern);
		return RULE_NAME_UNKNOWN;
	case 6:
		if (strlen(leaf) < 2)
			break;
		leaf[strlen(leaf) - 1] = '\0';
		(void)snprintf(
		    c->what, sizeof c->what, "%s, shorter", c->n->pattern);
		return RULE_NAME_UNKNOWN;
	case 7:
		memmove(c->text + 1, c->text, strlen(c->text) + 1);
		c->text[0] = diff_one_in(2) ? '.' : 'x';
		(void)snprintf(c->what, sizeof c->what, "%s behind %c",
		    c->n->pattern, c->text[0]);
		return RULE_NAME_UNKNOWN;
	default:
		break;
	}
	add(c->text, sizeof c->text, "%s", "_");
	add(c->what, sizeof c->what, "%s", "_");
	return RULE_NAME_UNKNOWN;
}

/* Whether a name ends where it says, by its number of components. */
static size_t
components(const char *s)
{
	size_t n = 1;

	for (; *s != '\0'; s++)
		n += *s == '.';
	return n;
}

static void
no_name(void)
{
	struct arguments a = {0};
	struct call c;
	size_t mib[8] = {0};
	size_t depth = COUNT(mib);
	size_t len = 8;
	enum rule rule;
	int r;

	choose(&c, true);
	rule = spoil(&c);
	diff_rule(rule);
	memset(a.old, FILL, sizeof a.old);
	a.has_old = a.has_len = true;
	if (diff_one_in(3)) {
		if (rule == RULE_NAME_PART)
			diff_rule(RULE_MIB_PART);
		r = mallctlnametomib(c.text, mib, &depth);
		(void)snprintf(
		    answer, sizeof answer, "r=%d depth=%zu", r, depth);
		(void)snprintf(args, sizeof args, "mib of %s", c.what);
	} else {
		r = mallctl(c.text, a.old, &len, NULL, 0);
		describe(NULL, &a, r, len, 0);
		(void)snprintf(args, sizeof args, "no name %s", c.what);
	}
	diff_line(c.n->pattern, args, answer);
}

/* ------------------------------------------------------------------ */
/* Mibs */

static void
mibs(void)
{
	struct arguments a = {0};
	struct call c;
	size_t mib[8];
	size_t depth = COUNT(mib);
	size_t whole;
	size_t len;
	char first[160];
	int r;

	choose(&c, true);
	whole = components(c.text);
	len = c.size;
	memset(a.old, FILL, sizeof a.old);
	memset(mib, FILL, sizeof mib);
	a.has_old = a.has_len = true;
	switch (diff_below(4)) {
	case 0:
		/* Room for less. */
		depth = diff_below((unsigned)whole) + diff_one_in(4);
		diff_rule(RULE_MIB_ROOM);
		(void)snprintf(
		    args, sizeof args, "mib of %s room=%zu", c.what, depth);
		r = mallctlnametomib(c.text, mib, &depth);
		(void)snprintf(
		    answer, sizeof answer, "r=%d depth=%zu", r, depth);
		diff_line(c.n->pattern, args, answer);
		return;
	case 1:
		diff_rule(RULE_MIB_SHORT);
		(void)mallctlnametomib(c.text, mib, &depth);
		depth = diff_below((unsigned)whole);
		(void)snprintf(
		    args, sizeof args, "mib %s depth=%zu", c.what, depth);
		r = mallctlbymib(mib, depth, a.old, &len, NULL, 0);
		describe(NULL, &a, r, len, 0);
		diff_line(c.n->pattern, args, answer);
		return;
	case 2:
		diff_rule(RULE_MIB_WRONG);
		(void)mallctlnametomib(c.text, mib, &depth);
		mib[0] = 1000 + diff_below(2) * (SIZE_MAX / 2);
		(void)snprintf(args, sizeof args, "mib %s wrong", c.what);
		r = mallctlbymib(mib, whole, a.old, &len, NULL, 0);
		describe(NULL, &a, r, len, 0);
		diff_line(c.n->pattern, args, answer);
		return;
	default:
		break;
	}
	/* Numbers patched into the mib of the name with zeros. */
	if (c.n->access != R || c.n_numbers == 0 || c.n->type == OTHER)
		return;
	first[0] = '\0';
	for (const char *s = c.n->pattern; *s != '\0' && *s != '{'; s++) {
		char one[2] = {*s, '\0'};

		if (*s == '<') {
			one[0] = '0';
			s += 2;
		}
		add(first, sizeof first, "%s", one);
	}
	if (strchr(c.n->pattern, '{') != NULL)
		add(first, sizeof first, "%s", counters[c.counter]);
	diff_rule(RULE_MIB_PATCHED);
	counts[c.n - names][c.counter]++;
	r = mallctlnametomib(first, mib, &depth);
	if (r == 0) {
		unsigned n = 0;
		size_t at = 0;

		for (const char *s = c.n->pattern; *s != '\0'; s++) {
			at += *s == '.';
			if (*s == '<' && n < c.n_numbers)
				mib[at] = c.numbers[n++];
		}
		r = mallctlbymib(mib, depth, a.old, &len, NULL, 0);
	} else {
		r += 1000;
	}
	describe(&c, &a, r, len, c.size);
	(void)snprintf(args, sizeof args, "%s patched", c.what);
	diff_line(c.n->pattern, args, answer);
}

void
diff_ctl_step(void)
{
	unsigned what = diff_below(10);

	if (what < 7)
		whole_name();
	else if (what < 8)
		no_name();
	else
		mibs();
}
