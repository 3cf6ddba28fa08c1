// SPDX-License-Identifier: Apache-2.0
#include "model/sse.h"

namespace forge {

void EventSplitter::feed(std::string_view bytes, const std::function<bool(const ServerEvent&)>& take) {
  for (const char c : bytes) {
    const bool second_half = m_after_cr && c == '\n';  // of a CRLF, possibly over two pieces
    m_after_cr = c == '\r';
    if (second_half) continue;
    if (c != '\n' && c != '\r')
      m_line += c;
    else if (!end_line(take))
      return;
  }
}

bool EventSplitter::end_line(const std::function<bool(const ServerEvent&)>& take) {
  std::string line;
  line.swap(m_line);
  if (m_first_line && line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);  // a byte order mark is allowed here
  m_first_line = false;
  if (line.empty()) {
    const ServerEvent event = std::move(m_event);
    const bool whole = m_has_data;  // a name without data is no event
    m_event = {}, m_has_data = false;
    return !whole || take(event);
  }
  const std::size_t colon = line.find(':');
  if (colon == 0) return true;  // a comment, often a sign of life
  const std::string field = line.substr(0, colon);
  std::string value = colon == std::string::npos ? "" : line.substr(colon + 1);
  if (value.starts_with(' ')) value.erase(0, 1);
  if (field == "event") m_event.name = value;
  if (field == "data") {
    if (m_has_data) m_event.data += '\n';
    m_event.data += value;
    m_has_data = true;
  }
  return true;
}

}  // namespace forge
