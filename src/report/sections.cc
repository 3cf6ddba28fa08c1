// SPDX-License-Identifier: Apache-2.0
// Each section is made from the part of the story that concerns it. Text from outside (compiler output, names) is escaped.
#include <fmt/format.h>

#include <algorithm>

#include "report/story.h"
#include "util/text.h"

namespace forge {

namespace {

std::string interval(const Json& i) {
  return i.is_object() ? fmt::format("{:.3f} [{:.3f} {:.3f}]", number_of(field_of(i, "mid")), number_of(field_of(i, "low")),
                                     number_of(field_of(i, "high")))
                       : "-";
}

std::string left_out(std::size_t n, const std::string& of, const std::string& which) {
  return n == 0 ? std::string() : fmt::format("<p>{} more {}: {}; the journal has them all.</p>", n, of, which);
}

std::string summary(const Story& s) {
  const Json& task = field_of(s.start, "task");
  const Json& t = pairing_with(s.confirm, "reference");
  std::vector<std::vector<std::string>> rows = {
      {"operator", text_of(field_of(task, "operator"))},
      {"target", text_of(field_of(task, "target"))},
      {"reference", text_of(field_of(s.open, "id")) + ": " + text_of(field_of(s.open, "description"))},
      {"reference time", format_seconds(number_of(field_of(s.open, "seconds")))},
      {"confirmed speedup [95 %]",
       t.is_null() ? "nothing confirmed" : interval(field_of(t, "speedup")) + ", " + text_of(field_of(t, "comparison"))},
      {"by the outside clock", t.is_null() ? "-" : interval(field_of(t, "outside_speedup"))},
      {"against the first expert, directly", interval(field_of(pairing_with(s.direct, "expert"), "speedup"))},
      {"noise floor",
       fmt::format("{:.2f} % ({} pairs)", 100 * number_of(field_of(s.floor, "ratio")), number_of(field_of(s.floor, "pairs")))},
      {"hand-ins", std::to_string(s.hand_ins)},
      {"ended", s.end.is_null() ? "not finished: this is an interrupted or running run" : text_of(field_of(s.end, "stop"))},
  };
  std::vector<double> sorted = s.verdict_seconds;
  std::sort(sorted.begin(), sorted.end());
  if (!sorted.empty()) {
    const double n = static_cast<double>(sorted.size());
    rows.push_back(
        {"hand-in to verdict", fmt::format("median {:.2f} s; on average build {:.2f}, admission {:.2f}, correctness {:.2f}, timing {:.2f}",
                                           sorted[sorted.size() / 2], s.gate_seconds.at("build") / n, s.gate_seconds.at("admit") / n,
                                           s.gate_seconds.at("correctness") / n, s.gate_seconds.at("timing") / n)});
  }
  return html_table({"", ""}, rows);
}

std::string hand_ins(const Story& s, bool newest_first) {
  std::vector<std::vector<std::string>> rows;
  for (const Point& p : s.points)
    rows.push_back({std::to_string(p.n), fmt::format("r{}", p.revision), p.milestone, p.reason,
                    p.seconds > 0 ? format_seconds(p.seconds) : "-",
                    p.speedup > 0 ? fmt::format("{:.3f} [{:.3f} {:.3f}]", p.speedup, p.low, p.high) : "-", p.detail, p.label, p.sha});
  if (rows.empty()) return "<p>none yet</p>";
  if (newest_first) std::reverse(rows.begin(), rows.end());
  std::string counts;
  for (const auto& [reason, n] : s.reasons) counts += fmt::format("{}{}: {}", counts.empty() ? "" : ", ", reason, n);
  return "<p>" + escape_html(counts) + "</p>" +
         left_out(static_cast<std::size_t>(s.hand_ins) - s.points.size(), "hand-ins",
                  "shown are an even choice, every new best, and the newest") +
         html_table({"#", "plan", "milestone", "verdict", "time", "speedup [95 %]", "detail", "decisions", "package"}, rows);
}

std::string plans(const Story& s) {
  std::string out;
  for (const Json& plan : s.plans) {
    out += fmt::format("<h3>Revision {:.0f}</h3><p>{}</p>", number_of(field_of(plan, "revision")),
                       escape_html(text_of(field_of(plan, "reason"))));
    std::vector<std::vector<std::string>> rows;
    for (const Json& m : field_of(plan, "milestones"))
      for (const Json& d : field_of(m, "decisions")) {
        std::string evidence, rejected, cites;
        for (const Json& e : field_of(d, "evidence"))
          evidence += (field_of(e, "observed").is_boolean() && field_of(e, "observed").get<bool>() ? "observed: " : "hypothesis: ") +
                      text_of(field_of(e, "text")) + "\n";
        for (const Json& r : field_of(d, "rejected")) rejected += text_of(field_of(r, "value")) + ": " + text_of(field_of(r, "why")) + "\n";
        for (const Json& c : field_of(d, "cites")) cites += text_of(c) + " ";
        rows.push_back({text_of(field_of(m, "id")), text_of(field_of(d, "id")),
                        text_of(field_of(d, "name")) + " = " + text_of(field_of(d, "choice")), evidence, rejected,
                        text_of(field_of(d, "expected_effect")), cites});
      }
    out += html_table({"milestone", "id", "decision", "evidence", "rejected", "expected", "cites"}, rows);
    for (const Json& f : field_of(plan, "avoided"))
      out += fmt::format("<p>avoided: {} = {}, because {}</p>", escape_html(text_of(field_of(f, "decision"))),
                         escape_html(text_of(field_of(f, "value"))), escape_html(text_of(field_of(f, "because"))));
  }
  std::vector<std::vector<std::string>> rows;
  for (const Json& b : s.branches)
    rows.push_back({text_of(field_of(b, "revision")), text_of(field_of(b, "stop")),
                    fmt::format("{:.3f}", number_of(field_of(b, "best_speedup"))),
                    field_of(b, "reverted").is_boolean() && field_of(b, "reverted").get<bool>() ? "reverted" : "kept",
                    text_of(field_of(b, "package")).substr(0, 12)});
  return left_out(s.plans_left_out, "plans", "shown are the first and the newest") + out + "<h3>Branches</h3>" +
         left_out(s.branches_left_out, "branches", "shown are the first and the newest") +
         html_table({"revision", "ended", "best speedup", "", "package"}, rows);
}

std::string mechanisms(const Story& s) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [where, m] : s.mechanisms)
    for (const Json& line : field_of(m, "found"))
      rows.push_back({where, field_of(m, "ok").is_boolean() && field_of(m, "ok").get<bool>() ? "yes" : "no", text_of(line)});
  return rows.empty()
             ? "<p>no milestone demanded one</p>"
             : left_out(s.mechanisms_left_out, "checks", "shown are the newest") + html_table({"hand-in", "all hold", "found"}, rows);
}

