// SPDX-License-Identifier: Apache-2.0
#include "exchange/python_text.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "core/launch_plan.h"
#include "util/text.h"

namespace forge {
namespace {

bool name_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

bool plain_word(const std::string& text) {
  return !text.empty() && !std::isdigit(static_cast<unsigned char>(text[0])) && std::all_of(text.begin(), text.end(), name_char);
}

// Copies the text without comments and without what strings hold.
class Stripper {
 public:
  explicit Stripper(const std::string& text) : m_text(text) {}

  std::vector<PythonLine> run() {
    while (m_at < m_text.size()) step();
    end_line();
    return std::move(m_lines);
  }

 private:
  void step() {
    const char c = m_text[m_at];
    if (m_line.text.empty() && m_number != m_line.number) start_line();
    if (m_at >= m_text.size()) return;
    if (c == '#')
      while (m_at < m_text.size() && m_text[m_at] != '\n') ++m_at;
    else if (c == '"' || c == '\'')
      skip_string(c);
    else if (c == '\\' && m_at + 1 < m_text.size() && m_text[m_at + 1] == '\n')
      m_at += 2, ++m_number, m_line.text += ' ';
    else if (c == '\n')
      new_line();
    else
      bracket(c), m_line.text += c == '\t' || c == '\r' ? ' ' : c, ++m_at;
  }

  void start_line() {
    m_line.number = m_number;
    m_line.indent = 0;
    for (std::size_t i = m_at; i < m_text.size() && (m_text[i] == ' ' || m_text[i] == '\t'); i++)
      m_line.indent += m_text[i] == '\t' ? 8 : 1;
  }
  void bracket(char c) {
    if (c == '(' || c == '[' || c == '{') ++m_depth;
    if (c == ')' || c == ']' || c == '}') m_depth = std::max(0, m_depth - 1);
  }
  void new_line() {
    ++m_at;
    ++m_number;
    if (m_depth > 0)
      m_line.text += ' ';
    else
      end_line();
  }
  void end_line() {
    m_line.text = trim(m_line.text);
    if (!m_line.text.empty() && m_line.text != "\"\"") m_lines.push_back(m_line);
    m_line = {};
  }
  void skip_string(char quote) {
    const bool triple = m_text.compare(m_at, 3, std::string(3, quote)) == 0;
    m_at += triple ? 3 : 1;
    while (m_at < m_text.size()) {
      if (m_text[m_at] == '\n') ++m_number;
      if (m_text[m_at] == '\\') {
        m_at += 2;
      } else if (triple ? m_text.compare(m_at, 3, std::string(3, quote)) == 0 : m_text[m_at] == quote || m_text[m_at] == '\n') {
        m_at += triple ? 3 : 1;
        break;
      } else {
        ++m_at;
      }
    }
    m_at = std::min(m_at, m_text.size());
    m_line.text += "\"\"";
  }

  const std::string& m_text;
  std::size_t m_at = 0;
  int m_number = 1, m_depth = 0;
  PythonLine m_line;
  std::vector<PythonLine> m_lines;
};

// Whole numbers with + - * / % and earlier constants: what a launch plan's expressions can say.
std::optional<std::int64_t> whole_number(const std::string& text, const PythonConstants& constants) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); i++) {
    if (text[i] == '/' && i + 1 < text.size() && text[i + 1] == '/') continue;  // Python's whole division
    if (text[i] == '_' && i > 0 && i + 1 < text.size() && std::isdigit(static_cast<unsigned char>(text[i - 1])) &&
        std::isdigit(static_cast<unsigned char>(text[i + 1])))
      continue;  // 1_000
    plain += text[i];
  }
  const auto expr = parse_expr(plain);
  if (!expr) return {};
  Names names;
  for (const auto& [name, c] : constants)
    if (!c.tuple) names[name] = c.values.front();
  const auto value = evaluate(*expr, names);
  return value ? std::optional<std::int64_t>(*value) : std::nullopt;
}

// "(a, b)" or "[a, b]" as its items; null when the text is no such thing.
std::optional<std::vector<std::string>> sequence_items(const std::string& text) {
  if (text.size() < 2) return {};
  const char close = text[0] == '(' ? ')' : text[0] == '[' ? ']' : 0;
  if (!close || text.back() != close) return {};
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); i++) {
    if (text[i] == '(' || text[i] == '[') ++depth;
    if ((text[i] == ')' || text[i] == ']') && --depth == 0 && i + 1 < text.size()) return {};  // "(a) * (b)"
  }
  std::vector<std::string> items = split_top(text.substr(1, text.size() - 2), ',');
  if (!items.empty() && items.back().empty()) items.pop_back();
  return items;
}

std::optional<DType> torch_dtype(std::string text) {
  if (text.starts_with("torch.")) text = text.substr(6);
  static const std::vector<std::pair<std::string, std::string>> kAliases = {
      {"float", "float32"}, {"half", "float16"}, {"long", "int64"}, {"int", "int32"}, {"short", "int16"}};
  for (const auto& [alias, full] : kAliases)
    if (text == alias) text = full;
  return parse_dtype(text);
}

