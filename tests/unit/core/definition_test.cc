// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>

#include "bad_input.h"
#include "core/operator.h"
#include "util/fs.h"

namespace forge {
namespace {

const char* kGoodDefinition = R"({
 "name": "saxpy_d1024", "op_type": "saxpy",
 "description": null,
 "axes": {"rows": {"type": "var", "description": "rows"},
          "dim": {"type": "const", "value": 1024}},
 "inputs": {"x": {"shape": ["rows", "dim"], "dtype": "bfloat16"},
            "b": {"shape": ["dim"], "dtype": "float32"},
            "alpha": {"shape": null, "dtype": "float32"},
            "aa": {"shape": [], "dtype": "int32"}},
 "outputs": {"y": {"shape": ["rows", "dim"], "dtype": "bfloat16", "unheard_of": 1}},
 "constraints": ["rows > 0"], "tags": ["status:draft"],
 "something_new": {"a": 1},
 "reference": "import torch\n\ndef run(x, b, alpha, aa):\n    return x\n"
})";

Result<Definition> parsed_definition(const std::string& text) { return parse_definition(text, "definition.json"); }

TEST(Definition, KeepsOrderAndTypes) {
  const auto d = parsed_definition(kGoodDefinition);
  ASSERT_TRUE(d) << d.error().text();
  EXPECT_EQ(d->name, "saxpy_d1024");
  EXPECT_EQ(d->axes, (std::vector<Axis>{{"rows", false, 0}, {"dim", true, 1024}}));
  ASSERT_EQ(d->inputs.size(), 4u);
  EXPECT_EQ(d->inputs[0], (TensorSpec{"x", DType::bf16, false, {"rows", "dim"}}));
  EXPECT_EQ(d->inputs[1], (TensorSpec{"b", DType::f32, false, {"dim"}}));
  EXPECT_EQ(d->inputs[2], (TensorSpec{"alpha", DType::f32, true, {}}));
  EXPECT_EQ(d->inputs[3], (TensorSpec{"aa", DType::i32, false, {}}));
  EXPECT_EQ(d->outputs[0].name, "y");
  EXPECT_EQ(d->constraints, (std::vector<std::string>{"rows > 0"}));
  EXPECT_EQ(find_tensor(*d, "y"), &d->outputs[0]);
  EXPECT_EQ(find_tensor(*d, "z"), nullptr);
  EXPECT_EQ(find_axis(*d, "dim")->value, 1024);
}

TEST(Definition, RefusesWhatTheLoaderRefuses) {
  expect_refused(kGoodDefinition,
                 {
                     {"{\n", "{,\n", "", "not JSON", 1},
                     {"\"description\": null,", "\"description\": null", "", "not JSON", 4},
                     {"\"description\": null,", "\"description\": null,\n\"description\": null,", "", "'description' is there twice", 4},
                     {"\"name\"", "// c\n\"name\"", "", "not JSON", 2},
                     {"\"name\": \"saxpy_d1024\", ", "", "name", "missing"},
                     {"\"saxpy_d1024\"", "\"\"", "name", "empty", 2},
                     {"\"saxpy_d1024\"", "7", "name", "expected a string, found a number", 2},
                     {"\"op_type\": \"saxpy\"", "\"op_type\": null", "op_type", "null", 2},
                     {"\"description\": null", "\"description\": 3", "description", "expected a string", 3},
                     {"\"axes\": {", "\"axes\": [{", "", "not JSON"},
                     {"\"type\": \"var\", ", "", "axes.rows.type", "missing", 4},
                     {"\"var\"", "\"dynamic\"", "axes.rows.type", "not one of const, var", 4},
                     {", \"value\": 1024", "", "axes.dim.value", "missing", 5},
                     {"1024}", "-1}", "axes.dim.value", "negative", 5},
                     {"1024}", "1.5}", "axes.dim.value", "expected an integer", 5},
                     {"1024}", "99999999999999999999}", "axes.dim.value", "expected an integer", 5},
                     {"{\"type\": \"const\", \"value\": 1024}", "1024", "axes.dim", "expected an object", 5},
                     {"[\"rows\", \"dim\"]", "[\"row\", \"dim\"]", "inputs.x.shape[0]", "no axis is called 'row'", 6},
                     {"[\"rows\", \"dim\"]", "[\"rows\", 1024]", "inputs.x.shape[1]", "expected a string", 6},
                     {"\"shape\": [\"rows\", \"dim\"], ", "", "inputs.x.shape", "missing", 6},
                     {"\"dtype\": \"bfloat16\"", "\"dtype\": \"bf16\"", "inputs.x.dtype", "no dtype", 6},
                     {"\"dtype\": \"bfloat16\"", "\"dtype\": \"uint8\"", "inputs.x.dtype", "no dtype", 6},
                     {", \"dtype\": \"float32\"", "", "inputs.b.dtype", "missing", 7},
                     {"\"y\": {", "\"x\": {", "outputs.x", "is an input and an output", 10},
                     {"[\"rows > 0\"]", "\"rows > 0\"", "constraints", "expected an array", 11},
                     {"[\"rows > 0\"]", "[\"\"]", "constraints[0]", "empty", 11},
                     {"[\"status:draft\"]", "null", "tags", "null", 11},
                     {"def run(", "def ran(", "reference", "no function 'run'", 13},
                     {"def run(", " def run(", "reference", "no function 'run'", 13},
                     {"\"reference\"", "\"reference_\"", "reference", "missing"},
                 },
                 parsed_definition);
  EXPECT_FALSE(parsed_definition(""));
  EXPECT_FALSE(parsed_definition("[]"));
  EXPECT_FALSE(parsed_definition("null"));
  EXPECT_FALSE(parsed_definition(std::string(100000, '[')));
  EXPECT_FALSE(parsed_definition("{\"name\": \"\xff\xfe\"}"));
}

