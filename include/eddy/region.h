/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * region.h - memory that dies together: objects are laid one behind the other,
 * and end all at once.
 *
 *     struct eddy_region *r;
 *
 *     if (eddy_region_create(NULL, &r) == 0) {
 *             while ((request = next()) != NULL) {
 *                     struct node *n = eddy_region_alloc(r, sizeof(*n));
 *                     ...
 *                     eddy_region_reset(r);
 *             }
 *             eddy_region_destroy(r);
 *     }
 *
 * For work that makes many objects and needs none of them afterwards: a
 * request, a document, a frame, a pass of a compiler.  Nothing is gained where
 * objects live for different times.
 *
 * A region is used by one thread at a time: to allocate, to realloc its
 * objects, to reset, destroy, enter or leave it.  Whose turn it is, is the
 * program's business, except that a region that a thread has entered is refused
 * to others.  Objects are memory as any other: every thread may use them, ask
 * malloc_usable_size for their size, and free() them, which does nothing.
 */
#ifndef EDDY_REGION_H
#define EDDY_REGION_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The beginning of a region, laid open for eddy_region_alloc alone, which is
 * inline: an empty call takes about as long as half a malloc.  These fields
 * stay where they are and mean what they do as long as the library has its
 * major number; nobody else shall read or write them.
 */
struct eddy_region {
	char *top;          /* where the next object begins */
	char *limit;        /* up to here it may reach; both NULL: ask */
	uintptr_t marks;    /* of an address x: the byte at marks + x / 16 */
	unsigned char mark; /* what that holds where an object begins */
};

/*
 * eddy_region_create - a region, of which some memory is there.
 *
 *     struct eddy_region_options o = EDDY_REGION_OPTIONS;
 *
 *     o.arena = table;
 *     o.keep = (size_t)8 << 20;
 *     err = eddy_region_create(&o, &r);
 *
 * options    NULL: as EDDY_REGION_OPTIONS has them.
 *            size: sizeof(struct eddy_region_options), as that sets it; what
 *            lies beyond what this version knows must be zero.
 *            arena: that its memory comes from (eddy_arena_create_with: on a
 *            node, of a file, of huge pages); 0: from where malloc takes it,
 *            on the thread that makes the region grow.
 *            first: bytes of memory to begin with, rounded up to a power of
 *            two from 64 KiB to 2 MiB.  It grows by twice as much each time, at
 *            most by 2 MiB, and by what does not fit in there.
 *            keep: bytes of memory that a reset leaves to it, the first always;
 *            SIZE_MAX: all but that of objects above 1 MiB.
 * region     the region; untouched on failure
 *
 * RETURN     0, or an errno value, errno itself untouched:
 * ENOMEM     no memory, or none that the arena can have
 * EINVAL     no such arena; a size that is not that of the options
 * E2BIG      an option that this version does not know is set
 *
 * THREADS    MT-safe, async-signal-safe; waits for nobody
 * COST       a block of 64 KiB that is not touched, and 8 KiB that are; the
 *            first in each 2 MiB of addresses costs a system call
 * FORK       a child has all regions of its parent, each for itself; one that
 *            another thread had entered is out of reach there for ever
 * SINCE      0.1
 * SEE ALSO   eddy_region_create(3)
 */
struct eddy_region_options {
	size_t size;
	unsigned arena;
	size_t first;
	size_t keep;
};

#define EDDY_REGION_OPTIONS                                        \
	{                                                          \
		sizeof(struct eddy_region_options), 0, 0, SIZE_MAX \
	}

int eddy_region_create(
    const struct eddy_region_options *options, struct eddy_region **region);

/* eddy_region_alloc where it is not a matter of two additions; the same for
 * callers that have no inline functions. */
void *eddy_region_alloc_slow(struct eddy_region *region, size_t size);

/*
 * eddy_region_alloc - an object of a region.
 *
 * size       bytes; of 0 a distinct object, too
 *
 * RETURN     the object, at a multiple of 16 bytes; or NULL with errno:
 * ENOMEM     the region cannot grow
 * EINVAL     the region has been destroyed
 * EBUSY      another thread has entered it; or this is a signal handler that
 *            has interrupted an allocation from a region that was entered
 *
 * free() of the object does nothing.  realloc has it grow where it is if it was
 * the last, else moves it within the region; malloc_usable_size says what it
 * has, `size` rounded up to a multiple of 16, and what was left free behind it.
 *
 * THREADS    one at a time; in a signal handler only of a region that nobody
 *            else uses
 * COST       a dozen instructions; now and then a block of memory
 * FORK       as at any other time
 * SINCE      0.1
 * SEE ALSO   eddy_region_create(3)
 */
static inline void *
eddy_region_alloc(struct eddy_region *region, size_t size)
{
	char *p = region->top;
	size_t need = (size + 15) & ~(size_t)15;

	/* 0, and what has wrapped around, are more than there ever is. */
	if (need - 1 >= (size_t)(region->limit - p))
		return eddy_region_alloc_slow(region, size);
	region->top = p + need;
	*(unsigned char *)(region->marks + ((uintptr_t)(p + need) >> 4)) =
	    region->mark;
	return p;
}

