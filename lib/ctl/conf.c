/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/ctl/conf.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "lib/base/chars.h"

enum opt_type {
	OPT_BOOL,
	OPT_UNSIGNED,
	OPT_SIZE,
	OPT_ENUM,
	OPT_STRING,
	OPT_LG,
	OPT_MS,
};

/* One row of ctl.tab.  values: the words of an enum, one blank between. */
struct option {
	char name[32];
	char values[32]; /* of a string: its default */
	uint8_t type;
	bool clip;
	uint16_t offset;
	uint64_t min;
	uint64_t max;
	uint64_t def;
};

#include "lib/ctl/ctl_gen.inc"

enum { N_OPTIONS = sizeof(options) / sizeof(options[0]) };

/* Bytes of an option string that a line quotes. */
enum { QUOTE_MAX = 40 };

/* Room kept at the end of the log for the line that counts what is left out. */
enum { LAST_LINE = 64 };

/* A piece of an option string. */
struct piece {
	const char *p;
	size_t n;
};

struct reader {
	struct eddy_opts *opts;
	struct eddy_conf_log *log; /* NULL: looking for confirm_conf only */
	const char *source;
	bool confirm;
};

static const char *
source_name(enum eddy_conf_source s)
{
	switch (s) {
	case EDDY_CONF_BUILD:
		return "--with-malloc-conf";
	case EDDY_CONF_SYMBOL:
		return EDDY_PREFIX "malloc_conf";
	case EDDY_CONF_LINK:
		return EDDY_CONF_NAME_LINK;
	case EDDY_CONF_MALLOC_CONF:
		return EDDY_CONF_NAME_MALLOC;
	case EDDY_CONF_HARDER:
		return EDDY_PREFIX "malloc_conf_2_conf_harder";
	default:
		return EDDY_CONF_NAME_EDDY;
	}
}

static bool
equals(struct piece a, const char *s)
{
	for (size_t i = 0; i < a.n; i++)
		if (s[i] == '\0' || s[i] != a.p[i])
			return false;
	return s[a.n] == '\0';
}

/* Whether a is one of the words of list, which has one blank before and after
 * each. */
static bool
is_listed(struct piece a, const char *list)
{
	for (const char *s = list; s[0] == ' ' && s[1] != '\0';) {
		size_t n = 0;

		s++;
		while (s[n] != ' ')
			n++;
		if (n == a.n && n > 0) {
			size_t i = 0;

			while (i < n && s[i] == a.p[i])
				i++;
			if (i == n)
				return true;
		}
		s += n;
	}
	return false;
}

/* Place of a among the words of values, or -1. */
static int
word_index(struct piece a, const char *values)
{
	for (int index = 0; *values != '\0'; index++) {
		size_t n = 0;

		while (n < a.n && values[n] == a.p[n] && a.p[n] != ' ')
			n++;
		if (n == a.n && n > 0 &&
		    (values[n] == ' ' || values[n] == '\0'))
			return index;
		while (*values != '\0' && *values != ' ')
			values++;
		if (*values == ' ')
			values++;
	}
	return -1;
}

/* The word at index; it ends with a blank or NUL. */
static struct piece
word_at(const char *values, unsigned index)
{
	struct piece w = {values, 0};

	for (; index > 0; index--) {
		while (*w.p != ' ')
			w.p++;
		w.p++;
	}
	while (w.p[w.n] != '\0' && w.p[w.n] != ' ')
		w.n++;
	return w;
}

/*
 * Lines.  A line that does not fit is taken back whole and counted.
 */

static void
put_char(struct eddy_conf_log *log, char c)
{
	if (log->len < sizeof(log->text))
		log->text[log->len] = c;
	log->len++;
}

static void
put(struct eddy_conf_log *log, const char *s)
{
	for (; *s != '\0'; s++)
		put_char(log, *s);
}

/* s as it stands, without what a terminal might act upon. */
static void
put_quoted(struct eddy_conf_log *log, struct piece s)
{
	put_char(log, '"');
	for (size_t i = 0; i < s.n && i < QUOTE_MAX; i++)
		put_char(log, s.p[i] >= ' ' && s.p[i] <= '~' ? s.p[i] : '?');
	if (s.n > QUOTE_MAX)
		put(log, "...");
	put_char(log, '"');
}

static void
put_number(struct eddy_conf_log *log, uint64_t v)
{
	char buf[24];
	char *end = buf + sizeof(buf) - 1;

	*end = '\0';
	put(log, eddy_digits(end, v));
}

