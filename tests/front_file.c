/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * front_file.c - arenas whose memory is a file: in memory, on a tmpfs of their
 * own, on the disk that the test runs on.
 *
 * Argument: the part that a process of its own does.
 */
#include "probe.h"

#include <dirent.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "eddy/eddy.h"

#define GIB ((size_t)1 << 30)

static struct {
	int (*create)(const struct eddy_arena_options *, unsigned *);
	void *(*alloc)(unsigned, size_t);
	void *(*aligned)(unsigned, size_t, size_t);
	int (*move)(unsigned, int);
	int (*node_of)(const void *);
	int (*discard)(void *, size_t, size_t);
	size_t (*purge)(unsigned);
	int (*prefault)(unsigned, size_t);
} api;

static bool
find_api(void)
{
	static const struct symbol f[] = {
	    {"eddy_arena_create_with", &api.create},
	    {"eddy_arena_malloc", &api.alloc},
	    {"eddy_arena_aligned_alloc", &api.aligned},
	    {"eddy_arena_move", &api.move},
	    {"eddy_node_of", &api.node_of},
	    {"eddy_discard", &api.discard},
	    {"eddy_purge_now", &api.purge},
	    {"eddy_prefault", &api.prefault},
	};

	return find_symbols(f, COUNT(f));
}

static struct eddy_arena_options
file_in(const char *directory, size_t size, unsigned flags)
{
	struct eddy_arena_options o = EDDY_ARENA_OPTIONS;

	o.flags = EDDY_ARENA_FILE | flags;
	o.directory = directory;
	o.file_size = size;
	return o;
}

static unsigned
create(const char *directory, size_t size, unsigned flags)
{
	struct eddy_arena_options o = file_in(directory, size, flags);
	unsigned a = 0;
	int err = api.create(&o, &a);

	if (err != 0) {
		tap_diag("eddy_arena_create_with: %s", strerror(err));
		_exit(1);
	}
	return a;
}

/* ---- what is there ---- */

/* The line of /proc/self/maps for an address. */
static const char *
map_of(const void *p)
{
	static char line[512];
	FILE *f = fopen("/proc/self/maps", "re");
	bool found = false;

	while (!found && f != NULL && fgets(line, sizeof line, f) != NULL) {
		char *rest;
		uintptr_t from = strtoull(line, &rest, 16);
		uintptr_t to = strtoull(rest + 1, NULL, 16);

		found = (uintptr_t)p >= from && (uintptr_t)p < to;
	}
	if (f != NULL)
		(void)fclose(f);
	return found ? line : "";
}

/* KiB that the file behind an address takes; -1: no right to know. */
static long
file_kib(const void *p)
{
	char path[128];
	char range[64];
	struct stat st;

	if (sscanf(map_of(p), "%63s", range) != 1)
		return -1;
	(void)snprintf(path, sizeof path, "/proc/self/map_files/%s", range);
	return stat(path, &st) == 0 ? (long)st.st_blocks / 2 : -1;
}

/* Pages of [p, p + size) that are in memory, whoever has them. */
static size_t
in_memory(void *p, size_t size)
{
	static unsigned char there[4096];
	size_t n = 0;

	if (size / PAGE > sizeof there || mincore(p, size, there) != 0)
		return SIZE_MAX;
	for (size_t i = 0; i < size / PAGE; i++)
		n += there[i] & 1;
	return n;
}

static int
n_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(d) != NULL)
		n++;
	(void)closedir(d);
	return n;
}

/* A tmpfs of so many KiB that nobody else sees, over the directory that this
 * process was given; NULL: it cannot be had. */
static const char *
small_tmpfs(unsigned kib)
{
	const char *dir = getenv("EDDY_TEST_DIR");
	char size[32];

	if (dir == NULL)
		return NULL;
	(void)snprintf(size, sizeof size, "size=%uk", kib);
	if ((unshare(CLONE_NEWNS) != 0 &&
		unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("eddy", dir, "tmpfs", 0, size) != 0)
		return NULL;
	return dir;
}

static long
used_kib(const char *dir)
{
	struct statfs s;

	if (statfs(dir, &s) != 0)
		return -1;
	return (
	    long)((s.f_blocks - s.f_bfree) * (unsigned long)s.f_bsize / KIB);
}

static bool
is_memory(const char *dir)
{
	struct statfs s;

	return statfs(dir, &s) == 0 && s.f_type == 0x01021994;
}

/* Refuses one kind of advice. */
static bool
refuse_advice(unsigned advice, int err)
{
	struct sock_filter f[] = {
	    BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
		offsetof(struct seccomp_data, args[2])),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, advice, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)err),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {.len = COUNT(f), .filter = f};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) == 0;
}

