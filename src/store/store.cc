// SPDX-License-Identifier: Apache-2.0
// The index is a cache: every row in it comes from a journal, and a damaged or old one is thrown away and made again. A row knows how
// far its journal was read, so that of a run that goes on only what is new is read.
#include "store/store.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>

#include "core/loose_json.h"
#include "util/hash.h"
#include "util/progress.h"
#include "util/random.h"
#include "util/text.h"

namespace forge {

namespace {

constexpr int kSchema = 2;
constexpr const char* kLastRun = "last-run";
const char* const kTables =
    "CREATE TABLE IF NOT EXISTS runs(id TEXT PRIMARY KEY, operator TEXT, target TEXT, reference TEXT, started TEXT, state TEXT, stop TEXT,"
    " candidates INT, accepted INT, best_speedup REAL, verdict TEXT, best_package TEXT, journal_bytes INT,"
    " good_bytes INT, lines INT, last_hash TEXT);"
    "CREATE TABLE IF NOT EXISTS reasons(run TEXT, reason TEXT, n INT, PRIMARY KEY(run, reason));";

// A statement with its bindings; steps row by row.
class Query {
 public:
  Query(sqlite3* db, const char* sql) { m_ok = sqlite3_prepare_v2(db, sql, -1, &m_stmt, nullptr) == SQLITE_OK; }
  ~Query() { sqlite3_finalize(m_stmt); }
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;
  Query& bind(const std::string& text) {
    if (m_stmt) sqlite3_bind_text(m_stmt, ++m_at, text.c_str(), -1, SQLITE_TRANSIENT);
    return *this;
  }
  Query& bind(std::int64_t value) {
    if (m_stmt) sqlite3_bind_int64(m_stmt, ++m_at, value);
    return *this;
  }
  Query& bind(double value) {
    if (m_stmt) sqlite3_bind_double(m_stmt, ++m_at, value);
    return *this;
  }
  bool row() { return m_ok && (m_result = sqlite3_step(m_stmt)) == SQLITE_ROW; }
  bool run() {
    while (row()) {
    }
    return m_ok && m_result == SQLITE_DONE;
  }
  std::string text(int column) const {
    const unsigned char* t = sqlite3_column_text(m_stmt, column);
    return t ? reinterpret_cast<const char*>(t) : "";
  }
  std::int64_t integer(int column) const { return sqlite3_column_int64(m_stmt, column); }
  double real(int column) const { return sqlite3_column_double(m_stmt, column); }

 private:
  sqlite3_stmt* m_stmt = nullptr;
  int m_at = 0, m_result = SQLITE_OK;
  bool m_ok = false;
};

// Of a verdict's JSON text. It begins with its reason, so the rest, most of it, is not parsed.
std::string reason_of(const std::string& verdict) {
  constexpr std::string_view kStart = "{\"reason\":\"";
  if (verdict.starts_with(kStart)) {
    const std::size_t end = verdict.find_first_of("\"\\", kStart.size());
    if (end != std::string::npos && verdict[end] == '"') return verdict.substr(kStart.size(), end - kStart.size());
  }
  return string_of(Json::parse(verdict, nullptr, false), "reason");
}

// What a journal says of its run, as far as it was read. Event types: docs/formats/journal.md.
struct Summary {
  RunRow row;
  std::map<std::string, std::int64_t> reasons;
  JournalMark mark;
  std::int64_t journal_bytes = 0;  // the file's, before it was read

