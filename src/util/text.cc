// SPDX-License-Identifier: Apache-2.0
#include "util/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

namespace forge {

Result<std::string> expand(std::string_view text, const std::map<std::string, std::string>& values, const std::string& file) {
  std::string out;
  std::size_t at = 0;
  for (;;) {
    const std::size_t open = text.find("{{", at);
    if (open == std::string_view::npos) break;
    const std::size_t close = text.find("}}", open + 2);
    const int line = 1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(open), '\n'));
    if (close == std::string_view::npos)
      return fail(Error{.code = Code::bad_input, .message = "'{{' without '}}'", .file = file, .line = line, .field = {}, .fix = {}});
    const std::string key = trim(text.substr(open + 2, close - open - 2));
    const auto found = values.find(key);
    if (found == values.end()) {
      std::vector<std::string> known;
      for (const auto& [k, v] : values) known.push_back(k);
      const std::string near = closest(key, known);
      return fail(Error{.code = Code::bad_input,
                        .message = fmt::format("nothing is called '{}' here", key),
                        .file = file,
                        .line = line,
                        .field = "{{" + key + "}}",
                        .fix = near.empty() ? "" : fmt::format("did you mean '{}'?", near)});
    }
    out += text.substr(at, open - at);
    out += found->second;
    at = close + 2;
  }
  out += text.substr(at);
  return out;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> out;
  std::size_t at = 0;
  for (;;) {
    const std::size_t next = text.find(separator, at);
    out.emplace_back(text.substr(at, next == std::string_view::npos ? next : next - at));
    if (next == std::string_view::npos) return out;
    at = next + 1;
  }
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

std::string trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return std::string(text);
}

bool glob_match(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, mark = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p, ++t;
    } else if (star != std::string_view::npos) {  // let the last star eat one more character
      p = star + 1;
      t = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::string format_seconds(double s) {
  if (!(s >= 0)) return "?";
  if (s < 1e-6) return fmt::format("{:.0f} ns", s * 1e9);
  if (s < 1e-3) return fmt::format("{:.1f} us", s * 1e6);
  if (s < 1) return fmt::format("{:.3g} ms", s * 1e3);
  if (s < 120) return fmt::format("{:.1f} s", s);
  return fmt::format("{:.0f} min {:.0f} s", std::floor(s / 60), s - 60 * std::floor(s / 60));
}

std::string closest(const std::string& word, const std::vector<std::string>& known) {
  // Levenshtein distance, one row at a time; near = at most a third of the word is wrong.
  std::string best;
  std::size_t best_distance = word.size() / 3 + 1;
  for (const std::string& k : known) {
    std::vector<std::size_t> row(k.size() + 1);
    for (std::size_t j = 0; j <= k.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= word.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i;
      for (std::size_t j = 1; j <= k.size(); ++j) {
        const std::size_t previous = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (word[i - 1] != k[j - 1])});
        diagonal = previous;
      }
    }
    if (row[k.size()] <= best_distance && row[k.size()] < std::max(word.size(), k.size())) {
      if (best.empty() || row[k.size()] < best_distance) best = k;
      best_distance = row[k.size()];
    }
  }
  return best;
}

std::size_t utf8_length(std::string_view s) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t n = first >= 0xc2 && first < 0xe0 ? 2 : first >= 0xe0 && first < 0xf0 ? 3 : first >= 0xf0 && first < 0xf5 ? 4 : 0;
  if (n == 0 || s.size() < n) return 0;
  for (std::size_t i = 1; i < n; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  // Overlong forms, surrogates, beyond U+10FFFF.
  if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) >= 0xa0) || (first == 0xf0 && byte(1) < 0x90) ||
      (first == 0xf4 && byte(1) >= 0x90))
    return 0;
  return n;
}

std::size_t utf8_prefix(std::string_view s) {
  std::size_t at = 0;
  while (at < s.size()) {
    const std::size_t n = utf8_length(s.substr(at));
    if (n == 0) break;
    at += n;
  }
  return at;
}

std::string utf8_head(std::string_view s, std::size_t bytes) {
  if (s.size() <= bytes) return std::string(s);
  while (bytes > 0 && (static_cast<unsigned char>(s[bytes]) & 0xc0) == 0x80) --bytes;
  return std::string(s.substr(0, bytes));
}

}  // namespace forge
