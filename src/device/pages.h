// SPDX-License-Identifier: Apache-2.0
// Private to this layer.
#pragma once
#include <cstddef>

namespace forge {

inline constexpr std::size_t k_page = 4096;

inline std::size_t align_up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

}  // namespace forge
