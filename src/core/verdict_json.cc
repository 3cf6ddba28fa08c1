// SPDX-License-Identifier: Apache-2.0
// Verdicts, measurements, diagnostics and noise floors as JSON. Layout: docs/formats/record.md. Resume and replay read these back:
// what is read must equal what was written, bit for bit in every double.
#include "core/json_reader.h"

namespace forge {
namespace {

constexpr std::initializer_list<Comparison> kComparisons = {Comparison::faster, Comparison::same, Comparison::slower,
                                                            Comparison::ambiguous};

Json numbers(const std::vector<double>& values) {
  Json out = Json::array();
  for (double v : values) out.push_back(number(v));
  return out;
}

Json to_json_value(const CorrectnessReport& c) {
  return Json{{"checks", c.checks},
              {"elements", c.elements},
              {"worst", number(c.worst)},
              {"worst_where", c.worst_where},
              {"workloads", c.workloads}};
}

CorrectnessReport get_correctness(JsonReader r) {
  CorrectnessReport c;
  r.need("checks", c.checks);
  r.need("elements", c.elements);
  r.need("worst", c.worst);
  r.need("worst_where", c.worst_where);
  r.need("workloads", c.workloads);
  return c;
}

Json to_json_value(const GateTimes& t) {
  return Json{{"build", number(t.build)},   {"admit", number(t.admit)}, {"correctness", number(t.correctness)},
              {"timing", number(t.timing)}, {"total", number(t.total)}, {"waited", number(t.waited)},
              {"oracle", number(t.oracle)}};
}

GateTimes get_times(JsonReader r) {
  GateTimes t;
  r.need("build", t.build);
  r.need("admit", t.admit);
  r.need("correctness", t.correctness);
  r.need("timing", t.timing);
  r.need("total", t.total);
  r.need("waited", t.waited);
  r.maybe("oracle", t.oracle);
  return t;
}

Measurement get_measurement(JsonReader r) {
  Measurement m;
  for (JsonReader& pair : r.need_objects("pairs")) m.pairs.push_back(get_paired_timing(pair));
  r.need("seconds", m.seconds);
  m.floor = get_noise_floor(r.need_object("floor"));
  r.need("conditions", m.conditions);
  return m;
}

// Keeps the type's promise: nothing that reads as accepted lacks its report and its measurement.
Verdict make_verdict(Reason reason, std::string detail, std::optional<CorrectnessReport> correctness,
                     std::optional<Measurement> measurement, JsonReader& r) {
  if (reason == Reason::accepted) {
    r.check(correctness.has_value(), "correctness", "an accepted verdict has a correctness report");
    r.check(measurement.has_value(), "measurement", "an accepted verdict has a measurement");
    if (correctness && measurement) return Verdict::passed(std::move(*correctness), std::move(*measurement));
    return Verdict::rejected(Reason::runner_broke, "");
  }
  r.check(correctness || !measurement, "measurement", "only a correct kernel has a measurement");
  if (correctness) return Verdict::missed(reason, std::move(detail), std::move(*correctness), std::move(measurement));
  return Verdict::rejected(reason, std::move(detail));
}

}  // namespace

Json to_json_value(const Interval& i) { return Json{{"low", number(i.low)}, {"mid", number(i.mid)}, {"high", number(i.high)}}; }

Interval get_interval(JsonReader r) {
  Interval i;
  r.need("low", i.low);
  r.need("mid", i.mid);
  r.need("high", i.high);
  return i;
}

Json to_json_value(const NoiseFloor& f) {
  return Json{{"ratio", number(f.ratio)},       {"sigma", number(f.sigma)}, {"pairs", f.pairs},
              {"device_class", f.device_class}, {"boot_id", f.boot_id},     {"protocol", f.protocol}};
}

NoiseFloor get_noise_floor(JsonReader r) {
  NoiseFloor f;
  r.need("ratio", f.ratio);
  r.need("sigma", f.sigma);
  r.need("pairs", f.pairs);
  r.need("device_class", f.device_class);
  r.need("boot_id", f.boot_id);
  r.need("protocol", f.protocol);
  return f;
}

Json to_json_value(const PairedTiming& p) {
  return Json{{"against", p.against},
              {"comparison", name(p.comparison)},
              {"speedup", to_json_value(p.speedup)},
              {"lower_bound", number(p.lower_bound)},
              {"upper_bound", number(p.upper_bound)},
              {"pairs", p.pairs},
              {"extended", p.extended},
              {"candidate_s", numbers(p.candidate_s)},
              {"against_s", numbers(p.against_s)},
              {"outside_speedup", to_json_value(p.outside_speedup)},
              {"outside_resolution", number(p.outside_resolution)}};
}

PairedTiming get_paired_timing(JsonReader r) {
  PairedTiming p;
  r.need("against", p.against);
  r.need_choice("comparison", p.comparison, kComparisons);
  p.speedup = get_interval(r.need_object("speedup"));
  r.need("lower_bound", p.lower_bound);
  r.need("upper_bound", p.upper_bound);
  r.need("pairs", p.pairs);
  r.need("extended", p.extended);
  r.need("candidate_s", p.candidate_s);
  r.need("against_s", p.against_s);
  p.outside_speedup = get_interval(r.need_object("outside_speedup"));
  r.need("outside_resolution", p.outside_resolution);
  return p;
}

Json to_json_value(const Measurement& m) {
  Json pairs = Json::array();
  for (const PairedTiming& p : m.pairs) pairs.push_back(to_json_value(p));
  return Json{{"pairs", std::move(pairs)}, {"seconds", number(m.seconds)}, {"floor", to_json_value(m.floor)}, {"conditions", m.conditions}};
}

Json to_json_value(const Verdict& v) {
  Json j{{"reason", name(v.reason())}, {"detail", v.detail()}};
  if (v.correctness()) j["correctness"] = to_json_value(*v.correctness());
  if (v.measurement()) j["measurement"] = to_json_value(*v.measurement());
  j["package_sha"] = v.package_sha;
  j["image_sha"] = v.image_sha;
  j["mechanism"] = to_json_value(v.mechanism);
  j["mix"] = to_json_value(v.mix);
  j["build_log"] = v.build_log;
  j["times"] = to_json_value(v.times);
  j["notes"] = v.notes;
  return j;
}

Verdict get_verdict(JsonReader r) {
  std::string reason_text, detail;
  r.need("reason", reason_text);
  r.need("detail", detail);
  const auto reason = parse_reason(reason_text);
  r.check(reason.has_value(), "reason", "'" + reason_text + "' is no known reason");
  std::optional<CorrectnessReport> correctness;
  std::optional<Measurement> measurement;
  if (r.has("correctness")) correctness = get_correctness(r.object("correctness"));
  if (r.has("measurement")) measurement = get_measurement(r.object("measurement"));
  Verdict v = make_verdict(reason.value_or(Reason::runner_broke), std::move(detail), std::move(correctness), std::move(measurement), r);
  r.need("package_sha", v.package_sha);
  r.need("image_sha", v.image_sha);
  v.mechanism = get_signature_result(r.need_object("mechanism"));
  v.mix = get_instruction_mix(r.need_object("mix"));
  r.need("build_log", v.build_log);
  v.times = get_times(r.need_object("times"));
  r.need("notes", v.notes);
  return v;
}

std::string verdict_to_json(const Verdict& v) { return dump(to_json_value(v)); }
Result<Verdict> parse_verdict(const std::string& json, const std::string& where) { return parse_with(get_verdict, json, where); }
Result<Verdict> read_verdict(const Json& json, const std::string& where) { return read_with(get_verdict, json, where); }
Result<NoiseFloor> read_noise_floor(const Json& json, const std::string& where) { return read_with(get_noise_floor, json, where); }
Result<PairedTiming> read_paired_timing(const Json& json, const std::string& where) { return read_with(get_paired_timing, json, where); }

Json to_json_value(const Diagnostic& d) {
  return Json{{"label", d.label},
              {"ran", d.ran},
              {"problem", d.problem},
              {"seconds", number(d.seconds)},
              {"against_first", number(d.against_first)},
              {"image_sha", d.image_sha}};
}

Result<std::vector<Diagnostic>> read_diagnostics(const Json& json, const std::string& where) {
  if (!json.is_array())
    return fail(
        Error{.code = Code::bad_input, .message = "expected an array of diagnostics", .file = where, .line = 0, .field = {}, .fix = {}});
  std::vector<Diagnostic> out;
  for (const Json& item : json) {
    JsonReader r(item, where);
    Diagnostic d;
    r.need("label", d.label);
    r.need("ran", d.ran);
    r.need("problem", d.problem);
    r.need("seconds", d.seconds);
    r.need("against_first", d.against_first);
    r.need("image_sha", d.image_sha);
    FORGE_TRY(r.finish());
    out.push_back(std::move(d));
  }
  return out;
}

}  // namespace forge
