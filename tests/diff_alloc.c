/* SPDX-License-Identifier: BSD-2-Clause */
/* diff_alloc.c - malloc's family and mallocx's. */
#include "diff.h"

#include <malloc.h>
#include <stdlib.h>

struct block diff_blocks[N_BLOCKS];

static char args[256];
static char answer[512];
static unsigned n_ids;

/* ------------------------------------------------------------------ */
/* Contents */

/* What is at a place of a block, whatever its size. */
static unsigned char
content(unsigned id, size_t at)
{
	return (unsigned char)(id * 31 + at * 7 + (at >> 8) + 1);
}

/* Places that are written: the ends, and some in between. */
static size_t
next_place(size_t at, size_t size)
{
	if (at + 1 < 64 || at + 65 >= size)
		return at + 1;
	at += 509;
	return at < size - 64 ? at : size - 64;
}

static void
fill(struct block *b)
{
	b->id = ++n_ids;
	for (size_t at = 0; at < b->size; at = next_place(at, b->size))
		b->p[at] = content(b->id, at);
}

/* Whether the first n bytes are still there. */
static bool
is_kept(const struct block *b, const unsigned char *p, size_t n)
{
	for (size_t at = 0; at < b->size && at < n;
	     at = next_place(at, b->size))
		if (p[at] != content(b->id, at))
			return false;
	return true;
}

/* Whether bytes are 0: all of a small block's, of a large one's some. */
static bool
is_zero(const unsigned char *p, size_t from, size_t to)
{
	size_t by = to - from > 65536 ? 509 : 1;

	for (size_t i = from; i < to; i += i + 64 < to ? by : 1)
		if (p[i] != 0)
			return false;
	return true;
}

/* ------------------------------------------------------------------ */
/* Sizes */

static size_t
any_size(void)
{
	unsigned lg = diff_below(100);

	if (lg < 60)
		lg = 4 + diff_below(10);
	else if (lg < 92)
		lg = 10 + diff_below(9);
	else
		lg = 18 + diff_below(diff_one_in(10) ? 7 : 4);
	/* Often at the end of a class. */
	if (diff_one_in(4))
		return nallocx(1 + diff_random() % ((size_t)1 << lg), 0) +
		       diff_below(2);
	return 1 + diff_random() % ((size_t)1 << lg);
}

/* More than there is. */
static size_t
too_much(void)
{
	static const size_t sizes[] = {(size_t)1 << 50, (size_t)1 << 60,
	    0x7000000000000000, 0x7000000000000001, PTRDIFF_MAX,
	    (size_t)PTRDIFF_MAX + 1, SIZE_MAX - 4096, SIZE_MAX};

	return sizes[diff_below(COUNT(sizes))];
}

/* ------------------------------------------------------------------ */
/* Counts of the thread, now and then, around a call */

static bool counting;
static uint64_t allocated;
static uint64_t deallocated;

static void
count_begin(void)
{
	counting = diff_one_in(8);
	if (!counting)
		return;
	allocated = diff_get("thread.allocated", 8);
	deallocated = diff_get("thread.deallocated", 8);
}

/* in_place: a block may have become another without a free, and has grown. */
static void
count_end(const char *key, bool in_place, uint64_t grown)
{
	uint64_t a;
	uint64_t d;

	if (!counting)
		return;
	a = diff_get("thread.allocated", 8) - allocated;
	d = diff_get("thread.deallocated", 8) - deallocated;
	diff_rule(RULE_THREAD_COUNTS);
	if (in_place)
		(void)snprintf(answer, sizeof answer, "net=%lld",
		    (long long)(a - d - grown));
	else
		(void)snprintf(answer, sizeof answer,
		    "allocated=%llu deallocated=%llu", (unsigned long long)a,
		    (unsigned long long)d);
	diff_line("thread.allocated", key, answer);
}

/* ------------------------------------------------------------------ */
/* Flags */

struct flags {
	int bits;
	size_t align;
	bool zero;
	bool none; /* no cache, or one of the program */
	char text[96];
};

