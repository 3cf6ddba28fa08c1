// SPDX-License-Identifier: Apache-2.0
#include "gate/workload_choice.h"

#include <algorithm>
#include <map>
#include <set>

namespace forge {
namespace {

using Shape = std::map<std::string, std::int64_t>;

double size_of(const Shape& shape) {
  double n = 1;
  for (const auto& [axis, value] : shape) n *= static_cast<double>(value);
  return n;
}

// Every hidden axis drawn, the others as timed.
Shape draw_shape(const TaskFile& task, Random& random) {
  Shape shape = task.timed.axes;
  for (const HiddenAxis& hidden : task.hidden)
    shape[hidden.axis] = hidden.min + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(hidden.max - hidden.min + 1)));
  return shape;
}

}  // namespace

std::vector<Workload> choose_workloads(const TaskFile& task, int adversarial_variants, Random& random) {
  std::vector<std::string> plain, adversarial;
  for (const GeneratorRule& rule : task.generators) (rule.kind == GeneratorKind::adversarial ? adversarial : plain).push_back(rule.name);
  shuffle(plain, random);

  std::vector<Shape> corners, draws;
  int most_draws = 0;
  for (const HiddenAxis& hidden : task.hidden) {
    most_draws = std::max(most_draws, hidden.count);
    for (const std::int64_t value : hidden.always) {
      Shape shape = draw_shape(task, random);
      shape[hidden.axis] = value;
      corners.push_back(shape);
    }
  }
  for (int i = 0; i < most_draws; ++i) draws.push_back(draw_shape(task, random));

  std::vector<Workload> chosen;
  std::set<std::string> used;
  const auto add = [&](std::string name, const Shape& shape, const std::string& generator) {
    chosen.push_back({.name = std::move(name), .axes = shape, .generator = generator});
    used.insert(generator);
  };
  add("timed", task.timed.axes, task.timed.generator);
  for (const Workload& workload : task.workloads) add(workload.name, workload.axes, workload.generator);
  std::size_t next = 0;
  const auto next_plain = [&] { return plain.empty() ? task.timed.generator : plain[next++ % plain.size()]; };
  for (const Shape& shape : corners) add("corner", shape, next_plain());
  for (const Shape& shape : draws) add("hidden", shape, next_plain());
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const std::string& generator = plain[random.below(plain.size())];
    if (generator == task.timed.generator) continue;
    add("timed", task.timed.axes, generator);
    break;
  }

  // What is left goes to the largest corner: small, yet with more than one row where there is one.
  Shape home = task.timed.axes;
  const auto larger = [](const Shape& a, const Shape& b) { return size_of(a) < size_of(b); };
  if (!corners.empty())
    home = *std::max_element(corners.begin(), corners.end(), larger);
  else if (!draws.empty())
    home = *std::min_element(draws.begin(), draws.end(), larger);
  else if (!task.workloads.empty())
    home = task.workloads[0].axes;
  for (const std::string& generator : plain)
    if (!used.count(generator)) add("corner", home, generator);
  for (const std::string& generator : adversarial)
    for (int variant = 0; variant < adversarial_variants; ++variant) add("corner", home, generator);
  return chosen;
}

}  // namespace forge
