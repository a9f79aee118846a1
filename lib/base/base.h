/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * base.h - bits, alignment, assertions: no state, no system calls.
 *
 * Layer: base (L0).
 */
#ifndef EDDY_BASE_H
#define EDDY_BASE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EDDY_CACHELINE 64

/* The smallest step between size classes: 16 bytes, or 8 (--with-lg-quantum).
 */
#ifndef EDDY_LG_QUANTUM
#	define EDDY_LG_QUANTUM 4
#endif

#define eddy_likely(x)   __builtin_expect(!!(x), 1)
#define eddy_unlikely(x) __builtin_expect(!!(x), 0)

/* A result that must be looked at. */
#define EDDY_MUST_USE __attribute__((warn_unused_result))
#define EDDY_NOINLINE __attribute__((noinline))
#define EDDY_COLD     __attribute__((noinline, cold))
/* A symbol of the library's interface. */
#define EDDY_EXPORT __attribute__((visibility("default")))

#ifdef EDDY_DEBUG
#	define eddy_assert(x) ((x) ? (void)0 : __builtin_trap())
#else
#	define eddy_assert(x) ((void)sizeof(x))
#endif

/* Index of the lowest set bit; x must not be 0. */
static inline unsigned
eddy_ctz64(uint64_t x)
{
	return (unsigned)__builtin_ctzll(x);
}

/* Floor of log2; x must not be 0. */
static inline unsigned
eddy_log2(uint64_t x)
{
	return 63 - (unsigned)__builtin_clzll(x);
}

static inline bool
eddy_is_pow2(size_t x)
{
	return x != 0 && (x & (x - 1)) == 0;
}

/* Rounds up to a power of two a; the caller excludes overflow. */
static inline size_t
eddy_align_up(size_t x, size_t a)
{
	return (x + a - 1) & ~(a - 1);
}

static inline size_t
eddy_align_down(size_t x, size_t a)
{
	return x & ~(a - 1);
}

/* n bits from bit `from` on, inside one word; n is 1 to 64 - from. */
static inline uint64_t
eddy_mask(unsigned from, unsigned n)
{
	return (n >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << n) - 1) << from;
}

#endif /* EDDY_BASE_H */
