/* SPDX-License-Identifier: BSD-2-Clause */
/* print.c - values by name, JSON and tables, for the other print*.c. */
#include "lib/ctl/print.h"

#include "lib/base/chars.h"

#define SECOND 1000000000u

/* ------------------------------------------------------------------ */
/* Names */

static void
add_text(struct eddy_print_stem *s, const char *what)
{
	while (*what != '\0' && s->len < sizeof(s->name) - 1)
		s->name[s->len++] = *what++;
	s->name[s->len] = '\0';
}

void
eddy_print_stem_add(
    struct eddy_print_stem *s, const char *what, uint64_t number)
{
	char digits[EDDY_DIGITS_MAX + 1];
	char *end = digits + EDDY_DIGITS_MAX;

	*end = '\0';
	add_text(s, what);
	add_text(s, eddy_digits(end, number));
	add_text(s, ".");
}

void
eddy_print_stem(struct eddy_print_stem *s, const char *what, uint64_t number)
{
	s->len = 0;
	s->name[0] = '\0';
	if (number == UINT64_MAX)
		add_text(s, what);
	else
		eddy_print_stem_add(s, what, number);
}

bool
eddy_print_look(struct eddy_print *p, const struct eddy_print_stem *s,
    const char *key, struct eddy_ctl *ret)
{
	char name[128];
	size_t n;

	for (n = 0; n < s->len; n++)
		name[n] = s->name[n];
	while (*key != '\0' && n < sizeof(name) - 1)
		name[n++] = *key++;
	name[n] = '\0';
	return eddy_mallctl_look(p->h, name, ret) == 0;
}

uint64_t
eddy_print_number_of(
    struct eddy_print *p, const struct eddy_print_stem *s, const char *key)
{
	struct eddy_ctl v;

	return eddy_print_look(p, s, key, &v) ? v.out : 0;
}

static void
add_signed(struct eddy_text *t, int64_t v)
{
	if (v < 0)
		eddy_text_add(t, "-");
	eddy_text_number(t, v < 0 ? -(uint64_t)v : (uint64_t)v, 0);
}

void
eddy_print_value(struct eddy_print *p, const struct eddy_ctl *v)
{
	const char *s = (const char *)(uintptr_t)v->out;

	switch (v->type) {
	case EDDY_CTL_BOOL:
		eddy_text_add(&p->text, v->out != 0 ? "true" : "false");
		break;
	case EDDY_CTL_STRING:
		s = s != NULL ? s : "";
		eddy_text_quoted(&p->text, s, eddy_length(s));
		break;
	case EDDY_CTL_SSIZE:
	case EDDY_CTL_INT64:
		add_signed(&p->text, (int64_t)v->out);
		break;
	default:
		eddy_text_number(&p->text, v->out, 0);
		break;
	}
}

/* ------------------------------------------------------------------ */
/* JSON */

void
eddy_json_key(struct eddy_print *p, const char *key)
{
	if (!p->first)
		eddy_text_add(&p->text, ",");
	p->first = false;
	if (key == NULL)
		return;
	eddy_text_quoted(&p->text, key, eddy_length(key));
	eddy_text_add(&p->text, ":");
}

void
eddy_json_open(struct eddy_print *p, const char *key, const char *bracket)
{
	eddy_json_key(p, key);
	eddy_text_add(&p->text, bracket);
	p->first = true;
}

void
eddy_json_close(struct eddy_print *p, const char *bracket)
{
	eddy_text_add(&p->text, bracket);
	p->first = false;
}

void
eddy_json_number(struct eddy_print *p, const char *key, uint64_t v)
{
	eddy_json_key(p, key);
	eddy_text_number(&p->text, v, 0);
}

void
eddy_json_name(struct eddy_print *p, const struct eddy_print_stem *s,
    const char *key, const char *name)
{
	struct eddy_ctl v;

	if (!eddy_print_look(p, s, name, &v))
		return;
	eddy_json_key(p, key);
	eddy_print_value(p, &v);
}

void
eddy_json_names(struct eddy_print *p, const struct eddy_print_stem *s,
    const char *const *keys, size_t n)
{
	for (size_t i = 0; i < n; i++)
		eddy_json_name(p, s, keys[i], keys[i]);
}

/* ------------------------------------------------------------------ */
/* Tables */

void
eddy_table_heads(struct eddy_print *p, const struct eddy_column *c, size_t n)
{
	for (size_t i = 0; i < n; i++)
		eddy_text_right(&p->text, c[i].head, c[i].width);
	eddy_text_add(&p->text, "\n");
}

uint64_t
eddy_print_rate(uint64_t v, uint64_t uptime)
{
	return uptime < SECOND ? v : v / (uptime / SECOND);
}

void
eddy_table_line(struct eddy_print *p, const struct eddy_column *c, size_t n,
    const struct eddy_print_stem *s, uint64_t uptime)
{
	uint64_t v = 0;

	for (size_t i = 0; i < n; i++) {
		v = c[i].key != NULL ? eddy_print_number_of(p, s, c[i].key)
				     : eddy_print_rate(v, uptime);
		eddy_text_number(&p->text, v, c[i].width);
	}
}

void
eddy_print_heads(struct eddy_text *t, const char *const *heads, size_t n)
{
	for (size_t i = 0; i < n; i++)
		eddy_text_right(t, heads[i], i == 0 ? 8 : 12);
	eddy_text_add(t, "\n");
}

void
eddy_print_number(
    struct eddy_text *t, const char *before, const char *name, uint64_t v)
{
	eddy_text_add(t, before);
	eddy_text_add(t, "\"");
	eddy_text_add(t, name);
	eddy_text_add(t, "\":");
	eddy_text_number(t, v, 0);
}
