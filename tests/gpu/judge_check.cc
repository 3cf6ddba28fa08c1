// SPDX-License-Identifier: Apache-2.0
// The judge on a real card: content, comparison and oracles, with a kernel played by the host. Every mutation must be caught, for the
// reason that it has, and the card must find what the CPU's comparator finds. Not part of ctest: it needs a GPU.
//   judge_check <operator> [axis=value ...]     on that shape, which the CPU oracle must be able to answer in a moment
//   judge_check --time <operator>               what the timed workload costs the judge
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <cstring>

#include "device/cpu.h"
#include "device/cuda.h"
#include "gate/cuda_stage.h"
#include "gate/numeric.h"
#include "util/fs.h"
#include "util/progress.h"

namespace forge {
namespace {

int failures = 0;

void say(const std::string& what, bool good, const std::string& detail) {
  failures += !good;
  std::printf("%s %-34s %s\n", good ? "ok  " : "FAIL", what.c_str(), detail.c_str());
  std::fflush(stdout);
}

struct Bench {
  std::shared_ptr<JudgeContext> context;
  std::shared_ptr<JudgeDevice> device;
  std::shared_ptr<DeviceBaseMaker> bases;

  static Result<Bench> make(const std::string& name) {
    FORGE_TRY_ASSIGN(const Paths paths, find_paths());
    FORGE_TRY_ASSIGN(const TargetSpec target, native_cuda_target());
    FORGE_TRY_ASSIGN(const Machine machine, probe_cuda(target));
    FORGE_TRY_ASSIGN(const OperatorFolder op, load_operator(paths, name, "cuda"));
    FORGE_TRY_ASSIGN(OraclePlugin oracle, OraclePlugin::load(op.oracle, op.definition.name));
    Bench b;
    b.context.reset(new JudgeContext{op, std::move(oracle), ThreadTeam(usable_cores()), os_entropy()});
    FORGE_TRY_ASSIGN(b.device, JudgeDevice::make(machine));
    b.bases = std::make_shared<DeviceBaseMaker>(b.context, b.device, target);
    return b;
  }
  const Definition& definition() const { return context->op.definition; }

  Result<std::unique_ptr<CudaSlots>> slots(const AxisValues& axes, const GeneratorRule& rule, int count, int variant) const {
    std::vector<std::shared_ptr<DeviceBase>> pairs;
    for (int i = 0; i < 2; ++i) {
      FORGE_TRY_ASSIGN(auto pair, bases->make(axes, rule, os_entropy(), variant));
      pairs.push_back(std::move(pair));
    }
    auto another = [b = *this, axes, rule, variant] { return b.bases->make(axes, rule, os_entropy(), variant); };
    return CudaSlots::make(context, device, axes, "here", std::move(pairs), another, count);
  }
};

// The perfect kernel: the CPU oracle on the inputs as they lie in the buffers now, rounded once.
class Player {
 public:
  Player(const Bench& bench, CudaSlots& slots, int slot) : m_bench(bench), m_slots(slots), m_slot(slot) {}
  Status answer() {
    const Definition& d = m_bench.definition();
    std::vector<std::vector<std::byte>> inputs;
    std::vector<void*> data;
    for (std::size_t i = 0; i < d.inputs.size(); ++i) {
      inputs.emplace_back(d.inputs[i].scalar ? 0 : static_cast<std::size_t>(byte_count(d.inputs[i], m_slots.axes())));
      if (!inputs[i].empty())
        FORGE_TRY(m_bench.device->context().copy_to_host(inputs[i].data(), m_slots.input_at(i, m_slot), inputs[i].size()));
      data.push_back(inputs[i].data());
    }
    const InputViews views = input_views(d, m_slots.axes(), data, m_slots.scalars());
    outputs.clear();
    for (const TensorSpec& spec : d.outputs) outputs.emplace_back(static_cast<std::size_t>(byte_count(spec, m_slots.axes())));
    FORGE_TRY(m_bench.context->oracle.expected(views.views, output_views(d, m_slots.axes()), std::vector<bool>(d.outputs.size(), false),
                                               m_bench.context->team, [&](const OracleRange& r) {
                                                 for (std::size_t o = 0; o < d.outputs.size(); ++o)
                                                   for (std::int64_t i = 0; i < r.count[o]; ++i)
                                                     encode(d.outputs[o].dtype, r.expected[o][i],
                                                            outputs[o].data() + static_cast<std::size_t>(r.first_element[o] + i) *
                                                                                    bytes_of(d.outputs[o].dtype));
                                               }));
    return write();
  }
  Status write() const {
    for (std::size_t o = 0; o < outputs.size(); ++o)
      FORGE_TRY(m_bench.device->context().copy_to_device(m_slots.output_at(o, m_slot), outputs[o].data(), outputs[o].size()));
    return {};
  }
  std::vector<std::vector<std::byte>> outputs;

