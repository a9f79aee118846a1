/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * os_zero.c - memory is zero whatever a kernel says that is asked which pages
 * hold some: each of its calls refused, or answered with a lie, at the n-th
 * time and for good, for n = 1, 2, ... until there is no n-th.
 *
 * The kernel is made up: it tells of pages by mincore, of the real one, and
 * has OS pages of any size, swapped pages, and the page of zeros.
 */
#include "probe.h"

#include "lib/os/os.h"
#include "lib/os/zero.h"

/* ------------------------------------------------------------------ */
/* The kernel */

enum { MOST = 3072 }; /* pages of 4 KiB */
enum { FD = 77 };

enum call { OPEN, IOCTL, PREAD, CLOSE, MADVISE, N_CALLS };

static const char *const call_name[] = {
    "openat", "ioctl", "pread64", "close", "madvise"};

enum lie {
	TRUTH,
	REFUSAL,   /* `err` */
	NO_EFFECT, /* success, and nothing is done */
	NOTHING,   /* success: no page holds memory */
	WILD,      /* success: pages outside of what was asked for */
	CROSSED,   /* success: pages in the wrong order */
	TOO_MANY,  /* success: more than there is room for */
	BEYOND,    /* success: true, up to behind the end */
	LONG,      /* success: true, and a page behind the end */
	LATE,      /* success: true, but for the first page */
	SHORT,     /* success: half of it, but for one page all of it */
};

static struct {
	size_t page;   /* size of an OS page */
	bool has_scan; /* PAGEMAP_SCAN */
	bool has_pagemap;
	bool drops;
	bool blank;    /* knows no page that holds memory */
	bool headless; /* the process's first thread has ended */
	unsigned char *base;
	bool swapped[MOST]; /* a page of 4 KiB */
	bool zero[MOST];    /* the page of zeros lies there */
	/* What goes wrong. */
	enum call call;
	enum lie lie;
	int err;
	unsigned nth;
	bool for_good;
	/* What happened. */
	unsigned n[N_CALLS];
	int n_open;
	unsigned n_wrong; /* calls that make no sense */
} k;

/* The kind of an OS page: bits as PAGEMAP_SCAN has them. */
enum { PRESENT = 8, SWAPPED = 16, PFNZERO = 32 };

static unsigned
kind_at(const unsigned char *p)
{
	unsigned kind = 0;
	unsigned char in[16];
	size_t n = k.page / PAGE;

	if (mincore((void *)(uintptr_t)p, k.page, in) != 0)
		tap_bail("mincore: errno %d", errno);
	for (size_t i = 0; i < n; i++) {
		size_t at = (size_t)(p - k.base) / PAGE + i;

		if (k.swapped[at])
			kind |= SWAPPED;
		else if (k.zero[at])
			kind |= PRESENT | PFNZERO;
		else if (in[i] & 1)
			kind |= PRESENT;
	}
	return kind;
}

/* <linux/fs.h> of Linux 6.7. */
struct region {
	uint64_t start, end, categories;
};
struct scan_arg {
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
	uint64_t inverted, mask, anyof, returned;
};

static bool
is_wanted(const struct scan_arg *a, unsigned kind)
{
	uint64_t c = kind ^ a->inverted;

	return (c & a->mask) == a->mask &&
	       (a->anyof == 0 || (c & a->anyof) != 0);
}

static long
scan_truly(struct scan_arg *a)
{
	struct region *r = (void *)(uintptr_t)a->vec;
	uint64_t n = 0;
	uint64_t p;

	for (p = a->start; p < a->end; p += k.page) {
		unsigned kind = kind_at((void *)(uintptr_t)p);
		uint64_t c = kind & a->returned;

		if (!is_wanted(a, kind))
			continue;
		if (n != 0 && r[n - 1].end == p && r[n - 1].categories == c) {
			r[n - 1].end += k.page;
			continue;
		}
		if (n == a->vec_len)
			break;
		r[n++] = (struct region){p, p + k.page, c};
	}
	a->walk_end = p;
	return (long)n;
}

