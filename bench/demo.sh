#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# demo.sh [LIBEDDY.so] - real programs with eddy preloaded and without: what
# they did per second or how long they took, and how much memory. Each answer
# is checked against the one without eddy. About a minute.
set -u

so=${1:-${EDDY_SO:-}}
if [ -z "$so" ] || [ ! -r "$so" ]; then
	echo "demo: no library: demo.sh LIBEDDY.so" >&2
	exit 2
fi
so=$(cd "$(dirname "$so")" && pwd)/$(basename "$so")
tmp=$(mktemp -d) || exit 1
server=
failed=0
skipped=

stop_server()
{
	if [ -n "$server" ]; then
		kill "$server" 2>/dev/null
		wait "$server" 2>/dev/null
		server=
	fi
}
trap 'stop_server; rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM

have()
{
	for program in "$@"; do
		if ! command -v "$program" >/dev/null 2>&1; then
			skipped="$skipped $program"
			return 1
		fi
	done
}

fail()
{
	echo "demo: FAILED: $*" >&2
	failed=$((failed + 1))
}

# field NAME FILE: what a line NAME=VALUE of FILE says
field()
{
	sed -n "s/^$1=//p" "$2" 2>/dev/null | head -n 1
}

status_kb()
{
	sed -n "s/^$1:[^0-9]*\([0-9]*\) kB/\1/p" "/proc/$2/status"
}

row()
{
	printf '%-36s %10s %10s %7s  %s\n' "$@"
}

# compare_row BETTER TEXT GLIBC EDDY: the fourth column is eddy over glibc;
# BETTER is "higher" or "lower".
compare_row()
{
	row "$2" "${3:--}" "${4:--}" "$(awk -v a="${3:-0}" -v b="${4:-0}" \
		'BEGIN { if (a + 0 > 0 && b + 0 > 0) printf "x %.2f", b / a }')" \
		"$1 is better"
}

# preload NAME: what to preload. A program linked to an allocator of its own,
# as Debian's redis is to jemalloc, is on glibc's when libc comes first.
preload()
{
	if [ "$1" = eddy ]; then
		echo "$so"
	else
		echo libc.so.6
	fi
}

# The server that answers on a port nobody uses; requests are bounded.
redis_run()
{
	port=$((20000 + $$ % 20000))
	LD_PRELOAD=$(preload "$1") redis-server --port "$port" \
		--bind 127.0.0.1 --save '' --appendonly no --daemonize no \
		--dir "$tmp" >"$tmp/redis.$1.log" 2>&1 &
	server=$!
	i=0
	until redis-cli -p "$port" ping >/dev/null 2>&1; do
		i=$((i + 1))
		if [ "$i" -gt 100 ] || ! kill -0 "$server" 2>/dev/null; then
			fail "redis-server under $1 does not answer"
			return 1
		fi
		sleep 0.1
	done
	if [ "$1" = eddy ] && ! grep -q "$so" "/proc/$server/maps"; then
		fail "redis-server runs without the library"
	fi
	redis-benchmark -h 127.0.0.1 -p "$port" -q --csv -c 50 -P 16 -n 160000 \
		-r 100000 -d 200 -t set,get,lpush,lrange_100,hset \
		>"$tmp/redis.$1.csv" 2>"$tmp/redis.$1.err" ||
		fail "redis-benchmark under $1"
	redis-cli -p "$port" set demo:key "$(printf %0500d 7)" >/dev/null
	if [ "$(redis-cli -p "$port" get demo:key)" != "$(printf %0500d 7)" ]
	then
		fail "redis-server under $1 gives back another value"
	fi
	{
		echo "rss_kb=$(status_kb VmRSS "$server")"
		echo "peak_kb=$(status_kb VmHWM "$server")"
	} >"$tmp/redis.$1"
	redis-cli -p "$port" shutdown nosave >/dev/null 2>&1
	wait "$server"
	code=$?
	server=
	[ "$code" -eq 0 ] || fail "redis-server under $1 ended with $code"
}

rate()
{
	sed -n "s/^\"$1[^\"]*\",\"\([0-9.]*\)\".*/\1/p" "$tmp/redis.$2.csv" |
		head -n 1 | sed 's/\..*//'
}

redis()
{
	have redis-server redis-benchmark redis-cli || return 0
	redis_run glibc && redis_run eddy || return 0
	for test in SET GET LPUSH HSET LRANGE_100; do
		compare_row higher "redis $test, requests/s" "$(rate $test glibc)" \
			"$(rate $test eddy)"
	done
	compare_row lower "redis, KiB at the end" \
		"$(field rss_kb "$tmp/redis.glibc")" \
		"$(field rss_kb "$tmp/redis.eddy")"
	compare_row lower "redis, KiB at most" \
		"$(field peak_kb "$tmp/redis.glibc")" \
		"$(field peak_kb "$tmp/redis.eddy")"
}

