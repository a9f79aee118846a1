/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/os/zero.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "lib/arch/syscall.h"
#include "lib/base/atomic.h"
#include "lib/os/os.h"

/* Below this, writing costs less than asking. */
#define MIN_ASK ((size_t)1 << 20)
/* From this on, dropping costs less than writing. */
#define MIN_DROP ((size_t)4 << 20)
/* Swapped pages from so many bytes on are dropped, not read to be written. */
#define MIN_DROP_SWAPPED ((size_t)64 << 10)
/* The same for memory that was cleared before and not touched since. */
#define MIN_DROP_ZERO ((size_t)512 << 10)
/* What is that long may hold a whole huge page. */
#define MIN_HUGE ((size_t)2 << 20)
/* Pages that are looked at to find that out, and the fewest that tell. */
#define MAX_LOOKS 64
#define MIN_LOOKS 8

/*
 * How the kernel is asked which pages hold memory.  What was refused once, or
 * not true, is not tried again.
 */
enum method { SCAN, ENTRIES, NONE };

/* W, R: any CPU.  O: none: each answer is checked by itself. */
static _Atomic uint32_t method_known = SCAN;

/* Bytes: see eddy_os_zero_counts.  W, R: any CPU.  O: none: counts. */
static _Atomic uint64_t n_wanted;
static _Atomic uint64_t n_written;

/* Whole OS pages to be zero; what lies below `from` is. */
struct job {
	char *from;
	char *to;
	size_t written;
	bool keep;          /* nothing is given back */
	unsigned n_regions; /* that hold memory */
	unsigned n_zero;    /* pages looked at that were zero */
	unsigned n_other;   /* and that were not */
};

/* ------------------------------------------------------------------ */

/*
 * Where the kernel has no page of zeros, or none that is huge, to look at what
 * was dropped has brought memory.  It is zero: if this is refused it stays.
 */
static void
drop_look(void *p, size_t size)
{
	if (size >= MIN_HUGE && eddy_os_discard(p, size) != 0)
		return;
}

bool
eddy_os_drop(void *p, size_t size)
{
	size_t page = eddy_os_page_size();
	_Atomic char *witness = (_Atomic char *)p + size - 1;
	char was;

	if ((uintptr_t)p % page != 0 || size % page != 0 || size == 0)
		return false;
	/* relaxed, all: in hand; atomic, so that the compiler stores it. */
	was = eddy_load_relaxed(witness);
	eddy_store_relaxed(witness, 1);
	if (eddy_os_discard(p, size) != 0 || eddy_load_relaxed(witness) != 0) {
		eddy_store_relaxed(witness, was);
		return false;
	}
	drop_look(p, size);
	return true;
}

static void
clear(struct job *j, char *p, size_t size)
{
	memset(p, 0, size);
	j->written += size;
}

/*
 * The page at j->from holds memory from now on, and something else than zero:
 * an answer that leaves it out is none.
 */
static void
set_witness(const struct job *j)
{
	/* relaxed: as in eddy_os_drop. */
	eddy_store_relaxed((_Atomic char *)j->from, 1);
}

/* Refused once, the rest of the job is written. */
static bool
drop(struct job *j, char *p, size_t size, size_t least)
{
	if (j->keep || size < least)
		return false;
	j->keep = !eddy_os_drop(p, size);
	return !j->keep;
}

static bool
drop_rest(struct job *j, size_t least)
{
	if (!drop(j, j->from, (size_t)(j->to - j->from), least))
		return false;
	j->from = j->to;
	return true;
}

static bool
is_zero(const char *p, size_t size)
{
	uint64_t w = 0;

	for (size_t i = 0; i < size && w == 0; i += sizeof(w))
		memcpy(&w, p + i, sizeof(w));
	return w == 0;
}

/*
 * Looks at some pages of a region that holds memory.  What is zero there was
 * cleared by an earlier calloc, as a rule, and not touched since: it is kept
 * for nobody.  The first page may be the witness.
 */
