/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * numa_topology.c - what is read from trees of files, whole and broken, and
 * from the option topology.
 */
#include "tests/numa_tree.h"

#include "numa/topology.h"

#define NODE "devices/system/node/"
#define CPU  "devices/system/cpu/"

struct file {
	const char *path;
	const char *text;
};

struct tree {
	const char *name;
	int ret; /* what the reader returns */
	const char *want;
	struct file files[28];
};

/*
 * want: of each online node its id, "m" if it has memory, its CPUs and its row
 * of distances; behind the bar, of each cache domain its node and its CPUs.
 */
static const struct tree trees[] = {
    {"one node", 0, "0m 0-3 10; |0:0-3",
	{{NODE "online", "0\n"}, {NODE "has_memory", "0\n"},
	    {NODE "node0/cpulist", "0-3\n"}, {NODE "node0/distance", "10\n"}}},
    {"sparse ids, CPUs numbered across nodes", 0,
	"0m 0,3,6 10,16,28; 2m 1,4,7 16,10,22; 5m 2,5,8 28,22,10; "
	"|0:0,3,6 2:1,4,7 5:2,5,8",
	{{NODE "online", "0,2,5\n"}, {NODE "has_memory", "0,2,5\n"},
	    {NODE "node0/cpulist", "0,3,6\n"},
	    {NODE "node2/cpulist", "1,4,7\n"},
	    {NODE "node5/cpulist", "2,5,8\n"},
	    {NODE "node0/distance", "10 16 28\n"},
	    {NODE "node2/distance", "16 10 22\n"},
	    {NODE "node5/distance", "28 22 10\n"}}},
    {"no node 0: its row begins with a blank", 0,
	"1m 0 10,17; 4m 1 17,10; |1:0 4:1",
	{{NODE "online", "1,4\n"}, {NODE "has_memory", "1,4\n"},
	    {NODE "node1/cpulist", "0\n"}, {NODE "node4/cpulist", "1\n"},
	    {NODE "node1/distance", " 10 17\n"},
	    {NODE "node4/distance", " 17 10\n"}}},
    {"a node without memory, one without CPUs", 0,
	"0m 0-1 10,21,40; 1 2-3 21,10,14; 2m - 40,14,10; |0:0-1 1:2-3",
	{{NODE "online", "0-2\n"}, {NODE "has_memory", "0,2\n"},
	    {NODE "has_normal_memory", "0\n"}, {NODE "node0/cpulist", "0-1\n"},
	    {NODE "node1/cpulist", "2-3\n"}, {NODE "node2/cpulist", "\n"},
	    {NODE "node0/distance", "10 21 40\n"},
	    {NODE "node1/distance", "21 10 14\n"},
	    {NODE "node2/distance", "40 14 10\n"}}},
    {"an older kernel: has_normal_memory alone", 0,
	"0m 0 10,20; 1 1 20,10; |0:0 1:1",
	{{NODE "online", "0-1\n"}, {NODE "has_normal_memory", "0\n"},
	    {NODE "node0/cpulist", "0\n"}, {NODE "node1/cpulist", "1\n"}}},
    {"no list of memory, no distances: all have some, as far as usual", 0,
	"0m 0 10,20; 3m 1 20,10; |0:0 3:1",
	{{NODE "online", "0,3\n"}, {NODE "node0/cpulist", "0\n"},
	    {NODE "node3/cpulist", "1\n"}}},
    {"memory is said to be nowhere, or on a node that is offline", 0,
	"0m 0 10,20; 1m 1 20,10; |0:0 1:1",
	{{NODE "online", "0-1\n"}, {NODE "has_memory", "7\n"},
	    {NODE "node0/cpulist", "0\n"}, {NODE "node1/cpulist", "1\n"}}},
    {"CPUs that are offline are nobody's", 0,
	"0m 0,2 10,20; 1m 7 20,10; |0:0,2 1:7",
	{{NODE "online", "0-1\n"}, {NODE "has_memory", "0-1\n"},
	    {NODE "node0/cpulist", "0,2\n"}, {NODE "node1/cpulist", "7\n"},
	    {CPU "possible", "0-7\n"}}},
    {"a CPU that two nodes claim is the first one's", 0,
	"0m 0-2 10,20; 1m 3 20,10; |0:0-2 1:3",
	{{NODE "online", "0-1\n"}, {NODE "has_memory", "0-1\n"},
	    {NODE "node0/cpulist", "0-2\n"}, {NODE "node1/cpulist", "2-3\n"}}},
    {"eight nodes at unequal distances", 0,
	"0m 0 10,16,16,22,28,28,28,34; 1m 1 16,10,22,16,28,28,34,28; "
	"2m 2 16,22,10,16,28,34,28,28; 3m 3 22,16,16,10,34,28,28,28; "
	"4m 4 28,28,28,34,10,16,16,22; 5m 5 28,28,34,28,16,10,22,16; "
	"6m 6 28,34,28,28,16,22,10,16; 7m 7 34,28,28,28,22,16,16,10; "
	"|0:0 1:1 2:2 3:3 4:4 5:5 6:6 7:7",
	{{NODE "online", "0-7\n"}, {NODE "has_memory", "0-7\n"},
	    {NODE "node0/distance", "10 16 16 22 28 28 28 34\n"},
	    {NODE "node1/distance", "16 10 22 16 28 28 34 28\n"},
	    {NODE "node2/distance", "16 22 10 16 28 34 28 28\n"},
	    {NODE "node3/distance", "22 16 16 10 34 28 28 28\n"},
	    {NODE "node4/distance", "28 28 28 34 10 16 16 22\n"},
	    {NODE "node5/distance", "28 28 34 28 16 10 22 16\n"},
	    {NODE "node6/distance", "28 34 28 28 16 22 10 16\n"},
	    {NODE "node7/distance", "34 28 28 28 22 16 16 10\n"},
	    {NODE "node0/cpulist", "0\n"}, {NODE "node1/cpulist", "1\n"},
	    {NODE "node2/cpulist", "2\n"}, {NODE "node3/cpulist", "3\n"},
	    {NODE "node4/cpulist", "4\n"}, {NODE "node5/cpulist", "5\n"},
	    {NODE "node6/cpulist", "6\n"}, {NODE "node7/cpulist", "7\n"}}},
    {"the highest cache makes a domain, wherever its index stands", 0,
	"0m 0-7 10; |0:0-1,4-5 0:2-3,6-7",
	{{NODE "online", "0\n"}, {NODE "node0/cpulist", "0-7\n"},
	    {CPU "cpu0/cache/index0/level", "1\n"},
	    {CPU "cpu0/cache/index0/shared_cpu_list", "0,4\n"},
	    {CPU "cpu0/cache/index1/level", "3\n"},
	    {CPU "cpu0/cache/index1/shared_cpu_list", "0-1,4-5\n"},
	    {CPU "cpu0/cache/index2/level", "2\n"},
	    {CPU "cpu0/cache/index2/shared_cpu_list", "0,4\n"},
	    {CPU "cpu2/cache/index0/level", "3\n"},
	    {CPU "cpu2/cache/index0/shared_cpu_list", "2-3,6-7\n"}}},
    {"a cache across nodes is a domain on each; offline sharers are none's", 0,
	"0m 0-1 10,20; 1m 2-3 20,10; |0:0-1 1:2-3",
	{{NODE "online", "0-1\n"}, {NODE "node0/cpulist", "0-1\n"},
	    {NODE "node1/cpulist", "2-3\n"},
	    {CPU "cpu0/cache/index0/level", "3\n"},
	    {CPU "cpu0/cache/index0/shared_cpu_list", "0-9\n"},
	    {CPU "cpu2/cache/index0/level", "3\n"},
	    {CPU "cpu2/cache/index0/shared_cpu_list", "0-9\n"}}},
    {"CPUs without caches, and a cache that its CPU is not at, make a domain "
     "a node",
	0, "0m 0-3 10,20; 1m 4-5 20,10; |0:0,3 0:1-2 1:4-5",
	{{NODE "online", "0-1\n"}, {NODE "node0/cpulist", "0-3\n"},
	    {NODE "node1/cpulist", "4-5\n"},
	    {CPU "cpu0/cache/index0/level", "2\n"},
	    {CPU "cpu0/cache/index0/shared_cpu_list", "1-3\n"},
	    {CPU "cpu1/cache/index0/level", "2\n"},
	    {CPU "cpu1/cache/index0/shared_cpu_list", "1-2\n"}}},
    {"no nodes, as on a kernel without NUMA", -ENOENT, "0m 0-3,6 10; |0:0-3,6",
	{{CPU "online", "0-3,6\n"}}},
    {"nothing at all", -ENOENT, "0m - 10; |", {{NULL, NULL}}},
    {"no node is online", -ENOENT, "0m 0 10; |0:0",
	{{NODE "online", "\n"}, {CPU "online", "0\n"},
	    {NODE "node0/cpulist", "0\n"}}},
    {"no node within the table is online", -ENOENT, "0m 0 10; |0:0",
	{{NODE "online", "1024-1025\n"}, {CPU "online", "0\n"},
	    {NODE "node0/cpulist", "0\n"}}},
    {"garbage for a list of nodes", -ENOENT, "0m 0-1 10; |0:0-1",
	{{NODE "online", "all of them\n"}, {CPU "online", "0-1\n"}}},
    {"lists with a fault are as if missing", 0,
	"0m - 10,20,20; 1m - 20,10,20; 2m 1 20,20,10; |2:1",
	{{NODE "online", "0-2\n"}, {NODE "node0/cpulist", "0,3-1\n"},
	    {NODE "node1/cpulist", "0-99999999999999999999999\n"},
	    {NODE "node2/cpulist", "1\n"}, {NODE "has_memory", "1,0\n"},
	    {NODE "has_normal_memory", "0,0\n"},
	    {NODE "node0/distance", "10 20\n"},
	    {NODE "node1/distance", "30 10 30 30\n"},
	    {NODE "node2/distance", "256 20 10\n"}}},
    {"a distance of nothing is a fault", 0, "0m 0 10,20; 1m 1 20,10; |0:0 1:1",
	{{NODE "online", "0-1\n"}, {NODE "has_memory", "0-1\n"},
	    {NODE "node0/cpulist", "0\n"}, {NODE "node1/cpulist", "1\n"},
	    {NODE "node0/distance", "10 0\n"},
	    {NODE "node1/distance", "0 10\n"}}},
    {"numbers beyond the tables are left out", 0,
	"5m 0-1 10,20; 1023m 8191 20,10; |5:0-1 1023:8191",
	{{NODE "online", "5,1023-2000\n"}, {NODE "node5/cpulist", "0-1\n"},
	    {NODE "node1023/cpulist", "8191-16383\n"},
	    {NODE "node1024/cpulist", "2\n"}}},
};

