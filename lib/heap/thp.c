/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/heap/thp.h"

#include <errno.h>

#include "lib/os/advise.h"

/* Size of the huge pages that the rule is for, or EDDY_THP_NO_RULE. */
static uint64_t
rule(struct eddy_heap *h)
{
	/* relaxed, both: whoever looks finds the same. */
	uint64_t size = eddy_load_relaxed(&h->huge_page);

	if (eddy_likely(size != EDDY_THP_UNKNOWN))
		return size;
	size = h->opts.thp == EDDY_THP_DEFAULT && eddy_os_huge_always()
		   ? eddy_os_huge_size()
		   : EDDY_THP_NO_RULE;
	eddy_store_relaxed(&h->huge_page, size);
	return size;
}

static uint32_t
segment_of(const struct eddy_heap *h, const void *p)
{
	return (uint32_t)(((uintptr_t)p - h->base) >> EDDY_LG_SEGMENT);
}

/* Where the mark of a segment stands. */
static uintptr_t
border(const struct eddy_heap *h, uint32_t segment, uint32_t chunks)
{
	return h->base + ((uintptr_t)segment << EDDY_LG_SEGMENT) +
	       chunks * EDDY_CHUNK;
}

/* Marks a segment up to a number of chunks. */
static void
mark(struct eddy_heap *h, uint32_t segment, uint32_t chunks)
{
	_Atomic uint32_t *broken = &h->segments[segment].broken;
	/* relaxed: the CAS checks it. */
	uint32_t seen = eddy_load_relaxed(broken);

	while (seen < chunks) {
		int err = eddy_os_huge(
		    (void *)border(h, segment, 0), chunks * EDDY_CHUNK, false);

		/* ENOMEM: not all of it is mapped, or no more mappings. */
		if (err != 0 && err != -ENOMEM) {
			/* relaxed: as in rule. */
			eddy_store_relaxed(&h->huge_page, EDDY_THP_NO_RULE);
			return;
		}
		/*
		 * relaxed: a thread that has the memory in hand has told the
		 * kernel itself, or finds that one has.
		 */
		if (eddy_cas_relaxed(broken, &seen, chunks))
			return;
	}
}

void
eddy_thp_break(struct eddy_heap *h, void *p, size_t size)
{
	uint64_t huge = rule(h);
	uint32_t segment = segment_of(h, p);
	uintptr_t end;
	uint32_t chunks;

	if (huge == EDDY_THP_NO_RULE ||
	    (((uintptr_t)p | size) & (huge - 1)) == 0)
		return;
	/* Whole huge pages, up to the end of the segment or of the range. */
	end = eddy_align_up(
	    (uintptr_t)p + size, huge > EDDY_CHUNK ? (size_t)huge : EDDY_CHUNK);
	chunks = (uint32_t)((end - border(h, segment, 0)) >> EDDY_LG_CHUNK);
	if (chunks > EDDY_SEGMENT_CHUNKS)
		chunks = (uint32_t)EDDY_SEGMENT_CHUNKS;
	if (chunks > h->n_chunks - segment * (uint32_t)EDDY_SEGMENT_CHUNKS)
		chunks = h->n_chunks - segment * (uint32_t)EDDY_SEGMENT_CHUNKS;
	mark(h, segment, chunks);
}

/* As the options say; what is refused stays as the system has it. */
static void
tell(struct eddy_heap *h, void *p, size_t size)
{
	if (h->opts.thp != EDDY_THP_DEFAULT &&
	    eddy_os_huge(p, size, h->opts.thp == EDDY_THP_ALWAYS) != 0)
		return;
}

void
eddy_thp_begin(struct eddy_heap *h)
{
	if (h->reserved)
		tell(h, (void *)h->base, (size_t)h->n_chunks * EDDY_CHUNK);
}

void
eddy_thp_again(struct eddy_heap *h, void *p, size_t size)
{
	uintptr_t at = (uintptr_t)p;
	uintptr_t end = at + size;

	tell(h, p, size);
	while (at < end) {
		uint32_t segment = segment_of(h, (void *)at);
		/* relaxed: what is marked from now on is told by who does. */
		uintptr_t to = border(h, segment,
		    eddy_load_relaxed(&h->segments[segment].broken));
		uintptr_t next = border(h, segment + 1, 0);

		if (to > end)
			to = end;
		/* What is refused may be filled again, no more. */
		if (at < to && eddy_os_huge((void *)at, to - at, false) != 0)
			return;
		at = next;
	}
}