 private:
  const Bench& m_bench;
  CudaSlots& m_slots;
  int m_slot;
};

void expect(const std::string& what, const CheckResult& result, const std::vector<Reason>& wanted) {
  const bool good = std::find(wanted.begin(), wanted.end(), result.reason) != wanted.end();
  say(what, good, fmt::format("{}: {}", name(result.reason), result.detail));
}

Status check_shape(const Bench& bench, const AxisValues& axes, const GeneratorRule& rule, int variant) {
  const Definition& d = bench.definition();
  CudaContext& card = bench.device->context();
  FORGE_TRY_ASSIGN(auto slots, bench.slots(axes, rule, 1, variant));
  Player player(bench, *slots, 0);
  Random random(os_entropy());
  std::printf("-- %s\n", rule.name.c_str());
  FORGE_TRY(slots->refresh(1));
  expect("nothing written", slots->check(1), {Reason::not_written});
  const auto old = [&]() -> Status {
    FORGE_TRY(slots->refresh(1));
    return player.answer();
  };
  FORGE_TRY(old());
  expect("the right answer", slots->check(1), {Reason::accepted});
  const auto earlier = player.outputs;
  FORGE_TRY(slots->refresh(1));
  player.outputs = earlier;
  FORGE_TRY(player.write());
  const std::vector<Reason> wrong{Reason::wrong_result, Reason::non_finite};
  // Where content is all alike (an adversarial variant), an old answer may be right.
  expect("the answer to the call before", slots->check(1),
         rule.kind == GeneratorKind::adversarial ? std::vector<Reason>{Reason::stale_result, Reason::accepted}
                                                 : std::vector<Reason>{Reason::stale_result});
  if (rule.kind == GeneratorKind::adversarial) return {};
  FORGE_TRY(player.answer());
  const auto right = player.outputs;
  for (std::size_t o = 0; o < d.outputs.size(); ++o) {
    const DType type = d.outputs[o].dtype;
    const std::size_t size = bytes_of(type), count = right[o].size() / size;
    const auto play = [&](const std::string& what, const std::vector<Reason>& reasons, const auto& spoil) -> Status {
      player.outputs = right;
      spoil(player.outputs[o]);
      FORGE_TRY(player.write());
      expect(fmt::format("{}: {}", d.outputs[o].name, what), slots->check(1), reasons);
      FORGE_TRY_ASSIGN(const Findings card_found, slots->findings(o, 0));
      FORGE_TRY_ASSIGN(const Findings host_found, slots->findings_on_host(o, 0));
      const bool same = card_found.compared == host_found.compared && card_found.not_written == host_found.not_written &&
                        card_found.non_finite == host_found.non_finite && card_found.wrong == host_found.wrong &&
                        card_found.first_bad == host_found.first_bad &&
                        (card_found.worst == host_found.worst || std::fabs(card_found.worst - host_found.worst) < 1e-5 * host_found.worst);
      if (!same || failures)
        say("  card and CPU find the same", same,
            fmt::format("bad {} {} {} / {} {} {}, first {} / {}, worst {:.9g} / {:.9g}", card_found.not_written, card_found.non_finite,
                        card_found.wrong, host_found.not_written, host_found.non_finite, host_found.wrong, card_found.first_bad,
                        host_found.first_bad, card_found.worst, host_found.worst));
      return {};
    };
    FORGE_TRY(play("one element flipped", wrong, [&](auto& bytes) { bytes[random.below(count) * size + size - 1] ^= std::byte{0xc0}; }));
    FORGE_TRY(play("the last element flipped", wrong, [&](auto& bytes) { bytes[bytes.size() - 1] ^= std::byte{0xc0}; }));
    FORGE_TRY(play("zeros", wrong, [&](auto& bytes) { std::fill(bytes.begin(), bytes.end(), std::byte{0}); }));
    FORGE_TRY(play("the last tile dropped (zeros)", wrong, [&](auto& bytes) {
      std::fill(bytes.end() - std::ptrdiff_t(size * std::min<std::size_t>(count, 64)), bytes.end(), std::byte{0});
    }));
    if (is_float(type))
      FORGE_TRY(play("one NaN", {Reason::non_finite}, [&](auto& bytes) {
        std::int64_t bits = 0;
        encode(type, std::nan(""), &bits);
        std::memcpy(bytes.data() + random.below(count) * size, &bits, size);
      }));
    FORGE_TRY(play("a thousand random words", {Reason::wrong_result, Reason::non_finite}, [&](auto& bytes) {
      for (int i = 0; i < 1000; ++i) {
        const std::uint64_t bits = random.next();
        std::memcpy(bytes.data() + random.below(count) * size, &bits, size);
      }
    }));
  }
  player.outputs = right;
  FORGE_TRY(player.write());
  expect("the right answer again", slots->check(1), {Reason::accepted});
  for (std::size_t i = 0; i < d.inputs.size(); ++i) {
    if (d.inputs[i].scalar) continue;
    const auto bytes = static_cast<std::uint64_t>(byte_count(d.inputs[i], axes));
    const DevicePointer at = slots->input_at(i, 0) + random.below(bytes);
    unsigned char kept = 0, spoiled = 0;
    FORGE_TRY(card.copy_to_host(&kept, at, 1));
    spoiled = static_cast<unsigned char>(kept ^ 4);
    FORGE_TRY(card.copy_to_device(at, &spoiled, 1));
    expect(d.inputs[i].name + ": one bit changed", slots->check(1), {Reason::inputs_changed});
    FORGE_TRY(card.copy_to_device(at, &kept, 1));
  }
  const DeviceBuffer& buffer = slots->output(0);
  const DevicePointer before = buffer.data() - 1;
  unsigned char kept = 0, spoiled = 0;
  FORGE_TRY(card.copy_to_host(&kept, before, 1));
  spoiled = static_cast<unsigned char>(kept + 1);
  FORGE_TRY(card.copy_to_device(before, &spoiled, 1));
  expect("one byte before an output", slots->check(1), {Reason::out_of_bounds});
  FORGE_TRY(card.copy_to_device(before, &kept, 1));
  expect("put back", slots->check(1), {Reason::accepted});

  // Slots side by side.
  FORGE_TRY_ASSIGN(auto many, bench.slots(axes, rule, 3, variant));
  FORGE_TRY(many->refresh(3));
  std::vector<Player> players;
  for (int s = 0; s < 3; ++s) {
    players.emplace_back(bench, *many, s);
    FORGE_TRY(players.back().answer());
  }
  expect("three slots", many->check(3), {Reason::accepted});
  std::swap(players[1].outputs, players[2].outputs);
  FORGE_TRY(players[2].write());
  expect("an answer in another's slot", many->check(3), wrong);
  expect("more calls than were asked for", many->check(2), {Reason::out_of_bounds});
  FORGE_TRY(many->refresh(3));
  for (int s = 0; s < 2; ++s) FORGE_TRY(players[std::size_t(s)].answer());
  expect("two calls of three slots", many->check(2), {Reason::accepted});
  FORGE_TRY(card.copy_to_device(many->output_at(0, 2), &spoiled, 1));
  expect("one byte of a call that was not made", many->check(2), {Reason::out_of_bounds});
  return {};
}

Status time_operator(const Bench& bench) {
  const Workload& timed = bench.context->op.task.timed;
  FORGE_TRY_ASSIGN(const AxisValues axes, complete_axes(bench.definition(), timed.axes));
  const auto rule = std::find_if(bench.context->op.task.generators.begin(), bench.context->op.task.generators.end(),
                                 [&](const auto& g) { return g.name == timed.generator; });
  double start = monotonic_seconds();
  FORGE_TRY_ASSIGN(auto first, bench.bases->make(axes, *rule, os_entropy(), 0));
  std::printf("   first base %.2f s (oracles held against each other), by %s\n", monotonic_seconds() - start,
              bench.bases->uses_card(axes) ? "the card" : "the CPU");
  start = monotonic_seconds();
  FORGE_TRY_ASSIGN(auto second, bench.bases->make(axes, *rule, os_entropy(), 0));
  std::printf("   second base %.2f s\n", monotonic_seconds() - start);
  for (const int count : {1, 8}) {
    FORGE_TRY_ASSIGN(auto slots, CudaSlots::make(
                                     bench.context, bench.device, axes, "timed", {first, second},
                                     [] { return Result<std::shared_ptr<DeviceBase>>(fail(Code::internal, "no more")); }, count));
    FORGE_TRY(slots->refresh(count));
    (void)slots->check(count);
    double refresh = 0, check = 0;
    for (int i = 0; i < 10; ++i) {
      start = monotonic_seconds();
      FORGE_TRY(slots->refresh(count));
      refresh += monotonic_seconds() - start;
      start = monotonic_seconds();
      const CheckResult result = slots->check(count);
      check += monotonic_seconds() - start;
      if (i == 0) expect(fmt::format("{} slots, nothing written", count), result, {Reason::not_written});
    }
    std::printf("   %d slots: refresh %.3f ms, check %.3f ms a slot\n", count, refresh * 100 / count, check * 100 / count);
  }
  return {};
}

Status run(int count, char** arguments) {
  const bool timing = count > 1 && std::string(arguments[1]) == "--time";
  if (count < (timing ? 3 : 2)) return fail(Code::bad_input, "judge_check [--time] <operator> [axis=value ...]");
  const std::string name = arguments[timing ? 2 : 1];
  std::printf("== %s%s\n", name.c_str(), timing ? ", timed workload" : "");
  FORGE_TRY_ASSIGN(Bench bench, Bench::make(name));
  if (timing) return time_operator(bench);
  std::map<std::string, std::int64_t> shape;
  for (int i = 2; i < count; ++i) {
    const std::string text = arguments[i];
    const auto at = text.find('=');
    if (at == std::string::npos) return fail(Code::bad_input, "axis=value, not " + text);
    shape[text.substr(0, at)] = std::stoll(text.substr(at + 1));
  }
  FORGE_TRY_ASSIGN(const AxisValues axes, complete_axes(bench.definition(), shape));
  for (const GeneratorRule& rule : bench.context->op.task.generators) FORGE_TRY(check_shape(bench, axes, rule, 1));
  const Status held = bench.bases->hold_against_cpu(axes, bench.context->op.task.generators.front());
  if (held || held.error().code != Code::not_found)
    say("the card's oracle and the CPU's", bool(held), held ? "agree" : held.error().text());
  return {};
}

}  // namespace
}  // namespace forge

int main(int count, char** arguments) {
  const forge::Status status = forge::run(count, arguments);
  if (!status) std::printf("FAIL %s\n", status.error().text().c_str());
  std::printf("%s\n", status && forge::failures == 0 ? "all good" : "FAILED");
  return status && forge::failures == 0 ? 0 : 1;
}
