/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heap_bind.c - arenas follow their nodes, seen from inside, on a made-up
 * kernel: this program's own eddy_policy_* write down what they are told, so
 * that four nodes can be had anywhere, and slowness and refusals.
 *
 * Argument "limited": under a limit on addresses, where chunks are mapped one
 * by one.
 */
#include "probe.h"

#include <limits.h>

#include "eddy/eddy.h"
#include "lib/heap/arena.h"
#include "lib/heap/bind.h"
#include "lib/heap/pagemap.h"
#include "numa/policy.h"

enum { NODES = 4, CHUNKS = EDDY_MAX_SEGMENTS * (int)EDDY_SEGMENT_CHUNKS };

/* ---- the kernel ---- */

static pthread_mutex_t kernel = PTHREAD_MUTEX_INITIALIZER;
/* What was told last: 0, a node + 1, SPREAD. */
enum { SPREAD = 2000 };
static uint16_t of_chunk[CHUNKS];
static uint16_t of_descriptors[EDDY_MAX_SEGMENTS];
static uint16_t of_tags[EDDY_MAX_SEGMENTS];
static uint16_t of_struct[EDDY_MAX_ARENAS + 1];
static atomic_int refusal; /* errno that every call gets */
static atomic_ulong calls;
static atomic_ulong moves; /* calls that take pages along */
static atomic_bool slow;   /* threads lose their CPU around calls */

/*
 * A gate: the n-th call that its thread makes stops there, before or after it
 * counts, until the gate is opened.
 */
struct gate {
	unsigned nth;
	bool before;
	struct flag reached;
	struct flag open;
};
static __thread struct gate *my_gate;
static __thread unsigned my_calls;

static void
at_gate(bool before)
{
	struct gate *g = my_gate;

	if (g == NULL || g->before != before || my_calls != g->nth)
		return;
	flag_set(&g->reached);
	while (!flag_is_set(&g->open))
		(void)sched_yield();
}

static void
dawdle(void)
{
	static __thread uint64_t rng;

	if (!atomic_load(&slow))
		return;
	if (rng == 0)
		rng = (uintptr_t)&rng;
	for (uint64_t n = tap_random(&rng) % 4; n > 0; n--)
		(void)sched_yield();
}

/* Writes down a policy for elements of an array that lie in the range. */
static bool
note(uintptr_t at, uintptr_t end, const void *array, size_t each, size_t n,
    uint16_t *told, uint16_t policy)
{
	uintptr_t from = (uintptr_t)array;

	if (at < from || at >= from + n * each)
		return false;
	for (size_t i = (at - from) / each; i < (end - from + each - 1) / each;
	     i++)
		told[i] = policy;
	return true;
}

static int
tell(void *p, size_t size, uint16_t policy)
{
	struct eddy_heap *h = eddy_heap_peek();
	uintptr_t at = (uintptr_t)p;
	uintptr_t end = at + size;
	int err = -atomic_load(&refusal);

	atomic_fetch_add(&calls, 1);
	if (h == NULL || err != 0)
		return err;
	my_calls++;
	at_gate(true);
	dawdle();
	(void)pthread_mutex_lock(&kernel);
	if (!note(at, end, (void *)h->base, EDDY_CHUNK, h->n_chunks, of_chunk,
		policy) &&
	    !note(at, end, h->chunks,
		sizeof(struct eddy_chunk) * EDDY_SEGMENT_CHUNKS, h->n_segments,
		of_descriptors, policy) &&
	    !note(at, end, (void *)(uintptr_t)h->tags,
		EDDY_SEGMENT / EDDY_PAGE * 4, h->n_segments, of_tags, policy))
		for (unsigned i = 1; i <= EDDY_MAX_ARENAS; i++)
			if (atomic_load(&h->arenas[i]) == p)
				of_struct[i] = policy;
	(void)pthread_mutex_unlock(&kernel);
	at_gate(false);
	dawdle();
	return 0;
}

int
eddy_policy_bind(void *p, size_t size, unsigned node)
{
	return tell(p, size, (uint16_t)(node + 1));
}

