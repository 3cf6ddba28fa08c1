// SPDX-License-Identifier: Apache-2.0
// forge selftest aa | power | admission: the judge judged.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "build/build.h"
#include "cli/command.h"
#include "cli/table.h"
#include "core/blueprint.h"
#include "core/json_io.h"
#include "gate/gate.h"
#include "gate/statistics.h"
#include "knowledge/knowledge.h"
#include "vault/vault.h"

namespace forge {

namespace {

struct SelftestFlags {
  std::string op = "softmax_f32", folder, target, keep;
  int trials = 0;
  double effect = 0.03;
};

// The package to test with: the one given, else the promoted generation, else the blueprint as it is by default.
Result<KernelPackage> choose_package(const Context& c, const SelftestFlags& f, const Machine& m) {
  if (!f.folder.empty()) return read_package_folder(f.folder);
  FORGE_TRY_ASSIGN(const Vault vault, Vault::open(c.paths.home));
  FORGE_TRY_ASSIGN(const std::optional<Generation> g, vault.promoted(f.op, m.target.name));
  if (g) return g->package;
  FORGE_TRY_ASSIGN(const Blueprint b, load_blueprint(c.paths, f.op, m.target));
  FORGE_TRY_ASSIGN(const OperatorFolder op, load_operator(c.paths, f.op, m.target.family));
  return render(b, default_choices(b), m.target, blueprint_names(op.definition, op.task, m));
}

int aa(Context& c, const SelftestFlags& f) {
  const auto machine = c.machine(f.target);
  if (!machine) return c.fail(machine.error());
  const auto package = choose_package(c, f, *machine);
  if (!package) return c.fail(package.error());
  const auto r = selftest_aa(c.paths, *machine, f.op, *package, f.trials);
  if (!r) return c.fail(r.error());
  std::vector<double> sorted = r->speedups;
  std::sort(sorted.begin(), sorted.end());
  c.out(
      fmt::format("{}: {} copies of a reference handed in as candidates: faster {}, slower {}, same {}, ambiguous {}\n"
                  "floor {:.2f} %, measured ratios {:.4f} .. {:.4f} (median {:.4f}), {:.0f} s",
                  f.op, r->trials, r->faster, r->slower, r->same, r->ambiguous, 100 * r->floor, sorted.empty() ? 0 : sorted.front(),
                  sorted.empty() ? 0 : sorted.back(), median(sorted), r->seconds));
  Json j;
  j["operator"] = f.op, j["trials"] = r->trials, j["faster"] = r->faster, j["slower"] = r->slower, j["same"] = r->same,
  j["ambiguous"] = r->ambiguous, j["floor"] = r->floor, j["seconds"] = r->seconds, j["speedups"] = r->speedups;
  j["machine"] = to_json_value(*machine);
  c.finish(dump(j));
  return r->faster == 0 ? kOk : kNegative;
}

int power(Context& c, const SelftestFlags& f) {
  const auto machine = c.machine(f.target);
  if (!machine) return c.fail(machine.error());
  const auto package = choose_package(c, f, *machine);
  if (!package) return c.fail(package.error());
  const auto r = selftest_power(c.paths, *machine, f.op, *package, f.trials, f.effect);
  if (!r) return c.fail(r.error());
  if (!f.keep.empty())
    for (const auto& [name, side] : {std::pair{"plain", &*package}, {"slow", &r->slow}})
      if (const auto kept = write_package_folder(*side, std::filesystem::path(f.keep) / name); !kept) return c.fail(kept.error());
  c.out(fmt::format("{}: {} of {} trials with a true {:.1f} % were called so (floor {:.2f} %, {:.0f} s)", f.op, r->called_right, r->trials,
                    100 * r->effect, 100 * r->floor, r->seconds));
  const bool visible = r->floor < r->effect;
  if (!visible)
    c.out(
        fmt::format("{:.1f} % cannot be seen at a floor of {:.2f} %: the machine is too busy for this test, which says nothing of the "
                    "judge; repeat it on a quiet one, or with a larger --effect",
                    100 * r->effect, 100 * r->floor));
  Json j;
  j["visible"] = visible;
  j["operator"] = f.op, j["trials"] = r->trials, j["called_right"] = r->called_right, j["effect"] = r->effect, j["floor"] = r->floor,
  j["seconds"] = r->seconds, j["speedups"] = r->speedups, j["calls"] = r->calls;
  j["machine"] = to_json_value(*machine);
  c.finish(dump(j));
  return r->called_right * 10 >= r->trials * 9 ? kOk : kNegative;
}

int admission(Context& c, const SelftestFlags& f) {
  std::vector<std::vector<std::string>> rows;
  Json document = Json::array();
  bool all = true;
  const std::vector<std::string> head{"operator", "wrong output", "verdict", "why"};
  for (const std::string& op : f.op.empty() ? operator_names(c.paths) : std::vector<std::string>{f.op}) {
    const auto lines = admit_task(with_probe_operators(c.paths, op), op);
    if (!lines) {
      if (!rows.empty()) c.out(format_table(head, rows));
      return c.fail(lines.error());
    }
    for (const AdmissionLine& l : *lines) {
      rows.push_back({op, l.attack, l.rejected ? "rejected" : l.holds() ? "accepted" : "ACCEPTED", l.reason});
      document.push_back({{"operator", op}, {"attack", l.attack}, {"rejected", l.rejected}, {"holds", l.holds()}, {"reason", l.reason}});
      all = all && l.holds();
    }
  }
  c.out(format_table(head, rows));
  c.finish(dump(document));
  return all ? kOk : kNegative;
}

}  // namespace

void add_selftest(CLI::App& app, Action& action) {
  CLI::App* self = app.add_subcommand("selftest", "the judge judged, on this machine");
  self->require_subcommand(1);
  self->footer(
      "Examples:\n  forge selftest aa --trials 200\n  forge selftest power --trials 100 --effect 0.03\n  forge selftest admission");
  const auto common = [](CLI::App* sub, const std::shared_ptr<SelftestFlags>& f) {
    sub->add_option("--operator", f->op, "the operator to test with")->capture_default_str();
    sub->add_option("--target", f->target, "default: the widest of this machine");
    sub->add_option("--package", f->folder, "default: the promoted generation, else the blueprint");
    sub->add_option("--trials", f->trials, "how many")->check(CLI::Range(1, 100000))->capture_default_str();
  };
  auto a = std::make_shared<SelftestFlags>();
  a->trials = 200;
  CLI::App* aa_sub = self->add_subcommand("aa", "copies of a reference as candidates: none may be called faster");
  common(aa_sub, a);
  aa_sub->callback([a, &action] { action = [a](Context& c) { return aa(c, *a); }; });
  auto p = std::make_shared<SelftestFlags>();
  p->trials = 100;
  CLI::App* power_sub = self->add_subcommand("power", "a true difference by a calibrated spin must be called so in 9 of 10 trials");
  common(power_sub, p);
  power_sub->add_option("--effect", p->effect, "the true difference, as a ratio")->check(CLI::Range(0.001, 1.0))->capture_default_str();
  power_sub->add_option("--keep", p->keep, "a folder for the pair: packages plain/ and slow/");
  power_sub->callback([p, &action] { action = [p](Context& c) { return power(c, *p); }; });
  auto d = std::make_shared<SelftestFlags>();
  d->op.clear();
  CLI::App* admission_sub = self->add_subcommand("admission", "wrong outputs that every operator's judges must reject");
  admission_sub->add_option("--operator", d->op, "default: all");
  admission_sub->callback([d, &action] { action = [d](Context& c) { return admission(c, *d); }; });
}

}  // namespace forge
