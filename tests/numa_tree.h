/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * numa_tree.h - a directory that looks like /sys or the root of a system.
 *
 * A test fills tree_dir; it is emptied by tree_reset and goes at tree_end.
 * And a child whose system calls are refused.
 */
#ifndef EDDY_TESTS_NUMA_TREE_H
#define EDDY_TESTS_NUMA_TREE_H

#include "tests/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define N(a) (sizeof(a) / sizeof(a)[0])

static char tree_dir[64];

static inline void
tree_begin(void)
{
	const char *tmp = getenv("TMPDIR");

	/* Thousands of small files: better no disk behind them. */
	if (tmp == NULL || strlen(tmp) > 40 || *tmp != '/')
		tmp = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
	(void)snprintf(tree_dir, sizeof tree_dir, "%s/eddy-XXXXXX", tmp);
	if (mkdtemp(tree_dir) == NULL)
		tap_bail("mkdtemp %s: %d", tree_dir, errno);
}

static inline int
tree_remove(const char *path, const struct stat *st, int flag, struct FTW *at)
{
	(void)st;
	(void)flag;
	return at->level == 0 ? 0 : remove(path);
}

static inline void
tree_reset(void)
{
	if (nftw(tree_dir, tree_remove, 16, FTW_DEPTH | FTW_PHYS) != 0)
		tap_bail("cannot empty %s: %d", tree_dir, errno);
}

static inline void
tree_end(void)
{
	tree_reset();
	(void)rmdir(tree_dir);
}

/* tree_put - writes n bytes to a file below tree_dir, with its folders. */
static inline void
tree_put(const char *file, const char *text, size_t n)
{
	char path[5000];
	int fd;

	(void)snprintf(path, sizeof path, "%s/%s", tree_dir, file);
	for (char *s = path + strlen(tree_dir) + 1; *s != '\0'; s++)
		if (*s == '/') {
			*s = '\0';
			(void)mkdir(path, 0755);
			*s = '/';
		}
	(void)unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);
	if (fd < 0 || write(fd, text, n) != (ssize_t)n)
		tap_bail("cannot write %s: %d", path, errno);
	(void)close(fd);
}

/*
 * refuse - from now on in this process: each of the calls fails with err, or
 * if only is set, each other call ends the process with SIGSYS.  Needs no
 * privilege.  Returns whether the kernel does it.
 */
static inline bool
refuse(const int *calls, unsigned n, int err, bool only)
{
	struct sock_filter f[16];
	struct sock_fprog prog = {0, f};
	unsigned k = 0;

	f[k++] = (struct sock_filter)BPF_STMT(
	    BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (unsigned i = 0; i < n; i++)
		f[k++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
		    (unsigned)calls[i], (unsigned char)(n - i), 0);
	f[k++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
	    only ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ALLOW);
	f[k++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
	    only ? SECCOMP_RET_ALLOW : SECCOMP_RET_ERRNO | (unsigned)err);
	prog.len = (unsigned short)k;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) == 0;
}

/* in_child - what the body returns in a child; -1 if it ended otherwise. */
static inline int
in_child(int (*body)(void))
{
	pid_t pid = fork();
	int status;

	/* Not _exit: sanitizers make it more than one call. */
	if (pid == 0)
		(void)syscall(SYS_exit_group, body());
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		tap_bail("no child: %d", errno);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* guarded - zeroed memory of this size that ends where access ends. */
static inline void *
guarded(size_t size)
{
	size_t whole = (size + 65535) / 65536 * 65536; /* any page size */
	char *p = mmap(NULL, whole + 65536, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || mprotect(p + whole, 65536, PROT_NONE) != 0)
		tap_bail("no memory");
	return p + (whole - size) / 64 * 64;
}

static inline void
numa_begin(unsigned seconds)
{
	const char *seed = getenv("EDDY_SEED");

	tap.pid = getpid();
	tap.seed = (uint64_t)getpid();
	if (seed != NULL && *seed != '\0')
		tap.seed = strtoull(seed, NULL, 0);
	tap_diag("EDDY_SEED=%llu", (unsigned long long)tap.seed);
	tap_guard(seconds);
}

#endif /* EDDY_TESTS_NUMA_TREE_H */
