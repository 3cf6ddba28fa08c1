// SPDX-License-Identifier: Apache-2.0
// forge trace
#include "report/trace.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.h"
#include "core/json_io.h"

namespace forge {

namespace {

int trace(Context& c, const std::string& wanted, const std::string& out_file) {
  auto store = Store::open_to_read(c.paths.home);
  if (!store) return c.fail(store.error());
  const auto id = store->resolve_run(wanted);
  if (!id) return c.fail(id.error());
  const fs::path file = store->run_dir(*id) / "journal.jsonl";
  const auto events = read_journal(file);
  if (!events) return c.fail(events.error());
  auto line = render_trace(*events);
  if (!line) {
    Error e = line.error();
    e.file = file.string();
    return c.fail(e);
  }
  if (out_file.empty()) {  // the line is the one JSON document, with --json too
    line->pop_back();
    c.out(*line);
    return c.finish(*line);
  }
  if (auto written = write_file_atomic(out_file, *line); !written) return c.fail(written.error());
  c.out(out_file);
  return c.finish(dump(Json{{"trace", out_file}}));
}

}  // namespace

void add_trace(CLI::App& app, Action& action) {
  auto id = std::make_shared<std::string>("last");
  auto out_file = std::make_shared<std::string>();
  CLI::App* sub = app.add_subcommand("trace", "a run as OpenTelemetry spans, one line of OTLP JSON");
  sub->add_option("run", *id, "run id, unique prefix, or 'last'")->capture_default_str();
  sub->add_option("-o,--output", *out_file, "default: stdout");
  sub->footer(
      "Examples:\n  forge trace last -o traces.jsonl\n  forge trace last | curl -H 'content-type: application/json' -d @- "
      "localhost:4318/v1/traces");
  sub->callback([id, out_file, &action] { action = [id, out_file](Context& c) { return trace(c, *id, *out_file); }; });
}

}  // namespace forge
