/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * front_arena.c - arenas that a program creates on nodes, and what it can ask
 * about memory: from outside, so on whatever nodes there are, and on some that
 * are made up.
 */
#include "node_api.h"

#include <limits.h>

#include "numa_tree.h"

static void
test_bad_input(int node)
{
	static const int bad_node[] = {-1, INT_MIN, 1023, 1024, INT_MAX};
	unsigned a = create(node);
	const unsigned bad_arena[] = {0, 1, a + 1, 4095, 4096, UINT_MAX};
	static const size_t bad_align[] = {0, 3, 24, SIZE_MAX};
	static const size_t bad_size[] = {
	    SIZE_MAX, SIZE_MAX - 4095, PTRDIFF_MAX, (size_t)1 << 47};
	void *of_malloc = p_malloc(1);
	bool held = true;

	for (size_t i = 0; i < COUNT(bad_node); i++) {
		unsigned b = 77;

		errno = 0;
		held &= api.create(bad_node[i], &b) == EINVAL && b == 77 &&
			api.move(a, bad_node[i]) == EINVAL && errno == 0;
	}
	tap_ok(held, "nodes that there are not: EINVAL, errno untouched");
	held = true;
	for (size_t i = 0; i < COUNT(bad_arena); i++) {
		errno = 0;
		held &= api.alloc(bad_arena[i], 10) == NULL && errno == EINVAL;
		errno = 0;
		held &= api.aligned(bad_arena[i], 64, 10) == NULL &&
			errno == EINVAL &&
			api.move(bad_arena[i], node) == EINVAL;
	}
	tap_ok(held, "numbers that are no arena, and those of malloc: EINVAL");
	held = true;
	for (size_t i = 0; i < COUNT(bad_align); i++) {
		errno = 0;
		held &=
		    api.aligned(a, bad_align[i], 10) == NULL && errno == EINVAL;
	}
	tap_ok(held, "alignments that are no power of two: EINVAL");
	held = true;
	for (size_t i = 0; i < COUNT(bad_size); i++) {
		errno = 0;
		held &= api.alloc(a, bad_size[i]) == NULL && errno == ENOMEM;
		errno = 0;
		held &= api.aligned(a, 4096, bad_size[i]) == NULL &&
			errno == ENOMEM;
	}
	tap_ok(held, "sizes that cannot be: ENOMEM");
	p_free(of_malloc);
}

static void
test_foreign(void)
{
	static char in_data;
	char on_stack;
	char *mapped = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *gone = mapped + 4096;
	void *heap = p_malloc(1);
	const void *const p[] = {NULL, (void *)1, &in_data, &on_stack,
	    (const void *)(uintptr_t)&test_foreign, mapped, (void *)UINTPTR_MAX,
	    (void *)((uintptr_t)1 << 46), (void *)((uintptr_t)1 << 63)};
	bool held = true;

	for (size_t i = 0; i < COUNT(p); i++) {
		errno = 0;
		held &= api.node_of(p[i]) == -1 && errno == EINVAL;
	}
	/* Addresses that are eddy's, without memory so far. */
	errno = 0;
	held &= api.node_of((void *)((uintptr_t)heap | 0x3fffffff)) == -1 &&
		errno == EINVAL;
	tap_ok(held, "eddy_node_of of what is not eddy's: EINVAL, no abort");
	p_free(heap);
	(void)munmap(gone, 4096);
	errno = 0;
	if (api.node_at(mapped) == -1 && errno == ENOSYS) {
		tap_skip("eddy_node_at", "a kernel without NUMA");
	} else {
		held = errno == ENOENT;
		mapped[0] = 1;
		held &= api.node_at(mapped) >= 0 && api.node_at(gone) == -1 &&
			errno == EFAULT;
		tap_ok(held, "eddy_node_at of any address: ENOENT before it is "
			     "written, EFAULT where nothing is");
	}
	(void)munmap(mapped, 4096);
}

