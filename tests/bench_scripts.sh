#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# bench_scripts.sh - the scripts of bench/ see what they are there to see.
set -u

# shellcheck source=tests/tap.sh
. "$EDDY_SRCDIR/tests/tap.sh"
needs python3 python3
tap_clean
exec python3 "$EDDY_SRCDIR/tests/bench_scripts.py"
