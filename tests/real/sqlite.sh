#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# sqlite.sh - a script whose answers are known, and the same as without.
# tap.sh has what is not found here.
# shellcheck disable=SC1091,SC2034,SC2154
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../tap.sh"
needs sqlite3 sqlite3

cat >"$tap_work/script.sql" <<'END'
PRAGMA cache_size = -20000;
CREATE TABLE t(id INTEGER PRIMARY KEY, k INT, v TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n
	WHERE i < 200000)
INSERT INTO t SELECT i, i * 7919 % 100003, printf('value-%08d-%s', i,
	substr('abcdefghijklmnopqrstuvwxyz', 1 + i % 26)) FROM n;
CREATE INDEX t_k ON t(k);
SELECT count(*), sum(k), min(id), max(id) FROM t;
SELECT sum(length(v)) FROM t;
SELECT count(*) FROM t a JOIN t b ON a.k = b.k AND a.id < b.id;
UPDATE t SET v = v || v WHERE id % 3 = 0;
DELETE FROM t WHERE id % 5 = 0;
SELECT count(*), sum(length(v)) FROM t;
SELECT group_concat(k) FROM (SELECT k FROM t ORDER BY v DESC LIMIT 5);
SELECT length(group_concat(v)) FROM t WHERE id < 100000;
CREATE VIRTUAL TABLE IF NOT EXISTS r USING rtree(id, a, b);
INSERT INTO r SELECT id, k, k + 10 FROM t WHERE id < 20000;
SELECT count(*) FROM r WHERE a > 1000 AND b < 50000;
SELECT json_array_length(json_group_array(json_object('k', k))) FROM t;
VACUUM;
PRAGMA integrity_check;
END

run() {
	rm -f "$tap_work/db"
	sqlite3 -batch -bail "$tap_work/db" <"$tap_work/script.sql" >"$1"
}
run "$tap_work/without" || exit 99
ok 'a script of 200000 rows runs' eddy sqlite3 -version
with() {
	rm -f "$tap_work/db"
	eddy sqlite3 -batch -bail "$tap_work/db" \
		<"$tap_work/script.sql" >"$tap_work/with" 2>"$tap_work/err" &&
		[ ! -s "$tap_work/err" ]
}
ok 'without an error' with
ok 'its answers are the same as without' \
	cmp "$tap_work/with" "$tap_work/without"
ok 'the count is right' grep -qx '200000|[0-9]*|1|200000' "$tap_work/with"
sound() {
	[ "$(tail -n 1 "$tap_work/with")" = ok ] &&
		[ "$(sqlite3 "$tap_work/db" 'PRAGMA integrity_check')" = ok ]
}
ok 'the database is sound' sound
tap_end
