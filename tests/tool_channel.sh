#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# tool_channel.sh - the channel: tool_channel.py.
set -u

# shellcheck source=tests/tap.sh
. "$EDDY_SRCDIR/tests/tap.sh"
needs python3 python3
python3 -B "$EDDY_SRCDIR/tests/tool_channel.py"
