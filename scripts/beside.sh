#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The judge beside Google Benchmark's compare.py and hyperfine on one pair of kernels: how often each calls a true 2 %, and how often
# a difference that is none. Method and table: docs/beside-other-tools.md.
#   scripts/beside.sh [TRIALS] [BUILD] [OUT]     30 trials, build, results/beside: OUT.txt and OUT.jsonl are written
# FORGE names another program than BUILD/forge, BESIDE_PAIR a pair that was calibrated before (`forge selftest power --effect 0.02
# --operator gemm_f32 --keep FOLDER`). Keep the machine quiet: calibration and trials both need it.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
. "$root/scripts/common.sh"
trials="${1:-30}"
build="${2:-$root/build}"
out="${3:-$root/results/beside}"
export FORGE="${FORGE:-$build/forge}" FORGE_DATA="${FORGE_DATA:-$root}"
[[ -x "$FORGE" ]] || refuse "There is no $FORGE." "build first: ./test, or cmake --preset release && cmake --build --preset release"
"$root/scripts/setup.sh" libbenchmark-dev libbenchmark-tools hyperfine python3-scipy

work="$root/build/beside"
export FORGE_HOME="$work/home"
rm -rf "$work"
mkdir -p "$work/home" "$(dirname "$out")"

# plain/ and slow/: the same kernel, one with a spin that makes it slower by a calibrated 2 %. copy/: plain/ once more.
if [[ -n "${BESIDE_PAIR:-}" ]]; then
  cp -r "$BESIDE_PAIR/plain" "$BESIDE_PAIR/slow" "$work"
else
  say "Calibrating a spin of 2 % of gemm_f32."
  "$FORGE" --json selftest power --operator gemm_f32 --effect 0.02 --trials 2 --keep "$work" >"$work/calibration.json" || [[ $? -eq 1 ]]
  jq -e '.visible' "$work/calibration.json" >/dev/null ||
    refuse "The machine is too busy: 2 % cannot be calibrated at a noise floor of $(jq '.floor * 1000 | round / 10' "$work/calibration.json") %." \
      "start again when it is quiet, or let BESIDE_PAIR name a pair from a quiet hour, to see what each tool makes of noise"
fi
cp -r "$work/plain" "$work/copy"

say "Building the programs for the other tools."
programs="$work/programs"
for side in plain slow copy; do
  mkdir -p "$programs/$side"
  cd "$programs/$side"
  "$FORGE" -q export "$work/$side" --operator gemm_f32 --as cpp export >/dev/null
  # A kernel's flags are those that its README names.
  eval "$(sed -n 's,^\(g++ .* -c\) kernel\.cpp -o .*,\1 export/kernel.cpp -fPIC -o kernel.o,p' export/README.md)"
  g++ -std=c++20 -O2 -fPIC -pthread -Iexport -c export/gemm_f32.cc -o launcher.o
  g++ -std=c++20 -O2 -fPIC -pthread -Iexport -c "$root/bench/beside/kernel.cc" -o call.o
  g++ -shared -pthread call.o launcher.o kernel.o -o kernel.so
  for program in one_benchmark fixed_calls; do
    g++ -std=c++20 -O2 -pthread "$root/bench/beside/$program.cc" call.o launcher.o kernel.o -lbenchmark -o "$program"
  done
done
g++ -std=c++20 -O2 -pthread "$root/bench/beside/two_benchmarks.cc" -lbenchmark -ldl -o "$programs/two_benchmarks"

BESIDE_WHERE="$("$FORGE" --version | head -n 1), commit $(git -C "$root" rev-parse --short HEAD 2>/dev/null || echo unknown); $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores; $(g++ --version | head -n 1)
Google Benchmark $(dpkg-query -W -f '${Version}' libbenchmark-tools), hyperfine $(dpkg-query -W -f '${Version}' hyperfine), scipy $(dpkg-query -W -f '${Version}' python3-scipy)"
export BESIDE_WHERE
# The Python of the distribution: python3-scipy belongs to it.
PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 "$root/bench/beside/trials.py" "$work" "$trials" "$out"
