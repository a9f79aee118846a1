# SPDX-License-Identifier: BSD-2-Clause
"""Tables and targets of flow.tab: objects that another thread frees.

A row's cost stands beside the same work without malloc, measured in the same
runs ("bare"), and the flow_ rows beside the hand_ row of the same parameters.
Allocators are compared by that ratio: how far apart two CPUs are may change
from run to run where a hypervisor places them, and with it all times.
"""

import harness

DEBIAN = ["glibc", "jemalloc", "mimalloc", "tcmalloc"]
BARE = 1.2    # times the ring without malloc
PEER = 0.5    # times the best of Debian's
PEAK = 1.1    # times the leanest of all


def by_name(table):
    return {t["row"]["name"]: t["cells"] for t in table}


def hand_of(rows, name):
    """The cells of the same row with a return ring by hand."""
    return rows.get(name.replace("flow_", "hand_", 1), {})


def best(cells, names):
    """The fastest of names: name and cell, or None and nothing."""
    have = [n for n in names if "bare_ratio" in cells.get(n, {})]
    if not have:
        return None, {}
    name = min(have, key=lambda n: cells[n]["bare_ratio"])
    return name, cells[name]


def others(cells):
    """Allocators beside eddy and Debian's."""
    return [n for n in cells if n not in DEBIAN and n != "eddy"]


def over(a, b):
    return "%.2f" % (a / b) if a is not None and b else "-"


def markdown(data, table):
    names = data["allocators"]
    rows = by_name(table)
    out = ["Objects that another thread frees: ns per object, ± half the "
           "quartile distance, and in brackets times the same work without "
           "malloc in the same runs; hand_: with a return ring by hand", ""]
    columns = ["workload", "bare"] + names
    if "eddy" in names:
        columns += ["eddy/hand", "eddy/Debian's best", "eddy/others' best"]
    out += harness.table_head(columns)
    for t in table:
        name, cells = t["row"]["name"], t["cells"]
        bare = sorted(c["bare_ns"] for c in cells.values() if "bare_ns" in c)
        line = [name, "%.1f" % bare[len(bare) // 2] if bare else "-"]
        for n in names:
            c = cells.get(n)
            line.append("%.1f ±%.0f %% (%.2f ±%.0f %%)"
                        % (c["ns"], 100 * c["spread"], c["bare_ratio"],
                           100 * c["bare_ratio_spread"])
                        if c and "bare_ratio" in c else "failed")
        if "eddy" in names:
            e = cells.get("eddy", {})
            hand = hand_of(rows, name).get("eddy", {})
            if not name.startswith("flow_"):
                hand = {}
            line.append(over(e.get("bare_ratio"), hand.get("bare_ratio")))
            for peers in (DEBIAN, others(cells)):
                _, c = best(cells, peers)
                line.append(over(e.get("bare_ratio"), c.get("bare_ratio")))
        out.append("| " + " | ".join(line) + " |")
    out += ["", "Peak resident memory in MiB, page tables in, the harness's "
            "own tables out", ""]
    out += harness.table_head(["workload"] + names +
                              (["eddy/best"] if "eddy" in names else []))
    for t in table:
        cells = t["cells"]
        line = [t["row"]["name"]]
        line += ["%.1f" % (cells[n]["peak_kb"] / 1024) if n in cells else "-"
                 for n in names]
        if "eddy" in names:
            line.append(over(cells.get("eddy", {}).get("peak_kb"),
                             min((c["peak_kb"] for c in cells.values()),
                                 default=None)))
        out.append("| " + " | ".join(line) + " |")
    return "\n".join(out) + "\n"


def targets(table):
    """What eddy must reach in the flow_ rows: [met, text] each."""
    rows = by_name(table)
    ret = []
    for name, cells in rows.items():
        e = cells.get("eddy")
        if not name.startswith("flow_") or not e or "bare_ratio" not in e:
            continue
        ret.append([e["bare_ratio"] <= BARE,
                    "%s: %.2f of the bare ring (%.2f)"
                    % (name, e["bare_ratio"], BARE)])
        hand = hand_of(rows, name).get("eddy")
        if hand:
            r = e["bare_ratio"] / hand["bare_ratio"]
            ret.append([r < 1, "%s: %.2f of the return ring by hand (1.00)"
                        % (name, r)])
        peer, c = best(cells, DEBIAN)
        if c:
            r = e["bare_ratio"] / c["bare_ratio"]
            text = "%s: %.2f of %s (%.2f)" % (name, r, peer, PEER)
            met = r <= PEER
            if PEER * c["bare_ratio"] < BARE:
                # half of it is no more than the ring itself
                text += ", or within %.2f of bare" % BARE
                met = met or e["bare_ratio"] <= BARE
            ret.append([met, text])
        peer, c = best(cells, others(cells))
        if c:
            r = e["bare_ratio"] / c["bare_ratio"]
            ret.append([r <= 1 + e["bare_ratio_spread"] +
                        c["bare_ratio_spread"],
                        "%s: %.2f of %s (1.00 and the spread)"
                        % (name, r, peer)])
        r = e["peak_kb"] / min(c["peak_kb"] for c in cells.values())
        ret.append([r <= PEAK, "%s: peak memory %.2f of the best (%.2f)"
                    % (name, r, PEAK)])
    return ret
