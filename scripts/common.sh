# SPDX-License-Identifier: Apache-2.0
# Sourced by quickstart, test and setup.sh; `root` is the source tree.

say() { printf '%s\n' "$*" >&2; }

# refuse MESSAGE FIX: one clear error, exit 3.
refuse() {
  printf 'error: %s\n  fix: %s\n' "$1" "$2" >&2
  exit 3
}

# Held until the caller ends, or unlock_tree: two set-ups or builds in one tree would trip over each other.
lock_tree() {
  [[ -n "${FORGE_TREE_LOCKED:-}" ]] && return
  mkdir -p "$root/build" 2>/dev/null && { exec 9>"$root/build/.lock"; } 2>/dev/null ||
    refuse "Cannot write to $root/build." "make the source tree writable, or copy it to a place that is"
  if ! flock -n 9; then
    say "Another set-up or build runs in this tree; waiting for it."
    flock 9
  fi
  export FORGE_TREE_LOCKED=1
}
unlock_tree() {
  exec 9>&-
  unset FORGE_TREE_LOCKED
}

# build_preset PRESET FOLDER [CMAKE_ARGS...]: configures and builds. A cache left by another place or compiler is thrown away.
build_preset() {
  local preset="$1" folder="$2" free
  shift 2
  free="$(df -Pm "$root" | awk 'NR == 2 { print $4 }')"
  [[ "$free" -ge 500 ]] || refuse "Only $free MiB are free where $root lies; a build takes about 500." "free some space, or move the tree"
  # ccache wants a writable folder; a read-only home must not stop a build.
  if [[ -z "${CCACHE_DIR:-}" && ! -w "${HOME:-/nonexistent}" ]]; then export CCACHE_DIR="$root/build/.ccache"; fi
  mkdir -p "$root/$folder"
  local log="$root/$folder/configure.log"
  if ! cmake -S "$root" --preset "$preset" "$@" >"$log" 2>&1 && ! cmake -S "$root" --fresh --preset "$preset" "$@" >"$log" 2>&1; then
    tail -n 25 "$log" >&2
    refuse "CMake could not configure." "mend what it says above (the whole log: $folder/configure.log)"
  fi
  (cd "$root" && cmake --build --preset "$preset") || refuse "The build failed." "mend the first error above; on a small machine try: CMAKE_BUILD_PARALLEL_LEVEL=1"
}
