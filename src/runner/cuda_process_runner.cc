// SPDX-License-Identifier: Apache-2.0
// The judge's handle on a GPU's runner process: an image, a C++ expert or a Python one, all by the same messages.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <map>

#include "runner/cuda_compose.h"
#include "runner/cuda_faults.h"
#include "runner/cuda_memory.h"
#include "runner/runner_link.h"
#include "util/progress.h"
#include "util/random.h"

namespace forge {
namespace {

constexpr double kCleanPatience_s = 5;

class CudaProcessRunner final : public Runner {
 public:
  CudaProcessRunner(RunnerProcess process, CudaRunnerOptions options, bool expert, bool python, std::optional<TempDir> folder)
      : m_folder(std::move(folder)), m_link(std::move(process)), m_options(std::move(options)), m_expert(expert), m_python(python) {
    m_link.after_end = [](pid_t pid) -> std::string {
      const Status clean = wait_for_clean_card(pid, kCleanPatience_s);
      return clean ? "" : "; " + clean.error().text();
    };
  }

  RunnerResult<void> load(std::unique_ptr<wire::Load> message, int image_fd, std::string cubin,
                          std::map<std::string, std::uint32_t> entries) {
    m_entries = std::move(entries);
    m_cubin = std::move(cubin);
    m_load = std::move(message);
    wire::Load& load = *m_load;
    if (auto hello = m_link.hello(m_options.load_timeout_s); !hello) return hello;
    std::vector<int> fds;
    if (image_fd >= 0) fds.push_back(image_fd);
    auto r = m_link.request<wire::Reply>(load, fds, "load", m_options.load_timeout_s);
    if (!r) return runner_failure(r.error());
    if ((*r)->outcome != wire::Outcome::ok) return m_link.end(reason_of((*r)->outcome), text_of((*r)->text));
    m_features = (*r)->features;
    m_composed = (*r)->composed != 0;
    if (m_expert) m_description = text_of((*r)->text);
    return m_link.stop("load");
  }

  RunnerResult<void> prepare(const CallSpec& spec) override {
    if (m_link.ended()) return runner_failure(*m_link.ended());
    m_prepared = m_scrubbed = false;
    auto call = compose(spec);
    if (!call) return runner_failure(Reason::plan_invalid, call.error().text());  // nothing was sent: the runner is as it was
    m_link.process().resume();
    m_call_needs = call->allocations;
    if (auto r = place(); !r) return r;
    call->message->slot = 0;
    if (auto r = send_slot(*call->message); !r) return r;
    m_keep_alive = spec.keep_alive;
    m_prepared = true;
    return m_link.stop("prepare");
  }

  RunnerResult<void> prepare_batch(const std::vector<CallSpec>& specs) override {
    if (m_link.ended()) return runner_failure(*m_link.ended());
    std::vector<ComposedCudaCall> calls;
    m_batch_needs.clear();
    m_batch_calls = 0;
    if (!m_expert) {  // an expert repeats its call
      for (const CallSpec& spec : specs) {
        auto call = compose(spec);
        if (!call) return runner_failure(Reason::plan_invalid, call.error().text());
        for (const auto& a : call->allocations) add_need(m_batch_needs, a);
        calls.push_back(std::move(*call));
      }
    }
    m_link.process().resume();
    if (auto r = place(); !r) return r;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      calls[i].message->slot = static_cast<std::uint32_t>(i + 1);
      if (auto r = send_slot(*calls[i].message); !r) return r;
    }
    m_batch_keep_alive.clear();
    for (const CallSpec& spec : specs) m_batch_keep_alive.push_back(spec.keep_alive);
    m_batch_calls = specs.size();
    return m_link.stop("preparing a batch");
  }

  RunnerResult<void> scrub() override {
    if (m_link.ended()) return runner_failure(*m_link.ended());
    if (!m_prepared) return runner_failure(Reason::runner_broke, "scrub() without a successful prepare()");
    m_link.process().resume();
    wire::Ready ready{.header = {}, .pattern = m_random.next() | 1};
    auto done = m_link.request<wire::Reply>(ready, {}, "scrubbing", m_options.call_timeout_s);
    if (!done) return runner_failure(done.error());
    if ((*done)->outcome != wire::Outcome::ok) return m_link.end(reason_of((*done)->outcome), "scrubbing: " + text_of((*done)->text));
    m_scrubbed = true;
    return m_link.stop("scrubbing");
  }

