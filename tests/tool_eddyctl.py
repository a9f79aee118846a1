# SPDX-License-Identifier: BSD-2-Clause
"""tool_eddyctl.py - each command of eddyctl on a redis-server, a program that
bleeds and one of many threads; and what it says where there is nothing to see."""

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from tool_lib import (BUILD, PATIENCE, SO, TARGET, diag, end, ok, page, skip,
                      start, stop, wait_for, work)

TOOL = os.environ.get("EDDYCTL", BUILD + "/tools/eddyctl")


class Result:
    def __init__(self, p):
        self.status = p.returncode
        self.out = p.stdout
        self.err = p.stderr

    def __str__(self):
        return "status %d\n%s%s" % (self.status, self.out, self.err)


def run(*args, **more):
    env = dict(os.environ, EDDY_SO=SO)
    env.pop("MALLOC_CONF", None)
    env.pop("EDDY_CONF", None)
    env.update(more.pop("env", {}))
    return Result(subprocess.run(
        [TOOL] + [str(a) for a in args], capture_output=True, text=True,
        env=env, timeout=120 * PATIENCE, check=False, **more))


def parsed(r):
    try:
        return json.loads(r.out)
    except ValueError:
        return None


def good(name, r, *words):
    """Done, without a remark, and these words are in what was said."""
    return ok(r.status == 0 and r.err == "" and
              all(re.search(w, r.out, re.M) for w in words), name, r)


def bad(name, r, status, words):
    return ok(r.status == status and re.search(words, r.err) and
              r.err.startswith(("eddyctl: ", "usage: ", TOOL, "<eddy>: ")),
              name, r)


# Help and usage
good("help lists commands", run("help"), "^  stats ", "^  why ")
good("help of a command", run("help", "watch"), "usage: eddyctl watch PID")
good("and by --help", run("watch", "--help"), "usage: eddyctl watch PID")
good("its version", run("--version"), r"^eddyctl \d+\.\d+")
ok(run().status == 2, "nothing at all: 2")
bad("no such command", run("fly"), 2, "no command fly")
bad("no such option", run("list", "--fly"), 2, "--fly")
for command in ("stats", "why", "bleed", "verify-return", "get", "set", "call",
                "purge", "idle", "freeze", "thaw", "prof", "export", "watch",
                "plot", "run"):
    bad("%s alone: its usage" % command, run(command), 2,
        "^usage: eddyctl %s" % command)
bad("no number: 2", run("stats", "12x"), 2, "no process id")
bad("no such process: 4", run("stats", 4194304), 4, "no such process")
p = subprocess.Popen(["true"])
wait_for(lambda: open("/proc/%d/stat" % p.pid).read().split()[2] == "Z")
bad("one that has ended: 4", run("stats", p.pid), 4, "has ended")
p.wait()
bad("no such socket", run("get", work + "/none", "epoch"), 3,
    "No such file")
bad("not a time", run("watch", os.getpid(), "-i", "never"), 2, "not a number")

# The table
r = run("names")
good("names: all", r, r"^arena\.<i>\.purge +void +call ",
     r"^stats\.allocated +size +read ")
ok(len(r.out.splitlines()) > 300, "of which there are hundreds")
good("names: some", run("names", "thread.arena"), r"^thread\.arena ")
good("names: a pattern", run("names", "arena.*.dirty_decay_ms"),
     r"^arena\.<i>\.dirty_decay_ms +ssize +read, write ")
bad("names: none", run("names", "xyzzy"), 1, "xyzzy")
good("options", run("options", "dirty_decay"), "^dirty_decay_ms .*10000")
ok({"name", "type", "access", "brief"} <= set(
    (parsed(run("names", "--json")) or [{}])[0]), "names as JSON")
ok(any(o["name"] == "control" for o in
       parsed(run("options", "--json")) or []), "options as JSON")

# A process without the option, and one without the library
p = start("idle", conf=None)
r = run("stats", p.pid)
ok(r.status == 3 and "resident" in r.out and "control:auto" in r.err,
   "no channel: what its mappings tell, what to set, and 3", r)
j = parsed(run("why", p.pid, "--json")) or {}
ok(j.get("rss", 0) > 0 and j.get("files", 0) > 0, "the same as JSON")
ok(bool(re.search(r"^ +0 B  brk", r.out, re.M)) == (j.get("brk") == 0),
   "and the words say what JSON does", r)
