// SPDX-License-Identifier: Apache-2.0
// One line an event: {"seq":1,"time":...,"type":...,"request":...,"response":...,"seconds":...,"prev":"<16 hex>","hash":"<16 hex>"}.
// `hash` covers the line up to it, `prev` is the hash of the line before: a line that was cut, changed or moved is noticed.
// Request and response are embedded as JSON, so that the file reads well with jq; they are kept as text by dumping them again, which
// is canonical because ordered_json keeps the order and prints doubles shortest-round-trip.
#include "store/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "core/json_io.h"
#include "store/journal_text.h"
#include "util/hash.h"
#include "util/progress.h"
#include "util/text.h"

namespace forge {

namespace {

std::string chain_hash(const std::string& text) { return sha256_hex(text).substr(0, 16); }

std::string to_line(const Event& e, const std::string& previous, std::string* hash) {
  Json line;
  line["seq"] = e.seq;
  line["time"] = e.time;
  line["type"] = e.type;
  line["request"] = Json::parse(e.request, nullptr, false);
  line["response"] = Json::parse(e.response, nullptr, false);
  line["seconds"] = e.seconds;
  line["prev"] = previous;
  *hash = chain_hash(dump(line));
  line["hash"] = *hash;
  return dump(line) + "\n";
}

std::string shorten(const std::string& text) { return text.size() <= 160 ? text : utf8_head(text, 157) + "..."; }

// Canonical JSON text, so that a request written by hand compares equal to the recorded one.
Result<std::string> canonical(const std::string& text, const std::string& what) {
  Json value = Json::parse(text, nullptr, false);
  if (value.is_discarded()) return fail(Code::internal, what + " is not JSON: " + shorten(text));
  return dump(value);
}

}  // namespace

struct Journal::Impl {
  fs::path file;
  Mode mode = Mode::memory;
  Fd fd;
  std::vector<Event> events;
  std::string last_hash;
  std::size_t next = 0;  // index of the next event to hand back
  double elapsed = 0;

  Status append(Event e) {
    std::string hash;
    const std::string line = to_line(e, last_hash, &hash);
    if (fd) {
      const off_t start = lseek(fd.get(), 0, SEEK_END);
      std::size_t done = 0;
      while (done < line.size()) {
        const ssize_t n = write(fd.get(), line.data() + done, line.size() - done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
          const int saved = errno;
          if (ftruncate(fd.get(), start) != 0) return fail_errno("cannot take back half a line from", file.string(), errno);
          return fail_errno("cannot append to", file.string(), saved);
        }
        done += static_cast<std::size_t>(n);
      }
      if (fdatasync(fd.get()) != 0) return fail_errno("cannot sync", file.string(), errno);
    }
    last_hash = hash;
    events.push_back(std::move(e));
    next = events.size();
    return {};
  }
};

Journal::Journal(std::unique_ptr<Impl> impl) : m_impl(std::move(impl)) {}
Journal::Journal(Journal&&) noexcept = default;
Journal& Journal::operator=(Journal&&) noexcept = default;
Journal::~Journal() = default;

Result<Journal> Journal::open(const fs::path& file, Mode mode) {
  auto impl = std::make_unique<Impl>();
  impl->file = file;
  impl->mode = mode;
  if (mode == Mode::memory) return Journal(std::move(impl));
  // One writer at a time, and it holds the lock before it reads: what it goes on from, and cuts a torn line off, must not move.
  const auto lock = [&]() -> Status {
    if (flock(impl->fd.get(), LOCK_EX | LOCK_NB) == 0) return {};
    return fail(Error{.code = Code::io,
                      .message = "another forge process works on this run",
                      .file = file.string(),
                      .line = 0,
                      .field = {},
                      .fix = "wait for it, or stop it"});
  };
  if (mode == Mode::create) {
    FORGE_TRY(make_dirs(file.parent_path()));
    impl->fd = Fd(::open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644));
    if (!impl->fd) return fail_errno("cannot start the journal", file.string(), errno);
    FORGE_TRY(lock());
  } else {
    if (mode == Mode::resume) {
      impl->fd = Fd(::open(file.c_str(), O_RDWR | O_APPEND | O_CLOEXEC));
      if (!impl->fd && errno != ENOENT) return fail_errno("cannot go on with the journal", file.string(), errno);
      if (impl->fd) FORGE_TRY(lock());
    }
    FORGE_TRY_ASSIGN(std::string text, read_file(file));
    JournalText parsed;
    FORGE_TRY(parse_journal(file, text, parsed));
    impl->events = std::move(parsed.events);
    impl->last_hash = parsed.last_hash;
    if (mode == Mode::resume && parsed.good_bytes < text.size() && ftruncate(impl->fd.get(), static_cast<off_t>(parsed.good_bytes)) != 0)
      return fail_errno("cannot drop the torn last line of", file.string(), errno);
  }
  return Journal(std::move(impl));
}

Result<std::string> Journal::step(const std::string& type, const std::string& request, const std::function<Result<std::string>()>& work) {
  Impl& j = *m_impl;
  FORGE_TRY_ASSIGN(const std::string asked, canonical(request, "request of " + type));
  if (j.next < j.events.size()) {
    const Event& recorded = j.events[j.next];
    if (recorded.type != type || recorded.request != asked) {
      std::size_t at = 0;
      while (at < std::min(recorded.request.size(), asked.size()) && recorded.request[at] == asked[at]) ++at;
      const std::size_t from = at > 40 ? at - 40 : 0;
      return fail(Error{.code = Code::diverged,
                        .message = fmt::format("event {} was recorded as {} ...{}, now it is {} ...{}", recorded.seq, recorded.type,
                                               shorten(recorded.request.substr(std::min(from, recorded.request.size()))), type,
                                               shorten(asked.substr(std::min(from, asked.size())))),
                        .file = j.file.string(),
                        .line = static_cast<int>(recorded.seq),
                        .field = {},
                        .fix = "the program, its blueprints or its knowledge changed since; start a new run"});
    }
    ++j.next;
    j.elapsed += recorded.seconds;
    return recorded.response;
  }
  if (j.mode == Mode::replay)
    return fail(Error{.code = Code::diverged,
                      .message = fmt::format("the record ends after {} events, but the run asks for {}", j.events.size(), type),
                      .file = j.file.string(),
                      .line = 0,
                      .field = {},
                      .fix = {}});
  const double start = monotonic_seconds();
  FORGE_TRY_ASSIGN(std::string response, work());
  FORGE_TRY_ASSIGN(response, canonical(response, "response of " + type));
  Event e;
  e.seq = static_cast<std::int64_t>(j.events.size()) + 1;
  e.time = utc_now();
  e.type = type;
  e.request = asked;
  e.response = response;
  e.seconds = monotonic_seconds() - start;
  j.elapsed += e.seconds;
  FORGE_TRY(j.append(std::move(e)));
  return response;
}

Status Journal::decide(const std::string& type, const std::string& request) {
  FORGE_TRY(step(type, request, [] { return Result<std::string>("null"); }));
  return {};
}

bool Journal::replaying() const { return m_impl->next < m_impl->events.size(); }
double Journal::elapsed_seconds() const { return m_impl->elapsed; }
const std::vector<Event>& Journal::events() const { return m_impl->events; }

}  // namespace forge
