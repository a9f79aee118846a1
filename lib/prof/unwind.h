/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind.h - the stack of the caller, without the library's own frames.
 *
 * Layer     prof (L4).
 * Progress  wait-free: as long as the stack is deep.  No lock: libgcc finds
 *           unwind tables by glibc's _dl_find_object, which takes none (2.35,
 *           GCC 12); its list of tables that programs register is its own copy
 *           here, and empty.
 * Memory    some 4 KiB of stack; no allocation once eddy_unwind_begin was.
 * Context   any thread, signal handlers.
 *
 * By tables each frame is found whose code has some, as x86-64 and arm64 code
 * has but for what is generated at run time: there a stack ends early.  By
 * frame pointers only the library's own frames are left by tables; then pairs
 * of pointers are followed upwards, and each new page is probed first: what is
 * none ends the stack.
 */
#ifndef EDDY_UNWIND_H
#define EDDY_UNWIND_H

#include "lib/base/base.h"
#include "lib/prof/traces.h"

/* What libgcc does once, and where the library's own code lies. */
void eddy_unwind_begin(void);

/*
 * eddy_unwind - return addresses, innermost first.
 *
 * pointers:  by frame pointers.
 * ret_trace: where they stand, those of the library's own frames, too.
 * Returns: how many, at most `most`.
 */
EDDY_MUST_USE unsigned eddy_unwind(uintptr_t *frame, unsigned most,
    bool pointers, struct eddy_trace *ret_trace);

/* The same with the type that programs exchange it by: for mallctl. */
void eddy_unwind_default(void **frame, unsigned *len, unsigned most);

#endif /* EDDY_UNWIND_H */
