/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * front_pressure.c - the program is asked to drop its caches before a request
 * fails.
 */
#include "probe.h"

#include <dirent.h>
#include <sys/stat.h>

static int (*on)(void (*)(void *, size_t), void *);
static int (*off)(void (*)(void *, size_t), void *);

enum { N = 60 };

static struct cache {
	void *block[N];
	unsigned n;
	unsigned calls;
	size_t wanted;
} cache;

static void
fill(void)
{
	while (cache.n < N) {
		void *p = p_malloc(4 * MIB);

		if (p == NULL)
			break;
		cache.block[cache.n++] = p;
	}
}

static void
drop(void *arg, size_t wanted)
{
	struct cache *c = arg;

	c->calls++;
	c->wanted = wanted;
	while (c->n > 0)
		p_free(c->block[--c->n]);
}

/* One that asks for what there is not. */
static void
greedy(void *arg, size_t wanted)
{
	struct cache *c = arg;

	c->calls++;
	c->wanted = wanted;
	if (p_malloc(240UL * MIB) != NULL)
		c->calls += 100;
}

static void
asked(void)
{
	void *p;

	tap_ok(on(NULL, NULL) == EINVAL && off(drop, &cache) == EINVAL,
	    "no function, none registered");
	tap_ok(on(drop, &cache) == 0 && on(drop, &cache) == 0, "registered");
	fill();
	tap_ok(
	    cache.n > 50 && cache.calls == 0, "%u blocks are cached", cache.n);
	p = p_malloc(100UL * MIB);
	tap_ok(p != NULL && cache.calls == 1 && cache.wanted == 100UL * MIB,
	    "what does not fit has them dropped, once, and is served");
	p_free(p);
	fill();
	p = p_realloc(p_malloc(100), 100UL * MIB);
	tap_ok(p != NULL && cache.calls == 2, "the same for realloc");
	p_free(p);
	fill();
	p = p_calloc(1, 100UL * MIB);
	tap_ok(p != NULL && cache.calls == 3, "and calloc");
	p_free(p);
	tap_ok(p_malloc((size_t)1 << 50) == NULL && cache.calls == 3,
	    "nobody is asked for what can never be");
	errno = 0;
	tap_ok(p_malloc(400UL * MIB) == NULL && errno == ENOMEM &&
		   cache.calls == 4,
	    "asked in vain, the answer is NULL");
	tap_ok(off(drop, &cache) == 0 && off(drop, &cache) == EINVAL,
	    "taken back");
	fill();
	tap_ok(p_malloc(100UL * MIB) == NULL && cache.calls == 4,
	    "and not asked any more");
}

static void
within(void)
{
	bool held;

	cache.calls = 0;
	tap_ok(on(greedy, &cache) == 0, "one that asks itself");
	held = p_malloc(100UL * MIB) == NULL;
	tap_ok(held && cache.calls == 1, "is not asked within: %u calls",
	    cache.calls);
	(void)off(greedy, &cache);
	drop(&cache, 0);
	tap_ok(on(drop, &cache) == 0 && off(drop, &cache) == 0,
	    "registered once more");
}

static void *
short_life(void *arg)
{
	(void)usleep(100000);
	return arg;
}

/* The main thread ends before another: the process ends with that. */
static int
child_ends(void)
{
	pthread_t t;

	tap_alarm(10); /* if it does not end */
	*(void **)&on = dlsym(RTLD_DEFAULT, "eddy_on_pressure");
	if (on == NULL || on(drop, &cache) != 0 ||
	    pthread_create(&t, NULL, short_life, NULL) != 0)
		return 1;
	pthread_exit(NULL);
}

static void *
registers(void *arg)
{
	if (on(drop, &cache) != 0)
		_exit(1);
	return short_life(arg);
}

