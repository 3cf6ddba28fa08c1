// SPDX-License-Identifier: Apache-2.0
#include "agents/model_architect.h"

#include <fmt/format.h>

#include <algorithm>

#include "agents/architect_brief.h"
#include "agents/builtin_common.h"
#include "agents/model_json.h"
#include "agents/plan_tool.h"
#include "agents/use_json.h"
#include "core/json_io.h"
#include "util/hash.h"

namespace forge {

namespace {

using Kind = ModelBlock::Kind;

class ModelArchitect final : public ArchitectureAgent {
 public:
  ModelArchitect(std::unique_ptr<Model> model, Journal& journal, Meter& meter, ModelArchitectOptions options)
      : m_model(std::move(model)), m_journal(journal), m_meter(meter), m_options(std::move(options)) {}
  std::string identity() const override { return m_model->identity(); }

  Result<Plan> plan(const PlanRequest& request) override {
    FORGE_TRY_ASSIGN(auto plan, converse("plan", request, architect_brief(request, vocabulary()), 0, false));
    if (!plan) return fail(Code::crashed, "the architect wants no plan");
    return std::move(*plan);
  }

  Result<std::optional<Plan>> revise(const ReviseRequest& request) override {
    const std::string brief = architect_brief(request.first, vocabulary()) + "\n" + trajectory_brief(request);
    const int next = request.plans.empty() ? 0 : request.plans.back().revision + 1;
    return converse("revise", request.first, brief, next, true);
  }

 private:
  const Blueprint* vocabulary() const { return m_options.vocabulary ? &*m_options.vocabulary : nullptr; }
  Result<std::optional<Plan>> converse(const std::string& purpose, const PlanRequest&, const std::string& brief, int revision,
                                       bool may_end);
  Result<ModelReply> ask(const std::string& purpose, int revision, int attempt, const ModelRequest&);
  Status check(const Plan&, const PlanRequest&) const;

  std::unique_ptr<Model> m_model;
  Journal& m_journal;
  Meter& m_meter;
  ModelArchitectOptions m_options;
};

// The journal keeps the digest of what was asked and the whole of what was answered: what was asked follows from the record before it.
Result<ModelReply> ModelArchitect::ask(const std::string& purpose, int revision, int attempt, const ModelRequest& request) {
  std::string asked = request.system;
  for (const ModelMessage& m : request.messages)
    for (const ModelBlock& b : m.blocks) asked += '\n' + b.text;
  const Json step{{"seat", "architect"}, {"purpose", purpose}, {"revision", revision}, {"attempt", attempt}, {"asked", sha256_hex(asked)}};
  FORGE_TRY_ASSIGN(const std::string text, m_journal.step("agent.ask", dump(step), [&]() -> Result<std::string> {
    const auto reply = m_model->ask(request, m_options.seconds);
    if (!reply && reply.error().code == Code::interrupted) return tl::unexpected(reply.error());
    if (!reply) return dump(Json{{"error", reply.error().text()}});
    FORGE_TRY_ASSIGN(Json answer, parse_json(model_reply_to_json(*reply), "reply"));
    return dump(Json{{"reply", std::move(answer)}, {"use", to_json_value(reply->use)}});
  }));
  FORGE_TRY_ASSIGN(const Json j, parse_json(text, "journal"));
  if (j.contains("error")) return fail(Code::crashed, "the architect did not answer: " + dump(j["error"]));
  if (!j.contains("reply") || !j.contains("use")) return fail(Code::bad_input, "the journal's record of agent.ask has no reply");
  TokenUse use;
  JsonReader reader(j["use"], "journal");
  read_use(reader, use);
  FORGE_TRY(reader.finish());
  m_meter.used += use;
  return read_model_reply(dump(j["reply"]));
}

// Beyond what every plan must be: the template knows its decisions, and some combination of them can be built.
Status ModelArchitect::check(const Plan& plan, const PlanRequest& request) const {
  FORGE_TRY(check_plan(plan));
  if (!m_options.vocabulary) return {};
  const Blueprint& blueprint = *m_options.vocabulary;
  const Names names = blueprint_names(request.definition, request.task_file, request.machine);
  Choices choices = default_choices(blueprint);
  for (const Milestone& m : plan.milestones) {
    for (const Decision& d : m.decisions) {
      const BlueprintDecision* known = find_decision(blueprint, d.name);
      if (!known) return fail(Code::bad_input, fmt::format("{} {}: the coder knows no decision '{}'", m.id, d.id, d.name));
      if (!find_option(*known, d.choice))
        return fail(Code::bad_input, fmt::format("{} {}: {} has no value '{}'", m.id, d.id, d.name, d.choice));
      choices[d.name] = d.choice;
    }
    if (const Status can = check_choices(blueprint, choices, names); !can)
      return fail(Code::bad_input, fmt::format("after {} the choices cannot be built: {}", m.id, can.error().text()));
  }
  return {};
}

Result<std::optional<Plan>> ModelArchitect::converse(const std::string& purpose, const PlanRequest& request, const std::string& brief,
                                                     int revision, bool may_end) {
  ModelRequest asked;
  asked.system = m_options.instructions;
  asked.tools = plan_tools(may_end);
  asked.messages.push_back({.from_model = false, .blocks = {{.kind = Kind::text, .text = brief, .id = {}, .tool = {}}}});
  std::string wrong;
  for (int attempt = 0; attempt < kPlanTries; ++attempt) {
    if (m_meter.spent(m_options.budget)) return fail(Code::crashed, "the architect's budget of tokens or dollars is spent");
    asked.max_output = std::min(asked.max_output, m_meter.tokens_left(m_options.budget));
    FORGE_TRY_ASSIGN(const ModelReply reply, ask(purpose, revision, attempt, asked));
    std::vector<ModelBlock> answers;
    wrong = "no tool was called; call propose_plan";
    for (const ModelBlock& block : reply.blocks) {
      if (block.kind != Kind::tool_call) continue;
      if (block.tool == "no_further_plan" && may_end) return std::optional<Plan>();
      auto plan = block.tool == "propose_plan" ? read_proposed_plan(block.text, request, revision)
                                               : Result<Plan>(fail(Code::bad_input, "there is no tool " + block.tool));
      if (plan)
        if (const Status valid = check(*plan, request); !valid) plan = tl::unexpected(valid.error());
      if (plan) return std::optional<Plan>(std::move(*plan));
      wrong = plan.error().text();
      answers.push_back({.kind = Kind::tool_result, .text = "not valid: " + wrong, .id = block.id, .tool = block.tool, .error = true});
    }
    if (answers.empty()) answers.push_back({.kind = Kind::text, .text = "not valid: " + wrong, .id = {}, .tool = {}});
    asked.messages.push_back({.from_model = true, .blocks = reply.blocks});
    asked.messages.push_back({.from_model = false, .blocks = std::move(answers)});
  }
  return fail(Code::crashed, fmt::format("the architect gave no valid plan in {} tries; the last: {}", kPlanTries, wrong));
}

}  // namespace

std::unique_ptr<ArchitectureAgent> make_model_architect(std::unique_ptr<Model> model, Journal& journal, Meter& meter,
                                                        ModelArchitectOptions options) {
  return std::make_unique<ModelArchitect>(std::move(model), journal, meter, std::move(options));
}

}  // namespace forge
