/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sections.S - restartable sections and the hit paths of malloc and free.
 *
 * Pseudocode and rules: lib/arch/rseq.h.  An abort of malloc or free goes to
 * the slow path, which tries again a bounded number of times; so x0 keeps the
 * argument until the section has committed.  Without initial-exec TLS
 * (EDDY_DYNAMIC_TLS) the thread's area is found by a call, and C makes it: then
 * every call goes there.
 *
 * Registers: x9 the area, x10 the slot, x11 the row's header, x12 cur; x16 and
 * x17 are left to the linker's veneers on the way to C.  Conditional branches
 * reach 1 MiB and get no veneers, so they stay in this file.
 */
#include "lib/arch/layout.h"
#include "lib/arch/names.h"

#if EDDY_ROW_CUR != 0
#error "ldar takes no offset"
#endif
#ifdef __AARCH64EB__
#error "data is little-endian here: limits, tags and the signature"
#endif

/*
 * BEGIN name: registers the section's descriptor in the area x9 (x10 is
 * clobbered) and starts it.  END name, abort: ends it after its committing
 * store; an abort lands at the label, behind the signature that the kernel
 * checks, a brk.
 */
.macro BEGIN name
	adrp	x10, .Lcs_\name
	add	x10, x10, :lo12:.Lcs_\name
	str	x10, [x9, #EDDY_RSEQ_CS]
.Lstart_\name:
.endm

.macro END name, abort
.Lend_\name:
	.pushsection __rseq_cs, "aw", %progbits
	.balign	32
.Lcs_\name:
	.long	0, 0
	.quad	.Lstart_\name, .Lend_\name - .Lstart_\name, .Labort_\name
	.popsection
	.pushsection __rseq_cs_ptr_array, "aw", %progbits
	.balign	8
	.quad	.Lcs_\name
	.popsection
	.pushsection .text.unlikely, "ax", %progbits
	.balign	4
	.inst	EDDY_RSEQ_SIGNATURE
.Labort_\name:
	b	\abort
	.popsection
.endm

/* x10 = the slot of this CPU; inside a section only. */
.macro SLOT slots
	ldrsw	x10, [x9, #EDDY_RSEQ_CPU]
	add	x10, \slots, x10, lsl #EDDY_LG_SLOT
.endm

/* x9 = the thread's area; to the label \slow without one. */
.macro AREA slow
	mrs	x9, tpidr_el0
	adrp	x10, :gottprel:eddy_area
	ldr	x10, [x10, #:gottprel_lo12:eddy_area]
	ldr	x9, [x9, x10]
	cbz	x9, \slow
.endm

.macro FUNCTION name
	.globl	\name
	.type	\name, %function
	.balign	32
\name:
	.cfi_startproc
	bti	c
.endm

.macro ENDFUNCTION name
	.cfi_endproc
	.size	\name, . - \name
.endm

	.hidden	eddy_fast
#ifndef EDDY_DYNAMIC_TLS
	.hidden	eddy_area
	.hidden	eddy_prof_left
#endif
	.hidden	eddy_classes
	.hidden	eddy_free
	.hidden	eddy_malloc
	.hidden	eddy_new
	.hidden	eddy_new_nothrow
	.text

/*
 * malloc and operator new: the size in x0.
 *   row = rows[(size + 7) / 8]; pop(row); a miss jumps to \slow.
 * While allocations are counted:
 *   left -= class size; below 0, \slow takes a sample.
 */
.macro ALLOCATE name, slow
	.hidden	\slow
FUNCTION \name
#ifdef EDDY_DYNAMIC_TLS
	b	\slow
#else
	adrp	x2, eddy_fast
	add	x2, x2, :lo12:eddy_fast
	ldp	x3, x4, [x2, #EDDY_FAST_ROWS]
	add	x1, x0, #7
	lsr	x1, x1, #3
	cmp	x0, x4
	b.hs	.Lcounted_\name
	ldrb	w1, [x3, x1]
.Lrow_\name:
	ldr	x2, [x2, #EDDY_FAST_SLOTS]
	AREA	.Lslow_\name
	BEGIN	\name
	SLOT	x2
	ldr	w11, [x10, #EDDY_SLOT_HOME]
	add	w11, w11, w1, lsl #4
	add	x11, x10, x11
	ldar	w12, [x11]		/* ROW-F1 */
	ldr	w3, [x11, #EDDY_ROW_BEG]
	cmp	w12, w3
	b.ls	.Lslow_\name
	sub	w12, w12, #8
	ldr	x3, [x10, x12]
	str	w12, [x11, #EDDY_ROW_CUR]
	END	\name, \slow
	mov	x0, x3
	ret
.Lcounted_\name:
	cmp	x0, #EDDY_ROW_MAX_ASM
	b.hi	.Lslow_\name
	ldrb	w1, [x3, x1]
	adrp	x3, eddy_classes
	add	x3, x3, :lo12:eddy_classes
	add	x3, x3, x1, lsl #EDDY_LG_CLASS
	ldr	w3, [x3, #EDDY_CLASS_SIZE]
	mrs	x9, tpidr_el0
	adrp	x10, :gottprel:eddy_prof_left
	ldr	x10, [x10, #:gottprel_lo12:eddy_prof_left]
	ldr	x4, [x9, x10]
	subs	x4, x4, x3
	str	x4, [x9, x10]
	b.mi	.Lslow_\name
	b	.Lrow_\name
.Lslow_\name:
	b	\slow
#endif
ENDFUNCTION \name
.endm

/*
 * free and operator delete: the pointer in x0.
 *   tag = tags[(p - base) / 4096]; push(tag's row); else eddy_free_slow.
 */
	.hidden	eddy_free_slow
FUNCTION eddy_free
#ifdef EDDY_DYNAMIC_TLS
	b	eddy_free_slow
#else
	adrp	x1, eddy_fast
	add	x1, x1, :lo12:eddy_fast
	ldp	x2, x3, [x1, #EDDY_FAST_BASE]
	ldp	x4, x5, [x1, #EDDY_FAST_TAGS]
	sub	x2, x0, x2
	lsr	x2, x2, #EDDY_LG_PAGE_ASM
	cmp	x2, x3
	b.hs	.Lslow_eddy_free
	ldr	w1, [x4, x2, lsl #2]
	AREA	.Lslow_eddy_free
	BEGIN	eddy_free
	SLOT	x5
	add	x11, x10, w1, uxth
	ldr	w12, [x11, #EDDY_ROW_CUR]
	ldr	w3, [x11, #EDDY_ROW_END]
	cmp	w12, w3
	b.hs	.Lslow_eddy_free
	str	x0, [x10, x12]
	add	w12, w12, #8
	str	w12, [x11, #EDDY_ROW_CUR]
	END	eddy_free, eddy_free_slow
	ret
.Lslow_eddy_free:
	b	eddy_free_slow
#endif
ENDFUNCTION eddy_free

	ALLOCATE eddy_malloc, eddy_malloc_slow
	ALLOCATE eddy_new, eddy_new_slow
	ALLOCATE eddy_new_nothrow, eddy_new_nothrow_slow

/* The first pair below is loaded as one, and so is the second. */
#if EDDY_FAST_LIMIT != EDDY_FAST_BASE + 8 || \
    EDDY_FAST_SLOTS != EDDY_FAST_TAGS + 8 || \
    EDDY_FAST_BELOW != EDDY_FAST_ROWS + 8
#error "struct eddy_fast: the words of a pair are apart"
#endif

#define NAME(public, internal)      \
	.globl	public;             \
	.type	public, %function;  \
	.set	public, internal;

	EDDY_NAMES(NAME)

/* int eddy_section_pop(area x0, slots x1, row w2, void **ret x3) */
	.hidden	eddy_section_pop
FUNCTION eddy_section_pop
	mov	x9, x0
	BEGIN	pop
	SLOT	x1
	ldr	w11, [x10, #EDDY_SLOT_HOME]
	add	w11, w11, w2
	add	x11, x10, x11
	ldar	w12, [x11]		/* ROW-F1 */
	ldr	w4, [x11, #EDDY_ROW_BEG]
	cmp	w12, w4
	b.ls	.Lfail
	sub	w12, w12, #8
	ldr	x4, [x10, x12]
	str	w12, [x11, #EDDY_ROW_CUR]
	END	pop, .Laborted
	str	x4, [x3]
	mov	w0, #EDDY_SECTION_OK
	ret
ENDFUNCTION eddy_section_pop

/* int eddy_section_pop_at(area x0, slots x1, row w2, void **ret x3) */
	.hidden	eddy_section_pop_at
FUNCTION eddy_section_pop_at
	mov	x9, x0
	BEGIN	pop_at
	SLOT	x1
	add	x11, x10, w2, uxtw
	ldar	w12, [x11]		/* ROW-F1 */
	ldr	w4, [x11, #EDDY_ROW_BEG]
	cmp	w12, w4
	b.ls	.Lfail
	sub	w12, w12, #8
	ldr	x4, [x10, x12]
	str	w12, [x11, #EDDY_ROW_CUR]
	END	pop_at, .Laborted
	str	x4, [x3]
	mov	w0, #EDDY_SECTION_OK
	ret
ENDFUNCTION eddy_section_pop_at

/* int eddy_section_push(area x0, slots x1, row w2, void *p x3) */
	.hidden	eddy_section_push
FUNCTION eddy_section_push
	mov	x9, x0
	BEGIN	push
	SLOT	x1
	add	x11, x10, w2, uxtw
	ldr	w12, [x11, #EDDY_ROW_CUR]
	ldr	w4, [x11, #EDDY_ROW_END]
	cmp	w12, w4
	b.hs	.Lfail
	str	x3, [x10, x12]
	add	w12, w12, #8
	str	w12, [x11, #EDDY_ROW_CUR]
	END	push, .Laborted
	mov	w0, #EDDY_SECTION_OK
	ret
ENDFUNCTION eddy_section_push

/* int eddy_section_refill(area x0, slots x1, row w2, p x3, n w4) */
	.hidden	eddy_section_refill
FUNCTION eddy_section_refill
	mov	x9, x0
	lsl	w4, w4, #3
	BEGIN	refill
	SLOT	x1
	add	x11, x10, w2, uxtw
	ldr	w12, [x11, #EDDY_ROW_CUR]
	ldr	w5, [x11, #EDDY_ROW_END]
	add	w6, w12, w4
	cmp	w6, w5
	b.hi	.Lfail
	add	x12, x10, x12
	mov	x5, #0
1:	ldr	x7, [x3, x5]
	str	x7, [x12, x5]
	add	x5, x5, #8
	cmp	w5, w4
	b.lo	1b
	str	w6, [x11, #EDDY_ROW_CUR]
	END	refill, .Laborted
	mov	w0, #EDDY_SECTION_OK
	ret
ENDFUNCTION eddy_section_refill

/* int eddy_section_flush(area x0, slots x1, row w2, p x3, uint32_t *n x4) */
	.hidden	eddy_section_flush
FUNCTION eddy_section_flush
	mov	x9, x0
	ldr	w5, [x4]
	lsl	w5, w5, #3
	BEGIN	flush
	SLOT	x1
	add	x11, x10, w2, uxtw
	ldar	w12, [x11]		/* ROW-F1 */
	ldr	w6, [x11, #EDDY_ROW_BEG]
	cmp	w12, w6
	b.ls	.Lfail
	sub	w6, w12, w6
	cmp	w6, w5
	csel	w5, w6, w5, lo
	sub	w12, w12, w5
	add	x6, x10, x12
	mov	x7, #0
1:	ldr	x8, [x6, x7]
	str	x8, [x3, x7]
	add	x7, x7, #8
	cmp	w7, w5
	b.lo	1b
	str	w12, [x11, #EDDY_ROW_CUR]
	END	flush, .Laborted
	lsr	w5, w5, #3
	str	w5, [x4]
	mov	w0, #EDDY_SECTION_OK
	ret
ENDFUNCTION eddy_section_flush

/*
 * int eddy_section_limits(area x0, slots x1, row w2, cpu w3, gen w4,
 *     limits x5)
 *
 * ROW-F2: gen by an acquire, since what the last drainer's CAS published may
 * have been seen by another thread of this CPU's slow path, not by this one.
 */
	.hidden	eddy_section_limits
FUNCTION eddy_section_limits
	mov	x9, x0
	BEGIN	limits
	SLOT	x1
	ldr	w6, [x9, #EDDY_RSEQ_CPU]
	cmp	w6, w3
	b.ne	.Lfail
	add	x11, x10, w2, uxtw
	add	x12, x11, #EDDY_ROW_GEN
	ldar	w6, [x12]
	cmp	w6, w4
	b.ne	.Lfail
	str	x5, [x11, #EDDY_ROW_END]
	END	limits, .Laborted
	mov	w0, #EDDY_SECTION_OK
	ret
ENDFUNCTION eddy_section_limits

/*
 * int eddy_section_add(area x0, slots x1, at w2, n x3)
 *
 * The page of the counter became writable before READY was set, by whichever
 * thread of this CPU; no order is needed for that.
 */
	.hidden	eddy_section_add
FUNCTION eddy_section_add
	mov	x9, x0
	BEGIN	add
	SLOT	x1
	ldr	w4, [x10, #EDDY_SLOT_READY]
	cbz	w4, .Lfail
	add	x11, x10, w2, uxtw
	ldr	x4, [x11]
	add	x4, x4, x3
	str	x4, [x11]
	END	add, .Laborted
	mov	w0, #EDDY_SECTION_OK
	ret
ENDFUNCTION eddy_section_add

	.balign	16
.Lfail:
	mov	w0, #EDDY_SECTION_FAIL
	ret
.Laborted:
	mov	w0, #EDDY_SECTION_ABORT
	ret

	.section .note.GNU-stack, "", %progbits

	/* Landing pads for indirect branches, signed return addresses. */
	.section .note.gnu.property, "a", %note
	.balign	8
	.long	4, 16, 5	/* name, description, NT_GNU_PROPERTY_TYPE_0 */
	.asciz	"GNU"
	.long	0xc0000000, 4	/* GNU_PROPERTY_AARCH64_FEATURE_1_AND */
	.long	3, 0		/* BTI, PAC */
