#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# prof_end.sh - what a process that profiles does at its end.
# shellcheck disable=SC1091,SC2034,SC2154
here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
[ -n "${EDDY_SO:-}" ] || skip_all 'no EDDY_SO'
subject=${EDDY_TESTS:-tests}/prof_subject
[ -x "$subject" ] || skip_all "no $subject"

# run STATUS OPTIONS ARGUMENT - what it wrote is in $tap_work/out and err.
run() {
	rm -f "$tap_work"/p.*
	env MALLOC_CONF="lg_prof_sample:0,prof_prefix:$tap_work/p,$2" \
		LD_PRELOAD="$EDDY_SO" "$subject" "$3" >"$tap_work/out" \
		2>"$tap_work/err"
	status=$?
	cat "$tap_work/out" "$tap_work/err"
	[ "$status" -eq "$1" ]
}
# One whole profile of that many objects at least.
whole() {
	set -- "$1" "$tap_work"/p.*.f.heap
	[ $# -eq 2 ] && [ -e "$2" ] || return 1
	head -2 "$2"
	grep -q MAPPED_LIBRARIES "$2" &&
		awk -v n="$1" 'NR == 2 { exit !($2 + 0 >= n) }' "$2"
}
none() {
	! ls "$tap_work"/p.*.heap 2>/dev/null
}
ended() {
	run "$1" "$2" "$3" && whole "$4"
}
# 50,000 + 100 + 2,000 are kept.
ok 'return: a whole profile' ended 0 prof:true,prof_final:true return 52100
ok 'exit: the same' ended 3 prof:true,prof_final:true exit 52100
ok 'handlers of atexit that allocate are in it' \
	ended 0 prof:true,prof_final:true atexit 52101
without() {
	run "$1" "$2" "$3" && none
}
ok '_exit: none' without 4 prof:true,prof_final:true _exit
ok 'without prof_final none' without 0 prof:true return
ok 'without a prefix none' without 0 prof:true,prof_final:true,prof_prefix: \
	return

leaks() {
	run "$@" || return 1
	grep -qx '<jemalloc>: Leak approximation summary: ~[0-9]* bytes, ~521[0-9][0-9] objects, >= [0-9]* contexts' \
		"$tap_work/err"
}
ok 'prof_leak: a summary' leaks 0 prof_leak:true return
leaks_and_dump() {
	leaks "$@" && whole 52100 && grep -qx \
		'<jemalloc>: Run jeprof on dump output for leak detail' \
		"$tap_work/err"
}
ok 'with prof_final its two lines' \
	leaks_and_dump 0 prof:true,prof_final:true,prof_leak:true return
ok 'prof_leak_error: the end is 1' leaks 1 prof_leak_error:true exit
flushed() {
	leaks 1 prof_leak_error:true printf &&
		grep -qx "in stdio's buffer" "$tap_work/out"
}
ok 'but what stdio holds is written' flushed
clean() {
	run 7 prof_leak_error:true free && ! grep -q Leak "$tap_work/err"
}
ok 'nothing live: nothing said' clean
namespace() {
	run 0 prof:true,prof_final:true,prof_pid_namespace:true return || return 1
	ns=$(readlink /proc/self/ns/pid | tr -dc 0-9)
	ls "$tap_work"/p.*."$ns".0.f.heap
}
ok 'prof_pid_namespace: in the name' namespace
tap_end
