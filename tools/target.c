/* SPDX-License-Identifier: BSD-2-Clause */
/* target.c - processes, their pages and channels (lib/ctl/control.h). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "lib/ctl/control_page.h"
#include "tools/eddyctl.h"

#define LINK     "/memfd:" EDDY_CONTROL_FILE
#define MAX_TEXT ((size_t)256 << 20) /* of an answer */

static uint64_t
now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ------------------------------------------------------------------ */
/* The page */

/* The page that a descriptor of the process stands for; NULL: it does not. */
static struct eddy_control_page *
map_page(int folder, const char *number)
{
	char link[64];
	struct stat st;
	void *p = MAP_FAILED;
	ssize_t n = readlinkat(folder, number, link, sizeof(link) - 1);
	int fd;

	if (n < (ssize_t)strlen(LINK) || strncmp(link, LINK, strlen(LINK)) != 0)
		return NULL;
	fd = openat(folder, number, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) == 0 && st.st_size == (off_t)EDDY_CONTROL_SIZE)
		p = mmap(NULL, EDDY_CONTROL_SIZE, PROT_READ, MAP_SHARED, fd, 0);
	(void)close(fd);
	if (p == MAP_FAILED)
		return NULL;
	if (eddy_control_page_is(p))
		return p;
	(void)munmap(p, EDDY_CONTROL_SIZE);
	return NULL;
}

/* The words of one refresh; what was never refreshed has none. */
static void
copy_figures(struct eddy_control_page *page, struct figures *f)
{
	uint64_t word[EDDY_CONTROL_N_WORDS] = {0};
	char names[EDDY_CONTROL_NAMES];
	char *rest = names;
	uint64_t shown;

	do {
		shown = eddy_board_look(&page->board);
		for (unsigned i = 0; i < EDDY_CONTROL_N_WORDS; i++)
			word[i] = eddy_board_read(
			    &page->slot[eddy_board_slot(shown) % 2][i]);
	} while (!eddy_board_same(&page->board, shown));
	memcpy(names, page->names, sizeof(names));
	names[sizeof(names) - 1] = '\0';
	f->n = 0;
	for (char *s; (s = strsep(&rest, " ")) != NULL && *s != '\0' &&
		      f->n < page->n_words && f->n < MAX_WORDS;
	     f->n++) {
		(void)snprintf(f->name[f->n], sizeof(f->name[0]), "%s", s);
		f->value[f->n] = word[f->n];
	}
}

static void
take_page(struct eddy_control_page *page, struct target *t)
{
	uint64_t now;
	uint64_t time;

	t->has_page = true;
	t->socket = page->socket;
	t->inner_pid = page->pid;
	(void)snprintf(t->version, sizeof(t->version), "%.*s",
	    (int)sizeof(page->version), page->version);
	(void)snprintf(t->name, sizeof(t->name), "%.*s",
	    (int)sizeof(page->name), page->name);
	copy_figures(page, &t->figures);
	now = now_ms();
	time = figure(t, "time");
	t->figures.age_ms = now > time ? now - time : 0;
}

/* A line of /proc/PID/status; its last word, which is the innermost id. */
static long
innermost_pid(pid_t pid)
{
	char path[64];
	char line[256];
	FILE *f;
	long ret = pid;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	if (f == NULL)
		return ret;
	while (fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, "NSpid:", 6) == 0) {
			char *last = strrchr(line, '\t');

			if (last != NULL)
				ret = strtol(last + 1, NULL, 10);
			break;
		}
	(void)fclose(f);
	return ret;
}

/* Returns false: the folder cannot be read. */
static bool
find_page(struct target *t)
{
	char path[64];
	struct dirent *e;
	DIR *d;
	long inner = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)t->pid);
	d = opendir(path);
	if (d == NULL)
		return false;
	while (!t->has_page && (e = readdir(d)) != NULL) {
		struct eddy_control_page *page = map_page(dirfd(d), e->d_name);

		if (page == NULL)
			continue;
		if (inner == 0)
			inner = innermost_pid(t->pid);
		/* A forked child has its parent's, until it has its own. */
		if (page->pid == (uint32_t)inner)
			take_page(page, t);
		else
			t->parents_page = true;
		(void)munmap(page, EDDY_CONTROL_SIZE);
	}
	(void)closedir(d);
	return true;
}

