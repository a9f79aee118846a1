/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * khugepaged.c - whether memory that was given back stays with the kernel where
 * that makes huge pages unasked for.
 *
 *   khugepaged stays   status 0: it stays, khugepaged has looked at all; and
 *                      what is allocated afterwards lies in huge pages
 *   khugepaged fills   status 0: khugepaged has taken it again, so that it was
 *                      at work, and the other would have seen it
 *
 * It may write to /sys: root, in a machine of its own.
 */
#include "../probe.h"

#define KNOBS "/sys/kernel/mm/transparent_hugepage/"

enum {
	BLOCK = 16 * KIB,
	BLOCKS = 96 * MIB / BLOCK,
	KEPT = 16, /* one of so many */
	NEW = 64 * MIB,
	SCANS = 4,
	SECONDS = 200,
};

static long
number_in(const char *path)
{
	char buf[64];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof buf - 1);

	if (fd >= 0)
		(void)close(fd);
	if (n <= 0)
		return -1;
	buf[n] = '\0';
	return strtol(buf, NULL, 10);
}

static bool
set(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done =
	    fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		(void)close(fd);
	return done;
}

/* KiB of the process that are in huge pages. */
static long
huge_kib(void)
{
	static char buf[4096];
	int fd = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof buf - 1);
	const char *at;

	if (fd >= 0)
		(void)close(fd);
	buf[n > 0 ? n : 0] = '\0';
	at = strstr(buf, "AnonHugePages:");
	return at != NULL ? strtol(at + 14, NULL, 10) : -1;
}

static char *block[BLOCKS];

/* Until khugepaged has looked at every process so often, or time is up. */
static bool
wait_for_scans(long n)
{
	const char *path = KNOBS "khugepaged/full_scans";
	long until = number_in(path) + n;

	for (int i = 0; i < SECONDS * 10; i++) {
		if (number_in(path) >= until)
			return true;
		/* It passes by what nobody uses. */
		for (size_t k = 0; k < BLOCKS; k += KEPT)
			block[k][0]++;
		(void)usleep(100000);
	}
	return false;
}

int
main(int argc, char **argv)
{
	bool fills = argc > 1 && strcmp(argv[1], "fills") == 0;
	long full;
	long purged;
	long later;
	long huge;
	long grown;
	char *p;

	tap_begin(argv);
	if (!set(KNOBS "enabled", "always") ||
	    !set(KNOBS "khugepaged/scan_sleep_millisecs", "1") ||
	    !set(KNOBS "khugepaged/alloc_sleep_millisecs", "1") ||
	    !set(KNOBS "khugepaged/pages_to_scan", "100000") ||
	    !set(KNOBS "khugepaged/max_ptes_none", "511")) {
		tap_diag("SKIP no huge pages, or no right to change them");
		return 77;
	}
	for (size_t i = 0; i < BLOCKS; i++) {
		block[i] = p_malloc(BLOCK);
		memset(block[i], 1, BLOCK);
	}
	full = probe_rss_kib();
	tap_diag("full: %ld KiB, %ld of it in huge pages", full, huge_kib());
	for (size_t i = 0; i < BLOCKS; i++)
		if (i % KEPT != 0)
			p_free(block[i]);
	(void)malloc_trim(0);
	purged = probe_rss_kib();
	tap_diag("given back: %ld KiB", purged);
	if (!wait_for_scans(SCANS)) {
		tap_diag("khugepaged does not come round");
		return 1;
	}
	later = probe_rss_kib();
	huge = huge_kib();
	tap_diag("later: %ld KiB, %ld in huge pages", later, huge);
	p = p_malloc(NEW);
	memset(p, 1, NEW);
	grown = huge_kib() - huge;
	tap_diag("of %d KiB more %ld in huge pages", NEW / KIB, grown);
	for (size_t k = 0; k < BLOCKS; k += KEPT)
		for (size_t i = 1; i < BLOCK; i++)
			if (block[k][i] != 1)
				return 1;
	if (fills)
		return later > purged + full / 2 ? 0 : 1;
	return purged < full / 4 && later < purged + full / 20 &&
		       grown > NEW / KIB / 2
		   ? 0
		   : 1;
}
