/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * print_flows.c - who frees what others allocate, for people and for programs.
 *
 * Text keeps to a page: of many CPUs the busiest are shown.
 */
#include "lib/base/chars.h"
#include "lib/ctl/print.h"

#define MAX_SHOWN 16 /* lines a table */
#define MAX_WORST 5
#define MAX_HOMES 8 /* columns */

/* The heaviest entries of a table, found in one pass. */
struct entry {
	uint64_t weight;
	uint32_t cpu;
	uint32_t row;
};

struct table {
	struct entry top[MAX_SHOWN];
	uint64_t n; /* entries seen */
};

static bool
comes_first(const struct entry *a, const struct entry *b)
{
	return a->cpu != b->cpu ? a->cpu < b->cpu : a->row < b->row;
}

static void
offer(struct table *t, uint64_t weight, uint32_t cpu, uint32_t row)
{
	struct entry e = {.weight = weight, .cpu = cpu, .row = row};
	unsigned i = t->n < MAX_SHOWN ? (unsigned)t->n : MAX_SHOWN;

	t->n++;
	for (; i > 0 && t->top[i - 1].weight < weight; i--)
		if (i < MAX_SHOWN)
			t->top[i] = t->top[i - 1];
	if (i < MAX_SHOWN)
		t->top[i] = e;
}

/* By CPU and row; returns how many there are. */
static unsigned
sort(struct table *t)
{
	unsigned n = t->n < MAX_SHOWN ? (unsigned)t->n : MAX_SHOWN;

	for (unsigned i = 1; i < n; i++) {
		struct entry e = t->top[i];
		unsigned k = i;

		for (; k > 0 && comes_first(&e, &t->top[k - 1]); k--)
			t->top[k] = t->top[k - 1];
		t->top[k] = e;
	}
	return n;
}

/* The sum over CPUs, and the CPUs with the most traffic. */
static void
collect(struct eddy_print *p, struct table *ret, struct eddy_stats_traffic *sum)
{
	struct eddy_stats_traffic t;

	*ret = (struct table){.n = 0};
	*sum = (struct eddy_stats_traffic){.home = 0};
	for (unsigned cpu = 0; p->h != NULL && cpu < p->h->n_slots; cpu++) {
		uint64_t weight;

		if (!eddy_stats_traffic(p->h, cpu, &t))
			continue;
		eddy_stats_add_traffic(sum, &t);
		weight = t.in + t.out + t.away + t.to_slabs;
		if (weight != 0)
			offer(ret, weight, cpu, 0);
	}
}

/* ------------------------------------------------------------------ */
/* Text */

static void
add_thousandths(struct eddy_text *t, uint64_t v)
{
	static const char *const zeros[] = {"00", "0", ""};
	uint64_t rest = v % 1000;

	eddy_text_number(t, v / 1000, 0);
	eddy_text_add(t, ".");
	eddy_text_add(t, zeros[rest < 10 ? 0 : rest < 100 ? 1 : 2]);
	eddy_text_number(t, rest, 0);
}

static void
add_net(struct eddy_text *t, uint64_t in, uint64_t out)
{
	char digits[EDDY_DIGITS_MAX + 2];
	char *s = digits + sizeof(digits) - 1;

	*s = '\0';
	s = eddy_digits(s, in >= out ? in - out : out - in);
	if (in != out)
		*--s = in > out ? '+' : '-';
	eddy_text_right(t, s, 12);
}

static void
text_sums(struct eddy_text *t, const struct eddy_stats_traffic *sum)
{
	uint64_t sent = sum->out + sum->away;

	eddy_text_add(t, "flows between CPUs: objects sent ");
	eddy_text_number(t, sent, 0);
	eddy_text_add(t, ", of these away from home ");
	eddy_text_number(t, sum->away, 0);
	eddy_text_add(t, "\nrings: batches put ");
	eddy_text_number(t, sum->ring_puts, 0);
	eddy_text_add(t, ", of these spilled ");
	eddy_text_number(t, sum->ring_spills, 0);
	eddy_text_add(t, ", taken ");
	eddy_text_number(t, sum->ring_takes, 0);
	eddy_text_add(t, "; objects to slabs ");
	eddy_text_number(t, sum->to_slabs, 0);
	eddy_text_add(t, "\natomic read-modify-writes ");
	eddy_text_number(t, sum->rmws, 0);
	if (sent != 0) {
		eddy_text_add(t, ", an object ");
		add_thousandths(t, eddy_bleed_thousandths(sum->rmws, sent));
	}
	eddy_text_add(t, "\n");
}