// One argument of torch.rand(...) as dimensions; false: not known.
bool add_dims(const std::string& argument, const PythonConstants& constants, const std::vector<std::string>& parameters,
              std::vector<PythonDim>& dims, int depth = 0) {
  if (depth > 3) return false;
  if (const auto items = sequence_items(argument))
    return std::all_of(items->begin(), items->end(),
                       [&](const std::string& i) { return add_dims(i, constants, parameters, dims, depth + 1); });
  const bool starred = argument.starts_with("*");
  const std::string text = starred ? trim(argument.substr(1)) : argument;
  if (plain_word(text)) {
    if (std::find(parameters.begin(), parameters.end(), text) != parameters.end()) {
      dims.push_back({text, -1});
      return !starred;
    }
    const auto c = constants.find(text);
    if (c == constants.end()) return false;
    for (const std::int64_t v : c->second.values) dims.push_back({c->second.tuple ? "" : text, v});
    return true;
  }
  const auto value = starred ? std::nullopt : whole_number(text, constants);
  if (!value || *value < 0) return false;
  dims.push_back({"", *value});
  return true;
}

// The arguments of .to(...): dtypes and devices; false: it may be either, or a tensor to be like.
bool takes_dtype(const std::string& arguments, PythonTensor& tensor) {
  for (const std::string& argument : split_top(arguments, ',')) {
    if (argument == "\"\"" || argument == "device" || argument.starts_with("device=") || argument.starts_with("torch.device(")) continue;
    const auto type = torch_dtype(argument.starts_with("dtype=") ? trim(argument.substr(6)) : argument);
    if (!type) return false;
    tensor.dtype = *type;
  }
  return true;
}

// What may follow the call without changing the shape: methods of a short list, or arithmetic with a number or a constant.
bool keeps_shape(std::string rest, const PythonConstants& constants, PythonTensor& tensor) {
  static const std::set<std::string> kKeep = {"cuda", "cpu", "contiguous", "requires_grad_", "abs", "clone", "to"};
  rest = trim(rest);
  while (rest.starts_with(".")) {
    const std::size_t open = rest.find('(');
    if (open == std::string::npos) return false;
    const std::string method = rest.substr(1, open - 1);
    const std::size_t end = python_closing(rest, open);
    if (end == std::string::npos) return false;
    const std::string argument = trim(rest.substr(open + 1, end - open - 1));
    if (method == "bfloat16" || method == "half" || method == "float")
      tensor.dtype = *torch_dtype(method);
    else if (!kKeep.count(method) || (method == "to" && !takes_dtype(argument, tensor)))
      return false;
    rest = trim(rest.substr(end + 1));
  }
  if (rest.empty()) return true;
  if (std::string("*+-/").find(rest[0]) == std::string::npos || rest.starts_with("**")) return false;
  const std::string right = trim(rest.substr(1));
  const bool number = !right.empty() && std::all_of(right.begin(), right.end(), [](char c) {
    return std::isdigit(static_cast<unsigned char>(c)) || c == '.' || c == 'e' || c == '-';
  });
  return number || (plain_word(right) && constants.count(right) && !constants.at(right).tuple);
}

// Without the bodies of functions and classes, whose names are their own, and without what only a script does.
std::vector<PythonLine> run_by_import(const std::vector<PythonLine>& lines) {
  std::vector<PythonLine> out;
  int margin = -1;  // of the head whose body is left out
  for (const PythonLine& line : lines) {
    if (margin >= 0 && line.indent > margin) continue;
    const bool own = line.text.starts_with("def ") || line.text.starts_with("class ") || line.text.starts_with("async def ") ||
                     line.text == "if __name__ == \"\":";
    margin = own ? line.indent : -1;
    out.push_back(line);
  }
  return out;
}

std::optional<PythonConstant> constant_of(const std::string& text, const PythonConstants& known) {
  PythonConstant c;
  if (const auto items = sequence_items(text); items && text.find(',') != std::string::npos) {
    c.tuple = true;
    for (const std::string& item : *items)
      if (const auto v = whole_number(item, known)) c.values.push_back(*v);
    return c.values.size() == items->size() && !c.values.empty() ? std::optional(c) : std::nullopt;
  }
  const auto v = whole_number(text, known);
  if (!v) return {};
  c.values.push_back(*v);
  return c;
}

}  // namespace

