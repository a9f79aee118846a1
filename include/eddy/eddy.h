/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * eddy.h - what eddy offers beyond malloc(3), whose names are in <stdlib.h>
 * and <malloc.h>.
 */
#ifndef EDDY_EDDY_H
#define EDDY_EDDY_H

#define EDDY_VERSION_MAJOR  0
#define EDDY_VERSION_MINOR  1
#define EDDY_VERSION_PATCH  0
#define EDDY_VERSION_STRING "0.1.0"

#include <stddef.h>
#include <stdlib.h> /* also for glibc's __THROW: no exception comes of it */

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library that runs: "MAJOR.MINOR.PATCH". */
extern const char *const eddy_version;

/*
 * malloc_conf - options of the program: "name:value,name:value".
 *
 * Defined by a program that wants some, read once, inside the first call that
 * allocates.  See eddy.conf(5).
 */
extern const char *malloc_conf;

/*
 * malloc_stats_print - writes statistics of the heap.
 *
 *     malloc_stats_print(NULL, NULL, NULL);     text, on standard error
 *     malloc_stats_print(put, stream, "J");     JSON, through put
 *
 * To see where memory is: with the program, in caches, in free pages, in
 * metadata.
 *
 * write_cb   called with cbopaque and pieces of the text, each ending in a
 *            null byte, some hundred bytes long and cut anywhere; NULL writes
 *            to standard error.  A piece is valid until the callback returns.
 * opts       letters: J for JSON; g leaves out options, a the caches of CPUs,
 *            b the small size classes, l runs and huge blocks, n arenas, homes
 *            and nodes, f what flows between CPUs; p asks the kernel on which
 *            node a sample of pages lies.  Others are ignored.  NULL: none.
 *
 * THREADS    MT-safe, async-signal-safe if write_cb is (8 KiB of stack); waits
 *            for nobody.  Numbers of a heap in motion are near the truth.
 * COST       a look at every chunk, slab and CPU in use; no allocation.
 * FORK       as at any other time.
 * SINCE      0.1
 * SEE ALSO   malloc_stats_print(3), mallinfo(3), eddy.conf(5)
 */
void malloc_stats_print(
    void (*write_cb)(void *, const char *), void *cbopaque, const char *opts);

/*
 * free_sized, free_aligned_sized - free(3); the sizes are not looked at.
 *
 * C23's, declared here for a <stdlib.h> that has them not yet; one that has
 * says the same.  THREADS, FORK as free.
 * SINCE      0.1
 * SEE ALSO   eddy(3)
 */
void free_sized(void *p, size_t size) __THROW;
void free_aligned_sized(void *p, size_t alignment, size_t size) __THROW;

/*
 * eddy_arena_create - a heap of its own, on a memory node.
 *
 *     unsigned table;
 *
 *     if (eddy_arena_create(1, &table) == 0)
 *             rows = eddy_arena_malloc(table, n * sizeof(*rows));
 *
 * For memory that shall lie elsewhere than where the thread runs: on the node
 * of those who use it, or on one that has no CPUs.  malloc itself serves each
 * thread from the node that it runs on.
 *
 * node       the kernel's number of the node, as in /sys/devices/system/node.
 *            It goes before the policy of the process (numactl); a full
 *            node gives way to others.  Nothing is bound where there is one
 *            node, with numa:off and under a made-up topology.
 * arena      the number of the arena; untouched on failure.
 *
 * RETURN     0, or an errno value, errno itself untouched:
 * EINVAL     no such node; or the cpuset of the process excludes it
 * ENODEV     the node has no memory
 * ENOMEM     no memory, or no address space, for the arena
 * EAGAIN     4,095 arenas are in use, those of malloc's own homes (one, or one
 *            a node) among them
 * others     what the kernel said to the policy: EPERM, ENOSYS.  The heap is
 *            as it was.
 *
 * An arena lasts as long as the process.  Used, it has whole GiB of addresses
 * of the range (option lg_range) to itself, some ten mappings, and 50 KiB of
 * memory for itself; unused, 8 KiB.
 *
 * THREADS    MT-safe, async-signal-safe; waits for nobody
 * COST       some system calls; reads sysfs for a node that had no memory when
 *            the process started
 * FORK       a child has all arenas of its parent
 * SINCE      0.1
 * SEE ALSO   eddy_arena_create(3), eddy.conf(5), numa(7)
 */
