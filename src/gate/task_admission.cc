// SPDX-License-Identifier: Apache-2.0
// The task admission battery: a task is fit for use only if its judges reject every one of these wrong kernels, and accept the
// oracle's own answer. The kernels are played inside the judge, on its own buffers: all of them at the largest shape that keeps this
// quick; at a small one all on the other normal generators, zeros and constants on every generator, and each symmetry by itself.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>

#include "device/cpu.h"
#include "gate/gate.h"
#include "gate/judge.h"
#include "gate/numeric.h"
#include "gate/stage.h"
#include "util/progress.h"
#include "util/random.h"

namespace forge {
namespace {

constexpr std::int64_t k_most_elements = 2'000'000;
constexpr int k_places = 100;
constexpr std::int64_t k_small = 5;    // a hidden axis at the small shape, where its range allows that
constexpr double k_small_flops = 2e9;  // of the oracle, for one symmetry on all generators; above it: the timed one only
constexpr int k_symmetry_plays = 3;    // on the timed generator: one drawn action may be the identity

// What a type one step lower keeps of the mantissa, by the type that is asked for. 0: no such attack.
std::vector<int> lower_precisions(DType type) {
  if (type == DType::f32) return {10, 7};  // tf32, bfloat16
  if (type == DType::f16) return {7};
  if (type == DType::bf16) return {5};
  return {};
}

class Battery {
 public:
  // `suffix` goes behind the name of every attack.
  Battery(OperandStage& stage, std::vector<AdmissionLine>& lines, std::string suffix = "")
      : m_stage(stage), m_definition(stage.context().op.definition), m_suffix(std::move(suffix)), m_lines(lines) {}

  Status attack() {
    for (std::size_t o = 0; o < m_definition.outputs.size(); ++o) FORGE_TRY(attack_output(o));
    return attack_call();
  }
  // The oracle's answer must pass.
  Status control(const std::string& what) {
    FORGE_TRY(start());
    record(what, m_stage.check());
    m_lines.back().must_reject = false;
    return {};
  }
  Status attack_with_constants() {
    FORGE_TRY(play("zeros in every output", [&] {
      for (std::size_t o = 0; o < m_definition.outputs.size(); ++o) set_all(o, 0);
    }));
    return play("its mean everywhere in every output", [&] {
      for (std::size_t o = 0; o < m_definition.outputs.size(); ++o) set_all(o, mean(o));
    });
  }
  // The oracle is asked about the content that the symmetries made, and its answer is played.
  Result<CheckResult> play_moved() {
    FORGE_TRY(start());
    FORGE_TRY(play_oracle([](DType, std::byte*) {}));
    return m_stage.check();
  }

 private:
  // ---- the right answer ----

  // New content, with the oracle's answer rounded once in every output.
  Status start() {
    FORGE_TRY(go_on());
    FORGE_TRY(m_stage.refresh());
    m_expected.clear();
    m_allowed.clear();
    for (std::size_t o = 0; o < m_definition.outputs.size(); ++o) {
      m_expected.push_back(m_stage.expected_now(o));
      m_allowed.push_back(m_stage.allowed_now(o));
      m_poison.resize(m_definition.outputs.size());
      m_poison[o].assign(m_stage.output(o).begin(), m_stage.output(o).end());
      for (std::size_t i = 0; i < m_expected[o].size(); ++i) put(o, i, m_expected[o][i]);
    }
    return {};
  }
  Status go_on() const {
    if (!stop_requested()) return {};
    return fail(Code::interrupted, "stopped between two checks of " + m_definition.name, "the battery keeps nothing: run it again");
  }
  void put(std::size_t o, std::size_t i, double value) {
    const DType type = m_definition.outputs[o].dtype;
    encode(type, value, m_stage.output(o).data() + i * bytes_of(type));
  }
  double get(std::size_t o, std::size_t i) const {
    const DType type = m_definition.outputs[o].dtype;
    return decode(type, m_stage.output(o).data() + i * bytes_of(type));
  }

