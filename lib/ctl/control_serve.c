/* SPDX-License-Identifier: BSD-2-Clause */
/* control_serve.c - the requests of control.h. */
#include <errno.h>
#include <string.h>

#include "lib/base/chars.h"
#include "lib/ctl/control.h"
#include "lib/ctl/mallctl.h"
#include "lib/ctl/print.h"
#include "lib/ctl/stats.h"
#include "lib/ctl/text.h"
#include "lib/heap/cpu_cache.h"
#include "lib/heap/gather.h"
#include "lib/heap/reclaim.h"
#include "lib/heap/warm.h"
#include "lib/os/os.h"
#include "lib/os/socket.h"

/* An answer on its way; W, R: the control thread. */
struct reply {
	int fd;
	bool broken;  /* the other end is gone or late: nothing more is sent */
	int64_t left; /* ms that it is waited for, in all */
	size_t n;
	char buf[16384];
	struct eddy_text text;
};

static struct reply reply;

/* ------------------------------------------------------------------ */
/* Sending */

static void
flush(struct reply *r)
{
	size_t done = 0;

	while (done < r->n && !r->broken) {
		struct pollfd p = {.fd = r->fd, .events = POLLOUT};
		ssize_t sent = eddy_os_send(r->fd, r->buf + done, r->n - done);
		uint64_t began;

		if (sent > 0) {
			done += (size_t)sent;
			continue;
		}
		r->broken = (sent != -EAGAIN && sent != -EINTR) || r->left <= 0;
		if (r->broken)
			break;
		began = eddy_os_milliseconds();
		(void)eddy_os_poll(&p, 1, r->left);
		r->left -= (int64_t)(eddy_os_milliseconds() - began) + 1;
	}
	r->n = 0;
}

static void
put(void *arg, const char *s)
{
	struct reply *r = arg;

	for (; *s != '\0'; s++) {
		if (r->n == sizeof(r->buf))
			flush(r);
		r->buf[r->n++] = *s;
	}
}

static struct eddy_text *
begin(int fd)
{
	reply.fd = fd;
	reply.broken = false;
	reply.left = EDDY_CONTROL_WAIT;
	reply.n = 0;
	eddy_text_open(&reply.text, put, &reply);
	return &reply.text;
}

/* The zero says that all is there. */
static void
end(void)
{
	eddy_text_close(&reply.text);
	if (reply.n == sizeof(reply.buf))
		flush(&reply);
	reply.buf[reply.n++] = '\0';
	flush(&reply);
}

static void
add_error(struct eddy_text *t, int err, const char *why)
{
	eddy_text_add(t, "error ");
	eddy_text_number(t, (uint64_t)err, 0);
	eddy_text_add(t, " ");
	eddy_text_add(t, why);
	eddy_text_add(t, "\n");
}

void
eddy_control_refuse(int fd, int err, const char *why)
{
	add_error(begin(fd), err, why);
	end();
}

/* ------------------------------------------------------------------ */
/* Names and values */

static const char *const type_names[] = {
    [EDDY_CTL_BOOL] = "bool",
    [EDDY_CTL_UNSIGNED] = "unsigned",
    [EDDY_CTL_UINT32] = "uint32",
    [EDDY_CTL_SIZE] = "size",
    [EDDY_CTL_SSIZE] = "ssize",
    [EDDY_CTL_UINT64] = "uint64",
    [EDDY_CTL_INT64] = "int64",
    [EDDY_CTL_STRING] = "string",
    [EDDY_CTL_POINTER] = "pointer",
    [EDDY_CTL_VOID] = "void",
    [EDDY_CTL_OTHER] = "other",
};

static bool
begins(const char *s, const char *with)
{
	return strncmp(s, with, strlen(with)) == 0;
}

/* 0, or why a name cannot be asked for from here. */
static int
kind_of(const char *name, enum eddy_ctl_type *ret)
{
	/* What these say is of the thread that asks. */
	if (begins(name, "thread."))
		return EPERM;
	return eddy_mallctl_type(name, ret);
}

