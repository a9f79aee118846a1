/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * node_arenas.c - arenas that a program creates on nodes: their pages lie
 * there, also after a move amid work, and errors are told apart.
 *
 *   node_arenas               all nodes that have memory
 *   node_arenas excluded N    node N is not in the cpuset
 *   node_arenas full N MIB    node N has less than MIB: others help out
 */
#include "tests/vm/nodes.h"

#include "include/eddy/eddy.h"

enum { BLOCKS = 1200, WORKERS = 3, MAX_PAGES = 1 << 18 };

static __typeof__(eddy_arena_create) *arena_create;
static __typeof__(eddy_arena_malloc) *arena_malloc;
static __typeof__(eddy_arena_move) *arena_move;
static __typeof__(eddy_node_of) *node_of;

static unsigned char *block[BLOCKS];
static size_t bytes[BLOCKS];
static void *page[MAX_PAGES];
static int lies[MAX_PAGES];

static void
find(void *function, const char *name)
{
	void *found = dlsym(RTLD_DEFAULT, name);

	if (found == NULL)
		tap_skip_all("no %s here", name);
	memcpy(function, &found, sizeof found);
}

static size_t
draw_size(uint64_t r)
{
	size_t limit = (r & 127) == 0 ? 3 * MIB
		       : (r & 7) == 0 ? 60 * KIB
				      : 2000;

	return 1 + (size_t)(r >> 16) % limit;
}

/* Every other block goes, and the places are filled again. */
static bool
work_over(unsigned arena, uint64_t *rng)
{
	for (int i = 0; i < BLOCKS; i++) {
		if (block[i] != NULL && i % 2 != 0)
			continue;
		p_free(block[i]);
		bytes[i] = draw_size(tap_random(rng));
		block[i] = arena_malloc(arena, bytes[i]);
		if (block[i] == NULL)
			return false;
		memset(block[i], i & 255, bytes[i]);
	}
	return true;
}

static bool
whole(void)
{
	for (int i = 0; i < BLOCKS; i++)
		for (size_t k = 0; k < bytes[i]; k++)
			if (block[i][k] != (i & 255))
				return false;
	return true;
}

/* Whether 99 of 100 pages lie on the node, and all blocks belong there. */
static bool
all_there(int node, const char *what)
{
	size_t n = 0;
	size_t right = 0;
	int strange = 0;

	for (int i = 0; i < BLOCKS; i++) {
		uintptr_t at = (uintptr_t)block[i] & ~(page_size - 1);

		strange += node_of(block[i]) != node;
		for (; at < (uintptr_t)block[i] + bytes[i]; at += page_size)
			if (n < MAX_PAGES)
				page[n++] = (void *)at;
	}
	nodes_ask(page, lies, n);
	for (size_t i = 0; i < n; i++)
		right += lies[i] == node;
	tap_diag("%s: %zu of %zu pages on node %d", what, right, n, node);
	return right * 100 >= n * 99 && strange == 0;
}

static struct flag stop;
static unsigned shared_arena;

static void *
worker(void *arg)
{
	enum { MINE = 200 };
	unsigned char *mine[MINE] = {NULL};
	uint64_t rng = tap.seed + (uintptr_t)arg;
	uintptr_t wrong = 0;

	while (!flag_is_set(&stop)) {
		uint64_t r = tap_random(&rng);
		unsigned char **at = &mine[r % MINE];
		size_t n = draw_size(r >> 8);

		wrong += *at != NULL && **at != r % MINE;
		p_free(*at);
		*at = arena_malloc(shared_arena, n);
		if (*at == NULL)
			wrong++;
		else
			**at = (unsigned char)(r % MINE);
	}
	for (int i = 0; i < MINE; i++)
		p_free(mine[i]);
	return (void *)wrong;
}

