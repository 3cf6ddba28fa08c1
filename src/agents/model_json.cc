// SPDX-License-Identifier: Apache-2.0
#include "agents/model_json.h"

#include <array>
#include <utility>

#include "core/json_reader.h"

namespace forge {

namespace {

using Kind = ModelBlock::Kind;
using End = ModelReply::End;
constexpr std::array<std::pair<Kind, const char*>, 4> k_kinds{
    {{Kind::text, "text"}, {Kind::tool_call, "tool_call"}, {Kind::tool_result, "tool_result"}, {Kind::opaque, "opaque"}}};
constexpr std::array<std::pair<End, const char*>, 4> k_ends{
    {{End::turn, "turn"}, {End::tool_calls, "tool_calls"}, {End::length, "length"}, {End::refusal, "refusal"}}};

template <class T, std::size_t N>
const char* name_in(const std::array<std::pair<T, const char*>, N>& table, T value) {
  for (const auto& [v, n] : table)
    if (v == value) return n;
  return table[0].second;
}

template <class T, std::size_t N>
T value_in(const std::array<std::pair<T, const char*>, N>& table, const std::string& name) {
  for (const auto& [v, n] : table)
    if (name == n) return v;
  return table[0].first;
}

}  // namespace

std::string model_reply_to_json(const ModelReply& reply) {
  Json blocks = Json::array();
  for (const ModelBlock& b : reply.blocks) {
    Json block{{"kind", name_in(k_kinds, b.kind)}, {"text", b.text}};
    if (!b.id.empty()) block["id"] = b.id;
    if (!b.tool.empty()) block["tool"] = b.tool;
    blocks.push_back(std::move(block));
  }
  return dump(Json{{"blocks", std::move(blocks)}, {"end", name_in(k_ends, reply.end)}, {"model", reply.model}});
}

Result<ModelReply> read_model_reply(const std::string& text) {
  constexpr const char* kWhere = "a recorded reply";
  FORGE_TRY_ASSIGN(const Json j, parse_json(text, kWhere));
  JsonReader reader(j, kWhere);
  reader.ignore_unknown_keys();
  ModelReply reply;
  for (JsonReader& b : reader.need_objects("blocks")) {
    b.ignore_unknown_keys();
    ModelBlock block;
    std::string kind = "text";
    b.maybe("kind", kind);
    b.maybe("text", block.text);
    b.maybe("id", block.id);
    b.maybe("tool", block.tool);
    block.kind = value_in(k_kinds, kind);
    reply.blocks.push_back(std::move(block));
  }
  std::string end = "turn";
  reader.maybe("end", end);
  reader.maybe("model", reply.model);
  reply.end = value_in(k_ends, end);
  FORGE_TRY(reader.finish());
  return reply;
}

}  // namespace forge
