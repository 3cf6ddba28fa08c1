// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdio>

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

void Context::out(const std::string& line) const {
  if (json) return;
  Progress::clear();
  std::puts(line.c_str());
  std::fflush(stdout);
}

void Context::say(const std::string& line) const {
  if (!quiet) out(line);
}

int Context::finish(const std::string& document) const {
  Progress::clear();
  if (json) std::puts(document.c_str());
  return kOk;
}

int Context::fail(const Error& e) const {
  Progress::clear();
  std::fprintf(stderr, "forge: %s\n", e.text().c_str());
  if (json) {
    Json j;
    j["error"] = {{"code", name(e.code)}, {"message", e.message}, {"file", e.file}, {"line", e.line}, {"field", e.field}, {"fix", e.fix}};
    std::puts(dump(j).c_str());
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
