/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ctl_conf.c - the options as strings set them.  Every option of ctl.tab comes
 * in by ctl_gen_test.inc.  The parser alone, under any malloc.
 */
#include "tests/tap.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <sys/wait.h>

#include "lib/ctl/conf.h"

enum type { BOOL, UNSIGNED, SIZE, ENUM, STRING, LG, MS, INT, FIXED, ANY };

struct known {
	const char *name;
	enum type type;
	size_t offset;
	uint64_t min;
	uint64_t max;
	uint64_t def;
	bool clip;
	const char *values;
};

struct foreign {
	const char *name;
	enum type type;
};

#define CTL_OPT(name, type, field, min, max, def, clip, values)               \
	{#name, type, offsetof(struct eddy_opts, field), min, max, def, clip, \
	    values},
#define CTL_COMPAT(name, type)
static const struct known known[] = {
#include "tests/ctl_gen_test.inc"
};
#undef CTL_OPT
#undef CTL_COMPAT
#define CTL_OPT(name, type, field, min, max, def, clip, values)
#define CTL_COMPAT(name, type) {#name, type},
static const struct foreign foreign[] = {
#include "tests/ctl_gen_test.inc"
};

#define N(a) (sizeof(a) / sizeof(a)[0])

static struct eddy_opts opts;
static struct eddy_conf_log conf_log;

/* Parses s as the value of MALLOC_CONF; returns the number of faults. */
static unsigned
parse(const char *s)
{
	struct eddy_conf_strings strings = {.text = {NULL}};
	int ret;

	strings.text[EDDY_CONF_MALLOC_CONF] = s;
	memset(&opts, 0x5a, sizeof(opts));
	memset(&conf_log, 0x5a, sizeof(conf_log));
	ret = eddy_conf_parse(&opts, &conf_log, &strings);
	if (ret != (conf_log.n_faults == 0 ? 0 : -EINVAL))
		tap_bail("eddy_conf_parse returns %d", ret);
	return conf_log.n_faults;
}

