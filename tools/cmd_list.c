/* SPDX-License-Identifier: BSD-2-Clause */
/* cmd_list.c - processes that eddy serves. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "tools/eddyctl.h"

/* Whether the mappings of a process name the library; reads them all. */
static bool
is_served(pid_t pid)
{
	static char line[4400];
	char path[64];
	bool found = false;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = fopen(path, "re");
	while (f != NULL && !found && fgets(line, sizeof(line), f) != NULL)
		found = strstr(line, "/libeddy") != NULL ||
			strstr(line, "[anon:eddy: ") != NULL;
	if (f != NULL)
		(void)fclose(f);
	return found;
}

static const char *
channel_of(const struct target *t)
{
	if (!t->has_page)
		return "none";
	return t->name[0] == '/' && strstr(t->name, "/.eddy-control-") == NULL
		   ? t->name
		   : "auto";
}

static void
show_one(json_t *all, const struct target *t)
{
	struct smaps s = {0};
	json_t *one = json_object();

	(void)read_rollup(t->pid, &s);
	add_number(one, "pid", (uint64_t)t->pid);
	(void)json_object_set_new(one, "command", json_string(t->comm));
	(void)json_object_set_new(one, "channel", json_string(channel_of(t)));
	(void)json_object_set_new(one, "stopped", json_boolean(is_stopped(t)));
	add_number(one, "rss", s.rss);
	if (t->has_page) {
		add_number(one, "live", figure(t, "live"));
		add_number(one, "dirty", figure(t, "dirty"));
	}
	(void)json_array_append_new(all, one);
	if (settings.json)
		return;
	if (json_array_size(all) == 1)
		(void)printf("%8s %12s %12s %12s  %-16s %s\n", "PID", "RSS",
		    "LIVE", "DIRTY", "COMMAND", "CHANNEL");
	(void)printf("%8d %12s %12s %12s  ", (int)t->pid, human(s.rss),
	    t->has_page ? human(figure(t, "live")) : "-",
	    t->has_page ? human(figure(t, "dirty")) : "-");
	put_clean(stdout, t->comm);
	(void)printf(
	    "%*s ", (int)(strlen(t->comm) < 16 ? 16 - strlen(t->comm) : 0), "");
	put_clean(stdout, channel_of(t));
	(void)printf("\n");
}

int
cmd_list(int argc, char **argv)
{
	json_t *all = json_array();
	struct dirent *e;
	DIR *d;
	unsigned hidden = 0;

	(void)argv;
	if (argc != 1) {
		json_decref(all);
		return misused("list");
	}
	/* One that hangs does not keep all others from being seen. */
	if (settings.wait_ms > 500)
		settings.wait_ms = 500;
	d = opendir("/proc");
	while (d != NULL && (e = readdir(d)) != NULL) {
		struct target t;
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);

		if (pid <= 0)
			continue;
		if (!look_at(pid, &t))
			hidden += t.comm[0] != '\0';
		else if (t.has_page || is_served(pid)) {
			if (t.has_page)
				(void)freshen(&t);
			show_one(all, &t);
		}
	}
	if (d != NULL)
		(void)closedir(d);
	if (json_array_size(all) == 0)
		remark("no process is served by eddy");
	if (hidden != 0)
		remark(
		    "%u processes are others' and cannot be looked at", hidden);
	if (settings.json)
		(void)put_json(all);
	else
		json_decref(all);
	return DONE;
}
