// SPDX-License-Identifier: Apache-2.0
// A coding agent that a driver speaks for. What goes on record, a step each: the brief, every turn, and what tools answered that is no
// function of the record already (knowledge, which changes); the gate's own steps lie in between. So a resumed run asks the driver only
// where the record ends, and a replay never.
#include <fmt/format.h>

#include <map>

#include "agents/driver.h"
#include "agents/tool_arguments.h"
#include "agents/tool_results.h"
#include "agents/tools.h"
#include "agents/use_json.h"
#include "core/json_reader.h"
#include "util/hash.h"
#include "util/progress.h"
#include "util/text.h"

namespace forge {

namespace {

constexpr int kIdleTurns = 40;             // without a hand-in: it does not get anywhere
constexpr std::size_t kCallsOfATurn = 64;  // the rest are refused

Json turn_to_json(const Turn& t) {
  Json calls = Json::array();
  for (const ToolCall& c : t.calls) calls.push_back({{"id", c.id}, {"tool", c.tool}, {"arguments", c.arguments}});
  Json out{{"calls", calls}, {"ended", t.ended}};
  if (t.finish) out["finish"] = true;
  out["why"] = t.why;
  out["said"] = t.said;
  out["use"] = to_json_value(t.use);
  return out;
}

Result<Turn> read_turn(const std::string& text) {
  FORGE_TRY_ASSIGN(const Json j, parse_json(text, "journal"));
  JsonReader reader(j, "journal");
  Turn t;
  reader.need("ended", t.ended);
  reader.maybe("finish", t.finish);
  reader.need("why", t.why);
  reader.need("said", t.said);
  for (JsonReader call : reader.need_objects("calls")) {
    ToolCall c;
    call.need("id", c.id);
    call.need("tool", c.tool);
    call.need("arguments", c.arguments);
    t.calls.push_back(std::move(c));
  }
  read_use(reader.need_object("use"), t.use);
  FORGE_TRY(reader.finish());
  return t;
}

std::string results_hash(const std::vector<ToolResult>& results) {
  std::string text;
  for (const ToolResult& r : results) text += fmt::format("{}:{}:", r.error ? 1 : 0, r.text.size()) + r.text;
  return sha256_hex(text);
}

// Its answer depends on files that may change between a run and its replay.
bool reads_knowledge(const std::string& tool) { return tool == "read_milestone" || tool == "search_knowledge" || tool == "read_knowledge"; }

class DrivenCoder final : public CodingAgent {
 public:
  DrivenCoder(std::unique_ptr<Driver> driver, Journal& journal, Meter& meter, const Budget& budget, std::string workspace)
      : m_driver(std::move(driver)), m_journal(journal), m_meter(meter), m_budget(budget), m_workspace(std::move(workspace)) {}
  std::string identity() const override { return m_driver->identity(); }
  bool finished() const override { return m_finished; }
  Status work(Workbench&) override;

 private:
  Result<Assignment> assign(Workbench&);
  Result<Turn> take_turn(const Assignment&, const std::vector<Exchange>&);
  Result<Turn> ask_driver(const Assignment&, const std::vector<Exchange>&);
  Result<ToolResult> answer(Workbench&, const Assignment&, const ToolCall&);
  Status settle(const Assignment&, const std::vector<Exchange>& so_far);
  bool tokens_spent() const { return m_driver->uses_tokens() && m_meter.spent(m_budget); }

