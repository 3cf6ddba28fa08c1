// SPDX-License-Identifier: Apache-2.0
// A shared library that is opened at run time and never linked, so that the program starts without it. It stays open.
#pragma once
#include <dlfcn.h>

namespace forge {

class Library {
 public:
  explicit Library(const char* name) : m_handle(dlopen(name, RTLD_NOW | RTLD_LOCAL)) {}
  bool found() const { return m_handle != nullptr; }
  bool whole() const { return m_whole; }  // found, and every symbol that was asked for is there
  // Null when the symbol is missing.
  template <class Function>
  void find(Function*& to, const char* symbol) {
    to = m_handle ? reinterpret_cast<Function*>(dlsym(m_handle, symbol)) : nullptr;
    m_whole = m_whole && to;
  }

 private:
  void* m_handle;
  bool m_whole = m_handle != nullptr;
};

}  // namespace forge
