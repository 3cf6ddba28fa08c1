// SPDX-License-Identifier: Apache-2.0
// The judge's handle on a runner process. Every request is: continue the process, send, wait with a deadline, check what came
// back, stop the process again. Whatever is not exactly the expected answer ends the runner, and becomes a named reason.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>

#include "runner/channel.h"
#include "runner/compose.h"
#include "runner/runner_link.h"
#include "util/progress.h"
#include "util/random.h"

namespace forge {
namespace {

// What a runner has mapped besides the judge's buffers and its allowance: program, libraries, stacks and their guards.
constexpr std::size_t k_own_address_space = std::size_t(1) << 30;

tl::unexpected<RunnerFailure> failure(Reason reason, std::string detail) { return runner_failure(reason, std::move(detail)); }
tl::unexpected<RunnerFailure> failure(RunnerFailure f) { return runner_failure(std::move(f)); }

class ProcessRunner final : public Runner {
 public:
  ProcessRunner(RunnerProcess process, RunnerOptions options, bool expert)
      : m_link(std::move(process)), m_options(std::move(options)), m_expert(expert) {
    m_link.classify = [this](const wire::Fault& f) { return classify_fault(f, m_buffers); };
  }

  RunnerResult<void> load(wire::Load& load, int image_fd, std::map<std::string, std::uint32_t> entries) {
    m_entries = std::move(entries);
    if (auto hello = m_link.hello(m_options.load_timeout_s); !hello) return hello;
    std::vector<int> fds;
    if (image_fd >= 0) fds.push_back(image_fd);
    auto r = m_link.request<wire::Reply>(load, fds, "load", m_options.load_timeout_s);
    if (!r) return failure(r.error());
    if ((*r)->outcome != wire::Outcome::ok) return m_link.end(reason_of((*r)->outcome), text_of((*r)->text));
    m_features = (*r)->features;
    m_composed = (*r)->composed != 0;
    if (m_expert) m_description = text_of((*r)->text);
    m_limited = m_link.process().limit_address_space(k_own_address_space + m_options.memory_bytes);
    return m_link.stop("load");
  }

  RunnerResult<void> prepare(const CallSpec& spec) override {
    if (m_link.ended()) return failure(*m_link.ended());
    m_prepared = m_scrubbed = false;
    auto call = m_expert ? compose_expert_call(spec) : compose_image_call(spec, m_entries);
    if (!call) return failure(Reason::plan_invalid, call.error().text());  // nothing was sent: the runner is as it was
    const double scratch = static_cast<double>(call->message->scratch_bytes) * static_cast<double>(m_options.cores.size());
    if (scratch > static_cast<double>(m_options.memory_bytes))
      return failure(Reason::out_of_memory, fmt::format("{} bytes of scratch for each of {} workers are more than {}",
                                                        call->message->scratch_bytes, m_options.cores.size(), m_options.memory_bytes));

    std::vector<Fd> owned;
    std::vector<int> fds;
    for (const auto& b : call->buffers) {
      // A descriptor opened for reading cannot be mapped for writing, whatever the runner asks for.
      owned.emplace_back(open(fmt::format("/proc/self/fd/{}", b.buffer->fd()).c_str(), (b.writable ? O_RDWR : O_RDONLY) | O_CLOEXEC));
      if (!owned.back())
        return failure(Reason::runner_broke, fmt::format("cannot reopen {} for the runner: {}", b.role, std::strerror(errno)));
      fds.push_back(owned.back().get());
    }
    m_buffers = std::move(call->buffers);
    m_keep_alive = spec.keep_alive;
    m_limited = m_link.process().limit_address_space(k_own_address_space + m_options.memory_bytes + call->mapped_bytes + m_last_mapped);
    m_last_mapped = call->mapped_bytes;
    m_link.process().resume();
    // An expert is trusted and may try several ways of its own here; on a busy machine that takes longer than loading a candidate.
    const double patience = m_options.load_timeout_s * (m_expert ? 3 : 1);
    auto r = m_link.request<wire::Reply>(*call->message, fds, "prepare", patience);
    if (!r) return failure(r.error());
    const wire::Reply reply = **r;
    if (auto s = m_link.stop("prepare"); !s) return s;
    // Refusals of an expert ("not this shape") leave it usable.
    if (reply.outcome != wire::Outcome::ok) return failure(reason_of(reply.outcome), text_of(reply.text));
    if (m_expert) m_description = text_of(reply.text);
    m_prepared = true;
    return {};
  }

