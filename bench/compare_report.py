# SPDX-License-Identifier: BSD-2-Clause
"""Statistics, tables and plots of bench/compare."""

import math
import os
import statistics
import sys

import compare_flow
import compare_zero
import harness

PEERS = ["glibc", "jemalloc", "mimalloc", "tcmalloc"]
LEAN = ["jemalloc", "mimalloc", "tcmalloc"]  # whose peak memory is the mark
FRONT = ("pair_", "burst_", "mixed")
SLACK = 0.05


def peak_kb(run):
    """The most that was resident, page tables in, the harness's tables out."""
    return (max(run["hwm_kb"], run["peak_rss_kb"]) + run["peak_pte_kb"] -
            run["harness_kb"])


def summarize(data):
    """Per workload and allocator: median, spread, peak; ratios to the best."""
    table = []
    for row in data["workloads"]:
        cells = {}
        for name, runs in data["runs"].get(row["name"], {}).items():
            v = [r[data["metric"]] for r in runs]
            q1, mid, q3 = harness.quartiles(v)
            c = {"ns": mid, "q1": q1, "q3": q3, "min": min(v), "max": max(v),
                 "spread": (q3 - q1) / 2 / mid if mid else 0.0,
                 "peak_kb": statistics.median(peak_kb(r) for r in runs),
                 "noise": max(r.get("noise", 0) for r in runs),
                 "n": len(runs)}
            for key in ("after_ratio", "full_ratio", "build_ns_per_op",
                        "bare_ns", "bare_ratio"):
                if key in runs[0]:
                    q1, mid, q3 = harness.quartiles([r[key] for r in runs])
                    c[key] = mid
                    c[key + "_spread"] = (q3 - q1) / 2 / mid if mid else 0.0
            if "points" in runs[0]:
                c["points"] = [
                    [runs[0]["points"][i][0],
                     statistics.median(r["points"][i][1] for r in runs)]
                    for i in range(len(runs[0]["points"]))]
            cells[name] = c
        peers = {n: c for n, c in cells.items() if n in PEERS}
        lean = [c["peak_kb"] for n, c in cells.items() if n in LEAN]
        best = min(peers, key=lambda n: peers[n]["ns"]) if peers else None
        for name, c in cells.items():
            if best:
                c["ratio"] = c["ns"] / cells[best]["ns"]
                c["beyond"] = c["ratio"] - 1 - c["spread"] - (
                    cells[best]["spread"] if name != best else 0)
            if lean:
                c["peak_ratio"] = c["peak_kb"] / min(lean)
        table.append({"row": row, "cells": cells, "best": best})
    return table


def geomean(table, name):
    """Weighted over the rows that have both; None if there are none."""
    total = weights = 0.0
    for t in table:
        c = t["cells"].get(name)
        if c and "ratio" in c and t["row"]["weight"]:
            total += t["row"]["weight"] * math.log(c["ratio"])
            weights += t["row"]["weight"]
    return math.exp(total / weights) if weights else None


def growth(table, name):
    """The dearest of 4 to 64 threads over 2 threads."""
    ns = {t["row"]["name"]: t["cells"][name]["ns"] for t in table
          if name in t["cells"]}
    more = [ns[k] for k in ns if k.startswith("local_") and
            k not in ("local_1", "local_2")]
    return max(more) / ns["local_2"] if more and "local_2" in ns else None


def number(x):
    if x is None:
        return "-"
    if x >= 1e6:
        return "%.2f m" % (x / 1e6)
    if x >= 1e4:
        return "%.1f k" % (x / 1e3)
    return "%.1f" % x if x >= 100 else "%.2f" % x


def about(data):
    return ("%s; medians of %d rounds%s\n"
            % (harness.about(data["machine"]), data["rounds"],
               ", quick" if data["quick"] else ""))


