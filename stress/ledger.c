/* SPDX-License-Identifier: BSD-2-Clause */
/* ledger.c - stamped blocks that change hands by CAS, and bursts of them. */
#include "ledger.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "rig.h"

enum {
	WHOLE = 512, /* up to here every byte is stamped */
	EDGE = 64,   /* above: this much at both ends, and a word a stride */
	WORD = sizeof(uint64_t),
	STRIDE = 4096,
	FAR_STRIDE = 65536 /* above 64 KiB */
};

static uint64_t
stamp_word(uint32_t key, size_t at)
{
	uint64_t x = ((uint64_t)key << 32 ^ at) * 0x9e3779b97f4a7c15;

	return x ^ x >> 29;
}

static _Noreturn void
spoilt(const struct entry *e, size_t at)
{
	rig_fail_now("block %p of %zu bytes spoilt at %zu", (void *)e->block,
	    e->size, at);
}

/* One word or the last bytes: written, or verified. */
static void
touch(const struct entry *e, size_t at, bool verify)
{
	uint64_t word = stamp_word(e->key, at);
	size_t n = e->size - at < WORD ? e->size - at : WORD;

	if (!verify)
		memcpy(e->block + at, &word, n);
	else if (memcmp(e->block + at, &word, n) != 0)
		spoilt(e, at);
}

static void
stamp(const struct entry *e, bool verify)
{
	size_t stride = e->size > FAR_STRIDE ? FAR_STRIDE : STRIDE;
	size_t head = e->size <= WHOLE ? e->size : EDGE;
	size_t at;

	for (at = 0; at < head; at += WORD)
		touch(e, at, verify);
	if (e->size <= WHOLE)
		return;
	for (at = stride; at < e->size; at += stride)
		touch(e, at, verify);
	for (at = (e->size - EDGE) & ~(size_t)(WORD - 1); at < e->size;
	     at += WORD)
		touch(e, at, verify);
}

static void
verify_zero(const struct entry *e)
{
	size_t step = e->size > FAR_STRIDE * 4 ? WHOLE : 1;

	for (size_t at = 0; at < e->size; at += step)
		if (e->block[at] != 0)
			rig_fail_now(
			    "calloc(%zu): byte %zu is not zero", e->size, at);
	if (e->size != 0 && e->block[e->size - 1] != 0)
		rig_fail_now("calloc(%zu): last byte is not zero", e->size);
}

bool
entry_claim(struct entry *e, uint32_t from, uint32_t me)
{
	uint32_t seen = from;

	if (atomic_load_explicit(&e->state, memory_order_relaxed) != from)
		return false;
	return atomic_compare_exchange_strong_explicit(&e->state, &seen,
	    ENTRY_BUSY | me << 2, memory_order_acquire, memory_order_relaxed);
}

bool
entry_held_by(const struct entry *e, uint32_t me)
{
	return atomic_load_explicit(&e->state, memory_order_acquire) ==
	       (ENTRY_BUSY | me << 2);
}

static void
publish(struct entry *e, uint32_t state)
{
	atomic_store_explicit(&e->state, state, memory_order_release);
}

void
entry_forget(struct entry *e)
{
	publish(e, ENTRY_EMPTY);
}

static unsigned char *
allocate(size_t size, enum how how, size_t align)
{
	switch (how) {
	case BY_CALLOC:
		return calloc(1, size);
	case BY_MEMALIGN:
		return memalign(align, size);
	default:
		return malloc(size);
	}
}

void
entry_fill(struct entry *e, size_t size, enum how how, uint64_t *random)
{
	size_t align = (size_t)16 << rig_below(random, 9);

	e->size = size;
	e->key = (uint32_t)rig_random(random);
	e->block = allocate(size, how, align);
	if (e->block == NULL)
		rig_fail_now("no memory for %zu bytes", size);
	if (how == BY_CALLOC)
		verify_zero(e);
	if (how == BY_MEMALIGN && ((uintptr_t)e->block & (align - 1)) != 0)
		rig_fail_now(
		    "memalign(%zu, %zu): %p", align, size, (void *)e->block);
	if (size >= 16 && ((uintptr_t)e->block & 15) != 0)
		rig_fail_now("malloc(%zu): %p", size, (void *)e->block);
	stamp(e, false);
	publish(e, ENTRY_FULL);
}

void
entry_drain(struct entry *e)
{
	stamp(e, true);
	free(e->block);
	e->block = NULL;
	publish(e, ENTRY_EMPTY);
}