static long
scan(struct scan_arg *a, enum lie lie)
{
	struct region *r = (void *)(uintptr_t)a->vec;
	long n;

	if (!k.has_scan)
		return -ENOTTY;
	if (lie == NO_EFFECT)
		return 0;
	if (a->size != sizeof *a || a->start % k.page != 0 ||
	    a->end % k.page != 0 || a->end <= a->start || a->vec_len < 2) {
		k.n_wrong++;
		return -EINVAL;
	}
	n = scan_truly(a);
	switch (k.blank ? NOTHING : lie) {
	case NOTHING:
		a->walk_end = a->end;
		return 0;
	case WILD:
		r[n - 1].start = 0x1000;
		r[n - 1].end = 0x2000;
		return n;
	case CROSSED:
		r[n - 1].end = r[n - 1].start - k.page;
		return n;
	case TOO_MANY:
		return (long)a->vec_len + 1;
	case BEYOND:
		r[n - 1].end = a->end + k.page;
		a->walk_end = a->end + k.page;
		return n;
	case LONG:
		r[n - 1].end = a->end + k.page;
		return n;
	case LATE:
		r[0].start += k.page;
		if (r[0].start == r[0].end)
			memmove(r, r + 1, (size_t)--n * sizeof *r);
		return n;
	default:
		return n;
	}
}

static long
read_pagemap(uint64_t *to, size_t size, uint64_t offset, enum lie lie)
{
	size_t n = size / 8;
	unsigned char *p = (void *)(uintptr_t)(offset / 8 * k.page);

	if (!k.has_pagemap)
		return -EPERM;
	if (size % 8 != 0 || offset % 8 != 0) {
		k.n_wrong++;
		return -EINVAL;
	}
	if (lie == NO_EFFECT)
		return (long)size;
	if (lie == SHORT)
		n /= 2;
	for (size_t i = 0; i < n; i++) {
		unsigned kind =
		    lie == NOTHING || k.blank ? 0 : kind_at(p + i * k.page);

		to[i] = (uint64_t)((kind & PRESENT) != 0) << 63 |
			(uint64_t)((kind & SWAPPED) != 0) << 62;
	}
	return (long)(n * 8);
}

static long
drop(unsigned char *p, size_t size, enum lie lie)
{
	if (!k.drops)
		return -EINVAL;
	if ((uintptr_t)p % k.page != 0 || size % k.page != 0) {
		k.n_wrong++;
		return -EINVAL;
	}
	if (lie == NO_EFFECT)
		return 0;
	if (lie == SHORT && size > k.page)
		size = size / 2 / k.page * k.page;
	if (madvise(p, size, MADV_DONTNEED) != 0)
		tap_bail("madvise: errno %d", errno);
	for (size_t i = 0; i < size; i += PAGE)
		k.swapped[((size_t)(p - k.base) + i) / PAGE] = false;
	return 0;
}

/* What is wrong with this call. */
static enum lie
count(enum call call)
{
	unsigned n = ++k.n[call];

	if (k.lie == TRUTH || call != k.call ||
	    (k.for_good ? n < k.nth : n != k.nth))
		return TRUTH;
	return k.lie;
}

long
kernel_call(long nr, long a, long b, long c, long d)
{
	enum call call = nr == SYS_openat  ? OPEN
			 : nr == SYS_ioctl ? IOCTL
			 : nr == SYS_close ? CLOSE
					   : PREAD;
	enum lie lie = count(call);

	k.n_wrong += call == PREAD && nr != SYS_pread64;
	k.n_wrong += call != OPEN && a != FD;
	if (lie == REFUSAL && call != CLOSE)
		return -k.err;
	switch (call) {
	case OPEN:
		if (strcmp((char *)b, "/proc/self/pagemap") == 0) {
			if (k.headless)
				return -ESRCH;
		} else {
			k.n_wrong +=
			    strcmp((char *)b, "/proc/thread-self/pagemap") != 0;
		}
		k.n_open++;
		return FD;
	case CLOSE:
		k.n_open--;
		return lie == REFUSAL ? -k.err : 0;
	case IOCTL:
		return scan((struct scan_arg *)c, lie);
	default:
		return read_pagemap((uint64_t *)b, (size_t)c, (uint64_t)d, lie);
	}
}

