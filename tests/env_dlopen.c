/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * env_dlopen.c - the library loaded late, with threads already running, and
 * a second libc in a namespace of its own beside it.
 */
#include "probe.h"

static pthread_barrier_t barrier;
static void *(*late_malloc)(size_t);
static void (*late_free)(void *);
static struct flag bad;

static void *
late_user(void *arg)
{
	unsigned char *p[100];

	(void)pthread_barrier_wait(&barrier);
	for (int k = 0; k < 300; k++) {
		for (size_t i = 0; i < 100; i++) {
			p[i] = late_malloc(i * 40 + 1);
			memset(p[i], (int)i, i * 40 + 1);
		}
		for (size_t i = 0; i < 100; i++) {
			if (p[i][i * 40] != i)
				flag_set(&bad);
			late_free(p[i]);
		}
	}
	return arg;
}

/* Not preloaded: the threads exist before the library does. */
static int
late(const char *so)
{
	pthread_t t[4];
	void *h;

	(void)pthread_barrier_init(&barrier, NULL, 5);
	for (int i = 0; i < 4; i++)
		(void)pthread_create(&t[i], NULL, late_user, NULL);
	h = dlopen(so, RTLD_NOW | RTLD_LOCAL);
	if (h == NULL) {
		tap_diag("%s", dlerror());
		return 1;
	}
	late_malloc = (void *(*)(size_t))dlsym(h, "malloc");
	late_free = (void (*)(void *))dlsym(h, "free");
	if (late_malloc == NULL || late_malloc == malloc)
		return 2;
	(void)pthread_barrier_wait(&barrier);
	for (int i = 0; i < 4; i++)
		(void)pthread_join(t[i], NULL);
	late_free(late_malloc(1000));
	/* Must be harmless: threads still hold its thread-local state. */
	(void)dlclose(h);
	late_free(late_malloc(1000));
	return flag_is_set(&bad) ? 3 : 0;
}

static void
test_late(char **argv, const char *so)
{
	char why[64];
	pid_t pid;

	if (so == NULL || *so == '\0') {
		tap_skip("the library is loaded late", "no EDDY_SO");
		return;
	}
	pid = fork();
	if (pid == 0) {
		char arg[] = "late";

		probe_child_begin(30);
		(void)unsetenv("LD_PRELOAD");
		(void)unsetenv("EDDY_SO");
		(void)setenv("EDDY_TAP_CHILD", so, 1);
		tap_exec(argv[0], arg);
	}
	if (!tap_ok(probe_wait(pid, why, sizeof why),
		"the library is loaded late, used by older threads, unloaded"))
		tap_diag("%s", why);
}

static void
test_second_libc(void)
{
	enum { N = 2000 };
	static unsigned char *a[N];
	static unsigned char *b[N];
	const char *name = "two heaps in two namespaces live side by side";
	void *h = dlmopen(LM_ID_NEWLM, "libc.so.6", RTLD_NOW);
	void *(*other_malloc)(size_t);
	void (*other_free)(void *);
	uint64_t rng = tap.seed;
	bool held = true;

	if (h == NULL) {
		tap_skip(name, "%s", dlerror());
		return;
	}
	other_malloc = (void *(*)(size_t))dlsym(h, "malloc");
	other_free = (void (*)(void *))dlsym(h, "free");
	for (int k = 0; k < 10; k++) {
		for (int i = 0; i < N; i++) {
			size_t n = 16 + (size_t)tap_random(&rng) %
					    (i % 32 != 0 ? 2000 : 300000);

			a[i] = p_malloc(n);
			b[i] = other_malloc(n);
			memset(a[i], 1, n);
			memset(b[i], 2, n);
		}
		for (int i = 0; i < N; i++) {
			held = held && a[i][15] == 1 && b[i][15] == 2;
			p_free(a[i]);
			other_free(b[i]);
		}
	}
	tap_ok(held, "%s", name);
}

int
main(int argc, char **argv)
{
	const char *so = getenv("EDDY_SO");

	tap_begin(argv);
	if (argc > 1)
		return late(getenv("EDDY_TAP_CHILD"));
	tap_guard(60);
	test_late(argv, so);
	test_second_libc();
	return tap_end();
}