static struct eddy_topology *topo;
static char said[200000];

/* Every member of [0, EDDY_MAX_CPUS) for which key has this value. */
static size_t
say_cpus(size_t n, const uint16_t *key, unsigned value)
{
	size_t first = n;

	for (unsigned c = 0; c < EDDY_MAX_CPUS; c++) {
		unsigned from = c;

		if (key[c] != value)
			continue;
		while (c + 1 < EDDY_MAX_CPUS && key[c + 1] == value)
			c++;
		n += (size_t)snprintf(said + n, sizeof said - n,
		    c > from ? "%s%u-%u" : "%s%u", n > first ? "," : "", from,
		    c);
	}
	if (n == first)
		n += (size_t)snprintf(said + n, sizeof said - n, "-");
	return n;
}

/* *topo in words, see trees[]. */
static const char *
describe(void)
{
	const struct eddy_topology *t = topo;
	size_t n = 0;

	for (unsigned i = eddy_node_next(t->online, 0); i < EDDY_MAX_NODES;
	     i = eddy_node_next(t->online, i + 1)) {
		char sep = ' ';

		n += (size_t)snprintf(said + n, sizeof said - n, "%u%s ", i,
		    eddy_node_in(t->has_memory, i) ? "m" : "");
		n = say_cpus(n, t->node_of_cpu, i);
		for (unsigned k = eddy_node_next(t->online, 0);
		     k < EDDY_MAX_NODES; k = eddy_node_next(t->online, k + 1)) {
			n += (size_t)snprintf(said + n, sizeof said - n, "%c%u",
			    sep, t->distance[i][k]);
			sep = ',';
		}
		n += (size_t)snprintf(said + n, sizeof said - n, "; ");
	}
	n += (size_t)snprintf(said + n, sizeof said - n, "|");
	for (unsigned i = 0; i < t->n_llcs; i++) {
		n += (size_t)snprintf(said + n, sizeof said - n,
		    "%s%u:", i > 0 ? " " : "", t->node_of_llc[i]);
		n = say_cpus(n, t->llc_of_cpu, i);
	}
	return said;
}

