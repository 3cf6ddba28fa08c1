// SPDX-License-Identifier: Apache-2.0
#include "mcp/protocol.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/loose_json.h"

namespace forge {

namespace {

constexpr const char* kLegacy[] = {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"};
constexpr const char* kModern = "2026-07-28";
constexpr const char* kVersionKey = "io.modelcontextprotocol/protocolVersion";
constexpr const char* kCapabilitiesKey = "io.modelcontextprotocol/clientCapabilities";
constexpr const char* kServerKey = "io.modelcontextprotocol/serverInfo";
constexpr int kParse = -32700, kInvalid = -32600, kNoMethod = -32601, kParams = -32602, kVersion = -32022;
constexpr int kListMillis = 3600 * 1000;  // the list never changes while a server lives

std::string line_of(const Json& id, const char* key, Json value) {
  return dump(Json{{"jsonrpc", "2.0"}, {"id", id}, {key, std::move(value)}});
}

std::string error_line(const Json& id, int code, const std::string& message, Json data = nullptr) {
  Json error{{"code", code}, {"message", message}};
  if (!data.is_null()) error["data"] = std::move(data);
  return line_of(id, "error", std::move(error));
}

std::string result_line(const Json& id, bool modern, Json result) {
  if (!modern) return line_of(id, "result", std::move(result));
  Json whole{{"resultType", "complete"}};
  whole.update(result);
  return line_of(id, "result", std::move(whole));
}

Json cached(Json result) {
  result["ttlMs"] = kListMillis;
  result["cacheScope"] = "private";
  return result;
}

Json describe(const ToolSpec& t) {
  Json schema = Json::parse(t.tool.schema, nullptr, false);
  if (!schema.is_object()) schema = Json{{"type", "object"}};
  // Nothing that a call does harms anything outside the run, so that no client has to ask a person first.
  return Json{{"name", t.tool.name},
              {"title", t.title},
              {"description", t.tool.description},
              {"inputSchema", schema},
              {"annotations",
               {{"title", t.title},
                {"readOnlyHint", t.read_only},
                {"destructiveHint", false},
                {"idempotentHint", t.read_only},
                {"openWorldHint", false}}}};
}

Json versions() {
  Json all = Json::array({kModern});
  for (auto v = std::rbegin(kLegacy); v != std::rend(kLegacy); ++v) all.push_back(*v);
  return all;
}

bool is_id(const Json& id) { return id.is_string() || id.is_number_integer(); }

// A modern request must say its version and what the client can do. Empty: it may be served.
std::string refuse_modern(const Json& id, const Json& meta) {
  const std::string asked = string_of(meta, kVersionKey);
  if (asked != kModern)
    return error_line(id, kVersion, fmt::format("protocol version '{}' is not supported", asked),
                      Json{{"supported", versions()}, {"requested", asked}});
  const Json* can = find_field(meta, kCapabilitiesKey);
  if (!can || !can->is_object()) return error_line(id, kParams, fmt::format("_meta lacks {}", kCapabilitiesKey));
  return {};
}

Json initialized(const Json& params, const McpSettings& s) {
  const std::string asked = string_of(params, "protocolVersion");
  const bool known = std::find(std::begin(kLegacy), std::end(kLegacy), asked) != std::end(kLegacy);
  return Json{{"protocolVersion", known ? asked : *std::rbegin(kLegacy)},
              {"capabilities", {{"tools", Json::object()}}},
              {"serverInfo", {{"name", s.name}, {"version", s.version}}},
              {"instructions", s.instructions}};
}

Json discovered(const McpSettings& s) {
  return cached(Json{{"supportedVersions", versions()},
                     {"capabilities", {{"tools", Json::object()}}},
                     {"instructions", s.instructions},
                     {"_meta", {{kServerKey, {{"name", s.name}, {"version", s.version}}}}}});
}

}  // namespace

McpProtocol::McpProtocol(std::vector<ToolSpec> tools, McpSettings settings) : m_tools(std::move(tools)), m_settings(std::move(settings)) {}

McpIncoming McpProtocol::receive(const std::string& line) const {
  const auto answer = [](std::string text) { return McpIncoming{std::move(text), std::nullopt, {}}; };
  const Result<Json> parsed = parse_json(line, "message");  // of bounded depth: what copies and writes JSON recurses
  if (!parsed) return answer(error_line(nullptr, kParse, "not JSON: one message a line is expected"));
  const Json& message = *parsed;
  if (!message.is_object()) return answer(error_line(nullptr, kInvalid, "a message is one JSON object; batches are not supported"));
  const Json* id = find_field(message, "id");
  const std::string method = string_of(message, "method");
  const Json no_params = Json::object();
  const Json* given = find_field(message, "params");
  const Json& params = given ? *given : no_params;
  if (method.empty() && (find_field(message, "result") || find_field(message, "error"))) return {};  // an answer: we ask nothing
  if (!id) {
    McpIncoming in;
    if (method == "notifications/cancelled")
      if (const Json* request = find_field(params, "requestId"); request && is_id(*request)) in.cancelled = dump(*request);
    return in;  // other notifications need no deed, and none may be answered
  }
  if (!is_id(*id)) return answer(error_line(nullptr, kInvalid, "an id is a string or an integer"));
  if (string_of(message, "jsonrpc") != "2.0" || method.empty()) return answer(error_line(*id, kInvalid, "not a JSON-RPC 2.0 request"));
  if (!params.is_object()) return answer(error_line(*id, kParams, "params is an object"));

  const Json* meta = find_field(params, "_meta");
  const bool modern = meta && find_field(*meta, kVersionKey);
  if (modern)
    if (std::string refusal = refuse_modern(*id, *meta); !refusal.empty()) return answer(std::move(refusal));
  if (method == "server/discover") {
    if (!modern) return answer(error_line(*id, kParams, fmt::format("_meta lacks {}", kVersionKey)));
    return answer(result_line(*id, true, discovered(m_settings)));
  }
  if (method == "initialize" && !modern) return answer(result_line(*id, false, initialized(params, m_settings)));
  if (method == "ping" && !modern) return answer(result_line(*id, false, Json::object()));
  if (method == "tools/list") {
    if (const Json* cursor = find_field(params, "cursor"); cursor && !cursor->is_null())
      return answer(error_line(*id, kParams, "unknown cursor: the list has one page"));
    Json tools = Json::array();
    for (const ToolSpec& t : m_tools) tools.push_back(describe(t));
    Json result{{"tools", std::move(tools)}};
    return answer(result_line(*id, modern, modern ? cached(std::move(result)) : std::move(result)));
  }
  if (method != "tools/call") return answer(error_line(*id, kNoMethod, fmt::format("no method is called '{}'", method)));

  const std::string tool = string_of(params, "name");
  std::string known;
  bool found = false;
  for (const ToolSpec& t : m_tools) {
    found = found || t.tool.name == tool;
    known += (known.empty() ? "" : ", ") + t.tool.name;
  }
  if (!found) return answer(error_line(*id, kParams, fmt::format("no tool is called '{}'; there are: {}", tool, known)));
  const Json* arguments = find_field(params, "arguments");
  if (arguments && !arguments->is_object() && !arguments->is_null()) return answer(error_line(*id, kParams, "arguments is an object"));
  McpCall call;
  call.id = dump(*id);
  call.modern = modern;
  call.call = ToolCall{call.id, tool, arguments && arguments->is_object() ? dump(*arguments) : "{}"};
  if (meta)
    if (const Json* token = find_field(*meta, "progressToken"); token && is_id(*token)) call.progress_token = dump(*token);
  return McpIncoming{{}, std::move(call), {}};
}

std::string McpProtocol::call_reply(const McpCall& call, const ToolResult& result) {
  Json data = Json::parse(result.text, nullptr, false);
  if (!data.is_object()) data = Json{{"text", result.text}};
  Json reply{{"content", Json::array({{{"type", "text"}, {"text", dump(data)}}})}, {"structuredContent", data}};
  if (result.error) reply["isError"] = true;
  return result_line(Json::parse(call.id), call.modern, std::move(reply));
}

std::string McpProtocol::progress(const McpCall& call, int n, const std::string& message) {
  return dump(Json{{"jsonrpc", "2.0"},
                   {"method", "notifications/progress"},
                   {"params", {{"progressToken", Json::parse(call.progress_token)}, {"progress", n}, {"message", message}}}});
}

std::string McpProtocol::error_reply(const std::string& id, int code, const std::string& message) {
  return error_line(Json::parse(id), code, message);
}

}  // namespace forge
