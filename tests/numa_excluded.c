/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * numa_excluded.c - CPUs that are left alone, by option and by the kernel's
 * lists; and lists of CPUs in options.
 */
#include "tests/numa_tree.h"

#include <pthread.h>

#include "numa/excluded.h"

#define CPU "sys/devices/system/cpu/"

/* The numbers that a set has, as text: "0 1 7". */
static void
as_text(const uint64_t *set, char *buf, size_t n)
{
	size_t len = 0;

	buf[0] = '\0';
	for (unsigned c = 0; c < EDDY_MAX_CPUS && len + 8 < n; c++)
		if ((set[c / 64] >> c % 64 & 1) != 0)
			len += (size_t)snprintf(
			    buf + len, n - len, "%s%u", len > 0 ? " " : "", c);
}

static void
test_lists(void)
{
	static const struct {
		const char *text;
		const char *want; /* NULL: refused */
	} lists[] = {
	    {"0", "0"},
	    {"7", "7"},
	    {"0-3", "0 1 2 3"},
	    {"0-3|8", "0 1 2 3 8"},
	    {"8|0-3", "0 1 2 3 8"},
	    {"63|64|127-128", "63 64 127 128"},
	    {"8191", "8191"},
	    {"5-5", "5"},
	    {"1|1|1", "1"},
	    {"007", "7"},
	    {"", NULL},
	    {"|", NULL},
	    {"1|", NULL},
	    {"|1", NULL},
	    {"1||2", NULL},
	    {"3-1", NULL},
	    {"-1", NULL},
	    {"1-", NULL},
	    {"1-2-3", NULL},
	    {"8192", NULL},
	    {"0-8192", NULL},
	    {"99999999999999999999", NULL},
	    {"1,2", NULL},
	    {" 1", NULL},
	    {"1 ", NULL},
	    {"0x1", NULL},
	    {"none", NULL},
	    {"all", NULL},
	};

	for (unsigned i = 0; i < N(lists); i++) {
		uint64_t set[EDDY_CPU_WORDS] = {0};
		char have[256];
		int err = eddy_cpu_list_read(set, lists[i].text);
		int form = eddy_cpu_list_read(NULL, lists[i].text);

		as_text(set, have, sizeof have);
		if (lists[i].want != NULL)
			tap_ok(err == 0 && form == 0 &&
				   strcmp(have, lists[i].want) == 0,
			    "\"%s\" is a list", lists[i].text);
		else
			tap_ok(err == -EINVAL && form == -EINVAL &&
				   have[0] == '\0',
			    "\"%s\" is none, and adds nothing", lists[i].text);
	}
	tap_ok(eddy_excluded_check("") == 0 &&
		   eddy_excluded_check("none") == 0 &&
		   eddy_excluded_check("1-2|9") == 0,
	    "exclude_cpus may be empty, none, or a list");
	tap_ok(eddy_excluded_check("non") == -EINVAL &&
		   eddy_excluded_check("nonee") == -EINVAL &&
		   eddy_excluded_check("1-2|none") == -EINVAL,
	    "and nothing else");
}

static void
excluded(const char *text, char *buf, size_t n)
{
	static struct eddy_excluded e;
	uint64_t set[EDDY_CPU_WORDS] = {0};

	memset(&e, 0, sizeof e);
	for (unsigned c = 0; c < EDDY_MAX_CPUS + 70; c++)
		if (eddy_excluded_has(&e, text, tree_dir, c))
			set[c / 64 % EDDY_CPU_WORDS] |= (uint64_t)1 << c % 64;
	as_text(set, buf, n);
}

static void
test_files(void)
{
	static const struct {
		const char *name;
		const char *isolated;
		const char *nohz;
		const char *text;
		const char *want;
	} roots[] = {
	    {"no files", NULL, NULL, "", ""},
	    {"empty files", "\n", "\n", "", ""},
	    {"a kernel that prints its pointer", "\n", "  (null)\n", "", ""},
	    {"isolated", "2-3\n", "\n", "", "2 3"},
	    {"nohz_full", "\n", "5,7\n", "", "5 7"},
	    {"both", "2-3,6\n", "3-4\n", "", "2 3 4 6"},
	    {"no newline", "2-3", NULL, "", "2 3"},
	    {"what is understood counts", "1,2,x,4\n", NULL, "", "1 2"},
	    {"what no kernel has does not", "8190-8191,9000\n", NULL, "",
		"8190 8191"},
	    {"the option goes before the files", "2-3\n", "4\n", "8|10-11",
		"8 10 11"},
	    {"none goes before the files", "2-3\n", "4\n", "none", ""},
	};
	char have[256];
	char text[4096];
	size_t n = 0;
	unsigned bad = 0;
	static struct eddy_excluded e;

	for (unsigned i = 0; i < N(roots); i++) {
		tree_reset();
		if (roots[i].isolated != NULL)
			tree_put(CPU "isolated", roots[i].isolated,
			    strlen(roots[i].isolated));
		if (roots[i].nohz != NULL)
			tree_put(CPU "nohz_full", roots[i].nohz,
			    strlen(roots[i].nohz));
		excluded(roots[i].text, have, sizeof have);
		if (!tap_ok(
			strcmp(have, roots[i].want) == 0, "%s", roots[i].name))
			tap_diag("\"%s\", not \"%s\"", have, roots[i].want);
	}
	/* Many pieces, cut in the midst of numbers and ranges. */
	for (unsigned c = 1; c < 900; c += 2)
		n += (size_t)snprintf(
		    text + n, sizeof text - n, "%s%u", c > 1 ? "," : "", c);
	tree_reset();
	tree_put(CPU "isolated", text, n);
	memset(&e, 0, sizeof e);
	for (unsigned c = 0; c < 1000; c++)
		bad += eddy_excluded_has(&e, "", tree_dir, c) !=
		       (c < 900 && c % 2 == 1);
	tap_ok(bad == 0, "a list of 450 CPUs");
}

static struct eddy_excluded shared;
static pthread_barrier_t barrier;

static void *
ask(void *arg)
{
	unsigned *bad = arg;

	(void)pthread_barrier_wait(&barrier);
	for (unsigned c = 0; c < 300; c++)
		*bad += eddy_excluded_has(&shared, "", tree_dir, c) !=
			(c >= 64 && c < 200);
	return NULL;
}

static void
test_together(void)
{
	enum { THREADS = 4, ROUNDS = 200 };
	unsigned bad[THREADS] = {0};
	pthread_t t[THREADS];

	tree_reset();
	tree_put(CPU "isolated", "64-199\n", 7);
	for (unsigned k = 0; k < ROUNDS; k++) {
		memset(&shared, 0, sizeof shared);
		(void)pthread_barrier_init(&barrier, NULL, THREADS);
		for (unsigned i = 0; i < THREADS; i++)
			if (pthread_create(&t[i], NULL, ask, &bad[i]) != 0)
				tap_bail("no thread");
		for (unsigned i = 0; i < THREADS; i++)
			(void)pthread_join(t[i], NULL);
	}
	tap_ok(bad[0] + bad[1] + bad[2] + bad[3] == 0,
	    "threads that ask first at the same time all know");
}

int
main(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	numa_begin(60);
	tree_begin();
	test_lists();
	test_files();
	test_together();
	tree_end();
	return tap_end();
}
