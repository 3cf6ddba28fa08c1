// SPDX-License-Identifier: Apache-2.0
// Self-evolution: gen0 against the expert, gen1 against gen0, and so on, each a run of its own whose reference is the kernel
// that the run before has sealed.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "evolve/start.h"

namespace forge {

namespace {

// The budget is for the whole chain: a generation gets half of what is left, the last one all of it, so that a first
// generation that could go on for ever leaves something to the second.
Budget share(const Budget& total, const Spent& spent, int generations_left) {
  const double part = generations_left > 1 ? 0.5 : 1;
  Budget b = total;  // rounded up: a chain of one hand-in makes it
  b.candidates = static_cast<int>(std::ceil((total.candidates - spent.candidates) * part));
  b.gate_seconds = (total.gate_seconds - spent.gate_seconds) * part;
  b.wall_seconds = (total.wall_seconds - spent.wall_seconds) * part;
  b.tokens = static_cast<std::int64_t>(std::ceil(static_cast<double>(total.tokens - spent.tokens) * part));
  b.dollars = (total.dollars - spent.dollars) * part;
  return b;
}

void add(Spent& sum, const Spent& s) {
  sum.candidates += s.candidates;
  sum.gate_seconds += s.gate_seconds;
  sum.wall_seconds += s.wall_seconds;
  sum.tokens += s.tokens;
  sum.dollars += s.dollars;
}

}  // namespace

Result<EvolveResult> evolve(const Paths& paths, Store& store, const Task& asked, int max_generations, const Say& say) {
  if (max_generations < 1) return fail(Code::bad_input, "at least one generation is needed", "give --generations 1 or more");
  EvolveResult out;
  Task task = asked;
  Spent spent;
  FORGE_TRY_ASSIGN(Heritage heritage, find_heritage(store, task.reference));
  for (int g = 0; g < max_generations; ++g) {
    task.budget = share(asked.budget, spent, max_generations - g);
    const bool paid = (asked.budget.tokens > 0 && task.budget.tokens < 1) || (asked.budget.dollars > 0 && !(task.budget.dollars > 0));
    if (task.budget.candidates < 1 || !(task.budget.gate_seconds > 0) || !(task.budget.wall_seconds > 0) || paid) {
      out.ended = "the budget is spent";
      return out;
    }
    // Said with the run's first line: a task that is refused has no generation.
    bool announced = false;
    const Say tell = [&](const std::string& line) {
      if (say && !std::exchange(announced, true)) say(fmt::format("generation {}: against {}", heritage.number, task.reference));
      if (say) say(line);
    };
    FORGE_TRY_ASSIGN(RunResult result, start_run_from(paths, store, task, heritage, tell));
    add(spent, result.spent);
    out.generations.push_back(std::move(result));
    const RunResult& r = out.generations.back();
    if (r.stop == Stop::user) {
      out.ended = "stopped by the user";
      return out;
    }
    if (!r.sealed) {
      const bool sound = r.confirmation && r.confirmation->correct();
      out.ended = heritage.number == 0 ? "nothing was sealed"
                  : sound              ? "the gain is within the noise floor"
                                       : fmt::format("no kernel beat gen{}", heritage.number - 1);
      return out;
    }
    heritage.number = r.generation->number + 1;
    heritage.parent = r.generation->id;
    heritage.decisions = r.generation->decisions;
    heritage.avoided = r.failures;
    task.reference = "gen:" + r.generation->id;
  }
  out.ended = fmt::format("{} generations were asked for", max_generations);
  return out;
}

}  // namespace forge
