#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Completion, the manual page, forge init and forge new operator, by the real binary. comfort.sh BUILD
source "$(dirname "$0")/../support/suite.sh"
export PATH="$build:$PATH"

# --- completion in bash: the function is called with what bash would give it
mkdir -p "$work/home/runs/softmax_f32-20260101-000000-abcd" "$work/home/vault/softmax_f32/cpu-x86-64-avx2/0123456789ab"
forge completion bash >"$work/forge.bash"
cat >"$work/ask.bash" <<'ASK'
# ask WORD...: what bash offers after them, sorted, on one line; words cut as bash cuts them, the last one is being typed
source "$1"; shift
COMP_WORDBREAKS=$' \t\n"\'><=;|&(:'
COMP_WORDS=()
for word in "$@"; do
  while [[ $word == *[:=]* ]]; do
    head=${word%%[:=]*}
    [[ -n $head ]] && COMP_WORDS+=("$head")
    word=${word#"$head"}
    COMP_WORDS+=("${word:0:1}")
    word=${word:1}
    [[ -z $word ]] && continue 2
  done
  COMP_WORDS+=("$word")
done
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_forge forge
printf '%s\n' "${COMPREPLY[@]}" | sort | paste -sd' '
ASK
ask() { (cd "$work" && bash "$work/ask.bash" "$work/forge.bash" "$@"); }
# offers WANTED WORD...: exactly these
offers() {
  local wanted="$1" got
  shift
  got="$(ask "$@")"
  [[ "$got" == "$wanted" ]] || fail "completion of '$*': '$got', wanted '$wanted'"
}
offers "doctor" forge doc
offers "gemm_f16 gemm_f32" forge run gemm
offers "" forge run gemm_f32 gemm
offers "--goal" forge run softmax_f32 --goa
offers "--json" forge kb show --js
offers "certify" forge kb cert
offers "last" forge run --resume la
offers "softmax_f32-20260101-000000-abcd" forge show softmax
offers "softmax_f32" forge check some_folder --operator softm
offers "softmax_f32" forge --quiet run softm
offers "softmax_f32" forge compare gemm_f32 softm
offers "x86-64-avx512" forge run --target cpu:x86-64-avx5
offers "cpu:x86-64-avx2 cpu:x86-64-avx512" forge run --target cpu
offers "0123456789ab" forge run softmax_f32 --reference gen:01
offers "bash" forge completion ba
mkdir "$work/my kernel"
offers "my kernel" forge check my
offers "my kernel" forge export my
offers "0123456789ab" forge export 01
offers "0123456789ab" forge export gen:01
[[ "$(ask forge export '')" == *"0123456789ab"*"my kernel"* ]] || fail "forge export offers generations and folders: $(ask forge export '')"
offers "cpp flashinfer-trace" forge export x --as ''
offers "cpu hopper" forge suite ''
offers "--help" forge serve --hel
offers "" forge run softmax_f32 --seed 1
# every command and every long option that --help shows is offered
for command in '' run 'kb certify' 'selftest power'; do
  for word in $(forge $command --help | grep -oE '^ +(-[a-z],)?--[a-z-]+' | sed 's/.*--/--/'); do
    ask forge $command "$word" | grep -qw -- "$word" || fail "$word of '$command' is not offered"
  done
done
[[ "$(ask forge '')" == *" suite "* && "$(ask forge '')" == *operators* ]] || fail "commands"
entry="$(ls "$root/knowledge/cpu" | head -n 1)"
offers "$entry" forge kb show "$entry"

# --- in zsh, through a terminal of its own, where it is installed
forge completion zsh >"$work/_forge"
if command -v zsh >/dev/null; then
  zsh_offers() { zsh -f "$root/tests/suites/comfort/ask.zsh" "$work" "$1" "$2" || fail "zsh: '$1'"; }
  zsh_offers 'forge run softm' 'forge run softmax_f32'
  zsh_offers 'forge kb certi' 'forge kb certify'
  zsh_offers 'forge export 01' 'forge export 0123456789ab'
  zsh_offers "forge export $work/my" "$work/my\\ kernel"
  zsh_offers 'forge export x --as fl' 'forge export x --as flashinfer-trace'
  zsh_offers 'forge run --target=cpu:x86-64-avx5' '=cpu:x86-64-avx512'
else
  echo "no zsh here: its script was made, not tried"
fi

# --- the manual page: no warning of groff, and every command is in it
forge man >"$work/forge.1"
groff -man -Tutf8 -ww -z "$work/forge.1" >"$work/out" 2>&1 || { cat "$work/out"; fail "groff"; }
[[ ! -s "$work/out" ]] || { cat "$work/out"; fail "groff warns"; }
MANWIDTH=100 groff -man -Tutf8 -P-c "$work/forge.1" | sed 's/.\x08//g' >"$work/page"
for command in $(forge --help | awk '/^Subcommands:/ { on = 1; next } /^[^ ]/ { on = 0 } on && /^  [a-z]/ { print $1 }') 'kb certify' 'selftest aa' 'new operator'; do
  grep -qE "^ +forge $command( |$)" "$work/page" || grep -qE "^ +forge $command [a-z]" "$work/page" || fail "the manual page lacks '$command'"
done
grep -q 'FORGE_HOME' "$work/page" || fail "the manual page lacks FORGE_HOME"

# --- forge init: every key of the formats' pages is there; uncommented it is read; nothing is overwritten
try 0 "export FORGE_HOME=" forge init "$work/mine"
for file in config models; do
  for key in $(sed -n '/^| key/,/^$/s/^| \(.*\) | .* | .* |$/\1/p' "$root/docs/formats/$file.md" | grep -oE '`[a-z_.]+`' | tr -d '`' | sed 's/.*\.//'); do
    [[ $key == _* ]] && key="dollars_per_million$key"
    grep -qE "^#?$key = " "$work/mine/$file.toml" || fail "$file.toml of forge init lacks $key"
  done
done
uncommented() { sed 's/^#\([^ ]\)/\1/' "$1"; }  # "# " begins a sentence, "#key" a setting
mkdir "$work/set"
for file in config models; do
  uncommented "$work/mine/$file.toml" >"$work/set/$file.toml"
  [[ $(grep -cE '^[a-z_]+ = ' "$work/set/$file.toml") -ge 7 ]] || fail "too few settings in $file.toml"
done
# Both are read before anything else of a run; a key that is not known shows that they are.
asks_a_model=(forge run softmax_f32 --reference none --coder 'anthropic:some-model@http://127.0.0.1:9' --wall-seconds 1)
try 2 'there is no operator' env FORGE_HOME="$work/set" forge run no_such_operator --target cpu:x86-64-avx2
FORGE_HOME="$work/set" ANTHROPIC_API_KEY=none timeout 100 "${asks_a_model[@]}" --target cpu:x86-64-avx2 >"$work/out" 2>&1 || true
grep -E 'models\.toml|config\.toml' "$work/out" && fail "what forge init writes is not read when uncommented"
for file in config models; do
  cp "$work/set/$file.toml" "$work/right"
  echo 'nosuch = 1' >>"$work/set/$file.toml"
  try 2 "$file.toml.*nosuch" env FORGE_HOME="$work/set" ANTHROPIC_API_KEY=none "${asks_a_model[@]}"
  mv "$work/right" "$work/set/$file.toml"
done
try 2 'exists already' forge init "$work/mine"
cp "$work/mine/config.toml" "$work/config.before"
rm "$work/mine/models.toml"
try 2 'config.toml' forge init "$work/mine"
[[ ! -e "$work/mine/models.toml" ]] || fail "forge init writes half"
cmp -s "$work/config.before" "$work/mine/config.toml" || fail "forge init overwrites"
try 0 "export FORGE_HOME=" forge init "$work/it's mine"
(eval "$(sed -n 's/.*\(export FORGE_HOME=\)/\1/p' "$work/out")" && [[ "$FORGE_HOME" == "$work/it's mine" ]]) || fail "what forge init prints is not what a shell reads"
try 0 'forge doctor' env FORGE_HOME="$work/fresh" forge init

# --- forge new operator: passes admission as it is
try 0 'selftest admission --operator mine_f32' forge new operator mine_f32 --into "$work/data/operators"
try 0 'mkdir -p' forge new operator other_f32 --into "$work/sp ace's/operators"
# The commands are run as they are printed, up to the judge's own.
(cd "$work" && bash -euo pipefail <(grep -E '^  (mkdir|g\+\+) ' "$work/out")) || fail "the commands after forge new operator"
for file in oracle expert-onednn; do [[ -s "$work/sp ace's/plugins/other_f32/$file.so" ]] || fail "no $file.so"; done
try 2 'exists already' forge new operator mine_f32 --into "$work/data/operators"
try 2 'no name for an operator' forge new operator Mine-f32 --into "$work/data/operators"
try 2 'a probe of the knowledge base' forge new operator stream_f32 --into "$work/data/operators"
grep -rq scaled_add "$work/data/operators/mine_f32" && fail "the example's name is left"
mkdir -p "$work/data/plugins/mine_f32"
for pair in oracle.cc:oracle.so experts/cpu/onednn.cc:expert-onednn.so; do
  g++ -std=c++20 -O1 -mavx2 -mfma -fopenmp -Wall -Wextra -Werror -Wno-missing-field-initializers -shared -fPIC -I "$root/include" \
    "$work/data/operators/mine_f32/${pair%%:*}" -o "$work/data/plugins/mine_f32/${pair##*:}" -ldnnl
done
FORGE_DATA="$work/data" FORGE_PLUGINS="$work/data/plugins" try 0 'mine_f32 .*onednn' forge operators
FORGE_DATA="$work/data" FORGE_PLUGINS="$work/data/plugins" try 0 'mine_f32 .*rejected' forge selftest admission --operator mine_f32

# --- forge selftest power --keep: a pair that differs in the spin only, and is right; what it was called is not asked here
forge selftest power --operator softmax_f32 --effect 0.9 --trials 1 --keep "$work/pair" >"$work/out" 2>&1 || [[ $? -eq 1 ]] || fail "power --keep: $(cat "$work/out")"
diff "$work/pair/plain/kernel.cpp" "$work/pair/slow/kernel.cpp" >"$work/diff" && fail "the pair does not differ"
grep -q '^<' "$work/diff" && fail "more than an addition: $(cat "$work/diff")"
grep -q selftest_spin "$work/pair/slow/launch.toml" || fail "the spin is not launched"
for side in plain slow; do try 0 'correct: ' forge check "$work/pair/$side" --operator softmax_f32; done
echo "comfort: all cases passed"
