// SPDX-License-Identifier: Apache-2.0
#include "agents/disclosure.h"

#include <cctype>
#include <vector>

namespace forge {

namespace {

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// "rows=67, columns=8": the label of a workload, as the gate writes it (docs/judging.md).
std::string label_of(const Definition& definition, const std::map<std::string, std::int64_t>& axes) {
  std::string text;
  for (const Axis& a : definition.axes)
    if (!a.constant && axes.count(a.name)) text += (text.empty() ? "" : ", ") + a.name + "=" + std::to_string(axes.at(a.name));
  return text;
}

// Every "<axis>=<number>" run of the text that is no public shape's. Axes of one label follow each other, separated by ", ".
bool names_a_hidden_shape(const std::string& text, const std::vector<std::string>& axes, const std::vector<std::string>& open) {
  if (axes.empty()) return false;
  const std::string first = axes.front() + "=";
  for (std::size_t at = text.find(first); at != std::string::npos; at = text.find(first, at + 1)) {
    if (at > 0 && is_name(text[at - 1])) continue;
    if (at + first.size() >= text.size() || !std::isdigit(static_cast<unsigned char>(text[at + first.size()]))) continue;
    bool known = false;
    for (const std::string& label : open) {
      const std::size_t end = at + label.size();
      if (text.compare(at, label.size(), label) == 0 && (end == text.size() || !is_name(text[end]))) known = true;
    }
    if (!known) return true;
  }
  return false;
}

std::string without_numbers(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const bool starts = std::isdigit(static_cast<unsigned char>(text[i])) != 0 && (i == 0 || !is_name(text[i - 1]));
    if (!starts) {
      out += text[i++];
      continue;
    }
    while (i < text.size() && (is_name(text[i]) || text[i] == '.' || ((text[i] == '-' || text[i] == '+') && text[i - 1] == 'e'))) ++i;
    if (text[i - 1] == '.') --i;  // the end of a sentence
    out += '#';
  }
  return out;
}

}  // namespace

std::string disclose(const std::string& detail, const Definition& definition, const TaskFile& task) {
  std::vector<std::string> axes, open;
  for (const Axis& a : definition.axes)
    if (!a.constant) axes.push_back(a.name);
  open.push_back(label_of(definition, task.timed.axes));
  for (const auto& [family, workload] : task.timed_on) open.push_back(label_of(definition, workload.axes));
  for (const Workload& w : task.workloads) open.push_back(label_of(definition, w.axes));
  if (!names_a_hidden_shape(detail, axes, open)) return detail;
  return without_numbers(detail) + " (on a shape that is not shown: the kernel must be right on every shape that the definition allows)";
}

}  // namespace forge
