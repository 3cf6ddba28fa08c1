// SPDX-License-Identifier: Apache-2.0
// What `forge serve` answers: pages, and the JSON that they follow. Made from the journals, the vault's records and the ledger of uses;
// of sealed kernels only figures are told, never a source.
//   /  /run/<id or last>  /lineages  /knowledge      pages
//   /api/runs  /api/run/<id>  /api/lineages  /api/knowledge      the same as JSON
#pragma once
#include <memory>

#include "report/web.h"
#include "store/store.h"
#include "util/fs.h"

namespace forge {

class Site {
 public:
  static Result<Site> open(const Paths&);
  Site(Site&&) noexcept;
  Site& operator=(Site&&) noexcept;
  ~Site();
  WebReply answer(const WebRequest&);

 private:
  struct Impl;
  explicit Site(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> m_impl;
};

}  // namespace forge
