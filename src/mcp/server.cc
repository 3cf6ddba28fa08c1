// SPDX-License-Identifier: Apache-2.0
#include "mcp/server.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

namespace forge {

namespace {

struct Running {
  McpCall call;
  std::atomic<bool> cancelled{false};
  bool done = false;  // under Server::m_lock
  std::condition_variable ended;
  std::thread work, watch;
};

class Server {
 public:
  Server(const McpProtocol& protocol, const PerformCall& perform, int out, const McpServerOptions& options,
         const std::function<void(const std::string&)>& log)
      : m_protocol(protocol), m_perform(perform), m_out(out), m_options(options), m_log(log) {}

  ~Server() {
    {
      std::lock_guard hold(m_lock);
      for (auto& r : m_running) r->cancelled = true;
    }
    for (auto& r : m_running) join(*r);
  }

  void receive(const std::string& line) {
    McpIncoming in = m_protocol.receive(line);
    if (!in.reply.empty()) send(in.reply);
    if (!in.cancelled.empty()) cancel(in.cancelled);
    if (in.call) start(std::move(*in.call));
  }

  void refuse_line(const std::string& why) { send(McpProtocol::error_reply("null", -32700, why)); }
  bool broken() const { return m_broken; }

 private:
  // Whole lines only, whoever writes.
  void send(const std::string& line) {
    std::lock_guard hold(m_writing);
    const std::string text = line + "\n";
    for (std::size_t at = 0; at < text.size() && !m_broken;) {
      const ssize_t n = write(m_out, text.data() + at, text.size() - at);
      if (n > 0) at += static_cast<std::size_t>(n);
      if (n < 0 && errno != EINTR) m_broken = true;
    }
  }

  void cancel(const std::string& id) {  // of a request that is unknown, or answered already: nothing to do
    std::lock_guard hold(m_lock);
    for (auto& r : m_running)
      if (r->call.id == id && !r->done) r->cancelled = true, m_log("cancelled: " + r->call.call.tool);
  }

  bool runs(const Running& r) {
    std::lock_guard hold(m_lock);
    return !r.done;
  }

  void start(McpCall call) {
    reap();
    for (const auto& r : m_running)
      if (r->call.id == call.id && runs(*r)) return send(McpProtocol::error_reply(call.id, -32600, "a request with this id still runs"));
    if (static_cast<int>(m_running.size()) >= m_options.calls_at_once)
      return send(McpProtocol::call_reply(
          call, {R"({"verdict":"busy","fix":"too many calls at once: wait for the results of those that run"})", true}));
    m_running.push_back(std::make_unique<Running>());
    Running& r = *m_running.back();
    r.call = std::move(call);
    if (!r.call.progress_token.empty()) r.watch = std::thread([this, &r] { watch(r); });
    r.work = std::thread([this, &r] { work(r); });  // second: it joins the watch
  }

  void work(Running& r) {
    const ToolResult result = m_perform(r.call.call, r.cancelled);
    bool wanted;
    {
      std::lock_guard hold(m_lock);
      r.done = true;
      wanted = !r.cancelled;
    }
    r.ended.notify_all();
    if (r.watch.joinable()) r.watch.join();  // no progress after the result
    if (wanted) send(McpProtocol::call_reply(r.call, result));
    std::lock_guard hold(m_lock);
    m_finished.push_back(&r);
  }

  void watch(Running& r) {
    const auto every = std::chrono::duration<double>(m_options.progress_seconds);
    std::unique_lock hold(m_lock);
    for (int n = 1;; ++n) {
      if (r.ended.wait_for(hold, every, [&] { return r.done || r.cancelled; })) return;
      const std::string note =
          McpProtocol::progress(r.call, n, fmt::format("{} has run for {:.0f} s", r.call.call.tool, n * m_options.progress_seconds));
      hold.unlock();
      send(note);
      hold.lock();
    }
  }

  static void join(Running& r) {
    r.ended.notify_all();
    if (r.work.joinable()) r.work.join();
  }

  void reap() {
    std::vector<Running*> finished;
    {
      std::lock_guard hold(m_lock);
      finished.swap(m_finished);
    }
    for (Running* f : finished) {
      join(*f);
      m_running.remove_if([f](const auto& r) { return r.get() == f; });
    }
  }

  const McpProtocol& m_protocol;
  const PerformCall& m_perform;
  const int m_out;
  const McpServerOptions m_options;
  const std::function<void(const std::string&)>& m_log;
  std::list<std::unique_ptr<Running>> m_running;  // changed by the reading thread only
  std::vector<Running*> m_finished;
  std::mutex m_lock, m_writing;
  std::atomic<bool> m_broken{false};
};

}  // namespace

void serve_mcp(const McpProtocol& protocol, const PerformCall& perform, int in, int out, const McpServerOptions& options,
               const std::function<void(const std::string&)>& log) {
  Server server(protocol, perform, out, options, log);
  std::string pending;
  bool skipping = false;  // the rest of a line that was too long
  char buffer[1 << 16];
  while (!server.broken()) {
    const ssize_t n = read(in, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    pending.append(buffer, static_cast<std::size_t>(n));
    std::size_t from = 0;
    for (std::size_t end; (end = pending.find('\n', from)) != std::string::npos; from = end + 1) {
      std::string line = pending.substr(from, end - from);
      if (!line.empty() && line.back() == '\r') line.pop_back();
      if (!skipping && !line.empty()) server.receive(line);
      skipping = false;
    }
    pending.erase(0, from);
    if (pending.size() > options.line_cap) {
      if (!skipping) server.refuse_line("the message is too long");
      skipping = true;
      pending.clear();
    }
  }
  log("end of input");
}

}  // namespace forge
