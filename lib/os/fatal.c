/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/os/fatal.h"

#include <stddef.h>
#include <stdint.h>

#include "lib/base/atomic.h"
#include "lib/base/base.h"
#include "lib/os/os.h"

struct line {
	char text[160];
	size_t n;
};

static void
add(struct line *l, const char *s)
{
	while (*s != '\0' && l->n < sizeof(l->text) - 1)
		l->text[l->n++] = *s++;
}

static void
add_pointer(struct line *l, const void *p)
{
	uintptr_t v = (uintptr_t)p;
	int shift = v == 0 ? 0 : (int)(eddy_log2(v) & ~3u);
	char digit[2] = {0, 0};

	add(l, "0x");
	for (; shift >= 0; shift -= 4) {
		digit[0] = "0123456789abcdef"[(v >> shift) & 15];
		add(l, digit);
	}
}

/* W: the program.  R: any.  O: none: a function that was there before. */
static _Atomic(eddy_fatal_listener *) listener;

void
eddy_fatal_listen(eddy_fatal_listener *fn)
{
	/* relaxed: as said. */
	eddy_store_relaxed(&listener, fn);
}

bool
eddy_fatal_tell(const char *message)
{
	/* relaxed: as said. */
	eddy_fatal_listener *fn = eddy_load_relaxed(&listener);

	if (fn != NULL)
		fn(message);
	return fn != NULL;
}

static _Noreturn void
finish(struct line *l)
{
	/* relaxed: as said.  Once: a fault in it is the end. */
	eddy_fatal_listener *fn = eddy_xchg_relaxed(&listener, NULL);

	l->text[l->n] = '\0';
	if (fn != NULL)
		fn(l->text);
	l->text[l->n++] = '\n';
	(void)eddy_os_write(2, l->text, l->n);
	eddy_os_abort();
}

EDDY_COLD void
eddy_fatal(const char *fault, const void *p)
{
	struct line l = {.n = 0};

	add(&l, "<eddy>: ");
	add(&l, fault);
	add(&l, ": ");
	add_pointer(&l, p);
	finish(&l);
}

EDDY_COLD void
eddy_fatal_text(const char *text)
{
	struct line l = {.n = 0};

	add(&l, "<eddy>: ");
	add(&l, text);
	finish(&l);
}
