/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bind.h - memory of an arena onto its node: a policy for each segment.
 *
 * Layer     heap (L3).
 * Progress  lock-free but for system calls: whoever goes round saw another's
 *           move or claim go through.  The kernel may block: a policy takes
 *           mmap_lock exclusively, moving pages copies them.
 * Memory    none of its own.
 *
 * What is bound: a segment's part of the range, of the descriptors and of the
 * tags, and the struct and hints of the arena itself.  Where the range is not
 * reserved, each chunk when it is mapped.
 *
 * Which policy (eddy_bind_wanted): the arena of a home follows placement.h; an
 * arena of the program's goes before the process's own policy, as the kernel
 * has it, and is bound unless numa:off is set, the topology is a fake, or there
 * is one node.
 *
 * A move against claims; a tag in `bound` grows in step 3 of movers
 *   mover    1 a->node = new      2 each segment owned: tell the kernel
 *            3 bound = unknown    4 owner and node as before?  else 2 again,
 *                                   for the owner that is there now
 *   claimer  1 owner = a          2 node = a->node
 *            3 bound = what it wants?  done
 *            4 tell; bound = that, if it is as in 3; 2 again
 *   mapper   1 map, ready bits    2 node = a->node
 *            3 as told before?  done
 *            4 tell; bound = unknown, if it says something else; 2 again
 *
 * I-BIND-1  When nobody is in here, `bound` is unknown or the policy that was
 *           told last, and that is the one of the owner's node.
 *   `bound`: a claimer writes it only if no mover came to step 3 since step 3
 *   of his own; a mover who told something before that has step 3 before him.
 *   A mapper has the segment pinned, so only movers write it meanwhile.
 *   The policy: take the last call of the kernel for a segment.  Whoever made
 *   it looked at the node afterwards and found the one that he had told; a
 *   mover looked at the owner too.  If the node changed later, its mover saw
 *   the owner (or the ready bit) and told the kernel again, or it looked before
 *   these were written, and then their writer read the new node in step 2: in
 *   both cases there was a later call.  If the owner changed later, the
 *   claimer told the kernel, or found its policy in `bound`: that was then the
 *   last one told, or a mover on his way to step 3 sees the new owner in 4.
 *   tests/heap_bind.c.
 * A thread killed in here leaves a segment, at most, on the wrong node, until
 * its arena is moved again or it goes to one elsewhere.
 *
 * Order pairs (store-load, hence sequentially consistent on every access)
 *   BIND-R1 -> BIND-A1  an arena's node, from its mover to claimers, mappers.
 *   BIND-R2 -> BIND-A2  owners and ready bits, from these to movers.
 *   BIND-R3 -> BIND-A3  what the kernel was told, from mover or claimer to the
 *                       next claimer.
 */
#ifndef EDDY_BIND_H
#define EDDY_BIND_H

#include "lib/heap/heap.h"

/* Policies, the low half of a segment's `bound`: one of these, or a node + 1.
 */
#define EDDY_BOUND_NOT     0
#define EDDY_BOUND_SPREAD  (EDDY_MAX_NODES + 1)
#define EDDY_BOUND_UNKNOWN UINT32_MAX

/* The policy for memory of an arena of this home on this node. */
uint32_t eddy_bind_wanted(
    const struct eddy_heap *h, uint32_t home, uint32_t node);

/* Tells the kernel.  move: what is there goes along.  0 or -errno. */
EDDY_MUST_USE int eddy_bind_tell(
    struct eddy_heap *h, void *p, size_t size, uint32_t policy, bool move);

/*
 * eddy_bind_segment - a segment in hand, whose owner was written just now.
 *
 * Free pages that lie elsewhere are dropped.  The kernel may refuse: memory
 * then comes from where it is touched (n_unplaced).
 */
void eddy_bind_segment(
    struct eddy_heap *h, struct eddy_arena *a, uint32_t segment);

/* A segment in hand of which parts were mapped anew: who claims it next tells
 * the kernel again. */
void eddy_bind_forget(struct eddy_heap *h, uint32_t segment);

/* n chunks in hand, mapped just now, whose ready bits are set. */
void eddy_bind_chunks(
    struct eddy_heap *h, struct eddy_arena *a, uint32_t chunk, unsigned n);

/* Whether pages may go from one live block to another, policy and all. */
bool eddy_bind_alike(struct eddy_heap *h, const void *p, const void *q);

/* A live block whose mapping was replaced. */
void eddy_bind_again(struct eddy_heap *h, void *p, size_t size);

/*
 * eddy_bind_move - another node for an arena of the program's and its pages.
 *
 * Returns: 0; or -errno: of the arena's own struct, which is asked first, and
 *          then nothing has changed; or of some segment, whose pages may not
 *          have moved.
 */
EDDY_MUST_USE int eddy_bind_move(
    struct eddy_heap *h, struct eddy_arena *a, uint32_t node);

#endif /* EDDY_BIND_H */
