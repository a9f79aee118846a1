/* SPDX-License-Identifier: BSD-2-Clause */
/* show.c - what eddyctl says, and how. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tools/eddyctl.h"

static bool silent;

void
silence(bool on)
{
	silent = on;
}

static void
say(const char *fmt, va_list ap)
{
	char line[1024];

	if (silent)
		return;
	(void)vsnprintf(line, sizeof(line), fmt, ap);
	(void)fflush(stdout);
	(void)fputs("eddyctl: ", stderr);
	put_clean(stderr, line);
	(void)fputc('\n', stderr);
}

void
complain(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
}

void
remark(const char *fmt, ...)
{
	va_list ap;

	if (settings.quiet)
		return;
	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
}

void
put_clean(FILE *to, const char *s)
{
	for (; *s != '\0'; s++) {
		unsigned char c = (unsigned char)*s;

		(void)fputc(
		    (c < ' ' && c != '\n' && c != '\t') || c == 0x7f ? '?' : c,
		    to);
	}
}

const char *
human(uint64_t bytes)
{
	static const char *const units[] = {
	    "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	static char buf[8][24];
	static unsigned turn;
	char *s = buf[turn++ % 8];
	double v = (double)bytes;
	unsigned i = 0;

	while (v >= 1024 && i < 6) {
		v /= 1024;
		i++;
	}
	(void)snprintf(
	    s, sizeof(buf[0]), i == 0 ? "%.0f %s" : "%.1f %s", v, units[i]);
	return s;
}

bool
put_json(json_t *v)
{
	bool put = json_dumpf(v, stdout, JSON_INDENT(2)) == 0 &&
		   fputc('\n', stdout) != EOF;

	json_decref(v);
	return put;
}

void
add_number(json_t *to, const char *key, uint64_t v)
{
	(void)json_object_set_new(
	    to, key, json_integer(v > INT64_MAX ? INT64_MAX : (json_int_t)v));
}