static uint32_t
line_begin(struct reader *r)
{
	uint32_t mark = r->log->len;

	put(r->log, "<eddy>: ");
	put(r->log, r->source);
	put(r->log, ": ");
	return mark;
}

static void
line_end(struct eddy_conf_log *log, uint32_t mark)
{
	put_char(log, '\n');
	if (log->len > sizeof(log->text) - LAST_LINE) {
		log->len = mark;
		log->n_dropped++;
	}
	log->text[log->len] = '\0';
}

void
eddy_conf_refuse(struct eddy_conf_log *log, const char *name, const char *value,
    const char *what)
{
	uint32_t mark = log->len;
	struct piece v = {value, strlen(value)};

	log->n_faults++;
	put(log, "<eddy>: ");
	put(log, name);
	put(log, ": ");
	put_quoted(log, v);
	put(log, ": ");
	put(log, what);
	line_end(log, mark);
}

/* A fault of the string itself. */
static void
fault_string(struct reader *r, const char *what, struct piece at)
{
	uint32_t mark;

	if (r->log == NULL)
		return;
	r->log->n_faults++;
	mark = line_begin(r);
	put(r->log, what);
	put(r->log, ": ");
	put_quoted(r->log, at);
	line_end(r->log, mark);
}

/* A fault of a value; `range` NULL: what it may be is in `what`. */
static void
fault_value(struct reader *r, struct piece name, struct piece value,
    const char *what, const struct option *range)
{
	uint32_t mark;

	if (r->log == NULL)
		return;
	r->log->n_faults++;
	mark = line_begin(r);
	for (size_t i = 0; i < name.n; i++)
		put_char(r->log, name.p[i]);
	put(r->log, ": ");
	put_quoted(r->log, value);
	put(r->log, what);
	if (range != NULL && range->type == OPT_ENUM) {
		put(r->log, range->values);
	} else if (range != NULL) {
		if (range->type == OPT_MS)
			put(r->log, "-1 and ");
		put_number(r->log, range->min);
		put(r->log, " to ");
		put_number(r->log, range->max);
	}
	line_end(r->log, mark);
}

/*
 * read_number - a whole number in base 10, 8 (0...) or 16 (0x...).
 *
 * Returns: 0; -EINVAL if it is none; -ERANGE if it is too large for 64 bits.
 */
static int
read_number(struct piece s, uint64_t *ret_v)
{
	unsigned base = 10;
	uint64_t v = 0;
	bool over = false;

	if (s.n > 2 && s.p[0] == '0' && (s.p[1] == 'x' || s.p[1] == 'X')) {
		base = 16;
		s.p += 2;
		s.n -= 2;
	} else if (s.n > 1 && s.p[0] == '0') {
		base = 8;
	}
	if (s.n == 0)
		return -EINVAL;
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];
		unsigned d = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
			     : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
			     : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10
						    : 16;

		if (d >= base)
			return -EINVAL;
		if (v > (UINT64_MAX - d) / base)
			over = true;
		v = v * base + d;
	}
	if (over)
		return -ERANGE;
	*ret_v = v;
	return 0;
}

static struct piece
without_sign(struct piece s)
{
	if (s.n > 0 && s.p[0] == '-') {
		s.p++;
		s.n--;
	}
	return s;
}

/* Digits with at most one point among or after them, perhaps a sign. */
static bool
is_fixed(struct piece s)
{
	size_t n_digits = 0;
	size_t n_points = 0;

	s = without_sign(s);
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] >= '0' && s.p[i] <= '9')
			n_digits++;
		else if (s.p[i] == '.')
			n_points++;
		else
			return false;
	}
	return n_digits > 0 && n_points <= 1;
}

static bool
is_bool(struct piece s)
{
	return equals(s, "true") || equals(s, "false");
}

static void *
field(struct eddy_opts *opts, const struct option *o)
{
	return (char *)opts + o->offset;
}

static uint64_t
clip(const struct option *o, uint64_t v)
{
	return v < o->min ? o->min : v > o->max ? o->max : v;
}

/* Stores a value that is in range. */
static void
store(struct eddy_opts *opts, const struct option *o, uint64_t v)
{
	void *p = field(opts, o);

	switch (o->type) {
	case OPT_BOOL:
		*(bool *)p = v != 0;
		break;
	case OPT_UNSIGNED:
		*(uint32_t *)p = (uint32_t)v;
		break;
	case OPT_ENUM:
		*(unsigned *)p = (unsigned)v;
		break;
	case OPT_SIZE:
		*(size_t *)p = (size_t)v;
		break;
	case OPT_MS:
		*(int64_t *)p = (int64_t)v;
		break;
	default:
		*(char *)p = '\0';
		break;
	}
}

