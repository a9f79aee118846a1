/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ctl_flow.c - what one CPU allocates and another frees, as the statistics
 * count it: every object, and few atomic read-modify-writes for each.
 *
 *	ctl_flow pass SIZE IN_FLIGHT	a child: one flow, its counts on stdout
 */
#include "probe.h"

#include "eddy/eddy.h"

/* The library is preloaded, not linked. */
#pragma weak malloc_stats_print

enum {
	MAX_IN_FLIGHT = 1024,
	WARM = 10000,
	OBJECTS = 100000,
	OBJECTS_AN_RMW = 16, /* at least */
	LOST = 2 * 1024,     /* at the end, in the row of who freed them */
	ENDS = 16 /* RMWs whose objects are not counted, at both ends */
};

/* ------------------------------------------------------------------ */
/* The child */

static char text[32 * 1024];
static size_t text_len;

static void
collect(void *arg, const char *s)
{
	size_t n = strlen(s);

	(void)arg;
	if (text_len + n >= sizeof text)
		tap_bail("statistics of more than %zu bytes", sizeof text);
	memcpy(text + text_len, s, n + 1);
	text_len += n;
}

static const char *
flows(void)
{
	const char *s;

	text_len = 0;
	malloc_stats_print(collect, NULL, "Jgmdablxehn");
	s = strstr(text, "\"flows\":{");
	if (s == NULL)
		tap_bail("no flows in the statistics: %s", text);
	return s;
}

static uint64_t
number_in(const char *in, const char *name)
{
	char key[48];
	const char *s;

	(void)snprintf(key, sizeof key, "\"%s\":", name);
	s = strstr(in, key);
	if (s == NULL)
		tap_bail("no %s in the statistics", key);
	return strtoull(s + strlen(key), NULL, 10);
}

struct counts {
	uint64_t away, out, rmws, to_slabs, puts, bleeds;
};

static struct counts
counts(void)
{
	const char *s = flows();

	return (struct counts){
	    .away = number_in(s, "away"),
	    .out = number_in(s, "out"),
	    .rmws = number_in(s, "rmws"),
	    .to_slabs = number_in(s, "to_slabs"),
	    .puts = number_in(s, "ring_puts"),
	    .bleeds = strstr(s, "\"bleeds\":true") != NULL,
	};
}

/* The first two CPUs that the process may use, of different homes. */
static bool
find_cpus(int *ret)
{
	cpu_set_t set;
	int n = 0;

	if (sched_getaffinity(0, sizeof set, &set) != 0)
		return false;
	for (int i = 0; i < CPU_SETSIZE && n < 2; i++)
		if (CPU_ISSET((size_t)i, &set) &&
		    (n == 0 || (i - ret[0]) % 2 != 0))
			ret[n++] = i;
	return n == 2;
}

static void
pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	if (sched_setaffinity(0, sizeof set, &set) != 0)
		tap_bail("sched_setaffinity: errno %d", errno);
}

static _Atomic(void *) slots[MAX_IN_FLIGHT];
static size_t n_slots;
static int cpus[2];

static void *
consume(void *arg)
{
	(void)arg;
	pin(cpus[1]);
	for (size_t i = 0; i < WARM + OBJECTS; i++) {
		void *p;

		while ((p = atomic_exchange(&slots[i % n_slots], NULL)) == NULL)
			sched_yield();
		p_free(p);
	}
	return NULL;
}

static void
produce(size_t from, size_t to, size_t size)
{
	for (size_t i = from; i < to; i++) {
		char *p = p_malloc(size);

		if (p == NULL)
			tap_bail("no memory");
		*p = 1;
		while (atomic_load(&slots[i % n_slots]) != NULL)
			sched_yield();
		atomic_store(&slots[i % n_slots], p);
	}
}

static int
pass(size_t size, size_t in_flight)
{
	struct counts a;
	struct counts b;
	pthread_t t;

	n_slots = in_flight;
	if (!find_cpus(cpus) || pthread_create(&t, NULL, consume, NULL) != 0)
		return 1;
	pin(cpus[0]);
	produce(0, WARM, size);
	a = counts();
	produce(WARM, WARM + OBJECTS, size);
	if (pthread_join(t, NULL) != 0)
		return 1;
	b = counts();
	(void)printf("%llu %llu %llu %llu %llu %llu\n",
	    (unsigned long long)(b.away - a.away),
	    (unsigned long long)(b.out - a.out),
	    (unsigned long long)(b.rmws - a.rmws),
	    (unsigned long long)(b.to_slabs - a.to_slabs),
	    (unsigned long long)(b.puts - a.puts),
	    (unsigned long long)b.bleeds);
	return fflush(stdout) != 0;
}

