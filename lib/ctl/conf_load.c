/* SPDX-License-Identifier: BSD-2-Clause */
/* conf_load.c - where a process has its options; the outer half of conf.h. */
#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "eddy_config.h"
#include "lib/ctl/conf.h"
#include "lib/os/os.h"

/* Weak, so that a program's own definition takes its place. */
EDDY_EXPORT __attribute__((weak)) const char *malloc_conf = NULL;
EDDY_EXPORT __attribute__((weak)) const char *malloc_conf_2_conf_harder = NULL;
EDDY_EXPORT __attribute__((weak)) void (*malloc_message)(
    void *cbopaque, const char *s) = NULL;

/* The environment as the kernel shows it: room for all it lets a process have
 * under the usual 8 MiB stack limit. */
static const size_t environ_bytes = (size_t)4 << 20;

/* The value if s is "NAME=value", else NULL. */
static const char *
value_of(const char *s, const char *name)
{
	size_t i = 0;

	while (name[i] != '\0' && s[i] == name[i])
		i++;
	return name[i] == '\0' && s[i] == '=' ? s + i + 1 : NULL;
}

/* Takes s if it is one of ours and the first of its name, as getenv(3) does. */
static void
take_variable(struct eddy_conf_strings *strings, const char *s)
{
	const char **mc = &strings->text[EDDY_CONF_MALLOC_CONF];
	const char **ec = &strings->text[EDDY_CONF_EDDY_CONF];

	if (*mc == NULL)
		*mc = value_of(s, EDDY_CONF_NAME_MALLOC);
	if (*ec == NULL)
		*ec = value_of(s, EDDY_CONF_NAME_EDDY);
}

/*
 * The environment that the kernel passed, for a malloc so early that libc has
 * not set environ.  Returns the mapping that the strings lie in, or NULL.
 */
static char *
take_early_environ(struct eddy_conf_strings *strings)
{
	char *buf = eddy_os_reserve(environ_bytes);
	ssize_t n;

	if (buf == NULL)
		return NULL;
	if (eddy_os_commit(buf, environ_bytes) == 0) {
		/* The last byte stays 0 and ends a string that was cut. */
		n = eddy_os_read_file(
		    "/proc/self/environ", buf, environ_bytes - 1);
		for (const char *s = buf; s - buf < n; s++) {
			take_variable(strings, s);
			while (*s != '\0')
				s++;
		}
	}
	return buf;
}

bool
eddy_conf_given(void)
{
	struct eddy_conf_strings strings = {.link_is_cut = false};
	char link;

	if (sizeof(EDDY_BUILD_CONF) > 1 || malloc_conf != NULL ||
	    malloc_conf_2_conf_harder != NULL)
		return true;
	if (getauxval(AT_SECURE) == 0 && environ != NULL)
		for (char **e = environ; *e != NULL; e++)
			take_variable(&strings, *e);
	return strings.text[EDDY_CONF_MALLOC_CONF] != NULL ||
	       strings.text[EDDY_CONF_EDDY_CONF] != NULL ||
	       eddy_os_readlink(EDDY_CONF_NAME_LINK, &link, 1) > 0;
}

int
eddy_conf_load(struct eddy_opts *opts, struct eddy_conf_log *log,
    char link[EDDY_CONF_LINK_MAX])
{
	struct eddy_conf_strings strings = {.link_is_cut = false};
	char *early = NULL;
	ssize_t n;
	int ret;

	strings.text[EDDY_CONF_BUILD] = EDDY_BUILD_CONF;
	strings.text[EDDY_CONF_SYMBOL] = malloc_conf;
	strings.text[EDDY_CONF_HARDER] = malloc_conf_2_conf_harder;
	n = eddy_os_readlink(EDDY_CONF_NAME_LINK, link, EDDY_CONF_LINK_MAX - 1);
	link[n > 0 ? n : 0] = '\0';
	if (n > 0) {
		strings.text[EDDY_CONF_LINK] = link;
		strings.link_is_cut = n == EDDY_CONF_LINK_MAX - 1;
	}
	if (getauxval(AT_SECURE) == 0) {
		if (environ == NULL)
			early = take_early_environ(&strings);
		else
			for (char **e = environ; *e != NULL; e++)
				take_variable(&strings, *e);
	}
	ret = eddy_conf_parse(opts, log, &strings);
	if (early != NULL)
		eddy_os_unmap(early, environ_bytes);
	return ret;
}

const char *
eddy_conf_variable(void)
{
	struct eddy_conf_strings strings = {.link_is_cut = false};

	if (getauxval(AT_SECURE) == 0 && environ != NULL)
		for (char **e = environ; *e != NULL; e++)
			take_variable(&strings, *e);
	return strings.text[EDDY_CONF_MALLOC_CONF];
}

void
eddy_conf_message(const char *s)
{
	size_t n = strlen(s);

	if (malloc_message != NULL) {
		malloc_message(NULL, s);
		return;
	}
	while (n > 0) {
		ssize_t r = eddy_os_write(STDERR_FILENO, s, n);

		if (r == -EINTR)
			continue;
		if (r <= 0)
			return;
		s += r;
		n -= (size_t)r;
	}
}

int
eddy_conf_report(const struct eddy_conf_log *log)
{
	if (log->len != 0)
		eddy_conf_message(log->text);
	return log->n_faults > 0 && log->abort_conf ? -EINVAL : 0;
}
