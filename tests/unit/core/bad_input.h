// SPDX-License-Identifier: Apache-2.0
// Tables of bad inputs: a good text, one replacement, and what the error must say.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "util/result.h"

namespace forge {

struct BadInput {
  std::string from, to;  // the first `from` in the good text becomes `to`
  std::string field;     // what the error names
  std::string says;      // part of message and fix
  int line = 0;          // 0: any
};

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << "the good text lacks: " << from;
  if (at != std::string::npos) text.replace(at, from.size(), to);
  return text;
}

// `parse` takes a text and returns a Result or Status.
template <class Parse>
void expect_refused(const std::string& good, const std::vector<BadInput>& table, Parse parse) {
  {
    const auto fine = parse(good);
    ASSERT_TRUE(fine) << fine.error().text();
  }
  for (const BadInput& bad : table) {
    SCOPED_TRACE(bad.from + "  ->  " + bad.to);
    const auto result = parse(replaced(good, bad.from, bad.to));
    if (result) {
      ADD_FAILURE() << "was accepted";
      continue;
    }
    const Error& e = result.error();
    EXPECT_EQ(e.code, Code::bad_input) << e.text();
    EXPECT_EQ(e.field, bad.field) << e.text();
    EXPECT_NE((e.message + " | " + e.fix).find(bad.says), std::string::npos) << e.text();
    if (bad.line) {
      EXPECT_EQ(e.line, bad.line) << e.text();
    }
  }
}

}  // namespace forge