void
entry_resize(struct entry *e, size_t size, uint64_t *random)
{
	size_t kept = e->size < size ? e->size : size;
	struct entry was = *e;
	unsigned char *block;

	stamp(e, true);
	block = realloc(e->block, size);
	if (block == NULL)
		rig_fail_now("no memory for realloc to %zu bytes", size);
	was.block = block;
	if (kept > EDGE)
		kept = EDGE;
	for (size_t at = 0; at + WORD <= kept; at += WORD)
		touch(&was, at, true);
	e->block = block;
	e->size = size;
	e->key = (uint32_t)rig_random(random);
	stamp(e, false);
	publish(e, ENTRY_FULL);
}

void
entry_release(struct entry *e)
{
	publish(e, ENTRY_FULL);
}

void
entry_move(struct entry *from, struct entry *to)
{
	stamp(from, true);
	to->key = from->key;
	to->size = from->size;
	to->block = from->block;
	from->block = NULL;
	publish(to, ENTRY_FULL);
	publish(from, ENTRY_EMPTY);
}

void
entry_verify(const struct entry *e)
{
	stamp(e, true);
}

size_t
ledger_drain(struct entry *e, size_t n, uint32_t me)
{
	size_t drained = 0;

	for (size_t i = 0; i < n; i++)
		if (entry_claim(&e[i], ENTRY_FULL, me)) {
			entry_drain(&e[i]);
			drained++;
		}
	return drained;
}

/* A class's part of the window holds twice its burst. */
static const struct {
	unsigned size;
	unsigned burst;
} drum_classes[] = {
    {16, 600},
    {64, 500},
    {200, 300},
    {1024, 200},
    {4000, 100},
    {14000, 40},
    {20000, 30},
    {65536, 16},
    {200000, 8},
    {1048576, 3},
    {3000000, 1},
};

enum { N_DRUM_CLASSES = sizeof(drum_classes) / sizeof(drum_classes[0]) };

unsigned
drum_class_count(void)
{
	return N_DRUM_CLASSES;
}

size_t
drum_class_size(unsigned class)
{
	return drum_classes[class].size;
}

unsigned
drum_class_burst(unsigned class)
{
	return drum_classes[class].burst;
}

static size_t
entries_before(unsigned class)
{
	size_t n = 0;

	for (unsigned c = 0; c < class; c++)
		n += 2 * (size_t)drum_classes[c].burst;
	return n;
}

size_t
drum_window_entries(void)
{
	return entries_before(N_DRUM_CLASSES);
}

size_t
drum_window_bytes(unsigned n_classes)
{
	size_t n = 0;

	for (unsigned c = 0; c < n_classes; c++)
		n += 2 * (size_t)drum_classes[c].burst * drum_classes[c].size;
	return n;
}

struct entry *
ledger_create(unsigned n_windows)
{
	size_t n = drum_window_entries() * n_windows * sizeof(struct entry);
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		rig_fail_now("no memory for the ledger");
	return p;
}

static void
count_op(struct drum *d)
{
	/* relaxed: a progress count, one writer */
	atomic_fetch_add_explicit(&d->n_ops, 1, memory_order_relaxed);
}

static struct entry *
part_of(const struct drum *d, unsigned window, unsigned class)
{
	return d->ledger + window * drum_window_entries() +
	       entries_before(class);
}

void
drum_burst(struct drum *d, unsigned class)
{
	unsigned burst = drum_classes[class].burst;
	unsigned n = 2 * burst;
	unsigned from = (unsigned)rig_below(&d->random, n);
	unsigned window = d->window;
	struct entry *part = part_of(d, window, class);

	for (unsigned i = 0; i < burst; i++) {
		struct entry *e = &part[(from + i) % n];

		if (entry_claim(e, ENTRY_FULL, d->me)) {
			entry_drain(e);
			count_op(d);
		}
		if (entry_claim(e, ENTRY_EMPTY, d->me)) {
			entry_fill(
			    e, drum_classes[class].size, BY_MALLOC, &d->random);
			count_op(d);
		}
	}
	if (rig_below(&d->random, 4) == 0) {
		window = (unsigned)rig_below(&d->random, d->n_windows);
		part = part_of(d, window, class);
	}
	from = (unsigned)rig_below(&d->random, n);
	for (unsigned i = 0; i < n; i++) {
		struct entry *e = &part[(from + i) % n];

		if (i < burst + burst / 2 &&
		    entry_claim(e, ENTRY_FULL, d->me)) {
			entry_drain(e);
			count_op(d);
		}
	}
}

void
drum_beat(struct drum *d)
{
	drum_burst(d, (unsigned)rig_below(&d->random, d->n_classes));
}
