/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ctl_background.c - background threads from inside: started, stopped, woken.
 * Here pthread_create is libc's, so they come and go by these calls alone.
 */
#include "tests/tasks.h"

#include "lib/ctl/background.h"
#include "lib/heap/arena.h"
#include "lib/heap/reclaim.h"
#include "lib/heap/wake.h"
#include "lib/heap/warm.h"
#include "lib/os/os.h"

/* Three homes; nothing is ever due. */
const char *malloc_conf =
    "topology:3x1x1,dirty_decay_ms:-1,muzzy_decay_ms:-1,idle_purge_ms:-1";

static struct eddy_heap *h;

static struct eddy_worker *
worker(unsigned i)
{
	return &eddy_wake_peek(h)->worker[i];
}

static uint64_t
steps(unsigned i)
{
	return eddy_load_relaxed(&worker(i)->steps);
}

static bool
is_asleep(unsigned i)
{
	return eddy_load_relaxed(&worker(i)->word) ==
	       (EDDY_WAKE_RUNS | EDDY_WAKE_ASLEEP);
}

/* The kernel may show a thread that was joined for a moment yet. */
static bool
all_gone(void)
{
	for (unsigned k = 0; k < 5000 * tap_patience() && tasks_look().n != 1;
	     k++)
		(void)usleep(1000);
	return tasks_look().n == 1 && !eddy_wake_served(h) &&
	       !eddy_background_on(h);
}

/* Until all three have nothing to do; 5 seconds at most, times patience.
 */
static bool
all_asleep(void)
{
	for (unsigned k = 0; k < 5000 * tap_patience(); k++) {
		if (is_asleep(0) && is_asleep(1) && is_asleep(2))
			return true;
		(void)usleep(1000);
	}
	return false;
}

static bool
goes_on(unsigned i, uint64_t from)
{
	for (unsigned k = 0; k < 50000 * tap_patience(); k++) {
		if (steps(i) > from)
			return true;
		(void)usleep(k < 1000 ? 10 : 1000);
	}
	return false;
}

static void
test_cycles(void)
{
	bool held = true;

	tap_ok(!eddy_wake_served(h) && !eddy_background_on(h), "none at first");
	eddy_background_stop(h);
	tap_ok(all_gone(), "there may be none to stop");
	for (int k = 0; held && k < 30; k++) {
		held = eddy_background_start(h) == 0 &&
		       eddy_background_start(h) == 0 && eddy_background_on(h);
		if (k % 3 == 0)
			held =
			    held && tasks_wait(3).n == 4 && eddy_wake_served(h);
		eddy_background_stop(h);
		held = held && !eddy_wake_served(h) && all_gone();
	}
	tap_ok(held, "threads come, once each, and go before stop returns");
}

static void
test_wish(void)
{
	pid_t pid;
	char why[64];

	eddy_background_note_thread(h);
	tap_ok(tasks_wait(0).n == 1, "what was stopped stays away");
	pid = fork();
	if (pid == 0) {
		eddy_background_note_thread(h);
		(void)usleep(50000);
		_exit(tasks_look().n == 1 ? 0 : 1);
	}
	tap_ok(
	    probe_wait(pid, why, sizeof why), "from children as well: %s", why);
	tap_ok(eddy_background_start(h) == 0 && tasks_wait(3).n == 4,
	    "until it is started");
	pid = fork();
	if (pid == 0) {
		if (eddy_wake_served(h) || eddy_background_on(h))
			_exit(1);
		eddy_wake(h, 0);
		eddy_background_note_thread(h);
		_exit(tasks_wait(3).n == 4 ? 0 : 2);
	}
	tap_ok(
	    probe_wait(pid, why, sizeof why), "a child gets its own: %s", why);
}

static void
test_wake(void)
{
	uint64_t before[3];
	uint64_t calls;
	bool held = true;

	tap_ok(all_asleep(), "all sleep");
	for (unsigned i = 0; i < 3; i++)
		before[i] = steps(i);
	calls = eddy_load_relaxed(&worker(1)->calls);
	eddy_wake(h, 1);
	tap_ok(goes_on(1, before[1]) && all_asleep() &&
		   eddy_load_relaxed(&worker(1)->calls) == calls + 1,
	    "a call wakes the one of its home");
	tap_ok(steps(0) == before[0] && steps(2) == before[2], "and no other");
	eddy_wake(h, 4);
	tap_ok(goes_on(1, before[1] + 1) && all_asleep(),
	    "homes are divided among them");
	for (unsigned i = 0; i < 3; i++)
		before[i] = steps(i);
	eddy_wake_by(h, 2, UINT64_MAX);
	(void)usleep(100000);
	tap_ok(steps(2) == before[2], "one that would wake in time is spared");
	eddy_wake_by(h, 2, 0);
	tap_ok(goes_on(2, before[2]) && all_asleep(), "else it is not");

	/* A look follows each call, whatever it finds the worker at. */
	for (int k = 0; held && k < 3000; k++) {
		uint64_t seen = steps((unsigned)k % 3);

		eddy_wake(h, (uint32_t)k % 3);
		held = goes_on((unsigned)k % 3, seen);
	}
	tap_ok(held, "no call is lost");
}

