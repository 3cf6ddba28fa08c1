// SPDX-License-Identifier: Apache-2.0
#include "core/operator.h"

#include <fmt/format.h>

#include <limits>

namespace forge {
namespace {

struct DTypeRow {
  DType type;
  const char* name;
  int bits;
};
constexpr DTypeRow kTypes[] = {
    {DType::f32, "float32", 32},        {DType::f16, "float16", 16},
    {DType::bf16, "bfloat16", 16},      {DType::f8_e4m3, "float8_e4m3fn", 8},
    {DType::f8_e5m2, "float8_e5m2", 8}, {DType::f4_e2m1, "float4_e2m1", 4},
    {DType::i64, "int64", 64},          {DType::i32, "int32", 32},
    {DType::i16, "int16", 16},          {DType::i8, "int8", 8},
    {DType::boolean, "bool", 8},        {DType::u8, "uint8", 8},
};

const DTypeRow& row(DType type) {
  for (const DTypeRow& r : kTypes)
    if (r.type == type) return r;
  return kTypes[0];
}

// Saturates: a size beyond 64 bits is refused by whoever allocates it.
std::int64_t multiply(std::int64_t a, std::int64_t b) {
  std::int64_t r = 0;
  return __builtin_mul_overflow(a, b, &r) ? std::numeric_limits<std::int64_t>::max() : r;
}

}  // namespace

const char* name(DType type) { return row(type).name; }
int bits(DType type) { return row(type).bits; }

std::optional<DType> parse_dtype(const std::string& text) {
  for (const DTypeRow& r : kTypes)
    if (text == r.name) return r.type;
  return std::nullopt;
}

const char* name(JudgeKind kind) {
  switch (kind) {
    case JudgeKind::scaled:
      return "scaled";
    case JudgeKind::relative:
      return "relative";
    case JudgeKind::exact:
      return "exact";
    case JudgeKind::indexes:
      break;
  }
  return "indexes";
}

const char* name(GeneratorKind kind) {
  switch (kind) {
    case GeneratorKind::normal:
      return "normal";
    case GeneratorKind::heavy_tailed:
      return "heavy_tailed";
    case GeneratorKind::large_magnitude:
      return "large_magnitude";
    case GeneratorKind::small_integers:
      return "small_integers";
    case GeneratorKind::adversarial:
      break;
  }
  return "adversarial";
}

const char* name(SymmetryKind kind) { return kind == SymmetryKind::permute ? "permute" : "negate"; }

const Axis* find_axis(const Definition& definition, const std::string& name) {
  for (const Axis& a : definition.axes)
    if (a.name == name) return &a;
  return nullptr;
}

const TensorSpec* find_tensor(const Definition& definition, const std::string& name) {
  for (const auto* list : {&definition.inputs, &definition.outputs})
    for (const TensorSpec& t : *list)
      if (t.name == name) return &t;
  return nullptr;
}

Result<AxisValues> complete_axes(const Definition& definition, const std::map<std::string, std::int64_t>& variable) {
  const auto bad = [&](const std::string& axis, const std::string& message) {
    return fail(Error{.code = Code::bad_input, .message = message, .file = {}, .line = 0, .field = "axes." + axis, .fix = {}});
  };
  for (const auto& [axis, value] : variable) {
    const Axis* known = find_axis(definition, axis);
    if (!known) return bad(axis, fmt::format("'{}' has no such axis", definition.name));
    if (known->constant) return bad(axis, fmt::format("is constant in '{}': {}", definition.name, known->value));
    if (value < 0) return bad(axis, fmt::format("is {}, must not be negative", value));
  }
  AxisValues all;
  for (const Axis& axis : definition.axes) {
    const auto it = variable.find(axis.name);
    if (!axis.constant && it == variable.end()) return bad(axis.name, "has no value");
    all[axis.name] = axis.constant ? axis.value : it->second;
  }
  return all;
}

std::int64_t element_count(const TensorSpec& tensor, const AxisValues& axes) {
  std::int64_t count = 1;
  for (const std::string& axis : tensor.shape) {
    const auto it = axes.find(axis);
    count = multiply(count, it == axes.end() ? 0 : it->second);
  }
  return count;
}

std::int64_t byte_count(const TensorSpec& tensor, const AxisValues& axes) {
  const std::int64_t count = element_count(tensor, axes);
  return bits(tensor.dtype) == 4 ? count / 2 + count % 2 : multiply(count, bits(tensor.dtype) / 8);
}

const Workload& timed_workload(const TaskFile& task, const std::string& family) {
  const auto found = task.timed_on.find(family);
  return found == task.timed_on.end() ? task.timed : found->second;
}

}  // namespace forge
