// SPDX-License-Identifier: Apache-2.0
// A toy operator and its packages, for the builder's tests.
#pragma once
#include <gtest/gtest.h>

#include "build/build.h"

namespace forge::testing {

inline const char* const kToyPlan = R"(format = 1
target = "cpu:x86-64-avx2"

[[launch]]
entry = "scale"
grid = "1"
)";

inline const char* const kToySource = R"(#include "forge_args.h"
extern "C" void scale(const forge_args* a, const forge_block*) {
  for (int i = 0; i < a->n; ++i) a->y[i] = 2 * a->x[i];
}
)";

// y[n] = f(x[n])
inline Definition toy_definition() {
  Definition d;
  d.name = "toy";
  d.axes = {{.name = "n"}};
  d.inputs = {{.name = "x", .dtype = DType::f32, .shape = {"n"}}};
  d.outputs = {{.name = "y", .dtype = DType::f32, .shape = {"n"}}};
  return d;
}

inline KernelPackage toy_package(const std::string& source = kToySource, const std::string& plan = kToyPlan) {
  return {.source_name = "kernel.cpp", .source = source, .plan_text = plan, .origin = "toy"};
}

inline TargetSpec avx2() { return *find_target("cpu:x86-64-avx2"); }

// Built once a process: asking a compiler for its files takes a while.
inline Compiler& compiler() {
  static const auto found = [] {
    auto c = find_cpu_compiler();
    if (!c) ADD_FAILURE() << c.error().text();
    return std::move(*c);
  }();
  return *found;
}

inline tl::expected<Image, BuildFailure> build_toy(const std::string& source, const std::string& plan = kToyPlan,
                                                   Compiler& with = compiler()) {
  return Builder(with, {}).build(toy_package(source, plan), toy_definition(), avx2());
}

inline std::string said(const tl::expected<Image, BuildFailure>& r) {
  return r ? "built" : std::string(name(r.error().reason)) + ": " + r.error().detail + "\n" + r.error().log;
}

}  // namespace forge::testing
