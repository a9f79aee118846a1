/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * jemalloc.h - what eddy has of jemalloc's interface, for programs that were
 * written for it.  eddy's own header, <eddy/eddy.h>, says what each does.
 *
 *     cc -I$(pkg-config --variable=includedir eddy)/eddy ... -leddy
 *
 * The version is that of the interface.
 *
 * Names are written with je_ here, and macros give them those that the library
 * was built with: none before them, or that of --with-jemalloc-prefix.  What
 * the program sees of these macros it says before it includes this:
 *
 * JEMALLOC_MANGLE        malloc, mallocx ... stand for the library's names
 * JEMALLOC_NO_DEMANGLE   je_malloc, je_mallocx ... stand for them
 * JEMALLOC_NO_RENAME     the declarations keep je_, whatever the library has
 */
#ifndef JEMALLOC_H
#define JEMALLOC_H

#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define JEMALLOC_VERSION           "5.3.1-0-g0000000000000000000000000000000000000000"
#define JEMALLOC_VERSION_MAJOR     5
#define JEMALLOC_VERSION_MINOR     3
#define JEMALLOC_VERSION_BUGFIX    1
#define JEMALLOC_VERSION_NREV      0
#define JEMALLOC_VERSION_GID       "0000000000000000000000000000000000000000"
#define JEMALLOC_VERSION_GID_IDENT 0000000000000000000000000000000000000000

/* There is get_defrag_hint, which Redis asks. */
#define JEMALLOC_FRAG_HINT

/* Flags: alignment in bits 0 to 5, 0x40, cache from bit 8, arena from 20. */
#define MALLOCX_LG_ALIGN(la) ((int)(la))
/* A power of two; 0 and 1 are none. */
#define MALLOCX_ALIGN(a)    (63 - __builtin_clzll((unsigned long long)(a) | 1))
#define MALLOCX_ZERO        0x40
#define MALLOCX_TCACHE(tc)  ((int)((unsigned)((tc) + 2) << 8))
#define MALLOCX_TCACHE_NONE 0x100
#define MALLOCX_ARENA(a)    ((int)((unsigned)((a) + 1) << 20))

/* In place of the number of an arena. */
#define MALLCTL_ARENAS_ALL       4096
#define MALLCTL_ARENAS_DESTROYED 4097

/* For declarations that programs make themselves. */
#define JEMALLOC_ATTR(s)           __attribute__((s))
#define JEMALLOC_ALIGNED(s)        JEMALLOC_ATTR(aligned(s))
#define JEMALLOC_ALLOC_SIZE(s)     JEMALLOC_ATTR(alloc_size(s))
#define JEMALLOC_ALLOC_SIZE2(s, t) JEMALLOC_ATTR(alloc_size(s, t))
#define JEMALLOC_ALLOCATOR
#define JEMALLOC_COLD JEMALLOC_ATTR(__cold__)
#define JEMALLOC_CXX_THROW
#ifndef JEMALLOC_EXPORT
#	define JEMALLOC_EXPORT JEMALLOC_ATTR(visibility("default"))
#endif
#define JEMALLOC_NOINLINE JEMALLOC_ATTR(noinline)
#define JEMALLOC_NOTHROW  JEMALLOC_ATTR(nothrow)
#define JEMALLOC_RESTRICT_RETURN
#define JEMALLOC_SYS_NOTHROW JEMALLOC_NOTHROW
#define JEMALLOC_USABLE_SIZE_CONST

