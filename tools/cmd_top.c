/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cmd_top.c - figures that move: processes, or one process by size class,
 * arena, node or CPU.
 *
 * A view is a list of columns over an array of JSON objects, so that what is
 * drawn and what --json prints is the same.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "eddy_config.h"
#include "tools/eddyctl.h"

#ifndef EDDY_HAVE_CURSES
#	define EDDY_HAVE_CURSES 0
#endif
#if EDDY_HAVE_CURSES
#	include <curses.h>
#endif

struct column {
	const char *head;
	const char *key;
	int width;
	enum { COUNT, BYTES, WORD } kind;
};

struct view {
	int key; /* that shows it */
	const char *title;
	const char *part; /* of the statistics; NULL: processes */
	const struct column *columns;
	int n_columns;
	int sort_by;
};

static const struct column process_columns[] = {
    {"PID", "pid", 8, COUNT},
    {"RSS", "rss", 10, BYTES},
    {"LIVE", "live", 10, BYTES},
    {"CACHED", "stranded", 10, BYTES},
    {"DIRTY", "dirty", 10, BYTES},
    {"RETURNED", "purged", 10, BYTES},
    {"COMMAND", "command", -16, WORD},
};

static const struct column class_columns[] = {
    {"SIZE", "size", 8, COUNT},
    {"SLABS", "slabs", 8, COUNT},
    {"LIVE", "live", 10, COUNT},
    {"FREE", "free", 10, COUNT},
    {"CACHED", "cached", 10, COUNT},
    {"REFILLS", "refills", 11, COUNT},
    {"OVERFLOWS", "overflows", 11, COUNT},
};

static const struct column arena_columns[] = {
    {"ARENA", "arena", 7, COUNT},
    {"HOME", "home", 6, COUNT},
    {"NODE", "node", 6, COUNT},
    {"SEGMENTS", "segments", 9, COUNT},
    {"CHUNKS", "chunks", 9, COUNT},
    {"ACTIVE", "active", 11, BYTES},
    {"DIRTY", "dirty", 11, BYTES},
};

static const struct column node_columns[] = {
    {"NODE", "node", 6, COUNT},
    {"HOMES", "homes", 6, COUNT},
    {"ARENAS", "arenas", 7, COUNT},
    {"ACTIVE", "active", 11, BYTES},
    {"DIRTY", "dirty", 11, BYTES},
    {"LOCAL", "local_bytes", 11, BYTES},
    {"REMOTE", "remote_bytes", 11, BYTES},
};

static const struct column cpu_columns[] = {
    {"CPU", "number", 6, COUNT},
    {"CACHED", "bytes", 11, BYTES},
    {"OBJECTS", "objects", 11, COUNT},
    {"REFILLS", "refills", 13, COUNT},
    {"OVERFLOWS", "overflows", 13, COUNT},
    {"ABORTS", "aborts", 10, COUNT},
};

#define COLUMNS(a) a, (int)(sizeof(a) / sizeof((a)[0]))

static const struct view views[] = {
    {'p', "processes", NULL, COLUMNS(process_columns), 1},
    {'c', "classes", "classes", COLUMNS(class_columns), 2},
    {'a', "arenas", "arenas", COLUMNS(arena_columns), 5},
    {'n', "nodes", "nodes", COLUMNS(node_columns), 3},
    {'u', "CPUs", "cpus", COLUMNS(cpu_columns), 1},
};

#define N_VIEWS (sizeof(views) / sizeof(views[0]))

struct top {
	struct target target; /* pid 0: none was named */
	const struct view *view;
	int sort_by;
	bool reverse;
	int first;    /* row that is on top */
	json_t *rows; /* sorted; NULL: none */
	int status;   /* of the last refresh */
	double took;  /* ms */
};

/* ------------------------------------------------------------------ */
/* Rows */

static json_t *
read_processes(void)
{
	json_t *all = json_array();
	struct dirent *e;
	DIR *d = opendir("/proc");

	while (d != NULL && (e = readdir(d)) != NULL) {
		struct target t;
		struct smaps s = {0};
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);
		json_t *one;

		if (pid <= 0 || !look_at(pid, &t) || !t.has_page)
			continue;
		freshen(&t);
		(void)read_rollup(pid, &s);
		one = json_object();
		add_number(one, "pid", (uint64_t)pid);
		add_number(one, "rss", s.rss);
		for (unsigned i = 0; i < t.figures.n; i++)
			add_number(one, t.figures.name[i], t.figures.value[i]);
		(void)json_object_set_new(one, "command", json_string(t.comm));
		(void)json_array_append_new(all, one);
	}
	if (d != NULL)
		(void)closedir(d);
	return all;
}

