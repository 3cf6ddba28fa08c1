// SPDX-License-Identifier: Apache-2.0
// The four memory functions that a kernel's object may import. They are the harness's own: no libc, no IFUNC, no state.
#pragma once
#include <cstddef>

namespace forge {
extern "C" {
void* forge_image_memcpy(void* to, const void* from, std::size_t n);
void* forge_image_memmove(void* to, const void* from, std::size_t n);
void* forge_image_memset(void* to, int value, std::size_t n);
int forge_image_memcmp(const void* a, const void* b, std::size_t n);
}
}  // namespace forge
