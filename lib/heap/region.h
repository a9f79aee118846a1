/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * region.h - where objects of regions begin and end.
 *
 * Layer     heap (L3).
 * Progress  wait-free but for system calls; adopt, let_go: as eddy_large_free.
 * Memory    of each chunk of the range 144 KiB of addresses beside it, reserved
 *           with the first region and accessible from its chunk's first on: a
 *           byte for 16 bytes, and a *unit* for each 64 KiB.  None of it lies
 *           in the regions.  The bytes go back to the kernel when the memory
 *           does that they are of (eddy_region_drop).
 *
 * A region's memory is *stretches*: blocks of large.h, at multiples of 64 KiB,
 * whose pages have tags of kind EDDY_TAG_REGION with the page's number in the
 * stretch, and place 0: so free misses on its hit path, and C returns.  A
 * stretch is described in the unit of its first 64 KiB; what describes the
 * region lies in the unit of its first stretch.  So there is no table of
 * regions: a region is where its memory is.
 *
 * Objects are laid one behind the other; the byte where each begins is marked,
 * and that where the next will.  An object's size is the distance to the next
 * mark.  A mark is the number of the stretch's *life*, from 1 to 255: with each
 * reset another life begins, and what marks the ones before have left means
 * nothing.  Bytes are cleared where no life has come yet, and when the numbers
 * begin anew: up to `valid` they hold marks of lives up to this one, or zero.
 * An object above 1 MiB has a stretch of its own (`alone`), and no marks.
 *
 * Marks are plain bytes: who uses the region writes them, and who has an object
 * reads the two at its ends and those between, all written before it was handed
 * out.
 *
 * Invariants (tests/model/region.pml)
 *   I-REGION-1  An object that was handed out has marks at its two ends, and
 *               none between.
 *   I-REGION-2  Below top nothing is handed out again before a reset.
 *
 * Fields of a region belong to the thread that uses it: one at a time.  Inside
 * a section its signal handlers are there as well, which find `busy` set while
 * a field is changed, and go elsewhere.
 *
 * Order pairs
 *   REG-R1 -> REG-A1  addresses reserved; a chunk's part accessible.
 *   REG-R2 -> REG-A2  a region, from the thread that has left to who enters.
 *
 * A thread killed here costs the stretch in its hand; inside a section, the
 * region.
 */
#ifndef EDDY_HEAP_REGION_H
#define EDDY_HEAP_REGION_H

#include "eddy/region.h"

#include "lib/heap/heap.h"
#include "lib/heap/own.h"
#include "lib/heap/pagemap.h"

#define EDDY_LG_UNIT        16
#define EDDY_UNIT           ((size_t)1 << EDDY_LG_UNIT)
#define EDDY_REGION_GRAIN   16 /* alignment and smallest size of objects */
#define EDDY_REGION_MAX     ((size_t)1 << 20) /* above: alone */
#define EDDY_REGION_STRETCH EDDY_CHUNK        /* the longest but for these */

/* In the number of a tag: whole chunks, an object alone. */
#define EDDY_REGION_HUGE 512u

enum eddy_region_state {
	EDDY_REGION_NONE,
	EDDY_REGION_LIVE,
	EDDY_REGION_ENDED,
};

struct eddy_region_core;

/* Memory of a region. */
struct eddy_stretch {
	/* W: who makes it.  R: who has an object of it.  O: none: as a tag. */
	_Atomic(struct eddy_region_core *) core;
	/* Bytes from its beginning on whose marks are of lives up to this one,
	 * or which are in use if it is alone.
	 * W: who uses the region.  R: who has an object.  O: none: the object's
	 * marks were there when it was handed out. */
	_Atomic size_t valid;
	struct eddy_stretch *next;
	size_t size;
	uint32_t tag; /* as it was, and will be: of a run, or huge */
	/* The three below are constant while there are objects.  W: who makes
	 * it; of `life` who resets the region.  R: who has an object.  O: none:
	 * the object was handed out after. */
	unsigned char life;
	bool alone;
	char *base; /* the address */
};

/*
 * A section: from enter to leave.  The first of a region lies beside the
 * region, further ones are blocks of the heap.
 */
struct eddy_scope {
	struct eddy_region_core *core;
	struct eddy_scope *outer;
};

struct eddy_region_core {
	/* The first member.  Closed: top and limit NULL.  Else its top is the
	 * true one. */
	struct eddy_region open;
	char *top;
	char *limit; /* up to here marks may be set */
	char *end;   /* of what the stretch has for objects */
	struct eddy_stretch *cur;
	struct eddy_stretch *first; /* and those behind it; not alone */
	struct eddy_stretch *alone;
	struct eddy_arena *arena; /* NULL: the thread's */
	size_t bytes;
	size_t keep;
	size_t grow; /* the next stretch */
	unsigned entries;
	bool watched; /* by options that want to see each object */
	struct eddy_scope scope;
	/* An allocation is under way.  W, R: the thread that is inside and its
	 * handlers.  O: none. */
	_Atomic bool busy;
	/* W: create, destroy.  R: any, who was given the region.  O: none. */
	_Atomic uint32_t state;
	/*
	 * The thread that is inside, by its eddy_own, or 0.
	 * W: who enters, by CAS, and leaves.  R: any.  O: REG-R2 -> REG-A2.
	 */
	_Atomic uintptr_t inside;
};

