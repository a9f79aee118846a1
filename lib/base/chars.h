/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chars.h - strings and digits where libc cannot be called: before relocation,
 * inside the first malloc.
 *
 * Layer: base (L0).
 */
#ifndef EDDY_CHARS_H
#define EDDY_CHARS_H

#include "lib/base/base.h"

static inline size_t
eddy_length(const char *s)
{
	size_t n = 0;

	while (s[n] != '\0')
		n++;
	return n;
}

#define EDDY_DIGITS_MAX 20 /* of the largest number, base 10 and above */

/* Digits of v, the last at end[-1]; returns the first.  base: up to 16. */
static inline char *
eddy_digits_of(char *end, uint64_t v, unsigned base)
{
	do
		*--end = "0123456789abcdef"[v % base];
	while ((v /= base) != 0);
	return end;
}

static inline char *
eddy_digits(char *end, uint64_t v)
{
	return eddy_digits_of(end, v, 10);
}

#endif /* EDDY_CHARS_H */
