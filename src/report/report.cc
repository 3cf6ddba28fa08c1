// SPDX-License-Identifier: Apache-2.0
// The page is made of sections, each from the events that concern it. Text from outside (compiler output, names) is escaped;
// data for the chart is JSON in a script element of a non-script type, so that nothing in it can run.
#include "report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/json_io.h"
#include "report/page.h"
#include "util/text.h"

namespace forge {

namespace {

struct Point {
  int n = 0;
  std::string label, milestone, reason, detail, sha;
  int revision = 0;
  double seconds = 0, speedup = 0, low = 0, high = 0;
};

// Everything the page shows, read off the events once.
struct Story {
  Json start, open, floor, analysis, confirm, direct, end;
  std::vector<Json> plans, branches;
  std::vector<Point> points;
  std::vector<std::pair<std::string, Json>> mechanisms;  // milestone, result
  std::map<std::string, int> reasons;
  std::map<std::string, double> gate_seconds;  // build, admit, correctness, timing
  std::vector<std::string> retrieved, cited, adopted;
  std::vector<double> verdict_seconds;
};

const Json& at(const Json& j, const char* key) {
  static const Json null;
  return j.is_object() && j.contains(key) ? j[key] : null;
}
std::string text(const Json& j) { return j.is_string() ? j.get<std::string>() : j.is_null() ? "" : dump(j); }
double number(const Json& j) { return j.is_number() ? j.get<double>() : 0; }

const Json& timing_against(const Json& verdict, const std::string& whom) {
  static const Json null;
  for (const Json& p : at(at(verdict, "measurement"), "pairs"))
    if (text(at(p, "against")) == whom) return p;
  return null;
}

Story read_story(const std::vector<Event>& events) {
  Story s;
  for (const Event& e : events) {
    const Json request = Json::parse(e.request, nullptr, false), response = Json::parse(e.response, nullptr, false);
    if (e.type == "run.start") s.start = request;
    if (e.type == "gate.open") s.open = response;
    if (e.type == "gate.floor") s.floor = response;
    if (e.type == "gate.analyse") s.analysis = response;
    if (e.type == "gate.confirm") s.confirm = response;
    if (e.type == "gate.against_expert") s.direct = response;
    if (e.type == "run.end") s.end = request;
    if (e.type == "branch.end") s.branches.push_back(request);
    if (e.type == "plan") {
      s.plans.push_back(request);
      for (const Json& m : at(request, "milestones"))
        for (const Json& d : at(m, "decisions"))
          for (const Json& c : at(d, "cites"))
            if (std::find(s.cited.begin(), s.cited.end(), text(c)) == s.cited.end()) s.cited.push_back(text(c));
    }
    if (e.type == "knowledge.retrieve")
      for (const Json& r : response)
        s.retrieved.push_back(fmt::format("{} ({}, effect {:.2f})", text(at(r, "id")), text(at(r, "state")), number(at(r, "effect"))));
    if (e.type == "knowledge.adopted")
      for (const Json& a : response) s.adopted.push_back(text(a));
    if (e.type == "gate.submit") {
      Point p;
      p.n = static_cast<int>(s.points.size()) + 1;
      p.milestone = text(at(request, "milestone"));
      p.revision = static_cast<int>(number(at(request, "revision")));
      p.sha = text(at(request, "sha")).substr(0, 12);
      p.reason = text(at(response, "reason"));
      p.detail = text(at(response, "detail"));
      p.seconds = number(at(at(response, "measurement"), "seconds"));
      const Json& t = timing_against(response, "reference");
      p.speedup = number(at(at(t, "speedup"), "mid")), p.low = number(at(at(t, "speedup"), "low")),
      p.high = number(at(at(t, "speedup"), "high"));
      std::vector<std::string> choices;
      for (const Json& d : at(request, "decisions"))
        if (d.is_array() && d.size() == 2) choices.push_back(text(d[0]) + "=" + text(d[1]));
      p.label = join(choices, " ");
      s.points.push_back(p);
      ++s.reasons[p.reason];
      if (const Json& m = at(response, "mechanism"); m.is_object())
        s.mechanisms.emplace_back(fmt::format("r{} {} {}", p.revision, p.milestone, p.sha), m);
      for (const char* part : {"build", "admit", "correctness", "timing", "total"})
        s.gate_seconds[part] += number(at(at(response, "times"), part));
      s.verdict_seconds.push_back(number(at(at(response, "times"), "total")) - number(at(at(response, "times"), "waited")));
    }
  }
  return s;
}

std::string interval(const Json& i) {
  return i.is_object() ? fmt::format("{:.3f} [{:.3f} {:.3f}]", number(at(i, "mid")), number(at(i, "low")), number(at(i, "high"))) : "-";
}

std::string summary(const Story& s) {
  const Json& task = at(s.start, "task");
  const Json& t = timing_against(s.confirm, "reference");
  std::vector<std::vector<std::string>> rows = {
      {"operator", text(at(task, "operator"))},
      {"target", text(at(task, "target"))},
      {"reference", text(at(s.open, "id")) + ": " + text(at(s.open, "description"))},
      {"reference time", format_seconds(number(at(s.open, "seconds")))},
      {"confirmed speedup [95 %]", t.is_null() ? "nothing confirmed" : interval(at(t, "speedup")) + ", " + text(at(t, "comparison"))},
      {"by the outside clock", t.is_null() ? "-" : interval(at(t, "outside_speedup"))},
      {"against the first expert, directly", interval(at(timing_against(s.direct, "expert"), "speedup"))},
      {"noise floor", fmt::format("{:.2f} % ({} pairs)", 100 * number(at(s.floor, "ratio")), number(at(s.floor, "pairs")))},
      {"hand-ins", std::to_string(s.points.size())},
      {"ended", s.end.is_null() ? "not finished: this is an interrupted or running run" : text(at(s.end, "stop"))},
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

std::string chart(const Story& s, const std::string& chart_js) {
  Json data;
  data["points"] = Json::array();
  for (const Point& p : s.points)
    data["points"].push_back({{"n", p.n},
                              {"ms", p.seconds * 1e3},
                              {"reason", p.reason},
                              {"what", fmt::format("r{} {}", p.revision, p.milestone)},
                              {"revision", p.revision},
                              {"label", p.label},
                              {"detail", p.detail},
                              {"speedup", p.speedup}});
  data["reference_ms"] = 1e3 * number(at(s.open, "seconds"));
  data["ceiling_ms"] = 1e3 * number(at(at(s.analysis, "metrics"), "roofline_seconds"));
  return chart_html(dump(data), chart_js);
}

std::string hand_ins(const Story& s) {
  std::vector<std::vector<std::string>> rows;
  for (const Point& p : s.points)
    rows.push_back({std::to_string(p.n), fmt::format("r{}", p.revision), p.milestone, p.sha, p.reason,
                    p.seconds > 0 ? format_seconds(p.seconds) : "-",
                    p.speedup > 0 ? fmt::format("{:.3f} [{:.3f} {:.3f}]", p.speedup, p.low, p.high) : "-", p.label, p.detail});
  std::string counts;
  for (const auto& [reason, n] : s.reasons) counts += fmt::format("{}{}: {}", counts.empty() ? "" : ", ", reason, n);
  return "<p>" + escape_html(counts) + "</p>" +
         html_table({"#", "plan", "milestone", "package", "verdict", "time", "speedup [95 %]", "decisions", "detail"}, rows);
}

std::string plans(const Story& s) {
  std::string out;
  for (const Json& plan : s.plans) {
    out += fmt::format("<h3>Revision {:.0f}</h3><p>{}</p>", number(at(plan, "revision")), escape_html(text(at(plan, "reason"))));
    std::vector<std::vector<std::string>> rows;
    for (const Json& m : at(plan, "milestones"))
      for (const Json& d : at(m, "decisions")) {
        std::string evidence, rejected, cites;
        for (const Json& e : at(d, "evidence"))
          evidence += (at(e, "observed").is_boolean() && at(e, "observed").get<bool>() ? "observed: " : "hypothesis: ") +
                      text(at(e, "text")) + "\n";
        for (const Json& r : at(d, "rejected")) rejected += text(at(r, "value")) + ": " + text(at(r, "why")) + "\n";
        for (const Json& c : at(d, "cites")) cites += text(c) + " ";
        rows.push_back({text(at(m, "id")), text(at(d, "id")), text(at(d, "name")) + " = " + text(at(d, "choice")), evidence, rejected,
                        text(at(d, "expected_effect")), cites});
      }
    out += html_table({"milestone", "id", "decision", "evidence", "rejected", "expected", "cites"}, rows);
    for (const Json& f : at(plan, "avoided"))
      out += fmt::format("<p>avoided: {} = {}, because {}</p>", escape_html(text(at(f, "decision"))), escape_html(text(at(f, "value"))),
                         escape_html(text(at(f, "because"))));
  }
  std::vector<std::vector<std::string>> rows;
  for (const Json& b : s.branches)
    rows.push_back({text(at(b, "revision")), text(at(b, "stop")), fmt::format("{:.3f}", number(at(b, "best_speedup"))),
                    at(b, "reverted").is_boolean() && at(b, "reverted").get<bool>() ? "reverted" : "kept",
                    text(at(b, "package")).substr(0, 12)});
  return out + "<h3>Branches</h3>" + html_table({"revision", "ended", "best speedup", "", "package"}, rows);
}

std::string mechanisms(const Story& s) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [where, m] : s.mechanisms)
    for (const Json& line : at(m, "found"))
      rows.push_back({where, at(m, "ok").is_boolean() && at(m, "ok").get<bool>() ? "yes" : "no", text(line)});
  return rows.empty() ? "<p>no milestone demanded one</p>" : html_table({"hand-in", "all hold", "found"}, rows);
}

std::string evidence(const Story& s) {
  std::vector<std::vector<std::string>> rows;
  const Json& metrics = at(s.analysis, "metrics");
  if (metrics.is_object())
    for (const auto& [key, value] : metrics.items())
      rows.push_back({key, value.is_number() ? fmt::format("{:.6g}", value.get<double>()) : text(value)});
  std::string out = html_table({"metric", "value"}, rows);
  for (const Json& note : at(s.analysis, "notes")) out += "<p>" + escape_html(text(note)) + "</p>";
  for (const Json& loop : at(at(s.analysis, "mix"), "loops")) {
    out += "<p>hot loop" + escape_html(text(at(loop, "symbol")).empty() ? "" : " in " + text(at(loop, "symbol"))) + "</p><pre>" +
           escape_html(text(at(loop, "listing"))) + "</pre>";
    break;
  }
  return out;
}

std::string environment(const Story& s) {
  std::vector<std::vector<std::string>> rows;
  const Json& machine = at(s.start, "machine");
  for (const char* key : {"model", "device_class", "cores", "boot_id", "ceilings", "properties", "environment"})
    rows.push_back({key, text(at(machine, key))});
  const Json& conditions = at(at(s.confirm, "measurement"), "conditions");
  if (conditions.is_object())
    for (const auto& [key, value] : conditions.items()) rows.push_back({key, text(value)});
  return html_table({"", ""}, rows);
}

}  // namespace

Result<std::string> render_report(const std::vector<Event>& events, const std::string& chart_js) {
  if (events.empty() || events.front().type != "run.start")
    return fail(Code::bad_input, "this journal does not begin with run.start: there is nothing to report",
                "`forge runs` lists what there is");
  const Story s = read_story(events);
  std::vector<Section> sections = {
      {"Result", summary(s)},
      {"Candidates over the run", chart(s, chart_js)},
      {"Hand-ins", hand_ins(s)},
      {"Plans and their evidence", plans(s)},
      {"Mechanism checks", mechanisms(s)},
      {"Knowledge",
       html_table({"", ""}, {{"retrieved", join(s.retrieved, "\n")}, {"cited", join(s.cited, "\n")}, {"adopted", join(s.adopted, "\n")}})},
      {"The reference's evidence", evidence(s)},
      {"Environment", environment(s)},
  };
  return html_page("ForgeKernel: " + text(at(at(s.start, "task"), "operator")) + " " + text(at(s.start, "run")), sections);
}

}  // namespace forge