bad("nothing else", run("get", p.pid, "epoch"), 3, "control:auto")
stop(p)
p = subprocess.Popen(["sleep", "60"])
bad("not served: how to", run("purge", p.pid), 3, "eddyctl run")
p.kill()
p.wait()

p = start("fork-silent")
time.sleep(0.3)
bad("a forked child that has its parent's channel: neither",
    run("get", p.told, "epoch"), 3, "was forked")
ok(run("stats", p.told).status == 3, "but what its mappings tell")
stop(p)

# Memory that was given back and is there all the same
p = start("refill", conf="control:auto,dirty_decay_ms:0", number=64 << 20)
w = parsed(run("why", p.pid, "--json")) or {}
parts = w.get("parts", {})
ok(abs(parts.get("refilled", 0) - (64 << 20)) < 4 << 20 and
   any(a["option"] == "thp" for a in w["advice"]),
   "why: what was given back is in memory all the same", w)
stop(p)

# One that holds memory
p = start("hold", conf="control:auto,dirty_decay_ms:-1,idle_purge_ms:-1",
          number=256 << 20)
r = run("stats", p.pid)
good("stats", r, r"MiB +resident, by the kernel", r"free pages that decay")
s = parsed(run("stats", "--json", p.pid)) or {}
ok(s.get("dirty", 0) > 200 << 20 and s.get("rss", 0) > 200 << 20 and
   s.get("pid") == p.pid and not s.get("stopped"), "stats as JSON", s)
good("stats --full", run("stats", "--full", p.pid), "eddy")
ok(parsed(run("stats", "--full", "--json", p.pid)) is not None,
   "stats --full as JSON")
r = run("why", p.pid)
good("why: dirty pages", r, r"^ +2\d\d\.\d MiB +\d\d%  dirty",
     r"-> .*dirty_decay_ms")
w = parsed(run("why", p.pid, "--json")) or {}
parts = w.get("parts", {})
ok(parts.get("dirty", 0) > 200 << 20 and
   any(a["option"] == "dirty_decay_ms" for a in w["advice"]),
   "why as JSON", w)
total = sum(v for k, v in parts.items() if k != "untouched")
ok(abs(total - parts.get("untouched", 0) - w.get("rss", 0)) <
   max(w.get("rss", 0) / 50, 1 << 20), "its parts add up", w)
ok(parts.get("not_eddys", 1 << 40) < 40 << 20 and
   parts.get("untouched", 1 << 40) < 20 << 20,
   "and what was touched is not somebody else's, or untouched", w)
os.kill(p.pid, signal.SIGSTOP)
wait_for(lambda: open("/proc/%d/stat" % p.pid).read().split()[2] == "T")
r = run("stats", p.pid)
ok(r.status == 0 and "stopped" in r.out and "as of" in r.err,
   "a stopped process: stats all the same", r)
s = parsed(run("stats", "--json", "--quiet", p.pid)) or {}
ok(s.get("dirty", 0) > 200 << 20 and s.get("stopped") is True,
   "with the same figures", s)
bad("and nothing that takes an answer: 5", run("get", p.pid, "epoch"), 5,
    "stopped")
os.kill(p.pid, signal.SIGCONT)
r = run("verify-return", p.pid)
good("verify-return", r, "given back, eddy says", r"^smaps rss .* -\d+\.\d MiB")
r = run("verify-return", "--json", p.pid)
v = parsed(r) or {}
ok(r.status == 0 and v.get("held") is True, "as JSON", r)
ok((parsed(run("stats", "--json", p.pid)) or {}).get("rss", 1 << 40) <
   100 << 20, "and it is gone")
stop(p)

# The map
p = start("hold", conf="control:auto,dirty_decay_ms:-1,idle_purge_ms:-1",
          number=40 << 20)
html = work + "/map.html"
m = parsed(run("map", "--json", p.pid)) or {"chunks": []}
ok(sum(c["dirty"] for c in m["chunks"]) > 30 << 20 and
   any(k["live"] > 0 for c in m["chunks"] for k in c["classes"]),
   "map as JSON: dirty chunks, classes", m["chunks"][:3])