  void record(const std::string& attack, const CheckResult& result) {
    const bool rejected = result.reason != Reason::accepted;
    m_lines.push_back({attack + m_suffix, rejected, rejected ? fmt::format("{}: {}", name(result.reason), result.detail) : result.detail});
  }
  Status play(const std::string& attack, const std::function<void()>& spoil) {
    FORGE_TRY(start());
    spoil();
    record(attack, m_stage.check());
    return {};
  }
  // Some answers that are wrong for most operators are right for this one (a conversion is a copy of its input): where every bit is
  // what the oracle's answer has, nothing is left to reject. Only for attacks that take the inputs' values: that zeros or an
  // earlier answer are right is a fault of the content.
  Status play_unless_right(const std::string& attack, const std::function<Status()>& answer) {
    FORGE_TRY(start());
    std::vector<std::vector<std::byte>> right;
    for (std::size_t o = 0; o < m_definition.outputs.size(); ++o) right.emplace_back(m_stage.output(o).begin(), m_stage.output(o).end());
    FORGE_TRY(answer());
    bool same = true;
    for (std::size_t o = 0; o < right.size(); ++o) same = same && std::ranges::equal(right[o], m_stage.output(o));
    record(attack, m_stage.check());
    if (!same) return {};
    m_lines.back().must_reject = false;
    m_lines.back().reason =
        "no attack here: bit for bit the oracle's answer" + (m_lines.back().rejected ? "; " + m_lines.back().reason : "");
    return {};
  }

  // ---- one output wrong, the others right ----

  Status attack_output(std::size_t o) {
    const TensorSpec& spec = m_definition.outputs[o];
    const std::size_t count = static_cast<std::size_t>(element_count(spec, m_stage.axes()));
    const std::size_t rows = spec.shape.empty() ? 1 : static_cast<std::size_t>(m_stage.axes().at(spec.shape[0])), row = count / rows;
    const auto say = [&](const std::string& what) { return fmt::format("{}: {}", spec.name, what); };
    const auto poison_from = [&](std::size_t first) {
      const std::size_t at = first * bytes_of(spec.dtype);
      std::memcpy(m_stage.output(o).data() + at, m_poison[o].data() + at, m_poison[o].size() - at);
    };

    FORGE_TRY(play(say("nothing written"), [&] { poison_from(0); }));
    FORGE_TRY(play(say("zeros"), [&] { set_all(o, 0); }));
    FORGE_TRY(play(say("its mean everywhere"), [&] { set_all(o, mean(o)); }));
    for (std::size_t i = 0; i < m_definition.inputs.size(); ++i) {
      const TensorSpec& input = m_definition.inputs[i];
      if (input.scalar || element_count(input, m_stage.axes()) != static_cast<std::int64_t>(count)) continue;
      FORGE_TRY(play_unless_right(say(fmt::format("a copy of {}", input.name)), [&]() -> Status {
        for (std::size_t e = 0; e < count; ++e) put(o, e, decode(input.dtype, m_stage.input(i).data() + e * bytes_of(input.dtype)));
        return {};
      }));
    }
    FORGE_TRY(play(say("half written"), [&] { poison_from(count / 2); }));
    FORGE_TRY(play(say("the last row missing"), [&] { poison_from(count - row); }));
    if (rows > 1) {
      FORGE_TRY(play(say("off by one row"), [&] {
        for (std::size_t i = 0; i < count; ++i) put(o, i, m_expected[o][(i + row) % count]);
      }));
      // The first, and the one that differs from it most: to exchange short rows that are equal, or nearly, is no attack.
      std::size_t other = 0;
      double most = 0;
      for (std::size_t i = row; i < count; ++i)
        if (const double apart = std::abs(m_expected[o][i] - m_expected[o][i % row]); apart > most) most = apart, other = i - i % row;
      if (other > 0)
        FORGE_TRY(play(say("two rows exchanged"), [&] {
          for (std::size_t i = 0; i < row; ++i) {
            put(o, i, m_expected[o][other + i]);
            put(o, other + i, m_expected[o][i]);
          }
        }));
    }
    for (const int bits : lower_precisions(spec.dtype))
      FORGE_TRY(play(say(fmt::format("rounded to {} bits of mantissa", bits)), [&] {
        for (std::size_t i = 0; i < count; ++i) put(o, i, round_mantissa(static_cast<float>(m_expected[o][i]), bits));
      }));
    if (is_float(spec.dtype)) FORGE_TRY(play(say("one NaN"), [&] { put(o, m_random.below(count), std::nan("")); }));
    return attack_single_elements(o, count);
  }