__attribute__((format(printf, 1, 2))) static unsigned
parsef(const char *fmt, ...)
{
	char s[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(s, sizeof(s), fmt, ap);
	va_end(ap);
	return parse(s);
}

static uint64_t
get(const struct known *k)
{
	const void *p = (const char *)&opts + k->offset;

	switch (k->type) {
	case BOOL:
		return *(const bool *)p;
	case UNSIGNED:
		return *(const uint32_t *)p;
	case ENUM:
		return *(const unsigned *)p;
	case STRING:
		return strlen(p);
	default:
		return *(const size_t *)p;
	}
}

/* Whether *opts is within the table's ranges and the log is whole lines, one a
 * fault at most as long as a terminal is patient with. */
static bool
sound(void)
{
	unsigned lines = 0;
	size_t start = 0;

	for (size_t i = 0; i < N(known); i++) {
		const struct known *k = &known[i];

		if (k->type != LG && (get(k) < k->min || get(k) > k->max) &&
		    (k->type != MS || get(k) != UINT64_MAX))
			return false;
	}
	if (conf_log.len > sizeof(conf_log.text))
		return false;
	for (size_t i = 0; i < conf_log.len; i++) {
		char c = conf_log.text[i];

		if (c != '\n') {
			if (c < ' ' || c > '~')
				return false;
			continue;
		}
		if (i - start > 250 ||
		    strncmp(conf_log.text + start, "<eddy>: ", 8) != 0)
			return false;
		start = i + 1;
		lines++;
	}
	if (conf_log.n_dropped > 0)
		lines--; /* the one that counts them */
	return start == conf_log.len &&
	       lines + conf_log.n_dropped == conf_log.n_faults;
}

static bool
logged(const char *text)
{
	return memmem(conf_log.text, conf_log.len, text, strlen(text)) != NULL;
}

static void
defaults_hold(void)
{
	bool all = parse(NULL) == 0;

	for (size_t i = 0; i < N(known); i++) {
		uint64_t def = known[i].type == STRING ? strlen(known[i].values)
						       : known[i].def;

		if (known[i].type != LG && get(&known[i]) != def) {
			tap_diag("%s: %" PRIu64, known[i].name, get(&known[i]));
			all = false;
		}
	}
	tap_ok(all && sound(), "every option starts with its default");
}

static void
bool_option(const struct known *k)
{
	static const char *const bad[] = {"", "1", "0", "TRUE", "True", "tru",
	    "truee", "yes", " true", "true ", "false\t"};
	bool ok = parsef("%s:true", k->name) == 0 && get(k) == 1 &&
		  parsef("%s:false", k->name) == 0 && get(k) == 0;

	for (size_t i = 0; i < N(bad); i++)
		ok = ok && parsef("%s:%s", k->name, bad[i]) == 1 &&
		     get(k) == k->def && sound();
	tap_ok(ok, "%s: true and false, nothing else", k->name);
}

/* Sets k to v; whether exactly `want` came of it. */
static bool
number_gives(
    const struct known *k, const char *v, unsigned n_faults, uint64_t want)
{
	unsigned n = parsef("%s:%s", k->name, v);

	if (n == n_faults && get(k) == want && sound())
		return true;
	tap_diag("%s:%s: %u faults, now %" PRIu64, k->name, v, n, get(k));
	return false;
}

static void
number_option(const struct known *k)
{
	static const char *const bad[] = {"", "-", "x", "0x", "08", "1k",
	    "4096 ", " 1", "+1", "0x1g", "--1", "1.5", "true"};
	uint64_t low = k->clip ? k->min : k->def;
	uint64_t high = k->clip ? k->max : k->def;
	unsigned faults = !k->clip;
	char v[64];
	bool ok = true;

	for (uint64_t x = k->min; x <= k->max; x += (k->max - k->min + 6) / 7) {
		(void)snprintf(v, sizeof(v), "%" PRIu64, x);
		ok &= number_gives(k, v, 0, x);
		(void)snprintf(v, sizeof(v), "0x%" PRIx64, x);
		ok &= number_gives(k, v, 0, x);
		(void)snprintf(v, sizeof(v), "0%" PRIo64, x);
		ok &= number_gives(k, v, 0, x);
	}
	(void)snprintf(v, sizeof(v), "%" PRIu64, k->max);
	ok &= number_gives(k, v, 0, k->max);
	tap_ok(ok, "%s: decimal, octal, hexadecimal over its range", k->name);

	(void)snprintf(v, sizeof(v), "%" PRId64,
	    (int64_t)k->min - (k->type == MS ? 2 : 1));
	ok = number_gives(k, v, faults, low);
	if (k->type == MS) /* never */
		ok &= number_gives(k, "-1", 0, UINT64_MAX);
	(void)snprintf(v, sizeof(v), "%" PRIu64, k->max + 1);
	ok &= number_gives(k, v, faults, high);
	ok &= number_gives(k, "18446744073709551615", faults, high);
	ok &= number_gives(k, "18446744073709551616", faults, high);
	ok &= number_gives(k, "99999999999999999999999", faults, high);
	tap_ok(ok, "%s: outside its range %s", k->name,
	    k->clip ? "the nearest end" : "one line, no change");

	ok = true;
	for (size_t i = 0; i < N(bad); i++)
		ok &= number_gives(k, bad[i], 1, k->def);
	tap_ok(ok, "%s: what is no number is a fault", k->name);
}

static void
enum_option(const struct known *k)
{
	char words[128];
	char *save;
	uint64_t i = 0;
	bool ok = true;

	(void)snprintf(words, sizeof(words), "%s", k->values);
	for (char *w = strtok_r(words, " ", &save); w != NULL;
	     w = strtok_r(NULL, " ", &save), i++) {
		ok &= parsef("%s:%s", k->name, w) == 0 && get(k) == i;
		/* cut short, too long, with its neighbour */
		ok &= parsef("%s:%.*s", k->name, (int)strlen(w) - 1, w) == 1;
		ok &= get(k) == k->def && sound();
		ok &= parsef("%s:%sx", k->name, w) == 1 && get(k) == k->def;
	}
	ok &= i == k->max + 1;
	ok &= parsef("%s:%s", k->name, k->values) == 1 && get(k) == k->def;
	ok &= parsef("%s:", k->name) == 1 && get(k) == k->def;
	ok &= parsef("%s:0", k->name) == 1 && get(k) == k->def;
	tap_ok(ok, "%s: its words, nothing else", k->name);
}

static void
string_option(const struct known *k)
{
	char v[384];
	bool ok = parsef("%s:", k->name) == 0 && get(k) == 0;

	memset(v, 'a', sizeof(v));
	v[0] = '/'; /* one of them is a path */
	v[k->max] = '\0';
	ok &= parsef("%s:%s", k->name, v) == 0 && get(k) == k->max;
	ok &= strcmp((const char *)&opts + k->offset, v) == 0;
	v[k->max] = 'a';
	v[k->max + 1] = '\0';
	ok &= parsef("%s:%s", k->name, v) == 1 && sound();
	ok &= strcmp((const char *)&opts + k->offset, k->values) == 0;
	tap_ok(ok, "%s: up to its length", k->name);
}

static void
lg_option(const struct known *k)
{
	const struct known *owner = NULL;
	bool ok = true;

	for (size_t i = 0; i < N(known); i++)
		if (known[i].type == SIZE && known[i].offset == k->offset)
			owner = &known[i];
	if (owner == NULL)
		tap_bail("%s has no owner", k->name);
	for (uint64_t n = k->min; n <= k->max; n++) {
		uint64_t want = (uint64_t)1 << n;

		want = want < owner->min ? owner->min : want;
		want = want > owner->max ? owner->max : want;
		ok &= parsef("%s:%" PRIu64, k->name, n) == 0 &&
		      get(owner) == want;
	}
	ok &= parsef("%s:-1", k->name) == 1 && get(owner) == owner->def;
	ok &= parsef("%s:%" PRIu64, k->name, k->max + 1) == 1 && sound();
	tap_ok(ok, "%s: powers of two, within %s", k->name, owner->name);
}

static void
foreign_options(void)
{
	static const struct {
		const char *good[4];
		const char *bad[6];
	} of[] = {
	    [BOOL] = {{"true", "false"}, {"", "1", "maybe", "tru", "falsee"}},
	    [INT] = {{"0", "-1", "0x10", "9223372036854775807"},
		{"", "-", "x", "1k", "1.5", "99999999999999999999"}},
	    [FIXED] = {{"0.25", "-1", "1", ".5"}, {"", ".", "a", "1.2.3"}},
	    [ANY] = {{"", "x", "1-9:3|10-12:4", "\xff"}, {NULL}},
	};

	for (size_t i = 0; i < N(foreign); i++) {
		const struct foreign *f = &foreign[i];
		bool ok = true;

		for (size_t j = 0; j < 4 && of[f->type].good[j] != NULL; j++)
			ok &= parsef("%s:%s,zero:true", f->name,
				  of[f->type].good[j]) == 0 &&
			      opts.zero;
		for (size_t j = 0; j < 6 && of[f->type].bad[j] != NULL; j++)
			ok &= parsef("%s:%s,zero:true", f->name,
				  of[f->type].bad[j]) == 1 &&
			      opts.zero && sound();
		/* Its neighbours in the list are not it. */
		ok &= parsef("%sx:1", f->name) ==
		      (strncmp(f->name, "experimental_", 13) != 0);
		tap_ok(ok, "jemalloc's %s: accepted without effect", f->name);
	}
}

static void
later_places_win(void)
{
	static const char *const text[EDDY_CONF_N_SOURCES] = {
	    "tcache_max:1,lg_range:31", "tcache_max:2,lg_range:32",
	    "tcache_max:3", "tcache_max:4", "tcache_max:5", "tcache_max:6"};
	bool ok = true;

	for (unsigned from = 0; from < EDDY_CONF_N_SOURCES; from++) {
		struct eddy_conf_strings strings = {.text = {NULL}};

		for (unsigned i = 0; i <= from; i++)
			strings.text[i] = text[i];
		ok &= eddy_conf_parse(&opts, &conf_log, &strings) == 0;
		ok &= opts.tcache_max == from + 1;
		ok &= opts.lg_range == (from == 0 ? 31u : 32u);
	}
	tap_ok(ok, "a later place overrides an earlier, option by option");
	tap_ok(parse("zero:true,zero:false,tcache_max:1,tcache_max:2") == 0 &&
		   !opts.zero && opts.tcache_max == 2,
	    "in one string the later pair wins");
	tap_ok(parse("lg_tcache_max:3,tcache_max:9") == 0 &&
		   opts.tcache_max == 9 &&
		   parse("tcache_max:9,lg_tcache_max:3") == 0 &&
		   opts.tcache_max == 8,
	    "two names of one field: the later wins");
}

static void
endless_link(void)
{
	struct eddy_conf_strings strings = {.link_is_cut = true};

	strings.text[EDDY_CONF_LINK] = "zero:true,lg_range:3";
	tap_ok(eddy_conf_parse(&opts, &conf_log, &strings) == -EINVAL &&
		   sound() && conf_log.n_faults == 1 && !opts.zero &&
		   logged("<eddy>: /etc/malloc.conf: too long, not read: "),
	    "a link longer than is read sets nothing, one line");
}

static void
malformed_strings(void)
{
	static const struct {
		const char *s;
		unsigned n_faults;
		bool zero; /* whether "zero:true" in it took hold */
		const char *text;
	} cases[] = {
	    {"", 0, false, ""},
	    {",", 1, false, "no \"name:value\" here: \",\""},
	    {":", 1, false, "here: \":\""},
	    {":true", 1, false, "here"},
	    {"zero", 1, false, "here: \"zero\""},
	    {"zero:true,", 1, true, "ends with a comma: \"zero:true,\""},
	    {"zero:true,,tcache:false", 1, true, "here: \",tcache:false\""},
	    {",zero:true", 1, false, "here"},
	    {"zero:true,tcache", 1, true, "here: \"tcache\""},
	    {"zero=true", 1, false, "here"},
	    {" zero:true", 1, false, "here"},
	    {"zero :true", 1, false, "here"},
	    {"zero:true;tcache:false", 1, false,
		"zero: \"true;tcache:false\" is not true or false"},
	    {"ze-ro:true", 1, false, "here"},
	    {"nonsense:1,zero:true", 1, true, "unknown option: \"nonsense\""},
	    {"zer:true", 1, false, "unknown option: \"zer\""},
	    {"Zero:true", 1, false, "unknown option"},
	    {"lg_chunk:21,zero:true", 1, true, "unknown option: \"lg_chunk\""},
	    {"experimental_whatever:1,zero:true", 0, true, ""},
	    {"experimental:1", 1, false, "unknown"},
	    {"tcache:maybe,zero:true,lg_range:99", 2, true,
		"tcache: \"maybe\" is not true or false"},
	    {"lg_range:99,zero:true", 1, true,
		"lg_range: \"99\" is outside 30 to 46"},
	    {"zero_realloc:keep,zero:true", 1, true,
		"zero_realloc: \"keep\" is none of free alloc abort"},
	    {"control:yes,zero:true", 1, true,
		"control: \"yes\" is neither auto nor an absolute path"},
	    {"control:./here,zero:true", 1, true,
		"control: \"./here\" is neither auto nor an absolute path"},
	    {"zero:true\n<eddy>: forged", 1, false,
		"zero: \"true?<eddy>: forged\""},
	    {"background_thread:\xff\xfe,zero:true", 1, true, "\"??\""},
	    {"narenas:0", 0, false, ""},
	    {"zero:true,zero:false,narenas:1,narenas:2", 0, false, ""},
	};

	for (size_t i = 0; i < N(cases); i++) {
		unsigned n = parse(cases[i].s);

		tap_ok(n == cases[i].n_faults && opts.zero == cases[i].zero &&
			   logged(cases[i].text) && sound() &&
			   (n == 0 || logged("<eddy>: MALLOC_CONF: ")),
		    "\"%.*s\": %u faults, each told",
		    (int)strcspn(cases[i].s, "\n\xff"), cases[i].s,
		    cases[i].n_faults);
	}
}

static void
long_strings(void)
{
	static char s[200000];
	size_t n = 0;

	memset(s, 'a', sizeof(s) - 1);
	tap_ok(parse(s) == 1 && sound() && conf_log.len < 120,
	    "one endless name is one short line");

	while (n + 40 < sizeof(s))
		n += (size_t)sprintf(s + n, "tcache:maybe,");
	(void)sprintf(s + n, "zero:true");
	tap_ok(parse(s) == n / 13 && sound() && opts.zero &&
		   conf_log.n_dropped > 15000 && logged("<eddy>: and 15") &&
		   logged(" more lines about options\n"),
	    "thousands of faults fill the log, are counted, and the rest "
	    "holds");
}

static void
confirmation(void)
{
	tap_ok(parse("tcache:false,confirm_conf:true") == 0 &&
		   logged("<eddy>: MALLOC_CONF: options "
			  "\"tcache:false,confirm_conf:true\"\n") &&
		   logged("<eddy>: MALLOC_CONF: tcache set to \"false\"\n"),
	    "confirm_conf tells places and settings, also those before it");
	tap_ok(
	    parse("tcache:false,confirm_conf:true,confirm_conf:false") == 0 &&
		conf_log.len == 0,
	    "confirm_conf can be taken back");
	tap_ok(parse("abort_conf:true,x:1") == 1 && conf_log.abort_conf &&
		   parse("x:1") == 1 && !conf_log.abort_conf,
	    "abort_conf reaches the log");
}

/* In a process of its own, before libc would have told of the environment. */
static int
early_child(void)
{
	char link[EDDY_CONF_LINK_MAX];

	environ = NULL;
	return eddy_conf_load(&opts, &conf_log, link) == -EINVAL &&
		       conf_log.n_faults == 1 && sound() &&
		       opts.lg_range == 31 &&
		       logged("<eddy>: MALLOC_CONF: tcache: \"maybe\" is not")
		   ? 0
		   : 1;
}

static void
early_environment(void)
{
	static char filler[70000] = "FILLER=";
	char *argv[] = {(char[]){"ctl_conf"}, (char[]){"early"}, NULL};
	char *env[] = {(char[]){"XMALLOC_CONF=a"}, filler,
	    (char[]){"MALLOC_CONF=tcache:maybe"},
	    (char[]){"EDDY_CONF=lg_range:31"},
	    (char[]){"EDDY_CONF=lg_range:32"}, NULL};
	int status = -1;
	pid_t pid;

	memset(filler + 7, 'x', sizeof(filler) - 8);
	pid = fork();
	if (pid == 0) {
		(void)execve("/proc/self/exe", argv, env);
		_exit(126);
	}
	(void)waitpid(pid, &status, 0);
	tap_ok(status == 0, "before environ is set, /proc/self/environ serves");
}

static char printed[8192];

static void
collect(void *arg, const char *line)
{
	strncat(arg, line, sizeof(printed) - strlen(arg) - 1);
}

static void
print_round_trip(void)
{
	char again[8192] = "";
	struct eddy_opts before;
	size_t n_lines = 0;

	if (parse("abort:true,check:true,cpu_cache_bytes:65536,junk:alloc,"
		  "disable_large_size_classes:false,lg_range:30,rseq:false,"
		  "stats_print:true,stats_print_opts:Jx,tcache:false,"
		  "tcache_max:777,xmalloc:true,zero:true,"
		  "zero_realloc:abort") != 0)
		tap_bail("cannot set");
	before = opts;
	printed[0] = '\0';
	eddy_conf_print(&opts, collect, printed);
	for (char *save, *line = strtok_r(printed, "\n", &save); line != NULL;
	     line = strtok_r(NULL, "\n", &save), n_lines++) {
		char name[64];
		char value[64] = "";

		if (sscanf(line, "  opt.%63[a-z_0-9]: %63s", name, value) < 1)
			tap_bail("printed \"%s\"", line);
		(void)sprintf(again + strlen(again), "%s%s:%s",
		    n_lines > 0 ? "," : "", name, value);
	}
	tap_ok(parse(again) == 0 && n_lines == N(known) - 1,
	    "every option is printed, so that it can be read again");
	for (size_t i = 0; i < N(known); i++) {
		uint64_t now = get(&known[i]);
		struct eddy_opts kept = opts;

		opts = before;
		if (get(&known[i]) != now)
			tap_ok(false, "%s survives", known[i].name);
		opts = kept;
	}
}

/* Strings of pieces that are nearly right, and of noise. */
static void
fuzz(uint64_t seed)
{
	static const char noise[] = "abtz019:,,::_- .\n\t\x80\xff\"%";
	uint64_t rng = seed;
	unsigned n_bad = 0;

	for (unsigned round = 0; round < 30000 && n_bad == 0; round++) {
		char s[400];
		size_t n = 0;

		while (n < 300 && tap_random(&rng) % 12 != 0) {
			const struct known *k =
			    &known[tap_random(&rng) % N(known)];
			const char *f =
			    foreign[tap_random(&rng) % N(foreign)].name;

			switch (tap_random(&rng) % 6) {
			case 0:
				n += (size_t)sprintf(s + n, "%s:", k->name);
				break;
			case 1:
				n += (size_t)sprintf(s + n, "%s:%s", f,
				    tap_random(&rng) % 2 ? "true," : "7,");
				break;
			case 2:
				n += (size_t)sprintf(s + n, "%" PRIu64 ",",
				    tap_random(&rng) >>
					(tap_random(&rng) % 64));
				break;
			case 3:
				n += (size_t)sprintf(s + n, "%s,",
				    tap_random(&rng) % 2 ? "true" : "false");
				break;
			default:
				s[n++] = noise[tap_random(&rng) %
					       (sizeof(noise) - 1)];
				break;
			}
		}
		s[n] = '\0';
		(void)parse(s);
		if (strstr(s, "confirm_conf") == NULL && !sound()) {
			tap_diag("round %u: \"%s\"", round, s);
			n_bad++;
		}
	}
	tap_ok(n_bad == 0,
	    "30000 odd strings leave the options in range, the log whole");
}

int
main(int argc, char **argv)
{
	const char *seed = getenv("EDDY_SEED");

	if (argc > 1 && strcmp(argv[1], "early") == 0)
		return early_child();
	tap.pid = getpid();
	tap.seed = (uint64_t)getpid();
	if (seed != NULL && *seed != '\0')
		tap.seed = strtoull(seed, NULL, 0);
	tap_diag("EDDY_SEED=%llu", (unsigned long long)tap.seed);
	tap_guard(60);

	defaults_hold();
	for (size_t i = 0; i < N(known); i++) {
		switch (known[i].type) {
		case BOOL:
			bool_option(&known[i]);
			break;
		case ENUM:
			enum_option(&known[i]);
			break;
		case STRING:
			string_option(&known[i]);
			break;
		case LG:
			lg_option(&known[i]);
			break;
		default:
			number_option(&known[i]);
			break;
		}
	}
	foreign_options();
	later_places_win();
	endless_link();
	malformed_strings();
	long_strings();
	confirmation();
	early_environment();
	print_round_trip();
	fuzz(tap.seed);
	return tap_end();
}
