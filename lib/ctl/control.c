/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/ctl/control.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>

#include "lib/base/chars.h"
#include "lib/ctl/control_page.h"
#include "lib/os/file.h"
#include "lib/os/os.h"
#include "lib/os/socket.h"
#include "lib/os/thread.h"
#include "numa/excluded.h"

/* Of the thread: statistics need some KiB. */
#define STACK ((size_t)64 << 10)

/* A descriptor that the program may have closed meanwhile, and what it stood
 * for. */
struct handle {
	int fd;
	uint64_t identity; /* 0: none */
};

struct client {
	struct handle at;
	uint64_t until; /* ms */
	size_t n;
	char line[EDDY_CONTROL_LINE];
};

/*
 * The channel.  A forked child finds its parent's here, and closes it.
 * W, R: who has made `here` 1 before the thread starts, then that thread.
 */
static struct handle socket_of;
static struct handle name_of;
static struct handle page_of;
static struct eddy_control_page *page;
static struct client clients[EDDY_CONTROL_CLIENTS];
static char path[EDDY_SOCKET_NAME + 1];
static uint64_t path_identity;
static uint64_t n_requests;

/* Wiped at fork. */
struct here {
	/* Whether this process has a channel.  W, R: any thread, by CAS.
	 * O: none: who wins opens it. */
	_Atomic uint32_t any;
	/* Whether the main thread has ended.  W: that.  R: the control thread.
	 * O: CTL-R2 -> CTL-A2. */
	_Atomic uint32_t ended;
	/* The socket, plus 1.  W: control thread, who opens the channel.
	 * R: the main thread at its end.  O: CTL-R2 -> CTL-A2. */
	_Atomic uint32_t socket;
	/* Whether `path` is this process's.  W: who opens the channel.
	 * R: who ends the process.  O: CTL-R4 -> CTL-A4. */
	_Atomic uint32_t named;
};

/* NULL: the option is not set, or the kernel cannot wipe.
 * W: eddy_control_load.  R: any thread.  O: CTL-R3 -> CTL-A3. */
static _Atomic(struct here *) kept;

/* Whether the program has created a thread.  W, R: any thread.  O: none. */
static _Atomic uint32_t threads_seen;

static struct here *
here(void)
{
	/* CTL-A3: pairs with CTL-R3. */
	return eddy_load_acquire(&kept);
}

/* ------------------------------------------------------------------ */
/* Handles */

static struct handle
handle(int fd)
{
	return (struct handle){.fd = fd, .identity = eddy_os_identity(fd)};
}

static bool
is_open(const struct handle *h)
{
	return h->identity != 0 && eddy_os_identity(h->fd) == h->identity;
}

static void
close_handle(struct handle *h)
{
	if (is_open(h))
		eddy_os_file_close(h->fd);
	h->identity = 0;
}

static void
end_client(struct client *c)
{
	/* Whatever a forked child holds of it. */
	if (is_open(&c->at))
		eddy_os_shutdown(c->at.fd);
	close_handle(&c->at);
}

/* What a parent left in this process is closed, and not shut down. */
static void
close_all(void)
{
	for (unsigned i = 0; i < EDDY_CONTROL_CLIENTS; i++)
		close_handle(&clients[i].at);
	close_handle(&socket_of);
	close_handle(&name_of);
	close_handle(&page_of);
}

static void
remove_path(struct here *me)
{
	/* CTL-A4: pairs with CTL-R4. */
	if (eddy_load_acquire(&me->named) != 0 &&
	    eddy_os_identity_at(path) == path_identity)
		(void)eddy_os_unlink(path);
}

/* ------------------------------------------------------------------ */
/* Names of sockets */

static char *
add_text(char *to, const char *s)
{
	size_t n = strlen(s);

	memcpy(to, s, n + 1);
	return to + n;
}

static char *
add_number(char *to, uint64_t v)
{
	char digits[EDDY_DIGITS_MAX + 1];
	char *end = digits + EDDY_DIGITS_MAX;

	*end = '\0';
	return add_text(to, eddy_digits(end, v));
}

/* "DIRECTORY/.eddy-control-PID-NUMBER" */
static void
make_name(char *to, const char *directory)
{
	to = add_text(to, directory);
	to = add_text(to, ".eddy-control-");
	to = add_number(to, (uint64_t)eddy_os_pid());
	to = add_text(to, "-");
	(void)add_number(to, (eddy_os_random() ^ eddy_os_milliseconds()) >> 32);
}

