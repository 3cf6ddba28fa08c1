// SPDX-License-Identifier: Apache-2.0
// A runner without a process, for tests of the gate: what a test's functions do to the judge's buffers is what happened.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runner/runner.h"

namespace forge {

class FakeRunner : public Runner {
 public:
  // Does the kernel's work on the prepared call's buffers. Its result is call()'s.
  std::function<RunnerResult<CallTiming>(const CallSpec&)> on_call = [](const CallSpec&) {
    return RunnerResult<CallTiming>(CallTiming{1e-3, 1.01e-3, 1e-3});
  };
  std::optional<RunnerFailure> prepare_failure;
  CodeProfile next_profile{.note = "fake"};
  std::string text = "fake 1";
  bool is_composed = false;
  int prepares = 0, scrubs = 0, calls = 0, profiles = 0;

  RunnerResult<void> prepare(const CallSpec& spec) override {
    ++prepares;
    if (prepare_failure) return tl::unexpected(*prepare_failure);
    m_spec = spec;
    return {};
  }
  RunnerResult<void> scrub() override {
    ++scrubs;
    return {};
  }
  RunnerResult<CallTiming> call() override {
    ++calls;
    if (!m_spec) return tl::unexpected(RunnerFailure{Reason::runner_broke, "call() without a successful prepare()"});
    return on_call(*m_spec);
  }
  RunnerResult<CodeProfile> profile(double) override {
    ++profiles;
    return next_profile;
  }
  std::string description() const override { return text; }
  std::vector<std::string> sandbox() const override { return {"missing: everything (fake)"}; }
  bool composed() const override { return is_composed; }

 private:
  std::optional<CallSpec> m_spec;
};

}  // namespace forge
