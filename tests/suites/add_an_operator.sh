#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The worked example of docs/add-an-operator.md: the page shows its files as they are, every file is shown, and the plugins compile.
source "$(dirname "$0")/../support/suite.sh"
page="$root/docs/add-an-operator.md"
shown=0
while IFS= read -r file; do
  awk -v mark="<!-- file: $file -->" '
    index($0, mark) { found = 1; next }
    found && /^```/ { if (inside) exit; inside = 1; next }
    inside { print }' "$page" >"$work/shown"
  diff -u "$root/$file" "$work/shown" || { echo "FAILED: $page shows another $file; copy the file into the page"; exit 1; }
  shown=$((shown + 1))
done < <(cd "$root" && find docs/examples -type f -path '*scaled_add_f32*' | sort)
[[ $shown -ge 8 ]] || { echo "FAILED: only $shown files under docs/examples"; exit 1; }

for plugin in oracle.cc experts/cpu/onednn.cc; do
  g++ -std=c++20 -O0 -fopenmp -Wall -Wextra -Wshadow -Wno-missing-field-initializers -Werror -shared -fPIC -I "$root/include" -I "$root/src" \
    "$root/docs/examples/scaled_add_f32/$plugin" -o "$work/$(basename "$plugin").so" -ldnnl
done
echo "add_an_operator: $shown files shown as they are, both plugins compile"
