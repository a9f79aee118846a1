/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/heap/sizeclass.h"

#include <errno.h>
#include <string.h>

/* S(row, size below, size, pages a slab) */
#if EDDY_LG_QUANTUM == 3
#	define FINE(S)         \
		S(1, 0, 8, 1)   \
		S(2, 8, 16, 1)  \
		S(3, 16, 24, 3) \
		S(4, 24, 32, 1) \
		S(5, 32, 40, 5) \
		S(6, 40, 48, 3) \
		S(7, 48, 56, 7) \
		S(8, 56, 64, 1)
#else
#	define FINE(S)         \
		S(1, 0, 8, 1)   \
		S(2, 8, 16, 1)  \
		S(3, 16, 32, 1) \
		S(4, 32, 48, 3) \
		S(5, 48, 64, 1)
#endif

#define SMALL(S)                             \
	FINE(S)                              \
	S(EDDY_N_FINE + 1, 64, 80, 5)        \
	S(EDDY_N_FINE + 2, 80, 96, 3)        \
	S(EDDY_N_FINE + 3, 96, 112, 7)       \
	S(EDDY_N_FINE + 4, 112, 128, 1)      \
	S(EDDY_N_FINE + 5, 128, 160, 5)      \
	S(EDDY_N_FINE + 6, 160, 192, 3)      \
	S(EDDY_N_FINE + 7, 192, 224, 7)      \
	S(EDDY_N_FINE + 8, 224, 256, 1)      \
	S(EDDY_N_FINE + 9, 256, 320, 5)      \
	S(EDDY_N_FINE + 10, 320, 384, 3)     \
	S(EDDY_N_FINE + 11, 384, 448, 7)     \
	S(EDDY_N_FINE + 12, 448, 512, 1)     \
	S(EDDY_N_FINE + 13, 512, 640, 5)     \
	S(EDDY_N_FINE + 14, 640, 768, 3)     \
	S(EDDY_N_FINE + 15, 768, 896, 7)     \
	S(EDDY_N_FINE + 16, 896, 1024, 1)    \
	S(EDDY_N_FINE + 17, 1024, 1280, 5)   \
	S(EDDY_N_FINE + 18, 1280, 1536, 3)   \
	S(EDDY_N_FINE + 19, 1536, 1792, 7)   \
	S(EDDY_N_FINE + 20, 1792, 2048, 1)   \
	S(EDDY_N_FINE + 21, 2048, 2560, 5)   \
	S(EDDY_N_FINE + 22, 2560, 3072, 3)   \
	S(EDDY_N_FINE + 23, 3072, 3584, 7)   \
	S(EDDY_N_FINE + 24, 3584, 4096, 1)   \
	S(EDDY_N_FINE + 25, 4096, 5120, 5)   \
	S(EDDY_N_FINE + 26, 5120, 6144, 3)   \
	S(EDDY_N_FINE + 27, 6144, 7168, 7)   \
	S(EDDY_N_FINE + 28, 7168, 8192, 2)   \
	S(EDDY_N_FINE + 29, 8192, 10240, 5)  \
	S(EDDY_N_FINE + 30, 10240, 12288, 3) \
	S(EDDY_N_FINE + 31, 12288, 14336, 7)

/* R(pages) */
#define RUNS(R) \
	R(4)    \
	R(5)    \
	R(6)    \
	R(7)    \
	R(8)    \
	R(9)    \
	R(10)   \
	R(11)   \
	R(12)   \
	R(13)   \
	R(14)   \
	R(15)   \
	R(16)

/* C(pages below, pages): runs by the classes of jemalloc 5.3.0 */
#define RUNS_530(C) \
	C(0, 4)     \
	C(4, 5)     \
	C(5, 6)     \
	C(6, 7)     \
	C(7, 8)     \
	C(8, 10)    \
	C(10, 12)   \
	C(12, 14)   \
	C(14, 16)

/* The row of so many pages. */
#define RUN_AT(pages) (EDDY_ROW_RUN + (pages)-4)

/*
 * 64 objects travel together, and 40 from 128 B to 1 KiB, so that an object
 * costs a sixteenth of an RMW at most, failed ones included: more made flows
 * from CPU to CPU slower, since as many again are on their way.  Above it is 32
 * KiB; fewer than 8 objects made a flow of 32 KiB blocks two to four times as
 * slow.
 */
#define BATCH(size)                            \
	((size) < 128         ? 64             \
	    : (size) <= 1024  ? 40             \
	    : (size) <= 4096  ? 32768 / (size) \
	    : (size) <= 32768 ? 8              \
			      : 4)

