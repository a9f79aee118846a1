# SPDX-License-Identifier: BSD-2-Clause
"""tool_channel.py - the channel of lib/ctl/control.h: who has one, who may ask,
what is answered, and what is left behind."""

import os
import signal
import socket
import stat
import subprocess
import time

from tool_lib import (PATIENCE, TARGET, ask, connect, diag, end, environment,
                      ok, page, read_all, skip, start, stop, wait_for, work)


def left_behind():
    found = []
    for d in ("/dev/shm", "/tmp", "/run", "/var/tmp"):
        try:
            found += [d + "/" + f for f in os.listdir(d)
                      if f.startswith(".eddy-control-")]
        except OSError:
            pass
    return found


before = set(left_behind())


def none_left():
    """A name that is bound and not yet removed lasts for two system calls; it
    may be another test's."""
    return wait_for(lambda: set(left_behind()) <= before)


# Answers
p = start("idle")
ok(ask(p.pid, "hello").startswith("ok\nversion "), "auto: a process answers")
ok("pid %d\n" % p.pid in ask(p.pid, "hello"), "with its own number")
got = ask(p.pid, "get eddy.version stats.allocated opt.control "
          "arena.0.dirty_decay_ms background_thread arena.0.name")
ok("stats.allocated size " in got and "opt.control string auto\n" in got and
   "background_thread bool " in got and "arena.0.name string auto_0" in got,
   "get: values with their types", got)
ok(ask(p.pid, "set arena.0.dirty_decay_ms -1") == "ok\n" and
   ask(p.pid, "get arena.0.dirty_decay_ms") ==
   "ok\narena.0.dirty_decay_ms ssize -1\n", "set: a value, below zero too")
ok(ask(p.pid, "call arena.0.purge") == "ok\n", "call: an action")
for request, err in (("get", None), ("set arena.0.dirty_decay_ms 1x", 22),
                     ("set arena.0.dirty_decay_ms", 22),
                     ("set arena.0.dirty_decay_ms -2", 14),
                     ("set stats.allocated 1", 1), ("set no.such 1", 2),
                     ("set background_thread maybe", 22),
                     ("set thread.tcache.enabled true", 1),
                     ("call stats.allocated", 1), ("call no.such", 2),
                     ("call arenas.create", 95), ("call", 22), ("odd", 38)):
    got = ask(p.pid, request)
    ok(got == "ok\n" if err is None else got.startswith("error %d " % err),
       "%s: %s" % (request, "nothing" if err is None else "error %d" % err),
       got)
got = ask(p.pid, "get no.such arena.0.purge thread.arena arenas.create")
ok(got == "ok\nno.such ! 2\narena.0.purge ! 1\nthread.arena ! 1\n"
   "arenas.create ! 95\n", "get: a reason for each name that has no value",
   got)
got = ask(p.pid, "print J")
ok(got.startswith("ok\n{") and got.rstrip().endswith("}"),
   "print: statistics, whole", got[-100:])
ok(ask(p.pid, "flows").startswith('ok\n{"eddy":{"version":"'),
   "flows: that part alone")
got = ask(p.pid, "map").splitlines()
ok(len(got) > 1 and all(len(line.split()) >= 8 for line in got[1:]) and
   sum(int(line.split()[4]) for line in got[1:]) > 100000,
   "map: a line a chunk", got[:3])
ok(ask(p.pid, "purge").startswith("ok\n") and ask(p.pid, "idle") == "ok\n" and
   ask(p.pid, "freeze") == "ok\n" and page(p.pid).words["frozen"] == 1 and
   ask(p.pid, "thaw") == "ok\n" and page(p.pid).words["frozen"] == 0,
   "purge, idle, freeze, thaw")

# The page
words = page(p.pid).words
ok(words["live"] >= 100000 and words["active"] >= words["live"] and
   words["requests"] > 20, "the page has figures", words)
age = time.clock_gettime(time.CLOCK_MONOTONIC) * 1000 - words["time"]
ok(0 <= age < 10500, "that are not old", age)
try:
    with open(page(p.pid).at, "r+b") as f:
        f.write(b"x")
    ok(False, "the page cannot be written by others")
except OSError:
    ok(True, "the page cannot be written by others")
os.kill(p.pid, signal.SIGSTOP)
wait_for(lambda: open("/proc/%d/stat" % p.pid).read().split()[2] == "T")
ok(page(p.pid).words["live"] >= 100000, "a stopped process still shows them")
s = connect(p.pid, 0.3)
s.send(b"eddy1 hello\n")
try:
    s.recv(1)
    ok(False, "and does not answer")
except socket.timeout:
    ok(True, "and does not answer")
s.close()
os.kill(p.pid, signal.SIGCONT)
ok(ask(p.pid, "hello").startswith("ok"), "until it goes on")
names = [open("/proc/%d/task/%s/comm" % (p.pid, t)).read().strip()
         for t in os.listdir("/proc/%d/task" % p.pid)]
