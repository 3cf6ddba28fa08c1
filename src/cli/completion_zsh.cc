// SPDX-License-Identifier: Apache-2.0
// One function a command, each a call of zsh's own _arguments.
#include <fmt/format.h>

#include <map>

#include "cli/command_tree.h"
#include "util/text.h"

namespace forge {

namespace {

std::string replaced(const std::string& text, const std::map<char, std::string>& with) {
  std::string out;
  for (const char c : text) {
    const auto it = with.find(c);
    out += it == with.end() ? std::string(1, c) : it->second;
  }
  return out;
}
std::string quoted(const std::string& text) { return "'" + replaced(text, {{'\'', "'\\''"}}) + "'"; }
std::string in_brackets(const std::string& text) { return replaced(text, {{'[', "\\["}, {']', "\\]"}}); }
std::string no_colon(const std::string& text) { return replaced(text, {{':', "\\:"}}); }

std::string function_of(const std::string& path) { return path.empty() ? "_forge" : "_forge_" + replaced(path, {{' ', "_"}, {'-', "_"}}); }

std::string action_of(const CommandOption& o) {
  if (!o.choices.empty()) return "(" + join(o.choices, " ") + ")";
  if (o.words == "files") return "_files";
  if (o.words == "kernels") return "_forge_kernels";
  return o.words.empty() ? " " : "_forge_words " + o.words;
}

std::string spec_of(const CommandOption& o, int position) {
  const std::string message = no_colon(o.positional ? o.names.front() : o.takes_value ? "value" : "");
  if (o.positional) return quoted(fmt::format("{}:{}:{}", o.many ? "*" : std::to_string(position), message, action_of(o)));
  const std::string tail = "[" + in_brackets(o.description) + "]" + (o.takes_value ? ":" + message + ":" + action_of(o) : "");
  std::vector<std::string> specs;
  const std::string apart = o.many ? "*" : "(" + join(o.names, " ") + ")";
  for (const std::string& name : o.names) {
    const std::string equals = o.takes_value ? (name.starts_with("--") ? "=" : "+") : "";
    specs.push_back(quoted(apart + name + equals + tail));
  }
  return join(specs, " ");
}

void add_functions(const CommandNode& node, const std::vector<CommandOption>& global, std::string& out) {
  out += function_of(node.path) + "() {\n  local curcontext=\"$curcontext\" state line\n  typeset -A opt_args\n  _arguments -C";
  int position = 0;
  for (const CommandOption& o : node.options) out += " \\\n    " + spec_of(o, o.positional && !o.many ? ++position : 0);
  for (const CommandOption& o : global)
    if (o.names.back() != "--help" && o.names.back() != "--version") out += " \\\n    " + spec_of(o, 0);
  if (node.commands.empty()) {
    out += "\n}\n";
    return;
  }
  out += " \\\n    '1:command:->command' '*::argument:->rest'\n  case $state in\n    command)\n      local -a commands=(\n";
  for (const CommandNode& c : node.commands) out += "        " + quoted(c.name + ":" + c.description) + "\n";
  out += "      )\n      _describe -t commands command commands ;;\n    rest)\n      case $line[1] in\n";
  for (const CommandNode& c : node.commands) out += fmt::format("        {}) {} ;;\n", c.name, function_of(c.path));
  out += "      esac ;;\n  esac\n}\n";
  for (const CommandNode& c : node.commands) add_functions(c, node.path.empty() ? node.options : global, out);
}

}  // namespace

std::string zsh_completion(const CommandNode& root) {
  std::string out = "#compdef forge\n# zsh completion of forge, made by `forge completion zsh` from the program's own commands.\n";
  // _arguments puts what it wants said to compadd before the last word.
  out += "_forge_words() {\n  local -a found\n  found=(${(f)\"$(forge completion $@[-1] 2>/dev/null </dev/null)\"})\n";
  out += "  compadd \"${@[1,-2]}\" -a found\n}\n";
  out +=
      "_forge_kernels() {\n  local kind=generations\n  [[ $PREFIX == gen:* ]] && kind=references\n  _forge_words \"$@\" $kind\n  "
      "_files\n}\n";
  add_functions(root, {}, out);
  // Found in fpath the file is the function's body; read by `source` it only registers it.
  return out + "if [[ $funcstack[1] == _forge ]]; then _forge \"$@\"; else compdef _forge forge; fi\n";
}

}  // namespace forge
