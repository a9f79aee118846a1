/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ledger.h - blocks that any thread may take over, stamped and verified.
 *
 * An entry is empty, full (a stamped block) or busy (in one thread's hands).
 * Entries change hands by one CAS, so the ledger is the lock-free mailbox
 * through which blocks are freed by threads that did not allocate them.  A
 * thread that is frozen, killed or left behind by fork keeps the one entry
 * that it holds busy; every full entry can still be verified and freed by
 * whoever remains, also in a forked child (it sees one cut in time).
 */
#ifndef EDDY_STRESS_LEDGER_H
#define EDDY_STRESS_LEDGER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ENTRY_EMPTY = 0, ENTRY_FULL = 1, ENTRY_BUSY = 2 };

struct entry {
	_Atomic uint32_t state; /* W: CAS by any; busy carries the holder */
	uint32_t key;           /* the rest: the holder's */
	size_t size;
	unsigned char *block;
};

enum how { BY_MALLOC, BY_CALLOC, BY_MEMALIGN };

/* Empty or full to busy in the hands of `me`. */
bool entry_claim(struct entry *e, uint32_t from, uint32_t me);
bool entry_held_by(const struct entry *e, uint32_t me);
/* What a dead holder leaves; its block, if any, is lost. */
void entry_forget(struct entry *e);

/* Of a claimed entry: allocate and publish; verify, free and publish. */
void entry_fill(struct entry *e, size_t size, enum how how, uint64_t *random);
void entry_drain(struct entry *e);
void entry_resize(struct entry *e, size_t size, uint64_t *random);
/* Back to full; the block verified and moved to another claimed entry. */
void entry_release(struct entry *e);
void entry_move(struct entry *from, struct entry *to);

/* Verifies a full entry without taking it: only when nobody else runs. */
void entry_verify(const struct entry *e);

/* Verifies and frees what is full, in the whole array; returns how many. */
size_t ledger_drain(struct entry *e, size_t n, uint32_t me);

/*
 * A drum beats bursts: hundreds of objects of one class are allocated and as
 * many freed, in its own window of the ledger or in another's, so that rows
 * refill and overflow, slabs are born and retired, runs and chunks claimed.
 */
struct drum {
	struct entry *ledger;
	unsigned n_windows;
	unsigned window; /* its own */
	uint32_t me;
	unsigned n_classes; /* of drum_classes, from the smallest */
	uint64_t random;
	_Atomic uint64_t n_ops; /* W: the drummer, R: the conductor */
};

unsigned drum_class_count(void);
size_t drum_class_size(unsigned class);
unsigned drum_class_burst(unsigned class);
size_t drum_window_entries(void);
size_t drum_window_bytes(unsigned n_classes);
struct entry *ledger_create(unsigned n_windows);

void drum_burst(struct drum *d, unsigned class);
void drum_beat(struct drum *d); /* a burst of some class */

#endif /* EDDY_STRESS_LEDGER_H */
