// SPDX-License-Identifier: Apache-2.0
// forge operators | analyse
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "cli/command.h"
#include "cli/table.h"
#include "cli/timeline.h"
#include "core/json_io.h"
#include "gate/gate.h"
#include "util/text.h"
#include "vault/vault.h"

namespace forge {

namespace {

std::string axes_text(const std::map<std::string, std::int64_t>& axes) {
  std::vector<std::string> parts;
  for (const auto& [axis, value] : axes) parts.push_back(fmt::format("{}={}", axis, value));
  return join(parts, " ");
}

int list_operators(Context& c) {
  std::vector<std::vector<std::string>> rows;
  Json document = Json::array();
  bool all_usable = true;
  for (const std::string& op : operator_names(c.paths)) {
    const auto loaded = load_operator(c.paths, op, "");
    if (!loaded) {
      all_usable = false;
      rows.push_back({op, "", "unusable", loaded.error().text(), ""});
      document.push_back({{"name", op}, {"problem", loaded.error().text()}});
      continue;
    }
    // One line a family where the timed workload or the experts differ; a family without an expert beside others is left out.
    Json families = Json::object();
    for (const std::string& family : loaded->task.families) {
      const auto on = load_operator(c.paths, op, family);
      if (!on || (on->experts.empty() && loaded->task.families.size() > 1)) continue;
      std::vector<std::string> experts;
      for (const auto& [expert, path] : on->experts) experts.push_back(expert);
      const bool first = families.empty();
      rows.push_back(
          {first ? op : "", family, axes_text(on->task.timed.axes), join(experts, ", "), first ? loaded->definition.description : ""});
      families[family] = {{"timed", on->task.timed.axes}, {"experts", experts}};
    }
    document.push_back({{"name", op}, {"families", families}, {"description", loaded->definition.description}});
  }
  c.out(format_table({"operator", "on", "timed at", "experts", "what it computes"}, rows));
  c.finish(dump(document));
  return all_usable ? kOk : kEnvironment;
}

std::string metric(const Evidence& e, const char* key, const char* format_spec) {
  const auto found = e.metrics.find(key);
  return found == e.metrics.end() ? "not known" : fmt::format(fmt::runtime(format_spec), found->second);
}

// What the card counted in one call; empty where it counted nothing.
std::string counters_text(const Evidence& e) {
  if (!e.metrics.contains("counter_kernels")) return {};
  std::string out = fmt::format("\none call under Nsight Compute, caches cleared: {} kernels, {}\n", metric(e, "counter_kernels", "{:.0f}"),
                                metric(e, "counter_seconds", "{:.3e} s"));
  out += fmt::format("  DRAM          {} bytes read, {} written; {} of its peak\n", metric(e, "counter_dram_read_bytes", "{:.0f}"),
                     metric(e, "counter_dram_write_bytes", "{:.0f}"), metric(e, "counter_dram_percent", "{:.1f} %"));
  out += fmt::format("  L2            {} bytes read, {} hits\n", metric(e, "counter_l2_read_bytes", "{:.0f}"),
                     metric(e, "counter_l2_hit_percent", "{:.1f} %"));
  out += fmt::format("  SM            {} of its peak, {} of the warps that fit\n", metric(e, "counter_sm_percent", "{:.1f} %"),
                     metric(e, "counter_warps_active_percent", "{:.1f} %"));
  out += fmt::format("  instructions  {} by warps, {} on the matrix units, {} conflicts in shared memory\n",
                     metric(e, "counter_instructions", "{:.0f}"), metric(e, "counter_tensor_instructions", "{:.0f}"),
                     metric(e, "counter_shared_conflicts", "{:.0f}"));
  return out;
}

// One readable page: where the time goes against the roofline.
std::string analysis_page(const ReferenceInfo& r, const Evidence& e) {
  std::string out = fmt::format("{}\n  {}\n", r.id, r.description);
  for (const std::string& other : r.considered) out += "  considered: " + other + "\n";
  out += fmt::format("\ntime            {} ({} of the roofline's {})\n", metric(e, "seconds", "{:.3e} s"),
                     metric(e, "roofline_percent", "{:.1f} %"), metric(e, "roofline_seconds", "{:.3e} s"));
  out += fmt::format("arithmetic      {} GFLOP/s, {} of the measured peak {}\n", metric(e, "achieved_gflops", "{:.1f}"),
                     metric(e, "compute_percent", "{:.1f} %"), metric(e, "ceiling_gflops", "{:.0f} GFLOP/s"));
  out += fmt::format("memory          {} GB/s, {} of the measured copy bandwidth {}\n", metric(e, "achieved_gbs", "{:.2f}"),
                     metric(e, "memory_percent", "{:.1f} %"), metric(e, "ceiling_copy_gbs", "{:.1f} GB/s"));
  out += fmt::format("working set     {} bytes (L1d {}, L2 {}, L3 {})\n", metric(e, "working_set_bytes", "{:.0f}"),
                     metric(e, "l1d_bytes", "{:.0f}"), metric(e, "l2_bytes", "{:.0f}"), metric(e, "l3_bytes", "{:.0f}"));
  out +=
      fmt::format("vector width    {} bits, {} spills in hot loops\n", metric(e, "vector_bits", "{:.0f}"), metric(e, "spills", "{:.0f}"));
  out += counters_text(e);
  if (!e.hot_symbols.empty()) {
    out += e.metrics.contains("counter_seconds") ? "\nthe kernels' shares of the time\n" : "\nwhere the samples fell\n";
    for (const auto& [where, share] : e.hot_symbols) out += fmt::format("  {:5.1f} %  {}\n", 100 * share, where);
  }
  if (!e.mix.hot.empty()) {
    out += e.mix.loops.empty() ? "\ninstructions of the hottest code\n" : "\ninstructions of the hot loops\n";
    std::vector<std::pair<std::int64_t, std::string>> ranked;
    for (const auto& [mnemonic, n] : e.mix.hot) ranked.emplace_back(-n, mnemonic);
    std::sort(ranked.begin(), ranked.end());
    for (std::size_t i = 0; i < ranked.size() && i < 12; ++i) out += fmt::format("  {:5}  {}\n", -ranked[i].first, ranked[i].second);
  }
  if (!e.mix.loops.empty())
    out += "\nhottest loop" + (e.mix.loops[0].symbol.empty() ? "" : " in " + e.mix.loops[0].symbol) + "\n" + e.mix.loops[0].listing + "\n";
  for (const std::string& note : e.notes) out += "note: " + note + "\n";
  return out;
}

struct OperatorsFlags {
  std::string op, target, reference = "expert";
  bool stages = false, reference_given = false;
};

int analyse(Context& c, const OperatorsFlags& f) {
  if (f.stages) return show_timeline(c, f.op, f.target, f.reference_given ? f.reference : "");
  const auto machine = c.machine(f.target);
  if (!machine) return c.fail(machine.error());
  Task task;
  task.operator_name = f.op, task.target = machine->target.name, task.reference = f.reference;
  auto gate = make_gate(c.paths, task, *machine, {});
  if (!gate) return c.fail(gate.error());
  const auto reference = (*gate)->open();
  if (!reference) return c.fail(reference.error());
  const auto evidence = (*gate)->analyse();
  if (!evidence) return c.fail(evidence.error());
  c.out(analysis_page(*reference, *evidence));
  Json document;
  document["machine"] = to_json_value(*machine);
  document["reference"] = {{"id", reference->id},
                           {"description", reference->description},
                           {"considered", reference->considered},
                           {"seconds", reference->seconds}};
  document["evidence"] = to_json_value(*evidence);
  return c.finish(dump(document));
}

}  // namespace

void add_operators(CLI::App& app, Action& action) {
  CLI::App* list = app.add_subcommand("operators", "the operators that this installation knows");
  list->footer("Example:\n  forge operators\nAdding one is adding a folder: docs/add-an-operator.md");
  list->callback([&action] { action = list_operators; });

  auto f = std::make_shared<OperatorsFlags>();
  CLI::App* an =
      app.add_subcommand("analyse", "the sealed reference's evidence: time, rooflines, instruction mix, working set, a card's counters");
  an->add_option("operator", f->op, "an operator")->required();
  CLI::Option* reference = an->add_option("--reference", f->reference,
                                          "expert (the better one), expert:NAME, gen:ID, package:FOLDER; with --stages gen:ID, defaults")
                               ->capture_default_str();
  an->add_option("--target", f->target, "default: the widest of this machine");
  an->add_flag("--stages", f->stages,
               "what each stage of a kernel from a blueprint takes, by variants without it: of the promoted generation, else the defaults");
  an->footer(
      "Examples:\n  forge analyse gemm_f32\n  forge analyse softmax_f32 --reference gen:3f2a --json\n"
      "  forge analyse gemm_f16 --target cuda:sm_90a --reference expert:cublaslt\n"
      "  forge analyse softmax_f32 --stages");
  an->callback([f, reference, &action] {
    f->reference_given = reference->count() > 0;
    action = [f](Context& c) { return analyse(c, *f); };
  });
}

}  // namespace forge
