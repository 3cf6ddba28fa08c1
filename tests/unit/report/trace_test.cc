// SPDX-License-Identifier: Apache-2.0
#include "report/trace.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "core/json_io.h"
#include "core/package.h"

namespace forge {
namespace {

constexpr const char* kAt = "2026-11-30T10:00:00Z";

std::string sha_of(const char* source) {
  KernelPackage p;
  p.source_name = "kernel.cpp", p.source = source, p.plan_text = "plan";
  return package_hash(p);
}

// An architect that fails once, a coder whose first hand-in is refused as it stands and whose second the gate judges.
std::vector<Event> traced_run() {
  const std::string calls =
      R"([{"id":"c1","tool":"submit","arguments":"{\"source\": \"secret words"},{"id":"c2","tool":"submit","arguments":"{\"source\":\"a\",\"plan\":\"plan\"}"},)"
      R"({"id":"c3","tool":"read_knowledge","arguments":"{\"id\":\"x\"}"}])";
  return {
      {1, kAt, "run.start",
       R"({"run":"r1","task":{"operator":"softmax_f32","target":"cpu:x86-64-avx2","reference":"none","architect":"anthropic:big","coder":"openai:small@http://127.0.0.1:8000/v1"}})",
       R"({"forge":"0.1.0"})", 0},
      {2, "2026-11-30T10:00:02Z", "agent.ask", R"({"purpose":"plan","revision":0,"attempt":0})", R"({"error":"HTTP 500"})", 1.5},
      {3, "2026-11-30T10:00:03Z", "agent.ask", R"({"purpose":"plan","revision":0,"attempt":1})",
       R"({"reply":{"blocks":[],"end":"tool_calls","model":"big-1"},"use":{"input":5,"cache_read":10,"cache_write":20,"output":7,"dollars":0.5}})",
       1},
      {4, "2026-11-30T10:00:03Z", "plan", R"({"revision":0})", "null", 0},
      {5, "2026-11-30T10:00:03Z", "milestone.start", R"({"revision":0,"milestone":"M0","title":"t"})", "null", 0},
      {6, "2026-11-30T10:00:05Z", "agent.turn", R"({"milestone":"M0","attempt":0,"turn":0})",
       R"({"calls":)" + calls +
           R"(,"ended":false,"why":"","said":"{\"blocks\":[],\"end\":\"tool_calls\",\"model\":\"small\"}","use":{"input":100,"cache_read":0,"cache_write":0,"output":9,"dollars":0.0}})",
       2},
      {7, "2026-11-30T10:00:09Z", "gate.submit", fmt::format(R"({{"n":0,"sha":"{}"}})", sha_of("a")), R"({"reason":"accepted"})", 3.25},
      {8, "2026-11-30T10:00:09Z", "milestone.end", R"({"revision":0,"milestone":"M0","end":"accepted","why":""})", "null", 0},
      {9, "2026-11-30T10:00:10Z", "gate.confirm", R"({"package":"ff"})", R"({"reason":"accepted"})", 1},
      {10, "2026-11-30T10:00:10Z", "run.end", R"({"stop":"goal","speedup":1.5,"sealed":true})", "null", 0},
  };
}

struct Spans {
  std::vector<Json> all;
  const Json& named(const std::string& name, std::size_t n = 0) const {
    for (const Json& s : all)
      if (s["name"] == name && n-- == 0) return s;
    static const Json none = Json::object();
    ADD_FAILURE() << "no span " << name;
    return none;
  }
};

Spans spans_of(const std::string& line) {
  const Json j = Json::parse(line);
  Spans out;
  for (const Json& s : j["resourceSpans"][0]["scopeSpans"][0]["spans"]) out.all.push_back(s);
  return out;
}

std::string value(const Json& span, const std::string& key) {
  for (const Json& a : span["attributes"])
    if (a["key"] == key) return a["value"].begin().value().is_string() ? a["value"].begin().value().get<std::string>() : dump(a["value"]);
  return "absent";
}

double seconds(const Json& span) {
  return static_cast<double>(std::stoll(span["endTimeUnixNano"].get<std::string>()) -
                             std::stoll(span["startTimeUnixNano"].get<std::string>())) /
         1e9;
}

TEST(Trace, IsOneLineAndTheSameEveryTime) {
  const auto line = render_trace(traced_run());
  ASSERT_TRUE(line) << line.error().text();
  EXPECT_EQ(line->find('\n'), line->size() - 1);
  EXPECT_EQ(*line, *render_trace(traced_run()));
}

