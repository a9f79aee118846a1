/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * front_arena_threads.c - many threads on a few arenas and on malloc: blocks
 * never mix, whoever frees or reallocs them, in handlers and forked children.
 */
#include "node_api.h"

enum { ARENAS = 3, SOURCES = ARENAS + 1, SLOTS = 1024, THREADS = 6 };

struct block {
	struct block *self;
	size_t size;
	unsigned source; /* an arena, or malloc */
};

static unsigned arena[ARENAS];
static int node_of_arena[ARENAS];
static _Atomic(struct block *) slot[SLOTS];
/* Whose a segment is, plus 1, as its first block has it. */
static atomic_uchar owner[65536];
static atomic_ulong mixed;
static atomic_ulong broken;
static atomic_ulong nulls;
static struct flag stop;

static void
check(struct block *b)
{
	atomic_uchar *o = &owner[segment_of(b) % COUNT(owner)];
	unsigned char seen = 0;

	if (b->self != b || p_usable(b) < b->size)
		atomic_fetch_add(&broken, 1);
	if (!atomic_compare_exchange_strong(
		o, &seen, (unsigned char)(b->source + 1)) &&
	    seen != b->source + 1)
		atomic_fetch_add(&mixed, 1);
	if (b->source < ARENAS && api.node_of(b) != node_of_arena[b->source])
		atomic_fetch_add(&mixed, 1);
}

static size_t
some_size(uint64_t r)
{
	size_t limit = r % 64 == 0 ? 3 * MIB : r % 8 == 0 ? 100000 : 700;

	return sizeof(struct block) + (size_t)(r >> 8) % limit;
}

static struct block *
born(struct block *b, size_t size, unsigned source)
{
	if (b == NULL) {
		atomic_fetch_add(&nulls, 1);
		return NULL;
	}
	*b = (struct block){b, size, source};
	check(b);
	return b;
}

static void
step(uint64_t r)
{
	struct block *b;
	size_t size = some_size(r >> 20);
	unsigned source = (unsigned)(r % SOURCES);

	if ((r >> 2) % 4 == 0) {
		b = atomic_exchange(&slot[(r >> 4) % SLOTS], NULL);
		if (b == NULL)
			return;
		check(b);
		source = b->source;
		b->self = NULL;
		b = p_realloc(b, size);
	} else if (source == ARENAS) {
		b = p_malloc(size);
	} else if ((r >> 2) % 4 == 1) {
		b = api.aligned(arena[source], 64, size);
	} else {
		b = api.alloc(arena[source], size);
	}
	b = born(b, size, source);
	b = atomic_exchange(&slot[(r >> 40) % SLOTS], b);
	if (b == NULL)
		return;
	check(b);
	b->self = NULL;
	p_free(b);
}

static void *
work(void *arg)
{
	uint64_t rng = tap.seed + (uintptr_t)arg;

	while (!flag_is_set(&stop))
		for (int i = 0; i < 100; i++)
			step(tap_random(&rng));
	return NULL;
}

static void *pins[ARENAS];

/* Arenas on two nodes, or on the one there is. */
static void
begin_sources(void)
{
	int node = some_node();
	unsigned a;

	for (int i = 0; i < ARENAS; i++) {
		node_of_arena[i] =
		    i != 0 && api.create(node + 1, &a) == 0 ? node + 1 : node;
		arena[i] = create(node_of_arena[i]);
		/* So that its segment stays its own. */
		pins[i] = api.alloc(arena[i], 1);
	}
}

static void
end_sources(void)
{
	for (int i = 0; i < SLOTS; i++) {
		struct block *b = atomic_exchange(&slot[i], NULL);

		if (b == NULL)
			continue;
		check(b);
		p_free(b);
	}
}

static void
start(pthread_t *t, void *(*body)(void *))
{
	flag_clear(&stop);
	for (uintptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, body, (void *)i) != 0)
			tap_bail("pthread_create");
}

static void
finish(pthread_t *t)
{
	flag_set(&stop);
	for (int i = 0; i < THREADS; i++)
		(void)pthread_join(t[i], NULL);
}

static bool
all_well(const char *what)
{
	if (atomic_load(&mixed) + atomic_load(&broken) + atomic_load(&nulls) ==
	    0)
		return true;
	tap_diag("%s: %lu in others' segments, %lu broken, %lu NULL", what,
	    atomic_load(&mixed), atomic_load(&broken), atomic_load(&nulls));
	return false;
}

/* Argument "threads". */
static int
threads(void)
{
	pthread_t t[THREADS];

	begin_sources();
	start(t, work);
	(void)usleep((useconds_t)(probe_seconds(1.5) * 1e6));
	finish(t);
	end_sources();
	return all_well("threads") ? 0 : 1;
}

/* Arenas are created while others are used. */
static atomic_uint newest;

