// SPDX-License-Identifier: Apache-2.0
// Loads, checks and renders blueprints. Format: docs/formats/blueprint.md.
#include "core/blueprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>

#include "core/toml_io.h"
#include "util/text.h"

namespace forge {
namespace {

constexpr int kMaxMilestone = 16;

bool is_word(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}
bool is_number(const std::string& text) {
  return !text.empty() && text.size() < 10 && std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); });
}
// "6x16" as its two numbers.
std::optional<std::pair<std::string, std::string>> rows_and_columns(const std::string& value) {
  const std::size_t x = value.find('x');
  if (x == std::string::npos) return {};
  const std::string rows = value.substr(0, x), columns = value.substr(x + 1);
  if (!is_number(rows) || !is_number(columns)) return {};
  return std::pair{rows, columns};
}

bool holds(const Expr& e, const Names& names) {
  if (e.empty()) return true;
  const auto value = evaluate(e, names);
  return value && *value != 0;  // a name that this machine does not have makes the condition false
}

// What one decision adds to the templates and to constraints: its value, <name>_is_<value> for every option as 0 or 1, and for
// values like 6x16 also <name>_rows and <name>_columns.
std::map<std::string, std::string> values_of(const BlueprintDecision& d, const std::string& value) {
  std::map<std::string, std::string> out{{d.name, value}};
  for (const BlueprintOption& o : d.options) out[d.name + "_is_" + o.value] = o.value == value ? "1" : "0";
  if (const auto both = rows_and_columns(value)) {
    out[d.name + "_rows"] = both->first;
    out[d.name + "_columns"] = both->second;
  }
  return out;
}

std::string names_of(const std::vector<BlueprintOption>& options) {
  std::vector<std::string> names;
  for (const BlueprintOption& o : options) names.push_back(o.value);
  return join(names, ", ");
}

void read_options(TomlReader& row, BlueprintDecision& d) {
  std::set<std::string> values;
  for (TomlReader& option : row.tables("option")) {
    BlueprintOption& o = d.options.emplace_back();
    option.need_text("value", o.value);
    option.check(is_word(o.value), "value", "only letters, digits and '_' are allowed", "it becomes part of C++ names");
    option.check(values.insert(o.value).second, "value", fmt::format("'{}' is listed twice", o.value));
    option.need_text("text", o.text);
    option.maybe("when", o.when);
    o.signature = read_signature(option, "signature");
  }
}

void read_decision(TomlReader& row, Blueprint& b, std::set<std::string>& taken) {
  BlueprintDecision d;
  std::string kind;
  row.need_text("name", d.name);
  row.need("kind", kind);
  row.check(kind.empty() || kind == "structural" || kind == "local", "kind", fmt::format("'{}' is unknown", kind),
            "write \"structural\" or \"local\"");
  d.structural = kind == "structural";
  row.need("milestone", d.milestone);
  row.check(d.milestone >= 0 && d.milestone <= kMaxMilestone, "milestone", fmt::format("must be from 0 to {}", kMaxMilestone));
  row.need_text("limiter", d.limiter);
  row.need_text("default", d.default_value);
  row.maybe("depends_on", d.depends_on);
  for (const std::string& on : d.depends_on) {
    const bool earlier =
        std::any_of(b.decisions.begin(), b.decisions.end(), [&](const auto& e) { return e.name == on && e.milestone <= d.milestone; });
    row.check(earlier, "depends_on", fmt::format("'{}' is no earlier decision", on),
              "name decisions that stand above this one, of the same milestone or an earlier one");
  }
  read_options(row, d);
  row.check(!d.options.empty(), "option", "there is none", "write [[decision.option]] with value and text");
  if (const BlueprintOption* plain = find_option(d, d.default_value))
    row.check(plain->when.empty(), "default", fmt::format("'{}' is not possible on every machine", d.default_value),
              "choose an option without `when`");
  else
    row.check(d.default_value.empty() || d.options.empty(), "default", fmt::format("'{}' is none of the options", d.default_value),
              "one of: " + names_of(d.options));
  // Names that the templates can use must not collide, whatever is chosen.
  std::set<std::string> mine;
  for (const BlueprintOption& o : d.options)
    for (const auto& [name, value] : values_of(d, o.value)) mine.insert(name);
  for (const std::string& name : mine) row.check(taken.insert(name).second, "name", fmt::format("'{}' is taken already", name));
  b.decisions.push_back(std::move(d));
}

