/* SPDX-License-Identifier: BSD-2-Clause */
#include "numa/topology.h"

#include <errno.h>

#include "lib/base/chars.h"
#include "lib/os/os.h"

/* Larger numbers are garbage, smaller ones may be beyond the tables. */
enum { NUMBER_MAX = 9999999 };

/* Caches of one CPU that are looked at; machines have 3 to 5. */
enum { CACHES_MAX = 16 };

/* The name of a file.  One that does not fit is no file's. */
struct path {
	size_t n;
	char s[256];
};

static void
add(struct path *p, const char *s)
{
	for (; *s != '\0'; s++) {
		if (p->n < sizeof(p->s))
			p->s[p->n] = *s;
		p->n++;
	}
}

static void
add_number(struct path *p, unsigned v)
{
	char buf[EDDY_DIGITS_MAX + 1];
	char *end = buf + EDDY_DIGITS_MAX;

	*end = '\0';
	add(p, eddy_digits(end, v));
}

/* What is left of a file. */
struct text {
	const char *at;
	const char *end;
};

/* Reads a file into t->text; an empty text if that cannot be done whole. */
static struct text
read_text(struct eddy_topology *t, struct path *p)
{
	struct text s = {t->text, t->text};
	ssize_t n;

	if (p->n >= sizeof(p->s))
		return s;
	p->s[p->n] = '\0';
	n = eddy_os_read_file(p->s, t->text, sizeof(t->text));
	if (n > 0 && (size_t)n < sizeof(t->text))
		s.end += n;
	return s;
}

static bool
take(struct text *s, char c)
{
	if (s->at == s->end || *s->at != c)
		return false;
	s->at++;
	return true;
}

static bool
take_number(struct text *s, unsigned *ret_v)
{
	const char *first = s->at;
	unsigned v = 0;

	while (s->at < s->end && *s->at >= '0' && *s->at <= '9') {
		v = v * 10 + (unsigned)(*s->at++ - '0');
		if (v > NUMBER_MAX)
			return false;
	}
	*ret_v = v;
	return s->at > first;
}

/* Every file that is read here ends with one newline: nothing is missing. */
static bool
take_last(struct text *s)
{
	return take(s, '\n') && s->at == s->end;
}

/*
 * read_list - "0-3,8" as bits; those of limit and above are left out.
 *
 * Returns: whether it was a list, ascending, whole and of one number at
 *          least.  If not, the set is empty.
 */
static bool
read_list(struct text s, uint64_t *set, unsigned limit)
{
	unsigned next = 0;
	unsigned lo;
	unsigned hi;
	bool more;

	for (unsigned i = 0; i < limit / 64; i++)
		set[i] = 0;
	do {
		if (!take_number(&s, &lo))
			break;
		hi = lo;
		if (take(&s, '-') && !take_number(&s, &hi))
			break;
		if (lo < next || hi < lo)
			break;
		next = hi + 1;
		for (; lo <= hi && lo < limit; lo++)
			set[lo / 64] |= (uint64_t)1 << lo % 64;
		more = take(&s, ',');
		if (!more && take_last(&s))
			return true;
	} while (more);
	for (unsigned i = 0; i < limit / 64; i++)
		set[i] = 0;
	return false;
}

static bool
read_list_of(struct eddy_topology *t, const char *root, const char *file,
    uint64_t *set, unsigned limit)
{
	struct path p = {0};

	add(&p, root);
	add(&p, file);
	return read_list(read_text(t, &p), set, limit);
}

static struct path
node_path(const char *root, unsigned node)
{
	struct path p = {0};

	add(&p, root);
	add(&p, "/devices/system/node/node");
	add_number(&p, node);
	return p;
}

/* One number an online node, in their order; else distances as anywhere. */
static void
read_distances(struct eddy_topology *t, const char *root, unsigned from)
{
	struct path p = node_path(root, from);
	uint8_t *row = t->distance[from];
	unsigned to = eddy_node_next(t->online, 0);
	struct text s;
	unsigned v;

	add(&p, "/distance");
	s = read_text(t, &p);
	for (; to < EDDY_MAX_NODES; to = eddy_node_next(t->online, to + 1)) {
		/* The kernel leaves out the blank before node 0 alone. */
		(void)take(&s, ' ');
		if (!take_number(&s, &v) || v == 0 || v > UINT8_MAX)
			break;
		row[to] = (uint8_t)v;
	}
	if (to == EDDY_MAX_NODES && take_last(&s))
		return;
	for (to = eddy_node_next(t->online, 0); to < EDDY_MAX_NODES;
	     to = eddy_node_next(t->online, to + 1))
		row[to] =
		    to == from ? EDDY_DISTANCE_LOCAL : EDDY_DISTANCE_REMOTE;
}

/* Gives node the CPUs of t->cpus that no node has yet. */
static void
take_cpus(struct eddy_topology *t, unsigned node)
{
	for (unsigned cpu = 0; cpu < EDDY_MAX_CPUS; cpu++) {
		if ((t->cpus[cpu / 64] >> cpu % 64 & 1) == 0 ||
		    t->node_of_cpu[cpu] != EDDY_NODE_NONE)
			continue;
		t->node_of_cpu[cpu] = (uint16_t)node;
		t->has_cpus[node / 64] |= (uint64_t)1 << node % 64;
	}
}

