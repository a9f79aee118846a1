/* SPDX-License-Identifier: BSD-2-Clause */
/* eddyctl.c - see and steer processes that eddy serves: eddyctl(1). */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "eddy/eddy.h"
#include "tools/eddyctl.h"

struct settings settings = {.interval = 1, .wait_ms = 5000};

static const struct command {
	int (*run)(int argc, char **argv);
	const char *name;
	const char *arguments;
	const char *brief;
} commands[] = {
#define COMMAND(function, name, arguments, brief) \
	{cmd_##function, name, arguments, brief},
#include "tools/commands.def"
#undef COMMAND
};

#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static const struct command *
find_command(const char *name)
{
	for (size_t i = 0; i < N_COMMANDS; i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

static void
print_help(FILE *to)
{
	(void)fprintf(to, "usage: eddyctl [--json] COMMAND [ARGUMENT...]\n\n");
	for (size_t i = 0; i < N_COMMANDS; i++)
		(void)fprintf(
		    to, "  %-14s %s\n", commands[i].name, commands[i].brief);
	(void)fprintf(to,
	    "\n  PID is a number, or the path of a socket.\n"
	    "  eddyctl help COMMAND says what a command takes; eddyctl(1) "
	    "says more.\n");
}

static void
print_usage(FILE *to, const struct command *c)
{
	(void)fprintf(to, "usage: eddyctl %s%s%s\n  %s\n", c->name,
	    c->arguments[0] != '\0' ? " " : "", c->arguments, c->brief);
}

int
misused(const char *command)
{
	const struct command *c = find_command(command);

	if (c != NULL)
		print_usage(stderr, c);
	else
		print_help(stderr);
	return USAGE;
}

static int
help(const char *name)
{
	const struct command *c = name != NULL ? find_command(name) : NULL;

	if (name != NULL && c == NULL) {
		complain("no command %s", name);
		return USAGE;
	}
	if (c != NULL)
		print_usage(stdout, c);
	else
		print_help(stdout);
	return DONE;
}

/* ------------------------------------------------------------------ */
/* The command line */

enum { FULL = 256, PROMETHEUS, JSON, TIMEOUT };

static const struct option long_options[] = {
    {"json", no_argument, NULL, JSON},
    {"full", no_argument, NULL, FULL},
    {"prometheus", no_argument, NULL, PROMETHEUS},
    {"quiet", no_argument, NULL, 'q'},
    {"timeout", required_argument, NULL, TIMEOUT},
    {"interval", required_argument, NULL, 'i'},
    {"times", required_argument, NULL, 'n'},
    {"output", required_argument, NULL, 'o'},
    {"conf", required_argument, NULL, 'c'},
    {"library", required_argument, NULL, 'l'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

/* A number of seconds or times above zero. */
static bool
read_positive(const char *s, double *ret)
{
	char *end;

	errno = 0;
	*ret = strtod(s, &end);
	if (errno == 0 && end != s && *end == '\0' && *ret > 0 && *ret < 1e9)
		return true;
	complain("%s is not a number above 0", s);
	return false;
}

/* Returns -1: go on; or an exit status. */
static int
take_option(int c)
{
	double v = 0;

	switch (c) {
	case JSON:
		settings.json = true;
		return -1;
	case FULL:
		settings.full = true;
		return -1;
	case PROMETHEUS:
		settings.prometheus = true;
		return -1;
	case 'q':
		settings.quiet = true;
		return -1;
	case 'o':
		settings.output = optarg;
		return -1;
	case 'c':
		settings.conf = optarg;
		return -1;
	case 'l':
		settings.library = optarg;
		return -1;
	case 'i':
		if (!read_positive(optarg, &settings.interval))
			return USAGE;
		return -1;
	case 'n':
		if (!read_positive(optarg, &v))
			return USAGE;
		settings.times = (long)v;
		return -1;
	case TIMEOUT:
		if (!read_positive(optarg, &v))
			return USAGE;
		settings.wait_given = true;
		settings.wait_ms = v > 86400 ? 86400000 : (int)(v * 1000);
		return -1;
	case 'h':
		return help(NULL);
	case 'V':
		(void)printf("eddyctl %s\n", EDDY_VERSION_STRING);
		return DONE;
	default:
		return USAGE;
	}
}

/* "-1" is a value, not an option; "-" is one, too. */
static bool
is_option(const char *s)
{
	return s[0] == '-' && s[1] != '\0' && (s[1] < '0' || s[1] > '9');
}

/*
 * Options may stand anywhere but behind "--" or the command that run is to
 * start.  What is none moves to the front of argv.  Returns how many words
 * there are, or -1 and the status.
 */
static int
take_options(int argc, char **argv, int *status)
{
	int n = 1;

	while (optind < argc && strcmp(argv[optind], "--") != 0) {
		int c;

		if (!is_option(argv[optind])) {
			if (n > 1 && strcmp(argv[1], "run") == 0)
				break;
			argv[n++] = argv[optind++];
			continue;
		}
		c = getopt_long(
		    argc, argv, "+qo:c:l:i:n:hV", long_options, NULL);
		*status = c == 'h' && n > 1 ? help(argv[1]) : take_option(c);
		if (*status >= 0)
			return -1;
	}
	if (optind < argc && strcmp(argv[optind], "--") == 0)
		optind++;
	while (optind < argc)
		argv[n++] = argv[optind++];
	argv[n] = NULL;
	return n;
}

int
main(int argc, char **argv)
{
	const struct command *c;
	int status = DONE;
	int n = take_options(argc, argv, &status);

	if (n < 0)
		return status;
	if (n < 2) {
		print_help(stderr);
		return USAGE;
	}
	/* What cannot be written is seen by write's error. */
	(void)signal(SIGPIPE, SIG_IGN);
	if (strcmp(argv[1], "help") == 0)
		return help(argv[2]);
	c = find_command(argv[1]);
	if (c == NULL) {
		complain("no command %s; eddyctl help lists them", argv[1]);
		return USAGE;
	}
	status = c->run(n - 1, argv + 1);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		if (errno != EPIPE)
			complain("standard output: %s", strerror(errno));
		return status != DONE ? status : REFUSED;
	}
	return status;
}