/* One that sleeps until a time wakes then, and not before. */
static void
test_alarm(void)
{
	static struct eddy_worker me;
	uint64_t now = eddy_os_milliseconds();
	uint64_t after;

	eddy_wake_look(&me);
	eddy_wake_sleep(&me, now + 50);
	after = eddy_os_milliseconds();
	tap_ok(after >= now + 50 && eddy_load_relaxed(&me.alarms) == 1 &&
		   eddy_load_relaxed(&me.sleeps) == 1,
	    "a sleep ends at its time");
	eddy_wake_look(&me);
	eddy_wake_stop(&me);
	eddy_wake_sleep(&me, UINT64_MAX);
	tap_ok(eddy_load_relaxed(&me.sleeps) == 1,
	    "who was called since it looked does not sleep");
}

/* When the first of them would wake by itself. */
static uint64_t
first_alarm(void)
{
	uint64_t first = UINT64_MAX;

	for (unsigned i = 0; i < 3; i++) {
		uint64_t until = eddy_load_acquire(&worker(i)->until);

		first = until < first ? until : first;
	}
	return first;
}

static void
decay(int64_t ms)
{
	for (uint32_t i = 0; i < h->n_homes; i++)
		eddy_reclaim_decay(h, eddy_arena_of_home(h, i), ms, -1);
}

/* Minutes are between two steps: only a call ends such a sleep here. */
static void
test_freeze(void)
{
	void *p;
	uint64_t before;
	bool held;

	decay(10000000);
	p = malloc((size_t)64 << 20);
	if (p == NULL)
		tap_bail("no memory");
	for (size_t i = 0; i < (size_t)64 << 20; i += 4096)
		((volatile char *)p)[i] = 1;
	free(p);
	for (unsigned k = 0;
	     k < 5000 * tap_patience() && first_alarm() == UINT64_MAX; k++) {
		eddy_wake(h, k % 3);
		(void)usleep(1000);
	}
	tap_ok(all_asleep() && first_alarm() != UINT64_MAX,
	    "one sleeps until its next step");
	before = steps(0) + steps(1) + steps(2);
	eddy_warm_freeze(h);
	for (unsigned k = 0;
	     k < 5000 * tap_patience() && first_alarm() != UINT64_MAX; k++)
		(void)usleep(1000);
	held = all_asleep() && first_alarm() == UINT64_MAX;
	tap_ok(held && steps(0) + steps(1) + steps(2) <= before + 3,
	    "of a frozen heap it sleeps for ever, at once");
	eddy_warm_thaw(h);
	for (unsigned k = 0;
	     k < 5000 * tap_patience() && first_alarm() == UINT64_MAX; k++)
		(void)usleep(1000);
	tap_ok(first_alarm() != UINT64_MAX, "thawed, it goes on");
	decay(-1);
}

static struct flag stop;

static void *
call_on(void *arg)
{
	uint64_t rng = tap.seed + (uintptr_t)arg;

	while (!flag_is_set(&stop)) {
		uint64_t r = tap_random(&rng);

		if (r % 8 == 0)
			(void)eddy_background_start(h);
		else if (r % 8 == 1)
			eddy_background_stop(h);
		else
			eddy_wake(h, (uint32_t)(r >> 8) % 3);
	}
	return NULL;
}

static void
test_together(void)
{
	enum { THREADS = 4 };
	pthread_t t[THREADS];
	bool held;

	flag_clear(&stop);
	for (uintptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, call_on, (void *)i) != 0)
			tap_bail("no thread");
	(void)usleep((useconds_t)(probe_seconds(1) * 1e6));
	flag_set(&stop);
	for (int i = 0; i < THREADS; i++)
		(void)pthread_join(t[i], NULL);
	eddy_background_stop(h);
	held = all_gone();
	held = held && eddy_background_start(h) == 0 && tasks_wait(3).n == 4;
	tap_ok(held, "starts, stops and calls at the same time");
}

int
main(int argc, char **argv)
{
	(void)argc;
	(void)unsetenv("EDDY_SO"); /* the heap is linked in */
	tap_begin(argv);
	tap_guard(100);
	h = eddy_heap();
	if (h == NULL || h->n_homes != 3)
		tap_bail("not three homes");
	test_cycles();
	test_wish();
	test_wake();
	test_alarm();
	test_freeze();
	test_together();
	eddy_background_stop(h);
	tap_ok(all_gone(), "all ended");
	return tap_end();
}
