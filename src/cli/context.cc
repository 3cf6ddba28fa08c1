// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "cli/command.h"
#include "core/json_io.h"
#include "core/toml_io.h"
#include "device/survey.h"
#include "util/progress.h"

namespace forge {

int exit_code(Code code) {
  switch (code) {
    case Code::bad_input:
    case Code::not_found:
    case Code::out_of_range:
      return kUsage;
    case Code::io:
    case Code::disk_full:
    case Code::unsupported:
    case Code::build_failed:
      return kEnvironment;
    case Code::interrupted:
      return kInterrupted;
    case Code::diverged:
      return kNegative;
    case Code::timeout:
    case Code::crashed:
    case Code::internal:
      return kBroken;
  }
  return kBroken;
}

Status Context::find() {
  FORGE_TRY_ASSIGN(paths, find_paths());
  return {};
}

Result<Store> Context::store() const { return Store::open(paths.home); }

Result<Machine> Context::machine(const std::string& wanted) const { return survey_machine(wanted, paths.home); }

// A full disk or a closed descriptor sets stdout's error mark, which stays; only errno must be kept.
static int g_output_errno = 0;

static void print_line(const std::string& line) {
  errno = 0;
  if (std::puts(line.c_str()) >= 0 && std::fflush(stdout) == 0) return;
  if (g_output_errno == 0) g_output_errno = errno;
  if (g_output_errno == EPIPE) {
    // Whoever read has seen enough, as in `forge runs | head`: end as other programs do. A run's journal is whole at any point.
    signal(SIGPIPE, SIG_DFL);
    raise(SIGPIPE);
  }
}

int Context::close_output(int code) {
  Progress::clear();
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return code;
  if (g_output_errno == 0) g_output_errno = errno;
  std::fprintf(stderr, "forge: standard output could not be written: %s\n", std::strerror(g_output_errno));
  return code == kOk || code == kNegative ? int(kEnvironment) : code;
}

void Context::out(const std::string& line) const {
  if (json) return;
  Progress::clear();
  print_line(line);
}

void Context::say(const std::string& line) const {
  if (!quiet) out(line);
}

int Context::finish(const std::string& document) const {
  Progress::clear();
  if (json) print_line(document);
  return kOk;
}

int Context::warn(const Error& e) const {
  Progress::clear();
  std::fprintf(stderr, "forge: %s\n", e.text().c_str());
  return exit_code(e.code);
}

int Context::fail(const Error& e) const {
  warn(e);
  if (json) {
    Json j;
    j["error"] = {{"code", name(e.code)}, {"message", e.message}, {"file", e.file}, {"line", e.line}, {"field", e.field}, {"fix", e.fix}};
    print_line(dump(j));
  }
  return exit_code(e.code);
}

Result<Config> read_config(const fs::path& home) {
  Config config;
  const fs::path file = home / "config.toml";
  std::error_code error;
  if (!fs::exists(file, error)) return config;
  FORGE_TRY_ASSIGN(const std::string text, read_file(file));
  FORGE_TRY_ASSIGN(TomlReader toml, TomlReader::parse(text, file.string()));
  toml.format(1);
  toml.maybe("target", config.target);
  toml.maybe("goal", config.goal);
  toml.check(config.goal >= 0, "goal", "must not be negative");
  std::int64_t seed = 1;
  toml.maybe("seed", seed);
  config.seed = static_cast<std::uint64_t>(seed);
  TomlReader budget = toml.table("budget");
  if (budget.present()) {
    budget.maybe("candidates", config.budget.candidates);
    budget.maybe("gate_seconds", config.budget.gate_seconds);
    budget.maybe("wall_seconds", config.budget.wall_seconds);
    budget.check(config.budget.candidates > 0, "candidates", "must be positive");
    budget.check(config.budget.gate_seconds > 0, "gate_seconds", "must be positive");
    budget.check(config.budget.wall_seconds > 0, "wall_seconds", "must be positive");
  }
  FORGE_TRY(toml.finish());
  return config;
}

}  // namespace forge
