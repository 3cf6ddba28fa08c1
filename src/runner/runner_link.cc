// SPDX-License-Identifier: Apache-2.0
#include "runner/runner_link.h"

#include <fmt/format.h>

#include "runner/classify.h"

namespace forge {

tl::unexpected<RunnerFailure> runner_failure(Reason reason, std::string detail) {
  return tl::unexpected(RunnerFailure{reason, std::move(detail)});
}
tl::unexpected<RunnerFailure> runner_failure(RunnerFailure f) { return tl::unexpected(std::move(f)); }

Reason reason_of(wire::Outcome o) {
  switch (o) {
    case wire::Outcome::load_failed:
      return Reason::load_failed;
    case wire::Outcome::out_of_memory:
      return Reason::out_of_memory;
    case wire::Outcome::faulted:
      return Reason::crashed;
    default:
      return Reason::runner_broke;
  }
}

RunnerResult<void> RunnerLink::hello(double timeout_s) {
  const Received r = receive_packet(m_process.channel(), *m_packet, timeout_s);
  if (r != Received::packet || m_packet->kind() != wire::Kind::hello) return give_up(r, "start", timeout_s);
  return {};
}

tl::unexpected<RunnerFailure> RunnerLink::give_up(Received r, const std::string& during, double timeout_s) {
  if (r == Received::timeout) return end(Reason::timed_out, fmt::format("no answer within {:g} s during {}", timeout_s, during));
  if (r == Received::packet) {
    if (const auto* f = m_packet->as<wire::Fault>()) {
      RunnerFailure why = classify ? classify(*f) : classify_fault(*f, {});
      return end(why.reason, std::move(why.detail));
    }
    return end(Reason::runner_broke, "the runner broke its protocol during " + during);
  }
  constexpr double k_patience_s = 1;  // it hung up: the end is near
  const pid_t pid = m_process.pid();
  RunnerFailure why = classify_ending(m_process.finish(k_patience_s), during);
  if (after_end) why.detail += after_end(pid);
  m_ended = why;
  return runner_failure(std::move(why));
}

tl::unexpected<RunnerFailure> RunnerLink::end(Reason reason, std::string detail) {
  const pid_t pid = m_process.pid();
  m_process.finish(0);
  if (after_end && pid > 0) detail += after_end(pid);
  m_ended = RunnerFailure{reason, std::move(detail)};
  return runner_failure(*m_ended);
}

RunnerResult<void> RunnerLink::stop(const char* during) {
  if (m_process.stop()) return {};
  // It answered, and died before it could be stopped.
  const pid_t pid = m_process.pid();
  RunnerFailure why = classify_ending(m_process.finish(1), std::string("the moment after ") + during);
  if (after_end) why.detail += after_end(pid);
  m_ended = why;
  return runner_failure(std::move(why));
}

}  // namespace forge
