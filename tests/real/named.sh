#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# named.sh - BIND, which calls mallocx and its relatives and has arenas of its
# own: queries, transfers and updates, each answer checked.
# tap.sh has what is not found here.
# shellcheck disable=SC1091,SC2034,SC2154
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../tap.sh"
PATH=$PATH:/usr/sbin
needs named bind9
needs dig bind9-dnsutils
needs nsupdate bind9-dnsutils
needs python3 python3

port=$(free_port)
cat >"$tap_work/named.conf" <<END
options {
	directory "$tap_work";
	pid-file "$tap_work/pid";
	session-keyfile "$tap_work/session.key";
	listen-on port $port { 127.0.0.1; };
	listen-on-v6 { none; };
	recursion no;
	dnssec-validation no;
	allow-transfer { any; };
	allow-update { 127.0.0.1; };
};
controls { };
logging {
	channel file { file "$tap_work/log"; severity info; };
	category default { file; };
	category general { file; };
};
zone "example.test" { type primary; file "$tap_work/zone"; };
END
# 5000 names, some with long texts
awk 'BEGIN {
	print "$TTL 60"
	print "@ IN SOA ns.example.test. root.example.test. 1 60 60 60 60"
	print "@ IN NS ns.example.test."
	print "ns IN A 127.0.0.1"
	for (i = 0; i < 5000; i++) {
		printf "h%d IN A 10.%d.%d.1\n", i, i / 256, i % 256
		if (i % 10 == 0) {
			printf "t%d IN TXT", i
			for (k = 0; k <= i % 40; k++)
				printf " \"text %d of %d\"", k, i
			printf "\n"
		}
	}
}' >"$tap_work/zone"

cat >"$tap_work/load.py" <<'END'
# load.py PORT - clients that ask for names and check the addresses.
import random
import socket
import struct
import sys
import threading

PORT, CLIENTS, QUERIES = int(sys.argv[1]), 8, 2500
bad = []

def query(id, name):
    labels = b''.join(bytes([len(x)]) + x.encode() for x in name.split('.'))
    return (struct.pack('>HHHHHH', id, 0, 1, 0, 0, 0) + labels + b'\0'
            + struct.pack('>HH', 1, 1))

def run(n):
    try:
        r = random.Random(n)
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.connect(('127.0.0.1', PORT))
        s.settimeout(20)
        for q in range(QUERIES):
            i = r.randrange(5500)
            s.send(query(q, 'h%d.example.test' % i))
            while True:
                a = s.recv(4096)
                if struct.unpack('>H', a[:2])[0] == q:
                    break
            if i >= 5000:
                assert a[3] & 15 == 3, 'no such name'
            else:
                assert bytes([10, i // 256, i % 256, 1]) in a, i
    except Exception as e:
        bad.append('%d: %r' % (n, e))

threads = [threading.Thread(target=run, args=(i,)) for i in range(CLIENTS)]
[t.start() for t in threads]
[t.join() for t in threads]
print('\n'.join(bad))
sys.exit(bool(bad))
END

ask() {
	dig @127.0.0.1 -p "$port" +time=10 +tries=1 "$@"
}
answers() {
	[ "$(ask +short h5.example.test A)" = 10.0.5.1 ]
}
start() {
	env ${EDDY_SO:+LD_PRELOAD="$EDDY_SO"} MALLOC_CONF="$1" named -f \
		-n 4 -c "$tap_work/named.conf" 2>"$tap_work/err" &
	server=$!
	tap_started $server
	wait_for 20 answers
}
ends() {
	kill -TERM "$server"
	wait "$server"
	status=$?
	tap_pids=
	[ "$status" -eq 0 ]
}

ok 'named starts and answers' start '' || {
	tap_end
	exit
}
ok 'and is served by the library' eddy_serves "$server"
ok '8 clients get the addresses' python3 "$tap_work/load.py" "$port"
transfers() {
	for i in 1 2 3 4; do
		[ "$(ask example.test AXFR | grep -c '^h[0-9]')" -eq 5000 ] ||
			return
	done
}
ok 'four transfers of the zone' transfers
texts() {
	for i in 39 1239 4990; do
		n=$((i / 10 * 10))
		[ "$(ask +tcp +short "t$n.example.test" TXT |
			grep -o "of $n\"" | wc -l)" -eq $((n % 40 + 1)) ] ||
			return
	done
}
ok 'long texts by TCP' texts
updates() {
	for i in 0 1 2 3; do
		awk -v i=$i -v port="$port" 'BEGIN {
			print "server 127.0.0.1 " port
			print "zone example.test"
			for (k = 0; k < 500; k++)
				printf "update add n%d-%d.example.test 60 A" \
				    " 192.0.2.%d\n", i, k, k % 250
			for (k = 0; k < 200; k++)
				printf "update delete h%d.example.test\n", \
				    1000 + i * 200 + k
			print "send"
		}' >"$tap_work/update"
		nsupdate "$tap_work/update" || return
	done
	[ "$(ask example.test AXFR | grep -c '^h[0-9]')" -eq 4200 ] &&
		[ "$(ask example.test AXFR | grep -c '^n[0-9]')" -eq 2000 ]
}
ok '2000 names are added, 800 go' updates
ok 'it ends with status 0' ends
ok 'and wrote nothing on stderr' [ ! -s "$tap_work/err" ]
no_crash() {
	! grep -i 'assert\|insist\|require(\|crash\|exiting (due' \
		"$tap_work/log"
}
ok 'its log reports no fault' no_crash

# Again, with the library's statistics at the end.
ok 'it starts with the updates in its journal' start stats_print:true
updated() {
	[ "$(ask +short n3-499.example.test A)" = 192.0.2.249 ]
}
ok 'and answers with them' updated
ok 'ends' ends
statistics() {
	[ -z "${EDDY_SO:-}" ] || grep -q 'Version: "5.3.1' "$tap_work/err"
}
ok 'and its statistics are of the library' statistics

# Which library the linker takes for jemalloc's names.
bound() {
	[ -n "${EDDY_SO:-}" ] || return 0
	LD_DEBUG=bindings LD_BIND_NOW=1 LD_DEBUG_OUTPUT="$tap_work/bind" \
		LD_PRELOAD="$EDDY_SO" named -v &&
		for f in mallocx rallocx sallocx sdallocx mallctl; do
			grep -h "libisc.*symbol .$f'" "$tap_work"/bind.* |
				grep "to $EDDY_SO " || return
		done
}
ok 'the five names of jemalloc that it has are bound to the library' bound
tap_end
