/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heap_thp.c - what is given back where huge pages come unasked for, seen from
 * inside: the size of a huge page is put into the heap, what the kernel was
 * told is read from /proc/self/smaps.
 *
 * Arguments: the part of a process with an option.
 */
#include "probe.h"

#include <ctype.h>

#include "lib/heap/purge.h"
#include "lib/heap/thp.h"
#include "lib/os/advise.h"

enum { RUN = 128 * KIB, PER_CHUNK = 2 * MIB / RUN, CHUNKS = 6 };

/*
 * What the kernel was told of the page at p: 'n' no huge pages, 'h' huge pages,
 * '-' nothing, '?' there is no such page.
 */
static char
told(const void *p)
{
	static char buf[1 << 20];
	int fd = open("/proc/self/smaps", O_RDONLY | O_CLOEXEC);
	size_t n = 0;
	ssize_t got;
	bool here = false;

	while (n < sizeof buf - 1 &&
	       (got = read(fd, buf + n, sizeof buf - 1 - n)) > 0)
		n += (size_t)got;
	(void)close(fd);
	buf[n] = '\0';
	for (char *line = buf, *end; (end = strchr(line, '\n')) != NULL;
	     line = end + 1) {
		*end = '\0';
		if (!isupper((unsigned char)*line)) {
			char *rest;
			uintptr_t from = strtoull(line, &rest, 16);
			uintptr_t to = strtoull(rest + 1, NULL, 16);

			here = (uintptr_t)p >= from && (uintptr_t)p < to;
		} else if (here && strncmp(line, "VmFlags:", 8) == 0) {
			return strstr(line, " nh") != NULL   ? 'n'
			       : strstr(line, " hg") != NULL ? 'h'
							     : '-';
		}
	}
	return '?';
}

static struct eddy_heap *h;
/* By place: those of one chunk lie together. */
static char *run[CHUNKS][PER_CHUNK];

static int
by_address(const void *a, const void *b)
{
	uintptr_t x = (uintptr_t) * (char *const *)a;
	uintptr_t y = (uintptr_t) * (char *const *)b;

	return x < y ? -1 : x > y;
}

static uint32_t
chunk_of(const void *p)
{
	return (uint32_t)(((uintptr_t)p - h->base) >> EDDY_LG_CHUNK);
}

/* Whole chunks full of runs, in one segment, which nothing was purged from. */
static void
fill_chunks(void)
{
	static char *all[(CHUNKS + 2) * PER_CHUNK];
	size_t first = 0;

	for (size_t i = 0; i < COUNT(all); i++) {
		all[i] = p_malloc(RUN);
		if (all[i] == NULL)
			tap_bail("no memory");
		memset(all[i], 1, RUN);
	}
	qsort(all, COUNT(all), sizeof *all, by_address);
	while ((uintptr_t)all[first] % EDDY_CHUNK != 0)
		first++;
	for (size_t i = 0; i < CHUNKS * PER_CHUNK; i++)
		run[i / PER_CHUNK][i % PER_CHUNK] = all[first + i];
	for (size_t c = 0; c < CHUNKS; c++)
		if (chunk_of(run[c][0]) != chunk_of(run[0][0]) + c ||
		    chunk_of(run[c][PER_CHUNK - 1]) != chunk_of(run[c][0]))
			tap_bail("chunks are not filled in order");
}

static void
give_back(char **p)
{
	p_free(*p);
	*p = NULL;
	(void)eddy_purge(h, 0);
}

static uint32_t
broken(const void *p)
{
	return eddy_load_relaxed(
	    &h->segments[chunk_of(p) / EDDY_SEGMENT_CHUNKS].broken);
}

/* ---- */

static void
test_no_rule(void)
{
	eddy_store_relaxed(&h->huge_page, EDDY_THP_NO_RULE);
	give_back(&run[1][1]);
	tap_ok(told(run[1][2]) == '-' && broken(run[1][2]) == 0,
	    "where huge pages must be asked for, the kernel is told nothing");
}

static void
test_whole_chunks(void)
{
	char *p = p_malloc(8 * (size_t)MIB);

	/* What is left of parts of others goes before. */
	(void)eddy_purge(h, 0);
	eddy_store_relaxed(&h->huge_page, EDDY_CHUNK);
	memset(p, 1, 8 * (size_t)MIB);
	p_free(p);
	(void)eddy_purge(h, 0);
	tap_ok(told(run[3][0]) == '-' && broken(run[3][0]) == 0,
	    "nor when whole huge pages are given back");
}

