// SPDX-License-Identifier: Apache-2.0
#include "runner/cuda_compose.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runner/channel.h"
#include "runner/compose.h"

namespace forge {
namespace {

tl::unexpected<Error> bad(Code code, std::string message, std::string field) {
  return fail(Error{.code = code, .message = std::move(message), .field = std::move(field)});
}

void need(ComposedCudaCall& call, const std::string& role, const Binding& b) {
  if (!b.device) return;
  const bool writable = b.access == Access::write;
  for (NeededAllocation& a : call.allocations)
    if (a.buffer->id() == b.device->id()) {  // bound twice: imported once, with the larger right
      a.writable |= writable;
      return;
    }
  call.allocations.push_back({b.device, role, writable});
}

void need_all(ComposedCudaCall& call, const CallSpec& spec) {
  const auto name = [](const std::vector<TensorSpec>& specs, std::size_t i) {
    return i < specs.size() ? specs[i].name : std::to_string(i);
  };
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) need(call, "input " + name(spec.input_specs, i), spec.inputs[i]);
  for (std::size_t i = 0; i < spec.outputs.size(); ++i) need(call, "output " + name(spec.output_specs, i), spec.outputs[i]);
  for (std::size_t i = 0; i < spec.workspaces.size(); ++i)
    need(call, "workspace " + (i < spec.plan.workspaces.size() ? spec.plan.workspaces[i].name : std::to_string(i)), spec.workspaces[i]);
}

wire::Place place_of(const Binding& b, std::int64_t more = 0) {
  return {b.device->id(), b.device->offset() + b.offset + static_cast<std::uint64_t>(more)};
}

const Binding* map_binding(const CallSpec& spec, const ConcreteMap& map) {
  const auto i = static_cast<std::size_t>(map.index);
  if (map.in_workspace) return i < spec.workspaces.size() ? &spec.workspaces[i] : nullptr;
  if (i < spec.inputs.size()) return &spec.inputs[i];
  return i - spec.inputs.size() < spec.outputs.size() ? &spec.outputs[i - spec.inputs.size()] : nullptr;
}

// CUtensorMapDataType; what has no such type travels as whole numbers of its width.
std::uint32_t map_type(DType t) {
  switch (t) {
    case DType::f16:
      return 6;
    case DType::f32:
      return 7;
    case DType::bf16:
      return 9;
    case DType::i32:
      return 3;
    case DType::i64:
      return 5;
    default:
      return bits(t) == 16 ? 1 : 0;
  }
}
std::uint32_t map_swizzle(int bytes) { return bytes == 128 ? 3 : bytes == 64 ? 2 : bytes == 32 ? 1 : 0; }
std::uint32_t map_l2(int bytes) { return bytes == 256 ? 3 : bytes == 128 ? 2 : bytes == 64 ? 1 : 0; }

Status add_map(wire::CudaPrepare& m, const CallSpec& spec, const ConcreteMap& map, const ArgField& field) {
  const std::string name = "map." + map.name;
  if (m.map_count == wire::k_max_maps) return bad(Code::bad_input, fmt::format("more than {} maps", wire::k_max_maps), name);
  const Binding* b = map_binding(spec, map);
  if (!b || !b->device) return bad(Code::internal, "the call has no memory for a map", name);
  const std::size_t rank = map.dims.size();
  if (rank == 0 || rank > wire::k_max_map_rank || map.stride_bytes.size() + 1 != rank || (!map.im2col && map.box.size() != rank))
    return bad(Code::internal, "a map's rank is out of range", name);
  wire::CudaMap& out = m.maps[m.map_count++];
  out.args_offset = static_cast<std::uint32_t>(field.offset);
  out.type = map_type(map.dtype);
  out.rank = static_cast<std::uint32_t>(rank);
  out.swizzle = map_swizzle(map.swizzle);
  out.l2 = map_l2(map.l2);
  out.place = place_of(*b, map.offset_bytes);
  for (std::size_t i = 0; i < rank; ++i) out.dims[i] = static_cast<std::uint64_t>(map.dims[i]);
  for (std::size_t i = 0; i + 1 < rank; ++i) out.strides[i] = static_cast<std::uint64_t>(map.stride_bytes[i]);
  if (!map.im2col) {
    for (std::size_t i = 0; i < rank; ++i) out.box[i] = static_cast<std::uint32_t>(map.box[i]);
    return {};
  }
  const Im2colSpec& c = *map.im2col;
  if (c.lower.size() > wire::k_max_map_rank || c.upper.size() > wire::k_max_map_rank)
    return bad(Code::internal, "a map's corners are too many", name);
  out.im2col = 1;
  std::copy(c.lower.begin(), c.lower.end(), out.lower);
  std::copy(c.upper.begin(), c.upper.end(), out.upper);
  out.channels = static_cast<std::uint32_t>(c.channels);
  out.pixels = static_cast<std::uint32_t>(c.pixels);
  return {};
}

Status add_patch(wire::CudaPrepare& m, const Binding* b, const ArgField& field) {
  if (!b) return bad(Code::internal, "the call has no memory for an argument", field.name);
  if (!b->device) return {};  // a workspace of no bytes: a null pointer
  if (m.patch_count == wire::k_max_places)
    return bad(Code::bad_input, fmt::format("more than {} pointers", wire::k_max_places), field.name);
  m.patches[m.patch_count++] = {static_cast<std::uint32_t>(field.offset), 0, place_of(*b)};
  return {};
}

Status add_field(wire::CudaPrepare& m, const CallSpec& spec, const ArgField& field) {
  if (field.offset > spec.layout.bytes || spec.layout.bytes - field.offset < field.bytes)
    return bad(Code::internal, "an argument outside its struct", field.name);
  switch (field.kind) {
    case ArgField::Kind::tensor:
      return add_patch(m, tensor_binding(spec, field.name), field);
    case ArgField::Kind::workspace:
      return add_patch(m, workspace_binding(spec, field.name), field);
    case ArgField::Kind::map:
      if (const auto i = static_cast<std::size_t>(field.index); i < spec.plan.maps.size())
        return add_map(m, spec, spec.plan.maps[i], field);
      break;
    case ArgField::Kind::axis:
    case ArgField::Kind::let:
    case ArgField::Kind::scalar:
      if (const auto value = value_of(spec, field)) {
        std::memcpy(m.args + field.offset, &*value, std::min<std::size_t>(field.bytes, 8));
        return {};
      }
      break;
  }
  return bad(Code::internal, "the call has no value for an argument", field.name);
}

Status add_launch(wire::CudaPrepare& m, const ConcreteLaunch& l, const std::map<std::string, std::uint32_t>& entries) {
  const std::string where = fmt::format("launch[{}]", m.launch_count);
  if (m.launch_count == wire::k_max_launches)
    return bad(Code::bad_input, fmt::format("more than {} launches", wire::k_max_launches), where);
  const auto entry = entries.find(l.entry);
  if (entry == entries.end())
    return bad(Code::bad_input, fmt::format("'{}' is not an entry that the image was loaded with", l.entry), where + ".entry");
  if (l.grid <= 0 || l.grid > 0x7fffffff) return bad(Code::bad_input, fmt::format("{} is out of range", l.grid), where + ".grid");
  if (l.block < 1 || l.block > 1024) return bad(Code::bad_input, fmt::format("{} threads are out of range", l.block), where + ".block");
  if (l.cluster < 1 || l.cluster > 8 || l.grid % l.cluster != 0)
    return bad(Code::bad_input, fmt::format("clusters of {} do not divide a grid of {}", l.cluster, l.grid), where + ".cluster");
  if (l.scratch_bytes < 0 || l.scratch_bytes > 0x7fffffff)
    return bad(Code::bad_input, fmt::format("{} bytes are out of range", l.scratch_bytes), where + ".smem");
  m.launches[m.launch_count++] = {.entry = entry->second,
                                  .block = static_cast<std::uint32_t>(l.block),
                                  .cluster = static_cast<std::uint32_t>(l.cluster),
                                  .flags = (l.cooperative ? wire::launch_cooperative : 0u) | (l.pdl ? wire::launch_pdl : 0u),
                                  .grid = l.grid,
                                  .shared_bytes = l.scratch_bytes};
  return {};
}

Status add_tensor(wire::CudaPrepare& m, const TensorSpec& t, const Binding* b, const std::vector<std::int64_t>* shape,
                  std::uint64_t scalar) {
  const std::uint32_t i = m.input_count + m.output_count;
  if (i == wire::k_max_tensors) return bad(Code::bad_input, fmt::format("more than {} tensors", wire::k_max_tensors), t.name);
  wire::CudaTensor& out = m.tensors[i];
  copy_text(out.name, t.name);
  const DlpackType type = dlpack_type(t.dtype);
  out.code = type.code;
  out.bits = type.bits;
  out.scalar = scalar;
  if (t.scalar) return {};
  if (!b || !b->device || !shape) return bad(Code::internal, "the call has no memory or shape for a tensor", t.name);
  if (shape->size() > wire::k_max_rank) return bad(Code::bad_input, fmt::format("more than {} axes", wire::k_max_rank), t.name);
  out.place = place_of(*b);
  out.rank = static_cast<std::int32_t>(shape->size());
  std::copy(shape->begin(), shape->end(), out.shape);
  return {};
}

}  // namespace

