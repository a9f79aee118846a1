/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * front_large.c - huge blocks: what they leave behind when they go, that
 * their place can be had again, and blocks longer than a segment.
 */
#include "probe.h"

#include <sched.h>

/* Buffers of two homes lie in two places. */
static void
stay_here(void)
{
	cpu_set_t here;

	CPU_ZERO(&here);
	CPU_SET((unsigned)sched_getcpu(), &here);
	if (sched_setaffinity(0, sizeof here, &here) != 0)
		tap_bail("sched_setaffinity: errno %d", errno);
}

/*
 * Records that outlive the buffer they are read from must not lie where the
 * next buffer could have been.
 */
static void
test_buffers_and_records(void)
{
	enum { ROUNDS = 15, RECORDS = 2000, RECORD = 1000 };
	static char *keep[ROUNDS * RECORDS];
	const size_t n = 50 * MIB + 3 * PAGE;
	long before = probe_rss_kib();
	long live = 0;
	long worst = 0;
	int k = 0;

	for (int round = 0; round < ROUNDS; round++) {
		char *p = p_malloc(n);
		long over;

		memset(p, 1, n);
		for (int i = 0; i < RECORDS; i++) {
			keep[k] = p_malloc(RECORD);
			memset(keep[k++], 1, RECORD);
		}
		p_free(p);
		live += (long)RECORDS * RECORD / KIB;
		over = probe_rss_kib() - before - live * 5 / 2;
		worst = over > worst ? over : worst;
	}
	if (!tap_ok(worst < (long)(n / KIB) + 8 * KIB,
		"records outlive 15 buffers of 50 MiB, the buffers' pages do "
		"not"))
		tap_diag("%ld MiB more than 2.5 times the %ld MiB that live",
		    worst / KIB, live / KIB);
	while (k > 0)
		p_free(keep[--k]);
}

/* One block at a time, of changing length, is never two blocks' memory. */
static void
test_one_at_a_time(void)
{
	const size_t n = 100 * MIB;
	long before = probe_rss_kib();
	long peak = 0;

	for (size_t i = 0; i < 8; i++) {
		size_t z = n - i * 3 % 5 * (5 * MIB + PAGE);
		char *p = p_malloc(z);
		long now;

		for (size_t k = 0; k < z; k += PAGE)
			p[k] = 1;
		now = probe_rss_kib() - before;
		peak = now > peak ? now : peak;
		p_free(p);
	}
	if (!tap_ok(peak < (long)(n / KIB) * 5 / 4,
		"blocks of 80 to 100 MiB, one at a time, reuse one's pages"))
		tap_diag("peak %ld MiB", peak / KIB);
}

/* A block of more than half the range fits only where it was. */
static int
half_the_range(void)
{
	const size_t n = 600 * (size_t)MIB + PAGE;

	for (int i = 0; i < 6; i++) {
		char *p = p_malloc(n);

		if (p == NULL)
			return 1;
		p[0] = 1;
		p[n - 1] = 1;
		p_free(p);
	}
	return 0;
}

/* Longer than a segment; only the ends are touched. */
static void
test_giant(void)
{
	const size_t n = 1536 * (size_t)MIB;
	const size_t odd = n + 5 * PAGE - 100;
	bool same = true;
	bool exact = true;
	bool again = true;

	for (int i = 0; i < 50 && again; i++) {
		size_t z = i % 2 == 0 ? n : odd;
		char *p = p_malloc(z);

		again = p != NULL;
		if (!again)
			break;
		exact = p_usable(p) == (z + PAGE - 1) / PAGE * PAGE && exact;
		p[0] = 1;
		p[z - 1] = 2;
		same =
		    p_realloc(p, z) == p && p[0] == 1 && p[z - 1] == 2 && same;
		p_free(p);
	}
	tap_ok(again, "a block of 1.5 GiB can be had 50 times");
	tap_ok(exact, "its usable size is what was asked, in whole pages");
	tap_ok(same, "realloc to the size it has leaves it where it is");
}

/* Whole segments that are cut where they are, then freed: twice a pair. */
static int
cut_segments(void)
{
	const size_t gib = 1024 * (size_t)MIB;

	for (int i = 0; i < 4; i++) {
		char *p = aligned_alloc(2 * gib, gib);
		char *q;

		if (p == NULL)
			return 1;
		p[0] = 1;
		q = p_realloc(p, 300 * (size_t)MIB);
		if (q == NULL || q[0] != 1)
			return 1;
		p_free(q);
	}
	return 0;
}

int
main(int argc, char **argv)
{
	tap_begin(argv);
	if (argc > 1)
		return strcmp(argv[1], "cut") == 0 ? cut_segments()
						   : half_the_range();
	probe_small_pages();
	tap_guard(60);
	stay_here();
	test_buffers_and_records();
	test_one_at_a_time();
	test_giant();
	(void)setenv("EDDY_CONF", "lg_range:30", 1);
	tap_ok(probe_again(argv, "half", "lg_range:30"),
	    "600 of 1024 MiB can be had again after their free");
	(void)setenv("EDDY_CONF", "lg_range:36", 1);
	tap_ok(probe_again(argv, "cut", "lg_range:36"),
	    "whole segments can be cut in place and freed, again and again");
	return tap_end();
}