/* Where sockets may be.  The first has room where there is no disk. */
static const char directories[][12] = {
    "/dev/shm/", "/tmp/", "/run/", "/var/tmp/", ""};

/* Returns 0; name: what it is called at that moment. */
static int
open_unnamed(char *name)
{
	for (unsigned i = 0; i < sizeof(directories) / sizeof(directories[0]);
	     i++) {
		int fd;
		int at;

		make_name(name, directories[i]);
		fd = eddy_os_listen(name);
		if (fd < 0)
			continue;
		at = eddy_os_open_name(name);
		(void)eddy_os_unlink(name);
		if (at >= 0) {
			socket_of = handle(fd);
			name_of = handle(at);
			return 0;
		}
		eddy_os_file_close(fd);
	}
	make_name(name, "@");
	socket_of = handle(eddy_os_listen(name));
	return socket_of.identity != 0 ? 0 : -EACCES;
}

/*
 * Under a name of its own first, which then takes the place of what may be
 * there: of two at once both have a socket, and the later one the name.
 */
static int
open_path(struct here *me, const char *wanted)
{
	char name[EDDY_SOCKET_NAME + 32];
	int err = eddy_os_listens(wanted);
	int fd;

	if (err == 0)
		return -EADDRINUSE;
	if (err != -ENOENT && err != -ECONNREFUSED)
		return err;
	(void)add_number(
	    add_text(add_text(name, wanted), "."), (uint64_t)eddy_os_pid());
	(void)eddy_os_unlink(name);
	fd = eddy_os_listen(name);
	if (fd < 0)
		return fd;
	name_of = handle(eddy_os_open_name(name));
	err = eddy_os_rename(name, wanted);
	if (err != 0) {
		(void)eddy_os_unlink(name);
		close_handle(&name_of);
		eddy_os_file_close(fd);
		return err;
	}
	socket_of = handle(fd);
	(void)add_text(path, wanted);
	path_identity = name_of.identity;
	eddy_store_release(&me->named, 1); /* CTL-R4: path, path_identity */
	return 0;
}

static void
say_refused(const char *wanted, int err)
{
	char line[EDDY_SOCKET_NAME + 128];
	char *to = add_text(line, "<eddy>: control: ");

	to = add_text(to, wanted);
	to = add_text(to, ": not made, error ");
	to = add_number(to, (uint64_t)-err);
	(void)add_text(to, "; eddyctl finds the process by its number\n");
	eddy_conf_message(line);
}

static bool
is_auto(const char *wanted)
{
	return strcmp(wanted, "auto") == 0;
}

/* As the option wants it; or without a name. */
static bool
open_channel(struct eddy_heap *h, struct here *me, bool with_name)
{
	const char *wanted = h->opts.control;
	char name[EDDY_SOCKET_NAME + 32];
	int err = -ENOENT;
	int fd = -1;

	close_all();
	if (with_name && !is_auto(wanted)) {
		err = open_path(me, wanted);
		if (err == 0)
			(void)add_text(name, wanted);
		else if (err != -EADDRINUSE && here() == NULL)
			say_refused(wanted, err); /* once, at the start */
	}
	if (err != 0)
		err = open_unnamed(name);
	if (err != 0)
		return false;
	page = eddy_os_share(EDDY_CONTROL_FILE, EDDY_CONTROL_SIZE, &fd);
	if (page == NULL) {
		close_all();
		return false;
	}
	page_of = handle(fd);
	eddy_control_page_refresh(page, h, n_requests);
	eddy_control_page_begin(
	    page, name_of.identity != 0 ? name_of.fd : -1, name);
	return true;
}

/* ------------------------------------------------------------------ */
/* The thread */

/* Lets the main thread know what to end; returns whether it has ended. */
static bool
show_socket(struct here *me)
{
	/* CTL-R2: the socket, before the look. */
	(void)eddy_xchg_seq_cst(&me->socket, (uint32_t)socket_of.fd + 1);
	/* CTL-A2: or the main thread sees it. */
	return eddy_load_seq_cst(&me->ended) != 0;
}

static void
settle(struct eddy_heap *h)
{
	uint64_t set[EDDY_CPU_WORDS] = {0};

	eddy_os_name_thread("eddy_control");
	eddy_os_no_real_time();
	if (eddy_os_affinity(0, set, sizeof(set)) <= 0)
		return;
	eddy_excluded_remove(h->opts.exclude_cpus, set);
	/* It stays where it is if there is no such CPU. */
	if (eddy_os_set_affinity(0, set, sizeof(set)) != 0)
		return;
}

