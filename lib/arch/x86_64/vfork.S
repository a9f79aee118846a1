/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vfork.S - vfork, with the caller's CPU cache set aside while the child runs.
 *
 * The child runs on the thread's stack and TLS, but the kernel has no rseq
 * registration for it: the area still shows the CPU that the parent was on.
 * So the thread's area pointer is NULL until the parent is back.
 */
#include <asm/unistd.h>

#ifdef __CET__
#include <cet.h>
#else
#define _CET_ENDBR
#endif

	.hidden	eddy_cache_suspend
	.hidden	eddy_cache_resume
	.text

	.globl	vfork
	.type	vfork, @function
	.balign	16
vfork:
	.cfi_startproc
	_CET_ENDBR
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	eddy_cache_suspend
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	/* The child writes over the stack: the way back is in a register. */
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	.cfi_register %rip, %rdi
	movl	$__NR_vfork, %eax
	syscall
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rip, 0
	testq	%rax, %rax
	jnz	1f
	/* The child's way: not by ret, the shadow stack is the parent's. */
	popq	%rdi
	.cfi_remember_state
	.cfi_adjust_cfa_offset -8
	.cfi_register %rip, %rdi
	jmp	*%rdi
	.cfi_restore_state
1:
	pushq	%rax
	.cfi_adjust_cfa_offset 8
	call	eddy_cache_resume
	popq	%rax
	.cfi_adjust_cfa_offset -8
	cmpq	$-4095, %rax
	jae	2f
	ret
2:	negl	%eax
	movq	errno@gottpoff(%rip), %rcx
	movl	%eax, %fs:(%rcx)
	movq	$-1, %rax
	ret
	.cfi_endproc
	.size	vfork, . - vfork

	.globl	__vfork
	.type	__vfork, @function
	.set	__vfork, vfork

	.section .note.GNU-stack, "", @progbits
