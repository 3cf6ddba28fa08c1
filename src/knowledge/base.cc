// SPDX-License-Identifier: Apache-2.0
// Loading, search and retrieval. The base is read whole; retrieval looks at every entry, but at a few bytes of it only.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

#include "knowledge/conditions.h"
#include "knowledge/knowledge.h"
#include "util/text.h"

namespace forge {

namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// An error that says nothing of what to do gets this.
template <class T>
Result<T> with_fix(Result<T> r, const std::string& fix) {
  if (!r && r.error().fix.empty()) r.error().fix = fix;
  return r;
}

Result<Entry> read_entry_folder(const fs::path& folder) {
  const fs::path file = folder / "entry.toml";
  FORGE_TRY_ASSIGN(const std::string text, with_fix(read_file(file), "put it back from a copy, or delete the entry's folder"));
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
    FORGE_TRY_ASSIGN(Certification c,
                     with_fix(parse_certification(json, f.string()),
                              "put it back from a copy, or delete it: `forge kb certify " + entry.id + "` measures again"));
    entry.evidence.push_back(std::move(c));
  }
  return entry;
}

Result<std::vector<std::string>> folders_in(const fs::path& folder) {  // sorted; as paths they would take ten times as much
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator at(folder, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    std::error_code ignored;
    if (at->is_directory(ignored)) names.push_back(at->path().filename());
  }
  if (error) return fail_errno("cannot list", folder.string(), error.value());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

// What retrieval asks of an entry, side by side, so that it looks at a few bytes of those that do not fit.
struct KnowledgeBase::Index {
  struct Certified {
    std::uint32_t device_class = 0;
    EntryState outcome = EntryState::proposed;
    bool applicable = true;
    double effect = 1;
  };
  struct Row {
    std::uint32_t targets = 0, applies = 0;
    std::uint32_t advice_end = 0, certified_end = 0;  // they begin where those of the row before end
    std::uint32_t rank = 0;                           // in by_id
    bool retired = false;
  };
  std::vector<Row> rows;
  std::vector<std::uint32_t> by_id;   // entries, sorted
  std::vector<std::uint32_t> advice;  // conditions
  std::vector<Certified> certified;
  std::vector<std::vector<std::string>> targets;  // distinct lists of globs
  std::map<std::vector<std::string>, std::uint32_t> target_ids;
  std::map<std::string, std::uint32_t> class_ids;
  Conditions conditions;

  void add(const Entry& e) {
    const auto [list, is_new] = target_ids.emplace(e.targets, static_cast<std::uint32_t>(targets.size()));
    if (is_new) targets.push_back(e.targets);
    for (const Advice& a : e.advice) advice.push_back(conditions.add(a.when));
    for (const Certification& c : e.evidence) {
      const auto id = class_ids.emplace(c.device_class, static_cast<std::uint32_t>(class_ids.size())).first->second;
      certified.push_back({.device_class = id, .outcome = c.outcome, .applicable = c.applicable, .effect = c.effect.mid});
    }
    rows.push_back({.targets = list->second,
                    .applies = conditions.add(e.applies),
                    .advice_end = static_cast<std::uint32_t>(advice.size()),
                    .certified_end = static_cast<std::uint32_t>(certified.size()),
                    .retired = e.retired});
  }
};

Result<KnowledgeBase> KnowledgeBase::load(const fs::path& folder) {
  FORGE_TRY_ASSIGN(KnowledgeBase base, load_readable(folder));
  if (!base.m_damaged.empty()) return fail(base.m_damaged[0].error);
  return base;
}

Result<KnowledgeBase> KnowledgeBase::load_readable(const fs::path& folder, const std::string& only) {
  KnowledgeBase base;
  std::error_code error;
  if (!fs::is_directory(folder, error))
    return fail(Code::not_found, "no knowledge folder at " + folder.string(),
                "set FORGE_DATA to a source tree or an installed share/forge");
  FORGE_TRY_ASSIGN(const std::vector<std::string> families, folders_in(folder));
  std::map<std::string, std::uint32_t> ids;
  auto index = std::make_shared<Index>();
  for (const std::string& family : families) {
    if (family == "operators" || (!only.empty() && family != only)) continue;
    const auto names = folders_in(folder / family);
    if (!names) base.m_damaged.push_back({family, names.error()});
    for (const std::string& name : names.value_or(std::vector<std::string>())) {
      auto entry = read_entry_folder(folder / family / name);
      if (entry && !ids.emplace(entry->id, static_cast<std::uint32_t>(ids.size())).second)
        entry = fail(Error{.code = Code::bad_input,
                           .message = fmt::format("two entries are called '{}'", entry->id),
                           .file = (folder / family / name / "entry.toml").string(),
                           .line = 0,
                           .field = "id",
                           .fix = "rename one of them"});
      if (!entry) {
        base.m_damaged.push_back({name, entry.error()});
        continue;
      }
      index->add(*entry);
      base.m_entries.add(*entry);
    }
  }
  for (const auto& [id, entry] : ids) {
    index->rows[entry].rank = static_cast<std::uint32_t>(index->by_id.size());
    index->by_id.push_back(entry);
  }
  index->conditions.finish();
  base.m_index = std::move(index);
  return base;
}

const Error* KnowledgeBase::damage_of(const std::string& id) const {
  for (const DamagedEntry& d : m_damaged)
    if (d.id == id) return &d.error;
  return nullptr;
}

std::optional<Entry> KnowledgeBase::find(const std::string& id) const {
  if (!m_index) return std::nullopt;
  const auto& by_id = m_index->by_id;
  Entry e;
  const auto id_of = [&](std::uint32_t entry) -> const std::string& { return m_entries.get(entry, e), e.id; };
  const auto at =
      std::lower_bound(by_id.begin(), by_id.end(), id, [&](std::uint32_t entry, const auto& wanted) { return id_of(entry) < wanted; });
  if (at == by_id.end() || id_of(*at) != id) return std::nullopt;
  return e;
}

EntryList KnowledgeBase::search(const std::string& words) const {
  std::vector<std::string> wanted;
  for (const std::string& w : split(lower(words), ' '))
    if (!w.empty()) wanted.push_back(w);
  std::vector<std::pair<int, std::uint32_t>> ranked;
  std::string title, body;  // one place for all entries. A word has no blank, so it is found within one text or not at all
  const auto add = [](std::string& to, const std::string& text) {
    const std::size_t at = to.size();
    to.resize(at + text.size() + 1, ' ');
    for (std::size_t i = 0; i < text.size(); ++i) {
      const auto c = static_cast<unsigned char>(text[i]);
      to[at + i] = static_cast<char>(c + (static_cast<unsigned char>(c - 'A') < 26 ? 32 : 0));
    }
  };
  const auto has = [](const std::string& text, const std::string& word) {
    return memmem(text.data(), text.size(), word.data(), word.size()) != nullptr;
  };
  Entry e;
  for (std::uint32_t i = 0; i < m_entries.size(); ++i) {
    m_entries.get(i, e);
    title.clear(), body.clear();
    add(title, e.id), add(title, e.title), add(body, e.mechanism);
    for (const std::string& s : e.symptoms) add(body, s);
    int score = 0;
    for (const std::string& w : wanted) score += (has(title, w) ? 2 : 0) + (has(body, w) ? 1 : 0);
    if (score > 0) ranked.emplace_back(-score, i);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::uint32_t> found;
  for (const auto& [score, i] : ranked) found.push_back(i);
  return m_entries.select(std::move(found));
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
  struct Fit {
    std::uint32_t entry;
    EntryState state;
    double effect;
  };
  std::vector<Retrieved> out;
  if (!base.m_index) return out;
  const KnowledgeBase::Index& index = *base.m_index;
  Conditions::Asked asked(index.conditions, names);
  std::vector<char> fits_target;
  for (const auto& globs : index.targets)
    fits_target.push_back(
        std::any_of(globs.begin(), globs.end(), [&](const std::string& glob) { return glob_match(glob, machine.target.name); }));
  const auto known = index.class_ids.find(machine.device_class);
  const std::uint32_t here = known == index.class_ids.end() ? ~std::uint32_t{0} : known->second;

  std::vector<Fit> fits;
  std::uint32_t first = 0;  // certification of this row
  for (std::uint32_t i = 0; i < index.rows.size(); ++i) {
    const auto& row = index.rows[i];
    const std::uint32_t from = std::exchange(first, row.certified_end);
    if (row.retired || !fits_target[row.targets]) continue;
    Fit fit{.entry = i, .state = EntryState::proposed, .effect = 1};
    std::uint32_t c = from;
    while (c < row.certified_end && index.certified[c].device_class != here) ++c;
    if (c < row.certified_end) fit.state = index.certified[c].outcome;
    if (fit.state == EntryState::retired || fit.state == EntryState::refuted || !asked.holds(row.applies)) continue;
    for (; c < row.certified_end; ++c) {
      const auto& one = index.certified[c];
      if (one.device_class != here) continue;
      if (!one.applicable)
        fit.state = EntryState::proposed;
      else if (fit.state == EntryState::certified)
        fit.effect = one.effect;
    }
    fits.push_back(fit);
  }
  std::stable_sort(fits.begin(), fits.end(), [&](const Fit& a, const Fit& b) {
    return a.effect != b.effect ? a.effect > b.effect : index.rows[a.entry].rank < index.rows[b.entry].rank;
  });
  out.reserve(fits.size());
  for (const Fit& fit : fits) {
    Retrieved& r = out.emplace_back(Retrieved{.entry = {}, .state = fit.state, .effect = fit.effect, .advice = {}});
    base.entries().get(fit.entry, r.entry);
    const std::uint32_t advice = fit.entry == 0 ? 0 : index.rows[fit.entry - 1].advice_end;
    for (std::uint32_t i = 0; i < r.entry.advice.size(); ++i)
      if (asked.holds(index.advice[advice + i])) r.advice.push_back(r.entry.advice[i]);
  }
  return out;
}

}  // namespace forge