  void set_all(std::size_t o, double value) {
    for (std::size_t i = 0; i < m_expected[o].size(); ++i) put(o, i, value);
  }
  double mean(std::size_t o) const {
    double sum = 0;
    for (const double e : m_expected[o]) sum += std::isfinite(e) ? e : 0;
    return sum / static_cast<double>(m_expected[o].size());
  }

  // Mutation test: one element just outside what the judge allows, at random places.
  Status attack_single_elements(std::size_t o, std::size_t count) {
    const TensorSpec& spec = m_definition.outputs[o];
    const std::size_t size = bytes_of(spec.dtype);
    FORGE_TRY(start());
    int caught = 0;
    CheckResult last;
    for (int place = 0; place < k_places; ++place) {
      std::size_t i = m_random.below(count);
      for (int tries = 0; tries < 1000 && !std::isfinite(m_expected[o][i]); ++tries) i = m_random.below(count);
      std::byte* element = m_stage.output(o).data() + i * size;
      std::int64_t kept = 0;
      std::memcpy(&kept, element, size);
      spoil_element(o, i, element);
      FORGE_TRY(go_on());
      const CheckResult result = m_stage.check();
      caught += result.reason != Reason::accepted;
      if (result.reason != Reason::accepted || place == 0) last = result;
      std::memcpy(element, &kept, size);
    }
    m_lines.push_back({fmt::format("{}: one element just outside its bound, {} random places{}", spec.name, k_places, m_suffix),
                       caught == k_places, fmt::format("{} of {} caught; {}", caught, k_places, last.detail)});
    return {};
  }
  void spoil_element(std::size_t o, std::size_t i, std::byte* element) {
    const double expected = m_expected[o][i], allowed = m_allowed[o][i];
    const JudgeKind kind = rule_of(m_stage.context().op.task, m_definition.outputs[o].name).kind;
    if (kind == JudgeKind::exact || kind == JudgeKind::indexes) {
      element[0] ^= std::byte{1};                          // the last bit of the mantissa, or of the integer
      if (get(o, i) == expected) put(o, i, expected + 1);  // a boolean, or a zero's sign
      return;
    }
    double step = std::max(allowed * 1.5, 1e-44);
    do {
      put(o, i, expected < 0 ? expected - step : expected + step);
      step *= 2;
    } while (!(std::fabs(get(o, i) - expected) > allowed) && std::isfinite(step));
  }

  // ---- the whole call wrong ----

  Status attack_call() {
    // What the call before this one should have given.
    FORGE_TRY(start());
    const auto earlier = m_expected;
    FORGE_TRY(play("the answer to the call before", [&] {
      for (std::size_t o = 0; o < earlier.size(); ++o)
        for (std::size_t i = 0; i < earlier[o].size(); ++i) put(o, i, earlier[o][i]);
    }));
    for (std::size_t i = 0; i < m_definition.inputs.size(); ++i) {
      if (m_definition.inputs[i].scalar) continue;
      FORGE_TRY(
          play(fmt::format("{} overwritten", m_definition.inputs[i].name), [&] { std::ranges::fill(m_stage.input(i), std::byte{0}); }));
      break;
    }
    for (const int bits : input_precisions()) FORGE_TRY(attack_with_rounded_inputs(bits));
    return {};
  }

  // The highest precision of the float inputs decides; an operator of integers has none.
  std::vector<int> input_precisions() const {
    std::vector<int> result;
    for (const TensorSpec& spec : m_definition.inputs) {
      const auto bits = lower_precisions(spec.dtype);
      if (!spec.scalar && !bits.empty() && (result.empty() || bits[0] > result[0])) result = bits;
    }
    return result;
  }

  // A kernel that computes perfectly, on inputs rounded to fewer bits first: tf32 or bfloat16 arithmetic on a float32 task.
  Status attack_with_rounded_inputs(int mantissa_bits) {
    bool changed = false;  // content without these bits attacks nothing: that must show
    const auto round = [&](DType type, std::byte* element) {
      if (!is_float(type)) return;
      const double value = decode(type, element), rounded = round_mantissa(static_cast<float>(value), mantissa_bits);
      changed = changed || (value != rounded && std::isfinite(value));
      encode(type, rounded, element);
    };
    FORGE_TRY(play_unless_right(fmt::format("inputs rounded to {} bits of mantissa", mantissa_bits), [&] { return play_oracle(round); }));
    if (!changed) m_lines.back().must_reject = true;
    return {};
  }

