// SPDX-License-Identifier: Apache-2.0
#include "report/page.h"

#include <fmt/format.h>

#include "report/report.h"

namespace forge {

namespace {

constexpr std::size_t kShortCell = 24;  // bytes: a figure with its unit or interval, a name; not broken over lines

const char* const kStyle = R"(
:root{--ink:#1d2430;--soft:#5b6675;--line:#dfe4ea;--bg:#fff;--head:#f5f7f9;--accent:#0b6e99}
@media(prefers-color-scheme:dark){:root{--ink:#e4e8ee;--soft:#9aa6b5;--line:#333c48;--bg:#14181e;--head:#1c222b;--accent:#5cc0ea}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--bg);margin:0 auto;max-width:72rem;padding:1.5rem}
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2.2rem;border-bottom:1px solid var(--line);padding-bottom:.3rem}h3{font-size:1rem}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-size:.86rem}th,td{text-align:left;vertical-align:top;padding:.3rem .7rem;border-bottom:1px solid var(--line)}
th{background:var(--head);font-weight:600;white-space:nowrap}td:first-child{white-space:nowrap;color:var(--soft)}.short{white-space:nowrap}
pre{font-size:.8rem;overflow-x:auto;background:var(--head);padding:.7rem}.chart{height:24rem;position:relative}p{color:var(--soft)}
nav a{color:var(--accent);margin-right:1rem;font-size:.86rem})";

// Own code on top of Chart.js: one scatter of hand-ins, two horizontal lines, colours by verdict, a mark where a revision begins.
const char* const kChartCode = R"(
function forgeChart(d){
const css=getComputedStyle(document.documentElement);
const ink=css.getPropertyValue('--ink'),soft=css.getPropertyValue('--soft'),grid=css.getPropertyValue('--line');
const measured=d.points.filter(p=>p.ms>0),n=Math.max(2,...d.points.slice(-1).map(p=>p.n));
const line=(label,y,color)=>({type:'line',label,data:[{x:.5,y},{x:n+.5,y}],borderColor:color,borderDash:[6,4],borderWidth:2,pointRadius:0,pointStyle:'line'});
const good=measured.filter(p=>p.reason==='accepted'),other=measured.filter(p=>p.reason!=='accepted');
const dots=(label,points,color,style)=>({type:'scatter',label,data:points.map(p=>({x:p.n,y:p.ms,p})),backgroundColor:color,borderColor:color,pointStyle:style,pointRadius:6,pointHoverRadius:8});
let best=Infinity;const stairs=good.map(p=>{best=Math.min(best,p.ms);return{x:p.n,y:best}});
const sets=[dots('accepted',good,'#2a9d5c','circle'),dots('correct, not accepted',other,'#d98324','triangle'),
{type:'line',label:'best so far',data:stairs,stepped:true,borderColor:'#2a9d5c',borderWidth:1.5,pointRadius:0,pointStyle:'line'}];
if(d.reference_ms>0)sets.push(line('reference',d.reference_ms,'#c0392b'));
if(d.ceiling_ms>0)sets.push(line('roofline',d.ceiling_ms,'#0b6e99'));
const marks={id:'revisions',afterDraw(c){const x=c.scales.x,a=c.chartArea;let last=null,free=0;c.ctx.save();c.ctx.font='11px sans-serif';c.ctx.fillStyle=soft;c.ctx.strokeStyle=grid;
for(const p of d.points){if(p.revision!==last){const px=x.getPixelForValue(p.n-.5);c.ctx.beginPath();c.ctx.moveTo(px,a.top);c.ctx.lineTo(px,a.bottom);c.ctx.stroke();
const name='plan r'+p.revision;if(px+4>=free){c.ctx.fillText(name,px+4,a.top+12);free=px+8+c.ctx.measureText(name).width;}last=p.revision;}
if(!(p.ms>0)){c.ctx.fillText('x',x.getPixelForValue(p.n)-3,a.bottom-4);}}c.ctx.restore();}};
if(forgeChart.shown)forgeChart.shown.destroy();
forgeChart.shown=new Chart(document.getElementById('chart'),{data:{datasets:sets},plugins:[marks],options:{responsive:true,maintainAspectRatio:false,animation:false,
scales:{x:{type:'linear',min:.5,max:n+.5,title:{display:true,text:'hand-in',color:ink},ticks:{color:soft,precision:0,stepSize:n>40?undefined:1,callback:v=>Number.isInteger(v)?v:''},grid:{color:grid}},
y:{beginAtZero:true,title:{display:true,text:'time of a call [ms]',color:ink},ticks:{color:soft},grid:{color:grid}}},
plugins:{legend:{labels:{color:ink,usePointStyle:true}},tooltip:{callbacks:{label(c){const p=c.raw.p;return p?[p.what+': '+p.ms.toFixed(3)+' ms'+(p.speedup?', '+p.speedup.toFixed(3)+'x':''),p.reason+(p.detail?': '+p.detail.slice(0,90):''),p.label.slice(0,110)]:c.dataset.label+': '+c.parsed.y.toFixed(3)+' ms';}}}}}});
})";

}  // namespace

