/* SPDX-License-Identifier: BSD-2-Clause */
/* flow_patterns.c - who allocates, who frees, and when that changes. */
#include "flow.h"
#include "rig.h"

enum {
	N_ENTRIES = 1 << 15,      /* of a mixture, more than CHUTE_BYTES */
	N_MANY_ENTRIES = 1 << 20, /* of 16 bytes: 16 MiB */
	N_PRODUCERS = 32,         /* that go idle, one after the other */
	N_SPAWNERS = 4,
	SHORT_STEPS = 400 /* of a thread's life */
};

struct chute flow_chutes[MAX_CHUTES];
struct hand flow_hands[MAX_HANDS];
unsigned n_flow_hands;

static bool
produce_step(struct hand *h)
{
	return flow_produce(h, h->out);
}

static bool
consume_step(struct hand *h)
{
	return flow_consume(h, h->in);
}

struct hand *
flow_add_hand(bool (*step)(struct hand *), uint32_t cpu, struct chute *in,
    struct chute *out)
{
	struct hand *h = &flow_hands[n_flow_hands];

	h->me = ++n_flow_hands;
	h->random = rig.seed * 1000 + h->me;
	h->step = step;
	h->in = in;
	h->out = out;
	atomic_store(&h->cpu, cpu);
	hand_start(h);
	return h;
}

/* Producers on the even CPUs, consumers on the odd ones. */
static void
start_fan(size_t n_entries, unsigned n_producers, unsigned n_consumers)
{
	struct chute *c = &flow_chutes[0];

	chute_create(c, n_entries, CHUTE_BYTES);
	for (unsigned i = 0; i < n_producers; i++)
		flow_add_hand(produce_step, 2 * i, NULL, c);
	for (unsigned i = 0; i < n_consumers; i++)
		flow_add_hand(consume_step, 2 * i + 1, c, NULL);
}

static void
start_one(void)
{
	start_fan(N_ENTRIES, 1, 1);
}

static void
start_fan_in(void)
{
	start_fan(N_ENTRIES, 4, 1);
}

static void
start_fan_out(void)
{
	start_fan(N_ENTRIES, 1, 4);
}

static void
start_shift(void)
{
	start_fan(N_MANY_ENTRIES, 1, 1);
}

static void
start_pipeline(void)
{
	for (unsigned i = 0; i < 3; i++)
		chute_create(&flow_chutes[i], N_ENTRIES, CHUTE_BYTES / 3);
	flow_add_hand(produce_step, 0, NULL, &flow_chutes[0]);
	flow_add_hand(flow_pass_on, 1, &flow_chutes[0], &flow_chutes[1]);
	flow_add_hand(flow_pass_on, 2, &flow_chutes[1], &flow_chutes[2]);
	flow_add_hand(consume_step, 3, &flow_chutes[2], NULL);
}

/* Half goes to the thread that only frees, half through a chute of its own. */
static bool
share_step(struct hand *h)
{
	if (rig_below(&h->random, 2) == 0)
		return flow_produce(h, h->out);
	if (flow_consume(h, h->in))
		return true;
	return flow_produce(h, h->in);
}

static void
start_freer(void)
{
	struct chute *c = &flow_chutes[0];

	chute_create(c, N_ENTRIES, CHUTE_BYTES / 2);
	for (unsigned i = 1; i < 4; i++) {
		chute_create(&flow_chutes[i], N_ENTRIES / 8, CHUTE_BYTES / 8);
		flow_add_hand(share_step, 2 * i, &flow_chutes[i], c);
	}
	flow_add_hand(consume_step, 1, c, NULL);
}

static bool
swap_step(struct hand *h)
{
	uint32_t phase = atomic_load(&flow.phase);

	return (phase + h->me) % 2 == 0 ? flow_produce(h, h->out)
					: flow_consume(h, h->in);
}

static void
start_swap(void)
{
	struct chute *c = &flow_chutes[0];

	chute_create(c, N_ENTRIES, CHUTE_BYTES);
	for (unsigned i = 0; i < 2; i++)
		flow_add_hand(swap_step, i, c, c);
}

/* The consumer comes first; producers follow each other. */
static void
start_idle(void)
{
	chute_create(&flow_chutes[0], N_ENTRIES, CHUTE_BYTES);
	flow_add_hand(consume_step, 1, &flow_chutes[0], NULL);
	flow_add_hand(produce_step, 0, NULL, &flow_chutes[0]);
}

/* The last producer idles for ever; the next is on another CPU. */
static void
tick_idle(double part)
{
	unsigned n = n_flow_hands - 1;

	if (n >= N_PRODUCERS || part * N_PRODUCERS < n)
		return;
	atomic_store(&flow_hands[n].idles, 1);
	atomic_store(&flow_hands[0].cpu, n + 1);
	flow_add_hand(produce_step, n, NULL, &flow_chutes[0]);
}

static bool
either_step(struct hand *h)
{
	bool frees = rig_below(&h->random, 2) == 0;

	if (atomic_load(&flow.is_tidal) != 0)
		frees = atomic_load(&h->in->ebbs) != 0;
	return frees ? flow_consume(h, h->in) : flow_produce(h, h->out);
}

static void *
short_main(void *arg)
{
	hand_work(arg, SHORT_STEPS);
	return NULL;
}

/* A thread's life is one step of its spawner. */
static bool
spawn_step(struct hand *h)
{
	struct hand child = {.me = h->me + MAX_HANDS,
	    .random = rig_random(&h->random),
	    .step = either_step,
	    .in = h->in,
	    .out = h->out};

	atomic_store(&child.cpu, (uint32_t)rig_below(&h->random, 1024));
	if (pthread_create(&child.thread, NULL, short_main, &child) != 0)
		rig_fail_now("no thread");
	(void)pthread_join(child.thread, NULL);
	atomic_fetch_add(&h->n_freed, atomic_load(&child.n_freed));
	atomic_fetch_add(&flow.n_threads, 1);
	return true;
}

static void
start_threads(void)
{
	struct chute *c = &flow_chutes[0];

	chute_create(c, N_ENTRIES, CHUTE_BYTES);
	for (unsigned i = 0; i < N_SPAWNERS; i++)
		flow_add_hand(spawn_step, i, c, c);
}

const struct pattern flow_patterns[] = {
    {.name = "parked",
	.about = "a home that grows calls back what idlers hold",
	.start = flow_parked_start,
	.tick = flow_parked_tick,
	.judge = flow_parked_judge,
	.is_content = flow_parked_is_content,
	.is_fixed = true,
	.is_light = true},
    {.name = "one", .about = "1 producer, 1 consumer", .start = start_one},
    {.name = "fan_in",
	.about = "4 producers, 1 consumer",
	.start = start_fan_in},
    {.name = "fan_out",
	.about = "1 producer, 4 consumers",
	.start = start_fan_out},
    {.name = "pipeline", .about = "4 stages", .start = start_pipeline},
    {.name = "freer",
	.about = "3 that do both, 1 that only frees",
	.start = start_freer},
    {.name = "swap",
	.about = "roles that swap",
	.start = start_swap,
	.swaps = true},
    {.name = "idle",
	.about = "producers that idle for ever",
	.start = start_idle,
	.tick = tick_idle},
    {.name = "threads",
	.about = "short threads that free what others allocated",
	.start = start_threads},
    {.name = "shift",
	.about = "all of one size, then all of another",
	.start = start_shift,
	.shifts = true},
};

const unsigned n_flow_patterns =
    sizeof(flow_patterns) / sizeof(flow_patterns[0]);
