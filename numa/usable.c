/* SPDX-License-Identifier: BSD-2-Clause */
#include "numa/usable.h"

unsigned
eddy_usable_cpus(const char *root)
{
	(void)root;
	return 1;
}
