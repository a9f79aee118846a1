/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/ctl/thread_end.h"

#include <pthread.h>

#include "lib/heap/own.h"
#include "lib/heap/region.h"

/*
 * Key of a word by which libc tells of a thread's end, plus 1.
 * W: who wants the first.  R: any.  O: none: a number.
 */
static _Atomic uint64_t end_key;

/* Whether libc will tell. */
static __thread bool watched;

static void
at_end(void *arg)
{
	(void)arg;
	watched = false;
	eddy_region_end_thread();
	eddy_own_bind(eddy_heap_peek(), NULL);
}

void
eddy_ctl_watch_thread_end(void)
{
	/* relaxed, all: a number. */
	uint64_t v = eddy_load_relaxed(&end_key);
	pthread_key_t key;

	if (eddy_likely(watched))
		return;
	if (v == 0 && pthread_key_create(&key, at_end) == 0 &&
	    !eddy_cas_relaxed(&end_key, &v, (uint64_t)key + 1))
		(void)pthread_key_delete(key);
	v = eddy_load_relaxed(&end_key);
	/* Without it the thread stays bound when it has ended. */
	watched = v != 0 &&
		  pthread_setspecific((pthread_key_t)(v - 1), &eddy_own) == 0;
}
