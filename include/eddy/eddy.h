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
 * malloc_conf_2_conf_harder - the same, after the environment's MALLOC_CONF.
 *
 * For options that a program insists upon; EDDY_CONF alone comes later.
 */
extern const char *malloc_conf_2_conf_harder;

/*
 * malloc_message - takes what the library has to say: statistics that go to
 * nobody else, faults in the options.
 *
 * Defined or set by a program that wants that in a log instead of on standard
 * error.  Called with NULL and text that ends in a null byte, on the thread
 * that had something to say; may allocate.  What is said when the process ends
 * for a misuse of the heap goes to standard error all the same.
 */
extern void (*malloc_message)(void *cbopaque, const char *s);

/*
 * mallocx, rallocx, xallocx, sallocx, dallocx, sdallocx, nallocx - jemalloc's
 * malloc family with flags: <jemalloc/jemalloc.h> has these.
 *
 *     float *v = mallocx(n * sizeof(*v), MALLOCX_ALIGN(64) | MALLOCX_ZERO);
 *     size_t real = sallocx(v, 0);
 *     v = rallocx(v, 2 * real, MALLOCX_ALIGN(64) | MALLOCX_ZERO);
 *     sdallocx(v, 2 * real, MALLOCX_ALIGN(64));
 *
 * For blocks that are aligned, zero, of an arena of choice, or grow where they
 * are; and to know what a block really holds before it is made.
 *
 * size       bytes, 1 at least
 * extra      of xallocx: so many bytes more, if they are to be had
 * flags      alignment, zeros, arena and cache: MALLOCX_*, by OR
 * p          a live block, of these or of malloc's family
 *
 * RETURN     mallocx, rallocx: a block; NULL: no memory, or no such size, and
 *            then p is what it was; errno is untouched.
 *            xallocx: the real size of p, which stays where it is: at least
 *            `size` if there was room.
 *            sallocx: the real size of p.  nallocx: what mallocx would make of
 *            size; 0: nothing.
 * THREADS    MT-safe, async-signal-safe; wait for nobody
 * COST       as malloc(3)'s, on the paths of its misses: 2 to 3 times a hit
 * FORK       as at any other time
 * SINCE      0.1
 * SEE ALSO   mallocx(3), mallctl(3)
 */
void *mallocx(size_t size, int flags);
void *rallocx(void *p, size_t size, int flags);
size_t xallocx(void *p, size_t size, size_t extra, int flags);
size_t sallocx(const void *p, int flags);
void dallocx(void *p, int flags);
void sdallocx(void *p, size_t size, int flags);
size_t nallocx(size_t size, int flags);

/*
 * get_defrag_hint - whether a copy of an object would lie better.
 *
 *     if (get_defrag_hint(p)) {
 *             q = memcpy(mallocx(n, MALLOCX_TCACHE_NONE), p, n);
 *             dallocx(p, MALLOCX_TCACHE_NONE);
 *     }
 *
 * For programs that can move what they have, so that memory goes back which
 * holds few objects here and there; Redis calls it je_get_defrag_hint.
 *
 * p          anything
 *
 * RETURN     1: there is room at a lower address, and p's slab is not much
 *            fuller than others of its class; 0: not so, or p is no object of a
 *            small size class
 * THREADS    MT-safe, async-signal-safe; waits for nobody
 * COST       some 100 instructions; once a second at most it empties the caches
 *            of all CPUs, two membarriers for each
 * FORK       as at any other time
 * SINCE      0.1
 * SEE ALSO   mallocx(3)
 */
int get_defrag_hint(void *p);

