/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * section_exits.h - where a restartable sequence can be left.
 *
 * A thread inside such a sequence must not be stopped, or the kernel aborts
 * it; a stepper therefore runs through it to breakpoints at all its exits.
 */
#ifndef EDDY_STRESS_SECTION_EXITS_H
#define EDDY_STRESS_SECTION_EXITS_H

#include <stddef.h>
#include <stdint.h>

/* The kernel's descriptor, as the thread's rseq area points to it. */
struct section {
	uint32_t version;
	uint32_t flags;
	uint64_t start;
	uint64_t length;
	uint64_t abort;
};

/*
 * Fills ret_exits with the address behind the section, its abort address and
 * the targets of its branches to elsewhere; returns how many.  An unknown
 * instruction ends the search for branches.
 */
size_t section_exits(const struct section *s, const uint8_t *code,
    uint64_t *ret_exits, size_t max_exits);

#endif /* EDDY_STRESS_SECTION_EXITS_H */
