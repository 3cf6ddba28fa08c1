// SPDX-License-Identifier: Apache-2.0
#include "support/model_answer.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <sstream>

namespace forge {
namespace {

Status fill_files(Json& j, const fs::path& folder) {
  if (j.is_object() && j.size() == 1 && j.contains("$file")) {
    FORGE_TRY_ASSIGN(std::string text, read_file(folder / j["$file"].get<std::string>()));
    j = std::move(text);
  } else if (j.is_structured()) {
    for (auto& inner : j) FORGE_TRY(fill_files(inner, folder));
  }
  return {};
}

std::vector<std::string> texts(const Json& line, const char* key) {
  if (!line.contains(key)) return {};
  if (line[key].is_string()) return {line[key].get<std::string>()};
  return line[key].get<std::vector<std::string>>();
}

// Pieces of `size` characters, none of which splits one.
std::vector<std::string> fragments(const std::string& text, std::size_t size) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = std::min(text.size(), at + std::max<std::size_t>(1, size));
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) end++;
    out.push_back(text.substr(at, end - at));
    at = end;
  }
  return out;
}

struct Call {
  std::string tool, arguments, id;
};

// A line with its defaults resolved.
struct Said {
  std::string model, text, thinking, stop;
  std::vector<Call> calls;
  Json usage;  // null: none
  std::size_t fragment = 20;
};

Said said_by(const Json& line, const Json& request) {
  static std::atomic<int> made_up{0};  // ids differ over all answers
  Said p;
  p.model = request.value("model", "");
  p.text = line.value("text", "");
  p.thinking = line.value("thinking", "");
  p.fragment = line.value("fragment", std::size_t{20});
  for (const Json& c : line.value("calls", Json::array())) {
    const Json arguments = c.value("arguments", Json::object());
    p.calls.push_back({c.value("tool", ""), arguments.is_string() ? arguments.get<std::string>() : dump(arguments),
                       c.contains("id") ? c["id"].get<std::string>() : "call_" + std::to_string(++made_up) + "_made"});
  }
  p.stop = line.value("stop", p.calls.empty() ? "turn" : "tool_calls");
  std::size_t written = p.text.size() + p.thinking.size();
  for (const Call& c : p.calls) written += c.arguments.size();
  const Json counted{{"input", dump(request).size() / 4}, {"cache_read", 0}, {"cache_write", 0}, {"output", written / 4 + 1}};
  p.usage = line.contains("usage") ? line["usage"] : counted;
  return p;
}

std::string translated(const std::string& stop, bool anthropic) {
  static const std::map<std::string, std::pair<const char*, const char*>> words = {
      {"turn", {"end_turn", "stop"}},       {"tool_calls", {"tool_use", "tool_calls"}},
      {"length", {"max_tokens", "length"}}, {"refusal", {"refusal", "content_filter"}},
      {"pause", {"pause_turn", "stop"}},    {"context", {"model_context_window_exceeded", "length"}}};
  const auto at = words.find(stop);
  return at == words.end() ? stop : anthropic ? at->second.first : at->second.second;
}

Json anthropic_usage(const Said& p) {
  return {{"input_tokens", p.usage.value("input", 0)},
          {"cache_creation_input_tokens", p.usage.value("cache_write", 0)},
          {"cache_read_input_tokens", p.usage.value("cache_read", 0)},
          {"output_tokens", p.usage.value("output", 0)}};
}

Json openai_usage(const Said& p) {
  const int cached = p.usage.value("cache_read", 0), written = p.usage.value("cache_write", 0);
  const int input = p.usage.value("input", 0) + cached + written, output = p.usage.value("output", 0);
  return {{"prompt_tokens", input},
          {"completion_tokens", output},
          {"total_tokens", input + output},
          {"prompt_tokens_details", {{"cached_tokens", cached}, {"cache_write_tokens", written}}}};
}

std::string event(const Json& data, bool named) {
  return (named ? "event: " + data["type"].get<std::string>() + "\n" : "") + "data: " + dump(data) + "\n\n";
}

