/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/ctl/bleed.h"

/* Objects below which nothing is said. */
#define MIN_OBJECTS 1024
/* And the part of what its rows were refilled with, one in so many. */
#define MIN_SHARE 16
/* Objects from which on a small cache is worth a word: bursts are common. */
#define MIN_TURNED 65536
/* A ring by which one in ten does not come back is full, in percent. */
#define FULL_PERCENT 10

static uint64_t
plus(uint64_t a, uint64_t b)
{
	return a + b >= a ? a + b : UINT64_MAX;
}

static uint64_t
smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

unsigned
eddy_bleed_percent(uint64_t part, uint64_t whole)
{
	if (whole == 0)
		return 0;
	if (part >= whole)
		return 100;
	if (part <= UINT64_MAX / 100)
		return (unsigned)(part * 100 / whole);
	/* Both are large: what is cut off does not show. */
	return (unsigned)smaller(part / (whole / 100), 99);
}

uint64_t
eddy_bleed_thousandths(uint64_t a, uint64_t b)
{
	uint64_t rest;

	if (b == 0)
		return 0;
	if (a / b > UINT64_MAX / 1000)
		return UINT64_MAX;
	rest = a % b;
	return plus(a / b * 1000,
	    rest <= UINT64_MAX / 1000 ? rest * 1000 / b : rest / (b / 1000));
}

/* ------------------------------------------------------------------ */

void
eddy_bleed_begin(struct eddy_bleed *b, uint32_t size, uint32_t batch,
    uint32_t ring, uint64_t waiting)
{
	*b = (struct eddy_bleed){
	    .size = size, .batch = batch, .ring = ring, .waiting = waiting};
}

/* n more, on this CPU; says whether it is the CPU with the most. */
static bool
count(uint64_t *sum, struct eddy_bleed_end *most,
    const struct eddy_bleed_cpu *cpu, uint64_t n)
{
	*sum = plus(*sum, n);
	if (n <= most->n)
		return false;
	most->who = *cpu;
	most->n = n;
	return true;
}

void
eddy_bleed_add(struct eddy_bleed *b, const struct eddy_bleed_cpu *cpu,
    const struct eddy_bleed_flow *flow)
{
	uint64_t turned = smaller(flow->in, flow->out);

	b->in = plus(b->in, flow->in);
	b->back = plus(b->back, flow->back);
	b->out = plus(b->out, flow->out);
	(void)count(&b->away, &b->sender, cpu, flow->away);
	(void)count(&b->wanted, &b->source, cpu, flow->in - turned);
	(void)count(&b->left, &b->sink, cpu, flow->out - turned);
	if (count(&b->turned, &b->turner, cpu, turned))
		b->cut = flow->cut;
}

/* How what is sent travels. */
static void
judge_way(struct eddy_bleed_finding *f, const struct eddy_bleed *b)
{
	uint64_t sent = plus(b->out, b->away);
	uint64_t by_ring = plus(b->back, b->waiting);
	uint64_t to_slabs = sent > by_ring ? sent - by_ring : 0;
	uint64_t alone;

	f->slab_percent = eddy_bleed_percent(to_slabs, sent);
	f->any_slabs = to_slabs != 0;
	f->full = f->slab_percent >= FULL_PERCENT;
	alone = f->n_objects / 100 * f->slab_percent;
	f->cost = plus(
	    alone, (f->n_objects - alone) / (b->batch != 0 ? b->batch : 1));
}

static bool
is_much(uint64_t n, uint64_t in)
{
	return n >= MIN_OBJECTS && n >= in / MIN_SHARE;
}

void
eddy_bleed_judge(const struct eddy_bleed *b, struct eddy_bleed_finding *ret)
{
	/* Memory that is only taken is growth, what is only left shrinks. */
	uint64_t passed = smaller(b->wanted, b->left);
	struct eddy_bleed_finding f = {.size = b->size,
	    .ring = b->ring,
	    .to_cpu = EDDY_BLEED_NOBODY,
	    .to_home = EDDY_BLEED_NOBODY};

	if (is_much(b->away, b->in) && b->away >= passed) {
		f.kind = EDDY_BLEED_AWAY;
		f.n_objects = b->away;
		f.n_largest = b->sender.n;
		f.from_cpu = b->sender.who.cpu;
		f.to_home = b->sender.who.other_home;
	} else if (is_much(passed, b->in)) {
		f.kind = EDDY_BLEED_PASSED;
		f.n_objects = passed;
		f.n_largest = smaller(b->source.n, b->sink.n);
		f.from_cpu = b->source.who.cpu;
		f.to_cpu = b->sink.who.cpu;
	} else if (b->turned >= MIN_TURNED) {
		f.kind = EDDY_BLEED_TIGHT;
		f.n_objects = b->turned;
		f.n_largest = b->turner.n;
		f.from_cpu = b->turner.who.cpu;
		f.cut = b->cut;
	}
	judge_way(&f, b);
	*ret = f;
}

