/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/data/board.h"

static void
free_slot(struct eddy_board *b, unsigned slot)
{
	/* BOARD-R4: all that was done with it. */
	(void)eddy_and_release(&b->taken, ~((uint64_t)1 << slot));
}

struct eddy_board_turn
eddy_board_take(struct eddy_board *b, unsigned n)
{
	struct eddy_board_turn t = {.slot = -1};

	/* BOARD-R3 and BOARD-A3: what comes before it, to all that come later.
	 */
	t.ticket = eddy_add_acq_rel(&b->tickets, 1) + 1;
	for (unsigned i = 0; i < n; i++) {
		uint64_t bit = (uint64_t)1 << i;

		/* relaxed: a guess that the RMW checks. */
		if ((eddy_load_relaxed(&b->taken) & bit) != 0)
			continue;
		/* BOARD-A4: pairs with BOARD-R4. */
		if ((eddy_or_acquire(&b->taken, bit) & bit) == 0) {
			t.slot = (int)i;
			break;
		}
	}
	return t;
}

void
eddy_board_drop(struct eddy_board *b, struct eddy_board_turn turn)
{
	free_slot(b, (unsigned)turn.slot);
}

void
eddy_board_show(struct eddy_board *b, struct eddy_board_turn turn)
{
	uint64_t mine = turn.ticket * EDDY_BOARD_MAX + (unsigned)turn.slot;
	uint64_t seen = eddy_board_look(b);

	do {
		if (eddy_board_ticket(seen) > turn.ticket) {
			eddy_board_drop(b, turn);
			return;
		}
		/* BOARD-R1: the words.  BOARD-A1: those of the old slot. */
	} while (!eddy_cas_acq_rel(&b->shown, &seen, mine));
	if (seen != 0)
		free_slot(b, eddy_board_slot(seen));
}
