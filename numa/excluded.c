/* SPDX-License-Identifier: BSD-2-Clause */
#include "numa/excluded.h"

#include <errno.h>

#include "lib/os/os.h"

/* Of this process, and by inheritance of its children: facts of the machine. */
static struct eddy_excluded of_process;

/* A text: a string, or a file that is read piece by piece. */
struct reader {
	const char *text;
	const char *path; /* NULL: text is a string */
	size_t at;        /* of the string, or of the file */
	size_t i;
	size_t n;
	char buf[240];
};

/* The next character, '\0' at the end; it stays there until it is taken. */
static char
peek(struct reader *r)
{
	ssize_t got;

	if (r->path == NULL)
		return r->text[r->at];
	if (r->i == r->n) {
		got = eddy_os_read_part(r->path, r->at, r->buf, sizeof(r->buf));
		if (got <= 0)
			return '\0';
		r->at += (size_t)got;
		r->n = (size_t)got;
		r->i = 0;
	}
	return r->buf[r->i];
}

static void
take(struct reader *r)
{
	if (r->path == NULL)
		r->at++;
	else
		r->i++;
}

static int
read_number(struct reader *r, unsigned *ret_v)
{
	unsigned v = 0;
	bool any = false;

	for (char c; (c = peek(r)) >= '0' && c <= '9'; take(r)) {
		any = true;
		if (v < EDDY_MAX_CPUS)
			v = v * 10 + (unsigned)(c - '0');
	}
	if (!any || v >= EDDY_MAX_CPUS)
		return -EINVAL;
	*ret_v = v;
	return 0;
}

/* "5" or "5-7". */
static int
read_range(struct reader *r, unsigned *ret_first, unsigned *ret_last)
{
	int err = read_number(r, ret_first);

	*ret_last = *ret_first;
	if (err == 0 && peek(r) == '-') {
		take(r);
		err = read_number(r, ret_last);
	}
	return err == 0 && *ret_last < *ret_first ? -EINVAL : err;
}

static bool
equals(const char *a, const char *b)
{
	for (; *a == *b; a++, b++)
		if (*a == '\0')
			return true;
	return false;
}

static int
read_list(uint64_t *set, const char *text)
{
	struct reader r = {.text = text};
	unsigned first = 0;
	unsigned last = 0;

	for (;;) {
		int err = read_range(&r, &first, &last);

		if (err != 0)
			return err;
		for (unsigned c = first; set != NULL && c <= last; c++)
			set[c / 64] |= (uint64_t)1 << c % 64;
		if (peek(&r) == '\0')
			return 0;
		if (peek(&r) != '|')
			return -EINVAL;
		take(&r);
	}
}

int
eddy_cpu_list_read(uint64_t *set, const char *text)
{
	int err = read_list(NULL, text);

	return err == 0 && set != NULL ? read_list(set, text) : err;
}

int
eddy_excluded_check(const char *text)
{
	if (text[0] == '\0' || equals(text, "none"))
		return 0;
	return eddy_cpu_list_read(NULL, text);
}

/* Adds what stands there, up to what is not understood. */
static void
add(struct eddy_excluded *e, struct reader *r, char between)
{
	unsigned first = 0;
	unsigned last = 0;

	while (read_range(r, &first, &last) == 0) {
		/* relaxed: published by EXCL-R1. */
		for (unsigned c = first; c <= last; c++)
			(void)eddy_or_relaxed(
			    &e->word[c / 64], (uint64_t)1 << c % 64);
		if (peek(r) != between)
			break;
		take(r);
	}
}

static void
add_file(struct eddy_excluded *e, const char *root, const char *name)
{
	char path[256];
	size_t n = 0;
	struct reader r = {.path = path};

	for (; *root != '\0' && n < sizeof(path); root++)
		path[n++] = *root;
	for (; *name != '\0' && n < sizeof(path); name++)
		path[n++] = *name;
	if (n == sizeof(path))
		return;
	path[n] = '\0';
	add(e, &r, ',');
}

static EDDY_COLD void
learn(struct eddy_excluded *e, const char *text, const char *root)
{
	struct reader r = {.text = text};

	if (text[0] == '\0') {
		add_file(e, root, "/sys/devices/system/cpu/isolated");
		add_file(e, root, "/sys/devices/system/cpu/nohz_full");
	} else {
		add(e, &r, '|'); /* "none" is no list */
	}
	/* EXCL-R1: the words, which others may have written as well. */
	eddy_store_release(&e->known, 1);
}

bool
eddy_excluded_has(
    struct eddy_excluded *e, const char *text, const char *root, unsigned cpu)
{
	/* EXCL-A1: pairs with EXCL-R1. */
	if (eddy_load_acquire(&e->known) == 0)
		learn(e, text, root);
	/* relaxed: ordered by EXCL-A1, or our own. */
	return cpu < EDDY_MAX_CPUS &&
	       (eddy_load_relaxed(&e->word[cpu / 64]) >> cpu % 64 & 1) != 0;
}

bool
eddy_cpu_excluded(const char *text, unsigned cpu)
{
	return eddy_excluded_has(&of_process, text, "", cpu);
}

void
eddy_excluded_remove(const char *text, uint64_t *set)
{
	(void)eddy_cpu_excluded(text, 0);
	/* relaxed: ordered by EXCL-A1, or our own. */
	for (unsigned i = 0; i < EDDY_CPU_WORDS; i++)
		set[i] &= ~eddy_load_relaxed(&of_process.word[i]);
}
