// SPDX-License-Identifier: Apache-2.0
// Input: definition.json, ====, launch.toml. What parses and checks is made concrete, laid out, and exported as C++.
// link: forge_exchange
#include "core/launch_plan.h"

#include "exchange/cpp_export.h"
#include "exchange/trace_solution.h"
#include "fuzz/target.h"

namespace forge {

FORGE_FUZZ_TARGET(launch_plan) {
  const auto texts = fuzz::parts(bytes, 2);
  const auto d = parse_definition(texts[0], "definition.json");
  const auto plan = parse_launch_plan(texts[1], "launch.toml");
  if (!d || !plan) return;
  for (const char* name : {"cpu:x86-64-avx2", "cuda:sm_90a"}) {
    const TargetSpec target = find_target(name).value();
    if (!check_plan(*plan, *d, target, "launch.toml")) continue;
    for (const std::int64_t size : {std::int64_t(1), std::int64_t(100), std::int64_t(1) << 40}) {
      std::map<std::string, std::int64_t> variable;
      for (const Axis& a : d->axes)
        if (!a.constant) variable[a.name] = size;
      const auto axes = complete_axes(*d, variable);
      if (axes) (void)make_concrete(*plan, *d, *axes, 132, [](const LaunchSpec&, std::int64_t) -> Result<std::int64_t> { return 264; });
    }
    const ArgLayout layout = make_arg_layout(*plan, *d);
    for (const ArgField& f : layout.fields) HOLDS(f.offset + f.bytes <= layout.bytes);
    (void)make_args_header(*plan, *d, target);
    const ExportRequest request{.package = {.source_name = target.family == "cpu" ? "kernel.cpp" : "kernel.cu",
                                            .source = "void f() {}\n",
                                            .plan_text = texts[1],
                                            .origin = "fuzz"},
                                .definition = *d,
                                .target = target,
                                .origin = "fuzz",
                                .image = "cubin",
                                .build_line = "nvcc"};
    (void)export_cpp(request);
    (void)export_trace_solution(request, {"name", "author"});
  }
}

}  // namespace forge
