/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * diff_wrong.c - preloaded before eddy: bends the answer that DIFF_WRONG names,
 * for diff_jemalloc to find.
 */
#ifndef _GNU_SOURCE
#	define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <jemalloc/jemalloc.h>
#include <stdbool.h>
#include <string.h>

static bool
is_bent(const char *what)
{
	const char *s = getenv("DIFF_WRONG");

	return s != NULL && strcmp(s, what) == 0;
}

static void *
real(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

/* A static of its own for each, looked up at the first call. */
#define REAL(type, name) \
	static type p;   \
	if (p == NULL)   \
	p = (type)real(name)

typedef size_t (*size_flags)(size_t, int);
typedef void *(*make)(size_t, int);
typedef void *(*remake)(void *, size_t, int);
typedef size_t (*in_place)(void *, size_t, size_t, int);
typedef void *(*resize)(void *, size_t);
typedef int (*aligned)(void **, size_t, size_t);
typedef size_t (*usable)(void *);
typedef int (*control)(const char *, void *, size_t *, void *, size_t);
typedef int (*to_mib)(const char *, size_t *, size_t *);

/* The next class. */
size_t
nallocx(size_t size, int flags)
{
	REAL(size_flags, "nallocx");
	size_t n = p(size, flags);

	return is_bent("nallocx") && n != 0 ? p(n + 1, flags) : n;
}

void *
mallocx(size_t size, int flags)
{
	REAL(make, "mallocx");
	return p(size, is_bent("mallocx-zero") ? flags & ~MALLOCX_ZERO : flags);
}

/* One byte is lost. */
void *
rallocx(void *old, size_t size, int flags)
{
	REAL(remake, "rallocx");
	char *block = p(old, size, flags);

	if (is_bent("rallocx-keep") && block != NULL)
		block[0] ^= 1;
	return block;
}

/* Nothing is ever done in place. */
size_t
xallocx(void *old, size_t size, size_t extra, int flags)
{
	REAL(in_place, "xallocx");
	return is_bent("xallocx") ? sallocx(old, 0)
				  : p(old, size, extra, flags);
}

void *
realloc(void *old, size_t size)
{
	REAL(resize, "realloc");
	void *block = p(old, size);

	if (is_bent("realloc-errno") && block == NULL && size == 0)
		errno = EINVAL;
	return block;
}

int
posix_memalign(void **ret, size_t align, size_t size)
{
	REAL(aligned, "posix_memalign");
	int r = p(ret, align, size);

	if (is_bent("posix_memalign-out") && r != 0)
		*ret = NULL;
	return r;
}

size_t
malloc_usable_size(void *block)
{
	REAL(usable, "malloc_usable_size");
	size_t n = p(block);

	return is_bent("usable") && n > 16 ? n - 1 : n;
}

/* Another length: nothing is copied, or the length is not said. */
static int
misread(control p, const char *name, void *oldp, size_t *oldlenp)
{
	size_t len = *oldlenp;
	int r;

	if (is_bent("part")) {
		r = p(name, NULL, NULL, NULL, 0);
		return r != 0 ? r : EINVAL;
	}
	r = p(name, oldp, oldlenp, NULL, 0);
	*oldlenp = len;
	return r;
}

static unsigned
n_arenas(control p)
{
	unsigned n = 0;
	size_t len = sizeof n;

	(void)p("arenas.narenas", &n, &len, NULL, 0);
	return n;
}

int
mallctl(
    const char *name, void *oldp, size_t *oldlenp, void *newp, size_t newlen)
{
	REAL(control, "mallctl");
	size_t eight = sizeof(uint64_t);
	char whole[64];

	bool in_arenas = strncmp(name, "arenas.", strlen("arenas.")) == 0;

	if (in_arenas && newp == NULL && newlen == 0 && oldp != NULL &&
	    oldlenp != NULL && (is_bent("part") || is_bent("length")) &&
	    p(name, whole, (size_t[]){*oldlenp}, NULL, 0) == EINVAL)
		return misread(p, name, oldp, oldlenp);
	if (is_bent("permission") && in_arenas)
		return p(name, oldp, oldlenp, NULL, 0);
	if (is_bent("alias") && strncmp(name, "arena.", 6) == 0 &&
	    strtoul(name + 6, NULL, 10) == n_arenas(p))
		return ENOENT;
	if (is_bent("junk") && strstr(name, "abc.") != NULL)
		return ENOENT;
	if (is_bent("epoch") && strcmp(name, "epoch") == 0)
		return p(name, oldp, oldlenp, NULL, 0);
	if (is_bent("counts") && strcmp(name, "thread.allocated") == 0 &&
	    oldp != NULL && *oldlenp == eight) {
		memset(oldp, 0, eight);
		return 0;
	}
	return p(name, oldp, oldlenp, newp, newlen);
}

static size_t
components(const char *s)
{
	size_t n = 1;

	for (; *s != '\0'; s++)
		n += *s == '.';
	return n;
}

/* Room for the whole name is needed. */
int
mallctlnametomib(const char *name, size_t *mibp, size_t *miblenp)
{
	REAL(to_mib, "mallctlnametomib");
	int r = p(name, mibp, miblenp);

	if (is_bent("depth") && r == 0 && *miblenp < components(name))
		return ENOENT;
	return r;
}
