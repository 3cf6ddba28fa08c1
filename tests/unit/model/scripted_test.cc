// SPDX-License-Identifier: Apache-2.0
#include "model/scripted.h"

#include <gtest/gtest.h>

namespace forge {
namespace {

TEST(ScriptedModel, PlaysBackAndKeepsWhatItWasAsked) {
  ScriptedModel model({says("one"), fail(Code::timeout, "too slow"), calls({{"submit", "{}"}, {"submit", "{", "x"}}, "two")});
  EXPECT_EQ(model.ask({.system = "first"}, 5)->blocks[0].text, "one");
  EXPECT_EQ(model.ask({.system = "second"}, 6).error().code, Code::timeout);
  const auto third = model.ask({}, 7);
  EXPECT_EQ(third->end, ModelReply::End::tool_calls);
  ASSERT_EQ(third->blocks.size(), 3u);
  EXPECT_EQ(third->blocks[1].id, "call_1");
  EXPECT_EQ(third->blocks[2].id, "x");
  EXPECT_EQ(model.asked[1].system, "second");
  EXPECT_EQ(model.seconds, (std::vector<double>{5, 6, 7}));
  EXPECT_EQ(model.ask({}, 1).error().code, Code::internal);
}

}  // namespace
}  // namespace forge
