// SPDX-License-Identifier: Apache-2.0
// From a CallSpec to the message that prepares it. Judge's side; addresses are the judge's own, and hold in the runner too.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <vector>

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

// What an argument holds that is passed by value (axis, let, scalar), low bytes first; none: the call has no value for it.
std::optional<std::uint64_t> value_of(const CallSpec&, const ArgField&);
// Null: there are not that many.
template <class T>
const T* nth(const std::vector<T>& v, std::size_t i) {
  return i < v.size() ? &v[i] : nullptr;
}
// What is bound to a tensor of that name, inputs first, or to a workspace; null: nothing.
const Binding* tensor_binding(const CallSpec&, const std::string& name);
const Binding* workspace_binding(const CallSpec&, const std::string& name);
// The scalar inputs' bits in the order of input_specs, 0 for tensors; internal when the call has no value for one.
Result<std::vector<std::uint64_t>> input_scalars(const CallSpec&);

struct DlpackType {
  std::uint8_t code = 0, bits = 0;
};
DlpackType dlpack_type(DType);
// A scalar as the bytes that its type has in memory, low bytes first.
std::uint64_t scalar_bits(DType, double value);

}  // namespace forge
