/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * prof_bends.c - samples on a stack that leads to another one, which may be far
 * away or gone, and in the handler of a stack that is used up.
 */
#include "prof_api.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>

#if defined(__x86_64__)
/* f() on another stack, whose tables lead back to the caller's. */
void call_on(void (*f)(void), void *top);
__asm__(".text\n"
	".globl call_on\n"
	".type call_on, @function\n"
	"call_on:\n"
	".cfi_startproc\n"
	"push %rbp\n"
	".cfi_def_cfa_offset 16\n"
	".cfi_offset %rbp, -16\n"
	"mov %rsp, %rbp\n"
	".cfi_def_cfa_register %rbp\n"
	"mov %rsi, %rsp\n"
	"call *%rdi\n"
	"mov %rbp, %rsp\n"
	"pop %rbp\n"
	".cfi_def_cfa %rsp, 8\n"
	"ret\n"
	".cfi_endproc\n"
	".size call_on, . - call_on\n");

#	define STACK ((size_t)128 << 10)

static char *stack;

static void *
map(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		tap_bail("mmap");
	return p;
}

static void
some(void)
{
	for (unsigned i = 0; i < 10; i++)
		p_free(p_malloc(100));
}

static void *
of_thread(void *arg)
{
	call_on(some, stack + STACK);
	return arg;
}

/* Threads whose stacks go with them, and whose place in the profile passes to
 * the next. */
static void
threads(void)
{
	pthread_attr_t attr;

	(void)pthread_attr_init(&attr);
	for (unsigned i = 0; i < 20; i++) {
		pthread_t t;
		void *p = map(STACK);

		if (pthread_attr_setstack(&attr, p, STACK) != 0 ||
		    pthread_create(&t, &attr, of_thread, NULL) != 0)
			tap_bail("pthread_create");
		(void)pthread_join(t, NULL);
		(void)munmap(p, STACK);
	}
}

static sigjmp_buf back;

static void
on_fault(int signal)
{
	(void)signal;
	some();
	siglongjmp(back, 1);
}

/* Without end, and a word at a time, so that one lies below all of it. */
void use_up(void);
__asm__(".text\n"
	".globl use_up\n"
	".type use_up, @function\n"
	"use_up:\n"
	".cfi_startproc\n"
	"call use_up\n"
	".cfi_adjust_cfa_offset 8\n"
	"ret\n"
	".cfi_endproc\n"
	".size use_up, . - use_up\n");

static void *
overflow(void *arg)
{
	stack_t s = {.ss_sp = arg, .ss_size = STACK};
	struct sigaction a = {.sa_handler = on_fault, .sa_flags = SA_ONSTACK};

	if (sigaltstack(&s, NULL) != 0 || sigaction(SIGSEGV, &a, NULL) != 0)
		tap_bail("sigaltstack");
	if (sigsetjmp(back, 1) == 0)
		use_up();
	a.sa_handler = SIG_DFL;
	(void)sigaction(SIGSEGV, &a, NULL);
	return arg;
}

/* The handler's stack, a page that cannot be used, and the stack above it. */
static void
used_up(void)
{
	char *p = map(2 * STACK + PAGE);
	pthread_attr_t attr;
	pthread_t t;

	(void)pthread_attr_init(&attr);
	if (mprotect(p + STACK, PAGE, PROT_NONE) != 0 ||
	    pthread_attr_setstack(&attr, p + STACK + PAGE, STACK) != 0 ||
	    pthread_create(&t, &attr, overflow, p) != 0)
		tap_bail("pthread_create");
	(void)pthread_join(t, NULL);
}

int
main(int argc, char **argv)
{
	(void)argc;
	prof_begin(argv, "prof:true,lg_prof_sample:0");
	tap_guard(60);
	stack = map(STACK);
	for (unsigned i = 0; i < 20; i++)
		call_on(some, stack + STACK);
	tap_ok(prof_now(NULL).good, "a stack that leads to one far away");
	threads();
	tap_ok(prof_now(NULL).good, "to some that are gone");
	used_up();
	tap_ok(prof_now(NULL).good, "a handler of a stack that is used up");
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
