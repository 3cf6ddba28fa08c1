// SPDX-License-Identifier: Apache-2.0
// An operator folder in the making: what importers found out, and the files that it becomes. Private to this layer.
#pragma once
#include <map>

#include "exchange/import.h"

namespace forge {

// `missing` is set for what has to be decided: then task.toml holds it as a comment that begins with MISSING.
struct OperatorDraft {
  Definition definition;
  std::string definition_json;  // as found, or made
  std::string source, format;   // for the texts
  std::vector<Workload> workloads;
  std::map<std::string, double> scalars;  // values that the workloads give scalar inputs
  std::vector<ExportedFile> files;        // beside: reference.py
  std::vector<std::string> missing, notes;
};

// Names that cannot become C++ or a folder's name are refused here; an incomplete definition (no outputs known) is not.
Result<ImportedOperator> finish_draft(OperatorDraft);
// A definition in FlashInfer-Trace's form.
std::string definition_to_json(const Definition&);
ImportItem refused_item(std::string source, std::string format, Error);

std::vector<ImportItem> import_flashinfer(const std::vector<fs::path>& definitions, const std::vector<fs::path>& workloads);
ImportItem import_kernelbench(const fs::path&);
ImportItem import_gpumode(const fs::path& task_yml);

}  // namespace forge
