#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# README.md's tables of results, written from the records in results/, so that no figure there is typed. A table stands between
# "<!-- table: FILE -->" and "<!-- end of table -->"; FILE is what `forge suite ... -o FILE` wrote.
#   scripts/tables.sh           writes them
#   scripts/tables.sh --check   changes nothing; exit 1 and the difference when README.md is not what the records say
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

table() {  # FILE
  jq -r '
    def cut(n): (. * pow(10; n) | round | tostring) as $d | ("0" * (n + 1 - ($d | length)) // "") + $d | .[:-n] + "." + .[-n:];
    ["operator", "reference", "speedup [95 %]", "verdict", "floor", "pairs"],
    (.runs[] | .timing as $t | [(.run | split("-")[0]), .reference.id] + (
       if $t then [($t.speedup | "\(.mid | cut(3)) [\(.low | cut(3)) \(.high | cut(3))]"),
                   # "faster" needs the outside clock too (docs/judging.md, "Two clocks"); records of before said it all the same
                   (if $t.comparison == "faster" and ($t.outside_speedup.low <= 1) then "ambiguous" else $t.comparison end),
                   # the floor of the verdict: its job measures one of its own, which its words name
                   ((.confirmation.detail // "" | capture("floor (?<f>[0-9.]+) %").f) // (.floor.ratio * 100 | cut(2))) + " %", ($t.pairs | tostring)]
       else ["-", "nothing confirmed", "-", "-"] end))
    | @tsv' "$1" | awk -F'\t' '
      { for (i = 1; i <= NF; i++) { cell[NR, i] = $i; if (length($i) > width[i]) width[i] = length($i) } }
      END {
        for (r = 1; r <= NR; r++) {
          line = ""
          for (i = 1; i <= NF; i++) line = line sprintf("%-*s  ", width[i], cell[r, i])
          sub(/ +$/, "", line)
          print line
        }
      }'
  jq -r '"\ngeometric mean against the better expert: \(.geomean * 1000 | round / 1000), worst \(.worst * 1000 | round / 1000); \(.seconds | round) s in all, \(.date[0:10])"' "$1"
}

out="$(mktemp)"
trap 'rm -f "$out"' EXIT
skip=
while IFS= read -r line; do
  if [[ "$line" == '<!-- end of table -->' ]]; then skip=; fi
  [[ "$skip" ]] || printf '%s\n' "$line"
  if [[ "$line" =~ ^'<!-- table: '(.+)' -->'$ ]]; then
    skip=1
    printf '```\n%s\n```\n' "$(table "${BASH_REMATCH[1]}")"
  fi
done <README.md >"$out"
if [[ "${1:-}" == --check ]]; then
  diff -u README.md "$out" || { echo 'README.md is not what results/ says; run scripts/tables.sh' >&2; exit 1; }
else
  cat "$out" >README.md
fi