ok(run("map", p.pid, "-o", html).status == 0 and
   "http" not in open(html).read().replace("<!DOCTYPE html>", ""),
   "map: a page that asks nobody")
bad("map: no such folder", run("map", p.pid, "-o", "/nowhere/x"), 1,
    "No such file")
stop(p)
shutil.copy(TARGET, work + "/<b>")
p = start([work + "/<b>", "idle"])
ok(run("map", p.pid, "-o", work + "/odd.html").status == 0 and
   r'"\u003cb>"' in open(work + "/odd.html").read(),
   "map: an odd name is no markup")
stop(p)
hover = """<script>
const canvas = document.querySelector("canvas"), box =
  canvas.getBoundingClientRect(), first = chunks[0].number % PER;
canvas.dispatchEvent(new MouseEvent("mousemove", {
  clientX: box.left + 1 + (first % ACROSS + 0.5) * SIDE,
  clientY: box.top + 1 + (Math.floor(first / ACROSS) + 0.5) * SIDE}));
document.body.dataset.tip = $("tip").textContent;
document.body.dataset.colour = [...canvas.getContext("2d").getImageData(
  (first + 1) % ACROSS * SIDE + 5, Math.floor((first + 1) / ACROSS) * SIDE + 5,
  1, 1).data].join();
</script></body>"""
if shutil.which("chromium"):
    with open(work + "/hover.html", "w") as f:
        f.write(open(html).read().replace("</body>", hover))
    dom = subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu",
         "--user-data-dir=" + work + "/chromium", "--dump-dom",
         "file://" + work + "/hover.html"], capture_output=True, text=True,
        timeout=120 * PATIENCE, check=False).stdout
    ok('data-drawn="%d"' % sum(c["count"] for c in m["chunks"]) in dom,
       "map: a browser draws each chunk", dom[-300:])
    ok(re.search(r'data-tip="chunk \d+, arena 1.*\n.* slabs, ', dom, re.S),
       "map: and says what is in one", dom[-300:])
    ok('data-colour="221,136,34,255"' in dom, "map: a dirty one in its colour",
       dom[-300:])
else:
    skip("map: a browser draws it", "no chromium")

# Names
p = start("idle")
good("get: one, alone", run("get", p.pid, "eddy.mode"), "^(rseq|claim|none)$")
r = run("get", p.pid, "opt.control", "arenas.nbins")
good("get: two, with names", r, "^opt.control auto$", r"^arenas.nbins \d+$")
g = parsed(run("get", "--json", p.pid, "opt.control", "stats.allocated",
               "background_thread", "arena.0.dirty_decay_ms")) or {}
ok(g.get("opt.control") == "auto" and g.get("stats.allocated", 0) > 100000 and
   isinstance(g.get("background_thread"), bool) and
   g.get("arena.0.dirty_decay_ms") == 10000, "get: JSON has types", g)
r = run("get", p.pid, "eddy.mode", "eddy.nothing")
ok(r.status == 1 and "eddy.mode " in r.out and "eddy.nothing: no such name" in
   r.err, "get: what there is, and a word on what is not", r)
ok(run("set", p.pid, "arena.0.dirty_decay_ms", "-1").status == 0 and
   run("get", p.pid, "arena.0.dirty_decay_ms").out == "-1\n",
   "set: below zero")
for args, words in ((("set", "arena.0.dirty_decay_ms", "soon"), "type ssize"),
                    (("set", "arena.0.dirty_decay_ms", "-7"), "out of range"),
                    (("set", "stats.active", "1"), "can only be read"),
                    (("set", "no.such", "1"), "no such name"),
                    (("set", "arena.0.purge", "1"), "is an action"),
                    (("get", "arena.0.purge"), "is an action"),
                    (("get", "thread.arena"), "of the thread"),
                    (("get", "arenas.lookup"), "pointer"),
                    (("get", "arena.3999.initialized"), "of that number"),
                    (("call", "stats.active"), "no action"),
                    (("call", "arena.0.destroy"), "not in use")):
    bad("%s: %s" % (" ".join(args), words),
        run(args[0], p.pid, *args[1:]), 1, words)
good("call", run("call", p.pid, "arena.0.purge"))
ok(parsed(run("call", "--json", p.pid, "arena.0.decay")) == {"ok": True},
   "call as JSON")
