// SPDX-License-Identifier: Apache-2.0
#include "knowledge/conditions.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "core/expr_rules.h"

namespace forge {

namespace {

using Op = Expr::Op;

template <class T>
void put_raw(std::string& into, T value) {
  into.append(reinterpret_cast<const char*>(&value), sizeof value);
}
template <class T>
T take_raw(const std::uint8_t*& at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  at += sizeof value;
  return value;
}

int operands(Op op) {
  switch (op) {
    case Op::constant:
    case Op::load:
      return 0;
    case Op::neg:
    case Op::logical_not:
      return 1;
    case Op::select:
      return 3;
    default:
      return 2;
  }
}

// Past one operand that is not evaluated.
void skip_operand(const std::uint8_t*& at) {
  for (int left = 1; left > 0; --left) {
    const auto op = static_cast<Op>(*at++);
    at += op == Op::constant ? sizeof(std::int64_t) : op == Op::load ? sizeof(std::uint32_t) : 0;
    left += operands(op);
  }
}

}  // namespace

void Conditions::encode(const Expr& expr, int node, std::string& into) {
  const Expr::Node& n = expr.nodes[static_cast<std::size_t>(node)];
  into += static_cast<char>(n.op);
  if (n.op == Op::constant) put_raw(into, n.value);
  if (n.op == Op::load) {
    const auto [known, added] = m_name_ids.emplace(n.name, static_cast<std::uint32_t>(m_names.size()));
    if (added) m_names.push_back(n.name);
    put_raw(into, known->second);
  }
  const int used = operands(n.op);
  if (used > 0) encode(expr, n.a, into);
  if (used > 1) encode(expr, n.b, into);
  if (used > 2) encode(expr, n.c, into);
}

std::uint32_t Conditions::add(const Expr& expr) {
  if (expr.empty()) return kAlways;
  std::string code;
  encode(expr, static_cast<int>(expr.nodes.size()) - 1, code);
  const auto next = static_cast<std::uint32_t>(m_starts.size());
  const auto [known, added] = m_by_hash.emplace(std::hash<std::string>()(code), next);
  if (!added) {
    const std::size_t start = m_starts[known->second];
    if (start + code.size() <= m_code.size() && std::memcmp(m_code.data() + start, code.data(), code.size()) == 0) return known->second;
  }
  m_starts.push_back(static_cast<std::uint32_t>(m_code.size()));
  m_code.insert(m_code.end(), code.begin(), code.end());
  return next;
}

void Conditions::finish() {
  m_by_hash = {}, m_name_ids = {};
  m_code.shrink_to_fit(), m_starts.shrink_to_fit();
}

Conditions::Asked::Asked(const Conditions& all, const Names& names)
    : m_all(all), m_values(all.m_names.size()), m_known(all.m_names.size()), m_answers(all.m_starts.size(), -1) {
  for (std::size_t i = 0; i < all.m_names.size(); ++i)
    if (const auto found = names.find(all.m_names[i]); found != names.end()) m_values[i] = found->second, m_known[i] = true;
  m_answers[kAlways] = 1;
}

bool Conditions::Asked::holds(std::uint32_t condition) {
  std::int8_t& answer = m_answers[condition];
  if (answer < 0) {
    const std::uint8_t* at = m_all.m_code.data() + m_all.m_starts[condition];
    m_error = false;
    const std::int64_t v = value(at);
    answer = !m_error && v != 0;
  }
  return answer != 0;
}

// After an error the value means nothing, and `at` may stand anywhere within the condition.
std::int64_t Conditions::Asked::value(const std::uint8_t*& at) {
  if (m_error) return 0;
  const auto bad = [&] { return m_error = true, std::int64_t{0}; };
  const auto op = static_cast<Op>(*at++);
  std::int64_t r = 0;
  switch (op) {
    case Op::constant:
      return take_raw<std::int64_t>(at);
    case Op::load: {
      const auto name = take_raw<std::uint32_t>(at);
      return m_known[name] ? m_values[name] : bad();
    }
    case Op::neg:
      return __builtin_sub_overflow(std::int64_t{0}, value(at), &r) ? bad() : r;
    case Op::logical_not:
      return !value(at);
    case Op::logical_and:
    case Op::logical_or: {
      const bool left = value(at) != 0;
      if (m_error) return 0;
      if (left == (op == Op::logical_or)) return skip_operand(at), left;
      return value(at) != 0;
    }
    case Op::select: {
      const bool yes = value(at) != 0;
      if (m_error) return 0;
      if (!yes) return skip_operand(at), value(at);
      const std::int64_t chosen = value(at);
      if (!m_error) skip_operand(at);
      return chosen;
    }
    default:
      break;
  }
  const std::int64_t a = value(at), b = value(at);
  if (m_error) return 0;
  const auto result = apply(op, a, b);
  return result ? *result : bad();
}

}  // namespace forge
