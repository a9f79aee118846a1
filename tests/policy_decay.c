/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * policy_decay.c - how much may stay as it ages: numbers and time in, numbers
 * out.  Time is made up; each look is compared with a history that remembers
 * every epoch, and with the polynomial itself.
 */
#include "tap.h"

#include "lib/policy/decay.h"

enum { EPOCHS = EDDY_DECAY_EPOCHS };

/* The share that stays after the share x of the decay time. */
static double
stays(double x)
{
	return x >= 1 ? 0 : 1 - x * x * x * (6 * x * x - 15 * x + 10);
}

static double
distance(double a, double b)
{
	return a > b ? a - b : b - a;
}

static uint64_t
allowed(const struct eddy_decay *d, uint64_t used)
{
	return eddy_decay_look(d, used, 0).allowed;
}

/* ------------------------------------------------------------------ */
/* A history that forgets nothing */

struct history {
	uint64_t peak[4096]; /* of each epoch, the newest last */
	unsigned n;
};

static void
remember(struct history *y, uint64_t n, uint64_t peak)
{
	for (uint64_t i = 0; i < n && i < EPOCHS; i++) {
		if (y->n == sizeof y->peak / sizeof *y->peak) {
			memmove(y->peak, y->peak + y->n / 2,
			    y->n / 2 * sizeof *y->peak);
			y->n /= 2;
		}
		y->peak[y->n++] = peak;
	}
}

/*
 * Each unit may stay with the weight of the last epoch that it was in use in:
 * what was in use k epochs ago, and in no later epoch, has the weight of k.
 */
static double
remembered(const struct history *y, uint64_t used, unsigned ahead)
{
	uint64_t most = used;
	double sum = 0;

	for (unsigned k = 0; k < y->n && k + ahead < EPOCHS; k++) {
		uint64_t peak = y->peak[y->n - 1 - k];

		if (peak > UINT32_MAX)
			peak = UINT32_MAX;
		if (peak <= most)
			continue;
		sum +=
		    (double)(peak - most) * stays((double)(k + ahead) / EPOCHS);
		most = peak;
	}
	return sum;
}

/* ------------------------------------------------------------------ */

/* After one peak, at 20 times; the clock is read in steps of a few ms. */
static bool
follows_curve(uint64_t decay_ms, uint64_t peak)
{
	static struct eddy_decay d;
	uint64_t step = decay_ms > 2000 ? decay_ms / 1000 : 1;
	const uint64_t start = 1000000;
	double worst = 0;

	memset(&d, 0, sizeof d);
	(void)eddy_decay_advance(&d, start, decay_ms, peak);
	for (uint64_t t = 0, i = 0; i <= 20; t += step) {
		double x = (double)t / (double)decay_ms;
		double is;

		(void)eddy_decay_advance(&d, start + t, decay_ms, 0);
		if (t < decay_ms * i / 20)
			continue;
		i++;
		is = (double)allowed(&d, 0) / (double)peak;
		if (distance(is, stays(x)) > worst)
			worst = distance(is, stays(x));
	}
	if (worst <= 0.01)
		return true;
	tap_diag("%llu ms: off by %.4f", (unsigned long long)decay_ms, worst);
	return false;
}

static void
test_curve(void)
{
	static const uint64_t even[] = {200, 1000, 5000, 10000, 600000};
	static const uint64_t odd[] = {201, 299, 399, 999, 1999, 2001, 12345};
	bool held = true;

	for (size_t i = 0; i < sizeof even / sizeof *even; i++)
		held &= follows_curve(even[i], 1000000);
	tap_ok(held, "after one peak, the curve at 20 times, to one per cent");
	held = true;
	for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
		held &= follows_curve(odd[i], 1000000);
	tap_ok(held, "decay times that are no multiple of anything");
	tap_ok(follows_curve(18446744073709, 1000000), "the longest time");
	tap_ok(follows_curve(10000, UINT32_MAX), "2^32 - 1 pages");
}

