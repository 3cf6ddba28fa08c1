// SPDX-License-Identifier: Apache-2.0
#include "report/overview.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "report/story.h"
#include "util/text.h"

namespace forge {

namespace {

// "softmax_f32-20261130-014405-3f2a" -> its operator, which a run that was killed at once has nowhere else, and what stands after it.
std::pair<std::string, std::string> split_run_id(const std::string& id) {
  std::size_t dash = id.size();
  for (int i = 0; i < 3 && dash != std::string::npos; ++i) dash = dash == 0 ? std::string::npos : id.rfind('-', dash - 1);
  if (dash == std::string::npos || dash == 0) return {"", id};
  return {id.substr(0, dash), id.substr(dash + 1)};
}

std::string link_to_run(const std::string& id) {
  return fmt::format("<a href=\"/run/{}\">{}</a>", escape_html(id), escape_html(split_run_id(id).second));
}

// Cells are HTML here, as runs are links; all but the caller's own marks is escaped by him.
std::string raw_table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows, const std::string& kind) {
  std::string out = fmt::format("<div class=scroll><table class=\"{}\"><tr>", kind);
  for (const std::string& h : head) out += "<th>" + escape_html(h) + "</th>";
  out += "</tr>";
  for (const auto& row : rows) {
    out += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i)
      out += row[i].starts_with("<td") ? row[i] : fmt::format("<td data-head=\"{}\">{}</td>", escape_html(head[i]), row[i]);
    out += "</tr>";
  }
  return out + "</table></div>";
}

// What could not be read, and what to do about it; nothing where there is none.
std::string problem_list(const std::vector<std::string>& problems) {
  if (problems.empty()) return {};
  std::string out =
      fmt::format("<p>{} cannot be read, and what follows is without {}:</p><ul>",
                  problems.size() == 1 ? "1 record" : fmt::format("{} records", problems.size()), problems.size() == 1 ? "it" : "them");
  for (const std::string& p : problems) out += "<li>" + escape_html(p) + "</li>";
  return out + "</ul>";
}

std::string interval_text(const Interval& i) { return fmt::format("{:.3f} [{:.3f} {:.3f}]", i.mid, i.low, i.high); }

std::string when(std::string utc) {
  std::replace(utc.begin(), utc.end(), 'T', ' ');
  return escape_html(utc.substr(0, 16));
}

}  // namespace

Result<Overview> runs_overview(const Store& store, const std::function<bool(const std::string& id)>& is_written) {
  FORGE_TRY_ASSIGN(const std::vector<RunRow> runs, store.runs());
  FORGE_TRY_ASSIGN(const auto reasons, store.reason_counts(std::nullopt));
  Overview o;
  o.title = "ForgeKernel: runs";
  o.facts["runs"] = Json::array(), o.facts["reasons"] = Json::object();
  std::vector<std::vector<std::string>> rows;
  for (const RunRow& r : runs) {
    const std::string state = r.state == "interrupted" && is_written(r.id) ? "running" : r.state;
    rows.push_back({escape_html(r.operator_name.empty() ? split_run_id(r.id).first : r.operator_name), link_to_run(r.id),
                    fmt::format("<span class=\"{}\">{}</span>", state == "running" ? "good" : "", escape_html(state)),
                    fmt::format("{}/{}", r.accepted, r.candidates), r.best_speedup > 0 ? fmt::format("{:.3f}x", r.best_speedup) : "-",
                    escape_html(r.verdict), escape_html(r.unreadable.empty() ? r.stop : r.unreadable), when(r.started),
                    escape_html(r.target), escape_html(r.reference)});
    o.facts["runs"].push_back({{"id", r.id},
                               {"operator", r.operator_name},
                               {"target", r.target},
                               {"reference", r.reference},
                               {"started", r.started},
                               {"state", state},
                               {"stop", r.stop},
                               {"candidates", r.candidates},
                               {"accepted", r.accepted},
                               {"speedup", r.best_speedup},
                               {"verdict", r.verdict},
                               {"unreadable", r.unreadable}});
  }
  for (const auto& [reason, n] : reasons) o.facts["reasons"][reason] = n;
  const std::string html =
      reasons_html(reasons) +
      (rows.empty() ? "<p>no run yet; start one with: forge run gemm_f32</p>"
                    : raw_table({"operator", "run", "state", "accepted", "speedup", "verdict", "ended", "started", "target", "reference"},
                                rows, "narrow"));
  o.sections = {{"Runs", html}};
  return o;
}

Result<ShownVault> shown_vault(const Vault& vault) {
  FORGE_TRY_ASSIGN(SealedKernels sealed, vault.all());
  ShownVault out{.kernels = {}, .damaged = std::move(sealed.damaged)};
  std::set<std::pair<std::string, std::string>> chains;
  for (const Generation& g : sealed.kernels) chains.emplace(g.operator_name, g.target);
  for (const auto& [op, target] : chains) {
    const std::string head = vault.promoted_id(op, target).value_or("");  // one that cannot be read is among the damaged
    const std::vector<Generation> line = lineage(sealed.kernels, op, target, head);
    for (const Generation& g : line) out.kernels.push_back({.generation = g, .promoted = head == g.id, .in_line = true});
    for (const Generation& g : sealed.kernels)
      if (g.operator_name == op && g.target == target &&
          std::none_of(line.begin(), line.end(), [&](const Generation& k) { return k.id == g.id; }))
        out.kernels.push_back({.generation = g});
  }
  return out;
}

