#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Bad input to the real binary: each a clear error that names the file, line or field, a documented exit code, nothing lost.
source "$(dirname "$0")/../support/suite.sh"

# flags and names
try 2 'operator' "$forge" run
try 2 'gemm_f32' "$forge" run gemm_f23
try 2 'unknown|not expected' "$forge" run gemm_f32 --goool 1
try 2 "forge has no command 'frob'" "$forge" frob
try 2 "did you mean 'lineage'" "$forge" -q lineag
try 2 "forge kb has no command 'sho'.*did you mean 'show'" "$forge" --json kb sho
try 2 'operator.*would be ignored' "$forge" run gemm_f32 --resume last
try 2 'candidates.*would be ignored' "$forge" run --resume last --candidates 3
try 2 'no operator .softmax_f23' "$forge" evolve softmax_f23
if grep -q generation "$work/out"; then echo "FAILED: a refused task has a generation" && exit 1; fi
try 2 'gpus not in .cpu,hopper' "$forge" suite gpus
try 2 'no operator .softmax_f3.*did you mean .softmax_f32' "$forge" lineage softmax_f3
try 0 'nothing was sealed yet for softmax_f32' "$forge" lineage softmax_f32
try 2 'no operator .dots_f3' "$forge" selftest admission --operator dots_f3
try 2 'nowhere' "$forge" suite cpu --seconds 1 -o /nowhere/at/all.json
try 0 '^\{\}$' "$forge" --json kb report
try 0 'exactly|at most|none|at least' "$forge" kb show packed-panel
if grep -E ' at least 0$' "$work/out"; then echo "FAILED: a term with a maximum says 'at least 0'" && exit 1; fi
try 2 'reference' "$forge" analyse softmax_f32 --reference nonsense
try 2 'target' "$forge" analyse softmax_f32 --target cpu:z80
try 2 'no stages that could be left out.*gen:ID, or defaults' "$forge" analyse softmax_f32 --stages --reference expert
try 3 'declares no stages' "$forge" analyse gemm_f32 --stages --reference defaults
try 2 'no run' "$forge" show no-such-run
try 2 'no run' "$forge" run --resume last
try 2 'no sealed kernel' "$forge" promote abcdef
try 2 'did you mean .nontemporal-store' "$forge" kb show nontemporal-stor
try 2 'suite' "$forge" suite gpu
try 2 'shown to nobody.*gen:ID' "$forge" run softmax_f32 --show-reference
try 2 'no coder is called.*builtin, folder' "$forge" run softmax_f32 --coder nobody
try 2 "has no expert 'foo'.*onednn" "$forge" run softmax_f32 --reference expert:foo
try 2 'is no reference' "$forge" run softmax_f32 --reference bla
try 2 'no/such' "$forge" run softmax_f32 --reference package:/no/such
for f in --wall-seconds --gate-seconds --goal --dollars; do try 2 'no number above 0' "$forge" run softmax_f32 $f nan; try 2 'no number above 0' "$forge" run softmax_f32 $f -1; done
try 0 'no run yet' "$forge" runs  # none of these began one
try 2 'names no folder' "$forge" run softmax_f32 --coder folder:
try 2 'tokens.*not in range' "$forge" run softmax_f32 --coder openai:m@http://127.0.0.1:9 --tokens 99999999999999999999
try 2 'is no URL' "$forge" run softmax_f32 --coder openai:m@ftp://127.0.0.1 --tokens 1000
try 2 'no architect is called' "$forge" run softmax_f32 --architect folder
try 2 'no tokens are granted.*--tokens' "$forge" run softmax_f32 --coder openai:m@http://127.0.0.1:9
try 3 'ANTHROPIC_API_KEY' env -u ANTHROPIC_API_KEY "$forge" run softmax_f32 --coder anthropic:m --tokens 1000
try 2 'nobody decides' "$forge" run softmax_f32 --no-plan --architect openai:m@http://127.0.0.1:9
try 2 'no coder is called' "$forge" compare softmax_f32 --arm coder=nobody
try 2 'excludes|exclud' "$forge" submit --check --finish
try 2 'say why' "$forge" submit --give-up ''
try 2 'always takes part' "$forge" compare softmax_f32 --arm full
try 2 'named twice' "$forge" compare softmax_f32 --arm no-plan --arm no-plan
try 2 'nowhere' "$forge" compare softmax_f32 -o /nowhere/at/all.json
try 2 'no part of an arm' "$forge" compare softmax_f32 --arm no-fun
try 0 'forge run gemm_f32' "$forge" --help
for c in doctor operators analyse run open submit status evolve replay suite check bench seal promote lineage runs show report kb selftest compare; do try 0 'Usage' "$forge" $c --help; done
"$forge" show nope --json >"$work/json" 2>/dev/null || true
grep -q '"error"' "$work/json"
"$forge" check --json >"$work/json" 2>/dev/null || true
grep -q '"error"' "$work/json"

