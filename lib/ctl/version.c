/* SPDX-License-Identifier: BSD-2-Clause */
#include "eddy_config.h"
#include "lib/ctl/conf.h"

EDDY_EXPORT const char *const eddy_version = EDDY_VERSION;
