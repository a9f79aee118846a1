/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * policy.c - a command under a memory policy, as numactl gives it.
 *
 *   policy bind|preferred|interleave NODES COMMAND...   NODES: a mask
 */
#include <errno.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int
main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int mode;
	} policy[] = {
	    {"bind", MPOL_BIND},
	    {"preferred", MPOL_PREFERRED},
	    {"interleave", MPOL_INTERLEAVE},
	};
	unsigned long nodes;

	if (argc < 4) {
		(void)fprintf(stderr, "policy MODE NODES COMMAND...\n");
		return 2;
	}
	nodes = strtoul(argv[2], NULL, 0);
	for (size_t i = 0; i < sizeof policy / sizeof *policy; i++) {
		if (strcmp(argv[1], policy[i].name) != 0)
			continue;
		if (syscall(SYS_set_mempolicy, policy[i].mode, &nodes,
			8 * sizeof nodes) != 0) {
			perror("set_mempolicy");
			return 77;
		}
		(void)execvp(argv[3], argv + 3);
		perror(argv[3]);
		return 126;
	}
	(void)fprintf(stderr, "policy: no mode %s\n", argv[1]);
	return 2;
}
