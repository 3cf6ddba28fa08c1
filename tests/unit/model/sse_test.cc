// SPDX-License-Identifier: Apache-2.0
#include "model/sse.h"

#include <gtest/gtest.h>

#include <vector>

namespace forge {
namespace {

using Events = std::vector<std::pair<std::string, std::string>>;

Events split_in(const std::string& stream, std::size_t piece) {
  EventSplitter splitter;
  Events out;
  for (std::size_t at = 0; at < stream.size(); at += piece)
    splitter.feed(std::string_view(stream).substr(at, piece), [&](const ServerEvent& e) {
      out.emplace_back(e.name, e.data);
      return true;
    });
  return out;
}

TEST(EventSplitter, GivesTheSameEventsHoweverTheStreamIsTorn) {
  const std::string stream =
      "\xEF\xBB\xBF: hello\n\nevent: a\ndata: 1\n\n: sign of life\ndata:2\ndata:  3\ndata\nid: 7\nretry: 10\n\nevent: no data\n\ndata: "
      "{\"x\": "
      "\"a:b\"}\n\n";
  const Events expected = {{"a", "1"}, {"", "2\n 3\n"}, {"", "{\"x\": \"a:b\"}"}};
  for (std::size_t piece = 1; piece <= stream.size(); ++piece) EXPECT_EQ(split_in(stream, piece), expected) << "in pieces of " << piece;
}

TEST(EventSplitter, KnowsAllThreeLineEnds) {
  const Events expected = {{"a", "1\n2"}, {"", "3"}};
  for (const std::string end : {"\n", "\r\n", "\r"}) {
    std::string stream;
    for (const char* line : {"event: a", "data: 1", "data: 2", "", "data: 3", "", ""}) stream += line + end;
    for (std::size_t piece = 1; piece < 5; ++piece) EXPECT_EQ(split_in(stream, piece), expected) << piece;
  }
}

TEST(EventSplitter, AnEventThatIsCutShortIsNone) { EXPECT_EQ(split_in("data: 1\n\ndata: 2\n", 3), (Events{{"", "1"}})); }

TEST(EventSplitter, StopsWhenItIsToldTo) {
  EventSplitter splitter;
  int events = 0;
  splitter.feed("data: 1\n\ndata: 2\n\n", [&](const ServerEvent&) { return ++events, false; });
  EXPECT_EQ(events, 1);
}

}  // namespace
}  // namespace forge
