/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/ctl/text.h"

#include "lib/base/chars.h"
#include "lib/ctl/conf.h"

/* What is said to nobody in particular. */
static void
put_message(void *arg, const char *s)
{
	(void)arg;
	eddy_conf_message(s);
}

void
eddy_text_open(
    struct eddy_text *t, void (*put)(void *arg, const char *s), void *arg)
{
	t->put = put != NULL ? put : put_message;
	t->arg = arg;
	t->len = 0;
}

void
eddy_text_close(struct eddy_text *t)
{
	if (t->len == 0)
		return;
	t->buf[t->len] = '\0';
	t->len = 0;
	t->put(t->arg, t->buf);
}

static void
add_char(struct eddy_text *t, char c)
{
	t->buf[t->len++] = c;
	if (t->len == sizeof(t->buf) - 1)
		eddy_text_close(t);
}

static void
add_blanks(struct eddy_text *t, size_t used, unsigned width)
{
	for (; used < width; used++)
		add_char(t, ' ');
}

void
eddy_text_add(struct eddy_text *t, const char *s)
{
	while (*s != '\0')
		add_char(t, *s++);
}

void
eddy_text_right(struct eddy_text *t, const char *s, unsigned width)
{
	add_blanks(t, eddy_length(s), width);
	eddy_text_add(t, s);
}

void
eddy_text_left(struct eddy_text *t, const char *s, unsigned width)
{
	eddy_text_add(t, s);
	add_blanks(t, eddy_length(s), width);
}

void
eddy_text_number(struct eddy_text *t, uint64_t v, unsigned width)
{
	char digits[EDDY_DIGITS_MAX + 1];
	char *end = digits + EDDY_DIGITS_MAX;

	*end = '\0';
	eddy_text_right(t, eddy_digits(end, v), width);
}

void
eddy_text_human(struct eddy_text *t, uint64_t bytes)
{
	static const char units[] = "BKMGTPE";
	unsigned u = bytes == 0 ? 0 : eddy_log2(bytes) / 10;
	uint64_t tenths;

	if (u == 0) {
		eddy_text_number(t, bytes, 0);
		eddy_text_add(t, " B");
		return;
	}
	/* What is left has at most 20 bits: ten times it cannot overflow. */
	tenths = (bytes >> (u - 1) * 10) * 10 / 1024;
	eddy_text_number(t, tenths / 10, 0);
	add_char(t, '.');
	add_char(t, (char)('0' + tenths % 10));
	add_char(t, ' ');
	add_char(t, units[u]);
	eddy_text_add(t, "iB");
}

void
eddy_text_count(struct eddy_text *t, uint64_t n)
{
	static const char units[] = "kMGTPE";
	unsigned u = 0;

	if (n < 10000) {
		eddy_text_number(t, n, 0);
		return;
	}
	/* Tenths of a thousand, and of a thousand thousands. */
	for (n /= 100; n >= 10000; n /= 1000)
		u++;
	eddy_text_number(t, n / 10, 0);
	add_char(t, '.');
	add_char(t, (char)('0' + n % 10));
	add_char(t, ' ');
	add_char(t, units[u]);
}

void
eddy_text_quoted(struct eddy_text *t, const char *s, size_t n)
{
	static const char hex[] = "0123456789abcdef";

	add_char(t, '"');
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c == '"' || c == '\\')
			add_char(t, '\\');
		/* Bytes that are no UTF-8 would not be JSON either. */
		if (c < 0x20 || c >= 0x7f) {
			eddy_text_add(t, "\\u00");
			add_char(t, hex[c >> 4]);
			add_char(t, hex[c & 15]);
		} else {
			add_char(t, (char)c);
		}
	}
	add_char(t, '"');
}
