// SPDX-License-Identifier: Apache-2.0
// Operators as folders: operators/<name>/definition.json + task.toml, with the plugins oracle.so and expert-<name>.so.
#pragma once
#include <string>
#include <vector>

#include "core/operator.h"
#include "util/fs.h"

namespace forge {

struct OperatorFolder {
  Definition definition;
  TaskFile task;
  fs::path folder, oracle;
  std::vector<std::pair<std::string, fs::path>> experts;  // name, plugin
};
Result<OperatorFolder> load_operator(const Paths&, const std::string& name);  // not_found lists what there is
std::vector<std::string> operator_names(const Paths&);

}  // namespace forge
