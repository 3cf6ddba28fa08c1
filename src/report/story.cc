// SPDX-License-Identifier: Apache-2.0
#include "report/story.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "util/text.h"

namespace forge {

double number_of(const Json& j) { return j.is_number() ? j.get<double>() : 0; }

const Json& pairing_with(const Json& verdict, const std::string& whom) {
  static const Json null;
  for (const Json& p : field_of(field_of(verdict, "measurement"), "pairs"))
    if (text_of(field_of(p, "against")) == whom) return p;
  return null;
}

namespace {

Point read_point(const Json& request, const Json& response) {
  Point p;
  p.milestone = text_of(field_of(request, "milestone"));
  p.revision = static_cast<int>(number_of(field_of(request, "revision")));
  p.sha = text_of(field_of(request, "sha")).substr(0, 12);
  p.reason = text_of(field_of(response, "reason"));
  p.detail = text_of(field_of(response, "detail"));
  if (p.reason.empty() && response.contains("error")) p.reason = "error", p.detail = text_of(response["error"]);
  p.seconds = number_of(field_of(field_of(response, "measurement"), "seconds"));
  const Json& speedup = field_of(pairing_with(response, "reference"), "speedup");
  p.speedup = number_of(field_of(speedup, "mid")), p.low = number_of(field_of(speedup, "low")),
  p.high = number_of(field_of(speedup, "high"));
  std::vector<std::string> choices;
  for (const Json& d : field_of(request, "decisions"))
    if (d.is_array() && d.size() == 2) choices.push_back(text_of(d[0]) + "=" + text_of(d[1]));
  p.label = join(choices, " ");
  return p;
}

// The list grows by half of its bound before it is cut back, so that cutting is rare. keep_first: so many stay at the front.
template <class T>
void bound(std::vector<T>& list, std::size_t most, std::size_t keep_first, std::size_t& left_out) {
  if (list.size() < most + most / 2) return;
  const std::size_t out = list.size() - most;
  const auto from = list.begin() + static_cast<std::ptrdiff_t>(keep_first);
  list.erase(from, from + static_cast<std::ptrdiff_t>(out));
  left_out += out;
}

// Whether a story tells anything of this type; an agent's turns, most of a long run, need not even be parsed.
bool is_told(const std::string& type) {
  static const std::set<std::string> kTold = {"run.start",         "gate.open",           "gate.floor", "gate.analyse",
                                              "gate.confirm",      "gate.against_expert", "run.end",    "branch.end",
                                              "branch.start",      "milestone.start",     "plan",       "knowledge.retrieve",
                                              "knowledge.adopted", "knowledge.uses",      "gate.submit"};
  return kTold.contains(type);
}

}  // namespace

EntryUse& Story::entry(const std::string& id) {
  const auto known = std::find_if(entries.begin(), entries.end(), [&](const auto& e) { return e.first == id; });
  if (known != entries.end()) return known->second;
  return entries.emplace_back(id, EntryUse{}).second;
}

void Story::add_point(Point p) {
  p.n = ++hand_ins;
  p.record = p.reason == "accepted" && p.seconds > 0 &&
             (m_best_seconds <= 0 || p.speedup > m_best_speedup || (p.speedup <= 0 && p.seconds < m_best_seconds));
  if (p.record) m_best_speedup = p.speedup, m_best_seconds = p.seconds;
  points.push_back(std::move(p));
  if (points.size() <= kMostPoints) return;
  for (;; m_stride *= 2) {
    const auto newest = points.end() - static_cast<std::ptrdiff_t>(kMostPoints / 4);
    points.erase(std::remove_if(points.begin(), newest, [&](const Point& o) { return !o.record && (o.n - 1) % m_stride != 0; }), newest);
    if (points.size() <= kMostPoints / 4 * 3 || m_stride > hand_ins) return;  // beyond the last: only records are left
  }
}

void Story::add(const Event& e) {
  if (events++ == 0) first_type = e.type;
  last_type = e.type, last_time = e.time;
  if (!is_told(e.type)) return;
  const Json request = Json::parse(e.request, nullptr, false), response = Json::parse(e.response, nullptr, false);
  if (e.type == "run.start") start = request;
  if (e.type == "gate.open") open = response;
  if (e.type == "gate.floor") floor = response;
  if (e.type == "gate.analyse") analysis = response;
  if (e.type == "gate.confirm") confirm = response;
  if (e.type == "gate.against_expert") direct = response;
  if (e.type == "run.end") end = request;
  if (e.type == "branch.end") branches.push_back(request);
  if (e.type == "branch.start") revision = static_cast<int>(number_of(field_of(request, "revision"))), milestone = milestone_title = "";
  if (e.type == "milestone.start")
    milestone = text_of(field_of(request, "milestone")), milestone_title = text_of(field_of(request, "title"));
  if (e.type == "plan") {
    plans.push_back(request);
    for (const Json& m : field_of(request, "milestones"))
      for (const Json& d : field_of(m, "decisions"))
        for (const Json& c : field_of(d, "cites")) entry(text_of(c)).cited = true;
  }
  if (e.type == "knowledge.retrieve")
    for (const Json& r : response) {
      EntryUse& use = entry(text_of(field_of(r, "id")));
      use.retrieved = true;
      use.state = fmt::format("{}, effect {:.2f}", text_of(field_of(r, "state")), number_of(field_of(r, "effect")));
    }
  if (e.type == "knowledge.adopted")
    for (const Json& a : response) entry(text_of(a)).adopted = true;
  if (e.type == "knowledge.uses")
    for (const Json& u : field_of(request, "uses"))
      if (text_of(field_of(u, "use")) == "implemented") entry(text_of(field_of(u, "entry"))).implemented = true;
  if (e.type == "gate.submit") {
    Point p = read_point(request, response);
    ++reasons[p.reason];
    if (const Json& m = field_of(response, "mechanism"); m.is_object())
      mechanisms.emplace_back(fmt::format("r{} {} {}", p.revision, p.milestone, p.sha), m);
    for (const char* part : {"build", "admit", "correctness", "timing", "total"})
      gate_seconds[part] += number_of(field_of(field_of(response, "times"), part));
    verdict_seconds.push_back(number_of(field_of(field_of(response, "times"), "total")) -
                              number_of(field_of(field_of(response, "times"), "waited")));
    add_point(std::move(p));
  }
  bound(plans, kMostPlans, 1, plans_left_out);
  bound(branches, kMostPlans, 1, branches_left_out);
  bound(mechanisms, kMostMechanisms, 0, mechanisms_left_out);
}

const Point* Story::best() const {
  const Point* best = nullptr;
  for (const Point& p : points)
    if (p.reason == "accepted" && p.seconds > 0 && (!best || p.speedup > best->speedup || (p.speedup <= 0 && p.seconds < best->seconds)))
      best = &p;
  return best;
}

const char* name(RunState state) {
  switch (state) {
    case RunState::running:
      return "running";
    case RunState::finished:
      return "finished";
    case RunState::interrupted:
      return "interrupted";
  }
  return "interrupted";
}

RunState state_of(const Story& s, bool written_to) {
  if (!s.end.is_null()) return RunState::finished;
  return written_to ? RunState::running : RunState::interrupted;
}

Json chart_data(const Story& s) {
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
  data["reference_ms"] = 1e3 * number_of(field_of(s.open, "seconds"));
  data["ceiling_ms"] = 1e3 * number_of(field_of(field_of(s.analysis, "metrics"), "roofline_seconds"));
  return data;
}

}  // namespace forge