TEST(Definition, CompleteAxesAndCounts) {
  const Definition d = *parsed_definition(kGoodDefinition);
  const auto axes = complete_axes(d, {{"rows", 3}});
  ASSERT_TRUE(axes);
  EXPECT_EQ(*axes, (AxisValues{{"rows", 3}, {"dim", 1024}}));
  EXPECT_EQ(element_count(d.inputs[0], *axes), 3072);
  EXPECT_EQ(byte_count(d.inputs[0], *axes), 6144);
  EXPECT_EQ(byte_count(d.inputs[3], *axes), 4);
  TensorSpec fp4{.name = "q", .dtype = DType::f4_e2m1, .scalar = false, .shape = {"rows"}};
  EXPECT_EQ(byte_count(fp4, *axes), 2) << "rounded up";
  EXPECT_EQ(element_count(d.inputs[0], {{"rows", INT64_MAX}, {"dim", 1024}}), INT64_MAX) << "saturates";

  EXPECT_EQ(complete_axes(d, {}).error().field, "axes.rows");
  EXPECT_EQ(complete_axes(d, {{"rows", -1}}).error().field, "axes.rows");
  EXPECT_EQ(complete_axes(d, {{"rows", 1}, {"dim", 1024}}).error().field, "axes.dim");
  EXPECT_EQ(complete_axes(d, {{"rows", 1}, {"cols", 2}}).error().field, "axes.cols");
}

TEST(Definition, DTypesRoundTrip) {
  for (DType t : {DType::f32, DType::f16, DType::bf16, DType::f8_e4m3, DType::f8_e5m2, DType::f4_e2m1, DType::i64, DType::i32, DType::i16,
                  DType::i8, DType::boolean, DType::u8})
    EXPECT_EQ(parse_dtype(name(t)), t);
  EXPECT_EQ(bits(DType::f4_e2m1), 4);
  EXPECT_EQ(bits(DType::i64), 64);
  EXPECT_FALSE(parse_dtype("float"));
}

// A folder of real FlashInfer-Trace definitions, when there is one.
TEST(Definition, ReadsRealOnes) {
  const char* folder = std::getenv("FORGE_TRACE_DIR");
  std::error_code error;
  if (!folder || !fs::is_directory(folder, error)) GTEST_SKIP() << "FORGE_TRACE_DIR names no folder";
  int count = 0;
  for (const auto& file : fs::recursive_directory_iterator(folder)) {
    if (file.path().extension() != ".json") continue;
    const auto d = parse_definition(*read_file(file.path()), file.path().string());
    ASSERT_TRUE(d) << d.error().text();
    EXPECT_EQ(d->name, file.path().stem().string());
    EXPECT_FALSE(d->outputs.empty());
    count++;
  }
  EXPECT_GT(count, 0);
  RecordProperty("definitions", count);
}

}  // namespace
}  // namespace forge
