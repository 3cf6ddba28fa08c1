// SPDX-License-Identifier: Apache-2.0
#include "agents/tool_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "agents/disclosure.h"
#include "agents/workspace_files.h"
#include "util/text.h"

namespace forge {

namespace {

constexpr std::size_t kLogHead = 2500;  // bytes of a log in a result
constexpr int kListingLines = 40;       // of the hottest loop
constexpr std::size_t kMnemonics = 14;

double rounded(double value, double unit) { return std::round(value / unit) * unit; }

// Four significant digits are more than a machine repeats.
Json figure(double value) {
  if (!std::isfinite(value)) return nullptr;
  return Json::parse(fmt::format("{:.4g}", value), nullptr, false);
}

Json* longest(Json& node, std::size_t& size) {
  Json* found = nullptr;
  if (node.is_string() && node.get_ref<const std::string&>().size() > size) {
    size = node.get_ref<const std::string&>().size();
    found = &node;
  } else if (node.is_structured()) {
    for (Json& child : node)
      if (Json* other = longest(child, size)) found = other;
  }
  return found;
}

Json* largest_list(Json& node, std::size_t& size) {
  Json* found = nullptr;
  if (node.is_array() && node.size() > size) {
    size = node.size();
    found = &node;
  }
  if (node.is_structured())
    for (Json& child : node)
      if (Json* other = largest_list(child, size)) found = other;
  return found;
}

// What helps after a refusal, by reason.
const char* advice_for(Reason r) {
  switch (r) {
    case Reason::plan_invalid:
      return "mend launch.toml; read_milestone has its rules";
    case Reason::build_failed:
      return "mend the source by the compiler's message; `build` costs no hand-in";
    case Reason::build_timeout:
      return "write simpler code: fewer instances, shorter unrolling, smaller tables";
    case Reason::not_admitted:
      return "the kernel may hold no writable data, no imports, no constructors: read_milestone has the rules";
    case Reason::unsupported_shape:
      return "loosen `requires`: a kernel serves every shape of the task";
    case Reason::crashed:
    case Reason::out_of_bounds:
      return "check the indices of the last block and of rows that no vector width divides";
    case Reason::timed_out:
      return "look for a loop that does not end";
    case Reason::not_written:
      return "some elements of the output were never stored, or workspace was read before it was written";
    case Reason::wrong_result:
    case Reason::non_finite:
      return "compare the arithmetic with the operator's definition: order of operations, accumulator's width, overflow";
    case Reason::stale_result:
    case Reason::dirty_workspace:
    case Reason::inputs_changed:
      return "a kernel keeps nothing from call to call and writes its outputs and workspaces only";
    case Reason::mechanism_missing:
      return "the instructions that the milestone's decisions call for are not in the image; `build` shows what is";
    case Reason::too_slow:
      return "correct; tune with `time` (a package against others in one job), look at the hot loop with `build`";
    case Reason::ambiguous:
      return "correct, but the gain is too small to tell; make it larger, or hand in again";
    default:
      return "";
  }
}

Json mix_of(const InstructionMix& mix, bool with_listing) {
  Json out;
  std::vector<std::pair<std::string, std::int64_t>> hot(mix.hot.begin(), mix.hot.end());
  std::stable_sort(hot.begin(), hot.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  Json counts = Json::object();
  for (std::size_t i = 0; i < hot.size() && i < kMnemonics; ++i) counts[hot[i].first] = hot[i].second;
  out["hot_loop"] = counts;
  out["widest_vector_bits"] = mix.widest_vector_bits;
  out["spills_in_hot_loops"] = mix.spills;
  out["instructions"] = mix.instructions;
  if (!with_listing || mix.loops.empty()) return out;
  const LoopView& loop = mix.loops.front();
  const std::vector<std::string> lines = split(loop.listing, '\n');
  std::string listing;
  for (std::size_t i = 0; i < lines.size() && i < static_cast<std::size_t>(kListingLines); ++i) listing += lines[i] + "\n";
  if (lines.size() > static_cast<std::size_t>(kListingLines)) listing += fmt::format("... ({} more lines)\n", lines.size() - kListingLines);
  out["hottest_loop"] = {{"in", loop.symbol},
                         {"instructions", loop.instructions},
                         {"vector", loop.vector_instructions},
                         {"fma", loop.fma},
                         {"loads", loop.loads},
                         {"stores", loop.stores},
                         {"spills", loop.spills},
                         {"listing", listing}};
  return out;
}

Json pairing(const PairedTiming& p) {
  return {{"against", p.against},
          {"comparison", name(p.comparison)},
          {"speedup", figure(p.speedup.mid)},
          {"interval_95", {figure(p.speedup.low), figure(p.speedup.high)}},
          {"pairs", p.pairs}};
}

}  // namespace

ToolResult tool_result(Json object, bool error) {
  std::string text = dump(object);
  for (int i = 0; i < 200 && text.size() > kMaxResult; ++i) {
    std::size_t size = 120;
    if (Json* found = longest(object, size)) {
      const std::string whole = found->get<std::string>();
      const std::size_t keep = std::max<std::size_t>(100, whole.size() * 2 / 3 - 40);
      *found = utf8_head(whole, keep) + fmt::format(" ... ({} bytes cut)", whole.size() - keep);
    } else if (size = 3; Json* list = largest_list(object, size)) {
      list->erase(list->begin() + static_cast<std::ptrdiff_t>(size * 2 / 3), list->end());
    } else {
      object = Json{{"verdict", object.value("verdict", "error")}, {"detail", "the answer was too long to give"}};
    }
    text = dump(object);
  }
  return {.text = std::move(text), .error = error};
}

ToolResult refusal(const Error& e) {
  Json out{{"verdict", "error"}, {"detail", e.message}};
  if (!e.fix.empty()) out["fix"] = e.fix;
  return tool_result(std::move(out), true);
}

Json budget_result(const Workbench& bench) {
  const BudgetLeft left = bench.left();
  Json out{{"hand_ins", left.hand_ins}, {"gate_seconds", static_cast<std::int64_t>(left.gate_seconds)}};
  if (left.wall_seconds < 1e8) out["wall_seconds"] = static_cast<std::int64_t>(left.wall_seconds);  // else it is no limit
  return out;
}

namespace {

void add_correctness(Json& out, const Verdict& v) {
  if (!v.correct()) return;
  const CorrectnessReport& r = *v.correctness();
  out["correctness"] = {{"calls_compared", r.checks}, {"largest_error_of_bound", figure(r.worst)}};
}

void add_mechanism(Json& out, const Workbench& bench, const Verdict& v) {
  if (bench.milestone().acceptance.mechanism.empty()) return;
  out["mechanism"] = {{"present", v.mechanism.ok}, {"found", v.mechanism.found}};
}

void add_refusal(Json& out, const Workbench& bench, const Verdict& v) {
  out["reason"] = name(v.reason());
  if (!v.detail().empty()) out["detail"] = disclose(v.detail(), bench.definition(), bench.task_file());
  if (const char* advice = advice_for(v.reason()); !v.accepted() && *advice) out["next"] = advice;
}

}  // namespace

Json verdict_result(const Workbench& bench, const Verdict& v) {
  Json out{{"verdict", v.accepted() ? "accepted" : "rejected"}};
  add_refusal(out, bench, v);
  out["correct"] = v.correct();
  if (const auto& m = v.measurement()) {
    out["seconds"] = figure(m->seconds);
    out["noise_floor_percent"] = figure(m->floor.ratio * 100);
    out["timing"] = Json::array();
    for (const PairedTiming& p : m->pairs) out["timing"].push_back(pairing(p));
  }
  add_correctness(out, v);
  add_mechanism(out, bench, v);
  if (v.mix.instructions > 0) out["image"] = mix_of(v.mix, false);
  out["gate_seconds"] = {{"build", rounded(v.times.build, 0.01)},
                         {"correctness", rounded(v.times.correctness, 0.01)},
                         {"timing", rounded(v.times.timing, 0.01)},
                         {"waited", rounded(v.times.waited, 0.01)}};
  out["left"] = budget_result(bench);
  out["milestone_over"] = !bench.may_go_on();
  return out;
}

Json check_result(const Workbench& bench, const Verdict& v) {
  Json out{{"verdict", v.accepted() ? "correct" : v.correct() ? "missed" : "incorrect"}};
  add_refusal(out, bench, v);
  add_correctness(out, v);
  add_mechanism(out, bench, v);
  out["left"] = budget_result(bench);
  return out;
}

Json evidence_result(const Workbench& bench, const Evidence& e) {
  Json out{{"verdict", "built"}, {"admitted", true}};
  out["image"] = mix_of(e.mix, true);
  Json metrics = Json::object();
  for (const auto& [key, value] : e.metrics) metrics[key] = figure(value);
  out["metrics"] = metrics;
  if (!e.notes.empty()) out["notes"] = e.notes;
  out["left"] = budget_result(bench);
  return out;
}

Json log_result(const std::string& log, const std::string& workspace, const std::string& name) {
  Json out{{"text", utf8_head(log, kLogHead)}};
  if (log.size() <= kLogHead) return out;
  const std::string file = name + ".txt";
  out["more"] = fmt::format("{} more bytes in logs/{} of the workspace", log.size() - kLogHead, file);
  // The answer is the same on a replay, where nothing is written; so it cannot depend on whether this succeeds.
  if (!workspace.empty()) (void)write_workspace_file(workspace, "logs", file, log);
  return out;
}

}  // namespace forge