int
eddy_os_discard(void *p, size_t size)
{
	enum lie lie = count(MADVISE);

	return lie == REFUSAL ? -k.err : (int)drop(p, size, lie);
}

size_t
eddy_os_page_size(void)
{
	return k.page;
}

/* ------------------------------------------------------------------ */
/* Blocks, touched in one way or another */

enum pattern { EMPTY, FULL, FIRST, LAST, EVERY_2ND, EVERY_100TH, N_PATTERNS };

static bool
is_touched(enum pattern w, size_t page, size_t n)
{
	switch (w) {
	case EMPTY:
		return false;
	case FULL:
		return true;
	case FIRST:
		return page < n / 3;
	case LAST:
		return page >= n - 3;
	case EVERY_2ND:
		return page % 2 != 0;
	default:
		return page % 100 == 99;
	}
}

struct outcome {
	uint64_t written; /* bytes, says the library */
	size_t resident;  /* pages of 4 KiB, before it is looked at */
	size_t touched;   /* the same, before */
	bool zero;
};

/*
 * Makes a block of n pages of 4 KiB, some touched, and zeroes it.  times: 2:
 * once more, and it was not touched since.
 */
static struct outcome
zero_times(size_t n, enum pattern w, int times, bool keep)
{
	static unsigned char in[MOST];
	struct outcome o = {0};
	uint64_t before = 0;
	unsigned char *p = mmap(NULL, n * PAGE + 65536, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED || n + 16 > MOST)
		tap_bail("no memory");
	k.base = p += -(uintptr_t)p & 65535;
	memset(k.swapped, 0, sizeof k.swapped);
	memset(k.zero, 0, sizeof k.zero);
	for (size_t i = 0; i < n; i++)
		if (is_touched(w, i, n)) {
			memset(p + i * PAGE, 0x5a, PAGE);
			o.touched++;
		}
	p[n * PAGE] = 0x5a;
	while (times-- > 0) {
		before = eddy_os_zero_counts().written;
		eddy_os_zero(p, n * PAGE, keep);
	}
	o.written = eddy_os_zero_counts().written - before;
	if (mincore(p, n * PAGE, in) != 0)
		tap_bail("mincore: errno %d", errno);
	for (size_t i = 0; i < n; i++)
		o.resident += in[i] & 1;
	o.zero = p[n * PAGE] == 0x5a; /* no more than that */
	for (size_t i = 0; i < n * PAGE && o.zero; i += 8)
		o.zero = *(uint64_t *)(void *)(p + i) == 0;
	(void)munmap(p, n * PAGE + 4096);
	return o;
}

static struct outcome
zero_block(size_t n, enum pattern w)
{
	return zero_times(n, w, 1, false);
}

/* Everything that asks in some way.  Returns how much was wrong. */
static unsigned
zero_all(void)
{
	unsigned bad = 0;

	for (int w = 0; w < N_PATTERNS; w++)
		bad += !zero_block(256, (enum pattern)w).zero;
	bad += !zero_block(1100, EMPTY).zero;
	bad += !zero_block(1100, LAST).zero;
	bad += !zero_times(256, FIRST, 2, false).zero;
	bad += !zero_times(300, EVERY_2ND, 2, false).zero;
	bad += !zero_times(256, FULL, 2, true).zero;
	return bad + (unsigned)(k.n_open != 0) + k.n_wrong;
}