/* NULL, and a status: there is no answer. */
static json_t *
read_part(struct top *t)
{
	json_error_t e;
	json_t *root;
	json_t *rows;
	char *text;
	int err;

	if (t->target.path == NULL &&
	    (!look_at(t->target.pid, &t->target) || !t->target.has_page)) {
		t->status = NOBODY;
		return NULL;
	}
	t->status = ask(&t->target, "print Jgmdxehf", &text, &err);
	if (t->status != DONE)
		return NULL;
	root = json_loads(text, 0, &e);
	free(text);
	rows = json_object_get(json_object_get(root, "eddy"), t->view->part);
	rows = json_is_array(rows) ? json_incref(rows) : json_array();
	json_decref(root);
	return rows;
}

static const struct column *sorted_by;
static int sign;

static int
compare(const void *a, const void *b)
{
	json_t *x = json_object_get(*(json_t *const *)a, sorted_by->key);
	json_t *y = json_object_get(*(json_t *const *)b, sorted_by->key);

	if (sorted_by->kind == WORD)
		return sign *
		       strcmp(json_is_string(x) ? json_string_value(x) : "",
			   json_is_string(y) ? json_string_value(y) : "");
	return json_integer_value(x) < json_integer_value(y)   ? sign
	       : json_integer_value(x) > json_integer_value(y) ? -sign
							       : 0;
}

/* The largest first; words from A on. */
static json_t *
sort(json_t *rows, const struct column *by, bool reverse)
{
	size_t n = json_array_size(rows);
	json_t **all = calloc(n + 1, sizeof(*all));
	json_t *ret = json_array();

	for (size_t i = 0; all != NULL && i < n; i++)
		all[i] = json_array_get(rows, i);
	sorted_by = by;
	sign = reverse ? -1 : 1;
	if (all != NULL)
		qsort(all, n, sizeof(*all), compare);
	for (size_t i = 0; all != NULL && i < n; i++)
		(void)json_array_append(ret, all[i]);
	free(all);
	json_decref(rows);
	return ret;
}

static void
refresh_rows(struct top *t)
{
	struct timespec a;
	struct timespec b;
	json_t *rows;

	(void)clock_gettime(CLOCK_MONOTONIC, &a);
	t->status = DONE;
	rows = t->view->part == NULL ? read_processes() : read_part(t);
	(void)clock_gettime(CLOCK_MONOTONIC, &b);
	t->took = (double)(b.tv_sec - a.tv_sec) * 1e3 +
		  (double)(b.tv_nsec - a.tv_nsec) / 1e6;
	if (t->rows != NULL)
		json_decref(t->rows);
	t->rows = rows == NULL
		      ? NULL
		      : sort(rows, &t->view->columns[t->sort_by], t->reverse);
}

static void
show_view(struct top *t, const struct view *v)
{
	t->view = v;
	t->sort_by = v->sort_by;
	t->reverse = false;
	t->first = 0;
}

/* ------------------------------------------------------------------ */
/* The screen */

#if EDDY_HAVE_CURSES

static void
cell(char *to, size_t n, const struct column *c, const json_t *row)
{
	json_t *v = json_object_get(row, c->key);

	if (json_is_string(v))
		(void)snprintf(to, n, " %*s", c->width, json_string_value(v));
	else if (!json_is_integer(v))
		(void)snprintf(to, n, " %*s", c->width, "-");
	else if (c->kind == BYTES)
		(void)snprintf(to, n, " %*s", c->width,
		    human((uint64_t)json_integer_value(v)));
	else
		(void)snprintf(
		    to, n, " %*lld", c->width, json_integer_value(v));
	for (char *s = to; *s != '\0'; s++)
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			*s = '?';
}

static void
draw_heads(const struct top *t)
{
	(void)attron(A_REVERSE);
	(void)move(2, 0);
	for (int i = 0; i < t->view->n_columns; i++) {
		const struct column *c = &t->view->columns[i];

		if (i == t->sort_by)
			(void)attron(A_BOLD | A_UNDERLINE);
		(void)printw(" %*s", c->width, c->head);
		if (i == t->sort_by)
			(void)attroff(A_BOLD | A_UNDERLINE);
	}
	for (int x = getcurx(stdscr); x != 0 && x < COLS; x++)
		(void)addch(' ');
	(void)attroff(A_REVERSE);
}

static void
draw_title(const struct top *t)
{
	const struct target *g = &t->target;

	if (g->pid == 0 && g->path == NULL)
		(void)mvprintw(0, 0, "processes that eddy serves");
	else if (g->path != NULL)
		(void)mvprintw(0, 0, "%s: %s", g->path, t->view->title);
	else
		(void)mvprintw(0, 0,
		    "%d (%s): %s; live %s, cached %s, dirty %s", (int)g->pid,
		    g->comm, t->view->title, human(figure(g, "live")),
		    human(figure(g, "stranded")), human(figure(g, "dirty")));
	(void)mvprintw(1, 0, "sorted by %s%s; every %.1f s; asked in %.1f ms",
	    t->view->columns[t->sort_by].head, t->reverse ? ", reversed" : "",
	    settings.interval, t->took);
}

