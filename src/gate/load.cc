// SPDX-License-Identifier: Apache-2.0
#include "gate/load.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "util/progress.h"

namespace forge {
namespace {

double seconds_per_tick() { return 1.0 / double(::sysconf(_SC_CLK_TCK)); }

// utime + stime of one process, from the fields behind the command's closing bracket.
double cpu_seconds(const std::string& pid) {
  std::ifstream in("/proc/" + pid + "/stat");
  std::string text((std::istreambuf_iterator<char>(in)), {});
  const auto end = text.rfind(')');
  if (end == std::string::npos) return 0;
  std::istringstream fields(text.substr(end + 1));
  std::string skip;
  for (int i = 0; i < 11; ++i) fields >> skip;
  double user = 0, system = 0;
  fields >> user >> system;
  return (user + system) * seconds_per_tick();
}

double family_cpu_seconds(const std::string& pid, int depth) {
  double sum = cpu_seconds(pid);
  if (depth == 0) return sum;
  std::error_code ec;
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + pid + "/task", ec)) {
    std::ifstream in(task.path() / "children");
    for (std::string child; in >> child;) sum += family_cpu_seconds(child, depth - 1);
  }
  return sum;
}

int descendants(const std::string& pid, int depth) {
  int count = 0;
  std::error_code ec;
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + pid + "/task", ec)) {
    std::ifstream in(task.path() / "children");
    for (std::string child; in >> child;) count += 1 + (depth > 0 ? descendants(child, depth - 1) : 0);
  }
  return count;
}

}  // namespace

int live_descendants() { return descendants("self", 4); }

LoadSample sample_load() {
  LoadSample out;
  out.wall_s = monotonic_seconds();
  std::ifstream in("/proc/stat");
  for (std::string line; std::getline(in, line) && line.starts_with("cpu");) {
    if (line.size() > 3 && line[3] != ' ') {
      ++out.cores;
      continue;
    }
    std::istringstream fields(line.substr(3));
    double user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0;
    fields >> user >> nice >> system >> idle >> iowait >> irq >> softirq >> steal;
    out.busy_s = (user + nice + system + irq + softirq) * seconds_per_tick();
    out.steal_s = steal * seconds_per_tick();
  }
  out.own_s = family_cpu_seconds("self", 4);  // forge -> runner -> sandbox's inner process
  return out;
}

ForeignLoad foreign_load(const LoadSample& before, const LoadSample& after) {
  ForeignLoad out;
  const double capacity = (after.wall_s - before.wall_s) * after.cores;
  if (before.cores == 0 || after.cores == 0 || !(capacity > 0)) return out;
  out.known = true;
  const double foreign = (after.busy_s - before.busy_s) - (after.own_s - before.own_s);
  out.foreign_percent = std::clamp(100 * foreign / capacity, 0.0, 100.0);
  out.steal_percent = std::clamp(100 * (after.steal_s - before.steal_s) / capacity, 0.0, 100.0);
  return out;
}

}  // namespace forge
