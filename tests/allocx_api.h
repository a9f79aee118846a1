/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * allocx_api.h - mallocx and its relatives, and mallctl, as found in the
 * library that the test was preloaded with.
 */
#ifndef EDDY_TESTS_ALLOCX_API_H
#define EDDY_TESTS_ALLOCX_API_H

#include "probe.h"

#include "jemalloc/jemalloc.h"

static struct {
	void *(*mallocx)(size_t, int);
	void *(*rallocx)(void *, size_t, int);
	size_t (*xallocx)(void *, size_t, size_t, int);
	size_t (*sallocx)(const void *, int);
	void (*dallocx)(void *, int);
	void (*sdallocx)(void *, size_t, int);
	size_t (*nallocx)(size_t, int);
	int (*ctl)(const char *, void *, size_t *, void *, size_t);
} x;

/* False: another allocator. */
static inline bool
find_allocx(void)
{
	static const struct symbol f[] = {
	    {"mallocx", &x.mallocx},
	    {"rallocx", &x.rallocx},
	    {"xallocx", &x.xallocx},
	    {"sallocx", &x.sallocx},
	    {"dallocx", &x.dallocx},
	    {"sdallocx", &x.sdallocx},
	    {"nallocx", &x.nallocx},
	    {"mallctl", &x.ctl},
	};

	return find_symbols(f, COUNT(f));
}

/* The value of an unsigned name. */
static inline unsigned
ctl_unsigned(const char *name)
{
	unsigned v = 0;
	size_t n = sizeof v;
	int err = x.ctl(name, &v, &n, NULL, 0);

	if (err != 0)
		tap_bail("%s: %d", name, err);
	return v;
}

/* One that has numbers in it; statistics as of the last epoch. */
__attribute__((format(printf, 1, 2))) static inline size_t
ctl_size(const char *fmt, ...)
{
	size_t v = 0;
	size_t n = sizeof v;
	char name[128];
	va_list ap;
	int err;

	va_start(ap, fmt);
	(void)vsnprintf(name, sizeof name, fmt, ap);
	va_end(ap);
	err = x.ctl(name, &v, &n, NULL, 0);
	if (err != 0)
		tap_bail("%s: %d", name, err);
	return v;
}

/* An action. */
__attribute__((format(printf, 1, 2))) static inline int
ctl_do(const char *fmt, ...)
{
	char name[128];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(name, sizeof name, fmt, ap);
	va_end(ap);
	return x.ctl(name, NULL, NULL, NULL, 0);
}

static inline int
ctl_write_unsigned(const char *name, unsigned v)
{
	return x.ctl(name, NULL, NULL, &v, sizeof v);
}

static inline void
ctl_epoch(void)
{
	uint64_t v = 1;

	if (x.ctl("epoch", NULL, NULL, &v, sizeof v) != 0)
		tap_bail("epoch");
}

/* Whether n bytes are all c. */
static inline bool
filled(const void *p, int c, size_t n)
{
	const unsigned char *b = p;

	while (n > 0 && *b == (unsigned char)c) {
		b++;
		n--;
	}
	return n == 0;
}

/* The index of the class of a small size. */
static inline unsigned
ctl_bin(size_t size)
{
	unsigned i = 0;

	while (ctl_size("arenas.bin.%u.size", i) < size)
		i++;
	return i;
}

#endif /* EDDY_TESTS_ALLOCX_API_H */
