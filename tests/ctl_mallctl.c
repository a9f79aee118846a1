/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ctl_mallctl.c - every name of mallctl(3) is there, has its type, and keeps
 * the rules.  The names come from ctl.tab by ctl_gen_names_test.inc, with 0 for
 * every number.
 */
#include "probe.h"

#include "eddy/eddy.h"

/* The library is preloaded, not linked. */
#pragma weak mallctl
#pragma weak mallctlbymib
#pragma weak mallctlnametomib

enum type {
	BOOL,
	UNSIGNED,
	UINT32,
	SIZE,
	SSIZE,
	UINT64,
	INT64,
	STRING,
	POINTER,
	VOID,
	OTHER,
};

enum access { R, W, RW };

struct name {
	const char *name;
	enum type type;
	enum access access;
	const char *answer;
};

#define CTL_NAME(name, type, access, answer) {name, type, access, #answer},
static const struct name names[] = {
#include "tests/ctl_gen_names_test.inc"
};

enum { DEPTH = 7, ROOM = 24, FILL = 0x5e };

static size_t
size_of(enum type t)
{
	return t == BOOL                      ? sizeof(bool)
	       : t == UNSIGNED || t == UINT32 ? sizeof(unsigned)
					      : sizeof(uint64_t);
}

static bool
is_absent(const struct name *n)
{
	return strcmp(n->answer, "ABSENT") == 0;
}

/* A call that fails as it must, and writes neither value nor length. */
static bool
refused(const char *name, int err, void *oldp, size_t *oldlenp, void *newp,
    size_t newlen)
{
	unsigned char before[ROOM];
	size_t len = oldlenp != NULL ? *oldlenp : 0;
	int r;

	if (oldp != NULL)
		memcpy(before, oldp, sizeof before);
	errno = 0;
	r = mallctl(name, oldp, oldlenp, newp, newlen);
	if (r == err && errno == 0 && (oldlenp == NULL || *oldlenp == len) &&
	    (oldp == NULL || memcmp(before, oldp, sizeof before) == 0))
		return true;
	tap_diag("%s: %d, not %d", name, r, err);
	return false;
}

/* ------------------------------------------------------------------ */

/* The whole name and all its beginnings, as mibs. */
static bool
translates(const struct name *n)
{
	size_t whole[DEPTH + 1];
	size_t depth = DEPTH + 1;
	size_t dots = 0;
	bool ok = mallctlnametomib(n->name, whole, &depth) == 0;

	for (const char *s = n->name; *s != '\0'; s++)
		dots += *s == '.';
	ok &= depth == dots + 1 && depth <= DEPTH;
	for (size_t i = 1, at = 0; ok && i < depth; i++) {
		size_t mib[DEPTH + 1];
		size_t len = DEPTH;
		char part[96];

		at += strcspn(n->name + at, ".") + 1;
		(void)snprintf(part, sizeof part, "%.*s", (int)at - 1, n->name);
		ok &= mallctlnametomib(part, mib, &len) == 0 && len == i &&
		      memcmp(mib, whole, i * sizeof *mib) == 0;
		/* A beginning has no value. */
		ok &= mallctlbymib(mib, len, NULL, NULL, NULL, 0) == ENOENT;
		ok &= refused(part, ENOENT, NULL, NULL, NULL, 0);
		/* Room for less is filled. */
		mib[i] = FILL;
		len = i;
		ok &= mallctlnametomib(n->name, mib, &len) == 0 && len == i &&
		      memcmp(mib, whole, i * sizeof *mib) == 0 &&
		      mib[i] == FILL;
	}
	whole[depth] = 0;
	ok &= mallctlbymib(whole, depth + 1, NULL, NULL, NULL, 0) == ENOENT;
	return ok;
}

