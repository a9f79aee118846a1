/* SPDX-License-Identifier: BSD-2-Clause */
/* bench_measure.c - clocks, tables, memory readings, CPUs. */
#ifndef _GNU_SOURCE
#	define _GNU_SOURCE /* sched_setaffinity */
#endif
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

static size_t mapped_bytes;
static int cpu_ids[BENCH_MAX_THREADS];
static unsigned n_cpu_ids;
static bool priority_fifo;
static bool priority_nice;

void
bench_die(const char *what)
{
	(void)dprintf(2, "eddy_bench: %s\n", what);
	_exit(2);
}

static uint64_t
clock_ns(clockid_t id)
{
	struct timespec ts;

	(void)clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000U + (uint64_t)ts.tv_nsec;
}

uint64_t
bench_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

struct bench_span
bench_span_begin(void)
{
	return (struct bench_span){
	    .cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID),
	    .wall_ns = bench_now_ns(),
	};
}

struct bench_span
bench_span_end(struct bench_span begin)
{
	return (struct bench_span){
	    .wall_ns = bench_now_ns() - begin.wall_ns,
	    .cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin.cpu_ns,
	};
}

void
bench_set(struct bench_result *ret, struct bench_span span, uint64_t ops,
    unsigned n_cpus)
{
	double n = ops != 0 ? (double)ops : 1.0;

	ret->ops = ops;
	ret->ns_per_op = (double)span.wall_ns * n_cpus / n;
	ret->cpu_ns_per_op = (double)span.cpu_ns / n;
}

void
bench_extra(struct bench_result *ret, const char *fmt, ...)
{
	size_t room = sizeof(ret->extra) - ret->n_extra;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(ret->extra + ret->n_extra, room, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= room)
		bench_die("too many results for the line");
	ret->n_extra += (size_t)n;
}

/*
 * Runs block for a fifth of ms as warm-up, then for ms with the clock on. A
 * block is long against the clock's cost, short against ms.
 */
void
bench_run_blocks(
    bench_block *block, void *ctx, unsigned ms, struct bench_result *ret)
{
	uint64_t end = bench_now_ns() + (uint64_t)ms * 200000U;
	uint64_t ops = 0;
	struct bench_span span;

	do
		(void)block(ctx);
	while (bench_now_ns() < end);
	span = bench_span_begin();
	end = span.wall_ns + (uint64_t)ms * 1000000U;
	do
		ops += block(ctx);
	while (bench_now_ns() < end);
	bench_set(ret, bench_span_end(span), ops, 1);
}

void
bench_sleep_us(unsigned us)
{
	struct timespec ts = {
	    .tv_sec = us / 1000000,
	    .tv_nsec = (long)(us % 1000000) * 1000L,
	};

	while (nanosleep(&ts, &ts) != 0)
		;
}

void
bench_sleep_ms(unsigned ms)
{
	bench_sleep_us(ms * 1000);
}

/*
 * Memory whose pages are there, or if pieces are larger than a page, the first
 * page of each.
 */
void *
bench_map_sparse(size_t n_bytes, size_t piece)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t len = (n_bytes + page - 1) & ~(page - 1);
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		bench_die("no memory for the harness's tables");
	(void)madvise(p, len, MADV_NOHUGEPAGE);
	for (size_t i = 0; i<len; i += piece> page ? piece : page) {
		((volatile char *)p)[i] = 0;
		mapped_bytes += page;
	}
	return p;
}

void *
bench_map(size_t n_bytes)
{
	return bench_map_sparse(n_bytes, 0);
}

size_t
bench_mapped_kb(void)
{
	return mapped_bytes / 1024;
}

/* splitmix64 */
uint64_t
bench_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15U);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
	return z ^ (z >> 31);
}

/*
 * Sizes of all magnitudes from least on, each doubling with as many bytes as
 * any other: an object is half as likely to be twice as large.
 */
