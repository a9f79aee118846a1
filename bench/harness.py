# SPDX-License-Identifier: BSD-2-Clause
"""What the scripts of bench share: which allocators there are, how a workload
runs under one of them, statistics, tables and plots."""

import glob
import json
import os
import platform
import re
import signal
import statistics
import subprocess
import sys
import threading
import time
import typing

HERE = os.path.dirname(os.path.abspath(__file__))
# name, Debian package, file name
PEERS = [
    ("jemalloc", "libjemalloc2", "libjemalloc.so.2"),
    ("mimalloc", "libmimalloc2.0", "libmimalloc.so.2"),
    ("tcmalloc", "libtcmalloc-minimal4", "libtcmalloc_minimal.so.4"),
]
PLACES = ["/usr/lib/*/", "/usr/lib/", "/usr/lib64/", "/usr/local/lib/"]
TIMEOUT_S = 180
GAP_S = 0.05
LONG = ("walk", "resident")
SLICED = LONG + ("latency",)  # a limit of real-time work would show in it
NOISE = 0.08  # share of the CPUs that others may use during a run


class Allocator(typing.NamedTuple):
    name: str
    path: typing.Optional[str]  # None: the C library's own
    env: dict = {}              # what it is told beside


def die(text):
    print("%s: %s" % (os.path.basename(sys.argv[0]), text), file=sys.stderr)
    sys.exit(2)


def tell(text):
    print("%s: %s" % (os.path.basename(sys.argv[0]), text), file=sys.stderr)


# ---------------------------------------------------------------------------
# Options

def add_options(p):
    """Those that every script has."""
    p.add_argument("library", nargs="*", help="further allocators (.so)")
    p.add_argument("--eddy", metavar="PATH", help="libeddy.so of the build")
    p.add_argument("--program", metavar="PATH", help="the built eddy_bench")
    p.add_argument("--peer", metavar="NAME=LIB.so", action="append",
                   default=[], help="a further allocator under this name")
    p.add_argument("--just", metavar="NAMES", help="allocators, by comma")


def add_run_options(p):
    """Those of scripts that compare times."""
    p.add_argument("--cpus", metavar="A,B", help="the two CPUs to use")
    p.add_argument("--priority", action="store_true",
                   help="run before all other work on the CPUs (as root)")
    p.add_argument("--nice", action="store_true",
                   help="run at the best nice value, also of the session (as "
                   "root): nearly before all other work, and starves none")
    p.add_argument("--retries", type=float, default=0.2, metavar="SHARE",
                   help="noisy runs repeated, as a share of all (0.2)")


def add_variants(p):
    """Those of scripts that set what allocators do."""
    p.add_argument("--variant", metavar="NAME=OF:OPTIONS", action="append",
                   default=[], help="allocator OF once more under this name, "
                   "with these options behind the others (as MALLOC_CONF)")
    p.add_argument("--check", metavar="NAMES", nargs="?", const="eddy",
                   help="exit 1 if one of these allocators (eddy) misses")


def find_program(opt):
    if not opt.program:
        for path in ["bench/eddy_bench", os.path.join(HERE, "eddy_bench")]:
            if os.access(path, os.X_OK):
                opt.program = path
                break
    if not opt.program or not os.access(opt.program, os.X_OK):
        die("eddy_bench is not built (make bench/eddy_bench, or --program)")
    opt.program = os.path.abspath(opt.program)


def find_cpus(opt):
    if not opt.cpus:
        opt.cpus = ",".join(str(c) for c in sorted(os.sched_getaffinity(0))[:2])


# ---------------------------------------------------------------------------
# Allocators

def find_library(package, file):
    """The library of a Debian package, or of the usual places."""
    try:
        out = subprocess.run(["dpkg", "-L", package], text=True,
                             capture_output=True, check=False).stdout
    except OSError:
        out = ""
    for path in out.split():
        if os.path.basename(path) == file and os.path.exists(path):
            return path
    for place in PLACES:
        for path in sorted(glob.glob(place + file)):
            return path
    return None


def all_allocators(opt):
    found = [Allocator("glibc", None)]
    for name, package, file in PEERS:
        path = find_library(package, file)
        if path:
            found.append(Allocator(name, path))
        else:
            tell("%s is missing (apt-get install %s)" % (name, package))
    if opt.eddy:
        found.append(Allocator("eddy", opt.eddy))
    else:
        tell("no --eddy given: peers only")
    for path in opt.library:
        name = re.sub(r"^lib|\.so.*$", "", os.path.basename(path))
        while name in [f.name for f in found]:
            name += "+"
        found.append(Allocator(name, path))
    for peer in opt.peer:
        name, _, path = peer.partition("=")
        if not name or not path or name in [f.name for f in found]:
            die("--peer: a new name, = and a library wanted: " + peer)
        found.append(Allocator(name, path))
    for a in found:
        if a.path and not os.path.exists(a.path):
            die("%s: no such library" % a.path)
    return [a._replace(path=os.path.abspath(a.path)) if a.path else a
            for a in found]


