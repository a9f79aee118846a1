# SPDX-License-Identifier: BSD-2-Clause
"""What bench/decay, hints, latency, steady, thp and zero.tab let pass, and what they do
not: figures made up, and allocators that are known to miss."""

import importlib.machinery
import os
import re
import shutil
import subprocess
import sys
import tempfile
import types

SRC = os.environ["EDDY_SRCDIR"]
PROGRAM = os.path.join(os.environ["EDDY_BUILDDIR"], "bench", "eddy_bench")
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(SRC, "bench"))
import compare_zero  # noqa: E402
import harness  # noqa: E402

n_tests = n_failed = 0


def ok(held, name):
    global n_tests, n_failed
    n_tests += 1
    n_failed += not held
    print("%s %d - %s" % ("ok" if held else "not ok", n_tests, name),
          flush=True)


def skip(name, why):
    global n_tests
    n_tests += 1
    print("ok %d - %s # SKIP %s" % (n_tests, name, why))


def load(name):
    loader = importlib.machinery.SourceFileLoader(
        name, os.path.join(SRC, "bench", name))
    module = types.ModuleType(name)
    module.__file__ = loader.path
    loader.exec_module(module)
    return module


def run(name, *args):
    """The exit status and what was said."""
    with tempfile.TemporaryDirectory() as out:
        p = subprocess.run(
            [os.path.join(SRC, "bench", name), "--program", PROGRAM, "--out",
             out, *args], text=True, capture_output=True, check=False)
    if p.returncode not in (0, 1):
        print("# " + p.stderr.strip().replace("\n", "\n# "))
    return p.returncode, p.stdout


# ---------------------------------------------------------------------------

def curve(decay):
    # the smooth step's values at tenths
    step = [0, .00856, .05792, .16308, .31744, .5, .68256, .83692, .94208,
            .99144, 1]
    ok(all(abs(decay.left(i / 10) - (1 - step[i])) < 1e-9 for i in range(11)),
       "the curve is 1 less the smooth step")
    ok(decay.left(-1) == 1 and decay.left(2) == 0, "and level beside it")


def samples(decay, off):
    """A run on the curve but for its seventh sample that is compared."""
    n = decay.TIMES * decay.BETWEEN
    ret = []
    for i in range(n + 1):
        want = 100 * decay.left(i / n)
        ret.append([i, want + (off if i == 7 * decay.BETWEEN else 0), want])
    return {"allocator": "x", "mode": "idle", "thp": "off", "samples": ret}


def deviation(decay):
    ok(decay.missed(samples(decay, 0)) is None and
       decay.missed(samples(decay, 4.9)) is None and
       decay.missed(samples(decay, -4.9)) is None,
       "decay: a run on the curve passes")
    ok(decay.missed(samples(decay, 5.1)) is not None and
       decay.missed(samples(decay, -5.1)) is not None,
       "decay: one time beyond 5 % does not")


def steady_state(steady):
    good = {"calls": {"futex": 3}, "faults": 99, "wakeups": 0}
    ok(not list(steady.missed(good, False)), "steady: a quiet run passes")
    for name, change in (("madvise", {"calls": {"madvise": 1}}),
                         ("100 faults", {"faults": 100}),
                         ("a wake-up", {"wakeups": 1}),
                         ("what was not counted", {"calls": None})):
        ok(len(list(steady.missed({**good, **change}, False))) == 1,
           "steady: %s does not" % name)
    ok(len(list(steady.missed(good, True))) == 1 and
       not list(steady.missed({**good, "calls": {}}, True)),
       "steady: a frozen heap makes no call at all")


def lives(hints):
    def faults(*after):
        return len(list(hints.missed({
            "eddy lives %s %s" % (count, mode): [{"after_kb": kb}] * 3
            for count in hints.COUNTS
            for mode, kb in zip(("none", "hints"), after)})))

    ok(faults(1000, 700) == 0, "hints: 0.7 of what is resident without passes")
    ok(faults(1000, 701) == len(hints.COUNTS), "hints: more does not")
    ok(faults(1000) == len(hints.COUNTS), "hints: nor what was not measured")


def table(thp):
    """An arena in huge pages against the best of the others."""
    opt = types.SimpleNamespace(quick=False)

    def runs(kib, *ns):
        return [{"huge_kb": kib, "cpu_ns_per_op": v, "round": i}
                for i, v in enumerate(ns)]

    def faults(kib, *ns):
        v = {"glibc": runs(0, 300, 300, 300), "glibc thp": runs(0, 90, 100, 200),
             "eddy thp": runs(0, 1, 1, 1), "eddy arena": runs(kib, *ns)}
        return len(list(thp.missed(
            opt, {"runs": v, "best_peer": thp.best_peer(v)})))

    ok(faults(1 << 20, 91, 101, 400) == 0,
       "thp: as fast as the best of the others, round by round")
    ok(faults(1 << 20, 93, 103, 150) == 1, "thp: slower in two of three does not")
    ok(faults(996000, 90, 100, 200) == 1, "thp: nor 94.98 % in huge pages")


