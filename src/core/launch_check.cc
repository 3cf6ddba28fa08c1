// SPDX-License-Identifier: Apache-2.0
// check_plan: what a launch plan must keep given the definition and the target. One function a rule family.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <limits>
#include <set>

#include "core/concrete_map.h"
#include "core/launch_plan.h"
#include "util/text.h"

namespace forge {

bool is_identifier(const std::string& text) {
  static const std::set<std::string> kKeywords = {
      "alignas",   "alignof",  "and",      "and_eq",       "asm",       "auto",      "bitand",        "bitor",       "bool",
      "break",     "case",     "catch",    "char",         "char8_t",   "char16_t",  "char32_t",      "class",       "co_await",
      "co_return", "co_yield", "compl",    "concept",      "const",     "consteval", "constexpr",     "constinit",   "const_cast",
      "continue",  "decltype", "default",  "delete",       "do",        "double",    "dynamic_cast",  "else",        "enum",
      "explicit",  "export",   "extern",   "false",        "float",     "for",       "friend",        "goto",        "if",
      "inline",    "int",      "long",     "mutable",      "namespace", "new",       "noexcept",      "not",         "not_eq",
      "nullptr",   "operator", "or",       "or_eq",        "private",   "protected", "public",        "register",    "reinterpret_cast",
      "requires",  "return",   "short",    "signed",       "sizeof",    "static",    "static_assert", "static_cast", "struct",
      "switch",    "template", "this",     "thread_local", "throw",     "true",      "try",           "typedef",     "typeid",
      "typename",  "union",    "unsigned", "using",        "virtual",   "void",      "volatile",      "wchar_t",     "while",
      "xor",       "xor_eq"};
  if (text.empty() || text.size() > 128 || std::isdigit(static_cast<unsigned char>(text[0])) || kKeywords.count(text)) return false;
  return std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

namespace {

constexpr std::size_t kGpuArgBytes = 3968;  // docs/formats/launch-plan.md, "Argument struct"

class Checker {
 public:
  Checker(const LaunchPlan& plan, const Definition& definition, const TargetSpec& target, const std::string& file)
      : m_plan(plan), m_definition(definition), m_target(target), m_file(file) {}

  Status run() {
    check_target();
    check_definition();
    check_requires();
    check_lets();
    check_workspaces();
    check_maps();
    check_launches(m_plan.prepare, "prepare");
    check_launches(m_plan.launches, "launch");
    for (const auto& [list, launches] : {std::pair{"prepare", &m_plan.prepare}, std::pair{"launch", &m_plan.launches}})
      if (launches->size() > kMaxLaunches)
        bad(list, fmt::format("there are {}, and a plan has at most {}", launches->size(), kMaxLaunches), "merge launches");
    if (m_plan.launches.empty()) bad("launch", "there is none", "write [[launch]] with entry and grid");
    if (!m_error && !cpu() && make_arg_layout(m_plan, m_definition).bytes > kGpuArgBytes)
      bad("", fmt::format("the argument struct is larger than {} bytes", kGpuArgBytes));
    if (m_error) return fail(*m_error);
    return {};
  }

 private:
  bool cpu() const { return m_target.family == "cpu"; }

  void bad(const std::string& field, const std::string& message, const std::string& fix = {}) {
    if (!m_error) m_error = Error{.code = Code::bad_input, .message = message, .file = m_file, .line = 0, .field = field, .fix = fix};
  }

  void check_target() {
    if (m_plan.target != m_target.name) bad("target", fmt::format("is '{}', but the task's target is '{}'", m_plan.target, m_target.name));
  }

  // Every name becomes a field or a constant of one C++ header, so all of them share one name space.
  void claim(const std::string& field, const std::string& name, const char* what) {
    static const std::set<std::string> kReserved = {"sm_count", "resident", "min", "max", "ceil_div", "align_up"};
    if (!is_identifier(name)) return bad(field, fmt::format("{} '{}' is no C identifier", what, name));
    if (kReserved.count(name) || name.rfind("forge_", 0) == 0 || name.rfind("__", 0) == 0)
      return bad(field, fmt::format("'{}' is reserved", name), "choose another name");
    if (!m_claimed.insert(name).second)
      bad(field, fmt::format("'{}' is taken already", name), "axes, tensors, lets, workspaces and map_<name> share one name space");
  }

  void check_definition() {
    for (const Axis& a : m_definition.axes) {
      claim("axes." + a.name, a.name, "axis");
      if (a.constant && a.value > std::numeric_limits<std::int32_t>::max())
        bad("axes." + a.name, fmt::format("{} does not fit 32 bits", a.value));
      m_names.insert(a.name);
    }
    m_names.insert("sm_count");
    for (const TensorSpec& t : m_definition.inputs) {
      claim("inputs." + t.name, t.name, "input");
      if (t.scalar && bits(t.dtype) < 8) bad("inputs." + t.name, "a scalar of less than 8 bits is not supported");
    }
    for (const TensorSpec& t : m_definition.outputs) {
      claim("outputs." + t.name, t.name, "output");
      if (t.scalar) bad("outputs." + t.name, "an output must be a tensor", "give it shape [] instead of null");
    }
    if (m_definition.outputs.empty()) bad("outputs", "there is none: a kernel must write something");
  }

  void check_expr(const std::string& field, const Expr& e, bool grid = false) {
    for (const std::string& used : names_used(e)) {
      if (m_names.count(used) || (grid && used == "resident")) continue;
      if (used == "resident") return bad(field, "'resident' stands in grid only");
      if (find_tensor(m_definition, used))
        return bad(field, fmt::format("'{}' is a tensor: expressions know axes, earlier lets and sm_count", used));
      if (std::any_of(m_plan.lets.begin(), m_plan.lets.end(), [&](const LetSpec& l) { return l.name == used; }))
        return bad(field, fmt::format("'{}' is defined later", used),
                   field.rfind("requires", 0) == 0 ? "requires is checked before the lets" : "move the let up");
      std::vector<std::string> known(m_names.begin(), m_names.end());
      if (grid) known.push_back("resident");
      const std::string near = closest(used, known);
      return bad(field, fmt::format("unknown name '{}'", used),
                 near.empty() ? fmt::format("known here: {}", join(known, ", ")) : fmt::format("did you mean '{}'?", near));
    }
  }

  void check_requires() {
    for (std::size_t i = 0; i < m_plan.requires_.size(); i++) check_expr(fmt::format("requires[{}]", i), m_plan.requires_[i]);
  }

  void check_lets() {
    for (std::size_t i = 0; i < m_plan.lets.size(); i++) {
      claim(fmt::format("let[{}].name", i), m_plan.lets[i].name, "let");
      check_expr(fmt::format("let[{}].value", i), m_plan.lets[i].value);
      m_names.insert(m_plan.lets[i].name);
    }
  }

  void check_workspaces() {
    for (std::size_t i = 0; i < m_plan.workspaces.size(); i++) {
      const WorkspaceSpec& w = m_plan.workspaces[i];
      claim(fmt::format("workspace[{}].name", i), w.name, "workspace");
      check_expr(fmt::format("workspace[{}].bytes", i), w.bytes);
      if (w.init != WorkspaceInit::prepared) continue;
      const std::string field = fmt::format("workspace[{}].init", i);
      if (cpu())
        bad(field, "'prepared' is not available on a CPU");
      else if (m_plan.prepare.empty())
        bad(field, "nothing prepares it", "write [[prepare]]");
    }
  }

  void gpu_only(const std::string& field) { bad(field, fmt::format("is for GPUs, and the target is '{}'", m_target.name), "remove it"); }

  void check_maps() {
    for (std::size_t i = 0; i < m_plan.maps.size(); i++) {
      const std::string at = fmt::format("map[{}]", i);
      if (cpu()) return gpu_only(at);
      check_map(m_plan.maps[i], at);
    }
  }

  void check_map(const MapSpec& m, const std::string& at) {
    if (!is_identifier(m.name)) return bad(at + ".name", fmt::format("map '{}' is no C identifier", m.name));
    claim(at + ".name", "map_" + m.name, "map");
    const TensorSpec* tensor = find_tensor(m_definition, m.tensor);
    const bool workspace =
        std::any_of(m_plan.workspaces.begin(), m_plan.workspaces.end(), [&](const WorkspaceSpec& w) { return w.name == m.tensor; });
    static const std::set<std::string> kTypes = {"u8", "f16", "bf16", "f32"};
    if (!tensor && !workspace) return bad(at + ".tensor", fmt::format("'{}' is no input, output or workspace", m.tensor));
    if (tensor && tensor->scalar) return bad(at + ".tensor", fmt::format("'{}' is a scalar", m.tensor));
    if (workspace && !kTypes.count(m.dtype))
      return bad(at + ".dtype", fmt::format("'{}' is not one of u8, f16, bf16, f32", m.dtype), "a map over a workspace names its type");
    if (tensor && !m.dtype.empty()) return bad(at + ".dtype", "is for workspaces: a tensor has its own type", "remove it");
    const auto type = element_type(m, m_definition);
    if (!type) return bad(at + ".tensor", fmt::format("there are no tensor maps of {}", name(tensor->dtype)), "load it without one");
    if (const auto p = problem_of(m, *type)) return bad(at + p->field, p->message, p->fix);
    if (!m.offset.empty()) check_expr(at + ".offset", m.offset);
    for (std::size_t i = 0; i < m.dims.size(); i++) check_expr(fmt::format("{}.dims[{}]", at, i), m.dims[i]);
    for (std::size_t i = 0; i < m.strides.size(); i++) check_expr(fmt::format("{}.strides[{}]", at, i), m.strides[i]);
  }

  void check_launches(const std::vector<LaunchSpec>& launches, const char* list) {
    const bool prepare = std::string(list) == "prepare";
    if (prepare && cpu() && !launches.empty()) return bad("prepare", "is not available on a CPU", "remove it");
    if (prepare && !launches.empty() && std::none_of(m_plan.workspaces.begin(), m_plan.workspaces.end(), [](const WorkspaceSpec& w) {
          return w.init == WorkspaceInit::prepared;
        }))
      return bad("prepare", "there is no workspace with init = \"prepared\" to write");
    for (std::size_t i = 0; i < launches.size(); i++) {
      const LaunchSpec& l = launches[i];
      const std::string at = fmt::format("{}[{}]", list, i);
      // The four functions that a compiler may call on its own belong to the loader.
      static const std::set<std::string> kImports = {"memcpy", "memmove", "memset", "memcmp", "main"};
      if (!is_identifier(l.entry)) return bad(at + ".entry", fmt::format("'{}' is no C identifier", l.entry));
      if (kImports.count(l.entry) || l.entry.rfind("forge_", 0) == 0 || l.entry.rfind("__", 0) == 0)
        return bad(at + ".entry", fmt::format("'{}' is reserved", l.entry));
      if (m_claimed.count(l.entry))
        return bad(at + ".entry", fmt::format("'{}' is taken already", l.entry), "give the entry a name of its own");
      if (!l.when.empty()) check_expr(at + ".when", l.when);
      check_expr(at + ".grid", l.grid, true);
      if (!l.smem.empty()) check_expr(at + ".smem", l.smem);
      if (l.cluster < 1 || l.cluster > 8) bad(at + ".cluster", fmt::format("{} is not between 1 and 8", l.cluster));
      if (cpu())
        check_cpu_launch(l, at);
      else
        check_gpu_launch(l, at, i == 0);
    }
  }

  void check_cpu_launch(const LaunchSpec& l, const std::string& at) {
    if (l.block) gpu_only(at + ".block");
    if (l.cluster != 1) gpu_only(at + ".cluster");
    if (l.cooperative) gpu_only(at + ".cooperative");
    if (l.pdl) gpu_only(at + ".pdl");
  }

  void check_gpu_launch(const LaunchSpec& l, const std::string& at, bool first) {
    if (!l.block)
      bad(at + ".block", "missing", "give the threads of a block");
    else if (*l.block < 1 || *l.block > 1024)
      bad(at + ".block", fmt::format("{} is not between 1 and 1024", *l.block));
    if (l.pdl && first) bad(at + ".pdl", "the first launch has none before it to depend on", "remove it");
  }

  const LaunchPlan& m_plan;
  const Definition& m_definition;
  const TargetSpec& m_target;
  const std::string& m_file;
  std::set<std::string> m_claimed;  // names in use, of every kind
  std::set<std::string> m_names;    // what expressions may use so far
  std::optional<Error> m_error;
};

}  // namespace

Status check_plan(const LaunchPlan& plan, const Definition& definition, const TargetSpec& target, const std::string& file) {
  return Checker(plan, definition, target, file).run();
}

}  // namespace forge
