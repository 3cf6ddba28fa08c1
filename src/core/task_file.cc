// SPDX-License-Identifier: Apache-2.0
// task.toml. Layout: docs/formats/task.md. One function a table; each checks its names against the definition.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "core/operator.h"
#include "core/toml_io.h"
#include "util/text.h"

namespace forge {
namespace {

constexpr std::int64_t kLargestAxis = std::numeric_limits<std::int32_t>::max();

std::vector<std::string> variable_axes(const Definition& d) {
  std::vector<std::string> names;
  for (const Axis& a : d.axes)
    if (!a.constant) names.push_back(a.name);
  return names;
}

std::string near(const std::string& word, const std::vector<std::string>& known) {
  const std::string best = closest(word, known);
  return best.empty() ? fmt::format("there are: {}", known.empty() ? "none" : join(known, ", ")) : fmt::format("did you mean '{}'?", best);
}

void check_variable_axis(TomlReader& t, const std::string& key, const std::string& axis, const Definition& d) {
  const Axis* known = find_axis(d, axis);
  if (!known)
    t.add_error(key, fmt::format("'{}' has no axis '{}'", d.name, axis), near(axis, variable_axes(d)));
  else
    t.check(!known->constant, key, fmt::format("axis '{}' is constant: {}", axis, known->value), "only variable axes are listed");
}

void read_workload(TomlReader& t, Workload& w, const Definition& d) {
  t.need("axes", w.axes);
  t.maybe("generator", w.generator);
  if (!t.ok() || !t.present()) return;
  for (const auto& [axis, value] : w.axes) {
    check_variable_axis(t, "axes." + axis, axis, d);
    t.check(value >= 1 && value <= kLargestAxis, "axes." + axis, fmt::format("{} is not between 1 and {}", value, kLargestAxis));
  }
  for (const std::string& axis : variable_axes(d)) t.check(w.axes.count(axis) != 0, "axes", fmt::format("axis '{}' has no value", axis));
}

void check_generator(TomlReader& t, const Workload& w, const std::vector<GeneratorRule>& all) {
  std::vector<std::string> names;
  for (const GeneratorRule& g : all) names.push_back(g.name);
  t.check(std::find(names.begin(), names.end(), w.generator) != names.end(), "generator",
          fmt::format("no [[generator]] is called '{}'", w.generator), near(w.generator, names));
}

std::vector<GeneratorRule> read_generators(TomlReader& toml, const Definition& d) {
  std::vector<GeneratorRule> rules;
  std::set<std::string> seen;
  std::vector<std::string> inputs;
  for (const TensorSpec& i : d.inputs) inputs.push_back(i.name);
  for (TomlReader& t : toml.tables("generator")) {
    GeneratorRule& g = rules.emplace_back();
    t.need_text("name", g.name);
    t.check(seen.insert(g.name).second, "name", fmt::format("'{}' stands twice", g.name));
    t.need_choice("kind", g.kind,
                  {GeneratorKind::normal, GeneratorKind::heavy_tailed, GeneratorKind::large_magnitude, GeneratorKind::small_integers,
                   GeneratorKind::adversarial});
    t.maybe("scale", g.scale);
    t.check(g.scale > 0, "scale", "must be positive");
    t.maybe("offset", g.offset);
    for (const auto& [input, value] : g.offset)
      t.check(std::find(inputs.begin(), inputs.end(), input) != inputs.end(), "offset." + input,
              fmt::format("'{}' has no input '{}'", d.name, input), near(input, inputs));
  }
  toml.check(!rules.empty(), "generator", "there is none", "write [[generator]] with name and kind");
  return rules;
}

std::vector<HiddenAxis> read_hidden(TomlReader& toml, const Definition& d) {
  std::vector<HiddenAxis> rules;
  std::set<std::string> seen;
  for (TomlReader& t : toml.tables("hidden")) {
    HiddenAxis& h = rules.emplace_back();
    t.need("axis", h.axis);
    if (t.ok()) check_variable_axis(t, "axis", h.axis, d);
    t.check(seen.insert(h.axis).second, "axis", fmt::format("'{}' stands twice", h.axis));
    t.need("min", h.min);
    t.need("max", h.max);
    t.maybe("count", h.count);
    t.maybe("always", h.always);
    t.check(h.min >= 1, "min", "must be at least 1");
    t.check(h.max >= h.min && h.max <= kLargestAxis, "max", fmt::format("is not between min and {}", kLargestAxis));
    t.check(h.count >= 0 && h.count <= 1000, "count", "is not between 0 and 1000");
    for (std::size_t i = 0; i < h.always.size(); i++)
      t.check(h.always[i] >= 1 && h.always[i] <= kLargestAxis, fmt::format("always[{}]", i),
              fmt::format("{} is not between 1 and {}", h.always[i], kLargestAxis));
  }
  return rules;
}

// An `indexes` rule: the output has the shape of `values`, whose last axis counts the elements chosen from the last axis of `of`.
void check_indexes(TomlReader& t, const JudgeRule& j, const Definition& d) {
  for (const char* key : {"tolerance", "absolute"}) t.check(!t.has(key), key, "an indexes judge has no tolerance");
  std::vector<std::string> inputs, others;
  for (const TensorSpec& i : d.inputs) inputs.push_back(i.name);
  for (const TensorSpec& o : d.outputs)
    if (o.name != j.output) others.push_back(o.name);
  t.check(std::find(inputs.begin(), inputs.end(), j.of) != inputs.end(), "of", fmt::format("'{}' has no input '{}'", d.name, j.of),
          near(j.of, inputs));
  t.check(std::find(others.begin(), others.end(), j.values) != others.end(), "values",
          fmt::format("'{}' has no other output '{}'", d.name, j.values), near(j.values, others));
  if (!t.ok()) return;
  const TensorSpec &indices = *find_tensor(d, j.output), &of = *find_tensor(d, j.of), &values = *find_tensor(d, j.values);
  t.check(indices.dtype == DType::i32 || indices.dtype == DType::i64, "output",
          fmt::format("'{}' is {}, but indices are int32 or int64", indices.name, name(indices.dtype)));
  t.check(values.shape == indices.shape, "values", fmt::format("'{}' does not have the shape of '{}'", values.name, indices.name));
  t.check(values.dtype == of.dtype, "values", fmt::format("'{}' does not have the type of '{}'", values.name, of.name));
  t.check(!of.shape.empty() && of.shape.size() == indices.shape.size() &&
              std::equal(of.shape.begin(), of.shape.end() - 1, indices.shape.begin()),
          "of", fmt::format("'{}' and '{}' may differ in their last axis only", of.name, indices.name));
}

std::vector<JudgeRule> read_judges(TomlReader& toml, const Definition& d) {
  std::vector<JudgeRule> rules;
  std::set<std::string> judged;
  std::vector<std::string> outputs;
  for (const TensorSpec& o : d.outputs) outputs.push_back(o.name);
  for (TomlReader& t : toml.tables("judge")) {
    JudgeRule& j = rules.emplace_back();
    t.need("output", j.output);
    t.check(!t.ok() || std::find(outputs.begin(), outputs.end(), j.output) != outputs.end(), "output",
            fmt::format("'{}' has no output '{}'", d.name, j.output), near(j.output, outputs));
    t.check(judged.insert(j.output).second, "output", fmt::format("'{}' has two judges", j.output));
    t.need_choice("kind", j.kind, {JudgeKind::scaled, JudgeKind::relative, JudgeKind::exact, JudgeKind::indexes});
    t.maybe("tolerance", j.tolerance);
    t.maybe("absolute", j.absolute);
    t.maybe("relative", j.relative);
    t.maybe("of", j.of);
    t.maybe("values", j.values);
    t.need_text("source", j.source);
    if (!t.ok()) continue;
    t.check(j.tolerance >= 0, "tolerance", "must not be negative");
    t.check(j.absolute >= 0, "absolute", "must not be negative");
    t.check(j.relative >= 0, "relative", "must not be negative");
    t.check(j.kind == JudgeKind::scaled || !t.has("relative"), "relative", "only a scaled judge has a relative part",
            "a relative judge's tolerance is relative already");
    for (const char* key : {"of", "values"})
      t.check((j.kind == JudgeKind::indexes) == t.has(key), key,
              j.kind == JudgeKind::indexes ? "an indexes judge names the input that the indices point into and the output of their values"
                                           : "only an indexes judge has it");
    if (!t.ok()) continue;
    if (j.kind == JudgeKind::scaled) {
      t.check(j.tolerance > 0, "tolerance", "a scaled judge needs a positive tolerance");
    } else if (j.kind == JudgeKind::relative) {
      t.check(j.tolerance > 0 || j.absolute > 0, "tolerance", "a relative judge needs a positive tolerance or absolute",
              "use kind = \"exact\" for equal bits");
    } else if (j.kind == JudgeKind::indexes) {
      check_indexes(t, j, d);
    } else {
      t.check(!t.has("tolerance"), "tolerance", "an exact judge has no tolerance");
      t.check(!t.has("absolute"), "absolute", "an exact judge has no tolerance");
    }
  }
  // What the indices point at is compared with the oracle's values, so these must be judged to the bit themselves.
  for (const JudgeRule& j : rules) {
    if (j.kind != JudgeKind::indexes || !toml.ok()) continue;
    for (const JudgeRule& v : rules)
      toml.check(v.output != j.values || v.kind == JudgeKind::exact, "judge",
                 fmt::format("'{}' is judged through the values '{}', which are not judged exact", j.output, j.values));
  }
  for (const std::string& output : outputs)
    toml.check(judged.count(output) != 0, "judge", fmt::format("output '{}' has no judge", output), "write one [[judge]] for each output");
  return rules;
}

std::vector<SymmetryRule> read_symmetries(TomlReader& toml, const Definition& d) {
  std::vector<SymmetryRule> rules;
  std::vector<std::string> axes, tensors;
  for (const Axis& a : d.axes) axes.push_back(a.name);
  for (const auto* list : {&d.inputs, &d.outputs})
    for (const TensorSpec& t : *list) tensors.push_back(t.name);
  for (TomlReader& t : toml.tables("symmetry")) {
    SymmetryRule& s = rules.emplace_back();
    t.need_choice("kind", s.kind, {SymmetryKind::permute, SymmetryKind::negate});
    t.need("axis", s.axis);
    t.check(!t.ok() || find_axis(d, s.axis), "axis", fmt::format("'{}' has no axis '{}'", d.name, s.axis), near(s.axis, axes));
    t.maybe("tensors", s.tensors);
    if (!t.ok()) continue;
    if (s.kind == SymmetryKind::permute) {
      t.check(!t.has("tensors"), "tensors", "permute takes every tensor that has the axis");
      continue;
    }
    t.check(!s.tensors.empty(), "tensors", "negate names the tensors whose sign flips together");
    for (std::size_t i = 0; i < s.tensors.size(); i++) {
      const std::string key = fmt::format("tensors[{}]", i);
      const TensorSpec* tensor = find_tensor(d, s.tensors[i]);
      t.check(tensor, key, fmt::format("'{}' has no tensor '{}'", d.name, s.tensors[i]), near(s.tensors[i], tensors));
      if (tensor && tensor->scalar)
        t.add_error(key, fmt::format("'{}' is a scalar: one value for all calls, whose sign cannot flip along an axis", s.tensors[i]),
                    "take it out of the list");
      else if (tensor)
        t.check(std::count(tensor->shape.begin(), tensor->shape.end(), s.axis) == 1, key,
                fmt::format("'{}' does not have axis '{}' once", s.tensors[i], s.axis));
      t.check(std::count(s.tensors.begin(), s.tensors.end(), s.tensors[i]) == 1, key, fmt::format("'{}' stands twice", s.tensors[i]));
    }
  }
  return rules;
}

void read_cost(TomlReader& toml, TaskFile& task, const Definition& d) {
  TomlReader t = toml.need_table("cost");
  t.need("flops", task.flops);
  t.need("bytes", task.bytes);
  std::vector<std::string> axes;
  for (const Axis& a : d.axes) axes.push_back(a.name);
  for (auto [key, expr] : {std::pair{"flops", &task.flops}, std::pair{"bytes", &task.bytes}})
    for (const std::string& used : names_used(*expr))
      t.check(find_axis(d, used), key, fmt::format("unknown name '{}'", used), near(used, axes));
  if (!t.ok() || !toml.ok()) return;
  for (const std::string& family : task.families) {
    const auto axis_values = complete_axes(d, timed_workload(task, family).axes);
    if (!axis_values) return;
    for (auto [key, expr] : {std::pair{"flops", &task.flops}, std::pair{"bytes", &task.bytes}}) {
      const auto value = evaluate(*expr, *axis_values);
      if (!value)
        t.add_error(key, value.error().message);
      else
        t.check(*value >= 0, key, fmt::format("is {} for the timed workload, must not be negative", *value));
    }
  }
}

// `families`, and what is timed instead on one of them.
void read_families(TomlReader& toml, TaskFile& task, const Definition& d) {
  static const std::vector<std::string> known = {"cpu", "cuda"};
  toml.maybe("families", task.families);
  toml.check(!task.families.empty(), "families", "names no family of targets", "there are: " + join(known, ", "));
  for (std::size_t i = 0; i < task.families.size(); i++) {
    const std::string& family = task.families[i];
    const std::string key = fmt::format("families[{}]", i);
    toml.check(std::find(known.begin(), known.end(), family) != known.end(), key, fmt::format("there is no family '{}'", family),
               near(family, known));
    toml.check(std::count(task.families.begin(), task.families.end(), family) == 1, key, fmt::format("'{}' stands twice", family));
  }
  TomlReader all = toml.table("timed_on");
  if (!all.present()) return;
  for (const std::string& family : known) {
    TomlReader timed = all.table(family);
    if (!timed.present()) continue;
    timed.check(std::find(task.families.begin(), task.families.end(), family) != task.families.end(), "axes",
                fmt::format("'{}' is not among the families of this operator", family));
    Workload& w = task.timed_on[family];
    w.name = "timed";
    read_workload(timed, w, d);
    check_generator(timed, w, task.generators);
  }
}

}  // namespace

Result<TaskFile> parse_task_file(const std::string& text, const std::string& file, const Definition& definition) {
  FORGE_TRY_ASSIGN(TomlReader toml, TomlReader::parse(text, file));
  TaskFile task;
  toml.format(1);
  toml.need("operator", task.operator_name);
  toml.check(!toml.ok() || task.operator_name == definition.name, "operator",
             fmt::format("is '{}', but the definition is called '{}'", task.operator_name, definition.name));
  toml.maybe("workspace_limit_bytes", task.workspace_limit_bytes);
  toml.check(task.workspace_limit_bytes > 0, "workspace_limit_bytes", "must be positive");

  task.generators = read_generators(toml, definition);
  TomlReader timed = toml.need_table("timed");
  task.timed.name = "timed";
  read_workload(timed, task.timed, definition);
  if (timed.present()) check_generator(timed, task.timed, task.generators);
  read_families(toml, task, definition);
  std::set<std::string> names = {"timed"};
  for (TomlReader& t : toml.tables("workload")) {
    Workload& w = task.workloads.emplace_back();
    t.need_text("name", w.name);
    t.check(names.insert(w.name).second, "name", fmt::format("'{}' is taken", w.name));
    read_workload(t, w, definition);
    check_generator(t, w, task.generators);
  }
  task.hidden = read_hidden(toml, definition);
  task.judges = read_judges(toml, definition);
  task.symmetries = read_symmetries(toml, definition);
  read_cost(toml, task, definition);
  FORGE_TRY(toml.finish());
  return task;
}

}  // namespace forge
