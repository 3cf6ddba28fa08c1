// SPDX-License-Identifier: Apache-2.0
#include "exchange/cpp_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "exchange/launcher_text.h"

namespace forge {

std::string export_name(const Definition& definition) {
  std::string out;
  for (const char c : definition.name) out += std::isalnum(static_cast<unsigned char>(c)) && static_cast<unsigned char>(c) < 0x80 ? c : '_';
  return is_identifier(out) ? out : "kernel_" + out;
}

Result<std::vector<ExportedFile>> export_cpp(const ExportRequest& request) {
  const std::string where = request.package.origin.empty() ? "launch.toml" : request.package.origin + "/launch.toml";
  FORGE_TRY_ASSIGN(LaunchPlan plan, parse_launch_plan(request.package.plan_text, where));
  FORGE_TRY(check_plan(plan, request.definition, request.target, where));
  LauncherParts parts{.request = request, .plan = std::move(plan), .layout = {}, .name = request.name, .cuda = false};
  if (parts.name.empty()) parts.name = export_name(request.definition);
  parts.layout = make_arg_layout(parts.plan, request.definition);
  parts.cuda = request.target.family == "cuda";
  const auto refuse = [&](const std::string& field, std::string message, std::string fix) {
    return fail(
        Error{.code = Code::unsupported, .message = std::move(message), .file = where, .line = 0, .field = field, .fix = std::move(fix)});
  };
  if (!is_identifier(parts.name) || is_launcher_name(parts.name))
    return refuse("", fmt::format("'{}' cannot be a launcher's namespace and the name of its files", parts.name),
                  "as C++ it may have another name than its operator: --namespace NAME");
  std::vector<std::string> names;
  for (const ArgField& f : parts.layout.fields) names.push_back(f.name);
  for (const Axis& axis : request.definition.axes) names.push_back(axis.name);
  for (const LaunchSpec& l : parts.plan.launches) names.push_back(l.entry);
  for (const std::string& name : names) {
    if (name == "Arguments")
      return refuse(name, "'Arguments' is what the launcher's header calls the struct with the tensors", "rename that tensor or axis");
    if (is_header_macro(name))
      return refuse(name, fmt::format("'{}' is a macro of C's headers, or reserved, so that no launcher can declare it", name),
                    "rename that tensor, axis or entry");
  }
  return parts.cuda ? cuda_launcher(parts) : cpu_launcher(parts);
}

}  // namespace forge