/* I-TOPO-1 to 3, and the counts. */
static bool
sound(bool llc)
{
	const struct eddy_topology *t = topo;
	uint64_t any = 0;

	for (unsigned i = 0; i < EDDY_MAX_NODES / 64; i++) {
		any |= t->has_memory[i];
		if (((t->has_memory[i] | t->has_cpus[i]) & ~t->online[i]) != 0)
			return false;
	}
	if (any == 0 || t->n_nodes != eddy_node_count(t->online) ||
	    t->n_llcs > EDDY_MAX_CPUS || (!llc && t->n_llcs != 0))
		return false;
	for (unsigned i = eddy_node_next(t->online, 0); i < EDDY_MAX_NODES;
	     i = eddy_node_next(t->online, i + 1))
		for (unsigned k = eddy_node_next(t->online, 0);
		     k < EDDY_MAX_NODES; k = eddy_node_next(t->online, k + 1))
			if (t->distance[i][k] == 0)
				return false;
	for (unsigned c = 0; c < EDDY_MAX_CPUS; c++) {
		unsigned node = t->node_of_cpu[c];
		unsigned d = t->llc_of_cpu[c];

		if (node == EDDY_NODE_NONE)
			continue;
		if (!eddy_node_in(t->online, node) ||
		    !eddy_node_in(t->has_cpus, node))
			return false;
		if (llc && (d >= t->n_llcs || t->node_of_llc[d] != node))
			return false;
	}
	return true;
}

