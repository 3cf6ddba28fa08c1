# SPDX-License-Identifier: Apache-2.0
"""trials.py WORK TRIALS OUT: each tool in turn on a pair that differs by 2 % and on a pair that does not, TRIALS times; the lines
go to OUT.jsonl as they come, the table to OUT.txt. Started by scripts/beside.sh, which makes WORK."""

import json
import os
import pathlib
import random
import sys
import time

import table
import tools


def main():
    work, trials, out = pathlib.Path(sys.argv[1]).resolve(), int(sys.argv[2]), sys.argv[3]
    lines = []
    loads = []
    began = time.time()
    with open(out + ".jsonl", "w") as record:
        for trial in range(trials):
            # Half of the true differences one way and half the other: a tool that always says "slower" must not look good.
            effect = ("plain", "slow", "slower") if trial % 2 == 0 else ("slow", "plain", "faster")
            jobs = [(tool, *which) for tool in tools.TOOLS for which in (effect, ("plain", "copy", "same"))]
            random.shuffle(jobs)  # within a trial each tool meets the same weather, in an order drawn anew
            for tool, baseline, contender, truth in jobs:
                loads.append(os.getloadavg()[0])
                start = time.monotonic()
                calls = tools.TOOLS[tool](work, baseline, contender)
                seconds = time.monotonic() - start
                for rule, call, ratio in calls:
                    lines.append({"trial": trial, "tool": tool, "rule": rule, "truth": truth, "call": call, "ratio": ratio,
                                  "seconds": round(seconds, 2), "load": round(loads[-1], 2)})
                    record.write(json.dumps(lines[-1]) + "\n")
                record.flush()
            print(f"trial {trial + 1} of {trials}, {time.time() - began:.0f} s", file=sys.stderr)
    text = (f"{trials} trials of each tool on each pair, {time.strftime('%Y-%m-%d %H:%M', time.gmtime(began))} UTC, "
            f"{(time.time() - began) / 60:.0f} minutes; load before a job {min(loads):.1f} to {max(loads):.1f}, median {tools.median(loads):.1f}\n"
            f"{os.environ.get('BESIDE_WHERE', '')}\n\n{table.table(lines)}\n")
    pathlib.Path(out + ".txt").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
