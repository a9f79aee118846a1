/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * flow.c - one side allocates, the other frees: memory stays bounded.
 *
 *	flow [PATTERN]		without one: all of them, two at a time
 *
 * EDDY_TIME is the time of each pattern.  Ten times a second the main thread
 * reads the statistics while the pattern's threads work.  It asserts
 *   - stranded bytes never exceed the bound that the library states;
 *   - resident memory never exceeds what the program held at its height (each
 *     home's at its own time), the stranded bytes, and a slack for holes,
 *     stacks and metadata;
 *   - from the middle of the time to its end nothing grows but by what the
 *     program holds more: what one side frees the other uses again;
 *   - when all is freed, the library counts as live what it did before.
 * Free pages are not given to the kernel by themselves, so it is the height
 * and not the present that resident memory is compared with.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "flow.h"
#include "gauge.h"
#include "rig.h"

enum {
	DEFAULT_S = 20,
	LOOKS_A_PHASE = 10,
	SHORT_PHASES = 8, /* of a run that is too short for seconds */
	N_JOBS = 2,
	MAX_JOBS = 4,
	LEAST_BLOCKS = 10000,
	STRETCH_S = 60,
	LEAK_BYTES = 8192,       /* what libc keeps for its cached stacks */
	FIXED_SLACK = 12 << 20,  /* metadata, stacks, chunks of many classes,
				    what was stranded between looks */
	GROWTH_BYTES = 20 << 20, /* ten chunks; a starved run took seven */
	HOLES = 16               /* a 16th of the height: free objects in
				    slabs, and pages between runs, of a mixture */
};

/* What the looks have seen; failures are told once each, at the end. */
struct watch {
	struct gauge base; /* before the first thread */
	struct gauge high; /* the highest of each number so far */
	struct gauge half; /* the same in the middle of the time */
	size_t half_peak;
	uint64_t n_looks;
	uint64_t n_strandings; /* looks that found the bound exceeded */
	struct gauge stranding;
	uint64_t n_excesses; /* the same of resident memory */
	size_t excess_rss;
	size_t excess_limit;
	size_t beyond; /* rss to its limit without slacks, at most */
};

static struct watch watch;

static size_t
mib(size_t bytes)
{
	return bytes >> 20;
}

static void
raise_to(size_t *high, size_t now)
{
	if (*high < now)
		*high = now;
}

static void
look(void)
{
	struct gauge now;
	size_t limit;
	size_t peak;

	gauge_read(&now);
	raise_to(&watch.high.stranded, now.stranded);
	/* Read after rss, which cannot be of a higher height. */
	peak = flow_peak();
	limit = watch.base.rss + peak;
	limit += watch.high.stranded < now.stranded_bound ? watch.high.stranded
							  : now.stranded_bound;
	if (now.rss > limit)
		raise_to(&watch.beyond, now.rss - limit);
	limit += FIXED_SLACK + peak / HOLES;
	watch.n_looks++;
	if (now.is_known && now.stranded > now.stranded_bound) {
		watch.n_strandings++;
		watch.stranding = now;
	}
	if (now.rss > limit) {
		watch.n_excesses++;
		watch.excess_rss = now.rss;
		watch.excess_limit = limit;
	}
	raise_to(&watch.high.stranded_bound, now.stranded_bound);
	raise_to(&watch.high.mapped, now.mapped);
	raise_to(&watch.high.resident, now.resident);
	raise_to(&watch.high.rss, now.rss);
	watch.high.is_known = now.is_known;
}

/* ------------------------------------------------------------------ */
/* Time */

static void
set_phase(const struct pattern *p, uint64_t at_ns, uint64_t phase_ns)
{
	static const size_t sizes[] = {16, 64, 256, 1024, 4096, 14336, 32768};
	const size_t n_sizes = sizeof(sizes) / sizeof(sizes[0]);
	uint64_t phase = at_ns / phase_ns;
	uint64_t turn = p->swaps ? phase / 2 : phase;

	if (p->shifts)
		atomic_store(&flow.size, sizes[2 * at_ns / phase_ns % n_sizes]);
	atomic_store(&flow.phase, (uint32_t)phase);
	atomic_store(
	    &flow.is_tidal, !p->is_fixed && (p->shifts || turn % 2 == 1));
	atomic_store(&flow.is_pinned, p->is_fixed || turn / 2 % 2 == 0);
}

static uint64_t
n_freed(void)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < n_flow_hands; i++)
		n += atomic_load(&flow_hands[i].n_freed);
	return n;
}

