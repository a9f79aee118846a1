/* SPDX-License-Identifier: BSD-2-Clause */
/* cmd_memory.c - stats, why, purge, verify-return: where memory is, and whether
 * it goes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/eddyctl.h"

/* Has the page brought up to date, if somebody is there to do it. */
static int
refresh(struct target *t, bool *fresh)
{
	char *text;
	int err;
	int status;

	*fresh = false;
	if (is_stopped(t)) {
		remark("%s is stopped: figures are as of %.1f s before now",
		    t->comm, (double)t->figures.age_ms / 1000);
		return DONE;
	}
	status = ask(t, "hello", &text, &err);
	if (status == LATE) {
		remark("figures are as of %.1f s before now",
		    (double)t->figures.age_ms / 1000);
		return DONE;
	}
	if (status != DONE)
		return status;
	free(text);
	*fresh = true;
	if (read_figures(t))
		return DONE;
	complain("%s is gone", t->comm);
	return NOBODY;
}

static uint64_t
minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* What a process without a channel still tells. */
static int
show_mappings(const struct target *t)
{
	struct smaps s;

	if (!read_smaps(t, &s)) {
		complain("%d: smaps: %s", (int)t->pid, strerror(errno));
		return NOBODY;
	}
	if (settings.json) {
		json_t *all = json_object();

		add_number(all, "pid", (uint64_t)t->pid);
		add_number(all, "rss", s.rss);
		add_number(all, "swap", s.swap);
		add_number(all, "huge", s.huge);
		add_number(all, "objects", s.objects);
		add_number(all, "caches", s.caches);
		add_number(all, "metadata", s.metadata);
		add_number(all, "brk", s.heap);
		add_number(all, "files", s.files);
		add_number(all, "other", s.other + s.stacks);
		(void)put_json(all);
	} else {
		(void)printf("%d (", (int)t->pid);
		put_clean(stdout, t->comm);
		(void)printf(
		    "), as its mappings tell\n"
		    "%12s  resident\n%12s  eddy's objects\n%12s  eddy's "
		    "caches\n%12s  eddy's metadata\n%12s  brk: another "
		    "allocator's\n%12s  files: code and data\n",
		    human(s.rss), human(s.objects), human(s.caches),
		    human(s.metadata), human(s.heap), human(s.files));
		(void)printf("%12s  other\n%12s  swapped out\n",
		    human(s.other + s.stacks), human(s.swap));
		if (!s.named)
			(void)printf("no mapping has eddy's name: it is not "
				     "there, or the kernel has no such "
				     "names\n");
	}
	say_no_channel(t);
	return SILENT;
}

/* ------------------------------------------------------------------ */
/* stats */

/* All that the library says itself. */
static int
print_full(struct target *t)
{
	char *text;
	int err;
	int status = ask(t, settings.json ? "print J" : "print", &text, &err);

	if (status == REFUSED)
		complain("%s", why_refused(err));
	if (status != DONE)
		return status;
	if (settings.json)
		(void)fputs(text, stdout);
	else
		put_clean(stdout, text);
	free(text);
	return DONE;
}

static const struct {
	const char *name;
	const char *words;
} lines[] = {
    {"live", "the program's"},
    {"stranded", "cached by CPUs, or on its way between them"},
    {"active", "pages in use for both"},
    {"dirty", "free pages that decay"},
    {"muzzy", "free pages that the kernel may take"},
    {"metadata", "metadata (an estimate)"},
    {"resident", "of eddy's that may be in memory"},
    {"mapped", "accessible addresses"},
    {"purged", "given back so far"},
};

static json_t *
json_of_figures(const struct target *t, const struct smaps *s)
{
	json_t *all = json_object();

	if (t->pid != 0)
		add_number(all, "pid", (uint64_t)t->pid);
	(void)json_object_set_new(all, "command", json_string(t->comm));
	(void)json_object_set_new(all, "version", json_string(t->version));
	add_number(all, "age_ms", t->figures.age_ms);
	(void)json_object_set_new(all, "stopped", json_boolean(is_stopped(t)));
	add_number(all, "rss", s->rss);
	add_number(all, "swap", s->swap);
	for (unsigned i = 0; i < t->figures.n; i++)
		if (strcmp(t->figures.name[i], "time") != 0)
			add_number(
			    all, t->figures.name[i], t->figures.value[i]);
	return all;
}

