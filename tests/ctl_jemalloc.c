/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ctl_jemalloc.c - names and options that are there for programs written for
 * jemalloc, and have a meaning of their own or none.
 */
#include "allocx_api.h"

#include <pthread.h>
#include <sys/resource.h>

static int
get(const char *name, void *v, size_t n)
{
	return x.ctl(name, v, &n, NULL, 0);
}

static size_t
get_size(const char *name)
{
	size_t v = 0;

	return get(name, &v, sizeof v) == 0 ? v : SIZE_MAX;
}

/* ------------------------------------------------------------------ */

static void *
other_thread(void *arg)
{
	*(size_t *)arg = get_size("thread.tcache.max");
	return NULL;
}

static void
test_tcache_max(void)
{
	size_t first = get_size("thread.tcache.max");
	size_t other = 0;
	size_t v = 1000;
	size_t old = 0;
	size_t n = sizeof old;
	pthread_t t;
	bool held = first == get_size("opt.tcache_max");

	held &= x.ctl("thread.tcache.max", &old, &n, &v, sizeof v) == 0 &&
		old == first && get_size("thread.tcache.max") == 1000;
	held &= pthread_create(&t, NULL, other_thread, &other) == 0 &&
		pthread_join(t, NULL) == 0 && other == first;
	v = SIZE_MAX;
	held &= x.ctl("thread.tcache.max", NULL, NULL, &v, sizeof v) == 0 &&
		get_size("thread.tcache.max") == (size_t)8 << 20;
	tap_ok(held, "thread.tcache.max is the thread's, 8 MiB at most");
}

static size_t
cached_of(size_t size)
{
	size_t n = sizeof size;
	size_t v = SIZE_MAX;
	int err = x.ctl("thread.tcache.ncached_max.read_sizeclass", &v, &n,
	    &size, sizeof size);

	return err == 0 ? v : SIZE_MAX;
}

static int
write_list(const char *list)
{
	return x.ctl(
	    "thread.tcache.ncached_max.write", NULL, NULL, &list, sizeof list);
}

static void
test_ncached(void)
{
	const char *list = "8-8:1";
	size_t v;
	size_t n = sizeof v;
	bool held = cached_of(8) > 0 && cached_of(8) < SIZE_MAX &&
		    cached_of(1 << 20) == 0 &&
		    cached_of(((size_t)8 << 20) + 1) == SIZE_MAX;

	held &= x.ctl("thread.tcache.ncached_max.read_sizeclass", &v, &n, NULL,
		    0) == EINVAL;
	held &= write_list("8-128:10|1024-2048:0") == 0 &&
		write_list("8-128:10|") == EINVAL &&
		write_list("8") == EINVAL && write_list("") == EINVAL &&
		write_list(NULL) == EINVAL;
	held &= x.ctl("thread.tcache.ncached_max.write", &v, &n, &list,
		    sizeof list) == EPERM;
	tap_ok(held, "thread.tcache.ncached_max is read, and looks at a list");
}

static void
test_batch_alloc(void)
{
	enum { N = 100 };
	char *p[N + 1] = {NULL};
	struct {
		void *ptrs;
		size_t num;
		size_t size;
		int flags;
	} want = {p, N, 200, MALLOCX_ZERO};
	size_t got = 0;
	size_t n = sizeof got;
	bool held = x.ctl("experimental.batch_alloc", &got, &n, &want,
			sizeof want) == 0 &&
		    got == N && p[N] == NULL;

	for (unsigned i = 0; i < N; i++) {
		held &= p[i] != NULL && p[i][199] == 0;
		if (p[i] != NULL)
			memset(p[i], 1, 200);
	}
	for (unsigned i = 0; i < N; i++)
		free(p[i]);
	want.size = PTRDIFF_MAX;
	held &= x.ctl("experimental.batch_alloc", &got, &n, &want,
		    sizeof want) == 0 &&
		got == 0;
	n = 4;
	held &= x.ctl("experimental.batch_alloc", &got, &n, &want,
		    sizeof want) == EINVAL &&
		n == 0;
	n = sizeof got;
	held &= x.ctl("experimental.batch_alloc", &got, &n, &want, 8) == EINVAL;
	tap_ok(held, "experimental.batch_alloc fills an array");
}

/* ------------------------------------------------------------------ */
/* Children, by an argument */

#define CONF "experimental_infallible_new:true,check:true,zero_realloc:abort"

static const char *heard;

