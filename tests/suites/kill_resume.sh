#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# kill -9 at random points of a run, then resume: nothing that was recorded is lost or asked for again, the run ends, and its
# decisions replay. kill_resume.sh BUILD [TRIALS] [SECONDS]
set -euo pipefail
build="$1"
trials="${2:-2}"
within="${3:-20}"   # seconds in which the kill falls
root="$(cd "$(dirname "$0")/../.." && pwd)"
work="$(mktemp -d)"
trap 'if [[ $? -eq 0 ]]; then rm -rf "$work"; else echo "kept: $work" >&2; fi' EXIT
export FORGE_DATA="$root"
forge="$build/forge"
kills=0
for ((t = 1; t <= trials; t++)); do
  export FORGE_HOME="$work/home$t"
  "$forge" run softmax_f32 --candidates 2 --seed "$t" >"$work/log" 2>&1 &
  pid=$!
  sleep "$((RANDOM % within)).$((RANDOM % 10))"
  # the whole group of forge's children dies by itself: they ask to be killed with their parent
  if kill -9 "$pid" 2>/dev/null; then kills=$((kills + 1)); fi
  wait "$pid" 2>/dev/null || true
  journal="$(ls "$FORGE_HOME"/runs/*/journal.jsonl 2>/dev/null | head -1 || true)"
  if [[ -z "$journal" || ! -s "$journal" ]]; then continue; fi  # killed before the first event: nothing to lose
  whole="$(grep -c $'}$' "$journal" || true)"
  head -n "$whole" "$journal" >"$work/before"
  code=0
  "$forge" run --resume last >"$work/log" 2>&1 || code=$?
  if [[ $code -gt 1 ]] && ! grep -q 'nothing to go on with' "$work/log"; then
    echo "FAILED: trial $t: resume exits $code"; tail -5 "$work/log"; exit 1
  fi
  if ! head -n "$whole" "$journal" | cmp -s - "$work/before"; then echo "FAILED: trial $t: a recorded event was lost or changed"; exit 1; fi
  if [[ $code -le 1 ]]; then
    "$forge" replay last >"$work/log" 2>&1 || { echo "FAILED: trial $t: the replay differs"; cat "$work/log"; exit 1; }
  fi
  rm -rf "$FORGE_HOME"
done
sleep 0.5
if pgrep -f "$build/forge-runner" >/dev/null; then echo "FAILED: a runner outlived its judge"; exit 1; fi
echo "kill_resume: $trials trials, $kills kills, nothing lost"
