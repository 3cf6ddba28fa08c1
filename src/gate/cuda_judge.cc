// SPDX-License-Identifier: Apache-2.0
#include "gate/cuda_judge.h"

#include <fmt/format.h>

#include <algorithm>

#include "gate/cuda_stage.h"
#include "gate/operator_judge.h"

namespace forge {
namespace {

constexpr double k_share = 0.6;  // of the memory that is free on the card, for bases, buffers and batches

Status check_ranks(const Definition& definition) {
  for (const auto* tensors : {&definition.inputs, &definition.outputs})
    for (const TensorSpec& spec : *tensors)
      if (spec.shape.size() > std::size_t(rules::kMaxOuter))
        return fail(Code::unsupported,
                    fmt::format("'{}' has {} axes, the judge on a card takes {}", spec.name, spec.shape.size(), int(rules::kMaxOuter)));
  return {};
}

}  // namespace

Result<std::unique_ptr<Judge>> make_cuda_judge(const OperatorFolder& op, const Machine& machine, const JudgeOptions& options) {
  FORGE_TRY(check_task(op));
  FORGE_TRY(check_ranks(op.definition));
  FORGE_TRY_ASSIGN(OraclePlugin oracle, OraclePlugin::load(op.oracle, op.definition.name));
  std::shared_ptr<JudgeContext> context(new JudgeContext{op, std::move(oracle), ThreadTeam(options.cores), os_entropy()});
  FORGE_TRY_ASSIGN(const std::shared_ptr<JudgeDevice> device, JudgeDevice::make(machine));
  const auto memory = std::size_t(k_share * double(device->context().free_bytes()));
  const std::size_t batch_bytes = std::min(options.batch_bytes, memory / 2);
  const auto bases = std::make_shared<DeviceBaseMaker>(context, device, machine.target);

  OperatorJudge<DeviceBase>::Place place;
  place.make_base = [bases](const AxisValues& axes, const GeneratorRule& rule, std::uint64_t seed, int variant) {
    return bases->make(axes, rule, seed, variant);
  };
  place.make_stage = [context, device](const AxisValues& axes, const std::string& label, auto pairs,
                                       auto another) -> Result<std::unique_ptr<Stage>> {
    FORGE_TRY_ASSIGN(auto slots, CudaSlots::make(context, device, axes, label, std::move(pairs), std::move(another), 1));
    return as_stage(std::move(slots));
  };
  place.make_batch = [context, device, batch_bytes](const AxisValues& axes, const std::string& label, auto pairs, auto another,
                                                    int wanted) -> Result<std::unique_ptr<Batch>> {
    const std::size_t fit = batch_bytes / std::max<std::size_t>(1, CudaSlots::slot_bytes(context->op, axes));
    const int count = int(std::min<std::size_t>(fit, std::size_t(std::max(1, wanted))));
    if (count < 2)
      return fail(Code::unsupported, fmt::format("{}: {} MiB hold no batch of calls with a content each", label, batch_bytes >> 20));
    FORGE_TRY_ASSIGN(auto slots, CudaSlots::make(context, device, axes, label, std::move(pairs), std::move(another), count));
    return as_batch(std::move(slots));
  };
  auto judge = std::make_unique<OperatorJudge<DeviceBase>>(context, memory - batch_bytes, std::move(place));
  FORGE_TRY(judge->count_variants());
  return judge;
}

}  // namespace forge
