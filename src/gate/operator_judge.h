// SPDX-License-Identifier: Apache-2.0
// What every judge of an operator does, wherever its content lives: which bases there are and how long they are kept, which workload
// has which stage. `Base` is a base pair in that place.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gate/base_pair.h"
#include "gate/judge.h"
#include "gate/workload_choice.h"
#include "util/progress.h"
#include "util/random.h"

namespace forge {

Error task_error(const OperatorFolder&, const std::string& field, const std::string& message, const std::string& fix);
// What a judge needs of a task, beyond what the parser checks.
Status check_task(const OperatorFolder&);

template <class Base>
class OperatorJudge : public Judge {
 public:
  using Bases = std::vector<std::shared_ptr<Base>>;
  using BaseMaker = std::function<Result<std::shared_ptr<Base>>()>;
  // Where content lives. Each holds what it needs itself: a stage may outlive its judge.
  struct Place {
    std::function<Result<std::shared_ptr<Base>>(const AxisValues&, const GeneratorRule&, std::uint64_t seed, int variant)> make_base;
    std::function<Result<std::unique_ptr<Stage>>(const AxisValues&, const std::string& label, Bases, BaseMaker another)> make_stage;
    std::function<Result<std::unique_ptr<Batch>>(const AxisValues&, const std::string& label, Bases, BaseMaker another, int slots)>
        make_batch;
  };
  OperatorJudge(std::shared_ptr<JudgeContext> context, std::size_t memory_bytes, Place place)
      : m_context(std::move(context)), m_memory_bytes(memory_bytes), m_place(std::move(place)), m_random(os_entropy()) {}

  double preparing_seconds() const override { return m_preparing; }

  // How many variants an adversarial generator has is asked once, on the smallest shape that the task names.
  Status count_variants() {
    const auto& generators = m_context->op.task.generators;
    if (std::none_of(generators.begin(), generators.end(), [](const auto& g) { return g.kind == GeneratorKind::adversarial; })) return {};
    std::vector<std::map<std::string, std::int64_t>> shapes{m_context->op.task.timed.axes};
    for (const Workload& workload : m_context->op.task.workloads) shapes.push_back(workload.axes);
    const Definition& definition = m_context->op.definition;
    AxisValues smallest;
    std::size_t bytes = ~std::size_t(0);
    for (const auto& shape : shapes) {
      FORGE_TRY_ASSIGN(const AxisValues axes, complete_axes(definition, shape));
      if (base_bytes(m_context->op, axes) >= bytes) continue;
      smallest = axes;
      bytes = base_bytes(m_context->op, axes);
    }
    std::vector<Block> blocks;
    std::vector<void*> data;
    std::vector<double> scalars;
    for (const TensorSpec& spec : definition.inputs) {
      blocks.emplace_back(spec.scalar ? 0 : static_cast<std::size_t>(byte_count(spec, smallest)));
      data.push_back(blocks.back().data());
      if (spec.scalar) scalars.push_back(0);
    }
    const InputViews inputs = input_views(definition, smallest, data, scalars);
    FORGE_TRY_ASSIGN(m_variants, m_context->oracle.adversarial_variants(inputs.views));
    return {};
  }

  Result<std::unique_ptr<Stage>> stage(const std::map<std::string, std::int64_t>& shape, const std::string& generator, int bases,
                                       bool fresh) override {
    FORGE_TRY_ASSIGN(Content content, content_of(shape, generator, bases, fresh));
    return m_place.make_stage(content.axes, content.label, std::move(content.pairs), std::move(content.another));
  }

  Result<std::unique_ptr<Batch>> batch(const std::map<std::string, std::int64_t>& shape, const std::string& generator, int bases,
                                       int slots) override {
    if (!m_place.make_batch) return fail(Code::unsupported, "this judge has no batches");
    FORGE_TRY_ASSIGN(Content content, content_of(shape, generator, bases, false));
    return m_place.make_batch(content.axes, content.label, std::move(content.pairs), std::move(content.another), slots);
  }

  std::vector<Workload> correctness_workloads() override {
    Random random(os_entropy());
    return choose_workloads(m_context->op.task, m_variants, random);
  }
  const Workload& timed() const override { return m_context->op.task.timed; }