/* Reads the tree; *topo held anything before. */
static int
read_tree(bool llc)
{
	memset(topo, 0xa5, sizeof *topo);
	return eddy_topology_read(topo, tree_dir, llc);
}

static void
put_tree(const struct tree *t)
{
	tree_reset();
	for (unsigned i = 0; i < N(t->files) && t->files[i].path != NULL; i++)
		tree_put(t->files[i].path, t->files[i].text,
		    strlen(t->files[i].text));
}

static void
a_tree_is_read(const struct tree *t)
{
	int ret;
	bool held;

	put_tree(t);
	ret = read_tree(true);
	held = ret == t->ret && sound(true) && strcmp(describe(), t->want) == 0;
	if (!tap_ok(held, "%s", t->name)) {
		tap_diag("returned %d, wanted %d", ret, t->ret);
		tap_diag("read   %s", said);
		tap_diag("wanted %s", t->want);
	}
	ret = read_tree(false);
	if (ret != t->ret || !sound(false))
		tap_ok(false, "%s, without caches", t->name);
}

/* Each file of a tree, cut at each length or with more behind its end, is as
 * if it was not there. */
static void
what_is_not_whole_is_absent(const struct tree *t)
{
	static const char *const more[] = {"\n", "x", "0\n", " "};
	static char without[sizeof said];
	unsigned n_wrong = 0;
	unsigned n = 0;

	put_tree(t);
	for (unsigned i = 0; i < N(t->files) && t->files[i].path != NULL; i++) {
		const struct file *f = &t->files[i];
		size_t whole = strlen(f->text);
		char path[256];

		(void)snprintf(path, sizeof path, "%s/%s", tree_dir, f->path);
		if (unlink(path) != 0)
			tap_bail("unlink %s", path);
		(void)read_tree(true);
		(void)strcpy(without, describe());
		for (size_t k = 0; k < whole + N(more); k++, n++) {
			char text[128];
			size_t len = k;

			(void)strcpy(text, f->text);
			if (k >= whole) {
				(void)strcat(text, more[k - whole]);
				len = strlen(text);
			}
			tree_put(f->path, text, len);
			(void)read_tree(true);
			if (strcmp(describe(), without) == 0)
				continue;
			tap_diag("%s with %zu bytes of %zu: %s", f->path, len,
			    whole, said);
			n_wrong++;
		}
		tree_put(f->path, f->text, whole);
	}
	tap_ok(n > 0 && n_wrong == 0, "%u files not whole are as absent: %s", n,
	    t->name);
}

