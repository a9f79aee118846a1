/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * numa_usable.c - CPU quotas and limits of memory as cgroup files state them,
 * affinity masks, and a real cgroup where one can be made.
 */
#include "tests/numa_tree.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#include "numa/usable.h"

#define CG   "sys/fs/cgroup/"
#define SELF "proc/self/cgroup"
#define NONE EDDY_NO_QUOTA

struct file {
	const char *path;
	const char *text;
};

struct root {
	const char *name;
	uint64_t want;
	struct file files[12];
};

static const struct root roots[] = {
    {"no files", NONE, {{NULL, NULL}}},
    {"v2: half a CPU more than one is two", 2,
	{{SELF, "0::/a/b\n"}, {CG "a/b/cpu.max", "150000 100000\n"}}},
    {"v2: exactly four", 4,
	{{SELF, "0::/a/b\n"}, {CG "a/b/cpu.max", "400000 100000\n"}}},
    {"v2: other periods", 8,
	{{SELF, "0::/a\n"}, {CG "a/cpu.max", "7001 1000\n"}}},
    {"v2: a hundredth of a CPU is one", 1,
	{{SELF, "0::/a\n"}, {CG "a/cpu.max", "1000 100000\n"}}},
    {"v2: no quota", NONE,
	{{SELF, "0::/a/b\n"}, {CG "a/b/cpu.max", "max 100000\n"},
	    {CG "a/cpu.max", "max 100000\n"}}},
    {"v2: a parent's is smaller", 3,
	{{SELF, "0::/a/b/c\n"}, {CG "a/b/c/cpu.max", "900000 100000\n"},
	    {CG "a/b/cpu.max", "max 100000\n"},
	    {CG "a/cpu.max", "300000 100000\n"}}},
    {"v2: a parent's is larger", 3,
	{{SELF, "0::/a/b\n"}, {CG "a/b/cpu.max", "300000 100000\n"},
	    {CG "a/cpu.max", "900000 100000\n"}}},
    {"v2: a sibling's is nobody's business", NONE,
	{{SELF, "0::/a/b\n"}, {CG "a/bb/cpu.max", "100000 100000\n"},
	    {CG "b/cpu.max", "100000 100000\n"}}},
    {"v2: in a namespace, at its root", 3,
	{{SELF, "0::/\n"}, {CG "cpu.max", "300000 100000\n"}}},
    {"v2: in a namespace, below its root", 2,
	{{SELF, "0::/x\n"}, {CG "x/cpu.max", "max 100000\n"},
	    {CG "cpu.max", "200000 100000\n"}}},
    {"v2: outside the namespace nothing is known", NONE,
	{{SELF, "0::/../x\n"}, {CG "cpu.max", "100000 100000\n"},
	    {CG "x/cpu.max", "100000 100000\n"}}},
    {"v2: far outside", NONE,
	{{SELF, "0::/../../..\n"}, {CG "cpu.max", "100000 100000\n"}}},
    {"v2: a name that begins with dots is a name", 5,
	{{SELF, "0::/..x/...\n"}, {CG "..x/.../cpu.max", "500000 100000\n"}}},
    {"v2: the host's path, the container's mount", 6,
	{{SELF, "0::/docker/0123\n"}, {CG "cpu.max", "600000 100000\n"}}},
    {"v2: a removed cgroup", 2,
	{{SELF, "0::/a/b (deleted)\n"}, {CG "a/cpu.max", "200000 100000\n"}}},
    {"v2: a path with colons", 2,
	{{SELF, "0::/a:b:c\n"}, {CG "a:b:c/cpu.max", "200000 100000\n"}}},
    {"v1: two controllers at one mount", 3,
	{{SELF, "5:memory:/m\n4:cpu,cpuacct:/u/v\n1:name=systemd:/s\n0::/x\n"},
	    {CG "cpu,cpuacct/u/v/cpu.cfs_quota_us", "250000\n"},
	    {CG "cpu,cpuacct/u/v/cpu.cfs_period_us", "100000\n"}}},
    {"v1: the other order", 3,
	{{SELF, "4:cpuacct,cpu:/u\n"},
	    {CG "cpuacct,cpu/u/cpu.cfs_quota_us", "250000\n"},
	    {CG "cpuacct,cpu/u/cpu.cfs_period_us", "100000\n"}}},
    {"v1: a mount of its own", 1,
	{{SELF, "4:cpu:/u/v\n"}, {CG "cpu/u/v/cpu.cfs_quota_us", "-1\n"},
	    {CG "cpu/u/v/cpu.cfs_period_us", "100000\n"},
	    {CG "cpu/u/cpu.cfs_quota_us", "90000\n"},
	    {CG "cpu/u/cpu.cfs_period_us", "100000\n"}}},
    {"v1: no quota", NONE,
	{{SELF, "4:cpu:/u\n"}, {CG "cpu/u/cpu.cfs_quota_us", "-1\n"},
	    {CG "cpu/u/cpu.cfs_period_us", "100000\n"}}},
    {"v1: a quota without a period", NONE,
	{{SELF, "4:cpu:/u\n"}, {CG "cpu/u/cpu.cfs_quota_us", "100000\n"}}},
    {"v1: the host's path, the container's mount", 4,
	{{SELF, "4:cpu:/docker/0123\n"},
	    {CG "cpu/cpu.cfs_quota_us", "400000\n"},
	    {CG "cpu/cpu.cfs_period_us", "100000\n"}}},
    {"v1: cpuset and cpuacct are not cpu", NONE,
	{{SELF, "4:cpuset:/u\n3:cpuacct:/u\n2:name=cpu:/u\n"},
	    {CG "cpu/u/cpu.cfs_quota_us", "100000\n"},
	    {CG "cpu/u/cpu.cfs_period_us", "100000\n"}}},
    {"v1 and v2: v2 is at unified", 2,
	{{SELF, "4:memory:/u\n0::/x\n"},
	    {CG "unified/x/cpu.max", "200000 100000\n"},
	    {CG "x/cpu.max", "100000 100000\n"}}},
    {"lines that are none", 7,
	{{SELF, "\n:\n::\nx::/\n0:\n0::\n0::a\n4:cpu\n4:cpu:\n0::/a\n"},
	    {CG "a/cpu.max", "700000 100000\n"},
	    {CG "unified/a/cpu.max", "700000 100000\n"}}},
    {"a path that does not begin at the top", NONE,
	{{SELF, "0::a\n"}, {CG "cpu.max", "700000 100000\n"}}},
    {"a last line that is cut", NONE,
	{{SELF, "0::/a"}, {CG "a/cpu.max", "700000 100000\n"}}},
};