static void
test_pages(void)
{
	int maps;

	eddy_store_relaxed(&h->huge_page, EDDY_CHUNK);
	maps = probe_maps();
	give_back(&run[2][3]);
	tap_ok(told(run[2][2]) == 'n' && told(run[2][4]) == 'n' &&
		   told(run[0][0]) == 'n' && told(run[3][0]) == '-' &&
		   told(run[5][0]) == '-',
	    "pages of a chunk in use: no more huge pages from the beginning "
	    "of its segment to its end");
	give_back(&run[0][5]);
	give_back(&run[2][7]);
	tap_ok(told(run[3][0]) == '-', "below that nothing changes");
	give_back(&run[4][0]);
	tap_ok(told(run[3][0]) == 'n' && told(run[4][1]) == 'n' &&
		   told(run[5][0]) == '-',
	    "above, the border rises");
	/* The first border may be one where the chunks begin, too. */
	tap_ok(probe_maps() <= maps + 2, "one mapping more, not one each: %d",
	    probe_maps() - maps);
}

/* Pages that were moved by the kernel bring along what they were told. */
static void
test_moved(void)
{
	char *up = p_malloc(3 * (size_t)MIB);
	char *wall = p_malloc(3 * (size_t)MIB);
	uint32_t was = broken(run[0][0]);
	char *to;

	memset(up, 1, 3 * (size_t)MIB);
	/* The border above both, by hand, but for what lies at `up`. */
	if (eddy_os_huge(up, 4 * (size_t)MIB, true) != 0)
		tap_bail("madvise");
	eddy_store_relaxed(
	    &h->segments[chunk_of(up) / EDDY_SEGMENT_CHUNKS].broken,
	    (uint32_t)EDDY_SEGMENT_CHUNKS);
	to = p_realloc(up, 5 * (size_t)MIB);
	if (to == up)
		tap_skip("moved", "it grew where it was");
	else
		tap_ok(told(to) == 'n' && to[1] == 1,
		    "a block that moves below the border has none");
	eddy_store_relaxed(
	    &h->segments[chunk_of(wall) / EDDY_SEGMENT_CHUNKS].broken, was);
	p_free(to);
	p_free(wall);
}

/* Huge pages of 32 MiB, as with pages of 16 KiB. */
static void
test_larger(void)
{
	char *p = p_malloc(8 * (size_t)MIB);
	const uintptr_t end =
	    eddy_align_up((uintptr_t)p + 4 * (size_t)MIB, 32 * (size_t)MIB);
	uint32_t chunks =
	    chunk_of((char *)end - 1) % (uint32_t)EDDY_SEGMENT_CHUNKS + 1;

	eddy_store_relaxed(&h->huge_page, 32 * (uint64_t)MIB);
	memset(p, 1, 8 * (size_t)MIB);
	p = p_realloc(p, 4 * (size_t)MIB);
	(void)eddy_purge(h, 0);
	tap_ok(broken(p) >= chunks,
	    "a chunk is not a whole huge page where these are larger");
	p_free(p);
}

/* The part of a process whose options say something. */
static int
with_option(char wanted)
{
	fill_chunks();
	give_back(&run[1][1]);
	give_back(&run[4][0]);
	return told(run[1][2]) == wanted && told(run[4][1]) == wanted &&
		       told(run[5][0]) == wanted && broken(run[5][0]) == 0
		   ? 0
		   : 1;
}

int
main(int argc, char **argv)
{
	void *p;

	tap_guard(120);
	/* The library is inside. */
	(void)unsetenv("EDDY_SO");
	tap_begin(argv);
	/* Whoever gives memory back unasked would do so too early. */
	if (getenv("EDDY_CONF") == NULL) {
		(void)setenv("EDDY_CONF", "dirty_decay_ms:-1", 1);
		(void)execv("/proc/self/exe", argv);
	}
	p = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (madvise(p, 4 * MIB, MADV_NOHUGEPAGE) != 0 || told(p) != 'n')
		tap_skip_all("the kernel has no huge pages, or does not tell");
	(void)munmap(p, 4 * MIB);
	h = eddy_heap();
	if (argc > 1)
		return with_option(argv[1][0]);
	fill_chunks();
	test_no_rule();
	test_whole_chunks();
	test_pages();
	test_moved();
	test_larger();
	(void)setenv("EDDY_CONF", "thp:always", 1);
	tap_ok(probe_again(argv, "h", "thp:always"),
	    "thp:always: huge pages are wanted everywhere, and stay so");
	(void)setenv("EDDY_CONF", "thp:never", 1);
	tap_ok(probe_again(argv, "n", "thp:never"), "thp:never: nowhere");
	return tap_end();
}
