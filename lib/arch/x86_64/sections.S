/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sections.S - restartable sections and the hit paths of malloc and free.
 *
 * Pseudocode and rules: lib/arch/rseq.h.  An abort of malloc or free goes to
 * the slow path, which tries again a bounded number of times.  Without
 * initial-exec TLS (EDDY_DYNAMIC_TLS) the thread's area is found by a call, and
 * C makes it: then every call goes there.
 */
#include "lib/arch/layout.h"
#include "lib/arch/names.h"

#ifdef __CET__
#include <cet.h>
#else
#define _CET_ENDBR
#endif

/*
 * BEGIN name, area: registers the section's descriptor (rdx is clobbered) and
 * starts it.  END name, abort: ends it after its committing store; an abort
 * lands at the label, behind the signature that the kernel checks.
 */
.macro BEGIN name, area
	lea	.Lcs_\name(%rip), %rdx
	movq	%rdx, EDDY_RSEQ_CS(\area)
.Lstart_\name:
.endm

.macro END name, abort
.Lend_\name:
	.pushsection __rseq_cs, "aw", @progbits
	.balign	32
.Lcs_\name:
	.long	0, 0
	.quad	.Lstart_\name, .Lend_\name - .Lstart_\name, .Labort_\name
	.popsection
	.pushsection __rseq_cs_ptr_array, "aw", @progbits
	.quad	.Lcs_\name
	.popsection
	.pushsection .text.unlikely, "ax", @progbits
	/* ud1 with the signature as its displacement */
	.byte	0x0f, 0xb9, 0x3d
	.long	EDDY_RSEQ_SIGNATURE
.Labort_\name:
	jmp	\abort
	.popsection
.endm

#if EDDY_LG_CLASS != 4
#error "a row's offset among classes is its header's in a slot"
#endif

/* rdx = the slot of this CPU; inside a section only. */
.macro SLOT area, slots
	movslq	EDDY_RSEQ_CPU(\area), %rdx
	shlq	$EDDY_LG_SLOT, %rdx
	addq	\slots, %rdx
.endm

.macro FUNCTION name
	.globl	\name
	.type	\name, @function
	.balign	64
\name:
	.cfi_startproc
	_CET_ENDBR
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
 * malloc and operator new: the size in rdi.
 *   row = rows[(size + 7) / 8]; pop(row); a miss jumps to \slow.
 * While allocations are counted:
 *   left -= class size; below 0, \slow takes a sample.
 */
.macro ALLOCATE name, slow
	.hidden	\slow
FUNCTION \name
#ifdef EDDY_DYNAMIC_TLS
	jmp	\slow
#else
	cmpq	eddy_fast+EDDY_FAST_BELOW(%rip), %rdi
	jae	.Lcounted_\name
	leaq	7(%rdi), %rax
	shrq	$3, %rax
	addq	eddy_fast+EDDY_FAST_ROWS(%rip), %rax
	movzbl	(%rax), %esi
	shll	$4, %esi
.Lrow_\name:
	movq	eddy_area@gottpoff(%rip), %rcx
	movq	%fs:(%rcx), %rcx
	testq	%rcx, %rcx
	jz	\slow
	BEGIN \name, %rcx
	SLOT	%rcx, eddy_fast+EDDY_FAST_SLOTS(%rip)
	addl	EDDY_SLOT_HOME(%rdx), %esi
	movl	EDDY_ROW_CUR(%rdx,%rsi), %ecx
	cmpl	EDDY_ROW_BEG(%rdx,%rsi), %ecx
	jbe	\slow
	movq	-8(%rdx,%rcx), %rax
	subl	$8, %ecx
	movl	%ecx, EDDY_ROW_CUR(%rdx,%rsi)
	END \name, \slow
	ret
.Lcounted_\name:
	cmpq	$EDDY_ROW_MAX_ASM, %rdi
	ja	\slow
	leaq	7(%rdi), %rax
	shrq	$3, %rax
	addq	eddy_fast+EDDY_FAST_ROWS(%rip), %rax
	movzbl	(%rax), %esi
	shll	$EDDY_LG_CLASS, %esi
	leaq	eddy_classes(%rip), %rcx
	movl	EDDY_CLASS_SIZE(%rcx,%rsi), %eax
	movq	eddy_prof_left@gottpoff(%rip), %rcx
	subq	%rax, %fs:(%rcx)
	js	\slow
	jmp	.Lrow_\name
