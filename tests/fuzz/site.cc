// SPDX-License-Identifier: Apache-2.0
// What `forge serve` answers, from state that holds anything: no path ends it, and nothing that a run or the ledger says becomes a tag of
// the page. Input: paths, a line each, ====, uses.jsonl, ====, a run's journal (journal_lines.h).
// link: forge_report
#include "report/site.h"

#include "core/json_io.h"
#include "fuzz/journal_lines.h"
#include "fuzz/target.h"

namespace forge {

// Whatever the state says must be escaped where it stands in HTML.
static void no_foreign_tag(const std::string& html) { HOLDS(html.find("<x-foreign") == std::string::npos); }

static void look_at(const WebReply& reply) {
  HOLDS(reply.status == 200 || reply.status == 404 || reply.status == 409 || reply.status == 500);
  if (reply.type.starts_with("text/html")) no_foreign_tag(reply.body);
  if (!reply.type.starts_with("application/json")) return;
  const Json j = Json::parse(reply.body, nullptr, false);
  HOLDS(j.is_object());
  if (j.contains("sections"))
    for (const Json& section : j["sections"]) no_foreign_tag(section.at(0).get<std::string>() + section.at(1).get<std::string>());
}

FORGE_FUZZ_TARGET(site) {
  const auto texts = fuzz::parts(bytes, 3);
  const fs::path home = fuzz::put("home/uses.jsonl", texts[1]).parent_path();
  fuzz::put("home/runs/r1/journal.jsonl", fuzz::chained(texts[2]));
  fs::create_directories(fuzz::folder() / "data/knowledge");
  auto site = Site::open(Paths{.data = fuzz::folder() / "data", .plugins = {}, .home = home});
  HOLDS(site.has_value());
  int asked = 0;
  for (const std::string& path : split(texts[0], '\n'))
    if (++asked <= 8) look_at(site->answer({.path = path, .if_none_match = {}}));
  for (const char* path : {"/", "/knowledge", "/api/knowledge", "/run/r1", "/api/run/r1"})
    look_at(site->answer({.path = path, .if_none_match = {}}));
}

}  // namespace forge
