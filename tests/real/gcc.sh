#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# gcc.sh - the compiler under the library makes the same objects as without.
# tap.sh has what is not found here.
# shellcheck disable=SC1091,SC2034,SC2154
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../tap.sh"
needs gcc gcc
src=${EDDY_SRCDIR:-$here/../..}

# compile PREFIX FILE - to PREFIX.o, by whatever malloc is in charge
compile() {
	gcc -std=gnu17 -O2 -g0 -w -I"$src" -I"$src/tests" -c "$2" -o "$1.o"
}

under() {
	(
		[ -z "${EDDY_SO:-}" ] || {
			LD_PRELOAD=$EDDY_SO
			export LD_PRELOAD
		}
		"$@"
	)
}

for f in "$src/tests/front_errors.c" "$src/tests/front_realloc.c" \
	"$src/tests/front_threads.c" "$src/tests/env_limits.c"; do
	name=$(basename "$f" .c)
	compile "$tap_work/without" "$f" || exit 99
	ok "gcc compiles $name" under compile "$tap_work/with" "$f"
	ok "$name.o is the same as without" \
		cmp "$tap_work/with.o" "$tap_work/without.o"
done

# A large unit, so that the heap grows.
awk 'BEGIN {
	for (i = 0; i < 1200; i++) {
		printf "int f%d(int *a, int n)\n{\n\tint s = %d;\n", i, i
		printf "\tfor (int i = 0; i < n; i++)\n"
		printf "\t\ts += a[i] * (s ^ %d) %% (n + 1);\n", i * 7
		printf "\treturn s;\n}\n"
	}
}' >"$tap_work/big.c"
compile "$tap_work/without" "$tap_work/big.c" || exit 99
ok 'gcc compiles 1200 functions' under compile "$tap_work/with" \
	"$tap_work/big.c"
ok 'their object is the same as without' \
	cmp "$tap_work/with.o" "$tap_work/without.o"
ok 'make -j4 runs under the library' under sh -c "
	printf 'all: a b c d\n%%: ; @gcc -w -c -o $tap_work/\$@.o $src/tests/front_sizes.c\n' >'$tap_work/mk' &&
	command -v make >/dev/null && make -s -j4 -f '$tap_work/mk' all"
tap_end
