/* SPDX-License-Identifier: BSD-2-Clause */
#include "numa/usable.h"

#include "lib/arch/syscall.h"
#include "lib/os/os.h"

enum { MASK_WORDS = 8192 / 64 }; /* CPUs that Linux can be built for */

struct scratch {
	char cgroup[16384]; /* /proc/self/cgroup */
	char path[8192];    /* the file at hand: its directory comes first */
	char value[64];
};

struct text {
	const char *at;
	const char *end;
};

static bool
take(struct text *s, char c)
{
	if (s->at == s->end || *s->at != c)
		return false;
	s->at++;
	return true;
}

static bool
take_number(struct text *s, uint64_t *ret_v)
{
	const char *first = s->at;
	uint64_t v = 0;

	for (; s->at < s->end && *s->at >= '0' && *s->at <= '9'; s->at++) {
		if (v > (UINT64_MAX - 9) / 10)
			return false;
		v = v * 10 + (uint64_t)(*s->at - '0');
	}
	*ret_v = v;
	return s->at > first;
}

/* Every value ends with one newline: nothing is missing. */
static bool
take_last(struct text *s)
{
	return take(s, '\n') && s->at == s->end;
}

/* Writes s at path[n] if all of it fits; returns the end, or the size. */
static size_t
add(struct scratch *b, size_t n, const char *s, size_t len)
{
	if (n + len >= sizeof(b->path))
		return sizeof(b->path);
	for (size_t i = 0; i < len; i++)
		b->path[n + i] = s[i];
	return n + len;
}

static size_t
length(const char *s)
{
	size_t n = 0;

	while (s[n] != '\0')
		n++;
	return n;
}

/* The text of a file in the directory path[0 .. n); empty if there is none. */
static struct text
read_value(struct scratch *b, size_t n, const char *name)
{
	struct text s = {b->value, b->value};
	ssize_t got;

	n = add(b, n, name, length(name));
	if (n == sizeof(b->path))
		return s;
	b->path[n] = '\0';
	got = eddy_os_read_file(b->path, b->value, sizeof(b->value));
	if (got > 0 && (size_t)got < sizeof(b->value))
		s.end += got;
	return s;
}

/* CPUs, rounded up. */
static uint64_t
quota(uint64_t us, uint64_t period_us)
{
	if (us == 0 || period_us == 0)
		return EDDY_NO_QUOTA;
	return us / period_us + (us % period_us != 0);
}

static uint64_t
read_v2(struct scratch *b, size_t n)
{
	struct text s = read_value(b, n, "/cpu.max");
	uint64_t us;
	uint64_t period_us;

	if (!take_number(&s, &us) || !take(&s, ' ') ||
	    !take_number(&s, &period_us) || !take_last(&s))
		return EDDY_NO_QUOTA; /* "max 100000" and the like */
	return quota(us, period_us);
}

static uint64_t
read_v1(struct scratch *b, size_t n)
{
	struct text s = read_value(b, n, "/cpu.cfs_quota_us");
	uint64_t us;
	uint64_t period_us;

	if (!take_number(&s, &us) || !take_last(&s))
		return EDDY_NO_QUOTA; /* -1 and the like */
	s = read_value(b, n, "/cpu.cfs_period_us");
	if (!take_number(&s, &period_us) || !take_last(&s))
		return EDDY_NO_QUOTA;
	return quota(us, period_us);
}

/* A path out of the cgroup namespace leads through what cannot be seen. */
static bool
has_dots(struct text path)
{
	for (const char *s = path.at; s + 2 < path.end; s++)
		if (s[0] == '/' && s[1] == '.' && s[2] == '.' &&
		    (s + 3 == path.end || s[3] == '/'))
			return true;
	return false;
}

/*
 * The smallest quota of a cgroup and of those above it.  base: the length of
 * what path[] holds, where the hierarchy is mounted.  A container may see a
 * path of its host and its own cgroup at the mount: what is missing on the way
 * up is passed over.
 */
static uint64_t
smallest(struct scratch *b, size_t base, struct text path,
    uint64_t (*read)(struct scratch *b, size_t n))
{
	uint64_t best = EDDY_NO_QUOTA;
	size_t n = add(b, base, path.at, (size_t)(path.end - path.at));

	if (n == sizeof(b->path) || has_dots(path))
		return EDDY_NO_QUOTA;
	for (;;) {
		uint64_t q;

		while (n > base && b->path[n - 1] == '/')
			n--;
		/* The name of the file overwrites what is beyond n. */
		q = read(b, n);
		best = q < best ? q : best;
		if (n == base)
			return best;
		while (n > base && b->path[n - 1] != '/')
			n--;
	}
}

