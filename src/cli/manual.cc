// SPDX-License-Identifier: Apache-2.0
// The manual page, in the man macros of groff. What a command says of itself comes from the tree; only the sections on the
// environment and on files are written here.
#include <fmt/format.h>

#include "cli/command_tree.h"
#include "core/version.h"
#include "util/text.h"

namespace forge {

namespace {

// Text as roff shows it: no escape of ours, a plain minus where one is meant, no line that begins like a macro.
std::string roff(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if ((i == 0 || text[i - 1] == '\n') && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else if (c == '`' || c == '\'')
      out += c == '`' ? "\\(ga" : "\\(aq";
    else if (c == '~')
      out += "\\(ti";
    else if (c == '^')
      out += "\\(ha";
    else
      out += c;
  }
  return out;
}

std::string argument_of(const CommandOption& o) {
  if (!o.choices.empty()) return join(o.choices, "|");
  return o.words.empty() || o.words == "files" ? "VALUE" : o.words == "entries" ? "ENTRY" : o.words.substr(0, o.words.size() - 1);
}

std::string option_head(const CommandOption& o) {
  std::vector<std::string> names;
  for (const std::string& n : o.names) names.push_back("\\fB" + roff(n) + "\\fR");
  if (o.positional) return "\\fI" + roff(o.names.front()) + "\\fR" + (o.many ? " ..." : "");
  return join(names, ", ") + (o.takes_value ? " \\fI" + roff(argument_of(o)) + "\\fR" : "");
}

void add_options(const std::vector<CommandOption>& options, std::string& out) {
  for (const CommandOption& o : options) {
    if (o.names.back() == "--help") continue;
    std::string text = o.description;
    if (!o.choices.empty() && o.positional) text += ": " + join(o.choices, ", ");
    if (!o.default_value.empty() && text.find("default") == std::string::npos) text += " (default: " + o.default_value + ")";
    out += ".TP\n" + option_head(o) + "\n" + roff(text) + "\n";
  }
}

void add_command(const CommandNode& node, std::string& out) {
  if (node.commands.empty()) {
    std::string usage = "\\fBforge " + roff(node.path) + "\\fR";
    for (const CommandOption& o : node.options)
      if (!o.positional && o.required) usage += " " + option_head(o);
    bool optional = false;
    for (const CommandOption& o : node.options) optional = optional || (!o.positional && !o.required && o.names.back() != "--help");
    if (optional) usage += " [\\fIoptions\\fR]";
    for (const CommandOption& o : node.options)
      if (o.positional) usage += o.required ? " " + option_head(o) : " [" + option_head(o) + "]";
    out += ".SS " + usage + "\n" + roff(node.description) + ".\n";
    add_options(node.options, out);
  }
  for (const CommandNode& c : node.commands) add_command(c, out);
  if (!node.footer.empty()) out += ".PP\n.nf\n" + roff(node.footer) + "\n.fi\n";
}

constexpr const char* kManualEnd = R"(.SH ENVIRONMENT
.TP
.B FORGE_HOME
where state lives: runs, sealed kernels, config.toml, models.toml. Default: $XDG_DATA_HOME/forge, else \(ti/.local/share/forge
.TP
.B FORGE_DATA
the folder that holds operators/, blueprints/ and knowledge/, instead of the one that was installed
.TP
.B FORGE_PLUGINS
the folder that holds the operators' oracles and experts, built
.TP
.BR ANTHROPIC_API_KEY ", " OPENAI_API_KEY
keys of the models that
.B \-\-coder
and
.B \-\-architect
name
.SH FILES
.TP
.I $FORGE_HOME/config.toml
defaults of runs; \fBforge init\fR writes one with every key, commented out
.TP
.I $FORGE_HOME/models.toml
what models cost
.TP
.I $FORGE_HOME/runs/ID/journal.jsonl
everything that happened in a run
)";

}  // namespace

std::string manual_page(const CommandNode& root) {
  const std::size_t colon = root.description.find(": ");
  const std::string what = colon == std::string::npos ? root.description : root.description.substr(colon + 2);
  // No date: the page of one version is the same whenever it is made.
  std::string out = fmt::format(".TH FORGE 1 \"\" \"forge {}\" \"ForgeKernel\"\n.nh\n.ad l\n", forge_version());
  out += ".SH NAME\nforge \\- " + roff(what) + "\n.SH SYNOPSIS\n.B forge\n.I command\n[\\fIoptions\\fR]\n";
  out += ".SH DESCRIPTION\nEach command has a section below; \\fBforge\\fR \\fIcommand\\fR \\fB\\-\\-help\\fR shows the same.\n";
  out += ".PP\n.nf\n" + roff(root.footer) + "\n.fi\n.SH OPTIONS\nOf every command:\n";
  add_options(root.options, out);
  out += ".SH COMMANDS\n";
  for (const CommandNode& c : root.commands) add_command(c, out);
  return out + kManualEnd;
}

}  // namespace forge
