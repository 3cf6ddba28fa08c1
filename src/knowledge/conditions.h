// SPDX-License-Identifier: Apache-2.0
// The conditions of a base, compiled: equal texts once, names as numbers, a few bytes a condition. Asked with the names of one
// retrieval, each is evaluated at most once. What they mean is core/expr.h's evaluate(), with which a test compares them.
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/expr.h"

namespace forge {

class Conditions {
 public:
  static constexpr std::uint32_t kAlways = 0;  // the empty condition
  std::uint32_t add(const Expr&);
  void finish();  // nothing is added any more: what only adding needs is dropped

  // Not thread-safe: it remembers.
  class Asked {
   public:
    Asked(const Conditions&, const Names&);
    bool holds(std::uint32_t condition);  // an error, such as an unknown name, is false

   private:
    std::int64_t value(const std::uint8_t*& at);
    const Conditions& m_all;
    std::vector<std::int64_t> m_values;  // by name
    std::vector<bool> m_known;
    std::vector<std::int8_t> m_answers;  // -1: not asked yet
    bool m_error = false;
  };

 private:
  void encode(const Expr&, int node, std::string& into);
  std::vector<std::uint8_t> m_code;  // in prefix order: operator, then its operands
  std::vector<std::uint32_t> m_starts = {0};
  std::vector<std::string> m_names;
  std::unordered_map<std::string, std::uint32_t> m_name_ids;
  std::unordered_map<std::size_t, std::uint32_t> m_by_hash;  // of a code, to the first condition that has it
};

}  // namespace forge
