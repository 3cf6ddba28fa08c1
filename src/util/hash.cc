// SPDX-License-Identifier: Apache-2.0
#include "util/hash.h"

#include <openssl/evp.h>

#include <stdexcept>

namespace forge {

std::string sha256_hex(std::string_view bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest, &length, EVP_sha256(), nullptr) != 1)
    throw std::runtime_error("EVP_Digest(SHA-256) failed");
  static const char* const kHex = "0123456789abcdef";
  std::string out;
  out.reserve(2 * length);
  for (unsigned i = 0; i < length; ++i) {
    out += kHex[digest[i] >> 4];
    out += kHex[digest[i] & 15];
  }
  return out;
}

}  // namespace forge