static void
look(struct job *j, const char *p, size_t size)
{
	size_t page = eddy_os_page_size();
	size_t n = size / page / 2;

	if (n > MIN_LOOKS)
		n = MIN_LOOKS;
	else if (j->n_regions++ % MIN_LOOKS == 0)
		n = 1;
	else
		return;
	if (j->n_zero + j->n_other >= MAX_LOOKS)
		return;
	for (size_t i = 0; i < n; i++) {
		size_t at = eddy_align_down((2 * i + 1) * size / (2 * n), page);

		if (is_zero(p + at, page))
			j->n_zero++;
		else
			j->n_other++;
	}
}

/* Whether clearing would cost more than what was touched. */
static bool
is_vain(const struct job *j)
{
	return j->n_zero >= MIN_LOOKS && j->n_zero >= 4 * j->n_other;
}

/*
 * Pages that are there, or all of them swapped out.  Returns true when all of
 * the job is done.
 */
static bool
clear_pages(struct job *j, char *p, size_t size, bool swapped)
{
	if (swapped) {
		if (drop(j, p, size, MIN_DROP_SWAPPED))
			return false;
	} else if (!j->keep) {
		look(j, p, size);
		if (is_vain(j) && drop_rest(j, MIN_DROP_ZERO))
			return true;
	}
	clear(j, p, size);
	return false;
}

/* ------------------------------------------------------------------ */
/* PAGEMAP_SCAN */

/* <linux/fs.h> of Linux 6.7; Debian 12 has an older one. */
struct page_region {
	uint64_t start;
	uint64_t end;
	uint64_t categories;
};

struct scan_arg {
	uint64_t size;
	uint64_t flags;
	uint64_t start;
	uint64_t end;
	uint64_t walk_end; /* out */
	uint64_t vec;
	uint64_t vec_len;
	uint64_t max_pages;
	uint64_t category_inverted;
	uint64_t category_mask;
	uint64_t category_anyof_mask;
	uint64_t return_mask;
};

#define PAGE_PRESENT (1u << 3)
#define PAGE_SWAPPED (1u << 4)
#define PAGE_ZERO    (1u << 5)
/* _IOWR('f', 16, struct scan_arg) */
#define SCAN_IOCTL \
	(3u << 30 | (unsigned)sizeof(struct scan_arg) << 16 | 'f' << 8 | 16)
#define N_REGIONS 64

/*
 * Asks for pages that hold memory.  Returns the number of regions, whose order
 * and bounds are checked, or an error; *end: up to where the answer goes.
 */
static long
scan(long fd, const struct job *j, struct page_region *found, char **end)
{
	struct scan_arg arg = {
	    .size = sizeof(arg),
	    .start = (uintptr_t)j->from,
	    .end = (uintptr_t)j->to,
	    .vec = (uintptr_t)found,
	    .vec_len = N_REGIONS,
	    .category_inverted = PAGE_ZERO,
	    .category_mask = PAGE_ZERO,
	    .category_anyof_mask = PAGE_PRESENT | PAGE_SWAPPED,
	    .return_mask = PAGE_PRESENT | PAGE_SWAPPED,
	};
	long n = eddy_syscall(SYS_ioctl, fd, SCAN_IOCTL, &arg, 0, 0, 0);
	uint64_t at = arg.start;

	if (n < 0)
		return n;
	if (n > N_REGIONS || arg.walk_end > arg.end)
		return -EINVAL;
	for (long i = 0; i < n; i++) {
		if (found[i].start < at || found[i].end <= found[i].start)
			return -EINVAL;
		at = found[i].end;
	}
	if (at > arg.walk_end)
		return -EINVAL;
	*end = (char *)arg.walk_end;
	return n;
}

