// SPDX-License-Identifier: Apache-2.0
// Recursive descent over the text, one function a precedence level; nodes are appended children first, so the root is last.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <limits>
#include <set>

#include "core/expr_rules.h"

namespace forge {
namespace {

using Op = Expr::Op;
constexpr int kMaxDepth = 100;          // of nesting: bounds the stack of parser and evaluator
constexpr std::size_t kMaxText = 4096;  // characters

struct Token {
  enum class Kind { end, number, name, symbol } kind = Kind::end;
  std::string text;
  std::int64_t value = 0;
  std::size_t column = 0;  // 1-based
};

class Parser {
 public:
  explicit Parser(const std::string& text) : m_text(text) {}

  Result<Expr> run() {
    if (m_text.size() > kMaxText) return fail(Code::bad_input, fmt::format("expression longer than {} characters", kMaxText));
    next();
    const int root = ternary(0);
    if (m_error.empty() && m_token.kind != Token::Kind::end) error(fmt::format("unexpected '{}'", m_token.text));
    if (!m_error.empty()) return fail(Code::bad_input, fmt::format("{} at column {} of \"{}\"", m_error, m_error_column, m_text));
    (void)root;
    m_out.text = m_text;
    return std::move(m_out);
  }

 private:
  void error(const std::string& message) { error_at(message, m_token.column); }
  void error_at(const std::string& message, std::size_t column) {
    if (!m_error.empty()) return;
    m_error = message;
    m_error_column = column;
  }

  void next() {
    while (m_at < m_text.size() && std::isspace(static_cast<unsigned char>(m_text[m_at]))) m_at++;
    m_token = {};
    m_token.column = m_at + 1;
    if (m_at == m_text.size()) return;
    const auto c = static_cast<unsigned char>(m_text[m_at]);
    const std::size_t start = m_at;
    if (std::isdigit(c)) {
      m_token.kind = Token::Kind::number;
      while (m_at < m_text.size() && std::isdigit(static_cast<unsigned char>(m_text[m_at]))) {
        if (__builtin_mul_overflow(m_token.value, std::int64_t{10}, &m_token.value) ||
            __builtin_add_overflow(m_token.value, std::int64_t{m_text[m_at] - '0'}, &m_token.value)) {
          error_at("number beyond 64 bits", start + 1);
          m_token.value = 0;
        }
        m_at++;
      }
      if (m_at < m_text.size() && (std::isalpha(static_cast<unsigned char>(m_text[m_at])) || m_text[m_at] == '_' || m_text[m_at] == '.'))
        error_at("only whole decimal numbers are allowed", start + 1);
    } else if (std::isalpha(c) || c == '_') {
      m_token.kind = Token::Kind::name;
      while (m_at < m_text.size() && (std::isalnum(static_cast<unsigned char>(m_text[m_at])) || m_text[m_at] == '_')) m_at++;
    } else {
      m_token.kind = Token::Kind::symbol;
      static const std::set<std::string> kDouble = {"<=", ">=", "==", "!=", "&&", "||"};
      m_at += kDouble.count(m_text.substr(m_at, 2)) ? 2 : 1;
    }
    m_token.text = m_text.substr(start, m_at - start);
  }

  bool is(const char* symbol) const { return m_token.kind == Token::Kind::symbol && m_token.text == symbol; }
  bool take(const char* symbol) {
    if (!is(symbol)) return false;
    next();
    return true;
  }
  void expect(const char* symbol) {
    if (!take(symbol))
      error(m_token.kind == Token::Kind::end ? fmt::format("'{}' missing", symbol)
                                             : fmt::format("'{}' expected before '{}'", symbol, m_token.text));
  }

  int add(Op op, int a = -1, int b = -1, int c = -1) {
    m_out.nodes.push_back({.op = op, .value = 0, .a = a, .b = b, .c = c, .name = {}});
    return static_cast<int>(m_out.nodes.size()) - 1;
  }

  int ternary(int depth) {
    if (depth > kMaxDepth) return error(fmt::format("nested deeper than {}", kMaxDepth)), -1;
    const int condition = binary(0, depth);
    if (!take("?")) return condition;
    const int yes = ternary(depth + 1);
    expect(":");
    const int no = ternary(depth + 1);
    return add(Op::select, condition, yes, no);
  }

  struct Level {
    std::vector<std::pair<const char*, Op>> ops;
    bool chains;
  };
  static const std::vector<Level>& levels() {
    static const std::vector<Level> kLevels = {
        {{{"||", Op::logical_or}}, true},          {{{"&&", Op::logical_and}}, true},
        {{{"==", Op::eq}, {"!=", Op::ne}}, false}, {{{"<=", Op::le}, {">=", Op::ge}, {"<", Op::lt}, {">", Op::gt}}, false},
        {{{"+", Op::add}, {"-", Op::sub}}, true},  {{{"*", Op::mul}, {"/", Op::div}, {"%", Op::mod}}, true},
    };
    return kLevels;
  }

  int binary(std::size_t level, int depth) {
    if (level == levels().size()) return unary(depth);
    int left = binary(level + 1, depth);
    for (int count = 0; m_error.empty(); count++) {
      const Level& l = levels()[level];
      auto op = std::find_if(l.ops.begin(), l.ops.end(), [&](const auto& o) { return is(o.first); });
      if (op == l.ops.end()) return left;
      // "a < b < c" would compare a truth value; whoever writes it means something else.
      if (count > 0 && !l.chains) return error("comparisons do not chain: join them with &&"), left;
      next();
      const int right = binary(level + 1, depth);
      left = add(op->second, left, right);
    }
    return left;
  }