/* ------------------------------------------------------------------ */
/* Runs, each in a process of its own: what zero.c knows begins anew. */

struct kernel {
	const char *name;
	bool has_scan, has_pagemap, drops;
	size_t page;
	bool blank;
};

enum { NEW, READS, BLIND, LOCKED, NOT_ANY, BLANK, N_FAULTY, BIG = N_FAULTY };

static const struct kernel kernels[] = {
    [NEW] = {"6.7 and later", true, true, true, 4096, false},
    [READS] = {"without PAGEMAP_SCAN", false, true, true, 4096, false},
    [BLIND] = {"without pagemap", false, false, true, 4096, false},
    [LOCKED] = {"with all memory locked", true, true, false, 4096, false},
    [NOT_ANY] = {"without anything", false, false, false, 4096, false},
    [BLANK] = {"that knows no page", true, true, false, 4096, true},
    /* Those above go wrong, too. */
    [BIG] = {"with pages of 64 KiB", true, true, true, 65536, false},
    {"of 16 KiB, without PAGEMAP_SCAN", false, true, true, 16384, false},
};

static void
boot(const struct kernel *v)
{
	k.has_scan = v->has_scan;
	k.has_pagemap = v->has_pagemap;
	k.drops = v->drops;
	k.page = v->page;
	k.blank = v->blank;
}

/* Runs f(v) in a child; false: it did not return 0. */
static bool
in_child(int (*f)(const struct kernel *v), const struct kernel *v)
{
	char why[64];
	pid_t pid = fork();

	if (pid == 0) {
		probe_child_begin(30);
		boot(v);
		_exit(f(v));
	}
	if (probe_wait(pid, why, sizeof why))
		return true;
	tap_diag("%s: %s", v->name, why);
	return false;
}

struct fault {
	enum call call;
	enum lie lie;
	int err;
	const char *name;
	bool for_good; /* only */
};

static const struct fault faults[] = {
    {OPEN, REFUSAL, EMFILE, "EMFILE", false},
    {OPEN, REFUSAL, EACCES, "EACCES", false},
    {OPEN, REFUSAL, ESRCH, "ESRCH", false},
    {IOCTL, REFUSAL, EPERM, "EPERM", false},
    {IOCTL, REFUSAL, ENOMEM, "ENOMEM", false},
    {IOCTL, REFUSAL, EBADF, "EBADF", false},
    {IOCTL, NO_EFFECT, 0, "success without effect", false},
    {IOCTL, NOTHING, 0, "no page holds memory", false},
    {IOCTL, WILD, 0, "pages elsewhere", false},
    {IOCTL, CROSSED, 0, "pages in disorder", false},
    {IOCTL, TOO_MANY, 0, "too many pages", false},
    {IOCTL, BEYOND, 0, "pages behind the end", false},
    {IOCTL, LONG, 0, "a page more", false},
    {IOCTL, LATE, 0, "the first page left out", false},
    {PREAD, REFUSAL, EIO, "EIO", false},
    {PREAD, REFUSAL, EINTR, "EINTR", false},
    {PREAD, NO_EFFECT, 0, "success without effect", false},
    {PREAD, NOTHING, 0, "another file", true},
    {PREAD, SHORT, 0, "half of it", false},
    {CLOSE, REFUSAL, EIO, "EIO", false},
    {MADVISE, REFUSAL, EPERM, "EPERM", false},
    {MADVISE, REFUSAL, EINVAL, "EINVAL", false},
    {MADVISE, REFUSAL, EAGAIN, "EAGAIN", false},
    {MADVISE, NO_EFFECT, 0, "success without effect", false},
    {MADVISE, SHORT, 0, "half of it", false},
};

/* Exit status: 1: wrong; 2: there was no n-th call. */
static int
run_fault(const struct kernel *v)
{
	(void)v;
	if (zero_all() != 0)
		return 1;
	return k.n[k.call] < k.nth ? 2 : 0;
}