static void
any_align(struct flags *f)
{
	unsigned lg = 0;

	if (diff_one_in(3))
		lg = diff_below(diff_one_in(8) ? 22 : 13);
	f->align = (size_t)1 << lg;
	f->bits |= diff_one_in(2) ? MALLOCX_LG_ALIGN(lg)
				  : MALLOCX_ALIGN((size_t)1 << lg);
}

/* For a block of where and k, as in flags_for. */
static void
any_tcache(struct flags *f, enum where w, unsigned where_k)
{
	bool must = w == MORTAL;
	unsigned k = must ? N_SHARED + where_k : diff_below(N_SHARED);
	unsigned what = diff_below(must ? 2 : 4);
	size_t at = strlen(f->text);

	if (what == 1 && diff_tcaches[k] >= 0) {
		f->bits |= MALLOCX_TCACHE(diff_tcaches[k]);
		f->none = true;
		diff_rule(RULE_TCACHE_ID);
		(void)snprintf(
		    f->text + at, sizeof f->text - at, " tcache=%u", k);
	} else if (what == 0 || must) {
		f->bits |= MALLOCX_TCACHE_NONE;
		f->none = true;
		(void)snprintf(
		    f->text + at, sizeof f->text - at, " tcache=none");
	}
}

/* For a block of an arena: w, k; sets what arena and cache may be. */
static void
flags_for(struct flags *f, enum where w, unsigned k)
{
	size_t at;

	memset(f, 0, sizeof *f);
	any_align(f);
	f->zero = diff_one_in(3);
	if (f->zero)
		f->bits |= MALLOCX_ZERO;
	(void)snprintf(
	    f->text, sizeof f->text, "align=%zu zero=%d", f->align, f->zero);
	any_tcache(f, w, k);
	at = strlen(f->text);
	if (w == MORTAL) {
		f->bits |= MALLOCX_ARENA(diff_mortal[k]);
		(void)snprintf(
		    f->text + at, sizeof f->text - at, " arena=mortal%u", k);
	} else if (w == STEADY) {
		f->bits |= MALLOCX_ARENA(diff_steady[k]);
		(void)snprintf(
		    f->text + at, sizeof f->text - at, " arena=steady%u", k);
	} else if (diff_one_in(4)) {
		f->bits |= MALLOCX_ARENA(0);
		(void)snprintf(f->text + at, sizeof f->text - at, " arena=0");
	}
}

/* ------------------------------------------------------------------ */
/* Blocks */

static struct block *
find(bool used, enum where w)
{
	unsigned i = diff_below(N_BLOCKS);

	for (unsigned n = 0; n < N_BLOCKS; n++, i = (i + 1) % N_BLOCKS) {
		struct block *b = &diff_blocks[i];

		if ((b->p != NULL) == used && (!used || b->where == w))
			return b;
	}
	return NULL;
}

static struct block *
any_block(void)
{
	unsigned i = diff_below(N_BLOCKS);

	for (unsigned n = 0; n < N_BLOCKS; n++, i = (i + 1) % N_BLOCKS)
		if (diff_blocks[i].p != NULL)
			return &diff_blocks[i];
	return NULL;
}

struct block *
diff_alloc_any(bool large)
{
	unsigned i = diff_below(N_BLOCKS);

	for (unsigned n = 0; n < N_BLOCKS; n++, i = (i + 1) % N_BLOCKS)
		if (diff_blocks[i].p != NULL &&
		    (diff_blocks[i].usable >= LARGE) == large)
			return &diff_blocks[i];
	return NULL;
}

void
diff_alloc_forget(unsigned k)
{
	for (unsigned i = 0; i < N_BLOCKS; i++)
		if (diff_blocks[i].where == MORTAL && diff_blocks[i].k == k)
			diff_blocks[i].p = NULL;
}

