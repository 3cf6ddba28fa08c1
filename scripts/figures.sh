#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures the figures of results/ on this machine, one after the other, alone: about 45 minutes. Keep the machine quiet.
#   scripts/figures.sh [BUILD] [FOLDER] [STEP...]     steps: certify suite admission aa power compare evolve; beside if named
#   on a machine with a Hopper GPU (build/ runs there as it is): hopper-suite hopper-evolve hopper-certify hopper-aa hopper-power
# The evidence of a certification is written beside its entry, in knowledge/, not into FOLDER.
set -uo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
build="${1:-$root/build}"
out="${2:-$root/results}"
shift $(($# > 2 ? 2 : $#))
steps=("${@:-certify suite aa power compare evolve}")
export FORGE_HOME="${FORGE_HOME:-$root/build/figures-home}" FORGE_DATA="$root"
mkdir -p "$out"
forge="$build/forge"
{
  date -u +%FT%TZ
  git -C "$root" rev-parse --short HEAD
  uptime
} >"$out/when.txt"
for step in ${steps[*]}; do
  echo "== $step"
  case "$step" in
    certify) "$forge" kb certify >"$out/kb-certify.txt" ;;
    suite) "$forge" suite cpu --quickstart -o "$out/suite-cpu.json" >"$out/suite-cpu.txt" ;;
    admission) "$forge" selftest admission >"$out/selftest-admission.txt" ;;
    aa) "$forge" selftest aa --operator softmax_f32 --trials 200 --json >"$out/selftest-aa.json" ;;
    power) "$forge" selftest power --operator softmax_f32 --trials 100 --json >"$out/selftest-power.json" ;;
    beside) "$root/scripts/beside.sh" 30 "$build" "$out/beside" >/dev/null ;;
    compare) for op in softmax_f32 fused_add_rmsnorm_bf16 gemm_f32; do "$forge" compare "$op" --seeds 5 --seconds "${SECONDS_EACH:-60}" -o "$out/compare-$op.json" >"$out/compare-$op.txt"; done ;;
    evolve)
      for op in softmax_f32 fused_add_rmsnorm_bf16 gemm_f32; do "$forge" evolve "$op" --generations 3 --wall-seconds 60 >"$out/evolve-$op.txt"; done
      "$forge" lineage >"$out/lineage.txt"
      "$forge" kb report >"$out/kb-report.txt"
      ;;
    hopper-suite) "$forge" suite hopper -o "$out/suite-hopper.json" >"$out/suite-hopper.txt" ;;
    hopper-evolve)
      "$forge" evolve gemm_f16 --target cuda:sm_90a --generations 2 >"$out/evolve-gemm_f16.txt"
      "$forge" lineage gemm_f16 >"$out/lineage-gemm_f16.txt"
      ;;
    hopper-certify) "$forge" kb certify --target cuda:sm_90a >"$out/kb-certify.txt" ;;
    hopper-aa) "$forge" selftest aa --target cuda:sm_90a --operator rmsnorm_bf16_h4096 --trials 50 --json >"$out/selftest-aa.json" ;;
    hopper-power) "$forge" selftest power --target cuda:sm_90a --operator rmsnorm_bf16_h4096 --trials 50 --json >"$out/selftest-power.json" ;;
  esac
  echo "   exit $?"
done
