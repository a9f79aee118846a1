/* SPDX-License-Identifier: BSD-2-Clause */
/* cmd_names.c - get, set, call, names, options, and the heap profile by them.
 */
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/eddyctl.h"

/* What a name that was refused might have been meant to be. */
static void
complain_of_name(const char *name, int err)
{
	const struct ctl_name *n = find_name(name);

	if (strncmp(name, "thread.", 7) == 0)
		complain("%s: it is of the thread that asks, and none of the "
			 "program's does",
		    name);
	else if (err == ENOENT && strncmp(name, "prof.", 5) == 0)
		complain(
		    "%s: start the process with the option prof:true", name);
	else if (err == EFAULT && strcmp(name, "prof.dump") == 0)
		complain("%s: the process could not write that file", name);
	else if (n == NULL)
		complain("%s: no such name; eddyctl names lists them", name);
	else if (err == EPERM && strcmp(n->access, "void") == 0)
		complain("%s is an action: call it", name);
	else if (err == EPERM && strcmp(n->access, "r") == 0)
		complain("%s can only be read", name);
	else if (err == EINVAL)
		complain(
		    "%s takes a value of type %s, in its range", name, n->type);
	else if (err == ENOENT)
		complain("%s: nothing of that number, or not built in", name);
	else
		complain("%s: %s", name, why_refused(err));
}

static json_t *
json_of(const char *type, const char *value)
{
	if (strcmp(type, "bool") == 0)
		return json_boolean(strcmp(value, "true") == 0);
	if (strcmp(type, "string") == 0 || strcmp(type, "pointer") == 0)
		return json_string(value);
	if (value[0] != '-' && strtoull(value, NULL, 10) > INT64_MAX)
		return json_real(strtod(value, NULL));
	return json_integer(strtoll(value, NULL, 10));
}

/* "NAME TYPE VALUE" or "NAME ! ERRNO".  Returns a status. */
static int
take_value(char *line, bool alone, json_t *all)
{
	char *type = strchr(line, ' ');
	char *value;

	if (type == NULL)
		return SILENT;
	*type++ = '\0';
	value = strchr(type, ' ');
	if (value == NULL)
		return SILENT;
	*value++ = '\0';
	if (strcmp(type, "!") == 0) {
		complain_of_name(line, atoi(value));
		return REFUSED;
	}
	if (settings.json)
		(void)json_object_set_new(all, line, json_of(type, value));
	else if (alone)
		(void)printf("%s\n", value);
	else
		(void)printf("%s %s\n", line, value);
	return DONE;
}

/* Names in one request; false: they do not fit. */
static bool
join(char *to, size_t room, const char *verb, int argc, char **argv)
{
	size_t n = (size_t)snprintf(to, room, "%s", verb);

	for (int i = 0; i < argc && n < room; i++)
		n += (size_t)snprintf(to + n, room - n, " %s", argv[i]);
	return n < room;
}

/* A name has neither blanks nor line ends. */
static bool
is_name(const char *s)
{
	if (s[0] != '\0' && strpbrk(s, " \n\r\t") == NULL)
		return true;
	complain("\"%s\" is no name", s);
	return false;
}

int
cmd_get(int argc, char **argv)
{
	char request[1000];
	struct target t;
	json_t *all;
	char *text;
	char *rest;
	int err;
	int status;

	if (argc < 3)
		return misused("get");
	for (int i = 2; i < argc; i++)
		if (!is_name(argv[i]))
			return USAGE;
	if (!join(request, sizeof(request), "get", argc - 2, argv + 2)) {
		complain("too many names for one request");
		return USAGE;
	}
	status = find_channel(argv[1], &t);
	if (status == DONE)
		status = ask(&t, request, &text, &err);
	if (status != DONE)
		return status;
	all = json_object();
	rest = text;
	for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
		int one =
		    *line != '\0' ? take_value(line, argc == 3, all) : DONE;

		status = one != DONE ? one : status;
	}
	free(text);
	if (settings.json)
		(void)put_json(all);
	else
		json_decref(all);
	return status;
}

/* A request whose answer is "ok" alone. */
static int
command(const char *who, const char *request, const char *name)
{
	struct target t;
	char *text;
	int err;
	int status = find_channel(who, &t);

	if (status == DONE)
		status = ask(&t, request, &text, &err);
	if (status == REFUSED && name != NULL)
		complain_of_name(name, err);
	else if (status == REFUSED)
		complain("%s", why_refused(err));
	if (status != DONE)
		return status;
	free(text);
	if (settings.json)
		(void)put_json(json_pack("{s:b}", "ok", 1));
	return DONE;
}

