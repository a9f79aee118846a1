#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# python.sh - part of python's own test suite, its object allocator off so that
# each object is a block of the library's.
# tap.sh has what is not found here.
# shellcheck disable=SC1091,SC2034,SC2154
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../tap.sh"
for python in /usr/bin/python3 python3 ''; do
	[ -n "$python" ] && "$python" -c \
		'import test.test_dict, test.test_json' >/dev/null 2>&1 && break
done
[ -n "$python" ] || skip_all \
	'no python3 with its tests: install python3 libpython3.11-testsuite'

cd "$tap_work" || exit 99
# suite NAME... - these tests of python, with pymalloc or without
suite() {
	PYTHONMALLOC=$1
	export PYTHONMALLOC
	shift
	eddy timeout 120 "$python" -m test -q --tempdir "$tap_work" "$@"
}
ok 'python tests, every object by malloc' suite malloc \
	test_dict test_list test_json test_array test_deque test_struct \
	test_bytes test_weakref
ok 'python tests of threads and forks' suite malloc \
	test_thread test_threading_local test_fork1
ok 'python tests with its own allocator' suite pymalloc \
	test_re test_mmap test_ctypes

cat >work.py <<'END'
import hashlib, json, random, threading, zlib
random.seed(7)
out = []
def work(seed):
    r = random.Random(seed)
    data = {str(i): [r.random() for _ in range(r.randrange(50))]
            for i in range(3000)}
    text = json.dumps(data, sort_keys=True)
    assert json.loads(text) == data
    packed = zlib.compress(text.encode() * 3)
    assert zlib.decompress(packed) == text.encode() * 3
    out.append(hashlib.sha256(text.encode()).hexdigest())
threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
[t.start() for t in threads]
[t.join() for t in threads]
print(hashlib.sha256(''.join(sorted(out)).encode()).hexdigest())
END
same() {
	"$python" work.py >without && PYTHONMALLOC=malloc eddy "$python" \
		work.py >with 2>err && cmp with without && [ ! -s err ]
}
ok 'six threads of json and zlib give the same answers as without' same
tap_end