Result<ComposedCudaCall> compose_cuda_image_call(const CallSpec& spec, const std::map<std::string, std::uint32_t>& entries) {
  ComposedCudaCall call{.message = std::make_unique<wire::CudaPrepare>()};
  wire::CudaPrepare& m = *call.message;
  need_all(call, spec);
  if (spec.layout.bytes > sizeof m.args)
    return fail(Code::bad_input, fmt::format("{} bytes of arguments are more than {}", spec.layout.bytes, sizeof m.args));
  m.args_bytes = static_cast<std::uint32_t>(spec.layout.bytes);
  for (const ArgField& f : spec.layout.fields) FORGE_TRY(add_field(m, spec, f));
  for (const ConcreteLaunch& l : spec.plan.launches) FORGE_TRY(add_launch(m, l, entries));
  for (std::size_t i = 0; i < spec.plan.workspaces.size() && i < spec.workspaces.size(); ++i) {
    const ConcreteWorkspace& w = spec.plan.workspaces[i];
    const Binding& b = spec.workspaces[i];
    if (w.init != WorkspaceInit::zero || !b.device || w.bytes == 0) continue;
    if (m.zero_count == wire::k_max_buffers) return bad(Code::bad_input, "too many workspaces to clear", "workspace." + w.name);
    m.zeros[m.zero_count++] = {place_of(b), std::min<std::uint64_t>(b.device->bytes() - b.offset, static_cast<std::uint64_t>(w.bytes))};
  }
  return call;
}

