#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# ctl_report.sh - malloc_stats_print as tools read it: see ctl_report.py.
set -u

# shellcheck source=tests/tap.sh
. "$EDDY_SRCDIR/tests/tap.sh"
needs python3 python3
tap_clean
LD_PRELOAD=${EDDY_SO:-} PYTHONMALLOC=malloc \
	exec python3 "$EDDY_SRCDIR/tests/ctl_report.py"
