# SPDX-License-Identifier: BSD-2-Clause
"""malloc_stats_print as tools read it, every mix of letters, in this process.

Readers of the kind that jemalloc's users have, in our own words: a strict
parser of JSON, a reader of what bins waste, one that cuts the text at the first
arena, one that loads all into rows.
"""
import ctypes
import itertools
import json
import os
import subprocess
import sys

POINTS = 0
FAILED = 0
LIB = ctypes.CDLL(None)
CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)


def ok(held, what, why=""):
    global POINTS, FAILED
    POINTS += 1
    FAILED += not held
    print(("ok" if held else "not ok") + f" {POINTS} - {what}")
    if not held:
        print(f"# {why}")


def report(letters):
    """The text, and the longest piece it came in."""
    pieces = []
    LIB.malloc_stats_print(CALLBACK(lambda _, s: pieces.append(s)), None,
                           letters.encode())
    return b"".join(pieces).decode("ascii"), max(map(len, pieces))


def no_duplicates(pairs):
    d = dict(pairs)
    if len(d) != len(pairs):
        raise ValueError("a key twice: " + ", ".join(k for k, _ in pairs))
    return d


def no_constant(name):
    raise ValueError(name)


def load(letters):
    text, _ = report("J" + letters)
    if text.count("\n") != 1 or not text.endswith("\n") or "  " in text:
        raise ValueError("not one compact line")
    return json.loads(text, object_pairs_hook=no_duplicates,
                      parse_constant=no_constant)


def ctl(name, kind=ctypes.c_size_t):
    v = kind()
    n = ctypes.c_size_t(ctypes.sizeof(v))
    if LIB.mallctl(name.encode(), ctypes.byref(v), ctypes.byref(n), None, 0):
        raise ValueError(name)
    return v.value


# ----------------------------------------------------------------------
# The structure

COUNTERS = {"num_ops", "num_wait", "num_spin_acq", "num_owner_switch",
            "total_wait_time", "max_wait_time", "max_num_thds"}
GLOBAL = {"background_thread", "max_per_bg_thd", "ctl", "prof",
          "prof_thds_data", "prof_dump", "prof_recent_alloc",
          "prof_recent_dump", "prof_stats"}
ARENA = {"large", "extent_avail", "extents_dirty", "extents_muzzy",
         "extents_retained", "extents_pinned", "decay_dirty", "decay_muzzy",
         "base", "tcache_list", "hpa_shard", "hpa_shard_grow", "hpa_sec"}
PART = {"allocated", "nmalloc", "ndalloc", "nrequests", "nfills", "nflushes"}
ARENA_KEYS = {
    "nthreads", "uptime_ns", "dss", "dirty_decay_ms", "muzzy_decay_ms",
    "pactive", "pdirty", "pmuzzy", "dirty_npurge", "dirty_nmadvise",
    "dirty_purged", "muzzy_npurge", "muzzy_nmadvise", "muzzy_purged", "small",
    "large", "mapped", "retained", "pinned", "base", "internal",
    "metadata_edata", "metadata_rtree", "metadata_thp", "tcache_bytes",
    "tcache_stashed_bytes", "resident", "abandoned_vm", "extent_avail"}
BIN = {"nmalloc", "ndalloc", "curregs", "nrequests", "nfills", "nflushes",
       "nreslabs", "curslabs", "nonfull_slabs"}
EXTENT = {"ndirty", "nmuzzy", "nretained", "npinned", "dirty_bytes",
          "muzzy_bytes", "retained_bytes", "pinned_bytes"}
SLABS = {a + b for a in ("npageslabs", "nactive", "ndirty")
         for b in ("_huge", "_nonhuge")} | {"nretained_nonhuge"}
STATS = {"allocated", "active", "metadata", "metadata_edata",
         "metadata_rtree", "metadata_thp", "resident", "mapped", "retained",
         "pinned", "zero_reallocs", "background_thread"}


def same(keys, want, where):
    if set(keys) != want:
        raise ValueError(f"{where}: {set(keys) ^ want}")


def check_mutexes(m, names, where):
    same(m, names, where)
    for name, counters in m.items():
        same(counters, COUNTERS, f"{where} {name}")
        if any(counters.values()):
            raise ValueError(f"{where} {name} has waited")


