// SPDX-License-Identifier: Apache-2.0
// The launch plan (launch.toml): how the harness launches a compiled image. Declarative; a candidate has no host code.
// Format: docs/formats/launch-plan.md. GPU-only keys are parsed here and refused for a CPU target by check_plan.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/expr.h"
#include "core/operator.h"
#include "core/target.h"

namespace forge {

enum class WorkspaceInit { poison, zero, clean, prepared };
const char* name(WorkspaceInit);

struct WorkspaceSpec {
  std::string name;
  Expr bytes;  // 1,024-byte aligned; 0 allowed
  WorkspaceInit init = WorkspaceInit::poison;
};

struct LetSpec {
  std::string name;
  Expr value;
};

struct Im2colSpec {
  std::vector<int> lower, upper;
  int channels = 0, pixels = 0;
};

struct MapSpec {  // cuda: a TMA tensor map
  std::string name, tensor, dtype;
  Expr offset;
  std::vector<Expr> dims, strides;
  std::vector<int> box;
  std::optional<Im2colSpec> im2col;
  int swizzle = 0, l2 = 128;
};

struct LaunchSpec {
  std::string entry;
  Expr when;                              // empty: always
  Expr grid;                              // number of blocks; 0 skips
  std::optional<int> block;               // cuda: threads
  int cluster = 1;                        // cuda
  Expr smem;                              // cuda: dynamic shared bytes; cpu: one worker's scratch bytes. Empty: 0
  bool cooperative = false, pdl = false;  // cuda
};

inline constexpr std::size_t kMaxLaunches = 64;  // of a plan: what one message to a runner holds

struct LaunchPlan {
  int format = 1;
  std::string target;
  std::vector<Expr> requires_;
  std::vector<LetSpec> lets;
  std::vector<WorkspaceSpec> workspaces;
  std::vector<MapSpec> maps;
  std::vector<LaunchSpec> prepare;
  std::vector<LaunchSpec> launches;
};

Result<LaunchPlan> parse_launch_plan(const std::string& toml, const std::string& file);
// Names resolve, ordered as the format says; GPU keys refused on a CPU; entries are C identifiers.
Status check_plan(const LaunchPlan&, const Definition&, const TargetSpec&, const std::string& file);

bool is_identifier(const std::string&);  // a C identifier that is no C++ keyword

// The plan with numbers in it, for one shape on one machine.
struct ConcreteLaunch {
  std::string entry;
  std::int64_t grid = 0;
  std::int64_t scratch_bytes = 0;  // cpu: one worker's scratch; cuda: dynamic shared memory of a block
  int block = 0, cluster = 1;      // cuda: threads of a block; blocks of a cluster
  bool cooperative = false, pdl = false;
};
struct ConcreteWorkspace {
  std::string name;
  std::int64_t bytes = 0;
  WorkspaceInit init = WorkspaceInit::poison;
};
// A tensor map in numbers, innermost dimension first. It lies inside its tensor: make_concrete checked.
struct ConcreteMap {
  std::string name;
  bool in_workspace = false;  // else in a tensor
  int index = 0;              // into inputs-then-outputs, or into workspaces
  DType dtype = DType::f16;
  std::int64_t offset_bytes = 0;
  std::vector<std::int64_t> dims, stride_bytes;  // elements; bytes of dimensions 1.. (one fewer than dims)
  std::vector<int> box;                          // tiled; empty for im2col
  std::optional<Im2colSpec> im2col;
  int swizzle = 0, l2 = 128;
};
struct ConcretePlan {
  std::vector<ConcreteLaunch> launches;                    // `when` false and grid 0 left out
  std::vector<ConcreteWorkspace> workspaces;               // all of them, plan order
  std::vector<std::pair<std::string, std::int64_t>> lets;  // plan order
  std::vector<ConcreteMap> maps;                           // plan order; cuda
};
// Code::unsupported when a `requires` is false (names it); Code::bad_input for anything else, with the field.
// `resident` in a grid: how many blocks of that launch fit the device at once, given its shared memory. On a CPU the workers.
using Residency = std::function<Result<std::int64_t>(const LaunchSpec&, std::int64_t smem_bytes)>;
Result<ConcretePlan> make_concrete(const LaunchPlan&, const Definition&, const AxisValues&, std::int64_t sm_count, const Residency&);
// For plans without maps.
Result<ConcretePlan> make_concrete(const LaunchPlan&, const AxisValues&, std::int64_t sm_count, std::int64_t resident);

// The argument struct's layout (launch-plan.md section 3): inputs, outputs, workspaces, variable axes, lets.
struct ArgField {
  enum class Kind { tensor, workspace, scalar, axis, let, map } kind = Kind::tensor;
  std::string name;
  int index = 0;  // into inputs-then-outputs, workspaces, ...
  DType dtype = DType::f32;
  bool output = false;
  std::size_t offset = 0, bytes = 0;
};
struct ArgLayout {
  std::vector<ArgField> fields;
  std::size_t bytes = 0, alignment = 8;
};
ArgLayout make_arg_layout(const LaunchPlan&, const Definition&);
// The generated header: the struct, typed pointers, constant axes as constexpr, offsetof asserts, forge_block on a CPU.
std::string make_args_header(const LaunchPlan&, const Definition&, const TargetSpec&);

}  // namespace forge