/* A text with a few wrong bytes, or something else altogether. */
static size_t
spoil(uint64_t *seed, const char *text, char *to, size_t size)
{
	static const char *const odd[] = {"0-8191\n", "0-99999999\n",
	    "4294967295\n", "18446744073709551616\n", "-1\n", "0-\n", ",\n",
	    "\n\n", "0--1\n", " \n", "0,\n", "0-3:2/4\n", "1023\n", "8191\n"};
	size_t n = strlen(text);

	(void)memcpy(to, text, n);
	switch (tap_random(seed) % 4) {
	case 0:
		text = odd[tap_random(seed) % N(odd)];
		n = strlen(text);
		(void)memcpy(to, text, n);
		break;
	case 1:
		n = tap_random(seed) % size;
		for (size_t i = 0; i < n; i++)
			to[i] = (char)tap_random(seed);
		break;
	case 2:
		/* Longer than any buffer: never an end in sight. */
		for (n = 0; n + 2 <= size; n += 2)
			(void)memcpy(to + n, "1 ", 2);
		break;
	default:
		for (uint64_t k = 1 + tap_random(seed) % 3; k > 0; k--)
			to[tap_random(seed) % n] =
			    "0123456789-, \n\0x"[tap_random(seed) % 16];
	}
	return n;
}

static void
garbage_is_survived(void)
{
	static char bad[70000];
	uint64_t seed = tap.seed;
	unsigned n_wrong = 0;
	unsigned n = 0;

	for (unsigned i = 0; i < N(trees); i++) {
		const struct tree *t = &trees[i];
		unsigned n_files = 0;

		while (n_files < N(t->files) && t->files[n_files].path != NULL)
			n_files++;
		put_tree(t);
		for (unsigned k = 0; n_files > 0 && k < 40; k++, n++) {
			const struct file *f =
			    &t->files[tap_random(&seed) % n_files];

			tree_put(f->path, bad,
			    spoil(&seed, f->text, bad, sizeof bad));
			(void)read_tree(true);
			n_wrong += !sound(true);
			/* One time in two faults add up. */
			if (tap_random(&seed) % 2 == 0)
				tree_put(f->path, f->text, strlen(f->text));
		}
	}
	tap_ok(n_wrong == 0,
	    "%u trees with garbage are read as something sound", n);
}

/* A directory where a file is meant, a file where a directory is. */
static void
wrong_kinds(void)
{
	tree_reset();
	tree_put(NODE "online/x", "0", 1);
	tree_put(CPU "online", "0-1\n", 4);
	tap_ok(read_tree(true) == -ENOENT &&
		   strcmp(describe(), "0m 0-1 10; |0:0-1") == 0,
	    "a directory in a file's place counts as nothing");
	tree_reset();
	tree_put("devices", "0\n", 2);
	tap_ok(
	    read_tree(true) == -ENOENT && strcmp(describe(), "0m - 10; |") == 0,
	    "a file in a directory's place counts as nothing");
}

/* The kernel hands a long list over in pieces; a pipe does that here. */
static void
pieces(void)
{
	char path[128];
	pid_t pid;
	bool held;

	tree_reset();
	tree_put(NODE "online", "0\n", 2);
	tree_put(NODE "node0/distance", "10\n", 3);
	(void)snprintf(path, sizeof path, "%s/" NODE "node0/cpulist", tree_dir);
	if (mkfifo(path, 0600) != 0)
		tap_bail("mkfifo: %d", errno);
	pid = fork();
	if (pid == 0) {
		int fd = open(path, O_WRONLY);

		for (const char *s = "0-1,3-4,17\n"; *s != '\0'; s++) {
			if (write(fd, s, 1) != 1)
				_exit(1);
			(void)usleep(2000);
		}
		_exit(0);
	}
	held = read_tree(false) == 0 &&
	       strcmp(describe(), "0m 0-1,3-4,17 10; |") == 0;
	(void)waitpid(pid, NULL, 0);
	tap_ok(held, "a file that comes in pieces is read to its end");
}

