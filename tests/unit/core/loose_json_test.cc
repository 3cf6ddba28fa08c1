// SPDX-License-Identifier: Apache-2.0
#include "core/loose_json.h"

#include <gtest/gtest.h>

namespace forge {
namespace {

const Json kObject =
    Json::parse(R"({"text": "a", "empty": "", "null": null, "number": 7, "below": -7, "list": [1], "huge": 18446744073709551615})");

TEST(LooseJson, WhatIsNotThereAndNullAreToldApartOnlyByAPointer) {
  EXPECT_EQ(find_field(kObject, "none"), nullptr);
  ASSERT_NE(find_field(kObject, "null"), nullptr);
  EXPECT_TRUE(find_field(kObject, "null")->is_null());
  for (const char* key : {"none", "null"}) EXPECT_TRUE(field_of(kObject, key).is_null()) << key;
  for (const Json& odd : {Json(), Json(3), Json("text"), Json::array({"text"}), Json(Json::value_t::discarded)}) {
    EXPECT_EQ(find_field(odd, "text"), nullptr);
    EXPECT_EQ(text_of(odd, "text"), "");
    EXPECT_EQ(count_of(odd, "text"), 0);
  }
}

TEST(LooseJson, TextIsAStringOrTheJsonOfAnythingElse) {
  EXPECT_EQ(text_of(kObject, "text"), "a");
  EXPECT_EQ(text_of(kObject, "number"), "7");
  EXPECT_EQ(text_of(kObject, "list"), "[1]");
  for (const char* key : {"none", "null", "empty"}) EXPECT_EQ(text_of(kObject, key), "") << key;
  EXPECT_EQ(string_of(kObject, "text"), "a");
  for (const char* key : {"number", "list", "null", "none"}) EXPECT_EQ(string_of(kObject, key), "") << key;
}

TEST(LooseJson, ACountIsNeverNegativeAndCanBeAdded) {
  EXPECT_EQ(count_of(kObject, "number"), 7);
  for (const char* key : {"below", "text", "none"}) EXPECT_EQ(count_of(kObject, key), 0) << key;
  EXPECT_EQ(count_of(kObject, "huge"), INT64_MAX / 16);
}

}  // namespace
}  // namespace forge