/* ---- parts: 0, 1, or 77 and why ---- */

static int
skip(const char *why)
{
	tap_diag("SKIP %s", why);
	return 77;
}

static int failed;

__attribute__((format(printf, 2, 3))) static bool
is(bool held, const char *fmt, ...)
{
	va_list ap;

	if (held)
		return true;
	failed = 1;
	va_start(ap, fmt);
	tap_vline("# not so: ", fmt, ap);
	va_end(ap);
	return false;
}

static int
part_options(void)
{
	struct eddy_arena_options o;
	struct {
		struct eddy_arena_options o;
		uint64_t later;
	} next;
	struct rlimit r = {.rlim_cur = MIB, .rlim_max = MIB};
	unsigned a = 77;
	int before = n_descriptors();

	errno = 0;
	o = file_in(NULL, 0, 0);
	is(api.create(&o, &a) == EINVAL, "no size");
	o = file_in(NULL, MIB, 4);
	is(api.create(&o, &a) == EINVAL, "an unknown flag");
	o = file_in(NULL, MIB, 0);
	o.size = 8;
	is(api.create(&o, &a) == EINVAL, "a size of options too small");
	o = file_in(NULL, MIB, 0);
	o.node = -2;
	is(api.create(&o, &a) == EINVAL, "node -2");
	o.node = 1023;
	is(api.create(&o, &a) == EINVAL, "node 1023");
	o = file_in(NULL, MIB, 0);
	o.flags = EDDY_ARENA_FILL;
	is(api.create(&o, &a) == EINVAL, "fill without a file");
	o.flags = 0;
	is(api.create(&o, &a) == EINVAL, "a size without a file");
	next.o = file_in(NULL, MIB, 0);
	next.o.size = sizeof next;
	next.later = 1;
	is(api.create(&next.o, &a) == E2BIG, "an option of the future");
	o = file_in("/nowhere/at/all", MIB, 0);
	is(api.create(&o, &a) == ENOENT, "no such directory");
	o = file_in("/proc/self/maps", MIB, 0);
	is(api.create(&o, &a) == ENOTDIR, "not a directory");
	o = file_in("/proc", MIB, 0);
	is(api.create(&o, &a) != 0, "in /proc");
	o = file_in(NULL, SIZE_MAX, 0);
	is(api.create(&o, &a) == ENOMEM, "more than the range");
	is(a == 77 && errno == 0, "arena and errno untouched");
	next.later = 0;
	is(api.create(&next.o, &a) == 0, "nothing of the future wanted");
	o = (struct eddy_arena_options)EDDY_ARENA_OPTIONS;
	is(api.create(&o, &a) == 0 && api.alloc(a, 100) != NULL,
	    "an arena without a file, and without a node");
	is(n_descriptors() == before, "no descriptor is left open");
	(void)setrlimit(RLIMIT_FSIZE, &r);
	o = file_in(NULL, 4 * (size_t)MIB, 0);
	is(api.create(&o, &a) == EFBIG,
	    "beyond RLIMIT_FSIZE, without a signal");
	return failed;
}

/* Blocks of all kinds of sizes, each filled at both ends. */
static const size_t sizes[] = {1, 16, 1000, 14 * KIB, 20 * KIB, 64 * KIB,
    100 * KIB, MIB, 2 * MIB, 3 * MIB + 5000, 40 * MIB};

