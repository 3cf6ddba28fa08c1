// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "build/build.h"
#include "util/text.h"

namespace forge {

namespace {

constexpr std::uintmax_t kMaxFile = 8 << 20;  // a source is text; this only stops nonsense

Result<std::string> read_small(const fs::path& path) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  if (!error && size > kMaxFile)
    return fail(Error{.code = Code::bad_input,
                      .message = fmt::format("{} bytes; a package's file has at most {}", size, kMaxFile),
                      .file = path.string(),
                      .line = 0,
                      .field = {},
                      .fix = "compute large tables in the kernel"});
  return read_file(path);
}

}  // namespace

Result<KernelPackage> read_package_folder(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error))
    return fail(Error{.code = Code::not_found,
                      .message = "is not a package folder",
                      .file = folder.string(),
                      .line = 0,
                      .field = {},
                      .fix = "name a folder that holds launch.toml and kernel.cpp"});
  KernelPackage package;
  package.origin = folder.string();
  std::vector<std::string> sources, strangers;
  bool plan = false;
  fs::directory_iterator entries(folder, error);
  if (error) return fail_errno("cannot list the package folder", folder.string(), error.value());
  for (const fs::directory_entry& e : entries) {
    const std::string name = e.path().filename().string();
    std::error_code ignored;
    const bool plain = e.is_regular_file(ignored) && !e.is_symlink(ignored);
    if (plain && (name == "kernel.cpp" || name == "kernel.cu"))
      sources.push_back(name);
    else if (plain && name == "launch.toml")
      plan = true;
    else if (name != "forge_args.h")
      strangers.push_back(name);  // the generated header may lie there for an editor's sake
  }
  std::sort(strangers.begin(), strangers.end());
  if (!strangers.empty())
    return fail(Error{.code = Code::bad_input,
                      .message = fmt::format("holds {}, which is no part of a package", join(strangers, ", ")),
                      .file = folder.string(),
                      .line = 0,
                      .field = {},
                      .fix = "a package is kernel.cpp (or kernel.cu) and launch.toml, plain files; move the rest elsewhere"});
  if (sources.size() != 1)
    return fail(Error{.code = sources.empty() ? Code::not_found : Code::bad_input,
                      .message = sources.empty() ? "holds no kernel.cpp or kernel.cu" : "holds both kernel.cpp and kernel.cu",
                      .file = folder.string(),
                      .line = 0,
                      .field = {},
                      .fix = "a package has one source"});
  if (!plan)
    return fail(Error{.code = Code::not_found,
                      .message = "holds no launch.toml",
                      .file = folder.string(),
                      .line = 0,
                      .field = {},
                      .fix = "write the launch plan: docs/formats/launch-plan.md"});
  package.source_name = sources.front();
  FORGE_TRY_ASSIGN(package.source, read_small(folder / package.source_name));
  FORGE_TRY_ASSIGN(package.plan_text, read_small(folder / "launch.toml"));
  return package;
}

Status write_package_folder(const KernelPackage& package, const fs::path& folder) {
  FORGE_TRY(make_dirs(folder));
  FORGE_TRY(write_file_atomic(folder / package.source_name, package.source));
  return write_file_atomic(folder / "launch.toml", package.plan_text);
}

}  // namespace forge
