#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# variant.sh - the short stress once more, under another option.
#
#	variant.sh OPTION:VALUE WHAT PROGRAM...
set -u
dir=${EDDY_BUILDDIR:-.}/stress
out=variant.$$
n=0
bad=0
EDDY_CONF=${EDDY_CONF:+$EDDY_CONF,}$1
what=$2
export EDDY_CONF EDDY_TIME
shift 2
for program; do
	n=$((n + 1))
	EDDY_TIME=2
	# The time of each pattern.
	[ "$program" != flow ] || EDDY_TIME=1
	"$dir/$program" >"$out" 2>&1
	status=$?
	sed 's/^/# /' "$out"
	case $status in
	0) echo "ok $n - $program $what" ;;
	77) echo "ok $n - $program # SKIP $(sed -n 's/^SKIP: //p' "$out")" ;;
	*)
		bad=1
		echo "not ok $n - $program $what (status $status)"
		;;
	esac
done
rm -f "$out"
echo "1..$n"
exit $bad
