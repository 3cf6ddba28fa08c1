// SPDX-License-Identifier: Apache-2.0
#include "agents/tool_arguments.h"

#include <fmt/format.h>

#include "util/text.h"

namespace forge {

namespace {

tl::unexpected<Error> wrong_argument(std::string message, std::string fix) {
  return fail(Code::bad_input, std::move(message), std::move(fix));
}

// A key or a value as it may be quoted in a message.
std::string in_ticks(const std::string& text) { return "'" + utf8_head(text, 60) + (text.size() > 60 ? "...'" : "'"); }

constexpr const char* kPackageForm =
    "give a package as `source` and `plan`, the texts of the kernel and of launch.toml, or as `folder`, a path inside the workspace that "
    "holds both";

}  // namespace

Result<Arguments> Arguments::read(const std::string& text) {
  if (text.size() > kMaxArguments)
    return wrong_argument(
        fmt::format("the arguments have {} bytes", text.size()),
        fmt::format("at most {} are read; write the package into a folder of the workspace and name it in `folder`", kMaxArguments));
  if (const std::size_t good = utf8_prefix(text); good < text.size())
    return wrong_argument(fmt::format("byte {} of the arguments is not UTF-8", good + 1), "send UTF-8 text");
  Json value = Json::object();
  if (!text.empty()) {
    Result<Json> parsed = parse_json(text, "arguments");  // of bounded depth: what copies and writes JSON recurses
    if (!parsed) return wrong_argument("the arguments are no JSON: " + utf8_head(parsed.error().message, 300), "send one JSON object");
    value = std::move(*parsed);
  }
  if (!value.is_object())
    return wrong_argument("the arguments are no JSON object", "send one JSON object, e.g. {\"source\": ..., \"plan\": ...}");
  return Arguments(std::move(value));
}

Status Arguments::only(const std::set<std::string>& keys) const {
  for (const auto& [key, value] : m_object.items()) {
    if (keys.count(key)) continue;
    const std::vector<std::string> known(keys.begin(), keys.end());
    const std::string near = key.size() < 60 ? closest(key, known) : "";
    return wrong_argument(fmt::format("there is no argument {}", in_ticks(key)),
                          (near.empty() ? "" : fmt::format("did you mean '{}'? ", near)) +
                              (known.empty() ? "this tool takes none" : "known: " + join(known, ", ")));
  }
  return {};
}

Result<std::string> Arguments::text(const std::string& key, bool needed, std::size_t most) const {
  if (!has(key)) {
    if (needed) return wrong_argument(fmt::format("'{}' is missing", key), fmt::format("give '{}', a string", key));
    return std::string();
  }
  if (!m_object[key].is_string())
    return wrong_argument(fmt::format("'{}' is no string", key), fmt::format("give '{}' as a JSON string", key));
  std::string value = m_object[key].get<std::string>();
  if (value.size() > most) return wrong_argument(fmt::format("'{}' has {} bytes", key, value.size()), fmt::format("at most {}", most));
  if (value.find('\0') != std::string::npos) return wrong_argument(fmt::format("'{}' holds a NUL byte", key), "send plain text");
  if (const std::size_t good = utf8_prefix(value); good < value.size())
    return wrong_argument(fmt::format("byte {} of '{}' is not UTF-8", good + 1, key), "send UTF-8 text");
  if (needed && trim(value).empty()) return wrong_argument(fmt::format("'{}' is empty", key), fmt::format("give '{}', a text", key));
  return value;
}

Result<Decisions> Arguments::decisions() const {
  Decisions out;
  if (!has("decisions")) return out;
  const Json& all = m_object["decisions"];
  if (!all.is_object() || all.size() > 64)
    return wrong_argument("'decisions' is no object of at most 64 names",
                          R"(give e.g. {"store": "nontemporal", "tile": "8"}: decision names and the values used)");
  for (const auto& [name, value] : all.items()) {
    const bool plain = value.is_string() || value.is_number() || value.is_boolean();
    const std::string text = value.is_string() ? value.get<std::string>() : plain ? dump(value) : "";
    if (!plain || text.size() > 200 || name.size() > 100 || name.empty() || (name + text).find('\0') != std::string::npos)
      return wrong_argument(fmt::format("decision {} has a value that is no short text", in_ticks(name)),
                            "values are strings, e.g. {\"tile\": \"8\"}");
    out.emplace_back(name, text);
  }
  return out;
}

Result<KernelPackage> Arguments::package(const std::string& family) const {
  if (has("folder") && (has("source") || has("plan"))) return wrong_argument("a package is given twice", kPackageForm);
  if (has("folder")) return wrong_argument("the folder cannot be read here", "give the package as `source` and `plan`");
  if (!has("source") || !has("plan"))
    return wrong_argument(fmt::format("'{}' is missing", has("source") ? "plan" : "source"), kPackageForm);
  KernelPackage package;
  package.source_name = family == "cuda" ? "kernel.cu" : "kernel.cpp";
  FORGE_TRY_ASSIGN(const std::string file, text("file", false));
  if (!file.empty() && file != package.source_name)
    return wrong_argument(fmt::format("the folder holds {}, and this target's source is {}", utf8_head(file, 60), package.source_name),
                          "rename it");
  package.origin = "hand-in";
  FORGE_TRY_ASSIGN(package.source, text("source", true, kMaxText));
  FORGE_TRY_ASSIGN(package.plan_text, text("plan", true, kMaxText));
  return package;
}

Result<std::vector<Arguments>> list_of(const Arguments& arguments, const std::string& key, std::size_t least, std::size_t most) {
  if (!arguments.has(key) || !arguments.m_object[key].is_array() || arguments.m_object[key].size() < least ||
      arguments.m_object[key].size() > most)
    return wrong_argument(fmt::format("'{}' is no list of {} to {}", key, least, most),
                          fmt::format("give '{}' as a JSON array of objects, each a package: {}", key, kPackageForm));
  std::vector<Arguments> out;
  for (const Json& item : arguments.m_object[key]) {
    if (!item.is_object()) return wrong_argument(fmt::format("'{}' holds something that is no object", key), kPackageForm);
    out.push_back(Arguments(item));
  }
  return out;
}

namespace {

Status inline_folder(Json& package, const std::string& workspace) {
  if (!package.is_object() || !package.contains("folder") || package["folder"].is_null()) return {};
  if (package.contains("source") || package.contains("plan")) return wrong_argument("a package is given twice", kPackageForm);
  if (!package["folder"].is_string()) return wrong_argument("'folder' is no string", "give 'folder' as a JSON string");
  FORGE_TRY_ASSIGN(const KernelPackage read, read_workspace_package(workspace, package["folder"].get<std::string>()));
  package.erase("folder");
  package["file"] = read.source_name;
  package["source"] = read.source;
  package["plan"] = read.plan_text;
  return {};
}

Status inline_folders(Json& object, const std::string& workspace) {
  FORGE_TRY(inline_folder(object, workspace));
  if (object.contains("packages") && object["packages"].is_array() && object["packages"].size() <= 16)
    for (Json& package : object["packages"]) FORGE_TRY(inline_folder(package, workspace));
  return {};
}

}  // namespace

Result<ToolCall> ready_call(ToolCall call, const std::string& workspace) {
  call.id = utf8_head(call.id.substr(0, utf8_prefix(call.id)), 200);
  call.tool = utf8_head(call.tool.substr(0, utf8_prefix(call.tool)), 100);
  const Result<Arguments> read = Arguments::read(call.arguments);
  if (!read) {
    if (call.arguments.size() > kMaxArguments || utf8_prefix(call.arguments) < call.arguments.size())
      call.arguments = dump(Json{{"refused", read.error().text()}});
    return call;  // call_tool() says what is wrong with the rest
  }
  if (call.arguments.find("\"folder\"") == std::string::npos) return call;
  Json object = read->value();
  if (const Status inlined = inline_folders(object, workspace); !inlined) {
    if (inlined.error().code != Code::bad_input) return fail(inlined.error());
    object = Json{{"refused", inlined.error().text()}};
  }
  call.arguments = dump(object);
  return call;
}

}  // namespace forge
