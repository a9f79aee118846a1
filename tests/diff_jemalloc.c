/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * diff_jemalloc.c - eddy answers as jemalloc does: diff_driver's random calls
 * under either, in two processes, line by line.
 *
 * EDDY_DIFF_CALLS is how many (`make diff`: a million), EDDY_DIFF_REFERENCE
 * another jemalloc than the system's, EDDY_DIFF_CONF more options for either.
 * What may differ is in diff_allowed.h.
 * Then answers are bent one at a time (diff_wrong.c), and each bend must show.
 */
#include "tap.h"

#include <fnmatch.h>
#include <limits.h>
#include <sys/wait.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

enum { SHORT_CALLS = 100000, FULL_CALLS = 1000000, WRONG_CALLS = 10000 };
enum { FEW = 100, SHOWN = 12, WRONG_SEED = 1 };

/* ------------------------------------------------------------------ */
/* What may differ */

static struct allowed {
	const char *key;
	const char *args;
	const char *reference;
	const char *eddy;
	const char *why;
	unsigned long n;
} allowed[] = {
#define ALLOW(key, args, reference, eddy, why) \
	{key, args, reference, eddy, why, 0},
#include "diff_allowed.h"
#undef ALLOW
};

static const char *const new_names[] = {
#define NEW(pattern)                              pattern,
#define OLD(pattern)                              NULL,
#define NAME(pattern, type, access, since, value) since(pattern)
#include "diff_names.h"
#undef NAME
#undef OLD
#undef NEW
};

static unsigned long n_new;

/* The reference knows nothing of what is newer. */
static bool
is_newer(const char *key, const char *reference)
{
	if (strncmp(reference, "r=2 ", 4) != 0 &&
	    strncmp(reference, "r=1002 ", 7) != 0)
		return false;
	for (size_t i = 0; i < COUNT(new_names); i++)
		if (new_names[i] != NULL && strcmp(new_names[i], key) == 0)
			return true;
	return false;
}

static bool
matches(const char *pattern, const char *s)
{
	return strcmp(pattern, s) == 0 ||
	       fnmatch(pattern, s, FNM_EXTMATCH) == 0;
}

static bool
is_allowed(const char *key, const char *args, const char *a, const char *b)
{
	if (is_newer(key, a)) {
		n_new++;
		return true;
	}
	for (size_t i = 0; i < COUNT(allowed); i++) {
		struct allowed *l = &allowed[i];

		if (matches(l->key, key) && matches(l->args, args) &&
		    matches(l->reference, a) && matches(l->eddy, b)) {
			l->n++;
			return true;
		}
	}
	return false;
}

/* ------------------------------------------------------------------ */
/* Two processes */

struct side {
	FILE *f;
	pid_t pid;
	char line[2048];
	bool over;
	unsigned long step;
	unsigned long sub;
	char *key;
	char *args;
	char *answer;
};

static char driver[PATH_MAX];

static void
start(struct side *s, const char *preload, const char *conf, const char *wrong,
    uint64_t seed, unsigned long calls)
{
	const char *more = getenv("EDDY_DIFF_CONF");
	char options[512];
	char seed_text[32];
	char calls_text[32];
	int fd[2];

	memset(s, 0, sizeof *s);
	(void)snprintf(
	    seed_text, sizeof seed_text, "%llu", (unsigned long long)seed);
	(void)snprintf(calls_text, sizeof calls_text, "%lu", calls);
	if (pipe(fd) != 0)
		tap_bail("no pipe");
	s->pid = fork();
	if (s->pid < 0)
		tap_bail("no child");
	if (s->pid == 0) {
		(void)dup2(fd[1], STDOUT_FILENO);
		(void)close(fd[0]);
		(void)close(fd[1]);
		(void)setenv("LD_PRELOAD", preload, 1);
		(void)snprintf(options, sizeof options, "%s%s%s", conf,
		    more != NULL ? "," : "", more != NULL ? more : "");
		(void)setenv("MALLOC_CONF", options, 1);
		if (wrong != NULL)
			(void)setenv("DIFF_WRONG", wrong, 1);
		(void)execl(
		    driver, driver, seed_text, calls_text, (char *)NULL);
		_exit(126);
	}
	(void)close(fd[1]);
	s->f = fdopen(fd[0], "r");
	if (s->f == NULL)
		tap_bail("no stream");
}

