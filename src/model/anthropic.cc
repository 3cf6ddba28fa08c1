// SPDX-License-Identifier: Apache-2.0
// The Messages API as a Model: asks, tries again, and goes on where the model paused.
#include "model/anthropic.h"

namespace forge {
namespace {

constexpr int kMaxPauses = 8;  // of one turn

class AnthropicModel : public Model {
 public:
  explicit AnthropicModel(Wire wire) : m_wire(std::move(wire)) {}
  std::string identity() const override { return m_wire.endpoint.identity(); }

  Result<ModelReply> ask(const ModelRequest& request, double seconds) override {
    const double end = m_wire.waiter->now() + seconds;
    ModelReply whole;
    for (int pauses = 0;; ++pauses) {
      FORGE_TRY_ASSIGN(const std::string body, anthropic_body(m_wire.endpoint, m_wire.settings, request, whole.blocks));
      bool paused = false;
      const auto attempt = [&](double left) { return once(body, left, paused); };
      FORGE_TRY_ASSIGN(ModelReply part, ask_with_retries(attempt, end - m_wire.waiter->now(), m_wire.settings.attempts, *m_wire.waiter));
      for (ModelBlock& block : part.blocks) whole.blocks.push_back(std::move(block));
      whole.use += part.use;
      whole.end = part.end, whole.model = part.model;
      if (paused && pauses < kMaxPauses && !part.blocks.empty()) continue;
      repair_ids(request, whole);
      return whole;
    }
  }

 private:
  tl::expected<ModelReply, Setback> once(const std::string& body, double seconds, bool& paused) {
    HttpRequest http{.url = m_wire.endpoint.base_url + "/v1/messages",
                     .headers = {{"content-type", "application/json"}, {"anthropic-version", "2023-06-01"}},
                     .body = body,
                     .total_seconds = seconds};
    if (!m_wire.endpoint.key.empty()) http.headers.emplace_back("x-api-key", m_wire.endpoint.key);
    AnthropicAnswer answer(m_wire.endpoint);
    if (auto done = exchange(m_wire, http, answer); !done) return tl::unexpected(std::move(done.error()));
    paused = answer.paused();
    clean(m_wire.endpoint, answer.reply);
    settle(m_wire.settings, body.size(), answer.counted, answer.reply);
    return std::move(answer.reply);
  }

  Wire m_wire;
};

}  // namespace

std::unique_ptr<Model> make_anthropic(Wire wire) { return std::make_unique<AnthropicModel>(std::move(wire)); }

}  // namespace forge
