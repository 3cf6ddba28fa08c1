// SPDX-License-Identifier: Apache-2.0
#include "exchange/draft.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "core/json_io.h"
#include "core/launch_plan.h"
#include "util/text.h"

namespace forge {
namespace {

constexpr std::size_t kMostWorkloads = 32;  // in a task file: each is checked on every hand-in

bool floats(DType t) { return t != DType::boolean && t != DType::i64 && t != DType::i32 && t != DType::i16 && t != DType::i8; }

std::string toml_text(const std::string& text) {
  std::string out = "\"";
  for (const unsigned char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c < 0x20 || c == 0x7f ? ' ' : static_cast<char>(c);
  }
  return out + "\"";
}

// What a comment may hold: one line.
std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return text;
}

std::string axes_text(const std::map<std::string, std::int64_t>& axes) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : axes) parts.push_back(fmt::format("{} = {}", name, value));
  return "{ " + join(parts, ", ") + " }";
}

// Every tensor once. Not known where integers choose what is read.
std::optional<std::string> bytes_text(const Definition& d) {
  std::vector<std::string> terms;
  for (const auto* list : {&d.inputs, &d.outputs})
    for (const TensorSpec& t : *list) {
      if (list == &d.inputs && !t.scalar && !floats(t.dtype)) return std::nullopt;
      if (t.scalar) continue;
      std::string term = bits(t.dtype) == 4 ? "1" : std::to_string(std::max(1, bits(t.dtype) / 8));
      for (const std::string& axis : t.shape) term += " * " + axis;
      terms.push_back(bits(t.dtype) == 4 ? "ceil_div(" + term + ", 2)" : term);
    }
  if (d.outputs.empty() || terms.empty()) return std::nullopt;
  return join(terms, " + ");
}

std::int64_t size_of(const Definition& d, const Workload& w) {
  const auto axes = complete_axes(d, w.axes);
  std::int64_t total = 0;
  if (!axes) return 0;
  for (const auto* list : {&d.inputs, &d.outputs})
    for (const TensorSpec& t : *list)
      if (!t.scalar && total < INT64_MAX / 2) total += std::min(byte_count(t, *axes), INT64_MAX / 4);
  return total;
}

// The names become C++ and a folder: asked of the rules that a launch plan is checked by.
Status check_names(const Definition& d, const std::string& source) {
  const bool plain = !d.name.empty() && std::all_of(d.name.begin(), d.name.end(),
                                                    [](unsigned char c) { return c < 0x80 && (std::isalnum(c) || c == '_' || c == '-'); });
  if (!plain)
    return fail(Error{.code = Code::unsupported,
                      .message = fmt::format("'{}' cannot be an operator's name", utf8_head(one_line(d.name), 80)),
                      .file = source,
                      .line = 0,
                      .field = "name",
                      .fix = "rename it: letters, digits, _ and -"});
  LaunchPlan plan;
  plan.target = "cpu:x86-64-avx2";
  FORGE_TRY_ASSIGN(const TargetSpec target, find_target(plan.target));
  FORGE_TRY_ASSIGN(const Expr one, parse_expr("1"));
  plan.launches.push_back({.entry = "imported_kernel_entry", .when = {}, .grid = one, .block = {}, .cluster = 1, .smem = {}});
  Definition complete = d;
  if (complete.outputs.empty()) complete.outputs.push_back({.name = "imported_output", .dtype = DType::f32, .scalar = false, .shape = {}});
  if (Status names = check_plan(plan, complete, target, source); !names) {
    Error e = names.error();
    e.code = Code::unsupported;
    if (e.fix.empty()) e.fix = "change it in a copy of the definition, and import that";
    return fail(e);
  }
  return {};
}

}  // namespace

std::string definition_to_json(const Definition& d) {
  Json j;
  j["name"] = d.name, j["op_type"] = d.op_type, j["description"] = d.description, j["tags"] = d.tags;
  j["axes"] = Json::object();
  for (const Axis& a : d.axes) j["axes"][a.name] = a.constant ? Json{{"type", "const"}, {"value", a.value}} : Json{{"type", "var"}};
  for (const auto& [key, list] : {std::pair{"inputs", &d.inputs}, std::pair{"outputs", &d.outputs}}) {
    j[key] = Json::object();
    for (const TensorSpec& t : *list) j[key][t.name] = Json{{"shape", t.scalar ? Json(nullptr) : Json(t.shape)}, {"dtype", name(t.dtype)}};
  }
  j["reference"] = d.reference;
  return dump(j, 2) + "\n";
}