static void
test_nodes(int node)
{
	unsigned a = create(node);
	char *p = api.alloc(a, 10 * (size_t)MIB);
	char *middle = p + 5 * MIB;
	char *small = api.alloc(a, 10);
	bool held = true;

	for (size_t i = 0; i < 10; i++)
		held &= api.node_of(p + i * MIB + i) == node;
	tap_ok(held && api.node_of(small) == node &&
		   api.node_of(small + 9) == node,
	    "eddy_node_of: any address in a block");
	errno = 0;
	if (api.node_at(middle) == -1 && errno == ENOSYS) {
		tap_skip("eddy_node_at", "a kernel without NUMA");
	} else {
		held = errno == ENOENT;
		/* The kernel's page of zeros is no page of the block's, where
		 * it has one. */
		held &= *(volatile char *)middle == 0 &&
			(probe_reads_cost() ||
			    (api.node_at(middle) == -1 && errno == ENOENT));
		*middle = 1;
		tap_ok(held && api.node_at(middle) >= 0,
		    "eddy_node_at: ENOENT until it is written");
	}
	p_free(p);
	p_free(small);
}

static bool
filled(const unsigned char *p, size_t n, unsigned char c)
{
	for (size_t i = 0; i < n; i += i < 4096 ? 1 : 997)
		if (p[i] != c)
			return false;
	return true;
}

static void
test_realloc(int node)
{
	static const size_t size[] = {1, 16, 100, 5000, 14336, 16000, 40000,
	    70000, 300000, 2 * MIB, 2 * MIB + 1, 5 * MIB, 40 * MIB, 1100 * MIB,
	    9 * MIB, 100000, 300, 2};
	enum { FILL = 5 * MIB };
	unsigned a = create(node);
	unsigned char *other = p_malloc(1);
	unsigned char *p = api.alloc(a, 1);
	void *wall[COUNT(size)];
	bool content = true;
	bool apart = true;
	bool sizes = true;

	*p = 1;
	for (size_t i = 1; i < COUNT(size); i++) {
		size_t kept = size[i - 1] < size[i] ? size[i - 1] : size[i];

		/* Nothing grows in place for ever. */
		wall[i] = api.alloc(a, size[i - 1]);
		p = p_realloc(p, size[i]);
		if (p == NULL)
			tap_bail("no memory");
		content &=
		    filled(p, kept < FILL ? kept : FILL, (unsigned char)i);
		sizes &= p_usable(p) >= size[i];
		apart &= api.node_of(p) == node &&
			 segment_of(p) != segment_of(other);
		memset(p, (int)i + 1, size[i] < FILL ? size[i] : FILL);
	}
	tap_ok(content && sizes, "realloc of an arena's block keeps content");
	tap_ok(apart, "and stays in the arena, whatever it does");
	for (size_t i = 1; i < COUNT(size); i++)
		p_free(wall[i]);
	p_free(p);
	p_free(other);
}

static void
test_aligned(int node)
{
	unsigned a = create(node);
	void *other = p_malloc(100000);
	bool held = true;

	for (size_t align = 1; align <= (size_t)1 << 31; align *= 2)
		for (size_t size = 1; size <= 300000; size = size * 5 + 3) {
			unsigned char *p = api.aligned(a, align, size);

			held &= p != NULL && (uintptr_t)p % align == 0 &&
				p_usable(p) >= size && api.node_of(p) == node &&
				segment_of(p) != segment_of(other);
			if (p != NULL)
				p[0] = p[size - 1] = 1;
			p_free(p);
		}
	p_free(other);
	tap_ok(held, "alignments to 2 GiB");
}