  // The oracle's answer to a copy of the inputs, every element of it spoilt.
  Status play_oracle(const std::function<void(DType, std::byte*)>& spoil) {
    std::vector<std::vector<std::byte>> copies;
    std::vector<void*> data;
    for (std::size_t i = 0; i < m_definition.inputs.size(); ++i) {
      const DType type = m_definition.inputs[i].dtype;
      copies.emplace_back(m_stage.input(i).begin(), m_stage.input(i).end());
      for (std::size_t at = 0; at < copies[i].size(); at += bytes_of(type)) spoil(type, copies[i].data() + at);
      data.push_back(copies[i].data());
    }
    const InputViews inputs = input_views(m_definition, m_stage.axes(), data, m_stage.scalars());
    std::vector<bool> wants_scale;
    for (const TensorSpec& spec : m_definition.outputs)
      wants_scale.push_back(rule_of(m_stage.context().op.task, spec.name).kind == JudgeKind::scaled);
    JudgeContext& context = m_stage.context();
    return context.oracle.expected(inputs.views, output_views(m_definition, m_stage.axes()), wants_scale, context.team,
                                   [&](const OracleRange& range) {
                                     for (std::size_t o = 0; o < m_definition.outputs.size(); ++o)
                                       for (std::int64_t i = 0; i < range.count[o]; ++i)
                                         put(o, static_cast<std::size_t>(range.first_element[o] + i), range.expected[o][i]);
                                   });
  }

