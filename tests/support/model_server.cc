// SPDX-License-Identifier: Apache-2.0
#include "support/model_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cctype>
#include <chrono>
#include <fstream>
#include <mutex>
#include <thread>

#include "support/model_answer.h"

namespace forge {
namespace {

struct Request {
  std::string method, path, key, body;
};

class Server : public ModelServer {
 public:
  Server(std::vector<ScriptLine> script, const fs::path& log, int listener, int port)
      : m_script(std::move(script)), m_log(log), m_listener(listener), m_port(port), m_accepting([this] { accept_all(); }) {}

  ~Server() override {
    m_over = true;
    m_accepting.join();
    for (std::thread& t : m_serving) t.join();
    close(m_listener);
  }

  int port() const override { return m_port; }
  std::vector<SeenRequest> seen() const override {
    std::lock_guard lock(m_mutex);
    return m_seen;
  }
  int left() const override {
    std::lock_guard lock(m_mutex);
    int n = 0;
    for (const ScriptLine& line : m_script) n += std::max(0, line.uses);
    return n;
  }

 private:
  // True when `fd` has something to read; false when the server ends first.
  bool readable(int fd) const {
    while (!m_over) {
      pollfd p{.fd = fd, .events = POLLIN, .revents = 0};
      if (poll(&p, 1, 20) > 0) return true;
    }
    return false;
  }

  void accept_all() {
    while (readable(m_listener))
      if (const int fd = accept4(m_listener, nullptr, nullptr, SOCK_CLOEXEC); fd >= 0)
        m_serving.emplace_back([this, fd] {
          serve(fd);
          close(fd);
        });
  }

  bool read_more(int fd, std::string& into) const {
    char buffer[65536];
    if (!readable(fd)) return false;
    const ssize_t n = recv(fd, buffer, sizeof buffer, 0);
    if (n > 0) into.append(buffer, static_cast<std::size_t>(n));
    return n > 0;
  }

  bool read_request(int fd, Request& r) const {
    std::string all;
    std::size_t head;
    while ((head = all.find("\r\n\r\n")) == std::string::npos)
      if (!read_more(fd, all)) return false;
    r.method = all.substr(0, all.find(' '));
    r.path = all.substr(r.method.size() + 1, all.find(' ', r.method.size() + 1) - r.method.size() - 1);
    r.path = r.path.substr(0, r.path.find('?'));
    std::size_t length = 0;
    for (std::size_t at = all.find("\r\n"); at < head; at = all.find("\r\n", at + 2)) {
      const std::string line = all.substr(at + 2, all.find("\r\n", at + 2) - at - 2);
      std::string name = line.substr(0, line.find(':'));
      for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      const std::string value = line.size() > name.size() + 2 ? line.substr(name.size() + 2) : "";
      if (name == "content-length") length = std::stoul(value);
      if (name == "x-api-key") r.key = value;
      if (name == "authorization") r.key = value.starts_with("Bearer ") ? value.substr(7) : value;
    }
    while (all.size() < head + 4 + length)
      if (!read_more(fd, all)) return false;
    r.body = all.substr(head + 4);
    return true;
  }

  // Only what the peer still reads; a client that has left is no error here.
  bool write(int fd, const std::string& bytes, std::size_t tear = 0) const {
    for (std::size_t at = 0; at < bytes.size() && !m_over;) {
      const ssize_t n = send(fd, bytes.data() + at, tear ? std::min(tear, bytes.size() - at) : bytes.size() - at, MSG_NOSIGNAL);
      if (n <= 0) return false;
      at += static_cast<std::size_t>(n);
      if (tear) std::this_thread::sleep_for(std::chrono::microseconds(200));  // or the kernel joins the pieces again
    }
    return !m_over;
  }

  void serve(int fd) {
    Request request;
    if (!read_request(fd, request)) return;
    WireAnswer answer;
    Json line = Json::object();
    try {
      answer = choose(request, line);
      const double stall = line.value("stall", 0.0);
      for (double waited = 0; waited < stall && !m_over; waited += 0.02) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    } catch (const std::exception& e) {
      answer = refusal(400, "script_error", e.what());
    }
    send_answer(fd, answer, line.value("tear", std::size_t{0}));
  }

