/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * moves.c - pages move whole or not at all, out of ranges that the kernel
 * keeps as many mappings, which kernels before 6.17 move one by one alone.
 */
#include <stdio.h>
#include <sys/mman.h>

#include "lib/os/os.h"
#include "tests/tap.h"

enum { ROOM = 64 << 20 };

static size_t page;

static void
fill(char *p, size_t n)
{
	for (size_t i = 0; i < n; i += page)
		*(size_t *)(void *)(p + i) = i ^ 0x55;
}

static size_t
wrong(const char *p, size_t n, bool zero)
{
	size_t bad = 0;

	for (size_t i = 0; i < n; i += page)
		bad += *(const size_t *)(const void *)(p + i) !=
		       (zero ? 0 : (i ^ 0x55));
	return bad;
}

/* Touched on its own before its neighbours, a page never joins them all. */
static void
make_islands(char *p, size_t n, int islands)
{
	for (int i = 0; i < islands; i++) {
		size_t at = (size_t)tap_random(&tap.seed) % (n / page) * page;

		if (mprotect(p + at, page, PROT_READ | PROT_WRITE) != 0)
			tap_bail("mprotect");
		p[at] = 1;
	}
	if (mprotect(p, n, PROT_READ | PROT_WRITE) != 0)
		tap_bail("mprotect");
}

static void
move(size_t n, int islands)
{
	char *from = mmap(NULL, 2 * (size_t)ROOM, PROT_NONE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *to = from + ROOM;
	bool held;
	int result;

	if (from == MAP_FAILED)
		tap_bail("mmap");
	make_islands(from, n, islands);
	if (mprotect(to, n, PROT_READ | PROT_WRITE) != 0)
		tap_bail("mprotect");
	fill(from, n);
	result = eddy_os_move(from, to, n);
	if (result == 0)
		held = wrong(to, n, false) == 0 && wrong(from, n, true) == 0;
	else /* nothing is lost, and the target can be mapped again */
		held = wrong(from, n, false) == 0 &&
		       eddy_os_map_at(to, n) == 0 && wrong(to, n, true) == 0;
	tap_ok(held, "%zu KiB with %d islands: %s", n >> 10, islands,
	    result == 0 ? "moved" : "left where they were");
	(void)munmap(from, 2 * (size_t)ROOM);
}

int
main(int argc, char **argv)
{
	(void)argc;
	tap_begin(argv);
	tap_guard(60);
	page = eddy_os_page_size();
	move(ROOM, 0);
	move(ROOM, 1);
	move(ROOM, 9);
	move(ROOM, 400); /* more than pays */
	move((size_t)4 << 20, 3);
	move((size_t)4 << 20, 60);
	return tap_end();
}
