/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * board.h - a value of many words that is replaced as a whole and read word by
 * word.
 *
 * Layer     data (L2).
 * Progress  take: wait-free, one try a slot.  show: lock-free: it goes round
 *           only where another value was shown.  look, same: wait-free; a
 *           reader that finds the value replaced reads again, and then another
 *           has shown one.
 * Memory    the words are the user's: 2 to 64 slots, laid out as he likes, of
 *           _Atomic words.  Slots are used again, never unmapped.
 *
 * Who has a new value takes a slot, writes it there in private, and shows it
 * by one CAS.  The slot of the old value is then free.  Readers hold nothing:
 * a word that was read is the shown value's if the same value is still shown
 * after.
 *
 * Who takes a slot draws a ticket first.  What is shown has the highest ticket
 * of all that was to be shown: a value that was begun later is not replaced by
 * one that was begun before, and the writer of that is content, for what he
 * saw when he began is in the later one.
 *
 * A thread killed between take and show costs its slot.  When all are lost
 * nothing new can be shown: -1.  tests/model/board.pml.
 *
 * Order pairs
 *   BOARD-R1 -> BOARD-A1  a slot's words, from who shows them to readers.
 *   BOARD-R2 -> BOARD-A2  a word of the slot's next owner, to a reader that is
 *                         late: who sees it sees that the value was replaced.
 *   BOARD-R3 -> BOARD-A3  what a writer saw before it drew its ticket, to who
 *                         drew a later one.
 *   BOARD-R4 -> BOARD-A4  a slot, from owner to owner.
 */
#ifndef EDDY_BOARD_H
#define EDDY_BOARD_H

#include "lib/base/atomic.h"
#include "lib/base/base.h"

#define EDDY_BOARD_MAX 64

struct eddy_board {
	/* Ticket * 64 + slot of what is shown; 0: nothing yet.
	 * W, R: any CPU.  O: BOARD-R1 -> BOARD-A1. */
	_Atomic uint64_t shown;
	/* A bit a slot.  W, R: any CPU, by RMW.  O: BOARD-R4 -> BOARD-A4. */
	_Atomic uint64_t taken;
	/* Drawn.  W, R: any CPU, by RMW.  O: BOARD-R3 -> BOARD-A3. */
	_Atomic uint64_t tickets;
};

struct eddy_board_turn {
	uint64_t ticket; /* from 1 */
	int slot;        /* -1: all are taken */
};

/* Draws a ticket, then takes one of n slots. */
struct eddy_board_turn eddy_board_take(struct eddy_board *b, unsigned n);

/* Shows what is in the slot, or leaves what has a higher ticket. */
void eddy_board_show(struct eddy_board *b, struct eddy_board_turn turn);

/* Gives a slot back that was not shown. */
void eddy_board_drop(struct eddy_board *b, struct eddy_board_turn turn);

/* What is shown; 0: nothing yet. */
static inline uint64_t
eddy_board_look(struct eddy_board *b)
{
	/* BOARD-A1: pairs with BOARD-R1. */
	return eddy_load_acquire(&b->shown);
}

static inline unsigned
eddy_board_slot(uint64_t shown)
{
	return (unsigned)(shown % EDDY_BOARD_MAX);
}

static inline uint64_t
eddy_board_ticket(uint64_t shown)
{
	return shown / EDDY_BOARD_MAX;
}

/* Words of a slot: so its owner writes them, and readers read them. */
static inline void
eddy_board_write(_Atomic uint64_t *word, uint64_t v)
{
	/* BOARD-R2: after the slot was taken, so after it was replaced. */
	eddy_store_release(word, v);
}

static inline uint64_t
eddy_board_read(_Atomic uint64_t *word)
{
	/* BOARD-A2: before the second look. */
	return eddy_load_acquire(word);
}

/* Whether what eddy_board_read gave since is of the value looked at. */
static inline bool
eddy_board_same(struct eddy_board *b, uint64_t shown)
{
	/* relaxed: BOARD-A2 orders it after the words. */
	return eddy_load_relaxed(&b->shown) == shown;
}

#endif /* EDDY_BOARD_H */
