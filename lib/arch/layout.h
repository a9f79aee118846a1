/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * layout.h - what assembly and C must agree on; #defines only.
 *
 * Layer arch (L0).
 */
#ifndef EDDY_LAYOUT_H
#define EDDY_LAYOUT_H

/* A CPU's slot: EDDY_SLOT_SIZE bytes at slots + (index << EDDY_LG_SLOT). */
#define EDDY_LG_SLOT   20
#define EDDY_SLOT_SIZE (1 << EDDY_LG_SLOT)

/* Row header: {u32 cur, gen, end, beg} at slot + row offset. */
#define EDDY_ROW_CUR 0
#define EDDY_ROW_GEN 4
#define EDDY_ROW_END 8
#define EDDY_ROW_BEG 12

/*
 * Row 0 is never open; its gen word holds the row offset of the slot's home,
 * which malloc adds to the row of the size class.
 */
#define EDDY_SLOT_HOME 4
/* Its beg word is not zero once the slot may be written. */
#define EDDY_SLOT_READY 12

/* struct rseq */
#define EDDY_RSEQ_CPU 4
#define EDDY_RSEQ_CS  8

/* struct eddy_fast */
#define EDDY_FAST_BASE  0
#define EDDY_FAST_LIMIT 8
#define EDDY_FAST_TAGS  16
#define EDDY_FAST_SLOTS 24
#define EDDY_FAST_ROWS  32
#define EDDY_FAST_BELOW 40

#define EDDY_LG_PAGE_ASM 12
#define EDDY_ROW_MAX_ASM 65536

/* struct eddy_class: its size, and how large it is itself. */
#define EDDY_CLASS_SIZE 0
#define EDDY_LG_CLASS   4

/* Results of a section. */
#define EDDY_SECTION_OK    0
#define EDDY_SECTION_FAIL  1
#define EDDY_SECTION_ABORT 2

#if defined(__x86_64__)
#	define EDDY_RSEQ_SIGNATURE 0x53053053
#elif defined(__aarch64__)
#	define EDDY_RSEQ_SIGNATURE 0xd428bc00
#else
#	define EDDY_RSEQ_SIGNATURE 0
#endif

#endif /* EDDY_LAYOUT_H */
