/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rig.h - what the stress programs share: options, TAP, time, chance, memory.
 *
 * The programs know malloc's public calls alone, so the same binary runs on
 * any allocator: it starts itself again under LD_PRELOAD.  The library comes
 * from `--on LIBRARY` ("none" is the C library's own malloc), else from
 * EDDY_SO.  EDDY_TIME is the budget in seconds, EDDY_SEED the seed.
 *
 * Nothing here allocates or takes a lock: all of it may run in a signal
 * handler and while other threads are frozen inside malloc.
 */
#ifndef EDDY_STRESS_RIG_H
#define EDDY_STRESS_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rig {
	const char *library; /* what serves malloc, for the reports */
	uint64_t seed;
	double seconds;      /* the budget of this run */
	bool is_long;        /* 30 seconds or more */
	bool expect_failure; /* a stall or a broken bound is wanted */
	unsigned patience;   /* what deadlines are multiplied by */
	unsigned patience_s; /* without progress for so long: a stall */
	bool no_signals;     /* leave out handlers that allocate */
	bool takes_word;  /* set before rig_start: one argument may be a name */
	const char *word; /* that name, or NULL */
};

extern struct rig rig;

/* Reads options and environment, starts again under the library. */
void rig_start(int argc, char **argv, double default_seconds);

#define RIG_PRINTF(f, a) __attribute__((format(printf, f, a)))

void rig_diag(const char *format, ...) RIG_PRINTF(1, 2);
void rig_ok(bool good, const char *format, ...) RIG_PRINTF(2, 3);
/* A point that cannot be tried here; the description says why. */
void rig_ok_skip(const char *format, ...) RIG_PRINTF(1, 2);
int rig_end(void);
_Noreturn void rig_skip(const char *why);

/* One failed line, then the end of the process; in any thread or child. */
_Noreturn void rig_fail_now(const char *format, ...) RIG_PRINTF(1, 2);

/*
 * Others did not get on: the verdict and the end.  Under --expect-failure a
 * stall is the good result, as is a broken bound; passing is the bad one.
 */
_Noreturn void rig_stalled(const char *format, ...) RIG_PRINTF(1, 2);

enum { RIG_OVERDUE = 99 }; /* exit status of a child out of time */

/* `what` (static) must be over in that many seconds; 0 lifts the limit. */
void rig_deadline(unsigned seconds, const char *what);

uint64_t rig_now_ns(void);
uint64_t rig_random(uint64_t *state);
static inline uint64_t
rig_below(uint64_t *state, uint64_t n)
{
	return (rig_random(state) >> 11) % n;
}

size_t rig_rss_bytes(void);
size_t rig_rss_bytes_of(const char *statm);
size_t rig_in_use_bytes(void);

/* "library+offset (symbol)" of a code address, for reports. */
const char *rig_place(uintptr_t ip, char *buffer, size_t size);
/* Is the address in the code of the object that defines malloc? */
bool rig_in_allocator(uintptr_t ip);

void rig_sleep_us(unsigned us);
int rig_futex_wait(const _Atomic uint32_t *word, uint32_t value, unsigned ms);
void rig_futex_wake(const _Atomic uint32_t *word);
void rig_pin(unsigned cpu);
void rig_unpin(void); /* where the program was at first */
unsigned rig_cpus(void);

#endif /* EDDY_STRESS_RIG_H */
