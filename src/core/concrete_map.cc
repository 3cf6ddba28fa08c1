// SPDX-License-Identifier: Apache-2.0
// The limits are those of the CUDA driver API's reference, "Tensor Map Object Management", without interleave and element strides.
#include "core/concrete_map.h"

#include <fmt/format.h>

#include <algorithm>

namespace forge {

namespace {

constexpr int kMaxBox = 256, kMaxPixels = 1024;
constexpr std::int64_t kAlign = 16;                           // bytes: address, strides, inner box
constexpr std::int64_t kMaxDim = std::int64_t{1} << 32;       // elements
constexpr std::int64_t kMaxStride = (std::int64_t{1} << 40);  // bytes, exclusive
constexpr std::int64_t kMaxOffset = std::int64_t{1} << 46;    // bytes; no tensor is larger

std::int64_t element_bytes(DType type) { return bits(type) / 8; }

// Corners are signed fields of 16, 8 or 5 bits, for 1, 2 or 3 spatial dimensions.
int corner_limit(std::size_t rank) { return rank == 3 ? 1 << 15 : rank == 4 ? 1 << 7 : 1 << 4; }

std::optional<MapProblem> problem_of_inner(const MapSpec& m, DType type, int elements, const std::string& field) {
  const std::int64_t inner = elements * element_bytes(type);
  if (inner % kAlign != 0)
    return MapProblem{field, fmt::format("{} elements are {} bytes, no multiple of {}", elements, inner, kAlign), {}};
  if (m.swizzle != 0 && inner > m.swizzle)
    return MapProblem{field, fmt::format("{} elements are {} bytes, more than the swizzle spans ({})", elements, inner, m.swizzle),
                      fmt::format("at most {} elements; give the rest to a second copy", m.swizzle / element_bytes(type))};
  return std::nullopt;
}

std::optional<MapProblem> problem_of_im2col(const MapSpec& m, DType type) {
  const Im2colSpec& s = *m.im2col;
  const std::size_t rank = m.dims.size();
  if (!m.box.empty()) return MapProblem{".box", "stands beside im2col", "keep one of them"};
  if (rank < 3 || rank > 5) return MapProblem{".im2col", fmt::format("needs 3 to 5 dimensions, there are {}", rank), {}};
  const int limit = corner_limit(rank);
  for (const auto& [key, corner] : {std::pair{".im2col.lower", &s.lower}, std::pair{".im2col.upper", &s.upper}}) {
    if (corner->size() != rank - 2) return MapProblem{key, fmt::format("{} given for {} spatial dimensions", corner->size(), rank - 2), {}};
    for (const int c : *corner)
      if (c < -limit || c >= limit)
        return MapProblem{
            key, fmt::format("{} is not between {} and {}, as {} spatial dimensions demand", c, -limit, limit - 1, rank - 2), {}};
  }
  if (s.channels < 1 || s.channels > kMaxBox)
    return MapProblem{".im2col.channels", fmt::format("{} is not between 1 and {}", s.channels, kMaxBox), {}};
  if (s.pixels < 1 || s.pixels > kMaxPixels)
    return MapProblem{".im2col.pixels", fmt::format("{} is not between 1 and {}", s.pixels, kMaxPixels), {}};
  return problem_of_inner(m, type, s.channels, ".im2col.channels");
}

// A factor or a sum of the map's extent, in 128 bits: no plan can overflow it.
using Wide = __int128;

class Concrete {
 public:
  Concrete(const LaunchPlan& plan, std::size_t index, const Definition& definition, const std::vector<ConcreteWorkspace>& workspaces,
           const Names& names)
      : m_spec(plan.maps[index]), m_index(index), m_definition(definition), m_workspaces(workspaces), m_names(names) {}

  Result<ConcreteMap> run() {
    FORGE_TRY(find_memory());
    if (const auto p = problem_of(m_spec, m_map.dtype)) return bad(p->field, p->message, p->fix);
    m_map.name = m_spec.name;
    m_map.box = m_spec.box;
    m_map.im2col = m_spec.im2col;
    m_map.swizzle = m_spec.swizzle;
    m_map.l2 = m_spec.l2;
    FORGE_TRY(find_offset());
    FORGE_TRY(find_dims());
    FORGE_TRY(find_strides());
    FORGE_TRY(check_corners());
    FORGE_TRY(check_inside());
    return m_map;
  }