/* A block that a call has made, and what is to be said of it. */
static void
take(struct block *b, void *p, size_t size, size_t align, bool zero,
    const char *key)
{
	int err = errno;

	b->p = p;
	b->size = size;
	if (p == NULL) {
		(void)snprintf(answer, sizeof answer, "NULL errno=%d", err);
		diff_line(key, args, answer);
		return;
	}
	b->usable = malloc_usable_size(p);
	if (zero)
		diff_rule(RULE_ZEROED);
	(void)snprintf(answer, sizeof answer,
	    "usable=%zu aligned=%d zero=%d errno=%d", b->usable,
	    (uintptr_t)p % align == 0, zero ? is_zero(b->p, 0, b->usable) : 1,
	    err);
	diff_line(key, args, answer);
	/* All of it is the caller's. */
	if (b->usable != 0)
		b->p[b->usable - 1] = 0;
	fill(b);
}

static void
drop(struct block *b)
{
	if (b->where == MORTAL)
		dallocx(b->p, MALLOCX_TCACHE_NONE);
	else
		free(b->p);
	b->p = NULL;
}

/* ------------------------------------------------------------------ */
/* malloc's family */

/* The least that a pointer of malloc is aligned to. */
static size_t
natural(size_t size)
{
	return size <= 8 ? 8 : 16;
}

static void
do_malloc(struct block *b)
{
	size_t size = diff_one_in(30) ? 0 : any_size();
	void *p;

	if (size == 0)
		diff_rule(RULE_ZERO_SIZE);
	(void)snprintf(args, sizeof args, "size=%zu", size);
	b->where = AUTO;
	count_begin();
	errno = ERRNO;
	p = malloc(size);
	take(b, p, size, natural(size), false, "malloc");
	count_end("malloc", false, 0);
}

static void
do_calloc(struct block *b)
{
	size_t n = diff_one_in(20) ? 0 : 1 + diff_below(20);
	size_t size = diff_one_in(20) ? 0 : any_size() / (n + 1) + 1;
	void *p;

	if (n * size == 0)
		diff_rule(RULE_ZERO_SIZE);
	(void)snprintf(args, sizeof args, "n=%zu size=%zu", n, size);
	b->where = AUTO;
	count_begin();
	errno = ERRNO;
	p = calloc(n, size);
	take(b, p, n * size, natural(n * size), true, "calloc");
	count_end("calloc", false, 0);
}

static void
do_memalign(struct block *b)
{
	size_t align = (size_t)1 << diff_below(diff_one_in(6) ? 22 : 13);
	/* jemalloc's memalign and valloc forget the alignment of nothing. */
	unsigned how = diff_below(4);
	size_t size = diff_one_in(20) && how != 0 && how != 2 ? 0 : any_size();
	const char *key = "aligned_alloc";
	void *p = NULL;
	int r;

	if (size == 0)
		diff_rule(RULE_ZERO_SIZE);
	(void)snprintf(args, sizeof args, "align=%zu size=%zu", align, size);
	b->where = AUTO;
	count_begin();
	errno = ERRNO;
	switch (how) {
	case 0:
		key = "memalign";
		p = memalign(align, size);
		break;
	case 1:
		key = "posix_memalign";
		p = b;
		r = posix_memalign(&p, align, size);
		if (r == 0)
			break;
		diff_rule(RULE_MEMALIGN_WRONG);
		(void)snprintf(answer, sizeof answer, "r=%d same=%d errno=%d",
		    r, p == b, errno);
		diff_line(key, args, answer);
		return;
	case 2:
		key = "valloc";
		align = PAGE;
		p = valloc(size);
		break;
	default:
		p = aligned_alloc(align, size);
	}
	take(b, p, size, align, false, key);
	count_end(key, false, 0);
}

static void
do_realloc(struct block *b)
{
	struct block old = *b;
	size_t size = diff_one_in(12) ? 0 : any_size();
	void *p;
	bool kept;
	int err;

	(void)snprintf(args, sizeof args, "old=%zu size=%zu", old.size, size);
	count_begin();
	errno = ERRNO;
	p = realloc(old.p, size);
	err = errno;
	if (size == 0) {
		diff_rule(RULE_REALLOC_ZERO);
		b->p = NULL;
		(void)snprintf(
		    answer, sizeof answer, "NULL=%d errno=%d", p == NULL, err);
		diff_line("realloc", args, answer);
		if (p != NULL)
			free(p);
		count_end("realloc to 0", false, 0);
		return;
	}
	diff_rule(RULE_KEPT);
	kept = p != NULL && is_kept(&old, p, size);
	b->p = p;
	b->size = size;
	b->usable = p != NULL ? malloc_usable_size(p) : 0;
	(void)snprintf(answer, sizeof answer, "usable=%zu kept=%d errno=%d",
	    b->usable, kept, err);
	diff_line("realloc", args, answer);
	count_end("realloc", true, b->usable - old.usable);
	if (p != NULL)
		fill(b);
}

