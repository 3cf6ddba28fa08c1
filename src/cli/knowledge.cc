// SPDX-License-Identifier: Apache-2.0
// forge kb list | show | search | certify | retire | unretire | report
#include "knowledge/knowledge.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "cli/command.h"
#include "cli/table.h"
#include "core/json_io.h"
#include "device/cpu.h"
#include "knowledge/keep_evidence.h"
#include "util/text.h"

namespace forge {

namespace {

Result<std::string> device_class_here(const Context& c, const std::string& wanted) {
  if (!wanted.empty()) {
    FORGE_TRY_ASSIGN(const Machine m, c.machine(wanted));
    return m.device_class;
  }
  FORGE_TRY_ASSIGN(const TargetSpec target, native_cpu_target());
  FORGE_TRY_ASSIGN(const Machine m, probe_cpu(target));
  return m.device_class;
}

// "cpu:*" is for the family "cpu".
bool for_family(const Entry& e, const std::string& family) {
  return std::any_of(e.targets.begin(), e.targets.end(),
                     [&](const std::string& glob) { return glob_match(glob.substr(0, glob.find(':')), family); });
}

const Certification* here(const Entry& e, const std::string& device_class) {
  for (const Certification& c : e.evidence)
    if (c.device_class == device_class) return &c;
  return nullptr;
}

std::string outcome_text(const Certification& c, const Entry& e) {
  if (!c.applicable) return "not applicable";
  return name(e.retired ? EntryState::retired : c.outcome);
}

std::string count_text(const SignatureTerm& t) {
  if (!t.max) return fmt::format("at least {}", t.min);
  if (*t.max == 0) return "none";
  if (*t.max == t.min) return fmt::format("exactly {}", t.min);
  return t.min > 0 ? fmt::format("{} to {}", t.min, *t.max) : fmt::format("at most {}", *t.max);
}

// Of an id that no entry has: one that cannot be read, or none at all.
Error no_entry(const KnowledgeBase& base, const std::string& id) {
  if (const Error* damage = base.damage_of(id)) return *damage;
  std::vector<std::string> ids;
  for (const Entry& other : base.entries()) ids.push_back(other.id);
  const std::string near = closest(id, ids);
  return Error{.code = Code::not_found,
               .message = fmt::format("no entry is called '{}'", id),
               .file = {},
               .line = 0,
               .field = {},
               .fix = near.empty() ? "`forge kb list` shows them" : fmt::format("did you mean '{}'?", near)};
}

int list(Context& c, const std::string& words, const std::string& target = "") {
  const auto base = KnowledgeBase::load_readable(c.paths.data / "knowledge");
  if (!base) return c.fail(base.error());
  const auto device_class = device_class_here(c, target);
  if (!device_class) return c.fail(device_class.error());
  const EntryList wanted = words.empty() ? base->entries() : base->search(words);
  std::vector<std::vector<std::string>> rows;
  Json document = Json::array();
  for (const Entry& e : wanted) {
    const Certification* cert = here(e, *device_class);
    const bool fits = for_family(e, device_class->substr(0, device_class->find(':')));
    const std::string state = cert ? outcome_text(*cert, e) : fits ? name(state_on(e, *device_class)) : "for " + join(e.targets, ", ");
    rows.push_back({e.id, state, cert && cert->applicable ? format_interval(cert->effect) : "-", e.title});
    document.push_back({{"id", e.id}, {"state", state}, {"title", e.title}, {"certification", cert ? to_json_value(*cert) : Json()}});
  }
  int code = kOk;
  for (const DamagedEntry& d : base->damaged()) {
    code = c.warn(d.error);
    document.push_back({{"id", d.id}, {"state", "damaged"}, {"problem", d.error.text()}});
  }
  if (rows.empty())
    c.out(fmt::format("no entry speaks of '{}'; `forge kb list` shows them all", words));
  else
    c.out(format_table({"entry", "state here", "effect [95 %]", "title"}, rows));
  c.out("device class: " + *device_class);
  c.finish(dump(document));
  return code;
}

int show(Context& c, const std::string& id) {
  const auto base = KnowledgeBase::load_readable(c.paths.data / "knowledge");
  if (!base) return c.fail(base.error());
  const std::optional<Entry> e = base->find(id);
  if (!e) return c.fail(no_entry(*base, id));
  c.out(fmt::format("{}: {}\n\n{}\n", e->id, e->title, e->mechanism));
  if (!e->applies.text.empty()) c.out("applies when  " + e->applies.text);
  for (const std::string& s : e->symptoms) c.out("symptom       " + s);
  for (const std::string& s : e->limitations) c.out("limitation    " + s);
  for (const Advice& a : e->advice)
    c.out(fmt::format("advice        {} = {}{}: {}", a.decision, a.value, a.when.text.empty() ? "" : " when " + a.when.text, a.because));
  for (const SignatureTerm& t : e->signature.all)
    c.out(fmt::format("signature     {}{}{} in {}: {}", t.mnemonic, t.operand.empty() ? "" : " ", t.operand, name(t.scope), count_text(t)));
  for (const Certification& k : e->evidence)
    c.out(fmt::format("evidence      {} ({}): {}, {} (floor {:.2f} %), {}{}{}", k.device_class, k.date, outcome_text(k, *e),
                      k.applicable ? format_interval(k.effect) : "-", 100 * k.floor, k.compiler, k.note.empty() ? "" : ": ", k.note));
  c.out("origin        " + e->origin + "\nfolder        " + e->folder);
  Json j;
  j["id"] = e->id, j["title"] = e->title, j["mechanism"] = e->mechanism, j["applies"] = e->applies.text, j["symptoms"] = e->symptoms,
  j["limitations"] = e->limitations, j["origin"] = e->origin, j["retired"] = e->retired;
  j["evidence"] = Json::array();
  for (const Certification& k : e->evidence) j["evidence"].push_back(to_json_value(k));
  return c.finish(dump(j));
}

int certify_entries(Context& c, const std::vector<std::string>& ids, const std::string& target, bool proposed, bool replace) {
  const std::string family = proposed ? "proposed" : "";  // beside it the state folder holds runs and more
  if (std::error_code error; proposed && !fs::is_directory(c.paths.home / family, error))
    return c.fail(Error{.code = Code::not_found,
                        .message = "no run has proposed an entry yet",
                        .file = (c.paths.home / family).string(),
                        .line = 0,
                        .field = {},
                        .fix = "`forge run` proposes what it finds when it takes a sealed kernel's decisions away"});
  const auto base = KnowledgeBase::load_readable(proposed ? c.paths.home : c.paths.data / "knowledge", family);
  if (!base) return c.fail(base.error());
  const auto machine = c.machine(target);
  if (!machine) return c.fail(machine.error());
  std::vector<std::vector<std::string>> rows;
  Json document = Json::array();
  int failed = 0;
  bool any_kept = false;
  for (const std::string& id : ids)
    if (!base->find(id)) return c.fail(no_entry(*base, id));
  for (const Entry& e : base->entries()) {
    if (!ids.empty() && std::find(ids.begin(), ids.end(), e.id) == ids.end()) continue;
    if (!for_family(e, machine->target.family)) {
      const std::string note = fmt::format("made for {}, and this is {}", join(e.targets, ", "), machine->target.name);
      rows.push_back({e.id, "skipped", "-", note});
      document.push_back({{"id", e.id}, {"skipped", note}});
      continue;
    }
    c.say("probing " + e.id);
    const auto cert = certify(c.paths, *machine, e);
    if (!cert) {
      if (cert.error().code == Code::interrupted) return c.fail(cert.error());
      ++failed;
      rows.push_back({e.id, "failed", "-", cert.error().text()});
      document.push_back({{"id", e.id}, {"error", cert.error().text()}});
      continue;
    }
    const Certification* before = here(e, cert->device_class);
    const std::string kept = before && !replace ? why_keep(*before, *cert) : "";
    if (kept.empty())
      if (const auto written = write_certification(e, *cert); !written) return c.fail(written.error());
    any_kept = any_kept || !kept.empty();
    rows.push_back({e.id, outcome_text(*cert, e), cert->applicable ? format_interval(cert->effect) : "-",
                    cert->note + (kept.empty() || cert->note.empty() ? "" : "; ") + kept});
    document.push_back({{"id", e.id}, {"certification", to_json_value(*cert)}});
    if (!kept.empty()) document.back()["kept"] = kept;
  }
  for (const DamagedEntry& d : base->damaged()) {
    if (!ids.empty()) break;
    ++failed;
    rows.push_back({d.id, "failed", "-", d.error.text()});
    document.push_back({{"id", d.id}, {"error", d.error.text()}});
  }
  c.out(format_table({"entry", "outcome", "effect [95 %]", "note"}, rows));
  if (any_kept) c.out("what was kept is overwritten with --replace (for a probe or a compiler that changed)");
  c.finish(dump(document));
  return failed ? kNegative : kOk;
}

// Who gave to whom: for every entry, the operators that retrieved, cited, implemented and adopted it.
int report_uses(Context& c) {
  const auto uses = read_uses(c.paths.home);
  if (!uses) return c.fail(uses.error());
  std::map<std::string, std::map<std::string, std::set<std::string>>> table;  // entry -> use -> operators
  for (const UseRow& u : *uses) table[u.entry][name(u.use)].insert(u.operator_name);
  std::vector<std::vector<std::string>> rows;
  Json document = Json::object();
  for (const auto& [entry, by_use] : table) {
    std::vector<std::string> row = {entry};
    for (const Use u : {Use::retrieved, Use::cited, Use::implemented, Use::adopted}) {
      const auto found = by_use.find(name(u));
      const std::vector<std::string> ops =
          found == by_use.end() ? std::vector<std::string>() : std::vector<std::string>(found->second.begin(), found->second.end());
      row.push_back(ops.empty() ? "-" : join(ops, " "));
      document[entry][name(u)] = ops;
    }
    rows.push_back(std::move(row));
  }
  if (rows.empty())
    c.out("no run has used an entry yet");
  else
    c.out(format_table({"entry", "retrieved by", "cited by", "implemented by", "adopted by"}, rows));
  return c.finish(dump(document));
}

}  // namespace

void add_knowledge(CLI::App& app, Action& action) {
  CLI::App* kb = app.add_subcommand("kb", "the knowledge base: entries, their probes, who used them");
  kb->require_subcommand(1);
  kb->footer(
      "Examples:\n  forge kb list\n  forge kb list --target cuda\n  forge kb show nontemporal-store\n  "
      "forge kb certify                 # all probes for this CPU\n  forge kb certify --target cuda   # all probes for the first GPU\n  "
      "forge kb report");
  CLI::App* list_sub = kb->add_subcommand("list", "all entries and their state on this device class");
  auto list_target = std::make_shared<std::string>();
  list_sub->add_option("--target", *list_target, "whose device class; default: this machine's CPU");
  list_sub->callback([list_target, &action] { action = [list_target](Context& c) { return list(c, "", *list_target); }; });
  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* search_sub = kb->add_subcommand("search", "entries by words");
  search_sub->add_option("words", *words, "words")->required();
  search_sub->callback([words, &action] { action = [words](Context& c) { return list(c, join(*words, " ")); }; });
  auto id = std::make_shared<std::string>();
  CLI::App* show_sub = kb->add_subcommand("show", "one entry, whole");
  show_sub->add_option("entry", *id, "entry id")->required();
  show_sub->callback([id, &action] { action = [id](Context& c) { return show(c, *id); }; });
  auto ids = std::make_shared<std::vector<std::string>>();
  auto target = std::make_shared<std::string>();
  auto proposed = std::make_shared<bool>(false);
  CLI::App* certify_sub = kb->add_subcommand("certify", "measure probes here and write their evidence");
  certify_sub->add_option("entries", *ids, "entry ids; default: all for the target's family");
  certify_sub->add_option("--target", *target, "default: the widest of this machine");
  certify_sub->add_flag("--proposed", *proposed, "the entries that runs have proposed, under $FORGE_HOME/proposed");
  auto replace = std::make_shared<bool>(false);
  certify_sub->add_flag("--replace", *replace, "overwrite evidence that is settled or has a lower noise floor");
  certify_sub->footer("Example:\n  forge kb certify nontemporal-store");
  certify_sub->callback([ids, target, proposed, replace, &action] {
    action = [ids, target, proposed, replace](Context& c) { return certify_entries(c, *ids, *target, *proposed, *replace); };
  });
  for (const bool retire : {true, false}) {
    auto which = std::make_shared<std::string>();
    CLI::App* sub = kb->add_subcommand(retire ? "retire" : "unretire",
                                       retire ? "keep an entry for the record, never retrieve it again" : "take a retirement back");
    sub->add_option("entry", *which, "entry id")->required();
    sub->callback([which, retire, &action] {
      action = [which, retire](Context& c) -> int {
        if (const auto done = set_retired(c.paths.data / "knowledge", *which, retire); !done) return c.fail(done.error());
        c.out(*which + (retire ? " is retired" : " is in use again"));
        Json j;
        j["entry"] = *which, j["retired"] = retire;
        return c.finish(dump(j));
      };
    });
  }
  CLI::App* report_sub = kb->add_subcommand("report", "who gave to whom: retrieved, cited, implemented, adopted");
  report_sub->callback([&action] { action = report_uses; });
}

}  // namespace forge
