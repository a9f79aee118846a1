/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * control.h - the channel by which other processes see and steer this one:
 * option `control`.
 *
 * Layer     ctl (L5).
 * Progress  blocking in libc and the kernel; no thread of the program waits for
 *           the channel's, and nothing on any path of malloc knows of it.
 * Memory    static, and one shared page (control_page.h); no allocation.  A
 *           request is a line of EDDY_CONTROL_LINE bytes at most; of
 *           EDDY_CONTROL_CLIENTS connections each has one, others wait in the
 *           kernel's queue of 16; an answer is sent as it is made.
 * Context   load, note_thread: threads, not signal handlers.
 *
 * One thread, "eddy_control", with all signals blocked, on CPUs that are not to
 * be left alone, sleeps in ppoll until somebody connects or the page is
 * EDDY_CONTROL_EVERY ms old.  Who has not sent his line EDDY_CONTROL_WAIT ms
 * after he was accepted, or is waited for longer than that while he takes the
 * answer, is cut off.
 *
 * Where it is.  `control:auto` binds a socket in the first directory of a list
 * that takes one, opens its name (O_PATH) and unlinks it at once: the open name
 * is what others connect to, as /proc/PID/fd/N, from any mount, network or pid
 * namespace that sees the process.  So nothing is left behind, however the
 * process ends or whatever it executes.  Where no directory takes a socket it
 * has an abstract name.  `control:PATH` keeps the name PATH besides, is removed
 * at exit, replaces what nobody listens to any more, and stays another's while
 * he listens: then it is as auto.
 *
 * After fork a child has no channel until it starts its own, without a name
 * unless its parent is no more: with its first thread; or, if its parent never
 * had any but the library's, at once, by a handler of pthread_atfork, whose
 * thread waits EDDY_CONTROL_DELAY ms first, so that who forks to execute has
 * none.  A word that the kernel wipes at fork says whose a channel is.
 *
 * A program that closes descriptors which are not its own closes these; they
 * are told by device and inode before each use, and opened anew.
 *
 * Protocol, version 1: a connection is for one request, a line of words:
 *   eddy1 hello                   version, pid
 *   eddy1 get NAME...             of mallctl(3): a line "NAME TYPE VALUE" each,
 *                                 or "NAME ! ERRNO"
 *   eddy1 set NAME VALUE          VALUE is the rest of the line
 *   eddy1 call NAME               an action
 *   eddy1 print [LETTERS]         malloc_stats_print(3)
 *   eddy1 flows                   of that, in JSON, what flows between CPUs
 *   eddy1 map                     a line for each accessible chunk: number,
 *                                 arena or -, node or -, kind (cut into pages,
 *                                 huge block, free), bytes in use, dirty,
 *                                 muzzy, chunks that it stands for, and of
 *                                 each size class SIZE:SLABS:LIVE:FREE
 *   eddy1 purge|idle|freeze|thaw  as eddy_purge_now(3) and its kin; purge says
 *                                 how many bytes
 * The answer is "ok" or "error ERRNO WORDS" and a newline, what was asked for,
 * and one byte of zero: an answer without it was cut short.  Names of thread.*
 * are refused, for no thread of the program answers; so are names whose values
 * are pointers of the program's own.
 *
 * A thread killed here: the channel is gone, nothing else.
 *
 * Order pairs
 *   CTL-R1 -> CTL-A1  what is constant in the page, to other processes.
 *   CTL-R2 -> CTL-A2  the socket || that the main thread has ended: store-load,
 *                     of the two at least one sees the other.
 *   CTL-R3 -> CTL-A3  the word that the kernel wipes, from who mapped it.
 *   CTL-R4 -> CTL-A4  the path, from who gave it to the socket to who ends the
 *                     process.
 */
#ifndef EDDY_CONTROL_H
#define EDDY_CONTROL_H

#include "lib/heap/heap.h"

#define EDDY_CONTROL_LINE    1024
#define EDDY_CONTROL_CLIENTS 8
#define EDDY_CONTROL_WAIT    1000 /* ms */
#define EDDY_CONTROL_DELAY   100  /* ms */

/* Opens the channel if the options want one: before main. */
void eddy_control_load(struct eddy_heap *h);

/* The program has created a thread: a forked child opens its own. */
void eddy_control_note_thread(struct eddy_heap *h);

/*
 * eddy_control_serve - control_serve.c, for control.c: answers one request.
 *
 * line: n bytes, the newline not among them, and one more.
 */
void eddy_control_serve(struct eddy_heap *h, int fd, char *line, size_t n);

/* control_map.c, for control_serve.c: the lines of a map. */
struct eddy_text;
void eddy_control_map(struct eddy_heap *h, struct eddy_text *t);

/* Answers who may not ask. */
void eddy_control_refuse(int fd, int err, const char *why);

#endif /* EDDY_CONTROL_H */
