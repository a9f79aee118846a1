/* SPDX-License-Identifier: BSD-2-Clause */
/* front_slabs.c - option slab_sizes: slabs of a size of choice. */
#include "allocx_api.h"

#include <sys/resource.h>

#define OPTION_A "slab_sizes:1-4096:17|100-200:1|128-128:2,check:true"
#define OPTION_B "slab_sizes:1-100000:1000"
#define OPTION_C "slab_sizes:1-100000:1"

static size_t
bin_size_t(unsigned i, const char *what)
{
	char name[64];
	size_t v = 0;
	size_t n = sizeof v;

	(void)snprintf(name, sizeof name, "arenas.bin.%u.%s", i, what);
	if (x.ctl(name, &v, &n, NULL, 0) != 0)
		tap_bail("%s", name);
	return v;
}

static uint32_t
bin_nregs(unsigned i)
{
	char name[64];
	uint32_t v = 0;
	size_t n = sizeof v;

	(void)snprintf(name, sizeof name, "arenas.bin.%u.nregs", i);
	if (x.ctl(name, &v, &n, NULL, 0) != 0)
		tap_bail("%s", name);
	return v;
}

static size_t
clipped(size_t pages, size_t size)
{
	size_t least = (size + 4095) / 4096;
	size_t most = 512 * size / 4096;

	most = most < 64 ? most : 64;
	return pages < least ? least : pages > most ? most : pages;
}

/* What the options above ask for; 0: as without them. */
static size_t
wanted(const char *which, size_t size)
{
	if (which[0] == 'b')
		return clipped(1000, size);
	if (which[0] == 'c')
		return clipped(1, size);
	return size == 128                  ? 2
	       : size >= 100 && size <= 200 ? 1
	       : size <= 4096               ? clipped(17, size)
					    : 0;
}

/* Objects of all sizes come and go, none of them twice. */
static bool
churn(void)
{
	enum { N = 20000 };
	static unsigned char *p[N];
	uint64_t s = 1;
	bool held = true;

	for (unsigned i = 0; i < 400000 && held; i++) {
		unsigned k;
		size_t size;

		s = s * 6364136223846793005u + 1442695040888963407u;
		k = (unsigned)(s >> 33) % N;
		size = 1 + (s >> 20) % (i % 8 == 0 ? 14336 : 600);
		held = p[k] == NULL || *p[k] == (unsigned char)(k + k / 256);
		free(p[k]);
		p[k] = malloc(size);
		if (p[k] == NULL)
			return false;
		memset(p[k], (int)(k + k / 256), size);
	}
	for (unsigned k = 0; k < N; k++)
		free(p[k]);
	return held;
}

static int
look(const char *which)
{
	unsigned n = ctl_unsigned("arenas.nbins");

	for (unsigned i = 0; i < n; i++) {
		size_t size = bin_size_t(i, "size");
		size_t slab = bin_size_t(i, "slab_size");
		size_t want = wanted(which, size) * 4096;

		if ((want != 0 && slab != want) ||
		    bin_nregs(i) != slab / size || bin_nregs(i) > 512) {
			tap_diag("%zu: %zu bytes, %u objects", size, slab,
			    bin_nregs(i));
			return 1;
		}
	}
	return churn() ? 0 : 2;
}

/* Argument "rest": frees what lies behind a slab's last object. */
static int
rest(void)
{
	char *p = malloc(160);

	/* 25 objects of 160 bytes in a page. */
	free(p - (uintptr_t)p % 4096 + 4000);
	return 0;
}

static bool
ends(char **argv)
{
	char arg[] = "rest";
	int st;
	pid_t pid = fork();

	if (pid == 0) {
		struct rlimit none = {0, 0};

		probe_child_begin(20);
		(void)setrlimit(RLIMIT_CORE, &none);
		(void)close(STDERR_FILENO);
		(void)setenv("EDDY_TAP_CHILD", "1", 1);
		tap_exec(argv[0], arg);
	}
	return waitpid(pid, &st, 0) == pid && WIFSIGNALED(st) &&
	       WTERMSIG(st) == SIGABRT;
}

int
main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "rest") == 0)
		return rest();
	if (argc == 2)
		return !find_allocx() ? 3 : look(argv[1]);
	tap_begin(argv);
	if (!find_allocx())
		tap_skip_all("no mallocx");
	(void)setenv("EDDY_CONF", OPTION_A, 1);
	tap_ok(probe_again(argv, "a", "a"),
	    "slabs are as long as ranges say, the last that fits holds");
	tap_ok(ends(argv), "the rest of a slab is no object");
	(void)setenv("EDDY_CONF", OPTION_B, 1);
	tap_ok(probe_again(argv, "b", "b"), "512 objects and 64 pages at most");
	(void)setenv("EDDY_CONF", OPTION_C, 1);
	tap_ok(probe_again(argv, "c", "c"), "room for an object at least");
	(void)unsetenv("EDDY_CONF");
	return tap_end();
}
