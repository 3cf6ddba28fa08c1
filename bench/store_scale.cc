// SPDX-License-Identifier: Apache-2.0
// How the store and the report scale: one run with many events (default 1,000,000), then as many events in many runs; opened without an
// index, with one, and after the run went on. Usage: store_scale [events]
#include <cstdlib>

#include "bench/bench.h"
#include "core/json_io.h"
#include "report/report.h"
#include "store/store.h"
#include "util/hash.h"
#include "util/random.h"

using namespace forge;
using namespace forge::bench;

namespace {

// Lines as the journal writes them, without its fdatasync.
class Writer {
 public:
  explicit Writer(const fs::path& file) { fs::create_directories(file.parent_path()), m_out.open(file, std::ios::app | std::ios::binary); }
  void put(const std::string& type, const std::string& request, const std::string& response) {
    const std::string body =
        fmt::format(R"({{"seq":{},"time":"2026-11-30T01:36:07Z","type":"{}","request":{},"response":{},"seconds":0.0125,"prev":"{}")",
                    ++m_seq, type, request, response, m_hash);
    m_hash = sha256_hex(body + "}").substr(0, 16);
    m_out << body << R"(,"hash":")" << m_hash << "\"}\n";
  }
  void flush() { m_out.flush(); }

 private:
  std::ofstream m_out;
  std::string m_hash;
  std::int64_t m_seq = 0;
};

const std::string kPackage = [] {
  std::string source;
  for (int i = 0; i < 24; ++i) source += fmt::format(R"(  acc{0} = _mm256_fmadd_ps(a{0}, b{0}, acc{0});\n)", i);
  return R"({"language":"c++","files":[["kernel.cpp",")" + source + R"("]]})";
}();

// A mix as an agent's long run has it: one event in twenty is a hand-in with its source and verdict, the rest are the agent's turns and
// the lab's measurements.
void put_some(Writer& w, Random& random, int n) {
  if (n == 0)
    return w.put("run.start", R"({"run":"long","task":{"operator":"gemm_f32","target":"cpu:x86-64-avx2","reference":"expert"}})", "null");
  if (n == 1) return w.put("gate.open", "{}", R"({"present":true,"id":"expert:x","description":"a library","seconds":0.01})");
  // By the journal's own printer: others may differ in a last digit, and the lines must be as the journal writes them.
  const double ms = static_cast<double>(4000 + random.below(4000)) / 1e3;
  const auto number = [](double value) { return dump(Json(value)); };
  const std::string sha = fmt::format("{:016x}{:016x}", random.next(), random.next());
  if (n % 20 == 2) {
    const char* reason = random.below(4) ? "accepted" : "wrong_result";
    w.put(
        "gate.submit",
        fmt::format(R"({{"n":{},"revision":{},"milestone":"M{}","sha":"{}","package":{},"decisions":[["store","{}"],["tile","{}"]]}})",
                    n / 20, n / 4000, n / 400 % 10, sha, kPackage, random.below(2) ? "streaming" : "ordinary", 8 << random.below(4)),
        fmt::format(
            R"({{"reason":"{}","detail":"{} of 32 shapes","mechanism":{{"ok":true,"found":["vfmadd*ps x {}"]}},"measurement":{{"seconds":{},"pairs":[{{"against":"reference","speedup":{{"low":{},"mid":{},"high":{}}}}}]}},"times":{{"build":0.4,"admit":0.01,"correctness":0.7,"timing":0.9,"waited":0.1,"total":2.1}}}})",
            reason, random.below(32), random.below(32), number(ms / 1e3), number(9.9 / ms), number(10 / ms), number(10.1 / ms)));
  } else if (n % 3) {
    w.put(
        "agent.turn", fmt::format(R"({{"milestone":"M{}","attempt":1,"turn":{},"results":"{}"}})", n / 400 % 10, n % 400, sha),
        fmt::format(
            R"({{"calls":[{{"id":"c{}","tool":"search","arguments":{{"words":"streaming \"stores\""}}}}],"ended":false,"why":"","said":"The output does not fit in the last-level cache, so I try another store.","use":{{"input":{},"output":{}}}}})",
            n, random.below(20'000), random.below(900)));
  } else {
    w.put("gate.time", fmt::format(R"({{"purpose":"tune","milestone":"M{}","packages":["{}","{}"]}})", n / 400 % 10, sha, sha),
          fmt::format(R"([{{"seconds":{},"ratio":{}}},{{"seconds":{},"ratio":{}}}])", number(ms / 1e3), number(10 / ms), number(ms / 1e3),
                      number(10 / ms)));
  }
}