std::vector<std::string> split_top(const std::string& text, char separator) {
  std::vector<std::string> parts{""};
  int depth = 0;
  for (const char c : text) {
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    if (c == separator && depth == 0)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  for (std::string& p : parts) p = trim(p);
  if (parts.size() == 1 && parts[0].empty()) parts.clear();
  return parts;
}

std::vector<PythonLine> python_lines(const std::string& text) { return Stripper(text).run(); }

std::optional<std::pair<std::string, std::string>> python_assignment(const PythonLine& line) {
  const std::size_t equals = line.text.find('=');
  if (equals == std::string::npos || equals + 1 >= line.text.size() || line.text[equals + 1] == '=') return {};
  std::string name = trim(line.text.substr(0, equals));
  if (const std::size_t colon = name.find(':'); colon != std::string::npos) name = trim(name.substr(0, colon));  // x: int = 3
  if (!plain_word(name)) return {};
  return std::pair{name, trim(line.text.substr(equals + 1))};
}

PythonConstants python_constants(const std::vector<PythonLine>& lines) {
  PythonConstants out;
  for (const PythonLine& line : run_by_import(lines)) {
    const auto assigned = line.indent == 0 ? python_assignment(line) : std::nullopt;
    auto c = assigned ? constant_of(assigned->second, out) : std::nullopt;
    forget_bound(python_bindings(line), out);
    if (c) out[assigned->first] = std::move(*c);
  }
  for (const PythonLine& line : lines) {  // functions that change what is not theirs, whenever they are called
    PythonBindings bindings = python_bindings(line);
    bindings.names.clear(), bindings.touched.clear();
    if (line.text.starts_with("global ")) bindings.names = split_top(line.text.substr(7, line.text.find(';') - 7), ',');
    bindings.everything &= line.indent > 0 && !line.text.starts_with("from ");
    forget_bound(bindings, out);
  }
  return out;
}

std::optional<PythonFunction> python_function(const std::vector<PythonLine>& lines, const std::string& name, const std::string& of_class) {
  bool inside = of_class.empty();
  int margin = 0;
  std::optional<PythonFunction> found;  // of several the last counts, as in Python
  for (std::size_t i = 0; i < lines.size(); i++) {
    const PythonLine& line = lines[i];
    if (!of_class.empty() && line.indent == 0) {
      const std::string rest = line.text.starts_with("class " + of_class) ? line.text.substr(6 + of_class.size()) : "?";
      inside = rest.starts_with("(") || rest.starts_with(":");
      margin = -1;
      continue;
    }
    if (!inside) continue;
    if (margin < 0) margin = line.indent;
    const std::string head = "def " + name;
    const std::string rest = line.text.starts_with(head) ? trim(line.text.substr(head.size())) : "";
    if (line.indent != margin) continue;
    if (!rest.starts_with("(")) {
      const std::vector<std::string> bound = python_bindings(line).names;
      if (std::find(bound.begin(), bound.end(), name) != bound.end()) found.reset();  // get_inputs = other
      continue;
    }
    const std::size_t end = python_closing(rest, 0);
    PythonFunction f;
    f.number = line.number;
    for (const std::string& parameter : split_top(end == std::string::npos ? "" : rest.substr(1, end - 1), ',')) {
      const std::string word = trim(parameter.substr(0, parameter.find_first_of(":=")));
      if (plain_word(word)) f.parameters.push_back(word);
    }
    for (std::size_t j = i + 1; j < lines.size() && lines[j].indent > margin; j++) f.body.push_back(lines[j]);
    found = std::move(f);
  }
  return found;
}

std::optional<PythonTensor> python_tensor(const std::string& expression, const PythonConstants& constants,
                                          const std::vector<std::string>& parameters) {
  static const std::set<std::string> kMakers = {"rand", "randn", "empty", "zeros", "ones", "randint"};
  if (!expression.starts_with("torch.")) return {};
  const std::size_t open = expression.find('(');
  if (open == std::string::npos) return {};
  const std::string maker = expression.substr(6, open - 6);
  if (!kMakers.count(maker)) return {};
  const std::size_t end = python_closing(expression, open);
  if (end == std::string::npos) return {};
  PythonTensor tensor;
  if (maker == "randint") tensor.dtype = DType::i64;
  std::vector<std::string> positional;
  for (const std::string& argument : split_top(expression.substr(open + 1, end - open - 1), ',')) {
    const std::size_t equals = argument.find('=');
    const std::string key = equals == std::string::npos ? "" : trim(argument.substr(0, equals));
    if (!plain_word(key)) {
      positional.push_back(argument);
    } else if (key == "dtype") {
      const auto type = torch_dtype(trim(argument.substr(equals + 1)));
      if (!type) return {};
      tensor.dtype = *type;
    } else if (key == "size") {
      positional.push_back(trim(argument.substr(equals + 1)));
    }
  }
  if (maker == "randint") {  // (low,) high, size
    if (positional.size() < 2) return {};
    positional.erase(positional.begin(), positional.end() - 1);
  }
  for (const std::string& argument : positional)
    if (!add_dims(argument, constants, parameters, tensor.dims)) return {};
  return keeps_shape(expression.substr(end + 1), constants, tensor) ? std::optional(tensor) : std::nullopt;
}

}  // namespace forge
