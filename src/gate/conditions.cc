// SPDX-License-Identifier: Apache-2.0
#include "gate/conditions.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "util/text.h"

namespace forge {
namespace {

constexpr double kForeignNote = 5;  // percent of all cores used by others that is worth a note

void add_cpu(Conditions& c, const Machine& machine) {
  c["clock"] = "inside: the runner's monotonic clock around the launches; outside: the judge's, from continue to done, every call";
  c["cache"] = "cold: operands are written by non-temporal stores before every call; outputs poisoned likewise";
  c["workers"] = std::to_string(machine.cores);
}

std::string range_of(const std::vector<CardLook>& looks, double CardState::*member, const char* unit, const char* what) {
  double low = 0, high = -1;
  for (const CardLook& look : looks) {
    const double value = look.state.*member;
    if (value < 0) continue;
    if (high < 0) low = value;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if (high < 0) return fmt::format("unknown: NVML gives no {}", what);
  return fmt::format("{:.0f} to {:.0f} {} over {} looks, one every {} pairs", low, high, unit, looks.size(), kCardBlock);
}

std::string throttle_of(const std::vector<CardLook>& looks) {
  std::set<std::string> reasons;
  for (const CardLook& look : looks)
    if (!look.state.throttle.empty()) reasons.insert(look.state.throttle);
  return join({reasons.begin(), reasons.end()}, "; ");
}

int foreign_of(const std::vector<CardLook>& looks) {
  int most = -1;
  for (const CardLook& look : looks) most = std::max(most, look.foreign);
  return most;
}

void add_cuda(Conditions& c, const JobResult& r, const std::vector<JobSide>& sides) {
  c["clock"] =
      "inside: events around the launches in one stream that is held while they queue; outside: the judge's, batches of pipelined "
      "calls";
  c["cache"] =
      "cold: persisting L2 set-aside 0 and reset, then a read-only pass over 4 times the L2 in the stream before every call; shared and "
      "local memory scrubbed, the module loaded anew every few calls";
  for (std::size_t i = 0; i < sides.size() && i < r.calls.size(); ++i) {
    std::vector<double> mhz;
    for (const CallTiming& t : r.calls[i])
      if (t.sm_mhz > 0) mhz.push_back(t.sm_mhz);
    c["sm_clock." + sides[i].label] =
        mhz.empty() ? std::string("unknown: no clock was read in a kernel")
                    : fmt::format("{:.0f} MHz, median of {} read in a kernel behind the call", median(mhz), mhz.size());
    c["launch." + sides[i].label] =
        sides[i].one_slot ? "its own run() in the runner's stream" : "cuLaunchKernelEx by the runner, from the plan";
  }
  c["temperature"] = range_of(r.card, &CardState::temperature_c, "C", "temperature");
  c["power"] = range_of(r.card, &CardState::power_w, "W", "power");
  std::vector<std::string> blocks;
  for (const CardLook& look : r.card) blocks.push_back(fmt::format("{:.0f} C {:.0f} W", look.state.temperature_c, look.state.power_w));
  c["card_blocks"] = blocks.empty() ? "none: the card was not asked" : join(blocks, ", ");
  const std::string throttle = throttle_of(r.card);
  c["throttle"] = !throttle.empty() ? throttle : r.card.empty() ? "unknown: the card was not asked" : "none reported";
  const int foreign = foreign_of(r.card);
  c["foreign_processes"] = foreign < 0 ? std::string("unknown: NVML lists no processes") : std::to_string(foreign);
  if (!r.batches_missing.empty())
    c["audit"] = "not run: " + r.batches_missing;
  else if (r.batches.calls > 0)
    c["audit"] = fmt::format(
        "batches of 1 to {} pipelined calls as CUDA graphs, each on content of its own and checked, less their flushes; {} repetitions, "
        "{:.1f} s",
        2 * r.batches.calls, r.batches.per_call_s.empty() ? 0 : r.batches.per_call_s.begin()->second.size(), r.batches.seconds);
}

}  // namespace

void add_conditions(Conditions& c, const Machine& machine, const JobResult& r, const std::vector<JobSide>& sides) {
  if (r.audit == Audit::batches)
    add_cuda(c, r, sides);
  else
    add_cpu(c, machine);
  c["content"] = "fresh for every call";
  c["device"] = machine.model;
  c["device_class"] = machine.device_class;
  c["boot_id"] = machine.boot_id;
  c["pairs"] = fmt::format("planned {}, measured {}{}{}", r.planned, r.calls.empty() ? 0 : r.calls[0].size(),
                           r.extended ? ", extended once" : "", r.stopped_early ? ", ended by the pilot" : "");
  c["foreign_load"] = r.load.known ? fmt::format("{:.1f} % of all cores, {:.1f} % stolen", r.load.foreign_percent, r.load.steal_percent)
                                   : "unknown: /proc/stat could not be read";
}

std::vector<std::string> job_notes(const JobResult& r) {
  std::vector<std::string> notes;
  if (r.load.known && r.load.foreign_percent + r.load.steal_percent > kForeignNote)
    notes.push_back(fmt::format("other work used {:.1f} % of the machine during timing, {:.1f} % was stolen by the host",
                                r.load.foreign_percent, r.load.steal_percent));
  if (!r.load.known) notes.push_back("foreign load unknown: /proc/stat could not be read");
  if (r.audit != Audit::batches) return notes;
  if (const std::string throttle = throttle_of(r.card); !throttle.empty()) notes.push_back("the card throttled during timing: " + throttle);
  if (const int foreign = foreign_of(r.card); foreign > 0)
    notes.push_back(fmt::format("{} process(es) of others computed on the card during timing", foreign));
  return notes;
}

std::string call_problem(Audit audit, const std::vector<CallTiming>& calls, int workers) {
  return audit == Audit::batches ? inside_problem(calls) : cpu_time_problem(calls, workers);
}

}  // namespace forge
