/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/os/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

#include "lib/arch/syscall.h"
#include "lib/os/file.h"

#ifndef MFD_NOEXEC_SEAL
#	define MFD_NOEXEC_SEAL 8U
#endif
#ifndef F_SEAL_FUTURE_WRITE
#	define F_SEAL_FUTURE_WRITE 0x0010
#endif

/* Descriptors are moved to this number and above, if these are allowed. */
#define HIGH    192
#define BACKLOG 16

static int
move_high(long fd)
{
	long high;

	if (fd < 0 || fd >= HIGH)
		return (int)fd;
	high = eddy_syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, HIGH, 0, 0, 0);
	if (high < 0)
		return (int)fd;
	eddy_os_file_close((int)fd);
	return (int)high;
}

/* Returns the length of the address; 0: the name does not fit. */
static socklen_t
make_address(struct sockaddr_un *a, const char *name)
{
	size_t n = strlen(name);

	if (n == 0 || n > EDDY_SOCKET_NAME)
		return 0;
	memset(a, 0, sizeof(*a));
	a->sun_family = AF_UNIX;
	memcpy(a->sun_path, name, n);
	if (name[0] != '@')
		return sizeof(*a);
	a->sun_path[0] = '\0';
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
}

static long
make_socket(void)
{
	return eddy_syscall(SYS_socket, AF_UNIX,
	    SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, 0, 0, 0);
}

int
eddy_os_listen(const char *name)
{
	struct sockaddr_un a;
	socklen_t n = make_address(&a, name);
	long err;
	int fd;

	if (n == 0)
		return -ENAMETOOLONG;
	fd = move_high(make_socket());
	if (fd < 0)
		return fd;
	/* The file's mode is that of the socket when it gets its name. */
	err = eddy_syscall(SYS_fchmod, fd, 0600, 0, 0, 0, 0);
	if (err == 0)
		err = eddy_syscall(SYS_bind, fd, &a, n, 0, 0, 0);
	if (err == 0)
		err = eddy_syscall(SYS_listen, fd, BACKLOG, 0, 0, 0, 0);
	if (err == 0)
		return fd;
	eddy_os_file_close(fd);
	return (int)err;
}

int
eddy_os_listens(const char *path)
{
	struct sockaddr_un a;
	struct stat st;
	socklen_t n = make_address(&a, path);
	long err = eddy_syscall(
	    SYS_newfstatat, AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW, 0, 0);
	long fd;

	if (err != 0)
		return (int)err;
	/* To connect would be refused as well. */
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	fd = make_socket();
	if (fd < 0)
		return (int)fd;
	err = n == 0 ? -ENAMETOOLONG
		     : eddy_syscall(SYS_connect, fd, &a, n, 0, 0, 0);
	eddy_os_file_close((int)fd);
	/* EAGAIN: so many ask there that none more fits. */
	return err == -EAGAIN ? 0 : (int)err;
}

int
eddy_os_open_name(const char *path)
{
	return move_high(eddy_syscall(SYS_openat, AT_FDCWD, path,
	    O_PATH | O_NOFOLLOW | O_CLOEXEC, 0, 0, 0));
}

static uint64_t
identity(const struct stat *st)
{
	uint64_t v = (uint64_t)st->st_dev << 40 ^ (uint64_t)st->st_ino;

	return v != 0 ? v : 1;
}

uint64_t
eddy_os_identity(int fd)
{
	struct stat st;

	return eddy_syscall(SYS_fstat, fd, &st, 0, 0, 0, 0) == 0 ? identity(&st)
								 : 0;
}

uint64_t
eddy_os_identity_at(const char *path)
{
	struct stat st;

	return eddy_syscall(SYS_newfstatat, AT_FDCWD, path, &st,
		   AT_SYMLINK_NOFOLLOW, 0, 0) == 0
		   ? identity(&st)
		   : 0;
}

int
eddy_os_unlink(const char *path)
{
	return (int)eddy_syscall(SYS_unlinkat, AT_FDCWD, path, 0, 0, 0, 0);
}

int
eddy_os_rename(const char *from, const char *to)
{
	return (int)eddy_syscall(
	    SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0, 0);
}

int
eddy_os_accept(int fd)
{
	return move_high(eddy_syscall(
	    SYS_accept4, fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK, 0, 0));
}

bool
eddy_os_peer_is_ours(int fd)
{
	struct ucred c;
	socklen_t n = sizeof(c);

	if (eddy_syscall(
		SYS_getsockopt, fd, SOL_SOCKET, SO_PEERCRED, &c, &n, 0) != 0 ||
	    n != sizeof(c))
		return false;
	return c.uid == 0 ||
	       c.uid == (uid_t)eddy_syscall(SYS_geteuid, 0, 0, 0, 0, 0, 0);
}

ssize_t
eddy_os_receive(int fd, void *p, size_t n)
{
	return eddy_syscall(SYS_recvfrom, fd, p, n, MSG_DONTWAIT, 0, 0);
}

ssize_t
eddy_os_send(int fd, const void *p, size_t n)
{
	return eddy_syscall(
	    SYS_sendto, fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0);
}

void
eddy_os_shutdown(int fd)
{
	(void)eddy_syscall(SYS_shutdown, fd, SHUT_RDWR, 0, 0, 0, 0);
}

int
eddy_os_poll(struct pollfd *p, unsigned n, int64_t ms)
{
	struct timespec t = {
	    .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	return (int)eddy_syscall(
	    SYS_ppoll, p, n, ms < 0 ? NULL : &t, NULL, 0, 0);
}

/* Nobody shortens it, which would be a SIGBUS here. */
static bool
seal(int fd)
{
	const int length = F_SEAL_SHRINK | F_SEAL_GROW;

	return eddy_syscall(SYS_fcntl, fd, F_ADD_SEALS,
		   length | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL, 0, 0, 0) == 0 ||
	       eddy_syscall(SYS_fcntl, fd, F_ADD_SEALS, length | F_SEAL_SEAL, 0,
		   0, 0) == 0;
}

void *
eddy_os_share(const char *name, size_t size, int *ret_fd)
{
	unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	long fd = eddy_syscall(
	    SYS_memfd_create, name, flags | MFD_NOEXEC_SEAL, 0, 0, 0, 0);
	long p = -ENOMEM;

	if (fd == -EINVAL)
		fd = eddy_syscall(SYS_memfd_create, name, flags, 0, 0, 0, 0);
	fd = move_high(fd);
	if (fd < 0)
		return NULL;
	if (eddy_syscall(SYS_ftruncate, fd, size, 0, 0, 0, 0) == 0)
		p = eddy_syscall(SYS_mmap, 0, size, PROT_READ | PROT_WRITE,
		    MAP_SHARED, fd, 0);
	if (p < 0 && p > -4096) {
		eddy_os_file_close((int)fd);
		return NULL;
	}
	if (seal((int)fd) &&
	    eddy_syscall(SYS_madvise, p, size, MADV_DONTFORK, 0, 0, 0) == 0) {
		*ret_fd = (int)fd;
		return (void *)p;
	}
	(void)eddy_syscall(SYS_munmap, p, size, 0, 0, 0, 0);
	eddy_os_file_close((int)fd);
	return NULL;
}
