# SPDX-License-Identifier: Apache-2.0
"""One verdict of each tool on one pair. Every function returns a list of (rule, call, ratio): call is "faster" or "slower" (the
contender), "same", or "none"; ratio is the tool's own estimate of T_baseline / T_contender."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

from scipy import stats

COMPARE = "/usr/share/benchmark/compare.py"
ALPHA = 0.05  # the default of compare.py, and the threshold in hyperfine's script for Welch's test
REPETITIONS = ["--benchmark_repetitions=20", "--benchmark_min_time=0.1"]
CALLS = "20"  # of a process that hyperfine runs


def run(command, **more):
    environment = dict(os.environ, **more.pop("environment", {}))
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    if done.returncode not in more.get("allowed", (0,)):
        raise SystemExit(f"error: {' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def called(different, ratio):
    return "none" if not different else "faster" if ratio > 1 else "slower"


def median(values):
    v = sorted(values)
    return (v[(len(v) - 1) // 2] + v[len(v) // 2]) / 2


def compared(arguments):
    """compare.py's U test of the wall clock, as it dumps it."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        run([sys.executable, COMPARE, "--no-color", "--alpha", str(ALPHA), "-d", report, *arguments])
        rows = [r for r in json.loads(report.read_text()) if r["run_type"] == "iteration" and r["utest"]]
    if len(rows) != 1:
        raise SystemExit(f"error: compare.py gave {len(rows)} U tests where one was expected")
    m = rows[0]["measurements"]
    ratio = median([x["real_time"] for x in m]) / median([x["real_time_other"] for x in m])
    return called(rows[0]["utest"]["time_pvalue"] < ALPHA, ratio), ratio


def compare_in_turn(work, baseline, contender):
    return [("", *compared(["benchmarks", work / "programs" / baseline / "one_benchmark", work / "programs" / contender / "one_benchmark", *REPETITIONS]))]


def compare_interleaved(work, baseline, contender):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "runs.json"
        run(
            [work / "programs/two_benchmarks", "--benchmark_enable_random_interleaving=true", f"--benchmark_out={out}", *REPETITIONS],
            environment={"BASELINE": str(work / "programs" / baseline / "kernel.so"), "CONTENDER": str(work / "programs" / contender / "kernel.so")},
        )
        return [("", *compared(["filters", out, "baseline", "contender"]))]


def hyperfine(work, baseline, contender):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "runs.json"
        programs = [f"{work / 'programs' / side / 'fixed_calls'} {CALLS}" for side in (baseline, contender)]
        run(["hyperfine", "--shell=none", "--warmup", "3", "--style", "none", "--export-json", out, *programs])
        a, b = (r["times"] for r in json.loads(out.read_text())["results"])
    ratio = (sum(a) / len(a)) / (sum(b) / len(b))
    p = stats.ttest_ind(a, b, equal_var=False).pvalue
    # The summary says "FAST ran r +- s times faster than SLOW", s by propagation of both standard deviations.
    spread = max(ratio, 1 / ratio) * ((stats.tstd(a) / stats.tmean(a)) ** 2 + (stats.tstd(b) / stats.tmean(b)) ** 2) ** 0.5
    return [("welch", called(p < ALPHA, ratio), ratio), ("summary", called(max(ratio, 1 / ratio) - spread > 1, ratio), ratio)]


def forge(work, baseline, contender):
    command = [os.environ["FORGE"], "--json", "bench", work / contender, "--operator", "gemm_f32", "--reference", f"package:{work / baseline}"]
    verdict = json.loads(run(command, allowed=(0, 1)))
    timing = verdict["measurement"]["pairs"][0]
    call = timing["comparison"]
    return [("", "none" if call == "ambiguous" else call, timing["speedup"]["mid"])]


TOOLS = {
    "forge bench": forge,
    "compare.py, one program after the other": compare_in_turn,
    "compare.py, interleaved at random": compare_interleaved,
    "hyperfine": hyperfine,
}
