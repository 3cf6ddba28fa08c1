// SPDX-License-Identifier: Apache-2.0
// The script has two functions made from the tree, _forge_commands and _forge_kind, and one that is always the same: it walks the
// words before the cursor through them to learn which command is meant and what stands next.
#include <fmt/format.h>

#include "cli/command_tree.h"
#include "util/text.h"

namespace forge {

namespace {

// Never empty: "none" stands for a value that nothing can be offered for.
std::string kind_text(const CommandOption& o) {
  if (!o.choices.empty()) return "=" + join(o.choices, " ");
  return o.words.empty() ? "none" : o.words;
}

void add_commands(const CommandNode& node, std::string& out) {
  std::vector<std::string> commands, options;
  for (const CommandNode& c : node.commands) commands.push_back(c.name);
  for (const CommandOption& o : node.options)
    if (!o.positional) options.insert(options.end(), o.names.begin(), o.names.end());
  out += fmt::format("    '{}') commands='{}' options='{}' ;;\n", node.path, join(commands, " "), join(options, " "));
  for (const CommandNode& c : node.commands) add_commands(c, out);
}

void add_kinds(const CommandNode& node, std::string& out) {
  int at = 0;
  for (const CommandOption& o : node.options) {
    if (!o.takes_value) continue;
    std::vector<std::string> patterns;
    if (o.positional && o.many) {
      patterns = {fmt::format("'{}/'[0-9]*", node.path)};
    } else if (o.positional) {
      patterns = {fmt::format("'{}/{}'", node.path, ++at)};
    } else {
      for (const std::string& name : o.names) patterns.push_back(fmt::format("'{}/{}'", node.path, name));
    }
    out += fmt::format("    {}) kind='{}' ;;\n", join(patterns, " | "), kind_text(o));
  }
  for (const CommandNode& c : node.commands) add_kinds(c, out);
}

constexpr const char* kWalk = R"script(
_forge() {
  local -a seen=()
  local i word glue='' commands options kind path='' pending='' at=1 current offer=''
  # bash cuts words at : and =, so gen:ID and --target=cpu:... are put together again.
  for ((i = 1; i <= COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if [[ ${#seen[@]} -gt 0 && (-n $glue || $word == [:=]*) ]]; then seen[-1]+=$word; else seen+=("$word"); fi
    glue=''
    if [[ $word == *[:=] ]]; then glue=1; fi
  done
  current=${seen[-1]-}
  _forge_commands ''
  local global=$options
  for word in "${seen[@]:0:${#seen[@]}-1}"; do
    if [[ -n $pending ]]; then
      pending=''
    elif [[ $word == -?* ]]; then
      _forge_kind "$path" "$word"
      if [[ -n $kind && $word != *=* ]]; then pending=$kind; fi
    elif [[ " $commands " == *" $word "* ]]; then
      path="${path:+$path }$word" at=1
      _forge_commands "$path"
    else
      at=$((at + 1))
    fi
  done
  if [[ -n $pending ]]; then
    kind=$pending
  elif [[ $current == --*=* ]]; then
    _forge_kind "$path" "${current%%=*}"
    current=${current#*=}
  elif [[ $current == -* ]]; then
    kind="=$options"
    for word in $global; do
      if [[ " $options " != *" $word "* ]]; then kind+=" $word"; fi
    done
  elif [[ -n $commands ]]; then
    kind="=$commands"
  else
    _forge_kind "$path" "$at"
  fi
  COMPREPLY=()
  case $kind in
    '' | none) return ;;
    files) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$current"); return ;;
    kernels)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -f -- "$current")
      kind=generations
      [[ $current == gen:* ]] && kind=references ;;
  esac
  case $kind in
    =*) offer=${kind#=} ;;
    *) offer=$("$1" completion "$kind" 2>/dev/null </dev/null) ;;
  esac
  read -ra seen -d '' <<<"$offer"
  for word in "${seen[@]}"; do
    if [[ $word == "$current"* ]]; then COMPREPLY+=("$word"); fi
  done
  # What stands before the last : is a word of its own to bash, and stays.
  if [[ $current == *:* && $COMP_WORDBREAKS == *:* ]]; then
    word=${current%"${current##*:}"}
    COMPREPLY=("${COMPREPLY[@]#"$word"}")
  fi
}
complete -F _forge forge
)script";

}  // namespace

std::string bash_completion(const CommandNode& root) {
  std::string out = "# bash completion of forge, made by `forge completion bash` from the program's own commands.\n";
  out +=
      "# Sets the words that may follow, and the options, of the command $1.\n_forge_commands() {\n  commands='' options=''\n  case $1 "
      "in\n";
  add_commands(root, out);
  out +=
      "  esac\n}\n\n# Sets what option or argument $2 of command $1 takes: words to ask forge for, files, kernels, =WORDS, none; empty: an "
      "option "
      "without a value.\n";
  out += "_forge_kind() {\n  kind=''\n  case \"$1/$2\" in\n";
  add_kinds(root, out);
  out += "    *) [[ -n $1 ]] && _forge_kind '' \"$2\" ;;\n  esac\n}\n";
  return out + kWalk;
}

}  // namespace forge
