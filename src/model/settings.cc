// SPDX-License-Identifier: Apache-2.0
// $FORGE_HOME/models.toml: what each model costs. Format: docs/formats/models.md.
#include "core/toml_io.h"
#include "model/model.h"

namespace forge {

namespace {

// "anthropic:claude-x@https://host" is named by "claude-x" in the file.
std::string name_in(const std::string& spec) {
  const std::size_t colon = spec.find(':'), at = spec.find('@', colon == std::string::npos ? 0 : colon);
  const std::size_t begin = colon == std::string::npos ? 0 : colon + 1;
  return spec.substr(begin, at == std::string::npos ? std::string::npos : at - begin);
}

}  // namespace

Result<ModelSettings> read_model_settings(const fs::path& home, const std::string& spec) {
  ModelSettings wanted;
  const fs::path file = home / "models.toml";
  std::error_code error;
  if (home.empty() || !fs::exists(file, error)) return wanted;
  FORGE_TRY_ASSIGN(const std::string text, read_file(file));
  FORGE_TRY_ASSIGN(TomlReader toml, TomlReader::parse(text, file.string()));
  toml.format(1);
  for (TomlReader& table : toml.tables("model")) {
    ModelSettings s;
    std::string name;
    table.need_text("name", name);
    for (const auto& [key, value] : {std::pair{"dollars_per_million_input", &s.dollars_per_million_input},
                                     {"dollars_per_million_output", &s.dollars_per_million_output},
                                     {"dollars_per_million_cache_read", &s.dollars_per_million_cache_read},
                                     {"dollars_per_million_cache_write", &s.dollars_per_million_cache_write}}) {
      table.maybe(key, *value);
      table.check(*value >= 0, key, "must not be negative");
    }
    table.maybe("max_output", s.max_output);
    table.check(s.max_output > 0, "max_output", "must be positive");
    table.maybe("attempts", s.attempts);
    table.check(s.attempts > 0, "attempts", "must be positive");
    if (name == name_in(spec)) wanted = s;
  }
  FORGE_TRY(toml.finish());
  return wanted;
}

}  // namespace forge