static void
use_sizes(unsigned a, bool on_file)
{
	char *p[COUNT(sizes)];

	for (size_t i = 0; i < COUNT(sizes); i++) {
		p[i] = api.alloc(a, sizes[i]);
		if (!is(p[i] != NULL, "%zu bytes", sizes[i]))
			_exit(1);
		memset(p[i], (int)i + 1, sizes[i] < MIB ? sizes[i] : MIB);
		p[i][sizes[i] - 1] = (char)(i + 1);
		is(!on_file || strstr(map_of(p[i]), "eddy") != NULL ||
			strstr(map_of(p[i]), "(deleted)") != NULL,
		    "%zu bytes lie in the file: %s", sizes[i], map_of(p[i]));
	}
	for (size_t i = 0; i < COUNT(sizes); i++) {
		bool same = p[i][0] == (char)(i + 1) &&
			    p[i][sizes[i] - 1] == (char)(i + 1);

		is(same && p_usable(p[i]) >= sizes[i], "block %zu", i);
	}
	for (size_t i = 0; i < COUNT(sizes); i++) {
		p[i] = p_realloc(p[i], sizes[i] * 2 + 10);
		if (!is(p[i] != NULL, "realloc of %zu", sizes[i]))
			_exit(1);
		is(p[i][0] == (char)(i + 1) &&
			p[i][sizes[i] - 1] == (char)(i + 1),
		    "what realloc of %zu keeps", sizes[i]);
		is(!on_file || strstr(map_of(p[i]), "eddy") != NULL ||
			strstr(map_of(p[i]), "(deleted)") != NULL,
		    "realloc of %zu stays in the file", sizes[i]);
		p[i][sizes[i] * 2 + 9] = 1;
	}
	for (size_t i = 0; i < COUNT(sizes); i++)
		p_free(p[i]);
}

static int
part_memory(void)
{
	unsigned a = create(NULL, 3 * GIB, 0);
	char *more[200];
	char *giant;
	char *p;
	long kib;
	size_t n = 0;

	use_sizes(a, true);
	giant = api.alloc(a, GIB + 100 * MIB);
	p = api.alloc(a, 64 * MIB);
	if (!is(giant != NULL && p != NULL, "a block above 1 GiB"))
		return 1;
	giant[GIB + 50 * MIB] = 1;
	memset(p, 1, 64 * MIB);
	is(api.node_of(p) == -1 && errno == ENOENT, "it is on no node");
	is(api.move(a, 0) == EINVAL, "and cannot be moved");
	kib = file_kib(p);
	is(kib < 0 || kib >= 64 * KIB, "the file has what was touched");
	is(api.discard(p, MIB, 62 * MIB) == 0 && p[MIB] == 0 && p[0] == 1 &&
		p[62 * MIB] == 0 && p[63 * MIB] == 1,
	    "discarded memory is zero, its neighbours are as they were");
	is(kib < 0 || file_kib(p) < kib - 60 * KIB,
	    "discarded memory is given back: %ld of %ld KiB", file_kib(p), kib);
	while (n < COUNT(more) && (more[n] = api.alloc(a, 16 * MIB)) != NULL)
		n++;
	is(errno == ENOMEM && n >= 90 && n < 2 * GIB / (16 * MIB),
	    "the size is a limit: %zu blocks", n);
	p_free(giant);
	p_free(p);
	while (n > 0)
		p_free(more[--n]);
	use_sizes(a, true);
	is(api.purge(a) >= 40 * MIB, "a purge gives back");
	is(kib < 0 || file_kib(giant) < 256, "all of it: %ld KiB",
	    file_kib(giant));
	p = api.alloc(a, GIB + 10 * MIB);
	is(p == giant, "a giant can be had again, where it was");
	return failed;
}

static int
part_disk(void)
{
	unsigned a = create(".", GIB, 0);
	char *p[64];
	long full;

	use_sizes(a, true);
	for (size_t i = 0; i < COUNT(p); i++) {
		p[i] = api.alloc(a, 512 * KIB);
		memset(p[i], 1, 512 * KIB);
	}
	(void)msync(p[0], 512 * KIB, MS_SYNC);
	(void)syncfs(open(".", O_RDONLY | O_CLOEXEC));
	full = file_kib(p[0]);
	for (size_t i = 0; i < COUNT(p); i += 2)
		p_free(p[i]);
	(void)api.purge(a);
	for (size_t i = 1; i < COUNT(p); i += 2)
		is(p[i][0] == 1 && p[i][512 * KIB - 1] == 1, "block %zu", i);
	if (full < 0)
		return failed != 0 ? failed : skip("no right to map_files");
	is(full >= 32 * KIB && file_kib(p[1]) <= full - 15 * KIB,
	    "blocks of the disk are given back: %ld of %ld KiB", file_kib(p[1]),
	    full);
	return failed;
}

