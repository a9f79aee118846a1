/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hook_sets.h - extent hooks for tests: where memory comes from, what is
 * refused, what was called, and a workload that checks what it gets.
 */
#ifndef EDDY_TESTS_HOOK_SETS_H
#define EDDY_TESTS_HOOK_SETS_H

#include "allocx_api.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>

#define NONE MALLOCX_TCACHE_NONE

enum source {
	BY_DEFAULT, /* the default alloc hook */
	BY_MMAP,    /* wherever the kernel likes */
	BY_BUFFER,  /* out of the program itself, below all mappings */
	BY_MEMFD,   /* shared */
};

enum call {
	ALLOC,
	DALLOC,
	DESTROY,
	COMMIT,
	DECOMMIT,
	PURGE_LAZY,
	PURGE_FORCED,
	SPLIT,
	MERGE,
	N_CALLS,
};

struct set {
	extent_hooks_t k; /* first: its address is what the hooks get */
	enum source source;
	bool does[N_CALLS]; /* what is not refused */
	bool says_zero;     /* alloc says that memory is zero */
	bool says_raw;      /* alloc says that it is not committed */
	long fail_from; /* the calls of alloc from this one on fail, 0: none */
	long fail_commit_at; /* the same of commit */
	_Atomic long n[N_CALLS];
	_Atomic long wrong;   /* arguments that cannot be */
	_Atomic size_t bytes; /* given, and not taken */
	unsigned arena;
	_Atomic(char *) last; /* address that alloc gave last */
};

static extent_hooks_t *original;

static struct set *
called(extent_hooks_t *hooks, enum call what, unsigned arena)
{
	struct set *s = (struct set *)(void *)hooks;

	atomic_fetch_add(&s->n[what], 1);
	if (s->arena != UINT32_MAX && arena != s->arena)
		atomic_fetch_add(&s->wrong, 1);
	return s;
}

static void
check(struct set *s, bool held)
{
	if (!held)
		atomic_fetch_add(&s->wrong, 1);
}

#define BUFFER ((size_t)512 << 20)
static char buffer[BUFFER + (2 << 20)];
static _Atomic size_t buffer_used;

static void *
from_buffer(size_t size, size_t align)
{
	uintptr_t base =
	    ((uintptr_t)buffer + (2 << 20) - 1) & ~(uintptr_t)((2 << 20) - 1);
	size_t at = atomic_load(&buffer_used);
	size_t from;

	do {
		from = ((base + at + align - 1) & ~(align - 1)) - base;
		if (from + size > BUFFER)
			return NULL;
	} while (
	    !atomic_compare_exchange_strong(&buffer_used, &at, from + size));
	return (void *)(base + from);
}

