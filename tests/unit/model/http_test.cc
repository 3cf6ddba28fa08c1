// SPDX-License-Identifier: Apache-2.0
// The real client against real sockets on loopback.
#include "model/http.h"

#include <thread>

#include "util/progress.h"
#include "world.h"

namespace forge {
namespace {

class HttpTest : public ModelTest {
 protected:
  Result<HttpReply> post(HttpRequest r) {
    if (r.url.empty()) r.url = server->url() + "/v1/messages";
    if (r.body.empty()) r.body = R"({"model":"m","stream":true})";
    return make_http()->post(r, [&](std::string_view bytes) { return got.append(bytes), got.size() < enough; });
  }
  std::string got;
  std::size_t enough = 1 << 30;
};

TEST_F(HttpTest, StreamsTheBodyAndSendsHeadersAndBody) {
  serve(R"({"text":"hello"})");
  const auto reply = post({.headers = {{"x-api-key", "abc"}}});
  ASSERT_TRUE(reply) << reply.error().text();
  EXPECT_EQ(reply->status, 200);
  EXPECT_EQ(reply->header("content-type"), "text/event-stream");
  EXPECT_EQ(reply->header("none"), "");
  EXPECT_NE(got.find("message_stop"), std::string::npos);
  EXPECT_EQ(server->seen()[0].key, "abc");
  EXPECT_EQ(server->seen()[0].body, R"({"model":"m","stream":true})");
}

TEST_F(HttpTest, SendsABodyOfSeveralMegabytesWhole) {
  serve(R"({"text":"hello"})");
  const std::string body = R"({"model":")" + std::string(5 << 20, 'x') + "\"}";
  ASSERT_TRUE(post({.body = body}));
  EXPECT_EQ(server->seen()[0].body, body);
}

TEST_F(HttpTest, ARefusalIsAReplyWithItsBody) {
  serve(R"({"status":429,"retry_after":7,"message":"slower"})");
  const auto reply = post({});
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->status, 429);
  EXPECT_EQ(reply->header("retry-after"), "7");
  EXPECT_NE(reply->body.find("slower"), std::string::npos);
  EXPECT_EQ(got, "");
}

TEST_F(HttpTest, EndsWellWhenTheTakerHasEnough) {
  serve(R"({"text":"hello","times":0})");
  enough = 1;
  const auto reply = post({});
  ASSERT_TRUE(reply) << reply.error().text();
  EXPECT_EQ(reply->status, 200);
}

TEST_F(HttpTest, ABrokenConnectionIsAnError) {
  serve(R"({"text":"hello","cut":2})");
  EXPECT_EQ(post({}).error().code, Code::io);
  EXPECT_NE(got.find("message_start"), std::string::npos);
}

TEST_F(HttpTest, NobodyListeningIsAnError) {
  serve("");
  const std::string url = server->url();
  server.reset();
  EXPECT_EQ(post({.url = url + "/v1/messages"}).error().code, Code::io);
}

TEST_F(HttpTest, SilenceAndLengthAreLimited) {
  serve(R"({"stall":30,"times":0})");
  const double start = monotonic_seconds();
  const auto idle = post({.idle_seconds = 0.3});
  EXPECT_EQ(idle.error().code, Code::timeout);
  EXPECT_NE(idle.error().message.find("no byte for"), std::string::npos);
  EXPECT_EQ(post({.total_seconds = 0.3}).error().code, Code::timeout);
  EXPECT_LT(monotonic_seconds() - start, 10);
}

TEST_F(HttpTest, AStopEndsTheExchange) {
  serve(R"({"stall":30})");
  std::thread stopper([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    request_stop();
  });
  const double start = monotonic_seconds();
  const auto reply = post({});
  stopper.join();
  reset_stop();
  EXPECT_EQ(reply.error().code, Code::interrupted);
  EXPECT_LT(monotonic_seconds() - start, 5);
}

TEST_F(HttpTest, OtherProtocolsAreRefused) {
  EXPECT_EQ(post({.url = "ftp://127.0.0.1/x"}).error().code, Code::unsupported);
  EXPECT_EQ(post({.url = "file:///etc/passwd"}).error().code, Code::unsupported);
  EXPECT_EQ(post({.url = "http://"}).error().code, Code::bad_input);
}

}  // namespace
}  // namespace forge
