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

}  // namespace forge