/* 0, 1 or 2 as run_fault; 3: it died. */
static int
status_of(const struct kernel *v)
{
	int st;
	pid_t pid = fork();

	if (pid == 0) {
		probe_child_begin(30);
		boot(v);
		_exit(run_fault(v));
	}
	if (waitpid(pid, &st, 0) != pid || !WIFEXITED(st))
		return 3;
	return WEXITSTATUS(st);
}

/* Returns the number of calls that there were to go wrong. */
static unsigned
test_fault(const struct kernel *v, const struct fault *f, bool *held)
{
	unsigned last = 0;

	k.call = f->call;
	k.lie = f->lie;
	k.err = f->err;
	for (k.nth = 1; k.nth < 1000; k.nth += k.nth < 8 ? 1 : k.nth / 2) {
		bool there = true;

		for (int good = f->for_good; good < 2; good++) {
			int st;

			k.for_good = good != 0;
			st = status_of(v);
			there = there && st != 2;
			if (st == 1 || st == 3) {
				tap_diag("%s: %s, %s %s number %u: %s", v->name,
				    call_name[f->call], f->name,
				    good ? "from" : "at", k.nth,
				    st == 1 ? "not zero" : "died");
				*held = false;
			}
		}
		if (!there)
			break;
		last = k.nth;
	}
	k.lie = TRUTH;
	return last;
}

static void
test_faults(const struct kernel *v)
{
	bool held = true;
	unsigned n = 0;

	for (size_t i = 0; i < COUNT(faults); i++)
		n += test_fault(v, &faults[i], &held) != 0;
	tap_ok(held, "a kernel %s: zero, whatever goes wrong, in %u ways",
	    v->name, n);
}

/* ------------------------------------------------------------------ */
/* What is written, and what holds memory after, where the kernel is true */

static int
costs_what_is_touched(const struct kernel *v)
{
	static const size_t size[] = {256, 1000, 1300, 3000};
	size_t unit = v->page / PAGE;

	for (size_t s = 0; s < COUNT(size); s++)
		for (int w = 0; w < N_PATTERNS; w++) {
			size_t n = size[s] / unit * unit;
			struct outcome o = zero_block(n, (enum pattern)w);
			/* A touch is of one page of the kernel. */
			size_t most = o.touched * unit;

			if (!o.zero)
				return 1;
			/* And the witness, once a question. */
			if (o.written > (most * 2 + 2 * unit) * PAGE ||
			    o.written > n * PAGE * 11 / 10)
				return 2;
			if (o.resident > most + unit)
				return 3;
			if (v->has_scan && o.written < o.touched * PAGE)
				return 4;
		}
	return k.n_open != 0 || k.n_wrong != 0;
}

/* What was cleared and not touched since is not cleared time and again. */
static int
gives_up_in_vain(const struct kernel *v)
{
	static const enum pattern touched[] = {FULL, FIRST, EVERY_2ND};

	for (size_t i = 0; i < COUNT(touched); i++)
		for (size_t n = i < 2 ? 256 : 1024; n <= 2048; n *= 2) {
			/* Single pages: so many until it is found out. */
			size_t few = i < 2 ? 2 : 100;
			struct outcome o = zero_times(n, touched[i], 2, false);

			if (!o.zero || o.resident > n / 4)
				return 1;
			o = zero_times(n, touched[i], 3, false);
			if (!o.zero || o.written > few * PAGE ||
			    o.resident > n / 4)
				return 2;
			/* Unless it is to stay. */
			o = zero_times(n, touched[i], 2, true);
			if (!o.zero || o.resident < o.touched)
				return 3;
		}
	return k.n_open != 0 || k.n_wrong != 0 || v == NULL;
}

/* What is refused is not asked for again within a block. */
static int
drops_once(const struct kernel *v)
{
	struct outcome o = zero_times(2048, EVERY_2ND, 2, false);

	(void)v;
	return !o.zero || k.n[MADVISE] != 1;
}