Result<ComposedCudaCall> compose_cuda_expert_call(const CallSpec& spec) {
  ComposedCudaCall call{.message = std::make_unique<wire::CudaPrepare>()};
  wire::CudaPrepare& m = *call.message;
  need_all(call, spec);
  FORGE_TRY_ASSIGN(const auto scalars, input_scalars(spec));
  for (std::size_t i = 0; i < spec.input_specs.size(); ++i) {
    FORGE_TRY(add_tensor(m, spec.input_specs[i], nth(spec.inputs, i), nth(spec.input_shapes, i), scalars[i]));
    ++m.input_count;
  }
  for (std::size_t i = 0; i < spec.output_specs.size(); ++i) {
    FORGE_TRY(add_tensor(m, spec.output_specs[i], nth(spec.outputs, i), nth(spec.output_shapes, i), 0));
    ++m.output_count;
  }
  return call;
}

Result<OnceFile> compose_cuda_once(const CallSpec& spec, const std::map<std::string, std::uint32_t>* entries) {
  FORGE_TRY_ASSIGN(ComposedCudaCall call, entries ? compose_cuda_image_call(spec, *entries) : compose_cuda_expert_call(spec));
  OnceFile file;
  file.prepare = std::move(call.message);
  if (entries) {
    FORGE_TRY_ASSIGN(const ComposedCudaCall told, compose_cuda_expert_call(spec));
    file.prepare->input_count = told.message->input_count;
    file.prepare->output_count = told.message->output_count;
    std::copy(std::begin(told.message->tensors), std::end(told.message->tensors), file.prepare->tensors);
  }
  for (const NeededAllocation& a : call.allocations)
    file.imports.push_back(
        {.header = {}, .allocation = a.buffer->id(), .bytes = a.buffer->allocation_bytes(), .writable = a.writable ? 1u : 0u});
  return file;
}

}  // namespace forge
