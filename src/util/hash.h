// SPDX-License-Identifier: Apache-2.0
// SHA-256 for identities (packages, images, journal chain), through OpenSSL's EVP.
#pragma once
#include <string>
#include <string_view>

namespace forge {
std::string sha256_hex(std::string_view bytes);  // 64 lower-case hex digits
}