TEST(Trace, EverySpanHasItsOwnIdAndAParentThatSpansIt) {
  const Spans spans = spans_of(*render_trace(traced_run()));
  std::map<std::string, const Json*> by_id;
  for (const Json& s : spans.all) {
    EXPECT_EQ(s["traceId"].get<std::string>().size(), 32u);
    EXPECT_EQ(s["spanId"].get<std::string>().size(), 16u);
    EXPECT_TRUE(by_id.emplace(s["spanId"].get<std::string>(), &s).second) << s["name"];
  }
  int roots = 0;
  for (const Json& s : spans.all) {
    if (!s.contains("parentSpanId")) {
      ++roots;
      continue;
    }
    const auto parent = by_id.find(s["parentSpanId"].get<std::string>());
    ASSERT_NE(parent, by_id.end()) << s["name"];
    EXPECT_LE((*parent->second)["startTimeUnixNano"].get<std::string>(), s["startTimeUnixNano"].get<std::string>()) << s["name"];
    EXPECT_GE((*parent->second)["endTimeUnixNano"].get<std::string>(), s["endTimeUnixNano"].get<std::string>()) << s["name"];
  }
  EXPECT_EQ(roots, 1);
}

TEST(Trace, ModelsAreToldOfByTheConventions) {
  const Spans spans = spans_of(*render_trace(traced_run()));
  const Json& chat = spans.named("chat small");
  EXPECT_EQ(chat["kind"], 3);
  EXPECT_EQ(value(chat, "gen_ai.operation.name"), "chat");
  EXPECT_EQ(value(chat, "gen_ai.provider.name"), "openai");
  EXPECT_EQ(value(chat, "gen_ai.request.model"), "small");
  EXPECT_EQ(value(chat, "server.address"), "127.0.0.1");
  EXPECT_EQ(value(chat, "gen_ai.usage.input_tokens"), "100");
  EXPECT_EQ(value(chat, "gen_ai.usage.output_tokens"), "9");
  EXPECT_DOUBLE_EQ(seconds(chat), 2);
  const Json& agent = spans.named("invoke_agent small");
  EXPECT_EQ(chat["parentSpanId"], agent["spanId"]);
  EXPECT_EQ(value(agent, "forge.end"), "accepted");
  const Json& second = spans.named("chat big", 1);
  EXPECT_EQ(value(second, "gen_ai.usage.input_tokens"), "35") << "with what was read from and written to a cache";
  EXPECT_EQ(value(second, "gen_ai.response.model"), "big-1");
  EXPECT_EQ(value(second, "server.address"), "api.anthropic.com");
  EXPECT_EQ(second["parentSpanId"], spans.named("chat big", 0)["parentSpanId"]) << "one conversation";
}

TEST(Trace, WhatFailedIsAnError) {
  const Spans spans = spans_of(*render_trace(traced_run()));
  EXPECT_EQ(spans.named("chat big", 0)["status"]["code"], 2);
  EXPECT_EQ(value(spans.named("chat big", 0), "error.type"), "_OTHER");
  EXPECT_TRUE(spans.named("chat big", 1)["status"].empty());
}

TEST(Trace, TheGatesWorkBelongsToTheCallThatAskedForIt) {
  const Spans spans = spans_of(*render_trace(traced_run()));
  const Json &refused = spans.named("execute_tool submit", 0), &judged = spans.named("execute_tool submit", 1);
  EXPECT_EQ(value(judged, "gen_ai.tool.call.id"), "c2");
  EXPECT_EQ(spans.named("gate.submit")["parentSpanId"], judged["spanId"]);
  EXPECT_EQ(value(spans.named("gate.submit"), "forge.reason"), "accepted");
  EXPECT_DOUBLE_EQ(seconds(judged), 3.25);
  EXPECT_DOUBLE_EQ(seconds(refused), 0);
  EXPECT_EQ(value(spans.named("execute_tool read_knowledge"), "gen_ai.tool.name"), "read_knowledge");
}

TEST(Trace, ArgumentsStayInTheJournal) { EXPECT_EQ(render_trace(traced_run())->find("secret words"), std::string::npos); }

TEST(Trace, ARunThatWasKilledHasWhatThereIs) {
  std::vector<Event> events = traced_run();
  events.resize(6);
  const auto line = render_trace(events);
  ASSERT_TRUE(line);
  EXPECT_DOUBLE_EQ(seconds(spans_of(*line).named("invoke_agent small")), 2);
}

TEST(Trace, WhatIsNoRunIsAnError) {
  EXPECT_EQ(render_trace({}).error().code, Code::bad_input);
  EXPECT_EQ(render_trace({{1, kAt, "plan", "{}", "null", 0}}).error().code, Code::bad_input);
  EXPECT_TRUE(render_trace({{1, "garbage", "run.start", "[]", "7", 0}, {2, "", "agent.turn", "null", R"({"calls":[3,{}]})", -1}}));
}

}  // namespace
}  // namespace forge
