/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * arena_words.h - what an arena is to be, in words.
 *
 * Layer     ctl (L5).
 * Progress  wait-free but for a look at the machine's nodes.
 * Memory    none.
 */
#ifndef EDDY_ARENA_WORDS_H
#define EDDY_ARENA_WORDS_H

#include "lib/heap/hook_sets.h"

/*
 * eddy_arena_words - reads "thp,locked,node:1", as mallctl(3) has it under
 * eddy.arena_create.
 *
 * plan: what is not said stays; the directory is part of the text.
 * Returns: 0; -EINVAL; of a node, as eddy_arena_fit.
 */
EDDY_MUST_USE int eddy_arena_words(
    struct eddy_heap *h, const char *text, struct eddy_arena_plan *plan);

#endif /* EDDY_ARENA_WORDS_H */
