/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * thread_end.h - what a thread has of its own ends with it.
 *
 * Layer     ctl (L5).
 * Progress  lock-free; libc's part of it is a word of TLS.
 *
 * libc tells of threads that return or call pthread_exit; not of those that are
 * killed.
 */
#ifndef EDDY_THREAD_END_H
#define EDDY_THREAD_END_H

/* The calling thread will be unbound, and leave its regions, when it ends. */
void eddy_ctl_watch_thread_end(void);

#endif /* EDDY_THREAD_END_H */
