# SPDX-License-Identifier: Apache-2.0
# What each kind of process is killed in, and what must hold then. Read by ../kills.sh, whose functions these use; `kind_NAME` is one
# trial, `after_NAME` comes once behind all of them.
task=(softmax_f32 --target "$target")

# forge itself. What it leaves is gone on with, killed again, and every fifth time brought to its end, which repeats.
forging() { # COMMAND...: what begins where there is nothing to go on with
  local resumed=0
  if ((trial % 5 == 0)); then to_the_end; fi
  if remember; then resumed=1; start "$forge" run --resume last; else start "$forge" "$@"; fi
  pause "$within"
  kill -9 "$main" || true
  ended
  [[ $resumed -eq 0 ]] || nothing_lost
  if [[ $code -eq 137 ]]; then
    kills=$((kills + 1))
    ! remember || "$forge" show last >"$work/log" 2>&1 || fail "the journal cannot be read"
    return
  fi
  [[ $code -le 1 ]] || fail "exit $code"
  repeats last
  rm -rf "$FORGE_HOME/runs"
}
to_the_end() {
  if remember; then
    code=0
    "$forge" run --resume last >"$work/log" 2>&1 || code=$?
    [[ $code -le 1 ]] || fail "the resumed run: exit $code"
    nothing_lost
    repeats last
  fi
  rm -rf "$FORGE_HOME/runs"  # the vault stays: what was sealed is nobody's to lose
}
sealed_is_whole() {
  "$forge" lineage softmax_f32 >"$work/log" 2>&1 || fail "the vault cannot be read"
}
kind_run() { within=3000 forging run "${task[@]}" --candidates 1 --seed "$trial"; }
after_run() { to_the_end && sealed_is_whole; }
kind_evolve() { within=5000 forging evolve "${task[@]}" --candidates 1 --generations 2 && sealed_is_whole; }
after_evolve() { to_the_end && sealed_is_whole; }

# A runner: the kernel that it held was not at fault, so the verdict is what it would have been.
holds_expert() { grep -q '/expert-' "/proc/$1/maps" 2>/dev/null; }
kind_candidate() {
  start "$forge" bench "$package" --operator "${task[@]}" --reference none
  within=100 look='' strike 'forge-runner'
  ended
  [[ $code -eq 0 ]] && grep -q '^accepted' "$work/log" || fail "an honest candidate, exit $code"
}
kind_expert() {
  start "$forge" bench "$package" --operator "${task[@]}" --reference expert:onednn
  within=500 look=holds_expert strike 'forge-runner'
  ended
  [[ $code -eq 0 ]] && grep -q '^accepted' "$work/log" || fail "an honest candidate, exit $code"
  grep -q ' reference: [0-9]' "$work/log" || fail "the reference was lost"
}

# The compiler, its driver or the assembler: once more, and nobody is blamed for it.
kind_compiler() {
  local slow="$work/packages/slow"  # it compiles for a while
  rm -rf "$FORGE_HOME/cache" "$slow"
  cp -r "$package" "$slow"
  cat >>"$slow/kernel.cpp" <<'CPP'
constexpr int spin() {
  int n = 0;
  for (int i = 0; i < 150; i++)
    for (int j = 0; j < 1000; j++) n ^= i * j;
  return n;
}
static_assert(spin() != 1);
CPP
  start "$forge" check "$slow" --operator "${task[@]}"
  within=400 look='' strike 'kernel\.(cpp|o)|/cc[[:alnum:]]+\.(s|o)'
  ended
  [[ $code -eq 0 ]] && grep -q '^accepted' "$work/log" || fail "an honest package, exit $code"
}

