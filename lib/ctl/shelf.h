/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shelf.h - boards (board.h) whose values have a head and a part for each of a
 * number of places that grows.
 *
 * Layer     ctl (L5).
 * Progress  take: wait-free but for page faults and system calls.  show, read:
 *           as board.h; a reader reads again only where a value came between.
 * Memory    up to 64 buffers, one for what is shown and one for each thread
 *           that makes a new one; mapped when needed, never unmapped.  A buffer
 *           that has become too small is replaced by one of at least twice its
 *           size; its memory goes back, its addresses stay.
 * Context   any thread, signal handlers, after fork.
 * A thread killed between take and show costs the buffer in its hand.
 */
#ifndef EDDY_SHELF_H
#define EDDY_SHELF_H

#include "lib/data/board.h"

struct eddy_shelf_buffer;

struct eddy_shelf {
	/* Constant: bytes of what its owner works with, of the head, of a
	 * place; multiples of 8. */
	size_t work;
	size_t head;
	size_t place;
	struct eddy_board board;
	/* By slot.  W: who has the slot in hand.  R: any.  O: SNAP-R1 ->
	 * SNAP-A1. */
	_Atomic(struct eddy_shelf_buffer *) buffers[EDDY_BOARD_MAX];
};

/* A new value in hand. */
struct eddy_shelf_turn {
	struct eddy_shelf *shelf;
	struct eddy_shelf_buffer *buffer;
	struct eddy_board_turn turn;
};

/* Returns: 0, or -EAGAIN: no memory, or 63 others are at it. */
EDDY_MUST_USE int eddy_shelf_take(
    struct eddy_shelf *s, uint32_t n_places, struct eddy_shelf_turn *ret);

/* What its owner may use until it is shown: of any content. */
void *eddy_shelf_work(const struct eddy_shelf_turn *t);

/* Structs of words alone: of the head, of a place. */
void eddy_shelf_put(struct eddy_shelf_turn *t, const void *head);
void eddy_shelf_put_place(
    struct eddy_shelf_turn *t, uint32_t place, const void *from);

void eddy_shelf_show(struct eddy_shelf_turn *t);

/* The number of the value shown, from 1; 0: there is none yet. */
uint64_t eddy_shelf_shown(struct eddy_shelf *s);

/*
 * A word at a multiple of 8 bytes in the head, in a place (0: it has not that
 * place).  Pre: a value is shown.
 */
uint64_t eddy_shelf_read(struct eddy_shelf *s, size_t offset);
uint64_t eddy_shelf_read_place(
    struct eddy_shelf *s, uint32_t place, size_t offset);

#endif /* EDDY_SHELF_H */