int
eddy_policy_move(void *p, size_t size, unsigned node)
{
	atomic_fetch_add(&moves, 1);
	return tell(p, size, (uint16_t)(node + 1));
}

int
eddy_policy_interleave(void *p, size_t size, const uint64_t *nodes)
{
	(void)nodes;
	return tell(p, size, SPREAD);
}

int
eddy_policy_reset(void *p, size_t size)
{
	return tell(p, size, 0);
}

int
eddy_policy_of_process(void)
{
	return 0;
}

int
eddy_policy_nodes_allowed(uint64_t *nodes)
{
	(void)nodes;
	return -ENOSYS;
}

int
eddy_policy_nodes_of(void *const *pages, int *nodes, size_t n)
{
	(void)pages;
	(void)nodes;
	(void)n;
	return -ENOSYS;
}

/* ---- the heap ---- */

static struct eddy_heap *heap;

/* A machine of four nodes whose homes stay as they are. */
static void
begin(void)
{
	free(p_malloc(1));
	heap = eddy_heap();
	if (heap == NULL)
		tap_bail("no heap");
	heap->places.fake = false;
	heap->places.n_nodes = NODES;
	heap->places.has_memory[0] |= (1u << NODES) - 1;
}

static unsigned
create(int node)
{
	unsigned a;
	int err = eddy_arena_create(node, &a);

	if (err != 0)
		tap_bail("eddy_arena_create: %d", err);
	return a;
}

static uint32_t
segment_of(const void *p)
{
	return (uint32_t)(((uintptr_t)p - heap->base) >> EDDY_LG_SEGMENT);
}

static uint32_t
n_segments(void)
{
	return (uint32_t)(atomic_load(&eddy_fast.limit) /
			  (EDDY_SEGMENT / EDDY_PAGE));
}

static uint32_t
owner_of(uint32_t segment)
{
	return atomic_load(&heap->segments[segment].map.owner);
}

static bool
chunk_counts(uint32_t chunk)
{
	struct eddy_segment *s = &heap->segments[chunk / EDDY_SEGMENT_CHUNKS];
	unsigned pos = chunk % (unsigned)EDDY_SEGMENT_CHUNKS;

	return chunk < heap->n_chunks &&
	       (heap->reserved ||
		   (atomic_load(&s->map.ready[pos / 64]) >> pos % 64 & 1));
}

/* Whether the kernel was told one policy for all of a segment; what is it? */
static bool
agrees(uint32_t segment, uint32_t want)
{
	uint32_t first = segment * (uint32_t)EDDY_SEGMENT_CHUNKS;

	if (of_descriptors[segment] != want || of_tags[segment] != want)
		return false;
	for (uint32_t c = first; c < first + EDDY_SEGMENT_CHUNKS; c++)
		if (chunk_counts(c) && of_chunk[c] != want)
			return false;
	return true;
}

/* I-BIND-1, while nobody allocates. */
static bool
all_agree(const char *when)
{
	bool held = true;

	for (uint32_t i = 0; i < n_segments(); i++) {
		struct eddy_segment *s = &heap->segments[i];
		uint32_t bound = (uint32_t)atomic_load(&s->bound);
		uint32_t owner = owner_of(i);
		struct eddy_arena *a = NULL;
		uint32_t want = bound;

		if (owner != 0) {
			a = eddy_arena_at(heap, owner);
			want = a->home == EDDY_HOME_NONE
				   ? atomic_load(&a->node) + 1
				   : 0;
		} else if (bound == EDDY_BOUND_UNKNOWN) {
			continue;
		}
		if (agrees(i, want) &&
		    (bound == EDDY_BOUND_UNKNOWN || bound == want))
			continue;
		held = false;
		tap_diag("%s: segment %u of arena %u: %u wanted, bound %u, "
			 "told %u",
		    when, i, owner, want, bound, of_descriptors[i]);
	}
	return held;
}

