/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * thread.h - threads of libc's making, for the library itself.
 *
 * Layer     os (L1); may include base and arch.
 * Progress  blocking: libc has locks of its own for these, and may allocate.
 *           Never called from malloc's family.
 * Context   threads, not signal handlers.
 *
 * The library puts a pthread_create of its own before libc's
 * (lib/front/threads.c); these go past it.
 */
#ifndef EDDY_OS_THREAD_H
#define EDDY_OS_THREAD_H

#include <pthread.h>

#include "lib/base/base.h"

/*
 * eddy_os_thread_next - what stands behind the library's own function of that
 * name: libc's, or that of another library; NULL: nothing.
 */
void *eddy_os_thread_next(const char *name);

/*
 * eddy_os_thread_create - pthread_create(3), the next.
 *
 * Returns: as that one; ENOSYS: a static program without threads.
 */
int eddy_os_thread_create(
    pthread_t *t, const pthread_attr_t *attr, void *(*run)(void *), void *arg);

/*
 * eddy_os_thread_start - a joinable thread with room for `stack` bytes of stack
 * beside what libc and the thread-local storage of the process take of it.
 *
 * Returns: 0, or a negative errno value.
 */
EDDY_MUST_USE int eddy_os_thread_start(
    pthread_t *t, size_t stack, void *(*run)(void *), void *arg);

/* Waits for the end of a thread; not cancelled meanwhile. */
void eddy_os_thread_join(pthread_t t);

/* Calls fn(arg) when the calling thread ends, by pthread_exit or cancellation;
 * for the main thread not when the process exits. */
EDDY_MUST_USE int eddy_os_thread_at_end(void (*fn)(void *), void *arg);

#endif /* EDDY_OS_THREAD_H */
