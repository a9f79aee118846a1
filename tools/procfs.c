/* SPDX-License-Identifier: BSD-2-Clause */
/* procfs.c - what the kernel says of a process. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/eddyctl.h"

bool
read_text(const char *path, char *buf, size_t n)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, buf, n - 1);

	if (fd >= 0)
		(void)close(fd);
	if (got < 0)
		return false;
	if (got > 0 && buf[got - 1] == '\n')
		got--;
	buf[got] = '\0';
	return true;
}

/* ------------------------------------------------------------------ */
/* smaps */

/* "Rss:   12 kB": adds its bytes if the line begins so. */
static bool
take(const char *line, const char *key, uint64_t *to)
{
	size_t n = strlen(key);

	if (strncmp(line, key, n) != 0)
		return false;
	*to += strtoull(line + n, NULL, 10) * 1024;
	return true;
}

/* Where the Rss of a mapping belongs, by the end of its first line. */
static uint64_t *
place_by_name(const char *line, struct smaps *s)
{
	static const struct {
		const char *name;
		size_t offset;
	} places[] = {
	    {"[anon:eddy: objects]", offsetof(struct smaps, objects)},
	    {"[anon:eddy: caches]", offsetof(struct smaps, caches)},
	    {"[anon:eddy: metadata]", offsetof(struct smaps, metadata)},
	    {"[heap]", offsetof(struct smaps, heap)},
	    {"[stack]", offsetof(struct smaps, stacks)},
	};
	const char *path = strchr(line, '/');

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (strstr(line, places[i].name) != NULL) {
			s->named |= i < 3;
			return (uint64_t *)((char *)s + places[i].offset);
		}
	return path != NULL ? &s->files : &s->other;
}

/* The same by its first address, where the kernel keeps no names. */
static uint64_t *
place_of(const char *line, const struct target *t, struct smaps *s)
{
	uint64_t at = strtoull(line, NULL, 16);

	if (strstr(line, "[anon:eddy: ") == NULL && t != NULL) {
		if (at >= figure(t, "objects_at") &&
		    at < figure(t, "objects_end")) {
			s->placed = true;
			return &s->objects;
		}
		if (at >= figure(t, "fixed_at") && at < figure(t, "fixed_end"))
			return &s->metadata;
	}
	return place_by_name(line, s);
}

/* The first line of a mapping: "55d0-55e0 r--p ...". */
static bool
is_head(const char *line)
{
	size_t n = strspn(line, "0123456789abcdef");

	return n > 0 && line[n] == '-';
}

static bool
read_lines(pid_t pid, const char *file, const struct target *t, struct smaps *s)
{
	char path[64];
	char line[4400];
	uint64_t *place = &s->other;
	uint64_t rss;
	FILE *f;

	*s = (struct smaps){0};
	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	f = fopen(path, "re");
	if (f == NULL)
		return false;
	while (fgets(line, sizeof(line), f) != NULL) {
		rss = 0;
		if (is_head(line)) {
			place = place_of(line, t, s);
			s->mappings++;
		} else if (take(line, "Rss:", &rss)) {
			s->rss += rss;
			*place += rss;
		} else {
			(void)(take(line, "Pss:", &s->pss) ||
			       take(line, "Anonymous:", &s->anonymous) ||
			       take(line, "AnonHugePages:", &s->huge) ||
			       take(line, "Swap:", &s->swap) ||
			       take(line, "Locked:", &s->locked));
		}
	}
	(void)fclose(f);
	return true;
}

bool
read_smaps(const struct target *t, struct smaps *ret)
{
	return read_lines(t->pid, "smaps", t, ret);
}

bool
read_rollup(pid_t pid, struct smaps *ret)
{
	char path[64];
	char buf[256];
	char *rest;

	if (read_lines(pid, "smaps_rollup", NULL, ret))
		return true;
	(void)snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	if (!read_text(path, buf, sizeof(buf)))
		return false;
	(void)strtoull(buf, &rest, 10);
	ret->rss = strtoull(rest, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
	return true;
}

/* ------------------------------------------------------------------ */
/* The cgroup */

static uint64_t
number_of(const char *folder, const char *file, uint64_t missing)
{
	char path[640];
	char buf[64];

	(void)snprintf(path, sizeof(path), "%s/%s", folder, file);
	if (!read_text(path, buf, sizeof(buf)) || buf[0] < '0' || buf[0] > '9')
		return missing;
	return strtoull(buf, NULL, 10);
}

static void
read_stat(const char *folder, struct cgroup *c)
{
	char path[640];
	char line[128];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/memory.stat", folder);
	f = fopen(path, "re");
	if (f == NULL)
		return;
	while (fgets(line, sizeof(line), f) != NULL) {
		if (strncmp(line, "anon ", 5) == 0)
			c->anon = strtoull(line + 5, NULL, 10);
		else if (strncmp(line, "file ", 5) == 0)
			c->file = strtoull(line + 5, NULL, 10);
		else if (strncmp(line, "total_rss ", 10) == 0)
			c->anon = strtoull(line + 10, NULL, 10);
		else if (strncmp(line, "total_cache ", 12) == 0)
			c->file = strtoull(line + 12, NULL, 10);
	}
	(void)fclose(f);
}

/* The folder of the process's group in either hierarchy; false: none. */
static bool
find_folder(pid_t pid, char *folder, size_t n, bool *v1)
{
	char path[64];
	char line[512];
	bool found = false;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	f = fopen(path, "re");
	if (f == NULL)
		return false;
	while (fgets(line, sizeof(line), f) != NULL) {
		char *group = strrchr(line, ':');

		if (group == NULL)
			continue;
		line[strcspn(line, "\n")] = '\0';
		if (strstr(line, ":memory:") != NULL) {
			(void)snprintf(
			    folder, n, "/sys/fs/cgroup/memory%s", group + 1);
			*v1 = true;
			found = true;
			break;
		}
		if (strncmp(line, "0::", 3) == 0) {
			(void)snprintf(
			    folder, n, "/sys/fs/cgroup%s", group + 1);
			*v1 = false;
			found = true;
		}
	}
	(void)fclose(f);
	return found;
}

/* The smallest limit of a group and those above it. */
static uint64_t
limit_of(const char *folder, const char *file)
{
	char at[512];
	uint64_t least = UINT64_MAX;

	(void)snprintf(at, sizeof(at), "%s", folder);
	while (strlen(at) >= strlen("/sys/fs/cgroup")) {
		uint64_t v = number_of(at, file, UINT64_MAX);
		char *up = strrchr(at, '/');

		/* v1 says so where there is none. */
		if (v < least && v < UINT64_MAX / 4)
			least = v;
		*up = '\0';
	}
	return least;
}

void
read_cgroup(pid_t pid, struct cgroup *c)
{
	bool v1 = false;

	*c = (struct cgroup){.max = UINT64_MAX};
	if (!find_folder(pid, c->path, sizeof(c->path), &v1))
		return;
	c->current = number_of(c->path,
	    v1 ? "memory.usage_in_bytes" : "memory.current", UINT64_MAX);
	c->known = c->current != UINT64_MAX;
	c->max = limit_of(c->path, v1 ? "memory.limit_in_bytes" : "memory.max");
	c->swap = number_of(c->path, "memory.swap.current", 0);
	read_stat(c->path, c);
}
