#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# run-test.sh PROGRAM [ARG...] - runs one test and speaks TAP for it.
#
# A test that prints a plan ("1..N") is passed through.  One that exits 77 is a
# skip, with its last line as the reason.  Any other is one point, as its exit
# status says.  A test that outlasts EDDY_TEST_TIMEOUT seconds (600, times
# EDDY_PATIENCE) is killed.
set -u

name=$(basename "$1")
out=$(mktemp) || exit 99
trap 'rm -f "$out"' EXIT
trap 'exit 99' HUP INT TERM

limit=${EDDY_TEST_TIMEOUT:-$((600 * ${EDDY_PATIENCE:-1}))}
timeout -k 5 "$limit" "$@" >"$out"
status=$?
last=$(tail -n 1 "$out")

case $status in
77)
	sed 's/^/# /' "$out"
	echo "1..0 # SKIP ${last#*SKIP: }"
	exit 0
	;;
124 | 137)
	echo "# $name: killed or out of time (status $status)"
	;;
esac

if grep -q '^1\.\.[0-9]' "$out"; then
	cat "$out"
	# The points have said it; a second failure would count one too many.
	[ "$status" -ne 1 ] || ! grep -q '^not ok' "$out" || status=0
	exit "$status"
fi
sed 's/^/# /' "$out"
if [ "$status" -eq 0 ]; then
	echo "ok 1 - $name"
else
	echo "not ok 1 - $name (status $status)"
fi
echo "1..1"
