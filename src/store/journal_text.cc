// SPDX-License-Identifier: Apache-2.0
// Reading the lines of a journal. Nearly all of them are as append() wrote them: their bytes match their hash, so their parts are cut
// out as they stand, without building a tree or looking at each byte. A line of which that cannot be said is parsed, and told to be damaged
// or not.
#include "store/journal_text.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "core/json_io.h"
#include "util/hash.h"

namespace forge {

namespace {

Error damaged(const fs::path& file, int line, const std::string& why) {
  return Error{.code = Code::bad_input,
               .message = "the journal is damaged here: " + why,
               .file = file.string(),
               .line = line,
               .field = {},
               .fix = "restore it from a copy; the lines before this one are whole"};
}

constexpr std::size_t kHash = 16;  // hex digits

// What is told of an event is written by a function that calls itself for every level, and a stack has an end. What agents and servers
// send is refused at 200 levels, and a few are put around it.
constexpr int kMostLevels = 1000;
bool too_deep(std::string_view line) {
  if (line.size() <= kMostLevels) return false;  // most lines: counting in all of them would cost half of what reading them does
  if (std::count(line.begin(), line.end(), '[') + std::count(line.begin(), line.end(), '{') <= kMostLevels) return false;
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < line.size() && depth <= kMostLevels; ++i) {
    const char c = line[i];
    if (in_string && c == '\\')
      ++i;
    else if (c == '"')
      in_string = !in_string;
    else if (!in_string && (c == '[' || c == '{'))
      ++depth;
    else if (!in_string && (c == ']' || c == '}'))
      --depth;
  }
  return depth > kMostLevels;
}

// Walks one line of canonical JSON. Its text is trusted only as far as it lies within the line.
struct Cutter {
  std::string_view text;
  std::size_t at = 0;
  bool ok = true;

  void expect(std::string_view what) {
    ok = ok && text.substr(at, what.size()) == what;
    at += what.size();
  }
  // A string without escapes, its quotes left out.
  std::string_view plain_string() {
    expect("\"");
    if (!ok) return {};
    const std::size_t end = text.find('"', at);
    if (end == std::string_view::npos) return ok = false, std::string_view();
    const std::string_view out = text.substr(at, end - at);
    at = end + 1;
    ok = out.find('\\') == std::string_view::npos;
    return out;
  }
  template <class Number>
  Number number() {
    Number value{};
    if (!ok) return value;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
    ok = error == std::errc();
    at = static_cast<std::size_t>(end - text.data());
    return value;
  }
  void skip_string() {  // at: behind its first quote
    for (;; ++at) {
      const void* quote = at < text.size() ? std::memchr(text.data() + at, '"', text.size() - at) : nullptr;
      if (!quote) {
        ok = false;
        return;
      }
      at = static_cast<std::size_t>(static_cast<const char*>(quote) - text.data());
      std::size_t slashes = 0;
      while (text[at - 1 - slashes] == '\\') ++slashes;  // ends at the first quote at the latest
      if (slashes % 2 == 0) break;
    }
    ++at;
  }
  std::string_view value() {
    const std::size_t start = at;
    for (int depth = 0; ok && at < text.size();) {
      const char c = text[at];
      if (depth == 0 && (c == ',' || c == '}')) break;
      ++at;
      if (c == '"') skip_string();
      if (c == '{' || c == '[') ++depth;
      if (c == '}' || c == ']') --depth;
    }
    return taken_from(start);
  }
  // The value that ends where `key` begins, found without a walk over it: within a string a quote has a backslash before it, so these
  // bytes are a key wherever they stand. More than one of them, as an object within the value may have: walks.
  std::string_view value_before(std::string_view key, std::string_view behind) {
    const std::size_t found = find(key, at), end = text.rfind(behind);
    if (found == std::string_view::npos || end == std::string_view::npos || found > end || find(key, found + 1) < end) return value();
    return up_to(found);
  }
  // The same of the last such key of the line.
  std::string_view last_value_before(std::string_view key) { return up_to(text.rfind(key)); }

