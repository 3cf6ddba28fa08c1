// SPDX-License-Identifier: Apache-2.0
// Shell scripts in the place of a command line agent; the test itself makes the calls that their MCP server would.
#include "agents/command_driver.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "agents/call_socket.h"
#include "core/json_io.h"
#include "util/progress.h"

namespace forge {
namespace {

const std::atomic<bool> kNotStopped{false};

struct CommandDriverTest : testing::TestWithParam<Cage> {
  TempDir home = std::move(*TempDir::make("forge-test"));
  fs::path workspace = home.path() / "runs/r/workspace";
  CommandSettings settings;
  Assignment assignment;
  std::unique_ptr<Driver> driver;

  void SetUp() override {
    if (GetParam() == Cage::bubblewrap && best_cage() != Cage::bubblewrap) GTEST_SKIP() << "no bubblewrap here";
    settings.agent.title = "Fake";
    settings.agent.name = "fake";
    settings.agent.usage = UsageFormat::codex;
    settings.agent.grace_seconds = 5;
    settings.cage = GetParam();
    settings.agent.sandboxed = GetParam() != Cage::none;
    settings.forge = "/bin/true";
    settings.hidden = {home.path()};
    assignment.milestone = "M0";
    assignment.brief = "Brief: be fast.";
    assignment.workspace = workspace.string();
    assignment.tokens_left = 1000;
    assignment.starter = {{"kernel.cc", "int x;"}};
    ASSERT_TRUE(write_file_atomic(home.path() / "vault", "sealed"));
  }
  Turn first(const std::string& script) {
    settings.agent.command = {"sh", "-c", script};
    driver = make_command_driver(settings);
    const auto turn = driver->next(assignment, {});
    EXPECT_TRUE(turn) << turn.error().text();
    return turn ? *turn : Turn{};
  }
  std::string file(const std::string& name) { return read_file(workspace / name).value_or("(none)"); }
  // Calls as soon as the agent's script has said where.
  std::future<Result<ToolResult>> call(const std::string& tool) {
    return std::async(std::launch::async, [this, tool]() -> Result<ToolResult> {
      for (int i = 0; i < 500; ++i, usleep(10000))
        if (const std::string socket = file("socket"); !socket.empty() && socket.back() == '\n')
          return call_over_socket(socket.substr(0, socket.size() - 1), {"", tool, "{}"}, kNotStopped);
      return fail(Code::timeout, "no socket");
    });
  }
};

const std::string kUsed = R"(echo '{"type":"turn.completed","usage":{"input_tokens":70,"cached_input_tokens":20,"output_tokens":5}}')";

TEST_P(CommandDriverTest, AnExitEndsTheTurnWhateverItsCode) {
  const Turn t = first("cat > got; pwd > where; cat M0/kernel.cc >> got; " + kUsed + "; echo oops >&2; exit 3");
  EXPECT_TRUE(t.ended);
  EXPECT_NE(t.why.find("Fake: exit 3"), std::string::npos) << t.why;
  EXPECT_EQ(t.use.input, 50);
  EXPECT_EQ(t.use.cache_read, 20);
  EXPECT_EQ(t.use.output, 5);
  EXPECT_FALSE(t.use.estimated);
  EXPECT_NE(file("got").find("Brief: be fast."), std::string::npos);
  EXPECT_NE(file("got").find("int x;"), std::string::npos);
  EXPECT_EQ(file("where"), fs::canonical(workspace).string() + "\n");
  const Json said = Json::parse(t.said);
  EXPECT_EQ(said["start"]["agent"], "fake");
  EXPECT_NE(said["output"].get<std::string>().find("oops"), std::string::npos);
}

TEST_P(CommandDriverTest, CallsAreTurnsAndResultsGoBack) {
  auto answer = call("submit");
  const Turn t = first("echo {{socket}} > socket; while [ ! -e done ]; do sleep 0.02; done; " + kUsed);
  ASSERT_EQ(t.calls.size(), 1u);
  EXPECT_FALSE(t.ended);
  EXPECT_EQ(t.calls[0].tool, "submit");
  EXPECT_EQ(t.calls[0].id, "call-1");
  EXPECT_EQ(Json::parse(t.said)["agent"], "fake");
  std::vector<Exchange> so_far{{t, {{R"({"verdict":"rejected"})", false}}}};
  auto second = std::async(std::launch::async, [&] { return answer.get().value().text; });
  auto again = call("give_up");
  const auto next = driver->next(assignment, so_far);
  ASSERT_TRUE(next);
  EXPECT_EQ(second.get(), R"({"verdict":"rejected"})");
  EXPECT_EQ(next->calls.at(0).id, "call-2");
  so_far.push_back({*next, {{R"({"verdict":"over"})", false}}});
  ASSERT_TRUE(write_file_atomic(workspace / "done", ""));
  EXPECT_EQ(driver->settle(so_far)->input, 50);
  EXPECT_EQ(again.get()->text, R"({"verdict":"over"})");
}

TEST_P(CommandDriverTest, WhoDoesNotSettleIsEnded) {
  settings.agent.grace_seconds = 0.3;
  auto answer = call("submit");
  const Turn t = first("echo {{socket}} > socket; echo $$ > pid; sleep 600");
  auto late = std::async(std::launch::async, [&] {
    answer.get().value();
    return call("submit").get();
  });
  const double before = monotonic_seconds();
  const auto use = driver->settle({{t, {{"{}", false}}}});
  ASSERT_TRUE(use);
  EXPECT_TRUE(use->estimated);
  EXPECT_LT(monotonic_seconds() - before, 8);
  const auto l = late.get();
  ASSERT_TRUE(l);
  EXPECT_TRUE(l->error);
}

TEST_P(CommandDriverTest, LimitsEndIt) {
  settings.agent.seconds = 0.4;
  EXPECT_NE(first("sleep 600").why.find("its time is over"), std::string::npos);
  settings.agent.seconds = 600;
  settings.seconds_left = [] { return 0.3; };
  EXPECT_NE(first("sleep 600").why.find("its time is over"), std::string::npos);
  settings.seconds_left = {};
  settings.agent.quiet_seconds = 0.4;
  EXPECT_NE(first("sleep 600").why.find("no call and no output"), std::string::npos);
  settings.agent.quiet_seconds = 600;
  assignment.tokens_left = 60;
  const Turn t = first(kUsed + "; sleep 600");
  EXPECT_NE(t.why.find("tokens are spent"), std::string::npos);
  EXPECT_EQ(t.use.total(), 75);
}

TEST_P(CommandDriverTest, ARefusedKeyEndsItAtOnce) {
  settings.agent.usage = UsageFormat::claude_code;
  const double before = monotonic_seconds();
  EXPECT_NE(first(R"(echo '{"type":"system","subtype":"api_retry","error_status":401}'; sleep 600)").why.find("401"), std::string::npos);
  EXPECT_LT(monotonic_seconds() - before, 8);
}

TEST_P(CommandDriverTest, KeysArePassedAndNeverWritten) {
  setenv("FORGE_TEST_KEY", "sk-very-secret-value", 1);
  setenv("FORGE_TEST_OTHER", "other-value-entirely", 1);
  settings.agent.keys = {"FORGE_TEST_KEY"};
  settings.agent.set = {"NAMED={{workspace}}"};
  const Turn t = first("env > env; echo key $FORGE_TEST_KEY; echo $FORGE_TEST_KEY >&2");
  EXPECT_NE(file("env").find("FORGE_TEST_KEY=sk-very-secret-value"), std::string::npos);
  EXPECT_EQ(file("env").find("FORGE_TEST_OTHER"), std::string::npos);
  EXPECT_NE(file("env").find("NAMED=" + fs::canonical(workspace).string()), std::string::npos);
  EXPECT_NE(file("env").find("HOME=" + fs::canonical(workspace).string()), std::string::npos);
  const std::string log = read_file(home.path() / "runs/r/workspace-M0.log").value();
  EXPECT_NE(log.find("key [secret]"), std::string::npos) << log;
  for (const std::string& text : {t.said, t.why, log}) EXPECT_EQ(text.find("very-secret"), std::string::npos) << text;
}

TEST_P(CommandDriverTest, AResumedAgentIsToldWhatItHadDone) {
  settings.agent.command = {"sh", "-c", "cat > got"};
  driver = make_command_driver(settings);
  Turn before;
  before.calls = {{"call-1", "submit", "{}"}};
  const auto t = driver->next(assignment, {{before, {{R"({"verdict":"rejected","detail":"wrong at 3"})", false}}}});
  ASSERT_TRUE(t);
  EXPECT_NE(file("got").find("You were interrupted"), std::string::npos);
  EXPECT_NE(file("got").find("wrong at 3"), std::string::npos);
  EXPECT_FALSE(fs::exists(workspace / "M0/kernel.cc")) << "its own work is not overwritten";
}

TEST_P(CommandDriverTest, NeitherVaultNorOtherRunsAreInView) {
  if (GetParam() == Cage::none) GTEST_SKIP();
  const std::string vault = (home.path() / "vault").string();
  first("cat " + vault + " > seen 2>&1; ls " + home.path().string() + "/.. > around 2>&1; echo x > " + home.path().string() +
        "/runs/r/planted; cat /proc/1/environ > /dev/null 2> e; ln -s " + vault + " M0/link; cat M0/link >> seen 2>&1; true");
  EXPECT_EQ(file("seen").find("sealed"), std::string::npos);
  EXPECT_NE(file("seen").find("cat"), std::string::npos) << "an error is what it sees";
  EXPECT_FALSE(fs::exists(home.path() / "runs/r/planted"));
}

TEST_P(CommandDriverTest, WhatItLeavesBehindDiesWithIt) {
  const bool own_processes = GetParam() == Cage::bubblewrap;  // with a number space of their own: even those that leave the group
  const Turn t =
      first(std::string("(") + (own_processes ? "setsid " : "") + "sh -c 'while sleep 0.05; do echo x >> alive; done' &); sleep 0.3");
  EXPECT_TRUE(t.ended);
  const std::string then = file("alive");
  EXPECT_NE(then, "(none)");
  usleep(300000);
  EXPECT_EQ(file("alive"), then);
}

TEST_P(CommandDriverTest, AProgramThatIsNotThereIsAnErrorThatNamesIt) {
  settings.agent.command = {"no-such-agent-here"};
  driver = make_command_driver(settings);
  const auto t = driver->next(assignment, {});
  ASSERT_FALSE(t);
  EXPECT_NE(t.error().message.find("no-such-agent-here"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Cages, CommandDriverTest, testing::Values(Cage::bubblewrap, Cage::landlock, Cage::none), [](const auto& cage) {
  return cage.param == Cage::bubblewrap ? "bubblewrap" : cage.param == Cage::landlock ? "landlock" : "none";
});

}  // namespace
}  // namespace forge