static void
say_more(struct eddy_text *t, const struct table *top)
{
	if (top->n <= MAX_SHOWN)
		return;
	eddy_text_number(t, top->n - MAX_SHOWN, 8);
	eddy_text_add(t, " more with less\n");
}

/* Net flow by CPU and class. */
static void
text_classes(struct eddy_print *p)
{
	static const char *const heads[] = {
	    "cpu", "size", "in", "out", "in - out", "away"};
	struct eddy_text *t = &p->text;
	struct table top = {.n = 0};
	struct eddy_stats_traffic unused;
	unsigned n;

	for (unsigned cpu = 0; cpu < p->h->n_slots; cpu++)
		for (unsigned row = 1; row < EDDY_N_ROWS; row++) {
			struct eddy_bleed_flow f;

			if (!eddy_stats_traffic(p->h, cpu, &unused))
				break;
			f = eddy_stats_flow(p->h, cpu, row);
			if ((f.in | f.out | f.away) != 0)
				offer(&top,
				    (f.in > f.out ? f.in - f.out
						  : f.out - f.in) +
					f.away,
				    cpu, row);
		}
	n = sort(&top);
	eddy_print_heads(t, heads, sizeof(heads) / sizeof(heads[0]));
	for (unsigned i = 0; i < n; i++) {
		struct eddy_bleed_flow f =
		    eddy_stats_flow(p->h, top.top[i].cpu, top.top[i].row);

		eddy_text_number(t, top.top[i].cpu, 8);
		eddy_text_number(t, eddy_row_size(top.top[i].row), 12);
		eddy_text_number(t, f.in, 12);
		eddy_text_number(t, f.out, 12);
		add_net(t, f.in, f.out);
		eddy_text_number(t, f.away, 12);
		eddy_text_add(t, "\n");
	}
	say_more(t, &top);
}

static void
text_cpus(struct eddy_print *p, const struct table *cpus, unsigned n)
{
	static const char *const heads[] = {"cpu", "home", "ring puts",
	    "spills", "ring takes", "to slabs", "rmws"};
	struct eddy_text *t = &p->text;

	eddy_print_heads(t, heads, sizeof(heads) / sizeof(heads[0]));
	for (unsigned i = 0; i < n; i++) {
		struct eddy_stats_traffic s;

		if (!eddy_stats_traffic(p->h, cpus->top[i].cpu, &s))
			continue;
		eddy_text_number(t, cpus->top[i].cpu, 8);
		eddy_text_number(t, s.home, 12);
		eddy_text_number(t, s.ring_puts, 12);
		eddy_text_number(t, s.ring_spills, 12);
		eddy_text_number(t, s.ring_takes, 12);
		eddy_text_number(t, s.to_slabs, 12);
		eddy_text_number(t, s.rmws, 12);
		eddy_text_add(t, "\n");
	}
	say_more(t, cpus);
}

/* One CPU: each home that it sent to, the first ones of very many. */
static void
matrix_list(struct eddy_print *p, uint32_t cpu)
{
	struct eddy_text *t = &p->text;
	unsigned n = 0;

	for (uint32_t i = 0; i < p->h->n_homes; i++) {
		uint64_t v = eddy_stats_to_home(p->h, cpu, i);

		if (v == 0)
			continue;
		if (n++ == MAX_HOMES) {
			eddy_text_add(t, ", ...");
			break;
		}
		eddy_text_add(t, n == 1 ? "  home " : ", home ");
		eddy_text_number(t, i, 0);
		eddy_text_add(t, ": ");
		eddy_text_number(t, v, 0);
	}
	if (n == 0)
		eddy_text_add(t, "  none");
}

