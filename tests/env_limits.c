/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * env_limits.c - little address space, exhausted memory, locked memory, the
 * number of mappings, the size of a core dump, constant work.
 */
#include "probe.h"

static int
churn_under_limit(void)
{
	static char *p[64];
	uint64_t rng = tap.seed;
	void *q;

	for (int i = 0; i < 40000; i++) {
		uint64_t r = tap_random(&rng);
		size_t n = ((size_t)1 << (8 + (r >> 20) % 14)) + r % 1000;

		p_free(p[r % 64]);
		p[r % 64] = p_malloc(n);
		if (p[r % 64] == NULL)
			return 1;
		p[r % 64][n / 2] = 1;
	}
	for (int i = 0; i < 64; i++)
		p_free(p[i]);
	for (size_t i = 0; i < 200; i++) {
		q = p_malloc(4 * MIB + i * 8192);
		if (q == NULL)
			return 2;
		p_free(q);
	}
	q = p_malloc(150 * (size_t)MIB);
	p_free(q);
	return q != NULL ? 0 : 3;
}

static int
oom_round(size_t bytes)
{
	void **head = NULL;
	size_t n = 0;

	for (;;) {
		void **p;

		errno = 0;
		p = p_malloc(bytes);
		if (p == NULL)
			break;
		*p = head;
		head = p;
		n++;
		/* Do not take the machine along where no limit holds. */
		if (n * bytes > 1536 * (size_t)MIB)
			return 5;
	}
	if (errno != ENOMEM)
		return 1;
	if (n * bytes < 200 * (size_t)MIB)
		return 2;
	if (p_malloc(300 * (size_t)MIB) != NULL ||
	    p_calloc(100, MIB * 3) != NULL)
		return 3;
	for (size_t i = 0; i < n / 2; i++) {
		void **next = *head;

		p_free(head);
		head = next;
	}
	for (size_t i = 0; i < 1000 && i < n / 4; i++) {
		void **p = p_malloc(bytes);

		if (p == NULL)
			return 4;
		*p = head;
		head = p;
	}
	while (head != NULL) {
		void **next = *head;

		p_free(head);
		head = next;
	}
	return 0;
}

static int
exhaust(void)
{
	static const size_t bytes[] = {1024, 70000, 112, 3 * MIB, 20000};

	for (size_t i = 0; i < COUNT(bytes); i++) {
		int err = oom_round(bytes[i]);

		if (err != 0) {
			tap_diag("blocks of %zu: fault %d", bytes[i], err);
			return err;
		}
	}
	return 0;
}

/* How much of its address space a process can have as blocks of 1 MiB. */
static int
take_most(void)
{
	struct rlimit l;
	size_t taken = 0;

	(void)getrlimit(RLIMIT_AS, &l);
	while (taken < l.rlim_cur && p_malloc(MIB) != NULL)
		taken += MIB;
	if (taken >= l.rlim_cur / 10 * 7)
		return 0;
	tap_diag("%zu of %zu MiB", taken / MIB, (size_t)l.rlim_cur / MIB);
	return 1;
}

/*
 * A limit below what the process has reserved already: a block that realloc
 * would move page by page has its content, wherever that attempt failed.
 */
static int
move_under_limit(void)
{
	enum { N = 4 * MIB };
	struct rlimit l;
	char *p[4];

	for (size_t i = 0; i < COUNT(p); i++) {
		p[i] = p_malloc(N);
		memset(p[i], (int)i + 1, N);
	}
	(void)getrlimit(RLIMIT_AS, &l);
	l.rlim_cur = 64 * (rlim_t)KIB * MIB;
	if (setrlimit(RLIMIT_AS, &l) != 0)
		return 77;
	for (size_t i = 0; i < COUNT(p); i++) {
		char *q = p_realloc(p[i], 3 * (size_t)N);

		if (q == NULL)
			return 1;
		for (size_t k = 0; k < N; k++)
			if (q[k] != (char)(i + 1))
				return 2;
		memset(q, 0x55, 3 * (size_t)N);
		p[i] = q;
	}
	/* The places that they left, and those that they got. */
	for (size_t i = 0; i < COUNT(p); i++) {
		char *q = p_calloc(1, N);

		for (size_t k = 0; k < N; k++)
			if (q[k] != 0)
				return 3;
		p_free(p[i]);
	}
	return 0;
}

