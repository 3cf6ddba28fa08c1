// SPDX-License-Identifier: Apache-2.0
#include "gate/oracle_plugin.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <limits>

#include "util/progress.h"

namespace forge {
namespace {

void set_type(DType type, forge_tensor& view) {  // DLPack's codes
  view.bits = static_cast<std::uint8_t>(bits(type));
  switch (type) {
    case DType::i64:
    case DType::i32:
    case DType::i16:
    case DType::i8:
      view.code = 0;
      break;
    case DType::u8:
      view.code = 1;
      break;
    case DType::bf16:
      view.code = 4;
      break;
    case DType::boolean:
      view.code = 6;
      break;
    default:
      view.code = 2;
  }
}

std::vector<forge_tensor> plugin_views(const std::vector<TensorView>& tensors) {
  std::vector<forge_tensor> views;
  for (const TensorView& t : tensors) {
    forge_tensor view{};
    view.name = t.spec.name.c_str();
    view.data = t.data;
    view.rank = static_cast<std::int32_t>(t.shape.size());
    view.shape = t.shape.data();
    set_type(t.spec.dtype, view);
    views.push_back(view);
  }
  return views;
}

std::int64_t product(const std::vector<std::int64_t>& shape) {
  std::int64_t n = 1;
  for (std::int64_t extent : shape) n *= extent;
  return n;
}

// Where the whole output would begin if `range_data` held the elements from `first` on.
double* whole_from(double* range_data, std::int64_t first) {
  return reinterpret_cast<double*>(reinterpret_cast<std::uintptr_t>(range_data) - static_cast<std::uintptr_t>(first) * sizeof(double));
}

}  // namespace

Result<OraclePlugin> OraclePlugin::load(const fs::path& path, const std::string& operator_name) {
  const auto refuse = [&](const std::string& message, const std::string& fix) {
    Error error{.code = Code::bad_input, .message = message};
    error.file = path.string();
    error.fix = fix;
    return fail(error);
  };
  OraclePlugin plugin;
  plugin.m_name = operator_name;
  plugin.m_handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!plugin.m_handle) return refuse(fmt::format("the oracle plugin does not load: {}", dlerror()), "build the project again");
  const auto entry = reinterpret_cast<const forge_oracle_v1* (*)()>(dlsym(plugin.m_handle, "forge_oracle"));
  if (!entry) return refuse("the oracle plugin does not export forge_oracle()", "see include/forge/oracle.h");
  plugin.m_oracle = entry();
  if (!plugin.m_oracle || plugin.m_oracle->version != FORGE_ORACLE_VERSION)
    return refuse(fmt::format("the oracle plugin has version {}, this program wants {}", plugin.m_oracle ? plugin.m_oracle->version : 0,
                              FORGE_ORACLE_VERSION),
                  "build the project again");
  if (!plugin.m_oracle->operator_name || operator_name != plugin.m_oracle->operator_name)
    return refuse(fmt::format("the oracle plugin is for operator '{}', not '{}'",
                              plugin.m_oracle->operator_name ? plugin.m_oracle->operator_name : "", operator_name),
                  "set operator_name in oracle.cc to the operator's name");
  if (!plugin.m_oracle->expected) return refuse("the oracle plugin has no expected()", "see include/forge/oracle.h");
  return plugin;
}

OraclePlugin::OraclePlugin(OraclePlugin&& o) noexcept { *this = std::move(o); }
OraclePlugin& OraclePlugin::operator=(OraclePlugin&& o) noexcept {
  std::swap(m_handle, o.m_handle);
  std::swap(m_oracle, o.m_oracle);
  std::swap(m_name, o.m_name);
  return *this;
}
OraclePlugin::~OraclePlugin() {
  if (m_handle) dlclose(m_handle);
}

