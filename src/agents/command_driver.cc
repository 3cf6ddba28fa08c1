// SPDX-License-Identifier: Apache-2.0
#include "agents/command_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "agents/command_session.h"
#include "util/process.h"
#include "util/text.h"

namespace forge {

namespace {

class CommandDriver final : public Driver {
 public:
  explicit CommandDriver(CommandSettings settings) : m_settings(std::move(settings)) {}

  std::string identity() const override {
    return "command " + m_settings.agent.name + (m_settings.model.empty() ? "" : " " + m_settings.model);
  }
  bool uses_tokens() const override { return true; }  // whether or not it says how many
  bool settles() const override { return true; }

  Result<Turn> next(const Assignment& assignment, const std::vector<Exchange>& so_far) override {
    if (m_settings.forge.empty()) return fail(Code::diverged, "a replay asked " + identity());
    if (!m_session) {
      FORGE_TRY_ASSIGN(m_session, CommandSession::start(m_settings, assignment, so_far));
    } else {
      deliver(so_far);
    }
    Result<Turn> turn = m_session->turn(assignment, so_far);
    if (!turn || turn->ended) m_session.reset();
    return turn;
  }

  Result<TokenUse> settle(const std::vector<Exchange>& so_far) override {
    if (!m_session) return TokenUse{};
    deliver(so_far);
    const TokenUse use = m_session->settle();
    m_session.reset();
    return use;
  }

  void leave() override { m_session.reset(); }

 private:
  void deliver(const std::vector<Exchange>& so_far) {
    if (!so_far.empty() && !so_far.back().results.empty()) m_session->deliver(so_far.back().results.back());
  }

  CommandSettings m_settings;
  std::unique_ptr<CommandSession> m_session;
};

constexpr const char* kPrefix = "command:";

std::pair<std::string, std::string> name_and_model(const std::string& spec) {
  const std::string rest = spec.substr(std::string(kPrefix).size());
  const std::size_t at = rest.find('@');
  return {rest.substr(0, at), at == std::string::npos ? "" : rest.substr(at + 1)};
}

}  // namespace

std::unique_ptr<Driver> make_command_driver(CommandSettings settings) { return std::make_unique<CommandDriver>(std::move(settings)); }

bool is_command_seat(const std::string& spec) { return spec.starts_with(kPrefix); }

Status check_command_seat(const Paths& paths, const std::string& spec, const Budget& budget) {
  const auto [name, model] = name_and_model(spec);
  FORGE_TRY_ASSIGN(const CommandTemplate t, load_command_template(paths, name));
  if (find_program(t.command[0]).empty())
    return fail(Code::unsupported, fmt::format("{}: {} was not found in PATH", t.title, t.command[0]),
                "install it; " + t.file + " says how");
  const bool has_key = t.keys.empty() || !t.config.empty() || std::any_of(t.keys.begin(), t.keys.end(), [](const std::string& k) {
                         const char* v = std::getenv(k.c_str());
                         return v && *v;
                       });
  if (!has_key)
    return fail(Code::unsupported, fmt::format("{} has no key", t.title),
                fmt::format("set {}, or pass its login in with a template of your own ([sandbox] config)", join(t.keys, " or ")));
  if (!model.empty() && t.model_args.empty())
    return fail(Code::bad_input, fmt::format("{} takes no model", t.title), "add model_args to " + t.file);
  if (budget.tokens <= 0)
    return fail(Code::bad_input, fmt::format("{} uses tokens, and none are granted", t.title),
                "--tokens N, or [budget] tokens in config.toml");
  if (t.sandboxed && best_cage() == Cage::none)
    return fail(Code::unsupported, "no sandbox for a command line agent: neither bubblewrap nor Landlock works here",
                "apt-get install bubblewrap");
  return {};
}

Result<std::unique_ptr<Driver>> make_command_seat(const Paths& paths, const std::string& spec, std::function<double()> seconds_left,
                                                  bool replay) {
  CommandSettings s;
  std::string name;
  std::tie(name, s.model) = name_and_model(spec);
  s.agent.name = name;
  if (replay) return make_command_driver(std::move(s));  // lives from the record; the agent need not be there
  FORGE_TRY_ASSIGN(s.agent, load_command_template(paths, name));
  s.hidden = {paths.home, paths.data, paths.plugins};
  std::error_code error;
  s.forge = fs::read_symlink("/proc/self/exe", error);
  if (error) return fail_errno("cannot find this program", "/proc/self/exe", error.value());
  s.seconds_left = std::move(seconds_left);
  return make_command_driver(std::move(s));
}

}  // namespace forge
