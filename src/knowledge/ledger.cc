// SPDX-License-Identifier: Apache-2.0
// Who used what: FORGE_HOME/uses.jsonl, one JSON object a line. A torn last line is dropped on reading.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <set>
#include <tuple>

#include "core/loose_json.h"
#include "knowledge/knowledge.h"
#include "util/progress.h"

namespace forge {

const char* name(Use use) {
  switch (use) {
    case Use::retrieved:
      return "retrieved";
    case Use::cited:
      return "cited";
    case Use::implemented:
      return "implemented";
    case Use::adopted:
      return "adopted";
  }
  return "retrieved";
}

Status record_uses(const fs::path& home, const std::vector<UseRow>& rows) {
  if (rows.empty()) return {};
  FORGE_TRY(make_dirs(home));
  const fs::path file = home / "uses.jsonl";
  Fd fd(open(file.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!fd) return fail_errno("cannot append to", file.string(), errno);
  // A resumed run repeats its rows, and two may resume the same run: under one lock, what is there already is not written again.
  if (flock(fd.get(), LOCK_EX) != 0) return fail_errno("cannot lock", file.string(), errno);
  using Key = std::tuple<std::string, std::string, Use>;
  std::set<Key> known;
  FORGE_TRY_ASSIGN(const std::vector<UseRow> before, read_uses(home));
  for (const UseRow& r : before) known.insert(Key{r.entry, r.run, r.use});
  std::string text;
  for (const UseRow& r : rows) {
    if (!known.insert(Key{r.entry, r.run, r.use}).second) continue;
    Json line;
    line["entry"] = r.entry, line["operator"] = r.operator_name, line["run"] = r.run, line["generation"] = r.generation,
    line["use"] = name(r.use);
    text += dump(line) + "\n";
  }
  if (text.empty()) return {};
  char last = '\n';  // after a torn line, start a new one: the torn one stays unreadable and is skipped
  const off_t size = lseek(fd.get(), 0, SEEK_END);
  if (size > 0 && pread(fd.get(), &last, 1, size - 1) == 1 && last != '\n') text = "\n" + text;
  if (write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return fail_errno("cannot append to", file.string(), errno ? errno : ENOSPC);
  if (fdatasync(fd.get()) != 0) return fail_errno("cannot sync", file.string(), errno);
  return {};
}

Result<std::vector<UseRow>> read_uses(const fs::path& home) {
  std::vector<UseRow> out;
  const auto text = read_file(home / "uses.jsonl");
  if (!text) {
    if (text.error().code == Code::not_found) return out;
    return fail(text.error());
  }
  std::size_t at = 0;
  while (at < text->size()) {
    std::size_t end = text->find('\n', at);
    if (end == std::string::npos) end = text->size();
    const Json line =
        Json::parse(text->begin() + static_cast<std::ptrdiff_t>(at), text->begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
    at = end + 1;
    if (!line.is_object()) continue;
    UseRow r{.entry = string_of(line, "entry"),
             .operator_name = string_of(line, "operator"),
             .run = string_of(line, "run"),
             .generation = string_of(line, "generation"),
             .use = Use::retrieved};
    bool known = false;
    for (const Use u : {Use::retrieved, Use::cited, Use::implemented, Use::adopted})
      if (string_of(line, "use") == name(u)) r.use = u, known = true;
    if (known && !r.entry.empty()) out.push_back(std::move(r));
  }
  return out;
}

}  // namespace forge
