/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/heap/sizeclass.h"

/* S(row, size below, size, pages a slab) */
#define SMALL(S)               \
	S(1, 0, 8, 1)          \
	S(2, 8, 16, 1)         \
	S(3, 16, 32, 1)        \
	S(4, 32, 48, 3)        \
	S(5, 48, 64, 1)        \
	S(6, 64, 80, 5)        \
	S(7, 80, 96, 3)        \
	S(8, 96, 112, 7)       \
	S(9, 112, 128, 1)      \
	S(10, 128, 160, 5)     \
	S(11, 160, 192, 3)     \
	S(12, 192, 224, 7)     \
	S(13, 224, 256, 1)     \
	S(14, 256, 320, 5)     \
	S(15, 320, 384, 3)     \
	S(16, 384, 448, 7)     \
	S(17, 448, 512, 1)     \
	S(18, 512, 640, 5)     \
	S(19, 640, 768, 3)     \
	S(20, 768, 896, 7)     \
	S(21, 896, 1024, 1)    \
	S(22, 1024, 1280, 5)   \
	S(23, 1280, 1536, 3)   \
	S(24, 1536, 1792, 7)   \
	S(25, 1792, 2048, 1)   \
	S(26, 2048, 2560, 5)   \
	S(27, 2560, 3072, 3)   \
	S(28, 3072, 3584, 7)   \
	S(29, 3584, 4096, 1)   \
	S(30, 4096, 5120, 5)   \
	S(31, 5120, 6144, 3)   \
	S(32, 6144, 7168, 7)   \
	S(33, 7168, 8192, 2)   \
	S(34, 8192, 10240, 5)  \
	S(35, 10240, 12288, 3) \
	S(36, 12288, 14336, 7)

/* R(row, pages) */
#define RUNS(R)   \
	R(37, 4)  \
	R(38, 5)  \
	R(39, 6)  \
	R(40, 7)  \
	R(41, 8)  \
	R(42, 9)  \
	R(43, 10) \
	R(44, 11) \
	R(45, 12) \
	R(46, 13) \
	R(47, 14) \
	R(48, 15) \
	R(49, 16)

/* C(row, pages below, pages): runs by the classes of jemalloc 5.3.0 */
#define RUNS_530(C)   \
	C(37, 0, 4)   \
	C(38, 4, 5)   \
	C(39, 5, 6)   \
	C(40, 6, 7)   \
	C(41, 7, 8)   \
	C(43, 8, 10)  \
	C(45, 10, 12) \
	C(47, 12, 14) \
	C(49, 14, 16)

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
#define RUN_CLASS(row, pages) [row] = CLASS((pages)*4096, pages, 1)

const struct eddy_class eddy_classes[EDDY_N_ROWS] = {
    SMALL(SMALL_CLASS) RUNS(RUN_CLASS)};

/* A request of 0 is one of 1. */
#define SMALL_ROW(row, below, size, pages) \
	[((below) + 7) / 8 + ((below) != 0)...(size) / 8] = (row),
#define RUN_ROW(row, pages)                                         \
	[((pages) == 4 ? EDDY_SMALL_MAX : ((pages)-1) * 4096) / 8 + \
	    1 ...(pages) * 4096 / 8] = (row),
#define RUN_ROW_530(row, below, pages)                        \
	[((below) == 0 ? EDDY_SMALL_MAX : (below)*4096) / 8 + \
	    1 ...(pages) * 4096 / 8] = (row),

const uint8_t eddy_size_rows[EDDY_ROW_MAX / 8 + 1] = {
    SMALL(SMALL_ROW) RUNS(RUN_ROW)};

const uint8_t eddy_size_rows_530[EDDY_ROW_MAX / 8 + 1] = {
    SMALL(SMALL_ROW) RUNS_530(RUN_ROW_530)};