int
cmd_set(int argc, char **argv)
{
	char request[1000];

	if (argc != 4)
		return misused("set");
	if (!is_name(argv[2]))
		return USAGE;
	if (strpbrk(argv[3], "\n\r") != NULL ||
	    !join(request, sizeof(request), "set", 2, argv + 2)) {
		complain("the value is too long, or has more than one line");
		return USAGE;
	}
	return command(argv[1], request, argv[2]);
}

int
cmd_call(int argc, char **argv)
{
	char request[1000];
	const struct ctl_name *n;

	if (argc != 3)
		return misused("call");
	if (!is_name(argv[2]) ||
	    !join(request, sizeof(request), "call", 1, argv + 2))
		return USAGE;
	n = find_name(argv[2]);
	if (n != NULL && strcmp(n->access, "void") != 0) {
		complain("%s is no action: get or set it", argv[2]);
		return REFUSED;
	}
	return command(argv[1], request, argv[2]);
}

static int
simple(int argc, char **argv)
{
	if (argc != 2)
		return misused(argv[0]);
	return command(argv[1], argv[0], NULL);
}

int
cmd_idle(int argc, char **argv)
{
	return simple(argc, argv);
}

int
cmd_freeze(int argc, char **argv)
{
	return simple(argc, argv);
}

int
cmd_thaw(int argc, char **argv)
{
	return simple(argc, argv);
}

int
cmd_prof(int argc, char **argv)
{
	char request[1000];
	char file[PATH_MAX] = "";
	bool dumps = argc >= 3 && strcmp(argv[2], "dump") == 0;

	if (argc < 3 || argc > 3 + dumps)
		return misused("prof");
	if (strcmp(argv[2], "start") == 0)
		return command(argv[1], "set prof.active true", "prof.active");
	if (strcmp(argv[2], "stop") == 0)
		return command(argv[1], "set prof.active false", "prof.active");
	if (!dumps || argc != 4)
		return misused("prof");
	/* The process has a folder of its own to start from. */
	if (argv[3][0] != '/' && getcwd(file, sizeof(file) - 1) != NULL)
		(void)strcat(file, "/");
	if (snprintf(request, sizeof(request), "set prof.dump %s%s", file,
		argv[3]) >= (int)sizeof(request) ||
	    strpbrk(argv[3], "\n\r") != NULL) {
		complain("%s: too long a name", argv[3]);
		return USAGE;
	}
	return command(argv[1], request, "prof.dump");
}

/* ------------------------------------------------------------------ */
/* The table */

/* A part of the name, or a pattern of the whole. */
static bool
matches(const char *pattern, const char *name)
{
	return pattern == NULL || strstr(name, pattern) != NULL ||
	       fnmatch(pattern, name, 0) == 0;
}

static const char *
access_words(const char *access)
{
	return strcmp(access, "r") == 0    ? "read"
	       : strcmp(access, "w") == 0  ? "write"
	       : strcmp(access, "rw") == 0 ? "read, write"
					   : "call";
}

int
cmd_names(int argc, char **argv)
{
	const char *pattern = argc > 1 ? argv[1] : NULL;
	json_t *all = json_array();

	if (argc > 2) {
		json_decref(all);
		return misused("names");
	}
	for (size_t i = 0; i < n_ctl_names; i++) {
		const struct ctl_name *n = &ctl_names[i];

		if (!matches(pattern, n->name))
			continue;
		(void)json_array_append_new(
		    all, json_pack("{s:s,s:s,s:s,s:s}", "name", n->name, "type",
			     n->type, "access", access_words(n->access),
			     "brief", n->brief));
		if (!settings.json)
			(void)printf("%-44s %-8s %-11s %s\n", n->name, n->type,
			    access_words(n->access), n->brief);
	}
	if (json_array_size(all) == 0) {
		json_decref(all);
		complain("no name has %s in it", pattern);
		return REFUSED;
	}
	if (settings.json)
		(void)put_json(all);
	else
		json_decref(all);
	return DONE;
}

int
cmd_options(int argc, char **argv)
{
	const char *pattern = argc > 1 ? argv[1] : NULL;
	json_t *all = json_array();

	if (argc > 2) {
		json_decref(all);
		return misused("options");
	}
	for (size_t i = 0; i < n_ctl_options; i++) {
		const struct ctl_option *o = &ctl_options[i];

		if (!matches(pattern, o->name))
			continue;
		(void)json_array_append_new(all,
		    json_pack("{s:s,s:s,s:s,s:s}", "name", o->name, "values",
			o->kind, "default", o->by_default, "brief", o->brief));
		if (!settings.json)
			(void)printf("%-26s %s (%s; default %s)\n", o->name,
			    o->brief, o->kind,
			    o->by_default[0] != '\0' ? o->by_default : "none");
	}
	if (json_array_size(all) == 0) {
		json_decref(all);
		complain("no option has %s in it", pattern);
		return REFUSED;
	}
	if (settings.json)
		(void)put_json(all);
	else
		json_decref(all);
	return DONE;
}