 private:
  struct Content {
    AxisValues axes;
    std::string label;
    Bases pairs;
    BaseMaker another;
  };
  Result<Content> content_of(const std::map<std::string, std::int64_t>& shape, const std::string& generator, int bases, bool fresh) {
    const OperatorFolder& op = m_context->op;
    FORGE_TRY_ASSIGN(const AxisValues axes, complete_axes(op.definition, shape));
    for (const auto& [axis, value] : axes)
      if (value < 1)
        return fail(Code::bad_input, fmt::format("axis '{}' is {}: there is nothing to judge on an empty tensor", axis, value),
                    "use 1 or more");
    const auto rule =
        std::find_if(op.task.generators.begin(), op.task.generators.end(), [&](const auto& g) { return g.name == generator; });
    if (rule == op.task.generators.end())
      return fail(task_error(op, "generator", fmt::format("there is no generator '{}'", generator), "name one of the task's generators"));
    bases = std::max(1, bases);
    const std::size_t one = base_bytes(op, axes), wanted = one * static_cast<std::size_t>(bases) + buffer_bytes(axes);
    if (wanted > m_memory_bytes)
      return fail(
          Code::bad_input,
          fmt::format("{} needs {} MiB for the judge, {} MiB are allowed", label(axes, generator), wanted >> 20, m_memory_bytes >> 20),
          "use a smaller shape, or raise the gate's memory");

    // Every stage of an adversarial generator has the next variant.
    const bool adversarial = rule->kind == GeneratorKind::adversarial;
    const int variant = adversarial ? m_next_variant++ % m_variants : 0;
    std::string key = label(axes, generator);
    if (adversarial) key += fmt::format(", variant {}", variant);
    Bases pairs = fresh ? Bases{} : cached(key);
    if (pairs.size() > static_cast<std::size_t>(bases)) pairs.resize(static_cast<std::size_t>(bases));
    make_room(wanted);
    while (pairs.size() < static_cast<std::size_t>(bases)) {
      const double began = monotonic_seconds();
      FORGE_TRY_ASSIGN(auto pair, m_place.make_base(axes, *rule, m_random.next(), variant));
      m_preparing += monotonic_seconds() - began;
      if (!pairs.empty()) FORGE_TRY(same_scalars(pairs[0]->scalars, pair->scalars, key));
      pairs.push_back(std::move(pair));
    }
    if (!fresh) keep(key, pairs, one);
    // Beyond the judge's life a stage may not make new bases, so it holds all that it needs itself.
    auto another = [make = m_place.make_base, axes, rule = *rule, variant, key,
                    scalars = pairs[0]->scalars]() -> Result<std::shared_ptr<Base>> {
      FORGE_TRY_ASSIGN(auto pair, make(axes, rule, os_entropy(), variant));
      FORGE_TRY(same_scalars(scalars, pair->scalars, key));
      return pair;
    };
    return Content{axes, key + text_of_scalars(pairs[0]->scalars), std::move(pairs), std::move(another)};
  }

  // A call is made once for all contents of a stage, so they must share its scalars.
  static Status same_scalars(const std::vector<double>& a, const std::vector<double>& b, const std::string& label) {
    const auto same = [](double x, double y) { return x == y || (x != x && y != y); };
    if (std::equal(a.begin(), a.end(), b.begin(), b.end(), same)) return {};
    return fail(Code::bad_input, fmt::format("adversarial() gives a scalar another value for another seed ({})", label),
                "in oracle.cc, let a scalar depend on the variant only");
  }
  std::string text_of_scalars(const std::vector<double>& scalars) const {
    std::string text;
    std::size_t s = 0;
    for (const TensorSpec& spec : m_context->op.definition.inputs)
      if (spec.scalar) text += fmt::format(", {}={:.6g}", spec.name, scalars[s++]);
    return text;
  }

  struct Cached {
    std::string key;
    Bases pairs;
    std::size_t bytes;
  };

  // "M=1024, normal": the variable axes, definition order.
  std::string label(const AxisValues& axes, const std::string& generator) const {
    std::string text;
    for (const Axis& axis : m_context->op.definition.axes)
      if (!axis.constant) text += fmt::format("{}={}, ", axis.name, axes.at(axis.name));
    return text + generator;
  }
  std::size_t buffer_bytes(const AxisValues& axes) const {
    std::size_t total = 0;
    for (const auto* tensors : {&m_context->op.definition.inputs, &m_context->op.definition.outputs})
      for (const TensorSpec& spec : *tensors) total += spec.scalar ? 0 : static_cast<std::size_t>(byte_count(spec, axes));
    return total;
  }
  Bases cached(const std::string& key) {
    for (auto it = m_cache.begin(); it != m_cache.end(); ++it) {
      if (it->key != key) continue;
      m_cache.splice(m_cache.begin(), m_cache, it);
      return it->pairs;
    }
    return {};
  }
  void keep(const std::string& key, const Bases& pairs, std::size_t bytes_each) {
    const auto found = std::find_if(m_cache.begin(), m_cache.end(), [&](const Cached& c) { return c.key == key; });
    if (found != m_cache.end() && found->pairs.size() >= pairs.size()) return;
    if (found != m_cache.end()) m_cache.erase(found);
    m_cache.push_front({key, pairs, bytes_each * pairs.size()});
  }
  // Forgets the bases that were not used for longest. Stages that still hold them keep them alive.
  void make_room(std::size_t wanted) {
    std::size_t held = 0;
    for (const Cached& c : m_cache) held += c.bytes;
    while (!m_cache.empty() && held + wanted > m_memory_bytes) {
      held -= m_cache.back().bytes;
      m_cache.pop_back();
    }
  }

  std::shared_ptr<JudgeContext> m_context;
  std::size_t m_memory_bytes;
  Place m_place;
  double m_preparing = 0;
  Random m_random;
  std::list<Cached> m_cache;  // most recently used first
  int m_variants = 0, m_next_variant = 0;
};

}  // namespace forge
