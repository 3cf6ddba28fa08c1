// SPDX-License-Identifier: Apache-2.0
// A client of either protocol with a scripted server on loopback, and a clock that tests turn.
#pragma once
#include <gtest/gtest.h>

#include "core/json_io.h"
#include "model/wire.h"
#include "support/model_server.h"

namespace forge {

class FakeWaiter : public Waiter {
 public:
  double now() override { return clock; }
  bool wait(double seconds) override {
    waits.push_back(seconds);
    clock += seconds;
    return !interrupted;
  }
  double uniform() override { return 0.5; }
  double clock = 1000;
  bool interrupted = false;
  std::vector<double> waits;
};

class ModelTest : public testing::Test {
 protected:
  static constexpr const char* kKey = "sk-test-0123456789abcdef";

  void serve(const std::string& script) {
    auto started = ModelServer::start(script);
    ASSERT_TRUE(started) << started.error().text();
    server = std::move(*started);
  }
  std::unique_ptr<Model> client(const std::string& protocol) {
    Endpoint e{.protocol = protocol, .model = "m-1", .base_url = server->url(), .vendors = false, .key = kKey};
    if (protocol == "openai") e.base_url += "/v1";
    Wire wire{.endpoint = e, .settings = settings, .http = make_http(), .waiter = &waiter};
    return protocol == "openai" ? make_openai(wire) : make_anthropic(wire);
  }
  Result<ModelReply> ask(const std::string& protocol, double seconds = 60) { return client(protocol)->ask(request, seconds); }
  Json sent(std::size_t n) const { return *parse_json(server->seen().at(n).body, "request"); }

  static ModelMessage user(const std::string& text) { return {.blocks = {{.kind = ModelBlock::Kind::text, .text = text}}}; }
  static ModelBlock call(const std::string& id, const std::string& tool, const std::string& arguments) {
    return {.kind = ModelBlock::Kind::tool_call, .text = arguments, .id = id, .tool = tool};
  }
  static ModelBlock result(const std::string& id, const std::string& text, bool error = false) {
    return {.kind = ModelBlock::Kind::tool_result, .text = text, .id = id, .error = error};
  }

  std::unique_ptr<ModelServer> server;
  FakeWaiter waiter;
  ModelSettings settings;
  ModelRequest request{.system = "You write kernels.",
                       .messages = {user("Begin.")},
                       .tools = {{"submit", "Hands in.", R"({"type":"object","properties":{"source":{"type":"string"}}})"}}};
};

}  // namespace forge
