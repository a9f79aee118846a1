/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * misuse.h - the frame of a misuse test: one misuse a file.
 *
 * Each file defines misuse(), which announces the pointer and then does the
 * one wrong thing.  It runs in a child; the child must die by SIGABRT, and its
 * stderr must be one line that names the fault and that pointer, no more.
 */
#ifndef EDDY_TESTS_MISUSE_H
#define EDDY_TESTS_MISUSE_H

#include "../probe.h"

/* Set by each file. */
static void misuse(void);
static const char *const misuse_name;
/* The faults that may be named, the second NULL where only one is right. */
static const char *const misuse_fault[2];

struct misuse_report {
	uintptr_t ptr; /* 0: nothing wrong was announced */
};

static struct misuse_report *report;

/* announce - what follows misuses p. */
static inline void
announce(void *p)
{
	report->ptr = (uintptr_t)p;
}

static inline bool
misuse_names(const char *text, const char *fault)
{
	char want[128];

	(void)snprintf(want, sizeof want, "<eddy>: %s: 0x%lx\n", fault,
	    (unsigned long)report->ptr);
	return strcmp(text, want) == 0;
}

/* Runs misuse() with EDDY_CONF=conf; says whether it ends as it must. */
static inline void
misuse_run(const char *conf, char **argv)
{
	char text[1024];
	size_t n = 0;
	ssize_t got;
	int fd[2];
	int st;
	pid_t pid;

	report->ptr = 0;
	if (pipe(fd) != 0)
		tap_bail("pipe");
	pid = fork();
	if (pid == 0) {
		char arg[] = "misuse";
		struct rlimit no_core = {0, 0};

		probe_child_begin(20);
		(void)setrlimit(RLIMIT_CORE, &no_core);
		(void)dup2(fd[1], STDERR_FILENO);
		(void)setenv("EDDY_CONF", conf, 1);
		(void)setenv("EDDY_TAP_CHILD", "1", 1);
		tap_exec(argv[0], arg);
	}
	(void)close(fd[1]);
	while ((got = read(fd[0], text + n, sizeof text - 1 - n)) > 0)
		n += (size_t)got;
	text[n] = '\0';
	(void)close(fd[0]);
	(void)waitpid(pid, &st, 0);
	if (!tap_ok(WIFSIGNALED(st) && WTERMSIG(st) == SIGABRT,
		"%s aborts (%s)", misuse_name,
		*conf != '\0' ? conf : "default"))
		tap_diag("status 0x%x", st);
	if (!tap_ok(report->ptr != 0 &&
			(misuse_names(text, misuse_fault[0]) ||
			    (misuse_fault[1] != NULL &&
				misuse_names(text, misuse_fault[1]))),
		"one line says \"%s\" and which pointer", misuse_fault[0]))
		tap_diag("pointer 0x%lx; stderr: %s",
		    (unsigned long)report->ptr, text);
}

static inline void
misuse_open(void)
{
	static char name[] = "/tmp/eddy-misuse-XXXXXX";
	const char *fd_text = getenv("EDDY_MISUSE_FD");
	char number[16];
	int fd;

	if (fd_text != NULL) {
		fd = atoi(fd_text);
	} else {
		fd = mkstemp(name);
		if (fd < 0 || ftruncate(fd, PAGE) != 0)
			tap_bail("mkstemp");
		(void)unlink(name);
		(void)snprintf(number, sizeof number, "%d", fd);
		(void)setenv("EDDY_MISUSE_FD", number, 1);
	}
	report = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (report == MAP_FAILED)
		tap_bail("mmap");
}

static inline int
misuse_main(int argc, char **argv, const char *conf1, const char *conf2)
{
	tap_begin(argv);
	misuse_open();
	if (argc > 1) {
		misuse();
		return 0;
	}
	tap_guard(60);
	misuse_run(conf1, argv);
	if (conf2 != NULL)
		misuse_run(conf2, argv);
	return tap_end();
}

/*
 * MISUSE - names, the fault that the line states, and the options under which
 * the misuse must be seen (the second may be NULL).
 */
#define MISUSE(name, fault, conf1, conf2) \
	MISUSE_EITHER(name, fault, NULL, conf1, conf2)

#define MISUSE_EITHER(name, fault, other, conf1, conf2)            \
	static const char *const misuse_name = name;               \
	static const char *const misuse_fault[2] = {fault, other}; \
	int main(int argc, char **argv)                            \
	{                                                          \
		return misuse_main(argc, argv, conf1, conf2);      \
	}

#endif /* EDDY_TESTS_MISUSE_H */