bool
read_figures(struct target *t)
{
	if (t->pid == 0)
		return false;
	t->has_page = false;
	return find_page(t) && t->has_page;
}

uint64_t
figure(const struct target *t, const char *name)
{
	for (unsigned i = 0; i < t->figures.n; i++)
		if (strcmp(t->figures.name[i], name) == 0)
			return t->figures.value[i];
	return 0;
}

/* ------------------------------------------------------------------ */
/* Processes */

bool
look_at(pid_t pid, struct target *t)
{
	char path[64];
	char buf[512];
	char *open_;
	char *close_;

	*t = (struct target){.pid = pid, .socket = -1};
	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (!read_text(path, buf, sizeof(buf)))
		return false;
	open_ = strchr(buf, '(');
	close_ = strrchr(buf, ')');
	if (open_ == NULL || close_ == NULL || close_ < open_)
		return false;
	*close_ = '\0';
	(void)snprintf(t->comm, sizeof(t->comm), "%s", open_ + 1);
	t->state = close_[1] == ' ' ? close_[2] : '?';
	return find_page(t);
}

bool
is_stopped(const struct target *t)
{
	return t->state == 'T' || t->state == 't';
}

int
find_target(const char *arg, struct target *t)
{
	char *end;
	long pid;

	if (strchr(arg, '/') != NULL) {
		*t = (struct target){.path = arg, .socket = -1};
		(void)snprintf(t->comm, sizeof(t->comm), "%.31s", arg);
		return DONE;
	}
	errno = 0;
	pid = strtol(arg, &end, 10);
	if (errno != 0 || *end != '\0' || end == arg || pid <= 0 ||
	    pid > INT32_MAX) {
		complain("%s is no process id and no path of a socket", arg);
		return USAGE;
	}
	if (look_at((pid_t)pid, t) && t->state != 'Z')
		return DONE;
	if (t->state == 'Z')
		complain("%ld (%s) has ended", pid, t->comm);
	else if (t->comm[0] == '\0')
		complain("%ld: no such process", pid);
	else
		complain("%ld (%s): %s; be its user or root", pid, t->comm,
		    strerror(errno));
	return NOBODY;
}

/* Whether the library is in the process, as far as its mappings tell. */
static bool
has_library(pid_t pid)
{
	char path[64];
	char line[512];
	bool found = false;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = fopen(path, "re");
	if (f == NULL)
		return false;
	while (!found && fgets(line, sizeof(line), f) != NULL)
		found = strstr(line, "/libeddy") != NULL ||
			strstr(line, "[anon:eddy: ") != NULL;
	(void)fclose(f);
	return found;
}

void
say_no_channel(const struct target *t)
{
	if (t->parents_page)
		complain("%d (%s) was forked and has no channel of its own: "
			 "its parent had other threads, and it has created "
			 "none yet",
		    (int)t->pid, t->comm);
	else if (has_library(t->pid))
		complain("%d (%s) is served by eddy but has no channel: start "
			 "it with EDDY_CONF=control:auto",
		    (int)t->pid, t->comm);
	else
		complain("%d (%s) is not served by eddy: start it by "
			 "\"eddyctl run -- COMMAND\", or with LD_PRELOAD and "
			 "EDDY_CONF=control:auto",
		    (int)t->pid, t->comm);
}

int
find_channel(const char *arg, struct target *t)
{
	int status = find_target(arg, t);

	if (status != DONE || t->path != NULL || t->has_page)
		return status;
	say_no_channel(t);
	return SILENT;
}

/* ------------------------------------------------------------------ */
/* Requests */