/* A file system that cannot punch holes. */
static int
part_kept(void)
{
	enum { BLOCK = 256 * KIB };
	unsigned a;
	char *p[128];
	long full;
	size_t left = 0;

	if (!refuse_advice(MADV_REMOVE, EOPNOTSUPP))
		return skip("no seccomp");
	a = create(".", GIB, 0);
	for (size_t i = 0; i < COUNT(p); i++) {
		p[i] = api.alloc(a, BLOCK);
		memset(p[i], (int)i, BLOCK);
	}
	full = probe_rss_kib();
	for (size_t i = 0; i < COUNT(p); i++)
		if (i % 2 == 0)
			p_free(p[i]);
	is(api.purge(a) >= COUNT(p) / 2 * BLOCK, "a purge gives back");
	is(probe_rss_kib() <= full - (long)COUNT(p) / 2 * BLOCK / KIB * 9 / 10,
	    "the process has it no more: %ld of %ld KiB", probe_rss_kib(),
	    full);
	for (size_t i = 0; i < COUNT(p); i += 2)
		left += in_memory(p[i], BLOCK);
	is(is_memory(".") || left < COUNT(p) / 2 * BLOCK / PAGE / 20,
	    "nor has the cache: %zu pages", left);
	for (size_t i = 1; i < COUNT(p); i += 2)
		is(p[i][0] == (char)i && p[i][BLOCK - 1] == (char)i,
		    "block %zu", i);
	for (size_t i = 0; i < COUNT(p); i += 2) {
		p[i] = api.alloc(a, BLOCK);
		memset(p[i], (int)i, BLOCK);
	}
	for (size_t i = 0; i < COUNT(p); i++) {
		is(p[i][0] == (char)i && p[i][BLOCK - 1] == (char)i,
		    "block %zu, later", i);
		p_free(p[i]);
	}
	(void)api.purge(a);
	use_sizes(a, true);
	is(api.discard(p[0], 0, 0) != 0, "what is free cannot be discarded");
	return failed;
}

/* Blocks of one size until there are no more, each written. */
static size_t
fill_with(unsigned a, size_t size, char **p, size_t most)
{
	size_t n = 0;

	while (n < most && (p[n] = api.alloc(a, size)) != NULL)
		memset(p[n++], 1, size);
	return n;
}

static int
part_full(void)
{
	enum { ALL = 24 * MIB, MANY = 4096 };
	static char *p[MANY];
	static char *small[MANY];
	const char *dir = small_tmpfs(ALL / KIB);
	char *large;
	size_t n;
	size_t m;
	unsigned a;
	uint64_t rng = tap.seed;

	if (dir == NULL)
		return skip("no tmpfs of its own");
	a = create(dir, 64 * MIB, EDDY_ARENA_FILL);
	n = fill_with(a, 100 * KIB, p, MANY);
	is(errno == ENOMEM && n * 100 * KIB > ALL * 9 / 10 &&
		n * 100 * KIB <= ALL,
	    "NULL when the file system is full: %zu blocks", n);
	m = fill_with(a, 3000, small, MANY);
	is(m < MANY, "for small blocks as well: %zu", m);
	is(api.alloc(a, 3 * MIB) == NULL, "for large ones as well");
	is(p_realloc(p[0], 10 * MIB) == NULL && p[0][0] == 1, "for realloc");
	for (size_t i = 0; i < n; i += 2) {
		p_free(p[i]);
		p[i] = NULL;
	}
	is((large = api.alloc(a, 8 * MIB)) != NULL,
	    "what is free and dirty is given back for another");
	p_free(large);
	for (size_t i = 0; i < 20000; i++) {
		size_t k = 2 * (tap_random(&rng) % (n / 2));
		size_t size =
		    1 + tap_random(&rng) % (i % 16 == 0 ? 3 * MIB : 64 * KIB);
		char *q;

		if (p[k] != NULL && tap_random(&rng) % 2 == 0) {
			p_free(p[k]);
			p[k] = NULL;
		}
		q = p[k] != NULL ? p_realloc(p[k], size) : api.alloc(a, size);
		if (q != NULL)
			memset(p[k] = q, 1, size);
	}
	for (size_t i = 1; i < n; i += 2)
		is(p[i][0] == 1 && p[i][100 * KIB - 1] == 1, "block %zu", i);
	return failed;
}

