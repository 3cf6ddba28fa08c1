// SPDX-License-Identifier: Apache-2.0
// Packing never leaves this process, so it is plain: the members one after the other as they are declared, numbers as their bytes, a
// length of 32 bits before what has one.
#include "knowledge/entry_list.h"

#include <cstring>
#include <type_traits>

namespace forge {

namespace {

// All members of a struct, by a binding that does not compile once one more is declared.
template <class Struct, class Take>
void with_members(Struct& s, const Take& take) {
  using T = std::remove_const_t<Struct>;
  if constexpr (std::is_same_v<T, Entry>) {
    auto& [id, title, targets, mechanism, applies, symptoms, limitations, origin, advice, signature, probe_operator, probe_blueprint,
           choices, baseline, changed, probe_requires, min_effect, retired, folder, evidence] = s;
    take(id, title, targets, mechanism, applies, symptoms, limitations, origin, advice, signature, probe_operator, probe_blueprint, choices,
         baseline, changed, probe_requires, min_effect, retired, folder, evidence);
  } else if constexpr (std::is_same_v<T, Advice>) {
    auto& [decision, value, when, because] = s;
    take(decision, value, when, because);
  } else if constexpr (std::is_same_v<T, Certification>) {
    auto& [device_class, device, compiler, date, commit, applicable, comparison, effect, floor, outcome, note] = s;
    take(device_class, device, compiler, date, commit, applicable, comparison, effect, floor, outcome, note);
  } else if constexpr (std::is_same_v<T, Interval>) {
    auto& [low, mid, high] = s;
    take(low, mid, high);
  } else if constexpr (std::is_same_v<T, Signature>) {
    auto& [all] = s;
    take(all);
  } else if constexpr (std::is_same_v<T, SignatureTerm>) {
    auto& [mnemonic, operand, scope, min, max] = s;
    take(mnemonic, operand, scope, min, max);
  } else {
    auto& [nodes, text] = s;  // Expr
    take(text);
  }
}

template <class T>
constexpr bool is_plain = std::is_arithmetic_v<T> || std::is_enum_v<T>;

class Packer {
 public:
  template <class T>
  void put(const T& value) {
    if constexpr (is_plain<T>)
      m_out.append(reinterpret_cast<const char*>(&value), sizeof value);
    else
      with_members(value, [&](const auto&... member) { (put(member), ...); });
  }
  void put(const std::string& text) { put_size(text.size()), m_out += text; }
  template <class T>
  void put(const std::vector<T>& list) {
    put_size(list.size());
    for (const T& one : list) put(one);
  }
  void put(const std::map<std::string, std::string>& map) {
    put_size(map.size());
    for (const auto& [key, value] : map) put(key), put(value);
  }
  void put(const std::optional<std::int64_t>& value) { put(value.has_value()), put(value.value_or(0)); }
  std::string m_out;

 private:
  void put_size(std::size_t size) { put(static_cast<std::uint32_t>(size)); }
};

class Unpacker {
 public:
  explicit Unpacker(const std::string& from) : m_at(from.data()) {}
  template <class T>
  void get(T& value) {
    if constexpr (is_plain<T>)
      std::memcpy(&value, m_at, sizeof value), m_at += sizeof value;
    else
      with_members(value, [&](auto&... member) { (get(member), ...); });
  }
  void get(std::string& text) {
    const std::size_t size = get_size();
    text.assign(m_at, size), m_at += size;
  }
  template <class T>
  void get(std::vector<T>& list) {
    list.resize(get_size());
    for (T& one : list) get(one);
  }
  void get(std::map<std::string, std::string>& map) {
    map.clear();
    for (std::size_t left = get_size(); left > 0; --left) {
      std::string key;
      get(key), get(map[key]);
    }
  }
  void get(std::optional<std::int64_t>& value) {
    bool there = false;
    std::int64_t number = 0;
    get(there), get(number);
    value = there ? std::optional(number) : std::nullopt;
  }

 private:
  std::size_t get_size() {
    std::uint32_t size = 0;
    get(size);
    return size;
  }
  const char* m_at;
};

}  // namespace

EntryList::EntryList(const std::vector<Entry>& entries) {
  for (const Entry& e : entries) add(e);
}

void EntryList::add(const Entry& entry) {
  if (!m_packed)
    m_packed = std::make_shared<std::vector<std::string>>();
  else if (m_packed.use_count() > 1)
    m_packed = std::make_shared<std::vector<std::string>>(*m_packed);
  Packer packer;
  packer.put(entry);
  m_numbers.push_back(static_cast<std::uint32_t>(m_packed->size()));
  m_packed->emplace_back(packer.m_out.data(), packer.m_out.size());  // a copy has no room to spare
}

EntryList EntryList::select(std::vector<std::uint32_t> numbers) const {
  EntryList out;
  for (std::uint32_t& n : numbers) n = m_numbers[n];
  out.m_packed = m_packed, out.m_numbers = std::move(numbers);
  return out;
}

void EntryList::get(std::size_t i, Entry& into) const {
  Unpacker((*m_packed)[m_numbers[i]]).get(into);
  // Only its text was packed, and unlike the other conditions it is evaluated. It was parsed before, so it parses.
  into.probe_requires = into.probe_requires.text.empty() ? Expr{} : *parse_expr(into.probe_requires.text);
}

Entry EntryList::operator[](std::size_t i) const {
  Entry entry;
  get(i, entry);
  return entry;
}

}  // namespace forge
