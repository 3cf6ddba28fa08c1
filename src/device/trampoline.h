// SPDX-License-Identifier: Apache-2.0
// The few instructions between the harness and a kernel's block.
#pragma once
#include "device/cpu.h"

extern "C" {
// Calls entry(args, block) on the given stack with MXCSR 0x1f80, direction flag clear, x87 empty and the upper vector halves
// clean; puts MXCSR back afterwards. stack_top is 16-byte aligned.
void forge_run_block(forge::EntryPoint entry, const void* args, const forge::BlockInfo* block, void* stack_top);
// Overwrites every vector and mask register with the pattern; needs AVX (AVX-512).
void forge_scrub_avx(const void* pattern64);
void forge_scrub_avx512(const void* pattern64);
void forge_zero_gs_base();  // needs FSGSBASE switched on by the kernel
}