  RunnerResult<CallTiming> call() override {
    if (m_link.ended()) return runner_failure(*m_link.ended());
    if (!m_prepared) return runner_failure(Reason::runner_broke, "call() without a successful prepare()");
    if (!m_scrubbed)
      if (auto s = scrub(); !s) return runner_failure(s.error());
    m_scrubbed = false;
    CallTiming t;
    const double cpu_before = m_link.process().cpu_seconds();
    const double begin = monotonic_seconds();
    if (auto awake = wake(); !awake) return runner_failure(awake.error());
    wire::Go go;
    auto r = m_link.request<wire::CudaDone>(go, {}, "call", m_options.call_timeout_s);
    t.outside_s = monotonic_seconds() - begin;
    if (!r) return runner_failure(r.error());
    const wire::CudaDone done = **r;
    if (done.outcome != wire::Outcome::ok) return failed(done);
    if (auto s = m_link.stop("call"); !s) return runner_failure(s.error());
    t.cpu_s = m_link.process().cpu_seconds() - cpu_before;
    // An event's time may be forged; the batches' clock is what holds against it. Here only what cannot be.
    if (!std::isfinite(done.inside_s) || done.inside_s < 0 || done.inside_s > t.outside_s)
      return m_link.end(Reason::clocks_disagree,
                        fmt::format("the events claim {:.6g} s of a call that took {:.6g} s outside", done.inside_s, t.outside_s));
    t.inside_s = done.inside_s;
    t.sm_mhz = std::isfinite(done.sm_mhz) ? done.sm_mhz : 0;
    m_calls += 1;
    m_holds_expired += done.hold_expired != 0;
    return t;
  }

  RunnerResult<double> batch(int calls, bool flush_only) override {
    if (m_link.ended()) return runner_failure(*m_link.ended());
    if (calls < 0 || calls > wire::k_max_batch || (!flush_only && !m_expert && static_cast<std::size_t>(calls) > m_batch_calls))
      return runner_failure(Reason::runner_broke, fmt::format("a batch of {} calls, {} of which are prepared", calls, m_batch_calls));
    if (auto awake = wake(); !awake) return runner_failure(awake.error());
    const std::uint32_t graphs = flush_only ? 0 : m_expert ? 1 : static_cast<std::uint32_t>(calls);
    const auto run = [&](std::uint32_t count, bool flushes) {
      wire::CudaBatch message{.header = {}, .calls = count, .flush_only = flushes ? 1u : 0u, .graphs = graphs};
      return m_link.request<wire::CudaDone>(message, {}, "batch", m_options.call_timeout_s, Waiting::awake);
    };
    // A process that was stopped, and a card that was idle, take an uneven while to answer: that is not the batch's. Nor is recording.
    auto r = run(1, true);
    const double begin = monotonic_seconds();
    if (r && (*r)->outcome == wire::Outcome::ok) r = run(static_cast<std::uint32_t>(calls), flush_only);
    const double took = monotonic_seconds() - begin;
    if (!r) return runner_failure(r.error());
    const wire::CudaDone done = **r;
    if (done.outcome != wire::Outcome::ok && done.outcome != wire::Outcome::refused) return failed(done);
    m_scrubbed = false;
    if (auto s = m_link.stop("batch"); !s) return runner_failure(s.error());
    if (done.outcome == wire::Outcome::refused) return runner_failure(Reason::load_failed, text_of(done.text));  // it lives on
    return took;
  }

  RunnerResult<CodeProfile> profile(double seconds) override {
    if (m_link.ended()) return runner_failure(*m_link.ended());
    m_link.process().resume();
    wire::Profile ask{.header = {}, .seconds = seconds};
    auto r = m_link.request<wire::Samples>(ask, {}, "profile", seconds + m_options.call_timeout_s);
    if (!r) return runner_failure(r.error());
    CodeProfile p;
    p.note = text_of((*r)->note);
    if (auto s = m_link.stop("profile"); !s) return runner_failure(s.error());
    return p;
  }

  Result<OnceProgram> once(const CallSpec& spec, const fs::path& folder) const override {
    FORGE_TRY_ASSIGN(OnceFile file, compose_cuda_once(spec, m_expert ? nullptr : &m_entries));
    *file.load = *m_load;
    file.cubin = m_cubin;
    const fs::path path = folder / "call";
    FORGE_TRY(write_once_file(path, file));
    OnceProgram program = m_alone;
    program.argv.insert(program.argv.end(), {"--once", path.string()});
    return program;
  }

