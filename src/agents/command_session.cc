// SPDX-License-Identifier: Apache-2.0
#include "agents/command_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "agents/workspace_files.h"
#include "core/json_io.h"
#include "util/process.h"
#include "util/progress.h"
#include "util/text.h"

namespace forge {

namespace {

constexpr const char* kRules = R"(
You write one compute kernel for one milestone of a plan. Everything goes through these tools:

- `read_milestone` says again what is below, with what is left of the budget.
- `submit` hands a kernel in: its source and its launch.toml, as text or as a folder of this workspace. Only this counts. The answer is
  the verdict; when it is rejected, mend what it names and hand in again.
- `check`, `build` and `time` try a kernel without handing it in; `search_knowledge` finds what is known of such kernels.
- `give_up` ends the milestone with a reason.

A call may take minutes: it waits for a quiet machine. Do not measure by yourself, it is not seen. Stop when a result says that the
milestone is accepted or takes no more calls. Nobody answers questions.
)";

std::string folder_of(const Assignment& a) { return a.attempt ? fmt::format("{}-{}", a.milestone, a.attempt) : a.milestone; }

std::string prompt_of(const CommandTemplate& agent, const Assignment& a, const std::vector<Exchange>& so_far) {
  std::string text = agent.prompt + (agent.prompt.empty() ? "" : "\n") + kRules;
  if (!a.starter.empty()) text += fmt::format("\nThe folder `{}` of this workspace holds files to start from.\n", folder_of(a));
  if (!so_far.empty()) {
    text += "\nYou were interrupted. So far in this milestone:\n\n";
    for (const Exchange& e : so_far)
      for (std::size_t i = 0; i < e.turn.calls.size() && i < e.results.size(); ++i)
        text += fmt::format("- {}: {}\n", e.turn.calls[i].tool, utf8_head(e.results[i].text, 600));
  }
  return text + "\n" + a.brief;
}

std::string value_of(const std::string& variable) {
  const char* v = std::getenv(variable.c_str());
  return v ? v : "";
}

std::vector<std::string> passed(const CommandTemplate& t) {  // names of variables that are set
  std::vector<std::string> names;
  for (const auto* list : {&t.keys, &t.pass})
    for (const std::string& n : *list)
      if (!value_of(n).empty() && std::find(names.begin(), names.end(), n) == names.end()) names.push_back(n);
  return names;
}

fs::path from_home(const std::string& path) {
  return path.starts_with("~/") ? fs::path(value_of("HOME")) / path.substr(2) : fs::path(path);
}

TokenUse minus(const TokenUse& a, const TokenUse& b) {
  TokenUse d;
  d.input = std::max<std::int64_t>(0, a.input - b.input);
  d.cache_read = std::max<std::int64_t>(0, a.cache_read - b.cache_read);
  d.cache_write = std::max<std::int64_t>(0, a.cache_write - b.cache_write);
  d.output = std::max<std::int64_t>(0, a.output - b.output);
  d.dollars = std::max(0.0, a.dollars - b.dollars);
  d.estimated = a.estimated;
  return d;
}

}  // namespace

Result<std::unique_ptr<CommandSession>> CommandSession::start(const CommandSettings& settings, const Assignment& assignment,
                                                              const std::vector<Exchange>& so_far) {
  FORGE_TRY_ASSIGN(TempDir folder, TempDir::make("forge-agent"));
  FORGE_TRY_ASSIGN(CallListener listener, CallListener::open(folder.path() / "run"));
  std::unique_ptr<CommandSession> s(new CommandSession(settings, std::move(folder), std::move(listener)));
  FORGE_TRY(s->lay_out(assignment, so_far));
  FORGE_TRY(s->launch(assignment));
  return s;
}