static void
test_create(void)
{
	unsigned a = create(2);
	unsigned long before;
	char *small = eddy_arena_malloc(a, 100);
	char *huge = eddy_arena_malloc(a, 5 * MIB);

	tap_ok(of_struct[a] == 0 && small != NULL && huge != NULL &&
		   agrees(segment_of(small), 3) && agrees(segment_of(huge), 3),
	    "a new arena's segments, descriptors and tags are on its node");
	before = atomic_load(&calls);
	for (int i = 0; i < 100; i++)
		free(eddy_arena_malloc(a, (size_t)i * 10000));
	tap_ok(atomic_load(&calls) == before || !heap->reserved,
	    "one call a segment, none a block");
	tap_ok(eddy_node_of(small) == 2 && eddy_node_of(huge + 4 * MIB) == 2,
	    "eddy_node_of names it");
	free(small);
	free(huge);
}

static void
test_move(void)
{
	unsigned a = create(0);
	char *small = eddy_arena_malloc(a, 100);
	char *giant = eddy_arena_malloc(a, 1200 * (size_t)MIB);
	uint32_t from = segment_of(small);
	unsigned long before = atomic_load(&moves);
	bool there = giant != NULL;

	tap_ok(eddy_arena_move(a, 3) == 0 && of_struct[a] == 4 &&
		   agrees(from, 4) && atomic_load(&moves) > before,
	    "a move takes segments, metadata and pages along");
	for (size_t i = 0; there && i < 1200; i += 100)
		there = agrees(segment_of(giant + i * MIB), 4) &&
			eddy_node_of(giant + i * MIB + 1) == 3;
	tap_ok(there, "all segments of a block above 1 GiB");
	free(small);
	free(giant);
	small = eddy_arena_malloc(a, 700 * (size_t)MIB);
	tap_ok(small != NULL && agrees(segment_of(small), 4) &&
		   eddy_node_of(small) == 3,
	    "what comes later comes from the new node");
	free(small);
	tap_ok(all_agree("moved"), "nothing else is told anything");
}

static void
test_refusals(void)
{
	unsigned a = create(1);
	unsigned b = 99;
	uint32_t n = atomic_load(&heap->n_arenas);
	void *p = eddy_arena_malloc(a, 100);
	void *q;
	uint32_t unplaced;

	atomic_store(&refusal, EPERM);
	errno = 0;
	tap_ok(eddy_arena_create(1, &b) == EPERM && b == 99 && errno == 0 &&
		   atomic_load(&heap->n_arenas) == n,
	    "a refused policy: EPERM, and no arena");
	tap_ok(eddy_arena_move(a, 2) == EPERM && eddy_node_of(p) == 1 &&
		   agrees(segment_of(p), 2),
	    "a refused move: EPERM, and nothing has changed");
	unplaced = atomic_load(&heap->n_unplaced);
	q = eddy_arena_malloc(a, 1024 * (size_t)MIB);
	tap_ok(q != NULL && segment_of(q) != segment_of(p) &&
		   atomic_load(&heap->n_unplaced) > unplaced,
	    "blocks are served all the same, and that is counted");
	atomic_store(&refusal, 0);
	tap_ok(eddy_arena_move(a, 2) == 0 && agrees(segment_of(p), 3) &&
		   agrees(segment_of(q), 3),
	    "a move that is not refused repairs it");
	free(p);
	free(q);
	tap_ok(eddy_arena_create(-1, &b) == EINVAL &&
		   eddy_arena_create(NODES, &b) == EINVAL &&
		   eddy_arena_create(EDDY_MAX_NODES, &b) == EINVAL &&
		   eddy_arena_create(INT_MAX, &b) == EINVAL && b == 99,
	    "nodes that there are not: EINVAL");
}

/* Empty segments that arenas keep go back: as a giant that finds no room. */
static void
drop_spares(void)
{
	if (p_malloc((size_t)heap->n_segments << EDDY_LG_SEGMENT) != NULL)
		tap_bail("more memory than there is");
}

