#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# front_cxx.sh - front_cxx.cc under the library; and a C program in which the
# C++ operators work though nothing has loaded libstdc++.
# tap.sh has what is not found here.
# shellcheck disable=SC1091,SC2034,SC2154
here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
cxx=${CXX:-g++}
needs "$cxx" g++

"$cxx" -std=gnu++17 -O2 -fno-builtin -pthread "$here/front_cxx.cc" \
	-o "$tap_work/cxx" || exit 99
"$tap_work/cxx" >"$tap_work/cxx.out"
status=$?
grep -v '^1\.\.' "$tap_work/cxx.out"
tap_n=$(grep -c '^\(not \)\{0,1\}ok ' "$tap_work/cxx.out")
tap_failed=$(grep -c '^not ok ' "$tap_work/cxx.out")
ok 'the C++ test runs to its end' [ "$status" -eq 0 ]

cat >"$tap_work/plain.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int
main(int argc, char **argv)
{
	void *(*new)(size_t) = (void *(*)(size_t))dlsym(RTLD_DEFAULT, "_Znwm");
	void (*del)(void *) = (void (*)(void *))dlsym(RTLD_DEFAULT, "_ZdlPv");
	char *p;

	(void)argv;
	if (new == NULL || del == NULL)
		return 3;
	p = new(1000);
	memset(p, 1, 1000);
	del(p);
	if (argc > 1)
		del(new(SIZE_MAX / 2)); /* nobody can catch it: must end */
	return 0;
}
END
"${CC:-cc}" -fno-builtin "$tap_work/plain.c" -o "$tap_work/plain" || exit 99
if [ -z "${EDDY_SO:-}" ]; then
	skip 'operators without libstdc++' 'no EDDY_SO'
else
	ok 'new and delete work without libstdc++' eddy "$tap_work/plain"
	ends() {
		# shellcheck disable=SC3045 # dash and bash know it
		(ulimit -c 0; eddy "$tap_work/plain" throw) 2>/dev/null
		[ $? -eq 134 ]
	}
	ok 'new of too much aborts where nothing can be thrown' ends
fi
tap_end
