// SPDX-License-Identifier: Apache-2.0
// Tasks of others as operator folders: FlashInfer-Trace definitions with their workloads, KernelBench problems, GPU MODE tasks.
// Text is read, Python is never run; so what only running it would tell is left to the user, and said. Docs: docs/exchange.md.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/operator.h"
#include "exchange/cpp_export.h"
#include "util/fs.h"

namespace forge {

struct ImportedOperator {
  std::string name;                  // of the folder, and of the operator
  std::vector<ExportedFile> files;   // definition.json, task.toml, IMPORT.md, the reference's source
  std::vector<std::string> missing;  // what the user must decide or write, one sentence each; the oracle is always among them
  std::vector<std::string> notes;    // what was decided for the user
};

// What became of one definition, problem or task.
struct ImportItem {
  std::string source;  // file
  std::string format;  // "FlashInfer-Trace", "KernelBench", "GPU MODE"
  std::optional<ImportedOperator> taken;
  std::optional<Error> refused;  // why not, and what to do
};

// A file (a definition, a problem, a task.yml) or a folder that holds some. An error when nothing there is a known format.
Result<std::vector<ImportItem>> import_tasks(const fs::path&);

}  // namespace forge