static void
hear(const char *message)
{
	heard = message;
	if (strncmp(message, "<eddy>: double free: 0x", 23) == 0)
		_exit(42);
}

static void
hear_only(const char *message)
{
	(void)message;
}

static int
listen_by(void (*fn)(const char *))
{
	return x.ctl("experimental.hooks.safety_check_abort", NULL, NULL, &fn,
	    sizeof fn);
}

static int
child(const char *arg)
{
	void *(*new)(size_t);
	void *sym = dlsym(RTLD_DEFAULT, "_Znwm");
	void *volatile p = malloc(10);
	const char *s = NULL;
	bool on = false;
	uint64_t epoch = 1;
	size_t n = sizeof epoch;

	if (!find_allocx() || sym == NULL)
		return 1;
	if (strcmp(arg, "epoch") == 0)
		return x.ctl("epoch", &epoch, &n, &epoch, n) != 0 || epoch != 2;
	if (strcmp(arg, "zero") == 0) {
		/* The block stays. */
		p = realloc(p, 0);
		return 3;
	}
	if (strcmp(arg, "zeroed") == 0) {
		(void)listen_by(hear);
		p = realloc(p, 0);
		return p != NULL || heard == NULL;
	}
	memcpy(&new, &sym, sizeof new);
	if (strcmp(arg, "conf") == 0)
		return get("opt.malloc_conf.env_var", &s, sizeof s) != 0 ||
		       s == NULL || strcmp(s, CONF) != 0 ||
		       get("opt.experimental_infallible_new", &on, 1) != 0 ||
		       !on;
	if (strcmp(arg, "heard") == 0) {
		(void)listen_by(hear);
		free(p);
		free(p);
	} else if (strcmp(arg, "returns") == 0) {
		(void)listen_by(hear_only);
		free(p);
		free(p);
	} else if (strcmp(arg, "new") == 0) {
		(void)new (SIZE_MAX);
	} else {
		(void)listen_by(hear);
		return new (SIZE_MAX) != NULL || heard == NULL ||
		       strncmp(heard, "<jemalloc>: Allocation of size 1844",
			   35) != 0;
	}
	return 3;
}

/* The wait status of a child with the options above. */
static int
status(char **argv, const char *what)
{
	char arg[16];
	int st = -1;
	pid_t pid = fork();

	if (pid == 0) {
		struct rlimit none = {0, 0};

		(void)snprintf(arg, sizeof arg, "%s", what);
		probe_child_begin(20);
		(void)setrlimit(RLIMIT_CORE, &none);
		(void)close(STDERR_FILENO);
		(void)setenv("MALLOC_CONF", CONF, 1);
		(void)setenv("EDDY_TAP_CHILD", "1", 1);
		tap_exec(argv[0], arg);
	}
	(void)waitpid(pid, &st, 0);
	return st;
}

static void
test_conf(char **argv)
{
	const char *s = "";
	char link;
	bool held;

	held = getenv("MALLOC_CONF") != NULL ||
	       (get("opt.malloc_conf.env_var", &s, sizeof s) == 0 && s == NULL);
	held &= status(argv, "conf") == 0;
	held &= get("opt.malloc_conf.symlink", &s, sizeof s) == 0 &&
		(s == NULL) == (readlink("/etc/malloc.conf", &link, 1) != 1);
	tap_ok(held, "opt.malloc_conf.env_var and symlink");
}

static bool
aborts(int st)
{
	return WIFSIGNALED(st) && WTERMSIG(st) == SIGABRT;
}

int
main(int argc, char **argv)
{
	if (argc == 2)
		return child(argv[1]);
	tap_begin(argv);
	if (!find_allocx())
		tap_skip_all("no mallctl");
	test_tcache_max();
	test_ncached();
	test_batch_alloc();
	test_conf(argv);
	tap_ok(status(argv, "heard") == 42 << 8,
	    "safety_check_abort: a function hears of a double free");
	tap_ok(aborts(status(argv, "returns")),
	    "and if it returns, the process ends");
	tap_ok(aborts(status(argv, "new")),
	    "experimental_infallible_new: new that fails is the end");
	tap_ok(status(argv, "told") == 0,
	    "but for a function that hears of it and returns");
	tap_ok(aborts(status(argv, "zero")) && status(argv, "zeroed") == 0,
	    "zero_realloc:abort: the same");
	tap_ok(status(argv, "epoch") == 0,
	    "an epoch that is the first call of all is the second");
	return tap_end();
}