/* Returns 0 when all is zero, or an error, j->from as far as it went. */
static long
zero_by_scan(long fd, struct job *j)
{
	struct page_region found[N_REGIONS];
	size_t page = eddy_os_page_size();

	for (;;) {
		char *end;
		long n;

		set_witness(j);
		n = scan(fd, j, found, &end);
		if (n < 0)
			return n;
		if (n == 0 || found[0].start != (uintptr_t)j->from)
			return -EINVAL;
		for (long i = 0; i < n; i++)
			if (clear_pages(j, (char *)found[i].start,
				found[i].end - found[i].start,
				found[i].categories == PAGE_SWAPPED))
				return 0;
		if (end == j->to) {
			j->from = end;
			return 0;
		}
		/* No room for more.  The next witness is the last page. */
		j->from = (char *)found[n - 1].end - page;
		if (n != N_REGIONS)
			return -EINVAL;
	}
}

/* ------------------------------------------------------------------ */
/* Entries of pagemap: a word a page */

#define ENTRY_PRESENT ((uint64_t)1 << 63)
#define ENTRY_SWAPPED ((uint64_t)1 << 62)
#define N_ENTRIES     128

/*
 * Entries of the n pages from p on.  What the kernel does not write stands for
 * pages that hold memory.  Returns 0 or an error.
 */
static long
read_entries(long fd, const char *p, uint64_t *entry, size_t n)
{
	size_t size = n * sizeof(*entry);
	long got;

	memset(entry, 0xff, size);
	got = eddy_syscall(SYS_pread64, fd, entry, size,
	    (uintptr_t)p / eddy_os_page_size() * sizeof(*entry), 0, 0);
	return got < 0 ? got : got == (long)size ? 0 : -EINVAL;
}

static uint64_t
kind_of(uint64_t entry)
{
	return entry & (ENTRY_PRESENT | ENTRY_SWAPPED);
}

/* Clears n pages from j->from on, as their entries say.  True: all is done. */
static bool
zero_by_kind(struct job *j, const uint64_t *entry, size_t n)
{
	size_t page = eddy_os_page_size();

	for (size_t i = 0, end; i < n; i = end) {
		uint64_t kind = kind_of(entry[i]);

		for (end = i + 1; end < n && kind_of(entry[end]) == kind;)
			end++;
		if (kind != 0 && clear_pages(j, j->from, (end - i) * page,
				     kind == ENTRY_SWAPPED))
			return true;
		j->from += (end - i) * page;
	}
	return false;
}

/*
 * As zero_by_scan.  The page of zeros counts as memory here: what was read
 * only is written.
 */
static long
zero_by_entries(long fd, struct job *j)
{
	uint64_t entry[N_ENTRIES];
	size_t page = eddy_os_page_size();
	char *witness = j->from;
	long err;

	set_witness(j);
	while (j->from < j->to) {
		size_t n = (size_t)(j->to - j->from) / page;

		if (n > N_ENTRIES)
			n = N_ENTRIES;
		err = read_entries(fd, j->from, entry, n);
		if (err == 0 && j->from == witness && kind_of(entry[0]) == 0)
			err = -EINVAL;
		if (err != 0)
			return err;
		if (zero_by_kind(j, entry, n))
			return 0;
	}
	/* The file that was asked last is the one that was asked first. */
	err = read_entries(fd, witness, entry, 1);
	if (err == 0 && kind_of(entry[0]) == 0)
		err = -EINVAL;
	if (err != 0)
		j->from = witness;
	return err;
}

/*
 * Whether no page of some is there.  Then, as a guess, dropping all costs less
 * than to read an entry for each.
 */
static bool
looks_untouched(long fd, const struct job *j)
{
	enum { LOOKS = 4, PAGES = 32 };
	size_t page = eddy_os_page_size();
	size_t step = (size_t)(j->to - j->from) / page / LOOKS;
	uint64_t entry[PAGES];

	if (j->keep || step * LOOKS * page < MIN_DROP)
		return false;
	for (size_t i = 0; i < LOOKS; i++) {
		if (read_entries(fd, j->from + i * step * page, entry, PAGES) !=
		    0)
			return false;
		for (size_t k = 0; k < PAGES; k++)
			if (kind_of(entry[k]) != 0)
				return false;
	}
	return true;
}

/* ------------------------------------------------------------------ */

