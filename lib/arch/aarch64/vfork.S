/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vfork.S - vfork, with the caller's CPU cache set aside while the child runs.
 *
 * The child runs on the thread's stack and TLS, but the kernel has no rseq
 * registration for it: the area still shows the CPU that the parent was on.
 * So the thread's area pointer is NULL until the parent is back.
 */
#include <asm/unistd.h>

#define CLONE_VM    0x100
#define CLONE_VFORK 0x4000
#define SIGCHLD     17

	.hidden	eddy_cache_suspend
	.hidden	eddy_cache_resume
	.text

	.globl	vfork
	.type	vfork, %function
	.balign	16
vfork:
	.cfi_startproc
	paciasp
	.cfi_negate_ra_state
	stp	x29, x30, [sp, #-16]!
	.cfi_def_cfa_offset 16
	.cfi_offset x29, -16
	.cfi_offset x30, -8
	mov	x29, sp
	bl	eddy_cache_suspend
	/* The child writes over the stack: the way back is in a register. */
	ldp	x29, x30, [sp], #16
	.cfi_restore x29
	.cfi_restore x30
	.cfi_def_cfa_offset 0
	autiasp
	.cfi_negate_ra_state
	mov	x0, #(CLONE_VM | CLONE_VFORK | SIGCHLD)
	mov	x1, #0
	mov	x2, #0
	mov	x3, #0
	mov	x4, #0
	mov	x8, #__NR_clone
	svc	#0
	cbz	x0, 1f
	paciasp
	.cfi_negate_ra_state
	stp	x29, x30, [sp, #-32]!
	.cfi_def_cfa_offset 32
	.cfi_offset x29, -32
	.cfi_offset x30, -24
	mov	x29, sp
	str	x0, [sp, #16]
	bl	eddy_cache_resume
	ldr	x0, [sp, #16]
	ldp	x29, x30, [sp], #32
	.cfi_restore x29
	.cfi_restore x30
	.cfi_def_cfa_offset 0
	autiasp
	.cfi_negate_ra_state
	cmn	x0, #4095
	b.hs	2f
1:	ret
2:	neg	w0, w0
	mrs	x1, tpidr_el0
	adrp	x2, :gottprel:errno
	ldr	x2, [x2, #:gottprel_lo12:errno]
	str	w0, [x1, x2]
	mov	x0, #-1
	ret
	.cfi_endproc
	.size	vfork, . - vfork

	.globl	__vfork
	.type	__vfork, %function
	.set	__vfork, vfork

	.section .note.GNU-stack, "", %progbits

	/* Landing pads for indirect branches, signed return addresses. */
	.section .note.gnu.property, "a", %note
	.balign	8
	.long	4, 16, 5	/* name, description, NT_GNU_PROPERTY_TYPE_0 */
	.asciz	"GNU"
	.long	0xc0000000, 4	/* GNU_PROPERTY_AARCH64_FEATURE_1_AND */
	.long	3, 0		/* BTI, PAC */