/*
 * malloc_stats_print - writes statistics of the heap.
 *
 *     malloc_stats_print(NULL, NULL, NULL);     text, on standard error
 *     malloc_stats_print(put, stream, "J");     JSON, through put
 *
 * To see where memory is: with the program, in caches, in free pages, in
 * metadata.  First comes jemalloc's report, then eddy's own.
 *
 * write_cb   called with cbopaque and pieces of the text, each ending in a
 *            null byte, some hundred bytes long and cut anywhere; NULL writes
 *            to standard error.  A piece is valid until the callback returns.
 * opts       letters: J for JSON; g leaves out version and options, m the sum
 *            of arenas, d what was destroyed, a single arenas and the caches of
 *            CPUs, b the small size classes, l the large ones, x locks, e free
 *            runs, h jemalloc's huge pages, n homes and nodes, f what flows
 *            between CPUs; p asks the kernel on which node a sample of pages
 *            lies, r what it says of the memory of the process and its cgroup.
 *            Others are ignored.  NULL: none.
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
 * mallctl - reads or writes a named value of the allocator.
 *
 *     uint64_t epoch = 1;
 *     size_t n = sizeof(size_t), bytes;
 *
 *     mallctl("epoch", NULL, NULL, &epoch, sizeof(epoch));
 *     if (mallctl("stats.allocated", &bytes, &n, NULL, 0) == 0)
 *             printf("%zu bytes\n", bytes);
 *
 * For statistics, for options as they are, and for what the program may ask of
 * the heap: to give memory back, to create an arena.  Names, types and rules
 * are jemalloc's; those of eddy alone begin with "eddy."; all of them stand in
 * mallctl(3).
 *
 * name       words and numbers with dots between
 * oldp       where the value is written, NULL if it is not wanted
 * oldlenp    its size: that of the name's type
 * newp       a new value, NULL for none
 * newlen     its size
 *
 * RETURN     0, or an errno value, errno itself untouched:
 * ENOENT     no such name; or it is the beginning of names
 * EPERM      the name cannot be read, or written
 * EINVAL     a size that is not that of the type: what fits was copied, and
 *            *oldlenp says how much; or a value that the name does not take
 * EFAULT     what is asked for is not there, or not possible
 * EAGAIN     no memory
 * Nothing has changed where one of these is returned.
 *
 * THREADS    MT-safe, async-signal-safe (4 KiB of stack); waits for nobody
 * ORDER      what a thread did before it wrote "epoch" is in the statistics
 *            that it reads after
 * COST       some hundred instructions; "epoch" takes microseconds, what gives
 *            memory back makes system calls for it
 * FORK       as at any other time
 * SINCE      0.1
 * SEE ALSO   mallctl(3), malloc_stats_print(3), eddy.conf(5)
 */
int mallctl(
    const char *name, void *oldp, size_t *oldlenp, void *newp, size_t newlen);

/*
 * mallctlnametomib, mallctlbymib - the same with the name looked up before.
 *
 * To ask often, or for many numbers: the components of a name become numbers,
 * those that are numbers stay what they are and may be changed.
 *
 * mibp       room for *miblenp components; a longer name is cut
 * miblenp    how many there are, after; a beginning of names may be looked up
 *
 * RETURN, THREADS, FORK: as mallctl.  On failure nothing was written.
 * SINCE      0.1
 * SEE ALSO   mallctl(3)
 */
