// SPDX-License-Identifier: Apache-2.0
// Private to .cc files: a TOML file as a tree. Two make it: toml++, which reads all of TOML and says what is wrong, and a plain parser
// for what nearly every file of ours is made of, many times as fast. The plain one takes a text whole or not at all, and then its tree
// is the other's, lines included.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "util/result.h"

namespace forge {

struct TomlNode {
  enum class Kind { table, array, text, integer, real, boolean, date };
  Kind kind = Kind::table;
  std::string_view key;         // in its table; empty: an item of an array, or the root
  int key_line = 0, line = 0;   // 1-based
  std::string_view text;        // into the text that was parsed, or what toml++ made of it
  std::int64_t integer = 0;     // of a boolean 0 or 1
  double real = 0;              //
  std::vector<TomlNode> items;  // of a table or an array
  std::int32_t visit = -1;      // the reader's: which table it is of those that were asked

  const TomlNode* get(std::string_view name) const {
    for (const TomlNode& n : items)
      if (n.key == name) return &n;
    return nullptr;
  }
};

// Comments, [table], [[array of tables]] and key = value with bare keys, where a value is a "text" or """text""" without escapes, a plain
// decimal number, true, false, an array of these or a {table} on one line; all in printable ASCII. False: the text has something else,
// or a fault.
bool parse_plain_toml(std::string_view text, TomlNode& root);
// All of TOML. The tree looks into what this returns.
Result<std::shared_ptr<const void>> parse_any_toml(const std::string& text, const std::string& file, TomlNode& root);

}  // namespace forge