/* A kernel that cannot populate pages and say whether it could. */
static int
part_full_old(void)
{
	if (!refuse_advice(23, EINVAL))
		return skip("no seccomp");
	return part_full();
}

static int
part_gone(void)
{
	const char *dir = small_tmpfs(16 * KIB);
	struct eddy_arena_options o;
	unsigned a;
	char *p;
	long used;

	if (dir == NULL)
		return skip("no tmpfs of its own");
	a = create(dir, 64 * MIB, 0);
	is(used_kib(dir) == 0, "a new arena takes no room: %ld KiB",
	    used_kib(dir));
	p = api.alloc(a, 12 * MIB);
	is(used_kib(dir) == 0, "nor does a block: %ld KiB", used_kib(dir));
	memset(p, 1, 12 * MIB);
	used = used_kib(dir);
	is(used >= 12 * KIB, "what is touched does: %ld KiB", used);
	o = file_in(dir, MIB, 0);
	is(api.create(&o, &a) == 0, "there is room for one more");
	memset(api.alloc(a, MIB), 1, MIB);
	memset(api.alloc(a, MIB), 1, MIB - 200 * KIB);
	p_free(p);
	(void)malloc_trim(0);
	is(used_kib(dir) < 3 * KIB, "malloc_trim gives back: %ld KiB",
	    used_kib(dir));
	return failed;
}

/* Without fill a page that has no room is a SIGBUS: in a child. */
static int
part_sparse(void)
{
	const char *dir = small_tmpfs(8 * KIB);
	char *p;
	unsigned a;

	if (dir == NULL)
		return skip("no tmpfs of its own");
	a = create(dir, 64 * MIB, 0);
	p = api.alloc(a, 32 * MIB);
	is(p != NULL, "more than there is room for");
	if (p != NULL)
		memset(p, 1, 32 * MIB);
	return failed;
}

static int
part_full_at_once(void)
{
	const char *dir = small_tmpfs(64);
	struct eddy_arena_options o = file_in(dir, MIB, 0);
	char path[128];
	char zero[65536] = {0};
	unsigned a;
	int fd;

	if (dir == NULL)
		return skip("no tmpfs of its own");
	(void)snprintf(path, sizeof path, "%s/full", dir);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	while (write(fd, zero, sizeof zero) > 0)
		continue;
	is(api.create(&o, &a) == ENOSPC, "no room for a page");
	return failed;
}

/* ---- children ---- */

static bool
ends_by(void (*run)(char *), char *p, int sig)
{
	pid_t pid = fork();
	int st;

	if (pid == 0) {
		probe_child_begin(20);
		run(p);
		_exit(0);
	}
	while (waitpid(pid, &st, 0) < 0 && errno == EINTR)
		continue;
	return sig == 0 ? WIFEXITED(st) && WEXITSTATUS(st) == 0
			: WIFSIGNALED(st) && WTERMSIG(st) == sig;
}

static unsigned of_parent;

static void
touch(char *p)
{
	p[0] = 2;
}

static void
in_child(char *p)
{
	unsigned mine;
	char *q;

	errno = 0;
	if (api.alloc(of_parent, 100) != NULL || errno != ENOMEM)
		_exit(1);
	errno = 0;
	if (api.aligned(of_parent, 4096, 3 * MIB) != NULL || errno != ENOMEM)
		_exit(2);
	if (p_usable(p) < 5 * MIB || p_realloc(p, 40 * MIB) != NULL)
		_exit(3);
	if (api.discard(p, 0, MIB) != EINVAL)
		_exit(4);
	if (api.prefault(of_parent, 8 * MIB) != ENOMEM)
		_exit(5);
	p_free(p);
	(void)api.purge(of_parent);
	(void)malloc_trim(0);
	mine = create(NULL, 64 * MIB, 0);
	q = api.alloc(mine, 10 * MIB);
	if (q == NULL)
		_exit(6);
	memset(q, 3, 10 * MIB);
	for (size_t i = 0; i < 1000; i++)
		if (p_malloc(i * 1000) == NULL)
			_exit(7);
	if (!ends_by(touch, q, SIGSEGV) || q[0] != 3)
		_exit(8);
}