/* Whether a list of controllers has "cpu". */
static bool
has_cpu(struct text s)
{
	while (s.at < s.end) {
		bool cpu = take(&s, 'c') && take(&s, 'p') && take(&s, 'u');

		if (cpu && (s.at == s.end || *s.at == ','))
			return true;
		while (s.at < s.end && *s.at++ != ',')
			;
	}
	return false;
}

/* One line of /proc/self/cgroup: "5:cpu,cpuacct:/path" or "0::/path". */
static uint64_t
read_line(struct scratch *b, const char *root, struct text line, bool hybrid)
{
	static const char mount[] = "/sys/fs/cgroup";
	struct text list;
	uint64_t id;
	uint64_t q = EDDY_NO_QUOTA;
	uint64_t q2;
	size_t base = add(b, 0, root, length(root));
	size_t at;

	base = base < sizeof(b->path) ? add(b, base, mount, sizeof(mount) - 1)
				      : base;
	if (!take_number(&line, &id) || !take(&line, ':'))
		return q;
	list.at = line.at;
	while (line.at < line.end && *line.at != ':')
		line.at++;
	list.end = line.at;
	if (!take(&line, ':') || line.at == line.end || *line.at != '/')
		return q;
	if (list.at == list.end) {
		at = hybrid ? add(b, base, "/unified", 8) : base;
		return smallest(b, at, line, read_v2);
	}
	if (!has_cpu(list))
		return q;
	/* Mounted under the names of all its controllers, or of this one. */
	at = add(b, base, "/cpu", 4);
	q = smallest(b, at, line, read_v1);
	if (list.end - list.at > 3 && list.end - list.at < 48) {
		at = add(b, base, "/", 1);
		at = add(b, at, list.at, (size_t)(list.end - list.at));
		q2 = smallest(b, at, line, read_v1);
		q = q2 < q ? q2 : q;
	}
	return q;
}

static uint64_t
cgroup_quota(struct scratch *b, const char *root)
{
	static const char file[] = "/proc/self/cgroup";
	uint64_t best = EDDY_NO_QUOTA;
	struct text s = {b->cgroup, b->cgroup};
	size_t n = add(b, 0, root, length(root));
	bool hybrid = false;
	ssize_t got;

	n = add(b, n, file, sizeof(file));
	if (n == sizeof(b->path))
		return best;
	got = eddy_os_read_file(b->path, b->cgroup, sizeof(b->cgroup));
	if (got > 0)
		s.end += got;
	while (s.at < s.end) {
		struct text line = {s.at, s.at};
		uint64_t q;

		while (line.end < s.end && *line.end != '\n')
			line.end++;
		if (line.end == s.end)
			break; /* cut */
		q = read_line(b, root, line, hybrid);
		best = q < best ? q : best;
		hybrid = hybrid || *s.at != '0';
		s.at = line.end + 1;
	}
	return best;
}

uint64_t
eddy_usable_quota(const char *root)
{
	struct scratch *b = eddy_os_reserve(sizeof(*b));
	uint64_t q = EDDY_NO_QUOTA;

	if (b == NULL)
		return q;
	if (eddy_os_commit(b, sizeof(*b)) == 0)
		q = cgroup_quota(b, root);
	eddy_os_unmap(b, sizeof(*b));
	return q;
}

static unsigned
affinity(void)
{
	uint64_t mask[MASK_WORDS] = {0};
	long pid = eddy_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);
	long r = eddy_syscall(
	    SYS_sched_getaffinity, pid, sizeof(mask), mask, 0, 0, 0);
	unsigned n = 0;

	/* What the kernel does not write stays zero. */
	for (unsigned i = 0; r > 0 && i < MASK_WORDS; i++)
		n += (unsigned)__builtin_popcountll(mask[i]);
	return n > 0 ? n : eddy_os_cpu_limit();
}

unsigned
eddy_usable_cpus(const char *root)
{
	uint64_t q = eddy_usable_quota(root);
	unsigned n = affinity();

	n = q < n ? (unsigned)q : n;
	return n > 0 ? n : 1;
}
