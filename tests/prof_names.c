/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * prof_names.c - mallctl names of profiles and their errors, names of files,
 * switches, functions of the program's.
 *
 * Argument "off": in a process that does not profile.
 */
#include "prof_api.h"

#include <dirent.h>

static char folder[64];

/* ---- off ---- */

static int
write_bool(const char *name, bool v)
{
	return x.ctl(name, NULL, NULL, &v, sizeof v);
}

static bool
reads_false(const char *name)
{
	return prof_get(name) == 0;
}

static void
test_off(void)
{
	static const char *const written[] = {
	    "prof.dump", "prof.prefix", "prof.format", "thread.prof.name"};
	const char *s = "/nonexistent/x";
	uint64_t v[2];
	size_t n = sizeof v;
	void *hook = &n;
	bool ok = true;

	for (size_t i = 0; i < COUNT(written); i++)
		ok &= x.ctl(written[i], NULL, NULL, &s, sizeof s) == ENOENT;
	ok &= x.ctl("prof.reset", NULL, NULL, NULL, 0) == ENOENT;
	tap_ok(ok, "off: what is written is ENOENT");
	ok = reads_false("opt.prof") && reads_false("prof.active") &&
	     reads_false("prof.gdump") &&
	     reads_false("prof.thread_active_init") &&
	     reads_false("thread.prof.active");
	n = sizeof v[0];
	v[0] = 77;
	ok &= x.ctl("prof.interval", v, &n, NULL, 0) == 0 && v[0] == 0;
	v[0] = 77;
	ok &= x.ctl("prof.lg_sample", v, &n, NULL, 0) == 0 && v[0] == 0;
	tap_ok(ok, "off: settings read as false and 0");
	tap_ok(write_bool("prof.active", false) == 0 &&
		   write_bool("prof.active", true) == ENOENT &&
		   write_bool("prof.gdump", false) == ENOENT &&
		   write_bool("prof.thread_active_init", true) == ENOENT &&
		   write_bool("thread.prof.active", true) == ENOENT,
	    "off: prof.active may be set to false, nothing else");
	n = sizeof v;
	tap_ok(x.ctl("prof.stats.bins.0.live", v, &n, NULL, 0) == ENOENT &&
		   x.ctl("prof.log_start", NULL, NULL, &s, sizeof s) == ENOENT,
	    "off: no samples by class, no log");
	n = sizeof hook;
	ok = x.ctl("experimental.hooks.prof_backtrace", &hook, &n, NULL, 0) ==
		 0 &&
	     hook == NULL;
	hook = &n;
	tap_ok(ok && x.ctl("experimental.hooks.prof_sample", NULL, NULL, &hook,
			 sizeof hook) == ENOENT,
	    "off: functions cannot be set");
}

/* ---- names of files ---- */

/* The name in the folder that begins and ends so; there is just one. */
static bool
find_file(const char *prefix, const char *suffix, char *ret)
{
	DIR *d = opendir(folder);
	struct dirent *e;
	unsigned n = 0;

	if (d == NULL)
		return false;
	while ((e = readdir(d)) != NULL) {
		size_t len = strlen(e->d_name);

		if (strncmp(e->d_name, prefix, strlen(prefix)) != 0 ||
		    len < strlen(suffix) ||
		    strcmp(e->d_name + len - strlen(suffix), suffix) != 0)
			continue;
		n++;
		(void)snprintf(ret, 512, "%s/%s", folder, e->d_name);
	}
	(void)closedir(d);
	return n == 1;
}

static void
set_prefix(const char *s)
{
	if (x.ctl("prof.prefix", NULL, NULL, (void *)&s, sizeof s) != 0)
		tap_bail("prof.prefix");
}