static int
move_amid_work(unsigned arena, int to)
{
	pthread_t t[WORKERS];
	int error;

	flag_clear(&stop);
	shared_arena = arena;
	for (intptr_t i = 0; i < WORKERS; i++)
		if (pthread_create(&t[i], NULL, worker, (void *)i) != 0)
			tap_bail("pthread_create");
	(void)usleep(20000);
	error = arena_move(arena, to);
	flag_set(&stop);
	for (int i = 0; i < WORKERS; i++) {
		void *wrong;

		(void)pthread_join(t[i], &wrong);
		tap_ok(wrong == NULL, "worker %d of the arena goes on", i);
	}
	return error;
}

static void
test_node(int node, int next)
{
	uint64_t rng = tap.seed;
	unsigned arena;
	int error = arena_create(node, &arena);

	if (!tap_ok(error == 0, "an arena can be had on node %d", node)) {
		tap_diag("error %d", error);
		return;
	}
	tap_ok(work_over(arena, &rng) && work_over(arena, &rng) &&
		   all_there(node, "created"),
	    "blocks of an arena on node %d lie there", node);
	error = move_amid_work(arena, next);
	tap_ok(error == 0 && all_there(next, "moved"),
	    "an arena moves from node %d to %d amid work", node, next);
	tap_ok(whole(), "and its blocks keep their content");
	tap_ok(work_over(arena, &rng) && all_there(next, "after the move"),
	    "what it allocates then is on node %d", next);
	for (int i = 0; i < BLOCKS; i++) {
		p_free(block[i]);
		block[i] = NULL;
	}
}

static void
test_errors(void)
{
	unsigned arena = 12345;

	tap_ok(arena_create(1000, &arena) == EINVAL &&
		   arena_create(-1, &arena) == EINVAL && arena == 12345,
	    "a node that is none: EINVAL");
	for (int n = 0; n < MAX_NODES; n++)
		if (node_online[n] && !node_memory[n])
			tap_ok(arena_create(n, &arena) == ENODEV,
			    "node %d has no memory: ENODEV", n);
	tap_ok(arena_move(4000, 0) == EINVAL, "an arena that is none: EINVAL");
	errno = 0;
	tap_ok(arena_malloc(4000, 10) == NULL && errno == EINVAL,
	    "memory of an arena that is none: EINVAL");
	block[0] = p_malloc(100);
	tap_ok(block[0] != NULL, "malloc goes on");
	p_free(block[0]);
	block[0] = NULL;
}

static int
excluded(int node)
{
	unsigned arena;

	tap_ok(arena_create(node, &arena) == EINVAL,
	    "a node that the cpuset excludes: EINVAL");
	return tap_end();
}

/* A full node gives way to others; nobody is killed. */
static int
full(int node, size_t mib)
{
	unsigned arena;
	bool held = arena_create(node, &arena) == 0;
	size_t there = 0;

	for (size_t i = 0; held && i < mib; i++) {
		char *p = arena_malloc(arena, MIB);

		held = p != NULL;
		for (size_t k = 0; held && k < MIB; k += page_size) {
			p[k] = 1;
			page[i % MAX_PAGES] = p;
		}
	}
	if (held) {
		nodes_ask(page, lies, mib);
		for (size_t i = 0; i < mib; i++)
			there += lies[i] == node;
	}
	tap_diag("%zu of %zu MiB on node %d", there, mib, node);
	tap_ok(held && there > 0 && there < mib,
	    "an arena that outgrows its node gets memory of others");
	return tap_end();
}

int
main(int argc, char **argv)
{
	int first = -1;
	int last = -1;

	tap_begin(argv);
	tap_guard(60);
	find(&arena_create, "eddy_arena_create");
	find(&arena_malloc, "eddy_arena_malloc");
	find(&arena_move, "eddy_arena_move");
	find(&node_of, "eddy_node_of");
	nodes_read();
	if (argc > 2 && strcmp(argv[1], "excluded") == 0)
		return excluded((int)strtol(argv[2], NULL, 10));
	if (argc > 3)
		return full(
		    (int)strtol(argv[2], NULL, 10), strtoul(argv[3], NULL, 10));
	for (int n = 0; n < MAX_NODES; n++)
		if (node_memory[n]) {
			first = first < 0 ? n : first;
			if (last >= 0)
				test_node(last, n);
			last = n;
		}
	test_node(last, first);
	test_errors();
	return tap_end();
}