Status CommandSession::lay_out(const Assignment& a, const std::vector<Exchange>& so_far) {
  std::error_code error;
  FORGE_TRY(make_dirs(a.workspace));
  m_workspace = fs::canonical(a.workspace, error);
  if (error) return fail_errno("cannot enter", a.workspace, error.value());
  if (m_workspace.string().find_first_of("\"\\\n'") != std::string::npos)  // it goes into JSON and TOML files of all kinds
    return fail(Code::bad_input, "a quote or a backslash in the path of the workspace: " + m_workspace.string(),
                "set FORGE_HOME to another folder");
  const std::string w = m_workspace.string();
  for (const char* folder : {".home", ".tmp"}) FORGE_TRY(write_workspace_file(w, folder, ".keep", ""));
  if (so_far.empty())
    for (const auto& [name, text] : a.starter) FORGE_TRY(write_workspace_file(w, folder_of(a), name, text));
  return write_file_atomic(m_folder.path() / "prompt.md", prompt_of(m_settings.agent, a, so_far));
}

Status CommandSession::launch(const Assignment& a) {
  const CommandTemplate& t = m_settings.agent;
  AgentView view;
  view.workspace = m_workspace;
  view.home = m_workspace / ".home";
  view.socket_folder = m_folder.path();
  view.program = find_program(t.command[0]);
  view.forge = m_settings.forge;
  view.hidden = m_settings.hidden;
  view.config_writable = t.config_writable;
  if (view.program.empty())
    return fail(Code::unsupported, fmt::format("{}: {} was not found in PATH", t.title, t.command[0]),
                "install it; " + t.file + " says how");
  for (const std::string& p : t.read) view.read.push_back(from_home(p));
  for (const std::string& p : t.config) view.config.emplace_back(from_home(p), view.home / p.substr(2));
  const Cage kind = !t.sandboxed ? Cage::none : m_settings.cage ? *m_settings.cage : best_cage();
  if (t.sandboxed && kind == Cage::none)
    return fail(Code::unsupported, "no sandbox for a command line agent: neither bubblewrap nor Landlock works here",
                "apt-get install bubblewrap");
  FORGE_TRY_ASSIGN(AgentCage cage, make_cage(view, kind));

  m_values = {{"prompt_file", (m_folder.path() / "prompt.md").string()},
              {"mcp_config", (m_workspace / t.mcp_config).string()},
              {"workspace", m_workspace.string()},
              {"home", view.home.string()},
              {"forge", cage.forge},
              {"socket", (m_folder.path() / "run").string()},
              {"model", m_settings.model}};
  for (const CommandTemplate::File& f : t.files) {
    FORGE_TRY_ASSIGN(const std::string path, expand(f.path, m_values, t.file));
    FORGE_TRY_ASSIGN(const std::string text, expand(f.text, m_values, t.file));
    const fs::path p = fs::path(".") / path;
    FORGE_TRY(write_workspace_file(m_workspace.string(), p.parent_path().string(), p.filename().string(), text));
  }

  AgentProcessOptions o;
  std::vector<std::string> own;  // the command without its cage
  for (const auto* list : {&t.command, &t.model_args}) {
    if (list == &t.model_args && m_settings.model.empty()) continue;
    for (const std::string& word : *list) {
      FORGE_TRY_ASSIGN(std::string expanded, expand(word, m_values, t.file));
      own.push_back(std::move(expanded));
    }
  }
  own[0] = cage.program;
  o.argv = cage.prefix;
  o.argv.insert(o.argv.end(), own.begin(), own.end());
  o.env = {"HOME=" + view.home.string(),
           "PATH=" + join(cage.path, ":"),
           "TMPDIR=" + (m_workspace / ".tmp").string(),
           "LANG=C.UTF-8",
           "TERM=dumb",
           "NO_COLOR=1"};
  const std::vector<std::string> names = passed(t);
  for (const std::string& n : names) {
    o.env.push_back(n + "=" + value_of(n));
    o.secrets.push_back(value_of(n));
  }
  for (const std::string& s : t.set) {
    FORGE_TRY_ASSIGN(std::string expanded, expand(s, m_values, t.file));
    o.env.push_back(std::move(expanded));
  }
  o.cwd = m_workspace;
  if (!t.input.empty()) {
    FORGE_TRY_ASSIGN(const std::string input, expand(t.input, m_values, t.file));
    o.input = input;
  }
  m_log = m_workspace.parent_path() / fmt::format("{}-{}.log", m_workspace.filename().string(), folder_of(a));
  o.log = m_log;
  o.before_exec = cage.before_exec;
  FORGE_TRY_ASSIGN(m_process, AgentProcess::start(o));
  m_started = m_last_sign = monotonic_seconds();
  const double budget = m_settings.seconds_left ? m_settings.seconds_left() : t.seconds;
  m_until = m_started + std::min(t.seconds, std::max(0.0, budget));
  m_said = dump(Json{{"agent", t.name}, {"command", own}, {"sandbox", cage.words}, {"passed", names}, {"log", m_log.filename().string()}});
  return {};
}