static void
read_memory(struct eddy_topology *t, const char *root)
{
	uint64_t any = 0;

	/* Older kernels have the second list alone. */
	if (!read_list_of(t, root, "/devices/system/node/has_memory",
		t->has_memory, EDDY_MAX_NODES))
		(void)read_list_of(t, root,
		    "/devices/system/node/has_normal_memory", t->has_memory,
		    EDDY_MAX_NODES);
	for (unsigned i = 0; i < EDDY_MAX_NODES / 64; i++)
		any |= t->has_memory[i] &= t->online[i];
	for (unsigned i = 0; any == 0 && i < EDDY_MAX_NODES / 64; i++)
		t->has_memory[i] = t->online[i];
}

static struct path
cache_path(const char *root, unsigned cpu, unsigned cache)
{
	struct path p = {0};

	add(&p, root);
	add(&p, "/devices/system/cpu/cpu");
	add_number(&p, cpu);
	add(&p, "/cache/index");
	add_number(&p, cache);
	return p;
}

/*
 * The CPUs that share the highest cache of this one, in t->cpus.  Returns
 * whether they could be read and this CPU is among them.
 */
static bool
read_sharers(struct eddy_topology *t, const char *root, unsigned cpu)
{
	unsigned best = 0;
	unsigned best_level = 0;
	struct path p;

	for (unsigned i = 0; i < CACHES_MAX; i++) {
		struct text s;
		unsigned level;

		p = cache_path(root, cpu, i);
		add(&p, "/level");
		s = read_text(t, &p);
		if (!take_number(&s, &level) || !take_last(&s))
			break;
		if (level > best_level) {
			best = i;
			best_level = level;
		}
	}
	if (best_level == 0)
		return false;
	p = cache_path(root, cpu, best);
	add(&p, "/shared_cpu_list");
	return read_list(read_text(t, &p), t->cpus, EDDY_MAX_CPUS) &&
	       (t->cpus[cpu / 64] >> cpu % 64 & 1) != 0;
}

static uint16_t
new_llc(struct eddy_topology *t, unsigned node)
{
	t->node_of_llc[t->n_llcs] = (uint16_t)node;
	return (uint16_t)t->n_llcs++;
}

static void
read_caches(struct eddy_topology *t, const char *root)
{
	for (unsigned cpu = 0; cpu < EDDY_MAX_CPUS; cpu++) {
		uint16_t node = t->node_of_cpu[cpu];
		uint16_t llc;

		if (node == EDDY_NODE_NONE ||
		    t->llc_of_cpu[cpu] != EDDY_LLC_NONE)
			continue;
		if (!read_sharers(t, root, cpu)) {
			if (t->bare_llc_of_node[node] == EDDY_LLC_NONE)
				t->bare_llc_of_node[node] = new_llc(t, node);
			t->llc_of_cpu[cpu] = t->bare_llc_of_node[node];
			continue;
		}
		llc = new_llc(t, node);
		for (unsigned c = cpu; c < EDDY_MAX_CPUS; c++)
			if ((t->cpus[c / 64] >> c % 64 & 1) != 0 &&
			    t->node_of_cpu[c] == node &&
			    t->llc_of_cpu[c] == EDDY_LLC_NONE)
				t->llc_of_cpu[c] = llc;
	}
}

static void
clear(struct eddy_topology *t)
{
	t->n_nodes = t->n_llcs = 0;
	for (unsigned i = 0; i < EDDY_MAX_NODES / 64; i++)
		t->online[i] = t->has_memory[i] = t->has_cpus[i] = 0;
	for (unsigned i = 0; i < EDDY_MAX_NODES; i++)
		t->bare_llc_of_node[i] = EDDY_LLC_NONE;
	for (unsigned i = 0; i < EDDY_MAX_CPUS; i++) {
		t->node_of_cpu[i] = EDDY_NODE_NONE;
		t->llc_of_cpu[i] = EDDY_LLC_NONE;
	}
}

/* Where nothing is said of nodes there is one, and the CPUs are its. */
static void
read_one_node(struct eddy_topology *t, const char *root)
{
	t->n_nodes = 1;
	t->online[0] = t->has_memory[0] = 1;
	t->distance[0][0] = EDDY_DISTANCE_LOCAL;
	if (read_list_of(
		t, root, "/devices/system/cpu/online", t->cpus, EDDY_MAX_CPUS))
		take_cpus(t, 0);
}

static void
read_nodes(struct eddy_topology *t, const char *root)
{
	t->n_nodes = eddy_node_count(t->online);
	read_memory(t, root);
	for (unsigned node = eddy_node_next(t->online, 0);
	     node < EDDY_MAX_NODES;
	     node = eddy_node_next(t->online, node + 1)) {
		struct path p = node_path(root, node);

		add(&p, "/cpulist");
		if (read_list(read_text(t, &p), t->cpus, EDDY_MAX_CPUS))
			take_cpus(t, node);
		read_distances(t, root, node);
	}
}

int
eddy_topology_read(struct eddy_topology *t, const char *root, bool llc)
{
	bool known;

	clear(t);
	known = read_list_of(t, root, "/devices/system/node/online", t->online,
		    EDDY_MAX_NODES) &&
		eddy_node_next(t->online, 0) < EDDY_MAX_NODES;
	if (known)
		read_nodes(t, root);
	else
		read_one_node(t, root);
	if (llc)
		read_caches(t, root);
	return known ? 0 : -ENOENT;
}