 private:
  tl::unexpected<Error> bad(const std::string& field, const std::string& message, const std::string& fix = {}) const {
    return fail(Error{
        .code = Code::bad_input, .message = message, .file = {}, .line = 0, .field = fmt::format("map[{}]{}", m_index, field), .fix = fix});
  }

  // In elements; `high` bounds the bytes.
  Result<std::int64_t> number(const Expr& e, const std::string& field, std::int64_t low, std::int64_t high, std::int64_t unit) const {
    auto value = evaluate(e, m_names);
    if (!value) return bad(field, value.error().message, value.error().fix);
    if (*value < low || *value > high / unit)
      return bad(field, fmt::format("\"{}\" is {}, not between {} and {}", e.text, *value, low, high / unit));
    return *value;
  }

  Status find_memory() {
    const auto type = element_type(m_spec, m_definition);
    const auto w = std::find_if(m_workspaces.begin(), m_workspaces.end(),
                                [this](const ConcreteWorkspace& space) { return space.name == m_spec.tensor; });
    if (w != m_workspaces.end()) {
      m_map.in_workspace = true;
      m_map.index = static_cast<int>(w - m_workspaces.begin());
      m_bytes = w->bytes;
      if (!type) return bad(".dtype", "a map over a workspace names its type", "u8, f16, bf16 or f32");
    } else {
      int index = 0;
      const TensorSpec* found = nullptr;
      for (const auto* list : {&m_definition.inputs, &m_definition.outputs})
        for (const TensorSpec& t : *list) {
          if (t.name == m_spec.tensor) found = &t, m_map.index = index;
          ++index;
        }
      if (!found || found->scalar) return bad(".tensor", fmt::format("'{}' is no input, output or workspace", m_spec.tensor));
      if (!type) return bad(".tensor", fmt::format("there are no tensor maps of {}", name(found->dtype)), "load it without one");
      m_bytes = byte_count(*found, m_names);
    }
    m_map.dtype = *type;
    m_unit = element_bytes(*type);
    return {};
  }

  Status find_offset() {
    if (m_spec.offset.empty()) return {};
    FORGE_TRY_ASSIGN(const std::int64_t elements, number(m_spec.offset, ".offset", 0, kMaxOffset, m_unit));
    m_map.offset_bytes = elements * m_unit;
    if (m_map.offset_bytes % kAlign != 0)
      return bad(".offset", fmt::format("{} elements are {} bytes, no multiple of {}", elements, m_map.offset_bytes, kAlign));
    return {};
  }

  Status find_dims() {
    for (std::size_t i = 0; i < m_spec.dims.size(); ++i) {
      FORGE_TRY_ASSIGN(const std::int64_t dim, number(m_spec.dims[i], fmt::format(".dims[{}]", i), 1, kMaxDim, 1));
      m_map.dims.push_back(dim);
    }
    return {};
  }

  Status find_strides() {
    Wide packed = m_unit;
    for (std::size_t i = 0; i + 1 < m_map.dims.size(); ++i) {
      packed *= m_map.dims[i];
      const bool given = !m_spec.strides.empty();
      const std::string field = given ? fmt::format(".strides[{}]", i) : ".dims";
      Wide stride = packed;
      if (given) {
        FORGE_TRY_ASSIGN(const std::int64_t elements, number(m_spec.strides[i], field, 1, kMaxStride - 1, m_unit));
        stride = Wide(elements) * m_unit;
      }
      if (stride >= kMaxStride) return bad(field, fmt::format("the stride of dimension {} is 2^40 bytes or more", i + 1));
      const auto bytes = static_cast<std::int64_t>(stride);
      if (bytes % kAlign != 0)
        return bad(field, fmt::format("the stride of dimension {} is {} bytes, no multiple of {}", i + 1, bytes, kAlign),
                   "say so in `requires`, or load without a map where the rows are not aligned");
      m_map.stride_bytes.push_back(bytes);
      packed = stride;
    }
    return {};
  }

