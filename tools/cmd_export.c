/* SPDX-License-Identifier: BSD-2-Clause */
/* cmd_export.c - export, watch, plot: figures for other programs. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/eddyctl.h"

/* Figures that are sums since the start. */
static bool
is_counter(const char *name)
{
	return strcmp(name, "purged") == 0 || strcmp(name, "purges") == 0 ||
	       strcmp(name, "refused") == 0 || strcmp(name, "requests") == 0 ||
	       strcmp(name, "frozen_growth") == 0;
}

static bool
is_bytes(const char *name)
{
	static const char *const others[] = {"purges", "refused", "cpus",
	    "homes", "arenas", "background_threads", "frozen", "frozen_growth",
	    "requests", "time"};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strcmp(name, others[i]) == 0)
			return false;
	return true;
}

static bool
is_address(const char *name)
{
	size_t n = strlen(name);

	return (n > 3 && strcmp(name + n - 3, "_at") == 0) ||
	       (n > 4 && strcmp(name + n - 4, "_end") == 0);
}

static const char *
help_of(const char *name)
{
	static const struct {
		const char *name;
		const char *words;
	} all[] = {
	    {"live", "held by the program"},
	    {"stranded", "cached by CPUs or on its way between them"},
	    {"stranded_bound", "what can be stranded at most"},
	    {"active", "pages cut into objects or handed out whole"},
	    {"dirty", "free pages that decay"},
	    {"muzzy", "free pages that the kernel may take"},
	    {"metadata", "metadata, an estimate"},
	    {"resident", "what may be in memory of all that"},
	    {"mapped", "accessible addresses"},
	    {"retained", "addresses set aside without access"},
	    {"row_bytes", "cached by CPUs, of their own home"},
	    {"remote_row_bytes", "cached by CPUs, of other homes"},
	    {"ring_bytes", "in rings, on its way"},
	    {"cell_bytes", "in cells"},
	    {"purged", "given back to the kernel"},
	    {"purges", "calls of the kernel for that"},
	    {"refused", "such calls that the kernel refused"},
	    {"cpus", "CPUs with caches"},
	    {"homes", "memory nodes or last-level caches"},
	    {"arenas", "arenas in use"},
	    {"background_threads", "background threads"},
	    {"frozen", "1 if the heap is frozen"},
	    {"frozen_growth", "times that memory was not there while frozen"},
	    {"requests", "requests by the channel"},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (strcmp(all[i].name, name) == 0)
			return all[i].words;
	return name;
}

/* A file that is whole or not there: beside it, then in its place. */
struct output {
	FILE *f;
	char part[4096];
};

static bool
open_output(struct output *o)
{
	o->f = stdout;
	if (settings.output == NULL || strcmp(settings.output, "-") == 0) {
		settings.output = NULL;
		return true;
	}
	(void)snprintf(
	    o->part, sizeof(o->part), "%s.%d", settings.output, (int)getpid());
	o->f = fopen(o->part, "we");
	if (o->f != NULL)
		return true;
	complain("%s: %s", o->part, strerror(errno));
	return false;
}

static int
close_output(struct output *o)
{
	bool good;

	if (settings.output == NULL)
		return DONE;
	good = fflush(o->f) == 0 && !ferror(o->f);
	good =
	    fclose(o->f) == 0 && good && rename(o->part, settings.output) == 0;
	if (good)
		return DONE;
	complain("%s: %s", settings.output, strerror(errno));
	(void)unlink(o->part);
	return REFUSED;
}

/* A label's value. */
static void
put_label(FILE *f, const char *s)
{
	for (; *s != '\0'; s++) {
		if (*s == '"' || *s == '\\')
			(void)fputc('\\', f);
		(void)fputc((unsigned char)*s < ' ' ? '?' : *s, f);
	}
}

static void
put_metric(FILE *f, const struct target *t, const char *name, const char *unit,
    const char *words, bool counter, uint64_t v)
{
	(void)fprintf(f, "# HELP eddy_%s%s%s %s\n# TYPE eddy_%s%s%s %s\n", name,
	    unit, counter ? "_total" : "", words, name, unit,
	    counter ? "_total" : "", counter ? "counter" : "gauge");
	(void)fprintf(f, "eddy_%s%s%s{pid=\"%d\",command=\"", name, unit,
	    counter ? "_total" : "", (int)t->pid);
	put_label(f, t->comm);
	(void)fprintf(f, "\"} %ju\n", (uintmax_t)v);
}

int
cmd_export(int argc, char **argv)
{
	struct target t;
	struct output o;
	struct smaps s = {0};
	int status;

	if (argc != 2)
		return misused("export");
	if (!settings.prometheus && !settings.json) {
		complain("say --prometheus or --json");
		return USAGE;
	}
	status = find_channel(argv[1], &t);
	if (status == DONE && t.path != NULL) {
		complain("export needs the process id");
		status = USAGE;
	}
	if (status == DONE)
		status = freshen(&t);
	if (status != DONE)
		return status;
	(void)read_rollup(t.pid, &s);
	if (settings.json) {
		json_t *all = json_object();

		add_number(all, "pid", (uint64_t)t.pid);
		add_number(all, "rss", s.rss);
		for (unsigned i = 0; i < t.figures.n; i++)
			add_number(all, t.figures.name[i], t.figures.value[i]);
		return put_json(all) ? DONE : REFUSED;
	}
	if (!open_output(&o))
		return REFUSED;
	put_metric(o.f, &t, "process_resident", "_bytes",
	    "resident memory of the process, by the kernel", false, s.rss);
	put_metric(o.f, &t, "process_swapped", "_bytes",
	    "memory of the process that is swapped out", false, s.swap);
	put_metric(o.f, &t, "figures_age", "_milliseconds",
	    "how old these figures are", false, t.figures.age_ms);
	for (unsigned i = 0; i < t.figures.n; i++) {
		const char *name = t.figures.name[i];
		size_t n = strlen(name);

		if (strcmp(name, "time") == 0 || is_address(name))
			continue;
		/* "_bytes" is said once. */
		put_metric(o.f, &t, name,
		    is_bytes(name) &&
			    (n < 6 || strcmp(name + n - 6, "_bytes") != 0)
			? "_bytes"
			: "",
		    help_of(name), is_counter(name), t.figures.value[i]);
	}
	return close_output(&o);
}

/* ------------------------------------------------------------------ */
/* watch */

static const char *const columns[] = {"live", "stranded", "active", "dirty",
    "muzzy", "metadata", "resident", "purged"};

#define N_COLUMNS (sizeof(columns) / sizeof(columns[0]))

static volatile sig_atomic_t ended;

static void
end_it(int sig)
{
	(void)sig;
	ended = 1;
}

/* An object a line. */
static void
put_json_row(FILE *f, const struct target *t, const struct smaps *s,
    const struct timespec *now)
{
	json_t *one = json_object();

	(void)json_object_set_new(one, "time",
	    json_real((double)now->tv_sec + (double)now->tv_nsec / 1e9));
	add_number(one, "rss", s->rss);
	for (size_t i = 0; i < N_COLUMNS; i++)
		add_number(one, columns[i], figure(t, columns[i]));
	(void)json_dumpf(one, f, JSON_COMPACT | JSON_REAL_PRECISION(13));
	(void)fputc('\n', f);
	(void)fflush(f);
	json_decref(one);
}

static void
put_row(FILE *f, const struct target *t)
{
	struct smaps s = {0};
	struct timespec now;

	(void)read_rollup(t->pid, &s);
	(void)clock_gettime(CLOCK_REALTIME, &now);
	if (settings.json) {
		put_json_row(f, t, &s, &now);
		return;
	}
	(void)fprintf(f, "%lld.%03ld,%ju", (long long)now.tv_sec,
	    now.tv_nsec / 1000000, (uintmax_t)s.rss);
	for (size_t i = 0; i < N_COLUMNS; i++)
		(void)fprintf(f, ",%ju", (uintmax_t)figure(t, columns[i]));
	(void)fprintf(f, "\n");
	(void)fflush(f);
}

static void
put_heads(FILE *f)
{
	(void)fprintf(f, "time,rss");
	for (size_t i = 0; i < N_COLUMNS; i++)
		(void)fprintf(f, ",%s", columns[i]);
	(void)fprintf(f, "\n");
}

/* Until the next row is due, or a signal. */
static void
wait_until(struct timespec *at)
{
	double whole = settings.interval;

	at->tv_sec += (time_t)whole;
	at->tv_nsec += (long)((whole - (double)(time_t)whole) * 1e9);
	if (at->tv_nsec >= 1000000000) {
		at->tv_nsec -= 1000000000;
		at->tv_sec++;
	}
	(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, at, NULL);
}

int
cmd_watch(int argc, char **argv)
{
	struct sigaction act = {.sa_handler = end_it};
	struct timespec at;
	struct target t;
	FILE *f = stdout;
	int status;

	if (argc != 2)
		return misused("watch");
	status = find_channel(argv[1], &t);
	if (status == DONE && t.path != NULL) {
		complain("watch needs the process id");
		status = USAGE;
	}
	if (status != DONE)
		return status;
	if (settings.output != NULL && strcmp(settings.output, "-") != 0)
		f = fopen(settings.output, "we");
	if (f == NULL) {
		complain("%s: %s", settings.output, strerror(errno));
		return REFUSED;
	}
	(void)sigaction(SIGINT, &act, NULL);
	(void)sigaction(SIGTERM, &act, NULL);
	if (!settings.json)
		put_heads(f);
	(void)clock_gettime(CLOCK_MONOTONIC, &at);
	for (long i = 0; !ended && (settings.times == 0 || i < settings.times);
	     i++) {
		if (i != 0)
			wait_until(&at);
		if (ended || !look_at(t.pid, &t) || !t.has_page ||
		    freshen(&t) != DONE)
			break;
		put_row(f, &t);
		if (ferror(f))
			break;
	}
	if (f != stdout && fclose(f) != 0) {
		complain("%s: %s", settings.output, strerror(errno));
		return REFUSED;
	}
	return DONE;
}

int
cmd_plot(int argc, char **argv)
{
	static char script[16384];
	const char *out = settings.output;

	if (argc != 2 || out == NULL)
		return misused("plot");
	if (access(argv[1], R_OK) != 0) {
		complain("%s: %s", argv[1], strerror(errno));
		return REFUSED;
	}
	if (strpbrk(argv[1], "'\n") != NULL || strpbrk(out, "'\n") != NULL) {
		complain("no quotes in names of files, please");
		return USAGE;
	}
	if (snprintf(script, sizeof(script),
		"set terminal png size 1200,600; set output '%s'; "
		"set datafile separator ','; set key outside; "
		"set xlabel 'seconds'; set ylabel 'MiB'; set grid; "
		"set yrange [0:*]; t0 = NaN; "
		"plot for [i=2:8] '%s' using "
		"((t0 = t0 == t0 ? t0 : column(1)), column(1) - t0):"
		"(column(i) / 1048576) with lines linewidth 2 "
		"title columnheader(i)",
		out, argv[1]) >= (int)sizeof(script)) {
		complain("too long names of files");
		return USAGE;
	}
	(void)fflush(stdout);
	(void)execlp("gnuplot", "gnuplot", "-e", script, (char *)NULL);
	complain("gnuplot: %s; install it (gnuplot-nox)", strerror(errno));
	return REFUSED;
}