static void
test_address_space(char **argv)
{
	static const rlim_t limit[] = {300, 600, 1100};
	struct rlimit keep;
	struct rlimit l;

	(void)getrlimit(RLIMIT_AS, &keep);
	l = keep;
	l.rlim_cur = 512 * (rlim_t)MIB;
	(void)setrlimit(RLIMIT_AS, &l);
	tap_ok(probe_again(argv, "churn", "512 MiB"),
	    "a process starts and works in 512 MiB of address space");
	l.rlim_cur = 700 * (rlim_t)MIB;
	(void)setrlimit(RLIMIT_AS, &l);
	tap_ok(probe_again(argv, "exhaust", "700 MiB"),
	    "memory runs out with ENOMEM and comes back with frees");
	(void)setrlimit(RLIMIT_AS, &keep);
	tap_ok(probe_again(argv, "late", "700 MiB later"),
	    "so it does when the limit is set in a running process");
	tap_ok(probe_again(argv, "first", "700 MiB first of all"),
	    "and when that is the first that main does");
	(void)setenv("EDDY_CONF", "dirty_decay_ms:10000", 1);
	tap_ok(probe_again(argv, "first", "700 MiB first of all, options"),
	    "also with options, which are read before main");
	(void)unsetenv("EDDY_CONF");
	tap_ok(probe_again(argv, "move", "64 GiB later"),
	    "realloc keeps content when the limit is below what is reserved");
	for (size_t i = 0; i < COUNT(limit); i++) {
		l.rlim_cur = limit[i] * MIB;
		(void)setrlimit(RLIMIT_AS, &l);
		tap_ok(probe_again(argv, "most", "blocks of 1 MiB"),
		    "70 %% of %u MiB of address space become blocks",
		    (unsigned)limit[i]);
	}
	(void)setrlimit(RLIMIT_AS, &keep);
	l = keep;
	l.rlim_cur = 40 * (rlim_t)MIB;
	(void)setrlimit(RLIMIT_DATA, &l);
	tap_ok(probe_again(argv, "data", "RLIMIT_DATA"),
	    "a process starts with 40 MiB of data");
	(void)getrlimit(RLIMIT_DATA, &l);
	l.rlim_cur = l.rlim_max;
	(void)setrlimit(RLIMIT_DATA, &l);
}

static int
few_data(void)
{
	char *p[100];

	for (size_t i = 0; i < 100; i++) {
		p[i] = p_malloc(i * 1000 + 1);
		if (p[i] == NULL)
			return 1;
		memset(p[i], 1, i * 1000 + 1);
	}
	for (int i = 0; i < 100; i++)
		p_free(p[i]);
	return 0;
}

static int
locked(void)
{
	static char *p[4000];
	char why[64];
	long before;
	long grown;
	pid_t pid;
	void *big;

	if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0)
		return 77;
	before = probe_rss_kib();
	for (size_t i = 0; i < 4000; i++) {
		p[i] = p_malloc(100 + i * 3);
		memset(p[i], 1, 100);
	}
	big = p_malloc(5 * MIB);
	grown = probe_rss_kib() - before;
	p_free(big);
	for (int i = 0; i < 4000; i++)
		p_free(p[i]);
	pid = fork();
	if (pid == 0) {
		p_free(p_malloc(1000000));
		_exit(0);
	}
	if (!probe_wait(pid, why, sizeof why))
		return 2;
	return grown < 128 * KIB ? 0 : 1;
}