static void
draw(const struct top *t)
{
	int rows = LINES - 4;
	int n = (int)json_array_size(t->rows);

	(void)erase();
	draw_title(t);
	draw_heads(t);
	for (int i = 0; i < rows && t->first + i < n; i++) {
		json_t *row = json_array_get(t->rows, (size_t)(t->first + i));

		(void)move(3 + i, 0);
		for (int k = 0; k < t->view->n_columns; k++) {
			char text[128];

			cell(text, sizeof(text), &t->view->columns[k], row);
			(void)addnstr(text, COLS - getcurx(stdscr) > 0
						? COLS - getcurx(stdscr)
						: 0);
			if (getcury(stdscr) != 3 + i)
				break;
		}
	}
	if (t->status != DONE)
		(void)mvprintw(4, 2, "%s",
		    t->status == NOBODY ? "the process is gone"
					: "no answer: stopped, or busy");
	else if (n == 0)
		(void)mvprintw(4, 2, "nothing to show");
	(void)attron(A_REVERSE);
	(void)mvprintw(LINES - 1, 0, "%-*.*s", COLS - 1, COLS - 1,
	    t->target.pid == 0 && t->target.path == NULL
		? "q quit  < > sort by  r reverse  + - interval  up down"
		: "q quit  c classes  a arenas  n nodes  u CPUs  < > sort by"
		  "  r reverse  + -");
	(void)attroff(A_REVERSE);
	(void)refresh();
}

/* Returns false: that was the end. */
static bool
obey(struct top *t, int key)
{
	int n = (int)json_array_size(t->rows);

	switch (key) {
	case 'q':
		return false;
	case '<':
	case KEY_LEFT:
		t->sort_by -= t->sort_by > 0;
		break;
	case '>':
	case KEY_RIGHT:
		t->sort_by += t->sort_by < t->view->n_columns - 1;
		break;
	case 'r':
		t->reverse = !t->reverse;
		break;
	case '+':
		settings.interval *= 2;
		break;
	case '-':
		if (settings.interval > 0.2)
			settings.interval /= 2;
		break;
	case KEY_DOWN:
		t->first += t->first < n - 1;
		break;
	case KEY_UP:
		t->first -= t->first > 0;
		break;
	case KEY_NPAGE:
		t->first =
		    t->first + LINES - 4 < n ? t->first + LINES - 4 : t->first;
		break;
	case KEY_PPAGE:
		t->first = t->first > LINES - 4 ? t->first - (LINES - 4) : 0;
		break;
	default:
		for (size_t i = 1; i < N_VIEWS; i++)
			if (views[i].key == key && t->view->part != NULL)
				show_view(t, &views[i]);
		break;
	}
	return true;
}

static void
live(struct top *t)
{
	long left = settings.times;
	bool on = true;

	settings.quiet = true;
	(void)initscr();
	(void)cbreak();
	(void)noecho();
	(void)keypad(stdscr, TRUE);
	(void)curs_set(0);
	while (on) {
		int key;

		refresh_rows(t);
		draw(t);
		if (settings.times != 0 && --left <= 0)
			break;
		timeout((int)(settings.interval * 1000));
		key = getch();
		/* What is typed ahead is obeyed before the next look. */
		while (key != ERR && on) {
			on = obey(t, key);
			timeout(0);
			key = getch();
		}
	}
	(void)endwin();
}

#else

static void
live(struct top *t)
{
	(void)t;
}

#endif

int
cmd_top(int argc, char **argv)
{
	struct top t = {.status = DONE};
	int status = DONE;

	if (argc > 2)
		return misused("top");
	show_view(&t, &views[argc == 2]);
	if (argc == 2)
		status = find_channel(argv[1], &t.target);
	if (status != DONE)
		return status;
	if (!settings.json && (!EDDY_HAVE_CURSES || !isatty(STDOUT_FILENO))) {
		complain(EDDY_HAVE_CURSES
			     ? "top needs a terminal; watch writes to files"
			     : "top was not built in: no ncurses");
		return USAGE;
	}
	if (!settings.json) {
		/* Faults are on the screen, not through it. */
		silence(true);
		live(&t);
		silence(false);
		status = t.status;
	} else {
		refresh_rows(&t);
		status = t.status;
		if (t.rows != NULL)
			(void)put_json(json_incref(t.rows));
	}
	if (t.rows != NULL)
		json_decref(t.rows);
	if (status == NOBODY && !settings.json)
		complain("%s is gone", t.target.comm);
	return status;
}
