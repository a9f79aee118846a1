/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * print_memory.c - what the memory of the process consists of, what went back
 * to the kernel, and with the letter r what the kernel says of it.
 */
#include "lib/ctl/print.h"
#include "lib/heap/wake.h"
#include "lib/os/os.h"
#include "numa/usable.h"

/* A number of some kind, in text and in JSON. */
struct line {
	const char *name;
	uint64_t v;
	const char *what;
};

/* The first number behind a word at the start of a line; the very first for an
 * empty word; UINT64_MAX: there is none. */
static uint64_t
number_after(const char *s, const char *word)
{
	for (;;) {
		const char *w = word;
		uint64_t v = 0;
		bool any = false;

		while (*w != '\0' && *s == *w) {
			s++;
			w++;
		}
		while (*w == '\0' && (*s == ' ' || *s == '\t'))
			s++;
		for (; *w == '\0' && *s >= '0' && *s <= '9'; s++) {
			v = v * 10 + (uint64_t)(*s - '0');
			any = true;
		}
		if (any)
			return v;
		while (*s != '\0' && *s != '\n')
			s++;
		if (*s == '\0')
			return UINT64_MAX;
		s++;
	}
}

static bool
read_text(const char *path, char *buf, size_t n)
{
	ssize_t got = eddy_os_read_file(path, buf, n - 1);

	buf[got > 0 ? got : 0] = '\0';
	return got > 0;
}

/* Bytes that the process has in memory; 0: nobody tells. */
static uint64_t
resident(void)
{
	char buf[128];
	uint64_t pages;
	const char *s = buf;

	if (!read_text("/proc/self/statm", buf, sizeof(buf)))
		return 0;
	while (*s != ' ' && *s != '\0')
		s++;
	pages = number_after(*s == ' ' ? s + 1 : s, "");
	return pages == UINT64_MAX ? 0 : pages * eddy_os_page_size();
}

/* ------------------------------------------------------------------ */

static void
put_lines(struct eddy_print *p, const struct line *l, size_t n, bool first)
{
	for (size_t i = 0; i < n; i++) {
		if (l[i].v == UINT64_MAX)
			continue;
		if (p->json) {
			eddy_print_number(
			    &p->text, first ? "" : ",", l[i].name, l[i].v);
			first = false;
			continue;
		}
		eddy_text_number(&p->text, l[i].v, 20);
		eddy_text_add(&p->text, "  ");
		eddy_text_add(&p->text, l[i].what);
		eddy_text_add(&p->text, "\n");
	}
}

/*
 * The sum of what is eddy's may be more than is resident: pages that were never
 * touched count as in use or dirty.
 */
static void
put_parts(struct eddy_print *p)
{
	const struct eddy_stats *st = &p->st;
	uint64_t rss = resident();
	uint64_t slabs = st->active > st->live + st->stranded
			     ? st->active - st->live - st->stranded
			     : 0;
	uint64_t sum = st->resident;
	const struct line lines[] = {
	    {"rss", rss, "resident memory of the process, of which"},
	    {"in_use", st->live, "the program's"},
	    {"cached", st->stranded, "cached"},
	    {"slab_free", slabs, "free objects in slabs"},
	    {"dirty", st->dirty, "free pages that decay"},
	    {"muzzy", st->muzzy, "free pages that the kernel may take"},
	    {"in_hand", st->in_hand, "pages on their way"},
	    {"metadata", st->metadata, "metadata (an estimate)"},
	    {"not_eddys", rss > sum ? rss - sum : 0,
		"not of the heap: code, stacks, mapped files"},
	    {"untouched", sum > rss ? sum - rss : 0,
		"of the above never touched, or swapped out"},
	};

	put_lines(p, lines, EDDY_N(lines), true);
}

