// SPDX-License-Identifier: Apache-2.0
// vault/<operator>/<target>/<id>/{kernel.cpp,launch.toml,record.json}; `promoted` beside them holds the id of the promoted one.
// A generation is written into a temporary folder that is renamed into place: it is there whole or not at all.
#include "vault/vault.h"

#include <fmt/format.h>

#include <algorithm>

#include "util/scratch.h"
#include "util/text.h"

namespace forge {

namespace {

std::string target_folder(std::string target) {  // "cpu:x86-64-avx512" -> "cpu-x86-64-avx512": a colon is awkward in paths
  std::replace(target.begin(), target.end(), ':', '-');
  return target;
}

bool plain_name(const std::string& s) { return !s.empty() && s.find('/') == std::string::npos && s != "." && s != ".."; }

Result<Generation> read_sealed(const fs::path& folder) {
  const fs::path file = folder / "record.json";
  FORGE_TRY_ASSIGN(const std::string text, read_file(file));
  FORGE_TRY_ASSIGN(Generation g, parse_generation(text, file.string()));
  if (package_hash(g.package) != g.id)
    return fail(Error{.code = Code::bad_input,
                      .message = "the sealed package does not match its id: it was changed after sealing",
                      .file = file.string(),
                      .line = 0,
                      .field = "package",
                      .fix = "delete this folder, then forge again"});
  return g;
}

}  // namespace

Result<Vault> Vault::open(const fs::path& home) { return Vault(home / "vault"); }

Result<std::optional<Generation>> Vault::sealed(const std::string& operator_name, const std::string& target, const std::string& id) const {
  const fs::path folder = m_root / operator_name / target_folder(target) / id;
  std::error_code error;
  if (!plain_name(operator_name) || !plain_name(id) || !fs::exists(folder / "record.json", error)) return std::optional<Generation>();
  FORGE_TRY_ASSIGN(Generation g, read_sealed(folder));
  return std::optional<Generation>(std::move(g));
}

Result<Generation> Vault::seal(const Generation& g) {
  if (!plain_name(g.operator_name) || !plain_name(g.id))
    return fail(Code::internal, "a generation without operator or id cannot be sealed");
  if (!g.verdict.correct())
    return fail(Code::bad_input, "only a kernel that the gate confirmed can be sealed", "run it through the gate first");
  const fs::path place = m_root / g.operator_name / target_folder(g.target), final_folder = place / g.id;
  std::error_code error;
  FORGE_TRY_ASSIGN(std::optional<Generation> earlier, sealed(g.operator_name, g.target, g.id));
  if (earlier) return std::move(*earlier);
  FORGE_TRY(make_dirs(place));
  FORGE_TRY_ASSIGN(const fs::path scratch, make_scratch(place, ".sealing"));  // the next one removes what a kill leaves of it
  const fs::path temp = scratch / "sealed";
  const auto write_all = [&]() -> Status {
    FORGE_TRY(make_dirs(temp));
    FORGE_TRY(write_file_atomic(temp / g.package.source_name, g.package.source));
    FORGE_TRY(write_file_atomic(temp / "launch.toml", g.package.plan_text));
    FORGE_TRY(write_file_atomic(temp / "record.json", generation_to_json(g) + "\n"));
    fs::rename(temp, final_folder, error);
    if (error) return fail_errno("cannot put the sealed kernel into place", final_folder.string(), error.value());
    return {};
  };
  const Status done = write_all();
  drop_scratch(scratch);
  FORGE_TRY(done);
  return g;
}

Status Vault::promote(const std::string& operator_name, const std::string& target, const std::string& id) {
  const fs::path place = m_root / operator_name / target_folder(target);
  std::error_code error;
  if (!plain_name(id) || !fs::exists(place / id / "record.json", error))
    return fail(Code::not_found, fmt::format("no sealed kernel {} of {} for {}", id, operator_name, target),
                "seal it first; `forge lineage` lists them");
  return write_file_atomic(place / "promoted", id + "\n");
}

Result<std::optional<Generation>> Vault::promoted(const std::string& operator_name, const std::string& target) const {
  const fs::path place = m_root / operator_name / target_folder(target);
  std::error_code error;
  if (!fs::exists(place / "promoted", error)) return std::optional<Generation>();
  FORGE_TRY_ASSIGN(const std::string id, read_file(place / "promoted"));
  FORGE_TRY_ASSIGN(Generation g, read_sealed(place / trim(id)));
  return std::optional<Generation>(std::move(g));
}

Result<std::vector<Generation>> Vault::all() const {
  std::vector<Generation> out;
  std::error_code error;
  fs::directory_iterator operators(m_root, error);
  if (error && error != std::errc::no_such_file_or_directory) return fail_errno("cannot list the vault", m_root.string(), error.value());
  for (const auto& op : operators)
    for (const auto& target : fs::directory_iterator(op.path(), error))
      for (const auto& entry : fs::directory_iterator(target.path(), error)) {
        if (!fs::exists(entry.path() / "record.json", error) || entry.path().filename().string().starts_with(".")) continue;
        FORGE_TRY_ASSIGN(Generation g, read_sealed(entry.path()));
        out.push_back(std::move(g));
      }
  std::sort(out.begin(), out.end(), [](const Generation& a, const Generation& b) {
    return std::tie(a.operator_name, a.target, a.number, a.date, a.id) < std::tie(b.operator_name, b.target, b.number, b.date, b.id);
  });
  return out;
}

Result<Generation> Vault::find(const std::string& prefix) const {
  FORGE_TRY_ASSIGN(std::vector<Generation> sealed, all());
  std::vector<Generation> matches;
  for (Generation& g : sealed)
    if (!prefix.empty() && g.id.starts_with(prefix)) matches.push_back(std::move(g));
  if (matches.empty()) return fail(Code::not_found, fmt::format("no sealed kernel is called '{}'", prefix), "`forge lineage` lists them");
  if (matches.size() > 1)
    return fail(Code::bad_input, fmt::format("'{}' names {} sealed kernels", prefix, matches.size()), "give more of the id");
  return std::move(matches[0]);
}

Result<std::vector<Generation>> Vault::lineage(const std::string& operator_name, const std::string& target) const {
  // The chain that ends at the promoted generation, by parent; without one, everything sealed.
  FORGE_TRY_ASSIGN(const std::vector<Generation> sealed, all());
  FORGE_TRY_ASSIGN(const std::optional<Generation> last, promoted(operator_name, target));
  std::vector<Generation> out;
  if (!last) {
    for (const Generation& g : sealed)
      if (g.operator_name == operator_name && g.target == target) out.push_back(g);
    return out;
  }
  std::string id = last->id;
  while (true) {
    const auto at = std::find_if(sealed.begin(), sealed.end(),
                                 [&](const Generation& g) { return g.id == id && g.operator_name == operator_name && g.target == target; });
    if (at == sealed.end() || out.size() > sealed.size()) break;  // the expert, or a damaged chain
    out.push_back(*at);
    id = at->parent;
  }
  std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace forge
