/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench.h - what the files of eddy_bench share.
 *
 * The harness never calls malloc for itself: its tables come from mmap, are
 * populated before the clock starts and are reported as harness_kb, so that a
 * reader can take them off the resident size.
 */
#ifndef EDDY_BENCH_H
#define EDDY_BENCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	BENCH_LINE = 128, /* keeps two threads' fields apart */
	BENCH_MAX_THREADS = 256,
	BENCH_TABLE = 16384, /* entries of an index table; a power of two */
	BENCH_SIZES = 16381, /* a prime: sizes and indices drift apart */
};

/* What the command line asked for; each workload reads what it needs. */
struct bench_params {
	size_t size;      /* bytes of an object, or the largest */
	size_t count;     /* objects held, slots of a ring, nodes of a list */
	unsigned threads; /* threads that allocate or free */
	unsigned ms;      /* length of the measured loop */
	bool touch;       /* write to every page of what was allocated */
	const char *dist; /* distribution of sizes, NULL for one size */
	const char *mode; /* variant of a workload */
};

struct bench_result {
	double ns_per_op;     /* CPUs in use times wall time, per operation */
	double cpu_ns_per_op; /* CPU time of the process, per operation */
	uint64_t ops;
	size_t n_extra;
	char extra[8192]; /* further JSON members, each ",\"name\":value" */
};

struct bench_workload {
	const char *name;
	int (*run)(const struct bench_params *, struct bench_result *);
	const char *help;
};

extern const struct bench_workload bench_single[];
extern const struct bench_workload bench_sized[];
extern const struct bench_workload bench_threaded[];
extern const struct bench_workload bench_flow[];
extern const struct bench_workload bench_memory[];
extern const struct bench_workload bench_pool[];
extern const struct bench_workload bench_zero[];
extern const struct bench_workload bench_reclaim[];

int bench_fork_run(const struct bench_params *params, struct bench_result *ret);
int bench_latency_run(
    const struct bench_params *params, struct bench_result *ret);
int bench_steady_run(
    const struct bench_params *params, struct bench_result *ret);
int bench_lives_run(
    const struct bench_params *params, struct bench_result *ret);
int bench_hint_run(const struct bench_params *params, struct bench_result *ret);
int bench_thp_run(const struct bench_params *params, struct bench_result *ret);

/* One measured stretch, on the wall clock and on the process's CPU clock. */
struct bench_span {
	uint64_t wall_ns;
	uint64_t cpu_ns;
};

/* Does some operations on ctx and returns how many. */
typedef uint64_t bench_block(void *ctx);

uint64_t bench_now_ns(void);
struct bench_span bench_span_begin(void);
struct bench_span bench_span_end(struct bench_span begin);
void bench_set(struct bench_result *ret, struct bench_span span, uint64_t ops,
    unsigned n_cpus);
void bench_extra(struct bench_result *ret, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void bench_run_blocks(
    bench_block *block, void *ctx, unsigned ms, struct bench_result *ret);
void *bench_mixed_create(const struct bench_params *params);
uint64_t bench_mixed_block(void *mixed);
void bench_sleep_us(unsigned us);
void bench_sleep_ms(unsigned ms);

void *bench_map(size_t n_bytes);
void *bench_map_sparse(size_t n_bytes, size_t piece);
size_t bench_mapped_kb(void);
uint64_t bench_random(uint64_t *state);
uint16_t *bench_table_index(size_t limit, uint64_t seed);
uint16_t *bench_table_sizes(const char *dist, size_t size, uint64_t seed);
size_t bench_random_size(uint64_t *state, size_t least, unsigned octaves);
void bench_write_all(void *p, size_t n_bytes);
_Noreturn void bench_die(const char *what);

/*
 * A script that leads the workload (harness.py) hears of each step, and the
 * workload goes on when told. Without one nothing is said, nobody waits.
 */
bool bench_is_led(void);
void bench_tell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void bench_step(const char *name);

struct bench_memory_use {
	size_t rss_kb;
	size_t hwm_kb;
	size_t pte_kb;
	size_t private_kb; /* of smaps_rollup, if asked */
	size_t pss_kb;
};

int bench_memory_read(int pid, bool rollup, struct bench_memory_use *ret);

unsigned bench_cpus(void);
void bench_pin_to(unsigned nth);
void bench_pin_all(void);
void bench_cpus_parse(const char *list);

/* Levels of --priority: who samples and sleeps goes before who works. */
enum {
	BENCH_RANK_WORKER = 10,
	BENCH_RANK_MAIN,
	BENCH_RANK_SAMPLER,
};

void bench_priority_parse(const char *how);
void bench_priority_take(int rank);

/*
 * Writes the first word, as a program would. The asm keeps the compiler from
 * proving that nobody reads it, and from taking malloc and free out.
 */
static inline void
bench_use(void *p)
{
	if (__builtin_expect(p == NULL, 0))
		bench_die("out of memory");
	*(size_t *)p = (size_t)p;
	__asm__ volatile("" : : "r"(p) : "memory");
}

/* The same without the write. */
static inline void
bench_keep(void *p)
{
	if (__builtin_expect(p == NULL, 0))
		bench_die("out of memory");
	__asm__ volatile("" : : "r"(p) : "memory");
}

static inline void
bench_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__asm__ volatile("pause");
#elif defined(__aarch64__)
	__asm__ volatile("isb");
#endif
}

#endif