  OperandStage& m_stage;
  const Definition& m_definition;
  std::string m_suffix;
  Random m_random{os_entropy()};
  std::vector<std::vector<double>> m_expected, m_allowed;
  std::vector<std::vector<std::byte>> m_poison;
  std::vector<AdmissionLine>& m_lines;
};

// Of the task's own shapes, the one with most output elements that is not above k_most_elements.
Result<std::map<std::string, std::int64_t>> battery_shape(const OperatorFolder& op) {
  std::vector<std::map<std::string, std::int64_t>> shapes{op.task.timed.axes};
  for (const Workload& workload : op.task.workloads) shapes.push_back(workload.axes);
  for (const HiddenAxis& hidden : op.task.hidden)
    for (const std::int64_t value : hidden.always) {
      shapes.push_back(op.task.timed.axes);
      shapes.back()[hidden.axis] = value;
    }
  std::map<std::string, std::int64_t> best;
  std::int64_t best_count = 0;
  for (const auto& shape : shapes) {
    FORGE_TRY_ASSIGN(const AxisValues axes, complete_axes(op.definition, shape));
    std::int64_t count = 0;
    for (const TensorSpec& spec : op.definition.outputs) count += element_count(spec, axes);
    const bool fits = count <= k_most_elements, best_fits = best_count <= k_most_elements;
    if (best_count == 0 || (fits && !best_fits) || (fits == best_fits && (fits ? count > best_count : count < best_count))) {
      best = shape;
      best_count = count;
    }
  }
  return best;
}

// The timed shape with every hidden axis short.
std::map<std::string, std::int64_t> small_shape(const TaskFile& task) {
  auto shape = task.timed.axes;
  for (const HiddenAxis& hidden : task.hidden) shape[hidden.axis] = std::clamp(k_small, hidden.min, std::max(hidden.min, hidden.max));
  return shape;
}

// One stage of a generator; of an adversarial one, one for each variant.
Result<std::vector<std::unique_ptr<Stage>>> stages_of(Judge& judge, const std::map<std::string, std::int64_t>& shape,
                                                      const GeneratorRule& rule) {
  std::vector<std::unique_ptr<Stage>> stages;
  while (true) {
    FORGE_TRY_ASSIGN(auto stage, judge.stage(shape, rule.name, 2, true));
    if (!stages.empty() && stage->label() == stages[0]->label()) return stages;
    stages.push_back(std::move(stage));
    if (rule.kind != GeneratorKind::adversarial) return stages;
  }
}

// A generator that gives zeros or constants in every output tests nothing. Of adversarial content some variants may; not all.
Status constants_are_rejected(Judge& judge, const std::map<std::string, std::int64_t>& shape, const GeneratorRule& rule,
                              std::vector<AdmissionLine>& lines) {
  FORGE_TRY_ASSIGN(const auto stages, stages_of(judge, shape, rule));
  std::vector<AdmissionLine> all;
  for (const auto& stage : stages) {
    std::vector<AdmissionLine> one;
    FORGE_TRY(Battery(static_cast<OperandStage&>(*stage), one, fmt::format(" ({})", rule.name)).attack_with_constants());
    if (all.empty()) all = one;
    for (std::size_t i = 0; i < one.size(); ++i)
      if (one[i].rejected && !all[i].rejected) all[i] = one[i];
  }
  lines.insert(lines.end(), all.begin(), all.end());
  return {};
}

// The judge moves expected values instead of asking the oracle again, so a symmetry that does not hold would make it wrong.
Status symmetry_holds(const OperatorFolder& op, const SymmetryRule& symmetry, const std::map<std::string, std::int64_t>& shape,
                      std::vector<AdmissionLine>& lines) {
  OperatorFolder alone = op;
  alone.task.symmetries = {symmetry};
  JudgeOptions options;
  options.cores = usable_cores();
  FORGE_TRY_ASSIGN(auto judge, Judge::make(alone, options));
  FORGE_TRY_ASSIGN(const AxisValues axes, complete_axes(op.definition, shape));
  const auto flops = evaluate(op.task.flops, axes);
  const bool all = flops && static_cast<double>(*flops) * static_cast<double>(op.task.generators.size()) < k_small_flops;
  AdmissionLine line{.attack = fmt::format("symmetry: {} along {}", name(symmetry.kind), symmetry.axis),
                     .reason = "the oracle agrees on what it moved",
                     .must_reject = false};
  for (const GeneratorRule& rule : op.task.generators) {
    const bool timed = rule.name == op.task.timed.generator;
    if (!timed && !all) continue;
    FORGE_TRY_ASSIGN(const auto stages, stages_of(*judge, shape, rule));
    for (const auto& stage : stages)
      for (int play = 0; play < (timed ? k_symmetry_plays : 1) && !line.rejected; ++play) {
        std::vector<AdmissionLine> unused;
        FORGE_TRY_ASSIGN(const CheckResult result, Battery(static_cast<OperandStage&>(*stage), unused).play_moved());
        if (result.reason == Reason::accepted) continue;
        line.rejected = true;
        line.reason = fmt::format("it does not hold: the oracle's answer to moved inputs is not the moved answer: {}", result.detail);
      }
  }
  lines.push_back(std::move(line));
  return {};
}

}  // namespace

Result<std::vector<AdmissionLine>> admit_task(const Paths& paths, const std::string& operator_name, const std::string& family) {
  FORGE_TRY_ASSIGN(const OperatorFolder op, load_operator(paths, operator_name, family));
  JudgeOptions options;
  options.cores = usable_cores();
  FORGE_TRY_ASSIGN(auto judge, Judge::make(op, options));
  FORGE_TRY_ASSIGN(const auto shape, battery_shape(op));
  const auto small = small_shape(op.task);
  std::vector<AdmissionLine> lines;
  for (const GeneratorRule& rule : op.task.generators) {
    FORGE_TRY_ASSIGN(auto stage, judge->stage(shape, rule.name, 1, true));
    FORGE_TRY(Battery(static_cast<OperandStage&>(*stage), lines, fmt::format(" ({})", rule.name))
                  .control("control: the oracle's answer rounded once"));
  }
  for (const SymmetryRule& symmetry : op.task.symmetries) FORGE_TRY(symmetry_holds(op, symmetry, small, lines));
  FORGE_TRY_ASSIGN(auto stage, judge->stage(shape, op.task.timed.generator, 2, true));
  FORGE_TRY(Battery(static_cast<OperandStage&>(*stage), lines).attack());
  for (const GeneratorRule& rule : op.task.generators) {
    if (rule.name == op.task.timed.generator) continue;
    if (rule.kind == GeneratorKind::normal) {
      FORGE_TRY_ASSIGN(auto other, judge->stage(small, rule.name, 2, true));
      FORGE_TRY(Battery(static_cast<OperandStage&>(*other), lines, fmt::format(" ({})", rule.name)).attack());
    } else {
      FORGE_TRY(constants_are_rejected(*judge, small, rule, lines));
    }
  }
  return lines;
}

}  // namespace forge
