/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * conf.h - reads the options of the process into a struct eddy_opts.
 *
 * Layer      ctl (L5); may include base, arch, os.
 * Progress   wait-free but for the kernel.
 * Memory     the caller's alone.  Where environ is not set up yet, a mapping
 *            holds the environment while it is read.
 * Context    runs inside the first malloc, in several threads at once if they
 *            come first together: no static is written, nothing is allocated,
 *            no lock, no libc but getauxval(3).  Not before relocation.
 *
 * An option string is "name:value,name:value"; names are letters, digits and
 * underscores; a value ends at the next comma.  Strings are taken from, in this
 * order, and the later wins: the build (--with-malloc-conf), the symbol
 * malloc_conf, the text of the link /etc/malloc.conf, MALLOC_CONF, the symbol
 * malloc_conf_2_conf_harder, EDDY_CONF.
 * A secure-exec program (set-id, say) has its environment ignored.
 *
 * Invariants
 *   I-CONF-1  *opts is within the ranges of ctl.tab, whatever the strings say.
 *   I-CONF-2  A fault is one line in the log, or one in the count of its last
 *             line if it did not fit, and changes no option.
 */
#ifndef EDDY_CONF_H
#define EDDY_CONF_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/base.h"
#include "lib/ctl/ctl_gen.h"

/* What public names begin with (--with-jemalloc-prefix), and where options come
 * from then. */
#ifndef EDDY_PREFIX
#	define EDDY_PREFIX       ""
#	define EDDY_PREFIX_UPPER ""
#endif
#define EDDY_CONF_NAME_MALLOC EDDY_PREFIX_UPPER "MALLOC_CONF"
#define EDDY_CONF_NAME_EDDY   EDDY_PREFIX_UPPER "EDDY_CONF"
#define EDDY_CONF_NAME_LINK   "/etc/" EDDY_PREFIX "malloc.conf"

enum eddy_conf_source {
	EDDY_CONF_BUILD,
	EDDY_CONF_SYMBOL,
	EDDY_CONF_LINK,
	EDDY_CONF_MALLOC_CONF,
	EDDY_CONF_HARDER,
	EDDY_CONF_EDDY_CONF,
	EDDY_CONF_N_SOURCES,
};

/* The option strings; NULL for none. */
struct eddy_conf_strings {
	const char *text[EDDY_CONF_N_SOURCES];
	bool link_is_cut; /* the link's text is longer than this */
};

/* What the reading has to say, to be printed by one thread later. */
struct eddy_conf_log {
	uint32_t n_faults;
	uint32_t n_dropped; /* lines that did not fit */
	uint32_t len;
	bool abort_conf;
	char text[2048]; /* whole lines, then a null byte */
};

/* Bytes of the text of the link that are read, the last a null byte. */
#define EDDY_CONF_LINK_MAX 512

/*
 * eddy_conf_load - defaults, then every option string of the process.
 *
 * link: gets the text of the link, "" for none.
 * Returns: 0, or -EINVAL if there were faults; *opts is valid in either case.
 */
int eddy_conf_load(struct eddy_opts *opts, struct eddy_conf_log *log,
    char link[EDDY_CONF_LINK_MAX]);

/* The value of MALLOC_CONF now, NULL: not there, or nobody's to give. */
const char *eddy_conf_variable(void);

/* Whether there is any option string at all. */
bool eddy_conf_given(void);

/* The same for strings given: a pure function of them. */
EDDY_MUST_USE int eddy_conf_parse(struct eddy_opts *opts,
    struct eddy_conf_log *log, const struct eddy_conf_strings *strings);

/*
 * eddy_conf_refuse - notes a value that has the right form but was found to
 * mean nothing.
 */
void eddy_conf_refuse(struct eddy_conf_log *log, const char *name,
    const char *value, const char *what);

/*
 * eddy_conf_report - gives the log to malloc_message, or to stderr.
 *
 * Returns: 0, or -EINVAL if there were faults and abort_conf is set: the
 *          caller ends the process.
 */
EDDY_MUST_USE int eddy_conf_report(const struct eddy_conf_log *log);

/* The same for any text. */
void eddy_conf_message(const char *s);

/* One call of put a line: "  opt.NAME: VALUE\n".  Allocates nothing itself. */
void eddy_conf_print(const struct eddy_opts *opts,
    void (*put)(void *arg, const char *line), void *arg);

/* Set by a program that wants options of its own (weak here). */
extern const char *malloc_conf;
extern const char *malloc_conf_2_conf_harder;
/* The same by one that writes itself what the library has to say. */
extern void (*malloc_message)(void *cbopaque, const char *s);

/* "0.1.0" */
extern const char *const eddy_version;

#endif /* EDDY_CONF_H */