/* A machine that is busy otherwise is given more time, within limits. */
static bool
is_over(const struct pattern *p, uint64_t at_ns, uint64_t total_ns)
{
	if (n_freed() < LEAST_BLOCKS ||
	    (p->is_content != NULL && !p->is_content()))
		total_ns += (uint64_t)STRETCH_S * rig.patience * 1000000000;
	return at_ns >= total_ns;
}

static void
conduct(const struct pattern *p)
{
	uint64_t total_ns = (uint64_t)(rig.seconds * 1e9);
	uint64_t phase_ns = total_ns / SHORT_PHASES;
	uint64_t start = rig_now_ns();
	uint64_t at = 0;

	if (phase_ns > 1000000000)
		phase_ns = 1000000000;
	for (; !is_over(p, at, total_ns); at = rig_now_ns() - start) {
		set_phase(p, at, phase_ns);
		if (p->tick != NULL)
			p->tick((double)at / (double)total_ns);
		look();
		if (at <= total_ns / 2) {
			watch.half = watch.high;
			watch.half_peak = flow_peak();
		}
		rig_sleep_us((unsigned)(phase_ns / LOOKS_A_PHASE / 1000));
	}
}

/* ------------------------------------------------------------------ */
/* Verdicts */

static void
judge_bounds(void)
{
	const struct gauge *high = &watch.high;
	unsigned long long n = watch.n_looks;

	if (!high->is_known)
		rig_ok_skip("this allocator tells no stranded bytes");
	else if (watch.n_strandings != 0)
		rig_ok(false,
		    "%llu of %llu looks: %zu KiB stranded, the bound is %zu",
		    (unsigned long long)watch.n_strandings, n,
		    watch.stranding.stranded >> 10,
		    watch.stranding.stranded_bound >> 10);
	else
		rig_ok(true,
		    "%llu looks: %zu KiB stranded at most, the bound is %zu", n,
		    high->stranded >> 10, high->stranded_bound >> 10);
	if (watch.n_excesses != 0)
		rig_ok(false,
		    "%llu of %llu looks: %zu MiB resident, %zu "
		    "allowed",
		    (unsigned long long)watch.n_excesses, n,
		    mib(watch.excess_rss), mib(watch.excess_limit));
	else
		rig_ok(true,
		    "%zu MiB resident at most, %zu held, beyond all that is "
		    "known %zu of %zu MiB",
		    mib(high->rss), mib(flow_peak()), mib(watch.beyond),
		    mib(FIXED_SLACK + flow_peak() / HOLES));
}

static void
judge_growth(void)
{
	size_t more = flow_peak() - watch.half_peak;
	/* Never beyond the bound: it cannot hide a leak. */
	size_t cached = watch.high.stranded - watch.half.stranded;
	size_t slack = GROWTH_BYTES + cached + more + more / HOLES;
	size_t mapped = watch.high.mapped - watch.half.mapped;
	size_t resident = watch.high.resident - watch.half.resident;
	size_t rss = watch.high.rss - watch.half.rss;

	rig_ok(mapped <= slack && resident <= slack && rss <= slack,
	    "growth in the second half: %zu KiB mapped, %zu in use or dirty, "
	    "%zu resident; the program held %zu more, caches %zu",
	    mapped >> 10, resident >> 10, rss >> 10, more >> 10, cached >> 10);
}

static void
judge_leak(size_t before)
{
	unsigned long long n;
	ptrdiff_t leak;

	for (unsigned i = 0; i < n_flow_hands; i++)
		hand_join(&flow_hands[i]);
	n = n_freed();
	rig_deadline(0, NULL);
	for (unsigned i = 0; i < MAX_CHUTES; i++)
		chute_drain(&flow_chutes[i]);
	leak = (ptrdiff_t)(rig_in_use_bytes() - before);
	rig_ok(
	    n >= LEAST_BLOCKS, "%llu blocks went through, none was spoilt", n);
	rig_ok(leak < LEAK_BYTES, "%td bytes in use after the last free", leak);
}