ok(names.count("eddy_control") == 1 and len(names) == 2, "one thread, named",
   names)
stop(p)
ok(none_left(), "auto leaves no file", left_behind())

# Killed
p = start("idle")
p.kill()
p.wait()
ok(none_left(), "killed, neither", left_behind())

# No option
p = start("idle", conf=None)
ok(page(p.pid) is None and len(os.listdir("/proc/%d/task" % p.pid)) == 1,
   "without the option: no page, no thread")
stop(p)

# A path
path = work + "/sock"
p = start("idle", conf="control:" + path)
st = os.stat(path)
ok(stat.S_ISSOCK(st.st_mode) and stat.S_IMODE(st.st_mode) == 0o600,
   "a path: a socket of mode 0600", oct(st.st_mode))
s = socket.socket(socket.AF_UNIX)
s.connect(path)
s.send(b"eddy1 hello\n")
ok(b"pid %d" % p.pid in read_all(s), "that answers there")
ok(ask(p.pid, "hello").startswith("ok"), "and by the process's number")
q = start("idle", conf="control:" + path)
ok(os.stat(path).st_ino == st.st_ino and "pid %d" % q.pid in
   ask(q.pid, "hello"), "a second one leaves it alone, and is as auto")
stop(q)
ok(os.path.exists(path), "and does not remove it")
stop(p)
ok(not os.path.exists(path), "removed at exit")
p = start("idle", conf="control:" + path)
p.kill()
p.wait()
ok(os.path.exists(path), "killed: left")
p = start("idle", conf="control:" + path)
s = socket.socket(socket.AF_UNIX)
s.connect(path)
s.send(b"eddy1 hello\n")
ok(b"pid %d" % p.pid in read_all(s), "a stale one is replaced")
stop(p)
ok(os.listdir(work) == [], "nothing else is left there", os.listdir(work))
open(path, "w").close()
p = start("idle", conf="control:" + path, stderr=subprocess.PIPE)
ok(os.path.isfile(path) and ask(p.pid, "hello").startswith("ok"),
   "a file is not replaced")
stop(p)
ok(b"<eddy>: control: " in p.stderr.read(), "and the process says so")
os.unlink(path)
p = start("idle", conf="control:/nowhere/sock", stderr=subprocess.PIPE)
ok(ask(p.pid, "hello").startswith("ok"), "no such directory: as auto")
stop(p)

# fork and exec
p = start("fork")
child = p.told
ok(wait_for(lambda: page(child)) and "pid %d\n" % child in
   ask(child, "hello"), "a forked child has its own")
ok("pid %d\n" % p.pid in ask(p.pid, "hello"), "beside its parent's")
stop(p)
p = start("fork-threads")
child = p.told
ok(wait_for(lambda: page(child)) and "pid %d\n" % child in
   ask(child, "hello"), "and so has one that creates a thread")
stop(p)
path = work + "/named"
p = start("fork-exit", conf="control:" + path)
ok(os.path.exists(path), "a child that exits leaves its parent's name alone")
stop(p)
p = start("daemon", conf="control:" + path)
ok(wait_for(lambda: page(p.told)) and page(p.told).name == path and
   "pid %d\n" % p.told in ask(p.told, "hello"), "a daemon has its parent's")
stop(p)
ok(wait_for(lambda: not os.path.exists(path)), "and removes it")
p = start("exec")
time.sleep(0.5)
ok(page(p.told) is None and none_left(),
   "a child that executes leaves nothing", left_behind())
os.kill(p.told, signal.SIGKILL)
stop(p)
p = start("close")
ok(wait_for(lambda: page(p.pid), 15), "closed by the program: opened anew")
ok(ask(p.pid, "hello").startswith("ok"), "and answers")
stop(p)
p = start("main-ends")
try:
    ok(p.wait(10 * PATIENCE) == 0, "it does not keep the process alive")
except subprocess.TimeoutExpired:
    ok(False, "it does not keep the process alive")

# Late and many
p = start("idle")
time.sleep(1.3)
for _ in range(20):
    began = time.monotonic()
    s = connect(p.pid)
    time.sleep(0.3)
    try:
        s.send(b"eddy1 hello\n")
        got = read_all(s)
    except BrokenPipeError:
        got = b""
    if got or time.monotonic() - began < 0.9:
        break  # else it was we who were late
ok(got.startswith(b"ok"), "who connects has a second to ask")
held = [connect(p.pid) for _ in range(8)]
began = time.monotonic()
ok(ask(p.pid, "hello").startswith("ok"),
   "eight that say nothing keep nobody out for long")
diag("after %.2f s" % (time.monotonic() - began))
ok(all(read_all(s) == b"" for s in held), "and are cut off")
stop(p)
p = start("arenas", number=100)
ok(len(ask(p.pid, "print J")) > 300000, "a long answer is whole")
s = connect(p.pid)
s.send(b"eddy1 print J\n")
time.sleep(0.2)
ok(ask(p.pid, "hello").startswith("ok"), "who does not read keeps nobody out")
got = read_all(s)
ok(len(got) > 10000 and not got.endswith(b"\0"), "and has his answer cut short",
   len(got))
