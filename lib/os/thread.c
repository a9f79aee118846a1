/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/os/thread.h"

#include <dlfcn.h>
#include <errno.h>

#include "lib/base/atomic.h"
#include "lib/os/os.h"

typedef int create_fn(
    pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

/* Weak: a static program without threads shall stay without. */
extern create_fn pthread_create __attribute__((weak));

/* Where libc does not say how much it needs. */
#define LIBC_STACK ((size_t)256 << 10)

void *
eddy_os_thread_next(const char *name)
{
	/* dlsym goes by its caller: it must return to here. */
	int kept = errno;
	void *p = dlsym(RTLD_NEXT, name);

	errno = kept;
	return p;
}

static create_fn *
next_create(void)
{
	/* W, R: any thread, the same value.  O: none. */
	static _Atomic(create_fn *) kept;
	/* relaxed: a function that was there all the time. */
	create_fn *fn = eddy_load_relaxed(&kept);

	if (fn != NULL)
		return fn;
	fn = (create_fn *)eddy_os_thread_next("pthread_create");
	/* A static program: nothing is found, but libc's may be inside. */
	if (fn == NULL && dlsym(RTLD_DEFAULT, "pthread_create") == NULL)
		fn = pthread_create;
	/* relaxed: as above. */
	eddy_store_relaxed(&kept, fn);
	return fn;
}

int
eddy_os_thread_create(
    pthread_t *t, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
	create_fn *fn = next_create();

	return fn != NULL ? fn(t, attr, run, arg) : ENOSYS;
}

/* What glibc and the thread-local storage of the process take of a stack. */
static size_t
libc_stack(const pthread_attr_t *attr)
{
	size_t (*fn)(const pthread_attr_t *) =
	    (size_t(*)(const pthread_attr_t *))dlsym(
		RTLD_DEFAULT, "__pthread_get_minstack");

	return fn != NULL ? fn(attr) : LIBC_STACK;
}

int
eddy_os_thread_start(
    pthread_t *t, size_t stack, void *(*run)(void *), void *arg)
{
	pthread_attr_t attr;
	int err = pthread_attr_init(&attr);

	if (err != 0)
		return -err;
	stack = eddy_align_up(stack + libc_stack(&attr), 65536);
	err = pthread_attr_setstacksize(&attr, stack);
	if (err == 0)
		err = eddy_os_thread_create(t, &attr, run, arg);
	(void)pthread_attr_destroy(&attr);
	return -err;
}

void
eddy_os_thread_join(pthread_t t)
{
	int state;

	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	(void)pthread_join(t, NULL);
	(void)pthread_setcancelstate(state, NULL);
}

int
eddy_os_thread_at_end(void (*fn)(void *), void *arg)
{
	/*
	 * The key plus 1, or 0: made once.
	 * W, R: any thread.  O: none: a number.
	 */
	static _Atomic uint32_t kept;
	/* relaxed: as said. */
	uint32_t seen = eddy_load_relaxed(&kept);
	pthread_key_t key;
	int err;

	if (seen == 0) {
		err = pthread_key_create(&key, fn);
		if (err != 0)
			return -err;
		/* relaxed: as said. */
		if (eddy_cas_relaxed(&kept, &seen, (uint32_t)key + 1))
			seen = (uint32_t)key + 1;
		else
			(void)pthread_key_delete(key);
	}
	return -pthread_setspecific((pthread_key_t)(seen - 1), arg);
}
