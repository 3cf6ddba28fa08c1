// SPDX-License-Identifier: Apache-2.0
// An operator of the repository with its plugins loaded in this process, tensors of one shape, and the judges' rules.
#pragma once
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/operator.h"
#include "forge/expert.h"
#include "forge/fill.h"
#include "forge/oracle.h"
#include "util/fs.h"

namespace forge::test {

struct Tensor {
  TensorSpec spec;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> storage;  // with room for 256-byte alignment
  std::byte* data = nullptr;
  std::int64_t count = 0;
  std::vector<double> expected, scale;  // of an output

  double at(std::int64_t i) const {
    if (spec.dtype == DType::f32) return reinterpret_cast<const float*>(data)[i];
    return fill::bf16_to_float(reinterpret_cast<const std::uint16_t*>(data)[i]);
  }
  void set(std::int64_t i, double value) {
    const auto v = static_cast<float>(value);
    if (spec.dtype == DType::f32)
      reinterpret_cast<float*>(data)[i] = v;
    else
      reinterpret_cast<std::uint16_t*>(data)[i] = fill::float_to_bf16(v);
  }
  forge_tensor view() const {
    const std::uint8_t code = spec.dtype == DType::f32 ? 2 : 4;
    return {spec.name.c_str(), data, code, static_cast<std::uint8_t>(bits(spec.dtype)), static_cast<std::int32_t>(shape.size()),
            shape.data()};
  }
};

inline std::filesystem::path plugin(const std::string& op, const std::string& file) {
  return std::filesystem::path(FORGE_BINARY_DIR) / "plugins" / op / file;
}

// The address of a plugin's only function; the plugin stays loaded, as libraries with threads cannot be unloaded.
template <class Table>
const Table* load(const std::filesystem::path& path, const char* symbol) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(library, nullptr) << dlerror();
  if (!library) return nullptr;
  const auto function = reinterpret_cast<const Table* (*)()>(dlsym(library, symbol));
  EXPECT_NE(function, nullptr) << path << " has no " << symbol;
  return function ? function() : nullptr;
}

