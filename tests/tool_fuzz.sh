#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# tool_fuzz.sh - odd requests: tool_fuzz.py; EDDY_FUZZ of them.
set -u

# shellcheck source=tests/tap.sh
. "$EDDY_SRCDIR/tests/tap.sh"
needs python3 python3
python3 -B "$EDDY_SRCDIR/tests/tool_fuzz.py"