size_t
bench_random_size(uint64_t *state, size_t least, unsigned octaves)
{
	const uint64_t r = bench_random(state);
	const unsigned octave =
	    (unsigned)__builtin_ctzll(r | (uint64_t)1 << (octaves - 1));

	least <<= octave;
	return least + (size_t)(r >> 32) % least;
}

/* BENCH_TABLE random numbers below limit (at most 65536). */
uint16_t *
bench_table_index(size_t limit, uint64_t seed)
{
	uint16_t *t = bench_map(BENCH_TABLE * sizeof(*t));

	if (limit == 0 || limit > 65536)
		bench_die("index table: limit out of range");
	for (size_t i = 0; i < BENCH_TABLE; i++)
		t[i] = (uint16_t)(bench_random(&seed) % limit);
	return t;
}

/*
 * Shares of the "mixed" distribution in 1/1000: what servers show, many small
 * strings and nodes and a thin tail up to 32 KiB; mean about 250 bytes.
 */
static const struct {
	uint16_t hi;
	uint16_t share;
} mixed_bins[] = {
    {16, 200},
    {32, 250},
    {64, 220},
    {128, 130},
    {256, 80},
    {512, 50},
    {1024, 30},
    {2048, 20},
    {4096, 10},
    {8192, 6},
    {16384, 3},
    {32768, 1},
};

static uint16_t
mixed_size(uint64_t *seed)
{
	uint64_t at = bench_random(seed) % 1000;
	size_t b = 0;
	uint64_t half;

	while (at >= mixed_bins[b].share)
		at -= mixed_bins[b++].share;
	half = mixed_bins[b].hi / 2U;
	return (uint16_t)(half + 1 + bench_random(seed) % half);
}

/*
 * BENCH_SIZES sizes by name: "mixed", "small" (mixed without its tail above
 * 1 KiB), "LO-HI" (uniform); NULL means all equal to size.
 */
uint16_t *
bench_table_sizes(const char *dist, size_t size, uint64_t seed)
{
	uint16_t *t = bench_map(BENCH_SIZES * sizeof(*t));
	bool mixed = dist != NULL && strcmp(dist, "mixed") == 0;
	bool small = dist != NULL && strcmp(dist, "small") == 0;
	unsigned lo = (unsigned)size;
	unsigned hi = (unsigned)size;

	if (dist != NULL && !mixed && !small &&
	    (sscanf(dist, "%u-%u", &lo, &hi) != 2 || lo > hi || hi > 65535))
		bench_die("dist: mixed, small or LO-HI wanted");
	if (size > 65535)
		bench_die("size: too large for a table");
	for (size_t i = 0; i < BENCH_SIZES; i++) {
		if (!mixed && !small) {
			t[i] = (uint16_t)(lo +
					  bench_random(&seed) % (hi - lo + 1));
			continue;
		}
		do
			t[i] = mixed_size(&seed);
		while (small && t[i] > 1024);
	}
	return t;
}

/* Writes to every page, as a program fills what it asked for. */
void
bench_write_all(void *p, size_t n_bytes)
{
	for (size_t i = 0; i < n_bytes; i += 4096)
		((volatile char *)p)[i] = 1;
	((volatile char *)p)[n_bytes - 1] = 1;
}

bool
bench_is_led(void)
{
	return getenv("EDDY_BENCH_STEPS") != NULL;
}

/* A line for the script. Allocates nothing. */
void
bench_tell(const char *fmt, ...)
{
	char line[256];
	va_list ap;
	int n;

	if (!bench_is_led())
		return;
	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(line) ||
	    write(1, line, (size_t)n) != n)
		bench_die("cannot tell the script");
}

void
bench_step(const char *name)
{
	char c;

	bench_tell("%s\n", name);
	if (bench_is_led() && read(0, &c, 1) != 1)
		bench_die("the script has gone");
}

static size_t
field_kb(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at == NULL ? 0 : strtoul(at + strlen(name), NULL, 10);
}

