#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A command line agent in the coder's seat, real binary, no model: it hands in what is right and what is wrong, spies, hangs, dies, and
# is stopped; every run ends in a record that replays.
source "$(dirname "$0")/../support/suite.sh"
export FORGE_TEST_KEY=sk-the-secret-of-this-test
mkdir -p "$FORGE_HOME/agents" "$work/agent"
cp "$root/tests/support/fake_agent.sh" "$work/agent/"
for p in control_correct last_row_missing; do candidate $p "$work/agent/packages/$p"; done

# agent NAME FORMAT LIMITS STEP...
agent() {
  local name="$1" format="$2" limits="$3"
  shift 3
  local steps=""
  for s in "$@"; do steps+=", \"$s\""; done
  cat >"$FORGE_HOME/agents/$name.toml" <<TOML
format = 1
title = "Fake"
command = ["bash", "$work/agent/fake_agent.sh", "{{forge}}", "{{socket}}", "$work/agent/packages"$steps]
[environment]
keys = ["FORGE_TEST_KEY"]
set = ["FORGE_SNOOP=$FORGE_HOME/vault", "FORGE_SNOOP_DATA=$root"]
[sandbox]
read = ["$work/agent"]
[usage]
format = "$format"
[limits]
$limits
TOML
}
# run NAME: of that agent, one milestone, no plan
run() {
  code=0
  "$build/forge" run softmax_f32 --target "$target" --coder "command:$1" --tokens 100000 --no-plan --candidates 6 --gate-seconds 120 >"$work/log" 2>"$work/err" || code=$?
  id="$(ls -t "$FORGE_HOME/runs" | head -1)"
  journal="$FORGE_HOME/runs/$id/journal.jsonl"
  space="$FORGE_HOME/runs/$id/workspace"
  [[ $code -le 1 ]] || fail "$1: exit $code"
  ! grep -rq "the-secret-of-this" "$FORGE_HOME/runs" --include='*.jsonl' --include='*.log' || fail "$1: the key is on record"
  "$build/forge" replay "$id" >"$work/log2" 2>&1 || { cat "$work/log2"; fail "$1: the replay differs"; }
}
said() { grep -q "$2" "$journal" || fail "$1: the journal lacks '$2'"; }
mkdir -p "$FORGE_HOME/vault" && echo sealed-content-of-a-vault >"$FORGE_HOME/vault/kernel.cpp"

agent works codex "" garbage last_row_missing at_once leave_in_the_middle control_correct
run works
said works not_written
said works '"accepted"'
said works '"input":100'
said works 'bubblewrap\|Landlock'
grep -q not_written "$space/replies" || fail "works: the agent did not hear its verdict"
grep -q '"id":803' "$space/replies" || fail "works: of three calls at once one got no answer"
[[ $(grep -c 'notifications/progress' "$space/replies") -eq 0 ]] || fail "works: progress was taken for an answer"

agent spies codex "" vault give_up
run spies
! grep -q 'sealed-content' -r "$space" || fail "spies: the vault was read"
! grep -qs 'extern "C"' "$space/snooped" || fail "spies: an oracle was read"
[[ -e "$space/snooped" ]] || fail "spies: it never tried"
said spies 'told to'

agent hangs codex "seconds = 4" hang
run hangs
said hangs 'its time is over'
agent quiet codex "quiet_seconds = 3" hang
run quiet
said quiet 'no call and no output'
agent dies codex "" die
run dies
said dies 'signal 9\|exit 137'
agent spends codex "" spend
run spends
said spends 'tokens are spent'
agent refused claude-code "" refused
run refused
said refused 'HTTP 401'
agent absent codex ""
sed -i 's/^command = \["bash"/command = ["no-such-agent-program"/' "$FORGE_HOME/agents/absent.toml"
code=0
"$build/forge" run softmax_f32 --coder command:absent --tokens 1 >"$work/log" 2>"$work/err" || code=$?
[[ $code -eq 3 ]] || fail "absent: exit $code"

sleep 0.3
if pgrep -f "$work/agent/fake_agent.sh" >/dev/null; then fail "an agent outlived its run"; fi
echo "command_agent: all cases passed"
