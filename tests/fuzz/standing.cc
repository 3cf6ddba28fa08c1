// SPDX-License-Identifier: Apache-2.0
// Where a run by hand stands, from a journal whose chain is whole and whose events hold anything. Input: a journal (journal_lines.h) of a
// run of the operator `toy`.
// link: forge_cli
#include "cli/standing.h"

#include "fuzz/journal_lines.h"
#include "fuzz/target.h"
#include "gate/catalog.h"

namespace forge {

static constexpr const char* kToyDefinition =
    R"({"name":"toy","op_type":"toy","description":"y = x","axes":{"rows":{"type":"var"},"columns":{"type":"const","value":4}},)"
    R"("inputs":{"x":{"shape":["rows","columns"],"dtype":"float32"}},"outputs":{"y":{"shape":["rows","columns"],"dtype":"float32"}},)"
    R"("reference":"def run(x): return x"})";
static constexpr const char* kToyTask =
    "format = 1\noperator = \"toy\"\n[timed]\naxes = { rows = 64 }\ngenerator = \"normal\"\n"
    "[[workload]]\nname = \"one\"\naxes = { rows = 1 }\ngenerator = \"normal\"\n"
    "[[judge]]\noutput = \"y\"\nkind = \"relative\"\ntolerance = 1e-5\nabsolute = 1e-36\nsource = \"rounding\"\n"
    "[[generator]]\nname = \"normal\"\nkind = \"normal\"\n[cost]\nflops = \"rows\"\nbytes = \"8 * rows\"\n";

static Paths toy_paths() {
  fuzz::put("data/operators/toy/definition.json", kToyDefinition);
  fuzz::put("data/operators/toy/task.toml", kToyTask);
  fuzz::put("plugins/toy/oracle.so", "");
  const Paths p{.data = fuzz::folder() / "data", .plugins = fuzz::folder() / "plugins", .home = fuzz::folder() / "home"};
  HOLDS(load_operator(p, "toy", "cpu").has_value());
  return p;
}

FORGE_FUZZ_TARGET(standing) {
  static const Paths paths = toy_paths();
  static const Result<Store> store = Store::open(paths.home);
  HOLDS(store.has_value());
  fuzz::put("home/runs/r1/journal.jsonl", fuzz::chained(bytes));
  const auto standing = standing_of(paths, *store, "r1");
  if (!standing) return;
  HOLDS(standing->hand_ins_left >= 0 && standing->gate_seconds_left >= 0);
  HOLDS(!describe(*standing).empty());
  HOLDS(dump(to_json_value(*standing)).starts_with("{"));
}

}  // namespace forge