/* Half of the blocks come and go: mappings must not be split for each. */
static void
test_mappings(void)
{
	enum { N = 12000 };
	static char *p[N];
	uint64_t rng = tap.seed;
	int before = probe_maps();
	int most = 0;
	bool given = true;

	for (int round = 0; round < 6; round++) {
		int now;

		for (int i = 0; i < N; i++) {
			size_t limit = i % 64 != 0 ? 150000 : 1000000;
			size_t n =
			    round % 2 != 0
				? 72 * KIB
				: 4096 + (size_t)tap_random(&rng) % limit;

			if (p[i] != NULL)
				continue;
			p[i] = p_malloc(n);
			given = given && p[i] != NULL;
			if (p[i] != NULL)
				p[i][n - 1] = 1;
		}
		for (int i = round % 2; i < N; i += 2) {
			p_free(p[i]);
			p[i] = NULL;
		}
		(void)malloc_trim(0);
		now = probe_maps() - before;
		most = now > most ? now : most;
	}
	for (int i = 0; i < N; i++)
		p_free(p[i]);
	if (!tap_ok(given && most < 1000,
		"12000 blocks that come and go need few mappings"))
		tap_diag("%d mappings", most);
}

/* What a core dump would hold: writable, private, not marked DONTDUMP. */
static long
dumpable_kib(void)
{
	char line[4096];
	char perms[8] = "";
	char tail[256];
	unsigned long from = 0;
	unsigned long to = 0;
	unsigned long a;
	unsigned long b;
	long total = 0;
	FILE *f = fopen("/proc/self/smaps", "r");

	while (f != NULL && fgets(line, sizeof line, f) != NULL) {
		if (sscanf(line, "%lx-%lx %7s %255[^\n]", &a, &b, perms,
			tail) >= 3 &&
		    perms[0] != '\0' && strlen(perms) == 4) {
			from = a;
			to = b;
		} else if (strncmp(line, "VmFlags:", 8) == 0 &&
			   strncmp(perms, "rw", 2) == 0 &&
			   strstr(line, " dd") == NULL) {
			total += (long)((to - from) / KIB);
		}
	}
	if (f != NULL)
		(void)fclose(f);
	return total;
}

static int
core_size(void)
{
	long kib;

	static char *p[2000];

	for (int i = 0; i < 2000; i++) {
		p[i] = p_malloc(5000);
		p[i][0] = 1;
	}
	kib = dumpable_kib();
	for (int i = 0; i < 2000; i++)
		p_free(p[i]);
	if (kib < 128 * KIB)
		return 0;
	tap_diag("%ld MiB", kib / KIB);
	return 1;
}

/* A constant live set causes no page faults once it has been there. */
static struct flag steady_stop;
static atomic_int steady_warm;

static void *
steady(void *arg)
{
	static __thread char *p[2000];
	uint64_t rng = tap.seed + (uintptr_t)arg;
	uint64_t start = probe_ns();
	struct rusage ru;
	long faults = -1;

	for (unsigned n = 0; n % 4096 != 0 || !flag_is_set(&steady_stop); n++) {
		uint64_t r = tap_random(&rng);
		size_t z =
		    16 + (size_t)(r >> 16) % ((r & 7) != 0 ? 500 : 32000);
		unsigned k = (unsigned)(r >> 50) % 2000;

		p_free(p[k]);
		p[k] = p_malloc(z);
		p[k][0] = 1;
		p[k][z - 1] = 1;
		/* By work done too: on a busy machine a second is little. */
		if (n % 4096 == 0 && faults < 0 && n > 1000000 &&
		    probe_ns() - start > 1000000000u) {
			(void)getrusage(RUSAGE_THREAD, &ru);
			faults = ru.ru_minflt;
			atomic_fetch_add(&steady_warm, 1);
		}
	}
	(void)getrusage(RUSAGE_THREAD, &ru);
	for (int i = 0; i < 2000; i++)
		p_free(p[i]);
	return (void *)(intptr_t)(ru.ru_minflt - faults);
}

