#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# postgresql.sh - a cluster of its own, pgbench on it, sums that must agree.
#
# Needs a user other than root: as root it runs the server as postgres.
# tap.sh has what is not found here.
# shellcheck disable=SC1091,SC2034,SC2154
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../tap.sh"
bin=
for d in /usr/lib/postgresql/*/bin; do
	[ -x "$d/initdb" ] && bin=$d
done
[ -n "$bin" ] || skip_all 'no initdb: install postgresql'
[ -x "$bin/pgbench" ] || needs pgbench postgresql-contrib
PATH=$bin:$PATH

data=$tap_work/data
port=$(free_port)
if [ "$(id -u)" -eq 0 ]; then
	id postgres >/dev/null 2>&1 || skip_all 'no user postgres'
	needs setpriv util-linux
	chown postgres "$tap_work"
	as() {
		setpriv --reuid postgres --regid postgres --clear-groups "$@"
	}
else
	as() {
		"$@"
	}
fi
# The library where that user may read it.
if [ -n "${EDDY_SO:-}" ]; then
	cp -L "$EDDY_SO" "$tap_work/lib.so" && chmod 755 "$tap_work/lib.so"
	EDDY_SO=$tap_work/lib.so
fi
pg() {
	as env ${EDDY_SO:+LD_PRELOAD="$EDDY_SO"} LC_ALL=C \
		PGHOST="$tap_work" PGPORT="$port" PGUSER=tester \
		PGDATABASE=postgres HOME="$tap_work" "$@"
}
sql() {
	pg psql -qAtX -v ON_ERROR_STOP=1 -c "$1"
}

ok 'initdb' pg initdb -D "$data" -U tester -A trust -N --no-locale || {
	tap_end
	exit
}
start() {
	pg pg_ctl -D "$data" -w -t 30 -l "$tap_work/log" -s -o \
		"-p $port -k '$tap_work' -c listen_addresses= \
		-c shared_buffers=32MB -c fsync=off \
		-c max_parallel_workers_per_gather=2 \
		-c min_parallel_table_scan_size=0 \
		-c parallel_setup_cost=0" start
}
stop() {
	pg pg_ctl -D "$data" -w -m fast -s stop
}
ok 'the server starts' start || {
	sed 's/^/# /' "$tap_work/log"
	tap_end
	exit
}
trap 'stop >/dev/null 2>&1; tap_clean' EXIT
ok 'and is served by the library' eddy_serves \
	"$(head -n 1 "$data/postmaster.pid")"
ok 'pgbench fills its tables' pg pgbench -i -s 2 -q
ok 'pgbench runs eight clients' pg pgbench -n -c 8 -j 2 -T 4
balances() {
	[ "$(sql 'SELECT (SELECT sum(abalance) FROM pgbench_accounts) =
		(SELECT sum(tbalance) FROM pgbench_tellers) AND
		(SELECT sum(tbalance) FROM pgbench_tellers) =
		(SELECT sum(bbalance) FROM pgbench_branches) AND
		(SELECT sum(bbalance) FROM pgbench_branches) =
		(SELECT sum(delta) FROM pgbench_history)')" = t ]
}
ok 'all balances agree' balances
ok 'pgbench runs prepared selects' pg pgbench -n -S -M prepared -c 8 -j 2 -T 2
answers() {
	[ "$(sql "SELECT count(*), sum(i), sum(length(v)) FROM (
		SELECT i, repeat(md5(i::text), i % 9) AS v
		FROM generate_series(1, 100000) i) t")" = \
		'100000|5000050000|12799904' ]
}
ok 'a query over 100000 rows has the right answer' answers
heavy() {
	sql "SET work_mem = '64MB'; CREATE TABLE t AS
		SELECT i, i % 1000 AS k, md5(i::text) AS v
		FROM generate_series(1, 200000) i;
		CREATE INDEX ON t (v);
		SELECT count(DISTINCT v) = 200000 FROM t;
		SELECT count(*) = 1000 FROM (SELECT k, array_agg(v ORDER BY v)
			FROM t GROUP BY k HAVING count(*) = 200) g;
		SELECT count(*) = 200000 FROM t a JOIN t b USING (v);" \
		>"$tap_work/heavy" && [ "$(sort -u "$tap_work/heavy")" = t ]
}
ok 'sorts, aggregates, joins and an index agree' heavy
ok 'the server stops' stop
trap tap_clean EXIT
no_crash() {
	! grep -i 'terminated by signal\|PANIC\|eddy' "$tap_work/log"
}
ok 'its log reports no crash' no_crash
tap_end
