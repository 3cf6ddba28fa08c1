// SPDX-License-Identifier: Apache-2.0
#include "agents/agent_usage.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/loose_json.h"
#include "util/text.h"

namespace forge {

const char* name(UsageFormat f) {
  switch (f) {
    case UsageFormat::none:
      return "none";
    case UsageFormat::claude_code:
      return "claude-code";
    case UsageFormat::codex:
      return "codex";
    case UsageFormat::gemini:
      return "gemini";
    case UsageFormat::opencode:
      return "opencode";
  }
  return "";
}

namespace {

constexpr std::size_t kDocumentCap = 16 << 20;

std::int64_t count(const Json& j, const char* key) {
  const Json& v = field_of(j, key);
  if (!v.is_number()) return 0;
  const double d = v.get<double>();
  return d > 0 && d < 1e12 ? static_cast<std::int64_t>(d) : 0;
}
double dollars(const Json& j, const char* key) {
  const Json& v = field_of(j, key);
  return v.is_number() ? std::clamp(v.get<double>(), 0.0, 1e9) : 0;
}
std::string text(const Json& j, const char* key) {
  const Json& v = field_of(j, key);
  return v.is_string() ? utf8_head(v.get_ref<const std::string&>(), 500) : std::string();
}
// In all of `total` tokens of a prompt, what came from the cache and what did not.
TokenUse prompt(std::int64_t total, std::int64_t cache_read, std::int64_t cache_write) {
  TokenUse u;
  u.cache_read = std::min(total, cache_read);
  u.cache_write = std::min(total - u.cache_read, cache_write);
  u.input = total - u.cache_read - u.cache_write;
  return u;
}

class NoUsage final : public UsageReader {
 public:
  void line(const std::string&) override {}
};

class LineUsage : public UsageReader {
 public:
  void line(const std::string& line) override {
    if (line.empty() || line[0] != '{') return;
    const Json j = Json::parse(line, nullptr, false);
    if (j.is_object()) event(j, text(j, "type"));
  }

 protected:
  virtual void event(const Json&, const std::string& type) = 0;
  void refused(std::int64_t status) { m_hopeless = fmt::format("the agent's API refuses its key: HTTP {}", status); }
};

TokenUse claude_usage(const Json& u) {
  TokenUse use;
  use.input = count(u, "input_tokens");
  use.cache_read = count(u, "cache_read_input_tokens");
  use.cache_write = count(u, "cache_creation_input_tokens");
  use.output = count(u, "output_tokens");
  return use;
}

class ClaudeUsage final : public LineUsage {
  void event(const Json& j, const std::string& type) override {
    if (type == "system" && text(j, "subtype") == "api_retry") {  // it would try ten times, for minutes
      const std::int64_t status = count(j, "error_status");
      if (status == 401 || status == 403) refused(status);
    }
    // Of the message's start, so its output is not the final one: a lower bound that a killed agent leaves.
    if (type == "assistant" && !m_final) {
      const Json& message = field_of(j, "message");
      m_messages[text(message, "id")] = claude_usage(field_of(message, "usage"));
      TokenUse sum;
      for (const auto& [id, use] : m_messages) sum += use;
      sum.estimated = true;
      replace(sum);
    }
    if (type != "result") return;
    m_final = true;
    TokenUse all;
    for (const auto& [model, u] : field_of(j, "modelUsage").items()) {
      all.input += count(u, "inputTokens");
      all.cache_read += count(u, "cacheReadInputTokens");
      all.cache_write += count(u, "cacheCreationInputTokens");
      all.output += count(u, "outputTokens");
    }
    if (all.total() == 0) all = claude_usage(field_of(j, "usage"));  // of the main model alone
    all.dollars = dollars(j, "total_cost_usd");
    replace(all);
    m_last_words = text(j, "subtype");
    if (const std::string said = text(j, "result"); !said.empty()) m_last_words += ": " + said;
  }

  std::map<std::string, TokenUse> m_messages;
  bool m_final = false;
};

class CodexUsage final : public LineUsage {
  void event(const Json& j, const std::string& type) override {
    if (type == "turn.completed") {
      const Json& u = field_of(j, "usage");
      TokenUse use = prompt(count(u, "input_tokens"), count(u, "cached_input_tokens"), count(u, "cache_write_input_tokens"));
      use.output = count(u, "output_tokens");
      m_use += use;
    }
    if (type == "turn.failed") m_last_words = "turn failed: " + text(field_of(j, "error"), "message");
    if (type == "error") m_last_words = "error: " + text(j, "message");
    if (type == "item.completed" && text(field_of(j, "item"), "type") == "agent_message") m_last_words = text(field_of(j, "item"), "text");
  }
};

class GeminiUsage final : public LineUsage {  // either of its two outputs
 public:
  void line(const std::string& line) override {
    if (!m_streamed && m_document.size() + line.size() < kDocumentCap) m_document += line + "\n";
    LineUsage::line(line);
  }
  void end() override {
    const std::size_t from = m_document.find('{');
    if (m_streamed || from == std::string::npos) return;
    const Json j = Json::parse(m_document.substr(from), nullptr, false);
    for (const auto& [model, m] : field_of(field_of(j, "stats"), "models").items()) {
      const Json& t = field_of(m, "tokens");
      TokenUse use = prompt(count(t, "prompt"), count(t, "cached"), 0);
      use.input += count(t, "tool");
      use.output = count(t, "candidates") + count(t, "thoughts");
      m_use += use;
    }
    m_last_words = field_of(j, "error").is_object() ? "error: " + text(field_of(j, "error"), "message") : text(j, "response");
  }

 private:
  void event(const Json& j, const std::string& type) override {
    if (type == "error") m_last_words = "error: " + text(j, "message");
    if (type != "result") return;
    m_streamed = true;
    const Json& s = field_of(j, "stats");
    TokenUse use = prompt(count(s, "input_tokens"), count(s, "cached"), 0);
    // Thoughts are in the total alone.
    use.output = std::max(count(s, "output_tokens"), count(s, "total_tokens") - count(s, "input_tokens"));
    replace(use);
    if (m_last_words.empty()) m_last_words = text(j, "status");
  }

  std::string m_document;
  bool m_streamed = false;
};

class OpencodeUsage final : public LineUsage {
  void event(const Json& j, const std::string& type) override {
    if (type == "error")
      m_last_words = "error: " + (text(field_of(field_of(j, "error"), "data"), "message") + text(field_of(j, "error"), "name"));
    if (type == "text") m_last_words = text(field_of(j, "part"), "text");
    if (type != "step_finish") return;
    const Json& part = field_of(j, "part");
    const Json& t = field_of(part, "tokens");
    TokenUse use;
    use.input = count(t, "input");
    use.cache_read = count(field_of(t, "cache"), "read");
    use.cache_write = count(field_of(t, "cache"), "write");
    use.output = count(t, "output") + count(t, "reasoning");
    use.dollars = dollars(part, "cost");
    m_use += use;
  }
};

}  // namespace

std::unique_ptr<UsageReader> make_usage_reader(UsageFormat f) {
  switch (f) {
    case UsageFormat::none:
      break;
    case UsageFormat::claude_code:
      return std::make_unique<ClaudeUsage>();
    case UsageFormat::codex:
      return std::make_unique<CodexUsage>();
    case UsageFormat::gemini:
      return std::make_unique<GeminiUsage>();
    case UsageFormat::opencode:
      return std::make_unique<OpencodeUsage>();
  }
  return std::make_unique<NoUsage>();
}

}  // namespace forge
