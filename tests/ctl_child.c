/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ctl_child.c - a program that allocates, for tests that look at it from
 * outside.  Exits 3 if the memory is not what it should be, 4 if it was to run
 * as a secure-exec program ("secure") and does not.
 *
 * With CTL_CHILD_CONF it has options of its own.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#ifdef CTL_CHILD_CONF
extern const char *malloc_conf;
const char *malloc_conf = CTL_CHILD_CONF;
extern const char *malloc_conf_2_conf_harder;
const char *malloc_conf_2_conf_harder = "harder:2";
#endif

int
main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "secure") == 0 &&
	    getauxval(AT_SECURE) == 0)
		return 4;
	for (size_t size = 1; size < 300000; size = size * 3 / 2 + 1) {
		char *p = malloc(size);

		if (p == NULL)
			return 3;
		memset(p, 0x55, size);
		if (p[0] != 0x55 || p[size - 1] != 0x55)
			return 3;
		free(p);
	}
	return 0;
}