# standard output that takes nothing: said on stderr, and the exit code tells
try 3 'standard output could not be written: No space left' bash -c "'$forge' runs >/dev/full"
try 3 'standard output could not be written: No space left' bash -c "'$forge' --json runs >/dev/full"
try 3 'standard output could not be written: No space left' bash -c "'$forge' --help >/dev/full"
try 3 'standard output could not be written: Bad file' bash -c "'$forge' runs >&-"
try 2 'standard output could not be written: Bad file' bash -c "'$forge' --json show nope >&-"
head -c 16 "$FORGE_HOME/index.sqlite" | grep -q 'SQLite format' # and not what was printed
try 0 'ended 141' bash -c "'$forge' --json doctor | true; echo ended \${PIPESTATUS[0]}"

# packages
package() { mkdir -p "$work/p"; rm -rf "$work/p/"*; printf '%s' "$1" >"$work/p/kernel.cpp"; printf '%s' "$2" >"$work/p/launch.toml"; }
kernel='#include "forge_args.h"
extern "C" void softmax(const forge_args*, const forge_block*) {}'
plan='format = 1
target = "cpu:x86-64-avx2"
[[launch]]
entry = "softmax"
grid = "rows"
'
check=("$forge" check "$work/p" --operator softmax_f32 --target cpu:x86-64-avx2)
try 2 'no-such-folder' "$forge" check "$work/no-such-folder" --operator softmax_f32
mkdir -p "$work/p" && rm -f "$work/p"/* && try 2 'kernel.cpp' "${check[@]}"
package "$kernel" "${plan}gird = 3"
try 1 'plan_invalid.*gird' "${check[@]}"
package "$kernel" "${plan/grid = \"rows\"/grid = \"rowz\"}"
try 1 'plan_invalid.*rowz' "${check[@]}"
package "$kernel" "${plan}block = 128"
try 1 'plan_invalid.*block' "${check[@]}"
package "$kernel" 'format = 1 target = '
try 1 'plan_invalid.*launch.toml:1' "${check[@]}"
package "$kernel" "${plan/softmax/other}"
try 1 'plan_invalid.*other' "${check[@]}"
package "$kernel" "${plan/rows/rows \/ (rows - rows)}"
try 1 'grid' "${check[@]}"
package "$kernel" "requires = [\"rows > 4096\"]
$plan"
try 1 'unsupported_shape.*rows > 4096' "${check[@]}"

# configuration
mkdir -p "$FORGE_HOME"
printf 'format = 1\n[budget]\ncandidats = 3\n' >"$FORGE_HOME/config.toml"
try 2 'config.toml:3.*candidats.*candidates' "$forge" run softmax_f32
printf 'format = 1\n[budget\n' >"$FORGE_HOME/config.toml"
try 2 'config.toml:2' "$forge" run softmax_f32
rm "$FORGE_HOME/config.toml"

# data: a copy of the tree with one file broken
data() { rm -rf "$work/data"; mkdir "$work/data"; cp -r "$root/operators" "$root/blueprints" "$root/knowledge" "$work/data/"; }
op="$work/data/operators/softmax_f32"
broken() { FORGE_DATA="$work/data" try "$@"; }
data && echo '{' >"$op/definition.json" && broken 2 'definition.json:[0-9]+' "$forge" analyse softmax_f32
data && sed -i 's/"value": 4096/"value": 4096000000000/' "$op/definition.json" && broken 3 'task.toml.*timed.*GB' "$forge" analyse softmax_f32
data && rm "$op/definition.json" && broken 2 'softmax_f32' "$forge" analyse softmax_f32
data && sed -i 's/"columns"$/"colums"/' "$op/definition.json" && broken 2 'definition.json.*colums' "$forge" analyse softmax_f32
data && sed -i 's/^tolerance/tolerence/' "$op/task.toml" && broken 2 'task.toml:[0-9]+.*tolerence.*tolerance' "$forge" analyse softmax_f32
data && sed -i '0,/"op_type"/s//"op_type": "twice",\n  "op_type"/' "$op/definition.json" && broken 2 "definition.json:[0-9]+.*'op_type' is there twice" "$forge" analyse softmax_f32
data && rm "$op/task.toml" && broken 2 'task.toml' "$forge" analyse softmax_f32
data && sed -i 's/^title/titel/' "$work/data/knowledge/cpu/nontemporal-store/entry.toml" && broken 2 'entry.toml:[0-9]+.*titel' "$forge" kb list
data && mkdir -p "$work/data/knowledge/cpu/nontemporal-store/evidence" && echo 'x' >"$work/data/knowledge/cpu/nontemporal-store/evidence/a.json" && broken 2 'a.json' "$forge" kb list
# one damaged entry hides no other; what asks for it, or decides by the knowledge, says what is wrong
data && echo 'id = ' >"$work/data/knowledge/cpu/nontemporal-store/entry.toml"
broken 2 'row-resident' "$forge" kb list
broken 2 'nontemporal-store/entry.toml:1' "$forge" kb list
broken 2 '"id":"nontemporal-store","state":"damaged","problem":".*entry.toml:1' "$forge" --json kb list
broken 2 'row-resident' "$forge" kb search row
broken 0 'row-resident:' "$forge" kb show row-resident
broken 2 'nontemporal-store/entry.toml:1' "$forge" kb show nontemporal-store
broken 2 'nontemporal-store/entry.toml:1' "$forge" kb retire nontemporal-store
broken 2 'nontemporal-store/entry.toml:1' "$forge" kb certify nontemporal-store
broken 3 'nontemporal-store/entry.toml:1' "$forge" doctor
broken 2 'nontemporal-store/entry.toml:1' "$forge" run softmax_f32 --candidates 1
try 2 'no run has proposed' "$forge" kb certify --proposed
data && sed -i 's/^default/defualt/' "$work/data/blueprints/cpu/softmax_f32/blueprint.toml" && broken 2 'blueprint.toml:[0-9]+.*defualt' "$forge" run softmax_f32 --candidates 1
data && rm -r "$work/data/blueprints/cpu/softmax_f32" && broken 2 'blueprint' "$forge" run softmax_f32 --candidates 1

# state that cannot be written: a home below a file fails for root too
: >"$work/file"
FORGE_HOME="$work/file/home" try 3 'FORGE_HOME' "$forge" runs
# a full disk: a tiny tmpfs, where mounting is allowed
if mkdir -p "$work/full" && unshare -m true 2>/dev/null; then
  try 3 'space|full' unshare -m bash -c "mount -t tmpfs -o size=64k tmpfs '$work/full' && dd if=/dev/zero of='$work/full/fill' bs=1k count=64 2>/dev/null; FORGE_HOME='$work/full/home' '$forge' runs --rebuild-index"
fi
# a full disk under runs that are there: they are listed and shown all the same, and what needs to write says why it cannot
if unshare -m true 2>/dev/null; then
  cat >"$work/fill.sh" <<'EOF'
mount -t tmpfs -o size=512k tmpfs "$FULL"
export FORGE_HOME="$FULL/home"
"$FORGE" runs >/dev/null
mkdir -p "$FORGE_HOME/runs/r-1"
cp "$JOURNAL" "$FORGE_HOME/runs/r-1/journal.jsonl"
[[ $INDEX == kept ]] || rm -f "$FORGE_HOME"/index.sqlite*
dd if=/dev/zero of="$FULL/fill" bs=1k count=1024 2>/dev/null
"$@"
EOF
  line='{"seq":1,"time":"2026-01-01T00:00:00Z","type":"run.start","request":{"task":{"operator":"gemm_f32"}},"response":null,"seconds":0.0,"prev":""'
  printf '%s,"hash":"%s"}\n' "$line" "$(printf '%s}' "$line" | sha256sum | head -c 16)" >"$work/journal.jsonl"
  export FULL="$work/full" FORGE="$forge" JOURNAL="$work/journal.jsonl" INDEX
  for INDEX in kept gone; do
    try 0 'r-1.*gemm_f32' unshare -m bash "$work/fill.sh" "$forge" runs
    try 0 'run.start' unshare -m bash "$work/fill.sh" "$forge" show r-1
  done
  INDEX=gone try 3 'no space is left.*free some' unshare -m bash "$work/fill.sh" "$forge" runs --rebuild-index
fi
# a damaged journal: named with its line, and the other runs are still listed
mkdir -p "$FORGE_HOME/runs/broken" && printf '{"seq":1}\n{}\n' >"$FORGE_HOME/runs/broken/journal.jsonl"
try 2 'journal.jsonl:1' "$forge" show broken
try 0 '' "$forge" runs
# a damaged sealed kernel: named with its file and what to do
lost="$FORGE_HOME/vault/softmax_f32/cpu-x86-64-avx2/0123abcd"
mkdir -p "$lost" && printf '{"format": 1, "id' >"$lost/record.json"
try 2 '0123abcd/record.json:1: not JSON.*put record.json back' "$forge" lineage
try 2 '"operator":"softmax_f32","target":"cpu:x86-64-avx2","id":"0123abcd","state":"damaged","problem":".*record.json:1' "$forge" --json lineage softmax_f32
try 0 'nothing was sealed yet for gemm_f32' "$forge" lineage gemm_f32
try 2 '0123abcd/record.json:1' "$forge" promote 0123
try 2 '0123abcd/record.json:1' "$forge" run softmax_f32 --reference gen:0123 --target cpu:x86-64-avx2
rm -r "$FORGE_HOME/vault/softmax_f32"
# a damaged index is made again
printf 'not a database at all, but a text that is long enough to be taken for a header of one' >"$FORGE_HOME/index.sqlite"
try 0 '' "$forge" runs
echo "bad_input: $n cases"
