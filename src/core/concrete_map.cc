// SPDX-License-Identifier: Apache-2.0
// A tensor map in numbers, refused with its field before the driver sees it. Limits: CUDA driver API, cuTensorMapEncodeTiled and
// cuTensorMapEncodeIm2col.
#include "core/concrete_map.h"

#include <fmt/format.h>

#include <algorithm>

namespace forge {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 32;        // elements of a dimension
constexpr std::int64_t kMostStride = std::int64_t{1} << 40;  // bytes

DType map_type(const MapSpec& m, const TensorSpec* tensor) {
  if (tensor) return tensor->dtype;
  return m.dtype == "u8" ? DType::u8 : m.dtype == "f16" ? DType::f16 : m.dtype == "bf16" ? DType::bf16 : DType::f32;
}

class Maker {
 public:
  Maker(const MapSpec& m, std::size_t index, const Names& names) : m_spec(m), m_at(fmt::format("map[{}]", index)), m_names(names) {}

  Result<ConcreteMap> make(const Definition& definition, const AxisValues& axes, const std::vector<ConcreteWorkspace>& workspaces) {
    ConcreteMap out;
    out.name = m_spec.name, out.swizzle = m_spec.swizzle, out.l2 = m_spec.l2, out.box = m_spec.box, out.im2col = m_spec.im2col;
    const TensorSpec* tensor = find_tensor(definition, m_spec.tensor);
    std::int64_t room = 0;
    if (tensor) {
      out.index = index_of(definition, m_spec.tensor);
      room = byte_count(*tensor, axes);
    } else {
      const auto it = std::find_if(workspaces.begin(), workspaces.end(), [&](const auto& w) { return w.name == m_spec.tensor; });
      if (it == workspaces.end()) return refuse("tensor", fmt::format("'{}' is no input, output or workspace", m_spec.tensor));
      out.in_workspace = true, out.index = int(it - workspaces.begin()), room = it->bytes;
    }
    out.dtype = map_type(m_spec, tensor);
    const std::int64_t size = bits(out.dtype) / 8;
    if (size < 1 || size > 4) return refuse("tensor", fmt::format("elements of type {} cannot be mapped", name(out.dtype)));
    if (!m_spec.offset.empty()) {
      FORGE_TRY_ASSIGN(const std::int64_t offset, number(m_spec.offset, "offset", 0, kMostStride));
      out.offset_bytes = offset * size;
      if (out.offset_bytes % 16) return refuse("offset", fmt::format("{} bytes are no multiple of 16", out.offset_bytes));
    }
    FORGE_TRY(extents(out, size));
    // The last byte that the map can reach.
    std::int64_t last = out.offset_bytes + out.dims[0] * size;
    for (std::size_t i = 1; i < out.dims.size(); ++i) last += (out.dims[i] - 1) * out.stride_bytes[i - 1];
    if (last > room) return refuse("dims", fmt::format("the map reaches byte {} of '{}', which has {}", last, m_spec.tensor, room));
    FORGE_TRY(boxes(out, size));
    return out;
  }

 private:
  static int index_of(const Definition& d, const std::string& name) {
    int i = 0;
    for (const auto* list : {&d.inputs, &d.outputs})
      for (const TensorSpec& t : *list) {
        if (t.name == name) return i;
        ++i;
      }
    return -1;
  }

  Status extents(ConcreteMap& out, std::int64_t size) {
    std::int64_t packed = size;
    for (std::size_t i = 0; i < m_spec.dims.size(); ++i) {
      const std::string key = fmt::format("dims[{}]", i);
      FORGE_TRY_ASSIGN(const std::int64_t extent, number(m_spec.dims[i], key, 1, kMost));
      out.dims.push_back(extent);
      packed *= extent;
      if (i + 1 == m_spec.dims.size()) break;
      std::int64_t stride = packed;
      const std::string stride_key = fmt::format("strides[{}]", i);
      if (!m_spec.strides.empty()) {
        FORGE_TRY_ASSIGN(const std::int64_t elements, number(m_spec.strides[i], stride_key, 1, kMostStride));
        stride = elements * size;
      }
      if (stride % 16 || stride >= kMostStride)
        return refuse(m_spec.strides.empty() ? key : stride_key,
                      fmt::format("a stride of {} bytes is no multiple of 16 below 2^40", stride));
      out.stride_bytes.push_back(stride);
      packed = stride;
    }
    return {};
  }

  Status boxes(const ConcreteMap& out, std::int64_t size) {
    const std::int64_t inner = size * (out.im2col ? out.im2col->channels : out.box.empty() ? 0 : out.box[0]);
    const std::string key = out.im2col ? "im2col.channels" : "box[0]";
    if (inner % 16) return refuse(key, fmt::format("{} bytes are no multiple of 16", inner));
    if (out.swizzle && inner > out.swizzle) return refuse(key, fmt::format("{} bytes are more than the swizzle's {}", inner, out.swizzle));
    if (!out.im2col) return {};
    // Corners: 16 bits in all, shared by the spatial dimensions.
    const std::int64_t bound = out.dims.size() == 3 ? 1 << 15 : out.dims.size() == 4 ? 1 << 7 : 1 << 4;
    for (const auto* corners : {&out.im2col->lower, &out.im2col->upper})
      for (const int c : *corners)
        if (c < -bound || c >= bound)
          return refuse(corners == &out.im2col->lower ? "im2col.lower" : "im2col.upper",
                        fmt::format("{} is not between {} and {}", c, -bound, bound - 1));
    return {};
  }

  Result<std::int64_t> number(const Expr& expr, const std::string& key, std::int64_t low, std::int64_t high) {
    auto value = evaluate(expr, m_names);
    if (!value) {
      Error e = value.error();
      e.field = m_at + "." + key;
      return fail(std::move(e));
    }
    if (*value < low || *value > high) return refuse(key, fmt::format("\"{}\" is {}, not between {} and {}", expr.text, *value, low, high));
    return *value;
  }
  tl::unexpected<Error> refuse(const std::string& key, std::string message) const {
    return fail(Error{.code = Code::bad_input, .message = std::move(message), .file = {}, .line = 0, .field = m_at + "." + key, .fix = {}});
  }

  const MapSpec& m_spec;
  const std::string m_at;
  const Names& m_names;
};

}  // namespace

Result<ConcreteMap> make_concrete_map(const MapSpec& spec, std::size_t index, const Names& names, const Definition& definition,
                                      const AxisValues& axes, const std::vector<ConcreteWorkspace>& workspaces) {
  return Maker(spec, index, names).make(definition, axes, workspaces);
}

}  // namespace forge
