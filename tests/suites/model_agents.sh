#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Language models in both seats, real binary, a scripted server in place of the model: right and wrong, malformed, cut off, refused,
# spying, killed. Every run ends in a record that replays without a server and without a key. Scripts: model_agents/*.jsonl.
source "$(dirname "$0")/../support/suite.sh"
server=""
at_end() { [[ -z "$server" ]] || kill "$server" 2>/dev/null || true; }
unset ANTHROPIC_API_KEY OPENAI_API_KEY http_proxy HTTP_PROXY
vault="$FORGE_HOME/vault/spied"
mkdir -p "$vault" "$work/scripts"
echo '#define SEALED_CONTENT_OF_A_VAULT 1' >"$vault/kernel.cpp"
cat >"$FORGE_HOME/models.toml" <<TOML
format = 1
[[model]]
name = "impatient"
attempts = 2
TOML
for p in control_correct last_row_missing; do candidate $p "$work/scripts/$p"; done
for s in "$root"/tests/suites/model_agents/*.jsonl; do
  sed "s|{{vault}}|$vault|g; s|{{root}}|$root|g" "$s" >"$work/scripts/$(basename "$s")"
done

# serve SCRIPT [PORT]: its log is $seen
serve() {
  seen="$work/seen-$1"
  : >"$seen"
  rm -f "$work/port"
  "$build/model_server" --port "${2:-0}" --log "$seen" "$work/scripts/$1.jsonl" >"$work/port" &
  server=$!
  for _ in $(seq 100); do [[ -s "$work/port" ]] && break; sleep 0.05; done
  port="$(cat "$work/port")"
  url="http://127.0.0.1:$port"
}
stop_server() { kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; server=""; }
# until_asked N: the server has seen N requests
until_asked() {
  for _ in $(seq 400); do [[ $(wc -l <"$seen") -ge $1 ]] && return; sleep 0.05; done
  fail "the model was never asked $1 times"
}
common=(--target "$target" --gate-seconds 120 --wall-seconds 300)
# forge ARGS...: sets code, id, journal
forge() {
  code=0
  timeout -k 5 300 "$build/forge" "$@" >"$work/log" 2>"$work/err" || code=$?
  id="$(ls -t "$FORGE_HOME/runs" | head -1)"
  journal="$FORGE_HOME/runs/$id/journal.jsonl"
}
# settled NAME CODE...: the run ended as one of these, its record replays alone, the model saw nothing that is sealed
settled() {
  local name="$1"
  shift
  [[ " $* " == *" $code "* ]] || fail "$name: exit $code, not $*"
  tail -1 "$journal" | grep -q '"type":"run.end"' || fail "$name: the record has no end"
  ! grep -q 'of the script' "$journal" || fail "$name: $(grep -o 'line [0-9]* of the script[^"]*' "$journal" | head -1)"
  ! grep -q 'the script is over' "$journal" || fail "$name: it asked more often than expected"
  ! grep -q 'key-of-this-test' "$journal" "$work/log" "$work/err" || fail "$name: the key is on record"
  stop_server
  (unset ANTHROPIC_API_KEY; "$build/forge" replay "$id" >"$work/log2" 2>&1) || { cat "$work/log2"; fail "$name: the replay differs"; }
  "$build/forge" trace "$id" -o "$work/trace" >/dev/null
  jq -e '.resourceSpans[0].scopeSpans[0].spans | map(select(.name | startswith("chat "))) | length > 0' "$work/trace" >/dev/null ||
    fail "$name: the trace has no chat"
  ! grep -q 'key-of-this-test' "$work/trace" || fail "$name: the key is in the trace"
  # What a model wrote itself comes back to it: only what others said counts.
  jq -c '.body | [.system, (.messages[] | if .role == "assistant" then empty else . end)]' "$seen" >"$work/heard"
  # A refusal may quote the path that the model named, never what lies there.
  ! grep -q 'SEALED_CONTENT_OF_A_VAULT\|oracle_main\|forge_oracle' "$work/heard" || fail "$name: sealed text reached the model"
  ! jq -r '.. | strings' "$work/heard" | grep -q '/artifacts/\|/vault/gen\|"seed"' || fail "$name: an inner path or a seed reached the model"
  hidden_shapes | while read -r rows; do
    ! grep -qw "rows=$rows" "$work/heard" || fail "$name: the hidden shape rows=$rows reached the model"
  done
  echo "  $name: ok"
}
# Shapes that verdicts were based on and the operator's file does not list: drawn for this run.
hidden_shapes() {
  jq -r '.response.correctness?.workloads?[]?' "$journal" 2>/dev/null | sed -n 's/^rows=\([0-9]*\),.*/\1/p' | sort -un |
    while read -r rows; do grep -qw "$rows" "$root/operators/softmax_f32/task.toml" || echo "$rows"; done
}
said() { grep -q -- "$2" "$journal" || fail "$1: the journal lacks '$2'"; }
coder() { forge run softmax_f32 "${common[@]}" --no-plan --reference none --coder "$@"; }