int mallctlnametomib(const char *name, size_t *mibp, size_t *miblenp);
int mallctlbymib(const size_t *mib, size_t miblen, void *oldp, size_t *oldlenp,
    void *newp, size_t newlen);

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
 * eddy_arena_create_with - a heap of its own, as options say: its memory may be
 * that of a file, of huge pages, locked.
 *
 *     struct eddy_arena_options o = EDDY_ARENA_OPTIONS;
 *     unsigned table;
 *
 *     o.flags = EDDY_ARENA_FILE;
 *     o.directory = "/mnt/disk";
 *     o.file_size = (size_t)64 << 30;
 *     if (eddy_arena_create_with(&o, &table) == 0)
 *             rows = eddy_arena_malloc(table, n * sizeof(*rows));
 *
 * For memory that shall lie on a disk, in persistent memory, or within the
 * limit of a file system in memory.  The file is the library's own, has no
 * name, and is gone with the process.  What decay, malloc_trim and
 * eddy_purge_now give back of it the file system has again; where that cannot
 * punch holes, memory is written to the disk and leaves the cache, but keeps
 * its room.
 *
 * options    size: sizeof(struct eddy_arena_options), as EDDY_ARENA_OPTIONS
 *            sets it; what lies beyond what this version knows must be zero.
 *            node: as for eddy_arena_create, or EDDY_ANY_NODE: where memory is
 *            touched; of a file on a disk the kernel takes no notice of it.
 *            flags: EDDY_ARENA_FILE: of a file.
 *            directory: where the file is made; NULL: in memory (memfd).
 *            file_size: the most that the arena can have; rounded up to 2 MiB,
 *            above 1 GiB to whole GiB.
 *            EDDY_ARENA_FILL, with EDDY_ARENA_FILE: a block has its room in the
 *            file system before it is handed out.  Without it a page gets its
 *            room when it is touched, and where there is none that is a SIGBUS.
 *            Others, not with a file: EDDY_ARENA_THP, _NOHUGE, _HUGETLB_2M,
 *            _HUGETLB_1G, of which one at most, and EDDY_ARENA_LOCKED, _NODUMP,
 *            _NOFORK: <eddy/hooks.h> says what each is.
 * arena      the number of the arena; untouched on failure.
 *
 * RETURN     0, or an errno value, errno itself untouched, as by
 *            eddy_arena_create, and:
 * EINVAL     options that do not go together; an unknown flag
 * E2BIG      an option that this version does not know is set
 * EFBIG      more than RLIMIT_FSIZE or the file system allow
 * ENOSPC     not even a page has room in it
 * ENODEV     or the file system's files cannot be mapped
 * others     what the kernel said to open(2) and to the mapping: ENOENT,
 *            ENOTDIR, EACCES, EROFS, EMFILE, ENFILE
 *
 * A full arena is ENOMEM to eddy_arena_malloc.  eddy_arena_move is EINVAL for
 * an arena of a file, eddy_node_of of its blocks ENOENT if it has no node.
 *
 * THREADS    MT-safe, async-signal-safe; may wait for a disk
 * COST       some 15 system calls; 1 MiB of addresses of metadata a GiB.  With
 *            EDDY_ARENA_FILL all that is asked for is touched, and each slab or
 *            block of memory not used before costs a system call more
 * FORK       a child does not have the memory of its parent's files, for both
 *            would allocate the same of it: requests are ENOMEM there, blocks
 *            may be freed, and to read or write one is a SIGSEGV
 * SINCE      0.1
 * SEE ALSO   eddy_arena_create(3), eddy.conf(5), open(2), fallocate(2)
 */
struct eddy_arena_options {
	size_t size;
	unsigned flags;
	int node;
	const char *directory;
	size_t file_size;
};

#define EDDY_ANY_NODE         (-1)
#define EDDY_ARENA_FILE       0x1u
#define EDDY_ARENA_FILL       0x2u
#define EDDY_ARENA_THP        0x4u
#define EDDY_ARENA_NOHUGE     0x8u
#define EDDY_ARENA_HUGETLB_2M 0x10u
#define EDDY_ARENA_HUGETLB_1G 0x20u
#define EDDY_ARENA_LOCKED     0x40u
#define EDDY_ARENA_NODUMP     0x80u
#define EDDY_ARENA_NOFORK     0x100u
#define EDDY_ARENA_OPTIONS                                                   \
	{                                                                    \
		sizeof(struct eddy_arena_options), 0, EDDY_ANY_NODE, NULL, 0 \
	}

int eddy_arena_create_with(
    const struct eddy_arena_options *options, unsigned *arena);

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
 * eddy_good_size, eddy_alloc_at_least - what a block of a size really holds.
 *
 *     n = eddy_good_size(n);                  before it is made
 *     buf = eddy_alloc_at_least(n, &room);    with it
 *
 * For containers that grow: what is there is used, and one that grows to a
 * good size wastes nothing.
 *
 * size       bytes
 * real       where the size of the block goes, 0 if there is none
 *
 * RETURN     eddy_good_size: malloc_usable_size of what malloc would return,
 *            inside an entered region that or less; 0: there is no block of
 *            that size.
 *            eddy_alloc_at_least: what malloc returns, errno set as there.  All
 *            of *real may be used; free, realloc and their like take it.
 * THREADS    MT-safe, async-signal-safe; wait for nobody
 * COST       eddy_good_size: some 10 instructions.  eddy_alloc_at_least: those
 *            of malloc, and one load more
 * FORK       as at any other time
 * SINCE      0.1
 * SEE ALSO   eddy_good_size(3), mallocx(3)
 */
