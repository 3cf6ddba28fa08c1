#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A wall clock that is set forwards and backwards, by hours and by a year, while forge works: spans, budgets, limits, journals, ids,
# `last` and pages do not mind. The clock is moved for forge alone (clock/jump.cc, preloaded). clock.sh BUILD
source "$(dirname "$0")/../support/suite.sh"
here="$root/tests/suites"
jumper='' server=''
at_end() { for pid in $jumper $server; do kill "$pid" 2>/dev/null || true; done; }
small_data
export FORGE_TEST_CLOCK="$work/offset" no_proxy='*'
mkdir -p "$FORGE_HOME/agents"
candidate control_correct "$work/packages/control_correct"
cp "$root/tests/support/fake_agent.sh" "$work/packages/"

set_clock() { echo "$1" >"$work/offset.new" && mv "$work/offset.new" "$work/offset"; }
set_clock 0
g++ -std=c++17 -O1 -shared -fPIC -o "$work/jump.so" "$here/clock/jump.cc" -ldl
forge() { ASAN_OPTIONS="verify_asan_link_order=0:${ASAN_OPTIONS:-}" LD_PRELOAD="$work/jump.so" "$build/forge" "$@"; }
uptime_s() { cut -d' ' -f1 /proc/uptime; }
hour=3600 year=31536000
jumps=(0 $((5 * hour)) -$((7 * hour)) "$year" -$((36 * hour)) 90 -61)
# Sets the clock twice a second until it is stopped.
jump() { while :; do for j in "${jumps[@]}"; do set_clock "$j"; sleep 0.5; done; done; }

# The clock that is moved is the one that forge writes down.
set_clock "$year"
forge run softmax_f32 --target "$target" --candidates 1 --reference none --no-plan --coder builtin >"$work/log" 2>&1 || [[ $? -le 1 ]] || fail "a run a year ahead"
early="$(ls "$FORGE_HOME/runs")"
[[ "$early" == softmax_f32-$(($(date +%Y) + 1))* || "$early" == softmax_f32-$(($(date -d '+1 day' +%Y) + 1))* ]] || fail "the preloaded clock is not used: $early"
find "$FORGE_HOME/runs" -exec touch -d '+1 year' {} +  # as the clock would have left them

# A run over all the jumps, killed in the middle and gone on with at another time.
jump & jumper=$!
began="$(uptime_s)"
forge run softmax_f32 --target "$target" --candidates 2 --wall-seconds 300 --gate-seconds 300 >"$work/log" 2>&1 & run=$!
late=''
for _ in $(seq 300); do
  late="$(ls "$FORGE_HOME/runs" | grep -v "^$early$" || true)"
  [[ -n "$late" && $(wc -l <"$FORGE_HOME/runs/$late/journal.jsonl" 2>/dev/null || echo 0) -lt 3 ]] || [[ -z "$late" ]] || break
  sleep 0.1
done
pkill -9 -P "$run" 2>/dev/null || kill -9 "$run" 2>/dev/null || true
wait "$run" 2>/dev/null || true
[[ "$(forge show last 2>/dev/null | head -1)" == "$(forge show "$late" 2>/dev/null | head -1)" ]] || fail "'last' is the run that the clock calls later"
code=0
forge run --resume last >"$work/log" 2>&1 || code=$?
[[ $code -le 1 ]] || fail "exit $code"
ended="$(uptime_s)"
journal="$FORGE_HOME/runs/$late/journal.jsonl"
grep -q '"type":"run.end"' "$journal" || fail "another run was gone on with"
jq -se --argjson real "$(echo "$began $ended" | awk '{print $2 - $1}')" \
  'all(.[]; .seconds >= 0) and (map(.seconds) | add) <= $real and (map(select(.type == "gate.submit")) | length) >= 1' "$journal" >/dev/null ||
  fail "a span was taken from the wall clock"
[[ "$(jq -r 'select(.type == "run.end").request.stop' "$journal")" != interrupted ]] || fail "the end"
forge replay "$late" >"$work/log" 2>&1 || fail "the replay differs"
[[ "$(jq -r .time "$journal" | sort -c 2>&1 | wc -l)" -eq 1 ]] || echo "clock: the jumps fell between no two events"
forge trace "$late" >"$work/trace.json" 2>"$work/log" || fail "no trace"
jq -e '[.. | objects | select(has("endTimeUnixNano"))] | length > 3 and all(.[]; (.endTimeUnixNano | tonumber) >= (.startTimeUnixNano | tonumber))' \
  "$work/trace.json" >/dev/null || fail "a span ends before it begins"
forge report "$late" -o "$work/report.html" >"$work/log" 2>&1 || fail "no report"
[[ "$(forge --json runs | jq -r '.runs[].id' | sort -u | wc -l)" -eq 2 ]] || fail "both runs are listed"

# The limits of an agent: a year forwards is no year of silence.
cat >"$FORGE_HOME/agents/fake.toml" <<TOML
format = 1
title = "Fake"
command = ["bash", "$work/packages/fake_agent.sh", "{{forge}}", "{{socket}}", "$work/packages", "rest", "rest", "control_correct", "rest"]
[sandbox]
read = ["$work/packages"]
[limits]
seconds = 600
quiet_seconds = 300
TOML
code=0
forge run softmax_f32 --target "$target" --coder command:fake --tokens 1000 --no-plan --reference none --candidates 1 >"$work/log" 2>&1 || code=$?
[[ $code -le 1 ]] || fail "an agent under jumps: exit $code"
journal="$(ls "$FORGE_HOME"/runs/*/journal.jsonl | grep -v "$early\|$late")"
grep -q 'its time is over\|made no call' "$journal" && fail "an agent was stopped by the wall clock"
grep '"type":"gate.submit"' "$journal" | grep -q '"reason":"accepted"' || fail "the agent's kernel"

kill "$jumper" && wait "$jumper" 2>/dev/null || true
jumper=''

# Pages.
forge --json serve --port 0 >"$work/serve.json" 2>"$work/log" </dev/null & server=$!
for _ in $(seq 100); do [[ ! -s "$work/serve.json" ]] || break; sleep 0.1; done
url="$(jq -r .url "$work/serve.json")"
for j in "${jumps[@]}"; do
  set_clock "$j"
  for path in runs run/last api/run/last lineages; do curl -sf -m 20 "${url}$path" >/dev/null || fail "/$path with the clock at $j"; done
done
pid="$(pgrep -P "$server" || echo "$server")"
kill -TERM "$pid"
code=0; wait "$server" || code=$?
server=''
[[ $code -eq 0 ]] || fail "serve: exit $code"
echo "clock: a run killed and gone on with, an agent, pages, over ${#jumps[@]} settings of the clock"
