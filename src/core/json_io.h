// SPDX-License-Identifier: Apache-2.0
// Private to .cc files: nlohmann::json views of the nouns, for those who compose them (journal, records, --json).
// Headers never include this one.
#pragma once
#include <nlohmann/json.hpp>

#include "core/entry.h"
#include "core/plan.h"
#include "core/record.h"
#include "core/target.h"

namespace forge {

using Json = nlohmann::ordered_json;

// Parses with comments refused; the error carries file and line.
Result<Json> parse_json(const std::string& text, const std::string& file);
std::string dump(const Json&, int indent = -1);  // invalid UTF-8 replaced, never thrown on

Json to_json_value(const Interval&);
Json to_json_value(const Signature&);
Json to_json_value(const SignatureResult&);
Json to_json_value(const InstructionMix&);
Json to_json_value(const Evidence&);
Json to_json_value(const Plan&);
Json to_json_value(const PairedTiming&);
Json to_json_value(const NoiseFloor&);
Json to_json_value(const Measurement&);
Json to_json_value(const Verdict&);
Json to_json_value(const Diagnostic&);
Json to_json_value(const Certification&);
Json to_json_value(const Budget&);
Json to_json_value(const Task&);
Json to_json_value(const KernelPackage&);
Json to_json_value(const Generation&);
Json to_json_value(const Machine&);

// Readers name the field in their errors. `where` is the file.
Result<NoiseFloor> read_noise_floor(const Json&, const std::string& where);
Result<Evidence> read_evidence(const Json&, const std::string& where);
Result<Plan> read_plan(const Json&, const std::string& where);
Result<Verdict> read_verdict(const Json&, const std::string& where);
Result<PairedTiming> read_paired_timing(const Json&, const std::string& where);
Result<std::vector<Diagnostic>> read_diagnostics(const Json&, const std::string& where);
Result<Task> read_task(const Json&, const std::string& where);
Result<KernelPackage> read_package(const Json&, const std::string& where);
Result<Generation> read_generation(const Json&, const std::string& where);
Result<Machine> read_machine(const Json&, const std::string& where);

}  // namespace forge