bad("a name with a line end", run("get", p.pid, "epoch\nfreeze"), 2,
    "no name")
for command in ("purge", "idle", "freeze"):
    ok(run(command, p.pid).status == 0, command)
good("stats says that it is frozen", run("stats", p.pid), "frozen")
good("thaw", run("thaw", p.pid))
ok(page(p.pid).words["frozen"] == 0, "and it is not any more")
r = run("list", "--quiet")
good("list", r, r"^ +PID +RSS", r"^ +%d .*tool_target.* auto$" % p.pid)
ok(any(x["pid"] == p.pid and x["channel"] == "auto"
       for x in parsed(run("list", "--json")) or []), "list as JSON")
bad("prof start: a word why not", run("prof", p.pid, "start"), 1, "prof:true")
bad("prof: no file", run("prof", p.pid, "dump"), 2, "usage")
bad("prof: an odd word", run("prof", p.pid, "jump"), 2, "usage")
path = work + "/sock"
q = start("idle", conf="control:" + path)
good("by a path", run("get", path, "opt.control"), "^%s$" % re.escape(path))
good("by a path: stats", run("stats", path), "eddy")
bad("by a path: why needs a number", run("why", path), 2, "process id")
good("list shows it", run("list", "--quiet"), r" %s$" % re.escape(path))
stop(q)

q = start("bleed", conf="control:auto,prof:true,prof_active:false,"
          "lg_prof_sample:10")
ok(run("prof", q.pid, "start").status == 0 and
   run("get", q.pid, "prof.active").out == "true\n", "prof start")
time.sleep(0.5)
r = run("prof", q.pid, "dump", "heap", cwd=work)
ok(r.status == 0 and open(work + "/heap").read().startswith("heap_v2/"),
   "prof dump: beside who asks", r)
bad("prof dump: no such folder", run("prof", q.pid, "dump", "/nowhere/x"), 1,
    "could not write")
ok(run("prof", q.pid, "stop").status == 0 and
   run("get", q.pid, "prof.active").out == "false\n", "prof stop")
stop(q)

# For collectors
r = run("export", p.pid, "--prometheus")
good("export", r, r"^# TYPE eddy_live_bytes gauge$",
     r'^eddy_live_bytes\{pid="%d",command="tool_target"\} \d+$' % p.pid,
     r"^eddy_purged_bytes_total\{")
parser = """
import sys
from prometheus_client.parser import text_string_to_metric_families
families = list(text_string_to_metric_families(sys.stdin.read()))
assert len(families) > 20, len(families)
assert all(len(f.samples) == 1 and f.documentation for f in families)
"""
for python in (sys.executable, "/usr/bin/python3"):
    if subprocess.run([python, "-c", "import prometheus_client.parser"],
                      capture_output=True, check=False).returncode == 0:
        took = subprocess.run([python, "-c", parser], input=r.out, text=True,
                              capture_output=True, check=False)
        ok(took.returncode == 0, "that a parser of Prometheus takes",
           took.stderr)
        break
else:
    skip("that a parser of Prometheus takes", "no python3-prometheus-client")
with open(os.environ["EDDY_SRCDIR"] + "/tools/eddy-dashboard.json") as f:
    wants = set(re.findall(r"\beddy_[a-z_]+", json.dumps(
        [t["expr"] for x in json.load(f)["panels"] for t in x["targets"]])))
ok(len(wants) > 10 and all(re.search("^%s{" % w, r.out, re.M) for w in wants),
   "all that the dashboard shows is exported", wants)
out = work + "/eddy.prom"
ok(run("export", p.pid, "--prometheus", "-o", out).status == 0 and
   re.sub(r"} \d+", "}", open(out).read()) == re.sub(r"} \d+", "}", r.out),
   "to a file")
ok([f for f in os.listdir(work) if f.startswith("eddy.prom")] == ["eddy.prom"],
   "with nothing beside it")
os.mkdir(work + "/folder")
bad("export: in the place of a folder", run("export", p.pid, "--prometheus",
    "-o", work + "/folder"), 1, "folder: ")
ok([f for f in os.listdir(work) if f.startswith("folder")] == ["folder"],
   "leaves nothing")
bad("export: in what form?", run("export", p.pid), 2, "--prometheus")
bad("export: no such folder", run("export", p.pid, "--prometheus", "-o",
                                  "/nowhere/x"), 1, "No such file")
