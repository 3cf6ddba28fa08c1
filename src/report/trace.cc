// SPDX-License-Identifier: Apache-2.0
// run > milestone (invoke_agent) > turn (chat, where a model sits there) and its calls (execute_tool) > what the gate did for a call.
#include "report/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <deque>

#include "core/loose_json.h"
#include "core/package.h"
#include "core/version.h"
#include "util/hash.h"
#include "util/text.h"

namespace forge {

namespace {

constexpr int kInternal = 1, kClient = 3;  // span kinds of OTLP
constexpr int kError = 2;                  // status code

std::int64_t whole(const Json& j) { return j.is_number() ? j.get<std::int64_t>() : 0; }

Json attribute(const char* key, const Json& value) {
  Json wrapped;
  if (value.is_boolean())
    wrapped["boolValue"] = value;
  else if (value.is_number_integer())
    wrapped["intValue"] = std::to_string(value.get<std::int64_t>());  // OTLP's JSON writes 64-bit integers as texts
  else if (value.is_number())
    wrapped["doubleValue"] = value;
  else if (value.is_array())
    for (const Json& v : value) wrapped["arrayValue"]["values"].push_back({{"stringValue", text_of(v)}});
  else
    wrapped["stringValue"] = text_of(value);
  return {{"key", key}, {"value", wrapped}};
}

// Of a seat, as the task names it: "anthropic:MODEL@URL", "command:NAME@MODEL", "builtin".
struct Seat {
  std::string name, provider, model, server;
};

Seat seat_of(const std::string& spec) {
  Seat s;
  const std::size_t colon = spec.find(':');
  const std::string kind = spec.substr(0, colon), rest = colon == std::string::npos ? "" : spec.substr(colon + 1);
  const std::size_t behind = rest.find('@');
  const std::string front = rest.substr(0, behind), back = behind == std::string::npos ? "" : rest.substr(behind + 1);
  s.name = front.empty() ? kind : front;
  if (kind == "command") s.model = back;
  if (kind != "anthropic" && kind != "openai") return s;
  s.provider = kind, s.model = front;
  const std::size_t scheme = back.find("://");
  const std::string host = scheme == std::string::npos ? back : back.substr(scheme + 3);
  s.server = !host.empty() ? host.substr(0, host.find_first_of(":/")) : kind == "anthropic" ? "api.anthropic.com" : "api.openai.com";
  return s;
}

struct Span {
  std::string key, parent;  // keys; ids are made from them
  std::string name;
  int kind = kInternal;
  double start = 0, end = 0;  // seconds since 1970
  Json attributes = Json::array(), events = Json::array();
  std::string error, error_type;
  void add(const char* attribute_key, const Json& value) {
    if (!value.is_null() && !(value.is_string() && value.get<std::string>().empty())) attributes.push_back(attribute(attribute_key, value));
  }
};

std::string nanoseconds(double seconds) { return std::to_string(static_cast<std::int64_t>(seconds * 1e6) * 1000); }

double utc_seconds(const std::string& time) {
  std::tm parts{};
  return strptime(time.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts) ? static_cast<double>(timegm(&parts)) : 0;
}

class Tracer {
 public:
  Result<std::string> trace(const std::vector<Event>&);

 private:
  struct Moment {
    const Event& event;
    Json request, response;
    double start, end;
    std::string milestone;  // key of the span that it lies in
  };
  struct OpenCall {
    Span* span;
    std::string tool, arguments;
    std::vector<std::string> packages;  // hashes
  };

  Span& open(std::string key, std::string parent, std::string name, double start, double end) {
    return m_spans.emplace_back(
        Span{.key = std::move(key), .parent = std::move(parent), .name = std::move(name), .start = start, .end = end});
  }
  void start_milestone(const Moment&);
  void end_milestone(const Moment&);
  void turn(const Moment&);
  void ask(const Moment&);
  void step(const Moment&);
  void finish_run(const Moment&);
  void add_use(Span&, const Json& use);
  Span* call_of(const Moment&);
  std::vector<std::string> packages_of(const Json& arguments) const;
  std::string id(const std::string& key, std::size_t digits) const { return sha256_hex(m_run + "/" + key).substr(0, digits); }
  Json span_json(const Span&) const;

