/* SPDX-License-Identifier: BSD-2-Clause */
#include "numa/usable.h"

#include "lib/arch/syscall.h"
#include "lib/base/chars.h"
#include "lib/os/os.h"

enum { MASK_WORDS = 8192 / 64 }; /* CPUs that Linux can be built for */

struct scratch {
	char cgroup[16384]; /* /proc/self/cgroup */
	char path[8192];    /* the file at hand: its directory comes first */
	char value[64];
	/* For eddy_usable_path: names of the file, and where the first is. */
	const char *name_v1;
	const char *name_v2;
	char found[4096];
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

/* The text of a file in the directory path[0 .. n); empty if there is none. */
static struct text
read_value(struct scratch *b, size_t n, const char *name)
{
	struct text s = {b->value, b->value};
	ssize_t got;

	n = add(b, n, name, eddy_length(name));
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

/* Bytes; of what is no number, or more than there can be, nothing. */
static uint64_t
read_bytes(struct scratch *b, size_t n, const char *name)
{
	struct text s = read_value(b, n, name);
	uint64_t bytes;

	if (!take_number(&s, &bytes) || !take_last(&s) ||
	    bytes >= (uint64_t)1 << 62)
		return EDDY_NO_QUOTA; /* "max" and the like */
	return bytes;
}

static uint64_t
read_memory_v2(struct scratch *b, size_t n)
{
	return read_bytes(b, n, "/memory.max");
}

static uint64_t
read_memory_v1(struct scratch *b, size_t n)
{
	return read_bytes(b, n, "/memory.limit_in_bytes");
}

/* Keeps the path of the first file of that name. */
static uint64_t
find(struct scratch *b, size_t n, const char *name)
{
	struct text s;

	if (name == NULL || b->found[0] != '\0')
		return EDDY_NO_QUOTA;
	s = read_value(b, n, name);
	n += eddy_length(name);
	if (s.at != s.end && n < sizeof(b->found))
		for (size_t i = 0; i <= n; i++)
			b->found[i] = b->path[i];
	return EDDY_NO_QUOTA;
}

static uint64_t
find_v1(struct scratch *b, size_t n)
{
	return find(b, n, b->name_v1);
}

static uint64_t
find_v2(struct scratch *b, size_t n)
{
	return find(b, n, b->name_v2);
}

/* What a controller limits. */
struct controller {
	const char *name; /* with a slash before it */
	uint64_t (*read_v1)(struct scratch *b, size_t n);
	uint64_t (*read_v2)(struct scratch *b, size_t n);
};

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

/* Whether a list of controllers has the one of that name. */
static bool
has(struct text s, const char *name)
{
	while (s.at < s.end) {
		const char *c = name;

		while (*c != '\0' && take(&s, *c))
			c++;
		if (*c == '\0' && (s.at == s.end || *s.at == ','))
			return true;
		while (s.at < s.end && *s.at++ != ',')
			;
	}
	return false;
}

/* One line of /proc/self/cgroup: "5:cpu,cpuacct:/path" or "0::/path". */
static uint64_t
read_line(struct scratch *b, const char *root, const struct controller *what,
    struct text line, bool hybrid)
{
	const size_t name = eddy_length(what->name);
	static const char mount[] = "/sys/fs/cgroup";
	struct text list;
	uint64_t id;
	uint64_t q = EDDY_NO_QUOTA;
	uint64_t q2;
	size_t base = add(b, 0, root, eddy_length(root));
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
		return smallest(b, at, line, what->read_v2);
	}
	if (!has(list, what->name + 1))
		return q;
	/* Mounted under the names of all its controllers, or of this one. */
	at = add(b, base, what->name, name);
	q = smallest(b, at, line, what->read_v1);
	if ((size_t)(list.end - list.at) >= name && list.end - list.at < 48) {
		at = add(b, base, "/", 1);
		at = add(b, at, list.at, (size_t)(list.end - list.at));
		q2 = smallest(b, at, line, what->read_v1);
		q = q2 < q ? q2 : q;
	}
	return q;
}

static uint64_t
cgroup_limit(struct scratch *b, const char *root, const struct controller *what)
{
	static const char file[] = "/proc/self/cgroup";
	uint64_t best = EDDY_NO_QUOTA;
	struct text s = {b->cgroup, b->cgroup};
	size_t n = add(b, 0, root, eddy_length(root));
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
		q = read_line(b, root, what, line, hybrid);
		best = q < best ? q : best;
		hybrid = hybrid || *s.at != '0';
		s.at = line.end + 1;
	}
	return best;
}

static uint64_t
limit_of(const char *root, const struct controller *what)
{
	struct scratch *b = eddy_os_reserve(sizeof(*b));
	uint64_t q = EDDY_NO_QUOTA;

	if (b == NULL)
		return q;
	if (eddy_os_commit(b, sizeof(*b)) == 0)
		q = cgroup_limit(b, root, what);
	eddy_os_unmap(b, sizeof(*b));
	return q;
}

uint64_t
eddy_usable_quota(const char *root)
{
	const struct controller cpu = {"/cpu", read_v1, read_v2};

	return limit_of(root, &cpu);
}

uint64_t
eddy_usable_memory(const char *root)
{
	const struct controller memory = {
	    "/memory", read_memory_v1, read_memory_v2};

	return limit_of(root, &memory);
}

bool
eddy_usable_path(
    const char *root, const char *v2, const char *v1, char *ret, size_t n)
{
	const struct controller memory = {"/memory", find_v1, find_v2};
	struct scratch *b = eddy_os_reserve(sizeof(*b));
	bool there = false;

	if (b == NULL)
		return false;
	if (eddy_os_commit(b, sizeof(*b)) == 0) {
		b->name_v1 = v1;
		b->name_v2 = v2;
		(void)cgroup_limit(b, root, &memory);
		there = b->found[0] != '\0' && eddy_length(b->found) < n;
		for (size_t i = 0; there && i <= eddy_length(b->found); i++)
			ret[i] = b->found[i];
	}
	eddy_os_unmap(b, sizeof(*b));
	return there;
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