  std::string description() const override {
    std::string vehicle = "; flush, held stream, events";
    if (m_holds_expired > 0)
      vehicle += fmt::format(" (the hold expired in {} of {} calls: their time includes the host's)", m_holds_expired, m_calls);
    return m_description + vehicle;
  }
  bool composed() const override { return m_composed; }
  void set_alone(OnceProgram program) { m_alone = std::move(program); }
  void describe_as(std::string text) { m_description = std::move(text); }

  std::vector<std::string> sandbox() const override {
    std::vector<std::string> lines = {"own process group, killed with the judge", "stopped while idle", "own context on the card",
                                      "inputs mapped read-only for device code"};
    const auto say = [&](std::uint32_t bit, const char* what) {
      lines.push_back((m_features & bit ? "" : "missing: ") + std::string(what));
    };
    say(wire::feature_no_new_privs, "no new privileges");
    say(wire::feature_seccomp, m_python ? "seccomp: no network" : "seccomp: no sockets, processes or programs");
    say(wire::feature_read_only_files, m_python ? "landlock: files are read-only but for its own folder and the card's"
                                                : "landlock: files are read-only but for the card's");
    lines.push_back("missing: a limit of memory (the driver reserves terabytes of addresses)");
    lines.push_back("missing: an allow list of system calls (the driver's are not documented)");
    return lines;
  }

 private:
  Result<ComposedCudaCall> compose(const CallSpec& spec) const {
    return m_expert ? compose_cuda_expert_call(spec) : compose_cuda_image_call(spec, m_entries);
  }

  static void add_need(std::vector<NeededAllocation>& needs, const NeededAllocation& a) {
    for (auto& n : needs)
      if (n.buffer->id() == a.buffer->id()) {
        n.writable |= a.writable;
        return;
      }
    needs.push_back(a);
  }

  RunnerResult<void> wake() {
    m_link.process().resume();
    wire::Ready ready;
    auto awake = m_link.request<wire::Reply>(ready, {}, "wake-up", m_options.call_timeout_s);
    if (!awake) return runner_failure(awake.error());
    return {};
  }

  // Imports what the call and the batch need, and forgets what neither does.
  RunnerResult<void> place() {
    std::vector<NeededAllocation> needs = m_call_needs;
    for (const auto& a : m_batch_needs) add_need(needs, a);
    for (auto it = m_placed.begin(); it != m_placed.end();) {
      const bool needed = std::any_of(needs.begin(), needs.end(), [&](const auto& n) { return n.buffer->id() == it->first; });
      // Rights are only ever widened in a mapping: where less is asked for now, it is made anew.
      const bool too_much = needed && it->second.writable && std::any_of(needs.begin(), needs.end(), [&](const auto& n) {
                              return n.buffer->id() == it->first && !n.writable;
                            });
      if (needed && !too_much) {
        ++it;
        continue;
      }
      wire::CudaForget forget{.header = {}, .allocation = it->first};
      auto r = m_link.request<wire::Reply>(forget, {}, "forgetting memory", m_options.load_timeout_s);
      if (!r) return runner_failure(r.error());
      if ((*r)->outcome != wire::Outcome::ok) return m_link.end(Reason::runner_broke, text_of((*r)->text));
      it = m_placed.erase(it);
    }
    for (const auto& n : needs) {
      const auto known = m_placed.find(n.buffer->id());
      if (known != m_placed.end() && known->second.writable >= n.writable) continue;
      wire::CudaImport import{
          .header = {}, .allocation = n.buffer->id(), .bytes = n.buffer->allocation_bytes(), .writable = n.writable ? 1u : 0u};
      auto r = m_link.request<wire::CudaPlaced>(import, {n.buffer->fd()}, "importing memory", m_options.load_timeout_s);
      if (!r) return runner_failure(r.error());
      const wire::CudaPlaced placed = **r;
      if (placed.outcome != wire::Outcome::ok) return m_link.end(reason_of(placed.outcome), n.role + ": " + text_of(placed.text));
      m_placed[n.buffer->id()] = {
          n.role, placed.address, n.buffer->allocation_bytes(), n.buffer->offset(), n.buffer->offset() + n.buffer->bytes(), n.writable};
    }
    return {};
  }