# Runs a command and tells its time and the most memory of any of its
# processes; needs python3, and is itself not preloaded.
cat >"$tmp/watch.py" <<'END'
import os, resource, subprocess, sys, time
env = dict(os.environ, LD_PRELOAD=sys.argv[1])
t = time.monotonic()
code = subprocess.call(sys.argv[3:], env=env)
with open(sys.argv[2], "w") as f:
    f.write("s=%.2f\n" % (time.monotonic() - t))
    f.write("peak_kb=%d\n" % resource.getrusage(
        resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)
END

cat >"$tmp/work.py" <<'END'
import collections, hashlib, json, re, random
random.seed(1)
digest = hashlib.sha256()
for turn in range(2):
    rows = [{"id": i, "name": "n%d" % random.randrange(10**6),
             "tags": ["t%d" % random.randrange(999) for _ in range(8)],
             "text": "x" * random.randrange(400)} for i in range(40000)]
    text = json.dumps(rows)
    back = json.loads(text)
    count = collections.Counter(t for r in back for t in r["tags"])
    back.sort(key=lambda r: (r["name"], r["id"]))
    words = re.findall(r'n\d+|t\d+', text)
    digest.update(repr((count.most_common(20), back[:100], len(words),
                        len(set(words)))).encode())
print(digest.hexdigest())
END

# timed NAME OUTPUT COMMAND...: under glibc and under eddy, twice each in
# turn; the shortest counts. Says whether all ended well.
timed()
{
	name=$1
	output=$2
	shift 2
	for turn in 1 2; do
		for lib in glibc eddy; do
			if ! python3 "$tmp/watch.py" "$(preload $lib)" \
				"$tmp/$name.$lib.$turn" "$@" \
				>"$tmp/$name.$lib.out" 2>"$tmp/$name.$lib.err"
			then
				fail "$name under $lib:" \
					"$(tail -n 1 "$tmp/$name.$lib.err")"
				return 1
			fi
			if [ -n "$output" ]; then
				cp "$output" "$tmp/$name.$lib.out"
			fi
		done
	done
	cmp -s "$tmp/$name.glibc.out" "$tmp/$name.eddy.out" ||
		fail "$name gives another result under eddy"
	for lib in glibc eddy; do
		cat "$tmp/$name.$lib".[12] | awk -F= '
			$1 == "s" && (s == "" || $2 < s) { s = $2 }
			$1 == "peak_kb" && $2 > k { k = $2 }
			END { print "s=" s; print "peak_kb=" k }' \
			>"$tmp/$name.$lib"
	done
}

timed_rows()
{
	for what in s peak_kb; do
		unit=seconds
		[ $what = s ] || unit='KiB at most'
		compare_row lower "$1, $unit" "$(field $what "$tmp/$2.glibc")" \
			"$(field $what "$tmp/$2.eddy")"
	done
}

python()
{
	have python3 || return 0
	timed python '' python3 "$tmp/work.py" || return 0
	timed_rows "python3 JSON, sort, regex" python
}

# The compiler on a translation unit of some size.
compiler()
{
	have python3 gcc || return 0
	{
		for i in 1 2 3 4 5 6; do
			echo "static unsigned mix_$i(unsigned a, unsigned b)"
			echo "{ return (a ^ b) * 2654435761u + $i; }"
		done
		awk 'BEGIN {
			for (i = 0; i < 700; i++) {
				printf "struct s%d { int a[%d]; char *b; };\n",
					i, i % 9 + 1
				printf "int f%d(struct s%d *s, int n)\n{\n", i, i
				printf "\tint t = 0;\n\tfor (int k = 0; k < n; "
				printf "k++) {\n\t\tt += s[k].a[k %% %d] * %d;\n",
					i % 9 + 1, i
				printf "\t\tif (s[k].b && s[k].b[0] == %d)\n",
					i % 100
				printf "\t\t\tt ^= mix_%d(t, k);\n\t}\n", i % 6 + 1
				printf "\treturn t;\n}\n"
			}
		}'
	} >"$tmp/unit.c"
	timed gcc "$tmp/unit.o" gcc -O2 -w -c "$tmp/unit.c" -o "$tmp/unit.o" ||
		return 0
	timed_rows "gcc -O2" gcc
}

row "" glibc eddy "eddy is" ""
redis
python
compiler
if [ -f "$tmp/redis.eddy" ]; then
	cat <<-'END'

	redis: Debian's comes with jemalloc. For the column "glibc" libc is
	preloaded, so that it is measured over libc's malloc, not jemalloc's.
	END
fi
for program in $skipped; do
	echo "demo: $program is missing; install it to see its rows"
done
if [ "$failed" -ne 0 ]; then
	echo "demo: $failed checks failed"
	exit 1
fi
echo "demo: every program ended well and gave the same answers under both"
cat <<END

The library is $so; to try it on a program:
    LD_PRELOAD=$so PROGRAM
To install it, as root: make -C BUILD install && ldconfig, where BUILD is the
folder that it was built in${EDDY_BUILDDIR:+, $EDDY_BUILDDIR}.
END
