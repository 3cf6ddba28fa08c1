// SPDX-License-Identifier: Apache-2.0
#include "cli/standing.h"

#include <fmt/format.h>

#include "agents/disclosure.h"
#include "agents/folder_driver.h"
#include "cli/table.h"
#include "core/json_reader.h"
#include "core/loose_json.h"
#include "core/operator.h"
#include "evolve/bench.h"

namespace forge {

namespace {

void add_hand_in(Standing& s, const Json& request, const Json& response, const OperatorFolder& op) {
  Standing::HandIn h;
  h.milestone = string_of(request, "milestone");
  h.reason = string_of(response, "reason");
  h.verdict = h.reason == name(Reason::accepted) ? "accepted" : "rejected";
  TaskFile open = op.task;
  open.hidden.clear();
  h.detail = disclose(string_of(response, "detail"), op.definition, open);
  if (const auto v = read_verdict(response, "journal"))
    if (const PairedTiming* p = find_pairing(*v, "reference")) h.speedup = p->speedup.mid;
  s.hand_ins.push_back(std::move(h));
}

}  // namespace

Result<Standing> standing_of(const Paths& paths, const Store& store, const std::string& run) {
  const fs::path file = store.run_dir(run) / "journal.jsonl";
  FORGE_TRY_ASSIGN(const std::vector<Event> events, read_journal(file));
  Standing s;
  s.run = run;
  OperatorFolder op;
  int here = 0;
  double gate = 0;
  for (const Event& e : events) {
    FORGE_TRY_ASSIGN(const Json request, parse_json(e.request, file.string()));
    FORGE_TRY_ASSIGN(const Json response, parse_json(e.response, file.string()));
    if (e.type.rfind("gate.", 0) == 0) gate += e.seconds;
    if (e.type == "run.start") {
      FORGE_TRY_ASSIGN(s.task, read_task(field_of(request, "task"), file.string()));
      FORGE_TRY_ASSIGN(const TargetSpec target, find_target(s.task.target));
      FORGE_TRY_ASSIGN(op, load_operator(paths, s.task.operator_name, target.family));
    } else if (e.type == "plan") {
      s.plan.clear();
      for (const Json& m : field_of(request, "milestones")) s.plan += (s.plan.empty() ? "" : " ") + string_of(m, "id");
    } else if (e.type == "milestone.start") {
      s.title = string_of(request, "title");
    } else if (e.type == "agent.brief") {
      s.milestone = string_of(request, "milestone");
      JsonReader brief(request, file.string());
      brief.ignore_unknown_keys();
      brief.need("attempt", s.attempt);
      FORGE_TRY(brief.finish());
      s.turn = 0;
      here = 0;
    } else if (e.type == "agent.turn") {
      ++s.turn;
    } else if (e.type == "gate.submit") {
      add_hand_in(s, request, response, op);
      ++here;
    } else if (e.type == "milestone.end") {
      s.milestone.clear();
    } else if (e.type == "run.end") {
      s.ended = true;
      s.stop = string_of(request, "stop");
    }
  }
  if (events.empty()) return fail(Code::not_found, "the journal of " + run + " is empty", "start a new run: forge open OPERATOR");
  if (!s.milestone.empty() && is_folder_seat(s.task.coder))
    s.folder = milestone_folder(folder_base(s.task.coder, store.run_dir(run) / "workspace"), s.milestone, s.attempt);
  s.hand_ins_left = std::max(0, std::min(kMaxHandIns - here, s.task.budget.candidates - static_cast<int>(s.hand_ins.size())));
  s.gate_seconds_left = std::max(0.0, s.task.budget.gate_seconds - gate);
  return s;
}

std::string describe(const Standing& s) {
  std::string out =
      fmt::format("{}: {} on {}, plan {}", s.run, s.task.operator_name, s.task.target, s.plan.empty() ? "(none yet)" : s.plan);
  if (s.ended)
    out += "\nended: " + s.stop;
  else if (!s.milestone.empty())
    out += fmt::format("\n{}: {}\nfolder: {}\nleft: {} hand-ins, {:.0f} s of gate time", s.milestone, s.title, s.folder.string(),
                       s.hand_ins_left, s.gate_seconds_left);
  std::vector<std::vector<std::string>> rows;
  for (const auto& h : s.hand_ins)
    rows.push_back({h.milestone, h.verdict, h.speedup > 0 ? fmt::format("{:.3f}", h.speedup) : "-",
                    h.reason == "accepted" ? "" : h.reason + ": " + h.detail});
  if (!rows.empty()) out += "\n" + format_table({"milestone", "verdict", "speedup", "why"}, rows);
  return out;
}

Json to_json_value(const Standing& s) {
  Json j{{"run", s.run}, {"operator", s.task.operator_name}, {"target", s.task.target}, {"ended", s.ended}};
  if (s.ended) j["stop"] = s.stop;
  if (!s.milestone.empty())
    j["milestone"] = {{"id", s.milestone}, {"title", s.title}, {"attempt", s.attempt}, {"folder", s.folder.string()}};
  j["left"] = {{"hand_ins", s.hand_ins_left}, {"gate_seconds", s.gate_seconds_left}};
  j["hand_ins"] = Json::array();
  for (const auto& h : s.hand_ins)
    j["hand_ins"].push_back(
        {{"milestone", h.milestone}, {"verdict", h.verdict}, {"reason", h.reason}, {"detail", h.detail}, {"speedup", h.speedup}});
  return j;
}

}  // namespace forge