/* A whole segment goes from hand to hand: pages must not stay behind. */
static void
test_hands(void)
{
	static const int node[] = {1, 3, -1, 2};
	enum { BIG = 1020 };
	uint32_t segment = 0;
	unsigned same = 0;
	bool told = true;
	bool empty = true;

	drop_spares();
	for (size_t i = 0; i < COUNT(node); i++) {
		size_t size = BIG * (size_t)MIB;
		unsigned a = node[i] < 0 ? 0 : create(node[i]);
		char *p = a != 0 ? eddy_arena_malloc(a, size) : p_malloc(size);

		if (p == NULL)
			tap_bail("no memory");
		same += segment_of(p) == segment;
		segment = segment_of(p);
		told &= agrees(segment, (uint32_t)(node[i] + 1));
		for (size_t k = 0; k < BIG; k += 50) {
			empty &= p[k * MIB] == 0;
			p[k * MIB] = 1;
		}
		free(p);
		drop_spares();
	}
	if (!tap_ok(same == COUNT(node) - 1 && told,
		"a segment that changes hands changes its node"))
		tap_diag("%u times the same, told: %d", same, told);
	tap_ok(empty, "and no page of it stays behind");
	tap_ok(all_agree("hands"), "all segments are on their nodes");
}

/* Pages that mremap moves bring the policy of where they were. */
static void
test_realloc(void)
{
	unsigned a = create(1);
	char *p = eddy_arena_malloc(a, 8 * MIB);
	char *wall = eddy_arena_malloc(a, 8 * MIB);
	uint32_t moved = atomic_load(&heap->n_moves);
	unsigned long before;
	char *q;

	memset(p, 7, 8 * MIB);
	before = atomic_load(&calls);
	q = p_realloc(p, 24 * (size_t)MIB);
	tap_ok(q != p && q[0] == 7 && q[8 * MIB - 1] == 7 &&
		   owner_of(segment_of(q)) == a,
	    "realloc stays in the arena");
	tap_ok(atomic_load(&heap->n_moves) == moved + 1 &&
		   atomic_load(&calls) > before,
	    "and says again where moved pages belong");
	free(q);
	free(wall);
}

/* ---- step by step ---- */

/* What a thread does that is stopped at a gate. */
struct step {
	struct gate gate;
	unsigned arena;
	int node;    /* to move to, or -1: a block of so many bytes */
	size_t size; /* allocated and freed */
	bool keep;
	pthread_t thread;
	struct flag ended;
	void *block;
};

static void *
take_step(void *arg)
{
	struct step *s = arg;

	my_gate = &s->gate;
	my_calls = 0;
	if (s->node >= 0) {
		if (eddy_arena_move(s->arena, s->node) != 0)
			tap_bail("eddy_arena_move");
	} else {
		s->block = eddy_arena_malloc(s->arena, s->size);
		if (s->block == NULL)
			tap_bail("eddy_arena_malloc");
		if (!s->keep)
			free(s->block);
	}
	flag_set(&s->ended);
	return NULL;
}

/* Goes as far as the gate. */
static void
begin_step(struct step *s)
{
	flag_clear(&s->gate.reached);
	flag_clear(&s->gate.open);
	if (pthread_create(&s->thread, NULL, take_step, s) != 0)
		tap_bail("pthread_create");
	while (!flag_is_set(&s->gate.reached)) {
		if (flag_is_set(&s->ended))
			tap_bail("call %u was not made", s->gate.nth);
		(void)sched_yield();
	}
}

static void
end_step(struct step *s)
{
	flag_set(&s->gate.open);
	(void)pthread_join(s->thread, NULL);
}

/* The call of a move that comes after its node is written. */
enum { AT_STRUCT = 2 };

/* Its first call is for descriptors.  A move and half of a move back. */
static void
test_claim_between_moves(void)
{
	struct step claim = {.gate.nth = 1,
	    .node = -1,
	    .arena = create(1),
	    .size = 1020 * (size_t)MIB};
	struct step back = {
	    .gate.nth = AT_STRUCT, .node = 1, .arena = claim.arena};

	begin_step(&claim);
	if (eddy_arena_move(claim.arena, 0) != 0)
		tap_bail("eddy_arena_move");
	begin_step(&back);
	end_step(&claim);
	drop_spares();
	end_step(&back);
	tap_ok(all_agree("claim between moves"),
	    "a claim between a move and the next takes no policy for told");
}