/* Milliseconds after a peak until nothing may stay. */
static uint64_t
lasts(uint64_t decay_ms)
{
	static struct eddy_decay d;
	uint64_t t = 1;

	memset(&d, 0, sizeof d);
	(void)eddy_decay_advance(&d, 5000, decay_ms, 1000000);
	for (;; t++) {
		(void)eddy_decay_advance(&d, 5000 + t, decay_ms, 0);
		if (allowed(&d, 0) == 0)
			return t;
	}
}

static void
test_short(void)
{
	static const uint64_t ms[] = {0, 1, 2, 7, 199, 200, 201, 399};
	bool held = true;

	for (size_t i = 0; i < sizeof ms / sizeof *ms; i++) {
		uint64_t t = lasts(ms[i]);
		uint64_t most = ms[i] + 2;

		if (t <= most && t + ms[i] / 50 >= ms[i])
			continue;
		tap_diag("%llu ms lasts %llu ms", (unsigned long long)ms[i],
		    (unsigned long long)t);
		held = false;
	}
	tap_ok(held, "short decay times last as long as they say");
}

/* ------------------------------------------------------------------ */

/* Steps at random times, of random peaks; looks with random use. */
static bool
agrees(uint64_t decay_ms, uint64_t *rng)
{
	static struct eddy_decay d;
	static struct history y;
	const uint64_t scale = (uint64_t)1 << (8 + tap_random(rng) % 25);
	uint64_t now = 1 + tap_random(rng) % 1000000;
	uint64_t closed = now * EPOCHS; /* in parts of a millisecond */

	memset(&d, 0, sizeof d);
	y.n = 0;
	for (unsigned i = 0; i < 2000; i++) {
		uint64_t peak = tap_random(rng) % scale;
		uint64_t used = tap_random(rng) % scale;
		uint64_t passed =
		    i == 0 ? 1 : (now * EPOCHS - closed) / decay_ms;
		unsigned ahead = (unsigned)(tap_random(rng) % (EPOCHS + 2));
		double want;
		double is;

		if (eddy_decay_advance(&d, now, decay_ms, peak) !=
		    (passed != 0)) {
			tap_diag("an epoch was closed too early or too late");
			return false;
		}
		if (i != 0)
			closed += passed * decay_ms;
		remember(&y, passed, peak);
		want = remembered(&y, used, ahead);
		is = (double)eddy_decay_look(&d, used, ahead).allowed;
		/* A weight is cut to 2^-24. */
		if (distance(is, want) > 2 + (double)scale / (1 << 22)) {
			tap_diag("step %u: %.0f pages, not %.1f", i, is, want);
			return false;
		}
		now += tap_random(rng) % 8 != 0
			   ? tap_random(rng) % (1 + decay_ms / 70)
			   : tap_random(rng) % (1 + decay_ms / 2);
	}
	return true;
}

static void
test_history(void)
{
	uint64_t rng = tap.seed;
	bool held = true;

	for (unsigned i = 0; i < 20; i++)
		held &= agrees(1 + tap_random(&rng) % 20000, &rng);
	tap_ok(held, "each page may stay by when it was last in use");
}

/* Up and down within the decay time: what is come back to stays. */
static void
test_waves(void)
{
	static struct eddy_decay d;
	const uint64_t high = 100000;
	const uint64_t low = 20000;
	uint64_t least = UINT64_MAX;
	uint64_t now = 1000;

	/* Two seconds high, two seconds low, of ten. */
	for (unsigned i = 0; i < 2000; i++, now += 50) {
		bool is_high = i / 40 % 2 == 0;

		(void)eddy_decay_advance(&d, now, 10000, is_high ? high : low);
		if (!is_high && allowed(&d, low) < least)
			least = allowed(&d, low);
	}
	/* 1 - s(0.2) = 0.942 */
	tap_ok(least > (high - low) * 94 / 100,
	    "use that comes back within the decay time keeps its memory");
	tap_ok(allowed(&d, high) == 0, "and no more than that");
	for (unsigned i = 0; i < 201; i++, now += 50)
		(void)eddy_decay_advance(&d, now, 10000, low);
	tap_ok(allowed(&d, low) == 0, "which goes when it does not");
}

