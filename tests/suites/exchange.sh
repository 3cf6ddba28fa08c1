#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Kernels in the forms that others use, by the real binary: an export is built as its README says, called, and held against the
# operator's oracle. exchange.sh BUILD
source "$(dirname "$0")/../support/suite.sh"
here="$root/tests/suites/exchange"
# Of a sanitizer build the oracle needs that sanitizer's run time first, which a program of another's compiler does not bring.
sanitizer="$(ldd "$build/plugins/softmax_f32/oracle.so" | awk '/lib[a-z]*san\.so/ { print $3 }' | paste -sd:)"
checks=(env ${sanitizer:+LD_PRELOAD="$sanitizer" ASAN_OPTIONS=detect_leaks=0})

# The commands of an export's README, as they stand there.
readme_commands() { awk '/^```sh/ { inside = 1; next } /^```/ { inside = 0 } inside' "$1/README.md"; }
strict=(g++ -std=c++20 -O1 -g -Wall -Wextra -Wshadow -Werror -pthread -I "$root/include")

# --- C++ for a CPU ---------------------------------------------------------------------------------------------------------------
try 0 'README.md' "$forge" export "$here/softmax" --operator softmax_f32 --as cpp "$work/softmax"
for f in softmax_f32.h softmax_f32.cc kernel.cpp forge_args.h README.md; do [[ -s "$work/softmax/$f" ]] || { echo "FAILED: no $f"; exit 1; }; done
if grep -rn "$root\|$work" "$work/softmax"; then echo "FAILED: an export names the machine that it was made on"; exit 1; fi
(cd "$work/softmax" && bash -euo pipefail <(readme_commands .))
"${strict[@]}" -I "$work/softmax" "$here/check_softmax.cc" "$work/softmax/softmax_f32.cc" "$work/softmax/kernel.o" -o "$work/check" -ldl
if grep -q ' avx2 ' /proc/cpuinfo; then
  try 0 'rows 129: worst' "${checks[@]}" "$work/check" "$build/plugins/softmax_f32/oracle.so"
  grep -q 'outside the kernel.s domain: "rows >= 1"' "$work/out"
  grep -q 'rows: out of range' "$work/out"
  grep -q 'x: is not aligned to 64 bytes' "$work/out"
  grep -q 'x: is null' "$work/out"
fi
"${strict[@]}" -std=c++17 -fsyntax-only "$work/softmax/softmax_f32.cc"

# Neither the oracle nor an expert is asked, so the plugins may be missing.
mkdir "$work/no-plugins"
FORGE_PLUGINS="$work/no-plugins" try 0 'README.md' "$forge" export "$here/softmax" --operator softmax_f32 --as cpp "$work/without"
diff -r -x '*.o' "$work/softmax" "$work/without" || { echo "FAILED: without plugins it is another export"; exit 1; }

# What cannot be exported
try 2 'is not empty' "$forge" export "$here/softmax" --operator softmax_f32 --as cpp "$work/softmax"
try 2 'operator NAME' "$forge" export "$here/softmax" --as cpp "$work/none"
try 2 'no operator .softmax_f23.' "$forge" export "$here/softmax" --operator softmax_f23 --as cpp "$work/none"
try 2 'no sealed kernel' "$forge" export gen:abcdef --as cpp "$work/none"
try 2 'rust not in .cpp,flashinfer-trace' "$forge" export "$here/softmax" --operator softmax_f32 --as rust "$work/none"
try 2 'unknown name .rows.' "$forge" export "$here/softmax" --operator gemm_f32 --as cpp "$work/none"
try 2 'to is required' "$forge" export "$here/softmax" --operator gemm_f32 --as cpp
[[ ! -e "$work/none" ]] || { echo "FAILED: a refused export left a folder"; exit 1; }

