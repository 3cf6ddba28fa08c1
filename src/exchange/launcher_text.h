// SPDX-License-Identifier: Apache-2.0
// The parts of a generated launcher that come from the plan and are alike on a CPU and on a GPU. Private to this layer.
#pragma once
#include <string>

#include "core/launch_plan.h"
#include "exchange/cpp_export.h"

namespace forge {

struct LauncherParts {
  const ExportRequest& request;
  LaunchPlan plan;
  ArgLayout layout;
  std::string name;  // export_name()
  bool cuda = false;
};

bool is_header_macro(const std::string& name);   // of what a launcher includes: no tensor, axis or entry may have it
bool is_launcher_name(const std::string& name);  // no launcher may have it: a namespace below forge_export, the stem of its files
// The C++ type of an element for a caller: 16- and 8-bit floats are bit patterns.
std::string element_type_text(DType);
// `struct Arguments { ... };`
std::string arguments_struct(const LauncherParts&);
// The head of run(): axes, requires, lets and tensors, each checked. Leaves `e` (forge_math) and v_<name> behind.
std::string checked_names(const LauncherParts&);
// `std::int64_t bytes_<i>` of each workspace, checked.
std::string workspace_sizes(const LauncherParts&);
// A statement that leaves run() unless low <= value <= high.
std::string range_check(const std::string& value, const std::string& low, const std::string& high, const std::string& field);
std::string generated_by(const LauncherParts&);  // the comment at the top of a file

Result<std::vector<ExportedFile>> cpu_launcher(const LauncherParts&);
Result<std::vector<ExportedFile>> cuda_launcher(const LauncherParts&);
// Lines for README.md that tell what a caller hands over.
std::string arguments_table(const LauncherParts&);

}  // namespace forge