static void
test_silence(void)
{
	static struct eddy_decay d;
	struct eddy_decay_view v;

	(void)eddy_decay_advance(&d, 1000, 10000, 500);
	(void)eddy_decay_advance(&d, 1000 + 60000, 10000, 3);
	v = eddy_decay_look(&d, 3, 0);
	tap_ok(v.allowed == 0 && v.flat, "silence ages everything");
	/* Of a peak that nobody looked at it is not known when it was. */
	(void)eddy_decay_advance(&d, 1000 + 120000, 10000, 1000);
	v = eddy_decay_look(&d, 3, 0);
	tap_ok(v.allowed == 997 && !v.flat, "a peak in it counts as of now");
	v = eddy_decay_look(&d, 1000, 0);
	tap_ok(v.allowed == 0 && v.flat, "flat: in use as it was all the time");
	(void)eddy_decay_advance(&d, 1000 + 120050, 10000, 1001);
	tap_ok(!eddy_decay_look(&d, 1000, 0).flat &&
		   !eddy_decay_look(&d, 1001, 0).flat,
	    "not flat: one epoch knew another use");
}

static void
test_open(void)
{
	static struct eddy_decay d;
	struct eddy_decay_view v;

	(void)eddy_decay_advance(&d, 1000, 10000, 3);
	eddy_decay_note(&d, 1000);
	v = eddy_decay_look(&d, 3, 0);
	tap_ok(v.allowed == 997 && !v.flat &&
		   eddy_decay_due(&d, 3, 997, 10) < EPOCHS / 2 &&
		   eddy_decay_due(&d, 3, 0, 0) == EPOCHS,
	    "what was in use in the open epoch counts");
	(void)eddy_decay_advance(&d, 1050, 10000, 1000);
	v = eddy_decay_look(&d, 3, 0);
	tap_ok(v.allowed == 997, "as it does when it is closed");
	(void)eddy_decay_advance(&d, 1000 + 60000, 10000, 3);
	tap_ok(eddy_decay_look(&d, 3, 0).flat, "and no longer than that");
}

static void
test_clock(void)
{
	static struct eddy_decay d;
	uint64_t now = (uint64_t)1 << 40;
	uint64_t before;
	bool falls = true;

	(void)eddy_decay_advance(&d, now, 10000, 1000000);
	for (unsigned i = 0; i < 100; i++)
		(void)eddy_decay_advance(&d, now += 50, 10000, 0);
	before = allowed(&d, 0);
	now -= 1000000;
	tap_ok(eddy_decay_advance(&d, now, 10000, 0) &&
		   !eddy_decay_advance(&d, now + 1, 10000, 0),
	    "a clock that goes back begins an epoch there");
	tap_ok(allowed(&d, 0) <= before && allowed(&d, 0) + 20000 > before,
	    "and what may stay is as before");
	for (unsigned i = 0; i < 100; i++) {
		(void)eddy_decay_advance(&d, now += 50, 10000, 0);
		falls &= allowed(&d, 0) <= before;
		before = allowed(&d, 0);
	}
	tap_ok(falls && before == 0, "it decays on from there");
	(void)eddy_decay_advance(&d, now += 50, 10000, 1000000);
	now += (uint64_t)1 << 41;
	tap_ok(eddy_decay_advance(&d, now, 10000, 7) && allowed(&d, 7) == 0,
	    "a clock that jumps forward ages everything");
	(void)eddy_decay_advance(&d, now + 10000, 100, 1000);
	(void)eddy_decay_advance(&d, now + 10001, 1000000000, 0);
	(void)eddy_decay_advance(&d, now + 10002, 1, 0);
	tap_ok(allowed(&d, 0) <= 1000, "decay times that change in between");
}

