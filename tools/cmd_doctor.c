/* SPDX-License-Identifier: BSD-2-Clause */
/* cmd_doctor.c - what the system offers, what it means to eddy, what to
 * change. */
#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "tools/eddyctl.h"

#ifndef PR_SET_VMA
#	define PR_SET_VMA 0x53564d41
#endif
#ifndef MADV_WIPEONFORK
#	define MADV_WIPEONFORK 18
#endif
#ifndef MADV_POPULATE_WRITE
#	define MADV_POPULATE_WRITE 23
#endif

/* What was found out, and whether all is well. */
struct report {
	json_t *all;
	unsigned n_bad;
};

enum verdict { GOOD, FAIR, BAD };

static void
tell(struct report *r, enum verdict v, const char *what, const char *found,
    const char *means, const char *change)
{
	static const char *const words[] = {"ok", "note", "bad"};

	r->n_bad += v == BAD;
	(void)json_array_append_new(
	    r->all, json_pack("{s:s,s:s,s:s,s:s,s:s}", "what", what, "verdict",
			words[v], "found", found, "means", means, "change",
			v == GOOD ? "" : change));
	if (settings.json)
		return;
	(void)printf(
	    "%-4s  %-18s %s\n%24s %s\n", words[v], what, found, "", means);
	if (v != GOOD && change[0] != '\0')
		(void)printf("%24s -> %s\n", "", change);
}

/* ------------------------------------------------------------------ */
/* The kernel */

static void
check_kernel(struct report *r)
{
	struct utsname u;
	unsigned major = 0;
	unsigned minor = 0;
	char *rest;
	bool old;

	if (uname(&u) != 0)
		return;
	major = (unsigned)strtoul(u.release, &rest, 10);
	minor = *rest == '.' ? (unsigned)strtoul(rest + 1, NULL, 10) : 0;
	old = major < 5 || (major == 5 && minor < 10);
	tell(r, old ? FAIR : GOOD, "kernel", u.release,
	    old ? "before 5.10 caches of CPUs cannot be drained by others"
		: "has what eddy asks for",
	    "a later kernel");
}

static void
check_rseq(struct report *r)
{
	bool has = syscall(SYS_rseq, NULL, 0, 0, 0) == 0 || errno != ENOSYS;

	tell(r, has ? GOOD : BAD, "rseq", has ? "there" : "not there",
	    has ? "malloc and free hit a CPU's cache without an atomic "
		  "instruction"
		: "every malloc and free takes an atomic instruction",
	    "a kernel with CONFIG_RSEQ, a sandbox that allows the call");
}

static void
check_membarrier(struct report *r)
{
	long all = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
	bool has =
	    all > 0 && (all & MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ) != 0;

	tell(r, has ? GOOD : FAIR, "membarrier",
	    has ? "with rseq" : "without rseq",
	    has ? "what idle CPUs cache is drained by others"
		: "what idle CPUs cache stays there",
	    "Linux 5.10, a sandbox that allows the call");
}

/* The word in brackets. */
static void
chosen(const char *path, char *ret, size_t n)
{
	char buf[256];
	char *from;

	(void)snprintf(ret, n, "unknown");
	if (!read_text(path, buf, sizeof(buf)))
		return;
	from = strchr(buf, '[');
	if (from != NULL)
		(void)snprintf(
		    ret, n, "%.*s", (int)strcspn(from + 1, "]"), from + 1);
}

static void
check_huge(struct report *r)
{
	char word[32];
	bool always;

	chosen(
	    "/sys/kernel/mm/transparent_hugepage/enabled", word, sizeof(word));
	always = strcmp(word, "always") == 0;
	tell(r, always ? FAIR : GOOD, "huge pages", word,
	    always ? "the kernel makes huge pages unasked for; of memory that "
		     "eddy has given back in part it is told not to"
	    : strcmp(word, "madvise") == 0
		? "huge pages are made where thp:always asks for them"
		: "there are no transparent huge pages",
	    "thp:never for the least memory, thp:always for the fewest TLB "
	    "misses");
}

static void
check_overcommit(struct report *r)
{
	char buf[16];
	bool strict =
	    read_text("/proc/sys/vm/overcommit_memory", buf, sizeof(buf)) &&
	    buf[0] == '2';

	tell(r, strict ? FAIR : GOOD, "overcommit", strict ? "never" : buf,
	    strict ? "addresses are set aside without access, so they are not "
		     "charged; what becomes accessible is"
		   : "memory is charged when it is touched",
	    "vm.overcommit_memory=0, or a commit limit that suits");
}