int
cmd_stats(int argc, char **argv)
{
	struct target t;
	struct smaps s = {0};
	bool fresh;
	int status;

	if (argc != 2)
		return misused("stats");
	status = find_target(argv[1], &t);
	if (status != DONE)
		return status;
	if (settings.full || t.path != NULL) {
		if (t.path == NULL && !t.has_page) {
			say_no_channel(&t);
			return SILENT;
		}
		return print_full(&t);
	}
	if (!t.has_page)
		return show_mappings(&t);
	status = refresh(&t, &fresh);
	if (status != DONE)
		return status;
	(void)read_rollup(t.pid, &s);
	if (settings.json)
		return put_json(json_of_figures(&t, &s)) ? DONE : REFUSED;
	(void)printf("%d (", (int)t.pid);
	put_clean(stdout, t.comm);
	(void)printf("), eddy %s%s\n%12s  resident, by the kernel\n", t.version,
	    is_stopped(&t) ? ", stopped" : "", human(s.rss));
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		(void)printf("%12s  %s\n", human(figure(&t, lines[i].name)),
		    lines[i].words);
	if (s.swap != 0)
		(void)printf("%12s  swapped out\n", human(s.swap));
	(void)printf("%12ju  CPUs with caches\n%12ju  homes\n%12ju  arenas\n"
		     "%12ju  background threads\n",
	    (uintmax_t)figure(&t, "cpus"), (uintmax_t)figure(&t, "homes"),
	    (uintmax_t)figure(&t, "arenas"),
	    (uintmax_t)figure(&t, "background_threads"));
	if (figure(&t, "frozen") != 0)
		(void)printf("%12s  frozen; %ju times memory was not there\n",
		    "", (uintmax_t)figure(&t, "frozen_growth"));
	return DONE;
}

/* ------------------------------------------------------------------ */
/* why */

/* What resident memory is made of. */
struct parts {
	uint64_t rss;
	uint64_t live;
	uint64_t cached; /* by CPUs of their own home */
	uint64_t parked; /* of other homes, in rings, in cells */
	uint64_t slabs;  /* free places beside live ones */
	uint64_t dirty;
	uint64_t muzzy;
	uint64_t metadata;
	uint64_t refilled;  /* given back, and in memory all the same */
	uint64_t foreign;   /* not eddy's */
	uint64_t untouched; /* of eddy's, not in memory */
	bool exact;         /* what is not eddy's */
};

static void
find_parts(const struct target *t, const struct smaps *s, struct parts *p)
{
	uint64_t active = figure(t, "active");
	uint64_t stranded = figure(t, "stranded");
	uint64_t ours = s->objects + s->caches + s->metadata;
	uint64_t sum;

	*p = (struct parts){.rss = s->rss, .live = figure(t, "live")};
	p->cached = figure(t, "row_bytes");
	p->parked = minus(stranded, p->cached);
	p->slabs = minus(active, p->live + stranded);
	p->dirty = figure(t, "dirty");
	p->muzzy = figure(t, "muzzy");
	p->metadata = figure(t, "metadata");
	p->exact = s->named || s->placed;
	sum = p->live + p->cached + p->parked + p->slabs + p->dirty + p->muzzy +
	      p->metadata;
	p->foreign = p->exact ? minus(s->rss, ours) : minus(s->rss, sum);
	p->untouched = minus(sum, minus(s->rss, p->foreign));
	p->refilled = minus(minus(s->rss, p->foreign), sum);
}

/* Collects advice; each is printed with the option that it names. */
struct advice {
	json_t *all;
};

