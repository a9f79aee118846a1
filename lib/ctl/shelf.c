/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/ctl/shelf.h"

#include <errno.h>

#include "lib/os/os.h"

/* Then follow what its owner works with, the head, the places. */
struct eddy_shelf_buffer {
	/* W, R: who has the slot in hand. */
	size_t size;  /* addresses */
	size_t ready; /* of these, accessible */
	/* W: the same.  R: any.  O: BOARD-R1 -> BOARD-A1, BOARD-R2 ->
	 * BOARD-A2; so are the words of head and places. */
	_Alignas(EDDY_CACHELINE) _Atomic uint64_t n_places;
};

static _Atomic uint64_t *
head_of(const struct eddy_shelf *s, struct eddy_shelf_buffer *b)
{
	return (_Atomic uint64_t *)(void *)((char *)(b + 1) + s->work);
}

static _Atomic uint64_t *
place_of(
    const struct eddy_shelf *s, struct eddy_shelf_buffer *b, uint32_t place)
{
	return head_of(s, b) + (s->head + place * s->place) / 8;
}

static size_t
bytes_for(const struct eddy_shelf *s, uint32_t n_places)
{
	return eddy_align_up(sizeof(struct eddy_shelf_buffer) + s->work +
				 s->head + (size_t)n_places * s->place,
	    eddy_os_page_size());
}

static struct eddy_shelf_buffer *
map(size_t ready, size_t size)
{
	struct eddy_shelf_buffer *b = eddy_os_reserve(size);

	if (b == NULL)
		return NULL;
	if (eddy_os_commit(b, ready) == 0) {
		b->size = size;
		b->ready = ready;
		return b;
	}
	eddy_os_unmap(b, size);
	return NULL;
}

/* A buffer of the slot's with room for so many places. */
static struct eddy_shelf_buffer *
buffer_of(struct eddy_shelf *s, unsigned slot, uint32_t n_places)
{
	/* relaxed: in hand. */
	struct eddy_shelf_buffer *b = eddy_load_relaxed(&s->buffers[slot]);
	size_t need = bytes_for(s, n_places);
	uint32_t room = 64;
	struct eddy_shelf_buffer *larger;

	if (b != NULL && need <= b->ready)
		return b;
	if (b != NULL && need <= b->size) {
		if (eddy_os_commit(b, need) != 0)
			return NULL;
		b->ready = need;
		return b;
	}
	while (room < n_places)
		room *= 2;
	larger = map(need, bytes_for(s, room));
	if (larger == NULL)
		return NULL;
	/* Late readers still read there: zeros that they do not believe. */
	if (b != NULL && eddy_os_discard(b, b->ready) != 0) {
		/* Its memory stays, too. */
	}
	/* SNAP-R1: it is accessible, as far as its words will say. */
	eddy_store_release(&s->buffers[slot], larger);
	return larger;
}

int
eddy_shelf_take(
    struct eddy_shelf *s, uint32_t n_places, struct eddy_shelf_turn *ret)
{
	ret->shelf = s;
	ret->turn = eddy_board_take(&s->board, EDDY_BOARD_MAX);
	if (ret->turn.slot < 0)
		return -EAGAIN;
	ret->buffer = buffer_of(s, (unsigned)ret->turn.slot, n_places);
	if (ret->buffer != NULL) {
		eddy_board_write(&ret->buffer->n_places, n_places);
		return 0;
	}
	eddy_board_drop(&s->board, ret->turn);
	return -EAGAIN;
}

void *
eddy_shelf_work(const struct eddy_shelf_turn *t)
{
	return t->buffer + 1;
}

static void
write_words(_Atomic uint64_t *to, const void *from, size_t bytes)
{
	const uint64_t *v = from;

	/* Pages that are zero, and stay it, are not touched. */
	for (size_t i = 0; i < bytes / 8; i++)
		/* relaxed: in hand. */
		if (eddy_load_relaxed(&to[i]) != v[i])
			eddy_board_write(&to[i], v[i]);
}

void
eddy_shelf_put(struct eddy_shelf_turn *t, const void *head)
{
	write_words(head_of(t->shelf, t->buffer), head, t->shelf->head);
}

void
eddy_shelf_put_place(
    struct eddy_shelf_turn *t, uint32_t place, const void *from)
{
	write_words(
	    place_of(t->shelf, t->buffer, place), from, t->shelf->place);
}

void
eddy_shelf_show(struct eddy_shelf_turn *t)
{
	eddy_board_show(&t->shelf->board, t->turn);
}

/* ------------------------------------------------------------------ */
/* Readers */

uint64_t
eddy_shelf_shown(struct eddy_shelf *s)
{
	return eddy_board_ticket(eddy_board_look(&s->board));
}

static struct eddy_shelf_buffer *
shown_buffer(struct eddy_shelf *s, uint64_t shown)
{
	/* SNAP-A1: pairs with SNAP-R1. */
	return eddy_load_acquire(&s->buffers[eddy_board_slot(shown)]);
}

uint64_t
eddy_shelf_read(struct eddy_shelf *s, size_t offset)
{
	uint64_t shown;
	uint64_t v;

	do {
		shown = eddy_board_look(&s->board);
		v = eddy_board_read(
		    &head_of(s, shown_buffer(s, shown))[offset / 8]);
	} while (!eddy_board_same(&s->board, shown));
	return v;
}

uint64_t
eddy_shelf_read_place(struct eddy_shelf *s, uint32_t place, size_t offset)
{
	uint64_t shown;
	uint64_t v;

	do {
		struct eddy_shelf_buffer *b;

		shown = eddy_board_look(&s->board);
		b = shown_buffer(s, shown);
		/* What the slot's next owner made accessible may be less. */
		v = place < eddy_board_read(&b->n_places)
			? eddy_board_read(&place_of(s, b, place)[offset / 8])
			: 0;
	} while (!eddy_board_same(&s->board, shown));
	return v;
}
