/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * front_memory.c - memory that is there before it is needed, that goes when it
 * is not, that is left alone.
 */
#include "probe.h"

static int (*prefault)(unsigned, size_t);
static void (*freeze)(void);
static void (*thaw)(void);
static size_t (*purge_now)(unsigned);
static void (*idle)(void);
static int (*set_decay)(unsigned, long long, long long);

struct counts {
	int frozen;
	unsigned long long growth, calls, purges, faults;
};
static void (*freeze_read)(struct counts *);

static bool
find(void)
{
	*(void **)&prefault = dlsym(RTLD_DEFAULT, "eddy_prefault");
	*(void **)&freeze = dlsym(RTLD_DEFAULT, "eddy_freeze");
	*(void **)&thaw = dlsym(RTLD_DEFAULT, "eddy_thaw");
	*(void **)&freeze_read = dlsym(RTLD_DEFAULT, "eddy_freeze_read");
	*(void **)&purge_now = dlsym(RTLD_DEFAULT, "eddy_purge_now");
	*(void **)&idle = dlsym(RTLD_DEFAULT, "eddy_idle");
	*(void **)&set_decay = dlsym(RTLD_DEFAULT, "eddy_set_decay");
	return prefault != NULL && freeze != NULL && thaw != NULL &&
	       freeze_read != NULL && purge_now != NULL && idle != NULL &&
	       set_decay != NULL;
}

/* Bytes of memory that the process has. */
static size_t
resident(void)
{
	return (size_t)probe_rss_kib() * KIB;
}

/* Some blocks of all kinds, replaced again and again. */
static unsigned long
churn(unsigned rounds)
{
	enum { N = 400 };
	static unsigned char *block[N];
	unsigned long nulls = 0;
	unsigned x = 7;

	for (unsigned i = 0; i < rounds; i++) {
		unsigned k;
		size_t n;

		x = x * 1103515245u + 12345u;
		k = (x >> 8) % N;
		n = 16 + (x >> 12) % (x & 3 ? 2000 : x & 12 ? 60000 : 2 * MIB);
		p_free(block[k]);
		block[k] = x & 16 ? p_calloc(1, n) : p_malloc(n);
		if (block[k] != NULL && (x & 96) == 0) {
			unsigned char *q = p_realloc(block[k], n * 2);

			block[k] = q != NULL ? q : block[k];
		}
		nulls += block[k] == NULL;
		if (block[k] != NULL)
			block[k][0] = block[k][n - 1] = 1;
	}
	for (unsigned k = 0; k < N; k++) {
		p_free(block[k]);
		block[k] = NULL;
	}
	return nulls;
}

static void
prefaulted(void)
{
	size_t before = resident();
	size_t there;

	tap_ok(prefault(0, 256UL * MIB) == 0, "256 MiB are prefaulted");
	there = resident();
	tap_ok(there >= before + 240UL * MIB && there < before + 300UL * MIB,
	    "and are there: %zu MiB", (there - before) / MIB);
	tap_ok(prefault(0, 256UL * MIB) == 0 && resident() < there + 4 * MIB,
	    "once");
	tap_ok(prefault(77, MIB) == EINVAL, "no such arena");
	tap_ok(prefault(0, (size_t)1 << 62) == ENOMEM &&
		   resident() < there + 4 * MIB,
	    "more than addresses");
}

static void
frozen(void)
{
	struct counts c;
	unsigned long nulls;
	void *big;

	(void)churn(1000); /* this thread's own first calls */
	freeze();
	freeze_read(&c);
	tap_ok(c.frozen == 1 && c.growth == 0, "frozen");
	nulls = churn(300000);
	freeze_read(&c);
	tap_ok(nulls == 0 && c.growth == 0, "blocks come of what is there");
	tap_ok(c.calls <= 2 && c.purges == 0,
	    "with no system call but the reading itself: %llu", c.calls);
	big = p_malloc(1024UL * MIB);
	tap_ok(big != NULL, "a block that is not there");
	freeze_read(&c);
	tap_ok(c.growth >= 1 && c.calls > 2, "counts as growth");
	p_free(big);
	thaw();
	freeze_read(&c);
	tap_ok(c.frozen == 0 && c.calls == 0 && c.growth == 0, "thawed");
}

static void
purged(void)
{
	size_t full;
	size_t gone;

	(void)churn(100000);
	full = resident();
	tap_ok(prefault(0, 0) == 0, "no floor any more");
	gone = purge_now(0);
	tap_ok(gone >= 200UL * MIB && resident() < full - 200UL * MIB,
	    "purged: %zu MiB", gone / MIB);
	tap_ok(purge_now(0) < MIB, "nothing is left to purge");
	tap_ok(purge_now(4000) == 0, "no such arena");
	idle();
	tap_ok(churn(1000) == 0, "works after eddy_idle");
}

