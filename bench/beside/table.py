# SPDX-License-Identifier: Apache-2.0
"""The table of docs/beside-other-tools.md from the lines that trials.py wrote."""

from tools import TOOLS, median


def wilson(k, n, z=1.96):
    """The 95 % interval of a share k of n, in per cent."""
    if n == 0:
        return 0.0, 100.0
    p = k / n
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * ((p * (1 - p) + z * z / (4 * n)) / n) ** 0.5 / (1 + z * z / n)
    return max(0.0, 100 * (middle - half)), min(100.0, 100 * (middle + half))


def share(k, n):
    low, high = wilson(k, n)
    return f"{k} of {n} [{low:.0f} {high:.0f}]"


def columns(rows):
    width = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    return [" | ".join(c.ljust(w) for c, w in zip(r, width)).rstrip() for r in rows]


def table(lines):
    """lines: dicts with tool, rule, truth ("slower", "faster" or "same"), call, ratio, seconds."""
    by_tool = {}
    for line in sorted(lines, key=lambda r: list(TOOLS).index(r["tool"])):
        by_tool.setdefault(line["tool"] + (", " + line["rule"] if line["rule"] else ""), []).append(line)
    effect = [["true 2 %", "called right [95 %]", "wrong way", "no difference seen", "measured effect, median", "seconds a verdict"]]
    null = [["identical", "falsely called [95 %]", "of these faster", "no difference seen", "measured ratio, spread", "seconds a verdict"]]
    for tool, all_of_it in by_tool.items():
        x = [r for r in all_of_it if r["truth"] != "same"]
        if x:
            right = sum(r["call"] == r["truth"] for r in x)
            wrong = sum(r["call"] in ("faster", "slower") for r in x) - right
            size = median([r["ratio"] if r["truth"] == "faster" else 1 / r["ratio"] for r in x]) - 1
            effect.append([tool, share(right, len(x)), str(wrong), unseen(x), f"{100 * size:.2f} %", f"{median([r['seconds'] for r in x]):.1f}"])
        x = [r for r in all_of_it if r["truth"] == "same"]
        if x:
            false = [r["call"] for r in x if r["call"] in ("faster", "slower")]
            ratios = sorted(r["ratio"] for r in x)
            null.append([tool, share(len(false), len(x)), str(false.count("faster")), unseen(x),
                         f"{ratios[0]:.4f} .. {ratios[-1]:.4f}", f"{median([r['seconds'] for r in x]):.1f}"])
    return "\n".join([*columns(effect), "", *columns(null)])


def unseen(lines):
    """Only forge tells "they are the same" from "this job cannot tell"."""
    same, none = (sum(r["call"] == c for r in lines) for c in ("same", "none"))
    return f"{same + none} ({same} called the same)" if same else str(none)