def tails(latency):
    def summary(mine, its, noise, spread):
        rows = {"x": [(30, 0)] * 2 + [(mine, spread)] * 3,
                "y": [(30, 0)] * 2 + [(its, 0)] * 3,
                "z": [(30, 0)] * 2 + [(its + 500, 0)] * 3}
        return {"clock_ns": 20, "step_ns": 10,
                "noise": [(50, 0)] * 2 + [(50 + noise, 0)] * 3,
                "calls": {"malloc": rows, "free": rows}}

    def how(mine, its, noise, spread=0.0):
        return latency.compare(summary(mine, its, noise, spread), "malloc", 2,
                               "x", ["z", "y"])[0]

    def against(faults):
        s = summary(1400, 1000, 100, 0)
        s["faults_per_s"] = {"x": 50000, "y": faults, "z": 50000}
        said = latency.judge({"runs": dict.fromkeys("xyz"), "summary": s},
                             ["x"])
        return {v[0] for v in said}

    ok(how(1000, 1000, 100) == "met" and how(500, 1000, 100) == "met",
       "latency: at most the best is met")
    ok(how(1200, 1000, 100) == "MISSED", "latency: over the best is missed")
    ok(how(1200, 1000, 100, 200) == "met", "latency: within the spread is met")
    ok(how(1200, 1000, 250) == "not shown" and
       how(500, 1000, 600) == "not shown",
       "latency: what the machine's noise hides is not shown")
    ok(how(9000, 1000, 1000) == "MISSED",
       "latency: what stands out of the noise is")
    ok(against(50000) == {"MISSED", "met"} and
       against(10) == {"met", "left out"},
       "latency: who keeps all memory is no mark")


def zeroes():
    def missed(name, ns, ratio):
        cell = {"ns": ns, "bare_ratio": ratio, "bare_ratio_spread": 0.02}
        goals = compare_zero.targets(
            [{"row": {"name": name}, "cells": {"eddy": cell}}])
        return [not met for met, _ in goals]

    ok(missed("calloc_512m", 9e4, 9) == [False] and
       missed("calloc_512m", 2e5, 0.1) == [True] and
       missed("untouched_100m", 9e3, 9) == [False] and
       missed("untouched_100m", 2e4, 0.1) == [True],
       "zero: calloc of what is not touched is held to its time")
    ok(missed("touch_4m_50", 1e6, 1.04) == [False] and
       missed("touch_4m_50", 1, 1.06) == [True] and
       missed("memset_1m", 1e6, 1.01) == [False] and
       missed("memset_1m", 1, 1.03) == [True] and
       missed("warm_1m", 1e9, 9) == [],
       "zero: the rest to its ratio")
    text = compare_zero.markdown(
        {"allocators": ["eddy", "none"]},
        [{"row": {"name": "touch_4m_50"}, "cells": {"eddy": {
            "ns": 2000, "spread": 0.1, "bare_ns": 4000, "bare_ratio": 0.5,
            "bare_ratio_spread": 0}}}])
    ok("4.00" in text and "(0.50" in text and "failed" in text,
       "zero: a table shows both, and what failed")


def controls():
    peers = {a[0] for a in harness.PEERS if harness.find_library(*a[1:])}
    if "jemalloc" not in peers:
        skip("allocators that miss", "no jemalloc: install libjemalloc2")
        return
    # What is measured is real: on a busy machine not always at once.
    for _ in range(3):
        status, said = run(
            "decay", "--decay-ms", "300", "--size-mib", "32", "--thp", "off",
            "--modes", "idle", "--variant", "never=jemalloc:dirty_decay_ms:-1",
            "--just", "never", "--check", "never")
        if status == 1 and "MISSED never, idle" in said:
            break
        print("# " + said.strip().replace("\n", "\n# "))
    ok(status == 1 and "MISSED never, idle" in said,
       "decay: an allocator that keeps all is seen")
    if shutil.which("strace"):
        for _ in range(3):
            status, said = run(
                "steady", "--warm-s", "0.2", "--run-s", "0.5", "--variant",
                "now=jemalloc:dirty_decay_ms:0,background_thread:true",
                "--just", "now", "--check", "now")
            seen = status == 1 and all(
                re.search(r"MISSED now: \d+ " + what, said) for what in
                ("calls of madvise", "page faults", "wake-ups"))
            if seen:
                break
            print("# " + said.strip().replace("\n", "\n# "))
        ok(seen, "steady: an allocator that gives all back is seen")
    else:
        skip("steady: an allocator that gives all back is seen",
             "no strace: install strace")
decay = load("decay")
curve(decay)
deviation(decay)
steady_state(load("steady"))
table(load("thp"))
lives(load("hints"))
tails(load("latency"))
zeroes()
controls()
print("1..%d" % n_tests)
sys.exit(n_failed != 0)