static int
finish(struct side *s)
{
	int status = 0;

	(void)fclose(s->f);
	(void)waitpid(s->pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The next line of a call; over: there is none. */
static void
next(struct side *s)
{
	char *end;

	if (s->over || fgets(s->line, sizeof s->line, s->f) == NULL ||
	    s->line[0] < '0' || s->line[0] > '9') {
		s->over = true;
		return;
	}
	s->line[strcspn(s->line, "\n")] = '\0';
	s->step = strtoul(s->line, &end, 10);
	s->sub = strtoul(end + 1, &end, 10);
	s->key = strchr(s->line, '\t');
	s->args = s->key != NULL ? strchr(s->key + 1, '\t') : NULL;
	s->answer = s->args != NULL ? strchr(s->args + 1, '\t') : NULL;
	if (s->answer == NULL) {
		s->over = true;
		return;
	}
	*s->key++ = '\0';
	*s->args++ = '\0';
	*s->answer++ = '\0';
}

/* Of two lines, which comes first: -1, 0, 1. */
static int
order(const struct side *a, const struct side *b)
{
	if (a->over || b->over)
		return a->over - b->over;
	if (a->step != b->step)
		return a->step < b->step ? -1 : 1;
	return a->sub == b->sub ? 0 : a->sub < b->sub ? -1 : 1;
}

/* ------------------------------------------------------------------ */
/* Comparing */

struct outcome {
	unsigned long calls;
	unsigned long differences;
	unsigned long expected; /* of the key that was asked for */
	int reference_status;
	int eddy_status;
};

static void
judge(struct outcome *o, const char *want, const char *key, const char *args,
    const char *a, const char *b)
{
	if (is_allowed(key, args, a, b))
		return;
	o->differences++;
	if (want != NULL) {
		o->expected += matches(want, key);
		return;
	}
	if (o->differences <= SHOWN)
		tap_diag("%s | %s | jemalloc %s | eddy %s", key, args, a, b);
}

static void
compare(struct outcome *o, const char *want, struct side *a, struct side *b)
{
	next(a);
	next(b);
	while (!a->over || !b->over) {
		int which = order(a, b);

		/* What one has died in, the other need not do. */
		if (a->over || b->over)
			break;
		o->calls++;
		if (which < 0) {
			judge(o, want, a->key, a->args, a->answer, "no call");
			next(a);
		} else if (which > 0) {
			judge(o, want, b->key, b->args, "no call", b->answer);
			next(b);
		} else {
			if (strcmp(a->key, b->key) != 0 ||
			    strcmp(a->args, b->args) != 0)
				judge(o, want, a->key, a->args, a->answer,
				    "another call");
			else if (strcmp(a->answer, b->answer) != 0)
				judge(o, want, a->key, a->args, a->answer,
				    b->answer);
			next(a);
			next(b);
		}
	}
}

/* ------------------------------------------------------------------ */
/* How often */

static unsigned long few;
static unsigned long n_rules;
static unsigned long n_names;
static unsigned long rarest;

/* The counts at the end of a log; the line that ended it is in hand. */
static void
read_counts(struct side *s, unsigned long enough)
{
	rarest = ULONG_MAX;
	do {
		char *what = strchr(s->line, '\t');
		char *n = what != NULL ? strchr(what + 1, '\t') : NULL;
		unsigned long count;

		if (n == NULL)
			continue;
		*n++ = '\0';
		count = strtoul(n, NULL, 10);
		if (s->line[0] == 'r')
			n_rules++;
		else
			n_names++;
		if (count < rarest)
			rarest = count;
		if (s->line[0] == 'r' || getenv("EDDY_DIFF_CALLS") != NULL)
			tap_diag("%7lu %s", count, what + 1);
		if (count < enough) {
			few++;
			tap_diag("too few: %lu of %s", count, what + 1);
		}
	} while (fgets(s->line, sizeof s->line, s->f) != NULL);
}

static void
say_allowed(bool all_must_be_used)
{
	unsigned long unused = 0;

	for (size_t i = 0; i < COUNT(allowed); i++) {
		tap_diag("allowed %lu: %s: %s", allowed[i].n, allowed[i].key,
		    allowed[i].why);
		unused += allowed[i].n == 0;
	}
	tap_diag("allowed %lu: newer than the reference", n_new);
	if (all_must_be_used)
		tap_ok(unused == 0, "what is allowed does happen (%lu not)",
		    unused);
}

/* ------------------------------------------------------------------ */

/*
 * One arena of malloc on either side, so that created ones have the same
 * indices, and none for what is oversize.
 */
static const char jemalloc_conf[] = "narenas:1,oversize_threshold:0";
static const char newer_conf[] =
    "narenas:1,oversize_threshold:0,disable_large_size_classes:false";
/*
 * Large sizes in classes and caches to 32 KiB, as 5.3.0 has them; one home, so
 * that there is one arena; background threads only where they are asked for.
 */
static const char eddy_conf[] =
    "disable_large_size_classes:false,tcache_max:32768,numa:off,"
    "background_thread_auto:false";

static const char *
reference(void)
{
	const char *s = getenv("EDDY_DIFF_REFERENCE");

	return s != NULL ? s : "libjemalloc.so.2";
}

static const char *
reference_conf(void)
{
	return getenv("EDDY_DIFF_REFERENCE") != NULL ? newer_conf
						     : jemalloc_conf;
}

static struct outcome
run(const char *preload, const char *wrong, const char *want, uint64_t seed,
    unsigned long calls, bool counts)
{
	struct outcome o = {0};
	struct side a;
	struct side b;

	start(&a, reference(), reference_conf(), NULL, seed, calls);
	start(&b, preload, eddy_conf, wrong, seed, calls);
	compare(&o, want, &a, &b);
	if (counts)
		read_counts(&a, calls >= FULL_CALLS ? FEW : calls / 20000);
	/* Let go of a side that goes on alone. */
	o.reference_status = finish(&a);
	o.eddy_status = finish(&b);
	return o;
}

/* Bent answers, and the calls that show each. */
static const struct {
	const char *wrong;
	const char *key;
} bends[] = {
    {"nallocx", "nallocx"},
    {"mallocx-zero", "mallocx"},
    {"rallocx-keep", "rallocx"},
    {"xallocx", "xallocx"},
    {"realloc-errno", "realloc"},
    {"posix_memalign-out", "posix_memalign"},
    {"usable", "malloc"},
    {"part", "arenas.*"},
    {"length", "arenas.*"},
    {"permission", "arenas.*"},
    {"alias", "arena.<i>.*"},
    {"junk", "*.<i>.*"},
    {"depth", "*"},
    {"epoch", "epoch"},
    {"counts", "thread.allocated"},
};

static void
find_bends(const char *so)
{
	char preload[PATH_MAX * 2 + 2];
	char dir[PATH_MAX];
	char *slash;

	(void)snprintf(dir, sizeof dir, "%s", driver);
	slash = strrchr(dir, '/');
	if (slash != NULL)
		*slash = '\0';
	(void)snprintf(
	    preload, sizeof preload, "%s/.libs/diff_wrong.so:%s", dir, so);
	for (size_t i = 0; i < COUNT(bends); i++) {
		struct outcome o = run(preload, bends[i].wrong, bends[i].key,
		    WRONG_SEED, WRONG_CALLS, false);

		tap_ok(o.expected != 0, "bent %s shows at %s (%lu times)",
		    bends[i].wrong, bends[i].key, o.expected);
	}
	{
		struct outcome o = run(
		    preload, "nothing", NULL, WRONG_SEED, WRONG_CALLS, false);

		tap_ok(o.differences == 0 && o.eddy_status == 0,
		    "nothing bent shows nothing");
	}
}

static void
find_driver(const char *self)
{
	char *slash;

	if (realpath(self, driver) == NULL)
		tap_bail("no path of mine");
	slash = strrchr(driver, '/');
	(void)snprintf(slash + 1, sizeof driver - (size_t)(slash + 1 - driver),
	    "diff_driver");
	/* Not libtool's folder, where this program itself may be. */
	if (access(driver, X_OK) != 0)
		tap_bail("no %s", driver);
}

static bool
has_reference(void)
{
	struct side s;

	start(&s, reference(), reference_conf(), NULL, 1, 1);
	next(&s);
	return finish(&s) == 0 && !s.over;
}

int
main(int argc, char **argv)
{
	const char *so = getenv("EDDY_SO");
	const char *calls_text = getenv("EDDY_DIFF_CALLS");
	unsigned long calls =
	    calls_text != NULL ? strtoul(calls_text, NULL, 10) : SHORT_CALLS;
	const char *seed = getenv("EDDY_SEED");
	struct outcome o;

	(void)argc;
	tap.pid = getpid();
	tap.seed = seed != NULL && *seed != '\0'
		       ? strtoull(seed, NULL, 0)
		       : (uint64_t)getpid() * 2654435761u;
	tap_diag("EDDY_SEED=%llu", (unsigned long long)tap.seed);
	tap_guard((unsigned)(300 + calls / 1000));
	if (so == NULL || *so == '\0')
		tap_skip_all("EDDY_SO names no library");
#if defined(EDDY_PREFIX) || defined(EDDY_LG_QUANTUM)
	tap_skip_all("built with other names or classes than the system's");
#endif
	(void)unsetenv("LD_PRELOAD");
	find_driver(argv[0]);
	if (!has_reference())
		tap_skip_all("no jemalloc to compare with: install "
			     "libjemalloc2");
	o = run(so, NULL, NULL, tap.seed, calls, true);
	tap_ok(o.reference_status == 0, "jemalloc bears the calls (status %d)",
	    o.reference_status);
	tap_ok(
	    o.eddy_status == 0, "eddy bears them (status %d)", o.eddy_status);
	tap_ok(o.differences == 0, "%lu differences in %lu calls",
	    o.differences, o.calls);
	tap_ok(few == 0 && n_rules != 0 && n_names != 0,
	    "%lu rules, %lu names: each at least %lu times", n_rules, n_names,
	    rarest);
	say_allowed(calls >= FULL_CALLS);
	find_bends(so);
	return tap_end();
}
