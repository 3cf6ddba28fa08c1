// SPDX-License-Identifier: Apache-2.0
// The examples of docs/formats are read by the parsers that they document.
#include <gtest/gtest.h>

#include "core/entry.h"
#include "core/json_io.h"
#include "core/launch_plan.h"
#include "util/fs.h"

namespace forge {
namespace {

struct Block {
  std::string tag, text;
};

std::vector<Block> blocks_of(const std::string& page) {
  const auto text = read_file(fs::path(FORGE_SOURCE_DIR) / "docs" / "formats" / page);
  EXPECT_TRUE(text) << page;
  std::vector<Block> blocks;
  std::size_t at = 0;
  while (text && (at = text->find("```", at)) != std::string::npos) {
    const std::size_t line_end = text->find('\n', at), end = text->find("\n```", line_end);
    blocks.push_back({text->substr(at + 3, line_end - at - 3), text->substr(line_end + 1, end - line_end)});
    at = end + 4;
  }
  return blocks;
}

template <class T>
void expect_ok(const Result<T>& r) {
  if constexpr (std::is_void_v<T>)
    EXPECT_TRUE(r) << (r ? "" : r.error().text());
  else
    EXPECT_TRUE(r) << (r ? "" : r.error().text());
}

TEST(Formats, Definition) {
  const auto blocks = blocks_of("definition.md");
  ASSERT_EQ(blocks.size(), 1u);
  expect_ok(parse_definition(blocks[0].text, "definition.md"));
}

TEST(Formats, Task) {
  const auto gemm = parse_definition(*read_file(fs::path(FORGE_SOURCE_DIR) / "operators/gemm_f32/definition.json"), "definition.json");
  ASSERT_TRUE(gemm) << gemm.error().text();
  const auto blocks = blocks_of("task.md");
  ASSERT_EQ(blocks.size(), 1u);
  expect_ok(parse_task_file(blocks[0].text, "task.md", *gemm));
}

TEST(Formats, LaunchPlan) {
  const auto blocks = blocks_of("launch-plan.md");
  ASSERT_EQ(blocks.size(), 1u);
  const auto plan = parse_launch_plan(blocks[0].text, "launch-plan.md");
  ASSERT_TRUE(plan) << plan.error().text();
  Definition d;
  d.axes = {{"M", false, 0}, {"K", true, 8192}};
  d.inputs = {{"X", DType::f32, false, {"M", "K"}}};
  d.outputs = {{"Y", DType::f32, false, {"M"}}};
  expect_ok(check_plan(*plan, d, *find_target(plan->target), "launch-plan.md"));
  expect_ok(make_concrete(*plan, {{"M", 1}, {"K", 8192}}, 8, 8));
}

TEST(Formats, Plan) {
  const auto blocks = blocks_of("plan.md");
  ASSERT_EQ(blocks.size(), 1u);
  const auto plan = parse_plan(blocks[0].text, "plan.md");
  ASSERT_TRUE(plan) << plan.error().text();
  expect_ok(check_plan(*plan));
}

TEST(Formats, Entry) {
  const auto blocks = blocks_of("entry.md");
  ASSERT_EQ(blocks.size(), 2u);
  expect_ok(parse_entry(blocks[0].text, "entry.md"));
  expect_ok(parse_certification(blocks[1].text, "entry.md"));
}

TEST(Formats, Record) {
  int read = 0;
  for (const Block& b : blocks_of("record.md")) {
    SCOPED_TRACE(b.tag);
    if (b.tag == "json task") expect_ok(parse_task(b.text, b.tag)), read++;
    if (b.tag == "json verdict") expect_ok(parse_verdict(b.text, b.tag)), read++;
    if (b.tag == "json evidence") expect_ok(read_evidence(*parse_json(b.text, b.tag), b.tag)), read++;
    if (b.tag == "json generation") expect_ok(parse_generation(b.text, b.tag)), read++;
  }
  EXPECT_EQ(read, 4);
}

}  // namespace
}  // namespace forge
