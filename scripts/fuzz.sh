#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts/fuzz.sh BUILD SECONDS [TARGET...]: every fuzz target of BUILD (preset `fuzz`), or those named, one after the other, for an
# equal share of SECONDS of CPU time (on a busy machine that takes longer), from its committed corpus (tests/fuzz/corpus). What is found
# is kept for the next time in BUILD/fuzz/found, what breaks a target in BUILD/fuzz/broken. Prints a table; exit 1 when anything broke:
# crash, leak, undefined behaviour, more than a minute or 2 GiB for one input, or a property that does not hold. An input that was mended
# goes into the corpus (at most 4 kB).
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
. "$root/scripts/common.sh"
[[ $# -ge 2 && "$2" =~ ^[1-9][0-9]*$ ]] || refuse "usage: scripts/fuzz.sh BUILD SECONDS [TARGET...]" "for example: scripts/fuzz.sh build-fuzz 600"
build="$(cd "$1" && pwd)" seconds="$2"
shift 2
if [[ $# -gt 0 ]]; then targets=("$@"); else mapfile -t targets < <(ls "$root/tests/fuzz/corpus"); fi
share=$((seconds / ${#targets[@]}))
[[ $share -ge 1 ]] || refuse "$seconds s are not one for each of ${#targets[@]} targets." "give more"
for target in "${targets[@]}"; do
  [[ -x "$build/fuzz/$target" ]] || refuse "$build/fuzz/$target is not there." "cmake --preset fuzz && cmake --build --preset fuzz"
done

export UBSAN_OPTIONS=print_stacktrace=1 TMPDIR="${TMPDIR:-/dev/shm}" # importers and settings are read from files
stat_of() { sed -n "s/^stat::$1: *//p" "$log" | grep . || echo 0; }
TIMEFORMAT='%U %S' format='%-16s %12s %9s %9s %7s %7s\n'
printf "$format" target executions coverage new_units cpu_s broken
total=0 total_cpu=0 failed=0
for target in "${targets[@]}"; do
  work="$build/fuzz/found/$target" broken="$build/fuzz/broken/$target" log="$build/fuzz/$target.log"
  mkdir -p "$work" "$broken"
  executions=0 added=0 cpu=0 status=0
  # libFuzzer counts the clock's seconds, so it is started again until the CPU's are spent.
  while [[ $cpu -lt $share && $status -eq 0 ]]; do
    slice() {
      "$build/fuzz/$target" -max_total_time=$((share - cpu)) -timeout=60 -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="$broken/" "$work" "$root/tests/fuzz/corpus/$target" >"$log" 2>&1 </dev/null || echo $? >"$log.status"
    }
    echo 0 >"$log.status"
    cpu=$((cpu + $({ time slice; } 2>&1 | awk '{ printf "%d", $1 + $2 < 1 ? 1 : $1 + $2 + 0.5 }')))
    status="$(cat "$log.status")"
    executions=$((executions + $(stat_of number_of_executed_units))) added=$((added + $(stat_of new_units_added)))
  done
  coverage="$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)"
  printf "$format" "$target" "$executions" "${coverage:--}" "$added" "$cpu" "$((status != 0))"
  if [[ $status -ne 0 ]]; then
    failed=1
    { grep -m 3 -E 'ERROR: |runtime error|does not hold|SUMMARY' "$log" || tail -n 3 "$log"; } | sed 's/^/    /'
  fi
  total=$((total + executions)) total_cpu=$((total_cpu + cpu))
done
printf '%d targets, a share of %d s, %d executions, %d s of CPU time\n' "${#targets[@]}" "$share" "$total" "$total_cpu"
exit $failed
