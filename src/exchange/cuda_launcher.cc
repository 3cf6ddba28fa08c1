// SPDX-License-Identifier: Apache-2.0
// The launcher of a GPU kernel over the CUDA driver API: <name>.h, <name>.cc, <name>_image.cc (the cubin), kernel.cu,
// forge_args.h, README.md.
#include <fmt/format.h>

#include <algorithm>

#include "core/concrete_map.h"
#include "core/version.h"
#include "exchange/cpp_expr.h"
#include "exchange/cuda_state.h"
#include "exchange/launcher_text.h"
#include "util/text.h"

namespace forge {
namespace {

std::vector<std::string> kernels_of(const LaunchPlan& plan) {
  std::vector<std::string> entries;
  for (const LaunchSpec& l : plan.launches)
    if (std::find(entries.begin(), entries.end(), l.entry) == entries.end()) entries.push_back(l.entry);
  return entries;
}

std::string cuda_header(const LauncherParts& p) {
  return generated_by(p) + fmt::format(R"(// How to call it: README.md. A Launcher serves one call at a time, and one stream.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <memory>

namespace forge_export {{
namespace {0} {{

{1}
enum class Outcome {{
  done,
  unsupported,   // a shape outside the kernel's domain, or a device that it was not made for
  bad_argument,  // a null or misaligned pointer, an axis out of range, no context or another one
  out_of_memory,
  driver_error,
}};

class Launcher {{
 public:
  Launcher();
  ~Launcher();  // with the context current that the calls had
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  // Queues the work and returns. The first call of a shape larger than any before waits for the device: it allocates workspaces.
  Outcome run(const Arguments&, CUstream stream = nullptr);
  const char* why() const;  // what was wrong with the last call; empty after `done`

 private:
  struct State;
  std::unique_ptr<State> m_state;
}};

}}  // namespace {0}
}}  // namespace forge_export
)",
                                       p.name, arguments_struct(p));
}

std::string hex_bytes(const std::string& bytes) {
  std::string out;
  out.reserve(bytes.size() * 4);
  for (std::size_t i = 0; i < bytes.size(); i++)
    out += fmt::format("{},{}", static_cast<unsigned>(static_cast<unsigned char>(bytes[i])), i % 40 == 39 ? "\n" : "");
  return out;
}

std::string image_source(const LauncherParts& p) {
  return generated_by(p) + fmt::format(
                               "// The kernel for {}, {} bytes of ELF: {}\nnamespace forge_export {{\nnamespace {} {{\n"
                               "extern const unsigned char k_image[];\nalignas(64) const unsigned char k_image[] = {{\n{}}};\n}}\n}}\n",
                               p.request.target.name, p.request.image.size(), p.request.build_line, p.name, hex_bytes(p.request.image));
}

const char* map_type_text(DType type) {
  switch (type) {
    case DType::f32:
      return "CU_TENSOR_MAP_DATA_TYPE_FLOAT32";
    case DType::f16:
      return "CU_TENSOR_MAP_DATA_TYPE_FLOAT16";
    case DType::bf16:
      return "CU_TENSOR_MAP_DATA_TYPE_BFLOAT16";
    case DType::i32:
      return "CU_TENSOR_MAP_DATA_TYPE_INT32";
    case DType::i64:
      return "CU_TENSOR_MAP_DATA_TYPE_INT64";
    default:
      return bits(type) == 16 ? "CU_TENSOR_MAP_DATA_TYPE_UINT16" : "CU_TENSOR_MAP_DATA_TYPE_UINT8";
  }
}

template <class Range, class Text>
std::string braces(const Range& range, Text text) {
  std::vector<std::string> parts;
  for (const auto& item : range) parts.push_back(text(item));
  return parts.empty() ? "{0}" : "{" + join(parts, ", ") + "}";
}

// A tensor map: its numbers, then its place in the arguments.
std::string map_text(const LauncherParts& p, const MapSpec& spec, const ArgField& field) {
  const DType type = element_type(spec, p.request.definition).value_or(DType::u8);
  const TensorSpec* t = find_tensor(p.request.definition, spec.tensor);
  std::string tensor, bytes = "1";
  if (t) {
    tensor = "c." + t->name;
    for (const std::string& axis : t->shape) bytes = fmt::format("e.times({}, v_{})", bytes, axis);
    bytes = fmt::format("e.times({}, {})", bytes, std::max(1, bits(t->dtype) / 8));
  } else {
    for (std::size_t i = 0; i < p.plan.workspaces.size(); i++)
      if (p.plan.workspaces[i].name == spec.tensor) tensor = fmt::format("m.workspaces[{}].data", i), bytes = fmt::format("bytes_{}", i);
  }
  const auto number = [](int n) { return std::to_string(n); };
  std::vector<std::string> strides = {"0"};
  for (const Expr& s : spec.strides) strides.push_back(cpp_expression(s));
  std::string out = fmt::format("  {{\n    Map map{{}};\n    map.tensor = {};\n    map.tensor_bytes = {};\n", tensor, bytes);
  out += fmt::format("    map.unit = {};\n    map.offset = {};\n    map.type = {};\n", std::max(1, bits(type) / 8),
                     cpp_expression(spec.offset), map_type_text(type));
  out += fmt::format("    map.rank = {};\n    map.swizzle = {};\n    map.l2 = {};\n", spec.dims.size(), spec.swizzle, spec.l2);
  for (std::size_t i = 0; i < spec.dims.size(); i++) out += fmt::format("    map.dims[{}] = {};\n", i, cpp_expression(spec.dims[i]));
  for (std::size_t i = 1; i < strides.size(); i++) out += fmt::format("    map.strides[{}] = {};\n", i, strides[i]);
  for (std::size_t i = 0; i < spec.box.size(); i++) out += fmt::format("    map.box[{}] = {};\n", i, number(spec.box[i]));
  if (spec.im2col) {
    out += "    map.im2col = true;\n";
    for (std::size_t i = 0; i < spec.im2col->lower.size(); i++)
      out += fmt::format("    map.lower[{0}] = {1};\n    map.upper[{0}] = {2};\n", i, spec.im2col->lower[i], spec.im2col->upper[i]);
    out += fmt::format("    map.channels = {};\n    map.pixels = {};\n", spec.im2col->channels, spec.im2col->pixels);
  }
  out += fmt::format("    if (!m.encode(e, map, {}, args + {})) return Outcome::bad_argument;\n  }}\n", cpp_string("map " + spec.name),
                     field.offset);
  return out;
}

std::string cuda_args(const LauncherParts& p) {
  std::string out = fmt::format("  alignas(128) unsigned char args[{}] = {{}};\n", std::max<std::size_t>(p.layout.bytes, 1));
  const auto put = [&](const ArgField& f, const std::string& value) { out += fmt::format("  put(args + {}, {});\n", f.offset, value); };
  for (const ArgField& f : p.layout.fields) {
    if (f.kind == ArgField::Kind::map)
      out += map_text(p, p.plan.maps[static_cast<std::size_t>(f.index)], f);
    else if (f.kind == ArgField::Kind::workspace)
      put(f, fmt::format("bytes_{0} > 0 ? m.workspaces[{0}].data : CUdeviceptr{{0}}", f.index));
    else if (f.kind == ArgField::Kind::axis || f.kind == ArgField::Kind::let)
      put(f, fmt::format("static_cast<std::int32_t>(v_{})", f.name));
    else
      put(f, "c." + f.name);
  }
  return out;
}

std::string cuda_launches(const LauncherParts& p, const std::vector<std::string>& entries) {
  std::string out = fmt::format("  Planned planned[{}];\n  int count = 0;\n", p.plan.launches.size());
  for (std::size_t i = 0; i < p.plan.launches.size(); i++) {
    const LaunchSpec& l = p.plan.launches[i];
    const std::string n = std::to_string(i), at = "launch[" + n + "]";
    const auto entry = std::find(entries.begin(), entries.end(), l.entry) - entries.begin();
    out += fmt::format("  const std::int64_t when_{} = {};\n", i, l.when.empty() ? "1" : cpp_expression(l.when));
    out += range_check("when_" + n, "INT64_MIN", "INT64_MAX", at + ".when");
    out += fmt::format("  if (when_{} != 0) {{\n    Planned p{{}};\n    p.entry = {};\n    p.shared_bytes = {};\n  ", i, entry,
                       cpp_expression(l.smem));
    out += range_check("p.shared_bytes", "0", std::to_string(p.request.target.shared_bytes), at + ".smem");
    out += fmt::format("    p.block = {};\n    p.cluster = {};\n    p.cooperative = {};\n    p.early = {};\n", l.block.value_or(1),
                       l.cluster, l.cooperative, l.pdl);
    out += "    std::int64_t v_resident = 0;\n    if (const Outcome o = m.resident(p, v_resident); o != Outcome::done) return o;\n";
    out += fmt::format("    p.grid = {};\n  ", cpp_expression(l.grid));
    out += range_check("p.grid", "0", "INT32_MAX", at + ".grid");
    if (l.cluster > 1) out += "  " + range_check("p.grid % p.cluster", "0", "0", at + ".grid (no multiple of the cluster)");
    if (l.cooperative)
      out += "  " + range_check("p.grid", "0", "v_resident", at + ".grid (blocks wait for each other, and do not all fit)");
    out += "    if (p.grid > 0) planned[count++] = p;\n  }\n";
  }
  return out;
}

std::string cuda_run(const LauncherParts& p, const std::vector<std::string>& entries) {
  std::string out =
      "\nOutcome Launcher::run(const Arguments& c, CUstream stream) {\n  State& m = *m_state;\n  m.text[0] = 0;\n"
      "  if (const Outcome o = m.load(); o != Outcome::done) return o;\n  forge_math e;\n"
      "  [[maybe_unused]] const std::int64_t v_sm_count = m.sm_count;\n";
  out += checked_names(p) + workspace_sizes(p) + cuda_launches(p, entries);
  for (std::size_t i = 0; i < p.plan.workspaces.size(); i++)
    out += fmt::format("  if (const Outcome o = m.reserve({0}, bytes_{0}, stream); o != Outcome::done) return o;\n", i);
  out += cuda_args(p);
  for (std::size_t i = 0; i < p.plan.workspaces.size(); i++)
    if (p.plan.workspaces[i].init == WorkspaceInit::zero)
      out += fmt::format("  if (const Outcome o = m.zero({0}, bytes_{0}, stream); o != Outcome::done) return o;\n", i);
  out +=
      "  for (int i = 0; i < count; i++)\n    if (const Outcome o = m.launch(planned[i], args, stream); o != Outcome::done) return o;\n"
      "  return Outcome::done;\n}\n";
  return out;
}

std::string cuda_source(const LauncherParts& p) {
  const std::vector<std::string> entries = kernels_of(p.plan);
  std::string out = generated_by(p) + fmt::format(R"(// Does what launch.toml says, over the CUDA driver API. C++17 and later.
#include "{0}.h"

#include <cstdio>
#include <cstring>

namespace forge_export {{
namespace {0} {{
extern const unsigned char k_image[];
namespace {{

constexpr int k_workspaces = {1};
constexpr int k_entries = {2};
constexpr const char* k_entry_names[] = {3};

template <class T>
void put(unsigned char* at, T value) {{
  std::memcpy(at, &value, sizeof value);
}}

)",
                                                  p.name, p.plan.workspaces.size(), entries.size(), braces(entries, cpp_string));
  out += kPlanMath;
  const std::string state = kCudaState;
  const std::size_t end = state.find("\nstruct Launcher::State");  // what stands before it is nobody else's business
  out += state.substr(0, end) + "\n}  // namespace\n" + state.substr(end) + kCudaMemory;
  out += cuda_run(p, entries);
  out += fmt::format("\n}}  // namespace {}\n}}  // namespace forge_export\n", p.name);
  return out;
}

std::string cuda_readme(const LauncherParts& p) {
  std::string fields;
  for (const ArgField& f : p.layout.fields)
    if (f.kind == ArgField::Kind::tensor || f.kind == ArgField::Kind::scalar || f.kind == ArgField::Kind::axis)
      fields += fmt::format("a.{} = ...;\n", f.name);
  return fmt::format(R"(# {0}

{1}

Generated by forge {2} from {3}, for {4}. The folder needs nothing of forge; it needs `cuda.h` and the NVIDIA driver's library.

| file | what it is |
|---|---|
| `{0}.h`, `{0}.cc` | the launcher: does what the launch plan says, over the driver API |
| `{0}_image.cc` | the kernel as a cubin, as bytes |
| `kernel.cu`, `forge_args.h` | the source that it was made from, to read |

## Build

```sh
g++ -std=c++17 -O2 -I${{CUDA_HOME:-/usr/local/cuda}}/include -c {0}.cc -o {0}.o
g++ -std=c++17 -O2 -c {0}_image.cc -o {0}_image.o
```

Link with `-lcuda`.

## Call

```cpp
#include "{0}.h"

namespace k = forge_export::{0};
k::Launcher launcher;  // keep it: it holds the kernel and its workspaces
k::Arguments a;        // device pointers
{5}if (launcher.run(a, stream) != k::Outcome::done) std::fprintf(stderr, "%s\n", launcher.why());
```

{6}
Tensors lie in device memory, row-major, packed and aligned to 16 bytes. A context must be current. The work is queued in `stream`;
calls of one launcher share its workspaces, so they belong into one stream, or wait for each other.
)",
                     p.name, p.request.definition.description, forge_version(), p.request.origin, p.request.target.name, fields,
                     arguments_table(p));
}

}  // namespace

Result<std::vector<ExportedFile>> cuda_launcher(const LauncherParts& p) {
  if (!p.plan.prepare.empty())
    return fail(Error{.code = Code::unsupported,
                      .message = "a plan that prepares workspaces is not exported",
                      .file = p.request.package.origin,
                      .line = 0,
                      .field = "prepare",
                      .fix = "do that work in a launch"});
  if (p.request.image.empty()) return fail(Code::unsupported, "a GPU kernel is exported as its cubin, and there is none", "install nvcc");
  return std::vector<ExportedFile>{{p.name + ".h", cuda_header(p)},
                                   {p.name + ".cc", cuda_source(p)},
                                   {p.name + "_image.cc", image_source(p)},
                                   {"kernel.cu", p.request.package.source},
                                   {"forge_args.h", make_args_header(p.plan, p.request.definition, p.request.target)},
                                   {"README.md", cuda_readme(p)}};
}

}  // namespace forge
