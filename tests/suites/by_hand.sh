#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A whole run by hand: open, look, hand in a wrong kernel, try a right one out, hand it in, finish; the record replays. by_hand.sh BUILD
source "$(dirname "$0")/../support/suite.sh"

run 2 "$forge" submit
run 0 "$forge" open softmax_f32 --folder "$work/mine" --gate-seconds 3000
has 'forge submit'
m0="$work/mine/M0"
for f in BRIEF.md kernel.cpp launch.toml forge_args.h; do [[ -s "$m0/$f" ]] || { echo "FAILED: no $f"; exit 1; }; done
has '## Accepted when' "$m0/BRIEF.md"
has 'TODO' "$m0/kernel.cpp"
cd "$m0"
run 0 "$forge" status
has "folder: $m0"

# The skeleton builds and is simply not done; a hand-in of it says so by name, and what a person wrote stays.
run 0 "$forge" submit --build
has 'widest_vector_bits'
run 1 "$forge" submit
has 'reason: not_written'
has 'not_written' "$m0/feedback/02.json"
sed 's/columns;/columns + 1;/' "$root/tests/suites/by_hand/softmax.cpp" >kernel.cpp
run 1 "$forge" submit
has 'reason: (wrong_result|not_written|out_of_bounds|crashed|non_finite)'
cmp -s kernel.cpp <(sed 's/columns;/columns + 1;/' "$root/tests/suites/by_hand/softmax.cpp") || { echo 'FAILED: the kernel was overwritten'; exit 1; }
echo 'int main( {' >kernel.cpp
run 1 "$forge" submit --build
has 'not built'
rm kernel.cpp
run 2 "$forge" submit
has 'holds no kernel.cpp'
cp "$root/tests/suites/by_hand/softmax.cpp" kernel.cpp
run 0 "$forge" submit --check
has 'correct'
[[ "$("$forge" status --json | grep -o '"reason":"[a-z_]*"' | wc -l)" -eq 2 ]] || { echo 'FAILED: trying out counted as a hand-in'; exit 1; }

# Killed while the gate works: the hand-in is neither lost nor judged twice.
"$forge" submit >"$work/out" 2>&1 & pid=$!
sleep 0.5
kill -9 $pid 2>/dev/null || true
wait $pid 2>/dev/null || true
run 0 "$forge" submit "$m0"
m1="$work/mine/M1"
[[ -s "$m1/BRIEF.md" ]] || { echo 'FAILED: no M1'; tail -c 2000 "$work/out"; exit 1; }
cmp -s "$m1/kernel.cpp" "$m0/kernel.cpp" || { echo 'FAILED: M1 does not begin with the kernel of M0'; exit 1; }
run 0 "$forge" status --json
has '"milestone":\{"id":"M1"'
# A hand-in goes to the milestone whose folder it comes from, and nowhere else; two commands at once do not take each other's request.
cd "$work"
run 2 "$forge" submit
has 'no milestone.s folder'
cd "$m0"
run 2 "$forge" submit
has 'M0 has ended here, M1 is open'
cd "$m1"
"$forge" submit --time >"$work/first" 2>&1 & pid=$!
for _ in $(seq 100); do [[ -e .forge-hand-in ]] && break; sleep 0.02; done
run 3 "$forge" submit --give-up 'a slip'
has 'another forge process works on this milestone'
wait $pid
has 'times_as_fast_as_first' "$work/first"
run 0 "$forge" submit --time
has 'times_as_fast_as_first'
run '0 1' "$forge" submit --finish
has 'stopped: enough'
run 2 "$forge" submit
has 'has ended'
run 0 "$forge" status
has 'ended: enough'
run 0 "$forge" replay last
has 'every decision repeats'
# Nothing that is kept from a coding agent lies in the folders.
lacks "$FORGE_HOME|vault|oracle\.so|experts/" "$work/mine"
echo "by_hand: a run from open to finish"
