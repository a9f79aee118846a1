/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nodes.h - the machine as a guest program sees it: nodes, their memory and
 * CPUs, and where pages lie.
 *
 * CPUs that the process may not use, and nodes whose memory it may not use, are
 * taken as missing.
 */
#ifndef EDDY_TESTS_VM_NODES_H
#define EDDY_TESTS_VM_NODES_H

#include "tests/probe.h"

#include <errno.h>
#include <limits.h>
#include <linux/mempolicy.h>

enum { MAX_NODES = 64 };

static bool node_online[MAX_NODES];
static bool node_memory[MAX_NODES];
static int node_cpus[MAX_NODES][CPU_SETSIZE];
static int n_node_cpus[MAX_NODES];
static int nearest[MAX_NODES]; /* node whose memory CPUs of a node should get */
static int node_of_cpu[CPU_SETSIZE];
static int all_cpus[CPU_SETSIZE];
static int n_all_cpus;
static size_t page_size;
static cpu_set_t usable;

static inline bool
nodes_read_text(char *text, size_t n, const char *file, int node)
{
	char path[128];
	int fd;
	ssize_t got;

	if (node < 0)
		(void)snprintf(
		    path, sizeof path, "/sys/devices/system/node/%s", file);
	else
		(void)snprintf(path, sizeof path,
		    "/sys/devices/system/node/node%d/%s", node, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	got = fd < 0 ? -1 : read(fd, text, n - 1);
	if (fd >= 0)
		(void)close(fd);
	if (got < 0)
		return false;
	text[got] = '\0';
	return true;
}

/* The next range of a list such as "0,2-3"; false at its end. */
static inline bool
nodes_range(const char **list, long *from, long *to)
{
	char *end;

	if (**list < '0' || **list > '9')
		return false;
	*from = strtol(*list, &end, 10);
	*to = *end == '-' ? strtol(end + 1, &end, 10) : *from;
	*list = *end == ',' ? end + 1 : end;
	return true;
}

static inline bool
nodes_in_list(const char *list, int node)
{
	long from;
	long to;

	while (nodes_range(&list, &from, &to))
		if (node >= from && node <= to)
			return true;
	return false;
}

static inline void
nodes_read_cpus(int node, const char *list)
{
	long from;
	long to;

	while (nodes_range(&list, &from, &to))
		for (long cpu = from; cpu <= to && cpu < CPU_SETSIZE; cpu++) {
			if (!CPU_ISSET((size_t)cpu, &usable))
				continue;
			node_cpus[node][n_node_cpus[node]++] = (int)cpu;
			node_of_cpu[cpu] = node;
			all_cpus[n_all_cpus++] = (int)cpu;
		}
}

/* One distance to each online node, in order. */
static inline void
nodes_read_nearest(int node, char *distances)
{
	long best = LONG_MAX;

	for (int m = 0; m < MAX_NODES; m++) {
		long d;

		if (!node_online[m])
			continue;
		d = strtol(distances, &distances, 10);
		if (m == node)
			d = 0;
		if (node_memory[m] && d < best) {
			best = d;
			nearest[node] = m;
		}
	}
}

static inline void
nodes_read(void)
{
	char memory[256];
	char online[256];
	char text[4096];
	unsigned long allowed[1024 / 64] = {0};

	page_size = (size_t)sysconf(_SC_PAGESIZE);
	if (sched_getaffinity(0, sizeof usable, &usable) != 0 ||
	    syscall(SYS_get_mempolicy, NULL, allowed, 1024, NULL,
		MPOL_F_MEMS_ALLOWED) != 0)
		tap_skip_all("no memory policies here");
	if (!nodes_read_text(memory, sizeof memory, "has_memory", -1) ||
	    !nodes_read_text(online, sizeof online, "online", -1))
		tap_skip_all("no nodes in /sys");
	for (int n = 0; n < MAX_NODES; n++) {
		node_online[n] = nodes_in_list(online, n);
		node_memory[n] =
		    nodes_in_list(memory, n) && (allowed[0] >> n & 1) != 0;
		if (node_online[n] &&
		    nodes_read_text(text, sizeof text, "cpulist", n))
			nodes_read_cpus(n, text);
	}
	for (int n = 0; n < MAX_NODES; n++)
		if (node_online[n] &&
		    nodes_read_text(text, sizeof text, "distance", n))
			nodes_read_nearest(n, text);
}

/* The nodes that n pages lie on, -errno for one that has no place. */
static inline void
nodes_ask(void **at, int *node, size_t n)
{
	enum { BATCH = 512 };

	for (size_t i = 0; i < n; i += BATCH)
		if (syscall(SYS_move_pages, 0, n - i < BATCH ? n - i : BATCH,
			at + i, NULL, node + i, 0) < 0)
			tap_bail("move_pages: errno %d", errno);
}

#endif /* EDDY_TESTS_VM_NODES_H */