static void
answer(struct eddy_heap *h, struct client *c)
{
	size_t n = c->n;

	c->line[n] = '\0';
	n_requests++;
	if (n != 0 && c->line[n - 1] == '\r')
		c->line[--n] = '\0';
	eddy_control_serve(h, c->at.fd, c->line, n);
	/* What the request did is in the page when its answer ends. */
	eddy_control_page_refresh(page, h, n_requests);
	end_client(c);
}

/* Reads on; a whole line is answered. */
static void
hear(struct eddy_heap *h, struct client *c)
{
	size_t room = sizeof(c->line) - 1 - c->n;
	ssize_t got = eddy_os_receive(c->at.fd, c->line + c->n, room);
	char *end;

	if (got == -EAGAIN || got == -EINTR)
		return;
	if (got <= 0) {
		end_client(c);
		return;
	}
	end = memchr(c->line + c->n, '\n', (size_t)got);
	c->n += (size_t)got;
	if (end != NULL) {
		c->n = (size_t)(end - c->line);
		answer(h, c);
	} else if (c->n == sizeof(c->line) - 1) {
		n_requests++;
		eddy_control_refuse(c->at.fd, EMSGSIZE, "request too long");
		end_client(c);
	}
}

static struct client *
find_room(void)
{
	for (unsigned i = 0; i < EDDY_CONTROL_CLIENTS; i++)
		if (clients[i].at.identity == 0)
			return &clients[i];
	return NULL;
}

static void
let_in(void)
{
	uint64_t now = eddy_os_milliseconds();
	struct client *c;

	while ((c = find_room()) != NULL) {
		int fd = eddy_os_accept(socket_of.fd);

		if (fd < 0)
			return;
		if (!eddy_os_peer_is_ours(fd)) {
			eddy_control_refuse(fd, EACCES, "another user's");
			eddy_os_shutdown(fd);
			eddy_os_file_close(fd);
			continue;
		}
		c->at = handle(fd);
		c->n = 0;
		c->until = now + EDDY_CONTROL_WAIT;
	}
}

/* Waits; at most until a client is late or the page is old. */
static void
wait(struct pollfd *p, uint64_t now, uint64_t refresh_at)
{
	uint64_t until = refresh_at;
	bool full = find_room() == NULL;

	/* A full house does not look at who knocks. */
	p[0] =
	    (struct pollfd){.fd = full ? -1 : socket_of.fd, .events = POLLIN};
	for (unsigned i = 0; i < EDDY_CONTROL_CLIENTS; i++) {
		const struct client *c = &clients[i];

		p[i + 1] =
		    (struct pollfd){.fd = c->at.identity != 0 ? c->at.fd : -1,
			.events = POLLIN};
		if (c->at.identity != 0 && c->until < until)
			until = c->until;
	}
	(void)eddy_os_poll(p, EDDY_CONTROL_CLIENTS + 1,
	    until > now ? (int64_t)(until - now) : 0);
}

/* Clients that have said something, or are late. */
static void
attend(struct eddy_heap *h, const struct pollfd *p)
{
	uint64_t now = eddy_os_milliseconds();

	for (unsigned i = 0; i < EDDY_CONTROL_CLIENTS; i++) {
		struct client *c = &clients[i];

		if (c->at.identity == 0)
			continue;
		if (!is_open(&c->at))
			c->at.identity = 0;
		else if (p[i + 1].revents != 0)
			hear(h, c);
		if (c->at.identity != 0 && now >= c->until)
			end_client(c);
	}
}

/* Whether the channel is there, or there again. */
static bool
is_there(struct eddy_heap *h, struct here *me)
{
	if (is_open(&socket_of) && is_open(&page_of) &&
	    (name_of.identity == 0 || is_open(&name_of)))
		return true;
	if (page != NULL)
		eddy_os_unmap(page, EDDY_CONTROL_SIZE);
	page = NULL;
	return open_channel(h, me, false) && !show_socket(me);
}