  RunnerResult<void> scrub() override {
    if (m_link.ended()) return failure(*m_link.ended());
    if (!m_prepared) return failure(Reason::runner_broke, "scrub() without a successful prepare()");
    m_link.process().resume();
    wire::Ready ready{.pattern = m_random.next() | 1};
    auto done = m_link.request<wire::Reply>(ready, {}, "scrubbing", m_options.call_timeout_s);
    if (!done) return failure(done.error());
    m_scrubbed = true;
    return m_link.stop("scrubbing");
  }

  RunnerResult<CallTiming> call() override {
    if (m_link.ended()) return failure(*m_link.ended());
    if (!m_prepared) return failure(Reason::runner_broke, "call() without a successful prepare()");
    if (!m_scrubbed)
      if (auto s = scrub(); !s) return failure(s.error());
    m_scrubbed = false;

    // The clock begins before the process may run: the content is there, and waking up is not for working.
    CallTiming t;
    const double cpu_before = m_link.process().cpu_seconds();
    const double begin = monotonic_seconds();
    m_link.process().resume();
    wire::Ready ready;
    auto awake = m_link.request<wire::Reply>(ready, {}, "wake-up", m_options.call_timeout_s);
    if (!awake) return failure(awake.error());
    wire::Go go;
    auto r = m_link.request<wire::Done>(go, {}, "call", m_options.call_timeout_s);
    t.outside_s = monotonic_seconds() - begin;
    if (!r) return failure(r.error());
    const wire::Done done = **r;
    if (auto s = m_link.stop("call"); !s) return failure(s.error());
    t.cpu_s = m_link.process().cpu_seconds() - cpu_before;
    if (done.outcome != wire::Outcome::ok) return failure(reason_of(done.outcome), text_of(done.text));
    if (!std::isfinite(done.inside_s) || done.inside_s < 0 || done.inside_s > t.outside_s)
      return m_link.end(Reason::runner_broke,
                        fmt::format("the runner claims {} s inside a call that took {} s outside", done.inside_s, t.outside_s));
    t.inside_s = done.inside_s;
    return t;
  }

  RunnerResult<CodeProfile> profile(double seconds) override {
    if (m_link.ended()) return failure(*m_link.ended());
    if (!m_prepared) return failure(Reason::runner_broke, "profile() without a successful prepare()");
    m_link.process().resume();
    wire::Profile ask{.seconds = seconds};
    auto r = m_link.request<wire::Samples>(ask, {}, "profile", seconds + m_options.call_timeout_s);
    if (!r) return failure(r.error());
    const auto samples = std::make_unique<wire::Samples>(**r);
    if (auto s = m_link.stop("profile"); !s) return failure(s.error());
    CodeProfile p;
    p.samples = static_cast<int>(samples->samples);
    p.note = text_of(samples->note);
    if (samples->mapping_count > wire::k_max_mappings || samples->hot_count > wire::k_max_hot || samples->place_count > wire::k_max_sampled)
      return m_link.end(Reason::runner_broke, "a profile larger than its message");
    for (std::uint32_t i = 0; i < samples->mapping_count; ++i)
      p.where.push_back({text_of(samples->mappings[i].name), static_cast<double>(samples->mappings[i].samples) / std::max(1, p.samples)});
    for (std::uint32_t i = 0; i < samples->hot_count; ++i) {
      const wire::HotCode& hot = samples->hot[i];
      if (hot.bytes > wire::k_hot_bytes) return m_link.end(Reason::runner_broke, "a profile larger than its message");
      p.hot_code.emplace_back(hot.address, std::string(reinterpret_cast<const char*>(hot.code), hot.bytes));
    }
    p.hot_places.assign(samples->places, samples->places + samples->place_count);
    return p;
  }

  std::string description() const override { return m_description; }
  bool composed() const override { return m_composed; }
  void describe_as(std::string text) { m_description = std::move(text); }