std::string evidence(const Story& s) {
  std::vector<std::vector<std::string>> rows;
  const Json& metrics = field_of(s.analysis, "metrics");
  if (metrics.is_object())
    for (const auto& [key, value] : metrics.items())
      rows.push_back({key, value.is_number() ? fmt::format("{:.6g}", value.get<double>()) : text_of(value)});
  std::string out = html_table({"metric", "value"}, rows);
  for (const Json& note : field_of(s.analysis, "notes")) out += "<p>" + escape_html(text_of(note)) + "</p>";
  for (const Json& loop : field_of(field_of(s.analysis, "mix"), "loops")) {
    out += "<p>hot loop" + escape_html(text_of(field_of(loop, "symbol")).empty() ? "" : " in " + text_of(field_of(loop, "symbol"))) +
           "</p><pre>" + escape_html(text_of(field_of(loop, "listing"))) + "</pre>";
    break;
  }
  return out;
}

std::string environment(const Story& s) {
  std::vector<std::vector<std::string>> rows;
  const Json& machine = field_of(s.start, "machine");
  for (const char* key : {"model", "device_class", "cores", "boot_id", "ceilings", "properties", "environment"})
    rows.push_back({key, text_of(field_of(machine, key))});
  const Json& conditions = field_of(field_of(s.confirm, "measurement"), "conditions");
  if (conditions.is_object())
    for (const auto& [key, value] : conditions.items()) rows.push_back({key, text_of(value)});
  return html_table({"", ""}, rows);
}

std::string knowledge(const Story& s) {
  std::vector<std::vector<std::string>> rows;
  const auto mark = [](bool yes) { return std::string(yes ? "yes" : ""); };
  for (const auto& [id, use] : s.entries)
    rows.push_back({id, use.state, mark(use.retrieved), mark(use.cited), mark(use.implemented), mark(use.adopted)});
  return rows.empty() ? "<p>none was used</p>" : html_table({"entry", "state here", "retrieved", "cited", "implemented", "adopted"}, rows);
}

}  // namespace

std::vector<Section> story_sections(const Story& s, const std::string& chart, bool newest_first) {
  return {
      {"Result", summary(s)},
      {"Candidates over the run", chart},
      {"Hand-ins", hand_ins(s, newest_first)},
      {"Plans and their evidence", plans(s)},
      {"Mechanism checks", mechanisms(s)},
      {"Knowledge", knowledge(s)},
      {"The reference's evidence", evidence(s)},
      {"Environment", environment(s)},
  };
}

}  // namespace forge
