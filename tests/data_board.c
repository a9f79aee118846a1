/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * data_board.c - values shown on a board, by threads that yield at any word:
 * what a reader believes is one value, and no older than what was shown before
 * it looked.  The room alone, under any malloc.
 */
#include "probe.h"

#include "lib/data/board.h"

enum { WRITERS = 3, WORDS = 32, SLOTS = 5, ROUNDS = 3000 };

static struct eddy_board board;
/* Word i < WRITERS: what the writer saw of writer i's count; the rest follows
 * from these. */
static _Atomic uint64_t words[SLOTS][WORDS];

static _Atomic uint64_t count[WRITERS];
/* Counts that shows have made good: at least so many are in what is shown. */
static _Atomic uint64_t promised[WRITERS];
static _Atomic unsigned torn;
static _Atomic unsigned stale;
static _Atomic unsigned lost;
static struct flag over;

static void
pause_at(uint64_t *rng)
{
	if (tap_random(rng) % 16 == 0)
		(void)sched_yield();
}

static uint64_t
rest(const uint64_t *seen, unsigned i)
{
	uint64_t v = i;

	for (unsigned k = 0; k < WRITERS; k++)
		v = v * 31 + seen[k];
	return v;
}

static void
show(unsigned me, uint64_t *rng)
{
	uint64_t seen[WRITERS];
	struct eddy_board_turn t;
	uint64_t mine = atomic_load(&count[me]) + 1;

	atomic_store(&count[me], mine);
	t = eddy_board_take(&board, SLOTS);
	if (t.slot < 0) {
		atomic_fetch_add(&lost, 1);
		return;
	}
	for (unsigned k = 0; k < WRITERS; k++) {
		pause_at(rng);
		seen[k] = atomic_load(&count[k]);
	}
	for (unsigned i = 0; i < WORDS; i++) {
		pause_at(rng);
		eddy_board_write(
		    &words[t.slot][i], i < WRITERS ? seen[i] : rest(seen, i));
	}
	pause_at(rng);
	eddy_board_show(&board, t);
	atomic_store(&promised[me], mine);
}

static void *
writer(void *arg)
{
	unsigned me = (unsigned)(uintptr_t)arg;
	uint64_t rng = tap.seed + me;

	for (unsigned i = 0; i < ROUNDS; i++)
		show(me, &rng);
	return NULL;
}

/* Whether what was looked at was still shown after. */
static bool
read_once(uint64_t *rng)
{
	uint64_t least[WRITERS];
	uint64_t seen[WORDS];
	uint64_t shown;

	for (unsigned k = 0; k < WRITERS; k++)
		least[k] = atomic_load(&promised[k]);
	shown = eddy_board_look(&board);
	if (shown == 0)
		return false;
	for (unsigned i = 0; i < WORDS; i++) {
		pause_at(rng);
		seen[i] = eddy_board_read(&words[eddy_board_slot(shown)][i]);
	}
	if (!eddy_board_same(&board, shown))
		return false;
	for (unsigned k = 0; k < WRITERS; k++)
		if (seen[k] < least[k])
			atomic_fetch_add(&stale, 1);
	for (unsigned i = WRITERS; i < WORDS; i++)
		if (seen[i] != rest(seen, i)) {
			atomic_fetch_add(&torn, 1);
			break;
		}
	return true;
}

static void *
reader(void *arg)
{
	uint64_t rng = tap.seed ^ 77;
	uintptr_t n = 0;

	(void)arg;
	while (!flag_is_set(&over))
		n += read_once(&rng);
	return (void *)n;
}

int
main(void)
{
	const char *seed = getenv("EDDY_SEED");
	pthread_t w[WRITERS];
	pthread_t r[2];
	uintptr_t believed = 0;
	uint64_t rng = 1;
	void *n;

	tap.pid = getpid();
	tap.seed = (uint64_t)getpid();
	if (seed != NULL && *seed != '\0')
		tap.seed = strtoull(seed, NULL, 0);
	tap_diag("EDDY_SEED=%llu", (unsigned long long)tap.seed);
	tap_guard(120);
	tap_ok(eddy_board_look(&board) == 0, "at first nothing is shown");
	for (unsigned i = 0; i < WRITERS; i++)
		(void)pthread_create(&w[i], NULL, writer, (void *)(uintptr_t)i);
	for (unsigned i = 0; i < 2; i++)
		(void)pthread_create(&r[i], NULL, reader, NULL);
	for (unsigned i = 0; i < WRITERS; i++)
		(void)pthread_join(w[i], NULL);
	flag_set(&over);
	for (unsigned i = 0; i < 2; i++) {
		(void)pthread_join(r[i], &n);
		believed += (uintptr_t)n;
	}
	tap_ok(read_once(&rng), "what is shown last stays");
	tap_ok(torn == 0 && believed > 100, "%zu values were read whole",
	    (size_t)believed);
	tap_ok(stale == 0, "what was shown is never taken back");
	tap_ok(lost == 0 && __builtin_popcountll(board.taken) == 1,
	    "no slot is lost");
	/* Slots in dead hands. */
	for (unsigned i = 0; i < SLOTS - 1; i++)
		if (eddy_board_take(&board, SLOTS).slot < 0)
			tap_bail("no slot left");
	tap_ok(eddy_board_take(&board, SLOTS).slot == -1 && read_once(&rng),
	    "when all are lost, what is shown can be read");
	return tap_end();
}
