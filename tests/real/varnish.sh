#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# varnish.sh - varnishd, whose store is malloc: a hundred threads, objects that
# are evicted, bans, a worker that ends and another that begins.
# tap.sh has what is not found here.
# shellcheck disable=SC1091,SC2034,SC2154
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../tap.sh"
PATH=$PATH:/usr/sbin
needs varnishd varnish
needs varnishadm varnish
needs python3 python3

# Its worker compiles its configuration, and has files of its own here.
chmod 755 "$tap_work"
back=$(free_port)
cat >"$tap_work/back.py" <<'END'
# back.py PORT - answers /N with a body that is told by N, and counts.
import http.server
import sys

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version, wbufsize = 'HTTP/1.1', 65536
    def do_GET(self):
        n = int(self.path[1:])
        body = (b'%d-' % n) * (1 + n * 37 % 9000)
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.send_header('Cache-Control', 'max-age=600')
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *a):
        pass

http.server.ThreadingHTTPServer(
    ('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()
END
cat >"$tap_work/load.py" <<'END'
# load.py PORT NAMES - clients that ask, check bodies, and count hits.
import http.client
import random
import sys
import threading

PORT, NAMES, CLIENTS, ASKS = int(sys.argv[1]), int(sys.argv[2]), 12, 250
bad, hits = [], []

def run(n):
    try:
        r, c = random.Random(n), http.client.HTTPConnection(
            '127.0.0.1', PORT, timeout=20)
        for _ in range(ASKS):
            i = r.randrange(NAMES)
            c.request('GET', '/%d' % i)
            a = c.getresponse()
            body = a.read()
            assert a.status == 200, a.status
            assert body == (b'%d-' % i) * (1 + i * 37 % 9000), i
            hits.append(' ' in a.getheader('X-Varnish'))
    except Exception as e:
        bad.append('%d: %r' % (n, e))

threads = [threading.Thread(target=run, args=(i,)) for i in range(CLIENTS)]
[t.start() for t in threads]
[t.join() for t in threads]
print(sum(hits), 'hits')
print('\n'.join(bad))
sys.exit(bool(bad) or (NAMES < 500 and sum(hits) < CLIENTS * ASKS // 2))
END
python3 "$tap_work/back.py" "$back" 2>/dev/null &
tap_started $!
up() {
	python3 -c "import socket
socket.create_connection(('127.0.0.1', $1), 1)"
}
wait_for 10 up "$back" || skip_all 'no server to stand before'

port=$(free_port)
env ${EDDY_SO:+LD_PRELOAD="$EDDY_SO"} varnishd -F -j none \
	-n "$tap_work/v" -a "127.0.0.1:$port" -b "127.0.0.1:$back" \
	-s malloc,24m -t 600 -p thread_pool_min=50 -p thread_pools=2 \
	-p auto_restart=on >"$tap_work/out" 2>"$tap_work/err" &
server=$!
tap_started $server
adm() {
	varnishadm -n "$tap_work/v" "$@"
}
worker() {
	pgrep -P "$server" -f varnishd | head -n 1
}
ok 'varnishd starts' wait_for 30 up "$port" || {
	sed 's/^/# /' "$tap_work/err"
	tap_end
	exit
}
serves() {
	eddy_serves "$server" && eddy_serves "$(worker)"
}
ok 'manager and worker are served by the library' serves
ok 'what is in the store comes from there' \
	python3 "$tap_work/load.py" "$port" 300
ok 'more than the store holds' python3 "$tap_work/load.py" "$port" 4000
evicted() {
	varnishstat -n "$tap_work/v" -1 -f MAIN.n_lru_nuked |
		awk '{ n = $2 } END { exit n == 0 }'
}
ok 'some of it was evicted' evicted
bans() {
	for i in 1 2 3 4 5 6 7 8; do
		adm ban 'req.url ~ 1' >/dev/null || return
	done
	python3 "$tap_work/load.py" "$port" 300
}
ok 'bans, and the bodies again' bans
again() {
	old=$(worker)
	adm stop && adm start && wait_for 20 up "$port" &&
		[ "$(worker)" != "$old" ] && eddy_serves "$(worker)" &&
		python3 "$tap_work/load.py" "$port" 300
}
panic() {
	adm panic.show 2>&1 | grep -q 'Child has not panicked'
}
ok 'the worker has not panicked' panic
ok 'it ends, another one begins, and serves' again
ends() {
	kill -TERM "$server"
	wait "$server"
}
ok 'it ends with status 0' ends
no_word() {
	! grep -i 'eddy\|jemalloc\|panic\|assert' "$tap_work/err" \
		"$tap_work/out"
}
ok 'and said nothing of the library' no_word
tap_end