static void
do_free(struct block *b)
{
	struct flags f = {0};
	const char *key = "free";
	bool kept = is_kept(b, b->p, b->size);
	unsigned how = diff_below(b->where == MORTAL ? 2 : 3);
	size_t most;
	size_t size;

	diff_rule(RULE_KEPT);
	any_tcache(&f, b->where, b->k);
	most = nallocx(b->size != 0 ? b->size : 1, 0);
	size = b->size +
	       diff_random() % ((most > b->size ? most - b->size : 0) + 1);
	(void)snprintf(
	    args, sizeof args, "size=%zu%s", b->size, how != 2 ? f.text : "");
	count_begin();
	errno = ERRNO;
	if (how == 2) {
		free(b->p);
	} else if (how == 1 && b->size != 0 && most == b->usable) {
		key = "sdallocx";
		sdallocx(b->p, size, f.bits);
	} else {
		key = "dallocx";
		dallocx(b->p, f.bits);
	}
	(void)snprintf(answer, sizeof answer, "kept=%d errno=%d", kept, errno);
	b->p = NULL;
	diff_line(key, args, answer);
	count_end(key, false, 0);
}

/* ------------------------------------------------------------------ */
/* mallocx's family */

static void
do_mallocx(struct block *b)
{
	size_t size = any_size();
	struct flags f;
	size_t n;
	void *p;

	b->where = AUTO;
	b->k = diff_below(N_MORTAL);
	if (diff_one_in(3) && diff_mortal[b->k] >= 0) {
		b->where = MORTAL;
	} else if (diff_one_in(3)) {
		b->where = STEADY;
		b->k %= N_STEADY;
	}
	flags_for(&f, b->where, b->k);
	(void)snprintf(args, sizeof args, "size=%zu %s", size, f.text);
	n = nallocx(size, f.bits);
	count_begin();
	errno = ERRNO;
	p = mallocx(size, f.bits);
	take(b, p, size, f.align, f.zero, "mallocx");
	count_end("mallocx", false, 0);
	(void)snprintf(answer, sizeof answer, "nallocx=%zu sallocx=%zu", n,
	    p != NULL ? sallocx(p, f.bits) : 0);
	diff_line("nallocx", args, answer);
}

static void
do_rallocx(struct block *b)
{
	struct block old = *b;
	size_t size = any_size();
	struct flags f;
	bool zero = true;
	bool kept;
	void *p;
	int err;

	flags_for(&f, old.where, old.k);
	(void)snprintf(
	    args, sizeof args, "old=%zu size=%zu %s", old.size, size, f.text);
	count_begin();
	errno = ERRNO;
	p = rallocx(old.p, size, f.bits);
	err = errno;
	if (p == NULL) {
		(void)snprintf(answer, sizeof answer, "NULL errno=%d", err);
		diff_line("rallocx", args, answer);
		return;
	}
	diff_rule(RULE_KEPT);
	kept = is_kept(&old, p, size);
	b->p = p;
	b->size = size;
	b->usable = sallocx(p, 0);
	if (f.zero && b->usable > old.usable) {
		diff_rule(RULE_GROWN_ZEROED);
		zero = is_zero(p, old.usable, b->usable);
	}
	(void)snprintf(answer, sizeof answer,
	    "usable=%zu aligned=%d kept=%d zero=%d errno=%d", b->usable,
	    (uintptr_t)p % f.align == 0, kept, zero, err);
	diff_line("rallocx", args, answer);
	count_end("rallocx", true, b->usable - old.usable);
	fill(b);
}

