#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Ablations that are switches of a run: without a reference, with one that is shown, without the disassembly. modes.sh BUILD
source "$(dirname "$0")/../support/suite.sh"

# Nobody to compare with: candidates are compared with each other, and the expert is met once, after the stop.
run 0 "$forge" run softmax_f32 --reference none --candidates 2 --wall-seconds 15
has 'no reference: candidates are compared with each other'
has 'confirmation: accepted'
has 'against the expert directly'
run 0 "$forge" replay last
has 'every decision repeats'

# A timeline of the kernel that was just sealed: every stage was timed, and what is rendered for its decisions is that kernel.
run 0 "$forge" analyse softmax_f32 --stages --json
has '"kernel":"gen0:[0-9a-f]{12} of softmax_f32"'
has '"complete":true'
has '"name":"exponential"[^}]*"seconds_without"'
has '"name":"store"[^}]*"seconds_without"'
has '"notes":\[\]'
run 0 "$forge" analyse softmax_f32 --stages --reference defaults
has '^the default choices of the blueprint of softmax_f32$'
has '^store +[0-9.]+ [mun]?s'
has 'the savings sum to|two copies of the whole differ by'

# A reference that is shown is in the brief, and nowhere when it is not.
mkdir "$work/reference"
cp "$root/tests/suites/by_hand/softmax.cpp" "$work/reference/kernel.cpp"
cat >"$work/reference/launch.toml" <<'PLAN'
format = 1
target = "cpu:x86-64-avx2"

[[launch]]
entry = "softmax_f32"
grid = "rows"
PLAN
inner='exp_of'  # a name of the reference's own
task=(run softmax_f32 --target cpu:x86-64-avx2 --reference "package:$work/reference")
run 4 "$forge" "${task[@]}" --coder "folder:$work/shown" --show-reference
has 'forge submit'
has "$inner" "$work/shown/M0/BRIEF.md"
# The run keeps what it is measured against: it goes on and replays when the folder is gone.
mv "$work/reference" "$work/elsewhere"
run 0 "$forge" status last
run 1 "$forge" submit "$work/shown/M0" --give-up 'seen enough'
run 0 "$forge" replay last
has 'every decision repeats'
mv "$work/elsewhere" "$work/reference"
run 4 "$forge" "${task[@]}" --coder "folder:$work/sealed"
lacks "$inner" "$work/sealed/M0/BRIEF.md"

# Nothing that is read off the reference's code is in a brief without the disassembly.
run 4 "$forge" "${task[@]}" --coder "folder:$work/blind" --no-disassembly
lacks 'spills in hot loops' "$work/blind/M0/BRIEF.md"
run 4 "$forge" "${task[@]}" --coder "folder:$work/plain" --no-knowledge
lacks 'entry [a-z-]+, certified' "$work/plain/M0/BRIEF.md"
echo "modes: no reference, a shown one, no disassembly, no knowledge"
