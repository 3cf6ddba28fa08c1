// SPDX-License-Identifier: Apache-2.0
#include "core/toml_io.h"

#include <gtest/gtest.h>

#include "bad_input.h"

namespace forge {
namespace {

struct Everything {
  bool flag = false;
  int small = 0;
  std::int64_t wide = 0;
  double real = 0;
  std::string text;
  Expr expr;
  std::vector<std::string> texts;
  std::vector<int> ints;
  std::vector<std::int64_t> wides;
  std::vector<Expr> exprs;
  std::map<std::string, std::int64_t> numbers;
  std::map<std::string, double> reals;
  std::optional<int> maybe_int;
  Scope scope = Scope::image;
  std::string inner, title = "default";
  Signature signature;
};

Result<Everything> parse_everything(const std::string& text) {
  FORGE_TRY_ASSIGN(TomlReader toml, TomlReader::parse(text, "f.toml"));
  Everything e;
  toml.format(1);
  toml.need("flag", e.flag);
  toml.need("small", e.small);
  toml.need("wide", e.wide);
  toml.need("real", e.real);
  toml.need_text("text", e.text);
  toml.need("expr", e.expr);
  toml.need("texts", e.texts);
  toml.need("ints", e.ints);
  toml.need("wides", e.wides);
  toml.need("exprs", e.exprs);
  toml.need("numbers", e.numbers);
  toml.need("reals", e.reals);
  toml.maybe("maybe_int", e.maybe_int);
  toml.maybe("title", e.title);
  toml.need_choice("scope", e.scope, {Scope::image, Scope::hot_loop});
  TomlReader inner = toml.need_table("table");
  inner.need("inner", e.inner);
  inner.check(e.inner != "wrong", "inner", "is wrong", "make it right");
  e.signature = read_signature(toml, "signature");
  FORGE_TRY(toml.finish());
  return e;
}

const char* kGoodEverything = R"(format = 1
flag = true
small = 3
wide = 5000000000
real = 2
text = "hello"
expr = "M + 1"
texts = ["a", "b"]
ints = [1, -2]
wides = [7]
exprs = ["K", 4]
numbers = { M = 1 }
reals = { A = 0.5, B = 1 }
scope = "hot_loop"

[table]
inner = "x"

[[signature]]
mnemonic = "vfmadd*ps"
operand = "ymm"
scope = "hot_loop"
min = 2
max = 9

[[signature]]
mnemonic = "vmovntps"
)";

TEST(TomlReader, ReadsEveryType) {
  const auto e = parse_everything(kGoodEverything);
  ASSERT_TRUE(e) << e.error().text();
  EXPECT_TRUE(e->flag);
  EXPECT_EQ(e->small, 3);
  EXPECT_EQ(e->wide, 5000000000);
  EXPECT_EQ(e->real, 2.0);
  EXPECT_EQ(e->text, "hello");
  EXPECT_EQ(e->expr.text, "M + 1");
  EXPECT_EQ(e->texts, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(e->ints, (std::vector<int>{1, -2}));
  EXPECT_EQ(e->wides, (std::vector<std::int64_t>{7}));
  ASSERT_EQ(e->exprs.size(), 2u);
  EXPECT_EQ(*evaluate(e->exprs[1], {}), 4);
  EXPECT_EQ(e->numbers.at("M"), 1);
  EXPECT_EQ(e->reals.at("A"), 0.5);
  EXPECT_FALSE(e->maybe_int);
  EXPECT_EQ(e->title, "default");
  EXPECT_EQ(e->scope, Scope::hot_loop);
  EXPECT_EQ(e->inner, "x");
  ASSERT_EQ(e->signature.all.size(), 2u);
  EXPECT_EQ(e->signature.all[0].operand, "ymm");
  EXPECT_EQ(e->signature.all[0].scope, Scope::hot_loop);
  EXPECT_EQ(e->signature.all[0].min, 2);
  EXPECT_EQ(e->signature.all[0].max, 9);
  EXPECT_EQ(e->signature.all[1].min, 1);
  EXPECT_FALSE(e->signature.all[1].max);
}

TEST(TomlReader, RefusesAndSaysWhere) {
  expect_refused(kGoodEverything,
                 {
                     {"flag = true", "flag = true\nflga = 1", "flga", "did you mean 'flag'", 3},
                     {"small = 3", "smal = 3", "smal", "did you mean 'small'", 3},
                     {"small = 3", "", "small", "missing"},
                     {"inner = \"x\"", "inner = \"x\"\nzzz = 1", "table.zzz", "known here: inner", 18},
                     {"format = 1", "format = 2", "format", "format 2 is not known", 1},
                     {"format = 1", "", "format", "missing"},
                     {"format = 1", "format = 1\nformat = 1", "", "not TOML", 2},
                     {"format = 1", "format = ", "", "not TOML", 1},
                     {"flag = true", "flag = 1", "flag", "expected true or false, found an integer", 2},
                     {"small = 3", "small = \"3\"", "small", "expected an integer, found a string", 3},
                     {"small = 3", "small = 3.0", "small", "expected an integer, found a number", 3},
                     {"small = 3", "small = 5000000000", "small", "out of range", 3},
                     {"real = 2", "real = nan", "real", "finite", 5},
                     {"real = 2", "real = 1979-05-27", "real", "found a date", 5},
                     {"text = \"hello\"", "text = \"  \"", "text", "must not be empty", 6},
                     {"\"M + 1\"", "\"M +\"", "expr", "missing at column 4", 7},
                     {"\"M + 1\"", "1.5", "expr", "expected an expression", 7},
                     {"[\"a\", \"b\"]", "[\"a\", 2]", "texts[1]", "expected a string", 8},
                     {"[\"a\", \"b\"]", "\"a\"", "texts", "expected an array", 8},
                     {"[\"K\", 4]", "[\"K\", \"(\"]", "exprs[1]", "missing", 11},
                     {"{ M = 1 }", "{ M = 1.5 }", "numbers.M", "expected an integer", 12},
                     {"{ M = 1 }", "3", "numbers", "expected a table", 12},
                     {"scope = \"hot_loop\"", "scope = \"hot_lop\"", "scope", "did you mean 'hot_loop'", 14},
                     {"[table]", "[tabel]", "tabel", "did you mean 'table'", 16},
                     {"[table]", "[[table]]", "table", "expected a table, found an array", 16},
                     {"inner = \"x\"", "inner = \"wrong\"", "table.inner", "make it right", 17},
                     {"[[signature]]\nmnemonic = \"vfmadd*ps\"", "[signature]\nmnemonic = \"x\"", "", "not TOML"},
                     {"mnemonic = \"vfmadd*ps\"", "", "signature[0].mnemonic", "missing", 19},
                     {"vfmadd*ps", "VFMADD*", "signature[0].mnemonic", "lower-case", 20},
                     {"operand = \"ymm\"", "operand = \"rax\"", "signature[0].operand", "not one of zmm", 21},
                     {"min = 2", "min = -1", "signature[0].min", "negative", 23},
                     {"max = 9", "max = 1", "signature[0].max", "below min", 24},
                     {"max = 9", "maximum = 9", "signature[0].maximum", "unknown key", 24},
                     {"\"vmovntps\"", "\"vmovntps\"\nmin = 0", "signature[1].min", "always holds", 28},
                 },
                 parse_everything);
}

TEST(TomlReader, AKeyOfVeryManyPartsIsRefused) {
  std::string key = "a";
  for (int i = 0; i < 200000; ++i) key += ".a";
  for (const std::string& text : {"format = 1\n" + key + " = 1\n", "format = 1\n[" + key + "]\n", "format = 1\nx = {" + key + " = 1}\n"}) {
    const auto r = TomlReader::parse(text, "f.toml");
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().line, 2);
  }
  EXPECT_TRUE(TomlReader::parse("a = [" + std::string(3000, ' ') + "1.0, 2.0" + "]\nb = \"" + std::string(300, '.') + "\"\n", "f.toml"));
}

TEST(TomlReader, ErrorCarriesFileAndText) {
  const auto r = parse_everything(replaced(kGoodEverything, "small = 3", "small = true"));
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().text().rfind("f.toml:3: small: expected an integer, found true or false", 0), 0u) << r.error().text();
}

}  // namespace
}  // namespace forge