/* Other pages each time: the cost follows them, and not their sum. */
static int
follows_what_is_touched(const struct kernel *v)
{
	enum { N = 2500, TOUCH = 25, ROUNDS = 400 };
	uint64_t rng = 1;
	uint64_t before;
	unsigned char *p = mmap(NULL, (size_t)N * PAGE, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return 9;
	k.base = p;
	before = eddy_os_zero_counts().written;
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < TOUCH; i++)
			p[tap_random(&rng) % N * PAGE + 3000] = 1;
		eddy_os_zero(p, (size_t)N * PAGE, false);
	}
	before = eddy_os_zero_counts().written - before;
	tap_diag("%s: %.1f pages are written for one touched", v->name,
	    (double)before / PAGE / ROUNDS / TOUCH);
	/* Without giving up it would be 60. */
	return before / PAGE > (uint64_t)ROUNDS * TOUCH * 12;
}

/* What is in use stays warm. */
static int
keeps_what_is_touched(const struct kernel *v)
{
	enum { N = 1500 };
	static unsigned char in[N];
	unsigned char *p = mmap(NULL, (size_t)N * PAGE, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t there = 0;

	(void)v;
	if (p == MAP_FAILED)
		return 9;
	k.base = p;
	for (int round = 0; round < 5; round++) {
		for (size_t i = 0; i < N; i++)
			p[i * PAGE + i * 7 % PAGE] = 1;
		eddy_os_zero(p, (size_t)N * PAGE, false);
	}
	if (mincore(p, (size_t)N * PAGE, in) != 0)
		return 9;
	for (size_t i = 0; i < N; i++)
		there += in[i] & 1;
	return there != N || k.n[MADVISE] != 0;
}

static int
asks_without_first_thread(const struct kernel *v)
{
	struct outcome o;

	(void)v;
	k.headless = true;
	o = zero_block(1300, LAST);
	return !o.zero || o.resident > 4 || k.n[IOCTL] == 0 || k.n_open != 0 ||
	       k.n_wrong != 0;
}

static int
drops_by_size(const struct kernel *v)
{
	struct outcome small = zero_block(1000, EMPTY);
	struct outcome large = zero_block(1100, EMPTY);

	unsigned n = k.n[MADVISE];
	struct outcome kept = zero_times(1100, FIRST, 1, true);

	(void)v;
	if (!kept.zero || k.n[MADVISE] != n)
		return 2;
	return !small.zero || !large.zero || small.written != 1000 * PAGE ||
	       large.written != 0 || large.resident > 1;
}

static int
asks_no_more(const struct kernel *v)
{
	unsigned n;

	(void)zero_block(300, FULL);
	n = k.n[IOCTL];
	(void)zero_block(300, FULL);
	if (v->has_scan)
		return k.n[IOCTL] == n;
	if (k.n[IOCTL] != n)
		return 2;
	n = k.n[PREAD];
	(void)zero_block(300, FULL);
	return v->has_pagemap ? k.n[PREAD] == n : k.n[PREAD] != n;
}

/* What may go better another time is tried again. */
static int
asks_again(const struct kernel *v)
{
	enum call call = v->has_scan ? IOCTL : PREAD;

	/* Once no other call is made. */
	(void)zero_block(300, FULL);
	k.call = call;
	k.lie = REFUSAL;
	k.err = ENOMEM;
	k.nth = k.n[call] + 1;
	(void)zero_block(300, FULL);
	(void)zero_block(300, FULL);
	return k.n[call] <= k.nth;
}

/* True: it is zero. */
static int
drop_is_true(const struct kernel *v)
{
	static const enum lie lies[] = {REFUSAL, NO_EFFECT, SHORT, TRUTH};
	unsigned char *p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)v;
	if (p == MAP_FAILED)
		return 9;
	k.base = p;
	k.call = MADVISE;
	k.for_good = true;
	k.err = EINVAL;
	for (size_t i = 0; i < COUNT(lies); i++) {
		k.lie = lies[i];
		memset(p, 0x5a, 4 * PAGE);
		if (eddy_os_drop(p, 4 * PAGE) != (lies[i] == TRUTH))
			return 1;
	}
	if (eddy_os_drop(p + 1, PAGE) || eddy_os_drop(p, PAGE - 1) ||
	    eddy_os_drop(p, 0))
		return 2;
	for (size_t i = 0; i < 4 * PAGE; i++)
		if (p[i] != 0)
			return 3;
	return 0;
}

