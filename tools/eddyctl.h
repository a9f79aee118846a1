/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * eddyctl.h - the parts of eddyctl, among themselves.
 *
 * A command is a function that gets its own arguments, argv[0] being its name,
 * and returns the exit status.  Results go to standard output, remarks and
 * faults to standard error.
 */
#ifndef EDDY_TOOLS_EDDYCTL_H
#define EDDY_TOOLS_EDDYCTL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* Exit statuses; eddyctl(1) says the same. */
enum {
	DONE = 0,
	REFUSED = 1,  /* by the process, or by what was found */
	USAGE = 2,    /* of eddyctl */
	SILENT = 3,   /* the process has no channel */
	NOBODY = 4,   /* there is no such process, or it may not be looked at */
	LATE = 5,     /* no answer in time */
	CANNOT = 125, /* run: the command was not started */
};

/* Of the command line, before and behind the command. */
struct settings {
	bool json;
	bool full;
	bool prometheus;
	bool quiet;
	double interval;
	long times; /* 0: for ever */
	int wait_ms;
	bool wait_given;
	const char *output;
	const char *conf;
	const char *library;
};

extern struct settings settings;

#define COMMAND(function, name, arguments, brief) \
	int cmd_##function(int argc, char **argv);
#include "tools/commands.def"
#undef COMMAND

/* ------------------------------------------------------------------ */
/* show.c: what is said */

/* "eddyctl: ...", a line on standard error. */
__attribute__((format(printf, 1, 2))) void complain(const char *fmt, ...);

/* The same, unless --quiet. */
__attribute__((format(printf, 1, 2))) void remark(const char *fmt, ...);

/* No faults and remarks while somebody else has the screen. */
void silence(bool on);

/* Usage of a command, to standard error; returns USAGE. */
int misused(const char *command);

/* "12.3 MiB"; one of eight buffers that are used in turn. */
const char *human(uint64_t bytes);

/* Prints v, and releases it; returns whether it could. */
bool put_json(json_t *v);

/* Adds a number to an object. */
void add_number(json_t *to, const char *key, uint64_t v);

/* What a terminal might obey becomes '?'. */
void put_clean(FILE *to, const char *s);

/* ------------------------------------------------------------------ */
/* target.c: a process and its channel */

#define MAX_WORDS 64

/* Figures of the shared page. */
struct figures {
	unsigned n;
	char name[MAX_WORDS][32];
	uint64_t value[MAX_WORDS];
	uint64_t age_ms;
};

struct target {
	pid_t pid;
	const char *path; /* of a socket; then there is no pid */
	char comm[32];
	char state;         /* as in /proc/PID/stat */
	bool has_page;      /* of its own */
	bool parents_page;  /* that of the process it was forked from */
	int socket;         /* number in its fd folder; -1: name */
	uint32_t inner_pid; /* its own idea of its pid */
	char version[32];
	char name[112];
	struct figures figures;
};

/* Reads PID or the path of a socket; says what is wrong.  Returns a status. */
int find_target(const char *arg, struct target *t);

/* The same, and there must be a channel: else SILENT and what to set. */
int find_channel(const char *arg, struct target *t);

/* What to do about a process without one. */
void say_no_channel(const struct target *t);

/* Whether it is stopped, so that nothing but its page can be had. */
bool is_stopped(const struct target *t);

/* Looks at a process without a word; false: it is gone, or not ours to see. */
bool look_at(pid_t pid, struct target *t);

/* Reads the figures again; false: they are gone. */
bool read_figures(struct target *t);

/* Reads them again when the process, if it can, has brought them up to date.
 * Returns a status. */
int freshen(struct target *t);

/* One of the figures; 0 if there is none of that name. */
uint64_t figure(const struct target *t, const char *name);

/*
 * ask - one request.
 *
 * ret: the answer without its first line, the caller's to free.
 * err: the errno value of a refusal.
 * Returns DONE, REFUSED, SILENT, NOBODY or LATE; all but DONE and REFUSED are
 * complained about.
 */
int ask(struct target *t, const char *request, char **ret, int *err);

/* What an errno value of mallctl means for a name. */
const char *why_refused(int err);

/* ------------------------------------------------------------------ */
/* procfs.c: what the kernel says */

/* Bytes; of these mappings alone where a name is asked for. */
struct smaps {
	uint64_t rss;
	uint64_t pss;
	uint64_t anonymous;
	uint64_t huge;
	uint64_t swap;
	uint64_t locked;
	/*
	 * By the names that eddy gives its mappings, or by addresses that its
	 * page tells, then as far as these go; all zero where there is neither.
	 */
	uint64_t objects;
	uint64_t caches;
	uint64_t metadata;
	uint64_t heap;   /* brk: another allocator */
	uint64_t stacks; /* of the main thread */
	uint64_t files;
	uint64_t other; /* anonymous, nobody's */
	unsigned mappings;
	bool named;
	bool placed; /* by addresses */
};

/* Returns false with errno set. */
bool read_smaps(const struct target *t, struct smaps *ret);

/* Rss and Swap alone, quickly. */
bool read_rollup(pid_t pid, struct smaps *ret);

struct cgroup {
	char path[512];
	bool known;
	uint64_t current;
	uint64_t max; /* UINT64_MAX: none */
	uint64_t swap;
	uint64_t anon;
	uint64_t file;
};

void read_cgroup(pid_t pid, struct cgroup *ret);

/* A small file as a string without its last newline; false: none. */
bool read_text(const char *path, char *buf, size_t n);

/* ------------------------------------------------------------------ */
/* table.c: lib/ctl/ctl.tab */

struct ctl_name {
	const char *name; /* with <i>, <j> */
	const char *type;
	const char *access;
	const char *brief;
};

struct ctl_option {
	const char *name;
	const char *kind; /* type, unit, range */
	const char *by_default;
	const char *brief;
};

extern const struct ctl_name ctl_names[];
extern const size_t n_ctl_names;
extern const struct ctl_option ctl_options[];
extern const size_t n_ctl_options;

/* The record of a name; NULL: there is none of that form. */
const struct ctl_name *find_name(const char *name);

#endif /* EDDY_TOOLS_EDDYCTL_H */