ImportItem refused_item(std::string source, std::string format, Error e) {
  if (e.file.empty()) e.file = source;
  return {.source = std::move(source), .format = std::move(format), .taken = {}, .refused = std::move(e)};
}

namespace {

class TaskText {
 public:
  explicit TaskText(OperatorDraft& d) : m_draft(d) {}

  std::string run() {
    const Definition& d = m_draft.definition;
    out("# Made by forge import from a {} file. What begins with MISSING is yours to decide; until then the operator does not load.\n",
        m_draft.format);
    out("# Format: docs/formats/task.md; a worked example: docs/add-an-operator.md.\nformat = 1\noperator = {}\n", toml_text(d.name));
    timed_and_workloads();
    hidden();
    judges();
    generators();
    cost();
    return m_text;
  }

 private:
  template <class... Args>
  void out(fmt::format_string<Args...> format, Args&&... args) {
    m_text += fmt::format(format, std::forward<Args>(args)...);
  }
  void missing(const std::string& text) { m_draft.missing.push_back(text); }

  bool varies() const {
    return std::any_of(m_draft.definition.axes.begin(), m_draft.definition.axes.end(), [](const Axis& a) { return !a.constant; });
  }

  void timed_and_workloads() {
    std::vector<Workload>& all = m_draft.workloads;
    std::erase_if(all, [&](const Workload& w) {
      const bool bad = !complete_axes(m_draft.definition, w.axes) ||
                       std::any_of(w.axes.begin(), w.axes.end(), [](const auto& axis) { return axis.second < 1; });
      if (bad)
        m_draft.notes.push_back(
            fmt::format("workload '{}' was left out: its axes are not those of the definition, or below 1", one_line(w.name)));
      return bad;
    });
    std::stable_sort(all.begin(), all.end(),
                     [&](const Workload& a, const Workload& b) { return size_of(m_draft.definition, a) > size_of(m_draft.definition, b); });
    std::set<std::map<std::string, std::int64_t>> shapes;
    std::erase_if(all, [&](const Workload& w) { return !shapes.insert(w.axes).second; });
    if (all.empty() && varies()) {
      missing("the shapes that are timed and checked: the source gives none ([timed], [[workload]])");
      out("\n# MISSING [timed]: a value of every axis that varies.\n# [timed]\n# axes = {{ }}\n# generator = \"normal\"\n");
      return;
    }
    out("\n[timed]\naxes = {}\ngenerator = \"normal\"\n", all.empty() ? "{ }" : axes_text(all.front().axes));
    if (all.size() > 1) m_draft.notes.push_back("timed is the largest of the source's shapes; the others are public correctness shapes");
    const std::size_t taken = std::min(all.size(), kMostWorkloads + 1);
    if (taken < all.size())
      m_draft.notes.push_back(fmt::format("{} of {} shapes were taken, from the largest to the smallest", taken, all.size()));
    for (std::size_t i = 1; i < taken; i++) {
      const Workload& w = all[taken == all.size() ? i : i * (all.size() - 1) / (taken - 1)];
      out("\n[[workload]]\nname = {}\naxes = {}\ngenerator = \"normal\"\n", toml_text(fmt::format("{} {}", i, utf8_head(w.name, 40))),
          axes_text(w.axes));
    }
  }

  void hidden() {
    for (const Axis& a : m_draft.definition.axes) {
      if (a.constant) continue;
      std::int64_t low = INT64_MAX, high = 0;
      for (const Workload& w : m_draft.workloads)
        if (const auto at = w.axes.find(a.name); at != w.axes.end()) low = std::min(low, at->second), high = std::max(high, at->second);
      out("\n# MISSING hidden {0}: shapes that the judge draws for itself{1}. `always`: 1, an odd number, one beyond a likely tile.\n"
          "# [[hidden]]\n# axis = \"{0}\"\n# min =\n# max =\n# always = []\n",
          a.name, high > 0 ? fmt::format(" (the source has {} to {})", low, high) : "");
      missing(fmt::format("hidden shapes of axis {}: between which bounds a kernel must be right ([[hidden]])", a.name));
    }
  }

