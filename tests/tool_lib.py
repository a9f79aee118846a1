# SPDX-License-Identifier: BSD-2-Clause
"""tool_lib.py - for tests of the channel and of eddyctl: TAP, targets, requests."""

import os
import select
import socket
import struct
import subprocess
import sys
import tempfile
import time

SO = os.environ["EDDY_SO"]
BUILD = os.environ.get("EDDY_BUILDDIR", ".")
TARGET = os.environ.get("TOOL_TARGET", BUILD + "/tests/tool_target")
PATIENCE = float(os.environ.get("EDDY_PATIENCE", "1"))
MAGIC = 0x314C544359444445

_n = 0
_failed = 0
work = tempfile.mkdtemp(prefix="eddy-tool-")
os.chmod(work, 0o755)
_procs = []


def ok(held, name, *why):
    global _n, _failed
    _n += 1
    print(("ok" if held else "not ok") + " %d - %s" % (_n, name), flush=True)
    if not held:
        _failed += 1
        for w in why:
            for line in str(w).splitlines()[-20:]:
                print("# " + line, flush=True)
    return held


def skip(name, why):
    global _n
    _n += 1
    print("ok %d - %s # SKIP %s" % (_n, name, why), flush=True)


def diag(text):
    print("# " + text, flush=True)


def end():
    for p in _procs:
        stop(p)
    subprocess.run(["rm", "-rf", work], check=False)
    print("1..%d" % _n, flush=True)
    sys.exit(_failed != 0)


def stop(p):
    if p.stdin and not p.stdin.closed:
        try:
            p.stdin.close()
        except OSError:
            pass
    try:
        p.wait(3 * PATIENCE)
    except subprocess.TimeoutExpired:
        p.kill()
        p.wait()


def environment(conf):
    env = dict(os.environ, LD_PRELOAD=SO)
    env.pop("MALLOC_CONF", None)
    env.pop("EDDY_CONF", None)
    if conf is not None:
        env["MALLOC_CONF"] = conf
    return env


def start(what, conf="control:auto", number=None, wait=True, **more):
    """A target; p.told is the process id that it said."""
    args = what if isinstance(what, list) else [TARGET, what]
    if number is not None:
        args = args + [str(number)]
    p = subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         env=environment(conf), **more)
    _procs.append(p)
    p.told = 0
    if wait:
        if not select.select([p.stdout], [], [], 20 * PATIENCE)[0]:
            raise RuntimeError("target is not ready")
        line = p.stdout.readline().split()
        p.told = int(line[1]) if len(line) > 1 else 0
    return p


def wait_for(what, seconds=5.0):
    until = time.monotonic() + seconds * PATIENCE
    while True:
        got = what()
        if got or time.monotonic() > until:
            return got
        time.sleep(0.05)


class Page:
    """The shared page of a process; None where it has none of its own."""

    def __init__(self, data, at):
        self.pid, self.socket, self.n = struct.unpack_from("<IiI", data)
        self.version = data[16:48].split(b"\0")[0].decode()
        self.name = data[48:160].split(b"\0")[0].decode()
        self.names = data[160:800].split(b"\0")[0].decode().split()
        shown = struct.unpack_from("<Q", data, 808)[0]
        words = struct.unpack_from("<%dQ" % self.n, data,
                                   832 + 512 * (shown % 64))
        self.words = dict(zip(self.names, words))
        self.at = at


def page(pid):
    try:
        for f in os.listdir("/proc/%d/fd" % pid):
            at = "/proc/%d/fd/%s" % (pid, f)
            try:
                if not os.readlink(at).startswith("/memfd:eddy-control"):
                    continue
                with open(at, "rb") as file:
                    data = file.read(4096)
            except OSError:
                continue
            if struct.unpack_from("<Q", data, 800)[0] != MAGIC:
                continue
            got = Page(data, at)
            if got.pid == pid:
                return got
    except OSError:
        pass
    return None


def connect(pid, seconds=5.0):
    where = page(pid)
    if where is None:
        raise OSError("no channel")
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(seconds * PATIENCE)
    if where.socket >= 0:
        s.connect("/proc/%d/fd/%d" % (pid, where.socket))
    else:
        s.connect("\0" + where.name[1:])
    return s


def read_all(s):
    got = b""
    while True:
        try:
            more = s.recv(65536)
        except ConnectionResetError:
            more = b""
        if not more:
            return got
        got += more


def ask(pid, request):
    """The answer, without its zero; "cut" in front of one that has none."""
    s = connect(pid)
    try:
        s.sendall(("eddy1 " + request + "\n").encode())
        got = read_all(s)
    finally:
        s.close()
    text = got.rstrip(b"\0").decode("latin1")
    return text if got.endswith(b"\0") else "cut " + text


def rss_kib(pid):
    with open("/proc/%d/statm" % pid) as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE") // 1024