static void *
creator(void *arg)
{
	uint64_t rng = tap.seed + (uintptr_t)arg;
	unsigned before = 0;

	for (int i = 0; i < 100 && !flag_is_set(&stop); i++) {
		unsigned a = create(node_of_arena[0]);
		struct block *b = api.alloc(a, 100);

		/* Numbers of one's own grow. */
		if (b == NULL || a <= before ||
		    api.node_of(b) != node_of_arena[0])
			atomic_fetch_add(&broken, 1);
		before = a;
		atomic_store(&newest, a);
		p_free(b);
		b = api.alloc(
		    atomic_load(&newest), 1 + tap_random(&rng) % 5000);
		if (b == NULL)
			atomic_fetch_add(&nulls, 1);
		p_free(b);
	}
	return NULL;
}

static int
creators(void)
{
	pthread_t t[THREADS];
	unsigned first;
	unsigned last;

	begin_sources();
	first = create(node_of_arena[0]);
	flag_clear(&stop);
	start(t, creator);
	for (int i = 0; i < THREADS; i++)
		(void)pthread_join(t[i], NULL);
	last = create(node_of_arena[0]);
	/* No number was given twice, none left out. */
	if (last != first + THREADS * 100 + 1)
		return 2;
	return all_well("creators") ? 0 : 1;
}

static int
child_of_fork(void)
{
	unsigned a = create(node_of_arena[0]);
	void *p = api.alloc(a, 1000);
	uint64_t rng = tap.seed + 99;

	if (p == NULL || api.node_of(p) != node_of_arena[0] ||
	    api.move(a, node_of_arena[1]) != 0 ||
	    api.node_of(p) != node_of_arena[1])
		return 1;
	p_free(p);
	for (int i = 0; i < 5000; i++)
		step(tap_random(&rng));
	/* Blocks that threads had in hand are in nobody's slot. */
	end_sources();
	return all_well("child") ? 0 : 2;
}

static int
forks(void)
{
	pthread_t t[THREADS];
	char why[64];
	bool held = true;

	begin_sources();
	start(t, work);
	for (int i = 0; i < 12 && held; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			probe_child_begin(60);
			_exit(child_of_fork());
		}
		held = pid > 0 && probe_wait(pid, why, sizeof why);
		if (!held)
			tap_diag("child %d: %s", i, why);
	}
	finish(t);
	end_sources();
	return held && all_well("parent") ? 0 : 1;
}

static volatile sig_atomic_t signals;
static __thread bool working;
static __thread uint64_t in_handler;

static void
on_signal(int sig)
{
	int keep = errno;

	(void)sig;
	if (!working)
		return;
	for (int i = 0; i < 3; i++)
		step(tap_random(&in_handler));
	signals = signals + 1;
	errno = keep;
}

static void *
interrupted(void *arg)
{
	uint64_t rng = tap.seed + (uintptr_t)arg;

	in_handler = rng + 1000;
	working = true;
	while (!flag_is_set(&stop))
		for (int i = 0; i < 100; i++)
			step(tap_random(&rng));
	working = false;
	return NULL;
}

static int
handlers(void)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	pthread_t t[THREADS];
	uint64_t end;

	begin_sources();
	(void)sigaction(SIGUSR1, &sa, NULL);
	start(t, interrupted);
	end = probe_ns() + (uint64_t)(probe_seconds(1.5) * 1e9);
	/* On a busy machine a second is little. */
	for (unsigned i = 0; probe_ns() < end || signals < 500; i++) {
		(void)pthread_kill(t[i % THREADS], SIGUSR1);
		if (i % 16 == 0)
			(void)usleep(50);
	}
	finish(t);
	end_sources();
	return all_well("handlers") ? 0 : 1;
}

/* Each part under options, which are read at the start: a process each. */
static void
test_modes(char **argv)
{
	static const char *const conf[] = {"topology:2x1x1",
	    "topology:2x1x1,rseq:false", "topology:2x1x1,check:true",
	    "topology:2x1x1,disable_large_size_classes:false", "numa:off"};
	static const char *const part[] = {
	    "threads", "creators", "handlers", "forks"};
	static const char *const says[] = {
	    "arenas and malloc never mix, whoever frees",
	    "threads create arenas at once", "in signal handlers",
	    "in children of fork"};

	for (size_t i = 0; i < COUNT(conf); i++)
		for (size_t k = 0; k < COUNT(part); k++) {
			if (i > 2 && k > 0)
				continue;
			(void)setenv("EDDY_CONF", conf[i], 1);
			tap_ok(probe_again(argv, part[k], part[k]), "%s (%s)",
			    says[k], conf[i]);
		}
	(void)unsetenv("EDDY_CONF");
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *arg;
		int (*run)(void);
	} parts[] = {{"threads", threads}, {"creators", creators},
	    {"handlers", handlers}, {"forks", forks}};

	tap_begin(argv);
	if (!find_api())
		tap_skip_all("no arenas of eddy's here");
	for (size_t i = 0; i < COUNT(parts); i++)
		if (argc > 1 && strcmp(argv[1], parts[i].arg) == 0)
			return parts[i].run();
	tap_guard(240);
	test_modes(argv);
	return tap_end();
}
