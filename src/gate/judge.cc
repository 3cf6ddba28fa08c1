// SPDX-License-Identifier: Apache-2.0
#include "gate/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gate/numeric.h"
#include "gate/operator_judge.h"
#include "gate/stage.h"

namespace forge {

Error task_error(const OperatorFolder& op, const std::string& field, const std::string& message, const std::string& fix) {
  Error error{.code = Code::bad_input, .message = message};
  error.file = (op.folder / "task.toml").string();
  error.field = field;
  error.fix = fix;
  return error;
}

Status check_task(const OperatorFolder& op) {
  if (const auto native = native_cpu_target(); !native) return tl::unexpected(native.error());  // the judge itself uses AVX2
  for (const auto* tensors : {&op.definition.inputs, &op.definition.outputs})
    for (const TensorSpec& spec : *tensors)
      if (!judge_supports(spec.dtype)) {
        Error error{.code = Code::unsupported, .message = fmt::format("the judge cannot handle elements of type {} yet", name(spec.dtype))};
        error.file = (op.folder / "definition.json").string();
        error.field = spec.name;
        error.fix = "use float32, float16, bfloat16 or an integer type";
        return fail(error);
      }
  if (op.definition.outputs.empty())
    return fail(task_error(op, "outputs", "the operator has no output to judge", "give the definition an output"));
  for (const TensorSpec& spec : op.definition.outputs) {
    if (spec.scalar) return fail(task_error(op, spec.name, "an output cannot be a scalar", "give it a shape"));
    int rules = 0;
    for (const JudgeRule& rule : op.task.judges) {
      if (rule.output != spec.name) continue;
      ++rules;
      if (!(rule.tolerance >= 0 && rule.absolute >= 0 && rule.relative >= 0) ||
          !std::isfinite(rule.tolerance + rule.absolute + rule.relative))
        return fail(task_error(op, "judge." + rule.output, "tolerances must be finite and not negative",
                               "correct tolerance, absolute and relative"));
      if (rule.kind != JudgeKind::exact && rule.kind != JudgeKind::indexes && !is_float(spec.dtype))
        return fail(task_error(op, "judge." + rule.output, "an integer output needs the judge `exact`", "set kind = \"exact\""));
    }
    if (rules != 1)
      return fail(
          task_error(op, "judge", fmt::format("output '{}' has {} judges", spec.name, rules), "write exactly one judge for every output"));
  }
  return {};
}

Result<std::unique_ptr<Judge>> Judge::make(const OperatorFolder& op, const JudgeOptions& options) {
  FORGE_TRY(check_task(op));
  FORGE_TRY_ASSIGN(OraclePlugin oracle, OraclePlugin::load(op.oracle, op.definition.name));
  std::shared_ptr<JudgeContext> context(new JudgeContext{op, std::move(oracle), ThreadTeam(options.cores), os_entropy()});
  OperatorJudge<BasePair>::Place place;
  place.make_base = [context](const AxisValues& axes, const GeneratorRule& rule, std::uint64_t seed, int variant) {
    return make_base(*context, axes, rule, seed, variant);
  };
  place.make_stage = [context](const AxisValues& axes, const std::string& label, auto bases,
                               auto another) -> Result<std::unique_ptr<Stage>> {
    return OperandStage::make(context, axes, label, std::move(bases), std::move(another));
  };
  auto judge = std::make_unique<OperatorJudge<BasePair>>(context, options.memory_bytes, std::move(place));
  FORGE_TRY(judge->count_variants());
  return judge;
}

}  // namespace forge
