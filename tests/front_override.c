/* SPDX-License-Identifier: BSD-2-Clause */
/* front_override.c - one object serves the whole family: no mixed heaps. */
#include "probe.h"

static const char *const family[] = {"malloc", "calloc", "realloc",
    "reallocarray", "free", "memalign", "posix_memalign", "aligned_alloc",
    "valloc", "pvalloc", "malloc_usable_size"};
static const char *const sized[] = {"free_sized", "free_aligned_sized"};
static const char *const glibc[] = {"malloc_trim", "mallinfo", "mallinfo2",
    "mallopt", "malloc_stats", "malloc_info"};
static const char *const cxx[] = {"_Znwm", "_Znam", "_ZnwmRKSt9nothrow_t",
    "_ZnamRKSt9nothrow_t", "_ZnwmSt11align_val_t", "_ZnamSt11align_val_t",
    "_ZnwmSt11align_val_tRKSt9nothrow_t", "_ZnamSt11align_val_tRKSt9nothrow_t",
    "_ZdlPv", "_ZdaPv", "_ZdlPvRKSt9nothrow_t", "_ZdaPvRKSt9nothrow_t",
    "_ZdlPvm", "_ZdaPvm", "_ZdlPvSt11align_val_t", "_ZdaPvSt11align_val_t",
    "_ZdlPvmSt11align_val_t", "_ZdaPvmSt11align_val_t",
    "_ZdlPvSt11align_val_tRKSt9nothrow_t",
    "_ZdaPvSt11align_val_tRKSt9nothrow_t"};

static const char *home;

static bool
all_from_home(const char *const *name, size_t n)
{
	bool held = true;

	for (size_t i = 0; i < n; i++) {
		void *sym = dlsym(RTLD_DEFAULT, name[i]);
		Dl_info info = {.dli_fname = "nowhere"};

		if (sym != NULL)
			(void)dladdr(sym, &info);
		if (strcmp(info.dli_fname, home) != 0) {
			tap_diag("%s: %s", name[i], info.dli_fname);
			held = false;
		}
	}
	return held;
}

int
main(int argc, char **argv)
{
	Dl_info info;

	(void)argc;
	tap_begin(argv);
	tap_guard(20);
	if (dladdr(dlsym(RTLD_DEFAULT, "malloc"), &info) == 0)
		tap_bail("dladdr");
	home = info.dli_fname;
	tap_ok(all_from_home(family, COUNT(family)),
	    "the malloc family comes from one object");
	tap_ok(all_from_home(sized, COUNT(sized)), "so do C23's sized frees");
	tap_ok(all_from_home(glibc, COUNT(glibc)),
	    "so does what glibc adds to the family");
	tap_ok(all_from_home(cxx, COUNT(cxx)),
	    "so do all 20 operators new and delete");
	return tap_end();
}
