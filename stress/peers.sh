#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# peers.sh - the freeze and kill tests can fail: other allocators fail them.
#
#	peers.sh [LIBRARY...]
#
# Runs them on the C library's malloc ("none") or on the libraries named and
# expects a stall or a broken bound.  EDDY_BUILDDIR holds stress/.
set -u
dir=${EDDY_BUILDDIR:-.}/stress
n=0
bad=0
[ $# -gt 0 ] || set -- none
for library; do
	for program in freeze freeze_step kill; do
		n=$((n + 1))
		name="$program fails on the peer $library"
		EDDY_TIME='' "$dir/$program" --expect-failure --on "$library" \
		    >"peers.$$" 2>&1
		status=$?
		sed 's/^/# /' "peers.$$"
		case $status in
		0) echo "ok $n - $name" ;;
		77) echo "ok $n - $name # SKIP $(sed -n 's/^SKIP: //p' "peers.$$")" ;;
		*)
			bad=1
			echo "not ok $n - $name"
			;;
		esac
	done
done
rm -f "peers.$$"
echo "1..$n"
exit $bad
