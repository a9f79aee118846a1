/* SPDX-License-Identifier: BSD-2-Clause */
/* front_glibc_info.c - mallinfo and its like tell the truth. */
#include "probe.h"

enum { GIB_SHIFT = 30 };

static size_t
in_use(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

static void
test_mallinfo2(void)
{
	static char *p[20000];
	void *big[6];
	size_t before = in_use();
	size_t moved;

	for (int i = 0; i < 20000; i++) {
		p[i] = p_malloc(1000);
		p[i][0] = 1;
	}
	moved = in_use() - before;
	if (!tap_ok(moved > 18000000 && moved < 26000000,
		"mallinfo2 counts 20 MB of small blocks"))
		tap_diag("%zu bytes", moved);
	for (int i = 0; i < 20000; i++)
		p_free(p[i]);
	moved = in_use() - before;
	if (!tap_ok(moved < 2000000 || moved > (size_t)-2000000,
		"mallinfo2 counts them no more when they are free"))
		tap_diag("%zu bytes", moved);

	before = in_use();
	for (int i = 0; i < 6; i++) {
		big[i] = p_malloc((size_t)1 << GIB_SHIFT);
		if (big[i] == NULL) {
			tap_skip("mallinfo2 above 4 GiB", "no 6 GiB here");
			return;
		}
		*(char *)big[i] = 1;
	}
	moved = in_use() - before;
	if (!tap_ok(moved >= (size_t)6 << GIB_SHIFT && moved < (size_t)7
								   << GIB_SHIFT,
		"mallinfo2 counts 6 GiB in six blocks"))
		tap_diag("%zu bytes", moved);
	tap_ok(mallinfo2().arena + mallinfo2().hblkhd >= (size_t)6 << GIB_SHIFT,
	    "what is in use is part of what is held");
	for (int i = 0; i < 6; i++)
		p_free(big[i]);
	tap_ok(in_use() - before < MIB || before - in_use() < MIB,
	    "mallinfo2 forgets them when they are freed");
}

static void
test_mallinfo(void)
{
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
	struct mallinfo a = mallinfo();
	void *p = p_malloc(50 * MIB);
	struct mallinfo b = mallinfo();
#pragma GCC diagnostic pop
	int moved = b.uordblks + b.hblkhd - a.uordblks - a.hblkhd;

	if (!tap_ok(moved >= 50 * MIB && moved < 52 * MIB,
		"mallinfo counts a block of 50 MiB"))
		tap_diag("%d bytes", moved);
	p_free(p);
}

static void
test_trim(void)
{
	enum { N = 64 };
	char *p[N];
	long full;
	int said;

	for (int i = 0; i < N; i++) {
		p[i] = p_malloc(MIB);
		memset(p[i], 1, MIB);
	}
	full = probe_rss_kib();
	for (int i = 0; i < N; i++)
		p_free(p[i]);
	said = malloc_trim(0);
	if (!tap_ok(full - probe_rss_kib() > 48 * KIB,
		"malloc_trim gives 64 MiB of free memory back"))
		tap_diag("%ld KiB, then %ld", full, probe_rss_kib());
	tap_ok(said == 1, "malloc_trim returns 1 when it gave memory back");
	(void)malloc_trim(0);
	tap_ok(
	    malloc_trim(0) == 0, "malloc_trim returns 0 when nothing is left");
}

/* What fn writes on stderr. */
static size_t
captured(char *buf, size_t n, void (*fn)(void))
{
	int fd[2];
	int keep = dup(STDERR_FILENO);
	ssize_t got;

	if (pipe(fd) != 0 || keep < 0)
		tap_bail("pipe");
	(void)fcntl(fd[0], F_SETFL, O_NONBLOCK);
	(void)fcntl(fd[1], F_SETFL, O_NONBLOCK);
	(void)dup2(fd[1], STDERR_FILENO);
	fn();
	(void)fflush(stderr);
	(void)dup2(keep, STDERR_FILENO);
	got = read(fd[0], buf, n - 1);
	(void)close(fd[0]);
	(void)close(fd[1]);
	(void)close(keep);
	buf[got > 0 ? got : 0] = '\0';
	return got > 0 ? (size_t)got : 0;
}

static void
test_stats(void)
{
	static char text[65536];
	void *p = p_malloc(7654321);
	size_t n = captured(text, sizeof text, malloc_stats);
	bool digits = false;

	for (size_t i = 0; i < n; i++)
		digits = digits || (text[i] >= '1' && text[i] <= '9');
	tap_ok(n > 0 && digits && text[n - 1] == '\n',
	    "malloc_stats writes figures on stderr");
	p_free(p);
}

static void
test_info(void)
{
	static char text[65536];
	FILE *f = fmemopen(text, sizeof text - 1, "w");
	int ret = malloc_info(0, f);

	(void)fclose(f);
	tap_ok(ret == 0 && strncmp(text, "<malloc", 7) == 0 &&
		   strstr(text, "</malloc>") != NULL,
	    "malloc_info writes XML");
	f = fmemopen(text, sizeof text - 1, "w");
	tap_ok(malloc_info(1, f) == EINVAL, "malloc_info refuses options");
	(void)fclose(f);
}

static void
test_mallopt(void)
{
	void *p;

	tap_ok(
	    mallopt(123456, 1) == 0, "mallopt refuses what it does not know");
	(void)mallopt(M_MMAP_THRESHOLD, 64 * KIB);
	(void)mallopt(M_TRIM_THRESHOLD, 64 * KIB);
	(void)mallopt(M_ARENA_MAX, 1);
	(void)mallopt(M_PERTURB, 0);
	p = p_malloc(100000);
	tap_ok(p != NULL, "malloc serves after glibc's parameters were set");
	p_free(p);
}

int
main(int argc, char **argv)
{
	(void)argc;
	tap_begin(argv);
	tap_guard(60);
	test_mallinfo2();
	test_mallinfo();
	test_trim();
	test_stats();
	test_info();
	test_mallopt();
	return tap_end();
}