/* What is nearly the name is none. */
static bool
stands_alone(const struct name *n)
{
	static const char *const more[] = {".", ".x", ".0", "."};
	size_t mib[DEPTH] = {FILL};
	size_t len = DEPTH;
	char s[96];
	bool ok = true;

	for (size_t i = 0; i < COUNT(more); i++) {
		(void)snprintf(s, sizeof s, "%s%s", n->name, more[i]);
		ok &= refused(s, ENOENT, NULL, NULL, NULL, 0);
		ok &= mallctlnametomib(s, mib, &len) == ENOENT &&
		      mib[0] == FILL && len == DEPTH;
	}
	(void)snprintf(s, sizeof s, ".%s", n->name);
	ok &= refused(s, ENOENT, NULL, NULL, NULL, 0);
	(void)snprintf(s, sizeof s, "%sx", n->name);
	ok &= refused(s, ENOENT, NULL, NULL, NULL, 0);
	return ok;
}

/* The value, by name, by mib and to an odd address. */
static bool
reads(const struct name *n, unsigned char *value)
{
	size_t size = size_of(n->type);
	unsigned char by_mib[ROOM];
	unsigned char odd[ROOM];
	size_t mib[DEPTH];
	size_t depth = DEPTH;
	size_t len = size;
	bool ok;

	memset(value, FILL, ROOM);
	memset(by_mib, FILL, ROOM);
	memset(odd, FILL, ROOM);
	ok = mallctl(n->name, value, &len, NULL, 0) == 0 && len == size &&
	     value[size] == FILL;
	ok &= mallctlnametomib(n->name, mib, &depth) == 0 &&
	      mallctlbymib(mib, depth, by_mib, &len, NULL, 0) == 0 &&
	      len == size && memcmp(by_mib, value, ROOM) == 0;
	ok &= mallctl(n->name, odd + 1, &len, NULL, 0) == 0 &&
	      memcmp(odd + 1, value, ROOM - 1) == 0;
	if (n->type == BOOL)
		ok &= value[0] <= 1;
	/* Nothing asked, nothing done. */
	ok &= mallctl(n->name, NULL, NULL, NULL, 0) == 0 &&
	      mallctl(n->name, odd, NULL, NULL, 0) == 0 &&
	      memcmp(odd + 1, value, ROOM - 1) == 0;
	len = 3;
	ok &= mallctl(n->name, NULL, &len, NULL, 0) == 0 && len == 3;
	return ok;
}

/* Other lengths: as much as fits, and how much. */
static bool
wrong_old_lengths(const struct name *n, const unsigned char *value)
{
	size_t size = size_of(n->type);
	bool ok = true;

	for (size_t len = 0; len < 20; len++) {
		unsigned char old[ROOM];
		size_t fits = len < size ? len : size;
		size_t got = len;

		if (len == size)
			continue;
		memset(old, FILL, sizeof old);
		ok &= mallctl(n->name, old, &got, NULL, 0) == EINVAL &&
		      got == fits && memcmp(old, value, fits) == 0;
		for (size_t i = fits; i < sizeof old; i++)
			ok &= old[i] == FILL;
	}
	return ok;
}

static bool
is_value(const struct name *n, const unsigned char *value)
{
	unsigned char now[ROOM] = {0};
	size_t len = size_of(n->type);

	return mallctl(n->name, now, &len, NULL, 0) == 0 &&
	       memcmp(now, value, len) == 0;
}

static bool
read_only(const struct name *n, unsigned char *value)
{
	unsigned char old[ROOM] = {FILL};
	size_t len = size_of(n->type);

	return refused(n->name, EPERM, NULL, NULL, value, len) &&
	       refused(n->name, EPERM, NULL, NULL, NULL, len) &&
	       refused(n->name, EPERM, NULL, NULL, value, 0) &&
	       refused(n->name, EPERM, old, &len, value, len) &&
	       is_value(n, value);
}

/* Writes of the value that is there, and of wrong lengths. */
static bool
written(const struct name *n, unsigned char *value)
{
	bool is_epoch = strcmp(n->name, "epoch") == 0;
	size_t size = size_of(n->type);
	unsigned char old[ROOM];
	size_t len = size;
	bool ok = true;

	for (size_t i = 0; i < 20; i++)
		if (i != size)
			ok &= refused(n->name, EINVAL, NULL, NULL, value, i);
	/* Who cannot take the old value sets none; but an epoch has no value
	 * that could be lost. */
	len = size + 1;
	ok &= mallctl(n->name, old, &len, value, size) == EINVAL && len == size;
	ok &= is_epoch || (memcmp(old, value, size) == 0 && is_value(n, value));
	memset(old, FILL, sizeof old);
	ok &= mallctl(n->name, old, &len, value, size) == 0 && len == size &&
	      (is_epoch || memcmp(old, value, size) == 0);
	ok &= mallctl(n->name, NULL, NULL, value, size) == 0;
	return ok && (is_epoch || is_value(n, value));
}