#define EDDY_UNIT_BYTES 512

union eddy_unit {
	struct {
		struct eddy_stretch stretch;
		struct eddy_region_core core;
	};
	char bytes[EDDY_UNIT_BYTES];
};

static_assert(sizeof(union eddy_unit) == EDDY_UNIT_BYTES, "room for both");

/* Of the process: for statistics.  W, R: any.  O: none: counts. */
struct eddy_region_counts {
	_Atomic uint64_t live;
	_Atomic uint64_t bytes;
	_Atomic uint64_t created;
	_Atomic uint64_t resets;
	_Atomic uint64_t marked; /* of `bytes`, what is not alone */
	_Atomic uint64_t parts;  /* chunks with something beside them */
};

extern struct eddy_region_counts eddy_region_counts;

/* Bytes beside so many of stretches that are not alone. */
static inline uint64_t
eddy_region_beside(uint64_t bytes)
{
	return bytes / EDDY_REGION_GRAIN + bytes / EDDY_UNIT * EDDY_UNIT_BYTES;
}

/* The unit that describes the stretch of a page with such a tag. */
union eddy_unit *eddy_region_unit(
    struct eddy_heap *h, const void *place, uint32_t tag);

/*
 * eddy_region_adopt - makes a stretch of a block of large.h, at p.
 *
 * Pre:     p's place and `size` are multiples of EDDY_UNIT, or size is exact to
 *          the page and `alone` is set.
 * Returns: the unit; NULL: no memory for it, and the block is as it was.
 */
union eddy_unit *eddy_region_adopt(
    struct eddy_heap *h, char *p, size_t size, bool alone);

/* Makes a block of it again: it may be freed, resized. */
void eddy_region_let_go(struct eddy_heap *h, struct eddy_stretch *s);

/* Takes it again after eddy_region_let_go and a change of size. */
void eddy_region_retake(
    struct eddy_heap *h, struct eddy_stretch *s, size_t size);

/* Another life of a stretch that is not alone: none of its objects is there any
 * more. */
void eddy_region_renew(struct eddy_stretch *s);

/* Marks may be set in `size` bytes from its beginning. */
void eddy_region_clear(
    struct eddy_heap *h, struct eddy_stretch *s, size_t size);

/* The current stretch as objects are laid in it: where marks are, which mark,
 * the end. */
void eddy_region_look(struct eddy_heap *h, struct eddy_region_core *c);

/* Bytes that an object may reach to are up to here: what is valid of the
 * current stretch, but for the mark behind it. */
char *eddy_region_reached(const struct eddy_region_core *c);

/* The mark of an address in the current stretch. */
static inline unsigned char *
eddy_region_mark(const struct eddy_region_core *c, const char *p)
{
	return (
	    unsigned char *)(c->open.marks + (uintptr_t)p / EDDY_REGION_GRAIN);
}

/*
 * eddy_region_size_of - the size of an object, whose page has that tag.
 *
 * Fatal: no object begins there; of a region that has been destroyed where that
 * is known for sure.
 */
size_t eddy_region_size_of(
    struct eddy_heap *h, const void *place, uint32_t tag);

/* The same, 0 where none begins. */
size_t eddy_region_size_if(
    struct eddy_heap *h, const void *place, uint32_t tag);

/* Marks of memory that is in hand and serves nothing go back to the kernel. */
void eddy_region_drop(struct eddy_heap *h, const void *place, size_t size);

/* ------------------------------------------------------------------ */
/* Sections */

/* Whether the calling thread is in the region. */
bool eddy_region_is_mine(const struct eddy_region_core *c);

/* Begins a section.  -EBUSY: another thread is inside; -ENOMEM. */
EDDY_MUST_USE int eddy_region_push(
    struct eddy_heap *h, struct eddy_region_core *c);

/* Ends the innermost section of the thread, of which there is one. */
void eddy_region_pop(struct eddy_heap *h);

/* Makes true what a longjmp out of an allocation may have left half done. */
void eddy_region_settle(struct eddy_heap *h, struct eddy_region_core *c);

/*
 * eddy_region_step_out - the thread is in no section until eddy_region_step_in:
 * around what is laid out to stay, such as a thread's.
 */
struct eddy_scope *eddy_region_step_out(void);
void eddy_region_step_in(struct eddy_scope *scope);

/* The thread ends: it leaves all its regions. */
void eddy_region_end_thread(void);

#endif /* EDDY_HEAP_REGION_H */
