/* SPDX-License-Identifier: BSD-2-Clause */
#include "numa/placement.h"

void
eddy_placement_find(struct eddy_placement *p, enum eddy_opt_numa numa,
    enum eddy_opt_home home, const char *topology)
{
	(void)numa;
	(void)home;
	(void)topology;
	p->n_homes = 1;
	p->n_nodes = 1;
	p->has_memory[0] = 1;
}

unsigned
eddy_placement_of_cpu(const struct eddy_placement *p, unsigned cpu)
{
	unsigned home = cpu < EDDY_MAX_CPUS ? p->home_of_cpu[cpu] : 0;

	return home < p->n_homes ? home : 0;
}
