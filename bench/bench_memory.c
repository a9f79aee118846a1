/* SPDX-License-Identifier: BSD-2-Clause */
/* bench_memory.c - large heaps: a list's layout, what stays resident. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"

struct node {
	struct node *next;
	unsigned char *key;
	unsigned char *value;
};

static void
report_build(struct bench_result *ret, struct bench_span span, size_t ops)
{
	bench_extra(ret, ",\"build_ns_per_op\":%.3f",
	    (double)span.wall_ns / (double)ops);
}

/*
 * count nodes, each with a key and a value allocated in turn; the measured
 * loop follows the list and reads a byte of every key and value. What it costs
 * tells how near to each other the allocator put the three.
 */
static int
walk_run(const struct bench_params *params, struct bench_result *ret)
{
	const uint16_t *keys = bench_table_sizes("12-36", 0, 21);
	const uint16_t *values = bench_table_sizes("16-64", 0, 22);
	struct node head = {NULL, NULL, NULL};
	struct node *last = &head;
	struct bench_span span = bench_span_begin();
	size_t at = 0;
	size_t sum = 0;

	for (size_t i = 0; i < params->count; i++) {
		struct node *n = malloc(sizeof(*n));

		bench_keep(n);
		n->key = malloc(keys[at]);
		bench_use(n->key);
		n->value = malloc(values[at]);
		bench_use(n->value);
		n->next = NULL;
		last->next = n;
		last = n;
		at = at + 1 == BENCH_SIZES ? 0 : at + 1;
	}
	report_build(ret, bench_span_end(span), 3 * params->count);
	span = bench_span_begin();
	for (unsigned round = 0; round < 2; round++)
		for (struct node *n = head.next; n != NULL; n = n->next)
			sum += (size_t)n->key[0] + n->value[0];
	bench_set(ret, bench_span_end(span), 2 * params->count, 1);
	bench_extra(ret, ",\"checksum\":%d", (int)(sum & 1));
	return 0;
}

struct heap {
	void **slots;
	uint16_t *lengths; /* of each slot's object */
	size_t n;
	unsigned bits; /* n is 1 << bits */
	size_t live_bytes;
	uint64_t ops;
};

/* The i-th of n = 1 << bits numbers in a fixed random order. */
static size_t
shuffled(size_t i, unsigned bits)
{
	const size_t mask = ((size_t)1 << bits) - 1;

	i = (i * 0x9e3779b97f4a7c15U) & mask;
	i ^= i >> (bits / 2);
	i = (i * 0xd6e8feb86659fd93U) & mask;
	i ^= i >> (bits / 2 + 1);
	return (i * 0xa0761d6478bd642fU) & mask;
}

static void
heap_init(struct heap *h, size_t count)
{
	while (((size_t)2 << h->bits) <= count)
		h->bits++;
	h->n = (size_t)1 << h->bits;
	h->slots = bench_map(h->n * sizeof(*h->slots));
	h->lengths = bench_map(h->n * sizeof(*h->lengths));
}

/* Both ends are written, so that what is live is resident too. */
static void
heap_fill_slot(struct heap *h, size_t i, uint16_t size)
{
	char *p = malloc(size);

	bench_use(p);
	p[size - 1] = 1;
	h->slots[i] = p;
	h->lengths[i] = size;
	h->live_bytes += size;
	h->ops++;
}

static void
heap_free_slot(struct heap *h, size_t i)
{
	free(h->slots[i]);
	h->slots[i] = NULL;
	h->live_bytes -= h->lengths[i];
	h->ops++;
}

/* What is resident beside the harness's tables and the bare process. */
static void
report_resident(struct bench_result *ret, const struct heap *h,
    const struct bench_memory_use *base, const char *name)
{
	struct bench_memory_use now;
	size_t resident_kb;

	if (bench_memory_read(0, false, &now) != 0)
		bench_die("cannot read /proc/self/status");
	resident_kb = now.rss_kb + now.pte_kb - base->rss_kb - base->pte_kb;
	bench_extra(ret, ",\"%s_kb\":%zu,\"%s_live_kb\":%zu,\"%s_ratio\":%.4f",
	    name, resident_kb, name, h->live_bytes / 1024, name,
	    (double)resident_kb * 1024.0 / (double)h->live_bytes);
}

/*
 * peak: fill count objects, free 95 % in random order, wait a second.
 * shift: fill sizes of 100 to 2000 bytes, free two thirds in random order,
 * refill with another distribution up to the live bytes there were, wait a
 * second. Both tell resident over live bytes (as requested) and the cost of an
 * operation without the wait.
 */
static int
resident_run(const struct bench_params *params, struct bench_result *ret)
{
	bool shift = params->mode != NULL && strcmp(params->mode, "shift") == 0;
	const uint16_t *first = shift ? bench_table_sizes("100-2000", 0, 31)
				      : bench_table_sizes("small", 0, 32);
	const uint16_t *second = bench_table_sizes(params->dist, 64, 33);
	struct heap h = {0};
	struct bench_memory_use base;
	struct bench_span span;
	size_t n_free;
	size_t full;
	size_t at = 0;

	heap_init(&h, params->count);
	n_free = shift ? h.n / 3 * 2 : h.n / 100 * 95;
	if (bench_memory_read(0, false, &base) != 0)
		bench_die("cannot read /proc/self/status");
	span = bench_span_begin();
	for (size_t i = 0; i < h.n; i++)
		heap_fill_slot(&h, i, first[i % BENCH_SIZES]);
	full = h.live_bytes;
	report_resident(ret, &h, &base, "full");
	for (size_t i = 0; i < n_free; i++)
		heap_free_slot(&h, shuffled(i, h.bits));
	/*
	 * The slots emptied are filled again from the first; a smaller size
	 * needs more slots than there are, so the others of a slot hang on
	 * to it as a chain through their first word.
	 */
	while (shift && h.live_bytes < full) {
		size_t i = shuffled(at % n_free, h.bits);
		void *before = h.slots[i];

		heap_fill_slot(&h, i, second[at % BENCH_SIZES]);
		*(void **)h.slots[i] = before;
		at++;
	}
	bench_set(ret, bench_span_end(span), h.ops, 1);
	bench_sleep_ms(1000);
	report_resident(ret, &h, &base, "after");
	return 0;
}

const struct bench_workload bench_memory[] = {
    {"walk", walk_run, "list of count nodes, keys and values"},
    {"resident", resident_run,
	"resident/live after mode=peak or mode=shift (count, dist)"},
    {"fork", bench_fork_run, "count idle children (mode=idle, busy)"},
    {"lives", bench_lives_run,
	"resident when count short-lived are gone (mode=hints)"},
    {"hint", bench_hint_run,
	"a pair of malloc and free (mode=short, long, near, at_least)"},
    {NULL, NULL, NULL},
};
