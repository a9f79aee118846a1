/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * threads.c - a million short threads leave nothing behind.
 *
 * A few spawners create and join threads that live for a few operations: each
 * allocates, frees blocks of threads long gone, and dies.  Resident memory
 * must not follow the number of threads.
 */
#include <pthread.h>

#include "ledger.h"
#include "rig.h"

enum {
	N_SPAWNERS = 4,
	N_ENTRIES = 4096,
	OPS = 24,
	SHORT_TOTAL = 10000,
	LONG_TOTAL = 1000000,
	GROWTH_BYTES = 8 << 20,
	LEAK_BYTES = 8192
};

static struct entry ledger[N_ENTRIES];
static _Atomic uint32_t n_threads;
static uint32_t total;

static void *
short_life(void *arg)
{
	uint32_t me = (uint32_t)(uintptr_t)arg;
	uint64_t random = rig.seed * 1000003 + me;

	for (int i = 0; i < OPS; i++) {
		struct entry *e = &ledger[rig_below(&random, N_ENTRIES)];
		size_t size = (size_t)16 << rig_below(&random, 9);

		if (entry_claim(e, ENTRY_FULL, me))
			entry_drain(e);
		else if (entry_claim(e, ENTRY_EMPTY, me))
			entry_fill(e, size, BY_MALLOC, &random);
	}
	return NULL;
}

static void *
spawner(void *arg)
{
	uint32_t me;

	while ((me = atomic_fetch_add(&n_threads, 1)) < total) {
		pthread_t t;

		if (pthread_create(&t, NULL, short_life,
			(void *)(uintptr_t)(me % (1 << 29))) != 0)
			rig_fail_now("thread %u could not start", me);
		(void)pthread_join(t, NULL);
	}
	return arg;
}

int
main(int argc, char **argv)
{
	pthread_t t[N_SPAWNERS];
	uint64_t limit;
	size_t in_use;
	size_t early = 0;
	size_t late;
	ptrdiff_t leak;

	rig_start(argc, argv, 30);
	total = rig.is_long ? LONG_TOTAL : SHORT_TOTAL;
	in_use = rig_in_use_bytes();
	for (int i = 0; i < N_SPAWNERS; i++)
		if (pthread_create(&t[i], NULL, spawner, NULL) != 0)
			rig_fail_now("no thread");
	limit = rig_now_ns() + (uint64_t)(rig.seconds * 20e9);
	while (atomic_load(&n_threads) < total) {
		if (early == 0 && atomic_load(&n_threads) > total / 10)
			early = rig_rss_bytes();
		if (rig_now_ns() > limit)
			rig_stalled("only %u threads lived and died",
			    atomic_load(&n_threads));
		rig_sleep_us(1000);
	}
	for (int i = 0; i < N_SPAWNERS; i++)
		(void)pthread_join(t[i], NULL);
	late = rig_rss_bytes();
	rig_ok(true, "%u threads lived and died", total);
	rig_ok(late < early + GROWTH_BYTES,
	    "resident memory: %zu KiB after a tenth, %zu KiB at the end",
	    early >> 10, late >> 10);
	(void)ledger_drain(ledger, N_ENTRIES, 1);
	leak = (ptrdiff_t)(rig_in_use_bytes() - in_use);
	rig_ok(leak < LEAK_BYTES, "%td bytes in use after the last free", leak);
	return rig_end();
}
