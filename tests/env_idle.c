/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * env_idle.c - what a program does not use goes back to the system although
 * the program sleeps: small blocks, freed by a thread that stays, or is gone,
 * or freed by another thread than theirs; and as long as it is busy with
 * something else.
 */
#include "probe.h"

enum { N = 120000 };

static char *blocks[N];
static atomic_int step; /* of the helper, as its caller wants it */
static atomic_bool done;
static long before; /* anything */

static void
await(int what)
{
	while (atomic_load(&step) < what)
		(void)usleep(1000);
}

static void
allocate(void)
{
	for (unsigned i = 0; i < N; i++) {
		size_t n = 200 + (size_t)i * 37 % 2300;

		blocks[i] = p_malloc(n);
		if (blocks[i] == NULL)
			tap_bail("no memory");
		memset(blocks[i], 1, n);
	}
}

static void
release(void)
{
	for (unsigned i = 0; i < N; i++)
		p_free(blocks[i]);
}

/* Allocates at 1, frees at 2 if it is to, ends at 3. */
static void *
helper(void *frees)
{
	await(1);
	allocate();
	atomic_store(&done, true);
	await(2);
	if (frees != NULL)
		release();
	atomic_store(&done, true);
	await(3);
	return NULL;
}

static void
command(int what)
{
	atomic_store(&done, false);
	atomic_store(&step, what);
	while (!atomic_load(&done))
		(void)usleep(1000);
}

/* Resident memory must fall by four fifths of what the blocks had: in a
 * quarter of a minute, of which the machine may need most for others. */
static bool
falls(long peak, void (*meanwhile)(void))
{
	long now = peak;

	for (unsigned i = 0; i < 1500 * tap_patience(); i++) {
		if (meanwhile != NULL)
			meanwhile();
		(void)usleep(10000);
		now = probe_rss_kib();
		if (now - before < (peak - before) / 5)
			return true;
	}
	tap_diag("%ld KiB, at the peak %ld, before %ld", now, peak, before);
	return false;
}

static void
work_a_little(void)
{
	void *p[100];

	for (unsigned i = 0; i < COUNT(p); i++)
		p[i] = p_malloc(100 + i);
	for (unsigned i = 0; i < COUNT(p); i++)
		p_free(p[i]);
}

static void
test_idle(bool frees, bool stays, void (*meanwhile)(void), const char *what)
{
	pthread_t t;
	long peak;

	atomic_store(&step, 0);
	if (pthread_create(&t, NULL, helper, frees ? &step : NULL) != 0)
		tap_bail("pthread_create");
	command(1);
	peak = probe_rss_kib();
	command(2);
	if (!frees)
		release();
	if (!stays) {
		atomic_store(&step, 3);
		(void)pthread_join(t, NULL);
	}
	tap_ok(peak - before > 100 * KIB && falls(peak, meanwhile), "%s", what);
	if (stays) {
		atomic_store(&step, 3);
		(void)pthread_join(t, NULL);
	}
}

int
main(int argc, char **argv)
{
	(void)argc;
	if (getenv("EDDY_CONF") == NULL) {
		(void)setenv(
		    "EDDY_CONF", "dirty_decay_ms:500,idle_purge_ms:300", 1);
		(void)execv("/proc/self/exe", argv);
	}
	tap_begin(argv);
	tap_guard(120);
	probe_small_pages();
	before = probe_rss_kib();
	test_idle(true, true, NULL, "freed by a thread that sleeps");
	test_idle(true, false, NULL, "freed by a thread that is gone");
	test_idle(false, true, NULL, "freed by another thread");
	test_idle(true, true, work_a_little, "while another thread works on");
	return tap_end();
}
