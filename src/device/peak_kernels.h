// SPDX-License-Identifier: Apache-2.0
// Loops that touch one ceiling each. Compiled for an instruction set by attribute; call only where the CPU has it.
#pragma once
#include <cstddef>
#include <cstdint>

namespace forge {

// Independent chains of fused multiply-adds in registers; returns the floating-point operations done.
double fma_peak_avx2(std::int64_t rounds, float* sink);
double fma_peak_avx512(std::int64_t rounds, float* sink);
// Reads n bytes (a multiple of 256) and returns something that depends on them all.
std::uint64_t read_stream_avx2(const std::byte* p, std::size_t n);
// Copies n bytes (a multiple of 256, 32-byte aligned) with non-temporal stores.
void copy_stream_avx2(std::byte* to, const std::byte* from, std::size_t n);

}  // namespace forge
