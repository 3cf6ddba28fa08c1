// SPDX-License-Identifier: Apache-2.0
#include "report/web.h"

#include <gtest/gtest.h>

namespace forge {
namespace {

TEST(Web, OnLoopbackOnlyLoopbacksNamesAreOurs) {
  for (const char* host : {"localhost", "LocalHost:7420", "127.0.0.1", "127.0.0.1:1", "127.9.9.9", "[::1]", "[::1]:7420"})
    EXPECT_TRUE(host_is_ours(host, "127.0.0.1", "box")) << host;
  for (const char* host : {"", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example:7420", "box", "192.0.2.7", "0.0.0.0",
                           "::1", "[::1", "[evil]", "localhost:80x", "localhost@evil.example", "127.1", "2130706433", " localhost"})
    EXPECT_FALSE(host_is_ours(host, "127.0.0.1", "box")) << host;
}

TEST(Web, ElsewhereAddressesInFiguresAndTheOwnName) {
  for (const char* host : {"192.0.2.7:7420", "[2001:db8::1]:7420", "box:7420", "BOX", "localhost"})
    EXPECT_TRUE(host_is_ours(host, "0.0.0.0", "box")) << host;
  for (const char* host : {"", "evil.example", "box.evil.example", "192.0.2.7.evil.example"})
    EXPECT_FALSE(host_is_ours(host, "0.0.0.0", "box")) << host;
  EXPECT_FALSE(host_is_ours("", "0.0.0.0", "")) << "a machine without a name is not every name";
}

TEST(Web, LoopbackIsWhatTheStandardsSay) {
  EXPECT_TRUE(is_loopback("127.0.0.1") && is_loopback("127.255.0.3") && is_loopback("::1"));
  EXPECT_FALSE(is_loopback("0.0.0.0") || is_loopback("128.0.0.1") || is_loopback("::") || is_loopback("localhost") || is_loopback(""));
}

TEST(Web, APortInUseAndABadAddressAreSaid) {
  const auto nothing = [](const WebRequest&) { return WebReply{}; };
  const auto first = WebServer::listen("127.0.0.1", 0, nothing);
  ASSERT_TRUE(first) << first.error().text();
  EXPECT_GT(first->port(), 0);
  EXPECT_EQ(first->url(), "http://127.0.0.1:" + std::to_string(first->port()) + "/");
  const auto second = WebServer::listen("127.0.0.1", first->port(), nothing);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().fix.find("--port 0"), std::string::npos);
  EXPECT_EQ(WebServer::listen("example.org", 0, nothing).error().code, Code::bad_input);
  EXPECT_EQ(WebServer::listen("192.0.2.7", 0, nothing).error().code, Code::bad_input) << "an address of documentation is nobody's";
}

}  // namespace
}  // namespace forge