void read_stages(TomlReader& toml, Blueprint& b) {
  std::set<std::string> names;
  for (TomlReader& row : toml.tables("stage")) {
    BlueprintStage& stage = b.stages.emplace_back();
    row.need_text("name", stage.name);
    row.check(stage.name.empty() || is_word(stage.name), "name", "only letters, digits and '_' are allowed");
    row.check(names.insert(stage.name).second, "name", fmt::format("'{}' is listed twice", stage.name));
    row.need_text("text", stage.text);
  }
}

// The template without its marker lines: between `//@stage NAME` and `//@end` stands the stage's own code and, behind `//@without`,
// what takes its place where it is left out. `marked` gets the names found.
Result<std::string> take_stages(const std::string& text, const Blueprint& b, const std::string& without, const std::string& file,
                                std::set<std::string>* marked = nullptr) {
  std::vector<std::string> known, kept;
  for (const BlueprintStage& stage : b.stages) known.push_back(stage.name);
  std::string open;  // the stage that the line lies in
  bool instead = false;
  int line = 0, opened = 0;
  const auto bad = [&](int at, const std::string& message, const std::string& fix = {}) {
    return fail(Error{.code = Code::bad_input, .message = message, .file = file, .line = at, .field = "//@", .fix = fix});
  };
  for (const std::string& row : split(text, '\n')) {
    ++line;
    const std::string marker = trim(row);
    if (!marker.starts_with("//@")) {
      if (open.empty() || instead == (open == without)) kept.push_back(row);
    } else if (marker.starts_with("//@stage ")) {
      if (!open.empty()) return bad(line, fmt::format("'{}' has not ended yet", open), "write //@end");
      open = trim(marker.substr(9)), instead = false, opened = line;
      if (std::find(known.begin(), known.end(), open) == known.end())
        return bad(line, fmt::format("'{}' is no stage of this blueprint", open),
                   known.empty() ? "declare it as [[stage]]" : "one of: " + join(known, ", "));
      if (marked) marked->insert(open);
    } else if (marker == "//@without" && !open.empty() && !instead) {
      instead = true;
    } else if (marker == "//@end" && !open.empty()) {
      open.clear();
    } else {
      return bad(line, fmt::format("'{}' makes no sense here", marker), "//@stage NAME, then perhaps //@without, then //@end");
    }
  }
  if (!open.empty()) return bad(opened, fmt::format("'{}' does not end", open), "write //@end");
  return join(kept, "\n");
}

// Both templates are well marked, and every stage can be left out.
Status check_stages(const Blueprint& b, const std::string& source, const std::string& launch, const fs::path& table) {
  std::set<std::string> marked;
  FORGE_TRY(take_stages(b.source_template, b, {}, (b.folder / source).string(), &marked));
  FORGE_TRY(take_stages(b.plan_template, b, {}, (b.folder / launch).string(), &marked));
  for (const BlueprintStage& stage : b.stages)
    if (!marked.count(stage.name))
      return fail(Error{.code = Code::bad_input,
                        .message = fmt::format("no template marks '{}'", stage.name),
                        .file = table.string(),
                        .line = 0,
                        .field = "stage.name",
                        .fix = fmt::format("write //@stage {} and //@end around its code", stage.name)});
  return {};
}

