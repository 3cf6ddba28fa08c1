// SPDX-License-Identifier: Apache-2.0
// forge runs | show | report
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.h"
#include "cli/table.h"
#include "core/loose_json.h"
#include "report/report.h"
#include "util/text.h"

namespace forge {

namespace {

int list_runs(Context& c, bool rebuild) {
  auto store = rebuild ? c.store() : Store::open_to_read(c.paths.home);
  if (!store) return c.fail(store.error());
  if (rebuild)
    if (auto done = store->rebuild_index(); !done) return c.fail(done.error());
  const auto rows = store->runs();
  if (!rows) return c.fail(rows.error());
  const auto reasons = store->reason_counts(std::nullopt);
  if (!reasons) return c.fail(reasons.error());
  std::vector<std::vector<std::string>> table;
  Json document;
  document["runs"] = Json::array(), document["reasons"] = Json::object();
  for (const RunRow& r : *rows) {
    const std::string& why = r.unreadable.empty() ? r.stop : r.unreadable;
    table.push_back({r.id, r.operator_name, r.reference, r.state + (why.empty() ? "" : " (" + why + ")"),
                     fmt::format("{}/{}", r.accepted, r.candidates), r.best_speedup > 0 ? fmt::format("{:.3f}", r.best_speedup) : "-",
                     r.verdict});
    document["runs"].push_back({{"id", r.id},
                                {"operator", r.operator_name},
                                {"target", r.target},
                                {"reference", r.reference},
                                {"started", r.started},
                                {"state", r.state},
                                {"stop", r.stop},
                                {"candidates", r.candidates},
                                {"accepted", r.accepted},
                                {"speedup", r.best_speedup},
                                {"verdict", r.verdict},
                                {"package", r.best_package},
                                {"unreadable", r.unreadable}});
  }
  if (table.empty())
    c.out("no run yet; start one with: forge run gemm_f32");
  else
    c.out(format_table({"run", "operator", "reference", "state", "accepted", "speedup", "verdict"}, table));
  std::string counts;
  for (const auto& [reason, n] : *reasons) {
    counts += fmt::format("{}{} {}", counts.empty() ? "the gate said: " : ", ", reason, n);
    document["reasons"][reason] = n;
  }
  if (!counts.empty()) c.out(counts);
  return c.finish(dump(document));
}

int show(Context& c, const std::string& wanted, bool events_only) {
  auto store = Store::open_to_read(c.paths.home);
  if (!store) return c.fail(store.error());
  const auto id = store->resolve_run(wanted);
  if (!id) return c.fail(id.error());
  const auto events = read_journal(store->run_dir(*id) / "journal.jsonl");
  if (!events) return c.fail(events.error());
  Json document = Json::array();
  std::vector<std::vector<std::string>> table;
  for (const Event& e : *events) {
    const Json request = Json::parse(e.request, nullptr, false), response = Json::parse(e.response, nullptr, false);
    document.push_back(
        {{"seq", e.seq}, {"time", e.time}, {"type", e.type}, {"seconds", e.seconds}, {"request", request}, {"response", response}});
    std::string what = text_of(response, "reason");
    if (const std::string detail = text_of(response, "detail"); !detail.empty()) what += ": " + detail;
    for (const char* key : {"milestone", "reason", "stop", "why"})
      if (const std::string t = text_of(request, key); !t.empty() && what.size() < 120) what = t + (what.empty() ? "" : "  ") + what;
    table.push_back({std::to_string(e.seq), e.time, e.type, fmt::format("{:.2f} s", e.seconds), utf8_head(what, 140)});
  }
  c.out(format_table({"event", "time", "type", "took", "what"}, table));
  if (!events_only) c.out(fmt::format("journal: {}", (store->run_dir(*id) / "journal.jsonl").string()));
  return c.finish(dump(document));
}

int report(Context& c, const std::string& wanted, const std::string& out_file) {
  auto store = Store::open_to_read(c.paths.home);
  if (!store) return c.fail(store.error());
  const auto file = write_report(*store, wanted, out_file);
  if (!file) return c.fail(file.error());
  c.out(*file);
  Json j;
  j["report"] = *file;
  return c.finish(dump(j));
}

}  // namespace

Result<std::string> write_report(const Store& store, const std::string& run, const std::string& out_file) {
  FORGE_TRY_ASSIGN(const std::string id, store.resolve_run(run));
  const auto chart = find_chart_js();
  FORGE_TRY_ASSIGN(const std::string html, render_journal(store.run_dir(id) / "journal.jsonl", chart.value_or("")));
  const fs::path file = out_file.empty() ? store.home() / "reports" / (id + ".html") : fs::path(out_file);
  FORGE_TRY(write_file_atomic(file, html));
  return file.string();
}

void add_history(CLI::App& app, Action& action) {
  auto rebuild = std::make_shared<bool>(false);
  CLI::App* runs = app.add_subcommand("runs", "all runs, newest first, and how often the gate gave which reason");
  runs->add_flag("--rebuild-index", *rebuild, "make the SQLite index again from the journals");
  runs->footer("Example:\n  forge runs --json | jq '.runs[0]'");
  runs->callback([rebuild, &action] { action = [rebuild](Context& c) { return list_runs(c, *rebuild); }; });

  auto id = std::make_shared<std::string>("last");
  CLI::App* show_sub = app.add_subcommand("show", "a run's journal, event by event");
  show_sub->add_option("run", *id, "run id, unique prefix, or 'last'")->capture_default_str();
  show_sub->footer("Examples:\n  forge show last\n  forge show gemm_f32-2026 --json");
  show_sub->callback([id, &action] { action = [id](Context& c) { return show(c, *id, false); }; });

  auto report_id = std::make_shared<std::string>("last");
  auto out_file = std::make_shared<std::string>();
  CLI::App* rep = app.add_subcommand("report", "one self-contained HTML file about a run");
  rep->add_option("run", *report_id, "run id, unique prefix, or 'last'")->capture_default_str();
  rep->add_option("-o,--output", *out_file, "default: $FORGE_HOME/reports/<run>.html");
  rep->footer("Example:\n  forge report last -o report.html");
  rep->callback(
      [report_id, out_file, &action] { action = [report_id, out_file](Context& c) { return report(c, *report_id, *out_file); }; });
}

}  // namespace forge
