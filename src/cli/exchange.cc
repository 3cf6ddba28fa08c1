// SPDX-License-Identifier: Apache-2.0
// forge export | import: kernels in the forms that others use, and the tasks of others.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "build/build.h"
#include "cli/command.h"
#include "core/json_io.h"
#include "exchange/cpp_export.h"
#include "exchange/import.h"
#include "exchange/trace_solution.h"
#include "gate/catalog.h"
#include "util/scratch.h"
#include "util/text.h"
#include "vault/vault.h"

namespace forge {

namespace {

struct ExportFlags {
  std::string what, as, to, op, author = "forge", name, space;
};

Error export_problem(Code code, std::string message, std::string file, std::string fix) {
  return Error{.code = code, .message = std::move(message), .file = std::move(file), .line = 0, .field = {}, .fix = std::move(fix)};
}

// A package folder, or a sealed kernel by "gen:ID" or by the start of its id.
Result<ExportRequest> find_kernel(const Context& c, const ExportFlags& f) {
  ExportRequest r;
  std::string op = f.op;
  std::error_code ignored;
  if (fs::is_directory(f.what, ignored)) {
    if (op.empty())
      return fail(export_problem(Code::bad_input, "a package does not say which operator it is for", f.what, "name it: --operator NAME"));
    FORGE_TRY_ASSIGN(r.package, read_package_folder(f.what));
    r.origin = fmt::format("the package {} (not sealed)", fs::path(f.what).filename().string());
  } else {
    FORGE_TRY_ASSIGN(const Vault vault, Vault::open(c.paths.home));
    FORGE_TRY_ASSIGN(const Generation g, vault.find(f.what.starts_with("gen:") ? f.what.substr(4) : f.what));
    if (!op.empty() && op != g.operator_name)
      return fail(Code::bad_input, fmt::format("{} is a kernel of {}, not of {}", g.id.substr(0, 12), g.operator_name, op),
                  "leave --operator out: a sealed kernel knows its own");
    op = g.operator_name;
    r.package = g.package;
    r.origin = fmt::format("gen{} {} of {}, sealed {}", g.number, g.id.substr(0, 12), op, g.date);
  }
  FORGE_TRY_ASSIGN(const LaunchPlan plan, parse_launch_plan(r.package.plan_text, f.what + "/launch.toml"));
  FORGE_TRY_ASSIGN(r.target, find_target(plan.target));
  FORGE_TRY_ASSIGN(OperatorFolder folder, read_operator(c.paths, op, r.target.family));
  r.definition = std::move(folder.definition);
  if (r.package.source_name != (r.target.family == "cuda" ? "kernel.cu" : "kernel.cpp"))
    return fail(export_problem(Code::bad_input, fmt::format("{} is no source for {}", r.package.source_name, r.target.name), f.what,
                               "a CPU kernel is kernel.cpp, a GPU kernel kernel.cu"));
  return r;
}

// The cubin, built and admitted as the gate does.
Status build_image(const Context& c, ExportRequest& r) {
  FORGE_TRY_ASSIGN(const auto compiler, find_compiler(r.target));
  const auto image = Builder(*compiler, c.paths.home / "cache").build(r.package, r.definition, r.target);
  if (!image)
    return fail(export_problem(Code::build_failed, fmt::format("{}: {}", name(image.error().reason), image.error().detail), r.origin,
                               "`forge check` shows what the compiler said"));
  r.image = image->bytes;
  r.build_line = image->build.compiler + " " + join(image->build.flags, " ");
  return {};
}

Status want_empty(const fs::path& folder) {
  std::error_code error;
  if (!fs::exists(folder, error)) return {};
  if (!fs::is_directory(folder, error)) return fail(export_problem(Code::bad_input, "is no folder", folder.string(), "name a new folder"));
  if (!fs::is_empty(folder, error))
    return fail(export_problem(Code::bad_input, "is not empty", folder.string(), "name a new folder, or empty this one"));
  return {};
}

std::vector<std::pair<fs::path, std::string>> as_paths(const std::vector<ExportedFile>& files) {
  std::vector<std::pair<fs::path, std::string>> out;
  for (const ExportedFile& f : files) out.emplace_back(f.name, f.content);
  return out;
}

int export_as_cpp(const Context& c, const ExportFlags& f) {
  if (f.to == "-") return c.fail(export_problem(Code::bad_input, "standard output holds no folder", f.to, "name a new folder"));
  if (auto empty = want_empty(f.to); !empty) return c.fail(empty.error());
  auto request = find_kernel(c, f);
  if (!request) return c.fail(request.error());
  request->name = f.space;
  if (request->target.family == "cuda")
    if (auto built = build_image(c, *request); !built) return c.fail(built.error());
  const auto files = export_cpp(*request);
  if (!files) return c.fail(files.error());
  if (auto written = write_folder(f.to, as_paths(*files)); !written) return c.fail(written.error());
  Json j;
  j["kernel"] = request->origin, j["target"] = request->target.name, j["folder"] = f.to, j["files"] = Json::array();
  for (const ExportedFile& file : *files) j["files"].push_back(file.name);
  c.out(fmt::format("{}\n  written to {}; README.md there says how to build and call it", request->origin, f.to));
  return c.finish(dump(j));
}

int export_as_solution(const Context& c, const ExportFlags& f) {
  std::error_code ignored;
  const bool to_output = f.to == "-";
  if (!f.space.empty()) return c.fail(export_problem(Code::bad_input, "--namespace is for --as cpp", {}, "a solution is named by --name"));
  if (!to_output && fs::exists(f.to, ignored)) return c.fail(export_problem(Code::bad_input, "exists already", f.to, "name a new file"));
  auto request = find_kernel(c, f);
  if (!request) return c.fail(request.error());
  if (request->target.family == "cuda")
    if (auto built = build_image(c, *request); !built) return c.fail(built.error());
  const std::string name =
      f.name.empty() ? fmt::format("forge_{}_{}", export_name(request->definition), package_hash(request->package).substr(0, 12)) : f.name;
  const auto solution = export_trace_solution(*request, {.name = name, .author = f.author});
  if (!solution) return c.fail(solution.error());
  if (to_output) {  // the document and nothing else, with --json or without
    c.out(trim(*solution));
    return c.finish(trim(*solution));
  }
  if (auto written = write_file_atomic(f.to, *solution); !written) return c.fail(written.error());
  c.out(fmt::format("{}\n  as solution {} of {}: {}", request->origin, name, request->definition.name, f.to));
  return c.finish(dump(Json{{"kernel", request->origin}, {"target", request->target.name}, {"solution", name}, {"file", f.to}}));
}

int export_kernel(const Context& c, const ExportFlags& f) {
  if (f.as == "cpp") return export_as_cpp(c, f);
  return export_as_solution(c, f);
}

// Writes the folder, unless there is one of that name.
Status write_operator(const ImportedOperator& op, const fs::path& to) {
  const fs::path folder = to / op.name;
  std::error_code ignored;
  if (fs::exists(folder, ignored))
    return fail(export_problem(Code::bad_input, "exists already", folder.string(), "remove it, or import to another folder: --to"));
  return write_folder(folder, as_paths(op.files));
}

int import_from(const Context& c, const std::string& from, const std::string& to) {
  auto items = import_tasks(from);
  if (!items) return c.fail(items.error());
  std::size_t taken = 0;
  Json list = Json::array();
  for (ImportItem& item : *items) {
    if (item.taken)
      if (const Status written = write_operator(*item.taken, to); !written) {
        if (written.error().code != Code::bad_input) return c.fail(written.error());
        item.taken.reset();
        item.refused = written.error();
      }
    Json j;
    j["source"] = item.source, j["format"] = item.format;
    if (item.taken) {
      ++taken;
      const ImportedOperator& op = *item.taken;
      j["operator"] = op.name, j["folder"] = (fs::path(to) / op.name).string(), j["missing"] = op.missing, j["notes"] = op.notes;
      c.out(fmt::format("taken    {} ({}), {} things missing: {}", op.name, item.format, op.missing.size(),
                        (fs::path(to) / op.name / "IMPORT.md").string()));
      if (items->size() == 1)
        for (const std::string& m : op.missing) c.out("  missing: " + m);
    } else {
      j["refused"] = item.refused->message, j["fix"] = item.refused->fix;
      c.out("refused  " + item.refused->text());
    }
    list.push_back(std::move(j));
  }
  c.out(fmt::format(
      "{} of {} taken{}", taken, items->size(),
      taken > 0 ? fmt::format("; fill in what IMPORT.md names, then move the folder to {}", (c.paths.data / "operators").string()) : ""));
  c.finish(dump(Json{{"items", list}}));
  return taken == items->size() ? kOk : kNegative;
}

}  // namespace

void add_exchange(CLI::App& app, Action& action) {
  auto f = std::make_shared<ExportFlags>();
  CLI::App* sub =
      app.add_subcommand("export", "a kernel in a form that others use: C++ with a launcher of its own, or a FlashInfer-Trace solution");
  sub->add_option("what", f->what, "a sealed kernel (gen:ID, or the start of its id), or a package folder")->required();
  sub->add_option("--as", f->as, "cpp: a folder of C++; flashinfer-trace: one JSON file")
      ->required()
      ->check(CLI::IsMember(std::vector<std::string>{"cpp", "flashinfer-trace"}));
  sub->add_option("to", f->to, "the folder or file to write; flashinfer-trace: - for standard output")->required();
  sub->add_option("--operator", f->op, "of a package folder: its operator");
  sub->add_option("--author", f->author, "flashinfer-trace: the solution's author")->capture_default_str();
  sub->add_option("--name", f->name, "flashinfer-trace: the solution's name (default: operator and hash)");
  sub->add_option("--namespace", f->space, "cpp: the launcher's namespace and files (default: the operator's name)");
  sub->footer(
      "Examples:\n  forge export gen:3f2a --as cpp softmax\n  forge export my_kernel --operator softmax_f32 --as cpp softmax\n  forge "
      "export gen:3f2a --as flashinfer-trace softmax.json");
  sub->callback([f, &action] { action = [f](Context& c) { return export_kernel(c, *f); }; });

  struct ImportFlags {
    std::string from, to = "imported";
  };
  auto i = std::make_shared<ImportFlags>();
  CLI::App* in = app.add_subcommand("import", "tasks of others as operator folders: FlashInfer-Trace, KernelBench, GPU MODE");
  in->add_option("from", i->from, "a file, or a folder that holds some")->required();
  in->add_option("--to", i->to, "where the operator folders are written")->capture_default_str();
  in->footer(
      "Examples:\n  forge import definitions/rmsnorm/rmsnorm_h4096.json\n  forge import KernelBench/level1 --to mine\nPython is read, "
      "never "
      "run; what only running it would tell is named in IMPORT.md.\nExit: 0 all taken, 1 some refused (and why).");
  in->callback([i, &action] { action = [i](Context& c) { return import_from(c, i->from, i->to); }; });
}

}  // namespace forge
