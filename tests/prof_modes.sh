#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# prof_modes.sh - profiles where there are no restartable sequences, and where
# there are two homes.
# shellcheck disable=SC1091
here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
tests=${EDDY_TESTS:-tests}
[ -x "$tests/prof_totals" ] || skip_all "no $tests/prof_totals"

for conf in rseq:false topology:2x1x1; do
	for t in prof_totals prof_paths prof_tasks; do
		ok "$t with $conf" env EDDY_CONF="$conf" "$tests/$t"
	done
done
tap_end