#endif
ENDFUNCTION \name
.endm

/*
 * free and operator delete: the pointer in rdi.
 *   tag = tags[(p - base) / 4096]; push(tag's row); else eddy_free_slow.
 */
	.hidden	eddy_free_slow
FUNCTION eddy_free
#ifdef EDDY_DYNAMIC_TLS
	jmp	eddy_free_slow
#else
	movq	%rdi, %rax
	subq	eddy_fast+EDDY_FAST_BASE(%rip), %rax
	shrq	$EDDY_LG_PAGE_ASM, %rax
	cmpq	eddy_fast+EDDY_FAST_LIMIT(%rip), %rax
	jae	eddy_free_slow
	movq	eddy_fast+EDDY_FAST_TAGS(%rip), %rdx
	movzwl	(%rdx,%rax,4), %esi
	movq	eddy_area@gottpoff(%rip), %rcx
	movq	%fs:(%rcx), %rcx
	testq	%rcx, %rcx
	jz	eddy_free_slow
	BEGIN eddy_free, %rcx
	SLOT	%rcx, eddy_fast+EDDY_FAST_SLOTS(%rip)
	movl	EDDY_ROW_CUR(%rdx,%rsi), %ecx
	cmpl	EDDY_ROW_END(%rdx,%rsi), %ecx
	jae	eddy_free_slow
	movq	%rdi, (%rdx,%rcx)
	addl	$8, %ecx
	movl	%ecx, EDDY_ROW_CUR(%rdx,%rsi)
	END eddy_free, eddy_free_slow
	ret
#endif
ENDFUNCTION eddy_free

	ALLOCATE eddy_malloc, eddy_malloc_slow
	ALLOCATE eddy_new, eddy_new_slow
	ALLOCATE eddy_new_nothrow, eddy_new_nothrow_slow

#define NAME(public, internal)      \
	.globl	public;             \
	.type	public, @function;  \
	.set	public, internal;

	EDDY_NAMES(NAME)

/* int eddy_section_pop(area rdi, slots rsi, row edx, void **ret rcx) */
	.hidden	eddy_section_pop
FUNCTION eddy_section_pop
	movl	%edx, %r8d
	BEGIN pop, %rdi
	SLOT	%rdi, %rsi
	addl	EDDY_SLOT_HOME(%rdx), %r8d
	movl	EDDY_ROW_CUR(%rdx,%r8), %eax
	cmpl	EDDY_ROW_BEG(%rdx,%r8), %eax
	jbe	.Lfail
	movq	-8(%rdx,%rax), %r9
	subl	$8, %eax
	movl	%eax, EDDY_ROW_CUR(%rdx,%r8)
	END pop, .Laborted
	movq	%r9, (%rcx)
	xorl	%eax, %eax
	ret
ENDFUNCTION eddy_section_pop

/* int eddy_section_pop_at(area rdi, slots rsi, row edx, void **ret rcx) */
	.hidden	eddy_section_pop_at
FUNCTION eddy_section_pop_at
	movl	%edx, %r8d
	BEGIN pop_at, %rdi
	SLOT	%rdi, %rsi
	movl	EDDY_ROW_CUR(%rdx,%r8), %eax
	cmpl	EDDY_ROW_BEG(%rdx,%r8), %eax
	jbe	.Lfail
	movq	-8(%rdx,%rax), %r9
	subl	$8, %eax
	movl	%eax, EDDY_ROW_CUR(%rdx,%r8)
	END pop_at, .Laborted
	movq	%r9, (%rcx)
	xorl	%eax, %eax
	ret
ENDFUNCTION eddy_section_pop_at

/* int eddy_section_push(area rdi, slots rsi, row edx, void *p rcx) */
	.hidden	eddy_section_push
FUNCTION eddy_section_push
	movl	%edx, %r8d
	BEGIN push, %rdi
	SLOT	%rdi, %rsi
	movl	EDDY_ROW_CUR(%rdx,%r8), %eax
	cmpl	EDDY_ROW_END(%rdx,%r8), %eax
	jae	.Lfail
	movq	%rcx, (%rdx,%rax)
	addl	$8, %eax
	movl	%eax, EDDY_ROW_CUR(%rdx,%r8)
	END push, .Laborted
	xorl	%eax, %eax
	ret
