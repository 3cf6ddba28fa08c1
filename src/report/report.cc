// SPDX-License-Identifier: Apache-2.0
#include "report/report.h"

#include "report/story.h"

namespace forge {

Result<std::string> render_report(const std::vector<Event>& events, const std::string& chart_js) {
  if (events.empty() || events.front().type != "run.start")
    return fail(Code::bad_input, "this journal does not begin with run.start: there is nothing to report",
                "`forge runs` lists what there is");
  Story s;
  for (const Event& e : events) s.add(e);
  return html_page(s.title(), story_sections(s, chart_html(dump(chart_data(s)), chart_js), false));
}

}  // namespace forge