# --- A FlashInfer-Trace solution ---------------------------------------------------------------------------------------------------
try 0 'as solution forge_softmax_f32_' "$forge" export "$here/softmax" --operator softmax_f32 --as flashinfer-trace "$work/solution.json"
try 2 'exists already' "$forge" export "$here/softmax" --operator softmax_f32 --as flashinfer-trace "$work/solution.json"
"$forge" export "$here/softmax" --operator softmax_f32 --as flashinfer-trace - >"$work/solution.out"
cmp "$work/solution.json" "$work/solution.out"
(cd "$work" && try 2 'holds no folder' "$forge" export "$here/softmax" --operator softmax_f32 --as cpp -)
try 2 'is for --as cpp' "$forge" export "$here/softmax" --operator softmax_f32 --as flashinfer-trace "$work/none" --namespace mine
try 0 'README.md' "$forge" export "$here/softmax" --operator softmax_f32 --as cpp "$work/named" --namespace mine
grep -q 'namespace mine' "$work/named/mine.h"
(cd "$work/named" && bash -euo pipefail <(readme_commands .))
[[ ! -e "$work/-" && ! -e "$work/none" ]] || { echo "FAILED: a file was written that nobody asked for"; exit 1; }
mkdir "$work/solution"
python3 - "$work/solution.json" "$work/solution" <<'EOF'
import json, sys
s = json.load(open(sys.argv[1]))
assert s["definition"] == "softmax_f32" and s["spec"]["entry_point"].split("::")[0] in [x["path"] for x in s["sources"]]
for x in s["sources"]:
    open(sys.argv[2] + "/" + x["path"], "w").write(x["content"])