/* Another time the same may succeed. */
static bool
is_passing(long err)
{
	return err == -EBADF || err == -EINTR || err == -ENOMEM;
}

static long
open_pagemap(void)
{
	long fd = eddy_syscall(SYS_openat, AT_FDCWD, "/proc/self/pagemap",
	    O_RDONLY | O_CLOEXEC, 0, 0, 0);

	/* The first thread has ended: /proc/self has no memory then. */
	if (fd == -ESRCH)
		fd = eddy_syscall(SYS_openat, AT_FDCWD,
		    "/proc/thread-self/pagemap", O_RDONLY | O_CLOEXEC, 0, 0, 0);
	return fd;
}

/* Zeroes as far as the kernel tells which pages hold memory. */
static void
zero_by_asking(struct job *j)
{
	/* relaxed: as good as any other moment's. */
	uint32_t known = eddy_load_relaxed(&method_known);
	uint32_t m = known;
	long err = 0;
	long fd;

	if (m == NONE)
		return;
	fd = open_pagemap();
	if (fd < 0)
		return;
	if (m == SCAN) {
		err = zero_by_scan(fd, j);
		if (err != 0 && !is_passing(err))
			m = ENTRIES;
	}
	if (m == ENTRIES &&
	    !(looks_untouched(fd, j) && drop_rest(j, MIN_DROP))) {
		err = zero_by_entries(fd, j);
		if (err != 0 && !is_passing(err))
			m = NONE;
	}
	(void)eddy_syscall(SYS_close, fd, 0, 0, 0, 0, 0);
	if (m != known) /* relaxed: as above. */
		eddy_store_relaxed(&method_known, m);
}

/* Returns the number of bytes written. */
static size_t
zero(void *p, size_t size, bool keep)
{
	size_t page = eddy_os_page_size();
	char *end = (char *)p + size;
	struct job j = {
	    .from = (char *)eddy_align_up((uintptr_t)p, page),
	    .to = (char *)eddy_align_down((uintptr_t)end, page),
	    .keep = keep,
	};

	if (size < MIN_ASK || j.from >= j.to) {
		memset(p, 0, size);
		return size;
	}
	clear(&j, p, (size_t)(j.from - (char *)p));
	clear(&j, j.to, (size_t)(end - j.to));
	zero_by_asking(&j);
	if (j.from < j.to && !drop_rest(&j, MIN_DROP))
		clear(&j, j.from, (size_t)(j.to - j.from));
	return j.written;
}

void
eddy_os_zero(void *p, size_t size, bool keep)
{
	/* relaxed: a statistic. */
	(void)eddy_add_relaxed(&n_written, zero(p, size, keep));
}

void
eddy_os_write_zeros(void *p, size_t size)
{
	memset(p, 0, size);
	/* relaxed: a statistic. */
	(void)eddy_add_relaxed(&n_written, size);
}

void
eddy_os_give_back(void *p, size_t size)
{
	size_t page = eddy_os_page_size();
	char *end = (char *)p + size;
	char *from = (char *)eddy_align_up((uintptr_t)p, page);
	char *to = (char *)eddy_align_down((uintptr_t)end, page);

	if (from >= to) {
		memset(p, 0, size);
		return;
	}
	memset(p, 0, (size_t)(from - (char *)p));
	memset(to, 0, (size_t)(end - to));
	if (!eddy_os_drop(from, (size_t)(to - from)))
		(void)zero(from, (size_t)(to - from), true);
}

void
eddy_os_zero_wanted(size_t size)
{
	/* relaxed: a statistic. */
	(void)eddy_add_relaxed(&n_wanted, size);
}

struct eddy_zero_counts
eddy_os_zero_counts(void)
{
	struct eddy_zero_counts c;
	/* relaxed, both: statistics; a call under way is in one of them. */
	uint64_t wanted = eddy_load_relaxed(&n_wanted);

	c.written = eddy_load_relaxed(&n_written);
	c.skipped = wanted > c.written ? wanted - c.written : 0;
	return c;
}