static void
check_names(struct report *r)
{
	void *p =
	    mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool has =
	    p != MAP_FAILED && prctl(PR_SET_VMA, 0, p, 4096, "eddy: test") == 0;

	if (p != MAP_FAILED)
		(void)munmap(p, 4096);
	tell(r, has ? GOOD : FAIR, "names of mappings",
	    has ? "there" : "not there",
	    has ? "smaps tells eddy's memory from others'"
		: "what is not eddy's can only be estimated",
	    "Linux 5.17 with CONFIG_ANON_VMA_NAME");
}

static void
check_advice(struct report *r)
{
	size_t n = (size_t)sysconf(_SC_PAGESIZE);
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool odd = p != MAP_FAILED && madvise(p, n, -1) == 0;
	bool wipes =
	    p != MAP_FAILED && !odd && madvise(p, n, MADV_WIPEONFORK) == 0;
	bool populates =
	    p != MAP_FAILED && !odd && madvise(p, n, MADV_POPULATE_WRITE) == 0;

	if (p != MAP_FAILED)
		(void)munmap(p, n);
	tell(r, wipes ? GOOD : BAD, "MADV_WIPEONFORK",
	    wipes ? "there" : "not there",
	    wipes ? "background threads and channels know whose they are"
		  : "there are no background threads and no channels",
	    "Linux 4.14; no emulator");
	tell(r, populates ? GOOD : FAIR, "MADV_POPULATE_WRITE",
	    populates ? "there" : "not there",
	    populates ? "memory is made ready in one call"
		      : "memory is made ready page by page",
	    "Linux 5.14");
}

static void
check_swap(struct report *r)
{
	char buf[4096];
	bool any = read_text("/proc/swaps", buf, sizeof(buf)) &&
		   strchr(buf, '\n') != NULL;

	tell(r, GOOD, "swap", any ? "there" : "none",
	    any ? "lock_memory:true keeps the heap out of it"
		: "nothing is swapped out",
	    "");
}

static void
check_nodes(struct report *r)
{
	char buf[256] = "0";
	char line[320];
	bool many = read_text("/sys/devices/system/node/has_memory", buf,
			sizeof(buf)) &&
		    strpbrk(buf, "-,") != NULL;

	(void)snprintf(line, sizeof(line), "nodes %s", buf);
	tell(r, GOOD, "memory nodes", line,
	    many ? "each has a home: threads are served from their node"
		 : "one home",
	    "");
}

/* What numactl or the program has said: "default", "bind:0", ... */
static void
check_policy(struct report *r, pid_t pid)
{
	char path[64];
	char buf[256];
	char *word;
	char *rest = buf;
	bool plain;

	(void)snprintf(path, sizeof(path), "/proc/%d/numa_maps",
	    (int)(pid != 0 ? pid : getpid()));
	if (!read_text(path, buf, sizeof(buf)) || strsep(&rest, " ") == NULL ||
	    (word = strsep(&rest, " \n")) == NULL) {
		tell(r, GOOD, "NUMA policy", "not told",
		    "the kernel knows no nodes, or does not tell", "");
		return;
	}
	plain = strcmp(word, "default") == 0;
	tell(r, plain ? GOOD : FAIR, "NUMA policy", word,
	    plain ? "eddy binds memory to nodes, where there are several"
		  : "a policy from outside is left alone: there is one home",
	    "start it without numactl for a home on each node");
}

/* ------------------------------------------------------------------ */
/* Limits */

static unsigned
count_mappings(const struct target *t)
{
	struct smaps s;

	return t->pid != 0 && read_smaps(t, &s) ? s.mappings : 0;
}

static void
check_mappings(struct report *r, const struct target *t)
{
	char buf[32] = "";
	char found[64];
	unsigned n = count_mappings(t);
	unsigned long most;
	bool bad;

	(void)read_text("/proc/sys/vm/max_map_count", buf, sizeof(buf));
	most = strtoul(buf, NULL, 10);
	bad = most != 0 && n > most / 2;
	if (t->pid != 0)
		(void)snprintf(
		    found, sizeof(found), "%u of at most %lu", n, most);
	else
		(void)snprintf(found, sizeof(found), "at most %lu", most);
	tell(r,
	    bad            ? BAD
	    : most < 65530 ? FAIR
			   : GOOD,
	    "mappings", found,
	    bad ? "the process nears the limit: mmap will fail"
		: "each 64 MiB of a heap in use take some",
	    "sysctl vm.max_map_count=262144");
}