static bool
is_worse(const struct eddy_bleed_finding *a, const struct eddy_bleed_finding *b)
{
	if (eddy_bleed_is(a) != eddy_bleed_is(b))
		return eddy_bleed_is(a);
	return b->kind == EDDY_BLEED_NONE || a->cost > b->cost;
}

void
eddy_bleed_rank(struct eddy_bleed_finding *worst, unsigned n,
    const struct eddy_bleed_finding *f)
{
	unsigned i = n;

	if (f->kind == EDDY_BLEED_NONE)
		return;
	for (; i > 0 && is_worse(f, &worst[i - 1]); i--)
		if (i < n)
			worst[i] = worst[i - 1];
	if (i < n)
		worst[i] = *f;
}

/* ------------------------------------------------------------------ */
/* Words */

const char *
eddy_bleed_kind_name(enum eddy_bleed_kind kind)
{
	return kind == EDDY_BLEED_AWAY     ? "away"
	       : kind == EDDY_BLEED_PASSED ? "passed"
	       : kind == EDDY_BLEED_TIGHT  ? "tight"
					   : "none";
}

static void
add_number(struct eddy_text *t, const char *before, uint64_t n)
{
	eddy_text_add(t, before);
	eddy_text_number(t, n, 0);
}

static void
say_what(struct eddy_text *t, const struct eddy_bleed_finding *f)
{
	add_number(t, "objects of ", f->size);
	if (f->kind == EDDY_BLEED_TIGHT) {
		add_number(t, " bytes come and go on CPU ", f->from_cpu);
		eddy_text_add(t, " in bursts that its cache is too small for");
	} else if (f->kind == EDDY_BLEED_PASSED) {
		add_number(t, " bytes flow from CPU ", f->from_cpu);
		add_number(t, ", which allocates, to CPU ", f->to_cpu);
		eddy_text_add(t, ", which frees");
	} else {
		add_number(t, " bytes flow from CPU ", f->from_cpu);
		if (f->to_home != EDDY_BLEED_NOBODY)
			add_number(t, " to home ", f->to_home);
		else
			eddy_text_add(t, " to other homes");
	}
	eddy_text_add(t, ": ");
	eddy_text_count(t, f->n_objects);
	if (f->kind == EDDY_BLEED_AWAY)
		eddy_text_add(t, " freed away from home");
	if (f->n_largest < f->n_objects) {
		eddy_text_add(t, ", ");
		eddy_text_count(t, f->n_largest);
		eddy_text_add(t, " of them there");
	}
}

static void
say_way(struct eddy_text *t, const struct eddy_bleed_finding *f)
{
	if (!f->any_slabs) {
		eddy_text_add(t, "all came back in batches by a ring");
		return;
	}
	if (f->slab_percent == 0) {
		eddy_text_add(t, "over 99 % came back in batches by a ring, "
				 "the rest");
	} else {
		add_number(t, "", 100 - f->slab_percent);
		add_number(
		    t, " % came back in batches by a ring, ", f->slab_percent);
		eddy_text_add(t, " %");
	}
	eddy_text_add(
	    t, f->full ? " found it full and went to slabs" : " went to slabs");
}

static void
advise(struct eddy_text *t, const struct eddy_bleed_finding *f,
    const struct eddy_bleed_world *w)
{
	if (f->full) {
		add_number(t,
		    "to change it, free fewer at a time than the ring holds, ",
		    f->ring);
		eddy_text_add(t, ", or free where you allocate");
		return;
	}
	if (f->kind == EDDY_BLEED_PASSED) {
		eddy_text_add(t,
		    "the ring is made for this; to save it, free on the CPU "
		    "that allocates");
		return;
	}
	eddy_text_add(t,
	    "to change it, free where you allocate, or pin both sides to CPUs "
	    "of one home");
	if (w->n_homes > 1)
		eddy_text_add(
		    t, w->one_node ? "; home:node makes one home of the node"
				   : "; numa:interleave makes one home of all, "
				     "its memory spread over the nodes");
}

static void
advise_size(struct eddy_text *t, const struct eddy_bleed_finding *f,
    const struct eddy_bleed_world *w)
{
	if (f->cut) {
		eddy_text_add(t, "to change it, raise cpu_cache_bytes, now ");
		eddy_text_human(t, w->cpu_cache_bytes);
	} else {
		eddy_text_add(t, "its row is as long as it can be; only "
				 "shorter bursts would change it");
	}
}

void
eddy_bleed_words(struct eddy_text *t, const struct eddy_bleed_finding *f,
    const struct eddy_bleed_world *w, const char *between)
{
	if (f->kind == EDDY_BLEED_NONE)
		return;
	say_what(t, f);
	eddy_text_add(t, between);
	say_way(t, f);
	eddy_text_add(t, between);
	if (f->kind == EDDY_BLEED_TIGHT)
		advise_size(t, f, w);
	else
		advise(t, f, w);
}
