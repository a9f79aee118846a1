/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * os_advise.c - names of memory and the state of huge pages, on a made-up
 * kernel with files of its own.
 */
#include "probe.h"

#include "lib/os/advise.h"
#include "lib/os/os.h"
#include "os_advise_kernel.h"

/* ---- the kernel ---- */

static long answer;       /* to the next calls */
static long thp_disabled; /* what prctl says of this process */
static unsigned calls;
static long last[6];

long
kernel_call(long nr, long a, long b, long c, long d, long e)
{
	calls++;
	last[0] = nr;
	last[1] = a;
	last[2] = b;
	last[3] = c;
	last[4] = d;
	last[5] = e;
	if (nr == SYS_prctl && a == PR_GET_THP_DISABLE)
		return thp_disabled;
	return answer;
}

static struct {
	const char *path;
	const char *text; /* NULL: there is no such file */
} files[] = {
    {"/sys/kernel/mm/transparent_hugepage/enabled", NULL},
    {"/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", NULL},
    {"/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled", NULL},
    {"/sys/kernel/mm/transparent_hugepage/hugepages-32768kB/enabled", NULL},
};

ssize_t
eddy_os_read_file(const char *path, char *buf, size_t n)
{
	for (size_t i = 0; i < COUNT(files); i++) {
		size_t length;

		if (strcmp(path, files[i].path) != 0 || files[i].text == NULL)
			continue;
		length = strlen(files[i].text);
		length = length < n ? length : n;
		memcpy(buf, files[i].text, length);
		return (ssize_t)length;
	}
	return -ENOENT;
}

/* ---- */

static void
test_names(void)
{
	static char memory[8192];

	answer = 0;
	eddy_os_name(memory, sizeof memory, "a name");
	tap_ok(calls == 1 && last[0] == SYS_prctl && last[1] == 0x53564d41 &&
		   last[2] == 0 && last[3] == (long)memory &&
		   last[4] == sizeof memory &&
		   strcmp((const char *)last[5], "a name") == 0,
	    "a name is told by one prctl");
	answer = -ENOMEM;
	eddy_os_name(memory, sizeof memory, "a name");
	eddy_os_name(memory, sizeof memory, "a name");
	tap_ok(calls == 3, "asked again after ENOMEM: that was of those pages");
	answer = -EINVAL;
	eddy_os_name(memory, sizeof memory, "a name");
	eddy_os_name(memory, sizeof memory, "a name");
	tap_ok(calls == 4, "a kernel without names is asked once");
}

struct thp {
	const char *all;
	const char *size;
	const char *of_2m;
	const char *of_32m;
	bool always;
};

static void
test_always(void)
{
	static const struct thp is[] = {
	    {"[always] madvise never\n", NULL, NULL, NULL, true},
	    {"always [madvise] never\n", NULL, NULL, NULL, false},
	    {"always madvise [never]\n", NULL, NULL, NULL, false},
	    {"[always] madvise never\n", "2097152\n",
		"always [inherit] madvise never\n", NULL, true},
	    {"always madvise [never]\n", "2097152\n",
		"always [inherit] madvise never\n", NULL, false},
	    {"[always] madvise never\n", "2097152\n",
		"always inherit madvise [never]\n", NULL, false},
	    {"always madvise [never]\n", "2097152\n",
		"[always] inherit madvise never\n", NULL, true},
	    {"[always] madvise never\n", "33554432\n",
		"[always] inherit madvise never\n",
		"always inherit [madvise] never\n", false},
	    {NULL, NULL, NULL, NULL, true},
	    {"", NULL, NULL, NULL, true},
	    {"[alwaysish]", NULL, NULL, NULL, false},
	};
	bool held = true;

	for (size_t i = 0; i < COUNT(is); i++) {
		files[0].text = is[i].all;
		files[1].text = is[i].size;
		files[2].text = is[i].of_2m;
		files[3].text = is[i].of_32m;
		if (eddy_os_huge_always() != is[i].always) {
			tap_diag("case %zu", i);
			held = false;
		}
	}
	tap_ok(held, "whether huge pages come unasked for, as /sys says; "
		     "where it is silent, yes");
	thp_disabled = 1;
	files[0].text = is[0].all;
	tap_ok(!eddy_os_huge_always(), "not in a process without huge pages");
	thp_disabled = 0;
}

static void
test_size(void)
{
	files[1].text = "33554432\n";
	tap_ok(eddy_os_huge_size() == 32 * (size_t)MIB,
	    "the size of a huge page is the kernel's");
	files[1].text = "0\n";
	tap_ok(eddy_os_huge_size() == 2 * (size_t)MIB, "else 2 MiB");
}

static void
test_huge(void)
{
	static char memory[8192];
	bool held;

	answer = 0;
	held = eddy_os_huge(memory, sizeof memory, true) == 0 &&
	       last[0] == SYS_madvise && last[3] == MADV_HUGEPAGE;
	held &= eddy_os_huge(memory, sizeof memory, false) == 0 &&
		last[3] == MADV_NOHUGEPAGE;
	answer = -EINVAL;
	held &= eddy_os_huge(memory, sizeof memory, false) == -EINVAL;
	tap_ok(held, "huge pages wanted, and not");
}

int
main(void)
{
	tap_guard(60);
	test_names();
	test_always();
	test_size();
	test_huge();
	return tap_end();
}