EOF
# Its builder passes -std=c++17 -fPIC -O2 and nothing else: what the kernel needs must stand in the source.
(cd "$work/solution" && g++ -std=c++17 -fPIC -O2 -c kernel.cpp softmax_f32.cc)
"${strict[@]}" -I "$work/solution" "$here/check_softmax.cc" "$work/solution"/*.o -o "$work/check_solution" -ldl
if grep -q ' avx2 ' /proc/cpuinfo; then try 0 'rows 129: worst' "${checks[@]}" "$work/check_solution" "$build/plugins/softmax_f32/oracle.so"; fi
if python3 -c 'import tvm_ffi, numpy' 2>/dev/null; then
  try 0 'right' python3 "$here/check_solution.py" "$work/solution.json"
else
  echo "exchange: without tvm_ffi and numpy the solution is not called through its binding"
fi

# --- C++ for a GPU ---------------------------------------------------------------------------------------------------------------
nvcc="${FORGE_NVCC:-$(PATH="$PATH:/usr/local/cuda/bin" command -v nvcc || true)}"
if [[ -n "$nvcc" ]]; then
  try 0 'README.md' "$forge" export "$here/softmax_cuda" --operator softmax_f32 --as cpp "$work/gpu"
  export CUDA_HOME="${CUDA_HOME:-/usr/local/cuda}"
  (cd "$work/gpu" && bash -euo pipefail <(readme_commands .))
  gpu=(g++ -std=c++17 -O1 -Wall -Wextra -Wshadow -Werror -isystem "$CUDA_HOME/include" -I "$work/gpu")
  "${gpu[@]}" -fsyntax-only "$work/gpu/softmax_f32.cc" "$here/check_softmax_cuda.cc"
  # What it asks of the driver, call by call.
  "${gpu[@]}" "$here/check_launches.cc" "$work/gpu"/*.o -o "$work/launches"
  "$work/launches" >"$work/launches.txt"
  diff -u "$here/launches.txt" "$work/launches.txt" || { echo "FAILED: the launcher asks other things of the driver"; exit 1; }
  if compgen -G '/dev/nvidia[0-9]*' >/dev/null; then
    g++ -std=c++17 -O1 -isystem "$CUDA_HOME/include" -I "$work/gpu" "$here/check_softmax_cuda.cc" "$work/gpu"/*.o -o "$work/check_gpu" -L "$CUDA_HOME/lib64/stubs" -lcuda
    try 0 'rows 129: worst' "$work/check_gpu"
  else
    echo "exchange: without a card the GPU export is compiled, and its launches are compared, but it is not run"
  fi
  try 0 'as solution mine' "$forge" export "$here/softmax_cuda" --operator softmax_f32 --as flashinfer-trace "$work/gpu.json" --name mine --author me
  python3 -c 'import json, sys; s = json.load(open(sys.argv[1])); assert (s["name"], s["author"], s["spec"]["language"]) == ("mine", "me", "cuda")' "$work/gpu.json"
else
  echo "exchange: without nvcc nothing is exported for a GPU"
fi

# --- Tasks of others -------------------------------------------------------------------------------------------------------------
mkdir -p "$work/set/definitions/softmax" "$work/set/workloads/softmax" "$work/bench"
sed 's/softmax_f32/their_softmax/' "$root/operators/softmax_f32/definition.json" >"$work/set/definitions/softmax/their_softmax.json"
for rows in 3 500; do
  echo '{"definition": "their_softmax", "workload": {"uuid": "w'$rows'", "axes": {"rows": '$rows'}, "inputs": {"x": {"type": "random"}}}}'
done >"$work/set/workloads/softmax/their_softmax.jsonl"
cat >"$work/bench/1_Relu.py" <<'EOF'
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
open("ran", "w")  # would leave a file, if it were run
def get_inputs():
    return [torch.rand(16, 77)]
EOF
cat >"$work/bench/2_Linear.py" <<'EOF'
import torch
class Model(torch.nn.Module):
    def __init__(self):
        self.fc = torch.nn.Linear(3, 4)
    def forward(self, x):
        return self.fc(x)
def get_inputs():
    return [torch.rand(16, 3)]
EOF
cd "$work"
try 0 'taken +their_softmax .*4 things missing' "$forge" import "$work/set" --to "$work/ops"
try 0 'missing: an oracle' "$forge" import "$work/set/definitions/softmax/their_softmax.json" --to "$work/ops2"
cmp "$work/set/definitions/softmax/their_softmax.json" "$work/ops/their_softmax/definition.json"
grep -q 'axes = { rows = 500 }' "$work/ops/their_softmax/task.toml"
try 1 'exists already' "$forge" import "$work/set" --to "$work/ops"
try 1 'refused .*2_Linear.py:4: the model makes weights' "$forge" import "$work/bench" --to "$work/ops"
grep -q '1 of 2 taken' "$work/out"
[[ -s "$work/ops/kernelbench_1_Relu/IMPORT.md" && ! -e ran ]] || { echo "FAILED: no IMPORT.md, or foreign Python was run"; exit 1; }
try 2 'does not exist' "$forge" import "$work/nothing"
try 2 'no task that is known' "$forge" import "$root/docs/formats" --to "$work/ops3"
try 2 'from is required' "$forge" import
"$forge" import "$work/bench" --to "$work/ops4" --json >"$work/json" || true
python3 -c 'import json, sys; items = json.load(open(sys.argv[1]))["items"]; assert [("refused" in i) for i in items] == [False, True]' "$work/json"

# An imported operator does not load as it is, and says what it lacks; filled in, with the oracle of the operator it is, it judges kernels.
mkdir -p "$work/data"
cp -r "$root/operators" "$work/data/operators"
rm -rf "$work/data/operators/softmax_f32"
cp -r "$work/ops/their_softmax" "$work/data/operators/softmax_f32"
sed -i 's/their_softmax/softmax_f32/' "$work/data/operators/softmax_f32/"{definition.json,task.toml}
try 2 "output 'y' has no judge" env FORGE_DATA="$work/data" "$forge" check "$here/softmax" --operator softmax_f32 --target cpu:x86-64-avx2
cat >>"$work/data/operators/softmax_f32/task.toml" <<'EOF'
[[judge]]
output = "y"
kind = "relative"
tolerance = 2.1e-5
absolute = 7.52316384526264e-37
source = "as in operators/softmax_f32"
[cost]
flops = "5 * rows * columns"
bytes = "8 * rows * columns"
EOF
if grep -q ' avx2 ' /proc/cpuinfo; then
  try 0 'accepted' env FORGE_DATA="$work/data" FORGE_PLUGINS="$build/plugins" "$forge" check "$here/softmax" --operator softmax_f32 --target cpu:x86-64-avx2
fi

echo "exchange: fine"
