// SPDX-License-Identifier: Apache-2.0
#include "cli/command_tree.h"

#include <CLI/CLI.hpp>
#include <map>

#include "util/text.h"

namespace forge {

namespace {

// What an option or argument of that name takes, whatever the command: names mean the same everywhere.
std::string words_for(const std::string& name) {
  static const std::map<std::string, std::string> kinds = {
      {"operator", "operators"},
      {"operators", "operators"},
      {"--operator", "operators"},
      {"run", "runs"},
      {"--resume", "runs"},
      {"entry", "entries"},
      {"entries", "entries"},
      {"generation", "generations"},
      {"--target", "targets"},
      {"--reference", "references"},
      {"package", "files"},
      {"--package", "files"},
      {"--folder", "files"},
      {"folder", "files"},
      {"where", "files"},
      {"from", "files"},
      {"to", "files"},
      {"--to", "files"},
      {"what", "kernels"},
      {"--output", "files"},
      {"--beside", "files"},
      {"--socket", "files"},
      {"--into", "files"},
      {"--keep", "files"},
  };
  const auto it = kinds.find(name);
  return it == kinds.end() ? "" : it->second;
}

// CLI11 keeps the members of a set only in the text that its help shows: "TEXT:{bash,zsh}".
std::vector<std::string> choices_in(const std::string& type) {
  const std::size_t open = type.find('{'), close = type.find('}');
  if (open == std::string::npos || close == std::string::npos || close < open) return {};
  return split(type.substr(open + 1, close - open - 1), ',');
}

CommandOption read_option(const CLI::Option& o) {
  CommandOption out;
  out.positional = o.get_positional();
  if (out.positional) {
    out.names = {o.get_name()};
  } else {
    for (const std::string& s : o.get_snames()) out.names.push_back("-" + s);
    for (const std::string& l : o.get_lnames()) out.names.push_back("--" + l);
  }
  out.description = o.get_description();
  out.default_value = o.get_default_str();
  out.required = o.get_required();
  out.takes_value = o.get_items_expected_max() > 0;
  out.many = out.takes_value && o.get_items_expected_max() > 1;
  if (!out.takes_value) return out;
  out.choices = choices_in(o.get_type_name());
  out.words = words_for(out.names.back());
  return out;
}

// A command without a footer of its own has its parent's.
CommandNode read_node(const CLI::App& app, const std::string& path, const std::string& above) {
  CommandNode node{.path = path,
                   .name = app.get_name(),
                   .description = app.get_description(),
                   .footer = app.get_footer() == above ? "" : app.get_footer(),
                   .options = {},
                   .commands = {}};
  for (const CLI::Option* o : app.get_options()) node.options.push_back(read_option(*o));
  // An unnamed app is a group of options; there is none here, and it would have no word to complete.
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App* a) { return !a->get_name().empty(); }))
    node.commands.push_back(read_node(*sub, path.empty() ? sub->get_name() : path + " " + sub->get_name(), app.get_footer()));
  return node;
}

}  // namespace

CommandNode command_tree(const CLI::App& app) { return read_node(app, "", ""); }

}  // namespace forge