static void
files(void)
{
	char path[512];
	char prefix[128];
	char name[64];
	const char *null = NULL;
	const char *bad = "/nonexistent/folder/x.heap";
	const char *full = "/dev/full";
	bool ok;

	(void)snprintf(prefix, sizeof prefix, "%s/p", folder);
	set_prefix(prefix);
	(void)snprintf(name, sizeof name, "p.%d.0.m0.heap", (int)getpid());
	ok = x.ctl("prof.dump", NULL, NULL, NULL, 0) == 0;
	tap_ok(
	    ok && find_file("p.", name + 1, path) && prof_read(path, NULL).good,
	    "prof.dump: %s", name);
	(void)snprintf(name, sizeof name, "p.%d.1.m1.heap", (int)getpid());
	ok = x.ctl("prof.dump", NULL, NULL, &null, sizeof null) == 0;
	tap_ok(ok && find_file("p.", name + 1, path), "then %s", name);
	set_prefix("");
	tap_ok(x.ctl("prof.dump", NULL, NULL, NULL, 0) == EFAULT,
	    "without a prefix EFAULT");
	tap_ok(x.ctl("prof.dump", NULL, NULL, &bad, sizeof bad) == EFAULT &&
		   x.ctl("prof.dump", NULL, NULL, &full, sizeof full) == EFAULT,
	    "a file that cannot be made or written: EFAULT");
	set_prefix(prefix);
}

static bool
any_file(const char *kind)
{
	DIR *d = opendir(folder);
	struct dirent *e;
	bool found = false;

	while (d != NULL && (e = readdir(d)) != NULL)
		found |= strstr(e->d_name, kind) != NULL;
	if (d != NULL)
		(void)closedir(d);
	return found;
}

static void
by_themselves(void)
{
	static void *p[64];
	bool ok;

	ok = !any_file(".u0.") && prof_set("prof.gdump", true) == 0 &&
	     prof_get("prof.gdump") == 1;
	for (size_t i = 0; i < COUNT(p); i++)
		p[i] = p_malloc(4 * MIB);
	tap_ok(ok && any_file(".u0."), "prof.gdump: as memory grows");
	(void)prof_set("prof.gdump", false);
	tap_ok(any_file(".i0."), "lg_prof_interval: as it goes");
	for (size_t i = 0; i < COUNT(p); i++)
		p_free(p[i]);
}

static void
formats(void)
{
	const char *s = "nonsense";
	char path[128];
	char line[256] = "";
	size_t n = sizeof s;
	FILE *f;
	bool ok;

	ok = x.ctl("prof.format", NULL, NULL, &s, sizeof s) == EINVAL;
	s = "gperftools";
	ok &= x.ctl("prof.format", NULL, NULL, &s, sizeof s) == 0;
	(void)snprintf(path, sizeof path, "%s/g.heap", folder);
	ok &= prof_dump(path) == 0;
	f = fopen(path, "r");
	ok &= f != NULL && fgets(line, sizeof line, f) != NULL &&
	      strncmp(line, "heap profile: ", 14) == 0 &&
	      strstr(line, "] @ heap_v2/") != NULL;
	if (f != NULL)
		(void)fclose(f);
	ok &= x.ctl("prof.format", &s, &n, NULL, 0) == 0 &&
	      strcmp(s, "gperftools") == 0;
	s = "threaded";
	ok &= x.ctl("prof.format", NULL, NULL, &s, sizeof s) == 0;
	tap_ok(ok && prof_now(NULL).good, "prof.format: both, nothing else");
}

/* ---- switches ---- */

static double
sampled(size_t n)
{
	double before = prof_now(NULL).ever_objects;

	for (size_t i = 0; i < n; i++)
		p_free(p_malloc(100));
	return prof_now(NULL).ever_objects - before;
}

static void
switches(void)
{
	bool ok;
	double with;

	prof_reset(0);
	with = sampled(1000);
	ok = prof_get("prof.active") == 1 &&
	     prof_set("prof.active", false) == 0 &&
	     prof_get("prof.active") == 0;
	ok &= sampled(1000) == 0 && prof_set("prof.active", true) == 0;
	ok &= with >= 1000 && sampled(1000) >= 1000;
	tap_ok(ok, "prof.active: off and on");
	ok = prof_get("thread.prof.active") == 1 &&
	     prof_set("thread.prof.active", false) == 0;
	ok &= sampled(1000) == 0 && prof_get("thread.prof.active") == 0;
	ok &= prof_set("thread.prof.active", true) == 0;
	tap_ok(ok && sampled(1000) >= 1000, "thread.prof.active: off and on");
}

