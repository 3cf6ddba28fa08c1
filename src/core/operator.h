// SPDX-License-Identifier: Apache-2.0
// The operator: a mathematical function with named axes and typed tensors (FlashInfer-Trace's Definition),
// and the task file beside it: judges, generators, symmetries, workloads, cost. Plain data, no I/O.
// Formats: docs/formats/definition.md, docs/formats/task.md.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/expr.h"
#include "util/result.h"

namespace forge {

enum class DType { f32, f16, bf16, f8_e4m3, f8_e5m2, f4_e2m1, i64, i32, i16, i8, boolean, u8 };
const char* name(DType);  // FlashInfer-Trace spelling: "float32", "bfloat16", ...
std::optional<DType> parse_dtype(const std::string&);
int bits(DType);  // 4 for f4_e2m1

struct Axis {
  std::string name;
  bool constant = false;
  std::int64_t value = 0;  // of a constant axis
  bool operator==(const Axis&) const = default;
};

struct TensorSpec {
  std::string name;
  DType dtype = DType::f32;
  bool scalar = false;             // shape: null, passed by value
  std::vector<std::string> shape;  // axis names, outermost first; row-major, packed
  bool operator==(const TensorSpec&) const = default;
};

struct Definition {
  std::string name;
  std::string op_type;
  std::string description;
  std::vector<std::string> tags;
  std::vector<Axis> axes;           // file order
  std::vector<TensorSpec> inputs;   // file order = argument order
  std::vector<TensorSpec> outputs;  // file order
  std::string reference;            // Python source of FlashInfer-Trace; kept, never run
  std::vector<std::string> constraints;
};
// Accepts what a FlashInfer-Trace loader accepts: unknown keys are ignored there, so here too.
Result<Definition> parse_definition(const std::string& json, const std::string& file);
const Axis* find_axis(const Definition&, const std::string& name);
const TensorSpec* find_tensor(const Definition&, const std::string& name);  // input or output

// A value for every axis, constant ones included.
using AxisValues = std::map<std::string, std::int64_t>;
// Adds the constant axes to values of the variable ones; missing, unknown or negative axes are errors.
Result<AxisValues> complete_axes(const Definition&, const std::map<std::string, std::int64_t>& variable);
std::int64_t element_count(const TensorSpec&, const AxisValues&);
std::int64_t byte_count(const TensorSpec&, const AxisValues&);

// How an output is accepted. Every kind fails closed and names its source.
enum class JudgeKind {
  scaled,    // |out - ref| <= absolute + relative * |ref| + tolerance * scale, scale per element from the oracle (for a GEMM |A||B|)
  relative,  // |out - ref| <= absolute + tolerance * |ref|
  exact,     // bit-equal to the oracle rounded once to the output's type
  indexes,   // indices into the last axis of input `of`, judged through it: of[row, out[row, i]] equals the oracle's values[row, i],
             // every index in range, none twice in a row. Which of several equal elements is taken is left to the kernel
};
const char* name(JudgeKind);

struct JudgeRule {
  std::string output;
  JudgeKind kind = JudgeKind::relative;
  double tolerance = 0;
  double absolute = 0;
  double relative = 0;     // scaled only: for the rounding of the result itself
  std::string of, values;  // indexes only: an input and an output, see above
  std::string source;      // the paper, formula or test that the tolerance comes from
};

// How inputs are filled. `adversarial` is the operator's own code (include/forge/oracle.h).
enum class GeneratorKind { normal, heavy_tailed, large_magnitude, small_integers, adversarial };
const char* name(GeneratorKind);

struct GeneratorRule {
  std::string name;
  GeneratorKind kind = GeneratorKind::normal;
  double scale = 1;                      // multiplies every drawn value (integers: largest magnitude)
  std::map<std::string, double> offset;  // per input tensor, added after scaling
};

// An exact symmetry of the operator: applying it to the inputs changes the exact outputs by the same action.
enum class SymmetryKind {
  permute,  // reorder along the axis, all tensors that have it
  negate,   // flip signs along the axis, in the listed tensors
};
const char* name(SymmetryKind);

struct SymmetryRule {
  SymmetryKind kind = SymmetryKind::permute;
  std::string axis;
  std::vector<std::string> tensors;  // negate only: inputs and outputs whose sign flips together
};

struct HiddenAxis {
  std::string axis;
  std::int64_t min = 1, max = 1;     // drawn uniformly by the judge
  int count = 2;                     // how many draws per check
  std::vector<std::int64_t> always;  // corner shapes, always checked
};

struct Workload {
  std::string name;                          // "timed", or the file's
  std::map<std::string, std::int64_t> axes;  // variable axes only
  std::string generator = "normal";
};

struct TaskFile {
  std::string operator_name;
  std::vector<std::string> families = {"cpu", "cuda"};  // of targets, where the operator makes sense
  Workload timed;                                       // the workload that is timed
  std::map<std::string, Workload> timed_on;             // by family, where it differs from `timed`
  std::vector<Workload> workloads;                      // public correctness shapes
  std::vector<HiddenAxis> hidden;
  std::vector<JudgeRule> judges;  // exactly one per output
  std::vector<GeneratorRule> generators;
  std::vector<SymmetryRule> symmetries;
  Expr flops, bytes;  // over the axes: useful work, compulsory traffic
  double workspace_limit_bytes = 1 << 28;
};
// What is timed on a target of this family.
const Workload& timed_workload(const TaskFile&, const std::string& family);
// TOML; unknown keys are errors that name file, line and key. Cross-checked against the definition.
Result<TaskFile> parse_task_file(const std::string& toml, const std::string& file, const Definition&);

}  // namespace forge
