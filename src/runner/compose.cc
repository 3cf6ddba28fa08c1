// SPDX-License-Identifier: Apache-2.0
#include "runner/compose.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "runner/channel.h"

namespace forge {
namespace {

// f32 to a 16-bit float, ties to even; NaN and infinity kept.
std::uint16_t to_bf16(float v) {
  const auto u = std::bit_cast<std::uint32_t>(v);
  if (std::isnan(v)) return static_cast<std::uint16_t>(u >> 16 | 0x40);
  return static_cast<std::uint16_t>((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
std::uint16_t to_f16(double v) {
  const std::uint16_t sign = std::signbit(v) ? 0x8000 : 0;
  const double a = std::fabs(v);
  if (std::isnan(v)) return 0x7e00;
  if (a >= 65520) return sign | 0x7c00;  // rounds to infinity
  if (a == 0) return sign;
  int exponent = 0;
  std::frexp(a, &exponent);
  const int unit = std::max(exponent - 11, -24);  // weight of the last bit, as a power of two
  const auto steps = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(a, -unit)));
  if (unit == -24) return static_cast<std::uint16_t>(sign | steps);  // subnormal, or the step up to the first normal
  return static_cast<std::uint16_t>(sign | ((static_cast<std::uint32_t>(unit + 24) << 10) + steps));
}

Status add_buffer(ComposedCall& call, const std::string& role, const Binding& b) {
  wire::Prepare& m = *call.message;
  const auto address = reinterpret_cast<std::uint64_t>(b.buffer->mapping());
  const bool writable = b.access == Access::write;
  for (std::uint32_t i = 0; i < m.buffer_count; ++i) {
    if (m.buffers[i].address != address) continue;  // one buffer bound twice is mapped once, with the larger right
    m.buffers[i].writable |= writable;
    call.buffers[i].writable |= writable;
    return {};
  }
  if (m.buffer_count == wire::k_max_buffers) return fail(Code::bad_input, fmt::format("more than {} buffers", wire::k_max_buffers));
  m.buffers[m.buffer_count++] = {address, b.buffer->file_bytes(), writable ? 1u : 0u, 0};
  call.buffers.push_back({role, b.buffer, writable});
  call.mapped_bytes += b.buffer->file_bytes();
  return {};
}

Status add_buffers(ComposedCall& call, const CallSpec& spec) {
  for (std::size_t i = 0; i < spec.inputs.size(); ++i)
    if (spec.inputs[i].buffer)
      FORGE_TRY(add_buffer(call, "input " + (i < spec.input_specs.size() ? spec.input_specs[i].name : std::to_string(i)), spec.inputs[i]));
  for (std::size_t i = 0; i < spec.outputs.size(); ++i)
    if (spec.outputs[i].buffer)
      FORGE_TRY(
          add_buffer(call, "output " + (i < spec.output_specs.size() ? spec.output_specs[i].name : std::to_string(i)), spec.outputs[i]));
  for (std::size_t i = 0; i < spec.workspaces.size(); ++i)
    if (spec.workspaces[i].buffer)
      FORGE_TRY(add_buffer(call, "workspace " + (i < spec.plan.workspaces.size() ? spec.plan.workspaces[i].name : std::to_string(i)),
                           spec.workspaces[i]));
  return {};
}

Result<std::uint64_t> field_value(const CallSpec& spec, const ArgField& f) {
  const auto address = [](const Binding& b) { return b.buffer ? reinterpret_cast<std::uint64_t>(b.buffer->data()) : 0; };
  if (f.kind == ArgField::Kind::tensor) {
    if (const Binding* b = tensor_binding(spec, f.name); b && b->buffer) return address(*b);
  } else if (f.kind == ArgField::Kind::workspace) {
    if (const Binding* b = workspace_binding(spec, f.name)) return address(*b);
  } else if (const auto value = value_of(spec, f)) {
    return *value;
  }
  return fail(Error{.code = Code::internal, .message = "the call has no value for an argument", .field = f.name});
}

Status add_tensor(wire::Prepare& m, const TensorSpec& t, const SharedBuffer* buffer, const std::vector<std::int64_t>* shape,
                  std::uint64_t scalar) {
  const std::uint32_t i = m.input_count + m.output_count;
  if (i == wire::k_max_tensors) return fail(Code::bad_input, fmt::format("more than {} tensors", wire::k_max_tensors));
  wire::Tensor& out = m.tensors[i];
  copy_text(out.name, t.name);
  const DlpackType type = dlpack_type(t.dtype);
  out.code = type.code;
  out.bits = type.bits;
  if (t.scalar) {
    out.scalar = scalar;
    return {};
  }
  if (!buffer || !shape)
    return fail(Error{.code = Code::internal, .message = "the call has no buffer or shape for a tensor", .field = t.name});
  if (shape->size() > wire::k_max_rank)
    return fail(Error{.code = Code::bad_input, .message = fmt::format("more than {} axes", wire::k_max_rank), .field = t.name});
  out.address = reinterpret_cast<std::uint64_t>(buffer->data());
  out.rank = static_cast<std::int32_t>(shape->size());
  std::copy(shape->begin(), shape->end(), out.shape);
  return {};
}

}  // namespace

const Binding* tensor_binding(const CallSpec& spec, const std::string& name) {
  for (std::size_t i = 0; i < spec.input_specs.size() && i < spec.inputs.size(); ++i)
    if (spec.input_specs[i].name == name) return &spec.inputs[i];
  for (std::size_t i = 0; i < spec.output_specs.size() && i < spec.outputs.size(); ++i)
    if (spec.output_specs[i].name == name) return &spec.outputs[i];
  return nullptr;
}

const Binding* workspace_binding(const CallSpec& spec, const std::string& name) {
  for (std::size_t i = 0; i < spec.plan.workspaces.size() && i < spec.workspaces.size(); ++i)
    if (spec.plan.workspaces[i].name == name) return &spec.workspaces[i];
  return nullptr;
}

std::optional<std::uint64_t> value_of(const CallSpec& spec, const ArgField& f) {
  if (f.kind == ArgField::Kind::axis || f.kind == ArgField::Kind::let) {
    for (const auto& [name, value] : f.kind == ArgField::Kind::axis ? spec.axes : spec.plan.lets)
      if (name == f.name) return static_cast<std::uint64_t>(value);
  } else if (f.kind == ArgField::Kind::scalar) {
    std::size_t nth = 0;
    for (const auto& t : spec.input_specs) {
      if (!t.scalar) continue;
      if (t.name == f.name && nth < spec.scalars.size()) return scalar_bits(t.dtype, spec.scalars[nth]);
      ++nth;
    }
  }
  return std::nullopt;
}

Result<std::vector<std::uint64_t>> input_scalars(const CallSpec& spec) {
  std::vector<std::uint64_t> bits;
  std::size_t nth = 0;
  for (const TensorSpec& t : spec.input_specs) {
    if (t.scalar && nth >= spec.scalars.size())
      return fail(Error{.code = Code::internal, .message = "the call has no value for a scalar", .field = t.name});
    bits.push_back(t.scalar ? scalar_bits(t.dtype, spec.scalars[nth++]) : 0);
  }
  return bits;
}

DlpackType dlpack_type(DType t) {
  const auto width = static_cast<std::uint8_t>(bits(t));
  switch (t) {
    case DType::i64:
    case DType::i32:
    case DType::i16:
    case DType::i8:
      return {0, width};
    case DType::u8:
      return {1, width};
    case DType::f32:
    case DType::f16:
      return {2, width};
    case DType::bf16:
      return {4, width};
    case DType::boolean:
      return {6, width};
    case DType::f8_e4m3:
      return {10, width};
    case DType::f8_e5m2:
      return {12, width};
    case DType::f4_e2m1:
      return {17, width};
  }
  return {};
}

std::uint64_t scalar_bits(DType t, double value) {
  switch (t) {
    case DType::f32:
      return std::bit_cast<std::uint32_t>(static_cast<float>(value));
    case DType::bf16:
      return to_bf16(static_cast<float>(value));
    case DType::f16:
      return to_f16(value);
    case DType::boolean:
      return value != 0;
    default:
      return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
  }
}

Result<ComposedCall> compose_image_call(const CallSpec& spec, const std::map<std::string, std::uint32_t>& entries) {
  ComposedCall call{.message = std::make_unique<wire::Prepare>()};
  wire::Prepare& m = *call.message;
  FORGE_TRY(add_buffers(call, spec));
  if (spec.layout.bytes > sizeof m.args)
    return fail(Code::bad_input, fmt::format("{} bytes of arguments are more than {}", spec.layout.bytes, sizeof m.args));
  m.args_bytes = static_cast<std::uint32_t>(spec.layout.bytes);
  for (const auto& f : spec.layout.fields) {
    if (f.bytes > 8 || f.offset > spec.layout.bytes || spec.layout.bytes - f.offset < f.bytes)
      return fail(Error{.code = Code::internal, .message = "an argument outside its struct", .field = f.name});
    FORGE_TRY_ASSIGN(const std::uint64_t value, field_value(spec, f));
    std::memcpy(m.args + f.offset, &value, f.bytes);
  }
  static_assert(kMaxLaunches <= wire::k_max_launches);
  if (spec.plan.launches.size() > wire::k_max_launches)
    return fail(Code::bad_input, fmt::format("more than {} launches", wire::k_max_launches));
  for (const auto& l : spec.plan.launches) {
    const auto entry = entries.find(l.entry);
    if (entry == entries.end()) return fail(Code::bad_input, fmt::format("launch of '{}', which the image was not loaded with", l.entry));
    if (l.grid < 0 || l.grid > 0x7fffffff) return fail(Code::bad_input, fmt::format("grid {} of '{}' is out of range", l.grid, l.entry));
    if (l.scratch_bytes < 0) return fail(Code::bad_input, fmt::format("scratch {} of '{}' is negative", l.scratch_bytes, l.entry));
    m.launches[m.launch_count++] = {entry->second, 0, l.grid};
    m.scratch_bytes = std::max(m.scratch_bytes, static_cast<std::uint64_t>(l.scratch_bytes));
  }
  for (std::size_t i = 0; i < spec.plan.workspaces.size() && i < spec.workspaces.size(); ++i) {
    const SharedBuffer* b = spec.workspaces[i].buffer;
    if (spec.plan.workspaces[i].init != WorkspaceInit::zero || !b) continue;
    m.zeros[m.zero_count++] = {reinterpret_cast<std::uint64_t>(b->data()),
                               std::min<std::uint64_t>(b->bytes(), static_cast<std::uint64_t>(spec.plan.workspaces[i].bytes))};
  }
  return call;
}

Result<ComposedCall> compose_expert_call(const CallSpec& spec) {
  ComposedCall call{.message = std::make_unique<wire::Prepare>()};
  wire::Prepare& m = *call.message;
  FORGE_TRY(add_buffers(call, spec));
  FORGE_TRY_ASSIGN(const auto scalars, input_scalars(spec));
  for (std::size_t i = 0; i < spec.input_specs.size(); ++i) {
    FORGE_TRY(add_tensor(m, spec.input_specs[i], i < spec.inputs.size() ? spec.inputs[i].buffer : nullptr, nth(spec.input_shapes, i),
                         scalars[i]));
    ++m.input_count;
  }
  for (std::size_t i = 0; i < spec.output_specs.size(); ++i) {
    FORGE_TRY(
        add_tensor(m, spec.output_specs[i], i < spec.outputs.size() ? spec.outputs[i].buffer : nullptr, nth(spec.output_shapes, i), 0));
    ++m.output_count;
  }
  return call;
}

}  // namespace forge
