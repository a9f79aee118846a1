#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# prof_readers.sh - profiles of real programs, read by jeprof and pprof: the
# functions that allocated, with their sizes; every allocation sampled.
# tap.sh has what is not found here.
# shellcheck disable=SC1091,SC2034,SC2154
here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
[ -n "${EDDY_SO:-}" ] || skip_all 'no EDDY_SO'
subject=${EDDY_TESTS:-tests}/prof_subject
[ -x "$subject" ] || skip_all "no $subject"

# profile NAME OPTIONS COMMAND... - the profile at its exit, $tap_work/NAME.heap
profile() {
	name=$1
	conf=$2
	shift 2
	rm -f "$tap_work"/p.*
	env MALLOC_CONF="prof:true,prof_final:true,prof_prefix:$tap_work/p,$conf" \
		LD_PRELOAD="$EDDY_SO" "$@" >"$tap_work/out" 2>&1 || {
		cat "$tap_work/out"
		return 1
	}
	# Of what it was started by, too: the largest is its own.
	# shellcheck disable=SC2012 # no odd names
	mv "$(ls -S "$tap_work"/p.*.f.heap | head -n 1)" "$tap_work/$name.heap"
}

# near TEXT FUNCTION TRUTH - its own bytes, in MB, are within 5 %.
near() {
	cat "$1"
	awk -v f="$2" -v want="$3" '
	$NF == f { got = $1; sub(/MB$/, "", got); found = 1 }
	END {
		print f ": " got " MB of " want
		exit !(found && got > want * 0.95 && got < want * 1.05)
	}' "$1"
}

# 50,000 x 112, 100 x 200,704, 2,000 x 4,096 bytes, in MiB.  With 256 bytes
# between samples 5 % are eight standard deviations of the smallest.
ok 'a profile at exit' profile t lg_prof_sample:8 "$subject"
if command -v jeprof >/dev/null; then
	jeprof --text --show_bytes "$subject" "$tap_work/t.heap" 2>/dev/null |
		awk '{ $1 = $1 / 1048576; print }' >"$tap_work/jeprof"
	ok 'jeprof: small blocks' near "$tap_work/jeprof" keep_small 5.34
	ok 'jeprof: large blocks' near "$tap_work/jeprof" keep_large 19.14
	ok 'jeprof: zeros' near "$tap_work/jeprof" keep_zeros 7.81
	callers() {
		jeprof --text --cum --show_bytes "$subject" \
			"$tap_work/t.heap" 2>/dev/null | tee "$tap_work/cum"
		awk '$NF == "work" && $4 > 30000000 { w = 1 }
		$NF == "main" && $4 > 30000000 { m = 1 }
		END { exit !(w && m) }' "$tap_work/cum"
	}
	ok 'jeprof: their callers' callers
	ok 'frames of the library are left out' sh -c \
		"! grep -q eddy_ '$tap_work/jeprof'"
	ok 'a profile by frame pointers' profile f \
		lg_prof_sample:8,prof_backtrace:frame_pointer "$subject"
	jeprof --text --cum --show_bytes "$subject" "$tap_work/f.heap" \
		2>/dev/null | awk '{ $1 = $1 / 1048576; print }' \
		>"$tap_work/jeprof"
	ok 'names the functions as well' near "$tap_work/jeprof" keep_large \
		19.14
	ok 'all that was allocated' profile a \
		lg_prof_sample:8,prof_accum:true "$subject"
	jeprof --text --show_bytes --alloc_space "$subject" \
		"$tap_work/a.heap" 2>/dev/null |
		awk '{ $1 = $1 / 1048576; print }' >"$tap_work/jeprof"
	ok 'what came and went is told' near "$tap_work/jeprof" come_and_go \
		48.83
else
	skip jeprof 'none: libjemalloc-dev'
fi

ok 'a profile for pprof' profile g \
	lg_prof_sample:8,prof_format:gperftools "$subject"
if command -v google-pprof >/dev/null; then
	google-pprof --text --show_bytes "$subject" "$tap_work/g.heap" \
		2>/dev/null | awk '{ $1 = $1 / 1048576; print }' \
		>"$tap_work/pprof"
	ok 'google-pprof: large blocks' near "$tap_work/pprof" keep_large 19.14
	ok 'google-pprof: small blocks' near "$tap_work/pprof" keep_small 5.34
else
	skip google-pprof 'none: google-perftools'
fi
if command -v go >/dev/null; then
	HOME=$tap_work go tool pprof -top -unit=MB "$subject" \
		"$tap_work/g.heap" >"$tap_work/go" 2>&1
	ok 'go tool pprof: large blocks' near "$tap_work/go" keep_large 19.14
	ok 'go tool pprof: small blocks' near "$tap_work/go" keep_small 5.34
else
	skip 'go tool pprof' 'none: golang-go'
fi

# Every allocation of real programs.
if command -v python3 >/dev/null; then
	ok 'python3, each allocation a sample' profile py lg_prof_sample:0 \
		env PYTHONMALLOC=malloc python3 -c '
import json, threading
a = [json.dumps({"k": i, "v": [i] * 10}) for i in range(20000)]
t = [threading.Thread(target=lambda: [json.loads(s) for s in a]) for i in range(4)]
[x.start() for x in t]
[x.join() for x in t]
assert len(a) == 20000'
	ok 'and what it has told is whole' grep -q MAPPED_LIBRARIES \
		"$tap_work/py.heap"
fi
if command -v redis-server >/dev/null; then
	port=$(free_port)
	redis() {
		env MALLOC_CONF="prof:true,lg_prof_sample:0" \
			LD_PRELOAD="$EDDY_SO" redis-server --port "$port" \
			--save '' --dir "$tap_work" --logfile "$tap_work/log" &
		tap_started $!
		wait_for 20 redis-cli -p "$port" ping
	}
	ok 'redis-server, each allocation a sample' redis
	ok 'redis-benchmark runs' redis-benchmark -p "$port" -q -n 5000 \
		-c 20 -P 8 -r 10000 -d 200 -t set,get,lpush,hset,zadd
fi
tap_end
