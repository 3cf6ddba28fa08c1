#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts/setup.sh [PACKAGE...]: installs what is missing of packages.txt (and of PACKAGE...) on Debian and its relatives, without
# asking anything and without a network when nothing is missing. Safe to interrupt and to start twice. Exit: 0, or 3 with the reason.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
. "$root/scripts/common.sh"

machine="$(uname -m)"
[[ "$(uname -s)" == Linux && "$machine" == x86_64 ]] || refuse "ForgeKernel needs Linux on x86-64; this is $(uname -s) on $machine." "use an x86-64 machine"
for feature in avx2 fma; do
  grep -qw "$feature" "${FORGE_CPUINFO:-/proc/cpuinfo}" ||
    refuse "This CPU (or virtual machine) lacks $feature; kernels are built for AVX2 with FMA, or AVX-512." "use a CPU of 2013 or later, or let the virtual machine pass the host's CPU through"
done

# Installed means installed and configured: a package that an interrupted run left half-way counts as missing.
missing_of() {
  local name known
  known="$(dpkg-query -W -f='${binary:Package} ${db:Status-Status}\n' 2>/dev/null | sed -n 's/\(:[a-z0-9]*\)\{0,1\} installed$//p')"
  for name in "$@"; do
    grep -qxF "$name" <<<"$known" || echo "$name"
  done
}

command -v dpkg-query >/dev/null && command -v apt-get >/dev/null ||
  refuse "This is not Debian or a relative of it (no dpkg, no apt-get)." "install what packages.txt lists by hand, then: cmake --preset release && cmake --build --preset release"
mapfile -t wanted < <(sed 's/#.*//' "$root/packages.txt" | awk 'NF { print $1 }')
wanted+=("$@")
mapfile -t missing < <(missing_of "${wanted[@]}")
[[ ${#missing[@]} -eq 0 ]] && exit 0

# From here on the system is changed: one at a time.
lock_tree
mapfile -t missing < <(missing_of "${wanted[@]}")
[[ ${#missing[@]} -eq 0 ]] && exit 0
if [[ $EUID -eq 0 ]]; then
  as_root=()
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
  as_root=(sudo -n)
else
  refuse "These packages are missing, and installing them takes root (sudo would ask for a password): ${missing[*]}" "run as root: apt-get install ${missing[*]}"
fi

log="$root/build/setup.log"
: >"$log"
run() {
  echo "+ $*" >>"$log"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l LC_ALL=C "$@" </dev/null >>"$log" 2>&1 9>&-
}
apt() {
  run apt-get -q -y -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold "$@"
}
failed() {
  tail -n 20 "$log" >&2
  refuse "$1" "$2 (the whole log: build/setup.log)"
}

if [[ -n "$(dpkg --audit 2>/dev/null)" ]] || compgen -G '/var/lib/dpkg/updates/[0-9]*' >/dev/null; then
  say "An earlier installation was interrupted; finishing it."
  run dpkg --configure -a || say "dpkg could not finish it alone; apt-get goes on."
fi
say "Installing ${#missing[@]} of ${#wanted[@]} packages: ${missing[*]}"
# Package lists may be absent (a fresh image) or stale: they are fetched when the first try fails.
if ! apt install --no-install-recommends "${missing[@]}"; then
  say "Fetching the package lists and trying again."
  apt update || failed "apt-get update failed." "check the network and /etc/apt/sources.list, then start again"
  apt --fix-broken install || true
  apt install --no-install-recommends "${missing[@]}" || failed "apt-get could not install: ${missing[*]}" "mend what apt-get says above, then start again"
fi
mapfile -t missing < <(missing_of "${wanted[@]}")
[[ ${#missing[@]} -eq 0 ]] || failed "Still missing after the installation: ${missing[*]}" "install them by hand"