static int
part_fork(void)
{
	char *p;
	char *q;

	of_parent = create(NULL, 256 * MIB, 0);
	p = api.alloc(of_parent, 5 * MIB);
	q = api.alloc(of_parent, 100);
	memset(p, 1, 5 * MIB);
	*q = 1;
	is(ends_by(touch, p, SIGSEGV), "a child has not its parent's blocks");
	is(ends_by(in_child, p, 0), "it can do all else");
	is(p[0] == 1 && p[5 * MIB - 1] == 1 && *q == 1,
	    "and its parent does not notice");
	p_free(p);
	p_free(q);
	use_sizes(of_parent, false);
	return failed;
}

/* Options that touch what is freed. */
static void
free_it(char *p)
{
	p_free(p);
}

static int
part_junk(void)
{
	char *p;

	of_parent = create(NULL, 64 * MIB, 0);
	p = api.alloc(of_parent, 5 * MIB);
	is(ends_by(free_it, p, 0), "a child may free it with junk:true");
	return failed;
}

static int
part_at_once(void)
{
	unsigned a = create(NULL, 256 * MIB, 0);
	char *p[16];
	long kib;

	for (size_t i = 0; i < COUNT(p); i++) {
		p[i] = api.alloc(a, i % 2 == 0 ? MIB : 3 * MIB);
		memset(p[i], 1, MIB);
	}
	kib = file_kib(p[0]);
	for (size_t i = 1; i < COUNT(p); i++)
		p_free(p[i]);
	is(kib < 0 || file_kib(p[0]) <= kib - 15 * KIB,
	    "given back when it is freed: %ld of %ld KiB", file_kib(p[0]), kib);
	of_parent = a;
	is(ends_by(free_it, p[0], 0), "a child may free it");
	use_sizes(a, true);
	return failed;
}

/* ---- */

/* Each call of the creation refused. */
static int
part_refused(void)
{
	static const struct {
		int nr;
		int err;
	} call[] = {
	    {SYS_memfd_create, EPERM},
	    {SYS_ftruncate, EPERM},
	    {SYS_lseek, ENOSYS},
	    {SYS_mmap, ENOMEM},
	    {SYS_mmap, EPERM},
	    {SYS_mprotect, ENOMEM},
	};

	(void)p_malloc(1);
	for (size_t i = 0; i < COUNT(call); i++) {
		char why[64];
		pid_t pid = fork();

		if (pid == 0) {
			struct eddy_arena_options o = file_in(NULL, MIB, 0);
			unsigned a = 77;
			char *p = p_malloc(100);
			int err;

			probe_child_begin(20);
			if (!probe_refuse(&call[i].nr, 1, call[i].err))
				_exit(0);
			err = api.create(&o, &a);
			p_free(p);
			/* The arena's own page may do without. */
			if (call[i].nr == SYS_mprotect)
				_exit(err != 0 || api.alloc(a, 10) == NULL ? 0
									   : 1);
			_exit(err == call[i].err && a == 77 &&
				      p_malloc(100) != NULL
				  ? 0
				  : 2);
		}
		is(probe_wait(pid, why, sizeof why), "call %d: %s", call[i].nr,
		    why);
	}
	return failed;
}

static unsigned shared_arena;
static struct flag stop;

static void *
worker(void *arg)
{
	uint64_t rng = tap.seed + (uintptr_t)arg;
	char *p[64] = {NULL};
	size_t size[64];
	uintptr_t bad = 0;

	while (!flag_is_set(&stop)) {
		size_t k = tap_random(&rng) % COUNT(p);

		if (p[k] != NULL) {
			bad |= p[k][0] != (char)(k + (uintptr_t)arg) ||
			       p[k][size[k] - 1] != p[k][0];
			p_free(p[k]);
		}
		size[k] = 1 + tap_random(&rng) % (k == 0     ? 5 * MIB
						     : k < 8 ? 100000
							     : 2000);
		p[k] = api.alloc(shared_arena, size[k]);
		if (p[k] != NULL)
			p[k][0] = p[k][size[k] - 1] =
			    (char)(k + (uintptr_t)arg);
	}
	return (void *)bad;
}

