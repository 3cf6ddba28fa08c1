// SPDX-License-Identifier: Apache-2.0
// The cache holds one file a build, named by the hash of everything that decides the image: compiler, flags, package, generated
// header. A file is a line of JSON, a newline, the object's bytes. What does not check out is built again.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "build/build.h"
#include "util/hash.h"
#include "util/text.h"

namespace forge {

namespace {

using Json = nlohmann::json;
constexpr int kCacheFormat = 1;

std::string cache_key(const Compiler& compiler, const KernelPackage& package, const std::string& header, const TargetSpec& target) {
  std::string text;
  const auto add = [&](const std::string& part) { text += fmt::format("{}:", part.size()) + part; };  // lengths: parts cannot run together
  add(fmt::format("forge build {}", kCacheFormat));
  add(compiler.identity());
  add(target.name);
  for (const std::string& flag : compiler.flags(target)) add(flag);
  add(package_hash(package));
  add(header);
  return sha256_hex(text);
}

fs::path cache_file(const fs::path& cache, const std::string& key) { return cache / key.substr(0, 2) / (key + ".image"); }

std::string to_cache(const Image& image) {
  const Json head = {{"format", kCacheFormat},        {"sha256", image.sha256}, {"compiler", image.build.compiler},
                     {"flags", image.build.flags},    {"log", image.build.log}, {"seconds", image.build.seconds},
                     {"sandbox", image.build.sandbox}};
  return head.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n" + image.bytes;
}

std::optional<Image> from_cache(const std::string& text) {
  const std::size_t end = text.find('\n');
  if (end == std::string::npos) return std::nullopt;
  const Json head = Json::parse(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
  if (!head.is_object()) return std::nullopt;
  try {  // a key of another type is a corrupt entry like any other
    if (head.at("format") != kCacheFormat) return std::nullopt;
    Image image;
    image.bytes = text.substr(end + 1);
    image.sha256 = head.at("sha256");
    if (sha256_hex(image.bytes) != image.sha256) return std::nullopt;
    image.build = {.compiler = head.at("compiler"),
                   .flags = head.at("flags"),
                   .log = head.at("log"),
                   .seconds = head.at("seconds"),
                   .sandbox = head.at("sandbox")};
    return image;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

BuildFailure invalid(const Error& e) { return {Reason::plan_invalid, e.text(), {}}; }

std::optional<BuildFailure> admit(const Image& image, const Definition& definition, const TargetSpec& target) {
  const auto admitted = target.family == "cuda"
                            ? admit_cubin(image.bytes, image.plan, make_arg_layout(image.plan, definition).bytes, target)
                            : admit_cpu_object(image.bytes, image.plan);
  if (admitted) return std::nullopt;
  const AdmissionFailure& f = admitted.error();
  // A launch that names what is not there is a fault of the plan, not of the image.
  if (f.rule == "missing_entry") return BuildFailure{Reason::plan_invalid, f.detail, image.build.log};
  return BuildFailure{Reason::not_admitted, fmt::format("{}: {}", f.rule, f.detail), image.build.log};
}

Status add_resources(Image& image, const TargetSpec& target) {
  if (target.family != "cuda") return {};
  FORGE_TRY_ASSIGN(image.resources, cubin_resources(image.bytes));
  return {};
}

}  // namespace

tl::expected<Image, BuildFailure> Builder::build(const KernelPackage& package, const Definition& definition, const TargetSpec& target) {
  const std::string file = package.origin.empty() ? "launch.toml" : package.origin + "/launch.toml";
  auto plan = parse_launch_plan(package.plan_text, file);
  if (!plan) return tl::unexpected(invalid(plan.error()));
  if (auto ok = check_plan(*plan, definition, target, file); !ok) return tl::unexpected(invalid(ok.error()));
  const std::string header = make_args_header(*plan, definition, target);

  const fs::path cached = m_cache.empty() ? fs::path() : cache_file(m_cache, cache_key(m_compiler, package, header, target));
  if (!cached.empty()) {
    const auto text = read_file(cached);
    if (auto image = text ? from_cache(*text) : std::nullopt) {
      image->plan = *plan;
      if (!admit(*image, definition, target) && add_resources(*image, target)) return std::move(*image);
    }
  }

  auto image = m_compiler.compile(package, header, target);
  if (!image) return tl::unexpected(std::move(image.error()));
  image->plan = *plan;
  image->sha256 = sha256_hex(image->bytes);
  if (auto failure = admit(*image, definition, target)) return tl::unexpected(std::move(*failure));
  if (auto ok = add_resources(*image, target); !ok)
    return tl::unexpected(BuildFailure{Reason::not_admitted, ok.error().text(), image->build.log});
  // A cache that cannot be written costs a rebuild, nothing else: say so and go on.
  if (!cached.empty())
    if (auto ok = make_dirs(cached.parent_path()).and_then([&] { return write_file_atomic(cached, to_cache(*image)); }); !ok)
      image->build.log += "note: the build was not cached: " + ok.error().text() + "\n";
  return image;
}

}  // namespace forge
