// SPDX-License-Identifier: Apache-2.0
// The plain parsers beside the libraries that read all of TOML and JSON: what a plain one takes, it takes in the same way.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/entry.h"
#include "core/plain_json.h"
#include "core/toml_node.h"
#include "util/fs.h"
#include "util/random.h"

namespace forge {
namespace {

std::vector<std::string> texts_of_this_tree(const std::string& extension) {
  std::vector<std::string> out;
  for (const char* folder : {"operators", "blueprints", "knowledge", "results", "tests/fuzz/corpus"})
    for (const auto& f : fs::recursive_directory_iterator(fs::path(FORGE_SOURCE_DIR) / folder))
      if (f.is_regular_file() && f.file_size() < 200'000 &&
          (f.path().extension() == extension || f.path().string().find("corpus") != std::string::npos))
        out.push_back(*read_file(f.path()));
  return out;
}

// A few bytes changed, moved or lost; often into what the formats give a meaning.
std::string damage(std::string text, Random& r) {
  static const std::string kMeaning = "\"'\\[]{}=.,:#-+_eE0123456789 \n\r\ttfn\x7f\xc3";
  for (std::uint64_t n = 1 + r.below(3); n > 0 && !text.empty(); --n) {
    const std::size_t at = r.below(text.size()), length = 1 + r.below(6);
    const std::uint64_t how = r.below(4);
    if (how == 0)
      text.erase(at, length);
    else if (how == 1)
      text.insert(at, text.substr(at, length));
    else if (how == 2)
      text[at] = kMeaning[r.below(kMeaning.size())];
    else
      text.insert(at, 1, kMeaning[r.below(kMeaning.size())]);
  }
  return text;
}

std::string shown(const TomlNode& n) {
  std::vector<std::string> items;
  for (const TomlNode& i : n.items) items.push_back(shown(i));
  if (n.kind == TomlNode::Kind::table) std::sort(items.begin(), items.end());
  std::string out = std::string(n.key) + "@" + std::to_string(n.key_line) + "," + std::to_string(n.line) + ":" +
                    std::to_string(static_cast<int>(n.kind)) + " '" + std::string(n.text) + "' " + std::to_string(n.integer) + " " +
                    fmt::format("{:a}", n.real);
  for (const std::string& i : items) out += " (" + i + ")";
  return out;
}

// Whether the plain parser took it.
bool same_as_all_of_toml(const std::string& text) {
  TomlNode plain, any;
  if (!parse_plain_toml(text, plain)) return false;
  const auto made = parse_any_toml(text, "f", any);
  EXPECT_TRUE(made) << made.error().text() << "\n" << text;
  if (made) {
    EXPECT_EQ(shown(plain), shown(any)) << text;
  }
  return true;
}

bool same_as_all_of_json(const std::string& text) {
  Json plain;
  if (!parse_plain_json(text, plain)) return false;
  const Json any = Json::parse(text, nullptr, false);
  EXPECT_FALSE(any.is_discarded()) << text;
  EXPECT_EQ(plain.dump(), any.dump()) << text;
  EXPECT_EQ(plain, any) << text;
  EXPECT_EQ(Json::to_cbor(plain), Json::to_cbor(any)) << text;  // which tells whole numbers from others
  return true;
}

const char* const kToml = R"x(# first
format = 1
id = "an-id"   # of it
list = ["a", "b # no comment",  # one
  "c", ]
none = []
deep = [[1, 2], [true]]
yes = true
no=false
minus = -12
real = 0.25
small = -1000.5
long = """
first "line"
  second"""  # its end
longer = """one line"""
in = { a = "x", b-c = [1, 2], d = {} }
nothing = {}
after = 1

[table]
one = "x"
[[row]]
a = 1
[[row]]
[ other ]
b = 2)x";

TEST(PlainToml, TakesWhatItsHeaderSays) { EXPECT_TRUE(same_as_all_of_toml(kToml)); }

TEST(PlainToml, LeavesTheRestToTheLibrary) {
  for (const char* text : {"a = 'x'",
                           "a = \"\\n\"",
                           "a = \"\"\"x\"\"\"\"",
                           "a = \"\"\"x\\n\"\"\"",
                           "a = \"\"\"x\"\"",
                           "a = \"x",
                           "a = \"\xc3\xa9\"",
                           "a = 1_0",
                           "a = 01",
                           "a = 1e3",
                           "a = 0x1",
                           "a = +1",
                           "a = 1.",
                           "a = .5",
                           "a = -",
                           "a = 1979-05-27",
                           "a = 07:32:00",
                           "a = inf",
                           "a = nan",
                           "a = truer",
                           "a = {b = 1,}",
                           "a = {b = 1\n}",
                           "a = {b = 1, b = 2}",
                           "a = {b.c = 1}",
                           "a = {b = [1,\n2]}",
                           "a = {,}",
                           "a = {b}",
                           "a.b = 1",
                           "\"a\" = 1",
                           "[a.b]",
                           "[a]\n[a]",
                           "[[a]]\n[a]",
                           "[a]\n[[a]]",
                           "a = [1]\n[[a]]",
                           "a = 1\na = 2",
                           "a = 1 b = 2",
                           "a =\n1",
                           "a",
                           "= 1",
                           "[a",
                           "[[a]",
                           "[a] b = 1",
                           "a = [1",
                           "a = [1 2]",
                           "a = [,]",
                           "a = 1\r\n",
                           "a = 1234567890123456",
                           "a = [[[[[1]]]]]",
                           "a = \"x\" y"}) {
    TomlNode root;
    EXPECT_FALSE(parse_plain_toml(text, root)) << text;
  }
  std::string many;
  for (int i = 0; i < 100; ++i) many += "k" + std::to_string(i) + " = 1\n";
  TomlNode root;
  EXPECT_FALSE(parse_plain_toml(many, root));
}

TEST(PlainToml, IsTheLibrarysTreeWhateverTheText) {
  Random r(11);
  int plain = 0, entries = 0;
  for (const std::string& text : texts_of_this_tree(".toml")) {
    const bool taken = same_as_all_of_toml(text);
    plain += taken, entries += taken && text.find("[probe]") != std::string::npos;
    for (int i = 0; i < 20; ++i) same_as_all_of_toml(damage(text, r));
  }
  EXPECT_GT(plain, 50);
  EXPECT_GT(entries, 5);
  int damaged = 0;
  for (int i = 0; i < 20'000; ++i) damaged += same_as_all_of_toml(damage(kToml, r));
  EXPECT_GT(damaged, 1000);
}

TEST(PlainJson, LeavesTheRestToTheLibrary) {
  EXPECT_TRUE(
      same_as_all_of_json(R"( {"a" : [1, -2, 0, -0, 1.5, 1e300, -1E-5, 0.1, [], {}], "b": {"c": null, "d": true, "e": false}, "f": ""} )"));
  for (const char* text : {"",
                           "{",
                           "[1",
                           "[1,]",
                           "{\"a\":1,}",
                           "{\"a\" 1}",
                           "{\"a\":1,\"a\":2}",
                           "\"\\n\"",
                           "\"\xc3\xa9\"",
                           "\"a\nb\"",
                           "01",
                           "1.",
                           ".5",
                           "-",
                           "+1",
                           "1e",
                           "1e999",
                           "1234567890123456789",
                           "nul",
                           "truer",
                           "1 2",
                           "[[[[[[[[[1]]]]]]]]]",
                           "'a'",
                           "{a:1}",
                           "// c\n1"}) {
    Json out;
    EXPECT_FALSE(parse_plain_json(text, out)) << text;
  }
}

TEST(PlainJson, IsTheLibrarysValueWhateverTheText) {
  Random r(12);
  int plain = 0;
  for (const std::string& text : texts_of_this_tree(".json")) {
    plain += same_as_all_of_json(text);
    for (int i = 0; i < 20; ++i) same_as_all_of_json(damage(text.substr(0, 4000), r));
  }
  EXPECT_GT(plain, 50);
  Certification c;
  c.device_class = "cpu:a", c.effect = {1.01, 1.0250000000000001, 1.1}, c.floor = 0.0051;
  const std::string written = certification_to_json(c);
  ASSERT_TRUE(same_as_all_of_json(written));
  int damaged = 0;
  for (int i = 0; i < 20'000; ++i) damaged += same_as_all_of_json(damage(written, r));
  EXPECT_GT(damaged, 1000);
}

}  // namespace
}  // namespace forge