def find_allocators(opt, just=None, options="", variants=()):
    """Those asked for. options: what each is told by MALLOC_CONF; variants:
    NAME=OF:OPTIONS each, before those of the command line."""
    found = [a._replace(env={"MALLOC_CONF": options} if options else {})
             for a in all_allocators(opt)]
    for variant in list(variants) + list(getattr(opt, "variant", [])):
        name, _, rest = variant.partition("=")
        of, _, more = rest.partition(":")
        base = next((a for a in found if a.name == of), None)
        if base is None and variant in variants:
            continue
        if base is None or not name or name in [a.name for a in found]:
            die("--variant: a new name, =, an allocator, : and options wanted: "
                + variant)
        conf = ",".join(c for c in (base.env.get("MALLOC_CONF"), more) if c)
        found.insert(found.index(base) + 1,
                     base._replace(name=name, env={"MALLOC_CONF": conf}))
        if just and variant in getattr(opt, "variant", []):
            just = just + "," + name
    just = opt.just or just
    found = [a for a in found if not just or a.name in just.split(",")]
    if not found:
        die("no allocator of that name")
    return found


def judged(opt, allocators):
    """Names that --check is about; not one that is not measured."""
    if not opt.check:
        return []
    names = opt.check.split(",")
    for name in names:
        if name not in [a.name for a in allocators]:
            die("--check: %s is not measured" % name)
    return names


def clean_environment():
    env = {k: v for k, v in os.environ.items()
           if not re.match(r"LD_|MALLOC_|EDDY_|MIMALLOC_|TCMALLOC_|JE_|GLIBC_",
                           k)}
    # or it writes a line for each block of a gigabyte
    env["TCMALLOC_LARGE_ALLOC_REPORT_THRESHOLD"] = str(1 << 50)
    return env


def versions(allocators):
    ret = {}
    for name, package, _ in PEERS + [("glibc", "libc6", "")]:
        if name not in [a.name for a in allocators]:
            continue
        try:
            out = subprocess.run(
                ["dpkg-query", "-W", "-f", "${Version}", package], text=True,
                capture_output=True, check=False).stdout
        except OSError:
            out = ""
        ret[name] = out
    return ret


# ---------------------------------------------------------------------------
# The machine

def first_line(path, pattern):
    try:
        for line in open(path, encoding="utf-8"):
            m = re.search(pattern, line)
            if m:
                return m.group(1).strip()
    except OSError:
        pass
    return ""


def machine():
    return {
        "cpu": first_line("/proc/cpuinfo", r"model name\s*:\s*(.*)"),
        "n_cpus": os.cpu_count(),
        "kernel": platform.release(),
        "arch": platform.machine(),
        "libc": " ".join(platform.libc_ver()),
        "huge_pages": first_line("/sys/kernel/mm/transparent_hugepage/enabled",
                                 r"\[(\w+)\]"),
    }


def about(m):
    return ("%s, %s CPUs, Linux %s, %s; huge pages: %s"
            % (m["cpu"], m["n_cpus"], m["kernel"], m["libc"],
               m["huge_pages"]))


def busy_s(cpus):
    """Seconds that the CPUs have been at work since they started."""
    tick = os.sysconf("SC_CLK_TCK")
    total = 0
    for line in open("/proc/stat", encoding="ascii"):
        f = line.split()
        if f and f[0] in cpus:
            v = [int(x) for x in f[1:9]]
            total += sum(v) - v[3] - v[4]  # less idle and waiting for disks
    return total / tick


# ---------------------------------------------------------------------------
# Runs that compare times

def run_once(opt, row, a, cpus):
    """One run: the figures, the share of the CPUs others used; or an error."""
    args = {x.split("=")[0]: x for x in row["args"]}
    if opt.quick:
        args.update({x.split("=")[0]: x for x in row["quick"]})
    cmd = [opt.program] + (["--preload", a.path] if a.path else [])
    if opt.nice:
        cmd += ["--priority", "nice"]
    elif opt.priority:
        # short runs of few threads as real-time, what would keep others off
        # for seconds, or needs the scheduler's slices, at the best nice value
        short = row["threads"] <= 2 and row["workload"] not in SLICED
        cmd += ["--priority", "fifo" if short else "nice"]
        # others get their share here, or the kernel gives it during the run
        time.sleep(GAP_S)
    cmd += ["--cpus", opt.cpus, row["workload"]] + list(args.values())
    before, t0 = busy_s(cpus), time.monotonic()
    u0 = os.times()
    p = subprocess.Popen(cmd, env={**clean_environment(), **a.env}, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         start_new_session=True)
    try:
        out, err = p.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGKILL)
        p.communicate()
        return None, 0, "no end after %d s" % TIMEOUT_S
    u1, took = os.times(), time.monotonic() - t0
    if p.returncode != 0:
        return None, 0, err.strip().replace("\n", "; ")[:200]
    own = (u1.children_user - u0.children_user + u1.children_system -
           u0.children_system)
    others = busy_s(cpus) - before - own
    return json.loads(out), max(0.0, others / (took * len(cpus))), None


