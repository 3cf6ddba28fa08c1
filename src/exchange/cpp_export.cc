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
  LauncherParts parts{.request = request, .plan = std::move(plan), .layout = {}, .name = export_name(request.definition)};
  parts.layout = make_arg_layout(parts.plan, request.definition);
  parts.cuda = request.target.family == "cuda";
  for (const ArgField& f : parts.layout.fields)
    if (f.name == "Arguments")
      return fail(Error{.code = Code::unsupported,
                        .message = "'Arguments' is what the launcher's header calls the struct with the tensors",
                        .file = where,
                        .line = 0,
                        .field = f.name,
                        .fix = "rename that tensor or axis"});
  return parts.cuda ? cuda_launcher(parts) : cpu_launcher(parts);
}

}  // namespace forge