Result<Overview> lineages_overview(const Vault& vault) {
  FORGE_TRY_ASSIGN(const ShownVault shown, shown_vault(vault));
  Overview o;
  o.title = "ForgeKernel: lineages";
  o.facts["generations"] = Json::array();
  std::vector<std::pair<std::string, std::vector<std::vector<std::string>>>> tables;
  for (const auto& [g, promoted, in_line] : shown.kernels) {
    const std::string chain = g.operator_name + " on " + g.target, state = promoted ? "promoted" : in_line ? "in the line" : "beside it";
    if (tables.empty() || tables.back().first != chain) tables.emplace_back(chain, std::vector<std::vector<std::string>>{});
    const PairedTiming* t = find_pairing(g.verdict, "reference");
    tables.back().second.push_back({fmt::format("gen{}", g.number), escape_html(g.id.substr(0, 12)),
                                    fmt::format("<span class=\"{}\">{}</span>", promoted ? "good" : "", state),
                                    escape_html(g.parent.substr(0, 20)), t ? interval_text(t->speedup) : "-", t ? name(t->comparison) : "-",
                                    g.against_expert ? interval_text(g.against_expert->speedup) : "-",
                                    g.run_id.empty() ? "-" : link_to_run(g.run_id), escape_html(join(g.adopted, " "))});
    o.facts["generations"].push_back({{"operator", g.operator_name},
                                      {"target", g.target},
                                      {"number", g.number},
                                      {"id", g.id},
                                      {"state", state},
                                      {"parent", g.parent},
                                      {"against_parent", t ? to_json_value(t->speedup) : Json()},
                                      {"against_expert", g.against_expert ? to_json_value(g.against_expert->speedup) : Json()},
                                      {"adopted", g.adopted},
                                      {"run", g.run_id}});
  }
  o.facts["damaged"] = Json::array();
  std::vector<std::string> problems;
  for (const DamagedRecord& d : shown.damaged) {
    problems.push_back(d.error.text());
    o.facts["damaged"].push_back({{"operator", d.operator_name}, {"target", d.target}, {"id", d.id}, {"problem", problems.back()}});
  }
  std::string head = "<p>nothing was sealed yet; `forge run` or `forge evolve` makes generations</p>";
  if (!tables.empty())
    head = fmt::format("<p>{} sealed kernels in {} lines</p>", shown.kernels.size(), tables.size());
  else if (!problems.empty())
    head.clear();
  o.sections = {{"Lineages", head + problem_list(problems)}};
  for (const auto& [chain, rows] : tables)
    o.sections.emplace_back(chain, raw_table({"generation", "id", "state", "built against", "against it [95 %]", "verdict",
                                              "against the expert [95 %]", "run", "adopted"},
                                             rows, "narrow"));
  return o;
}

Overview knowledge_overview(const KnowledgeBase& base, const std::vector<UseRow>& uses) {
  using Counts = std::array<int, 4>;  // by Use
  std::map<std::string, std::map<std::string, Counts>> cells;
  std::set<std::string> operators;
  for (const UseRow& u : uses) {
    ++cells[u.entry].try_emplace(u.operator_name, Counts{}).first->second[static_cast<std::size_t>(u.use)];
    operators.insert(u.operator_name);
  }
  Overview o;
  o.title = "ForgeKernel: knowledge";
  o.facts["operators"] = operators, o.facts["entries"] = Json::array(), o.facts["damaged"] = Json::array();
  std::vector<std::string> problems;
  for (const DamagedEntry& d : base.damaged()) {
    problems.push_back(d.error.text());
    o.facts["damaged"].push_back({{"id", d.id}, {"problem", problems.back()}});
  }
  std::vector<std::string> head = {"entry"};
  head.insert(head.end(), operators.begin(), operators.end());
  std::vector<std::vector<std::string>> rows;
  int adopted_twice = 0;
  for (const auto& [id, by_operator] : cells) {
    const std::optional<Entry> entry = base.find(id);
    std::vector<std::string> row = {fmt::format("<td title=\"{}\">{}</td>", escape_html(entry ? entry->title : ""), escape_html(id))};
    Json used = Json::object();
    int adopters = 0;
    for (const std::string& op : operators) {
      const auto found = by_operator.find(op);
      if (found == by_operator.end()) {
        row.push_back("<td class=none>-</td>");
        continue;
      }
      std::string text, strongest;
      for (const Use u : {Use::retrieved, Use::cited, Use::implemented, Use::adopted}) {
        const int n = found->second[static_cast<std::size_t>(u)];
        used[op][name(u)] = n;
        if (n > 0) text += fmt::format("{}{} {}", text.empty() ? "" : "<br>", name(u), n), strongest = name(u);
      }
      adopters += found->second[static_cast<std::size_t>(Use::adopted)] > 0;
      row.push_back(fmt::format("<td class={}>{}</td>", strongest, text));
    }
    adopted_twice += adopters > 1;
    rows.push_back(row);
    o.facts["entries"].push_back({{"id", id}, {"title", entry ? entry->title : ""}, {"uses", used}});
  }
  std::string idle;
  for (const Entry& e : base.entries())
    if (!cells.contains(e.id)) idle += fmt::format(" <span class=chip title=\"{}\">{}</span>", escape_html(e.title), escape_html(e.id));
  std::string html = fmt::format(
      "<p>How many runs of an operator retrieved an entry, cited it in a plan, implemented it in an accepted kernel, and sealed a kernel "
      "that shows its mechanism (adopted). {} entries, {} of them used; {} adopted by more than one operator.</p>",
      base.entries().size(), cells.size(), adopted_twice);
  html += problem_list(problems);
  html += rows.empty() ? "<p>no run has used an entry yet</p>" : raw_table(head, rows, "uses");
  o.sections = {{"Entries and operators", html}};
  if (!idle.empty()) o.sections.emplace_back("Not used yet", "<div class=reasons>" + idle + "</div>");
  return o;
}

}  // namespace forge