class Bench {
 public:
  // Every variable axis is `rows` long, but for those in `others`.
  Bench(const std::string& op, std::int64_t rows, const std::map<std::string, std::int64_t>& others = {}) : m_op(op) {
    const std::filesystem::path folder = std::filesystem::path(FORGE_SOURCE_DIR) / "operators" / op;
    const auto json = read_file(folder / "definition.json"), toml = read_file(folder / "task.toml");
    const auto parsed = parse_definition(json.value(), "definition.json");
    EXPECT_TRUE(parsed) << parsed.error().text();
    definition = parsed.value();
    const auto rules = parse_task_file(toml.value(), "task.toml", definition);
    EXPECT_TRUE(rules) << rules.error().text();
    task = rules.value();
    for (const Axis& axis : definition.axes)
      if (!axis.constant) m_variable[axis.name] = others.contains(axis.name) ? others.at(axis.name) : rows;
    const AxisValues axes = complete_axes(definition, m_variable).value();
    for (const auto& spec : definition.inputs) inputs.push_back(make(spec, axes));
    for (const auto& spec : definition.outputs) outputs.push_back(make(spec, axes));
    for (const Tensor& t : inputs) in_views.push_back(t.view());
    for (const Tensor& t : outputs) out_views.push_back(t.view());
    oracle = load<forge_oracle_v1>(plugin(op, "oracle.so"), "forge_oracle");
  }
  void fill_normal(std::uint64_t seed, double scale = 1) {
    fill::Source source(seed);
    for (Tensor& t : inputs)
      for (std::int64_t i = 0; i < t.count; ++i) t.set(i, source.normal() * scale);
  }
  // Student's t with 2 degrees of freedom, clipped, as the generator of that name draws it.
  void fill_heavy_tailed(std::uint64_t seed) {
    fill::Source source(seed);
    for (Tensor& t : inputs)
      for (std::int64_t i = 0; i < t.count; ++i) {
        const double v = source.normal() / std::sqrt(-std::log(1 - source.uniform()) + 1e-30);
        t.set(i, std::clamp(v, -1e4, 1e4));
      }
  }
  int variants() const { return oracle->adversarial(in_views.data(), size(in_views), 1, -1); }
  void fill_adversarial(std::uint64_t seed, int variant) { oracle->adversarial(in_views.data(), size(in_views), seed, variant); }
  // By the oracle, in two ranges as the judge does.
  void compute_expected() {
    std::vector<double*> expected, scale;
    for (Tensor& t : outputs) {
      t.expected.assign(static_cast<std::size_t>(t.count), NAN), t.scale.assign(static_cast<std::size_t>(t.count), NAN);
      expected.push_back(t.expected.data()), scale.push_back(t.scale.data());
    }
    const std::int64_t rows = outputs[0].shape[0];
    for (const auto& [begin, end] : {std::pair{std::int64_t{0}, rows / 2}, std::pair{rows / 2, rows}})
      ASSERT_EQ(
          oracle->expected(in_views.data(), size(in_views), out_views.data(), size(out_views), expected.data(), scale.data(), begin, end),
          0);
  }
  // The largest error as a fraction of the judge's bound; infinite when an `exact` output differs.
  double worst(std::size_t output) const {
    const Tensor& t = outputs[output];
    const JudgeRule& rule = rule_of(t.spec.name);
    double result = 0;
    for (std::int64_t i = 0; i < t.count; ++i) {
      const double expected = t.expected[static_cast<std::size_t>(i)], got = t.at(i);
      double ratio = 0;
      if (rule.kind == JudgeKind::exact) {
        ratio = got == fill::bf16_to_float(fill::float_to_bf16(static_cast<float>(expected))) ? 0 : INFINITY;
      } else {
        const double bound = rule.kind == JudgeKind::scaled ? rule.tolerance * t.scale[static_cast<std::size_t>(i)] +
                                                                  rule.relative * std::fabs(expected) + rule.absolute
                                                            : rule.absolute + rule.tolerance * std::fabs(expected);
        const double error = std::fabs(got - expected);
        ratio = error == 0 ? 0 : error / bound;
      }
      if (!(ratio <= result)) result = ratio;
    }
    return result;
  }
  void poison() {
    for (Tensor& t : outputs) std::fill_n(t.data, t.count * bits(t.spec.dtype) / 8, std::byte{0xff});
  }
  template <class T>
  static std::int32_t size(const std::vector<T>& v) {
    return static_cast<std::int32_t>(v.size());
  }

  Definition definition;
  TaskFile task;
  std::vector<Tensor> inputs, outputs;
  std::vector<forge_tensor> in_views, out_views;
  const forge_oracle_v1* oracle = nullptr;

 private:
  static Tensor make(const TensorSpec& spec, const AxisValues& axes) {
    Tensor t;
    t.spec = spec;
    for (const std::string& axis : spec.shape) t.shape.push_back(axes.at(axis));
    t.count = element_count(spec, axes);
    t.storage.resize(static_cast<std::size_t>(byte_count(spec, axes)) + 256);
    const auto address = reinterpret_cast<std::uintptr_t>(t.storage.data());
    t.data = t.storage.data() + (256 - address % 256) % 256;
    return t;
  }
  const JudgeRule& rule_of(const std::string& output) const {
    for (const JudgeRule& rule : task.judges)
      if (rule.output == output) return rule;
    ADD_FAILURE() << m_op << " has no judge for " << output;
    return task.judges.front();
  }
  std::string m_op;
  std::map<std::string, std::int64_t> m_variable;
};

// Experts pin the calling thread; other tests of this process must not inherit that.
class KeepAffinity {
 public:
  KeepAffinity() { sched_getaffinity(0, sizeof m_set, &m_set); }
  ~KeepAffinity() { sched_setaffinity(0, sizeof m_set, &m_set); }

 private:
  cpu_set_t m_set{};
};

}  // namespace forge::test
