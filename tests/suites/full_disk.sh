#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A disk that fills in the middle of something, and empties again: what was recorded, sealed or certified stays, the message says what to
# do with exit code 3, no kernel is blamed for it, and afterwards it goes on. full_disk.sh BUILD   Needs a small file system to fill: a
# tmpfs in a mount namespace, which root has, and a user where user namespaces are allowed.
if [[ "${2:-}" != inside ]]; then
  for how in -m -rm; do
    if unshare $how bash -c 'd="$(mktemp -d)" && mount -t tmpfs tmpfs "$d" && umount "$d" && rmdir "$d"' 2>/dev/null; then
      exec unshare $how bash "$0" "$1" inside
    fi
  done
  echo "full_disk: SKIPPED: no tmpfs can be mounted here, not even in a user namespace"
  exit 77
fi
source "$(dirname "$0")/../support/suite.sh"
disk="$work/disk"
at_end() { umount "$disk" 2>/dev/null || true; }
mkdir -p "$disk" "$work/tmp"
mount -t tmpfs -o size=16m tmpfs "$disk"
small_data
export FORGE_HOME="$disk/home" TMPDIR="$work/tmp"
sed -i 's/axes = { rows = [0-9]* }/axes = { rows = 16 }/; s/^max = .*/max = 4/' "$FORGE_DATA/knowledge/operators/row_scale_f32/task.toml"
candidate control_correct "$work/package"
# fill [KILOBYTES]: to the last byte, but for so many
fill() {
  cat /dev/zero >"$disk/fill" 2>/dev/null || true
  [[ $# -eq 0 ]] || truncate -s "-$(($1 * 1024))" "$disk/fill"
}
empty() { rm -f "$disk/fill"; }
no_junk() {
  local half
  half="$(find "$disk" "$work/data" \( -name '*.tmp[0-9]*' -o -name '.sealing*' -o -name '.forge-writing*' -o -name 'forge-scratch-*' \))"
  [[ -z "$half" ]] || fail "half-written: $half"
}
full='[Nn]o space (is )?left'

# A run, at several places: full, still full, and empty again.
for lines in 1 4 6 9; do
  rm -rf "$FORGE_HOME/runs"
  "$forge" run softmax_f32 --target "$target" --candidates 2 >"$work/out" 2>&1 </dev/null & run=$!
  journal=''
  while kill -0 "$run" 2>/dev/null; do
    journal="$(ls "$FORGE_HOME"/runs/*/journal.jsonl 2>/dev/null || true)"
    [[ -z "$journal" || $(wc -l <"$journal") -lt $lines ]] || break
    sleep 0.02
  done
  fill
  code=0
  wait "$run" || code=$?
  whole="$(wc -l <"$journal")"
  head -n "$whole" "$journal" >"$work/before"
  [[ -z "$(tail -c 1 "$journal")" ]] || fail "half a line was left in the journal"
  if [[ $code -ne 3 ]]; then  # the end was in what was left of its last page
    [[ $code -le 1 ]] && grep -q '"type":"run.end"' "$journal" || fail "at line $lines: exit $code"
  else
    grep -qE "$full" "$work/out" || fail "at line $lines: why is not said"
    id="$(basename "$(dirname "$journal")")"
    grep -q "free some space.*forge run --resume $id" "$work/out" || fail "at line $lines: what to do is not said"
    try 3 "$full" "$forge" run --resume last
    try 0 run.start "$forge" show last
    try 0 softmax_f32 "$forge" runs
    cmp -s "$work/before" <(head -n "$whole" "$journal") || fail "a recorded event was lost while the disk was full"
    empty
    try '0 1' '' "$forge" run --resume last
    cmp -s "$work/before" <(head -n "$whole" "$journal") || fail "a recorded event was lost"
  fi
  empty
  try 0 'every decision repeats' "$forge" replay last
  try 0 finished "$forge" runs
  no_junk
done

# Sealing: whole or not at all.
fill
try 3 "$full" "$forge" seal "$work/package" --operator softmax_f32 --target "$target" --reference none
empty
no_junk
try 0 '' "$forge" lineage softmax_f32
try '0 1' '' "$forge" seal "$work/package" --operator softmax_f32 --target "$target" --reference none

# The compiler's scratch folder: no room for the source, then none for the object. A kernel is not at fault.
for room in 0 8; do
  rm -rf "$FORGE_HOME/cache"
  mkdir -p "$disk/tmp" "$FORGE_HOME/cache"
  fill $room
  TMPDIR="$disk/tmp" FORGE_HOME="$work/home" try 3 "$full" "$forge" check "$work/package" --operator softmax_f32 --target "$target"
  rm -rf "$work/home"
  empty
  no_junk
done
TMPDIR="$disk/tmp" try 0 '^accepted' "$forge" check "$work/package" --operator softmax_f32 --target "$target"

# The cache of builds: what cannot be kept is built again.
rm -rf "$FORGE_HOME/cache"/?? && fill
try 0 '^accepted' "$forge" check "$work/package" --operator softmax_f32 --target "$target"
empty
no_junk

# Evidence, an entry's own file, a report, a trace and an export onto the full disk: the old file stays whole.
cp -r "$FORGE_DATA/knowledge" "$disk/knowledge" && rm -rf "$FORGE_DATA/knowledge" && ln -s "$disk/knowledge" "$FORGE_DATA/knowledge"
evidence() { sha256sum "$disk"/knowledge/cpu/row-resident/entry.toml "$disk"/knowledge/cpu/row-resident/evidence/*; }
was="$(evidence)"
for f in report.html trace.json; do echo old >"$disk/$f"; done
fill
FORGE_HOME="$work/home2" try 3 "$full" "$forge" kb certify row-resident --target "$target" --replace
FORGE_HOME="$work/home2" try 3 "$full" "$forge" kb retire row-resident
try 3 "$full" "$forge" report last -o "$disk/report.html"
try 3 "$full" "$forge" trace last -o "$disk/trace.json"
try 3 "$full" "$forge" export "$work/package" --operator softmax_f32 --as cpp "$disk/export"
# Room for the first files, not for all: nothing of them is left to be in the way.
cat >"$work/1_Relu.py" <<'EOF'
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
def get_inputs():
    return [torch.rand(16, 77)]
EOF
mkdir -p "$disk/exported" "$FORGE_DATA/docs/examples"
cp -r "$root/docs/examples/scaled_add_f32" "$FORGE_DATA/docs/examples/"
for room in 4 8 12; do
  empty && fill $room
  [[ $room -gt 8 ]] || try 3 "$full" "$forge" import "$work/1_Relu.py" --to "$disk"
  try 3 "$full" "$forge" export "$work/package" --operator softmax_f32 --as cpp "$disk/export"
  try 3 "$full" "$forge" export "$work/package" --operator softmax_f32 --as cpp "$disk/exported"
  try 3 "$full" "$forge" new operator mine_f32 --into "$disk"
  [[ ! -e "$disk/kernelbench_1_Relu" && ! -e "$disk/export" && ! -e "$disk/mine_f32" && -z "$(ls -A "$disk/exported")" ]] || fail "half a folder"
  no_junk
done
empty && fill
try 3 "$full" "$forge" runs --rebuild-index
[[ "$was" == "$(evidence)" && "$(cat "$disk/report.html" "$disk/trace.json")" == $'old\nold' ]] || fail "an old file was changed"
try 0 row-resident "$forge" kb list
empty
no_junk
try 0 '' "$forge" report last -o "$disk/report.html"
try 0 '' "$forge" trace last -o "$disk/trace.json"
try 0 '' "$forge" export "$work/package" --operator softmax_f32 --as cpp "$disk/export"
try 0 '' "$forge" export "$work/package" --operator softmax_f32 --as cpp "$disk/exported"
try 0 '' "$forge" import "$work/1_Relu.py" --to "$disk"
try 0 '' "$forge" new operator mine_f32 --into "$disk"
try 0 softmax_f32 "$forge" runs --rebuild-index
FORGE_HOME="$work/home2" try '0 1' row-resident "$forge" kb certify row-resident --target "$target" --replace
no_junk
echo "full_disk: $n cases"
