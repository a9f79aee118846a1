#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# claim.sh - the short stress without restartable sequences, in claim mode.
set -u
dir=${EDDY_BUILDDIR:-.}/stress
n=0
bad=0
EDDY_CONF=${EDDY_CONF:+$EDDY_CONF,}rseq:false
EDDY_TIME=2
export EDDY_CONF EDDY_TIME
for program in freeze freeze_step kill mixed fork_any; do
	n=$((n + 1))
	"$dir/$program" >"claim.$$" 2>&1
	status=$?
	sed 's/^/# /' "claim.$$"
	case $status in
	0) echo "ok $n - $program in claim mode" ;;
	77) echo "ok $n - $program # SKIP $(sed -n 's/^SKIP: //p' "claim.$$")" ;;
	*)
		bad=1
		echo "not ok $n - $program in claim mode (status $status)"
		;;
	esac
done
rm -f "claim.$$"
echo "1..$n"
exit $bad
