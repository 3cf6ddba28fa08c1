# SPDX-License-Identifier: Apache-2.0
# What every suite begins with:  source "$(dirname "$0")/../support/suite.sh"  gives it
#   $root, $build, $forge   the source tree; the build folder, which is the suite's first argument; the program in it
#   $work                   a folder of its own, which is kept where the suite fails; FORGE_HOME is in it, FORGE_DATA is the tree
#   $target                 one that every machine here runs
# A suite that has something to end before that folder goes defines at_end.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
build="${1:-}"
[[ -z "$build" ]] || build="$(cd "$build" && pwd)"
forge="$build/forge"
target=cpu:x86-64-avx2
work="$(mktemp -d)"
export FORGE_HOME="$work/home" FORGE_DATA="$root"

suite_ends() {
  local code=$?
  if declare -F at_end >/dev/null; then at_end; fi
  if [[ $code -eq 0 ]]; then rm -rf "$work"; else echo "kept: $work" >&2; fi
}
trap suite_ends EXIT

# fail WHY...: and the end of what was said last, to the files that suites let programs write into
fail() {
  local file
  echo "FAILED: $*"
  for file in out log err body; do [[ ! -f "$work/$file" ]] || tail -c 2000 "$work/$file"; done
  exit 1
}
n=0  # commands that run and try ran
# run CODES COMMAND...: one of the exit codes ("0 1"); stdout and stderr go to $work/out
run() {
  local codes="$1" got=0
  shift
  "$@" >"$work/out" 2>&1 </dev/null || got=$?
  n=$((n + 1))
  [[ " $codes " == *" $got "* ]] || fail "$* : exit $got (wanted $codes)"
}
# try CODES TEXT COMMAND...: and a text, a pattern, that the output must hold
try() {
  local text="$2"
  run "$1" "${@:3}"
  grep -qE -- "$text" "$work/out" || fail "${*:3} : text wanted: $text"
}
has() { grep -qE -- "$1" "${2:-$work/out}" || fail "no '$1' in ${2:-the output}: $(tail -c 500 "${2:-$work/out}")"; }
lacks() { if grep -qrE -- "$1" "${@:2}"; then fail "'$1' is in ${*:2}: $(grep -rE -- "$1" "${@:2}" | head -3)"; fi; }

# small_data: FORGE_DATA becomes a copy with one operator of few rows, which is judged at once
small_data() {
  export FORGE_DATA="$work/data"
  mkdir -p "$FORGE_DATA/operators"
  cp -r "$root/blueprints" "$root/knowledge" "$root/agents" "$FORGE_DATA/"
  cp -r "$root/operators/softmax_f32" "$FORGE_DATA/operators/"
  sed -i 's/axes = { rows = [0-9]* }/axes = { rows = 24 }/; s/^max = .*/max = 9/; s/^always = .*/always = [1]/' \
    "$FORGE_DATA/operators/softmax_f32/task.toml"
}
# candidate NAME FOLDER: one of tests/exploits/gate as a package for $target
candidate() {
  mkdir -p "$2"
  cp "$root/tests/exploits/gate/$1/kernel.cpp" "$2/"
  sed "s/{{target}}/$target/" "$root/tests/exploits/gate/$1/launch.toml" >"$2/launch.toml"
}
