// SPDX-License-Identifier: Apache-2.0
// vault/<operator>/<target>/<id>/{kernel.cpp,launch.toml,record.json}; `promoted` beside them holds the id of the promoted one.
// A generation is written into a temporary folder that is renamed into place: it is there whole or not at all.
#include "vault/vault.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <tuple>

#include "util/scratch.h"
#include "util/text.h"

namespace forge {

namespace {

std::string target_folder(std::string target) {  // "cpu:x86-64-avx512" -> "cpu-x86-64-avx512": a colon is awkward in paths
  std::replace(target.begin(), target.end(), ':', '-');
  return target;
}

bool plain_name(const std::string& s) { return !s.empty() && s.find('/') == std::string::npos && s != "." && s != ".."; }

std::string target_of(std::string folder) {  // the other way: a family has no dash
  if (const std::size_t dash = folder.find('-'); dash != std::string::npos) folder[dash] = ':';
  return folder;
}

Result<Generation> read_record(const fs::path& folder) {
  const fs::path file = folder / "record.json";
  FORGE_TRY_ASSIGN(const std::string text, read_file(file));
  FORGE_TRY_ASSIGN(Generation g, parse_generation(text, file.string()));
  if (package_hash(g.package) != g.id)
    return fail(Error{.code = Code::bad_input,
                      .message = "the sealed package does not match its id: it was changed after sealing",
                      .file = file.string(),
                      .line = 0,
                      .field = "package",
                      .fix = {}});
  return g;
}

Result<Generation> read_sealed(const fs::path& folder) {
  Result<Generation> g = read_record(folder);
  if (g) return g;
  Error e = g.error();
  if (e.code == Code::not_found) e.code = Code::bad_input;  // the folder is there, so the record was lost
  if (e.code == Code::bad_input && e.fix.empty())
    e.fix = "put record.json back from a copy, or delete " + folder.string() + " and forge that kernel again";
  return fail(std::move(e));
}

// The folders below one; what cannot be listed is told, and never taken for empty.
Status each_folder(const fs::path& folder, const std::function<void(const fs::path&)>& visit) {
  std::error_code error;
  fs::directory_iterator at(folder, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    std::error_code ignored;
    if (!at->path().filename().string().starts_with(".") && at->is_directory(ignored)) visit(at->path());
  }
  if (error && error != std::errc::no_such_file_or_directory) return fail_errno("cannot list", folder.string(), error.value());
  return {};
}

}  // namespace

Result<Vault> Vault::open(const fs::path& home) { return Vault(home / "vault"); }

Result<std::optional<Generation>> Vault::sealed(const std::string& operator_name, const std::string& target, const std::string& id) const {
  const fs::path folder = m_root / operator_name / target_folder(target) / id;
  std::error_code error;
  if (!plain_name(operator_name) || !plain_name(id) || !fs::exists(folder, error)) return std::optional<Generation>();
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

Result<std::string> Vault::promoted_id(const std::string& operator_name, const std::string& target) const {
  const fs::path file = m_root / operator_name / target_folder(target) / "promoted";
  std::error_code error;
  if (!fs::exists(file, error)) return std::string();
  FORGE_TRY_ASSIGN(const std::string text, read_file(file));
  std::string id = trim(text);
  if (!plain_name(id) || !fs::is_directory(file.parent_path() / id, error))
    return fail(Error{.code = Code::bad_input,
                      .message = "it names no kernel that is sealed here",
                      .file = file.string(),
                      .line = 0,
                      .field = {},
                      .fix = "`forge promote ID` writes it again"});
  return id;
}

Result<std::optional<Generation>> Vault::promoted(const std::string& operator_name, const std::string& target) const {
  FORGE_TRY_ASSIGN(const std::string id, promoted_id(operator_name, target));
  if (id.empty()) return std::optional<Generation>();
  FORGE_TRY_ASSIGN(Generation g, read_sealed(m_root / operator_name / target_folder(target) / id));
  return std::optional<Generation>(std::move(g));
}

Result<SealedKernels> Vault::all() const {
  SealedKernels out;
  const auto damaged = [&](const fs::path& op, const fs::path& target, const fs::path& id, Error e) {
    out.damaged.push_back({op.filename(), target_of(target.filename()), id.filename(), std::move(e)});
  };
  FORGE_TRY(each_folder(m_root, [&](const fs::path& op) {
    const Status targets = each_folder(op, [&](const fs::path& target) {
      const Status kernels = each_folder(target, [&](const fs::path& folder) {
        Result<Generation> g = read_sealed(folder);
        if (g)
          out.kernels.push_back(std::move(*g));
        else if (std::error_code gone; fs::exists(folder, gone))  // not deleted meanwhile
          damaged(op, target, folder, g.error());
      });
      if (!kernels) damaged(op, target, {}, kernels.error());
      if (const auto id = promoted_id(op.filename(), target.filename()); !id) damaged(op, target, {}, id.error());
    });
    if (!targets) damaged(op, {}, {}, targets.error());
  }));
  std::sort(out.kernels.begin(), out.kernels.end(), [](const Generation& a, const Generation& b) {
    return std::tie(a.operator_name, a.target, a.number, a.date, a.id) < std::tie(b.operator_name, b.target, b.number, b.date, b.id);
  });
  std::sort(out.damaged.begin(), out.damaged.end(), [](const DamagedRecord& a, const DamagedRecord& b) {
    return std::tie(a.operator_name, a.target, a.id) < std::tie(b.operator_name, b.target, b.id);
  });
  return out;
}

Result<Generation> Vault::find(const std::string& prefix) const {
  FORGE_TRY_ASSIGN(SealedKernels sealed, all());
  const auto called = [&](const std::string& id) { return !prefix.empty() && id.starts_with(prefix); };
  std::vector<Generation> matches;
  for (Generation& g : sealed.kernels)
    if (called(g.id)) matches.push_back(std::move(g));
  std::vector<Error> unreadable;
  for (DamagedRecord& d : sealed.damaged)
    if (called(d.id)) unreadable.push_back(std::move(d.error));
  if (const std::size_t named = matches.size() + unreadable.size(); named > 1)
    return fail(Code::bad_input, fmt::format("'{}' names {} sealed kernels", prefix, named), "give more of the id");
  if (!unreadable.empty()) return fail(std::move(unreadable[0]));
  if (matches.empty()) return fail(Code::not_found, fmt::format("no sealed kernel is called '{}'", prefix), "`forge lineage` lists them");
  return std::move(matches[0]);
}

std::vector<Generation> lineage(const std::vector<Generation>& kernels, const std::string& operator_name, const std::string& target,
                                const std::string& promoted_id) {
  const auto belongs = [&](const Generation& g) { return g.operator_name == operator_name && g.target == target; };
  std::vector<Generation> out;
  for (std::string id = promoted_id; out.size() <= kernels.size();) {
    const auto at = std::find_if(kernels.begin(), kernels.end(), [&](const Generation& g) { return g.id == id && belongs(g); });
    if (at == kernels.end()) break;  // the expert, or a damaged chain
    out.push_back(*at);
    id = at->parent;
  }
  std::reverse(out.begin(), out.end());
  if (out.empty()) std::copy_if(kernels.begin(), kernels.end(), std::back_inserter(out), belongs);
  return out;
}

}  // namespace forge