/* 2^n in the field of the option that owns it, as near as its range allows. */
static void
store_lg(struct eddy_opts *opts, const struct option *lg, uint64_t n)
{
	for (size_t i = 0; i < N_OPTIONS; i++) {
		const struct option *o = &options[i];

		if (o->offset == lg->offset && o->type == OPT_SIZE)
			store(opts, o, clip(o, (uint64_t)1 << n));
	}
}

static void
store_string(struct eddy_opts *opts, const struct option *o, struct piece s)
{
	char *p = field(opts, o);

	for (size_t i = 0; i < s.n; i++)
		p[i] = s.p[i];
	p[s.n] = '\0';
}

/* Returns whether the value was taken. */
static bool
set_number(struct reader *r, const struct option *o, struct piece name,
    struct piece value)
{
	uint64_t v = 0;
	bool negative = value.n > 0 && value.p[0] == '-';
	int err = read_number(without_sign(value), &v);

	if (err == -EINVAL) {
		fault_value(r, name, value, " is not a whole number", NULL);
		return false;
	}
	negative = negative && v != 0;
	if (o->type == OPT_MS && negative && v == 1) {
		store(r->opts, o, (uint64_t)-1);
		return true;
	}
	if (o->clip) {
		v = negative ? o->min : err != 0 ? o->max : clip(o, v);
	} else if (negative || err != 0 || v < o->min || v > o->max) {
		fault_value(r, name, value, " is outside ", o);
		return false;
	}
	if (o->type == OPT_LG)
		store_lg(r->opts, o, v);
	else
		store(r->opts, o, v);
	return true;
}

/* Where a socket shall be: a word meant as yes or no is no file's name. */
static bool
is_place(struct piece s)
{
	return s.n == 0 || s.p[0] == '/' || equals(s, "auto");
}

static bool
set_option(struct reader *r, const struct option *o, struct piece name,
    struct piece value)
{
	int index;

	switch (o->type) {
	case OPT_BOOL:
		if (!is_bool(value)) {
			fault_value(
			    r, name, value, " is not true or false", NULL);
			return false;
		}
		store(r->opts, o, equals(value, "true"));
		return true;
	case OPT_ENUM:
		index = word_index(value, o->values);
		if (index < 0) {
			fault_value(r, name, value, " is none of ", o);
			return false;
		}
		store(r->opts, o, (uint64_t)index);
		return true;
	case OPT_STRING:
		if (value.n > o->max) {
			fault_value(
			    r, name, value, " has not the right length, ", o);
			return false;
		}
		if (o->offset == offsetof(struct eddy_opts, control) &&
		    !is_place(value)) {
			fault_value(r, name, value,
			    " is neither auto nor an absolute path", NULL);
			return false;
		}
		store_string(r->opts, o, value);
		return true;
	default:
		return set_number(r, o, name, value);
	}
}

/* An option that has no field: jemalloc's, or unknown. */
static void
check_foreign(struct reader *r, struct piece name, struct piece value)
{
	static const char experimental[] = "experimental_";
	uint64_t v;
	size_t i = 0;

	if (is_listed(name, compat_any))
		return;
	if (is_listed(name, compat_bool)) {
		if (!is_bool(value))
			fault_value(
			    r, name, value, " is not true or false", NULL);
		return;
	}
	if (is_listed(name, compat_int)) {
		if (read_number(without_sign(value), &v) != 0)
			fault_value(
			    r, name, value, " is not a whole number", NULL);
		return;
	}
	if (is_listed(name, compat_fixed)) {
		if (!is_fixed(value))
			fault_value(r, name, value, " is not a number", NULL);
		return;
	}
	while (i < name.n && experimental[i] == name.p[i])
		i++;
	if (experimental[i] != '\0')
		fault_string(r, "unknown option", name);
}

static void
take_pair(struct reader *r, struct piece name, struct piece value)
{
	uint32_t mark;

	if (r->log == NULL) {
		if (equals(name, "confirm_conf") && is_bool(value))
			r->confirm = equals(value, "true");
		return;
	}
	for (size_t i = 0; i < N_OPTIONS; i++) {
		if (!equals(name, options[i].name))
			continue;
		if (set_option(r, &options[i], name, value) && r->confirm) {
			mark = line_begin(r);
			put(r->log, options[i].name);
			put(r->log, " set to ");
			put_quoted(r->log, value);
			line_end(r->log, mark);
		}
		return;
	}
	check_foreign(r, name, value);
}

