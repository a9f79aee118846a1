#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# pool_stack.sh - what pool_stack shows of a pool fails on plain malloc: the
# library's own, and others'.
#
#	pool_stack.sh [LIBRARY...]
#
# EDDY_BUILDDIR holds stress/, EDDY_SO is the library.
set -u
dir=${EDDY_BUILDDIR:-.}/stress
n=0
bad=0
out=pool_stack.$$
[ $# -gt 0 ] || set -- "${EDDY_SO:-none}" none
for library; do
	n=$((n + 1))
	name="freed nodes are seen as something else on malloc of ${library##*/}"
	EDDY_TIME='' "$dir/pool_stack" --expect-failure --on "$library" malloc \
	    >"$out" 2>&1
	status=$?
	sed 's/^/# /' "$out"
	case $status in
	0) echo "ok $n - $name" ;;
	77) echo "ok $n - $name # SKIP $(sed -n 's/^SKIP: //p' "$out")" ;;
	*)
		bad=1
		echo "not ok $n - $name"
		;;
	esac
done
rm -f "$out"
echo "1..$n"
exit $bad