  int unary(int depth) {
    if (depth > kMaxDepth) return error(fmt::format("nested deeper than {}", kMaxDepth)), -1;
    if (take("-")) return add_unary(Op::neg, depth);
    if (take("!")) return add_unary(Op::logical_not, depth);
    return primary(depth);
  }
  int add_unary(Op op, int depth) {
    const int a = unary(depth + 1);
    return add(op, a);
  }

  int primary(int depth) {
    if (!m_error.empty()) return -1;
    if (take("(")) {
      const int inside = ternary(depth + 1);
      expect(")");
      return inside;
    }
    const Token token = m_token;
    if (token.kind == Token::Kind::number) {
      next();
      const int node = add(Op::constant);
      m_out.nodes.back().value = token.value;
      return node;
    }
    if (token.kind == Token::Kind::name) {
      next();
      if (is("(")) return call(token, depth);
      const int node = add(Op::load);
      m_out.nodes.back().name = token.text;
      return node;
    }
    error(token.kind == Token::Kind::end ? "a value is missing" : fmt::format("unexpected '{}'", token.text));
    return -1;
  }

  int call(const Token& function, int depth) {
    static const std::map<std::string, Op> kFunctions = {
        {"min", Op::min}, {"max", Op::max}, {"ceil_div", Op::ceil_div}, {"align_up", Op::align_up}};
    const auto it = kFunctions.find(function.text);
    if (it == kFunctions.end()) {
      error_at(fmt::format("unknown function '{}' (there are min, max, ceil_div, align_up)", function.text), function.column);
      return -1;
    }
    expect("(");
    int node = ternary(depth + 1), count = 1;
    const bool folds = it->second == Op::min || it->second == Op::max;
    while (m_error.empty() && take(",")) {
      if (++count > 2 && !folds) break;
      const int right = ternary(depth + 1);
      node = add(it->second, node, right);
    }
    if (m_error.empty() && (count < 2 || (count > 2 && !folds)))
      error_at(fmt::format("{} takes {} arguments", function.text, folds ? "at least two" : "two"), function.column);
    expect(")");
    return node;
  }

  const std::string& m_text;
  std::size_t m_at = 0;
  Token m_token;
  Expr m_out;
  std::string m_error;
  std::size_t m_error_column = 0;
};

// The evaluator keeps the first error and returns 0 from then on.
struct Evaluator {
  const Expr& expr;
  const Names& names;
  std::string error;

  std::int64_t bad(const std::string& message) {
    if (error.empty()) error = message;
    return 0;
  }

  std::int64_t at(int index) {
    if (!error.empty()) return 0;
    const Expr::Node& n = expr.nodes[static_cast<std::size_t>(index)];
    switch (n.op) {
      case Op::constant:
        return n.value;
      case Op::load: {
        const auto it = names.find(n.name);
        return it == names.end() ? bad(fmt::format("unknown name '{}'", n.name)) : it->second;
      }
      case Op::neg: {
        std::int64_t r = 0;
        return __builtin_sub_overflow(std::int64_t{0}, at(n.a), &r) ? bad("overflow of 64 bits in -") : r;
      }
      case Op::logical_not:
        return !at(n.a);
      case Op::logical_and:
        return at(n.a) && at(n.b);
      case Op::logical_or:
        return at(n.a) || at(n.b);
      case Op::select:
        return at(n.a) ? at(n.b) : at(n.c);
      default:
        return arithmetic(n.op, at(n.a), at(n.b));
    }
  }

  std::int64_t arithmetic(Op op, std::int64_t a, std::int64_t b) {
    if (!error.empty()) return 0;
    if (const auto value = apply(op, a, b)) return *value;
    switch (op) {  // why there is none
      case Op::add:
        return bad("overflow of 64 bits in +");
      case Op::sub:
        return bad("overflow of 64 bits in -");
      case Op::mul:
        return bad("overflow of 64 bits in *");
      default:
        break;
    }
    const char* symbol = op == Op::div ? "/" : op == Op::mod ? "%" : op == Op::ceil_div ? "ceil_div" : "align_up";
    if (b <= 0) return bad(fmt::format("right side of {} is {}, must be positive", symbol, b));
    if (a < 0) return bad(fmt::format("left side of {} is {}, must not be negative", symbol, a));
    return bad("overflow of 64 bits in align_up");
  }
};

}  // namespace

Result<Expr> parse_expr(const std::string& text) { return Parser(text).run(); }

Result<std::int64_t> evaluate(const Expr& expr, const Names& names) {
  if (expr.empty()) return fail(Code::internal, "an empty expression has no value");
  Evaluator e{.expr = expr, .names = names, .error = {}};
  const std::int64_t value = e.at(static_cast<int>(expr.nodes.size()) - 1);
  if (!e.error.empty()) return fail(Code::bad_input, fmt::format("{} in \"{}\"", e.error, expr.text));
  return value;
}

std::vector<std::string> names_used(const Expr& expr) {
  std::set<std::string> names;
  for (const Expr::Node& n : expr.nodes)
    if (n.op == Op::load) names.insert(n.name);
  return {names.begin(), names.end()};
}

}  // namespace forge