static bool
is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || c == '_';
}

/* Reads one string.  Where a name is cut short or is none, what follows cannot
 * be understood: one fault, and the rest of that string is left. */
static void
read_string(struct reader *r, const char *s)
{
	while (*s != '\0') {
		struct piece name = {s, 0};
		struct piece value;

		while (is_name_char(s[name.n]))
			name.n++;
		if (name.n == 0 || s[name.n] != ':') {
			name.n = eddy_length(s);
			fault_string(r, "no \"name:value\" here", name);
			return;
		}
		value = (struct piece){s + name.n + 1, 0};
		while (value.p[value.n] != '\0' && value.p[value.n] != ',')
			value.n++;
		take_pair(r, name, value);
		s = value.p + value.n;
		if (*s == ',' && *++s == '\0')
			fault_string(r, "ends with a comma",
			    (struct piece){name.p, (size_t)(s - name.p)});
	}
}

static void
read_all(struct reader *r, const struct eddy_conf_strings *strings)
{
	for (unsigned i = 0; i < EDDY_CONF_N_SOURCES; i++) {
		const char *s = strings->text[i];
		uint32_t mark;

		r->source = source_name((enum eddy_conf_source)i);
		if (i == EDDY_CONF_LINK && strings->link_is_cut) {
			fault_string(r, "too long, not read",
			    (struct piece){s, eddy_length(s)});
			continue;
		}
		if (s == NULL || *s == '\0')
			continue;
		if (r->log != NULL && r->confirm) {
			mark = line_begin(r);
			put(r->log, "options ");
			put_quoted(r->log, (struct piece){s, eddy_length(s)});
			line_end(r->log, mark);
		}
		read_string(r, s);
	}
}

int
eddy_conf_parse(struct eddy_opts *opts, struct eddy_conf_log *log,
    const struct eddy_conf_strings *strings)
{
	struct reader r = {opts, NULL, NULL, false};

	for (size_t i = 0; i < N_OPTIONS; i++)
		if (options[i].type == OPT_STRING)
			store_string(opts, &options[i],
			    (struct piece){options[i].values,
				eddy_length(options[i].values)});
		else if (options[i].type != OPT_LG)
			store(opts, &options[i], options[i].def);
	log->n_faults = 0;
	log->n_dropped = 0;
	log->len = 0;

	/* First whether to confirm: it may stand last. */
	read_all(&r, strings);
	r.log = log;
	read_all(&r, strings);
	if (log->n_dropped > 0) {
		put(log, "<eddy>: and ");
		put_number(log, log->n_dropped);
		put(log, " more lines about options\n");
	}
	log->text[log->len] = '\0';
	log->abort_conf = opts->abort_conf;
	return log->n_faults == 0 ? 0 : -EINVAL;
}

/* The value of o as text; buf holds at least 24 bytes. */
static struct piece
value_text(const struct eddy_opts *opts, const struct option *o, char *buf)
{
	const void *p = (const char *)opts + o->offset;
	char *end = buf + 23;
	uint64_t v;

	switch (o->type) {
	case OPT_STRING:
		return (struct piece){p, eddy_length(p)};
	case OPT_ENUM:
		return word_at(o->values, *(const unsigned *)p);
	case OPT_BOOL:
		return word_at("false true", *(const bool *)p);
	case OPT_UNSIGNED:
		v = *(const uint32_t *)p;
		break;
	case OPT_MS:
		if (*(const int64_t *)p < 0)
			return (struct piece){"-1", 2};
		v = (uint64_t) * (const int64_t *)p;
		break;
	default:
		v = *(const size_t *)p;
		break;
	}
	*end = '\0';
	buf = eddy_digits(end, v);
	return (struct piece){buf, (size_t)(end - buf)};
}

void
eddy_conf_print(const struct eddy_opts *opts,
    void (*put_line)(void *arg, const char *line), void *arg)
{
	for (size_t i = 0; i < N_OPTIONS; i++) {
		const struct option *o = &options[i];
		char number[24];
		char line[128];
		size_t len = 0;
		struct piece value;

		if (o->type == OPT_LG)
			continue;
		for (const char *s = "  opt."; *s != '\0'; s++)
			line[len++] = *s;
		for (const char *s = o->name; *s != '\0'; s++)
			line[len++] = *s;
		line[len++] = ':';
		line[len++] = ' ';
		value = value_text(opts, o, number);
		for (size_t k = 0; k < value.n; k++)
			line[len++] = value.p[k];
		line[len++] = '\n';
		line[len] = '\0';
		put_line(arg, line);
	}
}