size_t eddy_good_size(size_t size);
void *eddy_alloc_at_least(size_t size, size_t *real);

/*
 * eddy_alloc_short, eddy_alloc_long, eddy_alloc_near, eddy_alloc_hinted -
 * blocks of which something is known.
 *
 *     request = eddy_alloc_short(n);          gone in a moment
 *     config = eddy_alloc_long(n);            stays
 *     child = eddy_alloc_near(n, parent);     on the same node
 *     v = eddy_alloc_hinted(n, &(struct eddy_hint){
 *         .lifetime = EDDY_LIFETIME_LONG, .align = 64, .zero = 1});
 *
 * For programs whose long-lived blocks are made among short-lived ones: one of
 * the former keeps a page, and where they lie apart the pages of the latter go
 * back.  A wrong hint costs memory and is no fault: a block that lives long
 * among short ones keeps its page, as it would without hints.  Blocks without
 * a hint lie apart from both.  Inside an entered region (eddy_region_enter)
 * these blocks are the heap's all the same, in their group, and to be freed.
 *
 * size       bytes
 * other      a block that this one is used with; any address, also NULL
 * hint       lifetime; near: as `other`; align: a power of two, 0: as malloc's;
 *            zero: not 0: all bytes are; reserved: 0.  What is left at 0 is
 *            no hint.
 *
 * RETURN     a block, for free, realloc and their like; realloc keeps the
 *            lifetime.  NULL: ENOMEM, or EINVAL: no such hint.  There is no
 *            memory if malloc has none.
 * THREADS    MT-safe, async-signal-safe; wait for nobody
 * COST       some instructions more than malloc's, free's are the same; for
 *            each lifetime that is used an arena on each home, and two batches
 *            a size class and CPU that may wait there
 * FORK       as at any other time
 * SINCE      0.1
 * SEE ALSO   eddy_alloc_hinted(3), eddy.conf(5)
 */
enum eddy_lifetime {
	EDDY_LIFETIME_UNKNOWN,
	EDDY_LIFETIME_SHORT,
	EDDY_LIFETIME_LONG,
};

struct eddy_hint {
	enum eddy_lifetime lifetime;
	int zero;
	size_t align;
	const void *near;
	unsigned long reserved;
};

void *eddy_alloc_short(size_t size);
void *eddy_alloc_long(size_t size);
void *eddy_alloc_near(size_t size, const void *other);
void *eddy_alloc_hinted(size_t size, const struct eddy_hint *hint);

/*
 * eddy_discard - gives pages inside a block back.
 *
 *     if (eddy_discard(table, 0, n) != 0)
 *             memset(table, 0, n);
 *
 * For large blocks of which a part is not wanted for a while.  [offset, offset
 * + length) of the block is zero after, and the whole pages in it hold no
 * memory until they are written again.  The block stays a block; what fills no
 * page at either end is written, and so is all of it where the kernel takes
 * nothing back: locked memory, sandboxes.
 *
 * p          a block: what malloc or one of its relatives returned
 * offset     in bytes
 * length     in bytes; the range may go to malloc_usable_size(p)
 *
 * RETURN     0, or an errno value, errno itself untouched:
 * EINVAL     p is no block, or the range is not within it; nothing is changed.
 *            A small block that was freed is not always found out
 *
 * THREADS    MT-safe, async-signal-safe, waits for nobody.  Nobody may use the
 *            range meanwhile
 * ORDER      none: the range is the caller's, as for memset
 * COST       a system call, a page fault; later a page fault for each page that
 *            is used again.  Below some 16 KiB memset is as good
 * FORK       a page shared with another process is given back by this one
 * SINCE      0.1
 * SEE ALSO   eddy_discard(3)
 */
int eddy_discard(void *p, size_t offset, size_t length);

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

