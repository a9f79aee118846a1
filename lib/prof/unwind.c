/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/prof/unwind.h"

#include <link.h>
#include <string.h>
#include <unwind.h>

#include "lib/os/os.h"

/* Number of the frame pointer in unwind tables. */
#if defined(__x86_64__)
#	define FRAME_POINTER 6
#elif defined(__aarch64__)
#	define FRAME_POINTER 29
#else
#	define FRAME_POINTER -1
#endif

/* A frame larger than this is none. */
#define MAX_FRAME ((uintptr_t)1 << 20)

/*
 * The library's own code, where it is a shared library; else none.
 * W: eddy_unwind_begin.  R: any later.
 */
static uintptr_t own_from;
static uintptr_t own_to;

struct walk {
	uintptr_t *frame;
	unsigned n;
	unsigned most;
	bool outside;  /* of the library */
	bool pointers; /* stop at the first such frame */
	uintptr_t fp;  /* and what its frame pointer is */
	unsigned n_steps;
	uintptr_t last;   /* place of a return address */
	uintptr_t probed; /* page that can be read */
	struct eddy_trace *trace;
};

static bool
is_own(uintptr_t ip)
{
	return ip - own_from < own_to - own_from;
}

/* Whether a word can be read; each page is asked about once. */
static bool
can_read(struct walk *w, uintptr_t place)
{
	uintptr_t page = place / eddy_os_page_size() + 1;

	if (page != w->probed && !eddy_os_readable((void *)place))
		return false;
	w->probed = page;
	return true;
}

/* A return address that stands at a place: at one where it can be told. */
static void
note(struct walk *w, uintptr_t place, uintptr_t value)
{
	struct eddy_trace *t = w->trace;

	/* Too deep, on another stack, which may go, or the frame of a handler,
	 * below which there may be nothing. */
	if (t->n >= EDDY_TRACE_MAX || place <= w->last ||
	    (w->last != 0 && place - w->last > MAX_FRAME) ||
	    place % sizeof(place) != 0 || !can_read(w, place) ||
	    *(const uintptr_t *)place != value) {
		t->n = EDDY_TRACE_MAX + 1;
		return;
	}
	w->last = place;
	t->place[t->n] = place;
	t->value[t->n++] = value;
}

/* Where the call that made a frame's callee has left its return address; 0:
 * libgcc does not tell. */
static uintptr_t
place_of(struct _Unwind_Context *context)
{
#if defined(__x86_64__)
	return _Unwind_GetCFA(context) - sizeof(uintptr_t);
#else
	(void)context;
	return 0;
#endif
}

static _Unwind_Reason_Code
step(struct _Unwind_Context *context, void *arg)
{
	struct walk *w = arg;
	uintptr_t ip = _Unwind_GetIP(context);

	if (ip == 0)
		return _URC_END_OF_STACK;
	/* The first is this file's own, whose place is gone by now. */
	if (w->n_steps++ != 0)
		note(w, place_of(context), ip);
	if (!w->outside && is_own(ip - 1))
		return _URC_NO_REASON;
	w->outside = true;
	w->frame[w->n++] = ip;
	if (w->n == w->most)
		return _URC_END_OF_STACK;
	if (w->pointers && FRAME_POINTER >= 0) {
		w->fp = _Unwind_GetGR(context, FRAME_POINTER);
		return _URC_END_OF_STACK;
	}
	return _URC_NO_REASON;
}

/* Pairs {frame pointer of the caller, return address}, upwards. */
static void
follow(struct walk *w)
{
	uintptr_t fp = w->fp;

	/* They may lead anywhere, and what is there may go: no trace. */
	w->trace->n = EDDY_TRACE_MAX + 1;
	while (w->n < w->most && fp != 0 && fp % sizeof(fp) == 0) {
		uintptr_t pair[2];

		if (!can_read(w, fp) || !can_read(w, fp + sizeof(fp)))
			return;
		memcpy(pair, (void *)fp, sizeof(pair));
		if (pair[1] < eddy_os_page_size())
			return;
		w->frame[w->n++] = pair[1];
		if (pair[0] <= fp || pair[0] - fp > MAX_FRAME)
			return;
		fp = pair[0];
	}
}

EDDY_NOINLINE unsigned
eddy_unwind(uintptr_t *frame, unsigned most, bool pointers,
    struct eddy_trace *ret_trace)
{
	struct walk w = {.frame = frame,
	    .most = most,
	    .pointers = pointers,
	    .trace = ret_trace};

	ret_trace->n = 0;

	if (most == 0)
		return 0;
	(void)_Unwind_Backtrace(step, &w);
	if (pointers)
		follow(&w);
	return w.n;
}

void
eddy_unwind_default(void **frame, unsigned *len, unsigned most)
{
	struct eddy_trace trace;

	*len = eddy_unwind((uintptr_t *)frame, most, false, &trace);
}

/* ------------------------------------------------------------------ */

/* Code of the object that this function is in, unless it is the program. */
static int
find_own(struct dl_phdr_info *info, size_t size, void *arg)
{
	uintptr_t here = (uintptr_t)find_own;

	(void)size;
	(void)arg;
	if (info->dlpi_name == NULL || info->dlpi_name[0] == '\0')
		return 0;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t from = info->dlpi_addr + p->p_vaddr;

		if (p->p_type != PT_LOAD || here - from >= p->p_memsz)
			continue;
		own_from = from;
		own_to = from + p->p_memsz;
		return 1;
	}
	return 0;
}

void
eddy_unwind_begin(void)
{
	uintptr_t frame[2];
	struct eddy_trace trace = {0};
	struct walk w = {.frame = frame, .most = 2, .trace = &trace};

	(void)dl_iterate_phdr(find_own, NULL);
	(void)_Unwind_Backtrace(step, &w);
}
