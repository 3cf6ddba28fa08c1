// SPDX-License-Identifier: Apache-2.0
// Entries kept packed: an entry is one string, about as long as its texts, and is unpacked when somebody looks at it. As a struct it
// takes twice as much. Copies and selections share what is packed. Of an unpacked entry, `applies` and each `when` have their text only.
#pragma once
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "core/entry.h"

namespace forge {

class EntryList {
 public:
  EntryList() = default;
  explicit EntryList(const std::vector<Entry>&);
  void add(const Entry&);  // seen by no copy or selection
  EntryList select(std::vector<std::uint32_t> numbers) const;

  std::size_t size() const { return m_numbers.size(); }
  bool empty() const { return m_numbers.empty(); }
  Entry operator[](std::size_t) const;
  void get(std::size_t, Entry& into) const;  // the same, into what `into` has allocated already

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Entry;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = Entry;
    Iterator(const EntryList& list, std::size_t at) : m_list(&list), m_at(at) {}
    Entry operator*() const { return (*m_list)[m_at]; }
    Iterator& operator++() { return ++m_at, *this; }
    Iterator operator++(int) { return {*m_list, m_at++}; }
    bool operator==(const Iterator&) const = default;

   private:
    const EntryList* m_list;
    std::size_t m_at;
  };
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, size()}; }

 private:
  std::shared_ptr<std::vector<std::string>> m_packed;
  std::vector<std::uint32_t> m_numbers;
};

}  // namespace forge