def markdown(data, table):
    names = data["allocators"]
    has = "eddy" in names
    what = "CPU time" if data["metric"].startswith("cpu") else "wall time"
    out = ["ns per operation (%s times CPUs in use), ± half the quartile "
           "distance; the best peer in bold" % what, ""]
    head = ["workload"] + names + (["eddy/best"] if has else [])
    out += harness.table_head(head)
    for t in table:
        line = [t["row"]["name"]]
        for n in names:
            c = t["cells"].get(n)
            text = "failed"
            if c:
                text = "%s ±%.0f %%" % (number(c["ns"]), 100 * c["spread"])
                if n == t["best"]:
                    text = "**" + text + "**"
            line.append(text)
        if has:
            c = t["cells"].get("eddy")
            line.append("%.2f" % c["ratio"] if c and "ratio" in c else "-")
        out.append("| " + " | ".join(line) + " |")
    line = ["geometric mean over the best peer"]
    line += ["%.2f" % g if g else "-" for g in
             (geomean(table, n) for n in names)]
    out.append("| " + " | ".join(line + ([""] if has else [])) + " |")
    line = ["dearest of 4 to 64 threads over 2"]
    line += ["%.2f" % g if g else "-" for g in
             (growth(table, n) for n in names)]
    out.append("| " + " | ".join(line + ([""] if has else [])) + " |")
    out += ["", "Peak resident memory in MiB, page tables in, the harness's "
            "own tables out", ""]
    head = ["workload"] + names + (["eddy/best"] if has else [])
    out += harness.table_head(head)
    for t in table:
        line = [t["row"]["name"]]
        line += ["%.1f" % (t["cells"][n]["peak_kb"] / 1024)
                 if n in t["cells"] else "-" for n in names]
        if has:
            c = t["cells"].get("eddy")
            line.append("%.2f" % c["peak_ratio"]
                        if c and "peak_ratio" in c else "-")
        out.append("| " + " | ".join(line) + " |")
    for t in table:
        if any("after_ratio" in c for c in t["cells"].values()):
            line = [t["row"]["name"] + ": resident/live after 1 s"]
            line += ["%.2f" % t["cells"][n]["after_ratio"]
                     if n in t["cells"] else "-" for n in names]
            out.append("| " + " | ".join(line + ([""] if has else [])) + " |")
    return "\n".join(out) + "\n"


def targets(table):
    """What eddy must reach: [met, text] each."""
    ret = []
    rows = {t["row"]["name"]: t for t in table if "eddy" in t["cells"] and
            "ratio" in t["cells"]["eddy"]}
    for name, t in rows.items():
        if name.startswith(FRONT):
            r = t["cells"]["eddy"]["ratio"]
            ret.append([r <= 0.85, "%s: %.2f of the best peer (0.85)"
                        % (name, r)])
    for name, t in rows.items():
        c = t["cells"]["eddy"]
        if c["beyond"] > SLACK and t["row"]["weight"]:
            ret.append([False, "%s: slower than %s by %.0f %% beyond the "
                        "spread (5 %%)" % (name, t["best"],
                                           100 * c["beyond"])])
    g = geomean(table, "eddy")
    if g:
        ret.append([g <= 0.75, "geometric mean %.2f (0.75)" % g])
    g = growth(table, "eddy")
    if g:
        ret.append([g <= 1.10, "2 to 64 threads: cost times %.2f (1.10)" % g])
    for name, t in rows.items():
        c = t["cells"]["eddy"]
        if c.get("peak_ratio", 0) > 1.1:
            ret.append([False, "%s: peak memory %.2f of the best (1.10)"
                        % (name, c["peak_ratio"])])
    if "rss_shift" in rows:
        r = rows["rss_shift"]["cells"]["eddy"]["after_ratio"]
        ret.append([r <= 1.4, "resident/live after the sizes shift: %.2f "
                    "(1.40)" % r])
    return ret


