/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * prefix_client.c - uses a copy of eddy whose names begin with P (-DP=je_)
 * beside the C library's malloc; tests/env_prefix.sh builds it, more than once
 * into one program.  client_P returns the number of the line that failed, or 0.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define JEMALLOC_NO_DEMANGLE
#include <jemalloc/jemalloc.h>

#define JOIN2(a, b) a##b
#define JOIN(a, b)  JOIN2(a, b)
#define client      JOIN(client_, P)

int client(void);

/* The program's options, for this copy alone. */
const char *je_malloc_conf = "dirty_decay_ms:4321";

#define CHECK(x)                         \
	do {                             \
		if (!(x))                \
			return __LINE__; \
	} while (0)

enum { ROUNDS = 20000, KEPT = 100 };

/* Blocks of either malloc, freed where they belong; NULL: all as it was. */
static void *
mix(void *arg)
{
	char *ours[KEPT] = {NULL};
	char *theirs[KEPT] = {NULL};

	for (unsigned i = 0; i < ROUNDS; i++) {
		unsigned k = i * 7919u % KEPT;
		size_t size = 1 + i * 31u % 40000;

		if (ours[k] != NULL &&
		    (ours[k][0] != (char)k || theirs[k][0] != (char)~k))
			return arg;
		je_free(ours[k]);
		free(theirs[k]);
		ours[k] = je_malloc(size);
		theirs[k] = malloc(size);
		if (ours[k] == NULL || theirs[k] == NULL)
			return arg;
		ours[k][0] = (char)k;
		theirs[k][0] = (char)~k;
	}
	for (unsigned k = 0; k < KEPT; k++) {
		je_free(ours[k]);
		free(theirs[k]);
	}
	return NULL;
}

static uint64_t
read_u64(const char *name)
{
	uint64_t v = 0;
	size_t n = sizeof(v);

	return je_mallctl(name, &v, &n, NULL, 0) == 0 ? v : UINT64_MAX;
}

/* An arena knows its own blocks and no others. */
static int
looked_up(void *p)
{
	unsigned arena;
	size_t n = sizeof(arena);

	return je_mallctl("arenas.lookup", &arena, &n, &p, sizeof(p));
}

static int
family(void)
{
	void *p = je_malloc(100);
	void *q = malloc(100);
	void *a = NULL;

	CHECK(je_malloc_usable_size(p) == 112 && malloc_usable_size(q) != 112);
	CHECK(looked_up(p) == 0 && looked_up(q) != 0);
	CHECK(je_posix_memalign(&a, 4096, 1) == 0 && (uintptr_t)a % 4096 == 0);
	CHECK(looked_up(a) == 0);
	je_free(a);
	a = je_calloc(3, 50000);
	CHECK(a != NULL && ((char *)a)[149999] == 0 && looked_up(a) == 0);
	a = je_realloc(a, 300000);
	CHECK(a != NULL && looked_up(a) == 0);
	je_sdallocx(a, 300000, 0);
	a = je_mallocx(1 << 20, MALLOCX_ALIGN(65536) | MALLOCX_ZERO);
	CHECK((uintptr_t)a % 65536 == 0 && je_sallocx(a, 0) == 1 << 20);
	je_dallocx(a, 0);
	CHECK(je_get_defrag_hint(q) == 0 && je_get_defrag_hint(NULL) == 0);
	je_free(je_aligned_alloc(64, 1));
	je_free(je_memalign(64, 1));
	je_free(je_valloc(1));
	je_free_sized(je_pvalloc(1), 4096);
	/* The C library frees what it made: strdup is not ours. */
	je_free(p);
	free(q);
	q = strdup("theirs");
	CHECK(looked_up(q) != 0);
	free(q);
	return 0;
}

static char said[4096];

static void
hear(void *arg, const char *s)
{
	(void)arg;
	if (strlen(said) + strlen(s) < sizeof(said))
		strcat(said, s);
}

static int
settings(void)
{
	const char *s = NULL;
	size_t n = sizeof(s);
	bool on = true;

	CHECK(je_mallctl("opt.malloc_conf.global_var", &s, &n, NULL, 0) == 0);
	CHECK(strcmp(s, je_malloc_conf) == 0);
	CHECK(je_mallctl("version", &s, &n, NULL, 0) == 0);
	CHECK(strcmp(s, JEMALLOC_VERSION) == 0);
	CHECK(read_u64("opt.dirty_decay_ms") == 4321);
	je_malloc_message = hear;
	je_malloc_stats_print(NULL, NULL, "gblan");
	je_malloc_message = NULL;
	CHECK(strstr(said, "statistics") != NULL);
	/* pthread_create is the C library's: threads of ours by mallctl. */
	n = sizeof(on);
	CHECK(je_mallctl("background_thread", &on, &n, NULL, 0) == 0 && !on);
	on = true;
	CHECK(je_mallctl("background_thread", NULL, NULL, &on, 1) == 0);
	on = false;
	CHECK(je_mallctl("background_thread", &on, &n, NULL, 0) == 0 && on);
	on = false;
	CHECK(je_mallctl("background_thread", NULL, NULL, &on, 1) == 0);
	return 0;
}

int
client(void)
{
	pthread_t t[4];
	void *bad = NULL;
	int at = family();
	int st;
	pid_t pid;

	if (at == 0)
		at = settings();
	if (at != 0)
		return at;
	for (int i = 0; i < 4; i++)
		CHECK(pthread_create(&t[i], NULL, mix, said) == 0);
	pid = fork();
	if (pid == 0)
		_exit(mix(said) != NULL);
	for (int i = 0; i < 4; i++) {
		CHECK(pthread_join(t[i], &bad) == 0);
		CHECK(bad == NULL);
	}
	CHECK(waitpid(pid, &st, 0) == pid && st == 0);
	return 0;
}
