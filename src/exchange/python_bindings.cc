// SPDX-License-Identifier: Apache-2.0
// Which names a line of Python may give another value. Rather one too many than one too few: a name that is rebound in a way that is
// not understood here must not keep the value that it had.
#include <algorithm>
#include <cctype>
#include <set>

#include "exchange/python_text.h"
#include "util/text.h"

namespace forge {
namespace {

using PythonWords = std::vector<std::string>;

bool begins_word(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || static_cast<unsigned char>(c) >= 0x80; }
bool within_word(char c) { return begins_word(c) || std::isdigit(static_cast<unsigned char>(c)); }

PythonWords words_of(const std::string& text) {
  PythonWords out;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i + 1;
    if (within_word(text[i])) {
      while (end < text.size() && within_word(text[end])) ++end;
      if (begins_word(text[i])) out.push_back(text.substr(i, end - i));
    }
    i = end;
  }
  return out;
}

std::string first_word(const std::string& text) {
  std::size_t end = 0;
  while (end < text.size() && within_word(text[end])) ++end;
  return text.substr(0, end);
}

void add(PythonWords& to, const PythonWords& words) { to.insert(to.end(), words.begin(), words.end()); }

// The last = outside brackets that gives a value (=, +=, <<=; not ==, <=): npos when there is none.
std::size_t last_store(const std::string& text) {
  std::size_t found = std::string::npos;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); i++) {
    if (text[i] == '(' || text[i] == '[' || text[i] == '{') ++depth;
    if (text[i] == ')' || text[i] == ']' || text[i] == '}') --depth;
    if (text[i] != '=') continue;
    if (i + 1 < text.size() && text[i + 1] == '=') {
      ++i;
      continue;
    }
    const char before = i > 0 ? text[i - 1] : ' ';
    const bool compares = before == '!' || ((before == '<' || before == '>') && (i < 2 || text[i - 2] != before));
    if (!compares && depth <= 0) found = i;
  }
  return found;
}

void simple_statement(const std::string& text, PythonBindings& out) {
  static const std::set<std::string> kAllBound = {"del", "import", "from", "case", "async"};
  const std::string first = first_word(text);
  const PythonWords words = words_of(text);
  const std::size_t store = last_store(text);
  if (first == "def" || first == "class") {  // the rest of such a line only reads
    if (words.size() > 1) out.names.push_back(words[1]);
    return;
  }
  if (kAllBound.count(first)) {
    add(out.names, words);
    out.everything |= first == "from" && text.ends_with("*");
  } else if (store != std::string::npos) {
    const std::string targets = text.substr(0, store);
    const std::size_t part = first.size();  // x[0] = 1, x.data = y
    const bool in_place = part > 0 && part < targets.size() && (targets[part] == '[' || targets[part] == '.');
    add(in_place && targets.find('=') == std::string::npos && split_top(targets, ',').size() == 1 ? out.touched : out.names,
        words_of(targets));
  } else if (first.size() < text.size() && (text[first.size()] == '.' || text[first.size()] == '[')) {
    out.touched.push_back(first);  // x.append(1)
  }
  if (first == "for") add(out.names, words_of(text.substr(0, text.find(" in "))));
  const auto as = std::find(words.begin(), words.end(), "as");  // with, except
  if (as != words.end()) out.names.insert(out.names.end(), as + 1, words.end());
}

}  // namespace

std::size_t python_closing(const std::string& text, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < text.size(); i++) {
    if (text[i] == '(' || text[i] == '[' || text[i] == '{') ++depth;
    if ((text[i] == ')' || text[i] == ']' || text[i] == '}') && --depth == 0) return i;
  }
  return std::string::npos;
}

PythonBindings python_bindings(const PythonLine& line) {
  static const std::set<std::string> kHeads = {"if",     "elif", "else",  "for",  "while", "try",
                                               "except", "with", "match", "case", "async", "finally"};
  PythonBindings out;
  for (const std::string& statement : split_top(line.text, ';')) {
    const bool head = kHeads.count(first_word(statement)) > 0;  // "if x: N = 3": what follows the colon is a statement too
    for (const std::string& part : head ? split_top(statement, ':') : std::vector<std::string>{statement}) simple_statement(part, out);
  }
  for (std::size_t at = line.text.find(":="); at != std::string::npos; at = line.text.find(":=", at + 2)) {
    std::size_t end = at;
    while (end > 0 && line.text[end - 1] == ' ') --end;
    std::size_t begin = end;
    while (begin > 0 && within_word(line.text[begin - 1])) --begin;
    if (begin < end) out.names.push_back(line.text.substr(begin, end - begin));
  }
  const PythonWords words = words_of(line.text);
  for (const char* any : {"exec", "globals"}) out.everything |= std::find(words.begin(), words.end(), any) != words.end();
  return out;
}

void forget_bound(const PythonBindings& bindings, PythonConstants& constants) {
  if (bindings.everything) constants.clear();
  for (const auto* list : {&bindings.names, &bindings.touched})
    for (const std::string& name : *list) constants.erase(name);
}

}  // namespace forge
