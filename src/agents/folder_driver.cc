// SPDX-License-Identifier: Apache-2.0
#include "agents/folder_driver.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include "agents/workspace_files.h"
#include "core/json_reader.h"

namespace forge {

namespace {

constexpr const char* kTag = ".forge-run";
constexpr const char* kRequest = ".forge-hand-in";

// Written only where nothing is.
Status write_new(const fs::path& file, const std::string& content) {
  std::error_code error;
  if (fs::symlink_status(file, error).type() != fs::file_type::not_found) return {};
  return write_file_atomic(file, content);
}

const char* kHowTo =
    "\n## How to work in this folder\n\n"
    "Edit the kernel and `launch.toml`; other files may lie beside them. Then, in this folder:\n\n"
    "- `forge submit --build` builds it and shows its hot loop, `--check` checks it, `--time` times it against the best accepted here;\n"
    "  none of them is a hand-in\n"
    "- `forge submit` hands in; what the gate says is printed, and kept in `feedback/`\n"
    "- `forge status` shows where the run stands\n"
    "- `forge submit --give-up WHY` ends this milestone, `forge submit --finish` the run, with the best that it has\n";

std::string as_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return dump(value);
}

// The result for people: the verdict on top, texts of several lines in blocks.
std::string feedback_text(const ToolResult& result, int number) {
  const Json j = Json::parse(result.text, nullptr, false);
  if (!j.is_object()) return result.text + "\n";
  std::string out = fmt::format("# {}: {}\n\n", number, j.contains("verdict") ? as_text(j["verdict"]) : "");
  std::string blocks;
  for (const auto& [key, value] : j.items()) {
    if (key == "verdict") continue;
    const Json* text = value.is_object() && value.contains("text") ? &value["text"] : &value;
    if (text->is_string() && text->get_ref<const std::string&>().find('\n') != std::string::npos)
      blocks += fmt::format("\n{}:\n\n```\n{}\n```\n", key, text->get<std::string>());
    else
      out += fmt::format("- {}: {}\n", key, as_text(value));
  }
  return out + blocks;
}

Result<std::optional<FolderRequest>> read_request(const fs::path& folder) {
  const Result<std::string> text = read_file(folder / kRequest);
  if (!text) return std::optional<FolderRequest>();
  FORGE_TRY_ASSIGN(const Json j, parse_json(*text, (folder / kRequest).string()));
  JsonReader reader(j, (folder / kRequest).string());
  FolderRequest r;
  std::int64_t turn = 0;
  reader.need("turn", turn);
  reader.need("action", r.action);
  reader.maybe("why", r.why);
  FORGE_TRY(reader.finish());
  r.turn = static_cast<std::size_t>(turn);
  return std::optional<FolderRequest>(std::move(r));
}

class FolderDriver final : public Driver {
 public:
  FolderDriver(const std::string& coder, const fs::path& workspace)
      : m_base(folder_base(coder, workspace)), m_run(workspace.parent_path().filename().string()) {}
  std::string identity() const override { return "a person at a folder"; }
  bool patient() const override { return true; }

  Result<Turn> next(const Assignment& a, const std::vector<Exchange>& so_far) override {
    const fs::path folder = milestone_folder(m_base, a.milestone, a.attempt);
    if (const Status laid = lay_out(a, so_far, folder); !laid) return wait("the folder could not be laid out: " + laid.error().text());
    const auto request = read_request(folder);
    if (!request || (*request && (*request)->turn != so_far.size())) withdraw_request(folder);  // of an earlier turn: taken already
    if (!request || !*request || (*request)->turn != so_far.size()) return wait("waiting for a hand-in in " + folder.string());
    return turn_of(**request, folder, so_far.size());
  }
  void answered(const Assignment& a, const std::vector<Exchange>& so_far) override {
    const fs::path folder = milestone_folder(m_base, a.milestone, a.attempt);
    (void)write_feedback(so_far, folder);  // said again by next(), and printed by forge submit
    if (const auto request = read_request(folder); request && *request && (*request)->turn < so_far.size()) withdraw_request(folder);
  }

 private:
  static tl::unexpected<Error> wait(std::string why) { return fail(Code::interrupted, std::move(why), "forge submit"); }

