/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * urcu_hash.c - liburcu's lock-free hash table, whose entries are freed late.
 *
 * Writers replace entries of random keys, readers look keys up.  By default for
 * EDDY_TIME seconds, with deferred frees: no reader may see a freed entry, what
 * waits stays below the bound, and at the end all is freed; and a quarter as
 * long again with a bound too low for them.  With words it is what bench/urcu
 * measures:
 *
 *     urcu_hash eddy|call_rcu hash|plain COUNT [WRITERS READERS]
 *
 * COUNT entries are replaced by each writer (plain: made and handed over, with
 * no table), and the time is taken until all of them are free.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <urcu.h>
#include <urcu/rculfhash.h>

#include <eddy/urcu.h>

#include "rig.h"

enum { KEYS = 1 << 16, MAX_THREADS = 64, PAYLOAD = 16, N_LIVE_MARK = 0x2e5a };
enum { LOW_BOUND = 2000 };

struct entry {
	struct cds_lfht_node node;
	uint64_t mark;
	uint64_t key;
	char payload[PAYLOAD];
};

struct entry_head {
	struct entry entry;
	struct rcu_head head;
};

static struct {
	bool call_rcu;
	bool plain;
	uint64_t count; /* of a writer; 0: for a time */
	unsigned writers;
	unsigned readers;
} how = {.writers = 8, .readers = 2};

static struct cds_lfht *table;
static atomic_bool over;
static _Atomic uint64_t n_handed, n_looked, n_found, n_bad, n_refused;
static _Atomic uint64_t n_called;

static uint64_t
hash_of(uint64_t key)
{
	return (key * UINT64_C(0x9e3779b97f4a7c15)) >> 20;
}

static int
is_key(struct cds_lfht_node *node, const void *key)
{
	return caa_container_of(node, struct entry, node)->key ==
	       *(const uint64_t *)key;
}

static struct entry *
make(uint64_t key)
{
	struct entry *e = malloc(
	    how.call_rcu ? sizeof(struct entry_head) : sizeof(struct entry));

	if (e == NULL)
		rig_fail_now("no memory");
	cds_lfht_node_init(&e->node);
	e->mark = N_LIVE_MARK + key;
	e->key = key;
	memset(e->payload, (int)key, sizeof e->payload);
	return e;
}

static void
on_grace(struct rcu_head *head)
{
	struct entry_head *e = caa_container_of(head, struct entry_head, head);

	e->entry.mark = 0;
	atomic_store_explicit(&n_called,
	    atomic_load_explicit(&n_called, memory_order_relaxed) + 1,
	    memory_order_relaxed);
	free(e);
}

static void
drop(struct entry *e)
{
	if (how.call_rcu)
		call_rcu(&((struct entry_head *)e)->head, on_grace);
	else if (eddy_free_rcu(e) != 0)
		atomic_fetch_add(&n_refused, 1);
}

static void
replace(uint64_t key)
{
	struct entry *e = make(key);
	struct cds_lfht_node *old;

	rcu_read_lock();
	old = cds_lfht_add_replace(table, hash_of(key), is_key, &key, &e->node);
	rcu_read_unlock();
	if (old != NULL)
		drop(caa_container_of(old, struct entry, node));
}

static void *
writer(void *arg)
{
	uint64_t random = rig.seed * 1000 + (uintptr_t)arg;
	uint64_t n = 0;

	rcu_register_thread();
	while (how.count != 0 ? n < how.count : !atomic_load(&over)) {
		uint64_t key = rig_below(&random, KEYS);

		if (how.plain)
			drop(make(key));
		else
			replace(key);
		n++;
	}
	rcu_unregister_thread();
	atomic_fetch_add(&n_handed, n);
	return NULL;
}

static void *
reader(void *arg)
{
	uint64_t random = rig.seed * 2000 + (uintptr_t)arg;
	uint64_t looked = 0, found = 0;

	rcu_register_thread();
	while (!atomic_load(&over)) {
		struct cds_lfht_iter iter;
		struct cds_lfht_node *node;
		uint64_t key = rig_below(&random, KEYS);

		rcu_read_lock();
		cds_lfht_lookup(table, hash_of(key), is_key, &key, &iter);
		node = cds_lfht_iter_get_node(&iter);
		if (node != NULL) {
			struct entry *e =
			    caa_container_of(node, struct entry, node);

			found++;
			if (e->mark != N_LIVE_MARK + key || e->key != key ||
			    e->payload[PAYLOAD - 1] != (char)key)
				atomic_fetch_add(&n_bad, 1);
		}
		rcu_read_unlock();
		looked++;
	}
	rcu_unregister_thread();
	atomic_fetch_add(&n_looked, looked);
	atomic_fetch_add(&n_found, found);
	return NULL;
}

static void
start(pthread_t *t, void *(*run)(void *), unsigned i)
{
	if (pthread_create(t, NULL, run, (void *)(uintptr_t)i) != 0)
		rig_fail_now("no thread");
}

