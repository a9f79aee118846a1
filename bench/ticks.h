/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ticks.h - a clock for what takes nanoseconds.
 *
 * Reads the counter that all CPUs share. What was to be measured begins after
 * ticks_begin and has ended before ticks_end reads.
 */
#ifndef EDDY_BENCH_TICKS_H
#define EDDY_BENCH_TICKS_H

#include <stdint.h>

#if defined(__x86_64__)

static inline uint64_t
ticks_begin(void)
{
	uint32_t lo, hi;

	__asm__ volatile("lfence\n\trdtsc\n\tlfence"
			 : "=a"(lo), "=d"(hi)
			 :
			 : "memory");
	return (uint64_t)hi << 32 | lo;
}

static inline uint64_t
ticks_end(void)
{
	uint32_t lo, hi;

	__asm__ volatile("rdtscp\n\tlfence"
			 : "=a"(lo), "=d"(hi)
			 :
			 : "ecx", "memory");
	return (uint64_t)hi << 32 | lo;
}

#elif defined(__aarch64__)

static inline uint64_t
ticks_begin(void)
{
	uint64_t t;

	__asm__ volatile("isb\n\tmrs %0, cntvct_el0\n\tisb"
			 : "=r"(t)
			 :
			 : "memory");
	return t;
}

static inline uint64_t
ticks_end(void)
{
	return ticks_begin();
}

#else
#	include "bench.h"

static inline uint64_t
ticks_begin(void)
{
	return bench_now_ns();
}

static inline uint64_t
ticks_end(void)
{
	return bench_now_ns();
}

#endif
#endif