static void *
mapped(size_t size, size_t align, int fd)
{
	int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	char *p = mmap(NULL, size + align, PROT_NONE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *at;

	if (p == MAP_FAILED)
		return NULL;
	at = (char *)(((uintptr_t)p + align - 1) & ~(uintptr_t)(align - 1));
	if (at > p)
		(void)munmap(p, (size_t)(at - p));
	if (align > (size_t)(at - p))
		(void)munmap(at + size, align - (size_t)(at - p));
	if (mmap(at, size, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, 0) ==
	    MAP_FAILED)
		return NULL;
	return at;
}

static void *
from_memfd(size_t size, size_t align)
{
	int fd = memfd_create("hooks", MFD_CLOEXEC);
	void *p = NULL;

	if (fd >= 0 && ftruncate(fd, (off_t)size) == 0)
		p = mapped(size, align, fd);
	if (fd >= 0)
		(void)close(fd);
	return p;
}

static void *
set_alloc(extent_hooks_t *k, void *at, size_t size, size_t align, bool *zero,
    bool *commit, unsigned arena)
{
	struct set *s = called(k, ALLOC, arena);
	void *p = NULL;

	check(s, size != 0 && size % (2 << 20) == 0 &&
		     (align & (align - 1)) == 0 && align >= 4096 && *commit);
	if (!s->does[ALLOC] ||
	    (s->fail_from != 0 && atomic_load(&s->n[ALLOC]) >= s->fail_from))
		return NULL;
	if (s->source == BY_DEFAULT) {
		p = original->alloc(k, at, size, align, zero, commit, arena);
	} else if (at == NULL) {
		p = s->source == BY_MMAP     ? mapped(size, align, -1)
		    : s->source == BY_BUFFER ? from_buffer(size, align)
					     : from_memfd(size, align);
		if (p != NULL && !s->says_zero)
			memset(p, 0x5c, size);
		*zero = s->says_zero;
	}
	if (p == NULL)
		return NULL;
	if (s->says_raw) {
		check(s, mprotect(p, size, PROT_NONE) == 0);
		*commit = false;
	}
	atomic_fetch_add(&s->bytes, size);
	atomic_store(&s->last, p);
	return p;
}

static bool
take(struct set *s, void *p, size_t size)
{
	atomic_fetch_sub(&s->bytes, size);
	if (s->source == BY_MMAP || s->source == BY_MEMFD)
		check(s, munmap(p, size) == 0);
	else if (s->source == BY_BUFFER)
		check(s, mprotect(p, size, PROT_READ | PROT_WRITE) == 0);
	return false;
}

static bool
set_dalloc(
    extent_hooks_t *k, void *p, size_t size, bool committed, unsigned arena)
{
	struct set *s = called(k, DALLOC, arena);

	check(s, size % 4096 == 0 && (uintptr_t)p % 4096 == 0);
	if (!s->does[DALLOC])
		return true;
	if (s->source == BY_DEFAULT)
		return original->dalloc(k, p, size, committed, arena);
	return take(s, p, size);
}

static void
set_destroy(
    extent_hooks_t *k, void *p, size_t size, bool committed, unsigned arena)
{
	struct set *s = called(k, DESTROY, arena);

	if (s->source == BY_DEFAULT)
		original->destroy(k, p, size, committed, arena);
	if (s->source == BY_DEFAULT)
		atomic_fetch_sub(&s->bytes, size);
	else
		(void)take(s, p, size);
}

static struct set *
called_part(extent_hooks_t *k, enum call what, void *p, size_t size,
    size_t offset, size_t length, unsigned arena)
{
	struct set *s = called(k, what, arena);

	check(s, length != 0 && offset + length <= size &&
		     (uintptr_t)p % 4096 == 0 && offset % 4096 == 0 &&
		     length % 4096 == 0);
	return s;
}

static bool
set_commit(extent_hooks_t *k, void *p, size_t size, size_t offset,
    size_t length, unsigned arena)
{
	struct set *s = called_part(k, COMMIT, p, size, offset, length, arena);

	if (!s->does[COMMIT] ||
	    (s->fail_commit_at != 0 && s->n[COMMIT] >= s->fail_commit_at))
		return true;
	if (mprotect((char *)p + offset, length, PROT_READ | PROT_WRITE) != 0)
		return true;
	memset((char *)p + offset, 0x5d, length);
	return false;
}

static bool
set_decommit(extent_hooks_t *k, void *p, size_t size, size_t offset,
    size_t length, unsigned arena)
{
	struct set *s =
	    called_part(k, DECOMMIT, p, size, offset, length, arena);

	return !s->does[DECOMMIT] ||
	       mprotect((char *)p + offset, length, PROT_NONE) != 0;
}

static bool
set_purge_lazy(extent_hooks_t *k, void *p, size_t size, size_t offset,
    size_t length, unsigned arena)
{
	struct set *s =
	    called_part(k, PURGE_LAZY, p, size, offset, length, arena);

	if (s->does[PURGE_LAZY])
		memset((char *)p + offset, 0x5e, length / 2);
	return !s->does[PURGE_LAZY];
}

static bool
set_purge_forced(extent_hooks_t *k, void *p, size_t size, size_t offset,
    size_t length, unsigned arena)
{
	struct set *s =
	    called_part(k, PURGE_FORCED, p, size, offset, length, arena);

	if (s->does[PURGE_FORCED])
		memset((char *)p + offset, 0, length);
	return !s->does[PURGE_FORCED];
}

static bool
set_split(extent_hooks_t *k, void *p, size_t size, size_t a, size_t b,
    bool committed, unsigned arena)
{
	struct set *s = called(k, SPLIT, arena);

	(void)committed;
	check(s, a != 0 && b != 0 && a + b == size &&
		     (uintptr_t)p % 4096 == 0 && a % 4096 == 0);
	return !s->does[SPLIT];
}

static bool
set_merge(extent_hooks_t *k, void *a, size_t size_a, void *b, size_t size_b,
    bool committed, unsigned arena)
{
	struct set *s = called(k, MERGE, arena);

	(void)committed;
	check(s, (char *)a + size_a == b && size_b != 0);
	return !s->does[MERGE];
}

/* A set that refuses nothing but what `source` cannot. */
static struct set *
set_make(struct set *s, enum source source)
{
	*s = (struct set){
	    .k = {set_alloc, set_dalloc, set_destroy, set_commit, set_decommit,
		set_purge_lazy, set_purge_forced, set_split, set_merge},
	    .source = source,
	    .arena = UINT32_MAX,
	};
	for (unsigned i = 0; i < N_CALLS; i++)
		s->does[i] = true;
	return s;
}

/* errno value. */
static int
try_create(struct set *s, unsigned *ret)
{
	extent_hooks_t *k = &s->k;
	size_t n = sizeof(*ret);

	return x.ctl("arenas.create", ret, &n, &k, sizeof(k));
}

static unsigned
create(struct set *s)
{
	unsigned a;

	if (try_create(s, &a) != 0)
		tap_bail("arenas.create");
	s->arena = a;
	return a;
}

/* The arena of a pointer; UINT32_MAX: of none. */
static unsigned
lookup(const void *p)
{
	unsigned a;
	size_t n = sizeof(a);

	return x.ctl("arenas.lookup", &a, &n, &p, sizeof(p)) == 0 ? a
								  : UINT32_MAX;
}

static int
do_arena(unsigned a, const char *what)
{
	char name[64];

	(void)snprintf(name, sizeof name, "arena.%u.%s", a, what);
	return x.ctl(name, NULL, NULL, NULL, 0);
}

/* ---- a workload ---- */

#define N_BLOCKS 160

struct block {
	char *p;
	size_t size;
	char fill;
};

struct work {
	uint64_t seed;
	int flags;
	unsigned arena;
	size_t max;
	bool zero; /* all of them are asked for with zeros */
	long failed;
	struct block b[N_BLOCKS];
};

static bool
is_filled(const char *p, size_t size, char c)
{
	/* Ends, and a line now and then. */
	for (size_t i = 0; i < size; i += i < 64 || i + 64 > size ? 1 : 61)
		if (p[i] != c)
			return false;
	return size == 0 || p[size - 1] == c;
}

static size_t
a_size(struct work *w)
{
	unsigned lg = 3 + (unsigned)(tap_random(&w->seed) % 20);
	size_t size = ((size_t)1 << lg) + tap_random(&w->seed) % (1ul << lg);

	return size > w->max ? w->max - tap_random(&w->seed) % 4096 : size;
}

static bool
get(struct work *w, struct block *b)
{
	size_t size = a_size(w);
	bool zero = w->zero || tap_random(&w->seed) % 4 == 0;
	unsigned lg = (unsigned)(tap_random(&w->seed) % 64);
	int align = lg < 24 ? MALLOCX_LG_ALIGN((int)lg) : 0;

	b->p = x.mallocx(size, w->flags | align | (zero ? MALLOCX_ZERO : 0));
	if (b->p == NULL) {
		w->failed++;
		return true;
	}
	b->size = x.sallocx(b->p, 0);
	b->fill = (char)tap_random(&w->seed);
	if (b->size < size || lookup(b->p) != w->arena ||
	    lookup(b->p + b->size - 1) != w->arena ||
	    (align != 0 && (uintptr_t)b->p % ((size_t)1 << lg) != 0) ||
	    (zero && !is_filled(b->p, b->size, 0)))
		return false;
	memset(b->p, b->fill, b->size);
	return true;
}

static bool
resize(struct work *w, struct block *b)
{
	size_t size = a_size(w);
	size_t old = b->size;
	char *p;

	if (tap_random(&w->seed) % 2 == 0) {
		size_t real = x.xallocx(b->p, size, 0, w->flags);

		if (!is_filled(b->p, old < real ? old : real, b->fill))
			return false;
		b->size = real;
	} else {
		p = x.rallocx(b->p, size, w->flags);
		if (p == NULL) {
			w->failed++;
			return is_filled(b->p, b->size, b->fill);
		}
		b->p = p;
		b->size = x.sallocx(p, 0);
		if (!is_filled(p, old < size ? old : size, b->fill))
			return false;
	}
	memset(b->p, b->fill, b->size);
	return lookup(b->p) == w->arena;
}

static bool
drop(struct work *w, struct block *b)
{
	bool good = is_filled(b->p, b->size, b->fill);

	switch (tap_random(&w->seed) % 3) {
	case 0:
		free(b->p);
		break;
	case 1:
		x.dallocx(b->p, w->flags);
		break;
	default:
		x.sdallocx(b->p, b->size, NONE);
	}
	b->p = NULL;
	return good;
}

/* So many steps of it; false: memory was not what it should be. */
static bool
work(struct work *w, unsigned steps)
{
	for (unsigned i = 0; i < steps; i++) {
		struct block *b = &w->b[tap_random(&w->seed) % N_BLOCKS];
		bool good;

		if (b->p == NULL)
			good = get(w, b);
		else if (tap_random(&w->seed) % 3 == 0)
			good = resize(w, b);
		else
			good = drop(w, b);
		if (!good) {
			tap_diag(
			    "step %u: %p, %zu bytes", i, (void *)b->p, b->size);
			return false;
		}
		if (tap_random(&w->seed) % 200 == 0)
			(void)do_arena(w->arena, "purge");
	}
	return true;
}

static bool
end_work(struct work *w)
{
	bool good = true;

	for (unsigned i = 0; i < N_BLOCKS; i++)
		if (w->b[i].p != NULL)
			good &= drop(w, &w->b[i]);
	return good;
}

#endif /* EDDY_TESTS_HOOK_SETS_H */