 private:
  std::size_t find(std::string_view what, std::size_t from) const {
    const void* found = from < text.size() ? memmem(text.data() + from, text.size() - from, what.data(), what.size()) : nullptr;
    return found ? static_cast<std::size_t>(static_cast<const char*>(found) - text.data()) : std::string_view::npos;
  }
  std::string_view up_to(std::size_t end) {
    const std::size_t start = std::exchange(at, end);
    return taken_from(start);
  }
  std::string_view taken_from(std::size_t start) {
    ok = ok && at > start && at < text.size();
    return ok ? text.substr(start, at - start) : std::string_view();
  }
};

// True: `one` is exactly what append() writes at that place. False: nothing is said of it, and `e` and `hash` mean nothing.
bool cut_line(std::string_view one, int number, const std::string& previous, Event& e, std::string& hash, std::string& scratch) {
  constexpr std::string_view kKey = ",\"hash\":\"", kEnd = "\"}";
  constexpr std::size_t kTail = kKey.size() + kHash + kEnd.size();
  if (one.size() <= kTail || !one.ends_with(kEnd)) return false;
  const std::size_t body = one.size() - kTail;
  if (one.substr(body, kKey.size()) != kKey) return false;
  scratch.assign(one.substr(0, body));
  scratch += '}';
  hash = sha256_hex(scratch);
  hash.resize(kHash);
  if (one.substr(body + kKey.size(), kHash) != hash) return false;
  Cutter c{.text = one.substr(0, body + 1)};
  c.expect("{\"seq\":");
  e.seq = c.number<std::int64_t>();
  if (!c.ok || e.seq != number) return false;
  c.expect(",\"time\":");
  e.time.assign(c.plain_string());
  c.expect(",\"type\":");
  e.type.assign(c.plain_string());
  c.expect(",\"request\":");
  e.request.assign(c.value_before(",\"response\":", ",\"seconds\":"));
  c.expect(",\"response\":");
  e.response.assign(c.last_value_before(",\"seconds\":"));
  c.expect(",\"seconds\":");
  e.seconds = c.number<double>();
  c.expect(",\"prev\":");
  return c.plain_string() == previous && c.ok && c.at == body;
}

// Any other line. not_json: it is none, which at the end of a file is no damage.
Status parse_line(const fs::path& file, std::string_view one, int number, const std::string& previous, Event& e, std::string& hash,
                  bool& not_json) {
  Json line = Json::parse(one.begin(), one.end(), nullptr, false);
  not_json = line.is_discarded() || !line.is_object();
  if (not_json) return fail(damaged(file, number, "not a JSON object"));
  for (const char* key : {"seq", "time", "type", "request", "response", "seconds", "prev", "hash"})
    if (!line.contains(key)) return fail(damaged(file, number, fmt::format("no '{}'", key)));
  if (!line["seq"].is_number_integer() || !line["type"].is_string() || !line["time"].is_string() || !line["seconds"].is_number() ||
      !line["prev"].is_string() || !line["hash"].is_string())
    return fail(damaged(file, number, "a field has the wrong type"));
  e.seq = line["seq"].get<std::int64_t>();
  e.time = line["time"].get<std::string>();
  e.type = line["type"].get<std::string>();
  e.request = dump(line["request"]);
  e.response = dump(line["response"]);
  e.seconds = line["seconds"].get<double>();
  hash = line["hash"].get<std::string>();
  const std::string said = line["prev"].get<std::string>();
  line.erase("hash");
  if (e.seq != number) return fail(damaged(file, number, fmt::format("event {} where {} was expected", e.seq, number)));
  if (said != previous || hash != sha256_hex(dump(line)).substr(0, kHash)) return fail(damaged(file, number, "the hash chain is broken"));
  return {};
}

Status read_at(int fd, const fs::path& file, std::size_t offset, std::string& into) {
  std::size_t got = 0;
  while (got < into.size()) {
    const ssize_t n = pread(fd, into.data() + got, into.size() - got, static_cast<off_t>(offset + got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno("cannot read", file.string(), errno);
    if (n == 0) break;
    got += static_cast<std::size_t>(n);
  }
  into.resize(got);
  return {};
}

}  // namespace

Status parse_journal(const fs::path& file, std::string_view fresh, JournalMark& so_far, const std::function<void(Event&)>& take) {
  const std::size_t base = so_far.good_bytes;
  Event e;
  std::string hash, scratch;
  for (std::size_t at = 0; at < fresh.size();) {
    const int number = so_far.lines + 1;
    const std::size_t end = fresh.find('\n', at);
    if (end == std::string_view::npos) break;
    const std::string_view one = fresh.substr(at, end - at);
    if (too_deep(one)) return fail(damaged(file, number, fmt::format("nested deeper than {}", kMostLevels)));
    if (!cut_line(one, number, so_far.last_hash, e, hash, scratch)) {
      bool not_json = false;
      const Status parsed = parse_line(file, one, number, so_far.last_hash, e, hash, not_json);
      if (not_json && end + 1 == fresh.size()) break;
      if (!parsed) return fail(parsed.error());
    }
    take(e);
    so_far.last_hash = hash;
    at = end + 1;
    so_far.good_bytes = base + at;
    so_far.lines = number;
  }
  return {};
}

Status parse_journal(const fs::path& file, std::string_view fresh, JournalText& so_far) {
  return parse_journal(file, fresh, so_far, [&](Event& e) { so_far.events.push_back(std::move(e)); });
}

Status scan_journal(const fs::path& file, JournalMark& from, const std::function<void(Event&)>& take) {
  const Fd fd(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a pipe in its place is refused, not waited for
  if (!fd) return fail_errno("cannot read", file.string(), errno);
  constexpr std::size_t kBlock = 256 * 1024;  // stays in a core's cache
  std::string block;
  for (std::size_t want = kBlock;;) {
    block.resize(want);
    FORGE_TRY(read_at(fd.get(), file, from.good_bytes, block));
    const std::size_t before = from.good_bytes;
    FORGE_TRY(parse_journal(file, block, from, take));
    if (block.size() < want) return {};                    // that was the end of it; what is left is torn
    want = from.good_bytes == before ? 2 * want : kBlock;  // a line longer than the block, or one that ends with it and is no JSON
  }
}

Result<std::vector<Event>> read_journal(const fs::path& file) {
  JournalText parsed;
  FORGE_TRY(scan_journal(file, parsed, [&](Event& e) { parsed.events.push_back(std::move(e)); }));
  return std::move(parsed.events);
}

bool stands_in(const JournalMark& mark, const fs::path& file) {
  if (mark.lines == 0) return mark.good_bytes == 0;
  const std::string end = mark.last_hash + "\"}\n";
  if (mark.good_bytes < end.size()) return false;
  const Fd fd(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::string there(end.size(), '\0');
  return fd && read_at(fd.get(), file, mark.good_bytes - end.size(), there) && there == end;
}

}  // namespace forge