static void
long_roots(void)
{
	static char root[8000];
	bool held = true;

	for (size_t n = 200; n < 270; n++) {
		memset(root, '/', n);
		root[n] = '\0';
		memset(topo, 0xa5, sizeof *topo);
		(void)eddy_topology_read(topo, root, true);
		held = held && sound(true);
	}
	memset(root, '/', sizeof root - 1);
	held = held && eddy_topology_read(topo, root, true) == -ENOENT;
	tap_ok(held && strcmp(describe(), "0m - 10; |") == 0,
	    "a root whose name is too long is no tree");
}

static void
two_nodes_of_many_cpus(void)
{
	static char list[2][60000];
	size_t n[2] = {0, 0};
	bool held = true;

	tree_reset();
	for (unsigned c = 0; c < EDDY_MAX_CPUS; c++)
		n[c % 2] += (size_t)snprintf(list[c % 2] + n[c % 2], 8, "%u%c",
		    c, c < EDDY_MAX_CPUS - 2 ? ',' : '\n');
	tree_put(NODE "online", "0-1\n", 4);
	tree_put(NODE "node0/cpulist", list[0], n[0]);
	tree_put(NODE "node1/cpulist", list[1], n[1]);
	for (unsigned c = 0; c < EDDY_MAX_CPUS; c += c % 64 == 1 ? 63 : 1) {
		char path[64];
		char text[8192];
		size_t k = 0;

		/* 32 CPUs of a node share a cache; written for the first. */
		for (unsigned i = c; i < c + 64; i += 2)
			k += (size_t)snprintf(
			    text + k, 8, "%s%u", k > 0 ? "," : "", i);
		text[k++] = '\n';
		(void)snprintf(path, sizeof path,
		    CPU "cpu%u/cache/index0/shared_cpu_list", c);
		tree_put(path, text, k);
		(void)snprintf(
		    path, sizeof path, CPU "cpu%u/cache/index0/level", c);
		tree_put(path, "3\n", 2);
	}
	held = read_tree(true) == 0 && sound(true) && topo->n_llcs == 256;
	for (unsigned c = 0; held && c < EDDY_MAX_CPUS; c++)
		held = topo->node_of_cpu[c] == c % 2 &&
		       topo->llc_of_cpu[c] == c / 64 * 2 + c % 2;
	tap_ok(held,
	    "8192 CPUs, every other one on the other node: %zu bytes, "
	    "256 caches",
	    n[0]);
}

static void
many_nodes(void)
{
	static char row[8192];
	char path[64];
	bool held;

	tree_reset();
	tree_put(NODE "online", "0-1023\n", 7);
	tree_put(NODE "has_memory", "0-1022\n", 7);
	for (unsigned i = 0; i < EDDY_MAX_NODES; i++) {
		size_t n = 0;

		for (unsigned k = 0; k < EDDY_MAX_NODES; k++)
			n += (size_t)snprintf(row + n, 8, "%s%u",
			    k > 0 ? " " : "",
			    k == i ? 10 : 100 + (i + k) % 156);
		row[n++] = '\n';
		(void)snprintf(path, sizeof path, NODE "node%u/distance", i);
		tree_put(path, row, n);
		n = 0;
		for (unsigned c = i; c < EDDY_MAX_CPUS; c += EDDY_MAX_NODES)
			n += (size_t)snprintf(
			    row + n, 8, "%s%u", n > 0 ? "," : "", c);
		row[n++] = '\n';
		(void)snprintf(path, sizeof path, NODE "node%u/cpulist", i);
		tree_put(path, row, n);
	}
	held = read_tree(true) == 0 && sound(true) &&
	       topo->n_nodes == EDDY_MAX_NODES && topo->n_llcs == 1024 &&
	       !eddy_node_in(topo->has_memory, 1023) &&
	       eddy_node_in(topo->has_memory, 1022);
	for (unsigned c = 0; held && c < EDDY_MAX_CPUS; c++)
		held = topo->node_of_cpu[c] == c % EDDY_MAX_NODES;
	for (unsigned i = 0; held && i < EDDY_MAX_NODES; i++)
		for (unsigned k = 0; held && k < EDDY_MAX_NODES; k++)
			held = topo->distance[i][k] ==
			       (k == i ? 10 : 100 + (i + k) % 156);
	tap_ok(held, "1024 nodes, 8192 CPUs");
}

