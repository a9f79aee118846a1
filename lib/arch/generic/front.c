/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * front.c - malloc and free where there is no assembly: there are no sections,
 * hence no rows to hit, and every call goes to the slow path and its cells.
 *
 * Layer arch (L0): the slow paths are declared here as the assembly has them.
 */
#include <stddef.h>

#include "lib/arch/names.h"
#include "lib/base/base.h"

void *eddy_malloc(size_t size);
void *eddy_new(size_t size);
void *eddy_new_nothrow(size_t size);
void eddy_free(void *p);

void *eddy_malloc_slow(size_t size);
void *eddy_new_slow(size_t size);
void *eddy_new_nothrow_slow(size_t size);
void eddy_free_slow(void *p);

void *
eddy_malloc(size_t size)
{
	return eddy_malloc_slow(size);
}

void *
eddy_new(size_t size)
{
	return eddy_new_slow(size);
}

void *
eddy_new_nothrow(size_t size)
{
	return eddy_new_nothrow_slow(size);
}

void
eddy_free(void *p)
{
	eddy_free_slow(p);
}

/*
 * The sized and aligned forms of delete have arguments more, which no
 * convention of a 64-bit Linux makes the callee take away.
 */
#define NAME(public, internal)                         \
	EDDY_EXPORT extern __typeof__(internal) public \
	    __attribute__((alias(#internal)));

EDDY_NAMES(NAME)
