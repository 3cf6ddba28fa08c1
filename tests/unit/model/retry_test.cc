// SPDX-License-Identifier: Apache-2.0
#include "model/retry.h"

#include "model/scripted.h"
#include "world.h"

namespace forge {
namespace {

tl::unexpected<Setback> setback(bool again, double retry_after = 0, TokenUse spent = {}) {
  return tl::unexpected(
      Setback{.error = {.code = Code::bad_input, .message = "went wrong"}, .again = again, .retry_after = retry_after, .spent = spent});
}

TEST(Retry, OnlyWhatTheProtocolsSayIsTriedAgain) {
  for (int status : {429, 500, 502, 503, 504, 529}) EXPECT_TRUE(worth_retrying(status)) << status;
  for (int status : {200, 301, 400, 401, 402, 403, 404, 405, 409, 413, 422, 501}) EXPECT_FALSE(worth_retrying(status)) << status;
}

TEST(Retry, WaitsGrowAndNeverFallBelowWhatTheServerAsks) {
  double before = 0;
  for (int attempt = 2; attempt <= 7; ++attempt) {
    const double low = backoff_seconds(attempt, 0, 0), high = backoff_seconds(attempt, 0, 0.999);
    EXPECT_LT(low, high);  // jitter
    EXPECT_GT(low, before * 0.99);
    before = low;
  }
  EXPECT_LE(backoff_seconds(1000, 0, 1), 30);
  for (double u : {0.0, 0.5, 0.999}) EXPECT_GE(backoff_seconds(2, 17, u), 17);
}

TEST(Retry, ReadsBothFormsOfRetryAfter) {
  EXPECT_EQ(parse_retry_after("12", 0), 12);
  EXPECT_EQ(parse_retry_after("0.5", 0), 0.5);
  EXPECT_EQ(parse_retry_after("Wed, 21 Oct 2015 07:28:00 GMT", 1445412480 - 30), 30);
  EXPECT_EQ(parse_retry_after("Wed, 21 Oct 2015 07:28:00 GMT", 1445412480 + 30), 0);  // past
  for (const char* odd : {"", "soon", "-3", "nan", "inf"}) EXPECT_EQ(parse_retry_after(odd, 0), 0) << odd;
  EXPECT_EQ(parse_http_date("Wed, 21 Oct 2015 07:28:00 GMT"), 1445412480);
  for (const char* odd : {"", "12", "Wed, 21 Oct 2015"}) EXPECT_FALSE(parse_http_date(odd)) << odd;
}

TEST(Retry, CountsWhatFailedAttemptsSpent) {
  FakeWaiter waiter;
  int n = 0;
  const auto reply = ask_with_retries(
      [&](double) -> tl::expected<ModelReply, Setback> {
        if (++n < 3) return setback(true, 0, {.input = 1000, .dollars = 0.5});
        return says("at last");
      },
      60, 6, waiter);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->use.input, 2100);
  EXPECT_EQ(reply->use.dollars, 1.0);
  EXPECT_EQ(waiter.waits.size(), 2u);
}

TEST(Retry, GivesUpAtOnceOnWhatWillNotChange) {
  FakeWaiter waiter;
  int n = 0;
  const auto reply = ask_with_retries([&](double) { return n++, setback(false); }, 60, 6, waiter);
  EXPECT_EQ(reply.error().code, Code::bad_input);
  EXPECT_EQ(n, 1);
  EXPECT_TRUE(waiter.waits.empty());
}

TEST(Retry, EndsAfterItsAttemptsAndSaysSo) {
  FakeWaiter waiter;
  int n = 0;
  const auto reply = ask_with_retries([&](double) { return n++, setback(true); }, 1e6, 4, waiter);
  EXPECT_EQ(n, 4);
  EXPECT_EQ(reply.error().code, Code::timeout);
  EXPECT_EQ(reply.error().message, "no answer in 4 attempts: went wrong");
}

TEST(Retry, DoesNotBeginAWaitThatEndsBeyondItsTime) {
  FakeWaiter waiter;
  const auto reply = ask_with_retries([&](double) { return setback(true, 3600); }, 60, 6, waiter);
  EXPECT_EQ(reply.error().code, Code::timeout);
  EXPECT_TRUE(waiter.waits.empty());
}

TEST(Retry, GrantsEachAttemptWhatIsLeft) {
  FakeWaiter waiter;
  std::vector<double> granted;
  (void)ask_with_retries(
      [&](double left) {
        granted.push_back(left);
        waiter.clock += 20;
        return setback(true);
      },
      60, 6, waiter);
  ASSERT_EQ(granted.size(), 3u);
  EXPECT_EQ(granted[0], 60);
  EXPECT_NEAR(granted[1], 40, 0.5);
}

TEST(Retry, AStopEndsTheWait) {
  FakeWaiter waiter;
  waiter.interrupted = true;
  const auto reply = ask_with_retries([&](double) { return setback(true); }, 60, 6, waiter);
  EXPECT_EQ(reply.error().code, Code::interrupted);
}

}  // namespace
}  // namespace forge
