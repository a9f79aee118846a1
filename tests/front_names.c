/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * front_names.c - what /proc/self/maps calls the library's memory.
 *
 * Arguments: "named", "unnamed": what the process is to see of itself.
 */
#include "probe.h"

#include "eddy/eddy.h"

/* What the line of the mapping at p calls it; empty: nothing. */
static const char *
name_at(const void *p)
{
	static char buf[262144];
	static char name[64];
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	size_t n = 0;
	ssize_t got;

	while (n < sizeof buf - 1 &&
	       (got = read(fd, buf + n, sizeof buf - 1 - n)) > 0)
		n += (size_t)got;
	(void)close(fd);
	buf[n] = '\0';
	for (char *line = buf; *line != '\0';) {
		char *end = strchr(line, '\n');
		char *rest;
		uintptr_t from = strtoull(line, &rest, 16);
		uintptr_t to = strtoull(rest + 1, &rest, 16);

		if (end == NULL)
			break;
		*end = '\0';
		if ((uintptr_t)p >= from && (uintptr_t)p < to) {
			char *at = strchr(rest, '[');

			(void)snprintf(
			    name, sizeof name, "%s", at != NULL ? at : "");
			return name;
		}
		line = end + 1;
	}
	return "nothing there";
}

static bool
kernel_has_names(void)
{
	void *p =
	    mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return prctl(0x53564d41, 0, p, PAGE, "eddy: test") == 0;
}

/* Whether some mapping has this name. */
static bool
some_have(const char *name)
{
	char command[256];

	(void)snprintf(command, sizeof command,
	    "grep -q '\\[anon:%s\\]' /proc/%d/maps", name, (int)getpid());
	return system(command) == 0;
}

static int
look(const char *arg)
{
	void *small = p_malloc(100);
	void *large = p_malloc(3 * (size_t)MIB);
	bool named = strcmp(arg, "named") == 0;
	bool held;

	if (named)
		held = strcmp(name_at(small), "[anon:eddy: objects]") == 0 &&
		       strcmp(name_at(large), "[anon:eddy: objects]") == 0 &&
		       some_have("eddy: metadata") && some_have("eddy: caches");
	else
		held = name_at(small)[0] == '\0' && name_at(large)[0] == '\0' &&
		       !some_have("eddy: .*");
	return held ? 0 : 1;
}

int
main(int argc, char **argv)
{
	tap_guard(60);
	tap_begin(argv);
	if (argc > 1)
		return look(argv[1]);
	if (!kernel_has_names())
		tap_skip_all("the kernel has no names for memory");
	tap_ok(probe_again(argv, "named", "by default"),
	    "objects, caches and metadata have names");
	(void)setenv("EDDY_CONF", "names:false", 1);
	tap_ok(probe_again(argv, "unnamed", "names:false"),
	    "with names:false they have none");
	return tap_end();
}
