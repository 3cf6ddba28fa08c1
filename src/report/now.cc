// SPDX-License-Identifier: Apache-2.0
// Where a run stands: cards to look at, and the same figures as JSON for programs.
#include <fmt/format.h>

#include "report/story.h"
#include "util/text.h"

namespace forge {

namespace {

int accepted_of(const Story& s) {
  const auto found = s.reasons.find("accepted");
  return found == s.reasons.end() ? 0 : found->second;
}

std::string card(const std::string& name, const std::string& value, const std::string& more, const std::string& kind = "") {
  return fmt::format("<div class=\"card {}\"><span>{}</span><b>{}</b><small>{}</small></div>", kind, escape_html(name), escape_html(value),
                     escape_html(more));
}

std::string state_card(const Story& s, RunState state) {
  std::string more = fmt::format("{} events", s.events);
  if (state == RunState::finished) more = text_of(field_of(s.end, "stop"));
  if (state == RunState::running) more = "after " + s.last_type;
  if (state == RunState::interrupted) more = "after " + s.last_type + "; forge run --resume goes on";
  return card("state", name(state), more, name(state));
}

std::string speedup_card(const Story& s) {
  const Json& confirmed = pairing_with(s.confirm, "reference");
  if (const Json& i = field_of(confirmed, "speedup"); i.is_object())
    return card("speedup, confirmed", fmt::format("{:.3f}x", number_of(field_of(i, "mid"))),
                fmt::format("[{:.3f} {:.3f}], {}", number_of(field_of(i, "low")), number_of(field_of(i, "high")),
                            text_of(field_of(confirmed, "comparison"))),
                "good");
  const Point* best = s.best();
  if (!best || best->speedup <= 0) return card("speedup", "-", s.points.empty() ? "no hand-in yet" : "nothing accepted yet");
  return card("speedup so far", fmt::format("{:.3f}x", best->speedup), fmt::format("[{:.3f} {:.3f}], not confirmed", best->low, best->high),
              best->speedup > 1 ? "good" : "");
}

}  // namespace

std::string reasons_html(const std::vector<std::pair<std::string, std::int64_t>>& reasons) {
  if (reasons.empty()) return "";
  std::string out = "<div class=reasons>the gate said:";
  for (const auto& [reason, n] : reasons)
    out += fmt::format(" <span class=\"chip {}\">{} <b>{}</b></span>", reason == "accepted" ? "good" : "bad", escape_html(reason), n);
  return out + "</div>";
}

std::string now_html(const Story& s, RunState state) {
  const Point* best = s.best();
  const double reference = number_of(field_of(s.open, "seconds")), floor = number_of(field_of(s.floor, "ratio"));
  const double granted = number_of(field_of(field_of(field_of(s.start, "task"), "budget"), "candidates"));
  std::string out = "<div class=cards>" + state_card(s, state) + speedup_card(s);
  out += card(
      "time of a call", best ? format_seconds(best->seconds) : "-",
      reference > 0 ? fmt::format("reference {}: {}", text_of(field_of(s.open, "id")), format_seconds(reference)) : "no reference yet");
  out += card("hand-ins", fmt::format("{} of {:.0f}", s.hand_ins, granted), fmt::format("{} accepted", accepted_of(s)));
  out += card("milestone", s.milestone.empty() ? "-" : fmt::format("r{} {}", s.revision, s.milestone),
              s.milestone.empty() ? (s.plans.empty() ? "no plan yet" : "between two milestones") : s.milestone_title);
  if (!s.points.empty()) {
    const Point& last = s.points.back();
    out += card("last verdict", last.reason, utf8_head(last.detail, 160), last.reason == "accepted" ? "good" : "bad");
  }
  out +=
      card("noise floor", floor > 0 ? fmt::format("{:.2f} %", 100 * floor) : "-", text_of(field_of(field_of(s.start, "machine"), "model")));
  return out + "</div>" + reasons_html({s.reasons.begin(), s.reasons.end()});
}

Json facts_json(const Story& s, RunState state) {
  const Json& task = field_of(s.start, "task");
  const Json& confirmed = field_of(pairing_with(s.confirm, "reference"), "speedup");
  const Point* best = s.best();
  Json j;
  j["run"] = text_of(field_of(s.start, "run"));
  j["operator"] = s.operator_name(), j["target"] = text_of(field_of(task, "target"));
  j["state"] = name(state), j["stop"] = text_of(field_of(s.end, "stop"));
  j["events"] = s.events, j["last_event"] = {{"type", s.last_type}, {"time", s.last_time}};
  j["reference"] = {{"id", text_of(field_of(s.open, "id"))}, {"seconds", number_of(field_of(s.open, "seconds"))}};
  j["roofline_seconds"] = number_of(field_of(field_of(s.analysis, "metrics"), "roofline_seconds"));
  j["noise_floor"] = number_of(field_of(s.floor, "ratio"));
  j["revision"] = s.revision, j["milestone"] = s.milestone, j["milestone_title"] = s.milestone_title;
  j["hand_ins"] = s.hand_ins, j["accepted"] = accepted_of(s), j["budget"] = field_of(task, "budget");
  j["best"] = best ? Json{{"n", best->n}, {"seconds", best->seconds}, {"speedup", best->speedup}, {"package", best->sha}} : Json();
  j["confirmed_speedup"] = confirmed.is_object() ? confirmed : Json();
  j["reasons"] = Json::object();
  for (const auto& [reason, n] : s.reasons) j["reasons"][reason] = n;
  j["versions"] = Json::array();
  for (const Point& p : s.points)
    j["versions"].push_back({{"n", p.n},
                             {"revision", p.revision},
                             {"milestone", p.milestone},
                             {"package", p.sha},
                             {"reason", p.reason},
                             {"detail", p.detail},
                             {"seconds", p.seconds},
                             {"speedup", {{"low", p.low}, {"mid", p.speedup}, {"high", p.high}}},
                             {"decisions", p.label}});
  j["knowledge"] = Json::array();
  for (const auto& [id, use] : s.entries)
    j["knowledge"].push_back(
        {{"entry", id}, {"retrieved", use.retrieved}, {"cited", use.cited}, {"implemented", use.implemented}, {"adopted", use.adopted}});
  return j;
}

}  // namespace forge