/* In the network namespace of the process, if we may. */
static int
socket_in_namespace(pid_t pid)
{
	char path[64];
	struct stat a;
	struct stat b;
	int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	int its;
	int fd = -1;

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
	its = open(path, O_RDONLY | O_CLOEXEC);
	if (own < 0 || its < 0 || fstat(own, &a) != 0 || fstat(its, &b) != 0 ||
	    a.st_ino == b.st_ino || setns(its, CLONE_NEWNET) != 0) {
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	} else {
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		(void)setns(own, CLONE_NEWNET);
	}
	if (own >= 0)
		(void)close(own);
	if (its >= 0)
		(void)close(its);
	return fd;
}

/* A second at a time, so that progress can be shown. */
static void
set_patience(int fd)
{
	int ms = settings.wait_ms < 1000 ? settings.wait_ms : 1000;
	struct timeval tv = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};

	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
}

static int
connect_to(const struct target *t)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	socklen_t n = sizeof(a);
	int fd;
	int err;

	if (t->path == NULL && t->socket < 0) {
		size_t len = strlen(t->name);

		memcpy(a.sun_path + 1, t->name + 1, len - 1);
		n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
		fd = socket_in_namespace(t->pid);
	} else {
		int need = t->path != NULL
			       ? snprintf(a.sun_path, sizeof(a.sun_path), "%s",
				     t->path)
			       : snprintf(a.sun_path, sizeof(a.sun_path),
				     "/proc/%d/fd/%d", (int)t->pid, t->socket);

		if (need >= (int)sizeof(a.sun_path)) {
			errno = ENAMETOOLONG;
			return -1;
		}
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	}
	if (fd < 0)
		return -1;
	set_patience(fd);
	if (connect(fd, (struct sockaddr *)&a, n) == 0)
		return fd;
	err = errno;
	(void)close(fd);
	errno = err;
	return -1;
}

/* Who listens there must be the process that was asked for. */
static bool
is_answered_by(int fd, const struct target *t)
{
	struct ucred c;
	socklen_t n = sizeof(c);

	/* 0: in a namespace that we do not see. */
	return t->pid == 0 ||
	       getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &n) != 0 ||
	       c.pid == 0 || c.pid == t->pid;
}

static void
send_request(int fd, const char *request)
{
	char line[EDDY_CONTROL_SIZE];
	int n = snprintf(line, sizeof(line), "eddy1 %s\n", request);
	int done = 0;

	while (done < n && n < (int)sizeof(line)) {
		ssize_t sent =
		    send(fd, line + done, (size_t)(n - done), MSG_NOSIGNAL);

		/* Who is refused is answered before he has asked. */
		if (sent <= 0)
			return;
		done += (int)sent;
	}
}

/* That it still goes on, to who sits before it. */
static void
show_waiting(uint64_t since)
{
	if (!settings.quiet && isatty(STDERR_FILENO))
		(void)fprintf(stderr, "\rwaiting for %ju s ",
		    (uintmax_t)((now_ms() - since) / 1000));
}

/*
 * Reads up to the zero.  NULL with errno set: EAGAIN, no answer in time; EPIPE,
 * it was cut short.
 */
static char *
receive(int fd)
{
	size_t room = 65536;
	size_t n = 0;
	char *buf = malloc(room);
	uint64_t since = now_ms();
	uint64_t until = since + (uint64_t)settings.wait_ms;

	while (buf != NULL) {
		ssize_t got = recv(fd, buf + n, room - n, 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno == EAGAIN && now_ms() < until) {
			show_waiting(since);
			continue;
		}
		if (got <= 0) {
			errno = got == 0 || errno == ECONNRESET ? EPIPE : errno;
			break;
		}
		n += (size_t)got;
		if (buf[n - 1] == '\0')
			return buf;
		if (now_ms() > until) {
			errno = EAGAIN;
			break;
		}
		if (n == room) {
			char *more =
			    room < MAX_TEXT ? realloc(buf, room * 2) : NULL;

			if (more == NULL) {
				errno = ENOMEM;
				break;
			}
			buf = more;
			room *= 2;
		}
	}
	free(buf);
	return NULL;
}