// As journals were read: the file in memory, a tree of every line, printed again to be hashed, all events kept.
std::vector<Event> read_plainly(const fs::path& file) {
  const std::string text = *read_file(file);
  std::vector<Event> events;
  std::string previous;
  for (std::size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    Json j = Json::parse(text.begin() + static_cast<std::ptrdiff_t>(at), text.begin() + static_cast<std::ptrdiff_t>(end));
    const std::string hash = j["hash"].get<std::string>();
    Event e{.seq = j["seq"].get<std::int64_t>(),
            .time = j["time"].get<std::string>(),
            .type = j["type"].get<std::string>(),
            .request = dump(j["request"]),
            .response = dump(j["response"]),
            .seconds = j["seconds"].get<double>()};
    j.erase("hash");
    if (j["prev"] != previous || sha256_hex(dump(j)).substr(0, 16) != hash) return {};
    previous = hash;
    events.push_back(std::move(e));
  }
  return events;
}

void open_store(const fs::path& home, const std::string& how) {
  forget_peak();
  std::size_t rows = 0;
  int candidates = 0;
  const double cpu = cpu_seconds();
  const double seconds = timed([&] {
    const auto store = Store::open(home);
    if (!store) return line(store.error().text());
    const auto runs = store->runs();
    if (!runs) return line(runs.error().text());
    rows = runs->size();
    for (const RunRow& r : *runs) candidates += r.candidates;
  });
  line(fmt::format("open and list, {:<34} {:8.1f} ms ({:.1f} of processor), {} runs with {} hand-ins, peak {:.0f} MB", how + ":",
                   1e3 * seconds, 1e3 * (cpu_seconds() - cpu), rows, candidates, memory_mb("VmHWM")));
}

void report(const fs::path& file) {
  forget_peak();
  std::size_t bytes = 0;
  const double cpu = cpu_seconds();
  const double seconds = timed([&] {
    const auto html = render_journal(file, "");
    if (!html) return line(html.error().text());
    bytes = html->size();
  });
  line(fmt::format("report of the long run: {:.2f} s ({:.2f} of processor), {:.2f} MB of HTML, peak {:.0f} MB", seconds,
                   cpu_seconds() - cpu, static_cast<double>(bytes) / 1e6, memory_mb("VmHWM")));
}

}  // namespace

int main(int argc, char** argv) {
  const int count = count_from(argc, argv, 1'000'000);
  const TempDir dir = std::move(*TempDir::make("store-scale"));
  Random random(11);

  const fs::path one = dir.path() / "one", file = one / "runs" / "long" / "journal.jsonl";
  {
    Writer w(file);
    for (int n = 0; n < count; ++n) put_some(w, random, n);
    w.flush();
    line(fmt::format("one run, {} events, {:.0f} MB of journal", count, static_cast<double>(fs::file_size(file)) / 1e6));
    open_store(one, "no index yet");
    open_store(one, "indexed");
    for (int n = 0; n < 1000; ++n) put_some(w, random, n + 2);
  }
  open_store(one, "1000 events later");
  report(file);

  const fs::path many = dir.path() / "many";
  constexpr int kEach = 1000;
  for (int run = 0; run < count / kEach; ++run) {
    Writer w(many / "runs" / fmt::format("run-{:05}", run) / "journal.jsonl");
    for (int n = 0; n < kEach; ++n) put_some(w, random, n);
  }
  line(fmt::format("{} runs of {} events", count / kEach, kEach));
  open_store(many, "no index yet");
  open_store(many, "indexed");

  const fs::path small = dir.path() / "small" / "runs" / "a" / "journal.jsonl";
  {
    Writer w(small);
    for (int n = 0; n < 20'000; ++n) put_some(w, random, n);
  }
  if (read_plainly(small).size() != 20'000) return line("the plain reader refuses this journal"), 1;
  line("in turns, on a run of 20000 events:");
  beside(
      "read every event once", 11,
      [&] {
        JournalMark mark;
        (void)scan_journal(small, mark, [](Event&) {});
      },
      [&] { read_plainly(small); });
  beside(
      "render its report", 11, [&] { (void)render_journal(small, ""); }, [&] { (void)render_report(read_plainly(small), ""); });
  return 0;
}
