// SPDX-License-Identifier: Apache-2.0
#include "agents/command_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/toml_io.h"
#include "util/text.h"

namespace forge {

namespace {

bool plain_name(const std::string& s) {
  return !s.empty() &&
         std::all_of(s.begin(), s.end(), [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_'; });
}

bool variable_name(const std::string& s) {
  return !s.empty() && s.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
}

bool stays_inside(const std::string& path) {
  if (path.empty() || path.front() == '/') return false;
  for (const std::string& part : split(path, '/'))
    if (part == ".." || part == ".") return false;
  return true;
}

const TemplateValues kExample = {{"prompt_file", "p"}, {"mcp_config", "m"}, {"workspace", "w"}, {"home", "h"},
                                 {"forge", "f"},       {"socket", "s"},     {"model", "x"}};

void check_names(TomlReader& toml, const std::string& key, const std::string& text, const std::string& file) {
  if (const auto ok = expand(text, kExample, file); !ok)
    toml.add_error(
        key, ok.error().message, "the names are " + [] {
          std::vector<std::string> names;
          for (const auto& [n, v] : kExample) names.push_back(n);
          return join(names, ", ");
        }());
}

}  // namespace

Result<CommandTemplate> parse_command_template(const std::string& text, const std::string& name, const std::string& file) {
  CommandTemplate t;
  t.name = name;
  t.file = file;
  FORGE_TRY_ASSIGN(TomlReader toml, TomlReader::parse(text, file));
  toml.format(1);
  toml.need_text("title", t.title);
  toml.need("command", t.command);
  toml.check(!t.command.empty() && !t.command[0].empty(), "command", "names no program");
  toml.maybe("model_args", t.model_args);
  toml.maybe("input", t.input);
  toml.maybe("mcp_config", t.mcp_config);
  toml.check(t.mcp_config.empty() || stays_inside(t.mcp_config), "mcp_config", "must be a path inside the workspace");
  toml.maybe("prompt", t.prompt);
  for (const std::string& word : t.command) check_names(toml, "command", word, file);
  for (const std::string& word : t.model_args) check_names(toml, "model_args", word, file);
  check_names(toml, "input", t.input, file);
  for (TomlReader& row : toml.tables("file")) {
    CommandTemplate::File f;
    row.need_text("path", f.path);
    row.need("text", f.text);
    row.check(stays_inside(f.path) && split(f.path, '/').size() <= 2, "path", "must be NAME or FOLDER/NAME, in the workspace");
    check_names(row, "path", f.path, file);
    check_names(row, "text", f.text, file);
    t.files.push_back(std::move(f));
  }
  TomlReader env = toml.table("environment");
  if (env.present()) {
    env.maybe("pass", t.pass);
    env.maybe("keys", t.keys);
    env.maybe("set", t.set);
    for (const std::string& v : t.pass)
      env.check(variable_name(v), "pass", fmt::format("'{}' is no variable's name", v), "names only: values come from your environment");
    for (const std::string& v : t.keys)
      env.check(variable_name(v), "keys", fmt::format("'{}' is no variable's name", v), "names only: values come from your environment");
    for (const std::string& v : t.set) {
      env.check(v.find('=') != std::string::npos && variable_name(v.substr(0, v.find('='))), "set",
                fmt::format("'{}' is not NAME=value", v));
      check_names(env, "set", v, file);
    }
  }
  TomlReader sandbox = toml.table("sandbox");
  if (sandbox.present()) {
    sandbox.maybe("on", t.sandboxed);
    sandbox.maybe("read", t.read);
    sandbox.maybe("config", t.config);
    sandbox.maybe("config_writable", t.config_writable);
    for (const std::string& p : t.config)
      sandbox.check(p.starts_with("~/") && stays_inside(p.substr(2)), "config", fmt::format("'{}' is not beneath your home", p),
                    "write ~/.name");
    for (const std::string& p : t.read)
      sandbox.check(p.starts_with("~/") || p.starts_with("/"), "read", fmt::format("'{}' is not a whole path", p), "begin with / or ~/");
  }
  TomlReader usage = toml.table("usage");
  if (usage.present())
    usage.need_choice("format", t.usage,
                      {UsageFormat::none, UsageFormat::claude_code, UsageFormat::codex, UsageFormat::gemini, UsageFormat::opencode});
  TomlReader limits = toml.table("limits");
  if (limits.present()) {
    limits.maybe("seconds", t.seconds);
    limits.maybe("quiet_seconds", t.quiet_seconds);
    limits.maybe("grace_seconds", t.grace_seconds);
    limits.check(t.seconds > 0, "seconds", "must be positive");
    limits.check(t.quiet_seconds > 0, "quiet_seconds", "must be positive");
    limits.check(t.grace_seconds >= 0, "grace_seconds", "must not be negative");
  }
  FORGE_TRY(toml.finish());
  return t;
}

std::vector<std::string> command_template_names(const Paths& paths) {
  std::set<std::string> names;
  for (const fs::path& folder : {paths.home / "agents", paths.data / "agents"}) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error))
      if (entry.path().extension() == ".toml" && plain_name(entry.path().stem().string())) names.insert(entry.path().stem().string());
  }
  return {names.begin(), names.end()};
}

Result<CommandTemplate> load_command_template(const Paths& paths, const std::string& name) {
  if (plain_name(name))
    for (const fs::path& folder : {paths.home / "agents", paths.data / "agents"}) {
      const fs::path file = folder / (name + ".toml");
      std::error_code error;
      if (!fs::exists(file, error)) continue;
      FORGE_TRY_ASSIGN(const std::string text, read_file(file));
      return parse_command_template(text, name, file.string());
    }
  const std::vector<std::string> names = command_template_names(paths);
  return fail(Error{.code = Code::bad_input,
                    .message = fmt::format("no command line agent is called '{}'", name),
                    .file = {},
                    .line = 0,
                    .field = {},
                    .fix = fmt::format("one of: {}; or write {}", join(names, ", "), (paths.home / "agents" / "NAME.toml").string())});
}

}  // namespace forge
