// SPDX-License-Identifier: Apache-2.0
#include "report/site.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>

#include "knowledge/knowledge.h"
#include "report/overview.h"
#include "report/report.h"
#include "report/story.h"
#include "store/journal_tail.h"
#include "util/hash.h"
#include "vault/vault.h"

namespace forge {

namespace {

constexpr std::size_t kWatchedRuns = 16;  // kept in memory; of others the journal is read again
const char* const kHtml = "text/html; charset=utf-8";
const char* const kJson = "application/json; charset=utf-8";

WebReply refuse(int status, const std::string& text, bool as_json) {
  if (as_json) return {.status = status, .type = kJson, .body = dump(Json{{"error", text}}) + "\n"};
  return {.status = status, .body = text + "\n"};
}

int status_of(Code code) { return code == Code::not_found ? 404 : code == Code::bad_input ? 409 : 500; }

std::string seal_version(Json&& j) {
  j["format"] = 1;
  j["version"] = sha256_hex(dump(j)).substr(0, 16);
  return dump(j);
}

}  // namespace

struct Site::Impl {
  // The state folder may be moved away, or its disk unmounted, while this serves it: that is no folder without runs.
  Status state_is_there() const {
    std::error_code error;
    const fs::path runs = paths.home / "runs";
    if (fs::is_directory(runs, error)) return {};
    return fail(Code::io, runs.string() + " is not there any more", "put it back, or start forge serve again with another FORGE_HOME");
  }

  // A run that somebody looks at, read on from where the last answer ended.
  struct WatchedRun {
    std::string id;
    JournalTail tail;
    Story story;
    RunState state = RunState::interrupted;
    std::string json;  // of story and state; empty: to be made
    std::vector<Section> sections;
  };

  Paths paths;
  Store store;
  KnowledgeBase base;
  std::string chart_js;
  std::list<WatchedRun> watched;  // the one asked for last first

  bool is_written(const std::string& id) const { return JournalTail(store.run_dir(id) / "journal.jsonl").written_to(); }

  Result<WatchedRun*> watch(const std::string& wanted) {
    FORGE_TRY_ASSIGN(const std::string id, store.resolve_run(wanted));
    auto at = watched.begin();
    while (at != watched.end() && at->id != id) ++at;
    if (at == watched.end()) {
      watched.push_front({.id = id, .tail = JournalTail(store.run_dir(id) / "journal.jsonl"), .story = {}, .json = {}, .sections = {}});
      if (watched.size() > kWatchedRuns) watched.pop_back();
    } else {
      watched.splice(watched.begin(), watched, at);
    }
    WatchedRun& w = watched.front();
    auto news = w.tail.read();
    if (!news) {
      const Error e = news.error();
      watched.pop_front();  // its story would not match what the next look reads
      return fail(e);
    }
    if (news->again) w.story = {};
    for (const Event& e : news->events) w.story.add(e);
    const RunState state = state_of(w.story, w.story.end.is_null() && w.tail.written_to());
    if (news->again || !news->events.empty() || state != w.state || w.json.empty()) {
      w.state = state;
      tell(w);
    }
    return &w;
  }

  void tell(WatchedRun& w) const {
    w.sections = story_sections(w.story, chart_place(), true);
    w.sections.insert(w.sections.begin(), {"Now", now_html(w.story, w.state)});
    // Result, chart, hand-ins: here the chart comes first, as it is what one follows.
    std::rotate(w.sections.begin() + 1, w.sections.begin() + 2, w.sections.begin() + 4);
    Json j = facts_json(w.story, w.state);
    j["title"] = w.id, j["chart"] = chart_data(w.story);
    j["sections"] = w.sections;
    w.json = seal_version(std::move(j));
  }

  Result<Overview> overview(const std::string& what) const {
    if (what == "runs") return runs_overview(store, [this](const std::string& id) { return is_written(id); });
    if (what == "lineages") {
      FORGE_TRY_ASSIGN(const Vault vault, Vault::open(paths.home));
      return lineages_overview(vault);
    }
    FORGE_TRY_ASSIGN(const std::vector<UseRow> uses, read_uses(paths.home));
    return knowledge_overview(base, uses);
  }

  WebReply run(const std::string& wanted, bool as_json) {
    const auto w = watch(wanted);
    if (!w) return refuse(status_of(w.error().code), w.error().text(), as_json);
    if (as_json) return {.type = kJson, .body = (*w)->json};
    const std::string self = "/run/" + (wanted == "last" ? wanted : (*w)->id);  // a prefix may come to name two
    return {.type = kHtml, .body = live_html({.title = (*w)->id, .source = "/api" + self, .active = self, .sections = (*w)->sections})};
  }

  WebReply page(const std::string& what, const std::string& path, bool as_json) const {
    auto o = overview(what);
    if (!o) return refuse(status_of(o.error().code), o.error().text(), as_json);
    if (!as_json)
      return {.type = kHtml,
              .body = live_html({.title = o->title, .source = "/api/" + what, .active = path, .sections = o->sections, .every_ms = 3000})};
    o->facts["title"] = o->title, o->facts["sections"] = o->sections;
    return {.type = kJson, .body = seal_version(std::move(o->facts))};
  }
};

Site::Site(std::unique_ptr<Impl> impl) : m_impl(std::move(impl)) {}
Site::Site(Site&&) noexcept = default;
Site& Site::operator=(Site&&) noexcept = default;
Site::~Site() = default;

Result<Site> Site::open(const Paths& paths) {
  FORGE_TRY_ASSIGN(Store store, Store::open_to_read(paths.home));
  FORGE_TRY_ASSIGN(KnowledgeBase base, KnowledgeBase::load_readable(paths.data / "knowledge"));
  return Site(std::unique_ptr<Impl>(new Impl{
      .paths = paths, .store = std::move(store), .base = std::move(base), .chart_js = find_chart_js().value_or(""), .watched = {}}));
}

WebReply Site::answer(const WebRequest& asked) {
  const std::string& path = asked.path;
  if (path == "/style.css") return {.type = "text/css; charset=utf-8", .body = page_style() + live_style()};
  if (path == "/chart.js") return {.type = "text/javascript; charset=utf-8", .body = m_impl->chart_js + chart_code()};
  if (path == "/live.js") return {.type = "text/javascript; charset=utf-8", .body = live_code()};
  if (const Status there = m_impl->state_is_there(); !there) return refuse(503, there.error().text(), path.starts_with("/api/"));
  if (path == "/") return m_impl->page("runs", path, false);
  for (const std::string what : {"runs", "lineages", "knowledge"}) {
    if (path == "/api/" + what) return m_impl->page(what, path, true);
    if (path == "/" + what) return m_impl->page(what, path, false);
  }
  const bool as_json = path.starts_with("/api/run/");
  if (as_json || path.starts_with("/run/")) {
    const std::string id = path.substr(path.rfind("/run/") + 5);
    // A run is looked up among the names of the folder, so what is no name is not there; this only keeps the answer short.
    if (!id.empty() && id.size() < 200 &&
        id.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == std::string::npos && id[0] != '.')
      return m_impl->run(id, as_json);
  }
  return refuse(404, "there is no such page", path.starts_with("/api/"));
}

}  // namespace forge
