#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# tool_eddyctl.sh - the commands of eddyctl: tool_eddyctl.py.
set -u

# shellcheck source=tests/tap.sh
. "$EDDY_SRCDIR/tests/tap.sh"
needs python3 python3
[ -x "${EDDYCTL:-$EDDY_BUILDDIR/tools/eddyctl}" ] ||
	skip_all "eddyctl is not built: no libjansson"
python3 -B "$EDDY_SRCDIR/tests/tool_eddyctl.py"
