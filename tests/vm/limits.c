/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limits.c - memory ends: malloc says so, and goes on when there is some again.
 *
 *   limits eat MIB [BYTES]   blocks of BYTES (65536), each written to, until
 *                            malloc says no or MIB are live.  Then all are
 *                            freed, and half as much must be had again.
 *                            Exits 0 if malloc said no, 3 if it never did.
 *   limits share FILE        under heap_limit_share:50, in a cgroup whose
 *                            memory.max is FILE, 64 MiB at first: malloc says
 *                            no at about half of it, and again when it is 128
 *   limits pressure MIB      MIB written again and again until a function that
 *                            drops caches is called by the kernel's word
 *   limits steady MIB TIMES  MIB live, freed and allocated anew TIMES times in
 *                            turning sizes
 */
#include "tests/probe.h"

static void **block;

/* Apart from malloc: its own need must not decide when memory ends. */
static void
make_list(size_t n)
{
	block = mmap(NULL, n * sizeof *block, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (block == MAP_FAILED)
		tap_bail("no list of %zu blocks", n);
}

static size_t
fill(size_t n, size_t bytes)
{
	size_t got = 0;

	for (; got < n; got++) {
		char *p = p_malloc(bytes);

		if (p == NULL) {
			if (errno != ENOMEM)
				tap_bail("malloc fails with errno %d", errno);
			break;
		}
		memset(p, (int)got | 1, bytes);
		block[got] = p;
	}
	return got;
}

static void
empty(size_t n)
{
	for (size_t i = 0; i < n; i++)
		p_free(block[i]);
}

static int
eat(size_t mib, size_t bytes)
{
	size_t max_blocks = mib * MIB / bytes + 1;
	size_t got;
	size_t again;

	make_list(max_blocks);
	got = fill(max_blocks, bytes);
	empty(got);
	again = fill(got / 2, bytes);
	empty(again);
	tap_diag("%zu MiB of %zu, then %zu again", got * bytes / MIB, mib,
	    again * bytes / MIB);
	if (again != got / 2)
		return 1;
	return got < max_blocks ? 0 : 3;
}

static int
steady(size_t mib, unsigned long times)
{
	static const size_t size[] = {
	    64, 100 * KIB, 1000, 3000, 2 * MIB, 16 * KIB, 200};

	make_list(mib * MIB / 64);
	for (unsigned long i = 0; i < times; i++) {
		size_t n = mib * MIB / size[i % COUNT(size)];

		if (fill(n, size[i % COUNT(size)]) != n)
			return 1;
		empty(n);
	}
	return 0;
}

static int
share(const char *path)
{
	const size_t bytes = 64 * KIB;
	const size_t most = 200 * MIB / bytes;
	size_t first;
	size_t second;
	int fd;

	make_list(most);
	first = fill(most, bytes);
	fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, "134217728", 9) != 9)
		tap_bail("cannot write %s", path);
	(void)close(fd);
	(void)sleep(2); /* the file is read once a second at most */
	for (second = first; second < most; second++) {
		block[second] = p_malloc(bytes);
		if (block[second] == NULL)
			break;
		memset(block[second], 1, bytes);
	}
	tap_diag(
	    "%zu MiB, then %zu", first * bytes / MIB, second * bytes / MIB);
	empty(second);
	return first * bytes > 26 * MIB && first * bytes <= 32 * MIB &&
		       second * bytes > 56 * MIB && second * bytes <= 64 * MIB
		   ? 0
		   : 1;
}

static struct flag told;

static void
drop(void *arg, size_t wanted)
{
	(void)arg;
	if (wanted == 0)
		flag_set(&told);
}

static int
pressure(size_t mib)
{
	int (*on)(void (*)(void *, size_t), void *);
	char *p = p_malloc(mib * MIB);

	*(void **)&on = dlsym(RTLD_DEFAULT, "eddy_on_pressure");
	if (access("/proc/pressure/memory", R_OK) != 0) {
		tap_diag("SKIP: a kernel without PSI");
		return 77;
	}
	if (p == NULL || on == NULL || on(drop, NULL) != 0)
		return 1;
	/* The host ends it if it is never told. */
	while (!flag_is_set(&told))
		for (size_t i = 0; i < mib * MIB && !flag_is_set(&told);
		     i += PAGE)
			p[i]++;
	return 0;
}

int
main(int argc, char **argv)
{
	size_t mib;
	size_t number;

	tap_begin(argv);
	if (argc < 3)
		tap_bail("limits eat|steady|pressure MIB [NUMBER]");
	if (strcmp(argv[1], "share") == 0)
		return share(argv[2]);
	mib = strtoul(argv[2], NULL, 10);
	number = argc > 3 ? strtoul(argv[3], NULL, 10) : 64 * KIB;
	if (strcmp(argv[1], "pressure") == 0)
		return pressure(mib);
	return strcmp(argv[1], "eat") == 0 ? eat(mib, number)
					   : steady(mib, number);
}
