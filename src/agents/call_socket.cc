// SPDX-License-Identifier: Apache-2.0
#include "agents/call_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/json_io.h"
#include "util/progress.h"

namespace forge {

namespace {

constexpr std::size_t kCallCap = 8 << 20;
constexpr std::size_t kClients = 64;  // at once; the oldest that has not finished its call makes room

Result<sockaddr_un> address_of(const fs::path& socket) {
  sockaddr_un a{};
  a.sun_family = AF_UNIX;
  const std::string path = socket.string();
  if (path.empty() || path.size() >= sizeof a.sun_path)
    return fail(Code::bad_input, "a socket's path has 1 to " + std::to_string(sizeof a.sun_path - 1) + " characters: " + path);
  std::memcpy(a.sun_path, path.c_str(), path.size() + 1);
  return a;
}

// All of it or nothing is of use to the other side; a client that does not read is not waited for.
bool send_line(int fd, std::string line) {
  line += '\n';
  for (std::size_t at = 0; at < line.size();) {
    const ssize_t n = send(fd, line.data() + at, line.size() - at, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      at += static_cast<std::size_t>(n);
      continue;
    }
    if (errno == EINTR) continue;
    pollfd p{fd, POLLOUT, 0};
    if (errno != EAGAIN || poll(&p, 1, 2000) <= 0) return false;
  }
  return true;
}

std::string result_line(const ToolResult& r) { return dump(Json{{"text", r.text}, {"error", r.error}}); }

std::string refusal_line(const std::string& why) {
  return result_line(
      {dump(Json{{"verdict", "not a call"}, {"why", why}, {"fix", R"(send {"tool": NAME, "arguments": {...}} as one line)"}}), true});
}

}  // namespace

CallListener::CallListener(Fd listen, fs::path path) : m_listen(std::move(listen)), m_path(std::move(path)) {}

CallListener::~CallListener() {
  if (m_listen) unlink(m_path.c_str());
}

Result<CallListener> CallListener::open(const fs::path& socket) {
  FORGE_TRY_ASSIGN(const sockaddr_un address, address_of(socket));
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return fail_errno("cannot make a socket", socket.string(), errno);
  unlink(socket.c_str());
  const mode_t old = umask(0177);
  const int bound = bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int saved = errno;
  umask(old);
  if (bound != 0) return fail_errno("cannot bind", socket.string(), saved);
  if (listen(fd.get(), 64) != 0) return fail_errno("cannot listen", socket.string(), errno);
  return CallListener(std::move(fd), socket);
}

void CallListener::accept_all() {
  for (;;) {
    Fd fd(accept4(m_listen.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) return;
    if (m_clients.size() >= kClients) {
      const auto idle = std::find_if(m_clients.begin(), m_clients.end(), [](const Client& c) { return !c.call; });
      if (idle == m_clients.end()) {
        send_line(fd.get(), refusal_line("too many calls at once"));
        continue;
      }
      m_clients.erase(idle);
    }
    m_clients.push_back(Client{std::move(fd), ++m_tickets, {}, std::nullopt, false});
  }
}

void CallListener::hear(Client& c) {
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n = recv(c.fd.get(), buffer, sizeof buffer, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {
      c.fd = Fd();
      return;
    }
    if (c.call) continue;  // nothing more is expected, only the end
    c.heard.append(buffer, static_cast<std::size_t>(n));
    const std::size_t end = c.heard.find('\n');
    std::string wrong;
    if (end == std::string::npos) {
      if (c.heard.size() <= kCallCap) continue;
      wrong = "the line is too long";
    } else {
      const Json j = parse_json(c.heard.substr(0, end), "call").value_or(Json());  // of bounded depth: dump() recurses
      if (j.is_object() && j.contains("tool") && j["tool"].is_string() && (!j.contains("arguments") || j["arguments"].is_object()))
        c.call = ToolCall{{}, j["tool"].get<std::string>(), j.contains("arguments") ? dump(j["arguments"]) : "{}"};
      else
        wrong = "this line is no call";
      c.heard.clear();
    }
    if (wrong.empty()) continue;
    send_line(c.fd.get(), refusal_line(wrong));
    c.fd = Fd();
    return;
  }
}

std::optional<CallListener::Call> CallListener::next() {
  std::erase_if(m_clients, [](const Client& c) { return !c.fd && !c.taken; });  // gave up before its turn
  for (Client& c : m_clients)
    if (c.call && !c.taken) {
      c.taken = true;
      return Call{c.ticket, *c.call};
    }
  return std::nullopt;
}

std::optional<CallListener::Call> CallListener::wait(double seconds, std::span<const int> also) {
  const double until = monotonic_seconds() + seconds;
  for (;;) {
    accept_all();
    for (Client& c : m_clients)
      if (c.fd) hear(c);
    if (auto call = next()) return call;
    std::vector<pollfd> polls{{m_listen.get(), POLLIN, 0}};
    for (const int fd : also) polls.push_back({fd, POLLIN, 0});
    for (const Client& c : m_clients)
      if (c.fd) polls.push_back({c.fd.get(), POLLIN, 0});
    const double left = until - monotonic_seconds();
    if (left <= 0) return std::nullopt;
    const int ready = poll(polls.data(), polls.size(), static_cast<int>(std::min(left, 60.0) * 1000) + 1);
    if (ready < 0) return std::nullopt;  // a signal: the caller looks at the stop flag
    for (std::size_t i = 1; i <= also.size(); ++i)
      if (polls[i].revents) return std::nullopt;
  }
}

bool CallListener::answer(int ticket, const ToolResult& result) {
  const auto at = std::find_if(m_clients.begin(), m_clients.end(), [&](const Client& c) { return c.ticket == ticket; });
  if (at == m_clients.end()) return false;
  const bool heard = at->fd && send_line(at->fd.get(), result_line(result));
  m_clients.erase(at);
  return heard;
}

Result<ToolResult> call_over_socket(const fs::path& socket, const ToolCall& call, const std::atomic<bool>& cancelled) {
  FORGE_TRY_ASSIGN(const sockaddr_un address, address_of(socket));
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return fail_errno("cannot make a socket", socket.string(), errno);
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return fail(Code::not_found, "nobody listens at " + socket.string() + " (" + std::strerror(errno) + ")",
                "the run has ended, or has gone on without this agent");
  Json arguments = Json::parse(call.arguments, nullptr, false);
  if (!arguments.is_object()) arguments = Json::object();
  if (!send_line(fd.get(), dump(Json{{"tool", call.tool}, {"arguments", arguments}})))
    return fail(Code::crashed, "the run did not take the call");
  std::string heard;
  char buffer[1 << 14];
  while (heard.find('\n') == std::string::npos) {
    if (cancelled) return fail(Code::interrupted, "cancelled");
    pollfd p{fd.get(), POLLIN, 0};
    if (poll(&p, 1, 50) <= 0) continue;
    const ssize_t n = recv(fd.get(), buffer, sizeof buffer, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return fail(Code::crashed, "the run ended before it answered");
    heard.append(buffer, static_cast<std::size_t>(n));
  }
  const Json j = Json::parse(heard.substr(0, heard.find('\n')), nullptr, false);
  if (!j.is_object() || !j.contains("text") || !j["text"].is_string()) return fail(Code::crashed, "the run's answer is not understood");
  return ToolResult{j["text"].get<std::string>(), j.contains("error") && j["error"].is_boolean() && j["error"].get<bool>()};
}

}  // namespace forge
