// SPDX-License-Identifier: Apache-2.0
// The live page: the report's sections, asked for again while one looks. HTML comes escaped from the server, and the page's policy lets
// no inline script run; so the code only puts in place what changed.
#include <fmt/format.h>

#include "report/page.h"

namespace forge {

namespace {

const char* const kLiveStyle = R"(
:root{--good:#1d7f49;--bad:#b4641a;--lit:#e6f4ec}
@media(prefers-color-scheme:dark){:root{--good:#4cc38a;--bad:#e8a15c;--lit:#17352a}}
body{max-width:84rem}main{overflow-wrap:anywhere}h1{margin:.6rem 0 0;overflow-wrap:anywhere}a{color:var(--accent)}
header{display:flex;gap:.4rem 1.2rem;align-items:baseline;flex-wrap:wrap;border-bottom:1px solid var(--line);padding-bottom:.6rem}
header b{font-size:1.05rem}header a.on{font-weight:600;color:var(--ink);text-decoration:none}
#status{margin:.2rem 0 0;font-size:.82rem}#status.lost{color:var(--bad);font-weight:600}
section{scroll-margin-top:1rem}section:first-child h2{display:none}section:first-child{margin-top:1.2rem}
.cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(10rem,1fr));gap:.7rem}
.card{background:var(--head);border:1px solid var(--line);border-radius:.5rem;padding:.55rem .8rem;display:flex;flex-direction:column;min-width:0}
.card span,.card small{color:var(--soft);font-size:.78rem}.card b{font-size:1.3rem;line-height:1.35}
.card small{display:-webkit-box;-webkit-line-clamp:3;-webkit-box-orient:vertical;overflow:hidden}
.card.good b,.chip.good b{color:var(--good)}.card.bad b{color:var(--bad)}
.card.running{border-color:var(--good)}.card.running b{color:var(--good)}.card.interrupted b{color:var(--bad)}
.reasons{margin:.8rem 0;font-size:.86rem;color:var(--soft)}
.chip{display:inline-block;border:1px solid var(--line);border-radius:1rem;padding:.05rem .65rem;margin:.15rem .1rem;color:var(--ink)}
td{overflow-wrap:normal}td:not(.short){min-width:10rem}.narrow td,.uses td{white-space:nowrap;min-width:0}.narrow td:last-child{white-space:normal}.narrow .good{color:var(--good);font-weight:600}
.uses td:first-child{position:sticky;left:0;background:var(--bg)}.uses .none{color:var(--soft)}
.uses .adopted{background:var(--lit);color:var(--good);font-weight:600}.uses .implemented{background:var(--head)}
@media(max-width:40rem){body{padding:.8rem}.cards{grid-template-columns:1fr 1fr}.chart{height:19rem}nav{display:none}.card b{font-size:1.1rem}h1{font-size:1.15rem}
header{gap:.3rem .8rem;font-size:.88rem}header b{width:100%}
th,td{padding:.3rem .45rem}.uses td:first-child{white-space:normal;min-width:6.5rem}
table:not([class]) td:nth-child(n+3):not(.short){min-width:24rem}.narrow td:empty{display:none}
.narrow,.narrow tbody{display:block}.narrow tr{display:flex;flex-wrap:wrap;gap:0 .8rem;padding:.4rem 0;border-bottom:1px solid var(--line)}
.narrow tr:first-child{display:none}.narrow td{border:0;padding:0}
.narrow td:nth-child(n+3)::before{content:attr(data-head) " ";color:var(--soft);font-size:.78rem}})";

const char* const kLiveCode = R"((function(){
'use strict';
const body=document.body,main=document.querySelector('main'),status=document.getElementById('status');
const every=Number(body.dataset.every),seen=new WeakMap();let version='',last='',drawn='',trouble='',failures=0;
function node(tag,id){const e=document.createElement(tag);e.id=id;return e;}
function draw(data){const at=document.getElementById('chart');if(!at||!data)return;
const now=JSON.stringify(data);if(now===drawn)return;drawn=now;
if(typeof Chart==='undefined'){at.parentElement.textContent='The chart is missing: libjs-chart.js is not installed where forge serve runs.';return;}
forgeChart(data);}
function put(section,html){const place=section.querySelector('div');if(seen.get(place)===html)return;
const before=Array.from(place.querySelectorAll('.scroll'),e=>e.scrollLeft);
place.innerHTML=html;seen.set(place,html);
place.querySelectorAll('.scroll').forEach((e,i)=>{if(before[i])e.scrollLeft=before[i];});}
function show(d){
if(d.version===version)return;version=d.version;document.title=d.title;document.querySelector('h1').textContent=d.title;
d.sections.forEach(([title,html],i)=>{let s=document.getElementById('s'+i);
if(!s){s=node('section','s'+i);s.append(document.createElement('h2'),document.createElement('div'));main.append(s);}
s.querySelector('h2').textContent=title;put(s,html);});
for(let i=d.sections.length,s;(s=document.getElementById('s'+i));i++)s.remove();
last=d.last_event?d.last_event.time:'';draw(d.chart);}
function say(){
const ago=last?Math.max(0,Math.round((Date.now()-Date.parse(last))/1000)):0;
const when=!last?'':ago<120?ago+' s ago':last.replace('T',' ').replace('Z',' UTC');
status.className=failures?'lost':'';
status.textContent=failures?trouble+'; below is what was shown last':(when?'last event '+when+'; ':'')+'followed live';}
async function look(){
try{const r=await fetch(body.dataset.source,{cache:'no-cache'}),d=await r.json();
if(r.ok){show(d);failures=0;}else{trouble=d.error;failures++;}}
catch(e){trouble='forge serve does not answer';failures++;}
say();setTimeout(look,(document.hidden?5:1)*every*Math.min(8,1+failures));}
document.addEventListener('visibilitychange',say);look();
})();
)";

}  // namespace

std::string live_style() { return kLiveStyle; }
std::string live_code() { return kLiveCode; }

std::string live_html(const LivePage& p) {
  std::string links, body;
  for (const auto& [path, name] :
       {std::pair{"/", "Runs"}, {"/run/last", "Latest run"}, {"/lineages", "Lineages"}, {"/knowledge", "Knowledge"}})
    links += fmt::format("<a href=\"{}\"{}>{}</a>", path, p.active == path ? " class=on" : "", name);
  int n = 0;
  for (const auto& [title, html] : p.sections)
    body += fmt::format("<section id=s{}><h2>{}</h2><div>{}</div></section>", n++, escape_html(title), html);
  return fmt::format(
      "<!doctype html><html lang=en><head><meta charset=utf-8><meta name=viewport content=\"width=device-width,initial-scale=1\">"
      "<title>{0}</title><link rel=icon href=\"data:,\"><link rel=stylesheet href=/style.css></head><body data-source=\"{1}\" "
      "data-every=\"{4}\"><header><b>ForgeKernel</b>{2}</header><h1>{0}</h1><p id=status></p><main>{3}</main>"
      "<script src=/chart.js></script><script src=/live.js></script></body></html>\n",
      escape_html(p.title), escape_html(p.source), links, body, p.every_ms);
}

}  // namespace forge
