/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * control_page.h - figures of a process in a page that others read: also those
 * of a process that hangs or is stopped.
 *
 * Layer     ctl (L5).
 * Progress  refresh: O(arenas + rows of CPUs in use), some microseconds.
 *           Readers, in other processes: lock-free.
 * Memory    a page of shared memory, found as the link
 *           "/memfd:eddy-control (deleted)" in /proc/PID/fd.
 * Context   the control thread alone writes (control.h); anybody reads.
 *
 * Names of the words stand in the page, in their order, so that a reader of
 * another version finds those it knows.  The words of one refresh belong
 * together: a board of two slots (lib/data/board.h).  They are as old as `time`
 * says: no older than EDDY_CONTROL_EVERY ms while the process runs.
 */
#ifndef EDDY_CONTROL_PAGE_H
#define EDDY_CONTROL_PAGE_H

#include "lib/data/board.h"

#define EDDY_CONTROL_FILE    "eddy-control"
#define EDDY_CONTROL_MAGIC   0x314c544359444445u /* "EDDYCTL1" */
#define EDDY_CONTROL_SIZE    ((size_t)4096)
#define EDDY_CONTROL_EVERY   10000 /* ms between two refreshes at most */
#define EDDY_CONTROL_N_WORDS 64    /* room for so many */
#define EDDY_CONTROL_NAMES   640

/* Bytes, where nothing else is said; as in malloc_stats_print(3). */
#define EDDY_CONTROL_WORDS(X)                                            \
	X(time) /* ms of CLOCK_MONOTONIC */                              \
	X(live)                                                          \
	X(stranded)                                                      \
	X(stranded_bound)                                                \
	X(active)                                                        \
	X(dirty)                                                         \
	X(muzzy)                                                         \
	X(metadata)                                                      \
	X(resident)                                                      \
	X(mapped)                                                        \
	X(retained)                                                      \
	X(row_bytes)                                                     \
	X(remote_row_bytes)                                              \
	X(ring_bytes)                                                    \
	X(cell_bytes)                                                    \
	X(purged)                                                        \
	X(purges)  /* calls */                                           \
	X(refused) /* of these */                                        \
	X(cpus)    /* in use */                                          \
	X(homes)                                                         \
	X(arenas)                                                        \
	X(background_threads)                                            \
	X(frozen)        /* 0 or 1 */                                    \
	X(frozen_growth) /* times */                                     \
	X(requests)      /* answered by the control thread */            \
	X(objects_at)    /* addresses: the first, and behind the last */ \
	X(objects_end)                                                   \
	X(fixed_at) /* of caches and metadata, but for arenas' own */    \
	X(fixed_end)

struct eddy_control_page {
	/* Constant from CTL-R1 on; W: control thread. */
	uint32_t pid;   /* in the process's own pid namespace */
	int32_t socket; /* number in /proc/PID/fd of what to connect to;
			   -1: `name`, in the process's network namespace */
	uint32_t n_words;
	uint32_t n_slots;
	char version[32];
	char name[112]; /* of the socket: a path or, with a "@", abstract */
	char names[EDDY_CONTROL_NAMES]; /* of the words, a blank between */
	/*
	 * EDDY_CONTROL_MAGIC once all above is there, 0 before.
	 * W: control thread.  R: other processes.  O: CTL-R1 -> CTL-A1.
	 */
	_Atomic uint64_t magic;
	/* W: control thread.  R: other processes.  O: BOARD-R1 -> BOARD-A1. */
	struct eddy_board board;
	_Atomic uint64_t slot[2][EDDY_CONTROL_N_WORDS];
};

static_assert(sizeof(struct eddy_control_page) <= EDDY_CONTROL_SIZE, "a page");

/* For readers: whether it is such a page, and whole. */
static inline bool
eddy_control_page_is(struct eddy_control_page *p)
{
	/* CTL-A1: pairs with CTL-R1. */
	return eddy_load_acquire(&p->magic) == EDDY_CONTROL_MAGIC;
}

struct eddy_heap;

/* Fills in what is constant, and shows it. */
void eddy_control_page_begin(
    struct eddy_control_page *p, int socket, const char *name);

/* Shows the figures of now. */
void eddy_control_page_refresh(
    struct eddy_control_page *p, struct eddy_heap *h, uint64_t n_requests);

#endif /* EDDY_CONTROL_PAGE_H */
