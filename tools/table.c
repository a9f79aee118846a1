/* SPDX-License-Identifier: BSD-2-Clause */
/* table.c - names and options, as lib/ctl/ctl.tab has them. */
#include <string.h>

#include "tools/eddyctl.h"

#include "tools/ctl_gen_tool.inc"

const size_t n_ctl_names = sizeof(ctl_names) / sizeof(ctl_names[0]);
const size_t n_ctl_options = sizeof(ctl_options) / sizeof(ctl_options[0]);

/* A number stands where the record has <i> or <j>. */
static bool
fits(const char *record, const char *name)
{
	for (;;) {
		size_t n = strcspn(record, ".");
		size_t m = strcspn(name, ".");

		if (record[0] == '<') {
			if (m == 0 || strspn(name, "0123456789") != m)
				return false;
		} else if (n != m || memcmp(record, name, n) != 0) {
			return false;
		}
		record += n;
		name += m;
		if (*record != *name)
			return false;
		if (*record == '\0')
			return true;
		record++;
		name++;
	}
}

const struct ctl_name *
find_name(const char *name)
{
	for (size_t i = 0; i < n_ctl_names; i++)
		if (fits(ctl_names[i].name, name))
			return &ctl_names[i];
	return NULL;
}
