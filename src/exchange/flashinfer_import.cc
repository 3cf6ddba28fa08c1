// SPDX-License-Identifier: Apache-2.0
// FlashInfer-Trace: definitions, and the lines of workloads that belong to them. What a definition says is kept byte by byte.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/json_io.h"
#include "exchange/draft.h"
#include "util/text.h"

namespace forge {
namespace {

constexpr const char* kTrace = "FlashInfer-Trace";

struct TraceLines {
  std::vector<Workload> workloads;
  std::map<std::string, std::set<double>> scalars;
  std::set<std::string> blobs;  // inputs whose content lies in safetensors files
  int damaged = 0;
};

// One line: a Trace with a "workload", or a bare workload with "uuid" (SOL-ExecBench). Null: neither.
const Json* workload_of(const Json& line) {
  if (!line.is_object()) return nullptr;
  if (const auto w = line.find("workload"); w != line.end() && w->is_object()) return &*w;
  return line.contains("uuid") && line.contains("axes") ? &line : nullptr;
}

void read_inputs(const Json& workload, TraceLines& out) {
  const auto inputs = workload.find("inputs");
  if (inputs == workload.end() || !inputs->is_object()) return;
  for (const auto& [input, how] : inputs->items()) {
    if (!how.is_object()) continue;
    const auto type = how.find("type"), value = how.find("value");
    const std::string kind = type != how.end() && type->is_string() ? type->get<std::string>() : "random";
    if (kind == "safetensors" || kind == "custom") out.blobs.insert(input);
    if (kind != "scalar" || value == how.end()) continue;
    if (value->is_number()) out.scalars[input].insert(value->get<double>());
    if (value->is_boolean()) out.scalars[input].insert(value->get<bool>() ? 1 : 0);
  }
}

// By definition; a bare workload belongs to the definition that its file is named after.
std::map<std::string, TraceLines> read_lines(const std::vector<fs::path>& files) {
  std::map<std::string, TraceLines> out;
  for (const fs::path& file : files) {
    const auto text = read_file(file);
    if (!text) continue;
    for (const std::string& line : split(*text, '\n')) {
      if (trim(line).empty()) continue;
      const auto json = parse_json(line, file.string());
      const Json* w = json ? workload_of(*json) : nullptr;
      std::string of = file.stem().string();
      if (json && json->is_object())
        if (const auto d = json->find("definition"); d != json->end() && d->is_string()) of = d->get<std::string>();
      TraceLines& to = out[of];
      const auto axes = w ? w->find("axes") : Json::const_iterator();
      if (!w || axes == w->end() || !axes->is_object()) {
        ++to.damaged;
        continue;
      }
      Workload workload;
      const auto uuid = w->find("uuid");
      workload.name = uuid != w->end() && uuid->is_string() ? uuid->get<std::string>() : "workload";
      bool whole = true;
      for (const auto& [axis, value] : axes->items()) {
        whole &= value.is_number_integer();
        if (value.is_number_integer()) workload.axes[axis] = value.get<std::int64_t>();
      }
      if (!whole) {
        ++to.damaged;
        continue;
      }
      read_inputs(*w, to);
      to.workloads.push_back(std::move(workload));
    }
  }
  return out;
}

// A reference that draws random numbers has no one right answer.
std::string random_call(const std::string& python) {
  for (const char* call : {"torch.multinomial", "torch.rand", "torch.randn", "torch.bernoulli", ".exponential_(", "np.random."})
    if (python.find(call) != std::string::npos) return call;
  return {};
}

void take_lines(OperatorDraft& d, const TraceLines& lines) {
  d.workloads = lines.workloads;
  if (lines.damaged > 0) d.notes.push_back(fmt::format("{} lines of workloads could not be read and were left out", lines.damaged));
  for (const auto& [input, values] : lines.scalars) {
    const TensorSpec* t = find_tensor(d.definition, input);
    if (!t || !t->scalar) continue;
    if (values.size() > 1) d.notes.push_back(fmt::format("the workloads give {} {} values; the smallest was taken", input, values.size()));
    if (std::isfinite(*values.begin())) d.scalars[input] = *values.begin();
  }
  std::vector<std::string> blobs;
  for (const std::string& input : lines.blobs) blobs.push_back(input);
  if (!blobs.empty())
    d.notes.push_back(
        fmt::format("the source has recorded content for {}; it was not taken, because the judge draws content afresh for every call",
                    join(blobs, ", ")));
}

ImportItem import_definition(const fs::path& file, const std::map<std::string, TraceLines>& lines) {
  const auto text = read_file(file);
  if (!text) return refused_item(file.string(), kTrace, text.error());
  auto definition = parse_definition(*text, file.string());
  if (!definition) {
    Error e = definition.error();
    if (e.fix.empty()) e.fix = "docs/formats/definition.md says what a definition is; change a copy, and import that";
    return refused_item(file.string(), kTrace, e);
  }
  OperatorDraft d;
  d.definition = std::move(*definition);
  d.definition_json = *text;
  d.source = file.string(), d.format = kTrace;
  d.files.push_back({"reference.py", d.definition.reference});
  if (const auto own = lines.find(d.definition.name); own != lines.end()) take_lines(d, own->second);
  const std::string call = random_call(d.definition.reference);
  if (!call.empty() || d.definition.op_type == "sampling")
    d.missing.push_back(
        fmt::format("a way to judge it: {}, so that outputs are random draws, and every judge of forge's compares with one true "
                    "answer; give it the draw as an input, in a definition of your own",
                    call.empty() ? "it samples" : "the reference calls " + call));
  if (!d.definition.constraints.empty())
    d.notes.push_back("constraints of the definition are not enforced: " + join(d.definition.constraints, "; "));
  auto op = finish_draft(std::move(d));
  if (!op) return refused_item(file.string(), kTrace, op.error());
  return {.source = file.string(), .format = kTrace, .taken = std::move(*op), .refused = {}};
}

}  // namespace

std::vector<ImportItem> import_flashinfer(const std::vector<fs::path>& definitions, const std::vector<fs::path>& workloads) {
  const auto lines = read_lines(workloads);
  std::vector<ImportItem> out;
  std::map<std::string, std::string> seen;
  for (const fs::path& file : definitions) {
    ImportItem item = import_definition(file, lines);
    if (item.taken) {
      const auto [first, fresh] = seen.emplace(item.taken->name, file.string());
      if (!fresh)
        item = refused_item(file.string(), kTrace,
                            Error{.code = Code::bad_input,
                                  .message = fmt::format("'{}' was defined before, in {}", first->first, first->second),
                                  .file = file.string(),
                                  .line = 0,
                                  .field = "name",
                                  .fix = "names are unique in a dataset: rename one"});
    }
    out.push_back(std::move(item));
  }
  return out;
}

}  // namespace forge