static size_t
size_of(enum eddy_ctl_type type)
{
	return type == EDDY_CTL_BOOL ? sizeof(bool)
	       : type == EDDY_CTL_UNSIGNED || type == EDDY_CTL_UINT32
		   ? sizeof(uint32_t)
		   : sizeof(uint64_t);
}

/* Nothing that a terminal might obey. */
static void
add_string(struct eddy_text *t, const char *s)
{
	char one[2] = {0};

	for (; s != NULL && *s != '\0'; s++) {
		one[0] = *s >= ' ' && *s != 0x7f ? *s : '?';
		eddy_text_add(t, one);
	}
}

static void
add_hex(struct eddy_text *t, uint64_t v)
{
	char digits[EDDY_DIGITS_MAX + 1];
	char *end = digits + EDDY_DIGITS_MAX;

	*end = '\0';
	eddy_text_add(t, "0x");
	eddy_text_add(t, eddy_digits_of(end, v, 16));
}

static void
add_value(struct eddy_text *t, enum eddy_ctl_type type, uint64_t v)
{
	if (type == EDDY_CTL_BOOL) {
		eddy_text_add(t, v != 0 ? "true" : "false");
	} else if (type == EDDY_CTL_STRING) {
		add_string(t, (const char *)(uintptr_t)v);
	} else if (type == EDDY_CTL_POINTER) {
		add_hex(t, v);
	} else if ((type == EDDY_CTL_SSIZE || type == EDDY_CTL_INT64) &&
		   (int64_t)v < 0) {
		eddy_text_add(t, "-");
		eddy_text_number(t, -v, 0);
	} else {
		eddy_text_number(t, v, 0);
	}
}

/* arena.<i>.name: given to who brings room for it, copied from who sets it. */
static bool
is_arena_name(const char *name)
{
	size_t len = strlen(name);

	return begins(name, "arena.") && len >= 5 &&
	       strcmp(name + len - 5, ".name") == 0;
}

static int
read_arena_name(const char *name, char *buf)
{
	char *p = buf;
	size_t n = sizeof(p);

	if (!is_arena_name(name))
		return EOPNOTSUPP;
	return eddy_mallctl(name, &p, &n, NULL, 0);
}

static int
read_value(const char *name, enum eddy_ctl_type type, uint64_t *ret)
{
	union {
		bool b;
		uint32_t u;
		uint64_t v;
	} x = {.v = 0};
	size_t n = size_of(type);
	int err = eddy_mallctl(name, &x, &n, NULL, 0);

	*ret = type == EDDY_CTL_BOOL ? x.b : n == sizeof(x.u) ? x.u : x.v;
	return err;
}

static void
get_one(struct eddy_text *t, const char *name)
{
	static char arena_name[32];
	enum eddy_ctl_type type = EDDY_CTL_VOID;
	uint64_t v = 0;
	int err = kind_of(name, &type);

	if (err == 0 && type == EDDY_CTL_VOID)
		err = EPERM;
	else if (err == 0 && type == EDDY_CTL_OTHER) {
		err = read_arena_name(name, arena_name);
		type = EDDY_CTL_STRING;
		v = eddy_ctl_pointer(arena_name);
	} else if (err == 0)
		err = read_value(name, type, &v);
	add_string(t, name);
	eddy_text_add(t, " ");
	if (err != 0) {
		eddy_text_add(t, "! ");
		eddy_text_number(t, (uint64_t)err, 0);
	} else {
		eddy_text_add(t, type_names[type]);
		eddy_text_add(t, " ");
		add_value(t, type, v);
	}
	eddy_text_add(t, "\n");
}

/* The next word of *s, which moves behind it; NULL: none. */
static char *
next_word(char **s)
{
	char *word = *s + strspn(*s, " ");
	size_t n = strcspn(word, " ");

	if (n == 0)
		return NULL;
	*s = word + n;
	if (word[n] != '\0') {
		word[n] = '\0';
		(*s)++;
	}
	return word;
}

