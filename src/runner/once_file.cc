// SPDX-License-Identifier: Apache-2.0
#include "runner/once_file.h"

#include <fmt/format.h>

#include <cstring>
#include <string_view>

namespace forge {
namespace {

template <class Message>
void append(std::string& to, Message& message, std::uint32_t sequence) {
  message.header = {.kind = wire::kind_of<Message>(), .sequence = sequence, .bytes = sizeof message};
  to.append(reinterpret_cast<const char*>(&message), sizeof message);
}

tl::unexpected<Error> no_call(std::string message) {
  return fail(Code::bad_input, std::move(message), "let forge write the file: this build reads its own files only");
}

// What is left of the file, from the front.
struct OnceCursor {
  std::string_view left;

  Result<wire::Header> peek() const {
    wire::Header h;
    if (left.size() < sizeof h) return no_call(fmt::format("the file ends where a message should begin ({} bytes are left)", left.size()));
    std::memcpy(&h, left.data(), sizeof h);
    if (h.magic != wire::k_magic) return no_call(fmt::format("no message begins here: magic {:#x}, not {:#x}", h.magic, wire::k_magic));
    if (h.version != wire::k_version) return no_call(fmt::format("protocol version {}, this is {}", h.version, wire::k_version));
    return h;
  }
  template <class Message>
  Status take(Message& message, const char* what) {
    FORGE_TRY_ASSIGN(const wire::Header h, peek());
    if (h.kind != wire::kind_of<Message>() || h.bytes != sizeof message)
      return no_call(fmt::format("a message of kind {} and {} bytes stands where {} is expected", int(h.kind), h.bytes, what));
    if (left.size() < sizeof message)
      return no_call(fmt::format("the file ends within {}: {} of {} bytes", what, left.size(), sizeof message));
    std::memcpy(&message, left.data(), sizeof message);
    left.remove_prefix(sizeof message);
    return {};
  }
};

}  // namespace

Status write_once_file(const fs::path& path, OnceFile& file) {
  std::string content;
  std::uint32_t sequence = 0;
  file.load->object_bytes = file.cubin.size();
  append(content, *file.load, ++sequence);
  content += file.cubin;
  for (wire::CudaImport& import : file.imports) append(content, import, ++sequence);
  append(content, *file.prepare, ++sequence);
  if (content.size() > kOnceBytes || file.imports.size() > kOnceImports)
    return fail(Code::unsupported,
                fmt::format("a call of {} bytes and {} allocations is too large for a file", content.size(), file.imports.size()));
  return write_file_atomic(path, content);
}

Result<OnceFile> read_once_file(const fs::path& path) {
  std::error_code ec;
  if (const auto bytes = fs::file_size(path, ec); !ec && bytes > kOnceBytes)
    return no_call(fmt::format("{} has {} bytes, more than {}", path.string(), bytes, kOnceBytes));
  FORGE_TRY_ASSIGN(const std::string content, read_file(path));
  OnceCursor at{content};
  OnceFile file;
  FORGE_TRY(at.take(*file.load, "load"));
  const bool image = file.load->subject == wire::Subject::cuda_image;
  if (!image && file.load->subject != wire::Subject::cuda_expert)
    return no_call(fmt::format("subject {} is no kernel of a GPU", int(file.load->subject)));
  if (image != (file.load->object_bytes > 0) || file.load->entry_count > wire::k_max_entries)
    return no_call("an image without code, an expert with some, or too many entries");
  if (file.load->object_bytes > at.left.size())
    return no_call(fmt::format("the file ends within the image: {} of {} bytes", at.left.size(), file.load->object_bytes));
  file.cubin = at.left.substr(0, file.load->object_bytes);
  at.left.remove_prefix(file.cubin.size());
  for (;;) {
    FORGE_TRY_ASSIGN(const wire::Header next, at.peek());
    if (next.kind != wire::Kind::cuda_import) break;
    if (file.imports.size() == kOnceImports) return no_call(fmt::format("more than {} allocations", kOnceImports));
    FORGE_TRY(at.take(file.imports.emplace_back(), "an import"));
  }
  FORGE_TRY(at.take(*file.prepare, "prepare"));
  if (!at.left.empty()) return no_call(fmt::format("{} bytes stand behind the last message", at.left.size()));
  const wire::CudaPrepare& p = *file.prepare;
  if (p.slot != 0 || p.input_count > wire::k_max_tensors || p.output_count > wire::k_max_tensors - p.input_count)
    return no_call("prepare is for another slot, or has too many tensors");
  return file;
}

}  // namespace forge
