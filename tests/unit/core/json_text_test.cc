// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "core/json_reader.h"

namespace forge {
namespace {

TEST(JsonText, ParseErrorsHaveLines) {
  const std::vector<std::pair<std::string, int>> table = {{"{\n\"a\": 1,\n}", 3},
                                                          {"{\"a\": tru}", 1},
                                                          {"{\n\n\"a\" 1}", 3},
                                                          {"{}\n{}", 2},
                                                          {"[1,\n2", 2},
                                                          {"{\"a\": \"\n\"}", 1},
                                                          {"", 1},
                                                          {" \n ", 1}};
  for (const auto& [text, line] : table) {
    const auto j = parse_json(text, "f.json");
    ASSERT_FALSE(j) << text;
    EXPECT_EQ(j.error().file, "f.json");
    EXPECT_EQ(j.error().line, line) << text << " -> " << j.error().text();
  }
  EXPECT_FALSE(parse_json("// c\n{}", "f"));
  EXPECT_FALSE(parse_json("{\"a\": 1e999}", "f")) << "no double holds it";
  EXPECT_FALSE(parse_json(std::string(300, '[') + std::string(300, ']'), "f"));
  EXPECT_TRUE(parse_json("{\"a\": \"[[[\\\"[\"}", "f"));
}

TEST(JsonText, AKeyThatIsThereTwiceIsAnError) {
  const auto twice = parse_json("{\"a\": [1, {\"b\": 1,\n \"c\": {},\n \"b\": 2}]}", "f");
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().line, 3);
  EXPECT_NE(twice.error().message.find("'b'"), std::string::npos);
  EXPECT_FALSE(parse_json("{\"\": 1, \"\": 2}", "f"));
  EXPECT_TRUE(parse_json("[{\"a\": {\"a\": 1}, \"b\": \"a\"}, {\"a\": [\"a\", \"a\"]}, [], {}, 1.5, null]", "f"));
}

TEST(JsonText, LineOfField) {
  const std::string text = "{\n \"a\": 1,\n \"b.c\": {\"d\": [\n  1,\n  {\"e\": \"}\\\"{\",\n   \"f\": null}]},\n \"g\": 2\n}";
  ASSERT_TRUE(parse_json(text, "f"));
  EXPECT_EQ(line_of_field(text, "a"), 2);
  EXPECT_EQ(line_of_field(text, "b.c"), 3);
  EXPECT_EQ(line_of_field(text, "b.c.d[0]"), 4);
  EXPECT_EQ(line_of_field(text, "b.c.d[1].e"), 5);
  EXPECT_EQ(line_of_field(text, "b.c.d[1].f"), 6);
  EXPECT_EQ(line_of_field(text, "b.c.d[1].missing"), 5) << "the nearest parent";
  EXPECT_EQ(line_of_field(text, "g"), 7);
  EXPECT_EQ(line_of_field(text, "nowhere"), 1);
}

TEST(JsonText, DumpNeverThrows) {
  EXPECT_EQ(dump(Json{{"a", "\xff"}}), "{\"a\":\"\xef\xbf\xbd\"}");
  EXPECT_EQ(dump(number(0.1)), "0.1");
}

}  // namespace
}  // namespace forge
