// SPDX-License-Identifier: Apache-2.0
// Loading, search and retrieval. The base is read whole: an entry is a few hundred bytes and retrieval looks at every one.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include "knowledge/knowledge.h"
#include "util/text.h"

namespace forge {

namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

Result<Entry> read_entry_folder(const fs::path& folder) {
  const fs::path file = folder / "entry.toml";
  FORGE_TRY_ASSIGN(const std::string text, read_file(file));
  FORGE_TRY_ASSIGN(Entry entry, parse_entry(text, file.string()));
  if (entry.id != folder.filename())
    return fail(Error{.code = Code::bad_input,
                      .message = fmt::format("the folder is called '{}'", folder.filename().string()),
                      .file = file.string(),
                      .line = 0,
                      .field = "id",
                      .fix = "make id and folder name equal"});
  entry.folder = folder.string();
  std::error_code error;
  std::vector<fs::path> files;
  for (const auto& f : fs::directory_iterator(folder / "evidence", error))
    if (f.path().extension() == ".json") files.push_back(f.path());
  std::sort(files.begin(), files.end());
  for (const fs::path& f : files) {
    FORGE_TRY_ASSIGN(const std::string json, read_file(f));
    FORGE_TRY_ASSIGN(Certification c, parse_certification(json, f.string()));
    entry.evidence.push_back(std::move(c));
  }
  return entry;
}

bool holds(const Expr& condition, const Names& names) {
  if (condition.empty()) return true;
  const auto value = evaluate(condition, names);  // a name that is unknown here makes it false (docs/formats/entry.md)
  return value && *value != 0;
}

}  // namespace

Result<KnowledgeBase> KnowledgeBase::load(const fs::path& folder) {
  KnowledgeBase base;
  std::error_code error;
  if (!fs::is_directory(folder, error))
    return fail(Code::not_found, "no knowledge folder at " + folder.string(),
                "set FORGE_DATA to a source tree or an installed share/forge");
  std::set<std::string> ids;
  std::vector<fs::path> folders;
  for (const auto& family : fs::directory_iterator(folder, error)) {
    if (!family.is_directory() || family.path().filename() == "operators") continue;
    for (const auto& entry : fs::directory_iterator(family.path(), error))
      if (entry.is_directory()) folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  for (const fs::path& f : folders) {
    FORGE_TRY_ASSIGN(Entry entry, read_entry_folder(f));
    if (!ids.insert(entry.id).second)
      return fail(Code::bad_input, fmt::format("two entries are called '{}'", entry.id), "rename one of them");
    base.m_entries.push_back(std::move(entry));
  }
  return base;
}

const Entry* KnowledgeBase::find(const std::string& id) const {
  for (const Entry& e : m_entries)
    if (e.id == id) return &e;
  return nullptr;
}

std::vector<const Entry*> KnowledgeBase::search(const std::string& words) const {
  std::vector<std::string> wanted;
  for (const std::string& w : split(lower(words), ' '))
    if (!w.empty()) wanted.push_back(w);
  std::vector<std::pair<int, const Entry*>> ranked;
  for (const Entry& e : m_entries) {
    const std::string title = lower(e.id + " " + e.title), body = lower(e.mechanism + " " + join(e.symptoms, " "));
    int score = 0;
    for (const std::string& w : wanted) score += (title.find(w) != std::string::npos ? 2 : 0) + (body.find(w) != std::string::npos ? 1 : 0);
    if (score > 0) ranked.emplace_back(-score, &e);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<const Entry*> out;
  for (const auto& [score, e] : ranked) out.push_back(e);
  return out;
}

Names knowledge_names(const Definition& definition, const TaskFile& task, const Machine& machine, const Evidence& evidence) {
  Names names = machine.properties;
  if (const auto axes = complete_axes(definition, task.timed.axes)) {
    for (const auto& [axis, value] : *axes) names[axis] = value;
    std::int64_t in = 0, out = 0;
    for (const TensorSpec& t : definition.inputs) in += byte_count(t, *axes);
    for (const TensorSpec& t : definition.outputs) out += byte_count(t, *axes);
    names["input_bytes"] = in;
    names["output_bytes"] = out;
    if (const auto flops = evaluate(task.flops, *axes)) names["flops"] = *flops;
  }
  for (const auto& [metric, value] : evidence.metrics)
    if (std::isfinite(value) && std::abs(value) < 9e18) names[metric] = std::llround(value);
  return names;
}

std::vector<Retrieved> retrieve(const KnowledgeBase& base, const Machine& machine, const Names& names) {
  std::vector<Retrieved> out;
  for (const Entry& e : base.entries()) {
    Retrieved r{.entry = e, .state = state_on(e, machine.device_class), .effect = 1, .advice = {}};
    if (r.state == EntryState::retired || r.state == EntryState::refuted) continue;
    const bool target_fits =
        std::any_of(e.targets.begin(), e.targets.end(), [&](const std::string& glob) { return glob_match(glob, machine.target.name); });
    if (!target_fits || !holds(e.applies, names)) continue;
    for (const Certification& c : e.evidence) {
      if (c.device_class != machine.device_class) continue;
      if (!c.applicable)
        r.state = EntryState::proposed;
      else if (r.state == EntryState::certified)
        r.effect = c.effect.mid;
    }
    for (const Advice& a : e.advice)
      if (holds(a.when, names)) r.advice.push_back(a);
    out.push_back(std::move(r));
  }
  std::stable_sort(out.begin(), out.end(), [](const Retrieved& a, const Retrieved& b) {
    return a.effect != b.effect ? a.effect > b.effect : a.entry.id < b.entry.id;
  });
  return out;
}

}  // namespace forge