static int
part_threads(void)
{
	pthread_t t[4];
	uint64_t until = probe_ns() + (uint64_t)(probe_seconds(2) * 1e9);
	void *bad;

	shared_arena =
	    create(NULL, 2 * GIB, tap.seed % 2 == 0 ? EDDY_ARENA_FILL : 0);
	for (uintptr_t i = 0; i < COUNT(t); i++)
		(void)pthread_create(&t[i], NULL, worker, (void *)i);
	while (probe_ns() < until) {
		(void)api.purge(shared_arena);
		(void)create(NULL, 10 * MIB, 0);
		(void)usleep(20000);
	}
	flag_set(&stop);
	for (size_t i = 0; i < COUNT(t); i++) {
		(void)pthread_join(t[i], &bad);
		is(bad == NULL, "thread %zu found its blocks as it left them",
		    i);
	}
	return failed;
}

/* ---- */

static const struct part {
	const char *name;
	int (*run)(void);
	const char *conf;
	int sig; /* that it ends by */
	const char *says;
} parts[] = {
    {"options", part_options, "", 0, "options that do not go together, errors"},
    {"memory", part_memory, "", 0, "a memory file: blocks of all sizes"},
    {"limited", part_memory, "lg_range:33", 0, "in a small range as well"},
    {"claim", part_memory, "rseq:false", 0, "and in claim mode"},
    {"disk", part_disk, "", 0, "a file on disk: its room is given back"},
    {"kept", part_kept, "", 0,
	"where no holes can be punched pages leave memory and stay on disk"},
    {"gone", part_gone, "", 0, "tmpfs: what is touched takes room, no more"},
    {"full", part_full, "", 0, "a full file system is ENOMEM with fill"},
    {"full-old", part_full_old, "", 0, "on kernels that cannot populate, too"},
    {"sparse", part_sparse, "", SIGBUS, "and SIGBUS without"},
    {"full-at-once", part_full_at_once, "", 0, "no arena where no page is"},
    {"fork", part_fork, "", 0, "a child has the arena and not its memory"},
    {"junk", part_junk, "junk:true", 0, "junk leaves that alone"},
    {"at-once", part_at_once, "dirty_decay_ms:0", 0, "dirty_decay_ms:0"},
    {"muzzy", part_memory, "muzzy_decay_ms:1000", 0, "muzzy_decay_ms:1000"},
    {"refused", part_refused, "", 0, "calls that the kernel refuses"},
    {"threads", part_threads, "", 0, "threads that allocate, purge, create"},
};

static void
run(const struct part *p)
{
	char dir[] = "/tmp/eddy-file-XXXXXX";
	pid_t pid;
	int st;

	if (mkdtemp(dir) != NULL)
		(void)setenv("EDDY_TEST_DIR", dir, 1);
	pid = fork();
	if (pid == 0) {
		char name[32];
		char seed[32];

		(void)snprintf(
		    seed, sizeof seed, "%llu", (unsigned long long)tap.seed);
		(void)setenv("EDDY_SEED", seed, 1);
		(void)setenv("EDDY_TAP_CHILD", "1", 1);
		if (*p->conf != '\0')
			(void)setenv("EDDY_CONF", p->conf, 1);
		(void)snprintf(name, sizeof name, "%s", p->name);
		probe_child_begin(120);
		tap_exec(name, name);
	}
	while (waitpid(pid, &st, 0) < 0 && errno == EINTR)
		continue;
	(void)rmdir(dir);
	if (WIFEXITED(st) && WEXITSTATUS(st) == 77) {
		tap_skip(p->says, "see above");
		return;
	}
	if (!tap_ok(p->sig == 0 ? WIFEXITED(st) && WEXITSTATUS(st) == 0
				: WIFSIGNALED(st) && WTERMSIG(st) == p->sig,
		"%s", p->says))
		tap_diag("%s: status %#x", p->name, st);
}

int
main(int argc, char **argv)
{
	tap_guard(400);
	tap_begin(argv);
	if (!find_api())
		tap_skip_all("another allocator");
	for (size_t i = 0; i < COUNT(parts); i++)
		if (argc < 2)
			run(&parts[i]);
		else if (strcmp(argv[1], parts[i].name) == 0) {
			probe_child_begin(120);
			return parts[i].run();
		}
	return tap_end();
}
