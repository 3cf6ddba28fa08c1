// SPDX-License-Identifier: Apache-2.0
// One self-contained HTML file for a run: candidates over time against reference and ceiling, the plan with its evidence,
// mechanism checks, entries cited, the environment. Charts by Chart.js, inlined. Made from the journal alone.
#pragma once
#include <string>

#include "store/store.h"
#include "util/fs.h"

namespace forge {
// chart_js: text of chart.min.js; empty: the page says that the chart is missing and shows a table.
Result<std::string> render_report(const std::vector<Event>&, const std::string& chart_js);
Result<std::string> render_journal(const fs::path& journal, const std::string& chart_js);  // never in memory as a whole
Result<std::string> find_chart_js();  // Debian's libjs-chart.js; not_found names the package
}  // namespace forge