static void
test_steady_state(void)
{
	pthread_t t[2];
	intptr_t total = 0;

	for (intptr_t i = 0; i < 2; i++)
		(void)pthread_create(&t[i], NULL, steady, (void *)i);
	while (atomic_load(&steady_warm) < 2)
		(void)usleep(10000);
	(void)usleep(2000000);
	flag_set(&steady_stop);
	for (int i = 0; i < 2; i++) {
		void *faults;

		(void)pthread_join(t[i], &faults);
		total += (intptr_t)faults;
	}
	if (!tap_ok(total < 2000, "constant work causes no page faults"))
		tap_diag("%ld faults in 2 s", (long)total);
}

/* A program that uses sbrk and mmap beside the heap. */
static void
test_foreign_memory(void)
{
	enum { N = 1500, ROUNDS = 100 };
	static unsigned char *p[N];
	static unsigned char *mine[ROUNDS];
	uint64_t rng = tap.seed;
	bool heap = true;
	bool own = true;

	for (unsigned k = 0; k < ROUNDS; k++) {
		void *hint;
		void *q;

		for (unsigned i = 0; i < N; i += 1 + k % 7) {
			size_t n = 1 + (size_t)tap_random(&rng) %
					   (i % 32 != 0 ? 3000 : 200000);

			heap = heap && (p[i] == NULL || p[i][0] == (i & 255));
			p_free(p[i]);
			p[i] = p_malloc(n);
			memset(p[i], i & 255, n);
		}
		mine[k] = sbrk(4096 + (intptr_t)k * 16);
		if (mine[k] != (void *)-1)
			memset(mine[k], 0xee, 4096);
		hint = (void *)(((uintptr_t)p[0] + 8 * MIB) & ~(uintptr_t)4095);
		q = mmap(hint, 8192, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (q != MAP_FAILED) {
			memset(q, 0xdd, 8192);
			if (k % 3 == 0)
				(void)munmap(q, 8192);
		}
		for (unsigned i = 0; i <= k; i++)
			own =
			    own &&
			    (mine[i] == (void *)-1 ||
				(mine[i][0] == 0xee && mine[i][4095] == 0xee));
	}
	for (int i = 0; i < N; i++)
		p_free(p[i]);
	tap_ok(heap, "the program's own mappings do not reach into the heap");
	tap_ok(own, "the heap does not reach into the program's own memory");
}

int
main(int argc, char **argv)
{
	const char *arg = argc > 1 ? argv[1] : "";

	tap_begin(argv);
	if (strcmp(arg, "churn") == 0)
		return churn_under_limit();
	if (strcmp(arg, "most") == 0)
		return take_most();
	if (strcmp(arg, "move") == 0)
		return move_under_limit();
	if (strcmp(arg, "late") == 0 || strcmp(arg, "first") == 0) {
		struct rlimit l = {700 * (rlim_t)MIB, 700 * (rlim_t)MIB};

		if (strcmp(arg, "late") == 0)
			p_free(p_malloc(100));
		(void)setrlimit(RLIMIT_AS, &l);
	}
	if (strcmp(arg, "exhaust") == 0 || strcmp(arg, "late") == 0 ||
	    strcmp(arg, "first") == 0)
		return exhaust();
	if (strcmp(arg, "data") == 0)
		return few_data();
	if (strcmp(arg, "core") == 0)
		return core_size();
	if (strcmp(arg, "locked") == 0)
		return locked();
	tap_guard(300);
	test_address_space(argv);
	tap_ok(probe_again(argv, "locked", "mlockall"),
	    "under mlockall no reservation becomes memory");
	test_foreign_memory();
	test_mappings();
	tap_ok(probe_again(argv, "core", "core size"),
	    "a core dump holds the heap, not what is reserved");
	test_steady_state();
	return tap_end();
}
