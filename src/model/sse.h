// SPDX-License-Identifier: Apache-2.0
// Server-sent events: a byte stream, in pieces of any size, becomes events. Lines may end in LF, CRLF or CR; comments and unknown
// fields are skipped; several data lines are one text with line feeds. An event that the stream cuts short is never handed out.
#pragma once
#include <functional>
#include <string>
#include <string_view>

namespace forge {

struct ServerEvent {
  std::string name;  // "" when the stream names none
  std::string data;
};

class EventSplitter {
 public:
  // Calls `take` for every event that `bytes` completes. False from it drops the rest.
  void feed(std::string_view bytes, const std::function<bool(const ServerEvent&)>& take);

 private:
  bool end_line(const std::function<bool(const ServerEvent&)>& take);

  std::string m_line;
  ServerEvent m_event;
  bool m_has_data = false, m_after_cr = false, m_first_line = true;
};

}  // namespace forge
