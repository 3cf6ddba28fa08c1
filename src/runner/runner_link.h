// SPDX-License-Identifier: Apache-2.0
// One runner process and the conversation with it, for every kind of runner. A request is: send, wait with a deadline, check what
// came back. Whatever is not exactly the expected answer ends the runner, and becomes a named reason.
#pragma once
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runner/channel.h"
#include "runner/runner.h"
#include "runner/spawn.h"

namespace forge {

tl::unexpected<RunnerFailure> runner_failure(Reason, std::string detail);
tl::unexpected<RunnerFailure> runner_failure(RunnerFailure);
Reason reason_of(wire::Outcome);

class RunnerLink {
 public:
  explicit RunnerLink(RunnerProcess process) : m_process(std::move(process)), m_packet(std::make_unique<Packet>()) {}

  const RunnerProcess& process() const { return m_process; }
  const std::optional<RunnerFailure>& ended() const { return m_ended; }

  // The reason behind last words, and what is done when the runner has been reaped (its answer is appended to the detail).
  std::function<RunnerFailure(const wire::Fault&)> classify;
  std::function<std::string(pid_t)> after_end;

  RunnerResult<void> hello(double timeout_s);

  // Sends, waits, and gives back the answer of the right kind and number; valid until the next request.
  template <class Answer, class Request>
  RunnerResult<const Answer*> request(Request& message, const std::vector<int>& fds, const char* during, double timeout_s,
                                      Waiting waiting = Waiting::asleep) {
    const std::uint32_t sequence = ++m_sequence;
    if (const int error = send_message(m_process.channel(), message, sequence, fds); error != 0) {
      if (error != EPIPE && error != ECONNRESET)
        return end(Reason::runner_broke, std::string("sending failed during ") + during + ": " + std::strerror(error));
      return give_up(Received::closed, during, timeout_s);
    }
    const Received r = receive_packet(m_process.channel(), *m_packet, timeout_s, waiting);
    if (r == Received::packet) {
      const Answer* answer = m_packet->as<Answer>();
      if (answer && answer->header.sequence == sequence && m_packet->fds.empty()) return answer;
    }
    return give_up(r, during, timeout_s);
  }

  tl::unexpected<RunnerFailure> give_up(Received, const std::string& during, double timeout_s);
  tl::unexpected<RunnerFailure> end(Reason, std::string detail);
  // Stops the process; a failure when it has died meanwhile.
  RunnerResult<void> stop(const char* during);

 private:
  RunnerProcess m_process;
  std::uint32_t m_sequence = 0;
  std::optional<RunnerFailure> m_ended;
  std::unique_ptr<Packet> m_packet;
};

}  // namespace forge
