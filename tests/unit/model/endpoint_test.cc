// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "world.h"

namespace forge {
namespace {

Result<Endpoint> read(const std::string& spec, const std::map<std::string, std::string>& environment = {}) {
  return read_endpoint(spec, [&](const char* name) {
    const auto at = environment.find(name);
    return at == environment.end() ? std::string() : at->second;
  });
}
const std::map<std::string, std::string> kBoth = {{"ANTHROPIC_API_KEY", "anthropic-key"}, {"OPENAI_API_KEY", "openai-key\n"}};

TEST(Endpoint, NamesAModelAndItsServer) {
  const Endpoint a = *read("anthropic:claude-opus-4", kBoth);
  EXPECT_EQ(a.base_url, "https://api.anthropic.com");
  EXPECT_EQ(a.model, "claude-opus-4");
  EXPECT_EQ(a.key, "anthropic-key");
  EXPECT_EQ(a.identity(), "anthropic claude-opus-4");
  const Endpoint o = *read("openai:org/qwen3:8b@2026@http://127.0.0.1:8000/", kBoth);
  EXPECT_EQ(o.model, "org/qwen3:8b@2026");
  EXPECT_EQ(o.base_url, "http://127.0.0.1:8000/v1");
  EXPECT_EQ(o.key, "openai-key");  // the line break of a file that was read in
  EXPECT_EQ(o.identity(), "openai org/qwen3:8b@2026 at http://127.0.0.1:8000/v1");
}

TEST(Endpoint, WhatFollowsTheAtMustBeAURLItCanUse) {
  for (const char* spec : {"openai:m@", "openai:m@ftp://h", "anthropic:m@HTTPS://h"}) {
    const auto e = read(spec, kBoth);
    ASSERT_FALSE(e) << spec;
    EXPECT_NE(e.error().message.find("is no URL"), std::string::npos) << e.error().message;
  }
}

TEST(Endpoint, UnderstandsABaseWithAndWithoutItsVersion) {
  EXPECT_EQ(read("openai:m@https://h/v1", kBoth)->base_url, "https://h/v1");
  EXPECT_EQ(read("openai:m@https://h/api/v2/", kBoth)->base_url, "https://h/api/v2");
  EXPECT_EQ(read("anthropic:m@https://h/v1/", kBoth)->base_url, "https://h");
  EXPECT_EQ(read("anthropic:m@https://h/anthropic", kBoth)->base_url, "https://h/anthropic");
}

TEST(Endpoint, AKeyIsNeededWhereItIsTheVendorsServer) {
  for (const char* spec : {"anthropic:m", "openai:m", "anthropic:m@https://other.example"}) {
    const auto e = read(spec);
    ASSERT_FALSE(e) << spec;
    EXPECT_EQ(e.error().code, Code::unsupported);
    EXPECT_NE(e.error().fix.find("_API_KEY"), std::string::npos);
  }
  for (const char* spec : {"anthropic:m@http://localhost:1", "anthropic:m@http://[::1]:80", "openai:m@http://127.0.0.1:8000",
                           "openai:m@https://gateway.example/v1", "openai:m@http://10.0.0.7:8000"})
    EXPECT_TRUE(read(spec)) << spec;
}

TEST(Endpoint, TheKeyNeverTravelsInTheClearToAnotherMachine) {
  EXPECT_EQ(read("openai:m@http://10.0.0.7:8000", kBoth)->key, "");
  EXPECT_EQ(read("openai:m@http://127.evil.example", kBoth)->key, "");
  EXPECT_EQ(read("openai:m@http://localhost.evil.example", kBoth)->key, "");
  EXPECT_EQ(read("openai:m@https://10.0.0.7:8000", kBoth)->key, "openai-key");
  EXPECT_FALSE(read("anthropic:m@http://10.0.0.7", kBoth).value().key.size());
}

TEST(Endpoint, RefusesWhatItCannotMean) {
  for (const char* spec : {"", "claude", "mistral:m", "anthropic:", "anthropic:a b", "openai:@http://h", "openai:m@http://",
                           "openai:m@https:///v1", "openai:m@https://h/v1?key=1", "openai:m@https://h/a b"}) {
    const auto e = read(spec, kBoth);
    ASSERT_FALSE(e) << spec;
    EXPECT_EQ(e.error().code, Code::bad_input) << spec;
    EXPECT_FALSE(e.error().fix.empty()) << spec;
  }
  const auto secret = read("openai:m@https://user:hunter2@h/v1", kBoth);
  ASSERT_FALSE(secret);
  EXPECT_EQ(secret.error().text().find("hunter2"), std::string::npos);
  EXPECT_EQ(read("openai:m", {{"OPENAI_API_KEY", "a\r\nhost: evil"}}).error().code, Code::unsupported);
}

TEST(Endpoint, NamesOfModels) {
  EXPECT_TRUE(is_model_name("anthropic:x"));
  EXPECT_TRUE(is_model_name("openai:x@http://h"));
  for (const char* other : {"builtin", "folder", "command:claude", "anthropic", "x:anthropic:"})
    EXPECT_FALSE(is_model_name(other)) << other;
}

TEST(Endpoint, MakeModelTakesTheKeyFromTheEnvironment) {
  auto server = std::move(*ModelServer::start(R"({"text":"ok","times":0})"));
  setenv("OPENAI_API_KEY", "key-of-the-environment", 1);
  unsetenv("ANTHROPIC_API_KEY");
  for (const char* protocol : {"openai", "anthropic"}) {
    auto model = make_model(std::string(protocol) + ":m@" + server->url(), {});
    ASSERT_TRUE(model) << model.error().text();
    EXPECT_EQ((*model)->identity().find("key-of"), std::string::npos);
    ModelRequest request;
    request.messages.push_back({.blocks = {{.text = "Begin."}}});
    const auto reply = (*model)->ask(request, 30);
    ASSERT_TRUE(reply) << reply.error().text();
  }
  unsetenv("OPENAI_API_KEY");
  EXPECT_EQ(server->seen()[0].key, "key-of-the-environment");
  EXPECT_EQ(server->seen()[1].key, "");
  EXPECT_FALSE(make_model("builtin", {}));
}

}  // namespace
}  // namespace forge