/* Objects sent: freeing CPU by home. */
static void
text_matrix(struct eddy_print *p, const struct table *cpus, unsigned n)
{
	struct eddy_text *t = &p->text;
	uint32_t n_homes = p->h->n_homes;

	eddy_text_add(t, "objects sent to homes\n");
	if (n_homes <= MAX_HOMES) {
		eddy_text_right(t, "cpu", 8);
		for (uint32_t i = 0; i < n_homes; i++) {
			eddy_text_right(t, "home ", 11);
			eddy_text_number(t, i, 0);
		}
		eddy_text_add(t, "\n");
	}
	for (unsigned i = 0; i < n; i++) {
		uint32_t cpu = cpus->top[i].cpu;

		eddy_text_number(t, cpu, 8);
		for (uint32_t k = 0; n_homes <= MAX_HOMES && k < n_homes; k++)
			eddy_text_number(
			    t, eddy_stats_to_home(p->h, cpu, k), 12);
		if (n_homes > MAX_HOMES)
			matrix_list(p, cpu);
		eddy_text_add(t, "\n");
	}
	say_more(t, cpus);
}

static void
text_worst(struct eddy_print *p)
{
	struct eddy_text *t = &p->text;
	struct eddy_bleed_finding worst[MAX_WORST];
	struct eddy_bleed_world world = eddy_stats_world(p->h);

	eddy_stats_bleeding(p->h, worst, MAX_WORST);
	if (!eddy_bleed_is(&worst[0]))
		eddy_text_add(t, "nothing bleeds\n");
	else
		eddy_text_add(t, "bleeding, the worst classes first\n");
	for (unsigned i = 0; i < MAX_WORST && worst[i].kind != EDDY_BLEED_NONE;
	     i++) {
		eddy_text_add(t, "  ");
		eddy_bleed_words(t, &worst[i], &world, "\n    ");
		eddy_text_add(t, "\n");
	}
}

void
eddy_print_flows_text(struct eddy_print *p)
{
	struct table cpus;
	struct eddy_stats_traffic sum;
	unsigned n;

	if (p->h == NULL)
		return;
	if (p->st.mode != EDDY_STATS_RSEQ) {
		eddy_text_add(&p->text,
		    p->st.mode == EDDY_STATS_NONE
			? "nothing is cached, and so nothing bleeds\n"
			: "flows between CPUs are not told in mode claim\n");
		return;
	}
	collect(p, &cpus, &sum);
	n = sort(&cpus);
	if (sum.out + sum.away + sum.to_slabs != 0)
		text_sums(&p->text, &sum);
	if (!p->no_arenas && sum.out + sum.away != 0) {
		text_classes(p);
		text_cpus(p, &cpus, n);
		if (p->h->n_homes > 1)
			text_matrix(p, &cpus, n);
	}
	text_worst(p);
}

/* ------------------------------------------------------------------ */
/* JSON */

static void
json_traffic(struct eddy_text *t, const struct eddy_stats_traffic *s)
{
	eddy_print_number(t, ",", "in", s->in);
	eddy_print_number(t, ",", "back", s->back);
	eddy_print_number(t, ",", "out", s->out);
	eddy_print_number(t, ",", "away", s->away);
	eddy_print_number(t, ",", "to_slabs", s->to_slabs);
	eddy_print_number(t, ",", "ring_puts", s->ring_puts);
	eddy_print_number(t, ",", "ring_takes", s->ring_takes);
	eddy_print_number(t, ",", "ring_spills", s->ring_spills);
	eddy_print_number(t, ",", "rmws", s->rmws);
}

