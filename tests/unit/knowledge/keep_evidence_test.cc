// SPDX-License-Identifier: Apache-2.0
#include "knowledge/keep_evidence.h"

#include <gtest/gtest.h>

#include <cmath>

namespace forge {
namespace {

Certification measured(EntryState outcome, double floor) {
  Certification c;
  c.date = "2026-01-01T00:00:00Z", c.outcome = outcome, c.floor = floor;
  return c;
}

TEST(KeepEvidence, ABusyMachineOverwritesNothingThatAQuietOneShowed) {
  const auto quiet = measured(EntryState::certified, 0.005), busy = measured(EntryState::certified, 0.167);
  EXPECT_EQ(why_keep(quiet, busy), "the evidence of 2026-01-01T00:00:00Z was kept: its floor was 0.50 %, and is 16.70 % now");
  EXPECT_NE(why_keep(quiet, measured(EntryState::refuted, 0.006)), "");
  EXPECT_EQ(why_keep(busy, quiet), "");
  EXPECT_EQ(why_keep(quiet, quiet), "");
  EXPECT_EQ(why_keep(quiet, measured(EntryState::refuted, 0.004)), "");
  EXPECT_NE(why_keep(quiet, measured(EntryState::refuted, std::nan(""))), "");
}

TEST(KeepEvidence, WhatSettlesItStandsBeforeWhatDoesNot) {
  const auto settled = measured(EntryState::refuted, 0.02), open = measured(EntryState::proposed, 0.01);
  EXPECT_NE(why_keep(settled, open), "");
  EXPECT_EQ(why_keep(open, settled), "");
  EXPECT_NE(why_keep(open, measured(EntryState::proposed, 0.03)), "");
  EXPECT_EQ(why_keep(open, measured(EntryState::proposed, 0.005)), "");
}

TEST(KeepEvidence, AProbeThatDoesNotRunIsNoMeasurement) {
  auto none = measured(EntryState::proposed, 0);
  none.applicable = false;
  EXPECT_NE(why_keep(measured(EntryState::proposed, 0.05), none), "");
  EXPECT_EQ(why_keep(none, measured(EntryState::proposed, 0.05)), "");
  EXPECT_EQ(why_keep(none, none), "");
}

}  // namespace
}  // namespace forge