/* Argument "thousands": all that there can be, all in use. */
static int
thousands(void)
{
	enum { MOST = 4095 };
	static void *p[MOST + 1];
	static void *q[MOST + 1];
	int node = some_node();
	unsigned n = 0;
	unsigned last = 0;
	unsigned a;
	int err;

	while ((err = api.create(node, &a)) == 0 && n <= MOST) {
		if (last != 0 && a != last + 1)
			return 1;
		last = a;
		p[a] = api.alloc(a, 100);
		q[a] = api.alloc(a, 20000);
		if (p[a] == NULL || q[a] == NULL) {
			tap_diag("arena %u: errno %d, %d mappings", a, errno,
			    probe_maps());
			return 2;
		}
		memset(p[a], (int)a, 100);
		memset(q[a], (int)a, 20000);
		if (segment_of(p[a]) != segment_of(q[a]) ||
		    segment_of(p[a]) == segment_of(p[a - 1]))
			return 3;
		n++;
	}
	if (err != EAGAIN || last != MOST || n + 10 < MOST) {
		tap_diag("errno %d after %u arenas, %u last", err, n, last);
		return 4;
	}
	for (int i = 0; i < 1000; i++)
		if (api.create(node, &a) != EAGAIN)
			return 5;
	tap_diag("%u arenas in use: %ld MiB, %d mappings", n,
	    probe_rss_kib() / KIB, probe_maps());
	for (unsigned i = MOST; i > MOST - n; i--) {
		if (!filled(p[i], 100, (unsigned char)i) ||
		    !filled(q[i], 20000, (unsigned char)i))
			return 6;
		p_free(p[i]);
		p_free(q[i]);
	}
	for (unsigned i = MOST; i > MOST - n; i--) {
		p[i] = api.alloc(i, 100);
		if (p[i] == NULL || segment_of(p[i]) != segment_of(q[i]))
			return 7;
		p_free(p[i]);
	}
	p_free(p_malloc(100));
	return api.move(MOST, node) == 0 ? 0 : 8;
}

/* ---- misuse ---- */

/* Argument "double": must end by SIGABRT. */
static int
double_free(void)
{
	unsigned a = create(some_node());
	void *pin = api.alloc(a, 48);
	void *p = api.alloc(a, 48);

	p_free(p);
	p_free(p);
	p_free(pin);
	return 0;
}

static bool
aborts(char **argv, const char *conf, const char *want)
{
	char text[256] = "";
	char arg[] = "double";
	int fd[2];
	int st;
	pid_t pid;

	if (pipe(fd) != 0)
		tap_bail("pipe");
	pid = fork();
	if (pid == 0) {
		struct rlimit none = {0, 0};

		probe_child_begin(20);
		(void)setrlimit(RLIMIT_CORE, &none);
		(void)dup2(fd[1], STDERR_FILENO);
		(void)setenv("EDDY_CONF", conf, 1);
		(void)setenv("EDDY_TAP_CHILD", "1", 1);
		tap_exec(argv[0], arg);
	}
	(void)close(fd[1]);
	if (read(fd[0], text, sizeof text - 1) < 0)
		tap_bail("read");
	(void)close(fd[0]);
	if (waitpid(pid, &st, 0) == pid && WIFSIGNALED(st) &&
	    WTERMSIG(st) == SIGABRT && strstr(text, want) != NULL)
		return true;
	tap_diag("%s: status 0x%x, \"%s\"", conf, st, text);
	return false;
}

static void
test_double(char **argv)
{
	static const char *const conf[] = {"", "rseq:false", "check:true"};

	for (size_t i = 0; i < COUNT(conf); i++)
		tap_ok(aborts(argv, conf[i], "<eddy>: double free: 0x"),
		    "an object freed twice is seen at once (%s)", conf[i]);
}

/* ---- surroundings ---- */

/* Argument "refused": the kernel takes no policy from anybody. */
static int
refused(void)
{
	const int nr[] = {SYS_mbind, SYS_move_pages};
	int node = some_node();
	unsigned a = 0;
	unsigned kept = create(node);
	void *p = api.alloc(kept, 100);
	const char *conf = getenv("EDDY_CONF");
	bool made_up = conf != NULL && strstr(conf, "topology") != NULL;
	bool many = false;
	int err;

	/* Nodes that are made up are not the kernel's. */
	for (int i = node + 1; i < 1024 && !made_up; i++)
		many |= api.create(i, &a) == 0;
	if (!probe_refuse(nr, COUNT(nr), EPERM))
		return 77;
	a = 0;
	err = api.create(node, &a);
	/* With one node there is nothing to ask for. */
	if (many ? err != EPERM || a != 0 : err != 0)
		return 1;
	if (api.move(kept, node) != (many ? EPERM : 0) ||
	    api.node_of(p) != node)
		return 2;
	*(char *)p = 1;
	errno = 0;
	if (api.node_at(p) != -1 || errno != EPERM)
		return 3;
	p_free(p);
	/* Another segment, that nobody may bind. */
	p = api.alloc(kept, 1024 * (size_t)MIB);
	if (p == NULL || api.node_of(p) != node)
		return 4;
	p_free(p);
	p_free(p_malloc(10));
	return 0;
}