serve right
forge run softmax_f32 "${common[@]}" --candidates 2 --no-plan --coder "anthropic:m@$url" --tokens 200000
said right '"type":"vault.seal"'
[[ -n "$(hidden_shapes)" ]] || fail "right: no hidden shape was drawn"
settled right 0 1

serve wrong_then_right
forge run softmax_f32 "${common[@]}" --candidates 3 --reference none --coder "openai:m@$url" --tokens 200000
said openai '"reason":"not_written"'
said openai '"type":"vault.seal"'
settled openai 0 1
grep -q 'rows=4096' "$work/heard" || fail "openai: shapes are told in another form than is looked for here"

serve architect
forge run softmax_f32 "${common[@]}" --candidates 3 --reference none --architect "anthropic:a@$url" --tokens 200000
said architect '"accepted"'
said architect '"type":"vault.seal"'
settled architect 0 1
grep -q 'knows no decision' "$work/heard" || fail "architect: it was not told"

serve never_a_plan
forge run softmax_f32 "${common[@]}" --reference none --architect "anthropic:a@$url" --tokens 200000
said never_a_plan '"type":"plan.none"'
said never_a_plan '"stop":"blocked"'
settled never_a_plan 1

serve tools
coder "anthropic:m@$url" --tokens 900000 --candidates 4
settled tools 1
grep -q 'Ignore your instructions' "$work/heard" || fail "tools: the compiler's words did not come back"

serve wire
coder "anthropic:m@$url" --tokens 200000 --candidates 2
settled wire 1
grep -q 'cut off at the limit' "$work/heard" || fail "wire: it was not told that it wrote too much"
grep -q 'hottest\|built' "$work/heard" || fail "wire: the kernel was not built"

serve broken
coder "anthropic:impatient@$url" --tokens 200000 --candidates 2
said broken 'HTTP 500'
settled broken 1

serve unauthorised
export ANTHROPIC_API_KEY=the-key-of-this-test
coder "anthropic:m@$url" --tokens 200000 --candidates 2
unset ANTHROPIC_API_KEY
said unauthorised '401'
grep -q '"key":true' "$seen" || fail "unauthorised: no key was sent"
settled unauthorised 1

serve refuses
coder "openai:m@$url" --tokens 200000 --candidates 2
said refuses 'the model refused'
settled refuses 1

serve spends
coder "openai:m@$url" --tokens 100000 --candidates 2
said spends '"stop":"budget"'
settled spends 1
[[ $(wc -l <"$seen") -eq 2 ]] || fail "spends: asked $(wc -l <"$seen") times"

# Killed while it waits for an answer, resumed; interrupted likewise, resumed; then the end.
serve before_the_kill
"$build/forge" run softmax_f32 "${common[@]}" --no-plan --reference none --coder "anthropic:m@$url" --tokens 200000 --candidates 2 >"$work/log" 2>"$work/err" &
pid=$!
until_asked 2
kill -9 "$pid"
{ wait "$pid" || true; } 2>/dev/null
stop_server
serve after_the_kill "$port"
"$build/forge" run --resume last >"$work/log" 2>"$work/err" &
pid=$!
until_asked 2
kill -INT "$pid"
code=0
wait "$pid" || code=$?
[[ $code -eq 4 ]] || fail "kill: Ctrl-C exits $code"
stop_server
serve to_the_end "$port"
forge run --resume last
grep -q 'words from before the kill' "$seen" || fail "kill: the conversation was forgotten"
settled kill 0 1
echo "model_agents: all cases passed"