def check_arena(a, key, letters, sizes):
    want = set(ARENA_KEYS)
    if key not in ("merged", "destroyed"):
        want.add("name")
    for letter, part in (("x", "mutexes"), ("b", "bins"), ("l", "lextents"),
                         ("e", "extents"), ("h", "hpa_shard")):
        if letter not in letters:
            want.add(part)
    same(a, want, key)
    same(a["small"], PART, key)
    same(a["large"], PART, key)
    if "x" not in letters:
        check_mutexes(a["mutexes"], ARENA, key)
    if "b" not in letters:
        if len(a["bins"]) != sizes["nbins"]:
            raise ValueError("bins")
        for b in a["bins"]:
            same(b, BIN if "x" in letters else BIN | {"mutex"}, key + " bin")
            if "x" not in letters:
                same(b["mutex"], COUNTERS, "mutex of a bin")
    if "l" not in letters:
        if len(a["lextents"]) != sizes["nlextents"]:
            raise ValueError("lextents")
        for e in a["lextents"]:
            same(e, {"curlextents"}, key)
    if "e" not in letters:
        for e in a["extents"]:
            same(e, EXTENT, key)
    if "h" not in letters:
        for s in ("slabs", "full_slabs", "empty_slabs"):
            same(a["hpa_shard"][s], SLABS, s)
        for s in a["hpa_shard"]["nonfull_slabs"]:
            same(s, SLABS, "nonfull_slabs")


def check(letters, sizes):
    j = load(letters)
    same(j, {"jemalloc", "eddy"}, "top")
    e = j["jemalloc"]
    want = {"stats"}
    if "g" not in letters:
        want |= {"version", "config", "system", "opt", "arenas"}
        if e["config"]["prof"]:
            want.add("prof")
        if e["arenas"]["nbins"] != len(e["arenas"]["bin"]):
            raise ValueError("arenas.bin")
        if e["arenas"]["nlextents"] != len(e["arenas"]["lextent"]):
            raise ValueError("arenas.lextent")
        same(e["arenas"]["bin"][0], {"size", "nregs", "slab_size", "nshards"},
             "arenas.bin")
    if not {"m", "d", "a"} <= set(letters):
        want.add("stats.arenas")
    same(e, want, "jemalloc")
    same(e["stats"], STATS if "x" in letters else STATS | {"mutexes"}, "stats")
    if "x" not in letters:
        check_mutexes(e["stats"]["mutexes"], GLOBAL, "stats")
    arenas = e.get("stats.arenas", {})
    for key, a in arenas.items():
        check_arena(a, key, letters, sizes)
    alone = sum(key.isdigit() for key in arenas) == 1
    if ("m" not in letters and not alone) != ("merged" in arenas):
        raise ValueError("merged")
    if ("a" not in letters) != ("0" in arenas):
        raise ValueError("single arenas")


def test_mixes():
    sizes = {"nbins": ctl("arenas.nbins", ctypes.c_uint),
             "nlextents": ctl("arenas.nlextents", ctypes.c_uint)}
    wrong = ""
    n = 0
    for k in range(10) if CONFS else (0, 1, 9):
        for mix in itertools.combinations("gmdablxeh", k):
            letters = "".join(mix)
            try:
                check(letters, sizes)
            except (ValueError, KeyError, IndexError) as e:
                wrong = wrong or f"J{letters}: {e!r}"
            n += 1
    ok(n == (512 if CONFS else 11) and not wrong,
       f"{n} mixes of letters are strict JSON of jemalloc's structure", wrong)
    for letters in ("?", "Z~", "gqzQ", "pn", "rfp"):
        try:
            load(letters)
        except ValueError as e:
            wrong = f"J{letters}: {e!r}"
    ok(not wrong, "unknown letters are ignored, eddy's own accepted", wrong)
    _, longest = report("J")
    ok(longest <= 65536, "pieces are bounded", longest)


# ----------------------------------------------------------------------
# Readers

def waste(j):
    """Bytes of bins that nobody holds, the caches' share apart."""
    root = j["jemalloc"]
    merged = root["stats.arenas"]["merged"]
    total = 0
    for i in range(root["arenas"]["nbins"]):
        size = root["arenas"]["bin"][i]
        b = merged["bins"][i]
        room = b["curslabs"] * size["nregs"]
        if not 0 <= size["slab_size"] - size["nregs"] * size["size"] < 4096:
            raise ValueError("a slab is not its regions")
        if b["curregs"] > room or b["nonfull_slabs"] > b["curslabs"]:
            raise ValueError(f"bin {i}")
        total += (room - b["curregs"]) * size["size"]
    return total, merged["tcache_bytes"], root["stats"]["allocated"]


def test_waste():
    malloc = LIB.malloc
    malloc.restype = ctypes.c_void_p
    free = LIB.free
    free.argtypes = [ctypes.c_void_p]
    n = 20000
    held = [malloc(ctypes.c_size_t(1000)) for _ in range(n)]
    full, _, allocated = waste(load("a"))
    for p in held[::2]:
        free(p)
    half, cached, less = waste(load("a"))
    gone = n // 2 * 1024
    ok(half + cached - full > gone * 0.95 and
       abs(allocated - less - gone) < gone * 0.05,
       "a reader of bins finds what is wasted",
       f"{full}, {half}, cached {cached}, {allocated}, {less}")
    fill = {c["size"]: c["slabs"] for c in load("")["eddy"]["occupancy"]}
    slabs = fill[1024]
    nregs = next(b["nregs"] for b in load("")["jemalloc"]["arenas"]["bin"]
                 if b["size"] == 1024)
    ok(sum(slabs) >= n / 2 / nregs and
       sum(slabs[4:6]) > 0.7 * sum(slabs) and len(slabs) == 11,
       "slabs of which every other object is free are half full", slabs)
    for p in held[1::2]:
        free(p)