out = work + "/watch.csv"
ok(run("watch", p.pid, "-i", "0.05", "-n", "5", "-o", out).status == 0,
   "watch")
rows = list(csv.DictReader(open(out)))
ok(len(rows) == 5 and all(int(x["live"]) > 0 and int(x["rss"]) > 0
                          for x in rows), "writes so many rows", rows)
os.unlink(out)
r = run("watch", "--json", p.pid, "-i", "0.05", "-n", "3")
ok([json.loads(line)["live"] > 0 for line in r.out.splitlines()] ==
   [True] * 3, "watch as JSON", r)
w = subprocess.Popen([TOOL, "watch", str(p.pid), "-o", out],
                     stdout=subprocess.PIPE)
wait_for(lambda: os.path.exists(out) and len(open(out).readlines()) > 1)
w.send_signal(signal.SIGINT)
ok(w.wait(20 * PATIENCE) == 0 and open(out).read().endswith("\n"),
   "interrupted, it ends with a whole row")
if shutil.which("gnuplot"):
    run("watch", p.pid, "-i", "0.05", "-n", "5", "-o", out)
    r = run("plot", out, "-o", work + "/watch.png")
    ok(r.status == 0 and open(work + "/watch.png", "rb").read(4) ==
       b"\x89PNG" and os.path.getsize(work + "/watch.png") > 3000,
       "plot draws it", r)
else:
    skip("plot draws it", "no gnuplot")
bad("plot: no such file", run("plot", work + "/none.csv", "-o", "x.png"), 1,
    "No such file")

# The system
r = run("doctor")
ok(r.status in (0, 1) and all(w in r.out for w in (
    "kernel", "rseq", "membarrier", "huge pages", "overcommit", "mappings",
    "cgroup", "NUMA policy")), "doctor", r)
r = run("doctor", "--json", p.pid)
d = {x["what"]: x for x in parsed(r) or []}
ok("mode" in d and d["channel"]["verdict"] == "ok", "doctor of a process", r)
stop(p)

# One that bleeds
p = start("bleed")
time.sleep(1.5)
rows = parsed(run("top", "--json", p.pid)) or []
ok(rows and {"size", "live"} <= set(rows[0]) and
   [r["live"] for r in rows] == sorted((r["live"] for r in rows),
                                       reverse=True), "top as JSON", rows[:2])
ok(any(r["pid"] == p.pid for r in parsed(run("top", "--json")) or []),
   "top of processes as JSON")
bad("top: no terminal", run("top", p.pid), 2, "terminal|not built")


def tmux(*args):
    return subprocess.run(["tmux", "-S", work + "/tmux"] + list(args),
                          capture_output=True, text=True, check=False).stdout


def shows(pattern):
    return wait_for(lambda: re.search(pattern, tmux("capture-pane", "-p"),
                                      re.M))


if shutil.which("tmux") and "not built" not in run("top", p.pid).err:
    tmux("new-session", "-d", "-x", "80", "-y", "24",
         "TERM=vt100 %s top -i 0.3 %d; echo status $?; sleep 20" %
         (TOOL, p.pid))
    ok(shows(r"^ +SIZE .*OVERFLOWS") and shows(r"^ +192 ") and
       shows("^q quit"), "top: classes, at 80x24, without colour",
       tmux("capture-pane", "-p"))
    tmux("send-keys", "u")
    ok(shows(r"^ +CPU +CACHED") and shows(r"^ +\d+ +[\d.]+ .?i?B "),
       "top: by CPU", tmux("capture-pane", "-p"))
    tmux("send-keys", ">", "r")
    ok(shows("sorted by OBJECTS, reversed"), "top: sorted by another column")
    tmux("send-keys", "a")
    ok(shows(r"^ +ARENA"), "top: by arena")
    tmux("send-keys", "n")
    ok(shows(r"^ +NODE +HOMES"), "top: by node")
    tmux("resize-window", "-x", "50", "-y", "10")
    ok(wait_for(lambda: tmux("capture-pane", "-p").splitlines()[9:10] and
                tmux("capture-pane", "-p").splitlines()[9].startswith(
                    "q quit")), "top: resized", tmux("capture-pane", "-p"))
    tmux("send-keys", "q")
    ok(shows("status 0"), "top: quit", tmux("capture-pane", "-p"))
    tmux("kill-server")