/*
 * A small block's answer is its size.  Whether a large one can grow is its
 * neighbours' to say: the answer is one of some, and the block then goes.
 */
static void
do_xallocx(struct block *b)
{
	struct block old = *b;
	size_t size = any_size();
	size_t extra = diff_one_in(2) ? 0 : any_size();
	int flags = diff_one_in(3) ? MALLOCX_ZERO : 0;
	size_t min;
	size_t max;
	size_t r;
	bool zero;
	bool kept;
	int err;

	if (diff_one_in(20))
		size = (size_t)1 << 62 | diff_random() >> 3;
	if (diff_one_in(20))
		extra = SIZE_MAX - size;
	(void)snprintf(args, sizeof args, "old=%zu size=%zu extra=%zu zero=%d",
	    old.usable, size, extra, flags != 0);
	min = nallocx(size, 0);
	max = nallocx(size + extra, 0);
	if (max == 0)
		max = 0x7000000000000000;
	count_begin();
	errno = ERRNO;
	r = xallocx(old.p, size, extra, flags);
	err = errno;
	zero = flags == 0 || r <= old.usable || is_zero(old.p, old.usable, r);
	kept = is_kept(&old, old.p, r);
	if (old.usable < LARGE) {
		diff_rule(RULE_XALLOCX_SMALL);
		(void)snprintf(answer, sizeof answer, "r=%zu kept=%d errno=%d",
		    r, kept, err);
	} else if (min != 0 && old.usable >= max && max >= LARGE) {
		diff_rule(RULE_XALLOCX_SHRINK);
		(void)snprintf(answer, sizeof answer, "r=%zu kept=%d errno=%d",
		    r, kept, err);
	} else {
		diff_rule(RULE_XALLOCX_LARGE);
		(void)snprintf(answer, sizeof answer,
		    "fits=%d kept=%d zero=%d same=%d errno=%d",
		    r == old.usable || (min != 0 && r >= min && r <= max), kept,
		    zero, r == sallocx(old.p, 0), err);
	}
	diff_line("xallocx", args, answer);
	b->usable = r;
	if (r < b->size)
		b->size = r;
	count_end("xallocx", true, r - old.usable);
	if (old.usable >= LARGE)
		drop(b);
}

/* ------------------------------------------------------------------ */
/* What cannot be */

static void
answer_null(const char *key, const void *p)
{
	(void)snprintf(
	    answer, sizeof answer, "NULL=%d errno=%d", p == NULL, errno);
	diff_line(key, args, answer);
}

static void
no_memory(void)
{
	size_t size = too_much();
	struct block *b = any_block();
	struct flags f;
	void *p = NULL;

	(void)snprintf(args, sizeof args, "size=%zu", size);
	errno = ERRNO;
	switch (diff_below(7)) {
	case 0:
		diff_rule(RULE_NO_MEMORY);
		answer_null("malloc", malloc(size));
		break;
	case 1:
		diff_rule(RULE_NO_MEMORY);
		if (diff_one_in(2))
			size = (size_t)1 << 40;
		answer_null("calloc", calloc(size, (size_t)1 << 30));
		break;
	case 2:
		if (b == NULL)
			return;
		diff_rule(RULE_NO_MEMORY);
		answer_null("realloc", realloc(b->p, size));
		break;
	case 3:
		flags_for(&f, AUTO, 0);
		diff_rule(RULE_NO_MEMORY_X);
		(void)snprintf(args, sizeof args, "size=%zu %s", size, f.text);
		errno = ERRNO;
		answer_null("mallocx", mallocx(size, f.bits));
		break;
	case 4:
		if (b == NULL)
			return;
		flags_for(&f, b->where, b->k);
		diff_rule(RULE_NO_MEMORY_X);
		(void)snprintf(args, sizeof args, "size=%zu %s", size, f.text);
		errno = ERRNO;
		answer_null("rallocx", rallocx(b->p, size, f.bits));
		break;
	case 5:
		diff_rule(RULE_NO_MEMORY_ALIGN);
		answer_null(
		    "memalign", memalign((size_t)1 << diff_below(13), size));
		break;
	default:
		diff_rule(RULE_NO_MEMORY_ALIGN);
		p = args;
		(void)snprintf(answer, sizeof answer, "r=%d same=%d errno=%d",
		    posix_memalign(&p, (size_t)8 << diff_below(12), size),
		    p == args, errno);
		diff_line("posix_memalign", args, answer);
	}
	/* The old block is as it was. */
	if (b != NULL && b->p != NULL && !is_kept(b, b->p, b->size))
		diff_line("no memory", args, "contents lost");
}