/* Of --with-jemalloc-prefix; the build writes these. */
#define JEMALLOC_PREFIXED 0
#ifndef JEMALLOC_NO_RENAME
#	define je_aligned_alloc             aligned_alloc
#	define je_calloc                    calloc
#	define je_dallocx                   dallocx
#	define je_free                      free
#	define je_free_aligned_sized        free_aligned_sized
#	define je_free_sized                free_sized
#	define je_get_defrag_hint           get_defrag_hint
#	define je_mallctl                   mallctl
#	define je_mallctlbymib              mallctlbymib
#	define je_mallctlnametomib          mallctlnametomib
#	define je_malloc                    malloc
#	define je_malloc_conf               malloc_conf
#	define je_malloc_conf_2_conf_harder malloc_conf_2_conf_harder
#	define je_malloc_message            malloc_message
#	define je_malloc_stats_print        malloc_stats_print
#	define je_malloc_usable_size        malloc_usable_size
#	define je_mallocx                   mallocx
#	define je_memalign                  memalign
#	define je_nallocx                   nallocx
#	define je_posix_memalign            posix_memalign
#	define je_pvalloc                   pvalloc
#	define je_rallocx                   rallocx
#	define je_realloc                   realloc
#	define je_sallocx                   sallocx
#	define je_sdallocx                  sdallocx
#	define je_valloc                    valloc
#	define je_xallocx                   xallocx
#endif

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Functions of the program that give an arena its memory and take it back: a
 * pointer to them is the value of arena.<i>.extent_hooks, and may be given to
 * arenas.create.  eddy_extent_hooks(3) says when each is called, and with what.
 *
 * The struct is not copied: it must be there as long as an arena has it.  Its
 * own address is the first argument of each function, the arena's index the
 * last.  Those that return bool return true for "not done".  A member that is
 * NULL is never called, and counts as one that does nothing: all but alloc may
 * be.  They may be called by any thread, by several at once, and in the midst
 * of malloc and free; they may call these, but get no memory of the arena for
 * it.
 */
typedef struct extent_hooks_s extent_hooks_t;

/*
 * extent_alloc_t - memory for the arena: size bytes, a multiple of 2 MiB, at a
 * multiple of alignment, or at new_addr and nowhere else.
 *
 * zero, commit: on call whether it must be zero, and usable at once; on return
 * whether it is.  NULL: there is none.
 */
typedef void *extent_alloc_t(extent_hooks_t *hooks, void *new_addr, size_t size,
    size_t alignment, bool *zero, bool *commit, unsigned arena);

/* extent_dalloc_t - the arena needs it no more.  false: it is gone. */
typedef bool extent_dalloc_t(extent_hooks_t *hooks, void *addr, size_t size,
    bool committed, unsigned arena);

/* extent_destroy_t - the arena has ended, and this is what it still had. */
typedef void extent_destroy_t(extent_hooks_t *hooks, void *addr, size_t size,
    bool committed, unsigned arena);

/* extent_commit_t - [offset, offset + length) of an extent will be used.  true:
 * there is no memory. */
typedef bool extent_commit_t(extent_hooks_t *hooks, void *addr, size_t size,
    size_t offset, size_t length, unsigned arena);

/* extent_decommit_t - that part is not used until it is committed again. */
typedef bool extent_decommit_t(extent_hooks_t *hooks, void *addr, size_t size,
    size_t offset, size_t length, unsigned arena);

/*
 * extent_purge_t - what that part holds is not needed.  purge_lazy: it may be
 * dropped, or not.  purge_forced: it is dropped, and reads as zero.
 */
typedef bool extent_purge_t(extent_hooks_t *hooks, void *addr, size_t size,
    size_t offset, size_t length, unsigned arena);

/* extent_split_t - an extent becomes two.  true: it must not. */
typedef bool extent_split_t(extent_hooks_t *hooks, void *addr, size_t size,
    size_t size_a, size_t size_b, bool committed, unsigned arena);

/* extent_merge_t - two, side by side, become one.  true: they must not. */
typedef bool extent_merge_t(extent_hooks_t *hooks, void *addr_a, size_t size_a,
    void *addr_b, size_t size_b, bool committed, unsigned arena);

struct extent_hooks_s {
	extent_alloc_t *alloc;
	extent_dalloc_t *dalloc;
	extent_destroy_t *destroy;
	extent_commit_t *commit;
	extent_decommit_t *decommit;
	extent_purge_t *purge_lazy;
	extent_purge_t *purge_forced;
	extent_split_t *split;
	extent_merge_t *merge;
};

extern const char *je_malloc_conf;
extern const char *je_malloc_conf_2_conf_harder;
extern void (*je_malloc_message)(void *cbopaque, const char *s);

