// SPDX-License-Identifier: Apache-2.0
// A language model behind an API, as the agents see it: messages in, one message out. The edge of the world: HTTP clients of the
// two protocols (Anthropic Messages, OpenAI-compatible chat completions) and a scripted fake. Keys come from the environment only and
// never appear in a request, a reply or an error.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "util/fs.h"
#include "util/result.h"

namespace forge {

// Tokens of one reply, or of many. `input` leaves out what was read from or written to a prompt cache.
struct TokenUse {
  std::int64_t input = 0, cache_read = 0, cache_write = 0, output = 0;
  double dollars = 0;      // by the price list that the user gave; 0 when none is given for the model
  bool estimated = false;  // the server gave no count somewhere: four bytes a token, so that a budget holds all the same
  std::int64_t total() const { return input + cache_read + cache_write + output; }
  TokenUse& operator+=(const TokenUse& more) {
    input += more.input, cache_read += more.cache_read, cache_write += more.cache_write, output += more.output, dollars += more.dollars;
    estimated |= more.estimated;
    return *this;
  }
};

struct ModelTool {
  std::string name, description;
  std::string schema;  // JSON schema of the arguments, an object
};

// One part of a message.
struct ModelBlock {
  enum class Kind {
    text,         // text
    tool_call,    // id, tool, text = the arguments' JSON text, as the model wrote it (may be malformed)
    tool_result,  // id, text, error
    opaque,       // text = JSON that the protocol wants back unchanged (a signed thought)
  };
  Kind kind = Kind::text;
  std::string text, id, tool;
  bool error = false;
};

struct ModelMessage {
  bool from_model = false;
  std::vector<ModelBlock> blocks;
};

struct ModelRequest {
  std::string system;
  std::vector<ModelMessage> messages;
  std::vector<ModelTool> tools;
  std::int64_t max_output = 16384;  // tokens
};

struct ModelReply {
  enum class End { turn, tool_calls, length, refusal };
  std::vector<ModelBlock> blocks;
  End end = End::turn;
  TokenUse use;
  std::string model;  // as the server names it
};

class Model {
 public:
  virtual ~Model() = default;
  virtual std::string identity() const = 0;  // "anthropic claude-opus-4"; goes on record
  // Retries what the protocol says may be retried, within `seconds` in all. Errors: unsupported (no key, no libcurl), bad_input (the
  // server refuses the request), timeout, interrupted, and out_of_range for a prompt longer than the model's context.
  virtual Result<ModelReply> ask(const ModelRequest&, double seconds) = 0;
};

// What a user writes: "anthropic:MODEL" or "openai:MODEL", each with "@BASE_URL" behind it where the server is another. Prices and
// limits come from $FORGE_HOME/models.toml (docs/formats/models.md); keys from ANTHROPIC_API_KEY and OPENAI_API_KEY.
// What is read from or written to a prompt cache costs as much as other input where no price of its own is given.
struct ModelSettings {
  double dollars_per_million_input = 0, dollars_per_million_output = 0, dollars_per_million_cache_read = 0,
         dollars_per_million_cache_write = 0;
  std::int64_t max_output = 16384;  // tokens; the most that the model can write: a request is cut to it
  int attempts = 6;                 // of one request
};
Result<ModelSettings> read_model_settings(const fs::path& home, const std::string& spec);  // the defaults when nothing is said of it
bool is_model_name(const std::string& spec);
Result<std::unique_ptr<Model>> make_model(const std::string& spec, const ModelSettings&);

}  // namespace forge
