# SPDX-License-Identifier: BSD-2-Clause
"""Tables and targets of zero.tab: what calloc costs, and what is touched of it.

A row's cost stands beside the same work another way ("bare"), measured in the
same runs; allocators are compared by the ratio of the two.
"""

import harness

TOUCH = 1.05       # times mmap, the same pages touched, munmap
MEMSET = 1.0       # times malloc and memset, beside the spread
CALLOC_NS = 1e5    # calloc of 512 MiB
AGAIN_NS = 1e4     # calloc and free of 100 MiB: 10,000 in 0.1 s


def markdown(data, table):
    names = data["allocators"]
    out = ["Memory that is to be zero: us per operation, ± half the quartile "
           "distance, and in brackets times the same work another way in the "
           "same runs: mmap and munmap; memset_ and used_: malloc and memset",
           ""]
    out += harness.table_head(["workload", "bare"] + names)
    for t in table:
        cells = t["cells"]
        bare = sorted(c["bare_ns"] for c in cells.values() if "bare_ns" in c)
        line = [t["row"]["name"],
                "%.2f" % (bare[len(bare) // 2] / 1000) if bare else "-"]
        for n in names:
            c = cells.get(n)
            line.append("%.2f ±%.0f %% (%.2f ±%.0f %%)"
                        % (c["ns"] / 1000, 100 * c["spread"], c["bare_ratio"],
                           100 * c["bare_ratio_spread"])
                        if c and "bare_ratio" in c else "failed")
        out.append("| " + " | ".join(line) + " |")
    return "\n".join(out) + "\n"


def targets(table):
    """What eddy must reach: [met, text] each."""
    ret = []
    for t in table:
        name = t["row"]["name"]
        c = t["cells"].get("eddy")
        if not c or "bare_ratio" not in c:
            continue
        r = c["bare_ratio"]
        if name == "calloc_512m":
            ret.append([c["ns"] < CALLOC_NS, "%s: %.1f us (%.0f)"
                        % (name, c["ns"] / 1e3, CALLOC_NS / 1e3)])
        elif name == "untouched_100m":
            ret.append([c["ns"] < AGAIN_NS, "%s: %.1f us (%.0f)"
                        % (name, c["ns"] / 1e3, AGAIN_NS / 1e3)])
        elif name.startswith("touch_"):
            ret.append([r <= TOUCH, "%s: %.2f of mmap (%.2f)"
                        % (name, r, TOUCH)])
        elif name.startswith("memset_"):
            ret.append([r <= MEMSET + c["bare_ratio_spread"],
                        "%s: %.2f of malloc and memset (%.2f and the spread)"
                        % (name, r, MEMSET)])
    return ret
