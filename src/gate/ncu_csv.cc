// SPDX-License-Identifier: Apache-2.0
#include "gate/ncu_csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "util/text.h"

namespace forge {
namespace {

// Its words to the user, and the profiled program's, stand between the records: lines that do not begin with a quote and that no open
// quote goes on to.
std::string csv_part(const std::string& output, std::vector<std::string>* errors) {
  std::string csv;
  bool open = false;
  for (const std::string& line : split(output, '\n')) {
    if (!open && !line.starts_with("\"")) {
      if (errors && line.starts_with("==ERROR==")) errors->push_back(trim(line.substr(9)));
      continue;
    }
    csv += line + "\n";
    open ^= std::count(line.begin(), line.end(), '"') % 2 != 0;
  }
  return csv;
}

// To seconds, bytes, percent and counts. `--print-units base` is asked for; a version that prints others is read all the same.
double scale_of(const std::string& unit) {
  static const std::map<std::string, double> kScales = {{"ns", 1e-9},   {"nsecond", 1e-9}, {"us", 1e-6},        {"usecond", 1e-6},
                                                        {"ms", 1e-3},   {"msecond", 1e-3}, {"Kbyte", 1e3},      {"Mbyte", 1e6},
                                                        {"Gbyte", 1e9}, {"Tbyte", 1e12},   {"Kbyte/block", 1e3}};
  const auto it = kScales.find(unit);
  return it == kScales.end() ? 1 : it->second;
}

std::optional<std::size_t> column(const std::vector<std::string>& header, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const auto it = std::find(header.begin(), header.end(), name); it != header.end()) return std::size_t(it - header.begin());
  return std::nullopt;
}

std::optional<std::uint64_t> address_of(std::string_view text) {
  const bool prefixed = text.starts_with("0x");
  if (prefixed) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, prefixed ? 16 : 10);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::vector<std::vector<std::string>> parse_csv(std::string_view text) {
  std::vector<std::vector<std::string>> records;
  std::vector<std::string> record;
  std::string field;
  bool quoted = false, any = false;
  const auto end_record = [&] {
    if (any) {
      record.push_back(std::move(field));
      records.push_back(std::move(record));
    }
    record.clear(), field.clear(), any = false;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c != '"')
        field += c;
      else if (i + 1 < text.size() && text[i + 1] == '"')
        field += text[++i];
      else
        quoted = false;
    } else if (c == '\n') {
      end_record();
    } else if (c == ',') {
      record.push_back(std::move(field));
      field.clear(), any = true;
    } else if (c == '"') {
      quoted = any = true;
    } else if (c != '\r') {
      field += c, any = true;
    }
  }
  end_record();
  return records;
}

std::optional<double> ncu_number(std::string text) {
  std::erase(text, ',');
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

NcuOutput parse_ncu_counters(const std::string& output) {
  NcuOutput out;
  std::vector<std::string> header, units;
  for (auto& record : parse_csv(csv_part(output, &out.errors))) {
    if (column(record, {"Kernel Name"})) {
      header = std::move(record);
      units.clear();
      continue;
    }
    if (header.empty() || record.size() != header.size()) continue;
    const std::size_t name = *column(header, {"Kernel Name"});
    if (units.empty()) {
      units = std::move(record);
      continue;
    }
    if (record[name].empty()) continue;
    KernelCounters k{.kernel = record[name]};
    for (std::size_t i = 0; i < header.size(); ++i) {
      if (header[i] == "Grid Size") k.grid = record[i];
      if (header[i] == "Block Size") k.block = record[i];
      if (header[i].find("__") == std::string::npos) continue;  // no metric
      if (const auto value = ncu_number(record[i])) k.values[header[i]] = *value * scale_of(units[i]);
    }
    out.kernels.push_back(std::move(k));
  }
  return out;
}

std::vector<CountedKernel> parse_ncu_source(const std::string& output) {
  std::vector<CountedKernel> out;
  std::vector<std::string> header;
  for (auto& record : parse_csv(csv_part(output, nullptr))) {
    if (record[0] == "Kernel Name" && record.size() >= 2) {
      out.push_back({.name = record[1], .lines = {}});
      header.clear();
      continue;
    }
    if (column(record, {"Source"})) {
      if (out.empty() || !out.back().lines.empty()) out.push_back({.name = "kernel", .lines = {}});
      header = std::move(record);
      continue;
    }
    const auto source = column(header, {"Source"});
    const auto executed = column(header, {"# Inst Executed", "Instructions Executed", "inst_executed"});
    const auto address = column(header, {"Address", "#"});
    if (!source || record.size() != header.size()) continue;
    CountedLine line{.address = out.back().lines.size() * 16, .text = trim(record[*source]), .executed = 0};
    if (address)
      if (const auto at = address_of(record[*address])) line.address = *at;
    if (executed) line.executed = ncu_number(record[*executed]).value_or(0);
    if (!line.text.empty()) out.back().lines.push_back(std::move(line));
  }
  std::erase_if(out, [](const CountedKernel& k) { return k.lines.empty(); });
  return out;
}

}  // namespace forge
