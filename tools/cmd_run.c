/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cmd_run.c - starts a command on the library.
 *
 * What would fail in silence is said before: options that the parser refuses,
 * and programs that LD_PRELOAD does nothing to.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "eddy_config.h"
#include "lib/ctl/conf.h"
#include "tools/eddyctl.h"

#ifndef EDDY_LIBDIR
#	define EDDY_LIBDIR "/usr/local/lib"
#endif

#define MAX_SCRIPTS 4 /* interpreters of interpreters */

/* ------------------------------------------------------------------ */
/* Programs */

/* As execvp finds it. */
static bool
find_program(const char *name, char *ret, size_t n)
{
	const char *path = getenv("PATH");

	if (strchr(name, '/') != NULL) {
		(void)snprintf(ret, n, "%s", name);
		return access(ret, X_OK) == 0;
	}
	if (path == NULL)
		path = "/bin:/usr/bin";
	while (*path != '\0') {
		size_t len = strcspn(path, ":");

		(void)snprintf(ret, n, "%.*s%s%s", (int)len, path,
		    len != 0 ? "/" : "./", name);
		if (access(ret, X_OK) == 0)
			return true;
		path += len + (path[len] == ':');
	}
	errno = ENOENT;
	return false;
}

struct image {
	const unsigned char *p;
	size_t n;
};

static bool
map_image(const char *path, struct image *im)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *p = MAP_FAILED;

	if (fd < 0)
		return false;
	if (fstat(fd, &st) == 0 && st.st_size > 0)
		p = mmap(
		    NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	(void)close(fd);
	if (p == MAP_FAILED)
		return false;
	*im = (struct image){.p = p, .n = (size_t)st.st_size};
	return true;
}

/* n bytes at a place of the file; NULL: not within it. */
static const void *
part(const struct image *im, uint64_t at, uint64_t n)
{
	return at <= im->n && n <= im->n - at ? im->p + at : NULL;
}

/* Whether a section of dynamic symbols defines malloc. */
static bool
defines_malloc(const struct image *im, const Elf64_Shdr *all,
    const Elf64_Ehdr *e, const Elf64_Shdr *s)
{
	const Elf64_Shdr *strings =
	    s->sh_link < e->e_shnum ? &all[s->sh_link] : NULL;
	const Elf64_Sym *sym = part(im, s->sh_offset, s->sh_size);
	const char *text = strings != NULL
			       ? part(im, strings->sh_offset, strings->sh_size)
			       : NULL;

	if (sym == NULL || text == NULL || strings->sh_size == 0 ||
	    text[strings->sh_size - 1] != '\0')
		return false;
	for (size_t i = 0; i < s->sh_size / sizeof(*sym); i++)
		if (sym[i].st_shndx != SHN_UNDEF &&
		    sym[i].st_name < strings->sh_size &&
		    strcmp(text + sym[i].st_name, "malloc") == 0)
			return true;
	return false;
}

/* Whether it defines malloc for the loader. */
static bool
brings_malloc(const struct image *im)
{
	const Elf64_Ehdr *e = part(im, 0, sizeof(*e));
	const Elf64_Shdr *sh;

	if (e == NULL || memcmp(e->e_ident, ELFMAG, SELFMAG) != 0 ||
	    e->e_ident[EI_CLASS] != ELFCLASS64)
		return false;
	sh = part(im, e->e_shoff, (uint64_t)e->e_shnum * sizeof(*sh));
	for (unsigned i = 0; sh != NULL && i < e->e_shnum; i++)
		if (sh[i].sh_type == SHT_DYNSYM &&
		    defines_malloc(im, sh, e, &sh[i]))
			return true;
	return false;
}

enum elf {
	ELF_NONE,
	ELF_OTHER, /* 32 bits, or another machine's */
	ELF_STATIC,
	ELF_OWN_MALLOC,
	ELF_GOOD,
};

static enum elf
judge(const struct image *im)
{
	const Elf64_Ehdr *e = part(im, 0, sizeof(*e));
	const Elf64_Phdr *ph;
	bool has_loader = false;

	if (e == NULL || memcmp(e->e_ident, ELFMAG, SELFMAG) != 0)
		return ELF_NONE;
	if (e->e_ident[EI_CLASS] != ELFCLASS64)
		return ELF_OTHER;
	ph = part(im, e->e_phoff, (uint64_t)e->e_phnum * sizeof(*ph));
	if (ph == NULL)
		return ELF_NONE;
	for (unsigned i = 0; i < e->e_phnum; i++)
		has_loader |= ph[i].p_type == PT_INTERP;
	if (!has_loader)
		return ELF_STATIC;
	return brings_malloc(im) ? ELF_OWN_MALLOC : ELF_GOOD;
}

/* "#! interpreter": its path; false: no script. */
static bool
interpreter(const struct image *im, char *ret, size_t n)
{
	size_t at = 2;
	size_t len = 0;

	if (im->p == NULL || im->n < 4 || im->p[0] != '#' || im->p[1] != '!')
		return false;
	while (at < im->n && (im->p[at] == ' ' || im->p[at] == '\t'))
		at++;
	while (at + len < im->n && len < n - 1 &&
	       strchr(" \t\r\n", im->p[at + len]) == NULL)
		len++;
	memcpy(ret, im->p + at, len);
	ret[len] = '\0';
	return len != 0;
}