  std::vector<std::string> sandbox() const override {
    std::vector<std::string> lines = {"own process group, killed with the judge", "stopped while idle",
                                      "empty environment, no inherited files"};
    auto say = [&](std::uint32_t bit, const char* what) { lines.push_back((m_features & bit ? "" : "missing: ") + std::string(what)); };
    say(wire::feature_no_new_privs, "no new privileges");
    say(wire::feature_seccomp,
        m_expert ? "seccomp: no network, processes, programs or foreign memory" : "seccomp: allow list, no call from kernel code");
    if (m_expert)
      say(wire::feature_read_only_files, "landlock: files are read-only");
    else
      say(wire::feature_limits, "no further threads");
    lines.push_back((m_limited ? "" : "missing: ") + fmt::format("memory limit of {} MiB", m_options.memory_bytes >> 20));
    lines.push_back("inputs mapped read-only");
    return lines;
  }

 private:
  RunnerLink m_link;
  RunnerOptions m_options;
  bool m_expert = false, m_composed = false, m_prepared = false, m_scrubbed = false, m_limited = false;
  std::uint32_t m_features = 0;
  std::size_t m_last_mapped = 0;
  std::shared_ptr<const void> m_keep_alive;  // of the prepared call
  std::string m_description;
  std::map<std::string, std::uint32_t> m_entries;
  std::vector<MappedBuffer> m_buffers;
  Random m_random{os_entropy()};
};

RunnerResult<std::unique_ptr<wire::Load>> make_load(const RunnerOptions& options, wire::Subject subject) {
  auto load = std::make_unique<wire::Load>();
  load->subject = subject;
  if (options.cores.empty() || options.cores.size() > wire::k_max_cores)
    return failure(Reason::runner_broke, fmt::format("{} cores: a runner takes 1 to {}", options.cores.size(), wire::k_max_cores));
  load->core_count = static_cast<std::uint32_t>(options.cores.size());
  std::copy(options.cores.begin(), options.cores.end(), load->cores);
  return load;
}

RunnerResult<std::unique_ptr<ProcessRunner>> start(const RunnerOptions& options, bool expert) {
  auto process = RunnerProcess::start(options.program, expert ? expert_environment(options.cores) : std::vector<std::string>{});
  if (!process) return failure(Reason::runner_broke, process.error().text());
  return std::make_unique<ProcessRunner>(std::move(*process), options, expert);
}

}  // namespace

RunnerResult<std::unique_ptr<Runner>> start_image_runner(const Image& image, const RunnerOptions& options) {
  auto load = make_load(options, wire::Subject::image);
  if (!load) return failure(load.error());
  std::map<std::string, std::uint32_t> entries;
  for (const auto& l : image.plan.launches) {
    if (entries.count(l.entry)) continue;
    const std::uint32_t i = (*load)->entry_count;
    if (i == wire::k_max_entries || l.entry.size() >= sizeof(*load)->entries[0])
      return failure(Reason::load_failed, "too many entries, or a name too long: " + l.entry);
    copy_text((*load)->entries[i], l.entry);
    entries[l.entry] = i;
    ++(*load)->entry_count;
  }
  Fd file(memfd_create("forge:image", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file || write(file.get(), image.bytes.data(), image.bytes.size()) != static_cast<ssize_t>(image.bytes.size()))
    return failure(Reason::runner_broke, "cannot pass the image on");
  fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
  (*load)->object_bytes = image.bytes.size();
  auto runner = start(options, false);
  if (!runner) return failure(runner.error());
  (*runner)->describe_as("image " + image.sha256.substr(0, 12));
  if (auto r = (*runner)->load(**load, file.get(), std::move(entries)); !r) return failure(r.error());
  return std::unique_ptr<Runner>(std::move(*runner));
}

RunnerResult<std::unique_ptr<Runner>> start_expert_runner(const std::string& plugin_path, const RunnerOptions& options) {
  auto load = make_load(options, wire::Subject::expert);
  if (!load) return failure(load.error());
  const std::string path = fs::absolute(plugin_path).string();
  if (path.size() >= sizeof(*load)->plugin) return failure(Reason::load_failed, "path too long: " + path);
  copy_text((*load)->plugin, path);
  auto runner = start(options, true);
  if (!runner) return failure(runner.error());
  if (auto r = (*runner)->load(**load, -1, {}); !r) return failure(r.error());
  return std::unique_ptr<Runner>(std::move(*runner));
}

}  // namespace forge
