#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts/setup.sh against a fake dpkg and apt-get: what it asks them for, and what it says when they fail. scripts/tables.sh: whether
# the README says what the records say.
source "$(dirname "$0")/../support/suite.sh"
source_root="$root"
"$source_root/scripts/tables.sh" --check
mkdir -p "$work/tree" "$work/bin"
cp -r "$source_root/scripts" "$work/tree/"
printf '# tools\nalpha\nbeta   # with a comment\n\ngamma\n' >"$work/tree/packages.txt"
printf 'flags : fpu avx2 fma\n' >"$work/cpuinfo"

# The fakes keep the installed packages in a file, one "name status" a line, and note every call.
cat >"$work/bin/dpkg-query" <<'FAKE'
#!/bin/bash
cat "$FAKE/installed"
FAKE
cat >"$work/bin/dpkg" <<'FAKE'
#!/bin/bash
echo "dpkg $*" >>"$FAKE/calls"
case "$1" in
  --audit) grep -q half "$FAKE/installed" && echo "packages are only half configured" ;;
  --configure) sed -i 's/half-configured/installed/' "$FAKE/installed" ;;
esac
exit 0
FAKE
cat >"$work/bin/apt-get" <<'FAKE'
#!/bin/bash
echo "apt-get $* (frontend $DEBIAN_FRONTEND)" >>"$FAKE/calls"
if [[ " $* " == *" update "* ]]; then touch "$FAKE/lists"; [[ ! -e "$FAKE/offline" ]]; exit; fi
[[ " $* " == *" --fix-broken "* ]] && exit 0
[[ -e "$FAKE/offline" || ! -e "$FAKE/lists" ]] && { echo "E: Unable to locate package" >&2; exit 100; }
[[ -e "$FAKE/slow" ]] && sleep 2
for word in "$@"; do case "$word" in alpha | beta | gamma | delta) echo "$word installed" >>"$FAKE/installed" ;; esac; done
FAKE
printf '#!/bin/bash\n[[ "$*" == "-n true" && -e "$FAKE/sudo-ok" ]] && exit 0\n[[ -e "$FAKE/sudo-ok" ]] || exit 1\nshift\nexec "$@"\n' >"$work/bin/sudo"
chmod +x "$work"/bin/*
export FAKE="$work" PATH="$work/bin:$PATH" FORGE_CPUINFO="$work/cpuinfo"

fresh() { rm -rf "$work"/{calls,lists,offline,slow,sudo-ok,installed} "$work/tree/build" && : >"$work/calls" && : >"$work/installed"; printf '%s\n' "$@" >"$work/installed"; }
setup() { status=0; bash "$work/tree/scripts/setup.sh" "$@" >"$work/out" 2>&1 || status=$?; }
fail() { echo "FAILED: $*"; echo "--- said:"; cat "$work/out"; echo "--- calls:"; cat "$work/calls"; exit 1; }
[[ $EUID -eq 0 ]] || SUDO=1

fresh 'alpha:amd64 installed' 'beta installed' 'gamma installed'
setup
[[ $status -eq 0 && ! -s "$work/calls" && ! -s "$work/out" ]] || fail "everything is there: no call, no word, no network"

fresh 'alpha installed'; touch "$work/lists"; [[ -n "${SUDO:-}" ]] && touch "$work/sudo-ok"
setup delta
[[ $status -eq 0 ]] || fail "missing packages are installed"
grep -q 'install --no-install-recommends beta gamma delta (frontend noninteractive)' "$work/calls" || fail "only the missing ones, without questions"
grep -q ' update ' "$work/calls" && fail "no update when the lists serve"

fresh; [[ -n "${SUDO:-}" ]] && touch "$work/sudo-ok"
setup
[[ $status -eq 0 ]] || fail "absent package lists are fetched"
grep -q ' update' "$work/calls" || fail "update after the first failure"

fresh 'alpha half-configured' 'beta installed' 'gamma installed'; touch "$work/lists"; [[ -n "${SUDO:-}" ]] && touch "$work/sudo-ok"
setup
grep -q 'dpkg --configure -a' "$work/calls" || fail "an interrupted installation is finished first"

fresh; touch "$work/offline"; [[ -n "${SUDO:-}" ]] && touch "$work/sudo-ok"
setup
[[ $status -eq 3 ]] || fail "no network: exit 3"
grep -q '^error: apt-get update failed' "$work/out" && grep -q 'fix: check the network' "$work/out" || fail "no network is said, with what to do"

printf 'flags : fpu sse2\n' >"$work/sse2"
FORGE_CPUINFO="$work/sse2" setup
[[ $status -eq 3 ]] && grep -q 'lacks avx2' "$work/out" || fail "a CPU without AVX2 is refused"

fresh; touch "$work/lists" "$work/slow"; [[ -n "${SUDO:-}" ]] && touch "$work/sudo-ok"
bash "$work/tree/scripts/setup.sh" >"$work/out1" 2>&1 & first=$!
sleep 0.5
setup
wait "$first" || fail "the first of two"
[[ $status -eq 0 ]] || fail "the second of two"
grep -q 'waiting for it' "$work/out" || fail "the second waits and says so"
[[ $(grep -c ' install --no' "$work/calls") -eq 1 ]] || fail "installed once"

if [[ $EUID -eq 0 ]] && command -v setpriv >/dev/null; then
  fresh; touch "$work/lists"; chmod -R a+rwX "$work"
  status=0
  setpriv --reuid=65534 --regid=65534 --clear-groups bash "$work/tree/scripts/setup.sh" >"$work/out" 2>&1 || status=$?
  [[ $status -eq 3 ]] && grep -q 'run as root: apt-get install alpha beta gamma' "$work/out" || fail "without root and sudo the command is named"
fi

fresh; chmod a-w "$work/tree"; touch "$work/tree/build" 2>/dev/null || true
rm -rf "$work/tree/build"; touch "$work/tree/build"   # a file where the folder should be: cannot be written, even by root
setup
[[ $status -eq 3 ]] && grep -q 'Cannot write to' "$work/out" || fail "a tree that cannot be written is named"
rm -f "$work/tree/build"
chmod u+w "$work/tree"
echo "setup: all cases passed"
