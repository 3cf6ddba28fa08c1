// SPDX-License-Identifier: Apache-2.0
// How retrieval and search scale: a base of synthetic entries (default 100,000), written as files, loaded as any other, asked as a run
// asks. Usage: knowledge_scale [entries] [folder to keep the base in]
#include <cstdlib>

#include "bench/bench.h"
#include "knowledge/knowledge.h"
#include "tests/support/plain_retrieval.h"
#include "util/random.h"

using namespace forge;
using namespace forge::bench;

namespace {

const std::vector<std::string> kWords = {"store",  "tile",   "prefetch", "register", "vector", "line",      "unroll", "cache",
                                         "thread", "packed", "mask",     "pipeline", "reduce", "streaming", "block",  "latency"};
std::string some_words(Random& random, int n) {
  std::string out;
  for (int i = 0; i < n; ++i) out += (i ? " " : "") + kWords[random.below(kWords.size())];
  return out;
}

// Conditions as the real entries have them, over figures that differ from entry to entry: nearly all texts are distinct, about one in
// twenty holds for the task below.
std::string some_condition(Random& random) {
  const auto k = [&](std::uint64_t n) { return static_cast<long long>(random.below(n) + 1); };
  switch (random.below(5)) {
    case 0:
      return fmt::format("output_bytes > {} * l3_bytes", k(4000));
    case 1:
      return fmt::format("M >= {} && N % {} == 0 && memory_percent > {}", k(8192), 16 * k(64), k(100));
    case 2:
      return fmt::format("flops > {} * (input_bytes + output_bytes) && cores >= {}", k(400), k(4));
    case 3:
      return fmt::format("head_dim == {} || working_set_bytes < {}", k(256), k(4'000'000));
    default:
      return fmt::format("ceil_div(N, {}) > cores * {} && vector_bits >= 256", k(512), k(200));
  }
}

void write_entry(const fs::path& base, int n, Random& random) {
  const std::string family = random.below(2) ? "cpu" : "cuda";
  const fs::path folder = base / family / fmt::format("entry-{:06}", n);
  fs::create_directories(folder / "evidence");
  std::string text =
      fmt::format("format = 1\nid = \"entry-{:06}\"\ntitle = \"{}\"\ntargets = [\"{}\"]\nmechanism = \"{}\"\n", n, some_words(random, 6),
                  family == "cpu" ? (random.below(3) ? "cpu:*" : "cpu:x86-64-avx512") : "cuda:sm_90*", some_words(random, 50));
  text += fmt::format("applies = \"{}\"\nsymptoms = [\"{}\"]\nlimitations = [\"{}\"]\norigin = \"{}\"\n", some_condition(random),
                      some_words(random, 10), some_words(random, 12), some_words(random, 10));
  text += "[probe]\noperator = \"copy_f32\"\nmin_effect = 0.02\n";
  for (std::uint64_t i = random.below(3); i > 0; --i)
    text += fmt::format("[[advice]]\ndecision = \"{}\"\nvalue = \"{}\"\nwhen = \"{}\"\nbecause = \"{}\"\n", kWords[random.below(16)],
                        kWords[random.below(16)], some_condition(random), some_words(random, 12));
  std::ofstream(folder / "entry.toml") << text << "[[signature]]\nmnemonic = \"vmovntps\"\nscope = \"hot_loop\"\nmin = 1\n";
  for (std::uint64_t i = random.below(3); i > 0; --i) {
    Certification c;
    c.device_class = fmt::format("{}:Class-{}", family, i), c.device = "a device", c.compiler = "g++ 12.2.0", c.date = "2026-11-30";
    c.commit = "0123abc", c.comparison = Comparison::faster, c.floor = 0.01;
    const double mid = 1 + random.uniform();
    c.effect = {mid - 0.01, mid, mid + 0.01};
    c.outcome = random.below(4) ? EntryState::certified : EntryState::refuted;
    std::string file = c.device_class;
    file[file.find(':')] = '_';
    std::ofstream(folder / "evidence" / (file + ".json")) << certification_to_json(c);
  }
}

// The base's entries with their conditions as trees, which the plain way evaluates.
std::vector<Entry> with_trees(std::vector<Entry> entries) {
  const auto parse = [](Expr& e) {
    if (!e.text.empty()) e = *parse_expr(e.text);
  };
  for (Entry& e : entries) {
    parse(e.applies);
    for (Advice& a : e.advice) parse(a.when);
  }
  return entries;
}

bool same(const std::vector<Retrieved>& a, const std::vector<Retrieved>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Retrieved& x, const Retrieved& y) {
    return x.entry.id == y.entry.id && x.state == y.state && x.effect == y.effect && x.advice.size() == y.advice.size();
  });
}