/* Nor does the look at it leave a page there, be it the page of zeros. */
static int
drop_leaves_nothing(const struct kernel *v)
{
	enum { N = 2 * 512, ROOM = N + 512 };
	static unsigned char in[N];
	unsigned char *p = mmap(NULL, ROOM * PAGE, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	(void)v;
	if (p == MAP_FAILED)
		return 9;
	p += -(uintptr_t)p & (512 * PAGE - 1);
	k.base = p;
	/* Without huge pages the same is shown of a small one. */
	(void)madvise(p, N * PAGE, MADV_HUGEPAGE);
	memset(p, 0x5a, N * PAGE);
	if (!eddy_os_drop(p, N * PAGE))
		return 1;
	if (mincore(p, N * PAGE, in) != 0)
		return 9;
	for (size_t i = 0; i < N; i++)
		if ((in[i] & 1) != 0)
			return 2;
	/* The second call may fail, or lie: all is zero before it. */
	k.call = MADVISE;
	k.err = EINVAL;
	for (int i = 0; i < 2; i++) {
		k.lie = i == 0 ? REFUSAL : NO_EFFECT;
		k.nth = k.n[MADVISE] + 2;
		memset(p, 0x5a, N * PAGE);
		if (!eddy_os_drop(p, N * PAGE) || k.n[MADVISE] != k.nth)
			return 3;
		for (size_t at = 0; at < N * PAGE; at++)
			if (p[at] != 0)
				return 4;
	}
	return 0;
}

/* A block of 400 pages; what lies in the middle is changed before. */
static int
zero_odd(size_t from, size_t n, bool *what, unsigned char fill)
{
	unsigned char *p = mmap(NULL, 400 * PAGE, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return 9;
	k.base = p;
	memset(k.swapped, 0, sizeof k.swapped);
	memset(k.zero, 0, sizeof k.zero);
	memset(p + from * PAGE, fill, n * PAGE);
	memset(what + from, true, n);
	eddy_os_zero(p, 400 * PAGE, false);
	for (size_t i = 0; i < 400 * PAGE; i++)
		if (p[i] != 0)
			return 1;
	return 0;
}

static int
swapped_counts_as_written(const struct kernel *v)
{
	unsigned n = k.n[MADVISE];
	uint64_t written = eddy_os_zero_counts().written;

	(void)v;
	/* Few are read back and written, many are dropped. */
	if (zero_odd(100, 3, k.swapped, 0x5a) != 0 || k.n[MADVISE] != n)
		return 1;
	if (eddy_os_zero_counts().written - written < 3 * PAGE)
		return 2;
	if (zero_odd(100, 100, k.swapped, 0x5a) != 0)
		return 3;
	if (k.n[MADVISE] == n)
		return 4;
	return zero_odd(0, 400, k.swapped, 0x5a);
}

static int
zero_page_is_left_alone(const struct kernel *v)
{
	uint64_t written = eddy_os_zero_counts().written;

	(void)v;
	if (zero_odd(100, 100, k.zero, 0) != 0)
		return 1;
	return eddy_os_zero_counts().written - written > PAGE;
}

/* Ends that are not at OS pages, and what lies beside them. */
static int
keeps_its_bounds(const struct kernel *v)
{
	enum { N = 2 * MIB };
	static const size_t from[] = {0, 1, 4096, 5000, 60000};
	static const size_t size[] = {
	    0, 1, 4095, 4097, 200000, 1048576, 1048577, 1500000, 1900000};
	unsigned char *p = mmap(NULL, N, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	(void)v;
	if (p == MAP_FAILED)
		return 9;
	k.base = p;
	for (size_t f = 0; f < COUNT(from); f++)
		for (size_t s = 0; s < 2 * COUNT(size); s++) {
			size_t n = size[s / 2];
			size_t end = from[f] + n;

			memset(p, 0x5a, N);
			if (s % 2 == 0)
				eddy_os_zero(p + from[f], n, f % 2 != 0);
			else
				eddy_os_give_back(p + from[f], n);
			for (size_t i = 0; i < N; i++)
				if (p[i] !=
				    (i < from[f] || i >= end ? 0x5a : 0))
					return 1;
		}
	return k.n_wrong != 0;
}

int
main(int argc, char **argv)
{
	const struct kernel *scans = &kernels[NEW];
	const struct kernel *reads = &kernels[READS];
	const struct kernel *blind = &kernels[BLIND];

	(void)argc;
	tap_begin(argv);
	probe_small_pages();
	tap_guard(150);
	if (sysconf(_SC_PAGESIZE) != PAGE)
		tap_skip_all("the kernel made up has pages of 4 KiB or more");
	for (size_t i = 0; i < COUNT(kernels); i++)
		tap_ok(in_child(keeps_its_bounds, &kernels[i]),
		    "a kernel %s: what lies beside is not touched",
		    kernels[i].name);
	tap_ok(in_child(costs_what_is_touched, scans),
	    "what was not touched is not written, and holds no memory");
	tap_ok(in_child(costs_what_is_touched, reads),
	    "nor where the entries of pagemap are read");
	tap_ok(in_child(costs_what_is_touched, &kernels[BIG]),
	    "nor with pages of 64 KiB");
	tap_ok(in_child(costs_what_is_touched, &kernels[BIG + 1]),
	    "nor with entries of 16 KiB");
	tap_ok(in_child(gives_up_in_vain, scans) &&
		   in_child(gives_up_in_vain, reads),
	    "what is not touched again is not cleared again and again");
	tap_ok(in_child(drops_once, &kernels[LOCKED]),
	    "nor is asked again and again what is refused");
	tap_ok(in_child(follows_what_is_touched, scans) &&
		   in_child(follows_what_is_touched, reads),
	    "where other pages are touched each time, the cost follows them");
	tap_ok(in_child(keeps_what_is_touched, scans) &&
		   in_child(keeps_what_is_touched, reads),
	    "what is touched each time stays warm");
	tap_ok(in_child(asks_without_first_thread, scans),
	    "a process without its first thread asks for itself");
	tap_ok(in_child(drops_by_size, blind),
	    "where nothing can be asked, 4 MiB "
	    "are dropped and less is written");
	tap_ok(in_child(asks_no_more, scans) && in_child(asks_no_more, reads) &&
		   in_child(asks_no_more, blind),
	    "what the kernel does not know it is not asked again");
	tap_ok(in_child(asks_again, scans) && in_child(asks_again, reads),
	    "what it may know another time it is asked again");
	tap_ok(in_child(drop_is_true, scans),
	    "what is said to be dropped is zero");
	tap_ok(in_child(drop_leaves_nothing, scans),
	    "and not there, nor is what was looked at");
	tap_ok(in_child(swapped_counts_as_written, scans) &&
		   in_child(swapped_counts_as_written, reads),
	    "swapped pages become zero, many of them unread");
	tap_ok(in_child(zero_page_is_left_alone, scans),
	    "pages that were only read are not written");
	for (size_t i = 0; i < N_FAULTY; i++)
		test_faults(&kernels[i]);
	return tap_end();
}
