/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * socket.h - a place where other processes can ask, and a page that they can
 * read.
 *
 * Layer     os (L1).
 * Progress  blocking in the kernel only.  Sockets do not block but in
 *           eddy_os_poll, which is for threads of the library's own.
 * Errors    0 or a result, or a negative errno value.  errno is untouched.
 * Context   any thread; async-signal-safe.
 * Memory    descriptors, closed at exec.  They have high numbers, so that the
 *           program's are what they would be without them.
 */
#ifndef EDDY_OS_SOCKET_H
#define EDDY_OS_SOCKET_H

#include <poll.h>
#include <sys/types.h>

#include "lib/base/base.h"

/* Characters of the name of a Unix socket. */
#define EDDY_SOCKET_NAME 107

/*
 * eddy_os_listen - a stream socket that listens under a name, for its owner
 * alone (mode 0600 from the first moment on).
 *
 * name: a path, or "@" and an abstract name.
 * Returns: a descriptor; -EADDRINUSE: something has the name.
 */
EDDY_MUST_USE int eddy_os_listen(const char *name);

/* Whether somebody listens under a path: 0; -ECONNREFUSED: a socket that nobody
 * listens to any more; -EEXIST: something that is no socket; others. */
EDDY_MUST_USE int eddy_os_listens(const char *path);

/* A descriptor that only names what lies at a path; follows no link. */
EDDY_MUST_USE int eddy_os_open_name(const char *path);

/* Device and inode of a descriptor, folded into one number; 0: not open. */
uint64_t eddy_os_identity(int fd);

/* The same of a path. */
uint64_t eddy_os_identity_at(const char *path);

int eddy_os_unlink(const char *path);
EDDY_MUST_USE int eddy_os_rename(const char *from, const char *to);

/* The next connection; -EAGAIN: none waits. */
EDDY_MUST_USE int eddy_os_accept(int fd);

/* Whether the other end belongs to this process's user, or to root. */
bool eddy_os_peer_is_ours(int fd);

/* As recv(2), send(2): never waits, never raises SIGPIPE. */
EDDY_MUST_USE ssize_t eddy_os_receive(int fd, void *p, size_t n);
EDDY_MUST_USE ssize_t eddy_os_send(int fd, const void *p, size_t n);

/* Ends a connection, whoever else has the descriptor; who waits for one is
 * woken. */
void eddy_os_shutdown(int fd);

/* As poll(2): ms to wait, -1 for ever. */
int eddy_os_poll(struct pollfd *p, unsigned n, int64_t ms);

/*
 * eddy_os_share - memory that others see as a file without a name: size bytes
 * of zeros, of fixed length, that later opens cannot write (before Linux 5.1
 * they can).  Forked children do not have it.
 *
 * name:    what /proc/PID/fd shows behind "/memfd:".
 * ret_fd:  its descriptor, only to be found by.
 * Returns: NULL: the kernel does not do that.
 */
void *eddy_os_share(const char *name, size_t size, int *ret_fd);

#endif /* EDDY_OS_SOCKET_H */