s.close()
s = connect(p.pid)
s.send(b"x" * 5000)
ok(read_all(s).startswith(b"error 90"), "a line too long is refused")
s = connect(p.pid)
s.send(b"eddy1 get a\0b\n")
ok(read_all(s).startswith(b"error 22"), "and one with a zero in it")
stop(p)

# Users
def ask_as(uid, path):
    """What a process of this user is answered."""
    r, w = os.pipe()
    child = os.fork()
    if child == 0:
        said = b""
        try:
            os.setresuid(uid, uid, uid)
            s = socket.socket(socket.AF_UNIX)
            s.connect(path)
            try:
                s.send(b"eddy1 hello\n")
            except BrokenPipeError:
                pass
            said = read_all(s)
        except OSError as e:
            said = str(e).encode()
        os.write(w, said or b"-")
        os._exit(0)
    os.close(w)
    said = os.read(r, 200)
    os.close(r)
    os.waitpid(child, 0)
    return said


if os.getuid() != 0:
    skip("another user is refused", "not root")
    skip("root is served", "not root")
else:
    os.chmod(work, 0o777)
    for file, to in ((TARGET, "target"), (os.environ["EDDY_SO"], "lib.so")):
        subprocess.run(["cp", file, work + "/" + to], check=True)
    path = work + "/nobodys"
    env = dict(environment("control:" + path), LD_PRELOAD=work + "/lib.so")
    p = subprocess.Popen([work + "/target", "idle"], user=65534, env=env,
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    p.stdout.readline()
    ok(ask_as(0, path).startswith(b"ok"), "root is served by nobody's process")
    got = ask_as(1, path)
    ok(b"Permission denied" in got, "another user cannot connect", got)
    os.chmod(path, 0o666)
    got = ask_as(1, path)
    ok(got.startswith(b"error 13"), "and where he can he is refused", got)
    got = ask_as(65534, path)
    ok(got.startswith(b"ok"), "the same user is served", got)
    stop(p)

# With another's rights: a program that has the library and the option inside
archive = os.environ.get("EDDY_A")
with open(work + "/conf.c", "w") as f:
    f.write('const char *malloc_conf = "control:auto";\n')
built = archive is not None and subprocess.run(
    os.environ.get("CC", "cc").split() +
    ["-o", work + "/secure", os.environ["EDDY_SRCDIR"] +
     "/tests/tool_target.c", work + "/conf.c", archive, "-lpthread", "-ldl"],
    capture_output=True, check=False).returncode == 0
if os.getuid() != 0 or not built:
    skip("a program with another's rights", "not root, or no archive")
    skip("the same without", "not root, or no archive")
else:
    for mode, held in ((0o4755, False), (0o755, True)):
        os.chown(work + "/secure", 1, 1)
        os.chmod(work + "/secure", mode)
        env = environment(None)
        env.pop("LD_PRELOAD")
        p = subprocess.Popen([work + "/secure", "idle"], env=env,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        p.stdout.readline()
        ok((page(p.pid) is not None) == held and
           len(os.listdir("/proc/%d/task" % p.pid)) == 1 + held,
           "a program with another's rights has no channel" if not held else
           "the same without does")
        stop(p)

# Read-only
if os.getuid() != 0 or subprocess.run(
        ["unshare", "-m", "true"], check=False).returncode != 0:
    skip("nowhere to write", "no mount namespace")
else:
    script = ("mount -o bind,ro / / && for d in /dev/shm /tmp /run /var/tmp; "
              "do mount -t tmpfs -o ro none $d; done; cd /; exec \"$@\"")
    q = None
    try:
        # The library and the target must be seen inside.
        copy = os.path.realpath("/var/lib")
        lib = copy + "/eddy-tool-%d.so" % os.getpid()
        bin_ = copy + "/eddy-tool-%d" % os.getpid()
        subprocess.run(["cp", os.environ["EDDY_SO"], lib], check=True)
        subprocess.run(["cp", TARGET, bin_], check=True)
        env = environment("control:auto")
        env.pop("LD_PRELOAD")
        q = subprocess.Popen(
            ["unshare", "-m", "sh", "-c", script, "sh", "env",
             "LD_PRELOAD=" + lib, bin_, "idle"], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, env=env)
        q.stdout.readline()
        where = page(q.pid)
        ok(where is not None and where.socket == -1,
           "nowhere to write: an abstract name", where and where.name)
        ok(where is not None and ask(q.pid, "hello").startswith("ok"),
           "that answers")
    finally:
        if q is not None:
            stop(q)
        for f in (lib, bin_):
            if os.path.exists(f):
                os.unlink(f)

ok(none_left(), "no file is left at all", left_behind())
end()
