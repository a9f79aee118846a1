/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * prof_api.h - for tests of heap profiles: a process that profiles, what its
 * profiles say, and what readers make of that.
 */
#ifndef EDDY_TESTS_PROF_API_H
#define EDDY_TESTS_PROF_API_H

#include "allocx_api.h"

#include <inttypes.h>
#include <math.h>
#include <sys/stat.h>

/* What a profile says as readers of it scale it, stack by stack. */
struct profile {
	bool good; /* of the form that it should have */
	unsigned long long period;
	unsigned long long head[4]; /* the first line of totals */
	unsigned stacks;
	unsigned threads; /* named in the head */
	double objects;
	double bytes;
	double ever_objects;
	double ever_bytes;
	bool named; /* a thread has the name that was looked for */
	bool maps;
};

static inline void
prof_scale(double *objects, double *bytes, double n, double s, double period)
{
	double k = n == 0 ? 0 : 1 / -expm1(-(s / n) / period);

	*objects += n * k;
	*bytes += s * k;
}

/* A file as memory: to read it allocates nothing. */
struct text {
	const char *at;
	const char *end;
	void *map;
	size_t size;
};

static inline bool
text_open(struct text *t, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0 || st.st_size == 0)
		return false;
	t->size = (size_t)st.st_size;
	t->map = mmap(NULL, t->size, PROT_READ, MAP_PRIVATE, fd, 0);
	(void)close(fd);
	t->at = t->map;
	t->end = t->at + t->size;
	return t->map != MAP_FAILED;
}

/* The next line, with its end; cut if there is no room. */
static inline bool
text_line(struct text *t, char *line, size_t n)
{
	const char *end;

	if (t->at == t->end)
		return false;
	end = memchr(t->at, '\n', (size_t)(t->end - t->at));
	end = end != NULL ? end + 1 : t->end;
	if ((size_t)(end - t->at) < n)
		n = (size_t)(end - t->at) + 1;
	memcpy(line, t->at, n - 1);
	line[n - 1] = '\0';
	t->at = end;
	return true;
}

/* Reads a profile of the threaded form. */
static inline struct profile
prof_read(const char *path, const char *name)
{
	struct profile p = {.good = true};
	static char line[1 << 16];
	struct text f;
	bool in_stack = false;
	unsigned n = 0;

	if (!text_open(&f, path))
		return (struct profile){0};
	while (text_line(&f, line, sizeof line)) {
		unsigned long long v[4];
		char rest[64] = "";

		if (n++ == 0) {
			p.good &= sscanf(line, "heap_v2/%llu", &p.period) == 1;
		} else if (line[0] == '@') {
			in_stack = true;
			p.stacks++;
			p.good &= strncmp(line, "@ 0x", 4) == 0;
		} else if (sscanf(line, "  t*: %llu: %llu [%llu: %llu]", &v[0],
			       &v[1], &v[2], &v[3]) == 4) {
			if (in_stack) {
				double period = (double)p.period;

				prof_scale(&p.objects, &p.bytes, (double)v[0],
				    (double)v[1], period);
				prof_scale(&p.ever_objects, &p.ever_bytes,
				    (double)v[2], (double)v[3], period);
			} else {
				memcpy(p.head, v, sizeof v);
				p.good &= n == 2;
			}
		} else if (sscanf(line,
			       "  t%*u: %llu: %llu [%llu: %llu]%63[^\n]", &v[0],
			       &v[1], &v[2], &v[3], rest) >= 4) {
			p.threads += !in_stack;
			p.named |= name != NULL && rest[0] == ' ' &&
				   strcmp(rest + 1, name) == 0;
		} else if (strcmp(line, "MAPPED_LIBRARIES:\n") == 0) {
			p.maps = true;
			break;
		} else {
			p.good &= strcmp(line, "\n") == 0;
		}
	}
	if (p.maps)
		p.maps = text_line(&f, line, sizeof line) &&
			 strchr(line, '-') != NULL;
	p.good &= p.maps;
	(void)munmap(f.map, f.size);
	return p;
}

static inline int
prof_dump(const char *path)
{
	return x.ctl("prof.dump", NULL, NULL, (void *)&path, sizeof path);
}

/* A profile of this moment. */
static inline struct profile
prof_now(const char *name)
{
	char path[64];
	struct profile p;

	(void)snprintf(path, sizeof path, "/tmp/eddy_prof.%d", (int)getpid());
	if (prof_dump(path) != 0)
		return (struct profile){0};
	p = prof_read(path, name);
	(void)unlink(path);
	return p;
}

static inline void
prof_reset(size_t lg)
{
	if (x.ctl("prof.reset", NULL, NULL, &lg, sizeof lg) != 0)
		tap_bail("prof.reset");
}

static inline int
prof_set(const char *name, bool v)
{
	return x.ctl(name, NULL, NULL, &v, sizeof v);
}

static inline int
prof_get(const char *name)
{
	bool v = false;
	size_t n = sizeof v;
	int err = x.ctl(name, &v, &n, NULL, 0);

	return err != 0 ? -err : v;
}

/* Begins a test with these options; argv[1] chooses a part of it. */
static inline void
prof_begin(char **argv, const char *conf)
{
	if (getenv("EDDY_PROF_OWN") == NULL)
		(void)setenv("MALLOC_CONF", conf, 1);
	tap_begin(argv);
	if (!find_allocx())
		tap_bail("no mallctl");
}

#endif /* EDDY_TESTS_PROF_API_H */
