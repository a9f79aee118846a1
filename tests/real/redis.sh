#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# redis.sh - redis-server under redis-benchmark, saves while it is busy, and
# values read back, also after a restart.
# tap.sh has what is not found here.
# shellcheck disable=SC1091,SC2034,SC2154
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../tap.sh"
needs redis-server redis-server
needs redis-cli redis-tools
needs redis-benchmark redis-tools

port=$(free_port)
cli() {
	redis-cli -p "$port" "$@"
}

start() {
	(cd "$tap_work" && exec env ${EDDY_SO:+LD_PRELOAD="$EDDY_SO"} \
		redis-server --port "$port" --bind 127.0.0.1 --save '' \
		--dir "$tap_work" --logfile "$tap_work/log" --io-threads 4 \
		--appendonly no --enable-debug-command yes \
		2>"$tap_work/err") &
	server=$!
	tap_started $server
	wait_for 10 ready
}

# A server that still loads its file answers, but not PONG.
ready() {
	[ "$(cli ping)" = PONG ]
}

ok 'redis-server starts' start || {
	tap_end
	exit
}
ok 'and is served by the library' eddy_serves "$server"
ok 'redis-benchmark runs' redis-benchmark -p "$port" -q -n 5000 -c 30 -P 8 \
	-r 20000 -d 200 -t set,get,incr,lpush,rpop,sadd,hset,zadd

# 10000 values of many lengths that can be told by their key
awk 'BEGIN {
	for (i = 0; i < 10000; i++) {
		v = ""
		for (k = 0; k < i % 40 + 1; k++)
			v = v "v" i "-"
		printf "SET key:%d %s\n", i, v
	}
}' >"$tap_work/sets"
ok '10000 values are written' sh -c \
	"redis-cli -p $port --pipe <'$tap_work/sets' | grep -q 'errors: 0'"
read_back() {
	sed 's/^SET \([^ ]*\) .*/GET \1/' "$tap_work/sets" |
		cli >"$tap_work/got"
	sed 's/^SET [^ ]* //' "$tap_work/sets" | cmp - "$tap_work/got"
}
ok 'and read back as they were' read_back

# A save forks: the child reads the heap while the parent goes on.
saves() {
	for i in 1 2; do
		before=$(cli lastsave)
		cli bgsave || return
		redis-benchmark -p "$port" -q -n 5000 -c 20 -P 8 -r 5000 \
			-d 500 -t set,lpush,rpop || return
		wait_for 10 sh -c "redis-cli -p $port info persistence |
			grep -q 'rdb_bgsave_in_progress:0'"
		cli info persistence | grep -q 'rdb_last_bgsave_status:ok' ||
			return
		[ "$(cli lastsave)" -ge "$before" ] || return
		echo "save $i"
	done
}
ok 'two saves in the background of a load' saves
ok 'values are still what they were' read_back

# What INFO says of the allocator, which Redis asks by jemalloc's names.
field() {
	cli info memory | tr -d '\r' | sed -n "s/^$1://p"
}
# All of it at one moment; the cron of the server looks ten times a second.
numbers() {
	sleep 0.3
	cli info memory | tr -d '\r' >"$tap_work/info"
	awk -F: '{ v[$1] = $2 }
	END {
		for (k in v)
			if (k ~ /^(used_memory|allocator_[a-z_]*|used_memory_rss)$/)
				print k, v[k]
		used = v["used_memory"]
		a = v["allocator_allocated"]
		act = v["allocator_active"]
		res = v["allocator_resident"]
		if (a < used || a > used * 1.1 + 2 * 1048576)
			print "allocated is not near what is used"
		else if (act < a || res < act)
			print "not in order"
		else if (v["allocator_frag_ratio"] < 1 ||
		    v["allocator_rss_ratio"] < 1 ||
		    v["used_memory_rss"] < a)
			print "ratios below 1"
		else
			exit 0
		exit 1
	}' "$tap_work/info"
}
ok 'INFO memory has the numbers of the library, in order' numbers
grows() {
	before=$(field allocator_allocated)
	redis-benchmark -p "$port" -q -n 60000 -c 20 -P 16 -r 60000 -d 1000 \
		-t set && numbers || return
	[ "$(field allocator_allocated)" -gt $((before + 30000000)) ]
}
ok 'they grow with what is stored' grows
in_use_is_most() {
	# 1.10 or less: what lies between live blocks, and in caches
	field allocator_frag_ratio | awk '{ exit $1 > 1.15 }' &&
		field allocator_rss_ratio | awk '{ exit $1 > 1.5 }'
}
ok 'of that little is lost' in_use_is_most
shrinks() {
	before=$(field allocator_allocated)
	resident=$(field allocator_resident)
	cli flushall sync && cli memory purge | grep -qx OK && numbers || return
	[ "$(field allocator_allocated)" -lt $((before - 30000000)) ] &&
		[ "$(field allocator_resident)" -lt "$resident" ]
}
ok 'and shrink when it is deleted and MEMORY PURGE gives it back' shrinks
reports() {
	cli memory malloc-stats >"$tap_work/report" &&
		head -n 1 "$tap_work/report" |
		grep -qx '___ Begin jemalloc statistics ___' &&
		grep -q '^Allocated: [1-9][0-9]*, active: [1-9]' \
			"$tap_work/report" &&
		grep -q '^arenas\[0\]:$' "$tap_work/report" &&
		grep -qx -- '--- End jemalloc statistics ---' \
			"$tap_work/report" &&
		cli memory doctor | grep -q . &&
		cli memory stats | grep -q allocator.allocated &&
		[ "$(cli debug mallctl stats.allocated)" -gt 1000000 ]
}
ok 'MEMORY MALLOC-STATS, DOCTOR, STATS and DEBUG MALLCTL answer' reports

churn() {
	cli flushall && redis-benchmark -p "$port" -q -n 5000 -c 20 -P 8 \
		-r 20000 -d 3000 -t set && cli eval "
		for i = 0, 5000 do
			redis.call('setrange', 'big:' .. i % 100, i * 3, 'x')
		end
		return redis.call('dbsize')" 0 | grep -q '[0-9]'
}
ok 'large values and a script' churn
ok 'the values are written again' sh -c \
	"redis-cli -p $port --pipe <'$tap_work/sets' | grep -q 'errors: 0'"
reload() {
	cli debug reload | grep -qx OK && read_back
}
ok 'a reload from disk brings them back' reload
ends() {
	cli shutdown save
	wait "$server"
}
ok 'it ends with status 0' ends
tap_pids=
ok 'and wrote nothing on stderr' [ ! -s "$tap_work/err" ]
again() {
	start && read_back && cli shutdown nosave && wait "$server"
}
ok 'after a restart the values are there' again
tap_pids=
no_crash() {
	! grep -i 'crash\|bug report\|assert' "$tap_work/log"
}
ok 'its log reports no crash' no_crash
tap_end