else:
    skip("top in a terminal", "no tmux, or no ncurses")
f = parsed(run("bleed", "--json", p.pid)) or {}
ok("bleeds" in f and "cpus" in f, "bleed as JSON", f)
good("bleed in words", run("bleed", p.pid), "bleed")
good("why of it", run("why", p.pid), "resident, of which")
stop(p)

# One of many threads
p = start("threads", number=60)
good("many threads: stats", run("stats", p.pid), "CPUs with caches")
good("many threads: bleed", run("bleed", p.pid), "bleed")
good("many threads: purge", run("purge", p.pid), "given back")
stop(p)
p = start("idle", conf="control:auto,topology:4x4x64")
good("a made-up machine of 1,024 CPUs: stats", run("stats", p.pid), "homes")
good("and bleed", run("bleed", p.pid), "bleed")
stop(p)

# run
r = run("run", "-c", "dirty_decay_ms:4321", "--", TARGET, "idle", input="")
ok(r.status == 0 and r.out.startswith("ready"), "run", r)
p = subprocess.Popen([TOOL, "run", "-c", "dirty_decay_ms:4321", TARGET, "idle"],
                     stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                     env=dict(os.environ, EDDY_SO=SO))
p.stdout.readline()
ok(run("get", p.pid, "opt.dirty_decay_ms").out == "4321\n",
   "run: with the options, and a channel")
stop(p)
r = run("run", "--", "sh", "-c", "exit 7")
ok(r.status == 7, "run: the command's status", r)
bad("run: no such command: 127", run("run", "--", "no-such-command"), 127,
    "No such file")
bad("run: a fault in the options: 125", run("run", "-c", "dirty_decay:1", "--",
                                            "true"), 125, "dirty_decay")
bad("run: one in the environment", run("run", "--", "true",
    env={"MALLOC_CONF": "junk:perhaps"}), 125, "junk")
source = work + "/own.c"
with open(source, "w") as f:
    f.write("#include <stddef.h>\nvoid *malloc(size_t n)"
            "{(void)n;return NULL;}\nint main(void){return 0;}\n")
cc = os.environ.get("CC", "cc").split()
if subprocess.run(cc + ["-fno-builtin", "-rdynamic", "-o", work + "/own",
                        source], capture_output=True,
                  check=False).returncode == 0:
    bad("run: a program with its own malloc", run("run", "--", work + "/own"),
        125, "its own malloc")
else:
    skip("run: a program with its own malloc", "no compiler")
with open(source, "w") as f:
    f.write("int main(void){return 0;}\n")
if subprocess.run(cc + ["-static", "-o", work + "/static", source],
                  capture_output=True, check=False).returncode == 0:
    bad("run: a static program", run("run", "--", work + "/static"), 125,
        "is static")
else:
    skip("run: a static program", "no static libc")
if os.getuid() == 0:
    shutil.copy(TARGET, work + "/setuid")
    os.chown(work + "/setuid", 1, 1)
    os.chmod(work + "/setuid", 0o4755)
    bad("run: a set-id program", run("run", "--", work + "/setuid"), 125,
        "another's rights")
else:
    skip("run: a set-id program", "not root")
with open(work + "/script", "w") as f:
    f.write("#!%s/static\n" % work)
os.chmod(work + "/script", 0o755)
if os.path.exists(work + "/static"):
    bad("run: a script of one", run("run", "--", work + "/script"), 125,
        "is static")
else:
    skip("run: a script of one", "no static libc")
bad("run: no library", run("run", "-l", "/nowhere.so", "--", "true"), 125,
    "/nowhere.so: No such file")
bad("run: a library without malloc", run("run", "-l", TARGET, "--", "true"),
    125, "no malloc to preload")

# Containers: seen from outside, by the number that the process has there
shutil.copy(TARGET, work + "/target")
shutil.copy(SO, work + "/lib.so")
os.chmod(work, 0o777)
inside = ("mount -t tmpfs none /dev/shm; exec env LD_PRELOAD=%s/lib.so "
          "EDDY_CONF=control:auto %s/target idle" % (work, work))


