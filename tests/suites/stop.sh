#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Ctrl-C and a terminal that closes: exit 4, how to go on is said once, and what was measured is printed. stop.sh BUILD
source "$(dirname "$0")/../support/suite.sh"
export FORGE_DATA="$work/data"
mkdir -p "$work/data/operators"
cp -r "$root/blueprints" "$root/knowledge" "$work/data/"
cp -r "$root/operators/softmax_f32" "$work/data/operators/"  # a suite of one

# stopped SIGNAL COMMAND...: starts it, signals once its journal is there (or after a second where it keeps none), wants exit 4
stopped() {
  local signal="$1" code=0 pid
  shift
  rm -rf "$FORGE_HOME/runs"
  "$forge" "$@" >"$work/out" 2>"$work/err" &
  pid=$!
  if [[ $1 == selftest ]]; then sleep 1; else
    for ((i = 0; i < 600; i++)); do
      if compgen -G "$FORGE_HOME/runs/*/journal.jsonl" >/dev/null; then break; fi
      sleep 0.1
    done
  fi
  sleep 0.5
  kill -"$signal" "$pid" || fail "$*: ended before it was stopped"
  wait "$pid" || code=$?
  [[ $code -eq 4 ]] || fail "$*: exit $code after SIG$signal"
}

for signal in INT HUP; do
  stopped $signal run softmax_f32 --candidates 50
  [[ $(grep -c 'forge run --resume' "$work/out") -eq 1 ]] || fail "how to go on is not said once"
done
stopped INT --json suite cpu -o "$work/suite.json"
jq -e '.ended and (.runs | type == "array") and .machine' "$work/out" >/dev/null || fail "a stopped suite printed no document"
jq -e '.ended' "$work/suite.json" >/dev/null || fail "a stopped suite wrote no document"
cp -r "$root/operators/conv2d_fwd_f16" "$work/data/operators/"  # a battery that takes long
stopped INT selftest admission --operator conv2d_fwd_f16
echo "stop: 4 commands, exit 4 each"