  void add(const Event& e) {
    if (e.type == "run.start") {
      const Json request = Json::parse(e.request, nullptr, false);
      const Json task = request.contains("task") ? request["task"] : request;
      row.operator_name = string_of(task, "operator");
      row.target = string_of(task, "target");
      row.reference = string_of(task, "reference");
      row.started = e.time;
    } else if (e.type == "gate.submit") {
      ++row.candidates;
      const std::string reason = reason_of(e.response);
      ++reasons[reason];
      if (reason == name(Reason::accepted)) ++row.accepted;
    } else if (e.type == "run.end") {
      const Json request = Json::parse(e.request, nullptr, false);
      row.state = "finished";
      row.stop = string_of(request, "stop");
      row.verdict = string_of(request, "verdict");
      row.best_package = string_of(request, "package");
      if (request.contains("speedup") && request["speedup"].is_number()) row.best_speedup = request["speedup"].get<double>();
    }
  }
};
Summary nothing_read(const std::string& id) {
  Summary s;
  s.row.id = id;
  s.row.state = "interrupted";
  return s;
}

// The columns of runs, up to best_package.
RunRow read_row(const Query& q) {
  RunRow r;
  r.id = q.text(0), r.operator_name = q.text(1), r.target = q.text(2), r.reference = q.text(3), r.started = q.text(4), r.state = q.text(5),
  r.stop = q.text(6);
  r.candidates = static_cast<int>(q.integer(7)), r.accepted = static_cast<int>(q.integer(8)), r.best_speedup = q.real(9);
  r.verdict = q.text(10), r.best_package = q.text(11);
  return r;
}

// Within a transaction: the row and its reasons must be of one state.
Summary indexed_so_far(sqlite3* db, const std::string& id) {
  Summary s = nothing_read(id);
  Query q(db,
          "SELECT id,operator,target,reference,started,state,stop,candidates,accepted,best_speedup,verdict,best_package,"
          "good_bytes,lines,last_hash FROM runs WHERE id=?");
  q.bind(id);
  if (!q.row()) return s;
  s.row = read_row(q);
  s.mark.good_bytes = static_cast<std::size_t>(q.integer(12)), s.mark.lines = static_cast<int>(q.integer(13));
  s.mark.last_hash = q.text(14);
  Query reasons(db, "SELECT reason, n FROM reasons WHERE run=?");
  reasons.bind(id);
  while (reasons.row()) s.reasons[reasons.text(0)] = reasons.integer(1);
  return s;
}

bool put_summary(sqlite3* db, const Summary& s) {
  const RunRow& r = s.row;
  Query run(db, "INSERT OR REPLACE INTO runs VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
  bool ok = run.bind(r.id)
                .bind(r.operator_name)
                .bind(r.target)
                .bind(r.reference)
                .bind(r.started)
                .bind(r.state)
                .bind(r.stop)
                .bind(std::int64_t(r.candidates))
                .bind(std::int64_t(r.accepted))
                .bind(r.best_speedup)
                .bind(r.verdict)
                .bind(r.best_package)
                .bind(s.journal_bytes)
                .bind(static_cast<std::int64_t>(s.mark.good_bytes))
                .bind(std::int64_t(s.mark.lines))
                .bind(s.mark.last_hash)
                .run();
  Query clear(db, "DELETE FROM reasons WHERE run=?");
  ok = ok && clear.bind(r.id).run();
  for (const auto& [reason, n] : s.reasons) {
    Query add(db, "INSERT INTO reasons VALUES(?,?,?)");
    ok = ok && add.bind(r.id).bind(reason).bind(n).run();
  }
  return ok;
}

}  // namespace

struct Store::Impl {
  fs::path home;
  sqlite3* db = nullptr;
  ~Impl() { sqlite3_close(db); }

  fs::path journal_of(const std::string& id) const { return home / "runs" / id / "journal.jsonl"; }
  // Also where this user may not look: only what is certainly not there is no run.
  bool has_journal(const std::string& id) const {
    std::error_code why;
    return fs::status(journal_of(id), why).type() != fs::file_type::not_found;
  }