/* The node is another one, the segment is gone before its mover gets there. */
static void
test_mapped_between(void)
{
	struct step move = {.gate.nth = AT_STRUCT, .node = 3};
	void *p;
	void *q;

	move.arena = create(1);
	p = eddy_arena_malloc(move.arena, 5 * MIB);
	begin_step(&move);
	q = eddy_arena_malloc(move.arena, 50 * MIB);
	free(p);
	free(q);
	drop_spares();
	end_step(&move);
	tap_ok(all_agree("mapped between"),
	    "chunks that are mapped while an arena moves leave no trace");
}

static void
test_mapped_late(void)
{
	struct step map = {.gate = {.nth = 1, .before = true},
	    .node = -1,
	    .size = 900 * (size_t)MIB,
	    .keep = true};
	void *p;

	map.arena = create(1);
	p = eddy_arena_malloc(map.arena, 5 * MIB);
	begin_step(&map);
	if (eddy_arena_move(map.arena, 2) != 0)
		tap_bail("eddy_arena_move");
	end_step(&map);
	tap_ok(all_agree("mapped late"),
	    "a chunk whose policy comes after a move follows it");
	free(p);
	free(map.block);
}

static void
test_two_moves(void)
{
	struct step move = {.gate.nth = 1, .node = 1};

	move.arena = create(0);
	begin_step(&move);
	if (eddy_arena_move(move.arena, 2) != 0)
		tap_bail("eddy_arena_move");
	end_step(&move);
	tap_ok(of_struct[move.arena] == 2 &&
		   atomic_load(&eddy_arena_at(heap, move.arena)->node) == 1,
	    "of two moves at once the later holds for the arena's struct");
}

/* Another arena has the segment before its mover is through with it. */
static void
test_moved_late(int to)
{
	struct step move = {
	    .gate = {.nth = AT_STRUCT + 1, .before = true}, .node = 3};
	unsigned other = to < 0 ? 0 : create(to);
	size_t size = 1020 * (size_t)MIB;
	uint32_t segment;
	void *p;

	move.arena = create(1);
	drop_spares();
	p = eddy_arena_malloc(move.arena, size);
	segment = segment_of(p);
	begin_step(&move);
	free(p);
	drop_spares();
	p = to < 0 ? p_malloc(size) : eddy_arena_malloc(other, size);
	if (segment_of(p) != segment)
		tap_diag("segment %u instead of %u", segment_of(p), segment);
	end_step(&move);
	tap_ok(all_agree("moved late") && segment_of(p) == segment,
	    "a move that comes late is taken back, arena on %d", to);
	free(p);
	drop_spares();
}

/* ---- at once ---- */

enum { ARENAS = 3, WORKERS = 3, MOVERS = 2, HELD = 3 };

static unsigned arena[ARENAS];
static atomic_bool stop;
static atomic_ulong errors;
static atomic_ulong n_blocks;
static atomic_ulong n_moves;

static void *
work(void *arg)
{
	char *p[HELD] = {NULL};
	uint64_t rng = tap.seed + (uintptr_t)arg * 77;

	while (!atomic_load(&stop)) {
		uint64_t r = tap_random(&rng);
		unsigned i = (unsigned)(r % HELD);
		unsigned which = (unsigned)(r >> 8) % (ARENAS + 1);
		/* Mostly a segment each; or two; or some in one. */
		size_t mib = (r >> 16) % 4 == 0   ? 1200
			     : (r >> 16) % 4 == 1 ? 5
						  : 700;

		free(p[i]);
		p[i] = which < ARENAS
			   ? eddy_arena_malloc(arena[which], mib * MIB)
			   : p_malloc(mib * MIB);
		if (p[i] == NULL)
			continue;
		atomic_fetch_add(&n_blocks, 1);
		if (which < ARENAS &&
		    owner_of(segment_of(p[i])) != arena[which])
			atomic_fetch_add(&errors, 1);
		p[i][0] = 1;
	}
	for (int i = 0; i < HELD; i++)
		free(p[i]);
	return NULL;
}

static void *
move(void *arg)
{
	uint64_t rng = tap.seed + (uintptr_t)arg * 77;

	while (!atomic_load(&stop)) {
		uint64_t r = tap_random(&rng);

		if (eddy_arena_move(
			arena[r % ARENAS], (int)((r >> 8) % NODES)) != 0)
			atomic_fetch_add(&errors, 1);
		atomic_fetch_add(&n_moves, 1);
		if ((r >> 16) % 8 == 0)
			(void)usleep(200);
	}
	return NULL;
}