// A file with `like` has nothing else but the operator's name: the rest is another operator's.
Result<Blueprint> parse_blueprint(const std::string& text, const std::string& file, std::string& source, std::string& launch,
                                  std::string& like) {
  FORGE_TRY_ASSIGN(TomlReader toml, TomlReader::parse(text, file));
  Blueprint b;
  toml.format(1);
  toml.need_text("operator", b.operator_name);
  if (toml.has("like")) {
    toml.need_text("like", like);
    toml.check(is_word(like), "like", fmt::format("'{}' is no operator's name", like), "name a folder beside this file's folder");
    FORGE_TRY(toml.finish());
    return b;
  }
  toml.need("targets", b.targets);
  toml.check(!toml.has("targets") || !b.targets.empty(), "targets", "must not be empty");
  toml.need_text("source", source);
  toml.need_text("launch", launch);
  const auto beside = [](const std::string& name) {
    return name.find('/') == std::string::npos && name.size() > 3 && name.ends_with(".in");
  };
  toml.check(source.empty() || beside(source), "source", fmt::format("'{}' is no template beside this file", source),
             "name a file like kernel.cpp.in");
  toml.check(launch.empty() || beside(launch), "launch", fmt::format("'{}' is no template beside this file", launch),
             "name a file like launch.toml.in");
  std::set<std::string> taken{"target", "operator", "vector_bits"};
  for (TomlReader& row : toml.tables("decision")) read_decision(row, b, taken);
  toml.check(!b.decisions.empty() || !toml.ok(), "decision", "there is none", "write [[decision]]");
  for (TomlReader& row : toml.tables("constraint")) {
    BlueprintConstraint& c = b.constraints.emplace_back();
    row.need("must", c.must);
    row.need_text("message", c.message);
  }
  read_stages(toml, b);
  FORGE_TRY(toml.finish());
  return b;
}

// Decisions as integers, beside the machine's properties and the axes.
Names constraint_names(const Blueprint& b, const Choices& choices, Names names) {
  for (const BlueprintDecision& d : b.decisions)
    for (const auto& [name, value] : values_of(d, choices.at(d.name)))
      if (is_number(value)) names[name] = std::stoll(value);
  return names;
}

}  // namespace

Names blueprint_names(const Definition& definition, const TaskFile& task_file, const Machine& machine) {
  Names names = machine.properties;
  for (const auto& axis : definition.axes)
    if (axis.constant) names[axis.name] = axis.value;
  for (const auto& [axis, value] : task_file.timed.axes) names[axis] = value;
  return names;
}

const BlueprintOption* find_option(const BlueprintDecision& d, const std::string& value) {
  for (const BlueprintOption& o : d.options)
    if (o.value == value) return &o;
  return nullptr;
}

Result<Blueprint> load_blueprint(const Paths& paths, const std::string& operator_name, const TargetSpec& target) {
  fs::path folder = paths.data / "blueprints" / target.family / operator_name;
  const fs::path file = folder / "blueprint.toml";
  std::error_code ignored;
  if (!is_word(operator_name) || !fs::exists(file, ignored))
    return fail(Error{.code = Code::not_found,
                      .message = fmt::format("no blueprint for operator '{}' on {}", operator_name, target.name),
                      .file = file.string(),
                      .line = 0,
                      .field = {},
                      .fix = "write one (docs/add-an-operator.md, step 7); `forge check` and `forge bench` judge a kernel without"});
  FORGE_TRY_ASSIGN(const std::string text, read_file(file));
  std::string source, launch, like;
  FORGE_TRY_ASSIGN(Blueprint b, parse_blueprint(text, file.string(), source, launch, like));
  if (b.operator_name != operator_name)
    return fail(Error{.code = Code::bad_input,
                      .message = fmt::format("is '{}', but the folder is '{}'", b.operator_name, operator_name),
                      .file = file.string(),
                      .line = 0,
                      .field = "operator",
                      .fix = {}});
  if (!like.empty()) {
    std::string further;
    const fs::path shared = folder.parent_path() / like / "blueprint.toml";
    FORGE_TRY_ASSIGN(const std::string shared_text, read_file(shared));
    FORGE_TRY_ASSIGN(Blueprint other, parse_blueprint(shared_text, shared.string(), source, launch, further));
    if (!further.empty())
      return fail(Error{.code = Code::bad_input,
                        .message = fmt::format("'{}' is itself like '{}'", like, further),
                        .file = file.string(),
                        .line = 0,
                        .field = "like",
                        .fix = fmt::format("write like = \"{}\"", further)});
    b = std::move(other);
    b.operator_name = operator_name;
    folder = folder.parent_path() / like;
  }
  if (std::find(b.targets.begin(), b.targets.end(), target.name) == b.targets.end())
    return fail(Error{.code = Code::unsupported,
                      .message = fmt::format("the blueprint does not know {}", target.name),
                      .file = file.string(),
                      .line = 0,
                      .field = "targets",
                      .fix = fmt::format("it knows {}", join(b.targets, ", "))});
  b.folder = folder;
  b.source_name = source.substr(0, source.size() - 3);
  b.plan_name = launch.substr(0, launch.size() - 3);
  FORGE_TRY_ASSIGN(b.source_template, read_file(folder / source));
  FORGE_TRY_ASSIGN(b.plan_template, read_file(folder / launch));
  FORGE_TRY(check_stages(b, source, launch, folder / "blueprint.toml"));
  return b;
}