  RunnerResult<void> send_slot(wire::CudaPrepare& message) {
    auto r = m_link.request<wire::Reply>(message, {}, "prepare", m_options.load_timeout_s);
    if (!r) return runner_failure(r.error());
    const wire::Reply reply = **r;
    if (reply.outcome == wire::Outcome::ok) {
      if (m_expert) m_description = text_of(reply.text);
      m_composed = reply.composed != 0;
      return {};
    }
    if (reply.outcome == wire::Outcome::faulted || reply.outcome == wire::Outcome::broken)
      return m_link.end(reason_of(reply.outcome), text_of(reply.text));
    // Refusals ("not this shape", "too much shared memory") leave the runner usable.
    if (auto s = m_link.stop("prepare"); !s) return s;
    return runner_failure(reason_of(reply.outcome), text_of(reply.text));
  }

  tl::unexpected<RunnerFailure> failed(const wire::CudaDone& done) {
    if (done.outcome != wire::Outcome::faulted) {
      if (done.outcome == wire::Outcome::broken) return m_link.end(Reason::runner_broke, text_of(done.text));
      if (auto s = m_link.stop("call"); !s) return runner_failure(s.error());
      return runner_failure(reason_of(done.outcome), text_of(done.text));
    }
    std::vector<PlacedAllocation> placed;
    for (const auto& [id, p] : m_placed) placed.push_back(p);
    RunnerFailure why =
        classify_cuda_fault(done.error, text_of(done.text), m_log.xids(m_log.readable() ? 0.3 : 0), m_log.readable(), placed);
    return m_link.end(why.reason, std::move(why.detail));
  }

  std::optional<TempDir> m_folder;  // a Python expert's; it outlives the process
  RunnerLink m_link;
  CudaRunnerOptions m_options;
  bool m_expert = false, m_python = false, m_composed = false, m_prepared = false, m_scrubbed = false;
  std::uint32_t m_features = 0;
  std::size_t m_batch_calls = 0;
  int m_calls = 0, m_holds_expired = 0;
  std::string m_description, m_cubin;
  std::unique_ptr<wire::Load> m_load;  // these three: for a call on its own
  OnceProgram m_alone;
  std::map<std::string, std::uint32_t> m_entries;
  std::map<std::uint64_t, PlacedAllocation> m_placed;  // by allocation
  std::vector<NeededAllocation> m_call_needs, m_batch_needs;
  std::shared_ptr<const void> m_keep_alive;
  std::vector<std::shared_ptr<const void>> m_batch_keep_alive;
  KernelLog m_log;
  Random m_random{os_entropy()};
};

// What the driver and the experts' libraries must know; everything else stays with the judge.
std::vector<std::string> cuda_environment(bool expert, const std::string& folder, const std::string& cache) {
  std::vector<std::string> env = {"CUDA_MODULE_LOADING=EAGER", "CUDA_CACHE_DISABLE=1", "LC_ALL=C"};
  std::vector<const char*> passed = {"PATH", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"};
  if (expert) passed.insert(passed.end(), {"FORGE_CUDA_LIBS", "VIRTUAL_ENV", "CONDA_PREFIX", "CUDA_HOME"});
  for (const char* name : passed)
    if (const char* value = std::getenv(name)) env.push_back(fmt::format("{}={}", name, value));
  if (folder.empty()) {
    if (const char* home = std::getenv("HOME"); home && expert) env.push_back(fmt::format("HOME={}", home));
  } else {
    env.push_back("HOME=" + folder);
    env.push_back("TMPDIR=" + folder);
    if (!cache.empty()) {  // what an expert compiles for itself (torch.compile: half a minute) is kept for its next process
      env.push_back("TORCHINDUCTOR_CACHE_DIR=" + cache + "/inductor");
      env.push_back("TRITON_CACHE_DIR=" + cache + "/triton");
    }
  }
  return env;
}

Result<std::string> find_python(const std::string& wanted) {
  if (!wanted.empty()) return wanted;
  const std::string path = std::getenv("PATH") ? std::getenv("PATH") : "/usr/local/bin:/usr/bin:/bin";
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find(':', at), path.size());
    const std::string file = path.substr(at, end - at) + "/python3";
    if (end > at && access(file.c_str(), X_OK) == 0) return file;
    at = end + 1;
  }
  return fail(Code::unsupported, "no python3 in PATH, so no Python expert can be held", "install Python with the expert's packages");
}