/* A round: all work at once, then all stop and every segment is looked at. */
static bool
round_of(unsigned number, double seconds)
{
	pthread_t t[WORKERS + MOVERS];
	char when[32];

	atomic_store(&stop, false);
	for (uintptr_t i = 0; i < WORKERS + MOVERS; i++)
		if (pthread_create(&t[i], NULL, i < WORKERS ? work : move,
			(void *)(number * 10 + i)) != 0)
			tap_bail("pthread_create");
	(void)usleep((useconds_t)(seconds * 1e6));
	atomic_store(&stop, true);
	for (int i = 0; i < WORKERS + MOVERS; i++)
		(void)pthread_join(t[i], NULL);
	(void)snprintf(when, sizeof when, "round %u", number);
	return all_agree(when);
}

static bool
struct_agrees(unsigned a)
{
	struct eddy_arena *p = eddy_arena_at(heap, a);

	return of_struct[a] == 0 || of_struct[a] == atomic_load(&p->node) + 1;
}

static void
test_at_once(double seconds)
{
	unsigned rounds = (unsigned)(seconds / 0.05);
	bool held = true;
	bool structs = true;

	for (unsigned i = 0; i < ARENAS; i++)
		arena[i] = create((int)i);
	atomic_store(&slow, true);
	for (unsigned i = 0; i < rounds && held; i++) {
		held = round_of(i, 0.05);
		for (unsigned k = 0; k < ARENAS; k++)
			structs &= struct_agrees(arena[k]);
	}
	atomic_store(&slow, false);
	tap_diag("%lu blocks, %lu moves", atomic_load(&n_blocks),
	    atomic_load(&n_moves));
	tap_ok(held, "arenas that move while others allocate: all segments "
		     "are on their owner's node afterwards");
	tap_ok(structs, "and so are the arenas' own structs");
	tap_ok(atomic_load(&errors) == 0,
	    "no move fails, no block is another arena's");
}

static int
limited(void)
{
	/* Its points are one of the caller's. */
	(void)dup2(STDERR_FILENO, STDOUT_FILENO);
	begin();
	if (heap->reserved)
		return 1;
	/* The first two need chunks that were never mapped. */
	test_mapped_between();
	test_mapped_late();
	test_create();
	test_refusals();
	test_claim_between_moves();
	test_moved_late(2);
	test_at_once(probe_seconds(2));
	return tap.failed != 0;
}

int
main(int argc, char **argv)
{
	struct rlimit keep;
	struct rlimit l;

	tap.pid = getpid();
	tap.seed = getenv("EDDY_SEED") != NULL
		       ? strtoull(getenv("EDDY_SEED"), NULL, 0)
		       : (uint64_t)getpid() * 2654435761u;
	probe_small_pages();
	if (argc > 1 && strcmp(argv[1], "limited") == 0) {
		/* Its points are for the log. */
		(void)dup2(STDERR_FILENO, STDOUT_FILENO);
		return limited();
	}
	tap_diag("EDDY_SEED=%llu", (unsigned long long)tap.seed);
	(void)unsetenv("EDDY_CONF");
	tap_guard(120);
	begin();
	test_create();
	test_move();
	test_refusals();
	test_hands();
	test_realloc();
	test_claim_between_moves();
	test_mapped_between();
	test_two_moves();
	test_moved_late(2);
	test_moved_late(-1);
	test_at_once(probe_seconds(4));
	(void)getrlimit(RLIMIT_AS, &keep);
	l = keep;
	l.rlim_cur = 24 * (rlim_t)KIB * MIB;
	if (l.rlim_max < l.rlim_cur || setrlimit(RLIMIT_AS, &l) != 0) {
		tap_skip("limited", "no such limit can be set");
		return tap_end();
	}
	tap_ok(probe_again(argv, "limited", "24 GiB"),
	    "the same under a limit on addresses, chunk by chunk");
	return tap_end();
}
