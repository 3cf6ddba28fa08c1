// SPDX-License-Identifier: Apache-2.0
// Operators as folders: operators/<name>/definition.json + task.toml, with the plugins oracle.so and, by family of the target,
// expert-<name>.so (cpu), cuda-expert-<name>.so and cuda-expert-<name>.py (cuda).
#pragma once
#include <string>
#include <vector>

#include "core/operator.h"
#include "util/fs.h"

namespace forge {

struct OperatorFolder {
  Definition definition;
  TaskFile task;       // `timed` is what is timed on this family
  std::string family;  // "cpu", "cuda"
  fs::path folder, oracle;
  std::vector<std::pair<std::string, fs::path>> experts;  // of the family: name, plugin
};
// The toy operators of probes lie beside the entries, knowledge/operators/<name>: nobody is offered to forge for them, but they are
// judged like others. The paths under which this one is found.
Paths with_probe_operators(const Paths&, const std::string& name);
// An empty family: the operator's first. Code::not_found lists what there is, Code::unsupported: not made for this family.
Result<OperatorFolder> load_operator(const Paths&, const std::string& name, const std::string& family = "cpu");
// The texts alone, without plugins and whatever they would need of this machine: for who neither judges nor times.
Result<OperatorFolder> read_operator(const Paths&, const std::string& name, const std::string& family = "cpu");
std::vector<std::string> operator_names(const Paths&);                             // all folders
std::vector<std::string> operator_names(const Paths&, const std::string& family);  // those whose task file reads and names the family

}  // namespace forge
