/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * front_threads.c - blocks outlive threads, change hands, and are freed in
 * their last moments; memory stays bounded.
 */
#include "probe.h"

#include <limits.h>

/* Frees in the last round of key destructors, by threads that only free. */
enum { BAG = 300 };

static pthread_key_t bag_key;
static __thread int bag_round;

static void
bag_destroy(void *bag)
{
	void **p = bag;

	if (++bag_round < PTHREAD_DESTRUCTOR_ITERATIONS) {
		(void)pthread_setspecific(bag_key, bag);
		return;
	}
	for (int i = 0; i < BAG; i++)
		p_free(p[i]);
}

static void *
bag_thread(void *bag)
{
	(void)pthread_setspecific(bag_key, bag);
	return NULL;
}

static void
test_last_round(void)
{
	enum { THREADS = 4000 };
	static void *bag[BAG];
	long early = 0;
	pthread_t t;

	(void)pthread_key_create(&bag_key, bag_destroy);
	for (int k = 0; k < THREADS; k++) {
		for (int i = 0; i < BAG; i++) {
			bag[i] = p_malloc(16 + (size_t)(i % 24) * 40);
			memset(bag[i], 1, 16);
		}
		if (pthread_create(&t, NULL, bag_thread, bag) != 0)
			tap_bail("pthread_create");
		(void)pthread_join(t, NULL);
		if (k == THREADS / 4)
			early = probe_rss_kib();
	}
	(void)pthread_key_delete(bag_key);
	if (!tap_ok(probe_rss_kib() - early < 16 * KIB,
		"4000 threads that free in their last round leave nothing"))
		tap_diag("%ld KiB more", probe_rss_kib() - early);
}

/* Destructors that allocate and arm themselves again, over many keys. */
enum { KEYS = 40 };

static pthread_key_t key[KEYS];
static __thread int key_calls;
static struct flag key_broken;

static void
key_destroy(void *arg)
{
	char *p = p_realloc(arg, 300 + (size_t)key_calls * 50);

	if (p == NULL || p[3] != 9)
		flag_set(&key_broken);
	if (key_calls++ < KEYS * (PTHREAD_DESTRUCTOR_ITERATIONS - 1))
		(void)pthread_setspecific(key[key_calls % KEYS], p);
	else
		p_free(p);
	p_free(p_calloc(3, 700));
}

static void *
key_thread(void *arg)
{
	(void)arg;
	for (int i = 0; i < KEYS; i++) {
		char *p = p_malloc(40 + (size_t)i);

		memset(p, 9, 40);
		(void)pthread_setspecific(key[i], p);
	}
	return NULL;
}

static void
test_key_destructors(void)
{
	enum { ROUNDS = 500 };
	long early = 0;

	for (int i = 0; i < KEYS; i++)
		(void)pthread_key_create(&key[i], key_destroy);
	for (int k = 0; k < ROUNDS; k++) {
		pthread_t t[4];

		for (int i = 0; i < 4; i++)
			(void)pthread_create(&t[i], NULL, key_thread, NULL);
		for (int i = 0; i < 4; i++)
			(void)pthread_join(t[i], NULL);
		if (k == ROUNDS / 4)
			early = probe_rss_kib();
	}
	tap_ok(!flag_is_set(&key_broken),
	    "key destructors realloc, calloc and free");
	/* glibc ends the rounds with some blocks still in the keys. */
	tap_ok(probe_rss_kib() - early < 80 * KIB,
	    "threads whose destructors allocate do not pile up");
}

/* Live blocks of dead threads. */
enum { ORPHANS = 3000 };

static unsigned char *orphan[4][ORPHANS];

static void *
orphan_thread(void *arg)
{
	intptr_t k = (intptr_t)arg;

	for (int i = 0; i < ORPHANS; i++) {
		size_t n = 32 + (size_t)(i * 97) % 3000;

		orphan[k][i] = p_malloc(n);
		memset(orphan[k][i], (int)k, n);
	}
	return NULL;
}

static void
test_orphans(void)
{
	enum { ROUNDS = 60 };
	bool held = true;
	long early = 0;

	for (int k = 0; k < ROUNDS; k++) {
		pthread_t t[4];

		for (intptr_t i = 0; i < 4; i++)
			(void)pthread_create(
			    &t[i], NULL, orphan_thread, (void *)i);
		for (int i = 0; i < 4; i++)
			(void)pthread_join(t[i], NULL);
		if (k == ROUNDS / 2)
			early = probe_rss_kib();
		for (int i = 0; i < 4; i++)
			for (int j = 0; j < ORPHANS; j++) {
				held = held && orphan[i][j][8] == i;
				p_free(orphan[i][j]);
			}
	}
	tap_ok(held, "blocks of threads that ended keep their content");
	tap_ok(probe_rss_kib() - early < 32 * KIB,
	    "blocks of threads that ended are reused once freed");
}

/* One producer, one consumer, a bounded queue between them. */
enum { QUEUE = 4096, ITEMS = 1200000 };

static unsigned char *queue[QUEUE];
static atomic_uint queue_head;
static atomic_uint queue_tail;

static void *
consumer(void *arg)
{
	unsigned long *bad = arg;

	for (unsigned i = 0; i < ITEMS; i++) {
		while (atomic_load(&queue_tail) == i)
			(void)sched_yield();
		*bad += queue[i % QUEUE][0] != (i & 255);
		p_free(queue[i % QUEUE]);
		atomic_store(&queue_head, i + 1);
	}
	return NULL;
}