/* ------------------------------------------------------------------ */

static struct counts
run(const char *conf, size_t size, size_t in_flight)
{
	char args[2][32];
	char *argv[] = {
	    (char *)"ctl_flow", (char *)"pass", args[0], args[1], NULL};
	unsigned long long v[6] = {0};
	struct counts c;
	char why[64];
	int fd[2];
	FILE *f;
	pid_t pid;

	(void)snprintf(args[0], sizeof args[0], "%zu", size);
	(void)snprintf(args[1], sizeof args[1], "%zu", in_flight);
	if (pipe(fd) != 0 || (pid = fork()) < 0)
		tap_bail("pipe or fork: errno %d", errno);
	if (pid == 0) {
		probe_child_begin(60);
		(void)setenv("EDDY_CONF", conf, 1);
		(void)setenv("EDDY_TAP_CHILD", "1", 1);
		(void)dup2(fd[1], STDOUT_FILENO);
		(void)close(fd[0]);
		(void)close(fd[1]);
		(void)execv("/proc/self/exe", argv);
		_exit(126);
	}
	(void)close(fd[1]);
	f = fdopen(fd[0], "r");
	if (f == NULL || fscanf(f, "%llu %llu %llu %llu %llu %llu", &v[0],
			     &v[1], &v[2], &v[3], &v[4], &v[5]) != 6)
		tap_diag("%s, %zu bytes: no counts", conf, size);
	if (f != NULL)
		(void)fclose(f);
	if (!probe_wait(pid, why, sizeof why))
		tap_diag("%s, %zu bytes: %s", conf, size, why);
	c.away = v[0];
	c.out = v[1];
	c.rmws = v[2];
	c.to_slabs = v[3];
	c.puts = v[4];
	c.bleeds = v[5];
	return c;
}

/* Of both sides of the ring, failed ones and those of slabs included. */
static uint64_t
allowed(uint64_t sent)
{
	return sent / OBJECTS_AN_RMW + ENDS;
}

static void
test_flow(const char *conf, bool homes, size_t in_flight)
{
	static const size_t sizes[] = {16, 48, 64, 128, 256, 512, 1024};
	const char *what = homes ? "away from home" : "for want of room";
	unsigned miscounted = 0;
	unsigned silent = 0;
	unsigned costly = 0;

	for (size_t i = 0; i < COUNT(sizes); i++) {
		struct counts c = run(conf, sizes[i], in_flight);
		uint64_t sent = homes ? c.away : c.out;
		uint64_t other = homes ? c.out : c.away;

		tap_diag("%4zu B: %llu sent %s, %llu RMWs, an RMW for %.1f; "
			 "%llu to slabs",
		    sizes[i], (unsigned long long)sent, what,
		    (unsigned long long)c.rmws,
		    c.rmws != 0 ? (double)sent / (double)c.rmws : 0.0,
		    (unsigned long long)c.to_slabs);
		/* What waits in slots when it is counted first comes after. */
		miscounted += sent > OBJECTS + MAX_IN_FLIGHT + LOST ||
			      sent < OBJECTS - LOST || other > LOST;
		silent += c.bleeds != 1;
		costly += c.rmws > allowed(sent) || c.rmws == 0;
	}
	tap_ok(miscounted == 0, "%s, %zu in flight: all are counted", conf,
	    in_flight);
	tap_ok(silent == 0, "%s, %zu in flight: it is called a bleeding", conf,
	    in_flight);
	tap_ok(costly == 0, "%s, %zu in flight: at most an RMW for %d objects",
	    conf, in_flight, OBJECTS_AN_RMW);
}

int
main(int argc, char **argv)
{
	static const size_t in_flight[] = {32, 1000};

	if (argc == 4 && strcmp(argv[1], "pass") == 0) {
		tap_begin(argv);
		return pass(
		    strtoul(argv[2], NULL, 10), strtoul(argv[3], NULL, 10));
	}
	tap_begin(argv);
	if (malloc_stats_print == NULL)
		tap_skip_all("EDDY_SO names no library");
	if (!find_cpus(cpus))
		tap_skip_all("two CPUs are needed, an even and an odd one");
	p_free(p_malloc(1));
	malloc_stats_print(collect, NULL, "Jgmdablxehn");
	if (strstr(text, "\"mode\":\"rseq\"") == NULL)
		tap_skip_all("no restartable sequences: no CPU has a cache");
	tap_guard(300);
	for (size_t i = 0; i < COUNT(in_flight); i++) {
		test_flow("topology:2x1x1", true, in_flight[i]);
		test_flow("numa:off", false, in_flight[i]);
	}
	return tap_end();
}