# A command line agent, what holds it, or the server between: its milestone ends, the run goes on with what was accepted.
an_agent_at_work() { # PATTERN MILLISECONDS
  mkdir -p "$FORGE_HOME/agents"
  cp "$root/tests/support/fake_agent.sh" "$work/packages/"
  cat >"$FORGE_HOME/agents/fake.toml" <<TOML
format = 1
title = "Fake"
command = ["bash", "$work/packages/fake_agent.sh", "{{forge}}", "{{socket}}", "$work/packages", "rest", "control_correct", "rest"]
[sandbox]
read = ["$work/packages"]
TOML
  start "$forge" run "${task[@]}" --coder command:fake --tokens 1000 --no-plan --reference none --candidates 1
  within="$2" look='' strike "$1"
  ended
  [[ $code -le 1 ]] || fail "exit $code"
  local record="$(journal)"
  if grep '"type":"gate.submit"' "$record" | grep -q '"reason":"accepted"'; then
    grep '"type":"run.end"' "$record" | grep -q '"package":"[0-9a-f]' || fail "an accepted kernel was lost"
  fi
  repeats last
  rm -rf "$FORGE_HOME/runs"
}
kind_agent() { an_agent_at_work '^[0-9]+ bash .*fake_agent' 400; }
kind_mcp() { an_agent_at_work ' mcp --socket' 400; }
kind_sandbox() {
  if ! command -v bwrap >/dev/null; then [[ $trial -gt 1 ]] || echo "kills: sandbox: no bubblewrap here"; kills=$((kills + 1)); return; fi
  an_agent_at_work '^[0-9]+ bwrap .*fake_agent' 400
}

# The pages' server, while it answers: the same port serves again, and the state is as it was.
kind_serve() {
  if [[ -z "$(journal)" ]]; then "$forge" run "${task[@]}" --candidates 1 >"$work/log" 2>&1 || [[ $? -eq 1 ]] || fail "a run to look at"; fi
  local was port client
  was="$(sha256sum "$(journal)")"
  serving 0
  port="$(jq -r .port "$work/log")"
  for path in '' runs api/runs run/last api/run/last lineages; do
    while curl -sf -m 5 "http://127.0.0.1:$port/$path"; do :; done >/dev/null 2>&1 &
  done
  pause 250
  kill -9 "$main" && kills=$((kills + 1))
  ended
  for client in $(jobs -p); do wait "$client" 2>/dev/null || true; done
  no_orphans
  serving "$port"
  curl -sf -m 20 "http://127.0.0.1:$port/api/run/last" | jq -e '.events > 0' >/dev/null || fail "the same port does not serve again"
  kill -TERM "$main"
  ended
  [[ $code -eq 0 && "$was" == "$(sha256sum "$(journal)")" ]] || fail "exit $code, or the journal changed"
}
serving() { # PORT
  start "$forge" --json serve --port "$1"
  for _ in $(seq 400); do [[ ! -s "$work/log" ]] || return 0; sleep 0.05; done
  fail "forge serve does not start"
}

# The writer of evidence: a file is the old one or the new one, whole, and nothing lies beside it.
kind_certify() {
  local entry=row-resident folder="$FORGE_DATA/knowledge/cpu/row-resident" file
  sed -i -e 's/axes = { rows = [0-9]* }/axes = { rows = 16 }/' -e 's/^max = .*/max = 4/' "$FORGE_DATA/knowledge/operators/row_scale_f32/task.toml"
  start "$forge" kb certify "$entry" --target "$target" --replace
  pause 3500
  kill -9 "$main" || true
  ended
  [[ $code -ne 137 ]] || kills=$((kills + 1))
  [[ $code -le 1 || $code -eq 137 ]] || fail "kb certify: exit $code"
  for file in "$folder"/evidence/*; do jq -e '.format and .device_class and .outcome' "$file" >/dev/null || fail "$file is not whole"; done
  # Ten short ones: an entry's own file, written again and again.
  for _ in $(seq 10); do
    start bash -c "for i in 1 2 3; do '$forge' kb retire $entry; '$forge' kb unretire $entry; done"
    pause 60
    pkill -9 -s "$session" || true
    ended
    "$forge" kb show "$entry" >"$work/log" 2>&1 || fail "the entry cannot be read"
  done
}
