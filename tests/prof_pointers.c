/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * prof_pointers.c - stacks by frame pointers in code that has none: what the
 * register holds is any number, an address without memory, the end of the
 * stack.
 */
#include "prof_api.h"

#if defined(__x86_64__)
/* malloc(size) with that in the register of the frame pointer. */
void *malloc_with(uintptr_t pointer, size_t size, void *(*f)(size_t));
__asm__(".text\n"
	".globl malloc_with\n"
	".type malloc_with, @function\n"
	"malloc_with:\n"
	".cfi_startproc\n"
	"push %rbp\n"
	".cfi_adjust_cfa_offset 8\n"
	".cfi_rel_offset %rbp, 0\n"
	"mov %rdi, %rbp\n"
	"mov %rsi, %rdi\n"
	"call *%rdx\n"
	"pop %rbp\n"
	".cfi_adjust_cfa_offset -8\n"
	".cfi_restore %rbp\n"
	"ret\n"
	".cfi_endproc\n"
	".size malloc_with, . - malloc_with\n");

/* A page, and none behind it. */
static uintptr_t
edge(void)
{
	char *p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || munmap(p + PAGE, PAGE) != 0)
		tap_bail("mmap");
	return (uintptr_t)p + PAGE;
}

/* A chain that leads on and on. */
static uintptr_t
chain(unsigned n)
{
	uintptr_t *p = mmap(NULL, MIB, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		tap_bail("mmap");
	for (unsigned i = 0; i < n; i++) {
		p[i * 10] = (uintptr_t)&p[(i + 1) * 10];
		p[i * 10 + 1] = 0x10000 + i;
	}
	return (uintptr_t)p;
}

int
main(int argc, char **argv)
{
	uintptr_t end;
	uintptr_t pointers[12] = {0, 8, 1024, 4096, 0x12345678, UINTPTR_MAX - 7,
	    UINTPTR_MAX, (uintptr_t)1 << 63};

	(void)argc;
	prof_begin(
	    argv, "prof:true,lg_prof_sample:0,prof_backtrace:frame_pointer");
	tap_guard(60);
	end = edge();
	pointers[8] = end - 8;
	pointers[9] = end - 16;
	pointers[10] = end;
	pointers[11] = chain(1000);
	for (size_t i = 0; i < COUNT(pointers); i++)
		for (size_t k = 0; k < 3; k++)
			p_free(malloc_with(pointers[i], 100, p_malloc));
	tap_ok(prof_now(NULL).good, "a register that holds anything");
	p_free(malloc_with(pointers[11], 100, p_malloc));
	tap_ok(true, "a chain that is longer than a stack may be");
	return tap_end();
}
#else
int
main(int argc, char **argv)
{
	(void)argc;
	tap_begin(argv);
	return 77;
}
#endif
