/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heap_inside.h - for programs that are linked with the heap and look into it:
 * pages counted by their bits, a clock that the test sets, a kernel that gives
 * memory back, or refuses, or lies.
 *
 * These programs are linked with --wrap for each __wrap_ function here.
 */
#ifndef EDDY_TESTS_HEAP_INSIDE_H
#define EDDY_TESTS_HEAP_INSIDE_H

#include "probe.h"

#include "lib/heap/arena.h"
#include "lib/heap/chunk.h"
#include "lib/heap/cpu_cache.h"
#include "lib/heap/gather.h"
#include "lib/heap/pagemap.h"
#include "lib/heap/purge.h"
#include "lib/heap/reclaim.h"
#include "lib/heap/segment.h"
#include "lib/heap/wake.h"
#include "lib/heap/warm.h"
#include "lib/os/os.h"

/* ------------------------------------------------------------------ */
/* The kernel */

enum answer { GIVES, REFUSES, LIES };

/* A call that gives memory back, as it was made. */
struct call {
	char *p;
	size_t size;
	bool lazy;
};

static struct {
	atomic_int answer;    /* to calls for memory of objects */
	atomic_ulong n_calls; /* these */
	atomic_ulong bytes;   /* given back by them */
	char *stuck;          /* if set, what meets [stuck, stuck_end) is */
	char *stuck_end;      /* refused: as locked memory is */
	struct call *log;     /* if set, calls are written down */
	size_t n_log;
	size_t max_log;
	void (*meanwhile)(void);  /* what others do during the next call */
	void (*after_walk)(void); /* and after the next walk over all bits */
	atomic_ulong now;         /* ms; 0: the real clock */
	size_t page;              /* size of an OS page; 0: the real one */
	atomic_bool served;       /* there are background threads */
	atomic_ulong wakes;
} kernel;

int __real_eddy_os_discard(void *p, size_t size);
int __wrap_eddy_os_discard(void *p, size_t size);
int __real_eddy_os_discard_lazily(void *p, size_t size);
int __wrap_eddy_os_discard_lazily(void *p, size_t size);
size_t __real_eddy_os_page_size(void);
size_t __wrap_eddy_os_page_size(void);
uint64_t __real_eddy_os_milliseconds(void);
uint64_t __wrap_eddy_os_milliseconds(void);
uint64_t __wrap_eddy_os_milliseconds_coarse(void);
int64_t __real_eddy_segments_dirty(struct eddy_heap *h, struct eddy_arena *a);
int64_t __wrap_eddy_segments_dirty(struct eddy_heap *h, struct eddy_arena *a);
bool __wrap_eddy_wake_served(struct eddy_heap *h);
void __wrap_eddy_wake(struct eddy_heap *h, uint32_t home);

/* Once. */
static inline void
kernel_interrupt(void (**what)(void))
{
	void (*now)(void) = *what;

	*what = NULL;
	if (now != NULL)
		now();
}

static inline bool
kernel_has(const void *p)
{
	struct eddy_heap *h = eddy_heap_peek();

	return h != NULL && (uintptr_t)p - h->base < (uintptr_t)h->n_chunks
							 << EDDY_LG_CHUNK;
}

static inline int
kernel_call(void *p, size_t size, bool lazy)
{
	atomic_fetch_add(&kernel.n_calls, 1);
	if (kernel.log != NULL && kernel.n_log < kernel.max_log)
		kernel.log[kernel.n_log++] = (struct call){p, size, lazy};
	kernel_interrupt(&kernel.meanwhile);
	if (atomic_load(&kernel.answer) == REFUSES ||
	    ((char *)p < kernel.stuck_end && (char *)p + size > kernel.stuck))
		return -EINVAL;
	if (atomic_load(&kernel.answer) == LIES)
		return 0;
	atomic_fetch_add(&kernel.bytes, size);
	return lazy ? __real_eddy_os_discard_lazily(p, size)
		    : __real_eddy_os_discard(p, size);
}

int
__wrap_eddy_os_discard(void *p, size_t size)
{
	return kernel_has(p) ? kernel_call(p, size, false)
			     : __real_eddy_os_discard(p, size);
}

int
__wrap_eddy_os_discard_lazily(void *p, size_t size)
{
	return kernel_call(p, size, true);
}

size_t
__wrap_eddy_os_page_size(void)
{
	return kernel.page != 0 ? kernel.page : __real_eddy_os_page_size();
}

uint64_t
__wrap_eddy_os_milliseconds(void)
{
	uint64_t now = atomic_load(&kernel.now);

	return now != 0 ? now : __real_eddy_os_milliseconds();
}

uint64_t
__wrap_eddy_os_milliseconds_coarse(void)
{
	return __wrap_eddy_os_milliseconds();
}

int64_t
__wrap_eddy_segments_dirty(struct eddy_heap *h, struct eddy_arena *a)
{
	int64_t n = __real_eddy_segments_dirty(h, a);

	kernel_interrupt(&kernel.after_walk);
	return n;
}