void CommandSession::read_output() {
  for (const std::string& line : m_process->lines()) m_usage->line(line);
  if (m_process->said_something()) m_last_sign = monotonic_seconds();
}

TokenUse CommandSession::take_use() {
  const TokenUse now = m_usage->use();
  const TokenUse more = minus(now, m_reported);
  m_reported += more;
  return more;
}

std::string CommandSession::why_stop(const Assignment& a) {
  const CommandTemplate& t = m_settings.agent;
  const double now = monotonic_seconds();
  if (!m_usage->hopeless().empty()) return m_usage->hopeless();
  if (t.usage != UsageFormat::none && minus(m_usage->use(), m_reported).total() > std::max<std::int64_t>(0, a.tokens_left))
    return "its tokens are spent";
  if (now > m_until) return fmt::format("it ran for {:.0f} s, its time is over", now - m_started);
  if (now - m_last_sign > t.quiet_seconds) return fmt::format("it made no call and no output for {:.0f} s", now - m_last_sign);
  return {};
}

Turn CommandSession::ended(const std::string& why) {
  const bool by_itself = m_process->ended();
  m_process->stop();
  read_output();
  m_usage->end();
  Turn turn;
  turn.ended = true;
  turn.use = take_use();
  if (!by_itself && m_settings.agent.usage != UsageFormat::none) turn.use.estimated = true;  // what it would have said at its end
  turn.why = fmt::format("{}: {}", m_settings.agent.title, by_itself && why.empty() ? m_process->how_it_ended() : why);
  const std::string words = trim(m_usage->last_words());
  if (!words.empty()) turn.why += fmt::format(", its last words: {}", utf8_head(words, 300));
  turn.said = dump(Json{{"start", Json::parse(m_said.empty() ? "null" : m_said)},
                        {"end", m_process->how_it_ended()},
                        {"stopped", !by_itself},
                        {"seconds", std::round((monotonic_seconds() - m_started) * 10) / 10},
                        {"output", m_process->tail()}});
  return turn;
}

Result<Turn> CommandSession::turn(const Assignment& a, const std::vector<Exchange>& so_far) {
  m_last_sign = monotonic_seconds();  // it waited for us
  for (;;) {
    if (stop_requested()) return fail(Code::interrupted, "stopped while " + m_settings.agent.title + " was at work");
    const bool over = m_process->ended();
    read_output();
    if (over) return ended("");
    if (const std::string why = why_stop(a); !why.empty()) return ended(why);
    const auto call = m_listener.wait(0.2, m_process->descriptors());
    if (!call) continue;
    m_ticket = call->ticket;
    std::size_t n = 1;
    for (const Exchange& e : so_far) n += e.turn.calls.size();
    Turn turn;
    turn.calls.push_back(call->call);
    turn.calls[0].id = fmt::format("call-{}", n);
    read_output();
    turn.use = take_use();
    std::swap(turn.said, m_said);
    return turn;
  }
}

void CommandSession::deliver(const ToolResult& result) {
  if (m_ticket) m_listener.answer(m_ticket, result);
  m_ticket = 0;
}

TokenUse CommandSession::settle() {
  const double until = monotonic_seconds() + (m_settings.agent.usage == UsageFormat::none ? 0 : m_settings.agent.grace_seconds);
  while (!m_process->ended() && monotonic_seconds() < until && !stop_requested()) {
    read_output();
    const auto call = m_listener.wait(0.2, m_process->descriptors());
    if (call)
      m_listener.answer(
          call->ticket,
          {dump(Json{{"verdict", "over"}, {"detail", "this milestone is over and takes no more calls"}, {"fix", "stop now"}}), true});
  }
  return ended("").use;
}

}  // namespace forge