/* Says why the preload will not take; false: it will, as far as one sees. */
static bool
is_out_of_reach(const char *path)
{
	char at[PATH_MAX];
	struct image im;
	struct stat st;
	enum elf kind = ELF_NONE;

	(void)snprintf(at, sizeof(at), "%s", path);
	for (unsigned i = 0; i < MAX_SCRIPTS; i++) {
		bool script;

		if (stat(at, &st) == 0 &&
		    (((st.st_mode & S_ISUID) != 0 && st.st_uid != geteuid()) ||
			((st.st_mode & S_ISGID) != 0 &&
			    st.st_gid != getegid()) ||
			(geteuid() != 0 && getxattr(at, "security.capability",
					       NULL, 0) > 0))) {
			complain("%s runs with another's rights: the loader "
				 "ignores LD_PRELOAD",
			    at);
			return true;
		}
		if (!map_image(at, &im))
			return false;
		kind = judge(&im);
		script = kind == ELF_NONE && interpreter(&im, at, sizeof(at));
		(void)munmap((void *)(uintptr_t)im.p, im.n);
		if (!script)
			break;
	}
	if (kind == ELF_STATIC)
		complain("%s is static: nothing can be preloaded; link it "
			 "with libeddy.a",
		    at);
	else if (kind == ELF_OWN_MALLOC)
		complain("%s brings its own malloc, which the preload does "
			 "not replace: build it without (for jemalloc, "
			 "tcmalloc and the like there is a switch)",
		    at);
	else if (kind == ELF_OTHER)
		complain("%s is not a 64-bit program", at);
	return kind != ELF_GOOD && kind != ELF_NONE;
}

/* ------------------------------------------------------------------ */
/* Options and environment */

/* As the process would read them. */
static bool
options_are_good(const char *eddy_conf)
{
	struct eddy_conf_strings s = {.link_is_cut = false};
	static struct eddy_conf_log log;
	struct eddy_opts opts;

	s.text[EDDY_CONF_BUILD] = EDDY_BUILD_CONF;
	s.text[EDDY_CONF_MALLOC_CONF] = getenv(EDDY_CONF_NAME_MALLOC);
	s.text[EDDY_CONF_EDDY_CONF] = eddy_conf;
	if (eddy_conf_parse(&opts, &log, &s) == 0)
		return true;
	(void)fputs(log.text, stderr);
	return false;
}

/* "control:auto", what the environment has, what -c says. */
static bool
make_conf(char *ret, size_t n)
{
	const char *old = getenv(EDDY_CONF_NAME_EDDY);
	const char *more = settings.conf;
	int need = snprintf(ret, n, "control:auto%s%s%s%s",
	    old != NULL && *old != '\0' ? "," : "", old != NULL ? old : "",
	    more != NULL && *more != '\0' ? "," : "", more != NULL ? more : "");

	return need > 0 && (size_t)need < n;
}

/* NULL: it was said that there is none. */
static const char *
find_library(void)
{
	static const char *const places[] = {EDDY_LIBDIR "/libeddy.so.0",
	    "/usr/lib/libeddy.so.0", "/usr/local/lib/libeddy.so.0"};
	const char *given = settings.library;

	if (given == NULL)
		given = getenv("EDDY_SO");
	if (given != NULL) {
		if (access(given, R_OK) == 0)
			return given;
		complain("%s: %s", given, strerror(errno));
		return NULL;
	}
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (access(places[i], R_OK) == 0)
			return places[i];
	complain("no libeddy.so.0 to be found; -l says where it is");
	return NULL;
}

static bool
preload(const char *library)
{
	char at[PATH_MAX];
	char value[2 * PATH_MAX];
	const char *old = getenv("LD_PRELOAD");
	struct image im;
	bool serves;

	if (realpath(library, at) == NULL || !map_image(at, &im)) {
		complain("%s: %s", library, strerror(errno));
		return false;
	}
	serves = brings_malloc(&im);
	(void)munmap((void *)(uintptr_t)im.p, im.n);
	if (!serves) {
		complain("%s has no malloc to preload, as one whose names "
			 "have a prefix; -l says where another is",
		    at);
		return false;
	}
	if (strpbrk(at, " :") != NULL) {
		complain("%s: the loader takes no blanks or colons", at);
		return false;
	}
	(void)snprintf(value, sizeof(value), "%s%s%s", at,
	    old != NULL && *old != '\0' ? ":" : "", old != NULL ? old : "");
	return setenv("LD_PRELOAD", value, 1) == 0;
}

int
cmd_run(int argc, char **argv)
{
	static char conf[32768];
	char path[PATH_MAX];
	const char *library;

	if (argc < 2)
		return misused("run");
	if (!make_conf(conf, sizeof(conf)) || !options_are_good(conf)) {
		complain("nothing was started; eddyctl options lists what "
			 "there is");
		return CANNOT;
	}
	if (!find_program(argv[1], path, sizeof(path))) {
		complain("%s: %s", argv[1], strerror(errno));
		return errno == ENOENT ? 127 : 126;
	}
	if (is_out_of_reach(path)) {
		complain("nothing was started");
		return CANNOT;
	}
	library = find_library();
	if (library == NULL || !preload(library)) {
		complain("nothing was started");
		return CANNOT;
	}
	if (setenv(EDDY_CONF_NAME_EDDY, conf, 1) != 0)
		return CANNOT;
	(void)fflush(stdout);
	(void)execv(path, argv + 1);
	complain("%s: %s", path, strerror(errno));
	return 126;
}