int eddy_arena_create(int node, unsigned *arena);

/*
 * eddy_arena_malloc, eddy_arena_aligned_alloc - a block from an arena.
 *
 * Like malloc(3) and aligned_alloc(3), but no other's memory is taken, nor is
 * this given to others: free, realloc, malloc_usable_size and their relatives
 * know where it belongs, and realloc keeps it there.
 *
 * arena      from eddy_arena_create
 * alignment  a power of two
 *
 * RETURN     the block, or NULL with errno:
 * ENOMEM     there is no memory, or no room in the range
 * EINVAL     no such arena; alignment is no power of two
 *
 * THREADS    MT-safe, async-signal-safe; lock-free but for system calls
 * ORDER      as malloc and free
 * COST       no cache of CPUs holds blocks of arenas: up to 64 KiB, each goes
 *            to its slab or run at once, with two to ten locked instructions;
 *            malloc and free take 30 to 60 times what they take of cached
 *            blocks.  Above 64 KiB there is no difference
 * FORK       as malloc
 * SINCE      0.1
 * SEE ALSO   eddy_arena_create(3), eddy(3)
 */
void *eddy_arena_malloc(unsigned arena, size_t size);
void *eddy_arena_aligned_alloc(unsigned arena, size_t alignment, size_t size);

/*
 * eddy_arena_move - another node for an arena.
 *
 * To follow the threads that use it.  What it allocates from now on comes from
 * the new node, and pages that are there are moved, its metadata too.  Blocks
 * stay where they are for the program, and may be used, freed, allocated
 * meanwhile.
 *
 * RETURN     0, or an errno value as eddy_arena_create.  EINVAL: or no such
 *            arena.  Refused by the kernel at once, nothing has changed;
 *            refused later (ENOMEM: too many mappings), the arena is on the
 *            new node and some of its pages are not: another call tries
 *            again.  Pages that are locked, or for which the node has no room,
 *            stay where they are, and this is no error.
 *
 * THREADS    MT-safe, async-signal-safe; of two moves of one arena at once the
 *            later holds.  No thread waits but in the kernel, for a page that
 *            is being moved, or for mappings that change: some 10 ms at a time
 * COST       copies all pages that lie elsewhere; system calls for each GiB of
 *            addresses and for each 32 MiB in use
 * FORK       a child's arenas move alone; pages still shared with it stay
 * SINCE      0.1
 * SEE ALSO   eddy_arena_create(3), eddy_node_at(3)
 */
int eddy_arena_move(unsigned arena, int node);

/*
 * eddy_node_of - the node that a block belongs to.
 *
 * That of its arena: the one that the program named, or for blocks of malloc
 * the node of the CPU that it was called on.  Where nothing is bound (one
 * node, numa:off, a policy of the process) that is where memory was meant to
 * be; eddy_node_at says where it is.
 *
 * p          a block, or any address in one.  NULL and what is not in the heap
 *            may be asked; freed blocks have either answer.
 *
 * RETURN     the kernel's number of the node, or -1 with errno:
 * EINVAL     p does not lie in eddy's memory
 * ENOENT     its pages are spread over all nodes (numa:interleave)
 *
 * THREADS    MT-safe, async-signal-safe, wait-free
 * COST       five loads or six; no system call
 * FORK       as at any other time
 * SINCE      0.1
 * SEE ALSO   eddy_arena_create(3)
 */
int eddy_node_of(const void *p);

/*
 * eddy_node_at - the node that a page lies on at this moment.
 *
 * p          any address of the process; its page is asked for
 *
 * RETURN     the kernel's number of the node, or -1 with errno:
 * ENOENT     no page is there: never written, or swapped out
 * EFAULT     nothing is mapped there
 * ENOSYS     a kernel without NUMA
 * others     what the kernel said to move_pages(2): EPERM
 *
 * THREADS    MT-safe, async-signal-safe; may wait in the kernel
 * COST       one system call
 * FORK       as at any other time
 * SINCE      0.1
 * SEE ALSO   eddy_arena_create(3), move_pages(2)
 */
int eddy_node_at(const void *p);

#ifdef __cplusplus
}
#endif

#endif /* EDDY_EDDY_H */