static void
decayed(void)
{
	size_t before;
	char *p;

	tap_ok(set_decay(0, -2, 0) == EINVAL && set_decay(0, 0, -2) == EINVAL &&
		   set_decay(0, 18446744073710, 0) == EINVAL &&
		   set_decay(4000, 0, 0) == EINVAL,
	    "times and arenas that there are not");
	tap_ok(set_decay(0, 0, 0) == 0, "decay at once");
	(void)purge_now(0);
	before = resident();
	p = p_malloc(64 * MIB);
	memset(p, 1, 64 * MIB);
	tap_ok(resident() > before + 60 * MIB, "64 MiB are touched");
	p_free(p);
	tap_ok(resident() < before + 4 * MIB, "and gone when they are freed");
	tap_ok(set_decay(0, -1, -1) == 0, "no decay");
	p = p_malloc(64 * MIB);
	memset(p, 1, 64 * MIB);
	p_free(p);
	tap_ok(resident() > before + 60 * MIB, "they stay");
}

static int
child_null(void)
{
	struct counts c;
	void *p;

	if (!find() || prefault(0, 32 * MIB) != 0)
		return 1;
	freeze();
	errno = 0;
	p = p_malloc(256UL * MIB);
	if (p != NULL || errno != ENOMEM)
		return 2;
	p = p_malloc(8 * MIB);
	if (p == NULL)
		return 3;
	p_free(p);
	freeze_read(&c);
	if (c.growth == 0)
		return 4;
	thaw();
	p = p_malloc(256UL * MIB);
	return p == NULL ? 5 : 0;
}

static int
child_limit(void)
{
	static void *block[200];
	unsigned n = 0;

	/* 256 MiB at most. */
	while (n < 200 && (block[n] = p_malloc(4 * MIB)) != NULL)
		memset(block[n++], 1, 4 * MIB);
	if (n < 50 || n > 64)
		return 1;
	if (errno != ENOMEM)
		return 2;
	for (unsigned i = 0; i < n; i++)
		p_free(block[i]);
	/* What is free is given back before NULL is the answer. */
	for (n = 0; n < 200 && (block[n] = p_malloc(100000)) != NULL; n++)
		memset(block[n], 1, 100000);
	return n < 200 ? 3 : churn(10000) != 0 ? 4 : 0;
}

/* Huge pages of the pool that nobody has. */
static long
pool(void)
{
	char text[4096] = "";
	int fd = open("/proc/meminfo", O_RDONLY);
	const char *at;

	if (fd >= 0 && read(fd, text, sizeof text - 1) < 0)
		text[0] = '\0';
	(void)close(fd);
	at = strstr(text, "HugePages_Free:");
	return at != NULL ? strtol(at + 15, NULL, 10) : 0;
}

/* From the pool if there is one, and the same without. */
static int
child_huge(void)
{
	long before = pool();
	unsigned char *p = p_calloc(1, 5UL * MIB);

	if (p == NULL || p[0] != 0 || p[4UL * MIB] != 0)
		return 1;
	memset(p, 1, 5UL * MIB);
	if (before >= 3 && pool() > before - 3)
		return 2;
	if (churn(10000) != 0)
		return 3;
	p_free(p);
	(void)malloc_trim(0);
	p = p_calloc(1, 5UL * MIB);
	for (size_t i = 0; p != NULL && i < 5UL * MIB; i++)
		if (p[i] != 0)
			return 4;
	return p == NULL ? 5 : 0;
}

static void
other_options(const char *self, const char *conf, const char *mode)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		(void)setenv("MALLOC_CONF", conf, 1);
		(void)execl(self, self, mode, (char *)NULL);
		_exit(99);
	}
	(void)waitpid(pid, &status, 0);
	tap_ok(WIFEXITED(status) && WEXITSTATUS(status) == 0,
	    "%s: ends with 0x%x", conf, status);
}

int
main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "null") == 0)
		return child_null();
	if (argc > 1 && strcmp(argv[1], "limit") == 0)
		return child_limit();
	if (argc > 1 && strcmp(argv[1], "huge") == 0)
		return child_huge();
	tap_begin(argv);
	tap_guard(120);
	probe_small_pages();
	if (!find())
		tap_skip_all("this malloc has no such calls");
	prefaulted();
	frozen();
	purged();
	decayed();
	other_options("/proc/self/exe", "freeze_growth:null", "null");
	other_options("/proc/self/exe", "heap_limit:268435456", "limit");
	tap_diag("%ld huge pages in the pool", pool());
	other_options("/proc/self/exe", "hugetlb:true", "huge");
	return tap_end();
}