static void
fake_texts(void)
{
	static const char *const bad[] = {"", "x", "1", "1x1", "1x1x", "x1x1",
	    "0x1x1", "1x0x1", "1x1x0", "1x1x1x1", "1x1x1 ", " 1x1x1", "1X1X1",
	    "-1x1x1", "+1x1x1", "1025x1x1", "1x8193x1", "1x1x8193", "2x1x4097",
	    "91x91x1", "99999999999999999999x1x1", "4294967297x1x1",
	    "1x18446744073709551617x1", "2,2,2", "numa", "1x1xa"};
	static const struct {
		const char *text;
		unsigned n;
		unsigned l;
		unsigned c;
	} good[] = {{"1x1x1", 1, 1, 1}, {"2x1x1", 2, 1, 1}, {"2x2x2", 2, 2, 2},
	    {"3x5x7", 3, 5, 7}, {"1024x1x8", 1024, 1, 8},
	    {"1x8192x1", 1, 8192, 1}, {"1x1x8192", 1, 1, 8192},
	    {"64x16x8", 64, 16, 8}};
	bool held = true;

	for (unsigned i = 0; i < N(bad); i++)
		if (eddy_topology_fake(topo, bad[i]) != -EINVAL) {
			tap_diag("\"%s\" passes", bad[i]);
			held = false;
		}
	tap_ok(held, "%zu texts are no topology", N(bad));
	for (unsigned i = 0; i < N(good); i++) {
		unsigned n = good[i].n;
		unsigned l = good[i].l;
		unsigned c = good[i].c;

		memset(topo, 0xa5, sizeof *topo);
		held = eddy_topology_fake(topo, good[i].text) == 0 &&
		       sound(true) && topo->n_nodes == n &&
		       topo->n_llcs == n * l &&
		       eddy_node_next(topo->online, n) == EDDY_MAX_NODES &&
		       eddy_node_count(topo->has_memory) == n &&
		       eddy_node_count(topo->has_cpus) == n;
		for (unsigned k = 0; held && k < EDDY_MAX_CPUS; k++)
			held =
			    topo->llc_of_cpu[k] == k % (n * l * c) / c &&
			    topo->node_of_cpu[k] == k % (n * l * c) / (l * c);
		for (unsigned k = 0; held && k < n * n; k++)
			held = topo->distance[k / n][k % n] ==
			       (k / n == k % n ? 10 : 20);
		tap_ok(held, "%s: %u nodes, %u caches, CPUs in order and again",
		    good[i].text, n, n * l);
	}
	put_tree(&trees[1]);
	memset(topo, 0xa5, sizeof *topo);
	tap_ok(eddy_topology_fake(topo, tree_dir) == 0 &&
		   strcmp(describe(), trees[1].want) == 0,
	    "a path is the tree there");
	memset(topo, 0xa5, sizeof *topo);
	tap_ok(eddy_topology_fake(topo, "/does/not/exist") == -ENOENT &&
		   strcmp(describe(), "0m - 10; |") == 0,
	    "a path where nothing is: one node");
}

int
main(void)
{
	numa_begin(120);
	tree_begin();
	topo = guarded(sizeof *topo);
	for (unsigned i = 0; i < N(trees); i++)
		a_tree_is_read(&trees[i]);
	for (unsigned i = 0; i < N(trees); i++)
		if (trees[i].files[0].path != NULL)
			what_is_not_whole_is_absent(&trees[i]);
	garbage_is_survived();
	wrong_kinds();
	pieces();
	long_roots();
	two_nodes_of_many_cpus();
	many_nodes();
	fake_texts();
	tree_end();
	return tap_end();
}