/* Argument "off": numa:off, and a kernel that ends whoever binds. */
static int
off(void)
{
	const int nr[] = {SYS_mbind, SYS_set_mempolicy};
	unsigned a;
	void *p;

	if (!refuse(nr, COUNT(nr), 0, false))
		return 77;
	a = create(0);
	p = api.alloc(a, 100);
	if (p == NULL || api.node_of(p) != 0 || api.move(a, 0) != 0)
		return 1;
	p_free(p);
	return api.create(1023, &a) == EINVAL ? 0 : 2;
}

/* Argument "tree": nodes 0 to 3 of tree_dir, 1 without memory, 2 offline. */
static int
tree(void)
{
	const char *dir = getenv("EDDY_TEST_TREE");
	unsigned a = 55;
	void *p;

	if (api.create(1, &a) != ENODEV || api.create(2, &a) != EINVAL ||
	    api.create(4, &a) != EINVAL || a != 55)
		return 1;
	if (api.create(3, &a) != 0 || api.move(a, 1) != ENODEV ||
	    api.move(a, 2) != EINVAL)
		return 2;
	p = api.alloc(a, 100);
	if (api.node_of(p) != 3 || api.move(a, 0) != 0 || api.node_of(p) != 0)
		return 3;
	/* Memory is added while the process runs. */
	(void)snprintf(tree_dir, sizeof tree_dir, "%s", dir);
	tree_put("devices/system/node/has_memory", "0-1,3\n", 6);
	if (api.move(a, 1) != 0 || api.node_of(p) != 1 ||
	    api.create(1, &a) != 0)
		return 4;
	p_free(p);
	return 0;
}

static void
put(const char *file, const char *text)
{
	char path[128];

	(void)snprintf(path, sizeof path, "devices/system/node/%s", file);
	tree_put(path, text, strlen(text));
}

static void
test_tree(char **argv)
{
	char conf[96];

	tree_begin();
	put("online", "0-1,3\n");
	put("has_memory", "0,3\n");
	put("has_cpu", "0\n");
	put("node0/cpulist", "0-1023\n");
	put("node1/cpulist", "\n");
	put("node3/cpulist", "\n");
	put("node0/distance", "10 20 30\n");
	put("node1/distance", "20 10 20\n");
	put("node3/distance", "30 20 10\n");
	(void)snprintf(conf, sizeof conf, "topology:%s", tree_dir);
	(void)setenv("EDDY_CONF", conf, 1);
	(void)setenv("EDDY_TEST_TREE", tree_dir, 1);
	tap_ok(probe_again(argv, "tree", "tree"),
	    "a node without memory: ENODEV, until it has some");
	(void)unsetenv("EDDY_CONF");
	tree_end();
}

static void
test_surroundings(char **argv)
{
	tap_ok(probe_again(argv, "refused", "refused"),
	    "refused policies and questions: EPERM, the heap goes on");
	(void)setenv("EDDY_CONF", "numa:off", 1);
	tap_ok(probe_again(argv, "off", "off"), "numa:off asks for nothing");
	(void)setenv("EDDY_CONF", "topology:2x1x1", 1);
	tap_ok(probe_again(argv, "refused", "refused, made up"),
	    "so it does on nodes that are made up");
	(void)unsetenv("EDDY_CONF");
	tap_ok(probe_again(argv, "thousands", "thousands"),
	    "4,095 arenas, then EAGAIN");
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *arg;
		int (*run)(void);
	} parts[] = {{"double", double_free}, {"refused", refused},
	    {"off", off}, {"tree", tree}, {"thousands", thousands}};
	int node;

	tap_begin(argv);
	if (!find_api())
		tap_skip_all("no arenas of eddy's here");
	probe_small_pages();
	for (size_t i = 0; i < COUNT(parts); i++)
		if (argc > 1 && strcmp(argv[1], parts[i].arg) == 0)
			return parts[i].run();
	tap_guard(240);
	node = some_node();
	test_bad_input(node);
	test_foreign();
	test_nodes(node);
	test_realloc(node);
	test_aligned(node);
	test_double(argv);
	test_surroundings(argv);
	test_tree(argv);
	return tap_end();
}