def measure(opt, rows, allocators, results):
    """All rounds; fills results[workload][allocator] with runs. Allocators
    take turns within each row and round, and the order turns too."""
    cpus = ["cpu" + c for c in opt.cpus.split(",")]
    want = {r["name"]: 1 if opt.quick and r["workload"] in LONG
            else min(opt.rounds, r["rounds"]) for r in rows}
    n_all = sum(want.values()) * len(allocators)
    budget = int(n_all * opt.retries)
    n_done = 0
    start = time.monotonic()
    errors = []
    for round_no in range(opt.rounds):
        for row in rows:
            if round_no >= want[row["name"]]:
                continue
            turn = round_no % len(allocators)
            for a in allocators[turn:] + allocators[:turn]:
                run, noise, error = run_once(opt, row, a, cpus)
                while run and noise > NOISE and budget > 0:
                    budget -= 1
                    again, less, error = run_once(opt, row, a, cpus)
                    if again and less < noise:
                        run, noise = again, less
                n_done += 1
                if error:
                    errors.append("%s under %s: %s" % (row["name"], a.name,
                                                       error))
                    print(file=sys.stderr)
                    tell(errors[-1])
                    continue
                run["noise"] = round(noise, 3)
                results.setdefault(row["name"], {}).setdefault(
                    a.name, []).append(run)
            progress("%3d %% %4d s  %-20s" % (
                100 * n_done // n_all, time.monotonic() - start, row["name"]))
    progress("")
    return errors, time.monotonic() - start


def progress(text):
    if sys.stderr.isatty():
        print("\r%-40s\r" % text, end="", file=sys.stderr, flush=True)


# ---------------------------------------------------------------------------
# Workloads that are led step by step

class Child:
    """A workload whose process is ours to look at: no sampler beside it.

    It waits at each step that it names until it is told to go on."""

    def __init__(self, opt, a, args, timeout_s, before_exec=None):
        env = {**clean_environment(), **a.env, "EDDY_BENCH_CHILD": "1",
               "EDDY_BENCH_STEPS": "1"}
        if a.path:
            env.update(LD_PRELOAD=a.path, EDDY_BENCH_PRELOAD=a.path)
        self.name = a.name
        self.p = subprocess.Popen(
            [opt.program] + args, env=env, text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, preexec_fn=before_exec)
        self.pid = self.p.pid
        self.timer = threading.Timer(timeout_s, self.p.kill)
        self.timer.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.timer.cancel()
        self.p.kill()
        self.p.wait()

    def wait(self, step):
        """Returns the figures that the child tells at this step."""
        f = self.p.stdout.readline().split()
        if not f or f[0] != step:
            die("%s: the workload ended before %s" % (self.name, step))
        return [int(x) for x in f[1:]]

    def go(self):
        self.p.stdin.write("\n")
        self.p.stdin.flush()

    def result(self):
        """What the workload tells at its end."""
        text = self.p.stdout.read()
        if self.p.wait() != 0:
            die("%s: the workload failed" % self.name)
        return json.loads("{" + text + "}")


# ---------------------------------------------------------------------------
# Results

def quartiles(v):
    v = sorted(v)
    if len(v) < 3:
        return v[0], statistics.median(v), v[-1]
    q = statistics.quantiles(v, n=4, method="inclusive")
    return q[0], q[1], q[2]


def table_head(columns):
    return ["| " + " | ".join(columns) + " |",
            "|---" + "|--:" * (len(columns) - 1) + "|"]


def table_row(cells):
    return "| " + " | ".join(cells) + " |"


def write_results(out, name, data, text):
    """OUT/NAME.json and .md; prints the text."""
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, name + ".json"), "w", encoding="utf-8") as f:
        json.dump(data, f, indent=1)
    with open(os.path.join(out, name + ".md"), "w", encoding="utf-8") as f:
        f.write(text)
    print(text)


def verdict(missed):
    """The exit status, and why."""
    missed = list(missed)
    for text in missed:
        print("MISSED " + text)
    return 1 if missed else 0


def draw(out, name, script):
    """Writes OUT/NAME.gp and runs it there; says what came of it."""
    with open(os.path.join(out, name + ".gp"), "w", encoding="ascii") as f:
        f.write(script)
    try:
        p = subprocess.run(["gnuplot", name + ".gp"], cwd=out, text=True,
                           capture_output=True, check=False)
    except OSError:
        return "no plot: gnuplot is missing (apt-get install gnuplot-nox)"
    if p.returncode != 0:
        return "no plot: gnuplot: " + p.stderr.strip()[-200:]
    return "plot in " + os.path.join(out, name + ".svg")


def start(main):
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