static int
read_proc(int pid, const char *file, char *ret_text, size_t room)
{
	char path[64];
	size_t n = 0;
	ssize_t got;
	int fd;

	if (pid == 0)
		(void)snprintf(path, sizeof(path), "/proc/self/%s", file);
	else
		(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	while (n < room - 1 && (got = read(fd, ret_text + n, room - 1 - n)) > 0)
		n += (size_t)got;
	(void)close(fd);
	ret_text[n] = '\0';
	return n == 0 ? -1 : 0;
}

/* pid 0 is the caller. Allocates nothing. */
int
bench_memory_read(int pid, bool rollup, struct bench_memory_use *ret)
{
	char text[8192];

	if (read_proc(pid, "status", text, sizeof(text)) != 0 ||
	    strstr(text, "VmRSS:") == NULL)
		return -1;
	ret->rss_kb = field_kb(text, "VmRSS:");
	ret->hwm_kb = field_kb(text, "VmHWM:");
	ret->pte_kb = field_kb(text, "VmPTE:");
	ret->private_kb = 0;
	ret->pss_kb = 0;
	if (!rollup)
		return 0;
	if (read_proc(pid, "smaps_rollup", text, sizeof(text)) != 0)
		return -1;
	ret->private_kb =
	    field_kb(text, "Private_Clean:") + field_kb(text, "Private_Dirty:");
	ret->pss_kb = field_kb(text, "\nPss:");
	return 0;
}

/*
 * The CPUs to use: those named, else the first two that we may run on. The
 * last of them gets the one-thread workloads, the first the sampler.
 */
void
bench_cpus_parse(const char *list)
{
	cpu_set_t set;

	n_cpu_ids = 0;
	while (list != NULL && *list != '\0' && n_cpu_ids < BENCH_MAX_THREADS) {
		char *end;
		long id = strtol(list, &end, 10);

		if (end == list || id < 0 || id >= CPU_SETSIZE)
			bench_die("--cpus: a list such as 0,1 wanted");
		cpu_ids[n_cpu_ids++] = (int)id;
		list = *end == ',' ? end + 1 : end;
	}
	if (n_cpu_ids != 0)
		return;
	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		bench_die("sched_getaffinity failed");
	for (int i = 0; i < CPU_SETSIZE && n_cpu_ids < 2; i++)
		if (CPU_ISSET((size_t)i, &set))
			cpu_ids[n_cpu_ids++] = i;
}

unsigned
bench_cpus(void)
{
	return n_cpu_ids;
}

void
bench_pin_to(unsigned nth)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpu_ids[nth % n_cpu_ids], &set);
	if (sched_setaffinity(0, sizeof(set), &set) != 0)
		bench_die("cannot pin to a CPU");
}

void
bench_pin_all(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (unsigned i = 0; i < n_cpu_ids; i++)
		CPU_SET((size_t)cpu_ids[i], &set);
	if (sched_setaffinity(0, sizeof(set), &set) != 0)
		bench_die("cannot pin to the CPUs");
}

void
bench_priority_parse(const char *how)
{
	priority_fifo = how != NULL && strcmp(how, "fifo") == 0;
	priority_nice = how != NULL && strcmp(how, "nice") == 0;
	if (how != NULL && !priority_fifo && !priority_nice)
		bench_die("--priority: fifo or nice");
}

/*
 * A nice value counts within a session, and the session's among the others.
 * Left alone unless the parent leads the session, as under compare: it would
 * be the shell's otherwise.
 */
static void
nice_session(void)
{
	int fd;

	if (getsid(0) != getppid())
		return;
	fd = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (write(fd, "-20", 3) != 3)
		bench_die("--priority: not permitted");
	(void)close(fd);
}

/* Of the calling thread; does nothing without --priority. */
void
bench_priority_take(int rank)
{
	struct sched_param param = {.sched_priority = rank};

	if ((priority_fifo && sched_setscheduler(0, SCHED_FIFO, &param) != 0) ||
	    (priority_nice && setpriority(PRIO_PROCESS, 0, -20) != 0))
		bench_die("--priority: not permitted");
	if (priority_nice && rank == BENCH_RANK_MAIN)
		nice_session();
}