  Status lay_out(const Assignment& a, const std::vector<Exchange>& so_far, const fs::path& folder) {
    FORGE_TRY(make_dirs(folder / "feedback"));
    FORGE_TRY(write_new(folder / "BRIEF.md", a.brief + kHowTo));
    for (const auto& [name, content] : a.starter) FORGE_TRY(write_new(folder / name, content));
    FORGE_TRY(write_feedback(so_far, folder));
    return write_new(folder / kTag, dump(Json{{"run", m_run}, {"milestone", a.milestone}, {"attempt", a.attempt}}) + "\n");
  }
  static Status write_feedback(const std::vector<Exchange>& so_far, const fs::path& folder) {
    for (std::size_t i = 0; i < so_far.size(); ++i)
      for (const ToolResult& result : so_far[i].results) {
        const std::string stem = fmt::format("{:02}", i + 1);
        FORGE_TRY(write_new(folder / "feedback" / (stem + ".json"), result.text + "\n"));
        FORGE_TRY(write_new(folder / "feedback" / (stem + ".md"), feedback_text(result, static_cast<int>(i) + 1)));
      }
    return {};
  }
  // The texts themselves go on record, so that it is whole without the folder.
  Result<Turn> turn_of(const FolderRequest& request, const fs::path& folder, std::size_t turn) const {
    Turn t;
    if (request.action == "give_up" || request.action == "finish") {
      t.ended = true;
      t.finish = request.action == "finish";
      t.why = request.why;
      return t;
    }
    const auto package = read_workspace_package(folder.string(), "");
    if (!package) return wait(package.error().text());
    Json arguments{{"file", package->source_name}, {"source", package->source}, {"plan", package->plan_text}};
    if (request.action == "time") arguments = Json{{"packages", Json::array({Json{{"branch_best", true}}, arguments})}};
    t.calls.push_back({.id = fmt::format("turn-{}", turn + 1), .tool = request.action, .arguments = dump(arguments)});
    return t;
  }

  fs::path m_base;
  std::string m_run;
};

}  // namespace

bool is_folder_seat(const std::string& coder) { return coder == kFolderSeat || coder.rfind("folder:", 0) == 0; }

fs::path folder_base(const std::string& coder, const fs::path& workspace) {
  return coder.rfind("folder:", 0) == 0 ? fs::path(coder.substr(7)) : workspace;
}

fs::path milestone_folder(const fs::path& base, const std::string& milestone, int attempt) {
  return base / (attempt == 0 ? milestone : fmt::format("{}-{}", milestone, std::int64_t{attempt} + 1));
}

Result<FolderTag> read_folder_tag(const fs::path& folder) {
  const std::string file = (folder / kTag).string();
  FORGE_TRY_ASSIGN(const std::string text, read_file(file));
  FORGE_TRY_ASSIGN(const Json j, parse_json(text, file));
  JsonReader reader(j, file);
  FolderTag tag;
  reader.need("run", tag.run);
  reader.need("milestone", tag.milestone);
  reader.need("attempt", tag.attempt);
  FORGE_TRY(reader.finish());
  return tag;
}

Result<Fd> hold_folder(const fs::path& folder) {
  const fs::path file = folder / kTag;
  Fd fd(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd && errno == ENOENT) return Fd();  // not laid out yet: there is nothing to hand in from
  if (!fd) return fail_errno("cannot open", file.string(), errno);
  if (flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
  return fail(Error{.code = Code::io,
                    .message = "another forge process works on this milestone",
                    .file = folder.string(),
                    .line = 0,
                    .field = {},
                    .fix = "wait for it, or stop it"});
}

Status leave_request(const fs::path& folder, const FolderRequest& r) {
  return write_file_atomic(folder / kRequest, dump(Json{{"turn", r.turn}, {"action", r.action}, {"why", r.why}}) + "\n");
}

void withdraw_request(const fs::path& folder) {
  std::error_code ignored;
  fs::remove(folder / kRequest, ignored);
}

std::unique_ptr<Driver> make_folder_driver(const std::string& coder, const fs::path& workspace) {
  return std::make_unique<FolderDriver>(coder, workspace);
}

}  // namespace forge
