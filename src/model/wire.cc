// SPDX-License-Identifier: Apache-2.0
#include "model/wire.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <set>

#include "core/loose_json.h"
#include "model/sse.h"
#include "util/text.h"

namespace forge {
namespace {

constexpr std::size_t kMaxAnswer = 64u << 20;  // bytes; a longer one is no answer
constexpr std::size_t kMaxQuoted = 600;        // of a server's message
constexpr std::size_t kMaxHead = 4096;         // kept of an answer that turns out to be none

// Feeds a reader from pieces of a body, whichever of the two forms it has.
class Body {
 public:
  explicit Body(AnswerReader& reader) : m_reader(reader) {}
  bool take(std::string_view bytes) {
    m_size += bytes.size();
    if (m_head.size() < kMaxHead) m_head.append(bytes.substr(0, kMaxHead - m_head.size()));
    if (m_form == 0) m_form = first_form(bytes);
    if (m_form == '{') m_document.append(bytes);
    if (m_form != 's') return m_size <= kMaxAnswer;
    m_events.feed(bytes, [&](const ServerEvent& e) {
      m_any_event = true;
      m_reader.event(e.data);
      return !m_reader.ended && !m_reader.problem;
    });
    return !m_reader.ended && !m_reader.problem && m_size <= kMaxAnswer;
  }
  void finish() {
    if (m_form == '{') m_reader.document(m_document);
  }
  bool foreign() const { return m_form == 's' && !m_any_event; }
  bool too_long() const { return m_size > kMaxAnswer; }
  const std::string& head() const { return m_head; }

