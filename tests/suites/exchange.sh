#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Kernels in the forms that others use, by the real binary: an export is built as its README says, called, and held against the
# operator's oracle. exchange.sh BUILD
set -euo pipefail
build="$1"
root="$(cd "$(dirname "$0")/../.." && pwd)"
here="$root/tests/suites/exchange"
work="$(mktemp -d)"
trap 'if [[ $? -eq 0 ]]; then rm -rf "$work"; else echo "kept: $work" >&2; fi' EXIT
export FORGE_HOME="$work/home" FORGE_DATA="$root"
forge="$build/forge"
# run CODE TEXT COMMAND...: the exit code, and a text that the output must hold
run() {
  local code="$1" text="$2" got=0
  shift 2
  "$@" >"$work/out" 2>&1 </dev/null || got=$?
  if [[ $got -ne $code ]] || ! grep -qE -- "$text" "$work/out"; then
    echo "FAILED: $* : exit $got (wanted $code), text wanted: $text"
    head -c 2000 "$work/out"
    exit 1
  fi
}
# The commands of an export's README, as they stand there.
readme_commands() { awk '/^```sh/ { inside = 1; next } /^```/ { inside = 0 } inside' "$1/README.md"; }
strict=(g++ -std=c++20 -O1 -g -Wall -Wextra -Wshadow -Werror -pthread -I "$root/include")

# --- C++ for a CPU ---------------------------------------------------------------------------------------------------------------
run 0 'README.md' "$forge" export "$here/softmax" --operator softmax_f32 --as cpp "$work/softmax"
for f in softmax_f32.h softmax_f32.cc kernel.cpp forge_args.h README.md; do [[ -s "$work/softmax/$f" ]] || { echo "FAILED: no $f"; exit 1; }; done
if grep -rn "$root\|$work" "$work/softmax"; then echo "FAILED: an export names the machine that it was made on"; exit 1; fi
(cd "$work/softmax" && bash -euo pipefail <(readme_commands .))
"${strict[@]}" -I "$work/softmax" "$here/check_softmax.cc" "$work/softmax/softmax_f32.cc" "$work/softmax/kernel.o" -o "$work/check" -ldl
if grep -q ' avx2 ' /proc/cpuinfo; then
  run 0 'rows 129: worst' "$work/check" "$build/plugins/softmax_f32/oracle.so"
  grep -q 'outside the kernel.s domain: "rows >= 1"' "$work/out"
  grep -q 'rows: out of range' "$work/out"
  grep -q 'x: is not aligned to 64 bytes' "$work/out"
  grep -q 'x: is null' "$work/out"
fi
"${strict[@]}" -std=c++17 -fsyntax-only "$work/softmax/softmax_f32.cc"

# What cannot be exported
run 2 'is not empty' "$forge" export "$here/softmax" --operator softmax_f32 --as cpp "$work/softmax"
run 2 'operator NAME' "$forge" export "$here/softmax" --as cpp "$work/none"
run 2 'no operator .softmax_f23.' "$forge" export "$here/softmax" --operator softmax_f23 --as cpp "$work/none"
run 2 'no sealed kernel' "$forge" export gen:abcdef --as cpp "$work/none"
run 2 'no form' "$forge" export "$here/softmax" --operator softmax_f32 --as rust "$work/none"
run 2 'unknown name .rows.' "$forge" export "$here/softmax" --operator gemm_f32 --as cpp "$work/none"
run 2 'to is required' "$forge" export "$here/softmax" --operator gemm_f32 --as cpp
[[ ! -e "$work/none" ]] || { echo "FAILED: a refused export left a folder"; exit 1; }

echo "exchange: fine"
