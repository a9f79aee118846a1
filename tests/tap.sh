# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# tap.sh - for test scripts: TAP, a scratch folder, the preload.
#
# EDDY_SO names the library (without it, whatever malloc is there is used, as
# when a test is tried out); `eddy CMD...` runs CMD under it.

tap_n=0
tap_failed=0
tap_work=$(mktemp -d) || exit 99
tap_pids=

# Ends what tap_started named, and leaves no file.
tap_clean() {
	for tap_pid in $tap_pids; do
		kill "$tap_pid" 2>/dev/null && wait "$tap_pid" 2>/dev/null
	done
	tap_pids=
	cd / && rm -rf "$tap_work"
}
trap tap_clean EXIT
trap 'exit 99' HUP INT TERM

tap_started() {
	tap_pids="$tap_pids $1"
}

# ok NAME CMD... - whether CMD succeeds; what it said is shown if not.
ok() {
	tap_n=$((tap_n + 1))
	tap_name=$1
	shift
	if "$@" >"$tap_work/.said" 2>&1; then
		echo "ok $tap_n - $tap_name"
		return 0
	fi
	echo "not ok $tap_n - $tap_name"
	tap_failed=$((tap_failed + 1))
	tail -n 20 "$tap_work/.said" | sed 's/^/# /'
	return 1
}

skip() {
	tap_n=$((tap_n + 1))
	echo "ok $tap_n - $1 # SKIP $2"
}

skip_all() {
	echo "1..0 # SKIP: $1"
	exit 77
}

# needs PROGRAM PACKAGE - skips the whole test without PROGRAM.
needs() {
	command -v "$1" >/dev/null 2>&1 || skip_all "no $1: install $2"
}

eddy() {
	if [ -n "${EDDY_SO:-}" ]; then
		LD_PRELOAD=$EDDY_SO "$@"
	else
		"$@"
	fi
}

# Whether the process of this id has the library mapped.
eddy_serves() {
	[ -z "${EDDY_SO:-}" ] ||
		grep -q "$(readlink -f "$EDDY_SO")" "/proc/$1/maps"
}

# free_port - a port of the loopback that nobody listens on just now.
free_port() {
	tap_port=$((20000 + $$ % 20000))
	while grep -qi ":$(printf '%04X' $tap_port) " \
		/proc/net/tcp /proc/net/tcp6 2>/dev/null; do
		tap_port=$((tap_port + 1))
	done
	echo "$tap_port"
}

# wait_for SECONDS CMD... - until CMD succeeds, at most so long, times patience.
wait_for() {
	tap_tries=$(($1 * 10 * ${EDDY_PATIENCE:-1}))
	shift
	until "$@" >/dev/null 2>&1; do
		tap_tries=$((tap_tries - 1))
		[ "$tap_tries" -gt 0 ] || return 1
		sleep 0.1
	done
}

tap_end() {
	echo "1..$tap_n"
	[ "$tap_failed" -eq 0 ]
}
