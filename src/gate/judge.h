// SPDX-License-Identifier: Apache-2.0
// The judge: owns inputs, expected outputs, tolerances and seeds of one operator, in memory that it alone may write.
// Base pairs (input, expected) come from the oracle; every call gets fresh content made from a base by a random exact symmetry,
// so no two calls see the same bytes. Not thread-safe; uses its cores for its own work while runners are stopped.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/verdict.h"
#include "gate/catalog.h"
#include "runner/runner.h"

namespace forge {

struct JudgeOptions {
  std::vector<int> cores;                           // threads for filling, oracle and comparison
  std::size_t memory_bytes = std::size_t(3) << 30;  // for bases and buffers together
  std::size_t batch_bytes = std::size_t(24) << 30;  // for the slots of a batch, on a card
};

// What became of one call's outputs.
struct CheckResult {
  Reason reason =
      Reason::accepted;  // accepted, wrong_result, non_finite, not_written, inputs_changed, out_of_bounds, stale_result, dirty_workspace
  std::string detail;    // "C[3, 17]: 1.25, expected 1.31 +- 2e-6 (workload M=1024, normal)"
  double worst = 0;      // largest error over its bound
  std::int64_t elements = 0;  // compared; equals the number expected, or it is not accepted
};

// Buffers for one workload: one set of operand buffers that every side maps at the same addresses.
class Stage {
 public:
  virtual ~Stage() = default;
  virtual const std::string& label() const = 0;  // "M=1024, normal"
  virtual const AxisValues& axes() const = 0;
  // New content: base by random symmetry into the inputs (non-temporal stores, so they leave the caches), outputs and
  // workspaces poisoned, canaries set. Call before every call of every side.
  virtual Status refresh() = 0;
  // Every element of every output against the expected one of the current content; inputs and canaries untouched; clean
  // workspaces zero. Fails closed.
  virtual CheckResult check() = 0;
  // The call that a runner of this image makes on these buffers. Workspaces are allocated on first use per image and live as long
  // as someone holds the call's keep_alive; they are poisoned from the next refresh() on. Code::unsupported when `requires` is
  // false for this shape; Code::bad_input with field "workspace.bytes" beyond the task's limit.
  virtual Result<CallSpec> call_for(const Image&, int workers) = 0;
  virtual CallSpec call_for_expert() = 0;
};

// Many contents side by side, for the outside clock's batches on a GPU (docs/judging.md, "Two clocks"): every call of a batch works
// on a slot of its own.
class Batch {
 public:
  virtual ~Batch() = default;
  virtual int slots() const = 0;
  virtual Status refresh(int calls) = 0;  // new content, as Stage::refresh(), for `calls` calls; all slots look alike
  // The first `calls` slots answered, and nothing written in the others; the first that fails, or all elements together.
  virtual CheckResult check(int calls) = 0;
  virtual Result<std::vector<CallSpec>> calls_for(const Image*, int workers) = 0;  // one a slot; an expert's when there is no image
};

class Judge {
 public:
  static Result<std::unique_ptr<Judge>> make(const OperatorFolder&, const JudgeOptions&);
  virtual ~Judge() = default;
  // A stage for a workload and a generator. `bases` distinct base pairs from the oracle, cached by (shape, generator) for the
  // judge's life unless fresh: then drawn anew and not shared.
  virtual Result<std::unique_ptr<Stage>> stage(const std::map<std::string, std::int64_t>& axes, const std::string& generator, int bases,
                                               bool fresh) = 0;
  // At most `slots` contents of a workload; fewer where memory is short, Code::unsupported where this judge has none.
  virtual Result<std::unique_ptr<Batch>> batch(const std::map<std::string, std::int64_t>& /*axes*/, const std::string& /*generator*/,
                                               int /*bases*/, int /*slots*/) {
    return fail(Code::unsupported, "this judge has no batches");
  }
  // The workloads of a correctness run: every generator, public shapes, hidden shapes drawn now from OS entropy, corner shapes.
  virtual std::vector<Workload> correctness_workloads() = 0;
  virtual const Workload& timed() const = 0;
  virtual double preparing_seconds() const { return 0; }  // spent so far on drawing inputs and asking the oracle
};

}  // namespace forge