#if JEMALLOC_PREFIXED
JEMALLOC_NOTHROW void *je_malloc(size_t size);
JEMALLOC_NOTHROW void *je_calloc(size_t n, size_t size);
JEMALLOC_NOTHROW void *je_realloc(void *p, size_t size);
JEMALLOC_NOTHROW void je_free(void *p);
JEMALLOC_NOTHROW int je_posix_memalign(
    void **ret, size_t alignment, size_t size);
JEMALLOC_NOTHROW void *je_aligned_alloc(size_t alignment, size_t size);
JEMALLOC_NOTHROW void *je_memalign(size_t alignment, size_t size);
JEMALLOC_NOTHROW void *je_valloc(size_t size);
JEMALLOC_NOTHROW void *je_pvalloc(size_t size);
JEMALLOC_NOTHROW size_t je_malloc_usable_size(void *p);
#endif
void je_free_sized(void *p, size_t size) __THROW;
void je_free_aligned_sized(void *p, size_t alignment, size_t size) __THROW;

void *je_mallocx(size_t size, int flags);
void *je_rallocx(void *p, size_t size, int flags);
size_t je_xallocx(void *p, size_t size, size_t extra, int flags);
size_t je_sallocx(const void *p, int flags);
void je_dallocx(void *p, int flags);
void je_sdallocx(void *p, size_t size, int flags);
size_t je_nallocx(size_t size, int flags);

int je_mallctl(
    const char *name, void *oldp, size_t *oldlenp, void *newp, size_t newlen);
int je_mallctlnametomib(const char *name, size_t *mibp, size_t *miblenp);
int je_mallctlbymib(const size_t *mib, size_t miblen, void *oldp,
    size_t *oldlenp, void *newp, size_t newlen);
void je_malloc_stats_print(
    void (*write_cb)(void *, const char *), void *cbopaque, const char *opts);

/*
 * get_defrag_hint - whether a block of the same size, made past the caches
 * (MALLOCX_TCACHE_NONE), would lie better: 1 or 0.
 */
int je_get_defrag_hint(void *p);

#ifdef __cplusplus
}
#endif

#ifdef JEMALLOC_MANGLE
#	ifndef JEMALLOC_NO_DEMANGLE
#		define JEMALLOC_NO_DEMANGLE
#	endif
#	define aligned_alloc             aligned_alloc
#	define calloc                    calloc
#	define dallocx                   dallocx
#	define free                      free
#	define free_aligned_sized        free_aligned_sized
#	define free_sized                free_sized
#	define get_defrag_hint           get_defrag_hint
#	define mallctl                   mallctl
#	define mallctlbymib              mallctlbymib
#	define mallctlnametomib          mallctlnametomib
#	define malloc                    malloc
#	define malloc_conf               malloc_conf
#	define malloc_conf_2_conf_harder malloc_conf_2_conf_harder
#	define malloc_message            malloc_message
#	define malloc_stats_print        malloc_stats_print
#	define malloc_usable_size        malloc_usable_size
#	define mallocx                   mallocx
#	define memalign                  memalign
#	define nallocx                   nallocx
#	define posix_memalign            posix_memalign
#	define pvalloc                   pvalloc
#	define rallocx                   rallocx
#	define realloc                   realloc
#	define sallocx                   sallocx
#	define sdallocx                  sdallocx
#	define valloc                    valloc
#	define xallocx                   xallocx
#endif

#ifndef JEMALLOC_NO_DEMANGLE
#	undef je_aligned_alloc
#	undef je_calloc
#	undef je_dallocx
#	undef je_free
#	undef je_free_aligned_sized
#	undef je_free_sized
#	undef je_get_defrag_hint
#	undef je_mallctl
#	undef je_mallctlbymib
#	undef je_mallctlnametomib
#	undef je_malloc
#	undef je_malloc_conf
#	undef je_malloc_conf_2_conf_harder
#	undef je_malloc_message
#	undef je_malloc_stats_print
#	undef je_malloc_usable_size
#	undef je_mallocx
#	undef je_memalign
#	undef je_nallocx
#	undef je_posix_memalign
#	undef je_pvalloc
#	undef je_rallocx
#	undef je_realloc
#	undef je_sallocx
#	undef je_sdallocx
#	undef je_valloc
#	undef je_xallocx
#endif

#endif /* JEMALLOC_H */