std::string page_style() { return kStyle; }
std::string chart_code() { return kChartCode; }

std::string escape_html(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string html_table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows) {
  std::string out = "<div class=scroll><table>";
  bool named = false;
  for (const std::string& h : head) named = named || !h.empty();
  if (named) {
    out += "<tr>";
    for (const std::string& h : head) out += "<th>" + escape_html(h) + "</th>";
    out += "</tr>";
  }
  for (const auto& row : rows) {
    out += "<tr>";
    for (const std::string& cell : row) {
      std::string text = escape_html(cell);
      for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 4) text.replace(at, 1, "<br>");
      out += (cell.size() <= kShortCell ? "<td class=short>" : "<td>") + text + "</td>";
    }
    out += "</tr>";
  }
  return out + "</table></div>";
}

std::string html_page(const std::string& title, const std::vector<Section>& sections) {
  std::string nav, body;
  int n = 0;
  for (const auto& [heading, html] : sections) {
    nav += fmt::format("<a href=\"#s{}\">{}</a>", n, escape_html(heading));
    body += fmt::format("<h2 id=s{}>{}</h2>{}\n", n, escape_html(heading), html);
    ++n;
  }
  return "<!doctype html><html lang=en><head><meta charset=utf-8><meta name=viewport "
         "content=\"width=device-width,initial-scale=1\"><title>" +
         escape_html(title) + "</title><style>" + std::string(kStyle) + "</style></head><body><h1>" + escape_html(title) + "</h1><nav>" +
         nav + "</nav>" + body + "</body></html>\n";
}

std::string chart_place() {
  return "<div class=chart><canvas id=chart role=img aria-label=\"time of every candidate against reference and roofline\"></canvas></div>";
}

std::string chart_html(const std::string& data_json, const std::string& chart_js) {
  if (chart_js.empty())
    return "<p>The chart is missing: Chart.js was not found on the machine that wrote this page (Debian package libjs-chart.js). The table "
           "below has the figures.</p>";
  std::string data = data_json;  // "</script>" inside a string would end the element
  for (std::size_t at = 0; (at = data.find('<', at)) != std::string::npos; at += 6) data.replace(at, 1, "\\u003c");
  return chart_place() + "<script type=\"application/json\" id=run-data>" + data + "</script><script>" + chart_js + "</script><script>" +
         kChartCode + "forgeChart(JSON.parse(document.getElementById('run-data').textContent));</script>";
}

Result<std::string> find_chart_js() {
  for (const char* place : {"/usr/share/javascript/chart.js/chart.min.js", "/usr/share/javascript/chart.js/Chart.min.js",
                            "/usr/share/nodejs/chart.js/dist/chart.min.js"})
    if (auto text = read_file(place)) return text;
  return fail(Code::not_found, "Chart.js was not found", "apt-get install libjs-chart.js");
}

}  // namespace forge