  WireAnswer choose(const Request& request, Json& line) {
    if (request.method == "GET")
      return {.headers = {"content-type: text/plain"}, .pieces = {request.path == "/left" ? std::to_string(left()) + "\n" : "{}"}};
    const bool anthropic = request.path.ends_with("/messages");
    if (request.path.ends_with("/count_tokens"))
      return {.headers = {"content-type: application/json"}, .pieces = {R"({"input_tokens":100})"}};
    if (!anthropic && !request.path.ends_with("/chat/completions")) return refusal(404, "not_found_error", "no such path: " + request.path);
    const auto body = parse_json(request.body, "request");
    if (!body) return refusal(400, "invalid_request_error", body.error().text());
    const std::string model = body->value("model", "");
    const ScriptLine* chosen = take(model);
    note(request, model, chosen ? chosen->number : 0, *body);
    if (!chosen) return refusal(400, "invalid_request_error", "the script is over");
    line = chosen->json;
    if (const std::string wrong = complaint(line, request.body); !wrong.empty())
      return refusal(400, "invalid_request_error", "line " + std::to_string(chosen->number) + " of the script: " + wrong);
    return render(line, anthropic, *body, request.key);
  }

  const ScriptLine* take(const std::string& model) {
    std::lock_guard lock(m_mutex);
    for (ScriptLine& line : m_script) {
      if (line.uses == 0 || line.json.value("for", model) != model) continue;
      if (line.uses > 0) line.uses--;
      return &line;
    }
    return nullptr;
  }

  void note(const Request& r, const std::string& model, int number, const Json& body) {
    std::lock_guard lock(m_mutex);
    m_seen.push_back({.path = r.path, .key = r.key, .body = r.body, .line = number});
    if (m_log.empty()) return;
    const Json entry{{"path", r.path}, {"model", model}, {"key", !r.key.empty()}, {"line", number}, {"body", body}};
    std::ofstream(m_log, std::ios::app) << dump(entry) << "\n";
  }

  void send_answer(int fd, const WireAnswer& answer, std::size_t tear) {
    std::string head = "HTTP/1.1 " + std::to_string(answer.status) + " X\r\nconnection: close\r\n";
    for (const std::string& h : answer.headers) head += h + "\r\n";
    if (!answer.stream) {
      std::string body;
      for (const std::string& piece : answer.pieces) body += piece;
      write(fd, head + "content-length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
    } else if (write(fd, head + "transfer-encoding: chunked\r\n\r\n")) {
      for (const std::string& piece : answer.pieces) {
        char size[32];
        std::snprintf(size, sizeof size, "%zx\r\n", piece.size());
        if (!write(fd, size + piece + "\r\n", tear)) return;
      }
      if (!answer.cut) write(fd, "0\r\n\r\n");
    }
    // Closing with unread bytes would reset the connection, and take what was sent with it.
    shutdown(fd, SHUT_WR);
  }

  mutable std::mutex m_mutex;
  std::vector<ScriptLine> m_script;
  std::vector<SeenRequest> m_seen;
  fs::path m_log;
  int m_listener, m_port;
  std::atomic<bool> m_over{false};
  std::vector<std::thread> m_serving;  // of the accepting thread alone, until that has ended
  std::thread m_accepting;             // last: it uses all of the above
};

}  // namespace

Result<std::unique_ptr<ModelServer>> ModelServer::start(const std::string& script, const fs::path& folder, const fs::path& log, int port) {
  FORGE_TRY_ASSIGN(std::vector<ScriptLine> lines, read_script(script, folder));
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return fail_errno("socket", "", errno);
  const int yes = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  socklen_t size = sizeof address;
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(fd, 64) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    const int saved = errno;
    close(fd);
    return fail_errno("no port to listen on", "", saved);
  }
  return std::make_unique<Server>(std::move(lines), log, fd, ntohs(address.sin_port));
}

}  // namespace forge
