/* SPDX-License-Identifier: BSD-2-Clause */
/* ctl_process.c - of the process: options, background threads. */
#include <errno.h>
#include <string.h>

#include "eddy_config.h"
#include "lib/ctl/background.h"
#include "lib/ctl/conf.h"
#include "lib/ctl/ctl_gen_names.h"
#include "lib/os/fatal.h"

int
eddy_ctl_config_malloc_conf(struct eddy_ctl *c)
{
	c->out = eddy_ctl_pointer(EDDY_BUILD_CONF);
	return 0;
}

int
eddy_ctl_conf_link(struct eddy_ctl *c)
{
	c->out = eddy_ctl_pointer(
	    c->h->conf_link[0] != '\0' ? c->h->conf_link : NULL);
	return 0;
}

int
eddy_ctl_conf_variable(struct eddy_ctl *c)
{
	c->out = eddy_ctl_pointer(eddy_conf_variable());
	return 0;
}

int
eddy_ctl_safety_check_abort(struct eddy_ctl *c)
{
	eddy_fatal_listener *fn;

	if (c->oldp != NULL || c->oldlenp != NULL)
		return EPERM;
	if (c->newp == NULL)
		return 0;
	if (c->newlen != sizeof(fn))
		return EINVAL;
	memcpy(&fn, c->newp, sizeof(fn));
	eddy_fatal_listen(fn);
	return 0;
}

int
eddy_ctl_global_var(struct eddy_ctl *c)
{
	c->out = eddy_ctl_pointer(malloc_conf);
	return 0;
}

int
eddy_ctl_global_var_harder(struct eddy_ctl *c)
{
	c->out = eddy_ctl_pointer(malloc_conf_2_conf_harder);
	return 0;
}

/* ------------------------------------------------------------------ */
/* Background threads */

int
eddy_ctl_background_thread(struct eddy_ctl *c)
{
	c->out = eddy_background_on(c->h);
	if (!c->writes || c->in == c->out)
		return 0;
	if (c->in != 0)
		return -eddy_background_start(c->h);
	eddy_background_stop(c->h);
	return 0;
}

/* What was written; 0: as the option.  W, R: any CPU.  O: none: a setting. */
static _Atomic uint64_t max_threads;

int
eddy_ctl_max_background_threads(struct eddy_ctl *c)
{
	size_t most = c->h->opts.max_background_threads;
	uint64_t v;

	if (c->writes && (c->in == 0 || c->in > most))
		return EINVAL;
	/* relaxed, both: a setting. */
	v = c->writes ? eddy_xchg_relaxed(&max_threads, c->in)
		      : eddy_load_relaxed(&max_threads);
	c->out = v != 0 ? v : most;
	return 0;
}