__attribute__((format(printf, 3, 4))) static void
advise(struct advice *a, const char *option, const char *fmt, ...)
{
	char line[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	(void)json_array_append_new(
	    a->all, json_pack("{s:s,s:s}", "option", option, "words", line));
}

/* A tenth of what is resident, and more than some MiB. */
static bool
is_much(uint64_t v, uint64_t rss)
{
	return v > rss / 10 && v > (uint64_t)4 << 20;
}

static void
advise_all(const struct target *t, const struct smaps *s, const struct parts *p,
    const struct cgroup *c, struct advice *a)
{
	if (figure(t, "frozen") != 0)
		advise(
		    a, "eddyctl thaw", "the heap is frozen: nothing goes back");
	if (is_much(p->dirty, p->rss))
		advise(a, "dirty_decay_ms",
		    "%s are free and wait for their time: a smaller "
		    "dirty_decay_ms gives them back sooner%s",
		    human(p->dirty),
		    figure(t, "background_threads") == 0
			? "; and there is no background thread to do it "
			  "(background_thread:true)"
			: "");
	if (is_much(p->muzzy, p->rss))
		advise(a, "muzzy_decay_ms",
		    "%s are the kernel's to take, which counts them until it "
		    "does: muzzy_decay_ms:0 gives them back at once",
		    human(p->muzzy));
	if (is_much(p->cached, p->rss))
		advise(a, "cpu_cache_bytes",
		    "%s lie in the caches of %ju CPUs: a smaller "
		    "cpu_cache_bytes holds less, idle_purge_ms empties idle "
		    "ones sooner",
		    human(p->cached), (uintmax_t)figure(t, "cpus"));
	if (is_much(p->parked, p->rss))
		advise(a, "home",
		    "%s are on their way between CPUs: eddyctl bleed says "
		    "from where to where",
		    human(p->parked));
	if (is_much(p->slabs, p->rss))
		advise(a, "eddyctl stats --full",
		    "%s are free places beside live objects: no option "
		    "helps; see which size classes are sparse",
		    human(p->slabs));
	if (is_much(p->refilled, p->rss))
		advise(a, "thp",
		    "%s were given back and are in memory all the same: huge "
		    "pages that the kernel filled again, which thp:never "
		    "forbids, or memory that it did not take",
		    human(p->refilled));
	if (is_much(p->foreign, p->rss))
		advise(a, "smaps",
		    "%s are not eddy's: code, stacks, mapped files%s",
		    human(p->foreign),
		    is_much(s->heap, p->rss)
			? ", and brk, which is another allocator's"
			: "");
	if (figure(t, "refused") != 0)
		advise(a, "lock_memory",
		    "the kernel has refused %ju of %ju times to take memory "
		    "back: is it locked (mlockall)?",
		    (uintmax_t)figure(t, "refused"),
		    (uintmax_t)figure(t, "purges"));
	if (is_much(s->huge, p->rss) &&
	    is_much(p->untouched, p->rss) == false &&
	    is_much(p->slabs + p->dirty, p->rss))
		advise(a, "thp",
		    "%s are in huge pages: thp:never lets parts of them go",
		    human(s->huge));
	if (c->known && c->max != UINT64_MAX && c->current > c->max / 10 * 9)
		advise(a, "heap_limit_share",
		    "the cgroup has %s of %s: heap_limit_share keeps the heap "
		    "below it",
		    human(c->current), human(c->max));
	if (json_array_size(a->all) == 0)
		advise(a, "", "it is what the program holds: %s of %s",
		    human(p->live), human(p->rss));
}

static const struct {
	const char *key;
	size_t offset;
	const char *words;
} part_lines[] = {
    {"live", offsetof(struct parts, live), "live: the program's"},
    {"cached", offsetof(struct parts, cached), "cached by CPUs"},
    {"stranded", offsetof(struct parts, parked),
	"stranded: on its way between CPUs"},
    {"slab_free", offsetof(struct parts, slabs),
	"free places beside live objects"},
    {"dirty", offsetof(struct parts, dirty), "dirty: free pages that decay"},
    {"muzzy", offsetof(struct parts, muzzy),
	"muzzy: free pages that the kernel may take"},
    {"metadata", offsetof(struct parts, metadata), "metadata (an estimate)"},
    {"refilled", offsetof(struct parts, refilled),
	"free and given back, in memory all the same"},
    {"not_eddys", offsetof(struct parts, foreign), "not eddy's"},
    {"untouched", offsetof(struct parts, untouched),
	"of these never touched, or swapped out"},
};

static uint64_t
part(const struct parts *p, size_t i)
{
	return *(const uint64_t *)((const char *)p + part_lines[i].offset);
}

static void
show_why(const struct target *t, const struct smaps *s, const struct parts *p,
    const struct cgroup *c, const struct advice *a)
{
	size_t n = json_array_size(a->all);

	(void)printf("%d (", (int)t->pid);
	put_clean(stdout, t->comm);
	(void)printf("): %s resident, of which\n", human(p->rss));
	for (size_t i = 0; i < sizeof(part_lines) / sizeof(part_lines[0]); i++)
		(void)printf("%12s %3.0f%%  %s\n", human(part(p, i)),
		    p->rss != 0 ? 100.0 * (double)part(p, i) / (double)p->rss
				: 0.0,
		    part_lines[i].words);
	(void)printf("smaps: %s anonymous, %s in huge pages, %s swapped out, "
		     "%u mappings\n",
	    human(s->anonymous), human(s->huge), human(s->swap), s->mappings);
	if (p->exact)
		(void)printf("of eddy's mappings %s objects, %s caches and "
			     "metadata are resident\n",
		    human(s->objects), human(s->caches + s->metadata));
	if (c->known) {
		(void)printf("cgroup %s: %s, of that %s anonymous", c->path,
		    human(c->current), human(c->anon));
		if (c->max != UINT64_MAX)
			(void)printf("; may have %s", human(c->max));
		(void)printf("\n");
	}
	for (size_t i = 0; i < n; i++) {
		json_t *one = json_array_get(a->all, i);

		(void)printf("%s %s\n", i == 0 ? "->" : "  ",
		    json_string_value(json_object_get(one, "words")));
	}
}

static int
json_why(const struct target *t, const struct smaps *s, const struct parts *p,
    const struct cgroup *c, const struct advice *a)
{
	json_t *all = json_object();
	json_t *parts = json_object();
	json_t *maps = json_object();

	add_number(all, "pid", (uint64_t)t->pid);
	add_number(all, "rss", p->rss);
	for (size_t i = 0; i < sizeof(part_lines) / sizeof(part_lines[0]); i++)
		add_number(parts, part_lines[i].key, part(p, i));
	(void)json_object_set_new(all, "parts", parts);
	add_number(maps, "pss", s->pss);
	add_number(maps, "anonymous", s->anonymous);
	add_number(maps, "huge", s->huge);
	add_number(maps, "swap", s->swap);
	add_number(maps, "mappings", s->mappings);
	if (p->exact) {
		add_number(maps, "objects", s->objects);
		add_number(maps, "caches", s->caches);
		add_number(maps, "metadata", s->metadata);
	}
	(void)json_object_set_new(all, "smaps", maps);
	if (c->known) {
		json_t *group = json_pack("{s:s}", "path", c->path);

		add_number(group, "current", c->current);
		add_number(group, "anon", c->anon);
		add_number(group, "file", c->file);
		add_number(group, "swap", c->swap);
		if (c->max != UINT64_MAX)
			add_number(group, "max", c->max);
		(void)json_object_set_new(all, "cgroup", group);
	}
	(void)json_object_set(all, "advice", a->all);
	return put_json(all) ? DONE : REFUSED;
}

int
cmd_why(int argc, char **argv)
{
	struct advice a;
	struct target t;
	struct smaps s;
	struct parts p;
	struct cgroup c;
	bool fresh;
	int status;

	if (argc != 2)
		return misused("why");
	status = find_target(argv[1], &t);
	if (status != DONE)
		return status;
	if (t.path != NULL) {
		complain("why needs the process id, to ask the kernel too");
		return USAGE;
	}
	if (!t.has_page)
		return show_mappings(&t);
	status = refresh(&t, &fresh);
	if (status != DONE)
		return status;
	if (!read_smaps(&t, &s)) {
		complain("%d: smaps: %s", (int)t.pid, strerror(errno));
		return NOBODY;
	}
	read_cgroup(t.pid, &c);
	find_parts(&t, &s, &p);
	a.all = json_array();
	advise_all(&t, &s, &p, &c, &a);
	status = DONE;
	if (settings.json)
		status = json_why(&t, &s, &p, &c, &a);
	else
		show_why(&t, &s, &p, &c, &a);
	json_decref(a.all);
	return status;
}

/* ------------------------------------------------------------------ */
/* Giving back */

static int
purge(struct target *t, uint64_t *bytes)
{
	char *text;
	int err;
	int status;

	/* The kernel takes its time with many GiB. */
	if (!settings.wait_given)
		settings.wait_ms = 60000;
	status = ask(t, "purge", &text, &err);

	if (status == REFUSED)
		complain("%s", why_refused(err));
	if (status != DONE)
		return status;
	*bytes = strtoull(text, NULL, 10);
	free(text);
	return DONE;
}

int
cmd_purge(int argc, char **argv)
{
	struct target t;
	uint64_t bytes = 0;
	int status;

	if (argc != 2)
		return misused("purge");
	status = find_channel(argv[1], &t);
	if (status == DONE)
		status = purge(&t, &bytes);
	if (status != DONE)
		return status;
	if (!settings.json) {
		(void)printf("%s given back\n", human(bytes));
		return DONE;
	}
	return put_json(json_pack("{s:I}", "purged", (json_int_t)bytes))
		   ? DONE
		   : REFUSED;
}

struct look {
	struct smaps s;
	struct cgroup c;
};

static void
look(pid_t pid, struct look *l)
{
	(void)read_rollup(pid, &l->s);
	read_cgroup(pid, &l->c);
}

static void
show_pair(json_t *all, const char *key, uint64_t before, uint64_t after)
{
	json_t *one = json_object();

	add_number(one, "before", before);
	add_number(one, "after", after);
	(void)json_object_set_new(all, key, one);
	if (!settings.json)
		(void)printf("%-24s %12s %12s %c%s\n", key, human(before),
		    human(after), after > before ? '+' : '-',
		    human(after > before ? after - before : before - after));
}

int
cmd_verify_return(int argc, char **argv)
{
	const struct timespec pause = {.tv_nsec = 200000000};
	struct target t;
	struct look before;
	struct look after;
	json_t *all;
	uint64_t bytes = 0;
	uint64_t went;
	bool held;
	int status;

	if (argc != 2)
		return misused("verify-return");
	status = find_channel(argv[1], &t);
	if (status != DONE)
		return status;
	if (t.path != NULL) {
		complain("verify-return needs the process id, to ask the "
			 "kernel too");
		return USAGE;
	}
	look(t.pid, &before);
	status = purge(&t, &bytes);
	if (status != DONE)
		return status;
	/* The kernel counts in batches. */
	(void)nanosleep(&pause, NULL);
	look(t.pid, &after);
	went = minus(before.s.rss, after.s.rss) +
	       minus(before.s.swap, after.s.swap);
	/* What was never touched counts as given back, too. */
	held = went >= bytes / 2 || bytes < (uint64_t)1 << 20;
	all = json_object();
	add_number(all, "purged", bytes);
	if (!settings.json)
		(void)printf("%s given back, eddy says\n%-24s %12s %12s\n",
		    human(bytes), "", "before", "after");
	show_pair(all, "smaps rss", before.s.rss, after.s.rss);
	show_pair(all, "smaps swap", before.s.swap, after.s.swap);
	if (before.c.known && after.c.known) {
		show_pair(
		    all, "memory.current", before.c.current, after.c.current);
		show_pair(all, "memory.stat anon", before.c.anon, after.c.anon);
		show_pair(
		    all, "memory.swap.current", before.c.swap, after.c.swap);
	}
	(void)json_object_set_new(all, "held", json_boolean(held));
	if (settings.json)
		(void)put_json(all);
	else
		json_decref(all);
	if (held)
		return DONE;
	complain("less than half of it is gone: the program has taken memory "
		 "meanwhile, had not touched what was free, or the kernel "
		 "keeps it (locked, huge pages)");
	return REFUSED;
}