/*
 * eddy_housekeep - one step of giving unused memory back, in this thread.
 *
 *     for (;;) {
 *             n = epoll_wait(fd, events, MAX_EVENTS, eddy_housekeep());
 *             ...
 *     }
 *
 * For programs that want no background thread (background_thread_auto:false),
 * or have none since they have no threads, and that know when they have time.
 * Otherwise slow paths of malloc and free do it, as far as they come by, and a
 * program that sleeps keeps what it has.
 *
 * RETURN     milliseconds until another step is worth while, 0: at once; -1:
 *            not before more memory has been freed
 *
 * THREADS    MT-safe; any number of threads at once, beside background threads
 *            or not; waits for nobody.  Not from signal handlers
 * COST       system calls for at most 64 MiB, which may interrupt other CPUs of
 *            the process; nothing to do: some 100 ns for each arena
 * FORK       a child has the same to do as its parent
 * SINCE      0.1
 * SEE ALSO   eddy_housekeep(3), eddy(7)
 */
int eddy_housekeep(void);

/*
 * eddy_prefault - memory that is there before it is asked for.
 *
 *     if (eddy_prefault(EDDY_ALL_ARENAS, 1 << 30) != 0)
 *             warn("the first messages will meet page faults");
 *
 * Brings the memory of an arena, in use or free, up to so many bytes, so that
 * what is allocated of them later meets no page fault; and decay does not take
 * it below that from then on.  0 bytes ends that.
 *
 * arena      from eddy_arena_create, or EDDY_ALL_ARENAS: each home of malloc,
 *            so many bytes each, several memory nodes at once.
 *
 * RETURN     0, or an errno value, errno itself untouched:
 * ENOMEM     there is not so much; what could be had is there
 * EINVAL     no such arena
 *
 * THREADS    MT-safe; not async-signal-safe (several homes: starts threads and
 *            waits for them); keeps nobody from allocating
 * COST       a page fault a page, in the kernel at one go (Linux 5.14)
 * FORK       a child shares the pages until it writes to them
 * SINCE      0.1
 * SEE ALSO   eddy_prefault(3), eddy_freeze(3), eddy.conf(5): prefault,
 *            prefault_ahead, decay_floor
 */
int eddy_prefault(unsigned arena, size_t bytes);

/* All arenas, or all homes of malloc: a number that no arena has. */
#define EDDY_ALL_ARENAS 0u

/*
 * eddy_freeze, eddy_thaw - a heap that asks the kernel for nothing.
 *
 * Between the two, requests are served from memory that was there before, and
 * nothing is given back: no system call of the allocator, no page fault of its
 * doing, no interrupt of another CPU.  For the hours when latency is all.  What
 * does not fit into what is there makes the heap grow and is counted, or fails
 * (option freeze_growth).  Idempotent.
 *
 * What is asked for by name is still done: malloc_trim, eddy_purge_now,
 * eddy_prefault.  Calls that remain: rseq(2), once a thread that libc has not
 * registered; getcpu(2) without restartable sequences and with several homes.
 *
 * THREADS    MT-safe, async-signal-safe; what is in the midst of a system call
 *            ends it.  freeze makes the caches of all CPUs writable that the
 *            process may use: some system calls
 * FORK       a child is frozen if its parent is
 * SINCE      0.1
 * SEE ALSO   eddy_freeze(3)
 */
void eddy_freeze(void);
void eddy_thaw(void);

/* What happened since eddy_freeze; all 0 if the heap is not frozen. */
struct eddy_freeze_counts {
	int frozen;
	unsigned long long growth; /* times that memory was not there */
	unsigned long long calls;  /* system calls of the allocator */
	unsigned long long purges; /* of these, to give memory back */
	unsigned long long faults; /* page faults of the whole process */
};

/*
 * eddy_freeze_read - counts since the heap was frozen.
 *
 * THREADS    MT-safe, async-signal-safe, wait-free; one system call, which it
 *            counts
 * FORK       a child goes on with the counts of its parent but for faults
 * SINCE      0.1
 * SEE ALSO   eddy_freeze(3)
 */
