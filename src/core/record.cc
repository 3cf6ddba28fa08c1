// SPDX-License-Identifier: Apache-2.0
// Tasks, packages, machines and generations as JSON. Layout: docs/formats/record.md.
#include "core/record.h"

#include <fmt/format.h>

#include <cmath>

#include "core/json_reader.h"

namespace forge {
namespace {

Budget get_budget(JsonReader r) {
  Budget b;
  r.maybe("candidates", b.candidates);
  r.maybe("gate_seconds", b.gate_seconds);
  r.maybe("wall_seconds", b.wall_seconds);
  r.maybe("tokens", b.tokens);
  r.maybe("dollars", b.dollars);
  r.check(b.candidates >= 0, "candidates", "must not be negative");
  r.check(b.gate_seconds >= 0, "gate_seconds", "must not be negative");
  r.check(b.wall_seconds >= 0, "wall_seconds", "must not be negative");
  r.check(b.tokens >= 0, "tokens", "must not be negative");
  r.check(b.dollars >= 0, "dollars", "must not be negative");
  return b;
}

bool is_reference(const std::string& r) {
  const auto named = [&](std::string_view kind) { return r.size() > kind.size() && r.starts_with(kind); };
  return r == "none" || r == "expert" || named("expert:") || named("gen:") || named("package:");
}

TargetSpec get_target(JsonReader r) {
  TargetSpec t;
  r.need("name", t.name);
  r.need("family", t.family);
  r.need("vector_bits", t.vector_bits);
  r.need("flags", t.flags);
  return t;
}

Machine get_machine(JsonReader r) {
  Machine m;
  m.target = get_target(r.need_object("target"));
  r.need("model", m.model);
  r.need("device_class", m.device_class);
  r.need("boot_id", m.boot_id);
  r.need("cores", m.cores);
  r.need("properties", m.properties);
  JsonReader c = r.need_object("ceilings");
  c.need("gflops", m.ceilings.gflops);
  c.need("read_gbs", m.ceilings.read_gbs);
  c.need("copy_gbs", m.ceilings.copy_gbs);
  r.need("environment", m.environment);
  return m;
}

}  // namespace

const char* name(Stop stop) {
  switch (stop) {
    case Stop::goal:
      return "goal";
    case Stop::exhausted:
      return "exhausted";
    case Stop::plateau:
      return "plateau";
    case Stop::blocked:
      return "blocked";
    case Stop::budget:
      return "budget";
    case Stop::enough:
      return "enough";
    case Stop::user:
      break;
  }
  return "user";
}

Json to_json_value(const Budget& b) {
  return Json{{"candidates", b.candidates},
              {"gate_seconds", number(b.gate_seconds)},
              {"wall_seconds", number(b.wall_seconds)},
              {"tokens", b.tokens},
              {"dollars", number(b.dollars)}};
}

Json to_json_value(const Task& t) {
  return Json{{"format", 1},
              {"operator", t.operator_name},
              {"target", t.target},
              {"reference", t.reference},
              {"goal", number(t.goal)},
              {"budget", to_json_value(t.budget)},
              {"seed", t.seed},
              {"revise", t.revise},
              {"knowledge", t.knowledge},
              {"plan", t.plan},
              {"disassembly", t.disassembly},
              {"plan_template", t.plan_template},
              {"show_reference", t.show_reference},
              {"architect", t.architect},
              {"coder", t.coder}};
}

Task get_task(JsonReader r) {
  Task t;
  r.format(1);
  r.need_text("operator", t.operator_name);
  r.need_text("target", t.target);
  r.need("reference", t.reference);
  if (r.has("reference"))
    r.check(is_reference(t.reference), "reference",
            fmt::format("'{}' is none of expert, expert:<name>, gen:<sha prefix>, package:<folder>, none", t.reference));
  r.maybe("goal", t.goal);
  r.check(std::isfinite(t.goal) && t.goal >= 0, "goal", "must be finite and not negative");
  t.budget = get_budget(r.object("budget"));
  r.maybe("seed", t.seed);
  r.maybe("revise", t.revise);
  r.maybe("knowledge", t.knowledge);
  r.maybe("plan", t.plan);
  r.maybe("disassembly", t.disassembly);
  r.maybe("plan_template", t.plan_template);
  r.maybe("show_reference", t.show_reference);
  r.maybe("architect", t.architect);
  r.maybe("coder", t.coder);
  return t;
}

std::string task_to_json(const Task& t) { return dump(to_json_value(t), 2); }
Result<Task> parse_task(const std::string& json, const std::string& file) { return parse_with(get_task, json, file); }
Result<Task> read_task(const Json& json, const std::string& where) { return read_with(get_task, json, where); }

Json to_json_value(const KernelPackage& p) {
  return Json{{"source_name", p.source_name}, {"source", p.source}, {"plan", p.plan_text}, {"origin", p.origin}};
}

KernelPackage get_package(JsonReader r) {
  KernelPackage p;
  r.need("source_name", p.source_name);
  r.check(p.source_name.find('/') == std::string::npos && p.source_name != ".." && !p.source_name.empty(), "source_name",
          "must be a file name without a folder");
  r.need("source", p.source);
  r.need("plan", p.plan_text);
  r.need("origin", p.origin);
  return p;
}

Result<KernelPackage> read_package(const Json& json, const std::string& where) { return read_with(get_package, json, where); }

Json to_json_value(const Machine& m) {
  return Json{
      {"target", {{"name", m.target.name}, {"family", m.target.family}, {"vector_bits", m.target.vector_bits}, {"flags", m.target.flags}}},
      {"model", m.model},
      {"device_class", m.device_class},
      {"boot_id", m.boot_id},
      {"cores", m.cores},
      {"properties", m.properties},
      {"ceilings",
       {{"gflops", number(m.ceilings.gflops)}, {"read_gbs", number(m.ceilings.read_gbs)}, {"copy_gbs", number(m.ceilings.copy_gbs)}}},
      {"environment", m.environment}};
}

Result<Machine> read_machine(const Json& json, const std::string& where) { return read_with(get_machine, json, where); }

Json to_json_value(const Generation& g) {
  Json decisions = Json::array();
  for (const auto& [decision, value] : g.decisions) decisions.push_back({{"name", decision}, {"value", value}});
  Json j{{"format", 1},
         {"id", g.id},
         {"number", g.number},
         {"operator", g.operator_name},
         {"target", g.target},
         {"run", g.run_id},
         {"date", g.date},
         {"parent", g.parent},
         {"expert", g.expert},
         {"machine", g.machine},
         {"cites", g.cites},
         {"adopted", g.adopted},
         {"decisions", std::move(decisions)},
         {"package", to_json_value(g.package)},
         {"image_sha", g.image_sha},
         {"verdict", to_json_value(g.verdict)}};
  if (g.against_expert) j["against_expert"] = to_json_value(*g.against_expert);
  return j;
}

Generation get_generation(JsonReader r) {
  Generation g;
  r.format(1);
  r.need_text("id", g.id);
  r.need("number", g.number);
  r.check(g.number >= 0, "number", "must not be negative");
  r.need_text("operator", g.operator_name);
  r.need_text("target", g.target);
  r.need("run", g.run_id);
  r.need("date", g.date);
  r.need("parent", g.parent);
  r.need("expert", g.expert);
  r.need("machine", g.machine);
  r.need("cites", g.cites);
  r.need("adopted", g.adopted);
  for (JsonReader& row : r.need_objects("decisions")) {
    auto& d = g.decisions.emplace_back();
    row.need("name", d.first);
    row.need("value", d.second);
  }
  g.package = get_package(r.need_object("package"));
  r.need("image_sha", g.image_sha);
  g.verdict = get_verdict(r.need_object("verdict"));
  if (r.has("against_expert")) g.against_expert = get_paired_timing(r.object("against_expert"));
  return g;
}

std::string generation_to_json(const Generation& g) { return dump(to_json_value(g), 2); }
Result<Generation> parse_generation(const std::string& json, const std::string& file) { return parse_with(get_generation, json, file); }
Result<Generation> read_generation(const Json& json, const std::string& where) { return read_with(get_generation, json, where); }

}  // namespace forge