std::vector<std::string> anthropic_events(const Said& p) {
  std::vector<std::string> out;
  const auto send = [&](const Json& j) { out.push_back(event(j, true)); };
  Json message{{"id", "msg_1"}, {"type", "message"}, {"role", "assistant"}, {"model", p.model}, {"content", Json::array()}};
  message["stop_reason"] = nullptr;
  if (!p.usage.is_null()) {
    message["usage"] = anthropic_usage(p);
    message["usage"]["output_tokens"] = 1;  // at the start, as the real one says
  }
  send({{"type", "message_start"}, {"message", message}});
  int index = 0;
  const auto block = [&](const Json& start, const std::vector<Json>& deltas) {
    send({{"type", "content_block_start"}, {"index", index}, {"content_block", start}});
    for (const Json& d : deltas) send({{"type", "content_block_delta"}, {"index", index}, {"delta", d}});
    send({{"type", "content_block_stop"}, {"index", index++}});
  };
  const auto deltas = [&](const char* type, const char* key, const std::string& text) {
    std::vector<Json> all;
    for (const std::string& f : fragments(text, p.fragment)) all.push_back({{"type", type}, {key, f}});
    return all;
  };
  if (!p.thinking.empty()) {
    auto thought = deltas("thinking_delta", "thinking", p.thinking);
    thought.push_back({{"type", "signature_delta"}, {"signature", "c2lnbmVk"}});
    block({{"type", "thinking"}, {"thinking", ""}, {"signature", ""}}, thought);
  }
  out.push_back("event: ping\ndata: {\"type\": \"ping\"}\n\n");
  if (!p.text.empty()) block({{"type", "text"}, {"text", ""}}, deltas("text_delta", "text", p.text));
  for (const Call& c : p.calls)
    block({{"type", "tool_use"}, {"id", c.id}, {"name", c.tool}, {"input", Json::object()}},
          deltas("input_json_delta", "partial_json", c.arguments));
  Json end{{"type", "message_delta"}, {"delta", {{"stop_reason", translated(p.stop, true)}, {"stop_sequence", nullptr}}}};
  if (!p.usage.is_null()) end["usage"] = {{"output_tokens", p.usage.value("output", 0)}};
  send(end);
  send({{"type", "message_stop"}});
  return out;
}

Json anthropic_document(const Said& p) {
  Json content = Json::array();
  if (!p.thinking.empty()) content.push_back({{"type", "thinking"}, {"thinking", p.thinking}, {"signature", "c2lnbmVk"}});
  if (!p.text.empty()) content.push_back({{"type", "text"}, {"text", p.text}});
  for (const Call& c : p.calls) {
    const auto input = parse_json(c.arguments, "");
    content.push_back({{"type", "tool_use"}, {"id", c.id}, {"name", c.tool}, {"input", input ? *input : Json(c.arguments)}});
  }
  Json j{{"id", "msg_1"}, {"type", "message"}, {"role", "assistant"}, {"model", p.model}, {"content", content}};
  j["stop_reason"] = translated(p.stop, true);
  if (!p.usage.is_null()) j["usage"] = anthropic_usage(p);
  return j;
}

Json openai_call(const Call& c, const std::string& arguments) {
  Json j{{"type", "function"}, {"function", {{"name", c.tool}, {"arguments", arguments}}}};
  if (!c.id.empty()) j["id"] = c.id;
  return j;
}

std::vector<std::string> openai_events(const Said& p, bool usage) {
  std::vector<std::string> out;
  const auto send = [&](Json delta, Json finish) {
    Json choice{{"index", 0}, {"delta", std::move(delta)}};
    choice["finish_reason"] = std::move(finish);
    out.push_back(
        event({{"id", "chat_1"}, {"object", "chat.completion.chunk"}, {"model", p.model}, {"choices", Json::array({choice})}}, false));
  };
  send({{"role", "assistant"}, {"content", ""}}, nullptr);
  for (const std::string& f : fragments(p.text, p.fragment)) send({{"content", f}}, nullptr);
  int index = 0;
  for (const Call& c : p.calls) {
    Json begin = openai_call(c, "");
    begin["index"] = index;
    send({{"tool_calls", Json::array({begin})}}, nullptr);
    for (const std::string& f : fragments(c.arguments, p.fragment)) {
      const Json more{{"index", index}, {"function", {{"arguments", f}}}};
      send({{"tool_calls", Json::array({more})}}, nullptr);
    }
    index++;
  }
  send(Json::object(), translated(p.stop, false));
  if (usage)
    out.push_back(event(
        {{"id", "chat_1"}, {"object", "chat.completion.chunk"}, {"model", p.model}, {"choices", Json::array()}, {"usage", openai_usage(p)}},
        false));
  out.push_back("data: [DONE]\n\n");
  return out;
}