 private:
  static char first_form(std::string_view bytes) {
    const std::size_t at = bytes.find_first_not_of(" \t\r\n");
    return at == std::string::npos ? 0 : bytes[at] == '{' ? '{' : 's';
  }
  AnswerReader& m_reader;
  EventSplitter m_events;
  std::string m_head, m_document;
  std::size_t m_size = 0;
  char m_form = 0;  // '{' a document, 's' a stream, 0 not known yet
  bool m_any_event = false;
};

// What a server said, without the key and of bounded length, in this order: half a key would be one too many.
std::string quote(const std::string& said, const Endpoint& endpoint) {
  const std::string text = without_key(said, endpoint);
  std::string out;
  for (const char c : utf8_head(text, kMaxQuoted)) out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  return trim(out) + (text.size() > kMaxQuoted ? " ..." : "");
}

bool too_long_a_prompt(const ServerError& e) {
  std::string all = e.type + " " + e.code + " " + e.message;
  std::transform(all.begin(), all.end(), all.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const char* sign : {"prompt is too long", "context_length", "context length", "context limit", "context window", "context size",
                           "exceed_context", "request_too_large"})
    if (all.find(sign) != std::string::npos) return true;
  return false;
}

}  // namespace

tl::expected<void, Setback> exchange(const Wire& wire, const HttpRequest& request, AnswerReader& reader) {
  Body body(reader);
  auto reply = wire.http->post(request, [&](std::string_view bytes) { return body.take(bytes); });
  if (reply && reply->status / 100 != 2) {
    // A moment of the server's clock is compared with that clock: ours may be hours off.
    const long long now = parse_http_date(reply->header("date")).value_or(std::time(nullptr));
    const double wait = parse_retry_after(reply->header("retry-after"), now);
    return tl::unexpected(setback_of(wire.endpoint, reply->status, read_server_error(reply->body), wait));
  }
  if (reply) body.finish();
  if (!reader.problem && reader.whole()) return {};
  if (reader.counted) price(wire.settings, reader.reply.use);  // a server bills what it wrote before a stream broke
  if (reader.problem) {
    reader.problem->spent = reader.reply.use;
    return tl::unexpected(*reader.problem);
  }
  Setback setback = broken_answer(wire.endpoint, reply ? "the answer ends before its end" : reply.error().message);
  setback.spent = reader.reply.use;
  if (!reply) {
    setback.error = reply.error();
    setback.again = reply.error().code == Code::io || reply.error().code == Code::timeout;
  } else if (body.foreign() || body.too_long()) {
    setback.again = false;
    setback.error.code = Code::bad_input;
    setback.error.message = wire.endpoint.identity() + ": " +
                            (body.too_long() ? "an answer without end" : "not an answer of this protocol") + ": " +
                            quote(body.head(), wire.endpoint);
    setback.error.fix = "check the base URL";
  }
  return tl::unexpected(std::move(setback));
}

ServerError read_server_error(const std::string& body) {
  ServerError e;
  const auto read = parse_json(body, "");
  if (!read || !read->is_object()) {
    e.message = body;  // a proxy's page, cut by whoever quotes it
    return e;
  }
  const auto inner = read->find("error");
  const Json& object = inner != read->end() && inner->is_object() ? *inner : *read;
  e.type = text_of(object, "type");
  e.code = text_of(object, "code");
  e.message = text_of(object, "message");
  if (e.message.empty() && inner != read->end() && inner->is_string()) e.message = inner->get<std::string>();
  if (e.message.empty()) e.message = text_of(*read, "detail");
  if (e.message.empty()) e.message = body;
  return e;
}

Setback setback_of(const Endpoint& endpoint, int status, const ServerError& e, double retry_after) {
  Setback s;
  s.retry_after = retry_after;
  s.again = worth_retrying(status);
  s.error.code = s.again ? Code::timeout : Code::bad_input;
  s.error.message = endpoint.identity() + fmt::format(": HTTP {}{}{}: {}", status, e.type.empty() ? "" : " ", quote(e.type, endpoint),
                                                      quote(e.message, endpoint));
  // 429 is also how an empty account is told; waiting does not fill it.
  if (e.code == "insufficient_quota" || e.type == "insufficient_quota") s.again = false, s.error.code = Code::bad_input;
  if (status == 413 || (status / 100 == 4 && !s.again && too_long_a_prompt(e))) {
    s.error.code = Code::out_of_range;
    s.error.fix = "shorten the conversation";
  } else if (status == 401 || status == 403) {
    s.error.fix = std::string("check ") + endpoint.key_name();
    if (endpoint.key.empty())
      s.error.fix = std::string("set ") + endpoint.key_name() + "; it is never sent over plain http to another machine";
  } else if (status == 404) {
    s.error.fix = "check the model's name and the base URL";
  } else if (status / 100 == 3) {
    s.error.fix = "name the base URL that the server redirects to";
  }
  return s;
}

Setback broken_answer(const Endpoint& endpoint, const std::string& what) {
  Setback s;
  s.again = true;
  s.error.code = Code::timeout;
  s.error.message = endpoint.identity() + ": " + quote(what, endpoint);
  return s;
}

void clean(const Endpoint& endpoint, ModelReply& reply) {
  reply.model = without_key(std::move(reply.model), endpoint);
  for (ModelBlock& block : reply.blocks)
    for (std::string* text : {&block.text, &block.id, &block.tool}) *text = without_key(std::move(*text), endpoint);
}

void repair_ids(const ModelRequest& request, ModelReply& reply) {
  std::set<std::string> taken;
  for (const ModelMessage& message : request.messages)
    for (const ModelBlock& block : message.blocks)
      if (block.kind == ModelBlock::Kind::tool_call) taken.insert(block.id);
  for (ModelBlock& block : reply.blocks) {
    if (block.kind != ModelBlock::Kind::tool_call) continue;
    for (std::size_t n = taken.size() + 1; block.id.empty() || taken.count(block.id); ++n) block.id = "call_" + std::to_string(n);
    taken.insert(block.id);
  }
}

void price(const ModelSettings& prices, TokenUse& use) {
  const auto or_input = [&](double own) { return own > 0 ? own : prices.dollars_per_million_input; };
  use.dollars = (static_cast<double>(use.input) * prices.dollars_per_million_input +
                 static_cast<double>(use.output) * prices.dollars_per_million_output +
                 static_cast<double>(use.cache_read) * or_input(prices.dollars_per_million_cache_read) +
                 static_cast<double>(use.cache_write) * or_input(prices.dollars_per_million_cache_write)) /
                1e6;
}

void settle(const ModelSettings& prices, std::size_t request_bytes, bool counted, ModelReply& reply) {
  if (!counted) {
    std::size_t written = 0;
    for (const ModelBlock& block : reply.blocks) written += block.text.size() + block.tool.size();
    reply.use = {.input = static_cast<std::int64_t>(request_bytes / 4 + 1), .output = static_cast<std::int64_t>(written / 4 + 1)};
    reply.use.estimated = true;
  }
  price(prices, reply.use);
}

}  // namespace forge
