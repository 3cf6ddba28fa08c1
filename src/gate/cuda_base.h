// SPDX-License-Identifier: Apache-2.0
// Base pairs on the card: inputs drawn by the host's generators, expected values and bounds from the CPU oracle, or from the
// operator's oracle.cu where the CPU would take more than seconds.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "gate/base_pair.h"
#include "gate/cuda_device.h"

namespace forge {

struct DeviceBase {
  std::vector<DeviceMemory> inputs;  // definition order; empty for scalars
  struct Output {
    DeviceMemory expected, bound;  // as BaseOutput
  };
  std::vector<Output> outputs;
  std::vector<double> scalars;
};

// operators/<op>/oracle.cu as the build compiled it (include/forge/oracle_cuda.h).
class CudaOracle {
 public:
  // Code::not_found when the operator has none.
  static Result<CudaOracle> load(const OperatorFolder&, const TargetSpec&);
  // Fills base.outputs from base.inputs.
  Status expected(JudgeContext&, const JudgeDevice&, const AxisValues&, DeviceBase& base) const;

 private:
  explicit CudaOracle(CudaModule module) : m_module(std::move(module)) {}
  CudaModule m_module;
};

// Makes bases; decides which oracle answers.
class DeviceBaseMaker {
 public:
  DeviceBaseMaker(std::shared_ptr<JudgeContext>, std::shared_ptr<JudgeDevice>, TargetSpec);
  Result<std::shared_ptr<DeviceBase>> make(const AxisValues&, const GeneratorRule&, std::uint64_t seed, int variant);
  // Both oracles on the same inputs; an error says where they differ. Public for the card's own test.
  Status hold_against_cpu(const AxisValues&, const GeneratorRule&);
  double cpu_seconds(const AxisValues&) const;  // of the oracle, estimated
  bool uses_card(const AxisValues&) const;      // for this shape

 private:
  Status ready_oracle();
  std::shared_ptr<JudgeContext> m_context;
  std::shared_ptr<JudgeDevice> m_device;
  TargetSpec m_target;
  std::optional<CudaOracle> m_oracle;
  bool m_looked = false, m_held = false;
};

}  // namespace forge
