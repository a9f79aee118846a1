/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pressure.c - tells the program to drop its caches: when a request would fail,
 * and when the kernel says that memory is short.
 *
 * Layer     front (L6).
 * Progress  eddy_pressure_tell: wait-free but for what the program does.
 *           Registration: lock-free; the first starts a thread, which sleeps in
 *           the kernel until memory is short.
 * Memory    a node of the heap for each registration, kept for ever and used
 *           again.
 *
 * Order pairs
 *   PRES-R1 -> PRES-A1  a node, from who registers to who tells.
 *   PRES-R2 -> PRES-A2  what ends the thread || that the main thread has ended:
 *                       store-load, of the two at least one sees the other.
 */
#include "eddy/eddy.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include "lib/arch/syscall.h"
#include "lib/front/front.h"
#include "lib/heap/gather.h"
#include "lib/heap/purge.h"
#include "lib/heap/warm.h"
#include "lib/os/os.h"
#include "lib/os/thread.h"
#include "numa/excluded.h"
#include "numa/usable.h"

/* A stall of 150 ms within 2 s, the shortest that anybody may watch for. */
#define TRIGGER "some 150000 2000000"
#define STACK   ((size_t)64 << 10)

struct watcher {
	/* Constant once it is in the list. */
	struct watcher *next;
	void (*tell)(void *arg, size_t wanted);
	void *arg;
	/* Whether it is registered.  W: who registers, who takes it back.
	 * R: any thread.  O: PRES-R1 -> PRES-A1. */
	_Atomic bool on;
};

/* W, R: any thread, by CAS.  O: PRES-R1 -> PRES-A1. */
static _Atomic(struct watcher *) watchers;
/* The process that has a thread for it.  W, R: any thread.  O: none. */
static _Atomic uint32_t thread_of;
/*
 * What ends it: the end to write to of a pipe, -1: none yet.  Its inode, since
 * the program may have closed it, and opened something else in its place.
 * W: who starts the thread.  R: the main thread at its end.
 * O: PRES-R2 -> PRES-A2.
 */
static _Atomic int end_fd = -1;
static _Atomic uint64_t end_inode;
/* The process whose main thread has ended.  W: that.  R: who starts a thread.
 * O: PRES-R2 -> PRES-A2. */
static _Atomic uint32_t ended;
/* In a callback: what it asks for is not worth another. */
static __thread bool telling;

bool
eddy_pressure_tell(size_t wanted)
{
	bool any = false;

	if (telling)
		return false;
	telling = true;
	/* PRES-A1: pairs with PRES-R1. */
	for (struct watcher *w = eddy_load_acquire(&watchers); w != NULL;
	     w = w->next) {
		/* PRES-A1: as above. */
		if (!eddy_load_acquire(&w->on))
			continue;
		any = true;
		w->tell(w->arg, wanted);
	}
	telling = false;
	return any;
}

/* ------------------------------------------------------------------ */
/* The kernel's word */

/* Opens the file that tells of stalls, with a trigger; < 0: there is none. */
static int
open_trigger(const char *path)
{
	long fd = eddy_syscall(SYS_openat, AT_FDCWD, path,
	    O_RDWR | O_NONBLOCK | O_CLOEXEC, 0, 0, 0);

	if (fd < 0)
		return (int)fd;
	if (eddy_os_write((int)fd, TRIGGER, sizeof(TRIGGER)) > 0)
		return (int)fd;
	(void)eddy_syscall(SYS_close, fd, 0, 0, 0, 0, 0);
	return -EINVAL;
}

/* Of the process's own cgroup, or of the machine. */
static int
open_pressure(void)
{
	char path[1024];
	int fd = -ENOENT;

	if (eddy_usable_path("", "/memory.pressure", NULL, path, sizeof(path)))
		fd = open_trigger(path);
	return fd >= 0 ? fd : open_trigger("/proc/pressure/memory");
}

static void
memory_is_short(void)
{
	struct eddy_heap *h = eddy_heap_peek();

	(void)eddy_pressure_tell(0);
	if (h == NULL || eddy_frozen(h))
		return;
	eddy_gather_all(h);
	(void)eddy_purge(h, 0);
}

/* Where housekeeping may run; it stays where it is if there is no such CPU. */
static void
settle(void)
{
	uint64_t set[EDDY_CPU_WORDS] = {0};
	struct eddy_heap *h = eddy_heap_peek();

	eddy_os_name_thread("eddy_pressure");
	if (h == NULL || eddy_os_affinity(0, set, sizeof(set)) <= 0)
		return;
	eddy_excluded_remove(h->opts.exclude_cpus, set);
	if (eddy_os_set_affinity(0, set, sizeof(set)) != 0)
		return;
}

/* What a descriptor stands for; 0: nothing. */
static uint64_t
inode_of(int fd)
{
	struct stat st;

	return eddy_syscall(SYS_fstat, fd, &st, 0, 0, 0, 0) == 0 ? st.st_ino
								 : 0;
}