/* What fits in the row's place in the slot: see row_begin in cpu_cache.c. */
#define DEPTH(size)                  \
	((size) <= 256        ? 1024 \
	    : (size) <= 1024  ? 512  \
	    : (size) <= 4096  ? 128  \
	    : (size) <= 14336 ? 64   \
	    : (size) <= 32768 ? 32   \
			      : 16)

#define CLASS(size, pages, n)                                            \
	{size, (uint32_t)(((1ULL << 32) + (size)-1) / (size)), pages, n, \
	    BATCH(size), DEPTH(size)},
#define SMALL_CLASS(row, below, size, pages) \
	[row] = CLASS(size, pages, (pages)*4096 / (size))
#define RUN_CLASS(pages) [RUN_AT(pages)] = CLASS((pages)*4096, pages, 1)

struct eddy_class eddy_classes[EDDY_N_ROWS] = {
    SMALL(SMALL_CLASS) RUNS(RUN_CLASS)};

/* A request of 0 is one of 1. */
#define SMALL_ROW(row, below, size, pages) \
	[((below) + 7) / 8 + ((below) != 0)...(size) / 8] = (row),
#define RUN_ROW(pages)                                              \
	[((pages) == 4 ? EDDY_SMALL_MAX : ((pages)-1) * 4096) / 8 + \
	    1 ...(pages) * 4096 / 8] = RUN_AT(pages),
#define RUN_ROW_530(below, pages)                             \
	[((below) == 0 ? EDDY_SMALL_MAX : (below)*4096) / 8 + \
	    1 ...(pages) * 4096 / 8] = RUN_AT(pages),

const uint8_t eddy_size_rows[EDDY_ROW_MAX / 8 + 1] = {
    SMALL(SMALL_ROW) RUNS(RUN_ROW)};

const uint8_t eddy_size_rows_530[EDDY_ROW_MAX / 8 + 1] = {
    SMALL(SMALL_ROW) RUNS_530(RUN_ROW_530)};

/* ------------------------------------------------------------------ */
/* Slabs of a size of choice */

/* Classes from one size to another have slabs of so many pages. */
struct slab_range {
	size_t from;
	size_t to;
	size_t pages;
};

/* A number, and behind it `end`; NULL: not so. */
static const char *
read_number(const char *s, size_t *ret, char end)
{
	const char *first = s;

	for (*ret = 0; *s >= '0' && *s <= '9' && s - first < 18; s++)
		*ret = *ret * 10 + (size_t)(*s - '0');
	return s != first && (*s == end || (end == '|' && *s == '\0')) ? s
								       : NULL;
}

/* Returns what follows it, NULL if it is none. */
static const char *
read_range(const char *s, struct slab_range *r)
{
	s = read_number(s, &r->from, '-');
	if (s != NULL)
		s = read_number(s + 1, &r->to, ':');
	if (s != NULL)
		s = read_number(s + 1, &r->pages, '|');
	if (s != NULL && *s == '|' && *++s == '\0')
		return NULL;
	return s;
}

static void
set_pages(struct eddy_class *class, size_t pages)
{
	size_t least = (class->size + EDDY_PAGE - 1) / EDDY_PAGE;
	size_t most = (size_t)EDDY_SLAB_OBJECTS * class->size / EDDY_PAGE;

	if (most > EDDY_SLAB_PAGES)
		most = EDDY_SLAB_PAGES;
	if (pages < least)
		pages = least;
	if (pages > most)
		pages = most;
	/* Another builder's heap may be in use: it has these values. */
	if (class->pages == pages)
		return;
	class->pages = (uint16_t)pages;
	class->n_objects = (uint16_t)(pages * EDDY_PAGE / class->size);
}

bool
eddy_class_list(const char *s)
{
	struct slab_range r;

	if (*s == '\0')
		return false;
	while (s != NULL && *s != '\0')
		s = read_range(s, &r);
	return s != NULL;
}

int
eddy_class_slabs(const char *list)
{
	struct slab_range r;

	if (*list == '\0' || strcmp(list, "default") == 0)
		return 0;
	if (!eddy_class_list(list))
		return -EINVAL;
	for (unsigned row = 1; row <= EDDY_N_SMALL; row++) {
		struct eddy_class *class = &eddy_classes[row];
		size_t pages = class->pages;

		for (const char *s = list; *s != '\0';) {
			s = read_range(s, &r);
			if (class->size >= r.from && class->size <= r.to)
				pages = r.pages;
		}
		set_pages(class, pages);
	}
	return 0;
}