static void
put_root(const struct root *r)
{
	tree_reset();
	for (unsigned i = 0; i < N(r->files) && r->files[i].path != NULL; i++)
		tree_put(r->files[i].path, r->files[i].text,
		    strlen(r->files[i].text));
}

static void
quotas(void)
{
	for (unsigned i = 0; i < N(roots); i++) {
		uint64_t got;

		put_root(&roots[i]);
		got = eddy_usable_quota(tree_dir);
		if (!tap_ok(got == roots[i].want, "%s", roots[i].name))
			tap_diag("%lld instead of %lld", (long long)got,
			    (long long)roots[i].want);
	}
}

/* The same of memory: the smallest that can be seen. */
static const struct root memories[] = {
    {"memory: no files", NONE, {{NULL, NULL}}},
    {"memory, v2", 1048576,
	{{SELF, "0::/a/b\n"}, {CG "a/b/memory.max", "1048576\n"}}},
    {"memory, v2: no limit", NONE,
	{{SELF, "0::/a\n"}, {CG "a/memory.max", "max\n"}}},
    {"memory, v2: none at all", 0,
	{{SELF, "0::/a\n"}, {CG "a/memory.max", "0\n"}}},
    {"memory, v2: a parent's is smaller", 4096,
	{{SELF, "0::/a/b/c\n"}, {CG "a/b/c/memory.max", "max\n"},
	    {CG "a/b/memory.max", "8192\n"}, {CG "a/memory.max", "4096\n"}}},
    {"memory, v2: a parent's is larger", 4096,
	{{SELF, "0::/a/b\n"}, {CG "a/b/memory.max", "4096\n"},
	    {CG "a/memory.max", "8192\n"}}},
    {"memory, v2: what CPUs may is another thing", NONE,
	{{SELF, "0::/a\n"}, {CG "a/cpu.max", "4096 100\n"},
	    {CG "a/memory.high", "4096\n"}, {CG "a/memory.low", "4096\n"}}},
    {"memory, v1", 65536,
	{{SELF, "5:memory:/m/n\n4:cpu:/u\n"},
	    {CG "memory/m/n/memory.limit_in_bytes", "65536\n"}}},
    {"memory, v1: with others at one mount", 65536,
	{{SELF, "5:cpu,memory:/m\n"},
	    {CG "cpu,memory/m/memory.limit_in_bytes", "65536\n"}}},
    {"memory, v1: no limit is a large number", NONE,
	{{SELF, "5:memory:/m\n"},
	    {CG "memory/m/memory.limit_in_bytes", "9223372036854771712\n"}}},
    {"memory, v1 and v2: v2 is at unified", 4096,
	{{SELF, "4:cpu:/u\n0::/x\n"}, {CG "unified/x/memory.max", "4096\n"},
	    {CG "x/memory.max", "100\n"}}},
    {"memory, v1: in a container", 4096,
	{{SELF, "5:memory:/docker/0123\n"},
	    {CG "memory/memory.limit_in_bytes", "4096\n"}}},
    {"memory, v2: outside the namespace nothing is known", NONE,
	{{SELF, "0::/../x\n"}, {CG "memory.max", "4096\n"}}},
};