def child_of(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
        return int((f.read().split() or ["0"])[0])


for name, user, flags in (
        ("a container of root's", 0, ["-p", "-f", "-m", "-n"]),
        ("one with users of its own", 0, ["-U", "-r", "-p", "-f", "-m", "-n"]),
        ("one of another user's", 65534,
         ["-U", "-r", "-p", "-f", "-m", "-n"])):
    if os.getuid() != 0 or subprocess.run(
            ["unshare"] + flags + ["true"], user=user, capture_output=True,
            check=False).returncode != 0:
        skip(name, "cannot make one")
        continue
    p = subprocess.Popen(["unshare"] + flags + ["sh", "-c", inside],
                         user=user, stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    said = p.stdout.readline()
    pid = child_of(p.pid)
    r = run("get", pid, "opt.control")
    ok(said == b"ready 1\n" and r.status == 0 and r.out == "auto\n", name,
       said, r)
    stop(p)

# A server under load
if shutil.which("redis-server") and shutil.which("redis-benchmark"):
    sock = work + "/redis.sock"
    p = subprocess.Popen([TOOL, "run", "--", "redis-server", "--port", "0",
                          "--unixsocket", sock, "--save", ""],
                         stdout=subprocess.DEVNULL, stdin=subprocess.PIPE,
                         env=dict(os.environ, EDDY_SO=SO), cwd=work)
    wait_for(lambda: os.path.exists(sock), 20)
    load = subprocess.Popen(["redis-benchmark", "-s", sock, "-q", "-n",
                             "10000000", "-d", "500", "-r", "20000", "-t",
                             "set,lpush"], stdout=subprocess.DEVNULL)
    time.sleep(1)
    for command in ("stats", "why", "bleed", "purge", "idle", "doctor"):
        r = run(command, p.pid)
        ok(r.status in (0, 1 if command == "doctor" else 0),
           "redis under load: " + command, r)
    began = time.monotonic()
    for _ in range(20):
        run("stats", p.pid)
    diag("redis under load: stats in %.1f ms" %
         ((time.monotonic() - began) * 50))
    r = run("freeze", p.pid)
    ok(r.status == 0 and run("thaw", p.pid).status == 0,
       "redis under load: freeze, thaw", r)
    r = run("get", p.pid, "stats.allocated")
    ok(r.status == 0 and int(r.out) > 1000000, "redis under load: get", r)
    r = subprocess.run(["redis-cli", "-s", sock, "ping"], capture_output=True,
                       text=True, check=False)
    ok(load.poll() is None and r.stdout == "PONG\n", "and it goes on", r.stdout)
    load.kill()
    load.wait()
    p.terminate()
    stop(p)
else:
    skip("redis under load", "no redis-server")

# Completion
comp = BUILD + "/tools/eddyctl.bash"
if not os.path.exists(comp):
    comp = os.path.dirname(TOOL) + "/gen/tools/eddyctl.bash"


def complete(line):
    words = line.split(" ")
    script = ("source %s; COMP_WORDS=(%s); COMP_CWORD=%d; _eddyctl; "
              "echo \"${COMPREPLY[@]}\"" %
              (comp, " ".join("'%s'" % w for w in words), len(words) - 1))
    return subprocess.run(["bash", "-c", script], capture_output=True,
                          text=True, check=False).stdout.split()


if shutil.which("bash"):
    ok(complete("eddyctl ver") == ["verify-return"], "bash: a command")
    ok("arena.0.dirty_decay_ms" in complete("eddyctl set 1 arena.0.d"),
       "bash: a name to set")
    ok("arena.0.purge" not in complete("eddyctl get 1 arena.0.p") and
       "arena.0.purge" in complete("eddyctl call 1 arena.0.p"),
       "bash: actions are called")
    ok(complete("eddyctl run -c dirty_d") == ["dirty_decay_ms:"],
       "bash: an option", complete("eddyctl run -c dirty_d"))
else:
    skip("bash completion", "no bash")
zsh = os.path.dirname(comp) + "/_eddyctl"
if shutil.which("zsh"):
    r = subprocess.run(["zsh", "-n", zsh], capture_output=True, text=True,
                       check=False)
    ok(r.returncode == 0 and "verify-return" in open(zsh).read(),
       "zsh: its completion parses", r.stderr)
else:
    skip("zsh: its completion parses", "no zsh")
end()