static void *
as_new(void *arg)
{
	size_t n = (size_t)arg;

	for (size_t i = 0; i < n; i++)
		p_free(p_malloc(100));
	return (void *)(uintptr_t)prof_get("thread.prof.active");
}

static uintptr_t
in_thread(void *(*f)(void *), void *arg)
{
	pthread_t t;
	void *r;

	if (pthread_create(&t, NULL, f, arg) != 0)
		tap_bail("pthread_create");
	(void)pthread_join(t, &r);
	return (uintptr_t)r;
}

static void
new_threads(void)
{
	double before = prof_now(NULL).ever_objects;
	bool ok = prof_get("prof.thread_active_init") == 1 &&
		  prof_set("prof.thread_active_init", false) == 0;

	ok &= in_thread(as_new, (void *)(uintptr_t)5000) == 0;
	ok &= prof_now(NULL).ever_objects - before < 1000;
	ok &= prof_set("prof.thread_active_init", true) == 0;
	ok &= in_thread(as_new, (void *)(uintptr_t)5000) == 1;
	ok &= prof_now(NULL).ever_objects - before >= 5000;
	tap_ok(ok, "prof.thread_active_init: what new threads begin with");
}

static void
resets(void)
{
	void *p = p_malloc(1000);
	size_t lg = 0;
	size_t n = sizeof lg;
	struct profile f;
	bool ok = x.ctl("prof.reset", NULL, NULL, NULL, 0) == 0;

	f = prof_now(NULL);
	ok &= f.head[0] == 0 && f.head[2] < 10 && f.period == 1;
	p_free(p); /* of before: not taken off */
	f = prof_now(NULL);
	ok &= f.head[0] == 0 && f.good;
	lg = 100;
	ok &= x.ctl("prof.reset", NULL, NULL, &lg, sizeof lg) == 0;
	ok &= x.ctl("prof.lg_sample", &lg, &n, NULL, 0) == 0 && lg == 63;
	prof_reset(7);
	ok &= x.ctl("prof.lg_sample", &lg, &n, NULL, 0) == 0 && lg == 7;
	ok &= prof_now(NULL).period == 128;
	tap_ok(ok, "prof.reset: all is forgotten, another period holds");
	prof_reset(0);
}

/* ---- threads ---- */

static void *
named(void *arg)
{
	const char *name = arg;
	const char *bad = "a\nb";
	const char *got = NULL;
	size_t n = sizeof got;
	bool ok;

	ok = x.ctl("thread.prof.name", NULL, NULL, &name, sizeof name) == 0;
	ok &= x.ctl("thread.prof.name", &got, &n, NULL, 0) == 0 &&
	      got != NULL && strcmp(got, name) == 0;
	ok &= x.ctl("thread.prof.name", &got, &n, &name, sizeof name) == EPERM;
	ok &= x.ctl("thread.prof.name", NULL, NULL, &bad, sizeof bad) == EINVAL;
	p_free(p_malloc(77));
	return (void *)(uintptr_t)ok;
}

static void
names(void)
{
	bool ok = in_thread(named, "worker 7") != 0;

	tap_ok(ok && prof_now("worker 7").named && !prof_now("worker 8").named,
	    "thread.prof.name: in profiles; EPERM, EINVAL");
}

/* ---- functions ---- */

static struct {
	const void *block;
	size_t size;
	size_t usable;
	unsigned frames;
	const void *freed;
	size_t freed_usable;
	char dumped[128];
	unsigned walks;
} seen;

static void
on_sample(const void *p, size_t size, void **bt, unsigned n, size_t usable)
{
	(void)bt;
	/* What it allocates is no sample. */
	p_free(p_malloc(500));
	seen.block = p;
	seen.size = size;
	seen.frames = n;
	seen.usable = usable;
}

static void
on_free(const void *p, size_t usable)
{
	p_free(p_malloc(500));
	seen.freed = p;
	seen.freed_usable = usable;
}

static void
on_dump(const char *path)
{
	p_free(p_malloc(500));
	(void)snprintf(seen.dumped, sizeof seen.dumped, "%s", path);
}

static void
on_walk(void **frames, unsigned *n, unsigned max)
{
	p_free(p_malloc(500));
	seen.walks++;
	frames[0] = (void *)(uintptr_t)0x1234567;
	*n = max > 1;
}

