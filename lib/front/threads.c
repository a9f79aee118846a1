/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * threads.c - notices that the program creates threads; housekeeping by hand.
 *
 * Layer     front (L6).
 * Progress  as pthread_create(3) and thrd_create(3), and once a process a
 *           second thread; eddy_housekeep: lock-free but for system calls.
 *
 * The linker of the shared library calls the first two pthread_create and
 * thrd_create (lib/module.mk.am).  The archive has no such names, since a
 * static libc's own would clash with them: a program that has libeddy.a inside
 * starts background threads by option or call only.
 */
#include "eddy/eddy.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <threads.h>

#include "lib/ctl/background.h"
#include "lib/ctl/control.h"
#include "lib/front/front.h"
#include "lib/heap/arena.h"
#include "lib/heap/reclaim.h"
#include "lib/heap/region.h"
#include "lib/os/os.h"
#include "lib/os/thread.h"
#include "lib/prof/sample.h"

EDDY_EXPORT int eddy_thread_create(
    pthread_t *t, const pthread_attr_t *attr, void *(*run)(void *), void *arg);
EDDY_EXPORT int eddy_thread_create_c11(thrd_t *t, thrd_start_t run, void *arg);

static void
note_thread(void)
{
	struct eddy_heap *h = eddy_heap_peek();

	eddy_pressure_note_thread();
	if (h == NULL)
		return;
	eddy_background_note_thread(h);
	eddy_control_note_thread(h);
}

int
eddy_thread_create(
    pthread_t *t, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
	/* What libc lays out for a thread outlives any region. */
	struct eddy_scope *scope = eddy_region_step_out();
	int err = eddy_os_thread_create(t, attr, run, arg);

	if (err == 0)
		note_thread();
	eddy_region_step_in(scope);
	return err;
}

/* glibc's makes its threads without pthread_create. */
int
eddy_thread_create_c11(thrd_t *t, thrd_start_t run, void *arg)
{
	int (*next)(thrd_t *, thrd_start_t, void *) = (int (*)(
	    thrd_t *, thrd_start_t, void *))eddy_os_thread_next("thrd_create");
	struct eddy_scope *scope = eddy_region_step_out();
	int err = next != NULL ? next(t, run, arg) : thrd_error;

	if (err == thrd_success)
		note_thread();
	eddy_region_step_in(scope);
	return err;
}

EDDY_EXPORT int
eddy_housekeep(void)
{
	struct eddy_heap *h = eddy_heap_peek();
	uint64_t due;

	if (h == NULL)
		return -1;
	due = eddy_reclaim_step(
	    h, 0, 1, eddy_os_milliseconds(), EDDY_RECLAIM_BATCH);
	if (due == EDDY_NEVER)
		return -1;
	return due < INT_MAX ? (int)due : INT_MAX;
}

/*
 * background_thread: before main, or when the library is loaded late.  Without
 * options there is nothing to be done, and no heap to be built for it.  A heap
 * that is built early has its arena early: what the program may limit before it
 * allocates, addresses above all, must find both or none.
 */
__attribute__((constructor)) static void
at_load(void)
{
	struct eddy_heap *h = eddy_heap_peek();

	eddy_background_load();
	if (h == NULL && eddy_conf_given())
		h = eddy_heap();
	if (h != NULL)
		(void)eddy_arena_of_home(h, 0);
	if (h != NULL)
		eddy_prof_begin(h);
	if (h != NULL && h->opts.background_thread)
		(void)eddy_background_start(h);
	if (h != NULL)
		eddy_control_load(h);
}