std::vector<const BlueprintOption*> possible(const BlueprintDecision& decision, const Names& names) {
  std::vector<const BlueprintOption*> out;
  for (const BlueprintOption& o : decision.options)
    if (holds(o.when, names)) out.push_back(&o);
  return out;
}

Choices default_choices(const Blueprint& blueprint) {
  Choices out;
  for (const BlueprintDecision& d : blueprint.decisions) out[d.name] = d.default_value;
  return out;
}

Status check_choices(const Blueprint& blueprint, const Choices& choices, const Names& names) {
  const auto bad = [&](const std::string& field, const std::string& message, const std::string& fix = {}) {
    return fail(Error{.code = Code::bad_input,
                      .message = message,
                      .file = (blueprint.folder / "blueprint.toml").string(),
                      .line = 0,
                      .field = field,
                      .fix = fix});
  };
  std::set<std::string> known;
  for (const BlueprintDecision& d : blueprint.decisions) {
    known.insert(d.name);
    const auto chosen = choices.find(d.name);
    if (chosen == choices.end()) return bad(d.name, "nothing was chosen", fmt::format("the default is '{}'", d.default_value));
    const BlueprintOption* option = find_option(d, chosen->second);
    if (!option) {
      std::vector<std::string> values;
      for (const BlueprintOption& o : d.options) values.push_back(o.value);
      return bad(d.name, fmt::format("'{}' is none of its options", chosen->second), "options: " + join(values, ", "));
    }
    if (!holds(option->when, names))
      return bad(d.name, fmt::format("'{}' is not possible here: {} is false", option->value, option->when.text));
  }
  for (const auto& [name, value] : choices)
    if (!known.count(name)) return bad(name, "is no decision of this blueprint", closest(name, {known.begin(), known.end()}));
  const Names all = constraint_names(blueprint, choices, names);
  for (const BlueprintConstraint& c : blueprint.constraints) {
    const auto value = evaluate(c.must, all);
    if (!value) return bad("constraint", fmt::format("{}: {}", c.must.text, value.error().message));
    if (*value == 0) return bad("constraint", fmt::format("{} ({} is false)", c.message, c.must.text));
  }
  return {};
}

Result<KernelPackage> render(const Blueprint& blueprint, const Choices& choices, const TargetSpec& target, const Names& names,
                             const std::string& without) {
  FORGE_TRY(check_choices(blueprint, choices, names));
  if (!without.empty() && std::none_of(blueprint.stages.begin(), blueprint.stages.end(), [&](const auto& s) { return s.name == without; }))
    return fail(Code::bad_input, fmt::format("the blueprint of {} has no stage '{}'", blueprint.operator_name, without));
  std::map<std::string, std::string> values;
  for (const auto& [name, value] : names) values[name] = std::to_string(value);
  for (const BlueprintDecision& d : blueprint.decisions)
    for (auto& [name, value] : values_of(d, choices.at(d.name))) values[name] = value;
  values["target"] = target.name;
  values["operator"] = blueprint.operator_name;
  values["vector_bits"] = std::to_string(target.vector_bits);
  const auto rendered = [&](const std::string& text, const std::string& name) -> Result<std::string> {
    const std::string file = (blueprint.folder / (name + ".in")).string();
    FORGE_TRY_ASSIGN(const std::string all, expand(text, values, file));  // first: its errors count the template's lines
    return take_stages(all, blueprint, without, file);
  };
  KernelPackage package;
  package.source_name = blueprint.source_name;
  FORGE_TRY_ASSIGN(package.source, rendered(blueprint.source_template, blueprint.source_name));
  FORGE_TRY_ASSIGN(package.plan_text, rendered(blueprint.plan_template, blueprint.plan_name));
  package.origin = "blueprint " + blueprint.operator_name + (without.empty() ? "" : " without " + without);
  return package;
}

}  // namespace forge
