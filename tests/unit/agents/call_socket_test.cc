// SPDX-License-Identifier: Apache-2.0
#include "agents/call_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <future>

namespace forge {
namespace {

const std::atomic<bool> kGoOn{false};
struct Socket : testing::Test {
  TempDir folder = std::move(*TempDir::make("forge-test"));
  fs::path path = folder.path() / "s";
  CallListener listener = std::move(*CallListener::open(path));

  std::future<Result<ToolResult>> call(const std::string& tool, const std::atomic<bool>& cancelled = kGoOn) {
    return std::async(std::launch::async, [this, tool, &cancelled] { return call_over_socket(path, {"", tool, R"({"a":1})"}, cancelled); });
  }
  Fd raw(const std::string& text) {
    Fd fd(::socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un a{};
    a.sun_family = AF_UNIX;
    std::strcpy(a.sun_path, path.c_str());
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&a), sizeof a), 0);
    EXPECT_EQ(send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
    return fd;
  }
};

TEST_F(Socket, ACallAndItsResult) {
  auto answer = call("submit");
  const auto c = listener.wait(5, {});
  ASSERT_TRUE(c);
  EXPECT_EQ(c->call.tool, "submit");
  EXPECT_EQ(c->call.arguments, R"({"a":1})");
  EXPECT_TRUE(listener.answer(c->ticket, {R"({"verdict":"no"})", true}));
  const auto r = answer.get();
  ASSERT_TRUE(r);
  EXPECT_EQ(r->text, R"({"verdict":"no"})");
  EXPECT_TRUE(r->error);
  struct stat st {};
  ASSERT_EQ(stat(path.c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0600u);
}

TEST_F(Socket, SeveralCallsAtOnceComeOneByOne) {
  std::vector<std::future<Result<ToolResult>>> answers;
  for (int i = 0; i < 5; ++i) answers.push_back(call("t" + std::to_string(i)));
  for (int i = 0; i < 5; ++i) {
    const auto c = listener.wait(5, {});
    ASSERT_TRUE(c);
    listener.answer(c->ticket, {c->call.tool, false});
  }
  for (int i = 0; i < 5; ++i) EXPECT_EQ(answers[static_cast<std::size_t>(i)].get()->text, "t" + std::to_string(i));
}

TEST_F(Socket, AClientThatGoesIsNotWaitedFor) {
  {
    std::atomic<bool> cancelled{false};
    auto gone = call("first", cancelled);
    const auto c = listener.wait(5, {});
    ASSERT_TRUE(c);
    cancelled = true;
    EXPECT_EQ(gone.get().error().code, Code::interrupted);
    EXPECT_FALSE(listener.wait(0.1, {}));
    EXPECT_FALSE(listener.answer(c->ticket, {"{}", false}));
  }
  raw("{\"tool\":\"never\"}\n");  // and gone before its turn
  auto next = call("second");
  const auto c = listener.wait(5, {});
  ASSERT_TRUE(c);
  EXPECT_EQ(c->call.tool, "second");
  listener.answer(c->ticket, {"{}", false});
  EXPECT_TRUE(next.get());
}

TEST_F(Socket, GarbageIsAnsweredAndNeverSeen) {
  for (const std::string& text : {std::string("GET / HTTP/1.1\n"), std::string("[]\n"), std::string("{\"tool\":7}\n"),
                                  std::string("\0\xff\n", 3), std::string("{\"tool\":\"x\",\"arguments\":[]}\n"),
                                  "{\"tool\":\"x\",\"arguments\":{\"a\":" + std::string(50000, '[') + std::string(50000, ']') + "}}\n"}) {
    const Fd fd = raw(text);
    EXPECT_FALSE(listener.wait(0.05, {}));
    char b[512];
    const ssize_t n = recv(fd.get(), b, sizeof b, 0);
    ASSERT_GT(n, 0);
    EXPECT_NE(std::string(b, static_cast<std::size_t>(n)).find("not a call"), std::string::npos);
  }
  std::vector<Fd> silent;  // they say nothing, and stand in nobody's way
  for (int i = 0; i < 100; ++i) {
    silent.push_back(raw(i % 2 ? "{\"tool\":" : ""));
    EXPECT_FALSE(listener.wait(0.001, {}));
  }
  auto answer = call("submit");
  const auto c = listener.wait(5, {});
  ASSERT_TRUE(c);
  listener.answer(c->ticket, {"{}", false});
  EXPECT_TRUE(answer.get());
}

TEST_F(Socket, WaitEndsWhenSomethingElseCanBeRead) {
  int p[2];
  ASSERT_EQ(pipe(p), 0);
  const Fd in(p[0]);
  Fd out(p[1]);
  const int also[] = {in.get()};
  out = Fd();
  EXPECT_FALSE(listener.wait(60, also));
}

TEST(CallSocket, WithoutARunItIsSaid) {
  const auto folder = TempDir::make("forge-test");
  const fs::path path = folder->path() / "s";
  EXPECT_EQ(call_over_socket(path, {"", "submit", "{}"}, kGoOn).error().code, Code::not_found);
  std::future<Result<ToolResult>> answer;
  {
    auto listener = CallListener::open(path);
    answer = std::async(std::launch::async, [&] { return call_over_socket(path, {"", "submit", "{}"}, kGoOn); });
    ASSERT_TRUE(listener->wait(5, {}));
  }
  EXPECT_EQ(answer.get().error().code, Code::crashed);
  EXPECT_FALSE(fs::exists(path));
  EXPECT_EQ(CallListener::open(folder->path() / std::string(200, 'x')).error().code, Code::bad_input);
}

}  // namespace
}  // namespace forge