  std::string m_run, m_source_name = "kernel.cpp";
  Seat m_architect, m_coder;
  std::deque<Span> m_spans;  // whose addresses stay
  Span* m_milestone = nullptr;
  Span* m_planning = nullptr;  // the architect's conversation that is going on
  std::string m_planning_key;
  std::vector<OpenCall> m_calls;  // of the last turn, not yet matched with what was done for them
};

void Tracer::add_use(Span& span, const Json& use) {
  if (!use.is_object()) return;
  const std::int64_t read = whole(field_of(use, "cache_read")), written = whole(field_of(use, "cache_write"));
  const std::int64_t input = whole(field_of(use, "input")) + read + written, output = whole(field_of(use, "output"));
  if (input + output == 0) return;
  span.add("gen_ai.usage.input_tokens", input);  // cached ones included, as the conventions want it
  span.add("gen_ai.usage.output_tokens", output);
  if (read > 0) span.add("gen_ai.usage.cache_read.input_tokens", read);
  if (written > 0) span.add("gen_ai.usage.cache_creation.input_tokens", written);
  if (field_of(use, "dollars").is_number() && use["dollars"] > 0) span.add("forge.dollars", use["dollars"].get<double>());
  if (field_of(use, "estimated") == Json(true)) span.add("forge.usage.estimated", true);
}

void add_model(Span& span, const Seat& seat, const Json& reply, const std::string& conversation) {
  span.kind = kClient;
  span.add("gen_ai.operation.name", "chat");
  span.add("gen_ai.provider.name", seat.provider);
  span.add("gen_ai.request.model", seat.model);
  span.add("gen_ai.response.model", field_of(reply, "model"));
  if (field_of(reply, "end").is_string()) span.add("gen_ai.response.finish_reasons", Json::array({reply["end"]}));
  span.add("gen_ai.conversation.id", conversation);
  span.add("server.address", seat.server);
}

void Tracer::start_milestone(const Moment& m) {
  m_milestone = &open(fmt::format("milestone/{}", m.event.seq), "run", "invoke_agent " + m_coder.name, m.start, m.end);
  m_milestone->add("gen_ai.operation.name", "invoke_agent");
  m_milestone->add("gen_ai.agent.name", m_coder.name);
  m_milestone->add("gen_ai.provider.name", m_coder.provider.empty() ? "forge" : m_coder.provider);
  m_milestone->add("gen_ai.request.model", m_coder.model);
  for (const auto& [key, name] : {std::pair("milestone", "forge.milestone"), {"revision", "forge.revision"}, {"title", "forge.title"}})
    m_milestone->add(name, field_of(m.request, key));
}

void Tracer::end_milestone(const Moment& m) {
  m_calls.clear();
  if (!m_milestone) return;
  m_milestone->end = m.end;
  m_milestone->add("forge.end", field_of(m.request, "end"));
  m_milestone = nullptr;
}

std::vector<std::string> Tracer::packages_of(const Json& arguments) const {
  std::vector<std::string> hashes;
  const auto add = [&](const Json& package) {
    if (!field_of(package, "source").is_string() || !field_of(package, "plan").is_string()) return;
    KernelPackage p;
    p.source_name = m_source_name, p.source = text_of(package["source"]), p.plan_text = text_of(package["plan"]);
    hashes.push_back(package_hash(p));
  };
  add(arguments);
  if (field_of(arguments, "packages").is_array())
    for (const Json& package : arguments["packages"]) add(package);
  return hashes;
}

void Tracer::turn(const Moment& m) {
  m_calls.clear();
  const Json said = Json::parse(text_of(field_of(m.response, "said")), nullptr, false);
  const bool model = !m_coder.provider.empty();
  Span& span =
      open(fmt::format("turn/{}", m.event.seq), m.milestone, model ? "chat " + m_coder.model : "turn " + m_coder.name, m.start, m.end);
  if (model)
    add_model(span, m_coder, said,
              fmt::format("{}/{}/{}", m_run, text_of(field_of(m.request, "milestone")), text_of(field_of(m.request, "attempt"))));
  else
    span.add("gen_ai.agent.name", m_coder.name);
  add_use(span, field_of(m.response, "use"));
  // A model that did not answer said nothing; that it ended is in its own words.
  if (model && field_of(m.response, "ended") == Json(true) && text_of(field_of(m.response, "said")).empty())
    span.error = text_of(field_of(m.response, "why")), span.error_type = "_OTHER";
  if (!field_of(m.response, "calls").is_array()) return;
  int n = 0;
  for (const Json& call : m.response["calls"]) {
    const std::string tool = text_of(field_of(call, "tool"));
    Span& done = open(fmt::format("call/{}/{}", m.event.seq, n++), m.milestone, "execute_tool " + tool, m.end, m.end);
    done.add("gen_ai.operation.name", "execute_tool");
    done.add("gen_ai.tool.name", tool);
    done.add("gen_ai.tool.type", "function");
    done.add("gen_ai.tool.call.id", field_of(call, "id"));
    const std::string arguments = text_of(field_of(call, "arguments"));
    m_calls.push_back({&done, tool, arguments, packages_of(Json::parse(arguments, nullptr, false))});
  }
}

// Which call of the last turn the gate or the knowledge base worked for; calls that were refused have no event.
Span* Tracer::call_of(const Moment& m) {
  static const std::vector<std::pair<const char*, const char*>> kDone{{"gate.submit", "submit"}, {"gate.reuse", "submit"},
                                                                      {"gate.check", "check"},   {"gate.examine", "build"},
                                                                      {"gate.time", "time"},     {"agent.finding", "propose_finding"}};
  std::string tool = m.event.type == "agent.tool" ? text_of(field_of(m.request, "tool")) : "";
  for (const auto& [type, name] : kDone)
    if (m.event.type == type) tool = name;
  std::vector<std::string> hashes;
  for (const char* key : {"sha", "package"})
    if (field_of(m.request, key).is_string()) hashes.push_back(text_of(m.request[key]));
  if (field_of(m.request, "packages").is_array())
    for (const Json& sha : m.request["packages"]) hashes.push_back(text_of(sha));
  for (auto call = m_calls.begin(); call != m_calls.end(); ++call) {
    if (tool.empty() || call->tool != tool) continue;
    if (m.event.type == "agent.tool" && call->arguments != text_of(field_of(m.request, "arguments"))) continue;
    const auto known = [&](const std::string& h) { return std::find(hashes.begin(), hashes.end(), h) != hashes.end(); };
    if (!hashes.empty() && !std::all_of(call->packages.begin(), call->packages.end(), known)) continue;
    if (!hashes.empty() && call->packages.empty() && tool != "time") continue;  // one without a package was refused
    Span* found = call->span;
    m_calls.erase(m_calls.begin(), call + 1);  // calls are answered in order
    return found;
  }
  return nullptr;
}

void Tracer::ask(const Moment& m) {
  const std::string key = text_of(field_of(m.request, "purpose")) + "/" + text_of(field_of(m.request, "revision"));
  if (!m_planning || m_planning_key != key) {
    m_planning_key = key;
    m_planning = &open(fmt::format("planning/{}", m.event.seq), "run", "invoke_agent " + m_architect.name, m.start, m.end);
    m_planning->add("gen_ai.operation.name", "invoke_agent");
    m_planning->add("gen_ai.agent.name", m_architect.name);
    m_planning->add("gen_ai.provider.name", m_architect.provider);
    m_planning->add("gen_ai.request.model", m_architect.model);
    m_planning->add("forge.purpose", field_of(m.request, "purpose"));
    m_planning->add("forge.revision", field_of(m.request, "revision"));
  }
  m_planning->end = m.end;
  Span& span = open(fmt::format("ask/{}", m.event.seq), m_planning->key, "chat " + m_architect.model, m.start, m.end);
  add_model(span, m_architect, field_of(m.response, "reply"), fmt::format("{}/architect/{}", m_run, key));
  add_use(span, field_of(m.response, "use"));
  if (const std::string error = text_of(field_of(m.response, "error")); !error.empty()) span.error = error, span.error_type = "_OTHER";
}

// Whatever took time, or was done for a call.
void Tracer::step(const Moment& m) {
  Span* call = call_of(m);
  if (call) call->start = m.start, call->end = m.end;
  if (m.response.is_null()) return;  // a decision takes no time
  Span& span = open(fmt::format("step/{}", m.event.seq), call ? call->key : m.milestone, m.event.type, m.start, m.end);
  span.add("forge.event", m.event.seq);
  span.add("forge.reason", field_of(m.response, "reason"));
  span.add("forge.purpose", field_of(m.request, "purpose"));
  if (m.event.type == "agent.settle") add_use(span, field_of(m.response, "use"));
  if (const std::string error = text_of(field_of(m.response, "error")); field_of(m.response, "error").is_string()) span.error = error;
}

void Tracer::finish_run(const Moment& m) {
  Span& run = m_spans.front();
  for (const auto& [key, name] : {std::pair("stop", "forge.stop"), {"speedup", "forge.speedup"}, {"sealed", "forge.sealed"}})
    run.add(name, field_of(m.request, key));
}

Json Tracer::span_json(const Span& s) const {
  Json j{{"traceId", id("trace", 32)}, {"spanId", id(s.key, 16)}};
  if (!s.parent.empty()) j["parentSpanId"] = id(s.parent, 16);
  j["name"] = s.name, j["kind"] = s.kind;
  j["startTimeUnixNano"] = nanoseconds(s.start), j["endTimeUnixNano"] = nanoseconds(s.end);
  j["attributes"] = s.attributes;
  if (!s.error_type.empty()) j["attributes"].push_back(attribute("error.type", s.error_type));
  if (!s.events.empty()) j["events"] = s.events;
  j["status"] = Json::object();
  if (!s.error.empty()) j["status"] = {{"code", kError}, {"message", utf8_head(s.error, 500)}};
  return j;
}

Result<std::string> Tracer::trace(const std::vector<Event>& events) {
  if (events.empty() || events.front().type != "run.start") return fail(Code::bad_input, "the journal does not begin with run.start");
  const Json start = Json::parse(events.front().request, nullptr, false);
  const Json began = Json::parse(events.front().response, nullptr, false);
  const Json& task = field_of(start, "task");
  m_run = text_of(field_of(start, "run"));
  m_architect = seat_of(text_of(field_of(task, "architect"))), m_coder = seat_of(text_of(field_of(task, "coder")));
  if (text_of(field_of(task, "target")).starts_with("cuda")) m_source_name = "kernel.cu";

  double now = utc_seconds(events.front().time);
  Span& run = open("run", "", "invoke_workflow " + text_of(field_of(task, "operator")), now, now);
  run.add("gen_ai.operation.name", "invoke_workflow");
  run.add("gen_ai.workflow.name", field_of(task, "operator"));
  for (const auto& [key, name] : {std::pair("target", "forge.target"), {"reference", "forge.reference"}})
    run.add(name, field_of(task, key));
  run.add("forge.run", m_run);
  for (const Event& e : events) {
    const double begin = now;
    // Never later than it was: the clock's whole second is rounded down, and what came before cannot have ended later.
    now = std::max(begin + std::max(0.0, e.seconds), utc_seconds(e.time));
    const Moment m{e,   Json::parse(e.request, nullptr, false), Json::parse(e.response, nullptr, false), now - std::max(0.0, e.seconds),
                   now, m_milestone ? m_milestone->key : "run"};
    if (e.type != "agent.ask") m_planning = nullptr;
    if (e.type == "milestone.start")
      start_milestone(m);
    else if (e.type == "milestone.end")
      end_milestone(m);
    else if (e.type == "agent.turn")
      turn(m);
    else if (e.type == "agent.ask")
      ask(m);
    else if (e.type == "run.end")
      finish_run(m);
    else if (e.type == "plan" || e.type == "plan.none" || e.type == "run.stop")
      m_spans.front().events.push_back(
          {{"timeUnixNano", nanoseconds(m.end)}, {"name", e.type}, {"attributes", Json::array({attribute("forge.event", e.seq)})}});
    else if (e.type != "run.start" && e.type != "agent.brief")
      step(m);
  }
  m_spans.front().end = now;
  if (m_milestone) m_milestone->end = now;  // stopped or killed in the middle of it
  Json spans = Json::array();
  for (const Span& s : m_spans) spans.push_back(span_json(s));
  const Json resource{
      {"attributes", {attribute("service.name", "forge"), attribute("service.version", text_of(field_of(began, "forge")))}}};
  const Json scope{{"scope", {{"name", "forge"}, {"version", forge_version()}}}, {"spans", std::move(spans)}};
  return dump(Json{{"resourceSpans", {{{"resource", resource}, {"scopeSpans", Json::array({scope})}}}}}) + "\n";
}

}  // namespace

Result<std::string> render_trace(const std::vector<Event>& events) { return Tracer().trace(events); }

}  // namespace forge