static void
limits_of_memory(void)
{
	static const char *const bad[] = {"", "\n", "-1\n", "4096", "4096 \n",
	    "4096\n\n", "4k\n", "0x1000\n", "99999999999999999999\n"};
	bool held = true;

	for (unsigned i = 0; i < N(memories); i++) {
		uint64_t got;

		put_root(&memories[i]);
		got = eddy_usable_memory(tree_dir);
		if (!tap_ok(got == memories[i].want, "%s", memories[i].name))
			tap_diag("%lld instead of %lld", (long long)got,
			    (long long)memories[i].want);
	}
	tree_reset();
	tree_put(SELF, "0::/\n", 5);
	for (unsigned i = 0; i < N(bad); i++) {
		tree_put(CG "memory.max", bad[i], strlen(bad[i]));
		if (eddy_usable_memory(tree_dir) == NONE)
			continue;
		tap_diag("\"%s\" is a limit", bad[i]);
		held = false;
	}
	tap_ok(held, "%zu values of memory.max are none", N(bad));
}

static void
bad_values(void)
{
	static const char *const bad[] = {"", "\n", "0 100000\n", "50000 0\n",
	    "50000\n", "-5 100000\n", "50000 -1\n", "50000\t100000\n",
	    "50000  100000\n", "50000 100000", "50000 100000 1\n",
	    "50000 100000\n\n", "5e4 100000\n", "99999999999999999999 100000\n",
	    "50000 99999999999999999999\n", "maximum\n", "a\n"};
	char text[64];
	bool held = true;

	tree_reset();
	tree_put(SELF, "0::/\n", 5);
	for (unsigned i = 0; i < N(bad); i++) {
		tree_put(CG "cpu.max", bad[i], strlen(bad[i]));
		if (eddy_usable_quota(tree_dir) == NONE)
			continue;
		tap_diag("\"%s\" is a quota", bad[i]);
		held = false;
	}
	tap_ok(held, "%zu values of cpu.max are none", N(bad));
	memset(text, '1', sizeof text);
	tree_put(CG "cpu.max", text, sizeof text);
	held = eddy_usable_quota(tree_dir) == NONE;
	memset(text, '0', sizeof text);
	memcpy(text + sizeof text - 14, "300000 100000\n", 14);
	tree_put(CG "cpu.max", text + 1, sizeof text - 1);
	held = held && eddy_usable_quota(tree_dir) == 3;
	tree_put(CG "cpu.max", text, sizeof text);
	tap_ok(
	    held && eddy_usable_quota(tree_dir) == NONE, "nor is a long one");
	tree_put(CG "cpu.max", "18446744073709551609 3\n", 23);
	tap_ok(eddy_usable_quota(tree_dir) == 18446744073709551609u / 3,
	    "the largest is read");
}

static void
long_paths(void)
{
	static char text[40000];
	static char name[4096];
	size_t n = 0;
	bool held = true;

	/* 30 levels, the quota on the uppermost. */
	n = (size_t)sprintf(name, "%s", CG "l0/cpu.max");
	tree_reset();
	tree_put(name, "200000 100000\n", 14);
	n = (size_t)sprintf(text, "0::");
	for (unsigned i = 0; i < 30; i++)
		n += (size_t)sprintf(text + n, "/l%u", i);
	text[n++] = '\n';
	tree_put(SELF, text, n);
	tap_ok(eddy_usable_quota(tree_dir) == 2, "30 levels up");
	/* Lines of every length around the buffers' ends. */
	for (size_t len = 8000; len < 8400 && held; len += 3) {
		memset(text, 'a', len);
		memcpy(text, "0::/", 4);
		text[len] = '\n';
		tree_put(SELF, text, len + 1);
		held = eddy_usable_quota(tree_dir) == NONE;
	}
	for (size_t len = 16300; len < 16500 && held; len++) {
		memset(text, 'a', len);
		memcpy(text, "0::/", 4);
		text[len] = '\n';
		tree_put(SELF, text, len + 1);
		held = eddy_usable_quota(tree_dir) == NONE;
	}
	memset(text, '/', 5000);
	memcpy(text, "0::/", 4);
	text[5000] = '\n';
	tree_put(SELF, text, 5001);
	tree_put(CG "cpu.max", "300000 100000\n", 14);
	tap_ok(held && eddy_usable_quota(tree_dir) == 3,
	    "paths too long for any buffer are none");
	memset(text, 'a', sizeof text - 1);
	text[0] = '/';
	tap_ok(eddy_usable_quota(text) == NONE && eddy_usable_cpus(text) >= 1,
	    "nor is a root that is too long");
	for (size_t len = 8000; len < 8200; len++) {
		text[len] = '\0';
		held = held && eddy_usable_quota(text) == NONE;
		text[len] = 'a';
	}
	tap_ok(held, "at any length");
}

