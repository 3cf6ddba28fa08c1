#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An installed tree finds its own data, plugins and runner, wherever it is moved; and makes a kernel package run. install.sh BUILD
source "$(dirname "$0")/../support/suite.sh"
unset FORGE_DATA FORGE_PLUGINS

cmake --install "$build" --prefix "$work/first" >"$work/out" 2>&1 || { tail "$work/out"; fail "cmake --install"; }
mv "$work/first" "$work/usr"
forge="$work/usr/bin/forge"
"$forge" doctor --json >"$work/doctor.json" || { cat "$work/doctor.json"; fail "forge doctor: something essential is missing"; }
grep -q "$work/usr/lib/forge/forge-runner" "$work/doctor.json" || { cat "$work/doctor.json"; fail "another runner than the installed one"; }
for op in "$root"/operators/*/definition.json; do
  op="$(basename "$(dirname "$op")")"
  "$forge" operators | grep -q "^$op " || fail "the installed program lacks $op"
done
"$forge" operators | grep -q unusable && fail "an operator without its plugin"
[[ "$("$forge" kb list | wc -l)" -gt 10 ]] || fail "no knowledge"
for file in share/man/man1/forge.1 share/bash-completion/completions/forge share/zsh/vendor-completions/_forge share/doc/forgekernel/copyright \
  share/doc/forgekernel/docs/cli.md share/forge/include/forge/oracle.h; do
  [[ -s "$work/usr/$file" ]] || fail "$file is not installed"
done
cmp "$work/usr/share/man/man1/forge.1" <("$forge" man) || fail "the installed page is another program's"
# links FOLDER: every relative link of a page in it leads to something
links() {
  local page link found=0
  while IFS= read -r page; do
    while IFS= read -r link; do
      found=$((found + 1))
      [[ -e "$(dirname "$page")/$link" ]] || fail "$page links to $link, which is not there"
    done < <(grep -oE '\]\([^) ]+\)' "$page" | sed -E 's/^\]\(//; s/[#)].*//' | grep -vE '^([a-z]+:|$)')
  done < <(find "$1" -name '*.md' -not -path '*/build*')
  [[ $found -gt 40 ]] || fail "only $found links below $1: are the pages there?"
}
links "$work/usr/share/doc/forgekernel"
grep -rIl "$build" "$work/usr" && fail "these name the build folder"
readelf -d "$forge" "$work/usr/lib/forge/forge-runner" | grep -E 'R(UN)?PATH' && fail "the programs look for libraries where they were built"

# A kernel through the installed gate: compiler, runner, oracle.
mkdir "$work/own"
"$forge" new operator scaled_add_f32 --into "$work/own/operators" --json >"$work/new.json"
# What it says comes next is done as it says.
jq -r '.next[]' "$work/new.json" | sed "s| forge selftest| $forge selftest|" >"$work/next.sh"
bash -euo pipefail "$work/next.sh" >"$work/out" 2>&1 || { cat "$work/out"; fail "what forge new operator says comes next"; }
grep -q rejected "$work/out" || fail "no admission"
FORGE_DATA="$work/own" FORGE_PLUGINS="$work/own/plugins" "$forge" check "$root/docs/examples/scaled_add_f32_kernel" --operator scaled_add_f32 \
  --target cpu:x86-64-avx2 >"$work/out" 2>&1 || { cat "$work/out"; fail "a kernel of an operator of one's own"; }
echo "install: all cases passed"