// Search as it was: every text of every entry in lower case, anew for every question.
std::size_t plain_search(const std::vector<Entry>& entries, const std::vector<std::string>& wanted) {
  const auto lower_case = [](std::string text) {
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
  };
  std::size_t found = 0;
  for (const Entry& e : entries) {
    const std::string title = lower_case(e.id + " " + e.title), body = lower_case(e.mechanism + " " + join(e.symptoms, " "));
    int score = 0;
    for (const std::string& w : wanted) score += (title.find(w) != std::string::npos ? 2 : 0) + (body.find(w) != std::string::npos);
    found += score > 0;
  }
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  const int count = count_from(argc, argv, 100'000);
  TempDir temporary = std::move(*TempDir::make("knowledge-scale"));
  const fs::path folder = argc > 2 ? fs::path(argv[2]) : temporary.path();
  if (!fs::exists(folder / "cpu")) {
    Random random(7);
    for (int n = 0; n < count; ++n) write_entry(folder, n, random);
  }
  forget_peak();
  const double before = memory_mb("VmRSS");
  Result<KnowledgeBase> base = fail(Code::internal, "not loaded");
  const double cpu = cpu_seconds();
  const double load = timed([&] { base = KnowledgeBase::load(folder); });
  if (!base) return line(base.error().text()), 1;
  line(fmt::format("{} entries loaded in {:.2f} s ({:.2f} of processor); resident before {:.0f} MB, now {:.0f} MB, peak {:.0f} MB",
                   base->entries().size(), load, cpu_seconds() - cpu, before, memory_mb("VmRSS"), memory_mb("VmHWM")));

  Machine machine;
  machine.target = *find_target("cpu:x86-64-avx512");
  machine.device_class = "cpu:Class-1";
  const Names names = {
      {"M", 4096},           {"N", 2048},        {"input_bytes", 33554432},     {"output_bytes", 33554432}, {"flops", 1 << 30},
      {"l3_bytes", 1 << 20}, {"cores", 8},       {"vector_bits", 512},          {"memory_percent", 80},     {"l2_bytes", 1 << 20},
      {"l1d_bytes", 32768},  {"line_bytes", 64}, {"working_set_bytes", 3 << 20}};
  forget_peak();
  std::vector<double> alone, processor;
  for (int i = 0; i < 21; ++i) {
    const double start = cpu_seconds();
    alone.push_back(timed([&] { retrieve(*base, machine, names); }));
    processor.push_back(cpu_seconds() - start);
  }
  line(fmt::format("a retrieval: median {:.3f} ms ({:.3f} of processor), slowest of {} {:.3f} ms; peak {:.0f} MB", 1e3 * median(alone),
                   1e3 * median(processor), alone.size(), 1e3 * *std::max_element(alone.begin(), alone.end()), memory_mb("VmHWM")));
  const std::vector<Entry> entries = with_trees({base->entries().begin(), base->entries().end()});
  const auto fast = retrieve(*base, machine, names);
  const bool equal = same(fast, plain_retrieve(entries, machine, names));
  line(fmt::format("{} of them apply to the task; the same as plainly: {}", fast.size(), equal ? "yes" : "NO"));
  beside(
      "retrieve", 15, [&] { retrieve(*base, machine, names); }, [&] { plain_retrieve(entries, machine, names); });
  const std::size_t hits = base->search("streaming entry-01234").size();
  line(fmt::format("\"streaming entry-01234\" is in {} of them; the same number as plainly: {}", hits,
                   hits == plain_search(entries, {"streaming", "entry-01234"}) ? "yes" : "NO"));
  const std::vector<std::string> wanted = {"streaming", "entry-01234"};
  beside(
      "search", 15, [&] { base->search("streaming entry-01234"); }, [&] { plain_search(entries, wanted); });
  return equal ? 0 : 1;
}