static void *
run(void *arg)
{
	struct pollfd p[EDDY_CONTROL_CLIENTS + 1];
	struct eddy_heap *h = eddy_heap_peek();
	struct here *me = here();
	uint64_t refresh_at;

	settle(h);
	if (arg != NULL) {
		/* A child: not if it is about to execute something. */
		(void)eddy_os_poll(NULL, 0, EDDY_CONTROL_DELAY);
		page = NULL;
		/* Its parent's name, if that is no more: a daemon's. */
		if (!open_channel(h, me, true))
			return NULL;
	}
	if (show_socket(me))
		return NULL;
	/* Soon, since a process grows most at its start. */
	refresh_at = eddy_os_milliseconds() + EDDY_CONTROL_EVERY / 10;
	/* CTL-A2: the main thread has ended. */
	while (eddy_load_seq_cst(&me->ended) == 0 && is_there(h, me)) {
		uint64_t now = eddy_os_milliseconds();

		if (now >= refresh_at) {
			eddy_control_page_refresh(page, h, n_requests);
			refresh_at = now + EDDY_CONTROL_EVERY;
		}
		wait(p, now, refresh_at);
		if (!is_open(&socket_of))
			continue;
		attend(h, p);
		if ((p[0].revents & POLLIN) != 0)
			let_in();
	}
	close_all();
	return NULL;
}

/* ------------------------------------------------------------------ */
/* Start and end */

/*
 * libc ends the process when its last thread ends, and would count this one.
 * The main thread is the one that can end before others.
 */
static void
main_ends(void *arg)
{
	struct here *me = arg;
	uint32_t fd;

	/* CTL-R2: from here on the thread ends. */
	(void)eddy_xchg_seq_cst(&me->ended, 1);
	/* CTL-A2: or it sees that. */
	fd = eddy_load_seq_cst(&me->socket);
	if (fd != 0 && is_open(&socket_of) && socket_of.fd == (int)fd - 1)
		eddy_os_shutdown(socket_of.fd);
}

static void
watch_main(struct here *me)
{
	/* W: the main thread alone. */
	static bool made;
	static pthread_key_t key;

	if (eddy_os_tid() != eddy_os_pid())
		return;
	made = made || pthread_key_create(&key, main_ends) == 0;
	if (made)
		(void)pthread_setspecific(key, me);
}

/* Returns whether this process had none before. */
static bool
begin(struct here *me)
{
	uint32_t none = 0;

	/* relaxed: who wins does it. */
	return eddy_cas_relaxed(&me->any, &none, 1);
}

static void
start(struct here *me, bool is_child)
{
	uint64_t mask = eddy_os_block_signals();
	pthread_t t;

	watch_main(me);
	if (eddy_os_thread_start(&t, STACK, run, is_child ? me : NULL) == 0)
		(void)pthread_detach(t);
	eddy_os_restore_signals(mask);
}

/*
 * In a child.  Where other threads were at work in the parent, one may have had
 * a lock of libc that starting a thread needs.
 */
static void
at_fork(void)
{
	struct here *me = here();
	int kept_errno = errno;

	/* relaxed: of this thread or of its parent. */
	if (me != NULL && eddy_load_relaxed(&threads_seen) == 0 && begin(me))
		start(me, true);
	errno = kept_errno;
}

void
eddy_control_note_thread(struct eddy_heap *h)
{
	struct here *me = here();

	(void)h;
	/* relaxed: a fact. */
	eddy_store_relaxed(&threads_seen, 1);
	if (me != NULL && begin(me))
		start(me, true);
}

static struct here *
make_here(void)
{
	size_t size = eddy_os_page_size();
	struct here *me = eddy_os_reserve(size);

	if (me == NULL)
		return NULL;
	if (eddy_os_commit(me, size) == 0 &&
	    eddy_os_wipe_on_fork(me, size) == 0)
		return me;
	eddy_os_unmap(me, size);
	return NULL;
}

void
eddy_control_load(struct eddy_heap *h)
{
	struct here *me;
	int kept_errno = errno;

	if (h->opts.control[0] == '\0' || getauxval(AT_SECURE) != 0)
		return;
	me = make_here();
	if (me == NULL || !begin(me) || !open_channel(h, me, true))
		return;
	eddy_store_release(&kept, me); /* CTL-R3: the page */
	(void)pthread_atfork(NULL, NULL, at_fork);
	start(me, false);
	errno = kept_errno;
}

/* The name goes with the process that has it. */
__attribute__((destructor)) static void
at_exit(void)
{
	struct here *me = here();

	if (me != NULL)
		remove_path(me);
}