static void
json_cpu(struct eddy_print *p, unsigned cpu, const char *before,
    const struct eddy_stats_traffic *s)
{
	struct eddy_text *t = &p->text;
	const char *next = "{";

	eddy_print_number(t, before, "cpu", cpu);
	eddy_print_number(t, ",", "home", s->home);
	json_traffic(t, s);
	eddy_text_add(t, ",\"to_home\":[");
	for (uint32_t i = 0; i < p->h->n_homes; i++) {
		eddy_text_add(t, i == 0 ? "" : ",");
		eddy_text_number(t, eddy_stats_to_home(p->h, cpu, i), 0);
	}
	eddy_text_add(t, "],\"classes\":[");
	for (unsigned row = 1; row < EDDY_N_ROWS; row++) {
		struct eddy_bleed_flow f = eddy_stats_flow(p->h, cpu, row);

		if ((f.in | f.out | f.away) == 0)
			continue;
		eddy_print_number(t, next, "size", eddy_row_size(row));
		eddy_print_number(t, ",", "in", f.in);
		eddy_print_number(t, ",", "back", f.back);
		eddy_print_number(t, ",", "out", f.out);
		eddy_print_number(t, ",", "away", f.away);
		eddy_text_add(t, "}");
		next = ",{";
	}
	eddy_text_add(t, "]}");
}

static void
json_finding(struct eddy_print *p, const struct eddy_bleed_finding *f,
    const char *before)
{
	struct eddy_text *t = &p->text;
	struct eddy_bleed_world world = eddy_stats_world(p->h);

	eddy_print_number(t, before, "size", f->size);
	eddy_text_add(t, ",\"kind\":\"");
	eddy_text_add(t, eddy_bleed_kind_name(f->kind));
	eddy_text_add(t, "\"");
	eddy_print_number(t, ",", "objects", f->n_objects);
	eddy_print_number(t, ",", "from_cpu", f->from_cpu);
	if (f->to_cpu != EDDY_BLEED_NOBODY)
		eddy_print_number(t, ",", "to_cpu", f->to_cpu);
	if (f->to_home != EDDY_BLEED_NOBODY)
		eddy_print_number(t, ",", "to_home", f->to_home);
	eddy_print_number(t, ",", "slab_percent", f->slab_percent);
	/* Letters, digits and points alone. */
	eddy_text_add(t, ",\"words\":\"");
	eddy_bleed_words(t, f, &world, ". ");
	eddy_text_add(t, "\"}");
}

void
eddy_print_flows_json(struct eddy_print *p)
{
	struct eddy_text *t = &p->text;
	struct eddy_bleed_finding worst[MAX_WORST];
	struct eddy_stats_traffic s;
	struct eddy_stats_traffic sum = {.home = 0};
	const char *before = "{";

	if (p->h == NULL)
		return;
	for (unsigned cpu = 0; cpu < p->h->n_slots; cpu++)
		if (eddy_stats_traffic(p->h, cpu, &s))
			eddy_stats_add_traffic(&sum, &s);
	eddy_stats_bleeding(p->h, worst, MAX_WORST);
	eddy_text_add(t, ",\"flows\":{\"bleeds\":");
	eddy_text_add(t, eddy_bleed_is(&worst[0]) ? "true" : "false");
	json_traffic(t, &sum);
	eddy_text_add(t, ",\"rmws_per_object\":");
	add_thousandths(
	    t, eddy_bleed_thousandths(sum.rmws, sum.out + sum.away));
	eddy_text_add(t, ",\"worst\":[");
	for (unsigned i = 0; i < MAX_WORST && worst[i].kind != EDDY_BLEED_NONE;
	     i++)
		json_finding(p, &worst[i], i == 0 ? "{" : ",{");
	eddy_text_add(t, "]");
	if (!p->no_arenas) {
		eddy_text_add(t, ",\"cpus\":[");
		for (unsigned cpu = 0; cpu < p->h->n_slots; cpu++) {
			if (!eddy_stats_traffic(p->h, cpu, &s))
				continue;
			json_cpu(p, cpu, before, &s);
			before = ",{";
		}
		eddy_text_add(t, "]");
	}
	eddy_text_add(t, "}");
}