  // SQLite calls a full disk an I/O error wherever it is not a page of the database that does not fit.
  bool disk_is_full() const {
    const int code = sqlite3_errcode(db), system = sqlite3_system_errno(db);
    if (code == SQLITE_FULL || system == ENOSPC || system == EDQUOT) return true;
    struct statvfs disk {};
    constexpr std::uint64_t kIndexNeeds = 64 * 1024;  // bytes: its log's own index takes half of that
    return (code == SQLITE_IOERR || code == SQLITE_CANTOPEN) && statvfs(home.c_str(), &disk) == 0 &&
           std::uint64_t(disk.f_bavail) * disk.f_frsize < kIndexNeeds;
  }
  Error sql_error(const std::string& what) const {
    if (disk_is_full())
      return Error{.code = Code::disk_full,
                   .message = what + ": no space is left on the disk of the state folder",
                   .file = (home / "index.sqlite").string(),
                   .line = 0,
                   .field = {},
                   .fix = "free some space there, or set FORGE_HOME to a folder on another disk"};
    return Error{.code = Code::io,
                 .message = what + ": " + sqlite3_errmsg(db),
                 .file = (home / "index.sqlite").string(),
                 .line = 0,
                 .field = {},
                 .fix = "the index can be deleted at any time: it is rebuilt from the journals"};
  }
  Status exec(const char* sql) {
    if (sqlite3_exec(db, sql, nullptr, nullptr, nullptr) != SQLITE_OK) return fail(sql_error("cannot write the index"));
    return {};
  }
  // What the index says of a run; read_on adds what its journal says beyond that.
  Result<Summary> known_of(const std::string& id) {
    const fs::path file = journal_of(id);
    std::error_code error;
    // Before it is read: what comes meanwhile is for the next time.
    const auto bytes = static_cast<std::int64_t>(fs::file_size(file, error));
    FORGE_TRY(exec("BEGIN"));
    Summary s = indexed_so_far(db, id);
    FORGE_TRY(exec("COMMIT"));
    if (!stands_in(s.mark, file)) s = nothing_read(id);
    s.journal_bytes = bytes;
    return s;
  }
  Status read_on(Summary& s) const {
    return scan_journal(journal_of(s.row.id), s.mark, [&](const Event& e) { s.add(e); });
  }
  Status write(const std::vector<Summary>& all) {
    FORGE_TRY(exec("BEGIN IMMEDIATE"));
    for (const Summary& s : all)
      if (!put_summary(db, s)) {
        const Error e = sql_error("cannot index run " + s.row.id);
        sqlite3_exec(db, "ROLLBACK", nullptr, nullptr, nullptr);
        return fail(e);
      }
    return exec("COMMIT");
  }
  Status open_index() {
    const fs::path file = home / "index.sqlite";
    for (int attempt = 0;; ++attempt) {
      sqlite3_close(db);
      db = nullptr;
      const bool opened = sqlite3_open(file.c_str(), &db) == SQLITE_OK;
      sqlite3_busy_timeout(db, 10'000);
      if (opened && sqlite3_exec(db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;", nullptr, nullptr, nullptr) == SQLITE_OK) {
        Query version(db, "PRAGMA user_version");
        const std::int64_t found = version.row() ? version.integer(0) : -1;
        if (found == kSchema) return exec(kTables);
        if (found == 0) {
          FORGE_TRY(exec(kTables));
          return exec(fmt::format("PRAGMA user_version={}", kSchema).c_str());
        }
      }
      const int code = sqlite3_errcode(db);
      if (attempt > 0 ||
          (code != SQLITE_NOTADB && code != SQLITE_CORRUPT && code != SQLITE_OK && code != SQLITE_ROW && code != SQLITE_DONE))
        return fail(sql_error("cannot open the index"));
      sqlite3_close(db);  // not ours, damaged, or of another version: it is only a cache
      db = nullptr;
      std::error_code ignored;
      for (const char* suffix : {"", "-wal", "-shm"}) fs::remove(file.string() + suffix, ignored);
    }
  }
};

// An index that nothing keeps: the journals fill it again each time.
static Status open_index_in_memory(sqlite3*& db) {
  sqlite3_close(db);
  db = nullptr;
  if (sqlite3_open(":memory:", &db) == SQLITE_OK && sqlite3_exec(db, kTables, nullptr, nullptr, nullptr) == SQLITE_OK) return {};
  return fail(Code::internal, fmt::format("cannot make an index in memory: {}", sqlite3_errmsg(db)));
}

Store::Store(std::unique_ptr<Impl> impl) : m_impl(std::move(impl)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

Result<Store> Store::open(const fs::path& home) {
  auto impl = std::make_unique<Impl>();
  impl->home = home;
  for (const char* folder : {"runs", "artifacts", "vault", "cache", "reports"}) {
    auto made = make_dirs(home / folder);
    if (!made) {
      made.error().fix = "make it writable, or set FORGE_HOME to a folder that is";
      return fail(made.error());
    }
  }
  if (access(home.c_str(), W_OK) != 0) return fail_errno("cannot write to the state folder", home.string(), errno);
  FORGE_TRY(impl->open_index());
  return Store(std::move(impl));
}

Result<Store> Store::open_to_read(const fs::path& home) {
  auto store = open(home);
  if (store || access((home / "runs").c_str(), R_OK | X_OK) != 0) return store;
  auto impl = std::make_unique<Impl>();
  impl->home = home;
  FORGE_TRY(open_index_in_memory(impl->db));
  return Store(std::move(impl));
}

const fs::path& Store::home() const { return m_impl->home; }
fs::path Store::run_dir(const std::string& id) const { return m_impl->home / "runs" / id; }

std::string Store::new_run_id(const Task& task) {
  std::string stamp = utc_now();  // 2026-11-30T01:36:07Z
  stamp.erase(std::remove_if(stamp.begin(), stamp.end(), [](char c) { return c == '-' || c == ':' || c == 'Z'; }), stamp.end());
  std::replace(stamp.begin(), stamp.end(), 'T', '-');
  return fmt::format("{}-{}-{:04x}", task.operator_name, stamp, os_entropy() & 0xffff);
}

Status Store::note_last(const std::string& id) { return write_file_atomic(m_impl->home / kLastRun, id + "\n"); }

Result<std::string> Store::resolve_run(const std::string& prefix) const {
  if (prefix == "last")
    if (const auto noted = read_file(m_impl->home / kLastRun)) {
      const std::string id = trim(*noted);
      if (!id.empty() && id.find('/') == std::string::npos && m_impl->has_journal(id)) return id;
    }
  std::vector<std::pair<fs::file_time_type, std::string>> matches;
  std::error_code error;
  fs::directory_iterator listed(m_impl->home / "runs", error);
  if (error) return fail_errno("cannot list the runs", (m_impl->home / "runs").string(), error.value());
  for (const auto& entry : listed) {
    const std::string id = entry.path().filename();
    if (!m_impl->has_journal(id)) continue;
    if (id == prefix) return id;
    if (prefix == "last" || id.starts_with(prefix)) matches.emplace_back(fs::last_write_time(entry.path() / "journal.jsonl", error), id);
  }
  if (matches.empty())
    return fail(Code::not_found, prefix == "last" ? "there is no run yet" : fmt::format("no run is called '{}'", prefix),
                "`forge runs` lists them");
  std::sort(matches.rbegin(), matches.rend());
  if (prefix != "last" && matches.size() > 1)
    return fail(Code::bad_input,
                fmt::format("'{}' names {} runs, {} and {} among them", prefix, matches.size(), matches[0].second, matches[1].second),
                "give more of the name");
  return matches[0].second;
}

Status Store::put_artifact(const std::string& bytes, std::string* sha) {
  *sha = sha256_hex(bytes);
  const fs::path folder = m_impl->home / "artifacts" / sha->substr(0, 2), file = folder / sha->substr(2);
  std::error_code error;
  if (fs::exists(file, error)) return {};
  FORGE_TRY(make_dirs(folder));
  return write_file_atomic(file, bytes);
}

Result<std::string> Store::get_artifact(const std::string& sha) const {
  if (sha.size() != 64 || sha.find_first_not_of("0123456789abcdef") != std::string::npos)
    return fail(Code::bad_input, fmt::format("'{}' is not the SHA-256 of an artifact", sha));
  FORGE_TRY_ASSIGN(std::string bytes, read_file(m_impl->home / "artifacts" / sha.substr(0, 2) / sha.substr(2)));
  if (sha256_hex(bytes) != sha)
    return fail(Error{.code = Code::bad_input,
                      .message = "the artifact does not match its hash",
                      .file = (m_impl->home / "artifacts" / sha.substr(0, 2) / sha.substr(2)).string(),
                      .line = 0,
                      .field = {},
                      .fix = "it was changed on disk; delete it"});
  return bytes;
}

Status Store::index_run(const std::string& id) {
  FORGE_TRY_ASSIGN(Summary read, m_impl->known_of(id));
  FORGE_TRY(m_impl->read_on(read));
  return m_impl->write({read});
}

Status Store::rebuild_index() {
  FORGE_TRY(m_impl->exec("DELETE FROM runs; DELETE FROM reasons;"));
  FORGE_TRY(runs());  // indexes whatever is not there
  return {};
}

Result<std::vector<RunRow>> Store::runs() const {
  std::map<std::string, std::int64_t> indexed;
  {
    Query known(m_impl->db, "SELECT id, journal_bytes FROM runs");
    while (known.row()) indexed[known.text(0)] = known.integer(1);
  }
  Impl& impl = *m_impl;
  Status done;
  std::vector<Summary> news;  // written together: a transaction a run takes longer than reading a short one
  std::map<std::string, std::string> unreadable;
  std::error_code error;
  fs::directory_iterator listed(m_impl->home / "runs", error);
  if (error) return fail_errno("cannot list the runs", (m_impl->home / "runs").string(), error.value());
  for (const auto& entry : listed) {
    const std::string id = entry.path().filename();
    if (!impl.has_journal(id)) continue;
    const auto found = indexed.find(id);
    if (found != indexed.end() && found->second == static_cast<std::int64_t>(fs::file_size(impl.journal_of(id), error))) continue;
    auto s = impl.known_of(id);
    if (!s) {
      done = fail(s.error());
      break;
    }
    // One journal, damaged or of somebody else, must not hide the other runs; `forge show` says more of it.
    if (const Status read = impl.read_on(*s))
      news.push_back(std::move(*s));
    else if (read.error().code != Code::not_found)  // deleted since it was listed
      unreadable[id] = read.error().message;
  }
  if (done && !news.empty()) done = impl.write(news);
  if (!done && done.error().code == Code::disk_full && *sqlite3_db_filename(impl.db, "main")) {
    FORGE_TRY(open_index_in_memory(impl.db));
    return runs();
  }
  FORGE_TRY(done);
  std::vector<RunRow> out;
  Query q(m_impl->db,
          "SELECT id,operator,target,reference,started,state,stop,candidates,accepted,best_speedup,verdict,best_package FROM runs ORDER BY "
          "started DESC, id");
  while (q.row()) {
    RunRow r = read_row(q);
    if (!impl.has_journal(r.id)) continue;
    if (const auto at = unreadable.find(r.id); at != unreadable.end()) {
      r.state = "unreadable", r.unreadable = at->second;  // the rest is what was read of it before
      unreadable.erase(at);
    }
    out.push_back(std::move(r));
  }
  for (const auto& [id, why] : unreadable) {
    RunRow r = nothing_read(id).row;
    r.state = "unreadable", r.unreadable = why;
    out.push_back(std::move(r));
  }
  return out;
}

Result<std::vector<std::pair<std::string, std::int64_t>>> Store::reason_counts(const std::optional<std::string>& run) const {
  FORGE_TRY_ASSIGN(const std::vector<RunRow> rows, runs());
  std::set<std::string> there;  // the index may still know runs whose folder somebody deleted
  for (const RunRow& row : rows) there.insert(row.id);
  std::map<std::string, std::int64_t> counts;
  {
    Query q(m_impl->db, "SELECT run, reason, n FROM reasons WHERE ?='' OR run=?");
    q.bind(run.value_or("")).bind(run.value_or(""));
    while (q.row())
      if (there.contains(q.text(0))) counts[q.text(1)] += q.integer(2);
  }
  std::vector<std::pair<std::string, std::int64_t>> out(counts.begin(), counts.end());
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return out;
}

}  // namespace forge
