// SPDX-License-Identifier: Apache-2.0
// Private to tests/support: one line of a model server's script, and how it looks on the wire in either protocol.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/json_io.h"
#include "util/fs.h"

namespace forge {

struct ScriptLine {
  Json json;
  int number = 0;
  int uses = 1;  // left; -1: for ever
};
Result<std::vector<ScriptLine>> read_script(const std::string& text, const fs::path& folder);

// What the body lacks or must not hold; "" when all is as the line wants it.
std::string complaint(const Json& line, const std::string& body);

struct WireAnswer {
  int status = 200;
  std::vector<std::string> headers;
  std::vector<std::string> pieces;  // an event each, or the whole document
  bool stream = false;              // chunked
  bool cut = false;                 // breaks off after the pieces
};
WireAnswer render(const Json& line, bool anthropic, const Json& request, const std::string& key);
WireAnswer refusal(int status, const std::string& type, const std::string& message);

}  // namespace forge
