/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bleed.h - who frees what others allocate, and what to do about it: from
 * numbers alone.
 *
 * Layer     ctl (L5); stands on base and text.h.
 * Progress  wait-free.
 * Memory    the caller's; no allocation.
 * Context   any thread, signal handlers.
 *
 * For one size class, the counters of all CPUs are added one by one; what
 * comes out is a finding, and a few words.  Counters may be of any size, and
 * from different moments: sums saturate, and nothing is divided by zero.
 *
 * A class bleeds where objects leave by one CPU's cache and are wanted by
 * another's: they then travel, in batches by a return ring at best, each alone
 * to its slab at worst.
 */
#ifndef EDDY_BLEED_H
#define EDDY_BLEED_H

#include "lib/base/base.h"
#include "lib/ctl/text.h"

#define EDDY_BLEED_NOBODY UINT32_MAX

struct eddy_bleed_cpu {
	uint32_t cpu;
	uint32_t home;
	/* That most of all its classes went to; EDDY_BLEED_NOBODY. */
	uint32_t other_home;
};

/* One CPU and one class: objects. */
struct eddy_bleed_flow {
	uint64_t in;   /* taken for its own use */
	uint64_t back; /* of these, from a ring */
	uint64_t out;  /* of its own home, sent off for want of room */
	uint64_t away; /* of other homes, sent there */
	bool cut;      /* the row is smaller than rows of the class may be */
};

/* The CPU at one end of a flow that has the most of it. */
struct eddy_bleed_end {
	struct eddy_bleed_cpu who;
	uint64_t n; /* objects */
};

/* One class, on all CPUs. */
struct eddy_bleed {
	uint32_t size;    /* of an object */
	uint32_t batch;   /* objects that travel together */
	uint32_t ring;    /* objects that wait in a ring at most */
	uint64_t waiting; /* that do now, in all rings of the class */

	/* Sums. */
	uint64_t in;
	uint64_t back;
	uint64_t out;
	uint64_t away;
	uint64_t wanted; /* taken on CPUs that took more than they sent off */
	uint64_t left;   /* sent off on CPUs that sent more than they took */
	uint64_t turned; /* sent off by CPUs that took as many themselves */
	struct eddy_bleed_end sender; /* of away */
	struct eddy_bleed_end source; /* of wanted */
	struct eddy_bleed_end sink;   /* of left */
	struct eddy_bleed_end turner;
	bool cut; /* the turner's row */
};

enum eddy_bleed_kind {
	EDDY_BLEED_NONE,
	EDDY_BLEED_TIGHT,  /* none, but a cache too small for the bursts */
	EDDY_BLEED_PASSED, /* from CPU to CPU of one home */
	EDDY_BLEED_AWAY,   /* freed away from home */
};

struct eddy_bleed_finding {
	enum eddy_bleed_kind kind;
	uint32_t size;
	uint32_t ring;
	uint64_t n_objects;    /* that travelled */
	uint64_t n_largest;    /* of these, those of the CPUs named here */
	uint64_t cost;         /* trips: what findings are ranked by */
	uint32_t from_cpu;     /* passed: that allocates.  else: that frees */
	uint32_t to_cpu;       /* passed: that frees */
	uint32_t to_home;      /* away: EDDY_BLEED_NOBODY if it is not known */
	unsigned slab_percent; /* of the class, not back by a ring */
	bool any_slabs;
	bool full; /* and that is much */
	bool cut;
};

/* What advice depends on. */
struct eddy_bleed_world {
	uint32_t n_homes;
	bool one_node; /* all homes lie on one: last-level caches */
	size_t cpu_cache_bytes;
};

/* The numbers of struct eddy_bleed; all sums are zero. */
void eddy_bleed_begin(struct eddy_bleed *b, uint32_t size, uint32_t batch,
    uint32_t ring, uint64_t waiting);

void eddy_bleed_add(struct eddy_bleed *b, const struct eddy_bleed_cpu *cpu,
    const struct eddy_bleed_flow *flow);

/* A class whose traffic is small, or small beside what it refills, has none. */
void eddy_bleed_judge(
    const struct eddy_bleed *b, struct eddy_bleed_finding *ret);

/* Whether the finding is a bleeding. */
static inline bool
eddy_bleed_is(const struct eddy_bleed_finding *f)
{
	return f->kind >= EDDY_BLEED_PASSED;
}

/* Puts a finding among the n worst so far, the worst first; kind NONE ends
 * them. */
void eddy_bleed_rank(struct eddy_bleed_finding *worst, unsigned n,
    const struct eddy_bleed_finding *f);

/* Three clauses: what flows, how it travels, what to change. */
void eddy_bleed_words(struct eddy_text *t, const struct eddy_bleed_finding *f,
    const struct eddy_bleed_world *w, const char *between);

const char *eddy_bleed_kind_name(enum eddy_bleed_kind kind);

/* part of whole in percent, cut and not rounded; 0 of nothing. */
unsigned eddy_bleed_percent(uint64_t part, uint64_t whole);

/* a / b in thousandths; 0 where b is. */
uint64_t eddy_bleed_thousandths(uint64_t a, uint64_t b);

#endif /* EDDY_BLEED_H */
