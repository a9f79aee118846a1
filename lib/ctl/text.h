/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * text.h - text in pieces, handed on by the bufferful.
 *
 * Layer     ctl (L5).
 * Progress  wait-free but for what takes the text.
 * Memory    the caller's: half a KiB of its stack.  No allocation, no libc.
 * Context   any; async-signal-safe if what takes the text is.
 */
#ifndef EDDY_TEXT_H
#define EDDY_TEXT_H

#include "lib/base/base.h"

struct eddy_text {
	void (*put)(void *arg, const char *s);
	void *arg;
	size_t len;
	char buf[480];
};

/* put NULL: standard error. */
void eddy_text_open(
    struct eddy_text *t, void (*put)(void *arg, const char *s), void *arg);

/* Hands on what is left. */
void eddy_text_close(struct eddy_text *t);

void eddy_text_add(struct eddy_text *t, const char *s);

/* Decimal, at least `width` wide, blanks in front. */
void eddy_text_number(struct eddy_text *t, uint64_t v, unsigned width);

/* A word, blanks in front or behind it up to `width`. */
void eddy_text_right(struct eddy_text *t, const char *s, unsigned width);
void eddy_text_left(struct eddy_text *t, const char *s, unsigned width);

/* "1.5 MiB": four figures at most, cut and not rounded. */
void eddy_text_human(struct eddy_text *t, uint64_t bytes);

/* The same of things, by thousands: "4.0 M"; all figures below 10,000. */
void eddy_text_count(struct eddy_text *t, uint64_t n);

/* A string of JSON, with its quotes. */
void eddy_text_quoted(struct eddy_text *t, const char *s, size_t n);

#endif /* EDDY_TEXT_H */
