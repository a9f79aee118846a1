/* SPDX-License-Identifier: BSD-2-Clause */
/* cmd_map.c - a picture of the heap, as a page for a browser. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/eddyctl.h"

/* map.html in two parts, before and behind the data. */
#include "tools/map_page.inc"

/* "-" is none. */
static json_t *
number_or_null(const char *word)
{
	return strcmp(word, "-") == 0 ? json_null() : json_integer(atoll(word));
}

/* SIZE:SLABS:LIVE:FREE */
static void
add_class(json_t *classes, const char *word)
{
	long long size;
	long long slabs;
	long long live;
	long long unused;

	if (sscanf(word, "%lld:%lld:%lld:%lld", &size, &slabs, &live,
		&unused) == 4)
		(void)json_array_append_new(classes,
		    json_pack("{s:I,s:I,s:I,s:I}", "size", (json_int_t)size,
			"slabs", (json_int_t)slabs, "live", (json_int_t)live,
			"free", (json_int_t)unused));
}

/* A line of the answer (lib/ctl/control.h); NULL: it is none. */
static json_t *
read_chunk(char *line)
{
	enum { CHUNK, ARENA, NODE, KIND, ACTIVE, DIRTY, MUZZY, COUNT, N };
	char *word[N];
	char *rest = line;
	json_t *one;
	json_t *classes;

	for (int i = 0; i < N; i++)
		if ((word[i] = strsep(&rest, " ")) == NULL)
			return NULL;
	one = json_object();
	classes = json_array();
	(void)json_object_set_new(
	    one, "chunk", json_integer(atoll(word[CHUNK])));
	(void)json_object_set_new(one, "arena", number_or_null(word[ARENA]));
	(void)json_object_set_new(one, "node", number_or_null(word[NODE]));
	(void)json_object_set_new(one, "kind", json_string(word[KIND]));
	(void)json_object_set_new(
	    one, "active", json_integer(atoll(word[ACTIVE])));
	(void)json_object_set_new(
	    one, "dirty", json_integer(atoll(word[DIRTY])));
	(void)json_object_set_new(
	    one, "muzzy", json_integer(atoll(word[MUZZY])));
	(void)json_object_set_new(
	    one, "count", json_integer(atoll(word[COUNT])));
	for (char *w; (w = strsep(&rest, " ")) != NULL;)
		add_class(classes, w);
	(void)json_object_set_new(one, "classes", classes);
	return one;
}

static json_t *
read_map(struct target *t, int *status)
{
	json_t *all;
	json_t *chunks;
	char *text;
	char *rest;
	int err;

	*status = ask(t, "map", &text, &err);
	if (*status == REFUSED)
		complain("%s", why_refused(err));
	if (*status != DONE)
		return NULL;
	all = json_object();
	chunks = json_array();
	rest = text;
	for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
		json_t *one = read_chunk(line);

		if (one != NULL)
			(void)json_array_append_new(chunks, one);
	}
	free(text);
	add_number(all, "pid", (uint64_t)t->pid);
	(void)json_object_set_new(all, "command", json_string(t->comm));
	(void)json_object_set_new(all, "version", json_string(t->version));
	(void)json_object_set_new(all, "chunks", chunks);
	return all;
}

/* Within a script an end of it must not be seen. */
static bool
write_page(FILE *f, json_t *all)
{
	char *text = json_dumps(all, JSON_COMPACT | JSON_ENSURE_ASCII);

	if (text == NULL)
		return false;
	for (size_t i = 0; page_before[i] != NULL; i++)
		(void)fprintf(f, "%s\n", page_before[i]);
	for (const char *s = text; *s != '\0'; s++)
		if (*s == '<')
			(void)fputs("\\u003c", f);
		else
			(void)fputc(*s, f);
	(void)fputc('\n', f);
	for (size_t i = 0; page_behind[i] != NULL; i++)
		(void)fprintf(f, "%s\n", page_behind[i]);
	free(text);
	return fflush(f) == 0 && !ferror(f);
}

int
cmd_map(int argc, char **argv)
{
	struct target t;
	json_t *all;
	FILE *f = stdout;
	bool good;
	int status;

	if (argc != 2)
		return misused("map");
	status = find_channel(argv[1], &t);
	if (status != DONE)
		return status;
	all = read_map(&t, &status);
	if (all == NULL)
		return status;
	if (settings.json)
		return put_json(all) ? DONE : REFUSED;
	if (settings.output == NULL && isatty(STDOUT_FILENO)) {
		json_decref(all);
		complain("-o says where the page goes");
		return USAGE;
	}
	if (settings.output != NULL && strcmp(settings.output, "-") != 0)
		f = fopen(settings.output, "we");
	good = f != NULL && write_page(f, all);
	if (f != NULL && f != stdout)
		good = fclose(f) == 0 && good;
	json_decref(all);
	if (good)
		return DONE;
	complain("%s: %s",
	    settings.output != NULL ? settings.output : "standard output",
	    strerror(errno));
	return REFUSED;
}
