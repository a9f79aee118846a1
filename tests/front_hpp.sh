#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# front_hpp.sh - <eddy/eddy.hpp>, and the vector of examples/, as C++17 and as
# C++23, without a warning.
# shellcheck disable=SC1091,SC2034,SC2154
here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
cxx=${CXX:-g++}
needs "$cxx" g++
src=${EDDY_SRCDIR:-$here/..}
lib=${EDDY_BUILDDIR:-$src}/.libs
[ -e "$lib/libeddy.so" ] || skip_all "no libeddy.so in $lib"

for std in c++17 c++23; do
	for source in "$here/front_hpp.cc" "$here/front_vector.cc" \
		"$src/examples/good_vector.cc"; do
		name=$(basename "$source" .cc)
		what="$std: $name"
		out=$tap_work/$std-$name
		"$cxx" -std=$std -O2 -Wall -Wextra -Wshadow -Wconversion \
			-pedantic -Werror -I"$src/include" -I"$src/examples" \
			"$source" -o "$out" -L"$lib" -leddy -Wl,-rpath,"$lib" \
			>"$out.err" 2>&1
		status=$?
		sed 's/^/# /' "$out.err" | head -n 20
		ok "$what: it compiles" [ "$status" -eq 0 ]
		[ "$status" -eq 0 ] || continue
		if [ "$name" = good_vector ]; then
			ok "$what: it measures" "$out" 1
			continue
		fi
		"$out" >"$out.out"
		status=$?
		grep '^not ok' "$out.out" | sed 's/^/# /'
		runs() {
			[ "$status" -eq 0 ] && grep -q '^1\.\.[1-9]' "$out.out" &&
				! grep -q '^not ok' "$out.out"
		}
		ok "$what: $(grep -c '^ok' "$out.out") checks hold" runs
	done
done
tap_end