Result<std::string> find_python_runner(const CudaRunnerOptions& options) {
  if (!options.python_runner.empty()) return options.python_runner;
  const char* file = "forge_expert_runner.py";
  std::vector<fs::path> places = {fs::path(options.program).parent_path() / "python" / file};
  if (const auto paths = find_paths()) places.push_back(paths->data / "include" / "forge" / "python" / file);
  std::error_code ec;
  for (const auto& place : places)
    if (fs::exists(place, ec)) return fs::absolute(place, ec).string();
  return fail(Code::not_found, "forge_expert_runner.py is neither beside the program nor in the source tree",
              "install again, or set FORGE_DATA");
}

using Started = RunnerResult<std::unique_ptr<CudaProcessRunner>>;

Started start(const CudaRunnerOptions& options, bool expert, const std::string& python_plugin) {
  const bool python = !python_plugin.empty();
  std::vector<std::string> arguments;
  std::optional<TempDir> folder;
  if (python) {
    const auto interpreter = find_python(options.python);
    if (!interpreter) return runner_failure(Reason::load_failed, interpreter.error().text());
    const auto script = find_python_runner(options);
    if (!script) return runner_failure(Reason::load_failed, script.error().text());
    auto made = TempDir::make("forge-expert");
    if (!made) return runner_failure(Reason::runner_broke, made.error().text());
    folder = std::move(*made);
    std::error_code ec;  // a cache that cannot be made is not used
    if (!options.cache.empty())
      for (const char* name : {"inductor", "triton"}) fs::create_directories(fs::path(options.cache) / name, ec);
    arguments = {"--python", *interpreter, "-I", *script, python_plugin, (fs::path(options.program).parent_path() / "device").string()};
  }
  constexpr SpawnLimits limits{.open_files = 4096, .may_write_files = true};
  const auto environment = cuda_environment(expert, folder ? folder->path().string() : "", options.cache);
  auto process = RunnerProcess::start(options.program, environment, arguments, limits);
  if (!process) return runner_failure(Reason::runner_broke, process.error().text());
  auto runner = std::make_unique<CudaProcessRunner>(std::move(*process), options, expert, python, std::move(folder));
  if (python) arguments.erase(arguments.begin());
  runner->set_alone({python ? arguments : std::vector<std::string>{options.program}, environment});
  return runner;
}

}  // namespace

RunnerResult<std::unique_ptr<Runner>> start_cuda_image_runner(const Image& image, const CudaRunnerOptions& options) {
  auto load = std::make_unique<wire::Load>();
  load->subject = wire::Subject::cuda_image;
  std::map<std::string, std::uint32_t> entries;
  for (const auto& l : image.plan.launches) {
    if (entries.count(l.entry)) continue;
    const std::uint32_t i = load->entry_count;
    if (i == wire::k_max_entries || l.entry.size() >= sizeof load->entries[0])
      return runner_failure(Reason::load_failed, "too many entries, or a name too long: " + l.entry);
    copy_text(load->entries[i], l.entry);
    entries[l.entry] = i;
    ++load->entry_count;
  }
  Fd file(memfd_create("forge:image", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file || write(file.get(), image.bytes.data(), image.bytes.size()) != static_cast<ssize_t>(image.bytes.size()))
    return runner_failure(Reason::runner_broke, "cannot pass the image on");
  fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
  load->object_bytes = image.bytes.size();
  auto runner = start(options, false, "");
  if (!runner) return runner_failure(runner.error());
  (*runner)->describe_as("image " + image.sha256.substr(0, 12));
  if (auto r = (*runner)->load(std::move(load), file.get(), image.bytes, std::move(entries)); !r) return runner_failure(r.error());
  return std::unique_ptr<Runner>(std::move(*runner));
}

RunnerResult<std::unique_ptr<Runner>> start_cuda_expert_runner(const std::string& plugin_path, const CudaRunnerOptions& options) {
  auto load = std::make_unique<wire::Load>();
  load->subject = wire::Subject::cuda_expert;
  const std::string path = fs::absolute(plugin_path).string();
  if (path.size() >= sizeof load->plugin) return runner_failure(Reason::load_failed, "path too long: " + path);
  copy_text(load->plugin, path);
  auto runner = start(options, true, path.ends_with(".py") ? path : "");
  if (!runner) return runner_failure(runner.error());
  if (auto r = (*runner)->load(std::move(load), -1, {}, {}); !r) return runner_failure(r.error());
  return std::unique_ptr<Runner>(std::move(*runner));
}

}  // namespace forge
