/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * names.h - the public names of the hit paths; for assembly.
 *
 * Layer arch (L0).  NAME(public, internal) for each.
 */
#ifndef EDDY_NAMES_H
#define EDDY_NAMES_H

#define EDDY_NAMES(NAME)                                     \
	NAME(malloc, eddy_malloc)                            \
	NAME(_Znwm, eddy_new)                                \
	NAME(_Znam, eddy_new)                                \
	NAME(_ZnwmRKSt9nothrow_t, eddy_new_nothrow)          \
	NAME(_ZnamRKSt9nothrow_t, eddy_new_nothrow)          \
	NAME(free, eddy_free)                                \
	NAME(free_sized, eddy_free)                          \
	NAME(free_aligned_sized, eddy_free)                  \
	NAME(_ZdlPv, eddy_free)                              \
	NAME(_ZdaPv, eddy_free)                              \
	NAME(_ZdlPvm, eddy_free)                             \
	NAME(_ZdaPvm, eddy_free)                             \
	NAME(_ZdlPvRKSt9nothrow_t, eddy_free)                \
	NAME(_ZdaPvRKSt9nothrow_t, eddy_free)                \
	NAME(_ZdlPvSt11align_val_t, eddy_free)               \
	NAME(_ZdaPvSt11align_val_t, eddy_free)               \
	NAME(_ZdlPvmSt11align_val_t, eddy_free)              \
	NAME(_ZdaPvmSt11align_val_t, eddy_free)              \
	NAME(_ZdlPvSt11align_val_tRKSt9nothrow_t, eddy_free) \
	NAME(_ZdaPvSt11align_val_tRKSt9nothrow_t, eddy_free)

#endif /* EDDY_NAMES_H */
