/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hooks.h - arenas of other memory than ordinary memory, by extent hooks that
 * eddy brings along: huge pages, none, locked, not dumped, not forked.
 *
 * Three ways lead there, and all of them make the same arena:
 *
 *     struct eddy_arena_options o = EDDY_ARENA_OPTIONS;
 *     o.flags = EDDY_ARENA_THP | EDDY_ARENA_LOCKED;
 *     eddy_arena_create_with(&o, &arena);
 *
 *     const char *words = "thp,locked";
 *     mallctl("eddy.arena_create", &index, &n, &words, sizeof(words));
 *
 *     extent_hooks_t *hooks = eddy_hook_set(EDDY_ARENA_THP);
 *     mallctl("arenas.create", &index, &n, &hooks, sizeof(hooks));
 *
 * To call or replace functions of a set, include <jemalloc/jemalloc.h>, which
 * says what they are.
 */
#ifndef EDDY_HOOKS_H
#define EDDY_HOOKS_H

#include <eddy/eddy.h>

#ifdef __cplusplus
extern "C" {
#endif

struct extent_hooks_s;
typedef struct extent_hooks_s extent_hooks_t;

/*
 * eddy_hook_set - extent hooks for an arena, ready to be used.
 *
 *     extent_hooks_t mine = *eddy_hook_set(EDDY_ARENA_THP);
 *
 *     mine.alloc = counting_alloc;    calls the set's own, with any hooks
 *
 * For memory that is read at random (huge pages), must not be swapped out
 * (locked), holds secrets (not dumped), is large and of no use to children (not
 * forked).
 *
 * flags      one of these at most:
 *            EDDY_ARENA_THP: huge pages where the kernel has them, of the
 *              system's own making.  First touch takes a whole one, and they go
 *              back whole only.
 *            EDDY_ARENA_NOHUGE: none, whatever the system does.
 *            EDDY_ARENA_HUGETLB_2M, EDDY_ARENA_HUGETLB_1G: pages that were set
 *              aside; where there are none, smaller ones.  Those of 2 MiB go
 *              back when nothing lies in them, those of 1 GiB with the arena.
 *            and any of these:
 *            EDDY_ARENA_LOCKED: stays in memory once it was touched, and with
 *              the arena.
 *            EDDY_ARENA_NODUMP: is left out of core dumps.
 *            EDDY_ARENA_NOFORK: is left out of forked children.  They get
 *              nothing from the arena, may free its blocks, and to touch one is
 *              a SIGSEGV.
 *            0: the default hooks.
 *
 * RETURN     hooks, which are the library's, constant, and there for ever;
 *            their functions take no notice of their first argument.  NULL: the
 *            flags do not go together, or are not known.
 *
 * What the kernel refuses is ordinary memory, and counted: not_huge, unlocked,
 * unadvised in malloc_stats_print(3).
 *
 * THREADS    MT-safe, async-signal-safe, wait-free
 * COST       none; each 2 MiB, or block of more, that an arena takes for the
 *            first time costs a system call more for each flag
 * FORK       as at any other time
 * SINCE      0.1
 * SEE ALSO   eddy_hooks(3), eddy_arena_create(3), mallctl(3)
 */
extent_hooks_t *eddy_hook_set(unsigned flags);

/*
 * eddy_arena_collapse - makes huge pages of the small ones of an arena that was
 * made with EDDY_ARENA_THP.
 *
 * For memory that was touched while there were no huge pages to be had: too
 * fragmented, or split by a fork.  khugepaged does it as well, in its own
 * time.
 *
 * arena      from eddy_arena_create_with
 *
 * RETURN     0, or an errno value, errno itself untouched:
 * EINVAL     no such arena, or it has no such hooks; or the kernel cannot
 *            (before Linux 6.1)
 * EAGAIN, ENOMEM, others   what the kernel said of some of it: the rest is done
 *
 * THREADS    MT-safe, async-signal-safe; who touches memory that is being
 *            copied waits in the kernel
 * COST       copies what lies in small pages; interrupts all CPUs
 * FORK       of pages that are shared, the caller gets its own
 * SINCE      0.1
 * SEE ALSO   eddy_hooks(3), and what the kernel says of MADV_COLLAPSE
 */
int eddy_arena_collapse(unsigned arena);

#ifdef __cplusplus
}
#endif

#endif /* EDDY_HOOKS_H */