static bool
set_hook(const char *name, void *f)
{
	return x.ctl(name, NULL, NULL, &f, sizeof f) == 0;
}

static void
functions(void)
{
	void *walk = NULL;
	void *null = NULL;
	size_t n = sizeof walk;
	char path[128];
	char line[256];
	bool found = false;
	FILE *f;
	bool ok;
	void *p;

	ok = set_hook("experimental.hooks.prof_sample", (void *)on_sample) &&
	     set_hook("experimental.hooks.prof_sample_free", (void *)on_free);
	p = p_malloc(77);
	ok &= seen.block == p && seen.size == 77 && seen.usable == 80 &&
	      seen.frames > 1;
	p_free(p);
	ok &= seen.freed == p && seen.freed_usable == 80;
	ok &= set_hook("experimental.hooks.prof_sample", NULL) &&
	      set_hook("experimental.hooks.prof_sample_free", NULL);
	seen.block = NULL;
	p_free(p_malloc(77));
	tap_ok(ok && seen.block == NULL, "prof_sample, prof_sample_free");
	(void)snprintf(path, sizeof path, "%s/h.heap", folder);
	ok = set_hook("experimental.hooks.prof_dump", (void *)on_dump) &&
	     prof_dump(path) == 0 && strcmp(seen.dumped, path) == 0;
	tap_ok(
	    ok && set_hook("experimental.hooks.prof_dump", NULL), "prof_dump");
	ok = x.ctl("experimental.hooks.prof_backtrace", &walk, &n, NULL, 0) ==
		 0 &&
	     walk != NULL;
	ok &= x.ctl("experimental.hooks.prof_backtrace", NULL, NULL, &null,
		  sizeof null) == EINVAL;
	ok &= x.ctl("experimental.hooks.prof_backtrace", NULL, NULL, NULL, 0) ==
	      EINVAL;
	ok &= set_hook("experimental.hooks.prof_backtrace", (void *)on_walk);
	p = p_malloc(77);
	ok &= set_hook("experimental.hooks.prof_backtrace", walk);
	ok &= seen.walks == 1 && prof_dump(path) == 0;
	f = fopen(path, "r");
	while (f != NULL && fgets(line, sizeof line, f) != NULL)
		found |= strcmp(line, "@ 0x1234567\n") == 0;
	if (f != NULL)
		(void)fclose(f);
	p_free(p);
	tap_ok(ok && found && seen.walks == 1, "prof_backtrace");
}

static void
remove_all(void)
{
	DIR *d = opendir(folder);
	struct dirent *e;
	char path[512];

	while (d != NULL && (e = readdir(d)) != NULL) {
		(void)snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
		(void)unlink(path);
	}
	if (d != NULL)
		(void)closedir(d);
	(void)rmdir(folder);
}

int
main(int argc, char **argv)
{
	bool off = argc > 1 && strcmp(argv[1], "off") == 0;

	if (off) {
		(void)unsetenv("MALLOC_CONF");
		(void)setenv("EDDY_PROF_OWN", "1", 1);
	}
	prof_begin(argv,
	    "prof:true,prof_accum:true,lg_prof_sample:10,prof_prefix:,"
	    "lg_prof_interval:24");
	tap_guard(120);
	if (off) {
		test_off();
		return tap_end();
	}
	(void)snprintf(
	    folder, sizeof folder, "/tmp/eddy_names.%d", (int)getpid());
	if (mkdir(folder, 0700) != 0)
		tap_bail("mkdir");
	files();
	by_themselves();
	formats();
	switches();
	new_threads();
	resets();
	names();
	functions();
	remove_all();
	/* The other part, in a process of its own. */
	(void)unsetenv("LD_PRELOAD");
	if (tap.failed == 0 && fork() == 0) {
		(void)close(STDOUT_FILENO);
		(void)open("/dev/null", O_WRONLY);
		(void)execl(argv[0], argv[0], "off", (char *)NULL);
		_exit(99);
	}
	int status = -1;

	(void)wait(&status);
	tap_ok(status == 0, "the same without profiling");
	return tap_end();
}
