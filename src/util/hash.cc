// SPDX-License-Identifier: Apache-2.0
#include "util/hash.h"

#include <openssl/evp.h>

#include <stdexcept>

namespace forge {

namespace {

// EVP_Digest() looks the algorithm up and makes a context on every call, which for a line of a journal takes longer than hashing it.
struct Hasher {
  EVP_MD* algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  Hasher() = default;
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;
  ~Hasher() {
    EVP_MD_CTX_free(context);
    EVP_MD_free(algorithm);
  }
};

}  // namespace

std::string sha256_hex(std::string_view bytes) {
  thread_local Hasher hasher;
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  if (EVP_DigestInit_ex(hasher.context, hasher.algorithm, nullptr) != 1 ||
      EVP_DigestUpdate(hasher.context, bytes.data(), bytes.size()) != 1 || EVP_DigestFinal_ex(hasher.context, digest, &length) != 1)
    throw std::runtime_error("SHA-256 failed");
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