/* What statistics are as of is now. */
static void
refresh(void)
{
	uint64_t any = 1;

	if (eddy_mallctl("epoch", NULL, NULL, &any, sizeof(any)) != 0)
		return; /* then as they were */
}

static void
serve_get(int fd, char *args)
{
	struct eddy_text *t = begin(fd);
	bool fresh = false;
	char *name;

	eddy_text_add(t, "ok\n");
	while ((name = next_word(&args)) != NULL) {
		if (!fresh &&
		    (begins(name, "stats.") || begins(name, "eddy."))) {
			refresh();
			fresh = true;
		}
		get_one(t, name);
	}
	end();
}

/* A number, as long as it is one, in range. */
static bool
parse(const char *s, enum eddy_ctl_type type, uint64_t *ret)
{
	bool is_signed = type == EDDY_CTL_SSIZE || type == EDDY_CTL_INT64;
	bool minus = is_signed && *s == '-';
	uint64_t most = size_of(type) == sizeof(uint32_t) ? UINT32_MAX
			: is_signed ? (uint64_t)INT64_MAX + minus
				    : UINT64_MAX;
	uint64_t v = 0;

	if (type == EDDY_CTL_BOOL) {
		*ret = strcmp(s, "true") == 0 || strcmp(s, "1") == 0;
		return *ret != 0 || strcmp(s, "false") == 0 ||
		       strcmp(s, "0") == 0;
	}
	s += minus;
	if (*s == '\0')
		return false;
	for (; *s >= '0' && *s <= '9'; s++) {
		uint64_t digit = (uint64_t)(*s - '0');

		if (v > (most - digit) / 10)
			return false;
		v = v * 10 + digit;
	}
	*ret = minus ? -v : v;
	return *s == '\0';
}

static int
write_value(const char *name, const char *text)
{
	enum eddy_ctl_type type;
	uint64_t v;
	bool b;
	uint32_t u;
	int err = kind_of(name, &type);

	if (err != 0)
		return err;
	if (type == EDDY_CTL_VOID)
		return EPERM;
	if (type == EDDY_CTL_POINTER || type == EDDY_CTL_OTHER) {
		if (!is_arena_name(name))
			return EOPNOTSUPP;
		type = EDDY_CTL_STRING;
	}
	if (type == EDDY_CTL_STRING)
		return eddy_mallctl(name, NULL, NULL, &text, sizeof(text));
	if (!parse(text, type, &v))
		return EINVAL;
	b = v != 0;
	u = (uint32_t)v;
	return type == EDDY_CTL_BOOL
		   ? eddy_mallctl(name, NULL, NULL, &b, sizeof(b))
	       : size_of(type) == sizeof(u)
		   ? eddy_mallctl(name, NULL, NULL, &u, sizeof(u))
		   : eddy_mallctl(name, NULL, NULL, &v, sizeof(v));
}

static int
call_name(const char *name)
{
	enum eddy_ctl_type type;
	int err = kind_of(name, &type);

	if (err != 0)
		return err;
	if (type != EDDY_CTL_VOID)
		return type == EDDY_CTL_OTHER ? EOPNOTSUPP : EPERM;
	return eddy_mallctl(name, NULL, NULL, NULL, 0);
}

/* ------------------------------------------------------------------ */
/* Requests */

static void
say(int fd, int err)
{
	if (err != 0) {
		eddy_control_refuse(fd, err, "refused");
		return;
	}
	eddy_text_add(begin(fd), "ok\n");
	end();
}

static void
serve_hello(int fd)
{
	struct eddy_text *t = begin(fd);

	eddy_text_add(t, "ok\nversion ");
	eddy_text_add(t, eddy_version);
	eddy_text_add(t, "\npid ");
	eddy_text_number(t, (uint64_t)eddy_os_pid(), 0);
	eddy_text_add(t, "\n");
	end();
}