def plot_data(data, table, path):
    """Three blocks: ratios, cost curve, scaling."""
    names = data["allocators"]

    def cell(t, n, key):
        return "%g" % t["cells"][n][key] if n in t["cells"] and \
            key in t["cells"][n] else "?"

    blocks = [[], [], []]
    for t in table:
        blocks[0].append([t["row"]["name"].replace("_", "-")] +
                         [cell(t, n, "ratio") for n in names])
        if t["row"]["name"] == "curve":
            sizes = next((c["points"] for c in t["cells"].values()), [])
            for i, (size, _) in enumerate(sizes):
                blocks[1].append([str(size)] + [
                    "%g" % t["cells"][n]["points"][i][1]
                    if n in t["cells"] else "?" for n in names])
        if t["row"]["name"].startswith("local_"):
            blocks[2].append([str(t["row"]["threads"])] +
                             [cell(t, n, "ns") for n in names])
    with open(path, "w", encoding="ascii") as f:
        for b in blocks:
            print("\t".join(["x"] + names), file=f)
            for line in b:
                print("\t".join(line), file=f)
            print("\n", file=f)
    return [len(b) for b in blocks]


SCRIPT = """set terminal svg size 1200,%(height)d background rgb "white" \\
  font "sans,12"
set output "%(out)s"
set datafile separator "\\t"
set datafile missing "?"
set key outside top center horizontal
set multiplot layout %(panels)d,1
set grid ytics
set logscale y
set style data histograms
set style histogram clustered gap 1
set style fill solid 0.9 border
set boxwidth 0.9
set xtics rotate by -40 scale 0 font "sans,9"
set yrange [0.3:20]
set ylabel "time over the best peer"
plot for [i=2:%(last)d] "%(data)s" index 0 using i:xtic(1) \\
  title columnheader(i)
set xtics norotate scale 1 font "sans,12"
set autoscale y
set style data linespoints
"""
CURVE = """set logscale x 2
set format x "2^{%%L}"
set xlabel "bytes"
set ylabel "ns for malloc and free"
plot for [i=2:%(last)d] "%(data)s" index 1 using 1:i title columnheader(i)
"""
SCALE = """unset logscale y
set logscale x 2
set format x "%%g"
set yrange [0:*]
set xlabel "threads"
set ylabel "ns per operation, times CPUs"
plot for [i=2:%(last)d] "%(data)s" index 2 using 1:i title columnheader(i)
"""


def plot(data, table, out):
    sizes = plot_data(data, table, os.path.join(out, "plot.dat"))
    panels = 1 + (sizes[1] > 0) + (sizes[2] > 1)
    script = SCRIPT + (CURVE if sizes[1] else "") + \
        (SCALE if sizes[2] > 1 else "")
    return harness.draw(out, "plot", script % {
        "out": "plot.svg", "data": "plot.dat", "panels": panels,
        "height": 420 * panels, "last": 1 + len(data["allocators"])})


def write(data, out, strict):
    """Writes results.json, results.md and the plot; prints the tables."""
    os.makedirs(out, exist_ok=True)
    all_rows = summarize(data)
    flow = [t for t in all_rows if t["row"].get("table") == "flow"]
    zero = [t for t in all_rows if t["row"].get("table") == "zero"]
    table = [t for t in all_rows if t not in flow and t not in zero]
    goals = (targets(table) + compare_flow.targets(flow) +
             compare_zero.targets(zero))
    text = about(data) + "\n"
    if table:
        text += markdown(data, table) + "\n"
    if flow:
        text += compare_flow.markdown(data, flow) + "\n"
    if zero:
        text += compare_zero.markdown(data, zero)
    data["summary"] = {
        "workloads": {t["row"]["name"]: {"best": t["best"],
                                         "allocators": t["cells"]}
                      for t in all_rows},
        "geomean": {n: geomean(table, n) for n in data["allocators"]},
        "growth": {n: growth(table, n) for n in data["allocators"]},
        "targets": goals,
    }
    harness.write_results(out, "results", data, text)
    for met, goal in goals:
        print("%-6s %s" % ("met" if met else "MISSED", goal))
    noisy = sorted(t["row"]["name"] for t in all_rows
                   if any(c["noise"] > harness.NOISE for c in t["cells"].values()))
    if noisy:
        print("other work ran beside: " + " ".join(noisy))
    print("%d s; results in %s/results.json; %s"
          % (data["took_s"], out,
             plot(data, table, out) if table else "no plot: not workloads.tab"))
    if data["errors"]:
        print("%d runs failed" % len(data["errors"]), file=sys.stderr)
        return 1
    return 1 if strict and not all(g[0] for g in goals) else 0