  std::unique_ptr<Driver> m_driver;
  Journal& m_journal;
  Meter& m_meter;
  const Budget m_budget;
  const std::string m_workspace;
  std::map<std::string, int> m_assigned;  // milestone, how often
  bool m_asked = false;                   // in this milestone, the driver itself
  bool m_live = false;                    // in this turn
  bool m_finished = false;
};

Result<Assignment> DrivenCoder::assign(Workbench& bench) {
  Assignment a;
  a.milestone = bench.milestone().id;
  a.attempt = m_assigned[a.milestone]++;
  a.workspace = m_workspace;
  a.starter = starter_of(bench);
  const Json request{{"milestone", a.milestone}, {"attempt", a.attempt}};
  FORGE_TRY_ASSIGN(const std::string text,
                   m_journal.step("agent.brief", dump(request), [&] { return Result<std::string>(dump(Json(brief_of(bench)))); }));
  FORGE_TRY_ASSIGN(const Json brief, parse_json(text, "journal"));
  if (!brief.is_string()) return fail(Code::bad_input, "the journal's record of agent.brief is no text");
  a.brief = brief.get<std::string>();
  return a;
}

// What the driver says, as it can go on record. Whatever it fails with ends the milestone, not the run; unless it is interrupted.
Result<Turn> DrivenCoder::ask_driver(const Assignment& assignment, const std::vector<Exchange>& so_far) {
  m_asked = m_live = true;
  Assignment now = assignment;
  now.tokens_left = m_meter.tokens_left(m_budget);
  Result<Turn> asked = m_driver->next(now, so_far);
  if (!asked) {
    if (asked.error().code == Code::interrupted || stop_requested())
      return fail(Code::interrupted, asked.error().message, asked.error().fix);
    Turn failed;
    failed.ended = true;
    failed.why = asked.error().text();
    return failed;
  }
  for (ToolCall& call : asked->calls) {
    FORGE_TRY_ASSIGN(call, ready_call(std::move(call), m_workspace));
  }
  return asked;
}

Result<Turn> DrivenCoder::take_turn(const Assignment& a, const std::vector<Exchange>& so_far) {
  const Json request{{"milestone", a.milestone},
                     {"attempt", a.attempt},
                     {"turn", so_far.size()},
                     {"results", so_far.empty() ? Json(nullptr) : Json(results_hash(so_far.back().results))}};
  FORGE_TRY_ASSIGN(const std::string text, m_journal.step("agent.turn", dump(request), [&]() -> Result<std::string> {
    FORGE_TRY_ASSIGN(const Turn turn, ask_driver(a, so_far));
    return dump(turn_to_json(turn));
  }));
  return read_turn(text);
}

Result<ToolResult> DrivenCoder::answer(Workbench& bench, const Assignment& a, const ToolCall& call) {
  if (call.tool == "propose_finding") {
    FORGE_TRY_ASSIGN(const ToolResult result, call_tool(bench, call, m_workspace));
    const Result<Arguments> finding = Arguments::read(call.arguments);
    if (!result.error && finding)
      FORGE_TRY(
          m_journal.decide("agent.finding", dump(Json{{"milestone", a.milestone}, {"attempt", a.attempt}, {"finding", finding->value()}})));
    return result;
  }
  if (!reads_knowledge(call.tool)) return call_tool(bench, call, m_workspace);
  const Json request{{"tool", call.tool}, {"arguments", call.arguments}};
  FORGE_TRY_ASSIGN(const std::string text, m_journal.step("agent.tool", dump(request), [&]() -> Result<std::string> {
    FORGE_TRY_ASSIGN(const ToolResult result, call_tool(bench, call, m_workspace));
    return dump(Json{{"text", result.text}, {"error", result.error}});
  }));
  FORGE_TRY_ASSIGN(const Json j, parse_json(text, "journal"));
  JsonReader reader(j, "journal");
  ToolResult result;
  reader.need("text", result.text);
  reader.need("error", result.error);
  FORGE_TRY(reader.finish());
  return result;
}

// A turn without calls, whose use is what the agent said at its end.
Status DrivenCoder::settle(const Assignment& a, const std::vector<Exchange>& so_far) {
  const Json request{{"milestone", a.milestone}, {"attempt", a.attempt}, {"turns", so_far.size()}};
  FORGE_TRY_ASSIGN(const std::string text, m_journal.step("agent.settle", dump(request), [&]() -> Result<std::string> {
    Turn last;
    last.ended = true;
    if (m_asked) {  // else the record ended here, and nobody is at work
      Result<TokenUse> use = m_driver->settle(so_far);
      if (use)
        last.use = *use;
      else
        last.why = use.error().text();
    }
    return dump(turn_to_json(last));
  }));
  FORGE_TRY_ASSIGN(const Turn last, read_turn(text));
  m_meter.used += last.use;
  return {};
}

Status DrivenCoder::work(Workbench& bench) {
  m_asked = false;
  FORGE_TRY_ASSIGN(const Assignment assignment, assign(bench));
  std::vector<Exchange> exchanges;
  int idle = 0;
  while (bench.may_go_on()) {
    if (tokens_spent()) {
      bench.give_up("the budget of tokens is spent");
      break;
    }
    if (idle >= kIdleTurns && !m_driver->patient()) {
      bench.give_up(fmt::format("{} turns without a hand-in", kIdleTurns));
      break;
    }
    Exchange exchange;
    m_live = false;
    FORGE_TRY_ASSIGN(exchange.turn, take_turn(assignment, exchanges));
    m_meter.used += exchange.turn.use;
    bool handed_in = false;
    for (std::size_t i = 0; i < exchange.turn.calls.size(); ++i) {
      const ToolCall& call = exchange.turn.calls[i];
      if (i >= kCallsOfATurn) {
        exchange.results.push_back(
            refusal({.code = Code::bad_input, .message = "too many calls in one turn", .fix = fmt::format("at most {}", kCallsOfATurn)}));
        continue;
      }
      FORGE_TRY_ASSIGN(ToolResult result, answer(bench, assignment, call));
      handed_in = handed_in || (call.tool == "submit" && !result.error);
      exchange.results.push_back(std::move(result));
    }
    idle = handed_in ? 0 : idle + 1;
    if (exchange.turn.ended) {
      m_finished = m_finished || exchange.turn.finish;
      if (bench.may_go_on()) bench.give_up(exchange.turn.why.empty() ? "the agent ended without an accepted kernel" : exchange.turn.why);
    }
    exchanges.push_back(std::move(exchange));
    // A turn from the record too, when its answer was not: the run was killed in between.
    if (m_live || (!m_workspace.empty() && !m_journal.replaying())) m_driver->answered(assignment, exchanges);
  }
  if (m_driver->settles() && !exchanges.empty() && !exchanges.back().turn.ended) FORGE_TRY(settle(assignment, exchanges));
  if (m_asked) m_driver->leave();
  return {};
}

}  // namespace

std::unique_ptr<CodingAgent> make_driven_coder(std::unique_ptr<Driver> driver, Journal& journal, Meter& meter, const Budget& budget,
                                               const std::string& workspace) {
  return std::make_unique<DrivenCoder>(std::move(driver), journal, meter, budget, workspace);
}

}  // namespace forge