def test_rows():
    """Everything as rows of path and number or word."""
    rows = []

    def add(path, v):
        if isinstance(v, dict):
            for k, x in v.items():
                add(f"{path}.{k}", x)
        elif isinstance(v, list):
            for i, x in enumerate(v):
                add(f"{path}.{i}", x)
        else:
            rows.append((path, v))

    add("", load(""))
    ok(len(rows) > 3000 and all(isinstance(v, (int, str, bool, float)) and
                                v is not None for _, v in rows),
       "all is a number, a word, true or false", len(rows))
    ok(all(v >= 0 or "ms" in p or "opt." in p or "lg_" in p
           for p, v in rows if isinstance(v, (int, float))),
       "no number but a setting is below zero")


def test_text():
    text, _ = report("")
    lines = text.split("\n")
    order = [
        "___ Begin jemalloc statistics ___", 'Version: "',
        "Build-time option settings", "System configuration",
        "Run-time option settings", "Arenas: ", "Quantum size: ",
        "Page size: ", "Maximum thread-cached size class: ",
        "Number of bin size classes: ",
        "Number of thread-cache bin size classes: ",
        "Number of large size classes: ", "Allocated: ",
        "Count of realloc(non-null-ptr, 0) calls: ", "Background threads: ",
        "background_thread ", "arenas[0]:", "name: ", "assigned threads: ",
        "uptime: ", "dss allocation precedence: ", "decaying:", "   dirty:",
        "   muzzy:", "small:", "large:", "total:", "active:", "mapped:",
        "retained:", "resident:", "large ", "bins: ", "large: ", "extents: ",
        "--- End jemalloc statistics ---", "___ eddy ",
        "___ end of eddy statistics ___"]
    at = 0
    missing = ""
    for word in order:
        while at < len(lines) and not lines[at].startswith(word):
            at += 1
        if at == len(lines):
            missing = word
            break
    ok(not missing, "the text has its lines in order", missing)
    cut = text[:text.index("arenas[")]
    totals = cut[cut.index("Allocated: "):].split("\n")[0]
    numbers = [int(w.rstrip(",)")) for w in totals.split() if w[0].isdigit()]
    ok(len(numbers) == 10 and 0 < numbers[0] <= numbers[1] <= numbers[6],
       "cut at the first arena it still has the totals", totals)
    quiet, _ = report("gmdablxeh")
    ok("arenas[" not in quiet and "bins:" not in quiet and
       "opt." not in quiet[:quiet.index("___ eddy")] and
       "Allocated: " in quiet, "letters leave out their parts", quiet[:300])
    merged, _ = report("ga")
    ok("Merged arenas stats:" in merged and "arenas[0]" not in merged,
       "without single arenas there is their sum")


def test_names():
    j = load("")["jemalloc"]
    a = j["stats.arenas"]["0"]
    same_as = [(j["stats"][k], "stats." + k)
               for k in ("active", "metadata", "zero_reallocs")]
    same_as += [(a["bins"][k]["curslabs"], f"stats.arenas.0.bins.{k}.curslabs")
                for k in range(ctl("arenas.nbins", ctypes.c_uint))]
    same_as += [(j["arenas"]["bin"][3]["size"], "arenas.bin.3.size")]
    wrong = [n for v, n in same_as if ctl(n) != v]
    ok(not wrong, "JSON and mallctl tell the same", wrong)


CONFS = ["prof:true,lg_prof_sample:14,prof_stats:true", "topology:2x1x1",
         "rseq:false", "check:true", "background_thread:true",
         "muzzy_decay_ms:1000", "slab_sizes:1-4096:4"]
if "EDDY_REPORT" in os.environ:
    CONFS = []


def run_under(conf):
    env = dict(os.environ, EDDY_CONF=conf, EDDY_REPORT="1")
    r = subprocess.run([sys.executable, __file__], env=env, check=False,
                       capture_output=True, text=True)
    bad = [s for s in r.stdout.split("\n") if not s.startswith("ok")]
    ok(r.returncode == 0, f"all of that with {conf}", bad)


if not hasattr(LIB, "mallctl"):
    print("1..0 # SKIP no library is preloaded")
    sys.exit(77)
test_mixes()
test_waste()
test_rows()
test_text()
test_names()
for conf in CONFS:
    run_under(conf)
print(f"1..{POINTS}")
sys.exit(FAILED != 0)
