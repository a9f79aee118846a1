/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/ctl/arena_words.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "lib/heap/arena.h"

static const struct word {
	const char *name;
	unsigned flag;
} words[] = {
    {"thp", EDDY_ARENA_THP},
    {"nohuge", EDDY_ARENA_NOHUGE},
    {"hugetlb", EDDY_ARENA_HUGETLB_2M},
    {"hugetlb:2M", EDDY_ARENA_HUGETLB_2M},
    {"hugetlb:1G", EDDY_ARENA_HUGETLB_1G},
    {"locked", EDDY_ARENA_LOCKED},
    {"nodump", EDDY_ARENA_NODUMP},
    {"nofork", EDDY_ARENA_NOFORK},
    {"fill", EDDY_ARENA_FILL},
};

/* Whether text begins so; moves it on. */
static bool
skip(const char **text, const char *prefix)
{
	size_t n = strlen(prefix);

	if (strncmp(*text, prefix, n) != 0)
		return false;
	*text += n;
	return true;
}

/* Decimal digits, at least one; moves text on. */
static bool
read_number(const char **text, uint64_t *ret)
{
	const char *s = *text;

	*ret = 0;
	for (; *s >= '0' && *s <= '9'; s++) {
		uint64_t digit = (uint64_t)(*s - '0');

		if (*ret > (UINT64_MAX - digit) / 10)
			return false;
		*ret = *ret * 10 + digit;
	}
	if (s == *text)
		return false;
	*text = s;
	return true;
}

/* The same with a unit. */
static bool
read_size(const char **text, size_t *ret)
{
	static const char units[] = "KMGT";
	uint64_t v;
	const char *unit;
	unsigned lg;

	if (!read_number(text, &v))
		return false;
	unit = **text != '\0' ? strchr(units, **text) : NULL;
	lg = unit != NULL ? 10 * (unsigned)(unit - units + 1) : 0;
	if (v > SIZE_MAX >> lg)
		return false;
	*text += unit != NULL;
	*ret = (size_t)v << lg;
	return true;
}

static int
read_node(struct eddy_heap *h, const char **text, struct eddy_arena_plan *plan)
{
	uint64_t node;
	int err;

	if (!read_number(text, &node) || node > INT_MAX)
		return -EINVAL;
	err = eddy_arena_fit(h, (int)node);
	if (err == 0)
		plan->node = (uint32_t)node;
	return err;
}

/* SIZE or SIZE:DIRECTORY, up to the end. */
static int
read_file(const char **text, struct eddy_arena_plan *plan)
{
	plan->flags |= EDDY_ARENA_FILE;
	if (!read_size(text, &plan->file_size) || plan->file_size == 0)
		return -EINVAL;
	if (skip(text, ":")) {
		plan->directory = *text;
		*text += strlen(*text);
	}
	return **text == '\0' ? 0 : -EINVAL;
}

static int
read_word(struct eddy_heap *h, const char **text, struct eddy_arena_plan *plan)
{
	size_t n = strcspn(*text, ",");

	if (skip(text, "node:"))
		return read_node(h, text, plan);
	if (skip(text, "file:"))
		return read_file(text, plan);
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (strlen(words[i].name) == n &&
		    strncmp(*text, words[i].name, n) == 0) {
			plan->flags |= words[i].flag;
			*text += n;
			return 0;
		}
	return -EINVAL;
}

int
eddy_arena_words(
    struct eddy_heap *h, const char *text, struct eddy_arena_plan *plan)
{
	bool more = *text != '\0';

	while (more) {
		int err = read_word(h, &text, plan);

		if (err != 0)
			return err;
		more = skip(&text, ",");
		if (!more && *text != '\0')
			return -EINVAL;
	}
	return 0;
}
