/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/prof/records.h"

#include "lib/base/atomic.h"
#include "lib/prof/ground.h"

#define LINE     8  /* keys that are looked at together */
#define LG_FIRST 10 /* places of the first table, as a logarithm */
#define N_TABLES 30
#define MAGIC    0x9e3779b97f4a7c15

/* Places, and their keys apart, so that a look for a key is one cache line. */
struct table {
	/* Address of a block; 0: free.
	 * W: by CAS who puts; who takes.  R: any CPU.  O: TABLE-R2 ->
	 * TABLE-A2. */
	_Atomic uintptr_t *key;
	/* W, R: who holds the block. */
	struct eddy_record *record;
};

/*
 * Keys of each; records lie behind them.
 * W: who finds no place.  R: any CPU.  O: TABLE-R1 -> TABLE-A1.
 */
static _Atomic(_Atomic uintptr_t *) tables[N_TABLES];

static size_t
places(unsigned i)
{
	return (size_t)1 << (LG_FIRST + i);
}

static bool
find_table(unsigned i, struct table *ret)
{
	/* TABLE-A1: pairs with TABLE-R1. */
	ret->key = eddy_load_acquire(&tables[i]);
	if (ret->key == NULL)
		return false;
	ret->record = (struct eddy_record *)((uintptr_t)ret->key +
					     places(i) * sizeof(uintptr_t));
	return true;
}

/* Tables there are. */
static unsigned
n_tables(void)
{
	unsigned n = 0;

	/* relaxed: which ones; find_table acquires. */
	while (n < N_TABLES && eddy_load_relaxed(&tables[n]) != NULL)
		n++;
	return n;
}

static bool
add_table(unsigned i)
{
	size_t size =
	    places(i) * (sizeof(uintptr_t) + sizeof(struct eddy_record));
	_Atomic uintptr_t *none = NULL;
	_Atomic uintptr_t *fresh;

	if (i >= N_TABLES)
		return false;
	fresh = eddy_ground_map(size);
	if (fresh == NULL)
		return false;
	/* TABLE-R1: it is accessible.  TABLE-A1: or another's. */
	if (!eddy_cas_acq_rel(&tables[i], &none, fresh))
		eddy_ground_unmap(fresh, size);
	return true;
}

/* First of the places where a block's record may be. */
static size_t
line_of(unsigned i, const void *block)
{
	uint64_t x = (uint64_t)(uintptr_t)block * MAGIC;

	return (size_t)((x ^ x >> 32) * MAGIC >> (64 - LG_FIRST - i)) &
	       ~(size_t)(LINE - 1);
}

static bool
put_in(unsigned i, const void *block, const struct eddy_record *r)
{
	size_t at = line_of(i, block);
	struct table t;

	if (!find_table(i, &t))
		return false;
	for (size_t k = at; k < at + LINE; k++) {
		uintptr_t none = 0;

		/* relaxed: a guess that the CAS checks. */
		if (eddy_load_relaxed(&t.key[k]) != 0)
			continue;
		/* TABLE-A2: the one before has been read. */
		if (eddy_cas_acquire(&t.key[k], &none, (uintptr_t)block)) {
			t.record[k] = *r;
			return true;
		}
	}
	return false;
}

bool
eddy_records_put(const void *block, const struct eddy_record *r)
{
	unsigned n = n_tables();

	/* The largest has most room. */
	for (unsigned i = n; i-- > 0;)
		if (put_in(i, block, r))
			return true;
	/* The one that is made has room, or others have filled it by then. */
	for (unsigned tries = 0; tries < 4; tries++)
		if (!add_table(n + tries))
			return false;
		else if (put_in(n + tries, block, r))
			return true;
	return false;
}

bool
eddy_records_take(const void *block, struct eddy_record *ret)
{
	struct table t;

	for (unsigned i = n_tables(); i-- > 0;) {
		size_t at = line_of(i, block);

		if (!find_table(i, &t))
			continue;
		for (size_t k = at; k < at + LINE; k++) {
			/* relaxed: it came with the block. */
			if (eddy_load_relaxed(&t.key[k]) != (uintptr_t)block)
				continue;
			*ret = t.record[k];
			/* TABLE-R2: the record has been read. */
			eddy_store_release(&t.key[k], 0);
			return true;
		}
	}
	return false;
}

void
eddy_records_sweep(bool (*is_wanted)(void *arg, const void *block),
    void (*take)(void *arg, const void *block, const struct eddy_record *r),
    void *arg)
{
	struct table t;

	for (unsigned i = n_tables(); i-- > 0;) {
		if (!find_table(i, &t))
			continue;
		for (size_t k = 0; k < places(i); k++) {
			/* relaxed: it came with the block. */
			void *p = (void *)eddy_load_relaxed(&t.key[k]);
			struct eddy_record r;

			if (p == NULL || !is_wanted(arg, p))
				continue;
			r = t.record[k];
			/* TABLE-R2: the record has been read. */
			eddy_store_release(&t.key[k], 0);
			take(arg, p, &r);
		}
	}
}
