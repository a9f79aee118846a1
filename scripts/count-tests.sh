#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# count-tests.sh LOG... - "N passed, N failed, N skipped", over all points of
# the tests whose .log files are named; reads the .trs file beside each.
set -u

for log in "$@"; do
	if [ -f "${log%.log}.trs" ]; then
		cat "${log%.log}.trs"
	else
		echo ":test-result: ERROR $log: never ran"
	fi
done | awk '
/^:test-result: (PASS|XFAIL)/ { passed++ }
/^:test-result: (FAIL|XPASS|ERROR)/ { failed++ }
/^:test-result: SKIP/ { skipped++ }
END { printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped }'