ENDFUNCTION eddy_section_push

/* int eddy_section_refill(area rdi, slots rsi, row edx, p rcx, n r8d) */
	.hidden	eddy_section_refill
FUNCTION eddy_section_refill
	movl	%edx, %r9d
	shll	$3, %r8d
	BEGIN refill, %rdi
	SLOT	%rdi, %rsi
	movl	EDDY_ROW_CUR(%rdx,%r9), %eax
	leal	(%rax,%r8), %r10d
	cmpl	EDDY_ROW_END(%rdx,%r9), %r10d
	ja	.Lfail
	addq	%rdx, %rax
	xorl	%r11d, %r11d
1:	movq	(%rcx,%r11), %rsi
	movq	%rsi, (%rax,%r11)
	addl	$8, %r11d
	cmpl	%r8d, %r11d
	jb	1b
	movl	%r10d, EDDY_ROW_CUR(%rdx,%r9)
	END refill, .Laborted
	xorl	%eax, %eax
	ret
ENDFUNCTION eddy_section_refill

/* int eddy_section_flush(area rdi, slots rsi, row edx, p rcx, uint32_t *n r8) */
	.hidden	eddy_section_flush
FUNCTION eddy_section_flush
	pushq	%rbx
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbx, 0
	movl	%edx, %r9d
	movl	(%r8), %r10d
	shll	$3, %r10d
	BEGIN flush, %rdi
	SLOT	%rdi, %rsi
	movl	EDDY_ROW_CUR(%rdx,%r9), %eax
	movl	EDDY_ROW_BEG(%rdx,%r9), %r11d
	cmpl	%r11d, %eax
	jbe	2f
	negl	%r11d
	addl	%eax, %r11d
	cmpl	%r10d, %r11d
	cmoval	%r10d, %r11d
	subl	%r11d, %eax
	leaq	(%rdx,%rax), %rsi
	xorl	%r10d, %r10d
1:	movq	(%rsi,%r10), %rbx
	movq	%rbx, (%rcx,%r10)
	addl	$8, %r10d
	cmpl	%r11d, %r10d
	jb	1b
	movl	%eax, EDDY_ROW_CUR(%rdx,%r9)
	END flush, 3f
	shrl	$3, %r11d
	movl	%r11d, (%r8)
	xorl	%eax, %eax
	popq	%rbx
	.cfi_remember_state
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_restore_state
2:	movl	$EDDY_SECTION_FAIL, %eax
	popq	%rbx
	.cfi_remember_state
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_restore_state
3:	movl	$EDDY_SECTION_ABORT, %eax
	popq	%rbx
	.cfi_adjust_cfa_offset -8
	ret
ENDFUNCTION eddy_section_flush

/*
 * int eddy_section_limits(area rdi, slots rsi, row edx, cpu ecx, gen r8d,
 *     limits r9)
 */
	.hidden	eddy_section_limits
FUNCTION eddy_section_limits
	movl	%edx, %r10d
	BEGIN limits, %rdi
	SLOT	%rdi, %rsi
	cmpl	EDDY_RSEQ_CPU(%rdi), %ecx
	jne	.Lfail
	cmpl	EDDY_ROW_GEN(%rdx,%r10), %r8d
	jne	.Lfail
	movq	%r9, EDDY_ROW_END(%rdx,%r10)
	END limits, .Laborted
	xorl	%eax, %eax
	ret
ENDFUNCTION eddy_section_limits

/* int eddy_section_add(area rdi, slots rsi, at edx, n rcx) */
	.hidden	eddy_section_add
FUNCTION eddy_section_add
	movl	%edx, %r8d
	BEGIN add, %rdi
	SLOT	%rdi, %rsi
	cmpl	$0, EDDY_SLOT_READY(%rdx)
	je	.Lfail
	addq	(%rdx,%r8), %rcx
	movq	%rcx, (%rdx,%r8)
	END add, .Laborted
	xorl	%eax, %eax
	ret
ENDFUNCTION eddy_section_add

	.balign	16
.Lfail:
	movl	$EDDY_SECTION_FAIL, %eax
	ret
.Laborted:
	movl	$EDDY_SECTION_ABORT, %eax
	ret

	.section .note.GNU-stack, "", @progbits