  // The box of pixels that a filter's origin walks over must not be empty.
  Status check_corners() {
    if (!m_spec.im2col) return {};
    for (std::size_t i = 0; i < m_spec.im2col->lower.size(); ++i)
      if (m_map.dims[i + 1] + m_spec.im2col->upper[i] - m_spec.im2col->lower[i] < 1)
        return bad(".im2col.upper", fmt::format("leaves no pixel of dimension {} ({} of them, corners {} and {})", i + 1, m_map.dims[i + 1],
                                                m_spec.im2col->lower[i], m_spec.im2col->upper[i]));
    return {};
  }

  Status check_inside() const {
    Wide last = Wide(m_map.offset_bytes) + Wide(m_map.dims[0]) * m_unit;
    for (std::size_t i = 1; i < m_map.dims.size(); ++i) last += Wide(m_map.dims[i] - 1) * m_map.stride_bytes[i - 1];
    if (last <= m_bytes) return {};
    const std::string reach = last > kMaxOffset ? "more than 2^46" : fmt::format("{}", static_cast<std::int64_t>(last));
    return bad(".dims", fmt::format("reaches to byte {} of '{}', which has {}", reach, m_spec.tensor, m_bytes),
               "a map lies inside its tensor; what a box has beyond the map's end reads as zero and is not stored");
  }

  const MapSpec& m_spec;
  std::size_t m_index;
  const Definition& m_definition;
  const std::vector<ConcreteWorkspace>& m_workspaces;
  const Names& m_names;
  ConcreteMap m_map;
  std::int64_t m_bytes = 0, m_unit = 1;
};

}  // namespace

std::optional<DType> element_type(const MapSpec& m, const Definition& definition) {
  if (const TensorSpec* t = find_tensor(definition, m.tensor)) {
    switch (t->dtype) {
      case DType::f8_e4m3:
      case DType::f8_e5m2:
        return DType::u8;  // copies know no 8-bit floats
      case DType::f4_e2m1:
        return std::nullopt;
      default:
        return t->dtype;
    }
  }
  for (const auto& [text, type] : {std::pair{"u8", DType::u8}, {"f16", DType::f16}, {"bf16", DType::bf16}, {"f32", DType::f32}})
    if (m.dtype == text) return type;
  return std::nullopt;
}

std::optional<MapProblem> problem_of(const MapSpec& m, DType type) {
  const std::size_t rank = m.dims.size();
  if (rank < 1 || rank > 5) return MapProblem{".dims", fmt::format("{} dimensions are not between 1 and 5", rank), {}};
  if (!m.strides.empty() && m.strides.size() != rank - 1)
    return MapProblem{".strides", fmt::format("{} given, but {} dimensions beyond the innermost", m.strides.size(), rank - 1), {}};
  if (m.swizzle != 0 && m.swizzle != 32 && m.swizzle != 64 && m.swizzle != 128)
    return MapProblem{".swizzle", fmt::format("{} is not one of 0, 32, 64, 128", m.swizzle), {}};
  if (m.l2 != 0 && m.l2 != 64 && m.l2 != 128 && m.l2 != 256)
    return MapProblem{".l2", fmt::format("{} is not one of 0, 64, 128, 256", m.l2), {}};
  if (m.im2col) return problem_of_im2col(m, type);
  if (m.box.size() != rank) return MapProblem{".box", fmt::format("{} given for {} dimensions", m.box.size(), rank), {}};
  for (std::size_t i = 0; i < rank; i++)
    if (m.box[i] < 1 || m.box[i] > kMaxBox)
      return MapProblem{fmt::format(".box[{}]", i), fmt::format("{} is not between 1 and {}", m.box[i], kMaxBox), {}};
  return problem_of_inner(m, type, m.box[0], ".box[0]");
}

Result<ConcreteMap> make_concrete_map(const LaunchPlan& plan, std::size_t index, const Definition& definition,
                                      const std::vector<ConcreteWorkspace>& workspaces, const Names& names) {
  return Concrete(plan, index, definition, workspaces, names).run();
}

}  // namespace forge