void eddy_freeze_read(struct eddy_freeze_counts *ret);

/*
 * eddy_purge_now - gives all memory back that is not in use.
 *
 * arena      or EDDY_ALL_ARENAS: what the caches of all CPUs hold goes back
 *            first, and then all free pages, as by malloc_trim(0).
 *
 * RETURN     bytes given back.
 *
 * THREADS    MT-safe, async-signal-safe; waits for nobody
 * COST       interrupts the CPUs whose caches hold something, twice each; a
 *            look at each chunk; a system call for each run of free pages
 * FORK       as at any other time; pages shared with the parent stay with it
 * SINCE      0.1
 * SEE ALSO   eddy_purge_now(3), malloc_trim(3)
 */
size_t eddy_purge_now(unsigned arena);

/*
 * eddy_idle - the calling thread will not allocate for some time.
 *
 * What the cache of its CPU holds goes back to where others find it, and one
 * step of housekeeping is done.  Costs refills if it allocates all the same.
 *
 * THREADS    MT-safe, async-signal-safe; waits for nobody
 * FORK       as at any other time
 * SINCE      0.1
 * SEE ALSO   eddy_purge_now(3), eddy_housekeep(3)
 */
void eddy_idle(void);

/*
 * eddy_set_decay - decay times of an arena, or of all that are there.
 *
 * dirty_ms, muzzy_ms   as the options dirty_decay_ms and muzzy_decay_ms: -1
 *            never, 0 at once, at most EDDY_DECAY_MAX_MS.
 *
 * RETURN     0, or EINVAL: no such arena, or no such time; ENOMEM: no heap.
 *
 * THREADS    MT-safe, async-signal-safe; takes effect at the next step
 * FORK       a child has the times of its parent
 * SINCE      0.1
 * SEE ALSO   eddy_purge_now(3), eddy.conf(5)
 */
int eddy_set_decay(unsigned arena, long long dirty_ms, long long muzzy_ms);

/* Some 584 years. */
#define EDDY_DECAY_MAX_MS 18446744073709LL

/*
 * eddy_on_pressure - a function that drops the program's caches when memory is
 * short.
 *
 *     static void
 *     drop(void *cache, size_t wanted)
 *     {
 *             cache_shrink(cache, wanted);
 *     }
 *
 *     eddy_on_pressure(drop, cache);
 *
 * tell       called with arg and the bytes that a request could not be served
 *            with: in the thread that made it, within malloc, before NULL is
 *            the answer; the request is then tried once more.  Called with 0
 *            when the kernel says that the process's cgroup or the machine
 *            stalls for memory (PSI, 150 ms of 2 s): in a thread of eddy's,
 *            with all signals blocked; free memory is given back then.
 *            It may free and allocate; a request of its own that fails is
 *            NULL at once.  It must not take a lock that a caller of malloc
 *            may hold.  Functions are called in no order; one that is
 *            registered twice is called once.
 *
 * RETURN     0; EINVAL: tell is NULL; ENOMEM: it is not registered
 *
 * THREADS    MT-safe; not async-signal-safe: the first call of a process
 *            starts a thread, which sleeps.  Where that cannot be, or the
 *            kernel has no PSI, the kernel's word is not heard
 * FORK       a child has the functions of its parent; for the kernel's word it
 *            registers one again
 * SINCE      0.1
 * SEE ALSO   eddy_on_pressure(3), eddy.conf(5): heap_limit
 */
int eddy_on_pressure(void (*tell)(void *arg, size_t wanted), void *arg);

/*
 * eddy_off_pressure - takes it back.
 *
 * A call that is under way in another thread may not be over when it returns.
 *
 * RETURN     0, or EINVAL: it is not registered
 *
 * THREADS    MT-safe, async-signal-safe, wait-free
 * FORK       as at any other time
 * SINCE      0.1
 * SEE ALSO   eddy_on_pressure(3)
 */
int eddy_off_pressure(void (*tell)(void *arg, size_t wanted), void *arg);

#ifdef __cplusplus
}
#endif

#endif /* EDDY_EDDY_H */
