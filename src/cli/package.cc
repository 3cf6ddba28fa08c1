// SPDX-License-Identifier: Apache-2.0
// forge check | bench | seal | promote | lineage: packages and generations by hand.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "build/build.h"
#include "cli/command.h"
#include "cli/outcome.h"
#include "cli/table.h"
#include "gate/catalog.h"
#include "gate/gate.h"
#include "report/overview.h"
#include "util/progress.h"
#include "util/text.h"
#include "vault/vault.h"

namespace forge {

namespace {

struct PackageFlags {
  std::string folder, op, target, reference = "expert", id;
  std::vector<std::string> beside;
};

struct Bench {
  Machine machine;
  KernelPackage package;
  std::unique_ptr<Gate> gate;
  Task task;
};
Result<Bench> set_up(Context& c, const PackageFlags& f, const std::string& reference) {
  Bench b;
  FORGE_TRY_ASSIGN(b.package, read_package_folder(f.folder));
  FORGE_TRY_ASSIGN(b.machine, c.machine(f.target));
  b.task.operator_name = f.op, b.task.target = b.machine.target.name, b.task.reference = reference;
  FORGE_TRY_ASSIGN(b.gate, make_gate(c.paths, b.task, b.machine, {}));
  return b;
}

std::string describe(const Verdict& v) {
  std::string out = fmt::format("{}{}{}", name(v.reason()), v.detail().empty() ? "" : ": ", v.detail());
  if (v.correctness())
    out += fmt::format("\n  correct: {} checked calls, {} elements, worst error {:.3f} of its bound ({})", v.correctness()->checks,
                       v.correctness()->elements, v.correctness()->worst, v.correctness()->worst_where);
  if (v.measurement())
    for (const PairedTiming& p : v.measurement()->pairs)
      out +=
          fmt::format("\n  {}: {} ({} pairs{}; outside clock {})", compared(p.comparison, p.against), format_interval(p.speedup), p.pairs,
                      p.extended ? ", extended" : "", p.outside_speedup.mid > 0 ? format_interval(p.outside_speedup) : "not asked");
  for (const std::string& m : v.mechanism.found) out += "\n  mechanism: " + m;
  out += fmt::format(
      "\n  gate: {:.2f} s (build {:.2f}, admission {:.2f}, correctness {:.2f} with {:.2f} of the oracle, timing {:.2f}, waited {:.2f})",
      v.times.total, v.times.build, v.times.admit, v.times.correctness, v.times.oracle, v.times.timing, v.times.waited);
  for (const std::string& n : v.notes) out += "\n  note: " + n;
  if (!v.build_log.empty() && v.reason() == Reason::build_failed) out += "\n" + v.build_log;
  return out;
}

// Yardsticks that need not be right (a copy of as many bytes): timed in one job with the package, unchecked, no part of a verdict.
Result<Json> time_beside(Context& c, const Bench& bench, const std::vector<std::string>& folders) {
  std::vector<KernelPackage> packages{bench.package};
  for (const auto& folder : folders) {
    FORGE_TRY_ASSIGN(KernelPackage package, read_package_folder(folder));
    packages.push_back(std::move(package));
  }
  FORGE_TRY_ASSIGN(const auto timed, bench.gate->time(packages));
  Json rows = Json::array();
  for (std::size_t i = 1; i < timed.size(); ++i) {
    const Diagnostic& d = timed[i];
    const double share = d.ran && timed[0].ran && d.against_first > 0 ? 1 / d.against_first : 0;
    c.out(share > 0 ? fmt::format("  beside {}: {:.1f} % of its speed ({} against {}; one job, unchecked)", folders[i - 1], share * 100,
                                  format_seconds(timed[0].seconds), format_seconds(d.seconds))
                    : fmt::format("  beside {}: not timed: {}", folders[i - 1], timed[0].ran ? d.problem : timed[0].problem));
    rows.push_back(Json{{"package", folders[i - 1]}, {"share_of_speed", share}, {"seconds", d.seconds}, {"problem", d.problem}});
  }
  return rows;
}

int hand_in(Context& c, const PackageFlags& f, bool timed) {
  auto bench = set_up(c, f, timed ? f.reference : "none");
  if (!bench) return c.fail(bench.error());
  if (const auto opened = bench->gate->open(); !opened) return c.fail(opened.error());
  if (timed)
    if (const auto floor = bench->gate->measure_floor(); !floor) return c.fail(floor.error());
  Submission s{.package = bench->package,
               .milestone = timed ? "bench" : "check",
               .acceptance = {},
               .branch_best = {},
               .global_best = {},
               .timed = timed,
               .all_pairs = timed};
  const auto verdict = bench->gate->submit(s);
  if (!verdict) return c.fail(verdict.error());
  c.out(describe(*verdict));
  auto document = parse_json(verdict_to_json(*verdict), "verdict");
  if (!document) return c.fail(document.error());
  if (!f.beside.empty() && verdict->correct()) {
    auto rows = time_beside(c, *bench, f.beside);
    if (!rows) return c.fail(rows.error());
    (*document)["beside"] = std::move(*rows);
  }
  c.finish(dump(*document));
  return verdict->accepted() ? kOk : kNegative;
}

std::string sealed_as(const Generation& g) {
  return fmt::format("gen{} {} (built against {}; {}, {})", g.number, g.id.substr(0, 12), g.parent.substr(0, 20), g.run_id, g.date);
}

int seal(Context& c, const PackageFlags& f) {
  auto bench = set_up(c, f, f.reference);
  if (!bench) return c.fail(bench.error());
  auto vault = Vault::open(c.paths.home);
  if (!vault) return c.fail(vault.error());
  std::optional<Generation> parent;
  if (f.reference.starts_with("gen:")) {
    auto found = vault->find(f.reference.substr(4));
    if (!found) return c.fail(found.error());
    parent = std::move(*found);
  }
  const auto earlier = vault->sealed(f.op, bench->task.target, package_hash(bench->package));
  if (!earlier) return c.fail(earlier.error());
  if (*earlier) {
    c.out(fmt::format("sealed already as {}\nA record is never replaced; `forge bench` times the package again.", sealed_as(**earlier)));
    c.finish(generation_to_json(**earlier));
    return parent && (*earlier)->parent != parent->id ? kNegative : kOk;  // it was asked to be another generation
  }
  const auto reference = bench->gate->open();
  if (!reference) return c.fail(reference.error());
  if (const auto floor = bench->gate->measure_floor(); !floor) return c.fail(floor.error());
  const auto verdict = bench->gate->confirm(bench->package, {});
  if (!verdict) return c.fail(verdict.error());
  c.out(describe(*verdict));
  if (!verdict->correct()) {
    c.finish(verdict_to_json(*verdict));
    return kNegative;
  }
  Generation g;
  g.id = package_hash(bench->package);
  g.operator_name = f.op, g.target = bench->task.target, g.run_id = "by hand", g.date = utc_now();
  g.parent = reference->id;
  if (parent) g.parent = parent->id, g.number = parent->number + 1;
  g.package = bench->package, g.verdict = *verdict, g.image_sha = verdict->image_sha, g.expert = reference->description,
  g.machine = bench->machine.device_class;
  if (const auto direct = bench->gate->against_expert(bench->package);
      direct && direct->accepted() && direct->measurement() && !direct->measurement()->pairs.empty())
    g.against_expert = direct->measurement()->pairs.front();
  const auto sealed = vault->seal(g);
  if (!sealed) return c.fail(sealed.error());
  c.out(fmt::format("sealed as gen{} {}\npromote it with: forge promote {}", sealed->number, sealed->id, sealed->id.substr(0, 12)));
  return c.finish(generation_to_json(*sealed));
}

int promote(Context& c, const PackageFlags& f) {
  auto vault = Vault::open(c.paths.home);
  if (!vault) return c.fail(vault.error());
  const auto g = vault->find(f.id);
  if (!g) return c.fail(g.error());
  if (const auto done = vault->promote(g->operator_name, g->target, g->id); !done) return c.fail(done.error());
  c.out(fmt::format("{} is promoted for {} on {}; build on it with: forge run {} --reference gen:{}", g->id.substr(0, 12), g->operator_name,
                    g->target, g->operator_name, g->id.substr(0, 12)));
  Json j;
  j["promoted"] = g->id, j["operator"] = g->operator_name, j["target"] = g->target;
  return c.finish(dump(j));
}

int lineage(Context& c, const PackageFlags& f) {
  auto vault = Vault::open(c.paths.home);
  if (!vault) return c.fail(vault.error());
  const auto sealed = shown_vault(*vault);
  if (!sealed) return c.fail(sealed.error());
  const auto is_there = [&](const auto& all, const auto& of) {
    return std::any_of(all.begin(), all.end(), [&](const auto& one) { return of(one) == f.op; });
  };
  if (!f.op.empty() && !is_there(sealed->kernels, [](const ShownGeneration& g) { return g.generation.operator_name; }) &&
      !is_there(sealed->damaged, [](const DamagedRecord& d) { return d.operator_name; })) {
    // Nothing is sealed for it: that is an answer for an operator, and a slip of the pen for any other name.
    if (const auto known = load_operator(c.paths, f.op, ""); !known && known.error().code == Code::not_found) {
      const auto names = operator_names(c.paths);
      if (std::find(names.begin(), names.end(), f.op) == names.end()) return c.fail(known.error());
    }
  }
  std::vector<std::vector<std::string>> rows;
  Json document = Json::array();
  const auto asked = [&](const std::string& op, const std::string& target) {
    return (f.op.empty() || op == f.op) && (f.target.empty() || target == f.target);
  };
  for (const auto& [k, promoted, in_line] : sealed->kernels) {
    if (!asked(k.operator_name, k.target)) continue;
    const std::string state = promoted ? "promoted" : "sealed";
    const PairedTiming* t = find_pairing(k.verdict, "reference");
    rows.push_back({k.operator_name, fmt::format("gen{}", k.number), k.id.substr(0, 12), state, k.parent.substr(0, 20),
                    t ? format_interval(t->speedup) : "-", t ? name(t->comparison) : "-",
                    k.against_expert ? format_interval(k.against_expert->speedup) : "-", join(k.adopted, " ")});
    document.push_back({{"operator", k.operator_name},
                        {"target", k.target},
                        {"number", k.number},
                        {"id", k.id},
                        {"state", state},
                        {"parent", k.parent},
                        {"against_parent", t ? to_json_value(*t) : Json()},
                        {"against_expert", k.against_expert ? to_json_value(*k.against_expert) : Json()},
                        {"expert", k.expert},
                        {"adopted", k.adopted},
                        {"run", k.run_id}});
  }
  int code = kOk;
  for (const DamagedRecord& d : sealed->damaged) {
    if (!asked(d.operator_name, d.target)) continue;
    code = c.warn(d.error);
    document.push_back(
        {{"operator", d.operator_name}, {"target", d.target}, {"id", d.id}, {"state", "damaged"}, {"problem", d.error.text()}});
  }
  if (rows.empty() && code != kOk)
    c.out("nothing that is sealed can be read");
  else if (rows.empty())
    c.out("nothing was sealed yet" + (f.op.empty() ? std::string() : " for " + f.op) + "; `forge run` or `forge evolve` makes generations");
  else
    c.out(format_table(
        {"operator", "generation", "id", "state", "built against", "against it [95 %]", "verdict", "against the expert [95 %]", "adopted"},
        rows));
  c.finish(dump(document));
  return code;
}

}  // namespace

void add_package(CLI::App& app, Action& action) {
  const auto common = [](CLI::App* sub, const std::shared_ptr<PackageFlags>& f) {
    sub->add_option("package", f->folder, "folder with kernel.cpp and launch.toml")->required();
    sub->add_option("--operator", f->op, "the operator it implements")->required();
    sub->add_option("--target", f->target, "default: the widest of this machine");
  };
  auto check = std::make_shared<PackageFlags>();
  CLI::App* check_sub = app.add_subcommand("check", "build, admit and check a kernel package for correctness; no timing");
  common(check_sub, check);
  check_sub->footer("Example:\n  forge check my-kernel --operator softmax_f32\nExit: 0 correct, 1 rejected (the reason is named).");
  check_sub->callback([check, &action] { action = [check](Context& c) { return hand_in(c, *check, false); }; });

  auto bench = std::make_shared<PackageFlags>();
  CLI::App* bench_sub = app.add_subcommand("bench", "the full gate: correctness, then paired timing against a reference");
  common(bench_sub, bench);
  bench_sub->add_option("--reference", bench->reference, "expert, expert:NAME, gen:ID or package:FOLDER")->capture_default_str();
  bench_sub->add_option("--beside", bench->beside, "a package to time in one job with this one, right or not: a yardstick (repeatable)");
  bench_sub->footer(
      "Examples:\n  forge bench my-kernel --operator softmax_f32\n  forge bench new --operator gemm_f32 --reference package:old\n"
      "  forge bench my-norm --operator rmsnorm_bf16_h4096 --target cuda --beside tests/gpu/packages/same_bytes_norm");
  bench_sub->callback([bench, &action] { action = [bench](Context& c) { return hand_in(c, *bench, true); }; });

  auto seal_flags = std::make_shared<PackageFlags>();
  CLI::App* seal_sub = app.add_subcommand("seal", "confirm a package afresh and freeze it into the vault");
  common(seal_sub, seal_flags);
  seal_sub->add_option("--reference", seal_flags->reference, "what it is confirmed against: expert or gen:ID")->capture_default_str();
  seal_sub->footer("Example:\n  forge seal my-kernel --operator softmax_f32");
  seal_sub->callback([seal_flags, &action] { action = [seal_flags](Context& c) { return seal(c, *seal_flags); }; });

  auto promote_flags = std::make_shared<PackageFlags>();
  CLI::App* promote_sub = app.add_subcommand("promote", "make a sealed kernel the head of its lineage");
  promote_sub->add_option("generation", promote_flags->id, "id or unique prefix (`forge lineage`)")->required();
  promote_sub->footer("Example:\n  forge promote 3f2a9c");
  promote_sub->callback([promote_flags, &action] { action = [promote_flags](Context& c) { return promote(c, *promote_flags); }; });

  auto line = std::make_shared<PackageFlags>();
  CLI::App* line_sub = app.add_subcommand("lineage", "the generations of an operator, each against its parent and against the expert");
  line_sub->add_option("operator", line->op, "default: all");
  line_sub->add_option("--target", line->target, "default: all");
  line_sub->footer("Example:\n  forge lineage gemm_f32");
  line_sub->callback([line, &action] { action = [line](Context& c) { return lineage(c, *line); }; });
}

}  // namespace forge