static void
check_cgroup(struct report *r, pid_t pid)
{
	struct cgroup c;
	char found[128];
	bool near_;

	read_cgroup(pid != 0 ? pid : getpid(), &c);
	if (!c.known) {
		tell(r, GOOD, "cgroup", "no memory controller seen",
		    "heap_limit_share has nothing to go by", "");
		return;
	}
	near_ = c.max != UINT64_MAX && c.current > c.max / 10 * 9;
	if (c.max == UINT64_MAX)
		(void)snprintf(
		    found, sizeof(found), "%s, no limit", human(c.current));
	else
		(void)snprintf(found, sizeof(found), "%s of %s",
		    human(c.current), human(c.max));
	tell(r, near_ ? BAD : GOOD, "cgroup memory", found,
	    near_ ? "the kernel will soon kill"
		  : "heap_limit_share holds the heap to a part of the limit",
	    "heap_limit_share:80, or a higher memory.max");
}

static void
check_addresses(struct report *r, pid_t pid)
{
	struct rlimit l;
	char found[64];
	bool limited = prlimit(pid, RLIMIT_AS, NULL, &l) == 0 &&
		       l.rlim_cur != RLIM_INFINITY;

	if (limited)
		(void)snprintf(found, sizeof(found), "%s", human(l.rlim_cur));
	tell(r, limited ? FAIR : GOOD, "RLIMIT_AS", limited ? found : "none",
	    limited ? "addresses are mapped on demand, and have no names"
		    : "addresses are set aside once",
	    "ulimit -v unlimited");
}

/* ------------------------------------------------------------------ */
/* A process */

static void
check_process(struct report *r, struct target *t)
{
	char found[64];
	char *text;
	char *mode;
	int err;

	if (!t->has_page) {
		tell(r, FAIR, "channel", "none",
		    "neither figures nor names can be had",
		    "EDDY_CONF=control:auto, or eddyctl run");
		return;
	}
	tell(r, GOOD, "channel", t->name[0] == '/' ? "there" : t->name,
	    "figures and names can be had", "");
	if (is_stopped(t) || ask(t, "get eddy.mode", &text, &err) != DONE)
		return;
	text[strcspn(text, "\n")] = '\0';
	mode = strrchr(text, ' ');
	mode = mode != NULL ? mode + 1 : text;
	tell(r,
	    strcmp(mode, "rseq") == 0    ? GOOD
	    : strcmp(mode, "claim") == 0 ? BAD
					 : FAIR,
	    "mode", mode,
	    strcmp(mode, "rseq") == 0
		? "caches of CPUs by restartable sequences"
	    : strcmp(mode, "claim") == 0
		? "caches by atomic instructions: rseq is refused"
		: "nothing is cached: an option says so",
	    "look at rseq above, and at the options check, tcache, junk and "
	    "zero");
	free(text);
	(void)snprintf(found, sizeof(found), "%ju, of CPUs in use %ju",
	    (uintmax_t)figure(t, "homes"), (uintmax_t)figure(t, "cpus"));
	tell(r, GOOD, "homes", found,
	    "memory nodes, or last-level caches, that eddy has found", "");
	if (figure(t, "background_threads") == 0)
		tell(r, FAIR, "background threads", "none",
		    "memory goes back only while the program allocates",
		    "background_thread:true");
	else
		tell(r, GOOD, "background threads", "there",
		    "memory goes back when the program sleeps, too", "");
}

int
cmd_doctor(int argc, char **argv)
{
	struct report r = {.n_bad = 0};
	struct target t = {.pid = 0};
	int status = DONE;

	if (argc > 2)
		return misused("doctor");
	if (argc == 2)
		status = find_target(argv[1], &t);
	if (status != DONE)
		return status;
	r.all = json_array();
	check_kernel(&r);
	check_rseq(&r);
	check_membarrier(&r);
	check_advice(&r);
	check_names(&r);
	check_huge(&r);
	check_overcommit(&r);
	check_swap(&r);
	check_nodes(&r);
	check_policy(&r, t.pid);
	check_mappings(&r, &t);
	check_addresses(&r, t.pid);
	check_cgroup(&r, t.pid);
	if (argc == 2 && t.path == NULL)
		check_process(&r, &t);
	if (settings.json)
		(void)put_json(r.all);
	else
		json_decref(r.all);
	return r.n_bad == 0 ? DONE : REFUSED;
}