static void
test_producer_consumer(void)
{
	uint64_t rng = tap.seed;
	unsigned long bad = 0;
	long early = 0;
	pthread_t t;

	(void)pthread_create(&t, NULL, consumer, &bad);
	for (unsigned i = 0; i < ITEMS; i++) {
		size_t limit = (i & 15) != 0 ? 800 : 20000;
		size_t n = 16 + (size_t)tap_random(&rng) % limit;
		unsigned char *p;

		while (i - atomic_load(&queue_head) >= QUEUE)
			(void)sched_yield();
		p = p_malloc(n);
		p[0] = i & 255;
		p[n - 1] = 1;
		queue[i % QUEUE] = p;
		atomic_store(&queue_tail, i + 1);
		if (i == ITEMS / 8)
			early = probe_rss_kib();
	}
	(void)pthread_join(t, NULL);
	tap_ok(bad == 0, "what a producer passes on arrives as it was");
	if (!tap_ok(probe_rss_kib() - early < 32 * KIB,
		"memory stays bounded when another thread frees"))
		tap_diag("%ld KiB more", probe_rss_kib() - early);
}

/* Blocks travel round a ring of threads that realloc them on their way. */
enum { RING = 4, RING_SLOTS = 256 };

struct parcel {
	unsigned bytes;
	unsigned char tag;
};

static struct parcel *ring[RING][RING_SLOTS];
static atomic_uint ring_head[RING];
static atomic_uint ring_tail[RING];
static struct flag ring_stop;
static atomic_ulong ring_bad;

static struct parcel *
parcel_move(struct parcel *p, uint64_t *rng)
{
	unsigned char *c = (unsigned char *)p;
	unsigned n = p->bytes;
	uint64_t r = tap_random(rng);
	unsigned to =
	    16 + (unsigned)((r >> 8) % ((r & 31) != 0 ? 3000 : 3000000));

	if (c[n - 1] != p->tag)
		atomic_fetch_add(&ring_bad, 1);
	c = p_realloc(p, to);
	p = (struct parcel *)(void *)c;
	if (p->bytes != n || (to >= n && c[n - 1] != p->tag))
		atomic_fetch_add(&ring_bad, 1);
	p->bytes = to;
	p->tag = (unsigned char)(r >> 40);
	c[to - 1] = p->tag;
	return p;
}

static void *
ring_thread(void *arg)
{
	intptr_t k = (intptr_t)arg;
	intptr_t next = (k + 1) % RING;
	uint64_t rng = tap.seed + (uint64_t)k;

	while (!flag_is_set(&ring_stop)) {
		unsigned h = atomic_load(&ring_head[k]);
		unsigned t = atomic_load(&ring_tail[next]);
		struct parcel *p;

		if (h == atomic_load(&ring_tail[k]) ||
		    t - atomic_load(&ring_head[next]) >= RING_SLOTS) {
			(void)sched_yield();
			continue;
		}
		p = ring[k][h % RING_SLOTS];
		atomic_store(&ring_head[k], h + 1);
		ring[next][t % RING_SLOTS] = parcel_move(p, &rng);
		atomic_store(&ring_tail[next], t + 1);
	}
	return NULL;
}

static void
test_ring(void)
{
	pthread_t t[RING];

	for (int k = 0; k < RING; k++)
		for (unsigned i = 0; i < RING_SLOTS / 4; i++) {
			struct parcel *p = p_calloc(1, 64);

			p->bytes = 64;
			ring[k][i] = p;
			atomic_store(&ring_tail[k], i + 1);
		}
	for (intptr_t k = 0; k < RING; k++)
		(void)pthread_create(&t[k], NULL, ring_thread, (void *)k);
	(void)usleep((useconds_t)(probe_seconds(2) * 1e6));
	flag_set(&ring_stop);
	for (int k = 0; k < RING; k++)
		(void)pthread_join(t[k], NULL);
	for (int k = 0; k < RING; k++)
		for (unsigned i = ring_head[k]; i != ring_tail[k]; i++)
			p_free(ring[k][i % RING_SLOTS]);
	tap_ok(atomic_load(&ring_bad) == 0,
	    "blocks that threads realloc and pass on keep their content");
}

/* Whoever frees first in its life, frees another's large blocks. */
static cpu_set_t any_cpu;

static void *
freeing_thread(void *arg)
{
	void **p = arg;

	(void)sched_setaffinity(0, sizeof any_cpu, &any_cpu);
	for (int i = 0; i < 16; i++)
		p_free(p[i]);
	return NULL;
}

/* From one CPU: each node that blocks are asked on keeps its own memory. */
static void
test_large_from_other(void)
{
	void *p[16];
	long early = 0;
	cpu_set_t here;

	CPU_ZERO(&here);
	CPU_SET((unsigned)sched_getcpu(), &here);
	if (sched_getaffinity(0, sizeof any_cpu, &any_cpu) != 0 ||
	    sched_setaffinity(0, sizeof here, &here) != 0)
		tap_bail("sched_setaffinity: errno %d", errno);
	for (int k = 0; k < 40; k++) {
		pthread_t t;

		for (size_t i = 0; i < 16; i++) {
			size_t n = (1 + i % 8) * MIB + (size_t)k * 8192;

			p[i] = p_malloc(n);
			memset(p[i], 1, n);
		}
		(void)pthread_create(&t, NULL, freeing_thread, p);
		(void)pthread_join(t, NULL);
		if (k == 5)
			early = probe_rss_kib();
	}
	(void)sched_setaffinity(0, sizeof any_cpu, &any_cpu);
	tap_ok(probe_rss_kib() - early < 48 * KIB,
	    "large blocks that another thread frees are reused");
}

int
main(int argc, char **argv)
{
	(void)argc;
	tap_begin(argv);
	tap_guard(100);
	test_last_round();
	test_key_destructors();
	test_orphans();
	test_producer_consumer();
	test_ring();
	test_large_from_other();
	return tap_end();
}
