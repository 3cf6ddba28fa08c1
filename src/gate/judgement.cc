// SPDX-License-Identifier: Apache-2.0
#include "gate/judgement.h"

#include <fmt/format.h>

#include <cstdlib>

namespace forge {
namespace {

std::string place_of(const TensorSpec& spec, const AxisValues& axes, std::int64_t index) {
  std::string place;
  for (std::size_t d = spec.shape.size(); d-- > 0;) {
    const std::int64_t extent = axes.at(spec.shape[d]);
    place = fmt::format("{}{}{}", index % extent, place.empty() ? "" : ", ", place);
    index /= extent;
  }
  return fmt::format("{}[{}]", spec.name, place);
}

std::size_t position(const std::vector<TensorSpec>& specs, const std::string& name) {
  for (std::size_t i = 0; i < specs.size(); ++i)
    if (specs[i].name == name) return i;
  std::abort();  // the task's parser refuses an `indexes` rule that names another tensor
}

}  // namespace

IndexTensors index_tensors(const Definition& definition, const JudgeRule& rule) {
  return {position(definition.inputs, rule.of), position(definition.outputs, rule.values)};
}

std::string describe_element(const TensorSpec& spec, const AxisValues& axes, const JudgeRule& rule, std::int64_t index, double got,
                             double expected, float bound) {
  const std::string allowed = rule.kind == JudgeKind::exact
                                  ? std::string("exactly")
                                  : fmt::format("+- {:.3g}", allowed_error(rule, static_cast<float>(expected), bound));
  return fmt::format("{}: {:.9g}, expected {:.9g} {}", place_of(spec, axes, index), got, expected, allowed);
}

std::string describe_index(const TensorSpec& spec, const AxisValues& axes, const JudgeRule& rule, std::int64_t index, double got,
                           double value) {
  return fmt::format("{}: {:.0f} does not name an element of {} that equals {:.9g}, or names it a second time", place_of(spec, axes, index),
                     got, rule.of, value);
}

CheckResult sum_up(const Definition& definition, const AxisValues& axes, const std::string& label, const std::vector<Findings>& found,
                   const Describe& describe) {
  const auto& outputs = definition.outputs;
  CheckResult result;
  Findings total;
  std::size_t worst_output = 0, bad_output = outputs.size();
  std::int64_t wanted = 0;
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    wanted += element_count(outputs[o], axes);
    total.merge(found[o]);
    if (found[o].worst > found[worst_output].worst) worst_output = o;
    if (found[o].bad() > 0 && bad_output == outputs.size()) bad_output = o;
  }
  result.elements = total.compared;
  result.worst = total.worst;
  if (total.compared != wanted || outputs.empty()) {
    result.reason = Reason::wrong_result;
    result.detail = fmt::format("only {} of {} elements were compared (workload {})", total.compared, wanted, label);
    return result;
  }
  if (total.bad() == 0) {
    result.detail = fmt::format("{}: largest error {:.3g} of its bound", outputs[worst_output].name, result.worst);
    return result;
  }
  const Findings& f = found[bad_output];
  result.reason = total.not_written ? Reason::not_written : total.non_finite ? Reason::non_finite : Reason::wrong_result;
  std::string counts;
  if (total.not_written)
    counts += fmt::format("; {} elements hold the poison that was there before the call (not written, or read before they were)",
                          total.not_written);
  if (total.non_finite) counts += fmt::format("; {} NaN or Inf where the oracle has none, or the reverse", total.non_finite);
  if (total.wrong) counts += fmt::format("; {} outside the bound", total.wrong);
  if (f.worst_index >= 0 && f.worst_index != f.first_bad) counts += "; worst " + describe(bad_output, f.worst_index);
  result.detail = fmt::format("{}{}; of {} elements (workload {})", describe(bad_output, f.first_bad), counts, wanted, label);
  return result;
}

std::string stale_text(std::size_t calls_ago, const std::string& label) {
  return fmt::format("the outputs answer the content of {} call(s) ago, not this call's (workload {})", calls_ago, label);
}

}  // namespace forge