static void
test_limits(void)
{
	static struct eddy_decay d;
	struct eddy_decay_view v;

	(void)eddy_decay_advance(&d, 1, 10000, (uint64_t)1 << 40);
	tap_ok(allowed(&d, 0) == UINT32_MAX, "peaks end at 2^32 - 1 pages");
	tap_ok(allowed(&d, (uint64_t)1 << 41) == 0, "use does not");
	for (unsigned i = 1; i < EPOCHS; i++) {
		v = eddy_decay_look(&d, 0, i);
		if (distance((double)v.allowed,
			UINT32_MAX * stays((double)i / EPOCHS)) > 300)
			break;
		if (i + 1 == EPOCHS) {
			tap_ok(true, "their sums fit 64 bits");
			return;
		}
	}
	tap_ok(false, "their sums fit 64 bits");
}

static unsigned
due_by_hand(
    const struct eddy_decay *d, uint64_t used, uint64_t idle, uint64_t slack)
{
	for (unsigned i = 1; i < EPOCHS; i++)
		if (eddy_decay_look(d, used, i).allowed + slack < idle)
			return i;
	return EPOCHS;
}

static void
test_due(void)
{
	static struct eddy_decay d;
	uint64_t rng = tap.seed + 1;
	uint64_t now = 1;
	unsigned wrong = 0;

	for (unsigned i = 0; i < 3000; i++) {
		uint64_t used = tap_random(&rng) % 1000;
		uint64_t idle = tap_random(&rng) % 4000;
		uint64_t slack = tap_random(&rng) % 2 ? 0 : idle / 5;

		(void)eddy_decay_advance(
		    &d, now, 10000, tap_random(&rng) % 3000);
		now += tap_random(&rng) % 1000;
		wrong += eddy_decay_due(&d, used, idle, slack) !=
			 due_by_hand(&d, used, idle, slack);
	}
	tap_ok(wrong == 0, "the next step is due when more has aged");
	tap_ok(eddy_decay_due(&d, 0, 0, 0) == EPOCHS &&
		   eddy_decay_due(&d, 0, UINT64_MAX / 2, 0) == 1,
	    "in one epoch at least, in the decay time at most");
}

/* What slack alone keeps is looked at when nothing else is left to keep it. */
static void
test_flat(void)
{
	static struct eddy_decay d;
	uint64_t now = 1;

	(void)eddy_decay_advance(&d, now, 10000, 1000);
	for (unsigned i = 0; i < EPOCHS * 3 / 4; i++) {
		now += 10000 / EPOCHS;
		(void)eddy_decay_advance(&d, now, 10000, 5);
	}
	for (unsigned n = eddy_decay_due(&d, 5, 100, 200); n > 0; n--) {
		now += 10000 / EPOCHS;
		(void)eddy_decay_advance(&d, now, 10000, 5);
	}
	tap_ok(eddy_decay_look(&d, 5, 0).flat &&
		   now <= 1 + 10000 + 2 * 10000 / EPOCHS,
	    "with slack, when the peak has aged: after %u ms", (unsigned)now);
}

int
main(void)
{
	const char *seed = getenv("EDDY_SEED");

	tap.pid = getpid();
	tap.seed = (uint64_t)getpid();
	if (seed != NULL && *seed != '\0')
		tap.seed = strtoull(seed, NULL, 0);
	tap_diag("EDDY_SEED=%llu", (unsigned long long)tap.seed);
	tap_guard(60);
	test_curve();
	test_short();
	test_history();
	test_waves();
	test_silence();
	test_open();
	test_clock();
	test_limits();
	test_due();
	test_flat();
	return tap_end();
}