static void
bad_alignment(void)
{
	static const size_t aligns[] = {
	    0, 1, 2, 3, 4, 5, 6, 7, 12, 24, 48, 4097};
	size_t align = aligns[diff_below(COUNT(aligns))];
	size_t size = any_size();
	void *p = args;
	int r;

	(void)snprintf(args, sizeof args, "align=%zu size=%zu", align, size);
	errno = ERRNO;
	if (diff_one_in(2)) {
		diff_rule(RULE_MEMALIGN_WRONG);
		r = posix_memalign(&p, align, size);
		(void)snprintf(answer, sizeof answer, "r=%d same=%d errno=%d",
		    r, p == args, errno);
		diff_line("posix_memalign", args, answer);
		if (r == 0)
			free(p);
	} else {
		diff_rule(RULE_ALIGN_WRONG);
		p = aligned_alloc(align, size);
		answer_null("aligned_alloc", p);
		free(p);
	}
}

static void
sizes(void)
{
	size_t size = diff_one_in(3) ? too_much() : any_size();
	int lg = (int)diff_below(diff_one_in(3) ? 64 : 23);
	int flags = MALLOCX_LG_ALIGN(lg) | (diff_one_in(3) ? MALLOCX_ZERO : 0);
	size_t r;

	(void)snprintf(args, sizeof args, "size=%zu lg=%d", size, lg);
	errno = ERRNO;
	r = nallocx(size, flags);
	if (r == 0)
		diff_rule(RULE_NALLOCX_ZERO);
	(void)snprintf(answer, sizeof answer, "r=%zu errno=%d", r, errno);
	diff_line("nallocx", args, answer);
}

/* NULL is no block. */
static void
nothing(void)
{
	void *p;
	size_t n;

	errno = ERRNO;
	(void)snprintf(args, sizeof args, "NULL");
	switch (diff_below(3)) {
	case 0:
		free(NULL);
		(void)snprintf(answer, sizeof answer, "errno=%d", errno);
		diff_line("free", args, answer);
		break;
	case 1:
		n = malloc_usable_size(NULL);
		(void)snprintf(answer, sizeof answer, "r=%zu", n);
		diff_line("malloc_usable_size", args, answer);
		break;
	default:
		p = realloc(NULL, 100);
		(void)snprintf(answer, sizeof answer, "usable=%zu errno=%d",
		    malloc_usable_size(p), errno);
		diff_line("realloc", args, answer);
		free(p);
	}
}

void
diff_alloc_step(void)
{
	unsigned what = diff_below(100);
	enum where w = (enum where)diff_below(MORTAL + 1);
	struct block *large = diff_alloc_any(true);
	struct block *b;

	if (what < 40) {
		b = find(false, AUTO);
		if (b == NULL)
			b = any_block(), what = 60;
	} else if (what < 93) {
		b = find(true, w);
	} else {
		b = NULL;
	}
	if (b == NULL && what < 93)
		return;
	if (what < 10)
		do_malloc(b);
	else if (what < 16)
		do_calloc(b);
	else if (what < 22)
		do_memalign(b);
	else if (what < 40)
		do_mallocx(b);
	else if (what < 68)
		do_free(b);
	else if (what < 74 && b->where == MORTAL)
		do_rallocx(b);
	else if (what < 74)
		do_realloc(b);
	else if (what < 85)
		do_rallocx(b);
	else if (what < 93)
		do_xallocx(large != NULL && (what & 1) != 0 ? large : b);
	else if (what < 95)
		no_memory();
	else if (what < 97)
		bad_alignment();
	else if (what < 99)
		sizes();
	else
		nothing();
}