static void
garbage(void)
{
	static char text[20000];
	uint64_t seed = tap.seed;

	tree_reset();
	tree_put(CG "cpu.max", "300000 100000\n", 14);
	for (unsigned i = 0; i < 300; i++) {
		static const char some[] = "0:/.\ncpu,a";
		size_t n = tap_random(&seed) % 200;

		if (i % 10 == 0)
			n *= 100;
		for (size_t k = 0; k < n; k++)
			text[k] = i % 3 == 0 ? (char)tap_random(&seed)
					     : some[tap_random(&seed) % 10];
		tree_put(i % 2 == 0 ? SELF : CG "cpu.max", text, n);
		if (eddy_usable_quota(tree_dir) == 0)
			tap_ok(false, "round %u", i);
	}
	tap_ok(true, "300 files of garbage are survived");
}

static unsigned
cpus_of(pid_t tid)
{
	cpu_set_t set;

	return sched_getaffinity(tid, sizeof set, &set) == 0
		   ? (unsigned)CPU_COUNT(&set)
		   : 0;
}

static void *
pinned_thread(void *arg)
{
	unsigned *ret_n = arg;
	cpu_set_t all;
	cpu_set_t one;

	if (sched_getaffinity(0, sizeof all, &all) != 0)
		return NULL;
	CPU_ZERO(&one);
	for (unsigned c = 0; c < CPU_SETSIZE && CPU_COUNT(&one) == 0; c++)
		if (CPU_ISSET(c, &all))
			CPU_SET(c, &one);
	if (sched_setaffinity(0, sizeof one, &one) == 0)
		*ret_n = eddy_usable_cpus(tree_dir);
	return NULL;
}

static void
masks(void)
{
	unsigned n = cpus_of(0);
	unsigned seen = 0;
	pthread_t thread;
	cpu_set_t all;

	tree_reset();
	if (n == 0 || sched_getaffinity(0, sizeof all, &all) != 0) {
		tap_skip("affinity", "no mask here");
		return;
	}
	tap_ok(eddy_usable_cpus(tree_dir) == n,
	    "without a quota the affinity mask counts: %u", n);
	if (pthread_create(&thread, NULL, pinned_thread, &seen) != 0)
		tap_bail("no thread");
	(void)pthread_join(thread, NULL);
	tap_ok(seen == n, "a thread that is pinned does not change it");
	tree_put(SELF, "0::/\n", 5);
	tree_put(CG "cpu.max", "100000 100000\n", 14);
	tap_ok(eddy_usable_cpus(tree_dir) == 1, "a quota of one CPU is one");
	tree_put(CG "cpu.max", "900000000 1000\n", 15);
	tap_ok(
	    eddy_usable_cpus(tree_dir) == n, "a quota beyond it is not seen");
	/* The main thread, and back: as taskset does, and again. */
	tree_reset();
	(void)pinned_thread(&seen);
	tap_ok(seen == 1 && eddy_usable_cpus(tree_dir) == 1,
	    "the main thread on one CPU is one");
	(void)sched_setaffinity(0, sizeof all, &all);
	tap_ok(eddy_usable_cpus(tree_dir) == n, "and %u again", n);
}

/* Children with system calls refused. */

static int
no_affinity(void)
{
	static const int calls[] = {SYS_sched_getaffinity};
	unsigned n = cpus_of(0);
	uint64_t q = eddy_usable_quota("");

	if (!refuse(calls, N(calls), EPERM, false))
		return 77;
	return eddy_usable_cpus("") >= (q < n ? q : n) ? 0 : 1;
}

static int
nothing_at_all(void)
{
	static const int calls[] = {SYS_sched_getaffinity, SYS_openat};

	if (!refuse(calls, N(calls), EPERM, false))
		return 77;
	return eddy_usable_cpus("") >= 1 ? 0 : 1;
}

