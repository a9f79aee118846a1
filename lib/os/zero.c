/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/os/zero.h"

#include <fcntl.h>
#include <string.h>

#include "lib/arch/syscall.h"
#include "lib/base/atomic.h"
#include "lib/os/os.h"

/* Below this, writing costs less than asking. */
#define MIN_ASK ((size_t)1 << 20)
/* From this on, dropping costs less than writing. */
#define MIN_DROP ((size_t)4 << 20)

/* <linux/fs.h> of Linux 6.7; Debian 12 has an older one. */
struct page_region {
	uint64_t start;
	uint64_t end;
	uint64_t categories;
};

struct scan_arg {
	uint64_t size;
	uint64_t flags;
	uint64_t start;
	uint64_t end;
	uint64_t walk_end; /* out */
	uint64_t vec;
	uint64_t vec_len;
	uint64_t max_pages;
	uint64_t category_inverted;
	uint64_t category_mask;
	uint64_t category_anyof_mask;
	uint64_t return_mask;
};

#define PAGE_PRESENT (1u << 3)
#define PAGE_SWAPPED (1u << 4)
#define PAGE_ZERO    (1u << 5)
/* _IOWR('f', 16, struct scan_arg) */
#define SCAN \
	(3u << 30 | (unsigned)sizeof(struct scan_arg) << 16 | 'f' << 8 | 16)

bool
eddy_os_drop(void *p, size_t size)
{
	size_t page = eddy_os_page_size();
	_Atomic char *witness = p;
	char was;

	if ((uintptr_t)p % page != 0 || size % page != 0 || size == 0)
		return false;
	/* relaxed, all: in hand; atomic, so that the compiler stores it. */
	was = eddy_load_relaxed(witness);
	eddy_store_relaxed(witness, 1);
	if (eddy_os_discard(p, size) == 0 && eddy_load_relaxed(witness) == 0)
		return true;
	eddy_store_relaxed(witness, was);
	return false;
}

/* Writes the pages that a scan finds; false: the kernel has no such scan. */
static bool
zero_by_scan(long fd, uintptr_t from, uintptr_t to)
{
	struct page_region found[32];
	struct scan_arg arg;

	while (from < to) {
		long n;

		memset(&arg, 0, sizeof(arg));
		arg.size = sizeof(arg);
		arg.start = from;
		arg.end = to;
		arg.vec = (uintptr_t)found;
		arg.vec_len = sizeof(found) / sizeof(found[0]);
		arg.category_inverted = PAGE_ZERO;
		arg.category_mask = PAGE_ZERO;
		arg.category_anyof_mask = PAGE_PRESENT | PAGE_SWAPPED;
		arg.return_mask = PAGE_PRESENT;
		n = eddy_syscall(SYS_ioctl, fd, SCAN, &arg, 0, 0, 0);
		if (n < 0 || arg.walk_end <= from)
			return false;
		for (long i = 0; i < n; i++)
			memset((void *)found[i].start, 0,
			    found[i].end - found[i].start);
		from = arg.walk_end;
	}
	return true;
}

static bool
zero_by_asking(void *p, size_t size)
{
	size_t page = eddy_os_page_size();
	uintptr_t from = (uintptr_t)p;
	bool done;
	long fd;

	if (from % page != 0 || size % page != 0)
		return false;
	fd = eddy_syscall(SYS_openat, AT_FDCWD, "/proc/self/pagemap",
	    O_RDONLY | O_CLOEXEC, 0, 0, 0);
	if (fd < 0)
		return false;
	/* Whatever else may be behind fd by now, it knows no such scan. */
	done = zero_by_scan(fd, from, from + size);
	(void)eddy_syscall(SYS_close, fd, 0, 0, 0, 0, 0);
	return done;
}

void
eddy_os_zero(void *p, size_t size)
{
	if (size >= MIN_ASK && zero_by_asking(p, size))
		return;
	if (size >= MIN_DROP && eddy_os_drop(p, size))
		return;
	memset(p, 0, size);
}
