// SPDX-License-Identifier: Apache-2.0
// launch.toml into a LaunchPlan. What only the definition or the target can tell is check_plan's (launch_check.cc).
#include "core/launch_plan.h"

#include <fmt/format.h>

#include <limits>

#include "core/concrete_map.h"
#include "core/toml_io.h"

namespace forge {
namespace {

void read_map(TomlReader& t, MapSpec& m) {
  t.need_text("name", m.name);
  t.need_text("tensor", m.tensor);
  t.maybe("dtype", m.dtype);
  t.maybe("offset", m.offset);
  t.need("dims", m.dims);
  t.maybe("strides", m.strides);
  t.maybe("box", m.box);
  t.maybe("swizzle", m.swizzle);
  t.maybe("l2", m.l2);
  TomlReader i = t.table("im2col");
  if (!i.present()) return;
  Im2colSpec& spec = m.im2col.emplace();
  i.need("lower", spec.lower);
  i.need("upper", spec.upper);
  i.need("channels", spec.channels);
  i.need("pixels", spec.pixels);
}

LaunchSpec read_launch(TomlReader& t) {
  LaunchSpec l;
  t.need_text("entry", l.entry);
  t.maybe("when", l.when);
  t.need("grid", l.grid);
  t.maybe("block", l.block);
  t.maybe("cluster", l.cluster);
  t.check(l.cluster >= 1 && l.cluster <= 8, "cluster", "is not between 1 and 8");
  t.maybe("smem", l.smem);
  t.maybe("cooperative", l.cooperative);
  t.maybe("pdl", l.pdl);
  return l;
}

std::string at(const char* list, std::size_t i, const char* key) { return fmt::format("{}[{}].{}", list, i, key); }

// Evaluates with the field in the error, and the bounds that the field has.
Result<std::int64_t> number_of(const Expr& expr, const Names& names, const std::string& field, std::int64_t low, std::int64_t high) {
  auto value = evaluate(expr, names);
  if (!value) {
    Error e = value.error();
    e.field = field;
    return fail(std::move(e));
  }
  if (*value < low || *value > high)
    return fail(Error{.code = Code::bad_input,
                      .message = fmt::format("\"{}\" is {}, not between {} and {}", expr.text, *value, low, high),
                      .file = {},
                      .line = 0,
                      .field = field,
                      .fix = {}});
  return *value;
}

Error bad_launch(std::size_t i, const char* key, std::string message) {
  return Error{.code = Code::bad_input, .message = std::move(message), .file = {}, .line = 0, .field = at("launch", i, key), .fix = {}};
}

constexpr std::int64_t kInt = std::numeric_limits<std::int32_t>::max();

}  // namespace

const char* name(WorkspaceInit init) {
  switch (init) {
    case WorkspaceInit::poison:
      return "poison";
    case WorkspaceInit::zero:
      return "zero";
    case WorkspaceInit::clean:
      return "clean";
    case WorkspaceInit::prepared:
      break;
  }
  return "prepared";
}

Result<LaunchPlan> parse_launch_plan(const std::string& text, const std::string& file) {
  FORGE_TRY_ASSIGN(TomlReader toml, TomlReader::parse(text, file));
  LaunchPlan p;
  toml.format(1);
  toml.need_text("target", p.target);
  toml.maybe("requires", p.requires_);
  for (TomlReader& t : toml.tables("let")) {
    LetSpec& let = p.lets.emplace_back();
    t.need_text("name", let.name);
    t.need("value", let.value);
  }
  for (TomlReader& t : toml.tables("workspace")) {
    WorkspaceSpec& w = p.workspaces.emplace_back();
    t.need_text("name", w.name);
    t.need("bytes", w.bytes);
    t.maybe_choice("init", w.init, {WorkspaceInit::poison, WorkspaceInit::zero, WorkspaceInit::clean, WorkspaceInit::prepared});
  }
  for (TomlReader& t : toml.tables("map")) read_map(t, p.maps.emplace_back());
  for (TomlReader& t : toml.tables("prepare")) p.prepare.push_back(read_launch(t));
  for (TomlReader& t : toml.tables("launch")) p.launches.push_back(read_launch(t));
  toml.check(!p.launches.empty(), "launch", "there is none", "write [[launch]] with entry and grid");
  FORGE_TRY(toml.finish());
  return p;
}

Result<ConcretePlan> make_concrete(const LaunchPlan& p, const AxisValues& axes, std::int64_t sm_count, std::int64_t resident) {
  return make_concrete(p, Definition{}, axes, sm_count,
                       [resident](const LaunchSpec&, std::int64_t) -> Result<std::int64_t> { return resident; });
}

Result<ConcretePlan> make_concrete(const LaunchPlan& p, const Definition& definition, const AxisValues& axes, std::int64_t sm_count,
                                   const Residency& residency) {
  Names names = axes;
  for (const auto& [axis, value] : axes)
    if (value < 0 || value > kInt)
      return fail(Error{.code = Code::bad_input,
                        .message = fmt::format("{} does not fit 32 bits", value),
                        .file = {},
                        .line = 0,
                        .field = "axes." + axis,
                        .fix = {}});
  names["sm_count"] = sm_count;

  for (std::size_t i = 0; i < p.requires_.size(); i++) {
    const std::string field = fmt::format("requires[{}]", i);
    FORGE_TRY_ASSIGN(const std::int64_t holds, number_of(p.requires_[i], names, field, std::numeric_limits<std::int64_t>::min(),
                                                         std::numeric_limits<std::int64_t>::max()));
    if (!holds)
      return fail(Error{.code = Code::unsupported,
                        .message = fmt::format("the shape is outside the kernel's domain: \"{}\" is false", p.requires_[i].text),
                        .file = {},
                        .line = 0,
                        .field = field,
                        .fix = {}});
  }
  ConcretePlan out;
  for (std::size_t i = 0; i < p.lets.size(); i++) {
    FORGE_TRY_ASSIGN(const std::int64_t value,
                     number_of(p.lets[i].value, names, at("let", i, "value"), std::numeric_limits<std::int32_t>::min(), kInt));
    names[p.lets[i].name] = value;
    out.lets.emplace_back(p.lets[i].name, value);
  }
  for (std::size_t i = 0; i < p.workspaces.size(); i++) {
    FORGE_TRY_ASSIGN(const std::int64_t bytes,
                     number_of(p.workspaces[i].bytes, names, at("workspace", i, "bytes"), 0, std::int64_t{1} << 46));
    out.workspaces.push_back({.name = p.workspaces[i].name, .bytes = bytes, .init = p.workspaces[i].init});
  }
  for (std::size_t i = 0; i < p.maps.size(); i++) {
    FORGE_TRY_ASSIGN(ConcreteMap map, make_concrete_map(p, i, definition, out.workspaces, names));
    out.maps.push_back(std::move(map));
  }
  const auto target = find_target(p.target);
  const std::int64_t shared_limit = target ? target->shared_bytes : 0;  // cuda
  Names grid_names = names;
  for (std::size_t i = 0; i < p.launches.size(); i++) {
    const LaunchSpec& l = p.launches[i];
    if (!l.when.empty()) {
      FORGE_TRY_ASSIGN(const std::int64_t wanted,
                       number_of(l.when, names, at("launch", i, "when"), std::numeric_limits<std::int64_t>::min(),
                                 std::numeric_limits<std::int64_t>::max()));
      if (!wanted) continue;
    }
    std::int64_t scratch = 0;
    if (!l.smem.empty()) {
      FORGE_TRY_ASSIGN(scratch, number_of(l.smem, names, at("launch", i, "smem"), 0, std::int64_t{1} << 30));
    }
    if (shared_limit && scratch > shared_limit)
      return fail(bad_launch(
          i, "smem",
          fmt::format("\"{}\" is {} bytes, more than a block of {} may have ({})", l.smem.text, scratch, p.target, shared_limit)));
    FORGE_TRY_ASSIGN(const std::int64_t resident, residency(l, scratch));
    if (shared_limit && resident < 1)
      return fail(bad_launch(i, "smem",
                             fmt::format("no block of '{}' fits the device: {} threads, {} bytes of dynamic shared memory, clusters of {}",
                                         l.entry, l.block.value_or(0), scratch, l.cluster)));
    grid_names["resident"] = resident;
    FORGE_TRY_ASSIGN(const std::int64_t grid, number_of(l.grid, grid_names, at("launch", i, "grid"), 0, kInt));
    if (grid == 0) continue;
    if (grid % l.cluster != 0) return fail(bad_launch(i, "grid", fmt::format("{} blocks are no multiple of cluster {}", grid, l.cluster)));
    if (l.cooperative && grid > resident)
      return fail(bad_launch(i, "grid", fmt::format("{} blocks wait for each other, but only {} fit the device at once", grid, resident)));
    out.launches.push_back({.entry = l.entry,
                            .grid = grid,
                            .scratch_bytes = scratch,
                            .block = l.block.value_or(0),
                            .cluster = l.cluster,
                            .cooperative = l.cooperative,
                            .pdl = l.pdl});
  }
  return out;
}

}  // namespace forge