static int
no_memory(void)
{
	static const int calls[] = {SYS_mmap};

	if (!refuse(calls, N(calls), ENOMEM, false))
		return 77;
	return eddy_usable_cpus("") == cpus_of(0) &&
		       eddy_usable_quota("") == NONE
		   ? 0
		   : 1;
}

static int
leaves_no_mapping(void)
{
	char text[64];
	struct rlimit r;
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;

	if (n <= 0)
		return 77;
	text[n] = '\0';
	/* Room for a few at a time. */
	r.rlim_cur = r.rlim_max =
	    strtoul(text, NULL, 10) * (rlim_t)sysconf(_SC_PAGESIZE) +
	    (1u << 20);
	if (setrlimit(RLIMIT_AS, &r) != 0)
		return 77;
	for (unsigned i = 0; i < 300; i++)
		if (eddy_usable_quota(tree_dir) != 3)
			return 1;
	return 0;
}

static void
child(const char *name, int (*body)(void))
{
	int ret = in_child(body);

	if (ret == 77)
		tap_skip(name, "seccomp is not to be had");
	else if (!tap_ok(ret == 0, "%s", name))
		tap_diag("the child ended with %d", ret);
}

/*
 * A real cgroup: below that of this process, or at the top of a hierarchy.
 */

static char group[256];
static bool enabled; /* the cpu controller, by this test */

static bool
write_file(const char *dir, const char *name, const char *text)
{
	char path[512];
	int fd;
	bool held;

	(void)snprintf(path, sizeof path, "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	held = fd >= 0 && write(fd, text, strlen(text)) > 0;
	if (fd >= 0)
		(void)close(fd);
	return held;
}

static int
in_group(void)
{
	char pid[16];

	(void)snprintf(pid, sizeof pid, "%d", getpid());
	if (!write_file(group, "cgroup.procs", pid))
		return 77;
	/* The group's is 1.5 CPUs; one above may say less. */
	return (int)eddy_usable_quota("");
}

static void
remove_group(const char *at)
{
	for (unsigned i = 0; rmdir(group) != 0 && i < 100; i++)
		(void)usleep(10000);
	if (enabled)
		(void)write_file(at, "cgroup.subtree_control", "-cpu");
	enabled = false;
}

/* Whether the group below `at` was made and has a quota of 1.5 CPUs. */
static bool
make_group(const char *at, bool v2)
{
	char path[300];

	(void)snprintf(group, sizeof group, "%s/eddy-test-%d", at, getpid());
	if (mkdir(group, 0755) != 0)
		return false;
	(void)snprintf(path, sizeof path, "%s/cpu.max", group);
	if (v2 && access(path, F_OK) != 0)
		enabled = write_file(at, "cgroup.subtree_control", "+cpu");
	if (v2 ? write_file(group, "cpu.max", "150000 100000")
	       : write_file(group, "cpu.cfs_period_us", "100000") &&
		     write_file(group, "cpu.cfs_quota_us", "150000"))
		return true;
	remove_group(at);
	return false;
}

static void
real_group(const char *name, const char *at, bool v2)
{
	uint64_t outside = eddy_usable_quota("");
	int want = outside < 2 ? (int)outside : 2;
	int ret;

	if (!make_group(at, v2)) {
		tap_skip(
		    name, "no cgroup with a CPU quota can be made at %s", at);
		return;
	}
	ret = in_child(in_group);
	remove_group(at);
	if (ret == 77)
		tap_skip(name, "this process cannot be moved to %s", group);
	else if (!tap_ok(ret == want, "%s", name))
		tap_diag("%d CPUs instead of %d", ret, want);
}

int
main(void)
{
	numa_begin(60);
	tree_begin();
	quotas();
	limits_of_memory();
	bad_values();
	long_paths();
	garbage();
	masks();
	child("without an affinity mask the possible CPUs count", no_affinity);
	child("where all is refused it is one CPU or more", nothing_at_all);
	child("without a mapping, affinity alone counts", no_memory);
	tree_put(SELF, "0::/\n", 5);
	tree_put(CG "cpu.max", "300000 100000\n", 14);
	child("no mapping is left", leaves_no_mapping);
	real_group("a real cgroup v2 with 1.5 CPUs", "/sys/fs/cgroup", true);
	real_group(
	    "a real cgroup v2 beside v1", "/sys/fs/cgroup/unified", true);
	real_group(
	    "a real cgroup v1 with 1.5 CPUs", "/sys/fs/cgroup/cpu", false);
	tree_end();
	return tap_end();
}