/* Numbers of what is not there. */
static bool
write_only(const struct name *n)
{
	size_t size = size_of(n->type);
	unsigned char value[ROOM];
	size_t len = size;
	bool ok = true;

	memset(value, FILL, sizeof value);
	for (size_t i = 0; i < 20; i++)
		if (i != size)
			ok &= refused(n->name, EINVAL, NULL, NULL, value, i);
	return ok && refused(n->name, EPERM, value, NULL, value, size) &&
	       refused(n->name, EPERM, NULL, &len, value, size) &&
	       refused(n->name, EINVAL, NULL, NULL, NULL, 0) &&
	       refused(n->name, EFAULT, NULL, NULL, value, size);
}

static bool
acts(const struct name *n)
{
	/* Not malloc's. */
	bool ends_arena = strcmp(n->answer, "ARENA_RESET") == 0 ||
			  strcmp(n->answer, "ARENA_DESTROY") == 0;
	unsigned char x[ROOM] = {FILL};
	size_t len = 8;

	return refused(n->name, EPERM, x, NULL, NULL, 0) &&
	       refused(n->name, EPERM, NULL, &len, NULL, 0) &&
	       refused(n->name, EPERM, NULL, NULL, x, 0) &&
	       refused(n->name, EPERM, NULL, NULL, NULL, 1) &&
	       refused(n->name, EPERM, x, &len, x, 8) &&
	       mallctl(n->name, NULL, NULL, NULL, 0) ==
		   (ends_arena ? EFAULT : 0);
}

/* Not built: whatever is asked. */
static bool
absent(const struct name *n)
{
	unsigned char x[ROOM] = {FILL};
	size_t len = 8;

	return refused(n->name, ENOENT, NULL, NULL, NULL, 0) &&
	       refused(n->name, ENOENT, x, &len, NULL, 0) &&
	       refused(n->name, ENOENT, NULL, NULL, x, 8) &&
	       refused(n->name, ENOENT, x, &len, x, 1);
}

/* What can be set only in a process that profiles: tests/prof_names.c. */
static bool
is_of_profiles(const struct name *n)
{
	return n->access != R && strcmp(n->answer, "PROF_ACTIVE") != 0 &&
	       (strncmp(n->answer, "PROF_", 5) == 0 ||
		   strncmp(n->answer, "THREAD_PROF_", 12) == 0);
}

static void
one_name(const struct name *n)
{
	unsigned char value[ROOM];
	bool ok = translates(n) && stands_alone(n);

	if (is_absent(n)) {
		tap_ok(ok && absent(n), "%s: known, not built", n->name);
		return;
	}
	if (n->type == OTHER || is_of_profiles(n)) {
		tap_ok(ok, "%s: known", n->name);
		return;
	}
	if (n->type == VOID) {
		tap_ok(ok && acts(n), "%s: an action", n->name);
		return;
	}
	if (n->access == W) {
		tap_ok(ok && write_only(n), "%s: written", n->name);
		return;
	}
	ok = ok && reads(n, value) && wrong_old_lengths(n, value);
	if (n->access == R)
		tap_ok(ok && read_only(n, value), "%s: read", n->name);
	else
		tap_ok(ok && written(n, value), "%s: read, written", n->name);
}

int
main(int argc, char **argv)
{
	(void)argc;
	tap_begin(argv);
	tap_guard(60);
	if (mallctl == NULL)
		tap_bail("no mallctl");
	/* So that arena 0 is in use. */
	p_free(p_malloc(100));
	for (size_t i = 0; i < COUNT(names); i++)
		one_name(&names[i]);
	return tap_end();
}