/*
 * eddy_region_alloc_aligned - the same at a multiple of alignment, a power of
 * two.
 *
 * RETURN     as eddy_region_alloc, and
 * EINVAL     alignment is no power of two
 *
 * Above 64 KiB of alignment an object has memory of its own.
 *
 * THREADS, FORK: as eddy_region_alloc.  SINCE 0.1
 * SEE ALSO   eddy_region_create(3)
 */
void *eddy_region_alloc_aligned(
    struct eddy_region *region, size_t alignment, size_t size);

/*
 * eddy_region_reset - ends all objects of a region, and keeps its memory.
 *
 * The next ones lie where the first ones lay, in memory that is still warm.
 * Objects above 1 MiB, and what is more than the option `keep`, are given back
 * to the arena.  A region may be reset while the caller is in it.
 *
 * RETURN     0, or an errno value:
 * EINVAL     it has been destroyed
 * EBUSY      another thread has entered it; or a signal handler as above
 *
 * THREADS    one at a time
 * COST       a few instructions for each 2 MiB that it has; once in 255
 *            resets 4 KiB are cleared for each 64 KiB that objects come to
 * FORK       as at any other time
 * SINCE      0.1
 * SEE ALSO   eddy_region_create(3)
 */
int eddy_region_reset(struct eddy_region *region);

/*
 * eddy_region_destroy - ends a region, and gives its memory to its arena.
 *
 * The handle and the objects must not be used any more.  As long as no other
 * region has come in its place a use of the handle is EINVAL; with the option
 * check the place stays empty, and each use of handle or objects ends the
 * process with a line that says so.
 *
 * RETURN     0, also for NULL; or an errno value, and nothing has changed:
 * EINVAL     it has been destroyed
 * EBUSY      some thread is in it
 *
 * THREADS    one at a time
 * COST       half a microsecond for each 2 MiB, however many objects they hold
 * FORK       as at any other time
 * SINCE      0.1
 * SEE ALSO   eddy_region_create(3)
 */
int eddy_region_destroy(struct eddy_region *region);

/* Bytes of memory that a region has, used or not; 0: it has been destroyed.
 * THREADS: one at a time.  SINCE 0.1.  SEE ALSO eddy_region_create(3). */
size_t eddy_region_bytes(const struct eddy_region *region);

/*
 * eddy_region_enter - from now on what the calling thread allocates comes from
 * the region.
 *
 *     eddy_region_enter(r);
 *     json = json_loadb(text, length, 0, NULL);
 *     eddy_region_leave(r);
 *     use(json);
 *     eddy_region_reset(r);
 *
 * For libraries that know nothing of regions: malloc, calloc, realloc(NULL),
 * aligned_alloc and its relatives, operator new, and mallocx where no flag
 * names an arena or a cache.  What they free is freed if it was the heap's, and
 * nothing happens if it is a region's.  A block of the heap that is made larger
 * stays in the heap, an object of a region stays in its region, inside as
 * outside.  What is asked for by a hint (eddy_alloc_hinted) is the heap's, in
 * its group.
 *
 * Sections nest: inside one, the thread may enter another region, or the same
 * again.  What a library keeps for later must not be made inside: caches, the
 * buffer of a stream at its first use, what dlopen lays out.  What
 * pthread_create does is the heap's.
 *
 * If the region cannot grow, malloc's answer is NULL and ENOMEM.
 *
 * RETURN     0, or an errno value:
 * EINVAL     it has been destroyed
 * EBUSY      another thread is in it
 * ENOMEM     no memory to note a further section of a region that is entered
 *            already
 *
 * THREADS    MT-safe.  A signal handler that allocates inside gets an object of
 *            the region, and one that has interrupted an allocation of the
 *            region a block of the heap.  Waits for nobody
 * COST       malloc and free of the thread are functions in C inside; the times
 *            are in eddy-guide(7)
 * FORK       in the child its only thread is inside, as in the parent; the
 *            child of vfork allocates from the region of its parent
 * SINCE      0.1
 * SEE ALSO   eddy_region_enter(3)
 */
int eddy_region_enter(struct eddy_region *region);

/*
 * eddy_region_leave - ends the innermost section of that region, and all that
 * were begun in it.
 *
 * So who has left a section by longjmp(3) is out of it, and of those within,
 * by the one call that it would have made anyway.
 *
 * RETURN     0, or an errno value:
 * EINVAL     the thread is not in that region
 *
 * A thread that ends inside has left all its regions if it ends by returning or
 * by pthread_exit(3).  What one that is killed was in cannot be entered, nor
 * destroyed, any more.
 *
 * THREADS    MT-safe, async-signal-safe; waits for nobody
 * FORK       as at any other time
 * SINCE      0.1
 * SEE ALSO   eddy_region_enter(3)
 */
int eddy_region_leave(struct eddy_region *region);

#ifdef __cplusplus
}
#endif

#endif /* EDDY_REGION_H */