static void *
watch(void *arg)
{
	struct pollfd p[2] = {{.fd = open_pressure(), .events = POLLPRI},
	    {.fd = (int)(intptr_t)arg, .events = POLLIN}};
	/* relaxed: written before the start of this thread. */
	const uint64_t pipe = eddy_load_relaxed(&end_inode);
	const uint64_t file = inode_of(p[0].fd);

	settle();
	/* While it waits a file stays what it was; then it may be another. */
	while (p[0].fd >= 0 && inode_of(p[0].fd) == file &&
	       inode_of(p[1].fd) == pipe) {
		long n = eddy_syscall(SYS_ppoll, p, 2, NULL, NULL, 0, 0);

		if (n == -EINTR)
			continue;
		/* Closed by the program, its cgroup is gone, main has ended. */
		if (n < 0 || (p[0].revents & (POLLERR | POLLNVAL)) != 0 ||
		    p[1].revents != 0)
			break;
		if ((p[0].revents & POLLPRI) != 0)
			memory_is_short();
	}
	return NULL;
}

/*
 * libc ends the process when its last thread ends, and would count this one.
 * The main thread is the one that can end before others.
 */
static void
main_ends(void *arg)
{
	const char any = 0;
	uint32_t me = (uint32_t)eddy_os_pid();
	int fd;

	(void)arg;
	/* PRES-R2: from here on nobody starts one. */
	(void)eddy_xchg_seq_cst(&ended, me);
	/* PRES-A2: or it is there. */
	fd = eddy_load_seq_cst(&end_fd);
	/* relaxed, both: written before end_fd.  A forked child has its
	 * parent's pipe. */
	if (fd < 0 || eddy_load_relaxed(&thread_of) != me ||
	    inode_of(fd) != eddy_load_relaxed(&end_inode))
		return;
	if (eddy_os_write(fd, &any, 1) < 0)
		return;
}

void
eddy_pressure_note_thread(void)
{
	/* W: the main thread alone. */
	static bool made;
	static pthread_key_t key;

	if (made || eddy_os_tid() != eddy_os_pid())
		return;
	made = pthread_key_create(&key, main_ends) == 0;
	if (made)
		(void)pthread_setspecific(key, &made);
}

/* A thread for this process, if it has none. */
static void
start_thread(void)
{
	uint32_t me = (uint32_t)eddy_os_pid();
	/* relaxed: which process has one is all that is said. */
	uint32_t of = eddy_load_relaxed(&thread_of);
	uint64_t mask;
	pthread_t t;
	int fd[2];

	/* relaxed: of two at once one starts it. */
	if (of == me || !eddy_cas_relaxed(&thread_of, &of, me))
		return;
	eddy_pressure_note_thread();
	if (eddy_syscall(SYS_pipe2, fd, O_CLOEXEC | O_NONBLOCK, 0, 0, 0, 0) !=
	    0)
		return;
	/* relaxed: before end_fd. */
	eddy_store_relaxed(&end_inode, inode_of(fd[1]));
	/* PRES-R2: what ends it, before it is. */
	(void)eddy_xchg_seq_cst(&end_fd, fd[1]);
	/* PRES-A2: pairs with the main thread's. */
	if (eddy_load_seq_cst(&ended) == me)
		return;
	mask = eddy_os_block_signals();
	if (eddy_os_thread_start(&t, STACK, watch, (void *)(intptr_t)fd[0]) ==
	    0)
		(void)pthread_detach(t);
	eddy_os_restore_signals(mask);
}

/* ------------------------------------------------------------------ */

static struct watcher *
find(void (*tell)(void *arg, size_t wanted), void *arg)
{
	/* PRES-A1: pairs with PRES-R1. */
	for (struct watcher *w = eddy_load_acquire(&watchers); w != NULL;
	     w = w->next)
		if (w->tell == tell && w->arg == arg)
			return w;
	return NULL;
}

EDDY_EXPORT int
eddy_on_pressure(void (*tell)(void *arg, size_t wanted), void *arg)
{
	struct watcher *w;

	if (tell == NULL)
		return EINVAL;
	w = find(tell, arg);
	if (w == NULL) {
		w = eddy_alloc(sizeof(*w), _Alignof(struct watcher), true);
		if (w == NULL)
			return ENOMEM;
		w->tell = tell;
		w->arg = arg;
		/* relaxed: the CAS checks it. */
		w->next = eddy_load_relaxed(&watchers);
		/* PRES-R1: the node. */
		while (!eddy_cas_release(&watchers, &w->next, w))
			continue;
	}
	/* PRES-R1: what the program made ready for its callback. */
	eddy_store_release(&w->on, true);
	start_thread();
	return 0;
}

EDDY_EXPORT int
eddy_off_pressure(void (*tell)(void *arg, size_t wanted), void *arg)
{
	struct watcher *w = find(tell, arg);

	/* relaxed: it may be called once more by who is in the list. */
	if (w == NULL || !eddy_load_relaxed(&w->on))
		return EINVAL;
	eddy_store_release(&w->on, false); /* PRES-R1: as above */
	return 0;
}