Status OraclePlugin::expected(const std::vector<TensorView>& inputs, const std::vector<TensorView>& outputs,
                              const std::vector<bool>& wants_scale, ThreadTeam& team,
                              const std::function<void(const OracleRange&)>& take) const {
  const auto input_views = plugin_views(inputs), output_views = plugin_views(outputs);
  const std::size_t n = outputs.size();
  std::vector<std::int64_t> row(n);  // elements for one index of the leading axis
  bool splits = true;
  for (std::size_t o = 0; o < n; ++o) {
    if (outputs[o].shape.empty() || outputs[o].spec.shape[0] != outputs[0].spec.shape[0])
      splits = false;
    else
      row[o] = product(outputs[o].shape) / outputs[o].shape[0];
  }
  // Without a leading axis in common the whole is one range.
  const std::int64_t extent = outputs[0].shape.empty() ? 1 : outputs[0].shape[0];
  std::int64_t step = extent;
  if (splits) {
    const std::int64_t widest = std::max<std::int64_t>(1, *std::max_element(row.begin(), row.end()));
    step = std::clamp<std::int64_t>(extent / (team.size() * 8), 1, std::max<std::int64_t>(1, 262144 / widest));
  }
  const std::int64_t ranges = (extent + step - 1) / step;
  struct Room {
    std::vector<std::vector<double>> expected, scale;
  };
  std::vector<Room> rooms(static_cast<std::size_t>(team.size()));
  std::atomic<int> status{0};
  team.run(ranges, [&](std::int64_t r, int thread) {
    if (status != 0 || stop_requested()) return;
    Room& room = rooms[static_cast<std::size_t>(thread)];
    room.expected.resize(n);
    room.scale.resize(n);
    OracleRange range{
        .begin = r * step, .end = std::min(extent, (r + 1) * step), .expected = {}, .scale = {}, .first_element = {}, .count = {}};
    std::vector<double*> expected(n), scale(n);
    for (std::size_t o = 0; o < n; ++o) {
      const std::int64_t first = splits ? range.begin * row[o] : 0;
      const std::int64_t count = splits ? (range.end - range.begin) * row[o] : product(outputs[o].shape);
      // NaN, so that an element that the oracle forgets can never be matched by a finite answer.
      room.expected[o].assign(static_cast<std::size_t>(count), std::numeric_limits<double>::quiet_NaN());
      if (wants_scale[o]) room.scale[o].assign(static_cast<std::size_t>(count), std::numeric_limits<double>::quiet_NaN());
      expected[o] = whole_from(room.expected[o].data(), first);
      scale[o] = wants_scale[o] ? whole_from(room.scale[o].data(), first) : nullptr;
      range.expected.push_back(room.expected[o].data());
      range.scale.push_back(wants_scale[o] ? room.scale[o].data() : nullptr);
      range.first_element.push_back(first);
      range.count.push_back(count);
    }
    const int rc =
        m_oracle->expected(input_views.data(), static_cast<std::int32_t>(input_views.size()), output_views.data(),
                           static_cast<std::int32_t>(output_views.size()), expected.data(), scale.data(), range.begin, range.end);
    if (rc != 0)
      status = rc;
    else
      take(range);
  });
  if (stop_requested()) return fail(Code::interrupted, "stopped while the oracle computed");
  if (status != 0)
    return fail(Code::internal, fmt::format("the oracle of '{}' failed with {}", m_name, status.load()), "correct oracle.cc");
  return {};
}

Result<int> OraclePlugin::adversarial_variants(const std::vector<TensorView>& inputs) const {
  if (!m_oracle->adversarial)
    return fail(Code::bad_input, fmt::format("task of '{}' has an adversarial generator but the oracle has no adversarial()", m_name),
                "write adversarial() in oracle.cc, or take the generator out of task.toml");
  const auto views = plugin_views(inputs);
  const int count = m_oracle->adversarial(views.data(), static_cast<std::int32_t>(views.size()), 1, 0);
  if (count < 1) return fail(Code::internal, fmt::format("adversarial() of '{}' returned {}", m_name, count), "correct oracle.cc");
  return count;
}

Status OraclePlugin::adversarial(const std::vector<TensorView>& inputs, std::uint64_t seed, int variant) const {
  const auto views = plugin_views(inputs);
  if (!m_oracle->adversarial || m_oracle->adversarial(views.data(), static_cast<std::int32_t>(views.size()), seed, variant) < 1)
    return fail(Code::internal, fmt::format("adversarial() of '{}' failed on variant {}", m_name, variant), "correct oracle.cc");
  return {};
}

}  // namespace forge
