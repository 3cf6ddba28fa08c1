// SPDX-License-Identifier: Apache-2.0
// From a CallSpec to the message that prepares it. Judge's side; addresses are the judge's own, and hold in the runner too.
#pragma once
#include <map>
#include <memory>

#include "runner/classify.h"

namespace forge {

struct ComposedCall {
  std::unique_ptr<wire::Prepare> message;
  std::vector<MappedBuffer> buffers;  // message order
  std::size_t mapped_bytes = 0;
};

// Bad input when a field has no value, or something does not fit the message.
Result<ComposedCall> compose_image_call(const CallSpec&, const std::map<std::string, std::uint32_t>& entries);
Result<ComposedCall> compose_expert_call(const CallSpec&);

struct DlpackType {
  std::uint8_t code = 0, bits = 0;
};
DlpackType dlpack_type(DType);
// A scalar as the bytes that its type has in memory, low bytes first.
std::uint64_t scalar_bits(DType, double value);

}  // namespace forge