Json openai_document(const Said& p) {
  Json message{{"role", "assistant"}, {"content", p.text}};
  for (const Call& c : p.calls) message["tool_calls"].push_back(openai_call(c, c.arguments));
  Json choice{{"index", 0}, {"message", message}, {"finish_reason", translated(p.stop, false)}};
  Json j{{"id", "chat_1"}, {"object", "chat.completion"}, {"model", p.model}, {"choices", Json::array({choice})}};
  if (!p.usage.is_null()) j["usage"] = openai_usage(p);
  return j;
}

}  // namespace

Result<std::vector<ScriptLine>> read_script(const std::string& text, const fs::path& folder) {
  std::vector<ScriptLine> lines;
  std::istringstream in(text);
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos || line[0] == '#') continue;
    auto json = parse_json(line, "script");
    if (!json || !json->is_object()) return fail(Code::bad_input, "line " + std::to_string(number) + " of the script is no JSON object");
    if (json->contains("calls")) FORGE_TRY(fill_files((*json)["calls"], folder));
    const int times = json->value("times", 1);
    lines.push_back({.json = std::move(*json), .number = number, .uses = times == 0 ? -1 : times});
  }
  return lines;
}

std::string complaint(const Json& line, const std::string& body) {
  for (const std::string& wanted : texts(line, "must"))
    if (body.find(wanted) == std::string::npos) return "the request lacks: " + wanted;
  for (const std::string& unwanted : texts(line, "must_not"))
    if (body.find(unwanted) != std::string::npos) return "the request holds: " + unwanted;
  return {};
}

WireAnswer refusal(int status, const std::string& type, const std::string& message) {
  const Json body{{"type", "error"}, {"error", {{"type", type}, {"message", message}}}, {"request_id", "req_1"}};
  return {.status = status, .headers = {"content-type: application/json"}, .pieces = {dump(body)}};
}

WireAnswer render(const Json& line, bool anthropic, const Json& request, const std::string& key) {
  if (const int status = line.value("status", 200); status != 200) {
    std::string message = line.value("message", "by the script");
    for (std::size_t at; (at = message.find("{{key}}")) != std::string::npos;) message.replace(at, 7, key);
    WireAnswer a = refusal(status, line.value("error", "scripted_error"), message);
    if (line.contains("retry_after")) a.headers.push_back("retry-after: " + dump(line["retry_after"]));
    return a;
  }
  if (line.contains("raw")) return {.headers = {"content-type: text/html"}, .pieces = {line["raw"].get<std::string>()}};
  const Said p = said_by(line, request);
  if (!request.value("stream", false) || line.value("plain", false))
    return {.headers = {"content-type: application/json"}, .pieces = {dump(anthropic ? anthropic_document(p) : openai_document(p))}};
  const bool usage = !p.usage.is_null() && request.contains("stream_options");
  WireAnswer a{
      .headers = {"content-type: text/event-stream"}, .pieces = anthropic ? anthropic_events(p) : openai_events(p, usage), .stream = true};
  const std::size_t kept = line.value("cut", line.contains("fail") ? 1 : -1);
  if (kept >= a.pieces.size()) return a;
  a.pieces.resize(kept), a.cut = true;
  if (line.contains("fail")) {
    const Json error{{"type", "error"}, {"error", {{"type", line["fail"]}, {"message", "in the middle"}}}};
    a.pieces.push_back(event(error, anthropic));
  }
  return a;
}

}  // namespace forge
