/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tasks.h - the threads of a process as /proc shows them, and eddy's among
 * them.
 */
#ifndef EDDY_TESTS_TASKS_H
#define EDDY_TESTS_TASKS_H

#include "probe.h"

#include <dirent.h>

struct tasks {
	int n;       /* all */
	int workers; /* eddy_bg0, eddy_bg1, ... */
	pid_t worker[64];
};

/* task_line - the text behind "NAME:" in a thread's status; "" if none. */
static inline void
task_line(pid_t tid, const char *name, char *ret, size_t n)
{
	char path[64];
	char line[512];
	FILE *f;

	ret[0] = '\0';
	(void)snprintf(path, sizeof path, "/proc/self/task/%d/status", tid);
	f = fopen(path, "re");
	if (f == NULL)
		return;
	while (fgets(line, sizeof line, f) != NULL)
		if (strncmp(line, name, strlen(name)) == 0 &&
		    line[strlen(name)] == ':') {
			(void)snprintf(ret, n, "%s",
			    line + strlen(name) + 1 +
				strspn(line + strlen(name) + 1, " \t"));
			ret[strcspn(ret, "\n")] = '\0';
			break;
		}
	(void)fclose(f);
}

static inline struct tasks
tasks_look(void)
{
	struct tasks t = {0};
	DIR *d = opendir("/proc/self/task");
	const struct dirent *e;

	if (d == NULL)
		tap_bail("no /proc/self/task");
	while ((e = readdir(d)) != NULL) {
		char name[64];
		pid_t tid = (pid_t)strtol(e->d_name, NULL, 10);

		if (tid == 0)
			continue;
		task_line(tid, "Name", name, sizeof name);
		t.n++;
		if (strncmp(name, "eddy_bg", 7) == 0 && t.workers < 64)
			t.worker[t.workers++] = tid;
	}
	(void)closedir(d);
	return t;
}

/*
 * tasks_wait - until there are so many workers, 5 seconds at most (times
 * patience), and then a while more, for one too many.
 */
static inline struct tasks
tasks_wait(int workers)
{
	struct tasks t = tasks_look();

	for (unsigned i = 0; i < 500 * tap_patience() && t.workers < workers;
	     i++) {
		(void)usleep(10000);
		t = tasks_look();
	}
	(void)usleep(50000);
	t = tasks_look();
	if (t.workers != workers)
		tap_diag("%d workers of %d threads", t.workers, t.n);
	return t;
}

static inline void *
task_idle(void *arg)
{
	return arg;
}

/* task_create - a thread that ends at once, so that there was one. */
static inline int
task_create(void)
{
	pthread_t t;
	int err = pthread_create(&t, NULL, task_idle, NULL);

	return err != 0 ? err : pthread_join(t, NULL);
}

/* One behaviour, in a process of its own. */
struct part {
	const char *name; /* argument of that process */
	const char *conf; /* its EDDY_CONF */
	int (*run)(void); /* 0: it holds; 77: cannot be looked at here */
	const char *text; /* NULL: another part runs it */
};

/*
 * part_wait - the status of a part, as text.  One that hangs is killed, for a
 * process of which our thread alone is left minds no other signal.
 */
static inline bool
part_wait(pid_t pid, char *why, size_t n)
{
	siginfo_t info;

	for (unsigned i = 0; i < 4500 * tap_patience(); i++) {
		info.si_pid = 0;
		if (waitid(P_PID, (id_t)pid, &info,
			WEXITED | WNOHANG | WNOWAIT) == 0 &&
		    info.si_pid == pid)
			return probe_wait(pid, why, n);
		(void)usleep(10000);
	}
	(void)kill(pid, SIGKILL);
	(void)probe_wait(pid, why, n);
	(void)snprintf(why, n, "hung");
	return false;
}

/* parts_main - all parts; or the one that argv names. */
static inline int
parts_main(int argc, char **argv, const struct part *part, size_t n)
{
	for (size_t i = 0; argc > 1 && i < n; i++)
		if (strcmp(argv[1], part[i].name) == 0)
			return part[i].run();
	if (argc > 1)
		return 98;
	tap_guard(110);
	for (size_t i = 0; i < n; i++) {
		char why[64];
		char name[32];
		pid_t pid;

		if (part[i].text == NULL)
			continue;
		(void)setenv("EDDY_CONF", part[i].conf, 1);
		(void)setenv("EDDY_TAP_CHILD", "1", 1);
		(void)snprintf(name, sizeof name, "%s", part[i].name);
		pid = fork();
		if (pid == 0) {
			probe_child_begin(40);
			tap_exec(argv[0], name);
		}
		if (part_wait(pid, why, sizeof why)) {
			tap_ok(true, "%s", part[i].text);
		} else if (strcmp(why, "exit 77") == 0) {
			tap_skip(part[i].text, "not to be had here");
		} else {
			tap_diag("%s: %s", part[i].name, why);
			tap_ok(false, "%s", part[i].text);
		}
	}
	return tap_end();
}

#endif /* EDDY_TESTS_TASKS_H */