/* The most that was resident, KiB. */
static unsigned long
peak_kib(void)
{
	char line[128];
	unsigned long ret = 0;
	FILE *f = fopen("/proc/self/status", "r");

	while (f != NULL && fgets(line, sizeof line, f) != NULL)
		(void)sscanf(line, "VmHWM: %lu", &ret);
	if (f != NULL)
		(void)fclose(f);
	return ret;
}

/* Everything, until all is free; returns ns. */
static uint64_t
run(void)
{
	pthread_t t[MAX_THREADS];
	uint64_t begin;

	begin = rig_now_ns();
	for (unsigned i = 0; i < how.writers + how.readers; i++)
		start(&t[i], i < how.writers ? writer : reader, i);
	if (how.count == 0) {
		rig_sleep_us((unsigned)(rig.seconds * 1e6));
		atomic_store(&over, true);
	}
	for (unsigned i = 0; i < how.writers; i++)
		(void)pthread_join(t[i], NULL);
	if (how.call_rcu)
		rcu_barrier();
	else
		(void)eddy_rcu_barrier();
	begin = rig_now_ns() - begin;
	atomic_store(&over, true);
	for (unsigned i = how.writers; i < how.writers + how.readers; i++)
		(void)pthread_join(t[i], NULL);
	return begin;
}

static void
prepare(void)
{
	rcu_register_thread();
	table = cds_lfht_new(KEYS, KEYS, KEYS, 0, NULL);
	if (table == NULL)
		rig_fail_now("no table");
	for (uint64_t key = 0; key < KEYS && !how.plain; key++)
		replace(key);
}

/* For bench/urcu: one line. */
static int
measure(int argc, char **argv)
{
	uint64_t ns;

	how.call_rcu = strcmp(argv[1], "call_rcu") == 0;
	how.plain = strcmp(argv[2], "plain") == 0;
	how.count = strtoull(argv[3], NULL, 10);
	if (argc > 5) {
		how.writers = (unsigned)strtoul(argv[4], NULL, 10);
		how.readers = (unsigned)strtoul(argv[5], NULL, 10);
	}
	if (how.count == 0 || how.writers + how.readers > MAX_THREADS)
		return 2;
	prepare();
	ns = run();
	(void)printf("ns_per_free=%.1f peak_kib=%lu lookups=%llu bad=%llu\n",
	    (double)ns / (double)atomic_load(&n_handed), peak_kib(),
	    (unsigned long long)atomic_load(&n_looked),
	    (unsigned long long)atomic_load(&n_bad));
	return atomic_load(&n_bad) != 0;
}

static struct eddy_urcu_stats
stats(void)
{
	struct eddy_urcu_stats s;

	if (eddy_rcu_stats(&s, sizeof s) != 0)
		rig_fail_now("no statistics");
	return s;
}

/* What holds of any run. */
static void
check(const char *when)
{
	struct eddy_urcu_stats s = stats();

	rig_diag("%llu replaced, %llu looked up, %llu grace periods, "
		 "%llu threads of the library's",
	    (unsigned long long)atomic_load(&n_handed),
	    (unsigned long long)atomic_load(&n_looked),
	    (unsigned long long)s.graces, (unsigned long long)s.helpers);
	rig_diag("at most %llu of %llu objects waited, %llu of %llu KiB; "
		 "%llu batches beyond, %llu freed by callers; "
		 "%lu KiB resident at most",
	    (unsigned long long)s.peak_objects,
	    (unsigned long long)s.bound_objects,
	    (unsigned long long)s.peak_bytes >> 10,
	    (unsigned long long)s.bound_bytes >> 10,
	    (unsigned long long)s.beyond, (unsigned long long)s.helped,
	    peak_kib());
	rig_ok(atomic_load(&n_bad) == 0 && atomic_load(&n_found) != 0,
	    "%sno reader sees a freed entry", when);
	rig_ok(atomic_load(&n_refused) == 0, "%sno entry is refused", when);
	rig_ok(s.freed_objects == atomic_load(&n_handed) &&
		   s.waiting_objects == 0 && s.open_objects == 0,
	    "%sall that was handed over is freed", when);
}

int
main(int argc, char **argv)
{
	struct eddy_urcu_stats s;

	if (argc > 3 && argv[1][0] != '-')
		return measure(argc, argv);
	rig_start(argc, argv, 3);
	prepare();
	(void)run();
	s = stats();
	check("");
	if (rig.is_long)
		rig_ok(s.peak_objects <= s.bound_objects &&
			   s.peak_bytes <= s.bound_bytes,
		    "the bound holds");
	/* So little that callers free, and more helpers come. */
	if (eddy_rcu_set_bound(LOW_BOUND, SIZE_MAX) != 0)
		rig_fail_now("the bound is refused");
	atomic_store(&over, false);
	rig.seconds /= 4;
	(void)run();
	s = stats();
	check("beyond a low bound, ");
	/* Another malloc's free may not be called by who hands over. */
	rig_ok(
	    s.beyond > 0 && s.helpers > 1 &&
		(s.helped > 0) == (dlsym(RTLD_DEFAULT, "eddy_version") != NULL),
	    "beyond a low bound, callers and helpers do more");
	return rig_end();
}
