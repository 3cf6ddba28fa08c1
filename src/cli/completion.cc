// SPDX-License-Identifier: Apache-2.0
// forge completion | man: text made from the same tree that parses the command line, so that neither can lag behind it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <map>
#include <memory>

#include "cli/command.h"
#include "cli/command_tree.h"
#include "core/json_io.h"
#include "core/target.h"
#include "gate/gate.h"

namespace forge {

namespace {

std::vector<std::string> folder_names(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (entry.is_directory(ignored)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

// Names of folders only, no file is opened: this runs at every press of a key.
std::vector<std::string> entry_words(const Paths& p) {
  std::vector<std::string> words;
  for (const std::string& family : folder_names(p.data / "knowledge")) {
    if (family == "operators") continue;
    for (std::string& id : folder_names(p.data / "knowledge" / family)) words.push_back(std::move(id));
  }
  return words;
}

std::vector<std::string> run_words(const Paths& p) {
  std::vector<std::string> words = folder_names(p.home / "runs");
  words.insert(words.begin(), "last");
  return words;
}

std::vector<std::string> generation_words(const Paths& p) {
  std::vector<std::string> words;
  for (const std::string& op : folder_names(p.home / "vault"))
    for (const std::string& target : folder_names(p.home / "vault" / op))
      for (std::string& id : folder_names(p.home / "vault" / op / target))
        if (!id.starts_with(".")) words.push_back(std::move(id));  // not what is just being sealed
  return words;
}

std::vector<std::string> reference_words(const Paths& p) {
  std::vector<std::string> words{"expert", "none"};
  for (const std::string& id : generation_words(p)) words.push_back("gen:" + id);
  return words;
}

using WordList = std::function<std::vector<std::string>(const Paths&)>;
const std::map<std::string, WordList> kWordLists = {
    {"operators", [](const Paths& p) { return operator_names(p); }},
    {"entries", entry_words},
    {"runs", run_words},
    {"generations", generation_words},
    {"references", reference_words},
    {"targets", [](const Paths&) { return known_targets(); }},
};

int completion(const Context& c, const CLI::App& app, const std::string& what) {
  Json j;
  if (const auto list = kWordLists.find(what); list != kWordLists.end()) {
    const std::vector<std::string> words = list->second(c.paths);
    for (const std::string& word : words) c.out(word);
    j["words"] = words;
  } else {
    const CommandNode tree = command_tree(app);
    const std::string script = what == "bash" ? bash_completion(tree) : zsh_completion(tree);
    c.out(script);
    j["script"] = script;
  }
  return c.finish(dump(j));
}

int manual(const Context& c, const CLI::App& app) {
  const std::string page = manual_page(command_tree(app));
  c.out(page);
  return c.finish(dump(Json{{"page", page}}));
}

}  // namespace

void add_shell(CLI::App& app, Action& action) {
  auto what = std::make_shared<std::string>();
  std::vector<std::string> known{"bash", "zsh"};
  for (const auto& [name, list] : kWordLists) known.push_back(name);
  CLI::App* sub = app.add_subcommand("completion", "the completion script of a shell, or the words that such a script asks for");
  sub->add_option("what", *what, "a shell, or which words")->required()->check(CLI::IsMember(known));
  sub->footer(
      "Examples:\n  source <(forge completion bash)\n  forge completion bash > ~/.local/share/bash-completion/completions/forge\n"
      "  forge completion zsh > ~/.zfunc/_forge     # with fpath+=~/.zfunc before compinit");
  sub->callback([what, &app, &action] { action = [what, &app](Context& c) { return completion(c, app, *what); }; });

  CLI::App* man = app.add_subcommand("man", "the manual page, in roff");
  man->footer("Example:\n  forge man | man -l -");
  man->callback([&app, &action] { action = [&app](Context& c) { return manual(c, app); }; });
}

}  // namespace forge
