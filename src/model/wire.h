// SPDX-License-Identifier: Apache-2.0
// Private to src/model: what the two protocols share. Where the server is and with which key, how one answer is read from the wire,
// and what a refusal means. The key leaves an Endpoint in one header only; every text that came from outside passes without_key().
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "model/http.h"
#include "model/model.h"
#include "model/retry.h"

namespace forge {

struct Endpoint {
  std::string protocol;  // "anthropic", "openai"
  std::string model;
  std::string base_url;  // without a slash at its end
  bool vendors = true;   // the protocol's own server, not one that the user named
  std::string key;       // "": none is sent
  const char* key_name() const { return protocol == "anthropic" ? "ANTHROPIC_API_KEY" : "OPENAI_API_KEY"; }
  std::string identity() const;
};
// `spec` as in model.h; `environment` looks a variable up ("" when unset).
Result<Endpoint> read_endpoint(const std::string& spec, const std::function<std::string(const char*)>& environment);
std::string without_key(std::string text, const Endpoint&);

// All that a client holds.
struct Wire {
  Endpoint endpoint;
  ModelSettings settings;
  std::shared_ptr<Http> http;
  Waiter* waiter = nullptr;
};

// Puts one answer together, from the events of a stream or from one document.
class AnswerReader {
 public:
  virtual ~AnswerReader() = default;
  virtual void event(const std::string& data) = 0;     // JSON text of one event
  virtual void document(const std::string& text) = 0;  // a server that does not stream
  virtual bool whole() const = 0;                      // nothing that matters can follow the bytes read so far, or need follow
  bool ended = false;                                  // the last event was read: the rest of the stream is of no interest
  std::optional<Setback> problem;                      // an error inside a stream
  ModelReply reply;
  bool counted = false;  // the server said what it used
};

// One POST. Fills the reader, or says why it could not be filled.
tl::expected<void, Setback> exchange(const Wire&, const HttpRequest&, AnswerReader&);

// What a server says about an error, in the shapes that are in use.
struct ServerError {
  std::string type, code, message;
};
ServerError read_server_error(const std::string& body);
Setback setback_of(const Endpoint&, int status, const ServerError&, double retry_after);
Setback broken_answer(const Endpoint&, const std::string& what);  // worth another attempt

void clean(const Endpoint&, ModelReply&);  // of the key, which a server may have echoed
// Ids that are missing or taken are replaced: a result must find its call.
void repair_ids(const ModelRequest&, ModelReply&);
void price(const ModelSettings&, TokenUse&);
// The use in tokens and dollars; estimated from the lengths when the server did not count.
void settle(const ModelSettings&, std::size_t request_bytes, bool counted, ModelReply&);

std::unique_ptr<Model> make_anthropic(Wire);
std::unique_ptr<Model> make_openai(Wire);

}  // namespace forge