static int
complain_of(const struct target *t, int err)
{
	const char *what = t->path != NULL ? t->path : t->comm;

	if (err == EAGAIN || err == EWOULDBLOCK || err == ETIMEDOUT) {
		if (is_stopped(t))
			complain("%s is stopped and answers nothing but stats",
			    what);
		else
			complain("%s has not answered within %d ms", what,
			    settings.wait_ms);
		return LATE;
	}
	if (err == EPIPE) {
		complain("%s has cut its answer short", what);
		return LATE;
	}
	if (err == EACCES || err == EPERM) {
		complain("%s: %s; be its user or root", what, strerror(err));
		return NOBODY;
	}
	complain("%s: %s", what, strerror(err));
	return SILENT;
}

/* "ok" or "error ERRNO WORDS"; what follows moves to the front. */
static int
split(char *text, int *err)
{
	char *line = strchr(text, '\n');

	*err = 0;
	if (line == NULL)
		return SILENT;
	*line = '\0';
	if (strncmp(text, "error ", 6) == 0) {
		*err = atoi(text + 6);
		return REFUSED;
	}
	if (strcmp(text, "ok") != 0)
		return SILENT;
	memmove(text, line + 1, strlen(line + 1) + 1);
	return DONE;
}

static char *
ask_once(struct target *t, const char *request)
{
	int fd = connect_to(t);
	char *text;
	int err;

	if (fd < 0)
		return NULL;
	if (!is_answered_by(fd, t)) {
		(void)close(fd);
		errno = ECONNREFUSED;
		return NULL;
	}
	send_request(fd, request);
	text = receive(fd);
	err = errno;
	(void)close(fd);
	errno = err;
	return text;
}

/* Root from outside a user namespace is nobody within: as the process's user
 * then. */
static char *
ask_as_owner(struct target *t, const char *request)
{
	char path[64];
	struct stat st;
	char *text;
	int err;

	(void)snprintf(path, sizeof(path), "/proc/%d", (int)t->pid);
	if (t->pid == 0 || geteuid() != 0 || stat(path, &st) != 0 ||
	    st.st_uid == 0 || seteuid(st.st_uid) != 0)
		return NULL;
	text = ask_once(t, request);
	err = errno;
	if (seteuid(0) != 0)
		complain("seteuid: %s", strerror(errno));
	errno = err;
	return text;
}

int
ask(struct target *t, const char *request, char **ret, int *err)
{
	char *text;
	int status;

	if (strlen(request) > 1000) {
		complain("that is too long for one request");
		return USAGE;
	}
	if (is_stopped(t))
		return complain_of(t, EAGAIN);
	text = ask_once(t, request);
	if (text == NULL)
		return complain_of(t, errno);
	status = split(text, err);
	if (status == REFUSED && *err == EACCES) {
		char *again = ask_as_owner(t, request);

		if (again != NULL) {
			free(text);
			text = again;
			status = split(text, err);
		}
	}
	if (status == DONE) {
		*ret = text;
		return DONE;
	}
	free(text);
	if (status == REFUSED && *err == EACCES)
		return complain_of(t, EACCES);
	if (status == SILENT)
		complain("%s speaks another protocol", t->comm);
	return status;
}

const char *
why_refused(int err)
{
	switch (err) {
	case ENOENT:
		return "no such name, or nothing of that number";
	case EPERM:
		return "it cannot be had that way (read, written or done)";
	case EINVAL:
		return "the value is not of its type, or out of range";
	case EFAULT:
		return "the value is out of range, or the thing is not in use";
	case EAGAIN:
		return "not now";
	case EOPNOTSUPP:
		return "its value is a pointer of the program's own";
	default:
		return strerror(err);
	}
}

int
freshen(struct target *t)
{
	char *text;
	int err;
	int status;

	if (is_stopped(t))
		return DONE;
	status = ask(t, "hello", &text, &err);
	if (status == LATE)
		return DONE;
	if (status != DONE)
		return status;
	free(text);
	return read_figures(t) ? DONE : NOBODY;
}
