// SPDX-License-Identifier: Apache-2.0
// Private to .cc files: the arguments of a tool call, which are hostile. Everything that is wrong becomes one sentence that says how
// to do it right.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "agents/tools.h"
#include "agents/workspace_files.h"
#include "core/json_io.h"

namespace forge {

inline constexpr std::size_t kMaxArguments = 8 << 20;  // bytes of a call's JSON text, escapes and all
inline constexpr std::size_t kMaxWords = 4000;         // bytes of any other text

using Decisions = std::vector<std::pair<std::string, std::string>>;

class Arguments {
 public:
  // The object that the text holds; else the error says so.
  static Result<Arguments> read(const std::string& text);

  Status only(const std::set<std::string>& keys) const;  // another key: names the nearest
  bool has(const std::string& key) const { return m_object.contains(key) && !m_object[key].is_null(); }
  // A string that is valid UTF-8 without NUL, at most so many bytes, not blank when it is needed.
  Result<std::string> text(const std::string& key, bool needed, std::size_t most = kMaxWords) const;
  Result<Decisions> decisions() const;  // key "decisions": an object of strings
  // `source` and `plan`. A `folder` is in them already: ready_call() has read it.
  Result<KernelPackage> package(const std::string& target_family) const;
  const Json& value() const { return m_object; }

 private:
  explicit Arguments(Json object) : m_object(std::move(object)) {}
  friend Result<std::vector<Arguments>> list_of(const Arguments&, const std::string& key, std::size_t least, std::size_t most);
  Json m_object;
};
Result<std::vector<Arguments>> list_of(const Arguments&, const std::string& key, std::size_t least, std::size_t most);

// The call as it goes on record: a `folder` is replaced by the texts in it, and arguments that cannot be recorded as they are (too long,
// not UTF-8, a folder that cannot be read) by {"refused": why}, which call_tool() answers with that reason.
Result<ToolCall> ready_call(ToolCall, const std::string& workspace);

}  // namespace forge
