// SPDX-License-Identifier: Apache-2.0
// What a coding agent begins with. The skeleton builds and is admitted; it writes nothing, and says so.
#include <fmt/format.h>

#include <cctype>

#include "agents/tools.h"

namespace forge {

namespace {

std::string tensor_text(const TensorSpec& t) {
  std::string dims;
  for (const auto& axis : t.shape) dims += (dims.empty() ? "" : ", ") + axis;
  return t.scalar ? t.name : fmt::format("{}[{}]", t.name, dims);
}

std::string entry_of(const Definition& d) {
  std::string text;
  for (char c : d.name) text += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return is_identifier(text) && text != "main" ? text : "kernel_" + text;
}

// The axis to spread blocks over: the first variable one of the first output, else any.
std::string spread_axis(const Definition& d) {
  for (const TensorSpec& t : d.outputs)
    for (const auto& axis : t.shape)
      if (const Axis* a = find_axis(d, axis); a && !a->constant) return axis;
  for (const Axis& a : d.axes)
    if (!a.constant) return a.name;
  return "";
}

std::string skeleton_plan(const Definition& d, const TargetSpec& target) {
  const std::string axis = spread_axis(d);
  return fmt::format("format = 1\ntarget = \"{}\"\n\n[[launch]]\nentry = \"{}\"\ngrid = \"{}\"\n{}", target.name, entry_of(d),
                     axis.empty() ? "1" : axis, target.family == "cuda" ? "block = 256\n" : "");
}

std::string skeleton_source(const Definition& d, const TargetSpec& target) {
  std::string inputs, outputs;
  for (const auto& t : d.inputs) inputs += (inputs.empty() ? "" : ", ") + tensor_text(t);
  for (const auto& t : d.outputs) outputs += (outputs.empty() ? "" : ", ") + tensor_text(t);
  const std::string axis = spread_axis(d), index = "block";
  const std::string what = axis.empty() ? "one block does all" : fmt::format("one block for each value of {}", axis);
  std::string out = fmt::format("// {}\n// Reads {}; writes {}. Every element of an output must be written.\n#include \"forge_args.h\"\n\n",
                                d.description.empty() ? d.name : d.description, inputs, outputs);
  const std::string todo =
      fmt::format("  // TODO: compute {}. As it stands it writes nothing, which the gate calls not_written.\n", outputs);
  if (target.family == "cuda")
    return out + fmt::format(
                     "extern \"C\" __global__ void {}(const __grid_constant__ forge_args a) {{\n  const int {} = blockIdx.x;  // {}\n  "
                     "(void)a, (void){};\n{}}}\n",
                     entry_of(d), index, what, index, todo);
  return out + fmt::format(
                   "extern \"C\" void {}(const forge_args* a, const forge_block* b) {{\n  const long {} = b->index;  // {}\n  (void)a, "
                   "(void){};\n{}}}\n",
                   entry_of(d), index, what, index, todo);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> starter_of(const Workbench& bench) {
  const TargetSpec& target = bench.machine().target;
  const Definition& definition = bench.definition();
  KernelPackage package{.source_name = target.family == "cuda" ? "kernel.cu" : "kernel.cpp",
                        .source = skeleton_source(definition, target),
                        .plan_text = skeleton_plan(definition, target),
                        .origin = {}};
  if (const auto best = bench.branch_best()) package = *best;
  std::vector<std::pair<std::string, std::string>> files{{package.source_name, package.source}, {"launch.toml", package.plan_text}};
  if (const auto plan = parse_launch_plan(package.plan_text, "launch.toml"))
    files.emplace_back("forge_args.h", make_args_header(*plan, definition, target));
  return files;
}

}  // namespace forge
