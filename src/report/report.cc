// SPDX-License-Identifier: Apache-2.0
#include "report/report.h"

#include "report/story.h"

namespace forge {

static Result<std::string> render_story(const Story& s, const std::string& chart_js) {
  if (s.first_type != "run.start")
    return fail(Code::bad_input, "this journal does not begin with run.start: there is nothing to report",
                "`forge runs` lists what there is");
  return html_page(s.title(), story_sections(s, chart_html(dump(chart_data(s)), chart_js), false));
}

Result<std::string> render_report(const std::vector<Event>& events, const std::string& chart_js) {
  Story s;
  for (const Event& e : events) s.add(e);
  return render_story(s, chart_js);
}

Result<std::string> render_journal(const fs::path& journal, const std::string& chart_js) {
  Story s;
  JournalMark mark;
  FORGE_TRY(scan_journal(journal, mark, [&](const Event& e) { s.add(e); }));
  return render_story(s, chart_js);
}

}  // namespace forge