static int
run_pattern(const struct pattern *p)
{
	size_t before = rig_in_use_bytes();

	/* Whether pages are huge must not decide what is resident. */
	(void)prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	p->start();
	gauge_read(&watch.base);
	atomic_store(&flow.begins, 1);
	rig_futex_wake(&flow.begins);
	conduct(p);
	atomic_store(&flow.ends, 1);
	rig_deadline(rig.patience_s, "the threads did not end");
	judge_bounds();
	judge_growth();
	if (p->judge != NULL)
		p->judge();
	judge_leak(before);
	return rig_end();
}

/* ------------------------------------------------------------------ */
/* All patterns */

struct job {
	const struct pattern *pattern;
	pid_t pid;
	int output;
};

static void
start_job(struct job *job, char **argv, int argc)
{
	char *args[16] = {0};
	unsigned n = 0;

	job->output = memfd_create("flow", MFD_CLOEXEC);
	for (int i = 0; i < argc && n < 14; i++)
		if (argv[i] != rig.word)
			args[n++] = argv[i];
	args[n] = (char *)(uintptr_t)job->pattern->name;
	job->pid = fork();
	if (job->output < 0 || job->pid < 0)
		rig_fail_now("no process");
	if (job->pid != 0)
		return;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)dup2(job->output, STDOUT_FILENO);
	(void)execv("/proc/self/exe", args);
	_exit(97);
}

/* A line of the child's TAP, as one of ours. */
static void
tell(const struct job *job, const char *line)
{
	const char *name = job->pattern->name;
	const char *dash = strstr(line, " - ");

	if (strncmp(line, "ok ", 3) == 0 && dash != NULL)
		rig_ok(true, "%s: %s", name, dash + 3);
	else if (strncmp(line, "not ok ", 7) == 0 && dash != NULL)
		rig_ok(false, "%s: %s", name, dash + 3);
	else if (strncmp(line, "ok ", 3) == 0)
		rig_ok_skip("%s: %s", name, strrchr(line, '#') + 7);
	else if (strncmp(line, "1..", 3) != 0)
		rig_diag("%s: %s", name, line);
}

static void
end_job(const struct job *job, int status)
{
	FILE *f = fdopen(job->output, "r");
	char line[600];

	rewind(f);
	while (fgets(line, sizeof(line), f) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		tell(job, line);
	}
	(void)fclose(f);
	/* 1: it has said why. */
	if (status != 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 1))
		rig_ok(false, "%s ended with status %#x", job->pattern->name,
		    (unsigned)status);
}

/* Two at a time, the last three together, light ones beside them. */
static int
run_all(char **argv, int argc)
{
	struct job jobs[MAX_JOBS];
	unsigned n_jobs = 0;
	unsigned n_light = 0;
	unsigned n_ended = 0;
	unsigned next = 0;

	while (n_ended < n_flow_patterns) {
		unsigned left = n_flow_patterns - n_ended - n_light;
		unsigned may = left <= N_JOBS + 1 ? N_JOBS + 1 : N_JOBS;
		unsigned i = 0;
		int status = 0;
		pid_t pid;

		while (n_jobs - n_light < may && n_jobs < MAX_JOBS &&
		       next < n_flow_patterns) {
			jobs[n_jobs].pattern = &flow_patterns[next++];
			n_light += jobs[n_jobs].pattern->is_light;
			start_job(&jobs[n_jobs++], argv, argc);
		}
		pid = wait(&status);
		while (i < n_jobs && jobs[i].pid != pid)
			i++;
		if (i == n_jobs)
			continue;
		end_job(&jobs[i], status);
		n_light -= jobs[i].pattern->is_light;
		jobs[i] = jobs[--n_jobs];
		n_ended++;
	}
	return rig_end();
}

int
main(int argc, char **argv)
{
	rig.takes_word = true;
	rig_start(argc, argv, DEFAULT_S);
	if (rig.word == NULL || strcmp(rig.word, "all") == 0) {
		/* The children meet expectations of their own. */
		rig.expect_failure = false;
		return run_all(argv, argc);
	}
	for (unsigned i = 0; i < n_flow_patterns; i++)
		if (strcmp(flow_patterns[i].name, rig.word) == 0)
			return run_pattern(&flow_patterns[i]);
	for (unsigned i = 0; i < n_flow_patterns; i++)
		rig_diag(
		    "%s: %s", flow_patterns[i].name, flow_patterns[i].about);
	rig_fail_now("there is no such pattern");
}
