// SPDX-License-Identifier: Apache-2.0
// The oracle plugin (include/forge/oracle.h) behind a safe handle, its work spread over the judge's cores.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/operator.h"
#include "forge/oracle.h"
#include "gate/thread_team.h"
#include "util/fs.h"

namespace forge {

// A tensor with the shape it has for one workload. data is null for outputs: the oracle writes doubles elsewhere.
struct TensorView {
  TensorSpec spec;
  std::vector<std::int64_t> shape;
  void* data = nullptr;
};

// What the oracle said of outputs [begin, end) along the leading axis. Pointers to the first element of the range.
struct OracleRange {
  std::int64_t begin = 0, end = 0;
  std::vector<const double*> expected, scale;      // per output; scale null where not asked for
  std::vector<std::int64_t> first_element, count;  // per output: of the range in the whole tensor
};

class OraclePlugin {
 public:
  static Result<OraclePlugin> load(const fs::path&, const std::string& operator_name);  // version and name are checked
  OraclePlugin(OraclePlugin&&) noexcept;
  OraclePlugin& operator=(OraclePlugin&&) noexcept;
  ~OraclePlugin();

  // Computes every element of every output and hands it to `take` in ranges, several threads at a time.
  Status expected(const std::vector<TensorView>& inputs, const std::vector<TensorView>& outputs, const std::vector<bool>& wants_scale,
                  ThreadTeam&, const std::function<void(const OracleRange&)>& take) const;
  Result<int> adversarial_variants(const std::vector<TensorView>& inputs) const;
  Status adversarial(const std::vector<TensorView>& inputs, std::uint64_t seed, int variant) const;

 private:
  OraclePlugin() = default;
  void* m_handle = nullptr;
  const forge_oracle_v1* m_oracle = nullptr;
  std::string m_name;
};

}  // namespace forge