/* The same, and it was another thread that registered. */
static int
child_registers(void)
{
	pthread_t t;

	tap_alarm(10);
	*(void **)&on = dlsym(RTLD_DEFAULT, "eddy_on_pressure");
	if (on == NULL || pthread_create(&t, NULL, registers, NULL) != 0)
		return 1;
	pthread_exit(NULL);
}

static char log_path[] = "/tmp/eddy_pressure.XXXXXX";

static void *
look_at_log(void *arg)
{
	struct stat st;

	(void)usleep(100000);
	if (stat(log_path, &st) != 0 || unlink(log_path) != 0 ||
	    st.st_size != 0)
		_exit(2);
	return arg;
}

/* All descriptors are closed, and their numbers are a file of the program's. */
static int
child_closes(void)
{
	pthread_t t;

	tap_alarm(10);
	*(void **)&on = dlsym(RTLD_DEFAULT, "eddy_on_pressure");
	if (on == NULL || on(drop, &cache) != 0)
		return 1;
	(void)usleep(50000); /* it waits */
	for (int fd = 3; fd < 64; fd++)
		(void)close(fd);
	if (mkstemp(log_path) < 0)
		return 1;
	for (int i = 0; i < 16; i++)
		(void)open(log_path, O_WRONLY | O_APPEND);
	if (pthread_create(&t, NULL, look_at_log, NULL) != 0)
		return 1;
	pthread_exit(NULL);
}

static void
ended(const char *how, const char *what)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		(void)execl("/proc/self/exe", how, how, (char *)NULL);
		_exit(99);
	}
	tap_alarm(20);
	(void)waitpid(pid, &status, 0);
	tap_ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s", what);
}

/* Threads of this process with the name. */
static unsigned
threads_named(const char *name)
{
	DIR *d = opendir("/proc/self/task");
	unsigned n = 0;

	for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
		char path[64 + sizeof e->d_name];
		char comm[32] = "";
		int fd;

		(void)snprintf(
		    path, sizeof path, "/proc/self/task/%s/comm", e->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0 && read(fd, comm, sizeof comm - 1) > 0)
			n += strncmp(comm, name, strlen(name)) == 0;
		if (fd >= 0)
			(void)close(fd);
	}
	if (d != NULL)
		(void)closedir(d);
	return n;
}

/* A child has its parent's descriptors, and no say over its thread. */
static void
forked(void)
{
	unsigned before;
	pid_t pid;

	(void)on(drop, &cache);
	/* It has its name when it runs, if the kernel tells of pressure. */
	for (int i = 0; i < 100 && threads_named("eddy_pressure") == 0; i++)
		(void)usleep(10000);
	before = threads_named("eddy_pressure");
	pid = fork();
	if (pid == 0) {
		pthread_t t;

		tap_alarm(10);
		if (pthread_create(&t, NULL, short_life, NULL) != 0)
			_exit(1);
		pthread_exit(NULL);
	}
	(void)waitpid(pid, NULL, 0);
	(void)usleep(100000);
	tap_ok(threads_named("eddy_pressure") >= before,
	    "a child that ends leaves its parent's %u threads alone", before);
	(void)off(drop, &cache);
}

int
main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "ends") == 0)
		return child_ends();
	if (argc > 1 && strcmp(argv[1], "registers") == 0)
		return child_registers();
	if (argc > 1 && strcmp(argv[1], "closes") == 0)
		return child_closes();
	(void)setenv("MALLOC_CONF", "heap_limit:268435456", 1);
	tap_begin(argv);
	tap_guard(60);
	*(void **)&on = dlsym(RTLD_DEFAULT, "eddy_on_pressure");
	*(void **)&off = dlsym(RTLD_DEFAULT, "eddy_off_pressure");
	if (on == NULL || off == NULL)
		tap_skip_all("this malloc has no such calls");
	asked();
	within();
	forked();
	ended(
	    "ends", "a process whose main thread has ended ends with the last");
	ended("registers", "also if another thread has registered");
	ended("closes", "also if all descriptors were closed; others are not "
			"written to");
	return tap_end();
}