static void
put_given_back(struct eddy_print *p)
{
	struct eddy_heap *h = p->h;
	struct eddy_wake *w = eddy_wake_peek(h);
	uint64_t steps = 0;
	uint64_t calls = 0;
	uint64_t alarms = 0;
	uint64_t threads = 0;

	for (unsigned i = 0; w != NULL && i < eddy_wake_n_parts(h); i++) {
		/* relaxed, all: counts. */
		threads += eddy_wake_runs(w, i);
		steps += eddy_load_relaxed(&w->worker[i].steps);
		calls += eddy_load_relaxed(&w->worker[i].calls);
		alarms += eddy_load_relaxed(&w->worker[i].alarms);
	}
	{
		/* relaxed, all: counts. */
		const struct line lines[] = {
		    {"purged", eddy_load_relaxed(&h->n_purged),
			"bytes given back so far"},
		    {"purges", eddy_load_relaxed(&h->n_purges),
			"calls for that"},
		    {"refused", eddy_load_relaxed(&h->n_refused),
			"of these refused"},
		    {"unlocked", eddy_load_relaxed(&h->n_unlocked),
			"chunks that the kernel would not lock"},
		    {"not_huge", eddy_load_relaxed(&h->n_not_huge),
			"chunks for which there were no huge pages"},
		    {"unadvised", eddy_load_relaxed(&h->n_unadvised),
			"chunks that are not what their arena is to be"},
		    {"background_threads", threads, "background threads"},
		    {"background_steps", steps, "steps that they did"},
		    {"background_calls", calls, "times woken by a call"},
		    {"background_alarms", alarms, "times woken by the clock"},
		};

		put_lines(p, lines, EDDY_N(lines), false);
	}
}

static void
put_frozen(struct eddy_print *p)
{
	/* relaxed, all: counts. */
	const struct line lines[] = {
	    {"frozen", eddy_load_relaxed(&p->h->frozen),
		"1: the heap is frozen"},
	    {"frozen_growth", eddy_load_relaxed(&p->h->frozen_growth),
		"times since then that memory was not there"},
	};

	if (lines[0].v != 0 || p->json)
		put_lines(p, lines, EDDY_N(lines), false);
}

/* ------------------------------------------------------------------ */
/* What the kernel says */

static uint64_t
cgroup_number(const char *v2, const char *v1, const char *word)
{
	char path[1024];
	char buf[512]; /* anon and file come first */

	if (!eddy_usable_path("", v2, v1, path, sizeof(path)) ||
	    !read_text(path, buf, sizeof(buf)))
		return UINT64_MAX;
	return number_after(buf, word);
}

static void
put_kernel(struct eddy_print *p)
{
	char buf[2048];
	uint64_t kib[4] = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
	static const char words[][16] = {
	    "Rss:", "Pss:", "AnonHugePages:", "Swap:"};

	if (read_text("/proc/self/smaps_rollup", buf, sizeof(buf)))
		for (unsigned i = 0; i < 4; i++) {
			kib[i] = number_after(buf, words[i]);
			if (kib[i] != UINT64_MAX)
				kib[i] *= 1024;
		}
	{
		const struct line lines[] = {
		    {"smaps_rss", kib[0], "smaps: resident"},
		    {"smaps_pss", kib[1], "smaps: its share of these"},
		    {"smaps_huge", kib[2], "smaps: in huge pages"},
		    {"smaps_swap", kib[3], "smaps: swapped out"},
		    {"cgroup_current",
			cgroup_number(
			    "/memory.current", "/memory.usage_in_bytes", ""),
			"cgroup: memory of all its processes"},
		    {"cgroup_anon",
			cgroup_number("/memory.stat", NULL, "anon "),
			"cgroup: of these not of files"},
		    {"cgroup_file",
			cgroup_number("/memory.stat", NULL, "file "),
			"cgroup: of these of files"},
		    {"cgroup_max",
			cgroup_number(
			    "/memory.max", "/memory.limit_in_bytes", ""),
			"cgroup: what it may have"},
		    {"cgroup_swap",
			cgroup_number("/memory.swap.current", NULL, ""),
			"cgroup: swapped out"},
		};

		put_lines(p, lines, EDDY_N(lines), false);
	}
}

void
eddy_print_memory(struct eddy_print *p)
{
	if (p->h == NULL)
		return;
	eddy_text_add(&p->text, p->json ? ",\"memory\":{" : "memory\n");
	put_parts(p);
	put_given_back(p);
	put_frozen(p);
	if (p->kernel)
		put_kernel(p);
	if (p->json)
		eddy_text_add(&p->text, "}");
}
