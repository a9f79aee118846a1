# SPDX-License-Identifier: BSD-2-Clause
"""tool_fuzz.py - malformed, cut, oversized and random requests; the target goes
on, answers, and does not grow.

EDDY_FUZZ says how many (3,000), EDDY_SEED where to begin.
"""

import os
import random
import re
import socket
import time

from tool_lib import (PATIENCE, ask, diag, end, ok, page, rss_kib, start, stop,
                      wait_for)

N = int(os.environ.get("EDDY_FUZZ", "3000"))
SEED = int(os.environ.get("EDDY_SEED", "0"), 0) or os.getpid()
diag("EDDY_SEED=%d EDDY_FUZZ=%d" % (SEED, N))
rng = random.Random(SEED)

with open(os.environ["EDDY_SRCDIR"] + "/lib/ctl/ctl.tab") as tab:
    names = [n.split("{")[0] for n in re.findall(
        r"^name: ([a-z_]+\.[a-z_.<>{},]+|epoch|background_thread)$",
        tab.read(), re.M)]
# What is written by these goes to files.
names = [n for n in names if not n.startswith("prof.")]
VERBS = ["hello", "get", "set", "call", "print", "purge", "idle", "freeze",
         "thaw", "map", "flows", "", "GET", "eddy1"]
VALUES = ["0", "1", "-1", "true", "false", "", "18446744073709551615",
          "18446744073709551616", "-9223372036854775809", "x" * 300, "%s%n",
          "\x7f\x01", "9" * 400, "disabled", " 1", "1 "]


def name():
    n = rng.choice(names)
    for x in "ij":
        n = n.replace("<%s>" % x, str(rng.choice(
            [0, 0, 0, 1, 7, 35, 4096, 4097, -1, 10 ** 25, ""])))
    cut = rng.random()
    if cut < 0.1:
        n = n[:rng.randrange(len(n) + 1)]
    elif cut < 0.15:
        n += rng.choice([".", ".x", "..", ".0"])
    return n


def sensible():
    verb = rng.choice(VERBS)
    words = ["eddy1", verb]
    if verb == "print":
        words.append("".join(rng.choice("Jgmdablxehfnpr?")
                             for _ in range(rng.randrange(9))))
    else:
        words += [name() for _ in range(rng.choice([0, 1, 1, 1, 2, 30]))]
        words.append(rng.choice(VALUES))
    return rng.choice([" ", " ", " ", "  "]).join(words).encode() + b"\n"


def request():
    kind = rng.randrange(10)
    r = sensible()
    if kind < 4:
        return r
    if kind == 4:
        return r[:rng.randrange(len(r))]
    if kind == 5:
        return rng.randbytes(rng.randrange(1, 2000))
    if kind == 6:
        return r[:-1] + b" " + b"a" * rng.choice([900, 1020, 1024, 9000]) + \
            b"\n"
    if kind == 7:
        r = bytearray(r)
        for _ in range(rng.randrange(1, 5)):
            r[rng.randrange(len(r))] = rng.randrange(256)
        return bytes(r)
    if kind == 8:
        return r * rng.randrange(2, 6)
    return b""


def throw(where):
    """One request, and as much of the answer as is wanted."""
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(10 * PATIENCE)
    try:
        s.connect(where)
        r = request()
        at = rng.randrange(len(r) + 1) if rng.random() < 0.1 else len(r)
        s.sendall(r[:at])
        s.sendall(r[at:])
        how = rng.randrange(4)
        # Not always waited for: what has no newline takes a second.
        if how < 2 and b"\n" in r:
            while s.recv(65536):
                pass
        elif how == 2:
            s.shutdown(socket.SHUT_WR)
            s.recv(100)
    except socket.timeout:
        return False
    except OSError:
        pass
    finally:
        s.close()
    return True


def state(p):
    return (len(os.listdir("/proc/%d/fd" % p.pid)),
            len(os.listdir("/proc/%d/task" % p.pid)))


p = start("bleed")
ask(p.pid, "set background_thread false")
for letters in ("J", "", "p"):
    ask(p.pid, "print " + letters)
at = "/proc/%d/fd/%d" % (p.pid, page(p.pid).socket)
for _ in range(200):
    throw(at)
time.sleep(1.2)
ask(p.pid, "purge")
before, rss = state(p), rss_kib(p.pid)
answered = all([throw(at) for _ in range(N)])
time.sleep(1.2)
ok(p.poll() is None, "%d odd requests: the target lives" % N)
ok(answered, "each is answered or cut off in time")
ok(ask(p.pid, "hello").startswith("ok\nversion"), "and a good one is answered")
ask(p.pid, "thaw")
ask(p.pid, "set background_thread false")
ask(p.pid, "purge")
grown = rss_kib(p.pid) - rss
ok(grown < 4096, "it did not grow", "%d KiB" % grown)
diag("grown by %d KiB" % grown)
ok(wait_for(lambda: state(p)[0] <= before[0]), "no descriptor is left", before,
   state(p))
ok(wait_for(lambda: state(p)[1] == before[1]), "no thread", before, state(p))
stop(p)
end()
