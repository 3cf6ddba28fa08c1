// SPDX-License-Identifier: Apache-2.0
// HTML without a template engine: a page of sections, tables, one chart.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace forge {

using Section = std::pair<std::string, std::string>;  // title, HTML

std::string escape_html(const std::string&);
std::string html_table(const std::vector<std::string>& head,
                       const std::vector<std::vector<std::string>>& rows);  // cells are escaped; \n breaks
std::string html_page(const std::string& title, const std::vector<Section>&);
// data: {points: [{n, ms, reason, what, revision, label, detail, speedup}], reference_ms, ceiling_ms}. Empty chart_js: a sentence instead.
std::string chart_html(const std::string& data_json, const std::string& chart_js);
std::string chart_place();  // where chart_code() draws
std::string chart_code();   // defines forgeChart(data), which needs Chart.js
std::string page_style();   // CSS

// A page that shows the sections, then follows the JSON at `source`: {title, sections: [[title, HTML]], chart} (live_page.cc).
struct LivePage {
  std::string title, source, active;  // active: which entry of the navigation
  std::vector<Section> sections;
  int every_ms = 1000;
};
std::string live_html(const LivePage&);
std::string live_style();  // CSS, on top of page_style()
std::string live_code();

}  // namespace forge
