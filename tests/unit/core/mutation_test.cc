// SPDX-License-Identifier: Apache-2.0
// Damaged texts: whatever is cut, repeated or flipped, a parser returns a value or an error, and does not die or hang.
#include <gtest/gtest.h>

#include <functional>

#include "core/entry.h"
#include "core/launch_plan.h"
#include "core/plan.h"
#include "core/record.h"
#include "util/fs.h"
#include "util/random.h"

namespace forge {
namespace {

std::string mutate(std::string text, Random& r, const std::string& alphabet) {
  for (std::uint64_t n = 1 + r.below(3); n > 0 && !text.empty(); n--) {
    const std::size_t at = r.below(text.size()), length = std::min<std::size_t>(text.size() - at, 1 + r.below(12));
    switch (r.below(5)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, text.substr(at, length));
        break;
      case 2:
        text[at] = alphabet[r.below(alphabet.size())];
        break;
      case 3:
        text[at] = static_cast<char>(r.below(256));
        break;
      default:
        text.resize(at);
        break;
    }
  }
  return text;
}

std::string page(const std::string& name) { return read_file(fs::path(FORGE_SOURCE_DIR) / "docs/formats" / name).value(); }

std::string block(const std::string& text, const std::string& tag) {
  const std::size_t at = text.find("```" + tag + "\n"), start = text.find('\n', at) + 1;
  EXPECT_NE(at, std::string::npos) << tag;
  return text.substr(start, text.find("\n```", start) - start + 1);
}

TEST(Mutations, EveryParserSurvives) {
  const Definition gemm =
      parse_definition(read_file(fs::path(FORGE_SOURCE_DIR) / "operators/gemm_f32/definition.json").value(), "d").value();
  struct Target {
    const char* name;
    std::string text;
    std::function<bool(const std::string&)> parse;
  };
  const std::vector<Target> targets = {
      {"definition", block(page("definition.md"), "json"), [](const std::string& t) { return parse_definition(t, "f").has_value(); }},
      {"task file", block(page("task.md"), "toml"), [&](const std::string& t) { return parse_task_file(t, "f", gemm).has_value(); }},
      {"launch plan", block(page("launch-plan.md"), "toml"),
       [&](const std::string& t) {
         const auto p = parse_launch_plan(t, "f");
         if (!p) return false;
         const AxisValues axes = {{"M", 5}, {"N", 1024}, {"K", 1024}};
         (void)check_plan(*p, gemm, *find_target("cpu:x86-64-avx512"), "f");
         return make_concrete(*p, axes, 2, 2).has_value();
       }},
      {"plan", block(page("plan.md"), "json"),
       [](const std::string& t) {
         const auto p = parse_plan(t, "f");
         return p && check_plan(*p);
       }},
      {"entry", block(page("entry.md"), "toml"), [](const std::string& t) { return parse_entry(t, "f").has_value(); }},
      {"certification", block(page("entry.md"), "json"), [](const std::string& t) { return parse_certification(t, "f").has_value(); }},
      {"task", block(page("record.md"), "json task"), [](const std::string& t) { return parse_task(t, "f").has_value(); }},
      {"verdict", block(page("record.md"), "json verdict"), [](const std::string& t) { return parse_verdict(t, "f").has_value(); }},
      {"generation", block(page("record.md"), "json generation"),
       [](const std::string& t) { return parse_generation(t, "f").has_value(); }},
      {"expression", "ceil_div(M, 128) * (N % 3 + min(1, -K)) > 4 && !M ? align_up(7, 8) : M / 2 - 9223372036854775807",
       [](const std::string& t) {
         const auto e = parse_expr(t);
         return e && evaluate(*e, {{"M", 5}, {"N", INT64_MIN}, {"K", INT64_MAX}});
       }},
  };
  Random r(20261130);
  for (const Target& t : targets) {
    SCOPED_TRACE(t.name);
    int accepted = 0;
    for (int i = 0; i < 1500; i++) accepted += t.parse(mutate(t.text, r, "{}[]\"',:=.-+*/%&|!?()<>#\\\n 0a"));
    EXPECT_LT(accepted, 1500) << "nothing was refused";
  }
}

}  // namespace
}  // namespace forge
