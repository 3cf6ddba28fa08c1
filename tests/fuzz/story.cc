// SPDX-License-Identifier: Apache-2.0
// A run's events, told as a report, a live page and spans: a journal's chain says that it is whole, not what its events hold.
// Input: four lines an event: type, request, response, seconds.
// link: forge_report
#include "report/story.h"

#include "fuzz/target.h"
#include "report/trace.h"
#include "util/text.h"

namespace forge {

FORGE_FUZZ_TARGET(story) {
  const auto lines = split(std::string(bytes), '\n');
  std::vector<Event> events;
  for (std::size_t i = 0; i + 2 < lines.size(); i += 4) {
    Event e;
    e.seq = static_cast<std::int64_t>(events.size()) + 1;
    e.time = "2026-01-02T03:04:05Z";
    e.type = lines[i], e.request = lines[i + 1], e.response = lines[i + 2];
    e.seconds = i + 3 < lines.size() ? std::min(1e6, std::max(0.0, std::atof(lines[i + 3].c_str()))) : 0;
    if (!Json::accept(e.request) || !Json::accept(e.response)) return;  // a journal's line is JSON
    events.push_back(std::move(e));
  }
  Story story;
  for (const Event& e : events) story.add(e);
  for (const bool written_to : {false, true}) {
    const RunState state = state_of(story, written_to);
    (void)dump(facts_json(story, state));
    (void)now_html(story, state);
  }
  (void)dump(chart_data(story));
  (void)story_sections(story, "chart", true);
  if (!events.empty()) (void)render_trace(events);
}

}  // namespace forge
