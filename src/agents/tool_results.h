// SPDX-License-Identifier: Apache-2.0
// Private to .cc files: what a tool call is answered with. A JSON object, verdict first, under 8 KB, valid UTF-8.
#pragma once
#include <string>

#include "agents/tools.h"
#include "core/json_io.h"

namespace forge {

inline constexpr std::size_t kMaxResult = 8000;  // bytes; the clients of MCP cut longer ones

// Cuts the longest texts and lists until the whole fits, and says how much is missing.
ToolResult tool_result(Json object, bool error = false);
ToolResult refusal(const Error&);  // of a call that was wrong: what, and how to do it right

Json verdict_result(const Workbench&, const Verdict&);  // of a hand-in
Json check_result(const Workbench&, const Verdict&);    // of a check: correctness and mechanism alone
Json evidence_result(const Workbench&, const Evidence&);
Json budget_result(const Workbench&);

// The head of a log for the result; a longer one goes whole into logs/<name>.txt of the workspace, which the result names.
Json log_result(const std::string& log, const std::string& workspace, const std::string& name);

}  // namespace forge
