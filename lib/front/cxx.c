/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cxx.c - operator new where malloc has failed, and the aligned forms.
 *
 * libstdc++ is not linked: what is needed of it is found if the program has
 * it.  Built with unwind tables, since new-handlers may throw through here.
 */
#include <dlfcn.h>
#include <string.h>

#include "lib/base/chars.h"
#include "lib/front/front.h"
#include "lib/heap/own.h"
#include "lib/os/fatal.h"

typedef void (*new_handler)(void);

/* Not there in a static program. */
#pragma weak dlsym

/* std::get_new_handler, std::__throw_bad_alloc */
new_handler _ZSt15get_new_handlerv(void) __attribute__((weak));
_Noreturn void _ZSt17__throw_bad_allocv(void) __attribute__((weak));

/*
 * A new-handler may throw, and C cannot catch.  libstdc++'s own nothrow new
 * can: it calls the throwing one, which is ours again.
 */
static void *
nothrow_by_libstdcxx(size_t size, size_t align)
{
	void *(*plain)(size_t, const void *) = NULL;
	void *(*aligned)(size_t, size_t, const void *) = NULL;
	static const char nothrow;
	void *f;

	if (dlsym == NULL)
		return NULL;
	f = dlsym(RTLD_NEXT, align > 1 ? "_ZnwmSt11align_val_tRKSt9nothrow_t"
				       : "_ZnwmRKSt9nothrow_t");
	if (f == NULL)
		return NULL;
	if (align > 1) {
		memcpy(&aligned, &f, sizeof(f));
		return aligned(size, align, &nothrow);
	}
	memcpy(&plain, &f, sizeof(f));
	return plain(size, &nothrow);
}

/* experimental_infallible_new: NULL only if the program hears of it. */
static EDDY_COLD void *
infallible(size_t size)
{
	char text[96] = "<jemalloc>: Allocation of size ";
	char digits[EDDY_DIGITS_MAX + 1];
	char *end = digits + EDDY_DIGITS_MAX;

	*end = '\0';
	strcat(
	    strcat(text, eddy_digits(end, size)), " failed, and new must not");
	if (!eddy_fatal_tell(text))
		eddy_fatal_text("out of memory in operator new");
	return NULL;
}

/* From the region that the thread is in, or from the heap. */
static inline void *
alloc(size_t size, size_t align)
{
	if (eddy_unlikely(eddy_own.scope != NULL))
		return eddy_region_section(size, align, false);
	return eddy_alloc(size, align, false);
}

/* Asks the program's new-handler for memory until it has none to ask. */
static EDDY_COLD void *
new_failed(size_t size, size_t align, bool throws)
{
	struct eddy_heap *h = eddy_heap_peek();

	if (h != NULL && h->opts.experimental_infallible_new)
		return infallible(size);
	for (;;) {
		new_handler handler = _ZSt15get_new_handlerv != NULL
					  ? _ZSt15get_new_handlerv()
					  : NULL;
		void *p;

		if (handler == NULL)
			break;
		if (!throws)
			return nothrow_by_libstdcxx(size, align);
		handler();
		p = alloc(size, align);
		if (p != NULL)
			return p;
	}
	if (!throws)
		return NULL;
	if (_ZSt17__throw_bad_allocv != NULL)
		_ZSt17__throw_bad_allocv();
	eddy_fatal_text("out of memory in operator new");
}

static void *
new_missed(size_t size, bool throws)
{
	void *p = eddy_own.scope == NULL ? eddy_alloc_missed(size)
					 : eddy_region_new(size);

	return eddy_likely(p != NULL) ? p : new_failed(size, 1, throws);
}

static void *
new_aligned(size_t size, size_t align, bool throws)
{
	void *p = alloc(size, align);

	return eddy_likely(p != NULL) ? p : new_failed(size, align, throws);
}

void *
eddy_new_slow(size_t size)
{
	return new_missed(size, true);
}

void *
eddy_new_nothrow_slow(size_t size)
{
	return new_missed(size, false);
}

/* operator new(size_t, align_val_t), its array and nothrow forms. */
void *_ZnwmSt11align_val_t(size_t size, size_t align);
void *_ZnamSt11align_val_t(size_t size, size_t align);
void *_ZnwmSt11align_val_tRKSt9nothrow_t(
    size_t size, size_t align, const void *nothrow);
void *_ZnamSt11align_val_tRKSt9nothrow_t(
    size_t size, size_t align, const void *nothrow);

EDDY_EXPORT void *
_ZnwmSt11align_val_t(size_t size, size_t align)
{
	return new_aligned(size, align, true);
}

EDDY_EXPORT void *
_ZnamSt11align_val_t(size_t size, size_t align)
{
	return new_aligned(size, align, true);
}

EDDY_EXPORT void *
_ZnwmSt11align_val_tRKSt9nothrow_t(
    size_t size, size_t align, const void *nothrow)
{
	(void)nothrow;
	return new_aligned(size, align, false);
}

EDDY_EXPORT void *
_ZnamSt11align_val_tRKSt9nothrow_t(
    size_t size, size_t align, const void *nothrow)
{
	(void)nothrow;
	return new_aligned(size, align, false);
}