bool
__wrap_eddy_wake_served(struct eddy_heap *h)
{
	(void)h;
	return atomic_load(&kernel.served);
}

void
__wrap_eddy_wake(struct eddy_heap *h, uint32_t home)
{
	(void)h;
	(void)home;
	atomic_fetch_add(&kernel.wakes, 1);
}

/* ------------------------------------------------------------------ */
/* Pages, counted by their bits */

struct pages {
	int64_t active;
	int64_t backed;
	int64_t muzzy;
	int64_t wrong; /* muzzy, and in use or clean */
};

static inline unsigned
inside_ones(const _Atomic uint64_t *w)
{
	unsigned n = 0;

	for (unsigned i = 0; i < EDDY_RUNMAP_WORDS; i++)
		n += (unsigned)__builtin_popcountll(atomic_load(&w[i]));
	return n;
}

static inline bool
inside_bit(const _Atomic uint64_t *w, unsigned i)
{
	return atomic_load(&w[i / 64]) >> i % 64 & 1;
}

/* A chunk that is not cut into pages. */
static inline void
inside_count_chunk(struct eddy_segment *s, struct eddy_chunk *c, unsigned pos,
    bool is_free, struct pages *n)
{
	int64_t dirty = 0;

	if (inside_bit(s->map.dirty, pos))
		dirty = inside_bit(s->uniform, pos)
			    ? (int64_t)EDDY_CHUNK_PAGES
			    : (int64_t)inside_ones(c->map.dirty);
	n->backed += dirty;
	if (inside_bit(s->muzzy, pos)) {
		n->muzzy += dirty;
		n->wrong += dirty == 0 || !is_free;
	}
	/* Others in nobody's use lie below the heap's first chunk. */
	if (!is_free && dirty != 0)
		n->active += (int64_t)EDDY_CHUNK_PAGES;
}

/* Pages of an arena, while nobody else is in the heap; 0: of all. */
static inline struct pages
inside_count(struct eddy_heap *h, uint32_t arena)
{
	uint32_t n = (uint32_t)(atomic_load(&eddy_fast.limit) /
				(EDDY_SEGMENT / EDDY_PAGE));
	struct pages sum = {0};

	for (uint32_t i = 0; i < n; i++) {
		struct eddy_segment *s = &h->segments[i];
		bool whole = inside_bit(&h->free_segments[i / 64], i % 64);

		if (arena != 0 && atomic_load(&s->counted) != arena)
			continue;
		for (unsigned k = 0; k < EDDY_SEGMENT_CHUNKS; k++) {
			uint32_t c = i * (uint32_t)EDDY_SEGMENT_CHUNKS + k;
			struct eddy_runmap *m = &h->chunks[c].map;

			if (c >= h->n_chunks || !inside_bit(s->map.ready, k))
				continue;
			if (atomic_load(&m->owner) == 0) {
				inside_count_chunk(s, &h->chunks[c], k,
				    whole || inside_bit(s->map.free, k), &sum);
				continue;
			}
			sum.active +=
			    (int64_t)EDDY_CHUNK_PAGES - inside_ones(m->free);
			sum.backed += inside_ones(m->dirty);
			sum.muzzy += inside_ones(m->muzzy);
			for (unsigned w = 0; w < EDDY_RUNMAP_WORDS; w++)
				sum.wrong +=
				    (atomic_load(&m->muzzy[w]) &
					~(atomic_load(&m->dirty[w]) &
					    atomic_load(&m->free[w]))) != 0;
		}
	}
	return sum;
}

static inline struct pages
inside_numbers(const struct eddy_arena *a)
{
	return (struct pages){
	    .active = atomic_load(&a->reclaim.active),
	    .backed = atomic_load(&a->reclaim.backed),
	    .muzzy = atomic_load(&a->reclaim.muzzy),
	};
}

/* Whether the numbers of each arena are what the bits say. */
static inline bool
inside_agree(struct eddy_heap *h, const char *when)
{
	uint32_t n = atomic_load(&h->n_arenas);
	bool held = true;

	for (uint32_t i = 1; i <= n; i++) {
		struct eddy_arena *a = eddy_arena_at(h, i);
		struct pages bits = inside_count(h, i);
		struct pages is =
		    a != NULL ? inside_numbers(a) : (struct pages){0};

		if (is.active == bits.active && is.backed == bits.backed &&
		    is.muzzy == bits.muzzy && bits.wrong == 0 &&
		    (a == NULL ||
			__real_eddy_segments_dirty(h, a) == bits.backed))
			continue;
		held = false;
		tap_diag("%s: arena %u: active %lld, by its bits %lld; backed "
			 "%lld, %lld; muzzy %lld, %lld, wrong %lld",
		    when, i, (long long)is.active, (long long)bits.active,
		    (long long)is.backed, (long long)bits.backed,
		    (long long)is.muzzy, (long long)bits.muzzy,
		    (long long)bits.wrong);
	}
	return held;
}

#endif /* EDDY_TESTS_HEAP_INSIDE_H */
