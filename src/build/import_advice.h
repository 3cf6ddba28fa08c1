// SPDX-License-Identifier: Apache-2.0
// What to write instead: advice for the messages of admission. Private to this layer.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace forge {

std::string import_advice(std::string_view symbol);           // an undefined symbol that a kernel may not have
std::string device_import_advice(std::string_view symbol);    // the same in a cubin; "": of external functions at large
std::string device_variable_advice(std::string_view symbol);  // a variable in a cubin that would outlive a call
std::string relocation_name(std::uint32_t type);
std::string relocation_advice(std::uint32_t type);

}  // namespace forge
