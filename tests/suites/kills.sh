#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# kill -9 of each process of forge's, at random times, with nothing lost: kills.sh BUILD [TRIALS] [KIND...]
# A trial starts something, kills one process of the kind in it, and checks what must hold after that kind's death (kills/kinds.sh).
# At the end of a kind: no process left, nothing in the scratch folders, nothing half-written in FORGE_HOME.
source "$(dirname "$0")/../support/suite.sh"
trials="${2:-2}"
shift $(($# < 2 ? $# : 2))
kinds=("${@:-run}")
[[ $# -gt 0 ]] || kinds=(run evolve candidate expert compiler agent sandbox mcp serve certify)
here="$(cd "$(dirname "$0")" && pwd)"
session=''
at_end() { [[ -z "$session" ]] || pkill -9 -s "$session" 2>/dev/null || true; }
trap 'echo "kills: $kind: stopped in trial $trial; $kills kills, nothing lost so far ($((SECONDS - began)) s)"; exit 3' TERM
export TMPDIR="$work/tmp" no_proxy='*'
mkdir -p "$TMPDIR"
fail() { echo "FAILED: $kind, trial $trial: $*"; tail -n 5 "$work/log" 2>/dev/null; exit 1; }

# The smallest of everything: one operator with few rows, one agent, one probe.
small_data
candidate control_correct "$work/packages/control_correct"
package="$work/packages/control_correct"

# start COMMAND...: in a session of its own, by which its children are known; its process is $main, its output goes to $work/log.
start() {
  : >"$work/log"  # before whoever looks for what it will say
  setsid "$@" >"$work/log" 2>&1 </dev/null &
  main=$!
  session=$main
}
# ended: waits; the exit code is in $code
ended() { code=0; wait "$main" 2>/dev/null || code=$?; }
# pause MILLISECONDS: a random time up to that; half as long after each try that came too late, for a machine that is faster than thought
shrink=1
pause() {
  local ms=$(((RANDOM << 15 | RANDOM) % ($1 / shrink + 1)))
  sleep "$(printf '%d.%03d' $((ms / 1000)) $((ms % 1000)))"
}
# find_below PID PATTERN: adds to $found its descendants that match, as PID NAME ARGUMENTS. Without a fork: some live a tenth of a second.
find_below() {
  local file pid name list words
  for file in /proc/"$1"/task/*/children; do
    list='' && read -r list <"$file" || true
    for pid in $list; do
      name='' words=()
      read -r name <"/proc/$pid/comm" || continue
      mapfile -d '' words <"/proc/$pid/cmdline" || continue
      if [[ "$pid $name ${words[*]}" =~ $2 ]] && { [[ -z "$look" ]] || $look "$pid"; }; then found+=("$pid"); fi
      find_below "$pid" "$2"
    done
  done
}
# strike PATTERN: once there is such a child, waits up to $within milliseconds, and kills one; nothing when the command ended before.
strike() {
  local waited='' found pid
  while kill -0 "$main" && read -r _ _ state _ <"/proc/$main/stat" && [[ $state != Z ]]; do
    found=()
    find_below "$main" "$1"
    if [[ ${#found[@]} -gt 0 ]]; then
      if [[ -z "$waited" ]]; then pause "$within" && waited=1 && continue; fi
      pid="${found[RANDOM % ${#found[@]}]}"
      if kill -9 "$pid"; then kills=$((kills + 1)) && return; fi
    fi
    sleep 0.005
  done 2>/dev/null
}
journal() { ls -t "$FORGE_HOME"/runs/*/journal.jsonl 2>/dev/null | head -1 || true; }
# Whole lines recorded so far; remembered in $work/before, to be found again by nothing_lost.
remember() {
  kept="$(journal)" whole=0
  [[ -n "$kept" && -s "$kept" ]] || return 1
  whole="$(grep -c $'}$' "$kept" || true)"
  head -n "$whole" "$kept" >"$work/before"
}
nothing_lost() { head -n "$whole" "$kept" | cmp -s - "$work/before" || fail "a recorded event was lost or changed"; }
repeats() { "$forge" replay "$1" >"$work/log" 2>&1 || fail "the replay differs"; }
# No process outlives its parent by more than a moment.
no_orphans() {
  for _ in $(seq 50); do
    left="$(pgrep -s "$session" 2>/dev/null; pgrep -f "$work/packages" 2>/dev/null || true)"
    [[ -n "$left" ]] || return 0
    sleep 0.1
  done
  fail "outlived its parent: $(ps -o pid=,ppid=,stat=,args= -p "${left//$'\n'/,}" | head -3)"
}
# A file that replaces another has a name of its own for a moment, <name>.tmpN: a kill may leave it, but never half of it.
whole_file() {
  case "$1" in
    *.json.tmp*) jq -e . "$1" >/dev/null 2>&1 ;;
    *.toml.tmp*) cmp -s <(tail -n 5 "$1") <(tail -n 5 "${1%.tmp*}") ;;  # what changes in an entry stands further up
    *) false ;;
  esac
}
no_junk() {
  "$forge" check "$package" --operator softmax_f32 --target "$target" >"$work/log" 2>&1 || fail "a check after it all"
  [[ -z "$(ls -A "$TMPDIR")" ]] || fail "left in the scratch folder: $(ls -A "$TMPDIR" | head -3)"
  local half file
  half="$(find "$FORGE_HOME" "$FORGE_DATA" \( -name '*.tmp[0-9]*' -o -name '.sealing*' \) | head -3)"
  for file in $half; do whole_file "$file" || fail "half-written: $file"; done
  half="$(find /dev/shm -user "$(id -u)" -name 'forge:*' -newer "$package/launch.toml" | head -3)"
  [[ -z "$half" ]] || fail "left in /dev/shm: $half"
}

source "$here/kills/kinds.sh"
for kind in "${kinds[@]}"; do
  kills=0 began=$SECONDS
  rm -rf "$FORGE_HOME" && mkdir -p "$FORGE_HOME"
  for ((trial = 1; trial <= trials; trial++)); do
    before=$kills
    shrink=1
    for _ in $(seq 10); do  # it may have ended before it was struck
      "kind_$kind" 2>>"$work/errors"  # bash says there whom it saw killed
      no_orphans
      [[ $kills -eq $before ]] || break
      shrink=$((shrink * 2))
    done
    [[ $kills -gt $before ]] || fail "nothing of this kind was met"
  done
  if declare -F "after_$kind" >/dev/null; then "after_$kind"; fi
  no_junk
  echo "kills: $kind: $trials trials, $kills kills, nothing lost ($((SECONDS - began)) s)"
done
