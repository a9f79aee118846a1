/* SPDX-License-Identifier: BSD-2-Clause */
/* ctl_tcache.c - caches that the program creates. */
#include <errno.h>
#include <string.h>

#include "lib/ctl/ctl_gen_names.h"
#include "lib/heap/explicit.h"

int
eddy_ctl_tcache_create(struct eddy_ctl *c)
{
	unsigned id;
	int err;

	if (c->oldp == NULL || c->oldlenp == NULL ||
	    *c->oldlenp != sizeof(id)) {
		if (c->oldlenp != NULL)
			*c->oldlenp = 0;
		return EINVAL;
	}
	err = eddy_explicit_create(c->h, &id);
	return err != 0 ? EAGAIN : eddy_ctl_give(c, &id, sizeof(id));
}

int
eddy_ctl_tcache_flush(struct eddy_ctl *c)
{
	return c->writes ? -eddy_explicit_flush(c->h, (unsigned)c->in) : EINVAL;
}

int
eddy_ctl_tcache_destroy(struct eddy_ctl *c)
{
	return c->writes ? -eddy_explicit_destroy(c->h, (unsigned)c->in)
			 : EINVAL;
}

/* ------------------------------------------------------------------ */
/* What a CPU's cache holds of a class */

int
eddy_ctl_ncached_max_read(struct eddy_ctl *c)
{
	const size_t most = (size_t)8 << 20;
	size_t size;
	size_t n = 0;

	if (c->newp == NULL || c->newlen != sizeof(size))
		return EINVAL;
	memcpy(&size, c->newp, sizeof(size));
	if (size > most)
		return EINVAL;
	if (c->h->cached && size <= c->h->opts.tcache_max &&
	    size <= EDDY_ROW_MAX)
		n = eddy_classes[eddy_size_rows[(size + 7) / 8]].depth;
	return eddy_ctl_give(c, &n, sizeof(n));
}

/* Rows find their capacity themselves: it is looked at, no more. */
int
eddy_ctl_ncached_max_write(struct eddy_ctl *c)
{
	const char *list;

	if (c->oldp != NULL || c->oldlenp != NULL)
		return EPERM;
	if (c->newp == NULL)
		return 0;
	if (c->newlen != sizeof(list))
		return EINVAL;
	memcpy(&list, c->newp, sizeof(list));
	return list != NULL && eddy_class_list(list) ? 0 : EINVAL;
}