static void
serve_print(struct eddy_heap *h, int fd, const char *letters)
{
	struct eddy_text *t = begin(fd);

	eddy_text_add(t, "ok\n");
	eddy_text_close(t);
	eddy_stats_print(h, put, &reply, letters);
	end();
}

/* Of statistics the part that needs no walk. */
static void
serve_flows(struct eddy_heap *h, int fd)
{
	static struct eddy_print p; /* W, R: the control thread */
	struct eddy_text *t = begin(fd);

	eddy_text_add(t, "ok\n{\"eddy\":{\"version\":\"");
	eddy_text_add(t, eddy_version);
	eddy_text_add(t, "\"");
	eddy_text_close(t);
	p = (struct eddy_print){.h = h, .json = true};
	eddy_text_open(&p.text, put, &reply);
	eddy_print_flows_json(&p);
	eddy_text_add(&p.text, "}}\n");
	eddy_text_close(&p.text);
	end();
}

static void
serve_map(struct eddy_heap *h, int fd)
{
	struct eddy_text *t = begin(fd);

	eddy_text_add(t, "ok\n");
	eddy_control_map(h, t);
	end();
}

static void
serve_purge(struct eddy_heap *h, int fd)
{
	size_t bytes = eddy_gather_purge(h, NULL, 0);
	struct eddy_text *t = begin(fd);

	eddy_text_add(t, "ok\n");
	eddy_text_number(t, bytes, 0);
	eddy_text_add(t, "\n");
	end();
}

static void
serve_idle(struct eddy_heap *h, int fd)
{
	if (!eddy_frozen(h)) {
		eddy_cache_flush(h);
		(void)eddy_reclaim_step(
		    h, 0, 1, eddy_os_milliseconds(), EDDY_RECLAIM_BATCH);
	}
	say(fd, 0);
}

/* Requests with a name, and perhaps a value. */
static void
serve_named(int fd, const char *verb, char *args)
{
	char *name = next_word(&args);

	if (name == NULL)
		eddy_control_refuse(fd, EINVAL, "no name");
	else if (strcmp(verb, "call") == 0)
		say(fd, call_name(name));
	else
		say(fd, write_value(name, args));
}

static void
serve_verb(struct eddy_heap *h, int fd, const char *verb, char *args)
{
	if (strcmp(verb, "hello") == 0)
		serve_hello(fd);
	else if (strcmp(verb, "get") == 0)
		serve_get(fd, args);
	else if (strcmp(verb, "set") == 0 || strcmp(verb, "call") == 0)
		serve_named(fd, verb, args);
	else if (strcmp(verb, "print") == 0)
		serve_print(h, fd, args);
	else if (strcmp(verb, "flows") == 0)
		serve_flows(h, fd);
	else if (strcmp(verb, "map") == 0)
		serve_map(h, fd);
	else if (strcmp(verb, "purge") == 0)
		serve_purge(h, fd);
	else if (strcmp(verb, "idle") == 0)
		serve_idle(h, fd);
	else if (strcmp(verb, "freeze") == 0) {
		eddy_warm_freeze(h);
		say(fd, 0);
	} else if (strcmp(verb, "thaw") == 0) {
		eddy_warm_thaw(h);
		say(fd, 0);
	} else
		eddy_control_refuse(fd, ENOSYS, "no such request");
}

void
eddy_control_serve(struct eddy_heap *h, int fd, char *line, size_t n)
{
	char *word;
	char *verb;

	if (strlen(line) != n) {
		eddy_control_refuse(fd, EINVAL, "a zero in the request");
		return;
	}
	word = next_word(&line);
	if (word == NULL || strcmp(word, "eddy1") != 0) {
		eddy_control_refuse(fd, EPROTO, "this is eddy1");
		return;
	}
	verb = next_word(&line);
	if (verb == NULL)
		eddy_control_refuse(fd, ENOSYS, "no request");
	else
		serve_verb(h, fd, verb, line);
}
