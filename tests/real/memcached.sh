#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# memcached.sh - memcached under a client load, each answer checked.
# tap.sh has what is not found here.
# shellcheck disable=SC1091,SC2034,SC2154
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../tap.sh"
needs memcached memcached
needs python3 python3

port=$(free_port)
env ${EDDY_SO:+LD_PRELOAD="$EDDY_SO"} memcached -u nobody -l 127.0.0.1 \
	-p "$port" -U 0 -m 128 -t 4 -c 256 2>"$tap_work/err" &
server=$!
tap_started $server

cat >"$tap_work/load.py" <<'END'
# load.py PORT - clients that set, get, append, delete and check.
import random
import socket
import sys
import threading

PORT, CLIENTS, STEPS = int(sys.argv[1]), 12, 4000
bad = []

class Client:
    def __init__(self):
        self.s = socket.create_connection(('127.0.0.1', PORT), 10)
        self.f = self.s.makefile('rb')

    def set(self, cmd, key, value):
        self.s.sendall(b'%s %s 0 0 %d\r\n%s\r\n'
                       % (cmd, key, len(value), value))
        return self.f.readline()

    def get(self, key):
        self.s.sendall(b'get %s\r\n' % key)
        head = self.f.readline().split()
        if head[0] == b'END':
            return None
        value = self.f.read(int(head[3]))
        self.f.readline()
        assert self.f.readline() == b'END\r\n'
        return value

    def delete(self, key):
        self.s.sendall(b'delete %s\r\n' % key)
        return self.f.readline()

def run(n):
    try:
        r, c, mine = random.Random(n), Client(), {}
        for step in range(STEPS):
            key = b'c%d-%d' % (n, r.randrange(200))
            what = r.random()
            if what < 0.45:
                value = bytes([r.randrange(256)]) * r.choice(
                    [1, 30, 500, 3000, 20000, 100000 if step % 50 == 0 else 9])
                assert c.set(b'set', key, value) == b'STORED\r\n'
                mine[key] = value
            elif what < 0.55 and key in mine and len(mine[key]) < 50000:
                assert c.set(b'append', key, b'tail') == b'STORED\r\n'
                mine[key] += b'tail'
            elif what < 0.65:
                assert c.delete(key).strip() in (b'DELETED', b'NOT_FOUND')
                mine.pop(key, None)
            else:
                assert c.get(key) == mine.get(key), key
            if step % 500 == 499:
                c = Client()
        for key, value in mine.items():
            assert c.get(key) == value, key
    except Exception as e:
        bad.append('%d: %r' % (n, e))

c = Client()
c.s.sendall(b'flush_all\r\n') # what an earlier run has left
assert c.f.readline() == b'OK\r\n'
threads = [threading.Thread(target=run, args=(i,)) for i in range(CLIENTS)]
[t.start() for t in threads]
[t.join() for t in threads]
print('\n'.join(bad))
sys.exit(bool(bad))
END

up() {
	python3 -c "import socket
socket.create_connection(('127.0.0.1', $port), 1)"
}
ok 'memcached starts' wait_for 10 up || {
	tap_end
	exit
}
ok 'and is served by the library' eddy_serves $server
ok '12 clients get what they have set' python3 "$tap_work/load.py" "$port"
if command -v memcslap >/dev/null 2>&1; then
	ok 'memcslap runs' memcslap --servers="127.0.0.1:$port" \
		--concurrency=8 --execute-number=2000 --test=set --flush
else
	skip 'memcslap runs' 'no memcslap: install libmemcached-tools'
fi
ok 'the clients still do' python3 "$tap_work/load.py" "$port"
ends() {
	kill -TERM $server
	wait $server
	status=$?
	[ "$status" -le 1 ] || [ "$status" -eq 143 ]
}
alive() {
	kill -0 $server
}
ok 'it is alive after that' alive
ok 'and ends when told' ends
tap_pids=
no_word() {
	! grep -v '^Signal handled' "$tap_work/err"
}
ok 'it wrote nothing of its own on stderr' no_word
tap_end
