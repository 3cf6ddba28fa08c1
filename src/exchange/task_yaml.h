// SPDX-License-Identifier: Apache-2.0
// The part of YAML that GPU MODE's task files are written in: keys at the left margin, plain and quoted words, | blocks, and lists of
// flat maps, {in: braces} or over lines. Anything else is an error with its line. Private to this layer.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "util/result.h"

namespace forge {

using YamlMap = std::map<std::string, std::string>;  // values as written, without quotes; "[...]" and "{...}" are kept as text
struct YamlSection {
  int line = 0;
  std::string word;            // key: word, or a block's text
  std::vector<YamlMap> items;  // a list of maps
  YamlMap map;                 // keys below it
};
Result<std::map<std::string, YamlSection>> parse_task_yaml(const std::string& text, const std::string& file);

}  // namespace forge