  void judges() {
    for (const TensorSpec& t : m_draft.definition.outputs) {
      out("\n# MISSING judge {0}: how far from the oracle is still right, and which paper or formula says so.\n# [[judge]]\n# output = "
          "\"{0}\"\n"
          "# kind = {1}\n# tolerance =\n# source =\n",
          t.name, floats(t.dtype) ? "\"relative\", or \"scaled\" for sums of products" : "\"exact\", or \"indexes\"");
      missing(fmt::format("a judge for output {}: kind, tolerance and where it comes from ([[judge]])", t.name));
    }
    if (m_draft.format == "FlashInfer-Trace" && !m_draft.definition.outputs.empty())
      m_draft.notes.push_back(
          "FlashInfer-Trace's own default accepts an element within 1e-2 absolute or 1e-2 relative; it is no tolerance "
          "with a source, so it was not taken");
  }

  void generators() {
    std::string offsets;
    for (const auto& [input, value] : m_draft.scalars)
      offsets += fmt::format("{}{} = {}", offsets.empty() ? "" : ", ", input, toml_number(value));
    out("\n[[generator]]\nname = \"normal\"\nkind = \"normal\"\n");
    if (!offsets.empty()) out("offset = {{ {} }}\n", offsets);
    std::vector<std::string> integers;
    for (const TensorSpec& t : m_draft.definition.inputs)
      if (!t.scalar && !floats(t.dtype)) integers.push_back(t.name);
    if (integers.empty()) return;
    missing(
        fmt::format("content for {}: integers that mean something (indices, lengths, pages) cannot be drawn; fill them in the oracle's "
                    "adversarial(), and let workloads use that generator",
                    join(integers, ", ")));
    out("\n# MISSING content: {} are integers. Give them content in the oracle's adversarial(), and name this generator above.\n"
        "# [[generator]]\n# name = \"adversarial\"\n# kind = \"adversarial\"\n",
        join(integers, ", "));
  }

  static std::string toml_number(double value) {
    std::string text = fmt::format("{}", value);
    return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
  }

  void cost() {
    const auto bytes = bytes_text(m_draft.definition);
    out("\n# MISSING cost: useful work, and traffic that no kernel can avoid, over the axes.\n# [cost]\n# flops =\n# bytes = {}\n",
        bytes ? fmt::format("\"{}\"  (every tensor once)", *bytes) : "");
    missing("the cost: useful operations and unavoidable bytes as expressions ([cost])");
  }

  OperatorDraft& m_draft;
  std::string m_text;
};

std::string bullet_list(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& l : lines) out += "- " + one_line(l) + "\n";
  return out;
}

}  // namespace

Result<ImportedOperator> finish_draft(OperatorDraft d) {
  FORGE_TRY(check_names(d.definition, d.source));
  ImportedOperator op{.name = d.definition.name, .files = {}, .missing = {}, .notes = {}};
  const std::string task = TaskText(d).run();
  d.missing.push_back("an oracle: oracle.cc in fp64, plain loops; the reference that came with the task says what it computes");
  std::string page = fmt::format("# {}\n\nImported from {} ({}).\n\n## Missing\n\n{}", op.name, fs::path(d.source).filename().string(),
                                 d.format, bullet_list(d.missing));
  if (!d.notes.empty()) page += "\n## Decided for you\n\n" + bullet_list(d.notes);
  page += "\nHow to fill these in: docs/add-an-operator.md. Then `forge operators` and `forge selftest admission --operator " + op.name +
          "`.\n";
  op.files = {{"definition.json", d.definition_json}, {"task.toml", task}, {"IMPORT.md", page}};
  for (ExportedFile& f : d.files) op.files.push_back(std::move(f));
  op.missing = std::move(d.missing);
  op.notes = std::move(d.notes);
  return op;
}

}  // namespace forge
